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
 * bp_claim_spec - the registers that a breakpoint needs
 * @attr: its attributes, which bp_parse() has accepted
 */
struct bp_claim_spec bp_claim_spec(const struct perf_event_attr *attr);

/**
 * bp_wide_adopt - take over a claim that a kernel-wide set holds for an event
 * @bp: an event that is being created
 *
 * Return: true if @bp belongs to a set. It has the claim now, if the set had.
 */
bool bp_wide_adopt(struct perf_event *bp);

#endif /* _KERNEL_EVENTS_BP_INTERNAL_H */
