// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: events of a whole process.
 *
 * The rule: flexible events of a process are multiplexed on each CPU where a thread of
 * the process runs, beside those of the CPU and of the thread, and read() returns sums: the
 * hits by all threads, for how long threads ran, and for how long of this the event had
 * a register.
 */
#include "flexible.h"

/* More events than there are registers, on words 0 and up */
#define NR		9
#define NR_PAIRS	6

FIXTURE(process)
{
	struct events e;
	int cpu;
};

FIXTURE_VARIANT(process)
{
	bool one_cpu;
};

FIXTURE_VARIANT_ADD(process, any_cpu) { };
FIXTURE_VARIANT_ADD(process, one_cpu) { .one_cpu = true };

FIXTURE_SETUP(process)
{
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	self->cpu = variant->one_cpu ? cpu : -1;
}

FIXTURE_TEARDOWN(process)
{
	tear_down(_metadata);
}

static struct perf_event_attr guaranteed_of_process(int i)
{
	struct perf_event_attr attr = guaranteed(i);

	attr.config = BP_PROCESS;
	return attr;
}

static int open_of_process(pid_t pid, int on, int i)
{
	struct perf_event_attr attr = of_process(i);

	return bp_open(&attr, pid, on);
}

/* ------------------------------------------------------------------- admission */

TEST_F(process, any_number_is_admitted_if_one_register_is_left)
{
	struct perf_event_attr attr = guaranteed_of_process(0);
	struct load load = { };
	struct bp_worker other;

	ASSERT_EQ(0, bp_start(&other, worker, &load));
	for (int i = 0; i < BP_SLOTS - 1; i++)
		ASSERT_LE(0, bp_open(&attr, 0, self->cpu));
	for (int i = 0; i < 100; i++)
		ASSERT_LE(0, open_of_process(0, self->cpu, i % MAX_EVENTS));
	EXPECT_EQ(-ENOSPC, bp_open(&attr, 0, self->cpu));
	EXPECT_EQ(0, bp_free_slots(0, self->cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(other.pid, self->cpu));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(process, flexible_is_refused_if_a_thread_has_four_guaranteed)
{
	struct load load = { };
	struct bp_worker thread;
	int fd[BP_SLOTS];

	ASSERT_EQ(0, bp_start_thread(&thread, worker, &load));
	ASSERT_EQ(BP_SLOTS, bp_fill(thread.pid, cpu, fd));
	EXPECT_EQ(-ENOSPC, open_of_process(0, self->cpu, 0));
	close(fd[2]);
	EXPECT_LE(0, open_of_process(0, self->cpu, 0));
	EXPECT_EQ(-ENOSPC, open_guaranteed(thread.pid, cpu));
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(process, groups_do_not_mix_and_are_no_larger_than_the_registers)
{
	struct perf_event_attr plain = guaranteed_of_process(1), more = of_process(BP_SLOTS);

	add_group(_metadata, &self->e, of_process, 0, BP_SLOTS, 0, self->cpu);
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, self->cpu, self->e.fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, self->cpu, self->e.fd[0], 0));
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
}

/* ---------------------------------------------------------------- multiplexing */

TEST_F(process, as_many_as_there_are_registers_miss_nothing)
{
	add_words(_metadata, &self->e, of_process, 0, BP_SLOTS, 0, self->cpu);
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
}

static bool all_have_waited(struct events *e)
{
	for (int i = 0; i < e->nr; i++) {
		if (running(e, i) >= enabled(e, i))
			return false;
	}
	return true;
}

/* Continues until each event had no register for a time since begin(). */
static void expect_all_to_wait(struct __test_metadata *_metadata, struct events *e,
			       struct load *load)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);

	while (!all_have_waited(e) && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS) {
		go_on(load);
		look(_metadata, e);
	}
	EXPECT_TRUE(all_have_waited(e))
		show(_metadata, e);
}

/*
 * Expects that all events were enabled for as long as the first one, which is read before
 * and after the others.
 */
static void expect_enabled_alike(struct __test_metadata *_metadata, struct events *e,
				 struct load *load)
{
	struct bp_reading from, to;

