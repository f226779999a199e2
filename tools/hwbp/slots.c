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
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "slots.h"
#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define SLOTS_FILE	DEBUGFS "/hw_breakpoint/slots"

#define MAX_FIELDS	24

/* Inode of the initial pid namespace, the same on all machines */
#define INIT_PID_NS	0xeffffffcU

/* ---- parsing a line ---- */

/**
 * struct line - one line of the file
 * @path: path of the file
 * @number: line number, from 1
 * @text: printable copy of the line, for messages
 * @word: first word
 * @fields: fields; the value of a field without "=" is NULL
 * @nr_fields: number of @fields
 */
struct line {
	const char *path;
	size_t number;
	char *text;
	const char *word;
	struct {
		const char *key;
		const char *value;
	} fields[MAX_FIELDS];
	size_t nr_fields;
};

static void die_line(const struct line *line, const char *what, const char *key)
	__attribute__((noreturn));

static void die_line(const struct line *line, const char *what, const char *key)
{
	die("%s, line %zu: %s%s%s: '%s'", line->path, line->number, what, key, *key ? "=" : "",
	    line->text);
}

/* Split a line, whose last field may be comm= with spaces. */
static void split(struct line *line, char *s)
{
	char *comm = strstr(s, " comm="), *word, *equals, *state;

	line->text = printable(xstrdup(s));
	line->nr_fields = 0;
	if (comm)
		*comm++ = '\0';
	word = strtok_r(s, " ", &state);
	line->word = word ? word : "";
	while ((word = strtok_r(NULL, " ", &state)) || comm) {
		if (line->nr_fields == MAX_FIELDS)
			die_line(line, "too many fields", "");
		if (!word) {
			word = comm;
			comm = NULL;
		}
		equals = strchr(word, '=');
		if (equals)
			*equals++ = '\0';
		line->fields[line->nr_fields].key = word;
		line->fields[line->nr_fields++].value = equals;
	}
}

static bool has_field(const struct line *line, const char *key, const char **value)
{
	size_t i;

	for (i = 0; i < line->nr_fields; i++) {
		if (!strcmp(line->fields[i].key, key)) {
			*value = line->fields[i].value;
			return true;
		}
	}
	return false;
}

static const char *get_value(const struct line *line, const char *key)
{
	const char *value;

	if (!has_field(line, key, &value) || !value)
		die_line(line, "missing ", key);
	return value;
}

static uint64_t get_number(const struct line *line, const char *key, int base, uint64_t max)
{
	const char *value = get_value(line, key);
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, base);
	if (errno || !isdigit((unsigned char)*value) || *end || n > max)
		die_line(line, "invalid number in ", key);
	return n;
}

/* Index of the value in @words, which NULL ends */
static int get_choice(const struct line *line, const char *key, const char *const *words)
{
	const char *value = get_value(line, key);
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(value, words[i]))
			return i;
	}
	die_line(line, "unknown value of ", key);
}

/* ---- kinds of lines ---- */

static void parse_class(struct slots *slots, const struct line *line)
{
	struct slots_class *class = &slots->classes[slots->nr_classes];

	if (slots->nr_classes == SLOTS_MAX_CLASSES)
		die_line(line, "too many classes", "");
	class->name = printable(xstrdup(get_value(line, "name")));
	class->slots = get_number(line, "slots", 10, INT_MAX);
	slots->nr_classes++;
}

static int get_class(const struct slots *slots, const struct line *line)
{
	const char *names[SLOTS_MAX_CLASSES + 1] = { NULL };
	unsigned int i;

	for (i = 0; i < slots->nr_classes; i++)
		names[i] = slots->classes[i].name;
	return get_choice(line, "class", names);
}

