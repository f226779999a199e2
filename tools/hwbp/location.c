// SPDX-License-Identifier: GPL-2.0
/* Turn the PLACE of the command line into an address and a length. */
#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "expression.h"
#include "location.h"
#include "name.h"
#include "util.h"

/* Number of members that a message names */
#define MAX_MEMBERS	4

/**
 * struct spec - parsed PLACE: [FILE:]EXPRESSION[+OFFSET][:LEN]
 * @file: FILE or NULL
 * @expression: EXPRESSION
 * @has_offset: OFFSET was given
 * @offset: OFFSET
 * @len: LEN, 0 if not given
 */
struct spec {
	char *file;
	char *expression;
	bool has_offset;
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
	spec->has_offset = true;
	*plus = '\0';
}

/* Parse and cut off "FILE:", or "'FILE'::" as gdb has it. "::" separates scopes. */
static char *cut_file(char *s, struct spec *spec)
{
	size_t len = name_span(s, ":");

	while (s[len] && s[len + 1] == ':')
		len += 2 + name_span(s + len + 2, ":");
	if (*s == '\'' && strstr(s, "'::")) {
		spec->file = s + 1;
		s = strstr(s, "'::");
		*s = '\0';
		return s + 3;
	}
	if (!s[len])
		return s;
	s[len] = '\0';
	spec->file = s;
	return s + len + 1;
}

static void spec_parse(struct spec *spec, const char *text)
{
	char *s = xstrdup(text);

	memset(spec, 0, sizeof(*spec));
	cut_length(s, spec);
	cut_offset(s, spec);
	s = cut_file(s, spec);
	if (!*s || (spec->file && !*spec->file))
		die("'%s' is neither a symbol nor an address", text);
	spec->expression = s;
}

/* ---- length and alignment ---- */

static bool is_plain_length(uint64_t len)
{
	return len == 1 || len == 2 || len == 4 || len == 8;
}

static void add_members(const struct type *type, const char *text, uint64_t max, char **list,
			size_t *nr)
{
	bool in_brackets = strchr("*(", *text);
	const struct type_member *member;
	char *longer;
	size_t i;

	for (i = 0; i < type->nr_members && *nr < MAX_MEMBERS; i++) {
		member = &type->members[i];
		if (!member->name && !member->base)
			add_members(member->type, text, max, list, nr);
		if (!member->name || !member->type->size || member->type->size > max)
			continue;
		longer = xasprintf("%s%s%s%s%s.%s", *list, *nr ? ", " : "", in_brackets ? "(" : "",
				   text, in_brackets ? ")" : "", member->name);
		free(*list);
		*list = longer;
		++*nr;
	}
}

/* What to watch instead of a long object: "a member that fits (x.a, x.b)" */
static char *smaller_parts(const struct type *type, const char *text, uint64_t max)
{
	char *list = xstrdup(""), *parts = NULL;
	size_t nr = 0;

	if (type && type->kind == TYPE_ARRAY && type->element->size &&
	    type->element->size <= max)
		parts = xasprintf(strchr("*(", *text) ? "an element such as (%s)[0]" :
				  "an element such as %s[0]", text);
	if (type && type->kind == TYPE_STRUCT)
		add_members(type, text, max, &list, &nr);
	if (nr)
		parts = xasprintf("a member such as %s", list);
	free(list);
	return parts;
}

static void die_too_long(const struct location *loc, const struct type *type, uint64_t len)
{
	unsigned int max = caps_max_length();
	char *parts = smaller_parts(type, loc->text, max ? max : 8);
	char *limit = max ? xasprintf("one of up to %u", max) : xstrdup("one of 1, 2, 4 or 8");
	const char *turns = "; with -F, parts beyond the registers take turns";

	die("%s is %lu bytes long: append a length, %s, such as %s:8%s%s%s", loc->text,
	    (unsigned long)len, limit, loc->text, parts ? ", or name " : "", parts ? parts : "",
	    caps_config_bit("flexible") ? turns : "");
}

/*
 * A breakpoint has 1, 2, 4 or 8 bytes at a multiple of its length; where the kernel
 * combines registers, up to caps/max_length bytes anywhere.
 */
static void check_length(const struct location *loc, const struct type *type, uint64_t len,
			 bool given)
{
	unsigned int max = caps_max_length();

	if (max && len && len <= max)
		return;
	if (given && max)
		die("%s: invalid length %lu: use 1 to %u", loc->text, (unsigned long)len, max);
	if (given && !is_plain_length(len))
		die("%s: invalid length %lu: use 1, 2, 4 or 8", loc->text, (unsigned long)len);
	if (!len)
		die("%s has no known length: append a length of 1, 2, 4 or 8, such as %s:8",
		    loc->text, loc->text);
	if (!is_plain_length(len))
		die_too_long(loc, type, len);
	if (loc->address % len)
		die("%s: address %#lx is not aligned to the length %lu", loc->text,
		    (unsigned long)loc->address, (unsigned long)len);
}

