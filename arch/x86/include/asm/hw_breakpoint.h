/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints on x86: what the generic layer, ptrace and the kernel
 * debugger use of the debug registers.
 */
#ifndef _ASM_X86_HW_BREAKPOINT_H
#define _ASM_X86_HW_BREAKPOINT_H

#include <linux/types.h>

#include <uapi/asm/hw_breakpoint.h>

/* Debug address registers of a CPU; each takes any kind of breakpoint */
#define HBP_NUM			4
#define hw_breakpoint_slots(class)	(HBP_NUM)

/* The trap handler calls perf_bp_event_at() itself */
#define ARCH_HW_BREAKPOINT_TRAP
/* Registers are written once for all that perf changes at one time */
#define ARCH_HW_BREAKPOINT_BATCH
/* There is arch_hw_breakpoint_repoint() */
#define ARCH_HW_BREAKPOINT_REPOINT
/* There is arch_hw_breakpoint_reg() */
#define ARCH_HW_BREAKPOINT_REGS
/* There are arch_is_ptrace_breakpoint() and ptrace_drop_disabled_hw_breakpoints() */
#define ARCH_HW_BREAKPOINT_PTRACE

struct bp_reg_state;
struct perf_event;
struct perf_event_attr;
struct pt_regs;
struct task_struct;

/**
 * struct arch_hw_breakpoint - a breakpoint as the registers take it
 * @address: for DRn
 * @mask: for the address mask of AMD processors; low bits that do not matter
 * @ctl: control field for DR7; see <asm/dr7.h>
 * @slot: where it is, or was last
 * @repointed: there are versions of it, see arch_hw_breakpoint_repoint()
 */
struct arch_hw_breakpoint {
	unsigned long	address;
	u32		mask;
	u8		ctl;
	u8		slot;
	bool		repointed;
};

/**
 * hw_breakpoint_arch_parse - check attributes and translate them
 * @bp: the event they are for; NULL if there is none
 * @attr: the attributes
 * @hw: filled in
 *
 * Return: 0; -EINVAL for malformed attributes and for ranges that no breakpoint
 * may watch; -EOPNOTSUPP for a range that this processor cannot watch.
 */
int hw_breakpoint_arch_parse(struct perf_event *bp,
			     const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw);

/**
 * arch_check_bp_in_kernelspace - tell whether kernel addresses are watched
 * @hw: what hw_breakpoint_arch_parse() made
 *
 * Return: 1 or 0.
 */
int arch_check_bp_in_kernelspace(struct arch_hw_breakpoint *hw);

/**
 * arch_install_hw_breakpoint - want a breakpoint on this CPU
 * @bp: the breakpoint
 *
 * Context: Interrupts off.
 * Return: 0, or -ENOSPC if all registers are wanted by others.
 */
int arch_install_hw_breakpoint(struct perf_event *bp);

/**
 * arch_uninstall_hw_breakpoint - want a breakpoint on this CPU no more
 * @bp: the breakpoint
 *
 * Context: Interrupts off.
 */
void arch_uninstall_hw_breakpoint(struct perf_event *bp);

/**
 * arch_hw_breakpoint_repoint - take over what bp_current_version() says
 * @bp: a member of a kernel-wide set, of this CPU
 *
 * Where the registers are being changed, or held back, whoever does it takes it
 * over.
 *
 * Context: Any; interrupts off.
 */
void arch_hw_breakpoint_repoint(struct perf_event *bp);

/**
 * arch_hw_breakpoint_begin - hold back the registers
 *
 * Until arch_hw_breakpoint_commit() the hardware stays as it is.
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_begin(void);

/**
 * arch_hw_breakpoint_commit - bring the registers in line with what is wanted
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_commit(void);

/**
 * arch_hw_breakpoint_reg - tell what a register of this CPU holds
 * @slot: which, below hw_breakpoint_slots()
 * @state: filled in
 *
 * Context: Interrupts off.
 */
void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state);

/**
 * arch_is_ptrace_breakpoint - tell whether a debugger set a breakpoint
 * @bp: the breakpoint
 *
 * Return: true if it stands for a virtual debug register.
 */
bool arch_is_ptrace_breakpoint(const struct perf_event *bp);

/**
 * hw_breakpoint_trap - handle the breakpoints among the causes of a #DB
 * @regs: registers at the trap
 * @dr6: causes, in positive polarity; those that are dealt with are cleared
 *
 * Context: #DB.
 * Return: true if nothing is left to do: no other cause, no signal to send.
 */
bool hw_breakpoint_trap(struct pt_regs *regs, unsigned long *dr6);

/**
 * hw_breakpoint_debugger_parse - check a breakpoint of the kernel debugger
 * @attr: address, length and type
 * @hw: filled in
 *
 * As hw_breakpoint_arch_parse(), but an instruction breakpoint is refused only
 * in the code that runs on the way into and out of #DB while DR7 is live.
 *
 * Context: Any.
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int hw_breakpoint_debugger_parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw);

/**
 * hw_breakpoint_debugger_set - change one breakpoint of the kernel debugger
 * @i: which, below HBP_NUM
 * @hw: the breakpoint, NULL for none; it stays valid and as it is until the next
 *	call with the same @i
 *
 * It is a breakpoint of every CPU. Hits leave their bit in DR6 for the die
 * chain. Each CPU arms it when it leaves the debugger or comes online.
 *
 * Context: Any. The caller is the only one that changes breakpoints of the
 * debugger: all other CPUs are stopped.
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
 * Those of perf and those of the debugger, whether they changed or not. A CPU that
 * did not enter the debugger only takes over what hw_breakpoint_debugger_set()
 * changed.
 *
 * Context: Any, inside a batch or while registers are written too; interrupts
 * off.
 */
void hw_breakpoint_debugger_leave(void);

/**
 * ptrace_get_debugreg - read a virtual debug register
 * @tsk: a traced task that is stopped
 * @n: 0 ... 7
 *
 * Return: the value; 0 for the registers that do not exist.
 */
unsigned long ptrace_get_debugreg(struct task_struct *tsk, int n);

/**
 * ptrace_set_debugreg - write a virtual debug register
 * @tsk: a traced task that is stopped
 * @n: 0 ... 7
 * @val: the value
 *
 * A write that is refused changes nothing.
 *
 * Context: Process context, may sleep.
 * Return: 0; -EIO for a register that does not exist; -EINVAL for an address
 * outside user space or not aligned, or for a kind of breakpoint there is none
 * of; -ENOSPC if no register is left; -ESRCH, -ENOMEM.
 */
int ptrace_set_debugreg(struct task_struct *tsk, int n, unsigned long val);

#endif /* _ASM_X86_HW_BREAKPOINT_H */
