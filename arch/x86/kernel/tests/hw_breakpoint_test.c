// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the x86 debug registers: attributes are translated correctly,
 * and the registers of each CPU agree with cpu_dr7 and with the breakpoints.
 */

#include <linux/kdebug.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>

#include <asm/cpu_entry_area.h>
#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/idtentry.h>
#include <asm/nospec-branch.h>
#include <asm/processor.h>
#include <asm/tlbflush.h>

#include "hw_breakpoint_test.h"

/* ---- Cases: DR7 as a value ---- */

static void expect_slot_set(struct kunit *test, unsigned long before, int slot,
			    unsigned int ctl)
{
	unsigned long after = dr7_clear(before, slot) | dr7_bits(slot, ctl);
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

static void dr7_clear_and_bits_change_only_the_field_of_their_slot(struct kunit *test)
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

static void dr7_clear_changes_only_the_field_of_its_slot(struct kunit *test)
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

static void dr7_encoding_of_length_round_trips(struct kunit *test)
{
	unsigned int bytes, rw, seen = 0;

	for (bytes = 1; bytes <= 8; bytes *= 2) {
		KUNIT_EXPECT_EQ(test, dr7_len(bytes) & ~0xcU, 0U);
		seen |= 1U << dr7_len(bytes) / 4;
		for (rw = 0; rw < 4; rw++)
			KUNIT_EXPECT_EQ(test, dr7_ctl_bytes(dr7_len(bytes) | rw), bytes);
	}
	KUNIT_EXPECT_EQ(test, seen, 0xfU);

	/* The encoding of length 8 is not in order. */
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

static void an_instruction_breakpoint_has_one_length_and_any_address(struct kunit *test)
{
	unsigned long offset, len;

	for (len = 0; len <= 16; len++)
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(0x1000, len, HW_BREAKPOINT_X),
				    len == sizeof(long) ? 0 : -EINVAL, "%lu bytes", len);
	for (offset = 0; offset < 16; offset++)
		KUNIT_EXPECT_EQ(test, dr_test_verdict(0x1000 + offset, sizeof(long),
						      HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict((unsigned long)dr_test_called, sizeof(long),
					      HW_BREAKPOINT_X), 0);
}

static void unsupported_type_is_refused(struct kunit *test)
{
	static const u32 types[] = {
		HW_BREAKPOINT_EMPTY, HW_BREAKPOINT_R, HW_BREAKPOINT_INVALID,
		HW_BREAKPOINT_W | HW_BREAKPOINT_X, HW_BREAKPOINT_R | HW_BREAKPOINT_X,
		8, 8 | HW_BREAKPOINT_W, ~0U,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(0x1000, sizeof(long), types[i]), -EINVAL,
				    "type %x", types[i]);
}

static void a_range_that_wraps_around_is_refused(struct kunit *test)
{
	unsigned long last = ~0UL;

	KUNIT_EXPECT_EQ(test, dr_test_verdict(last - WORD + 2, WORD, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(last, WORD, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(last - WORD + 1, WORD, HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(last - WORD + 1, WORD, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(last, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(last, 2, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x1000, last, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x1000, last - 0xfff, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0, last, HW_BREAKPOINT_X), -EINVAL);
	/* Attributes have 64 bits in a 32-bit kernel, too. */
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x1000, BIT_ULL(32) + 4, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x1000, BIT_ULL(32) + 6, HW_BREAKPOINT_RW), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(BIT_ULL(32) - 4, 8, HW_BREAKPOINT_W),
			WORD == 8 ? 0 : -EINVAL);
}

static void expect_ctl(struct kunit *test, u64 addr, u64 len, u32 type, unsigned int ctl)
{
	struct arch_hw_breakpoint hw;

	memset(&hw, 0xff, sizeof(hw));
	KUNIT_EXPECT_EQ(test, dr_test_parse(addr, len, type, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw.address, (unsigned long)addr);
	KUNIT_EXPECT_EQ(test, (unsigned int)hw.ctl, ctl);
	KUNIT_EXPECT_EQ(test, hw.mask, 0U);
}

static void control_field_encodes_type_and_length(struct kunit *test)
{
	expect_ctl(test, 0x1000, 1, HW_BREAKPOINT_W, 0x1);
	expect_ctl(test, 0x1000, 2, HW_BREAKPOINT_W, 0x5);
	expect_ctl(test, 0x1000, 4, HW_BREAKPOINT_W, 0xd);
	expect_ctl(test, 0x1008, 1, HW_BREAKPOINT_RW, 0x3);
	expect_ctl(test, 0x1008, 2, HW_BREAKPOINT_RW, 0x7);
	expect_ctl(test, 0x1008, 4, HW_BREAKPOINT_RW, 0xf);
	expect_ctl(test, 0x1003, WORD, HW_BREAKPOINT_X, 0x0);
	if (WORD == 4)
		return;
	expect_ctl(test, 0x1000, 8, HW_BREAKPOINT_W, 0x9);
	expect_ctl(test, 0x1008, 8, HW_BREAKPOINT_RW, 0xb);
}

static void a_long_range_needs_address_masks(struct kunit *test)
{
	struct arch_hw_breakpoint hw;
	unsigned long len;

	for (len = 64; len <= 4096; len *= 2) {
		int err = dr_test_parse(0x10000, len, HW_BREAKPOINT_W, &hw);

		KUNIT_EXPECT_EQ_MSG(test, err, has_masks() ? 0 : -EOPNOTSUPP, "%lu bytes", len);
		if (err)
			continue;
		KUNIT_EXPECT_EQ(test, (unsigned long)hw.mask, len - 1);
		KUNIT_EXPECT_EQ(test, (unsigned int)hw.ctl, 0x1U);
	}
	len = 1UL << (BITS_PER_LONG / 2 + 1);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0, len, HW_BREAKPOINT_W), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, hw_breakpoint_mask(0), 0U);
}

/* Checks three bytes of the data, alone and as part of longer ranges. */
static void expect_never_watched(struct kunit *test, const char *what, int cpu,
				 const void *base, size_t size)
{
	unsigned long first = (unsigned long)base;
	unsigned long last = first + size - 1;
	unsigned long addr[] = { first, first + size / 2, last };
	int i;

	for (i = 0; i < ARRAY_SIZE(addr); i++) {
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(addr[i], 1, HW_BREAKPOINT_W), -EINVAL,
				    "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(addr[i], 1, HW_BREAKPOINT_RW), -EINVAL,
				    "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(ALIGN_DOWN(addr[i], 8), 8,
							  HW_BREAKPOINT_RW),
				    -EINVAL, "%s of CPU %d + %lx", what, cpu, addr[i] - first);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(ALIGN_DOWN(addr[i], 4096), 4096,
							  HW_BREAKPOINT_W),
				    -EINVAL, "%s of CPU %d + %lx", what, cpu, addr[i] - first);
	}
	/* A range that begins before the data */
	KUNIT_EXPECT_EQ_MSG(test, dr_test_verdict(first - WORD + 1, WORD, HW_BREAKPOINT_X),
			    -EINVAL, "%s of CPU %d", what, cpu);
}

#define expect_percpu_never_watched(test, var, cpu)				\
do {										\
	int __cpu = (cpu);							\
										\
	expect_never_watched(test, #var, __cpu, per_cpu_ptr(&(var), __cpu),	\
			     sizeof(var));					\
} while (0)

static void data_read_by_db_entry_is_refused(struct kunit *test)
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
		expect_percpu_never_watched(test, this_cpu_off, cpu);
#endif
	}
}

