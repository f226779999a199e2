// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that cause more than one debug exception, or a hit at a moment of its own,
 * as a debugger sees them: it stops once for what one instruction caused, after the
 * instruction, with all causes in DR6.
 */
#include "ptrace_run.h"

extern const char insn_store[], insn_stored[], insn_copy[], insn_copied[], insn_mov_ss[],
	insn_mov_ss_end[], insn_mov_ss_int3[], insn_mov_ss_int3_end[], insn_mov_ss_syscall[],
	insn_icebp[], insn_icebp_end[], insn_rep[], insn_rep_end[];

asm(".pushsection .text, \"ax\", @progbits\n"
	"insn_store:\n"
	"	movl	$1, (%rdi)\n"
	"insn_stored:\n"
	"	ud2\n"
	"insn_copy:\n"
	"	pushq	(%rdi)\n"
	"insn_copied:\n"
	"	ud2\n"
	"insn_mov_ss:\n"
	"	movw	(%rdi), %ss\n"
	"	nop\n"
	"insn_mov_ss_end:\n"
	"	ud2\n"
	"insn_mov_ss_int3:\n"
	"	movw	(%rdi), %ss\n"
	"	int3\n"
	"insn_mov_ss_int3_end:\n"
	"	ud2\n"
	"insn_mov_ss_syscall:\n"
	"	movw	(%rdi), %ss\n"
	"	syscall\n"
	"	ud2\n"
	"insn_icebp:\n"
	"	.byte	0xf1\n"
	"insn_icebp_end:\n"
	"	ud2\n"
	"insn_rep:\n"
	"	rep stosb\n"
	"insn_rep_end:\n"
	"	ud2\n"
	"	.popsection\n");

#define BYTES		64
#define FLAG_RF		0x10000UL

static union {
	__u64 word;
	__u16 ss;
	char bytes[BYTES];
} data __aligned(64);

static __u64 stack[64] __aligned(16);

#define STACK_TOP	(stack + 63)

FIXTURE(insn) {
	struct tracee t;
	struct operands ops;
};

FIXTURE_SETUP(insn)
{
	asm("movw %%ss, %0" : "=m"(data.ss));
	self->ops = (struct operands) { .rsp = STACK_TOP, .rdi = &data };
	self->t = (struct tracee) { .fd = -1 };
	if (bp_emulated())
		SKIP(return, "TCG has none of these");
	ASSERT_TRUE(run_spawn(&self->t));
}

