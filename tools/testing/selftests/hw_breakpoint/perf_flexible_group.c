// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: groups.
 *
 * The rule: the breakpoints of a group are all flexible or all guaranteed, and at most
 * as many as there are registers. All breakpoints of a group have a register, or none
 * has.
 */
#include "flexible.h"

FLEXIBLE_FIXTURE(group)

TEST_F(group, guaranteed_and_flexible_breakpoints_do_not_mix)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	int of_plain = open_guaranteed(0, -1), of_flex = open_flexible(0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
		EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
	}
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, -1));
	EXPECT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	EXPECT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(BP_SLOTS - 3, bp_free_slots(0, -1));
}

/* All breakpoints of a group must be of one kind, whichever event leads it. */
TEST_F(group, guaranteed_and_flexible_do_not_mix_under_a_software_leader)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	int of_plain = bp_open(&sw, 0, -1), of_flex = bp_open(&sw, 0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	ASSERT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
	EXPECT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	EXPECT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(BP_SLOTS - 3, bp_free_slots(0, -1));
}

TEST_F(group, guaranteed_and_flexible_do_not_mix_beside_software_members)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	struct perf_event_attr sw = software(PERF_COUNT_SW_CPU_CLOCK);
	int of_plain = open_guaranteed(0, -1), of_flex = open_flexible(0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_plain, 0));
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
}

TEST_F(group, of_more_than_there_are_registers_is_refused)
{
	struct perf_event_attr more = flexible(BP_SLOTS), sw = software(PERF_COUNT_SW_DUMMY);

	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, self->e.fd[0], 0));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, self->e.fd[0], 0));
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
	close(self->e.fd[2]);
	EXPECT_LE(0, bp_open_group(&more, 0, -1, self->e.fd[0], 0));
}

TEST_F(group, of_more_than_there_are_registers_is_refused_under_a_software_event)
{
	struct perf_event_attr more = flexible(BP_SLOTS), sw = software(PERF_COUNT_SW_CPU_CLOCK);
	int leader;

	sw.disabled = 1;
	leader = bp_open(&sw, 0, -1);
	ASSERT_LE(0, leader);
	for (int i = 0; i < BP_SLOTS; i++)
		add(_metadata, &self->e, flexible(i), 0, -1, leader);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, leader, 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_enable(leader));
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
}

/*
 * The members of a group are scheduled all at once at each rotation, which limits their
 * number.
 */
TEST_F(group, of_more_than_32_events_is_refused)
{
	struct perf_event_attr more = flexible(1), sw = software(PERF_COUNT_SW_DUMMY);
	int of_flex = open_flexible(0, -1), of_sw = bp_open(&sw, 0, -1);

	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, of_sw);
	for (int i = 1; i < 32; i++) {
		ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_flex, 0));
		ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_sw, 0));
	}
	EXPECT_EQ(-EINVAL, bp_open_group(&sw, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, of_sw, 0));
	EXPECT_LE(0, bp_open_group(&sw, 0, -1, of_sw, 0));
}

/* Events of a CPU are refused in both cases, too. */
TEST_F(group, of_a_cpu_keeps_to_the_same_rules)
{
	struct perf_event_attr plain = guaranteed(1), more = flexible(BP_SLOTS);

	BP_NEED_ROOT();
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, -1, cpu);
	EXPECT_EQ(-EINVAL, bp_open_group(&more, -1, cpu, self->e.fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, -1, cpu, self->e.fd[0], 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
}

/* Of three groups of two, two fit into four registers. */
TEST_F(group, of_two_are_multiplexed_as_a_whole)
{
	struct load load = { .nr = 6 };
	struct events *e = &self->e;

	for (int i = 0; i < 6; i += 2)
		add_group(_metadata, e, flexible, i, 2, 0, -1);
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 60);
	for (int i = 0; i < 6; i += 2)
		expect_whole(_metadata, e, i, 2);
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
}

