/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface for code that must not trap, or that uses the debug registers for something
 * else: NMI, #MC and #DB entry, KVM, text patching, kexec.
 */
#ifndef _ASM_X86_HW_BREAKPOINT_CPU_H
#define _ASM_X86_HW_BREAKPOINT_CPU_H

#ifndef _ASM_X86_DEBUGREG_H
#error "Include <asm/debugreg.h>"
#endif

#include <asm/dr7.h>

/*
 * Superset of the enable bits of DR7; equal to them unless DR7 is being written. A bit is
 * set here before it is set in DR7, and cleared here after it is cleared in DR7.
 */
DECLARE_PER_CPU(unsigned long, cpu_dr7);

/* Value of DR7, or value to restore if code has cleared DR7 */
DECLARE_PER_CPU(unsigned long, cpu_dr7_armed);

/*
 * Breakpoints changed while DR7 was clear: load the address and mask registers before
 * loading cpu_dr7_armed.
 */
DECLARE_PER_CPU(bool, cpu_dr7_changed);

/*
 * Returns true if a breakpoint is armed on this CPU.  Use the raw accessor: the checks of
 * DEBUG_PREEMPT read data that may be watched, while DR7 is still live in entry code.
 */
static __always_inline bool hw_breakpoint_active(void)
{
	return raw_cpu_read(cpu_dr7) & DR7_ENABLE_ALL;
}

/* Disarm all breakpoints until hw_breakpoint_restore(). */
static __always_inline void hw_breakpoint_disable(void)
{
	set_debugreg(DR7_FIXED_1, 7);
}

/**
 * hw_breakpoint_load - load all debug registers and arm the breakpoints
 *
 * Context: Any; interrupts off, DR7 cleared by the caller.
 */
void hw_breakpoint_load(void);

/**
 * hw_breakpoint_restore - restore the debug registers after other code used them
 *
 * Context: Interrupts off, DR7 clear.
 */
void hw_breakpoint_restore(void);

/**
 * hw_breakpoint_cpu_init - reset the debug registers of a CPU that comes up
 *
 * Context: Interrupts off.
 */
void hw_breakpoint_cpu_init(void);

/*
 * Disarm breakpoints for a section of code that must not trap. The return value is for
 * local_db_restore(): the enable bits of DR7.  Check cpu_dr7 first: in a virtual machine
 * even reading DR7 is an exit.
 *
 * Only code that finds DR7 armed arms it again.  An NMI, a #DB or the kernel debugger
 * that interrupts the section finds DR7 clear: it may change breakpoints in memory, but
 * writes no register.
 */
static __always_inline unsigned long local_db_save(void)
{
	unsigned long dr7;

	if (static_cpu_has(X86_FEATURE_HYPERVISOR) && !hw_breakpoint_active())
		return 0;

	get_debugreg(dr7, 7);
	dr7 &= ~DR7_FIXED_1;
	if (dr7)
		set_debugreg(DR7_FIXED_1, 7);

	/* Keep the code of the section behind the write to DR7. */
	barrier();

	return dr7;
}

static __always_inline void local_db_restore(unsigned long dr7)
{
	/* Keep the code of the section in front of the write to DR7. */
	barrier();

	if (!dr7)
		return;

	/*
	 * The debugger or a handler may have changed breakpoints in the section,
	 * and an NMI may do so at any point here. Until DR7 is written, an NMI
	 * finds DR7 clear and writes no registers, so the value that was read
	 * matches the addresses in the registers. cpu_dr7_changed is set after
	 * cpu_dr7_armed changes: read cpu_dr7_armed first, and check
	 * cpu_dr7_changed once more after the write.
	 */
	dr7 = this_cpu_read(cpu_dr7_armed);
	barrier();
	if (likely(!this_cpu_read(cpu_dr7_changed)))
		set_debugreg(dr7, 7);
	barrier();
	if (unlikely(this_cpu_read(cpu_dr7_changed))) {
		hw_breakpoint_disable();
		hw_breakpoint_load();
	}
}

#ifdef CONFIG_CPU_SUP_AMD
/**
 * amd_get_dr_addr_mask - read an address mask
 * @dr: number of the debug register
 *
 * Context: Preemption off.
 * Return: the address mask of the register on this CPU; 0 without BPEXT.
 */
unsigned long amd_get_dr_addr_mask(unsigned int dr);
#else
static inline unsigned long amd_get_dr_addr_mask(unsigned int dr)
{
	return 0;
}
#endif

#endif /* _ASM_X86_HW_BREAKPOINT_CPU_H */
