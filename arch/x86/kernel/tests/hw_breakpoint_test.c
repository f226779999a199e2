// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the x86 debug registers: what attributes become, and that each
 * CPU's registers hold what its books say.
 *
 * The registers are read back from the processor after each step.  Whether one
 * was written cannot be read back; where it matters, the test puts a mark into a
 * register behind the back of the code, and a mark that is still there was not
 * written over.
 *
 * Every case ends with nothing armed on any CPU.
 */

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/kgdb.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/memory.h>
#include <linux/mutex.h>
#include <linux/nmi.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/smp.h>

#include <asm/apic.h>
#include <asm/cpu_entry_area.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/dr7.h>
#include <asm/hw_breakpoint.h>
#include <asm/idtentry.h>
#include <asm/insn.h>
#include <asm/insn-eval.h>
#include <asm/nmi.h>
#include <asm/nospec-branch.h>
#include <asm/processor.h>
#include <asm/sections.h>
#include <asm/text-patching.h>
#include <asm/tlbflush.h>

#include "../../../../kernel/events/bp_internal.h"
#include "../kgdb_breakpoint.h"

#define NR_WORDS	8

/* What is watched. */
static unsigned long words[NR_WORDS];

/* struct regs - the registers of a CPU, and what its books say of DR7 */
struct regs {
	unsigned long	addr[HBP_NUM];
	unsigned long	dr7;
	unsigned long	books;
	int		cpu;
};

/* struct hits - what a handler saw */
struct hits {
	atomic_t	nr;
	unsigned long	ip;
};

/**
 * struct fixture - what a case works with
 * @bp: its breakpoints
 * @hits: of each word
 * @cpu: the CPU that the case runs on
 */
struct fixture {
	struct perf_event	*bp[NR_WORDS];
	struct hits		hits[NR_WORDS];
	int			cpu;
};

/* ---- Accesses and hits ---- */

static noinline __noclone void write_word(int i)
{
	WRITE_ONCE(words[i], i);
}

static noinline __noclone void called(void)
{
	/* Keeps the calls. */
	barrier();
}

static void record_hit(struct perf_event *bp, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct hits *hits = bp->overflow_handler_context;

	atomic_inc(&hits->nr);
	hits->ip = instruction_pointer(regs);
}

static int take_hits(struct fixture *f, int i)
{
	return atomic_xchg(&f->hits[i].nr, 0);
}

/* Hits of one write; with interrupts off too. */
static int write_hits(struct fixture *f, int i)
{
	atomic_set(&f->hits[i].nr, 0);
	write_word(i);
	return take_hits(f, i);
}

/* ---- Registers ---- */

static void read_regs(struct regs *regs)
{
	unsigned long flags;

	local_irq_save(flags);
	get_debugreg(regs->addr[0], 0);
	get_debugreg(regs->addr[1], 1);
	get_debugreg(regs->addr[2], 2);
	get_debugreg(regs->addr[3], 3);
	get_debugreg(regs->dr7, 7);
	regs->dr7 &= ~DR7_FIXED_1;
	regs->books = this_cpu_read(cpu_dr7);
	regs->cpu = smp_processor_id();
	local_irq_restore(flags);
}

static int nr_enabled(const struct regs *regs)
{
	int slot, nr = 0;

	for (slot = 0; slot < HBP_NUM; slot++)
		nr += dr7_enabled(regs->dr7, slot);

	return nr;
}

/* The one slot that is armed for an address; -1 if that is none or several. */
static int slot_at(const struct regs *regs, const void *addr)
{
	int slot, found = -1;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(regs->dr7, slot) ||
		    regs->addr[slot] != (unsigned long)addr)
			continue;
		if (found >= 0)
			return -1;
		found = slot;
	}

	return found;
}

/* Reads the registers, which have to be what the books say. */
static struct regs regs_now(struct kunit *test)
{
	struct regs regs;

	read_regs(&regs);
	KUNIT_EXPECT_EQ(test, regs.dr7, regs.books);
	return regs;
}

static int slot_now(struct kunit *test, const void *addr)
{
	struct regs regs = regs_now(test);

	return slot_at(&regs, addr);
}

/* A bit of DR7 that nobody sets; a write of DR7 clears it. */
static void mark_dr7(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	set_debugreg(dr7 | DR_LOCAL_SLOWDOWN, 7);
}

static bool dr7_mark_stands(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	return dr7 & DR_LOCAL_SLOWDOWN;
}

/* ---- Breakpoints ---- */

static struct perf_event_attr watch(const void *addr, u64 len, u32 type)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)addr;
	attr.bp_len = len;
	attr.bp_type = type;

	return attr;
}

/* A breakpoint of this CPU with the hits of word @i. */
static struct perf_event *arm(struct kunit *test, int i, struct perf_event_attr attr)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_NULL(test, f->bp[i]);
	f->bp[i] = perf_event_create_kernel_counter(&attr, f->cpu, NULL, record_hit,
						    &f->hits[i]);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[i]);

	return f->bp[i];
}

static struct perf_event *arm_word(struct kunit *test, int i)
{
	return arm(test, i, watch(&words[i], sizeof(words[i]), HW_BREAKPOINT_W));
}

/* A breakpoint that has its register in the books and is not armed. */
static struct perf_event *hold_word(struct kunit *test, int i, int word)
{
	struct perf_event_attr attr = watch(&words[word], sizeof(words[word]),
					    HW_BREAKPOINT_W);

	attr.disabled = 1;
	return arm(test, i, attr);
}

static void drop(struct kunit *test, int i)
{
	struct fixture *f = test->priv;

	unregister_hw_breakpoint(f->bp[i]);
	f->bp[i] = NULL;
}

static int parse(u64 addr, u64 len, u32 type, struct arch_hw_breakpoint *hw)
{
	struct perf_event_attr attr = watch((void *)addr, len, type);

	return hw_breakpoint_arch_parse(NULL, &attr, hw);
}

static int verdict(u64 addr, u64 len, u32 type)
{
	struct arch_hw_breakpoint hw;

	return parse(addr, len, type, &hw);
}

/* ---- Cases: DR7 as a value ---- */

static void expect_slot_set(struct kunit *test, unsigned long before, int slot,
			    unsigned int ctl)
{
	unsigned long after = dr7_set(before, slot, ctl);
	int other;

	KUNIT_EXPECT_TRUE(test, dr7_enabled(after, slot));
	KUNIT_EXPECT_EQ(test, after & DR7_ENABLE(slot), DR7_ENABLE_GLOBAL(slot));
	KUNIT_EXPECT_EQ(test, dr7_ctl(after, slot), ctl);
	KUNIT_EXPECT_EQ(test, dr7_ctl_rw(dr7_ctl(after, slot)), ctl & 3);
	KUNIT_EXPECT_EQ(test, (before ^ after) & ~(3UL << 2 * slot | 0xfUL << (16 + 4 * slot)),
			0UL);

	for (other = 0; other < HBP_NUM; other++) {
		if (other == slot)
			continue;
		KUNIT_EXPECT_EQ(test, dr7_enabled(after, other), dr7_enabled(before, other));
		KUNIT_EXPECT_EQ(test, dr7_ctl(after, other), dr7_ctl(before, other));
	}
}

static void a_slot_takes_every_control_field_and_touches_no_other(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int ctl, slot, i;

	prandom_seed_state(&rnd, 7);
	for (slot = 0; slot < HBP_NUM; slot++) {
		for (ctl = 0; ctl <= DR7_CTL_MASK; ctl++) {
			expect_slot_set(test, 0, slot, ctl);
			expect_slot_set(test, ~0UL, slot, ctl);
			for (i = 0; i < 8; i++)
				expect_slot_set(test, prandom_u32_state(&rnd), slot, ctl);
		}
	}
}

static void clearing_a_slot_removes_all_of_it_and_nothing_else(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int slot, i;

	prandom_seed_state(&rnd, 77);
	for (slot = 0; slot < HBP_NUM; slot++) {
		unsigned long bits = 3UL << 2 * slot | 0xfUL << (16 + 4 * slot);

		KUNIT_EXPECT_EQ(test, dr7_clear(~0UL, slot), ~bits);
		KUNIT_EXPECT_EQ(test, dr7_clear(bits, slot), 0UL);
		KUNIT_EXPECT_EQ(test, dr7_clear(0, slot), 0UL);
		for (i = 0; i < 64; i++) {
			unsigned long before = prandom_u32_state(&rnd);

			KUNIT_EXPECT_EQ(test, dr7_clear(before, slot), before & ~bits);
		}
	}
}

static void either_enable_bit_enables_a_slot(struct kunit *test)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		KUNIT_EXPECT_TRUE(test, dr7_enabled(1UL << 2 * slot, slot));
		KUNIT_EXPECT_TRUE(test, dr7_enabled(2UL << 2 * slot, slot));
		KUNIT_EXPECT_FALSE(test, dr7_enabled(~(3UL << 2 * slot), slot));
	}
}

static void lengths_and_their_bits_are_inverse(struct kunit *test)
{
	unsigned int bytes, rw, seen = 0;

	for (bytes = 1; bytes <= 8; bytes *= 2) {
		KUNIT_EXPECT_EQ(test, dr7_len(bytes) & ~0xcU, 0U);
		seen |= 1U << dr7_len(bytes) / 4;
		for (rw = 0; rw < 4; rw++)
			KUNIT_EXPECT_EQ(test, dr7_ctl_bytes(dr7_len(bytes) | rw), bytes);
	}
	KUNIT_EXPECT_EQ(test, seen, 0xfU);

	/* As the processors have it: 8 is out of line. */
	KUNIT_EXPECT_EQ(test, dr7_len(1), 0x0U);
	KUNIT_EXPECT_EQ(test, dr7_len(2), 0x4U);
	KUNIT_EXPECT_EQ(test, dr7_len(4), 0xcU);
	KUNIT_EXPECT_EQ(test, dr7_len(8), 0x8U);
}

/* ---- Cases: from attributes to registers ---- */

