// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the breakpoints of the kernel debugger: each CPU arms them beside
 * those of perf, and no breakpoint is armed while the debugger runs.
 */

#include <linux/cpumask.h>
#include <linux/kdebug.h>
#include <linux/kgdb.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>

#include <asm/cpu_entry_area.h>
#include <asm/idtentry.h>
#include <asm/nospec-branch.h>
#include <asm/sections.h>
#include <asm/text-patching.h>

#include "../kgdb_breakpoint.h"
#include "hw_breakpoint_test.h"

/* ---- Cases: the kernel debugger ---- */

/* struct debugger - list of breakpoints of a debugger, and its notifier */
struct debugger {
	struct notifier_block			nb;
	struct arch_hw_breakpoint		hw[HBP_NUM];
	const struct arch_hw_breakpoint		*list[HBP_NUM];
	unsigned long				dr6;
	int					nr;
};

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

/* Sets up a debugger with @nr breakpoints, on the words from HBP_NUM on. */
static struct debugger *start_debugger(struct kunit *test, int nr)
{
	struct debugger *dbg;
	int i;

	dbg = kunit_kzalloc(test, sizeof(*dbg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dbg);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[HBP_NUM + i],
						    WORD, HW_BREAKPOINT_W, &dbg->hw[i]), 0);
		dbg->list[i] = &dbg->hw[i];
	}

	return dbg;
}

static void debugger_breakpoints_fire_beside_perf_breakpoints(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct dr_test_regs before, with, without;
	struct dr_test *f = test->priv;
	int hits;

	dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);
	dbg->nb.notifier_call = debugger_trap;
	dbg->nb.priority = INT_MAX;
	register_die_notifier(&dbg->nb);

	local_irq_disable();
	dr_test_read_regs(&before);
	dr_test_debugger_leaves_with(dbg->list);
	dr_test_read_regs(&with);
	hits = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 1);
	dr_test_write_word(HBP_NUM + 1);
	dr_test_debugger_leaves_with(dr_test_no_list);
	dr_test_read_regs(&without);
	dr_test_write_word(HBP_NUM);
	local_irq_enable();
	unregister_die_notifier(&dbg->nb);

	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&with), 4);
	KUNIT_EXPECT_EQ(test, with.dr7, with.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&with, &dr_test_words[0]),
			dr_test_slot_at(&before, &dr_test_words[0]));
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&with, &dr_test_words[1]),
			dr_test_slot_at(&before, &dr_test_words[1]));
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&with, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&with, &dr_test_words[HBP_NUM + 1]), 0);
	KUNIT_EXPECT_EQ(test, hits, 2);

	/* Hits of the debugger are left to the die chain. */
	KUNIT_EXPECT_EQ(test, dbg->nr, 1);
	KUNIT_EXPECT_EQ(test, dbg->dr6 & DR_TRAP_BITS,
			DR_TRAP0 << max(dr_test_slot_at(&with, &dr_test_words[HBP_NUM + 1]), 0));

	KUNIT_EXPECT_EQ(test, without.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, without.cpu_dr7, before.cpu_dr7);
}

static void debugger_entry_disarms_all_breakpoints(struct kunit *test)
{
	struct dr_test_regs before, inside, after;
	struct dr_test *f = test->priv;
	int silent, hits;

	dr_test_arm_word(test, 0);

	local_irq_disable();
	dr_test_read_regs(&before);
	hw_breakpoint_debugger_enter();
	dr_test_read_regs(&inside);
	silent = dr_test_write_hits(f, 0);
	dr_test_scramble_registers();
	dr_test_debugger_leaves_with(dr_test_no_list);
	dr_test_read_regs(&after);
	hits = dr_test_write_hits(f, 0);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, after.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, after.cpu_dr7, before.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&after, &dr_test_words[0]),
			dr_test_slot_at(&before, &dr_test_words[0]));
	KUNIT_EXPECT_EQ(test, hits, 1);
}

