// SPDX-License-Identifier: GPL-2.0
/*
 * The debug registers of one CPU, and the way from a #DB to the event.
 *
 * There are two views of the registers.  *Wanted* is what perf and the kernel
 * debugger ask for; install, uninstall and the debugger only edit it.  *Hardware*
 * is what the registers hold and whom a hit belongs to; #DB goes by it, and so
 * does everybody who has to put the registers back.  sync_registers() brings the
 * second in line with the first, once for all that perf changes at one time:
 *
 *  - a slot that stays is never disarmed;
 *  - a slot is disarmed before its address or mask changes and armed after, so
 *    it never fires with the address of one breakpoint and the control field of
 *    another;
 *  - DR7 is written twice at most, and not at all if nothing changes.
 *
 * Everything here belongs to one CPU and is used with interrupts off.  What can
 * come in between is #DB, NMI and the kernel debugger:
 *
 *  - #DB reads bp_cpu::reg[].event of slots that cpu_dr7_armed enables: an event
 *    is entered before its slot is armed, and what stands there after it is
 *    disarmed is not looked at.
 *  - Code that re-points a breakpoint leaves a version of it. It changes
 *    registers only if it interrupted no change of them.
 *  - NMI asks cpu_dr7 whether DR7 enables anything; see write_dr7().
 *  - The debugger runs while registers are being written too.  It has a wanted
 *    list of its own and asks for another round if it interrupted one.
 *
 * DR7 itself tells whether the registers are in use by other code.  Code that
 * must not trap, or that uses the registers for something else, clears DR7 and
 * loads it again.  Code that interrupts it finds DR7 clear although cpu_dr7
 * enables something: it changes the books, sets cpu_dr7_changed and writes no
 * register.  So the registers of a guest of KVM stay as they are, and DR7 is
 * never loaded with the control field of one breakpoint while an address or mask
 * register is that of another.
 */

#include <linux/bits.h>
#include <linux/export.h>
#include <linux/hw_breakpoint.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/cpu_entry_area.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/hw_breakpoint.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>
#include <asm/processor.h>
#include <asm/sections.h>
#include <asm/tlbflush.h>

/**
 * struct bp_want - a breakpoint that shall be armed
 * @hw: what is watched, NULL for none
 * @event: its event, NULL if it is the kernel debugger's
 */
struct bp_want {
	const struct arch_hw_breakpoint	*hw;
	struct perf_event		*event;
};

/**
 * struct bp_wants - what shall be armed, by slot
 * @slot: the slots
 * @taken: those in which there is something, as bits
 */
struct bp_wants {
	struct bp_want	slot[HBP_NUM];
	unsigned int	taken;
};

/**
 * struct bp_reg - one slot, as the hardware has it
 * @owner: what the slot was armed for
 * @event: its event, NULL if it is the kernel debugger's
 * @hw: what @owner said when the slot was written
 *
 * All of it is of a slot that is armed; of one that is not, only @hw.address says
 * something: what the register holds, if it is known.
 */
struct bp_reg {
	const struct arch_hw_breakpoint	*owner;
	struct perf_event		*event;
	struct arch_hw_breakpoint	hw;
};

/**
 * struct bp_cpu - the breakpoints of a CPU
 * @wanted: what perf wants
 * @reg: the slots
 * @owned: the slots that are armed, as bits
 * @known: the slots whose address register holds @reg.hw.address, as bits
 * @mask: what the address mask registers hold
 * @open: perf is changing @wanted
 * @stale: what is wanted has changed since the last look at it
 * @syncing: the registers are being written
 * @repointed: of those in @wanted some may have a new version
 * @held: change the books only: the code that cleared DR7 loads the registers
 * @debugging: how often the kernel debugger was entered on this CPU: it may debug
 *	itself
 * @parked: DR7 was clear when the debugger came: the code that cleared it loads
 *	the registers
 */
struct bp_cpu {
	struct bp_wants			wanted;
	struct bp_reg			reg[HBP_NUM];
	unsigned int			owned;
	unsigned int			known;
	u32				mask[HBP_NUM];
	bool				open;
	bool				stale;
	bool				syncing;
	bool				repointed;
	bool				held;
	unsigned int			debugging;
	bool				parked;
};

static DEFINE_PER_CPU(struct bp_cpu, bp_cpu);

