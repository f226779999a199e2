// SPDX-License-Identifier: GPL-2.0
/*
 * Names of kernel text.  Records tell of what comes and goes as long as we
 * listen; the rest is in /proc/kallsyms, which for modules has to be read anew
 * when an address turns up that it did not have, or text that is new.  By then
 * the address may belong to something else.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "kallsyms.h"
#include "text_names.h"
#include "util.h"

/*
 * How far from the start of a symbol still is that symbol, outside of the text of
 * the kernel itself: modules, BPF programs and trampolines have anything beside
 * them, text whose name is not known yet or no longer, too.
 */
#define MAX_PIECE	0x1000

struct area {
	uint64_t start;
	uint64_t len;
	char *name;
};

/**
 * struct text_names - what is known
 * @core: where the text of the kernel itself begins, 0 if we may not know names
 * @core_end: where it ends
 * @areas: that records have told of
 * @stale: the kernel's names may be out of date
 * @asked: they have been read in this piece of time
 */
struct text_names {
	uint64_t core;
	uint64_t core_end;
	struct area *areas;
	size_t nr;
	size_t room;
	bool stale;
	bool asked;
};

struct text_names *text_names_new(void)
{
	struct text_names *names = xzalloc(sizeof(*names));

	kallsyms_reread();
	names->core = kallsyms_address("_stext");
	names->core_end = kallsyms_address("_etext");
	if (!names->core)
		note("no right to see addresses in /proc/kallsyms: symbols are not shown");
	return names;
}

void text_names_begin(struct text_names *names)
{
	names->asked = false;
}

static const struct area *find_area(const struct text_names *names, uint64_t address)
{
	size_t i;

	/* The youngest one, lest an old one is there whose end was lost. */
	for (i = names->nr; i > 0; i--) {
		if (address - names->areas[i - 1].start < names->areas[i - 1].len)
			return &names->areas[i - 1];
	}
	return NULL;
}

void text_names_add(struct text_names *names, uint64_t start, uint64_t len, const char *name)
{
	struct area area = { .start = start, .len = len, .name = xstrdup(name) };

	GROW(names->areas, names->nr, names->room);
	names->areas[names->nr++] = area;
}

void text_names_remove(struct text_names *names, uint64_t start, uint64_t len)
{
	size_t i, kept = 0;

	for (i = 0; i < names->nr; i++) {
		if (names->areas[i].start == start && names->areas[i].len == len)
			free(names->areas[i].name);
		else
			names->areas[kept++] = names->areas[i];
	}
	/* One that was there before is still among the names of the kernel. */
	if (kept == names->nr)
		names->stale = true;
	names->nr = kept;
}

void text_names_renewed(struct text_names *names, uint64_t address)
{
	if (!find_area(names, address))
		names->stale = true;
}

static const char *find_outside(uint64_t address, uint64_t *start)
{
	const char *name = kallsyms_function(address, start);

	return name && address - *start < MAX_PIECE ? name : NULL;
}

static void reread(struct text_names *names)
{
	kallsyms_reread();
	names->stale = false;
	names->asked = true;
}

/* That text keeps its names. */
static bool is_core(const struct text_names *names, uint64_t address)
{
	return address >= names->core && address < names->core_end;
}

const char *text_names_find(struct text_names *names, uint64_t address, uint64_t *start)
{
	const struct area *area;
	const char *name;

	if (is_core(names, address))
		return kallsyms_function(address, start);
	area = find_area(names, address);
	if (area) {
		*start = area->start;
		return area->name;
	}
	name = find_outside(address, start);
	if (names->asked || !names->core || (name && !names->stale))
		return name;
	reread(names);
	return find_outside(address, start);
}
