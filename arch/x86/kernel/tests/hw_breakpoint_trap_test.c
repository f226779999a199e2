// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of #DB and NMI: breakpoints that change between any two instructions,
 * data that the entry code uses, and the causes of a #DB.
 */

#include <linux/cpumask.h>
#include <linux/kdebug.h>
#include <linux/log2.h>
#include <linux/memory.h>
#include <linux/nmi.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>

#include <asm/apic.h>
#include <asm/cpu_entry_area.h>
#include <asm/desc.h>
#include <asm/insn.h>
#include <asm/insn-eval.h>
#include <asm/nmi.h>
#include <asm/nospec-branch.h>
#include <asm/processor.h>
#include <asm/sections.h>
#include <asm/tlbflush.h>

#include "hw_breakpoint_test.h"

/* ---- Cases: changes in the middle of loading the registers ---- */

/**
 * struct stepper - execute code that loads DR7 in single steps
 * @nb: notifier of the die chain, called for each step
 * @set: the breakpoint
 * @attr: attributes between which the notifier switches; only their addresses differ
 * @ctl: control field for each element of @attr
 * @mask: contents of the address mask registers
 * @armed: DR7 is not clear, except in a trap
 * @loads: the return from the last step may have loaded the masks of armed slots
 * @now: index of the current element of @attr
 * @every_step: count all steps, not only writes of debug registers
 * @when: number of the step at which @set is repointed, as an NMI would do there
 * @last: this step is the last one: the return from a later one would load the registers
 *	and hide that the code does not
 * @count: number of steps so far
 * @mixed: number of writes of DR7 that would arm the address of one element of
 *	@attr with the control field of the other
 * @change: what another breakpoint is changed to and from, if code is executed that
 *	changes it; NULL if not. @mixed then covers this breakpoint, too, and @every_step
 * @writes: number of writes of debug registers
 * @dark: number of writes of DR7 that would arm nothing
 */
struct stepper {
	struct notifier_block	nb;
	struct perf_event * __percpu	*set;
	struct perf_event_attr	attr[2];
	unsigned int		ctl[2];
	u32			mask[HBP_NUM];
	bool			armed;
	bool			loads;
	int			now;
	bool			every_step;
	int			when;
	bool			last;
	int			count;
	int			mixed;
	const struct arch_hw_breakpoint	*change;
	int			writes;
	int			dark;
};

/* Returns which debug register the next instruction writes; -1 for none. */
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

/* Returns which address mask register the next instruction writes; -1 for none. */
static int mask_written(struct pt_regs *regs)
{
	struct insn insn;

	if (insn_decode_kernel(&insn, (void *)regs->ip) ||
	    insn.opcode.bytes[0] != 0x0f || insn.opcode.bytes[1] != 0x30)
		return -1;

	if (regs->cx == MSR_F16H_DR0_ADDR_MASK)
		return 0;
	return regs->cx >= MSR_F16H_DR1_ADDR_MASK && regs->cx <= MSR_F16H_DR3_ADDR_MASK ?
	       regs->cx - MSR_F16H_DR1_ADDR_MASK + 1 : -1;
}

/*
 * The masks are followed here, because an emulator may not have them. A step sees each
 * instruction that writes one; those of the return from a step are complete at the next.
 */
static void follow_masks(struct stepper *st, unsigned int slots)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (slots & BIT(slot))
			st->mask[slot] = hw_breakpoint_mask(slot);
	}
}

static unsigned int armed_slots(void)
{
	unsigned long dr7 = this_cpu_read(cpu_dr7_armed);
	unsigned int slots = 0;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++)
		slots |= dr7_enabled(dr7, slot) ? BIT(slot) : 0;

	return slots;
}

static u32 mask_of(const struct perf_event_attr *attr)
{
	return attr->bp_len > sizeof(long) ? attr->bp_len - 1 : 0;
}

static bool is_wanted(const struct stepper *st, unsigned long addr, unsigned int ctl, u32 mask)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (addr == st->attr[i].bp_addr && ctl == st->ctl[i] &&
		    mask == mask_of(&st->attr[i]))
			return true;
		if (st->change && addr == st->change[i].address && ctl == st->change[i].ctl &&
		    mask == st->change[i].mask)
			return true;
	}

	return false;
}

static bool is_mixed(const struct stepper *st, unsigned long dr7)
{
	struct dr_test_regs regs;
	int slot;

	dr_test_read_regs(&regs);
	for (slot = 0; slot < HBP_NUM; slot++) {
		if (dr7_enabled(dr7, slot) &&
		    !is_wanted(st, regs.addr[slot], dr7_ctl(dr7, slot), st->mask[slot]))
			return true;
	}

	return false;
}

/* For notifiers of the die chain: takes a single step out of the causes of a #DB. */
static bool take_step(unsigned long val, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (val != DIE_DEBUG || !(*dr6 & DR_STEP))
		return false;
	*dr6 &= ~DR_STEP;

	return true;
}

static int step_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct stepper *st = container_of(nb, struct stepper, nb);
	struct die_args *args = data;
	unsigned long value;
	int reg, slot;

	if (!take_step(val, data))
		return NOTIFY_DONE;

	if (st->loads)
		follow_masks(st, armed_slots());
	st->loads = false;
	/* Armed until this trap; a repoint leaves the registers to the return from it. */
	if (st->change)
		st->mixed += is_mixed(st, this_cpu_read(cpu_dr7_armed));
	reg = debugreg_written(args->regs, &value);
	if ((reg >= 0 || st->every_step) && st->count++ == st->when) {
		st->now = !st->now;
		modify_wide_hw_breakpoint_local(st->set, st->attr[st->now].bp_addr, NULL);
		st->loads = st->armed;
		if (st->last)
			args->regs->flags &= ~X86_EFLAGS_TF;
	}
	if (reg == 7) {
		st->mixed += is_mixed(st, value);
		st->dark += !(value & DR7_ENABLE_ALL);
		st->armed = value & DR7_ENABLE_ALL;
	}
	st->writes += reg >= 0;
	slot = mask_written(args->regs);
	if (slot >= 0)
		st->mask[slot] = args->regs->ax;

	return NOTIFY_STOP;
}

