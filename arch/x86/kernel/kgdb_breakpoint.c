// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware breakpoints of the kernel debugger.
 *
 * The debugger sets and removes breakpoints on one CPU while it has stopped all
 * others, at whatever instruction they were.  It makes claims of the machine,
 * without waiting, and writes no register: hw_breakpoint_debugger_set()
 * publishes each change once, and each CPU arms the published breakpoints when
 * it leaves the debugger, or when it comes online.
 *
 * A stopped CPU may hold a lock of the accounting.  Then the debugger cannot
 * set a breakpoint.  A breakpoint that it removes is published as removed, and
 * an irq_work releases its claim when the CPUs run again.
 *
 * Until the accounting is set up the debugger is the only user of the registers
 * and makes no claims; kgdb_arch_late() makes those of the early breakpoints.
 *
 * When the debugger's I/O module is unregistered, kgdb_disarm_all_hw_break() disarms
 * the breakpoints that are left and releases their claims.
 */

#define pr_fmt(fmt) "KGDB: " fmt

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/kgdb.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/smp.h>

#include <asm/hw_breakpoint.h>
#include <asm/kgdb.h>

#include "hw_breakpoint.h"
#include "kgdb_breakpoint.h"

/**
 * struct kgdb_breakpoint - a breakpoint of the debugger
 * @hw: translation of the breakpoint
 * @as_set: what the debugger asked for; describes @claim; bp_type is 0 if this
 *	element is unused
 * @claim: claim of the machine; not held before kgdb_arch_late()
 * @release_due: the breakpoint was removed, but @claim is still held
 * @claiming: kgdb_arch_late() is making @claim
 *
 * Changed while all other CPUs are stopped. Only release_claims(), claim_late() and
 * kgdb_disarm_all_hw_break() run at other times: release_claims() releases @claim and
 * clears @release_due, claim_late() makes @claim, kgdb_disarm_all_hw_break() runs when no
 * debugger is registered. The debugger does not use an element while @release_due is set,
 * and does not set a breakpoint in one that is @claiming.
 */
struct kgdb_breakpoint {
	struct arch_hw_breakpoint	hw;
	struct bp_holder		as_set;
	struct bp_claim			claim;
	bool				release_due;
	bool				claiming;
};

static struct kgdb_breakpoint kgdb_bps[HBP_NUM];

/*
 * What is to be armed on every CPU.  Changed only by hw_breakpoint_debugger_set(), whose
 * callers serialize. All other CPUs are stopped, or no debugger is registered; a CPU that
 * comes up, or is not stopped, may read it at the same time.
 */
const struct arch_hw_breakpoint *kgdb_wanted[HBP_NUM];
bool kgdb_wants_any;

/*
 * The accounting is set up. Written once, by kgdb_arch_late(), which an NMI may stop
 * before or after that for the debugger to set a breakpoint.
 */
VISIBLE_IF_KUNIT bool kgdb_makes_claims;

static int fill_hw(struct arch_hw_breakpoint *hw, unsigned long addr, int len,
		   u32 bp_type)
{
	struct perf_event_attr attr = {
		.bp_addr	= addr,
		.bp_len		= bp_type == HW_BREAKPOINT_X ? sizeof(long) : len,
		.bp_type	= bp_type,
	};

	/* The processor ignores the low bits of an address; parsing does not. */
	if (bp_type != HW_BREAKPOINT_X && is_power_of_2(attr.bp_len))
		attr.bp_addr = ALIGN_DOWN(addr, attr.bp_len);

	return hw_breakpoint_debugger_parse(&attr, hw);
}

static u32 generic_type(enum kgdb_bptype type)
{
	switch (type) {
	case BP_HARDWARE_BREAKPOINT:
		return HW_BREAKPOINT_X;
	case BP_WRITE_WATCHPOINT:
		return HW_BREAKPOINT_W;
	case BP_ACCESS_WATCHPOINT:
		return HW_BREAKPOINT_RW;
	default:
		return HW_BREAKPOINT_EMPTY;
	}
}

static struct kgdb_breakpoint *find_bp(unsigned long addr, u32 bp_type)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		/* Pairs with release_claims(). */
		if (smp_load_acquire(&kgdb_bps[i].release_due))
			continue;
		/* kgdb_arch_late() would make a second claim. */
		if (!bp_type && READ_ONCE(kgdb_bps[i].claiming))
			continue;
		if (kgdb_bps[i].as_set.bp_type == bp_type &&
		    (!bp_type || kgdb_bps[i].as_set.addr == addr))
			return &kgdb_bps[i];
	}

	return NULL;
}

void hw_breakpoint_debugger_set(unsigned int i, const struct arch_hw_breakpoint *hw)
{
	bool any = false;

	/* Pairs with smp_load_acquire() in add_debugger(). */
	smp_store_release(&kgdb_wanted[i], hw);
	for (i = 0; i < HBP_NUM; i++)
		any |= !!kgdb_wanted[i];
	WRITE_ONCE(kgdb_wants_any, any);
}

