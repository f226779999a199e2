// SPDX-License-Identifier: GPL-2.0
/* The report of hwbp trace: what trace_pipe prints, formatted. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "change.h"
#include "json.h"
#include "trace_report.h"
#include "util.h"

#define MAX_CALLERS	32

/**
 * struct trace_hit - a hit whose stack has not come yet
 * @line: the line of the hit, NULL if there is none
 * @caller: functions, the one that was hit first
 * @nr: number of @caller
 */
struct trace_hit {
	char *line;
	char *caller[MAX_CALLERS];
	size_t nr;
};

/**
 * struct trace_site - an instruction
 * @where: function+offset/size
 * @hits: number of its hits
 */
struct trace_site {
	char *where;
	uint64_t hits;
};

/* ---- hits ---- */

/*
 * Copy of @task, "comm-pid"; to be freed. The trace has "<...>" if the kernel did not record
 * the name, for example that of a thread that has not been switched since the event was
 * enabled: look it up.
 */
static char *named_task(const char *task)
{
	static const char unknown[] = "<...>-";
	char *path, *comm, *named;

	if (strncmp(task, unknown, strlen(unknown)) || !has_initial_pids())
		return xstrdup(task);
	task += strlen(unknown);
	path = xasprintf("/proc/%s/comm", task);
	comm = read_line_of(path);
	named = xasprintf("%s-%s", comm ? comm : "<...>", task);
	free(comm);
	free(path);
	return named;
}

static void count_site(struct trace_report *rep, const char *where)
{
	size_t i;

	for (i = 0; i < rep->nr_sites && strcmp(rep->sites[i].where, where); i++)
		;
	if (i == rep->nr_sites) {
		GROW(rep->sites, rep->nr_sites, rep->capacity);
		rep->sites[rep->nr_sites++] = (struct trace_site){ .where = xstrdup(where) };
	}
	rep->sites[i].hits++;
}

/* The number behind "key=" in @args, 0 if there is none */
static uint64_t number_of(const char *args, const char *key)
{
	const char *text = strstr(args, key);

	return text ? strtoull(text + strlen(key), NULL, 0) : 0;
}

/* Bytes of the value that @key names, NULL if it is not known */
static const uint8_t *value_of(const char *args, const char *key, unsigned int known,
			       uint64_t *buf)
{
	*buf = number_of(args, key);
	return number_of(args, " known=") & known ? (const uint8_t *)buf : NULL;
}

static void print_hit(const struct trace_report *rep, const struct trace_hit *hit,
		      const char *time, char *task, int cpu, const char *args, const char *where)
{
	static const struct value_format format;
	uint64_t old, new;
	size_t i;

	fprintf(rep->out, "%14s  %-20s cpu %d  addr=%#" PRIx64 "  ", time, printable(task), cpu,
		number_of(args, "addr="));
	if (strstr(args, " known=")) {
		change_print(rep->out, &format, rep->loc, value_of(args, " old=", 1, &old),
			     value_of(args, " value=", 2, &new));
		fputs("  ", rep->out);
	}
	fprintf(rep->out, "%s\n", where);
	for (i = 1; i < hit->nr; i++)
		fprintf(rep->out, "%43s %s\n", "by", hit->caller[i]);
}

static void json_hit(const struct trace_report *rep, const struct trace_hit *hit,
		     const char *time, char *task, int cpu, const char *args, const char *where)
{
	static const struct value_format format;
	struct json json = json_begin(rep->out, "hit");
	char *dash = strrchr(task, '-');
	uint64_t old, new;
	size_t i;

	/* The time that the trace prints: seconds of its clock */
	json_u64(&json, "time_us", strtod(time, NULL) * 1e6);
	json_int(&json, "tid", dash ? atoi(dash + 1) : 0);
	if (dash)
		*dash = '\0';
	json_string(&json, "comm", task);
	json_int(&json, "cpu", cpu);
	json_address(&json, "address", number_of(args, "addr="));
	if (strstr(args, " known="))
		change_json(&json, &format, rep->loc, value_of(args, " old=", 1, &old),
			    value_of(args, " value=", 2, &new));
	json_string(&json, "instruction", where);
	if (rep->callers)
		json_array_begin(&json, "callers");
	for (i = 1; i < hit->nr; i++) {
		json_element_begin(&json);
		json_string(&json, "function", hit->caller[i]);
		json_element_end(&json);
	}
	if (rep->callers)
		json_array_end(&json);
	json_end(&json);
}

/*
 *   comm-pid   [cpu] flags  time: name: (symbol+off/size) addr=... value=...
 * The name of a thread may contain any character: search from the right.
 */
