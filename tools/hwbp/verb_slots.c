// SPDX-License-Identifier: GPL-2.0
/* hwbp slots: show the breakpoints that hold the debug registers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "kallsyms.h"
#include "options.h"
#include "slots.h"
#include "symbols.h"
#include "tracefs.h"
#include "util.h"
#include "verb.h"

/* Maximum width of the NAME column; longer names overflow it. */
#define MAX_NAME	40

static const char *const usage[] = {
	"hwbp slots [-p PID] [--cpu N]",
	"",
	"Show which breakpoints hold the debug registers (requires root and debugfs):",
	"  - the number of registers of each CPU",
	"  - for each CPU, the claims of breakpoints that watch all tasks on the CPU, and",
	"    the current contents of its registers",
	"  - for each task, its claims: CPU, watched address, owner",
	"  - the CPUs and tasks that are full: a further breakpoint fails with ENOSPC",
	"A guaranteed breakpoint has a register of its own on each CPU on which it may run.",
	"One register is left for all flexible breakpoints together, which are multiplexed",
	"on the registers that guaranteed ones leave. Claims of different tasks do not add",
	"up, because two tasks never run on a CPU at the same time.",
	"",
	"The exit status is 0, or 125 on failure.",
	NULL
};

/**
 * struct view - what to show: claims and registers that have holding::chosen
 * @pid: task or process to show, 0 for all
 * @cpu: CPU to show, -1 for all
 * @name_width: width of the column NAME
 * @any_task: a task is shown
 */
struct view {
	pid_t pid;
	int cpu;
	struct slots slots;
	int name_width;
	bool any_task;
};

static bool is_task(const struct holding *h)
{
	return h->section >= SLOTS_TASK;
}

/* ---- selection ---- */

static bool wants_cpu(const struct view *view, int cpu)
{
	return view->cpu < 0 || cpu == SLOTS_ANY_CPU || cpu == view->cpu;
}

/* With -p a CPU is shown without its claims. */
static bool wants(const struct view *view, const struct holding *h)
{
	if (h->kind == HOLDING_NONE || !wants_cpu(view, is_task(h) ? h->number : h->section))
		return false;
	return !view->pid || h->pid == view->pid || (h->tgid == view->pid && h->tgid > 0);
}

/* A CPU is shown even if it has neither claims nor registers. */
static bool wants_section(const struct view *view, const struct holding *h)
{
	const struct holding *end = slots_next(&view->slots, h);

	if (!view->pid && !is_task(h))
		return wants_cpu(view, h->section);
	while (h < end && !h->chosen)
		h++;
	return h < end;
}

/* Choose what to show, and name its addresses. Threads of a process share their symbols. */
static void choose(struct view *view)
{
	struct symbols *syms = NULL;
	struct holding *h;
	char *name = NULL;
	pid_t of = 0;

	view->name_width = strlen("NAME");
	for (h = view->slots.all; h < view->slots.end; h++) {
		h->chosen = wants(view, h);
		view->any_task |= h->chosen && is_task(h);
		if (!h->chosen || h->kind == HOLDING_FREE)
			continue;
		if (h->pid != SLOTS_NO_TASK && view->slots.same_pids && h->tgid != of) {
			symbols_free(syms);
			syms = symbols_new();
			of = h->tgid;
			if (!symbols_try_maps(syms, h->pid)) {
				symbols_free(syms);
				syms = NULL;
			}
		}
		if ((int64_t)h->address < 0)
			name = kallsyms_name(h->address);
		else
			name = h->tgid == of && syms ? symbols_name(syms, h->address) : NULL;
		h->name = name ? printable(name) : xstrdup("-");
		if ((int)strlen(h->name) > view->name_width && strlen(h->name) <= MAX_NAME)
			view->name_width = strlen(h->name);
	}
	symbols_free(syms);
}

static void check(const struct view *view)
{
	const struct holding *h = slots_find(&view->slots, view->cpu);

	if (view->pid && !view->any_task && view->slots.same_pids &&
	    access(xasprintf("/proc/%d", view->pid), F_OK))
		die("no such process: %d", view->pid);
	if (view->cpu >= 0 && (h == view->slots.end || h->section != view->cpu))
		die("CPU %d is not online and has no claims", view->cpu);
}

/* ---- lines ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* What the registers of @class are for */
static const char *purpose(const char *class)
{
	if (!strcmp(class, "any"))
		return "instructions and data";
	return strcmp(class, "inst") ? class : "instructions";
}

