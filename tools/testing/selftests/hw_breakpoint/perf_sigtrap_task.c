// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: new images, new processes, other tasks.
 *
 * The rule: no hit is ever seen by another task or by another program image.
 */
#include "sigtrap.h"

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND	0x100000000ULL
#endif

static int exec_with_hits_due(void *arg)
{
	queue = arg;
	block();
	CHECK(watch_words() == 0);
	hit_words();
	CHECK(is_pending());
	return exec_self("clean");
}

TEST_F(trap, exec_drops_due_hits)
{
	EXPECT_EQ(0, bp_in_child(exec_with_hits_due, NULL));
	EXPECT_EQ(0, bp_in_child(exec_with_hits_due, (void *)1));
}

static int exec_with_full_queue(void *arg)
{
	queue = true;
	block();
	CHECK(watch(0) >= 0);
	bp_store_times(word(0), 1, 100);
	return exec_self("clean");
}

TEST_F(trap, exec_drops_a_queue_that_is_full)
{
	EXPECT_EQ(0, bp_in_child(exec_with_full_queue, NULL));
}

static int exec_with_signal_sent(void *arg)
{
	block();
	CHECK(watch_words() == 0);
	send_trap_to_self();
	if (arg)
		hit_words();
	return exec_self("sent");
}

/* A SIGTRAP that another task sent stays pending across exec. */
TEST_F(trap, exec_keeps_signals_that_others_sent)
{
	EXPECT_EQ(0, bp_in_child(exec_with_signal_sent, NULL));
	EXPECT_EQ(0, bp_in_child(exec_with_signal_sent, (void *)1));
}

/* The event is removed before the new image can hit its address. */
static int exec_and_store(void *arg)
{
	struct perf_event_attr attr = word_attr(0);

	CHECK(bp_open_group(&attr, 0, -1, -1, 0) >= 0);
	bp_store(word(0), 1);
	CHECK(nr_seen == 1);
	return exec_self("store");
}

TEST_F(trap, exec_removes_the_event)
{
	EXPECT_EQ(0, bp_in_child(exec_and_store, NULL));
}

/* A child has no signal pending, even if its parent has one. */
static int has_nothing_due(void *arg)
{
	CHECK(!is_pending());
	unblock();
	CHECK(!is_pending());
	CHECK(nr_seen == 0);
	return 0;
}

TEST_F(trap, fork_child_has_nothing_due)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	EXPECT_EQ(0, bp_in_child(has_nothing_due, NULL));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

/* The child uses the memory of its parent, so the parent checks nr_seen. */
TEST_F(trap, vfork_child_has_nothing_due)
{
	static volatile bool pending;
	pid_t pid;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	pid = vfork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		pending = is_pending();
		unblock();
		_exit(0);
	}
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_FALSE(pending);
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

static int child_of_a_family(void *arg)
{
	CHECK(!is_pending());
	forget_seen();
	hit_words();
	CHECK(nr_seen == 0);
	unblock();
	CHECK(words_were_seen(ASYNC));
	hit_words();
	CHECK(nr_seen == 2 * W_HITS);
	CHECK(was_seen(W_HITS, word(0), DATA(0), SYNC));
	return 0;
}

/* The members of a family share one event, and each gets the signals of its own hits. */
TEST_F(trap, each_of_a_family_has_its_own_hits)
{
	int fd[W_HITS];

	queue = true;
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		self->attr.inherit = 1;
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	block();
	hit_words();
	EXPECT_EQ(0, bp_in_child(child_of_a_family, NULL));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
	for (int i = 0; i < W_HITS; i++)
		EXPECT_EQ(3, bp_hits(fd[i]).count);
}

static pid_t clone_with(__u64 flags)
{
	__u64 args[8] = { flags, 0, 0, 0, SIGCHLD };

	return syscall(__NR_clone3, args, sizeof(args));
}

