// SPDX-License-Identifier: GPL-2.0
/* Values of objects, formatted by their types. */
#define _GNU_SOURCE
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kallsyms.h"
#include "util.h"
#include "value.h"

/* Length of a number as text */
#define NUMBER_LEN	64

/* Bytes of no known type are an integer if they have the size of one. */
static enum type_kind kind_of(const struct field *field)
{
	if (field->type)
		return field->type->kind;
	return field->size <= 8 && !(field->size & (field->size - 1)) ? TYPE_INT : TYPE_UNKNOWN;
}

/* Bits of a number */
static unsigned int nr_bits(const struct field *field)
{
	return field->bit_size ? field->bit_size : 8 * field->size;
}

uint64_t field_first(const struct field *field)
{
	return field->offset + field->bit_offset / 8;
}

uint64_t field_last(const struct field *field)
{
	if (!field->bit_size)
		return field->offset + field->size - 1;
	return field->offset + (field->bit_offset + field->bit_size - 1) / 8;
}

/* Offset and size come from debug information: if their sum wraps, the last byte is first. */
bool field_fits(const struct field *field, unsigned int len)
{
	return field->size && field_first(field) <= field_last(field) && field_last(field) < len;
}

/* The bits of a field of at most 128 bits */
static unsigned __int128 read_bits(const struct field *field, const uint8_t *bytes)
{
	uint64_t first = field_first(field);
	unsigned __int128 bits = 0;
	unsigned int nr = nr_bits(field);

	memcpy(&bits, bytes + first, field_last(field) - first + 1);
	bits >>= field->bit_offset % 8;
	if (nr < 128)
		bits &= ((unsigned __int128)1 << nr) - 1;
	return bits;
}

bool field_equal(const struct field *field, const uint8_t *a, const uint8_t *b)
{
	if (field->bit_size)
		return read_bits(field, a) == read_bits(field, b);
	return !memcmp(a + field->offset, b + field->offset, field->size);
}

bool field_is_string(const struct field *field)
{
	return kind_of(field) == TYPE_ARRAY && field->type->element->kind == TYPE_CHAR &&
	       field->type->element->size == 1;
}

static bool is_integer(const struct field *field)
{
	switch (kind_of(field)) {
	case TYPE_INT:
	case TYPE_BOOL:
	case TYPE_CHAR:
	case TYPE_ENUM:
	case TYPE_POINTER:
	case TYPE_REFERENCE:
		return field->size && field->size <= sizeof(__int128);
	default:
		return false;
	}
}

/* float, double, and long double with or without padding for 64-bit alignment */
static bool is_float(const struct field *field)
{
	return kind_of(field) == TYPE_FLOAT &&
	       (field->size == sizeof(float) || field->size == sizeof(double) ||
		field->size == 12 || field->size == sizeof(long double));
}

bool field_is_number(const struct field *field)
{
	return is_integer(field) || is_float(field);
}

static long double read_float(const struct field *field, const uint8_t *bytes)
{
	long double n = 0;
	double d;
	float f;

	bytes += field->offset;
	if (field->size == sizeof(f)) {
		memcpy(&f, bytes, sizeof(f));
		return f;
	}
	if (field->size == sizeof(d)) {
		memcpy(&d, bytes, sizeof(d));
		return d;
	}
	memcpy(&n, bytes, 10);
	return n;
}

static __int128 read_integer(const struct field *field, const uint8_t *bytes)
{
	unsigned __int128 bits = read_bits(field, bytes);
	unsigned int nr = nr_bits(field);

	if (field->type && field->type->is_signed && nr < 128 && bits >> (nr - 1) & 1)
		bits |= ~(unsigned __int128)0 << nr;
	return bits;
}

struct number field_number(const struct field *field, const uint8_t *bytes)
{
	struct number n = { .is_float = is_float(field) };

	if (n.is_float)
		n.f = read_float(field, bytes);
	else
		n.i = read_integer(field, bytes);
	return n;
}

/* ---- text ---- */

