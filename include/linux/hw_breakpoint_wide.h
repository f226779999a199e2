/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: names and repointing of kernel-wide breakpoints.
 *
 * register_wide_hw_breakpoint() returns a set, one event for each CPU.  What the
 * set watches can be changed while it is armed: by one CPU for itself, or by any CPU
 * for all.
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
 * @name: shown to people who ask for the holders of registers; stays valid until
 *	unregister_wide_hw_breakpoint() has returned
 *
 * Without a name @triggered is shown, which is the same for all breakpoints of a
 * subsystem.
 *
 * Context: As register_wide_hw_breakpoint().
 * Return: Likewise.
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
 * applies the change before it completes.  @bp->attr follows; code that may
 * interrupt a change reads with read_wide_hw_breakpoint_local() instead.
 *
 * Context: Any, NMI and the handler of @bp included; not preemptible.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL for a malformed @attr, for an event of another CPU or of no
 * set, and for a change of the class of registers; -EOPNOTSUPP for what the
 * hardware or the architecture lacks.  On failure nothing has changed.
 */
int modify_wide_hw_breakpoint_local(struct perf_event *bp, const struct perf_event_attr *attr);

/**
 * modify_wide_hw_breakpoint_local_from - repoint a member if it watches an address
 * @bp: as for modify_wide_hw_breakpoint_local()
 * @from: the address that this CPU has to watch now
 * @attr: as for modify_wide_hw_breakpoint_local()
 *
 * The comparison and the change are one step: a change that comes in between, of
 * this CPU or of all, is not lost.
 *
 * Context: As modify_wide_hw_breakpoint_local().
 * Return: Likewise, and -EAGAIN if another address is watched.
 */
int modify_wide_hw_breakpoint_local_from(struct perf_event *bp, unsigned long from,
					 const struct perf_event_attr *attr);

/*
 * Reads what @bp, of this CPU, watches, or is about to watch because the set was
 * repointed; whole also in an NMI. Context: as above.
 */
void read_wide_hw_breakpoint_local(const struct perf_event *bp, struct hw_breakpoint_range *range);

/**
 * modify_wide_hw_breakpoint - repoint a kernel-wide set on all CPUs
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @attr: bp_addr, bp_len and bp_type are looked at, config has to be as it is
 *
 * When it returns, this CPU watches the new range, with the exception that
 * modify_wide_hw_breakpoint_local() names; each other CPU does as soon as it
 * takes an interrupt, and a CPU that comes online watches it from the start.  Of
 * concurrent changes all CPUs end up with the last one.  It overrides what was
 * changed on single CPUs.  Takes no lock, allocates nothing and waits for no CPU.
 *
 * Context: Any, NMI and the handler of the set included.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL for a malformed @attr and for one that would need a register
 * of another class; -EOPNOTSUPP for what the hardware or the architecture cannot
 * do; -EBUSY if more changes interrupt each other than can be told apart. On
 * failure nothing has changed.
 */
int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			      const struct perf_event_attr *attr);

/**
 * modify_wide_hw_breakpoint_from - repoint a set if it watches a given address
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @from: the address that this CPU has to watch now
 * @attr: as for modify_wide_hw_breakpoint()
 *
 * The comparison and the change are one step: a change of all CPUs that comes in
 * between is not lost, nor one of this CPU alone.  What other CPUs were pointed to
 * alone is overridden, as by modify_wide_hw_breakpoint().
 *
 * Context: As modify_wide_hw_breakpoint().
 * Return: Likewise, and -EAGAIN if another address is watched.
 */
int modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
				   unsigned long from,
				   const struct perf_event_attr *attr);

/**
 * wide_hw_breakpoint_is_settled - tell whether a change is done on all CPUs
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * Context: Any.
 * Return: true if each online CPU watches what was newest when this was called,
 * or something newer.
 */
bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events);

/**
 * synchronize_wide_hw_breakpoint - wait until a change is done on all CPUs
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * Context: Interrupts on.
 */
void synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events);

/**
 * hw_breakpoint_holders - name the holders of breakpoint registers
 * @buf: filled with names, separated by blanks; as many as fit
 * @size: size of @buf
 *
 * For messages about -ENOSPC: the name or handler of a breakpoint of the kernel,
 * else perf or ptrace and a process.  Empty without CONFIG_DEBUG_FS.
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