static void print_head(const struct view *view)
{
	size_t nr[3] = { 0 }, tasks = 0;
	const struct holding *h;
	unsigned int i;

	for (h = view->slots.all; h < view->slots.end; h++) {
		nr[is_task(h) ? 2 : h->section >= 0] += h->kind == HOLDING_CLAIM;
		tasks += is_task(h) && (h == view->slots.all || h->section != h[-1].section);
	}
	printf("registers of each CPU:");
	for (i = 0; i < view->slots.nr_classes; i++)
		printf("%s %u for %s", i ? "," : "", view->slots.registers[i],
		       purpose(view->slots.class[i]));
	printf("; ");
	if (nr[0])
		printf("%zu claim%s of all CPUs, ", nr[0], plural(nr[0]));
	printf("%zu claim%s of CPUs, %zu of %zu task%s\n\n", nr[1], plural(nr[1]), nr[2], tasks,
	       plural(tasks));
	printf("  %-11s %-10s%s %-4s %3s %-18s %-*s %s\n", "", "KIND",
	       view->slots.nr_classes > 1 ? " CLASS" : "", "TYPE", "LEN", "ADDRESS",
	       view->name_width, "NAME", "OWNER");
}

static void print_holding(const struct view *view, const struct holding *h)
{
	bool claim = h->kind == HOLDING_CLAIM;
	char where[32] = "claim";

	if (!claim)
		snprintf(where, sizeof(where), "register %d", h->number);
	else if (is_task(h) && h->number == SLOTS_ANY_CPU)
		snprintf(where, sizeof(where), "any CPU");
	else if (is_task(h))
		snprintf(where, sizeof(where), "CPU %d", h->number);
	if (h->kind == HOLDING_FREE) {
		printf("  %-11s free\n", where);
		return;
	}
	printf("  %-11s %-10s", where, h->flexible ? "flexible" : "guaranteed");
	if (view->slots.nr_classes > 1)
		printf(" %-5s", h->class < 0 ? "-" : view->slots.class[h->class]);
	printf(" %-4s %3u 0x%-16" PRIx64 " %-*s %s", h->type, h->len, h->address,
	       view->name_width, h->name, h->owner);
	if (h->weight > 1)
		printf(", takes %u registers", h->weight);
	if (claim && h->process)
		printf(", for all threads");
	if (!claim && h->pid != SLOTS_NO_TASK)
		printf(", for %s %d (%s)", h->process ? "process" : "task", h->pid, h->comm);
	putchar('\n');
}

static void json_holding(const struct view *view, const struct holding *h)
{
	bool claim = h->kind == HOLDING_CLAIM;
	struct json json = json_begin(stdout, claim ? "claim" : "register");

	json_id(&json, "cpu", claim ? h->number : h->section);
	if (!claim) {
		json_int(&json, "number", h->number);
		json_bool(&json, "free", h->kind == HOLDING_FREE);
	}
	if (h->kind != HOLDING_FREE) {
		json_id(&json, "tid", h->pid);
		if (is_task(h)) {
			json_bool(&json, "process", h->process);
			json_string(&json, "comm", h->comm);
		}
		if (claim)
			json_int(&json, "registers", h->weight);
		if (h->class >= 0)
			json_string(&json, "class", view->slots.class[h->class]);
		json_bool(&json, "flexible", h->flexible);
		json_string(&json, "access", h->type);
		json_int(&json, "len", h->len);
		json_address(&json, "address", h->address);
		json_string(&json, "symbol", strcmp(h->name, "-") ? h->name : NULL);
		json_string(&json, "owner", h->owner);
	}
	json_end(&json);
}

static void show_section(const struct view *view, const struct holding *first)
{
	const struct holding *end = slots_next(&view->slots, first), *h;
	size_t claims[2] = { 0 }, registers = 0;

	for (h = first; h < end; h++) {
		claims[h->flexible] += h->kind == HOLDING_CLAIM && h->chosen;
		registers += h->kind == HOLDING_REGISTER || h->kind == HOLDING_FREE;
	}
	if (is_task(first))
		printf("task %d (%s)", first->pid, first->comm);
	else if (first->section == SLOTS_ANY_CPU)
		printf("all CPUs");
	else
		printf("CPU %d%s", (int)first->section, registers ? "" : " (offline)");
	if (is_task(first) && first->tgid != first->pid)
		printf(", a thread of %d", first->tgid);
	if (claims[0])
		printf(": %zu guaranteed", claims[0]);
	if (claims[1])
		printf("%s %zu flexible", claims[0] ? "," : ":", claims[1]);
	printf("%s\n", claims[0] || claims[1] || view->pid ? "" : ": no claims");
	for (h = first; h < end; h++) {
		if (h->chosen)
			print_holding(view, h);
	}
	putchar('\n');
}

