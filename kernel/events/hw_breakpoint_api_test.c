// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of hardware breakpoints of a task and of a CPU.
 *
 * A registered breakpoint fires: each watched access is one call of the
 * handler, in the task and on the CPU that made the access.  A request for
 * which no register is available is refused, and a refused request does not
 * change the accounting.  A breakpoint that was removed does not fire.
 */

#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "hw_breakpoint_test.h"
#include "process.h"

/* ---- Cases: a task's breakpoint ---- */

static void each_write_calls_the_handler_once(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int i;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);

	for (i = 1; i <= 5; i++) {
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
		KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), (u64)i);
	}
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 5ULL);
}

static void handler_gets_event_address_and_ip(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[3], &hits);
	bp_test_write_word(&bp_test_words[3]);

	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	KUNIT_EXPECT_PTR_EQ(test, hits.bp, bp);
	KUNIT_EXPECT_PTR_EQ(test, hits.task, current);
	KUNIT_EXPECT_EQ(test, hits.addr, (unsigned long)&bp_test_words[3]);
	if (IS_ENABLED(CONFIG_KALLSYMS))
		KUNIT_EXPECT_TRUE_MSG(test, bp_test_inside(hits.ip, bp_test_write_word),
				      "hit at %pS", (void *)hits.ip);
}

static void only_a_read_write_breakpoint_is_hit_by_reads(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_RW);
	struct bp_test_hits writes = { }, accesses = { };

	bp_test_require_hits(test);
	bp_test_watch_task(test, current, &bp_test_words[0], &writes);
	bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, &accesses,
						       current));

	bp_test_read_word(&bp_test_words[0]);
	bp_test_read_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&writes), 0);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&accesses), 1);
	if (IS_ENABLED(CONFIG_KALLSYMS))
		KUNIT_EXPECT_TRUE(test, bp_test_inside(accesses.ip, bp_test_read_word));

	bp_test_write_word(&bp_test_words[0]);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&writes), 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&accesses), 1);
}

static void every_register_watches_at_the_same_time(struct kunit *test)
{
	struct bp_test_hits hits[BP_SLOTS_MAX] = { };
	unsigned int i, j;

	bp_test_require_hits(test);
	for (i = 0; i < bp_test_nr_slots(); i++)
		bp_test_watch_task(test, current, &bp_test_words[i], &hits[i]);

	for (i = 0; i < bp_test_nr_slots(); i++) {
		bp_test_write_word(&bp_test_words[i]);
		for (j = 0; j < bp_test_nr_slots(); j++)
			KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits[j]), i == j);
	}
}

static void a_task_watch_follows_its_task_and_no_other(struct kunit *test)
{
	struct kthread_worker *worker = bp_test_start_worker(test);
	struct bp_test_hits own = { }, others = { };
	int cpu;

	bp_test_require_hits(test);
	bp_test_watch_task(test, current, &bp_test_words[0], &own);
	bp_test_watch_task(test, worker->task, &bp_test_words[0], &others);

	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&own), 1);
		KUNIT_EXPECT_EQ(test, own.cpu, cpu);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&others), 0);

		bp_test_write_by(worker, &bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&own), 0);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&others), 1);
		KUNIT_EXPECT_PTR_EQ(test, others.task, worker->task);
	}
	bp_test_run_anywhere();
}

/*
 * As if a breakpoint of another task were armed here. perf never leaves one
 * armed, so the test reports a hit itself.
 */
static void a_hit_is_reported_to_its_task_only(struct kunit *test)
{
	struct task_struct *other = bp_test_start_worker(test)->task;
	struct bp_test_hits hits = { }, own = { };
	struct perf_event *bp, *mine;
	struct pt_regs regs = { };

	bp = bp_test_watch_task(test, other, &bp_test_words[0], &hits);
	mine = bp_test_watch_task(test, current, &bp_test_words[1], &own);

	local_irq_disable();
	perf_bp_event_at(bp, bp->attr.bp_addr, &regs, false);
	perf_bp_event_at(mine, mine->attr.bp_addr, &regs, false);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 0);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&own), 1);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(mine), 1);
}

/* Watches the first word for this task. */
static struct perf_event *watch_with_period(struct kunit *test, u64 period,
					    struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);

	bp_test_require_hits(test);
	attr.sample_period = period;
	return bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, hits,
							      current));
}

static void a_period_calls_the_handler_at_every_nth_hit(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp = watch_with_period(test, 3, &hits);
	int i;

	for (i = 1; i <= 9; i++) {
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ_MSG(test, bp_test_take_hits(&hits), i % 3 == 0, "at hit %d", i);
	}
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 9ULL);
}

static void a_breakpoint_without_a_period_only_counts(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp = watch_with_period(test, 0, &hits);
	int i;

	for (i = 0; i < 4; i++)
		bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 4ULL);
}

static void an_unregistered_breakpoint_is_silent(struct kunit *test)
{
	struct bp_test_hits gone = { }, stays = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	if (bp_test_nr_slots() < 2)
		kunit_skip(test, "one register, two are needed");
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &gone);
	bp_test_watch_task(test, current, &bp_test_words[1], &stays);
	bp_test_drop(test, bp);

	bp_test_write_word(&bp_test_words[0]);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&gone), 0);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&stays), 1);
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());
}

static void a_disabled_breakpoint_is_silent_and_keeps_its_register(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	bp_test_fill_task(test, current, 1, &hits);

	perf_event_disable(bp);
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));

	perf_event_enable(bp);
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
}

static void unregistering_nothing_is_harmless(struct kunit *test)
{
	unregister_hw_breakpoint(NULL);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: what is refused ---- */

static void a_malformed_breakpoint_is_refused(struct kunit *test)
{
	struct perf_event_attr attr;

	attr = bp_test_malformed(&bp_test_words[0]);
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, NULL,
							   current));

	attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	attr.bp_len = 0;
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, NULL,
							   current));

	attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	attr.config = 1ULL << 63;
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, NULL,
							   current));

	/* A kernel address cannot be accessed in user mode. */
	attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	attr.bp_addr = (unsigned long)&bp_test_words[0];
	attr.exclude_kernel = 1;
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, NULL,
							   current));
}

static void malformed_request_of_a_full_task_is_einval(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_malformed(&bp_test_words[0]);
	struct bp_test_hits hits = { };

	bp_test_fill_task(test, current, 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, &hits,
							   current));
}