static bool has_masks(void)
{
	return boot_cpu_has(X86_FEATURE_BPEXT);
}

/* What the manuals say, one byte at a time. */
static int data_verdict(unsigned long addr, unsigned long len)
{
	if (!len || (len & (len - 1)) || addr % len)
		return -EINVAL;
	if (len > 8 && !has_masks())
		return -EOPNOTSUPP;
	return 0;
}

static void expect_data_verdicts(struct kunit *test, unsigned long base, u32 type)
{
	unsigned long offset, len;

	for (offset = 0; offset < 64; offset++) {
		for (len = 0; len <= 65; len++)
			KUNIT_EXPECT_EQ_MSG(test, verdict(base + offset, len, type),
					    data_verdict(offset, len), "%lu bytes at %lx",
					    len, base + offset);
	}
}

static void a_data_breakpoint_is_a_power_of_two_long_and_aligned(struct kunit *test)
{
	unsigned long bases[] = {
		0, 0x10000, TASK_SIZE_MAX - 128, ALIGN((unsigned long)words, 64),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		expect_data_verdicts(test, bases[i], HW_BREAKPOINT_W);
		expect_data_verdicts(test, bases[i], HW_BREAKPOINT_RW);
	}
}

static void an_instruction_breakpoint_has_one_length_and_any_address(struct kunit *test)
{
	unsigned long offset, len;

	for (len = 0; len <= 16; len++)
		KUNIT_EXPECT_EQ_MSG(test, verdict(0x1000, len, HW_BREAKPOINT_X),
				    len == sizeof(long) ? 0 : -EINVAL, "%lu bytes", len);
	for (offset = 0; offset < 16; offset++)
		KUNIT_EXPECT_EQ(test, verdict(0x1000 + offset, sizeof(long), HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, verdict((unsigned long)called, sizeof(long), HW_BREAKPOINT_X), 0);
}

static void a_kind_that_registers_do_not_know_is_refused(struct kunit *test)
{
	static const u32 types[] = {
		HW_BREAKPOINT_EMPTY, HW_BREAKPOINT_R, HW_BREAKPOINT_INVALID,
		HW_BREAKPOINT_W | HW_BREAKPOINT_X, HW_BREAKPOINT_R | HW_BREAKPOINT_X,
		8, 8 | HW_BREAKPOINT_W, ~0U,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		KUNIT_EXPECT_EQ_MSG(test, verdict(0x1000, sizeof(long), types[i]), -EINVAL,
				    "type %x", types[i]);
}

static void a_range_that_wraps_around_is_refused(struct kunit *test)
{
	unsigned long last = ~0UL;

	KUNIT_EXPECT_EQ(test, verdict(last - 6, 8, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(last, 8, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(last - 7, 8, HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, verdict(last - 7, 8, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, verdict(last, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, verdict(last, 2, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(0x1000, last, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(0x1000, last - 0xfff, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(0, last, HW_BREAKPOINT_X), -EINVAL);
}

static void expect_ctl(struct kunit *test, u64 addr, u64 len, u32 type, unsigned int ctl)
{
	struct arch_hw_breakpoint hw;

	memset(&hw, 0xff, sizeof(hw));
	KUNIT_EXPECT_EQ(test, parse(addr, len, type, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw.address, (unsigned long)addr);
	KUNIT_EXPECT_EQ(test, (unsigned int)hw.ctl, ctl);
	KUNIT_EXPECT_EQ(test, hw.mask, 0U);
}

static void the_control_field_says_what_was_asked_for(struct kunit *test)
{
	expect_ctl(test, 0x1000, 1, HW_BREAKPOINT_W, 0x1);
	expect_ctl(test, 0x1000, 2, HW_BREAKPOINT_W, 0x5);
	expect_ctl(test, 0x1000, 4, HW_BREAKPOINT_W, 0xd);
	expect_ctl(test, 0x1000, 8, HW_BREAKPOINT_W, 0x9);
	expect_ctl(test, 0x1008, 1, HW_BREAKPOINT_RW, 0x3);
	expect_ctl(test, 0x1008, 2, HW_BREAKPOINT_RW, 0x7);
	expect_ctl(test, 0x1008, 4, HW_BREAKPOINT_RW, 0xf);
	expect_ctl(test, 0x1008, 8, HW_BREAKPOINT_RW, 0xb);
	expect_ctl(test, 0x1003, 8, HW_BREAKPOINT_X, 0x0);
}

static void a_long_range_needs_address_masks(struct kunit *test)
{
	struct arch_hw_breakpoint hw;
	unsigned long len;

	for (len = 16; len <= 4096; len *= 2) {
		int err = parse(0x10000, len, HW_BREAKPOINT_W, &hw);

		KUNIT_EXPECT_EQ_MSG(test, err, has_masks() ? 0 : -EOPNOTSUPP, "%lu bytes", len);
		if (err)
			continue;
		KUNIT_EXPECT_EQ(test, (unsigned long)hw.mask, len - 1);
		KUNIT_EXPECT_EQ(test, (unsigned int)hw.ctl, 0x1U);
	}
	KUNIT_EXPECT_EQ(test, verdict(0, 1UL << 33, HW_BREAKPOINT_W), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, amd_get_dr_addr_mask(0), 0UL);
}

/* Any byte of it, alone and as part of more. */
static void expect_never_watched(struct kunit *test, const char *what, int cpu,
				 const void *base, size_t size)
{
	unsigned long first = (unsigned long)base;
	unsigned long last = first + size - 1;
	unsigned long addr[] = { first, first + size / 2, last };
	int i;

	for (i = 0; i < ARRAY_SIZE(addr); i++) {
		KUNIT_EXPECT_EQ_MSG(test, verdict(addr[i], 1, HW_BREAKPOINT_W), -EINVAL,
				    "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, verdict(addr[i], 1, HW_BREAKPOINT_RW), -EINVAL,
				    "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, verdict(ALIGN_DOWN(addr[i], 8), 8, HW_BREAKPOINT_RW),
				    -EINVAL, "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, verdict(ALIGN_DOWN(addr[i], 4096), 4096, HW_BREAKPOINT_W),
				    -EINVAL, "%s of CPU %d + %lx", what, cpu, addr[i] - first);
	}
	/* A range that begins before it. */
	KUNIT_EXPECT_EQ_MSG(test, verdict(first - 7, 8, HW_BREAKPOINT_X), -EINVAL,
			    "%s of CPU %d", what, cpu);
}

#define expect_percpu_never_watched(test, var, cpu)				\
do {										\
	int __cpu = (cpu);							\
										\
	expect_never_watched(test, #var, __cpu, per_cpu_ptr(&(var), __cpu),	\
			     sizeof(var));					\
} while (0)

static void what_the_way_into_db_touches_is_never_watched(struct kunit *test)
{
	int cpu;

	expect_never_watched(test, "entry area", -1, (void *)CPU_ENTRY_AREA_BASE,
			     CPU_ENTRY_AREA_MAP_SIZE);
	expect_never_watched(test, "x86_pred_cmd", -1, &x86_pred_cmd, sizeof(x86_pred_cmd));
	expect_never_watched(test, "x86_verw_sel", -1, &x86_verw_sel, sizeof(x86_verw_sel));

	for_each_possible_cpu(cpu) {
		expect_never_watched(test, "entry area", cpu, get_cpu_entry_area(cpu),
				     sizeof(struct cpu_entry_area));
		expect_never_watched(test, "GDT", cpu, get_cpu_gdt_rw(cpu), GDT_SIZE);
		expect_percpu_never_watched(test, cpu_tss_rw, cpu);
		expect_percpu_never_watched(test, cpu_tlbstate, cpu);
		expect_percpu_never_watched(test, cpu_dr7, cpu);
		expect_percpu_never_watched(test, cpu_dr7_armed, cpu);
		expect_percpu_never_watched(test, cpu_dr7_changed, cpu);
#ifdef CONFIG_STACKPROTECTOR
		expect_never_watched(test, "stack canary", cpu,
				     &per_cpu_ptr(&fixed_percpu_data, cpu)->stack_canary,
				     sizeof(long));
#endif
		expect_percpu_never_watched(test, x86_spec_ctrl_current, cpu);
		expect_never_watched(test, "stack pointer", cpu,
				     &per_cpu_ptr(&pcpu_hot, cpu)->top_of_stack,
				     sizeof_field(struct pcpu_hot, top_of_stack));
#ifdef CONFIG_SMP
		expect_never_watched(test, "offset", cpu, &__per_cpu_offset[cpu],
				     sizeof(__per_cpu_offset[cpu]));
#endif
	}
}

static void what_is_next_to_entry_data_can_be_watched(struct kunit *test)
{
	unsigned long end = CPU_ENTRY_AREA_BASE + CPU_ENTRY_AREA_MAP_SIZE;

	KUNIT_EXPECT_EQ(test, verdict(CPU_ENTRY_AREA_BASE - 8, 8, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, verdict(end, 8, HW_BREAKPOINT_W), 0);
#ifdef CONFIG_SMP
	if (nr_cpu_ids < ARRAY_SIZE(__per_cpu_offset))
		KUNIT_EXPECT_EQ(test, verdict((unsigned long)&__per_cpu_offset[nr_cpu_ids],
					      sizeof(long), HW_BREAKPOINT_W), 0);
#endif
	KUNIT_EXPECT_EQ(test, verdict((unsigned long)words, 8, HW_BREAKPOINT_W), 0);
}

static void an_instruction_on_the_kprobe_blacklist_is_refused(struct kunit *test)
{
	unsigned long entry = (unsigned long)__entry_text_start;
	unsigned long noinstr_text = (unsigned long)__noinstr_text_start;

	if (!IS_ENABLED(CONFIG_KPROBES))
		kunit_skip(test, "no blacklist without CONFIG_KPROBES");

	KUNIT_EXPECT_EQ(test, verdict(entry, 8, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, verdict(noinstr_text, 8, HW_BREAKPOINT_X), -EINVAL);
	/* The blacklist is about executing. */
	KUNIT_EXPECT_EQ(test, verdict(ALIGN(noinstr_text, 8), 8, HW_BREAKPOINT_RW), 0);
}

static int in_kernel(unsigned long addr, u64 len, u32 type)
{
	struct arch_hw_breakpoint hw;

	if (parse(addr, len, type, &hw))
		return -1;
	return arch_check_bp_in_kernelspace(&hw);
}

static void the_kernel_begins_where_user_space_ends(struct kunit *test)
{
	unsigned long end = TASK_SIZE_MAX;

	KUNIT_EXPECT_EQ(test, in_kernel(0, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - 1, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - 8, 8, HW_BREAKPOINT_RW), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - 1, 8, HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end, 1, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(end, 8, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(end, 8, HW_BREAKPOINT_X), 1);
	KUNIT_EXPECT_EQ(test, in_kernel((unsigned long)words, 8, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel((unsigned long)called, 8, HW_BREAKPOINT_X), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(~0UL, 1, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(~0UL - 7, 8, HW_BREAKPOINT_X), 1);
}

/* With and without a processor that has masks */
static void a_long_range_into_the_kernel_is_in_the_kernel(struct kunit *test)
{
	struct arch_hw_breakpoint hw = { .ctl = DR_LEN_1 | DR_RW_WRITE, .mask = 0x1fff };

	hw.address = TASK_SIZE_MAX - 0x2000;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 0);
	hw.address = TASK_SIZE_MAX - 0x1fff;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 1);
	hw.address = TASK_SIZE_MAX;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 1);
}

/* ---- Cases: what the registers hold ---- */

static void an_armed_breakpoint_is_in_one_slot_and_leaves_it(struct kunit *test)
{
	struct regs regs;
	int slot;

	arm_word(test, 0);
	regs = regs_now(test);
	slot = slot_at(&regs, &words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_8 | DR_RW_WRITE);

	drop(test, 0);
	regs = regs_now(test);
	KUNIT_EXPECT_EQ(test, regs.dr7, 0UL);
}

static void expect_armed_with(struct kunit *test, const void *addr, u64 len, u32 type,
			      unsigned int ctl)
{
	struct regs regs;
	int slot;

	arm(test, 0, watch(addr, len, type));
	regs = regs_now(test);
	slot = slot_at(&regs, addr);
	KUNIT_EXPECT_GE(test, slot, 0);
	if (slot >= 0)
		KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), ctl);
	drop(test, 0);
}

static void every_kind_is_armed_as_itself(struct kunit *test)
{
	void *word = &words[0];

	expect_armed_with(test, word, 1, HW_BREAKPOINT_W, DR_LEN_1 | DR_RW_WRITE);
	expect_armed_with(test, word + 2, 2, HW_BREAKPOINT_W, DR_LEN_2 | DR_RW_WRITE);
	expect_armed_with(test, word + 4, 4, HW_BREAKPOINT_RW, DR_LEN_4 | DR_RW_READ);
	expect_armed_with(test, word, 8, HW_BREAKPOINT_RW, DR_LEN_8 | DR_RW_READ);
	expect_armed_with(test, called, sizeof(long), HW_BREAKPOINT_X,
			  DR_LEN_1 | DR_RW_EXECUTE);
}

static void expect_slots(struct kunit *test, const int want[HBP_NUM])
{
	struct regs regs = regs_now(test);
	int i, nr = 0;

	for (i = 0; i < HBP_NUM; i++) {
		KUNIT_EXPECT_EQ_MSG(test, slot_at(&regs, &words[i]), want[i], "word %d", i);
		nr += want[i] >= 0;
	}
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), nr);
}

static void a_breakpoint_keeps_its_slot_when_others_come_and_go(struct kunit *test)
{
	int slots[HBP_NUM] = { -1, -1, -1, -1 };
	struct fixture *f = test->priv;
	int i, leaves;

	for (i = 0; i < HBP_NUM; i++) {
		arm_word(test, i);
		slots[i] = slot_now(test, &words[i]);
		KUNIT_EXPECT_GE(test, slots[i], 0);
		expect_slots(test, slots);
	}

	for (leaves = 0; leaves < HBP_NUM; leaves++) {
		int left[HBP_NUM];

		drop(test, leaves);
		memcpy(left, slots, sizeof(left));
		left[leaves] = -1;
		expect_slots(test, left);
		for (i = 0; i < HBP_NUM; i++)
			KUNIT_EXPECT_EQ(test, write_hits(f, i), i != leaves);
		arm_word(test, leaves);
		expect_slots(test, slots);
	}
}

static void a_disabled_breakpoint_is_in_no_slot(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event *bp;
	struct regs regs;
	int slot;

	bp = arm_word(test, 0);
	arm_word(test, 1);
	slot = slot_now(test, &words[0]);

	perf_event_disable(bp);
	regs = regs_now(test);
	KUNIT_EXPECT_EQ(test, slot_at(&regs, &words[0]), -1);
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, write_hits(f, 0), 0);

	perf_event_enable(bp);
	KUNIT_EXPECT_EQ(test, slot_now(test, &words[0]), slot);
	KUNIT_EXPECT_EQ(test, write_hits(f, 0), 1);
}

static void a_slot_that_holds_the_address_is_taken_again(struct kunit *test)
{
	struct fixture *f = test->priv;
	int slot[3], i;

	for (i = 0; i < 3; i++) {
		arm_word(test, i);
		slot[i] = slot_now(test, &words[i]);
	}
	perf_event_disable(f->bp[0]);
	perf_event_disable(f->bp[1]);

	/* Both are free; only one of them holds the address. */
	perf_event_enable(f->bp[1]);
	KUNIT_EXPECT_EQ(test, slot_now(test, &words[1]), slot[1]);
	perf_event_enable(f->bp[0]);
	KUNIT_EXPECT_EQ(test, slot_now(test, &words[0]), slot[0]);
}

static void a_modified_breakpoint_is_armed_as_what_it_is_now(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	struct regs regs;
	int slot;

	f->bp[0] = register_user_hw_breakpoint(&attr, record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	arm_word(test, 2);
	KUNIT_EXPECT_GE(test, slot_now(test, &words[0]), 0);

	attr = watch(&words[1], 4, HW_BREAKPOINT_RW);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	regs = regs_now(test);
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), 2);
	KUNIT_EXPECT_EQ(test, slot_at(&regs, &words[0]), -1);
	slot = slot_at(&regs, &words[1]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_4 | DR_RW_READ);
	KUNIT_EXPECT_GE(test, slot_at(&regs, &words[2]), 0);

	/* The same address with another field */
	attr = watch(&words[1], 8, HW_BREAKPOINT_W);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	regs = regs_now(test);
	slot = slot_at(&regs, &words[1]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_8 | DR_RW_WRITE);

	attr.disabled = 1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	KUNIT_EXPECT_EQ(test, slot_now(test, &words[1]), -1);
}

struct read_work {
	struct kthread_work	work;
	struct regs		regs;
};

static void read_work(struct kthread_work *work)
{
	read_regs(&container_of(work, struct read_work, work)->regs);
}

/* The registers while the worker runs */
static struct regs regs_of(struct kthread_worker *worker)
{
	struct read_work read = { };

	kthread_init_work(&read.work, read_work);
	kthread_queue_work(worker, &read.work);
	kthread_flush_work(&read.work);

	return read.regs;
}

static void a_task_takes_its_breakpoints_off_the_registers(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	struct kthread_worker *worker;
	struct regs regs;
	int stays;

	worker = kthread_create_worker_on_cpu(f->cpu, 0, "x86_hw_breakpoint");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, worker);
	f->bp[0] = register_user_hw_breakpoint(&attr, record_hit, &f->hits[0], worker->task);
	arm_word(test, 1);
	stays = slot_now(test, &words[1]);

	regs = regs_of(worker);
	KUNIT_EXPECT_EQ(test, regs.cpu, f->cpu);
	KUNIT_EXPECT_EQ(test, regs.dr7, regs.books);
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), 2);
	KUNIT_EXPECT_GE(test, slot_at(&regs, &words[0]), 0);
	KUNIT_EXPECT_EQ(test, slot_at(&regs, &words[1]), stays);

	regs = regs_now(test);
	KUNIT_EXPECT_EQ(test, nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, slot_at(&regs, &words[1]), stays);

	drop(test, 0);
	kthread_destroy_worker(worker);
}

static void an_instruction_breakpoint_is_hit_at_each_call(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	called();
	arm(test, 0, watch(called, sizeof(long), HW_BREAKPOINT_X));
	for (i = 0; i < 3; i++) {
		called();
		KUNIT_EXPECT_EQ(test, take_hits(f, 0), 1);
		KUNIT_EXPECT_EQ(test, f->hits[0].ip, (unsigned long)called);
	}
	drop(test, 0);
	called();
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);
}

/* ---- Cases: a batch of changes ---- */

static void nothing_is_written_before_commit(struct kunit *test)
{
	struct regs before, open, gone, back;
	struct fixture *f = test->priv;
	struct perf_event *bp;
	int hits;

	bp = arm_word(test, 0);
	arm_word(test, 1);

	local_irq_disable();
	read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(bp);
	read_regs(&open);
	hits = write_hits(f, 0);
	arch_hw_breakpoint_commit();
	read_regs(&gone);
	arch_hw_breakpoint_begin();
	arch_install_hw_breakpoint(bp);
	arch_hw_breakpoint_commit();
	read_regs(&back);
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &open, &before, sizeof(open));
	KUNIT_EXPECT_EQ(test, hits, 1);
	KUNIT_EXPECT_EQ(test, slot_at(&gone, &words[0]), -1);
	KUNIT_EXPECT_EQ(test, nr_enabled(&gone), 1);
	KUNIT_EXPECT_EQ(test, gone.dr7, gone.books);
	KUNIT_EXPECT_EQ(test, back.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, write_hits(f, 0), 1);
}

static void an_equal_set_costs_no_register_write(struct kunit *test)
{
	struct perf_event *bp[HBP_NUM];
	struct regs marked, after;
	int i;

	for (i = 0; i < HBP_NUM; i++)
		bp[i] = arm_word(test, i);

	local_irq_disable();
	for (i = 0; i < HBP_NUM; i++)
		set_debugreg((unsigned long)&words[HBP_NUM + i], i);
	mark_dr7();
	read_regs(&marked);
	arch_hw_breakpoint_begin();
	for (i = 0; i < HBP_NUM; i++)
		arch_uninstall_hw_breakpoint(bp[i]);
	for (i = HBP_NUM - 1; i >= 0; i--)
		arch_install_hw_breakpoint(bp[i]);
	arch_hw_breakpoint_commit();
	read_regs(&after);
	hw_breakpoint_restore();
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &after, &marked, sizeof(after));
	for (i = 0; i < HBP_NUM; i++)
		KUNIT_EXPECT_GE(test, slot_now(test, &words[i]), 0);
}

static void only_the_slot_that_changes_is_written(struct kunit *test)
{
	int stays[2], changes, installed, i;
	struct fixture *f = test->priv;
	struct perf_event *old, *new;
	struct regs after;

	arm_word(test, 0);
	old = arm_word(test, 1);
	arm_word(test, 2);
	new = hold_word(test, 3, 3);
	stays[0] = slot_now(test, &words[0]);
	stays[1] = slot_now(test, &words[2]);

	local_irq_disable();
	for (i = 0; i < 2; i++)
		set_debugreg((unsigned long)&words[HBP_NUM + i], stays[i]);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	installed = arch_install_hw_breakpoint(new);
	arch_hw_breakpoint_commit();
	read_regs(&after);
	hw_breakpoint_restore();
	changes = write_hits(f, 3);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, installed, 0);
	KUNIT_EXPECT_EQ(test, slot_at(&after, &words[HBP_NUM]), stays[0]);
	KUNIT_EXPECT_EQ(test, slot_at(&after, &words[HBP_NUM + 1]), stays[1]);
	KUNIT_EXPECT_GE(test, slot_at(&after, &words[3]), 0);
	KUNIT_EXPECT_EQ(test, changes, 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, write_hits(f, i), 1);
}

