// SPDX-License-Identifier: GPL-2.0
/* Names that compilers of C++ and Rust have mangled, with libiberty as in gdb and perf. */
#include <stddef.h>
#include <string.h>

#include "demangle.h"

#ifdef HAVE_LIBIBERTY

#include <libiberty/demangle.h>

char *demangle(const char *name)
{
	char *text, *clone;

	if (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2))
		return NULL;
	text = cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP);
	/* The optimizer's suffix, such as ".constprop.0" */
	clone = text ? strstr(text, " [clone ") : NULL;
	if (clone)
		*clone = '\0';
	return text;
}

#else

char *demangle(const char *name)
{
	(void)name;
	return NULL;
}

#endif
