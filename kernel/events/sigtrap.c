// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: send SIGTRAP to the thread that hits an event.
 *
 * An event may be hit in an NMI or with the siglock held, where no signal can be sent. The
 * hit is stored in the queue of the thread, see sigtrap.h; task work sends the signal on
 * the way back to user mode. The exception handler itself sends it if the hit of a
 * breakpoint is the only cause of an exception in user mode and no other hit or SIGTRAP of
 * the thread waits.
 *
 * SIGTRAP is a legacy signal: a SIGTRAP that is sent while another one is pending for the
 * thread is dropped. So several hits coalesce into one signal if they are made while
 * SIGTRAP is blocked, made by the kernel on behalf of the thread, or made by events that
 * are not breakpoints. Two kinds of hits do not coalesce but wait until no SIGTRAP is
 * pending:
 *
 *  - hits of several breakpoints by one instruction in user mode. While the handler of the
 *    first signal runs and blocks SIGTRAP the other hits are not made pending either, so
 *    that the handler can close or disable their events;
 *  - all hits of an event with HW_BREAKPOINT_SIGTRAP_QUEUE, up to a limit.
 *
 * recalc_sigpending() is called after each change of the pending or blocked signals
 * and adds the task work again if a hit waits. It interrupts a system call that waits with
 * SIGTRAP unblocked, as the signal would.
 *
 * A thread gets its queue before an event can be hit: when an event is opened for it, when
 * it inherits one, or for the events of its process as follows. clone() allocates memory
 * where it can sleep (A), and if that was too early again before the thread is listed (D):
 *
 *	perf_event_open()			clone()
 *
 *						A: load perf_process::sigtrap
 *	lock tasklist_lock			lock tasklist_lock
 *	B: store perf_process::sigtrap		D: load perf_process::sigtrap
 *	unlock					E: add the thread to the list
 *	C: allocate for all threads		unlock
 *
 * Locking: perf_event_mutex of a task protects its pointer to the queue. exec removes the
 * queue under exec_update_lock instead, which perf_event_open() holds, and exit after it has
 * had the mutex with PF_EXITING set. Contexts of tasks that have hits due are not swapped: an
 * event drops its hits when a task with its context exits.
 */

#include <linux/cleanup.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "internal.h"
#include "process.h"
#include "sigtrap.h"

static bool is_breakpoint(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_BREAKPOINT;
}

/* ---- Sending ---- */

/* Only current changes its own ->sighand; no RCU needed. */
static spinlock_t *siglock(void)
{
	return &rcu_access_pointer(current->sighand)->siglock;
}

/* Returns true for a hit that must not coalesce with the pending signals. */
static bool has_to_wait(const struct sigtrap_hit *hit, bool blocked)
{
	if (hit->sync && blocked)
		return true;
	return (hit->sync || hit->sigtrap->queue) &&
	       sigismember(&current->pending.signal, SIGTRAP);
}

static void send_signal(const struct sigtrap_hit *hit, bool blocked)
{
	struct kernel_siginfo info;

	lockdep_assert_held(siglock());

	clear_siginfo(&info);
	info.si_signo = SIGTRAP;
	info.si_code = TRAP_PERF;
	info.si_addr = (void __user *)(unsigned long)hit->addr;
	info.si_perf_data = hit->data;
	info.si_perf_type = hit->sigtrap->type;
	if (hit->async || blocked)
		info.si_perf_flags = TRAP_PERF_FLAG_ASYNC;
	send_signal_locked(SIGTRAP, &info, current, PIDTYPE_PID);
}

static bool try_to_send(const struct sigtrap_hit *hit, bool blocked)
{
	bool waits = has_to_wait(hit, blocked);

	if (!waits)
		send_signal(hit, blocked);
	return !waits;
}

/* Hits that sending makes itself are dropped, or sending never ends. */
static void set_sending(struct sigtrap_queue *queue, bool sending)
{
	barrier();
	WRITE_ONCE(queue->sending, sending);
	barrier();
}

bool __weak arch_hw_breakpoint_steps_over(void)
{
	return false;
}