static noinline void step_through(void (*load)(unsigned long), unsigned long arg)
{
	asm volatile("pushf; " __ASM_SIZE(or) " %0, (%%" _ASM_SP "); popf"
		     : : "i" (X86_EFLAGS_TF) : "memory", "cc");
	load(arg);
	asm volatile("pushf; " __ASM_SIZE(and) " %0, (%%" _ASM_SP "); popf"
		     : : "i" (~X86_EFLAGS_TF) : "memory", "cc");
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
	struct dr_test_regs regs;
	unsigned long dr7;
	int slot;

	for (st->when = 0; ; st->when++) {
		st->count = 0;
		st->mixed = 0;
		st->armed = false;
		local_irq_disable();
		follow_masks(st, BIT(HBP_NUM) - 1);
		dr7 = 0;
		if (load == load_by_debugger)
			hw_breakpoint_debugger_enter();
		else if (load == load_by_restore)
			hw_breakpoint_disable();
		else
			dr7 = local_db_save();
		step_through(load, dr7);
		dr_test_read_regs(&regs);
		local_irq_enable();

		slot = dr_test_slot_at(&regs, (void *)(long)st->attr[st->now].bp_addr);
		KUNIT_EXPECT_EQ_MSG(test, st->mixed, 0, "%s, %d", what, st->when);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, regs.cpu_dr7, "%s, %d", what, st->when);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), 1, "%s, %d", what, st->when);
		KUNIT_EXPECT_GE_MSG(test, slot, 0, "%s, %d", what, st->when);
		if (slot >= 0) {
			KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), st->ctl[st->now]);
			KUNIT_EXPECT_EQ_MSG(test, hw_breakpoint_mask(slot),
					    mask_of(&st->attr[st->now]), "%s, %d", what, st->when);
		}
		if (st->count <= st->when)
			break;
	}
	KUNIT_EXPECT_GT_MSG(test, st->when, 1, "%s", what);
}

/* Repoints a breakpoint from @st->attr[0] to the other one, and back. */
static void expect_repoints_never_mix(struct kunit *test, struct stepper *st)
{
	struct dr_test *f = test->priv;
	struct perf_event * __percpu *set;
	int i;

	st->nb.notifier_call = step_trap;
	st->nb.priority = INT_MAX;
	set = register_wide_hw_breakpoint(&st->attr[0], dr_test_record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	st->set = set;
	register_die_notifier(&st->nb);

	for (i = 0; i < 2; i++) {
		st->last = i;
		st->every_step = true;
		expect_never_mixed(test, st, "local_db_restore", load_by_db_restore);
		st->every_step = false;
		expect_never_mixed(test, st, "hw_breakpoint_restore", load_by_restore);
		expect_never_mixed(test, st, "hw_breakpoint_debugger_leave", load_by_debugger);
	}

	unregister_die_notifier(&st->nb);
	unregister_wide_hw_breakpoint(set);
}

static void repoint_at_any_instruction_never_mixes_two_ranges(struct kunit *test)
{
	struct stepper st = {
		.attr	= {
			dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_RW),
			dr_test_watch(&dr_test_words[1], WORD, HW_BREAKPOINT_RW),
		},
		.ctl	= { DR_LEN_WORD | DR_RW_READ, DR_LEN_WORD | DR_RW_READ },
	};

	expect_repoints_never_mix(test, &st);
}

static u8 mask_range[128] __aligned(128);

/* Skips the case if writes of address mask registers fault. Returns the previous maximum. */
static u32 pretend_masks(struct kunit *test)
{
	u32 max = hw_breakpoint_addr_mask_max;

	if (!IS_ENABLED(CONFIG_CPU_SUP_AMD) || wrmsr_safe(MSR_F16H_DR0_ADDR_MASK, 0, 0))
		kunit_skip(test, "no address masks, and writes of them fault");
	hw_breakpoint_addr_mask_max = 4095;
	return max;
}

static void expect_no_masks(struct kunit *test, u32 max)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++)
		KUNIT_EXPECT_EQ(test, hw_breakpoint_mask(slot), 0U);
	hw_breakpoint_addr_mask_max = max;
}

static void repoint_at_any_instruction_never_mixes_masks(struct kunit *test)
{
	struct stepper st = {
		.attr	= {
			dr_test_watch(mask_range, 64, HW_BREAKPOINT_W),
			dr_test_watch(&mask_range[64], 64, HW_BREAKPOINT_W),
		},
		.ctl	= { DR_LEN_1 | DR_RW_WRITE, DR_LEN_1 | DR_RW_WRITE },
	};
	u32 max = pretend_masks(test);

	expect_repoints_never_mix(test, &st);
	/* Without a mask, in a slot that had one */
	st.attr[0].bp_len = WORD;
	st.attr[1].bp_len = WORD;
	st.ctl[0] = DR_LEN_WORD | DR_RW_WRITE;
	st.ctl[1] = st.ctl[0];
	st.now = 0;
	expect_repoints_never_mix(test, &st);
	expect_no_masks(test, max);
}

/*
 * As if the mask registers had been reset: st.mask begins with 0, while the kernel
 * remembers the mask that it has written.
 */
static void restore_writes_a_mask_again(struct kunit *test)
{
	struct stepper st = {
		.nb	= { .notifier_call = step_trap, .priority = INT_MAX },
		.attr	= { dr_test_watch(mask_range, 64, HW_BREAKPOINT_W) },
		.ctl	= { DR_LEN_1 | DR_RW_WRITE },
		.when	= -1,
	};
	u32 max = pretend_masks(test);
	int slot;

	dr_test_arm(test, 0, st.attr[0]);
	slot = max(dr_test_slot_now(test, mask_range), 0);
	KUNIT_EXPECT_EQ(test, hw_breakpoint_mask(slot), 63U);
	register_die_notifier(&st.nb);

	local_irq_disable();
	hw_breakpoint_disable();
	step_through(load_by_restore, 0);
	local_irq_enable();

	unregister_die_notifier(&st.nb);
	KUNIT_EXPECT_GT(test, st.writes, 1);
	KUNIT_EXPECT_EQ(test, st.mask[slot], 63U);
	KUNIT_EXPECT_EQ(test, st.mixed, 0);
	dr_test_drop(test, 0);
	expect_no_masks(test, max);
}

/**
 * struct stopper - a debugger that stops the CPU at instructions of local_db_restore()
 * @nb: notifier of the die chain, called for each single step
 * @hw: the breakpoints that it sets, at the first stop and at the second one
 * @when: number of the step of the second stop
 * @count: number of steps so far
 * @twice: stop at the first step, too
 * @before: set a breakpoint and remove it before the first step
 * @last: end the single steps at the second stop, see struct stepper
 */
struct stopper {
	struct notifier_block		nb;
	struct arch_hw_breakpoint	hw[2];
	int				when;
	int				count;
	bool				twice;
	bool				before;
	bool				last;
};

static void debugger_sets(const struct arch_hw_breakpoint *hw)
{
	const struct arch_hw_breakpoint *list[HBP_NUM] = { hw };

	hw_breakpoint_debugger_enter();
	dr_test_debugger_leaves_with(list);
}

