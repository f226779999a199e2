/* SPDX-License-Identifier: GPL-2.0 */
/* Explain that no register is available. */
#ifndef HWBP_HOLDERS_H
#define HWBP_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

struct location;
struct symbols;

/*
 * Exit with a message: no register is available for @loc in the process @pid, which
 * breakpoints hold the registers, if that can be read, and what to do.
 * @execute: @loc is an instruction; @flexible: its breakpoint is flexible; @can_share: a
 * flexible breakpoint would do.
 */
void holders_die(const struct location *loc, struct symbols *syms, pid_t pid, bool execute,
		 bool flexible, bool can_share) __attribute__((noreturn));

/* The same for @place of the kernel, which is to be watched on all CPUs */
void holders_die_wide(const char *place, bool execute) __attribute__((noreturn));

#endif
