// SPDX-License-Identifier: GPL-2.0
/*
 * Arbitration of breakpoint registers; bp_slots.h states the rule.
 *
 * A request is checked first and accounted only if the rule holds with it, so a
 * refused request changes nothing and no CPU sees it.  A claim costs no
 * allocation, and no step depends on the number of domains or flexible claims:
 * worst cases are read off histograms.  Claims of a domain cost the same on any
 * number of CPUs, except in a domain that mixes claims for one CPU with claims
 * for every CPU, which pays for the CPUs that it is bound to, and in a process any
 * claim of which is bound to a CPU.  Claims of a CPU or of the machine look at
 * every CPU.
 */

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "bp_slots.h"

/* bp_claim::cpu and ::shard are numbers of CPUs. */
static_assert(NR_CPUS <= S16_MAX);

/* ---- Locking ---- */

/*
 * Domains come and go with each open, close, fork and exit of a breakpoint, on
 * all CPUs at the same time; claims of a CPU, claims of the machine and changes of
 * claims are rare.  So the rare requests stop all others:
 *
 * 1. A claim of a domain belongs to the shard of the CPU on which it was made,
 *    until it is released.  A request that makes or releases the claim takes the
 *    lock of that shard, then bp_domain::lock.  Two tasks that make and release
 *    claims on two CPUs write no cache line in common, unless both are bound to the
 *    same third CPU (see 5).  A release on another CPU, as at the exit of a thread
 *    whose claims were inherited, writes the shard of the first CPU.  The load of a
 *    shard is therefore limited to the claims that one CPU can make, on any number
 *    of CPUs.  A hash of the domain would distribute shards at random: claims of
 *    tasks on different CPUs would meet in one shard, and a task that opens and
 *    closes its own breakpoints would take the shard from the CPU that had it last.
 * 2. A request that makes a claim of a CPU or of the machine, or changes any claim,
 *    closes the accounting: it takes bp_slots::lock, then sets bp_shard::closed of
 *    each shard, under the lock of that shard.  The shards are opened again in the
 *    same way before bp_slots::lock is released.  The release of a claim of a CPU or
 *    of the machine takes bp_slots::lock only: see 5.
 * 3. A CPU that finds a shard closed waits for bp_slots::lock.  A shard whose
 *    lock was taken while it was open stays open until that lock is released.
 * 4. Order: bp_slots::lock, bp_shard::lock, bp_domain::lock, that of a member before
 *    that of its process.  All are taken with interrupts off, under raw locks of
 *    perf too, never in an NMI.  No two shards and no two members are locked at a
 *    time.
 * 5. The data that the rule is computed from, and their locks:
 *      bp_class_account::wide, ::worst, bp_cpu_account::guaranteed, ::flexible
 *	    grow while the accounting is closed, shrink under bp_slots::lock; so
 *	    under the lock of any open shard they do not grow, and a claim that
 *	    fits with a value read earlier fits with the current value
 *      bp_shard::claims, ::nr_claims, ::level
 *	    the lock of the shard, or the accounting closed.  A domain may reach a
 *	    level in one shard and leave it in another: only the sum over all shards
 *	    is meaningful, and only while the accounting is closed
 *      bp_cpu_account::level
 *	    atomic, because domains of any shard may be bound to the CPU; stable
 *	    while the accounting is closed
 *      bp_domain
 *	    its lock, and the lock of an open shard or the accounting closed.
 *	    bp_domain::process is set once
 *      bp_process
 *	    the lock of its domain, and as bp_domain
 * 6. A kernel debugger waits for nothing: with all other CPUs stopped, a lock
 *    that is not free now never will be.
 *
 * The rule is exact: a claim of a domain is checked with its domain locked while
 * the claims of CPUs do not grow, and changes the left side of the rule for that
 * domain alone.  A claim in a process is checked with the process locked too, and
 * changes the left side for the process and its members.  If a claim of a CPU is
 * released at the same time, the domain may still be refused, as before the release.
 * A claim of a CPU or of the machine is checked while no data of the rule changes.
 */

static void assert_shard(const struct bp_shard *shard)
{
	lockdep_assert_held(&shard->lock);
	lockdep_assert(!shard->closed);
}

static void assert_closed(const struct bp_slots *bs)
{
	lockdep_assert_held(&bs->lock);
	lockdep_assert(raw_cpu_ptr(bs->shard)->closed);
}

static void assert_account(const struct bp_slots *bs, const struct bp_shard *shard,
			   const struct bp_domain *domain)
{
	lockdep_assert_held(&domain->lock);
	if (IS_ENABLED(CONFIG_LOCKDEP) && shard->closed)
		assert_closed(bs);
	else
		assert_shard(shard);
}

static void lock_shard(struct bp_slots *bs, struct bp_shard *shard)
	__acquires(&shard->lock)
{
	raw_spin_lock(&shard->lock);
	if (likely(!shard->closed))
		return;
	raw_spin_unlock(&shard->lock);

	/* Shards are closed only while bp_slots::lock is held. */
	raw_spin_lock(&bs->lock);
	raw_spin_lock(&shard->lock);
	raw_spin_unlock(&bs->lock);
}

static void set_closed(struct bp_shard *shard, bool closed)
{
	raw_spin_lock(&shard->lock);
	shard->closed = closed;
	raw_spin_unlock(&shard->lock);
}

static void close_accounting(struct bp_slots *bs)
	__acquires(&bs->lock)
{
	int cpu;

	raw_spin_lock(&bs->lock);
	for_each_possible_cpu(cpu)
		set_closed(per_cpu_ptr(bs->shard, cpu), true);
}

static void open_accounting(struct bp_slots *bs)
	__releases(&bs->lock)
{
	int cpu;

	for_each_possible_cpu(cpu)
		set_closed(per_cpu_ptr(bs->shard, cpu), false);
	raw_spin_unlock(&bs->lock);
}

/*
 * On failure the shards that were closed are opened again.  Locking them waits for
 * no stopped CPU: their locks were free when all CPUs were stopped.
 */
