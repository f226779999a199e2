// SPDX-License-Identifier: GPL-2.0
/*
 * The debug registers of one CPU, and the way from a #DB to the event.
 *
 * There are two views of the registers.  The *wanted* view is what perf and the
 * kernel debugger ask for; install, uninstall and the debugger change only this
 * view.  The *hardware* view is what the registers contain and to which event a
 * hit belongs; #DB uses this view, and so does all code that restores the
 * registers.  sync_registers() brings the hardware in line with the wanted
 * view, once for each batch of changes:
 *
 *  - a slot that stays is never disarmed;
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
 *  - Code in #DB or NMI that repoints a breakpoint publishes a version of it.
 *    It updates registers itself only if it did not interrupt an update of
 *    them.
 *  - NMI reads cpu_dr7 to find out whether DR7 enables anything; see write_dr7().
 *  - The debugger has a list of wanted breakpoints of its own. If it
 *    interrupted an update of the registers, it makes that update run again
 *    (cpu_regs::stale).
 *
 * The value of DR7 shows whether other code uses the registers.  Code that must not
 * trap, or that uses the registers for something else, clears DR7 and loads it
 * again.  Code that interrupts it finds DR7 clear although cpu_dr7 enables
 * something: it updates struct cpu_regs, sets cpu_dr7_changed and writes no
 * register.  So the registers of a guest of KVM stay as they are, and DR7 is
 * never loaded with the control field of one breakpoint while an address or mask
 * register is that of another.
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
#include <asm/processor.h>

#include "hw_breakpoint.h"

/**
 * struct bp_want - a breakpoint that is to be armed in a slot
 * @hw: the breakpoint; valid if bp_wants::taken has the bit of the slot
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
 * @armed_for: the breakpoint for which the slot is armed
 * @event: event of the breakpoint, NULL for a breakpoint of the kernel debugger
 * @hw: copy of *@armed_for from the time when the slot was written
 *
 * Valid if the slot is armed.  If it is not, only @hw.address is valid, and
 * only if cpu_regs::known has the bit of the slot: the contents of the address
 * register.
 */
struct bp_reg {
	const struct arch_hw_breakpoint	*armed_for;
	struct perf_event		*event;
	struct arch_hw_breakpoint	hw;
};

/**
 * struct cpu_regs - the debug registers of a CPU
 * @wanted: the wanted view of perf, without the breakpoints of the debugger
 * @reg: the hardware view of each slot
 * @armed_slots: bitmap of the slots that are armed
 * @known: bitmap of the slots whose address register contains @reg.hw.address
 * @mask: contents of the address mask registers
 * @open: a batch is open: perf is changing @wanted
 * @stale: the wanted view has changed since the last update of the registers
 *	began
 * @syncing: an update of the registers is under way
 * @repointed: a breakpoint in @wanted may have a new version
 * @suspended: write no register: the code that cleared DR7 loads all of them
 * @loading: the registers are being loaded from @reg
 * @debugging: nesting depth of the kernel debugger on this CPU; the debugger
 *	may debug itself
 * @entered_suspended: DR7 was clear when the debugger was entered: the code that
 *	cleared it loads the registers
 */
struct cpu_regs {
	struct bp_wants			wanted;
	struct bp_reg			reg[HBP_NUM];
	unsigned int			armed_slots;
	unsigned int			known;
	u32				mask[HBP_NUM];
	bool				open;
	bool				stale;
	bool				syncing;
	bool				repointed;
	bool				suspended;
	bool				loading;
	unsigned int			debugging;
	bool				entered_suspended;
};

static DEFINE_PER_CPU(struct cpu_regs, cpu_regs);

DEFINE_PER_CPU(unsigned long, cpu_dr7);
EXPORT_PER_CPU_SYMBOL(cpu_dr7);

DEFINE_PER_CPU(unsigned long, cpu_dr7_armed);

DEFINE_PER_CPU(bool, cpu_dr7_changed);

