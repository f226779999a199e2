// SPDX-License-Identifier: GPL-2.0
/*
 * All operations at once, for a limited number of rounds.
 *
 * The rule is that of the other tests, under load: no request is refused although
 * registers are available, no hit is lost or delivered twice, and afterwards every
 * register is available.
 */
#include "bp_test.h"

#define NR_TASKS	6
#define ROUNDS		bp_rounds(150)

static char mem[4096] __aligned(4096);

FIXTURE(stress)
{
	struct bp_cpus cpus;
	pid_t pid[NR_TASKS];
	int nr;
};

FIXTURE_SETUP(stress)
{
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(stress)
{
	bp_teardown(_metadata);
}

static void spawn(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self,
		  int (*fn)(void *arg), void *arg)
{
	pid_t pid = bp_fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(fn(arg));
	self->pid[self->nr++] = pid;
}

static void expect_all_well(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self)
{
	while (self->nr)
		EXPECT_EQ(0, bp_wait(self->pid[--self->nr]));
}

/* ------------------------------------------------------------ operations of a task */

/* Opens as many breakpoints as there are registers, and each of them counts. */
static int fill_and_hit(void *arg)
{
	int fd[BP_SLOTS];

	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BP_SLOTS; i++) {
			fd[i] = bp_open_w(mem + 64 * i, 1);
			if (fd[i] < 0)
				return -fd[i];
		}
		for (int i = 0; i < BP_SLOTS; i++) {
			bp_store(mem + 64 * i, 1);
			bp_store(mem + 4000, 1);
		}
		for (int i = 0; i < BP_SLOTS; i++) {
			if (bp_count(fd[i]) != 1)
				return 200 + i;
		}
		bp_close(fd, BP_SLOTS);
	}
	return 0;
}

TEST_F(stress, tasks_open_hit_and_close)
{
	for (int i = 0; i < NR_TASKS; i++)
		spawn(_metadata, self, fill_and_hit, NULL);
	expect_all_well(_metadata, self);
}

static void *fill_and_hit_thread(void *arg)
{
	return (void *)(long)fill_and_hit(arg);
}

static int threads_fill_and_hit(void *arg)
{
	pthread_t thread[3];
	void *result;
	int err = 0;

	for (int i = 0; i < 3; i++) {
		if (pthread_create(&thread[i], NULL, fill_and_hit_thread, arg))
			return 255;
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &result);
		err = err ?: (long)result;
	}
	return err;
}

TEST_F(stress, threads_open_hit_and_close)
{
	spawn(_metadata, self, threads_fill_and_hit, NULL);
	spawn(_metadata, self, threads_fill_and_hit, NULL);
	expect_all_well(_metadata, self);
}

/* One breakpoint of a task that moves from CPU to CPU: the count is exact. */
static int migrate_and_hit(void *arg)
{
	struct bp_cpus *cpus = arg;
	int fd = bp_open_w(mem, 8);

	if (fd < 0)
		return -fd;
	for (int i = 0; i < 4 * ROUNDS; i++) {
		bp_pin(cpus->cpu[i % cpus->nr]);
		bp_store(mem, 1);
	}
	return bp_count(fd) == 4 * ROUNDS ? 0 : 200;
}

TEST_F(stress, tasks_migrate_while_others_open_and_close)
{
	for (int i = 0; i < 3; i++) {
		spawn(_metadata, self, migrate_and_hit, &self->cpus);
		spawn(_metadata, self, fill_and_hit, NULL);
	}
	expect_all_well(_metadata, self);
}

/* A set of inherited events: forks, threads, exits and their hits. */
static int fork_and_hit(void *arg)
{
	struct perf_event_attr attr = bp_attr_w(mem, 8);
	int fd;

	(void)arg;
	attr.inherit = 1;
	fd = bp_open(&attr, 0, -1);
	if (fd < 0)
		return -fd;
	for (int i = 0; i < ROUNDS / 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 201;
		if (!pid) {
			bp_store_times(mem, 1, 3);
			_exit(0);
		}
		bp_store_times(mem, 1, 2);
		if (waitpid(pid, NULL, 0) != pid)
			return 202;
	}
	return bp_count(fd) == 5 * (ROUNDS / 3) ? 0 : 200;
}