/* Parse the fields that claims and used registers have in common. */
static void parse_breakpoint(struct holding *h, const struct line *line)
{
	static const char *const kinds[] = { "guaranteed", "flexible", NULL };
	static const char *const types[] = { "r", "w", "rw", "x", NULL };
	const char *value;

	h->flexible = get_choice(line, "kind", kinds);
	h->type = (char *)types[get_choice(line, "type", types)];
	h->len = get_number(line, "len", 10, INT_MAX);
	h->address = get_number(line, "addr", 16, UINT64_MAX);
	h->owner = printable(xstrdup(get_value(line, "owner")));
	if (!has_field(line, "pid", &value))
		return;
	h->pid = get_number(line, "pid", 10, INT_MAX);
	h->process = has_field(line, "process", &value);
	h->comm = printable(xstrdup(get_value(line, "comm")));
}

static void parse_line(struct slots *slots, const struct line *line)
{
	struct holding h = { .cpu = SLOTS_ANY_CPU, .pid = SLOTS_NO_TASK, .weight = 1 };
	bool claim = !strcmp(line->word, "claim");
	struct holding_list *list = claim ? &slots->claims : &slots->registers;
	const char *value;

	if (!strcmp(line->word, "class")) {
		parse_class(slots, line);
		return;
	}
	if (!claim && strcmp(line->word, "register"))
		die_line(line, "expected class, claim or register", "");
	h.free = !claim && has_field(line, "free", &value);
	if (claim || !h.free)
		parse_breakpoint(&h, line);
	if (!claim || strcmp(get_value(line, "cpu"), h.pid == SLOTS_NO_TASK ? "all" : "any"))
		h.cpu = get_number(line, "cpu", 10, INT_MAX);
	if (claim)
		h.weight = get_number(line, "weight", 10, INT_MAX);
	else
		h.slot = get_number(line, "slot", 10, INT_MAX);
	h.class = slots->nr_classes == 1 ? 0 : -1;
	if (claim || has_field(line, "class", &value))
		h.class = get_class(slots, line);
	GROW(list->entries, list->nr, list->capacity);
	list->entries[list->nr++] = h;
}

/* ---- the file ---- */

static bool is_debugfs(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && fs.f_type == DEBUGFS_MAGIC;
}

/* Text for the errno of an attempt to read @path, or the list in debugfs; to be freed */
static char *unreadable(const char *path, int err)
{
	if (path)
		return xasprintf("cannot read '%s': %s", path, strerror(err));
	if (err == EACCES || (err == EPERM && geteuid()))
		return xasprintf("no permission to read %s: this requires root", SLOTS_FILE);
	if (err == EPERM)
		return xasprintf("no permission to read %s: the kernel is locked down",
				 SLOTS_FILE);
	if (err != ENOENT)
		return xasprintf("cannot read %s: %s", SLOTS_FILE, strerror(err));
	if (access(DEBUGFS, F_OK))
		return xasprintf("%s does not exist: %s", DEBUGFS,
				 "this kernel has no debugfs, or sysfs is not mounted");
	if (!is_debugfs(DEBUGFS))
		return xasprintf("debugfs is not mounted (mount -t debugfs none %s)", DEBUGFS);
	return xasprintf("this kernel does not list breakpoints: %s does not exist", SLOTS_FILE);
}

static void parse_file(struct slots *slots, const char *path, FILE *f)
{
	struct line line = { .path = path ? path : SLOTS_FILE };
	char *text = NULL;
	size_t size = 0;
	ssize_t n;

	for (errno = 0; (n = getline(&text, &size, f)) >= 0; errno = 0) {
		line.number++;
		text[strcspn(text, "\n")] = '\0';
		split(&line, text);
		/* The part behind a NUL was not parsed. */
		if (strlen(line.text) + 1 < (size_t)n)
			die_line(&line, "contains a NUL character", "");
		parse_line(slots, &line);
		free(line.text);
	}
	if (ferror(f))
		die("%s", unreadable(path, errno));
	if (!slots->nr_classes)
		die("%s lists no registers", line.path);
	free(text);
}

/* ---- holders ---- */

static int64_t order_of(uint64_t address)
{
	return address ^ 1ULL << 63;
}

