// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: admission.
 *
 * The rule: any number of flexible breakpoints may be open for a task or a CPU as long
 * as one register is left for all of them. Closing the last one releases that register.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "flexible.h"

FIXTURE(admission)
{
	struct perf_event_attr attr;
};

FIXTURE_SETUP(admission)
{
	set_up(_metadata);
	self->attr = flexible(0);
}

FIXTURE_TEARDOWN(admission)
{
	tear_down(_metadata);
}

/*
 * The number of guaranteed breakpoints makes no difference as long as one register is
 * left.
 */
TEST_F(admission, any_number_is_admitted_if_one_register_is_left)
{
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 200; i++)
		ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(0, bp_free_slots(0, -1));
	EXPECT_EQ(-ENOSPC, open_guaranteed(0, -1));
}

TEST_F(admission, any_number_is_admitted_on_each_cpu)
{
	BP_NEED_ROOT();
	for (int i = 0; i < cpus.nr; i++) {
		hold(_metadata, BP_SLOTS - 1, -1, cpus.cpu[i]);
		for (int k = 0; k < 50; k++)
			ASSERT_LE(0, open_flexible(-1, cpus.cpu[i]));
		EXPECT_EQ(0, bp_free_slots(-1, cpus.cpu[i]));
	}
	ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(0, bp_free_slots(0, -1));
}

TEST_F(admission, flexible_is_refused_if_task_has_four_guaranteed)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	close(fd[1]);
	EXPECT_LE(0, open_flexible(0, -1));
}

TEST_F(admission, flexible_is_refused_on_a_cpu_with_four_guaranteed)
{
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, cpu, fd));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	EXPECT_EQ(-ENOSPC, open_flexible(0, cpu));
	for (int i = 1; i < cpus.nr; i++) {
		EXPECT_LE(0, open_flexible(-1, cpus.cpu[i]));
		EXPECT_LE(0, open_flexible(0, cpus.cpu[i]));
	}
}

/* Two of the CPU and two of this task; another task is not affected. */
TEST_F(admission, flexible_is_refused_if_cpu_and_task_have_four_guaranteed)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	hold(_metadata, 2, -1, cpu);
	hold(_metadata, 2, 0, -1);
	EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	EXPECT_EQ(-ENOSPC, open_flexible(0, cpu));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	EXPECT_LE(0, open_flexible(other.pid, -1));
	EXPECT_EQ(1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, any_number_takes_one_register)
{
	for (int i = 0; i < 30; i++) {
		ASSERT_LE(0, open_flexible(0, -1));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	}
}

TEST_F(admission, last_close_frees_the_register)
{
	int fd[5], mine[BP_SLOTS];

	for (int i = 0; i < 5; i++) {
		fd[i] = open_flexible(0, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		close(fd[i]);
	}
	EXPECT_EQ(BP_SLOTS, bp_fill(0, -1, mine));
}

TEST_F(admission, last_close_on_a_cpu_frees_the_register)
{
	int fd[3];

	BP_NEED_ROOT();
	for (int i = 0; i < 3; i++) {
		fd[i] = open_flexible(-1, cpu);
		ASSERT_LE(0, fd[i]);
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		close(fd[i]);
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(admission, disabled_flexible_keeps_the_register)
{
	self->attr.disabled = 1;
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

TEST_F(admission, flexible_of_a_cpu_takes_one_register_from_each_task)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 3; i++) {
		ASSERT_LE(0, open_flexible(-1, cpu));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	}
	for (int i = 1; i < cpus.nr; i++) {
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, cpus.cpu[i]));
		EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[i]));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, flexible_of_a_task_takes_one_register_from_cpus_and_none_from_tasks)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(BP_SLOTS, bp_do(&other, CMD_FREE));
	for (int i = 0; i < cpus.nr; i++)
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[i]));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, flexible_of_a_task_on_one_cpu_takes_a_register_from_that_cpu_only)
{
	BP_NEED_ROOT();
	BP_NEED_CPUS(cpus, 2);
	ASSERT_LE(0, open_flexible(0, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

TEST_F(admission, flexible_of_cpu_and_tasks_share_one_register)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 3; i++) {
		EXPECT_LE(0, open_flexible(-1, cpu));
		EXPECT_LE(0, open_flexible(0, -1));
		EXPECT_LE(0, open_flexible(0, cpu));
		EXPECT_LE(0, open_flexible(other.pid, -1));
	}
	EXPECT_EQ(0, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

/* The task with the most claims decides, as it does for guaranteed breakpoints. */
TEST_F(admission, flexible_of_a_cpu_is_refused_if_any_task_is_full)
{
	int fd[BP_SLOTS], mine;
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, fd));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	mine = open_flexible(0, -1);
	EXPECT_LE(0, mine);
	close(fd[0]);
	EXPECT_LE(0, open_flexible(-1, cpu));
	EXPECT_EQ(-ENOSPC, open_guaranteed(other.pid, -1));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, types_share_the_register)
{
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	BP_NEED(!BP_OWN_REGISTERS, "instructions have registers of their own");
	x.config = BP_FLEXIBLE;
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < BP_SLOTS; i++) {
		EXPECT_LE(0, bp_open(&x, 0, -1));
		EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	}
	x.config = 0;
	EXPECT_EQ(0, bp_free_slots_with(&x, 0, -1));
}

