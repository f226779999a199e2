// SPDX-License-Identifier: GPL-2.0
/*
 * The debug registers of one CPU, and the way from a #DB to the event.
 *
 * There are two views of the registers.  The *wanted* view is what perf and the
 * kernel debugger ask for; install, uninstall, change, repoint and the debugger
 * change only this view, and mark the slot as dirty.  The *hardware* view is what
 * the registers contain and to which event a hit belongs; #DB uses this view, and
 * so does all code that loads the registers.  sync_registers() brings dirty slots
 * in line with the wanted view, once for each batch of changes:
 *
 *  - a slot that stays is never disarmed;
 *  - the slots of a breakpoint that has several change together, while all of those that
 *    change are disarmed, so no hit is of pieces of two ranges;
 *  - a slot is disarmed before its address or mask changes and armed after, so
 *    it never fires with the address of one breakpoint and the control field of
 *    another;
 *  - DR7 is written twice at most, and not at all if nothing changes.
 *
 * Both views belong to one CPU and are used with interrupts off.  Only #DB, NMI
 * and the kernel debugger can interrupt code that uses them:
 *
 *  - #DB reads cpu_regs::reg[].event of slots that cpu_dr7_armed enables: the event
 *    of a slot is set before the slot is armed, and is ignored after the slot is
 *    disarmed.
 *  - Code in #DB or NMI that repoints a breakpoint changes attr.bp_addr and marks
 *    its slot as dirty. If it interrupted an update of the registers or an
 *    open batch, it leaves the update to the interrupted code.
 *  - NMI reads cpu_dr7 to find out whether DR7 enables anything; see write_dr7().
 *  - The debugger has a list of wanted breakpoints of its own. It marks all slots
 *    as dirty.
 *
 * The value of DR7 shows whether other code uses the registers.  Code that must not
 * trap, or that uses the registers for something else, clears DR7 and loads it
 * again.  Code that interrupts it finds DR7 clear although cpu_dr7 enables
 * something: it updates struct cpu_regs, sets cpu_dr7_changed and writes no
 * register.  So the registers of a guest of KVM stay as they are, and DR7 is
 * never loaded with the control field of one breakpoint while an address or mask
 * register is that of another.
 *
 * Who writes what.  "perf" is install, uninstall and change, with interrupts off, but not in
 * #DB or NMI; "repoint" is in any context; "update" is sync_registers(), in the context of
 * perf, of repoint, or of the debugger that leaves; "load" is hw_breakpoint_load(), in the
 * exit of #DB and NMI, after a guest of KVM or a suspend, and for the debugger that leaves:
 *
 *  word			set					cleared
 *  cpu_dr7		update, before DR7			update, after DR7; load
 *  cpu_dr7_armed	update, between cpu_dr7 and DR7		the same
 *  cpu_dr7_changed	update that finds DR7 clear, debugger	load, before it reads the rest
 *			that leaves, load in a load
 *  wanted, piece	perf: event of a slot, then its bit in	perf: bit of a slot, then its
 *			wanted.taken; update: a new address	event
 *			of a repointed breakpoint
 *  reg			update: all of a slot that is not	-
 *			armed, what tells an equal or moved
 *			breakpoint of one that is
 *  armed_slots		update, after DR7			the same
 *  mask		update and load, before the register	the same
 *  dirty		perf, repoint, debugger that leaves	update, before it reads @wanted
 *  busy: BUSY_BATCH	begin and change of perf		commit, end of change
 *  busy: BUSY_SYNC	update					end of this update
 *  busy: BUSY_DEBUGGER	debugger that enters			debugger that leaves
 *  loading		load, unless in a load			end of this load
 *  entered_suspended	debugger that enters			not used until it enters again
 *
 * hw_breakpoint_cpu_init() clears all of them but @wanted, as the code that was interrupted
 * when a CPU went down does not continue.
 */

#include <linux/bits.h>
#include <linux/export.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/cpu_entry_area.h>
#include <asm/debugreg.h>
#include <asm/hw_breakpoint.h>
#include <asm/msr.h>
#include <asm/paravirt.h>
#include <asm/processor.h>

#include "hw_breakpoint.h"

/**
 * struct bp_want - a breakpoint, or a piece of one, that is to be armed in a slot
 * @hw: the breakpoint, or cpu_regs::piece of the slot; valid if bp_wants::taken has the bit
 *	of the slot
 * @event: event of the breakpoint; NULL for a breakpoint of the kernel debugger, and if
 *	there is none
 */
struct bp_want {
	const struct arch_hw_breakpoint	*hw;
	struct perf_event		*event;
};

/**
 * struct bp_wants - the wanted view
 * @slot: breakpoint of each slot
 * @taken: bitmap of the slots with a breakpoint
 */
struct bp_wants {
	struct bp_want	slot[HBP_NUM];
	unsigned int	taken;
};