static void a_hit_in_an_open_batch_is_of_the_event_that_was_armed(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event *old, *new;
	int in_old, in_new, out_old, out_new;

	old = arm_word(test, 0);
	new = hold_word(test, 1, 1);

	local_irq_disable();
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	in_old = write_hits(f, 0);
	in_new = write_hits(f, 1);
	arch_hw_breakpoint_commit();
	out_old = write_hits(f, 0);
	out_new = write_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, in_old, 1);
	KUNIT_EXPECT_EQ(test, in_new, 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
	KUNIT_EXPECT_EQ(test, write_hits(f, 0), 1);
}

static void a_register_changes_hands_without_a_write(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event *old, *new;
	int in_old, in_new, out_old, out_new;
	bool unwritten;

	old = arm_word(test, 0);
	new = hold_word(test, 1, 0);

	local_irq_disable();
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	write_word(0);
	in_old = take_hits(f, 0);
	in_new = take_hits(f, 1);
	/* Not before the hit: leaving a #DB loads DR7. */
	mark_dr7();
	arch_hw_breakpoint_commit();
	unwritten = dr7_mark_stands();
	write_word(0);
	out_old = take_hits(f, 0);
	out_new = take_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_TRUE(test, unwritten);
	KUNIT_EXPECT_EQ(test, in_old, 1);
	KUNIT_EXPECT_EQ(test, in_new, 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
}

/* An event that perf knows nothing of: it counts and holds no claim. */
static struct perf_event *make_fifth(struct kunit *test, int word)
{
	struct perf_event *event;

	event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event);
	/* As if of the CPU: its hits are those of whatever runs there. */
	event->ctx = kunit_kzalloc(test, sizeof(*event->ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event->ctx);
	KUNIT_ASSERT_EQ(test, parse((unsigned long)&words[word], 8, HW_BREAKPOINT_W,
				    counter_arch_bp(event)), 0);

	return event;
}

static void a_slot_changes_hands_when_all_are_armed(struct kunit *test)
{
	struct perf_event *fifth = make_fifth(test, 4);
	struct regs before, changed, back;
	struct fixture *f = test->priv;
	int i, gone, stay;

	for (i = 0; i < HBP_NUM; i++)
		arm_word(test, i);

	local_irq_disable();
	read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(f->bp[1]);
	arch_install_hw_breakpoint(fifth);
	arch_hw_breakpoint_commit();
	read_regs(&changed);
	gone = write_hits(f, 1);
	stay = write_hits(f, 0) + write_hits(f, 2) + write_hits(f, 3);
	write_word(4);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(fifth);
	arch_install_hw_breakpoint(f->bp[1]);
	arch_hw_breakpoint_commit();
	read_regs(&back);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, nr_enabled(&changed), HBP_NUM);
	KUNIT_EXPECT_EQ(test, slot_at(&changed, &words[1]), -1);
	KUNIT_EXPECT_EQ(test, slot_at(&changed, &words[4]), slot_at(&before, &words[1]));
	KUNIT_EXPECT_EQ(test, gone, 0);
	KUNIT_EXPECT_EQ(test, stay, 3);
	KUNIT_EXPECT_EQ(test, local64_read(&fifth->count), 1LL);
	KUNIT_EXPECT_MEMEQ(test, &back, &before, sizeof(back));
	KUNIT_EXPECT_EQ(test, write_hits(f, 1), 1);
}

