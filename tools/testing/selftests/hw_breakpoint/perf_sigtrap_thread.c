// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: threads.
 *
 * The rule: the thread that made a hit gets the signal, with the attributes that the
 * event had at that time, while other threads change or close the event.
 *
 * Not built as ia32 program: the C library of ia32 waits with a futex() with 32-bit
 * times, which a kernel need not have.
 */
#include "sigtrap.h"

TEST_F(trap, event_of_another_thread_signals_that_thread)
{
	struct bp_worker w;

	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)SYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		EXPECT_LE(0, bp_open(&self->attr, w.pid, -1));
	}
	hit_words();
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(W_HITS, bp_do(&w, W_HIT));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

/* The blocked signals of the thread matter, not those of other threads. */
TEST_F(trap, thread_that_blocks_keeps_its_own)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)ASYNC));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_FALSE(is_pending());
	block();
	EXPECT_EQ(-EAGAIN, take_pending(NULL));
	unblock();
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(trap, new_thread_has_nothing_due)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
	EXPECT_EQ(0, bp_do(&w, W_PENDING));
	EXPECT_EQ(0, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, thread_that_ends_drops_due_hits)
{
	struct bp_worker w;

	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
		for (int k = 0; k < W_HITS; k++) {
			self->attr = word_attr(k);
			EXPECT_LE(0, bp_open(&self->attr, w.pid, -1));
		}
		EXPECT_EQ(0, bp_do(&w, W_BLOCK));
		EXPECT_EQ(0, bp_do(&w, W_HIT));
		EXPECT_EQ(0, bp_stop(&w));
		EXPECT_FALSE(is_pending());
		syscall(__NR_close_range, 3, ~0U, 0);
	}
	EXPECT_EQ(0, nr_seen);
}

/* inherit_thread applies to threads that are created later, not to existing ones. */
TEST_F(trap, inherit_thread_watches_the_process)
{
	struct bp_worker before, after[3], second;
	pid_t pid;

	ASSERT_EQ(0, bp_start_thread(&before, worker, (void *)SYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		self->attr.inherit = 1;
		self->attr.inherit_thread = 1;
		self->fd = bp_open(&self->attr, 0, -1);
		ASSERT_GE(self->fd, 0);
	}
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, bp_start_thread(&after[i], worker, (void *)SYNC));
	EXPECT_EQ(0, bp_do(&before, W_HIT));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(W_HITS, bp_do(&after[i], W_HIT));
		EXPECT_EQ(1, bp_do(&after[i], W_CHECK));
	}
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));

	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		forget_seen();
		hit_words();
		_exit(nr_seen);
	}
	EXPECT_EQ(0, bp_wait(pid));
	ASSERT_EQ(0, bp_start_thread(&second, worker, (void *)SYNC));
	EXPECT_EQ(W_HITS, bp_do(&second, W_HIT));
	EXPECT_EQ(1, bp_do(&second, W_CHECK));
	EXPECT_EQ(0, bp_stop(&second));
	EXPECT_EQ(5, bp_hits(self->fd).count);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_stop(&after[i]));
	EXPECT_EQ(0, bp_stop(&before));
}

/* Hits before the change have the old attributes, hits after it the new ones. */
TEST_F(trap, queued_hits_keep_attributes_of_their_time_if_another_thread_modifies)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)ASYNC));
	self->attr = word_attr(0);
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(1, bp_do(&w, W_HIT));
	EXPECT_EQ(0, bp_do(&w, W_FORGET));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		/* One of the three stores is a hit. */
		EXPECT_EQ(0, bp_do(&w, W_HIT));
	}
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, bp_stop(&w));
}

struct mover {
	volatile int stop;
	int wrong;
	int extra;
	volatile long hits;
	volatile long stores;
};

/* Each store to a word gives at most one signal, with the address of that word. */
static long store_all_the_time(int cmd, void *arg)
{
	struct mover *m = arg;

	for (long i = 0; !m->stop; i++) {
		int w = i % 2, before = nr_seen, came;

		bp_store(word(w), 1);
		came = nr_seen - before;
		m->extra += came > 1;
		if (came)
			m->wrong += !was_seen(before, word(w), DATA(w), SYNC);
		m->hits += came;
		m->stores++;
		if (i % 16 == 0)
			bp_pause();
	}
	return 0;
}

/* Returns when the thread has stored to both words since the call. */
static void wait_for_stores(const struct mover *m)
{
	long before = m->stores;

	/* The first store may have been made before the call. */
	while (m->stores < before + 3)
		sched_yield();
}

