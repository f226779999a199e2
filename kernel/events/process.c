// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a whole process; see process.h.
 */

#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "internal.h"
#include "process.h"

static const struct perf_process_ops *ops __ro_after_init;

void __init perf_process_init(const struct perf_process_ops *core)
{
	ops = core;
}

/* ---- Processes ---- */

static void destroy(struct perf_process *process)
{
	process->pmu->process_free(process);
	kvfree(process);
}

static void disable_at_limit(struct work_struct *work)
{
	struct perf_process *process = container_of(work, struct perf_process, limit);
	struct perf_event *head;

	guard(mutex)(&process->mutex);
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		/* Disabling takes ctx->mutex of the head: do so only at the limit. */
		if (perf_process_is_over(head))
			ops->disable_at_limit(head);
		cond_resched();
	}
}

void perf_process_disable_soon(struct perf_process *process)
{
	/* The work waits for other CPUs: it must not wait for this CPU, too, which may be busy. */
	queue_work(system_unbound_wq, &process->limit);
}

static struct perf_process *create(struct pmu *pmu)
{
	struct perf_process *process;
	int err;

	process = kvzalloc(struct_size(process, cpus, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!process)
		return ERR_PTR(-ENOMEM);

	mutex_init(&process->mutex);
	INIT_LIST_HEAD(&process->sb_heads);
	INIT_WORK(&process->limit, disable_at_limit);
	process->pmu = pmu;
	err = pmu->process_init(process);
	if (err) {
		kvfree(process);
		return ERR_PTR(err);
	}

	return process;
}

/*
 * No thread is missed: this walk finds the existing threads.  A new thread is linked
 * with the siglock held and joins in perf_event_link_thread().  A new context joins
 * when it makes a claim: either the claim sees signal->perf_process, or this walk finds
 * the context.
 *
 * No thread is refused: the caller holds the mutex of @process, so that the process
 * has no claims until all threads have joined. The siglock is held during the walk,
 * once in the life of a process, as it is for sending a signal to all threads.
 */
static void publish(struct signal_struct *signal, struct perf_process *process)
{
	struct task_struct *task;

	lockdep_assert_held(&process->mutex);

	/* Pairs with the load in join_process() of hw_breakpoint.c. */
	smp_store_release(&signal->perf_process, process);
	/* Order the store before the loads of the walk; pairs with join_process(). */
	smp_mb();
	__for_each_thread(signal, task) {
		/*
		 * Most threads have no events. Not rcu_access_pointer(): perf_event_ctxp
		 * has no __rcu annotation.
		 */
		if (READ_ONCE(task->perf_event_ctxp))
			ops->join(process, task);
	}
}

/*
 * Returns false if all threads have been released.  All threads share one siglock, and
 * lock_task_sighand() takes it through any thread that has not been released.
 */
static bool publish_to_threads(struct signal_struct *signal, struct perf_process *process)
{
	struct task_struct *thread;
	unsigned long flags;

	guard(rcu)();
	__for_each_thread(signal, thread) {
		if (!lock_task_sighand(thread, &flags))
			continue;
		publish(signal, process);
		unlock_task_sighand(thread, &flags);
		return true;
	}

	return false;
}

static struct perf_process *get_process(struct signal_struct *signal, struct pmu *pmu)
{
	struct perf_process *process, *new;
	static DEFINE_MUTEX(creation);

	process = READ_ONCE(signal->perf_process);
	if (process)
		return process;

	new = create(pmu);
	if (IS_ERR(new))
		return new;

	guard(mutex)(&creation);
	process = signal->perf_process;
	if (process) {
		destroy(new);
		return process;
	}
	scoped_guard(mutex, &new->mutex) {
		if (publish_to_threads(signal, new))
			return new;
	}
	destroy(new);

	return ERR_PTR(-ESRCH);
}

static void destroy_rcu(struct rcu_head *head)
{
	destroy(container_of(head, struct perf_process, rcu));
}

/* Free by RCU: the last reference to a task may be put where vfree() is not allowed. */
void __perf_process_free(struct perf_process *process)
{
	WARN_ON_ONCE(!hlist_empty(&process->heads));
	call_rcu(&process->rcu, destroy_rcu);
}

int __perf_event_link_thread(struct task_struct *child)
{
	struct perf_process *process = READ_ONCE(current->signal->perf_process);

	lockdep_assert_held(&current->sighand->siglock);

	return process ? perf_process_add_context(child->perf_event_ctxp, process) : 0;
}

/* ---- Families ---- */

static void free_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list) {
		list_del_init(&event->child_list);
		ops->free_member(event);
	}
}

static int alloc_member(struct perf_event *head, int cpu, struct perf_event *leader)
{
	struct perf_event *event = ops->alloc_member(head, cpu, leader);

	if (IS_ERR(event))
		return PTR_ERR(event);
	list_add_tail(&event->child_list, &head->child_list);

	return 0;
}

static int alloc_members(struct perf_event *head)
{
	int cpu, err = 0;

	for_each_possible_cpu(cpu) {
		if (cpu != head->cpu)
			err = err ?: alloc_member(head, cpu, NULL);
	}

	return err;
}

/* Allocates a sibling for the group on each CPU. */
static int alloc_siblings(struct perf_event *head)
{
	struct perf_event *leader;
	int err = 0;

	list_for_each_entry(leader, &head->group_leader->child_list, child_list)
		err = err ?: alloc_member(head, leader->cpu, leader);

	return err;
}

