/* SPDX-License-Identifier: GPL-2.0 */
/* Functions and variables of the kernel. */
#ifndef HWBP_KALLSYMS_H
#define HWBP_KALLSYMS_H

#include "symbols.h"

/* As symbols_place(), without a source line, for accesses made in kernel mode. */
void kallsyms_place(uint64_t ip, struct place *place);

/* "jiffies" or "table+0x10", NULL if it is not known; to be freed. */
char *kallsyms_name(uint64_t address);

/*
 * The function that begins at or before @address: its start and its name,
 * "schedule" or "fib_rule [module]", which stays good until they are read anew.
 * NULL if there is none or it is too far away.
 */
const char *kallsyms_function(uint64_t address, uint64_t *start);

/* Where the function or label @name is, 0 if that is not known. */
uint64_t kallsyms_address(const char *name);

/* Read all functions anew: modules come and go. */
void kallsyms_reread(void);

#endif
