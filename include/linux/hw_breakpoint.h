/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: the in-kernel API.
 *
 * A breakpoint is a perf event of type PERF_TYPE_BREAKPOINT.  It watches one
 * address range (attr.bp_addr, attr.bp_len, attr.bp_type) either for one task,
 * wherever it runs, or on every CPU, whatever runs there.  Each breakpoint
 * holds a debug register of the CPUs it may run on from the moment it is
 * registered: what is registered fires, what cannot be held is refused.
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

/**
 * ptrace_breakpoint_init - prepare the attributes of a debugger's breakpoint
 * @attr: attributes to fill
 *
 * As hw_breakpoint_init(), for accesses made in user mode only.
 */
static inline void ptrace_breakpoint_init(struct perf_event_attr *attr)
{
	hw_breakpoint_init(attr);
	attr->exclude_kernel = 1;
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT

/**
 * enum bp_type_idx - classes of debug registers
 * @TYPE_INST: registers that take instruction breakpoints
 * @TYPE_DATA: registers that take data breakpoints (watchpoints)
 * @TYPE_MAX: number of classes
 *
 * Where every register takes both, the two classes are one.
 */
enum bp_type_idx {
	TYPE_INST = 0,
	TYPE_DATA = IS_ENABLED(CONFIG_HAVE_MIXED_BREAKPOINTS_REGS) ? 0 : 1,
	TYPE_MAX
};

static inline unsigned long hw_breakpoint_addr(struct perf_event *bp)
{
	return bp->attr.bp_addr;
}

static inline int hw_breakpoint_type(struct perf_event *bp)
{
	return bp->attr.bp_type;
}

static inline unsigned long hw_breakpoint_len(struct perf_event *bp)
{
	return bp->attr.bp_len;
}

static inline struct arch_hw_breakpoint *counter_arch_bp(struct perf_event *bp)
{
	return &bp->hw.info;
}

/**
 * register_user_hw_breakpoint - watch an address for one task
 * @attr: what to watch; see hw_breakpoint_init(), ptrace_breakpoint_init()
 * @triggered: called at each hit, in exception context with interrupts off
 * @context: for @triggered, in event->overflow_handler_context
 * @tsk: the task
 *
 * Context: Process context, may sleep.
 * Return: the breakpoint, or ERR_PTR(): -EINVAL for a malformed @attr,
 * -EOPNOTSUPP for what the hardware lacks, -EPERM for a kernel address without
 * CAP_SYS_ADMIN, -ENOSPC if no register is left for @tsk on some CPU, -ESRCH
 * if @tsk has exited, -ENOMEM.
 */
struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context,
			    struct task_struct *tsk);

/**
 * modify_user_hw_breakpoint - change a task's breakpoint
 * @bp: the breakpoint
 * @attr: new attributes; bp_addr, bp_len, bp_type and disabled are looked at
 *
 * The caller serializes changes of @bp.  On failure @bp is as it was.
 *
 * Context: Process context; with interrupts off only to disable a breakpoint of
 * the current task.
 * Return: 0, or the errors of register_user_hw_breakpoint().
 */
int modify_user_hw_breakpoint(struct perf_event *bp,
			      struct perf_event_attr *attr);

/**
 * unregister_hw_breakpoint - remove a breakpoint
 * @bp: the breakpoint; NULL is ignored
 *
 * When it returns no handler runs and none will.
 *
 * Context: Process context, may sleep.
 */
void unregister_hw_breakpoint(struct perf_event *bp);

/**
 * register_wide_hw_breakpoint - watch an address on every CPU
 * @attr: what to watch; see hw_breakpoint_init()
 * @triggered: called at each hit, in exception context with interrupts off
 * @context: for @triggered, in event->overflow_handler_context
 *
 * A register is taken on all possible CPUs in one step or on none, and no
 * handler runs for a registration that fails.  A CPU that comes online later
 * watches too.
 *
 * Context: Process context, may sleep; not under cpus_read_lock().
 * Return: one event for each online CPU (NULL for the others), or ERR_PTR()
 * with the errors of register_user_hw_breakpoint().
 */
