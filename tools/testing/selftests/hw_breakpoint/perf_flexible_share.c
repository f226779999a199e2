// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: events of a CPU, of a task and of its process.
 *
 * The rule: all get registers, whichever was opened first, and however many there are
 * of the others.
 */
#include "flexible.h"

FIXTURE(share)
{
	struct events e;
};

FIXTURE_VARIANT(share)
{
	int of_cpu;
	int of_task;
	/* Number of guaranteed breakpoints of the task */
	int guaranteed;
	int of_process;
};

FIXTURE_VARIANT_ADD(share, one_and_one) { 1, 1, 3 };
FIXTURE_VARIANT_ADD(share, two_of_the_cpu_and_one) { 2, 1, 3 };
FIXTURE_VARIANT_ADD(share, one_of_the_cpu_and_two) { 1, 2, 3 };
FIXTURE_VARIANT_ADD(share, three_of_the_cpu_and_five) { 3, 5, 3 };
FIXTURE_VARIANT_ADD(share, eight_of_the_cpu_and_one) { 8, 1, 3 };
FIXTURE_VARIANT_ADD(share, one_of_the_cpu_and_eight) { 1, 8, 3 };
FIXTURE_VARIANT_ADD(share, three_and_three_on_two_registers) { 3, 3, 2 };
FIXTURE_VARIANT_ADD(share, four_of_the_cpu_and_one_on_all_registers) { 4, 1, 0 };
FIXTURE_VARIANT_ADD(share, six_and_six_on_all_registers) { 6, 6, 0 };
FIXTURE_VARIANT_ADD(share, one_and_one_of_the_process) { 0, 1, 3, 1 };
FIXTURE_VARIANT_ADD(share, one_of_the_cpu_and_one_of_the_process) { 1, 0, 3, 1 };
FIXTURE_VARIANT_ADD(share, one_of_each) { 1, 1, 3, 1 };
FIXTURE_VARIANT_ADD(share, eight_of_the_process_and_one) { 0, 1, 3, 8 };
FIXTURE_VARIANT_ADD(share, eight_and_one_of_the_process) { 0, 8, 3, 1 };
FIXTURE_VARIANT_ADD(share, three_of_each_on_two_registers) { 3, 3, 2, 3 };
FIXTURE_VARIANT_ADD(share, five_of_each_on_all_registers) { 5, 5, 0, 5 };

FIXTURE_SETUP(share)
{
	BP_NEED_ROOT();
	BP_NEED_CONFIG(variant->of_process ? BP_PROCESS : 0);
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	hold(_metadata, variant->guaranteed, 0, -1);
}

FIXTURE_TEARDOWN(share)
{
	tear_down(_metadata);
}

static int number_of(const FIXTURE_VARIANT(share) *variant)
{
	return variant->of_cpu + variant->of_process + variant->of_task;
}

static void add_all(struct __test_metadata *_metadata, struct events *e,
		    const FIXTURE_VARIANT(share) *variant)
{
	add_words(_metadata, e, flexible, e->nr, variant->of_cpu, -1, cpu);
	add_words(_metadata, e, of_process, e->nr, variant->of_process, 0, -1);
	add_words(_metadata, e, flexible, e->nr, variant->of_task, 0, -1);
}

TEST_F(share, each_event_gets_a_register_if_cpu_events_were_opened_first)
{
	struct load load = { .nr = number_of(variant) };

	add_all(_metadata, &self->e, variant);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(share, each_event_gets_a_register_if_task_events_were_opened_first)
{
	struct load load = { .nr = number_of(variant) };

	add_words(_metadata, &self->e, flexible, 0, variant->of_task, 0, -1);
	add_words(_metadata, &self->e, of_process, self->e.nr, variant->of_process, 0, -1);
	add_words(_metadata, &self->e, flexible, self->e.nr, variant->of_cpu, -1, cpu);
	expect_rotation(_metadata, &self->e, &load);
}

/*
 * Shares need not be even, but each event gets at least an eighth of an even share of
 * the hits. This is far below what any order of rotation gives over time.
 */
TEST_F(share, each_event_gets_a_minimum_share)
{
	int nr = number_of(variant), left = BP_SLOTS - variant->guaranteed;
	__u64 start = bp_now(CLOCK_MONOTONIC), least;
	struct load load = { .nr = nr };
	struct events *e = &self->e;

	add_all(_metadata, e, variant);
	begin(_metadata, e);
	do {
		go_on_for(_metadata, &load, e, enabled(e, 0) + 10 * nr * INTERVAL_NS);
		look(_metadata, e);
		least = ~0ULL;
		for (int i = 0; i < nr; i++)
			least = counted(e, i) < least ? counted(e, i) : least;
	} while (8 * nr * least < left * load.rounds &&
		 bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	EXPECT_LE(left * load.rounds, 8 * nr * least) {
		show(_metadata, e);
	}
	expect_in_use(_metadata, e, &load, left, left);
}

/* The task sleeps often: this must not cost its events their registers. */
TEST_F(share, each_event_gets_a_register_if_the_task_sleeps_often)
{
	struct load load = { .nr = number_of(variant), .go_on = sleep_often };

	add_all(_metadata, &self->e, variant);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_HARNESS_MAIN
