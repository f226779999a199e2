/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of the debug registers for code that must not trap, or that uses
 * the registers itself: NMI, #MC and #DB entry, KVM, text patching, kexec.
 */
#ifndef _ASM_X86_HW_BREAKPOINT_CPU_H
#define _ASM_X86_HW_BREAKPOINT_CPU_H

#ifndef _ASM_X86_DEBUGREG_H
#error "Include <asm/debugreg.h>"
#endif

#include <asm/dr7.h>

/*
 * Superset of the enable bits of DR7, so that code can skip DR7 if it is 0. A
 * bit is set here before it is set in DR7, and cleared here after it is cleared
 * in DR7.
 */
DECLARE_PER_CPU(unsigned long, cpu_dr7);

/* Value of DR7; while code has DR7 cleared, the value that it has to restore */
DECLARE_PER_CPU(unsigned long, cpu_dr7_armed);

/*
 * True if breakpoints changed while code had DR7 cleared: that code has to load
 * the address and mask registers before it loads DR7.
 */
DECLARE_PER_CPU(bool, cpu_dr7_changed);

/* Returned by local_db_save() if no breakpoint was armed; not a value of DR7 that arms one */
#define DB_NOTHING_ARMED	DR7_FIXED_1

/*
 * Returns true if a breakpoint is armed on this CPU.  Uses the raw accessor,
 * because entry code calls this while DR7 is still armed, and the checks of
 * DEBUG_PREEMPT read data that may be watched.
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

/*
 * Loads the registers of all armed slots, and DR7, which the caller has cleared. Interrupts are
 * off.
 */
void hw_breakpoint_load(void);

/*
 * Restores the debug registers after other code used them, and resets DR6. Interrupts are off, DR7
 * is clear; not while the kernel debugger runs.
 */
void hw_breakpoint_restore(void);

/*
 * Resets the state of the registers of this CPU, which comes up, and arms the breakpoints of the
 * kernel debugger. Interrupts are off.
 */
void hw_breakpoint_cpu_init(void);

/*
 * Disarms breakpoints for a section of code that must not trap. Returns what
 * local_db_restore() needs: the value of DR7, 0 if interrupted code has cleared
 * DR7, or DB_NOTHING_ARMED.  Checks cpu_dr7 first: in a virtual machine even
 * reading DR7 is an exit.
 *
 * Only code that has cleared DR7 arms it again.  An NMI, a #DB or the kernel debugger
 * that interrupts the section finds DR7 clear: it may change breakpoints in memory, but
 * writes no register.  If nothing was armed, the end of the section in which the debugger
 * ran arms what the debugger has set.
 */
static __always_inline unsigned long local_db_save(void)
{
	unsigned long dr7;

	if (!hw_breakpoint_active())
		return DB_NOTHING_ARMED;

	get_debugreg(dr7, 7);
	dr7 &= ~DR7_FIXED_1;
	if (dr7)
		set_debugreg(DR7_FIXED_1, 7);

	/* The section must not be moved before the write to DR7. */
	barrier();

	return dr7;
}

static __always_inline void local_db_restore(unsigned long dr7)
{
	/* The section must not be moved after the write to DR7. */
	barrier();

	if (!dr7)
		return;
	if (likely(dr7 == DB_NOTHING_ARMED && !this_cpu_read(cpu_dr7_changed)))
		return;

	/*
	 * The debugger or a handler may have changed breakpoints in the
	 * section, and an NMI may do so at any point here. Until DR7 is
	 * written, an NMI finds DR7 clear and writes no register: it changes
	 * cpu_dr7_armed, then sets cpu_dr7_changed. So read cpu_dr7_armed
	 * first: if cpu_dr7_changed is not set after that, the value matches
	 * the registers. Check cpu_dr7_changed again after the write, for an
	 * NMI in between.
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

#endif /* _ASM_X86_HW_BREAKPOINT_CPU_H */
