// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel-wide breakpoints: sets of one event for each online CPU, all or none.
 *
 * A set makes one claim of the machine, before the first event is created, and
 * releases it after the last event is gone.  The claim covers all events of the
 * set, which have none of their own, and the CPUs that come online later.  Events
 * are created disabled and enabled when all of them exist.
 *
 * Locking: cpu_hotplug_lock, then bp_wide_mutex, then what perf takes.
 */

#define pr_fmt(fmt) "hw-breakpoint: " fmt

#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "bp_internal.h"
#include "bp_repoint.h"
#include "bp_repoint_wide.h"
#include "internal.h"

/**
 * struct bp_wide - a kernel-wide breakpoint
 * @link: link in bp_wide_sets
 * @attr: attributes, as registered
 * @holder: describes @claim
 * @claim: claim of the machine; not held after release_wide_bp_slot()
 * @triggered: handler of the hits
 * @context: for the handler
 * @events: event of each CPU; callers identify the set by this pointer
 *
 * Protected by bp_wide_mutex.
 */
struct bp_wide {
	struct list_head		link;
	struct perf_event_attr		attr;
	struct bp_holder		holder;
	struct bp_claim			claim;
	perf_overflow_handler_t		triggered;
	void				*context;
	struct perf_event * __percpu	*events;
};

static DEFINE_MUTEX(bp_wide_mutex);
static LIST_HEAD(bp_wide_sets);

static struct perf_event **event_of(struct bp_wide *set, int cpu)
{
	return per_cpu_ptr(set->events, cpu);
}

/* Creates the event of an online CPU, disabled. */
static int make_event(struct bp_wide *set, int cpu)
{
	struct bp_wide_cpu *wcpu = bp_wide_cpu_of(set->events, cpu);
	struct perf_event_attr attr = set->attr;
	struct perf_event *bp;
	u64 base;

	lockdep_assert_held(&bp_wide_mutex);

	attr.disabled = 1;
	base = bp_wide_start_event(wcpu, &attr);
	bp = bp_create_wide_event(&attr, cpu, set->triggered, set->context);
	if (IS_ERR(bp))
		return PTR_ERR(bp);

	bp->attr.disabled = set->attr.disabled;
	bp_versions_attach(bp, &wcpu->versions, base);
	/* A kick that finds the event uses its versions: attach them first. */
	barrier();
	WRITE_ONCE(*event_of(set, cpu), bp);
	bp_wide_catch_up(wcpu);
	return 0;
}

static void enable_event(struct bp_wide *set, int cpu)
{
	if (!set->attr.disabled)
		perf_event_enable(*event_of(set, cpu));
}

static void drop_event(struct bp_wide *set, int cpu)
{
	struct perf_event *bp = *event_of(set, cpu);

	lockdep_assert_held(&bp_wide_mutex);

	if (!bp)
		return;
	/* From here on no interrupt on @cpu repoints the event. */
	WRITE_ONCE(*event_of(set, cpu), NULL);
	barrier();
	unregister_hw_breakpoint(bp);
}

static int make_events(struct bp_wide *set)
{
	int cpu, err;

	for_each_online_cpu(cpu) {
		err = make_event(set, cpu);
		if (err)
			return err;
	}

	return 0;
}

static void drop_events(struct bp_wide *set)
{
	int cpu;

	for_each_possible_cpu(cpu)
		drop_event(set, cpu);
	bp_slots_release(&bp_machine, &set->claim);
}

static int start_set(struct bp_wide *set)
{
	struct bp_claim_spec spec = bp_claim_spec(&set->attr);
	int cpu, err;

	err = bp_slots_reserve(&bp_machine, &set->claim, &spec, NULL, -1);
	if (err)
		return err;

	err = make_events(set);
	if (err) {
		drop_events(set);
		return err;
	}

	for_each_online_cpu(cpu)
		enable_event(set, cpu);
	list_add_tail(&set->link, &bp_wide_sets);
	return 0;
}

/* Refuses malformed attributes before a register is claimed. */
static int check_attr(const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };
	struct perf_event *bp;
	int err;

	/* A kernel-wide breakpoint must not miss hits: never multiplex it. */
	if (attr->type != PERF_TYPE_BREAKPOINT || hw_breakpoint_is_flexible(attr))
		return -EINVAL;

	bp = kzalloc(sizeof(*bp), GFP_KERNEL);
	if (!bp)
		return -ENOMEM;
	err = bp_parse(bp, attr, &hw);
	kfree(bp);

	return err;
}

static void free_set(struct bp_wide *set)
{
	if (!set)
		return;
	bp_wide_free_events(set->events);
	kfree(set);
}

