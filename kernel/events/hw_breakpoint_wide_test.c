// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of kernel-wide breakpoints: a breakpoint fires on every CPU, also
 * on a CPU that comes online later, or it is refused as a whole.
 */

#include <linux/cpu.h>
#include <linux/delay.h>

#include "hw_breakpoint_test.h"

/* ---- Cases: kernel-wide breakpoints ---- */

static void a_wide_breakpoint_fires_on_every_online_cpu(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	int cpu;

	bp_test_require_hits(test);
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp_test_expect_watched_everywhere(test, &bp_test_words[0], &hits);
	for_each_online_cpu(cpu) {
		KUNIT_ASSERT_NOT_NULL(test, bp_test_event_on(set, cpu));
		KUNIT_EXPECT_EQ(test, bp_test_count_of(bp_test_event_on(set, cpu)), 1ULL);
	}

	bp_test_drop_set(test, set);
	bp_test_expect_watched_nowhere(test, &bp_test_words[0], &hits);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

static void a_wide_breakpoint_takes_a_register_of_every_possible_cpu(struct kunit *test)
{
	struct bp_class_account *account = &bp_machine.class[TYPE_DATA];
	struct bp_test_hits hits = { };
	int cpu;

	bp_test_watch_all(test, &bp_test_words[0], &hits);
	KUNIT_EXPECT_EQ(test, account->wide, 1U);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_EQ(test, account->cpu[cpu].guaranteed, 0U);

	bp_test_fill_cpu(test, bp_test_first_cpu(), 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[0], &hits));
	if (bp_test_first_cpu() == bp_test_last_cpu())
		return;
	bp_test_fill_cpu(test, bp_test_last_cpu(), 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_last_cpu(), NULL,
							      &bp_test_words[0], &hits));
}

static void there_are_as_many_wide_breakpoints_as_registers(struct kunit *test)
{
	struct bp_test_hits hits[BP_SLOTS_MAX] = { };
	unsigned int i;

	for (i = 0; i < bp_test_nr_slots(); i++)
		bp_test_watch_all(test, &bp_test_words[i], &hits[i]);
	bp_test_expect_wide_refused(test, -ENOSPC,
				    bp_test_watch(&bp_test_words[i], HW_BREAKPOINT_W), NULL);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[i], NULL));
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[i], NULL));

	bp_test_require_hits(test);
	for (i = 0; i < bp_test_nr_slots(); i++)
		bp_test_expect_watched_everywhere(test, &bp_test_words[i], &hits[i]);
}

static void a_wide_breakpoint_is_refused_as_a_whole(struct kunit *test)
{
	struct bp_test_hits full = { }, refused = { };

	bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &full);
	bp_test_expect_wide_refused(test, -ENOSPC,
				    bp_test_watch(&bp_test_words[BP_TEST_BPS - 1], HW_BREAKPOINT_W),
				    &refused);
	bp_test_expect_watched_nowhere(test, &bp_test_words[BP_TEST_BPS - 1], &refused);

	bp_test_drop_all(test);
	bp_test_fill_task(test, current, 0, &full);
	bp_test_expect_wide_refused(test, -ENOSPC,
				    bp_test_watch(&bp_test_words[BP_TEST_BPS - 1], HW_BREAKPOINT_W),
				    &refused);
}

static void malformed_wide_breakpoint_on_a_full_cpu_is_einval(struct kunit *test)
{
	struct perf_event_attr attr;
	struct bp_test_hits hits = { };
	int full;

	for (full = 0; full < 2; full++) {
		bp_test_expect_wide_refused(test, -EINVAL, bp_test_malformed(&bp_test_words[0]),
					    &hits);

		attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
		attr.type = PERF_TYPE_SOFTWARE;
		bp_test_expect_wide_refused(test, -EINVAL, attr, &hits);

		attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
		attr.config = 1ULL << 63;
		bp_test_expect_wide_refused(test, -EINVAL, attr, &hits);

		attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
		attr.bp_addr = (unsigned long)&bp_test_words[0];
		attr.exclude_kernel = 1;
		bp_test_expect_wide_refused(test, -EINVAL, attr, &hits);

		if (!full)
			bp_test_fill_cpu(test, bp_test_last_cpu(), 0, &hits);
	}
}

/* Only modify_wide_hw_breakpoint() and its local variant change a member. */
static void modify_user_hw_breakpoint_refuses_a_wide_member(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct perf_event *member;
	unsigned long old;
	int err;

	set = register_wide_hw_breakpoint(&attr, bp_test_record_hit, &hits);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	member = *per_cpu_ptr(set, bp_test_last_cpu());
	old = attr.bp_addr;
	attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	err = modify_user_hw_breakpoint(member, &attr);
	KUNIT_EXPECT_EQ(test, member->attr.bp_addr, old);
	unregister_wide_hw_breakpoint(set);
	KUNIT_EXPECT_EQ(test, err, -EINVAL);
}

