/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of a whole process: PERF_EV_CAP_PROCESS.
 *
 * Such an event is for all threads of a thread group, now and later.  It consists of
 * one event in the context of a CPU, or of one in the context of each possible CPU: a
 * family, whose head is the event that the user holds.  perf_cpu_context::process is
 * the process that runs on the CPU, and event_filter_match() accepts the events of
 * that process alone, so that they are scheduled in and out where the process of a
 * CPU changes, and nothing at all happens where only its thread does.  No thread
 * has a part in it: threads that exist are as good as those that come, and there is
 * nothing to allocate, inherit or free for them.
 *
 * No access is missed from the return of open on.  signal_struct::perf_process is set
 * first, and the hook of the scheduler is enabled, with a grace period.  Then an IPI to
 * each CPU adds the event to the groups of the process there, and sets
 * perf_cpu_context::process for the thread that runs there.  From then on
 * perf_cpu_context::nr_process is not 0, so that a switch on the CPU compares the
 * process of the next thread, and schedules the event before that thread runs.  All
 * threads share the signal_struct, so it does not matter when a thread was created, or
 * where it was at the time of the IPI.  The event is added for a CPU that is offline,
 * too; perf_event_cpu_returns() schedules it.  A CPU that has an event of the process
 * already knows when it runs the process: while it does not, no IPI is needed.
 *
 * Nobody else walks along the events of a process, whose number only files limit: they
 * are not on the list of events of the context, and those that ask for side-band records
 * are on a list of the process.
 *
 * A group consists of events of one process for the same CPUs.  The heads are on one
 * CPU, and on each CPU the members form an ordinary group, which is scheduled as one.
 * The groups of all CPUs change together under perf_process::mutex, under which a
 * group is also read, so that read() adds up groups that are the same.
 *
 * A process has a clock on each CPU that stands still while the process does not run
 * there, and the times of its events on the CPU are times of this clock: so the times
 * of a family add up to the time that threads of the process ran.
 *
 * The groups of a process on a CPU are in a tree of their own, so that a walk along the
 * groups of the CPU never looks at those of other processes.  When the process of the
 * CPU changes, the active groups are scheduled out, and those in the tree of the next
 * process in: first the guaranteed ones, which always fit, then multiplexed groups
 * (PERF_EV_CAP_MUX) until a few of them do not fit.  Multiplexed groups are rotated
 * apart from those of the CPU, see PERF_ROTATE_PROCESS.  No step depends on their number.
 *
 * struct perf_process belongs to the signal_struct of the thread group, from the first
 * event on and for the rest of its life; each event refers to a task of the group.
 * exec keeps the signal_struct, whichever thread calls it.
 *
 * Locking: exec_update_lock, perf_process::mutex, ctx->mutex, child_mutex. The groups
 * on a CPU are protected by ctx->lock of the CPU. The members of a family change under
 * perf_process::mutex only, while no user has, or none has any more, the head.
 */
#ifndef _KERNEL_EVENTS_PROCESS_H
#define _KERNEL_EVENTS_PROCESS_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#ifdef CONFIG_HAVE_HW_BREAKPOINT
#include "bp_slots.h"
#endif

/**
 * struct perf_process_cpu - the events of a process in the context of one CPU
 * @groups: the groups, pinned or not
 * @time: the clock of the process, when it last stopped
 * @offset: what the clock is ahead of perf_event_context::time of the CPU while it runs
 *
 * Protected by ctx->lock of the CPU.  perf_event_time_now() reads the clock without it.
 */
struct perf_process_cpu {
	struct perf_event_groups	groups;
	u64				time;
	u64				offset;
};

/**
 * struct perf_process - the events of a process
 * @mutex: see above
 * @heads: the events that users hold, by hlist_entry, which only software events use
 *	otherwise
 * @sb_heads: those of them that ask for side-band records, by sb_list; RCU
 * @dead: the last thread has exited
 * @limit: to disable the events that are at the limit of PERF_EVENT_IOC_REFRESH; has
 *	run when a head that may have queued it is freed
 * @rcu: to free it
 * @bp: the registers that breakpoints of the process and of its threads claim
 * @cpus: by CPU, the events in the context of the CPU
 */
struct perf_process {
	struct mutex		mutex;
	struct hlist_head	heads;
	struct list_head	sb_heads;
	bool			dead;
	struct work_struct	limit;
	struct rcu_head		rcu;
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	struct bp_process	bp;
#endif
	struct perf_process_cpu	cpus[];
};

/* ---- The registers of breakpoints ---- */

#ifdef CONFIG_HAVE_HW_BREAKPOINT
extern struct bp_slots bp_machine;

static inline int hw_breakpoint_init_process(struct perf_process *process)
{
	return bp_process_init(&bp_machine, &process->bp);
}

static inline void hw_breakpoint_destroy_process(struct perf_process *process)
{
	bp_process_destroy(&process->bp);
}

