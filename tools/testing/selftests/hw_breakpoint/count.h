/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counting with PERF_TYPE_BREAKPOINT.
 *
 * The rule: the count is the number of instructions that accessed a byte of the range,
 * with the requested type of access, by the requested tasks, on the requested CPUs and
 * in the requested modes; not one more and not one less.
 */
#ifndef COUNT_H
#define COUNT_H

#include "bp_test.h"

#define MANY	100

FIXTURE(count)
{
	char *mem;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(count)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(count)
{
	bp_teardown(_metadata);
}

#endif /* COUNT_H */
