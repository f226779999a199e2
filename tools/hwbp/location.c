// SPDX-License-Identifier: GPL-2.0
/* Turn the PLACE of the command line into an address and a length. */
#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "location.h"
#include "util.h"
#include "variable.h"

#define MAX_CHOICES	6

/**
 * struct spec - parsed PLACE: [FILE:]NAME[PATH][+OFFSET][:LEN] or ADDRESS[:LEN]
 * @file: FILE or NULL
 * @name: NAME, NULL for an address
 * @path: ".member[1]" or empty
 * @address: ADDRESS
 * @offset: OFFSET
 * @len: LEN, 0 if not given
 */
struct spec {
	char *file;
	char *name;
	char *path;
	uint64_t address;
	uint64_t offset;
	uint64_t len;
};

/* ---- parsing ---- */

static bool parse_number(const char *s, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*n = strtoull(s, &end, 0);
	return !errno && !*end;
}

/* Parse and cut off ":LEN". */
static void cut_length(char *s, struct spec *spec)
{
	char *colon = strrchr(s, ':');

	if (!colon || !isdigit((unsigned char)colon[1]))
		return;
	if (!parse_number(colon + 1, &spec->len) || !spec->len)
		die("invalid length '%s': use 1, 2, 4 or 8", colon + 1);
	*colon = '\0';
}

/* Parse and cut off "+OFFSET". */
static void cut_offset(char *s, struct spec *spec)
{
	char *plus = strrchr(s, '+');

	if (!plus)
		return;
	if (!parse_number(plus + 1, &spec->offset))
		die("invalid offset '%s'", plus + 1);
	*plus = '\0';
}

static void spec_parse(struct spec *spec, const char *text)
{
	char *s = xstrdup(text), *colon;

	memset(spec, 0, sizeof(*spec));
	cut_length(s, spec);
	if (isdigit((unsigned char)*s)) {
		if (!parse_number(s, &spec->address))
			die("invalid address '%s'", s);
		return;
	}
	cut_offset(s, spec);
	colon = strrchr(s, ':');
	if (colon) {
		*colon = '\0';
		spec->file = s;
		s = colon + 1;
	}
	if (!*s || (spec->file && !*spec->file))
		die("'%s' is neither a symbol nor an address", text);
	spec->name = s;
	spec->path = "";
}

/* ---- lookup ---- */

static void find_in_scopes(struct symbols *syms, const struct spec *spec, const char *name,
			   bool libraries, struct symbol_list *list)
{
	symbols_find(syms, SCOPE_PROGRAM, spec->file, name, list);
	if (!list->nr && libraries)
		symbols_find(syms, SCOPE_LIBRARIES, spec->file, name, list);
}

/* "stats.n" may be the name of a symbol, or member n of the variable stats. */
static void find_candidates(struct symbols *syms, struct spec *spec, bool libraries,
			    struct symbol_list *list)
{
	size_t len = strcspn(spec->name, ".[");

	find_in_scopes(syms, spec, spec->name, libraries, list);
	if (list->nr || !spec->name[len] || !len)
		return;
	spec->path = xstrdup(spec->name + len);
	spec->name = xasprintf("%.*s", (int)len, spec->name);
	find_in_scopes(syms, spec, spec->name, libraries, list);
}

static void die_ambiguous(const struct spec *spec, const struct symbol_list *list)
{
	char *choices = xstrdup("");
	size_t i;

	for (i = 0; i < list->nr && i < MAX_CHOICES; i++)
		choices = xasprintf("%s%s%s:%s%s", choices, i ? ", " : "",
				    list->entries[i].file, spec->name, spec->path);
	die("'%s' is ambiguous, there are %zu of that name: %s%s", spec->name, list->nr,
	    choices, list->nr > MAX_CHOICES ? ", ..." : "");
}

