/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the breakpoint layer.
 */
#ifndef _KERNEL_EVENTS_BP_INTERNAL_H
#define _KERNEL_EVENTS_BP_INTERNAL_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "bp_slots.h"

/* The registers of this machine. */
extern struct bp_slots bp_books;

/**
 * bp_parse - check attributes and translate them for the architecture
 * @bp: the event they are for
 * @attr: the attributes
 * @hw: filled in
 *
 * Changes nothing but @hw.
 *
 * Context: Process context.
 * Return: 0, -EINVAL, -EOPNOTSUPP or -EPERM.
 */
int bp_parse(struct perf_event *bp, const struct perf_event_attr *attr,
	     struct arch_hw_breakpoint *hw);

/**
 * bp_translate - the part of bp_parse() that asks for no privilege
 * @bp: the event they are for
 * @attr: the attributes
 * @hw: filled in
 *
 * Changes nothing but @hw.
 *
 * Context: Any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int bp_translate(struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw);

/**
 * struct bp_version - what a member of a kernel-wide set watches
 * @range: for those who read it
 * @hw: for the architecture; without what it keeps there itself
 */
struct bp_version {
	struct hw_breakpoint_range	range;
	struct arch_hw_breakpoint	hw;
};

/* Task, softirq, interrupt, #DB, NMI, #DB, and some more */
#define BP_VERSIONS_DEPTH	8

/**
 * struct bp_versions - what a member of a kernel-wide set watches, and did before
 * @serial: changes with each version
 * @now: the version that counts
 * @depth: how many are changing it, each in the middle of what the one before does
 * @version: two for each depth
 *
 * Belongs to the CPU of the event.  Who changes it fills in one of the two of its
 * own depth, which nobody else writes, and not the one that counts.
 */
struct bp_versions {
	unsigned int		serial;
	unsigned int		now;
	unsigned int		depth;
	struct bp_version	version[2 * BP_VERSIONS_DEPTH];
};

#ifndef hw_breakpoint_weight
#define hw_breakpoint_weight(attr)	1
#endif

static inline enum bp_type_idx bp_class(const struct perf_event_attr *attr)
{
	return attr->bp_type & HW_BREAKPOINT_RW ? TYPE_DATA : TYPE_INST;
}

/**
 * bp_claim_spec - the registers that a breakpoint needs
 * @attr: its attributes, which bp_parse() has accepted
 */
static inline struct bp_claim_spec bp_claim_spec(const struct perf_event_attr *attr)
{
	return (struct bp_claim_spec) {
		.class		= bp_class(attr),
		.weight		= hw_breakpoint_weight(attr),
		.flexible	= hw_breakpoint_is_flexible(attr),
	};
}

/**
 * bp_give_register - arm a breakpoint in a register of this CPU
 * @bp: the breakpoint, which perf schedules in
 *
 * For a guaranteed breakpoint a flexible one is scheduled out where need be, for
 * a flexible one another that is to have its turn later.
 *
 * Context: Interrupts off, both perf contexts of this CPU locked.
 * Return: 0, or -ENOSPC if it is not the turn of @bp.
 */
int bp_give_register(struct perf_event *bp);

/**
 * bp_take_register_back - disarm a breakpoint
 * @bp: the breakpoint, which perf schedules out
 *
 * Context: Interrupts off, the perf context of @bp locked.
 */
void bp_take_register_back(struct perf_event *bp);

/**
 * bp_turns_init - prepare to give registers out
 */
void bp_turns_init(void);

/**
 * bp_wide_adopt - take over a claim that a kernel-wide set holds for an event
 * @bp: an event that is being created
 *
 * Return: true if @bp belongs to a set. It has the claim now, if the set had.
 */
bool bp_wide_adopt(struct perf_event *bp);

#endif /* _KERNEL_EVENTS_BP_INTERNAL_H */