FIXTURE_TEARDOWN(insn)
{
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

/* Watches with register @n, too. */
static void watch(struct __test_metadata *_metadata, struct tracee *t, int n, const void *addr,
		  enum dr7_rw rw, int len)
{
	unsigned long dr7 = dr_peek(t, 7) | dr7_on(n, rw, len);

	ASSERT_EQ(0, dr_set(t, n, (unsigned long)addr, dr7));
}

#define RUN(insn, request)	run_insn(&self->t, insn, self->ops, request)

static void expect_stop(struct __test_metadata *_metadata, const struct stop *stop, int code,
			unsigned long dr6, const char *ip)
{
	EXPECT_EQ(SIGTRAP, stop->sig);
	EXPECT_EQ(code, stop->code);
	EXPECT_EQ(DR6_CLEAN | dr6, stop->dr6);
	EXPECT_EQ((unsigned long)ip, stop->ip);
}

static void expect_one_stop(struct __test_metadata *_metadata, const struct run *run, int code,
			    unsigned long dr6, const char *ip)
{
	ASSERT_EQ(2, run->nr);
	expect_stop(_metadata, &run->stop[0], code, dr6, ip);
	EXPECT_EQ(SIGILL, run->stop[1].sig);
}

TEST_F(insn, step_over_a_hit_is_one_stop)
{
	struct run run;

	watch(_metadata, &self->t, 2, &data, RW_W, 4);
	run = RUN(insn_copy, PTRACE_SINGLESTEP);
	expect_one_stop(_metadata, &run, TRAP_TRACE, DR6_STEP, insn_copied);
	watch(_metadata, &self->t, 1, &data, RW_RW, 4);
	run = RUN(insn_copy, PTRACE_SINGLESTEP);
	expect_one_stop(_metadata, &run, TRAP_TRACE, DR6_STEP | 2, insn_copied);
}

TEST_F(insn, several_watchpoints_on_one_address_are_one_stop)
{
	struct run run;

	watch(_metadata, &self->t, 0, &data, RW_W, 4);
	watch(_metadata, &self->t, 1, &data, RW_RW, 4);
	watch(_metadata, &self->t, 3, &data, RW_W, 1);
	run = RUN(insn_store, PTRACE_CONT);
	expect_one_stop(_metadata, &run, TRAP_HWBKPT, 1 | 2 | 8, insn_stored);
}

TEST_F(insn, load_and_store_of_one_instruction_are_one_stop)
{
	struct run run;

	watch(_metadata, &self->t, 0, &data, RW_RW, 8);
	watch(_metadata, &self->t, 3, STACK_TOP - 1, RW_W, 8);
	run = RUN(insn_copy, PTRACE_CONT);
	expect_one_stop(_metadata, &run, TRAP_HWBKPT, 1 | 8, insn_copied);
	run = RUN(insn_copy, PTRACE_SINGLESTEP);
	expect_one_stop(_metadata, &run, TRAP_TRACE, DR6_STEP | 1 | 8, insn_copied);
}

/* Debug exceptions wait until the instruction behind a load of SS has been executed. */
TEST_F(insn, hit_of_a_load_of_ss_stops_one_instruction_later)
{
	struct run run;

	watch(_metadata, &self->t, 0, &data, RW_RW, 2);
	run = RUN(insn_mov_ss, PTRACE_CONT);
	expect_one_stop(_metadata, &run, TRAP_HWBKPT, 1, insn_mov_ss_end);
	run = RUN(insn_mov_ss, PTRACE_SINGLESTEP);
	expect_one_stop(_metadata, &run, TRAP_TRACE, DR6_STEP | 1, insn_mov_ss_end);
}

/*
 * If that instruction enters the kernel, the hit comes there, where the kernel drops it: it
 * must neither harm the kernel nor change what the instruction does.
 */
TEST_F(insn, hit_of_a_load_of_ss_is_harmless_at_int3)
{
	struct run run;

	watch(_metadata, &self->t, 0, &data, RW_RW, 2);
	for (int i = 0; i < 10; i++) {
		run = RUN(insn_mov_ss_int3, PTRACE_CONT);
		ASSERT_EQ(2, run.nr);
		EXPECT_EQ(SIGTRAP, run.stop[0].sig);
		EXPECT_EQ(SI_KERNEL, run.stop[0].code);
		EXPECT_EQ((unsigned long)insn_mov_ss_int3_end, run.stop[0].ip);
		EXPECT_EQ(SIGILL, run.stop[1].sig);
	}
}

TEST_F(insn, hit_of_a_load_of_ss_is_harmless_at_a_system_call)
{
	struct run run;

	watch(_metadata, &self->t, 0, &data, RW_RW, 2);
	self->ops.rax = __NR_getpid;
	for (int i = 0; i < 10; i++) {
		run = RUN(insn_mov_ss_syscall, PTRACE_CONT);
		ASSERT_LE(1, run.nr);
		EXPECT_EQ(SIGILL, run.stop[run.nr - 1].sig);
		EXPECT_EQ(self->t.pid, run.stop[run.nr - 1].rax);
	}
}

TEST_F(insn, int1_stops_without_a_cause)
{
	struct run run = RUN(insn_icebp, PTRACE_CONT);

	expect_one_stop(_metadata, &run, TRAP_BRKPT, 0, insn_icebp_end);
}

TEST_F(insn, int1_behind_a_breakpoint_is_a_stop_of_its_own)
{
	struct run run;

	watch(_metadata, &self->t, 1, insn_icebp, RW_X, 1);
	run = RUN(insn_icebp, PTRACE_CONT);
	ASSERT_EQ(3, run.nr);
	expect_stop(_metadata, &run.stop[0], TRAP_HWBKPT, 2, insn_icebp);
	expect_stop(_metadata, &run.stop[1], TRAP_BRKPT, 0, insn_icebp_end);
	EXPECT_EQ(SIGILL, run.stop[2].sig);
}

/* A processor that stores several bytes at a time may stop some of them later. */
static void expect_stop_in_the_middle(struct __test_metadata *_metadata, const struct stop *stop)
{
	expect_stop(_metadata, stop, TRAP_HWBKPT, 1, stop->rcx ? insn_rep : insn_rep_end);
	EXPECT_GE(BYTES / 2 - 1, stop->rcx);
}

TEST_F(insn, hit_of_a_repeated_store_is_one_stop)
{
	struct run run;

	self->ops.rcx = BYTES;
	watch(_metadata, &self->t, 0, data.bytes + BYTES / 2, RW_W, 1);
	for (int i = 0; i < 10; i++) {
		self->ops.rax = i;
		run = RUN(insn_rep, PTRACE_CONT);
		ASSERT_EQ(2, run.nr);
		expect_stop_in_the_middle(_metadata, &run.stop[0]);
		EXPECT_EQ(SIGILL, run.stop[1].sig);
		EXPECT_EQ(0UL, run.stop[1].rcx);
		EXPECT_EQ(0x0101010101010101UL * i,
			  ptrace(PTRACE_PEEKDATA, self->t.pid, data.bytes + BYTES - 8, 0));
	}
}

/* RF keeps a breakpoint on the instruction from a second hit when it continues. */
TEST_F(insn, breakpoint_on_a_repeated_store_with_a_hit_stops_once)
{
	struct run run;

	self->ops.rcx = BYTES;
	watch(_metadata, &self->t, 0, data.bytes + BYTES / 2, RW_W, 1);
	watch(_metadata, &self->t, 1, insn_rep, RW_X, 1);
	for (int i = 0; i < 10; i++) {
		run = RUN(insn_rep, PTRACE_CONT);
		if (run.stop[1].rcx && !(run.stop[1].flags & FLAG_RF))
			SKIP(return, "the CPU does not set RF between two iterations");
		ASSERT_EQ(3, run.nr);
		expect_stop(_metadata, &run.stop[0], TRAP_HWBKPT, 2, insn_rep);
		EXPECT_EQ((unsigned long)BYTES, run.stop[0].rcx);
		expect_stop_in_the_middle(_metadata, &run.stop[1]);
		EXPECT_EQ(SIGILL, run.stop[2].sig);
	}
}

TEST_HARNESS_MAIN