static void debugger_change_in_open_batch_applies_at_commit(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct dr_test_regs before, open, armed, closing, gone;
	struct dr_test *f = test->priv;
	unsigned int missing;
	struct perf_event *bp;
	int hits;

	bp = dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);

	local_irq_disable();
	dr_test_read_regs(&before);
	arch_hw_breakpoint_begin();
	arch_uninstall_hw_breakpoint(bp);
	hw_breakpoint_debugger_enter();
	missing = dr_test_debugger_leaves_with(dbg->list);
	dr_test_read_regs(&open);
	hits = dr_test_write_hits(f, 0) + dr_test_write_hits(f, 1);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&armed);
	arch_hw_breakpoint_begin();
	dr_test_debugger_leaves_with(dr_test_no_list);
	dr_test_read_regs(&closing);
	arch_install_hw_breakpoint(bp);
	arch_hw_breakpoint_commit();
	dr_test_read_regs(&gone);
	local_irq_enable();

	/* perf may take all slots before the batch ends. */
	KUNIT_EXPECT_EQ(test, missing, 1U);
	/* The registers have not changed since the batch began. */
	KUNIT_EXPECT_EQ(test, open.dr7, before.dr7);
	KUNIT_EXPECT_EQ(test, open.cpu_dr7, before.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&open, &dr_test_words[HBP_NUM]), -1);
	KUNIT_EXPECT_EQ(test, hits, 2);

	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&armed), 2);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&armed, &dr_test_words[0]), -1);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&armed, &dr_test_words[1]),
			dr_test_slot_at(&before, &dr_test_words[1]));
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&armed, &dr_test_words[HBP_NUM]), 0);

	KUNIT_EXPECT_EQ(test, closing.dr7, armed.dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&gone), 2);
	KUNIT_EXPECT_EQ(test, gone.dr7, gone.cpu_dr7);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&gone, &dr_test_words[0]), 0);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&gone, &dr_test_words[HBP_NUM]), -1);
}

static void debugger_takes_no_register_that_perf_uses(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct dr_test_regs before, with, after;
	struct dr_test *f = test->priv;
	unsigned int missing;
	int i, hits = 0;

	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);

	local_irq_disable();
	dr_test_read_regs(&before);
	missing = dr_test_debugger_leaves_with(dbg->list);
	dr_test_read_regs(&with);
	for (i = 0; i < HBP_NUM; i++)
		hits += dr_test_write_hits(f, i);
	dr_test_debugger_leaves_with(dr_test_no_list);
	dr_test_read_regs(&after);
	local_irq_enable();

	KUNIT_EXPECT_MEMEQ(test, &with, &before, sizeof(with));
	KUNIT_EXPECT_EQ(test, missing, 2U);
	KUNIT_EXPECT_EQ(test, hits, HBP_NUM);
	KUNIT_EXPECT_MEMEQ(test, &after, &before, sizeof(after));
}

static void debugger_breakpoints_yield_to_perf_and_return(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct dr_test_regs full, back;
	struct perf_event *bp[2];
	unsigned int missing;
	int err[2];

	bp[0] = dr_test_hold_word(test, 0, 0);
	bp[1] = dr_test_hold_word(test, 1, 1);
	dr_test_arm_word(test, 2);

	local_irq_disable();
	missing = dr_test_debugger_leaves_with(dbg->list);
	err[0] = arch_install_hw_breakpoint(bp[0]);
	err[1] = arch_install_hw_breakpoint(bp[1]);
	dr_test_read_regs(&full);
	arch_uninstall_hw_breakpoint(bp[0]);
	arch_uninstall_hw_breakpoint(bp[1]);
	dr_test_read_regs(&back);
	dr_test_debugger_leaves_with(dr_test_no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, missing, 0U);
	KUNIT_EXPECT_EQ(test, err[0], 0);
	KUNIT_EXPECT_EQ(test, err[1], 0);
	KUNIT_EXPECT_EQ(test, full.dr7, full.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&full), 4);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&full, &dr_test_words[0]), 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&full, &dr_test_words[1]), 0);

	KUNIT_EXPECT_EQ(test, back.dr7, back.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&back), 3);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&back, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&back, &dr_test_words[HBP_NUM + 1]), 0);
}

