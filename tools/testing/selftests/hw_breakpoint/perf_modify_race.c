// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES: changes while the task hits the breakpoint.
 *
 * The rule: no hit is lost or counted twice, and other events count each of their hits.
 *
 * Not built as ia32 program: the C library of ia32 waits by a futex() with 32-bit times,
 * which a kernel need not have.
 */
#include "modify.h"

/* Samples of the event that is changed, counted by address */
struct samples {
	struct bp_ring ring;
	long first;
	long second;
	long other;
};

static void take_samples(struct samples *samples)
{
	union bp_record rec;

	while (bp_ring_next(&samples->ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		if (rec.u64[1] == spot_addr(FIRST_BYTE))
			samples->first++;
		else if (rec.u64[1] == spot_addr(SECOND_BYTE))
			samples->second++;
		else
			samples->other++;
	}
}

/*
 * Breakpoints of the thread that stores, which another thread changes repeatedly,
 * usually from another CPU, or else when the first thread is preempted
 */
struct storm {
	int fd;
	struct perf_event_attr attr;
	const int *at;
	int nr;
	bool refused;
	bool toggled;
	long done;
	long wrong;
	/* Time of the first storm of the test */
	__u64 start;
	/* If set, the storm goes on until both addresses, or a wrong one, were sampled. */
	struct samples *samples;
};

static void *storm_thread(void *arg)
{
	struct storm *s = arg;
	int err;

	for (long i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE); i++) {
		struct perf_event_attr attr = s->attr;

		watch(&attr, s->at[i % s->nr]);
		attr.disabled = s->toggled && i % 2;
		if (s->refused && i % 3 == 2) {
			attr.bp_len = 33;
			err = bp_modify(s->fd, &attr) == -EINVAL ? 0 : 1;
		} else {
			err = bp_modify(s->fd, &attr);
		}
		s->wrong += err != 0;
		s->done++;
		/*
		 * Yield after an odd number of changes, so that each variant of the
		 * event is seen on a single CPU, too.
		 */
		if (i % 7 == 0)
			sched_yield();
	}
	return NULL;
}

static bool is_over(struct storm *s, long rounds)
{
	const struct samples *samples = s->samples;

	return rounds >= MANY && __atomic_load_n(&s->done, __ATOMIC_RELAXED) >= MANY &&
	       (!samples || samples->other || (samples->first && samples->second));
}

/*
 * Stores until there were enough stores and changes, or all storms of the test have taken
 * a minute; returns the number of rounds.
 */
static long store_in_storm(struct __test_metadata *_metadata, struct storm *s)
{
	pthread_t thread;
	long rounds = 0;

	if (!s->start)
		s->start = bp_now(CLOCK_MONOTONIC);
	shared->stop = 0;
	ASSERT_EQ(0, pthread_create(&thread, NULL, storm_thread, s));
	while (!is_over(s, rounds) && (rounds % 64 || bp_has_patience(s->start))) {
		hit(FIRST_BYTE, 1);
		hit(SECOND_BYTE, 1);
		for (int i = 0; i < NEIGHBOURS; i++)
			hit(SPOTS + i, 1);
		rounds++;
		pause_cpu();
		if (rounds % 16 == 0)
			sched_yield();
		/* The ring must not become full, however long the changes take. */
		if (s->samples && rounds % 1024 == 0)
			take_samples(s->samples);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, s->wrong);
	EXPECT_LT(0, s->done);
	if (!is_over(s, rounds))
		TH_LOG("no more than %ld rounds and %ld changes in a minute", rounds, s->done);
	return rounds;
}

static void open_neighbours(struct __test_metadata *_metadata, int *neighbour)
{
	for (int i = 0; i < NEIGHBOURS; i++) {
		struct perf_event_attr attr = spot_attr(SPOTS + i);

		neighbour[i] = bp_open(&attr, 0, -1);
		ASSERT_LE(0, neighbour[i]);
	}
}

