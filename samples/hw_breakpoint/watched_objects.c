// SPDX-License-Identifier: GPL-2.0
/*
 * watched_objects.c - objects that are allocated and freed, for watch events to follow
 *
 * Writing N to the parameter "corrupt" makes N objects; a stray write corrupts the
 * state of one of them.  Writing N to "storm" makes N objects, one after the other; all
 * CPUs write to each object while it is allocated, and once more between the event
 * object_free and the actual kfree().
 *
 * Writing N to "crowd" makes N objects, of which several exist at the same time.  Writing N to
 * "calls" calls use_object(), which calls itself until there are N calls, and which writes to
 * an object on each CPU.  Both are done by as many threads as "threads" says.  With "shared"
 * set, the calls of all threads use the same object.  Writing 1 to "hold" starts a thread in
 * hold_object(), from which it returns when 0 is written; writing 2 starts a thread that ends
 * there, without a return.
 *
 * The events watched_objects:object_alloc and :object_free have the address of an object.
 * See Documentation/trace/wprobetrace.rst.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#define CREATE_TRACE_POINTS
#include "watched_objects_trace.h"

#define MAX_OBJECTS	100000

/**
 * struct object - an object to be watched
 * @id: number of the object
 * @payload: written by fill_payload()
 * @state: only write_by_all() may write it
 */
struct object {
	u64	id;
	u64	payload;
	u64	state;
};

static DEFINE_MUTEX(objects_mutex);

static noinline struct object *make_object(unsigned int id)
{
	struct object *object = kzalloc(sizeof(*object), GFP_KERNEL);

	if (object) {
		object->id = id;
		trace_object_alloc(object, id);
	}
	return object;
}

static noinline void free_object(struct object *object)
{
	if (object)
		trace_object_free(object, object->id);
	kfree(object);
}

/* ---- "corrupt": a stray write to one of many objects ---- */

static noinline void fill_payload(struct object *object)
{
	WRITE_ONCE(object->payload, object->id);
}

/* The bug: writes two words of payload, of which the second is object::state. */
static noinline void fill_long_payload(struct object *object)
{
	fill_payload(object);
	WRITE_ONCE((&object->payload)[1], object->id);
}

static unsigned int nr_corrupt(struct object **objects, unsigned int nr)
{
	unsigned int i, bad = 0;

	for (i = 0; i < nr; i++)
		bad += objects[i] && READ_ONCE(objects[i]->state);
	return bad;
}

static void corrupt_one(struct object **objects, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		objects[i] = make_object(i);
	for (i = 0; i < nr; i++) {
		if (!objects[i])
			continue;
		if (i == nr / 2)
			fill_long_payload(objects[i]);
		else
			fill_payload(objects[i]);
	}
	pr_info("%u of %u objects are corrupt\n", nr_corrupt(objects, nr), nr);
	for (i = 0; i < nr; i++)
		free_object(objects[i]);
}

/* ---- "storm": all CPUs write to all objects ---- */

static struct object *storm_object;
static atomic_t storm_writes;

static unsigned int writes;
module_param(writes, uint, 0444);
MODULE_PARM_DESC(writes, "number of writes of the last storm to objects that were allocated");

static void count_write(void *unused)
{
	WRITE_ONCE(storm_object->state, atomic_inc_return(&storm_writes));
}

static void write_late(void *unused)
{
	WRITE_ONCE(storm_object->state, 0);
}

static void do_nothing(void *unused)
{
}

/*
 * Wait until other CPUs have repointed what a trigger has queued.  A first call of
 * on_each_cpu() may overtake an irq_work that was queued earlier, a second one cannot.
 */
static void settle(void)
{
	on_each_cpu(do_nothing, NULL, 1);
	on_each_cpu(do_nothing, NULL, 1);
}

/* One CPU after the other, so that a record has the value of the write that caused it. */
static void write_on_each(smp_call_func_t func)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, func, NULL, 1);
	cpus_read_unlock();
}

static void write_by_all(unsigned int id)
{
	storm_object = make_object(id);
	if (!storm_object)
		return;
	settle();
	write_on_each(count_write);
	trace_object_free(storm_object, id);
	settle();
	write_on_each(write_late);
	kfree(storm_object);
}

/* ---- Threads that do the same at the same time ---- */

#define MAX_THREADS	16

static unsigned int threads = 1;
module_param(threads, uint, 0600);
MODULE_PARM_DESC(threads, "number of threads that make calls or a crowd");

static DECLARE_COMPLETION(work_done);

/*
 * Waits until each thread has done @do_work; returns the first error.  A thread that is asked
 * to stop before it runs never calls @do_work.
 */