static int compare(const int64_t *x, const int64_t *y, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

#define COMPARE(x, y) compare(x, y, sizeof(x) / sizeof((x)[0]))

/*
 * All CPUs, then CPUs, then tasks; for each, guaranteed claims before flexible ones. Claims
 * of a CPU are grouped by CPU; the CPU of a task's claim matters less.
 */
static void claim_keys(const struct holding *h, int64_t keys[7])
{
	keys[0] = h->pid;
	keys[1] = h->pid == SLOTS_NO_TASK ? h->cpu : 0;
	keys[2] = h->flexible;
	keys[3] = h->class;
	keys[4] = h->cpu;
	keys[5] = order_of(h->address);
	keys[6] = h->len;
}

static int by_holder(const void *a, const void *b)
{
	const struct holding *x = a, *y = b;
	int64_t x_keys[7], y_keys[7];
	int diff;

	claim_keys(x, x_keys);
	claim_keys(y, y_keys);
	diff = COMPARE(x_keys, y_keys);
	if (!diff)
		diff = strcmp(x->type, y->type);
	return diff ? diff : strcmp(x->owner, y->owner);
}

static int by_slot(const void *a, const void *b)
{
	const struct holding *x = a, *y = b;
	const int64_t x_keys[] = { x->cpu, x->class, x->slot };
	const int64_t y_keys[] = { y->cpu, y->class, y->slot };

	return COMPARE(x_keys, y_keys);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int by_pid_and_cpu(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	const int64_t x_keys[] = { x->pid, x->cpu }, y_keys[] = { y->pid, y->cpu };

	return COMPARE(x_keys, y_keys);
}

const struct holder *slots_holder(const struct slots *slots, pid_t pid, int cpu)
{
	struct holder key = { .pid = pid, .cpu = pid == SLOTS_NO_TASK ? cpu : SLOTS_ANY_CPU };

	if (!slots->nr_holders)
		return NULL;
	return bsearch(&key, slots->holders, slots->nr_holders, sizeof(key), by_pid_and_cpu);
}

static void sort_list(struct holding_list *list, int (*order)(const void *, const void *))
{
	if (list->nr)
		qsort(list->entries, list->nr, sizeof(*list->entries), order);
}

/* Find the parts of the sorted claims that belong to one holder. */
static void find_holders(struct slots *slots)
{
	bool same_pids = slots_same_pids();
	struct holder next, *last = NULL;
	size_t i, capacity = 0;

	for (i = 0; i < slots->claims.nr; i++) {
		struct holding *h = &slots->claims.entries[i];

		next = (struct holder){ .pid = h->pid, .cpu = h->cpu, .claims = h };
		if (h->pid != SLOTS_NO_TASK)
			next.cpu = SLOTS_ANY_CPU;
		if (!last || by_pid_and_cpu(last, &next)) {
			next.process = slots_process_of(h->pid, same_pids && h->pid > 0);
			GROW(slots->holders, slots->nr_holders, capacity);
			last = &slots->holders[slots->nr_holders++];
			*last = next;
		}
		last->nr++;
	}
}

static void find_cpus(struct slots *slots)
{
	const struct holding_list *lists[] = { &slots->claims, &slots->registers };
	size_t i, j, kept = 0, capacity = 0;

	for (i = 0; i < 2; i++) {
		for (j = 0; j < lists[i]->nr; j++) {
			const struct holding *h = &lists[i]->entries[j];

			if (h->cpu == SLOTS_ANY_CPU)
				continue;
			GROW(slots->cpus, slots->nr_cpus, capacity);
			slots->cpus[slots->nr_cpus++] = h->cpu;
		}
	}
	if (slots->nr_cpus)
		qsort(slots->cpus, slots->nr_cpus, sizeof(int), by_number);
	for (i = 0; i < slots->nr_cpus; i++) {
		if (!kept || slots->cpus[kept - 1] != slots->cpus[i])
			slots->cpus[kept++] = slots->cpus[i];
	}
	slots->nr_cpus = kept;
}

char *slots_read(struct slots *slots, const char *path)
{
	FILE *f = fopen(path ? path : SLOTS_FILE, "re");

	if (!f)
		return unreadable(path, errno);
	memset(slots, 0, sizeof(*slots));
	parse_file(slots, path, f);
	fclose(f);
	sort_list(&slots->claims, by_holder);
	sort_list(&slots->registers, by_slot);
	find_holders(slots);
	find_cpus(slots);
	return NULL;
}

/* ---- queries ---- */

static void for_each_of(const struct holder *holder, int cpu, int class, bool process,
			void (*func)(struct holding *claim, void *arg), void *arg)
{
	size_t i;

	for (i = 0; holder && i < holder->nr; i++) {
		struct holding *h = &holder->claims[i];

		if (h->class == class && (h->cpu == SLOTS_ANY_CPU || h->cpu == cpu) &&
		    (h->process || !process))
			func(h, arg);
	}
}

void slots_for_each_claim(const struct slots *slots, int cpu, const struct holder *task,
			  int class, void (*func)(struct holding *claim, void *arg), void *arg)
{
	for_each_of(slots_holder(slots, SLOTS_NO_TASK, SLOTS_ANY_CPU), cpu, class, false, func,
		    arg);
	for_each_of(slots_holder(slots, SLOTS_NO_TASK, cpu), cpu, class, false, func, arg);
	for_each_of(task, cpu, class, false, func, arg);
	if (task && task->process != task->pid)
		for_each_of(slots_holder(slots, task->process, 0), cpu, class, true, func, arg);
}

struct sum {
	uint64_t guaranteed;
	bool flexible;
};

static void add_up(struct holding *claim, void *arg)
{
	struct sum *sum = arg;

	if (claim->flexible)
		sum->flexible = true;
	else
		sum->guaranteed += claim->weight;
}

/* The kernel's rule: all flexible claims that can meet on a CPU count as one register. */
bool slots_full(const struct slots *slots, int cpu, const struct holder *task, int class,
		bool flexible)
{
	struct sum sum = { 0 };

	slots_for_each_claim(slots, cpu, task, class, add_up, &sum);
	return sum.guaranteed + (sum.flexible && !flexible) >= slots->classes[class].slots;
}

/* ---- tasks and owners ---- */

bool slots_same_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INIT_PID_NS;
}

pid_t slots_process_of(pid_t pid, bool same_pids)
{
	long process = same_pids ? read_status(pid, "Tgid") : -1;

	return process > 0 ? process : pid;
}

/* "456 (hwbp)", or "456" if the task has exited */
static char *task_text(const char *pid, bool same_pids)
{
	char *name = xasprintf("/proc/%s/comm", pid);
	char *comm = same_pids ? read_line_of(name) : NULL;
	char *text = comm ? xasprintf("%s (%s)", pid, printable(comm)) : xstrdup(pid);

	free(name);
	free(comm);
	return text;
}

static bool is_pid(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

char *slots_owner_text(const char *owner, bool same_pids)
{
	const char *colon = strchr(owner, ':'), *who = colon ? colon + 1 : "";
	bool known = colon && strcmp(who, "-");
	char *task, *text;

	/* A handler, or the name of a kernel-wide breakpoint */
	if (!strncmp(owner, "kernel:", 7))
		return known ? xasprintf(strchr(who, '/') ? "kernel %s" : "kernel %s()", who) :
			       xstrdup("kernel");
	if (!strcmp(owner, "perf:-"))
		return xstrdup("perf, opener has exited");
	if (!strcmp(owner, "ptrace:-"))
		return xstrdup("ptrace, no tracer now");
	if (!is_pid(who))
		return xstrdup(owner);
	task = task_text(who, same_pids);
	text = xasprintf("%.*s %s", (int)(colon - owner), owner, task);
	free(task);
	return text;
}
