// SPDX-License-Identifier: GPL-2.0
/*
 * Watchpoints of ptrace that are hit by an instruction with a uprobe, of which uprobes
 * executes a copy in a single step. The debugger must see the same stops as without the
 * uprobe. An instruction that the kernel emulates, such as push, is not tested: accesses
 * of the kernel hit no watchpoint of ptrace.
 */
#include "ptrace_run.h"

/* The call writes to the stack, the others access *word. */
extern const char insn_store[], insn_relative[], insn_load[], insn_indirect[], callee[];

asm(".pushsection .text, \"ax\", @progbits\n"
	"insn_store:\n"
	"	movl	$1, (%rdi)\n"
	"	ud2\n"
	"insn_relative:\n"
	"	movl	$1, word(%rip)\n"
	"	ud2\n"
	"insn_load:\n"
	"	movl	(%rdi), %ecx\n"
	"	ud2\n"
	"insn_indirect:\n"
	"	call	*%rax\n"
	"	ud2\n"
	"callee:\n"
	"	ud2\n"
	"	.popsection\n");

__u64 word __aligned(8);
static __u64 stack[64] __aligned(16);

#define STACK_TOP	(stack + 63)

/* ---- The uprobe ---- */

/* Returns the offset of @addr in the file of this program, or -1. */
static long file_offset(const char *addr)
{
	unsigned long start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	long found = -1;

	if (!maps)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    (unsigned long)addr >= start && (unsigned long)addr < end)
			found = (unsigned long)addr - start + offset;
	}
	fclose(maps);

	return found;
}

/* Opens an event that counts the hits of a uprobe at @insn. */
static int open_uprobe(pid_t pid, const char *insn)
{
	struct perf_event_attr attr = {
		.type		= bp_read_number(BP_PMUS "uprobe/type"),
		.size		= sizeof(attr),
		.uprobe_path	= (unsigned long)"/proc/self/exe",
		.probe_offset	= file_offset(insn),
	};

	return bp_open(&attr, pid, -1);
}

/* ---- The tests ---- */

FIXTURE(uprobe) {
	struct tracee t;
	int fd;
};

FIXTURE_VARIANT(uprobe) {
	const char *insn;
	const void *addr;
	enum dr7_rw rw;
};

FIXTURE_VARIANT_ADD(uprobe, store) {
	.insn		= insn_store,
	.addr		= &word,
	.rw		= RW_W,
};

FIXTURE_VARIANT_ADD(uprobe, relative) {
	.insn		= insn_relative,
	.addr		= &word,
	.rw		= RW_W,
};

FIXTURE_VARIANT_ADD(uprobe, load) {
	.insn		= insn_load,
	.addr		= &word,
	.rw		= RW_RW,
};

FIXTURE_VARIANT_ADD(uprobe, indirect) {
	.insn		= insn_indirect,
	.addr		= STACK_TOP - 1,
	.rw		= RW_W,
};

FIXTURE_SETUP(uprobe)
{
	self->fd = -1;
	self->t = (struct tracee) { .fd = -1 };
	BP_NEED_ROOT();
	if (access(BP_PMUS "uprobe/type", R_OK))
		SKIP(return, "no uprobes in this kernel");

	ASSERT_TRUE(run_spawn(&self->t));
}

