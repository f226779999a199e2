/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arbitration of breakpoint registers: how many may be claimed on which CPU.
 *
 * Each CPU has a number of registers of each class.  A claim is a right to some of them,
 * made by the machine (on every CPU, whatever runs there), by a CPU (whatever runs there)
 * or by a domain, on one CPU or on any.  A domain is an execution context that runs on one
 * CPU at a time (a thread), or a process, whose claims need their registers whenever one
 * of its members runs.  The accounting does not depend on the use of a claim.
 */

/**
 * DOC: Which claims fit
 *
 * Guaranteed claims hold registers for themselves.  Flexible claims share one between all
 * of them, and are multiplexed on what guaranteed claims leave.  For each CPU *c*, each
 * thread *t* of a process *p*, and each class of registers::
 *
 *	guaranteed of c + guaranteed of p on c + guaranteed of t on c +
 *		(a flexible claim of c, of p on c, or of t on c ? 1 : 0) <= registers of c
 *
 * A claim of the machine is one of every CPU.  A claim of a thread is checked against those
 * of its process and of the CPUs, a claim of a process also against those of its worst
 * thread, and a claim of a CPU against those of the worst thread and its process together.
 * Other threads do not matter: two threads never run on a CPU at the same time.
 */
#ifndef _KERNEL_EVENTS_BP_SLOTS_H
#define _KERNEL_EVENTS_BP_SLOTS_H

#include <linux/atomic.h>
#include <linux/bp_slots_types.h>
#include <linux/cache.h>
#include <linux/spinlock.h>

/**
 * struct bp_shard - claims of domains that were made on one CPU; bp_slots::global
 * @lock: protects the shard. While the shard is open, it holds off claims of CPUs
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
} ____cacheline_aligned_in_smp;

/**
 * struct bp_cpu_account - the accounting of one class on one CPU
 * @guaranteed: weight of the guaranteed claims of the CPU
 * @flexible: number of the flexible claims of the CPU
 * @level: number of domains at each level, of those with claims bound to this CPU;
 *	the level is that of all their claims on this CPU
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
 * @worst: maximum, over all CPUs, of the weight of the guaranteed claims of a CPU, plus
 *	1 if the CPU has flexible claims; @worst[1]: plus 1 in any case
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
 * @global: the claims of CPUs and of the machine; its lock closes the accounting
 * @closed_by: the CPU that has closed the accounting, -1 if none
 * @nr_cpus: CPUs are 0 ... @nr_cpus - 1
 * @shard: claims of domains, by the CPU on which they were made
 * @class: the accounting of each class
 *
 * bp_slots.c has the locking rules.  The fields that claims of domains read are in
 * cache lines of their own, which only claims of CPUs and of the machine write.
 */
struct bp_slots {
	struct bp_shard			global;
	int				closed_by;
	unsigned int			nr_cpus ____cacheline_aligned_in_smp;
	struct bp_shard __percpu	*shard;
	struct bp_class_account		class[BP_SLOTS_CLASSES];
};

/**
 * struct bp_claim_spec - a request for registers
 * @class: class of registers, below BP_SLOTS_CLASSES
 * @weight: number of registers, at least 1; 1 for a flexible claim
 * @flexible: share a register with other flexible claims
 */
struct bp_claim_spec {
	unsigned int	class;
	unsigned int	weight;
	bool		flexible;
};

/*
 * @slots are the registers of each class on each CPU, at most BP_SLOTS_MAX. May sleep.
 * Returns 0, -EINVAL or -ENOMEM.
 */
int bp_slots_init(struct bp_slots *bs, unsigned int nr_cpus,
		  const unsigned int slots[BP_SLOTS_CLASSES]);

/* Frees an accounting in which no claim is held */
void bp_slots_destroy(struct bp_slots *bs);

/* Sets up a process without claims and members, or returns -ENOMEM. May sleep. */
int bp_process_init(const struct bp_slots *bs, struct bp_process *process);

/* Frees a process; neither it nor its members have claims */
void bp_process_destroy(struct bp_process *process);