static int stopper_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct stopper *stop = container_of(nb, struct stopper, nb);
	struct die_args *args = data;

	if (!take_step(val, data))
		return NOTIFY_DONE;
	if (stop->count == stop->when) {
		debugger_sets(&stop->hw[1]);
		if (stop->last)
			args->regs->flags &= ~X86_EFLAGS_TF;
	} else if (!stop->count && stop->twice) {
		debugger_sets(&stop->hw[0]);
	}
	stop->count++;

	return NOTIFY_STOP;
}

/* Returns false if there is no step @stop->when. */
static bool expect_last_stop_to_count(struct kunit *test, struct stopper *stop)
{
	struct dr_test_regs regs, gone;
	unsigned long dr7;
	bool stopped;

	stop->count = 0;
	local_irq_disable();
	dr7 = local_db_save();
	if (stop->before) {
		debugger_sets(&stop->hw[0]);
		debugger_sets(NULL);
	}
	step_through(load_by_db_restore, dr7);
	dr_test_read_regs(&regs);
	debugger_sets(NULL);
	dr_test_read_regs(&gone);
	local_irq_enable();

	stopped = stop->count > stop->when;
	KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), stopped || stop->twice, "%d",
			    stop->when);
	KUNIT_EXPECT_EQ_MSG(test, regs.dr7, regs.cpu_dr7, "%d", stop->when);
	if (stopped)
		KUNIT_EXPECT_GE_MSG(test, dr_test_slot_at(&regs, &dr_test_words[1]), 0, "%d",
				    stop->when);
	KUNIT_EXPECT_EQ_MSG(test, gone.dr7, 0UL, "%d", stop->when);

	return stopped;
}

/* Nothing is armed before; the second stop may come while the registers are loaded. */
static void debugger_change_at_any_instruction_of_restore_is_armed(struct kunit *test)
{
	struct stopper stop = {
		.nb = { .notifier_call = stopper_trap, .priority = INT_MAX },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(stop.hw); i++)
		KUNIT_ASSERT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[i], WORD,
						    HW_BREAKPOINT_W, &stop.hw[i]), 0);
	register_die_notifier(&stop.nb);

	for (i = 0; i < 8; i++) {
		stop.twice = i & 1;
		stop.before = i & 2;
		stop.last = i & 4;
		for (stop.when = 0; expect_last_stop_to_count(test, &stop); stop.when++)
			;
		KUNIT_EXPECT_GT(test, stop.when, 3);
	}

	unregister_die_notifier(&stop.nb);
}

/**
 * struct first_set - a debugger that sets the first breakpoint in a single step
 * @nb: notifier of the die chain, called for each single step
 * @hw: the breakpoint
 * @left: registers when the debugger has left
 * @nested: registers after an NMI that interrupts the rest of the #DB
 * @count: number of steps so far
 */
struct first_set {
	struct notifier_block		nb;
	struct arch_hw_breakpoint	hw;
	struct dr_test_regs		left;
	struct dr_test_regs		nested;
	int				count;
};

static int first_set_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct first_set *first = container_of(nb, struct first_set, nb);
	unsigned long dr7;

	if (!take_step(val, data))
		return NOTIFY_DONE;
	if (first->count++)
		return NOTIFY_STOP;

	debugger_sets(&first->hw);
	dr_test_read_regs(&first->left);
	/* As an NMI does that stops the CPU for the debugger */
	dr7 = local_db_save();
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	local_db_restore(dr7);
	dr_test_read_regs(&first->nested);

	return NOTIFY_STOP;
}

static void load_nothing(unsigned long unused)
{
}

static void first_breakpoint_that_a_debugger_sets_in_a_trap_is_armed_at_its_end(struct kunit *test)
{
	struct first_set first = {
		.nb = { .notifier_call = first_set_trap, .priority = INT_MAX },
	};
	struct dr_test_regs restored, gone;

	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "armed at once: a #DB may interrupt a #DB");

	KUNIT_ASSERT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[0], WORD, HW_BREAKPOINT_W,
					    &first.hw), 0);
	register_die_notifier(&first.nb);

	local_irq_disable();
	step_through(load_nothing, 0);
	dr_test_read_regs(&restored);
	debugger_sets(NULL);
	dr_test_read_regs(&gone);
	local_irq_enable();

	unregister_die_notifier(&first.nb);
	KUNIT_EXPECT_GT(test, first.count, 1);
	KUNIT_EXPECT_EQ(test, first.left.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, first.nested.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&restored), 1);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.cpu_dr7);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&restored, &dr_test_words[0]), 0);
	KUNIT_EXPECT_EQ(test, gone.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, gone.cpu_dr7, 0UL);
}

/* struct change - argument of load_by_change() */
struct change {
	struct perf_event		*bp;
	struct arch_hw_breakpoint	hw;
};

static void load_by_change(unsigned long arg)
{
	struct change *change = (struct change *)arg;

	arch_hw_breakpoint_change(change->bp, &change->hw);
}

/* Changes @change->bp in single steps, at one of which @st->set is repointed. */
static void expect_both_changes(struct kunit *test, struct stepper *st, struct change *change)
{
	struct dr_test_regs regs;
	int slot;

	st->count = 0;
	st->mixed = 0;
	st->writes = 0;
	st->dark = 0;
	st->armed = true;
	local_irq_disable();
	follow_masks(st, BIT(HBP_NUM) - 1);
	step_through(load_by_change, (unsigned long)change);
	dr_test_read_regs(&regs);
	local_irq_enable();

	KUNIT_EXPECT_EQ_MSG(test, st->mixed, 0, "%d", st->when);
	/* Both slots are off at a time only if one update changes both: DR7, DRn, DRn, DR7. */
	if (st->dark) {
		KUNIT_EXPECT_EQ_MSG(test, st->dark, 1, "%d", st->when);
		KUNIT_EXPECT_EQ_MSG(test, st->writes, 4, "%d", st->when);
		KUNIT_EXPECT_GE(test, st->when, 0);
	}
	KUNIT_EXPECT_EQ_MSG(test, regs.dr7, regs.cpu_dr7, "%d", st->when);
	KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), 2, "%d", st->when);
	slot = dr_test_slot_at(&regs, (void *)change->hw.address);
	KUNIT_EXPECT_EQ_MSG(test, slot, (int)change->bp->hw.info.slot, "%d", st->when);
	if (slot >= 0)
		KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), change->hw.ctl);
	slot = dr_test_slot_at(&regs, (void *)(long)st->attr[st->now].bp_addr);
	KUNIT_EXPECT_GE_MSG(test, slot, 0, "%d", st->when);
	if (slot >= 0)
		KUNIT_EXPECT_EQ(test, dr7_ctl(regs.dr7, slot), st->ctl[st->now]);
}

