// SPDX-License-Identifier: GPL-2.0
/*
 * Arbitration of breakpoint registers; bp_slots.h states the rule.
 *
 * A request is checked first and accounted only if the rule holds with it, so a refused
 * request changes nothing and no CPU sees it.  A claim costs no allocation, and no step
 * depends on the number of domains or flexible claims: worst cases are read off
 * histograms.  Claims of a domain cost the same on any number of CPUs, except in a domain
 * that mixes claims for one CPU with claims for every CPU, which pays for the CPUs that
 * it is bound to, and in a process any claim of which is bound to a CPU.  Claims of a CPU
 * or of the machine look at every CPU.
 */

#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "bp_slots.h"

static_assert(NR_CPUS <= 1 << (8 * sizeof_field(struct bp_claim, cpu) - 1));

/* ---- Locking ---- */

/*
 * Claims of domains come and go with each open, close, fork and exit of a breakpoint, on
 * all CPUs at the same time; claims of a CPU and of the machine are rare.  So the rare
 * requests stop all others:
 *
 * 1. A claim of a domain belongs to the shard of the CPU on which it was made, until it
 *    is released.  A request that makes, changes or releases the claim locks that shard,
 *    then the domain.  Two tasks that make and release claims on two CPUs write no cache
 *    line in common, unless both are bound to the same third CPU (see 5).  The load of a
 *    shard is limited to the claims that one CPU can make.
 * 2. A request that makes or changes a claim of a CPU or of the machine, or changes the
 *    class of a family of claims, closes the accounting: it locks bp_slots::global,
 *    then sets bp_shard::closed of each other shard, under the lock of that shard.  The
 *    shards are opened again in the same way before bp_slots::global is unlocked.  The
 *    release of a claim of a CPU or of the machine closes nothing: see 5.
 * 3. A CPU that finds a shard closed waits for the lock of bp_slots::global, unless it
 *    has closed the accounting itself.  A shard that was locked while it was open stays
 *    open until it is unlocked.
 * 4. Order: bp_slots::global, another shard, a member, its process.  All are locked with
 *    interrupts off, under raw locks of perf too, never in an NMI.  No two other shards
 *    and no two members are locked at a time.
 * 5. The data that the rule is computed from, and their locks:
 *      bp_class_account::wide, ::worst, bp_cpu_account::guaranteed, ::flexible
 *	    grow while the accounting is closed, shrink under the lock of bp_slots::global:
 *	    what fits with a value that was read under the lock of an open shard still fits
 *      bp_shard::claims, ::nr_claims, ::level
 *	    the lock of the shard.  A domain may reach a level in one shard and leave it in
 *	    another: only the sum over all shards, while these are closed, is meaningful
 *      bp_cpu_account::level
 *	    atomic, because domains of any shard may be bound to the CPU; stable while
 *	    the accounting is closed
 *      bp_domain, bp_process
 *	    the lock of the domain, and that of a shard.  bp_domain::process is set once
 * 6. A kernel debugger waits for nothing: a lock of a stopped CPU never gets free.
 *    Without SMP a lock has no state: a debugger that stops the CPU in a request must set
 *    no breakpoints.
 *
 * The rule is exact: a claim of a domain is checked while its domain and process are locked
 * and the claims of CPUs do not grow, and changes the left side of the rule for these alone.
 * A claim of a CPU or of the machine is checked while no data of the rule changes.
 */

static void assert_closed(const struct bp_slots *bs)
{
	lockdep_assert_held(&bs->global.lock);
	lockdep_assert(raw_cpu_ptr(bs->shard)->closed);
}

static void lock_shard(struct bp_slots *bs, struct bp_shard *shard)
	__acquires(&shard->lock)
{
	raw_spin_lock(&shard->lock);
	if (likely(!shard->closed) || READ_ONCE(bs->closed_by) == smp_processor_id())
		return;
	raw_spin_unlock(&shard->lock);

	/* Shards are closed only while the lock of bp_slots::global is held. */
	raw_spin_lock(&bs->global.lock);
	raw_spin_lock(&shard->lock);
	raw_spin_unlock(&bs->global.lock);
}

