// SPDX-License-Identifier: GPL-2.0
/*
 * watched_objects.c - objects that are allocated and freed, for watch events to follow
 *
 * Writing N to the parameter "corrupt" makes N objects; a stray write corrupts the
 * state of one of them.  Writing N to "storm" makes N objects, one after the other; all
 * CPUs write to each object while it is allocated, and once more between the event
 * object_free and the actual kfree().
 *
 * The events watched_objects:object_alloc and :object_free have the address of an object.
 * See Documentation/trace/wprobetrace.rst.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
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
}
module_exit(watched_objects_exit);

MODULE_DESCRIPTION("Objects for watch events to follow");
MODULE_LICENSE("GPL");
