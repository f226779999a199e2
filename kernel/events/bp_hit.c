// SPDX-License-Identifier: GPL-2.0
/*
 * Count or sample a hit that the architecture reports.
 *
 * Runs in exception context, possibly inside an open batch of register changes,
 * and takes no lock.
 */

#include <linux/export.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "internal.h"
#include "process.h"

static bool is_for_current_process(const struct perf_event *bp)
{
	return bp->process == READ_ONCE(current->signal->perf_process) &&
	       !perf_process_is_over(bp);
}

/*
 * A breakpoint of a task is armed only while its context is scheduled in on
 * this CPU.  In a switch between two clones perf may already have given this
 * context to the next task, so ctx->task need not be current.  In any other
 * case drop the hit: a task must never get the hits of another one.  A breakpoint
 * of a process stays armed until the next task has been switched to.
 */
static bool bp_is_for_current(const struct perf_event *bp)
{
	struct perf_event_context *ctx = bp->ctx;
	struct task_struct *task = READ_ONCE(ctx->task);

	if (!task)
		return !bp->process || is_for_current_process(bp);
	return task == current || ctx == perf_cpu_task_ctx();
}

static bool bp_excluded(struct perf_event *bp, struct pt_regs *regs)
{
	return user_mode(regs) ? bp->attr.exclude_user : bp->attr.exclude_kernel;
}

/* Out of line: the compiler may zero @data even for hits that only count. */
static noinline void sample_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs)
{
	struct hw_perf_event *hwc = &bp->hw;
	struct perf_sample_data data;

	perf_sample_data_init(&data, addr, hwc->last_period);
	if (hwc->sample_period != 1 || bp->attr.freq) {
		if (local64_add_negative(1, &hwc->period_left))
			return;
		perf_swevent_set_period(bp);
		data.period = hwc->last_period;
	}

	/* Do not throttle: a debugger must not miss a hit. */
	__perf_event_overflow(bp, 0, &data, regs);
}

void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs)
{
	if ((bp->hw.state & PERF_HES_STOPPED) || bp_excluded(bp, regs))
		return;
	if (!bp_is_for_current(bp))
		return;

	local64_inc(&bp->count);
	if (is_sampling_event(bp))
		sample_hit(bp, addr, regs);
}

void perf_bp_event(struct perf_event *bp, struct pt_regs *regs)
{
	perf_bp_event_at(bp, bp->attr.bp_addr, regs);
}
EXPORT_SYMBOL_GPL(perf_bp_event);