static bool try_close_accounting(struct bp_slots *bs)
{
	int cpu, busy = -1;

	if (!raw_spin_trylock(&bs->lock))
		return false;
	for_each_possible_cpu(cpu) {
		struct bp_shard *shard = per_cpu_ptr(bs->shard, cpu);

		if (!raw_spin_trylock(&shard->lock)) {
			busy = cpu;
			break;
		}
		shard->closed = true;
		raw_spin_unlock(&shard->lock);
	}
	if (busy < 0)
		return true;

	for_each_possible_cpu(cpu) {
		struct bp_shard *shard = per_cpu_ptr(bs->shard, cpu);

		if (cpu == busy)
			break;
		/* This CPU may have been stopped with the lock of the busy shard. */
		raw_spin_lock_nested(&shard->lock, SINGLE_DEPTH_NESTING);
		shard->closed = false;
		raw_spin_unlock(&shard->lock);
	}
	raw_spin_unlock(&bs->lock);
	return false;
}

/* True for the domain in which a process has its own claims */
static bool is_process(const struct bp_domain *domain)
{
	struct bp_process *process = READ_ONCE(domain->process);

	return process && &process->domain == domain;
}

/* The process of a member, NULL for other domains */
static struct bp_process *process_of_member(const struct bp_domain *domain)
{
	struct bp_process *process = READ_ONCE(domain->process);

	return process && &process->domain != domain ? process : NULL;
}

static void lock_domain(struct bp_domain *domain)
	__acquires(&domain->lock)
{
	struct bp_process *process;

	raw_spin_lock(&domain->lock);
	process = process_of_member(domain);
	if (unlikely(process))
		raw_spin_lock(&process->domain.lock);
}

static void unlock_domain(struct bp_domain *domain)
	__releases(&domain->lock)
{
	struct bp_process *process = process_of_member(domain);

	if (unlikely(process))
		raw_spin_unlock(&process->domain.lock);
	raw_spin_unlock(&domain->lock);
}

/* ---- The claims of a domain ---- */

/**
 * struct bp_share - claims of a domain, of one class, on one CPU
 * @cpu: the CPU
 * @class: the class
 * @guaranteed: weight of the guaranteed claims
 * @flexible: it has a flexible claim
 * @bound: it has a claim that is bound to the CPU
 */
struct bp_share {
	int		cpu;
	unsigned int	class;
	unsigned int	guaranteed;
	bool		flexible;
	bool		bound;
};

static inline struct bp_claim *claim_entry(struct rb_node *node)
{
	return rb_entry_safe(node, struct bp_claim, node);
}

static int cmp_place(const struct bp_claim *claim, int cpu, unsigned int class)
{
	if (claim->cpu != cpu)
		return claim->cpu < cpu ? -1 : 1;
	return (int)claim->class - (int)class;
}

/*
 * Bound claims are ordered by CPU, then by class; guaranteed claims come before
 * flexible ones.  A place (a class on a CPU) has at most as many guaranteed claims as
 * registers, but any number of flexible claims: a search ends at the first of these.
 */
static bool claim_less(struct rb_node *a, const struct rb_node *b)
{
	const struct bp_claim *this = claim_entry(a);
	const struct bp_claim *that = rb_entry(b, struct bp_claim, node);
	int cmp = cmp_place(this, that->cpu, that->class);

	return cmp ? cmp < 0 : this->flexible < that->flexible;
}

