/* SPDX-License-Identifier: GPL-2.0 */
/* What lies at an address of kernel text, while that comes and goes. */
#ifndef HWBP_TEXT_NAMES_H
#define HWBP_TEXT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct text_names;

/* As the kernel knows them now. */
struct text_names *text_names_new(void);

/* From now on @name lies at @start, or no longer. */
void text_names_add(struct text_names *names, uint64_t start, uint64_t len, const char *name);
void text_names_remove(struct text_names *names, uint64_t start, uint64_t len);

/* Text at @address is new: what the kernel called this place before is void. */
void text_names_renewed(struct text_names *names, uint64_t address);

/*
 * A piece of time begins, in which the kernel is asked for its names at most
 * once: that takes long.
 */
void text_names_begin(struct text_names *names);

/*
 * The symbol that @address belongs to and where that begins, NULL if it is not
 * known.  The name is good until the next call of any of these.
 */
const char *text_names_find(struct text_names *names, uint64_t address, uint64_t *start);

#endif