#define ALL_SLOTS	(BIT(HBP_NUM) - 1)

#define for_each_slot(slot, slots)					\
	for (unsigned int left = (slots);				\
	     left && ((slot) = __ffs(left), true); left &= left - 1)

/* ---- Single registers ---- */

/* Write a mask register. The caller owns the registers; the slot is not armed. */
static __always_inline void write_mask_msr(struct cpu_regs *regs, int slot, u32 mask)
{
	u32 msr = slot ? MSR_F16H_DR1_ADDR_MASK + slot - 1 : MSR_F16H_DR0_ADDR_MASK;

	regs->mask[slot] = mask;
	barrier();
	__wrmsr(msr, mask, 0);
}

static void write_mask(struct cpu_regs *regs, int slot, u32 mask)
{
	/* If suspended, hw_breakpoint_load() writes masks of armed slots. */
	if (unlikely(regs->suspended))
		this_cpu_write(cpu_dr7_changed, true);
	else
		write_mask_msr(regs, slot, mask);
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
static void write_dr7(const struct cpu_regs *regs, unsigned long dr7)
{
	this_cpu_write(cpu_dr7, this_cpu_read(cpu_dr7) | dr7);
	barrier();
	this_cpu_write(cpu_dr7_armed, dr7);
	barrier();
	if (unlikely(regs->suspended)) {
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	set_debugreg(dr7, 7);
	barrier();
	this_cpu_write(cpu_dr7, dr7);
}

static __always_inline void write_address(struct cpu_regs *regs, int slot,
					  unsigned long address)
{
	struct bp_reg *reg = &regs->reg[slot];

	if ((regs->known & BIT(slot)) && reg->hw.address == address)
		return;

	WRITE_ONCE(reg->hw.address, address);
	barrier();
	if (unlikely(regs->suspended)) {
		regs->known &= ~BIT(slot);
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	set_debugreg(address, slot);
	regs->known |= BIT(slot);
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
		write_mask_msr(regs, slot, reg->hw.mask);
	regs->known |= BIT(slot);
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
		if (likely(!regs->syncing))
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

	get_debugreg(dr7, 7);
	return hw_breakpoint_active() && !(dr7 & DR7_ENABLE_ALL);
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
 * for an equal breakpoint, then slots that are not armed. A slot scores higher
 * if its address register contains the address already.
 */
static int slot_score(const struct cpu_regs *regs, int slot,
		      const struct arch_hw_breakpoint *hw)
{
	const struct bp_reg *reg = &regs->reg[slot];
	bool address = (regs->known & BIT(slot)) && reg->hw.address == hw->address;

	if (!(regs->armed_slots & BIT(slot)))
		return 2 + address;
	if (reg->armed_for == hw)
		return 5;
	return address && same_hw(&reg->hw, hw) ? 4 : address;
}

/* Find the empty slot with the highest score, -1 if all slots are taken. */
static int free_slot(const struct cpu_regs *regs, const struct bp_wants *wanted,
		     const struct arch_hw_breakpoint *hw)
{
	unsigned int free = ALL_SLOTS & ~wanted->taken;
	int slot, score, best = -1, best_score = -1;

	/* Fast path: nothing is armed, so all slots score the same. */
	if (free && !regs->armed_slots)
		return __ffs(free);

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
		slot = free_slot(regs, wanted, hw);
		if (slot >= 0)
			want(wanted, slot, hw, NULL);
	}
}

/* Inline with a constant @slot: instructions encode the register number. */
static __always_inline unsigned long load_slot(struct cpu_regs *regs, int slot,
					       const struct bp_want *want, unsigned long dr7)
{
	const struct arch_hw_breakpoint *hw = want->hw;
	struct bp_reg *reg = &regs->reg[slot];

	write_address(regs, slot, hw->address);
	reg->hw.mask = hw->mask;
	reg->hw.ctl = hw->ctl;
	reg->event = want->event;
	reg->armed_for = hw;
	if (unlikely(reg->hw.mask | regs->mask[slot]))
		write_mask(regs, slot, reg->hw.mask);

	return dr7_set(dr7, slot, reg->hw.ctl);
}

/* Loads @slots, none of which is armed. Returns @dr7 with these enabled. */
static __always_inline unsigned long load_slots(struct cpu_regs *regs,
						const struct bp_wants *wanted,
						unsigned int slots, unsigned long dr7)
{
	BUILD_BUG_ON(HBP_NUM != 4);

	if (slots & BIT(0))
		dr7 = load_slot(regs, 0, &wanted->slot[0], dr7);
	if (slots & BIT(1))
		dr7 = load_slot(regs, 1, &wanted->slot[1], dr7);
	if (slots & BIT(2))
		dr7 = load_slot(regs, 2, &wanted->slot[2], dr7);
	if (slots & BIT(3))
		dr7 = load_slot(regs, 3, &wanted->slot[3], dr7);

	return dr7;
}

/* Resets the masks of @slots, none of which is armed. */
static void clear_masks(struct cpu_regs *regs, unsigned int slots)
{
	int slot;

	for_each_slot(slot, slots) {
		if (regs->mask[slot])
			write_mask(regs, slot, 0);
	}
}

/* Returns the bit of @slot if it can stay armed. Inline, see load_slot(). */
static __always_inline unsigned int slot_stays(struct cpu_regs *regs, int slot,
					       const struct bp_want *want)
{
	const struct arch_hw_breakpoint *hw = want->hw;
	struct bp_reg *reg = &regs->reg[slot];

	if (!same_control(&reg->hw, hw))
		return 0;
	/* If only the address changes, one write to DRn is atomic. */
	if (reg->armed_for == hw)
		write_address(regs, slot, hw->address);
	else if (reg->hw.address != hw->address)
		return 0;
	reg->event = want->event;
	reg->armed_for = hw;

	return BIT(slot);
}

/*
 * Returns which of @slots, all armed and wanted, need not be disarmed: the same
 * range is wanted there, possibly for another event, or only the address has
 * changed.
 */
static noinline unsigned int slots_that_stay(struct cpu_regs *regs,
					     const struct bp_wants *wanted,
					     unsigned int slots)
{
	unsigned int stay = 0;

	if (slots & BIT(0))
		stay |= slot_stays(regs, 0, &wanted->slot[0]);
	if (slots & BIT(1))
		stay |= slot_stays(regs, 1, &wanted->slot[1]);
	if (slots & BIT(2))
		stay |= slot_stays(regs, 2, &wanted->slot[2]);
	if (slots & BIT(3))
		stay |= slot_stays(regs, 3, &wanted->slot[3]);

	return stay;
}

/*
 * Three sets of slots: those that stay armed, those that have to be disarmed
 * (leave) and those in which a breakpoint has to be loaded (load). The last two
 * may overlap.
 */
static noinline void change_slots(struct cpu_regs *regs, const struct bp_wants *wanted,
				  unsigned int leave, unsigned int load)
{
	unsigned long dr7, armed = this_cpu_read(cpu_dr7_armed);
	int slot;

	dr7 = armed;
	for_each_slot(slot, leave)
		dr7 = dr7_clear(dr7, slot);

	/* Disarm the armed slots that change. */
	if (leave & load) {
		armed = dr7;
		write_dr7(regs, armed);
	}

	dr7 = load_slots(regs, wanted, load, dr7);
	/* All events are set: arm the slots. */
	barrier();
	if (dr7 != armed)
		write_dr7(regs, dr7);

	regs->armed_slots = wanted->taken;
	if (unlikely(hw_breakpoint_addr_mask_max))
		clear_masks(regs, leave & ~load);
}

static __always_inline void change_registers(struct cpu_regs *regs,
					     const struct bp_wants *wanted)
{
	unsigned int armed_slots = regs->armed_slots, taken = wanted->taken, stay;

	stay = slots_that_stay(regs, wanted, taken & armed_slots);
	/* If a breakpoint was moved, its address has been written. */
	if (stay != (armed_slots | taken))
		change_slots(regs, wanted, armed_slots & ~stay, taken & ~stay);
}

/*
 * load_slot() if nothing is armed, when the contents of no register are known, and
 * registers may be written.
 */
static __always_inline unsigned long load_first(struct cpu_regs *regs, int slot,
						const struct bp_want *want)
{
	const struct arch_hw_breakpoint *hw = want->hw;
	struct bp_reg *reg = &regs->reg[slot];

	set_debugreg(hw->address, slot);
	reg->hw = *hw;
	reg->event = want->event;
	reg->armed_for = hw;
	if (unlikely(hw->mask | regs->mask[slot]))
		write_mask_msr(regs, slot, hw->mask);

	return dr7_bits(slot, hw->ctl);
}

static noinline unsigned long load_suspended(struct cpu_regs *regs,
					     const struct bp_wants *wanted)
{
	return load_slots(regs, wanted, wanted->taken, DR7_EXACT);
}

/* Loads all slots; nothing is armed. */
static __always_inline void load_all(struct cpu_regs *regs, const struct bp_wants *wanted)
{
	unsigned int taken = wanted->taken;
	unsigned long dr7 = DR7_EXACT;

	if (unlikely(regs->suspended)) {
		dr7 = load_suspended(regs, wanted);
	} else {
		if (taken & BIT(0))
			dr7 |= load_first(regs, 0, &wanted->slot[0]);
		if (taken & BIT(1))
			dr7 |= load_first(regs, 1, &wanted->slot[1]);
		if (taken & BIT(2))
			dr7 |= load_first(regs, 2, &wanted->slot[2]);
		if (taken & BIT(3))
			dr7 |= load_first(regs, 3, &wanted->slot[3]);
		barrier();
		regs->known = taken;
	}

	/* All events are set: arm the slots. */
	barrier();
	write_dr7(regs, dr7);
	regs->armed_slots = taken;
}

/*
 * Fast paths: if nothing is armed, or nothing is wanted, there is nothing to
 * compare.  In a task switch, first nothing is wanted and then nothing is
 * armed.
 */
static __always_inline void load_registers(struct cpu_regs *regs, const struct bp_wants *wanted)
{
	unsigned int taken = wanted->taken, armed_slots = regs->armed_slots;

	if (armed_slots && taken) {
		change_registers(regs, wanted);
	} else if (taken) {
		load_all(regs, wanted);
	} else if (armed_slots) {
		write_dr7(regs, 0);
		regs->armed_slots = 0;
		if (unlikely(hw_breakpoint_addr_mask_max))
			clear_masks(regs, armed_slots);
	}
}

static noinline void sync_with_debugger(struct cpu_regs *regs)
{
	struct bp_wants wanted = regs->wanted;

	add_debugger(regs, &wanted);
	load_registers(regs, &wanted);
}

/* Without a copy: see bp_read_version(). */
static __always_inline void apply_version(struct arch_hw_breakpoint *hw,
					  const struct bp_versions *versions)
{
	const struct bp_version *new;
	unsigned long now;

	do {
		now = READ_ONCE(versions->now);
		barrier();
		new = &versions->version[bp_version_index(now)];
		/* May be overwritten meanwhile: see bp_read_version(). */
		hw->address = data_race(new->hw.address);
		hw->mask = data_race(new->hw.mask);
		hw->ctl = data_race(new->hw.ctl);
		barrier();
	} while (now != READ_ONCE(versions->now));
}

/*
 * A repointed breakpoint in the wanted view changes only here, and not while
 * registers are written: an NMI that repoints a breakpoint then makes the
 * update run again.
 */
static noinline void apply_versions(struct cpu_regs *regs)
{
	int slot;

	WRITE_ONCE(regs->repointed, false);
	barrier();

	for_each_slot(slot, regs->wanted.taken) {
		struct perf_event *event = regs->wanted.slot[slot].event;

		if (event->hw.info.repointed)
			apply_version(&event->hw.info, event->hw.bp_versions);
	}
}

static __always_inline void sync_registers(struct cpu_regs *regs)
{
	if (unlikely(regs->repointed))
		apply_versions(regs);

	/* While nothing is armed KVM may load values and not restore ours. */
	if (!this_cpu_read(cpu_dr7_armed))
		regs->known = 0;

	if (unlikely(kgdb_wants()))
		sync_with_debugger(regs);
	else
		load_registers(regs, &regs->wanted);
}

static __always_inline void __sync_if_stale(struct cpu_regs *regs)
{
	/*
	 * Update again if an NMI or the debugger interrupted the update and
	 * made a change. While the debugger runs, leave the update to
	 * hw_breakpoint_debugger_leave().
	 */
	if (regs->syncing || unlikely(regs->debugging))
		return;

	while (READ_ONCE(regs->stale)) {
		WRITE_ONCE(regs->syncing, true);
		WRITE_ONCE(regs->stale, false);
		barrier();
		sync_registers(regs);
		barrier();
		WRITE_ONCE(regs->syncing, false);
	}
}

/* Out of line: called only outside of a batch, which is rare. */
static noinline void sync_if_stale(struct cpu_regs *regs)
{
	__sync_if_stale(regs);
}

/* ---- For the PMU ---- */

static void want_changed(struct cpu_regs *regs)
{
	WRITE_ONCE(regs->stale, true);
	if (!regs->open)
		sync_if_stale(regs);
}

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

static __always_inline void install(struct cpu_regs *regs, int slot, struct perf_event *event)
{
	struct arch_hw_breakpoint *hw = &event->hw.info;

	want(&regs->wanted, slot, hw, event);
	if (unlikely(hw->repointed))
		WRITE_ONCE(regs->repointed, true);
	want_changed(regs);
}

/* Out of line, so that arch_install_hw_breakpoint() need not save registers. */
static noinline int install_elsewhere(struct cpu_regs *regs, struct perf_event *event)
{
	int slot = free_slot(regs, &regs->wanted, &event->hw.info);

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

	if (unlikely(!keeps_slot(regs, hw)))
		return install_elsewhere(regs, event);

	install(regs, hw->slot, event);
	return 0;
}

/*
 * Returns true if @hw is armed in its slot, the registers are in line with the wanted
 * view, and no interrupted code is about to change that.
 */
static __always_inline bool is_in_line(const struct cpu_regs *regs,
				       const struct arch_hw_breakpoint *hw)
{
	if (regs->open || regs->syncing || regs->stale || regs->debugging)
		return false;
	return (regs->armed_slots & BIT(hw->slot)) && regs->reg[hw->slot].armed_for == hw;
}

/* An NMI that repoints meanwhile leaves the registers to sync_if_stale(). */
static __always_inline void begin_move(struct cpu_regs *regs)
{
	WRITE_ONCE(regs->syncing, true);
	barrier();
}

static __always_inline void end_move(struct cpu_regs *regs)
{
	barrier();
	WRITE_ONCE(regs->syncing, false);
	barrier();
	if (unlikely(READ_ONCE(regs->stale)))
		sync_if_stale(regs);
}

/*
 * Does what sync_registers() would do if only the address of @event, which is armed, has
 * changed.  Returns false, and does nothing, if more than that may have changed.
 */
static __always_inline bool move_armed(struct cpu_regs *regs, struct perf_event *event)
{
	struct arch_hw_breakpoint *hw = &event->hw.info;

	if (!is_in_line(regs, hw))
		return false;

	begin_move(regs);
	apply_version(hw, event->hw.bp_versions);
	if (likely(same_control(hw, &regs->reg[hw->slot].hw)))
		write_address(regs, hw->slot, hw->address);
	else
		WRITE_ONCE(regs->stale, true);
	end_move(regs);

	return true;
}

void arch_hw_breakpoint_repoint(struct perf_event *event)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	bool suspended = regs->suspended;

	WRITE_ONCE(event->hw.info.repointed, true);

	/*
	 * In #DB and NMI, where DR7 is clear, do not arm: a watched access
	 * would trap within the trap. The exit path loads the registers.
	 */
	WRITE_ONCE(regs->suspended, dr7_is_suspended());
	barrier();
	if (!move_armed(regs, event)) {
		WRITE_ONCE(regs->repointed, true);
		want_changed(regs);
	}
	barrier();
	WRITE_ONCE(regs->suspended, suspended);
}

void arch_uninstall_hw_breakpoint(struct perf_event *event)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	int slot = event->hw.info.slot;

	lockdep_assert_irqs_disabled();

	if (WARN_ON_ONCE(regs->wanted.slot[slot].event != event))
		return;

	regs->wanted.taken &= ~BIT(slot);
	/* An NMI may use the event of a slot that is taken. */
	barrier();
	regs->wanted.slot[slot].event = NULL;
	want_changed(regs);
}

/* In a batch of its own, unless one is open: an NMI must not apply half of the change. */
static noinline void change_in_batch(struct cpu_regs *regs, struct arch_hw_breakpoint *to,
				     const struct arch_hw_breakpoint *hw)
{
	bool open = regs->open;

	WRITE_ONCE(regs->open, true);
	barrier();
	arch_hw_breakpoint_copy(to, hw);
	barrier();
	WRITE_ONCE(regs->open, open);
	want_changed(regs);
}

/*
 * Does what sync_registers() would do if only @to, which is armed, has changed to @hw:
 * the slot is off while its address, mask and control field change.
 */
static noinline void change_armed(struct cpu_regs *regs, struct arch_hw_breakpoint *to,
				  const struct arch_hw_breakpoint *hw)
{
	unsigned long dr7 = dr7_clear(this_cpu_read(cpu_dr7_armed), to->slot);

	write_dr7(regs, dr7);
	arch_hw_breakpoint_copy(to, hw);
	dr7 = load_slot(regs, to->slot, &regs->wanted.slot[to->slot], dr7);
	barrier();
	write_dr7(regs, dr7);
}

void arch_hw_breakpoint_change(struct perf_event *event, const struct arch_hw_breakpoint *hw)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);
	struct arch_hw_breakpoint *to = &event->hw.info;

	lockdep_assert_irqs_disabled();
	WARN_ON_ONCE(regs->wanted.slot[to->slot].event != event);

	if (unlikely(!is_in_line(regs, to))) {
		change_in_batch(regs, to, hw);
		return;
	}

	begin_move(regs);
	/* Fast path: one write to DRn is atomic. */
	if (same_control(to, hw)) {
		to->address = hw->address;
		write_address(regs, to->slot, hw->address);
	} else {
		change_armed(regs, to, hw);
	}
	end_move(regs);
}