/*
 * Changes a breakpoint to @len bytes of type @type at word 4, and back to word 2, again
 * and again; another breakpoint is repointed at each instruction of the change.
 */
static void expect_changes_write(struct kunit *test, u64 len, u32 type, int writes)
{
	struct dr_test *f = test->priv;
	struct perf_event * __percpu *set;
	struct arch_hw_breakpoint hw[2];
	struct change change = { };
	struct stepper st = {
		.nb	= { .notifier_call = step_trap, .priority = INT_MAX },
		.attr	= {
			dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_RW),
			dr_test_watch(&dr_test_words[1], WORD, HW_BREAKPOINT_RW),
		},
		.ctl	= { DR_LEN_WORD | DR_RW_READ, DR_LEN_WORD | DR_RW_READ },
		.every_step = true,
		.change = hw,
	};

	set = register_wide_hw_breakpoint(&st.attr[0], dr_test_record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	st.set = set;
	change.bp = dr_test_arm_word(test, 2);
	hw[0] = change.bp->hw.info;
	KUNIT_EXPECT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[4], len, type, &hw[1]),
			0);
	register_die_notifier(&st.nb);

	/* First without a repoint */
	for (st.when = -1; st.when <= st.count; st.when++) {
		change.hw = hw[st.when & 1];
		expect_both_changes(test, &st, &change);
		if (st.when < 0)
			KUNIT_EXPECT_EQ(test, st.writes, writes);
	}
	KUNIT_EXPECT_GT(test, st.when, 10);

	unregister_die_notifier(&st.nb);
	unregister_wide_hw_breakpoint(set);
}

static void repoint_during_move_of_another_breakpoint_is_applied(struct kunit *test)
{
	expect_changes_write(test, WORD, HW_BREAKPOINT_W, 1);
}

/* DR7 without the slot, the address, DR7 */
static void repoint_during_change_of_another_breakpoint_is_applied(struct kunit *test)
{
	expect_changes_write(test, 4, HW_BREAKPOINT_RW, 3);
}

/* The mask is set, and reset, while the slot is disarmed. */
static void repoint_during_change_of_another_mask_is_applied(struct kunit *test)
{
	u32 max = pretend_masks(test);

	expect_changes_write(test, 16, HW_BREAKPOINT_W, 3);
	dr_test_drop(test, 2);
	expect_no_masks(test, max);
}

/* ---- Cases: what holds at each instruction of a change ---- */

/* The ranges between which a case changes a breakpoint of several pieces */
static struct arch_hw_breakpoint range_hw[2];

/**
 * struct check - execute code in single steps, and check the registers at each of them
 * @nb: notifier of the die chain, called for each step
 * @is_wrong: returns true, in the #DB of the step, if the registers are wrong
 * @steps: number of steps so far
 * @wrong: number of steps at which @is_wrong returned true
 */
struct check {
	struct notifier_block	nb;
	bool			(*is_wrong)(void);
	int			steps;
	int			wrong;
};

static int check_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct check *check = container_of(nb, struct check, nb);

	if (!take_step(val, data))
		return NOTIFY_DONE;
	check->steps++;
	check->wrong += check->is_wrong();

	return NOTIFY_STOP;
}

/* local_db_save() clears DR7 only if cpu_dr7 enables something. */
static bool dr7_is_armed(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	return dr7 & DR7_ENABLE_ALL;
}

static void load_by_uninstall(unsigned long bp)
{
	arch_uninstall_hw_breakpoint((struct perf_event *)bp);
}

static void load_by_install(unsigned long bp)
{
	arch_install_hw_breakpoint((struct perf_event *)bp);
}

/* One breakpoint alone: with another one cpu_dr7 would always enable something. */
static void cpu_dr7_covers_dr7_at_each_instruction(struct kunit *test)
{
	struct check check = {
		.nb		= { .notifier_call = check_trap, .priority = INT_MAX },
		.is_wrong	= dr7_is_armed,
	};
	struct dr_test_regs before, off, after;
	struct perf_event *bp;

	bp = dr_test_arm_word(test, 0);
	register_die_notifier(&check.nb);

	local_irq_disable();
	dr_test_read_regs(&before);
	step_through(load_by_uninstall, (unsigned long)bp);
	dr_test_read_regs(&off);
	step_through(load_by_install, (unsigned long)bp);
	dr_test_read_regs(&after);
	local_irq_enable();

	unregister_die_notifier(&check.nb);
	KUNIT_EXPECT_EQ(test, check.wrong, 0);
	KUNIT_EXPECT_GT(test, check.steps, 20);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&before), 1);
	KUNIT_EXPECT_EQ(test, off.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, off.cpu_dr7, 0UL);
	KUNIT_EXPECT_EQ(test, after.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, after.cpu_dr7, before.dr7);
}

static bool event_has_an_address_of_another(void)
{
	struct bp_reg_state state;
	struct dr_test_regs regs;
	int slot;

	dr_test_read_regs(&regs);
	for (slot = 0; slot < HBP_NUM; slot++) {
		arch_hw_breakpoint_reg(slot, &state);
		if (state.armed && regs.addr[slot] != state.event->hw.info.address)
			return true;
	}

	return false;
}

/* Returns true if @addr is the address of a piece of @hw. */
static bool has_piece_at(struct arch_hw_breakpoint hw, unsigned long addr)
{
	do {
		if (hw.address == addr)
			return true;
	} while (hw_breakpoint_previous_piece(&hw));

	return false;
}

static bool is_armed_for(const struct arch_hw_breakpoint *hw)
{
	unsigned long dr7 = this_cpu_read(cpu_dr7_armed);
	struct dr_test_regs regs;
	int slot;

	dr_test_read_regs(&regs);
	for (slot = 0; slot < HBP_NUM; slot++) {
		if (dr7_enabled(dr7, slot) && !has_piece_at(*hw, regs.addr[slot]))
			return false;
	}

	return true;
}

static bool pieces_of_both_ranges_are_armed(void)
{
	return !is_armed_for(&range_hw[0]) && !is_armed_for(&range_hw[1]);
}

/* As a change to another number of registers */
static void load_by_reshaping(unsigned long arg)
{
	struct change *change = (struct change *)arg;

	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(change->bp);
	change->bp->hw.info = change->hw;
	arch_install_hw_breakpoint(change->bp);
	arch_hw_breakpoint_commit();
}