/* Opens the shards of the CPUs before @end, which are all that are closed. */
static void open_accounting(struct bp_slots *bs, int end)
{
	struct bp_shard *shard;
	int cpu;

	WRITE_ONCE(bs->closed_by, -1);
	for_each_possible_cpu(cpu) {
		if (cpu == end)
			break;
		shard = per_cpu_ptr(bs->shard, cpu);
		/* A debugger may have stopped this CPU with the lock of another shard. */
		raw_spin_lock_nested(&shard->lock, SINGLE_DEPTH_NESTING);
		shard->closed = false;
		raw_spin_unlock(&shard->lock);
	}
	raw_spin_unlock(&bs->global.lock);
}

/* To open shards again waits for no stopped CPU: they were free when CPUs were stopped. */
static bool close_accounting(struct bp_slots *bs, bool wait)
{
	struct bp_shard *shard;
	int cpu;

	if (wait)
		raw_spin_lock(&bs->global.lock);
	else if (!raw_spin_trylock(&bs->global.lock))
		return false;

	for_each_possible_cpu(cpu) {
		shard = per_cpu_ptr(bs->shard, cpu);
		if (wait) {
			raw_spin_lock(&shard->lock);
		} else if (!raw_spin_trylock(&shard->lock)) {
			open_accounting(bs, cpu);
			return false;
		}
		shard->closed = true;
		raw_spin_unlock(&shard->lock);
	}
	WRITE_ONCE(bs->closed_by, smp_processor_id());
	return true;
}

/* ---- Holders ---- */

/*
 * A holder is a thread, a process or, without a domain, the machine with its CPUs.  A
 * thread may be below a process; threads and processes are below the machine.  A holder
 * has counts of the holders below it, by their level on each CPU and for any CPU.
 */

static inline bool is_process(const struct bp_domain *domain)
{
	return unlikely(domain->process) && &domain->process->domain == domain;
}

/* The process above a thread; NULL stands for the machine. */
static struct bp_domain *parent_of(const struct bp_domain *domain)
{
	struct bp_process *process = READ_ONCE(domain->process);

	return unlikely(process) && &process->domain != domain ? &process->domain : NULL;
}

/* Locks a thread and its process, or nothing for a claim of the machine or of a CPU. */
static void lock_domain(struct bp_domain *domain)
{
	for (; domain; domain = parent_of(domain))
		raw_spin_lock(&domain->lock);
}

static void unlock_domain(struct bp_domain *domain)
{
	struct bp_domain *parent;

	for (; domain; domain = parent) {
		parent = parent_of(domain);
		raw_spin_unlock(&domain->lock);
	}
}

/* ---- Sums ---- */

/*
 * A sum of claims is one number: the guaranteed weight in units of SUM_WEIGHT, plus the
 * number of summands with a flexible claim.  All of these share one register: 2 * weight +
 * (any flexible claim) is the level of a holder.
 */
#define SUM_WEIGHT	16

static unsigned int sum_of(u32 guaranteed, u32 flexible)
{
	return SUM_WEIGHT * guaranteed + !!flexible;
}

static bool is_shared(unsigned int sum)
{
	return sum % SUM_WEIGHT;
}

static unsigned int level_of(unsigned int sum)
{
	return 2 * (sum / SUM_WEIGHT) + is_shared(sum);
}

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
static struct bp_claim *first_from(const struct bp_domain *domain, int cpu,
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

	return claim_entry(first);
}

static unsigned int sum_bound(const struct bp_domain *domain, unsigned int class, int cpu)
{
	unsigned int sum = 0;
	struct bp_claim *claim;

	for (claim = first_from(domain, cpu, class);
	     claim && !cmp_place(claim, cpu, class) && !is_shared(sum);
	     claim = claim_entry(rb_next(&claim->node)))
		sum += claim->flexible ? 1 : SUM_WEIGHT * claim->weight;

	return sum;
}

static unsigned int sum_any(const struct bp_domain *domain, unsigned int class)
{
	return sum_of(domain->any[class].guaranteed, domain->any[class].flexible);
}

/* ---- Holders below ---- */