DEFINE_PER_CPU(unsigned long, cpu_dr7);
EXPORT_PER_CPU_SYMBOL(cpu_dr7);

DEFINE_PER_CPU(unsigned long, cpu_dr7_armed);

DEFINE_PER_CPU(bool, cpu_dr7_changed);

/*
 * What the kernel debugger wants on every CPU, in slots that perf leaves.
 * Changed by hw_breakpoint_debugger_set() alone, while all other CPUs are
 * stopped.  A CPU that comes up may read it meanwhile.
 */
static const struct arch_hw_breakpoint *debugger_wanted[HBP_NUM];
static bool debugger_wants;

/* The address mask MSRs of AMD processors clear these bits at most. */
static u32 addr_mask_max __ro_after_init;

#define ALL_SLOTS	(BIT(HBP_NUM) - 1)

#define for_each_slot(slot, slots)					\
	for (unsigned int left = (slots);				\
	     left && ((slot) = __ffs(left), true); left &= left - 1)

/* ---- Single registers ---- */

/* For an owner of the registers; the slot is not armed. */
static __always_inline void write_mask_msr(struct bp_cpu *bp, int slot, u32 mask)
{
	u32 msr = slot ? MSR_F16H_DR1_ADDR_MASK + slot - 1 : MSR_F16H_DR0_ADDR_MASK;

	bp->mask[slot] = mask;
	barrier();
	__wrmsr(msr, mask, 0);
}

static void write_mask(struct bp_cpu *bp, int slot, u32 mask)
{
	/* hw_breakpoint_load() loads that of a slot that is armed. */
	if (unlikely(bp->held))
		this_cpu_write(cpu_dr7_changed, true);
	else
		write_mask_msr(bp, slot, mask);
}

/*
 * An NMI that finds nothing enabled in cpu_dr7 leaves DR7 alone, so cpu_dr7
 * always covers what DR7 enables: both the old and the new value around the
 * write.  The debugger and the way out of an NMI may load DR7 from
 * cpu_dr7_armed at any point, which is the new value as soon as it could be
 * written.
 *
 * Where DR7 is clear and stays so, the code that cleared it may be about to write
 * the old value, which cpu_dr7 covers until hw_breakpoint_load().
 */
