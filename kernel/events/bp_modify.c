// SPDX-License-Identifier: GPL-2.0
/*
 * Changing breakpoints that exist.
 *
 * Everything that can fail comes first, for all that are to be changed: the
 * attributes are checked, and where they need registers of another class the
 * claims are changed.  What is left cannot fail.  A breakpoint that is on a CPU
 * stays there: it is not scheduled out, and the backend finds it in the slot
 * that it had.
 *
 * Locking: ctx->mutex of the event, its child_mutex, then for each member of the
 * family the locks of the context that it is in.  The attributes and the
 * translation of an event change under the latter, with interrupts off and on
 * its CPU if it is on one; those of a whole family under child_mutex too.
 */

#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "bp_internal.h"
#include "internal.h"

/**
 * struct bp_change - what a breakpoint shall be
 * @core: how perf has to do it
 * @attr: what it shall watch, sig_data and disabled
 * @hw: the same for the architecture
 */
struct bp_change {
	struct perf_event_change	core;
	const struct perf_event_attr	*attr;
	struct arch_hw_breakpoint	hw;
};

/* What MODIFY_ATTRIBUTES can change */
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

static void change_event(struct perf_event *bp, struct perf_event_change *core)
{
	const struct bp_change *change = container_of(core, struct bp_change, core);

	if (bp->state != PERF_EVENT_STATE_ACTIVE) {
		set_event(bp, change);
		return;
	}

	/* One batch: the slot is free and then taken, by the same breakpoint. */
	perf_pmu_disable(bp->pmu);
	arch_uninstall_hw_breakpoint(bp);
	set_event(bp, change);
	WARN_ON_ONCE(arch_install_hw_breakpoint(bp));
	perf_pmu_enable(bp->pmu);
}

static bool same_registers(const struct perf_event_attr *a,
			   const struct perf_event_attr *b)
{
	struct bp_claim_spec x = bp_claim_spec(a), y = bp_claim_spec(b);

	return x.class == y.class && x.weight == y.weight;
}

static void init_change(struct bp_change *change, const struct perf_event *bp,
			const struct perf_event_attr *attr)
{
	change->attr = attr;
	change->core.func = change_event;
	change->core.off = attr->disabled;
	change->core.resched = !same_registers(&bp->attr, attr);
}

/* ---- Families ---- */

/*
 * Whether nothing differs that cannot be changed: between what the user gave
 * when the event was opened and gives now. Not all of that is in event->attr.
 */
static bool only_changeable_differ(const struct perf_event *event,
				   const struct perf_event_attr *attr)
{
	struct perf_event_attr opened = event->attr;

	opened.sample_period = event->bp_opened.sample_period;
	opened.sample_max_stack = event->bp_opened.sample_max_stack;
	opened.enable_on_exec = event->bp_opened.enable_on_exec;
	/* Old programs have a shorter one, the rest of which is zero. */
	opened.size = attr->size;
	/* Without meaning: there are no branch stacks for breakpoints. */
	opened.branch_sample_type = attr->branch_sample_type;
	copy_changeable(&opened, attr);

	return !memcmp(&opened, attr, sizeof(opened));
}

/* The claim that comes after another one in the family of @arg */
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

/*
 * An event that has left its context holds no claim and needs none.  One that has
 * lost its claim, see __hw_breakpoint_reclaim(), makes one if it shall be enabled;
 * it is an event of a CPU and has no children.
 */
static int change_claims(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct bp_claim_spec old = bp_claim_spec(&event->attr);
	struct bp_claim_spec new = bp_claim_spec(attr);

	if (READ_ONCE(event->state) == PERF_EVENT_STATE_ERROR && !attr->disabled &&
	    !READ_ONCE(event->bp_claim.held))
		return bp_slots_reserve(&bp_books, &event->bp_claim, &new, NULL,
					event->cpu);
	if (same_registers(&event->attr, attr))
		return 0;
	return bp_slots_change_all(&bp_books, next_claim, event, &old, &new);
}

/* @hw_of_event: filled in */
static int check_family(struct perf_event *event, const struct perf_event_attr *attr,
			struct arch_hw_breakpoint *hw_of_event)
{
	struct arch_hw_breakpoint hw = { };
	struct perf_event *child;
	int err;