static int alloc_family(struct perf_event *head)
{
	struct perf_event *leader = head->group_leader;
	int err;

	/* Opening an event takes ctx->mutex of this CPU: spread users over the CPUs. */
	head->cpu = leader == head ? raw_smp_processor_id() : leader->cpu;
	err = leader == head ? alloc_members(head) : alloc_siblings(head);
	if (err)
		free_members(head);

	return err;
}

/*
 * The process and the CPUs of an event never change.  perf core checks that two events
 * for one CPU are for the same one.
 */
static bool may_join(const struct perf_event *event, const struct perf_event *leader,
		     const struct perf_process *process)
{
	return leader->process && leader->process == process &&
	       perf_process_on_any_cpu(leader) == perf_process_on_any_cpu(event);
}

int perf_process_open(struct perf_event *event, struct task_struct *task)
{
	struct perf_process *process;
	int err = 0;

	if (event->cpu != -1 && !cpu_possible(event->cpu))
		return -ENODEV;
	/* Without perf_process no event of the process can lead a group. */
	if (event->group_leader != event &&
	    !may_join(event, event->group_leader, READ_ONCE(task->signal->perf_process)))
		return -EINVAL;
	process = get_process(task->signal, event->pmu);
	if (IS_ERR(process))
		return PTR_ERR(process);
	if (WARN_ON_ONCE(process->pmu != event->pmu))
		return -EINVAL;

	mutex_lock(&process->mutex);
	if (process->dead || !atomic_read(&task->signal->live)) {
		mutex_unlock(&process->mutex);
		return -ESRCH;
	}

	event->process = process;
	if (event->cpu == -1)
		err = alloc_family(event);
	if (err) {
		event->process = NULL;
		mutex_unlock(&process->mutex);
	}

	return err;
}

void perf_process_abort(struct perf_event *event)
{
	struct perf_process *process = event->process;

	free_members(event);
	mutex_unlock(&process->mutex);
}

/* An event for any CPU has no ring buffer. */
static bool wants_sb(const struct perf_event *head)
{
	return perf_attr_wants_sb(&head->attr) && !perf_process_on_any_cpu(head);
}

void perf_process_opened(struct perf_event *event)
{
	struct perf_process *process = event->process;
	struct perf_event *member;

	list_for_each_entry(member, &event->child_list, child_list)
		ops->install_member(member);
	hlist_add_head(&event->hlist_entry, &process->heads);
	if (wants_sb(event))
		list_add_rcu(&event->sb_list, &process->sb_heads);
	mutex_unlock(&process->mutex);
}

/*
 * Remove the head last: it has the claim of the family.  The other members are freed
 * afterwards, so they leave their groups even if the head stays in its group.
 */
static void remove_family(struct perf_event *head, bool keep_group)
{
	struct perf_event *event;

	list_for_each_entry(event, &head->child_list, child_list)
		ops->remove_member(event, false);
	ops->remove_member(head, keep_group);
}

static void put_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list)
		ops->put_member(event);
}

void perf_process_close(struct perf_event *head)
{
	struct perf_process *process = head->process;

	scoped_guard(mutex, &process->mutex) {
		hlist_del_init(&head->hlist_entry);
		if (wants_sb(head))
			list_del_rcu(&head->sb_list);
		remove_family(head, false);
		put_members(head);
	}
	/* No member is active any more, so nothing queues the work again. */
	irq_work_sync(&head->pending_disable_irq);
	flush_work(&process->limit);
}

/* ---- Exec and exit ---- */

/* Free the other members now, not at close(): the head keeps their counts. */
static void end_family(struct perf_event *head, bool keep_group)
{
	if (head->state <= PERF_EVENT_STATE_EXIT)
		return;

	remove_family(head, keep_group);
	put_members(head);
	/* poll() reports the end of the event. */
	ops->wakeup(head);
}

void perf_process_exec(void)
{
	struct perf_process *process = READ_ONCE(current->signal->perf_process);
	struct perf_event *head;

	if (likely(!process))
		return;

	guard(mutex)(&process->mutex);
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		if (head->attr.remove_on_exec) {
			end_family(head, false);
		} else if (head->attr.enable_on_exec) {
			/* A concurrent modification changes other bits of the same word. */
			scoped_guard(mutex, &head->child_mutex)
				head->attr.enable_on_exec = 0;
			ops->enable(head);
		}
		cond_resched();
	}
}

/*
 * Several threads that exit at the same time may all find that no thread is alive; the
 * first of them ends the events.
 */
void perf_process_exit(struct task_struct *task)
{
	struct perf_process *process = READ_ONCE(task->signal->perf_process);
	bool last = !atomic_read(&task->signal->live);
	struct perf_event *head;

	if (likely(!process) || (!last && (task->flags & PF_EXITING)))
		return;
	/* Pairs with WRITE_ONCE() below; a stale value is read again. */
	if (READ_ONCE(process->dead))
		return;

	guard(mutex)(&process->mutex);
	if (process->dead)
		return;
	WRITE_ONCE(process->dead, last);
	/* All events end, so keep the groups: they can still be read. */
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		end_family(head, true);
		cond_resched();
	}
}
