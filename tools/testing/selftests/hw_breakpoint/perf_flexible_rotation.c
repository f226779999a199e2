// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: multiplexing.
 *
 * The rule: each flexible breakpoint gets a register after some time, of those that
 * guaranteed breakpoints leave. The times that read() returns tell for how long it had
 * one.
 */
#include "flexible.h"

FIXTURE(rotation)
{
	struct events e;
	pid_t pid;
	int cpu;
};

FIXTURE_VARIANT(rotation)
{
	bool of_cpu;
	bool of_task;
};

FIXTURE_VARIANT_ADD(rotation, of_a_task) { .of_task = true };
FIXTURE_VARIANT_ADD(rotation, of_a_cpu) { .of_cpu = true };
FIXTURE_VARIANT_ADD(rotation, of_a_task_on_a_cpu) { .of_task = true, .of_cpu = true };

FIXTURE_SETUP(rotation)
{
	if (!variant->of_task)
		BP_NEED_ROOT();
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	self->pid = variant->of_task ? 0 : -1;
	self->cpu = variant->of_cpu ? cpu : -1;
}

FIXTURE_TEARDOWN(rotation)
{
	tear_down(_metadata);
}

/* As many breakpoints as there are registers are not multiplexed. */
TEST_F(rotation, first_four_run_all_the_time)
{
	struct load load = { .nr = BP_SLOTS };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	go_on_for(_metadata, &load, &self->e, 10 * INTERVAL_NS);
	expect_missed_nothing(_metadata, &self->e, load.rounds);
}

TEST_F(rotation, five_events_on_four_registers_are_multiplexed)
{
	struct load load = { .nr = 5 };

	add_words(_metadata, &self->e, flexible, 0, 5, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	go_on_rotations(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < 5; i++)
		EXPECT_LT(running(&self->e, i), enabled(&self->e, i));
}

TEST_F(rotation, registers_of_guaranteed_events_are_left_alone)
{
	struct load load = { .nr = 2 };

	hold(_metadata, 3, self->pid, self->cpu);
	add_words(_metadata, &self->e, flexible, 0, 2, self->pid, self->cpu);
	expect_even(_metadata, &load, &self->e);
}

/* When one of five is closed or disabled, the others are not multiplexed any more. */
TEST_F(rotation, rotation_ends_when_there_are_registers_for_all)
{
	struct load load = { .nr = 5 };
	struct events *e = &self->e;

	add_words(_metadata, e, flexible, 0, 5, self->pid, self->cpu);
	expect_rotation(_metadata, e, &load);
	EXPECT_EQ(0, bp_disable(e->fd[4]));
	e->nr = 4;
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
	EXPECT_EQ(0, bp_enable(e->fd[4]));
	e->nr = 5;
	expect_rotation(_metadata, e, &load);
	close(e->fd[4]);
	e->nr = 4;
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
}

/*
 * Returns the number of scaled counts that differ by more than 5 % and one hit for each
 * rotation. When patience is over, a difference of five times the error expected from
 * the unsteadiness of the load is accepted, if this is more.
 */
static int wrong_estimates(struct events *e, struct load *load, bool patient)
{
	int nr = 0;

	for (int i = 0; i < e->nr; i++) {
		double stretches = (double)running(e, i) / STRETCH_NS;
		double noise = 5 * 5 * unsteadiness(&load->steady) / stretches;
		double limit = 0.05 + stretches / counted(e, i);
		double off = (double)counted(e, i) * enabled(e, i) / running(e, i) /
			     load->rounds - 1;

		if (!running(e, i) || !counted(e, i))
			nr++;
		else if (off * off > limit * limit)
			nr += patient || off * off > noise;
	}
	return nr;
}

/*
 * The load stores equally often to each word, so the correct value of each scaled count
 * is known. But a scaled count is an estimate: the machine may have been slow while an
 * event had a register, much slower if others use the machine too. Over many rotations
 * such errors become small, but errors of the scaling do not: continue until all
 * estimates are right at the same time. If this takes too long, accept the error that
 * the measured unsteadiness of the load explains, and for a few events more. If the
 * machine is that unsteady all the time, nothing can be said about single events.
 *
 * The sum of all estimates is right in any case: when the machine is slow, as many
 * events have a register as at any other time.
 */
static void expect_estimates(struct __test_metadata *_metadata, struct events *e, int nr)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), want = 10 * nr * INTERVAL_NS, limit;
	struct load load = { .nr = nr };
	bool patient;

	begin(_metadata, e);
	do {
		go_on_for(_metadata, &load, e, want);
		look(_metadata, e);
		want = enabled(e, 0) + nr * INTERVAL_NS;
		limit = unsteadiness(&load.steady) < 0.5 ? ESTIMATE_NS : PATIENCE_NS;
		patient = bp_now(CLOCK_MONOTONIC) - start < limit;
	} while (patient && wrong_estimates(e, &load, true));

	if (limit == ESTIMATE_NS) {
		EXPECT_GE(patient ? 0 : nr / 8, wrong_estimates(e, &load, patient)) {
			TH_LOG("%llu rounds, unsteadiness %f",
			       (unsigned long long)load.rounds, unsteadiness(&load.steady));
			show(_metadata, e);
		}
	}
	EXPECT_EQ(nr, served(e));
	/*
	 * The number of hits is proportional to the time in a register, and no register
	 * is unused.
	 */
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
	EXPECT_TRUE(within((double)nr * all_running(e) / all_enabled(e), BP_SLOTS, 5, 0)) {
		show(_metadata, e);
	}
}

