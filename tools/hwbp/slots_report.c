// SPDX-License-Identifier: GPL-2.0
/* Output of 'hwbp slots': claims and registers of CPUs and tasks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "kallsyms.h"
#include "slots.h"
#include "slots_report.h"
#include "symbols.h"
#include "util.h"

/* Maximum width of the NAME column; longer names overflow it. */
#define MAX_NAME	40

/**
 * struct view - the claims and registers to show
 * @opt: what the user asked for
 * @slots: all claims and registers
 * @same_pids: hwbp is in the initial pid namespace, whose pids the list has
 * @nr_tasks: number of tasks that are shown
 * @syms: symbols of the process @syms_of, NULL if it has none
 * @syms_of: process whose symbols were looked up last
 * @name_width: width of the NAME column
 */
struct view {
	const struct slots_options *opt;
	struct slots slots;
	bool same_pids;
	size_t nr_tasks;
	struct symbols *syms;
	pid_t syms_of;
	int name_width;
};

/* ---- selection ---- */

static bool wants_cpu(const struct view *view, int cpu)
{
	return view->opt->cpu < 0 || cpu == SLOTS_ANY_CPU || view->opt->cpu == cpu;
}

static bool wants_process(const struct view *view, pid_t pid, pid_t process)
{
	return !view->opt->pid || pid == view->opt->pid || process == view->opt->pid;
}

static bool wants_register(const struct view *view, const struct holding *reg)
{
	if (!wants_cpu(view, reg->cpu) || !view->opt->pid)
		return wants_cpu(view, reg->cpu);
	return reg->pid != SLOTS_NO_TASK &&
	       wants_process(view, reg->pid, slots_process_of(reg->pid, view->same_pids));
}

static size_t nr_wanted(const struct view *view, const struct holder *holder, bool flexible)
{
	size_t i, nr = 0;

	for (i = 0; holder && i < holder->nr; i++)
		nr += holder->claims[i].flexible == flexible &&
		      wants_cpu(view, holder->claims[i].cpu);
	return nr;
}

/* Returns true if a section for the holder is shown. CPUs also have registers. */
static bool wants_holder(const struct view *view, const struct holder *holder)
{
	if (holder->pid == SLOTS_NO_TASK)
		return !view->opt->pid;
	return wants_process(view, holder->pid, holder->process) &&
	       (nr_wanted(view, holder, false) || nr_wanted(view, holder, true));
}

static bool is_shown_task(const struct view *view, const struct holder *holder)
{
	return holder->pid != SLOTS_NO_TASK && wants_holder(view, holder);
}

static void check_choice(struct view *view)
{
	char *name = xasprintf("/proc/%d", view->opt->pid);
	size_t i;

	for (i = 0; i < view->slots.nr_holders; i++)
		view->nr_tasks += is_shown_task(view, &view->slots.holders[i]);
	if (view->opt->pid && !view->nr_tasks && view->same_pids && access(name, F_OK))
		die("no such process: %d", view->opt->pid);
	free(name);
	for (i = 0; i < view->slots.nr_cpus; i++) {
		if (wants_cpu(view, view->slots.cpus[i]))
			return;
	}
	if (view->opt->cpu >= 0)
		die("CPU %d is not online and has no claims", view->opt->cpu);
}

/* ---- names of addresses ---- */

/* Symbols of the process of @pid: its threads share one address space. */
static struct symbols *symbols_of(struct view *view, pid_t pid)
{
	pid_t process = slots_process_of(pid, view->same_pids);

	if (process == view->syms_of)
		return view->syms;
	symbols_free(view->syms);
	view->syms = symbols_new();
	view->syms_of = process;
	if (!symbols_try_maps(view->syms, pid)) {
		symbols_free(view->syms);
		view->syms = NULL;
	}
	return view->syms;
}

static char *look_up(struct view *view, const struct holding *h)
{
	struct symbols *syms;

	if ((int64_t)h->address < 0)
		return kallsyms_name(h->address);
	if (h->pid == SLOTS_NO_TASK || !view->same_pids)
		return NULL;
	syms = symbols_of(view, h->pid);
	return syms ? symbols_name(syms, h->address) : NULL;
}

static void set_name(struct view *view, struct holding *h)
{
	char *name = look_up(view, h);
	int len;

	h->name = name ? printable(name) : xstrdup("-");
	len = strlen(h->name);
	if (len > view->name_width && len <= MAX_NAME)
		view->name_width = len;
}

