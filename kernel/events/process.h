/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of a whole process: PERF_EV_CAP_PROCESS.
 *
 * Such an event is for all threads of a thread group, now and later.  It consists of
 * one event in the context of a CPU, or of one in the context of each possible CPU: a
 * family, whose head is the event that the user holds.  perf_cpu_context::process is
 * the process that runs on the CPU, and event_filter_match() accepts the events of
 * that process alone.  Events are scheduled in and out when the process of a CPU
 * changes; nothing happens when only its thread changes.  Threads hold no state for
 * the event, so new and existing threads are treated alike, and nothing is allocated,
 * inherited or freed for them.  attr.inherit is refused: each fork would have to
 * allocate events of all CPUs for the child process.
 *
 * No access is missed after the return of open.  signal_struct::perf_process is set
 * first, and the hook of the scheduler is enabled, with a grace period.  Then an IPI to
 * each CPU adds the event to the groups of the process there, and sets
 * perf_cpu_context::process for the thread that runs there.  From then on
 * perf_cpu_context::nr_process is not 0, so that a switch on the CPU compares the
 * process of the next thread, and schedules the event before that thread runs.  All
 * threads share the signal_struct, so it does not matter when a thread was created, or
 * where it was at the time of the IPI.  The event is added for a CPU that is offline,
 * too; perf_event_cpu_returns() schedules it.  A CPU that already has an event of the
 * process keeps perf_cpu_context::process up to date: no IPI is needed while another
 * process runs there.
 *
 * Only code acting for the process walks its events; their number is bounded by open
 * files alone.  They are not on the list of events of the context, and those that ask
 * for side-band records are on a list of the process.
 *
 * A group consists of events of one process for the same CPUs.  The heads are on one
 * CPU, and on each CPU the members form an ordinary group, which is scheduled as one.
 * Open, close, exec and exit change the groups of all CPUs together under
 * perf_process::mutex, under which a group is also read, so that read() adds up groups
 * that have the same members.  The ioctls that enable, disable or modify a group take it,
 * too; prctl() and callers in the kernel only ctx->mutex and child_mutex of the head,
 * so that a read may find a group enabled on some of the CPUs.
 *
 * A process has a clock on each CPU that stands still while the process does not run
 * there, and the times of its events on the CPU are times of this clock: so the times
 * of a family add up to the time that threads of the process ran.
 *
 * The groups of a process on a CPU are in a tree of their own, so that a walk along the
 * groups of the CPU never visits those of other processes.  When the process of the
 * CPU changes, the active groups are scheduled out, and those in the tree of the next
 * process in: first the guaranteed ones, which always fit, then multiplexed groups
 * (PERF_EV_CAP_MUX) until a few of them do not fit.  Multiplexed groups are rotated
 * apart from those of the CPU, see PERF_ROTATE_PROCESS.  The cost of a switch does not
 * depend on their number.
 *
 * struct perf_process belongs to the signal_struct of the thread group, from the first
 * event on and until the signal_struct is freed; each event refers to a task of the
 * group.  exec keeps the signal_struct, whichever thread calls it.
 *
 * Credentials belong to threads, and an event shows the registers of all threads: its
 * opener must be allowed to watch each of them. This is checked for all threads at open,
 * and for the thread concerned when it gets new credentials, also at exec. The credentials
 * of the opener are kept for it. If the opener may not watch the thread any more, the
 * event ends. A new thread has the credentials of the one that created it, which is before
 * it on the list of threads.
 *
 *	perf_event_open()			commit_creds()
 *
 *	A: store signal->perf_process		D: store the credentials of current
 *	lock perf_process::mutex		full barrier
 *	full barrier				E: load signal->perf_process
 *	B: check the credentials of all		on the way back to user mode, if E has
 *	   threads				seen A:
 *	C: install the event			lock perf_process::mutex
 *	unlock					F: check the openers of all events
 *						unlock
 *
 * If E has not seen A, B sees D. If it has, the thread takes the mutex first, and B sees
 * D, or last, and F sees C.
 *
 * process.c calls nothing of perf core but struct perf_process_ops, and the PMU through
 * its methods.
 *
 * Locking: exec_update_lock, perf_process::mutex, ctx->mutex, child_mutex. The groups
 * on a CPU are protected by ctx->lock of the CPU. The members of a family change under
 * perf_process::mutex only, before the head gets a file or after its file is closed.
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

/**
 * struct perf_process_cpu - the events of a process in the context of one CPU
 * @groups: pinned and flexible groups
 * @time: the clock of the process when it last stopped
 * @offset: difference of the running clock to perf_event_context::time of the CPU
 *
 * Protected by ctx->lock of the CPU.  perf_event_time_now() reads the clock without the
 * lock.
 */
struct perf_process_cpu {
	struct perf_event_groups	groups;
	u64				time;
	u64				offset;
};

/**
 * struct perf_process - the events of a process
 * @mutex: serializes changes of @heads, of families and of groups, see above
 * @heads: the heads that users hold, linked by perf_event::hlist_entry, which otherwise
 *	only software events use
 * @sb_heads: the heads that ask for side-band records, linked by perf_event::sb_list;
 *	read under RCU
 * @dead: the last thread has exited
 * @limit: work that disables the events at the limit of PERF_EVENT_IOC_REFRESH;
 *	perf_process_close() flushes it before the head is freed
 * @rcu: frees the structure after a grace period
 * @pmu: the PMU of all its events
 * @bp: of @pmu: what breakpoints of the process and of its threads have reserved
 * @cpus: the events in the context of each CPU
 */