/**
 * struct bp_reg - the hardware view of one slot
 * @armed_for: bp_want::hw for which the slot is armed
 * @event: event of the breakpoint, NULL for a breakpoint of the kernel debugger
 * @hw: copy of *@armed_for from the time when the slot was written
 *
 * Valid if the slot is armed.
 */
struct bp_reg {
	const struct arch_hw_breakpoint	*armed_for;
	struct perf_event		*event;
	struct arch_hw_breakpoint	hw;
};

/**
 * struct cpu_regs - the debug registers of a CPU
 * @wanted: the wanted view of perf, without the breakpoints of the debugger
 * @piece: what is wanted in a slot of a breakpoint that needs several
 * @reg: the hardware view of each slot
 * @armed_slots: bitmap of the slots that are armed; the slots of cpu_dr7_armed, except
 *	during an update
 * @mask: contents of the address mask registers
 * @dirty: slots in which the views may differ, and DIRTY_ADDRESS; changed by single
 *	instructions, because an NMI or #DB may change it, too
 * @busy: BUSY_*: why the registers must not be brought in line now; code that
 *	interrupts other code leaves it as it was
 * @loading: the registers are being loaded from @reg
 * @entered_suspended: DR7 was clear when the debugger was entered: the code that
 *	cleared it loads the registers
 */
struct cpu_regs {
	struct bp_wants			wanted;
	struct arch_hw_breakpoint	piece[HBP_NUM];
	struct bp_reg			reg[HBP_NUM];
	unsigned int			armed_slots;
	u32				mask[HBP_NUM];
	unsigned int			dirty;
	unsigned int			busy;
	bool				loading;
	bool				entered_suspended;
};

static DEFINE_PER_CPU(struct cpu_regs, cpu_regs);

DEFINE_PER_CPU(unsigned long, cpu_dr7);
EXPORT_PER_CPU_SYMBOL(cpu_dr7);

DEFINE_PER_CPU(unsigned long, cpu_dr7_armed);

DEFINE_PER_CPU(bool, cpu_dr7_changed);

#define ALL_SLOTS	(BIT(HBP_NUM) - 1)

/* In cpu_regs::busy: a batch is open: perf is changing the wanted view. */
#define BUSY_BATCH	BIT(0)
/* An update of the registers is under way. */
#define BUSY_SYNC	BIT(1)
/* The kernel debugger runs; a multiple of this, because it may debug itself */
#define BUSY_DEBUGGER	BIT(2)

/* In cpu_regs::dirty: a breakpoint in one of the dirty slots may have a new address. */
#define DIRTY_ADDRESS	BIT(HBP_NUM)

#define for_each_slot(slot, slots)					\
	for (unsigned int left = (slots);				\
	     left && ((slot) = __ffs(left), true); left &= left - 1)

/* ---- Single registers ---- */

