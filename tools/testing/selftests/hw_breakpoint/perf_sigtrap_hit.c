// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: one hit.
 *
 * The rule: a hit made while SIGTRAP is not blocked gives a signal before the next
 * instruction, with the address and the event's sig_data at the time of the hit.
 */
#include "sigtrap.h"

TEST_F(trap, signal_has_the_data_of_the_hit)
{
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(1, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	EXPECT_FALSE(is_pending());
}

/* sig_data is truncated to the program's long. */
TEST_F(trap, sig_data_is_as_wide_as_a_long)
{
	self->attr.sig_data = 0x1122334455667788ULL;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), (unsigned long)0x1122334455667788ULL, SYNC);
}

TEST_F(trap, loads_and_stores_of_a_read_write_breakpoint_signal)
{
	self->attr.bp_type = HW_BREAKPOINT_RW;
	self->attr.bp_len = 4;
	open_it(_metadata, self);
	bp_load(word(0), 4);
	EXPECT_EQ(1, nr_seen);
	bp_store(word(0), 4);
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	expect_word(_metadata, 1, 0, SYNC);
}

TEST_F(trap, store_has_been_made_and_the_next_instruction_has_not)
{
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		store_step(word(0));
		ASSERT_EQ(i + 1, nr_seen);
		EXPECT_EQ(i, seen[i].step);
	}
	EXPECT_EQ(10, steps);
	count_func(word(0));
	ASSERT_EQ(11, nr_seen);
	EXPECT_EQ((unsigned long)count_next, seen[10].ip);
}

/* An instruction breakpoint is a fault: its instruction has not been executed yet. */
TEST_F(trap, instruction_is_executed_after_its_signal)
{
	static int n;

	counted = &n;
	in_handler = look_at_counted;
	self->attr = insn_attr(count_insn, DATA(7));
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		count_func(&n);
		ASSERT_EQ(i + 1, nr_seen);
		expect_seen(_metadata, i, count_insn, DATA(7), SYNC);
		EXPECT_EQ((unsigned long)(BP_SIGNAL_BEFORE ? count_insn : count_next), seen[i].ip);
		EXPECT_EQ(i + !BP_SIGNAL_BEFORE, seen[i].step);
		EXPECT_EQ(i + 1, n);
	}
}

TEST_F(trap, each_of_thousands_of_hits_signals)
{
	int missed = 0, wrong = 0;

	open_it(_metadata, self);
	for (int i = 0; i < TIMES(5000); i++) {
		store_step(word(0));
		missed += nr_seen != i + 1;
		wrong += !was_seen(i, word(0), DATA(0), SYNC) || seen[i % MAX_SEEN].step != i;
	}
	EXPECT_EQ(0, missed);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(TIMES(5000), nr_seen);
	EXPECT_EQ(TIMES(5000), bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

TEST_F(trap, only_hits_that_overflow_signal)
{
	self->attr.sample_period = 3;
	open_it(_metadata, self);
	for (int i = 1; i <= 30; i++) {
		bp_store(word(0), 1);
		EXPECT_EQ(i / 3, nr_seen);
	}
	EXPECT_EQ(30, bp_hits(self->fd).count);
}

TEST_F(trap, event_that_only_counts_sends_no_signal)
{
	self->attr.sample_period = 0;
	open_it(_metadata, self);
	bp_store_times(word(0), 1, 5);
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(5, bp_hits(self->fd).count);
}

TEST_F(trap, disabled_event_sends_no_signal)
{
	self->attr.disabled = 1;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	EXPECT_EQ(0, nr_seen);
	ASSERT_EQ(0, bp_enable(self->fd));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	ASSERT_EQ(0, bp_disable(self->fd));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
}

TEST_F(trap, events_of_a_group_signal)
{
	struct perf_event_attr lead = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int group;

	lead.remove_on_exec = 1;
	group = bp_open(&lead, 0, -1);
	ASSERT_GE(group, 0);
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		EXPECT_LE(0, bp_open_group(&self->attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
	}
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
	ASSERT_EQ(0, bp_ioctl(group, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	hit_words();
	EXPECT_EQ(W_HITS, nr_seen);
}

/* An event of this task on one CPU alone */
TEST_F(trap, event_of_a_task_on_a_cpu_signals)
{
	struct bp_cpus cpus = bp_online_cpus();

	BP_NEED_CPUS(cpus, 2);
	self->fd = bp_open(&self->attr, 0, cpus.cpu[1]);
	ASSERT_GE(self->fd, 0);
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % 2]));
		bp_store(word(0), 1);
		EXPECT_EQ((i + 1) / 2, nr_seen);
	}
	expect_word(_metadata, 0, 0, SYNC);
}

TEST_HARNESS_MAIN
