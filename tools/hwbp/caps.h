/* SPDX-License-Identifier: GPL-2.0 */
/* Features of the kernel's PMUs, from sysfs. */
#ifndef HWBP_CAPS_H
#define HWBP_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* The bit of attr.config that is called @name in format/ of breakpoints, 0 if there is none */
uint64_t caps_config_bit(const char *name);

/*
 * Type and config of an event that records areas of kernel text. Returns false if the
 * kernel has no such events.
 */
bool caps_text_areas(uint32_t *type, uint64_t *config);

/* Number of registers of each CPU; 4, as on x86, if sysfs does not show it */
unsigned int caps_registers(bool execute);

/* Maximum length of a data breakpoint at any address; 0 if only 1, 2, 4 and 8 are possible */
unsigned int caps_max_length(void);

/* Print a note if the kernel has found that breakpoints do not fire. */
void caps_note_unverified(void);

#endif