/* The first claim that is bound to the place or to a later one. */
static struct rb_node *first_from(const struct bp_domain *domain, int cpu,
				  unsigned int class)
{
	struct rb_node *node = domain->bound.rb_node, *first = NULL;

	while (node) {
		if (cmp_place(claim_entry(node), cpu, class) >= 0) {
			first = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}

	return first;
}

/* The share without the claims that are bound to @cpu */
static struct bp_share any_share(const struct bp_domain *domain,
				 unsigned int class, int cpu)
{
	return (struct bp_share) {
		.cpu		= cpu,
		.class		= class,
		.guaranteed	= domain->any[class].guaranteed,
		.flexible	= domain->any[class].flexible,
	};
}

/*
 * Adds to @share the claims that are bound to its place, starting at @node, the
 * first of them.  Returns the first claim of a later place.
 */
static struct rb_node *add_bound(const struct bp_domain *domain,
				 struct rb_node *node, struct bp_share *share)
{
	for (; node; node = rb_next(node)) {
		const struct bp_claim *claim = claim_entry(node);

		if (cmp_place(claim, share->cpu, share->class))
			return node;
		share->bound = true;
		if (claim->flexible) {
			share->flexible = true;
			return first_from(domain, share->cpu, share->class + 1);
		}
		share->guaranteed += claim->weight;
	}

	return NULL;
}

static struct bp_share domain_share(const struct bp_domain *domain,
				    unsigned int class, int cpu)
{
	struct bp_share share = any_share(domain, class, cpu);

	if (!RB_EMPTY_ROOT(&domain->bound))
		add_bound(domain, first_from(domain, cpu, class), &share);
	return share;
}

/*
 * Finds the next CPU that a domain is bound to with claims of @class, from @node on.
 * Fills @share with the claims that are bound to that CPU, without claims for any CPU.
 */
static struct rb_node *next_place(const struct bp_domain *domain,
				  struct rb_node *node, unsigned int class,
				  struct bp_share *share)
{
	share->bound = false;
	while (node && !share->bound) {
		const struct bp_claim *claim = claim_entry(node);

		*share = (struct bp_share) {
			.cpu	= claim->cpu,
			.class	= claim->class,
		};
		node = add_bound(domain, node, share);
		if (share->class != class)
			share->bound = false;
	}

	return node;
}

/* Iterates over the CPUs that the domain is bound to with a claim of the class. */
#define for_each_place(domain, of_class, share, node)			\
	for ((node) = rb_first(&(domain)->bound),			\
	     (node) = next_place(domain, node, of_class, share);	\
	     (share)->bound;						\
	     (node) = next_place(domain, node, of_class, share))

/* ---- Levels ---- */

/* Guaranteed weight and whether a flexible claim shares one more register */
static unsigned int level_of(unsigned int guaranteed, bool flexible)
{
	return 2 * guaranteed + flexible;
}

/* Registers that a level takes; @shared: another level has a flexible claim already. */
static unsigned int level_weight(unsigned int level, bool shared)
{
	return level / 2 + (shared || (level & 1));
}

static unsigned int share_level(const struct bp_share *share)
{
	return level_of(share->guaranteed, share->flexible);
}

static unsigned int nr_levels(const struct bp_class_account *account)
{
	return 2 * (account->slots + 1);
}

static unsigned int highest_member(const struct bp_process_account *account,
				   unsigned int levels)
{
	while (--levels) {
		if (account->member[levels])
			break;
	}

	return levels;
}

/* Level of the worst member on @cpu; if @cpu is -1, by claims for any CPU only. */
static unsigned int worst_member(const struct bp_slots *bs,
				 const struct bp_process *process,
				 unsigned int class, int cpu)
{
	unsigned int levels = nr_levels(&bs->class[class]), worst;

	worst = highest_member(&process->any[class], levels);
	if (cpu < 0)
		return worst;
	return max(worst, highest_member(&process->cpu[class][cpu], levels));
}

/* Claims of the same process that use registers at the same time as @domain */
static struct bp_share others_share(const struct bp_slots *bs,
				    const struct bp_domain *domain,
				    unsigned int class, int cpu)
{
	unsigned int worst;

	if (!is_process(domain))
		return domain_share(&domain->process->domain, class, cpu);

	worst = worst_member(bs, domain->process, class, cpu);
	return (struct bp_share) {
		.guaranteed	= worst / 2,
		.flexible	= worst & 1,
	};
}

/* ---- The rule ---- */

/* Returns true if the rule holds for one domain on one CPU. */
static bool share_fits(const struct bp_class_account *account,
		       const struct bp_share *share)
{
	const struct bp_cpu_account *here = &account->cpu[share->cpu];

	return READ_ONCE(account->wide) + READ_ONCE(here->guaranteed) + share->guaranteed +
	       (share->flexible || READ_ONCE(here->flexible)) <= account->slots;
}

/* Returns true if the rule holds on the CPUs that @domain is bound to, with these claims. */
static bool places_fit(const struct bp_class_account *account,
		       const struct bp_domain *domain, unsigned int class,
		       unsigned int guaranteed, bool flexible)
{
	struct bp_share share;
	struct rb_node *node;

	for_each_place(domain, class, &share, node) {
		share.guaranteed += guaranteed;
		share.flexible |= flexible;
		if (!share_fits(account, &share))
			return false;
	}

	return true;
}

/* Returns true if the rule holds for one domain with @extra more registers on any CPU. */
static bool any_fits(const struct bp_class_account *account,
		     const struct bp_domain *domain, unsigned int class,
		     int extra, bool flexible)
{
	unsigned int guaranteed = domain->any[class].guaranteed + extra;

	flexible |= domain->any[class].flexible != 0;
	if (READ_ONCE(account->wide) + guaranteed + READ_ONCE(account->worst[flexible]) >
	    account->slots)
		return false;

	return likely(RB_EMPTY_ROOT(&domain->bound)) ||
	       places_fit(account, domain, class, guaranteed, flexible);
}

/* Returns true if the rule holds for one domain with @extra more registers on one CPU. */
static bool bound_fits(const struct bp_slots *bs, const struct bp_domain *domain,
		       unsigned int class, int cpu, int extra, bool flexible)
{
	struct bp_share share = domain_share(domain, class, cpu), others;

	if (unlikely(domain->process)) {
		others = others_share(bs, domain, class, cpu);
		share.guaranteed += others.guaranteed;
		share.flexible |= others.flexible;
	}
	share.guaranteed += extra;
	share.flexible |= flexible;
	return share_fits(&bs->class[class], &share);
}

/*
 * Returns true if the rule holds for a process, or for one of its members, with
 * @extra more registers on any CPU.  The first check is for CPUs that no claim is bound to, and
 * uses the worst CPU.  A claim may be bound to that one; then the rule fails there too.
 */
static noinline bool process_fits(const struct bp_slots *bs,
				  const struct bp_domain *domain,
				  unsigned int class, int extra, bool flexible)
{
	const struct bp_class_account *account = &bs->class[class];
	const struct bp_process *process = domain->process;
	unsigned int worst, guaranteed, cpu;
	bool shared = flexible;

	worst = is_process(domain) ? worst_member(bs, process, class, -1) :
		level_of(domain->any[class].guaranteed, domain->any[class].flexible);
	guaranteed = worst / 2 + process->domain.any[class].guaranteed + extra;
	shared |= (worst & 1) || process->domain.any[class].flexible;
	if (READ_ONCE(account->wide) + guaranteed + READ_ONCE(account->worst[shared]) >
	    account->slots)
		return false;

	if (likely(!process->nr_bound) && RB_EMPTY_ROOT(&domain->bound))
		return true;
	for (cpu = 0; cpu < bs->nr_cpus; cpu++) {
		if (!bound_fits(bs, domain, class, cpu, extra, flexible))
			return false;
	}

	return true;
}

static bool domain_fits(const struct bp_slots *bs, const struct bp_domain *domain,
			unsigned int class, int cpu, int extra, bool flexible)
{
	if (cpu >= 0)
		return bound_fits(bs, domain, class, cpu, extra, flexible);
	if (unlikely(domain->process))
		return process_fits(bs, domain, class, extra, flexible);
	return any_fits(&bs->class[class], domain, class, extra, flexible);
}

/* Maximum number of registers that a domain needs in addition to the claims of a CPU */
static unsigned int worst_domain(const struct bp_class_account *account,
				 const unsigned int *any, unsigned int cpu,
				 bool shared)
{
	unsigned int level, worst = shared;

	for (level = 0; level < nr_levels(account); level++) {
		if (any[level] || atomic_read(&account->cpu[cpu].level[level]))
			worst = max(worst, level_weight(level, shared));
	}

	return worst;
}

/* Returns true if the rule holds on one CPU, with @extra more registers, for all domains. */
static bool cpu_fits(const struct bp_class_account *account,
		     const unsigned int *any, unsigned int cpu,
		     unsigned int extra, bool flexible)
{
	const struct bp_cpu_account *here = &account->cpu[cpu];

	flexible |= here->flexible;
	return account->wide + here->guaranteed + extra +
	       worst_domain(account, any, cpu, flexible) <= account->slots;
}

/* Counts the domains at each level, by their claims for any CPU. */
static void sum_levels(const struct bp_slots *bs, unsigned int class, unsigned int *any)
{
	unsigned int level, n = nr_levels(&bs->class[class]);
	int cpu;

	memset(any, 0, n * sizeof(*any));
	for_each_possible_cpu(cpu) {
		const int *here = per_cpu_ptr(bs->shard, cpu)->level[class];

		for (level = 0; level < n; level++)
			any[level] += here[level];
	}
}

/* Returns true if the rule holds with @extra more registers of a CPU, or of the machine. */
static bool cpus_fit(const struct bp_slots *bs, unsigned int class, int cpu,
		     int extra, bool flexible)
{
	const struct bp_class_account *account = &bs->class[class];
	unsigned int any[BP_LEVELS], c;

	assert_closed(bs);
	sum_levels(bs, class, any);
	if (cpu >= 0)
		return cpu_fits(account, any, cpu, extra, flexible);
	for (c = 0; c < bs->nr_cpus; c++) {
		if (!cpu_fits(account, any, c, extra, flexible))
			return false;
	}

	return true;
}

/* Returns true if the rule holds after a claim has grown by @extra registers. */
static bool fits(const struct bp_slots *bs, const struct bp_domain *domain,
		 unsigned int class, int cpu, int extra, bool flexible)
{
	if (domain)
		return domain_fits(bs, domain, class, cpu, extra, flexible);
	return cpus_fit(bs, class, cpu, extra, flexible);
}

/* ---- Accounting ---- */

/* WRITE_ONCE(): the counts are also read without the lock under which they change. */
static void count_claim(u32 *guaranteed, u32 *flexible,
			const struct bp_claim *claim, bool add)
{
	u32 *count = claim->flexible ? flexible : guaranteed;
	u32 amount = claim->flexible ? 1 : claim->weight;

	if (WARN_ON_ONCE(!add && *count < amount))
		return;
	WRITE_ONCE(*count, add ? *count + amount : *count - amount);
}

static void update_worst(const struct bp_slots *bs,
			 struct bp_class_account *account)
{
	unsigned int cpu, flexible, worst[2] = { };

	for (cpu = 0; cpu < bs->nr_cpus; cpu++) {
		const struct bp_cpu_account *here = &account->cpu[cpu];

		for (flexible = 0; flexible < 2; flexible++)
			worst[flexible] = max(worst[flexible], here->guaranteed +
					      (flexible || here->flexible));
	}
	WRITE_ONCE(account->worst[0], worst[0]);
	WRITE_ONCE(account->worst[1], worst[1]);
}

static void account_cpu(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	struct bp_class_account *account = &bs->class[claim->class];
	struct bp_cpu_account *here = &account->cpu[claim->cpu];

	count_claim(&here->guaranteed, &here->flexible, claim, add);
	update_worst(bs, account);
}

static void move_member(struct bp_process *process, const struct bp_share *from,
			const struct bp_share *to)
{
	struct bp_process_account *here = &process->cpu[from->class][from->cpu];

	if (from->bound)
		here->member[share_level(from)]--;
	if (to->bound)
		here->member[share_level(to)]++;
	process->nr_bound += to->bound - from->bound;
}

/* A domain has a level on a CPU only if it has claims bound to it. */
static void move_level(struct bp_class_account *account,
		       const struct bp_domain *domain,
		       const struct bp_share *from, const struct bp_share *to)
{
	struct bp_cpu_account *here = &account->cpu[from->cpu];

	if (from->bound)
		atomic_dec(&here->level[share_level(from)]);
	if (to->bound)
		atomic_inc(&here->level[share_level(to)]);
	if (unlikely(domain->process))
		move_member(domain->process, from, to);
}

static void count_bound(struct bp_domain *domain, struct bp_claim *claim, bool add)
{
	if (add)
		rb_add(&claim->node, &domain->bound, claim_less);
	else
		rb_erase(&claim->node, &domain->bound);
	if (!claim->flexible)
		WRITE_ONCE(domain->bound_guaranteed,
			   domain->bound_guaranteed + (add ? 1 : -1));
}

/* The share with one more claim that is bound to its CPU */
static struct bp_share share_with(const struct bp_share *share,
				  const struct bp_claim *claim)
{
	struct bp_share with = *share;

	with.bound = true;
	if (claim->flexible)
		with.flexible = true;
	else
		with.guaranteed += claim->weight;
	return with;
}

static void account_bound(struct bp_class_account *account,
			  struct bp_claim *claim, bool add)
{
	struct bp_domain *domain = claim->domain;
	struct bp_share without, with;

	if (!add)
		count_bound(domain, claim, false);
	without = domain_share(domain, claim->class, claim->cpu);
	with = share_with(&without, claim);
	if (add)
		count_bound(domain, claim, true);
	move_level(account, domain, add ? &without : &with, add ? &with : &without);
}

/* Updates the levels on the CPUs that a domain is bound to: its claims for any CPU changed. */
static void move_places(struct bp_class_account *account,
			const struct bp_domain *domain, unsigned int class,
			unsigned int from_guaranteed, bool from_flexible)
{
	struct bp_share share, from, to;
	struct rb_node *node;

	for_each_place(domain, class, &share, node) {
		from = share;
		from.guaranteed += from_guaranteed;
		from.flexible |= from_flexible;
		to = share;
		to.guaranteed += domain->any[class].guaranteed;
		to.flexible |= domain->any[class].flexible != 0;
		move_level(account, domain, &from, &to);
	}
}

static void account_any(struct bp_class_account *account, struct bp_shard *shard,
			struct bp_claim *claim, bool add)
{
	unsigned int class = claim->class, from, to;
	struct bp_domain *domain = claim->domain;
	typeof(domain->any[0]) was = domain->any[class];

	count_claim(&domain->any[class].guaranteed, &domain->any[class].flexible,
		    claim, add);
	if (unlikely(!RB_EMPTY_ROOT(&domain->bound)))
		move_places(account, domain, class, was.guaranteed, was.flexible);

	/* Domains without claims are at level 0, whose count is not used. */
	from = level_of(was.guaranteed, was.flexible);
	to = level_of(domain->any[class].guaranteed, domain->any[class].flexible);
	shard->level[class][from]--;
	shard->level[class][to]++;
	if (unlikely(domain->process)) {
		domain->process->any[class].member[from]--;
		domain->process->any[class].member[to]++;
	}
}

/* ---- Processes ---- */

/* Level of a process and its worst member together; 0 for a process without claims */
static unsigned int process_level(const struct bp_slots *bs,
				  const struct bp_process *process,
				  const struct bp_share *own, int cpu)
{
	unsigned int worst;

	if (!own->guaranteed && !own->flexible)
		return 0;
	worst = worst_member(bs, process, own->class, cpu);
	return level_of(worst / 2 + own->guaranteed, (worst & 1) || own->flexible);
}

static void update_process_any(struct bp_slots *bs, struct bp_shard *shard,
			       struct bp_process *process, unsigned int class)
{
	struct bp_share own = any_share(&process->domain, class, -1);
	unsigned int level = process_level(bs, process, &own, -1);
	struct bp_process_account *here = &process->any[class];

	/* The count of level 0 is not used. */
	shard->level[class][here->accounted]--;
	shard->level[class][level]++;
	here->accounted = level;
}

static void update_process_cpu(struct bp_slots *bs, struct bp_process *process,
			       unsigned int class, unsigned int cpu)
{
	struct bp_share own = domain_share(&process->domain, class, cpu);
	struct bp_process_account *here = &process->cpu[class][cpu];
	atomic_t *count = bs->class[class].cpu[cpu].level;
	unsigned int level = 0;

	/* Without claims bound to @cpu, update_process_any() has counted the process. */
	if (own.bound || highest_member(here, nr_levels(&bs->class[class])))
		level = process_level(bs, process, &own, cpu);
	if (level == here->accounted)
		return;

	if (here->accounted)
		atomic_dec(&count[here->accounted]);
	if (level)
		atomic_inc(&count[level]);
	process->nr_accounted += !!level - !!here->accounted;
	here->accounted = level;
}

/* Updates the levels of a process after a change of its claims, or of those of a member. */
static noinline void update_process(struct bp_slots *bs, struct bp_shard *shard,
				    struct bp_process *process, unsigned int class)
{
	unsigned int cpu;

	lockdep_assert_held(&process->domain.lock);

	update_process_any(bs, shard, process, class);
	if (likely(!process->nr_bound && !process->nr_accounted))
		return;
	for (cpu = 0; cpu < bs->nr_cpus; cpu++)
		update_process_cpu(bs, process, class, cpu);
}

static void account_process(struct bp_process *process, struct bp_claim *claim,
			    bool add)
{
	struct bp_domain *domain = &process->domain;

	if (claim->cpu < 0) {
		count_claim(&domain->any[claim->class].guaranteed,
			    &domain->any[claim->class].flexible, claim, add);
	} else {
		count_bound(domain, claim, add);
		process->nr_bound += add ? 1 : -1;
	}
}

/* Adds the claims of @domain, a new member, to the counts of its process. */
static void add_member(struct bp_process *process, const struct bp_domain *domain,
		       unsigned int class)
{
	struct bp_share share, none;
	struct rb_node *node;
	unsigned int level;

	level = level_of(domain->any[class].guaranteed, domain->any[class].flexible);
	process->any[class].member[level]++;
	for_each_place(domain, class, &share, node) {
		share.guaranteed += domain->any[class].guaranteed;
		share.flexible |= domain->any[class].flexible != 0;
		none = share;
		none.bound = false;
		move_member(process, &none, &share);
	}
}

/* Returns true if the rule holds with @domain as a member of its process. */
static bool member_fits(const struct bp_slots *bs, const struct bp_domain *domain,
			unsigned int class)
{
	return !bs->class[class].slots || process_fits(bs, domain, class, 0, false);
}

static bool process_has_claims(const struct bp_process *process)
{
	unsigned int class;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		if (process->domain.any[class].guaranteed || process->domain.any[class].flexible)
			return true;
	}

	return !RB_EMPTY_ROOT(&process->domain.bound);
}

