/* SPDX-License-Identifier: GPL-2.0 */
/* Symbols and source lines of the program and its libraries. */
#ifndef HWBP_SYMBOLS_H
#define HWBP_SYMBOLS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols;

struct symbols *symbols_new(void);
void symbols_free(struct symbols *syms);

/*
 * Add all executable mappings of a process from /proc. Exits on failure. Waits about ten
 * seconds for a process that is in exec() and has not mapped its program yet.
 */
void symbols_read_maps(struct symbols *syms, pid_t pid);

/* The same for a process that may exit at any time. Returns false on failure. */
bool symbols_try_maps(struct symbols *syms, pid_t pid);

/* Add an executable mapping. A @path that is not a file ("[vdso]") is ignored. */
void symbols_map(struct symbols *syms, const char *path, uint64_t start, uint64_t len,
		 uint64_t pgoff);

/* Path of the program, for messages */
const char *symbols_program(const struct symbols *syms);

/* Number of libraries that are mapped besides the program */
unsigned int symbols_nr_libraries(const struct symbols *syms);

/**
 * struct symbol - a symbol that was found
 * @module: program or library that defines the symbol
 * @file: base name of the source file of a local symbol, if the symbol table has
 *	  it, else of the module
 * @name: name in the symbol table
 * @address: address in the running program
 * @size: size in bytes, 0 if not known
 * @type: STT_*
 */
struct symbol {
	Dwfl_Module *module;
	char *file;
	char *name;
	uint64_t address;
	uint64_t size;
	unsigned int type;
};

struct symbol_list {
	struct symbol *entries;
	size_t nr;
	size_t capacity;
};

enum scope {
	SCOPE_PROGRAM,
	SCOPE_LIBRARIES,
};

/*
 * Find all symbols called @name, one per address. With @file, only symbols with that
 * source file or module (see struct symbol) are found.
 */
void symbols_find(struct symbols *syms, enum scope scope, const char *file,
		  const char *name, struct symbol_list *list);

/* Find the symbol of a static variable in a function, which compilers name "name.0". */
bool symbols_find_numbered(struct symbols *syms, const char *name, struct symbol *sym);

/**
 * struct place - text that describes an instruction
 * @where: function+offset, then the inlined function and the library, if any
 * @function: name of the function, NULL if not known
 * @source: file:line, empty if not known
 */
struct place {
	char *where;
	char *function;
	char *source;
};

/**
 * enum back - the instruction that a reported address stands for
 * @BACK_NONE: the instruction at the address
 * @BACK_ONE: the instruction that ends at the address
 * @BACK_STRING: a repeated string instruction at the address, if there is one, else
 *		 the instruction that ends there
 */
enum back {
	BACK_NONE,
	BACK_ONE,
	BACK_STRING,
};

/* Describe an instruction in user space. See kallsyms_place() for the kernel. */
void symbols_place(struct symbols *syms, uint64_t ip, enum back back, struct place *place);

/*
 * Symbol at an address: "variable+0x8 [library]", NULL if no file is mapped there; to
 * be freed.
 */
char *symbols_name(struct symbols *syms, uint64_t address);

/* The libdwfl handle, for the unwinder. It changes when a library is unmapped. */
Dwfl *symbols_dwfl(struct symbols *syms);

#endif
