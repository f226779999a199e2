/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces between the files of the breakpoint layer.  Each file calls only files
 * that are listed above it; perf core calls the layer through the methods of its PMU,
 * and init_hw_breakpoint() at boot:
 *
 *  bp_slots.c		accounting of claims; uses neither perf nor the hardware
 *  sigtrap.c		sends a signal for each hit
 *  core.c		perf core, with ring_buffer.c and callchain.c
 *  process.c		events of a whole process; perf core and this file call each other
 *  text_poke.c		records changes of kernel text
 *  bp_hit.c		counts and samples hits; called by the architecture
 *  bp_attr.c		checks attributes; has the accounting of this machine
 *  bp_multiplex.c	assigns registers when perf schedules breakpoints
 *  bp_repoint.c	repoints one member of a kernel-wide set
 *  bp_repoint_wide.c	repoints a kernel-wide set on all CPUs
 *  bp_modify.c		modifies breakpoints in place
 *  hw_breakpoint.c	the PMU
 *  bp_wide.c		kernel-wide sets
 *  bp_debugfs.c	lists all claims
 */
#ifndef _KERNEL_EVENTS_BP_INTERNAL_H
#define _KERNEL_EVENTS_BP_INTERNAL_H

#include <linux/hw_breakpoint_arch.h>
#include <linux/perf_event.h>

#include "bp_slots.h"

/* The accounting of the breakpoint registers of this machine */
extern struct bp_slots bp_machine;

/* ---- bp_attr.c ---- */

/**
 * bp_parse - check attributes and translate them for the architecture
 * @bp: the event that the attributes are for
 * @attr: the attributes
 * @hw: the translation
 *
 * Changes nothing but @hw.
 *
 * Context: Process context.
 * Return: 0; -EINVAL for invalid attributes; -EOPNOTSUPP if the hardware does not
 * support them; -EPERM for a kernel address without the capability.
 */
int bp_parse(struct perf_event *bp, const struct perf_event_attr *attr,
	     struct arch_hw_breakpoint *hw);

/**
 * bp_parse_again - bp_parse() of new attributes for an event that has been translated
 * @bp: the event, not a member of a kernel-wide set; bp->hw.info is the translation
 *	of bp->attr
 * @attr: its new attributes, which differ in bp_addr, bp_len, bp_type, sig_data and
 *	disabled only
 * @hw: the translation
 *
 * If type and length stay, only the address is checked.
 *
 * Context: As bp_parse(). The attributes of @bp do not change.
 * Return: as bp_parse().
 */
int bp_parse_again(struct perf_event *bp, const struct perf_event_attr *attr,
		   struct arch_hw_breakpoint *hw);

/**
 * bp_translate - bp_parse() without its check of privileges
 * @bp: the event that the attributes are for
 * @attr: the attributes
 * @hw: the translation
 *
 * Changes nothing but @hw.
 *
 * Context: Any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int bp_translate(struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw);

static inline bool hw_breakpoint_is_flexible(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_FLEXIBLE;
}

static inline bool hw_breakpoint_is_process(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_PROCESS;
}

static inline enum bp_type_idx bp_class(const struct perf_event_attr *attr)
{
	return attr->bp_type & HW_BREAKPOINT_RW ? TYPE_DATA : TYPE_INST;
}

/**
 * bp_claim_spec - compute the registers that a breakpoint needs
 * @attr: its attributes, which bp_parse() has accepted
 *
 * Return: the request for bp_slots_reserve().
 */
static inline struct bp_claim_spec bp_claim_spec(const struct perf_event_attr *attr)
{
	return (struct bp_claim_spec) {
		.class		= bp_class(attr),
		.weight		= hw_breakpoint_weight(attr),
		.flexible	= hw_breakpoint_is_flexible(attr),
	};
}

/* Returns true if breakpoints with @a and @b need the same class and number of registers. */
static inline bool bp_same_registers(const struct perf_event_attr *a,
				     const struct perf_event_attr *b)
{
	return bp_class(a) == bp_class(b) &&
	       hw_breakpoint_weight(a) == hw_breakpoint_weight(b);
}

/* ---- bp_multiplex.c ---- */

