// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols of kernel text.  PERF_RECORD_KSYMBOL reports symbols that are added and
 * removed during the report, except those of modules; these and older symbols are read
 * from /proc/kallsyms.  The file is read again if an address is not found, or if text at
 * the address is new.  Meanwhile the address may already belong to another symbol.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "kallsyms.h"
#include "text_names.h"
#include "util.h"

/*
 * Maximum offset from the start of a symbol outside of the core kernel. Text behind a
 * module, BPF program or trampoline may have no symbol yet, or no longer.
 */
#define MAX_PIECE	0x1000

struct area {
	uint64_t start;
	uint64_t len;
	char *name;
};

/**
 * struct text_names - known symbols
 * @core: start of the core kernel's text, 0 if addresses cannot be read
 * @core_end: end of the core kernel's text
 * @areas: areas from PERF_RECORD_KSYMBOL
 * @nr: number of @areas
 * @capacity: capacity of @areas
 * @stale: the symbols from /proc/kallsyms may be out of date
 * @asked: /proc/kallsyms has been read since text_names_begin()
 */
struct text_names {
	uint64_t core;
	uint64_t core_end;
	struct area *areas;
	size_t nr;
	size_t capacity;
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
		note("no permission to read addresses in /proc/kallsyms: no symbols are shown");
	return names;
}

void text_names_begin(struct text_names *names)
{
	names->asked = false;
}

static const struct area *find_area(const struct text_names *names, uint64_t address)
{
	size_t i;

	/* Newest first: the record that removes an older area may have been lost. */
	for (i = names->nr; i > 0; i--) {
		if (address - names->areas[i - 1].start < names->areas[i - 1].len)
			return &names->areas[i - 1];
	}
	return NULL;
}

void text_names_add(struct text_names *names, uint64_t start, uint64_t len, const char *name)
{
	struct area area = { .start = start, .len = len, .name = xstrdup(name) };

	GROW(names->areas, names->nr, names->capacity);
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
	/* The area is older than the report, so its symbol is from /proc/kallsyms. */
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

/* Symbols of the core kernel never change, so kallsyms need not be read again. */
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