TEST_F(stress, families_fork_and_exit)
{
	for (int i = 0; i < NR_TASKS; i++)
		spawn(_metadata, self, fork_and_hit, NULL);
	expect_all_well(_metadata, self);
}

/* --------------------------------------------------------- operations on a task */

static int hit_until(void *arg)
{
	volatile __u64 *stop = arg;

	while (!*stop)
		bp_store_times(mem, 1, 10);
	return 0;
}

/*
 * Each of these calls interrupts the CPU on which the task runs: few rounds, because an
 * emulator may have fewer host CPUs than it shows.
 */
TEST_F(stress, events_of_a_running_task_come_and_go)
{
	volatile __u64 *stop = bp_map_shared();
	struct perf_event_attr attr = bp_attr_w(mem, 8);
	int fd[BP_SLOTS];

	ASSERT_NE(NULL, stop);
	spawn(_metadata, self, hit_until, (void *)stop);
	for (int round = 0; round < ROUNDS / 10; round++) {
		for (int i = 0; i < BP_SLOTS; i++) {
			fd[i] = bp_open(&attr, self->pid[0], -1);
			EXPECT_LE(0, fd[i]);
		}
		EXPECT_EQ(-ENOSPC, bp_open(&attr, self->pid[0], -1));
		EXPECT_EQ(0, bp_disable(fd[0]));
		EXPECT_EQ(0, bp_enable(fd[0]));
		EXPECT_LE(0, bp_count(fd[1]));
		bp_close(fd, BP_SLOTS);
	}
	*stop = 1;
	expect_all_well(_metadata, self);
}

/* Open races with exit: the event is opened, or the task no longer exists. */
TEST_F(stress, events_of_tasks_that_exit)
{
	struct perf_event_attr attr = bp_attr_w(mem, 8);
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int fd[BP_SLOTS], in_time = 0;

	attr.inherit = 1;
	for (int round = 0; round < ROUNDS / 2 || (!in_time && bp_has_patience(start)); round++) {
		pid_t pid = bp_fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			for (int i = 0; i < round % 8; i++)
				sched_yield();
			_exit(0);
		}
		for (int i = 0; i < BP_SLOTS; i++) {
			fd[i] = bp_open(&attr, pid, -1);
			EXPECT_TRUE(fd[i] >= 0 || fd[i] == -ESRCH);
			in_time += fd[i] >= 0;
		}
		EXPECT_EQ(0, bp_wait(pid));
		for (int i = 0; i < BP_SLOTS; i++) {
			if (fd[i] >= 0)
				close(fd[i]);
		}
	}
	EXPECT_LT(0, in_time);
}

static int exec_itself(void *arg)
{
	(void)arg;
	execl("/proc/self/exe", "perf_stress", "--exec", "8", NULL);
	return 255;
}

/* exec while the task has events of its own and of other tasks. */
static int exec_main(int left)
{
	char next[16];
	int fd = bp_open_w(mem + 64, 8);

	if (fd < 0)
		return -fd;
	bp_store(mem + 64, 1);
	if (bp_count(fd) != 1)
		return 200;
	if (!left)
		return 0;
	snprintf(next, sizeof(next), "%d", left - 1);
	execl("/proc/self/exe", "perf_stress", "--exec", next, NULL);
	return 255;
}