/* The slot is not armed. @suspended: as for sync_registers() */
static __always_inline void write_mask(struct cpu_regs *regs, int slot, u32 mask,
				       bool suspended)
{
	u32 msr = slot ? MSR_F16H_DR1_ADDR_MASK + slot - 1 : MSR_F16H_DR0_ADDR_MASK;

	if (unlikely(suspended)) {
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	regs->mask[slot] = mask;
	barrier();
	native_wrmsr(msr, mask, 0);
}

/*
 * An NMI that finds no enable bit in cpu_dr7 does not access DR7, so cpu_dr7
 * must cover DR7 at every instruction: around the write it covers the old and
 * the new value.  The debugger and the exit of an NMI may load DR7 from
 * cpu_dr7_armed at any point, so cpu_dr7_armed is set between cpu_dr7 and DR7.
 *
 * If other code has cleared DR7, that code may be about to write the old value:
 * leave the old value in cpu_dr7, until hw_breakpoint_load().
 */
static __always_inline void write_dr7(unsigned long dr7, bool suspended)
{
	this_cpu_write(cpu_dr7, this_cpu_read(cpu_dr7) | dr7);
	barrier();
	this_cpu_write(cpu_dr7_armed, dr7);
	barrier();
	if (unlikely(suspended)) {
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	set_debugreg(dr7, 7);
	barrier();
	this_cpu_write(cpu_dr7, dr7);
}

/*
 * Load address and mask of an armed slot.  Write the mask even if regs->mask
 * has it already: the mask registers may have been reset.
 */
static __always_inline void load_armed_slot(struct cpu_regs *regs, int slot)
{
	struct bp_reg *reg = &regs->reg[slot];

	set_debugreg(reg->hw.address, slot);
	if (unlikely(reg->hw.mask || regs->mask[slot]))
		write_mask(regs, slot, reg->hw.mask, false);
}

/*
 * An NMI that changes breakpoints before DR7 is written finds DR7 clear: it
 * updates struct cpu_regs, sets cpu_dr7_changed and writes no register. If it
 * comes before the first check of cpu_dr7_changed, DR7 is not written and the
 * loop starts again. If it comes between that check and the write, DR7 arms the
 * registers that were loaded, all of them from before the change; the second
 * check finds the change.
 *
 * If this function interrupted write_dr7(), cpu_dr7 already covers the value
 * that write_dr7() will write: leave cpu_dr7 alone.
 */
static __always_inline void load_until_unchanged(struct cpu_regs *regs)
{
	unsigned long dr7;
	int slot;

	for (;;) {
		WRITE_ONCE(regs->loading, true);
		this_cpu_write(cpu_dr7_changed, false);
		barrier();
		dr7 = this_cpu_read(cpu_dr7_armed);
		for (slot = 0; slot < HBP_NUM; slot++) {
			if (dr7_enabled(dr7, slot))
				load_armed_slot(regs, slot);
		}
		if (likely(!(regs->busy & BUSY_SYNC)))
			this_cpu_write(cpu_dr7, dr7);
		barrier();
		if (unlikely(this_cpu_read(cpu_dr7_changed)))
			continue;
		set_debugreg(dr7, 7);
		barrier();
		WRITE_ONCE(regs->loading, false);
		barrier();
		if (likely(!this_cpu_read(cpu_dr7_changed)))
			return;
		hw_breakpoint_disable();
	}
}

/*
 * If the caller interrupted a load, let that load begin again: the interrupted code may
 * have read cpu_dr7_armed before it changed. To load the registers here and to set
 * cpu_dr7_changed is not enough, because another NMI that finds DR7 armed then would
 * clear cpu_dr7_changed.
 */
static __always_inline bool leave_to_interrupted_load(const struct cpu_regs *regs)
{
	if (likely(!READ_ONCE(regs->loading)))
		return false;
	this_cpu_write(cpu_dr7_changed, true);
	return true;
}

noinstr void hw_breakpoint_load(void)
{
	struct cpu_regs *regs = raw_cpu_ptr(&cpu_regs);

	if (!leave_to_interrupted_load(regs))
		load_until_unchanged(regs);
}

/* Returns true if the interrupted code has cleared DR7 and will restore it. */
static bool dr7_is_suspended(void)
{
	unsigned long dr7;

	if (!hw_breakpoint_active())
		return false;
	get_debugreg(dr7, 7);
	return !(dr7 & DR7_ENABLE_ALL);
}

/* ---- Updates of the hardware from the wanted view ---- */

static __always_inline bool same_control(const struct arch_hw_breakpoint *a,
					 const struct arch_hw_breakpoint *b)
{
	return a->ctl == b->ctl && a->mask == b->mask;
}

static bool same_hw(const struct arch_hw_breakpoint *a,
		    const struct arch_hw_breakpoint *b)
{
	return a->address == b->address && same_control(a, b);
}

/*
 * Score of a slot for a breakpoint. The slot that is armed for it scores
 * highest. Next are slots that need not be disarmed first: one that is armed
 * for an equal breakpoint, the one that it had last, then others that are not armed.
 */
static int slot_score(const struct cpu_regs *regs, int slot,
		      const struct arch_hw_breakpoint *hw)
{
	const struct bp_reg *reg = &regs->reg[slot];

	if (!(regs->armed_slots & BIT(slot)))
		return 1 + (hw->slot == slot);
	if (reg->armed_for == hw)
		return 4;
	return same_hw(&reg->hw, hw) ? 3 : 0;
}

/* Find the slot with the highest score that is not in @taken, -1 if there is none. */
static int free_slot(const struct cpu_regs *regs, unsigned int taken,
		     const struct arch_hw_breakpoint *hw)
{
	int slot, score, best = -1, best_score = -1;
	unsigned int free = ALL_SLOTS & ~taken;

	for_each_slot(slot, free) {
		score = slot_score(regs, slot, hw);
		if (score > best_score) {
			best = slot;
			best_score = score;
		}
	}

	return best;
}

static void want(struct bp_wants *wanted, int slot,
		 const struct arch_hw_breakpoint *hw, struct perf_event *event)
{
	wanted->slot[slot] = (struct bp_want) { .hw = hw, .event = event };
	/* An NMI may use the event of a slot that is taken. */
	barrier();
	wanted->taken |= BIT(slot);
}

/* Adds the breakpoints of the debugger, in slots that perf does not use. */
static void add_debugger(const struct cpu_regs *regs, struct bp_wants *wanted)
{
	int i, slot;

	for (i = 0; i < HBP_NUM; i++) {
		/* Pairs with smp_store_release() in hw_breakpoint_debugger_set(). */
		const struct arch_hw_breakpoint *hw = smp_load_acquire(&kgdb_wanted[i]);

		if (!hw)
			continue;
		slot = free_slot(regs, wanted->taken, hw);
		if (slot >= 0)
			want(wanted, slot, hw, NULL);
	}
}

/* The slot is not armed. Returns its bits of DR7. */
static __always_inline unsigned long load_slot(struct cpu_regs *regs, int slot,
					       const struct bp_want *want, bool suspended)
{
	const struct arch_hw_breakpoint *hw = want->hw;
	struct bp_reg *reg = &regs->reg[slot];

	if (likely(!suspended))
		set_debugreg(hw->address, slot);
	reg->hw = *hw;
	reg->event = want->event;
	reg->armed_for = hw;
	if (unlikely(hw->mask | regs->mask[slot]))
		write_mask(regs, slot, hw->mask, suspended);

	return dr7_bits(slot, hw->ctl);
}

/* Unrolled, because instructions encode the register number. */
static __always_inline unsigned long load_slots(struct cpu_regs *regs,
						const struct bp_wants *wanted,
						unsigned int slots, bool suspended)
{
	unsigned long dr7 = DR7_EXACT;
	int slot;

#pragma GCC unroll 4
	for (slot = 0; slot < HBP_NUM; slot++) {
		if (slots & BIT(slot))
			dr7 |= load_slot(regs, slot, &wanted->slot[slot], suspended);
	}

	return dr7;
}

/* Moves the breakpoint in @slot, which is armed. */
static __always_inline void write_address(struct cpu_regs *regs, int slot,
					  unsigned long address, bool suspended)
{
	WRITE_ONCE(regs->reg[slot].hw.address, address);
	barrier();
	if (unlikely(suspended))
		this_cpu_write(cpu_dr7_changed, true);
	else
		set_debugreg(address, slot);
}

/*
 * Returns true if @slot, which is armed, need not be disarmed: the same range is wanted
 * there, possibly for another event, or only the address has changed.
 */
static __always_inline bool slot_stays(struct cpu_regs *regs, int slot,
				       const struct bp_want *want, bool suspended)
{
	const struct arch_hw_breakpoint *hw = want->hw;
	struct bp_reg *reg = &regs->reg[slot];
	unsigned long address = hw->address;

	if (!same_control(&reg->hw, hw))
		return false;
	if (reg->hw.address != address) {
		/* If only the address changes, one write to DRn is atomic. */
		if (reg->armed_for != hw || hw == &regs->piece[slot])
			return false;
		write_address(regs, slot, address, suspended);
		return true;
	}
	/* A piece of another range */
	if (unlikely(reg->hw.before != hw->before))
		return false;
	reg->event = want->event;
	reg->armed_for = hw;

	return true;
}

/* Resets the masks of @slots, none of which is armed. */
static void clear_masks(struct cpu_regs *regs, unsigned int slots, bool suspended)
{
	int slot;

	for_each_slot(slot, slots) {
		if (regs->mask[slot])
			write_mask(regs, slot, 0, suspended);
	}
}

/* Returns cpu_dr7_armed without @leave; 0 if that leaves no slot. */
static __always_inline unsigned long dr7_without(const struct cpu_regs *regs, unsigned int leave)
{
	unsigned long dr7 = this_cpu_read(cpu_dr7_armed);
	int slot;

	if (leave == regs->armed_slots)
		return 0;
	for_each_slot(slot, leave)
		dr7 = dr7_clear(dr7, slot);
	return dr7;
}

/*
 * Of the slots in @dirty, some stay armed; the others have to be disarmed (leave), or a
 * breakpoint has to be loaded in them (load), or both.
 */
static __always_inline void sync_slots(struct cpu_regs *regs, const struct bp_wants *wanted,
				       unsigned int dirty, bool suspended)
{
	unsigned int leave = dirty & regs->armed_slots, load = dirty & wanted->taken;
	unsigned long dr7;
	int slot;

	for_each_slot(slot, leave & load) {
		if (slot_stays(regs, slot, &wanted->slot[slot], suspended)) {
			leave &= ~BIT(slot);
			load &= ~BIT(slot);
		}
	}
	if (!(leave | load))
		return;

	dr7 = dr7_without(regs, leave);
	if (load) {
		/* Disarm the slots that change. */
		if (leave & load)
			write_dr7(dr7, suspended);
		dr7 |= load_slots(regs, wanted, load, suspended);
		/* All events are set: arm the slots. */
		barrier();
	}
	write_dr7(dr7, suspended);

	regs->armed_slots = (regs->armed_slots & ~leave) | load;
	if (unlikely(hw_breakpoint_addr_mask_max))
		clear_masks(regs, leave & ~load, suspended);
}

static noinline void sync_with_debugger(struct cpu_regs *regs, bool suspended)
{
	struct bp_wants wanted = regs->wanted;

	add_debugger(regs, &wanted);
	sync_slots(regs, &wanted, ALL_SLOTS, suspended);
}

/* The slots that @event, which needs several, has in the wanted view */
static noinline unsigned int slots_of_pieces(const struct cpu_regs *regs,
					     const struct perf_event *event)
{
	unsigned int slots = 0;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (regs->wanted.slot[slot].event == event)
			slots |= BIT(slot);
	}

	return slots;
}

static __always_inline unsigned int slots_of(const struct cpu_regs *regs,
					     const struct perf_event *event)
{
	if (unlikely(event->hw.info.before))
		return slots_of_pieces(regs, event);
	return BIT(event->hw.info.slot);
}

/* Divides the range of @event among its slots, which are returned. */
static noinline unsigned int change_pieces(struct cpu_regs *regs, const struct perf_event *event)
{
	struct arch_hw_breakpoint piece = event->hw.info;
	unsigned int slots = slots_of_pieces(regs, event);
	int slot;

	for_each_slot(slot, slots) {
		regs->piece[slot] = piece;
		hw_breakpoint_previous_piece(&piece);
	}

	return slots;
}

static noinline void apply_address_of_pieces(struct cpu_regs *regs, struct perf_event *event)
{
	hw_breakpoint_set_range(&event->hw.info, READ_ONCE(event->attr.bp_addr),
				event->attr.bp_len);
	change_pieces(regs, event);
}

/* See kernel/events/bp_wide.c: one word, so that no reader mixes two addresses. */
static __always_inline void apply_address(struct cpu_regs *regs, struct perf_event *event)
{
	if (unlikely(event->hw.info.before))
		apply_address_of_pieces(regs, event);
	else
		event->hw.info.address = READ_ONCE(event->attr.bp_addr);
}

/*
 * A repointed breakpoint in the wanted view changes only here, and not while
 * registers are written: an NMI that repoints a breakpoint then makes the
 * update run again.  Look at all slots: the NMI may have set DIRTY_ADDRESS before the
 * update has cleared it, and the bit of its slot after that.
 *
 * Return: the slots of repointed breakpoints.
 */
static noinline unsigned int apply_addresses(struct cpu_regs *regs)
{
	unsigned int slots = 0;
	int slot;

	for_each_slot(slot, regs->wanted.taken) {
		struct perf_event *event = regs->wanted.slot[slot].event;

		if (event->hw.info.repointed) {
			apply_address(regs, event);
			slots |= BIT(slot);
		}
	}

	return slots;
}

/*
 * Brings the dirty slots in line with the wanted view. But for move_armed() the only way in
 * which breakpoints change in the registers.
 * @suspended: write no register: the code that cleared DR7 loads all of them
 *
 * Update again if an NMI, a #DB or the debugger interrupted the update and made a
 * change.
 */
static noinline void sync_registers(struct cpu_regs *regs, bool suspended)
{
	unsigned int dirty;

	while ((dirty = READ_ONCE(regs->dirty))) {
		WRITE_ONCE(regs->busy, BUSY_SYNC);
		this_cpu_and(cpu_regs.dirty, ~dirty);
		barrier();
		if (unlikely(dirty & DIRTY_ADDRESS))
			dirty |= apply_addresses(regs);
		if (unlikely(kgdb_wants()))
			sync_with_debugger(regs, suspended);
		else
			sync_slots(regs, &regs->wanted, dirty, suspended);
		barrier();
		WRITE_ONCE(regs->busy, 0);
	}
}

/*
 * Marks @slots as dirty, and brings them in line; if the CPU is busy, the end of the batch
 * or of the update does that, or hw_breakpoint_debugger_leave().
 */
static __always_inline void want_changed(struct cpu_regs *regs, unsigned int slots,
					 bool suspended)
{
	barrier();
	this_cpu_or(cpu_regs.dirty, slots);
	if (!regs->busy)
		sync_registers(regs, suspended);
}

/* ---- For the PMU ---- */

/*
 * Returns true if the breakpoint can get the slot that it had last.  perf often
 * removes an event and adds it again in one batch; its slot stays armed until
 * the batch ends.  If nothing is armed, any slot that is not taken will do.
 */
static __always_inline bool keeps_slot(const struct cpu_regs *regs,
				       const struct arch_hw_breakpoint *hw)
{
	unsigned int bit = BIT(hw->slot);

	if (regs->wanted.taken & bit)
		return false;
	return !regs->armed_slots ||
	       ((regs->armed_slots & bit) && regs->reg[hw->slot].armed_for == hw);
}

static __always_inline void installed(struct cpu_regs *regs, unsigned int slots,
				      const struct perf_event *event)
{
	want_changed(regs, slots | (event->hw.info.repointed ? DIRTY_ADDRESS : 0), false);
}

static __always_inline void install(struct cpu_regs *regs, int slot, struct perf_event *event)
{
	want(&regs->wanted, slot, &event->hw.info, event);
	installed(regs, BIT(slot), event);
}

static void forget_events(struct bp_wants *wanted, unsigned int slots)
{
	int slot;

	for_each_slot(slot, slots)
		wanted->slot[slot].event = NULL;
}

/* All or none: an NMI must not find some of the slots taken. */
static int install_pieces(struct cpu_regs *regs, struct perf_event *event)
{
	struct arch_hw_breakpoint *hw = &event->hw.info, piece = *hw;
	struct bp_wants *wanted = &regs->wanted;
	unsigned int slots = 0;
	int slot;

	do {
		slot = free_slot(regs, wanted->taken | slots, &piece);
		if (slot < 0) {
			forget_events(wanted, slots);
			return -ENOSPC;
		}
		regs->piece[slot] = piece;
		wanted->slot[slot].hw = &regs->piece[slot];
		wanted->slot[slot].event = event;
		slots |= BIT(slot);
	} while (hw_breakpoint_previous_piece(&piece));
	hw->slot = slot;
	barrier();
	wanted->taken |= slots;
	installed(regs, slots, event);

	return 0;
}

/* Out of line, so that arch_install_hw_breakpoint() need not save registers. */
static noinline int install_elsewhere(struct cpu_regs *regs, struct perf_event *event)
{
	int slot;

	if (event->hw.info.before)
		return install_pieces(regs, event);
	slot = free_slot(regs, regs->wanted.taken, &event->hw.info);
	if (slot < 0)
		return -ENOSPC;

	event->hw.info.slot = slot;
	install(regs, slot, event);
	return 0;
}

int arch_install_hw_breakpoint(struct perf_event *event)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	struct arch_hw_breakpoint *hw = &event->hw.info;

	lockdep_assert_irqs_disabled();

	if (unlikely(hw->before || !keeps_slot(regs, hw)))
		return install_elsewhere(regs, event);

	install(regs, hw->slot, event);
	return 0;
}

