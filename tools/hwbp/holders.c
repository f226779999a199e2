// SPDX-License-Identifier: GPL-2.0
/*
 * The message for ENOSPC: which breakpoints hold the registers of the threads of a
 * process, or of all CPUs, and what to do.
 */
#include <inttypes.h>
#include <stdlib.h>
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
	const struct holding *task;
	unsigned int i;

	for (i = 0; i < slots->nr_classes; i++) {
		if (!strcmp(slots->class[i], req->execute ? "data" : "inst"))
			continue;
		slots_full(slots, cpu, NULL, i, req->need, req->flexible, true);
		/* A CPU needs a register beside each task, a process one in each thread. */
		for (task = slots_find(slots, SLOTS_TASK); task < slots->end;
		     task = slots_next(slots, task)) {
			if (!req->pid || req->pid == task->tgid)
				slots_full(slots, cpu, task, i, req->need, req->flexible, true);
		}
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
	return xasprintf("  %s: %s%s, %s of %u byte%s at %#" PRIx64 "%s%s%s",
			 h->owner, h->flexible ? "flexible, " : "", scope, h->type,
			 h->len, h->len == 1 ? "" : "s", h->address, name ? " (" : "",
			 name ? printable(name) : "", name ? ")" : "");
}

/* The lines of the holders, each once: they do not show the CPU of a thread's claim. */
static size_t find_lines(const struct slots *slots, const struct holders_request *req,
			 char **lines)
{
	struct holding *h = slots->all;
	size_t i, nr = 0;

	choose(slots, req, SLOTS_OTHER_CPU);
	for (; h < slots->end && h->section < SLOTS_TASK; h = slots_next(slots, h))
		choose(slots, req, h->section);
	for (h = slots->all; h < slots->end; h++) {
		if (!h->chosen)
			continue;
		lines[nr] = line_of(req, h);
		for (i = 0; strcmp(lines[i], lines[nr]); i++)
			;
		nr += i == nr;
	}
	return nr;
}

void holders_die(const struct holders_request *req, const char *what, const char *advice)
{
	struct slots slots = { 0 };
	char *why = slots_read(&slots, NULL), *text = "", **lines;
	size_t i, nr = 0;

	if (!why) {
		lines = xzalloc((slots.nr + 1) * sizeof(*lines));
		nr = find_lines(&slots, req, lines);
		if (!nr && !slots.same_pids)
			why = "hwbp is not in the pid namespace of the list";
	}
	if (why)
		die("%s: other breakpoints hold the %u registers\n  %s: %s\n  %s", what,
		    caps_registers(req->execute), "their owners are not known", why, advice);
	/* The list is read after the request has failed. */
	if (!nr)
		die("%s, but %s now: try again", what, req->need > 1 ? "they are" : "one is");
	for (i = 0; i < nr && i < MAX_HOLDERS; i++)
		text = xasprintf("%s\n%s", text, lines[i]);
	if (nr > MAX_HOLDERS)
		text = xasprintf("%s\n  and %zu more (see hwbp slots)", text, nr - MAX_HOLDERS);
	die(req->need > 1 ? "%s, of %u these are claimed:%s\n  %s" :
			    "%s, all %u are claimed:%s\n  %s", what, caps_registers(req->execute),
	    text, advice);
}
