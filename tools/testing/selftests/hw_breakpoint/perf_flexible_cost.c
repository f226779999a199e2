// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: the cost of thousands of them.
 *
 * The rule: a task with thousands of flexible breakpoints runs as fast as one without,
 * and a context switch costs less than with as many software events. With 16,000 of them
 * a rotation costs no more than a certain number of instructions, or 2 % of the time.
 */
#include <sys/resource.h>

#include "flexible.h"

FLEXIBLE_FIXTURE(flexible)

#define MANY		3000

FIXTURE(many)
{
	struct events few;
	int fd[MANY];
	int nr;
	int all;
};

FIXTURE_VARIANT(many)
{
	/*
	 * Each group is a breakpoint, a dummy event, or a dummy event that leads a
	 * breakpoint.
	 */
	bool dummy;
	bool breakpoint;
	/* The breakpoint is disabled. */
	bool disabled;
	/* The breakpoint is for the process. */
	bool process;
	/* Kind of leader of the few breakpoints that are multiplexed beside these */
	bool few_led;
};

FIXTURE_VARIANT_ADD(many, breakpoints) { .breakpoint = true };
FIXTURE_VARIANT_ADD(many, disabled_breakpoints) { .breakpoint = true, .disabled = true };
FIXTURE_VARIANT_ADD(many, breakpoints_of_the_process) { .breakpoint = true, .process = true };
FIXTURE_VARIANT_ADD(many, disabled_breakpoints_of_the_process) {
	.breakpoint = true, .disabled = true, .process = true };
FIXTURE_VARIANT_ADD(many, breakpoints_led_by_dummies) {
	.breakpoint = true, .dummy = true, .few_led = true };
FIXTURE_VARIANT_ADD(many, disabled_breakpoints_led_by_dummies) {
	.breakpoint = true, .dummy = true, .disabled = true, .few_led = true };
FIXTURE_VARIANT_ADD(many, dummies_beside_breakpoints) { .dummy = true, .few_led = true };

FIXTURE_SETUP(many)
{
	struct rlimit limit;

	BP_NEED_CONFIG(variant->process ? BP_PROCESS : 0);
	set_up(_metadata);
	/* Opening an event takes many times as long with lockdep. */
	self->all = access("/proc/lockdep", F_OK) ? MANY : MANY / 4;
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < MANY + 500)
		SKIP(return, "no more than %lu files", (unsigned long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

FIXTURE_TEARDOWN(many)
{
	tear_down(_metadata);
}

static void open_many(struct __test_metadata *_metadata, FIXTURE_DATA(many) *self,
		      const FIXTURE_VARIANT(many) *variant)
{
	struct perf_event_attr attr = variant->process ? of_process(60) : flexible(60);
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	int leader = -1;

	attr.disabled = variant->disabled;
	while (self->nr < self->all) {
		leader = -1;
		if (variant->dummy) {
			leader = bp_open(&sw, 0, -1);
			ASSERT_LE(0, leader);
			self->fd[self->nr++] = leader;
		}
		if (variant->breakpoint && self->nr < self->all) {
			self->fd[self->nr] = bp_open_group(&attr, 0, -1, leader,
							   PERF_FLAG_FD_CLOEXEC);
			ASSERT_LE(0, self->fd[self->nr]);
			self->nr++;
		}
	}
}

static long time_of_work(int rounds, void *unused)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);

	(void)unused;
	for (int i = 0; i < rounds; i++)
		asm volatile("" : : : "memory");
	return bp_now(CLOCK_MONOTONIC) - start;
}

/* Rounds of stores during which some rotations take place */
static int rounds_of_work(void)
{
	int rounds = 500000;
	__u64 least, time;

	do {
		rounds *= 2;
		least = ~0ULL;
		for (int i = 0; i < 8; i++) {
			time = time_of_work(rounds, NULL);
			least = time < least ? time : least;
		}
	} while (least < 4 * INTERVAL_NS);
	return rounds;
}

/*
 * The task with many events and a task without do the same work on the same CPU. They
 * alternate, so that a busy machine slows down both.
 */
TEST_F(many, events_of_one_task_do_not_slow_down_another)
{
	double time, control, all = 0, all_control = 0;
	struct load load = { .nr = 8 };
	int rounds = rounds_of_work();
	struct bp_worker other;
	__u64 start;

	ASSERT_EQ(0, bp_start(&other, time_of_work, NULL));
	for (int i = 0; i < 8; i++) {
		struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
		int leader = variant->few_led ? bp_open(&sw, 0, -1) : -1;

		add(_metadata, &self->few, flexible(i), 0, -1, leader);
	}
	open_many(_metadata, self, variant);
	start = bp_now(CLOCK_MONOTONIC);
	for (int i = 0; i < 10 || (all > 1.15 * all_control &&
				   bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS / 3); i++) {
		time = time_of_work(rounds, NULL);
		control = bp_do(&other, rounds);
		all += time;
		all_control += control;
	}
	EXPECT_LE(all, 1.15 * all_control);
	/* If no group waits before them, the few breakpoints get registers. */
	bp_close(self->fd, self->nr);
	expect_rotation(_metadata, &self->few, &load);
	EXPECT_EQ(0, bp_stop(&other));
}

/* The minimum time of a number of switches to another task and back */
static __u64 time_of_switches(struct bp_worker *other)
{
	__u64 least = ~0ULL, start, time;

	for (int i = 0; i < 30; i++) {
		start = bp_now(CLOCK_MONOTONIC);
		for (int k = 0; k < 20; k++)
			bp_do(other, 0);
		time = bp_now(CLOCK_MONOTONIC) - start;
		least = time < least ? time : least;
	}
	return least;
}