static void a_task_has_as_many_breakpoints_as_there_are_registers(struct kunit *test)
{
	struct kthread_worker *worker = bp_test_start_worker(test);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_fill_task(test, current, 1, &hits);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), current,
							      &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[0], &hits));

	/* Claims of one task do not affect another task. */
	bp_test_fill_task(test, worker->task, 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(worker->task, &bp_test_words[0],
							       &hits));

	bp_test_drop(test, bp);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(worker->task, &bp_test_words[0],
							       &hits));
	bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
}

static void a_task_on_one_cpu_takes_no_register_of_another(struct kunit *test)
{
	struct bp_test_hits hits = { };
	unsigned int i;

	bp_test_require_two_cpus(test);
	for (i = 0; i < bp_test_nr_slots(); i++)
		bp_test_keep(test, bp_test_try_cpu(bp_test_first_cpu(), current, &bp_test_words[i],
						   &hits));

	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), current,
							      &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	bp_test_keep(test, bp_test_try_cpu(bp_test_last_cpu(), current, &bp_test_words[0], &hits));
	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[0], &hits));
}

static void a_dead_task_cannot_be_watched(struct kunit *test)
{
	struct task_struct *task = bp_test_start_sleeper(test);
	struct bp_test_hits hits = { };

	kthread_stop(task);
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, bp_test_try_task(task, &bp_test_words[0], &hits));
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	/* ESRCH for a dead task takes precedence over ENOSPC. */
	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, bp_test_try_task(task, &bp_test_words[0], &hits));
	put_task_struct(task);
}

static void a_cpu_that_does_not_exist_cannot_be_watched(struct kunit *test)
{
	struct bp_test_hits hits = { };

	BP_TEST_EXPECT_REFUSED(test, -EINVAL, bp_test_try_cpu(nr_cpu_ids, NULL, &bp_test_words[0],
							      &hits));
	BP_TEST_EXPECT_REFUSED(test, -EINVAL, bp_test_try_cpu(-1, NULL, &bp_test_words[0], &hits));
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: one CPU's breakpoint ---- */

static void cpu_breakpoint_is_hit_by_any_task_on_its_cpu(struct kunit *test)
{
	struct bp_test_hits first = { }, last = { };

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	bp_test_watch_cpu(test, bp_test_first_cpu(), &bp_test_words[0], &first);
	bp_test_watch_cpu(test, bp_test_last_cpu(), &bp_test_words[0], &last);

	bp_test_write_on(test, bp_test_first_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&first), 1);
	KUNIT_EXPECT_EQ(test, first.cpu, bp_test_first_cpu());
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&last), 0);

	bp_test_run_on(test, bp_test_last_cpu());
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&first), 0);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&last), 1);
	KUNIT_EXPECT_PTR_EQ(test, last.task, current);
	bp_test_run_anywhere();
}

static void a_task_watch_on_one_cpu_fires_there_only(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	bp = bp_test_keep(test, bp_test_try_cpu(bp_test_last_cpu(), current, &bp_test_words[0],
						&hits));

	bp_test_run_on(test, bp_test_first_cpu());
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);

	bp_test_run_on(test, bp_test_last_cpu());
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 1ULL);

	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_run_anywhere();
}

static void each_cpu_has_registers_of_its_own(struct kunit *test)
{
	struct bp_test_hits hits = { };

	bp_test_require_two_cpus(test);
	bp_test_fill_cpu(test, bp_test_first_cpu(), 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[0], &hits));
	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
}

static void a_full_cpu_leaves_a_task_no_register_anywhere(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &hits);
	bp = bp_test_watch_cpu(test, bp_test_last_cpu(), &bp_test_words[0], &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), current,
							      &bp_test_words[0], &hits));
	if (bp_test_first_cpu() != bp_test_last_cpu())
		bp_test_keep(test, bp_test_try_cpu(bp_test_first_cpu(), current, &bp_test_words[0],
						   &hits));

	bp_test_drop(test, bp);
	bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[0], &hits));
}

/* ---- Cases: changing a breakpoint ---- */

static void a_modified_breakpoint_watches_the_new_address_only(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_EQ(test, hw_breakpoint_addr(bp), (unsigned long)&bp_test_words[1]);

	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	KUNIT_EXPECT_EQ(test, hits.addr, (unsigned long)&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), 1ULL);
}

static void modified_breakpoint_watches_the_new_length_and_type(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_RW);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	u8 *last;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	last = (u8 *)&bp_test_words[0] + sizeof(bp_test_words[0]) - 1;

	attr.bp_len = HW_BREAKPOINT_LEN_1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	WRITE_ONCE(*last, 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_read_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	attr.bp_len = sizeof(bp_test_words[0]);
	attr.bp_type = HW_BREAKPOINT_W;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	WRITE_ONCE(*last, 2);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	bp_test_read_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
}

static void a_modify_can_disable_and_enable(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);

	attr.disabled = 1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_TRUE(test, bp->attr.disabled);
	bp_test_write_word(&bp_test_words[0]);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);

	attr.disabled = 0;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_FALSE(test, bp->attr.disabled);
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
}

static void a_modify_can_disable_with_interrupts_off(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int err;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);

	attr.disabled = 1;
	local_irq_disable();
	err = modify_user_hw_breakpoint(bp, &attr);
	bp_test_write_word(&bp_test_words[0]);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
}

static void a_breakpoint_of_another_task_can_be_modified(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct kthread_worker *worker = bp_test_start_worker(test);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp = bp_test_watch_task(test, worker->task, &bp_test_words[0], &hits);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);

	bp_test_write_by(worker, &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_by(worker, &bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
}

static void expect_modify_refused(struct kunit *test, struct perf_event *bp,
				  struct perf_event_attr attr)
{
	struct perf_event_attr before = bp->attr;
	enum perf_event_state state = bp->state;
	u32 digest = bp_test_digest_accounting();

	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, &bp->attr, &before, sizeof(before));
	KUNIT_EXPECT_EQ(test, bp->state, state);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
}

static void a_refused_modify_leaves_the_breakpoint_as_it_was(struct kunit *test)
{
	struct perf_event_attr disable = bp_test_malformed(&bp_test_words[1]);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	disable.disabled = 1;
	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);

	expect_modify_refused(test, bp, bp_test_malformed(&bp_test_words[1]));
	expect_modify_refused(test, bp, disable);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	perf_event_disable(bp);
	expect_modify_refused(test, bp, bp_test_malformed(&bp_test_words[1]));
	expect_modify_refused(test, bp, disable);
	bp_test_write_word(&bp_test_words[0]);
	bp_test_write_word(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);

	perf_event_enable(bp);
	bp_test_write_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
}

