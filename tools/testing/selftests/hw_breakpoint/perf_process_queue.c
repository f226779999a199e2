// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process with attr.sigtrap and bit 2 of attr.config.
 *
 * The rule: each hit gives a signal to the thread that made it, with the address and
 * sig_data of the time of the hit. Each thread stores a limited number of hits of each
 * event until their signals can be sent, whatever other threads store; hits that are
 * lost are counted by the event that the user holds.
 */
#include <fcntl.h>
#include <sys/uio.h>

#include "sigtrap.h"

#define THREADS			4

FIXTURE(queue)
{
	struct bp_worker w[THREADS];
	int fd;
};

FIXTURE_SETUP(queue)
{
	struct rlimit no_core = { };

	setrlimit(RLIMIT_CORE, &no_core);
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	queue = true;
	process = true;
	self->fd = watch(0);
	ASSERT_LE(0, self->fd);
	/* The workers store only in the loops below. */
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, bp_start_thread(&self->w[i], worker, (void *)ASYNC));
}

FIXTURE_TEARDOWN(queue)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

static void hit_often(struct bp_worker *w, int hits)
{
	for (int i = 0; i < hits; i++)
		bp_do(w, W_HIT_0);
}

static long signals_of_unblock(struct bp_worker *w)
{
	bp_do(w, W_FORGET);
	return bp_do(w, W_UNBLOCK);
}

/* -------------------------------------------------------------------------- limits */

