// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the kernel.  /proc/kallsyms is read when the first address is
 * asked for; it holds zeros instead of addresses for those who may not know.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kallsyms.h"
#include "util.h"

struct ksym {
	uint64_t address;
	char *name;
};

static struct ksym *ksyms;
static size_t nr_ksyms;

static int by_address(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static void read_kallsyms(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[256], type;
	size_t room = 0;

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long addr;

		if (sscanf(line, "%lx %c %255s", &addr, &type, name) != 3 || !addr ||
		    tolower((unsigned char)type) != 't')
			continue;
		GROW(ksyms, nr_ksyms, room);
		ksyms[nr_ksyms].address = addr;
		ksyms[nr_ksyms++].name = xstrdup(name);
	}
	if (f)
		fclose(f);
	qsort(ksyms, nr_ksyms, sizeof(*ksyms), by_address);
}

/* The last function that begins at or before @ip. */
static const struct ksym *lookup(uint64_t ip)
{
	size_t low = 0, high = nr_ksyms;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ksyms[mid].address <= ip)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &ksyms[low - 1] : NULL;
}

void kallsyms_place(uint64_t ip, struct place *place)
{
	static bool done;
	const struct ksym *sym;

	if (!done)
		read_kallsyms();
	done = true;
	sym = lookup(ip);
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