/* The level of the worst domain of the machine, by claims for any CPU */
static unsigned int worst_of_shards(const struct bp_slots *bs, unsigned int class)
{
	unsigned int level, top = 2 * bs->class[class].slots;
	int count[BP_LEVELS] = { }, cpu;

	assert_closed(bs);
	for_each_possible_cpu(cpu) {
		const int *here = per_cpu_ptr(bs->shard, cpu)->level[class];

		for (level = 0; level <= top; level++)
			count[level] += here[level];
	}
	while (top && !count[top])
		top--;

	return top;
}

/*
 * The numbers of holders below a process, or below the machine on a CPU, at each level:
 * those that are bound to @cpu or, if that is -1, all by their claims for any CPU.
 */
static atomic_t *levels_below(const struct bp_slots *bs, const struct bp_domain *holder,
			      unsigned int class, int cpu)
{
	return holder ? holder->process->level[class][cpu + 1] :
			bs->class[class].cpu[cpu].level;
}

/* The sum of the worst of them; the highest level takes the most registers. */
static noinline unsigned int worst_below(const struct bp_slots *bs,
					 const struct bp_domain *holder,
					 unsigned int class, int cpu)
{
	unsigned int level = 2 * bs->class[class].slots;
	const atomic_t *count;

	if (holder || cpu >= 0) {
		count = levels_below(bs, holder, class, cpu);
		while (level && !atomic_read(&count[level]))
			level--;
	} else {
		level = worst_of_shards(bs, class);
	}

	return sum_of(level / 2, level & 1);
}

/* Returns true if claims of a holder, or of one above or below it, may be bound to a CPU. */
static inline bool is_bound(const struct bp_domain *holder)
{
	if (unlikely(!holder || holder->process))
		return !holder || holder->process->nr_bound;
	return !RB_EMPTY_ROOT(&holder->bound);
}

/* The next of these CPUs; after @cpu */
static int next_cpu(const struct bp_slots *bs, const struct bp_domain *holder, int cpu)
{
	struct bp_claim *claim;

	cpu++;
	if (!holder || holder->process)
		return cpu;
	claim = first_from(holder, cpu, 0);
	return claim ? claim->cpu : bs->nr_cpus;
}

/* ---- The rule ---- */

/* The left side of the rule, for @sum of a thread and its process, on @cpu or the worst CPU */
static unsigned int registers(const struct bp_class_account *account, int cpu, unsigned int sum)
{
	unsigned int used = READ_ONCE(account->wide) + sum / SUM_WEIGHT;
	const struct bp_cpu_account *here;

	if (cpu < 0)
		return used + READ_ONCE(account->worst[is_shared(sum)]);
	here = &account->cpu[cpu];
	return used + READ_ONCE(here->guaranteed) +
	       (is_shared(sum) || READ_ONCE(here->flexible));
}

/* Returns true if the rule holds with @sum more for a holder and those below it. */
static bool holds(const struct bp_slots *bs, const struct bp_domain *holder,
		  unsigned int class, int cpu, unsigned int sum)
{
	for (; holder; holder = parent_of(holder))
		sum += sum_any(holder, class) +
		       (cpu < 0 ? 0 : sum_bound(holder, class, cpu));

	return registers(&bs->class[class], cpu, sum) <= bs->class[class].slots;
}

/*
 * Returns true if the rule holds with @extra more for a holder on @cpu, or on any CPU if
 * that is -1.  For any CPU this looks first at the worst CPU and claims for any CPU: if a
 * claim is bound to the worst CPU, the rule fails there too.
 */
static bool fits(const struct bp_slots *bs, const struct bp_domain *holder,
		 unsigned int class, int cpu, unsigned int extra)
{
	bool below = !holder || is_process(holder), all = cpu < 0 && is_bound(holder);
	unsigned int any = below ? worst_below(bs, holder, class, -1) : 0, worst = any;

	do {
		if (below && cpu >= 0)
			worst = max(any, worst_below(bs, holder, class, cpu));
		if (!holds(bs, holder, class, cpu, worst + extra))
			return false;
		if (all)
			cpu = next_cpu(bs, holder, cpu);
	} while (all && cpu < (int)bs->nr_cpus);

	return true;
}

/* ---- Accounting ---- */

/* WRITE_ONCE(): the counts are also read without the lock under which they change. */
static inline void count_claim(u32 *guaranteed, u32 *flexible,
			       const struct bp_claim *claim, bool add)
{
	u32 *count = claim->flexible ? flexible : guaranteed, amount = claim->weight;

	if (WARN_ON_ONCE(!add && *count < amount))
		return;
	WRITE_ONCE(*count, add ? *count + amount : *count - amount);
}

