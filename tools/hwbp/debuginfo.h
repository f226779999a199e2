/* SPDX-License-Identifier: GPL-2.0 */
/* Find variables and types in the debug information of one file. */
#ifndef HWBP_DEBUGINFO_H
#define HWBP_DEBUGINFO_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

#include "name.h"
#include "type.h"

/**
 * struct unit - a compilation unit, for debuginfo_next_unit()
 * @die: the DIE of the unit; that of the .dwo file if the unit is split
 * @bias: difference between addresses in memory and in the debug information
 * @split: the unit is that of a .dwo file
 * @cu: the unit as libdwfl finds it
 */
struct unit {
	Dwarf_Die die;
	Dwarf_Addr bias;
	bool split;
	Dwarf_Die *cu;
};

/* Step to the next unit of a module; @unit is all zeros for the first. */
bool debuginfo_next_unit(Dwfl_Module *mod, struct unit *unit);

/* The unit that @cu is the skeleton of, else @cu; in *@die */
void debuginfo_full_unit(Dwarf_Die *cu, Dwarf_Die *die);

/* Why that of a split unit of the file @path is missing, NULL if none is; to be freed */
char *debuginfo_missing(Dwfl_Module *mod, const char *path);

/**
 * struct variable - a variable with a fixed address
 * @die: its DIE
 * @name: its qualified name
 * @file: path of the source file
 * @address: address in the running program, or offset in the thread-local storage
 * @tls: the variable is thread-local
 */
struct variable {
	Dwarf_Die die;
	struct name name;
	const char *file;
	uint64_t address;
	bool tls;
};

typedef void (*variable_func)(void *arg, const struct variable *var);

/*
 * Call @func for each variable of @mod whose last component is that of @wanted, or for
 * each if @wanted is NULL.
 */
void debuginfo_variables(Dwfl_Module *mod, const struct name *wanted, variable_func func,
			 void *arg);

/* The type of the variable at @address, NULL if not known. See struct variable for @tls. */
struct type *debuginfo_type_at(Dwfl_Module *mod, uint64_t address, bool tls);

/* Find a type that is defined in @mod, such as "account", "ns::Cart" or "unsigned int". */
struct type *debuginfo_type(Dwfl_Module *mod, const char *name);

/* A type of C, such as "unsigned int", where no file defines one. @long_size: that of long */
struct type *debuginfo_builtin(const char *name, uint64_t long_size);

#endif