static void a_fifth_breakpoint_finds_no_register(struct kunit *test)
{
	struct perf_event *fifth = make_fifth(test, 4);
	struct regs before, after;
	int i, err;

	for (i = 0; i < HBP_NUM; i++)
		arm_word(test, i);

	local_irq_disable();
	read_regs(&before);
	err = arch_install_hw_breakpoint(fifth);
	read_regs(&after);
	if (!err)
		arch_uninstall_hw_breakpoint(fifth);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, err, -ENOSPC);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
}

/* ---- Cases: those who take the registers away ---- */

static void hw_breakpoint_active_tells_whether_one_is_armed(struct kunit *test)
{
	bool before, armed, disabled, gone;
	struct fixture *f = test->priv;

	local_irq_disable();
	before = hw_breakpoint_active();
	local_irq_enable();

	arm_word(test, 0);
	local_irq_disable();
	armed = hw_breakpoint_active();
	local_irq_enable();

	perf_event_disable(f->bp[0]);
	local_irq_disable();
	disabled = hw_breakpoint_active();
	local_irq_enable();

	drop(test, 0);
	local_irq_disable();
	gone = hw_breakpoint_active();
	local_irq_enable();

	KUNIT_EXPECT_FALSE(test, before);
	KUNIT_EXPECT_TRUE(test, armed);
	KUNIT_EXPECT_FALSE(test, disabled);
	KUNIT_EXPECT_FALSE(test, gone);
}

static void local_db_save_silences_until_local_db_restore(struct kunit *test)
{
	struct regs before, saved, restored;
	struct fixture *f = test->priv;
	unsigned long dr7, nothing;
	int hits, silent;

	local_irq_disable();
	nothing = local_db_save();
	local_db_restore(nothing);
	local_irq_enable();
	arm_word(test, 0);
	arm_word(test, 1);

	local_irq_disable();
	read_regs(&before);
	dr7 = local_db_save();
	read_regs(&saved);
	silent = write_hits(f, 0) + write_hits(f, 1);
	local_db_restore(dr7);
	read_regs(&restored);
	hits = write_hits(f, 0) + write_hits(f, 1);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, nothing, 0UL);
	KUNIT_EXPECT_EQ(test, dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, saved.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_MEMEQ(test, &restored, &before, sizeof(before));
	KUNIT_EXPECT_EQ(test, hits, 2);
}

static void local_db_restore_arms_what_is_wanted_by_then(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event *old, *new;
	int inside, out_old, out_new;
	struct regs saved, restored;
	unsigned long dr7;

	old = arm_word(test, 0);
	new = hold_word(test, 1, 1);

	local_irq_disable();
	dr7 = local_db_save();
	read_regs(&saved);
	inside = write_hits(f, 0) + write_hits(f, 1);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	arch_hw_breakpoint_commit();
	local_db_restore(dr7);
	read_regs(&restored);
	out_old = write_hits(f, 0);
	out_new = write_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, saved.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, inside, 0);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.books);
	KUNIT_EXPECT_EQ(test, slot_at(&restored, &words[0]), -1);
	KUNIT_EXPECT_GE(test, slot_at(&restored, &words[1]), 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
}

/* As a guest that has used them leaves them */
static void scramble_registers(void)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++)
		set_debugreg(0x1000UL + slot, slot);
}

static void registers_that_were_lost_are_restored(struct kunit *test)
{
	struct regs before, off, after;
	struct fixture *f = test->priv;
	int i, hits[3];

	for (i = 0; i < HBP_NUM; i++)
		arm_word(test, i);

	local_irq_disable();
	read_regs(&before);
	hits[0] = write_hits(f, 3);
	hw_breakpoint_disable();
	read_regs(&off);
	hits[1] = write_hits(f, 3);
	scramble_registers();
	hw_breakpoint_restore();
	read_regs(&after);
	hits[2] = write_hits(f, 3);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, hits[0], 1);
	KUNIT_EXPECT_EQ(test, off.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, hits[1], 0);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
	KUNIT_EXPECT_EQ(test, hits[2], 1);
}

