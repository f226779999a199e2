/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What perf embeds for the arbitration of breakpoint registers; see
 * kernel/events/bp_slots.h.
 */
#ifndef _LINUX_BP_SLOTS_TYPES_H
#define _LINUX_BP_SLOTS_TYPES_H

#include <linux/rbtree_types.h>
#include <linux/types.h>

struct bp_holder;

#define BP_SLOTS_CLASSES	2

/**
 * struct bp_domain - the claims that follow one execution context around
 * @bound: claims that are bound to one CPU, ordered by CPU
 * @any: the other claims, which hold on every CPU, by class
 * @any.guaranteed: their weight
 * @any.flexible: number of flexible ones
 *
 * All fields belong to the lock of the books the domain is used with.
 * A domain of zeros is empty.
 */
struct bp_domain {
	struct rb_root	bound;
	struct {
		u32	guaranteed;
		u32	flexible;
	} any[BP_SLOTS_CLASSES];
};

/**
 * struct bp_claim - a right to registers
 * @link: in the list of all claims
 * @node: link in bp_domain::bound, if @domain and @cpu >= 0
 * @holder: for those who list the claims, who has it; set before the first use
 *	by whoever embeds the claim, NULL in a perf event
 * @domain: whose claim it is; NULL for one of a CPU itself or of the machine
 * @cpu: where it holds; -1 for every CPU: that its domain may run on, or of the
 *	machine
 * @class: class of registers
 * @weight: how many registers of the class
 * @flexible: shares one register with the other flexible claims
 * @held: it stands in the books
 *
 * All but @holder is written under the lock of the books only.  A claim of zeros
 * is not held.
 */
struct bp_claim {
	struct list_head	link;
	struct rb_node		node;
	const struct bp_holder	*holder;
	struct bp_domain	*domain;
	int			cpu;
	u8			class;
	u8			weight;
	bool			flexible;
	bool			held;
};

#endif /* _LINUX_BP_SLOTS_TYPES_H */
