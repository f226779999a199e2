// SPDX-License-Identifier: GPL-2.0
/* Find variables and types in the debug information of one file. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debuginfo.h"
#include "util.h"

/* Number of words of a type, such as "const unsigned long int" */
#define MAX_WORDS	8

/* No program nests scopes as deep; debug information that does would exhaust the stack. */
#define MAX_DEPTH	256

/* ---- units ---- */

void debuginfo_full_unit(Dwarf_Die *cu, Dwarf_Die *die)
{
	Dwarf_Die split;

	*die = *cu;
	if (!dwarf_cu_info(cu->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) &&
	    split.addr && dwarf_tag(&split) == DW_TAG_compile_unit)
		*die = split;
}

bool debuginfo_next_unit(Dwfl_Module *mod, struct unit *unit)
{
	unit->cu = dwfl_module_nextcu(mod, unit->cu, &unit->bias);
	if (!unit->cu)
		return false;
	debuginfo_full_unit(unit->cu, &unit->die);
	unit->split = unit->die.cu != unit->cu->cu;
	return true;
}

char *debuginfo_missing(Dwfl_Module *mod, const char *path)
{
	char *package = xasprintf("%s.dwp", path), *why = NULL;
	Dwarf_Die *cu = NULL, die;
	Dwarf_Attribute attr;
	Dwarf_Addr bias;

	while (!why && (cu = dwfl_module_nextcu(mod, cu, &bias))) {
		debuginfo_full_unit(cu, &die);
		if (die.cu != cu->cu || !(dwarf_attr(cu, DW_AT_dwo_name, &attr) ||
					  dwarf_attr(cu, DW_AT_GNU_dwo_name, &attr)))
			continue;
		why = access(package, F_OK) ?
		      xasprintf("the file '%s' was not found", dwarf_formstring(&attr)) :
		      xasprintf("it is in '%s', which libdw reads since elfutils 0.191", package);
	}
	free(package);
	return why;
}

/* ---- names ---- */

static bool is_scope(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
	case DW_TAG_subprogram:
		return true;
	default:
		return false;
	}
}

/* The declaration in its class or namespace, or the function that was inlined */
static bool find_origin(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attr;

	return (dwarf_attr(die, DW_AT_specification, &attr) ||
		dwarf_attr(die, DW_AT_abstract_origin, &attr)) &&
	       dwarf_formref_die(&attr, origin);
}

static void prepend_scopes(struct name *name, Dwarf_Die *die, unsigned int depth)
{
	Dwarf_Die origin, *scopes = NULL;
	int i, nr;

	if (depth == MAX_DEPTH)
		return;
	if (find_origin(die, &origin)) {
		prepend_scopes(name, &origin, depth + 1);
		return;
	}
	nr = dwarf_getscopes_die(die, &scopes);
	for (i = 1; i < nr; i++) {
		const char *text = dwarf_diename(&scopes[i]);

		if (!is_scope(&scopes[i]))
			continue;
		name_prepend(name, text ? text : "(anonymous namespace)",
			     !text || dwarf_hasattr(&scopes[i], DW_AT_export_symbols));
		if (find_origin(&scopes[i], &origin)) {
			prepend_scopes(name, &origin, depth + 1);
			break;
		}
	}
	free(scopes);
}

static void qualified_name(struct name *name, Dwarf_Die *die)
{
	memset(name, 0, sizeof(*name));
	name_prepend(name, dwarf_diename(die), false);
	prepend_scopes(name, die, 0);
}

/* ---- variables ---- */

/**
 * struct walk - a search through one unit
 * @wanted: name of the variables, NULL for all
 * @func: function to call for each
 * @arg: its argument
 * @unit: the unit
 * @at: address of the variable to find, see find_at()
 * @tls: whether it is thread-local
 * @functions: search the functions, else all but the functions
 * @type: type that was found
 */
struct walk {
	const struct name *wanted;
	variable_func func;
	void *arg;
	struct unit unit;
	uint64_t at;
	bool tls;
	bool functions;
	struct type *type;
};

static bool operand_address(Dwarf_Attribute *attr, const Dwarf_Op *op, Dwarf_Word *n)
{
	Dwarf_Attribute result;

	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const4u:
	case DW_OP_const8u:
		*n = op->number;
		return true;
	default:
		/* An index into .debug_addr */
		return !dwarf_getlocation_attr(attr, op, &result) && !dwarf_formaddr(&result, n);
	}
}

static bool is_tls(const Dwarf_Op *op)
{
	return op->atom == DW_OP_GNU_push_tls_address || op->atom == DW_OP_form_tls_address;
}

/*
 * Go writes an expression as a block, which libdw does not take for a location in DWARF 4:
 * read the one that is an address.
 */
static bool block_address(Dwarf_Attribute *attr, Dwarf_Word *n)
{
	Dwarf_Block block;

	if (dwarf_formblock(attr, &block) || block.length != 1 + sizeof(*n) ||
	    block.data[0] != DW_OP_addr)
		return false;
	memcpy(n, block.data + 1, sizeof(*n));
	return true;
}

/* Find the fixed address of a variable, if it has one. */
static bool find_address(struct walk *walk, Dwarf_Die *die, struct variable *var)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	Dwarf_Word n;
	size_t len;

	if (!dwarf_attr(die, DW_AT_location, &attr))
		return false;
	if (block_address(&attr, &n)) {
		var->address = n + walk->unit.bias;
		return true;
	}
	if (dwarf_getlocation(&attr, &ops, &len) || !len || len > 2 ||
	    !operand_address(&attr, &ops[0], &n))
		return false;
	var->tls = len == 2 && is_tls(&ops[1]);
	if (len == 2 && ops[1].atom == DW_OP_plus_uconst)
		n += ops[1].number;
	else if (len == 2 && !var->tls)
		return false;
	var->address = var->tls ? n : n + walk->unit.bias;
	return true;
}

