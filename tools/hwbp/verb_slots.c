// SPDX-License-Identifier: GPL-2.0
/* hwbp slots: show the breakpoints that hold the debug registers. */
#include <inttypes.h>
#include <stdio.h>
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

/* Longer names overflow the column NAME. */
#define NAME_WIDTH	16

static const char *const usage[] = {
	"hwbp slots [-p PID] [--cpu N]",
	"",
	"Show which breakpoints hold the debug registers (requires root and debugfs): of each",
	"CPU the claims of breakpoints that watch all tasks, and what its registers contain;",
	"of each task its claims; and the CPUs and tasks that are full: a further breakpoint",
	"fails with ENOSPC. A guaranteed breakpoint has a register of its own on each CPU on",
	"which it may run. All flexible ones together need one, and are multiplexed on those",
	"that guaranteed ones leave. Claims of different tasks do not add up, because two",
	"tasks never run on a CPU at the same time.",
	"",
	"The exit status is 0, or 125 on failure.",
	NULL
};

/**
 * struct view - what to show: claims and registers that have holding::chosen
 * @pid: task or process to show, 0 for all
 * @cpu: CPU to show, -1 for all
 * @any_task: a task is shown
 */
struct view {
	pid_t pid;
	int cpu;
	struct slots slots;
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
	return wants_cpu(view, is_task(h) ? h->number : h->section) &&
	       (!view->pid || h->pid == view->pid || h->tgid == view->pid);
}

/* Choose what to show, and name its addresses. Threads of a process share their symbols. */
static void choose(struct view *view)
{
	struct symbols *syms = NULL;
	pid_t of = SLOTS_NO_TASK;
	struct holding *h;

	for (h = view->slots.all; h < view->slots.end; h++) {
		h->chosen = wants(view, h);
		view->any_task |= h->chosen && is_task(h);
		if (!h->chosen || h->kind == HOLDING_FREE)
			continue;
		if ((int64_t)h->address < 0) {
			h->name = kallsyms_name(h->address);
			continue;
		}
		if (view->slots.same_pids && h->pid != SLOTS_NO_TASK && h->tgid != of) {
			symbols_free(syms);
			syms = symbols_new();
			of = h->tgid;
			symbols_try_maps(syms, h->pid);
		}
		h->name = syms && h->tgid == of ? symbols_name(syms, h->address) : NULL;
	}
	symbols_free(syms);
	if (view->pid && !view->any_task && view->slots.same_pids &&
	    access(xasprintf("/proc/%d", view->pid), F_OK))
		die("no such process: %d", view->pid);
	h = slots_find(&view->slots, view->cpu);
	if (view->cpu >= 0 && (h == view->slots.end || h->section != view->cpu))
		die("CPU %d is not online and has no claims", view->cpu);
}

/* ---- lines ---- */

static void print_holding(const struct holding *h)
{
	bool claim = h->kind == HOLDING_CLAIM;
	char where[32] = "claim";

	if (!claim)
		snprintf(where, sizeof(where), "register %d", h->number);
	else if (is_task(h))
		snprintf(where, sizeof(where), h->number < 0 ? "any CPU" : "CPU %d", h->number);
	if (h->kind == HOLDING_FREE) {
		printf("  %-11s free\n", where);
		return;
	}
	printf("  %-11s %-10s %-4s %3u 0x%-16" PRIx64 " %-*s %s", where,
	       h->flexible ? "flexible" : "guaranteed", h->type, h->len, h->address, NAME_WIDTH,
	       h->name ? printable(h->name) : "-", h->owner);
	if (h->weight > 1)
		printf(", takes %u registers", h->weight);
	if (claim && h->process)
		printf(", for all threads");
	if (!claim && h->pid != SLOTS_NO_TASK)
		printf(", for %s %d (%s)", h->process ? "process" : "task", h->pid, h->comm);
	putchar('\n');
}

static void json_holding(const struct holding *h)
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
		json_bool(&json, "process", h->process);
		json_string(&json, "comm", h->comm);
		if (claim)
			json_int(&json, "registers", h->weight);
		json_bool(&json, "flexible", h->flexible);
		json_string(&json, "access", h->type);
		json_int(&json, "len", h->len);
		json_address(&json, "address", h->address);
		json_string(&json, "symbol", h->name);
		json_string(&json, "owner", h->owner);
	}
	json_end(&json);
}

