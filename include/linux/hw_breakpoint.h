/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: the in-kernel API.
 *
 * A breakpoint is a perf event of type PERF_TYPE_BREAKPOINT.  It watches one
 * address range (attr.bp_addr, attr.bp_len, attr.bp_type) either for one task,
 * on each CPU that the task runs on, or on every CPU, for all tasks.
 * Registration claims a debug register on each of these CPUs and fails if none
 * is available.  Flexible breakpoints are multiplexed instead; see
 * HW_BREAKPOINT_FLEXIBLE.
 *
 * register_wide_hw_breakpoint() returns a set: one event for each CPU.  The address that
 * the set watches can be changed (repointed) in any context while the set is armed: by
 * one CPU for itself, or by any CPU for all CPUs.
 */
#ifndef _LINUX_HW_BREAKPOINT_H
#define _LINUX_HW_BREAKPOINT_H

#include <linux/perf_event.h>
#include <uapi/linux/hw_breakpoint.h>

/**
 * enum bp_type_idx - classes of debug registers
 * @TYPE_INST: registers that take instruction breakpoints
 * @TYPE_DATA: registers that take data breakpoints (watchpoints)
 * @TYPE_MAX: number of classes
 *
 * If each register takes both types, there is only one class.
 */
enum bp_type_idx {
	TYPE_INST = 0,
	TYPE_DATA = IS_ENABLED(CONFIG_HAVE_MIXED_BREAKPOINTS_REGS) ? 0 : 1,
	TYPE_MAX
};

/**
 * hw_breakpoint_init - prepare the attributes of an in-kernel breakpoint
 * @attr: attributes to fill
 *
 * Sets up a breakpoint that calls its handler at each hit.  The caller adds
 * bp_addr, bp_len and bp_type.
 */
static inline void hw_breakpoint_init(struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr) {
		.type		= PERF_TYPE_BREAKPOINT,
		.size		= sizeof(*attr),
		.pinned		= 1,
		.sample_period	= 1,
	};
}

/*
 * Like hw_breakpoint_init(), but only accesses in user mode are hits.  Such a breakpoint of
 * a task is listed as one of ptrace.
 */
static inline void ptrace_breakpoint_init(struct perf_event_attr *attr)
{
	hw_breakpoint_init(attr);
	attr->exclude_kernel = 1;
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/**
 * hw_breakpoint_values - the object before and after the access that was hit
 * @data: argument of the handler of a breakpoint
 *
 * Context: The handler of a breakpoint with HW_BREAKPOINT_VALUE in attr.config and
 * PERF_SAMPLE_RAW in attr.sample_type.
 * Return: the values; NULL without these bits.
 */
static inline const struct hw_breakpoint_values *
hw_breakpoint_values(const struct perf_sample_data *data)
{
	return data->sample_flags & PERF_SAMPLE_RAW ? data->raw->frag.data : NULL;
}

/**
 * check_hw_breakpoint - check whether the kernel could register a breakpoint
 * @attr: what to watch; see hw_breakpoint_init()
 *
 * Claims nothing, and does not check whether a register is available.
 *
 * Context: Any.
 * Return: 0; -EINVAL for a malformed @attr and for an address that must not be watched;
 * -EOPNOTSUPP if the hardware does not support @attr.
 */
int check_hw_breakpoint(const struct perf_event_attr *attr);

/**
 * register_user_hw_breakpoint - watch an address for one task
 * @attr: what to watch; see hw_breakpoint_init(), ptrace_breakpoint_init()
 * @triggered: called at each hit, in exception context with interrupts off
 * @context: for @triggered, in event->overflow_handler_context
 * @tsk: the task
 *
 * With HW_BREAKPOINT_PROCESS in attr.config the breakpoint is for all threads of the
 * process of @tsk.  @triggered is then called with an event of the CPU that was hit,
 * whose overflow_handler_context is @context too; it may run on several CPUs at a time.
 * perf_event_enable(), perf_event_disable() and perf_event_disable_inatomic() act on
 * all CPUs; perf_event_pause() is not supported.
 *
 * Context: Process context, may sleep.
 * Return: the breakpoint, or ERR_PTR(): -EINVAL for a malformed @attr,
 * -EOPNOTSUPP if the hardware does not support @attr, -EPERM for a kernel
 * address without CAP_SYS_ADMIN, -ENOSPC if on some CPU no register is
 * available for @tsk (all flexible breakpoints there share one), -ESRCH if @tsk
 * has exited, -ENOMEM.
 */
struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr, perf_overflow_handler_t triggered,
			    void *context, struct task_struct *tsk);

