// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: tasks that run in bursts.
 *
 * The rule: whatever the rhythm in which a thread, a process or the tasks of a cgroup run,
 * each of their flexible breakpoints gets at least half of an even share of the registers
 * for the time that they run. The same holds for events of a hardware PMU, which perf core
 * rotates. Whether the timer that rotates events ever fires during a burst does not matter.
 *
 * A burst and a sleep are never shorter than given here. A machine that is busy makes them
 * longer, which is another rhythm.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "flexible.h"

#define MANY		1000
#define NR_THREADS	4

#define ROOT_GROUP	"/sys/fs/cgroup"
#define GROUP		ROOT_GROUP "/hw_breakpoint_burst"

enum kind { THREAD, PROCESS, THREADS_OF_PROCESS, INHERITED, CGROUP, CPU, HARDWARE };

FIXTURE(burst)
{
	struct perf_event_attr attr;
	pid_t pid;
	int on;
	unsigned long flags;
	int fd[MANY];
	struct bp_worker thread[NR_THREADS];
	bool has_module;
};

FIXTURE_VARIANT(burst)
{
	enum kind kind;
	/* Number of events, and of those in each group, 0 for 1 */
	int nr, group;
	/* Number of guaranteed breakpoints beside them */
	int guaranteed;
	/* Each burst is followed by a sleep; other_us is for every second burst. */
	int burst_us, other_us, sleep_us;
	int bursts;
};

/* Bursts of 10 us to 10 ms, sleeps of 1 to 50 ms */
FIXTURE_VARIANT_ADD(burst, thread_10us_1ms) { THREAD, 5, 0, 0, 10, 0, 1000, 1000 };
FIXTURE_VARIANT_ADD(burst, thread_100us_4ms) { THREAD, 6, 0, 0, 100, 0, 4000, 300 };
FIXTURE_VARIANT_ADD(burst, thread_500us_9500us) { THREAD, 20, 0, 0, 500, 0, 9500, 200 };
FIXTURE_VARIANT_ADD(burst, thread_1ms_20ms) { THREAD, 6, 0, 0, 1000, 0, 20000, 60 };
FIXTURE_VARIANT_ADD(burst, thread_10ms_50ms) { THREAD, 5, 0, 0, 10000, 0, 50000, 20 };
FIXTURE_VARIANT_ADD(burst, thread_with_1000) { THREAD, MANY, 0, 0, 250, 0, 1000, 2500 };
FIXTURE_VARIANT_ADD(burst, process_10us_1ms) { PROCESS, 8, 0, 0, 10, 0, 1000, 1600 };
FIXTURE_VARIANT_ADD(burst, process_500us_20ms) { PROCESS, 12, 0, 0, 500, 0, 20000, 60 };
FIXTURE_VARIANT_ADD(burst, threads_of_a_process) {
	THREADS_OF_PROCESS, 12, 0, 0, 100, 0, 1000, 800 };
FIXTURE_VARIANT_ADD(burst, inherited) { INHERITED, 12, 0, 0, 100, 0, 1000, 1200 };
FIXTURE_VARIANT_ADD(burst, cgroup_100us_4ms) { CGROUP, 6, 0, 0, 100, 0, 4000, 300 };
FIXTURE_VARIANT_ADD(burst, cpu_beside_a_thread) { CPU, 9, 0, 1, 500, 0, 9500, 100 };
FIXTURE_VARIANT_ADD(burst, hardware_100us_4ms) { HARDWARE, 6, 0, 0, 100, 0, 4000, 600 };

/* The same two events always meet the long burst unless the time used is counted. */
FIXTURE_VARIANT_ADD(burst, two_lengths_on_one_register) {
	THREAD, 2, 0, 3, 1000, 9000, 5000, 60 };
FIXTURE_VARIANT_ADD(burst, two_lengths_in_a_process) {
	PROCESS, 2, 0, 3, 1000, 9000, 5000, 60 };
FIXTURE_VARIANT_ADD(burst, pairs) { THREAD, 10, 2, 0, 100, 0, 1000, 600 };
FIXTURE_VARIANT_ADD(burst, triples_of_a_process) { PROCESS, 9, 3, 0, 100, 0, 1000, 600 };

static void run_for(int us)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + us * 1000ULL;

	do
		store_words(0, 1, 1);
	while (bp_now(CLOCK_MONOTONIC) < end);
}

static long run_in_thread(int cmd, void *unused)
{
	(void)unused;
	run_for(cmd);
	return 0;
}

static void use_hardware(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self)
{
	int err = bp_load_module(BP_PMU_MODULE_PATH, "counters=4");
	long type;

	if (err == -ENOENT)
		SKIP(return, "needs the module " BP_PMU_MODULE_PATH);
	ASSERT_EQ(0, err);
	self->has_module = true;
	type = bp_read_number(BP_TEST_PMU "/type");
	ASSERT_LE(0, type);
	self->attr = software(0);
	self->attr.type = type;
}