/* An integer of more than 64 bits is shown in hexadecimal. */
static void format_integer(char *text, const struct field *field, __int128 n, bool hex)
{
	unsigned __int128 bits = n;

	if (nr_bits(field) < 128)
		bits &= ((unsigned __int128)1 << nr_bits(field)) - 1;
	if (n == (uint64_t)n && !hex)
		snprintf(text, NUMBER_LEN, "%" PRIu64, (uint64_t)n);
	else if (bits >> 64)
		snprintf(text, NUMBER_LEN, "0x%" PRIx64 "%016" PRIx64, (uint64_t)(bits >> 64),
			 (uint64_t)bits);
	else
		snprintf(text, NUMBER_LEN, "0x%" PRIx64, (uint64_t)bits);
}

static void print_number(FILE *out, const struct field *field, __int128 n, bool hex)
{
	char number[NUMBER_LEN];

	if (n == (int64_t)n && !hex) {
		put_signed(out, n);
		return;
	}
	format_integer(number, field, n, hex);
	fputs(number, out);
}

/* The least number of digits from which the same number is read */
static void format_float(char *text, const struct field *field, long double n)
{
	bool is_single = field->size == sizeof(float), is_double = field->size == sizeof(double);
	int digits = is_single ? FLT_DIG : is_double ? DBL_DIG : LDBL_DIG;
	int most = digits + 3;
	long double same;

	do {
		snprintf(text, NUMBER_LEN, "%.*Lg", digits, n);
		same = is_single ? strtof(text, NULL) : is_double ? strtod(text, NULL) :
								    strtold(text, NULL);
	} while (same != n && digits++ < most);
}

/* The enumerators whose bits make up @n, separated by '|'; NULL if there are none */
static char *enum_flags(const struct type *type, int64_t n)
{
	char *text = xstrdup(""), *longer;
	int64_t rest = n, value;
	size_t i;

	for (i = 0; i < type->nr_enumerators; i++) {
		value = type->enumerators[i].value;
		if (value & (value - 1))
			break;
		if (!(value & rest))
			continue;
		longer = xasprintf("%s%s%s", text, *text ? "|" : "", type->enumerators[i].name);
		free(text);
		text = longer;
		rest &= ~value;
	}
	if (*text && !rest && i == type->nr_enumerators)
		return text;
	free(text);
	return NULL;
}

/* The name of a value of an enumeration, NULL if it has none; to be freed */
static char *enum_name(const struct type *type, int64_t n)
{
	size_t i;

	for (i = 0; i < type->nr_enumerators; i++) {
		if (type->enumerators[i].value == n)
			return xstrdup(type->enumerators[i].name);
	}
	return enum_flags(type, n);
}

static void print_enum(FILE *out, const struct field *field, __int128 n, bool hex)
{
	char *name = enum_name(field->type, n);

	if (name)
		fputs(name, out);
	else
		print_number(out, field, n, hex);
	free(name);
}

/* A character of a text in quotes. Returns false if it has to be shown as a number. */
static bool put_character(FILE *out, __int128 c, char quote)
{
	static const char escapes[] = "\n\t\r\\", letters[] = "ntr\\";
	const char *escape = c > 0 && c < 0x7f ? strchr(escapes, (int)c) : NULL;

	if (escape)
		fprintf(out, "\\%c", letters[escape - escapes]);
	else if (c == quote)
		fprintf(out, "\\%c", quote);
	else if (c >= ' ' && c <= '~')
		fputc((int)c, out);
	else
		return false;
	return true;
}

static void print_char(FILE *out, const struct field *field, __int128 n)
{
	if ((n >= ' ' && n <= '~') || n == '\n' || n == '\t' || n == '\r') {
		fputc('\'', out);
		put_character(out, n, '\'');
		fputc('\'', out);
		return;
	}
	print_number(out, field, n, false);
}

static void print_string(FILE *out, const struct field *field, const uint8_t *bytes)
{
	const uint8_t *p = bytes + field->offset, *end = p + field->size;

	fputc('"', out);
	for (; p < end && *p; p++) {
		if (!put_character(out, *p, '"'))
			fprintf(out, "\\%03o", *p);
	}
	fputc('"', out);
}

/* The symbol at an address, which may be one of the kernel; NULL if there is none */
static char *pointer_name(const struct value_format *format, uint64_t address)
{
	if ((int64_t)address < 0)
		return kallsyms_name(address);
	return address && format->syms ? symbols_name(format->syms, address) : NULL;
}

