/* SPDX-License-Identifier: GPL-2.0 */
/* Turn the PLACE of the command line into an address and a length. */
#ifndef HWBP_LOCATION_H
#define HWBP_LOCATION_H

#include "request.h"
#include "symbols.h"

/**
 * struct location - a watched place
 * @address: address in the running program
 * @len: length in bytes; unused with ACCESS_X
 * @text: PLACE as written by the user
 */
struct location {
	uint64_t address;
	unsigned int len;
	const char *text;
};

/*
 * Find the place that @text names. Returns false if the program, or with @libraries the
 * program and its libraries, have no such symbol: location_die_unknown() exits with a
 * message for this. Exits with a one-line message if the place cannot be watched.
 */
bool location_find(struct location *loc, const char *text, const struct watch_options *opt,
		   struct symbols *syms, bool libraries);
void location_die_unknown(const char *text, const struct watch_options *opt,
			  struct symbols *syms)
	__attribute__((noreturn));

#endif
