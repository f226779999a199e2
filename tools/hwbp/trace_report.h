/* SPDX-License-Identifier: GPL-2.0 */
/* The report of hwbp trace: what trace_pipe prints, formatted. */
#ifndef HWBP_TRACE_REPORT_H
#define HWBP_TRACE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "location.h"

/**
 * struct trace_report - a report
 * @out: output file
 * @json: print JSON
 * @callers: each hit is followed by a stack
 * @event: name of the watch event
 * @loc: length and type of the values
 * @max_hits: number of hits to print, 0 for no limit
 * @nr: number of hits so far
 * @waiting: for each CPU, the hit whose stack has not come yet
 * @stack: the hit of @waiting whose stack is being read, or NULL
 * @sites: the instructions
 * @nr_sites: number of @sites
 * @capacity: capacity of @sites
 */
struct trace_report {
	FILE *out;
	bool json;
	bool callers;
	const char *event;
	const struct location *loc;
	uint64_t max_hits;
	uint64_t nr;
	struct trace_hit *waiting;
	struct trace_hit *stack;
	struct trace_site *sites;
	size_t nr_sites;
	size_t capacity;
};

/* Add a line of trace_pipe, without its newline. */
void trace_report_line(struct trace_report *rep, char *line);

/* All that the kernel has recorded so far was added: a stack that has begun is complete. */
void trace_report_pause(struct trace_report *rep);

bool trace_report_is_full(const struct trace_report *rep);

/* End the report. @objects: counters of the trigger, "set: 3 evicted: 1", or NULL */
void trace_report_end(struct trace_report *rep, const char *objects);

#endif
