/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: fast changes of the watched address.
 *
 * For clients that change breakpoints often: a tracer that follows a variable, a
 * debugger that moves a watchpoint.  A range for a kernel-wide set can be checked and
 * translated once (prepared) and then be used any number of times, in any context.
 * Other clients use <linux/hw_breakpoint.h> and <linux/hw_breakpoint_wide.h>.
 */
#ifndef _LINUX_HW_BREAKPOINT_MOVE_H
#define _LINUX_HW_BREAKPOINT_MOVE_H

#include <linux/hw_breakpoint_wide.h>

#ifdef CONFIG_HAVE_HW_BREAKPOINT

#include <asm/hw_breakpoint.h>

/**
 * struct bp_version - what a member of a kernel-wide set watches
 * @range: watched range
 * @hw: translation of @range; fields in which the architecture keeps the state
 *	of an installed breakpoint are not valid
 * @base: serial of the newest version of the whole set when this version was
 *	made
 */
struct bp_version {
	struct hw_breakpoint_range	range;
	struct arch_hw_breakpoint	hw;
	u64				base;
};

/**
 * bp_wide_prepare - check and translate what a kernel-wide set is to watch
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @attr: attributes, as for modify_wide_hw_breakpoint()
 * @v: for bp_wide_repoint() of this set, any number of times
 *
 * Context: Any.
 * Return: as modify_wide_hw_breakpoint().
 */
int bp_wide_prepare(struct perf_event * __percpu *cpu_events,
		    const struct perf_event_attr *attr, struct bp_version *v);

/**
 * bp_wide_prepare_at - check and translate a range like another
 * @cpu_events: a set
 * @like: what bp_wide_prepare() made for this set
 * @addr: address of the range, which has type and length of @like
 * @v: for bp_wide_repoint() of this set
 *
 * Context: Any.
 * Return: as bp_wide_prepare().
 */
int bp_wide_prepare_at(struct perf_event * __percpu *cpu_events,
		       const struct bp_version *like, unsigned long addr,
		       struct bp_version *v);

/**
 * bp_wide_repoint - modify_wide_hw_breakpoint() with a range that has been prepared
 * @cpu_events: the set for which @v was prepared
 * @v: the range
 * @from: NULL, or the address that this CPU has to watch now
 *
 * Context: As modify_wide_hw_breakpoint().
 * Return: 0; -EAGAIN if this CPU does not watch @from; -EOPNOTSUPP.
 */
int bp_wide_repoint(struct perf_event * __percpu *cpu_events, const struct bp_version *v,
		    const unsigned long *from);

/**
 * bp_wide_repoint_local - modify_wide_hw_breakpoint_local() with a prepared range
 * @cpu_events: the set for which @v was prepared
 * @v: the range
 * @from: as for bp_wide_repoint()
 *
 * Context: As modify_wide_hw_breakpoint_local().
 * Return: as bp_wide_repoint(); -ENODEV if this CPU has no event, because it is going
 * offline.
 */
int bp_wide_repoint_local(struct perf_event * __percpu *cpu_events,
			  const struct bp_version *v, const unsigned long *from);

/**
 * bp_wide_addr_here - read the address that this CPU watches, or is about to
 * @cpu_events: a set
 *
 * Context: Any; not preemptible.
 * Return: the address.
 */
unsigned long bp_wide_addr_here(struct perf_event * __percpu *cpu_events);

/**
 * bp_wide_newest_addr - read the address to which a whole set was pointed last
 * @cpu_events: a set
 *
 * Context: Any.
 * Return: the address.
 */
unsigned long bp_wide_newest_addr(struct perf_event * __percpu *cpu_events);

#endif /* CONFIG_HAVE_HW_BREAKPOINT */

#endif /* _LINUX_HW_BREAKPOINT_MOVE_H */