/* An NMI re-points while a guest of KVM has the registers: they are its own. */
static void repointing_leaves_a_guest_its_registers(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	struct perf_event * __percpu *set;
	struct regs guest, lent, after;
	int err, hits;

	set = register_wide_hw_breakpoint(&attr, record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	attr = watch(&words[1], 8, HW_BREAKPOINT_W);

	local_irq_disable();
	set_debugreg(0UL, 7);
	scramble_registers();
	read_regs(&guest);
	err = modify_wide_hw_breakpoint_local(*this_cpu_ptr(set), &attr);
	read_regs(&lent);
	hw_breakpoint_restore();
	read_regs(&after);
	hits = write_hits(f, 1);
	local_irq_enable();
	unregister_wide_hw_breakpoint(set);

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_MEMEQ(test, &lent, &guest, sizeof(lent));
	KUNIT_EXPECT_EQ(test, nr_enabled(&after), 1);
	KUNIT_EXPECT_GE(test, slot_at(&after, &words[1]), 0);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

/* The same, where a register of the guest holds what that of the host held. */
static void repointing_leaves_a_guest_the_register_that_equals_ours(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	struct perf_event * __percpu *set;
	struct regs guest, lent, after;
	int err, hits;

	set = register_wide_hw_breakpoint(&attr, record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	attr = watch(&words[1], 8, HW_BREAKPOINT_W);

	local_irq_disable();
	hw_breakpoint_disable();
	read_regs(&guest);
	err = modify_wide_hw_breakpoint_local(*this_cpu_ptr(set), &attr);
	read_regs(&lent);
	hw_breakpoint_restore();
	read_regs(&after);
	hits = write_hits(f, 1);
	local_irq_enable();
	unregister_wide_hw_breakpoint(set);

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_MEMEQ(test, lent.addr, guest.addr, sizeof(lent.addr));
	KUNIT_EXPECT_EQ(test, lent.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, nr_enabled(&after), 1);
	KUNIT_EXPECT_GE(test, slot_at(&after, &words[1]), 0);
	KUNIT_EXPECT_EQ(test, after.dr7, after.books);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

static void registers_that_others_used_are_not_believed(struct kunit *test)
{
	struct fixture *f = test->priv;

	/* What was there before is not there after. */
	arm_word(test, 0);
	drop(test, 0);
	local_irq_disable();
	scramble_registers();
	local_irq_enable();
	arm_word(test, 0);
	KUNIT_EXPECT_GE(test, slot_now(test, &words[0]), 0);
	KUNIT_EXPECT_EQ(test, write_hits(f, 0), 1);

	/* The slots that were not armed are not restored. */
	arm_word(test, 1);
	arm_word(test, 2);
	drop(test, 1);
	local_irq_disable();
	hw_breakpoint_disable();
	scramble_registers();
	hw_breakpoint_restore();
	local_irq_enable();
	arm_word(test, 1);
	KUNIT_EXPECT_GE(test, slot_now(test, &words[1]), 0);
	KUNIT_EXPECT_EQ(test, write_hits(f, 1), 1);
	KUNIT_EXPECT_EQ(test, write_hits(f, 2), 1);
}

/* ---- Cases: the kernel debugger ---- */

/* struct debugger - its list of breakpoints, and what the die chain is told */
struct debugger {
	struct notifier_block			nb;
	struct arch_hw_breakpoint		hw[HBP_NUM];
	const struct arch_hw_breakpoint		*list[HBP_NUM];
	unsigned long				dr6;
	int					nr;
};

static const struct arch_hw_breakpoint *const no_list[HBP_NUM];

/* The debugger may not have been entered: a CPU that comes up does so too. */
static void debugger_leaves_with(const struct arch_hw_breakpoint *const list[HBP_NUM])
{
	int i;

	for (i = 0; i < HBP_NUM; i++)
		hw_breakpoint_debugger_set(i, list[i]);
	hw_breakpoint_debugger_leave();
}

static int debugger_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct debugger *dbg = container_of(nb, struct debugger, nb);
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (val != DIE_DEBUG || !(*dr6 & DR_TRAP_BITS))
		return NOTIFY_DONE;
	dbg->nr++;
	dbg->dr6 = *dr6;
	*dr6 &= ~DR_TRAP_BITS;

	return NOTIFY_STOP;
}

/* A debugger with breakpoints on the words from HBP_NUM on */
static struct debugger *start_debugger(struct kunit *test, int nr)
{
	struct debugger *dbg;
	int i;

	dbg = kunit_kzalloc(test, sizeof(*dbg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dbg);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, parse((unsigned long)&words[HBP_NUM + i], 8,
					    HW_BREAKPOINT_W, &dbg->hw[i]), 0);
		dbg->list[i] = &dbg->hw[i];
	}

	return dbg;
}

static void a_debugger_gets_registers_next_to_perf(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct regs before, with, without;
	struct fixture *f = test->priv;
	int hits;

	arm_word(test, 0);
	arm_word(test, 1);
	dbg->nb.notifier_call = debugger_trap;
	dbg->nb.priority = INT_MAX;
	register_die_notifier(&dbg->nb);

	local_irq_disable();
	read_regs(&before);
	debugger_leaves_with(dbg->list);
	read_regs(&with);
	hits = write_hits(f, 0) + write_hits(f, 1);
	write_word(HBP_NUM + 1);
	debugger_leaves_with(no_list);
	read_regs(&without);
	write_word(HBP_NUM);
	local_irq_enable();
	unregister_die_notifier(&dbg->nb);

	KUNIT_EXPECT_EQ(test, nr_enabled(&with), 4);
	KUNIT_EXPECT_EQ(test, with.dr7, with.books);
	KUNIT_EXPECT_EQ(test, slot_at(&with, &words[0]), slot_at(&before, &words[0]));
	KUNIT_EXPECT_EQ(test, slot_at(&with, &words[1]), slot_at(&before, &words[1]));
	KUNIT_EXPECT_GE(test, slot_at(&with, &words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, slot_at(&with, &words[HBP_NUM + 1]), 0);
	KUNIT_EXPECT_EQ(test, hits, 2);

	/* Its hits are for the die chain. */
	KUNIT_EXPECT_EQ(test, dbg->nr, 1);
	KUNIT_EXPECT_EQ(test, dbg->dr6 & DR_TRAP_BITS,
			DR_TRAP0 << max(slot_at(&with, &words[HBP_NUM + 1]), 0));

	KUNIT_EXPECT_EQ(test, without.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, without.books, before.books);
}

static void a_debugger_that_is_entered_silences_the_cpu(struct kunit *test)
{
	struct regs before, inside, after;
	struct fixture *f = test->priv;
	int silent, hits;

	arm_word(test, 0);

	local_irq_disable();
	read_regs(&before);
	hw_breakpoint_debugger_enter();
	read_regs(&inside);
	silent = write_hits(f, 0);
	scramble_registers();
	debugger_leaves_with(no_list);
	read_regs(&after);
	hits = write_hits(f, 0);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, after.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, after.books, before.books);
	KUNIT_EXPECT_EQ(test, slot_at(&after, &words[0]), slot_at(&before, &words[0]));
	KUNIT_EXPECT_EQ(test, hits, 1);
}

static void a_debugger_in_an_open_batch_waits_for_its_commit(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct regs before, open, armed, closing, gone;
	struct fixture *f = test->priv;
	struct perf_event *bp;
	int hits;

	bp = arm_word(test, 0);
	arm_word(test, 1);

	local_irq_disable();
	read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(bp);
	hw_breakpoint_debugger_enter();
	debugger_leaves_with(dbg->list);
	read_regs(&open);
	hits = write_hits(f, 0) + write_hits(f, 1);
	arch_hw_breakpoint_commit();
	read_regs(&armed);
	arch_hw_breakpoint_begin();
	debugger_leaves_with(no_list);
	read_regs(&closing);
	arch_install_hw_breakpoint(bp);
	arch_hw_breakpoint_commit();
	read_regs(&gone);
	local_irq_enable();

	/* The hardware is what it was when the batch began. */
	KUNIT_EXPECT_EQ(test, open.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, open.books, before.books);
	KUNIT_EXPECT_EQ(test, slot_at(&open, &words[HBP_NUM]), -1);
	KUNIT_EXPECT_EQ(test, hits, 2);

	KUNIT_EXPECT_EQ(test, nr_enabled(&armed), 2);
	KUNIT_EXPECT_EQ(test, slot_at(&armed, &words[0]), -1);
	KUNIT_EXPECT_EQ(test, slot_at(&armed, &words[1]), slot_at(&before, &words[1]));
	KUNIT_EXPECT_GE(test, slot_at(&armed, &words[HBP_NUM]), 0);

	KUNIT_EXPECT_EQ(test, closing.dr7, armed.dr7);
	KUNIT_EXPECT_EQ(test, nr_enabled(&gone), 2);
	KUNIT_EXPECT_EQ(test, gone.dr7, gone.books);
	KUNIT_EXPECT_GE(test, slot_at(&gone, &words[0]), 0);
	KUNIT_EXPECT_EQ(test, slot_at(&gone, &words[HBP_NUM]), -1);
}

static void a_debugger_does_not_push_perf_out(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct regs before, with, after;
	struct fixture *f = test->priv;
	int i, hits = 0;

	for (i = 0; i < HBP_NUM; i++)
		arm_word(test, i);

	local_irq_disable();
	read_regs(&before);
	debugger_leaves_with(dbg->list);
	read_regs(&with);
	for (i = 0; i < HBP_NUM; i++)
		hits += write_hits(f, i);
	debugger_leaves_with(no_list);
	read_regs(&after);
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &with, &before, sizeof(with));
	KUNIT_EXPECT_EQ(test, hits, HBP_NUM);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
}

static void a_debugger_gets_what_perf_leaves(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct regs full, back;
	struct perf_event *bp[2];
	int err[2];

	bp[0] = hold_word(test, 0, 0);
	bp[1] = hold_word(test, 1, 1);
	arm_word(test, 2);

	local_irq_disable();
	debugger_leaves_with(dbg->list);
	err[0] = arch_install_hw_breakpoint(bp[0]);
	err[1] = arch_install_hw_breakpoint(bp[1]);
	read_regs(&full);
	arch_uninstall_hw_breakpoint(bp[0]);
	arch_uninstall_hw_breakpoint(bp[1]);
	read_regs(&back);
	debugger_leaves_with(no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, err[0], 0);
	KUNIT_EXPECT_EQ(test, err[1], 0);
	KUNIT_EXPECT_EQ(test, full.dr7, full.books);
	KUNIT_EXPECT_EQ(test, nr_enabled(&full), 4);
	KUNIT_EXPECT_GE(test, slot_at(&full, &words[0]), 0);
	KUNIT_EXPECT_GE(test, slot_at(&full, &words[1]), 0);

	KUNIT_EXPECT_EQ(test, back.dr7, back.books);
	KUNIT_EXPECT_EQ(test, nr_enabled(&back), 3);
	KUNIT_EXPECT_GE(test, slot_at(&back, &words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, slot_at(&back, &words[HBP_NUM + 1]), 0);
}

static void a_debugger_leaves_arming_to_local_db_restore(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct regs before, inside, left, restored;
	unsigned long dr7;

	arm_word(test, 0);

	local_irq_disable();
	read_regs(&before);
	dr7 = local_db_save();
	hw_breakpoint_debugger_enter();
	read_regs(&inside);
	debugger_leaves_with(dbg->list);
	read_regs(&left);
	local_db_restore(dr7);
	read_regs(&restored);
	hw_breakpoint_debugger_enter();
	debugger_leaves_with(no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, left.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.books);
	KUNIT_EXPECT_EQ(test, nr_enabled(&restored), 2);
	KUNIT_EXPECT_EQ(test, slot_at(&restored, &words[0]), slot_at(&before, &words[0]));
	KUNIT_EXPECT_GE(test, slot_at(&restored, &words[HBP_NUM]), 0);
}

static void a_cpu_that_comes_up_gets_the_debuggers_breakpoints(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct regs reset, up;

	local_irq_disable();
	debugger_leaves_with(dbg->list);
	scramble_registers();
	hw_breakpoint_disable();
	read_regs(&reset);
	hw_breakpoint_cpu_init();
	read_regs(&up);
	hw_breakpoint_debugger_enter();
	debugger_leaves_with(no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, reset.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, up.dr7, up.books);
	KUNIT_EXPECT_EQ(test, nr_enabled(&up), 2);
	KUNIT_EXPECT_GE(test, slot_at(&up, &words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, slot_at(&up, &words[HBP_NUM + 1]), 0);
}

/* As when the debugger reads memory next to its software breakpoints */
static void poking_text_in_the_debugger_arms_nothing(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct regs armed, inside, after;
	struct fixture *f = test->priv;
	u8 byte = *(u8 *)called;
	int silent, hits;

	arm_word(test, 0);

	mutex_lock(&text_mutex);
	local_irq_disable();
	debugger_leaves_with(dbg->list);
	read_regs(&armed);
	hw_breakpoint_debugger_enter();
	text_poke(called, &byte, sizeof(byte));
	read_regs(&inside);
	silent = write_hits(f, 0);
	debugger_leaves_with(no_list);
	read_regs(&after);
	hits = write_hits(f, 0);
	local_irq_enable();
	mutex_unlock(&text_mutex);

	KUNIT_EXPECT_EQ(test, nr_enabled(&armed), 2);
	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, nr_enabled(&after), 1);
	KUNIT_EXPECT_EQ(test, after.dr7, after.books);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

/* An NMI that comes while the debugger runs */
static void repointing_in_the_debugger_arms_nothing(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	struct perf_event * __percpu *set;
	struct regs inside, after;
	int err, silent, hits;

	set = register_wide_hw_breakpoint(&attr, record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	attr = watch(&words[1], 4, HW_BREAKPOINT_RW);

	local_irq_disable();
	hw_breakpoint_debugger_enter();
	err = modify_wide_hw_breakpoint_local(*this_cpu_ptr(set), &attr);
	read_regs(&inside);
	silent = write_hits(f, 1);
	hw_breakpoint_debugger_leave();
	read_regs(&after);
	hits = write_hits(f, 1);
	local_irq_enable();
	unregister_wide_hw_breakpoint(set);

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, nr_enabled(&after), 1);
	KUNIT_EXPECT_EQ(test, after.dr7, after.books);
	KUNIT_EXPECT_GE(test, slot_at(&after, &words[1]), 0);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

/* The CPU was in an NMI when the debugger stopped it for the last time. */
static void a_cpu_that_comes_back_is_armed(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct regs left, up, restored;
	unsigned long dr7;

	local_irq_disable();
	debugger_leaves_with(dbg->list);
	dr7 = local_db_save();
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	read_regs(&left);

	hw_breakpoint_cpu_init();
	read_regs(&up);
	/* dbg_restore_debug_regs() */
	hw_breakpoint_debugger_leave();
	read_regs(&restored);
	debugger_leaves_with(no_list);
	local_irq_enable();

	KUNIT_EXPECT_NE(test, dr7, 0UL);
	KUNIT_EXPECT_EQ(test, left.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, nr_enabled(&up), 2);
	KUNIT_EXPECT_EQ(test, restored.dr7, up.dr7);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.books);
}

static void leave_and_read(void *regs)
{
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	read_regs(regs);
}

/* The debugger changes its list once; the CPUs that leave it only read it. */
static void each_cpu_takes_over_what_the_debugger_set_once(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct regs regs;
	int cpu;

	hw_breakpoint_debugger_set(2, dbg->list[0]);
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, leave_and_read, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, nr_enabled(&regs), 1, "CPU %d", cpu);
		KUNIT_EXPECT_GE(test, slot_at(&regs, &words[HBP_NUM]), 0);
	}
	hw_breakpoint_debugger_set(2, NULL);
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, leave_and_read, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, 0UL, "CPU %d", cpu);
		KUNIT_EXPECT_EQ_MSG(test, regs.books, 0UL, "CPU %d", cpu);
	}
}

