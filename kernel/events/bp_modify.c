// SPDX-License-Identifier: GPL-2.0
/*
 * Modify breakpoints in place.
 *
 * All steps that can fail come first, for the whole family: the attributes are checked,
 * and the claims are changed if more registers are needed, or registers of another class.
 * The steps after that cannot fail.  Claims of fewer registers come last: until then the
 * registers are in use.  An active breakpoint is not scheduled out and keeps its slots in
 * the backend, unless it is flexible and needs other registers: it may have to wait for
 * them.
 *
 * Locking: ctx->mutex of the event, its child_mutex, then, for each member of the
 * family, the locks of its context.  Attributes and translation (hw.info) of an event
 * change under the locks of its context, with interrupts off, and on its CPU if it is
 * active; those of a whole family also under child_mutex.
 */

#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "internal.h"
#include "process.h"

/**
 * struct bp_change - a change of a breakpoint
 * @attr: new attributes; copy_changeable() copies those that can change
 * @hw: translation of @attr for the architecture
 * @resched: schedule the breakpoint out while it changes
 * @other_registers: another class or number of registers is needed
 * @old: what the breakpoint claims; @old and @new are valid with @other_registers
 * @new: what it has to claim
 */
struct bp_change {
	const struct perf_event_attr	*attr;
	struct arch_hw_breakpoint	hw;
	bool				resched;
	bool				other_registers;
	struct bp_claim_spec		old;
	struct bp_claim_spec		new;
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
	bp->hw.info = change->hw;
}

/* In one batch, if the architecture has batches: what both ranges have in common stays armed */
static noinline void reassign(struct perf_event *bp, const struct bp_change *change)
{
	perf_pmu_disable(bp->pmu);
	bp_sched_out(bp, 0);
	set_event(bp, change);
	/* The registers have been claimed. */
	WARN_ON_ONCE(bp_sched_in(bp));
	perf_pmu_enable(bp->pmu);
}

static void set_or_reinstall(struct perf_event *bp, const struct bp_change *change)
{
	if (bp->state != PERF_EVENT_STATE_ACTIVE) {
		set_event(bp, change);
	} else if (unlikely(change->other_registers || !bp_can_change())) {
		reassign(bp, change);
	} else {
		copy_changeable(&bp->attr, change->attr);
		arch_hw_breakpoint_change(bp, &change->hw);
	}
}

/* Enables @bp, unless it has left its context: then its state must not change. */
static void enable(struct perf_event *bp, struct perf_cpu_context *cpuctx,
		   struct perf_event_context *ctx)
{
	if (bp->state >= PERF_EVENT_STATE_INACTIVE || bp->state < PERF_EVENT_STATE_ERROR ||
	    !(bp->attach_state & PERF_ATTACH_CONTEXT))
		return;
	if (bp->state == PERF_EVENT_STATE_ERROR) {
		if (perf_event_reserve(bp, ctx))
			return;
		bp->state = PERF_EVENT_STATE_OFF;
	}
	__perf_event_enable(bp, cpuctx, ctx, NULL);
}

/* Under ctx->lock, on the CPU of @bp if it is active; @cpuctx is NULL if @ctx is not */
static void change_in_context(struct perf_event *bp, struct perf_cpu_context *cpuctx,
			      struct perf_event_context *ctx, void *info)
{
	const struct bp_change *change = info;
	bool off = change->attr->disabled;

	/* Of bp_value_prepare() */
	if (unlikely(bp->hw.bp_next_value))
		swap(bp->hw.bp_value, bp->hw.bp_next_value);
	if (off || change->resched)
		__perf_event_disable(bp, cpuctx, ctx, NULL);
	if (off)
		perf_sigtrap_drop_group(bp);
	if (bp->sigtrap)
		perf_sigtrap_modify(bp);
	set_or_reinstall(bp, change);
	if (off)
		return;
	perf_process_lift_limit(bp);
	enable(bp, cpuctx, ctx);
}