static void find_names(struct view *view)
{
	size_t i, j;

	view->name_width = strlen("NAME");
	for (i = 0; i < view->slots.nr_holders; i++) {
		const struct holder *holder = &view->slots.holders[i];

		for (j = 0; wants_holder(view, holder) && j < holder->nr; j++) {
			if (wants_cpu(view, holder->claims[j].cpu))
				set_name(view, &holder->claims[j]);
		}
	}
	for (i = 0; i < view->slots.registers.nr; i++) {
		struct holding *h = &view->slots.registers.entries[i];

		if (!h->free && wants_register(view, h))
			set_name(view, h);
	}
	symbols_free(view->syms);
}

/* ---- lines ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static const char *purpose(const struct slots_class *class)
{
	if (!strcmp(class->name, "any"))
		return "instructions and data";
	return strcmp(class->name, "inst") ? class->name : "instructions";
}

static void print_classes(const struct view *view)
{
	const struct slots *slots = &view->slots;
	const struct holder *wide = slots_holder(slots, SLOTS_NO_TASK, SLOTS_ANY_CPU);
	size_t i, of_tasks = 0, tasks = 0, of_cpus = slots->claims.nr - (wide ? wide->nr : 0);

	for (i = 0; i < slots->nr_holders; i++) {
		if (slots->holders[i].pid == SLOTS_NO_TASK)
			continue;
		of_tasks += slots->holders[i].nr;
		tasks++;
	}
	of_cpus -= of_tasks;
	printf("registers of each CPU:");
	for (i = 0; i < slots->nr_classes; i++)
		printf("%s %u for %s", i ? "," : "", slots->classes[i].slots,
		       purpose(&slots->classes[i]));
	printf("; ");
	if (wide)
		printf("%zu claim%s of all CPUs, ", wide->nr, plural(wide->nr));
	printf("%zu claim%s of CPUs, %zu of %zu task%s\n\n", of_cpus, plural(of_cpus), of_tasks,
	       tasks, plural(tasks));
	printf("  %-11s %-10s%s %-4s %3s %-18s %-*s %s\n", "", "KIND",
	       slots->nr_classes > 1 ? " CLASS" : "", "TYPE", "LEN", "ADDRESS",
	       view->name_width, "NAME", "OWNER");
}

static void print_breakpoint(const struct view *view, const char *where,
			     const struct holding *h)
{
	const struct slots *slots = &view->slots;
	char *owner = slots_owner_text(h->owner, view->same_pids);

	printf("  %-11s %-10s", where, h->flexible ? "flexible" : "guaranteed");
	if (slots->nr_classes > 1)
		printf(" %-5s", h->class < 0 ? "-" : slots->classes[h->class].name);
	printf(" %-4s %3u 0x%-16" PRIx64 " %-*s %s", h->type, h->len, h->address,
	       view->name_width, h->name, owner);
	if (h->weight > 1)
		printf(", takes %u registers", h->weight);
	free(owner);
}

static void print_claim(const struct view *view, const struct holding *claim)
{
	char where[32] = "claim";

	if (claim->pid != SLOTS_NO_TASK && claim->cpu == SLOTS_ANY_CPU)
		snprintf(where, sizeof(where), "any CPU");
	else if (claim->pid != SLOTS_NO_TASK)
		snprintf(where, sizeof(where), "CPU %d", claim->cpu);
	print_breakpoint(view, where, claim);
	printf("%s\n", claim->process ? ", for all threads" : "");
}

static void print_register(const struct view *view, const struct holding *reg)
{
	char where[32];

	snprintf(where, sizeof(where), "register %u", reg->slot);
	if (reg->free) {
		printf("  %-11s free\n", where);
		return;
	}
	print_breakpoint(view, where, reg);
	if (reg->pid != SLOTS_NO_TASK)
		printf(", for %s %d (%s)", reg->process ? "process" : "task", reg->pid,
		       reg->comm);
	putchar('\n');
}

/* ---- JSON ---- */

static void json_classes(const struct slots *slots)
{
	struct json json;
	unsigned int i;

	for (i = 0; i < slots->nr_classes; i++) {
		json = json_begin(stdout, "class");
		json_string(&json, "name", slots->classes[i].name);
		json_int(&json, "registers", slots->classes[i].slots);
		json_end(&json);
	}
}