static void modify_needs_no_second_register(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[BP_TEST_BPS - 1],
						    HW_BREAKPOINT_RW);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	u32 digest;

	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	bp_test_fill_task(test, current, 1, &hits);
	digest = bp_test_digest_accounting();
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
}

/* ---- Cases: a child whose parent was modified while the child was created ---- */

/*
 * Returns a disabled breakpoint of this task, which stands for a new child with the
 * attributes of *@parent. bp_follow() reads nothing else of the parent.
 */
static struct perf_event *new_child(struct kunit *test, struct perf_event **parent,
				    struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event *child;

	bp_test_require_hits(test);
	attr.disabled = 1;
	child = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, hits,
							       current));
	*parent = kunit_kzalloc(test, sizeof(**parent), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *parent);
	(*parent)->attr = child->attr;

	return child;
}

static void follow_and_enable(struct kunit *test, struct perf_event *child,
			      const struct perf_event *parent)
{
	KUNIT_ASSERT_EQ(test, bp_follow(child, parent), 0);
	KUNIT_EXPECT_MEMEQ(test, &child->attr, &parent->attr, sizeof(child->attr));
	perf_event_enable(child);
}

static void a_child_follows_a_change_of_the_address(struct kunit *test)
{
	struct perf_event *parent, *child;
	struct bp_test_hits hits = { };

	child = new_child(test, &parent, &hits);
	parent->attr.bp_addr = (unsigned long)&bp_test_words[1];
	follow_and_enable(test, child, parent);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 0);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 1);
}

static void a_child_follows_a_change_of_the_length(struct kunit *test)
{
	struct perf_event *parent, *child;
	struct bp_test_hits hits = { };
	u8 *last;

	child = new_child(test, &parent, &hits);
	last = (u8 *)&bp_test_words[0] + sizeof(bp_test_words[0]) - 1;
	parent->attr.bp_len = HW_BREAKPOINT_LEN_1;
	follow_and_enable(test, child, parent);
	WRITE_ONCE(*last, 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
}

static void a_child_follows_a_change_of_the_type(struct kunit *test)
{
	struct perf_event *parent, *child;
	struct bp_test_hits hits = { };

	child = new_child(test, &parent, &hits);
	parent->attr.bp_type = HW_BREAKPOINT_RW;
	follow_and_enable(test, child, parent);
	bp_test_read_word(&bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
}

/* Neither has an influence on what is watched. */
static void a_child_follows_changes_of_sig_data_and_disabled(struct kunit *test)
{
	struct perf_event *parent, *child;
	struct bp_test_hits hits = { };

	child = new_child(test, &parent, &hits);
	parent->attr.sig_data = 0x5167;
	follow_and_enable(test, child, parent);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
	bp_test_drop(test, child);

	child = new_child(test, &parent, &hits);
	parent->attr.disabled = 0;
	follow_and_enable(test, child, parent);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
}

/* ---- Cases: events that perf moves to another CPU ---- */

static void expect_on(struct kunit *test, struct perf_event *bp, struct bp_test_hits *hits,
		      bool on)
{
	bp_test_write_on(test, bp->cpu, &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(hits), on);
}

/* Some PMU drivers move their events like this when a CPU goes offline. */
static void migrated_breakpoint_has_a_register_of_the_new_cpu(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	bp = bp_test_watch_cpu(test, bp_test_first_cpu(), &bp_test_words[0], &hits);
	perf_pmu_migrate_context(bp->pmu, bp_test_first_cpu(), bp_test_last_cpu());
	KUNIT_EXPECT_EQ(test, bp->cpu, bp_test_last_cpu());
	expect_on(test, bp, &hits, true);
	bp_test_write_on(test, bp_test_first_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_fill_cpu(test, bp_test_first_cpu(), 0, &hits);
	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &hits);
}

static void migrated_breakpoint_is_off_while_the_new_cpu_is_full(struct kunit *test)
{
	struct bp_test_hits hits = { }, others = { };
	struct perf_event_attr off, on;
	struct perf_event *bp, *other;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	bp = bp_test_watch_cpu(test, bp_test_first_cpu(), &bp_test_words[0], &hits);
	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &others);
	other = bp_test_watch_cpu(test, bp_test_last_cpu(), &bp_test_words[bp_test_nr_slots()],
				  &others);
	on = bp->attr;
	off = on;
	off.disabled = 1;

	perf_pmu_migrate_context(bp->pmu, bp_test_first_cpu(), bp_test_last_cpu());
	KUNIT_EXPECT_FALSE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, false);
	perf_event_enable(bp);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &on), -ENOSPC);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &off), 0);
	perf_event_enable(bp);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_FALSE(test, bp->bp_claim.held);

	bp_test_drop(test, other);
	perf_event_enable(bp);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, true);
}

static void modify_claims_a_register_for_a_migrated_breakpoint(struct kunit *test)
{
	struct bp_test_hits hits = { }, others = { };
	struct perf_event *bp, *other;
	struct perf_event_attr on;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	bp = bp_test_watch_cpu(test, bp_test_first_cpu(), &bp_test_words[0], &hits);
	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &others);
	other = bp_test_watch_cpu(test, bp_test_last_cpu(), &bp_test_words[bp_test_nr_slots()],
				  &others);
	perf_pmu_migrate_context(bp->pmu, bp_test_first_cpu(), bp_test_last_cpu());
	bp_test_drop(test, other);
	on = bp->attr;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &on), 0);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, true);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[1], &others));
}

/* ---- Cases: the kernel debugger's claims ---- */

static const struct bp_holder debuggers = {
	.len		= 1,
	.bp_type	= HW_BREAKPOINT_W,
};

static void debugger_claims_a_register_of_every_cpu_or_none(struct kunit *test)
{
	struct bp_claim claim = { };
	struct bp_test_hits hits = { };
	u32 digest;

	KUNIT_ASSERT_EQ(test, dbg_reserve_wide_bp_slot(&claim, &debuggers, false), 0);
	bp_test_fill_cpu(test, bp_test_first_cpu(), 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[0], &hits));
	bp_test_drop_all(test);
	bp_test_fill_task(test, current, 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	bp_test_drop_all(test);
	KUNIT_EXPECT_EQ(test, dbg_release_wide_bp_slot(&claim, false), 0);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	digest = bp_test_digest_accounting();
	KUNIT_EXPECT_EQ(test, dbg_reserve_wide_bp_slot(&claim, &debuggers, false), -ENOSPC);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
	KUNIT_EXPECT_EQ(test, dbg_release_wide_bp_slot(&claim, false), 0);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
}