/* perf core refuses attr.aux_output only after the set has made its claim. */
static void wide_breakpoint_that_perf_refuses_claims_nothing(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct bp_test_hits hits = { };

	attr.aux_output = 1;
	bp_test_expect_wide_refused(test, -EINVAL, attr, &hits);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	bp_test_expect_watched_nowhere(test, &bp_test_words[0], &hits);
}

static void a_disabled_wide_breakpoint_is_silent_until_it_is_enabled(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	int cpu;

	bp_test_require_hits(test);
	attr.disabled = 1;
	set = bp_test_keep_set(test, bp_test_try_wide(attr, &hits));
	bp_test_expect_watched_nowhere(test, &bp_test_words[0], &hits);
	bp_test_fill_cpu(test, bp_test_first_cpu(), 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(bp_test_first_cpu(), NULL,
							      &bp_test_words[1], &hits));
	bp_test_drop_all(test);

	for_each_online_cpu(cpu)
		perf_event_enable(bp_test_event_on(set, cpu));
	bp_test_expect_watched_everywhere(test, &bp_test_words[0], &hits);
}

/* The handler of a member is called directly, except while it has a limit. */
static void limit_of_overflows_holds_for_a_wide_member(struct kunit *test)
{
	int cpu = bp_test_last_cpu(), left;
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };

	bp_test_require_hits(test);
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	KUNIT_ASSERT_EQ(test, perf_event_refresh(bp_test_event_on(set, cpu), 2), 0);
	for (left = 2; left >= 0; left--) {
		bp_test_take_hits(&hits);
		bp_test_write_on(test, cpu, &bp_test_words[0]);
		KUNIT_EXPECT_EQ_MSG(test, bp_test_take_hits(&hits), !!left, "%d left", left);
	}

	bp_test_write_on(test, bp_test_first_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), cpu != bp_test_first_cpu());
}

static void a_wide_breakpoint_leaves_tasks_the_other_registers(struct kunit *test)
{
	struct kthread_worker *worker = bp_test_start_worker(test);
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };

	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp_test_fill_task(test, current, 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(current, &bp_test_words[0], &hits));
	bp_test_fill_task(test, worker->task, 1, &hits);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_task(worker->task, &bp_test_words[0],
							       &hits));
	bp_test_expect_wide_refused(test, -ENOSPC,
				    bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W), &hits);

	bp_test_drop_set(test, set);
	bp_test_watch_task(test, current, &bp_test_words[0], &hits);
	bp_test_expect_wide_refused(test, -ENOSPC,
				    bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W), &hits);
}

#define NR_SHOUTS		8

/* struct shout - context of a handler, invalid (!alive) after unregistration */
struct shout {
	atomic_t	alive;
	atomic_t	nr;
	atomic_t	late;
};

static void record_shout(struct perf_event *bp, struct perf_sample_data *data,
			 struct pt_regs *regs)
{
	struct shout *shout = bp->overflow_handler_context;

	atomic_inc(&shout->nr);
	if (!atomic_read(&shout->alive))
		atomic_inc(&shout->late);
}

static int keep_writing(void *word)
{
	while (!kthread_should_stop()) {
		bp_test_write_word(word);
		cond_resched();
	}
	return 0;
}

