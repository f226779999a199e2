// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process that are closed while one of their hits waits.
 *
 * The rule: close() gives the register back at once and on all CPUs, whatever still
 * refers to the event.
 */
#define PROCESS_FIXTURE
#include "process.h"

static int free_in_handler;
static int fd_of_hit[2];

static void close_all(int sig, siginfo_t *info, void *context)
{
	bp_close(fd_of_hit, 2);
	free_in_handler = bp_free_slots(0, -1);
}

/* One of the two hits waits until the handler of the other one returns. */
TEST_F(process, closed_while_a_hit_waits)
{
	struct sigaction action = { .sa_sigaction = close_all, .sa_flags = SA_SIGINFO };

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	self->attr.bp_type = HW_BREAKPOINT_X;
	self->attr.bp_addr = (unsigned long)bp_func_insn;
	self->attr.bp_len = sizeof(long);
	self->attr.sample_period = 1;
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	for (int i = 0; i < 2; i++) {
		fd_of_hit[i] = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, fd_of_hit[i]);
	}
	bp_func();
	EXPECT_EQ(BP_SLOTS, free_in_handler);
}

TEST_HARNESS_MAIN
