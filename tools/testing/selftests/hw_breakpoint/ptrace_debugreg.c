// SPDX-License-Identifier: GPL-2.0
/*
 * The debug registers that PTRACE_PEEKUSER and PTRACE_POKEUSER show in offsetof(struct
 * user, u_debugreg[n]), of one task at a time:
 *
 * - A value that was written and not refused is read back, bit for bit.
 * - A write that is refused returns EINVAL (the value is invalid) or EIO (there is no
 *   such register), and changes nothing.
 * - Only slots that are enabled are checked: the type and length of a slot that is
 *   disabled may have any value.
 * - A hit stops the task with SIGTRAP, TRAP_HWBKPT and exactly the bits of those
 *   slots in DR6 that were hit: after the access of a data breakpoint, before
 *   the instruction of an instruction breakpoint, and once.
 * - None of this depends on privilege, on the instruction set of tracer and tracee, or
 *   on the order in which a debugger writes the registers.
 *
 * Built as 64-bit, ia32 and x32 program; each traces tasks of other kinds, too. No test
 * single-steps an instruction that hits a data breakpoint: see ptrace_insn.c.
 */
#include "ptrace_tracee.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define TRACER_IS_64BIT
#endif

/* Tests that do not depend on the tracee's program use a child of the test itself. */
FIXTURE(registers) {
	struct tracee t;
};

FIXTURE_SETUP(registers)
{
	ASSERT_EQ(0, tracee_spawn(&self->t, false));
}