/* The breakpoint, which watches the last range again in the end, is the only one. */
static void expect_changes_together(struct kunit *test, struct perf_event *bp,
				    unsigned long from, u64 from_len, unsigned long to, u64 len)
{
	struct check check = {
		.nb		= { .notifier_call = check_trap, .priority = INT_MAX },
		.is_wrong	= pieces_of_both_ranges_are_armed,
	};
	struct change change = { .bp = bp };
	void (*load)(unsigned long arg);
	struct dr_test_regs regs;
	int i;

	KUNIT_ASSERT_EQ(test, dr_test_parse(from, from_len, HW_BREAKPOINT_W, &range_hw[0]), 0);
	KUNIT_ASSERT_EQ(test, dr_test_parse(to, len, HW_BREAKPOINT_W, &range_hw[1]), 0);
	load = hw_breakpoint_weight(&range_hw[0]) == hw_breakpoint_weight(&range_hw[1]) ?
	       load_by_change : load_by_reshaping;
	register_die_notifier(&check.nb);

	local_irq_disable();
	change.hw = range_hw[0];
	load_by_reshaping((unsigned long)&change);
	for (i = 1; i >= 0; i--) {
		change.hw = range_hw[i];
		step_through(load, (unsigned long)&change);
		dr_test_read_regs(&regs);
		KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs),
				hw_breakpoint_weight(&range_hw[i]));
		KUNIT_EXPECT_TRUE(test, is_armed_for(&range_hw[i]));
	}
	local_irq_enable();

	unregister_die_notifier(&check.nb);
	KUNIT_EXPECT_EQ_MSG(test, check.wrong, 0, "%llu at %lx, %llu at %lx", from_len, from, len,
			    to);
	KUNIT_EXPECT_GT(test, check.steps, 100);
}

static void pieces_of_two_ranges_are_never_armed_together(struct kunit *test)
{
	unsigned long words = (unsigned long)dr_test_words;
	struct perf_event *bp;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	bp = dr_test_arm(test, 0, dr_test_watch(dr_test_words, WORD, HW_BREAKPOINT_W));
	expect_changes_together(test, bp, words, 4 * WORD, words + 4 * WORD, 4 * WORD);
	expect_changes_together(test, bp, words + WORD / 2, 3 * WORD / 2, words + WORD, 2 * WORD);
	expect_changes_together(test, bp, words + WORD, 2 * WORD, words + 2 * WORD, 2 * WORD);
	expect_changes_together(test, bp, words + WORD - 1, 2, words + 2 * WORD - 1, 2);
	expect_changes_together(test, bp, words + WORD / 2, 3 * WORD / 2, words + WORD / 2,
				5 * WORD / 2);
	expect_changes_together(test, bp, words + WORD / 2, 3 * WORD / 2, words + 4 * WORD, WORD);
	expect_changes_together(test, bp, words + WORD, WORD, words, 4 * WORD);

	/* The test has changed the registers, not what perf knows of them. */
	local_irq_disable();
	load_by_reshaping((unsigned long)&(struct change) { .bp = bp, .hw = {
		.address	= words,
		.ctl		= DR_LEN_WORD | DR_RW_WRITE,
		.weight		= 1,
	} });
	local_irq_enable();
}

static void load_by_repoint(unsigned long arg)
{
	struct change *change = (struct change *)arg;

	modify_wide_hw_breakpoint_local((void __percpu __force *)change->bp,
					change->hw.address - change->hw.before, NULL);
}

/* The update of one set may have seen that an address has changed, but not which one. */
static void repoint_during_repoint_of_another_set_is_applied(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[2], WORD, HW_BREAKPOINT_W);
	struct perf_event * __percpu *other;
	struct dr_test *f = test->priv;
	struct change change = { };
	struct dr_test_regs regs;
	struct stepper st = {
		.nb	= { .notifier_call = step_trap, .priority = INT_MAX },
		.attr	= {
			dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W),
			dr_test_watch(&dr_test_words[1], WORD, HW_BREAKPOINT_W),
		},
		.every_step = true,
	};

	st.set = register_wide_hw_breakpoint(&st.attr[0], dr_test_record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(st.set));
	other = register_wide_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(other));
	change.bp = (void __force *)other;
	register_die_notifier(&st.nb);

	for (st.when = 0; st.when <= st.count; st.when++) {
		change.hw.address = (unsigned long)&dr_test_words[2 + (st.when & 1)];
		st.count = 0;
		local_irq_disable();
		step_through(load_by_repoint, (unsigned long)&change);
		dr_test_read_regs(&regs);
		local_irq_enable();
		KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), 2, "%d", st.when);
		KUNIT_EXPECT_GE_MSG(test, dr_test_slot_at(&regs, (void *)change.hw.address), 0,
				    "%d", st.when);
		KUNIT_EXPECT_GE_MSG(test, dr_test_slot_at(&regs,
							  (void *)(long)st.attr[st.now].bp_addr), 0,
				    "%d", st.when);
	}
	KUNIT_EXPECT_GT(test, st.when, 100);

	unregister_die_notifier(&st.nb);
	unregister_wide_hw_breakpoint(other);
	unregister_wide_hw_breakpoint(st.set);
}

static void pieces_of_two_places_of_a_set_are_never_armed_together(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], 3 * WORD, HW_BREAKPOINT_W);
	struct check check = {
		.nb		= { .notifier_call = check_trap, .priority = INT_MAX },
		.is_wrong	= pieces_of_both_ranges_are_armed,
	};
	struct perf_event * __percpu *set;
	struct dr_test *f = test->priv;
	struct change change = { };
	int i;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	set = register_wide_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[2 * i], 3 * WORD,
						    HW_BREAKPOINT_W, &range_hw[i]), 0);
	register_die_notifier(&check.nb);
	change.bp = (void __force *)set;

	local_irq_disable();
	for (i = 1; i >= 0; i--) {
		change.hw = range_hw[i];
		step_through(load_by_repoint, (unsigned long)&change);
		KUNIT_EXPECT_TRUE(test, is_armed_for(&range_hw[i]));
	}
	local_irq_enable();

	unregister_die_notifier(&check.nb);
	unregister_wide_hw_breakpoint(set);
	KUNIT_EXPECT_EQ(test, check.wrong, 0);
	KUNIT_EXPECT_GT(test, check.steps, 100);
}

/* struct replacement - argument of load_by_replacing() */
struct replacement {
	struct perf_event	*old;
	struct perf_event	*new;
};

static void load_by_replacing(unsigned long arg)
{
	struct replacement *r = (struct replacement *)arg;

	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(r->old);
	arch_install_hw_breakpoint(r->new);
	arch_hw_breakpoint_commit();
}

/*
 * All slots are in use, so that a breakpoint gets the slot of the one that it replaces. They
 * have the same control field, so that one write of the address would be enough.
 */
