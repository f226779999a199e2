/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For code that needs the debug registers of this CPU out of its way for a
 * while, or that loses them: NMI, #MC and #DB entry, KVM, text patching, kexec.
 */
#ifndef _ASM_X86_HW_BREAKPOINT_CPU_H
#define _ASM_X86_HW_BREAKPOINT_CPU_H

#ifndef _ASM_X86_DEBUGREG_H
#error "Include <asm/debugreg.h>"
#endif

#include <asm/dr7.h>

/*
 * What DR7 enables, and more only while it is being written: the enable bits
 * are here before they are in DR7, and in DR7 no longer when they leave here.
 */
DECLARE_PER_CPU(unsigned long, cpu_dr7);

/* What DR7 holds, or shall hold when nobody needs breakpoints out of the way */
DECLARE_PER_CPU(unsigned long, cpu_dr7_armed);

/*
 * Breakpoints changed while DR7 was clear.  The address and mask registers must
 * be loaded before cpu_dr7_armed is.
 */
DECLARE_PER_CPU(bool, cpu_dr7_changed);

/*
 * True if a breakpoint is armed on this CPU.  Raw: the check of DEBUG_PREEMPT reads
 * data that may be watched, while DR7 is still live in the entry code.
 */
static __always_inline bool hw_breakpoint_active(void)
{
	return raw_cpu_read(cpu_dr7) & DR7_ENABLE_ALL;
}

/* Disarms all, until hw_breakpoint_restore(). */
static __always_inline void hw_breakpoint_disable(void)
{
	set_debugreg(DR7_FIXED_1, 7);
}

/**
 * hw_breakpoint_load - load all debug registers and arm
 *
 * The caller has cleared DR7.
 *
 * Context: Any; interrupts off.
 */
void hw_breakpoint_load(void);

/**
 * hw_breakpoint_restore - load the debug registers of this CPU again
 *
 * After other code used them. DR7 is clear.
 *
 * Context: Interrupts off.
 */
void hw_breakpoint_restore(void);

/**
 * hw_breakpoint_cpu_init - start with reset registers
 *
 * On a CPU that comes up.
 *
 * Context: Interrupts off.
 */
void hw_breakpoint_cpu_init(void);

/*
 * Disarms breakpoints for a stretch of code that must not trap, and returns
 * what local_db_restore() has to know: whether there were any.  In a virtual
 * machine even reading DR7 is an exit, so cpu_dr7 is asked first.
 *
 * Only the code that finds DR7 armed arms it again.  An NMI, a #DB or the kernel
 * debugger that interrupts the stretch finds DR7 clear: it may change which
 * breakpoints there are, but loads no register.
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

	/* Nothing of what follows may be moved up to where DR7 is live. */
	barrier();

	return dr7;
}

static __always_inline void local_db_restore(unsigned long dr7)
{
	/* Nothing of what precedes may be moved down to where DR7 is live. */
	barrier();

	if (!dr7)
		return;

	/*
	 * The debugger or a handler may have changed breakpoints meanwhile, and
	 * an NMI may do so at any point here. Until DR7 is written it finds DR7
	 * clear and leaves the registers alone, so what was read belongs to the
	 * addresses that they hold. cpu_dr7_changed is set after cpu_dr7_armed
	 * changes: read it in the other order, and once more after the write.
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
 * Return: the mask in use on this CPU; 0 where there are none.
 */
unsigned long amd_get_dr_addr_mask(unsigned int dr);
#else
static inline unsigned long amd_get_dr_addr_mask(unsigned int dr)
{
	return 0;
}
#endif

#endif /* _ASM_X86_HW_BREAKPOINT_CPU_H */
