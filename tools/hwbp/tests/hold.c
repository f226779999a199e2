// SPDX-License-Identifier: GPL-2.0
/*
 * hold CLAIM...: open a breakpoint on the variable "held" for each CLAIM, print
 * "ready", and keep them open until end of file on standard input. A CLAIM is
 * "guaranteed" or "flexible", followed by ":task", ":task@CPU" or ":cpu@CPU".
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLEXIBLE	1

long held;

static void hold(const char *claim)
{
	const char *where = strchr(claim, ':'), *cpu = strchr(claim, '@');
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.config = claim[0] == 'f' ? FLEXIBLE : 0,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (unsigned long)&held,
		.bp_len = sizeof(held),
	};

	if (!where || syscall(SYS_perf_event_open, &attr, where[1] == 't' ? 0 : -1,
			      cpu ? atoi(cpu + 1) : -1, -1, 0) < 0) {
		perror(claim);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		hold(argv[i]);
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
