/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of a whole process: PERF_EV_CAP_PROCESS.
 *
 * Such an event is for all threads of a thread group, now and later.  It consists of
 * one event for a CPU, or of one for each possible CPU: a family, whose head is the event
 * that the user holds.  A process has a perf_event_context for each CPU, as a thread has
 * one.  perf_cpu_context::process_ctx is the one of the process that runs there, if it has
 * events.  It is scheduled in and out when the process of the CPU changes; nothing happens
 * when only its thread changes.  Threads hold no state for the event, so new and existing
 * threads are treated alike, and nothing is allocated, inherited or freed for them, except
 * the queues for attr.sigtrap, see sigtrap.c.
 * attr.inherit is refused: each fork would have to allocate events of all CPUs for the
 * child process.
 *
 * No access is missed after the return of open.  signal_struct::perf_process is set
 * first, and the hook of the scheduler is enabled, with a grace period.  From then on each
 * switch to a thread of the process looks for events, and schedules them in before that
 * thread runs.  All threads share the signal_struct, so it does not matter when a thread
 * was created.  Only a CPU on which the process runs gets an IPI, at open as at any other
 * change, see perf_process_install(): an event for a CPU that is idle, offline or runs
 * another process is changed under the lock of its context, and no user of the CPU waits
 * for a mutex of the process.  The exception is the first event of all processes: the hook
 * is patched into the text of the scheduler.
 *
 * The number of events is bounded by open files alone.  Only code acting for the process
 * walks them.
 *
 * A group consists of events of one process for the same CPUs.  The heads are in one
 * context, and on each CPU the members form an ordinary group, which is scheduled as one.
 * Open, close, exec and exit change the groups of all CPUs together under
 * perf_process::mutex, under which a group is also read, so that read() adds up groups
 * that have the same members.  The ioctls that enable, disable or modify a group take it,
 * too, and modify_user_hw_breakpoint(); prctl() and callers in the kernel that enable or
 * disable an event only ctx->mutex and child_mutex of the head, so that a read may find a
 * group enabled on some of the CPUs.
 *
 * perf_event_context::time stands still while the context is scheduled out: so the times
 * of a family add up to the time that threads of the process ran. When the process of the
 * CPU changes, guaranteed groups are scheduled in first, which always fit, then multiplexed
 * groups (PERF_EV_CAP_MUX) until a few of them do not fit: the cost of a switch does not
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
 * Locking: exec_update_lock, perf_process::mutex, perf_event_mutex of a thread for its queue
 * of signals, or ctx->mutex and child_mutex. On a CPU the ctx->lock of the CPU, of the
 * process and of the task, in this order. The members of a family change under
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
 * struct perf_process - the events of a process
 * @mutex: serializes changes of @heads, of families and of groups, see above
 * @heads: the heads that users hold, linked by perf_event::hlist_entry, which otherwise
 *	only software events use
 * @dead: the last thread has exited
 * @has_sb: an event was opened that gets side-band records: only then are the events walked
 *	for each record
 * @nr_sigtrap: number of heads with attr.sigtrap
 * @sigtrap: enum perf_sigtrap_need: what new threads need
 * @sigtrap_done: what all threads have
 * @limit_lock: protects @at_limit; taken in interrupts
 * @at_limit: the heads that have reached the limit of PERF_EVENT_IOC_REFRESH, linked by
 *	perf_event::sb_list, which otherwise only events of CPUs use
 * @limit: work that disables the events on @at_limit; perf_process_close() flushes it before
 *	the last event is freed, after which @limit is freed
 * @rcu: frees the structure after a grace period
 * @pmu: the PMU of all its events
 * @bp: of @pmu: what breakpoints of the process and of its threads have reserved
 * @cpus: the context for each possible CPU; its perf_event_context::process is this
 */
