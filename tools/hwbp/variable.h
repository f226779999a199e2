/* SPDX-License-Identifier: GPL-2.0 */
/* Members of structures and arrays, from the debug information. */
#ifndef HWBP_VARIABLE_H
#define HWBP_VARIABLE_H

#include "symbols.h"

/*
 * Find the member @path, such as ".teller[2].n", of the variable @sym, whose name in the
 * source is @name. Sets the offset from the start of the variable, and the size. Exits
 * with a one-line message if there is no such member.
 */
void variable_member(const struct symbol *sym, const char *name, const char *path,
		     uint64_t *offset, uint64_t *size);

#endif
