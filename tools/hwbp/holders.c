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
 * @same_pids: pids of the kernel are those of hwbp
 * @claimed: sum of the registers that the holders claim
 * @lines: one line per holder
 * @nr: number of @lines
 * @capacity: capacity of @lines
 */
struct holders {
	struct slots slots;
	struct symbols *syms;
	pid_t pid;
	bool execute;
	bool same_pids;
	uint64_t claimed;
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

	holders->claimed += h->weight;
	add_line(holders, xasprintf("  %s: %s%s, %s of %u byte%s at %#" PRIx64 "%s", owner,
				    h->flexible ? "flexible, " : "", scope, h->type, h->len,
				    h->len == 1 ? "" : "s", h->address, name));
	free(owner);
	free(scope);
	free(name);
}

/* A request for a CPU fails because of the tasks that leave no register of the CPU. */
static bool fills_a_cpu(const struct slots *slots, const struct holding *h)
{
	const struct slots_task *task = slots_find_task(slots, h->pid);
	size_t i;

	for (i = 0; i < slots->nr_cpus; i++) {
		if (slots_holds_on(h, slots->cpus[i].number) &&
		    slots_full(&slots->cpus[i], task, slots, h->class))
			return true;
	}
	return false;
}

static bool concerns(const struct holders *holders, const struct holding *h)
{
	const char *class = holders->slots.classes[h->class].name;

	if (!strcmp(class, holders->execute ? "data" : "inst"))
		return false;
	if (h->pid == SLOTS_NO_TASK)
		return true;
	if (holders->pid == SLOTS_NO_TASK)
		return h->process || fills_a_cpu(&holders->slots, h);
	return h->pid == holders->pid ||
	       slots_process_of(h->pid, holders->same_pids) == holders->pid;
}

static void collect(struct holders *holders)
{
	size_t i;

	for (i = 0; i < holders->slots.claims.nr; i++) {
		if (concerns(holders, &holders->slots.claims.entries[i]))
			add_holder(holders, &holders->slots.claims.entries[i]);
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

static const char *advice(bool flexible)
{
	if (flexible)
		return "close one of these: guaranteed breakpoints leave no register to flexible ones";
	if (caps_config_bit("flexible"))
		return "close one of these, or use -F to share the registers that are left";
	return "close one of these; this kernel cannot share registers (no format/flexible)";
}

/* Exit with @what, the holders, and @advice. */
static void die_with_holders(struct holders *holders, const char *what, const char *advice)
	__attribute__((noreturn));

static void die_with_holders(struct holders *holders, const char *what, const char *advice)
{
	unsigned int nr = caps_registers(holders->execute);
	char *why = slots_try_read(&holders->slots);

	if (!why) {
		holders->same_pids = slots_same_pids();
		collect(holders);
		if (holders->claimed < nr && !holders->same_pids)
			why = xstrdup("hwbp is not in the pid namespace of the list");
	}
	if (why)
		die("%s: other breakpoints hold the %u registers\n  %s: %s\n  %s", what, nr,
		    "their owners are not known", why, advice);
	/* The list is read after the request has failed. */
	if (holders->claimed < nr)
		die("%s, but %s now: try again", what,
		    holders->nr ? "fewer are held" : "no holder is left");
	die("%s, all %u are held:%s\n  %s", what, nr, join_lines(holders), advice);
}

void holders_die(const struct location *loc, struct symbols *syms, pid_t pid, bool execute,
		 bool flexible)
{
	struct holders holders = { .syms = syms, .pid = pid, .execute = execute };

	die_with_holders(&holders, xasprintf("%s: no debug register available in process %d",
					     loc->text, pid), advice(flexible));
}

void holders_die_wide(const char *place, bool execute)
{
	struct holders holders = { .pid = SLOTS_NO_TASK, .execute = execute };

	die_with_holders(&holders, xasprintf("%s: no debug register available on all CPUs", place),
			 "close one of these: a watch event takes a register of each CPU");
}
