// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a whole process; see process.h.
 */

#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/rcupdate_wait.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/task_work.h>

#include "internal.h"
#include "process.h"

/* ---- The limit of PERF_EVENT_IOC_REFRESH ---- */

void perf_process_raise_limit(struct perf_event *head, int refresh)
{
	int limit = atomic_read(&head->event_limit);

	while (!atomic_try_cmpxchg(&head->event_limit, &limit,
				   max(max(limit, 0) + refresh, 0)))
		;
}

int perf_process_take_overflow(struct perf_event *event)
{
	struct perf_event *head = event->parent ?: event;
	int limit = atomic_read(&head->event_limit);

	while (limit > 0 && !atomic_try_cmpxchg(&head->event_limit, &limit,
						limit > 1 ? limit - 1 : -1))
		;
	if (limit < 0) {
		/*
		 * Another CPU took the last overflow: undo the count of this hit,
		 * unless PERF_EVENT_IOC_RESET has set it to 0 since, and let the
		 * next access overflow.
		 */
		local64_add_unless(&event->count, -1, 0);
		local64_set(&event->hw.period_left, -1);
	}

	return limit == 1 ? 1 : min(limit, 0);
}

/*
 * Unlike _perf_event_disable() this does not drop the hits that are due: signals of
 * hits before the limit are still sent.
 */
static void disable_member(struct perf_event *event)
{
	if (READ_ONCE(event->state) > PERF_EVENT_STATE_OFF)
		event_function_call(event, __perf_event_disable, NULL);
}

static void disable_head_at_limit(struct perf_event *head)
{
	struct perf_event_context *ctx = perf_event_ctx_lock(head);

	if (perf_process_is_over(head))
		perf_event_for_each_child(head, disable_member);
	perf_event_ctx_unlock(head, ctx);
}

static struct perf_event *next_at_limit(struct perf_process *process)
{
	struct perf_event *head;

	guard(raw_spinlock_irq)(&process->limit_lock);
	head = list_first_entry_or_null(&process->at_limit, struct perf_event, sb_list);
	if (head)
		list_del_init(&head->sb_list);

	return head;
}

static void disable_at_limit(struct work_struct *work)
{
	struct perf_process *process = container_of(work, struct perf_process, limit);
	struct perf_event *head;

	guard(mutex)(&process->mutex);
	while ((head = next_at_limit(process))) {
		disable_head_at_limit(head);
		cond_resched();
	}
}

void perf_process_disable_soon(struct perf_event *event)
{
	struct perf_event *head = event->parent ?: event;
	struct perf_process *process = head->process;

	scoped_guard(raw_spinlock_irqsave, &process->limit_lock) {
		if (list_empty(&head->sb_list))
			list_add_tail(&head->sb_list, &process->at_limit);
	}
	/* The work waits for other CPUs: it must not wait for this CPU, too, which may be busy. */
	queue_work(system_unbound_wq, &process->limit);
}

/* ---- The contexts of a process on this CPU ---- */

struct perf_process *perf_cpu_process(void)
{
	struct perf_event_context *ctx = perf_process_ctx(this_cpu_ptr(&perf_cpu_context));

	return ctx ? ctx->process : NULL;
}

/*
 * Schedules @prev, the context of a process, out, and @next in. pmu::add() of an event of
 * @next may evict an event of cpuctx->task_ctx, which may be scheduled in already, if it was
 * swapped with that of the previous task.
 */
static noinline void switch_contexts(struct perf_cpu_context *cpuctx,
				     struct perf_event_context *prev,
				     struct perf_event_context *next)
{
	struct pmu *pmu = (next ?: prev)->process->pmu;

	raw_spin_lock(&cpuctx->ctx.lock);
	perf_pmu_disable(pmu);
	if (prev) {
		raw_spin_lock(&prev->lock);
		ctx_sched_out(prev, NULL, EVENT_ALL);
		WRITE_ONCE(cpuctx->process_ctx, NULL);
		raw_spin_unlock(&prev->lock);
	}
	if (next) {
		raw_spin_lock(&next->lock);
		if (cpuctx->task_ctx)
			raw_spin_lock(&cpuctx->task_ctx->lock);
		/* Before pmu::add() of the first event, which looks at the claims of @next. */
		if (next->nr_events) {
			WRITE_ONCE(cpuctx->process_ctx, next);
			__ctx_sched_in(next, NULL, EVENT_ALL);
		}
		if (cpuctx->task_ctx)
			raw_spin_unlock(&cpuctx->task_ctx->lock);
		raw_spin_unlock(&next->lock);
	}
	perf_pmu_enable(pmu);
	raw_spin_unlock(&cpuctx->ctx.lock);
}

