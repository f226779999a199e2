// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: hits while SIGTRAP is blocked.
 *
 * The rule: hits made while SIGTRAP is blocked coalesce into the signal of the first
 * one. With bit 2 of attr.config each hit gives a signal, up to a limit, in whatever
 * way the thread receives signals.
 */
#include <sys/signalfd.h>

#include "sigtrap.h"

static void hit_words_in_the_first(int nr)
{
	if (!nr) {
		hit_words();
		bp_store(word(0), 1);
	}
}

/*
 * A hit of word 0, whose handler hits all words. All signals come before the next step.
 */
static void hit_in_handler(struct __test_metadata *_metadata, int signals)
{
	ASSERT_EQ(0, watch_words());
	in_handler = hit_words_in_the_first;
	store_step(word(0));
	EXPECT_EQ(1, steps);
	ASSERT_EQ(signals, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	for (int i = 0; i < signals; i++) {
		EXPECT_EQ(0, seen[i].depth);
		EXPECT_EQ(0, seen[i].step);
		EXPECT_EQ(seen[0].ip, seen[i].ip);
	}
}

/* The first hit in a handler gives a signal, after the handler has returned. */
TEST_F(trap, hits_of_a_handler_coalesce)
{
	hit_in_handler(_metadata, 2);
	expect_word(_metadata, 1, 0, ASYNC);
}

/* With BP_SIGTRAP_QUEUE each hit in a handler gives a signal, in order, after its return. */
TEST_F(trap, queued_hits_of_a_handler_come_after_it)
{
	queue = true;
	hit_in_handler(_metadata, 5);
	expect_word(_metadata, 1, 0, ASYNC);
	expect_word(_metadata, 2, 1, ASYNC);
	expect_word(_metadata, 3, 2, ASYNC);
	expect_word(_metadata, 4, 0, ASYNC);
}

static void hit_the_next_word(int nr)
{
	if (nr < W_HITS - 1)
		store_step(word(nr + 1));
}

/* With SA_NODEFER the signals interrupt the handler, each at its next instruction. */
TEST_F(trap, hits_of_a_handler_that_can_be_interrupted_come_at_once)
{
	ASSERT_EQ(0, watch_words());
	handle_traps(SA_NODEFER);
	in_handler = hit_the_next_word;
	store_step(word(0));
	EXPECT_TRUE(words_were_seen(SYNC));
	EXPECT_EQ(3, steps);
	for (int i = 0; i < nr_seen; i++) {
		EXPECT_EQ(i, seen[i].depth);
		EXPECT_EQ(0, seen[i].step);
	}
}

TEST_F(trap, hits_coalesce_while_blocked)
{
	open_it(_metadata, self);
	ASSERT_LE(0, watch(1));
	block();
	for (int i = 0; i < 20; i++) {
		store_step(word(0));
		store_step(word(1));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(20, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	/* After that, a hit with SIGTRAP unblocked is synchronous again. */
	store_step(word(1));
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 1, 1, SYNC);
	EXPECT_EQ(40, seen[1].step);
}

/* The event keeps its first hit, with the attributes of that time. */
TEST_F(trap, hits_that_coalesce_keep_the_first)
{
	open_it(_metadata, self);
	block();
	bp_store(word(0), 1);
	self->attr = trap_attr(word(1), DATA(1));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(1), 1);
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(trap, queued_hits_wait_while_blocked)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	store_step(word(1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(4, nr_seen);
	for (int i = 0; i < W_HITS; i++)
		expect_word(_metadata, i, i, ASYNC);
	expect_word(_metadata, 3, 1, ASYNC);
	EXPECT_FALSE(is_pending());
	/* After that, a hit with SIGTRAP unblocked is synchronous again. */
	store_step(word(2));
	ASSERT_EQ(5, nr_seen);
	expect_word(_metadata, 4, 2, SYNC);
	EXPECT_EQ(1, seen[4].step);
}

TEST_F(trap, queued_hits_of_one_event_wait_while_blocked)
{
	self->attr.config = BP_SIGTRAP_QUEUE;
	open_it(_metadata, self);
	block();
	for (int i = 0; i < 20; i++)
		store_step(word(0));
	unblock();
	ASSERT_EQ(20, nr_seen);
	for (int i = 0; i < 20; i++)
		expect_word(_metadata, i, 0, ASYNC);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

/* The first hits are kept, the others are counted as lost; the task is not killed. */
static void overflow_queue(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self,
			   int hits)
{
	struct bp_hits before = bp_hits(self->fd), after;
	int kept;

	forget_seen();
	block();
	for (int i = 0; i < hits; i++) {
		self->attr.sig_data = DATA(i);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		store_step(word(0));
	}
	EXPECT_EQ(0, nr_seen);
	unblock();
	kept = nr_seen;
	after = bp_hits(self->fd);
	EXPECT_EQ(hits, after.count - before.count);
	EXPECT_EQ(hits - kept, after.lost - before.lost);
	if (hits < KEPT_MIN) {
		EXPECT_EQ(hits, kept);
	} else {
		EXPECT_LE(KEPT_MIN, kept);
		EXPECT_GE(KEPT_MAX, kept);
	}
	for (int i = 0; i < kept; i++)
		expect_seen(_metadata, i, word(0), DATA(i), ASYNC);
}

TEST_F(trap, queue_is_bounded)
{
	self->attr.config = BP_SIGTRAP_QUEUE;
	open_it(_metadata, self);
	overflow_queue(_metadata, self, KEPT_MIN);
	overflow_queue(_metadata, self, 100);
	overflow_queue(_metadata, self, 7);
	overflow_queue(_metadata, self, 200);
	block();
	EXPECT_FALSE(is_pending());
	unblock();
}

/* Each event has a queue of its own, and counts its own lost hits. */
TEST_F(trap, lost_hits_are_counted_in_their_event)
{
	int other;

	self->attr.config = BP_SIGTRAP_QUEUE;
	queue = true;
	other = watch(1);
	ASSERT_GE(other, 0);
	open_it(_metadata, self);
	block();
	bp_store_times(word(0), 1, KEPT_MAX + 10);
	bp_store_times(word(1), 1, 10);
	unblock();
	EXPECT_EQ(0, bp_hits(other).lost);
	EXPECT_LE(10, bp_hits(self->fd).lost);
	EXPECT_GE(11, bp_hits(self->fd).lost);
	ASSERT_EQ(nr_seen, KEPT_MAX + 20 - bp_hits(self->fd).lost);
	for (int i = 0; i < nr_seen; i++)
		expect_word(_metadata, i, i >= nr_seen - 10, ASYNC);
}

/* Flexible events, so that there are more of them than registers */
#define MANY			12

static void open_many(struct __test_metadata *_metadata, int fd[MANY])
{
	for (int i = 0; i < MANY; i++) {
		struct perf_event_attr attr = word_attr(i);

		attr.config |= BP_FLEXIBLE;
		fd[i] = bp_open(&attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
}

/* Until each event has been hit more often than it can store. */
static void fill_all_queues(const int fd[MANY])
{
	for (int i = 0; i < MANY; i++) {
		while (bp_hits(fd[i]).count <= 2 * KEPT_MAX)
			bp_store(word(i), 1);
	}
}

static __u64 kept_of(const int fd[MANY])
{
	__u64 kept = 0;

	for (int i = 0; i < MANY; i++) {
		struct bp_hits hits = bp_hits(fd[i]);

		kept += hits.count - hits.lost;
	}

	return kept;
}

/*
 * The events of a thread have a limit together, too. Hits count until their signals
 * are sent, or until they are dropped because the event is disabled or closed.
 */
TEST_F(trap, queues_of_a_thread_are_bounded)
{
	enum { SEND, DISABLE, CLOSE, SEND_AGAIN, ROUNDS };
	int fd[MANY];
	bool dropped;

	queue = true;
	for (int round = SEND; round < ROUNDS; round++) {
		forget_seen();
		open_many(_metadata, fd);
		block();
		fill_all_queues(fd);
		EXPECT_EQ(KEPT_OF_THREAD + 1, kept_of(fd));
		if (round == DISABLE) {
			for (int i = 0; i < MANY; i++)
				ASSERT_EQ(0, bp_disable(fd[i]));
		} else if (round == CLOSE) {
			bp_close(fd, MANY);
		}
		EXPECT_EQ(0, nr_seen);
		unblock();
		dropped = round == DISABLE || round == CLOSE;
		EXPECT_EQ(dropped ? 1 : KEPT_OF_THREAD + 1, nr_seen);
		if (round != CLOSE)
			bp_close(fd, MANY);
	}
}

/* --------------------------------------------------- other ways to receive signals */

/* Like any other SIGTRAP of the thread */
TEST_F(trap, hits_coalesce_with_signals_that_others_sent)
{
	open_it(_metadata, self);
	block();
	send_trap_to_self();
	bp_store(word(0), 1);
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_EQ(0, nr_seen);
	block();
	bp_store(word(0), 1);
	send_trap_to_self();
	unblock();
	EXPECT_EQ(1, nr_other);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(trap, queued_hits_do_not_coalesce_with_signals_that_others_sent)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	send_trap_to_self();
	hit_words();
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, hits_do_not_coalesce_with_signals_to_the_process)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	kill(getpid(), SIGTRAP);
	hit_words();
	kill(getpid(), SIGTRAP);
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, sigtimedwait_takes_the_first)
{
	struct trap_info info;

	ASSERT_EQ(0, watch_words());
	block();
	for (int round = 0; round < 5; round++) {
		hit_words();
		ASSERT_EQ(TRAP_PERF, take_pending(&info));
		EXPECT_EQ((unsigned long)word(0), info.addr);
		EXPECT_EQ(DATA(0), info.data);
		EXPECT_EQ(ASYNC, info.flags);
		EXPECT_EQ(-EAGAIN, take_pending(NULL));
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, sigtimedwait_takes_one_after_the_other)
{
	struct trap_info info;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	for (int round = 0; round < 5; round++) {
		hit_words();
		for (int i = 0; i < W_HITS; i++) {
			EXPECT_TRUE(is_pending());
			ASSERT_EQ(TRAP_PERF, take_pending(&info));
			EXPECT_EQ(SIGTRAP, info.signo);
			EXPECT_EQ((unsigned long)word(i), info.addr);
			EXPECT_EQ(DATA(i), info.data);
			EXPECT_EQ(PERF_TYPE_BREAKPOINT, info.type);
			EXPECT_EQ(ASYNC, info.flags);
		}
		EXPECT_EQ(-EAGAIN, take_pending(NULL));
		EXPECT_FALSE(is_pending());
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, signalfd_reads_one_after_the_other)
{
	struct signalfd_siginfo info[W_HITS + 1];
	int fd, nr = 0;
	sigset_t set;
	ssize_t got;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	for (int round = 0; round < 5; round++) {
		hit_words();
		nr = 0;
		while (nr <= W_HITS) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			EXPECT_EQ(nr < W_HITS, poll(&p, 1, 0));
			got = read(fd, info + nr, sizeof(info) - nr * sizeof(info[0]));
			if (got <= 0)
				break;
			nr += got / sizeof(info[0]);
		}
		ASSERT_EQ(W_HITS, nr);
		for (int i = 0; i < nr; i++) {
			EXPECT_EQ(SIGTRAP, info[i].ssi_signo);
			EXPECT_EQ(TRAP_PERF, info[i].ssi_code);
			EXPECT_EQ((unsigned long)word(i), info[i].ssi_addr);
		}
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, sigsuspend_takes_one_at_a_time)
{
	sigset_t none;

	sigemptyset(&none);
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	for (int i = 1; i <= W_HITS; i++) {
		ASSERT_TRUE(is_pending());
		sigsuspend(&none);
		EXPECT_EQ(i, nr_seen);
	}
	EXPECT_FALSE(is_pending());
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_HARNESS_MAIN
