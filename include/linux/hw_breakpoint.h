/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: the in-kernel API.
 *
 * A breakpoint is a perf event of type PERF_TYPE_BREAKPOINT.  It watches one
 * address range (attr.bp_addr, attr.bp_len, attr.bp_type) either for one task,
 * wherever it runs, or on every CPU, whatever runs there.  Each breakpoint
 * holds a debug register of the CPUs it may run on from the moment it is
 * registered: what is registered fires, what cannot be held is refused.  Only
 * those that ask for it take turns instead; see HW_BREAKPOINT_FLEXIBLE.
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

static inline bool hw_breakpoint_is_flexible(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_FLEXIBLE;
}

/* Hits that an event with HW_BREAKPOINT_SIGTRAP_QUEUE keeps until they are sent */
#define HW_BREAKPOINT_SIGTRAPS	32

static inline bool hw_breakpoint_queues_sigtrap(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_SIGTRAP_QUEUE;
}

/**
 * hw_breakpoint_event_is_flexible - tell whether an event is a flexible breakpoint
 * @event: an event of any PMU
 */
static inline bool hw_breakpoint_event_is_flexible(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_BREAKPOINT &&
	       hw_breakpoint_is_flexible(&event->attr);
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
 * struct bp_holder - whose a claim is that is not embedded in a perf event
 * @addr: address that is watched
 * @len: length, in bytes
 * @bp_type: HW_BREAKPOINT_*
 * @handler: what is called at a hit; NULL for the kernel debugger
 *
 * For the list of claims in debugfs.
 */
struct bp_holder {
	unsigned long		addr;
	unsigned long		len;
	u32			bp_type;
	perf_overflow_handler_t	handler;
};

/**
 * struct bp_reg_state - what a register of the hardware holds
 * @armed: it holds a breakpoint; if not, nothing else is said
 * @addr: address that is watched
 * @len: length, in bytes
 * @bp_type: HW_BREAKPOINT_*
 * @event: whose hit it would be; NULL for the kernel debugger's
 */
struct bp_reg_state {
	bool			armed;
	unsigned long		addr;
	unsigned long		len;
	u32			bp_type;
	struct perf_event	*event;
};

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
 * CAP_SYS_ADMIN, -ENOSPC if no register is left for @tsk on some CPU (a flexible
 * one shares it with the other flexible ones there), -ESRCH if @tsk has exited,
 * -ENOMEM.
 */
struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context,
			    struct task_struct *tsk);

/**
 * modify_user_hw_breakpoint - change a task's breakpoint
 * @bp: the breakpoint
 * @attr: new attributes; bp_addr, bp_len, bp_type and disabled are looked at,
 *	config has to be as it is
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
 * @attr: what to watch; see hw_breakpoint_init(). Not HW_BREAKPOINT_FLEXIBLE
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
 * modify_wide_hw_breakpoint_local - re-point this CPU's member of a kernel-wide set
 * @bp: the event of this CPU, of those that register_wide_hw_breakpoint() returned
 * @attr: bp_addr, bp_len and bp_type are looked at, config has to be as it is
 *
 * The members of other CPUs, and of CPUs that come online later, stay as they
 * are.  Takes no lock and allocates nothing.  When it returns the registers are
 * changed, unless it interrupted somebody who is changing registers of this CPU:
 * he does it then, before anything else can run here.  @bp->attr follows; who
 * may interrupt a change uses read_wide_hw_breakpoint_local() instead.  On
 * failure nothing has changed.
 *
 * Context: Any, NMI and the handler of @bp included; not preemptible.  Not after
 * unregister_wide_hw_breakpoint() began.
 * Return: 0; -EINVAL for a malformed @attr, for an event that is no member of a
 * set or of another CPU, and for one that would need a register of another
 * class; -EOPNOTSUPP for what the hardware or the architecture cannot do.
 */
int modify_wide_hw_breakpoint_local(struct perf_event *bp,
				    const struct perf_event_attr *attr);

/**
 * read_wide_hw_breakpoint_local - tell what this CPU's member of a set watches
 * @bp: the event of this CPU
 * @range: filled in; never with a mixture of two
 *
 * Context: Any, NMI and the handler of @bp included; not preemptible.
 */
void read_wide_hw_breakpoint_local(const struct perf_event *bp,
				   struct hw_breakpoint_range *range);

/**
 * bp_current_version - read the translation of a member of a kernel-wide set
 * @bp: the event, of this CPU
 * @hw: filled in; what the architecture keeps there itself says nothing
 *
 * For arch_hw_breakpoint_repoint().
 *
 * Context: Any, on the CPU of @bp.
 */
