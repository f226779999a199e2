/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workarounds for QEMU TCG, which implements debug registers, but with differences from
 * a processor: it reports one data breakpoint for an instruction that hits several, and
 * none for an instruction with a LOCK prefix. It takes an unaligned access for an
 * access to all of the aligned words that it touches. It saves RF set on an interrupt,
 * so it reports no instruction breakpoint for the instruction that comes next.
 */
#ifndef BP_EMULATOR_H
#define BP_EMULATOR_H

#include <stdbool.h>

/* Returns true if CPUID shows QEMU TCG; a processor needs no workaround. */
bool bp_emulated(void);

/*
 * TCG keeps the hit of a data breakpoint until an access to the page hits nothing, and
 * reports it again if a breakpoint in another register is hit before that. bp_settle()
 * follows an access to the test page with one to the last byte of the page, which no
 * breakpoint watches. It does nothing for an address outside that page.
 */
void bp_settle(void *p);

/*
 * How often to try to hit an instruction breakpoint at an instruction to which the
 * kernel returns: an interrupt that is pending comes before that instruction, and TCG
 * then reports no hit. Returns 1 on a processor.
 */
int bp_attempts(void);

#endif /* BP_EMULATOR_H */
