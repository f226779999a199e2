// SPDX-License-Identifier: GPL-2.0
/*
 * The expression of --if.
 *
 * Integers are exact up to 127 bits: an unsigned one does not wrap, so that "new - old < 0"
 * is true if the value has become less. An operation with an unknown operand, a division by
 * zero and a shift by a negative or too large number have an unknown result; "&&" and "||" do
 * not if the other operand decides.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "filter.h"
#include "filter_tree.h"
#include "util.h"
#include "value.h"

#include "filter-bison.h"
#include "filter-flex.h"

/* Bits of an integer while it is evaluated */
#define INTEGER_BITS	127

enum node_kind {
	NODE_CONSTANT,
	NODE_OLD,
	NODE_NEW,
	NODE_OPERATOR,
};

/**
 * struct node - a part of an expression
 * @kind: what it is
 * @is_float: its value is a floating point number
 * @constant: value of a constant
 * @field: part of the object before or after the access
 * @op: operator, a token of the parser
 * @a: first operand
 * @b: second operand, NULL if there is none
 */
struct node {
	enum node_kind kind;
	bool is_float;
	struct number constant;
	struct field field;
	int op;
	struct node *a;
	struct node *b;
};

struct filter {
	const struct node *root;
};

/* The value of a node */
struct result {
	bool known;
	struct number n;
};

void filter_die(unsigned int column, const char *fmt, ...)
{
	char *message;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&message, fmt, ap) < 0)
		message = xstrdup("invalid");
	va_end(ap);
	die("invalid argument of --if: column %u: %s", column, message);
}

/* ---- constants ---- */

static struct node *constant(__int128 i)
{
	struct node *node = xzalloc(sizeof(*node));

	node->constant.i = i;
	return node;
}

struct node *node_integer(const char *text, unsigned int column)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || (*end && !strchr("uUlL", *end)))
		filter_die(column, "invalid number '%s'", text);
	return constant(n);
}

struct node *node_float(const char *text)
{
	struct node *node = constant(0);

	node->is_float = true;
	node->constant.is_float = true;
	node->constant.f = strtod(text, NULL);
	return node;
}

struct node *node_char(const char *text, unsigned int column)
{
	static const char letters[] = "ntr0\\'\"", values[] = "\n\t\r\0\\'\"";
	const char *letter;

	if (text[1] != '\\')
		return constant(text[1]);
	letter = strchr(letters, text[2]);
	if (!letter)
		filter_die(column, "unknown character %s", text);
	return constant(values[letter - letters]);
}

/* ---- names ---- */

/* The last part of the name of a type: "Colour" of "ns::Colour" and of "enum Colour" */
static const char *last_part(const char *name, size_t len)
{
	const char *p = name + len;

	while (p > name && p[-1] != ':' && p[-1] != ' ')
		p--;
	return p;
}

/* Returns true if @name, "ns::Colour::RED" or "RED", means the enumerator RED of Colour. */
static bool is_enumerator(const struct type *type, const char *enumerator, const char *name)
{
	size_t len = strlen(name), tail = strlen(enumerator);
	const char *scope, *of_type;

	if (len < tail || strcmp(name + len - tail, enumerator))
		return false;
	if (len == tail)
		return true;
	if (len < tail + 2)
		return false;
	len -= tail + 2;
	scope = last_part(name, len);
	of_type = last_part(type->name, strlen(type->name));
	return !strncmp(name + len, "::", 2) && strlen(of_type) == len - (scope - name) &&
	       !strncmp(scope, of_type, strlen(of_type));
}

/* Find an enumerator of any enumeration in an object of @type. */
static bool find_enumerator(const struct type *type, const char *name, unsigned int column,
			    int64_t *value)
{
	bool found = false;
	int64_t other;
	size_t i;

	if (!type)
		return false;
	for (i = 0; i < type->nr_enumerators && !found; i++) {
		found = is_enumerator(type, type->enumerators[i].name, name);
		*value = type->enumerators[i].value;
	}
	if (type->kind == TYPE_ARRAY)
		return find_enumerator(type->element, name, column, value);
	for (i = 0; i < type->nr_members; i++) {
		if (!find_enumerator(type->members[i].type, name, column, &other))
			continue;
		if (found && *value != other)
			filter_die(column, "'%s' is ambiguous: name its type, too, as in TYPE::%s",
				   name, name);
		*value = other;
		found = true;
	}
	return found;
}