/* Print null if the line is about no single CPU or task. */
static void json_holder(struct json *json, const char *key, int value)
{
	if (value >= 0)
		json_int(json, key, value);
	else
		json_string(json, key, NULL);
}

static void json_breakpoint(struct json *json, const struct view *view, const struct holding *h)
{
	char *owner = slots_owner_text(h->owner, view->same_pids);

	if (h->class >= 0)
		json_string(json, "class", view->slots.classes[h->class].name);
	json_bool(json, "flexible", h->flexible);
	json_string(json, "access", h->type);
	json_int(json, "len", h->len);
	json_address(json, "address", h->address);
	json_string(json, "symbol", strcmp(h->name, "-") ? h->name : NULL);
	json_string(json, "owner", owner);
	free(owner);
}

static void json_claim(const struct view *view, const struct holding *h)
{
	struct json json = json_begin(stdout, "claim");

	json_holder(&json, "cpu", h->cpu);
	json_holder(&json, "tid", h->pid);
	if (h->pid != SLOTS_NO_TASK) {
		json_bool(&json, "process", h->process);
		json_string(&json, "comm", h->comm);
	}
	json_int(&json, "registers", h->weight);
	json_breakpoint(&json, view, h);
	json_end(&json);
}

static void json_register(const struct view *view, const struct holding *h)
{
	struct json json = json_begin(stdout, "register");

	json_int(&json, "cpu", h->cpu);
	json_int(&json, "number", h->slot);
	json_bool(&json, "free", h->free);
	if (!h->free) {
		json_holder(&json, "tid", h->pid);
		json_breakpoint(&json, view, h);
	}
	json_end(&json);
}

/* ---- sections ---- */

static void print_counts(const struct view *view, const struct holder *holder)
{
	size_t guaranteed = nr_wanted(view, holder, false);
	size_t flexible = nr_wanted(view, holder, true);

	if (guaranteed)
		printf(": %zu guaranteed", guaranteed);
	if (flexible)
		printf("%s %zu flexible", guaranteed ? "," : ":", flexible);
	printf("%s\n", guaranteed || flexible ? "" : ": no claims");
}

static void show_claims(const struct view *view, const struct holder *holder)
{
	void (*show)(const struct view *view, const struct holding *h) =
		view->opt->json ? json_claim : print_claim;
	size_t i;

	for (i = 0; holder && i < holder->nr; i++) {
		if (wants_cpu(view, holder->claims[i].cpu))
			show(view, &holder->claims[i]);
	}
}

/* All CPUs, or a task */
static void show_holder(const struct view *view, const struct holder *holder)
{
	if (!view->opt->json) {
		if (holder->pid == SLOTS_NO_TASK)
			printf("all CPUs");
		else
			printf("task %d (%s)", holder->pid, holder->claims[0].comm);
		if (holder->process != holder->pid)
			printf(", a thread of %d", holder->process);
		print_counts(view, holder);
	}
	show_claims(view, holder);
	if (!view->opt->json)
		putchar('\n');
}

/* A CPU with its claims and registers; with -p only the registers of the process */
static void show_cpu(const struct view *view, int cpu)
{
	const struct holder *holder = slots_holder(&view->slots, SLOTS_NO_TASK, cpu);
	const struct holding_list *registers = &view->slots.registers;
	size_t i, first = 0, end, wanted = 0;

	while (first < registers->nr && registers->entries[first].cpu < cpu)
		first++;
	for (end = first; end < registers->nr && registers->entries[end].cpu == cpu; end++)
		wanted += wants_register(view, &registers->entries[end]);
	if (!wants_cpu(view, cpu) || (view->opt->pid && !wanted))
		return;
	if (!view->opt->json) {
		printf("CPU %d%s", cpu, first == end ? " (offline)" : "");
		if (view->opt->pid)
			putchar('\n');
		else
			print_counts(view, holder);
	}
	if (!view->opt->pid)
		show_claims(view, holder);
	for (i = first; i < end; i++) {
		if (!wants_register(view, &registers->entries[i]))
			continue;
		if (view->opt->json)
			json_register(view, &registers->entries[i]);
		else
			print_register(view, &registers->entries[i]);
	}
	if (!view->opt->json)
		putchar('\n');
}

/* ---- full CPUs and tasks ---- */

static void print_is_full(const struct slots *slots, int class)
{
	printf(" is full");
	if (slots->nr_classes > 1)
		printf(" for %s", purpose(&slots->classes[class]));
}