static void data_next_to_entry_data_is_accepted(struct kunit *test)
{
	unsigned long end = CPU_ENTRY_AREA_BASE + CPU_ENTRY_AREA_MAP_SIZE;

	KUNIT_EXPECT_EQ(test, dr_test_verdict(CPU_ENTRY_AREA_BASE - 8, WORD, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(end, WORD, HW_BREAKPOINT_W), 0);
#ifdef CONFIG_SMP
	if (nr_cpu_ids < ARRAY_SIZE(__per_cpu_offset))
		KUNIT_EXPECT_EQ(test, dr_test_verdict((unsigned long)&__per_cpu_offset[nr_cpu_ids],
						      sizeof(long), HW_BREAKPOINT_W), 0);
#endif
	KUNIT_EXPECT_EQ(test, dr_test_verdict((unsigned long)dr_test_words, WORD,
					      HW_BREAKPOINT_W), 0);
}

static void expect_moved(struct kunit *test, const struct arch_hw_breakpoint *hw,
			 unsigned long addr)
{
	struct arch_hw_breakpoint to;

	memset(&to, 0xff, sizeof(to));
	KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(hw, addr, &to), 0);
	KUNIT_EXPECT_EQ(test, to.address, addr);
	KUNIT_EXPECT_EQ(test, to.mask, hw->mask);
	KUNIT_EXPECT_EQ(test, (unsigned int)to.ctl, (unsigned int)hw->ctl);
}

/* The same result as parsing with another address; masks of any processor are accepted. */
static void a_moved_breakpoint_keeps_all_but_the_address(struct kunit *test)
{
	const struct arch_hw_breakpoint page = {
		.address = 0x10000, .mask = 4095, .ctl = DR_LEN_1 | DR_RW_WRITE,
	};
	const struct arch_hw_breakpoint word = {
		.address = 0x10000, .ctl = DR_LEN_WORD | DR_RW_READ,
	};
	const struct arch_hw_breakpoint code = { .address = 0x10000 };
	struct arch_hw_breakpoint to;
	int cpu;

	expect_moved(test, &page, 0x30000);
	expect_moved(test, &word, 0x30008);
	expect_moved(test, &word, (unsigned long)dr_test_words);
	expect_moved(test, &code, 0x30003);
	KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(&page, 0x30008, &to), -EINVAL);
	/* Two pieces there */
	KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(&word, 0x30000 + WORD / 2, &to), 0);
	KUNIT_EXPECT_EQ(test, hw_breakpoint_weight(&to), 2U);

	/* arch_hw_breakpoint_move() has to refuse each address that parsing refuses. */
	KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(&code, (unsigned long)__entry_text_start,
						      &to), -EINVAL);
	for_each_possible_cpu(cpu) {
		unsigned long addr = (unsigned long)per_cpu_ptr(&cpu_dr7, cpu);

		KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(&word, addr, &to), -EINVAL);
		KUNIT_EXPECT_EQ(test, arch_hw_breakpoint_move(&page, ALIGN_DOWN(addr, 4096), &to),
				-EINVAL);
	}
}

