/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types of the arbitration of breakpoint registers that perf embeds: a domain
 * in each context, a claim in each event, a process in each struct perf_process.
 * See kernel/events/bp_slots.h.
 */
#ifndef _LINUX_BP_SLOTS_TYPES_H
#define _LINUX_BP_SLOTS_TYPES_H

#include <linux/rbtree_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct bp_holder;
struct bp_process;

/* Number of classes of registers; see enum bp_type_idx */
#define BP_SLOTS_CLASSES	2

/* The most registers of one class that a CPU can have. */
#define BP_SLOTS_MAX		16

/*
 * A domain is at level 2 * guaranteed weight + (has a flexible claim). Levels are
 * counted so that the worst domain is found without looking at the domains.
 */
#define BP_LEVELS		(2 * (BP_SLOTS_MAX + 1))

/**
 * struct bp_domain - the claims of one execution context, such as a task
 * @lock: protects the domain; see bp_slots.c
 * @bound_guaranteed: number of guaranteed claims in @bound
 * @process: process that the domain belongs to, NULL for none; the domain of the
 *	claims of a process belongs to that process
 * @bound: claims that are bound to one CPU, ordered by CPU
 * @any: for each class, the claims that are bound to no CPU
 * @any.guaranteed: weight of the guaranteed claims
 * @any.flexible: number of the flexible claims
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

/* @domain, all zeros, has no claims. */
static inline void bp_domain_init(struct bp_domain *domain)
{
	raw_spin_lock_init(&domain->lock);
}

/**
 * struct bp_process - the claims of a process and of its members
 * @domain: the claims of the process. Its lock protects the whole struct
 * @nr_bound: number of domains that have claims bound to a CPU: members and @domain
 * @level: by class, CPU plus 1, and level: number of members that have claims bound to the
 *	CPU, by all their claims there; [0]: number of all members with claims, by their
 *	claims for any CPU. Level 0 means nothing
 *
 * The members are the other domains that belong to the process.  Members are counted by
 * their own claims alone, also among the domains of the machine; a process with claims is
 * counted there too, by its own claims plus those of its worst member.
 */
struct bp_process {
	struct bp_domain	domain;
	u32			nr_bound;
	atomic_t		(*level[BP_SLOTS_CLASSES])[BP_LEVELS];
};

/**
 * struct bp_claim - a right to registers
 * @link: link in bp_shard::claims: for a claim of a domain of the shard
 *	@shard, else of bp_slots::global
 * @node: link in bp_domain::bound if @domain is set and @cpu >= 0
 * @holder: description of the claim for debugfs, set before the first use; NULL
 *	if the claim is embedded in a perf event
 * @domain: domain that makes the claim; NULL for a claim of a CPU or of the
 *	machine
 * @cpu: CPU of the claim; -1 for a claim of the machine, or of a domain on
 *	whatever CPU it runs
 * @shard: for a claim of a domain: the CPU on which it was made
 * @class: class of registers
 * @weight: number of registers of the class
 * @flexible: the claim shares one register with the other flexible claims
 * @held: the claim is accounted
 *
 * All fields but @holder are written only under the locks of the accounting;
 * see bp_slots.c.  A claim of zeros is not held.
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