	begin(_metadata, e);
	read_event(_metadata, e->fd[0], &from);
	go_on_for(_metadata, load, e, 20 * INTERVAL_NS);
	look(_metadata, e);
	read_event(_metadata, e->fd[0], &to);
	for (int i = 1; i < e->nr; i++) {
		EXPECT_LE((e->to[0].enabled - from.enabled) * 0.98, enabled(e, i));
		EXPECT_LE(enabled(e, i) * 0.98, to.enabled - e->from[0].enabled);
	}
}

TEST_F(process, more_are_multiplexed)
{
	struct load load = { .nr = NR };

	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	expect_all_to_wait(_metadata, &self->e, &load);
	expect_enabled_alike(_metadata, &self->e, &load);
}

/* Guaranteed breakpoints of the process, of the thread and of the CPU */
TEST_F(process, guaranteed_breakpoints_miss_nothing)
{
	struct load load = { .nr = NR };
	struct events plain = { };

	BP_NEED_ROOT();
	add(_metadata, &plain, guaranteed_of_process(0), 0, self->cpu, -1);
	add_words(_metadata, &self->e, of_process, 3, NR - 3, 0, self->cpu);
	add(_metadata, &plain, guaranteed(1), 0, -1, -1);
	add(_metadata, &plain, guaranteed(2), -1, cpu, -1);
	expect_rotation(_metadata, &self->e, &load);
	begin(_metadata, &plain);
	go_on_rotations(_metadata, &load, &self->e, 40);
	expect_missed_nothing(_metadata, &plain, load.rounds);
	expect_in_use(_metadata, &self->e, &load, 1, 1);
}

/* Registers that guaranteed breakpoints leave are used again. */
TEST_F(process, registers_are_taken_and_used_again)
{
	struct load load = { .nr = NR };
	struct events plain = { };

	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	for (int i = 0; i < 3; i++) {
		add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS - 1, 0, -1);
		expect_rotation(_metadata, &self->e, &load);
		go_on_rotations(_metadata, &load, &self->e, 30);
		expect_in_use(_metadata, &self->e, &load, 1, 1);
		close_events(&plain);
		/* The next rotation uses the registers. */
		go_on_rotations(_metadata, &load, &self->e, 2);
		go_on_rotations(_metadata, &load, &self->e, 30);
		expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	}
}

TEST_F(process, groups_are_multiplexed_as_a_whole)
{
	struct load load = { .nr = NR };

	for (int i = 0; i < 3; i++)
		add_group(_metadata, &self->e, of_process, 3 * i, 3, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	for (int i = 0; i < 3; i++)
		expect_whole(_metadata, &self->e, 3 * i, 3);
	expect_in_use(_metadata, &self->e, &load, 3, 3);
}

/* A switch to the process tries a few groups that do not fit, and then no more. */
TEST_F(process, groups_that_do_not_fit_let_others_pass)
{
	struct load load = { .nr = NR_PAIRS * 2 + 1 };
	struct events pairs = { }, plain = { };

	for (int i = 0; i < NR_PAIRS; i++)
		add_group(_metadata, &pairs, of_process, 2 * i, 2, 0, self->cpu);
	add(_metadata, &self->e, of_process(2 * NR_PAIRS), 0, self->cpu, -1);
	for (int i = 0; i < BP_SLOTS - 1; i++)
		add(_metadata, &plain, guaranteed_of_process(load.nr + i), 0, self->cpu, -1);
	expect_rotation(_metadata, &self->e, &load);
	look(_metadata, &pairs);
	begin(_metadata, &pairs);
	go_on_rotations(_metadata, &load, &pairs, 10);
	EXPECT_EQ(0, all_counted(&pairs));
}

TEST_F(process, members_are_multiplexed_when_their_leader_is_closed)
{
	struct load load = { .nr = NR };
	struct events rest = { };

	for (int i = 0; i < 3; i++)
		add_group(_metadata, &self->e, of_process, 3 * i, 3, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < NR; i++) {
		if (i % 3)
			rest.fd[rest.nr++] = self->e.fd[i];
		else
			close(self->e.fd[i]);
	}
	expect_rotation(_metadata, &rest, &load);
	go_on_rotations(_metadata, &load, &rest, 60);
	expect_in_use(_metadata, &rest, &load, BP_SLOTS, BP_SLOTS);
}

/* ------------------------------------------------------------ threads, processes */

/* Number of CPUs on which the events count */
static int nr_counting;

/* A thread on each CPU, one after the other */
static void let_each(struct load *load)
{
	for (int i = 0; i < cpus.nr; i++)
		bp_do(&load->worker[i], 8);
	load->rounds += 8 * nr_counting;
}

TEST_F(process, threads_on_the_cpus_of_the_event_are_summed)
{
	struct bp_worker thread[BP_MAX_CPUS];
	struct load load = { .nr = NR }, let = { .go_on = let_each, .worker = thread };

	nr_counting = variant->one_cpu ? 1 : cpus.nr;
	for (int i = 0; i < cpus.nr; i++) {
		ASSERT_EQ(0, bp_start_thread(&thread[i], worker, &load));
		ASSERT_EQ(0, bp_pin_task(thread[i].pid, cpus.cpu[i]));
	}
	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &let);
	go_on_rotations(_metadata, &let, &self->e, 60);
	expect_in_use(_metadata, &self->e, &let, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < cpus.nr; i++)
		EXPECT_EQ(0, bp_stop(&thread[i]));
}