static void an_instruction_on_the_kprobe_blacklist_is_refused(struct kunit *test)
{
	unsigned long entry = (unsigned long)__entry_text_start;
	unsigned long noinstr_text = (unsigned long)__noinstr_text_start;

	if (!IS_ENABLED(CONFIG_KPROBES))
		kunit_skip(test, "no blacklist without CONFIG_KPROBES");

	KUNIT_EXPECT_EQ(test, dr_test_verdict(entry, WORD, HW_BREAKPOINT_X), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(noinstr_text, WORD, HW_BREAKPOINT_X), -EINVAL);
	/* Refused for no other reason: the debugger may have these. */
	KUNIT_EXPECT_EQ(test, dr_test_verdict((unsigned long)notify_die, WORD, HW_BREAKPOINT_X),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict((unsigned long)exc_page_fault, WORD, HW_BREAKPOINT_X),
			-EINVAL);
	/* The kprobe blacklist applies to instruction breakpoints only. */
	KUNIT_EXPECT_EQ(test, dr_test_verdict(ALIGN(noinstr_text, 8), WORD, HW_BREAKPOINT_RW), 0);
}

static int in_kernel(unsigned long addr, u64 len, u32 type)
{
	struct arch_hw_breakpoint hw;

	if (dr_test_parse(addr, len, type, &hw))
		return -1;
	return arch_check_bp_in_kernelspace(&hw);
}

static void the_kernel_begins_where_user_space_ends(struct kunit *test)
{
	unsigned long end = TASK_SIZE_MAX;

	KUNIT_EXPECT_EQ(test, in_kernel(0, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - 1, 1, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - WORD, WORD, HW_BREAKPOINT_RW), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end - 1, WORD, HW_BREAKPOINT_X), 0);
	KUNIT_EXPECT_EQ(test, in_kernel(end, 1, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(end, WORD, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(end, WORD, HW_BREAKPOINT_X), 1);
	KUNIT_EXPECT_EQ(test, in_kernel((unsigned long)dr_test_words, WORD, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel((unsigned long)dr_test_called, WORD, HW_BREAKPOINT_X), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(~0UL, 1, HW_BREAKPOINT_W), 1);
	KUNIT_EXPECT_EQ(test, in_kernel(~0UL - WORD + 1, WORD, HW_BREAKPOINT_X), 1);
}

/* Needs no processor with address masks: the function only computes. */
static void range_that_reaches_into_the_kernel_is_a_kernel_range(struct kunit *test)
{
	struct arch_hw_breakpoint hw = { .ctl = DR_LEN_1 | DR_RW_WRITE, .mask = 0x1fff };

	hw.address = TASK_SIZE_MAX - 0x2000;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 0);
	hw.address = TASK_SIZE_MAX - 0x1fff;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 1);
	hw.address = TASK_SIZE_MAX;
	KUNIT_EXPECT_EQ(test, arch_check_bp_in_kernelspace(&hw), 1);
}

/* ---- Cases: contents of the registers ---- */

static void breakpoint_is_armed_in_one_slot_until_unregistered(struct kunit *test)
{
	struct dr_test_regs regs;
	int slot;

	dr_test_arm_word(test, 0);
	regs = dr_test_regs_now(test);
	slot = dr_test_slot_at(&regs, &dr_test_words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_WORD | DR_RW_WRITE);

	dr_test_drop(test, 0);
	regs = dr_test_regs_now(test);
	KUNIT_EXPECT_EQ(test, regs.dr7, 0UL);
}

static void expect_armed_with(struct kunit *test, const void *addr, u64 len, u32 type,
			      unsigned int ctl)
{
	struct dr_test_regs regs;
	int slot;

	dr_test_arm(test, 0, dr_test_watch(addr, len, type));
	regs = dr_test_regs_now(test);
	slot = dr_test_slot_at(&regs, addr);
	KUNIT_EXPECT_GE(test, slot, 0);
	if (slot >= 0)
		KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), ctl);
	dr_test_drop(test, 0);
}

static void each_type_and_length_is_armed_with_its_control_field(struct kunit *test)
{
	void *word = &dr_test_words[0];

	expect_armed_with(test, word, 1, HW_BREAKPOINT_W, DR_LEN_1 | DR_RW_WRITE);
	expect_armed_with(test, word + 2, 2, HW_BREAKPOINT_W, DR_LEN_2 | DR_RW_WRITE);
	expect_armed_with(test, word + 4, 4, HW_BREAKPOINT_RW, DR_LEN_4 | DR_RW_READ);
	expect_armed_with(test, word, WORD, HW_BREAKPOINT_RW, DR_LEN_WORD | DR_RW_READ);
	expect_armed_with(test, dr_test_called, sizeof(long), HW_BREAKPOINT_X,
			  DR_LEN_1 | DR_RW_EXECUTE);
}

static void expect_slots(struct kunit *test, const int want[HBP_NUM])
{
	struct dr_test_regs regs = dr_test_regs_now(test);
	int i, nr = 0;

	for (i = 0; i < HBP_NUM; i++) {
		KUNIT_EXPECT_EQ_MSG(test, dr_test_slot_at(&regs, &dr_test_words[i]), want[i],
				    "word %d", i);
		nr += want[i] >= 0;
	}
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), nr);
}