/* The claims of @ctx, and later ones, count for @process. */
static inline int hw_breakpoint_join(struct perf_event_context *ctx,
				     struct perf_process *process)
{
	return bp_slots_join(&bp_machine, &ctx->bp_domain, &process->bp);
}

/* Contexts that count for their process stay with threads of it. */
static inline bool hw_breakpoint_may_swap(const struct perf_event_context *a,
					  const struct perf_event_context *b)
{
	return READ_ONCE(a->bp_domain.process) == READ_ONCE(b->bp_domain.process);
}
#else
static inline int hw_breakpoint_init_process(struct perf_process *process) { return 0; }
static inline void hw_breakpoint_destroy_process(struct perf_process *process) { }
static inline int hw_breakpoint_join(struct perf_event_context *ctx,
				     struct perf_process *process) { return 0; }
static inline bool hw_breakpoint_may_swap(const struct perf_event_context *a,
					  const struct perf_event_context *b) { return true; }
#endif

/* Enabled while there is an event of any process */
extern struct static_key_false perf_process_key;

static inline bool perf_process_used(void)
{
	return static_branch_unlikely(&perf_process_key);
}

/* True for the head of a family that has an event for each CPU. */
static inline bool perf_process_on_any_cpu(const struct perf_event *event)
{
	return event->attach_state & PERF_ATTACH_ANY_CPU;
}

/* True for each member of such a family. */
static inline bool perf_process_is_family(const struct perf_event *event)
{
	return event->process && perf_process_on_any_cpu(event->parent ?: event);
}

/* True if a family has had all overflows that PERF_EVENT_IOC_REFRESH allowed. */
static inline bool perf_process_is_over(const struct perf_event *event)
{
	return perf_process_is_family(event) &&
	       atomic_read(&(event->parent ?: event)->event_limit) < 0;
}

/**
 * perf_process_open - prepare an event of a process
 * @event: the event, which is in no context yet
 * @task: a task of the process
 *
 * Adds the other members of the family, and takes perf_process::mutex until
 * perf_process_opened().
 *
 * Context: Process context; for a user's event exec_update_lock of the process held.
 * Return: 0, -ESRCH if all threads have exited, -EINVAL if the leader of the group is
 *	no event of this process or is for other CPUs, or -ENOMEM.
 */
int perf_process_open(struct perf_event *event, struct task_struct *task);

/**
 * perf_process_opened - complete perf_process_open()
 * @event: the head, which is installed
 *
 * Context: Process context.
 */
void perf_process_opened(struct perf_event *event);

/**
 * perf_process_abort - undo perf_process_open()
 * @event: the head, which is not installed
 *
 * Context: Process context.
 */
void perf_process_abort(struct perf_event *event);

/**
 * perf_process_close - remove the members of a family but the head
 * @event: the head, which its user has closed
 *
 * Context: Process context.
 */
void perf_process_close(struct perf_event *event);

/**
 * perf_process_disable_soon - disable the events that are at their limit
 * @process: the process, an event of which has just come to its limit
 *
 * Until then perf_process_is_over() keeps accesses from being hits.
 *
 * Context: Interrupt.
 */
void perf_process_disable_soon(struct perf_process *process);

/**
 * perf_process_exec - apply attr.remove_on_exec and enable_on_exec
 *
 * Context: current has become the only thread of its process.
 */
void perf_process_exec(void);

/**
 * perf_process_exit - end the events of a process with its last thread
 * @task: a thread that exits, or is about to execute a program whose credentials
 *	the owner of an event may not watch
 *
 * Context: Process context.
 */
void perf_process_exit(struct task_struct *task);

/* ---- core.c ---- */

/*
 * The process that runs on this CPU, NULL if it has no events; for as long as the caller
 * is not preempted, and interrupts are off if its first event is not to be missed
 */
struct perf_process *perf_cpu_process(void);
/* True if an event with @attr asks for records of other things than its overflows */
bool perf_attr_wants_sb(const struct perf_event_attr *attr);

/* @leader: the member for @cpu of the family that leads the group, NULL if none does */
struct perf_event *perf_process_alloc_member(struct perf_event *head, int cpu,
					     struct perf_event *leader);
void perf_process_free_member(struct perf_event *event);
void perf_process_install_member(struct perf_event *event);
/*
 * The event ends, unless it has ended already.  It leaves its group, whose members go
 * on as single events if it led them, unless @keep_group.
 */
void perf_process_remove_member(struct perf_event *event, bool keep_group);
void perf_process_enable(struct perf_event *head);
/* Disables all members, if no overflows are left to @head. */
void perf_process_disable_at_limit(struct perf_event *head);
/* What an event that has ended counted is added to the head, which has ended too. */
void perf_process_fold_member(struct perf_event *event);
void perf_process_put_member(struct perf_event *event);
/* What @task claims counts for @process from now on. */
void perf_process_join(struct perf_process *process, struct task_struct *task);

#endif /* _KERNEL_EVENTS_PROCESS_H */
