/* SPDX-License-Identifier: GPL-2.0 */
/* Functions of the kernel, for accesses made in kernel mode. */
#ifndef HWBP_KALLSYMS_H
#define HWBP_KALLSYMS_H

#include "symbols.h"

/* As symbols_place(), without a source line. */
void kallsyms_place(uint64_t ip, struct place *place);

#endif