static void an_armed_slot_has_the_address_of_its_event(struct kunit *test)
{
	struct perf_event *fifth = dr_test_make_fifth(test, HBP_NUM);
	struct check check = {
		.nb		= { .notifier_call = check_trap, .priority = INT_MAX },
		.is_wrong	= event_has_an_address_of_another,
	};
	struct dr_test *f = test->priv;
	struct dr_test_regs in, out;
	int i;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);
	register_die_notifier(&check.nb);

	for (i = 0; i < HBP_NUM; i++) {
		struct replacement there = { .old = f->bp[i], .new = fifth };
		struct replacement back = { .old = fifth, .new = f->bp[i] };
		int slot = f->bp[i]->hw.info.slot;

		local_irq_disable();
		step_through(load_by_replacing, (unsigned long)&there);
		dr_test_read_regs(&in);
		step_through(load_by_replacing, (unsigned long)&back);
		dr_test_read_regs(&out);
		local_irq_enable();

		KUNIT_EXPECT_EQ(test, dr_test_slot_at(&in, &dr_test_words[HBP_NUM]), slot);
		KUNIT_EXPECT_EQ(test, dr_test_slot_at(&out, &dr_test_words[i]), slot);
	}

	unregister_die_notifier(&check.nb);
	KUNIT_EXPECT_EQ(test, check.wrong, 0);
	KUNIT_EXPECT_GT(test, check.steps, 100);
}

/* ---- Cases: data that the entry and exit of NMI and #DB access ---- */

/**
 * struct scan - search for data that the entry or exit of NMI or #DB accesses
 * @nb: notifier of the die chain, called for each hit of a watched range
 * @hw: watched ranges
 * @nr: number of watched ranges
 * @trigger: breakpoints that cause a #DB, on one of two words
 * @moves: number of times that @trigger was repointed
 * @hits: number of hits of @trigger
 * @reads: number of hits of watched ranges at which @trigger was repointed
 * @repoint: repoint @trigger at each hit of a watched range, too
 * @bad: number of hits while the stack of NMI or #DB was in use
 * @ip: instruction pointer of the last such hit
 */
struct scan {
	struct notifier_block		nb;
	struct arch_hw_breakpoint	hw[HBP_NUM - 1];
	int				nr;
	struct perf_event * __percpu	*trigger;
	unsigned int			moves;
	int				hits;
	int				reads;
	bool				repoint;
	int				bad;
	unsigned long			ip;
};

static bool nmi_due;
static struct scan *scan_in_nmi;

static struct perf_event_attr trigger_at(unsigned int word)
{
	return dr_test_watch(&dr_test_words[word % 2], sizeof(long), HW_BREAKPOINT_W);
}

/* In #DB and NMI: the exit has to load the registers. */
static void move_trigger(struct scan *scan)
{
	modify_wide_hw_breakpoint_local(scan->trigger, trigger_at(++scan->moves).bp_addr, NULL);
}

static int scan_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!READ_ONCE(nmi_due))
		return NMI_DONE;
	move_trigger(scan_in_nmi);
	WRITE_ONCE(nmi_due, false);
	return NMI_HANDLED;
}

/* Sends an NMI to this CPU. Returns false if it does not arrive. */
static bool interrupt_by_nmi(void)
{
	int i;

	WRITE_ONCE(nmi_due, true);
	__apic_send_IPI_mask(cpumask_of(raw_smp_processor_id()), NMI_VECTOR);
	for (i = 0; i < 1000000 && READ_ONCE(nmi_due); i++)
		cpu_relax();

	return !READ_ONCE(nmi_due);
}

static void scan_trigger_hit(struct perf_event *bp, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct scan *scan = bp->overflow_handler_context;

	scan->hits++;
	move_trigger(scan);
	interrupt_by_nmi();
}

static int scan_trap(struct notifier_block *nb, unsigned long val, void *data)
{
	struct scan *scan = container_of(nb, struct scan, nb);
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (val != DIE_DEBUG || !(*dr6 & DR_TRAP_BITS))
		return NOTIFY_DONE;
	*dr6 &= ~DR_TRAP_BITS;
	if (dr_test_on_nmi_stack(args->regs) || dr_test_on_db_stack(args->regs)) {
		scan->bad++;
		scan->ip = args->regs->ip;
	} else if (scan->repoint) {
		scan->reads++;
		move_trigger(scan);
	}

	return NOTIFY_STOP;
}

/* A range may lie in a redzone of KASAN. */
static noinline __no_sanitize_address void read_byte(const u8 *p)
{
	READ_ONCE(*p);
}

/*
 * Causes an NMI, a #DB for each watched range, and a #DB that an NMI interrupts; each of
 * them repoints the trigger. Returns false if one does not come.
 */
static bool trap_all(struct scan *scan)
{
	int i;

	scan->hits = 0;
	scan->reads = 0;
	if (!interrupt_by_nmi())
		return false;
	/* If #DB entry or exit accesses the same data, it would trap for ever. */
	if (scan->bad)
		return true;
	WRITE_ONCE(scan->repoint, true);
	for (i = 0; i < scan->nr; i++)
		read_byte((void *)scan->hw[i].address);
	dr_test_write_word(0);
	dr_test_write_word(1);
	WRITE_ONCE(scan->repoint, false);

	return READ_ONCE(scan->hits) && READ_ONCE(scan->reads) >= scan->nr;
}

/*
 * Finds the first range from *@addr on that is not refused, and advances *@addr to its
 * end: a word, or the part of one beside data that must not be watched.
 */
static bool next_range(unsigned long *addr, unsigned long end, struct arch_hw_breakpoint *hw)
{
	unsigned long len;

	for (; *addr < end; ++*addr) {
		for (len = sizeof(long); len; len /= 2) {
			if (!IS_ALIGNED(*addr, len) || *addr + len > end ||
			    dr_test_parse(*addr, len, HW_BREAKPOINT_RW, hw))
				continue;
			*addr += len;
			return true;
		}
	}

	return false;
}

/* Watches ranges from *@addr on with all registers but that of the trigger. */
static bool scan_ranges(struct scan *scan, unsigned long *addr, unsigned long end)
{
	bool came;

	for (scan->nr = 0; scan->nr < HBP_NUM - 1; scan->nr++) {
		if (!next_range(addr, end, &scan->hw[scan->nr]))
			break;
		hw_breakpoint_debugger_set(scan->nr, &scan->hw[scan->nr]);
	}

	local_irq_disable();
	hw_breakpoint_debugger_leave();
	came = trap_all(scan);
	dr_test_debugger_leaves_with(dr_test_no_list);
	local_irq_enable();

	return came;
}

