/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the KUnit tests of the x86 debug registers.
 *
 * The tests read the registers back from the processor after each step.  To
 * find out whether a register was written, a test stores a value in it that the
 * code under test does not know (a mark): if the mark is still there, the
 * register was not written.
 *
 * Every case ends with nothing armed on any CPU, which dr_test_exit() checks.
 */
#ifndef _ARCH_X86_KERNEL_TESTS_HW_BREAKPOINT_TEST_H
#define _ARCH_X86_KERNEL_TESTS_HW_BREAKPOINT_TEST_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/irqflags.h>
#include <linux/perf_event.h>
#include <linux/smp.h>

#include <asm/debugreg.h>
#include <asm/dr7.h>
#include <asm/hw_breakpoint.h>

#include "../../../../kernel/events/bp_internal.h"
#include "../hw_breakpoint.h"

#define DR_TEST_WORDS	8

/* The length of one of them: the longest that a register watches without a mask */
#define WORD		((unsigned int)sizeof(long))
#define DR_LEN_WORD	(WORD == 8 ? DR_LEN_8 : DR_LEN_4)

/* The memory that is watched */
extern unsigned long dr_test_words[DR_TEST_WORDS];

/* struct dr_test_regs - contents of the registers of a CPU, and its cpu_dr7 */
struct dr_test_regs {
	unsigned long	addr[HBP_NUM];
	unsigned long	dr7;
	unsigned long	cpu_dr7;
	int		cpu;
};

/**
 * struct dr_test_hits - hits of one breakpoint
 * @nr: number of hits
 * @ip: where the last one was
 * @addr: perf_sample_data::addr of the last one
 * @sample_flags: perf_sample_data::sample_flags of the last one
 */
struct dr_test_hits {
	atomic_t	nr;
	unsigned long	ip;
	u64		addr;
	u64		sample_flags;
};

/**
 * struct dr_test - what a case has to clean up
 * @bp: breakpoints of the case
 * @hits: hits of each breakpoint
 * @cpu: the CPU that the case runs on
 */
struct dr_test {
	struct perf_event	*bp[DR_TEST_WORDS];
	struct dr_test_hits		hits[DR_TEST_WORDS];
	int			cpu;
};

void dr_test_write_word(int i);
void dr_test_called(void);
void dr_test_record_hit(struct perf_event *bp, struct perf_sample_data *data,
			struct pt_regs *regs);
int dr_test_take_hits(struct dr_test *f, int i);
/* Writes word @i and returns the number of hits; with interrupts off, too. */
int dr_test_write_hits(struct dr_test *f, int i);
void dr_test_read_regs(struct dr_test_regs *regs);
int dr_test_nr_enabled(const struct dr_test_regs *regs);
/* Returns the slot that is armed for @addr; -1 if none or several are. */
int dr_test_slot_at(const struct dr_test_regs *regs, const void *addr);
/* Reads the registers of this CPU and expects DR7 to be equal to cpu_dr7. */
struct dr_test_regs dr_test_regs_now(struct kunit *test);
int dr_test_slot_now(struct kunit *test, const void *addr);
/* Sets a bit of DR7 that no other code sets: any other write clears it. */
void dr_test_mark_dr7(void);
bool dr_test_dr7_mark_stands(void);
/* Overwrites the address registers, as a guest of KVM does. */
void dr_test_scramble_registers(void);
struct perf_event_attr dr_test_watch(const void *addr, u64 len, u32 type);
/* Creates breakpoint @i of the case, on this CPU. */
struct perf_event *dr_test_arm(struct kunit *test, int i, struct perf_event_attr attr);
struct perf_event *dr_test_arm_word(struct kunit *test, int i);
/* Creates breakpoint @i on word @word, disabled: it has a claim and no slot. */
struct perf_event *dr_test_hold_word(struct kunit *test, int i, int word);
/* Makes an event on word @word without a claim, unknown to perf. It counts its hits. */
struct perf_event *dr_test_make_fifth(struct kunit *test, int word);
void dr_test_drop(struct kunit *test, int i);
int dr_test_parse(u64 addr, u64 len, u32 type, struct arch_hw_breakpoint *hw);
/* Returns -EXDEV if arch_hw_breakpoint_move() has another result than parsing. */
int dr_test_verdict(u64 addr, u64 len, u32 type);

/* List of a debugger without breakpoints */
extern const struct arch_hw_breakpoint *const dr_test_no_list[HBP_NUM];
/* Returns the number of breakpoints in the list for which perf leaves no slot. */
unsigned int dr_test_debugger_leaves_with(const struct arch_hw_breakpoint *const list[HBP_NUM]);

bool dr_test_on_nmi_stack(const struct pt_regs *regs);
bool dr_test_on_db_stack(const struct pt_regs *regs);

int dr_test_init(struct kunit *test);
void dr_test_exit(struct kunit *test);

#endif /* _ARCH_X86_KERNEL_TESTS_HW_BREAKPOINT_TEST_H */