static void a_breakpoint_keeps_its_slot_when_others_come_and_go(struct kunit *test)
{
	int slots[HBP_NUM] = { -1, -1, -1, -1 };
	struct dr_test *f = test->priv;
	int i, leaves;

	for (i = 0; i < HBP_NUM; i++) {
		dr_test_arm_word(test, i);
		slots[i] = dr_test_slot_now(test, &dr_test_words[i]);
		KUNIT_EXPECT_GE(test, slots[i], 0);
		expect_slots(test, slots);
	}

	for (leaves = 0; leaves < HBP_NUM; leaves++) {
		int left[HBP_NUM];

		dr_test_drop(test, leaves);
		memcpy(left, slots, sizeof(left));
		left[leaves] = -1;
		expect_slots(test, left);
		for (i = 0; i < HBP_NUM; i++)
			KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, i), i != leaves);
		dr_test_arm_word(test, leaves);
		expect_slots(test, slots);
	}
}

static void a_disabled_breakpoint_is_in_no_slot(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct perf_event *bp;
	struct dr_test_regs regs;
	int slot;

	bp = dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);
	slot = dr_test_slot_now(test, &dr_test_words[0]);

	perf_event_disable(bp);
	regs = dr_test_regs_now(test);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&regs, &dr_test_words[0]), -1);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 0);

	perf_event_enable(bp);
	KUNIT_EXPECT_EQ(test, dr_test_slot_now(test, &dr_test_words[0]), slot);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 1);
}

static void a_slot_that_holds_the_address_is_taken_again(struct kunit *test)
{
	struct dr_test *f = test->priv;
	int slot[3], i;

	for (i = 0; i < 3; i++) {
		dr_test_arm_word(test, i);
		slot[i] = dr_test_slot_now(test, &dr_test_words[i]);
	}
	perf_event_disable(f->bp[0]);
	perf_event_disable(f->bp[1]);

	/* Both slots are free; one of the address registers has the address. */
	perf_event_enable(f->bp[1]);
	KUNIT_EXPECT_EQ(test, dr_test_slot_now(test, &dr_test_words[1]), slot[1]);
	perf_event_enable(f->bp[0]);
	KUNIT_EXPECT_EQ(test, dr_test_slot_now(test, &dr_test_words[0]), slot[0]);
}

static void modify_updates_the_armed_register(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	struct dr_test_regs regs;
	int slot;

	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	dr_test_arm_word(test, 2);
	KUNIT_EXPECT_GE(test, dr_test_slot_now(test, &dr_test_words[0]), 0);

	attr = dr_test_watch(&dr_test_words[1], 4, HW_BREAKPOINT_RW);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	regs = dr_test_regs_now(test);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 2);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&regs, &dr_test_words[0]), -1);
	slot = dr_test_slot_at(&regs, &dr_test_words[1]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_4 | DR_RW_READ);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&regs, &dr_test_words[2]), 0);

	/* The same address with another control field */
	attr = dr_test_watch(&dr_test_words[1], WORD, HW_BREAKPOINT_W);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	regs = dr_test_regs_now(test);
	slot = dr_test_slot_at(&regs, &dr_test_words[1]);
	KUNIT_ASSERT_GE(test, slot, 0);
	KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), DR_LEN_WORD | DR_RW_WRITE);

	attr.disabled = 1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	KUNIT_EXPECT_EQ(test, dr_test_slot_now(test, &dr_test_words[1]), -1);
}

struct read_work {
	struct kthread_work	work;
	struct dr_test_regs		regs;
};

static void read_work(struct kthread_work *work)
{
	dr_test_read_regs(&container_of(work, struct read_work, work)->regs);
}

/* Returns the contents of the registers while @worker runs. */
static struct dr_test_regs regs_of(struct kthread_worker *worker)
{
	struct read_work read = { };

	kthread_init_work(&read.work, read_work);
	kthread_queue_work(worker, &read.work);
	kthread_flush_work(&read.work);

	return read.regs;
}

static void task_switch_disarms_breakpoints_of_the_previous_task(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	struct kthread_worker *worker;
	struct dr_test_regs regs;
	int stays;

	worker = kthread_create_worker_on_cpu(f->cpu, 0, "x86_hw_breakpoint");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, worker);
	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0],
					       worker->task);
	dr_test_arm_word(test, 1);
	stays = dr_test_slot_now(test, &dr_test_words[1]);

	regs = regs_of(worker);
	KUNIT_EXPECT_EQ(test, regs.cpu, f->cpu);
	KUNIT_EXPECT_EQ(test, regs.dr7, regs.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 2);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&regs, &dr_test_words[0]), 0);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&regs, &dr_test_words[1]), stays);

	regs = dr_test_regs_now(test);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 1);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&regs, &dr_test_words[1]), stays);

	dr_test_drop(test, 0);
	kthread_destroy_worker(worker);
}

