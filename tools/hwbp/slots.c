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
#include <stdarg.h>
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

struct field {
	const char *key;
	const char *value;
};

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
	struct field fields[MAX_FIELDS];
	size_t nr_fields;
};

static void die_line(const struct line *line, const char *fmt, ...)
	__attribute__((noreturn)) PRINTF(2, 3);

static void die_line(const struct line *line, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	die("%s, line %zu: %s: '%s'", line->path, line->number, what, line->text);
}

/* Cut off the next word. */
static char *cut_word(char **rest)
{
	char *word = *rest + strspn(*rest, " ");
	size_t len = strcspn(word, " ");

	*rest = word + len;
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

static bool next_field(char **rest, struct field *field)
{
	char *equals;

	*rest += strspn(*rest, " ");
	if (!**rest)
		return false;
	if (!strncmp(*rest, "comm=", 5)) {
		field->key = "comm";
		field->value = *rest + 5;
		*rest += strlen(*rest);
		return true;
	}
	field->key = cut_word(rest);
	equals = strchr(field->key, '=');
	if (equals)
		*equals++ = '\0';
	field->value = equals;
	return true;
}

static void split(struct line *line, char *s)
{
	struct field field;

	line->text = printable(xstrdup(s));
	line->word = cut_word(&s);
	line->nr_fields = 0;
	while (next_field(&s, &field)) {
		if (line->nr_fields == MAX_FIELDS)
			die_line(line, "too many fields");
		line->fields[line->nr_fields++] = field;
	}
}

static const struct field *find_field(const struct line *line, const char *key)
{
	size_t i;

	for (i = 0; i < line->nr_fields; i++) {
		if (!strcmp(line->fields[i].key, key))
			return &line->fields[i];
	}
	return NULL;
}

static bool has_field(const struct line *line, const char *key)
{
	return find_field(line, key);
}

static const char *get_value(const struct line *line, const char *key)
{
	const struct field *field = find_field(line, key);

	if (!field || !field->value)
		die_line(line, "missing %s=", key);
	return field->value;
}

static uint64_t get_number(const struct line *line, const char *key, int base, uint64_t max)
{
	const char *value = get_value(line, key);
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, base);
	if (errno || !isdigit((unsigned char)*value) || *end || n > max)
		die_line(line, "invalid number in %s=", key);
	return n;
}

/* Index of the value in @words */
static int get_choice(const struct line *line, const char *key, const char *const *words)
{
	const char *value = get_value(line, key);
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(value, words[i]))
			return i;
	}
	die_line(line, "unknown value of %s=", key);
}

/* ---- kinds of lines ---- */

static const char *const kinds[] = { "guaranteed", "flexible", NULL };
static const char *const types[] = { "r", "w", "rw", "x", NULL };

static void parse_class(struct slots *slots, const struct line *line)
{
	struct slots_class *class = &slots->classes[slots->nr_classes];

	if (slots->nr_classes == SLOTS_MAX_CLASSES)
		die_line(line, "too many classes");
	class->name = printable(xstrdup(get_value(line, "name")));
	class->slots = get_number(line, "slots", 10, INT_MAX);
	slots->nr_classes++;
}

static int get_class(const struct slots *slots, const struct line *line)
{
	const char *name = get_value(line, "class");
	unsigned int i;

	for (i = 0; i < slots->nr_classes; i++) {
		if (!strcmp(slots->classes[i].name, name))
			return i;
	}
	die_line(line, "unknown value of class=");
}

/* Parse the fields that claims and used registers have in common. */
static void parse_breakpoint(struct holding *h, const struct line *line)
{
	h->flexible = get_choice(line, "kind", kinds);
	h->type = xstrdup(types[get_choice(line, "type", types)]);
	h->len = get_number(line, "len", 10, INT_MAX);
	h->address = get_number(line, "addr", 16, UINT64_MAX);
	h->owner = printable(xstrdup(get_value(line, "owner")));
	if (!has_field(line, "pid"))
		return;
	h->pid = get_number(line, "pid", 10, INT_MAX);
	h->process = has_field(line, "process");
	h->comm = printable(xstrdup(get_value(line, "comm")));
}

static void add_holding(struct holding_list *list, const struct holding *h)
{
	GROW(list->entries, list->nr, list->capacity);
	list->entries[list->nr++] = *h;
}