void arch_hw_breakpoint_begin(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	WRITE_ONCE(regs->open, true);
	barrier();
}

void arch_hw_breakpoint_commit(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	barrier();
	WRITE_ONCE(regs->open, false);
	__sync_if_stale(regs);
}

/* ---- Interface for other users of the registers ---- */

void hw_breakpoint_restore(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	set_debugreg(DR6_RESERVED, 6);
	regs->known = 0;
	/* Nothing may be armed while the debugger runs. */
	if (!WARN_ON_ONCE(regs->debugging))
		hw_breakpoint_load();
}
EXPORT_SYMBOL_GPL(hw_breakpoint_restore);

#ifdef CONFIG_CPU_SUP_AMD
unsigned long amd_get_dr_addr_mask(unsigned int dr)
{
	if (WARN_ON_ONCE(dr >= HBP_NUM))
		return 0;
	return this_cpu_read(cpu_regs.mask[dr]);
}
EXPORT_SYMBOL_GPL(amd_get_dr_addr_mask);
#endif

void hw_breakpoint_cpu_init(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	/* A CPU that comes up has no active events. */
	memset(regs->reg, 0, sizeof(regs->reg));
	regs->armed_slots = 0;
	/* Code that was interrupted when the CPU went down does not continue. */
	regs->open = false;
	regs->syncing = false;
	regs->suspended = false;
	regs->loading = false;
	regs->debugging = 0;
	regs->entered_suspended = false;
	/* Reset clears the address registers, but not the masks. */
	clear_masks(regs, ALL_SLOTS);
	this_cpu_write(cpu_dr7_armed, 0);
	this_cpu_write(cpu_dr7_changed, false);
	this_cpu_write(cpu_dr7, 0);
	want_changed(regs);
}