TEST_F(trap, signals_stay_right_while_another_thread_modifies)
{
	struct mover m = { };
	struct bp_worker w;
	__u64 start;
	int cmd = 0;

	ASSERT_EQ(0, bp_start_thread(&w, store_all_the_time, &m));
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(sizeof(cmd), write(w.cmd[1], &cmd, sizeof(cmd)));
	start = bp_now(CLOCK_MONOTONIC);
	for (int i = 0; i < TIMES(1000) ||
			(m.hits < TIMES(100) && bp_has_patience(start)); i++) {
		self->attr = word_attr(i % 2);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		if (i % 8 == 0)
			sched_yield();
	}
	m.stop = 1;
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, m.wrong);
	EXPECT_EQ(0, m.extra);
	EXPECT_LE(TIMES(100), m.hits);
	EXPECT_EQ(m.hits, bp_hits(self->fd).count);
}

/*
 * In one of this number of rounds the event stays enabled until the thread has hit it. The
 * number is odd, so that these events are of both words.
 */
#define ROUNDS_PER_HIT		9

/*
 * Events are opened and closed while the task hits them: each hit gives at most one
 * signal, and a closed event gives none.
 */
TEST_F(trap, signals_stay_right_while_another_thread_closes)
{
	struct mover m = { };
	struct bp_worker w;
	int cmd = 0;
	long hits;

	ASSERT_EQ(0, bp_start_thread(&w, store_all_the_time, &m));
	ASSERT_EQ(sizeof(cmd), write(w.cmd[1], &cmd, sizeof(cmd)));
	wait_for_stores(&m);
	for (int i = 0; i < TIMES(300); i++) {
		self->attr = word_attr(i % 2);
		self->fd = bp_open(&self->attr, w.pid, -1);
		ASSERT_GE(self->fd, 0);
		if (i % ROUNDS_PER_HIT == 0)
			wait_for_stores(&m);
		else if (i % 4 == 0)
			sched_yield();
		ASSERT_EQ(0, bp_disable(self->fd));
		ASSERT_EQ(0, bp_enable(self->fd));
		close(self->fd);
	}
	wait_for_stores(&m);
	hits = m.hits;
	wait_for_stores(&m);
	EXPECT_EQ(hits, m.hits);
	m.stop = 1;
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, m.wrong);
	EXPECT_EQ(0, m.extra);
	EXPECT_LE(TIMES(300) / ROUNDS_PER_HIT, m.hits);
}

struct sender {
	volatile int stop;
	pid_t to;
};

static long send_all_the_time(int cmd, void *arg)
{
	struct sender *s = arg;

	while (!s->stop)
		syscall(SYS_tgkill, getpid(), s->to, SIGTRAP);
	return 0;
}

/* The SIGTRAP of the other thread may be pending, but not delivered yet. */
TEST_F(trap, each_hit_signals_while_another_thread_sends_signals)
{
	struct sender s = { .to = gettid() };
	int cmd = 0, missed = 0;
	struct bp_worker w;

	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_start_thread(&w, send_all_the_time, &s));
	ASSERT_EQ(sizeof(cmd), write(w.cmd[1], &cmd, sizeof(cmd)));
	for (int i = 0; i < bp_rounds(TIMES(20000)); i++) {
		forget_seen();
		bp_store(word(0), 1);
		missed += nr_seen != 1;
	}
	s.stop = 1;
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, missed);
}

static long lap_worker(int cmd, void *arg)
{
	return run_laps(cmd);
}

TEST_F(trap, each_thread_of_an_alternating_family_signals)
{
	struct bp_worker w[MEMBERS];
	int fd[2];
	long err;

	ASSERT_EQ(0, prepare_laps(_metadata, fd));
	for (int i = 1; i < MEMBERS; i++) {
		ASSERT_EQ(0, bp_start_thread(&w[i], lap_worker, NULL));
		ASSERT_EQ(sizeof(i), write(w[i].cmd[1], &i, sizeof(i)));
	}
	EXPECT_EQ(0, run_laps(0));
	for (int i = 1; i < MEMBERS; i++) {
		EXPECT_EQ(sizeof(err), read(w[i].ans[0], &err, sizeof(err)));
		EXPECT_EQ(0, err);
		EXPECT_EQ(0, bp_stop(&w[i]));
	}
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(MEMBERS * LAPS, bp_hits(fd[i]).count);
}

static long exec_in_thread(int cmd, void *arg)
{
	block();
	if (watch_words())
		return 1;
	hit_words();
	return exec_self("clean");
}

static int exec_by_a_thread(void *arg)
{
	struct bp_worker w;

	/* The leader has a hit whose signal is blocked, too. */
	block();
	CHECK(watch(3) >= 0);
	bp_store_times(word(3), 1, 5);
	CHECK(!bp_start_thread(&w, exec_in_thread, NULL));
	bp_do(&w, 0);
	return 1;
}

TEST_F(trap, exec_by_a_thread_drops_due_hits)
{
	EXPECT_EQ(0, bp_in_child(exec_by_a_thread, NULL));
}

TEST_HARNESS_MAIN
