// SPDX-License-Identifier: GPL-2.0
/*
 * Parse the list of claims and registers in debugfs, which
 * Documentation/userspace-api/hw_breakpoint.rst describes. Values contain no spaces, except
 * for comm=, which is the last field of a line. Unknown fields are skipped.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <envz.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "slots.h"
#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define SLOTS_FILE	DEBUGFS "/hw_breakpoint/slots"

/**
 * struct line - one line of the file
 * @path, @number: path of the file, and number of the line in it
 * @text: the line
 * @comm: the last field, " comm=..."; the end of @text if there is none
 * @fields, @len: the words before @comm, see argz_create_sep()
 */
struct line {
	const char *path;
	size_t number;
	char *text;
	char *comm;
	char *fields;
	size_t len;
};

static __attribute__((noreturn)) void die_line(const struct line *line, const char *what,
					       const char *key)
{
	die("%s, line %zu: %s%s%s: '%s'", line->path, line->number, what, key, *key ? "=" : "",
	    printable(line->text));
}

static const char *get_value(const struct line *line, const char *key)
{
	const char *value = envz_get(line->fields, line->len, key);

	if (!value)
		die_line(line, "missing ", key);
	return value;
}

static uint64_t get_number(const struct line *line, const char *key, int base, uint64_t max)
{
	const char *value = get_value(line, key);
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, base);
	if (errno || !isdigit((unsigned char)*value) || *end || n > max)
		die_line(line, "invalid number in ", key);
	return n;
}

/* The number of a process, or "-" if it is gone, follows the kind of the owner. */
static char *owner_text(const struct slots *slots, char *owner)
{
	char *who = strchr(owner, ':'), *comm = NULL;
	bool kernel = !strncmp(owner, "kernel:", 7);

	if (!who)
		return owner;
	*who++ = ' ';
	if (!strcmp(who, "-"))
		return xasprintf("%.*s%s", (int)(who - owner - 1), owner, kernel ? "" : " (gone)");
	if (slots->same_pids && !kernel)
		comm = read_line_of(xasprintf("/proc/%d/comm", atoi(who)));
	return comm ? xasprintf("%s (%s)", owner, printable(comm)) : owner;
}

/* Parse the fields that claims and used registers have in common. */
static void parse_breakpoint(const struct slots *slots, struct holding *h,
			     const struct line *line)
{
	h->flexible = !strcmp(get_value(line, "kind"), "flexible");
	h->type = printable(xstrdup(get_value(line, "type")));
	h->len = get_number(line, "len", 10, INT_MAX);
	h->address = get_number(line, "addr", 16, UINT64_MAX);
	h->owner = owner_text(slots, printable(xstrdup(get_value(line, "owner"))));
	if (!envz_entry(line->fields, line->len, "pid"))
		return;
	h->pid = get_number(line, "pid", 10, INT_MAX);
	h->process = envz_entry(line->fields, line->len, "process");
	if (!*line->comm)
		die_line(line, "missing ", "comm");
	h->comm = printable(xstrdup(line->comm + strlen(" comm=")));
}

static void parse_holding(struct slots *slots, const struct line *line, bool claim)
{
	struct holding h = {
		.kind = claim ? HOLDING_CLAIM : HOLDING_REGISTER,
		.pid = SLOTS_NO_TASK,
	};
	int cpu = SLOTS_ANY_CPU;
	bool task;

	if (!claim && envz_entry(line->fields, line->len, "free"))
		h.kind = HOLDING_FREE;
	else
		parse_breakpoint(slots, &h, line);
	task = claim && h.pid != SLOTS_NO_TASK;
	if (!claim || strcmp(get_value(line, "cpu"), task ? "any" : "all"))
		cpu = get_number(line, "cpu", 10, INT16_MAX);
	if (cpu >= slots->nr_cpus)
		slots->nr_cpus = cpu + 1;
	h.weight = claim ? get_number(line, "weight", 10, INT_MAX) : 1;
	h.number = claim ? cpu : (int)get_number(line, "slot", 10, INT_MAX);
	h.section = task ? SLOTS_TASK + h.pid : cpu;
	/* Registers, free or not, are in the order of their numbers. */
	h.key = xasprintf("%016" PRIx64 " %d %d %08x %016" PRIx64 " %08x %s %s",
			  h.section + 1, !claim, claim && h.flexible, h.number + 1U, h.address,
			  h.len, h.type ? h.type : "", h.owner ? h.owner : "");
	GROW(slots->all, slots->nr, slots->room);
	slots->all[slots->nr++] = h;
}