static void parse_claim(struct slots *slots, const struct line *line)
{
	struct holding h = { .cpu = SLOTS_ANY_CPU, .pid = SLOTS_NO_TASK };

	parse_breakpoint(&h, line);
	h.class = get_class(slots, line);
	h.weight = get_number(line, "weight", 10, INT_MAX);
	if (strcmp(get_value(line, "cpu"), h.pid == SLOTS_NO_TASK ? "all" : "any"))
		h.cpu = get_number(line, "cpu", 10, INT_MAX);
	add_holding(&slots->claims, &h);
}

static void parse_register(struct slots *slots, const struct line *line)
{
	struct holding h = { .pid = SLOTS_NO_TASK, .weight = 1 };

	h.cpu = get_number(line, "cpu", 10, INT_MAX);
	h.slot = get_number(line, "slot", 10, INT_MAX);
	h.class = slots->nr_classes == 1 ? 0 : -1;
	if (has_field(line, "class"))
		h.class = get_class(slots, line);
	h.free = has_field(line, "free");
	if (!h.free)
		parse_breakpoint(&h, line);
	add_holding(&slots->registers, &h);
}

static void parse_line(struct slots *slots, const struct line *line)
{
	if (!strcmp(line->word, "class"))
		parse_class(slots, line);
	else if (!strcmp(line->word, "claim"))
		parse_claim(slots, line);
	else if (!strcmp(line->word, "register"))
		parse_register(slots, line);
	else
		die_line(line, "expected class, claim or register");
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

static FILE *open_file(const char *path)
{
	return fopen(path ? path : SLOTS_FILE, "re");
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
			die_line(&line, "contains a NUL character");
		parse_line(slots, &line);
		free(line.text);
	}
	if (ferror(f))
		die("%s", unreadable(path, errno));
	if (!slots->nr_classes)
		die("%s lists no registers", line.path);
	free(text);
}

/* ---- sorting ---- */

static int compare(uint64_t x, uint64_t y)
{
	return x < y ? -1 : x > y;
}

/* All CPUs, then CPUs, then tasks; for each, guaranteed claims before flexible ones. */
static int by_holder(const void *a, const void *b)
{
	const struct holding *x = a, *y = b;
	int diff = compare((int64_t)x->pid + 1, (int64_t)y->pid + 1);

	/* Claims of a CPU are grouped by CPU; the CPU of a task's claim matters less. */
	if (!diff && x->pid == SLOTS_NO_TASK)
		diff = compare(x->cpu, y->cpu);
	if (!diff)
		diff = compare(x->flexible, y->flexible);
	if (!diff)
		diff = compare(x->class, y->class);
	if (!diff)
		diff = compare((int64_t)x->cpu + 1, (int64_t)y->cpu + 1);
	if (!diff)
		diff = compare(x->address, y->address);
	if (!diff)
		diff = compare(x->len, y->len);
	if (!diff)
		diff = strcmp(x->type, y->type);
	return diff ? diff : strcmp(x->owner, y->owner);
}

static int by_slot(const void *a, const void *b)
{
	const struct holding *x = a, *y = b;
	int diff = compare(x->cpu, y->cpu);

	if (!diff)
		diff = compare((int64_t)x->class + 1, (int64_t)y->class + 1);
	return diff ? diff : compare(x->slot, y->slot);
}

static int by_number(const void *a, const void *b)
{
	const struct slots_cpu *x = a, *y = b;

	return compare(x->number, y->number);
}

static void sort_list(struct holding_list *list, int (*order)(const void *, const void *))
{
	if (list->nr)
		qsort(list->entries, list->nr, sizeof(*list->entries), order);
}

static void add_cpu(struct slots *slots, int number)
{
	GROW(slots->cpus, slots->nr_cpus, slots->cpus_room);
	slots->cpus[slots->nr_cpus++] = (struct slots_cpu){ .number = number };
}

/* Add the CPUs of a list that is sorted by CPU; a CPU may be added more than once. */
static void collect_cpus(struct slots *slots, const struct holding_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++) {
		int cpu = list->entries[i].cpu;

		if (cpu == SLOTS_ANY_CPU ||
		    (slots->nr_cpus && slots->cpus[slots->nr_cpus - 1].number == cpu))
			continue;
		add_cpu(slots, cpu);
	}
}

static void sort_cpus(struct slots *slots)
{
	size_t i, kept = 0;

	if (!slots->nr_cpus)
		return;
	qsort(slots->cpus, slots->nr_cpus, sizeof(*slots->cpus), by_number);
	for (i = 0; i < slots->nr_cpus; i++) {
		if (!kept || slots->cpus[kept - 1].number != slots->cpus[i].number)
			slots->cpus[kept++] = slots->cpus[i];
	}
	slots->nr_cpus = kept;
}