void perf_process_switch(struct task_struct *task)
{
	struct perf_process *process = READ_ONCE(task->signal->perf_process);
	struct perf_cpu_context *cpuctx = this_cpu_ptr(&perf_cpu_context);
	struct perf_event_context *next = NULL;

	if (process)
		next = process->cpus[smp_processor_id()];
	/* See perf_process_install(). */
	if (next && !READ_ONCE(next->nr_events))
		next = NULL;
	if (cpuctx->process_ctx != next)
		switch_contexts(cpuctx, cpuctx->process_ctx, next);
}

static void switch_to_current(void *unused)
{
	perf_process_switch(current);
}

/*
 * Adds @event here unless the process runs on the CPU of the event: no other process and
 * no idle CPU is interrupted. A context that has events is scheduled in by the next switch
 * to the process. The first event may come after such a switch:
 *
 *	this CPU				the CPU of @event
 *
 *						lock the runqueue
 *	A: add the first event			C: store the thread that runs
 *	lock the runqueue			D: perf_process_switch() tests for events
 *	B: load the thread that runs		unlock
 *	unlock
 *
 * If D does not see A, B sees C. cpu_curr_snapshot() takes the lock of the runqueue.
 */
void perf_process_install(struct perf_event_context *ctx, struct perf_event *event)
{
	bool first, done;

	do {
		scoped_guard(raw_spinlock_irq, &ctx->lock) {
			first = !ctx->nr_events;
			done = !ctx->is_active;
			if (done)
				add_event_to_ctx(event, ctx);
		}
	} while (!done && cpu_function_call(event->cpu, __perf_install_in_context, event));
	if (!first)
		return;

	scoped_guard(rcu)
		done = cpu_curr_snapshot(event->cpu)->signal->perf_process != ctx->process;
	if (!done)
		smp_call_function_single(event->cpu, switch_to_current, NULL, 1);
}

/* ---- Processes ---- */

/* An event may be freed after its process, and has a reference to its context. */
static bool alloc_contexts(struct perf_process *process)
{
	static struct lock_class_key lock_key, mutex_key;
	struct perf_event_context *ctx;
	int cpu;

	for_each_possible_cpu(cpu) {
		ctx = alloc_perf_context(NULL);
		if (!ctx)
			return false;
		/* The lock of a process is taken between those of the CPU and of the task. */
		lockdep_set_class(&ctx->lock, &lock_key);
		lockdep_set_class(&ctx->mutex, &mutex_key);
		ctx->process = process;
		process->cpus[cpu] = ctx;
	}

	return true;
}

static void free_contexts(struct perf_process *process)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		if (process->cpus[cpu])
			put_ctx(process->cpus[cpu]);
	}
}

static void destroy(struct perf_process *process)
{
	process->pmu->process(process, PERF_PROCESS_FREE, NULL);
	free_contexts(process);
	kvfree(process);
}

static struct perf_process *create(struct pmu *pmu)
{
	struct perf_process *process;
	int err;

	process = kvzalloc(struct_size(process, cpus, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!process)
		return ERR_PTR(-ENOMEM);

	mutex_init(&process->mutex);
	raw_spin_lock_init(&process->limit_lock);
	INIT_LIST_HEAD(&process->at_limit);
	INIT_WORK(&process->limit, disable_at_limit);
	process->pmu = pmu;
	err = alloc_contexts(process) ? pmu->process(process, PERF_PROCESS_INIT, NULL) : -ENOMEM;
	if (err) {
		free_contexts(process);
		kvfree(process);
		return ERR_PTR(err);
	}

	return process;
}

/*
 * Cannot fail: @process has no reservations yet. The lock keeps the context from being
 * swapped with that of another task.
 */
static void join(struct perf_process *process, struct task_struct *task)
{
	struct perf_event_context *ctx;
	unsigned long flags;

	ctx = perf_lock_task_context(task, &flags);
	if (!ctx)
		return;
	WARN_ON_ONCE(perf_process_add_context(ctx, process));
	raw_spin_unlock_irqrestore(&ctx->lock, flags);
	put_ctx(ctx);
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
			join(process, task);
	}
}

/*
 * Returns the perf_process of the threads, which is not @process if another one was first, or
 * NULL if all threads have been released.  All threads share one siglock, and
 * lock_task_sighand() takes it through any thread that has not been released.
 */
static struct perf_process *publish_to_threads(struct signal_struct *signal,
					       struct perf_process *process)
{
	struct task_struct *thread;
	unsigned long flags;