FIXTURE_TEARDOWN(registers)
{
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

FIXTURE(tracees) {
	struct tracee t;
};

/*
 * @program: program that the tracee executes first; NULL: a child of the test itself
 */
FIXTURE_VARIANT(tracees) {
	const char *program;
	bool unprivileged;
};

FIXTURE_VARIANT_ADD(tracees, child) {};

/* Neither tracer nor tracee has any privilege. */
FIXTURE_VARIANT_ADD(tracees, unprivileged) {
	.unprivileged = true,
};

#ifdef TRACER_IS_64BIT
FIXTURE_VARIANT_ADD(tracees, ia32) {
	.program = "ptrace_debugreg_32",
};

FIXTURE_VARIANT_ADD(tracees, x32) {
	.program = "ptrace_debugreg_x32",
};
#else
FIXTURE_VARIANT_ADD(tracees, x86_64) {
	.program = "ptrace_debugreg",
};
#endif

FIXTURE_SETUP(tracees)
{
	int err;

	if (variant->unprivileged && geteuid())
		SKIP(return, "only root can drop privileges");
	ASSERT_EQ(0, tracee_spawn(&self->t, variant->unprivileged));
	if (variant->program) {
		err = tracee_become(&self->t, variant->program);
		if (err) {
			tracee_kill(&self->t);
			SKIP(return, "cannot execute %s: %s", variant->program, strerror(-err));
		}
		ASSERT_EQ(0, tracee_finish(&self->t));
	}
	if (variant->unprivileged)
		ASSERT_EQ(0, seteuid(BP_NOBODY));
}

FIXTURE_TEARDOWN(tracees)
{
	if (variant->unprivileged)
		EXPECT_EQ(0, seteuid(0));
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

/* Expects that DR6 shows a stop caused by exactly the slots in @bits. */
#define EXPECT_DR6(bits)	EXPECT_EQ(DR6_CLEAN | (bits), self->t.dr6)

#define EXPECT_REGS(d0, d1, d2, d3, d7) do {			\
	EXPECT_EQ((unsigned long)(d0), dr_peek(&self->t, 0));	\
	EXPECT_EQ((unsigned long)(d1), dr_peek(&self->t, 1));	\
	EXPECT_EQ((unsigned long)(d2), dr_peek(&self->t, 2));	\
	EXPECT_EQ((unsigned long)(d3), dr_peek(&self->t, 3));	\
	EXPECT_EQ((unsigned long)(d7), dr_peek(&self->t, 7));	\
} while (0)

/* ---- Values ---- */

TEST_F(registers, starts_clean)
{
	EXPECT_REGS(0, 0, 0, 0, 0);
	EXPECT_EQ(DR6_CLEAN, dr_peek(&self->t, 6));
}

TEST_F(registers, addresses_read_back)
{
	static const unsigned long addr[] = { DATA(0), DATA(0x101), CODE(0), 0x1003 };
	int n;

	for (n = 0; n < BP_SLOTS; n++)
		EXPECT_EQ(0, dr_poke(&self->t, n, addr[n]));
	EXPECT_REGS(addr[0], addr[1], addr[2], addr[3], 0);

	for (n = 0; n < BP_SLOTS; n++)
		EXPECT_EQ(0, dr_poke(&self->t, n, 0));
	EXPECT_REGS(0, 0, 0, 0, 0);
}

TEST_F(registers, dr4_and_dr5_do_not_exist)
{
	int n;

	for (n = 4; n <= 5; n++) {
		EXPECT_EQ(-EIO, dr_poke(&self->t, n, 0));
		EXPECT_EQ(-EIO, dr_poke(&self->t, n, DATA(0)));
		errno = 0;
		EXPECT_EQ(0UL, dr_peek(&self->t, n));
		EXPECT_EQ(0, errno);
	}
}

/* For an ia32 tracer these offsets are refused only after the last register. */
TEST_F(registers, offset_between_registers_is_eio)
{
#ifdef __i386__
	unsigned long offset = offsetof(struct user, u_debugreg[7]);
#else
	unsigned long offset = offsetof(struct user, u_debugreg[0]);
#endif

	EXPECT_EQ(-1, ptrace(PTRACE_POKEUSER, self->t.pid, offset + 1, DATA(0)));
	EXPECT_EQ(EIO, errno);
	errno = 0;
	EXPECT_EQ(-1, ptrace(PTRACE_PEEKUSER, self->t.pid, offset + 2, 0));
	EXPECT_EQ(EIO, errno);
	EXPECT_REGS(0, 0, 0, 0, 0);
}

TEST_F(registers, dr6_reads_back_as_written)
{
	static const unsigned long values[] = { 0, DR6_HITS, 0xffff4ff1, ~0UL, DR6_CLEAN };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		EXPECT_EQ(0, dr_poke(&self->t, 6, values[i]));
		EXPECT_EQ(values[i], dr_peek(&self->t, 6));
	}
}

TEST_F(registers, dr6_write_causes_nothing)
{
	EXPECT_EQ(0, dr_poke(&self->t, 6, DR6_CLEAN | DR6_HITS | DR6_STEP));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(8), 4));
	EXPECT_REGS(0, 0, 0, 0, 0);
}

TEST_F(registers, dr7_reads_back_as_written)
{
	/* LE, GE, RTM, GD, and the bits that have fixed values in hardware */
	static const unsigned long extra[] = { 0x100, 0x300, 0x400, 0x800, 0x2000, 0xff00 };
	unsigned long dr7 = dr7_on(0, RW_W, 4) | dr7_on(2, RW_RW, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		EXPECT_EQ(0, dr_poke(&self->t, 7, extra[i]));
		EXPECT_EQ(extra[i], dr_peek(&self->t, 7));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7 | extra[i]));
		EXPECT_EQ(dr7 | extra[i], dr_peek(&self->t, 7));
	}
}

#ifdef TRACER_IS_64BIT
TEST_F(registers, high_half_of_dr6_and_dr7_reads_back)
{
	unsigned long dr7 = 0xdeadbeef00000000UL | dr7_on(1, RW_W, 2);

	EXPECT_EQ(0, dr_set(&self->t, 1, DATA(2), dr7));
	EXPECT_EQ(dr7, dr_peek(&self->t, 7));
	EXPECT_EQ(0, dr_poke(&self->t, 6, 0x123456789abcdef0UL));
	EXPECT_EQ(0x123456789abcdef0UL, dr_peek(&self->t, 6));
	EXPECT_EQ(1, do_store(&self->t, DATA(2), 2));
	EXPECT_DR6(2);
}
#endif

