/* SPDX-License-Identifier: GPL-2.0 */
/* Names that compilers have mangled. */
#ifndef HWBP_DEMANGLE_H
#define HWBP_DEMANGLE_H

/*
 * The name as the source has it, such as "shop::Cart::add(int)" for "_ZN4shop4Cart3addEi";
 * NULL if @name is not mangled, or hwbp was built without libiberty; to be freed.
 */
char *demangle(const char *name);

#endif
