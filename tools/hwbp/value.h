/* SPDX-License-Identifier: GPL-2.0 */
/* Values of objects, formatted by their types. */
#ifndef HWBP_VALUE_H
#define HWBP_VALUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"
#include "symbols.h"
#include "type.h"

/**
 * struct field - a part of an object
 * @type: its type, NULL if not known
 * @offset: offset in bytes
 * @size: size in bytes
 * @bit_offset: number of the first bit of a bit-field, counted from @offset
 * @bit_size: number of bits of a bit-field, 0 for other fields
 */
struct field {
	const struct type *type;
	uint64_t offset;
	uint64_t size;
	unsigned int bit_offset;
	unsigned int bit_size;
};

/**
 * struct value_format - how values are shown
 * @hex: show integers in hexadecimal
 * @syms: symbols that pointers point at
 */
struct value_format {
	bool hex;
	struct symbols *syms;
};

/* An integer of any type of up to 64 bits, or a floating point number */
struct number {
	bool is_float;
	__int128 i;
	double f;
};

/* Numbers of the first and the last byte of a field in its object */
uint64_t field_first(const struct field *field);
uint64_t field_last(const struct field *field);

/* Returns true if a field, which may be of any offset and size, is in an object of @len bytes. */
bool field_fits(const struct field *field, unsigned int len);

/* Returns true if the field has the same value in two copies of its object. */
bool field_equal(const struct field *field, const uint8_t *a, const uint8_t *b);

/* An array of characters */
bool field_is_string(const struct field *field);

/* An integer, a floating point number or a pointer; and its value in the object @bytes */
bool field_is_number(const struct field *field);
struct number field_number(const struct field *field, const uint8_t *bytes);

/* Print the value of a field of the object @bytes. */
void value_print(FILE *out, const struct value_format *format, const struct field *field,
		 const uint8_t *bytes);
void value_json(struct json *json, const char *key, const struct value_format *format,
		const struct field *field, const uint8_t *bytes);

#endif
