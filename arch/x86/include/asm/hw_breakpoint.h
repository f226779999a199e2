/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints on x86: interface of the backend, used by the generic
 * layer, by ptrace and by the kernel debugger.
 */
#ifndef _ASM_X86_HW_BREAKPOINT_H
#define _ASM_X86_HW_BREAKPOINT_H

#include <linux/types.h>

#include <uapi/asm/hw_breakpoint.h>

/* Debug address registers of a CPU; each supports all types of breakpoints */
#define HBP_NUM			4
#define hw_breakpoint_slots(class)	(HBP_NUM)

/* The longest range that breakpoints watch without address masks, if it is aligned */
#define hw_breakpoint_max_length	(HBP_NUM * sizeof(long))

/* exc_debug() reports hits: no die notifier */
#define hw_breakpoint_exceptions_notify	NULL

struct bp_reg_state;
struct perf_event;
struct perf_event_attr;
struct pt_regs;
struct task_struct;

/**
 * struct arch_hw_breakpoint - a breakpoint as the registers take it
 * @address: value of the address register
 * @mask: value of the address mask register of AMD processors: address bits
 *	that are ignored
 * @ctl: control field for DR7; see <asm/dr7.h>
 * @before: number of bytes of the watched range below @address
 * @weight: number of registers that the range needs; not valid in a copy for a single piece
 * @slot: slot that the breakpoint has, or had last; if it has several, one of them; a new
 *	translation has slot 0
 * @repointed: the event was repointed: attr.bp_addr has the current value of
 *	@address, see arch_hw_breakpoint_repoint()
 *
 * A range that no register takes as a whole is divided into aligned pieces, which have a
 * register each.  The translation has the last piece, the one with the highest addresses;
 * the others follow from it, see hw_breakpoint_previous_piece().
 */
struct arch_hw_breakpoint {
	unsigned long	address;
	u32		mask;
	u8		ctl;
	u8		before;
	u8		weight	: 4;
	u8		slot	: 4;
	bool		repointed;
};

#define hw_breakpoint_weight hw_breakpoint_weight
/* Number of registers that a breakpoint needs, 1 to HBP_NUM */
static inline unsigned int hw_breakpoint_weight(const struct arch_hw_breakpoint *hw)
{
	return hw->weight;
}

/*
 * Checks attributes and translates them; @bp is not used. Any context.
 * Returns 0; -EINVAL for invalid attributes, for a range that HBP_NUM registers do not cover
 * exactly, and for one that the entry code of #DB accesses, where a breakpoint would trap for
 * ever; -EOPNOTSUPP for a length that this processor does not support.
 */
int hw_breakpoint_arch_parse(struct perf_event *bp,
			     const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw);

/* 1 if at least one byte of the range is a kernel address, else 0 */
int arch_check_bp_in_kernelspace(struct arch_hw_breakpoint *hw);

/*
 * Assigns hw_breakpoint_weight() slots of this CPU to a breakpoint. Interrupts are off. Returns 0,
 * or -ENOSPC if too many slots are assigned to others.
 */
int arch_install_hw_breakpoint(struct perf_event *bp);

/* Removes a breakpoint from its slots. Interrupts are off. */
void arch_uninstall_hw_breakpoint(struct perf_event *bp);

#define arch_hw_breakpoint_repoint arch_hw_breakpoint_repoint
/*
 * Applies a new bp->attr.bp_addr to a member of a kernel-wide set, of this CPU. If the caller
 * interrupted an update of the registers, or a batch is open, that update or
 * arch_hw_breakpoint_commit() applies the address. Any context; interrupts off.
 */
void arch_hw_breakpoint_repoint(struct perf_event *bp);

#define arch_hw_breakpoint_change arch_hw_breakpoint_change
/*
 * Changes an installed breakpoint, which keeps its slots: its new translation needs the same
 * number of slots. If a batch is open, arch_hw_breakpoint_commit() writes the registers. An NMI
 * sees all of the change or nothing. Interrupts are off.
 */
void arch_hw_breakpoint_change(struct perf_event *bp, const struct arch_hw_breakpoint *hw);

#define arch_hw_breakpoint_begin arch_hw_breakpoint_begin
/*
 * No register is written between these two, of which the second writes those that have to change.
 * Batches do not nest. Interrupts are off.
 */
void arch_hw_breakpoint_begin(void);
void arch_hw_breakpoint_commit(void);

#define arch_hw_breakpoint_reg arch_hw_breakpoint_reg
/* Reads back the register of this CPU for @slot. Interrupts are off. */
void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state);

/* Hits of data breakpoints are reported after the access. */
#define arch_hw_breakpoint_after_access()	true
#define arch_hw_breakpoint_irqs_off(regs)	regs_irqs_disabled(regs)

/* See <linux/hw_breakpoint_arch.h>. Process context, may sleep; the tracer of @tsk */
#define ptrace_drop_disabled_hw_breakpoints ptrace_drop_disabled_hw_breakpoints
void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk);

/*
 * Handles the breakpoint hits of a #DB, and clears their bits of @dr6, the causes of the #DB in
 * positive polarity. Hits of breakpoints of the kernel debugger in kernel mode are left to the
 * die chain. Returns true if the #DB has no other cause and ptrace needs no signal.
 */
bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6);

/*
 * As hw_breakpoint_arch_parse(), for the kernel debugger: refuses kernel instructions only in code
 * that the entry and exit of #DB run while DR7 is armed, and not on the whole kprobe blacklist;
 * accepts only a range that one slot takes.
 */
int hw_breakpoint_debugger_parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw);

/*
 * Sets breakpoint @i of the kernel debugger, which must not change until the next call with the
 * same @i, or removes it if @hw is NULL. Each CPU arms it when it leaves the debugger or comes
 * online; hw_breakpoint_trap() leaves its hits to the die chain. The caller serializes calls: the
 * debugger has stopped all other CPUs, or none is registered. Other CPUs may read the list at the
 * same time. Any context.
 */
void hw_breakpoint_debugger_set(unsigned int i, const struct arch_hw_breakpoint *hw);

/* Disarms the breakpoints of this CPU until hw_breakpoint_debugger_leave(). Interrupts are off. */
void hw_breakpoint_debugger_enter(void);

/*
 * Loads the breakpoints of perf and of the debugger, even if nothing has changed. In an NMI or
 * #DB, local_db_restore() loads them. On a CPU that did not enter the debugger, applies only what
 * hw_breakpoint_debugger_set() changed. Any context, also inside a batch or while registers are
 * written; interrupts off.
 * Returns the number of slots that breakpoints of perf leave to the debugger; 0 if a batch is
 * open, in which perf may take every slot. A breakpoint of the debugger that gets no slot is armed
 * as soon as one is free.
 */
unsigned int hw_breakpoint_debugger_leave(void);

/* Reads virtual debug register @n of a traced task that is stopped; 0 if it does not exist */
unsigned long ptrace_get_debugreg(struct task_struct *tsk, int n);

/*
 * Writes virtual debug register @n of a traced task that is stopped. Process context, may sleep.
 * Returns 0; -EIO for a register that does not exist; -EINVAL for an address that is not in user
 * space or not aligned, or for an unsupported type of breakpoint; -ENOSPC if no register is
 * available; -ESRCH if the task is exiting; -ENOMEM. A write that fails changes nothing.
 */
int ptrace_set_debugreg(struct task_struct *tsk, int n, unsigned long val);

#endif /* _ASM_X86_HW_BREAKPOINT_H */