static void update_worst(const struct bp_slots *bs, struct bp_class_account *account)
{
	unsigned int cpu, worst[2] = { };

	for (cpu = 0; cpu < bs->nr_cpus; cpu++) {
		const struct bp_cpu_account *here = &account->cpu[cpu];

		worst[0] = max(worst[0], here->guaranteed + !!here->flexible);
		worst[1] = max(worst[1], here->guaranteed + 1);
	}
	WRITE_ONCE(account->worst[0], worst[0]);
	WRITE_ONCE(account->worst[1], worst[1]);
}

static inline void count_own(struct bp_claim *claim, bool add)
{
	struct bp_domain *domain = claim->domain;
	bool bound = !RB_EMPTY_ROOT(&domain->bound);

	if (claim->cpu < 0) {
		count_claim(&domain->any[claim->class].guaranteed,
			    &domain->any[claim->class].flexible, claim, add);
		return;
	}
	if (add)
		rb_add(&claim->node, &domain->bound, claim_less);
	else
		rb_erase(&claim->node, &domain->bound);
	if (!claim->flexible)
		WRITE_ONCE(domain->bound_guaranteed,
			   domain->bound_guaranteed + (add ? 1 : -1));
	if (unlikely(domain->process))
		domain->process->nr_bound += !RB_EMPTY_ROOT(&domain->bound) - bound;
}

/*
 * The level at which a thread, or a process with claims, is counted: for any CPU if @cpu is
 * -1, else on @cpu, or 0 if it is not bound there.  A process is counted with its worst
 * member, and is bound where a member is.
 */
static __always_inline unsigned int level_at(const struct bp_slots *bs,
					     const struct bp_domain *domain,
					     unsigned int class, int cpu)
{
	unsigned int bound = cpu < 0 ? 0 : sum_bound(domain, class, cpu), worst = 0;
	unsigned int sum = sum_any(domain, class) + bound;

	if (is_process(domain) && sum) {
		worst = worst_below(bs, domain, class, cpu);
		bound += worst;
		if (cpu >= 0)
			worst = max(worst, worst_below(bs, domain, class, -1));
	}
	return cpu < 0 || bound ? level_of(sum + worst) : 0;
}

/* Adds @n to the counts of the machine. The count of level 0 is not used. */
static __always_inline void count_level(struct bp_slots *bs, struct bp_shard *shard,
					unsigned int class, int cpu,
					unsigned int level, int n)
{
	if (cpu < 0)
		shard->level[class][level] += n;
	else if (level)
		atomic_add(n, &levels_below(bs, NULL, class, cpu)[level]);
}

/* Adds @n to the counts of each holder above a thread or a process; of all CPUs if @cpu is -1 */
static noinline void count_holder(struct bp_slots *bs, struct bp_shard *shard,
				  const struct bp_domain *domain, unsigned int class,
				  int cpu, int n)
{
	const struct bp_domain *parent = parent_of(domain);
	bool all = cpu < 0 && is_bound(domain);
	unsigned int level;

	do {
		level = level_at(bs, domain, class, cpu);
		count_level(bs, shard, class, cpu, level, n);
		if (level && parent)
			atomic_add(n, &levels_below(bs, parent, class, cpu)[level]);
		if (all)
			cpu = next_cpu(bs, domain, cpu);
	} while (all && cpu < (int)bs->nr_cpus);
}

/* The common case: the level of one holder changes, for any CPU or on one. */
static __always_inline void move_level(struct bp_slots *bs, struct bp_shard *shard,
				       struct bp_claim *claim, int cpu, bool add)
{
	struct bp_domain *domain = claim->domain;
	unsigned int class = claim->class;

	count_level(bs, shard, class, cpu, level_at(bs, domain, class, cpu), -1);
	count_own(claim, add);
	count_level(bs, shard, class, cpu, level_at(bs, domain, class, cpu), 1);
}