/* A thread whose queue is full does not reduce the queues of other threads. */
TEST_F(queue, each_thread_stores_its_own_hits)
{
	for (int i = 0; i < THREADS; i++) {
		bp_do(&self->w[i], W_BLOCK);
		hit_often(&self->w[i], KEPT_MAX + 1);
		block();
		bp_store_times(word(0), 1, 2);
		unblock();
		EXPECT_EQ(2 * (i + 1), nr_seen);
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(KEPT_MAX, signals_of_unblock(&self->w[i]));
	EXPECT_EQ(THREADS * (KEPT_MAX + 3), bp_hits(self->fd).count);
	EXPECT_EQ(THREADS, bp_hits(self->fd).lost);
	/* No thread has a hit left. */
	for (int i = 0; i < THREADS; i++) {
		bp_do(&self->w[i], W_FORGET);
		EXPECT_EQ(1, bp_do(&self->w[i], W_HIT_0));
		EXPECT_EQ(0, bp_stop(&self->w[i]));
	}
}

TEST_F(queue, each_event_has_its_own_queue)
{
	int other = watch(1);

	ASSERT_LE(0, other);
	block();
	bp_store_times(word(0), 1, KEPT_MAX + 10);
	bp_store_times(word(1), 1, 10);
	EXPECT_TRUE(is_pending());
	unblock();
	EXPECT_EQ(0, bp_hits(other).lost);
	EXPECT_EQ(10, bp_hits(self->fd).lost);
	ASSERT_EQ(KEPT_MAX + 10, nr_seen);
	for (int i = 0; i < nr_seen; i++)
		expect_word(_metadata, i, i >= nr_seen - 10, ASYNC);
}

#define FLEXIBLE_EVENTS		8

/* A thread stores a limited number of hits, of its events and those of its process. */
TEST_F(queue, thread_stores_a_limited_number_of_hits)
{
	struct perf_event_attr attr;
	struct bp_hits hits;
	long count = 0, lost = 0;
	int fd[FLEXIBLE_EVENTS];

	close(self->fd);
	for (int i = 0; i < FLEXIBLE_EVENTS; i++) {
		process = i % 2;
		attr = word_attr(i);
		attr.config |= BP_FLEXIBLE;
		fd[i] = bp_open(&attr, 0, -1);
		ASSERT_LE(0, fd[i]);
	}
	block();
	/* Each event gets a register from time to time. */
	for (int i = 0; i < FLEXIBLE_EVENTS; i++) {
		while (bp_hits(fd[i]).count < KEPT_MIN)
			bp_store(word(i), 1);
	}
	unblock();
	for (int i = 0; i < FLEXIBLE_EVENTS; i++) {
		hits = bp_hits(fd[i]);
		count += hits.count;
		lost += hits.lost;
	}
	EXPECT_EQ(count, lost + nr_seen);
	EXPECT_EQ(KEPT_OF_THREAD + 1, nr_seen);
	bp_close(fd, FLEXIBLE_EVENTS);
}

/* The hits of an event without BP_SIGTRAP_QUEUE coalesce as without a full queue beside it. */
TEST_F(queue, full_queue_does_not_hinder_other_events)
{
	int other;

	queue = false;
	other = watch(1);
	ASSERT_LE(0, other);
	block();
	bp_store_times(word(0), 1, KEPT_MAX + 10);
	bp_store_times(word(1), 1, 10);
	unblock();
	EXPECT_EQ(0, bp_hits(other).lost);
	EXPECT_EQ(10, bp_hits(other).count);
	EXPECT_EQ(10, bp_hits(self->fd).lost);
	ASSERT_EQ(KEPT_MAX, nr_seen);
	forget_seen();
	bp_store(word(1), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 1, SYNC);
}

/* The signals come in the order of the hits, whether events are of the thread or not. */
TEST_F(queue, events_of_thread_and_process)
{
	int other;

	process = false;
	other = watch(1);
	ASSERT_LE(0, other);
	block();
	for (int i = 0; i < 10; i++) {
		bp_store(word(0), 1);
		bp_store(word(1), 1);
	}
	unblock();
	ASSERT_EQ(20, nr_seen);
	for (int i = 0; i < 20; i++)
		expect_word(_metadata, i, i % 2, ASYNC);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	EXPECT_EQ(0, bp_hits(other).lost);
}

#define KERNEL_HITS		(2 * KEPT_MIN)

/* Hits that the kernel makes before the thread returns to user mode: none is pending. */
TEST_F(queue, hits_by_the_kernel)
{
	struct iovec iov[KERNEL_HITS];
	char bytes[KERNEL_HITS] = { };
	int in[2], fd;

	BP_NEED_ROOT();
	BP_NEED(BP_KERNEL_ACCESS, "an access by the kernel is no hit");
	close(self->fd);
	fd = watch_kernel(0, HW_BREAKPOINT_W);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe(in));
	for (int i = 0; i < KERNEL_HITS; i++)
		iov[i] = (struct iovec){ word(0), 1 };
	for (int hits = 1; hits <= KERNEL_HITS; hits *= 2) {
		struct bp_hits before = bp_hits(fd), after;

		forget_seen();
		ASSERT_EQ(hits, write(in[1], bytes, hits));
		EXPECT_EQ(hits, readv(in[0], iov, hits));
		after = bp_hits(fd);
		EXPECT_EQ(hits, after.count - before.count);
		EXPECT_EQ(hits < KEPT_MIN ? hits : KEPT_MIN, nr_seen);
		EXPECT_EQ(hits - nr_seen, after.lost - before.lost);
	}
}

/* ------------------------------------------------------------- order and attributes */

static int fd_to_modify;

static void hit_and_modify_in_the_first(int nr)
{
	struct perf_event_attr attr;

	if (nr)
		return;
	for (int i = 1; i < W_HITS; i++) {
		attr = word_attr(i);
		bp_store(word(i - 1), 1);
		bp_modify(fd_to_modify, &attr);
	}
	bp_store(word(W_HITS - 1), 1);
}

