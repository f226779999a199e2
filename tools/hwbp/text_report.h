/* SPDX-License-Identifier: GPL-2.0 */
/* Output of 'hwbp text'. */
#ifndef HWBP_TEXT_REPORT_H
#define HWBP_TEXT_REPORT_H

#include <stdint.h>

#include "text.h"

struct text_report;

/* Open the output file. Exits with a one-line message on failure. */
struct text_report *text_report_new(const struct text_options *opt);

/* Read the symbols. This takes long: call it when recording has started. */
void text_report_prepare(struct text_report *rep);

/* Begin the report at the time @start; older records are not shown. */
void text_report_begin(struct text_report *rep, uint64_t start);

/* Show a record. To be called in the order of time. */
void text_report_change(struct text_report *rep, const struct text_change *change);
void text_report_area(struct text_report *rep, const struct text_area *area);
void text_report_lost(struct text_report *rep, uint64_t time, uint32_t cpu, uint64_t nr);

/* Flush the output. To be called after each batch of records. */
void text_report_flush(struct text_report *rep);

/* Print the counts. @lost is the total number of lost records. */
void text_report_end(struct text_report *rep, uint64_t lost);

#endif