static void write_dr7(const struct bp_cpu *bp, unsigned long dr7)
{
	this_cpu_write(cpu_dr7, this_cpu_read(cpu_dr7) | dr7);
	barrier();
	this_cpu_write(cpu_dr7_armed, dr7);
	barrier();
	if (unlikely(bp->held)) {
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	set_debugreg(dr7, 7);
	barrier();
	this_cpu_write(cpu_dr7, dr7);
}

static void write_address(struct bp_cpu *bp, int slot, unsigned long address)
{
	struct bp_reg *reg = &bp->reg[slot];

	if ((bp->known & BIT(slot)) && reg->hw.address == address)
		return;

	WRITE_ONCE(reg->hw.address, address);
	barrier();
	if (unlikely(bp->held)) {
		bp->known &= ~BIT(slot);
		this_cpu_write(cpu_dr7_changed, true);
		return;
	}
	set_debugreg(address, slot);
	bp->known |= BIT(slot);
}

/*
 * Loads what an armed slot needs.  The mask registers may have been reset, so one
 * that is said to hold the mask is written too.
 */
static __always_inline void load_armed_slot(struct bp_cpu *bp, int slot)
{
	struct bp_reg *reg = &bp->reg[slot];

	set_debugreg(reg->hw.address, slot);
	if (unlikely(reg->hw.mask || bp->mask[slot]))
		write_mask_msr(bp, slot, reg->hw.mask);
	bp->known |= BIT(slot);
}

/*
 * An NMI that changes breakpoints at any point before DR7 is written finds it
 * clear, changes the books and sets cpu_dr7_changed. If it does so before the
 * second look at cpu_dr7_changed nothing was armed; if after, what is armed are
 * the registers that were loaded, all from before.
 *
 * Where this comes in the middle of write_dr7(), cpu_dr7 covers what that is about
 * to write, and stays so.
 */
noinstr void hw_breakpoint_load(void)
{
	struct bp_cpu *bp = raw_cpu_ptr(&bp_cpu);
	unsigned long dr7;
	int slot;

	for (;;) {
		this_cpu_write(cpu_dr7_changed, false);
		barrier();
		dr7 = this_cpu_read(cpu_dr7_armed);
		for (slot = 0; slot < HBP_NUM; slot++) {
			if (dr7_enabled(dr7, slot))
				load_armed_slot(bp, slot);
		}
		if (likely(!bp->syncing))
			this_cpu_write(cpu_dr7, dr7);
		barrier();
		if (unlikely(this_cpu_read(cpu_dr7_changed)))
			continue;
		set_debugreg(dr7, 7);
		barrier();
		if (likely(!this_cpu_read(cpu_dr7_changed)))
			return;
		hw_breakpoint_disable();
	}
}

/* DR7 was cleared by code that loads it again, and this is not that code. */
static bool dr7_is_held(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	return hw_breakpoint_active() && !(dr7 & DR7_ENABLE_ALL);
}

/* ---- From wanted to hardware ---- */

static unsigned long watched_bytes(const struct arch_hw_breakpoint *hw)
{
	return hw->mask ? hw->mask + 1UL : dr7_ctl_bytes(hw->ctl);
}

static bool same_hw(const struct arch_hw_breakpoint *a,
		    const struct arch_hw_breakpoint *b)
{
	return a->address == b->address && a->ctl == b->ctl && a->mask == b->mask;
}

/*
 * How good a slot is for a breakpoint: best where it still is, good if the slot
 * is armed with just the same, or not armed and so need not be disarmed first,
 * and better still if the address register holds the address.
 */
static int slot_score(const struct bp_cpu *bp, int slot,
		      const struct arch_hw_breakpoint *hw)
{
	const struct bp_reg *reg = &bp->reg[slot];
	bool address = (bp->known & BIT(slot)) && reg->hw.address == hw->address;

	if (!(bp->owned & BIT(slot)))
		return 2 + address;
	if (reg->owner == hw)
		return 5;
	return address && same_hw(&reg->hw, hw) ? 4 : address;
}

/* The best slot in which nothing is wanted, -1 if there is none. */
static int free_slot(const struct bp_cpu *bp, const struct bp_wants *wanted,
		     const struct arch_hw_breakpoint *hw)
{
	unsigned int free = ALL_SLOTS & ~wanted->taken;
	int slot, score, best = -1, best_score = -1;

	/* Where nothing is armed, all are the same. */
	if (free && !bp->owned)
		return __ffs(free);

	for_each_slot(slot, free) {
		score = slot_score(bp, slot, hw);
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

/* A slot that the debugger may have because its holder takes turns anyway */
static int flexible_slot(const struct bp_wants *wanted)
{
	int slot;

	for_each_slot(slot, wanted->taken) {
		struct perf_event *event = wanted->slot[slot].event;

		if (event && hw_breakpoint_is_flexible(&event->attr))
			return slot;
	}

	return -1;
}

/* What perf wants, with the debugger's in slots that it can have */
static void add_debugger(const struct bp_cpu *bp, struct bp_wants *wanted)
{
	int i, slot;

	for (i = 0; i < HBP_NUM; i++) {
		/* Pairs with hw_breakpoint_debugger_set(): all of *hw is there. */
		const struct arch_hw_breakpoint *hw = smp_load_acquire(&debugger_wanted[i]);

		if (!hw)
			continue;
		slot = free_slot(bp, wanted, hw);
		if (slot < 0) {
			slot = flexible_slot(wanted);
			/* perf shall know that it has a slot less. */
			hw_breakpoint_trim_flexible();
		}
		if (slot >= 0)
			want(wanted, slot, hw, NULL);
	}
}

static void load_slot(struct bp_cpu *bp, int slot, const struct bp_want *want)
{
	struct bp_reg *reg = &bp->reg[slot];

	write_address(bp, slot, want->hw->address);
	reg->hw.mask = want->hw->mask;
	if (unlikely(reg->hw.mask || bp->mask[slot]))
		write_mask(bp, slot, reg->hw.mask);
	reg->hw.ctl = want->hw->ctl;
	reg->event = want->event;
	reg->owner = want->hw;
}

/* The mask of a slot that is not armed is zero. */
static void clear_masks(struct bp_cpu *bp, unsigned int slots)
{
	int slot;

	for_each_slot(slot, slots) {
		if (bp->mask[slot])
			write_mask(bp, slot, 0);
	}
}

/*
 * Those slots that need not be disarmed; whose they are may change.  A slot that
 * is not wanted has no part in it.
 */
static unsigned int slots_that_stay(struct bp_cpu *bp,
				    const struct bp_wants *wanted)
{
	unsigned int stay = 0;
	int slot;

	for_each_slot(slot, wanted->taken & bp->owned) {
		const struct bp_want *want = &wanted->slot[slot];
		struct bp_reg *reg = &bp->reg[slot];

		/* Moved, but still the same: one write does it. */
		if (reg->owner == want->hw && reg->hw.ctl == want->hw->ctl &&
		    reg->hw.mask == want->hw->mask)
			write_address(bp, slot, want->hw->address);
		if (!same_hw(&reg->hw, want->hw))
			continue;
		reg->event = want->event;
		reg->owner = want->hw;
		stay |= BIT(slot);
	}

	return stay;
}

/*
 * @leave: slots that are armed for what is not wanted there any more
 * @load: slots where something is wanted for which they are not armed
 */
static void load_registers(struct bp_cpu *bp, const struct bp_wants *wanted)
{
	unsigned long dr7, armed = this_cpu_read(cpu_dr7_armed);
	unsigned int stay = 0, leave, load;
	int slot;

	if (wanted->taken & bp->owned)
		stay = slots_that_stay(bp, wanted);
	leave = bp->owned & ~stay;
	load = wanted->taken & ~stay;

	dr7 = armed;
	for_each_slot(slot, leave)
		dr7 = dr7_clear(dr7, slot);

	/* A slot that is armed and changes is disarmed first. */
	if (leave & load) {
		armed = dr7;
		write_dr7(bp, armed);
	}

	for_each_slot(slot, load) {
		load_slot(bp, slot, &wanted->slot[slot]);
		dr7 = dr7_set(dr7, slot, bp->reg[slot].hw.ctl);
	}
	dr7 = wanted->taken ? dr7 | DR7_EXACT : 0;
	/* The event of each slot is in place before the slot is armed. */
	barrier();
	if (dr7 != armed)
		write_dr7(bp, dr7);

	bp->owned = wanted->taken;
	if (unlikely(addr_mask_max))
		clear_masks(bp, leave & ~load);
}

static noinline void sync_with_debugger(struct bp_cpu *bp)
{
	struct bp_wants wanted = bp->wanted;

	add_debugger(bp, &wanted);
	load_registers(bp, &wanted);
}

/*
 * Only here a breakpoint changes that is wanted: an NMI that re-points one while
 * registers are written has another round made.
 */
static noinline void take_versions_over(struct bp_cpu *bp)
{
	int slot;

	WRITE_ONCE(bp->repointed, false);
	barrier();

	for_each_slot(slot, bp->wanted.taken) {
		struct perf_event *event = bp->wanted.slot[slot].event;
		struct arch_hw_breakpoint *hw = &event->hw.info, new;

		if (!hw->repointed)
			continue;
		bp_current_version(event, &new);
		hw->address = new.address;
		hw->mask = new.mask;
		hw->ctl = new.ctl;
	}
}

static void sync_registers(struct bp_cpu *bp)
{
	if (unlikely(bp->repointed))
		take_versions_over(bp);

	/* While nothing is armed others may use the registers: KVM does. */
	if (!this_cpu_read(cpu_dr7_armed))
		bp->known = 0;

	if (unlikely(READ_ONCE(debugger_wants)))
		sync_with_debugger(bp);
	else
		load_registers(bp, &bp->wanted);
}

static void sync_if_stale(struct bp_cpu *bp)
{
	/*
	 * The debugger came in the middle of it: it is done again then. Where
	 * the debugger runs it is done when it leaves.
	 */
	if (bp->syncing || unlikely(bp->debugging))
		return;

	while (READ_ONCE(bp->stale)) {
		WRITE_ONCE(bp->syncing, true);
		WRITE_ONCE(bp->stale, false);
		barrier();
		sync_registers(bp);
		barrier();
		WRITE_ONCE(bp->syncing, false);
	}
}

/* ---- For the PMU ---- */

static void want_changed(struct bp_cpu *bp)
{
	WRITE_ONCE(bp->stale, true);
	if (!bp->open)
		sync_if_stale(bp);
}

/* The slot is still armed with it: perf takes off what it puts on again. */
static bool still_there(const struct bp_cpu *bp, const struct arch_hw_breakpoint *hw)
{
	return (bp->owned & ~bp->wanted.taken & BIT(hw->slot)) &&
	       bp->reg[hw->slot].owner == hw;
}

int arch_install_hw_breakpoint(struct perf_event *event)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);
	struct arch_hw_breakpoint *hw = &event->hw.info;
	int slot;

	lockdep_assert_irqs_disabled();

	if (!still_there(bp, hw)) {
		slot = free_slot(bp, &bp->wanted, hw);
		if (slot < 0)
			return -ENOSPC;
		hw->slot = slot;
	}

	want(&bp->wanted, hw->slot, hw, event);
	if (unlikely(hw->repointed))
		WRITE_ONCE(bp->repointed, true);
	want_changed(bp);
	return 0;
}

void arch_hw_breakpoint_repoint(struct perf_event *event)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);
	bool held = bp->held;

	WRITE_ONCE(event->hw.info.repointed, true);
	WRITE_ONCE(bp->repointed, true);

	/*
	 * In #DB and NMI nothing is armed: an access that is watched would trap
	 * within the trap. The way out loads the registers then.
	 */
	WRITE_ONCE(bp->held, dr7_is_held());
	barrier();
	want_changed(bp);
	barrier();
	WRITE_ONCE(bp->held, held);
}