struct perf_process {
	struct mutex		mutex;
	struct hlist_head	heads;
	bool			dead;
	bool			has_sb;
	unsigned int		nr_sigtrap;
	u8			sigtrap;
	u8			sigtrap_done;
	raw_spinlock_t		limit_lock;
	struct list_head	at_limit;
	struct work_struct	limit;
	struct rcu_head		rcu;
	struct pmu		*pmu;
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	struct bp_process	bp;
#endif
	struct perf_event_context	*cpus[];
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

/* Enabling without PERF_EVENT_IOC_REFRESH removes the limit. */
static inline void perf_process_lift_limit(struct perf_event *event)
{
	if (perf_process_used() && perf_process_is_over(event) && !event->parent)
		atomic_set(&event->event_limit, 0);
}

/* NULL unless the process that runs on this CPU has events here. */
static __always_inline struct perf_event_context *
perf_process_ctx(struct perf_cpu_context *cpuctx)
{
	return perf_process_used() ? READ_ONCE(cpuctx->process_ctx) : NULL;
}

/* ---- process.c ---- */

/*
 * The process that runs on this CPU, or NULL if it has no events here. An IPI may set it: a
 * caller that must not miss the first event keeps interrupts off. Not preemptible.
 */
struct perf_process *perf_cpu_process(void);

/*
 * Schedules the events of the process of @task, which is current or about to run. Interrupts are
 * off. Call it before the events of @task are scheduled in: @task may have claimed registers that
 * events of the previous process still occupy.
 */
void perf_process_switch(struct task_struct *task);

/* Adds an event to @ctx, a context of a process for the CPU of @event. ctx->mutex is held. */
void perf_process_install(struct perf_event_context *ctx, struct perf_event *event);

/* PERF_EVENT_IOC_PERIOD for the members of a family but @head, whose ctx->mutex is held */
void perf_process_period(struct perf_event *head, u64 value);

/*
 * Accounts the reservations in @ctx, the context of a thread, to its process, also later ones.
 * @ctx cannot be swapped: its lock is held, or it is pinned, or its task has not run yet.
 * Returns 0, or an error of pmu::process().
 */
static inline int perf_process_add_context(struct perf_event_context *ctx,
					   struct perf_process *process)
{
	int err;

	if (READ_ONCE(ctx->process) == process)
		return 0;
	err = process->pmu->process(process, PERF_PROCESS_JOIN, ctx);
	if (!err)
		WRITE_ONCE(ctx->process, process);

	return err;
}

/*
 * Prepares an event of the process of @task: allocates the other members of the family and locks
 * perf_process::mutex. perf_process_opened() or perf_process_abort() unlocks it. Does not check
 * permission. Process context.
 * Returns 0, -ESRCH if all threads have exited, -EINVAL if the leader of the group is no event
 * of this process or is for other CPUs, -ENODEV if there is no such CPU, or -ENOMEM.
 */
int perf_process_open(struct perf_event *event, struct task_struct *task);

/*
 * perf_process_open() for an event that a user opens. exec_update_lock of the process is held.
 * Returns -EACCES if current may not watch one of the threads.
 */
int perf_process_open_user(struct perf_event *event, struct task_struct *task);

/* Completes perf_process_open(); the head is installed */
void perf_process_opened(struct perf_event *event);

/* Undoes perf_process_open(); the head is not installed */
void perf_process_abort(struct perf_event *event);

/* Removes the members of a family but the head, which its user has closed */
void perf_process_close(struct perf_event *event);

/*
 * Queues work that disables the family of @event, which has just reached its limit. Until the
 * work runs, perf_process_is_over() makes perf core ignore hits. Called in interrupts.
 */
void perf_process_disable_soon(struct perf_event *event);

/*
 * PERF_EVENT_IOC_REFRESH for a family. perf_event::event_limit of the head is the number of
 * overflows that are left to all members together; 0 means no limit. The last overflow makes it
 * negative: no CPU counts an access then, until the event is enabled again. ctx->mutex of @head
 * is held.
 */
void perf_process_raise_limit(struct perf_event *head, int refresh);

/*
 * Counts an overflow of a family. Returns 1 for the last overflow that the limit allows, -1 if
 * none is left, otherwise 0.
 */
int perf_process_take_overflow(struct perf_event *event);

/*
 * Keeps the groups of all CPUs unchanged; nothing for an event that is not of a process.
 * perf_process_used() stays true as long as any event has a process.
 */
static inline void perf_process_lock(struct perf_event *event)
{
	if (perf_process_used() && event->process)
		mutex_lock(&event->process->mutex);
}

static inline void perf_process_unlock(struct perf_event *event)
{
	if (perf_process_used() && event->process)
		mutex_unlock(&event->process->mutex);
}

/* Sets the BPF program of the members of a family to that of the head, NULL for none */
void perf_process_set_bpf(struct perf_event *head, struct bpf_prog *prog);

/* Applies attr.remove_on_exec and attr.enable_on_exec; current is the only thread now */
void perf_process_exec(void);

void __perf_process_exit(struct perf_process *process, struct task_struct *task);

/*
 * Ends the events of a process: if @task, a thread that exits, is the last one, or if it
 * executes a program that the owner of an event may not watch
 */
static inline void perf_process_exit(struct task_struct *task)
{
	struct perf_process *process = READ_ONCE(task->signal->perf_process);

	if (unlikely(process))
		__perf_process_exit(process, task);
}

#endif /* _KERNEL_EVENTS_PROCESS_H */