static void print_pointer(FILE *out, const struct value_format *format, uint64_t address)
{
	char *name = pointer_name(format, address);

	fprintf(out, "0x%" PRIx64, address);
	if (name)
		fprintf(out, " <%s>", name);
	free(name);
}

static void print_bytes(FILE *out, const struct field *field, const uint8_t *bytes)
{
	unsigned int i;

	for (i = 0; i < field->size; i++)
		fprintf(out, "%s%02x", i ? " " : "", bytes[field->offset + i]);
}

static void print_integer(FILE *out, const struct value_format *format,
			  const struct field *field, __int128 n)
{
	switch (kind_of(field)) {
	case TYPE_BOOL:
		if (n == !!n) {
			fputs(n ? "true" : "false", out);
			return;
		}
		break;
	case TYPE_ENUM:
		print_enum(out, field, n, format->hex);
		return;
	case TYPE_CHAR:
		if (!format->hex) {
			print_char(out, field, n);
			return;
		}
		break;
	case TYPE_POINTER:
	case TYPE_REFERENCE:
		print_pointer(out, format, n);
		return;
	default:
		break;
	}
	/* Bytes of no known type are more often addresses or flags than numbers. */
	print_number(out, field, n, format->hex || !field->type);
}

void value_print(FILE *out, const struct value_format *format, const struct field *field,
		 const uint8_t *bytes)
{
	char number[NUMBER_LEN];

	if (field_is_string(field)) {
		print_string(out, field, bytes);
	} else if (is_float(field)) {
		format_float(number, field, read_float(field, bytes));
		fputs(number, out);
	} else if (is_integer(field)) {
		print_integer(out, format, field, read_integer(field, bytes));
	} else {
		print_bytes(out, field, bytes);
	}
}

/* ---- JSON ---- */

static void json_enum(struct json *json, const char *key, const struct field *field, int64_t n)
{
	char *name = enum_name(field->type, n);

	json_object_begin(json, key);
	json_string(json, "name", name);
	json_i64(json, "value", n);
	json_element_end(json);
	free(name);
}

static void json_pointer(struct json *json, const char *key, const struct value_format *format,
			 uint64_t address)
{
	char *name = pointer_name(format, address);

	json_object_begin(json, key);
	json_address(json, "address", address);
	json_string(json, "symbol", name);
	json_element_end(json);
	free(name);
}

static void json_integer(struct json *json, const char *key, const struct value_format *format,
			 const struct field *field, __int128 n)
{
	enum type_kind kind = kind_of(field);
	char number[NUMBER_LEN];

	if (kind == TYPE_BOOL && n == !!n) {
		json_bool(json, key, n);
	} else if (kind == TYPE_ENUM) {
		json_enum(json, key, field, n);
	} else if (kind == TYPE_POINTER || kind == TYPE_REFERENCE) {
		json_pointer(json, key, format, n);
	} else if (n == (int64_t)n) {
		json_i64(json, key, n);
	} else if (n == (uint64_t)n) {
		json_u64(json, key, n);
	} else {
		format_integer(number, field, n, true);
		json_string(json, key, number);
	}
}

static void json_text(struct json *json, const char *key, const struct field *field,
		      const uint8_t *bytes)
{
	char *text = xasprintf("%.*s", (int)field->size, (const char *)bytes + field->offset);

	json_string(json, key, text);
	free(text);
}

static void json_float(struct json *json, const char *key, const struct field *field,
		       long double n)
{
	char number[NUMBER_LEN];

	format_float(number, field, n);
	/* JSON has no infinity, and nothing that is not a number. */
	if (__builtin_isfinite(n))
		json_number(json, key, number);
	else
		json_string(json, key, number);
}

void value_json(struct json *json, const char *key, const struct value_format *format,
		const struct field *field, const uint8_t *bytes)
{
	if (field_is_string(field))
		json_text(json, key, field, bytes);
	else if (is_float(field))
		json_float(json, key, field, read_float(field, bytes));
	else if (is_integer(field))
		json_integer(json, key, format, field, read_integer(field, bytes));
	else
		json_bytes(json, key, bytes + field->offset, field->size);
}