static void account_domain(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	struct bp_shard *shard = per_cpu_ptr(bs->shard, claim->shard);
	struct bp_domain *domain = claim->domain, *parent = parent_of(domain);
	int cpu = claim->cpu, class = claim->class;

	lockdep_assert_held(&shard->lock);
	lockdep_assert_held(&domain->lock);

	/* Most claims are of one thread, and for any CPU. */
	if (likely(!parent && cpu < 0 && !is_bound(domain))) {
		move_level(bs, shard, claim, -1, add);
		return;
	}
	if (!parent && cpu >= 0) {
		move_level(bs, shard, claim, cpu, add);
		return;
	}

	/* The level of a process depends on its members. */
	if (parent)
		count_holder(bs, shard, parent, class, cpu, -1);
	count_holder(bs, shard, domain, class, cpu, -1);
	count_own(claim, add);
	count_holder(bs, shard, domain, class, cpu, 1);
	if (parent)
		count_holder(bs, shard, parent, class, cpu, 1);
}

static noinline void account_machine(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	struct bp_class_account *account = &bs->class[claim->class];
	struct bp_cpu_account *here;

	lockdep_assert_held(&bs->global.lock);
	if (add)
		assert_closed(bs);
	if (claim->cpu < 0) {
		WRITE_ONCE(account->wide, account->wide +
			   (add ? claim->weight : -claim->weight));
		return;
	}
	here = &account->cpu[claim->cpu];
	count_claim(&here->guaranteed, &here->flexible, claim, add);
	update_worst(bs, account);
}

static inline void account(struct bp_slots *bs, struct bp_claim *claim, bool add)
{
	if (claim->domain)
		account_domain(bs, claim, add);
	else
		account_machine(bs, claim, add);
}

static void count_member(struct bp_slots *bs, struct bp_shard *shard,
			 const struct bp_domain *domain, const struct bp_process *process,
			 int n)
{
	unsigned int class;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		if (!bs->class[class].slots)
			continue;
		count_holder(bs, shard, domain, class, -1, n);
		count_holder(bs, shard, &process->domain, class, -1, n);
	}
}

static void add_claim(struct bp_slots *bs, struct bp_shard *shard, struct bp_claim *claim)
{
	account(bs, claim, true);
	list_add_tail(&claim->link, &shard->claims);
	WRITE_ONCE(shard->nr_claims, shard->nr_claims + 1);
	/* Pairs with lock_claim(): the caller there sees domain and shard of @claim. */
	smp_store_release(&claim->held, true);
}

static void remove_claim(struct bp_slots *bs, struct bp_shard *shard, struct bp_claim *claim)
{
	account(bs, claim, false);
	list_del(&claim->link);
	WRITE_ONCE(shard->nr_claims, shard->nr_claims - 1);
	/* Pairs with lock_claim(): a caller that finds @claim not held may free it. */
	smp_store_release(&claim->held, false);
}

/* ---- Requests ---- */

static int request_error(const struct bp_slots *bs, const struct bp_claim_spec *spec,
			 const struct bp_domain *domain, int cpu)
{
	unsigned int slots;

	if (cpu < -1 || spec->class >= BP_SLOTS_CLASSES || !spec->weight)
		return -EINVAL;
	if (spec->flexible && (spec->weight != 1 || (cpu < 0 && !domain)))
		return -EINVAL;
	if (cpu >= (int)bs->nr_cpus)
		return -ENODEV;
	slots = bs->class[spec->class].slots;
	if (!slots)
		return -EOPNOTSUPP;
	return spec->weight > slots ? -ENOSPC : 0;
}

/* The locks that the accounting of the claim needs are held. */
static int reserve(struct bp_slots *bs, struct bp_claim *claim,
		   const struct bp_claim_spec *spec, struct bp_domain *domain, int cpu,
		   struct bp_shard *shard)
{
	unsigned int extra = spec->flexible ? 1 : SUM_WEIGHT * spec->weight;

	if (WARN_ON_ONCE(claim->held))
		return -EINVAL;
	if (!fits(bs, domain, spec->class, cpu, extra))
		return -ENOSPC;

	claim->domain = domain;
	claim->cpu = cpu;
	claim->class = spec->class;
	claim->weight = spec->weight;
	claim->flexible = spec->flexible;
	/* Pairs with lock_claim(): a second release of @claim may read it at any time. */
	WRITE_ONCE(claim->shard, smp_processor_id());
	add_claim(bs, shard, claim);
	return 0;
}

