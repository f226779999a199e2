// SPDX-License-Identifier: GPL-2.0
/* Output of 'hwbp slots': claims and registers of CPUs and tasks. */
#define _GNU_SOURCE
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
 * @slots: all claims and registers
 * @process: -p: show only this task, or the threads of this process; 0 for all
 * @cpu: --cpu, or SLOTS_ANY_CPU
 * @same_pids: hwbp is in the initial pid namespace, whose pids the list has
 * @tasks: tasks to show, by pid
 * @nr_tasks: number of @tasks
 * @tasks_room: capacity of @tasks
 * @syms: symbols of the process @syms_of, NULL if it has none
 * @syms_of: process whose symbols were looked up last
 * @name_width: width of the NAME column
 */
struct view {
	struct slots slots;
	pid_t process;
	int cpu;
	bool same_pids;
	const struct slots_task **tasks;
	size_t nr_tasks;
	size_t tasks_room;
	struct symbols *syms;
	pid_t syms_of;
	int name_width;
};

/* ---- selection ---- */

static bool wants_process(const struct view *view, pid_t pid, pid_t process)
{
	return !view->process || pid == view->process || process == view->process;
}

static bool wants_cpu(const struct view *view, const struct slots_cpu *cpu)
{
	return view->cpu == SLOTS_ANY_CPU || view->cpu == cpu->number;
}

static bool wants_claim(const struct view *view, const struct holding *claim)
{
	return view->cpu == SLOTS_ANY_CPU || slots_holds_on(claim, view->cpu);
}

static bool wants_register(const struct view *view, const struct holding *reg)
{
	if (!view->process)
		return true;
	return reg->pid != SLOTS_NO_TASK &&
	       wants_process(view, reg->pid, slots_process_of(reg->pid, view->same_pids));
}

static size_t nr_wanted(const struct view *view, const struct holding_list *claims,
			bool flexible)
{
	size_t i, nr = 0;

	for (i = 0; i < claims->nr; i++) {
		const struct holding *h = &claims->entries[i];

		nr += h->flexible == flexible && wants_claim(view, h);
	}
	return nr;
}

static void choose_tasks(struct view *view)
{
	size_t i;

	for (i = 0; i < view->slots.nr_tasks; i++) {
		const struct slots_task *task = &view->slots.tasks[i];

		if (!nr_wanted(view, &task->claims, false) && !nr_wanted(view, &task->claims, true))
			continue;
		if (!wants_process(view, task->pid, task->process))
			continue;
		GROW(view->tasks, view->nr_tasks, view->tasks_room);
		view->tasks[view->nr_tasks++] = task;
	}
}

