// SPDX-License-Identifier: GPL-2.0
/*
 * hold CLAIM...: open a breakpoint on the variable "held" for each CLAIM, print
 * "ready", and keep them open until end of file on standard input. A CLAIM is
 * "guaranteed" or "flexible", followed by ":task", ":process", ":thread" (a second
 * thread), any of these with "@CPU", or ":cpu@CPU".
 */
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLEXIBLE	1
#define PROCESS		2

long held;

static pthread_barrier_t barrier;
static pid_t second_thread;

static void *run(void *arg)
{
	(void)arg;
	second_thread = gettid();
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return NULL;
}

static void start_second_thread(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_barrier_wait(&barrier);
}

static pid_t target(const char *where)
{
	if (!strncmp(where, ":cpu", 4))
		return -1;
	if (strncmp(where, ":thread", 7))
		return 0;
	if (!second_thread)
		start_second_thread();
	return second_thread;
}

static unsigned long config(const char *claim, const char *where)
{
	return (claim[0] == 'f' ? FLEXIBLE : 0) | (where[1] == 'p' ? PROCESS : 0);
}

static void hold(const char *claim)
{
	const char *where = strchr(claim, ':'), *cpu = strchr(claim, '@');
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (unsigned long)&held,
		.bp_len = sizeof(held),
	};

	if (!where) {
		fprintf(stderr, "%s: not a claim\n", claim);
		exit(1);
	}
	attr.config = config(claim, where);
	if (syscall(SYS_perf_event_open, &attr, target(where), cpu ? atoi(cpu + 1) : -1, -1,
		    0) < 0) {
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