/* As reserve(). With @check nothing changes. */
static int change(struct bp_slots *bs, struct bp_claim *claim,
		  const struct bp_claim_spec *spec, bool check)
{
	int extra = spec->flexible ? 1 : SUM_WEIGHT * spec->weight;

	if (claim->flexible != spec->flexible)
		return -EINVAL;
	/* A claim does not compete with itself. */
	if (claim->class == spec->class && !spec->flexible)
		extra -= SUM_WEIGHT * claim->weight;
	if (extra >= 0 && !fits(bs, claim->domain, spec->class, claim->cpu, extra))
		return -ENOSPC;
	if (check)
		return 0;

	account(bs, claim, false);
	claim->class = spec->class;
	claim->weight = spec->weight;
	account(bs, claim, true);
	return 0;
}

/* Another CPU may release the claim meanwhile, and make it again in another shard. */
static inline struct bp_shard *lock_claim(struct bp_slots *bs, struct bp_claim *claim)
{
	struct bp_shard *shard;
	unsigned int nr;

	/* Pairs with add_claim() and remove_claim(). */
	while (smp_load_acquire(&claim->held)) {
		nr = READ_ONCE(claim->shard);
		shard = claim->domain ? per_cpu_ptr(bs->shard, nr) : &bs->global;
		lock_shard(bs, shard);
		/* Pairs with add_claim(), which may run under the lock of another shard. */
		if (smp_load_acquire(&claim->held) && READ_ONCE(claim->shard) == nr) {
			lock_domain(claim->domain);
			return shard;
		}
		raw_spin_unlock(&shard->lock);
	}

	return NULL;
}

static void unlock_claim(struct bp_domain *domain, struct bp_shard *shard)
{
	unlock_domain(domain);
	raw_spin_unlock(&shard->lock);
}

/* ---- Interface ---- */

static int make_claim(struct bp_slots *bs, struct bp_claim *claim,
		      const struct bp_claim_spec *spec, struct bp_domain *domain,
		      int cpu, bool wait)
{
	int err = request_error(bs, spec, domain, cpu);
	struct bp_shard *shard = &bs->global;
	unsigned long flags;

	if (err)
		return err;

	local_irq_save(flags);
	if (likely(domain)) {
		shard = this_cpu_ptr(bs->shard);
		lock_shard(bs, shard);
		lock_domain(domain);
	} else if (!close_accounting(bs, wait)) {
		local_irq_restore(flags);
		return -EBUSY;
	}
	err = reserve(bs, claim, spec, domain, cpu, shard);
	if (likely(domain))
		unlock_claim(domain, shard);
	else
		open_accounting(bs, nr_cpu_ids);
	local_irq_restore(flags);

	return err;
}

int bp_slots_reserve(struct bp_slots *bs, struct bp_claim *claim,
		     const struct bp_claim_spec *spec, struct bp_domain *domain,
		     int cpu)
{
	return make_claim(bs, claim, spec, domain, cpu, true);
}

int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec, int cpu)
{
	return make_claim(bs, claim, spec, NULL, cpu, false);
}

static bool has_claims(const struct bp_domain *domain)
{
	return sum_any(domain, 0) || sum_any(domain, 1) || !RB_EMPTY_ROOT(&domain->bound);
}

/* The shard and both domains are locked. */
static int join(struct bp_slots *bs, struct bp_shard *shard,
		struct bp_domain *domain, struct bp_process *process)
{
	bool bound = !RB_EMPTY_ROOT(&domain->bound), fit = true;
	unsigned int class;

	if (!has_claims(domain)) {
		WRITE_ONCE(domain->process, process);
		return 0;
	}
	count_member(bs, shard, domain, process, -1);
	/* bp_slots_available() takes no lock: it may see @process even if this fails. */
	WRITE_ONCE(domain->process, process);
	process->nr_bound += bound;

	for (class = 0; fit && class < BP_SLOTS_CLASSES; class++)
		fit = !bs->class[class].slots || fits(bs, domain, class, -1, 0);
	if (!fit) {
		process->nr_bound -= bound;
		WRITE_ONCE(domain->process, NULL);
	}
	count_member(bs, shard, domain, process, 1);

