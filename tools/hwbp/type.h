/* SPDX-License-Identifier: GPL-2.0 */
/* Types of variables, from the debug information. */
#ifndef HWBP_TYPE_H
#define HWBP_TYPE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum type_kind {
	TYPE_UNKNOWN,
	TYPE_INT,
	TYPE_BOOL,
	TYPE_CHAR,
	TYPE_FLOAT,
	TYPE_ENUM,
	TYPE_POINTER,
	TYPE_REFERENCE,
	TYPE_ARRAY,
	TYPE_STRUCT,
	TYPE_FUNCTION,
};

struct type;

/**
 * struct type_member - a member of a structure, union or class
 * @name: its name, NULL for an unnamed structure
 * @base: a base class, whose members are inherited
 * @offset: offset in bytes; for a bit-field that of the byte with its first bit
 * @bit_offset: number of the first bit in the byte at @offset
 * @bit_size: number of bits, 0 if it is not a bit-field
 * @type: its type
 */
struct type_member {
	char *name;
	bool base;
	uint64_t offset;
	unsigned int bit_offset;
	unsigned int bit_size;
	struct type *type;
};

struct type_enumerator {
	char *name;
	int64_t value;
};

/**
 * struct type - a type without its typedefs and qualifiers
 * @kind: what it is
 * @name: as in the source: "struct account", "long *", "char[16]"
 * @size: size in bytes, 0 if not known
 * @is_signed: an integer, character or enumeration has a sign
 * @members: members of a structure, union or class
 * @nr_members: number of @members
 * @enumerators: names of the values of an enumeration
 * @nr_enumerators: number of @enumerators
 * @element: type of the elements of an array
 * @nr: number of elements, 0 if not known
 * @target: type that a pointer or reference points at, see type_target()
 * @declared: only declared: another file may define it
 * @is_union: the members are the same bytes
 *
 * It does not refer to the debug information, save @target, which type_target() uses.
 */
struct type {
	enum type_kind kind;
	char *name;
	uint64_t size;
	bool is_signed;
	struct type_member *members;
	size_t nr_members;
	struct type_enumerator *enumerators;
	size_t nr_enumerators;
	struct type *element;
	uint64_t nr;
	Dwarf_Die target;
	bool declared;
	bool is_union;
};

/* The type that a DIE of a type describes, NULL if it contains itself. It is never freed. */
struct type *type_new(Dwarf_Die *die);

/* The type of a DIE of a variable or member, NULL if it has none */
struct type *type_of_die(Dwarf_Die *die);

/*
 * The type that a pointer or reference points at, NULL if it has none. The symbols of the
 * process must not have changed since the type was made.
 */
struct type *type_target(struct type *type);

/* A type of C by its canonical name, such as "char unsigned"; NULL if unknown */
struct type *type_builtin(const char *name, uint64_t long_size);

/* A pointer to @target of @size bytes */
struct type *type_pointer_to(struct type *target, uint64_t size);

/*
 * Find a member, also one of an unnamed structure or of a base class. Sets the offset from
 * the start of @type.
 */
const struct type_member *type_member(const struct type *type, const char *name,
				      uint64_t *offset);

#endif
