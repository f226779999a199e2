// SPDX-License-Identifier: GPL-2.0
/*
 * The message for ENOSPC: which breakpoints hold the registers of the threads of a
 * process, or of all CPUs, and what to do.
 */
#include <inttypes.h>
#include <string.h>

#include "caps.h"
#include "holders.h"
#include "slots.h"
#include "symbols.h"
#include "util.h"

#define MAX_HOLDERS	8

/* Choose the claims that leave no register on @cpu for the request. */
static void choose(const struct slots *slots, const struct holders_request *req, int cpu)
{
	const struct holding *task = slots_find(slots, SLOTS_TASK);

	slots_full(slots, cpu, NULL, req->need, req->flexible, true);
	/* A CPU needs a register beside each task, a process one in each thread. */
	for (; task < slots->end; task = slots_next(slots, task)) {
		if (!req->pid || req->pid == task->tgid)
			slots_full(slots, cpu, task, req->need, req->flexible, true);
	}
}

static char *line_of(const struct holders_request *req, const struct holding *h)
{
	bool user = req->syms && h->pid != SLOTS_NO_TASK && (int64_t)h->address >= 0;
	char *name = user ? symbols_name(req->syms, h->address) : NULL, *scope;

	if (h->pid != SLOTS_NO_TASK)
		scope = xasprintf("%s %d (%s)", h->process ? "process" : "thread", h->pid, h->comm);
	else
		scope = h->section < 0 ? "all CPUs" : xasprintf("CPU %d", h->number);
	return xasprintf("  %s: %s%s, %s of %u byte%s at %#" PRIx64 "%s%s%s\n",
			 h->owner, h->flexible ? "flexible, " : "", scope, h->type,
			 h->len, h->len == 1 ? "" : "s", h->address, name ? " (" : "",
			 name ? printable(name) : "", name ? ")" : "");
}

void holders_die(const struct holders_request *req, const char *what, const char *advice)
{
	char *text = "", *more = "", *line;
	struct slots slots = { 0 };
	char *why = slots_read(&slots, NULL);
	int nr = 0, shown = 0, cpu;
	struct holding *h;

	/* The last one is a CPU that no claim names. */
	for (cpu = 0; cpu <= slots.nr_cpus; cpu++)
		choose(&slots, req, cpu);
	for (h = slots.all; h < slots.end; h++) {
		/* The lines do not show the CPU of a thread's claim: print each once. */
		line = h->chosen ? line_of(req, h) : "";
		if (strstr(text, line))
			continue;
		text = xasprintf("%s%s", text, line);
		if (nr++ < MAX_HOLDERS)
			shown = strlen(text);
	}
	if (!why && !nr && !slots.same_pids)
		why = "hwbp is not in the pid namespace of the list";
	if (why)
		die("%s: other breakpoints hold the %u registers\n  %s: %s\n  %s", what,
		    caps_registers(false), "their owners are not known", why, advice);
	/* The list is read after the request has failed. */
	if (!nr)
		die("%s, but %s now: try again", what, req->need > 1 ? "they are" : "one is");
	if (nr > MAX_HOLDERS)
		more = xasprintf("  and %d more (see hwbp slots)\n", nr - MAX_HOLDERS);
	die("%s, %s %u %s claimed:\n%.*s%s  %s", what, req->need > 1 ? "of" : "all",
	    caps_registers(false), req->need > 1 ? "these are" : "are", shown, text, more,
	    advice);
}
