/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arbitration of breakpoint registers: how many of them may be held where.
 *
 * Each CPU has N registers of each class.  A claim is a right to some of them,
 * made by the machine (on every CPU, whatever runs there), by a CPU (whatever
 * runs there) or by a domain (an execution context that runs on one CPU at a
 * time, on one CPU or on any).  Guaranteed claims hold registers for themselves;
 * flexible claims share one between all of them and are multiplexed on what is
 * available beyond that.  For each CPU c, domain d and class:
 *
 *   guaranteed(c) + guaranteed(d, c) + (flexible(c) or flexible(d, c) ? 1 : 0)
 *	<= N - wide
 *
 * where wide is what the machine claims.  So a claim of a CPU has to live with
 * the worst domain, one of the machine with the worst CPU, and a claim of a
 * domain with each CPU, but domains never compete with each other.
 *
 * Domains may belong to a process, which makes claims in a domain of its own.  They
 * hold in each of the other domains of the process too: for a domain d of process p
 * the rule adds
 *
 *   guaranteed(p, c), and flexible(p, c) to what decides on the shared register.
 *
 * A claim of a process has to live with the worst of its own domains, and with no
 * domain less than with one that holds nothing.
 *
 * Nothing here knows what a claim is used for.
 */
#ifndef _KERNEL_EVENTS_BP_SLOTS_H
#define _KERNEL_EVENTS_BP_SLOTS_H

#include <linux/atomic.h>
#include <linux/bp_slots_types.h>
#include <linux/cache.h>
#include <linux/spinlock.h>

/* The most registers of one class that a CPU can have. */
#define BP_SLOTS_MAX		16

/*
 * A domain is at level 2 * guaranteed weight + (has a flexible claim). Levels are
 * counted so that the worst domain is found without looking at the domains.
 */
#define BP_LEVELS		(2 * (BP_SLOTS_MAX + 1))

/**
 * struct bp_shard - claims of domains that were made on one CPU
 * @lock: protects the shard and, while it is open, holds off all claims of CPUs
 *	and of the machine
 * @closed: a claim of a CPU or of the machine is being made
 * @nr_claims: number of the claims
 * @claims: the claims, and the marks of walks
 * @level: by class and level, how many domains came to the level on this CPU less
 *	how many left it here, by their claims for any CPU; level 0 means nothing
 */
struct bp_shard {
	raw_spinlock_t		lock;
	bool			closed;
	u32			nr_claims;
	struct list_head	claims;
	int			level[BP_SLOTS_CLASSES][BP_LEVELS];
};

/**
 * struct bp_cpu_account - the accounting of one class on one CPU
 * @guaranteed: weight of the guaranteed claims of the CPU
 * @flexible: number of the flexible claims of the CPU
 * @level: by level, the domains with claims bound to this CPU, by all that they
 *	hold here
 */
struct bp_cpu_account {
	u32		guaranteed;
	u32		flexible;
	atomic_t	level[BP_LEVELS];
};

/**
 * struct bp_class_account - the accounting of one class
 * @slots: registers of the class on each CPU
 * @wide: weight of the claims of the machine
 * @worst: the most that any CPU claims for itself, one more for the flexible
 *	claims of the CPU if it has any; [1]: one more on each CPU
 * @cpu: the accounting of each CPU
 */
struct bp_class_account {
	u32			slots;
	u32			wide;
	u32			worst[2];
	struct bp_cpu_account	*cpu;
};

/**
 * struct bp_slots - the accounting
 * @lock: closes the accounting for a claim of a CPU or of the machine
 * @nr_claims: number of these claims
 * @claims: these claims, and the marks of walks
 * @nr_cpus: CPUs are 0 ... @nr_cpus - 1
 * @shard: claims of domains, by the CPU on which they were made
 * @class: the accounting of each class
 *
 * bp_slots.c has the locking rules.  All that claims of domains look at is in
 * cache lines of its own, which only claims of CPUs and of the machine write.
 */
struct bp_slots {
	raw_spinlock_t			lock;
	u32				nr_claims;
	struct list_head		claims;
	unsigned int			nr_cpus ____cacheline_aligned_in_smp;
	struct bp_shard __percpu	*shard;
	struct bp_class_account		class[BP_SLOTS_CLASSES];
};

/**
 * struct bp_process_account - a class of a process, on any CPU or on one
 * @member: by level, the members: on any CPU by their claims for any CPU; on one
 *	CPU those with claims bound to it, by all that they hold there
 * @accounted: level at which the process counts among the domains; 0 for none
 */
struct bp_process_account {
	u32	member[BP_LEVELS];
	u32	accounted;
};

/**
 * struct bp_process - the claims of a process, and what its domains hold
 * @domain: the claims of the process. Its lock protects all of the process
 * @nr_bound: claims of the process that are bound to a CPU, and for each member
 *	the CPUs that it is bound to, once a class
 * @nr_accounted: number of CPUs, once a class, on which the process counts
 * @any: by class, on any CPU
 * @cpu: by class, on each CPU
 *
 * The members are the other domains that belong to the process. A process counts
 * as one more domain, at the level of its worst member and of its own claims
 * together, if it has claims; the members count as well, without the process.
 */