	guard(rcu)();
	__for_each_thread(signal, thread) {
		if (!lock_task_sighand(thread, &flags))
			continue;
		if (signal->perf_process)
			process = signal->perf_process;
		else
			publish(signal, process);
		unlock_task_sighand(thread, &flags);
		return process;
	}

	return NULL;
}

static struct perf_process *get_process(struct signal_struct *signal, struct pmu *pmu)
{
	struct perf_process *process, *new;

	process = READ_ONCE(signal->perf_process);
	if (process)
		return process;

	new = create(pmu);
	if (IS_ERR(new))
		return new;

	scoped_guard(mutex, &new->mutex)
		process = publish_to_threads(signal, new);
	if (process != new)
		destroy(new);

	return process ?: ERR_PTR(-ESRCH);
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

int __perf_event_link_thread(struct task_struct *child, struct perf_process *process)
{
	lockdep_assert_held(&current->sighand->siglock);

	/* clone() has no ENOSPC; programs expect EAGAIN if a thread cannot be created now. */
	if (child->perf_event_ctxp &&
	    perf_process_add_context(child->perf_event_ctxp, process))
		return -EAGAIN;
	/* For an event that was opened since perf_event_init_task() */
	return perf_sigtrap_clone(child, process, GFP_ATOMIC | __GFP_ACCOUNT) ? -EAGAIN : 0;
}

/* ---- Permission ---- */

/* True if an event with @attr that current opens may be for any thread. */
static bool may_watch_any(const struct perf_event_attr *attr)
{
	return !attr->sigtrap && !perf_attr_reads_memory(attr) && perfmon_capable();
}

/* True for a thread that makes no accesses any more. */
static bool has_exited(const struct task_struct *thread)
{
	/* exit_mm() clears the mm with PF_EXITING set. */
	return !READ_ONCE(thread->mm) && (READ_ONCE(thread->flags) & PF_EXITING);
}

/*
 * For a thread without mm ptrace_may_access() could only check whether the process was
 * dumpable when the thread exited. exit_mm() clears the mm under task_lock(), which
 * ptrace_may_access() takes: if the mm was missing there, has_exited() is true after it.
 */
static bool may_watch(const struct perf_event_attr *attr, struct task_struct *thread)
{
	return perf_check_permission(attr, thread, 0) || has_exited(thread);
}

/* Returns false if @thread has left the list of threads. */
static bool pause_at(struct task_struct *thread)
{
	bool alive;

	get_task_struct(thread);
	cond_resched_rcu();
	alive = pid_alive(thread);
	put_task_struct(thread);

	return alive;
}

static int check_all_threads(const struct perf_event_attr *attr, struct signal_struct *signal)
{
	struct task_struct *thread;
	int err = -ESRCH;

	guard(rcu)();
	__for_each_thread(signal, thread) {
		if (has_exited(thread))
			continue;
		if (!may_watch(attr, thread))
			return -EACCES;
		err = 0;
		if (need_resched() && !pause_at(thread))
			return -EAGAIN;
	}

	return err;
}

/*
 * May current open an event with @attr for all threads of the process of @task?
 * Credentials belong to threads, and an event shows the registers of all threads.
 */
static int check_threads(const struct perf_event_attr *attr, struct task_struct *task)
{
	int err;

	/* As in ptrace_may_access(): the threads of a process may watch each other. */
	if (same_thread_group(task, current) || may_watch_any(attr))
		return 0;
	do
		err = check_all_threads(attr, task->signal);
	while (err == -EAGAIN);

	return err;
}

/* For opener_may_watch(). Events of the kernel have no opener. */
static void remember_opener(struct perf_event *head, struct task_struct *task)
{
	head->opener_is_inside = same_thread_group(task, current);
	head->opener_cred = may_watch_any(&head->attr) ? NULL : get_current_cred();
}

static void forget_opener(struct perf_event *head)
{
	put_cred(head->opener_cred);
	head->opener_cred = NULL;
}

/*
 * May the opener of @head watch current with the credentials that current has now? A
 * thread of the process may, as at open, until the process executes a program. Security
 * modules take current for the thread that asks: those that compare tasks instead of
 * credentials, as Yama and Smack do, decide at open only.
 */
static bool opener_may_watch(const struct perf_event *head)
{
	const struct cred *own;
	bool allowed;

	if (!head->opener_cred || head->opener_is_inside)
		return true;
	own = override_creds(head->opener_cred);
	allowed = perf_check_permission(&head->attr, current,
					PTRACE_MODE_NOSELF | PTRACE_MODE_NOAUDIT);
	revert_creds(own);

	return allowed;
}

/* ---- Families ---- */

static void free_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list) {
		list_del_init(&event->child_list);
		free_event(event);
		put_event(head);
	}
}

