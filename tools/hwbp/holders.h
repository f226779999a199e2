/* SPDX-License-Identifier: GPL-2.0 */
/* Explain that no register is available. */
#ifndef HWBP_HOLDERS_H
#define HWBP_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

struct symbols;

/**
 * struct holders_request - a request for a register that has failed
 * @pid: the process, 0 for all CPUs
 * @syms: its symbols, or NULL
 * @flexible: it is flexible
 * @need: number of registers
 */
struct holders_request {
	pid_t pid;
	struct symbols *syms;
	bool flexible;
	unsigned int need;
};

/* Exit with @what, the breakpoints that hold the registers, if they are known, and @advice. */
void holders_die(const struct holders_request *req, const char *what, const char *advice)
	__attribute__((noreturn));

#endif
