// SPDX-License-Identifier: GPL-2.0
/*
 * Evaluate the expression of a PLACE, in the syntax of C:
 *
 *   unary:    '*' unary | primary step...
 *   primary:  name | number | '(' unary ')' | '(' type '*' ')' unary
 *   step:     '.' member | '->' member | '[' number ']'
 *
 * A name may contain dots, colons and brackets itself ("main.counter", "a<b::c>::d"): the
 * longest one that exists is taken.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo.h"
#include "expression.h"
#include "name.h"
#include "tls.h"
#include "util.h"

#define MAX_CHOICES	6

/**
 * struct parser - position in an expression
 * @expr: the expression
 * @p: what is left of it
 */
struct parser {
	struct expression *expr;
	const char *p;
};

static void skip_spaces(struct parser *parser)
{
	while (*parser->p == ' ')
		parser->p++;
}

/* The text that has been evaluated; to be freed */
static char *done(const struct parser *parser)
{
	return xasprintf("%.*s", (int)(parser->p - parser->expr->text), parser->expr->text);
}

/* ---- types ---- */

/* Size of a pointer, and of long, in the program */
static uint64_t pointer_size(const struct parser *parser)
{
	Dwfl_Module *mod = symbols_module(parser->expr->syms, 0);
	GElf_Addr bias;
	Elf *elf = mod ? dwfl_module_getelf(mod, &bias) : NULL;

	return elf && gelf_getclass(elf) == ELFCLASS32 ? 4 : 8;
}

static struct type *find_type(const struct parser *parser, const char *name)
{
	struct type *type = NULL;
	Dwfl_Module *mod;
	size_t i;

	for (i = 0; i < symbols_nr(parser->expr->syms) && !type; i++) {
		mod = symbols_module(parser->expr->syms, i);
		if (mod)
			type = debuginfo_type(mod, name);
	}
	return type ? type : debuginfo_builtin(name, pointer_size(parser));
}

/* A type that is only declared in one source file may be defined in another one. */
static struct type *complete(const struct parser *parser, struct type *type)
{
	struct type *defined = type && type->declared ? find_type(parser, type->name) : NULL;

	return defined ? defined : type;
}

static struct value object(const struct parser *parser, uint64_t address, struct type *type)
{
	struct value value = { .address = address, .type = complete(parser, type) };

	value.size = value.type ? value.type->size : 0;
	return value;
}

/* ---- pointers ---- */

static uint64_t read_pointer(const struct parser *parser, const struct value *value)
{
	uint64_t pointer = 0;

	if (value->number)
		return value->address;
	if (value->type->size > sizeof(pointer) ||
	    !symbols_read(parser->expr->syms, value->address, &pointer, value->type->size))
		die("%s: cannot read the pointer '%s' at %#lx", parser->expr->text, done(parser),
		    (unsigned long)value->address);
	return pointer;
}

/* Follow a pointer or reference. Returns false if it is too early for that. */
static bool follow(const struct parser *parser, struct value *value)
{
	struct type *target = type_target(value->type);
	uint64_t pointer;

	/* The loader has yet to relocate the pointers of the program. */
	if (!parser->expr->ready && !value->number)
		return false;
	pointer = read_pointer(parser, value);
	if (!pointer)
		die("%s: '%s' is a null pointer when the watch begins", parser->expr->text,
		    done(parser));
	if (!target)
		die("%s: '%s' points at an unknown type: use %#lx:LEN", parser->expr->text,
		    done(parser), (unsigned long)pointer);
	*value = object(parser, pointer, target);
	return true;
}

static bool follow_reference(const struct parser *parser, struct value *value)
{
	return !value->type || value->type->kind != TYPE_REFERENCE || follow(parser, value);
}

static bool dereference(const struct parser *parser, struct value *value)
{
	if (value->type && value->type->kind == TYPE_POINTER)
		return follow(parser, value);
	if (value->number && !value->type) {
		value->number = false;
		return true;
	}
	die("%s: '*' and \"->\" require a pointer, not %s", parser->expr->text,
	    value->type ? value->type->name : "an object of unknown type");
}

/* ---- names ---- */

static void die_ambiguous(const struct expression *expr, const char *name,
			  const struct symbol_list *list) __attribute__((noreturn));