/* Returns true if the registers are in line, and only the address of @event is not. */
static __always_inline bool is_armed(const struct cpu_regs *regs, const struct perf_event *event)
{
	const struct arch_hw_breakpoint *hw = &event->hw.info;

	/* A range of several pieces is armed for these. */
	return !(regs->busy | regs->dirty) && !kgdb_wants() &&
	       (regs->armed_slots & BIT(hw->slot)) && regs->reg[hw->slot].armed_for == hw;
}

/* What an NMI changes meanwhile, it leaves to sync_registers(), because the CPU is busy. */
static __always_inline void move_armed(struct cpu_regs *regs, struct perf_event *event,
				       bool suspended)
{
	WRITE_ONCE(regs->busy, BUSY_SYNC);
	barrier();
	event->hw.info.address = READ_ONCE(event->attr.bp_addr);
	write_address(regs, event->hw.info.slot, event->hw.info.address, suspended);
	barrier();
	WRITE_ONCE(regs->busy, 0);
	if (unlikely(READ_ONCE(regs->dirty)))
		sync_registers(regs, suspended);
}

void arch_hw_breakpoint_repoint(struct perf_event *event)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	/*
	 * In #DB and NMI, where DR7 is clear, do not arm: a watched access
	 * would trap within the trap. The exit path loads the registers.
	 */
	bool suspended = dr7_is_suspended();

	WRITE_ONCE(event->hw.info.repointed, true);
	barrier();
	if (likely(is_armed(regs, event)))
		move_armed(regs, event, suspended);
	else
		want_changed(regs, slots_of(regs, event) | DIRTY_ADDRESS, suspended);
}