/*
 * The shard and @domain are locked.  The claims of a member remain accounted as those
 * of its own domain: if the process has no claims, no CPU has to be checked.
 */
static int join(struct bp_slots *bs, struct bp_shard *shard,
		struct bp_domain *domain, struct bp_process *process)
{
	bool shares = process_has_claims(process);
	unsigned int class;

	/* bp_slots_available() takes no lock: it may see @process even if this fails. */
	WRITE_ONCE(domain->process, process);
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		if (shares && !member_fits(bs, domain, class)) {
			WRITE_ONCE(domain->process, NULL);
			return -ENOSPC;
		}
	}
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		add_member(process, domain, class);
		if (shares && bs->class[class].slots)
			update_process(bs, shard, process, class);
	}

	return 0;
}

static void account_domain(struct bp_slots *bs, struct bp_shard *shard,
			   struct bp_claim *claim, bool add)
{
	struct bp_class_account *account = &bs->class[claim->class];

	assert_account(bs, shard, claim->domain);
	if (unlikely(is_process(claim->domain)))
		account_process(claim->domain->process, claim, add);
	else if (claim->cpu < 0)
		account_any(account, shard, claim, add);
	else
		account_bound(account, claim, add);

	if (unlikely(claim->domain->process))
		update_process(bs, shard, claim->domain->process, claim->class);
}