/**
 * modify_user_hw_breakpoint - change a task's breakpoint
 * @bp: the breakpoint
 * @attr: bp_addr, bp_len, bp_type and disabled are used; config must not change
 *
 * The caller serializes changes of @bp.  Breakpoints that were inherited from @bp change,
 * too.  On failure nothing has changed.  @bp is not a member of a kernel-wide set:
 * modify_wide_hw_breakpoint() repoints those.
 *
 * Context: Process context; with interrupts off only to disable a breakpoint of
 * the current task, not of its process.
 * Return: 0; -EINVAL for a malformed @attr or another config, -EOPNOTSUPP if
 * the hardware does not support @attr, -EPERM for a kernel address without
 * CAP_SYS_ADMIN, -ENOSPC if more registers or those of another class are needed and
 * too few are available, -ENOMEM for a breakpoint with values.
 */
int modify_user_hw_breakpoint(struct perf_event *bp, struct perf_event_attr *attr);

/**
 * unregister_hw_breakpoint - remove a breakpoint of a task or of a CPU
 * @bp: the breakpoint; NULL is ignored
 *
 * No handler of @bp runs after the return.
 *
 * Context: Process context, may sleep.
 */
void unregister_hw_breakpoint(struct perf_event *bp);

/**
 * register_named_wide_hw_breakpoint - watch an address on every CPU
 * @attr: what to watch; see hw_breakpoint_init(). Not HW_BREAKPOINT_FLEXIBLE
 * @triggered: called at each hit, in exception context with interrupts off
 * @context: for @triggered, in event->overflow_handler_context
 * @name: name of the set in debugfs and in hw_breakpoint_holders(); must stay
 *	valid until unregister_wide_hw_breakpoint() has returned. NULL: the symbol of
 *	@triggered is shown, which is often the same for all breakpoints of a subsystem
 *
 * Claims registers on all possible CPUs or fails; if it fails, no handler has
 * run.  A CPU that comes online later watches the range as well.
 *
 * Context: Process context, may sleep; not under cpus_read_lock().
 * Return: one event for each online CPU (NULL for the others), or ERR_PTR()
 * with the errors of register_user_hw_breakpoint().
 */
struct perf_event * __percpu *
register_named_wide_hw_breakpoint(struct perf_event_attr *attr,
				  perf_overflow_handler_t triggered, void *context,
				  const char *name);

/**
 * unregister_wide_hw_breakpoint - remove a kernel-wide breakpoint
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * No handler of the breakpoint runs after the return.
 *
 * Context: Process context, may sleep; not under cpus_read_lock().
 */
void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events);

/**
 * modify_wide_hw_breakpoint - repoint a kernel-wide set on all CPUs
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @addr: the new address; type and length stay
 * @from: NULL, or the address that this CPU must watch, or nothing changes
 *
 * On return this CPU watches the new address, unless the caller interrupted an
 * update of its registers: that update applies the change before it completes.  Each
 * other CPU watches it as soon as the CPU takes an interrupt, which comes up to a tick
 * later if interrupts or NMIs repoint the set often.  A CPU that comes online watches it
 * from the start.  After concurrent changes all CPUs watch the address of the last one.
 * The change overrides earlier ones of single CPUs.  Takes no lock, allocates nothing and
 * waits for no CPU.
 *
 * With @from, comparison and change are one atomic step: a concurrent change of all CPUs,
 * or of this CPU alone, is not overwritten.  One exception: if this CPU was repointed
 * alone, a change that another CPU is just making may be overwritten, and so may two
 * changes of which the second one sets the former address of the set again.
 *
 * Context: Any, NMI and the handler of the set included.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL if @addr must not be watched, or if the set would need another number
 * of registers there, as for an address that is not aligned; -EOPNOTSUPP if the
 * architecture cannot repoint breakpoints; -EAGAIN if this CPU does not watch *@from; -EBUSY
 * after 10000 changes on this CPU, if it could not take an interrupt meanwhile.  On failure
 * nothing has changed.
 */
