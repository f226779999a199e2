// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: groups that a software event leads.
 *
 * The rule: such a group is multiplexed like one that a breakpoint leads, as a whole
 * and with its leader. A group without breakpoints needs no register.
 */
#include "flexible.h"

FIXTURE(led)
{
	struct events e;
	pid_t pid;
	int cpu;
};

FIXTURE_VARIANT(led)
{
	__u64 config;
	bool of_cpu;
};

FIXTURE_VARIANT_ADD(led, by_dummy) { .config = PERF_COUNT_SW_DUMMY };
FIXTURE_VARIANT_ADD(led, by_cpu_clock) { .config = PERF_COUNT_SW_CPU_CLOCK };
FIXTURE_VARIANT_ADD(led, by_task_clock) { .config = PERF_COUNT_SW_TASK_CLOCK };
FIXTURE_VARIANT_ADD(led, by_dummy_of_cpu) { .config = PERF_COUNT_SW_DUMMY, .of_cpu = true };
FIXTURE_VARIANT_ADD(led, by_cpu_clock_of_cpu) {
	.config = PERF_COUNT_SW_CPU_CLOCK, .of_cpu = true };

FIXTURE_SETUP(led)
{
	if (variant->of_cpu)
		BP_NEED_ROOT();
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	self->pid = variant->of_cpu ? -1 : 0;
	self->cpu = variant->of_cpu ? cpu : -1;
}

FIXTURE_TEARDOWN(led)
{
	tear_down(_metadata);
}

/* Only the breakpoints are added to e: the count of a leader does not matter. */
static int add_led(struct __test_metadata *_metadata, FIXTURE_DATA(led) *self, __u64 config,
		   int first, int nr)
{
	struct perf_event_attr sw = software(config);
	int leader;

	sw.disabled = 1;
	leader = bp_open(&sw, self->pid, self->cpu);
	EXPECT_LE(0, leader);
	for (int i = first; i < first + nr; i++)
		add(_metadata, &self->e, flexible(i), self->pid, self->cpu, leader);
	EXPECT_EQ(0, bp_enable(leader));
	return leader;
}

/* A group need not be disabled while a member is added. */
TEST_F(led, member_that_joins_a_running_group_counts_at_once)
{
	int leader = add_led(_metadata, self, variant->config, 0, 0);
	struct events plain = { };

	add(_metadata, &self->e, flexible(0), self->pid, self->cpu, leader);
	leader = add_led(_metadata, self, variant->config, 0, 0);
	add(_metadata, &plain, guaranteed(1), self->pid, self->cpu, leader);
	store_words(0, 2, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
	expect_missed_nothing(_metadata, &plain, 10);
}

TEST_F(led, single_breakpoints_are_multiplexed)
{
	struct load load = { .nr = 8 };

	for (int i = 0; i < 8; i++)
		add_led(_metadata, self, variant->config, i, 1);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < 8; i++)
		EXPECT_LT(running(&self->e, i), enabled(&self->e, i));
}

TEST_F(led, groups_are_multiplexed_as_a_whole_with_their_leader)
{
	struct load load = { .nr = 9 };
	int leader[3];

	for (int i = 0; i < 3; i++)
		leader[i] = add_led(_metadata, self, variant->config, 3 * i, 3);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	for (int i = 0; i < 3; i++) {
		expect_whole(_metadata, &self->e, 3 * i, 3);
		expect_same_time(_metadata, leader[i], self->e.fd[3 * i]);
	}
	expect_in_use(_metadata, &self->e, &load, 3, 3);
}

/* There are enough groups led by breakpoints to use all registers. */
TEST_F(led, software_led_group_is_multiplexed_beside_breakpoint_led_groups)
{
	struct load load = { .nr = 12 };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, BP_SLOTS, 1);
	expect_rotation(_metadata, &self->e, &load);
	add_group(_metadata, &self->e, flexible, 5, BP_SLOTS, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(led, breakpoint_led_groups_are_multiplexed_beside_software_led_groups)
{
	struct load load = { .nr = 8 };

	for (int i = 0; i < BP_SLOTS; i++)
		add_led(_metadata, self, variant->config, i, 1);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 2, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	add_led(_metadata, self, variant->config, 6, 2);
	expect_rotation(_metadata, &self->e, &load);
}

/* Groups without breakpoints are on the same rotation list, but need no register. */
TEST_F(led, groups_without_breakpoints_are_not_multiplexed)
{
	struct perf_event_attr sw = software(variant->config);
	struct load load = { .nr = 2 };

	for (int i = 0; i < 10; i++)
		ASSERT_LE(0, bp_open(&sw, self->pid, self->cpu));
	hold(_metadata, 3, self->pid, self->cpu);
	for (int i = 0; i < 2; i++)
		add_led(_metadata, self, variant->config, i, 1);
	expect_even(_metadata, &load, &self->e);
}

/* Leaders of different types, each of a PMU of its own */
TEST_F(led, groups_with_leaders_of_different_types_are_multiplexed)
{
	struct load load = { .nr = 10 };

	add_led(_metadata, self, PERF_COUNT_SW_DUMMY, 0, 2);
	add_led(_metadata, self, PERF_COUNT_SW_CPU_CLOCK, 2, 2);
	add_led(_metadata, self, PERF_COUNT_SW_TASK_CLOCK, 4, 2);
	add_led(_metadata, self, variant->config, 6, 2);
	add_words(_metadata, &self->e, flexible, 8, 2, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(led, one_register_is_enough)
{
	struct load load = { .nr = 4 };

	hold(_metadata, BP_SLOTS - 1, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, 0, 1);
	add_words(_metadata, &self->e, flexible, 1, 1, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, 2, 1);
	add_words(_metadata, &self->e, flexible, 3, 1, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, 1, 1);
}

/* A software event whose leader is a flexible breakpoint runs when the leader does. */
TEST_F(led, software_member_runs_with_its_flexible_leader)
{
	struct load load = { .nr = 6 };
	struct events sw = { };

	for (int i = 0; i < 6; i++) {
		add_disabled(_metadata, &self->e, flexible(i), self->pid, self->cpu);
		add(_metadata, &sw, software(variant->config), self->pid, self->cpu,
		    self->e.fd[i]);
		EXPECT_EQ(0, bp_enable(self->e.fd[i]));
	}
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < 6; i++)
		expect_same_time(_metadata, self->e.fd[i], sw.fd[i]);
	go_on_rotations(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
}

TEST_HARNESS_MAIN