static void a_debugger_does_not_wait_for_the_lock(struct kunit *test)
{
	struct bp_claim held = { }, claim = { };
	int reserved, released;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a lock cannot be busy on one CPU");

	KUNIT_ASSERT_EQ(test, dbg_reserve_wide_bp_slot(&held, &debuggers, false), 0);
	raw_spin_lock_irq(&bp_machine.global.lock);
	reserved = dbg_reserve_wide_bp_slot(&claim, &debuggers, false);
	released = dbg_release_wide_bp_slot(&held, false);
	raw_spin_unlock_irq(&bp_machine.global.lock);

	KUNIT_EXPECT_EQ(test, reserved, -EBUSY);
	KUNIT_EXPECT_EQ(test, released, -EBUSY);
	KUNIT_EXPECT_EQ(test, bp_slots_nr_claims(&bp_machine), 1UL);
	dbg_release_wide_bp_slot(&held, true);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

static void release_wide_bp_slot_releases_the_claim(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct bp_claim claim = { };

	attr.disabled = 1;
	set = bp_test_keep_set(test, bp_test_try_wide(attr, &hits));
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());
	release_wide_bp_slot(set);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	KUNIT_EXPECT_EQ(test, dbg_reserve_wide_bp_slot(&claim, &debuggers, false), -ENOSPC);
}

/* ---- Cases: the end of a task ---- */

static void a_task_that_exits_gives_its_registers_back(struct kunit *test)
{
	struct task_struct *task = bp_test_start_sleeper(test);
	struct bp_test_hits hits = { };

	bp_test_fill_task(test, task, 1, &hits);
	bp_test_keep(test, bp_test_try_cpu(bp_test_last_cpu(), task, &bp_test_words[0], &hits));
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());

	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_TRUE(test, bp_test_comes_true(bp_test_nothing_in_use));

	/* The events still exist, but their claims are released. */
	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	bp_test_drop_all(test);
}

static void modify_after_task_exit_claims_nothing(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct task_struct *task = bp_test_start_sleeper(test);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp = bp_test_watch_task(test, task, &bp_test_words[0], &hits);
	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_TRUE(test, bp_test_comes_true(bp_test_nothing_in_use));

	modify_user_hw_breakpoint(bp, &attr);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- A random sequence of requests, and an oracle that counts ---- */

#define NR_STEPS		300
#define NR_ENTRIES		24
#define NR_TASKS		(BP_TEST_WORKERS + 1)
#define NO_TASK			(-1)
#define EVERY_CPU		(-1)

/* struct entry - a breakpoint, or a kernel-wide set, as the oracle knows it */
struct entry {
	struct perf_event		*bp;
	struct perf_event * __percpu	*set;
	int				task;
	int				cpu;
	struct bp_test_hits			hits;
};

struct random_run {
	struct rnd_state	rnd;
	struct task_struct	*task[NR_TASKS];
	struct entry		entry[NR_ENTRIES];
};

static bool stands(const struct entry *e)
{
	return e->bp || e->set;
}

static bool counts_on(const struct entry *e, int task, int cpu)
{
	return (e->task == NO_TASK || e->task == task) &&
	       (e->cpu == EVERY_CPU || e->cpu == cpu);
}

/* Returns true if @new fits for every task on every CPU. */
static bool oracle_fits(const struct random_run *run, const struct entry *new)
{
	int cpu, task, i;

	for_each_possible_cpu(cpu) {
		for (task = 0; task < NR_TASKS; task++) {
			unsigned int taken = 0;

			if (!counts_on(new, task, cpu))
				continue;
			for (i = 0; i < NR_ENTRIES; i++) {
				const struct entry *e = &run->entry[i];

				if (stands(e) || e == new)
					taken += counts_on(e, task, cpu);
			}
			if (taken > bp_test_nr_slots())
				return false;
		}
	}

	return true;
}

static int random_cpu(struct random_run *run)
{
	int nr = prandom_u32_state(&run->rnd) % num_online_cpus();
	int cpu;

	for_each_online_cpu(cpu) {
		if (!nr--)
			break;
	}

	return cpu;
}

static void random_open(struct kunit *test, struct random_run *run, struct entry *e)
{
	struct perf_event_attr attr;
	bool fits;
	long err;

	e->task = (int)(prandom_u32_state(&run->rnd) % (NR_TASKS + 1)) - 1;
	e->cpu = prandom_u32_state(&run->rnd) % 2 ? random_cpu(run) : EVERY_CPU;
	atomic_set(&e->hits.nr, 0);
	attr = bp_test_watch(&bp_test_words[e - run->entry], HW_BREAKPOINT_W);

	fits = oracle_fits(run, e);
	if (e->task == NO_TASK && e->cpu == EVERY_CPU) {
		e->set = bp_test_try_wide(attr, &e->hits);
		err = PTR_ERR_OR_ZERO((void __force *)e->set);
		e->set = err ? NULL : bp_test_keep_set(test, e->set);
	} else {
		e->bp = bp_test_try_cpu(e->cpu, e->task == NO_TASK ? NULL : run->task[e->task],
					&bp_test_words[e - run->entry], &e->hits);
		err = PTR_ERR_OR_ZERO(e->bp);
		e->bp = err ? NULL : bp_test_keep(test, e->bp);
	}

	KUNIT_EXPECT_EQ_MSG(test, err, fits ? 0L : -ENOSPC, "task %d, CPU %d",
			    e->task, e->cpu);
}

static void random_close(struct kunit *test, struct entry *e)
{
	if (e->set)
		bp_test_drop_set(test, e->set);
	else
		bp_test_drop(test, e->bp);
	e->set = NULL;
	e->bp = NULL;
}

/* A change that leaves the claim as it is always finds a register again. */
static void random_change(struct kunit *test, struct random_run *run, struct entry *e)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[e - run->entry],
						    HW_BREAKPOINT_W);

	if (!e->bp)
		return;
	perf_event_disable(e->bp);
	if (e->task != NO_TASK && prandom_u32_state(&run->rnd) % 2)
		KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(e->bp, &attr), 0);
	else
		perf_event_enable(e->bp);
}