static void local_db_restore_arms_debugger_breakpoints(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct dr_test_regs before, inside, left, restored;
	unsigned long dr7;

	dr_test_arm_word(test, 0);

	local_irq_disable();
	dr_test_read_regs(&before);
	dr7 = local_db_save();
	hw_breakpoint_debugger_enter();
	dr_test_read_regs(&inside);
	dr_test_debugger_leaves_with(dbg->list);
	dr_test_read_regs(&left);
	local_db_restore(dr7);
	dr_test_read_regs(&restored);
	hw_breakpoint_debugger_enter();
	dr_test_debugger_leaves_with(dr_test_no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, left.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&restored), 2);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&restored, &dr_test_words[0]),
			dr_test_slot_at(&before, &dr_test_words[0]));
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&restored, &dr_test_words[HBP_NUM]), 0);
}

static void cpu_that_comes_online_loads_debugger_breakpoints(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct dr_test_regs reset, up;

	local_irq_disable();
	dr_test_debugger_leaves_with(dbg->list);
	dr_test_scramble_registers();
	hw_breakpoint_disable();
	dr_test_read_regs(&reset);
	hw_breakpoint_cpu_init();
	dr_test_read_regs(&up);
	hw_breakpoint_debugger_enter();
	dr_test_debugger_leaves_with(dr_test_no_list);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, reset.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, up.dr7, up.cpu_dr7);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&up), 2);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&up, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&up, &dr_test_words[HBP_NUM + 1]), 0);
}

/* The debugger pokes text to set and remove software breakpoints. */
static void text_poke_in_debugger_arms_nothing(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct dr_test_regs armed, inside, after;
	struct dr_test *f = test->priv;
	u8 byte = *(u8 *)dr_test_called;
	int silent, hits;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "text_poke() may sleep");

	dr_test_arm_word(test, 0);

	mutex_lock(&text_mutex);
	local_irq_disable();
	dr_test_debugger_leaves_with(dbg->list);
	dr_test_read_regs(&armed);
	hw_breakpoint_debugger_enter();
	text_poke(dr_test_called, &byte, sizeof(byte));
	dr_test_read_regs(&inside);
	silent = dr_test_write_hits(f, 0);
	dr_test_debugger_leaves_with(dr_test_no_list);
	dr_test_read_regs(&after);
	hits = dr_test_write_hits(f, 0);
	local_irq_enable();
	mutex_unlock(&text_mutex);

	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&armed), 2);
	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&after), 1);
	KUNIT_EXPECT_EQ(test, after.dr7, after.cpu_dr7);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

/* As if an NMI repointed while the debugger runs */
static void repoint_in_debugger_arms_nothing(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[0], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	struct perf_event * __percpu *set;
	struct dr_test_regs inside, after;
	int err, silent, hits;

	set = register_wide_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));

	local_irq_disable();
	hw_breakpoint_debugger_enter();
	err = modify_wide_hw_breakpoint_local(set, (unsigned long)&dr_test_words[1], NULL);
	dr_test_read_regs(&inside);
	silent = dr_test_write_hits(f, 1);
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&after);
	hits = dr_test_write_hits(f, 1);
	local_irq_enable();
	unregister_wide_hw_breakpoint(set);

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, inside.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, silent, 0);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&after), 1);
	KUNIT_EXPECT_EQ(test, after.dr7, after.cpu_dr7);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&after, &dr_test_words[1]), 0);
	KUNIT_EXPECT_EQ(test, hits, 1);
}