/* The number of hits is limited, so all are sent with interrupts off. */
static void send_hits(struct callback_head *work)
{
	struct sigtrap_queue *queue = container_of(work, struct sigtrap_queue, work);

	if (arch_hw_breakpoint_steps_over()) {
		/* perf_sigtrap_stepped() adds the work again. */
		WRITE_ONCE(queue->added, 0);
		return;
	}
	set_sending(queue, true);
	WRITE_ONCE(queue->added, 0);
	spin_lock_irq(siglock());
	queue->blocked = sigismember(&current->blocked, SIGTRAP);
	sigtrap_send(queue, queue->blocked, try_to_send);
	spin_unlock_irq(siglock());
	set_sending(queue, false);
}

static void add_work(struct sigtrap_queue *queue)
{
	int mode = in_nmi() ? TWA_NMI_CURRENT : TWA_RESUME | TWAF_NO_ALLOC;

	if (xchg(&queue->added, 1))
		return;
	/* Fails only in an exiting task, which gets no more signals. */
	init_task_work(&queue->work, send_hits);
	task_work_add(current, &queue->work, mode);
}

void perf_sigtrap_stepped(void)
{
	struct sigtrap_queue *queue = current->perf_sigtrap;

	if (queue && !sigtrap_is_empty(queue))
		add_work(queue);
}

/*
 * A system call that waits with a mask of its own, as sigsuspend(), must return if this mask
 * unblocks SIGTRAP. The work may have been added before, without interrupting. Not when a
 * signal was dequeued: its core dump would be interrupted. sigtimedwait() clears SIGTRAP in
 * current->blocked only while it waits.
 */
void __perf_sigtrap_recalc(void)
{
	struct sigtrap_queue *queue = current->perf_sigtrap;
	bool was_blocked = queue->blocked;

	if (!queue->waits)
		return;
	queue->blocked = sigismember(&current->blocked, SIGTRAP) ||
			 sigismember(&current->real_blocked, SIGTRAP);
	if (sigismember(&current->pending.signal, SIGTRAP))
		return;

	add_work(queue);
	if (was_blocked && !queue->blocked)
		set_notify_signal(current);
}

/* ---- Hits ---- */

static void fill_in(struct sigtrap_hit *hit, const struct perf_event *event,
		    const struct perf_sample_data *data, bool user)
{
	/* A thread that was interrupted in user mode has the same mask when task work runs. */
	bool blocked = user && sigismember(&current->blocked, SIGTRAP);

	hit->sync = user && !blocked && is_breakpoint(event);
	hit->async = blocked;
	hit->data = event->attr.sig_data;
	hit->addr = 0;
	/* An event that excludes the kernel must not disclose kernel addresses. */
	if ((user || !event->attr.exclude_kernel) &&
	    data->sample_flags & PERF_SAMPLE_ADDR)
		hit->addr = data->addr;
}

/* A hit that is not stored coalesces with another one, unless all hits are queued. */
static void lose_hit(struct perf_event *event)
{
	if (event->sigtrap->queue)
		atomic64_inc(&(event->parent ?: event)->lost_samples);
}

static void store_hit(struct sigtrap_queue *queue, struct perf_event *event,
		      const struct perf_sample_data *data, bool user)
{
	struct sigtrap_hit *hit = sigtrap_get(queue, event->sigtrap);

	if (hit) {
		fill_in(hit, event, data, user);
		sigtrap_add(queue, hit);
	} else {
		lose_hit(event);
	}
	add_work(queue);
}

/*
 * Sends the signal of a hit in the exception, unless another one may have to be sent first.
 * The thread was in user mode and holds no lock; on PREEMPT_RT the siglock sleeps.
 */
static bool send_at_once(struct sigtrap_queue *queue, const struct perf_event *event,
			 const struct perf_sample_data *data)
{
	struct sigtrap_hit hit = { .sigtrap = event->sigtrap };
	bool sent;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) ||
	    !(data->sample_flags & PERF_SAMPLE_ONLY_CAUSE) || !sigtrap_is_empty(queue))
		return false;

	fill_in(&hit, event, data, true);
	set_sending(queue, true);
	spin_lock(siglock());
	sent = !sigismember(&current->pending.signal, SIGTRAP);
	if (sent)
		send_signal(&hit, false);
	spin_unlock(siglock());
	set_sending(queue, false);

	return sent;
}

