// SPDX-License-Identifier: GPL-2.0
/*
 * Multiplexed groups: PERF_EV_CAP_MUX.
 *
 * A PMU that multiplexes its events may schedule any of them out in favor of another one,
 * so any number of groups can wait for few counters.  In the tree of a context multiplexed
 * groups are behind all other groups of their PMU, the disabled ones last, so that a walk
 * stops after the first few that do not fit.  Rotation moves a group back by the time for
 * which it has run; only the groups that have counters, or that were tried, are moved.
 *
 * core.c schedules these groups as it does all others, and calls this file when the place
 * of a group may change.  All functions but perf_group_admit() run under the ctx->lock of
 * the group.
 */

#include <linux/cgroup.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rbtree.h>
#include <linux/smp.h>

#include "internal.h"

/* ---- Places in the tree ---- */

/* True if @leader or an enabled member of its group has PERF_EV_CAP_MUX. */
static bool is_multiplexed(struct perf_event *leader)
{
	struct perf_event *sibling;

	if (leader->event_caps & PERF_EV_CAP_MUX)
		return true;
	for_each_sibling_event(sibling, leader) {
		if ((sibling->event_caps & PERF_EV_CAP_MUX) &&
		    sibling->state >= PERF_EVENT_STATE_INACTIVE)
			return true;
	}

	return false;
}

u64 __perf_group_mux_bits(struct perf_event *leader)
{
	if (!is_multiplexed(leader))
		return 0;
	return leader->state >= PERF_EVENT_STATE_INACTIVE ? PERF_GROUP_MUX :
							    PERF_GROUP_MUX_OFF;
}

/*
 * A multiplexed group moves back by the time for which it has run, in nanoseconds: the
 * groups that have run for the shortest time come first, so all get the same time even
 * if the turns of some are always shorter than those of others.
 *
 * @groups->index is the first place of the groups that had their turn last.  No group
 * goes before it: one that could not be scheduled for long, for example because it is
 * for another CPU, must not keep out the others until it has caught up.  A group may have
 * run for any time while no other one waited: limit what counts.
 */
u64 perf_mux_place(struct perf_event_groups *groups, struct perf_event *event)
{
	u64 used = min(perf_rotate_used(event), 4 * perf_rotate_interval(event->pmu_ctx));
	u64 place = (event->group_index & ~PERF_GROUP_MUX_BITS) + used;

	return perf_group_mux_bits(event) | max(place, groups->index);
}

/*
 * If PERF_GROUP_MUX_BITS of the group have changed, move it to its new place in the tree.
 */
void __perf_group_reorder(struct perf_event *leader)
{
	struct perf_event_groups *groups = &leader->ctx->flexible_groups;
	struct perf_event_pmu_context *epc = leader->pmu_ctx;
	struct perf_event_context *ctx = leader->ctx;
	u64 mux;

	if (RB_EMPTY_NODE(&leader->group_node) || leader->attr.pinned)
		return;

	mux = perf_group_mux_bits(leader);
	if (mux == (leader->group_index & PERF_GROUP_MUX_BITS))
		return;

	perf_event_groups_delete(groups, leader);
	perf_event_groups_insert(groups, leader, mux | ++groups->index);
	group_update_userpage(leader);

	if (leader->state == PERF_EVENT_STATE_ACTIVE && !list_empty(&leader->active_list)) {
		list_del(&leader->active_list);
		add_to_active_list(leader);
	} else if (mux != PERF_GROUP_MUX && (ctx->is_active & EVENT_FLEXIBLE)) {
		/*
		 * A group that is no longer multiplexed is not visited by
		 * perf_mux_rotate_all() any more. A group that is disabled while a walk
		 * visits it moves to the end, so that the walk skips the
		 * others. Both need a rotation.
		 */
		epc->rotate_necessary |= perf_rotate_bit(leader);
		perf_mux_hrtimer_restart(this_cpu_ptr(epc->pmu->cpu_pmu_context));
	}
}

/* ---- Rotation ---- */

struct failed {
	struct perf_event	*event[PERF_MUX_TRIES];
	unsigned int		nr;
};

static int collect_failed(struct perf_event *event, void *data)
{
	struct failed *first = data;

	if (event->group_index < PERF_GROUP_MUX_OFF)
		first->event[first->nr++] = event;
	return event->group_index >= PERF_GROUP_MUX_OFF ||
	       first->nr == PERF_MUX_TRIES;
}