/* In each of its variants the event is hit by the store. */
TEST_F(attr, store_counts_once_while_events_are_modified)
{
	static const int at[] = { FIRST_BYTE, FIRST_LONG, 5 };
	struct storm s = { .attr = self->attr, .at = at, .nr = 3 };
	int neighbour[NEIGHBOURS];
	long rounds;

	for (int refused = 0; refused < 2; refused++) {
		s.done = 0;
		s.refused = refused;
		s.fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, s.fd);
		open_neighbours(_metadata, neighbour);
		rounds = store_in_storm(_metadata, &s);
		EXPECT_EQ(rounds, count(_metadata, s.fd));
		for (int i = 0; i < NEIGHBOURS; i++)
			EXPECT_EQ(rounds, count(_metadata, neighbour[i]));
		bp_close(neighbour, NEIGHBOURS);
		close(s.fd);
	}
}

TEST_F(attr, other_events_count_all_hits_while_one_is_modified)
{
	static const int at[] = { FIRST_BYTE, FIRST_FUNC, SECOND_BYTE, READ_LONG, 4 };
	struct storm s = { .attr = self->attr, .at = at, .nr = 5, .refused = true };
	int neighbour[NEIGHBOURS];
	long rounds;

	for (int toggled = 0; toggled < 2; toggled++) {
		s.done = 0;
		s.toggled = toggled;
		s.fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, s.fd);
		open_neighbours(_metadata, neighbour);
		rounds = store_in_storm(_metadata, &s);
		for (int i = 0; i < NEIGHBOURS; i++)
			EXPECT_EQ(rounds, count(_metadata, neighbour[i]));
		EXPECT_GE(2 * rounds, count(_metadata, s.fd));
		bp_close(neighbour, NEIGHBOURS);
		close(s.fd);
	}
}

/* Changes of the leader must not affect the siblings. */
TEST_F(attr, siblings_count_all_hits_while_their_leader_is_modified)
{
	static const int at[] = { FIRST_BYTE, FIRST_FUNC, SECOND_BYTE, READ_LONG };
	struct storm s = { .at = at, .nr = 4, .refused = true };
	struct group g;
	long rounds;

	open_group(_metadata, &g, 0);
	s.fd = g.fd[0];
	s.attr = g.attr[0];
	rounds = store_in_storm(_metadata, &s);
	for (int i = 1; i < BP_SLOTS; i++)
		EXPECT_EQ(rounds, count(_metadata, g.fd[i]));
	EXPECT_GE(2 * rounds, count(_metadata, g.fd[0]));
}

/* The event always has one of two addresses: no sample has another one. */
TEST_F(attr, samples_have_the_hit_address_while_events_are_modified)
{
	static const int at[] = { FIRST_BYTE, SECOND_BYTE };
	struct samples samples = { };
	struct storm s = { .at = at, .nr = 2, .samples = &samples };
	long rounds;

	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_ADDR;
	s.attr = self->attr;
	s.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, s.fd);
	ASSERT_EQ(0, bp_ring_map(&samples.ring, s.fd, 512, PROT_READ | PROT_WRITE));
	rounds = store_in_storm(_metadata, &s);
	EXPECT_EQ(0, bp_disable(s.fd));
	take_samples(&samples);
	EXPECT_EQ(0, samples.other);
	EXPECT_EQ(samples.first + samples.second, count(_metadata, s.fd));
	EXPECT_GE(rounds, samples.first);
	EXPECT_GE(rounds, samples.second);
	EXPECT_LT(0, samples.first);
	EXPECT_LT(0, samples.second);
	bp_ring_unmap(&samples.ring);
}

TEST_F(attr, families_count_all_hits_while_they_are_modified)
{
	static const int at[] = { FIRST_BYTE, FIRST_LONG, 5 };
	struct storm s = { .at = at, .nr = 3, .refused = true };
	int cmd = CMD_STORE_BOTH;
	struct bp_worker w[4];
	long result, rounds;

	self->attr.inherit = 1;
	s.attr = self->attr;
	s.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, s.fd);
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, NULL));
		ASSERT_EQ(sizeof(cmd), write(w[i].cmd[1], &cmd, sizeof(cmd)));
	}
	rounds = store_in_storm(_metadata, &s);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(sizeof(result), read(w[i].ans[0], &result, sizeof(result)));
		EXPECT_EQ(0, bp_stop(&w[i]));
	}
	EXPECT_EQ(4 * MANY + rounds, count(_metadata, s.fd));
}

TEST_HARNESS_MAIN
