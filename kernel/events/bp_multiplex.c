// SPDX-License-Identifier: GPL-2.0
/*
 * Assign the registers of a CPU to the breakpoints that perf schedules.
 *
 * bp_slots decides admission; this file assigns registers in pmu::add().  A
 * guaranteed breakpoint always gets a register: if flexible breakpoints have
 * all of them, one of these is evicted.  A flexible breakpoint gets a register
 * that the guaranteed claims of the CPU and of its current task leave, whether
 * these claims are in use or not.  As a result, scheduling a guaranteed
 * breakpoint rarely has to evict a flexible one.
 *
 * perf rotates flexible breakpoints within a *rotation group*: the breakpoints
 * of one context whose groups are led by events of one PMU.  It does not rotate
 * between rotation groups: it schedules them in a fixed order, and does not
 * rotate a rotation group whose members all have a register.  Therefore each
 * rotation group has a priority that changes with each epoch, about every
 * millisecond.  A member that finds no register evicts a member of the rotation
 * group of lowest priority, if that is lower than its own.  Priorities are
 * pseudo-random, because any regular order could run in step with the rotation
 * and leave out the same breakpoints each time.
 *
 * perf calls bp_sched_in() with interrupts off and the contexts of this CPU, of the
 * process and of the task locked, so a group of each of them can be evicted.
 */

#include <linux/atomic.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/wordpart.h>

#include "bp_internal.h"
#include "internal.h"
#include "process.h"

/**
 * struct bp_assigned - assigned registers of one class on one CPU
 * @weight: number of registers that are assigned
 * @nr_flexible: number of registers that are assigned to flexible breakpoints
 * @flexible: the flexible breakpoints that have their registers, in order of
 *	assignment
 * @available: number of registers that guaranteed claims left when group_fits() was
 *	called last
 *
 * Accessed on its CPU only, with interrupts off.
 */
struct bp_assigned {
	unsigned int		weight;
	unsigned int		nr_flexible;
	struct list_head	flexible;
	unsigned int		available;
};

static DEFINE_PER_CPU(struct bp_assigned [TYPE_MAX], bp_assigned);

/*
 * Registers of each CPU that perf may assign.  Kernel debuggers arm the others
 * themselves.
 */
static atomic_t bp_perf_slots[TYPE_MAX];

static unsigned int perf_slots(unsigned int class)
{
	return atomic_read(&bp_perf_slots[class]);
}

static inline struct perf_event *flexible_entry(struct list_head *link)
{
	return list_entry(link, struct perf_event, hw.bp_flexible);
}

/* The domain of the task that runs on this CPU, or that of its process; NULL if there is none */
static struct bp_domain *current_domain(void)
{
	struct perf_process *process = perf_process_used() ? perf_cpu_process() : NULL;
	/* Set before the first event of the task is scheduled in */
	struct perf_event_context *ctx = perf_cpu_task_ctx();

	/* A context that has not joined its process has no claims. */
	if (unlikely(process) && !(ctx && READ_ONCE(ctx->bp_domain.process)))
		return &process->bp.domain;
	return ctx ? &ctx->bp_domain : NULL;
}

static bool is_flexible(const struct perf_event *event)
{
	return event->event_caps & PERF_EV_CAP_MUX;
}

/* ---- Priorities of rotation groups ---- */

static const void *rotation_group(const struct perf_event *bp)
{
	return bp->group_leader->pmu_ctx;
}

static u32 priority(const struct perf_event *bp, u32 epoch)
{
	unsigned long group = (unsigned long)rotation_group(bp);

	return jhash_3words(lower_32_bits(group), upper_32_bits((u64)group), epoch, 0);
}

/* An epoch is 2^20 ns long. */
static u32 current_epoch(void)
{
	return local_clock() >> 20;
}

/*
 * Find a breakpoint to evict: in the rotation group of lowest priority, if that
 * is lower than the priority of @bp, the breakpoint that got its register last.
 */
static struct perf_event *lowest_priority(const struct perf_event *bp,
					  struct bp_assigned *assigned, u32 epoch)
{
	u32 prio, lowest = priority(bp, epoch);
	struct perf_event *other, *found = NULL;