/* ---- For the kernel debugger ---- */

void hw_breakpoint_debugger_enter(void)
{
	struct cpu_regs *regs = this_cpu_ptr(&cpu_regs);

	if (regs->debugging) {
		regs->debugging++;
		return;
	}

	regs->entered_suspended = dr7_is_suspended();
	WRITE_ONCE(regs->debugging, 1);
	barrier();
	hw_breakpoint_disable();
}

/* Number of slots that perf leaves; in an open batch it may still take every slot. */
static unsigned int slots_left(const struct cpu_regs *regs)
{
	return regs->open ? 0 : HBP_NUM - hweight32(regs->wanted.taken);
}

/*
 * Returns true in an NMI, #DB or #MC that began in the kernel.  The debugger runs on the
 * stack of the exception that entered it.  32-bit kernels have no such stacks: there a #DB
 * may interrupt a #DB, because it does not overwrite its frame.
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
	bool suspended = regs->suspended;

	if (!regs->debugging) {
		want_changed(regs);
		return slots_left(regs);
	}
	if (regs->debugging > 1) {
		regs->debugging--;
		return HBP_NUM;
	}

	/* Update struct cpu_regs, then load all registers from it. */
	WRITE_ONCE(regs->suspended, true);
	WRITE_ONCE(regs->debugging, 0);
	if (!regs->syncing)
		regs->known = 0;
	barrier();
	want_changed(regs);
	barrier();
	WRITE_ONCE(regs->suspended, suspended);

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
 * @armed: cpu_dr7_armed at the start of the trap
 * @reg: hardware view of @slot at the start of the trap
 * @only: the #DB has no other cause
 */
