// SPDX-License-Identifier: GPL-2.0
/*
 * Who has the registers of a CPU at the moment.
 *
 * The books (bp_slots.h) say who may ask; this file hands out when perf asks. A
 * guaranteed breakpoint always gets a register: where flexible ones have them
 * all, one of these goes at once.  A flexible one gets what guaranteed claims
 * leave, those of the CPU and of the task that runs there, whether they use it
 * or not; so few have to go when a guaranteed one comes.
 *
 * perf rotates flexible breakpoints within a *party*: those of one context whose
 * groups are led by events of one PMU.  Between parties it knows no turns: it
 * schedules one before the other, and does not rotate a party all of whose
 * members have a register.  So parties have ranks, drawn anew each millisecond,
 * and a member that finds no register takes one from the party of the lowest
 * rank, if that is below its own.  The ranks are random because any regular
 * order could keep step with the rotation and leave out the same breakpoints
 * each time.
 *
 * perf calls with interrupts off and with both contexts of this CPU locked: a
 * group can be taken off whichever of the two it is in.
 */

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

/**
 * struct bp_given - registers of one class of a CPU that are given out
 * @weight: how many
 * @nr_flexible: how many of them to flexible breakpoints
 * @flexible: these breakpoints, in the order in which they came
 * @spare: what guaranteed claims leave for flexible breakpoints
 * @spare_ctx: while this task context is here
 * @spare_version: and the books are of this version; 0 if it is not known
 * @refused: a party that found no room, NULL if there was none since something
 *	changed
 * @refused_draw: by the ranks of this draw
 * @refused_need: for so many registers
 *
 * Used on its CPU only, with interrupts off.
 */
struct bp_given {
	unsigned int		weight;
	unsigned int		nr_flexible;
	struct list_head	flexible;

	unsigned int		spare;
	const struct perf_event_context *spare_ctx;
	unsigned long		spare_version;

	const struct perf_event_pmu_context *refused;
	u32			refused_draw;
	unsigned int		refused_need;
};

static DEFINE_PER_CPU(struct bp_given [TYPE_MAX], bp_given);

static inline struct perf_event *flexible_entry(struct list_head *link)
{
	return list_entry(link, struct perf_event, hw.bp_flexible);
}

/* ---- Turns between parties ---- */

static const struct perf_event_pmu_context *party(const struct perf_event *bp)
{
	return bp->group_leader->pmu_ctx;
}

static u32 party_rank(const struct perf_event *bp, u32 draw)
{
	unsigned long who = (unsigned long)party(bp);

	return jhash_3words(lower_32_bits(who), upper_32_bits((u64)who), draw, 0);
}

/* A new draw each 1.05 ms */
static u32 current_draw(void)
{
	return local_clock() >> 20;
}

/* The last comer of the party that stands lowest, if that is below @bp's. */
static struct perf_event *lower_ranked(const struct perf_event *bp,
				       struct bp_given *given, u32 draw)
{
	u32 rank, lowest = party_rank(bp, draw);
	struct perf_event *other, *found = NULL;

	list_for_each_entry_reverse(other, &given->flexible, hw.bp_flexible) {
		if (party(other) == party(bp))
			continue;
		rank = party_rank(other, draw);
		if (rank < lowest) {
			lowest = rank;
			found = other;
		}
	}

	return found;
}

/* How many registers those have that stand below @bp. */
static unsigned int nr_lower_ranked(const struct perf_event *bp,
				    struct bp_given *given, u32 draw)
{
	u32 rank = party_rank(bp, draw);
	struct perf_event *other;
	unsigned int n = 0;

	list_for_each_entry(other, &given->flexible, hw.bp_flexible)
		n += party(other) != party(bp) && party_rank(other, draw) < rank;

	return n;
}

bool hw_breakpoint_takes_turns(struct perf_event *leader)
{
	struct perf_event *event;

	if (hw_breakpoint_event_is_flexible(leader))
		return true;
	for_each_sibling_event(event, leader) {
		if (hw_breakpoint_event_is_flexible(event) &&
		    event->state >= PERF_EVENT_STATE_INACTIVE)
			return true;
	}

	return false;
}

/* ---- Room for one more ---- */

/* What guaranteed claims leave on this CPU while @ctx is on it; NULL for none. */
static unsigned int spare(struct bp_given *given, unsigned int class,
			  const struct perf_event_context *ctx)
{
	unsigned long version = bp_slots_version(&bp_books);

	if (given->spare_version != version || given->spare_ctx != ctx) {
		given->spare = bp_slots_spare(&bp_books, class,
					      ctx ? &ctx->bp_domain : NULL,
					      smp_processor_id());
		given->spare_ctx = ctx;
		given->spare_version = version;
		given->refused = NULL;
	}

	return given->spare;
}

static bool displace(struct bp_given *given, struct perf_event *bp)
{
	unsigned int weight = given->weight;

	perf_event_displace(bp);
	return !WARN_ON_ONCE(given->weight == weight);
}

