// SPDX-License-Identifier: GPL-2.0
/*
 * Members of structures and arrays: find the DIE of the variable by name and address,
 * then follow the path through the types.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"
#include "variable.h"

/* ---- the variable ---- */

static bool has_address(Dwarf_Die *die, Dwarf_Addr addr)
{
	Dwarf_Attribute attr, result;
	Dwarf_Op *expr;
	size_t len;

	if (!dwarf_attr(die, DW_AT_location, &attr) ||
	    dwarf_getlocation(&attr, &expr, &len) || len != 1)
		return false;
	if (expr[0].atom == DW_OP_addr)
		return expr[0].number == addr;
	/* DW_OP_addrx: the address is in .debug_addr. */
	if (dwarf_getlocation_attr(&attr, expr, &result) ||
	    dwarf_formaddr(&result, &expr[0].number))
		return false;
	return expr[0].number == addr;
}

static bool has_variables(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_compile_unit:
	case DW_TAG_namespace:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

static bool find_variable(Dwarf_Die *scope, const char *name, Dwarf_Addr addr, Dwarf_Die *var)
{
	Dwarf_Die die;

	if (dwarf_child(scope, &die))
		return false;
	do {
		const char *die_name;

		if (has_variables(&die) && find_variable(&die, name, addr, var))
			return true;
		if (dwarf_tag(&die) != DW_TAG_variable)
			continue;
		/* dwarf_diename() follows DW_AT_specification to a declaration. */
		die_name = dwarf_diename(&die);
		if (die_name && !strcmp(die_name, name) && has_address(&die, addr)) {
			*var = die;
			return true;
		}
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

/* ---- its type ---- */

/* Find the type of @die, without typedefs and qualifiers. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), type) &&
	       !dwarf_peel_type(type, type);
}

static bool is_structure(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_class_type;
}

static bool member_offset(Dwarf_Die *member, Dwarf_Word *offset)
{
	Dwarf_Attribute attr;

	*offset = 0;
	/* Members of a union have no offset. */
	if (!dwarf_attr(member, DW_AT_data_member_location, &attr))
		return !dwarf_hasattr(member, DW_AT_data_bit_offset);
	return !dwarf_formudata(&attr, offset);
}

/* Find the member @name of a structure, or of an unnamed structure in it. */
static bool find_member(Dwarf_Die *type, const char *name, Dwarf_Die *found,
			Dwarf_Word *offset)
{
	Dwarf_Die member, inner;
	Dwarf_Word here, below;

	if (dwarf_child(type, &member))
		return false;
	do {
		const char *member_name;

		if (dwarf_tag(&member) != DW_TAG_member)
			continue;
		member_name = dwarf_diename(&member);
		if (member_name && !strcmp(member_name, name)) {
			if (dwarf_hasattr(&member, DW_AT_bit_size))
				die("'%s' is a bit field: watch the bytes that contain it", name);
			*found = member;
			return member_offset(&member, offset);
		}
		if (member_name || !type_of(&member, &inner) || !is_structure(&inner))
			continue;
		if (find_member(&inner, name, found, &below) && member_offset(&member, &here)) {
			*offset = here + below;
			return true;
		}
	} while (!dwarf_siblingof(&member, &member));
	return false;
}

/* Number of elements of a one-dimensional array, 0 if not known */
static Dwarf_Word array_length(Dwarf_Die *array)
{
	Dwarf_Attribute attr;
	Dwarf_Word n = 0;
	Dwarf_Die range;

	if (dwarf_child(array, &range) || dwarf_tag(&range) != DW_TAG_subrange_type)
		return 0;
	if (dwarf_attr(&range, DW_AT_count, &attr) && !dwarf_formudata(&attr, &n))
		return n;
	if (dwarf_attr(&range, DW_AT_upper_bound, &attr) && !dwarf_formudata(&attr, &n))
		return n + 1;
	return 0;
}

static bool has_one_dimension(Dwarf_Die *array)
{
	Dwarf_Die range;

	return !dwarf_child(array, &range) && dwarf_siblingof(&range, &range);
}

/* ---- the path ---- */

/**
 * struct step - position in the path
 * @whole: the whole path, for messages
 * @type: type of the member at @offset
 * @offset: offset from the start of the variable
 */
struct step {
	const char *whole;
	Dwarf_Die type;
	uint64_t offset;
};

static const char *step_member(struct step *step, const char *path)
{
	size_t len = strcspn(++path, ".[");
	Dwarf_Word offset;
	Dwarf_Die member;
	char *name;

	name = xasprintf("%.*s", (int)len, path);
	if (!is_structure(&step->type))
		die("%s: '%s' is not in a structure", step->whole, name);
	if (!find_member(&step->type, name, &member, &offset))
		die("%s: no member '%s'", step->whole, name);
	step->offset += offset;
	if (!type_of(&member, &step->type))
		die("%s: type of '%s' is unknown", step->whole, name);
	free(name);
	return path + len;
}

static const char *step_element(struct step *step, const char *path)
{
	Dwarf_Die array = step->type;
	unsigned long n;
	Dwarf_Word size;
	char *end;

	n = strtoul(path + 1, &end, 0);
	if (end == path + 1 || *end != ']')
		die("%s: '[' must be followed by a number and ']'", step->whole);
	if (dwarf_tag(&array) != DW_TAG_array_type || !has_one_dimension(&array))
		die("%s: [%lu] does not follow a one-dimensional array", step->whole, n);
	if (array_length(&array) && n >= array_length(&array))
		die("%s: the array has %lu elements", step->whole,
		    (unsigned long)array_length(&array));
	if (!type_of(&array, &step->type) || dwarf_aggregate_size(&step->type, &size))
		die("%s: size of the elements is unknown", step->whole);
	step->offset += n * size;
	return end + 1;
}

static void follow(struct step *step, const char *path, uint64_t *size)
{
	Dwarf_Word bytes;

	while (*path) {
		if (*path == '.')
			path = step_member(step, path);
		else if (*path == '[')
			path = step_element(step, path);
		else
			die("%s: invalid path '%s'", step->whole, path);
	}
	*size = dwarf_aggregate_size(&step->type, &bytes) ? 0 : bytes;
}

void variable_member(const struct symbol *sym, const char *name, const char *path,
		     uint64_t *offset, uint64_t *size)
{
	struct step step = { .whole = xasprintf("%s%s", name, path) };
	Dwarf_Die *cu = NULL, var;
	Dwarf_Addr bias;

	while ((cu = dwfl_module_nextcu(sym->module, cu, &bias))) {
		if (!find_variable(cu, name, sym->address - bias, &var))
			continue;
		if (!type_of(&var, &step.type))
			break;
		follow(&step, path, size);
		*offset = step.offset;
		free((char *)step.whole);
		return;
	}
	die("%s: no debug information for '%s' (use an offset: %s+OFFSET:LEN)", step.whole,
	    name, name);
}
