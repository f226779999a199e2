// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints and CPU hotplug.
 *
 * The rule: a CPU that is offline refuses new events. Its claims do not make registers
 * of other CPUs unavailable. Events that were open there can be read and closed, and
 * events of tasks continue on the CPU to which the task moves.
 */
#include <dirent.h>

#include "bp_test.h"

FIXTURE(hotplug)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int cpu;
};

FIXTURE_SETUP(hotplug)
{
	BP_NEED_ROOT();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 1);
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	self->cpu = self->cpus.cpu[self->cpus.nr - 1];
	BP_NEED_HOTPLUG(self->cpu);
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu)
		bp_cpu_online(self->cpu, true);
	bp_teardown(_metadata);
}

TEST_F(hotplug, offline_cpu_refuses_an_event)
{
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	for (int i = 0; i < 2 * BP_SLOTS; i++)
		EXPECT_EQ(-ENODEV, bp_open(&self->attr, -1, self->cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

/* Returns the number of a CPU hotplug state, -1 if there is none of that name. */
static int state_of(const char *name)
{
	static char states[16384];
	char *line, *next;
	int number, length;

	if (bp_read_file("/sys/devices/system/cpu/hotplug/states", states, sizeof(states)))
		return -1;
	for (line = states; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%d: %n", &number, &length) == 1 &&
		    !strcmp(line + length, name))
			return number;
	}
	return -1;
}

/* perf has been prepared for the CPU, which has not started yet. */
TEST_F(hotplug, cpu_that_is_being_prepared_refuses_an_event)
{
	char path[64], state[16];
	int prepared = state_of("perf:prepare");

	if (prepared < 0)
		SKIP(return, "this kernel does not prepare perf for a CPU");
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/hotplug/target", self->cpu);
	snprintf(state, sizeof(state), "%d", prepared);
	if (bp_write_file(path, state) == -EINVAL)
		SKIP(return, "needs CONFIG_CPU_HOTPLUG_STATE_CONTROL");
	EXPECT_EQ(-ENODEV, bp_open(&self->attr, -1, self->cpu));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, cpu_that_comes_back_takes_events)
{
	int fd;

	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
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
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
	bp_close(fd, BP_SLOTS);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
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
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(0, bp_disable(fd));
		EXPECT_EQ(0, bp_enable(fd));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		EXPECT_EQ(10, bp_count(fd));
	}
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, event_of_a_cpu_counts_when_it_is_back)
{
	int fd = bp_open(&self->attr, -1, self->cpu);

	ASSERT_GE(fd, 0);
	for (int i = 1; i <= 3; i++) {
		ASSERT_EQ(0, bp_pin(self->cpu));
		bp_store_times(self->mem, 1, 5);
		EXPECT_EQ(5 * i, bp_count(fd));
		bp_unpin();
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	}
	ASSERT_EQ(0, bp_pin(self->cpu));
	EXPECT_EQ(0, bp_disable(fd));
	bp_store_times(self->mem, 1, 5);
	EXPECT_EQ(0, bp_enable(fd));
	bp_store_times(self->mem, 1, 5);
	EXPECT_EQ(20, bp_count(fd));
}

TEST_F(hotplug, event_of_a_cpu_is_enabled_and_disabled_while_it_is_offline)
{
	int on = bp_open(&self->attr, -1, self->cpu), off;

	self->attr.bp_addr += 64;
	off = bp_open(&self->attr, -1, self->cpu);
	ASSERT_GE(on, 0);
	ASSERT_GE(off, 0);
	EXPECT_EQ(0, bp_disable(on));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	EXPECT_EQ(0, bp_enable(on));
	EXPECT_EQ(0, bp_disable(off));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	ASSERT_EQ(0, bp_pin(self->cpu));
	bp_store_times(self->mem, 1, 5);
	bp_store_times(self->mem + 64, 1, 5);
	EXPECT_EQ(5, bp_count(on));
	EXPECT_EQ(0, bp_count(off));
}

/* Returns the thread of the CPU whose name begins with @prefix, 0 if there is none. */
static pid_t cpu_thread(const char *prefix, int cpu)
{
	char path[64], want[32], name[32];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t pid = 0;
	FILE *f;

	snprintf(want, sizeof(want), "%s/%d\n", prefix, cpu);
	while (proc && !pid && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strcmp(name, want))
			pid = atoi(entry->d_name);
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return pid;
}

/*
 * While a CPU goes offline and comes online, its threads still run there. Switching to
 * them must not schedule events of the CPU.
 */
static void offline_with_threads(struct __test_metadata *_metadata,
				 FIXTURE_DATA(hotplug) *self,
				 struct perf_event_attr *of_thread, bool close_it)
{
	static const char * const prefix[] = { "cpuhp", "ksoftirqd", "migration" };
	int nr = sizeof(prefix) / sizeof(prefix[0]), thread[nr], fd;
	struct perf_event_attr sw = *of_thread;

	fd = bp_open(&self->attr, -1, self->cpu);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < nr; i++) {
		pid_t pid = cpu_thread(prefix[i], self->cpu);

		ASSERT_NE(0, pid);
		thread[i] = bp_open(&sw, pid, -1);
		ASSERT_GE(thread[i], 0);
	}
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_pin(self->cpu));
		bp_store_times(self->mem, 1, 5);
		EXPECT_EQ(5 * round, bp_count(fd));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		if (close_it && round == 2) {
			close(fd);
			fd = -1;
		}
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		if (fd == -1)
			break;
	}
	ASSERT_EQ(0, bp_pin(self->cpu));
	bp_store_times(self->mem, 1, 5);
	if (fd >= 0)
		EXPECT_EQ(20, bp_count(fd));
	bp_close(thread, nr);
	if (fd >= 0)
		close(fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, event_of_a_cpu_waits_where_threads_count_in_software)
{
	struct perf_event_attr sw = bp_attr_sw(PERF_COUNT_SW_CONTEXT_SWITCHES);

	/* Context switches are counted in kernel mode. */
	sw.exclude_kernel = 0;
	offline_with_threads(_metadata, self, &sw, false);
	offline_with_threads(_metadata, self, &sw, true);
}

