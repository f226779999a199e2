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
#include "location.h"
#include "slots.h"
#include "util.h"

#define MAX_HOLDERS	8

/**
 * struct holders - text of the message
 * @slots: claims and registers
 * @syms: symbols of the process
 * @pid: the process, or SLOTS_NO_TASK for a request for all CPUs
 * @execute: the request is for an instruction
 * @flexible: the request is flexible
 * @same_pids: pids of the kernel are those of hwbp
 * @lines: one line per holder
 * @nr: number of @lines
 * @capacity: capacity of @lines
 */
struct holders {
	struct slots slots;
	struct symbols *syms;
	pid_t pid;
	bool execute;
	bool flexible;
	bool same_pids;
	char **lines;
	size_t nr;
	size_t capacity;
};

static char *scope_text(const struct holding *h)
{
	if (h->pid != SLOTS_NO_TASK)
		return xasprintf("%s %d (%s)", h->process ? "process" : "thread", h->pid,
				 h->comm);
	if (h->cpu == SLOTS_ANY_CPU)
		return xstrdup("all CPUs");
	return xasprintf("CPU %d", h->cpu);
}

static char *name_text(const struct holders *holders, const struct holding *h)
{
	char *name = NULL, *text;

	if (holders->syms && h->pid != SLOTS_NO_TASK && (int64_t)h->address >= 0)
		name = symbols_name(holders->syms, h->address);
	text = name ? xasprintf(" (%s)", printable(name)) : xstrdup("");
	free(name);
	return text;
}

/* Skip a line that is there already: scope_text() does not show the CPU of a thread. */
static void add_line(struct holders *holders, char *line)
{
	size_t i;

	for (i = 0; i < holders->nr; i++) {
		if (!strcmp(holders->lines[i], line)) {
			free(line);
			return;
		}
	}
	GROW(holders->lines, holders->nr, holders->capacity);
	holders->lines[holders->nr++] = line;
}

static void add_holder(struct holders *holders, const struct holding *h)
{
	char *owner = slots_owner_text(h->owner, holders->same_pids);
	char *scope = scope_text(h), *name = name_text(holders, h);

	add_line(holders, xasprintf("  %s: %s%s, %s of %u byte%s at %#" PRIx64 "%s", owner,
				    h->flexible ? "flexible, " : "", scope, h->type, h->len,
				    h->len == 1 ? "" : "s", h->address, name));
	free(owner);
	free(scope);
	free(name);
}

/* Flexible claims leave a flexible request the register that they share. */
static void set_refuses(struct holding *claim, void *arg)
{
	const struct holders *holders = arg;

	claim->refuses |= !(claim->flexible && holders->flexible);
}

static bool needs_class(const struct holders *holders, int class)
{
	return strcmp(holders->slots.classes[class].name, holders->execute ? "data" : "inst");
}

/* Find the claims that leave no register while @task runs on @cpu. */
static void find_on(struct holders *holders, int cpu, const struct holder *task)
{
	const struct slots *slots = &holders->slots;
	unsigned int i;

	for (i = 0; i < slots->nr_classes; i++) {
		if (needs_class(holders, i) && slots_full(slots, cpu, task, i, holders->flexible))
			slots_for_each_claim(slots, cpu, task, i, set_refuses, holders);
	}
}

/* A request for a CPU needs a register beside each task, one for a process in each thread. */
static void find_on_cpu(struct holders *holders, int cpu)
{
	const struct slots *slots = &holders->slots;
	size_t i;

	find_on(holders, cpu, NULL);
	for (i = 0; i < slots->nr_holders; i++) {
		const struct holder *task = &slots->holders[i];

		if (task->pid != SLOTS_NO_TASK &&
		    (holders->pid == SLOTS_NO_TASK || holders->pid == task->process))
			find_on(holders, cpu, task);
	}
}

static void collect(struct holders *holders)
{
	const struct slots *slots = &holders->slots;
	size_t i;

	for (i = 0; i < slots->nr_cpus; i++)
		find_on_cpu(holders, slots->cpus[i]);
	find_on_cpu(holders, SLOTS_OTHER_CPU);
	for (i = 0; i < slots->claims.nr; i++) {
		if (slots->claims.entries[i].refuses)
			add_holder(holders, &slots->claims.entries[i]);
	}
}

static char *join_lines(const struct holders *holders)
{
	size_t i, shown = holders->nr < MAX_HOLDERS ? holders->nr : MAX_HOLDERS;
	char *text = xstrdup(""), *longer;

	for (i = 0; i < shown; i++) {
		longer = xasprintf("%s\n%s", text, holders->lines[i]);
		free(text);
		text = longer;
	}
	if (shown == holders->nr)
		return text;
	return xasprintf("%s\n  and %zu more (see hwbp slots)", text, holders->nr - shown);
}

static const char *advice(bool can_share)
{
	if (can_share)
		return "close one of these, or use -F to share the registers that are left";
	if (caps_config_bit("flexible"))
		return "close one of these: guaranteed breakpoints leave no register to flexible ones";
	return "close one of these; this kernel cannot share registers (no format/flexible)";
}

/* Exit with @what, the holders, and @advice. */
static void die_with_holders(struct holders *holders, const char *what, const char *advice)
	__attribute__((noreturn));

static void die_with_holders(struct holders *holders, const char *what, const char *advice)
{
	unsigned int nr = caps_registers(holders->execute);
	char *why = slots_read(&holders->slots, NULL);

	if (!why) {
		holders->same_pids = slots_same_pids();
		collect(holders);
		if (!holders->nr && !holders->same_pids)
			why = xstrdup("hwbp is not in the pid namespace of the list");
	}
	if (why)
		die("%s: other breakpoints hold the %u registers\n  %s: %s\n  %s", what, nr,
		    "their owners are not known", why, advice);
	/* The list is read after the request has failed. */
	if (!holders->nr)
		die("%s, but one is now: try again", what);
	die("%s, all %u are claimed:%s\n  %s", what, nr, join_lines(holders), advice);
}

void holders_die(const struct location *loc, struct symbols *syms, pid_t pid, bool execute,
		 bool flexible, bool can_share)
{
	struct holders holders = {
		.syms = syms,
		.pid = pid,
		.execute = execute,
		.flexible = flexible,
	};

	die_with_holders(&holders, xasprintf("%s: no debug register available in process %d",
					     loc->text, pid), advice(can_share));
}

void holders_die_wide(const char *place, bool execute)
{
	struct holders holders = { .pid = SLOTS_NO_TASK, .execute = execute };

	die_with_holders(&holders, xasprintf("%s: no debug register available on all CPUs", place),
			 "close one of these: a watch event takes a register of each CPU");
}
