/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: the in-kernel API.
 *
 * A breakpoint is a perf event of type PERF_TYPE_BREAKPOINT.  It watches one
 * address range (attr.bp_addr, attr.bp_len, attr.bp_type) either for one task,
 * on each CPU that the task runs on, or on every CPU, for all tasks.
 * Registration claims a debug register on each of these CPUs and fails if none
 * is available.  Flexible breakpoints are multiplexed instead; see
 * HW_BREAKPOINT_FLEXIBLE.  <linux/hw_breakpoint_wide.h> repoints breakpoints
 * that are armed on every CPU.
 */
#ifndef _LINUX_HW_BREAKPOINT_H
#define _LINUX_HW_BREAKPOINT_H

#include <linux/perf_event.h>
#include <uapi/linux/hw_breakpoint.h>

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

/* Like hw_breakpoint_init(), but only accesses in user mode are hits. */
static inline void ptrace_breakpoint_init(struct perf_event_attr *attr)
{
	hw_breakpoint_init(attr);
	attr->exclude_kernel = 1;
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
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
 * The caller serializes changes of @bp.  On failure @bp is unchanged.  @bp is not a
 * member of a kernel-wide set: modify_wide_hw_breakpoint() changes those.
 *
 * Context: Process context; with interrupts off only to disable a breakpoint of
 * the current task, not of its process.
 * Return: 0; -EINVAL for a malformed @attr or another config, -EOPNOTSUPP if
 * the hardware does not support @attr, -EPERM for a kernel address without
 * CAP_SYS_ADMIN, -ENOSPC if a register of another class is needed and none is
 * available.
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
 * register_wide_hw_breakpoint - watch an address on every CPU
 * @attr: what to watch; see hw_breakpoint_init(). Not HW_BREAKPOINT_FLEXIBLE
 * @triggered: called at each hit, in exception context with interrupts off
 * @context: for @triggered, in event->overflow_handler_context
 *
 * Claims a register on all possible CPUs or fails; if it fails, no handler has
 * run.  A CPU that comes online later watches the range as well.
 *
 * Context: Process context, may sleep; not under cpus_read_lock().
 * Return: one event for each online CPU (NULL for the others), or ERR_PTR()
 * with the errors of register_user_hw_breakpoint().
 */
struct perf_event * __percpu *
register_wide_hw_breakpoint(struct perf_event_attr *attr, perf_overflow_handler_t triggered,
			    void *context);

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
register_wide_hw_breakpoint(struct perf_event_attr *attr, perf_overflow_handler_t triggered,
			    void *context) { return NULL; }
static inline void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events) { }
static inline void flush_ptrace_hw_breakpoint(struct task_struct *tsk) { }
#endif
#endif /* _LINUX_HW_BREAKPOINT_H */