/* Each open breakpoint that watches the task of the test fires, on each CPU. */
static void random_check_hits(struct kunit *test, struct random_run *run)
{
	int cpu, i;

	for (i = 0; i < NR_ENTRIES; i++)
		bp_test_take_hits(&run->entry[i].hits);

	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		for (i = 0; i < NR_ENTRIES; i++) {
			struct entry *e = &run->entry[i];

			bp_test_write_word(&bp_test_words[i]);
			KUNIT_EXPECT_EQ_MSG(test, bp_test_take_hits(&e->hits),
					    stands(e) && counts_on(e, 0, cpu),
					    "task %d, CPU %d, on CPU %d",
					    e->task, e->cpu, cpu);
		}
	}
	bp_test_run_anywhere();
}

static void every_request_is_granted_exactly_if_it_fits(struct kunit *test)
{
	struct random_run *run;
	struct entry *e;
	int i;

	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	prandom_seed_state(&run->rnd, 6012);
	run->task[0] = current;
	for (i = 1; i < NR_TASKS; i++)
		run->task[i] = bp_test_start_worker(test)->task;

	for (i = 0; i < NR_STEPS; i++) {
		e = &run->entry[prandom_u32_state(&run->rnd) % NR_ENTRIES];
		if (!stands(e))
			random_open(test, run, e);
		else if (prandom_u32_state(&run->rnd) % 3)
			random_close(test, e);
		else
			random_change(test, run, e);
		if (i % 50 == 49 && IS_ENABLED(CONFIG_X86))
			random_check_hits(test, run);
	}

	for (e = run->entry; e < run->entry + NR_ENTRIES; e++) {
		if (stands(e))
			random_close(test, e);
	}
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: flexible breakpoints ---- */

static struct perf_event_attr flexible_watch(unsigned long *word)
{
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W);

	attr.config = HW_BREAKPOINT_FLEXIBLE;
	attr.pinned = 0;
	return attr;
}

/* @cpu: -1 for all; @task: NULL for all */
static struct perf_event *try_flexible(int cpu, struct task_struct *task,
				       unsigned long *word, struct bp_test_hits *hits)
{
	struct perf_event_attr attr = flexible_watch(word);

	return perf_event_create_kernel_counter(&attr, cpu, task, bp_test_record_hit, hits);
}

static void watch_flexible(struct kunit *test, int cpu, struct task_struct *task,
			   unsigned int nr, struct bp_test_hits *hits)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		bp_test_keep(test, try_flexible(cpu, task, &bp_test_words[i], &hits[i]));
}

static unsigned int nr_active(struct kunit *test)
{
	struct bp_test *f = test->priv;
	unsigned int nr = 0;
	int i;

	for (i = 0; i < BP_TEST_BPS; i++) {
		if (f->bp[i] && f->bp[i]->state == PERF_EVENT_STATE_ACTIVE)
			nr++;
	}

	return nr;
}

static void flexible_wide_or_pinned_breakpoint_is_refused(struct kunit *test)
{
	struct perf_event_attr attr = flexible_watch(&bp_test_words[0]);

	bp_test_expect_wide_refused(test, -EINVAL, attr, NULL);
	attr.pinned = 1;
	BP_TEST_EXPECT_REFUSED(test, -EINVAL,
			       register_user_hw_breakpoint(&attr, bp_test_record_hit, NULL,
							   current));
}

static void a_breakpoint_of_a_process_watches_on_every_cpu(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu, nr = 0;

	bp_test_require_hits(test);
	attr.config = HW_BREAKPOINT_PROCESS;
	bp = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, &hits,
							    current));
	attr.bp_addr = (unsigned long)&bp_test_words[1];
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		bp_test_write_word(&bp_test_words[1]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		bp_test_write_word(&bp_test_words[1]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
		KUNIT_EXPECT_EQ(test, hits.addr, attr.bp_addr);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), nr);
	bp_test_run_anywhere();
}

static void a_breakpoint_of_a_process_is_disabled_on_every_cpu(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu;

	bp_test_require_hits(test);
	attr.config = HW_BREAKPOINT_PROCESS;
	bp = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, &hits,
							    current));
	perf_event_disable(bp);
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	}
	perf_event_enable(bp);
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	}
	bp_test_run_anywhere();
}

static struct perf_event *try_process(struct task_struct *task, perf_overflow_handler_t handler,
				      struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);

	attr.config = HW_BREAKPOINT_PROCESS;
	return register_user_hw_breakpoint(&attr, handler, hits, task);
}

/* Each kernel thread is a process of its own. */
static void a_breakpoint_of_another_process_is_hit_by_that_process_alone(struct kunit *test)
{
	struct kthread_worker *worker = bp_test_start_worker(test);
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu, nr = 0;

	bp_test_require_hits(test);
	bp = bp_test_keep(test, try_process(worker->task, bp_test_record_hit, &hits));
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
		KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(worker->task, cpumask_of(cpu)), 0);
		bp_test_write_by(worker, &bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
		KUNIT_EXPECT_PTR_EQ(test, hits.task, worker->task);
		KUNIT_EXPECT_EQ(test, hits.cpu, cpu);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), nr);
	bp_test_run_anywhere();
}

/* Without a period no overflow undoes the count of a hit that is beyond a limit. */
static struct perf_event *count_only(struct kunit *test, struct task_struct *task, u64 config)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);

	attr.config = config;
	attr.sample_period = 0;
	return bp_test_keep(test, register_user_hw_breakpoint(&attr, NULL, NULL, task));
}

/* Reports a hit of @bp on this CPU, interrupts off. Returns how much it has counted. */
static s64 counts_here(struct perf_event *bp)
{
	s64 before = local64_read(&bp->count);
	struct pt_regs regs = { };

	perf_bp_event_at(bp, bp->attr.bp_addr, &regs, false);
	return local64_read(&bp->count) - before;
}

/*
 * A breakpoint of a process stays armed until the next task has been switched to. The test
 * reports the hits itself.
 */
static void a_hit_is_reported_to_its_process_only(struct kunit *test)
{
	struct task_struct *task = bp_test_start_worker(test)->task;
	struct perf_event *bp, *mine;
	s64 others, own, over, again;

	bp = count_only(test, task, HW_BREAKPOINT_PROCESS);
	mine = count_only(test, current, HW_BREAKPOINT_PROCESS);

	local_irq_disable();
	others = counts_here(bp);
	own = counts_here(mine);
	/* All overflows that PERF_EVENT_IOC_REFRESH allowed have been made. */
	atomic_set(&mine->event_limit, -1);
	over = counts_here(mine);
	atomic_set(&mine->event_limit, 0);
	again = counts_here(mine);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, others, 0);
	KUNIT_EXPECT_EQ(test, own, 1);
	KUNIT_EXPECT_EQ(test, over, 0);
	KUNIT_EXPECT_EQ(test, again, 1);
}

