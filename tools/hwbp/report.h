/* SPDX-License-Identifier: GPL-2.0 */
/* What the user sees: hits as they come, and the counts. */
#ifndef HWBP_REPORT_H
#define HWBP_REPORT_H

#include "events.h"
#include "location.h"
#include "options.h"
#include "symbols.h"
#include "tasks.h"

struct report;

/* Opens the output file; dies if that is not possible. */
struct report *report_new(const struct options *opt);

/* What is watched, in which program, since when. */
void report_begin(struct report *rep, const struct location *loc, struct symbols *syms,
		  const struct target *t, uint64_t start);

void report_hit(struct report *rep, const struct hit *hit, struct tasks *tasks);
uint64_t report_nr_hits(const struct report *rep);

/* The code at these addresses is another from now on. */
void report_unmapped(struct report *rep, uint64_t start, uint64_t len);

void report_flush(struct report *rep);

/* The counts per place; @lost hits could not be shown. */
void report_places(struct report *rep, uint64_t lost);
void report_counts(struct report *rep, const struct counts *counts);

#endif