static volatile bool over;

static void *store_until_over(void *on)
{
	bp_pin((intptr_t)on);
	while (!over)
		store_words(0, NR, 1);
	return NULL;
}

TEST_F(process, busy_threads_on_all_cpus_get_registers)
{
	struct load load = { .go_on = let_others };
	pthread_t thread[BP_MAX_CPUS];

	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	for (int i = 0; i < cpus.nr; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, store_until_over,
					    (void *)(intptr_t)cpus.cpu[i]));
	expect_rotation(_metadata, &self->e, &load);
	over = true;
	for (int i = 0; i < cpus.nr; i++)
		EXPECT_EQ(0, pthread_join(thread[i], NULL));
}

static void let_other_process(struct load *load)
{
	store_words(load->first, load->nr, 4);
	load->rounds += 4;
	bp_do(load->worker, 4);
}

/*
 * Both processes run on one CPU and store to the same addresses.  Each event counts
 * the hits of its own process.
 */
TEST_F(process, processes_are_multiplexed_apart)
{
	struct load theirs = { .nr = NR };
	struct load load = { .nr = NR, .go_on = let_other_process };
	struct events other = { };
	struct bp_worker child;

	ASSERT_EQ(0, bp_start(&child, worker, &theirs));
	ASSERT_EQ(0, bp_pin_task(child.pid, cpu));
	load.worker = &child;
	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	add_words(_metadata, &other, of_process, 0, NR, child.pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	expect_rotation(_metadata, &other, &load);
	begin(_metadata, &other);
	go_on_rotations(_metadata, &load, &self->e, 100);
	look(_metadata, &other);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	expect_in_use(_metadata, &other, &load, BP_SLOTS, BP_SLOTS);
	EXPECT_EQ(0, bp_stop(&child));
}

/*
 * Times of events that have a register, and of others. The process does not sleep all the
 * time, and its CPU may be slow: its CPU time tells for how long it ran.
 */
TEST_F(process, times_stand_still_while_the_process_sleeps)
{
	struct load load = { .nr = NR };
	__u64 ran;

	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	ran = bp_now(CLOCK_PROCESS_CPUTIME_ID);
	begin(_metadata, &self->e);
	usleep(400000);
	look(_metadata, &self->e);
	ran = bp_now(CLOCK_PROCESS_CPUTIME_ID) - ran;
	for (int i = 0; i < NR; i++)
		EXPECT_GT(ran + 100000000, enabled(&self->e, i));
}

/* ------------------------------------------------------------------ changes */

TEST_F(process, disabled_events_get_no_register_and_cost_no_time)
{
	struct load load = { .nr = NR };
	struct events off = { };

	for (int i = 0; i < 40; i++)
		add_disabled(_metadata, &off, of_process(i), 0, self->cpu);
	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, bp_disable(self->e.fd[i]));
		EXPECT_EQ(0, bp_enable(off.fd[i]));
		self->e.fd[i] = off.fd[i];
		self->e.from[i] = (struct bp_reading){ };
	}
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	begin(_metadata, &off);
	look(_metadata, &off);
	for (int i = 3; i < off.nr; i++) {
		EXPECT_EQ(0, off.to[i].count);
		EXPECT_EQ(0, off.to[i].enabled);
	}
}