/* Out of line, as install_elsewhere() */
static noinline void uninstall_pieces(struct cpu_regs *regs, const struct perf_event *event)
{
	unsigned int slots = slots_of_pieces(regs, event);

	regs->wanted.taken &= ~slots;
	barrier();
	forget_events(&regs->wanted, slots);
	want_changed(regs, slots, false);
}

void arch_uninstall_hw_breakpoint(struct perf_event *event)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	int slot = event->hw.info.slot;

	lockdep_assert_irqs_disabled();

	if (WARN_ON_ONCE(regs->wanted.slot[slot].event != event))
		return;
	if (unlikely(event->hw.info.before)) {
		uninstall_pieces(regs, event);
		return;
	}

	regs->wanted.taken &= ~BIT(slot);
	/* An NMI may use the event of a slot that is taken. */
	barrier();
	regs->wanted.slot[slot].event = NULL;
	want_changed(regs, BIT(slot), false);
}

void arch_hw_breakpoint_change(struct perf_event *event, const struct arch_hw_breakpoint *hw)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	struct arch_hw_breakpoint *to = &event->hw.info;
	unsigned int busy = regs->busy, slots;

	lockdep_assert_irqs_disabled();
	WARN_ON_ONCE(regs->wanted.slot[to->slot].event != event);

	/* In a batch of its own, unless one is open: the debugger must not arm half of it. */
	WRITE_ONCE(regs->busy, busy | BUSY_BATCH);
	barrier();
	to->address = hw->address;
	to->mask = hw->mask;
	to->ctl = hw->ctl;
	to->before = hw->before;
	slots = unlikely(to->before) ? change_pieces(regs, event) : BIT(to->slot);
	barrier();
	WRITE_ONCE(regs->busy, busy);
	want_changed(regs, slots, false);
}

