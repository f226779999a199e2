// SPDX-License-Identifier: GPL-2.0
/*
 * Modify breakpoints in place.
 *
 * All steps that can fail come first, for the whole family: the attributes are checked,
 * and the claims are changed if registers of another class are needed.  The steps after
 * that cannot fail.  An active breakpoint is not scheduled out and keeps its slot in the
 * backend.
 *
 * Locking: ctx->mutex of the event, its child_mutex, then, for each member of the
 * family, the locks of its context.  Attributes and translation (hw.info) of an event
 * change under the locks of its context, with interrupts off, and on its CPU if it is
 * active; those of a whole family also under child_mutex.
 */

#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "bp_internal.h"
#include "internal.h"

/**
 * struct bp_change - a change of a breakpoint
 * @core: argument of perf_event_change()
 * @attr: new attributes; copy_changeable() copies those that can change
 * @hw: translation of @attr for the architecture
 */
struct bp_change {
	struct perf_event_change	core;
	const struct perf_event_attr	*attr;
	struct arch_hw_breakpoint	hw;
};

/* The attributes that PERF_EVENT_IOC_MODIFY_ATTRIBUTES can change */
static void copy_changeable(struct perf_event_attr *to,
			    const struct perf_event_attr *from)
{
	to->bp_addr = from->bp_addr;
	to->bp_len = from->bp_len;
	to->bp_type = from->bp_type;
	to->sig_data = from->sig_data;
	to->disabled = from->disabled;
}

static void set_event(struct perf_event *bp, const struct bp_change *change)
{
	copy_changeable(&bp->attr, change->attr);
	arch_hw_breakpoint_copy(&bp->hw.info, &change->hw);
}

/* In one batch: the breakpoint gets the same slot and stays armed. */
static void reinstall(struct perf_event *bp, const struct bp_change *change)
{
	perf_pmu_disable(bp->pmu);
	arch_uninstall_hw_breakpoint(bp);
	set_event(bp, change);
	WARN_ON_ONCE(arch_install_hw_breakpoint(bp));
	perf_pmu_enable(bp->pmu);
}

static void change_event(struct perf_event *bp, struct perf_event_change *core)
{
	const struct bp_change *change = container_of(core, struct bp_change, core);

	if (bp->state != PERF_EVENT_STATE_ACTIVE) {
		set_event(bp, change);
	} else if (bp_can_change()) {
		copy_changeable(&bp->attr, change->attr);
		arch_hw_breakpoint_change(bp, &change->hw);
	} else {
		reinstall(bp, change);
	}
}

static void init_change(struct bp_change *change, const struct perf_event *bp,
			const struct perf_event_attr *attr)
{
	change->core.func = change_event;
	change->core.off = attr->disabled;
	change->core.resched = !bp_same_registers(&bp->attr, attr);
	change->attr = attr;
	memset(&change->hw, 0, sizeof(change->hw));
}

/* ---- Families ---- */

#define ATTR_WORDS	(sizeof(struct perf_event_attr) / sizeof(u64))

static_assert(sizeof(struct perf_event_attr) % sizeof(u64) == 0);

/* Mask of the bits that same_fixed() ignores */
static const struct perf_event_attr other_bits = {
	/* See copy_changeable(). */
	.bp_addr		= ~0ULL,
	.bp_len			= ~0ULL,
	.bp_type		= ~0U,
	.sig_data		= ~0ULL,
	.disabled		= 1,
	/* Programs may use a shorter attr; the rest is zero. */
	.size			= ~0U,
	/* Without effect: breakpoints have no branch stacks. */
	.branch_sample_type	= ~0ULL,
	/* See same_as_opened(). */
	.sample_period		= ~0ULL,
	.sample_max_stack	= (__u16)~0U,
	.enable_on_exec		= 1,
};

/*
 * Compares with a mask: to copy @b, make the other fields equal and call
 * memcmp() takes three times as long.  Unrolled, because then each word of the mask is
 * a constant, and words that are ignored are not read.
 */
static __always_inline bool same_fixed(const struct perf_event_attr *a,
				       const struct perf_event_attr *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b, *other = (const u64 *)&other_bits;
	u64 differ = 0;
	unsigned int i;

#pragma GCC unroll 32
	for (i = 0; i < ATTR_WORDS; i++)
		differ |= (x[i] ^ y[i]) & ~other[i];

	return !differ;
}

/* Compares the fields that perf core may have changed in event->attr. */
static bool same_as_opened(const struct bp_opened *opened, const struct perf_event_attr *attr)
{
	return opened->sample_period == attr->sample_period &&
	       opened->sample_max_stack == attr->sample_max_stack &&
	       opened->enable_on_exec == attr->enable_on_exec;
}

/*
 * Returns true if @attr differs only in modifiable fields from the attributes
 * that the user gave at open.
 */
static bool only_changeable_differ(const struct perf_event *event,
				   const struct perf_event_attr *attr)
{
	return same_fixed(&event->attr, attr) &&
	       same_as_opened(&event->hw.bp_opened, attr);
}

/* For bp_slots_change_all(): the claim after @claim in the family of @arg. */
static struct bp_claim *next_claim(struct bp_claim *claim, void *arg)
{
	struct perf_event *event = arg, *bp;
	struct list_head *link;

	if (!claim)
		return &event->bp_claim;