TEST_F(admission, refused_flexible_does_not_disturb_guaranteed)
{
	struct events e = { };

	add_words(_metadata, &e, guaranteed, 0, BP_SLOTS, 0, -1);
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
		store_words(0, BP_SLOTS, 1);
		expect_missed_nothing(_metadata, &e, i);
	}
}

TEST_F(admission, refused_guaranteed_does_not_disturb_flexible)
{
	struct load load = { .nr = 6 };
	struct events e = { };

	add_words(_metadata, &e, flexible, 0, 6, 0, -1);
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOSPC, open_guaranteed(0, -1));
		ASSERT_TRUE(all_get_a_register(_metadata, &e, &load));
	}
}

TEST_F(admission, pinned_flexible_is_refused)
{
	int fd[BP_SLOTS];

	self->attr.pinned = 1;
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	if (!geteuid())
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(admission, unknown_bits_are_refused)
{
	for (int bit = 5; bit < 64; bit++) {
		self->attr.config = 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
		self->attr.config |= BP_FLEXIBLE;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
			TH_LOG("config bits 0 and %d", bit);
		}
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(admission, exit_frees_the_register_while_descriptors_are_open)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 8; i++)
		ASSERT_LE(0, open_flexible(other.pid, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
	EXPECT_EQ(0, bp_stop(&other));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
}

TEST_F(admission, exit_of_a_thread_frees_the_register)
{
	struct bp_worker thread;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start_thread(&thread, worker, NULL));
	for (int i = 0; i < 8; i++)
		ASSERT_LE(0, open_flexible(thread.pid, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
}

TEST_F(admission, flexible_of_own_task_needs_no_privilege)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	ASSERT_EQ(0, bp_do(&other, CMD_NOBODY));
	for (int i = 0; i < 8; i++)
		EXPECT_LE(0, bp_do(&other, CMD_OPEN_FLEXIBLE));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, debugger_gets_all_registers_but_one)
{
	struct bp_worker other;

	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 4; i++)
		ASSERT_LE(0, open_flexible(other.pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_ATTACH, other.pid, 0, 0));
	ASSERT_EQ(other.pid, waitpid(other.pid, NULL, 0));
	for (int i = 0; i < BP_SLOTS - 1; i++)
		EXPECT_EQ(0, bp_tracee_watch(other.pid, i, word(i), 8));
	EXPECT_EQ(-ENOSPC, bp_tracee_watch(other.pid, BP_SLOTS - 1, word(BP_SLOTS - 1), 8));
	EXPECT_EQ(-ENOSPC, open_guaranteed(other.pid, -1));
	EXPECT_LE(0, open_flexible(other.pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, other.pid, 0, 0));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_HARNESS_MAIN