TEST_F(registers, address_zero_can_be_enabled)
{
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_X, 1) | dr7_on(1, RW_W, BP_WORD)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_REGS(0, 0, 0, 0, dr7_on(0, RW_X, 1) | dr7_on(1, RW_W, BP_WORD));
}

/* ---- Data hits ---- */

TEST_F(tracees, local_or_global_enable_is_enough)
{
	static const unsigned long enable[] = {
		DR7_L(0), DR7_G(0), DR7_L(0) | DR7_G(0), DR7_L(0) | DR7_LE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(enable); i++) {
		EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), enable[i] | dr7_field(0, RW_W, 4)));
		EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
		EXPECT_DR6(1);
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	}
}

TEST_F(tracees, hit_is_reported_after_the_store)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	*tracee_data(&self->t, DATA(0)) = 0;

	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_STORE, DATA(0), 4));
	EXPECT_EQ(0x5a, *tracee_data(&self->t, DATA(0)));
	EXPECT_EQ(SIGTRAP, self->t.si.si_signo);
	EXPECT_EQ(TRAP_HWBKPT, self->t.si.si_code);
	EXPECT_EQ(self->t.ip, (uintptr_t)self->t.si.si_addr);
	EXPECT_DR6(1);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

TEST_F(tracees, write_watch_covers_its_bytes_and_no_more)
{
	static const int lens[] = { 1, 2, 4, BP_WORD };
	unsigned int i;
	int off, len;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		len = lens[i];
		EXPECT_EQ(0, dr_set(&self->t, 2, DATA(64), dr7_on(2, RW_W, len)));
		EXPECT_EQ(0, do_store(&self->t, DATA(63), 1));
		for (off = 0; off < len; off++) {
			EXPECT_EQ(1, do_store(&self->t, DATA(64 + off), 1)) {
				TH_LOG("length %d, byte %d", len, off);
			}
			EXPECT_DR6(4);
		}
		EXPECT_EQ(0, do_store(&self->t, DATA(64 + len), 1));
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	}
}

TEST_F(tracees, access_that_overlaps_the_watch_hits)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(66), dr7_on(0, RW_W, 1)));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), BP_WORD));
	EXPECT_EQ(1, do_store(&self->t, DATA(65), 2));
	EXPECT_EQ(0, do_store(&self->t, DATA(64), 2));
	EXPECT_EQ(0, do_store(&self->t, DATA(68), 4));
}

TEST_F(tracees, write_watch_ignores_reads)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(0, do_load(&self->t, DATA(0), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, access_watch_sees_reads_and_writes)
{
	static const int lens[] = { 1, 2, 4, BP_WORD };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		EXPECT_EQ(0, dr_set(&self->t, 3, DATA(0), dr7_on(3, RW_RW, lens[i])));
		EXPECT_EQ(1, do_load(&self->t, DATA(0), 1));
		EXPECT_DR6(8);
		EXPECT_EQ(1, do_store(&self->t, DATA(lens[i] - 1), 1));
		EXPECT_DR6(8);
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	}
}

TEST_F(tracees, kernel_write_to_watched_data_is_not_reported)
{
	*(__u32 *)tracee_data(&self->t, DATA(0)) = ~0U;
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_RW, 4)));
	EXPECT_EQ(0, tracee_do(&self->t, OP_SYSCALL, DATA(0), 4));
	EXPECT_EQ(0, self->t.sh->result);
	EXPECT_NE(~0U, *(__u32 *)tracee_data(&self->t, DATA(0)));
	EXPECT_EQ(DR6_CLEAN, dr_peek(&self->t, 6));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, blocked_sigtrap_is_forced)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(1, tracee_do(&self->t, OP_STORE_BLOCKED, DATA(0), 4));
	EXPECT_DR6(1);
	EXPECT_EQ(0, self->t.sh->result) {
		TH_LOG("SIGTRAP is still blocked after it was forced");
	}
}

