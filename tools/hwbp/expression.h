/* SPDX-License-Identifier: GPL-2.0 */
/* Evaluate the expression of a PLACE: "a.b[1]", "head->next->n", "(struct s *)0x7f00". */
#ifndef HWBP_EXPRESSION_H
#define HWBP_EXPRESSION_H

#include "symbols.h"
#include "type.h"

/**
 * struct value - an object, or a number such as the value of a pointer
 * @number: it is a number, else an object
 * @address: address of the object, or the number
 * @size: size of the object, 0 if not known
 * @type: its type, NULL if not known
 * @bit_offset: first bit of a bit-field, in the byte at @address
 * @bit_size: number of bits of a bit-field, 0 for other objects
 * @symbol: the object has the name of this symbol, and nothing else; NULL for others
 */
struct value {
	bool number;
	uint64_t address;
	uint64_t size;
	struct type *type;
	unsigned int bit_offset;
	unsigned int bit_size;
	const struct symbol *symbol;
};

/**
 * struct expression - an expression, and the object that it names
 * @text: the expression
 * @file: source file or library of the variable in it, NULL for any
 * @syms: symbols of the process
 * @ready: the libraries are loaded and the pointers of the program are relocated
 * @tid: thread whose thread-local variables are meant, 0 for none
 * @execute: the object is a function or an instruction
 * @value: the object
 * @unknown: name that was not found
 */
struct expression {
	const char *text;
	const char *file;
	struct symbols *syms;
	bool ready;
	pid_t tid;
	bool execute;
	struct value value;
	char *unknown;
};

/*
 * Find the object of an expression whose first fields are filled in. Returns false if a
 * name is not known, or not before @ready. Exits with a one-line message on an error.
 * Pointers are followed once, now.
 */
bool expression_evaluate(struct expression *expr);

#endif
