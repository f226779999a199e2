// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: each hit becomes a SIGTRAP in the thread that made it.
 *
 * The signal cannot be sent where the hit is made, which may be an NMI, or have
 * interrupted somebody who holds the siglock.  What it will say is written down
 * there, and task work sends it on the way back to user mode, before the next
 * instruction.
 *
 * Only one SIGTRAP can be pending for a thread, and it has room for the data of
 * one hit.  So hits wait in a queue.  The next is sent when no SIGTRAP is
 * pending: whoever takes one off the pending set of the thread has the task work
 * run once more.  Nothing refers to the event, which may be closed or changed
 * meanwhile.
 *
 * The queue comes with the first event of a thread that needs one, and stays
 * until the end of the thread.  It includes the struct sigqueue that is pending:
 * the delivery of a hit allocates nothing, and cannot fail.
 */

#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "internal.h"
#include "sigtrap.h"

/**
 * struct perf_sigtrap - what a thread needs to have hits sent to it
 * @hits: those that are due; taken out under the siglock
 * @work: sends them
 * @work_added: @work is on its way
 * @sending: @work is at it
 * @pending: the signal; on the list of the pending ones, or empty
 */
struct perf_sigtrap {
	struct sigtrap_hits	hits;
	struct callback_head	work;
	int			work_added;
	bool			sending;
	struct sigqueue		pending;
};

/* ---- Sending ---- */

static void describe(struct kernel_siginfo *info, const struct sigtrap_hit *hit)
{
	clear_siginfo(info);
	info->si_signo = SIGTRAP;
	info->si_code = TRAP_PERF;
	info->si_addr = (void __user *)(unsigned long)hit->addr;
	info->si_perf_data = hit->data;
	info->si_perf_type = hit->type;
	info->si_perf_flags = hit->flags;
}

/* Of current, which alone changes where it is */
static spinlock_t *siglock(void)
{
	return &rcu_access_pointer(current->sighand)->siglock;
}

static void send_next(struct callback_head *work)
{
	struct perf_sigtrap *st = container_of(work, struct perf_sigtrap, work);
	struct sigtrap_hit hit;

	/* A hit that comes from here on adds the work again. */
	xchg(&st->work_added, 0);

	spin_lock_irq(siglock());
	WRITE_ONCE(st->sending, true);
	/* One that is ignored does not become pending: then the next. */
	while (!sigismember(&current->pending.signal, SIGTRAP) &&
	       sigtrap_hits_take(&st->hits, &hit)) {
		describe(&st->pending.info, &hit);
		send_sigqueue_locked(&st->pending);
	}
	WRITE_ONCE(st->sending, false);
	spin_unlock_irq(siglock());
}

static void add_work(struct perf_sigtrap *st)
{
	int mode = in_nmi() ? TWA_NMI_CURRENT : TWA_RESUME | TWAF_NO_ALLOC;

	if (xchg(&st->work_added, 1))
		return;
	/* It fails when the task exits, which gets no signals any more. */
	if (task_work_add(current, &st->work, mode))
		WRITE_ONCE(st->work_added, 0);
}

/* ---- When something happens ---- */

void perf_sigtrap_hit(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	struct perf_sigtrap *st = READ_ONCE(current->perf_sigtrap);
	bool user = regs && user_mode(regs);
	struct sigtrap_hit hit = {
		.data	= event->attr.sig_data,
		.type	= event->orig_type,
	};

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return;
	if (WARN_ON_ONCE(!st))
		return;

	/* An event of user mode is not to tell where the kernel is. */
	if ((user || !event->attr.exclude_kernel) &&
	    data->sample_flags & PERF_SAMPLE_ADDR)
		hit.addr = data->addr;
	/* In user mode nobody changes what is blocked. */
	if (!user || sigismember(&current->blocked, SIGTRAP))
		hit.flags |= TRAP_PERF_FLAG_ASYNC;

	/* What sending a signal hits would have it send for ever. */
	if (READ_ONCE(st->sending) || !sigtrap_hits_put(&st->hits, &hit))
		atomic64_inc(&(event->parent ?: event)->lost_samples);
	add_work(st);
}

void __perf_sigtrap_next(void)
{
	struct perf_sigtrap *st = current->perf_sigtrap;

	if (sigtrap_hits_due(&st->hits))
		add_work(st);
}

void perf_sigtrap_forget(struct task_struct *task)
{
	struct perf_sigtrap *st = READ_ONCE(task->perf_sigtrap);

	lockdep_assert_held(&task->sighand->siglock);

	while (st && sigtrap_hits_take(&st->hits, NULL))
		;
}

void perf_sigtrap_exec(void)
{
	if (!current->perf_sigtrap)
		return;

	spin_lock_irq(siglock());
	perf_sigtrap_forget(current);
	flush_sigqueue_code(&current->pending, SIGTRAP, TRAP_PERF);
	recalc_sigpending();
	spin_unlock_irq(siglock());
}

/* ---- Beginning and end ---- */

static struct perf_sigtrap *sigtrap_alloc(void)
{
	struct perf_sigtrap *st = kzalloc(sizeof(*st), GFP_KERNEL_ACCOUNT);

	if (st) {
		init_task_work(&st->work, send_next);
		INIT_LIST_HEAD(&st->pending.list);
		st->pending.flags = SIGQUEUE_PREALLOC;
	}
	return st;
}

int perf_sigtrap_inherit(struct task_struct *child)
{
	if (!child->perf_sigtrap)
		child->perf_sigtrap = sigtrap_alloc();

	return child->perf_sigtrap ? 0 : -ENOMEM;
}

int perf_sigtrap_prepare(struct task_struct *task)
{
	struct perf_sigtrap *st __free(kfree) = NULL;
	int err = 0;

	/* It goes with the task, which needs no other by then. */
	if (READ_ONCE(task->perf_sigtrap))
		return 0;

	st = sigtrap_alloc();
	if (!st)
		return -ENOMEM;

	/* A task that exits takes it, too, and then frees what there is. */
	mutex_lock(&task->perf_event_mutex);
	if (task->flags & PF_EXITING)
		err = -ESRCH;
	else if (!task->perf_sigtrap)
		/* For those who find it without the mutex */
		smp_store_release(&task->perf_sigtrap, no_free_ptr(st));
	mutex_unlock(&task->perf_event_mutex);

	return err;
}

void perf_sigtrap_free(struct task_struct *task)
{
	kfree(task->perf_sigtrap);
	task->perf_sigtrap = NULL;
}
