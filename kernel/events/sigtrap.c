// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: send SIGTRAP to the thread that hits an event.
 *
 * An event may be hit in an NMI or with the siglock held, where no signal can
 * be sent. The hit is stored in the event and put on the list of the event's
 * context; task work sends the signal on the way back to user mode. The exception handler
 * itself sends it if the hit of a breakpoint is the only cause of an exception in user
 * mode and no other hit or SIGTRAP of the thread waits.
 *
 * SIGTRAP is a legacy signal: a SIGTRAP that is sent while another one is
 * pending for the thread is dropped. So several hits coalesce into one signal
 * if they are made while SIGTRAP is blocked, made by the kernel on behalf of
 * the thread, or made by events that are not breakpoints. Two kinds of hits do
 * not coalesce but wait until no SIGTRAP is pending:
 *
 *  - hits of several breakpoints by one instruction in user mode. While the handler
 *    of the first signal runs and blocks SIGTRAP the other hits are not made
 *    pending either, so that the handler can close or disable their events;
 *  - all hits of an event with HW_BREAKPOINT_SIGTRAP_QUEUE, up to a limit for the
 *    event and one for all such events of the thread.
 *
 * A hit of an event of a process is stored in the thread that made it, because a
 * thread may be preempted before its signal is sent, and others may hit the same
 * event meanwhile. It refers to the head of the family. The hit is still to be sent if
 * perf_sigtrap::dropped of the head is the same as at the time of the hit; if the hit
 * waits and is not queued, perf_sigtrap::modified of the head must also have the value
 * that it had in the member at the time of the hit. A hit is stored without a lock or an
 * allocation, so that a thread has few elements for new hits. If a hit of an event with
 * HW_BREAKPOINT_SIGTRAP_QUEUE has to wait, task work moves it to a list of the thread.
 *
 * recalc_sigpending() is called after each change of the pending or blocked signals
 * and adds the task work again if a hit waits.
 *
 * Locking: ctx->lock protects the hits that are due and nests inside the siglock. A
 * signal is sent with the siglock held and after ctx->lock has been released.
 * perf_event_context_sched_out() does not swap a context that has hits due: they
 * belong to the task.
 */

#include <linux/cleanup.h>
#include <linux/hw_breakpoint.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
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
	return (hit->sync || hit->storage->queue) &&
	       sigismember(&current->pending.signal, SIGTRAP);
}

static void describe(struct kernel_siginfo *info, const struct sigtrap_hit *hit,
		     bool blocked)
{
	clear_siginfo(info);
	info->si_signo = SIGTRAP;
	info->si_code = TRAP_PERF;
	info->si_addr = (void __user *)(unsigned long)hit->addr;
	info->si_perf_data = hit->data;
	info->si_perf_type = hit->type;
	if (hit->async || blocked)
		info->si_perf_flags = TRAP_PERF_FLAG_ASYNC;
}

/* Find the first hit that can be sent now, skipping hits that have to wait. */
static struct sigtrap_hit *first_to_send(struct perf_event_context *ctx, bool blocked)
{
	struct sigtrap_hit *hit;

	current->perf_sigtrap_waits = false;
	list_for_each_entry(hit, &ctx->sigtrap.due, link) {
		if (!has_to_wait(hit, blocked))
			return hit;
		current->perf_sigtrap_waits = true;
	}
	return NULL;
}

/* Send one hit. Returns false if no more hits are due, or none can be sent now. */
static bool send_first(struct perf_event_context *ctx)
{
	bool blocked = sigismember(&current->blocked, SIGTRAP), own;
	struct kernel_siginfo info;
	struct sigtrap_hit *hit;
	bool more;

	lockdep_assert_held(siglock());

	scoped_guard(raw_spinlock_irqsave, &ctx->lock) {
		if (ctx->task != current)
			return false;
		sigtrap_collect(&ctx->sigtrap);
		hit = first_to_send(ctx, blocked);
		if (!hit)
			return false;
		describe(&info, hit, blocked);
		own = sigtrap_take(&ctx->sigtrap, hit, current);
		more = perf_sigtrap_is_due(ctx);
	}

	if (own)
		send_signal_locked(SIGTRAP, &info, current, PIDTYPE_PID);
	return more;
}

/* ---- Hits of events of a process ---- */

/* Puts a reference to the head of a family. */
static void (*put_head)(struct perf_event *head) __ro_after_init;