static bool room_for_guaranteed(struct bp_given *given,
				const struct bp_claim_spec *spec)
{
	unsigned int slots = bp_books.class[spec->class].slots;

	while (given->weight + spec->weight > slots) {
		if (list_empty(&given->flexible) ||
		    !displace(given, flexible_entry(given->flexible.prev)))
			return false;
	}

	return true;
}

/* So many registers of a class the group of @bp wants for flexible ones yet. */
static unsigned int group_needs(struct perf_event *bp, unsigned int class)
{
	struct perf_event *leader = bp->group_leader, *event;
	unsigned int n = 0;

	/* The leader came first, and perf schedules in whom it calls active. */
	n += leader == bp && bp_class(&bp->attr) == class;
	for_each_sibling_event(event, leader) {
		if (event != bp && event->state != PERF_EVENT_STATE_INACTIVE)
			continue;
		n += hw_breakpoint_event_is_flexible(event) &&
		     bp_class(&event->attr) == class;
	}

	return n;
}

/* Can the group of @bp have all it needs of a class, if not for nothing? */
static bool room_for_group(struct perf_event *bp, unsigned int class,
			   unsigned int need, u32 draw)
{
	struct perf_event_context *ctx = bp->ctx->task ? bp->ctx : perf_cpu_task_ctx();
	struct bp_given *given = this_cpu_ptr(&bp_given[class]);
	unsigned int slots = bp_books.class[class].slots;
	unsigned int left = spare(given, class, ctx), lower;

	if (need > left)
		return false;
	if (given->nr_flexible + need <= left && given->weight + need <= slots)
		return true;

	if (given->refused == party(bp) && given->refused_draw == draw &&
	    given->refused_need <= need)
		return false;

	lower = nr_lower_ranked(bp, given, draw);
	if (given->nr_flexible + need <= left + lower &&
	    given->weight + need <= slots + lower)
		return true;

	given->refused = party(bp);
	given->refused_draw = draw;
	given->refused_need = need;
	return false;
}

/*
 * Others go only where the whole group finds room, so that none goes for a
 * group that cannot be scheduled for want of registers.
 */
static bool room_for_flexible(struct perf_event *bp, struct bp_given *given,
			      const struct bp_claim_spec *spec)
{
	unsigned int slots = bp_books.class[spec->class].slots, class, need;
	struct perf_event *other;
	u32 draw = current_draw();

	for (class = 0; class < TYPE_MAX; class++) {
		need = group_needs(bp, class);
		if (need && !room_for_group(bp, class, need, draw))
			return false;
	}

	while (given->nr_flexible >= given->spare || given->weight >= slots) {
		other = lower_ranked(bp, given, draw);
		if (!other || !displace(given, other))
			return false;
	}

	return true;
}

/* ---- For the PMU ---- */

int bp_give_register(struct perf_event *bp)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr);
	struct bp_given *given = this_cpu_ptr(&bp_given[spec.class]);
	bool room;
	int err;

	lockdep_assert_irqs_disabled();

	room = spec.flexible ? room_for_flexible(bp, given, &spec) :
			       room_for_guaranteed(given, &spec);
	if (!room)
		return -ENOSPC;

	err = arch_install_hw_breakpoint(bp);
	if (err)
		return err;

	given->refused = NULL;
	given->weight += spec.weight;
	if (spec.flexible) {
		given->nr_flexible++;
		list_add_tail(&bp->hw.bp_flexible, &given->flexible);
	}
	return 0;
}

void bp_take_register_back(struct perf_event *bp)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr);
	struct bp_given *given = this_cpu_ptr(&bp_given[spec.class]);

	lockdep_assert_irqs_disabled();

	arch_uninstall_hw_breakpoint(bp);

	given->refused = NULL;
	given->weight -= spec.weight;
	if (spec.flexible) {
		given->nr_flexible--;
		list_del(&bp->hw.bp_flexible);
	}
}

/* ---- For kernel debuggers, whose claims come at any time ---- */

/*
 * Has perf schedule those again that have more than is left for them. Who led
 * by events of which PMU has too much, is found out by and by.
 */
static void trim(unsigned int class)
{
	struct bp_given *given = this_cpu_ptr(&bp_given[class]);
	unsigned int i;

	for (i = 0; i < BP_SLOTS_MAX; i++) {
		if (given->nr_flexible <= spare(given, class, perf_cpu_task_ctx()))
			break;
		perf_pmu_resched(party(flexible_entry(given->flexible.next))->pmu);
	}
}

static void trim_all(struct irq_work *work)
{
	unsigned int class;

	for (class = 0; class < TYPE_MAX; class++)
		trim(class);
}

static DEFINE_PER_CPU(struct irq_work, bp_trim_work) =
	IRQ_WORK_INIT_HARD(trim_all);

void hw_breakpoint_trim_flexible(void)
{
	irq_work_queue(this_cpu_ptr(&bp_trim_work));
}

void __init bp_turns_init(void)
{
	unsigned int class;
	int cpu;

	for_each_possible_cpu(cpu) {
		for (class = 0; class < TYPE_MAX; class++)
			INIT_LIST_HEAD(&per_cpu(bp_given, cpu)[class].flexible);
	}
}