/*
 * In a switch between two clones, perf gives the context of this CPU to the next task
 * while the previous one still runs. A context that is not on this CPU has no hits here.
 */
static void a_hit_in_a_switch_between_clones_is_reported(struct kunit *test)
{
	struct task_struct *task = bp_test_start_worker(test)->task;
	struct perf_event *own, *other;
	s64 given, elsewhere, back;

	own = count_only(test, current, 0);
	other = count_only(test, task, 0);

	local_irq_disable();
	WRITE_ONCE(own->ctx->task, task);
	given = counts_here(own);
	elsewhere = counts_here(other);
	WRITE_ONCE(own->ctx->task, current);
	back = counts_here(own);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, given, 1);
	KUNIT_EXPECT_EQ(test, elsewhere, 0);
	KUNIT_EXPECT_EQ(test, back, 1);
}

/* perf stops an event, for example, to change its period; the register stays armed. */
static void a_hit_of_a_stopped_breakpoint_is_not_counted(struct kunit *test)
{
	struct perf_event *bp = count_only(test, current, 0);
	s64 stopped, started;

	local_irq_disable();
	bp->pmu->stop(bp, 0);
	stopped = counts_here(bp);
	bp->pmu->start(bp, 0);
	started = counts_here(bp);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, stopped, 0);
	KUNIT_EXPECT_EQ(test, started, 1);
}

static void a_dead_process_cannot_be_watched(struct kunit *test)
{
	struct task_struct *watched = bp_test_start_sleeper(test);
	struct task_struct *other = bp_test_start_sleeper(test);
	struct bp_test_hits hits = { };

	bp_test_keep(test, try_process(watched, bp_test_record_hit, &hits));
	kthread_stop(watched);
	kthread_stop(other);
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, try_process(watched, bp_test_record_hit, &hits));
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, try_process(other, bp_test_record_hit, &hits));
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	/* ESRCH for a dead process takes precedence over ENOSPC. */
	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, try_process(watched, bp_test_record_hit, &hits));
	BP_TEST_EXPECT_REFUSED(test, -ESRCH, try_process(other, bp_test_record_hit, &hits));
	put_task_struct(watched);
	put_task_struct(other);
}

static void record_hit_and_disable(struct perf_event *bp, struct perf_sample_data *data,
				   struct pt_regs *regs)
{
	bp_test_record_hit(bp, data, regs);
	perf_event_disable_inatomic(bp);
}

/* From the first hit on no CPU has another one, even before the event is disabled. */
static void a_handler_disables_a_breakpoint_of_a_process_on_every_cpu(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu, other, nr = 0;

	bp_test_require_hits(test);
	bp = bp_test_keep(test, try_process(current, record_hit_and_disable, &hits));
	for_each_online_cpu(cpu) {
		bp_test_run_on(test, cpu);
		bp_test_write_word(&bp_test_words[0]);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
		KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), ++nr);
		for_each_online_cpu(other) {
			bp_test_run_on(test, other);
			bp_test_write_word(&bp_test_words[0]);
		}
		irq_work_sync(&hits.bp->pending_disable_irq);
		flush_work(&bp->process->limit);
		KUNIT_EXPECT_EQ(test, bp->state, PERF_EVENT_STATE_OFF);
		bp_test_write_word(&bp_test_words[0]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
		perf_event_enable(bp);
	}
	KUNIT_EXPECT_EQ(test, bp_test_count_of(bp), nr);
	bp_test_run_anywhere();
}

/* The hit is counted, the count is reset, then the hit is found to be beyond the limit. */
static void a_hit_beyond_the_limit_does_not_make_a_reset_count_negative(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_sample_data data;
	struct pt_regs regs = { };
	struct perf_event *bp;

	attr.config = HW_BREAKPOINT_PROCESS;
	bp = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, &hits,
							    current));
	perf_sample_data_init(&data, 0, attr.sample_period);
	atomic_set(&bp->event_limit, -1);

	local_irq_disable();
	local64_set(&bp->count, 1);
	perf_event_overflow(bp, &data, &regs);
	KUNIT_EXPECT_EQ(test, local64_read(&bp->count), 0);
	perf_event_overflow(bp, &data, &regs);
	KUNIT_EXPECT_EQ(test, local64_read(&bp->count), 0);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
}

static void any_number_of_flexible_breakpoints_needs_one_register(struct kunit *test)
{
	static struct bp_test_hits hits[20];
	struct perf_event *bp;

	bp_test_fill_task(test, current, 0, &hits[0]);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, try_flexible(-1, current, &bp_test_words[0],
							   &hits[0]));
	bp_test_drop_all(test);

	bp_test_fill_task(test, current, 1, &hits[0]);
	watch_flexible(test, -1, current, ARRAY_SIZE(hits), hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0],
							       &hits[0]));
	bp_test_drop_all(test);

	bp_test_fill_task(test, current, 1, &hits[0]);
	bp = bp_test_keep(test, try_flexible(-1, current, &bp_test_words[0], &hits[0]));
	bp_test_drop(test, bp);
	bp_test_watch_task(test, current, &bp_test_words[0], &hits[0]);
}

static void a_modify_cannot_make_a_breakpoint_flexible(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	bp = bp_test_keep(test, try_flexible(-1, current, &bp_test_words[0], &hits));
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
	attr = flexible_watch(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);

	bp = bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
}

static void guaranteed_breakpoint_evicts_a_flexible_one_at_once(struct kunit *test)
{
	static struct bp_test_hits flexible[8];
	struct perf_event_attr attr;
	struct bp_test_hits hits[2] = { };
	struct perf_event *bp;

	bp_test_require_hits(test);
	bp_test_run_on(test, bp_test_first_cpu());
	watch_flexible(test, bp_test_first_cpu(), NULL, 4, flexible);
	watch_flexible(test, -1, current, 4, flexible + 4);
	KUNIT_EXPECT_EQ(test, nr_active(test), bp_test_nr_slots());

	attr = bp_test_watch(&bp_test_words[100], HW_BREAKPOINT_W);
	attr.disabled = 1;
	bp = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit, &hits[0],
							    current));
	bp_test_watch_task(test, current, &bp_test_words[101], &hits[1]);
	bp_test_write_word(&bp_test_words[101]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits[1]), 1);

	perf_event_enable(bp);
	bp_test_write_word(&bp_test_words[100]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits[0]), 1);
	KUNIT_EXPECT_EQ(test, bp->state, PERF_EVENT_STATE_ACTIVE);
	bp_test_run_anywhere();
}