static void account_machine(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	struct bp_class_account *account = &bs->class[claim->class];

	lockdep_assert_held(&bs->lock);
	if (add)
		assert_closed(bs);
	if (claim->cpu < 0)
		WRITE_ONCE(account->wide, account->wide +
			   (add ? claim->weight : -claim->weight));
	else
		account_cpu(bs, claim, add);
}

static void link_claim(struct bp_claim *claim, struct list_head *list, u32 *nr)
{
	list_add_tail(&claim->link, list);
	WRITE_ONCE(*nr, *nr + 1);
	/* Pairs with bp_slots_release(): the caller there sees domain and shard of @claim. */
	smp_store_release(&claim->held, true);
}

static void unlink_claim(struct bp_claim *claim, u32 *nr)
{
	list_del(&claim->link);
	WRITE_ONCE(*nr, *nr - 1);
	/*
	 * Pairs with bp_slots_release(): the claim may be freed by another CPU
	 * that finds it not held.
	 */
	smp_store_release(&claim->held, false);
}

/* ---- Requests ---- */

static int spec_error(const struct bp_slots *bs, const struct bp_claim_spec *spec)
{
	if (spec->class >= BP_SLOTS_CLASSES || !spec->weight ||
	    (spec->flexible && spec->weight != 1))
		return -EINVAL;
	if (!bs->class[spec->class].slots)
		return -EOPNOTSUPP;
	if (spec->weight > bs->class[spec->class].slots)
		return -ENOSPC;
	return 0;
}