void __init perf_sigtrap_init(void (*put_event)(struct perf_event *event))
{
	put_head = put_event;
}

/* Numbers of the bits of perf_process_hits::state for element @i */
static unsigned int busy_bit(unsigned int i)
{
	return i;
}

static unsigned int due_bit(unsigned int i)
{
	return PERF_PROCESS_HITS + i;
}

static unsigned int waits_bit(unsigned int i)
{
	return 2 * PERF_PROCESS_HITS + i;
}

/* perf_process_hits::queued is not empty. */
#define QUEUED_BIT	(3 * PERF_PROCESS_HITS)

static_assert(QUEUED_BIT < BITS_PER_LONG);

/**
 * struct perf_process_queued - a hit that waits, of an event that queues all hits
 * @next: the next newer one
 * @hit: the hit
 */
struct perf_process_queued {
	struct perf_process_queued	*next;
	struct perf_process_hit		hit;
};

static bool is_due(const struct perf_process_hits *hits, unsigned int i)
{
	return test_bit(due_bit(i), &hits->state);
}

static bool is_queued(const struct perf_process_hit *hit)
{
	return hit->head->sigtrap->queue;
}

/* perf_process_hit::dropped and ::modified have 31 bits. */
static u32 counter(const atomic_t *counter)
{
	return atomic_read(counter) & S32_MAX;
}

static bool is_dropped(const struct perf_process_hit *hit, bool waits)
{
	const struct perf_sigtrap *sigtrap = hit->head->sigtrap;

	return READ_ONCE(hit->head->state) <= PERF_EVENT_STATE_EXIT ||
	       hit->dropped != counter(&sigtrap->dropped) ||
	       (waits && !sigtrap->queue && hit->modified != counter(&sigtrap->modified));
}

static bool process_hit_has_to_wait(const struct perf_process_hit *hit, bool blocked)
{
	if (hit->sync && blocked)
		return true;
	return (hit->sync || is_queued(hit)) &&
	       sigismember(&current->pending.signal, SIGTRAP);
}

static void send_process_hit(const struct perf_process_hit *hit, bool blocked)
{
	struct kernel_siginfo info;
	struct sigtrap_hit sent = {
		.addr	= hit->addr,
		.data	= hit->data,
		.type	= hit->head->orig_type,
		.async	= hit->async,
	};

	describe(&info, &sent, blocked);
	send_signal_locked(SIGTRAP, &info, current, PIDTYPE_PID);
}

/* Returns true if the hit is done, and false if it waits. */
static bool try_to_send(const struct perf_process_hit *hit, bool waits, bool blocked)
{
	if (is_dropped(hit, waits))
		return true;
	if (process_hit_has_to_wait(hit, blocked)) {
		current->perf_sigtrap_waits = true;
		return false;
	}
	send_process_hit(hit, blocked);
	return true;
}

/* ---- Queued hits of events of a process ---- */

/*
 * The end of the list; NULL if no hit of @head can be added. The limit for all events
 * bounds the walks with the siglock held, and the events that are kept after close().
 */
static struct perf_process_queued **end_of_queue(struct perf_process_hits *hits,
						 const struct perf_event *head)
{
	struct perf_process_queued **link = &hits->queued;
	unsigned int nr = 0, of_head = 0;

	if (!test_bit(QUEUED_BIT, &hits->state))
		return link;
	for (; *link; link = &(*link)->next) {
		of_head += (*link)->hit.head == head;
		nr++;
	}

	return of_head < HW_BREAKPOINT_SIGTRAPS && nr < SIGTRAP_QUEUED_MAX ? link : NULL;
}

/* Allocates an element for each new hit that may have to wait; fewer without memory. */
static struct perf_process_queued *alloc_queued(const struct perf_process_hits *hits)
{
	bool may_wait = sigismember(&current->blocked, SIGTRAP) ||
			sigismember(&current->pending.signal, SIGTRAP);
	struct perf_process_queued *first = NULL, *queued;
	unsigned int i;

