// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: guaranteed breakpoints evict them.
 *
 * The rule: a guaranteed breakpoint counts from the first instruction after it was
 * opened or enabled, or after its task was scheduled in, whatever events had the
 * registers.
 */
#include "flexible.h"

FIXTURE(at_once)
{
	/* Flexible breakpoints that use all registers */
	struct events flex;
	struct events plain;
	/* Flexible breakpoints of another task */
	struct events more;
	struct load load;
};

FIXTURE_SETUP(at_once)
{
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
}

FIXTURE_TEARDOWN(at_once)
{
	tear_down(_metadata);
}

/* Wait until each of them has had a register: then they use all registers. */
static void wait_full(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self)
{
	ASSERT_TRUE(all_get_a_register(_metadata, &self->flex, &self->load));
}

/* Opens as many as needed to use all registers at each moment. */
static void fill_with_flexible(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
			       int nr, pid_t pid, int on)
{
	self->load.nr = nr;
	add_words(_metadata, &self->flex, flexible, 0, nr, pid, on);
	wait_full(_metadata, self);
}

/*
 * A task that stores to nr words and has guaranteed breakpoints of its own, three of
 * them from word BP_SLOTS on. Flexible breakpoints of the CPU use all registers until
 * the task is scheduled in, and also watch words to which the task stores.
 */
struct next_task {
	int nr;
	void (*open)(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
		     pid_t pid, int leader);
	/* The breakpoints are in a group led by a software event. */
	bool led;
	__u64 config;
};

static int open_leader(__u64 config, pid_t pid)
{
	struct perf_event_attr sw = software(config);

	sw.disabled = 1;
	return bp_open(&sw, pid, -1);
}

static void open_single(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
			pid_t pid, int leader)
{
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS, 3, pid, -1);
}

static void open_group(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
		       pid_t pid, int leader)
{
	add_group(_metadata, &self->plain, guaranteed, BP_SLOTS, 3, pid, -1);
}

static void open_led(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
		     pid_t pid, int leader)
{
	for (int i = 0; i < 3; i++)
		add(_metadata, &self->plain, guaranteed(BP_SLOTS + i), pid, -1, leader);
	EXPECT_EQ(0, bp_enable(leader));
}

static void open_bound_and_pinned(struct __test_metadata *_metadata,
				  FIXTURE_DATA(at_once) *self, pid_t pid, int leader)
{
	struct perf_event_attr pinned = guaranteed(BP_SLOTS + 2);

	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS, 1, pid, cpu);
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS + 1, 1, pid, -1);
	pinned.pinned = 1;
	add(_metadata, &self->plain, pinned, pid, -1, -1);
}

/*
 * perf schedules the task's flexible breakpoints first, so they may use a register that
 * its guaranteed breakpoints need.
 */
static void open_behind_flexible(struct __test_metadata *_metadata,
				 FIXTURE_DATA(at_once) *self, pid_t pid, int leader)
{
	add_words(_metadata, &self->more, flexible, 7, 6, pid, -1);
	open_single(_metadata, self, pid, leader);
}

static void expect_next_task_misses_nothing(struct __test_metadata *_metadata,
					    FIXTURE_DATA(at_once) *self,
					    const struct next_task *row)
{
	struct load there = { .nr = row->nr ? : 7 };
	const int switches = 60;
	struct bp_worker other;
	int leader = -1;

	ASSERT_EQ(0, bp_start(&other, worker, &there));
	if (row->led) {
		leader = open_leader(row->config, other.pid);
		ASSERT_LE(0, leader);
	}
	row->open(_metadata, self, other.pid, leader);
	for (int i = 0; i < switches; i++) {
		wait_full(_metadata, self);
		EXPECT_EQ(0, bp_do(&other, 2));
	}
	expect_missed_nothing(_metadata, &self->plain, 2 * switches);
	look(_metadata, &self->more);
	if (self->more.nr)
		EXPECT_LT(0, all_counted(&self->more));
	EXPECT_EQ(0, bp_stop(&other));
	close_events(&self->plain);
	if (row->led)
		close(leader);
}

/* Executes the rows up to one without a function that opens. */
static void expect_next_tasks_miss_nothing(struct __test_metadata *_metadata,
					   FIXTURE_DATA(at_once) *self,
					   const struct next_task *row)
{
	BP_NEED_ROOT();
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	for (; row->open; row++)
		expect_next_task_misses_nothing(_metadata, self, row);
}

#define NEXT_TASK(name, ...)						\
	TEST_F(at_once, name)						\
	{								\
		static const struct next_task rows[] = { __VA_ARGS__, { 0 } };	\
									\
		expect_next_tasks_miss_nothing(_metadata, self, rows);	\
	}