static void parse_line(struct slots *slots, struct line *line)
{
	const char *word;
	char end;

	line->comm = strstr(line->text, " comm=") ?: strchr(line->text, '\0');
	end = *line->comm;
	*line->comm = '\0';
	if (argz_create_sep(line->text, ' ', &line->fields, &line->len))
		die("out of memory");
	*line->comm = end;
	word = line->len ? line->fields : "";
	if (!strcmp(word, "class"))
		slots->registers = get_number(line, "slots", 10, INT_MAX);
	else if (!strcmp(word, "claim") || !strcmp(word, "register"))
		parse_holding(slots, line, !strcmp(word, "claim"));
	else
		die_line(line, "expected class, claim or register", "");
	free(line->fields);
}

/* ---- the file ---- */

/* Why @path, or the list in debugfs, cannot be read */
static char *unreadable(const char *path, int err)
{
	const char *why = strerror(err);

	if (!path && err == ENOENT)
		why = caps_config_bit("flexible") ?
		      "debugfs is not mounted (mount -t debugfs none " DEBUGFS ")" :
		      "this kernel does not list breakpoints, or sysfs is not mounted";
	else if (!path && err == EACCES)
		why = "this requires root";
	return xasprintf("cannot read '%s': %s", path ?: SLOTS_FILE, why);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct holding *)a)->key, ((const struct holding *)b)->key);
}

char *slots_read(struct slots *slots, const char *path)
{
	struct line line = { .path = path ? path : SLOTS_FILE };
	FILE *f = fopen(line.path, "re");
	struct holding *h;
	size_t size = 0;
	long tgid;

	if (!f)
		return unreadable(path, errno);
	*slots = (struct slots){ .same_pids = has_initial_pids() };
	for (errno = 0; getline(&line.text, &size, f) >= 0; errno = 0) {
		line.number++;
		line.text[strcspn(line.text, "\n")] = '\0';
		parse_line(slots, &line);
	}
	if (ferror(f))
		die("%s", unreadable(path, errno));
	if (!slots->registers)
		die("%s lists no registers", line.path);
	free(line.text);
	fclose(f);
	slots->end = slots->all + slots->nr;
	if (slots->nr)
		qsort(slots->all, slots->nr, sizeof(*slots->all), by_key);
	for (h = slots->all; h < slots->end; h++) {
		tgid = slots->same_pids && h->pid > 0 ? read_status(h->pid, "Tgid") : -1;
		h->tgid = tgid > 0 ? tgid : h->pid;
	}
	return NULL;
}

/* ---- queries ---- */

struct holding *slots_find(const struct slots *slots, int64_t section)
{
	size_t low = 0, high = slots->nr, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (slots->all[middle].section < section)
			low = middle + 1;
		else
			high = middle;
	}
	return slots->all + low;
}

struct holding *slots_next(const struct slots *slots, const struct holding *h)
{
	return slots_find(slots, h->section + 1);
}

/* The kernel's rule: all flexible claims that can meet on a CPU count as one register. */
bool slots_full(const struct slots *slots, int cpu, const struct holding *task,
		unsigned int need, bool flexible, bool choose)
{
	/* Claims for all threads are with the main thread. */
	const int64_t sections[] = { SLOTS_ANY_CPU, cpu, task ? task->section : 0,
				     task ? SLOTS_TASK + task->tgid : 0 };
	size_t i, nr = !task ? 2 : task->tgid == task->pid ? 3 : 4;
	uint64_t guaranteed = 0, shared = 0;
	struct holding *h;
	int pass;

	for (pass = 0; pass <= choose; pass++) {
		for (i = 0; i < nr; i++) {
			for (h = slots_find(slots, sections[i]);
			     h < slots->end && h->section == sections[i]; h++) {
				if (h->kind != HOLDING_CLAIM ||
				    (h->number != SLOTS_ANY_CPU && h->number != cpu) ||
				    (i == 3 && !h->process))
					continue;
				h->chosen |= pass && !(h->flexible && flexible);
				guaranteed += pass || h->flexible ? 0 : h->weight;
				shared |= h->flexible && !flexible;
			}
		}
		if (guaranteed + shared + need <= slots->registers)
			return false;
	}
	return true;
}