struct node *node_name(const struct filter_parser *parser, const char *text, unsigned int column)
{
	int64_t value;

	if (find_enumerator(parser->loc->type, text, column, &value))
		return constant(value);
	if (!strcmp(text, "true") || !strcmp(text, "false"))
		return constant(*text == 't');
	filter_die(column, "unknown name '%s': use old, new, their members, or an enumerator%s%s",
		   text, parser->loc->type ? " in " : "",
		   parser->loc->type ? parser->loc->type->name : "");
}

/* Step to the member after '.', or to the element in brackets. Returns what follows. */
static const char *enter(struct field *field, const char *text, unsigned int column)
{
	const struct type *type = field->type;
	size_t len = strcspn(text + 1, ".[]");
	bool in_tuple = *text == '.' && isdigit((unsigned char)text[1]);
	char *name = xasprintf("%s%.*s", in_tuple ? "__" : "", (int)len, text + 1);
	const struct type_member *member;
	uint64_t offset, i;

	if (!type)
		filter_die(column, "the place has no type with members");
	if (*text == '[') {
		i = strtoull(name, NULL, 10);
		if (type->kind != TYPE_ARRAY || i >= type->nr)
			filter_die(column, "no element %s in %s", name, type->name);
		*field = field_element(field, i);
		free(name);
		return text + len + 2;
	}
	member = type_member(type, name, &offset);
	if (!member)
		filter_die(column, "no member '%s' in %s", name, type->name);
	*field = (struct field){
		.type = member->type,
		.offset = field->offset + offset,
		.size = member->type->size,
		.bit_offset = member->bit_offset,
		.bit_size = member->bit_size,
	};
	free(name);
	return text + len + 1;
}

static void check_number(const struct field *field, unsigned int len, const char *text,
			 unsigned int column)
{
	const struct type *type = field->type;

	if (!field_is_number(field) || !field_fits(field, len))
		filter_die(column, "'%s' is not a number: it is %s%s", text,
			   type ? type->name : "a range of bytes",
			   type && type->nr_members ? "; name a member" : "");
}

struct node *node_object(const struct filter_parser *parser, const char *text,
			 unsigned int column)
{
	struct node *node = xzalloc(sizeof(*node));
	const char *p = text + strlen("old");

	node->kind = *text == 'o' ? NODE_OLD : NODE_NEW;
	node->field = change_object(parser->loc);
	while (*p)
		p = enter(&node->field, p, column + (p - text));
	check_number(&node->field, parser->loc->len, text, column);
	node->is_float = node->field.type && node->field.type->kind == TYPE_FLOAT;
	return node;
}

/* ---- operators ---- */

static bool is_comparison(int op)
{
	return op == EQ || op == NE || op == '<' || op == '>' || op == LE || op == GE;
}

static bool is_logic(int op)
{
	return op == AND || op == OR || op == '!';
}

static bool is_arithmetic(int op)
{
	return op == '+' || op == '-' || op == '*' || op == '/';
}

struct node *node_operator(int op, unsigned int column, struct node *a, struct node *b)
{
	struct node *node = xzalloc(sizeof(*node));
	bool is_float = a->is_float || (b && b->is_float);

	if (is_float && !is_comparison(op) && !is_logic(op) && !is_arithmetic(op))
		filter_die(column, "this operator requires integers");
	node->kind = NODE_OPERATOR;
	node->is_float = is_float && is_arithmetic(op);
	node->op = op;
	node->a = a;
	node->b = b;
	return node;
}

static double as_float(const struct number *n)
{
	return n->is_float ? n->f : (double)n->i;
}

static struct result integer(__int128 i)
{
	return (struct result){ .known = true, .n.i = i };
}

static struct result compare(int op, int order)
{
	switch (op) {
	case EQ:
		return integer(order == 0);
	case NE:
		return integer(order != 0);
	case '<':
		return integer(order < 0);
	case '>':
		return integer(order > 0);
	case LE:
		return integer(order <= 0);
	default:
		return integer(order >= 0);
	}
}

static struct result calculate_float(int op, double a, double b)
{
	struct result result = { .known = true, .n.is_float = true };