	return fit ? 0 : -ENOSPC;
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

/* Changes a claim that is held, or checks it. The accounting is closed for one without domain. */
static int change_held(struct bp_slots *bs, struct bp_claim *claim,
		       const struct bp_claim_spec *spec, bool check)
{
	struct bp_shard *shard;
	unsigned long flags;
	int err = 0;

	if (!claim->domain)
		return claim->held ? change(bs, claim, spec, check) : 0;

	local_irq_save(flags);
	shard = lock_claim(bs, claim);
	if (shard) {
		err = change(bs, claim, spec, check);
		unlock_claim(claim->domain, shard);
	}
	local_irq_restore(flags);

	return err;
}

/* As change_held(), for each claim before @end. Moves @end to the first that is refused. */
static int change_each(struct bp_slots *bs, struct bp_claim *(*next)(struct bp_claim *, void *),
		       void *arg, const struct bp_claim_spec *spec,
		       struct bp_claim **end, bool check)
{
	struct bp_claim *claim;
	int err;

	for (claim = next(NULL, arg); claim != *end; claim = next(claim, arg)) {
		err = change_held(bs, claim, spec, check);
		if (err) {
			*end = claim;
			return err;
		}
	}

	return 0;
}

/*
 * A claim that has grown can shrink again whatever was claimed meanwhile, so claims within
 * a class change one by one, with interrupts on between them.  They are checked first: if
 * one cannot grow, no other request is refused because of those that could.  To change back
 * to another class may need a register that was claimed meanwhile: that closes.
 */
int bp_slots_change_all(struct bp_slots *bs,
			struct bp_claim *(*next)(struct bp_claim *claim, void *arg),
			void *arg, const struct bp_claim_spec *old,
			const struct bp_claim_spec *new)
{
	int err = request_error(bs, new, NULL, 0);
	struct bp_claim *end = NULL;
	unsigned long flags = 0;
	bool close;

	if (err)
		return err;

	close = old->class != new->class || !next(NULL, arg)->domain;
	if (close) {
		local_irq_save(flags);
		close_accounting(bs, true);
	} else {
		err = change_each(bs, next, arg, new, &end, true);
	}
	if (!err) {
		err = change_each(bs, next, arg, new, &end, false);
		if (err)
			WARN_ON_ONCE(change_each(bs, next, arg, old, &end, false));
	}
	if (close) {
		open_accounting(bs, nr_cpu_ids);
		local_irq_restore(flags);
	}

	return err;
}

/*
 * A claim may be released twice at the same time.  The second caller may free the claim
 * and drop its reference to the context with the domain while the first caller still
 * holds the locks: interrupts are off, so RCU keeps the context.
 */
void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim)
{
	struct bp_domain *domain;
	struct bp_shard *shard;
	unsigned long flags;

	/* Pairs with remove_claim(). */
	if (!smp_load_acquire(&claim->held))
		return;

	local_irq_save(flags);
	shard = lock_claim(bs, claim);
	if (shard) {
		domain = claim->domain;
		remove_claim(bs, shard, claim);
		unlock_claim(domain, shard);
	}
	local_irq_restore(flags);
}

int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim)
{
	unsigned long flags;

	/* Pairs with remove_claim(). */
	if (!smp_load_acquire(&claim->held))
		return 0;
	if (WARN_ON_ONCE(claim->domain))
		return -EINVAL;

	if (!raw_spin_trylock_irqsave(&bs->global.lock, flags))
		return -EBUSY;
	if (claim->held)
		remove_claim(bs, &bs->global, claim);
	raw_spin_unlock_irqrestore(&bs->global.lock, flags);

	return 0;
}

/* Claims that are bound to a CPU can be read only under the lock of the domain. */
static unsigned int guaranteed_on(struct bp_domain *domain, unsigned int class, int cpu)
{
	unsigned long flags;
	unsigned int sum;

	if (!READ_ONCE(domain->bound_guaranteed))
		return READ_ONCE(domain->any[class].guaranteed);

	raw_spin_lock_irqsave(&domain->lock, flags);
	sum = sum_any(domain, class) + sum_bound(domain, class, cpu);
	raw_spin_unlock_irqrestore(&domain->lock, flags);

	return sum / SUM_WEIGHT;
}

