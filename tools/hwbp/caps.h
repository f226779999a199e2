/* SPDX-License-Identifier: GPL-2.0 */
/* Features of the kernel's breakpoint PMU, from sysfs. */
#ifndef HWBP_CAPS_H
#define HWBP_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* The bit of attr.config that is called @name in format/, 0 if there is none */
uint64_t caps_config_bit(const char *name);

/* Number of registers of each CPU; 4, as on x86, if sysfs does not show it */
unsigned int caps_registers(bool execute);

/*
 * Exits with a message if the kernel refuses even an event of hwbp itself: then a refusal
 * is not about what the event is for.
 */
void caps_die_if_refused(void);

/* Print a note if the kernel has found that breakpoints do not fire. */
void caps_note_unverified(void);

#endif
