/* SPDX-License-Identifier: GPL-2.0 */
/* Callers of the function that made an access, from the unwind tables. */
#ifndef HWBP_UNWIND_H
#define HWBP_UNWIND_H

#include "events.h"
#include "symbols.h"

struct unwinder;

struct unwinder *unwinder_new(struct symbols *syms, pid_t pid);

/* Store the return addresses, innermost first, in @ips. Returns their number. */
size_t unwinder_callers(struct unwinder *u, const struct user_regs *user, uint64_t *ips,
			size_t max);

#endif
