// SPDX-License-Identifier: GPL-2.0
/* Types of variables: read them from the debug information. */
#define _GNU_SOURCE
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "type.h"
#include "util.h"

/* No program nests types as deep. Debug information with a cycle would do so without end. */
#define MAX_DEPTH	256

/**
 * struct nest - a type that is being read
 * @outer: the type that it is a part of, NULL if it is none
 * @die: address of its DIE
 */
struct nest {
	const struct nest *outer;
	const void *die;
};

static const struct nest *innermost;

static uint64_t number(Dwarf_Die *die, unsigned int name, uint64_t missing)
{
	Dwarf_Attribute attr;
	Dwarf_Word n;

	if (!dwarf_attr_integrate(die, name, &attr) || dwarf_formudata(&attr, &n))
		return missing;
	return n;
}

static bool referred(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), type);
}

/* ---- names ---- */

static const char *keyword(Dwarf_Die *die)
{
	Dwarf_Die cu;
	int lang = dwarf_diecu(die, &cu, NULL, NULL) ? dwarf_srclang(&cu) : -1;

	/* Other languages, and C++, name a type without a keyword. */
	if (lang != DW_LANG_C89 && lang != DW_LANG_C && lang != DW_LANG_C99 &&
	    lang != DW_LANG_C11)
		return "";
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
		return "struct ";
	case DW_TAG_union_type:
		return "union ";
	case DW_TAG_enumeration_type:
		return "enum ";
	default:
		return "";
	}
}

static char *type_text(Dwarf_Die *die, unsigned int depth)
{
	const char *name = dwarf_diename(die);
	char *inner, *text;
	Dwarf_Die target;

	if (name)
		return xasprintf("%s%s", keyword(die), name);
	if (depth < MAX_DEPTH && referred(die, &target))
		inner = type_text(&target, depth + 1);
	else
		inner = xstrdup("void");
	switch (dwarf_tag(die)) {
	case DW_TAG_pointer_type:
		text = xasprintf("%s%s*", inner, inner[strlen(inner) - 1] == '*' ? "" : " ");
		break;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		text = xasprintf("%s &", inner);
		break;
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_array_type:
		return inner;
	case DW_TAG_subroutine_type:
		text = xstrdup("function");
		break;
	default:
		text = xasprintf("%s{...}", keyword(die));
	}
	free(inner);
	return text;
}

/* ---- members ---- */

/* Returns true if @nr bits from bit @first of a byte are an integer of at most 16 bytes. */
static bool is_bit_field(const struct type *type, uint64_t first, uint64_t nr)
{
	switch (type->kind) {
	case TYPE_INT:
	case TYPE_BOOL:
	case TYPE_CHAR:
	case TYPE_ENUM:
		return type->size <= 16 && nr <= 128 && first + nr <= 128;
	default:
		return false;
	}
}

static void read_place(struct type_member *member, Dwarf_Die *die)
{
	uint64_t offset = number(die, DW_AT_data_member_location, 0), first;
	uint64_t nr = number(die, DW_AT_bit_size, 0);

	member->offset = offset;
	if (!nr)
		return;
	if (dwarf_hasattr(die, DW_AT_data_bit_offset)) {
		first = number(die, DW_AT_data_bit_offset, 0);
	} else {
		/* DWARF 3 counts from the most significant bit of the storage unit. */
		first = 8 * (offset + number(die, DW_AT_byte_size, member->type->size)) -
			number(die, DW_AT_bit_offset, 0) - nr;
	}
	member->offset = first / 8;
	if (!is_bit_field(member->type, first % 8, nr))
		return;
	member->bit_offset = first % 8;
	member->bit_size = nr;
}

static void read_members(struct type *type, Dwarf_Die *die)
{
	size_t capacity = 0;
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return;
	do {
		struct type_member member = { 0 };
		int tag = dwarf_tag(&child);
		const char *name;

		/* A static member is a variable of its own. */
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    dwarf_hasattr(&child, DW_AT_external) ||
		    dwarf_hasattr(&child, DW_AT_virtuality))
			continue;
		member.type = type_of_die(&child);
		if (!member.type)
			continue;
		name = dwarf_diename(&child);
		member.name = tag == DW_TAG_member && name && *name ? xstrdup(name) : NULL;
		member.base = tag == DW_TAG_inheritance;
		read_place(&member, &child);
		GROW(type->members, type->nr_members, capacity);
		type->members[type->nr_members++] = member;
	} while (!dwarf_siblingof(&child, &child));
}

