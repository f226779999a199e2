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
struct type;

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

/* Read memory of the process. Returns false if that is not possible. */
bool symbols_read(const struct symbols *syms, uint64_t address, void *buf, size_t len);

/* Path of the program, for messages */
const char *symbols_program(const struct symbols *syms);

/* Number of files that are mapped, the program included */
size_t symbols_nr(const struct symbols *syms);

/* File number @i, NULL if libdwfl cannot read it. The program is number 0 if it is mapped. */
Dwfl_Module *symbols_module(struct symbols *syms, size_t i);
const char *symbols_path(Dwfl_Module *mod);
bool symbols_in_program(const struct symbols *syms, Dwfl_Module *mod);

/**
 * struct symbol - a variable or function that was found
 * @module: program or library that defines it
 * @file: base name of the source file if it is known, else of the module
 * @name: name, as a place may give it
 * @mangled: name of the symbol if it was found as one, else NULL
 * @address: address in the running program; of a thread-local variable its offset in the
 *	     storage of the module
 * @size: size in bytes, 0 if not known
 * @type: STT_*
 * @c_type: type in the debug information, NULL if not known
 */
struct symbol {
	Dwfl_Module *module;
	char *file;
	char *name;
	const char *mangled;
	uint64_t address;
	uint64_t size;
	unsigned int type;
	struct type *c_type;
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

/**
 * enum how - how a name is looked up
 * @HOW_EXACT: the name of a symbol, save a version or the suffix of a static variable that
 *	       LTO made global
 * @HOW_FULL: the qualified name in the source
 * @HOW_PARTIAL: its last components; or the name of a symbol without the optimizer's suffix
 */
enum how {
	HOW_EXACT,
	HOW_FULL,
	HOW_PARTIAL,
};

/*
 * Find what is called @name, one symbol per address. With @file, only symbols with that
 * source file or module (see struct symbol) are found.
 */
void symbols_find(struct symbols *syms, enum scope scope, enum how how, const char *file,
		  const char *name, struct symbol_list *list);

/* The names that are most like @name: "'counter' or 'count'"; NULL if none is; to be freed */
char *symbols_similar(struct symbols *syms, const char *name);
/* The same of the members of a structure */
char *symbols_similar_members(const struct type *type, const char *name);

/* Fill in the type of a variable that was found in a symbol table. */
void symbols_find_type(struct symbol *sym);

/**
 * struct place - text that describes an instruction
 * @where: function+offset, then the inlined function and the library, if any
 * @function: name of the function, demangled, NULL if not known
 * @mangled: its name in the symbol table, NULL if it is not mangled
 * @source: file:line, empty if not known
 */
struct place {
	char *where;
	char *function;
	char *mangled;
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
