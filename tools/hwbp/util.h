/* SPDX-License-Identifier: GPL-2.0 */
/* Messages, allocation and small files. */
#ifndef HWBP_UTIL_H
#define HWBP_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Exit statuses of hwbp itself.  Everything else is the status of the program
 * that was launched; the values are those of timeout(1) and env(1).
 */
#define EXIT_HWBP		125
#define EXIT_CANNOT_EXEC	126
#define EXIT_NO_COMMAND		127

#define PRINTF(fmt, args)	__attribute__((format(printf, fmt, args)))

/* One line "hwbp: ..." on stderr, then exit with @status. */
void die_status(int status, const char *fmt, ...) __attribute__((noreturn)) PRINTF(2, 3);
/* The same with status EXIT_HWBP. */
void die(const char *fmt, ...) __attribute__((noreturn)) PRINTF(1, 2);
/* One line "hwbp: note: ..." on stderr. */
void note(const char *fmt, ...) PRINTF(1, 2);

/* These die when memory runs out, so they never return NULL. */
void *xrealloc(void *old, size_t size);
void *xzalloc(size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);

/*
 * Make room for one more element in a growing array: @array and @room (its
 * capacity) are changed, @nr is the number of elements in use.
 */
#define GROW(array, nr, room)							\
	do {									\
		if ((nr) == (room)) {						\
			(room) = (room) ? 2 * (room) : 16;			\
			(array) = xrealloc((array), (room) * sizeof(*(array)));	\
		}								\
	} while (0)

/* The part of @path after the last slash. */
const char *base_name(const char *path);

/* Replace what would do something to a terminal; returns @s. */
char *printable(char *s);

/* First line of a small file without its newline, NULL when unreadable. */
char *read_line_of(const char *path);

/* Where to write to: the file @path, which becomes empty, or stdout for NULL. */
FILE *open_output(const char *path);

/* Write out what @out still holds; dies if that, or anything before it, failed. */
void flush_output(FILE *out);

/* Call @fn for each CPU that is online. */
void visit_online_cpus(void (*fn)(void *arg, int cpu), void *arg);

/* The setting kernel.perf_event_paranoid. */
long read_paranoid(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t now_ns(void);

#endif