const struct type_member *type_member(const struct type *type, const char *name,
				      uint64_t *offset)
{
	const struct type_member *found;
	uint64_t below;
	size_t i;

	for (i = 0; i < type->nr_members; i++) {
		*offset = type->members[i].offset;
		if (type->members[i].name && !strcmp(type->members[i].name, name))
			return &type->members[i];
	}
	for (i = 0; i < type->nr_members; i++) {
		if (type->members[i].name)
			continue;
		found = type_member(type->members[i].type, name, &below);
		*offset = type->members[i].offset + below;
		if (found)
			return found;
	}
	return NULL;
}

/* ---- other kinds ---- */

static void read_enumerators(struct type *type, Dwarf_Die *die)
{
	size_t capacity = 0;
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return;
	do {
		struct type_enumerator entry = { 0 };
		Dwarf_Attribute attr;
		Dwarf_Sword value;

		if (dwarf_tag(&child) != DW_TAG_enumerator || !dwarf_diename(&child) ||
		    !dwarf_attr(&child, DW_AT_const_value, &attr) ||
		    dwarf_formsdata(&attr, &value))
			continue;
		entry.name = xstrdup(dwarf_diename(&child));
		entry.value = value;
		type->is_signed |= value < 0;
		GROW(type->enumerators, type->nr_enumerators, capacity);
		type->enumerators[type->nr_enumerators++] = entry;
	} while (!dwarf_siblingof(&child, &child));
}

static uint64_t range_length(Dwarf_Die *range)
{
	uint64_t last = number(range, DW_AT_upper_bound, UINT64_MAX);
	uint64_t first = number(range, DW_AT_lower_bound, 0);

	if (last != UINT64_MAX && last + 1)
		return last + 1 - first;
	return number(range, DW_AT_count, 0);
}

/* An array of more than one dimension is an array of arrays. */
static struct type *new_array(struct type *element, Dwarf_Die *range, unsigned int depth)
{
	struct type *type = xzalloc(sizeof(*type));
	Dwarf_Die next = *range;
	const char *bracket;

	while (depth < MAX_DEPTH && !dwarf_siblingof(&next, &next)) {
		if (dwarf_tag(&next) != DW_TAG_subrange_type)
			continue;
		element = new_array(element, &next, depth + 1);
		break;
	}
	type->kind = TYPE_ARRAY;
	type->element = element;
	type->nr = range_length(range);
	type->size = type->nr * element->size;
	/* "int[2]" in an array of three is "int[3][2]". */
	bracket = strchrnul(element->name, element->kind == TYPE_ARRAY ? '[' : '\0');
	type->name = type->nr ? xasprintf("%.*s[%lu]%s", (int)(bracket - element->name),
					  element->name, (unsigned long)type->nr, bracket) :
				xasprintf("%.*s[]%s", (int)(bracket - element->name),
					  element->name, bracket);
	return type;
}

static struct type *read_array(Dwarf_Die *die)
{
	struct type *element = type_of_die(die);
	Dwarf_Die range;

	if (!element || dwarf_child(die, &range))
		return NULL;
	do {
		if (dwarf_tag(&range) == DW_TAG_subrange_type)
			return new_array(element, &range, 0);
	} while (!dwarf_siblingof(&range, &range));
	return NULL;
}

static void read_base(struct type *type, Dwarf_Die *die)
{
	uint64_t encoding = number(die, DW_AT_encoding, 0);
	const char *name = dwarf_diename(die);

	switch (encoding) {
	case DW_ATE_boolean:
		type->kind = TYPE_BOOL;
		break;
	case DW_ATE_float:
		type->kind = TYPE_FLOAT;
		break;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		/* "unsigned char" and "signed char" are small numbers, such as uint8_t. */
		type->kind = name && strstr(name, "signed") ? TYPE_INT : TYPE_CHAR;
		break;
	case DW_ATE_UTF:
		type->kind = TYPE_CHAR;
		break;
	case DW_ATE_address:
	case DW_ATE_signed:
	case DW_ATE_unsigned:
		type->kind = TYPE_INT;
		break;
	}
	type->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

static void read_pointer(struct type *type, Dwarf_Die *die, enum type_kind kind)
{
	type->kind = kind;
	if (!referred(die, &type->target))
		memset(&type->target, 0, sizeof(type->target));
}

static void read_kind(struct type *type, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		read_base(type, die);
		break;
	case DW_TAG_enumeration_type:
		type->kind = TYPE_ENUM;
		read_enumerators(type, die);
		break;
	case DW_TAG_pointer_type:
		read_pointer(type, die, TYPE_POINTER);
		break;
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		read_pointer(type, die, TYPE_REFERENCE);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
		type->kind = TYPE_STRUCT;
		type->declared = dwarf_hasattr(die, DW_AT_declaration);
		type->is_union = dwarf_tag(die) == DW_TAG_union_type;
		read_members(type, die);
		break;
	case DW_TAG_subroutine_type:
		type->kind = TYPE_FUNCTION;
		break;
	}
}