static noinline int request_error(const struct bp_slots *bs,
				  const struct bp_claim_spec *spec,
				  const struct bp_domain *domain, int cpu)
{
	int err;

	if (cpu < -1 || (cpu == -1 && !domain && spec->flexible))
		return -EINVAL;
	err = spec_error(bs, spec);
	if (err == -EINVAL)
		return err;
	if (cpu >= (int)bs->nr_cpus)
		return -ENODEV;
	return err;
}

/* Fast check of a request; request_error() finds the error of one that is not fine. */
static bool request_is_fine(const struct bp_slots *bs,
			    const struct bp_claim_spec *spec,
			    const struct bp_domain *domain, int cpu)
{
	/* Unsigned: cpu + 1 is 0 for any CPU, and a weight of 0 becomes too large. */
	return spec->class < BP_SLOTS_CLASSES &&
	       (unsigned int)(cpu + 1) <= bs->nr_cpus &&
	       spec->weight - 1 < bs->class[spec->class].slots &&
	       !(spec->flexible && (spec->weight > 1 || (!domain && cpu < 0)));
}

static int extra_weight(const struct bp_claim_spec *spec)
{
	return spec->flexible ? 0 : spec->weight;
}

static void fill_claim(struct bp_claim *claim, const struct bp_claim_spec *spec,
		       struct bp_domain *domain, int cpu)
{
	claim->domain = domain;
	claim->cpu = cpu;
	claim->class = spec->class;
	claim->weight = spec->weight;
	claim->flexible = spec->flexible;
}

/* The shard and the domain are locked. */
static int reserve_domain(struct bp_slots *bs, struct bp_shard *shard,
			  struct bp_claim *claim, const struct bp_claim_spec *spec,
			  struct bp_domain *domain, int cpu)
{
	if (WARN_ON_ONCE(claim->held))
		return -EINVAL;
	if (!domain_fits(bs, domain, spec->class, cpu, extra_weight(spec),
			 spec->flexible))
		return -ENOSPC;

	fill_claim(claim, spec, domain, cpu);
	/* Pairs with release_from(): a second release of @claim may read it at any time. */
	WRITE_ONCE(claim->shard, smp_processor_id());
	account_domain(bs, shard, claim, true);
	link_claim(claim, &shard->claims, &shard->nr_claims);
	return 0;
}

/* The accounting is closed. */
static int reserve_machine(struct bp_slots *bs, struct bp_claim *claim,
			   const struct bp_claim_spec *spec, int cpu)
{
	if (WARN_ON_ONCE(claim->held))
		return -EINVAL;
	if (!cpus_fit(bs, spec->class, cpu, extra_weight(spec), spec->flexible))
		return -ENOSPC;

	fill_claim(claim, spec, NULL, cpu);
	account_machine(bs, claim, true);
	link_claim(claim, &bs->claims, &bs->nr_claims);
	return 0;
}

static void account_changed(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	if (claim->domain)
		account_domain(bs, per_cpu_ptr(bs->shard, claim->shard), claim, add);
	else
		account_machine(bs, claim, add);
}

static int change_locked(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec)
{
	int extra = extra_weight(spec);

	assert_closed(bs);
	if (claim->flexible != spec->flexible)
		return -EINVAL;

	/* A claim does not compete with itself. */
	if (claim->class == spec->class && !spec->flexible)
		extra -= claim->weight;
	if (extra >= 0 && !fits(bs, claim->domain, spec->class, claim->cpu, extra,
				spec->flexible))
		return -ENOSPC;

	account_changed(bs, claim, false);
	claim->class = spec->class;
	claim->weight = spec->weight;
	account_changed(bs, claim, true);
	return 0;
}

static int change(struct bp_slots *bs, struct bp_claim *claim,
		  const struct bp_claim_spec *spec)
{
	struct bp_domain *domain = claim->domain;
	int err;

	if (domain)
		lock_domain(domain);
	err = change_locked(bs, claim, spec);
	if (domain)
		unlock_domain(domain);

	return err;
}

/* ---- Interface ---- */

int bp_slots_reserve(struct bp_slots *bs, struct bp_claim *claim,
		     const struct bp_claim_spec *spec, struct bp_domain *domain,
		     int cpu)
{
	struct bp_shard *shard;
	unsigned long flags;
	int err;

	if (unlikely(!request_is_fine(bs, spec, domain, cpu)))
		return request_error(bs, spec, domain, cpu);

	local_irq_save(flags);
	if (domain) {
		shard = this_cpu_ptr(bs->shard);
		lock_shard(bs, shard);
		lock_domain(domain);
		err = reserve_domain(bs, shard, claim, spec, domain, cpu);
		unlock_domain(domain);
		raw_spin_unlock(&shard->lock);
	} else {
		close_accounting(bs);
		err = reserve_machine(bs, claim, spec, cpu);
		open_accounting(bs);
	}
	local_irq_restore(flags);

	return err;
}

