// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: enabling, samples, and the time between rotations.
 *
 * The rule: a flexible breakpoint is enabled, sampled and read like any other event,
 * and perf_event_mux_interval_ms in sysfs sets how long it keeps a register.
 */
#include <sys/resource.h>

#include "flexible.h"

FLEXIBLE_FIXTURE(flexible)

TEST_F(flexible, enable_on_exec_starts_flexible_events)
{
	struct perf_event_attr attr;
	pid_t pid;
	int gate;

	pid = start_exec(&gate, 8, 50, 20);
	ASSERT_LE(0, pid);
	for (int i = 0; i < BP_SLOTS; i++) {
		attr = flexible(i);
		attr.disabled = 1;
		attr.enable_on_exec = 1;
		add(_metadata, &self->e, attr, pid, -1, -1);
	}
	ASSERT_EQ(1, write(gate, "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	expect_missed_nothing(_metadata, &self->e, 20);
}

/* If the breakpoint of a group is disabled, the rest of the group needs no register. */
TEST_F(flexible, group_whose_breakpoint_is_disabled_need_not_wait)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct load load = { .nr = 8 };
	int leader[8], group;

	for (int i = 0; i < 8; i++) {
		leader[i] = bp_open(&sw, 0, -1);
		ASSERT_LE(0, leader[i]);
		add(_metadata, &self->e, flexible(i), 0, -1, leader[i]);
	}
	for (int round = 0; round < 2; round++) {
		struct events rest = { .nr = 8 };
		__u64 start = bp_now(CLOCK_MONOTONIC);
		bool all;

		ASSERT_TRUE(all_get_a_register(_metadata, &self->e, &load));
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, bp_disable(self->e.fd[i]));
		memcpy(rest.fd, leader, sizeof(leader));
		/* After some time all of them run all the time. */
		do {
			go_on(&load);
			begin(_metadata, &rest);
			go_on_for(_metadata, &load, &rest, 4 * INTERVAL_NS);
			look(_metadata, &rest);
			all = true;
			for (int i = 0; i < 8; i++)
				all &= running(&rest, i) == enabled(&rest, i);
		} while (!all && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
		EXPECT_TRUE(all)
			show(_metadata, &rest);
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, bp_enable(self->e.fd[i]));
	}
	/* Disabling and enabling a member does not change its place in the rotation. */
	group = self->e.fd[0];
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(0, bp_disable(group));
		store_words(0, 8, 1);
		EXPECT_EQ(0, bp_enable(group));
	}
	expect_rotation(_metadata, &self->e, &load);
}

/*
 * While a group waits, its mapped page is not updated each time the context is
 * scheduled.
 */
TEST_F(flexible, mapped_page_has_no_cap_user_time)
{
	struct perf_event_mmap_page *page[8], *of_guaranteed;
	struct perf_event_attr attr = guaranteed(8);
	struct load load = { .nr = 8 };
	int fd = bp_open(&attr, 0, -1);
	bool shown;

	ASSERT_LE(0, fd);
	of_guaranteed = mmap(NULL, BP_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, of_guaranteed);
	shown = of_guaranteed->cap_user_time;
	munmap(of_guaranteed, BP_PAGE_SIZE);
	close(fd);
	BP_NEED(shown, "the kernel shows its clock in no mapped page");
	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	for (int i = 0; i < 8; i++) {
		page[i] = mmap(NULL, BP_PAGE_SIZE, PROT_READ, MAP_SHARED, self->e.fd[i], 0);
		ASSERT_NE(MAP_FAILED, page[i]);
	}
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, !!page[i]->cap_user_time);
		ASSERT_TRUE(all_get_a_register(_metadata, &self->e, &load));
	}
	for (int i = 0; i < 8; i++)
		munmap(page[i], BP_PAGE_SIZE);
}

/* ================================================== the length of a rotation */

static long switches(void)
{
	struct rusage usage = { };

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/*
 * Two groups use all registers, so the group that counted last is the one that runs. A
 * rotation took place after the last look that saw the other group run.
 *
 * While no other task runs on the CPU only the timer rotates. It may fire late, and then
 * fires in time for the next rotation, but never early: n rotations take at least n - 1
 * intervals. The timer is not always late: at least one interval is not much longer than
 * it should be.
 *
 * A switch to another task rotates the groups, too, after a quarter of an interval at the
 * earliest: so n rotations take at least n - 1 such quarters in any case.
 */
static void expect_intervals(struct __test_metadata *_metadata, struct events *e, int ms)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), interval = ms * 1000000ULL;
	__u64 began = 0, first = 0, alone_since = 0, shortest = ~0ULL;
	int running = 1, rotations = -2, alone = -1, by_timer = 0;
	struct bp_reading last[2], now[2];
	long switched = switches();

	ASSERT_EQ(0, set_interval(ms));
	read_event(_metadata, e->fd[0], &now[0]);
	read_event(_metadata, e->fd[BP_SLOTS], &now[1]);
	while ((by_timer < 10 || shortest > interval + 50000000) &&
	       bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS) {
		memcpy(last, now, sizeof(now));
		bp_store(word(0), 1);
		bp_store(word(BP_SLOTS), 1);
		read_event(_metadata, e->fd[0], &now[0]);
		read_event(_metadata, e->fd[BP_SLOTS], &now[1]);
		if (switched != switches()) {
			switched = switches();
			alone = -1;
		}
		if (now[!running].count == last[!running].count)
			continue;
		running = !running;
		/*
		 * The first interval that is seen may have begun with the previous
		 * setting.
		 */
		if (++rotations == 0)
			first = last[0].enabled;
		else if (rotations > 0 && now[0].enabled - began < shortest)
			shortest = now[0].enabled - began;
		began = last[0].enabled;
		if (rotations < 0)
			continue;
		if (++alone == 0)
			alone_since = last[0].enabled;
		if (alone < 2)
			continue;
		by_timer++;
		EXPECT_LE(0.99 * (alone - 1) * interval, now[0].enabled - alone_since);
	}
	EXPECT_LE(10, by_timer);
	EXPECT_LE(0.24 * (rotations - 1) * interval, now[0].enabled - first);
	EXPECT_GE(interval + 50000000, shortest);
}