static void die_ambiguous(const struct expression *expr, const char *name,
			  const struct symbol_list *list)
{
	char *choices = xstrdup("");
	size_t i, j;

	for (i = 0; i < list->nr && i < MAX_CHOICES; i++) {
		const struct symbol *sym = &list->entries[i];
		bool same = false, same_file = false;

		/*
		 * The file is needed where the qualified name does not tell them apart, and the
		 * mangled name where both do not: destructors that free and that do not.
		 */
		for (j = 0; j < list->nr; j++) {
			if (j == i || strcmp(list->entries[j].name, sym->name))
				continue;
			same = true;
			same_file |= sym->mangled && !strcmp(list->entries[j].file, sym->file);
		}
		choices = xasprintf("%s%s%s%s%s", choices, i ? ", " : "",
				    same && !same_file ? sym->file : "",
				    same && !same_file ? ":" : "",
				    same_file ? sym->mangled : sym->name);
	}
	die("%s: '%s' is ambiguous, there are %zu of that name: %s%s", expr->text, name, list->nr,
	    choices, list->nr > MAX_CHOICES ? ", ..." : "");
}

static void check_kind(const struct expression *expr, const struct symbol *sym)
{
	if (sym->type == STT_GNU_IFUNC)
		die("'%s' is an indirect function, resolved at run time: name the function that it resolves to",
		    expr->text);
	if (sym->type == STT_OBJECT && expr->execute)
		die("'%s' is data and cannot be executed", expr->text);
	if (sym->type == STT_TLS && !expr->tid)
		die("'%s' is thread-local: its address differs between threads: watch that of one thread with -p TID",
		    expr->text);
}

/* The loader defines some variables of the C library for its own use. */
static void drop_loader(struct symbol_list *list)
{
	size_t i, kept = 0;

	for (i = 0; i < list->nr; i++) {
		if (strncmp(base_name(symbols_path(list->entries[i].module)), "ld-", 3))
			list->entries[kept++] = list->entries[i];
	}
	if (kept)
		list->nr = kept;
}

/* Symbols of one name that LTO made global have the source files in the debug information. */
static const struct symbol *the_symbol(const struct expression *expr, const char *name,
				       struct symbol_list *list, enum scope scope)
{
	struct symbol_list sources = { 0 };
	size_t i;

	for (i = 0; i < list->nr; i++)
		check_kind(expr, &list->entries[i]);
	if (list->nr > 1)
		drop_loader(list);
	if (list->nr == 1)
		return &list->entries[0];
	symbols_find(expr->syms, scope, HOW_FULL, expr->file, name, &sources);
	die_ambiguous(expr, name, sources.nr == list->nr ? &sources : list);
}

static const struct symbol *find_name(const struct expression *expr, const char *name,
				      enum scope scope, enum how how)
{
	struct symbol_list list = { 0 };

	symbols_find(expr->syms, scope, how, expr->file, name, &list);
	return list.nr ? the_symbol(expr, name, &list, scope) : NULL;
}

/*
 * Find the longest of the names that @text begins with: the whole, or up to a '.', '[' or
 * "->". Sets its length.
 */
static const struct symbol *find_longest(const struct expression *expr, const char *text,
					 size_t whole, enum scope scope, enum how how,
					 size_t *len)
{
	const struct symbol *sym = NULL;
	size_t end = whole;
	char *name;

	while (end && !sym) {
		name = xasprintf("%.*s", (int)end, text);
		sym = find_name(expr, name, scope, how);
		free(name);
		*len = end;
		do {
			end--;
		} while (end && text[end] != '.' && text[end] != '[' &&
			 strncmp(text + end, "->", 2));
	}
	return sym;
}

static const struct symbol *find_symbol(const struct expression *expr, const char *text,
					size_t whole, size_t *len)
{
	static const struct {
		enum scope scope;
		enum how how;
		bool ready;
	} steps[] = {
		{ SCOPE_PROGRAM,	HOW_EXACT,	false },
		{ SCOPE_PROGRAM,	HOW_FULL,	false },
		{ SCOPE_LIBRARIES,	HOW_EXACT,	true },
		{ SCOPE_LIBRARIES,	HOW_FULL,	true },
		{ SCOPE_PROGRAM,	HOW_PARTIAL,	true },
		{ SCOPE_LIBRARIES,	HOW_PARTIAL,	true },
	};
	const struct symbol *sym = NULL;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && !sym; i++) {
		if (expr->ready || !steps[i].ready)
			sym = find_longest(expr, text, whole, steps[i].scope, steps[i].how, len);
	}
	return sym;
}