	for (i = 0; i < PERF_PROCESS_HITS; i++) {
		if (!is_due(hits, i))
			continue;
		if (may_wait && is_queued(&hits->hit[i])) {
			queued = kmalloc(sizeof(*queued), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
			if (!queued)
				break;
			queued->next = first;
			first = queued;
		}
		/* The signal of this hit may still be pending when the next hit is sent. */
		may_wait = true;
	}

	return first;
}

static void free_queued(struct perf_process_queued *queued)
{
	struct perf_process_queued *next;

	for (; queued; queued = next) {
		next = queued->next;
		kfree(queued);
	}
}

static void put_queued(struct perf_process_queued *queued)
{
	struct perf_process_queued *each;

	for (each = queued; each; each = each->next)
		put_head(each->hit.head);
	free_queued(queued);
}

/*
 * Move hit @i to the queue. Without an element in @prealloc the hit stays in place until
 * task work runs again. Returns false if the queue is full: the hit is lost.
 */
static bool queue_process_hit(struct perf_process_hits *hits, unsigned int i,
			      struct perf_process_queued **prealloc)
{
	struct perf_process_queued *queued = *prealloc, **end;

	end = end_of_queue(hits, hits->hit[i].head);
	if (!end) {
		atomic64_inc(&hits->hit[i].head->lost_samples);
		return false;
	}
	if (!queued)
		return true;

	*prealloc = queued->next;
	queued->next = NULL;
	queued->hit = hits->hit[i];
	*end = queued;
	set_bit(QUEUED_BIT, &hits->state);
	clear_bit(due_bit(i), &hits->state);
	clear_bit_unlock(busy_bit(i), &hits->state);
	return true;
}

/* Returns the hits that are done; their heads have a reference each. */
static struct perf_process_queued *send_queued_hits(struct perf_process_hits *hits,
						    bool blocked)
{
	struct perf_process_queued **link = &hits->queued, *queued, *done = NULL;

	if (!test_bit(QUEUED_BIT, &hits->state))
		return NULL;

	while ((queued = *link)) {
		if (!try_to_send(&queued->hit, true, blocked)) {
			link = &queued->next;
			continue;
		}
		*link = queued->next;
		queued->next = done;
		done = queued;
	}
	if (!hits->queued)
		clear_bit(QUEUED_BIT, &hits->state);

	return done;
}

/* ---- New hits of events of a process ---- */

/* Returns true if the hit is done. */
static bool send_new_hit(struct perf_process_hits *hits, unsigned int i, bool blocked,
			 struct perf_process_queued **prealloc)
{
	if (try_to_send(&hits->hit[i], test_bit(waits_bit(i), &hits->state), blocked))
		return true;
	if (is_queued(&hits->hit[i]))
		return !queue_process_hit(hits, i, prealloc);
	set_bit(waits_bit(i), &hits->state);
	return false;
}

/* Returns the hits that are done, as bits; their heads have a reference each. */
static unsigned int send_new_hits(struct perf_process_hits *hits, bool blocked,
				  struct perf_process_queued **prealloc)
{
	unsigned int i, done = 0;

	for (i = 0; i < PERF_PROCESS_HITS; i++) {
		if (!is_due(hits, i) || !send_new_hit(hits, i, blocked, prealloc))
			continue;
		clear_bit(due_bit(i), &hits->state);
		done |= BIT(i);
	}