/* The process does not run while its events are enabled and disabled. */
TEST_F(process, events_of_a_sleeping_process_are_changed)
{
	struct load theirs = { .nr = 2 * NR }, load = { .go_on = let_worker };
	struct perf_event_attr attr;
	struct bp_worker child;

	ASSERT_EQ(0, bp_start(&child, worker, &theirs));
	ASSERT_EQ(0, bp_pin_task(child.pid, cpu));
	load.worker = &child;
	for (int i = 0; i < NR; i++)
		add_disabled(_metadata, &self->e, of_process(i), child.pid, self->cpu);
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(0, bp_enable(self->e.fd[i]));
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < NR; i++) {
		attr = of_process(NR + i);
		EXPECT_EQ(0, bp_modify(self->e.fd[i], &attr));
	}
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(0, bp_disable(self->e.fd[i]));
	begin(_metadata, &self->e);
	for (int i = 0; i < 100; i++)
		let_worker(&load);
	look(_metadata, &self->e);
	EXPECT_EQ(0, all_counted(&self->e));
	EXPECT_EQ(0, all_enabled(&self->e));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(process, are_moved_while_they_are_multiplexed)
{
	struct load before = { .nr = NR }, after = { .first = NR, .nr = NR };
	struct perf_event_attr attr;

	add_words(_metadata, &self->e, of_process, 0, NR, 0, self->cpu);
	expect_rotation(_metadata, &self->e, &before);
	for (int i = 0; i < NR; i++) {
		attr = of_process(NR + i);
		ASSERT_EQ(0, bp_modify(self->e.fd[i], &attr));
	}
	go_on_rotations(_metadata, &before, &self->e, 20);
	EXPECT_EQ(0, all_counted(&self->e));
	expect_rotation(_metadata, &self->e, &after);
	go_on_rotations(_metadata, &after, &self->e, 60);
	expect_in_use(_metadata, &self->e, &after, BP_SLOTS, BP_SLOTS);
}

/* All overflows that PERF_EVENT_IOC_REFRESH allows come, and no more. */
TEST_F(process, limit_of_overflows_is_exact)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct load load = { .nr = NR };
	struct perf_event_attr attr;

	for (int i = 0; i < NR; i++) {
		attr = of_process(i);
		attr.sample_period = 1;
		add_disabled(_metadata, &self->e, attr, 0, self->cpu);
		ASSERT_EQ(0, bp_ioctl(self->e.fd[i], PERF_EVENT_IOC_REFRESH, 25));
	}
	do {
		go_on(&load);
		look(_metadata, &self->e);
	} while (all_counted(&self->e) < 25 * NR &&
		 bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	store_words(0, NR, 1000);
	look(_metadata, &self->e);
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(25, self->e.to[i].count);
}

/* ------------------------------------------------------------------ CPUs, the end */

TEST_F(process, go_on_when_a_cpu_returns)
{
	struct load load = { .nr = NR };
	int other;

	BP_NEED_ROOT();
	BP_NEED_CPUS(cpus, 2);
	other = cpus.cpu[cpus.nr - 1];
	add_words(_metadata, &self->e, of_process, 0, NR, 0, variant->one_cpu ? other : -1);
	ASSERT_EQ(0, bp_pin(other));
	expect_rotation(_metadata, &self->e, &load);
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_cpu_online(other, false));
	store_words(0, NR, 10);
	ASSERT_EQ(0, bp_cpu_online(other, true));
	ASSERT_EQ(0, bp_pin(other));
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 60);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
}

/* The sums stay, and nothing is left in the lists of the CPU for the next process. */
TEST_F(process, end_with_the_process)
{
	struct load theirs = { .nr = NR }, load = { .go_on = let_worker };
	struct bp_worker child;

	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, bp_start(&child, worker, &theirs));
		ASSERT_EQ(0, bp_pin_task(child.pid, cpu));
		load.worker = &child;
		add_words(_metadata, &self->e, of_process, 0, NR, child.pid, self->cpu);
		expect_rotation(_metadata, &self->e, &load);
		EXPECT_EQ(0, bp_stop(&child));
		begin(_metadata, &self->e);
		store_words(0, NR, 1000);
		look(_metadata, &self->e);
		EXPECT_EQ(0, all_counted(&self->e));
		EXPECT_EQ(0, all_enabled(&self->e));
		for (int k = 0; k < NR; k++)
			EXPECT_LT(0, self->e.to[k].count);
		if (i % 2)
			close_events(&self->e);
		self->e.nr = 0;
	}
}

TEST_HARNESS_MAIN