int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events, unsigned long addr,
			      const unsigned long *from);

/**
 * modify_wide_hw_breakpoint_local - repoint a kernel-wide set on this CPU
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @addr: the new address; type and length stay
 * @from: NULL, or the address that this CPU must watch, or nothing changes
 *
 * Other CPUs, also CPUs that come online later, are not affected.  The CPU watches the
 * address until the set is repointed on all CPUs.  Takes no lock and allocates nothing.
 *
 * Context: As modify_wide_hw_breakpoint(); not preemptible.
 * Return: As modify_wide_hw_breakpoint(); -ENODEV if this CPU has no event, because it
 * is going offline; -EBUSY also if more than BP_WIDE_DEPTH changes on this CPU interrupt
 * each other.
 */
int modify_wide_hw_breakpoint_local(struct perf_event * __percpu *cpu_events,
				    unsigned long addr, const unsigned long *from);

/**
 * wide_hw_breakpoint_addr - read the address that a kernel-wide set watches
 * @cpu_events: what register_wide_hw_breakpoint() returned
 * @here: on this CPU; else the address to which the whole set was repointed last
 *
 * If the whole set was repointed and this CPU is still about to follow, reads
 * the new address.
 *
 * Context: Any; not preemptible with @here.
 * Return: the address.
 */
unsigned long wide_hw_breakpoint_addr(struct perf_event * __percpu *cpu_events, bool here);

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
 * hw_breakpoint_is_used - check whether any register is claimed
 *
 * Context: Any; takes no lock.
 * Return: true if at least one claim is held.
 */
bool hw_breakpoint_is_used(void);

/**
 * hw_breakpoint_holders - list the holders of breakpoint claims by name
 * @buf: filled with as many names as fit, separated by blanks
 * @size: size of @buf in bytes, at least 1
 *
 * For messages about -ENOSPC.  The name is that of a kernel-wide set or the
 * handler of a breakpoint of the kernel, else "perf", "ptrace" or "kgdb" with the
 * ID of the process, unless that has exited.  @buf is empty without CONFIG_DEBUG_FS.
 *
 * Context: Process context.
 */
#ifdef CONFIG_DEBUG_FS
void hw_breakpoint_holders(char *buf, size_t size);
#else
static inline void hw_breakpoint_holders(char *buf, size_t size) { *buf = '\0'; }
#endif

/**
 * flush_ptrace_hw_breakpoint - remove the breakpoints that ptrace has set
 * @tsk: current, at exec or exit
 *
 * Context: Process context, may sleep.
 */
void flush_ptrace_hw_breakpoint(struct task_struct *tsk);
#else
static inline struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr, perf_overflow_handler_t triggered,
			    void *context, struct task_struct *tsk) { return NULL; }
static inline int
modify_user_hw_breakpoint(struct perf_event *bp, struct perf_event_attr *attr) { return -ENOSYS; }
static inline void unregister_hw_breakpoint(struct perf_event *bp) { }
static inline struct perf_event * __percpu *
register_named_wide_hw_breakpoint(struct perf_event_attr *attr,
				  perf_overflow_handler_t triggered, void *context,
				  const char *name) { return NULL; }
static inline void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events) { }
static inline void flush_ptrace_hw_breakpoint(struct task_struct *tsk) { }
#endif

/* register_named_wide_hw_breakpoint() without a name */
static inline struct perf_event * __percpu *
register_wide_hw_breakpoint(struct perf_event_attr *attr, perf_overflow_handler_t triggered,
			    void *context)
{
	return register_named_wide_hw_breakpoint(attr, triggered, context, NULL);
}
#endif /* _LINUX_HW_BREAKPOINT_H */
