// SPDX-License-Identifier: GPL-2.0
/*
 * Colours, and a summary at the bottom of a terminal.
 *
 * The summary lies below the scrolling region, so that the watched program can write to
 * the terminal at any time: its output and the hits scroll above the summary.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "term.h"
#include "util.h"

#define SAVE_CURSOR	"\0337"
#define RESTORE_CURSOR	"\0338"

/* A terminal has to have this many rows more than the summary. */
#define MIN_ROWS	8

/* The terminal whose scrolling region is to be reset at exit */
static struct term *reserved;

void term_init(struct term *term, FILE *out, bool plain)
{
	const char *name = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool capable = !plain && isatty(fileno(out)) && name && strcmp(name, "dumb");

	memset(term, 0, sizeof(*term));
	term->out = out;
	term->live = capable;
	term->colour = capable && !(no_color && *no_color);
}

const char *term_style(const struct term *term, const char *style)
{
	static char buf[4][16];
	static unsigned int next;
	char *text = buf[next++ % 4];

	if (!term->colour)
		return "";
	snprintf(text, sizeof(buf[0]), "\033[%sm", style);
	return text;
}

const char *term_reset(const struct term *term)
{
	return term->colour ? "\033[0m" : "";
}

static bool get_size(const struct term *term, struct winsize *size)
{
	return !ioctl(fileno(term->out), TIOCGWINSZ, size) && size->ws_row && size->ws_col;
}

unsigned int term_width(const struct term *term)
{
	struct winsize size;

	return term->live && get_size(term, &size) ? size.ws_col : 0;
}

unsigned int term_room(const struct term *term, unsigned int wanted)
{
	struct winsize size;
	unsigned int room;

	if (!term->live || !get_size(term, &size) || size.ws_row < MIN_ROWS + 2)
		return 0;
	room = size.ws_row - MIN_ROWS;
	return wanted < room ? wanted : room;
}

static void end_reserved(void)
{
	if (reserved)
		term_end(reserved);
}

/* Make room below the cursor, and let the rest of the terminal scroll. */
static void reserve(struct term *term, const struct winsize *size, unsigned int lines)
{
	unsigned int i;

	if (!reserved)
		atexit(end_reserved);
	reserved = term;
	for (i = 0; i < lines; i++)
		fputc('\n', term->out);
	fprintf(term->out, SAVE_CURSOR "\033[1;%ur" RESTORE_CURSOR "\033[%uA",
		size->ws_row - lines, lines);
	term->rows = size->ws_row;
	term->columns = size->ws_col;
	term->lines = lines;
}

static void put_lines(const struct term *term, const char *text)
{
	unsigned int i;

	for (i = 0; i < term->lines; i++) {
		size_t len = strcspn(text, "\n");

		/* A line that wraps would move the next ones. */
		fprintf(term->out, "\033[%u;1H\033[2K%.*s", term->rows - term->lines + 1 + i,
			(int)(len < term->columns ? len : term->columns - 1), text);
		text += text[len] ? len + 1 : len;
	}
}

void term_draw(struct term *term, const char *text, unsigned int lines)
{
	struct winsize size;

	if (!term->live || !lines || !get_size(term, &size))
		return;
	if (term->lines != lines || term->rows != size.ws_row || term->columns != size.ws_col) {
		term_end(term);
		reserve(term, &size, lines);
	}
	fputs(SAVE_CURSOR, term->out);
	put_lines(term, text);
	fputs(RESTORE_CURSOR, term->out);
	fflush(term->out);
}

void term_end(struct term *term)
{
	if (!term->lines)
		return;
	fprintf(term->out, SAVE_CURSOR "\033[r\033[%u;1H\033[J" RESTORE_CURSOR,
		term->rows - term->lines + 1);
	fflush(term->out);
	term->lines = 0;
	reserved = NULL;
}