static struct slots_cpu *find_cpu(struct slots *slots, int number)
{
	struct slots_cpu key = { .number = number };

	return bsearch(&key, slots->cpus, slots->nr_cpus, sizeof(key), by_number);
}

/* Add the next entry of a sorted list to the part of it that starts in @piece. */
static void extend(struct holding_list *piece, struct holding *h)
{
	if (!piece->nr)
		piece->entries = h;
	piece->nr++;
}

static struct slots_task *task_of(struct slots *slots, const struct holding *h)
{
	if (!slots->nr_tasks || slots->tasks[slots->nr_tasks - 1].pid != h->pid) {
		GROW(slots->tasks, slots->nr_tasks, slots->tasks_room);
		slots->tasks[slots->nr_tasks++] =
			(struct slots_task){ .pid = h->pid, .comm = h->comm };
	}
	return &slots->tasks[slots->nr_tasks - 1];
}

/* Let each CPU and task refer to its part of the sorted lists. */
static void assign_parts(struct slots *slots)
{
	bool same_pids = slots_same_pids();
	size_t i;

	for (i = 0; i < slots->claims.nr; i++) {
		struct holding *h = &slots->claims.entries[i];

		if (h->pid == SLOTS_NO_TASK && h->cpu == SLOTS_ANY_CPU)
			extend(&slots->wide, h);
		else if (h->pid == SLOTS_NO_TASK)
			extend(&find_cpu(slots, h->cpu)->claims, h);
		else
			extend(&task_of(slots, h)->claims, h);
	}
	for (i = 0; i < slots->registers.nr; i++) {
		struct holding *h = &slots->registers.entries[i];

		extend(&find_cpu(slots, h->cpu)->registers, h);
	}
	for (i = 0; i < slots->nr_tasks; i++)
		slots->tasks[i].process = slots_process_of(slots->tasks[i].pid, same_pids);
}

static void read_file(struct slots *slots, const char *path, FILE *f)
{
	memset(slots, 0, sizeof(*slots));
	parse_file(slots, path, f);
	fclose(f);
	sort_list(&slots->claims, by_holder);
	sort_list(&slots->registers, by_slot);
	collect_cpus(slots, &slots->claims);
	collect_cpus(slots, &slots->registers);
	sort_cpus(slots);
	assign_parts(slots);
}

void slots_read(struct slots *slots, const char *path)
{
	FILE *f = open_file(path);

	if (!f)
		die("%s", unreadable(path, errno));
	read_file(slots, path, f);
}

char *slots_try_read(struct slots *slots)
{
	FILE *f = open_file(NULL);

	if (!f)
		return unreadable(NULL, errno);
	read_file(slots, NULL, f);
	return NULL;
}

/* ---- queries ---- */

static int by_pid(const void *a, const void *b)
{
	const struct slots_task *x = a, *y = b;

	return compare(x->pid, y->pid);
}

const struct slots_task *slots_find_task(const struct slots *slots, pid_t pid)
{
	struct slots_task key = { .pid = pid };

	if (!slots->nr_tasks)
		return NULL;
	return bsearch(&key, slots->tasks, slots->nr_tasks, sizeof(key), by_pid);
}

bool slots_holds_on(const struct holding *claim, int cpu)
{
	return claim->cpu == SLOTS_ANY_CPU || claim->cpu == cpu;
}

static void for_each_of(const struct holding_list *claims, int cpu, int class, bool process,
			void (*func)(struct holding *claim, void *arg), void *arg)
{
	size_t i;

	for (i = 0; i < claims->nr; i++) {
		struct holding *h = &claims->entries[i];

		if (h->class == class && slots_holds_on(h, cpu) && (h->process || !process))
			func(h, arg);
	}
}

void slots_for_each_claim(const struct slots *slots, const struct slots_cpu *cpu,
			  const struct slots_task *task, int class,
			  void (*func)(struct holding *claim, void *arg), void *arg)
{
	const struct slots_task *leader = NULL;

	for_each_of(&slots->wide, cpu->number, class, false, func, arg);
	for_each_of(&cpu->claims, cpu->number, class, false, func, arg);
	if (!task)
		return;
	for_each_of(&task->claims, cpu->number, class, false, func, arg);
	if (task->process != task->pid)
		leader = slots_find_task(slots, task->process);
	if (leader)
		for_each_of(&leader->claims, cpu->number, class, true, func, arg);
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
bool slots_full(const struct slots *slots, const struct slots_cpu *cpu,
		const struct slots_task *task, int class, bool flexible)
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
