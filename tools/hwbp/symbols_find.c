// SPDX-License-Identifier: GPL-2.0
/*
 * Find variables and functions by name: in the symbol tables, by the name there or by the
 * demangled one, and variables in the debug information.
 */
#define _GNU_SOURCE
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo.h"
#include "demangle.h"
#include "name.h"
#include "symbols.h"
#include "util.h"

/* Number of names that a message suggests */
#define MAX_SIMILAR	3

/**
 * struct search - a search of one module
 * @how: how the name is looked up
 * @file: if set, find only symbols of this source file or module
 * @name: name to find
 * @wanted: @name in its components
 * @mod: the module
 * @list: matching symbols
 */
struct search {
	enum how how;
	const char *file;
	const char *name;
	struct name wanted;
	Dwfl_Module *mod;
	struct symbol_list *list;
};

/* ---- names in the symbol table ---- */

/* The part behind a suffix that @how skips, NULL if there is none */
static const char *skip_suffix(const char *suffix, enum how how)
{
	static const char *const kinds[] = { ".lto_priv", ".llvm", ".constprop", ".isra" };
	size_t i, len, nr = how == HOW_EXACT ? 2 : 4;

	for (i = 0; i < nr; i++) {
		len = strlen(kinds[i]);
		if (!strncmp(suffix, kinds[i], len) && (!suffix[len] || suffix[len] == '.'))
			return suffix + len + strspn(suffix + len, ".0123456789");
	}
	/* "calls.0" is a static variable of a function. */
	len = *suffix == '.' ? strspn(suffix + 1, "0123456789") : 0;
	return len && how != HOW_EXACT ? suffix + 1 + len : NULL;
}

static bool is_suffix(const char *suffix, enum how how)
{
	/* A version may follow: "stdout@GLIBC_2.2.5". */
	while (suffix && *suffix && *suffix != '@')
		suffix = skip_suffix(suffix, how);
	return suffix;
}

static bool symbol_matches(const struct search *search, const char *symbol)
{
	size_t len = strlen(search->name);
	enum match match;
	struct name name;
	char *text;

	if (search->how != HOW_FULL && !strncmp(symbol, search->name, len) &&
	    is_suffix(symbol + len, search->how))
		return true;
	if (search->how == HOW_EXACT)
		return false;
	/* Mangled names contain the identifiers. */
	len = strspn(name_last(&search->wanted), "0123456789_abcdefghijklmnopqrstuvwxyz"
		     "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	if (!memmem(symbol, strlen(symbol), name_last(&search->wanted), len))
		return false;
	text = demangle(symbol);
	if (!text)
		return false;
	name_parse(&name, text);
	match = name_match(&search->wanted, &name);
	name_free(&name);
	free(text);
	return match == MATCH_FULL || (match == MATCH_PARTIAL && search->how == HOW_PARTIAL);
}

static bool file_matches(const struct search *search, const char *file)
{
	return !search->file || !strcmp(search->file, file) ||
	       !strcmp(search->file, base_name(symbols_path(search->mod)));
}

static bool is_place(const GElf_Sym *sym, GElf_Word shndx)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	if (shndx == SHN_UNDEF || shndx == SHN_COMMON)
		return false;
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_TLS || type == STT_GNU_IFUNC;
}

static void add_symbol(struct symbol_list *list, const struct symbol *new)
{
	size_t i;

	/* Skip aliases: symbols of the same type and address. */
	for (i = 0; i < list->nr; i++) {
		struct symbol *old = &list->entries[i];

		if (old->address != new->address || old->type != new->type ||
		    old->module != new->module)
			continue;
		if (!old->size)
			old->size = new->size;
		if (!old->c_type)
			old->c_type = new->c_type;
		return;
	}
	GROW(list->entries, list->nr, list->capacity);
	list->entries[list->nr] = *new;
	list->entries[list->nr].name = xstrdup(new->name);
	list->entries[list->nr].file = xstrdup(new->file);
	list->nr++;
}

/* The name of a symbol in a message: as the source has it, or without a version */
static char *shown_name(const char *symbol)
{
	char *text = demangle(symbol);

	return text ? text : xasprintf("%.*s", (int)strcspn(symbol, "@"), symbol);
}

typedef void (*symbol_func)(void *arg, const struct symbol *sym);

/* Call @func for each symbol of @mod. */
static void for_each_symbol(Dwfl_Module *mod, symbol_func func, void *arg)
{
	const char *module = base_name(symbols_path(mod)), *file = NULL;
	int i, nr = dwfl_module_getsymtab(mod);

	for (i = 1; i < nr; i++) {
		struct symbol sym = { .module = mod };
		GElf_Word shndx;
		GElf_Addr addr;
		GElf_Sym elf;
		const char *name = dwfl_module_getsym_info(mod, i, &elf, &addr, &shndx,
							   NULL, NULL);

		if (!name)
			continue;
		if (GELF_ST_TYPE(elf.st_info) == STT_FILE)
			file = base_name(name);
		if (!is_place(&elf, shndx))
			continue;
		sym.name = (char *)name;
		sym.file = (char *)(GELF_ST_BIND(elf.st_info) == STB_LOCAL && file && *file ?
				    file : module);
		sym.type = GELF_ST_TYPE(elf.st_info);
		sym.address = sym.type == STT_TLS ? elf.st_value : addr;
		sym.size = elf.st_size;
		func(arg, &sym);
	}
}

static void find_symbol(void *arg, const struct symbol *sym)
{
	struct search *search = arg;
	struct symbol new = *sym;

	if (!symbol_matches(search, sym->name) || !file_matches(search, sym->file))
		return;
	new.name = shown_name(sym->name);
	new.mangled = sym->name;
	add_symbol(search->list, &new);
	free(new.name);
}

