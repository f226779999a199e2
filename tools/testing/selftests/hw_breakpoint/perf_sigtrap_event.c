// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: signals that are ignored or kill, and events that change while a signal
 * is pending.
 *
 * The rule: a pending signal stays pending whatever happens to its event. Hits that
 * wait for it are dropped when the event is closed or disabled.
 */
#include "sigtrap.h"

TEST_F(trap, ignored_hits_are_dropped)
{
	ASSERT_EQ(0, watch_words());
	signal(SIGTRAP, SIG_IGN);
	for (int i = 0; i < 50; i++)
		hit_words();
	handle_traps(0);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
}

TEST_F(trap, ignored_hits_of_one_instruction_are_all_dropped)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, watch_insn(count_insn, DATA(5 + i)));
	ASSERT_LE(0, watch(0));
	signal(SIGTRAP, SIG_IGN);
	count_func(&n);
	handle_traps(0);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), DATA(0), SYNC);
}

TEST_F(trap, ignoring_drops_due_hits)
{
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	signal(SIGTRAP, SIG_IGN);
	EXPECT_FALSE(is_pending());
	handle_traps(0);
	EXPECT_FALSE(is_pending());
	unblock();
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
}

static int hit_by_default(void *arg)
{
	signal(SIGTRAP, SIG_DFL);
	CHECK(watch(0) >= 0);
	bp_store(word(0), 1);
	return 0;
}

TEST_F(trap, default_action_kills)
{
	EXPECT_EQ(256 + SIGTRAP, bp_in_child(hit_by_default, NULL));
}

static int hit_blocked_by_default(void *arg)
{
	signal(SIGTRAP, SIG_DFL);
	block();
	CHECK(watch_words() == 0);
	for (int i = 0; i < 30; i++)
		hit_words();
	CHECK(is_pending());
	if (arg)
		unblock();
	return 0;
}

/* Other synchronous signals kill a thread that blocks them; this one becomes pending. */
TEST_F(trap, blocked_hits_do_not_kill)
{
	EXPECT_EQ(0, bp_in_child(hit_blocked_by_default, NULL));
}

TEST_F(trap, default_action_kills_when_unblocked)
{
	EXPECT_EQ(256 + SIGTRAP, bp_in_child(hit_blocked_by_default, (void *)1));
}

/* ---------------------------------------------------------------- chained handlers */

static struct sigaction earlier;

static volatile int nr_own;

/* Handles the hits with DATA(0). */
static void handle_or_forward(int sig, siginfo_t *info, void *context)
{
	struct trap_info trap;

	memcpy(&trap, info, sizeof(trap));
	if (trap.code == TRAP_PERF && trap.data == DATA(0))
		nr_own++;
	else
		earlier.sa_sigaction(sig, info, context);
}

static void chain_handlers(struct __test_metadata *_metadata)
{
	struct sigaction sa = {
		.sa_sigaction	= handle_or_forward,
		.sa_flags	= SA_SIGINFO | SA_RESTART,
	};

	nr_own = 0;
	ASSERT_EQ(0, sigaction(SIGTRAP, &sa, &earlier));
}

/* A handler forwards what is not its own to the handler that was installed before. */
TEST_F(trap, handler_forwards_hits_to_an_earlier_one)
{
	ASSERT_EQ(0, watch_words());
	chain_handlers(_metadata);
	hit_words();
	EXPECT_EQ(1, nr_own);
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 0, 1, SYNC);
	expect_word(_metadata, 1, 2, SYNC);
	send_trap_to_self();
	EXPECT_EQ(1, nr_other);

	/* Hits coalesce whichever handler they are for. */
	forget_seen();
	block();
	bp_store(word(2), 1);
	bp_store(word(0), 1);
	unblock();
	EXPECT_EQ(1, nr_own);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 2, ASYNC);

	ASSERT_EQ(0, sigaction(SIGTRAP, &earlier, NULL));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_own);
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 1, 0, SYNC);
}

TEST_F(trap, handler_forwards_other_hits_of_the_same_instruction)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, watch_insn(count_insn, DATA(i)));
	chain_handlers(_metadata);
	for (int round = 1; round <= 3; round++) {
		forget_seen();
		count_func(&n);
		EXPECT_EQ(round, nr_own);
		ASSERT_EQ(2, nr_seen);
		expect_seen(_metadata, 0, count_insn, DATA(1), SYNC);
		expect_seen(_metadata, 1, count_insn, DATA(2), SYNC);
	}
	EXPECT_EQ(3, n);
}

/* ------------------------------------------------------- changes of the event */

/*
 * A pending signal stays pending whatever happens to its event, like any other signal.
 * Hits that wait for it are dropped with the event.
 */