	/* Nothing but itself is equal to what is not a number, and nothing is less or greater. */
	if (is_comparison(op) && __builtin_isunordered(a, b))
		return integer(op == NE);
	if (is_comparison(op))
		return compare(op, a < b ? -1 : a > b);
	switch (op) {
	case '+':
		result.n.f = a + b;
		break;
	case '-':
		result.n.f = a - b;
		break;
	case '*':
		result.n.f = a * b;
		break;
	default:
		result.known = b != 0;
		result.n.f = result.known ? a / b : 0;
	}
	return result;
}

static struct result calculate_integer(int op, __int128 a, __int128 b)
{
	unsigned __int128 ua = a, ub = b;

	if (is_comparison(op))
		return compare(op, a < b ? -1 : a > b);
	switch (op) {
	case '+':
		return integer(ua + ub);
	case '-':
		return integer(ua - ub);
	case '*':
		return integer(ua * ub);
	case '/':
		return b ? integer(a / b) : (struct result){ 0 };
	case '%':
		return b ? integer(a % b) : (struct result){ 0 };
	case '&':
		return integer(ua & ub);
	case '|':
		return integer(ua | ub);
	case '^':
		return integer(ua ^ ub);
	}
	if (b < 0 || b >= INTEGER_BITS)
		return (struct result){ 0 };
	return integer(op == SHL ? (__int128)(ua << b) : a >> b);
}

/* ---- evaluation ---- */

static struct result evaluate(const struct node *node, const uint8_t *before,
			      const uint8_t *after);

static bool is_true(const struct result *result)
{
	return result->n.is_float ? result->n.f != 0 : result->n.i != 0;
}

static struct result evaluate_logic(const struct node *node, const uint8_t *before,
				    const uint8_t *after)
{
	bool decides = node->op == OR;
	struct result a = evaluate(node->a, before, after), b;

	if (a.known && is_true(&a) == decides)
		return integer(decides);
	b = evaluate(node->b, before, after);
	if (b.known && is_true(&b) == decides)
		return integer(decides);
	return a.known && b.known ? integer(!decides) : (struct result){ 0 };
}

static struct result evaluate_unary(const struct node *node, const uint8_t *before,
				    const uint8_t *after)
{
	struct result a = evaluate(node->a, before, after);

	if (!a.known)
		return a;
	if (node->op == '!')
		return integer(!is_true(&a));
	if (node->op == '~')
		return integer(~a.n.i);
	a.n.f = -a.n.f;
	a.n.i = -(unsigned __int128)a.n.i;
	return a;
}

static struct result evaluate_operator(const struct node *node, const uint8_t *before,
				       const uint8_t *after)
{
	struct result a, b;

	if (!node->b)
		return evaluate_unary(node, before, after);
	if (is_logic(node->op))
		return evaluate_logic(node, before, after);
	a = evaluate(node->a, before, after);
	b = evaluate(node->b, before, after);
	if (!a.known || !b.known)
		return (struct result){ 0 };
	if (a.n.is_float || b.n.is_float)
		return calculate_float(node->op, as_float(&a.n), as_float(&b.n));
	return calculate_integer(node->op, a.n.i, b.n.i);
}

static struct result evaluate(const struct node *node, const uint8_t *before, const uint8_t *after)
{
	const uint8_t *bytes = node->kind == NODE_OLD ? before : after;

	if (node->kind == NODE_OPERATOR)
		return evaluate_operator(node, before, after);
	if (node->kind == NODE_CONSTANT)
		return (struct result){ .known = true, .n = node->constant };
	if (!bytes)
		return (struct result){ 0 };
	return (struct result){ .known = true, .n = field_number(&node->field, bytes) };
}

struct filter *filter_parse(const char *text, const struct location *loc)
{
	struct filter_parser parser = { .loc = loc, .column = 1 };
	struct filter *filter = xzalloc(sizeof(*filter));
	yyscan_t scanner;

	if (filter_yylex_init_extra(&parser, &scanner))
		die("out of memory");
	filter_yy_scan_string(text, scanner);
	filter_yyparse(&parser, scanner);
	filter_yylex_destroy(scanner);
	filter->root = parser.root;
	return filter;
}

bool filter_accepts(const struct filter *filter, const uint8_t *before, const uint8_t *after)
{
	struct result result = evaluate(filter->root, before, after);

	return !result.known || is_true(&result);
}