/* ---- Execution hits ---- */

TEST_F(tracees, execution_is_reported_before_the_instruction)
{
	__u8 calls = self->t.sh->calls[0];

	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	EXPECT_EQ(calls, self->t.sh->calls[0]);
	EXPECT_EQ(CODE(0), self->t.ip);
	EXPECT_EQ(TRAP_HWBKPT, self->t.si.si_code);
	EXPECT_EQ(CODE(0), (uintptr_t)self->t.si.si_addr);
	EXPECT_DR6(1);
	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(calls + 1, self->t.sh->calls[0]);
}

TEST_F(tracees, execution_hits_once_a_call)
{
	int i;

	EXPECT_EQ(0, dr_set(&self->t, 1, CODE(3), dr7_on(1, RW_X, 1)));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(1, do_call(&self->t, 3));
		EXPECT_DR6(2);
		EXPECT_EQ(0, do_call(&self->t, 2));
	}
	EXPECT_EQ(20, self->t.sh->calls[3]);
}

TEST_F(tracees, execution_watch_ignores_reads)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(1), dr7_on(0, RW_X, 1)));
	EXPECT_EQ(0, do_load(&self->t, CODE(1), 1));
}

TEST_F(tracees, execution_at_an_odd_address)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0) + CODE_STEP + 1, dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	EXPECT_EQ(CODE(0) + CODE_STEP + 1, self->t.ip);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

TEST_F(tracees, step_leaves_an_execution_breakpoint)
{
	__u8 calls = self->t.sh->calls[0];

	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));

	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_SINGLESTEP, 0));
	EXPECT_EQ(CODE(0) + CODE_STEP, self->t.ip);
	EXPECT_EQ(TRAP_TRACE, self->t.si.si_code);
	EXPECT_DR6(DR6_STEP);
	EXPECT_EQ(calls + 1, self->t.sh->calls[0]);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

TEST_F(tracees, step_onto_an_execution_breakpoint_stops_twice)
{
	int attempts = bp_attempts(), sig;

	EXPECT_EQ(0, dr_poke(&self->t, 0, CODE(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, CODE(0) + CODE_STEP));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_X, 1) | dr7_on(1, RW_X, 1)));
	do {
		ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
		EXPECT_DR6(1);

		ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_SINGLESTEP, 0));
		EXPECT_EQ(CODE(0) + CODE_STEP, self->t.ip);
		EXPECT_EQ(TRAP_TRACE, self->t.si.si_code);
		EXPECT_DR6(DR6_STEP);

		sig = tracee_resume(&self->t, PTRACE_CONT, 0);
	} while (sig == SIGSTOP && --attempts);

	ASSERT_EQ(SIGTRAP, sig);
	EXPECT_EQ(CODE(0) + CODE_STEP, self->t.ip);
	EXPECT_EQ(TRAP_HWBKPT, self->t.si.si_code);
	EXPECT_DR6(2);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

/* The handler starts without RF and gets it back when it returns. */
TEST_F(tracees, signal_at_an_execution_breakpoint)
{
	__u8 calls = self->t.sh->calls[0];

	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_CONT, SIGUSR1));
	EXPECT_EQ(CODE(0), self->t.ip);
	EXPECT_EQ(calls, self->t.sh->calls[0]);
	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(calls + 2, self->t.sh->calls[0]);
}