	list_for_each_entry_reverse(other, &assigned->flexible, hw.bp_flexible) {
		if (rotation_group(other) == rotation_group(bp))
			continue;
		prio = priority(other, epoch);
		if (prio < lowest) {
			lowest = prio;
			found = other;
		}
	}

	return found;
}

/* Number of registers that rotation groups of lower priority than @bp's have */
static unsigned int nr_lower_priority(const struct perf_event *bp,
				      struct bp_assigned *assigned, u32 epoch)
{
	struct perf_event *other;
	unsigned int n = 0;

	list_for_each_entry(other, &assigned->flexible, hw.bp_flexible) {
		if (rotation_group(other) != rotation_group(bp) &&
		    priority(other, epoch) < priority(bp, epoch))
			n += bp_weight(other);
	}

	return n;
}

/* ---- Admission to a register ---- */

/* Registers of @class on this CPU that guaranteed claims leave */
static unsigned int available(unsigned int class)
{
	return bp_slots_available(&bp_machine, class, current_domain(), smp_processor_id());
}

static bool evict(struct bp_assigned *assigned, struct perf_event *bp)
{
	unsigned int weight = assigned->weight;

	perf_event_evict(bp);
	return !WARN_ON_ONCE(assigned->weight == weight);
}

static bool evict_for_guaranteed(struct perf_event *bp, struct bp_assigned *assigned)
{
	while (assigned->weight + bp_weight(bp) > perf_slots(bp_class(&bp->attr))) {
		if (list_empty(&assigned->flexible) ||
		    !evict(assigned, flexible_entry(assigned->flexible.prev)))
			return false;
	}

	return true;
}

/* Number of registers of @class that @event needs if it is flexible */
static unsigned int flexible_weight(const struct perf_event *event, unsigned int class)
{
	return is_flexible(event) && bp_class(&event->attr) == class ? bp_weight(event) : 0;
}

/*
 * Number of registers of @class that flexible members of @bp's group still need. perf sets
 * an event ACTIVE before it calls pmu::add(), and starts with the leader: besides @bp, only
 * INACTIVE siblings still need a register.
 */
static unsigned int group_needs(struct perf_event *bp, unsigned int class)
{
	unsigned int n = flexible_weight(bp, class);
	struct perf_event *sibling;

	for_each_sibling_event(sibling, bp->group_leader) {
		if (sibling != bp && sibling->state == PERF_EVENT_STATE_INACTIVE)
			n += flexible_weight(sibling, class);
	}

	return n;
}

/* True if @need registers are free, or will be if lower priorities are evicted. */
static bool group_fits(struct perf_event *bp, unsigned int class,
		       unsigned int need, u32 epoch)
{
	struct bp_assigned *assigned = this_cpu_ptr(&bp_assigned[class]);
	unsigned int lower;

	assigned->available = available(class);
	if (need > assigned->available)
		return false;
	lower = nr_lower_priority(bp, assigned, epoch);
	return assigned->nr_flexible + need <= assigned->available + lower &&
	       assigned->weight + need <= perf_slots(class) + lower;
}

/*
 * Evict others only if the whole group then finds registers: otherwise they would be
 * evicted for a group that cannot be scheduled.
 */
static bool evict_for_flexible(struct perf_event *bp, struct bp_assigned *assigned)
{
	unsigned int slots = perf_slots(bp_class(&bp->attr)), weight = bp_weight(bp);
	unsigned int class, need;
	struct perf_event *other;
	u32 epoch = current_epoch();

	for (class = 0; class < TYPE_MAX; class++) {
		need = group_needs(bp, class);
		if (need && !group_fits(bp, class, need, epoch))
			return false;
	}

	while (assigned->nr_flexible + weight > assigned->available ||
	       assigned->weight + weight > slots) {
		other = lowest_priority(bp, assigned, epoch);
		if (!other || !evict(assigned, other))
			return false;
	}

	return true;
}

/* ---- For the PMU ---- */

static bool has_free_register(const struct perf_event *bp, enum bp_type_idx class,
			      unsigned int weight)
{
	return !hw_breakpoint_is_flexible(&bp->attr) &&
	       this_cpu_read(bp_assigned[class].weight) + weight <= perf_slots(class);
}