static void an_instruction_breakpoint_is_hit_at_each_call(struct kunit *test)
{
	struct dr_test *f = test->priv;
	int i;

	dr_test_called();
	dr_test_arm(test, 0, dr_test_watch(dr_test_called, sizeof(long), HW_BREAKPOINT_X));
	for (i = 0; i < 3; i++) {
		dr_test_called();
		KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 1);
		KUNIT_EXPECT_EQ(test, f->hits[0].ip, (unsigned long)dr_test_called);
	}
	dr_test_drop(test, 0);
	dr_test_called();
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);
}

/* ---- Cases: a batch of changes ---- */

static void nothing_is_written_before_commit(struct kunit *test)
{
	struct dr_test_regs before, open, gone, back;
	struct dr_test *f = test->priv;
	struct perf_event *bp;
	int hits;

	bp = dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);

	local_irq_disable();
	dr_test_read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(bp);
	dr_test_read_regs(&open);
	hits = dr_test_write_hits(f, 0);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&gone);
	arch_hw_breakpoint_begin();
	arch_install_hw_breakpoint(bp);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&back);
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &open, &before, sizeof(open));
	KUNIT_EXPECT_EQ(test, hits, 1);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&gone, &dr_test_words[0]), -1);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&gone), 1);
	KUNIT_EXPECT_EQ(test, gone.dr7, gone.cpu_dr7);
	KUNIT_EXPECT_EQ(test, back.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 1);
}

/* Changes the address of @bp, which is armed, to that of word @i. */
static void change_to_word(struct perf_event *bp, int i)
{
	struct arch_hw_breakpoint hw = bp->hw.info;

	hw.address = (unsigned long)&dr_test_words[i];
	arch_hw_breakpoint_change(bp, &hw);
}

static void change_of_address_writes_nothing_before_commit(struct kunit *test)
{
	struct perf_event *bp = dr_test_arm_word(test, 0);
	struct dr_test_regs before, open, after;

	local_irq_disable();
	dr_test_read_regs(&before);
	arch_hw_breakpoint_begin();
	change_to_word(bp, 1);
	dr_test_read_regs(&open);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&after);
	change_to_word(bp, 0);
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &open, &before, sizeof(open));
	KUNIT_EXPECT_EQ(test, after.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&after, &dr_test_words[1]), (int)bp->hw.info.slot);
}

static void change_of_address_writes_one_register(struct kunit *test)
{
	struct perf_event *bp = dr_test_arm_word(test, 0);
	struct dr_test *f = test->priv;
	struct dr_test_regs after;
	bool mark_stands;
	int hits;

	dr_test_arm_word(test, 1);

	local_irq_disable();
	dr_test_mark_dr7();
	change_to_word(bp, 2);
	mark_stands = dr_test_dr7_mark_stands();
	dr_test_read_regs(&after);
	atomic_set(&f->hits[0].nr, 0);
	dr_test_write_word(2);
	hits = dr_test_take_hits(f, 0);
	change_to_word(bp, 0);
	local_irq_enable();

	KUNIT_EXPECT_TRUE(test, mark_stands);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&after, &dr_test_words[2]), (int)bp->hw.info.slot);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&after), 2);
	KUNIT_EXPECT_EQ(test, hits, 1);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 1);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 1), 1);
}

static void equal_set_needs_no_register_write(struct kunit *test)
{
	struct perf_event *bp[HBP_NUM];
	struct dr_test_regs marked, after;
	int i;

	for (i = 0; i < HBP_NUM; i++)
		bp[i] = dr_test_arm_word(test, i);

	local_irq_disable();
	for (i = 0; i < HBP_NUM; i++)
		set_debugreg((unsigned long)&dr_test_words[HBP_NUM + i], i);
	dr_test_mark_dr7();
	dr_test_read_regs(&marked);
	arch_hw_breakpoint_begin();
	for (i = 0; i < HBP_NUM; i++)
		arch_uninstall_hw_breakpoint(bp[i]);
	for (i = HBP_NUM - 1; i >= 0; i--)
		arch_install_hw_breakpoint(bp[i]);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&after);
	hw_breakpoint_restore();
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &after, &marked, sizeof(after));
	for (i = 0; i < HBP_NUM; i++)
		KUNIT_EXPECT_GE(test, dr_test_slot_now(test, &dr_test_words[i]), 0);
}

/* Replaces the breakpoints @installed by those of @set; both are bitmaps. */
static void install_set(struct dr_test *f, unsigned int installed, unsigned int set)
{
	int i;

	arch_hw_breakpoint_begin();
	for (i = 0; i < HBP_NUM; i++) {
		if (installed & BIT(i))
			arch_uninstall_hw_breakpoint(f->bp[i]);
	}
	for (i = HBP_NUM - 1; i >= 0; i--) {
		if (set & BIT(i))
			WARN_ON_ONCE(arch_install_hw_breakpoint(f->bp[i]));
	}
	arch_hw_breakpoint_commit();
}

static bool only_set_is_armed(struct dr_test *f, unsigned int set)
{
	struct dr_test_regs regs;
	int i, slot;

	dr_test_read_regs(&regs);
	for (i = 0; i < HBP_NUM; i++) {
		slot = dr_test_slot_at(&regs, &dr_test_words[i]);
		if ((slot >= 0) != !!(set & BIT(i)))
			return false;
		if (slot >= 0 && dr7_ctl(regs.dr7, slot) != f->bp[i]->hw.info.ctl)
			return false;
	}

	return dr_test_nr_enabled(&regs) == hweight32(set) && regs.dr7 == regs.cpu_dr7;
}

