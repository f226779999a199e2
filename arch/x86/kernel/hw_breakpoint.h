/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by hw_breakpoint.c, hw_breakpoint_addr.c and kgdb_breakpoint.c */
#ifndef _ARCH_X86_KERNEL_HW_BREAKPOINT_H
#define _ARCH_X86_KERNEL_HW_BREAKPOINT_H

#include <linux/types.h>

#include <asm/dr7.h>
#include <asm/hw_breakpoint.h>

/* The largest address mask of this processor (AMD with BPEXT), 0 if it has none */
extern u32 hw_breakpoint_addr_mask_max;

/* Returns true if the range overlaps the state of @cpu that loading of its registers uses. */
bool hw_breakpoint_overlaps_regs(unsigned long addr, unsigned long end, int cpu);

/*
 * In kgdb_breakpoint.c: the breakpoints of the kernel debugger, to be armed in slots that
 * perf does not use
 */
#ifdef CONFIG_KGDB
extern const struct arch_hw_breakpoint *kgdb_wanted[HBP_NUM];
extern bool kgdb_wants_any;

static inline bool kgdb_wants(void)
{
	return READ_ONCE(kgdb_wants_any);
}
#else
#define kgdb_wanted	((const struct arch_hw_breakpoint **)NULL)

static inline bool kgdb_wants(void)
{
	return false;
}
#endif

static inline bool overlaps(unsigned long addr, unsigned long end, const void *base,
			    size_t size)
{
	unsigned long start = (unsigned long)base;

	return end >= start && addr < start + size;
}

#define overlaps_percpu(addr, end, var, cpu)				\
	overlaps(addr, end, per_cpu_ptr(&(var), cpu), sizeof(var))

/*
 * Translates a range of data, not longer than hw_breakpoint_max_length, into its last piece; slot,
 * repointed and the type of access in @hw stay
 */
void hw_breakpoint_set_range(struct arch_hw_breakpoint *hw, unsigned long addr,
			     unsigned long len);

/* Replaces a piece of a range by the one that ends where it begins; false if it is the first one */
bool hw_breakpoint_previous_piece(struct arch_hw_breakpoint *piece);

/* For tests: the address mask that the kernel has written for @slot of this CPU */
u32 hw_breakpoint_mask(unsigned int slot);

/* Number of bytes that one slot watches */
static inline unsigned long watched_bytes(const struct arch_hw_breakpoint *hw)
{
	return hw->mask ? hw->mask + 1UL : dr7_ctl_bytes(hw->ctl);
}

#endif /* _ARCH_X86_KERNEL_HW_BREAKPOINT_H */