/*
 * @leader is the member for @cpu of the family that leads the group, NULL if @head leads
 * its group.
 */
static int alloc_member(struct perf_event *head, int cpu, struct perf_event *leader)
{
	struct perf_event_context *ctx = head->process->cpus[cpu];
	struct perf_event_pmu_context *pmu_ctx;
	struct perf_event *event;

	event = perf_event_alloc(&head->attr, cpu, head->hw.target, leader, head, NULL,
				 NULL, -1);
	if (IS_ERR(event))
		return PTR_ERR(event);

	event->event_caps |= head->event_caps & PERF_EV_CAP_SOFTWARE;
	event->process = head->process;
	get_ctx(ctx);
	event->ctx = ctx;
	pmu_ctx = find_get_pmu_context(event->pmu, ctx, event);
	if (IS_ERR(pmu_ctx)) {
		free_event(event);
		return PTR_ERR(pmu_ctx);
	}
	event->pmu_ctx = pmu_ctx;
	perf_event__header_size(event);
	perf_event__id_header_size(event);
	/* As in inherit_event() */
	atomic_long_inc(&head->refcount);

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

/* New threads need no queue for attr.sigtrap as long as no event has it. */
static void forget_sigtrap(struct perf_process *process)
{
	WRITE_ONCE(process->sigtrap, PERF_SIGTRAP_NONE);
	process->sigtrap_done = PERF_SIGTRAP_NONE;
}

static int alloc_family(struct perf_event *head)
{
	struct perf_event *leader = head->group_leader;
	int err;

	/* A user changes its own events: most of the time from the CPU that it opened them on. */
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
	INIT_LIST_HEAD(&event->sb_list);
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

	forget_opener(event);
	free_members(event);
	if (!process->nr_sigtrap)
		forget_sigtrap(process);
	mutex_unlock(&process->mutex);
}

int perf_process_open_user(struct perf_event *event, struct task_struct *task)
{
	int err;

	/*
	 * A user who may not watch all threads must not create a perf_process, nor hold its
	 * mutex, which threads with new credentials wait for.
	 */
	err = check_threads(&event->attr, task);
	if (err)
		return err;
	err = perf_process_open(event, task);
	if (err)
		return err;
	/* A and B in process.h; pairs with put_cred_many() in commit_creds(). */
	smp_mb();
	err = check_threads(&event->attr, task);
	if (err)
		perf_process_abort(event);
	else
		remember_opener(event, task);

	return err;
}

void perf_process_opened(struct perf_event *event)
{
	struct perf_process *process = event->process;
	struct perf_event *member;

	list_for_each_entry(member, &event->child_list, child_list) {
		guard(mutex)(&member->ctx->mutex);
		perf_install_in_context(member->ctx, member, member->cpu);
	}
	/* A family has no ring buffer. */
	if (!perf_process_is_family(event) && perf_attr_wants_sb(&event->attr))
		WRITE_ONCE(process->has_sb, true);
	hlist_add_head_rcu(&event->hlist_entry, &process->heads);
	process->nr_sigtrap += event->attr.sigtrap;
	mutex_unlock(&process->mutex);
}

/*
 * Ends a member, or the head, unless it has ended already, and removes it from its context.
 * Unless @keep_group it leaves its group, too; the other events of a group that it led
 * become single events.
 */
static void remove_member(struct perf_event *event, bool keep_group)
{
	guard(mutex)(&event->ctx->mutex);
	if (!(event->attach_state & PERF_ATTACH_CONTEXT))
		return;
	perf_remove_from_context(event, (keep_group ? 0 : DETACH_GROUP) | DETACH_EXIT);
}

/*
 * Remove the head last: it has the claim of the family.  The other members are freed
 * afterwards, so they leave their groups even if the head stays in its group.
 */
static void remove_family(struct perf_event *head, bool keep_group)
{
	struct perf_event *event;

	/* Before the siblings of a member are enabled: a disabled head kept them out. */
	if (!keep_group && head->state < PERF_EVENT_STATE_INACTIVE) {
		scoped_guard(mutex, &head->ctx->mutex)
			perf_event_enabling(head);
	}
	list_for_each_entry(event, &head->child_list, child_list)
		remove_member(event, false);
	remove_member(head, keep_group);
}

/*
 * Add to perf_event::count of the head, not to ::child_count, which
 * PERF_EVENT_IOC_RESET does not reset.
 */
static void put_member(struct perf_event *event)
{
	struct perf_event *head = event->parent;

	scoped_guard(mutex, &head->child_mutex) {
		local64_add(local64_read(&event->count), &head->count);
		head->total_time_enabled += event->total_time_enabled;
		head->total_time_running += event->total_time_running;
		list_del_init(&event->child_list);
	}
	put_event(event);
}

static void put_members(struct perf_event *head)
{
	struct perf_event *event, *next;

	list_for_each_entry_safe(event, next, &head->child_list, child_list) {
		irq_work_sync(&event->pending_disable_irq);
		put_member(event);
	}
}

void perf_process_close(struct perf_event *head)
{
	struct perf_process *process = head->process;

	scoped_guard(mutex, &process->mutex) {
		hlist_del_init_rcu(&head->hlist_entry);
		if (head->attr.sigtrap && !--process->nr_sigtrap)
			forget_sigtrap(process);
		forget_opener(head);
		remove_family(head, false);
		put_members(head);
		/* No member is active any more, so nothing adds @head to the list again. */
		irq_work_sync(&head->pending_disable_irq);
		scoped_guard(raw_spinlock_irq, &process->limit_lock)
			list_del_init(&head->sb_list);
	}
	flush_work(&process->limit);
}

/* ---- Users ---- */

void perf_process_period(struct perf_event *head, u64 value)
{
	struct perf_event *event;

	guard(mutex)(&head->child_mutex);
	list_for_each_entry(event, &head->child_list, child_list)
		event_function_call(event, __perf_event_period, &value);
}

/* Each member of a family holds a reference to @prog, as in perf_event_alloc(). */
void perf_process_set_bpf(struct perf_event *head, struct bpf_prog *prog)
{
	struct perf_event *event;
	struct bpf_prog *old;

	guard(mutex)(&head->child_mutex);
	list_for_each_entry(event, &head->child_list, child_list) {
		old = event->prog;
		if (prog)
			bpf_prog_inc(prog);
		event->bpf_cookie = head->bpf_cookie;
		WRITE_ONCE(event->prog, prog);
		if (old)
			bpf_prog_put(old);
	}
}

/* ---- Credentials, exec and exit ---- */

/* Free the other members now, not at close(): the head keeps their counts. */
static void end_family(struct perf_event *head, bool keep_group)
{
	if (head->state <= PERF_EVENT_STATE_EXIT)
		return;

	remove_family(head, keep_group);
	put_members(head);
	/* poll() reports the end of the event. */
	perf_event_wakeup(head);
}

/* Ends the events whose openers may not watch current any more. */
void __perf_process_check_openers(struct perf_process *process)
{
	struct perf_event *head;

	guard(mutex)(&process->mutex);
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		if (!opener_may_watch(head))
			end_family(head, false);
		cond_resched();
	}
}