	return done;
}

static void put_process_hits(unsigned int done)
{
	struct perf_process_hits *hits = &current->perf_process_hits;
	struct perf_event *head;
	unsigned int i;

	for (i = 0; done >> i; i++) {
		if (!(done & BIT(i)))
			continue;
		head = hits->hit[i].head;
		clear_bit_unlock(busy_bit(i), &hits->state);
		put_head(head);
	}
}

/* The element of a hit of @head that is due, or negative */
static int find_due(const struct perf_process_hits *hits, const struct perf_event *head)
{
	unsigned int i;

	for (i = 0; i < PERF_PROCESS_HITS; i++) {
		if (is_due(hits, i) && hits->hit[i].head == head)
			return i;
	}

	return -1;
}

static int alloc_process_hit(struct perf_process_hits *hits)
{
	unsigned int i;

	/* Atomic only against interrupts, exceptions and NMIs: no other thread uses @hits. */
	for (i = 0; i < PERF_PROCESS_HITS; i++) {
		if (!test_and_set_bit_lock(busy_bit(i), &hits->state))
			return i;
	}

	return -1;
}

/* ---- Task work ---- */

/**
 * struct process_sending - the hits of events of a process while they are sent
 * @prealloc: allocated elements for hits that have to wait
 * @queued: queued hits that are done
 * @new: new hits that are done, as bits
 */
struct process_sending {
	struct perf_process_queued	*prealloc;
	struct perf_process_queued	*queued;
	unsigned int			new;
};

static void send_process_hits(struct process_sending *sending)
{
	bool blocked = sigismember(&current->blocked, SIGTRAP);
	struct perf_process_hits *hits = &current->perf_process_hits;

	lockdep_assert_held(siglock());

	sending->queued = send_queued_hits(hits, blocked);
	sending->new = send_new_hits(hits, blocked, &sending->prealloc);
}

static void end_sending(struct process_sending *sending)
{
	put_process_hits(sending->new);
	put_queued(sending->queued);
	free_queued(sending->prealloc);
}

/*
 * Number of hits of events of a thread that are sent with interrupts off. Without
 * HW_BREAKPOINT_SIGTRAP_QUEUE an event has one hit due at most, but a thread may have any
 * number of events.
 */
#define SENT_AT_ONCE	32

/* Returns true if more hits can be sent. */
static bool send_thread_hits(void)
{
	/* Not rcu_dereference(): perf_event_ctxp has no __rcu annotation. */
	struct perf_event_context *ctx = READ_ONCE(current->perf_event_ctxp);
	bool more = ctx;
	int i;

	lockdep_assert_held(siglock());

	for (i = 0; more && i < SENT_AT_ONCE; i++)
		more = send_first(ctx);
	return more;
}

static void add_work(void);

static void send_hits(struct callback_head *work)
{
	struct process_sending sending = { };
	bool of_process, more;

	/* Drop hits caused by sending itself, or sending never ends. */
	WRITE_ONCE(current->perf_sigtrap_sending, true);
	barrier();
	WRITE_ONCE(current->perf_sigtrap_added, 0);

	of_process = READ_ONCE(current->perf_process_hits.state);
	if (unlikely(of_process))
		sending.prealloc = alloc_queued(&current->perf_process_hits);
	rcu_read_lock();
	spin_lock_irq(siglock());
	current->perf_sigtrap_waits = false;
	more = send_thread_hits();
	if (unlikely(of_process) && likely(!more))
		send_process_hits(&sending);
	spin_unlock_irq(siglock());
	rcu_read_unlock();
	if (unlikely(more))
		add_work();

	barrier();
	WRITE_ONCE(current->perf_sigtrap_sending, false);
	if (unlikely(of_process))
		end_sending(&sending);
}

static void add_work(void)
{
	int mode = in_nmi() ? TWA_NMI_CURRENT : TWA_RESUME | TWAF_NO_ALLOC;

	if (xchg(&current->perf_sigtrap_added, 1))
		return;
	/* Fails only in an exiting task, which gets no more signals. */
	init_task_work(&current->perf_sigtrap_work, send_hits);
	task_work_add(current, &current->perf_sigtrap_work, mode);
}

void __perf_sigtrap_recalc(void)
{
	if (!sigismember(&current->pending.signal, SIGTRAP))
		add_work();
}

/* ---- Hits ---- */

static void fill_in(struct sigtrap_hit *hit, const struct perf_event *event,
		    const struct perf_sample_data *data, bool user)
{
	/*
	 * A thread that was interrupted in user mode cannot change its mask before
	 * the task work runs, so the mask is the same when the signal is sent.
	 */
	bool blocked = user && sigismember(&current->blocked, SIGTRAP);

	hit->task = current;
	hit->sync = user && !blocked && is_breakpoint(event);
	hit->async = blocked;
	hit->type = event->orig_type;
	hit->data = event->attr.sig_data;
	hit->addr = 0;
	/* An event that excludes the kernel must not disclose kernel addresses. */
	if ((user || !event->attr.exclude_kernel) &&
	    data->sample_flags & PERF_SAMPLE_ADDR)
		hit->addr = data->addr;
}

static void fill_in_process_hit(struct perf_process_hit *hit,
				const struct perf_event *event, struct perf_event *head,
				const struct sigtrap_hit *from)
{
	*hit = (struct perf_process_hit) {
		.head		= head,
		.addr		= from->addr,
		.data		= from->data,
		.sync		= from->sync,
		.async		= from->async,
		.dropped	= counter(&head->sigtrap->dropped),
		.modified	= counter(&event->sigtrap->modified),
	};
}

/*
 * Returns the element in which to store a hit of @head, with a reference to @head; or a
 * negative number if no element is free, or if this hit coalesces with one that is due.
 * A hit whose signal will not be sent any more is replaced, with its reference: besides
 * this code only task work of this thread uses the element.
 */
static int get_process_hit(struct perf_process_hits *hits, struct perf_event *head)
{
	int i = head->sigtrap->queue ? -1 : find_due(hits, head);

	if (i >= 0) {
		if (!is_dropped(&hits->hit[i], test_bit(waits_bit(i), &hits->state)))
			return -1;
		clear_bit(due_bit(i), &hits->state);
		return i;
	}
	i = alloc_process_hit(hits);
	if (i < 0)
		atomic64_inc(&head->lost_samples);
	else
		/* A member that is active has a reference to its head. */
		atomic_long_inc(&head->refcount);

	return i;
}

/* Interrupts are off: @event stays in the state that it is in. */
static void process_hit(struct perf_event *event, const struct perf_sample_data *data,
			bool user)
{
	struct perf_process_hits *hits = &current->perf_process_hits;
	struct perf_event *head = event->parent ?: event;
	struct sigtrap_hit from;
	int i;

	/* No task work runs any more, see perf_sigtrap_exit(). */
	if (current->flags & PF_EXITING)
		return;
	i = get_process_hit(hits, head);
	if (i < 0)
		return;
	fill_in(&from, event, data, user);
	fill_in_process_hit(&hits->hit[i], event, head, &from);
	clear_bit(waits_bit(i), &hits->state);
	barrier();
	set_bit(due_bit(i), &hits->state);
}

void __perf_sigtrap_exit(void)
{
	struct perf_process_hits *hits = &current->perf_process_hits;
	unsigned int i, done = 0;

	for (i = 0; i < PERF_PROCESS_HITS; i++) {
		if (test_and_clear_bit(due_bit(i), &hits->state))
			done |= BIT(i);
	}
	put_process_hits(done);
	if (test_and_clear_bit(QUEUED_BIT, &hits->state))
		put_queued(hits->queued);
}

/* A hit that is not stored coalesces with another one, unless all hits are queued. */
static void lose_hit(struct perf_event *event)
{
	if (event->sigtrap->queue)
		atomic64_inc(event->sigtrap->lost);
}

static void thread_hit(struct perf_event *event, const struct perf_sample_data *data,
		       bool user)
{
	struct sigtrap_list *list = &event->ctx->sigtrap;
	struct sigtrap_hit *hit = sigtrap_alloc(list, event->sigtrap);

	if (!hit) {
		lose_hit(event);
		return;
	}
	fill_in(hit, event, data, user);
	sigtrap_add(list, hit);
}

static void store_hit(struct perf_event *event, const struct perf_sample_data *data,
		      bool user)
{
	if (event->process)
		process_hit(event, data, user);
	else
		thread_hit(event, data, user);
	add_work();
}

static bool is_any_due(void)
{
	const struct perf_event_context *ctx = READ_ONCE(current->perf_event_ctxp);

	return (ctx && perf_sigtrap_is_due(ctx)) || READ_ONCE(current->perf_process_hits.state);
}

/*
 * Sends the signal of a hit in the exception, unless another signal may have to be sent
 * first. The thread was interrupted in user mode, so it holds no lock. Not on PREEMPT_RT,
 * where the siglock sleeps.
 */
static bool send_at_once(const struct perf_event *event, const struct perf_sample_data *data)
{
	struct kernel_siginfo info;
	struct sigtrap_hit hit;
	bool now;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) ||
	    !(data->sample_flags & PERF_SAMPLE_ONLY_CAUSE) || is_any_due())
		return false;

	fill_in(&hit, event, data, true);
	describe(&info, &hit, false);
	/* Drop hits caused by sending, see send_hits(). */
	WRITE_ONCE(current->perf_sigtrap_sending, true);
	barrier();
	spin_lock(siglock());
	now = !sigismember(&current->pending.signal, SIGTRAP);
	if (now)
		send_signal_locked(SIGTRAP, &info, current, PIDTYPE_PID);
	spin_unlock(siglock());
	barrier();
	WRITE_ONCE(current->perf_sigtrap_sending, false);

	return now;
}