/* A queued hit keeps address and sig_data of its time. */
TEST_F(queue, hits_of_a_handler_come_after_it)
{
	fd_to_modify = self->fd;
	in_handler = hit_and_modify_in_the_first;
	store_step(word(0));
	EXPECT_EQ(1, steps);
	ASSERT_EQ(1 + W_HITS, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	for (int i = 0; i < W_HITS; i++)
		expect_word(_metadata, i + 1, i, ASYNC);
	for (int i = 0; i < nr_seen; i++)
		EXPECT_EQ(0, seen[i].depth);
}

/* SIGTRAP was blocked at the time of the hits, but not when most signals are sent. */
TEST_F(queue, handler_that_does_not_block_the_next_signal)
{
	handle_traps(SA_NODEFER);
	block();
	bp_store_times(word(0), 1, 10);
	unblock();
	ASSERT_EQ(10, nr_seen);
	for (int i = 0; i < 10; i++)
		expect_word(_metadata, i, 0, ASYNC);
	forget_seen();
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
}

TEST_F(queue, signals_are_taken_one_after_the_other)
{
	struct trap_info info;

	ASSERT_LE(0, watch(1));
	ASSERT_LE(0, watch(2));
	block();
	send_trap_to_self();
	for (int round = 0; round < 5; round++)
		hit_words();
	EXPECT_EQ(SI_TKILL, take_pending(NULL));
	for (int i = 0; i < 5 * W_HITS; i++) {
		ASSERT_EQ(TRAP_PERF, take_pending(&info));
		EXPECT_EQ((unsigned long)word(i % W_HITS), info.addr);
		EXPECT_EQ(DATA(i % W_HITS), info.data);
		EXPECT_EQ(ASYNC, info.flags);
	}
	EXPECT_EQ(-EAGAIN, take_pending(NULL));
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(queue, ignored_hits_are_dropped)
{
	block();
	bp_store_times(word(0), 1, 10);
	signal(SIGTRAP, SIG_IGN);
	unblock();
	handle_traps(SA_RESTART);
	EXPECT_EQ(0, nr_seen);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

/* ---------------------------------------------------- several hits by one instruction */

/* Expects a signal of each of the two events, in any order. */
static void expect_both(struct __test_metadata *_metadata, int first, __u32 flags)
{
	for (int i = first; i < first + 2; i++)
		expect_seen(_metadata, i, count_insn, seen[i].info.data, flags);
	EXPECT_EQ(DATA(5) ^ DATA(6), seen[first].info.data ^ seen[first + 1].info.data);
}

TEST_F(queue, two_events_hit_by_one_instruction)
{
	int n = 0;

	ASSERT_LE(0, watch_insn(count_insn, DATA(5)));
	ASSERT_LE(0, watch_insn(count_insn, DATA(6)));
	for (int i = 0; i < 10; i++) {
		count_func(&n);
		ASSERT_EQ(2 * (i + 1), nr_seen);
		expect_both(_metadata, 2 * i, SYNC);
	}
	forget_seen();
	block();
	count_func(&n);
	count_func(&n);
	EXPECT_EQ(0, nr_seen);
	unblock();
	ASSERT_EQ(4, nr_seen);
	expect_both(_metadata, 0, ASYNC);
	expect_both(_metadata, 2, ASYNC);
	EXPECT_EQ(12, n);
}

/* Descriptors of the events, indexed by sig_data - DATA(5) */
static int both[2];

static void disable_the_other(int nr)
{
	if (!nr)
		bp_disable(both[DATA(6) - seen[0].info.data]);
}

TEST_F(queue, handler_that_disables_the_other_event)
{
	int n = 0;

	for (int i = 0; i < 2; i++) {
		both[i] = watch_insn(count_insn, DATA(5 + i));
		ASSERT_LE(0, both[i]);
	}
	in_handler = disable_the_other;
	count_func(&n);
	EXPECT_EQ(1, nr_seen);
	in_handler = NULL;
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_enable(both[i]));
	EXPECT_EQ(1, nr_seen);
	forget_seen();
	count_func(&n);
	ASSERT_EQ(2, nr_seen);
	expect_both(_metadata, 0, SYNC);
	EXPECT_EQ(2, n);
}

/* -------------------------------------------------------------- hits that are dropped */

/* The main thread ends the event while others have hits; the pending signal stays. */
static void end_with_hits(struct __test_metadata *_metadata, FIXTURE_DATA(queue) *self,
			  void (*end)(FIXTURE_DATA(queue) *self))
{
	for (int i = 0; i < THREADS; i++) {
		bp_do(&self->w[i], W_FORGET);
		bp_do(&self->w[i], W_BLOCK);
		hit_often(&self->w[i], 10 + i);
	}
	end(self);
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(1, bp_do(&self->w[i], W_UNBLOCK));
}

static void disable_and_enable(FIXTURE_DATA(queue) *self)
{
	bp_disable(self->fd);
	bp_enable(self->fd);
}

static void close_and_open(FIXTURE_DATA(queue) *self)
{
	close(self->fd);
	self->fd = watch(0);
}

TEST_F(queue, disable_drops_the_hits_of_all_threads)
{
	end_with_hits(_metadata, self, disable_and_enable);
	end_with_hits(_metadata, self, disable_and_enable);
}

TEST_F(queue, close_drops_the_hits_of_all_threads)
{
	for (int i = 0; i < 5; i++)
		end_with_hits(_metadata, self, close_and_open);
}

/* The hits of a thread that exits are dropped; the event continues to count. */
TEST_F(queue, exit_drops_the_hits_of_the_thread)
{
	struct bp_worker w;

	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
		bp_do(&w, W_BLOCK);
		hit_often(&w, 10);
		EXPECT_EQ(0, bp_stop(&w));
		EXPECT_FALSE(is_pending());
	}
	EXPECT_EQ(0, nr_seen);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	EXPECT_EQ(201, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

static int has_nothing_due(void *arg)
{
	CHECK(!is_pending());
	unblock();
	CHECK(!is_pending());
	CHECK(nr_seen == 0);
	return 0;
}

TEST_F(queue, child_has_nothing_due)
{
	struct bp_worker w;

	block();
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(0, bp_in_child(has_nothing_due, NULL));
	/* A new thread inherits the mask, but no hit. */
	ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
	EXPECT_EQ(0, bp_do(&w, W_PENDING));
	EXPECT_EQ(0, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_HIT_0));
	EXPECT_EQ(0, bp_stop(&w));
	unblock();
	EXPECT_EQ(10, nr_seen);
}

static long exec_on_request(int cmd, void *arg)
{
	block();
	bp_store_times(word(0), 1, 100);
	return exec_self("clean");
}

static int exec_with_hits(void *arg)
{
	struct bp_worker w;

	CHECK(watch(0) >= 0);
	block();
	bp_store_times(word(0), 1, 10);
	if (!arg)
		return exec_self("clean");
	CHECK(!bp_start_thread(&w, exec_on_request, NULL));
	bp_do(&w, 0);
	return 1;
}

TEST_F(queue, exec_drops_the_hits_of_all_threads)
{
	EXPECT_EQ(0, bp_in_child(exec_with_hits, NULL));
	EXPECT_EQ(0, bp_in_child(exec_with_hits, (void *)1));
}

/* -------------------------------------------------------------------------- memory */

/* The size of the smaller part of a queue is more than this. */
#define LARGE			"bytes_req > 768"

static int count_large_allocations(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = tracepoint_id("kmem/kmalloc"),
	};
	int fd = bp_open(&attr, 0, -1);

	return bp_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)LARGE) ? -1 : fd;
}