unsigned int bp_slots_available(const struct bp_slots *bs, unsigned int class,
				struct bp_domain *domain, int cpu)
{
	const struct bp_class_account *account = &bs->class[class];
	unsigned int guaranteed;

	/* The numbers may be of different moments: a request may change them meanwhile. */
	guaranteed = READ_ONCE(account->wide) + READ_ONCE(account->cpu[cpu].guaranteed);
	for (; domain; domain = parent_of(domain))
		guaranteed += guaranteed_on(domain, class, cpu);

	return account->slots - min(guaranteed, account->slots);
}

/* ---- Walks ---- */

/* The claims of CPUs and of the machine come first, then one shard after another. */
#define WALK_MACHINE	(-1)

/*
 * Moves the mark behind the next claim of a list, and calls @look for it; without @look
 * or a further claim, removes the mark.
 */
static bool walk_list(struct bp_slots *bs, struct bp_walk *walk,
		      void (*look)(const struct bp_claim *claim, void *arg),
		      void *arg)
{
	struct list_head *mark = &walk->mark.link, *at;
	struct bp_claim *claim = NULL;
	struct bp_shard *shard;
	unsigned long flags;

	shard = walk->at == WALK_MACHINE ? &bs->global : per_cpu_ptr(bs->shard, walk->at);
	local_irq_save(flags);
	lock_shard(bs, shard);
	at = list_empty(mark) ? shard->claims.next : mark->next;
	list_del_init(mark);
	/* Without weight: the mark of another walk */
	while (at != &shard->claims && !list_entry(at, struct bp_claim, link)->weight)
		at = at->next;
	if (look && at != &shard->claims) {
		claim = list_entry(at, struct bp_claim, link);
		list_add(mark, at);
		look(claim, arg);
	}
	raw_spin_unlock(&shard->lock);
	local_irq_restore(flags);

	return claim;
}

void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk)
{
	*walk = (struct bp_walk) { .at = WALK_MACHINE };
	INIT_LIST_HEAD(&walk->mark.link);
}

bool bp_slots_walk_next(struct bp_slots *bs, struct bp_walk *walk,
			void (*look)(const struct bp_claim *claim, void *arg),
			void *arg)
{
	while (walk->at < (int)nr_cpu_ids) {
		if (walk_list(bs, walk, look, arg))
			return true;
		walk->at = cpumask_next(walk->at, cpu_possible_mask);
	}

	return false;
}

void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk)
{
	if (walk->at < (int)nr_cpu_ids)
		walk_list(bs, walk, NULL, NULL);
}

unsigned long bp_slots_nr_claims(const struct bp_slots *bs)
{
	unsigned long n = READ_ONCE(bs->global.nr_claims);
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
		process->level[class] = kvcalloc(bs->nr_cpus + 1, sizeof(*process->level[class]),
						 GFP_KERNEL_ACCOUNT);
		if (!process->level[class]) {
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
		kvfree(process->level[class]);
		process->level[class] = NULL;
	}
	WARN_ON_ONCE(process->nr_bound);
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
	int cpu, err = 0;

	memset(bs, 0, sizeof(*bs));
	raw_spin_lock_init(&bs->global.lock);
	INIT_LIST_HEAD(&bs->global.claims);
	bs->nr_cpus = nr_cpus;
	bs->closed_by = -1;

	bs->shard = alloc_percpu(struct bp_shard);
	if (!bs->shard)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		raw_spin_lock_init(&per_cpu_ptr(bs->shard, cpu)->lock);
		INIT_LIST_HEAD(&per_cpu_ptr(bs->shard, cpu)->claims);
	}
	for (class = 0; !err && class < BP_SLOTS_CLASSES; class++)
		err = init_class(bs, &bs->class[class], slots[class]);
	if (err)
		bp_slots_destroy(bs);

	return err;
}

void bp_slots_destroy(struct bp_slots *bs)
{
	unsigned int class;

	WARN_ON_ONCE(bs->shard && bp_slots_nr_claims(bs));
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		kfree(bs->class[class].cpu);
		bs->class[class].cpu = NULL;
	}
	free_percpu(bs->shard);
	bs->shard = NULL;
}
