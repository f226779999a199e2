// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols of the kernel.  /proc/kallsyms is read at the first lookup; it has zeros
 * instead of addresses for unprivileged users.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <symbol/kallsyms.h>

#include "kallsyms.h"
#include "util.h"

/* Maximum offset from the start of a symbol */
#define MAX_OFFSET	0x10000

struct ksym {
	uint64_t address;
	char *name;
};

/**
 * struct ksyms - symbols by address
 * @done: /proc/kallsyms has been read
 * @all: include variables and labels
 * @modules: append the name of the module
 * @entries: the symbols
 * @nr: number of @entries
 * @capacity: capacity of @entries
 */
struct ksyms {
	bool done;
	bool all;
	bool modules;
	struct ksym *entries;
	size_t nr;
	size_t capacity;
};

static int by_address(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* lookup() finds the last name of an address: prefer others to "__bss_start". */
	return strcmp(x->name, y->name);
}

static bool is_wanted(const struct ksyms *syms, unsigned long addr, char type)
{
	if (!syms->all)
		return addr && strchr("tTwW", type);
	/* Skip the offsets of per-CPU variables. */
	return (long)addr < 0;
}

/* Turn "name\t[module]" into "name [module]" or "name". */
static char *symbol_name(const char *name, bool modules)
{
	size_t len = strcspn(name, "\t");

	if (!name[len] || !modules)
		return xasprintf("%.*s", (int)len, name);
	return xasprintf("%.*s %s", (int)len, name, name + len + 1);
}

static int add_symbol(void *arg, const char *name, char type, u64 address)
{
	struct ksyms *syms = arg;

	if (!is_wanted(syms, address, type))
		return 0;
	GROW(syms->entries, syms->nr, syms->capacity);
	syms->entries[syms->nr].address = address;
	syms->entries[syms->nr++].name = symbol_name(name, syms->modules);
	return 0;
}

static void read_kallsyms(struct ksyms *syms)
{
	kallsyms__parse("/proc/kallsyms", syms, add_symbol);
	if (syms->nr)
		qsort(syms->entries, syms->nr, sizeof(*syms->entries), by_address);
	syms->done = true;
}

/* The last symbol that begins at or before @address. */
static const struct ksym *lookup(struct ksyms *syms, uint64_t address)
{
	size_t low = 0, high;

	if (!syms->done)
		read_kallsyms(syms);
	high = syms->nr;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (syms->entries[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &syms->entries[low - 1] : NULL;
}

void kallsyms_place(uint64_t ip, struct place *place)
{
	static struct ksyms functions;
	const struct ksym *sym = lookup(&functions, ip);

	memset(place, 0, sizeof(*place));
	if (sym) {
		place->function = xstrdup(sym->name);
		place->where = xasprintf("%s+%#lx [kernel]", sym->name,
					 (unsigned long)(ip - sym->address));
	} else {
		place->where = xasprintf("%#lx [kernel]", (unsigned long)ip);
	}
	place->source = xstrdup("");
}

char *kallsyms_name(uint64_t address)
{
	static struct ksyms everything = { .all = true };
	const struct ksym *sym = lookup(&everything, address);

	if (!sym || address - sym->address >= MAX_OFFSET)
		return NULL;
	if (address == sym->address)
		return xstrdup(sym->name);
	return xasprintf("%s+%#lx", sym->name, (unsigned long)(address - sym->address));
}

static struct ksyms code = { .modules = true };

const char *kallsyms_function(uint64_t address, uint64_t *start)
{
	const struct ksym *sym = lookup(&code, address);

	if (!sym || address - sym->address >= MAX_OFFSET)
		return NULL;
	*start = sym->address;
	return sym->name;
}

uint64_t kallsyms_address(const char *name)
{
	size_t i;

	for (i = 0; i < code.nr; i++) {
		if (!strcmp(code.entries[i].name, name))
			return code.entries[i].address;
	}
	return 0;
}

void kallsyms_reread(void)
{
	while (code.nr)
		free(code.entries[--code.nr].name);
	read_kallsyms(&code);
}