/* A request for a CPU is checked against the claims of each task. */
static void print_full_cpu(const struct view *view, int cpu, int class)
{
	const struct slots *slots = &view->slots;
	const struct holder *task = NULL;
	size_t i;

	if (!slots_full(slots, cpu, NULL, class, false)) {
		for (i = 0; i < slots->nr_holders && !task; i++) {
			if (slots->holders[i].pid != SLOTS_NO_TASK &&
			    slots_full(slots, cpu, &slots->holders[i], class, false))
				task = &slots->holders[i];
		}
		if (!task)
			return;
	}
	printf("CPU %d", cpu);
	print_is_full(slots, class);
	if (task)
		printf(" beside task %d (%s)", task->pid, task->claims[0].comm);
	printf(": a further guaranteed breakpoint%s fails\n", task ? " of the CPU" : "");
}

/* List of the CPUs on which a task is full, such as "0-2,5"; to be freed */
static char *full_cpus(const struct view *view, const struct holder *task, int class)
{
	const struct slots *slots = &view->slots;
	char *list = xstrdup(""), *longer;
	size_t i, first = 0;
	bool in_range = false;

	for (i = 0; i <= slots->nr_cpus; i++) {
		bool full = i < slots->nr_cpus && wants_cpu(view, slots->cpus[i]) &&
			    slots_full(slots, slots->cpus[i], task, class, false);

		if (in_range && (!full || slots->cpus[i] != slots->cpus[i - 1] + 1)) {
			longer = xasprintf(first + 1 < i ? "%s%s%d-%d" : "%s%s%d", list,
					   *list ? "," : "", slots->cpus[first],
					   slots->cpus[i - 1]);
			free(list);
			list = longer;
			in_range = false;
		}
		if (full && !in_range)
			first = i;
		in_range |= full;
	}
	return list;
}

static void print_full_task(const struct view *view, const struct holder *task, int class)
{
	const struct slots *slots = &view->slots;
	bool everywhere = slots_full(slots, SLOTS_OTHER_CPU, task, class, false);
	char *cpus = everywhere ? xstrdup("") : full_cpus(view, task, class);

	if (everywhere || *cpus) {
		printf("task %d (%s)", task->pid, task->claims[0].comm);
		print_is_full(slots, class);
		printf("%s%s: a further guaranteed breakpoint fails%s\n",
		       everywhere ? "" : " on CPU ", cpus, everywhere ? "" : " there");
	}
	free(cpus);
}

static void print_full(const struct view *view)
{
	const struct slots *slots = &view->slots;
	unsigned int class;
	size_t i;

	for (i = 0; !view->opt->pid && i < slots->nr_cpus; i++) {
		for (class = 0; class < slots->nr_classes; class++) {
			if (wants_cpu(view, slots->cpus[i]))
				print_full_cpu(view, slots->cpus[i], class);
		}
	}
	for (i = 0; i < slots->nr_holders; i++) {
		for (class = 0; class < slots->nr_classes; class++) {
			if (is_shown_task(view, &slots->holders[i]))
				print_full_task(view, &slots->holders[i], class);
		}
	}
}

/* ---- report ---- */

static void show_view(const struct view *view)
{
	const struct slots *slots = &view->slots;
	const struct holder *wide = slots_holder(slots, SLOTS_NO_TASK, SLOTS_ANY_CPU);
	size_t i;

	if (wide && wants_holder(view, wide))
		show_holder(view, wide);
	for (i = 0; i < slots->nr_cpus; i++)
		show_cpu(view, slots->cpus[i]);
	for (i = 0; i < slots->nr_holders; i++) {
		if (is_shown_task(view, &slots->holders[i]))
			show_holder(view, &slots->holders[i]);
	}
}

void slots_report(const struct slots_options *opt)
{
	struct view view = { .opt = opt, .same_pids = slots_same_pids() };
	char *why = slots_read(&view.slots, opt->from);

	if (why)
		die("%s", why);
	check_choice(&view);
	find_names(&view);
	if (opt->json)
		json_classes(&view.slots);
	else
		print_classes(&view);
	show_view(&view);
	if (!opt->json) {
		if (opt->pid && !view.nr_tasks)
			printf("task %d: no claims%s\n", opt->pid, opt->cpu < 0 ? "" : " there");
		print_full(&view);
	}
	flush_output(stdout);
}
