/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arbitration of breakpoint registers: who may hold how many of them where.
 *
 * Each CPU has N registers of each class.  A claim is a right to some of them,
 * made by the machine (on every CPU, whatever runs there), by a CPU (whatever
 * runs there) or by a domain (an execution context that runs on one CPU at a
 * time, on one CPU or on any).  Guaranteed claims hold registers for themselves;
 * flexible claims share one between all of them and take turns on whatever else
 * is free.  For each CPU c, domain d and class:
 *
 *   guaranteed(c) + guaranteed(d, c) + (flexible(c) or flexible(d, c) ? 1 : 0)
 *	<= N - wide
 *
 * where wide is what the machine claims.  So a claim of a CPU has to live with
 * the worst domain, one of the machine with the worst CPU, and a claim of a
 * domain with each CPU, but domains never compete with each other.
 *
 * Nothing here knows what a claim is used for.
 */
#ifndef _KERNEL_EVENTS_BP_SLOTS_H
#define _KERNEL_EVENTS_BP_SLOTS_H

#include <linux/bp_slots_types.h>
#include <linux/spinlock.h>

/* The most registers of one class that a CPU can have. */
#define BP_SLOTS_MAX		16

/*
 * How many members (domains, CPUs) stand at each level, and as bits at which of
 * them anybody does.  The levels above BP_SLOTS_MAX are one: no books ever stay
 * there.
 */
struct bp_levels {
	u32	occupied;
	u32	count[BP_SLOTS_MAX + 2];
};

/**
 * struct bp_cpu_books - the books of one class on one CPU
 * @guaranteed: weight of the guaranteed claims of the CPU
 * @flexible: number of the flexible claims of the CPU
 * @held: domains with claims bound to this CPU, by their guaranteed weight here
 * @promised: the same domains, by the same weight plus one if one of their
 *	claims that holds here is flexible
 */
struct bp_cpu_books {
	u32			guaranteed;
	u32			flexible;
	struct bp_levels	held;
	struct bp_levels	promised;
};

/**
 * struct bp_class_books - the books of one class
 * @slots: registers of the class on each CPU
 * @wide: weight of the claims of the machine
 * @claims: number of claims
 * @held: all domains, by the guaranteed weight of their claims for any CPU
 * @promised: all domains, by that weight plus one if one of these claims is
 *	flexible
 * @cpu_held: CPUs by the guaranteed weight of their own claims
 * @cpu_promised: CPUs by that weight plus one if they have a flexible claim
 * @cpu: books of each CPU
 */
struct bp_class_books {
	u32			slots;
	u32			wide;
	u32			claims;
	struct bp_levels	held;
	struct bp_levels	promised;
	struct bp_levels	cpu_held;
	struct bp_levels	cpu_promised;
	struct bp_cpu_books	*cpu;
};

/**
 * struct bp_slots - the books
 * @lock: protects all of it, the claims and the domains; a leaf, taken with
 *	interrupts off, under raw locks of perf too
 * @nr_cpus: CPUs are 0 ... @nr_cpus - 1
 * @version: changes with every guaranteed claim that comes or goes; never 0
 * @list: all claims, and the marks of those who walk along them
 * @class: the books of each class
 */
struct bp_slots {
	raw_spinlock_t		lock;
	unsigned int		nr_cpus;
	unsigned long		version;
	struct list_head	list;
	struct bp_class_books	class[BP_SLOTS_CLASSES];
};

/**
 * struct bp_claim_spec - what is asked for
 * @class: class of registers, below BP_SLOTS_CLASSES
 * @weight: number of registers, at least 1; 1 for a flexible claim
 * @flexible: share a register with other flexible claims
 */
struct bp_claim_spec {
	unsigned int	class;
	unsigned int	weight;
	bool		flexible;
};

/**
 * bp_slots_init - open the books
 * @bs: the books
 * @nr_cpus: number of CPUs
 * @slots: registers of each class on each CPU, at most BP_SLOTS_MAX
 *
 * Context: Process context, may sleep.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int bp_slots_init(struct bp_slots *bs, unsigned int nr_cpus,
		  const unsigned int slots[BP_SLOTS_CLASSES]);

/**
 * bp_slots_destroy - close books in which no claim stands
 * @bs: the books
 */
void bp_slots_destroy(struct bp_slots *bs);

/**
 * bp_slots_reserve - make a claim
 * @bs: the books
 * @claim: the claim, not held
 * @spec: what is asked for
 * @domain: who asks; NULL for the CPU itself
 * @cpu: where; -1 for every CPU. Without a domain that is a claim of the machine,
 *	which is guaranteed
 *
 * Context: Any but NMI.
 * Return: 0; -EINVAL for a malformed request; -ENODEV if there is no such CPU;
 * -EOPNOTSUPP if the CPUs have no register of this class; -ENOSPC if the
 * holders leave no room.  If it fails, nothing has changed.
 */
