// SPDX-License-Identifier: GPL-2.0
/*
 * Parse the list of claims and registers in debugfs.
 *
 * Each line is a word followed by fields:
 *
 *   class name=any slots=4
 *   claim pid=123 cpu=any kind=guaranteed class=any weight=1 type=w len=4
 *	   addr=0x55d0 owner=perf:456 comm=my program
 *   register cpu=0 slot=2 free
 *
 * A claim of a task has cpu=any or the number of a CPU, a claim of a CPU the number
 * of the CPU, and the claim of a kernel-wide breakpoint cpu=all.
 *
 * Values contain no spaces, except for comm=, which is the last field and extends to
 * the end of the line.  Unknown fields are skipped.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "slots.h"
#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define SLOTS_FILE	DEBUGFS "/hw_breakpoint/slots"

/**
 * struct line - one line of the file
 * @path: path of the file
 * @number: line number, from 1
 * @text: the line
 * @comm: the last field, " comm=..."; the end of @text if there is none
 */
struct line {
	const char *path;
	size_t number;
	char *text;
	const char *comm;
};

static void die_line(const struct line *line, const char *what, const char *key)
	__attribute__((noreturn));

static void die_line(const struct line *line, const char *what, const char *key)
{
	die("%s, line %zu: %s%s%s: '%s'", line->path, line->number, what, key, *key ? "=" : "",
	    printable(line->text));
}

/* The text behind the name of the first field @key, NULL if there is none */
static const char *find_field(const struct line *line, const char *key)
{
	size_t len = strlen(key);
	const char *s = line->text;

	while ((s = strstr(s, key)) && s < line->comm) {
		s += len;
		if (s - len > line->text && s[-len - 1] == ' ' && strchr("= ", *s))
			return s;
	}
	return NULL;
}

static char *get_value(const struct line *line, const char *key)
{
	const char *s = find_field(line, key);

	if (!s || *s != '=')
		die_line(line, "missing ", key);
	return xasprintf("%.*s", (int)strcspn(s + 1, " "), s + 1);
}

static uint64_t get_number(const struct line *line, const char *key, int base, uint64_t max)
{
	char *value = get_value(line, key), *end;
	uint64_t n;

	errno = 0;
	n = strtoull(value, &end, base);
	if (errno || !isdigit((unsigned char)*value) || *end || n > max)
		die_line(line, "invalid number in ", key);
	free(value);
	return n;
}

/* Index of the value in @words, which NULL ends */
static int get_choice(const struct line *line, const char *key, const char *const *words)
{
	char *value = get_value(line, key);
	int i;

	for (i = 0; words[i] && strcmp(value, words[i]); i++)
		;
	if (!words[i])
		die_line(line, "unknown value of ", key);
	free(value);
	return i;
}

/* A name, a pid, or "-" if it is gone, follows the kind of the owner. */
static char *owner_text(const struct slots *slots, char *owner)
{
	char *who = strchr(owner, ':'), *comm = NULL;

	if (!who || (who[1] != '-' && strncmp(owner, "kernel:", 7) &&
		     who[1 + strspn(who + 1, "0123456789")]))
		return owner;
	*who++ = '\0';
	if (*who == '-')
		return xasprintf("%s%s", owner, *owner == 'k' ? "" : !strcmp(owner, "perf") ?
				 ", opener has exited" : ", no tracer now");
	/* A handler, or the name of a kernel-wide breakpoint */
	if (*owner == 'k')
		return xasprintf("kernel %s%s", who, strchr(who, '/') ? "" : "()");
	/* A task that has exited has no name. */
	if (slots->same_pids)
		comm = read_line_of(xasprintf("/proc/%s/comm", who));
	return xasprintf(comm ? "%s %s (%s)" : "%s %s", owner, who, comm ? printable(comm) : "");
}

/* Parse the fields that claims and used registers have in common. */
static void parse_breakpoint(const struct slots *slots, struct holding *h,
			     const struct line *line)
{
	static const char *const kinds[] = { "guaranteed", "flexible", NULL };
	static const char *const types[] = { "r", "w", "rw", "x", NULL };

	h->flexible = get_choice(line, "kind", kinds);
	h->type = types[get_choice(line, "type", types)];
	h->len = get_number(line, "len", 10, INT_MAX);
	h->address = get_number(line, "addr", 16, UINT64_MAX);
	h->owner = owner_text(slots, printable(get_value(line, "owner")));
	if (!find_field(line, "pid"))
		return;
	h->pid = get_number(line, "pid", 10, INT_MAX);
	h->process = find_field(line, "process");
	if (!*line->comm)
		die_line(line, "missing ", "comm");
	h->comm = printable(xstrdup(line->comm + strlen(" comm=")));
}

static void add(struct slots *slots, struct holding h)
{
	bool claim = h.kind == HOLDING_CLAIM;

	/* Registers, free or not, are in the order of their numbers. */
	h.key = xasprintf("%016" PRIx64 " %d %d %08x %08x %016" PRIx64 " %08x %s %s",
			  h.section + 1, !claim, claim && h.flexible, h.class + 1, h.number + 1U,
			  h.address, h.len, h.type ? h.type : "", h.owner ? h.owner : "");
	GROW(slots->all, slots->nr, slots->room);
	slots->all[slots->nr++] = h;
}