int bp_slots_join(struct bp_slots *bs, struct bp_domain *domain,
		  struct bp_process *process)
{
	struct bp_shard *shard;
	unsigned long flags;
	int err = 0;

	local_irq_save(flags);
	shard = this_cpu_ptr(bs->shard);
	lock_shard(bs, shard);
	raw_spin_lock(&domain->lock);
	if (!domain->process) {
		raw_spin_lock(&process->domain.lock);
		err = join(bs, shard, domain, process);
		raw_spin_unlock(&process->domain.lock);
	}
	raw_spin_unlock(&domain->lock);
	raw_spin_unlock(&shard->lock);
	local_irq_restore(flags);

	return err;
}

int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec, int cpu)
{
	unsigned long flags;
	int err = -EBUSY;

	if (!request_is_fine(bs, spec, NULL, cpu))
		return request_error(bs, spec, NULL, cpu);

	local_irq_save(flags);
	if (try_close_accounting(bs)) {
		err = reserve_machine(bs, claim, spec, cpu);
		open_accounting(bs);
	}
	local_irq_restore(flags);

	return err;
}

int bp_slots_change_all(struct bp_slots *bs,
			struct bp_claim *(*next)(struct bp_claim *claim, void *arg),
			void *arg, const struct bp_claim_spec *old,
			const struct bp_claim_spec *new)
{
	struct bp_claim *claim, *refused;
	unsigned long flags;
	int err;

	err = spec_error(bs, new);
	if (err)
		return err;

	local_irq_save(flags);
	close_accounting(bs);
	for (claim = next(NULL, arg); claim; claim = next(claim, arg)) {
		if (!claim->held)
			continue;
		err = change(bs, claim, new);
		if (err)
			break;
	}
	/* Changing back cannot fail: no claim was added since the old ones were accounted. */
	refused = claim;
	for (claim = next(NULL, arg); err && claim != refused; claim = next(claim, arg)) {
		if (claim->held)
			WARN_ON_ONCE(change(bs, claim, old));
	}
	open_accounting(bs);
	local_irq_restore(flags);

	return err;
}

/*
 * Releases a claim that was found in shard @nr.  Returns false if the claim is no longer
 * there: it has been released, and possibly made again in another shard.
 */
static bool release_from(struct bp_slots *bs, struct bp_claim *claim,
			 unsigned int nr)
{
	struct bp_shard *shard = per_cpu_ptr(bs->shard, nr);
	struct bp_domain *domain;
	bool found;

	lock_shard(bs, shard);
	/* Pairs with link_claim(), which may run under the lock of another shard. */
	found = smp_load_acquire(&claim->held) && READ_ONCE(claim->shard) == nr;
	if (found) {
		domain = claim->domain;
		lock_domain(domain);
		account_domain(bs, shard, claim, false);
		unlink_claim(claim, &shard->nr_claims);
		unlock_domain(domain);
	}
	raw_spin_unlock(&shard->lock);

	return found;
}

/* bp_slots::lock is held.  A release allows more claims: the accounting may stay open. */
static void release_machine(struct bp_slots *bs, struct bp_claim *claim)
{
	if (claim->held) {
		account_machine(bs, claim, false);
		unlink_claim(claim, &bs->nr_claims);
	}
}

/*
 * A claim may be released twice at the same time.  The second caller may free the claim
 * and drop its reference to the context with the domain while the first caller still
 * holds the locks: interrupts are off, so RCU keeps the context.
 */
static bool release(struct bp_slots *bs, struct bp_claim *claim)
{
	unsigned long flags;
	bool found = true;

	local_irq_save(flags);
	if (likely(claim->domain)) {
		found = release_from(bs, claim, READ_ONCE(claim->shard));
	} else {
		raw_spin_lock(&bs->lock);
		release_machine(bs, claim);
		raw_spin_unlock(&bs->lock);
	}
	local_irq_restore(flags);

	return found;
}

void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim)
{
	/* Pairs with link_claim() and unlink_claim(). */
	while (smp_load_acquire(&claim->held)) {
		if (release(bs, claim))
			break;
	}
}

int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim)
{
	unsigned long flags;

	/* Pairs with unlink_claim(). */
	if (!smp_load_acquire(&claim->held))
		return 0;
	if (WARN_ON_ONCE(claim->domain))
		return -EINVAL;

	if (!raw_spin_trylock_irqsave(&bs->lock, flags))
		return -EBUSY;
	release_machine(bs, claim);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return 0;
}

/* Claims that are bound to a CPU can be read only under the lock of the domain. */
static unsigned int guaranteed_on(struct bp_domain *domain, unsigned int class,
				  int cpu)
{
	unsigned int guaranteed;
	unsigned long flags;

	if (!READ_ONCE(domain->bound_guaranteed))
		return READ_ONCE(domain->any[class].guaranteed);

	raw_spin_lock_irqsave(&domain->lock, flags);
	guaranteed = domain_share(domain, class, cpu).guaranteed;
	raw_spin_unlock_irqrestore(&domain->lock, flags);

	return guaranteed;
}

unsigned int bp_slots_available(const struct bp_slots *bs, unsigned int class,
				struct bp_domain *domain, int cpu)
{
	const struct bp_class_account *account = &bs->class[class];
	struct bp_process *process;
	unsigned int guaranteed;

	/* The numbers may be of different moments: a request may change them meanwhile. */
	guaranteed = READ_ONCE(account->wide) +
		     READ_ONCE(account->cpu[cpu].guaranteed);
	if (domain) {
		guaranteed += guaranteed_on(domain, class, cpu);
		process = process_of_member(domain);
		if (unlikely(process))
			guaranteed += guaranteed_on(&process->domain, class, cpu);
	}