TEST_F(group, of_four_are_multiplexed_as_a_whole)
{
	struct load load = { .nr = 12 };
	struct events *e = &self->e;

	for (int i = 0; i < 12; i += BP_SLOTS)
		add_group(_metadata, e, flexible, i, BP_SLOTS, 0, -1);
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 60);
	for (int i = 0; i < 12; i += BP_SLOTS)
		expect_whole(_metadata, e, i, BP_SLOTS);
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
}

TEST_F(group, of_two_and_of_four_of_a_cpu_are_multiplexed_as_a_whole)
{
	struct load load = { .nr = 12 };
	struct events *e = &self->e;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, e, flexible, 0, BP_SLOTS, -1, cpu);
	add_group(_metadata, e, flexible, 4, 2, -1, cpu);
	add_group(_metadata, e, flexible, 6, BP_SLOTS, -1, cpu);
	add_group(_metadata, e, flexible, 10, 2, -1, cpu);
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, BP_SLOTS);
	expect_whole(_metadata, e, 4, 2);
	expect_whole(_metadata, e, 6, BP_SLOTS);
	expect_whole(_metadata, e, 10, 2);
	expect_in_use(_metadata, e, &load, 2, BP_SLOTS);
}

/* With three registers left, no group of two runs with only one of its breakpoints. */
TEST_F(group, is_never_torn_apart)
{
	struct load load = { .nr = BP_SLOTS };
	struct events *e = &self->e;

	hold(_metadata, 1, 0, -1);
	add_group(_metadata, e, flexible, 0, 2, 0, -1);
	add_group(_metadata, e, flexible, 2, 2, 0, -1);
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, 2);
	expect_whole(_metadata, e, 2, 2);
	expect_in_use(_metadata, e, &load, 2, 2);
}

/*
 * Groups of four compete with single breakpoints: a free register must not always go to
 * a single one.
 */
TEST_F(group, of_four_gets_registers_beside_single_events)
{
	struct load load = { .nr = 12 };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, 2 * BP_SLOTS, BP_SLOTS, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(group, that_does_not_fit_waits_while_others_are_multiplexed)
{
	struct events four = { }, plain = { };
	struct load load = { .nr = 8 };

	add_words(_metadata, &plain, guaranteed, 8, 2, 0, -1);
	add_group(_metadata, &four, flexible, 0, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 3, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
	EXPECT_EQ(0, all_counted(&four));
	close_events(&plain);
	expect_rotation(_metadata, &four, &load);
	expect_rotation(_metadata, &self->e, &load);
}

/* A group that does not fit even if all flexible breakpoints are evicted evicts none. */
TEST_F(group, that_does_not_fit_evicts_no_others)
{
	struct events four = { };
	struct load load = { .nr = 3 };

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	hold(_metadata, 1, 0, -1);
	add_words(_metadata, &self->e, flexible, 0, 3, -1, cpu);
	add_group(_metadata, &four, flexible, 8, BP_SLOTS, 0, -1);
	for (int i = 0; i < 40; i++) {
		usleep(1000);
		go_on_rotations(_metadata, &load, &self->e, 2);
		expect_missed_nothing(_metadata, &self->e, load.rounds);
	}
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
}

TEST_F(group, that_is_disabled_is_not_multiplexed)
{
	struct load load = { .nr = 10 };
	struct events group = { };

	add_disabled(_metadata, &group, flexible(0), 0, -1);
	for (int i = 1; i < BP_SLOTS; i++)
		add(_metadata, &group, flexible(i), 0, -1, group.fd[0]);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 6, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
	look(_metadata, &group);
	EXPECT_EQ(0, all_counted(&group));
	EXPECT_EQ(0, bp_enable(group.fd[0]));
	expect_rotation(_metadata, &group, &load);
	EXPECT_EQ(0, bp_disable(group.fd[0]));
	begin(_metadata, &group);
	expect_rotation(_metadata, &self->e, &load);
	look(_metadata, &group);
	EXPECT_EQ(0, all_counted(&group));
	EXPECT_EQ(0, all_running(&group));
}

TEST_HARNESS_MAIN