static void no_handler_runs_when_unregister_has_returned(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct task_struct *writer;
	struct shout shout = { };
	int i, ms;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	writer = kthread_create(keep_writing, &bp_test_words[0], "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, writer);
	kthread_bind(writer, bp_test_last_cpu());
	bp_test_run_on(test, bp_test_first_cpu());
	wake_up_process(writer);

	for (i = 0; i < NR_SHOUTS; i++) {
		atomic_set(&shout.nr, 0);
		atomic_set(&shout.alive, 1);
		set = register_wide_hw_breakpoint(&attr, record_shout, &shout);
		if (IS_ERR((void __force *)set))
			break;
		for (ms = 0; ms < 60000 && !atomic_read(&shout.nr); ms++)
			usleep_range(1000, 2000);
		unregister_wide_hw_breakpoint(set);
		atomic_set(&shout.alive, 0);
		if (!atomic_read(&shout.nr))
			break;
	}
	kthread_stop(writer);
	bp_test_run_anywhere();

	KUNIT_EXPECT_EQ(test, i, NR_SHOUTS);
	KUNIT_EXPECT_EQ(test, atomic_read(&shout.late), 0);
}

/* ---- Cases: CPUs that come and go ---- */

static void a_cpu_that_comes_back_watches_again(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set, * __percpu *disabled;
	struct bp_test_hits hits = { }, silent = { };
	int cpu = bp_test_last_cpu();
	u32 digest;

	bp_test_require_hits(test);
	bp_test_require_hotplug(test);
	attr.disabled = 1;
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	disabled = bp_test_keep_set(test, bp_test_try_wide(attr, &silent));
	digest = bp_test_digest_accounting();

	bp_test_take_cpu_off(test, cpu);
	KUNIT_EXPECT_NULL(test, bp_test_event_on(set, cpu));
	KUNIT_EXPECT_NULL(test, bp_test_event_on(disabled, cpu));
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
	bp_test_expect_watched_everywhere(test, &bp_test_words[0], &hits);

	bp_test_bring_cpu_back(test);
	KUNIT_EXPECT_NOT_NULL(test, bp_test_event_on(set, cpu));
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
	bp_test_expect_watched_everywhere(test, &bp_test_words[0], &hits);
	bp_test_expect_watched_nowhere(test, &bp_test_words[1], &silent);
}

static void register_is_claimed_for_a_cpu_that_is_offline(struct kunit *test)
{
	struct bp_test_hits hits[BP_SLOTS_MAX] = { };
	struct perf_event * __percpu *set;
	int cpu = bp_test_last_cpu();
	unsigned int i;

	bp_test_require_hits(test);
	bp_test_require_hotplug(test);
	bp_test_take_cpu_off(test, cpu);
	for (i = 0; i < bp_test_nr_slots(); i++) {
		set = bp_test_watch_all(test, &bp_test_words[i], &hits[i]);
		KUNIT_EXPECT_NULL(test, bp_test_event_on(set, cpu));
	}

	bp_test_bring_cpu_back(test);
	BP_TEST_EXPECT_REFUSED(test, -ENOSPC, bp_test_try_cpu(cpu, NULL, &bp_test_words[i], NULL));
	for (i = 0; i < bp_test_nr_slots(); i++)
		bp_test_expect_watched_everywhere(test, &bp_test_words[i], &hits[i]);
}

static void wide_breakpoint_can_be_unregistered_while_a_cpu_is_offline(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	int cpu = bp_test_last_cpu();

	bp_test_require_hits(test);
	bp_test_require_hotplug(test);
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp_test_take_cpu_off(test, cpu);
	bp_test_drop_set(test, set);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	bp_test_bring_cpu_back(test);
	bp_test_expect_watched_nowhere(test, &bp_test_words[0], &hits);
	bp_test_fill_cpu(test, cpu, 0, &hits);
}

static void cpu_breakpoint_keeps_its_claim_while_the_cpu_is_offline(struct kunit *test)
{
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu = bp_test_last_cpu();
	u32 digest;

	bp_test_require_hotplug(test);
	bp = bp_test_watch_cpu(test, cpu, &bp_test_words[0], &hits);
	digest = bp_test_digest_accounting();
	bp_test_take_cpu_off(test, cpu);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), digest);
	BP_TEST_EXPECT_REFUSED(test, -ENODEV, bp_test_try_cpu(cpu, NULL, &bp_test_words[1], &hits));

	bp_test_drop(test, bp);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	bp_test_bring_cpu_back(test);
}

/* ---- The suite ---- */

static struct kunit_case hw_breakpoint_wide_test_cases[] = {
	KUNIT_CASE(a_wide_breakpoint_fires_on_every_online_cpu),
	KUNIT_CASE(a_wide_breakpoint_takes_a_register_of_every_possible_cpu),
	KUNIT_CASE(there_are_as_many_wide_breakpoints_as_registers),
	KUNIT_CASE(a_wide_breakpoint_is_refused_as_a_whole),
	KUNIT_CASE(malformed_wide_breakpoint_on_a_full_cpu_is_einval),
	KUNIT_CASE(wide_breakpoint_that_perf_refuses_claims_nothing),
	KUNIT_CASE(modify_user_hw_breakpoint_refuses_a_wide_member),
	KUNIT_CASE(a_disabled_wide_breakpoint_is_silent_until_it_is_enabled),
	KUNIT_CASE(limit_of_overflows_holds_for_a_wide_member),
	KUNIT_CASE(a_wide_breakpoint_leaves_tasks_the_other_registers),
	KUNIT_CASE_SLOW(no_handler_runs_when_unregister_has_returned),
	KUNIT_CASE_SLOW(a_cpu_that_comes_back_watches_again),
	KUNIT_CASE_SLOW(register_is_claimed_for_a_cpu_that_is_offline),
	KUNIT_CASE_SLOW(wide_breakpoint_can_be_unregistered_while_a_cpu_is_offline),
	KUNIT_CASE_SLOW(cpu_breakpoint_keeps_its_claim_while_the_cpu_is_offline),
	{ }
};

static struct kunit_suite hw_breakpoint_wide_test_suite = {
	.name		= "hw_breakpoint_wide",
	.test_cases	= hw_breakpoint_wide_test_cases,
	.init		= bp_test_init,
	.exit		= bp_test_exit,
};

kunit_test_suite(hw_breakpoint_wide_test_suite);
