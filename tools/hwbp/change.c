// SPDX-License-Identifier: GPL-2.0
/* What an access changed in an object: find the members that differ, and show them. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "change.h"
#include "util.h"

#define PATH_LEN	512

/**
 * struct walk - comparison of an object before and after an access
 * @format: how values are shown
 * @loc: the object
 * @before: its bytes before, NULL if not known
 * @after: its bytes after, NULL if not known
 * @out: output of text, NULL for JSON
 * @json: output of JSON
 * @bytes: for JSON, @before or @after: the values to be shown
 * @path: name of the member that is being compared, PATH_LEN bytes
 * @path_len: length of @path
 * @members: bit mask of the bytes that belong to members
 * @found: a member that differs was found
 */
struct walk {
	const struct value_format *format;
	const struct location *loc;
	const uint8_t *before;
	const uint8_t *after;
	FILE *out;
	struct json *json;
	const uint8_t *bytes;
	char *path;
	size_t path_len;
	uint32_t members;
	bool found;
};

struct field change_object(const struct location *loc)
{
	return (struct field){
		.type = loc->type,
		.size = loc->bit_size && loc->type ? loc->type->size : loc->len,
		.bit_offset = loc->bit_offset,
		.bit_size = loc->bit_size,
	};
}

struct field field_member(const struct field *field, const struct type_member *member)
{
	return (struct field){
		.type = member->type,
		.offset = field->offset + member->offset,
		.size = member->type->size,
		.bit_offset = member->bit_offset,
		.bit_size = member->bit_size,
	};
}

struct field field_element(const struct field *field, uint64_t i)
{
	const struct type *element = field->type->element;

	return (struct field){
		.type = element,
		.offset = field->offset + i * element->size,
		.size = element->size,
	};
}

static bool differs(const struct walk *walk, const struct field *field)
{
	return !walk->before || !walk->after || !field_equal(field, walk->before, walk->after);
}

static bool is_aggregate(const struct field *field)
{
	if (!field->type)
		return false;
	return (field->type->kind == TYPE_STRUCT && field->type->nr_members) ||
	       (field->type->kind == TYPE_ARRAY && field->type->element->size && field->type->nr);
}

/* ---- output ---- */

/* Returns the length of the path before. */
static size_t extend_path(struct walk *walk, const char *fmt, ...) PRINTF(2, 3);

static size_t extend_path(struct walk *walk, const char *fmt, ...)
{
	size_t before = walk->path_len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(walk->path + before, PATH_LEN - before, fmt, ap);
	va_end(ap);
	walk->path_len += n;
	if (walk->path_len >= PATH_LEN)
		walk->path_len = PATH_LEN - 1;
	return before;
}

static void reset_path(struct walk *walk, size_t len)
{
	walk->path_len = len;
	walk->path[len] = '\0';
}

static void print_value(const struct walk *walk, const struct field *field, const uint8_t *bytes)
{
	if (bytes)
		value_print(walk->out, walk->format, field, bytes);
	else
		fputc('?', walk->out);
}

static void print_both(const struct walk *walk, const struct field *field)
{
	print_value(walk, field, walk->before);
	put_short(walk->out, " -> ");
	print_value(walk, field, walk->after);
}

static void show_leaf(struct walk *walk, const char *key, const struct field *field)
{
	unsigned int i;

	for (i = field_first(field); i <= field_last(field); i++)
		walk->members |= 1U << i;
	if (!differs(walk, field))
		return;
	if (walk->out) {
		fprintf(walk->out, "%s%s ", walk->found ? ", " : "", walk->path);
		print_both(walk, field);
	} else {
		value_json(walk->json, key, walk->format, field, walk->bytes);
	}
	walk->found = true;
}

/* ---- the comparison ---- */

static void compare(struct walk *walk, const char *key, const struct field *field);

/* The members of a union are the same bytes: the widest one has all. */
static bool is_shown(const struct type *type, const struct type_member *member)
{
	size_t i;

	if (!type->is_union)
		return true;
	for (i = 0; &type->members[i] != member; i++) {
		if (type->members[i].type->size >= member->type->size)
			return false;
	}
	for (i++; i < type->nr_members; i++) {
		if (type->members[i].type->size > member->type->size)
			return false;
	}
	return true;
}

/* Members of an unnamed structure or a base class are members of the outer one. */
static void compare_members(struct walk *walk, const struct field *field)
{
	const struct type *type = field->type;
	size_t i, len;

	for (i = 0; i < type->nr_members; i++) {
		const struct type_member *member = &type->members[i];
		struct field part = field_member(field, member);

		if (!field_fits(&part, walk->loc->len) || !is_shown(type, member))
			continue;
		if (!member->name && is_aggregate(&part) && member->type->kind == TYPE_STRUCT) {
			compare_members(walk, &part);
			continue;
		}
		len = extend_path(walk, ".%s", member->name ? member->name : "?");
		compare(walk, member->name ? member->name : "?", &part);
		reset_path(walk, len);
	}
}