/* Replaces each set of breakpoints, the empty one too, by each other. */
static void any_set_of_breakpoints_can_replace_any_other(struct kunit *test)
{
	unsigned int all = BIT(HBP_NUM) - 1, from, to, wrong = 0;
	struct dr_test *f = test->priv;
	int i, missed = 0;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm(test, i, dr_test_watch(&dr_test_words[i], min(1U << i, WORD),
						   i & 1 ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W));

	local_irq_disable();
	for (from = 0; from <= all; from++) {
		install_set(f, all, from);
		for (to = 0; to <= all; to++) {
			install_set(f, from, to);
			wrong += !only_set_is_armed(f, to);
			for (i = 0; i < HBP_NUM; i++)
				missed += dr_test_write_hits(f, i) != !!(to & BIT(i));
			install_set(f, to, from);
			wrong += !only_set_is_armed(f, from);
		}
		install_set(f, from, all);
	}
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, missed, 0);
}

/* As in a task switch: with nothing armed, any slot would do. */
static void breakpoints_return_to_their_slots_after_all_were_off(struct kunit *test)
{
	struct dr_test_regs before, none, after;
	struct dr_test *f = test->priv;
	int i;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);

	local_irq_disable();
	dr_test_read_regs(&before);
	install_set(f, BIT(HBP_NUM) - 1, 0);
	dr_test_read_regs(&none);
	install_set(f, 0, BIT(HBP_NUM) - 1);
	dr_test_read_regs(&after);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&none), 0);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
}

static void only_the_slot_that_changes_is_written(struct kunit *test)
{
	int stays[2], changes, installed, i;
	struct dr_test *f = test->priv;
	struct perf_event *old, *new;
	struct dr_test_regs after;

	dr_test_arm_word(test, 0);
	old = dr_test_arm_word(test, 1);
	dr_test_arm_word(test, 2);
	new = dr_test_hold_word(test, 3, 3);
	stays[0] = dr_test_slot_now(test, &dr_test_words[0]);
	stays[1] = dr_test_slot_now(test, &dr_test_words[2]);

	local_irq_disable();
	for (i = 0; i < 2; i++)
		set_debugreg((unsigned long)&dr_test_words[HBP_NUM + i], stays[i]);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	installed = arch_install_hw_breakpoint(new);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&after);
	hw_breakpoint_restore();
	changes = dr_test_write_hits(f, 3);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, installed, 0);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&after, &dr_test_words[HBP_NUM]), stays[0]);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&after, &dr_test_words[HBP_NUM + 1]), stays[1]);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&after, &dr_test_words[3]), 0);
	KUNIT_EXPECT_EQ(test, changes, 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, i), 1);
}

static void hit_in_open_batch_counts_for_the_armed_event(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct perf_event *old, *new;
	int in_old, in_new, out_old, out_new;

	old = dr_test_arm_word(test, 0);
	new = dr_test_hold_word(test, 1, 1);

	local_irq_disable();
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	in_old = dr_test_write_hits(f, 0);
	in_new = dr_test_write_hits(f, 1);
	arch_hw_breakpoint_commit();
	out_old = dr_test_write_hits(f, 0);
	out_new = dr_test_write_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, in_old, 1);
	KUNIT_EXPECT_EQ(test, in_new, 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 1);
}

static void register_passes_to_an_equal_breakpoint_without_write(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct perf_event *old, *new;
	int in_old, in_new, out_old, out_new;
	bool unwritten;

	old = dr_test_arm_word(test, 0);
	new = dr_test_hold_word(test, 1, 0);

	local_irq_disable();
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	dr_test_write_word(0);
	in_old = dr_test_take_hits(f, 0);
	in_new = dr_test_take_hits(f, 1);
	/* Set the mark after the hit: the exit of #DB writes DR7. */
	dr_test_mark_dr7();
	arch_hw_breakpoint_commit();
	unwritten = dr_test_dr7_mark_stands();
	dr_test_write_word(0);
	out_old = dr_test_take_hits(f, 0);
	out_new = dr_test_take_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_TRUE(test, unwritten);
	KUNIT_EXPECT_EQ(test, in_old, 1);
	KUNIT_EXPECT_EQ(test, in_new, 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
}

static void one_breakpoint_of_a_full_set_can_be_replaced(struct kunit *test)
{
	struct perf_event *fifth = dr_test_make_fifth(test, 4);
	struct dr_test_regs before, changed, back;
	struct dr_test *f = test->priv;
	int i, gone, stay;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);

	local_irq_disable();
	dr_test_read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(f->bp[1]);
	arch_install_hw_breakpoint(fifth);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&changed);
	gone = dr_test_write_hits(f, 1);
	stay = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 2) + dr_test_write_hits(f, 3);
	dr_test_write_word(4);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(fifth);
	arch_install_hw_breakpoint(f->bp[1]);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&back);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&changed), HBP_NUM);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&changed, &dr_test_words[1]), -1);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&changed, &dr_test_words[4]),
			dr_test_slot_at(&before, &dr_test_words[1]));
	KUNIT_EXPECT_EQ(test, gone, 0);
	KUNIT_EXPECT_EQ(test, stay, 3);
	KUNIT_EXPECT_EQ(test, local64_read(&fifth->count), 1LL);
	KUNIT_EXPECT_MEMEQ(test, &back, &before, sizeof(back));
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 1), 1);
}