TEST_F(rotation, scaled_counts_of_sixteen_come_close_to_the_stores)
{
	add_words(_metadata, &self->e, flexible, 0, 16, self->pid, self->cpu);
	expect_estimates(_metadata, &self->e, 16);
}

TEST_F(rotation, scaled_counts_of_sixtyfour_come_close_to_the_stores)
{
	add_words(_metadata, &self->e, flexible, 0, 64, self->pid, self->cpu);
	expect_estimates(_metadata, &self->e, 64);
}

/* At each moment from the first read on, not only on average */
TEST_F(rotation, times_never_add_up_to_more_than_there_are_registers)
{
	struct load load = { .nr = 9 };
	struct bp_reading first;

	add_words(_metadata, &self->e, flexible, 0, 9, self->pid, self->cpu);
	for (int i = 0; i < 100; i++) {
		__u64 sum = 0;

		go_on(&load);
		look(_metadata, &self->e);
		for (int k = 0; k < 9; k++)
			sum += self->e.to[k].running;
		read_event(_metadata, self->e.fd[0], &first);
		EXPECT_LE(sum, BP_SLOTS * first.enabled);
	}
}

TEST_F(rotation, guaranteed_events_leave_fewer_registers)
{
	struct load load = { .nr = 6 };
	struct events *e = &self->e;

	add_words(_metadata, e, flexible, 0, 6, self->pid, self->cpu);
	for (int left = BP_SLOTS - 1; left; left--) {
		struct perf_event_attr attr = guaranteed(20 + left);

		/* A guaranteed breakpoint that is disabled keeps its register. */
		attr.disabled = left & 1;
		ASSERT_LE(0, bp_open(&attr, self->pid, self->cpu));
		expect_rotation(_metadata, e, &load);
		go_on_rotations(_metadata, &load, e, 40);
		expect_in_use(_metadata, e, &load, left, left);
	}
}

TEST_F(rotation, closed_guaranteed_events_free_their_registers)
{
	struct events *e = &self->e, plain = { };
	struct load load = { .nr = BP_SLOTS };

	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS - 1, self->pid, self->cpu);
	add_words(_metadata, e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	expect_rotation(_metadata, e, &load);
	close_events(&plain);
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
}

TEST_F(rotation, disabled_events_take_no_register)
{
	struct events out = { }, *e = &self->e;
	struct load load = { .nr = 12 };

	add_words(_metadata, &out, flexible, 0, 6, self->pid, self->cpu);
	add_words(_metadata, e, flexible, 6, 6, self->pid, self->cpu);
	expect_rotation(_metadata, &out, &load);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0, bp_disable(out.fd[i]));
	begin(_metadata, &out);
	expect_rotation(_metadata, e, &load);
	look(_metadata, &out);
	EXPECT_EQ(0, all_counted(&out));
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(0, enabled(&out, i));
		EXPECT_EQ(0, running(&out, i));
		EXPECT_EQ(0, bp_enable(out.fd[i]));
	}
	expect_rotation(_metadata, &out, &load);
}

TEST_F(rotation, single_waiting_event_gets_a_register_when_enabled)
{
	struct events late = { }, *e = &self->e;
	struct load load = { .nr = 9 };

	add_words(_metadata, e, flexible, 0, 8, self->pid, self->cpu);
	add_disabled(_metadata, &late, flexible(8), self->pid, self->cpu);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_enable(late.fd[0]));
		ASSERT_TRUE(all_get_a_register(_metadata, &late, &load));
		EXPECT_EQ(0, bp_disable(late.fd[0]));
		ASSERT_TRUE(all_get_a_register(_metadata, e, &load));
	}
}

TEST_F(rotation, reset_clears_the_count_and_leaves_the_rotation)
{
	struct load load = { .nr = 6 };

	add_words(_metadata, &self->e, flexible, 0, 6, self->pid, self->cpu);
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(0, bp_ioctl(self->e.fd[i], PERF_EVENT_IOC_RESET, 0));
		read_event(_metadata, self->e.fd[i], &self->e.to[i]);
		EXPECT_EQ(0, self->e.to[i].count);
		self->e.from[i] = (struct bp_reading){ };
	}
	expect_rotation(_metadata, &self->e, &load);
}

FLEXIBLE_FIXTURE(flexible)