	err = bp_parse(event, attr, hw_of_event);
	if (err)
		return err;
	list_for_each_entry(child, &event->child_list, child_list) {
		err = bp_parse(child, attr, &hw);
		if (err)
			return err;
	}

	return change_claims(event, attr);
}

/* Translated anew: the slot that a breakpoint was in last is its own. */
static void change_child(struct perf_event *bp, struct bp_change *change)
{
	if (!WARN_ON_ONCE(bp_parse(bp, change->attr, &change->hw)))
		perf_event_change(bp, &change->core);
}

/**
 * hw_breakpoint_modify - PERF_EVENT_IOC_MODIFY_ATTRIBUTES
 * @event: an event of any PMU that is no child, its ctx->mutex held
 * @attr: what it and its children shall be
 *
 * Return: 0; -EINVAL if @attr is malformed or differs in what cannot be changed;
 * -EOPNOTSUPP if @event is no breakpoint, or for what the hardware cannot do;
 * -EPERM; -ENOSPC if registers of another class are needed and are taken.  If it
 * fails nothing has changed.
 */
int hw_breakpoint_modify(struct perf_event *event, const struct perf_event_attr *attr)
{
	struct bp_change change = { };
	struct perf_event *child;
	int err;

	if (attr->type != event->attr.type)
		return -EINVAL;
	if (attr->type != PERF_TYPE_BREAKPOINT)
		return -EOPNOTSUPP;

	mutex_lock(&event->child_mutex);
	if (!only_changeable_differ(event, attr)) {
		err = -EINVAL;
		goto unlock;
	}
	init_change(&change, event, attr);
	err = check_family(event, attr, &change.hw);
	if (err)
		goto unlock;

	perf_event_change(event, &change.core);
	list_for_each_entry(child, &event->child_list, child_list)
		change_child(child, &change);
unlock:
	mutex_unlock(&event->child_mutex);
	return err;
}

static bool same_changeable(const struct perf_event_attr *a,
			    const struct perf_event_attr *b)
{
	struct perf_event_attr copy = *a;

	copy_changeable(&copy, b);
	return !memcmp(&copy, a, sizeof(copy));
}

/**
 * __hw_breakpoint_follow - make a new child what its family is now
 * @child: an inherited breakpoint, in no context yet
 * @parent: the event it was inherited from, its child_mutex held
 *
 * The family may have been changed since @child was made.  The attributes of
 * @parent change under child_mutex only.  Its translation does not: it says where
 * @parent is armed just now, so @child gets one of its own.
 *
 * Return: 0; -ENOSPC if it takes registers of another class now and there are
 * none left; -EINVAL or -EOPNOTSUPP if what @parent watches cannot be watched
 * any more.
 */
int __hw_breakpoint_follow(struct perf_event *child, const struct perf_event *parent)
{
	struct arch_hw_breakpoint hw = { };
	struct bp_claim_spec spec;
	int err;

	if (same_changeable(&child->attr, &parent->attr))
		return 0;

	err = bp_translate(child, &parent->attr, &hw);
	if (err)
		return err;
	if (!same_registers(&child->attr, &parent->attr)) {
		spec = bp_claim_spec(&parent->attr);
		err = bp_slots_change(&bp_books, &child->bp_claim, &spec);
		if (err)
			return err;
	}
	copy_changeable(&child->attr, &parent->attr);
	child->hw.info = hw;

	return 0;
}

/* ---- For the kernel ---- */

int modify_user_hw_breakpoint(struct perf_event *bp,
			      struct perf_event_attr *attr)
{
	struct perf_event_attr new = bp->attr;
	struct bp_change change = { };
	int err;

	if (attr->config != bp->attr.config)
		return -EINVAL;
	new.bp_addr = attr->bp_addr;
	new.bp_len = attr->bp_len;
	new.bp_type = attr->bp_type;
	new.disabled = attr->disabled;

	init_change(&change, bp, &new);
	err = bp_parse(bp, &new, &change.hw);
	if (err)
		return err;
	err = change_claims(bp, &new);
	if (err)
		return err;