/* ---- names in the debug information ---- */

static void find_variable(void *arg, const struct variable *var)
{
	enum match match = name_match(&((struct search *)arg)->wanted, &var->name);
	struct search *search = arg;
	Dwarf_Die die = var->die;
	struct symbol new = {
		.module = search->mod,
		.file = (char *)base_name(var->file ? var->file : symbols_path(search->mod)),
		.address = var->address,
		.type = var->tls ? STT_TLS : STT_OBJECT,
	};

	if (match == MATCH_NONE || (match == MATCH_PARTIAL && search->how != HOW_PARTIAL) ||
	    !file_matches(search, new.file))
		return;
	new.name = name_text(&var->name);
	new.c_type = type_of_die(&die);
	new.size = new.c_type ? new.c_type->size : 0;
	add_symbol(search->list, &new);
	free(new.name);
}

static void search_module(struct search *search, Dwfl_Module *mod)
{
	search->mod = mod;
	/* The debug information first: it knows the scopes and the files. */
	if (search->how != HOW_EXACT)
		debuginfo_variables(mod, &search->wanted, find_variable, search);
	for_each_symbol(mod, find_symbol, search);
}

void symbols_find(struct symbols *syms, enum scope scope, enum how how, const char *file,
		  const char *name, struct symbol_list *list)
{
	struct search search = { .how = how, .file = file, .name = name, .list = list };
	Dwfl_Module *mod;
	size_t i;

	name_parse(&search.wanted, name);
	for (i = 0; i < symbols_nr(syms); i++) {
		mod = symbols_module(syms, i);
		if (mod && symbols_in_program(syms, mod) == (scope == SCOPE_PROGRAM))
			search_module(&search, mod);
	}
	name_free(&search.wanted);
}

void symbols_find_type(struct symbol *sym)
{
	if (!sym->c_type && (sym->type == STT_OBJECT || sym->type == STT_TLS ||
			     sym->type == STT_NOTYPE))
		sym->c_type = debuginfo_type_at(sym->module, sym->address,
						sym->type == STT_TLS);
}

/* ---- similar names ---- */

/**
 * struct similar - the names most like one that is unknown
 * @name: the unknown name
 * @names: the names, the best first
 * @distance: how many characters differ
 * @nr: number of @names
 */
struct similar {
	const char *name;
	char *names[MAX_SIMILAR];
	unsigned int distance[MAX_SIMILAR];
	size_t nr;
};

/* Number of characters to add, to remove or to replace; more than @limit if it is large */
static unsigned int distance(const char *a, const char *b, unsigned int limit)
{
	size_t i, j, len = strlen(b);
	unsigned int row[64];

	if (len >= 64 || strlen(a) > len + limit || len > strlen(a) + limit)
		return limit + 1;
	for (j = 0; j <= len; j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		unsigned int diagonal = row[0]++, above;

		for (j = 1; j <= len; j++) {
			above = row[j];
			row[j] = diagonal + (a[i] != b[j - 1]);
			if (above + 1 < row[j])
				row[j] = above + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = above;
		}
	}
	return row[len];
}

static void consider(struct similar *similar, const char *name)
{
	size_t i, at, len = strlen(similar->name);
	unsigned int limit = len / 3 + (len > 3), far, tail;

	far = distance(similar->name, name, limit);
	/* The last components may be meant. */
	for (len = name_span(name, ":."); name[len]; len += 1 + name_span(name + len + 1, ":.")) {
		tail = distance(similar->name, name + len + 1, limit);
		if (tail < far)
			far = tail;
	}
	if (far > limit)
		return;
	for (i = 0; i < similar->nr; i++) {
		if (!strcmp(similar->names[i], name))
			return;
	}
	for (at = similar->nr; at && similar->distance[at - 1] > far; at--)
		;
	if (at == MAX_SIMILAR)
		return;
	if (similar->nr == MAX_SIMILAR)
		free(similar->names[--similar->nr]);
	for (i = similar->nr++; i > at; i--) {
		similar->names[i] = similar->names[i - 1];
		similar->distance[i] = similar->distance[i - 1];
	}
	similar->names[at] = xstrdup(name);
	similar->distance[at] = far;
}

static void consider_symbol(void *arg, const struct symbol *sym)
{
	char *name = shown_name(sym->name);

	/* Not the words of the compiler and the C library */
	if (*name != '_' && *name != '.')
		consider(arg, name);
	free(name);
}

static void consider_variable(void *arg, const struct variable *var)
{
	char *name = name_text(&var->name);

	consider(arg, name);
	free(name);
}

static void consider_members(struct similar *similar, const struct type *type)
{
	size_t i;

	for (i = 0; i < type->nr_members; i++) {
		if (type->members[i].name)
			consider(similar, type->members[i].name);
		else
			consider_members(similar, type->members[i].type);
	}
}

static char *similar_text(const struct similar *similar)
{
	char *text = NULL, *longer;
	size_t i;

	for (i = 0; i < similar->nr; i++) {
		longer = xasprintf("%s%s'%s'", text ? text : "",
				   !i ? "" : i + 1 < similar->nr ? ", " : " or ",
				   similar->names[i]);
		free(text);
		text = longer;
	}
	return text;
}

char *symbols_similar(struct symbols *syms, const char *name)
{
	struct similar similar = { .name = name };
	Dwfl_Module *mod = symbols_module(syms, 0);

	if (!mod)
		return NULL;
	debuginfo_variables(mod, NULL, consider_variable, &similar);
	for_each_symbol(mod, consider_symbol, &similar);
	return similar_text(&similar);
}

char *symbols_similar_members(const struct type *type, const char *name)
{
	struct similar similar = { .name = name };

	consider_members(&similar, type);
	return similar_text(&similar);
}