static void a_fifth_breakpoint_finds_no_register(struct kunit *test)
{
	struct perf_event *fifth = dr_test_make_fifth(test, 4);
	struct dr_test_regs before, after;
	int i, err;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);

	local_irq_disable();
	dr_test_read_regs(&before);
	err = arch_install_hw_breakpoint(fifth);
	dr_test_read_regs(&after);
	if (!err)
		arch_uninstall_hw_breakpoint(fifth);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, err, -ENOSPC);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
}

/* ---- Cases: other users of the registers ---- */

static void hw_breakpoint_active_is_true_while_one_is_armed(struct kunit *test)
{
	bool before, armed, disabled, gone;
	struct dr_test *f = test->priv;

	local_irq_disable();
	before = hw_breakpoint_active();
	local_irq_enable();

	dr_test_arm_word(test, 0);
	local_irq_disable();
	armed = hw_breakpoint_active();
	local_irq_enable();

	perf_event_disable(f->bp[0]);
	local_irq_disable();
	disabled = hw_breakpoint_active();
	local_irq_enable();

	dr_test_drop(test, 0);
	local_irq_disable();
	gone = hw_breakpoint_active();
	local_irq_enable();

	KUNIT_EXPECT_FALSE(test, before);
	KUNIT_EXPECT_TRUE(test, armed);
	KUNIT_EXPECT_FALSE(test, disabled);
	KUNIT_EXPECT_FALSE(test, gone);
}

static void local_db_save_disarms_until_local_db_restore(struct kunit *test)
{
	struct dr_test_regs before, saved, restored;
	struct dr_test *f = test->priv;
	unsigned long dr7, nothing;
	int hits, silent;

	local_irq_disable();
	nothing = local_db_save();
	local_db_restore(nothing);
	local_irq_enable();
	dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);

	local_irq_disable();
	dr_test_read_regs(&before);
	dr7 = local_db_save();
	dr_test_read_regs(&saved);
	silent = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 1);
	local_db_restore(dr7);
	dr_test_read_regs(&restored);
	hits = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 1);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, nothing, (unsigned long)DB_NOTHING_ARMED);
	KUNIT_EXPECT_EQ(test, dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, saved.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_MEMEQ(test, &restored, &before, sizeof(before));
	KUNIT_EXPECT_EQ(test, hits, 2);
}

static void local_db_restore_arms_the_current_set(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct perf_event *old, *new;
	int inside, out_old, out_new;
	struct dr_test_regs saved, restored;
	unsigned long dr7;

	old = dr_test_arm_word(test, 0);
	new = dr_test_hold_word(test, 1, 1);

	local_irq_disable();
	dr7 = local_db_save();
	dr_test_read_regs(&saved);
	inside = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 1);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(old);
	arch_install_hw_breakpoint(new);
	arch_hw_breakpoint_commit();
	local_db_restore(dr7);
	dr_test_read_regs(&restored);
	out_old = dr_test_write_hits(f, 0);
	out_new = dr_test_write_hits(f, 1);
	arch_uninstall_hw_breakpoint(new);
	arch_install_hw_breakpoint(old);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, saved.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, inside, 0);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&restored, &dr_test_words[0]), -1);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&restored, &dr_test_words[1]), 0);
	KUNIT_EXPECT_EQ(test, out_old, 0);
	KUNIT_EXPECT_EQ(test, out_new, 1);
}

/* Overwrites the registers as a guest of KVM does. */
static void registers_that_were_lost_are_restored(struct kunit *test)
{
	struct dr_test_regs before, off, after;
	struct dr_test *f = test->priv;
	int i, hits[3];

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);

	local_irq_disable();
	dr_test_read_regs(&before);
	hits[0] = dr_test_write_hits(f, 3);
	hw_breakpoint_disable();
	dr_test_read_regs(&off);
	hits[1] = dr_test_write_hits(f, 3);
	dr_test_scramble_registers();
	hw_breakpoint_restore();
	dr_test_read_regs(&after);
	hits[2] = dr_test_write_hits(f, 3);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, hits[0], 1);
	KUNIT_EXPECT_EQ(test, off.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, hits[1], 0);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
	KUNIT_EXPECT_EQ(test, hits[2], 1);
}

/*
 * As if an NMI repointed while the registers belong to a guest of KVM, which may have
 * the same values as the host
 */
static void repoint_while_a_guest_runs(struct kunit *test, bool has_values_of_host)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	struct perf_event * __percpu *set;
	struct dr_test_regs guest, lent, after;
	int err, hits;

	set = register_wide_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));

	local_irq_disable();
	if (has_values_of_host) {
		hw_breakpoint_disable();
	} else {
		set_debugreg(0UL, 7);
		dr_test_scramble_registers();
	}
	dr_test_read_regs(&guest);
	err = modify_wide_hw_breakpoint_local(set, (unsigned long)&dr_test_words[1], NULL);
	dr_test_read_regs(&lent);
	hw_breakpoint_restore();
	dr_test_read_regs(&after);
	hits = dr_test_write_hits(f, 1);
	local_irq_enable();
	unregister_wide_hw_breakpoint(set);

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_MEMEQ(test, lent.addr, guest.addr, sizeof(lent.addr));
	KUNIT_EXPECT_EQ(test, lent.dr7, guest.dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&after), 1);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&after, &dr_test_words[1]), 0);
	KUNIT_EXPECT_EQ(test, after.dr7, after.cpu_dr7);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