NEXT_TASK(of_the_next_task_miss_nothing, { .open = open_single })
NEXT_TASK(of_the_next_task_miss_nothing_in_a_group, { .open = open_group })
NEXT_TASK(of_the_next_task_miss_nothing_under_a_software_event,
	{ .open = open_led, .led = true, .config = PERF_COUNT_SW_DUMMY },
	{ .open = open_led, .led = true, .config = PERF_COUNT_SW_CPU_CLOCK },
	{ .open = open_led, .led = true, .config = PERF_COUNT_SW_CONTEXT_SWITCHES })
NEXT_TASK(of_the_next_task_miss_nothing_when_bound_or_pinned,
	{ .open = open_bound_and_pinned })
NEXT_TASK(of_the_next_task_miss_nothing_behind_its_flexible_ones,
	{ .open = open_behind_flexible, .nr = 13 })

/* Both tasks and the CPU have flexible breakpoints, too. */
TEST_F(at_once, guaranteed_of_two_tasks_miss_no_hit_beside_flexible)
{
	struct load there = { .first = 12, .nr = 12 };
	struct events mine = { }, more = { };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &more, flexible, 24, 5, -1, cpu);
	add_words(_metadata, &more, flexible, 0, 6, 0, -1);
	add_words(_metadata, &more, flexible, 12, 6, other.pid, -1);
	add_words(_metadata, &mine, guaranteed, 6, 3, 0, -1);
	add_words(_metadata, &self->plain, guaranteed, 18, 3, other.pid, -1);
	for (int i = 1; i <= 120; i++) {
		store_words(0, 12, 2);
		store_words(24, 5, 1);
		EXPECT_EQ(0, bp_do(&other, 2));
		if (i % 20)
			continue;
		expect_missed_nothing(_metadata, &mine, 2 * i);
		expect_missed_nothing(_metadata, &self->plain, 2 * i);
	}
	look(_metadata, &more);
	EXPECT_EQ(0, bp_stop(&other));
}

/* Breakpoints are of this task, of its CPU, or alternately of both */
enum { OF_TASK, OF_CPU, OF_EITHER };

static void fill_at(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self, int where)
{
	fill_with_flexible(_metadata, self, 8, where == OF_CPU ? -1 : 0,
			   where == OF_CPU ? cpu : -1);
}

/*
 * Guaranteed breakpoints of this task on words from 20 on, which are disabled and
 * enabled while flexible breakpoints use all registers
 */
struct enabled {
	int flexible;
	int rounds;
	int nr;
	bool led;
	/* If set, called instead of the ioctl on the leader or the only event */
	int (*switch_on)(bool on);
};