TEST_F(tracees, signal_delivered_with_a_step)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	/* The step ends at the first instruction of the handler. */
	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_SINGLESTEP, SIGUSR1));
	EXPECT_NE(CODE(0), self->t.ip);
	EXPECT_EQ(DR6_CLEAN | 1, dr_peek(&self->t, 6));
	/* The handler calls the same function. */
	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_CONT, 0));
	EXPECT_EQ(CODE(0), self->t.ip);
	EXPECT_EQ(TRAP_HWBKPT, self->t.si.si_code);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

/* ---- DR6 ---- */

/* DRn watches a word in the nth line of DATA. Returns DR7. */
static unsigned long watch_with_all(struct __test_metadata *_metadata, struct tracee *t)
{
	unsigned long dr7 = 0;
	int n;

	for (n = 0; n < BP_SLOTS; n++) {
		EXPECT_EQ(0, dr_poke(t, n, DATA(64 * n)));
		dr7 |= dr7_on(n, RW_W, 4);
	}
	EXPECT_EQ(0, dr_poke(t, 7, dr7));

	return dr7;
}

TEST_F(registers, dr6_names_exactly_the_register_that_was_hit)
{
	int n;

	watch_with_all(_metadata, &self->t);
	for (n = BP_SLOTS - 1; n >= 0; n--) {
		EXPECT_EQ(1, do_store(&self->t, DATA(64 * n), 4));
		EXPECT_DR6(1UL << n);
	}
	EXPECT_EQ(0, do_store(&self->t, DATA(64 * BP_SLOTS), 4));
}

TEST_F(registers, one_instruction_may_hit_several_registers)
{
	EXPECT_EQ(0, dr_poke(&self->t, 0, CODE(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, CODE(1)));
	EXPECT_EQ(0, dr_poke(&self->t, 3, CODE(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_X, 1) | dr7_on(1, RW_X, 1) |
				   dr7_on(3, RW_X, 1)));
	EXPECT_EQ(1, do_call(&self->t, 0));
	EXPECT_DR6(1 | 8);
	EXPECT_EQ(1, do_call(&self->t, 1));
	EXPECT_DR6(2);
}

/* The processor reports all of them; TCG reports the first. */
TEST_F(registers, one_access_may_hit_several_registers)
{
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(128)));
	EXPECT_EQ(0, dr_poke(&self->t, 3, DATA(2)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, 4) | dr7_on(1, RW_W, 4) |
				   dr7_on(3, RW_RW, 1)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	if (bp_emulated())
		self->t.dr6 |= self->t.dr6 & (1 | 8) ? 1 | 8 : 0;
	EXPECT_DR6(1 | 8);
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 1));
	EXPECT_DR6(1);
	EXPECT_EQ(1, do_load(&self->t, DATA(0), 4));
	EXPECT_DR6(8);
}

TEST_F(registers, dr6_stays_until_the_next_trap)
{
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 3, DATA(64)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, 4) | dr7_on(3, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(DR6_CLEAN | 1, dr_peek(&self->t, 6));
	/* Neither a stop for another reason nor a write to DR7 changes DR6, ... */
	EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(3, RW_W, 4)));
	EXPECT_EQ(DR6_CLEAN | 1, dr_peek(&self->t, 6));
	/* ... the next trap replaces it. */
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(DR6_CLEAN | 8, dr_peek(&self->t, 6));
}

TEST_F(registers, dr6_cleared_by_hand_stays_clear)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 6, 0));
	EXPECT_EQ(0UL, dr_peek(&self->t, 6));
	EXPECT_EQ(0, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(0UL, dr_peek(&self->t, 6));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(DR6_CLEAN | 1, dr_peek(&self->t, 6));
}

/* ---- Changes of enabled registers ---- */

TEST_F(registers, control_first_then_address)
{
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(1, RW_W, 4)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(0)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_DR6(2);
	EXPECT_REGS(0, DATA(0), 0, 0, dr7_on(1, RW_W, 4));
}

TEST_F(registers, new_address_moves_an_enabled_breakpoint)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(64)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_DR6(1);
	EXPECT_REGS(DATA(64), 0, 0, 0, dr7_on(0, RW_W, 4));
}