struct perf_event * __percpu *
register_wide_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context);

/**
 * unregister_wide_hw_breakpoint - remove a kernel-wide breakpoint
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * Context: Process context, may sleep; not under cpus_read_lock().
 */
void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events);

/**
 * hw_breakpoint_is_used - tell whether any breakpoint holds a register
 *
 * Context: Any but NMI.
 * Return: true if at least one register is taken on some CPU.
 */
bool hw_breakpoint_is_used(void);

/**
 * dbg_reserve_bp_slot - take a register for a breakpoint, from a debugger
 * @bp: a CPU's breakpoint that holds no register
 *
 * For kernel debuggers that have stopped all other CPUs: does not wait.
 *
 * Context: Any.
 * Return: 0, -ENOSPC, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_reserve_bp_slot(struct perf_event *bp);

/**
 * dbg_release_bp_slot - give a register back, from a debugger
 * @bp: a breakpoint that was given one by dbg_reserve_bp_slot()
 *
 * Context: Any.
 * Return: 0, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_release_bp_slot(struct perf_event *bp);

/**
 * dbg_reserve_bp_slots - take a register on every CPU, from a debugger
 * @claims: nr_cpu_ids claims, none of them held
 * @bp_type: HW_BREAKPOINT_*
 *
 * As dbg_reserve_bp_slot(), for a debugger that arms breakpoints by itself.
 *
 * Context: Any.
 * Return: 0; -ENOSPC, in which case no register was taken; or -EBUSY.
 */
int dbg_reserve_bp_slots(struct bp_claim *claims, u32 bp_type);

/**
 * dbg_release_bp_slots - give the registers back, from a debugger
 * @claims: nr_cpu_ids claims
 *
 * Context: Any.
 * Return: 0, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_release_bp_slots(struct bp_claim *claims);

/**
 * release_bp_slot - give the register of a breakpoint back
 * @bp: a breakpoint that is not scheduled; one that holds none is left alone
 *
 * Context: Any but NMI.
 */
void release_bp_slot(struct perf_event *bp);

/**
 * perf_bp_event - report a hit
 * @bp: the breakpoint that was hit
 * @regs: registers at the hit
 *
 * For the architecture's exception handler.
 *
 * Context: On the CPU of the hit with interrupts off; takes no perf lock.
 */
void perf_bp_event(struct perf_event *bp, struct pt_regs *regs);

/**
 * flush_ptrace_hw_breakpoint - drop all breakpoints a debugger set in a task
 * @tsk: current, at exec or exit
 */
void flush_ptrace_hw_breakpoint(struct task_struct *tsk);

/* Between perf core and the breakpoint PMU; see kernel/events/hw_breakpoint.c */
int init_hw_breakpoint(void);
int hw_breakpoint_claim(struct perf_event *bp, struct perf_event_context *ctx);
void hw_breakpoint_release(struct perf_event *bp);

#else /* !CONFIG_HAVE_HW_BREAKPOINT */

static inline struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context,
			    struct task_struct *tsk) { return NULL; }
static inline int
modify_user_hw_breakpoint(struct perf_event *bp,
			  struct perf_event_attr *attr) { return -ENOSYS; }
static inline void unregister_hw_breakpoint(struct perf_event *bp) { }
static inline struct perf_event * __percpu *
register_wide_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered,
			    void *context) { return NULL; }
static inline void
unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events) { }
static inline bool hw_breakpoint_is_used(void) { return false; }
static inline void flush_ptrace_hw_breakpoint(struct task_struct *tsk) { }
static inline int init_hw_breakpoint(void) { return 0; }
static inline int
hw_breakpoint_claim(struct perf_event *bp,
		    struct perf_event_context *ctx) { return 0; }
static inline void hw_breakpoint_release(struct perf_event *bp) { }

#endif /* CONFIG_HAVE_HW_BREAKPOINT */
#endif /* _LINUX_HW_BREAKPOINT_H */
