/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rows of the test of names: an expression, the address and the size of its object, as the
 * compiler knows them. A further column is the thread of a thread-local variable, or the
 * expression of gdb if that is another one.
 */
#ifndef HWBP_TESTS_NAMES_H
#define HWBP_TESTS_NAMES_H

#include <stdio.h>
#include <unistd.h>

/* PLACE of the object @object, called GDB in gdb */
#define ROW_AS(place, object, gdb) \
	printf("%s\t%#lx\t%zu\t\t%s\n", place, (unsigned long)&(object), sizeof(object), gdb)
#define ROW(object)		ROW_AS(#object, object, #object)
/* An object of the thread that calls this */
#define ROW_TLS(object) \
	printf("%s\t%#lx\t%zu\t%ld\t%s\n", #object, (unsigned long)&(object), sizeof(object), \
	       (long)gettid(), #object)
/* A function; -x */
#define ROW_FUNCTION(place, function, gdb) \
	printf("%s\t%#lx\tx\t\t%s\n", place, (unsigned long)(function), gdb)
/* A bit-field whose bits are in @len bytes @offset bytes behind the start of @object */
#define ROW_BITS(field, object, offset, len) \
	printf("%s\t%#lx\t%d\t\t\n", #field, (unsigned long)&(object) + (offset), len)

/* The rows are complete: stay until standard input ends. */
static inline void rows_end(void)
{
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

#endif