	/* With interrupts off it is one of current, and is changed here and now. */
	if (irqs_disabled())
		perf_event_change(bp, &change.core);
	else
		perf_event_change_unlocked(bp, &change.core);

	return 0;
}
EXPORT_SYMBOL_GPL(modify_user_hw_breakpoint);

/* ---- For the kernel, in any context ---- */

static struct bp_versions *versions_of(const struct perf_event *bp)
{
	return hw_breakpoint_is_flexible(&bp->attr) ? NULL : bp->hw.bp_versions;
}

/* Others may come in between, on this CPU, and change it. */
static void read_version(const struct bp_versions *versions, struct bp_version *v)
{
	unsigned int serial;

	do {
		serial = READ_ONCE(versions->serial);
		barrier();
		*v = versions->version[READ_ONCE(versions->now)];
		barrier();
	} while (serial != READ_ONCE(versions->serial));
}

void bp_current_version(const struct perf_event *bp, struct arch_hw_breakpoint *hw)
{
	struct bp_version v;

	read_version(versions_of(bp), &v);
	*hw = v.hw;
}

void read_wide_hw_breakpoint_local(const struct perf_event *bp,
				   struct hw_breakpoint_range *range)
{
	const struct bp_versions *versions = versions_of(bp);
	struct bp_version v;

	if (WARN_ON_ONCE(!versions)) {
		*range = (struct hw_breakpoint_range) { };
		return;
	}
	read_version(versions, &v);
	*range = v.range;
}
EXPORT_SYMBOL_GPL(read_wide_hw_breakpoint_local);

#ifdef ARCH_HW_BREAKPOINT_REPOINT
static int publish_version(struct bp_versions *versions, const struct bp_version *v)
{
	unsigned int depth = READ_ONCE(versions->depth), i = 2 * depth;

	if (WARN_ON_ONCE(depth >= BP_VERSIONS_DEPTH))
		return -EBUSY;
	WRITE_ONCE(versions->depth, depth + 1);
	barrier();
	if (READ_ONCE(versions->now) == i)
		i++;
	versions->version[i] = *v;
	barrier();
	WRITE_ONCE(versions->now, i);
	WRITE_ONCE(versions->serial, READ_ONCE(versions->serial) + 1);
	barrier();
	WRITE_ONCE(versions->depth, depth);

	return 0;
}

/* Who was interrupted in the middle of it finds that it has to be done again. */
static void attr_follows(struct perf_event *bp, const struct bp_versions *versions)
{
	unsigned int serial;
	struct bp_version v;

	do {
		serial = READ_ONCE(versions->serial);
		read_version(versions, &v);
		WRITE_ONCE(bp->attr.bp_addr, v.range.addr);
		WRITE_ONCE(bp->attr.bp_len, v.range.len);
		WRITE_ONCE(bp->attr.bp_type, v.range.type);
		barrier();
	} while (serial != READ_ONCE(versions->serial));
}

static int repoint(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct bp_versions *versions = versions_of(bp);
	struct bp_version new = {
		.range	= {
			.addr	= attr->bp_addr,
			.len	= attr->bp_len,
			.type	= attr->bp_type,
		},
	};
	int err;

	if (!versions || bp->cpu != raw_smp_processor_id())
		return -EINVAL;
	if (attr->config != bp->attr.config)
		return -EINVAL;
	err = bp_translate(bp, attr, &new.hw);
	if (err)
		return err;
	if (bp->attr.exclude_kernel && arch_check_bp_in_kernelspace(&new.hw))
		return -EINVAL;
	if (!same_registers(&bp->attr, attr))
		return -EINVAL;

	err = publish_version(versions, &new);
	if (err)
		return err;
	attr_follows(bp, versions);
	arch_hw_breakpoint_repoint(bp);
	return 0;
}
#else
static int repoint(struct perf_event *bp, const struct perf_event_attr *attr)
{
	return -EOPNOTSUPP;
}
#endif

int modify_wide_hw_breakpoint_local(struct perf_event *bp,
				    const struct perf_event_attr *attr)
{
	unsigned long flags;
	int err;

	local_irq_save(flags);
	err = repoint(bp, attr);
	local_irq_restore(flags);

	return err;
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_local);