int kgdb_set_hw_break(unsigned long addr, int len, enum kgdb_bptype type)
{
	struct kgdb_breakpoint *bp = find_bp(0, HW_BREAKPOINT_EMPTY);
	u32 bp_type = generic_type(type);
	struct arch_hw_breakpoint hw;

	if (!bp || !bp_type || fill_hw(&hw, addr, len, bp_type))
		return -1;

	bp->hw = hw;
	bp->as_set = (struct bp_holder) {
		.addr		= addr,
		.len		= len,
		.bp_type	= bp_type,
	};
	if (READ_ONCE(kgdb_makes_claims) &&
	    dbg_reserve_wide_bp_slot(&bp->claim, &bp->as_set, false)) {
		bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
		return -1;
	}
	hw_breakpoint_debugger_set(bp - kgdb_bps, &bp->hw);
	return 0;
}

/*
 * Waits for locks of the accounting. Only other CPUs can hold them, and these
 * run: the locks are taken with interrupts off, so this irq_work did not
 * interrupt a holder.
 */
static void release_claims(struct irq_work *work)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		struct kgdb_breakpoint *bp = &kgdb_bps[i];

		/* kgdb_arch_late() queues this work again when it has made the claim. */
		if (!READ_ONCE(bp->release_due) || READ_ONCE(bp->claiming))
			continue;
		dbg_release_wide_bp_slot(&bp->claim, true);
		/* Pairs with find_bp(): the element can be used again. */
		smp_store_release(&bp->release_due, false);
	}
}

static DEFINE_IRQ_WORK(release_work, release_claims);

static void remove_bp(struct kgdb_breakpoint *bp)
{
	hw_breakpoint_debugger_set(bp - kgdb_bps, NULL);
	bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
	if (READ_ONCE(bp->claiming) || dbg_release_wide_bp_slot(&bp->claim, false)) {
		WRITE_ONCE(bp->release_due, true);
		irq_work_queue(&release_work);
	}
}

int kgdb_remove_hw_break(unsigned long addr, int len, enum kgdb_bptype type)
{
	u32 bp_type = generic_type(type);
	struct kgdb_breakpoint *bp;

	bp = bp_type ? find_bp(addr, bp_type) : NULL;
	if (!bp)
		return -1;

	remove_bp(bp);
	return 0;
}

void kgdb_remove_all_hw_break(void)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		if (kgdb_bps[i].as_set.bp_type)
			remove_bp(&kgdb_bps[i]);
	}
}

void kgdb_disable_hw_debug(struct pt_regs *regs)
{
	hw_breakpoint_debugger_enter();
}

/* Flexible breakpoints may have registers that the debugger has claimed. */
void kgdb_correct_hw_break(void)
{
	unsigned int left = hw_breakpoint_debugger_leave(), wanted = 0;
	int i;

	for (i = 0; i < HBP_NUM; i++)
		wanted += !!READ_ONCE(kgdb_wanted[i]);
	if (wanted > left)
		hw_breakpoint_evict_flexible();
}

static void leave_on_cpu(void *unused)
{
	kgdb_correct_hw_break();
}

/*
 * No debugger is registered, so none runs or is entered, but all CPUs run. A CPU that
 * comes online meanwhile follows in kgdb_cpu_online().
 *
 * Keep the breakpoints themselves: the debugger remembers them, too. When kdb is entered
 * again, it removes and sets them as usual, and would not set one that it cannot remove.
 */
void kgdb_disarm_all_hw_break(void)
{
	int i;

	if (!kgdb_wants())
		return;
	for (i = 0; i < HBP_NUM; i++)
		hw_breakpoint_debugger_set(i, NULL);
	on_each_cpu(leave_on_cpu, NULL, 1);
	for (i = 0; i < HBP_NUM; i++) {
		if (kgdb_bps[i].as_set.bp_type)
			dbg_release_wide_bp_slot(&kgdb_bps[i].claim, true);
	}
}

/*
 * The debugger does not stop a CPU that is not marked online yet, so a CPU that
 * comes up may have missed changes.
 */
static int kgdb_cpu_online(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	kgdb_correct_hw_break();
	local_irq_restore(flags);
	return 0;
}

static int __init kgdb_follow_cpus(void)
{
	int err = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "x86/kgdb:online",
					    kgdb_cpu_online, NULL);

	return min(err, 0);
}
early_initcall(kgdb_follow_cpus);

/*
 * The debugger may stop this CPU at any point and remove @bp, or set a breakpoint
 * where there was none. With @claiming set it leaves the claim of @bp alone. A breakpoint
 * that kgdb_disarm_all_hw_break() has disarmed needs none.
 */
static void claim_late(struct kgdb_breakpoint *bp)
{
	WRITE_ONCE(bp->claiming, true);
	/* An NMI that stops this CPU later sees @claiming. */
	barrier();
	if (READ_ONCE(kgdb_wanted[bp - kgdb_bps]) && !bp->claim.held &&
	    dbg_reserve_wide_bp_slot(&bp->claim, &bp->as_set, true))
		pr_warn("no register available for early breakpoint at %lx\n",
			bp->as_set.addr);
	WRITE_ONCE(bp->claiming, false);

	/* Orders @claiming before @release_due; pairs with irq_work_queue(). */
	smp_mb();
	if (READ_ONCE(bp->release_due))
		irq_work_queue(&release_work);
}

/* All CPUs run, so waiting for other requests is possible. */
void kgdb_arch_late(void)
{
	int i;

	if (kgdb_makes_claims)
		return;
	/* A breakpoint that is set before this is found below; a later one has a claim. */
	WRITE_ONCE(kgdb_makes_claims, true);

	for (i = 0; i < HBP_NUM; i++)
		claim_late(&kgdb_bps[i]);
}