struct bp_process {
	struct bp_domain		domain;
	u32				nr_bound;
	u32				nr_accounted;
	struct bp_process_account	any[BP_SLOTS_CLASSES];
	struct bp_process_account	*cpu[BP_SLOTS_CLASSES];
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
 * bp_slots_init - set up the accounting
 * @bs: the accounting
 * @nr_cpus: number of CPUs
 * @slots: registers of each class on each CPU, at most BP_SLOTS_MAX
 *
 * Context: Process context, may sleep.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int bp_slots_init(struct bp_slots *bs, unsigned int nr_cpus,
		  const unsigned int slots[BP_SLOTS_CLASSES]);

/**
 * bp_slots_destroy - free an accounting in which no claim is held
 * @bs: the accounting
 */
void bp_slots_destroy(struct bp_slots *bs);

/**
 * bp_process_init - set up a process without claims and members
 * @bs: the accounting
 * @process: the process
 *
 * Context: Process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int bp_process_init(const struct bp_slots *bs, struct bp_process *process);

/**
 * bp_process_destroy - free a process without claims, whose members have none
 * @process: the process
 */
void bp_process_destroy(struct bp_process *process);

/**
 * bp_slots_join - make a domain belong to a process, for good
 * @bs: the accounting
 * @domain: the domain, with or without claims
 * @process: the process
 *
 * Nothing changes for a domain that belongs to @process already.
 *
 * Context: Any but NMI.
 * Return: 0; -ENOSPC if the claims of @process and of @domain together have no room.
 */
int bp_slots_join(struct bp_slots *bs, struct bp_domain *domain,
		  struct bp_process *process);

/**
 * bp_slots_reserve - make a claim
 * @bs: the accounting
 * @claim: the claim, not held
 * @spec: what is asked for
 * @domain: domain that makes the claim; NULL for the CPU itself
 * @cpu: CPU that it is for; -1 for every CPU. Without a domain that is a claim of
 *	the machine, which is guaranteed
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
 * bp_slots_try_reserve - make a claim of a CPU or of the machine without waiting
 * @bs: the accounting
 * @claim: the claim, not held
 * @spec: what is asked for
 * @cpu: CPU that it is for; -1 for the machine
 *
 * For a kernel debugger that has stopped all other CPUs.
 *
 * Context: Any.
 * Return: as bp_slots_reserve(), or -EBUSY if a request is under way.
 */
int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec, int cpu);

/**
 * bp_slots_change - change the class or weight of a claim
 * @bs: the accounting
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
 * @bs: the accounting
 * @next: returns the claim after @claim, the first after NULL; called more than
 *	once, with interrupts off. Claims that are not held are left out
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
 * bp_slots_release - release a claim
 * @bs: the accounting
 * @claim: the claim; one that is not held is left alone
 *
 * Context: Any but NMI.
 */
void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim);

/**
 * bp_slots_try_release - release a claim of a CPU or of the machine without waiting
 * @bs: the accounting
 * @claim: the claim; one that is not held is left alone
 *
 * Context: Any.
 * Return: 0, or -EBUSY if another request for a CPU or the machine is under way.
 */
int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim);

/**
 * bp_slots_available - count the registers that guaranteed claims leave
 * @bs: the accounting
 * @class: class of registers
 * @domain: domain that runs on the CPU; NULL for none
 * @cpu: the CPU
 *
 * Takes a lock, that of @domain, only if a guaranteed claim of @domain is bound to
 * a CPU.  A request that is granted at the same time may or may not be included.
 *
 * Context: Any but NMI.
 * Return: registers of @class on @cpu that no guaranteed claim of the machine, of
 * the CPU, of @domain or of its process is for.
 */
unsigned int bp_slots_available(const struct bp_slots *bs, unsigned int class,
				struct bp_domain *domain, int cpu);

/**
 * bp_slots_full - check whether a domain holds too much for one more claim
 * @bs: the accounting
 * @spec: what would be asked for
 * @domain: domain that would ask
 *
 * Compares what @domain and its process hold on every CPU: false means nothing.
 *
 * Context: Any; takes no lock.
 * Return: true if a request would be refused for any CPU.
 */
bool bp_slots_full(const struct bp_slots *bs, const struct bp_claim_spec *spec,
		   const struct bp_domain *domain);

/**
 * struct bp_walk - position of a walk along all claims
 * @mark: is in a list, behind the claim that was seen last; has no weight
 * @at: the list: a CPU for its shard, -1 for the claims of CPUs and of the machine
 */
struct bp_walk {
	struct bp_claim	mark;
	int		at;
};

/**
 * bp_slots_walk_begin - start at the first claim
 * @bs: the accounting
 * @walk: the walk; bp_slots_walk_end() has to follow
 *
 * Context: Any but NMI.
 */
void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk);

/**
 * bp_slots_walk_next - look at one more claim
 * @bs: the accounting
 * @walk: the walk
 * @look: called for the claim, under a lock that its release needs: what embeds
 *	the claim is not freed meanwhile
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
 * @bs: the accounting
 * @walk: the walk
 *
 * Context: Any but NMI.
 */
void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk);

/**
 * bp_slots_nr_claims - count the claims that are held
 * @bs: the accounting
 *
 * Context: Any; takes no lock.
 * Return: the number of claims; claims made or released at the same time may or
 * may not be included.
 */
unsigned long bp_slots_nr_claims(const struct bp_slots *bs);

/**
 * bp_slots_in_use - check whether any claim is held
 * @bs: the accounting
 *
 * Context: Any; takes no lock.
 * Return: true if there is a claim.
 */
static inline bool bp_slots_in_use(const struct bp_slots *bs)
{
	return bp_slots_nr_claims(bs);
}

/**
 * bp_slots_any_level - count the domains at one level, by their claims for any CPU
 * @bs: the accounting
 * @class: class of registers
 * @level: the level, at least 1
 *
 * Context: The accounting is closed, or no request is under way.
 * Return: the number of domains.
 */
unsigned int bp_slots_any_level(const struct bp_slots *bs, unsigned int class,
				unsigned int level);

#endif /* _KERNEL_EVENTS_BP_SLOTS_H */
