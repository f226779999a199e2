// SPDX-License-Identifier: GPL-2.0
/*
 * Counting: enabling, disabling and reading, and exec; see count.h.
 */
#include "count.h"

/* --------------------------------------------------------- enabling, exec */

TEST_F(count, nothing_counts_while_disabled)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	attr.disabled = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_count(fd));
	for (int i = 1; i <= 5; i++) {
		EXPECT_EQ(0, bp_enable(fd));
		bp_store(self->mem, 1);
		EXPECT_EQ(0, bp_disable(fd));
		bp_store(self->mem, 1);
		EXPECT_EQ(i, bp_count(fd));
	}
}

TEST_F(count, enable_and_disable_can_be_repeated)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, bp_enable(fd));
	EXPECT_EQ(0, bp_enable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_disable(fd));
	EXPECT_EQ(0, bp_disable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(count, reset_clears_the_count_and_nothing_else)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	EXPECT_EQ(0, bp_count(fd));
	bp_store_times(self->mem, 1, 2);
	EXPECT_EQ(2, bp_count(fd));
}

/*
 * A user program cannot test the effect of these bits: they are accepted, and change
 * nothing here.
 */
TEST_F(count, other_exclusions_are_accepted)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	attr.exclude_hv = 1;
	attr.exclude_idle = 1;
	attr.exclude_host = 1;
	attr.exclude_guest = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 5);
	EXPECT_EQ(5, bp_count(fd));
}

TEST_F(count, prctl_disables_and_enables_all_events_of_the_owner)
{
	int a = bp_open_w(self->mem, 1), b = bp_open_w(self->mem + 8, 1);

	ASSERT_GE(a, 0);
	ASSERT_GE(b, 0);
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
	bp_store(self->mem, 1);
	bp_store(self->mem + 8, 1);
	EXPECT_EQ(0, bp_count(a));
	EXPECT_EQ(0, bp_count(b));
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
	bp_store(self->mem, 1);
	bp_store(self->mem + 8, 1);
	EXPECT_EQ(1, bp_count(a));
	EXPECT_EQ(1, bp_count(b));
}

enum { WAIT, STORE, STOP };

/* A child on @cpu that waits until *@state is STORE, and stores up to @times, until STOP. */
static pid_t fork_storing(int cpu, char *mem, volatile __u64 *state, unsigned long times)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	bp_pin(cpu);
	while (*state == WAIT)
		sched_yield();
	for (unsigned long i = 0; i < times && *state == STORE; i++)
		bp_store(mem, 1);
	_exit(0);
}

/*
 * A child on @cpu that stores bursts until *@state is STOP, counts the stores in
 * *@stores, and lets another task run after each burst.
 */
static pid_t fork_bursts(int cpu, char *mem, volatile __u64 *state, volatile __u64 *stores)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	bp_pin(cpu);
	while (*state != STOP) {
		for (int i = 0; i < 8; i++) {
			bp_store(mem, 1);
			*stores += 1;
		}
		sched_yield();
	}
	_exit(0);
}

/* Waits for @nr stores, and returns how many there have been since *@stores was @from. */
static __u64 wait_for_stores(volatile __u64 *stores, __u64 from, __u64 nr)
{
	while (*stores < from + nr)
		sched_yield();
	return *stores - from;
}

/*
 * Enables and disables the event of a task on another CPU, which stores all the time,
 * @rounds times. *stores may lack one store that was done before ENABLE: the event does
 * not count it.
 */
static void enable_and_disable(struct __test_metadata *_metadata, FIXTURE_DATA(count) *self,
			       pid_t pid, volatile __u64 *stores, int rounds)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	long long last;
	__u64 from, nr;
	int fd;

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	attr.disabled = 1;
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < rounds; i++) {
		last = bp_count(fd);
		ASSERT_EQ(0, bp_enable(fd));
		from = *stores;
		nr = wait_for_stores(stores, from, 1 + i % 20);
		ASSERT_GE(bp_count(fd), last + nr - 1);
		ASSERT_EQ(0, bp_disable(fd));
		last = bp_count(fd);
		wait_for_stores(stores, *stores, 1 + i % 20);
		ASSERT_EQ(last, bp_count(fd));
	}
}

TEST_F(count, other_cpu_can_enable_and_disable_for_a_running_task)
{
	volatile __u64 *state = bp_map_shared();
	pid_t pid;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_NE(NULL, state);
	pid = fork_bursts(self->cpus.cpu[1], self->mem, state, state + 1);
	ASSERT_GT(pid, 0);
	enable_and_disable(_metadata, self, pid, state + 1, 20);
	*state = STOP;
	EXPECT_EQ(0, bp_wait(pid));
}

