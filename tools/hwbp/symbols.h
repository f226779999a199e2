/* SPDX-License-Identifier: GPL-2.0 */
/* The program and its libraries: names to addresses and addresses to names. */
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

/* Learn all executable mappings of a living process from /proc. */
void symbols_read_maps(struct symbols *syms, pid_t pid);

/* The same for a process that may end any time; false, not death, if there are none. */
bool symbols_try_maps(struct symbols *syms, pid_t pid);

/* Learn one executable mapping; @path may be one that is no file. */
void symbols_map(struct symbols *syms, const char *path, uint64_t start, uint64_t len,
		 uint64_t pgoff);

/* Path of the program, for messages. */
const char *symbols_program(const struct symbols *syms);

/* How many libraries are known beside the program. */
unsigned int symbols_nr_libraries(const struct symbols *syms);

/**
 * struct symbol - one match of a name
 * @module: the program or library that has it
 * @file: base name of the source file of a local symbol, if the symbol table
 *	  tells it, else of the module
 * @name: as in the symbol table
 * @address: in the running program
 * @size: 0 if not known
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
	size_t room;
};

enum scope {
	SCOPE_PROGRAM,
	SCOPE_LIBRARIES,
};

/*
 * All symbols called @name that lie at different addresses; with @file, only
 * those that come from it (see struct symbol).
 */
void symbols_find(struct symbols *syms, enum scope scope, const char *file,
		  const char *name, struct symbol_list *list);

/* The first symbol that the compiler made of a static variable @name: "name.0". */
bool symbols_find_numbered(struct symbols *syms, const char *name, struct symbol *sym);

/**
 * struct place - an instruction, as text
 * @where: function+offset, then the inlined function and the library if any
 * @function: name of the function, NULL if not known
 * @source: file:line, empty if not known
 */
struct place {
	char *where;
	char *function;
	char *source;
};

/**
 * enum back - which instruction an address stands for
 * @BACK_NONE: the one at this address
 * @BACK_ONE: the one that ends there
 * @BACK_STRING: a string instruction at this address that is not through yet,
 *		 if there is one, else the one that ends there
 */
enum back {
	BACK_NONE,
	BACK_ONE,
	BACK_STRING,
};

/* Name an instruction.  Kernel addresses are the business of kallsyms.h. */
void symbols_place(struct symbols *syms, uint64_t ip, enum back back, struct place *place);

/*
 * Name what lies at an address: "variable+0x8 [library]", NULL if it is in no
 * file; to be freed.
 */
char *symbols_name(struct symbols *syms, uint64_t address);

/* The libdwfl handle, for the unwinder; another one after a library is unmapped. */
Dwfl *symbols_dwfl(struct symbols *syms);

#endif