/* The debugger stopped the CPU in an NMI, then the CPU went offline. */
static void cpu_that_was_offline_loads_debugger_breakpoints(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 2);
	struct dr_test_regs left, up, restored;
	unsigned long dr7;

	local_irq_disable();
	dr_test_debugger_leaves_with(dbg->list);
	dr7 = local_db_save();
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&left);

	hw_breakpoint_cpu_init();
	dr_test_read_regs(&up);
	/* dbg_restore_debug_regs() */
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&restored);
	dr_test_debugger_leaves_with(dr_test_no_list);
	local_irq_enable();

	KUNIT_EXPECT_NE(test, dr7, 0UL);
	KUNIT_EXPECT_EQ(test, left.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&up), 2);
	KUNIT_EXPECT_EQ(test, restored.dr7, up.dr7);
	KUNIT_EXPECT_EQ(test, restored.dr7, restored.cpu_dr7);
}

static void leave_and_read(void *regs)
{
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(regs);
}

/* The debugger sets its list once; each CPU reads it when it leaves. */
static void each_cpu_loads_debugger_breakpoints_when_it_leaves(struct kunit *test)
{
	struct debugger *dbg = start_debugger(test, 1);
	struct dr_test_regs regs;
	int cpu;

	hw_breakpoint_debugger_set(2, dbg->list[0]);
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, leave_and_read, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), 1, "CPU %d", cpu);
		KUNIT_EXPECT_GE(test, dr_test_slot_at(&regs, &dr_test_words[HBP_NUM]), 0);
	}
	hw_breakpoint_debugger_set(2, NULL);
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, leave_and_read, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, 0UL, "CPU %d", cpu);
		KUNIT_EXPECT_EQ_MSG(test, regs.cpu_dr7, 0UL, "CPU %d", cpu);
	}
}

static int debugger_verdict(const void *addr, u64 len, u32 type)
{
	struct perf_event_attr attr = dr_test_watch(addr, len, type);
	struct arch_hw_breakpoint hw;

	return hw_breakpoint_debugger_parse(&attr, &hw);
}

static int hbreak_verdict(const void *addr)
{
	return debugger_verdict(addr, sizeof(long), HW_BREAKPOINT_X);
}

/* Must not need the kprobe blacklist: empty without CONFIG_KPROBES. */
static void debugger_is_refused_only_code_and_data_of_the_trap_path(struct kunit *test)
{
	static const void *const refused[] = {
		__entry_text_start, __entry_text_end - 1, exc_nmi, exc_debug, hw_breakpoint_load,
	};
	static const void *const accepted[] = {
		exc_page_fault, notify_die, perf_event_release_kernel, dr_test_called,
	};
	struct dr_test *f = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(refused); i++)
		KUNIT_EXPECT_EQ_MSG(test, hbreak_verdict(refused[i]), -EINVAL, "%ps",
				    refused[i]);
	for (i = 0; i < ARRAY_SIZE(accepted); i++)
		KUNIT_EXPECT_EQ_MSG(test, hbreak_verdict(accepted[i]), 0, "%ps", accepted[i]);
	KUNIT_EXPECT_EQ(test, debugger_verdict(per_cpu_ptr(&cpu_dr7, f->cpu), WORD,
					       HW_BREAKPOINT_RW), -EINVAL);
	KUNIT_EXPECT_EQ(test, debugger_verdict(dr_test_words, WORD, HW_BREAKPOINT_RW), 0);
}