static void repoint_does_not_write_registers_of_a_guest(struct kunit *test)
{
	repoint_while_a_guest_runs(test, false);
}

static void repoint_does_not_write_a_guest_register_with_our_value(struct kunit *test)
{
	repoint_while_a_guest_runs(test, true);
}

static void registers_that_others_wrote_are_written_again(struct kunit *test)
{
	struct dr_test *f = test->priv;

	/* The previous contents are lost. */
	dr_test_arm_word(test, 0);
	dr_test_drop(test, 0);
	local_irq_disable();
	dr_test_scramble_registers();
	local_irq_enable();
	dr_test_arm_word(test, 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_now(test, &dr_test_words[0]), 0);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 1);

	/* hw_breakpoint_restore() does not load slots that are not armed. */
	dr_test_arm_word(test, 1);
	dr_test_arm_word(test, 2);
	dr_test_drop(test, 1);
	local_irq_disable();
	hw_breakpoint_disable();
	dr_test_scramble_registers();
	hw_breakpoint_restore();
	local_irq_enable();
	dr_test_arm_word(test, 1);
	KUNIT_EXPECT_GE(test, dr_test_slot_now(test, &dr_test_words[1]), 0);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 1), 1);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 2), 1);
}

/* ---- The suite ---- */

static struct kunit_case x86_hw_breakpoint_test_cases[] = {
	KUNIT_CASE(dr7_clear_and_bits_change_only_the_field_of_their_slot),
	KUNIT_CASE(dr7_clear_changes_only_the_field_of_its_slot),
	KUNIT_CASE(either_enable_bit_enables_a_slot),
	KUNIT_CASE(dr7_encoding_of_length_round_trips),
	KUNIT_CASE(an_instruction_breakpoint_has_one_length_and_any_address),
	KUNIT_CASE(unsupported_type_is_refused),
	KUNIT_CASE(a_range_that_wraps_around_is_refused),
	KUNIT_CASE(control_field_encodes_type_and_length),
	KUNIT_CASE(a_long_range_needs_address_masks),
	KUNIT_CASE(data_read_by_db_entry_is_refused),
	KUNIT_CASE(data_next_to_entry_data_is_accepted),
	KUNIT_CASE(a_moved_breakpoint_keeps_all_but_the_address),
	KUNIT_CASE(an_instruction_on_the_kprobe_blacklist_is_refused),
	KUNIT_CASE(the_kernel_begins_where_user_space_ends),
	KUNIT_CASE(range_that_reaches_into_the_kernel_is_a_kernel_range),
	KUNIT_CASE(breakpoint_is_armed_in_one_slot_until_unregistered),
	KUNIT_CASE(each_type_and_length_is_armed_with_its_control_field),
	KUNIT_CASE(a_breakpoint_keeps_its_slot_when_others_come_and_go),
	KUNIT_CASE(a_disabled_breakpoint_is_in_no_slot),
	KUNIT_CASE(a_slot_that_holds_the_address_is_taken_again),
	KUNIT_CASE(modify_updates_the_armed_register),
	KUNIT_CASE(task_switch_disarms_breakpoints_of_the_previous_task),
	KUNIT_CASE(an_instruction_breakpoint_is_hit_at_each_call),
	KUNIT_CASE(nothing_is_written_before_commit),
	KUNIT_CASE(change_of_address_writes_nothing_before_commit),
	KUNIT_CASE(change_of_address_writes_one_register),
	KUNIT_CASE(equal_set_needs_no_register_write),
	KUNIT_CASE(any_set_of_breakpoints_can_replace_any_other),
	KUNIT_CASE(breakpoints_return_to_their_slots_after_all_were_off),
	KUNIT_CASE(only_the_slot_that_changes_is_written),
	KUNIT_CASE(hit_in_open_batch_counts_for_the_armed_event),
	KUNIT_CASE(register_passes_to_an_equal_breakpoint_without_write),
	KUNIT_CASE(one_breakpoint_of_a_full_set_can_be_replaced),
	KUNIT_CASE(a_fifth_breakpoint_finds_no_register),
	KUNIT_CASE(hw_breakpoint_active_is_true_while_one_is_armed),
	KUNIT_CASE(local_db_save_disarms_until_local_db_restore),
	KUNIT_CASE(local_db_restore_arms_the_current_set),
	KUNIT_CASE(registers_that_were_lost_are_restored),
	KUNIT_CASE(repoint_does_not_write_registers_of_a_guest),
	KUNIT_CASE(repoint_does_not_write_a_guest_register_with_our_value),
	KUNIT_CASE(registers_that_others_wrote_are_written_again),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_test_suite = {
	.name		= "x86_hw_breakpoint",
	.test_cases	= x86_hw_breakpoint_test_cases,
	.init		= dr_test_init,
	.exit		= dr_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_test_suite);
