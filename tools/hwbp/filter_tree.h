/* SPDX-License-Identifier: GPL-2.0 */
/* The tree of an expression of --if, which the parser builds and filter.c evaluates. */
#ifndef HWBP_FILTER_TREE_H
#define HWBP_FILTER_TREE_H

#include "location.h"
#include "util.h"

struct node;

/**
 * struct filter_parser - an expression that is being parsed
 * @loc: place whose values it is about
 * @column: column of the next word, the first is 1
 * @root: the result
 */
struct filter_parser {
	const struct location *loc;
	unsigned int column;
	struct node *root;
};

/*
 * Nodes of constants and of names: "old" or "new" with the members behind it, and others,
 * which are enumerators. @column is where they are in the expression, for messages.
 */
struct node *node_integer(const char *text, unsigned int column);
struct node *node_float(const char *text);
struct node *node_char(const char *text, unsigned int column);
struct node *node_object(const struct filter_parser *parser, const char *text,
			 unsigned int column);
struct node *node_name(const struct filter_parser *parser, const char *text,
		       unsigned int column);

/* Nodes of operators, which are tokens of the parser. @b is NULL if there is one operand. */
struct node *node_operator(int op, unsigned int column, struct node *a, struct node *b);

/* Exit with a message about the expression. */
void filter_die(unsigned int column, const char *fmt, ...)
	__attribute__((noreturn)) PRINTF(2, 3);

#endif