TEST_F(many, cost_a_switch_less_than_software_events)
{
	const FIXTURE_VARIANT(many) software = { .dummy = true };
	struct load load = { };
	struct bp_worker other;
	__u64 least = ~0ULL, time, start, again;

	if (variant->dummy)
		SKIP(return, "these are software events");
	ASSERT_EQ(0, bp_start(&other, worker, &load));
	open_many(_metadata, self, &software);
	time = time_of_switches(&other);
	bp_close(self->fd, self->nr);
	self->nr = 0;
	open_many(_metadata, self, variant);
	start = bp_now(CLOCK_MONOTONIC);
	do {
		again = time_of_switches(&other);
		least = again < least ? again : least;
	} while (2 * least > time && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	EXPECT_LE(2 * least, time);
	bp_close(self->fd, self->nr);
	EXPECT_EQ(0, bp_stop(&other));
}

#define MOST		16000

static void raise_file_limit(struct __test_metadata *_metadata)
{
	struct rlimit limit = { MOST + 500, MOST + 500 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

/*
 * The minimum time of work of the task with many events, in percent more than that of a
 * task without. They alternate on the same CPU until @limit is met or patience is over:
 * on a busy machine few measurements are undisturbed.
 */
static double percent_more(int rounds, struct bp_worker *other, double limit)
{
	double time, control, least = 0, least_control = 0, percent = 0;
	__u64 start = bp_now(CLOCK_MONOTONIC);

	for (int i = 0; i < 10 || (percent > limit &&
				   bp_now(CLOCK_MONOTONIC) - start < 2 * PATIENCE_NS); i++) {
		time = time_of_work(rounds, NULL);
		control = bp_do(other, rounds);
		least = !i || time < least ? time : least;
		least_control = !i || control < least_control ? control : least_control;
		percent = 100 * (least / least_control - 1);
	}
	return percent;
}

/*
 * The clock of an emulated machine counts instructions, so its processor is slow: a rotation
 * may take as long as this many rounds of work. That is 2 % of an interval at 1e9 instructions
 * in 8 s, and more if the clock is faster.
 */
#define ROUNDS_OF_ROTATION	2500

/* The limit of what rotations may cost, in percent */
static double cost_limit(int rounds)
{
	__u64 least = ~0ULL, time;
	double limit;

	for (int i = 0; i < 8; i++) {
		time = time_of_work(rounds, NULL);
		least = time < least ? time : least;
	}
	limit = 100.0 * ROUNDS_OF_ROTATION * least / rounds / INTERVAL_NS;
	return limit > 2 ? limit : 2;
}

/*
 * Each rotation tries to schedule a bounded number of breakpoints. Work takes sixteen
 * rotations or more, so that the minimum is not that of work with few rotations.
 */
static void expect_most_cost_little(struct __test_metadata *_metadata,
				    struct perf_event_attr *attr)
{
	double percent, limit;
	static int fd[MOST];
	struct bp_worker other;
	int rounds;

	BP_NEED_ROOT();
	if (!access("/proc/lockdep", F_OK))
		SKIP(return, "a debug kernel is not measured");
	raise_file_limit(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&other, time_of_work, NULL));
	rounds = 4 * rounds_of_work();
	limit = cost_limit(rounds);
	for (int i = 0; i < MOST; i++) {
		fd[i] = bp_open(attr, 0, -1);
		ASSERT_LE(0, fd[i]);
	}
	percent = percent_more(rounds, &other, limit);
	bp_close(fd, MOST);
	TH_LOG("%.2f of %.2f %%", percent, limit);
	EXPECT_GE(limit, percent);
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(flexible, sixteen_thousand_cost_their_task_little)
{
	struct perf_event_attr attr = flexible(0);

	expect_most_cost_little(_metadata, &attr);
}

/* Each of them has storage for hits. */
TEST_F(flexible, sixteen_thousand_that_queue_signals_cost_their_task_little)
{
	struct perf_event_attr attr = flexible(0);

	BP_NEED_CONFIG(BP_SIGTRAP_QUEUE);
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.config |= BP_SIGTRAP_QUEUE;
	expect_most_cost_little(_metadata, &attr);
}

/* Each of hundreds of breakpoints gets a register. */
TEST_F(flexible, hundreds_all_get_a_register)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	struct load load = { .nr = 12 };
	int leader;

	for (int i = 0; i < 100; i++) {
		ASSERT_LE(0, open_flexible(0, -1));
		leader = bp_open(&sw, 0, -1);
		ASSERT_LE(0, leader);
		if (i % 10)
			continue;
		add(_metadata, &self->e, flexible(i / 10), 0, -1, leader);
	}
	add_group(_metadata, &self->e, flexible, 10, 2, 0, -1);
	ASSERT_TRUE(all_get_a_register(_metadata, &self->e, &load));
}

/*
 * Groups that do not fit beside the guaranteed breakpoints must not keep others from
 * being scheduled.
 */
TEST_F(flexible, many_groups_that_do_not_fit_keep_out_no_others)
{
	struct load load = { .nr = 20 };
	struct events four = { };

	hold(_metadata, 1, 0, -1);
	for (int i = 0; i < 10; i++)
		add_group(_metadata, &four, flexible, 16, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, 0, 5, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
}

TEST_HARNESS_MAIN