/* ENABLE and DISABLE meet the task at any point of its switches. */
TEST_F(count, other_cpu_can_enable_and_disable_for_a_task_that_is_switched)
{
	volatile __u64 *state = bp_map_shared();
	pid_t pid[2];

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_NE(NULL, state);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork_bursts(self->cpus.cpu[1], self->mem, state, state + 1 + i);
		ASSERT_GT(pid[i], 0);
	}
	enable_and_disable(_metadata, self, pid[0], state + 1, 600);
	*state = STOP;
	EXPECT_EQ(0, bp_wait(pid[0]));
	EXPECT_EQ(0, bp_wait(pid[1]));
}

/*
 * The new image is this program again: main() sees the request and stores argv[2] times
 * to exec_target, which is at the same address as before.
 */
static __u64 exec_target __aligned(8);

static int exec_main(const char *times)
{
	bp_store_times(&exec_target, 4, atoi(times));
	return 0;
}

/*
 * A child that waits for the gate, stores 5 times, executes a new image, and stores 3
 * times.
 */
static pid_t fork_exec(int gate[2])
{
	pid_t pid;
	char c;

	if (pipe(gate))
		return -errno;
	pid = bp_fork();
	if (pid)
		return pid;
	close(gate[1]);
	if (read(gate[0], &c, 1) != 1)
		_exit(1);
	bp_store_times(&exec_target, 4, 5);
	execl("/proc/self/exe", "perf_count_enable", "--store", "3", NULL);
	_exit(2);
}

TEST_F(count, event_goes_on_across_exec)
{
	struct perf_event_attr attr = bp_attr_w(&exec_target, 4);
	int gate[2], fd;
	pid_t pid;

	pid = fork_exec(gate);
	ASSERT_GT(pid, 0);
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, write(gate[1], "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(8, bp_count(fd));
}

TEST_F(count, enable_on_exec_starts_with_the_new_image)
{
	struct perf_event_attr attr = bp_attr_w(&exec_target, 4);
	int gate[2], fd;
	pid_t pid;

	attr.disabled = 1;
	attr.enable_on_exec = 1;
	pid = fork_exec(gate);
	ASSERT_GT(pid, 0);
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, write(gate[1], "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(3, bp_count(fd));
}

/* ------------------------------------------------------------------ read() */

TEST_F(count, read_gives_the_fields_asked_for)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 v[8] = { };
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
			   PERF_FORMAT_LOST;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 6);
	EXPECT_EQ(5 * 8, read(fd, v, sizeof(v)));
	EXPECT_EQ(6, v[0]);
	EXPECT_GT(v[1], 0);
	EXPECT_EQ(v[1], v[2]);
	EXPECT_EQ(bp_id(fd), v[3]);
	EXPECT_EQ(0, v[4]);
}

TEST_F(count, time_stands_still_while_disabled)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 a[3], b[3];
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.disabled = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_EQ(0, a[1]);
	EXPECT_EQ(0, a[2]);
	EXPECT_EQ(0, bp_enable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_disable(fd));
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_GT(a[1], 0);
	EXPECT_EQ(a[1], a[2]);
	EXPECT_EQ(sizeof(b), read(fd, b, sizeof(b)));
	EXPECT_EQ(a[1], b[1]);
	EXPECT_EQ(a[2], b[2]);
}

TEST_F(count, cpu_bound_task_event_runs_for_its_share_of_the_time)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 a[3], b[3];
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	fd = bp_open(&attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_EQ(0, a[2]);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	bp_store(self->mem, 1);
	EXPECT_EQ(sizeof(b), read(fd, b, sizeof(b)));
	EXPECT_EQ(1, b[0]);
	EXPECT_GT(b[2], 0);
	EXPECT_LE(b[2], b[1] - a[1]);
}

TEST_F(count, count_can_be_read_while_the_task_runs_elsewhere)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	volatile __u64 *state = bp_map_shared();
	long long last = 0, now;
	pid_t pid;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_NE(NULL, state);
	pid = fork_storing(self->cpus.cpu[1], self->mem, state, 5000);
	ASSERT_GE(pid, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	*state = STORE;
	for (int i = 0; i < 50; i++) {
		now = bp_count(fd);
		EXPECT_GE(now, last);
		last = now;
	}
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(5000, bp_count(fd));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--store"))
		return exec_main(argv[2]);
	return test_harness_run(argc, argv);
}
