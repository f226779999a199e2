// SPDX-License-Identifier: GPL-2.0
/*
 * Counting: the tasks and CPUs whose accesses are hits, see count.h.
 */
#include <sys/uio.h>

#include "count.h"

enum { CMD_STORE = 1, CMD_STORE_MANY };

/* Commands of a worker, which accesses the byte at arg; CMD_PIN + n: move to CPU n. */
static long worker(int cmd, void *arg)
{
	switch (cmd) {
	case CMD_STORE:
		bp_store(arg, 1);
		return 0;
	case CMD_STORE_MANY:
		bp_store_times(arg, 1, MANY);
		return 0;
	default:
		return bp_pin((cmd >> 8) - 1);
	}
}

/* Stores once to each of the 8-byte words that a full set of breakpoints watches. */
static long store_to_all(int cmd, void *arg)
{
	for (int k = 0; k < BP_SLOTS; k++)
		bp_store_times((char *)arg + 8 * k, 1, cmd);
	return 0;
}

static int pin_cmd(int cpu)
{
	return (cpu + 1) << 8;
}

/* ------------------------------------------------------------ tasks */

TEST_F(count, child_and_thread_do_not_count_for_this_task)
{
	struct bp_worker child, thread;
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	ASSERT_EQ(0, bp_start_thread(&thread, worker, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_count(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(count, event_of_a_child_counts_the_child_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker child;
	int fd;

	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	fd = bp_open(&attr, child.pid, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 7);
	EXPECT_EQ(0, bp_do(&child, CMD_STORE_MANY));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(count, event_of_a_thread_counts_the_thread_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker one, two;
	int fd;

	ASSERT_EQ(0, bp_start_thread(&one, worker, self->mem));
	ASSERT_EQ(0, bp_start_thread(&two, worker, self->mem));
	fd = bp_open(&attr, one.pid, -1);
	ASSERT_GE(fd, 0);
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_do(&two, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&one, CMD_STORE_MANY));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&one));
	EXPECT_EQ(0, bp_stop(&two));
}

/*
 * Two tasks with a breakpoint each on the same virtual address and the same CPU: every
 * switch gives the register to the other event.
 */
TEST_F(count, tasks_that_share_a_cpu_count_each_its_own)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker w[2];
	int fd[2];

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, self->mem));
		fd[i] = bp_open(&attr, w[i].pid, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 1; i <= 200; i++) {
		EXPECT_EQ(0, bp_do(&w[0], CMD_STORE));
		bp_store(self->mem, 1);
		if (i % 2)
			EXPECT_EQ(0, bp_do(&w[1], CMD_STORE));
	}
	EXPECT_EQ(200, bp_count(fd[0]));
	EXPECT_EQ(100, bp_count(fd[1]));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

TEST_F(count, full_sets_of_two_tasks_count_each_its_own)
{
	struct bp_worker w[2];
	int fd[2][BP_SLOTS];

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], store_to_all, self->mem));
		for (int k = 0; k < BP_SLOTS; k++) {
			int len = k < 3 ? 1 << k : BP_WORD;
			struct perf_event_attr attr = bp_attr_w(self->mem + 8 * k, len);

			fd[i][k] = bp_open(&attr, w[i].pid, -1);
			ASSERT_GE(fd[i][k], 0);
		}
	}
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(0, bp_do(&w[0], 1));
		if (i % 4 == 0)
			EXPECT_EQ(0, bp_do(&w[1], 2));
	}
	for (int k = 0; k < BP_SLOTS; k++) {
		EXPECT_EQ(100, bp_count(fd[0][k]));
		EXPECT_EQ(50, bp_count(fd[1][k]));
	}
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

/*
 * A store by another task through its own mapping of the memory does not hit this
 * task's breakpoint.
 */
