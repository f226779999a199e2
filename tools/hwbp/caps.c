// SPDX-License-Identifier: GPL-2.0
/*
 * Features of the kernel's breakpoint PMU, from sysfs.  Kernels without flexible
 * breakpoints have neither format/ nor caps/.
 */
#include <stdio.h>
#include <stdlib.h>

#include "caps.h"
#include "util.h"

#define PMU		"/sys/bus/event_source/devices/breakpoint"
#define X86_REGISTERS	4

static char *read_attribute(const char *dir, const char *name)
{
	char *path = xasprintf(PMU "/%s/%s", dir, name), *line = read_line_of(path);

	free(path);
	return line;
}

uint64_t caps_config_bit(const char *name)
{
	char *line = read_attribute("format", name);
	unsigned int bit;
	bool found;

	found = line && sscanf(line, "config:%u", &bit) == 1 && bit < 64;
	free(line);
	return found ? 1ULL << bit : 0;
}

unsigned int caps_registers(bool execute)
{
	char *line = read_attribute("caps", execute ? "instruction_slots" : "data_slots");
	unsigned int nr = 0;

	if (line)
		nr = strtoul(line, NULL, 10);
	free(line);
	return nr ? nr : X86_REGISTERS;
}

void caps_note_unverified(void)
{
	char *line = read_attribute("caps", "verified");

	if (line && *line == '0')
		note("this machine accepts breakpoints but does not report their hits (%s)",
		     PMU "/caps/verified is 0");
	free(line);
}