void perf_sigtrap_hit(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	struct perf_event_context *ctx = event->ctx;
	unsigned long flags;
	bool can_send;

	/* Kernel threads and user workers do not return to user mode. */
	if (current->flags & (PF_KTHREAD | PF_USER_WORKER))
		return;

	/*
	 * Software events are hit with interrupts enabled. Disable them, so that the
	 * IPI by which another CPU removes or disables @event does not come between
	 * the check of event->state and sigtrap_add(): the hit would stay on the list
	 * of the context after @event has left it.
	 */
	local_irq_save(flags);
	/* In a context switch ctx->task may already be the next task. */
	can_send = (READ_ONCE(ctx->task) == current || event->process) &&
		   READ_ONCE(event->state) >= PERF_EVENT_STATE_INACTIVE &&
		   !READ_ONCE(current->perf_sigtrap_sending);
	if (!can_send)
		lose_hit(event);
	else if (!send_at_once(event, data))
		store_hit(event, data, regs && user_mode(regs));
	local_irq_restore(flags);
}

/* ---- Dropping hits ---- */

void __perf_sigtrap_drop(struct perf_event *event)
{
	lockdep_assert_held(&event->ctx->lock);

	if (event->process) {
		atomic_inc(&(event->parent ?: event)->sigtrap->dropped);
		return;
	}
	sigtrap_collect(&event->ctx->sigtrap);
	sigtrap_drop(&event->ctx->sigtrap, event->sigtrap);
}