static bool parse_name(struct parser *parser, struct value *value)
{
	size_t len, whole = name_span(parser->p, ")");
	const struct symbol *sym = find_symbol(parser->expr, parser->p, whole, &len);
	struct symbol copy;

	if (!sym) {
		parser->expr->unknown = xasprintf("%.*s", (int)whole, parser->p);
		return false;
	}
	copy = *sym;
	symbols_find_type(&copy);
	parser->p += len;
	*value = object(parser, sym->address, copy.c_type);
	if (sym->size)
		value->size = sym->size;
	if (sym->type == STT_TLS)
		value->address = tls_address(parser->expr->syms, sym, parser->expr->tid);
	value->symbol = sym;
	return follow_reference(parser, value);
}

/* ---- steps ---- */

static void die_no_member(const struct parser *parser, const struct value *value,
			  const char *name) __attribute__((noreturn));

static void die_no_member(const struct parser *parser, const struct value *value,
			  const char *name)
{
	Dwfl_Module *mod = value->symbol ? value->symbol->module : NULL;
	char *missing = mod ? debuginfo_missing(mod, symbols_path(mod)) : NULL, *similar;

	if (!value->type)
		die("%s: no debug information for '%s'%s%s (use an offset: %s+OFFSET:LEN)",
		    parser->expr->text, done(parser), missing ? ": " : "", missing ? missing : "",
		    done(parser));
	if (value->type->kind != TYPE_STRUCT)
		die("%s: '%s' is not in a structure: '%s' is %s", parser->expr->text, name,
		    done(parser), value->type->name);
	if (value->type->declared)
		die("%s: the members of %s are unknown", parser->expr->text, value->type->name);
	similar = symbols_similar_members(value->type, name);
	die("%s: no member '%s' in %s%s%s", parser->expr->text, name, value->type->name,
	    similar ? ", but there is " : "", similar ? similar : "");
}

static bool parse_member(struct parser *parser, struct value *value)
{
	const char *begin = parser->p + (*parser->p == '.' ? 1 : 2);
	size_t len = strcspn(begin, ".[)- ");
	char *name = xasprintf("%.*s", (int)len, begin), *field;
	const struct type_member *member = NULL;
	uint64_t offset = 0;

	/* As in Go and Rust, and in gdb, '.' follows a pointer, too. */
	if (value->type && (value->type->kind == TYPE_POINTER || *parser->p == '-') &&
	    !dereference(parser, value))
		return false;
	if (value->type)
		member = type_member(value->type, name, &offset);
	if (!member && value->type && isdigit((unsigned char)*name)) {
		/* A field of a tuple of Rust */
		field = xasprintf("__%s", name);
		member = type_member(value->type, field, &offset);
		free(field);
	}
	if (!member)
		die_no_member(parser, value, name);
	*value = object(parser, value->address + offset, member->type);
	value->bit_offset = member->bit_offset;
	value->bit_size = member->bit_size;
	parser->p = begin + len;
	free(name);
	return follow_reference(parser, value);
}

/* A slice of Go: a pointer, a number of elements, and a capacity */
static bool enter_slice(struct parser *parser, struct value *value, uint64_t *nr)
{
	const struct type_member *array, *length;
	uint64_t at, len_at;

	array = type_member(value->type, "array", &at);
	length = type_member(value->type, "len", &len_at);
	if (value->type->kind != TYPE_STRUCT || !array || !length ||
	    array->type->kind != TYPE_POINTER || length->type->size != sizeof(*nr))
		return true;
	if (!parser->expr->ready)
		return false;
	if (!symbols_read(parser->expr->syms, value->address + len_at, nr, sizeof(*nr)))
		*nr = 0;
	*value = object(parser, value->address + at, array->type);
	return true;
}