void arch_uninstall_hw_breakpoint(struct perf_event *event)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);
	int slot = event->hw.info.slot;

	lockdep_assert_irqs_disabled();

	if (WARN_ON_ONCE(bp->wanted.slot[slot].event != event ||
			 !(bp->wanted.taken & BIT(slot))))
		return;

	bp->wanted.taken &= ~BIT(slot);
	want_changed(bp);
}

void arch_hw_breakpoint_begin(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);

	WRITE_ONCE(bp->open, true);
	barrier();
}

void arch_hw_breakpoint_commit(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);

	barrier();
	WRITE_ONCE(bp->open, false);
	sync_if_stale(bp);
}

/* ---- For those who take the registers away ---- */

void hw_breakpoint_restore(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);

	set_debugreg(DR6_RESERVED, 6);
	bp->known = 0;
	/* No path arms while the debugger runs. */
	if (!WARN_ON_ONCE(bp->debugging))
		hw_breakpoint_load();
}
EXPORT_SYMBOL_GPL(hw_breakpoint_restore);

#ifdef CONFIG_CPU_SUP_AMD
unsigned long amd_get_dr_addr_mask(unsigned int dr)
{
	if (WARN_ON_ONCE(dr >= HBP_NUM))
		return 0;
	return this_cpu_read(bp_cpu.mask[dr]);
}
EXPORT_SYMBOL_GPL(amd_get_dr_addr_mask);
#endif