/* The bytes of a bit-field. Without caps/max_length they must be a power of two. */
static uint64_t cover_bits(struct location *loc)
{
	uint64_t end = loc->address + (loc->bit_offset + loc->bit_size + 7) / 8, len = 1;

	if (caps_max_length())
		return end - loc->address;
	while ((loc->address & -len) + len < end)
		len *= 2;
	loc->bit_offset += 8 * (loc->address & (len - 1));
	loc->address &= -len;
	return len;
}

static void finish(struct location *loc, const struct watch_options *opt, const struct spec *spec,
		   const struct expression *expr)
{
	uint64_t len = spec->len ? spec->len : spec->has_offset ? 0 : expr->value.size;

	loc->address = expr->value.address + spec->offset;
	if (opt->access == ACCESS_X) {
		if (spec->len)
			die("%s: a length cannot be used with -x", loc->text);
		loc->len = 0;
		return;
	}
	if (!spec->len && !spec->has_offset) {
		loc->type = expr->value.type;
		loc->bit_offset = expr->value.bit_offset;
		loc->bit_size = expr->value.bit_size;
	}
	if (loc->bit_size)
		len = cover_bits(loc);
	check_length(loc, expr->value.type, len, spec->len);
	loc->len = len;
}

/* ---- lookup ---- */

static void check_function(const struct expression *expr, const struct spec *spec,
			   enum access access)
{
	const struct symbol *symbol = expr->value.symbol;

	if (symbol && symbol->type == STT_FUNC && access != ACCESS_X && !spec->len)
		die("'%s' is a function: watch its execution with -x", spec->expression);
}

static bool evaluate(struct expression *expr, const struct spec *spec,
		     const struct watch_options *opt, struct symbols *syms, bool ready)
{
	*expr = (struct expression){
		.text = spec->expression,
		.file = spec->file,
		.syms = syms,
		.ready = ready,
		.tid = opt->tid ? opt->tid : opt->pid,
		.execute = opt->access == ACCESS_X,
	};
	return expression_evaluate(expr);
}

bool location_find(struct location *loc, const char *text, const struct watch_options *opt,
		   struct symbols *syms, bool ready)
{
	struct expression expr;
	struct spec spec;

	loc->text = text;
	spec_parse(&spec, text);
	if (!evaluate(&expr, &spec, opt, syms, ready))
		return false;
	check_function(&expr, &spec, opt->access);
	finish(loc, opt, &spec, &expr);
	return true;
}

char *location_missing_library(const char *text, struct symbols *syms)
{
	Dwfl_Module *mod;
	struct spec spec;
	size_t i;

	spec_parse(&spec, text);
	if (!spec.file || !strstr(spec.file, ".so"))
		return NULL;
	for (i = 0; i < symbols_nr(syms); i++) {
		mod = symbols_module(syms, i);
		if (mod && !strcmp(spec.file, base_name(symbols_path(mod))))
			return NULL;
	}
	return xstrdup(spec.file);
}

static void die_other_file(const struct spec *spec, const char *name, struct symbols *syms)
{
	struct symbol_list list = { 0 };

	symbols_find(syms, SCOPE_PROGRAM, HOW_PARTIAL, NULL, name, &list);
	if (!list.nr)
		symbols_find(syms, SCOPE_LIBRARIES, HOW_PARTIAL, NULL, name, &list);
	if (list.nr)
		die("no symbol '%s' in '%s', but there is %s:%s", name, spec->file,
		    list.entries[0].file, name);
}

void location_die_unknown(const char *text, const struct watch_options *opt,
			  struct symbols *syms)
{
	const char *program = symbols_program(syms), *name;
	size_t nr = symbols_nr(syms) - 1;
	struct expression expr;
	struct spec spec;
	char *similar;

	spec_parse(&spec, text);
	evaluate(&expr, &spec, opt, syms, true);
	name = expr.unknown ? expr.unknown : spec.expression;
	if (spec.file)
		die_other_file(&spec, name, syms);
	similar = symbols_similar(syms, name);
	if (!similar) {
		name = xasprintf("%.*s", (int)strcspn(name, ".[-"), name);
		similar = symbols_similar(syms, name);
	}
	if (similar)
		die("no symbol '%s' in %s, but there is %s", name, program, similar);
	if (!nr)
		die("no symbol '%s' in %s", name, program);
	die("no symbol '%s' in %s or its %zu %s%s", name, program, nr,
	    nr == 1 ? "library" : "libraries",
	    opt->cmd ? " (for a library that is loaded later, use LIBRARY:PLACE)" : "");
}