static void store_and_execute(struct load *load)
{
	bp_func();
	store_words(load->first, load->nr, 1);
	load->rounds++;
}

TEST_F(flexible, instruction_and_data_breakpoints_are_multiplexed)
{
	struct load load = { .nr = 5, .go_on = store_and_execute };
	struct perf_event_attr x = flexible(0);

	x.bp_type = HW_BREAKPOINT_X;
	x.bp_addr = (unsigned long)bp_func_insn;
	x.bp_len = sizeof(long);
	for (int i = 0; i < 5; i++) {
		add(_metadata, &self->e, x, 0, -1, -1);
		add(_metadata, &self->e, flexible(i), 0, -1, -1);
	}
	expect_rotation(_metadata, &self->e, &load);
}

/* Events of any CPU and events of this CPU are on one rotation list. */
TEST_F(flexible, cpu_bound_and_unbound_events_of_a_task_are_multiplexed)
{
	struct load load = { .nr = 10 };

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, flexible, 0, 5, 0, -1);
	add_words(_metadata, &self->e, flexible, 5, 5, 0, cpu);
	expect_rotation(_metadata, &self->e, &load);
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(flexible, rotation_goes_on_wherever_the_task_is)
{
	struct load load = { .nr = 8 };

	BP_NEED_CPUS(cpus, 2);
	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	for (int i = 0; i < 8; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		ASSERT_TRUE(all_get_a_register(_metadata, &self->e, &load));
	}
}

/* The task moves to another CPU more often than its events are rotated. */
TEST_F(flexible, task_that_moves_all_the_time_gives_all_a_register)
{
	struct load load = { .nr = 8, .go_on = move_often };

	BP_NEED_CPUS(cpus, 2);
	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
}

TEST_F(flexible, task_that_sleeps_often_gives_all_a_register)
{
	struct load load = { .nr = 8, .go_on = sleep_often };

	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	expect_rotation(_metadata, &self->e, &load);
}

/* The events of a task are not enabled while the task sleeps. */
TEST_F(flexible, times_stand_still_while_the_task_sleeps)
{
	struct load there = { .nr = 8 };
	struct events *e = &self->e;
	struct bp_worker other;

	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, e, flexible, 0, 8, other.pid, -1);
	EXPECT_EQ(0, bp_do(&other, 20));
	bp_wait_for_state(other.pid, 'S');
	begin(_metadata, e);
	usleep(5000 * INTERVAL_MS);
	look(_metadata, e);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(0, counted(e, i));
		EXPECT_EQ(0, enabled(e, i));
		EXPECT_EQ(0, running(e, i));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(flexible, guaranteed_events_of_another_task_take_no_register)
{
	struct load load = { .nr = BP_SLOTS }, there = { .first = 20, .nr = BP_SLOTS };
	struct events plain = { };
	struct bp_worker other;

	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS, other.pid, -1);
	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	for (int i = 0; i < 20; i++) {
		go_on(&load);
		EXPECT_EQ(0, bp_do(&other, 5));
	}
	expect_missed_nothing(_metadata, &self->e, load.rounds);
	expect_missed_nothing(_metadata, &plain, 100);
	EXPECT_EQ(0, bp_stop(&other));
}

/* Two tasks on one CPU, each with more breakpoints than there are registers */
TEST_F(flexible, events_of_tasks_that_share_a_cpu_are_multiplexed)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_two };
	struct bp_worker w[2];

	ASSERT_EQ(0, bp_pin(cpu));
	load.worker = w;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, &there));
		add_words(_metadata, &self->e, flexible, 0, 8, w[i].pid, -1);
	}
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

TEST_F(flexible, events_of_each_thread_are_multiplexed)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_two };
	struct bp_worker w[2];

	load.worker = w;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start_thread(&w[i], worker, &there));
		add_words(_metadata, &self->e, flexible, 0, 8, w[i].pid, -1);
	}
	expect_rotation(_metadata, &self->e, &load);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

TEST_F(flexible, cpu_events_run_while_a_task_with_guaranteed_events_sleeps)
{
	struct load load = { .nr = BP_SLOTS }, there = { .first = 20, .nr = BP_SLOTS - 1 };
	struct events *e = &self->e, plain = { };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS - 1, other.pid, -1);
	add_words(_metadata, e, flexible, 0, BP_SLOTS, -1, cpu);
	for (int i = 1; i <= 10; i++) {
		EXPECT_EQ(0, bp_do(&other, 5));
		expect_missed_nothing(_metadata, &plain, 5 * i);
		bp_wait_for_state(other.pid, 'S');
		/*
		 * The events of the CPU get registers again after one interval without
		 * the task.
		 */
		ASSERT_TRUE(all_get_a_register(_metadata, e, &load));
		go_on_rotations(_metadata, &load, e, 3);
		expect_missed_nothing(_metadata, e, load.rounds);
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_HARNESS_MAIN
