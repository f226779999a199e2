/* SPDX-License-Identifier: GPL-2.0 */
/* Output of 'hwbp watch' and 'hwbp stat'. */
#ifndef HWBP_REPORT_H
#define HWBP_REPORT_H

#include "events.h"
#include "location.h"
#include "request.h"
#include "symbols.h"
#include "tasks.h"

struct report;

/* Open the output file. Exits with a one-line message on failure. */
struct report *report_new(const struct watch_options *opt);

/*
 * Print the watched places, the program and the titles of the columns. @values: where the
 * values of the places come from.
 */
void report_begin(struct report *rep, const struct location *locs, struct symbols *syms,
		  const struct target *t, enum values values, uint64_t start);

void report_hit(struct report *rep, const struct hit *hit, struct tasks *tasks);
uint64_t report_nr_hits(const struct report *rep);

/* Other code is mapped at these addresses from now on. */
void report_unmapped(struct report *rep, uint64_t start, uint64_t len);

void report_flush(struct report *rep);

/* Show the counts so far at the bottom of the terminal, if the output is one. */
bool report_is_live(const struct report *rep);
void report_live(struct report *rep, const struct counts *counts);

/* The program was killed by this signal, 0 for none; the end of the report says so. */
void report_signal(struct report *rep, int signal);

/* Print the counts per instruction, or per place; @counts has an entry per place. */
void report_places(struct report *rep, const struct counts *counts);
void report_counts(struct report *rep, const struct counts *counts);

#endif