/*
 * The head of a family is changed first, and no other change begins before the last
 * member is changed: a hit of a member that is still to be changed has the previous
 * number, and one of a member that has been changed has the number of the head.
 */
static void modify_process(struct perf_event *event, bool off)
{
	struct perf_event *head = event->parent;

	if (off)
		__perf_sigtrap_drop(event);
	if (head)
		atomic_set(&event->sigtrap->modified, atomic_read(&head->sigtrap->modified));
	else
		atomic_inc(&event->sigtrap->modified);
}

/*
 * A hit on sigtrap_list::due waits for another signal to be handled; its address is
 * stale after a modify, so drop it. A hit on sigtrap_list::new is sent before the
 * thread returns to user mode, as if it had been sent before the modify.
 */
void perf_sigtrap_modify(struct perf_event *event, bool off)
{
	lockdep_assert_held(&event->ctx->lock);

	if (event->process) {
		modify_process(event, off);
		return;
	}
	if (off)
		sigtrap_collect(&event->ctx->sigtrap);
	if (off || !event->sigtrap->queue)
		sigtrap_drop(&event->ctx->sigtrap, event->sigtrap);
}

/*
 * exec keeps pending signals: a SIGTRAP of an event of the old image would kill
 * the new one, which has no handler.
 */
void perf_sigtrap_exec(void)
{
	kernel_siginfo_t info;
	enum pid_type type;
	struct sigqueue *q;
	sigset_t others;

	if (!sigismember(&current->pending.signal, SIGTRAP))
		return;

	siginitsetinv(&others, sigmask(SIGTRAP));
	spin_lock_irq(siglock());
	list_for_each_entry(q, &current->pending.list, list) {
		if (q->info.si_signo != SIGTRAP || q->info.si_code != TRAP_PERF)
			continue;
		/* A legacy signal is queued at most once: this dequeues @q. */
		dequeue_signal(&others, &info, &type);
		break;
	}
	spin_unlock_irq(siglock());
}

/* ---- Allocation ---- */

int perf_sigtrap_alloc(struct perf_event *event)
{
	struct perf_sigtrap *sigtrap;
	unsigned int nr = 1, i;
	bool queue;

	if (!event->attr.sigtrap)
		return 0;

	queue = is_breakpoint(event) && hw_breakpoint_queues_sigtrap(&event->attr);
	/* Hits of an event of a process are stored in the threads. */
	if (queue && !(event->attr.config & HW_BREAKPOINT_PROCESS))
		nr = HW_BREAKPOINT_SIGTRAPS;
	sigtrap = kzalloc(struct_size(sigtrap, hit, nr), GFP_KERNEL_ACCOUNT);
	if (!sigtrap)
		return -ENOMEM;

	sigtrap->nr = nr;
	sigtrap->queue = queue;
	sigtrap->lost = &(event->parent ?: event)->lost_samples;
	for (i = 0; i < nr; i++)
		sigtrap->hit[i].storage = sigtrap;
	event->sigtrap = sigtrap;
	return 0;
}

void perf_sigtrap_free(struct perf_event *event)
{
	struct perf_sigtrap *sigtrap = event->sigtrap;

	/* Leak the storage rather than free a hit that is still on a list. */
	if (sigtrap && !WARN_ON_ONCE(sigtrap->busy))
		kfree(sigtrap);
}