/* All registers of this CPU are in use. @tries: 0.1 ms each */
static void expect_debugger_evicts_one(struct kunit *test, unsigned int tries)
{
	unsigned int i, slots = bp_test_nr_slots();
	struct bp_claim claim = { };

	KUNIT_ASSERT_EQ(test, nr_active(test), slots);
	KUNIT_ASSERT_EQ(test, dbg_reserve_wide_bp_slot(&claim, &debuggers, false), 0);

	migrate_disable();
	hw_breakpoint_evict_flexible();
	for (i = 0; i < tries && nr_active(test) == slots; i++)
		udelay(100);
	KUNIT_EXPECT_EQ(test, nr_active(test), slots - 1);
	migrate_enable();

	KUNIT_EXPECT_EQ(test, dbg_release_wide_bp_slot(&claim, false), 0);
}

static void debugger_claim_evicts_flexible_breakpoints(struct kunit *test)
{
	static struct bp_test_hits hits[BP_SLOTS_MAX];
	int cpu = bp_test_first_cpu();

	bp_test_run_on(test, cpu);
	watch_flexible(test, cpu, NULL, bp_test_nr_slots(), hits);
	expect_debugger_evicts_one(test, 1000);
	bp_test_run_anywhere();
}

/*
 * Without pinned groups perf schedules the whole context of the CPU first. Its flexible
 * breakpoints must leave the register that the task has claimed and does not use yet.
 * Do not wait, and do not let perf rotate before: the next rotation would evict them.
 */
static void debugger_claim_evicts_flexible_breakpoints_beside_a_task(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[100], HW_BREAKPOINT_W);
	static struct bp_test_hits hits[BP_SLOTS_MAX + 1];
	int cpu = bp_test_first_cpu();
	struct perf_event *bp;

	bp_test_require_hits(test);
	attr.pinned = 0;
	bp_test_run_on(test, cpu);
	bp = bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit,
							    &hits[BP_SLOTS_MAX], current));
	watch_flexible(test, cpu, NULL, bp_test_nr_slots() - 1, hits);
	expect_debugger_evicts_one(test, 0);
	KUNIT_EXPECT_EQ(test, bp->state, PERF_EVENT_STATE_ACTIVE);
	bp_test_run_anywhere();
}

struct count_work {
	struct kthread_work	work;
	struct kunit		*test;
	unsigned int		nr;
};

static void count_work(struct kthread_work *work)
{
	struct count_work *count = container_of(work, struct count_work, work);

	preempt_disable();
	count->nr = nr_active(count->test);
	preempt_enable();
}

/* Number of breakpoints that are active while @worker runs */
static unsigned int nr_active_beside(struct kunit *test, struct kthread_worker *worker)
{
	struct count_work count = { .test = test };

	kthread_init_work(&count.work, count_work);
	kthread_queue_work(worker, &count.work);
	kthread_flush_work(&count.work);

	return count.nr;
}

/*
 * The debugger makes its claim while no task with breakpoints runs, so that no
 * flexible breakpoint has to be evicted.
 */
static void task_that_is_switched_to_leaves_the_debugger_its_register(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[100], HW_BREAKPOINT_W);
	struct kthread_worker *worker = bp_test_start_worker(test);
	unsigned int slots = bp_test_nr_slots();
	static struct bp_test_hits hits[BP_SLOTS_MAX + 1];
	int cpu = bp_test_first_cpu();
	struct bp_claim claim = { };

	bp_test_run_on(test, cpu);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(worker->task, cpumask_of(cpu)), 0);
	attr.pinned = 0;
	bp_test_keep(test, register_user_hw_breakpoint(&attr, bp_test_record_hit,
						       &hits[BP_SLOTS_MAX], worker->task));
	watch_flexible(test, cpu, NULL, slots - 1, hits);
	KUNIT_EXPECT_EQ(test, nr_active_beside(test, worker), slots);

	KUNIT_ASSERT_EQ(test, dbg_reserve_wide_bp_slot(&claim, &debuggers, false), 0);
	KUNIT_EXPECT_EQ(test, nr_active_beside(test, worker), slots - 1);
	KUNIT_EXPECT_EQ(test, dbg_release_wide_bp_slot(&claim, false), 0);
	KUNIT_EXPECT_EQ(test, dbg_release_wide_bp_slot(&claim, false), 0);
	bp_test_drop_all(test);

	/* The register is perf's again. */
	bp_test_fill_task(test, worker->task, 0, hits);
	KUNIT_EXPECT_EQ(test, nr_active_beside(test, worker), slots);
	bp_test_run_anywhere();
}

/* Returns true if each of @nr breakpoints is hit within 20 seconds. */
static bool all_are_hit(struct bp_test_hits *hits, unsigned int nr)
{
	unsigned long end = jiffies + 20 * HZ;
	unsigned int i, seen = 0;

	for (i = 0; i < nr; i++)
		bp_test_take_hits(&hits[i]);
	while (seen < nr && time_before(jiffies, end)) {
		for (i = 0; i < nr; i++)
			bp_test_write_word(&bp_test_words[i]);
		for (i = 0, seen = 0; i < nr; i++)
			seen += !!atomic_read(&hits[i].nr);
		cond_resched();
	}

	return seen == nr;
}

static void flexible_breakpoints_are_multiplexed(struct kunit *test)
{
	static struct bp_test_hits hits[3 * BP_SLOTS_MAX];

	bp_test_require_hits(test);
	bp_test_run_on(test, bp_test_first_cpu());
	watch_flexible(test, -1, current, 3 * bp_test_nr_slots(), hits);
	KUNIT_EXPECT_TRUE(test, all_are_hit(hits, 3 * bp_test_nr_slots()));
	bp_test_drop_all(test);
	watch_flexible(test, bp_test_first_cpu(), NULL, 3 * bp_test_nr_slots(), hits);
	KUNIT_EXPECT_TRUE(test, all_are_hit(hits, 3 * bp_test_nr_slots()));
	bp_test_run_anywhere();
}