static void parse_class(struct slots *slots, const struct line *line)
{
	if (slots->nr_classes == SLOTS_MAX_CLASSES)
		die_line(line, "too many classes", "");
	slots->class[slots->nr_classes] = printable(get_value(line, "name"));
	slots->registers[slots->nr_classes++] = get_number(line, "slots", 10, INT_MAX);
}

static void parse_holding(struct slots *slots, const struct line *line, bool claim)
{
	struct holding h = { .pid = SLOTS_NO_TASK, .class = slots->nr_classes == 1 ? 0 : -1 };
	int cpu = SLOTS_ANY_CPU;
	bool task;

	h.kind = claim ? HOLDING_CLAIM : HOLDING_REGISTER;
	if (!claim && find_field(line, "free"))
		h.kind = HOLDING_FREE;
	else
		parse_breakpoint(slots, &h, line);
	task = claim && h.pid != SLOTS_NO_TASK;
	if (!claim || strcmp(get_value(line, "cpu"), task ? "any" : "all"))
		cpu = get_number(line, "cpu", 10, INT_MAX);
	h.weight = claim ? get_number(line, "weight", 10, INT_MAX) : 1;
	h.number = claim ? cpu : (int)get_number(line, "slot", 10, INT_MAX);
	if (claim || find_field(line, "class"))
		h.class = get_choice(line, "class", slots->class);
	h.section = task ? SLOTS_TASK + h.pid : cpu;
	add(slots, h);
	if (task && cpu != SLOTS_ANY_CPU)
		add(slots, (struct holding){ .kind = HOLDING_NONE, .section = cpu });
}

static void parse_line(struct slots *slots, const struct line *line)
{
	char *word = xasprintf("%.*s", (int)strcspn(line->text, " "), line->text);

	if (!strcmp(word, "class"))
		parse_class(slots, line);
	else if (!strcmp(word, "claim") || !strcmp(word, "register"))
		parse_holding(slots, line, !strcmp(word, "claim"));
	else
		die_line(line, "expected class, claim or register", "");
	free(word);
}

/* ---- the file ---- */

/* Text for the errno of an attempt to read @path, or the list in debugfs; to be freed */
static char *unreadable(const char *path, int err)
{
	const char *why = strerror(err);
	struct statfs fs;

	if (path)
		return xasprintf("cannot read '%s': %s", path, why);
	if (err == ENOENT && access(DEBUGFS, F_OK))
		return xasprintf("%s does not exist: %s", DEBUGFS,
				 "this kernel has no debugfs, or sysfs is not mounted");
	if (err == ENOENT && (statfs(DEBUGFS, &fs) || fs.f_type != DEBUGFS_MAGIC))
		return xasprintf("debugfs is not mounted (mount -t debugfs none %s)", DEBUGFS);
	if (err == ENOENT)
		return xasprintf("this kernel does not list breakpoints: %s does not exist",
				 SLOTS_FILE);
	if (err == EACCES || err == EPERM)
		why = err == EACCES || geteuid() ? "this requires root" :
						   "the kernel is locked down";
	return xasprintf("no permission to read %s: %s", SLOTS_FILE, why);
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
	ssize_t n;

	if (!f)
		return unreadable(path, errno);
	*slots = (struct slots){ .same_pids = has_initial_pids() };
	for (errno = 0; (n = getline(&line.text, &size, f)) >= 0; errno = 0) {
		line.number++;
		line.text[strcspn(line.text, "\n")] = '\0';
		line.comm = strstr(line.text, " comm=");
		if (!line.comm)
			line.comm = strchr(line.text, '\0');
		/* The part behind a NUL would not be parsed. */
		if (strlen(line.text) + 1 < (size_t)n)
			die_line(&line, "contains a NUL character", "");
		parse_line(slots, &line);
	}
	if (ferror(f))
		die("%s", unreadable(path, errno));
	if (!slots->nr_classes)
		die("%s lists no registers", line.path);
	free(line.text);
	fclose(f);
	slots->end = slots->all + slots->nr;
	if (slots->nr)
		qsort(slots->all, slots->nr, sizeof(*slots->all), by_key);
	for (h = slots->all; h < slots->end; h++) {
		h->tgid = h->pid;
		if (h > slots->all && h->pid == h[-1].pid)
			h->tgid = h[-1].tgid;
		else if (slots->same_pids && h->pid > 0 && read_status(h->pid, "Tgid") > 0)
			h->tgid = read_status(h->pid, "Tgid");
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
bool slots_full(const struct slots *slots, int cpu, const struct holding *task, int class,
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
				if (h->kind != HOLDING_CLAIM || h->class != class ||
				    (h->number != SLOTS_ANY_CPU && h->number != cpu) ||
				    (i == 3 && !h->process))
					continue;
				h->chosen |= pass && !(h->flexible && flexible);
				guaranteed += pass || h->flexible ? 0 : h->weight;
				shared |= h->flexible && !flexible;
			}
		}
		if (guaranteed + shared + need <= slots->registers[class])
			return false;
	}
	return true;
}
