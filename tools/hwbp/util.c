// SPDX-License-Identifier: GPL-2.0
/* Messages, allocation and small files. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

/* Size of the buffer of a report in bytes; a line is much shorter. */
#define OUTPUT_BUFFER	65536

/* Inode of the initial pid namespace, the same on all machines */
#define INIT_PID_NS	0xeffffffcU

static void message(const char *prefix, const char *fmt, va_list ap)
{
	/* Print the report so far before the message. */
	fflush(NULL);
	fputs(prefix, stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void die_status(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message("hwbp: ", fmt, ap);
	va_end(ap);
	exit(status);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message("hwbp: ", fmt, ap);
	va_end(ap);
	exit(EXIT_HWBP);
}

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message("hwbp: note: ", fmt, ap);
	va_end(ap);
}

void *xresize(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		die("out of memory");
	return p;
}

void *xzalloc(size_t size)
{
	return memset(xresize(NULL, size), 0, size);
}

char *xstrdup(const char *s)
{
	size_t size = strlen(s) + 1;

	return memcpy(xresize(NULL, size), s, size);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("out of memory");
	return s;
}

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *printable(char *s)
{
	char *p;

	for (p = s; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	return s;
}

char *read_line_of(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (!f)
		return NULL;
	n = getline(&line, &size, f);
	fclose(f);
	if (n < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

FILE *open_output(const char *path)
{
	/* The C library ignores the size if it is to allocate the buffer itself. */
	static char buffer[OUTPUT_BUFFER];
	FILE *out = path ? fopen(path, "we") : stdout;

	if (!out)
		die("cannot write to '%s': %s", path, strerror(errno));
	if (!isatty(fileno(out)))
		setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	return out;
}

void flush_half_full_output(FILE *out)
{
	if (__fpending(out) > OUTPUT_BUFFER / 2)
		flush_output(out);
}

void flush_output(FILE *out)
{
	if (fflush(out) || ferror(out))
		die("cannot write the report: %s", strerror(errno));
}

void put_number(FILE *out, uint64_t n, int width, char pad)
{
	char digits[20];
	int nr = 0;

	do {
		digits[nr++] = '0' + n % 10;
		n /= 10;
	} while (n);
	for (; width > nr; width--)
		putc_unlocked(pad, out);
	while (nr)
		putc_unlocked(digits[--nr], out);
}

void put_signed(FILE *out, int64_t n)
{
	if (n < 0)
		putc_unlocked('-', out);
	put_number(out, n < 0 ? -(uint64_t)n : (uint64_t)n, 0, 0);
}

void put_short(FILE *out, const char *text)
{
	while (*text)
		putc_unlocked(*text++, out);
}

long read_paranoid(void)
{
	char *line = read_line_of("/proc/sys/kernel/perf_event_paranoid");
	long level = line ? atol(line) : 2;

	free(line);
	return level;
}

char *read_status_text(pid_t pid, const char *field)
{
	char *name = xasprintf("/proc/%d/status", pid), *text = NULL;
	FILE *f = fopen(name, "re");
	size_t len = strlen(field);
	char line[256];

	while (f && !text && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, field, len) && line[len] == ':')
			text = xstrdup(line + len + 1 + strspn(line + len + 1, " \t"));
	}
	if (f)
		fclose(f);
	free(name);
	return text;
}

long read_status(pid_t pid, const char *field)
{
	char *text = read_status_text(pid, field);
	long n = text ? atol(text) : -1;

	free(text);
	return n;
}

bool has_initial_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INIT_PID_NS;
}

bool has_seccomp_filter(void)
{
	return read_status(getpid(), "Seccomp") == SECCOMP_MODE_FILTER;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}
