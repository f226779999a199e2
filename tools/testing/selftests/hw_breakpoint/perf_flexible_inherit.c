// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: inheritance.
 *
 * The rule: a child inherits them as flexible breakpoints, read() returns the sum of
 * the counts of parent and children, and each exit releases the claims of the task.
 */
#include "flexible.h"

FLEXIBLE_FIXTURE(flexible)

TEST_F(flexible, child_inherits_flexible_events_as_flexible)
{
	struct load there = { .nr = 8 };
	struct bp_worker child;

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&child, CMD_FREE));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close_events(&self->e);
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&child));
}

/*
 * Parent and child alternate: in each of them, four of eight breakpoints have a
 * register.
 */
TEST_F(flexible, counts_of_a_family_add_up)
{
	struct load here = { .nr = 8 }, load = { .go_on = let_worker };
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct events *e = &self->e;
	struct bp_worker child;
	double stores;

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &here));
	load.worker = &child;
	begin(_metadata, e);
	do {
		go_on(&here);
		go_on(&load);
		look(_metadata, e);
	} while ((enabled(e, 0) < 80 * INTERVAL_NS || served(e) < 8) &&
		 bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	stores = here.rounds + load.rounds;
	EXPECT_TRUE(within(all_counted(e), BP_SLOTS * stores, 5,
			   enabled(e, 0) / INTERVAL_NS)) {
		TH_LOG("%.0f stores to each", stores);
		show(_metadata, e);
	}
	for (int i = 0; i < 8; i++)
		EXPECT_LT(running(e, i), enabled(e, i));
	EXPECT_EQ(8, served(e));
	begin(_metadata, e);
	EXPECT_EQ(0, bp_stop(&child));
	look(_metadata, e);
	EXPECT_EQ(0, all_counted(e));
}

TEST_F(flexible, inherited_events_are_multiplexed_without_the_parent)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_worker };
	struct bp_worker child;

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	load.worker = &child;
	expect_rotation(_metadata, &self->e, &load);
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(flexible, groups_are_inherited_and_stay_whole)
{
	struct load there = { .nr = 6 }, load = { .go_on = let_worker };
	struct events *e = &self->e;
	struct bp_worker child;

	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, e, inherited, 0, 3, 0, -1);
	add_group(_metadata, e, inherited, 3, 3, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	load.worker = &child;
	expect_rotation(_metadata, e, &load);
	go_on_rotations(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, 3);
	expect_whole(_metadata, e, 3, 3);
	expect_in_use(_metadata, e, &load, 3, 3);
	EXPECT_EQ(0, bp_stop(&child));
}

/* A guaranteed breakpoint of a child evicts an inherited one at once. */
TEST_F(flexible, guaranteed_event_of_a_child_misses_no_hit)
{
	struct load there = { .nr = 24 };
	struct events plain = { };
	struct bp_worker child;

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(0, bp_do(&child, 2));
		add_words(_metadata, &plain, guaranteed, 20, 1 + i % 3, child.pid, -1);
		EXPECT_EQ(0, bp_do(&child, 3));
		store_words(0, 8, 1);
		EXPECT_EQ(0, bp_do(&child, 3));
		expect_missed_nothing(_metadata, &plain, 6);
		close_events(&plain);
	}
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(flexible, fork_storm_keeps_the_registers_in_use)
{
	struct load load = { .nr = 8 };
	struct events *e = &self->e;
	const int forks = 60;
	pid_t pid[4];

	add_words(_metadata, e, inherited, 0, 8, 0, -1);
	begin(_metadata, e);
	for (int i = 0; i < forks; i += 4) {
		for (int k = 0; k < 4; k++) {
			pid[k] = bp_fork();
			ASSERT_LE(0, pid[k]);
			if (pid[k])
				continue;
			store_words(0, 8, 6);
			_exit(0);
		}
		go_on(&load);
		for (int k = 0; k < 4; k++)
			EXPECT_EQ(0, bp_wait(pid[k]));
	}
	look(_metadata, e);
	EXPECT_TRUE(within(all_counted(e), BP_SLOTS * (6.0 * forks + load.rounds), 10,
			   enabled(e, 0) / INTERVAL_NS)) {
		show(_metadata, e);
	}
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close_events(e);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

/* Tasks that exit at once, after stores, as threads, and after exec */
static void *store_thread(void *arg)
{
	store_words(0, 8, 2);
	return arg;
}

static void storm_child(int kind)
{
	pthread_t thread;
	pid_t pid;

	switch (kind % 4) {
	case 1:
		store_words(0, 8, 1 + kind % 5);
		break;
	case 2:
		if (!pthread_create(&thread, NULL, store_thread, NULL) && kind % 8 == 2)
			pthread_join(thread, NULL);
		break;
	case 3:
		pid = fork();
		if (pid < 0)
			_exit(1);
		if (pid)
			_exit(waitpid(pid, NULL, 0) == pid ? 0 : 2);
		execl("/proc/self/exe", "perf_flexible", "--store", "1", NULL);
		_exit(3);
	}
	_exit(0);
}

TEST_F(flexible, storm_of_exits_loses_no_register)
{
	pid_t pid[4];
	int status;

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	add_group(_metadata, &self->e, inherited, 8, 3, 0, -1);
	for (int i = 0; i < 64; i += 4) {
		for (int k = 0; k < 4; k++) {
			pid[k] = bp_fork();
			ASSERT_LE(0, pid[k]);
			if (!pid[k])
				storm_child(i + k);
		}
		/* One child is killed. */
		if (i % 8 == 4)
			kill(pid[1], SIGKILL);
		for (int k = 0; k < 4; k++) {
			status = bp_wait(pid[k]);
			EXPECT_TRUE(!status || (i % 8 == 4 && k == 1 && status == 256 + SIGKILL));
		}
	}
	look(_metadata, &self->e);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	for (int i = 0; !geteuid() && i < cpus.nr; i++)
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[i]));
}

/* perf may swap the contexts of parent and child, which run on one CPU. */
TEST_F(flexible, family_that_shares_a_cpu_keeps_its_claims)
{
	struct load load = { .nr = 8 };
	struct bp_worker w[3];

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, bp_start(&w[i], worker, &load));
	for (int i = 0; i < 60; i++) {
		EXPECT_EQ(0, bp_do(&w[i % 3], 1));
		if (i % 10 == 9)
			EXPECT_EQ(BP_SLOTS - 1, bp_do(&w[i % 3], CMD_FREE));
	}
	look(_metadata, &self->e);
	EXPECT_TRUE(within(all_counted(&self->e), 60 * BP_SLOTS, 10,
			   enabled(&self->e, 0) / INTERVAL_NS)) {
		show(_metadata, &self->e);
	}
	EXPECT_EQ(0, bp_stop(&w[1]));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&w[0], CMD_FREE));
	close_events(&self->e);
	EXPECT_EQ(BP_SLOTS, bp_do(&w[0], CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_do(&w[2], CMD_FREE));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[2]));
}

TEST_HARNESS_MAIN
