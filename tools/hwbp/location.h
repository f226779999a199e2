/* SPDX-License-Identifier: GPL-2.0 */
/* Turn the PLACE of the command line into an address and a length. */
#ifndef HWBP_LOCATION_H
#define HWBP_LOCATION_H

#include "request.h"
#include "symbols.h"
#include "type.h"

/**
 * struct location - a watched place
 * @address: address in the running program
 * @len: length in bytes; unused with ACCESS_X
 * @text: PLACE as written by the user
 * @type: type of the object there, NULL if not known or not the whole object is watched
 * @bit_offset: first bit of a bit-field, counted from @address
 * @bit_size: number of bits of a bit-field, 0 for other objects
 */
struct location {
	uint64_t address;
	unsigned int len;
	const char *text;
	const struct type *type;
	unsigned int bit_offset;
	unsigned int bit_size;
};

/*
 * Find the place that @text names. @ready: the libraries are loaded; before, libraries are
 * not searched, and pointers not followed. Returns false if the place is unknown:
 * location_die_unknown() exits with a message for this. Exits with a one-line message if
 * the place cannot be watched.
 */
bool location_find(struct location *loc, const char *text, const struct watch_options *opt,
		   struct symbols *syms, bool ready);
/*
 * The library that @text names, as in "libx.so:counter", if it is not mapped; NULL if it is
 * or @text names none. To be freed.
 */
char *location_missing_library(const char *text, struct symbols *syms);

void location_die_unknown(const char *text, const struct watch_options *opt,
			  struct symbols *syms)
	__attribute__((noreturn));

#endif