static void visit(struct walk *walk, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	struct variable var = { .die = *die };
	Dwarf_Die cu;

	if (!name || (walk->wanted && !name_last_matches(walk->wanted, name)) ||
	    !find_address(walk, die, &var))
		return;
	if (!walk->func) {
		if (var.address == walk->at && var.tls == walk->tls)
			walk->type = type_of_die(die);
		return;
	}
	qualified_name(&var.name, die);
	/* libdw knows neither the files of split units nor file 0 of DWARF 5, that of the unit. */
	if (!walk->unit.split)
		var.file = dwarf_decl_file(die);
	if (!var.file && dwarf_diecu(die, &cu, NULL, NULL))
		var.file = dwarf_diename(&cu);
	walk->func(walk->arg, &var);
	name_free(&var.name);
}

static bool has_variables(const struct walk *walk, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_lexical_block:
		return true;
	case DW_TAG_subprogram:
		return walk->functions;
	default:
		return false;
	}
}

static void walk_scope(struct walk *walk, Dwarf_Die *scope, unsigned int depth)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(scope, &die))
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variable)
			visit(walk, &die);
		else if (has_variables(walk, &die))
			walk_scope(walk, &die, depth + 1);
	} while (!walk->type && !dwarf_siblingof(&die, &die));
}

static void walk_units(struct walk *walk, Dwfl_Module *mod)
{
	memset(&walk->unit, 0, sizeof(walk->unit));
	while (!walk->type && debuginfo_next_unit(mod, &walk->unit))
		walk_scope(walk, &walk->unit.die, 0);
}

void debuginfo_variables(Dwfl_Module *mod, const struct name *wanted, variable_func func,
			 void *arg)
{
	struct walk walk = {
		.wanted = wanted,
		.func = func,
		.arg = arg,
		.functions = true,
	};

	walk_units(&walk, mod);
}

struct type *debuginfo_type_at(Dwfl_Module *mod, uint64_t address, bool tls)
{
	struct walk walk = { .at = address, .tls = tls };

	/* Most variables are not in functions, which are the largest part. */
	walk_units(&walk, mod);
	walk.functions = true;
	if (!walk.type)
		walk_units(&walk, mod);
	return walk.type;
}

/* ---- types ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "unsigned long int" and "long unsigned int" are one type: "long unsigned". To be freed. */
static char *canonical(const char *name)
{
	char *copy = xstrdup(name), *words[MAX_WORDS], *word, *state, *text = xstrdup(""), *longer;
	size_t i, nr = 0, used = 0;

	for (word = strtok_r(copy, " ", &state); word && nr < MAX_WORDS;
	     word = strtok_r(NULL, " ", &state)) {
		if (strcmp(word, "const") && strcmp(word, "volatile") && strcmp(word, "struct") &&
		    strcmp(word, "union") && strcmp(word, "class") && strcmp(word, "enum"))
			words[nr++] = word;
	}
	if (!strchr(name, '<'))
		qsort(words, nr, sizeof(words[0]), by_text);
	for (i = 0; i < nr; i++) {
		if (nr > 1 && (!strcmp(words[i], "int") || !strcmp(words[i], "signed")))
			continue;
		longer = xasprintf("%s%s%s", text, used++ ? " " : "", words[i]);
		free(text);
		text = longer;
	}
	free(copy);
	return text;
}

static bool is_defined_type(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
	case DW_TAG_typedef:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
	case DW_TAG_enumeration_type:
		return !dwarf_hasattr(die, DW_AT_declaration);
	default:
		return false;
	}
}

static bool has_types(Dwarf_Die *die)
{
	return is_scope(die) || dwarf_tag(die) == DW_TAG_module ||
	       dwarf_tag(die) == DW_TAG_lexical_block;
}

static bool is_type(Dwarf_Die *die, const struct name *wanted)
{
	const char *text = dwarf_diename(die);
	struct name name;
	char *same;
	bool found;

	if (!text || !is_defined_type(die))
		return false;
	if (dwarf_tag(die) == DW_TAG_base_type) {
		same = canonical(text);
		found = wanted->nr == 1 && !strcmp(same, name_last(wanted));
		free(same);
		return found;
	}
	if (!name_last_matches(wanted, text))
		return false;
	qualified_name(&name, die);
	found = name_match(wanted, &name) != MATCH_NONE;
	name_free(&name);
	return found;
}

static bool find_type(Dwarf_Die *scope, const struct name *wanted, Dwarf_Die *found,
		      unsigned int depth)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(scope, &die))
		return false;
	do {
		if (is_type(&die, wanted)) {
			*found = die;
			return true;
		}
		if (has_types(&die) && find_type(&die, wanted, found, depth + 1))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

struct type *debuginfo_type(Dwfl_Module *mod, const char *name)
{
	char *text = canonical(name);
	struct unit unit = { 0 };
	struct type *type = NULL;
	struct name wanted;
	Dwarf_Die die;

	name_parse(&wanted, text);
	while (!type && debuginfo_next_unit(mod, &unit)) {
		if (find_type(&unit.die, &wanted, &die, 0))
			type = type_new(&die);
	}
	name_free(&wanted);
	free(text);
	return type;
}

struct type *debuginfo_builtin(const char *name, uint64_t long_size)
{
	char *text = canonical(name);
	struct type *type = type_builtin(text, long_size);

	free(text);
	return type;
}
