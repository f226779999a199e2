/* SPDX-License-Identifier: GPL-2.0 */
/* What the user sees of changes of kernel text. */
#ifndef HWBP_TEXT_REPORT_H
#define HWBP_TEXT_REPORT_H

#include <stdint.h>

#include "options.h"
#include "text.h"

struct text_report;

/* Opens the output file; dies if that is not possible. */
struct text_report *text_report_new(const struct options *opt);

/* To be called when the kernel is listened to already: it takes a while. */
void text_report_prepare(struct text_report *rep);

/* Since when; what is older is not shown. */
void text_report_begin(struct text_report *rep, uint64_t start);

/* Each in the order of time. */
void text_report_change(struct text_report *rep, const struct text_change *change);
void text_report_area(struct text_report *rep, const struct text_area *area);
void text_report_lost(struct text_report *rep, uint64_t time, uint32_t cpu, uint64_t nr);

/* To be called now and then, when all that is known has been told. */
void text_report_flush(struct text_report *rep);

/* The counts; @lost records are missing in all. */
void text_report_end(struct text_report *rep, uint64_t lost);

#endif