TEST_F(count, store_by_another_task_into_this_memory_does_not_count)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 4);
	struct bp_worker child;
	__u64 value = 0x1234;
	struct iovec local = { &value, 8 }, remote = { self->mem, 8 };
	int fd;

	BP_NEED_ROOT();
	attr.exclude_kernel = 0;
	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	fd = bp_open(&attr, child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(8, process_vm_writev(child.pid, &local, 1, &remote, 1, 0));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
}

/* ------------------------------------------------------------------ CPUs */

TEST_F(count, cpu_event_counts_every_task_on_that_cpu)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker w[2];
	int fd, cpu = self->cpus.cpu[self->cpus.nr - 1];

	BP_NEED_ROOT();
	fd = bp_open(&attr, -1, cpu);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, self->mem));
		ASSERT_EQ(0, bp_do(&w[i], pin_cmd(cpu)));
		EXPECT_EQ(0, bp_do(&w[i], CMD_STORE_MANY));
	}
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

TEST_F(count, cpu_event_does_not_count_on_other_cpus)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	fd = bp_open(&attr, -1, self->cpus.cpu[0]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(0, bp_count(fd));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
}

TEST_F(count, one_event_a_cpu_counts_each_its_own)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd[BP_MAX_CPUS];

	BP_NEED_ROOT();
	for (int i = 0; i < self->cpus.nr; i++) {
		fd[i] = bp_open(&attr, -1, self->cpus.cpu[i]);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store_times(self->mem, 1, 10 + i);
	}
	for (int i = 0; i < self->cpus.nr; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
}

TEST_F(count, task_event_bound_to_a_cpu_counts_there_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker other;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	fd = bp_open(&attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&other, worker, self->mem));
	ASSERT_EQ(0, bp_do(&other, pin_cmd(self->cpus.cpu[1])));
	EXPECT_EQ(0, bp_do(&other, CMD_STORE_MANY));
	for (int i = 1; i <= 10; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
		bp_store(self->mem, 1);
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
		bp_store(self->mem, 1);
		EXPECT_EQ(i, bp_count(fd));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(count, task_event_follows_the_task_across_cpus)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i % self->cpus.nr]));
		bp_store(self->mem, 1);
	}
	EXPECT_EQ(100, bp_count(fd));
}

/*
 * A context orders its events by CPU and PMU: breakpoints of any CPU and of one CPU, with
 * software events beside them, are each scheduled once.
 */
TEST_F(count, task_events_of_one_cpu_and_of_any_cpu_count_side_by_side)
{
	struct perf_event_attr software = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(software),
		.config = PERF_COUNT_SW_DUMMY,
	};
	int at[BP_SLOTS] = { -1, self->cpus.cpu[0], -1, self->cpus.cpu[1] }, fd[BP_SLOTS];

	BP_NEED_CPUS(self->cpus, 2);
	for (int i = 0; i < BP_SLOTS; i++) {
		struct perf_event_attr attr = bp_attr_w(self->mem + 8 * i, 1);

		ASSERT_GE(bp_open(&software, 0, at[i]), 0);
		fd[i] = bp_open(&attr, 0, at[i]);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i % 2]));
		for (int k = 0; k < BP_SLOTS; k++)
			bp_store(self->mem + 8 * k, 1);
	}
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(at[i] == -1 ? 20 : 10, bp_count(fd[i]));
}

TEST_F(count, cpu_and_task_breakpoints_share_the_registers)
{
	int cpu = self->cpus.cpu[0], fd[BP_SLOTS];
	struct { pid_t pid; int cpu; } at[BP_SLOTS] = {
		{ -1, cpu }, { 0, -1 }, { -1, cpu }, { 0, cpu }
	};

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	for (int i = 0; i < BP_SLOTS; i++) {
		struct perf_event_attr attr = bp_attr_w(self->mem + 8 * i, 1);

		fd[i] = bp_open(&attr, at[i].pid, at[i].cpu);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < BP_SLOTS; i++)
		bp_store_times(self->mem + 8 * i, 1, 10 + i);
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
}

TEST_HARNESS_MAIN
