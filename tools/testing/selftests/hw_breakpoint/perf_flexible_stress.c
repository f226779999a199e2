// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: CPU hotplug and stress.
 *
 * The rule: multiplexing continues while CPUs go offline and come back, and guaranteed
 * breakpoints count exactly while flexible ones are opened and closed.
 */
#include "flexible.h"

FIXTURE(hotplug)
{
	struct events of_task;
	struct events of_cpu;
	struct load load;
	volatile __u64 *stop;
	pid_t pid;
	int cpu;
};

/* Uses the last CPU, with a busy task there. */
FIXTURE_SETUP(hotplug)
{
	BP_NEED_ROOT();
	cpus = bp_online_cpus();
	BP_NEED_CPUS(cpus, 2);
	self->cpu = cpus.cpu[cpus.nr - 1];
	BP_NEED_HOTPLUG(self->cpu);
	set_up(_metadata);
	self->stop = bp_map_shared();
	ASSERT_NE(NULL, self->stop);
	self->load.go_on = let_others;
	self->pid = busy(self->stop, 0, 12);
	ASSERT_LE(0, self->pid);
	ASSERT_EQ(0, bp_pin_task(self->pid, self->cpu));
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu)
		bp_cpu_online(self->cpu, true);
	tear_down(_metadata);
}

TEST_F(hotplug, rotation_goes_on_elsewhere_and_when_the_cpu_is_back)
{
	struct events *of_task = &self->of_task, *of_cpu = &self->of_cpu;

	add_words(_metadata, of_task, flexible, 0, 6, self->pid, -1);
	for (int round = 0; round < 3; round++) {
		add_words(_metadata, of_cpu, flexible, 6, 6, -1, self->cpu);
		ASSERT_TRUE(all_get_a_register(_metadata, of_task, &self->load));
		ASSERT_TRUE(all_get_a_register(_metadata, of_cpu, &self->load));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(-ENODEV, open_flexible(-1, self->cpu));
		ASSERT_TRUE(all_get_a_register(_metadata, of_task, &self->load));
		look(_metadata, of_cpu);
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		look(_metadata, of_cpu);
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpu));
		ASSERT_EQ(0, bp_pin_task(self->pid, self->cpu));
		ASSERT_TRUE(all_get_a_register(_metadata, of_task, &self->load));
		ASSERT_TRUE(all_get_a_register(_metadata, of_cpu, &self->load));
		close_events(of_cpu);
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpu));
	}
	close_events(of_task);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, events_that_are_closed_meanwhile_give_the_register_back)
{
	add_words(_metadata, &self->of_task, flexible, 0, 6, self->pid, -1);
	add_words(_metadata, &self->of_cpu, flexible, 6, 6, -1, self->cpu);
	ASSERT_TRUE(all_get_a_register(_metadata, &self->of_task, &self->load));
	ASSERT_TRUE(all_get_a_register(_metadata, &self->of_cpu, &self->load));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	close_events(&self->of_cpu);
	close_events(&self->of_task);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
	ASSERT_EQ(0, bp_pin_task(self->pid, self->cpu));
	add_words(_metadata, &self->of_cpu, flexible, 6, 6, -1, self->cpu);
	add_words(_metadata, &self->of_task, flexible, 0, 6, self->pid, -1);
	ASSERT_TRUE(all_get_a_register(_metadata, &self->of_cpu, &self->load));
	ASSERT_TRUE(all_get_a_register(_metadata, &self->of_task, &self->load));
}

/*
 * Events of a task that are bound to the CPU have no register while it is offline, and
 * get one again afterwards.
 */
TEST_F(hotplug, events_of_a_task_bound_to_the_cpu_wait_for_it)
{
	struct events *e = &self->of_task;

	add_words(_metadata, e, flexible, 0, 6, self->pid, self->cpu);
	for (int round = 0; round < 2; round++) {
		ASSERT_TRUE(all_get_a_register(_metadata, e, &self->load));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		begin(_metadata, e);
		for (int i = 0; i < 10; i++)
			let_others(&self->load);
		look(_metadata, e);
		EXPECT_EQ(0, all_counted(e));
		EXPECT_EQ(0, all_running(e));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		ASSERT_EQ(0, bp_pin_task(self->pid, self->cpu));
	}
	ASSERT_TRUE(all_get_a_register(_metadata, e, &self->load));
}

static int open_close_until(volatile __u64 *stop)
{
	struct events e = { };

	while (!*stop) {
		int plain;

		for (int i = 0; i < 6; i++) {
			struct perf_event_attr attr = flexible(i);

			e.fd[i] = bp_open(&attr, 0, -1);
			if (e.fd[i] < 0)
				return -e.fd[i];
		}
		store_words(0, 6, 2);
		plain = open_guaranteed(0, -1);
		if (plain < 0)
			return -plain;
		close(plain);
		bp_close(e.fd, 6);
	}
	return 0;
}