static __always_inline void handle_hit(struct pt_regs *regs, unsigned long *dr6, int slot,
				       unsigned long armed, const struct bp_reg *reg,
				       bool only)
{
	bool execute = dr7_ctl_rw(reg->hw.ctl) == DR_RW_EXECUTE;

	/*
	 * Ignore a slot that is not armed any more.  If its breakpoint faulted on
	 * this instruction, set RF, or the fault recurs.  Not after a
	 * single step: the fault of another slot must be taken again.
	 */
	if (!dr7_enabled(armed & this_cpu_read(cpu_dr7_armed), slot)) {
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
	if (reg->event && only)
		perf_bp_event_only(reg->event, reg->hw.address, regs);
	else if (reg->event)
		perf_bp_event_at(reg->event, reg->hw.address, regs);
}

/* Copies all slots first: a handler may change the slots that come later. */
static noinline void handle_hits(const struct cpu_regs *cpu, struct pt_regs *regs,
				 unsigned long *dr6, unsigned long hits,
				 unsigned long armed)
{
	struct bp_reg was[HBP_NUM] __uninitialized;
	int slot;

	for_each_slot(slot, hits)
		was[slot] = cpu->reg[slot];
	for_each_slot(slot, hits)
		handle_hit(regs, dr6, slot, armed, &was[slot], false);
}

bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6)
{
	struct cpu_regs *cpu = this_cpu_ptr(&cpu_regs);
	unsigned long hits = *dr6 & DR_TRAP_BITS, armed;
	struct bp_reg was __uninitialized;

	if (!hits)
		return false;

	armed = this_cpu_read(cpu_dr7_armed);
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