static void change_while_due(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self,
			     int what, int queued)
{
	for (int i = 0; i < 2; i++) {
		queue = i;
		self->attr = word_attr(0);
		open_it(_metadata, self);
		forget_seen();
		block();
		bp_store_times(word(0), 1, 5);
		if (what == DO_MODIFY) {
			self->attr = word_attr(9);
			ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		} else {
			ASSERT_EQ(0, change_event(self->fd, what, NULL, 0));
		}
		EXPECT_TRUE(is_pending());
		unblock();
		ASSERT_EQ(i ? queued : 1, nr_seen);
		for (int k = 0; k < nr_seen; k++)
			expect_word(_metadata, k, 0, ASYNC);
		close(self->fd);
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	}
}

TEST_F(trap, close_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_CLOSE, 1);
}

TEST_F(trap, disable_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_DISABLE, 1);
}

TEST_F(trap, reset_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_RESET, 5);
}

TEST_F(trap, modify_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_MODIFY, 5);
}

/* Each hit has the address and the sig_data that the event had at that time. */
TEST_F(trap, queued_hits_keep_address_and_sig_data_of_their_time)
{
	queue = true;
	self->attr = word_attr(0);
	open_it(_metadata, self);
	block();
	bp_store(word(0), 1);
	self->attr = trap_attr(word(1), DATA(1));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(0), 1);
	bp_store(word(1), 1);
	self->attr.sig_data = DATA(2);
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(1), 1);
	self->attr = trap_attr(word(0), DATA(3));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	unblock();
	ASSERT_EQ(3, nr_seen);
	expect_seen(_metadata, 0, word(0), DATA(0), ASYNC);
	expect_seen(_metadata, 1, word(1), DATA(1), ASYNC);
	expect_seen(_metadata, 2, word(1), DATA(2), ASYNC);
	bp_store(word(0), 1);
	ASSERT_EQ(4, nr_seen);
	expect_seen(_metadata, 3, word(0), DATA(3), SYNC);
}

/* Both after the check of what cannot change and after that of the new place */
TEST_F(trap, refused_modify_keeps_address_and_sig_data)
{
	struct perf_event_attr bad;

	self->attr = word_attr(0);
	open_it(_metadata, self);
	for (int i = 0; i < 2; i++) {
		bad = trap_attr(word(1), DATA(1));
		if (i)
			bad.bp_len = 33;
		else
			bad.sample_period++;
		ASSERT_EQ(-EINVAL, bp_modify(self->fd, &bad));
		bp_store(word(1), 1);
		bp_store(word(0), 1);
		ASSERT_EQ(i + 1, nr_seen);
		expect_word(_metadata, i, 0, SYNC);
	}
}

static volatile int nr_in, nr_hup;

static void on_io(int sig, siginfo_t *info, void *uc)
{
	if (info->si_code == POLL_HUP)
		nr_hup++;
	else if (info->si_code == POLL_IN)
		nr_in++;
}

static void signal_on_overflow(struct __test_metadata *_metadata, int fd)
{
	struct sigaction sa = { .sa_sigaction = on_io, .sa_flags = SA_SIGINFO | SA_RESTART };

	ASSERT_EQ(0, sigaction(SIGRTMIN, &sa, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_ASYNC));
}

/* REFRESH allows a number of hits: the last one disables the event and sends POLL_HUP. */
TEST_F(trap, refresh_arms_for_a_number_of_hits)
{
	int due = 0;

	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
	self->attr.disabled = 1;
	open_it(_metadata, self);
	signal_on_overflow(_metadata, self->fd);
	bp_store(word(0), 1);
	EXPECT_EQ(0, nr_seen);
	for (int round = 1; round <= 4; round++) {
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, round));
		for (int i = 1; i <= round; i++) {
			store_step(word(0));
			due++;
			EXPECT_EQ(due, nr_seen);
			while (nr_in + nr_hup < due)
				sched_yield();
			EXPECT_EQ(round - (i < round), nr_hup);
		}
		for (int i = 0; i < 5; i++)
			store_step(word(0));
		EXPECT_EQ(due, nr_seen);
		EXPECT_EQ(due, bp_hits(self->fd).count);
		EXPECT_EQ(due - round, nr_in);
	}
	for (int i = 0; i < nr_seen; i++)
		expect_word(_metadata, i, 0, SYNC);
}

TEST_F(trap, refresh_arms_for_hits_that_wait)
{
	self->attr.config = BP_SIGTRAP_QUEUE;
	self->attr.disabled = 1;
	open_it(_metadata, self);
	block();
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, 2));
		bp_store_times(word(0), 1, 10);
		EXPECT_EQ(2 * round, bp_hits(self->fd).count);
	}
	unblock();
	EXPECT_EQ(6, nr_seen);
}

TEST_HARNESS_MAIN