static __u64 allocations_of_thread(int counter, struct bp_worker *w)
{
	__u64 before = bp_count(counter);

	return bp_start_thread(w, worker, NULL) ? 0 : bp_count(counter) - before;
}

/* A new thread has a queue only if an event needs it at the time. */
TEST_F(queue, new_threads_have_no_queue_after_close)
{
	int counter = count_large_allocations();
	struct bp_worker with, without;
	__u64 of_thread;

	BP_NEED_ROOT();
	ASSERT_LE(0, counter);
	of_thread = allocations_of_thread(counter, &with);
	EXPECT_LE(2, of_thread);
	for (int i = 0; i < 3; i++) {
		close(self->fd);
		EXPECT_EQ(of_thread - 2, allocations_of_thread(counter, &without));
		/* Now it gets one. */
		self->fd = watch(0);
		EXPECT_EQ(1, bp_do(&without, W_HIT_0));
		EXPECT_EQ(0, bp_stop(&without));
	}
	EXPECT_EQ(1, bp_do(&with, W_HIT_0));
	EXPECT_EQ(0, bp_stop(&with));
	EXPECT_EQ(of_thread, allocations_of_thread(counter, &with));
	EXPECT_EQ(0, bp_stop(&with));
}

/* -------------------------------------------------------------------------- storms */

