/* SPDX-License-Identifier: GPL-2.0 */
/* Symbols of kernel text that is added and removed. */
#ifndef HWBP_TEXT_NAMES_H
#define HWBP_TEXT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct text_names;

/* Read the current symbols of the kernel. */
struct text_names *text_names_new(void);

/* Add or remove the symbol of an area of text. */
void text_names_add(struct text_names *names, uint64_t start, uint64_t len, const char *name);
void text_names_remove(struct text_names *names, uint64_t start, uint64_t len);

/* Text at @address is new: the symbols that were read before are out of date there. */
void text_names_renewed(struct text_names *names, uint64_t address);

/*
 * Allow one more read of /proc/kallsyms, which takes long. To be called once per batch
 * of records.
 */
void text_names_begin(struct text_names *names);

/*
 * Find the symbol of @address and its start. Returns NULL if it is not known. The name
 * is valid until the next call of a function of this file.
 */
const char *text_names_find(struct text_names *names, uint64_t address, uint64_t *start);

#endif