void arch_hw_breakpoint_begin(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	WRITE_ONCE(regs->busy, regs->busy | BUSY_BATCH);
	barrier();
}

void arch_hw_breakpoint_commit(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	barrier();
	WRITE_ONCE(regs->busy, regs->busy & ~BUSY_BATCH);
	if (likely(!regs->busy))
		sync_registers(regs, false);
}

/* ---- Interface for other users of the registers ---- */

void hw_breakpoint_restore(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	set_debugreg(DR6_RESERVED, 6);
	/* Nothing may be armed while the debugger runs. */
	if (!WARN_ON_ONCE(regs->busy >= BUSY_DEBUGGER))
		hw_breakpoint_load();
}
EXPORT_SYMBOL_GPL(hw_breakpoint_restore);

#ifdef CONFIG_X86_HW_BREAKPOINT_KUNIT_TEST
u32 hw_breakpoint_mask(unsigned int slot)
{
	return this_cpu_read(cpu_regs.mask[slot]);
}
#endif

void hw_breakpoint_cpu_init(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	/* A CPU that comes up has no active events. */
	memset(regs->reg, 0, sizeof(regs->reg));
	regs->armed_slots = 0;
	/* Code that was interrupted when the CPU went down does not continue. */
	regs->busy = 0;
	regs->loading = false;
	regs->entered_suspended = false;
	/* Reset clears the address registers, but not the masks. */
	clear_masks(regs, ALL_SLOTS, false);
	this_cpu_write(cpu_dr7_armed, 0);
	this_cpu_write(cpu_dr7_changed, false);
	this_cpu_write(cpu_dr7, 0);
	want_changed(regs, ALL_SLOTS, false);
}