static int debugger_verdict(const void *addr, u64 len, u32 type)
{
	struct perf_event_attr attr = watch(addr, len, type);
	struct arch_hw_breakpoint hw;

	return hw_breakpoint_debugger_parse(&attr, &hw);
}

static int hbreak_verdict(const void *addr)
{
	return debugger_verdict(addr, sizeof(long), HW_BREAKPOINT_X);
}

/* The kprobe blacklist is for kprobes, and does not exist without them. */
static void a_debugger_is_refused_only_what_traps_for_ever(struct kunit *test)
{
	static const void *const refused[] = {
		__entry_text_start, __entry_text_end - 1, exc_nmi, exc_debug, hw_breakpoint_load,
	};
	static const void *const accepted[] = {
		exc_page_fault, notify_die, perf_event_release_kernel, called,
	};
	struct fixture *f = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(refused); i++)
		KUNIT_EXPECT_EQ_MSG(test, hbreak_verdict(refused[i]), -EINVAL, "%ps",
				    refused[i]);
	for (i = 0; i < ARRAY_SIZE(accepted); i++)
		KUNIT_EXPECT_EQ_MSG(test, hbreak_verdict(accepted[i]), 0, "%ps", accepted[i]);
	KUNIT_EXPECT_EQ(test, debugger_verdict(per_cpu_ptr(&cpu_dr7, f->cpu), 8, HW_BREAKPOINT_RW),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, debugger_verdict(words, 8, HW_BREAKPOINT_RW), 0);
}