static void scan_range(struct kunit *test, struct scan *scan, const char *what,
		       const void *base, size_t size)
{
	unsigned long addr = ALIGN((unsigned long)base, sizeof(long));
	unsigned long end = (unsigned long)base + size;

	while (addr < end) {
		unsigned long from = addr;

		scan->bad = 0;
		if (!scan_ranges(scan, &addr, end)) {
			KUNIT_FAIL(test, "no NMI or no #DB came");
			break;
		}
		KUNIT_EXPECT_EQ_MSG(test, scan->bad, 0, "%s + 0x%lx (%pS), %lu bytes: used by %pS",
				    what, from - (unsigned long)base, (void *)from, addr - from,
				    (void *)scan->ip);
		cond_resched();
	}
}

/* Returns an address that @insn contains, of data that is not per CPU; 0 if there is none. */
static unsigned long data_operand(struct insn *insn)
{
	/* GS, or FS in a 32-bit kernel */
	const insn_byte_t percpu_prefix = IS_ENABLED(CONFIG_X86_64) ? 0x65 : 0x64;
	unsigned long addr = (long)insn->displacement.value;
	int i;

	if (insn->displacement.nbytes != 4)
		return 0;
	for (i = 0; i < ARRAY_SIZE(insn->prefixes.bytes); i++) {
		if (insn->prefixes.bytes[i] == percpu_prefix)
			return 0;
	}
	if (insn_rip_relative(insn))
		addr += (unsigned long)insn->kaddr + insn->length;

	return (addr >= (unsigned long)_sdata && addr < (unsigned long)_edata) ||
	       (addr >= (unsigned long)__start_rodata && addr < (unsigned long)__end_rodata) ||
	       (addr >= (unsigned long)__bss_start && addr < (unsigned long)__bss_stop) ? addr : 0;
}

/*
 * Entry and exit run this text while DR7 is armed. Scans what its instructions name: the
 * data itself, the first words of an array. Returns the number of different names.
 */
static int scan_operands(struct kunit *test, struct scan *scan, const char *start,
			 const char *end)
{
	unsigned long addr, last = 0;
	struct insn insn;
	int nr = 0;

	for (; start < end; start += insn.length) {
		if (insn_decode_kernel(&insn, start)) {
			KUNIT_FAIL(test, "%pS: not an instruction", start);
			break;
		}
		addr = ALIGN_DOWN(data_operand(&insn), sizeof(long));
		if (!addr || addr == last)
			continue;
		scan_range(test, scan, "data", (void *)addr, (HBP_NUM - 1) * sizeof(long));
		last = addr;
		nr++;
	}

	return nr;
}

static struct scan *scan_begin(struct kunit *test)
{
	struct scan *scan = kunit_kzalloc(test, sizeof(*scan), GFP_KERNEL);
	struct perf_event_attr attr = trigger_at(0);

	KUNIT_ASSERT_NOT_NULL(test, scan);
	scan->trigger = register_wide_hw_breakpoint(&attr, scan_trigger_hit, scan);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(scan->trigger));
	scan_in_nmi = scan;
	scan->nb.notifier_call = scan_trap;
	scan->nb.priority = INT_MAX;
	register_die_notifier(&scan->nb);

	return scan;
}

static void scan_end(struct scan *scan)
{
	unregister_die_notifier(&scan->nb);
	unregister_wide_hw_breakpoint(scan->trigger);
}

/*
 * An NMI may interrupt a #DB, and a second #DB would overwrite the frame of the first:
 * data that can be watched must be accessed only while DR7 is clear. The exit of an NMI
 * and of a #DB that have repointed a breakpoint loads all registers.
 */
static void entry_and_exit_access_no_data_that_can_be_watched(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct scan *scan;
	int err;

	scan = scan_begin(test);
	err = register_nmi_handler(NMI_LOCAL, scan_nmi, NMI_FLAG_FIRST, "x86_hw_breakpoint");
	if (err) {
		scan_end(scan);
		KUNIT_FAIL(test, "no handler of NMIs: %d", err);
		return;
	}

	/* Without SMP there is none but the operands. */
	scan_range(test, scan, "per-CPU data",
		   per_cpu_ptr((void __percpu *)__per_cpu_start, f->cpu),
		   __per_cpu_end - __per_cpu_start);
	KUNIT_EXPECT_GE(test, scan_operands(test, scan, __entry_text_start, __entry_text_end),
			IS_ENABLED(CONFIG_X86_64));
	KUNIT_EXPECT_GT(test, scan_operands(test, scan, __noinstr_text_start, __noinstr_text_end),
			0);

	unregister_nmi_handler(NMI_LOCAL, "x86_hw_breakpoint");
	scan_end(scan);
}

/* ---- Cases: the causes of a #DB ---- */

/**
 * struct trap - result of a #DB
 * @dr6: causes of the #DB, before and after hw_breakpoint_trap()
 * @flags: regs->flags after it
 * @done: its return value
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

	dr_test_arm_word(test, 0);
	t = trap(0, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	t = trap(DR_STEP, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
}

static void dr6_bit_of_a_disarmed_slot_is_ignored(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct trap t;
	int slot;

	t = trap(DR_TRAP_BITS, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, 0UL);

	dr_test_arm_word(test, 0);
	slot = dr_test_slot_now(test, &dr_test_words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);
	t = trap(DR_TRAP_BITS & ~(DR_TRAP0 << slot), __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);

	/* The slot was armed a moment ago. */
	dr_test_drop(test, 0);
	t = trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);
}

static void each_dr6_bit_is_a_hit_of_its_slot(struct kunit *test)
{
	struct dr_test *f = test->priv;
	unsigned long bits;
	int slot[HBP_NUM];
	struct trap t;
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		dr_test_arm_word(test, i);
		slot[i] = dr_test_slot_now(test, &dr_test_words[i]);
		KUNIT_ASSERT_GE(test, slot[i], 0);
	}
	for (bits = 0; bits <= DR_TRAP_BITS; bits++) {
		t = trap(bits | DR_STEP, __KERNEL_CS);
		KUNIT_EXPECT_FALSE(test, t.done);
		KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
		KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, 0UL);
		for (i = 0; i < HBP_NUM; i++)
			KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, i),
					!!(bits & DR_TRAP0 << slot[i]));
	}
}

static void single_step_is_reported_before_instruction_breakpoint(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct trap t;
	int slot;

	dr_test_arm(test, 0, dr_test_watch(dr_test_called, sizeof(long), HW_BREAKPOINT_X));
	slot = dr_test_slot_now(test, dr_test_called);
	KUNIT_ASSERT_GE(test, slot, 0);

	t = trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_TRUE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, X86_EFLAGS_RF);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 1);

	t = trap(DR_TRAP0 << slot | DR_STEP, __KERNEL_CS);
	KUNIT_EXPECT_FALSE(test, t.done);
	KUNIT_EXPECT_EQ(test, t.dr6, DR_STEP + 0UL);
	KUNIT_EXPECT_EQ(test, t.flags & X86_EFLAGS_RF, 0UL);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);
}