/* ---- For the kernel debugger ---- */

void hw_breakpoint_debugger_enter(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	if (regs->busy < BUSY_DEBUGGER)
		regs->entered_suspended = dr7_is_suspended();
	WRITE_ONCE(regs->busy, regs->busy + BUSY_DEBUGGER);
	barrier();
	hw_breakpoint_disable();
}

/* Number of slots that perf leaves; in an open batch it may still take every slot. */
static unsigned int slots_left(const struct cpu_regs *regs)
{
	return regs->busy & BUSY_BATCH ? 0 : HBP_NUM - hweight32(regs->wanted.taken);
}

/*
 * Returns true in an NMI, #DB or #MC that began in the kernel.  The debugger runs on the
 * stack of the exception that entered it.  32-bit kernels and Xen have no such stacks: there a
 * #DB may interrupt a #DB, because it does not overwrite its frame.
 */
static bool on_exception_stack(void)
{
#ifdef CONFIG_X86_64
	return current_stack_pointer >= __this_cpu_ist_bottom_va(NMI) &&
	       current_stack_pointer <= __this_cpu_ist_top_va(MCE);
#else
	return false;
#endif
}

unsigned int hw_breakpoint_debugger_leave(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	if (regs->busy < BUSY_DEBUGGER) {
		want_changed(regs, ALL_SLOTS, false);
		return slots_left(regs);
	}
	WRITE_ONCE(regs->busy, regs->busy - BUSY_DEBUGGER);
	if (regs->busy >= BUSY_DEBUGGER)
		return HBP_NUM;

	/* Update struct cpu_regs, then load all registers from it. */
	want_changed(regs, ALL_SLOTS, true);
	barrier();

	/*
	 * If the debugger interrupted code that had cleared DR7, such as an NMI or
	 * a #DB, that code loads the registers.  If nothing was armed then, the code did
	 * not clear DR7, but must not trap either: local_db_restore() loads them.  Leave
	 * DR6 alone: a #DB may be about to read it.
	 */
	if (!regs->entered_suspended && !on_exception_stack())
		hw_breakpoint_load();
	/* Code that cleared DR7 may already have read cpu_dr7_armed. */
	this_cpu_write(cpu_dr7_changed, true);

	return slots_left(regs);
}

/* ---- #DB ---- */

/*
 * Handles the hit of one slot.
 * @armed: bits of DR7 that are set in cpu_dr7_armed now and were set at the start of the trap
 * @reg: hardware view of @slot at the start of the trap
 * @only: the #DB has no other cause
 */