static void check_openers_work(struct callback_head *work)
{
	kfree(work);
	__perf_process_check_openers(current->signal->perf_process);
}

/*
 * The caller may hold a lock that other users wait for, for example key_session_mutex,
 * and perf_process::mutex may be held for a long time by a user with a low priority: take it
 * on the way back to user mode only.
 */
void __perf_process_commit_creds(void)
{
	struct callback_head *work = kmalloc(sizeof(*work), GFP_KERNEL | __GFP_NOFAIL);

	init_task_work(work, check_openers_work);
	/* Fails only in an exiting task, which does not return to user mode. */
	if (task_work_add(current, work, TWA_RESUME))
		kfree(work);
}

void perf_process_exec(void)
{
	struct perf_process *process = READ_ONCE(current->signal->perf_process);
	struct perf_event *head;

	if (likely(!process))
		return;

	guard(mutex)(&process->mutex);
	hlist_for_each_entry(head, &process->heads, hlist_entry) {
		/* The next program is not the one that opened the event. */
		head->opener_is_inside = false;
		if (head->attr.remove_on_exec) {
			end_family(head, false);
		} else if (head->attr.enable_on_exec) {
			/* A concurrent modification changes other bits of the same word. */
			scoped_guard(mutex, &head->child_mutex)
				head->attr.enable_on_exec = 0;
			perf_event_enable(head);
		}
		cond_resched();
	}
	/* All events with attr.sigtrap have ended, see attr.remove_on_exec. */
	forget_sigtrap(process);
}

/*
 * Several threads that exit at the same time may all find that no thread is alive; the
 * first of them ends the events.
 */
void __perf_process_exit(struct perf_process *process, struct task_struct *task)
{
	bool last = !atomic_read(&task->signal->live);
	struct perf_event *head;

	if (!last && (task->flags & PF_EXITING))
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