#ifdef CONFIG_KGDB
/* A CPU that the debugger has stopped may hold the lock of the accounting. */
static void a_breakpoint_is_disarmed_though_its_claims_cannot_be_released(struct kunit *test)
{
	unsigned long addr = (unsigned long)&words[HBP_NUM];
	int set, refused, removed, again;
	struct regs armed, gone;

	kgdb_arch_late();

	local_irq_disable();
	hw_breakpoint_debugger_enter();
	set = kgdb_set_hw_break(addr, 8, BP_WRITE_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	read_regs(&armed);
	raw_spin_lock(&bp_books.lock);
	hw_breakpoint_debugger_enter();
	refused = kgdb_set_hw_break(addr + 8, 8, BP_WRITE_WATCHPOINT);
	removed = kgdb_remove_hw_break(addr, 8, BP_WRITE_WATCHPOINT);
	again = kgdb_remove_hw_break(addr, 8, BP_WRITE_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	read_regs(&gone);
	raw_spin_unlock(&bp_books.lock);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_GE(test, slot_at(&armed, &words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, refused, -1);
	KUNIT_EXPECT_EQ(test, removed, 0);
	KUNIT_EXPECT_EQ(test, again, -1);
	KUNIT_EXPECT_EQ(test, gone.dr7, 0UL);
	/* The irq_work has run. */
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

static void a_debugger_watches_what_the_processor_makes_of_an_address(struct kunit *test)
{
	unsigned long addr = (unsigned long)&words[HBP_NUM];
	struct regs armed;
	int set, removed;

	local_irq_disable();
	set = kgdb_set_hw_break(addr + 2, 4, BP_ACCESS_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	read_regs(&armed);
	removed = kgdb_remove_hw_break(addr + 2, 4, BP_ACCESS_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_GE(test, slot_at(&armed, &words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, removed, 0);
}
#endif

/* ---- Cases: changes in the middle of loading the registers ---- */

/*
 * Code that loads DR7 is executed step by step. At one of the steps the trap
 * re-points a breakpoint, as an NMI would at this place, and at each write of DR7
 * the trap looks at what would be armed.
 */
struct stepper {
	struct notifier_block	nb;
	struct perf_event	*bp;
	struct perf_event_attr	attr[2];
	unsigned int		ctl[2];
	int			now;
	bool			every_step;
	int			when;
	int			count;
	int			mixed;
};

/* The number of the debug register that an instruction writes; -1 for none */
static int debugreg_written(struct pt_regs *regs, unsigned long *value)
{
	struct insn insn;
	int offset;

	if (insn_decode_kernel(&insn, (void *)regs->ip) ||
	    insn.opcode.bytes[0] != 0x0f || insn.opcode.bytes[1] != 0x23)
		return -1;

	offset = insn_get_modrm_rm_off(&insn, regs);
	*value = offset < 0 ? 0 : regs_get_register(regs, offset);
	return X86_MODRM_REG(insn.modrm.value);
}

static bool is_mixed(const struct stepper *st, unsigned long dr7)
{
	struct regs regs;
	int slot, i;

	read_regs(&regs);
	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(dr7, slot))
			continue;
		for (i = 0; i < 2; i++) {
			if (regs.addr[slot] == st->attr[i].bp_addr &&
			    dr7_ctl(dr7, slot) == st->ctl[i])
				break;
		}
		if (i == 2)
			return true;
	}

	return false;
}

static int step_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct stepper *st = container_of(nb, struct stepper, nb);
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err, value;
	int reg;

	if (val != DIE_DEBUG || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;

	reg = debugreg_written(args->regs, &value);
	if ((reg >= 0 || st->every_step) && st->count++ == st->when) {
		st->now = !st->now;
		modify_wide_hw_breakpoint_local(st->bp, &st->attr[st->now]);
	}
	if (reg == 7)
		st->mixed += is_mixed(st, value);

	return NOTIFY_STOP;
}

static noinline void step_through(void (*load)(unsigned long), unsigned long arg)
{
	asm volatile("pushfq; orq %0, (%%rsp); popfq" : : "i" (X86_EFLAGS_TF) : "memory", "cc");
	load(arg);
	asm volatile("pushfq; andq %0, (%%rsp); popfq" : : "i" (~X86_EFLAGS_TF) : "memory", "cc");
}

static void load_by_db_restore(unsigned long dr7)
{
	local_db_restore(dr7);
}

static void load_by_restore(unsigned long unused)
{
	hw_breakpoint_restore();
}

static void load_by_debugger(unsigned long unused)
{
	hw_breakpoint_debugger_leave();
}

static void expect_never_mixed(struct kunit *test, struct stepper *st, const char *what,
			       void (*load)(unsigned long))
{
	struct regs regs;
	unsigned long dr7;
	int slot;

	for (st->when = 0; ; st->when++) {
		st->count = 0;
		st->mixed = 0;
		local_irq_disable();
		if (load == load_by_debugger) {
			dr7 = 0;
			hw_breakpoint_debugger_enter();
		} else {
			dr7 = local_db_save();
		}
		step_through(load, dr7);
		read_regs(&regs);
		local_irq_enable();

		slot = slot_at(&regs, (void *)st->attr[st->now].bp_addr);
		KUNIT_EXPECT_EQ_MSG(test, st->mixed, 0, "%s, %d", what, st->when);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, regs.books, "%s, %d", what, st->when);
		KUNIT_EXPECT_EQ_MSG(test, nr_enabled(&regs), 1, "%s, %d", what, st->when);
		KUNIT_EXPECT_GE_MSG(test, slot, 0, "%s, %d", what, st->when);
		if (slot >= 0)
			KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), st->ctl[st->now]);
		if (st->count <= st->when)
			break;
	}
	KUNIT_EXPECT_GT_MSG(test, st->when, 1, "%s", what);
}

static void repointing_between_any_instructions_mixes_nothing(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event * __percpu *set;
	struct stepper st = {
		.nb	= { .notifier_call = step_trap, .priority = INT_MAX },
		.attr	= {
			watch((void *)&words[0] + 7, 1, HW_BREAKPOINT_W),
			watch(&words[1], 8, HW_BREAKPOINT_RW),
		},
		.ctl	= { DR_LEN_1 | DR_RW_WRITE, DR_LEN_8 | DR_RW_READ },
	};

	set = register_wide_hw_breakpoint(&st.attr[0], record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	st.bp = *per_cpu_ptr(set, f->cpu);
	register_die_notifier(&st.nb);

	st.every_step = true;
	expect_never_mixed(test, &st, "local_db_restore", load_by_db_restore);
	st.every_step = false;
	expect_never_mixed(test, &st, "hw_breakpoint_restore", load_by_restore);
	expect_never_mixed(test, &st, "hw_breakpoint_debugger_leave", load_by_debugger);

	unregister_die_notifier(&st.nb);
	unregister_wide_hw_breakpoint(set);
}

/* ---- Cases: what NMI entry touches ---- */

/**
 * struct scan - the search for data that the way into or out of NMI or #DB touches
 * @nb: of the die chain, which is told of each hit
 * @hw: what is watched
 * @bad: hits on the stack of NMI or #DB
 * @ip: where the last of them was
 */
struct scan {
	struct notifier_block		nb;
	struct arch_hw_breakpoint	hw[HBP_NUM];
	int				bad;
	unsigned long			ip;
};

static bool nmi_due;

static int scan_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!READ_ONCE(nmi_due))
		return NMI_DONE;
	WRITE_ONCE(nmi_due, false);
	return NMI_HANDLED;
}

static bool on_trap_stack(unsigned long sp)
{
	return (sp >= __this_cpu_ist_bottom_va(NMI) && sp <= __this_cpu_ist_top_va(NMI)) ||
	       (sp >= __this_cpu_ist_bottom_va(DB) && sp <= __this_cpu_ist_top_va(DB));
}

static int scan_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct scan *scan = container_of(nb, struct scan, nb);
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (val != DIE_DEBUG || !(*dr6 & DR_TRAP_BITS))
		return NOTIFY_DONE;
	*dr6 &= ~DR_TRAP_BITS;
	if (on_trap_stack(args->regs->sp)) {
		scan->bad++;
		scan->ip = args->regs->ip;
	}

	return NOTIFY_STOP;
}

/* One NMI and one #DB, with whatever is watched; false if the NMI does not come. */
static bool trap_both(const struct scan *scan)
{
	int i;

	WRITE_ONCE(nmi_due, true);
	__apic_send_IPI_mask(cpumask_of(raw_smp_processor_id()), NMI_VECTOR);
	for (i = 0; i < 1000000 && READ_ONCE(nmi_due); i++)
		cpu_relax();
	/* What NMI entry touches #DB entry may touch, too, for ever. */
	if (!scan->bad)
		write_word(HBP_NUM);

	return !READ_ONCE(nmi_due);
}

/* The last register triggers a #DB. */
static bool scan_words(struct scan *scan, unsigned long addr, unsigned long end)
{
	bool came;
	int i;

	for (i = 0; i < HBP_NUM - 1; i++, addr += sizeof(long)) {
		hw_breakpoint_debugger_set(i, NULL);
		if (addr < end && !parse(addr, sizeof(long), HW_BREAKPOINT_RW, &scan->hw[i]))
			hw_breakpoint_debugger_set(i, &scan->hw[i]);
	}

	local_irq_disable();
	hw_breakpoint_debugger_leave();
	came = trap_both(scan);
	debugger_leaves_with(no_list);
	local_irq_enable();

	hw_breakpoint_debugger_set(HBP_NUM - 1, &scan->hw[HBP_NUM - 1]);
	return came;
}

static void scan_range(struct kunit *test, struct scan *scan, const char *what,
		       const void *base, size_t size)
{
	unsigned long addr = ALIGN((unsigned long)base, sizeof(long));
	unsigned long end = (unsigned long)base + size;

	for (; addr < end; addr += (HBP_NUM - 1) * sizeof(long)) {
		scan->bad = 0;
		if (!scan_words(scan, addr, end)) {
			KUNIT_FAIL(test, "no NMI came");
			break;
		}
		KUNIT_EXPECT_EQ_MSG(test, scan->bad, 0, "%s + 0x%lx: touched by %pS",
				    what, addr - (unsigned long)base, (void *)scan->ip);
		cond_resched();
	}
}

/*
 * An NMI may come in the middle of #DB, and a second #DB would overwrite the frame
 * of the first: whatever can be watched must be touched with DR7 clear alone.
 */
static void nothing_that_can_be_watched_is_touched_by_nmi_entry(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct scan *scan;
	int err;

	err = register_nmi_handler(NMI_LOCAL, scan_nmi, NMI_FLAG_FIRST, "x86_hw_breakpoint");
	KUNIT_ASSERT_EQ(test, err, 0);

	scan = kunit_kzalloc(test, sizeof(*scan), GFP_KERNEL);
	if (!scan) {
		unregister_nmi_handler(NMI_LOCAL, "x86_hw_breakpoint");
		KUNIT_FAIL(test, "no memory");
		return;
	}
	parse((unsigned long)&words[HBP_NUM], 8, HW_BREAKPOINT_W, &scan->hw[HBP_NUM - 1]);
	hw_breakpoint_debugger_set(HBP_NUM - 1, &scan->hw[HBP_NUM - 1]);
	scan->nb.notifier_call = scan_trap;
	scan->nb.priority = INT_MAX;
	register_die_notifier(&scan->nb);

	scan_range(test, scan, "per-CPU data", (void *)__per_cpu_start + per_cpu_offset(f->cpu),
		   __per_cpu_end - __per_cpu_start);
	scan_range(test, scan, "cpu_online_mask", cpu_online_mask, sizeof(*cpu_online_mask));

	unregister_nmi_handler(NMI_LOCAL, "x86_hw_breakpoint");
	unregister_die_notifier(&scan->nb);
	local_irq_disable();
	debugger_leaves_with(no_list);
	local_irq_enable();
}

/* ---- Cases: the causes of a #DB ---- */

/**
 * struct trap - what became of a #DB
 * @dr6: causes, before and after
 * @flags: of the regs, after
 * @done: what hw_breakpoint_trap() said
 */
struct trap {
	unsigned long	dr6;
	unsigned long	flags;
	bool		done;
};

static struct trap trap_at(void *ip, unsigned long dr6, u16 cs)
{
	struct pt_regs regs = { .cs = cs, .ip = (unsigned long)ip };
	struct trap trap = { .dr6 = dr6 };

	local_irq_disable();
	trap.done = hw_breakpoint_trap(&regs, &trap.dr6);
	local_irq_enable();
	trap.flags = regs.flags;

	return trap;
}

static struct trap trap(unsigned long dr6, u16 cs)
{
	return trap_at(NULL, dr6, cs);
}