/* A CPU that the debugger has stopped may hold the lock of the accounting. */
static void debugger_breakpoint_is_disarmed_while_accounting_is_locked(struct kunit *test)
{
	unsigned long addr = (unsigned long)&dr_test_words[HBP_NUM];
	int set, refused, removed, again;
	struct dr_test_regs armed, gone;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a lock cannot be busy on one CPU");

	kgdb_arch_late();

	local_irq_disable();
	hw_breakpoint_debugger_enter();
	set = kgdb_set_hw_break(addr, WORD, BP_WRITE_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&armed);
	raw_spin_lock(&bp_machine.global.lock);
	hw_breakpoint_debugger_enter();
	refused = kgdb_set_hw_break(addr + WORD, WORD, BP_WRITE_WATCHPOINT);
	removed = kgdb_remove_hw_break(addr, WORD, BP_WRITE_WATCHPOINT);
	again = kgdb_remove_hw_break(addr, WORD, BP_WRITE_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&gone);
	raw_spin_unlock(&bp_machine.global.lock);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&armed, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, refused, -1);
	KUNIT_EXPECT_EQ(test, removed, 0);
	KUNIT_EXPECT_EQ(test, again, -1);
	KUNIT_EXPECT_EQ(test, gone.dr7, 0UL);
	/* The irq_work has released the claim. */
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* An irq_work evicts the flexible breakpoint. */
static void debugger_breakpoint_evicts_flexible_breakpoint(struct kunit *test)
{
	unsigned long addr = (unsigned long)&dr_test_words[HBP_NUM];
	struct dr_test_regs full, leaving, evicted;
	struct perf_event_attr attr;
	int i, set;

	kgdb_arch_late();
	for (i = 0; i < HBP_NUM; i++) {
		attr = dr_test_watch(&dr_test_words[i], WORD, HW_BREAKPOINT_W);
		attr.pinned = 0;
		attr.config = HW_BREAKPOINT_FLEXIBLE;
		dr_test_arm(test, i, attr);
	}

	local_irq_disable();
	dr_test_read_regs(&full);
	hw_breakpoint_debugger_enter();
	set = kgdb_set_hw_break(addr, WORD, BP_WRITE_WATCHPOINT);
	kgdb_correct_hw_break();
	dr_test_read_regs(&leaving);
	local_irq_enable();
	dr_test_read_regs(&evicted);

	local_irq_disable();
	hw_breakpoint_debugger_enter();
	kgdb_remove_hw_break(addr, WORD, BP_WRITE_WATCHPOINT);
	kgdb_correct_hw_break();
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&full), HBP_NUM);
	KUNIT_EXPECT_EQ(test, leaving.dr7, full.dr7);
	KUNIT_EXPECT_EQ(test, dr_test_slot_at(&leaving, (void *)addr), -1);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&evicted), HBP_NUM);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&evicted, (void *)addr), 0);
}

/* Sets or removes a write watchpoint of the debugger on word @i. */
static int kgdb_set_word(int i)
{
	return kgdb_set_hw_break((unsigned long)&dr_test_words[i], WORD, BP_WRITE_WATCHPOINT);
}

static int kgdb_remove_word(int i)
{
	return kgdb_remove_hw_break((unsigned long)&dr_test_words[i], WORD, BP_WRITE_WATCHPOINT);
}

/* Arms what kgdb_set_word() and kgdb_remove_word() have published. */
static void leave_debugger(struct dr_test_regs *regs)
{
	local_irq_disable();
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(regs);
	local_irq_enable();
}

/* As if the debugger had set a breakpoint before the accounting was set up */
static int kgdb_set_word_early(int i)
{
	kgdb_makes_claims = false;
	return kgdb_set_word(i);
}

static void early_debugger_breakpoint_makes_its_claim_late(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[3], WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	struct perf_event *refused;
	int i;

	KUNIT_EXPECT_EQ(test, kgdb_set_word_early(HBP_NUM), 0);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	kgdb_arch_late();
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());
	kgdb_arch_late();

	for (i = 0; i < HBP_NUM - 1; i++)
		dr_test_hold_word(test, i, i);
	refused = perf_event_create_kernel_counter(&attr, f->cpu, NULL, dr_test_record_hit, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(refused), -ENOSPC);
	if (!IS_ERR(refused))
		unregister_hw_breakpoint(refused);

	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), 0);
	dr_test_arm_word(test, HBP_NUM - 1);
}