static bool parse_element(struct parser *parser, struct value *value)
{
	uint64_t nr = 0;
	unsigned long n;
	char *end;

	n = strtoul(parser->p + 1, &end, 0);
	if (end == parser->p + 1 || *end != ']')
		die("%s: '[' must be followed by a number and ']'", parser->expr->text);
	if (!value->type)
		die_no_member(parser, value, "");
	if (!enter_slice(parser, value, &nr))
		return false;
	if (value->type->kind == TYPE_ARRAY)
		nr = value->type->nr;
	else if (value->type->kind != TYPE_POINTER)
		die("%s: [%lu] does not follow an array or a pointer: '%s' is %s",
		    parser->expr->text, n, done(parser), value->type->name);
	if (nr && n >= nr)
		die("%s: the array has %lu elements", parser->expr->text, (unsigned long)nr);
	if (value->type->kind == TYPE_POINTER) {
		if (!follow(parser, value))
			return false;
	} else {
		*value = object(parser, value->address, type_target(value->type));
	}
	if (!value->size)
		die("%s: size of the elements is unknown", parser->expr->text);
	value->address += n * value->size;
	parser->p = end + 1;
	return true;
}

/* ---- the expression ---- */

static bool parse_unary(struct parser *parser, struct value *value);

/* Length of "(TYPE *)", 0 if the text does not begin with one */
static size_t cast_length(const char *text)
{
	size_t len, last;

	if (*text != '(')
		return 0;
	len = 1 + name_span(text + 1, ")");
	if (text[len] != ')')
		return 0;
	last = len;
	while (last > 1 && text[last - 1] == ' ')
		last--;
	return text[last - 1] == '*' && text[1] != '*' ? len + 1 : 0;
}

static bool parse_cast(struct parser *parser, struct value *value, size_t len)
{
	char *name = xasprintf("%.*s", (int)len - 2, parser->p + 1);
	size_t end = strlen(name), stars = 0;
	struct type *type;

	while (end && (name[end - 1] == '*' || name[end - 1] == ' '))
		stars += name[--end] == '*';
	name[end] = '\0';
	type = find_type(parser, name);
	if (!type)
		die("%s: unknown type '%s'", parser->expr->text, name);
	free(name);
	parser->p += len;
	if (!parse_unary(parser, value))
		return false;
	if (!value->number && (!value->type || value->type->kind != TYPE_POINTER))
		die("%s: a cast must be followed by an address or a pointer", parser->expr->text);
	/* The value of a pointer variable, which is too early to read, is not. */
	if (!value->number && !parser->expr->ready)
		return false;
	value->address = read_pointer(parser, value);
	value->number = true;
	while (stars--)
		type = type_pointer_to(type, pointer_size(parser));
	value->type = type;
	value->size = 0;
	value->symbol = NULL;
	return true;
}

static bool parse_primary(struct parser *parser, struct value *value)
{
	size_t cast = cast_length(parser->p);
	char *end;

	if (cast)
		return parse_cast(parser, value, cast);
	if (*parser->p == '(' && strncmp(parser->p, "(anonymous", 10)) {
		parser->p++;
		if (!parse_unary(parser, value))
			return false;
		skip_spaces(parser);
		if (*parser->p++ != ')')
			die("%s: ')' is missing", parser->expr->text);
		value->symbol = NULL;
		return true;
	}
	if (!isdigit((unsigned char)*parser->p))
		return parse_name(parser, value);
	*value = (struct value){ .number = true, .address = strtoull(parser->p, &end, 0) };
	parser->p = end;
	return true;
}

static bool parse_steps(struct parser *parser, struct value *value)
{
	for (;;) {
		skip_spaces(parser);
		if (*parser->p == '[') {
			if (!parse_element(parser, value))
				return false;
		} else if (*parser->p == '.' || !strncmp(parser->p, "->", 2)) {
			if (!parse_member(parser, value))
				return false;
		} else {
			return true;
		}
		value->symbol = NULL;
	}
}

static bool parse_unary(struct parser *parser, struct value *value)
{
	skip_spaces(parser);
	if (*parser->p != '*')
		return parse_primary(parser, value) && parse_steps(parser, value);
	parser->p++;
	if (!parse_unary(parser, value) || !dereference(parser, value))
		return false;
	value->symbol = NULL;
	return true;
}

bool expression_evaluate(struct expression *expr)
{
	struct parser parser = { .expr = expr, .p = expr->text };
	struct value *value = &expr->value;

	if (!parse_unary(&parser, value))
		return false;
	skip_spaces(&parser);
	if (*parser.p)
		die("%s: invalid path '%s'", expr->text, parser.p);
	/* "(struct s *)0x7f00": the structure there, since a number is no place */
	return !value->number || !value->type || dereference(&parser, value);
}
