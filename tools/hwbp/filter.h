/* SPDX-License-Identifier: GPL-2.0 */
/* The expression of --if: "new < old - 10 && new.state != CLOSED". */
#ifndef HWBP_FILTER_H
#define HWBP_FILTER_H

#include "location.h"

struct filter;

/*
 * Parse an expression over the value of a place before and after an access. Exits with a
 * one-line message, which has the column, if it is not valid.
 */
struct filter *filter_parse(const char *text, const struct location *loc);

/*
 * Returns false if the expression is false. What is not known, because @before or @after is
 * NULL or something is divided by zero, is accepted.
 */
bool filter_accepts(const struct filter *filter, const uint8_t *before, const uint8_t *after);

#endif