/* All registers are claimed by the time that the debugger may make claims. */
static void early_debugger_breakpoint_without_a_claim_works_and_is_removed(struct kunit *test)
{
	struct dr_test_regs armed, gone;
	int i, set, removed;

	set = kgdb_set_word_early(HBP_NUM);
	for (i = 0; i < HBP_NUM; i++)
		dr_test_hold_word(test, i, i);
	kgdb_arch_late();
	leave_debugger(&armed);
	removed = kgdb_remove_word(HBP_NUM);
	leave_debugger(&gone);

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&armed, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, removed, 0);
	KUNIT_EXPECT_EQ(test, gone.dr7, 0UL);

	/* No claim was released that the breakpoint did not have. */
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), -1);
	dr_test_drop(test, 0);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), 0);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), 0);
}

static void debugger_breakpoint_is_refused_while_all_registers_are_claimed(struct kunit *test)
{
	struct dr_test_regs refused, armed, gone;
	int i;

	kgdb_arch_late();
	for (i = 0; i < HBP_NUM; i++)
		dr_test_hold_word(test, i, i);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), -1);
	leave_debugger(&refused);
	KUNIT_EXPECT_EQ(test, refused.dr7, 0UL);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), -1);

	dr_test_drop(test, 0);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), 0);
	leave_debugger(&armed);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&armed, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), 0);
	leave_debugger(&gone);
	KUNIT_EXPECT_EQ(test, gone.dr7, 0UL);
}

#ifdef CONFIG_KPROBES
static int removed_in_claim, set_in_claim;

/* As if the debugger stopped this CPU while it is about to make a claim */
static int debug_in_claim(struct kprobe *kp, struct pt_regs *regs)
{
	removed_in_claim = kgdb_remove_word(HBP_NUM);
	set_in_claim = kgdb_set_word(HBP_NUM + 1);
	return 0;
}

static void debugger_breakpoint_that_is_removed_during_its_claim_keeps_none(struct kunit *test)
{
	struct kprobe kp = {
		.symbol_name	= "dbg_reserve_wide_bp_slot",
		.pre_handler	= debug_in_claim,
	};
	struct dr_test_regs regs;
	int i;

	KUNIT_ASSERT_EQ(test, register_kprobe(&kp), 0);
	removed_in_claim = -1;
	set_in_claim = -1;
	KUNIT_EXPECT_EQ(test, kgdb_set_word_early(HBP_NUM), 0);
	kgdb_arch_late();
	unregister_kprobe(&kp);
	KUNIT_EXPECT_EQ(test, removed_in_claim, 0);
	KUNIT_EXPECT_EQ(test, set_in_claim, 0);

	leave_debugger(&regs);
	KUNIT_EXPECT_EQ(test, dr_test_nr_enabled(&regs), 1);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&regs, &dr_test_words[HBP_NUM + 1]), 0);
	/* The breakpoint that was set has the only claim. */
	for (i = 0; i < HBP_NUM - 1; i++)
		dr_test_hold_word(test, i, i);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), -1);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM + 1), 0);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), 0);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), 0);
	leave_debugger(&regs);
}
#else
static void debugger_breakpoint_that_is_removed_during_its_claim_keeps_none(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES");
}
#endif

static int no_char(void)
{
	return -1;
}

static void write_no_char(u8 c)
{
}

static struct kgdb_io no_io = {
	.name		= "x86_hw_breakpoint_debugger",
	.read_char	= no_char,
	.write_char	= write_no_char,
};

static void leave_all(void *unused)
{
	hw_breakpoint_debugger_enter();
	hw_breakpoint_debugger_leave();
}

static void read_all(void *regs)
{
	dr_test_read_regs(regs);
}

/* Reads the registers of each online CPU, and expects @nr of them to be armed. */
static void expect_armed_on_all_cpus(struct kunit *test, int nr)
{
	struct dr_test_regs regs;
	int cpu;

	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, read_all, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_nr_enabled(&regs), nr, "CPU %d", cpu);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, regs.cpu_dr7, "CPU %d", cpu);
	}
}