/* Without RF, the fault of a breakpoint that is disarmed by now would recur. */
static void trap_of_a_disarmed_instruction_breakpoint_sets_rf(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct trap here, elsewhere;
	int slot;

	dr_test_arm(test, 0, dr_test_watch(dr_test_called, sizeof(long), HW_BREAKPOINT_X));
	slot = dr_test_slot_now(test, dr_test_called);
	KUNIT_ASSERT_GE(test, slot, 0);
	dr_test_drop(test, 0);

	here = trap_at(dr_test_called, DR_TRAP0 << slot, __KERNEL_CS);
	elsewhere = trap_at(dr_test_write_word, DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);
	KUNIT_EXPECT_TRUE(test, here.done);
	KUNIT_EXPECT_EQ(test, here.flags & X86_EFLAGS_RF, X86_EFLAGS_RF);
	KUNIT_EXPECT_TRUE(test, elsewhere.done);
	KUNIT_EXPECT_EQ(test, elsewhere.flags & X86_EFLAGS_RF, 0UL);
}

static void user_hit_with_virtual_dr6_is_left_to_ptrace(struct kunit *test)
{
	unsigned long virtual_dr6 = current->thread.virtual_dr6;
	struct dr_test *f = test->priv;
	struct trap plain, wanted;
	int slot;

	dr_test_arm_word(test, 0);
	slot = dr_test_slot_now(test, &dr_test_words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);

	current->thread.virtual_dr6 = 0;
	plain = trap(DR_TRAP0 << slot, __USER_CS);
	current->thread.virtual_dr6 = DR_TRAP2;
	wanted = trap(DR_TRAP0 << slot, __USER_CS);
	current->thread.virtual_dr6 = virtual_dr6;

	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 2);
	KUNIT_EXPECT_TRUE(test, plain.done);
	KUNIT_EXPECT_FALSE(test, wanted.done);
}

/* Causes of a #DB beside the hit of breakpoint 0 */
static bool only_cause_with(struct kunit *test, unsigned long causes, u16 cs)
{
	int slot = dr_test_slot_now(test, &dr_test_words[0]);
	struct dr_test *f = test->priv;

	KUNIT_ASSERT_GE(test, slot, 0);
	trap(DR_TRAP0 << slot | causes, cs);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 1);

	return f->hits[0].sample_flags & PERF_SAMPLE_ONLY_CAUSE;
}

/* A signal that is sent at once would come before those of the other causes. */
static void only_user_hit_without_another_cause_is_the_only_cause(struct kunit *test)
{
	unsigned long virtual_dr6 = current->thread.virtual_dr6;
	int other;

	dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);
	other = dr_test_slot_now(test, &dr_test_words[1]);
	KUNIT_ASSERT_GE(test, other, 0);

	KUNIT_EXPECT_TRUE(test, only_cause_with(test, 0, __USER_CS));
	KUNIT_EXPECT_FALSE(test, only_cause_with(test, 0, __KERNEL_CS));
	KUNIT_EXPECT_FALSE(test, only_cause_with(test, DR_STEP, __USER_CS));
	KUNIT_EXPECT_FALSE(test, only_cause_with(test, DR_BUS_LOCK, __USER_CS));
	KUNIT_EXPECT_FALSE(test, only_cause_with(test, DR_TRAP0 << other, __USER_CS));
	current->thread.virtual_dr6 = virtual_dr6;
}

static void hit_in_excluded_mode_is_not_counted(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	int slot;

	attr.exclude_user = 1;
	dr_test_arm(test, 0, attr);
	slot = dr_test_slot_now(test, &dr_test_words[0]);
	KUNIT_ASSERT_GE(test, slot, 0);

	trap(DR_TRAP0 << slot, __USER_CS);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 0);
	trap(DR_TRAP0 << slot, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 1);
}

/* ---- The suite ---- */

/* An interruption at each instruction: a debug kernel has many times as many. */
#define VERY_SLOW	{ .speed = KUNIT_SPEED_VERY_SLOW }

static struct kunit_case x86_hw_breakpoint_trap_test_cases[] = {
	KUNIT_CASE(repoint_at_any_instruction_never_mixes_two_ranges),
	KUNIT_CASE(repoint_at_any_instruction_never_mixes_masks),
	KUNIT_CASE(restore_writes_a_mask_again),
	KUNIT_CASE(debugger_change_at_any_instruction_of_restore_is_armed),
	KUNIT_CASE(first_breakpoint_that_a_debugger_sets_in_a_trap_is_armed_at_its_end),
	KUNIT_CASE_ATTR(repoint_during_move_of_another_breakpoint_is_applied, VERY_SLOW),
	KUNIT_CASE_ATTR(repoint_during_change_of_another_breakpoint_is_applied, VERY_SLOW),
	KUNIT_CASE_ATTR(repoint_during_change_of_another_mask_is_applied, VERY_SLOW),
	KUNIT_CASE_ATTR(repoint_during_repoint_of_another_set_is_applied, VERY_SLOW),
	KUNIT_CASE(cpu_dr7_covers_dr7_at_each_instruction),
	KUNIT_CASE(an_armed_slot_has_the_address_of_its_event),
	KUNIT_CASE(pieces_of_two_ranges_are_never_armed_together),
	KUNIT_CASE(pieces_of_two_places_of_a_set_are_never_armed_together),
	KUNIT_CASE_SLOW(entry_and_exit_access_no_data_that_can_be_watched),
	KUNIT_CASE(a_trap_without_a_breakpoint_is_left_alone),
	KUNIT_CASE(dr6_bit_of_a_disarmed_slot_is_ignored),
	KUNIT_CASE(each_dr6_bit_is_a_hit_of_its_slot),
	KUNIT_CASE(single_step_is_reported_before_instruction_breakpoint),
	KUNIT_CASE(trap_of_a_disarmed_instruction_breakpoint_sets_rf),
	KUNIT_CASE(user_hit_with_virtual_dr6_is_left_to_ptrace),
	KUNIT_CASE(only_user_hit_without_another_cause_is_the_only_cause),
	KUNIT_CASE(hit_in_excluded_mode_is_not_counted),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_trap_test_suite = {
	.name		= "x86_hw_breakpoint_trap",
	.test_cases	= x86_hw_breakpoint_trap_test_cases,
	.init		= dr_test_init,
	.exit		= dr_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_trap_test_suite);