TEST_F(hotplug, event_of_a_cpu_waits_where_threads_have_breakpoints)
{
	struct perf_event_attr other = self->attr;

	other.bp_addr += 64;
	offline_with_threads(_metadata, self, &other, false);
	offline_with_threads(_metadata, self, &other, true);
}

/*
 * The leader is not a breakpoint and is removed with the CPU; the other members are
 * kept.
 */
TEST_F(hotplug, member_of_a_group_counts_when_its_cpu_is_back)
{
	struct perf_event_attr sw = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int leader = bp_open(&sw, -1, self->cpu), fd;

	ASSERT_GE(leader, 0);
	fd = bp_open_group(&self->attr, -1, self->cpu, leader, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	ASSERT_EQ(0, bp_pin(self->cpu));
	bp_store_times(self->mem, 1, 5);
	EXPECT_EQ(5, bp_count(fd));
}

/* Without its leader, which was off, the member is enabled from that time on. */
TEST_F(hotplug, time_of_a_leader_that_was_off_is_not_that_of_the_member)
{
	struct perf_event_attr sw = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	struct bp_reading r;
	int leader, fd;

	sw.disabled = 1;
	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	leader = bp_open(&sw, -1, self->cpu);
	ASSERT_GE(leader, 0);
	fd = bp_open_group(&self->attr, -1, self->cpu, leader, 0);
	ASSERT_GE(fd, 0);
	sleep(3);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	ASSERT_TRUE(bp_read(fd, &r));
	EXPECT_GT(2000000000ULL, r.enabled);
}

/* The event must not become the leader of new members, which would outlive it. */
TEST_F(hotplug, event_that_ended_with_its_cpu_leads_no_group)
{
	struct perf_event_attr sw = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int leader = bp_open(&sw, -1, self->cpu);

	ASSERT_GE(leader, 0);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	EXPECT_EQ(-ENODEV, bp_open_group(&self->attr, -1, self->cpu, leader, 0));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

/* The task moves to another CPU, and its breakpoints with it. */
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
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		for (int i = 0; i < BP_SLOTS; i++)
			bp_store(self->mem + 8 * i, 1);
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
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
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		bp_store(self->mem, 1);
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		EXPECT_EQ(round, bp_count(fd));
	}
}

TEST_F(hotplug, slots_of_a_task_are_the_same_before_and_after)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
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
		EXPECT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(0, bp_cpu_online(self->cpu, true));
	}
	*stop = 1;
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
}

TEST_HARNESS_MAIN
