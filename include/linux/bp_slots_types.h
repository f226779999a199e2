/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What perf embeds for the arbitration of breakpoint registers; see
 * kernel/events/bp_slots.h.
 */
#ifndef _LINUX_BP_SLOTS_TYPES_H
#define _LINUX_BP_SLOTS_TYPES_H

#include <linux/rbtree_types.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

struct bp_holder;
struct bp_process;

#define BP_SLOTS_CLASSES	2

/**
 * struct bp_domain - the claims that follow one execution context around
 * @lock: protects the domain; see bp_slots.c
 * @bound_guaranteed: number of guaranteed claims in @bound
 * @process: the process that the domain belongs to; NULL for none. The domain in
 *	which a process has claims of its own belongs to that process
 * @bound: claims that are bound to one CPU, ordered by CPU
 * @any: the other claims, which hold on every CPU, by class
 * @any.guaranteed: their weight
 * @any.flexible: number of flexible ones
 */
struct bp_domain {
	raw_spinlock_t	lock;
	u32		bound_guaranteed;
	struct bp_process *process;
	struct rb_root	bound;
	struct {
		u32	guaranteed;
		u32	flexible;
	} any[BP_SLOTS_CLASSES];
};

/**
 * bp_domain_init - prepare a domain of zeros, which has no claims
 * @domain: the domain
 */
void bp_domain_init(struct bp_domain *domain);

/**
 * struct bp_claim - a right to registers
 * @link: in the list of the claims of a shard, or of CPUs and of the machine
 * @node: link in bp_domain::bound, if @domain and @cpu >= 0
 * @holder: for a list of the claims, what holds the claim; set before the first
 *	use by whatever embeds the claim, NULL in a perf event
 * @domain: domain that holds the claim; NULL for one of a CPU itself or of the
 *	machine
 * @cpu: where it holds; -1 for every CPU: that its domain may run on, or of the
 *	machine
 * @shard: of a domain: CPU on which it was made
 * @class: class of registers
 * @weight: how many registers of the class
 * @flexible: shares one register with the other flexible claims
 * @held: it is accounted
 *
 * All but @holder is written under the locks of the accounting only; see
 * bp_slots.c.  A claim of zeros is not held.
 */
struct bp_claim {
	struct list_head	link;
	struct rb_node		node;
	const struct bp_holder	*holder;
	struct bp_domain	*domain;
	s16			cpu;
	u16			shard;
	u8			class;
	u8			weight;
	bool			flexible;
	bool			held;
};

#endif /* _LINUX_BP_SLOTS_TYPES_H */