TEST_F(registers, new_address_keeps_type_and_length)
{
	EXPECT_EQ(0, dr_set(&self->t, 1, DATA(0), dr7_on(1, RW_W, 2)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(64)));
	EXPECT_EQ(0, do_load(&self->t, DATA(64), 2));
	EXPECT_EQ(0, do_store(&self->t, DATA(66), 1));
	EXPECT_EQ(1, do_store(&self->t, DATA(65), 1));
	EXPECT_DR6(2);
	/* Off and on again: the event has the address of the register. */
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(1, RW_W, 2)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 2));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 2));
}

TEST_F(registers, disabled_register_keeps_its_address)
{
	int i;

	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, dr_set(&self->t, 2, DATA(8 * i), dr7_on(2, RW_W, BP_WORD)));
		EXPECT_EQ(1, do_store(&self->t, DATA(8 * i), BP_WORD));
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
		EXPECT_EQ(0, do_store(&self->t, DATA(8 * i), BP_WORD));
		EXPECT_REGS(0, 0, DATA(8 * i), 0, 0);
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(2, RW_W, BP_WORD)));
		EXPECT_EQ(1, do_store(&self->t, DATA(8 * i), BP_WORD));
		EXPECT_DR6(4);
	}
}

TEST_F(registers, type_and_length_change_in_place)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 1)));
	EXPECT_EQ(0, do_store(&self->t, DATA(BP_WORD - 1), 1));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, BP_WORD)));
	EXPECT_EQ(1, do_store(&self->t, DATA(BP_WORD - 1), 1));
	EXPECT_EQ(0, do_load(&self->t, DATA(0), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_RW, 4)));
	EXPECT_EQ(1, do_load(&self->t, DATA(0), 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(7), 1));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_X, 1)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 0, CODE(2)));
	EXPECT_EQ(1, do_call(&self->t, 2));
	EXPECT_DR6(1);
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_RW, 2)));
	EXPECT_EQ(0, do_call(&self->t, 2));
	EXPECT_EQ(1, do_load(&self->t, CODE(2), 1));
}

TEST_F(registers, writing_the_same_again_changes_nothing)
{
	int i;

	for (i = 0; i < 10; i++) {
		EXPECT_EQ(0, dr_set(&self->t, 1, DATA(4), dr7_on(1, RW_W, 4)));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(1, RW_W, 4)));
		EXPECT_EQ(1, do_store(&self->t, DATA(4), 4));
		EXPECT_DR6(2);
	}
}

TEST_F(registers, one_register_off_leaves_the_others_on)
{
	unsigned long dr7 = watch_with_all(_metadata, &self->t);
	int n;

	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7 & ~dr7_on(1, RW_W, 4)));
	for (n = 0; n < BP_SLOTS; n++)
		EXPECT_EQ(n != 1, do_store(&self->t, DATA(64 * n), 4));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_DR6(2);
}

/* ---- Orders of writes of known debuggers ---- */

/* Disable all, write the addresses, enable all; clear DR6 last. */
TEST_F(registers, order_off_addresses_on_status)
{
	unsigned long dr7 = DR7_LE | dr7_on(0, RW_W, 4) | dr7_on(1, RW_W, 2) | dr7_on(2, RW_RW, 1);
	int round;

	for (round = 0; round < 3; round++) {
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
		EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(128 * round)));
		EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(128 * round + 4)));
		EXPECT_EQ(0, dr_poke(&self->t, 2, DATA(128 * round + 6)));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7));
		EXPECT_EQ(0, dr_poke(&self->t, 6, 0));
		EXPECT_EQ(1, do_store(&self->t, DATA(128 * round + 6), 1));
		EXPECT_DR6(4);
		EXPECT_EQ(dr7, dr_peek(&self->t, 7));
	}
}