/* ---- full CPUs and tasks ---- */

static bool is_full(const struct view *view, int cpu, const struct holding *task, int class)
{
	return slots_full(&view->slots, cpu, task, class, 1, false, false);
}

static void print_full(const struct view *view, int class)
{
	printf(" is full");
	if (view->slots.nr_classes > 1)
		printf(" for %s", purpose(view->slots.class[class]));
}

/* A request for a CPU is checked against the claims of each task. */
static void show_full_cpu(const struct view *view, int cpu, int class)
{
	const struct holding *task = NULL;

	if (!is_full(view, cpu, NULL, class)) {
		task = slots_find(&view->slots, SLOTS_TASK);
		while (task < view->slots.end && !is_full(view, cpu, task, class))
			task = slots_next(&view->slots, task);
		if (task == view->slots.end)
			return;
	}
	printf("CPU %d", cpu);
	print_full(view, class);
	if (task)
		printf(" beside task %d (%s)", task->pid, task->comm);
	printf(": a further guaranteed breakpoint%s fails\n", task ? " of the CPU" : "");
}

/* List the CPUs on which the task is full. */
static void show_full_task(const struct view *view, const struct holding *task, int class)
{
	bool everywhere = is_full(view, SLOTS_OTHER_CPU, task, class);
	const struct holding *h = slots_find(&view->slots, 0);
	char *list = everywhere ? "" : NULL;

	for (; !everywhere && h < view->slots.end && !is_task(h); h = slots_next(&view->slots, h)) {
		if (wants_cpu(view, h->section) && is_full(view, h->section, task, class))
			list = xasprintf("%s%d", list ? xasprintf("%s,", list) : " on CPU ",
					 (int)h->section);
	}
	if (!list)
		return;
	printf("task %d (%s)", task->pid, task->comm);
	print_full(view, class);
	printf("%s: a further guaranteed breakpoint fails%s\n", list, everywhere ? "" : " there");
}

/* ---- report ---- */

static void show_text(const struct view *view)
{
	const struct holding *h;
	unsigned int class;

	print_head(view);
	for (h = view->slots.all; h < view->slots.end; h = slots_next(&view->slots, h)) {
		if (wants_section(view, h))
			show_section(view, h);
	}
	if (view->pid && !view->any_task)
		printf("task %d: no claims%s\n", view->pid, view->cpu < 0 ? "" : " there");
	for (h = slots_find(&view->slots, 0); h < view->slots.end;
	     h = slots_next(&view->slots, h)) {
		for (class = 0; wants_section(view, h) && class < view->slots.nr_classes; class++) {
			if (is_task(h))
				show_full_task(view, h, class);
			else if (!view->pid)
				show_full_cpu(view, h->section, class);
		}
	}
}

static void show_json(const struct view *view)
{
	const struct holding *h;
	unsigned int class;
	struct json json;

	for (class = 0; class < view->slots.nr_classes; class++) {
		json = json_begin(stdout, "class");
		json_string(&json, "name", view->slots.class[class]);
		json_int(&json, "registers", view->slots.registers[class]);
		json_end(&json);
	}
	for (h = view->slots.all; h < view->slots.end; h++) {
		if (h->chosen)
			json_holding(view, h);
	}
}

static int run(int argc, const char **argv)
{
	struct view view = { .cpu = SLOTS_ANY_CPU };
	const char *from = NULL;
	bool json = false;
	const struct option options[] = {
		OPT_PID('p', "pid", &view.pid,
			"show only this task or, if it is a process, all its threads"),
		OPT_CPU(0, "cpu", &view.cpu,
			"show only this CPU, and claims of tasks that apply to it"),
		OPT_BOOLEAN(0, "json", &json, "print JSON, one object per line"),
		/* For tests */
		{ .type = OPTION_STRING, .long_name = "from", .value = &from,
		  .argh = "FILE", .help = "read FILE instead of the list in debugfs",
		  .flags = PARSE_OPT_HIDDEN },
		OPTIONS_END
	};
	char *why;

	argc = options_parse(argc, argv, options, usage);
	if (argc)
		die("unexpected argument '%s' (see hwbp slots --help)", argv[0]);
	why = slots_read(&view.slots, from);
	if (why)
		die("%s", why);
	choose(&view);
	check(&view);
	(json ? show_json : show_text)(&view);
	flush_output(stdout);
	if (!from)
		tracefs_note_left();
	return 0;
}

const struct verb verb_slots = {
	.name = "slots",
	.summary = "show which tasks and CPUs hold the debug registers",
	.run = run,
};