int bp_slots_reserve(struct bp_slots *bs, struct bp_claim *claim,
		     const struct bp_claim_spec *spec, struct bp_domain *domain,
		     int cpu);

/**
 * bp_slots_try_reserve - make a claim without waiting for the lock
 * @bs: the books
 * @claim: the claim, not held
 * @spec: what is asked for
 * @domain: who asks; NULL for the CPU itself
 * @cpu: where; as for bp_slots_reserve()
 *
 * Context: Any.
 * Return: as bp_slots_reserve(), or -EBUSY if the books are locked.
 */
int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec,
			 struct bp_domain *domain, int cpu);

/**
 * bp_slots_change - change the class or weight of a claim
 * @bs: the books
 * @claim: the claim, held
 * @spec: what it shall be; a flexible claim stays flexible, a guaranteed one
 *	guaranteed
 *
 * Context: Any but NMI.
 * Return: as bp_slots_reserve().  If it fails, the claim is what it was.
 */
int bp_slots_change(struct bp_slots *bs, struct bp_claim *claim,
		    const struct bp_claim_spec *spec);

/**
 * bp_slots_change_all - change the class or weight of several claims or of none
 * @bs: the books
 * @next: which claim comes after @claim, the first after NULL; called more than
 *	once, under the lock. Claims that are not held are left out
 * @arg: for @next
 * @old: what the claims are, all the same
 * @new: what they shall be
 *
 * Context: Any but NMI.
 * Return: as bp_slots_change().  If it fails, all claims are what they were.
 */
int bp_slots_change_all(struct bp_slots *bs,
			struct bp_claim *(*next)(struct bp_claim *claim, void *arg),
			void *arg, const struct bp_claim_spec *old,
			const struct bp_claim_spec *new);

/**
 * bp_slots_release - give a claim back
 * @bs: the books
 * @claim: the claim; one that is not held is left alone
 *
 * Context: Any but NMI.
 */
void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim);

/**
 * bp_slots_try_release - give a claim back without waiting for the lock
 * @bs: the books
 * @claim: the claim; one that is not held is left alone
 *
 * Context: Any.
 * Return: 0, or -EBUSY if the books are locked.
 */
int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim);

/**
 * bp_slots_spare - count the registers that guaranteed claims leave
 * @bs: the books
 * @class: class of registers
 * @domain: what runs on the CPU; NULL for nothing that has claims
 * @cpu: where
 *
 * Context: Any but NMI.
 * Return: registers of @class on @cpu that no guaranteed claim of the machine, of
 * the CPU or of @domain is for.
 */
unsigned int bp_slots_spare(struct bp_slots *bs, unsigned int class,
			    const struct bp_domain *domain, int cpu);

/**
 * bp_slots_version - tell whether what guaranteed claims leave can have changed
 * @bs: the books
 *
 * Context: Any; takes no lock.
 * Return: a number other than 0. What bp_slots_spare() says after that number was
 * read stays true at least as long as the number stays the same, but for a
 * request that is being judged.
 */
unsigned long bp_slots_version(const struct bp_slots *bs);

/**
 * bp_slots_full - tell whether a domain has too much for one more claim
 * @bs: the books
 * @spec: what would be asked for
 * @domain: who would ask
 *
 * Looks at what @domain itself holds on every CPU: "no" means nothing.
 *
 * Context: Any but NMI.
 * Return: true if a request would be refused wherever it is for.
 */
bool bp_slots_full(struct bp_slots *bs, const struct bp_claim_spec *spec,
		   const struct bp_domain *domain);

/**
 * struct bp_walk - somebody on the way along all claims
 * @mark: stands in the list behind what was seen last; has no weight
 */
struct bp_walk {
	struct bp_claim	mark;
};

/**
 * bp_slots_walk_begin - start at the first claim
 * @bs: the books
 * @walk: the walk; bp_slots_walk_end() has to follow
 *
 * Context: Any but NMI.
 */
void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk);

/**
 * bp_slots_walk_next - look at one more claim
 * @bs: the books
 * @walk: the walk
 * @look: called for the claim, under the lock: what it is in stays that long
 * @arg: for @look
 *
 * A claim that is there from begin to end is seen once; others may be.
 *
 * Context: Any but NMI.
 * Return: false if there is none left, and @look was not called.
 */
bool bp_slots_walk_next(struct bp_slots *bs, struct bp_walk *walk,
			void (*look)(const struct bp_claim *claim, void *arg),
			void *arg);

/**
 * bp_slots_walk_end - stop walking
 * @bs: the books
 * @walk: the walk
 *
 * Context: Any but NMI.
 */
void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk);

/**
 * bp_slots_in_use - tell whether any claim stands
 * @bs: the books
 *
 * Context: Any.
 * Return: true if one does, or did a moment ago.
 */
bool bp_slots_in_use(const struct bp_slots *bs);

#endif /* _KERNEL_EVENTS_BP_SLOTS_H */