/* Each CPU has a rotation timer of its own: a task that moves would see early rotations. */
TEST_F(flexible, interval_in_sysfs_is_the_time_between_rotations)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, 0, -1);
	expect_intervals(_metadata, &self->e, 5);
	expect_intervals(_metadata, &self->e, 80);
	expect_intervals(_metadata, &self->e, 5);
	expect_intervals(_metadata, &self->e, 120);
}

TEST_F(flexible, interval_in_sysfs_applies_to_cpu_events)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, -1, cpu);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, -1, cpu);
	expect_intervals(_metadata, &self->e, 5);
	expect_intervals(_metadata, &self->e, 80);
	expect_intervals(_metadata, &self->e, 5);
	expect_intervals(_metadata, &self->e, 120);
}

/* ===================================================================== sampling */

/*
 * A period continues after the event was evicted: the number of samples depends on the
 * number of hits alone.
 */
TEST_F(flexible, each_period_of_hits_is_a_sample)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), samples[8] = { };
	struct events *e = &self->e;
	struct bp_ring ring[8];
	union bp_record rec;
	int have;

	for (int i = 0; i < 8; i++) {
		struct perf_event_attr attr = flexible(i);

		attr.sample_period = i + 1;
		attr.sample_type = PERF_SAMPLE_ADDR;
		add(_metadata, e, attr, 0, -1, -1);
		ASSERT_EQ(0, bp_ring_map(&ring[i], e->fd[i], 4, PROT_READ | PROT_WRITE));
	}
	do {
		store_words(0, 8, 8);
		look(_metadata, e);
		have = 0;
		for (int i = 0; i < 8; i++) {
			while (bp_ring_next(&ring[i], &rec)) {
				ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
				EXPECT_EQ((unsigned long)word(i), rec.u64[1]);
				samples[i]++;
			}
			have += samples[i] >= 20;
		}
	} while (have < 8 && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	EXPECT_EQ(8, have);
	look(_metadata, e);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(e->to[i].count / (i + 1), samples[i]);
		EXPECT_LT(e->to[i].running, e->to[i].enabled);
		bp_ring_unmap(&ring[i]);
	}
}

/* The times in a sample are those at the hit, when the event was running. */
TEST_F(flexible, sample_carries_times_that_grow)
{
	struct {
		struct perf_event_header header;
		struct bp_reading read;
	} *s;
	struct perf_event_attr attr = flexible(0);
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct load load = { .nr = 6 };
	struct bp_reading last = { };
	union bp_record rec;
	struct bp_ring ring;
	int samples = 0;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	add(_metadata, &self->e, attr, 0, -1, -1);
	ASSERT_EQ(0, bp_ring_map(&ring, self->e.fd[0], 16, PROT_READ | PROT_WRITE));
	add_words(_metadata, &self->e, flexible, 1, 5, 0, -1);
	s = (void *)&rec;
	while ((samples < 100 || last.running == last.enabled) &&
	       bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS) {
		go_on(&load);
		while (bp_ring_next(&ring, &rec)) {
			ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
			EXPECT_EQ(last.count + 1, s->read.count);
			EXPECT_LE(last.enabled, s->read.enabled);
			EXPECT_LE(last.running, s->read.running);
			EXPECT_LE(s->read.running, s->read.enabled);
			last = s->read;
			samples++;
		}
	}
	EXPECT_LE(100, samples);
	EXPECT_LT(last.running, last.enabled);
	bp_ring_unmap(&ring);
}

static volatile int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

TEST_F(flexible, overflow_sends_signals_while_the_event_has_a_register)
{
	struct perf_event_attr attr = flexible(0);
	struct load load = { .nr = 6 };
	struct bp_reading r;

	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
	ASSERT_NE(SIG_ERR, signal(SIGIO, on_signal));
	add_words(_metadata, &self->e, flexible, 1, 5, 0, -1);
	attr.sample_period = 1;
	attr.wakeup_events = 1;
	add(_metadata, &self->e, attr, 0, -1, -1);
	ASSERT_EQ(0, fcntl(self->e.fd[5], F_SETFL, O_ASYNC | O_NONBLOCK));
	ASSERT_EQ(0, fcntl(self->e.fd[5], F_SETOWN, getpid()));
	expect_rotation(_metadata, &self->e, &load);
	read_event(_metadata, self->e.fd[5], &r);
	/*
	 * A hit made before the signal of the previous hit is delivered gives no second
	 * signal.
	 */
	EXPECT_LT(0, signals);
	EXPECT_GE(r.count, signals);
	signal(SIGIO, SIG_DFL);
}

TEST_HARNESS_MAIN