static int switch_by_prctl(bool on)
{
	return prctl(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
}

static int switch_row(const struct enabled *row, int fd, bool on)
{
	if (row->switch_on)
		return row->switch_on(on);
	return on ? bp_enable(fd) : bp_disable(fd);
}

static void expect_enabled_misses_nothing(struct __test_metadata *_metadata,
					  FIXTURE_DATA(at_once) *self,
					  const struct enabled *row)
{
	int leader = -1, fd;

	if (row->flexible == OF_CPU)
		BP_NEED_ROOT();
	fill_at(_metadata, self, row->flexible);
	if (row->led) {
		leader = open_leader(PERF_COUNT_SW_DUMMY, 0);
		ASSERT_LE(0, leader);
	}
	for (int i = 0; i < row->nr; i++)
		add(_metadata, &self->plain, guaranteed(20 + i), 0, -1, leader);
	fd = row->led ? leader : self->plain.fd[0];
	for (int i = 1; i <= row->rounds; i++) {
		EXPECT_EQ(0, switch_row(row, fd, false));
		store_words(0, 24, 1);
		EXPECT_EQ(0, switch_row(row, fd, true));
		store_words(20, row->nr, 3);
		expect_missed_nothing(_metadata, &self->plain, 3 * i);
		wait_full(_metadata, self);
	}
}

#define ENABLED(name, ...)						\
	TEST_F(at_once, name)						\
	{								\
		static const struct enabled row = { __VA_ARGS__ };	\
									\
		expect_enabled_misses_nothing(_metadata, self, &row);	\
	}

ENABLED(enabled_one_misses_nothing, .nr = 1, .rounds = 30)
ENABLED(enabled_one_misses_nothing_beside_those_of_the_cpu,
	.flexible = OF_CPU, .nr = 1, .rounds = 30)
ENABLED(enabled_group_misses_nothing, .nr = 3, .led = true, .rounds = 30)
ENABLED(those_that_prctl_enables_miss_nothing,
	.nr = 3, .switch_on = switch_by_prctl, .rounds = 20)

/* Guaranteed breakpoints that are opened while flexible breakpoints use all registers */
struct opened {
	int flexible;
	int guaranteed;
	/* The breakpoints are a group of three; otherwise one, two or three single events. */
	bool group;
	int rounds;
};

static void expect_opened_misses_nothing(struct __test_metadata *_metadata,
					 FIXTURE_DATA(at_once) *self,
					 const struct opened *row)
{
	if (row->flexible != OF_TASK || row->guaranteed != OF_TASK)
		BP_NEED_ROOT();
	fill_at(_metadata, self, row->flexible);
	for (int i = 0; i < row->rounds; i++) {
		bool of_cpu = row->guaranteed == OF_CPU ||
			      (row->guaranteed == OF_EITHER && i % 2 == 0);
		int nr = row->group ? 3 : 1 + i % 3;

		for (int k = 0; k < nr; k++)
			add(_metadata, &self->plain, guaranteed(20 + k), of_cpu ? -1 : 0,
			    of_cpu ? cpu : -1, row->group && k ? self->plain.fd[0] : -1);
		store_words(20, nr, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

#define OPENED(name, ...)						\
	TEST_F(at_once, name)						\
	{								\
		static const struct opened row = { __VA_ARGS__ };	\
									\
		expect_opened_misses_nothing(_metadata, self, &row);	\
	}

OPENED(opened_one_misses_nothing, .rounds = 30)
OPENED(opened_one_of_the_cpu_misses_nothing, .guaranteed = OF_CPU, .rounds = 30)
OPENED(opened_one_misses_nothing_beside_those_of_the_cpu,
	.flexible = OF_CPU, .guaranteed = OF_EITHER, .rounds = 30)
OPENED(opened_group_of_three_misses_nothing, .group = true, .rounds = 20)

/*
 * A group of four flexible breakpoints uses all registers: it must be evicted as a
 * whole.
 */
TEST_F(at_once, guaranteed_evicts_a_whole_group)
{
	for (int i = 0; i < 8; i += BP_SLOTS)
		add_group(_metadata, &self->flex, flexible, i, BP_SLOTS, 0, -1);
	self->load.nr = 8;
	for (int i = 0; i < 20; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1, 0, -1);
		begin(_metadata, &self->flex);
		store_words(0, 8, 5);
		store_words(20, 1, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		look(_metadata, &self->flex);
		EXPECT_EQ(0, all_counted(&self->flex));
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

/*
 * Opened from another CPU, for a task that runs there and whose registers are all in
 * use
 */
TEST_F(at_once, guaranteed_for_a_running_task_misses_no_hit)
{
	volatile __u64 *page = bp_map_shared();
	struct load away = { .go_on = let_others };
	pid_t pid;

	BP_NEED_CPUS(cpus, 2);
	ASSERT_NE(NULL, page);
	ASSERT_EQ(0, bp_pin(cpus.cpu[1]));
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		while (!page[0]) {
			store_words(0, 8, 1);
			/*
			 * Stores to the other words when the test requests it, and
			 * reports when it is done.
			 */
			if (page[2] != page[1]) {
				store_words(20, 3, 7);
				page[2] = page[1];
			}
		}
		_exit(0);
	}
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	add_words(_metadata, &self->flex, flexible, 0, 8, pid, -1);
	ASSERT_TRUE(all_get_a_register(_metadata, &self->flex, &away));
	for (int i = 0; i < 15; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1 + i % 3, pid, -1);
		page[1]++;
		while (page[2] != page[1])
			usleep(500);
		look(_metadata, &self->plain);
		for (int k = 0; k < self->plain.nr; k++)
			EXPECT_EQ(7, counted(&self->plain, k));
		close_events(&self->plain);
	}
	ASSERT_TRUE(all_get_a_register(_metadata, &self->flex, &away));
	page[0] = 1;
	EXPECT_EQ(0, bp_wait(pid));
}

TEST_F(at_once, guaranteed_that_exec_enables_miss_no_hit)
{
	struct perf_event_attr attr;
	pid_t pid;
	int gate;

	for (int round = 1; round <= 5; round++) {
		pid = start_exec(&gate, 24, 5, 10 * round);
		ASSERT_LE(0, pid);
		add_words(_metadata, &self->flex, flexible, 0, 8, pid, -1);
		for (int i = 0; i < 3; i++) {
			attr = guaranteed(20 + i);
			attr.disabled = 1;
			attr.enable_on_exec = 1;
			add(_metadata, &self->plain, attr, pid, -1, -1);
		}
		ASSERT_EQ(1, write(gate, "x", 1));
		EXPECT_EQ(0, bp_wait(pid));
		expect_missed_nothing(_metadata, &self->plain, 10 * round);
		look(_metadata, &self->flex);
		EXPECT_LT(0, all_counted(&self->flex));
		close_events(&self->plain);
		close_events(&self->flex);
		close(gate);
	}
}

TEST_HARNESS_MAIN