static void use_cgroup(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self)
{
	ASSERT_EQ(0, bp_enable_cgroups());
	mkdir(GROUP, 0700);
	self->pid = open(GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, self->pid);
	ASSERT_EQ(0, bp_write_file(GROUP "/cgroup.procs", "0"));
	self->flags |= PERF_FLAG_PID_CGROUP;
	self->on = cpu;
}

static void leave_cgroup(void)
{
	bp_write_file(ROOT_GROUP "/cgroup.procs", "0");
	rmdir(GROUP);
}

static void start_threads(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self)
{
	for (int i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, bp_start_thread(&self->thread[i], run_in_thread, NULL));
}

FIXTURE_SETUP(burst)
{
	struct rlimit limit = { MANY + 100, MANY + 100 };
	struct perf_event_attr pinned;
	bool for_process = variant->kind == PROCESS || variant->kind == THREADS_OF_PROCESS;

	BP_NEED_ROOT();
	BP_NEED_CONFIG(for_process ? BP_PROCESS : 0);
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	self->attr = flexible(0);
	self->on = -1;
	self->flags = PERF_FLAG_FD_CLOEXEC;
	switch (variant->kind) {
	case THREAD:
		break;
	case THREADS_OF_PROCESS:
		start_threads(_metadata, self);
		self->attr = of_process(0);
		break;
	case PROCESS:
		self->attr = of_process(0);
		break;
	case INHERITED:
		self->attr = inherited(0);
		break;
	case CGROUP:
		use_cgroup(_metadata, self);
		break;
	case CPU:
		self->pid = -1;
		self->on = cpu;
		break;
	case HARDWARE:
		use_hardware(_metadata, self);
		break;
	}
	for (int i = 0; i < variant->guaranteed; i++) {
		pinned = guaranteed(1 + i);
		pinned.pinned = variant->kind == CPU;
		ASSERT_LE(0, bp_open(&pinned, 0, -1));
	}
}

FIXTURE_TEARDOWN(burst)
{
	if (variant->kind == CGROUP)
		leave_cgroup();
	tear_down(_metadata);
	if (self->has_module)
		EXPECT_EQ(0, bp_remove_module(BP_PMU_MODULE_PATH));
}

static void open_events(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self,
			const FIXTURE_VARIANT(burst) *variant)
{
	int leader = -1, group = variant->group ?: 1;

	for (int i = 0; i < variant->nr; i++) {
		leader = i % group ? leader : -1;
		self->fd[i] = bp_open_group(&self->attr, self->pid, self->on, leader, self->flags);
		ASSERT_LE(0, self->fd[i]);
		leader = i % group ? leader : self->fd[i];
	}
}

static void go_on_in_bursts(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self,
			    const FIXTURE_VARIANT(burst) *variant)
{
	for (int i = 0; i < variant->bursts; i++) {
		int us = i % 2 && variant->other_us ? variant->other_us : variant->burst_us;

		if (self->thread[0].pid) {
			EXPECT_EQ(0, bp_do(&self->thread[i % NR_THREADS], us));
		} else {
			run_for(us);
		}
		usleep(variant->sleep_us);
	}
}

/* The average and the minimum of the part of the time for which an event had a register */
static void shares(struct __test_metadata *_metadata, FIXTURE_DATA(burst) *self, int nr,
		   double *even, double *least)
{
	struct bp_reading r;
	double share;

	*even = 0;
	*least = 1;
	for (int i = 0; i < nr; i++) {
		read_event(_metadata, self->fd[i], &r);
		ASSERT_LT(0ULL, r.enabled);
		share = (double)r.running / r.enabled;
		*even += share / nr;
		*least = share < *least ? share : *least;
	}
}

TEST_F(burst, each_event_gets_half_of_an_even_share)
{
	int group = variant->group ?: 1, left = BP_SLOTS - variant->guaranteed;
	double even, least;

	open_events(_metadata, self, variant);
	/* As in a server: the threads are created after the events. */
	if (variant->kind == INHERITED)
		start_threads(_metadata, self);
	go_on_in_bursts(_metadata, self, variant);
	shares(_metadata, self, variant->nr, &even, &least);
	TH_LOG("%.2f %% on average, at least %.2f %%", 100 * even, 100 * least);
	EXPECT_LE(even, 2 * least);
	/* No register is unused. */
	EXPECT_LE(0.9 * (left / group * group) / variant->nr, even);
	for (int i = 0; i < NR_THREADS && self->thread[i].pid; i++)
		EXPECT_EQ(0, bp_stop(&self->thread[i]));
}

TEST_HARNESS_MAIN