TEST_F(hotplug, cpu_comes_and_goes_while_tasks_open_and_close)
{
	pid_t pid[3];

	for (int i = 0; i < 3; i++) {
		pid[i] = bp_fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i])
			_exit(open_close_until(self->stop));
	}
	add_words(_metadata, &self->of_task, inherited, 0, 6, self->pid, -1);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(0, bp_cpu_online(self->cpu, true));
		EXPECT_EQ(0, bp_pin_task(pid[i % 3], self->cpu));
		EXPECT_EQ(0, bp_pin_task(self->pid, self->cpu));
	}
	ASSERT_TRUE(all_get_a_register(_metadata, &self->of_task, &self->load));
	*self->stop = 1;
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
	EXPECT_EQ(0, bp_wait(self->pid));
}

/* ======================================================================= stress */

#define ROUNDS	bp_rounds(40)

/*
 * Sixteen flexible breakpoints, and guaranteed ones that are opened, count exactly, and
 * are closed
 */
static int count_beside_flexible(int seed)
{
	struct perf_event_attr attr;
	struct bp_reading r;
	int fd[3];

	for (int i = 0; i < 16; i++) {
		attr = flexible(i);
		if (bp_open(&attr, 0, -1) < 0)
			return 254;
	}
	for (int round = 0; round < ROUNDS; round++) {
		int nr = 1 + (round + seed) % 3;

		for (int i = 0; i < nr; i++) {
			attr = guaranteed(20 + i);
			fd[i] = bp_open(&attr, 0, -1);
			if (fd[i] < 0)
				return -fd[i];
		}
		for (int i = 0; i < 3; i++) {
			store_words(0, 16, 1);
			store_words(20, nr, 2);
		}
		for (int i = 0; i < nr; i++) {
			if (!bp_read(fd[i], &r))
				return 253;
			if (r.count != 6)
				return 200 + r.count % 50;
			if (r.running != r.enabled)
				return 252;
		}
		bp_close(fd, nr);
	}
	return 0;
}

FIXTURE(stress)
{
	struct events e;
	pid_t pid[6];
	int nr;
};

FIXTURE_SETUP(stress)
{
	set_up(_metadata);
}

FIXTURE_TEARDOWN(stress)
{
	tear_down(_metadata);
}

static void spawn(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self)
{
	pid_t pid = bp_fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(count_beside_flexible(self->nr));
	self->pid[self->nr++] = pid;
}

static void expect_all_well(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self)
{
	while (self->nr)
		EXPECT_EQ(0, bp_wait(self->pid[--self->nr]));
}

TEST_F(stress, guaranteed_events_that_come_and_go_count_exactly)
{
	spawn(_metadata, self);
	expect_all_well(_metadata, self);
}

TEST_F(stress, guaranteed_events_of_many_tasks_count_exactly)
{
	for (int i = 0; i < 4; i++)
		spawn(_metadata, self);
	expect_all_well(_metadata, self);
}

/* The CPUs have flexible breakpoints as well, which need a register in each task. */
TEST_F(stress, guaranteed_events_count_exactly_beside_flexible_cpu_events)
{
	BP_NEED_ROOT();
	for (int i = 0; i < cpus.nr && i < 4; i++)
		add_words(_metadata, &self->e, flexible, 0, 8, -1, cpus.cpu[i]);
	for (int i = 0; i < 3; i++)
		spawn(_metadata, self);
	expect_all_well(_metadata, self);
	look(_metadata, &self->e);
}

/* Flexible breakpoints of the CPUs are opened and closed meanwhile. */
TEST_F(stress, guaranteed_events_count_exactly_while_flexible_cpu_events_come_and_go)
{
	int status;

	BP_NEED_ROOT();
	for (int i = 0; i < 3; i++)
		spawn(_metadata, self);
	for (int i = 0; waitpid(self->pid[0], &status, WNOHANG) == 0; i++) {
		add_words(_metadata, &self->e, flexible, i % 16, 6, -1, cpus.cpu[i % cpus.nr]);
		usleep(1000 * (i % 7));
		look(_metadata, &self->e);
		close_events(&self->e);
	}
	bp_forget_child(self->pid[0]);
	EXPECT_EQ(0, status);
	while (self->nr > 1)
		EXPECT_EQ(0, bp_wait(self->pid[--self->nr]));
}

/* Killing a process closes its descriptors while its events are multiplexed. */
TEST_F(stress, processes_that_are_killed_leave_nothing_behind)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			spawn(_metadata, self);
		usleep(5000 * (round + 1));
		while (self->nr) {
			kill(self->pid[--self->nr], SIGKILL);
			bp_wait(self->pid[self->nr]);
		}
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
		for (int i = 0; !geteuid() && i < cpus.nr; i++)
			EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[i]));
	}
}

TEST_HARNESS_MAIN
