/* SPDX-License-Identifier: GPL-2.0 */
/* Symbols of the kernel, from /proc/kallsyms. */
#ifndef HWBP_KALLSYMS_H
#define HWBP_KALLSYMS_H

#include "symbols.h"

/* Like symbols_place() for an instruction of the kernel; there is no source line. */
void kallsyms_place(uint64_t ip, struct place *place);

/* Name of an address: "jiffies" or "table+0x10", NULL if unknown; to be freed. */
char *kallsyms_name(uint64_t address);

/*
 * Find the function at @address. Returns its name, such as "schedule" or
 * "fib_rule [module]", which is valid until kallsyms_reread(), and sets *@start.
 * Returns NULL if no function starts at or near before @address.
 */
const char *kallsyms_function(uint64_t address, uint64_t *start);

/* Address of the function or label @name, 0 if unknown */
uint64_t kallsyms_address(const char *name);

/* Read the functions again: modules may have been loaded or unloaded. */
void kallsyms_reread(void);

#endif
