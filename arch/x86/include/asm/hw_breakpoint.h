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
	u8		slot;
	bool		repointed;
};

unsigned int hw_breakpoint_pieces(const struct arch_hw_breakpoint *hw);

#define hw_breakpoint_weight hw_breakpoint_weight
/**
 * hw_breakpoint_weight - number of registers that a breakpoint needs
 * @hw: translation by hw_breakpoint_arch_parse()
 *
 * Context: Any.
 * Return: 1 to HBP_NUM.
 */
static inline unsigned int hw_breakpoint_weight(const struct arch_hw_breakpoint *hw)
{
	return likely(!hw->before) ? 1 : hw_breakpoint_pieces(hw);
}

/**
 * hw_breakpoint_arch_parse - check attributes and translate them
 * @bp: not used: the translation is the same for all events
 * @attr: the attributes
 * @hw: the translation
 *
 * Context: Any.
 * Return: 0; -EINVAL for invalid attributes, for a range that HBP_NUM registers do not
 * cover exactly, and for one that the entry code of #DB accesses, where a breakpoint
 * would trap for ever; -EOPNOTSUPP for a length that this processor does not support.
 */
int hw_breakpoint_arch_parse(struct perf_event *bp,
			     const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw);

/**
 * arch_check_bp_in_kernelspace - check whether kernel addresses are watched
 * @hw: translation by hw_breakpoint_arch_parse()
 *
 * Context: Any.
 * Return: 1 if at least one byte of the range is a kernel address, else 0.
 */
int arch_check_bp_in_kernelspace(struct arch_hw_breakpoint *hw);

/**
 * arch_install_hw_breakpoint - assign slots of this CPU to a breakpoint
 * @bp: the breakpoint, which needs hw_breakpoint_weight() slots
 *
 * Context: Interrupts off.
 * Return: 0, or -ENOSPC if too many slots are assigned to others.
 */
int arch_install_hw_breakpoint(struct perf_event *bp);

/**
 * arch_uninstall_hw_breakpoint - remove a breakpoint from its slots
 * @bp: the breakpoint
 *
 * Context: Interrupts off.
 */
void arch_uninstall_hw_breakpoint(struct perf_event *bp);

#define arch_hw_breakpoint_repoint arch_hw_breakpoint_repoint
/**
 * arch_hw_breakpoint_repoint - apply a new bp->attr.bp_addr
 * @bp: a member of a kernel-wide set, of this CPU
 *
 * If the caller interrupted an update of the registers, or a batch is open, that
 * update or arch_hw_breakpoint_commit() applies the address.
 *
 * Context: Any; interrupts off.
 */
void arch_hw_breakpoint_repoint(struct perf_event *bp);

#define arch_hw_breakpoint_change arch_hw_breakpoint_change
/**
 * arch_hw_breakpoint_change - change an installed breakpoint
 * @bp: the breakpoint, which keeps its slots
 * @hw: its new translation, which needs the same number of slots
 *
 * If a batch is open, arch_hw_breakpoint_commit() writes the registers. An NMI sees
 * all of the change or nothing.
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_change(struct perf_event *bp, const struct arch_hw_breakpoint *hw);

#define arch_hw_breakpoint_begin arch_hw_breakpoint_begin
/**
 * arch_hw_breakpoint_begin - begin a batch of changes
 *
 * No register is written until arch_hw_breakpoint_commit().  Batches do not
 * nest.
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_begin(void);

/**
 * arch_hw_breakpoint_commit - end a batch: write the registers that have to
 * change
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_commit(void);

#define arch_hw_breakpoint_reg arch_hw_breakpoint_reg
/**
 * arch_hw_breakpoint_reg - read back a register of this CPU
 * @slot: number of the slot, below hw_breakpoint_slots()
 * @state: filled in
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state);

/* Hits of data breakpoints are reported after the access. */
#define arch_hw_breakpoint_after_access()	true
#define arch_hw_breakpoint_irqs_off(regs)	regs_irqs_disabled(regs)

