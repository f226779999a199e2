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

#include "bp_internal.h"
#include "bp_value.h"
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

/* bp_is_for_current() of most hits, without calls */
static __always_inline bool task_is_current(const struct perf_event *bp)
{
	struct task_struct *task = READ_ONCE(bp->ctx->task);

	return task ? task == current : !bp->process;
}

static bool bp_excluded(struct perf_event *bp, struct pt_regs *regs)
{
	return user_mode(regs) ? bp->attr.exclude_user : bp->attr.exclude_kernel;
}

/*
 * A member of a kernel-wide set has no task, no file and no ring buffer. So no signal, BPF
 * program, auxiliary buffer or reader waits for its overflows: only the handler, a limit
 * that perf_event_refresh() sets, and the period of a frequency.
 */
static bool has_only_handler(const struct perf_event *bp)
{
	return bp_is_wide(bp) && !atomic_read(&bp->event_limit) && !bp->attr.freq;
}

static __always_inline void sample(struct perf_event *bp, u64 addr, struct pt_regs *regs,
				   bool only, struct perf_raw_record *raw)
{
	/* perf reads the other fields only after it has set them. */
	struct perf_sample_data data __uninitialized;
	struct hw_perf_event *hwc = &bp->hw;

	perf_sample_data_init(&data, addr, hwc->last_period);
	/* perf_sample_data_init() skips 0. */
	data.addr = addr;
	if (hwc->sample_period != 1 || bp->attr.freq) {
		if (local64_add_negative(1, &hwc->period_left))
			return;
		perf_swevent_set_period(bp);
		data.period = hwc->last_period;
	}

	if (only && user_mode(regs))
		data.sample_flags |= PERF_SAMPLE_ONLY_CAUSE;
	if (raw)
		perf_sample_save_raw_data(&data, bp, raw);

	/* Do not throttle: a debugger must not miss a hit. */
	if (has_only_handler(bp))
		READ_ONCE(bp->overflow_handler)(bp, &data, regs);
	else
		__perf_event_overflow(bp, 0, &data, regs);
}

/* Out of line: hits that only count need no frame for the sample. */
static noinline void sample_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
				bool only)
{
	sample(bp, addr, regs, only, NULL);
}

static __always_inline void count_hit(struct perf_event *bp, u64 addr,
				      struct pt_regs *regs, bool only)
{
	local64_inc(&bp->count);
	if (is_sampling_event(bp))
		sample_hit(bp, addr, regs, only);
}

static noinline void handle_rare_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
				     bool only)
{
	if (bp_is_for_current(bp))
		count_hit(bp, addr, regs, only);
}

/* ---- HW_BREAKPOINT_VALUE and HW_BREAKPOINT_CHANGED ---- */

static noinline void count_record(struct perf_event *bp, u64 addr, struct pt_regs *regs, bool only,
				  struct bp_value_record *record)
{
	struct perf_raw_record raw = {
		.frag = {
			.data	= record,
			.size	= offsetof(typeof(*record), bytes) + 2 * record->len,
		},
	};

	local64_inc(&bp->count);
	if (is_sampling_event(bp))
		sample(bp, addr, regs, only, &raw);
}

static noinline void count_words(struct perf_event *bp, u64 addr, struct pt_regs *regs, bool only,
				 u64 before, u64 after)
{
	struct bp_value_record record __uninitialized;

	bp_value_record_words(&record, bp->attr.bp_len, before, after);
	count_record(bp, addr, regs, only, &record);
}

static noinline void handle_other_valued_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
					     bool only)
{
	struct bp_value_record record __uninitialized;

	if (!bp_is_for_current(bp) || !bp_value_hit(bp, addr, regs, &record))
		return;
	if (bp->attr.config & HW_BREAKPOINT_VALUE)
		count_record(bp, addr, regs, only, &record);
	else
		count_hit(bp, addr, regs, only);
}

/* Only tail calls, as in perf_bp_event_at() */
static noinline void handle_valued_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
				       bool only)
{
	u64 before, after;

	if ((bp->hw.state & PERF_HES_STOPPED) || bp_excluded(bp, regs))
		return;
	if (!user_mode(regs) || !task_is_current(bp) ||
	    !bp_value_hit_word(bp, addr, &before, &after))
		handle_other_valued_hit(bp, addr, regs, only);
	else if (before == after && (bp->attr.config & HW_BREAKPOINT_CHANGED))
		bp_value_count_silent(bp);
	else if (bp->attr.config & HW_BREAKPOINT_VALUE)
		count_words(bp, addr, regs, only, before, after);
	else
		count_hit(bp, addr, regs, only);
}

/* Only tail calls: then no register has to be saved. */
void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs, bool only)
{
	/* PERF_HES_STOPPED or PERF_HES_ARCH */
	if (unlikely(bp->hw.state)) {
		handle_valued_hit(bp, addr, regs, only);
		return;
	}
	if (bp_excluded(bp, regs))
		return;

	if (likely(task_is_current(bp)))
		count_hit(bp, addr, regs, only);
	else
		handle_rare_hit(bp, addr, regs, only);
}

void perf_bp_event(struct perf_event *bp, struct pt_regs *regs)
{
	perf_bp_event_at(bp, bp->attr.bp_addr, regs, false);
}
EXPORT_SYMBOL_GPL(perf_bp_event);
