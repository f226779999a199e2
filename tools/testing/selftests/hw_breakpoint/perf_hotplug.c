// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints and CPUs that go and come back.
 *
 * The rule: a CPU that is offline refuses new events and takes no slot with it,
 * events that were open there can be read and closed, and task events go on
 * wherever their task does.
 */
#include "bp_test.h"

static int cpu_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return bp_write_file(path, online ? "1" : "0");
}

FIXTURE(hotplug)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int cpu;
};

FIXTURE_SETUP(hotplug)
{
	char path[64];

	BP_NEED_ROOT();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 1);
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	self->cpu = self->cpus.cpu[self->cpus.nr - 1];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", self->cpu);
	if (access(path, W_OK))
		SKIP(return, "CPU %d cannot be taken offline", self->cpu);
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu)
		cpu_online(self->cpu, true);
	bp_teardown(_metadata);
}

TEST_F(hotplug, offline_cpu_refuses_an_event)
{
	ASSERT_EQ(0, cpu_online(self->cpu, false));
	for (int i = 0; i < 2 * BP_SLOTS; i++)
		EXPECT_EQ(-ENODEV, bp_open(&self->attr, -1, self->cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
	ASSERT_EQ(0, cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, cpu_that_comes_back_takes_events)
{
	int fd;

	ASSERT_EQ(0, cpu_online(self->cpu, false));
	ASSERT_EQ(0, cpu_online(self->cpu, true));
	fd = bp_open(&self->attr, -1, self->cpu);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpu));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
}

TEST_F(hotplug, event_of_a_cpu_can_be_read_and_closed_while_it_is_offline)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(0, bp_pin(self->cpu));
	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open(&self->attr, -1, self->cpu);
		ASSERT_GE(fd[i], 0);
		self->attr.bp_addr += 8;
	}
	for (int i = 0; i < BP_SLOTS; i++)
		bp_store_times(self->mem + 8 * i, 1, 10 + i);
	bp_unpin();
	ASSERT_EQ(0, cpu_online(self->cpu, false));
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
	bp_close(fd, BP_SLOTS);
	ASSERT_EQ(0, cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, event_of_a_cpu_can_be_read_and_closed_when_it_is_back)
{
	int fd = bp_open(&self->attr, -1, self->cpu);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpu));
	bp_store_times(self->mem, 1, 10);
	bp_unpin();
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, cpu_online(self->cpu, false));
		EXPECT_EQ(0, bp_disable(fd));
		EXPECT_EQ(0, bp_enable(fd));
		ASSERT_EQ(0, cpu_online(self->cpu, true));
		EXPECT_LE(10, bp_count(fd));
	}
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

/* The task is moved off the CPU, and its breakpoints with it. */
TEST_F(hotplug, task_event_goes_on_elsewhere)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open_w(self->mem + 8 * i, 1);
		ASSERT_GE(fd[i], 0);
	}
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_pin(self->cpu));
		for (int i = 0; i < BP_SLOTS; i++)
			bp_store(self->mem + 8 * i, 1);
		ASSERT_EQ(0, cpu_online(self->cpu, false));
		for (int i = 0; i < BP_SLOTS; i++)
			bp_store(self->mem + 8 * i, 1);
		ASSERT_EQ(0, cpu_online(self->cpu, true));
		for (int i = 0; i < BP_SLOTS; i++)
			EXPECT_EQ(2 * round, bp_count(fd[i]));
	}
}

TEST_F(hotplug, task_event_bound_to_the_cpu_counts_there_again)
{
	int fd = bp_open(&self->attr, 0, self->cpu);

	ASSERT_GE(fd, 0);
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_pin(self->cpu));
		bp_store(self->mem, 1);
		EXPECT_EQ(round, bp_count(fd));
		ASSERT_EQ(0, cpu_online(self->cpu, false));
		bp_store(self->mem, 1);
		ASSERT_EQ(0, cpu_online(self->cpu, true));
		EXPECT_EQ(round, bp_count(fd));
	}
}

TEST_F(hotplug, slots_of_a_task_are_the_same_before_and_after)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(0, cpu_online(self->cpu, false));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(0, cpu_online(self->cpu, true));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, -1, self->cpu));
	bp_close(fd, BP_SLOTS);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

static int open_close_until(void *arg)
{
	volatile __u64 *stop = arg;
	__u64 target = 0;

	while (!*stop) {
		int fd = bp_open_w(&target, 8);

		if (fd < 0)
			return -fd;
		close(fd);
	}
	return 0;
}

TEST_F(hotplug, cpu_comes_and_goes_while_tasks_open_and_close)
{
	volatile __u64 *stop = bp_map_shared();
	pid_t pid[4];

	ASSERT_NE(NULL, stop);
	for (int i = 0; i < 4; i++) {
		pid[i] = bp_fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			_exit(open_close_until((void *)stop));
	}
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, cpu_online(self->cpu, false));
		EXPECT_EQ(0, cpu_online(self->cpu, true));
	}
	*stop = 1;
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
}

TEST_HARNESS_MAIN