static void show_hit(struct trace_report *rep, struct trace_hit *hit)
{
	char *mark = xasprintf(": %s: (", rep->event), *line = hit->line;
	char *rest = strstr(line, mark), *where = rest + strlen(mark), *args, *cpu, *time, *task;

	*rest = '\0';
	args = strstr(where, ") ");
	cpu = strrchr(line, '[');
	time = strrchr(line, ' ');
	if (args && cpu && time && !trace_report_is_full(rep)) {
		*args++ = '\0';
		*cpu++ = '\0';
		line += strspn(line, " ");
		line[strcspn(line, "\t\n")] = '\0';
		while (*line && line[strlen(line) - 1] == ' ')
			line[strlen(line) - 1] = '\0';
		task = named_task(line);
		rep->nr++;
		count_site(rep, where);
		(rep->json ? json_hit : print_hit)(rep, hit, time + 1, task, atoi(cpu), args,
						   where);
		free(task);
	}
	while (hit->nr)
		free(hit->caller[--hit->nr]);
	free(hit->line);
	free(mark);
	hit->line = NULL;
}

/* ---- lines ---- */

/* The hit of the CPU that has recorded @line */
static struct trace_hit *hit_of(struct trace_report *rep, const char *line, const char *end)
{
	static struct trace_hit unknown;
	long nr = sysconf(_SC_NPROCESSORS_CONF), cpu = 0;
	const char *p;

	if (!rep->waiting)
		rep->waiting = xzalloc(nr * sizeof(*rep->waiting));
	for (p = line; p < end; p++) {
		if (*p == '[')
			cpu = atoi(p + 1);
	}
	return cpu < nr ? &rep->waiting[cpu] : &unknown;
}

static void show_lost(const struct trace_report *rep, char *line)
{
	struct json json;

	if (!rep->json) {
		fprintf(rep->out, "%s\n", printable(line));
		return;
	}
	json = json_begin(rep->out, "lost");
	json_string(&json, "text", line);
	json_end(&json);
}

/*
 * The stack of a hit is an entry of its own, and follows it on its CPU:
 *   comm-pid   [cpu] flags  time: <stack trace>
 *    => function
 */
void trace_report_line(struct trace_report *rep, char *line)
{
	char *mark = xasprintf(": %s: (", rep->event);
	const char *at = strstr(line, mark), *stack = strstr(line, ": <stack trace>");
	struct trace_hit *hit;

	if (rep->stack && !strncmp(line, " => ", 4)) {
		if (rep->stack->nr < MAX_CALLERS)
			rep->stack->caller[rep->stack->nr++] = xstrdup(line + 4);
		goto out;
	}
	trace_report_pause(rep);
	if (at) {
		hit = hit_of(rep, line, at);
		if (hit->line)
			show_hit(rep, hit);
		hit->line = xstrdup(line);
		if (!rep->callers)
			show_hit(rep, hit);
	} else if (stack) {
		hit = hit_of(rep, line, stack);
		rep->stack = hit->line ? hit : NULL;
	} else if (strstr(line, "LOST")) {
		show_lost(rep, line);
	}
out:
	free(mark);
}

void trace_report_pause(struct trace_report *rep)
{
	if (rep->stack)
		show_hit(rep, rep->stack);
	rep->stack = NULL;
}

bool trace_report_is_full(const struct trace_report *rep)
{
	return rep->max_hits && rep->nr >= rep->max_hits;
}

/* ---- the end ---- */

static int by_hits(const void *a, const void *b)
{
	const struct trace_site *x = a, *y = b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return strcmp(x->where, y->where);
}

static void print_end(const struct trace_report *rep, const char *objects)
{
	size_t i;

	if (objects)
		fprintf(rep->out, "objects:%s\n", objects);
	fprintf(rep->out, "%" PRIu64 " hit%s\n", rep->nr, rep->nr == 1 ? "" : "s");
	/* The only one is in each line. */
	if (rep->nr_sites < 2)
		return;
	fprintf(rep->out, "%11s %8s  INSTRUCTION\n", "HITS", "PERCENT");
	for (i = 0; i < rep->nr_sites; i++)
		fprintf(rep->out, "%11" PRIu64 " %7.2f%%  %s\n", rep->sites[i].hits,
			100.0 * rep->sites[i].hits / rep->nr, rep->sites[i].where);
}

static void json_end_of(const struct trace_report *rep, const char *objects)
{
	struct json json;
	size_t i;

	for (i = 0; i < rep->nr_sites; i++) {
		json = json_begin(rep->out, "instruction");
		json_u64(&json, "hits", rep->sites[i].hits);
		json_string(&json, "instruction", rep->sites[i].where);
		json_end(&json);
	}
	json = json_begin(rep->out, "end");
	json_u64(&json, "hits", rep->nr);
	if (objects)
		json_string(&json, "objects", objects + strspn(objects, " "));
	json_end(&json);
}

void trace_report_end(struct trace_report *rep, const char *objects)
{
	long cpu, nr = rep->waiting ? sysconf(_SC_NPROCESSORS_CONF) : 0;

	trace_report_pause(rep);
	for (cpu = 0; cpu < nr; cpu++) {
		if (rep->waiting[cpu].line)
			show_hit(rep, &rep->waiting[cpu]);
	}
	if (rep->nr_sites)
		qsort(rep->sites, rep->nr_sites, sizeof(*rep->sites), by_hits);
	(rep->json ? json_end_of : print_end)(rep, objects);
	flush_output(rep->out);
}
