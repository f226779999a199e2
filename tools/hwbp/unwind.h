/* SPDX-License-Identifier: GPL-2.0 */
/* Who called the function that made an access, by the unwind tables. */
#ifndef HWBP_UNWIND_H
#define HWBP_UNWIND_H

#include "events.h"
#include "symbols.h"

struct unwinder;

struct unwinder *unwinder_new(struct symbols *syms, pid_t pid);

/* Return addresses of the callers into @ips, innermost first; how many. */
size_t unwinder_callers(struct unwinder *u, const struct user_regs *user, uint64_t *ips,
			size_t max);

#endif