FIXTURE_TEARDOWN(uprobe)
{
	if (self->fd >= 0)
		close(self->fd);
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

static int watch(struct tracee *t, const void *addr, enum dr7_rw rw)
{
	return dr_set(t, 0, (unsigned long)addr, dr7_on(0, rw, 4));
}

/* Compares two runs with @request without and with the uprobe. Returns the first one. */
static struct run compare_runs(struct __test_metadata *_metadata, FIXTURE_DATA(uprobe) *self,
			       const char *insn, int request)
{
	struct operands ops = {
		.rsp	= STACK_TOP,
		.rdi	= &word,
		.rax	= (unsigned long)callee,
	};
	struct run without, with;

	without = run_insn(&self->t, insn, ops, request);
	self->fd = open_uprobe(self->t.pid, insn);
	EXPECT_LE(0, self->fd);
	with = run_insn(&self->t, insn, ops, request);
	EXPECT_EQ(1, bp_count(self->fd));

	EXPECT_EQ(without.nr, with.nr);
	for (int i = 0; i < without.nr; i++) {
		struct stop *a = &without.stop[i], *b = &with.stop[i];

		EXPECT_EQ(a->sig, b->sig);
		EXPECT_EQ(a->code, b->code);
		EXPECT_EQ(a->addr, b->addr);
		/* At another stop, DR6 may show the step of uprobes. */
		if (a->sig == SIGTRAP)
			EXPECT_EQ(a->dr6, b->dr6);
		EXPECT_EQ(a->ip, b->ip);
		EXPECT_EQ(a->sp, b->sp);
		EXPECT_EQ(a->flags, b->flags);
		EXPECT_EQ(a->rcx, b->rcx);
		EXPECT_EQ(a->pushed, b->pushed);
	}

	return without;
}

TEST_F(uprobe, leaves_a_hit_to_the_debugger)
{
	struct run run;

	if (bp_emulated())
		SKIP(return, "TCG hangs at a data breakpoint in a single step");
	ASSERT_EQ(0, watch(&self->t, variant->addr, variant->rw));
	run = compare_runs(_metadata, self, variant->insn, PTRACE_CONT);
	ASSERT_EQ(2, run.nr);
	EXPECT_EQ(SIGTRAP, run.stop[0].sig);
	EXPECT_EQ(TRAP_HWBKPT, run.stop[0].code);
	EXPECT_EQ(DR6_CLEAN | 1, run.stop[0].dr6);
	EXPECT_EQ(SIGILL, run.stop[1].sig);
}

TEST_F(uprobe, leaves_a_hit_in_a_single_step_to_the_debugger)
{
	struct run run;

	if (bp_emulated())
		SKIP(return, "TCG hangs at a data breakpoint in a single step");
	ASSERT_EQ(0, watch(&self->t, variant->addr, variant->rw));
	run = compare_runs(_metadata, self, variant->insn, PTRACE_SINGLESTEP);
	ASSERT_EQ(2, run.nr);
	EXPECT_EQ(SIGTRAP, run.stop[0].sig);
	EXPECT_EQ(TRAP_TRACE, run.stop[0].code);
	EXPECT_EQ(DR6_CLEAN | DR6_STEP | 1, run.stop[0].dr6);
	EXPECT_EQ(SIGILL, run.stop[1].sig);
}

TEST_F(uprobe, causes_no_stop_without_a_hit)
{
	struct run run;

	ASSERT_EQ(0, watch(&self->t, stack, RW_RW));
	run = compare_runs(_metadata, self, variant->insn, PTRACE_CONT);
	ASSERT_EQ(1, run.nr);
	EXPECT_EQ(SIGILL, run.stop[0].sig);
}

/* The hit of a perf event is no stop. */
TEST_F(uprobe, leaves_a_hit_to_perf)
{
	__u32 type = variant->rw == RW_W ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
	struct perf_event_attr attr = bp_attr(type, variant->addr, HW_BREAKPOINT_LEN_4);
	struct run run;
	int fd;

	if (bp_emulated())
		SKIP(return, "TCG hangs at a data breakpoint in a single step");
	fd = bp_open(&attr, self->t.pid, -1);
	ASSERT_LE(0, fd);
	run = compare_runs(_metadata, self, variant->insn, PTRACE_CONT);
	ASSERT_EQ(1, run.nr);
	EXPECT_EQ(SIGILL, run.stop[0].sig);
	EXPECT_EQ(2, bp_count(fd));
	close(fd);
}

TEST_HARNESS_MAIN