void perf_sigtrap_hit(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	struct sigtrap_queue *queue = current->perf_sigtrap;
	struct perf_event_context *ctx = event->ctx;
	unsigned long flags;
	bool can_send;

	/* Threads that do not return to user mode; one that exits frees its queue. */
	if (!queue || current->flags & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return;

	/*
	 * Software events are hit with interrupts enabled. The IPI that removes or disables
	 * @event must not come between the check of event->state and sigtrap_get(), which
	 * reads the number: the hit would not be dropped.
	 */
	local_irq_save(flags);
	/* In a context switch ctx->task may already be the next task. */
	can_send = (READ_ONCE(ctx->task) == current || event->process) &&
		   READ_ONCE(event->state) >= PERF_EVENT_STATE_INACTIVE &&
		   !READ_ONCE(queue->sending);
	if (!can_send)
		lose_hit(event);
	else if (!send_at_once(queue, event, data))
		store_hit(queue, event, data, regs && user_mode(regs));
	local_irq_restore(flags);
}

bool __perf_sigtrap_is_due(const struct sigtrap_queue *queue)
{
	return !sigtrap_is_empty(queue);
}

/* ---- Dropping hits ---- */

void __perf_sigtrap_drop(struct perf_event *event)
{
	lockdep_assert_held(&event->ctx->lock);

	WRITE_ONCE(event->sigtrap->dropped, event->sigtrap->dropped + 1);
}

void perf_sigtrap_drop_group(struct perf_event *event)
{
	struct perf_event *sibling;

	perf_sigtrap_drop(event);
	for_each_sibling_event(sibling, event)
		perf_sigtrap_drop(sibling);
}

/*
 * The address of a hit that waits is stale after a modify. Any other hit is sent before the
 * thread returns to user mode, as if that had been before the modify.
 */
void perf_sigtrap_modify(struct perf_event *event)
{
	WRITE_ONCE(event->sigtrap->modified, event->sigtrap->modified + 1);
}

/*
 * The events end, see attr.remove_on_exec, and exec_update_lock keeps others from opening new
 * ones. exec keeps pending signals: a SIGTRAP would kill the new image, which has no handler.
 */
void perf_sigtrap_exec(void)
{
	kernel_siginfo_t info;
	enum pid_type type;
	struct sigqueue *q;
	sigset_t others;

	perf_sigtrap_exit(current);
	if (!sigismember(&current->pending.signal, SIGTRAP))
		return;

	siginitsetinv(&others, sigmask(SIGTRAP));
	spin_lock_irq(siglock());
	list_for_each_entry(q, &current->pending.list, list) {
		if (q->info.si_signo == SIGTRAP && q->info.si_code == TRAP_PERF) {
			/* A legacy signal is queued at most once: this dequeues @q. */
			dequeue_signal(&others, &info, &type);
			break;
		}
	}
	spin_unlock_irq(siglock());
}

/* ---- Queues ---- */

static enum perf_sigtrap_need need_of(const struct perf_sigtrap *sigtrap)
{
	return sigtrap->queue ? PERF_SIGTRAP_QUEUE : PERF_SIGTRAP;
}

static bool is_enough(const struct sigtrap_queue *queue, enum perf_sigtrap_need need)
{
	return queue && (queue->more || need < PERF_SIGTRAP_QUEUE);
}

/* Under perf_event_mutex of @task, unless @task is about to be created */
static int add_queue(struct task_struct *task, enum perf_sigtrap_need need, gfp_t gfp)
{
	struct sigtrap_queue *queue = task->perf_sigtrap;
	struct sigtrap_hit *more;

	if (!need || is_enough(queue, need))
		return 0;
	if (!queue) {
		queue = kzalloc(sizeof(*queue), gfp);
		if (!queue)
			return -ENOMEM;
		sigtrap_add_elements(queue, queue->hit, SIGTRAP_HITS);
		/* Pairs with the address dependency in perf_sigtrap_hit(). */
		smp_store_release(&task->perf_sigtrap, queue);
	}
	if (need < PERF_SIGTRAP_QUEUE)
		return 0;

	more = kcalloc(SIGTRAP_QUEUED_MAX, sizeof(*more), gfp);
	if (!more)
		return -ENOMEM;
	sigtrap_add_elements(queue, more, SIGTRAP_QUEUED_MAX);
	queue->more = more;

	return 0;
}

/* As in find_get_context(): a task that exits takes the mutex with PF_EXITING set. */
static int add_queue_locked(struct task_struct *task, enum perf_sigtrap_need need)
{
	guard(mutex)(&task->perf_event_mutex);
	return task->flags & PF_EXITING ? -ESRCH : add_queue(task, need, GFP_KERNEL_ACCOUNT);
}

static int add_queues_of_threads(struct signal_struct *signal, enum perf_sigtrap_need need)
{
	struct task_struct *thread;
	bool alive;
	int err;

	guard(rcu)();
again:
	__for_each_thread(signal, thread) {
		/* A thread that has a queue is passed over when the walk starts again. */
		if (thread->flags & (PF_EXITING | PF_USER_WORKER) ||
		    is_enough(READ_ONCE(thread->perf_sigtrap), need))
			continue;
		get_task_struct(thread);
		rcu_read_unlock();
		err = fatal_signal_pending(current) ? -EINTR : add_queue_locked(thread, need);
		cond_resched();
		rcu_read_lock();
		alive = pid_alive(thread);
		put_task_struct(thread);
		if (err && err != -ESRCH)
			return err;
		if (!alive)
			goto again;
	}

	return 0;
}

int __perf_sigtrap_open(struct perf_event *event, struct task_struct *task)
{
	enum perf_sigtrap_need need = need_of(event->sigtrap);
	struct perf_process *process = event->process;
	int err;

	if (!process)
		return add_queue_locked(task, need);

	lockdep_assert_held(&process->mutex);
	if (process->sigtrap_done >= need)
		return 0;
	scoped_guard(read_lock, &tasklist_lock)
		WRITE_ONCE(process->sigtrap, max_t(u8, process->sigtrap, need));
	err = add_queues_of_threads(task->signal, need);
	if (!err)
		process->sigtrap_done = need;

	return err;
}

int __perf_sigtrap_clone(struct task_struct *child, const struct perf_process *process,
			 gfp_t gfp)
{
	/* perf_sigtrap_hit() stores no hits of a worker of io_uring or vhost. */
	if (child->flags & PF_USER_WORKER)
		return 0;

	return add_queue(child, READ_ONCE(process->sigtrap), gfp);
}

/* current executes a program or exits, or @task has not run. */
void __perf_sigtrap_exit(struct task_struct *task)
{
	struct sigtrap_queue *queue = task->perf_sigtrap;

	/* No hit is stored from here on, and so no work is added. */
	WRITE_ONCE(task->perf_sigtrap, NULL);
	barrier();
	if (queue->added)
		task_work_cancel(task, &queue->work);
	sigtrap_send(queue, false, NULL);
	kfree(queue->more);
	/* add_queues_of_threads() may look at it. */
	kfree_rcu(queue, work);
}

/* ---- Events ---- */

int perf_sigtrap_alloc(struct perf_event *event)
{
	struct perf_sigtrap *sigtrap;

	if (!event->attr.sigtrap)
		return 0;

	sigtrap = kzalloc(sizeof(*sigtrap), GFP_KERNEL_ACCOUNT);
	if (!sigtrap)
		return -ENOMEM;

	refcount_set(&sigtrap->refs, 1);
	sigtrap->family = event->parent ? event->parent->sigtrap : sigtrap;
	sigtrap->type = event->orig_type;
	sigtrap->queue = is_breakpoint(event) && hw_breakpoint_queues_sigtrap(&event->attr);
	event->sigtrap = sigtrap;
	/* The new task of an event that is inherited */
	if (event->parent && event->attach_state & PERF_ATTACH_TASK)
		return add_queue(event->hw.target, need_of(sigtrap), GFP_KERNEL_ACCOUNT);

	return 0;
}

void perf_sigtrap_free(struct perf_event *event)
{
	if (event->sigtrap)
		sigtrap_put(event->sigtrap);
}