static void check_choice(const struct view *view)
{
	char *name = xasprintf("/proc/%d", view->process);
	size_t i;

	if (view->process && !view->nr_tasks && view->same_pids && access(name, F_OK))
		die("no such process: %d", view->process);
	free(name);
	if (view->cpu == SLOTS_ANY_CPU)
		return;
	for (i = 0; i < view->slots.nr_cpus; i++) {
		if (view->slots.cpus[i].number == view->cpu)
			return;
	}
	die("CPU %d is not online and has no claims", view->cpu);
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

/* Reuse the name of a claim of the same task and address, if there is one. */
static void set_register_name(struct view *view, struct holding *h)
{
	const struct slots_task *task = slots_find_task(&view->slots, h->pid);
	size_t i;

	for (i = 0; task && i < task->claims.nr && !h->name; i++) {
		const struct holding *claim = &task->claims.entries[i];

		if (claim->name && claim->address == h->address)
			h->name = xstrdup(claim->name);
	}
	if (!h->name)
		set_name(view, h);
}

static void name_task(struct view *view, const struct slots_task *task)
{
	size_t i;

	for (i = 0; i < task->claims.nr; i++) {
		if (wants_claim(view, &task->claims.entries[i]))
			set_name(view, &task->claims.entries[i]);
	}
}

static void name_cpu(struct view *view, const struct slots_cpu *cpu)
{
	size_t i;

	for (i = 0; !view->process && i < cpu->claims.nr; i++)
		set_name(view, &cpu->claims.entries[i]);
	for (i = 0; i < cpu->registers.nr; i++) {
		struct holding *h = &cpu->registers.entries[i];

		if (!h->free && wants_register(view, h))
			set_register_name(view, h);
	}
}

static void find_names(struct view *view)
{
	size_t i;

	view->name_width = strlen("NAME");
	for (i = 0; !view->process && i < view->slots.wide.nr; i++)
		set_name(view, &view->slots.wide.entries[i]);
	for (i = 0; i < view->nr_tasks; i++)
		name_task(view, view->tasks[i]);
	for (i = 0; i < view->slots.nr_cpus; i++) {
		if (wants_cpu(view, &view->slots.cpus[i]))
			name_cpu(view, &view->slots.cpus[i]);
	}
	symbols_free(view->syms);
	view->syms = NULL;
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

static void print_summary(const struct view *view)
{
	const struct slots *slots = &view->slots;
	size_t i, of_cpus = 0, of_tasks;

	for (i = 0; i < slots->nr_cpus; i++)
		of_cpus += slots->cpus[i].claims.nr;
	of_tasks = slots->claims.nr - slots->wide.nr - of_cpus;
	printf("registers of each CPU:");
	for (i = 0; i < slots->nr_classes; i++)
		printf("%s %u for %s", i ? "," : "", slots->classes[i].slots,
		       purpose(&slots->classes[i]));
	printf("; ");
	if (slots->wide.nr)
		printf("%zu claim%s of all CPUs, ", slots->wide.nr, plural(slots->wide.nr));
	printf("%zu claim%s of CPUs, %zu of %zu task%s\n\n", of_cpus, plural(of_cpus), of_tasks,
	       slots->nr_tasks, plural(slots->nr_tasks));
}

static void print_titles(const struct view *view)
{
	printf("  %-11s %-10s%s %-4s %3s %-18s %-*s %s\n", "", "KIND",
	       view->slots.nr_classes > 1 ? " CLASS" : "", "TYPE", "LEN", "ADDRESS",
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

/* ---- sections ---- */

static void print_counts(const struct view *view, const struct holding_list *claims)
{
	size_t guaranteed = nr_wanted(view, claims, false);
	size_t flexible = nr_wanted(view, claims, true);

	if (!guaranteed && !flexible)
		printf(": no claims\n");
	else if (!flexible)
		printf(": %zu guaranteed\n", guaranteed);
	else if (!guaranteed)
		printf(": %zu flexible\n", flexible);
	else
		printf(": %zu guaranteed, %zu flexible\n", guaranteed, flexible);
}

/* Claims of kernel-wide breakpoints, which apply to every CPU, online or not */
static void print_wide(const struct view *view)
{
	const struct holding_list *claims = &view->slots.wide;
	size_t i;

	if (view->process || !claims->nr)
		return;
	printf("all CPUs");
	print_counts(view, claims);
	for (i = 0; i < claims->nr; i++)
		print_claim(view, &claims->entries[i]);
	putchar('\n');
}

static bool has_wanted_register(const struct view *view, const struct slots_cpu *cpu)
{
	size_t i;

	for (i = 0; i < cpu->registers.nr; i++) {
		if (wants_register(view, &cpu->registers.entries[i]))
			return true;
	}
	return false;
}

static void print_cpu_head(const struct view *view, const struct slots_cpu *cpu)
{
	printf("CPU %d%s", cpu->number, cpu->registers.nr ? "" : " (offline)");
	if (view->process)
		putchar('\n');
	else
		print_counts(view, &cpu->claims);
}

static void print_cpu(const struct view *view, const struct slots_cpu *cpu)
{
	size_t i;

	if (view->process && !has_wanted_register(view, cpu))
		return;
	print_cpu_head(view, cpu);
	for (i = 0; !view->process && i < cpu->claims.nr; i++)
		print_claim(view, &cpu->claims.entries[i]);
	for (i = 0; i < cpu->registers.nr; i++) {
		if (wants_register(view, &cpu->registers.entries[i]))
			print_register(view, &cpu->registers.entries[i]);
	}
	putchar('\n');
}

static void print_task(const struct view *view, const struct slots_task *task)
{
	size_t i;

	printf("task %d (%s)", task->pid, task->comm);
	if (task->process != task->pid)
		printf(", a thread of %d", task->process);
	print_counts(view, &task->claims);
	for (i = 0; i < task->claims.nr; i++) {
		if (wants_claim(view, &task->claims.entries[i]))
			print_claim(view, &task->claims.entries[i]);
	}
	putchar('\n');
}

/* ---- full CPUs and tasks ---- */

static void print_full_what(const struct slots *slots, int class)
{
	printf(" is full");
	if (slots->nr_classes > 1)
		printf(" for %s", purpose(&slots->classes[class]));
}

static const struct slots_task *find_full_task(const struct slots *slots,
					       const struct slots_cpu *cpu, int class)
{
	size_t i;

	for (i = 0; i < slots->nr_tasks; i++) {
		if (slots_full(slots, cpu, &slots->tasks[i], class, false))
			return &slots->tasks[i];
	}
	return NULL;
}

/* A request for a CPU is checked against the claims of each task. */
static void print_full_cpu(const struct view *view, const struct slots_cpu *cpu, int class)
{
	const struct slots *slots = &view->slots;
	const struct slots_task *task = NULL;
	bool alone = slots_full(slots, cpu, NULL, class, false);

	if (!alone)
		task = find_full_task(slots, cpu, class);
	if (!alone && !task)
		return;
	printf("CPU %d", cpu->number);
	print_full_what(slots, class);
	if (task)
		printf(" beside task %d (%s)", task->pid, task->comm);
	printf(": a further guaranteed breakpoint%s fails\n", task ? " of the CPU" : "");
}

static char *append_range(char *list, int first, int last)
{
	char *longer;

	if (first == last)
		longer = xasprintf("%s%s%d", list, *list ? "," : "", first);
	else
		longer = xasprintf("%s%s%d-%d", list, *list ? "," : "", first, last);
	free(list);
	return longer;
}

/* List of the CPUs on which a task is full, such as "0-2,5" */
static char *full_cpus(const struct view *view, const struct slots_task *task, int class)
{
	int first = SLOTS_OTHER_CPU, last = SLOTS_OTHER_CPU;
	const struct slots *slots = &view->slots;
	char *list = xstrdup("");
	size_t i;

	for (i = 0; i < slots->nr_cpus; i++) {
		const struct slots_cpu *cpu = &slots->cpus[i];

		if (!wants_cpu(view, cpu) || !slots_full(slots, cpu, task, class, false))
			continue;
		if (first >= 0 && cpu->number != last + 1)
			list = append_range(list, first, last);
		if (first < 0 || cpu->number != last + 1)
			first = cpu->number;
		last = cpu->number;
	}
	return first < 0 ? list : append_range(list, first, last);
}

static void print_full_task(const struct view *view, const struct slots_task *task, int class)
{
	const struct slots_cpu other = { .number = SLOTS_OTHER_CPU };
	const struct slots *slots = &view->slots;
	bool everywhere = slots_full(slots, &other, task, class, false);
	char *cpus = everywhere ? xstrdup("") : full_cpus(view, task, class);

	if (everywhere || *cpus) {
		printf("task %d (%s)", task->pid, task->comm);
		print_full_what(slots, class);
		if (!everywhere)
			printf(" on CPU %s", cpus);
		printf(": a further guaranteed breakpoint fails%s\n",
		       everywhere ? "" : " there");
	}
	free(cpus);
}

static void print_full(const struct view *view)
{
	const struct slots *slots = &view->slots;
	unsigned int class;
	size_t i;

	for (i = 0; !view->process && i < slots->nr_cpus; i++) {
		for (class = 0; class < slots->nr_classes; class++) {
			if (wants_cpu(view, &slots->cpus[i]))
				print_full_cpu(view, &slots->cpus[i], class);
		}
	}
	for (i = 0; i < view->nr_tasks; i++) {
		for (class = 0; class < slots->nr_classes; class++)
			print_full_task(view, view->tasks[i], class);
	}
}

/* ---- report ---- */

static void print_view(const struct view *view)
{
	size_t i;

	print_summary(view);
	print_titles(view);
	print_wide(view);
	for (i = 0; i < view->slots.nr_cpus; i++) {
		if (wants_cpu(view, &view->slots.cpus[i]))
			print_cpu(view, &view->slots.cpus[i]);
	}
	for (i = 0; i < view->nr_tasks; i++)
		print_task(view, view->tasks[i]);
	if (view->process && !view->nr_tasks)
		printf("task %d: no claims%s\n", view->process,
		       view->cpu == SLOTS_ANY_CPU ? "" : " there");
	print_full(view);
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
static void json_holder(struct json *json, const char *key, int value, bool known)
{
	if (known)
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
	json_string(json, "symbol", h->name && strcmp(h->name, "-") ? h->name : NULL);
	json_string(json, "owner", owner);
	free(owner);
}

static void json_claim(const struct view *view, const struct holding *h)
{
	struct json json = json_begin(stdout, "claim");

	json_holder(&json, "cpu", h->cpu, h->cpu != SLOTS_ANY_CPU);
	json_holder(&json, "tid", h->pid, h->pid != SLOTS_NO_TASK);
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
		json_holder(&json, "tid", h->pid, h->pid != SLOTS_NO_TASK);
		json_breakpoint(&json, view, h);
	}
	json_end(&json);
}

static void json_claims(const struct view *view, const struct holding_list *claims)
{
	size_t i;

	for (i = 0; i < claims->nr; i++) {
		if (wants_claim(view, &claims->entries[i]))
			json_claim(view, &claims->entries[i]);
	}
}

static void json_cpu(const struct view *view, const struct slots_cpu *cpu)
{
	size_t i;

	if (!view->process)
		json_claims(view, &cpu->claims);
	for (i = 0; i < cpu->registers.nr; i++) {
		if (wants_register(view, &cpu->registers.entries[i]))
			json_register(view, &cpu->registers.entries[i]);
	}
}

static void json_view(const struct view *view)
{
	size_t i;

	json_classes(&view->slots);
	if (!view->process)
		json_claims(view, &view->slots.wide);
	for (i = 0; i < view->slots.nr_cpus; i++) {
		if (wants_cpu(view, &view->slots.cpus[i]))
			json_cpu(view, &view->slots.cpus[i]);
	}
	for (i = 0; i < view->nr_tasks; i++)
		json_claims(view, &view->tasks[i]->claims);
}

void slots_report(const struct slots_options *opt)
{
	struct view view = { .process = opt->pid, .cpu = opt->cpu };

	slots_read(&view.slots, opt->from);
	view.same_pids = slots_same_pids();
	choose_tasks(&view);
	check_choice(&view);
	find_names(&view);
	if (opt->json)
		json_view(&view);
	else
		print_view(&view);
	flush_output(stdout);
}