void bp_current_version(const struct perf_event *bp, struct arch_hw_breakpoint *hw);

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
 * @holder: what they are for; stays valid while they are held
 *
 * As dbg_reserve_bp_slot(), for a debugger that arms breakpoints by itself.
 *
 * Context: Any.
 * Return: 0; -ENOSPC, in which case no register was taken; or -EBUSY.
 */
int dbg_reserve_bp_slots(struct bp_claim *claims, const struct bp_holder *holder);

/**
 * dbg_release_bp_slots - give the registers back, from a debugger
 * @claims: nr_cpu_ids claims
 *
 * Context: Any.
 * Return: 0, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_release_bp_slots(struct bp_claim *claims);

/**
 * hw_breakpoint_trim_flexible - make room for the claims of a debugger
 *
 * Flexible breakpoints of this CPU that have more registers than is left for
 * them lose them soon.
 *
 * Context: Any, on the CPU in question.
 */
void hw_breakpoint_trim_flexible(void);

/**
 * hw_breakpoint_takes_turns - tell whether a group needs a register for a turn
 * @leader: the leader of the group
 *
 * Context: The perf context of the group locked.
 * Return: true if @leader or an enabled member of its group is a flexible
 * breakpoint.
 */
bool hw_breakpoint_takes_turns(struct perf_event *leader);

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
 * perf_bp_event_at - report a hit of what a breakpoint watched when it was hit
 * @bp: the breakpoint
 * @addr: its address then; the sample tells it
 * @regs: registers at the hit
 *
 * For an architecture where a breakpoint may be changed between its hit and the
 * report of it.
 *
 * Context: As perf_bp_event().
 */
void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs);

/**
 * flush_ptrace_hw_breakpoint - drop all breakpoints a debugger set in a task
 * @tsk: current, at exec or exit
 */
void flush_ptrace_hw_breakpoint(struct task_struct *tsk);

/**
 * ptrace_drop_disabled_hw_breakpoints - give back what a debugger has disabled
 * @tsk: a traced task that is about to leave its stop
 *
 * While a task is stopped a debugger may disable breakpoints, change them and
 * enable them again without losing their registers.
 *
 * Context: Process context, may sleep; the tracer of @tsk, which stays stopped.
 */
#ifdef ARCH_HW_BREAKPOINT_PTRACE
void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk);
#else
static inline void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk) { }
#endif

/* Between perf core and the breakpoint PMU; see kernel/events/hw_breakpoint.c */
int init_hw_breakpoint(void);
int __hw_breakpoint_claim(struct perf_event *bp, struct perf_event_context *ctx);
void __hw_breakpoint_release(struct perf_event *bp);
int __hw_breakpoint_reclaim(struct perf_event *bp);
int __hw_breakpoint_follow(struct perf_event *child, const struct perf_event *parent);
int hw_breakpoint_modify(struct perf_event *event,
			 const struct perf_event_attr *attr);

/* Events of other PMUs are told apart here: they pay for no more than that. */
static inline bool hw_breakpoint_is_event(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_BREAKPOINT;
}

/* What joins a group may have to get along with the breakpoints in it. */
static inline int hw_breakpoint_claim(struct perf_event *event,
				      struct perf_event_context *ctx)
{
	bool joins = event->group_leader != event && !event->parent;

	return hw_breakpoint_is_event(event) || joins ?
	       __hw_breakpoint_claim(event, ctx) : 0;
}

static inline void hw_breakpoint_release(struct perf_event *event)
{
	if (hw_breakpoint_is_event(event))
		__hw_breakpoint_release(event);
}

static inline int hw_breakpoint_reclaim(struct perf_event *event)
{
	return hw_breakpoint_is_event(event) ? __hw_breakpoint_reclaim(event) : 0;
}

static inline int hw_breakpoint_follow(struct perf_event *child,
				       const struct perf_event *parent)
{
	return hw_breakpoint_is_event(child) ? __hw_breakpoint_follow(child, parent) : 0;
}

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
static inline bool
hw_breakpoint_takes_turns(struct perf_event *leader) { return false; }
static inline void flush_ptrace_hw_breakpoint(struct task_struct *tsk) { }
static inline void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk) { }
static inline int init_hw_breakpoint(void) { return 0; }
static inline int
hw_breakpoint_claim(struct perf_event *bp,
		    struct perf_event_context *ctx) { return 0; }
static inline void hw_breakpoint_release(struct perf_event *bp) { }
static inline int hw_breakpoint_reclaim(struct perf_event *bp) { return 0; }
static inline int
hw_breakpoint_modify(struct perf_event *event,
		     const struct perf_event_attr *attr) { return -EOPNOTSUPP; }
static inline int
hw_breakpoint_follow(struct perf_event *child,
		     const struct perf_event *parent) { return 0; }

#endif /* CONFIG_HAVE_HW_BREAKPOINT */
#endif /* _LINUX_HW_BREAKPOINT_H */