#define STORM_THREADS		16
#define ROUNDS			bp_rounds(60)

struct storm {
	int fd;
	long signals;
	long wrong;
	int ended;
};

/* Each round is short enough for the queue. */
static void *store_and_unblock(void *arg)
{
	struct storm *storm = arg;
	long wrong = 0, total = 0;

	for (int i = 0; i < ROUNDS; i++) {
		forget_seen();
		if (i % 3)
			block();
		for (int k = 0; k < i % KEPT_MIN; k++) {
			bp_store(word(0), 1);
			bp_store(word(1), 1);
			if (k == i % 8)
				sched_yield();
		}
		unblock();
		for (int k = 0; k < nr_seen; k++)
			wrong += !was_seen(k, word(0), DATA(0), i % 3 ? ASYNC : SYNC) &&
				 !was_seen(k, word(1), DATA(1), i % 3 ? ASYNC : SYNC);
		total += nr_seen;
	}
	__atomic_add_fetch(&storm->wrong, wrong, __ATOMIC_RELAXED);
	__atomic_add_fetch(&storm->signals, total, __ATOMIC_RELAXED);
	__atomic_add_fetch(&storm->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void run_storm(struct __test_metadata *_metadata, struct storm *storm,
		      void (*meanwhile)(struct storm *storm, int round))
{
	pthread_t thread[STORM_THREADS];
	int round = 0;

	for (int i = 0; i < STORM_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, store_and_unblock, storm));
	while (__atomic_load_n(&storm->ended, __ATOMIC_ACQUIRE) < STORM_THREADS) {
		meanwhile(storm, round++);
		sched_yield();
	}
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, storm->wrong);
}

static void do_nothing(struct storm *storm, int round)
{
	nap();
}

TEST_F(queue, storm)
{
	struct storm storm = { };
	long hits = 0;

	for (int i = 0; i < ROUNDS; i++)
		hits += STORM_THREADS * (i % KEPT_MIN);
	run_storm(_metadata, &storm, do_nothing);
	EXPECT_EQ(hits, storm.signals);
	EXPECT_EQ(hits, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

static void modify_it(struct storm *storm, int round)
{
	struct perf_event_attr attr = word_attr(round % 2);

	bp_modify(storm->fd, &attr);
}

/* Each hit gives a signal or is lost, whatever address was watched when it was made. */
TEST_F(queue, storm_while_it_is_modified)
{
	struct storm storm = { .fd = self->fd };

	run_storm(_metadata, &storm, modify_it);
	EXPECT_EQ(storm.signals + bp_hits(self->fd).lost, bp_hits(self->fd).count);
}

static void close_it(struct storm *storm, int round)
{
	close(storm->fd);
	storm->fd = watch(0);
}

TEST_F(queue, storm_while_it_is_closed)
{
	struct storm storm = { .fd = self->fd };

	run_storm(_metadata, &storm, close_it);
	EXPECT_LE(0, storm.fd);
	forget_seen();
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
}

TEST_HARNESS_MAIN