/* No rotation group is left out, whatever the number of their members. */
static void flexible_task_and_cpu_breakpoints_share_a_register(struct kunit *test)
{
	static struct bp_test_hits hits[8], plain;
	unsigned int tasks, cpus, i;

	bp_test_require_hits(test);
	bp_test_run_on(test, bp_test_first_cpu());
	for (tasks = 1; tasks <= 4; tasks++) {
		for (cpus = 1; cpus <= 4; cpus++) {
			for (i = 1; i < bp_test_nr_slots(); i++)
				bp_test_watch_task(test, current, &bp_test_words[100 + i], &plain);
			for (i = 0; i < tasks + cpus; i++)
				bp_test_keep(test, try_flexible(i < cpus ? bp_test_first_cpu() : -1,
								i < cpus ? NULL : current,
								&bp_test_words[i], &hits[i]));
			KUNIT_EXPECT_TRUE_MSG(test, all_are_hit(hits, tasks + cpus),
					      "%u of the task, %u of the CPU",
					      tasks, cpus);
			bp_test_drop_all(test);
		}
	}
	bp_test_run_anywhere();
}

/* ---- The suite ---- */

static struct kunit_case hw_breakpoint_api_test_cases[] = {
	KUNIT_CASE(each_write_calls_the_handler_once),
	KUNIT_CASE(handler_gets_event_address_and_ip),
	KUNIT_CASE(only_a_read_write_breakpoint_is_hit_by_reads),
	KUNIT_CASE(every_register_watches_at_the_same_time),
	KUNIT_CASE(a_task_watch_follows_its_task_and_no_other),
	KUNIT_CASE(a_hit_is_reported_to_its_task_only),
	KUNIT_CASE(a_period_calls_the_handler_at_every_nth_hit),
	KUNIT_CASE(a_breakpoint_without_a_period_only_counts),
	KUNIT_CASE(an_unregistered_breakpoint_is_silent),
	KUNIT_CASE(a_disabled_breakpoint_is_silent_and_keeps_its_register),
	KUNIT_CASE(unregistering_nothing_is_harmless),
	KUNIT_CASE(a_malformed_breakpoint_is_refused),
	KUNIT_CASE(malformed_request_of_a_full_task_is_einval),
	KUNIT_CASE(a_task_has_as_many_breakpoints_as_there_are_registers),
	KUNIT_CASE(a_task_on_one_cpu_takes_no_register_of_another),
	KUNIT_CASE(a_dead_task_cannot_be_watched),
	KUNIT_CASE(a_cpu_that_does_not_exist_cannot_be_watched),
	KUNIT_CASE(cpu_breakpoint_is_hit_by_any_task_on_its_cpu),
	KUNIT_CASE(a_task_watch_on_one_cpu_fires_there_only),
	KUNIT_CASE(each_cpu_has_registers_of_its_own),
	KUNIT_CASE(a_full_cpu_leaves_a_task_no_register_anywhere),
	KUNIT_CASE(a_modified_breakpoint_watches_the_new_address_only),
	KUNIT_CASE(modified_breakpoint_watches_the_new_length_and_type),
	KUNIT_CASE(a_modify_can_disable_and_enable),
	KUNIT_CASE(a_modify_can_disable_with_interrupts_off),
	KUNIT_CASE(a_breakpoint_of_another_task_can_be_modified),
	KUNIT_CASE(a_refused_modify_leaves_the_breakpoint_as_it_was),
	KUNIT_CASE(modify_needs_no_second_register),
	KUNIT_CASE(a_child_follows_a_change_of_the_address),
	KUNIT_CASE(a_child_follows_a_change_of_the_length),
	KUNIT_CASE(a_child_follows_a_change_of_the_type),
	KUNIT_CASE(a_child_follows_changes_of_sig_data_and_disabled),
	KUNIT_CASE(migrated_breakpoint_has_a_register_of_the_new_cpu),
	KUNIT_CASE(migrated_breakpoint_is_off_while_the_new_cpu_is_full),
	KUNIT_CASE(modify_claims_a_register_for_a_migrated_breakpoint),
	KUNIT_CASE(debugger_claims_a_register_of_every_cpu_or_none),
	KUNIT_CASE(a_debugger_does_not_wait_for_the_lock),
	KUNIT_CASE(release_wide_bp_slot_releases_the_claim),
	KUNIT_CASE(a_task_that_exits_gives_its_registers_back),
	KUNIT_CASE(modify_after_task_exit_claims_nothing),
	KUNIT_CASE(flexible_wide_or_pinned_breakpoint_is_refused),
	KUNIT_CASE(a_breakpoint_of_a_process_watches_on_every_cpu),
	KUNIT_CASE(a_breakpoint_of_a_process_is_disabled_on_every_cpu),
	KUNIT_CASE(a_breakpoint_of_another_process_is_hit_by_that_process_alone),
	KUNIT_CASE(a_hit_is_reported_to_its_process_only),
	KUNIT_CASE(a_hit_in_a_switch_between_clones_is_reported),
	KUNIT_CASE(a_hit_of_a_stopped_breakpoint_is_not_counted),
	KUNIT_CASE(a_dead_process_cannot_be_watched),
	KUNIT_CASE(a_handler_disables_a_breakpoint_of_a_process_on_every_cpu),
	KUNIT_CASE(a_hit_beyond_the_limit_does_not_make_a_reset_count_negative),
	KUNIT_CASE(any_number_of_flexible_breakpoints_needs_one_register),
	KUNIT_CASE(a_modify_cannot_make_a_breakpoint_flexible),
	KUNIT_CASE(guaranteed_breakpoint_evicts_a_flexible_one_at_once),
	KUNIT_CASE(debugger_claim_evicts_flexible_breakpoints),
	KUNIT_CASE(debugger_claim_evicts_flexible_breakpoints_beside_a_task),
	KUNIT_CASE(task_that_is_switched_to_leaves_the_debugger_its_register),
	KUNIT_CASE_SLOW(flexible_breakpoints_are_multiplexed),
	KUNIT_CASE_SLOW(flexible_task_and_cpu_breakpoints_share_a_register),
	KUNIT_CASE_SLOW(every_request_is_granted_exactly_if_it_fits),
	{ }
};

static struct kunit_suite hw_breakpoint_api_test_suite = {
	.name		= "hw_breakpoint_api",
	.test_cases	= hw_breakpoint_api_test_cases,
	.init		= bp_test_init,
	.exit		= bp_test_exit,
};

kunit_test_suite(hw_breakpoint_api_test_suite);