/* A CPU is shown even if it has no claims. */
static bool is_shown(const struct view *view, const struct holding *first)
{
	const struct holding *end = slots_next(&view->slots, first), *h = first;

	while (h < end && !h->chosen)
		h++;
	return h < end || (!view->pid && !is_task(first) && wants_cpu(view, first->section));
}

static void show_section(const struct view *view, const struct holding *first)
{
	const struct holding *end = slots_next(&view->slots, first), *h;

	if (is_task(first))
		printf("task %d (%s)", first->pid, first->comm);
	else if (first->section == SLOTS_ANY_CPU)
		printf("all CPUs");
	else
		printf("CPU %d%s", (int)first->section,
		       end[-1].kind == HOLDING_CLAIM ? " (offline)" : "");
	if (is_task(first) && first->tgid != first->pid)
		printf(", a thread of %d", first->tgid);
	putchar('\n');
	for (h = first; h < end; h++) {
		if (h->chosen)
			print_holding(h);
	}
	putchar('\n');
}

/* ---- full CPUs and tasks ---- */

static bool is_full(const struct view *view, int cpu, const struct holding *task)
{
	return slots_full(&view->slots, cpu, task, 1, false, false);
}

/* A request for a CPU is checked against the claims of each task. */
static void show_full_cpu(const struct view *view, int cpu)
{
	const struct holding *task = slots_find(&view->slots, SLOTS_TASK);

	bool full = is_full(view, cpu, NULL);

	while (!full && task < view->slots.end && !is_full(view, cpu, task))
		task = slots_next(&view->slots, task);
	if (full)
		printf("CPU %d is full: a further guaranteed breakpoint fails\n", cpu);
	else if (task < view->slots.end)
		printf("CPU %d is full beside task %d (%s): a further guaranteed breakpoint %s\n",
		       cpu, task->pid, task->comm, "of the CPU fails");
}

/* List the CPUs on which the task is full. */
static void show_full_task(const struct view *view, const struct holding *task)
{
	/* The last one is a CPU that no claim names. */
	bool everywhere = is_full(view, view->slots.nr_cpus, task);
	char *list = everywhere ? "" : NULL;
	int cpu;

	for (cpu = 0; !everywhere && cpu < view->slots.nr_cpus; cpu++) {
		if (wants_cpu(view, cpu) && is_full(view, cpu, task))
			list = xasprintf("%s%s%d", list ?: " on CPU", list ? "," : " ", cpu);
	}
	if (list)
		printf("task %d (%s) is full%s: a further guaranteed breakpoint fails%s\n",
		       task->pid, task->comm, list, everywhere ? "" : " there");
}

/* ---- report ---- */

static void show_text(const struct view *view)
{
	const struct holding *h;
	int cpu;

	printf("registers of each CPU: %u\n\n", view->slots.registers);
	printf("  %-11s %-10s %-4s %3s %-18s %-*s %s\n", "", "KIND", "TYPE", "LEN", "ADDRESS",
	       NAME_WIDTH, "NAME", "OWNER");
	for (h = view->slots.all; h < view->slots.end; h = slots_next(&view->slots, h))
		if (is_shown(view, h))
			show_section(view, h);
	if (view->pid && !view->any_task)
		printf("task %d: no claims%s\n", view->pid, view->cpu < 0 ? "" : " there");
	for (cpu = 0; !view->pid && cpu < view->slots.nr_cpus; cpu++) {
		if (wants_cpu(view, cpu))
			show_full_cpu(view, cpu);
	}
	for (h = slots_find(&view->slots, SLOTS_TASK); h < view->slots.end;
	     h = slots_next(&view->slots, h)) {
		if (is_shown(view, h))
			show_full_task(view, h);
	}
}

static void show_json(const struct view *view)
{
	const struct holding *h;
	struct json json = json_begin(stdout, "class");

	json_string(&json, "name", "any");
	json_int(&json, "registers", view->slots.registers);
	json_end(&json);
	for (h = view->slots.all; h < view->slots.end; h++) {
		if (h->chosen)
			json_holding(h);
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
