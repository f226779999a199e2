/* SPDX-License-Identifier: GPL-2.0 */
/* Qualified names: "shop::Cart::total", "(anonymous namespace)::hidden", "function::variable". */
#ifndef HWBP_NAME_H
#define HWBP_NAME_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct name - a qualified name
 * @parts: its components, the outermost first
 * @nr: number of @parts
 * @capacity: capacity of @parts
 */
struct name {
	struct name_part {
		char *text;
		bool implied;
	} *parts;
	size_t nr;
	size_t capacity;
};

/**
 * enum match - how much of a qualified name was given
 * @MATCH_NONE: another name
 * @MATCH_PARTIAL: the last components
 * @MATCH_FULL: all components, save those that the language implies: unnamed and inline
 *		namespaces
 */
enum match {
	MATCH_NONE,
	MATCH_PARTIAL,
	MATCH_FULL,
};

/* Split @text, which is in the syntax of C++ and Rust. */
void name_parse(struct name *name, const char *text);
void name_free(struct name *name);

/* Add a component in front; one that is @implied need not be given. */
void name_prepend(struct name *name, const char *text, bool implied);

/* The whole name; to be freed */
char *name_text(const struct name *name);

/* The last component */
const char *name_last(const struct name *name);

enum match name_match(const struct name *wanted, const struct name *name);

/* Returns true if @text may be the last component of the name that is @wanted. */
bool name_last_matches(const struct name *wanted, const char *text);

/* Length of @text up to the first of the characters @stop that is not in brackets */
size_t name_span(const char *text, const char *stop);

#endif