/**
 * bp_sched_in - assign a register of this CPU to a breakpoint
 * @bp: the breakpoint, which perf schedules in
 *
 * Evicts flexible breakpoints if needed: for a guaranteed @bp any of them, for
 * a flexible @bp those of rotation groups with a lower priority.
 *
 * Context: Interrupts off, all perf contexts that are scheduled on this CPU locked.
 * Return: 0; -ENOSPC if a flexible @bp has to wait for a register; an error of
 * arch_install_hw_breakpoint().
 */
int bp_sched_in(struct perf_event *bp);

/**
 * bp_sched_out - free the register of a breakpoint
 * @bp: the breakpoint, which perf schedules out
 *
 * Context: Interrupts off, the perf context of @bp locked.
 */
void bp_sched_out(struct perf_event *bp);

/**
 * bp_debugger_holds - take registers for kernel debuggers, or give them back
 * @class: class of the registers
 * @nr: number of registers more that debuggers hold on every CPU; negative: fewer
 *
 * From then on bp_sched_in() leaves them free.
 *
 * Context: Any.
 */
void bp_debugger_holds(unsigned int class, int nr);

/**
 * bp_multiplex_init - initialize the lists of flexible breakpoints
 *
 * Context: Boot.
 */
void bp_multiplex_init(void);

/* ---- bp_modify.c ---- */

/**
 * bp_modify - PERF_EVENT_IOC_MODIFY_ATTRIBUTES
 * @event: a breakpoint that is not inherited
 * @attr: new attributes of @event and its children
 *
 * On failure nothing has changed.
 *
 * Context: Process context, ctx->mutex of @event held.
 * Return: 0; -EINVAL if @attr is invalid or differs in an attribute that cannot be
 * changed; -EOPNOTSUPP if the hardware does not support @attr; -EPERM for a kernel
 * address without the capability; -ENOSPC if no register of another class that is
 * needed is available.
 */
int bp_modify(struct perf_event *event, const struct perf_event_attr *attr);

/**
 * bp_follow - give a new child the current attributes of its parent
 * @child: an inherited breakpoint, in no context and without a claim
 * @parent: the event that @child was inherited from
 *
 * bp_modify() may have changed @parent since the attributes of @child were
 * copied.
 *
 * Context: Process context, child_mutex of @parent held.
 * Return: 0; -EINVAL or -EOPNOTSUPP if the attributes of @parent are no longer
 * supported.
 */
int bp_follow(struct perf_event *child, const struct perf_event *parent);

/* ---- hw_breakpoint.c ---- */

/**
 * hw_breakpoint_is_used - check whether any register is claimed
 *
 * Context: Any; takes no lock.
 * Return: true if at least one claim is held.
 */
bool hw_breakpoint_is_used(void);

/**
 * bp_create_wide_event - create an event of a kernel-wide set
 * @attr: its attributes
 * @cpu: its CPU
 * @triggered: handler of the hits
 * @context: for @triggered
 *
 * The claim of the set covers the event, which gets none of its own.
 *
 * Context: Process context, may sleep; the caller serializes calls.
 * Return: the event or ERR_PTR().
 */
struct perf_event *bp_create_wide_event(struct perf_event_attr *attr, int cpu,
					perf_overflow_handler_t triggered, void *context);

/**
 * bp_is_wide - check whether an event belongs to a kernel-wide set
 * @bp: a breakpoint
 *
 * Only the members of a set have versions. In a flexible breakpoint another
 * field has the place of hw.bp_versions.
 *
 * Return: true if the claim of a set covers @bp.
 */
static inline bool bp_is_wide(const struct perf_event *bp)
{
	return !hw_breakpoint_is_flexible(&bp->attr) && bp->hw.bp_versions;
}

/**
 * bp_has_claim - check whether a claim covers a breakpoint
 * @bp: a breakpoint
 *
 * Return: true for a claim of its own, and for that of its kernel-wide set or of its
 * family of events of a process.
 */
static inline bool bp_has_claim(const struct perf_event *bp)
{
	return READ_ONCE(bp->bp_claim.held) || bp_is_wide(bp) || bp->process;
}

#endif /* _KERNEL_EVENTS_BP_INTERNAL_H */