static void check_type(const struct spec *spec, const struct symbol *sym, enum access access)
{
	if (sym->type == STT_FUNC && access != ACCESS_X && !spec->len)
		die("'%s' is a function: watch its execution with -x", spec->name);
	if (sym->type == STT_TLS)
		die("'%s' is thread-local: its address differs between threads", spec->name);
	if (sym->type == STT_GNU_IFUNC)
		die("'%s' is an indirect function, resolved at run time: name the function that it resolves to",
		    spec->name);
	if (sym->type == STT_OBJECT && access == ACCESS_X)
		die("'%s' is data and cannot be executed", spec->name);
}

/* ---- length and alignment ---- */

static void check_length(const char *text, uint64_t len, bool given)
{
	if (len == 1 || len == 2 || len == 4 || len == 8)
		return;
	if (given)
		die("%s: invalid length %lu: use 1, 2, 4 or 8", text,
		    (unsigned long)len);
	if (len)
		die("%s is %lu bytes long: append a length of 1, 2, 4 or 8, such as %s:8",
		    text, (unsigned long)len, text);
	die("%s has no known length: append a length of 1, 2, 4 or 8, such as %s:8",
	    text, text);
}

static void check_alignment(const struct location *loc)
{
	if (loc->address % loc->len)
		die("%s: address %#lx is not aligned to the length %u", loc->text,
		    (unsigned long)loc->address, loc->len);
}

static void finish(struct location *loc, const struct watch_options *opt, const struct spec *spec,
		   uint64_t size)
{
	if (opt->access == ACCESS_X) {
		if (spec->len)
			die("%s: a length cannot be used with -x", loc->text);
		loc->len = 0;
		return;
	}
	check_length(loc->text, spec->len ? spec->len : size, spec->len);
	loc->len = spec->len ? spec->len : size;
	check_alignment(loc);
}

static bool find_symbol(struct location *loc, const struct watch_options *opt, struct spec *spec,
			struct symbols *syms, bool libraries)
{
	struct symbol_list list = { 0 };
	uint64_t member = 0, size;
	size_t i;

	find_candidates(syms, spec, libraries, &list);
	if (!list.nr)
		return false;
	for (i = 0; i < list.nr; i++)
		check_type(spec, &list.entries[i], opt->access);
	if (list.nr > 1)
		die_ambiguous(spec, &list);
	size = list.entries[0].size;
	if (*spec->path)
		variable_member(&list.entries[0], spec->name, spec->path, &member, &size);
	loc->address = list.entries[0].address + member + spec->offset;
	finish(loc, opt, spec, spec->offset ? 0 : size);
	return true;
}

bool location_find(struct location *loc, const char *text, const struct watch_options *opt,
		   struct symbols *syms, bool libraries)
{
	struct spec spec;

	loc->text = text;
	spec_parse(&spec, text);
	if (spec.name)
		return find_symbol(loc, opt, &spec, syms, libraries);
	loc->address = spec.address;
	finish(loc, opt, &spec, 0);
	return true;
}

void location_die_unknown(const char *text, const struct watch_options *opt,
			  struct symbols *syms)
{
	const char *program = symbols_program(syms);
	unsigned int nr = symbols_nr_libraries(syms);
	struct symbol_list list = { 0 };
	struct symbol near;
	struct spec spec;

	spec_parse(&spec, text);
	if (spec.file) {
		find_in_scopes(syms, &(struct spec){ .name = spec.name }, spec.name, true, &list);
		if (list.nr)
			die("no symbol '%s' in '%s', but there is %s:%s", spec.name, spec.file,
			    list.entries[0].file, spec.name);
	}
	if (symbols_find_numbered(syms, spec.name, &near))
		die("no symbol '%s' in %s, but there is '%s'", spec.name, program, near.name);
	if (!nr)
		die("no symbol '%s' in %s", spec.name, program);
	die("no symbol '%s' in %s or its %u %s%s", spec.name, program, nr,
	    nr == 1 ? "library" : "libraries",
	    opt->cmd ? " (for a library that is loaded later, use -p once it is)" : "");
}