static void compare_elements(struct walk *walk, const struct field *field)
{
	char key[24];
	uint64_t i;
	size_t len;

	for (i = 0; i < field->type->nr; i++) {
		struct field part = field_element(field, i);

		if (!field_fits(&part, walk->loc->len))
			break;
		snprintf(key, sizeof(key), "%" PRIu64, i);
		len = extend_path(walk, "[%s]", key);
		compare(walk, key, &part);
		reset_path(walk, len);
	}
}

/*
 * A text is shown as a whole in JSON, and if more than one character has changed. What is
 * behind its end is not shown with it.
 */
static bool is_text(const struct walk *walk, const struct field *field)
{
	const char *before = (const char *)walk->before, *after = (const char *)walk->after;
	unsigned int i, nr = 0;

	if (!field_is_string(field))
		return false;
	if (!before || !after || !walk->out)
		return true;
	before += field->offset;
	after += field->offset;
	for (i = 0; i < field->size; i++)
		nr += before[i] != after[i];
	return nr > 1 && strncmp(before, after, field->size);
}

static void compare_aggregate(struct walk *walk, const char *key, const struct field *field)
{
	if (key && !walk->out)
		json_object_begin(walk->json, key);
	if (field->type->kind == TYPE_STRUCT)
		compare_members(walk, field);
	else
		compare_elements(walk, field);
	if (key && !walk->out)
		json_element_end(walk->json);
}

static void compare(struct walk *walk, const char *key, const struct field *field)
{
	if (!is_aggregate(field) || is_text(walk, field))
		show_leaf(walk, key, field);
	else if (differs(walk, field))
		compare_aggregate(walk, key, field);
}

/* Bytes that belong to no member, such as those between two of them: "account+12" */
static void compare_rest(struct walk *walk)
{
	char key[12];
	unsigned int i;
	size_t len;

	if (!walk->before || !walk->after)
		return;
	for (i = 0; i < walk->loc->len; i++) {
		struct field byte = { .offset = i, .size = 1 };

		if (walk->members & 1U << i)
			continue;
		snprintf(key, sizeof(key), "+%u", i);
		len = extend_path(walk, "%s", key);
		show_leaf(walk, key, &byte);
		reset_path(walk, len);
	}
}

static void compare_object(struct walk *walk, const struct field *object)
{
	bool in_parentheses = strchr("*(", *walk->loc->text);
	char path[PATH_LEN];

	walk->path = path;
	extend_path(walk, "%s%s%s", in_parentheses ? "(" : "", walk->loc->text,
		    in_parentheses ? ")" : "");
	compare_aggregate(walk, NULL, object);
	compare_rest(walk);
}

void change_print(FILE *out, const struct value_format *format, const struct location *loc,
		  const uint8_t *before, const uint8_t *after)
{
	struct walk walk = {
		.format = format,
		.loc = loc,
		.before = before,
		.after = after,
		.out = out,
	};
	struct field object = change_object(loc);
	bool whole = !is_aggregate(&object) || is_text(&walk, &object);
	bool changed = differs(&walk, &object);

	if (!before && !after)
		fputc('?', out);
	else if (changed && !whole)
		compare_object(&walk, &object);
	else if (changed)
		print_both(&walk, &object);
	else if (whole || field_is_string(&object))
		value_print(out, format, &object, after);
	else
		fputs("unchanged", out);
}

/* @walk is a copy. @bytes: its bytes before or after, NULL if not known */
static void json_side(struct walk walk, const char *key, const uint8_t *bytes)
{
	struct field object = change_object(walk.loc);

	walk.bytes = bytes;
	if (!bytes) {
		json_string(walk.json, key, NULL);
	} else if (!is_aggregate(&object) || is_text(&walk, &object)) {
		value_json(walk.json, key, walk.format, &object, bytes);
	} else {
		json_object_begin(walk.json, key);
		compare_object(&walk, &object);
		json_element_end(walk.json);
	}
}

void change_json(struct json *json, const struct value_format *format,
		 const struct location *loc, const uint8_t *before, const uint8_t *after)
{
	const struct walk walk = {
		.format = format,
		.loc = loc,
		.before = before,
		.after = after,
		.json = json,
	};

	json_side(walk, "old", before);
	json_side(walk, "new", after);
}