static int run_threads(int (*do_work)(void *nr), unsigned int nr)
{
	unsigned int i, started = min(threads, MAX_THREADS);
	struct task_struct *tasks[MAX_THREADS];
	int ret, err = 0;

	for (i = 0; i < started; i++) {
		tasks[i] = kthread_create(do_work, (void *)(unsigned long)nr, "work/%u", i);
		if (IS_ERR(tasks[i])) {
			err = PTR_ERR(tasks[i]);
			started = i;
		} else {
			get_task_struct(tasks[i]);
			wake_up_process(tasks[i]);
		}
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&work_done);
	for (i = 0; i < started; i++) {
		ret = kthread_stop_put(tasks[i]);
		err = err ?: ret;
	}

	return err;
}

/* The last thing that a thread does */
static int wait_for_stop(int err)
{
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

/* The last thing that a thread of run_threads() does */
static int finish(int err)
{
	complete(&work_done);
	return wait_for_stop(err);
}

/* ---- "crowd": objects that exist at the same time ---- */

#define CROWD	16

static atomic_t crowd_ids;

/* In a function of its own, whose execution can be watched */
static noinline __noclone void touch_object(struct object *object)
{
	WRITE_ONCE(object->state, object->id);
}

/* Objects whose memory is not free yet: a CPU may watch it for a tick longer. */
struct old_objects {
	struct object	*objects[CROWD];
	unsigned int	nr;
};

static void free_old(struct old_objects *old)
{
	schedule_timeout_uninterruptible(3);
	settle();
	while (old->nr) {
		struct object *object = old->objects[--old->nr];

		WRITE_ONCE(object->state, 0);
		kfree(object);
	}
}

static void leave_crowd(struct object *object, struct old_objects *old)
{
	if (!object)
		return;
	trace_object_free(object, object->id);
	old->objects[old->nr++] = object;
	if (old->nr == CROWD)
		free_old(old);
}

/*
 * Each object has a value of its own: its number, which is written only while it exists.  0 is
 * written when it is not watched any more.
 */
static int make_crowd(void *nr_objects)
{
	struct object *crowd[CROWD] = { };
	struct old_objects old = { };
	unsigned long nr;
	unsigned int i;

	for (nr = (unsigned long)nr_objects; nr; nr--) {
		i = get_random_u32_below(CROWD);
		leave_crowd(crowd[i], &old);
		crowd[i] = make_object(atomic_inc_return(&crowd_ids));
		for (i = 0; i < CROWD; i++) {
			if (crowd[i])
				touch_object(crowd[i]);
		}
		cond_resched();
	}
	for (i = 0; i < CROWD; i++)
		leave_crowd(crowd[i], &old);
	free_old(&old);
	return finish(0);
}

/* ---- "calls" and "hold": functions that use an object until they return ---- */

/**
 * struct handle - what a function gets, to find an object by pointers
 * @object: the object
 * @next: another handle
 */
struct handle {
	struct object	*object;
	struct handle	*next;
};

static bool shared;
module_param(shared, bool, 0600);
MODULE_PARM_DESC(shared, "all tasks that make calls use the same object");

static atomic_t inside;
module_param_named(inside, inside.counter, int, 0600);
MODULE_PARM_DESC(inside, "number of writes to objects by use_object()");

static struct object shared_object;

/* Moves the task to each CPU, and writes there. */
static void write_and_move(struct object *object)
{
	int cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		WRITE_ONCE(object->state, atomic_inc_return(&inside));
	}
	cpus_read_unlock();
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* @calls: how many calls there are to be; the last one makes another one without an object */
static noinline __noclone void use_object(struct handle *handle, unsigned int calls)
{
	struct handle inner = { .object = handle->object, .next = handle };
	struct handle none = { .next = handle };

	settle();
	if (!handle->object)
		return;
	write_and_move(handle->object);
	if (calls > 1)
		use_object(&inner, calls - 1);
	else
		use_object(&none, 0);
	WRITE_ONCE(handle->object->state, atomic_inc_return(&inside));
}

/* Values of 0 are written outside of the calls. */
static int make_calls(void *calls)
{
	struct object *own = kzalloc(sizeof(*own), GFP_KERNEL);
	struct handle handle = { .object = shared ? &shared_object : own };

	if (!own)
		return finish(-ENOMEM);
	WRITE_ONCE(own->state, 0);
	use_object(&handle, (unsigned long)calls);
	settle();
	WRITE_ONCE(own->state, 0);
	kfree(own);
	return finish(0);
}

static struct task_struct *holder;

static noinline __noclone void hold_object(struct object *object, bool leave)
{
	WRITE_ONCE(object->state, atomic_inc_return(&inside));
	if (!leave)
		kthread_complete_and_exit(NULL, 0);
	wait_for_stop(0);
	WRITE_ONCE(object->state, atomic_inc_return(&inside));
}

static int hold(void *leave)
{
	hold_object(&shared_object, leave);
	WRITE_ONCE(shared_object.state, 0);
	return 0;
}

static void stop_holder(void)
{
	if (holder)
		kthread_stop(holder);
	holder = NULL;
}

/* ---- Parameters ---- */

static int parse_nr(const char *val, unsigned int *nr)
{
	int err = kstrtouint(val, 0, nr);

	return err ?: (*nr && *nr <= MAX_OBJECTS ? 0 : -EINVAL);
}

static int run_corrupt(const char *val, const struct kernel_param *kp)
{
	struct object **objects;
	unsigned int nr;
	int err;

	err = parse_nr(val, &nr);
	if (err)
		return err;
	objects = kvcalloc(nr, sizeof(*objects), GFP_KERNEL);
	if (!objects)
		return -ENOMEM;
	corrupt_one(objects, nr);
	kvfree(objects);
	return 0;
}

static const struct kernel_param_ops corrupt_ops = {
	.set	= run_corrupt,
};
module_param_cb(corrupt, &corrupt_ops, NULL, 0200);
MODULE_PARM_DESC(corrupt, "make this many objects, and corrupt one");

static int run_storm(const char *val, const struct kernel_param *kp)
{
	unsigned int nr, i;
	int err;

	err = parse_nr(val, &nr);
	if (err)
		return err;
	mutex_lock(&objects_mutex);
	atomic_set(&storm_writes, 0);
	for (i = 0; i < nr; i++)
		write_by_all(i);
	writes = atomic_read(&storm_writes);
	mutex_unlock(&objects_mutex);
	return 0;
}

static const struct kernel_param_ops storm_ops = {
	.set	= run_storm,
};
module_param_cb(storm, &storm_ops, NULL, 0200);
MODULE_PARM_DESC(storm, "make this many objects, which all CPUs write to");

static int run_crowd(const char *val, const struct kernel_param *kp)
{
	unsigned int nr;

	return parse_nr(val, &nr) ?: run_threads(make_crowd, nr / threads);
}

static const struct kernel_param_ops crowd_ops = {
	.set	= run_crowd,
};
module_param_cb(crowd, &crowd_ops, NULL, 0200);
MODULE_PARM_DESC(crowd, "make this many objects, some of them at the same time");

static int run_calls(const char *val, const struct kernel_param *kp)
{
	unsigned int calls;

	return kstrtouint(val, 0, &calls) || calls > 20 ? -EINVAL :
							  run_threads(make_calls, calls);
}

static const struct kernel_param_ops calls_ops = {
	.set	= run_calls,
};
module_param_cb(calls, &calls_ops, NULL, 0200);
MODULE_PARM_DESC(calls, "make this many calls of use_object(), one in the other");

static int run_hold(const char *val, const struct kernel_param *kp)
{
	struct task_struct *thread;
	unsigned int how;

	if (kstrtouint(val, 0, &how) || how > 2)
		return -EINVAL;
	stop_holder();
	if (!how)
		return 0;
	thread = kthread_run(hold, how == 1 ? &shared_object : NULL, "hold_object");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (how == 1)
		holder = thread;
	return 0;
}

static const struct kernel_param_ops hold_ops = {
	.set	= run_hold,
};
module_param_cb(hold, &hold_ops, NULL, 0200);
MODULE_PARM_DESC(hold, "start or stop a thread in hold_object()");

/* A symbol to watch that is unloaded with the module */
static u64 beacon;

static int run_beacon(const char *val, const struct kernel_param *kp)
{
	WRITE_ONCE(beacon, beacon + 1);
	return 0;
}

static const struct kernel_param_ops beacon_ops = {
	.set	= run_beacon,
};
module_param_cb(beacon, &beacon_ops, NULL, 0200);
MODULE_PARM_DESC(beacon, "write to the variable of this name");

/* The same in memory that is freed once the module is loaded */
static u64 early_beacon __initdata;

static int __init watched_objects_init(void)
{
	WRITE_ONCE(early_beacon, 1);
	return 0;
}
module_init(watched_objects_init);

static void __exit watched_objects_exit(void)
{
	stop_holder();
}
module_exit(watched_objects_exit);

MODULE_DESCRIPTION("Objects for watch events to follow");
MODULE_LICENSE("GPL");
