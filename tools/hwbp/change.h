/* SPDX-License-Identifier: GPL-2.0 */
/* What an access changed in an object. */
#ifndef HWBP_CHANGE_H
#define HWBP_CHANGE_H

#include "location.h"
#include "value.h"

/*
 * Print what is different in @loc after an access: "3 -> 4", or of a structure or array
 * "account.posted 3 -> 4" for each member that changed. One value means that it is the
 * same as before. @before and @after are the bytes of the object, NULL if not known.
 */
void change_print(FILE *out, const struct value_format *format, const struct location *loc,
		  const uint8_t *before, const uint8_t *after);

/* The members "old" and "new": values, or objects that have the members that changed */
void change_json(struct json *json, const struct value_format *format,
		 const struct location *loc, const uint8_t *before, const uint8_t *after);

/* The whole object as a field of itself */
struct field change_object(const struct location *loc);

/* A member of a field, or element @i of an array */
struct field field_member(const struct field *field, const struct type_member *member);
struct field field_element(const struct field *field, uint64_t i);

#endif
