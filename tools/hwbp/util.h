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
 * Exit statuses of hwbp itself, the same as those of timeout(1) and env(1). Any other
 * status is that of the launched program.
 */
#define EXIT_HWBP		125
#define EXIT_CANNOT_EXEC	126
#define EXIT_NO_COMMAND		127

#define PRINTF(fmt, args)	__attribute__((format(printf, fmt, args)))

/* Print "hwbp: ..." to stderr and exit with @status. */
void die_status(int status, const char *fmt, ...) __attribute__((noreturn)) PRINTF(2, 3);
/* Print "hwbp: ..." to stderr and exit with EXIT_HWBP. */
void die(const char *fmt, ...) __attribute__((noreturn)) PRINTF(1, 2);
/* Print "hwbp: note: ..." to stderr. */
void note(const char *fmt, ...) PRINTF(1, 2);

/* Never return NULL: exit if memory runs out. */
void *xresize(void *old, size_t size);
void *xzalloc(size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF(1, 2);

/*
 * Make room for one more element in a growing array: @array and @capacity (its
 * capacity) are changed, @nr is the number of elements in use.
 */
#define GROW(array, nr, capacity)						\
	do {									\
		if ((nr) == (capacity)) {					\
			(capacity) = (capacity) ? 2 * (capacity) : 16;		\
			(array) = xresize((array), (capacity) * sizeof(*(array)));	\
		}								\
	} while (0)

/* The part of @path after the last slash. */
const char *base_name(const char *path);

/* Replace control characters and non-ASCII bytes by '?'. Returns @s. */
char *printable(char *s);

/* First line of a file without its newline, NULL if it cannot be read; to be freed */
char *read_line_of(const char *path);

/* Truncate and open the file @path for writing; stdout if @path is NULL. Call this once. */
FILE *open_output(const char *path);

/*
 * Call at the end of a line: flush @out if its buffer is half full. The buffer then never
 * overflows within a line, and a program that writes to the same file does not get its
 * lines into one of ours.
 */
void flush_half_full_output(FILE *out);

/* Flush @out. Exits with a one-line message if this or an earlier write failed. */
void flush_output(FILE *out);

/* Print a number that is padded on its left to @width characters, cheaper than fprintf(). */
void put_number(FILE *out, uint64_t n, int width, char pad);
void put_signed(FILE *out, int64_t n);

/* Print a text of a few characters, cheaper than fputs(). */
void put_short(FILE *out, const char *text);

/* Value of kernel.perf_event_paranoid, 2 if it cannot be read */
long read_paranoid(void);

/* What follows "@field:" in /proc/@pid/status, NULL if there is none; to be freed */
char *read_status_text(pid_t pid, const char *field);
/* The same as a number, -1 if there is none */
long read_status(pid_t pid, const char *field);

/* Returns true if hwbp is in the initial pid namespace, whose pids the kernel prints. */
bool has_initial_pids(void);

/* Returns true if a seccomp filter may refuse system calls of hwbp, as in a container. */
bool has_seccomp_filter(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t now_ns(void);

#endif