static void debugger_that_is_unregistered_keeps_no_register(struct kunit *test)
{
	int i;

	if (kgdb_register_io_module(&no_io))
		kunit_skip(test, "another debugger is registered");
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM), 0);
	KUNIT_EXPECT_EQ(test, kgdb_set_word(HBP_NUM + 1), 0);
	on_each_cpu(leave_all, NULL, 1);
	expect_armed_on_all_cpus(test, 2);
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());

	kgdb_unregister_io_module(&no_io);
	expect_armed_on_all_cpus(test, 0);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	for (i = 0; i < HBP_NUM; i++)
		dr_test_arm_word(test, i);
	for (i = 0; i < HBP_NUM; i++)
		dr_test_drop(test, i);

	/* A debugger that comes back removes what it remembers, and sets it again. */
	KUNIT_ASSERT_EQ(test, kgdb_register_io_module(&no_io), 0);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM), 0);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM + 1), 0);
	KUNIT_EXPECT_EQ(test, kgdb_remove_word(HBP_NUM + 1), -1);
	for (i = 0; i < HBP_NUM; i++)
		KUNIT_EXPECT_EQ(test, kgdb_set_word(i), 0);
	on_each_cpu(leave_all, NULL, 1);
	expect_armed_on_all_cpus(test, HBP_NUM);
	kgdb_unregister_io_module(&no_io);
	kgdb_remove_all_hw_break();
}

static void debugger_breakpoint_address_is_aligned_down(struct kunit *test)
{
	unsigned long addr = (unsigned long)&dr_test_words[HBP_NUM];
	struct dr_test_regs armed;
	int set, removed;

	local_irq_disable();
	set = kgdb_set_hw_break(addr + 2, 4, BP_ACCESS_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	dr_test_read_regs(&armed);
	removed = kgdb_remove_hw_break(addr + 2, 4, BP_ACCESS_WATCHPOINT);
	hw_breakpoint_debugger_leave();
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, set, 0);
	KUNIT_EXPECT_GE(test, dr_test_slot_at(&armed, &dr_test_words[HBP_NUM]), 0);
	KUNIT_EXPECT_EQ(test, removed, 0);
}

/* ---- The suite ---- */

static struct kunit_case x86_hw_breakpoint_debugger_test_cases[] = {
	KUNIT_CASE(debugger_breakpoints_fire_beside_perf_breakpoints),
	KUNIT_CASE(debugger_entry_disarms_all_breakpoints),
	KUNIT_CASE(debugger_change_in_open_batch_applies_at_commit),
	KUNIT_CASE(debugger_takes_no_register_that_perf_uses),
	KUNIT_CASE(debugger_breakpoints_yield_to_perf_and_return),
	KUNIT_CASE(local_db_restore_arms_debugger_breakpoints),
	KUNIT_CASE(cpu_that_comes_online_loads_debugger_breakpoints),
	KUNIT_CASE(text_poke_in_debugger_arms_nothing),
	KUNIT_CASE(repoint_in_debugger_arms_nothing),
	KUNIT_CASE(cpu_that_was_offline_loads_debugger_breakpoints),
	KUNIT_CASE(each_cpu_loads_debugger_breakpoints_when_it_leaves),
	KUNIT_CASE(debugger_is_refused_only_code_and_data_of_the_trap_path),
	KUNIT_CASE(debugger_breakpoint_is_disarmed_while_accounting_is_locked),
	KUNIT_CASE(debugger_breakpoint_evicts_flexible_breakpoint),
	KUNIT_CASE(early_debugger_breakpoint_makes_its_claim_late),
	KUNIT_CASE(early_debugger_breakpoint_without_a_claim_works_and_is_removed),
	KUNIT_CASE(debugger_breakpoint_is_refused_while_all_registers_are_claimed),
	KUNIT_CASE(debugger_breakpoint_that_is_removed_during_its_claim_keeps_none),
	KUNIT_CASE(debugger_that_is_unregistered_keeps_no_register),
	KUNIT_CASE(debugger_breakpoint_address_is_aligned_down),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_debugger_test_suite = {
	.name		= "x86_hw_breakpoint_debugger",
	.test_cases	= x86_hw_breakpoint_debugger_test_cases,
	.init		= dr_test_init,
	.exit		= dr_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_debugger_test_suite);
