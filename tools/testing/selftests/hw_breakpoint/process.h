/* SPDX-License-Identifier: GPL-2.0 */
/*
 * attr.config bit 1: an event of a whole process.
 *
 * The rule: from the return of open on, each access by any thread of the process is a
 * hit, whether the thread existed before or came later, and no access by another
 * process is, until the last thread has exited. One event, one file descriptor.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <linux/sched.h>

#include "bp_test.h"

static inline struct perf_event_attr process_attr(const void *addr)
{
	struct perf_event_attr attr = bp_attr_w(addr, 1);

	attr.config = BP_PROCESS;
	return attr;
}

/* A thread with a small stack. */
static inline int start_thread(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	err = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return err;
}

/*
 * Workers that store on command, to two words; a command is the number of
 * stores. Of several watchpoints for one address the emulator reports one alone, so
 * each event has an address of its own.
 */
#define SECOND			8

static inline long store_times(int cmd, void *arg)
{
	bp_store_times(arg, 1, cmd);
	bp_store_times((char *)arg + SECOND, 1, cmd);
	return cmd;
}

#ifdef PROCESS_FIXTURE

/* A fixture whose tests open an event of this process */
FIXTURE(process)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int fd;
};

FIXTURE_SETUP(process)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = process_attr(self->mem);
	self->cpus = bp_online_cpus();
	self->fd = -1;
}

FIXTURE_TEARDOWN(process)
{
	bp_teardown(_metadata);
}

#endif

#endif /* PROCESS_H */
