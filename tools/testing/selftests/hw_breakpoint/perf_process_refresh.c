// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process with PERF_EVENT_IOC_REFRESH.
 *
 * The rule: the limit counts the overflows of all CPUs together. The access that makes
 * the last overflow sends POLL_HUP. After that no access is a hit, on any CPU, until the
 * event is enabled again.
 */
#include "process.h"

#define THREADS		8

static char *mem;
static int nr_in, nr_hup;
static __thread int nr_traps;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == POLL_HUP)
		__atomic_add_fetch(&nr_hup, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&nr_in, 1, __ATOMIC_RELAXED);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	nr_traps++;
}

/* Signals of overflows may still be on their way when a thread goes on. */
static void wait_for_signals(int in, int hup)
{
	while (nr_in + nr_hup < in + hup)
		sched_yield();
}

FIXTURE(refresh)
{
	struct perf_event_attr attr;
	struct bp_worker thread[2];
	struct bp_cpus cpus;
	int fd;
};

FIXTURE_SETUP(refresh)
{
	struct sigaction overflow = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, mem);
	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
	ASSERT_EQ(0, sigaction(SIGRTMIN, &overflow, NULL));
	ASSERT_EQ(0, sigaction(SIGTRAP, &trap, NULL));
	self->cpus = bp_online_cpus();
	self->attr = process_attr(mem);
	self->attr.sample_period = 1;
	self->attr.disabled = 1;
}

FIXTURE_TEARDOWN(refresh)
{
	bp_teardown(_metadata);
}

static void open_it(struct __test_metadata *_metadata, FIXTURE_DATA(refresh) *self)
{
	struct f_owner_ex owner = { F_OWNER_TID, syscall(__NR_gettid) };

	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, fcntl(self->fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(self->fd, F_SETOWN_EX, &owner));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_ASYNC));
}

static void refresh(struct __test_metadata *_metadata, FIXTURE_DATA(refresh) *self, int nr)
{
	ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, nr));
}

/* Two threads, each on a CPU of its own */
static void start_threads(struct __test_metadata *_metadata, FIXTURE_DATA(refresh) *self)
{
	for (int i = 0; i < 2; i++) {
		int cpu = self->cpus.cpu[i % self->cpus.nr];

		ASSERT_EQ(0, bp_start_thread(&self->thread[i], store_times, mem));
		ASSERT_EQ(0, bp_pin_task(self->thread[i].pid, cpu));
	}
}

static void stop_threads(struct __test_metadata *_metadata, FIXTURE_DATA(refresh) *self)
{
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&self->thread[i]));
}

TEST_F(refresh, counts_the_overflows_of_all_cpus)
{
	start_threads(_metadata, self);
	open_it(_metadata, self);
	for (int round = 1; round <= 4; round++) {
		refresh(_metadata, self, 5);
		for (int i = 0; i < 5; i++) {
			bp_do(&self->thread[i % 2], 1);
			wait_for_signals(4 * (round - 1) + (i < 4 ? i + 1 : 4),
					 round - 1 + (i == 4));
		}
		EXPECT_EQ(4 * round, nr_in);
		EXPECT_EQ(round, nr_hup);
		bp_do(&self->thread[0], 3);
		bp_do(&self->thread[1], 3);
		bp_store(mem, 1);
		EXPECT_EQ(5 * round, bp_count(self->fd));
	}
	EXPECT_EQ(16, nr_in);
	stop_threads(_metadata, self);
}

TEST_F(refresh, adds_to_the_remaining_limit)
{
	start_threads(_metadata, self);
	open_it(_metadata, self);
	refresh(_metadata, self, 2);
	refresh(_metadata, self, 3);
	bp_do(&self->thread[0], 4);
	refresh(_metadata, self, 2);
	bp_do(&self->thread[1], 10);
	EXPECT_EQ(7, bp_count(self->fd));
	wait_for_signals(6, 1);
	EXPECT_EQ(1, nr_hup);
	stop_threads(_metadata, self);
}