static void init_change(struct bp_change *change, const struct perf_event_attr *attr)
{
	change->attr = attr;
	/* A flexible breakpoint may have to wait for its registers. */
	change->resched = !bp_can_change() && hw_breakpoint_is_flexible(attr);
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
	/* See only_changeable_differ(). */
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

/*
 * Returns true if @attr differs only in modifiable fields from the attributes that the user
 * gave at open, some of which perf core may have changed in event->attr.
 */
static bool only_changeable_differ(const struct perf_event *event,
				   const struct perf_event_attr *attr)
{
	const struct bp_opened *opened = &event->hw.bp_opened;

	return same_fixed(&event->attr, attr) &&
	       opened->sample_period == attr->sample_period &&
	       opened->sample_max_stack == attr->sample_max_stack &&
	       opened->enable_on_exec == attr->enable_on_exec;
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
static int change_claims(struct perf_event *event, const struct bp_change *change)
{
	return bp_slots_change_all(&bp_machine, next_claim, event, &change->old, &change->new);
}

static bool needs_fewer(const struct bp_change *change)
{
	return change->new.class == change->old.class &&
	       change->new.weight < change->old.weight;
}

static noinline int claim_registers(struct perf_event *event, struct bp_change *change)
{
	unsigned int weight = hw_breakpoint_weight(&change->hw);

	change->old = bp_claim_spec(&event->attr, &event->hw.info);
	change->new = bp_claim_spec(change->attr, &change->hw);
	/*
	 * The claim covers the events of all CPUs: one cannot change alone.  With interrupts
	 * off, a breakpoint can only be disabled.
	 */
	if (bp_is_wide(event) || irqs_disabled())
		return -EINVAL;
	if (change->new.flexible) {
		/* The group could never be scheduled as a whole. */
		weight += bp_group_weight(event, change->new.class);
		if (weight > bp_machine.class[change->new.class].slots)
			return -EINVAL;
		/* It may have to wait for its registers. */
		change->resched = true;
	}

	/* All flexible claims of a class are equal. */
	if (change->new.class == change->old.class && change->new.weight == change->old.weight)
		return 0;
	return needs_fewer(change) ? 0 : change_claims(event, change);
}

/* Called when all events of the family have changed */
static noinline void release_registers(struct perf_event *event,
				       const struct bp_change *change)
{
	if (needs_fewer(change))
		WARN_ON_ONCE(change_claims(event, change));
}

static noinline int claim_again(struct perf_event *event, const struct bp_change *change)
{
	struct bp_claim_spec spec = bp_claim_spec(change->attr, &change->hw);

	return bp_slots_reserve(&bp_machine, &event->bp_claim, &spec, NULL, event->cpu);
}

/*
 * An event that has lost its claim, see hw_breakpoint_reserve(), claims again if
 * it is to be enabled; such an event is an event of a CPU and has no children.
 */
static __always_inline int prepare(struct perf_event *event, struct bp_change *change)
{
	change->other_registers = false;
	if (unlikely(READ_ONCE(event->state) == PERF_EVENT_STATE_ERROR) &&
	    !change->attr->disabled && !bp_has_claim(event))
		return claim_again(event, change);

	if (likely(bp_class(&event->attr) == bp_class(change->attr) &&
		   bp_weight(event) == hw_breakpoint_weight(&change->hw)))
		return 0;
	change->other_registers = true;
	return claim_registers(event, change);
}

/* Translates @attr for each child, for architectures where the result may differ. */
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
	if (!bp_can_change() && WARN_ON_ONCE(bp_parse(bp, change->attr, &change->hw)))
		return;
	event_function_call(bp, change_in_context, change);
}

/* Looks at the object before an event is armed for it: what is written meanwhile is told. */
static int prepare_value(struct perf_event *event, const struct perf_event_attr *attr)
{
	if (attr->bp_addr != event->attr.bp_addr || attr->bp_len != event->attr.bp_len)
		return bp_value_prepare(event, attr);
	/* Its hits are dropped: see lock_family() for an event that is off. */
	if (!attr->disabled && perf_process_is_over(event))
		bp_value_enabling(event);
	return 0;
}

static int change_family(struct perf_event *event, struct bp_change *change)
{
	struct perf_event *child;
	int err = prepare(event, change);

	if (err)
		return err;

	/* Also if its task has exited: threads that inherited it pass its attributes on. */
	event_function_call(event, change_in_context, change);
	list_for_each_entry(child, &event->child_list, child_list)
		change_child(child, change);
	if (unlikely(change->other_registers))
		release_registers(event, change);

	return 0;
}

static int modify_plain(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct bp_change change __uninitialized;
	int err;

	init_change(&change, attr);
	err = bp_parse_again(event, attr, &change.hw);
	if (!err && !bp_can_change())
		err = check_children(event, attr);

	return err ?: change_family(event, &change);
}

static noinline int modify_valued(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };
	int err;

	/* bp_parse_again() does not check what an event with values may watch. */
	err = bp_parse(event, attr, &hw) ?: prepare_value(event, attr);
	if (!err)
		err = modify_plain(event, attr);
	bp_value_finish(event);

	return err;
}

static int modify(struct perf_event *event, const struct perf_event_attr *attr)
{
	lockdep_assert_held(&event->child_mutex);

	return unlikely(event->hw.bp_value) ? modify_valued(event, attr) :
					      modify_plain(event, attr);
}

/* The error of open has precedence, as it is for attributes that can change. */
static noinline int refuse(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };

	return bp_parse(event, attr, &hw) ?: -EINVAL;
}

static __always_inline void lock_family(struct perf_event *event,
					const struct perf_event_attr *attr)
{
	if (unlikely(data_race(event->state) < PERF_EVENT_STATE_INACTIVE) && !attr->disabled)
		perf_event_enabling(event);
	mutex_lock(&event->child_mutex);
}

int bp_modify(struct perf_event *event, const struct perf_event_attr *attr)
{
	int err;

	lock_family(event, attr);
	if (only_changeable_differ(event, attr))
		err = modify(event, attr);
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
	child->hw.info = hw;

	return 0;
}

/* ---- For the kernel ---- */

/* With interrupts off: an event of current, without ctx->mutex */
static int modify_here(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct bp_change change;
	int err;

	if (WARN_ON_ONCE(bp->process))
		return -EINVAL;

	init_change(&change, attr);
	err = bp_parse_again(bp, attr, &change.hw) ?: prepare(bp, &change);
	if (!err && !event_function_here(bp, change_in_context, &change))
		err = -EINVAL;
	return err;
}

int modify_user_hw_breakpoint(struct perf_event *bp,
			      struct perf_event_attr *attr)
{
	struct perf_event_attr new = bp->attr;
	struct perf_event_context *ctx;
	int err;

	if (bp_is_wide(bp) || attr->config != bp->attr.config)
		return -EINVAL;
	new.bp_addr = attr->bp_addr;
	new.bp_len = attr->bp_len;
	new.bp_type = attr->bp_type;
	new.disabled = attr->disabled;

	if (irqs_disabled())
		return modify_here(bp, &new);

	/* An event with values looks at other events of the process. */
	perf_process_lock(bp);
	ctx = perf_event_ctx_lock(bp);
	lock_family(bp, &new);
	err = modify(bp, &new);
	mutex_unlock(&bp->child_mutex);
	perf_event_ctx_unlock(bp, ctx);
	perf_process_unlock(bp);

	return err;
}
EXPORT_SYMBOL_GPL(modify_user_hw_breakpoint);