/* Enable with the shortest length, write the addresses, then the final fields. */
TEST_F(registers, order_on_addresses_fields)
{
	unsigned long on = dr7_on(0, RW_X, 1) | dr7_on(1, RW_X, 1);
	int round;

	for (round = 0; round < 3; round++) {
		EXPECT_EQ(0, dr_poke(&self->t, 6, 0));
		EXPECT_EQ(0, dr_poke(&self->t, 7, on));
		EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(8 * round)));
		EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(256 + round)));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, BP_WORD) | dr7_on(1, RW_RW, 1)));
		EXPECT_EQ(1, do_store(&self->t, DATA(8 * round + 3), 1));
		EXPECT_DR6(1);
		EXPECT_EQ(1, do_load(&self->t, DATA(256 + round), 1));
		EXPECT_DR6(2);
	}
}

/*
 * Write the fields, the addresses and DR6, enable all for a moment, then the final DR7.
 */
TEST_F(registers, order_fields_addresses_all_on_final)
{
	unsigned long dr7 = dr7_on(3, RW_W, 4) | dr7_field(0, RW_W, 2);

	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7 & 0xffff0000));
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(2)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 2, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 3, DATA(64)));
	EXPECT_EQ(0, dr_poke(&self->t, 6, DR6_CLEAN));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7 | 0x55));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7));
	EXPECT_REGS(DATA(2), 0, 0, DATA(64), dr7);
	EXPECT_EQ(0, do_store(&self->t, DATA(2), 2));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_DR6(8);
}

/* ---- Refusals ---- */

TEST_F(tracees, unknown_fields_are_refused)
{
	unsigned long code, field;
	int n;

	for (n = 0; n < BP_SLOTS; n++) {
		for (code = 0; code < 4; code++) {
			field = DR7_FIELD(n, RW_IO, code);
			EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, DR7_L(n) | field));
		}
		for (code = 1; code < 4; code++) {
			field = DR7_FIELD(n, RW_X, code);
			EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, DR7_G(n) | field));
		}
		EXPECT_EQ(0UL, dr_peek(&self->t, 7));
	}
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, unaligned_breakpoint_cannot_be_enabled)
{
	static const int lens[] = { 2, 4, BP_WORD };
	unsigned int i;
	int off;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (off = 1; off < lens[i]; off++) {
			EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(off)));
			EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, dr7_on(0, RW_W, lens[i])));
			EXPECT_REGS(DATA(off), 0, 0, 0, 0);
		}
		EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(lens[i])));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, lens[i])));
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	}
}

TEST_F(tracees, enabled_breakpoint_cannot_move_to_an_unaligned_address)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 0, DATA(66)));
	EXPECT_REGS(DATA(0), 0, 0, 0, dr7_on(0, RW_W, 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(66), 2));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_DR6(1);
}

TEST_F(tracees, unaligned_address_may_be_stored_while_off)
{
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(65)));
	EXPECT_EQ(DATA(65), dr_peek(&self->t, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, 1)));
	EXPECT_EQ(1, do_store(&self->t, DATA(65), 1));
}

TEST_F(tracees, refused_control_leaves_all_as_it_was)
{
	unsigned long good = dr7_on(0, RW_W, 4) | dr7_on(1, RW_RW, 1);

	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(0)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(64)));
	EXPECT_EQ(0, dr_poke(&self->t, 3, DATA(129)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, good));

	/* DR7: slot 0 off, slot 1 of another type, slot 2 new, slot 3 not aligned */
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, dr7_on(1, RW_X, 1) | dr7_on(2, RW_W, 1) |
					 dr7_on(3, RW_W, BP_WORD)));
	EXPECT_REGS(DATA(0), DATA(64), 0, DATA(129), good);
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_DR6(1);
	EXPECT_EQ(1, do_load(&self->t, DATA(64), 1));
	EXPECT_DR6(2);
	EXPECT_EQ(0, do_store(&self->t, DATA(128), 8));
}