void hw_breakpoint_cpu_init(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);

	/* No event of perf is on a CPU that comes up. */
	memset(bp->reg, 0, sizeof(bp->reg));
	bp->owned = 0;
	/* Nothing of what was interrupted when the CPU went down goes on. */
	bp->open = false;
	bp->syncing = false;
	bp->held = false;
	bp->debugging = 0;
	bp->parked = false;
	/* Reset clears the address registers, but not the masks. */
	clear_masks(bp, ALL_SLOTS);
	this_cpu_write(cpu_dr7_armed, 0);
	this_cpu_write(cpu_dr7_changed, false);
	this_cpu_write(cpu_dr7, 0);
	want_changed(bp);
}

void hw_breakpoint_debugger_set(unsigned int i, const struct arch_hw_breakpoint *hw)
{
	bool wants = false;

	/* Pairs with add_debugger(). */
	smp_store_release(&debugger_wanted[i], hw);
	for (i = 0; i < HBP_NUM; i++)
		wants |= !!debugger_wanted[i];
	WRITE_ONCE(debugger_wants, wants);
}

void hw_breakpoint_debugger_enter(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);

	if (bp->debugging) {
		bp->debugging++;
		return;
	}

	bp->parked = dr7_is_held();
	WRITE_ONCE(bp->debugging, 1);
	barrier();
	hw_breakpoint_disable();
}