/* None of the groups that a walk tries fits: move them behind the others. */
static void rotate_failed(struct perf_event_pmu_context *pmu_ctx,
			  struct perf_event_groups *groups)
{
	struct perf_event_context *ctx = pmu_ctx->ctx;
	struct failed first = { };
	unsigned int i;

	visit_mux_groups_merge(ctx, groups, smp_processor_id(), pmu_ctx->pmu,
			       collect_failed, &first);
	for (i = 0; i < first.nr; i++) {
		/* As if it had run for an interval */
		first.event[i]->rotated -= perf_rotate_interval(pmu_ctx);
		rotate_ctx(ctx, first.event[i]);
	}
}

/*
 * Rotate the active multiplexed groups.  They are last in the list, see
 * add_to_active_list().  The one that was scheduled in last must have run for a quarter
 * of an interval: a context that is scheduled in and out all the time does not load other
 * groups each time.
 */
void perf_mux_rotate(struct perf_event_pmu_context *pmu_ctx)
{
	struct perf_event_groups *groups = &pmu_ctx->ctx->flexible_groups;
	u64 quantum = perf_rotate_interval(pmu_ctx) / 4, first = U64_MAX;
	struct perf_event *event;

	list_for_each_entry_reverse(event, &pmu_ctx->flexible_active, active_list) {
		if (event->group_index < PERF_GROUP_MUX)
			break;
		if (first == U64_MAX && perf_rotate_used(event) < quantum)
			return;
		first = min(first, event->group_index & ~PERF_GROUP_MUX_BITS);
		rotate_ctx(pmu_ctx->ctx, event);
	}

	if (first == U64_MAX)
		rotate_failed(pmu_ctx, groups);
	else
		groups->index = max(groups->index, first);
}

/* Multiplexed groups are last in the list, see add_to_active_list(). */
static void mux_sched_out(struct perf_event_pmu_context *pmu_ctx, bool rotate)
{
	struct perf_event *event, *next;

	if (rotate)
		perf_mux_rotate(pmu_ctx);
	list_for_each_entry_safe_reverse(event, next, &pmu_ctx->flexible_active, active_list) {
		if (event->group_index < PERF_GROUP_MUX)
			break;
		group_sched_out(event, pmu_ctx->ctx);
	}
	pmu_ctx->rotate_necessary &= ~PERF_ROTATE_MUX;
}

/*
 * Rotates the multiplexed groups of the contexts that need it; all other groups stay
 * scheduled. The cost depends on the number of counters of the PMU, not on the number of
 * groups.
 */
void perf_mux_rotate_all(struct perf_event_pmu_context *const epc[])
{
	int i, first = 0;

	while (!epc[first] || !(epc[first]->rotate_necessary & PERF_ROTATE_MUX)) {
		if (++first == PERF_NR_CTX)
			return;
	}
	for (i = PERF_NR_CTX - 1; i >= first; i--) {
		if (!epc[i])
			continue;
		perf_rotate_update_time(epc[i]);
		mux_sched_out(epc[i], epc[i]->rotate_necessary & PERF_ROTATE_MUX);
	}
	for (i = first; i < PERF_NR_CTX; i++) {
		if (epc[i])
			perf_mux_sched_in(epc[i]);
	}
}

/* ---- For PMUs, and groups ---- */

/*
 * Schedules out the group of @event, which has PERF_EV_CAP_MUX; the next
 * rotation may schedule it in again. Called by pmu::add(), with all contexts
 * that are scheduled on this CPU locked.
 */
void perf_event_evict(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader;
	struct perf_event_pmu_context *epc = leader->pmu_ctx;

	perf_pmu_disable(epc->pmu);
	ctx_time_update_event(leader->ctx, leader);
	group_sched_out(leader, leader->ctx);
	group_update_userpage(leader);
	epc->rotate_necessary |= perf_rotate_bit(leader);
	perf_mux_hrtimer_restart(this_cpu_ptr(epc->pmu->cpu_pmu_context));
	perf_pmu_enable(epc->pmu);
}

/*
 * @event is about to join a group. If @event or a member of the group has
 * PERF_EV_CAP_MUX, its PMU decides.
 */
int perf_group_admit(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;

	if (event->event_caps & PERF_EV_CAP_MUX)
		return event->pmu->admit(event);
	if (leader->event_caps & PERF_EV_CAP_MUX)
		return leader->pmu->admit(event);
	for_each_sibling_event(sibling, leader) {
		if (sibling->event_caps & PERF_EV_CAP_MUX)
			return sibling->pmu->admit(event);
	}

	return 0;
}