struct perf_process {
	struct mutex		mutex;
	struct hlist_head	heads;
	struct list_head	sb_heads;
	bool			dead;
	struct work_struct	limit;
	struct rcu_head		rcu;
	struct pmu		*pmu;
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	struct bp_process	bp;
#endif
	struct perf_process_cpu	cpus[];
};

/* Enabled while any process has an event */
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

/* True if a family has made all overflows that PERF_EVENT_IOC_REFRESH allowed. */
static inline bool perf_process_is_over(const struct perf_event *event)
{
	return perf_process_is_family(event) &&
	       atomic_read(&(event->parent ?: event)->event_limit) < 0;
}

/**
 * perf_cpu_process - return the process that runs on this CPU
 *
 * The first event of a process sets it by an IPI: a caller that must not miss this
 * event keeps interrupts off.
 *
 * Context: Any; not preemptible.
 * Return: the process, or NULL if it has no events on this CPU.
 */
struct perf_process *perf_cpu_process(void);

/* ---- process.c ---- */

/**
 * struct perf_process_ops - operations of perf core on events of processes
 * @alloc_member: Allocates the member of the family of @head for @cpu. @leader is the
 *	member for @cpu of the family that leads the group, NULL if @head leads its
 *	group. Returns ERR_PTR() on failure.
 * @free_member: Frees a member that was not installed.
 * @install_member: Installs a member in the context of its CPU.
 * @remove_member: Ends a member, or the head, unless it has ended already, and removes
 *	it from its context. Unless @keep_group it leaves its group, too; the other
 *	events of a group that it led become single events.
 * @put_member: Adds the counts of an ended member to its head, which has ended too, and
 *	puts the member.
 * @enable: Enables all members of the family of @head.
 * @disable_at_limit: Disables all members if @head has no overflows left.
 * @wakeup: Wakes up tasks that wait for @head in poll().
 * @join: Adds the context of @task to @process, see perf_process_add_context().
 * @may_watch: Returns true if current may open an event with @attr for @thread; @flags
 *	are PTRACE_MODE_* for ptrace_may_access(), in addition to the mode for such events.
 */
struct perf_process_ops {
	struct perf_event *(*alloc_member)(struct perf_event *head, int cpu,
					   struct perf_event *leader);
	void (*free_member)(struct perf_event *event);
	void (*install_member)(struct perf_event *event);
	void (*remove_member)(struct perf_event *event, bool keep_group);
	void (*put_member)(struct perf_event *event);
	void (*enable)(struct perf_event *head);
	void (*disable_at_limit)(struct perf_event *head);
	void (*wakeup)(struct perf_event *head);
	void (*join)(struct perf_process *process, struct task_struct *task);
	bool (*may_watch)(const struct perf_event_attr *attr, struct task_struct *thread,
			  unsigned int flags);
};

/**
 * perf_process_init - set the operations of perf core
 * @ops: the operations
 *
 * Context: Boot.
 */
void perf_process_init(const struct perf_process_ops *ops);

/**
 * perf_process_add_context - account the reservations of a thread to its process
 * @ctx: the context of the thread
 * @process: the process
 *
 * Later reservations in @ctx are accounted to @process, too.
 *
 * Context: @ctx cannot be swapped: its lock is held, or it is pinned, or its task has
 *	not run yet.
 * Return: 0, or an error of pmu::process_join().
 */
static inline int perf_process_add_context(struct perf_event_context *ctx,
					   struct perf_process *process)
{
	int err;

	if (READ_ONCE(ctx->process) == process)
		return 0;
	err = process->pmu->process_join(ctx, process);
	if (!err)
		WRITE_ONCE(ctx->process, process);

	return err;
}

/**
 * perf_process_open - prepare an event of a process
 * @event: the event, which is in no context yet
 * @task: a task of the process
 *
 * Allocates the other members of the family and locks perf_process::mutex.
 * perf_process_opened() or perf_process_abort() unlocks it. Does not check permission.
 *
 * Context: Process context.
 * Return: 0, -ESRCH if all threads have exited, -EINVAL if the leader of the group is
 *	no event of this process or is for other CPUs, -ENODEV if there is no such CPU,
 *	or -ENOMEM.
 */
int perf_process_open(struct perf_event *event, struct task_struct *task);

/**
 * perf_process_open_user - perf_process_open() for an event that a user opens
 * @event: the event, which is in no context yet
 * @task: a task of the process
 *
 * Context: Process context; exec_update_lock of the process held.
 * Return: as perf_process_open(); -EACCES if current may not watch one of the threads.
 */
int perf_process_open_user(struct perf_event *event, struct task_struct *task);

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
 * perf_process_disable_soon - queue work that disables the events at their limit
 * @process: the process, an event of which has just reached its limit
 *
 * Until the work runs, perf_process_is_over() makes perf core ignore hits.
 *
 * Context: Interrupt.
 */
void perf_process_disable_soon(struct perf_process *process);

/**
 * perf_process_exec - apply attr.remove_on_exec and attr.enable_on_exec
 *
 * Context: current has become the only thread of its process.
 */
void perf_process_exec(void);

void __perf_process_exit(struct perf_process *process, struct task_struct *task);

/**
 * perf_process_exit - end the events of a process
 * @task: a thread that exits, or executes a program that the owner of an event may not
 *	watch
 *
 * A thread that exits ends the events only if it is the last one.
 *
 * Context: Process context.
 */
static inline void perf_process_exit(struct task_struct *task)
{
	struct perf_process *process = READ_ONCE(task->signal->perf_process);

	if (unlikely(process))
		__perf_process_exit(process, task);
}

#endif /* _KERNEL_EVENTS_PROCESS_H */