void hw_breakpoint_debugger_leave(void)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);
	bool held = bp->held;

	if (!bp->debugging) {
		want_changed(bp);
		return;
	}
	if (bp->debugging > 1) {
		bp->debugging--;
		return;
	}

	/* Change the books; then all registers are loaded from them. */
	WRITE_ONCE(bp->held, true);
	WRITE_ONCE(bp->debugging, 0);
	if (!bp->syncing)
		bp->known = 0;
	barrier();
	want_changed(bp);
	barrier();
	WRITE_ONCE(bp->held, held);

	/*
	 * Where the debugger interrupted code that had cleared DR7, an NMI or a
	 * #DB for one, that code loads the registers.  DR6 belongs to a #DB that
	 * may be on its way.
	 */
	if (!bp->parked)
		hw_breakpoint_load();
	/* It may also have read cpu_dr7_armed when nothing was armed. */
	this_cpu_write(cpu_dr7_changed, true);
}

static int __init hw_breakpoint_setup(void)
{
	/* CPUID Fn8000_0001 ECX: masks reach to bit 31, not only to bit 11 */
	const u32 addr_mask_ext = BIT(30);

	if (boot_cpu_has(X86_FEATURE_BPEXT)) {
		addr_mask_max = GENMASK(11, 0);
		if (cpuid_ecx(0x80000001) & addr_mask_ext)
			addr_mask_max = GENMASK(31, 0);
	}

	return 0;
}
core_initcall(hw_breakpoint_setup);

/* ---- #DB ---- */

bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6)
{
	struct bp_cpu *bp = this_cpu_ptr(&bp_cpu);
	unsigned long hits = *dr6 & DR_TRAP_BITS, armed;
	struct bp_reg was[HBP_NUM];
	int slot;

	if (!hits)
		return false;

	/* The handler of one may re-point, disarm or arm those that come after it. */
	armed = this_cpu_read(cpu_dr7_armed);
	for_each_slot(slot, hits)
		was[slot] = bp->reg[slot];

	for_each_slot(slot, hits) {
		const struct bp_reg *reg = &was[slot];
		bool execute = dr7_ctl_rw(reg->hw.ctl) == DR_RW_EXECUTE;

		/*
		 * The bit may be set for a slot that is not armed: ignore it.
		 * A fault on the very write that disarms it must not come again,
		 * that of another slot after a step has to.
		 */
		if (!dr7_enabled(armed & this_cpu_read(cpu_dr7_armed), slot)) {
			if (execute && reg->hw.address == regs->ip &&
			    !(*dr6 & DR_STEP))
				regs->flags |= X86_EFLAGS_RF;
			*dr6 &= ~(DR_TRAP0 << slot);
			continue;
		}

		/*
		 * An instruction breakpoint is a fault and comes alone.  Where
		 * the step onto the instruction is reported together with it,
		 * the step goes first and the fault is taken again.
		 */
		if (execute && (*dr6 & DR_STEP)) {
			*dr6 &= ~(DR_TRAP0 << slot);
			continue;
		}

		/* Let the instruction run when it is returned to. */
		if (execute)
			regs->flags |= X86_EFLAGS_RF;

		/* Hits of the kernel debugger go on to the die chain. */
		if (!reg->event && !user_mode(regs))
			continue;
		*dr6 &= ~(DR_TRAP0 << slot);
		if (reg->event)
			perf_bp_event_at(reg->event, reg->hw.address, regs);
	}

	if (*dr6)
		return false;

	/* Hits of ptrace's breakpoints end in a signal. */
	return !user_mode(regs) || !(current->thread.virtual_dr6 & DR_TRAP_BITS);
}

void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state)
{
	static const u32 type[] = {
		[DR_RW_EXECUTE]	= HW_BREAKPOINT_X,
		[DR_RW_WRITE]	= HW_BREAKPOINT_W,
		[DR_RW_READ]	= HW_BREAKPOINT_RW,
	};
	const struct bp_reg *reg = this_cpu_ptr(&bp_cpu.reg[slot]);

	lockdep_assert_irqs_disabled();

	*state = (struct bp_reg_state) {
		.armed		= dr7_enabled(this_cpu_read(cpu_dr7_armed), slot),
		.addr		= reg->hw.address,
		.len		= watched_bytes(&reg->hw),
		.bp_type	= type[dr7_ctl_rw(reg->hw.ctl)],
		.event		= reg->event,
	};
	/* One instruction, which users call sizeof(long) bytes */
	if (state->bp_type == HW_BREAKPOINT_X)
		state->len = sizeof(long);
}

/* ---- Attributes ---- */

