/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: names and repointing of kernel-wide breakpoints.
 *
 * register_wide_hw_breakpoint() returns a set: one event for each CPU.  The
 * range that the set watches can be changed (repointed) while the set is armed:
 * by one CPU for itself, or by any CPU for all CPUs.
 */
#ifndef _LINUX_HW_BREAKPOINT_WIDE_H
#define _LINUX_HW_BREAKPOINT_WIDE_H

#include <linux/hw_breakpoint.h>

/**
 * struct hw_breakpoint_range - what a breakpoint watches
 * @addr: address
 * @len: length, in bytes
 * @type: HW_BREAKPOINT_*
 */
struct hw_breakpoint_range {
	unsigned long	addr;
	unsigned long	len;
	u32		type;
};

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/**
 * register_named_wide_hw_breakpoint - register_wide_hw_breakpoint() with a name
 * @attr: what to watch
 * @triggered: called at each hit
 * @context: for @triggered
 * @name: name of the set in debugfs and in hw_breakpoint_holders(); must stay
 *	valid until unregister_wide_hw_breakpoint() has returned
 *
 * For a set without a name the symbol of @triggered is shown, which is often
 * the same for all breakpoints of a subsystem.
 *
 * Context: As register_wide_hw_breakpoint().
 * Return: As register_wide_hw_breakpoint().
 */
struct perf_event * __percpu *
register_named_wide_hw_breakpoint(struct perf_event_attr *attr,
				  perf_overflow_handler_t triggered, void *context,
				  const char *name);

/**
 * modify_wide_hw_breakpoint_local - repoint this CPU's member of a kernel-wide set
 * @bp: the event of this CPU, one of those that register_wide_hw_breakpoint() returned
 * @attr: bp_addr, bp_len and bp_type are used; config must not change
 *
 * The members on other CPUs, also on CPUs that come online later, do not change.
 * Takes no lock and allocates nothing.  On return the registers are updated; or,
 * if the caller interrupted an update of registers of this CPU, that update
 * applies the change before it completes.  @bp->attr is updated too, but not
 * atomically: code that may interrupt a change uses
 * read_wide_hw_breakpoint_local() instead.
 *
 * Context: Any, NMI and the handler of @bp included; not preemptible.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL for a malformed @attr, for an event of another CPU or of
 * no set, and for a change of the class of registers; -EOPNOTSUPP if the
 * hardware or the architecture does not support the change; -EBUSY if more than
 * BP_VERSIONS_DEPTH changes on this CPU interrupt each other.  On failure
 * nothing has changed.
 */
int modify_wide_hw_breakpoint_local(struct perf_event *bp, const struct perf_event_attr *attr);

/**
 * modify_wide_hw_breakpoint_local_from - repoint a member if it watches an address
 * @bp: as for modify_wide_hw_breakpoint_local()
 * @from: address that this CPU must watch, or nothing changes
 * @attr: as for modify_wide_hw_breakpoint_local()
 *
 * Comparison and change are one atomic step: a concurrent change, of this CPU
 * alone or of all CPUs, is not overwritten.
 *
 * Context: As modify_wide_hw_breakpoint_local().
 * Return: As modify_wide_hw_breakpoint_local(), and -EAGAIN if this CPU watches
 * another address.
 */
int modify_wide_hw_breakpoint_local_from(struct perf_event *bp, unsigned long from,
					 const struct perf_event_attr *attr);

/**
 * read_wide_hw_breakpoint_local - read what this CPU's member of a set watches
 * @bp: as for modify_wide_hw_breakpoint_local()
 * @range: filled in; all zeros if @bp belongs to no set
 *
 * If the whole set was repointed and this CPU is still about to follow, reads
 * the new range.  Never mixes two ranges, not even in an NMI that interrupts a
 * change.
 *
 * Context: As modify_wide_hw_breakpoint_local().
 */
void read_wide_hw_breakpoint_local(const struct perf_event *bp, struct hw_breakpoint_range *range);

/**
 * modify_wide_hw_breakpoint - repoint a kernel-wide set on all CPUs
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @attr: bp_addr, bp_len and bp_type are used; config must not change
 *
 * On return this CPU watches the new range, unless the caller interrupted an
 * update of its registers; see modify_wide_hw_breakpoint_local().  Each other
 * CPU watches it as soon as the CPU takes an interrupt, which comes up to a tick
 * later if interrupts or NMIs repoint the set often.  A CPU that comes online
 * watches it from the start.  After concurrent changes all CPUs watch the range of
 * the last one.  The change overrides earlier ones of single CPUs.  Takes no lock,
 * allocates nothing and waits for no CPU.
 *
 * Context: Any, NMI and the handler of the set included.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL for a malformed @attr and for one that would need a register
 * of another class; -EOPNOTSUPP if the hardware or the architecture does not
 * support the change; -EBUSY if more than BP_VERSIONS_DEPTH changes on this CPU
 * interrupt each other.  On failure nothing has changed.
 */
int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			      const struct perf_event_attr *attr);

/**
 * modify_wide_hw_breakpoint_from - repoint a set if it watches a given address
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @from: address that this CPU must watch, or nothing changes
 * @attr: as for modify_wide_hw_breakpoint()
 *
 * Comparison and change are one atomic step: a concurrent change of all CPUs,
 * or of this CPU alone, is not overwritten.  Changes of single other CPUs are
 * overridden, as by modify_wide_hw_breakpoint().
 *
 * Context: As modify_wide_hw_breakpoint().
 * Return: As modify_wide_hw_breakpoint(), and -EAGAIN if this CPU watches
 * another address.
 */
int modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
				   unsigned long from,
				   const struct perf_event_attr *attr);

/**
 * wide_hw_breakpoint_is_settled - check whether all CPUs have followed a change
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * Context: Any.
 * Return: true if each online CPU has adopted the last
 * modify_wide_hw_breakpoint() before this call, or a later one.
 */
bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events);

/**
 * synchronize_wide_hw_breakpoint - wait until all CPUs have followed a change
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * Context: Interrupts on; waits for IPIs to all CPUs.
 */
void synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events);

/**
 * hw_breakpoint_holders - list the holders of breakpoint claims by name
 * @buf: filled with as many names as fit, separated by blanks
 * @size: size of @buf in bytes, at least 1
 *
 * For messages about -ENOSPC.  The name is that of a kernel-wide set or the
 * handler of a breakpoint of the kernel, else "perf" or "ptrace" with the ID of
 * a process.  @buf is empty without CONFIG_DEBUG_FS.
 *
 * Context: Process context.
 */
#ifdef CONFIG_DEBUG_FS
void hw_breakpoint_holders(char *buf, size_t size);
#else
static inline void hw_breakpoint_holders(char *buf, size_t size) { *buf = '\0'; }
#endif
#else
static inline int
modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			  const struct perf_event_attr *attr) { return -ENOSYS; }
static inline int
modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
			       unsigned long from,
			       const struct perf_event_attr *attr) { return -ENOSYS; }
static inline bool
wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events) { return true; }
static inline void
synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events) { }
#endif

#endif /* _LINUX_HW_BREAKPOINT_WIDE_H */