/*
 * Makes a domain a member of a process, for the life of the domain. Nothing changes for a
 * member of @process. Any context but NMI.
 * Returns 0; -ENOSPC if the claims of @process and @domain together break the rule.
 */
int bp_slots_join(struct bp_slots *bs, struct bp_domain *domain,
		  struct bp_process *process);

/**
 * bp_slots_reserve - make a claim
 * @bs: the accounting
 * @claim: the claim, not held
 * @spec: the registers to claim
 * @domain: domain that makes the claim; NULL for a claim of a CPU or of the machine
 * @cpu: CPU of the claim; -1 for any CPU. -1 without a domain is a claim of the
 *	machine, which is guaranteed
 *
 * Context: Any but NMI.
 * Return: 0; -EINVAL for a malformed request; -ENODEV if there is no such CPU;
 * -EOPNOTSUPP if the CPUs have no register of this class; -ENOSPC if the
 * claims that are held leave no register.  On failure nothing has changed.
 */
int bp_slots_reserve(struct bp_slots *bs, struct bp_claim *claim,
		     const struct bp_claim_spec *spec, struct bp_domain *domain,
		     int cpu);

/*
 * bp_slots_reserve() of a claim of a CPU or, if @cpu is -1, of the machine, without waiting: for
 * a kernel debugger that has stopped all other CPUs. Any context.
 * Returns -EBUSY if a request is under way.
 */
int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec, int cpu);

/**
 * bp_slots_change_all - change the class or weight of several claims or of none
 * @bs: the accounting
 * @next: returns the claim after @claim, or the first claim for NULL; called several
 *	times, with interrupts off if the class changes or the claims have no domain.
 *	Claims that are not held are skipped
 * @arg: for @next
 * @old: class and weight of each of the claims
 * @new: new class and weight of all of them; @new->flexible is that of @old
 *
 * Context: Any but NMI.
 * Return: as bp_slots_reserve().  On failure no claim has changed.
 */
int bp_slots_change_all(struct bp_slots *bs,
			struct bp_claim *(*next)(struct bp_claim *claim, void *arg),
			void *arg, const struct bp_claim_spec *old,
			const struct bp_claim_spec *new);

/* Releases a claim; one that is not held is left alone. Any context but NMI. */
void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim);

/*
 * Releases a claim of a CPU or of the machine without waiting. Any context.
 * Returns 0, or -EBUSY if another request for a CPU or the machine is under way.
 */
int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim);

/**
 * bp_slots_available - count the registers that guaranteed claims leave
 * @bs: the accounting
 * @class: class of registers
 * @domain: domain that runs on the CPU; NULL for none
 * @cpu: the CPU
 *
 * Takes the lock of @domain, or of its process, only if a guaranteed claim of that one
 * is bound to a CPU.  A request that is granted at the same time may or may not be included.
 *
 * Context: Any but NMI.
 * Return: registers of @class on @cpu that no guaranteed claim of the machine, of
 * the CPU, of @domain or of its process is for.
 */
unsigned int bp_slots_available(const struct bp_slots *bs, unsigned int class,
				struct bp_domain *domain, int cpu);

/**
 * struct bp_walk - position of a walk along all claims
 * @mark: marks the place in a list, behind the claim that was seen last
 * @at: the shard: a CPU, -1 for bp_slots::global
 */
struct bp_walk {
	struct bp_claim	mark;
	int		at;
};

/* Starts at the first claim; bp_slots_walk_end() has to follow. Any context but NMI. */
void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk);

/*
 * Calls @look for the next claim, under a lock that its release takes, so that the object that
 * embeds the claim is not freed meanwhile. A claim that is held during the whole walk is visited
 * once; a claim that is made or released meanwhile may or may not be visited.
 * Returns false if there was no further claim.
 */
bool bp_slots_walk_next(struct bp_slots *bs, struct bp_walk *walk,
			void (*look)(const struct bp_claim *claim, void *arg),
			void *arg);

void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk);

/*
 * Number of the claims that are held. Takes no lock: claims made or released at the same time
 * may or may not be included.
 */
unsigned long bp_slots_nr_claims(const struct bp_slots *bs);

#endif /* _KERNEL_EVENTS_BP_SLOTS_H */