static bool overlaps(unsigned long addr, unsigned long end, const void *base,
		     size_t size)
{
	unsigned long start = (unsigned long)base;

	return end >= start && addr < start + size;
}

#define overlaps_percpu(addr, end, var, cpu)				\
	overlaps(addr, end, per_cpu_ptr(&(var), cpu), sizeof(var))

/* Per-CPU data that the way into #DB touches before DR7 is cleared */
static bool overlaps_entry_data(unsigned long addr, unsigned long end, int cpu)
{
	/* The GDT is used through its writable mapping too. */
	if (overlaps(addr, end, get_cpu_gdt_rw(cpu), GDT_SIZE))
		return true;
	if (overlaps_percpu(addr, end, cpu_tss_rw, cpu))
		return true;
	/* PCID flush mask for the switch of page tables */
	if (overlaps_percpu(addr, end, cpu_tlbstate, cpu))
		return true;
	/* Read by local_db_save() and local_db_restore() */
	if (overlaps_percpu(addr, end, cpu_dr7, cpu) ||
	    overlaps_percpu(addr, end, cpu_dr7_armed, cpu) ||
	    overlaps_percpu(addr, end, cpu_dr7_changed, cpu))
		return true;
	/* Read on the switch of IBRS */
	if (overlaps_percpu(addr, end, x86_spec_ctrl_current, cpu))
		return true;
	/* Where a trap from user mode finds the stack */
	if (overlaps(addr, end, &per_cpu_ptr(&pcpu_hot, cpu)->top_of_stack,
		     sizeof_field(struct pcpu_hot, top_of_stack)))
		return true;
#ifdef CONFIG_MITIGATION_CALL_DEPTH_TRACKING
	/* Call depth tracking counts from the first call on. */
	if (overlaps(addr, end, &per_cpu_ptr(&pcpu_hot, cpu)->call_depth,
		     sizeof_field(struct pcpu_hot, call_depth)))
		return true;
#endif
#ifdef CONFIG_CALL_THUNKS_DEBUG
	if (overlaps_percpu(addr, end, __x86_call_count, cpu) ||
	    overlaps_percpu(addr, end, __x86_ret_count, cpu) ||
	    overlaps_percpu(addr, end, __x86_stuffs_count, cpu))
		return true;
#endif
#ifdef CONFIG_STACKPROTECTOR
	/* Compared when the functions on this path begin and end */
#ifdef CONFIG_X86_64
	if (overlaps(addr, end, &per_cpu_ptr(&fixed_percpu_data, cpu)->stack_canary,
		     sizeof_field(struct fixed_percpu_data, stack_canary)))
		return true;
#else
	if (overlaps_percpu(addr, end, __stack_chk_guard, cpu))
		return true;
#endif
#endif
#ifdef CONFIG_AMD_MEM_ENCRYPT
	/* Read by sev_es_ist_enter() */
	if (overlaps_percpu(addr, end, cea_exception_stacks, cpu))
		return true;
#endif
#ifdef CONFIG_X86_32
	/* Where SWITCH_TO_KERNEL_STACK and NMI find the entry stack */
	if (overlaps_percpu(addr, end, cpu_entry_area, cpu))
		return true;
#endif
	return false;
}

/*
 * Whether a range of kernel addresses contains anything that the way into #DB
 * uses: a breakpoint there traps for ever.
 */
static bool overlaps_entry(unsigned long addr, unsigned long end)
{
	int cpu;

	if (overlaps(addr, end, (void *)CPU_ENTRY_AREA_BASE, CPU_ENTRY_AREA_MAP_SIZE))
		return true;
	/* What the flush of branch predictions on entry writes to its MSR */
	if (overlaps(addr, end, &x86_pred_cmd, sizeof(x86_pred_cmd)))
		return true;
	/* The operand of VERW on the way out */
	if (overlaps(addr, end, &x86_verw_sel, sizeof(x86_verw_sel)))
		return true;
	/* Where the base of the per-CPU data is read from */
#ifdef CONFIG_SMP
	if (overlaps(addr, end, __per_cpu_offset, sizeof(unsigned long) * nr_cpu_ids))
		return true;
#else
	if (overlaps(addr, end, &pcpu_unit_offsets, sizeof(pcpu_unit_offsets)))
		return true;
#endif

	for_each_possible_cpu(cpu) {
		if (overlaps_entry_data(addr, end, cpu))
			return true;
	}

	return false;
}