TEST_F(stress, tasks_that_exec_under_events)
{
	struct perf_event_attr attr = bp_attr_w(mem, 8);
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int in_time = 0;

	attr.inherit = 1;
	for (int round = 0; round < 5 || (!in_time && bp_has_patience(start)); round++) {
		for (int i = 0; i < 3; i++) {
			int fd;

			spawn(_metadata, self, exec_itself, NULL);
			fd = bp_open(&attr, self->pid[i], -1);
			EXPECT_TRUE(fd >= 0 || fd == -ESRCH);
			in_time += fd >= 0;
		}
		expect_all_well(_metadata, self);
		syscall(__NR_close_range, 3, ~0U, 0);
	}
	EXPECT_LT(0, in_time);
}

/* ------------------------------------------------------------------ CPUs and tasks */

/* Opens and closes breakpoints in half of each CPU's registers. */
static int cpu_open_close_until(void *arg)
{
	volatile __u64 *stop = arg;
	struct bp_cpus cpus = bp_online_cpus();
	struct perf_event_attr attr = bp_attr_w(mem + 4000, 8);
	int fd[2];

	for (int i = 0; !*stop; i++) {
		for (int k = 0; k < 2; k++) {
			fd[k] = bp_open(&attr, -1, cpus.cpu[i % cpus.nr]);
			if (fd[k] < 0)
				return -fd[k];
		}
		bp_close(fd, 2);
	}
	return 0;
}

/* The other half is always available to every task. */
static int open_half(void *arg)
{
	int fd[2];

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++) {
			fd[k] = bp_open_w(mem + 64 * k, 1);
			if (fd[k] < 0)
				return -fd[k];
			bp_store(mem + 64 * k, 1);
			bp_store(mem + 2000, 1);
			if (bp_count(fd[k]) != 1)
				return 200;
		}
		bp_close(fd, 2);
	}
	return 0;
}

TEST_F(stress, cpus_and_tasks_share_half_and_half)
{
	volatile __u64 *stop = bp_map_shared();
	pid_t cpu_pid;

	BP_NEED_ROOT();
	ASSERT_NE(NULL, stop);
	cpu_pid = bp_fork();
	ASSERT_GE(cpu_pid, 0);
	if (!cpu_pid)
		_exit(cpu_open_close_until((void *)stop));
	for (int i = 0; i < 3; i++)
		spawn(_metadata, self, open_half, NULL);
	expect_all_well(_metadata, self);
	*stop = 1;
	EXPECT_EQ(0, bp_wait(cpu_pid));
}

/*
 * --------------------------------------------------------------------- unprivileged
 * tasks
 */

/* @tries: how often the strangers have tried to open an event */
struct stranger {
	volatile __u64 *stop;
	volatile __u64 *tries;
	pid_t victim;
};

static int knock_until(void *arg)
{
	struct stranger *s = arg;
	struct perf_event_attr attr = bp_attr_w(mem, 8), bad = attr;

	if (bp_become_nobody())
		return 255;
	bad.bp_len = 33;
	while (!*s->stop) {
		if (bp_open(&attr, s->victim, -1) != -EACCES ||
		    bp_open(&bad, s->victim, -1) >= 0 ||
		    bp_open(&attr, -1, 0) != -EACCES)
			return 200;
		__atomic_fetch_add(s->tries, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* A task that may not open an event must not make registers unavailable to others. */
TEST_F(stress, other_users_cannot_take_the_slots_of_a_task)
{
	struct stranger s = { .stop = bp_map_shared(), .victim = getpid() };
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int refused = 0, fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_NE(NULL, s.stop);
	s.tries = s.stop + 1;
	spawn(_metadata, self, knock_until, &s);
	spawn(_metadata, self, knock_until, &s);
	for (int round = 0; round < 6 * ROUNDS || (!*s.tries && bp_has_patience(start)); round++) {
		int nr = bp_fill(0, -1, fd);

		refused += nr < BP_SLOTS;
		bp_close(fd, nr);
	}
	*s.stop = 1;
	expect_all_well(_metadata, self);
	EXPECT_LT(0, *s.tries);
	EXPECT_EQ(0, refused);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--exec"))
		return exec_main(atoi(argv[2]));
	return test_harness_run(argc, argv);
}
