// SPDX-License-Identifier: GPL-2.0
/*
 * Features of the kernel's PMUs, from sysfs.  The breakpoint PMU of a kernel without
 * flexible breakpoints has neither format/ nor caps/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "util.h"

#define PMUS		"/sys/bus/event_source/devices"
#define PMU		PMUS "/breakpoint"
#define KERNEL_TEXT	PMUS "/kernel_text"
#define X86_REGISTERS	4

static char *read_attribute(const char *dir, const char *name)
{
	char *path = xasprintf(PMU "/%s/%s", dir, name), *line = read_line_of(path);

	free(path);
	return line;
}

/* Takes the line of a file in format/, NULL if there is none. */
static uint64_t parse_config_bit(char *line)
{
	unsigned int bit;
	bool found;

	found = line && sscanf(line, "config:%u", &bit) == 1 && bit < 64;
	free(line);
	return found ? 1ULL << bit : 0;
}

uint64_t caps_config_bit(const char *name)
{
	return parse_config_bit(read_attribute("format", name));
}

bool caps_text_areas(uint32_t *type, uint64_t *config)
{
	char *line = read_line_of(KERNEL_TEXT "/type");

	*type = line ? strtoul(line, NULL, 10) : 0;
	free(line);
	*config = parse_config_bit(read_line_of(KERNEL_TEXT "/format/area"));
	return *type && *config;
}

/* The number in a file of caps/, 0 if there is none */
static unsigned int read_number(const char *name)
{
	char *line = read_attribute("caps", name);
	unsigned int nr = line ? strtoul(line, NULL, 10) : 0;

	free(line);
	return nr;
}

unsigned int caps_registers(bool execute)
{
	unsigned int nr = read_number(execute ? "instruction_slots" : "data_slots");

	return nr ? nr : X86_REGISTERS;
}

unsigned int caps_max_length(void)
{
	return read_number("max_length");
}

void caps_note_unverified(void)
{
	char *line = read_attribute("caps", "verified");

	if (line && *line == '0')
		note("this machine accepts breakpoints but does not report their hits (%s)",
		     PMU "/caps/verified is 0");
	free(line);
}