/* x86 knows instruction breakpoints of one length; users say sizeof(long). */
static int parse_execute(const struct perf_event_attr *attr,
			 struct arch_hw_breakpoint *hw)
{
	if (attr->bp_len != sizeof(long))
		return -EINVAL;

	hw->ctl = DR_LEN_1 | DR_RW_EXECUTE;
	return 0;
}

static int parse_data(const struct perf_event_attr *attr, unsigned int rw,
		      struct arch_hw_breakpoint *hw)
{
	if (!is_power_of_2(attr->bp_len) ||
	    !IS_ALIGNED(attr->bp_addr, attr->bp_len))
		return -EINVAL;

	if (attr->bp_len <= sizeof(long)) {
		hw->ctl = dr7_len(attr->bp_len) | rw;
		return 0;
	}

	/* Longer ranges are for processors with address masks. */
	if (attr->bp_len - 1 > addr_mask_max)
		return -EOPNOTSUPP;
	hw->ctl = DR_LEN_1 | rw;
	hw->mask = attr->bp_len - 1;
	return 0;
}

static int parse(const struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw)
{
	unsigned long end = attr->bp_addr + attr->bp_len - 1;

	if (!attr->bp_len || end < attr->bp_addr)
		return -EINVAL;
	if (end >= TASK_SIZE_MAX && overlaps_entry(attr->bp_addr, end))
		return -EINVAL;

	*hw = (struct arch_hw_breakpoint) {
		.address	= attr->bp_addr,
		.slot		= bp ? bp->hw.info.slot : 0,
	};

	switch (attr->bp_type) {
	case HW_BREAKPOINT_W:
		return parse_data(attr, DR_RW_WRITE, hw);
	case HW_BREAKPOINT_RW:
		return parse_data(attr, DR_RW_READ, hw);
	case HW_BREAKPOINT_X:
		return parse_execute(attr, hw);
	default:
		return -EINVAL;
	}
}

/*
 * Whether an instruction runs while DR7 is live on the way into or out of a #DB of
 * the kernel: a breakpoint there traps for ever. NMI and #MC may come in between.
 */
static bool runs_in_entry(unsigned long addr)
{
	static const char *const functions[] = {
		"exc_debug", "exc_debug_kernel", "exc_nmi", "exc_machine_check",
		"hw_breakpoint_load", "__sev_es_ist_enter", "__sev_es_ist_exit",
		/* Their return instructions may go there. */
		"__x86_return_thunk", "call_depth_return_thunk", "its_return_thunk",
		"retbleed_return_thunk", "retbleed_untrain_ret",
		"srso_return_thunk", "srso_untrain_ret", "srso_safe_ret",
		"srso_alias_return_thunk", "srso_alias_untrain_ret",
		"srso_alias_safe_ret", "entry_untrain_ret", "entry_ibpb",
	};
	char name[KSYM_NAME_LEN];
	int i;

	if (addr >= (unsigned long)__entry_text_start &&
	    addr < (unsigned long)__entry_text_end)
		return true;
	if (lookup_symbol_name(addr, name))
		return addr >= (unsigned long)__noinstr_text_start &&
		       addr < (unsigned long)__noinstr_text_end;

	/* The compiler may have added a suffix. */
	strreplace(name, '.', '\0');
	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		if (!strcmp(name, functions[i]))
			return true;
	}

	return false;
}

static bool is_kernel_execute(const struct perf_event_attr *attr)
{
	return attr->bp_type == HW_BREAKPOINT_X && attr->bp_addr >= TASK_SIZE_MAX;
}

int hw_breakpoint_arch_parse(struct perf_event *bp,
			     const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw)
{
	int err = parse(bp, attr, hw);

	if (!err && is_kernel_execute(attr) &&
	    (within_kprobe_blacklist(attr->bp_addr) || runs_in_entry(attr->bp_addr)))
		err = -EINVAL;
	return err;
}

int hw_breakpoint_debugger_parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw)
{
	int err = parse(NULL, attr, hw);

	if (!err && is_kernel_execute(attr) && runs_in_entry(attr->bp_addr))
		err = -EINVAL;
	return err;
}

int arch_check_bp_in_kernelspace(struct arch_hw_breakpoint *hw)
{
	/* An aligned range does not wrap. */
	return hw->address + watched_bytes(hw) - 1 >= TASK_SIZE_MAX;
}