	bp = container_of(claim, struct perf_event, bp_claim);
	link = bp == event ? event->child_list.next : bp->child_list.next;
	if (link == &event->child_list)
		return NULL;
	return &list_entry(link, struct perf_event, child_list)->bp_claim;
}

/* An event that has left its context has no claim and needs none. */
static noinline int change_registers(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct bp_claim_spec old = bp_claim_spec(&event->attr);
	struct bp_claim_spec new = bp_claim_spec(attr);

	/* The claim covers the events of all CPUs: one cannot change alone. */
	if (bp_is_wide(event))
		return -EINVAL;
	return bp_slots_change_all(&bp_machine, next_claim, event, &old, &new);
}

static noinline int claim_again(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct bp_claim_spec spec = bp_claim_spec(attr);

	return bp_slots_reserve(&bp_machine, &event->bp_claim, &spec, NULL, event->cpu);
}

/*
 * An event that has lost its claim, see hw_breakpoint_reserve(), claims again if
 * it is to be enabled; such an event is an event of a CPU and has no children.
 */
static __always_inline int change_claims(struct perf_event *event,
					 const struct perf_event_attr *attr)
{
	if (unlikely(READ_ONCE(event->state) == PERF_EVENT_STATE_ERROR) && !attr->disabled &&
	    !bp_has_claim(event))
		return claim_again(event, attr);
	return bp_same_registers(&event->attr, attr) ? 0 : change_registers(event, attr);
}

/* Translates @attr for each child, for architectures where this may fail. */
static int check_children(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };
	struct perf_event *child;
	int err;

	list_for_each_entry(child, &event->child_list, child_list) {
		err = bp_parse(child, attr, &hw);
		if (err)
			return err;
	}

	return 0;
}

static void change_child(struct perf_event *bp, struct bp_change *change)
{
	if (!bp_can_share() && WARN_ON_ONCE(bp_parse(bp, change->attr, &change->hw)))
		return;
	perf_event_change(bp, &change->core);
}

static __always_inline int modify_family(struct perf_event *event,
					 const struct perf_event_attr *attr)
{
	/* Rows modify_* of the benchmark, with the loop of same_fixed(): 14 % */
	struct bp_change change __uninitialized;
	struct perf_event *child;
	int err;

	lockdep_assert_held(&event->child_mutex);

	init_change(&change, event, attr);
	err = bp_parse_again(event, attr, &change.hw);
	if (!err && !bp_can_share())
		err = check_children(event, attr);
	if (!err)
		err = change_claims(event, attr);
	if (err)
		return err;

	perf_event_change(event, &change.core);
	list_for_each_entry(child, &event->child_list, child_list)
		change_child(child, &change);

	return 0;
}

/* The error of open has precedence, as it is for attributes that can change. */
static noinline int refuse(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };

	return bp_parse(event, attr, &hw) ?: -EINVAL;
}

int bp_modify(struct perf_event *event, const struct perf_event_attr *attr)
{
	int err;

	mutex_lock(&event->child_mutex);
	if (only_changeable_differ(event, attr))
		err = modify_family(event, attr);
	else
		err = refuse(event, attr);
	mutex_unlock(&event->child_mutex);

	return err;
}

static bool same_changeable(const struct perf_event_attr *a,
			    const struct perf_event_attr *b)
{
	return a->bp_addr == b->bp_addr && a->bp_len == b->bp_len &&
	       a->bp_type == b->bp_type && a->sig_data == b->sig_data &&
	       a->disabled == b->disabled;
}

/* child_mutex keeps the attributes of @parent stable. */
int bp_follow(struct perf_event *child, const struct perf_event *parent)
{
	struct arch_hw_breakpoint hw = { };
	int err;

	if (same_changeable(&child->attr, &parent->attr))
		return 0;

	err = bp_translate(child, &parent->attr, &hw);
	if (err)
		return err;
	copy_changeable(&child->attr, &parent->attr);
	arch_hw_breakpoint_copy(&child->hw.info, &hw);

	return 0;
}

/* ---- For the kernel ---- */

/* perf never moves an event of a process, so that bp->ctx is stable. */
static int modify_process(struct perf_event *bp, const struct perf_event_attr *attr)
{
	if (WARN_ON_ONCE(irqs_disabled()))
		return -EINVAL;

	guard(mutex)(&bp->ctx->mutex);
	guard(mutex)(&bp->child_mutex);

	return modify_family(bp, attr);
}

int modify_user_hw_breakpoint(struct perf_event *bp,
			      struct perf_event_attr *attr)
{
	struct perf_event_attr new = bp->attr;
	struct bp_change change;
	int err;

	if (bp_is_wide(bp) || attr->config != bp->attr.config)
		return -EINVAL;
	new.bp_addr = attr->bp_addr;
	new.bp_len = attr->bp_len;
	new.bp_type = attr->bp_type;
	new.disabled = attr->disabled;

	if (bp->process)
		return modify_process(bp, &new);

	init_change(&change, bp, &new);
	err = bp_parse_again(bp, &new, &change.hw);
	if (err)
		return err;
	err = change_claims(bp, &new);
	if (err)
		return err;

	/* With interrupts off: an event of current, without ctx->mutex */
	if (irqs_disabled())
		perf_event_change(bp, &change.core);
	else
		perf_event_change_unlocked(bp, &change.core);

	return 0;
}
EXPORT_SYMBOL_GPL(modify_user_hw_breakpoint);
