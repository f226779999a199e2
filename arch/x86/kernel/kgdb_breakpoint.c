// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware breakpoints of the kernel debugger.
 *
 * The debugger sets and removes breakpoints on one CPU while it has stopped all
 * others, possibly in the middle of anything.  It makes claims of the machine,
 * without waiting, and writes no register: hw_breakpoint_debugger_set() publishes
 * each change once, and each CPU arms what is published when it leaves the
 * debugger, or when it comes online.
 *
 * A stopped CPU may hold a lock of the accounting.  Then the debugger cannot
 * set a breakpoint; one that it removes is published as removed, and an irq_work
 * releases its claim when the CPUs run again.
 *
 * Before the accounting is set up the debugger has the machine for itself; its
 * claims for the breakpoints set by then follow in kgdb_arch_late().
 */

#define pr_fmt(fmt) "KGDB: " fmt

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

#include <asm/hw_breakpoint.h>
#include <asm/kgdb.h>

#include "kgdb_breakpoint.h"

/**
 * struct kgdb_breakpoint - a breakpoint of the debugger
 * @hw: what is watched
 * @as_set: the same as the debugger said it; bp_type is 0 if there is no
 *	breakpoint here
 * @claim: on every CPU; held once the accounting is set up
 * @release_due: removed, but still with its claim
 *
 * Changed while all other CPUs are stopped. Only release_claims() runs at other
 * times: it clears @release_due, and the debugger leaves a breakpoint alone for
 * which it is set.
 */
struct kgdb_breakpoint {
	struct arch_hw_breakpoint	hw;
	struct bp_holder		as_set;
	struct bp_claim			claim;
	bool				release_due;
};

static struct kgdb_breakpoint kgdb_bps[HBP_NUM];

/* The accounting is set up. Written once, by kgdb_arch_late(). */
static bool makes_claims;

static int fill_hw(struct arch_hw_breakpoint *hw, unsigned long addr, int len,
		   u32 bp_type)
{
	struct perf_event_attr attr = {
		.bp_addr	= addr,
		.bp_len		= bp_type == HW_BREAKPOINT_X ? sizeof(long) : len,
		.bp_type	= bp_type,
	};

	/* The processor ignores the low bits of the address; perf does not. */
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
		if (kgdb_bps[i].as_set.bp_type == bp_type &&
		    (!bp_type || kgdb_bps[i].as_set.addr == addr))
			return &kgdb_bps[i];
	}

	return NULL;
}

static void publish(const struct kgdb_breakpoint *bp, bool set)
{
	hw_breakpoint_debugger_set(bp - kgdb_bps, set ? &bp->hw : NULL);
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
	if (makes_claims && dbg_reserve_wide_bp_slot(&bp->claim, &bp->as_set)) {
		bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
		return -1;
	}
	publish(bp, true);
	return 0;
}

/*
 * Waits for locks of the accounting that other CPUs hold, which run: this CPU
 * would not be interrupted while it holds one of them.
 */
static void release_claims(struct irq_work *work)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		struct kgdb_breakpoint *bp = &kgdb_bps[i];

		if (!READ_ONCE(bp->release_due))
			continue;
		dbg_release_wide_bp_slot_late(&bp->claim);
		/* Pairs with find_bp(): the claim can be used again. */
		smp_store_release(&bp->release_due, false);
	}
}

static DEFINE_IRQ_WORK(release_work, release_claims);

static void remove_bp(struct kgdb_breakpoint *bp)
{
	publish(bp, false);
	bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
	if (dbg_release_wide_bp_slot(&bp->claim)) {
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

/* Flexible breakpoints may have more slots than the claims of the debugger leave. */
static void leave(void)
{
	if (hw_breakpoint_debugger_leave())
		hw_breakpoint_evict_flexible();
}

void kgdb_correct_hw_break(void)
{
	leave();
}

/*
 * Until it is marked online a CPU that comes up is not stopped, and may have
 * missed what the debugger changed meanwhile.
 */
static int kgdb_cpu_online(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	leave();
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

/* All CPUs run: other requests may be under way, and are waited for. */
void kgdb_arch_late(void)
{
	int i;

	if (makes_claims)
		return;
	makes_claims = true;

	for (i = 0; i < HBP_NUM; i++) {
		struct kgdb_breakpoint *bp = &kgdb_bps[i];

		if (bp->as_set.bp_type &&
		    dbg_reserve_wide_bp_slot_late(&bp->claim, &bp->as_set))
			pr_warn("the early breakpoint at %lx has no register of its own\n",
				bp->as_set.addr);
	}
}
