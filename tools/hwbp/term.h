/* SPDX-License-Identifier: GPL-2.0 */
/* Colours, and a summary at the bottom of a terminal. */
#ifndef HWBP_TERM_H
#define HWBP_TERM_H

#include <stdbool.h>
#include <stdio.h>

/**
 * struct term - output that may be a terminal
 * @out: the output
 * @live: a summary can be shown
 * @colour: styles can be used
 * @rows: height of the terminal, 0 before the first summary
 * @columns: width of the terminal
 * @lines: number of lines that are reserved for the summary
 */
struct term {
	FILE *out;
	bool live;
	bool colour;
	unsigned int rows;
	unsigned int columns;
	unsigned int lines;
};

/* Use no colour and no summary with @plain, or if @out is not a capable terminal. */
void term_init(struct term *term, FILE *out, bool plain);

/* Escape sequences that set and reset a style; empty without colours */
#define STYLE_STRONG	"1"
#define STYLE_WEAK	"2"
#define STYLE_PLACE	"36"
const char *term_style(const struct term *term, const char *style);
const char *term_reset(const struct term *term);

/* Width in columns, 0 if the output is not a capable terminal */
unsigned int term_width(const struct term *term);

/* Number of lines that a summary may have, at most @wanted */
unsigned int term_room(const struct term *term, unsigned int wanted);

/*
 * Show @text in the last @lines of the terminal. Other output, also that of other
 * programs, scrolls above them.
 */
void term_draw(struct term *term, const char *text, unsigned int lines);

/* Remove the summary. Also called at exit. */
void term_end(struct term *term);

#endif