static __always_inline void handle_hit(struct pt_regs *regs, unsigned long *dr6, int slot,
				       unsigned long armed, const struct bp_reg *reg,
				       bool only)
{
	bool execute = dr7_ctl_rw(reg->hw.ctl) == DR_RW_EXECUTE;
	unsigned long address = reg->hw.address - reg->hw.before;

	/*
	 * Ignore a slot that is not armed any more.  If its breakpoint faulted on
	 * this instruction, set RF, or the fault recurs.  Not after a
	 * single step: the fault of another slot must be taken again.
	 */
	if (!dr7_enabled(armed, slot)) {
		if (execute && reg->hw.address == regs->ip && !(*dr6 & DR_STEP))
			regs->flags |= X86_EFLAGS_RF;
		*dr6 &= ~(DR_TRAP0 << slot);
		return;
	}

	/*
	 * An instruction breakpoint is a fault.  If the #DB also reports the single
	 * step onto the instruction, handle the step first: the fault is taken again
	 * when the instruction is executed.
	 */
	if (execute && (*dr6 & DR_STEP)) {
		*dr6 &= ~(DR_TRAP0 << slot);
		return;
	}

	/* With RF the instruction runs after the return without a fault. */
	if (execute)
		regs->flags |= X86_EFLAGS_RF;

	/* The die chain handles hits of the kernel debugger. */
	if (!reg->event && !user_mode(regs))
		return;
	*dr6 &= ~(DR_TRAP0 << slot);
	if (reg->event)
		perf_bp_event_at(reg->event, address, regs, only);
}

/* Returns the bits of DR6 by which a slot reports the hit that a lower one reports, too. */
static unsigned long hits_of_other_pieces(const struct bp_reg *reg, unsigned long hits,
					  unsigned long armed)
{
	unsigned long other = 0;
	int slot, lower;

	for_each_slot(slot, hits) {
		for (lower = 0; lower < slot; lower++) {
			if ((hits & BIT(lower)) && reg[slot].event &&
			    reg[slot].event == reg[lower].event &&
			    dr7_enabled(armed, slot) && dr7_enabled(armed, lower))
				other |= DR_TRAP0 << slot;
		}
	}

	return other;
}

/* Copies all slots first: a handler may change the slots that come later. */
static noinline void handle_hits(const struct cpu_regs *cpu, struct pt_regs *regs,
				 unsigned long *dr6, unsigned long hits,
				 unsigned long armed)
{
	struct bp_reg was[HBP_NUM] __uninitialized;
	unsigned long other;
	bool only;
	int slot;

	for_each_slot(slot, hits)
		was[slot] = cpu->reg[slot];
	other = hits_of_other_pieces(was, hits, armed);
	*dr6 &= ~other;
	only = is_power_of_2(*dr6);
	for_each_slot(slot, hits & ~other)
		handle_hit(regs, dr6, slot, armed & this_cpu_read(cpu_dr7_armed), &was[slot],
			   only);
}

bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6)
{
	struct cpu_regs *cpu = this_cpu_ptr(&cpu_regs);
	unsigned long hits = *dr6 & DR_TRAP_BITS, armed;
	struct bp_reg was __uninitialized;

	if (!hits)
		return false;

	armed = this_cpu_read(cpu_dr7_armed);
	/* A read of bp_value.h in the trap of a hit from user mode, where DR7 stays */
	if (unlikely(this_cpu_read(bp_value_reads)))
		armed = 0;
	if (likely(is_power_of_2(*dr6))) {
		was = cpu->reg[__ffs(hits)];
		handle_hit(regs, dr6, __ffs(hits), armed, &was, true);
	} else {
		handle_hits(cpu, regs, dr6, hits, armed);
	}

	if (*dr6)
		return false;

	/* Hits of ptrace breakpoints send a signal, see ptrace_triggered(). */
	return !user_mode(regs) || !(current->thread.virtual_dr6 & DR_TRAP_BITS);
}

bool hw_breakpoint_overlaps_regs(unsigned long addr, unsigned long end, int cpu)
{
	return overlaps_percpu(addr, end, cpu_dr7, cpu) ||
	       overlaps_percpu(addr, end, cpu_dr7_armed, cpu) ||
	       overlaps_percpu(addr, end, cpu_dr7_changed, cpu) ||
	       overlaps_percpu(addr, end, cpu_regs, cpu);
}

bool arch_hw_breakpoint_keeps_page(void)
{
#ifdef CONFIG_PARAVIRT
	/* Not that of KVM, Hyper-V or Xen */
	return pv_ops.mmu.flush_tlb_multi == native_flush_tlb_multi;
#else
	return true;
#endif
}

void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state)
{
	static const u32 type[] = {
		[DR_RW_EXECUTE]	= HW_BREAKPOINT_X,
		[DR_RW_WRITE]	= HW_BREAKPOINT_W,
		[DR_RW_READ]	= HW_BREAKPOINT_RW,
	};
	const struct bp_reg *reg = this_cpu_ptr(&cpu_regs.reg[slot]);

	lockdep_assert_irqs_disabled();

	*state = (struct bp_reg_state) {
		.armed		= dr7_enabled(this_cpu_read(cpu_dr7_armed), slot),
		.addr		= reg->hw.address,
		.len		= watched_bytes(&reg->hw),
		.bp_type	= type[dr7_ctl_rw(reg->hw.ctl)],
		.event		= reg->event,
	};
	/* perf users give sizeof(long) as the length of an instruction breakpoint. */
	if (state->bp_type == HW_BREAKPOINT_X)
		state->len = sizeof(long);
}
