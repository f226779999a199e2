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

/* ---- Processes ---- */

static void destroy(struct perf_process *process)
{
	hw_breakpoint_destroy_process(process);
	kvfree(process);
}

static void disable_at_limit(struct work_struct *work)
{
	struct perf_process *process = container_of(work, struct perf_process, limit);
	struct perf_event *head;

	guard(mutex)(&process->mutex);
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		/* Its context may be in use: wait for it only if need be. */
		if (perf_process_is_over(head))
			perf_process_disable_at_limit(head);
		cond_resched();
	}
}

void perf_process_disable_soon(struct perf_process *process)
{
	/* The work waits for other CPUs and for users; this CPU may be busy for long. */
	queue_work(system_unbound_wq, &process->limit);
}

static struct perf_process *create(void)
{
	struct perf_process *process;

	process = kvzalloc(struct_size(process, cpus, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!process)
		return NULL;

	mutex_init(&process->mutex);
	INIT_LIST_HEAD(&process->sb_heads);
	INIT_WORK(&process->limit, disable_at_limit);
	if (hw_breakpoint_init_process(process)) {
		kvfree(process);
		return NULL;
	}

	return process;
}

/*
 * No thread is missed: one that exists is found here.  One that comes later is linked
 * with the siglock held and joins then, in perf_event_link_thread().  A context that
 * comes later joins when it makes a claim: either that sees the process, or it has
 * entered its task before, and is found here.
 *
 * No thread is refused: the caller holds the mutex of @process, so that the process
 * has no claims until all threads have joined. The siglock is held for as long as the
 * walk takes, once in the life of a process, as it is to signal all threads.
 */
static void publish(struct signal_struct *signal, struct perf_process *process)
{
	struct task_struct *task;

	lockdep_assert_held(&process->mutex);

	/* Pairs with the load in join_process() of hw_breakpoint.c. */
	smp_store_release(&signal->perf_process, process);
	/* The threads are visited after this; pairs with join_process(). */
	smp_mb();
	__for_each_thread(signal, task) {
		/* Most threads have no events. */
		if (rcu_access_pointer(task->perf_event_ctxp))
			perf_process_join(process, task);
	}
}

/* The siglock is that of any thread that is not released; false if there is none. */
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

static struct perf_process *get_process(struct signal_struct *signal)
{
	struct perf_process *process, *new;
	static DEFINE_MUTEX(creation);

	process = READ_ONCE(signal->perf_process);
	if (process)
		return process;

	new = create();
	if (!new)
		return ERR_PTR(-ENOMEM);

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

/* The last reference to a task may be put where vfree() must not be called. */
void __perf_process_free(struct perf_process *process)
{
	WARN_ON_ONCE(!hlist_empty(&process->heads));
	call_rcu(&process->rcu, destroy_rcu);
}

int __perf_event_link_thread(struct task_struct *child)
{
	struct perf_process *process = READ_ONCE(current->signal->perf_process);

	lockdep_assert_held(&current->sighand->siglock);

	return process ? hw_breakpoint_join(child->perf_event_ctxp, process) : 0;
}

/* ---- Families ---- */

static void free_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list) {
		list_del_init(&event->child_list);
		perf_process_free_member(event);
	}
}

static int alloc_member(struct perf_event *head, int cpu, struct perf_event *leader)
{
	struct perf_event *event = perf_process_alloc_member(head, cpu, leader);

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

/* The group of each CPU gets its sibling. */
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

	/* Opening a file takes the mutex of one CPU: not the same for all users. */
	head->cpu = leader == head ? raw_smp_processor_id() : leader->cpu;
	err = leader == head ? alloc_members(head) : alloc_siblings(head);
	if (err)
		free_members(head);

	return err;
}

/*
 * The process and the CPUs of an event never change.  perf core checks that the two
 * events are for the same CPU if they are for one.
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
	/* A process that has no events yet has none that leads a group. */
	if (event->group_leader != event &&
	    !may_join(event, event->group_leader, READ_ONCE(task->signal->perf_process)))
		return -EINVAL;
	process = get_process(task->signal);
	if (IS_ERR(process))
		return PTR_ERR(process);

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
		perf_process_install_member(member);
	hlist_add_head(&event->hlist_entry, &process->heads);
	if (wants_sb(event))
		list_add_rcu(&event->sb_list, &process->sb_heads);
	mutex_unlock(&process->mutex);
}

/*
 * The head has the claim of the family, so it goes last.  The members are freed, so
 * they leave their groups in any case.
 */
static void remove_family(struct perf_event *head, bool keep_group)
{
	struct perf_event *event;

	list_for_each_entry(event, &head->child_list, child_list)
		perf_process_remove_member(event, false);
	perf_process_remove_member(head, keep_group);
}

static void put_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list) {
		perf_process_fold_member(event);
		perf_process_put_member(event);
	}
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
	/* No member is hit any more: the work is queued by now, or never. */
	irq_work_sync(&head->pending_disable_irq);
	flush_work(&process->limit);
}

/* ---- Exec and exit ---- */

/* The head keeps the counts; the memory of the others does not wait for close(). */
static void end_family(struct perf_event *head, bool keep_group)
{
	if (head->state <= PERF_EVENT_STATE_EXIT)
		return;

	remove_family(head, keep_group);
	put_members(head);
	/* Pollers learn that it has ended. */
	perf_event_wakeup(head);
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
			/* A modification changes the other bits. */
			scoped_guard(mutex, &head->child_mutex)
				head->attr.enable_on_exec = 0;
			perf_process_enable(head);
		}
		cond_resched();
	}
}

/*
 * Each of several threads that exit last may find that no thread is alive; the first
 * of them ends the events for all.
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
	/* A group can be read afterwards: all of its members end here. */
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		end_family(head, true);
		cond_resched();
	}
}
