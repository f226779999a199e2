/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DR7, the debug control register: it has two enable bits and a control field
 * of four bits for each of the four address registers.
 *
 *   63      32 31  28 27  24 23  20 19  16 15      10 9  8 7 6 5 4 3 2 1 0
 *  +----------+------+------+------+------+----------+----+---+---+---+---+
 *  | reserved | ctl3 | ctl2 | ctl1 | ctl0 |    1 ... |GE,L| 3 | 2 | 1 | 0 |
 *  +----------+------+------+------+------+----------+----+---+---+---+---+
 *
 * A control field is LEN << 2 | RW.  The functions here only compute values;
 * none of them accesses a register.
 */
#ifndef _ASM_X86_DR7_H
#define _ASM_X86_DR7_H

#include <linux/build_bug.h>
#include <linux/types.h>

#include <uapi/asm/debugreg.h>

/* RW value for I/O ports, in addition to DR_RW_* of uapi/asm/debugreg.h */
#define DR_RW_IO		0x2
#define DR7_CTL_MASK		0xfUL

/* Exact matching, ignored by all processors since the P6 */
#define DR7_EXACT			0x200UL

#define DR7_ENABLE_LOCAL(slot)	(0x1UL << ((slot) * DR_ENABLE_SIZE))
#define DR7_ENABLE_GLOBAL(slot)	(0x2UL << ((slot) * DR_ENABLE_SIZE))
#define DR7_ENABLE(slot)	(DR7_ENABLE_LOCAL(slot) | DR7_ENABLE_GLOBAL(slot))
#define DR7_CTL_SHIFT(slot)	(DR_CONTROL_SHIFT + (slot) * DR_CONTROL_SIZE)
/* All bits of DR7 that belong to one slot */
#define DR7_SLOT(slot)		(DR7_CTL_MASK << DR7_CTL_SHIFT(slot) | DR7_ENABLE(slot))
#define DR7_ENABLE_ALL		0xffUL

static_assert(DR7_SLOT(0) == 0x000f0003UL);
static_assert(DR7_SLOT(1) == 0x00f0000cUL);
static_assert(DR7_SLOT(2) == 0x0f000030UL);
static_assert(DR7_SLOT(3) == 0xf00000c0UL);
static_assert((DR7_SLOT(0) ^ DR7_SLOT(1) ^ DR7_SLOT(2) ^ DR7_SLOT(3)) == 0xffff00ffUL);
static_assert((DR7_ENABLE(0) | DR7_ENABLE(1) | DR7_ENABLE(2) | DR7_ENABLE(3)) == DR7_ENABLE_ALL);
static_assert(DR7_ENABLE_GLOBAL(0) == DR_GLOBAL_ENABLE);
static_assert(DR7_EXACT == DR_GLOBAL_SLOWDOWN);
static_assert(!(DR7_SLOT(3) & DR7_EXACT));

static __always_inline bool dr7_enabled(unsigned long dr7, int slot)
{
	return dr7 & DR7_ENABLE(slot);
}

static __always_inline unsigned int dr7_ctl(unsigned long dr7, int slot)
{
	return dr7 >> DR7_CTL_SHIFT(slot) & DR7_CTL_MASK;
}

static __always_inline unsigned int dr7_ctl_rw(unsigned int ctl)
{
	return ctl & 0x3;
}

/* The length that a control field encodes: 1, 2, 4 or 8 bytes */
static __always_inline unsigned int dr7_ctl_bytes(unsigned int ctl)
{
	switch (ctl & 0xc) {
	case DR_LEN_1:
		return 1;
	case DR_LEN_2:
		return 2;
	case DR_LEN_4:
		return 4;
	default:
		return 8;
	}
}

/* The DR_LEN_* of a length of 1, 2, 4 or 8 bytes */
static __always_inline unsigned int dr7_len(unsigned int bytes)
{
	switch (bytes) {
	case 1:
		return DR_LEN_1;
	case 2:
		return DR_LEN_2;
	case 4:
		return DR_LEN_4;
	default:
		return DR_LEN_8;
	}
}

/* Returns @dr7 without the bits of @slot: disabled, control field 0. */
static __always_inline unsigned long dr7_clear(unsigned long dr7, int slot)
{
	return dr7 & ~DR7_SLOT(slot);
}

/* Returns the bits of @slot: enabled, control field @ctl. */
static __always_inline unsigned long dr7_bits(int slot, unsigned int ctl)
{
	return (unsigned long)ctl << DR7_CTL_SHIFT(slot) | DR7_ENABLE_GLOBAL(slot);
}

#endif /* _ASM_X86_DR7_H */