	return account->slots - min(guaranteed, account->slots);
}

/* ---- Walks ---- */

/* The claims of CPUs and of the machine come first, then one shard after another. */
#define WALK_MACHINE	(-1)

static struct list_head *lock_walked(struct bp_slots *bs, int at)
	__acquires(bs)
{
	struct bp_shard *shard;

	if (at == WALK_MACHINE) {
		raw_spin_lock(&bs->lock);
		return &bs->claims;
	}
	shard = per_cpu_ptr(bs->shard, at);
	lock_shard(bs, shard);
	return &shard->claims;
}

static void unlock_walked(struct bp_slots *bs, int at)
	__releases(bs)
{
	if (at == WALK_MACHINE)
		raw_spin_unlock(&bs->lock);
	else
		raw_spin_unlock(&per_cpu_ptr(bs->shard, at)->lock);
}

static void place_mark(struct bp_slots *bs, struct bp_walk *walk, int at)
{
	unsigned long flags;

	walk->at = at;
	if (at >= (int)nr_cpu_ids)
		return;
	local_irq_save(flags);
	list_add(&walk->mark.link, lock_walked(bs, at));
	unlock_walked(bs, at);
	local_irq_restore(flags);
}

static void remove_mark(struct bp_slots *bs, struct bp_walk *walk)
{
	unsigned long flags;

	local_irq_save(flags);
	lock_walked(bs, walk->at);
	list_del(&walk->mark.link);
	unlock_walked(bs, walk->at);
	local_irq_restore(flags);
}

/* Moves the mark behind the next claim of its list and calls @look for that claim. */
static bool walk_list(struct bp_slots *bs, struct bp_walk *walk,
		      void (*look)(const struct bp_claim *claim, void *arg),
		      void *arg)
{
	struct bp_claim *claim = &walk->mark;
	struct list_head *list;
	unsigned long flags;
	bool found = false;

	local_irq_save(flags);
	list = lock_walked(bs, walk->at);
	list_for_each_entry_continue(claim, list, link) {
		/* The mark of another walk */
		if (!claim->weight)
			continue;
		list_move(&walk->mark.link, &claim->link);
		look(claim, arg);
		found = true;
		break;
	}
	unlock_walked(bs, walk->at);
	local_irq_restore(flags);

	return found;
}

void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk)
{
	*walk = (struct bp_walk) { };
	place_mark(bs, walk, WALK_MACHINE);
}

bool bp_slots_walk_next(struct bp_slots *bs, struct bp_walk *walk,
			void (*look)(const struct bp_claim *claim, void *arg),
			void *arg)
{
	while (walk->at < (int)nr_cpu_ids) {
		if (walk_list(bs, walk, look, arg))
			return true;
		remove_mark(bs, walk);
		place_mark(bs, walk, cpumask_next(walk->at, cpu_possible_mask));
	}

	return false;
}

void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk)
{
	if (walk->at < (int)nr_cpu_ids)
		remove_mark(bs, walk);
}

unsigned long bp_slots_nr_claims(const struct bp_slots *bs)
{
	unsigned long n = READ_ONCE(bs->nr_claims);
	int cpu;

	/* Each number is at least 0: a claim leaves the same shard that it was added to. */
	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu_ptr(bs->shard, cpu)->nr_claims);

	return n;
}

/* ---- Start and end ---- */

int bp_process_init(const struct bp_slots *bs, struct bp_process *process)
{
	unsigned int class;

	memset(process, 0, sizeof(*process));
	/* Not bp_domain_init(): the lock nests inside those of members. */
	raw_spin_lock_init(&process->domain.lock);
	process->domain.process = process;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		if (!bs->class[class].slots)
			continue;
		process->cpu[class] = kvcalloc(bs->nr_cpus, sizeof(*process->cpu[class]),
					       GFP_KERNEL_ACCOUNT);
		if (!process->cpu[class]) {
			bp_process_destroy(process);
			return -ENOMEM;
		}
	}

	return 0;
}

void bp_process_destroy(struct bp_process *process)
{
	unsigned int class;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		WARN_ON_ONCE(process->any[class].accounted);
		kvfree(process->cpu[class]);
		process->cpu[class] = NULL;
	}
	WARN_ON_ONCE(process->nr_bound || process->nr_accounted);
}

static int init_shards(struct bp_slots *bs)
{
	int cpu;

	bs->shard = alloc_percpu(struct bp_shard);
	if (!bs->shard)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct bp_shard *shard = per_cpu_ptr(bs->shard, cpu);

		raw_spin_lock_init(&shard->lock);
		INIT_LIST_HEAD(&shard->claims);
	}

	return 0;
}

static int init_class(struct bp_slots *bs, struct bp_class_account *account,
		      unsigned int slots)
{
	if (slots > BP_SLOTS_MAX)
		return -EINVAL;
	account->cpu = kcalloc(bs->nr_cpus, sizeof(*account->cpu), GFP_KERNEL);
	if (!account->cpu)
		return -ENOMEM;
	account->slots = slots;
	update_worst(bs, account);
	return 0;
}

int bp_slots_init(struct bp_slots *bs, unsigned int nr_cpus,
		  const unsigned int slots[BP_SLOTS_CLASSES])
{
	unsigned int class;
	int err;

	memset(bs, 0, sizeof(*bs));
	raw_spin_lock_init(&bs->lock);
	INIT_LIST_HEAD(&bs->claims);
	bs->nr_cpus = nr_cpus;

	err = init_shards(bs);
	for (class = 0; !err && class < BP_SLOTS_CLASSES; class++)
		err = init_class(bs, &bs->class[class], slots[class]);
	if (err)
		bp_slots_destroy(bs);

	return err;
}

void bp_slots_destroy(struct bp_slots *bs)
{
	unsigned int class;

	WARN_ON_ONCE(bs->shard && bp_slots_in_use(bs));
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		kfree(bs->class[class].cpu);
		bs->class[class].cpu = NULL;
	}
	free_percpu(bs->shard);
	bs->shard = NULL;
}