/* A child without handlers would be killed by a signal of its parent's hit. */
TEST_F(trap, child_without_handlers_inherits_nothing)
{
	pid_t pid;

	self->attr.inherit = 1;
	open_it(_metadata, self);
	for (int i = 0; i < 2; i++) {
		pid = clone_with(i ? CLONE_CLEAR_SIGHAND : 0);
		ASSERT_GE(pid, 0);
		if (!pid) {
			bp_store(word(0), 1);
			bp_store(word(0), 1);
			_exit(nr_seen);
		}
		EXPECT_EQ(i ? 0 : 2, bp_wait(pid));
	}
	EXPECT_EQ(2, bp_hits(self->fd).count);
	EXPECT_EQ(0, nr_seen);
}

static int exit_with_hits_due(void *arg)
{
	long hits = (long)arg;

	block();
	CHECK(watch(0) >= 0);
	bp_store_times(word(0), 1, hits);
	return 0;
}

TEST_F(trap, exit_drops_due_hits)
{
	EXPECT_EQ(0, bp_in_child(exit_with_hits_due, (void *)3));
	EXPECT_EQ(0, bp_in_child(exit_with_hits_due, (void *)40));
}

TEST_F(trap, death_drops_due_hits)
{
	struct bp_worker w;

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	kill(w.pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, bp_stop(&w));
}

TEST_F(trap, hits_wait_while_stopped)
{
	struct bp_worker w;
	int status;

	queue = true;
	ASSERT_EQ(0, bp_start(&w, worker, (void *)ASYNC));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	kill(w.pid, SIGSTOP);
	EXPECT_EQ(w.pid, waitpid(w.pid, &status, WUNTRACED));
	EXPECT_TRUE(WIFSTOPPED(status));
	kill(w.pid, SIGCONT);
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, bp_stop(&w));
}

/* An event of another process signals that process. */
TEST_F(trap, event_of_another_process_signals_that_process)
{
	struct bp_worker w;
	int fd[W_HITS];

	ASSERT_EQ(0, bp_start(&w, worker, (void *)ASYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		fd[i] = bp_open(&self->attr, w.pid, -1);
		ASSERT_GE(fd[i], 0);
	}
	hit_words();
	EXPECT_EQ(W_HITS, bp_do(&w, W_HIT));
	EXPECT_EQ(0, bp_do(&w, W_FORGET));
	/* Kill the process while a signal is pending. */
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	bp_close(fd, W_HITS);
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_EQ(1, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(0, bp_do(&w, W_PENDING));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(trap, each_hit_of_a_migrating_task_signals)
{
	struct bp_cpus cpus = bp_online_cpus();

	BP_NEED_CPUS(cpus, 2);
	queue = true;
	ASSERT_EQ(0, watch_words());
	for (int i = 0; i < TIMES(200); i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		store_step(word(i % W_HITS));
		ASSERT_EQ(i + 1, nr_seen);
		expect_word(_metadata, i, i % W_HITS, SYNC);
		EXPECT_EQ(i, seen[i].step);
	}
	forget_seen();
	block();
	for (int i = 0; i < 30; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		store_step(word(i % W_HITS));
		nap();
	}
	unblock();
	ASSERT_EQ(30, nr_seen);
	for (int i = 0; i < 30; i++)
		expect_word(_metadata, i, i % W_HITS, ASYNC);
}

TEST_F(trap, each_process_of_an_alternating_family_signals)
{
	pid_t pid[MEMBERS];
	int fd[2];

	ASSERT_EQ(0, prepare_laps(_metadata, fd));
	for (int i = 1; i < MEMBERS; i++) {
		pid[i] = bp_fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			_exit(run_laps(i));
	}
	EXPECT_EQ(0, run_laps(0));
	for (int i = 1; i < MEMBERS; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(MEMBERS * LAPS, bp_hits(fd[i]).count);
}

TEST_HARNESS_MAIN