#define ptrace_drop_disabled_hw_breakpoints ptrace_drop_disabled_hw_breakpoints
/**
 * ptrace_drop_disabled_hw_breakpoints - release breakpoints that ptrace
 * disabled
 * @tsk: a traced task that is about to leave its ptrace stop
 *
 * They are kept until then, so that a debugger can disable, change and enable
 * the breakpoints of a stopped task without losing their claims.
 *
 * Context: Process context, may sleep; the tracer of @tsk, which stays stopped.
 */
void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk);

/**
 * hw_breakpoint_trap - handle the breakpoint hits of a #DB
 * @regs: registers at the time of the trap
 * @dr6: causes of the #DB in positive polarity; bits that are handled are cleared
 *
 * Hits of breakpoints of the kernel debugger in kernel mode are left to the die
 * chain.
 *
 * Context: #DB, interrupts off.
 * Return: true if the #DB has no other cause and ptrace needs no signal.
 */
bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6);

/**
 * hw_breakpoint_debugger_parse - check a breakpoint of the kernel debugger
 * @attr: address, length and type
 * @hw: the translation
 *
 * Like hw_breakpoint_arch_parse(), but refuses kernel instructions only in code
 * that the entry and exit of #DB run while DR7 is armed, and not on the whole
 * kprobe blacklist; and accepts only a range that one slot takes.
 *
 * Context: Any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int hw_breakpoint_debugger_parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw);

/**
 * hw_breakpoint_debugger_set - set or remove a breakpoint of the kernel debugger
 * @i: index of the breakpoint, below HBP_NUM
 * @hw: the breakpoint, NULL to remove it; it must not change until the next call with
 *	the same @i
 *
 * The breakpoint is set on every CPU: each CPU arms it when it leaves the debugger or
 * comes online. hw_breakpoint_trap() leaves its hits to the die chain.
 *
 * Context: Any. The caller serializes calls: the debugger has stopped all other CPUs, or
 * none is registered. Other CPUs may read the list at the same time.
 */
void hw_breakpoint_debugger_set(unsigned int i, const struct arch_hw_breakpoint *hw);

/**
 * hw_breakpoint_debugger_enter - disarm this CPU's breakpoints
 *
 * No breakpoint is armed on this CPU until hw_breakpoint_debugger_leave().
 *
 * Context: Any; interrupts off.
 */
void hw_breakpoint_debugger_enter(void);

/**
 * hw_breakpoint_debugger_leave - arm this CPU's breakpoints again
 *
 * Loads the breakpoints of perf and of the debugger, even if nothing has
 * changed. In an NMI or #DB, local_db_restore() loads them. On a CPU that did not
 * enter the debugger, applies only what hw_breakpoint_debugger_set() changed.
 *
 * Context: Any, also inside a batch or while registers are written; interrupts
 * off.
 * Return: the number of slots that breakpoints of perf leave to the debugger; 0 if a
 * batch is open, in which perf may take every slot. A breakpoint of the debugger
 * that gets no slot is armed as soon as one is free.
 */
unsigned int hw_breakpoint_debugger_leave(void);

/**
 * ptrace_get_debugreg - read a virtual debug register
 * @tsk: a traced task that is stopped
 * @n: 0 ... 7
 *
 * Context: Any.
 * Return: the value; 0 for registers that do not exist.
 */
unsigned long ptrace_get_debugreg(struct task_struct *tsk, int n);

/**
 * ptrace_set_debugreg - write a virtual debug register
 * @tsk: a traced task that is stopped
 * @n: 0 ... 7
 * @val: the value
 *
 * A write that fails changes nothing.
 *
 * Context: Process context, may sleep.
 * Return: 0; -EIO for a register that does not exist; -EINVAL for an address that is
 * not in user space or not aligned, or for an unsupported type of breakpoint; -ENOSPC
 * if no register is available; -ESRCH if the task is exiting; -ENOMEM.
 */
int ptrace_set_debugreg(struct task_struct *tsk, int n, unsigned long val);

#endif /* _ASM_X86_HW_BREAKPOINT_H */
