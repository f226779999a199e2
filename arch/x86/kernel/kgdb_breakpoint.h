/* SPDX-License-Identifier: GPL-2.0 */
/* Hardware breakpoints of the kernel debugger: operations of struct kgdb_arch */
#ifndef _ARCH_X86_KERNEL_KGDB_BREAKPOINT_H
#define _ARCH_X86_KERNEL_KGDB_BREAKPOINT_H

#include <linux/kgdb.h>

int kgdb_set_hw_break(unsigned long addr, int len, enum kgdb_bptype type);
int kgdb_remove_hw_break(unsigned long addr, int len, enum kgdb_bptype type);
void kgdb_remove_all_hw_break(void);
void kgdb_disable_hw_debug(struct pt_regs *regs);
void kgdb_correct_hw_break(void);

/**
 * kgdb_disarm_all_hw_break - disarm what the debugger has set, on all CPUs
 *
 * Releases the claims, too. The debugger can still remove the breakpoints.
 *
 * Context: Process context; no debugger is registered.
 */
void kgdb_disarm_all_hw_break(void);

#if IS_ENABLED(CONFIG_KUNIT)
extern bool kgdb_makes_claims;
#endif

#endif /* _ARCH_X86_KERNEL_KGDB_BREAKPOINT_H */
