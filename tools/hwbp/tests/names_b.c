// SPDX-License-Identifier: GPL-2.0
/* The other source file of names_c */
#include "names.h"

static long twice = 2;
struct opaque { int before; int member; } object;
struct opaque *const hidden_object = &object;
extern struct opaque *opaque;

void rows_of_b(void);

void rows_of_b(void)
{
	twice++;
	ROW_AS("names_b.c:twice", twice, "'names_b.c'::twice");
	ROW(opaque->member);
}