TEST_F(tracees, anything_goes_in_the_field_of_an_unused_register)
{
	unsigned long junk;

	for (junk = 0; junk <= 0xffff; junk += 0x1111) {
		EXPECT_EQ(0, dr_poke(&self->t, 7, junk << 16));
		EXPECT_EQ(junk << 16, dr_peek(&self->t, 7));
	}
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, anything_goes_in_the_field_of_a_disabled_register)
{
	unsigned long junk;

	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(0, dr_poke(&self->t, 1, DATA(65)));
	for (junk = 0; junk <= 0xffff; junk += 0x1111) {
		ASSERT_EQ(0, dr_poke(&self->t, 7, junk << 16)) {
			TH_LOG("fields %#lx", junk);
		}
		EXPECT_EQ(junk << 16, dr_peek(&self->t, 7));
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	}
	EXPECT_REGS(DATA(0), DATA(65), 0, 0, 0);
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, disabled_register_takes_an_address_that_its_field_does_not_fit)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_field(0, RW_W, 4)));
	EXPECT_EQ(0, dr_poke(&self->t, 0, DATA(65)));
	EXPECT_EQ(DATA(65), dr_peek(&self->t, 0));
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, dr7_on(0, RW_W, 4)));
	EXPECT_EQ(dr7_field(0, RW_W, 4), dr_peek(&self->t, 7));
}

#ifdef TRACER_IS_64BIT
static unsigned long task_size_max(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	unsigned long max = (1UL << 47) - 4096;
	char line[8192];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "flags", 5) && strstr(line, " la57"))
			max = (1UL << 56) - 4096;
	}
	if (f)
		fclose(f);
	return max;
}

TEST_F(tracees, kernel_address_is_refused)
{
	const unsigned long max = task_size_max();
	const unsigned long bad[] = {
		max, max + 4096, 1UL << 63, 0xffff800000000000UL, 0xffffffff81000000UL,
		0xffffffffff600000UL, ~7UL, ~0UL,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, dr_poke(&self->t, 0, bad[i])) {
			TH_LOG("address %#lx", bad[i]);
		}
		EXPECT_EQ(0UL, dr_peek(&self->t, 0));
	}
	EXPECT_EQ(0, dr_set(&self->t, 0, max - 1, dr7_on(0, RW_W, 1)));
	EXPECT_EQ(0, dr_poke(&self->t, 0, max - 8));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, BP_WORD)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracees, enabled_breakpoint_cannot_move_to_a_kernel_address)
{
	static const enum dr7_rw types[] = { RW_W, RW_RW, RW_X };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, types[i], 1)));
		EXPECT_EQ(-EINVAL, dr_poke(&self->t, 0, 0xffffffff81000000UL));
		EXPECT_EQ(-EINVAL, dr_poke(&self->t, 0, ~0UL));
		EXPECT_REGS(CODE(0), 0, 0, 0, dr7_on(0, types[i], 1));
		/* The store damages the function, which is not called any more. */
		EXPECT_EQ(types[i] != RW_X, do_store(&self->t, CODE(0), 1));
	}
}

/* A 64-bit tracer may write addresses that a 32-bit tracee cannot access. */
TEST_F(tracees, address_above_4g_is_accepted_for_any_tracee)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, 0x100000000UL + DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(0x100000000UL + DATA(0), dr_peek(&self->t, 0));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}
#elif BP_WORD == 8
TEST_F(tracees, every_32bit_address_is_a_user_address)
{
	EXPECT_EQ(0, dr_set(&self->t, 0, 0xffffffffUL, dr7_on(0, RW_W, 1)));
	EXPECT_EQ(0xffffffffUL, dr_peek(&self->t, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 0, 0xfffffff8UL));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, BP_WORD)));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
}
#endif

int main(int argc, char **argv)
{
	tracee_main(argc, argv);
	return test_harness_run(argc, argv);
}