static void a_trap_without_a_breakpoint_is_left_alone(struct kunit *test)
{
	struct trap t;

	arm_word(test, 0);
	t = trap(0, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	t = trap(DR_STEP, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
}

static void the_bit_of_a_slot_that_is_not_armed_is_ignored(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct trap t;
	int slot;

	t = trap(DR_TRAP_BITS, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, 0UL);

	arm_word(test, 0);
	slot = slot_now(test, &words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);
	t = trap(DR_TRAP_BITS & ~(DR_TRAP0 << slot), __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);

	/* The slot was armed a moment ago. */
	drop(test, 0);
	t = trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);
}

static void each_bit_is_a_hit_of_its_slot(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned long bits;
	int slot[HBP_NUM];
	struct trap t;
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		arm_word(test, i);
		slot[i] = slot_now(test, &words[i]);
		KUNIT_ASSERT_GE(test, slot[i], 0);
	}
	for (bits = 0; bits <= DR_TRAP_BITS; bits++) {
		t = trap(bits | DR_STEP, __KERNEL_CS);
		KUNIT_EXPECT_FALSE(test, t.done);
		KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
		KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, 0UL);
		for (i = 0; i < HBP_NUM; i++)
			KUNIT_EXPECT_EQ(test, take_hits(f, i), !!(bits & DR_TRAP0 << slot[i]));
	}
}

static void an_instruction_breakpoint_lets_the_step_go_first(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct trap t;
	int slot;

	arm(test, 0, watch(called, sizeof(long), HW_BREAKPOINT_X));
	slot = slot_now(test, called);
	KUNIT_ASSERT_GE(test, slot, 0);

	t = trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, X86_EFLAGS_RF);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 1);

	t = trap(DR_TRAP0 << slot | DR_STEP, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
	KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, 0UL);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);
}

/* The fault on the write that disarms a breakpoint would come again and again. */
static void an_instruction_that_was_watched_a_moment_ago_runs(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct trap here, elsewhere;
	int slot;

	arm(test, 0, watch(called, sizeof(long), HW_BREAKPOINT_X));
	slot = slot_now(test, called);
	KUNIT_ASSERT_GE(test, slot, 0);
	drop(test, 0);

	here = trap_at(called, DR_TRAP0 << slot, __KERNEL_CS);
	elsewhere = trap_at(write_word, DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);
	KUNIT_EXPECT_TRUE(test, here.done);
	KUNIT_EXPECT_EQ(test, here.flags & X86_EFLAGS_RF, X86_EFLAGS_RF);
	KUNIT_EXPECT_TRUE(test, elsewhere.done);
	KUNIT_EXPECT_EQ(test, elsewhere.flags & X86_EFLAGS_RF, 0UL);
}

static void a_hit_in_user_mode_may_end_in_a_signal(struct kunit *test)
{
	unsigned long virtual_dr6 = current->thread.virtual_dr6;
	struct fixture *f = test->priv;
	struct trap plain, wanted;
	int slot;

	arm_word(test, 0);
	slot = slot_now(test, &words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);

	current->thread.virtual_dr6 = 0;
	plain = trap(DR_TRAP0 << slot, __USER_CS);
	current->thread.virtual_dr6 = DR_TRAP2;
	wanted = trap(DR_TRAP0 << slot, __USER_CS);
	current->thread.virtual_dr6 = virtual_dr6;

	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 2);
	KUNIT_EXPECT_TRUE(test, plain.done);
	KUNIT_EXPECT_FALSE(test, wanted.done);
}

static void an_excluded_mode_is_no_hit(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], 8, HW_BREAKPOINT_W);
	struct fixture *f = test->priv;
	int slot;

	attr.exclude_user = 1;
	arm(test, 0, attr);
	slot = slot_now(test, &words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);

	trap(DR_TRAP0 << slot, __USER_CS);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 0);
	trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, take_hits(f, 0), 1);
}

/* ---- The suite ---- */

static int x86_hw_breakpoint_test_init(struct kunit *test)
{
	struct fixture *f;

	if (hw_breakpoint_is_used())
		return -EBUSY;

	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->cpu = raw_smp_processor_id();
	test->priv = f;

	/* The case runs in this thread, which ends with it. */
	return set_cpus_allowed_ptr(current, cpumask_of(f->cpu));
}

static void read_regs_call(void *regs)
{
	read_regs(regs);
}

static void x86_hw_breakpoint_test_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct regs regs;
	int cpu, i;

	if (!f)
		return;

	for (i = 0; i < NR_WORDS; i++) {
		if (!IS_ERR(f->bp[i]))
			drop(test, i);
	}
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, read_regs_call, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, 0UL, "on CPU %d", cpu);
		KUNIT_EXPECT_EQ_MSG(test, regs.books, 0UL, "on CPU %d", cpu);
	}
}

static struct kunit_case x86_hw_breakpoint_test_cases[] = {
	KUNIT_CASE(a_slot_takes_every_control_field_and_touches_no_other),
	KUNIT_CASE(clearing_a_slot_removes_all_of_it_and_nothing_else),
	KUNIT_CASE(either_enable_bit_enables_a_slot),
	KUNIT_CASE(lengths_and_their_bits_are_inverse),
	KUNIT_CASE(a_data_breakpoint_is_a_power_of_two_long_and_aligned),
	KUNIT_CASE(an_instruction_breakpoint_has_one_length_and_any_address),
	KUNIT_CASE(a_kind_that_registers_do_not_know_is_refused),
	KUNIT_CASE(a_range_that_wraps_around_is_refused),
	KUNIT_CASE(the_control_field_says_what_was_asked_for),
	KUNIT_CASE(a_long_range_needs_address_masks),
	KUNIT_CASE(what_the_way_into_db_touches_is_never_watched),
	KUNIT_CASE(what_is_next_to_entry_data_can_be_watched),
	KUNIT_CASE(an_instruction_on_the_kprobe_blacklist_is_refused),
	KUNIT_CASE(the_kernel_begins_where_user_space_ends),
	KUNIT_CASE(a_long_range_into_the_kernel_is_in_the_kernel),
	KUNIT_CASE(an_armed_breakpoint_is_in_one_slot_and_leaves_it),
	KUNIT_CASE(every_kind_is_armed_as_itself),
	KUNIT_CASE(a_breakpoint_keeps_its_slot_when_others_come_and_go),
	KUNIT_CASE(a_disabled_breakpoint_is_in_no_slot),
	KUNIT_CASE(a_slot_that_holds_the_address_is_taken_again),
	KUNIT_CASE(a_modified_breakpoint_is_armed_as_what_it_is_now),
	KUNIT_CASE(a_task_takes_its_breakpoints_off_the_registers),
	KUNIT_CASE(an_instruction_breakpoint_is_hit_at_each_call),
	KUNIT_CASE(nothing_is_written_before_commit),
	KUNIT_CASE(an_equal_set_costs_no_register_write),
	KUNIT_CASE(only_the_slot_that_changes_is_written),
	KUNIT_CASE(a_hit_in_an_open_batch_is_of_the_event_that_was_armed),
	KUNIT_CASE(a_register_changes_hands_without_a_write),
	KUNIT_CASE(a_slot_changes_hands_when_all_are_armed),
	KUNIT_CASE(a_fifth_breakpoint_finds_no_register),
	KUNIT_CASE(hw_breakpoint_active_tells_whether_one_is_armed),
	KUNIT_CASE(local_db_save_silences_until_local_db_restore),
	KUNIT_CASE(local_db_restore_arms_what_is_wanted_by_then),
	KUNIT_CASE(registers_that_were_lost_are_restored),
	KUNIT_CASE(repointing_leaves_a_guest_its_registers),
	KUNIT_CASE(repointing_leaves_a_guest_the_register_that_equals_ours),
	KUNIT_CASE(registers_that_others_used_are_not_believed),
	KUNIT_CASE(a_debugger_gets_registers_next_to_perf),
	KUNIT_CASE(a_debugger_that_is_entered_silences_the_cpu),
	KUNIT_CASE(a_debugger_in_an_open_batch_waits_for_its_commit),
	KUNIT_CASE(a_debugger_does_not_push_perf_out),
	KUNIT_CASE(a_debugger_gets_what_perf_leaves),
	KUNIT_CASE(a_debugger_leaves_arming_to_local_db_restore),
	KUNIT_CASE(a_cpu_that_comes_up_gets_the_debuggers_breakpoints),
	KUNIT_CASE(poking_text_in_the_debugger_arms_nothing),
	KUNIT_CASE(repointing_in_the_debugger_arms_nothing),
	KUNIT_CASE(a_cpu_that_comes_back_is_armed),
	KUNIT_CASE(each_cpu_takes_over_what_the_debugger_set_once),
	KUNIT_CASE(a_debugger_is_refused_only_what_traps_for_ever),
#ifdef CONFIG_KGDB
	KUNIT_CASE(a_breakpoint_is_disarmed_though_its_claims_cannot_be_released),
	KUNIT_CASE(a_debugger_watches_what_the_processor_makes_of_an_address),
#endif
	KUNIT_CASE(repointing_between_any_instructions_mixes_nothing),
	KUNIT_CASE_SLOW(nothing_that_can_be_watched_is_touched_by_nmi_entry),
	KUNIT_CASE(a_trap_without_a_breakpoint_is_left_alone),
	KUNIT_CASE(the_bit_of_a_slot_that_is_not_armed_is_ignored),
	KUNIT_CASE(each_bit_is_a_hit_of_its_slot),
	KUNIT_CASE(an_instruction_breakpoint_lets_the_step_go_first),
	KUNIT_CASE(an_instruction_that_was_watched_a_moment_ago_runs),
	KUNIT_CASE(a_hit_in_user_mode_may_end_in_a_signal),
	KUNIT_CASE(an_excluded_mode_is_no_hit),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_test_suite = {
	.name		= "x86_hw_breakpoint",
	.test_cases	= x86_hw_breakpoint_test_cases,
	.init		= x86_hw_breakpoint_test_init,
	.exit		= x86_hw_breakpoint_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_test_suite);
