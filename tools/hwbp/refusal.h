/* SPDX-License-Identifier: GPL-2.0 */
/* Explain what the kernel has refused, from what the machine says. */
#ifndef HWBP_REFUSAL_H
#define HWBP_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum refused {
	/* An event that watches a place */
	REFUSED_WATCH	= 1 << 0,
	/* An event that records changes of kernel text */
	REFUSED_TEXT	= 1 << 1,
	/* A ring buffer of hwbp itself */
	REFUSED_RING	= 1 << 2,
	/* The list of what a process has mapped */
	REFUSED_MAPS	= 1 << 3,
	/* To stop a process with ptrace */
	REFUSED_TRACE	= 1 << 4,
	/* Files of tracefs */
	REFUSED_TRACEFS	= 1 << 5,
};

/**
 * struct refusal - a request that the kernel has refused
 * @what: kind of the request
 * @pid: the process or thread, if there is one
 * @place: REFUSED_WATCH: the place as the user has written it
 * @address: REFUSED_WATCH: its address
 * @registers: REFUSED_WATCH: number of registers that it needs
 * @kernel: REFUSED_WATCH: accesses in kernel mode, too
 * @areas: REFUSED_TEXT: areas of text
 */
struct refusal {
	enum refused what;
	pid_t pid;
	const char *place;
	uint64_t address;
	unsigned int registers;
	bool kernel;
	bool areas;
};

/* Exit with the reason why the kernel has answered @r with the errno @err. */
void refusal_die(const struct refusal *r, int err) __attribute__((noreturn));

#endif