/* Out of line: not needed if a guaranteed breakpoint finds a register. */
static noinline int evict_and_install(struct perf_event *bp, struct bp_assigned *assigned)
{
	bool flexible = hw_breakpoint_is_flexible(&bp->attr), fits;
	int err;

	fits = flexible ? evict_for_flexible(bp, assigned) : evict_for_guaranteed(bp, assigned);
	if (!fits)
		return -ENOSPC;
	err = arch_install_hw_breakpoint(bp);
	if (err)
		return err;

	assigned->weight += bp_weight(bp);
	if (flexible) {
		assigned->nr_flexible += bp_weight(bp);
		list_add_tail(&bp->hw.bp_flexible, &assigned->flexible);
	}
	return 0;
}

static noinline void unlist_flexible(struct perf_event *bp, struct bp_assigned *assigned)
{
	assigned->nr_flexible -= bp_weight(bp);
	list_del(&bp->hw.bp_flexible);
}

unsigned int bp_group_weight(const struct perf_event *event, unsigned int class)
{
	struct perf_event *leader = event->group_leader, *sibling;
	unsigned int n = leader == event ? 0 : flexible_weight(leader, class);

	for_each_sibling_event(sibling, leader) {
		if (sibling != event)
			n += flexible_weight(sibling, class);
	}

	return n;
}

int bp_sched_in(struct perf_event *bp)
{
	enum bp_type_idx class = bp_class(&bp->attr);
	unsigned int weight = bp_weight(bp);
	int err;

	lockdep_assert_irqs_disabled();

	if (unlikely(!has_free_register(bp, class, weight)))
		return evict_and_install(bp, this_cpu_ptr(&bp_assigned[class]));

	err = arch_install_hw_breakpoint(bp);
	if (!err)
		this_cpu_add(bp_assigned[class].weight, weight);
	return err;
}

void bp_sched_out(struct perf_event *bp, int flags)
{
	enum bp_type_idx class = bp_class(&bp->attr);

	lockdep_assert_irqs_disabled();

	this_cpu_sub(bp_assigned[class].weight, bp_weight(bp));
	if (unlikely(hw_breakpoint_is_flexible(&bp->attr)))
		unlist_flexible(bp, this_cpu_ptr(&bp_assigned[class]));

	arch_uninstall_hw_breakpoint(bp);
}

/* ---- For kernel debuggers, which make claims at any time ---- */

/*
 * Reschedules the events of one leader PMU at a time, until no more registers
 * are assigned to flexible breakpoints than are available.
 */
static void evict_excess(unsigned int class)
{
	struct bp_assigned *assigned = this_cpu_ptr(&bp_assigned[class]);
	struct perf_event *bp;
	unsigned int i;

	for (i = 0; i < BP_SLOTS_MAX; i++) {
		if (assigned->nr_flexible <= available(class))
			break;
		bp = flexible_entry(assigned->flexible.next);
		perf_pmu_resched(bp->group_leader->pmu_ctx->pmu);
	}
}

static void evict_all_excess(struct irq_work *work)
{
	unsigned int class;

	for (class = 0; class < TYPE_MAX; class++)
		evict_excess(class);
}

static DEFINE_PER_CPU(struct irq_work, bp_evict_work) =
	IRQ_WORK_INIT_HARD(evict_all_excess);

void hw_breakpoint_evict_flexible(void)
{
	irq_work_queue(this_cpu_ptr(&bp_evict_work));
}

void bp_debugger_holds(unsigned int class, int nr)
{
	atomic_sub(nr, &bp_perf_slots[class]);
}

void __init bp_multiplex_init(void)
{
	unsigned int class;
	int cpu;

	for (class = 0; class < TYPE_MAX; class++)
		atomic_set(&bp_perf_slots[class], bp_machine.class[class].slots);
	for_each_possible_cpu(cpu) {
		for (class = 0; class < TYPE_MAX; class++)
			INIT_LIST_HEAD(&per_cpu(bp_assigned, cpu)[class].flexible);
	}
}
