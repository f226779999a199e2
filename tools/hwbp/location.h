/* SPDX-License-Identifier: GPL-2.0 */
/* What the user wrote, made an address and a length that the hardware can watch. */
#ifndef HWBP_LOCATION_H
#define HWBP_LOCATION_H

#include "options.h"
#include "symbols.h"

/**
 * struct location - what is watched
 * @address: in the running program
 * @len: bytes; of no meaning for ACCESS_X
 * @text: as the user wrote it
 */
struct location {
	uint64_t address;
	unsigned int len;
	const char *text;
};

/*
 * Find what opt->spec names.  False if there is no such name in the program
 * (nor in the libraries, with @libraries); location_die_unknown() says so.
 * Dies with one line if the place can never be watched.
 */
bool location_find(struct location *loc, const struct options *opt, struct symbols *syms,
		   bool libraries);
void location_die_unknown(const struct options *opt, struct symbols *syms)
	__attribute__((noreturn));

#endif