static struct type *read_type(Dwarf_Die *die, Dwarf_Die *peeled)
{
	struct type *type;
	Dwarf_Word size;

	if (dwarf_tag(peeled) == DW_TAG_array_type) {
		type = read_array(peeled);
		if (type)
			return type;
	}
	type = xzalloc(sizeof(*type));
	type->name = type_text(die, 0);
	type->size = dwarf_aggregate_size(peeled, &size) ? 0 : size;
	read_kind(type, peeled);
	if (!type->size && (type->kind == TYPE_POINTER || type->kind == TYPE_REFERENCE)) {
		Dwarf_Die cu;
		uint8_t address_size = sizeof(void *);

		dwarf_diecu(peeled, &cu, &address_size, NULL);
		type->size = address_size;
	}
	return type;
}

/* Returns true if a type may be a part of the types that are being read: it is none of them. */
static bool may_nest(const void *die)
{
	const struct nest *nest;
	unsigned int depth = 0;

	for (nest = innermost; nest; nest = nest->outer) {
		if (nest->die == die || ++depth == MAX_DEPTH)
			return false;
	}
	return true;
}

struct type *type_new(Dwarf_Die *die)
{
	struct nest nest = { .outer = innermost };
	struct type *type;
	Dwarf_Die peeled;

	if (dwarf_peel_type(die, &peeled) || !may_nest(peeled.addr))
		return NULL;
	nest.die = peeled.addr;
	innermost = &nest;
	type = read_type(die, &peeled);
	innermost = nest.outer;
	return type;
}

struct type *type_of_die(Dwarf_Die *die)
{
	Dwarf_Die type;

	return referred(die, &type) ? type_new(&type) : NULL;
}

struct type *type_target(struct type *type)
{
	if (type->element)
		return type->element;
	if (type->target.addr)
		type->element = type_new(&type->target);
	return type->element;
}

/* ---- types without debug information ---- */

struct type *type_builtin(const char *name, uint64_t long_size)
{
	/* A size of 0 is that of long. */
	static const struct {
		const char *name;
		enum type_kind kind;
		uint64_t size;
		bool is_signed;
	} builtin[] = {
		{ "char", TYPE_CHAR, 1, true },
		{ "char unsigned", TYPE_INT, 1, false },
		{ "short", TYPE_INT, 2, true },
		{ "short unsigned", TYPE_INT, 2, false },
		{ "int", TYPE_INT, 4, true },
		{ "unsigned", TYPE_INT, 4, false },
		{ "long", TYPE_INT, 0, true },
		{ "long unsigned", TYPE_INT, 0, false },
		{ "long long", TYPE_INT, 8, true },
		{ "long long unsigned", TYPE_INT, 8, false },
		{ "float", TYPE_FLOAT, 4, true },
		{ "double", TYPE_FLOAT, 8, true },
	};
	struct type *type;
	size_t i;

	for (i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
		if (strcmp(builtin[i].name, name))
			continue;
		type = xzalloc(sizeof(*type));
		type->kind = builtin[i].kind;
		type->name = xstrdup(name);
		type->size = builtin[i].size ? builtin[i].size : long_size;
		type->is_signed = builtin[i].is_signed;
		return type;
	}
	return NULL;
}

struct type *type_pointer_to(struct type *target, uint64_t size)
{
	struct type *type = xzalloc(sizeof(*type));

	type->kind = TYPE_POINTER;
	type->name = xasprintf("%s *", target->name);
	type->size = size;
	type->element = target;
	return type;
}
