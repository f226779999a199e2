// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware breakpoints of the kernel debugger.
 *
 * The debugger sets and removes breakpoints on one CPU while it has stopped all
 * others, possibly in the middle of anything.  It makes its claims without
 * waiting and writes no register: each CPU picks up the list of breakpoints by
 * itself when it leaves the debugger, or when it comes online meanwhile.
 *
 * Before memory can be allocated the debugger has the machine for itself; its
 * claims for the breakpoints set by then follow in kgdb_arch_late().
 */

#define pr_fmt(fmt) "KGDB: " fmt

#include <linux/cpumask.h>
#include <linux/hw_breakpoint.h>
#include <linux/init.h>
#include <linux/kgdb.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include <asm/hw_breakpoint.h>
#include <asm/kgdb.h>

#include "kgdb_breakpoint.h"

/**
 * struct kgdb_breakpoint - a breakpoint of the debugger
 * @hw: what is watched
 * @as_set: the same as the debugger said it; bp_type is 0 if there is no
 *	breakpoint here
 * @claims: by CPU; NULL before memory can be allocated
 *
 * Changed while all other CPUs are stopped.
 */
struct kgdb_breakpoint {
	struct arch_hw_breakpoint	hw;
	struct bp_holder		as_set;
	struct bp_claim			*claims;
};

static struct kgdb_breakpoint kgdb_bps[HBP_NUM];

static int fill_hw(struct arch_hw_breakpoint *hw, unsigned long addr, int len,
		   u32 bp_type)
{
	struct perf_event_attr attr = {
		.bp_addr	= addr,
		.bp_len		= bp_type == HW_BREAKPOINT_X ? sizeof(long) : len,
		.bp_type	= bp_type,
	};

	return hw_breakpoint_arch_parse(NULL, &attr, hw);
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
		if (kgdb_bps[i].as_set.bp_type == bp_type &&
		    (!bp_type || kgdb_bps[i].as_set.addr == addr))
			return &kgdb_bps[i];
	}

	return NULL;
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
	if (bp->claims && dbg_reserve_bp_slots(bp->claims, &bp->as_set)) {
		bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
		return -1;
	}
	return 0;
}

static int remove_bp(struct kgdb_breakpoint *bp)
{
	/* The debugger tries again. */
	if (bp->claims && dbg_release_bp_slots(bp->claims))
		return -1;

	bp->as_set.bp_type = HW_BREAKPOINT_EMPTY;
	return 0;
}

int kgdb_remove_hw_break(unsigned long addr, int len, enum kgdb_bptype type)
{
	u32 bp_type = generic_type(type);
	struct kgdb_breakpoint *bp;

	bp = bp_type ? find_bp(addr, bp_type) : NULL;
	return bp ? remove_bp(bp) : -1;
}

void kgdb_remove_all_hw_break(void)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		if (kgdb_bps[i].as_set.bp_type && remove_bp(&kgdb_bps[i]))
			pr_err("cannot remove the hardware breakpoint at %lx\n",
			       kgdb_bps[i].as_set.addr);
	}
}

void kgdb_disable_hw_debug(struct pt_regs *regs)
{
	hw_breakpoint_debugger_enter();
}

void kgdb_correct_hw_break(void)
{
	const struct arch_hw_breakpoint *hw[HBP_NUM];
	int i;

	for (i = 0; i < HBP_NUM; i++)
		hw[i] = kgdb_bps[i].as_set.bp_type ? &kgdb_bps[i].hw : NULL;
	hw_breakpoint_debugger_leave(hw);
}

void kgdb_arch_late(void)
{
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		struct kgdb_breakpoint *bp = &kgdb_bps[i];

		if (bp->claims)
			continue;
		bp->claims = kcalloc(nr_cpu_ids, sizeof(*bp->claims), GFP_KERNEL);
		if (!bp->claims) {
			pr_warn("no memory to claim hardware breakpoints\n");
			return;
		}
		if (bp->as_set.bp_type &&
		    dbg_reserve_bp_slots(bp->claims, &bp->as_set))
			pr_warn("the early breakpoint at %lx has no register of its own\n",
				bp->as_set.addr);
	}
}