static struct bp_wide *alloc_set(const struct perf_event_attr *attr,
				 perf_overflow_handler_t triggered,
				 void *context, const char *name)
{
	struct bp_wide *set;

	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return NULL;
	set->attr = *attr;
	set->holder = (struct bp_holder) {
		.addr		= attr->bp_addr,
		.len		= attr->bp_len,
		.bp_type	= attr->bp_type,
		.handler	= triggered,
		.name		= name,
	};
	set->triggered = triggered;
	set->context = context;
	set->events = bp_wide_alloc_events(attr, name);
	if (!set->events) {
		free_set(set);
		return NULL;
	}
	set->claim.holder = &set->holder;

	return set;
}

static struct perf_event * __percpu *wide_error(int err)
{
	return (void __percpu __force *)ERR_PTR(err);
}

struct perf_event * __percpu *
register_named_wide_hw_breakpoint(struct perf_event_attr *attr,
				  perf_overflow_handler_t triggered, void *context,
				  const char *name)
{
	struct bp_wide *set;
	int err;

	err = check_attr(attr);
	if (err)
		return wide_error(err);
	set = alloc_set(attr, triggered, context, name);
	if (!set)
		return wide_error(-ENOMEM);

	cpus_read_lock();
	mutex_lock(&bp_wide_mutex);
	err = start_set(set);
	mutex_unlock(&bp_wide_mutex);
	cpus_read_unlock();
	if (err) {
		free_set(set);
		return wide_error(err);
	}

	return set->events;
}
EXPORT_SYMBOL_GPL(register_named_wide_hw_breakpoint);

struct perf_event * __percpu *
register_wide_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context)
{
	return register_named_wide_hw_breakpoint(attr, triggered, context, NULL);
}
EXPORT_SYMBOL_GPL(register_wide_hw_breakpoint);

static struct bp_wide *find_set(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set;

	list_for_each_entry(set, &bp_wide_sets, link) {
		if (set->events == cpu_events)
			return set;
	}

	return NULL;
}

void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set;

	cpus_read_lock();
	mutex_lock(&bp_wide_mutex);
	set = find_set(cpu_events);
	if (!WARN_ON_ONCE(!set)) {
		list_del(&set->link);
		bp_wide_stop_repoint(set->events);
		drop_events(set);
	}
	mutex_unlock(&bp_wide_mutex);
	cpus_read_unlock();

	free_set(set);
}
EXPORT_SYMBOL_GPL(unregister_wide_hw_breakpoint);

void release_wide_bp_slot(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set;

	mutex_lock(&bp_wide_mutex);
	set = find_set(cpu_events);
	if (!WARN_ON_ONCE(!set))
		bp_slots_release(&bp_machine, &set->claim);
	mutex_unlock(&bp_wide_mutex);
}

/* ---- CPU hotplug: called on @cpu, except bp_wide_cpu_dead() ---- */

/*
 * A CPU that is not online does not kick the others when it repoints a set.  Kick them
 * on its behalf.
 */
static void kick_for_offline_cpu(void)
{
	struct bp_wide *set;

	lockdep_assert_held(&bp_wide_mutex);

	list_for_each_entry(set, &bp_wide_sets, link)
		bp_wide_kick(set->events);
}

static int bp_wide_cpu_dead(unsigned int cpu)
{
	mutex_lock(&bp_wide_mutex);
	kick_for_offline_cpu();
	mutex_unlock(&bp_wide_mutex);

	return 0;
}

static int bp_wide_cpu_offline(unsigned int cpu)
{
	struct bp_wide *set;

	mutex_lock(&bp_wide_mutex);
	list_for_each_entry(set, &bp_wide_sets, link)
		drop_event(set, cpu);
	mutex_unlock(&bp_wide_mutex);

	return 0;
}

static int bp_wide_cpu_online(unsigned int cpu)
{
	struct bp_wide *set;
	int err = 0;

	mutex_lock(&bp_wide_mutex);
	kick_for_offline_cpu();
	list_for_each_entry(set, &bp_wide_sets, link) {
		if (*event_of(set, cpu))
			continue;
		err = make_event(set, cpu);
		if (err)
			break;
		enable_event(set, cpu);
	}
	mutex_unlock(&bp_wide_mutex);

	/* Schedule the breakpoints of this CPU that stayed open meanwhile. */
	perf_event_cpu_returns();

	if (err) {
		pr_err("CPU%u: cannot add kernel-wide breakpoint: %pe\n", cpu,
		       ERR_PTR(err));
		bp_wide_cpu_offline(cpu);
	}
	return err;
}

static int __init bp_wide_init(void)
{
	int state;

	state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "perf/hw_breakpoint:dead",
					  NULL, bp_wide_cpu_dead);
	if (state < 0)
		return state;
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "perf/hw_breakpoint:wide",
				  bp_wide_cpu_online, bp_wide_cpu_offline);
	return state < 0 ? state : 0;
}
core_initcall(bp_wide_init);
