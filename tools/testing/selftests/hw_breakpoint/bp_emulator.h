/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workarounds for QEMU's translator (TCG), which knows debug registers but differs
 * from a processor: it reports one data breakpoint of an instruction, none of a locked
 * one, and takes an unaligned access for an access to the aligned words around it.
 */
#ifndef BP_EMULATOR_H
#define BP_EMULATOR_H

#include <stdbool.h>

/* True in the translator, by its CPUID leaf; a processor needs no workaround. */
bool bp_emulated(void);

/*
 * The translator remembers the hit of a data breakpoint until an access to the page
 * misses it, and reports the hit again if one in another register is hit before that.
 * bp_settle() follows an access to the test page with one to its last byte, which no
 * breakpoint watches. It does nothing for an address outside that page.
 */
void bp_settle(void *p);

#endif /* BP_EMULATOR_H */