TEST_F(refresh, enable_and_modify_lift_the_limit)
{
	start_threads(_metadata, self);
	open_it(_metadata, self);
	refresh(_metadata, self, 1);
	bp_do(&self->thread[1], 5);
	EXPECT_EQ(1, bp_count(self->fd));
	ASSERT_EQ(0, bp_enable(self->fd));
	bp_do(&self->thread[0], 5);
	bp_do(&self->thread[1], 5);
	EXPECT_EQ(11, bp_count(self->fd));

	refresh(_metadata, self, 2);
	bp_do(&self->thread[0], 5);
	EXPECT_EQ(13, bp_count(self->fd));
	self->attr.disabled = 0;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_do(&self->thread[0], 5);
	bp_do(&self->thread[1], 5);
	EXPECT_EQ(23, bp_count(self->fd));
	stop_threads(_metadata, self);
}

/* Each CPU counts its own period; the limit is for the overflows of all CPUs. */
TEST_F(refresh, counts_periods)
{
	BP_NEED_CPUS(self->cpus, 2);
	start_threads(_metadata, self);
	self->attr.sample_period = 3;
	open_it(_metadata, self);
	refresh(_metadata, self, 2);
	bp_do(&self->thread[0], 4);
	bp_do(&self->thread[1], 2);
	EXPECT_EQ(6, bp_count(self->fd));
	bp_do(&self->thread[1], 5);
	wait_for_signals(1, 1);
	EXPECT_EQ(7, bp_count(self->fd));
	stop_threads(_metadata, self);
}

/* PERF_EVENT_IOC_PERIOD changes the period on each CPU. */
TEST_F(refresh, counts_changed_periods)
{
	__u64 period = 2;

	BP_NEED_CPUS(self->cpus, 2);
	start_threads(_metadata, self);
	self->attr.sample_period = 5;
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	for (int i = 0; i < 2; i++) {
		refresh(_metadata, self, 3);
		bp_do(&self->thread[i], 10);
		wait_for_signals(2 * (i + 1), i + 1);
		EXPECT_EQ(6 * (i + 1), bp_count(self->fd));
	}
	stop_threads(_metadata, self);
}

/* The time stands still as soon as the kernel has disabled the event on all CPUs. */
TEST_F(refresh, disables_the_event)
{
	struct bp_reading before, after;
	__u64 start;

	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING;
	open_it(_metadata, self);
	refresh(_metadata, self, 1);
	bp_store(mem, 1);
	wait_for_signals(0, 1);
	do {
		usleep(10000);
		ASSERT_TRUE(bp_read(self->fd, &before));
		start = bp_now(CLOCK_MONOTONIC);
		while (bp_now(CLOCK_MONOTONIC) - start < 20000000)
			;
		ASSERT_TRUE(bp_read(self->fd, &after));
	} while (before.enabled != after.enabled);
	EXPECT_EQ(before.running, after.running);
}

TEST_F(refresh, last_hit_sends_its_sigtrap)
{
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	open_it(_metadata, self);
	for (int round = 1; round <= 10; round++) {
		refresh(_metadata, self, 3);
		for (int i = 0; i < 6; i++)
			bp_store(mem, 1);
		EXPECT_EQ(3 * round, nr_traps);
		EXPECT_EQ(3 * round, bp_count(self->fd));
		wait_for_signals(2 * round, round);
	}
	EXPECT_EQ(10, nr_hup);
}

static int stop;

static void *store_until_stopped(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		bp_store_times(mem, 1, 50);
	return NULL;
}

/* Threads that hit on all CPUs at the same time do not exceed the limit. */
TEST_F(refresh, storm_is_limited_exactly)
{
	pthread_t thread[THREADS];
	long long sum = 0;

	open_it(_metadata, self);
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, start_thread(&thread[i], store_until_stopped, NULL));
	for (int round = 1; round <= 50; round++) {
		refresh(_metadata, self, 10 + round);
		sum += 10 + round;
		while (nr_hup < round)
			sched_yield();
		EXPECT_EQ(sum, bp_count(self->fd));
	}
	EXPECT_EQ(50, nr_hup);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(sum, bp_count(self->fd));
}

/* The event is closed while the kernel is about to disable it. */
TEST_F(refresh, closed_at_the_limit)
{
	for (int i = 0; i < 50; i++) {
		open_it(_metadata, self);
		refresh(_metadata, self, 1);
		bp_store(mem, 1);
		EXPECT_EQ(1, bp_count(self->fd));
		close(self->fd);
	}
}

TEST_HARNESS_MAIN
