// SPDX-License-Identifier: GPL-2.0
/*
 * Arbitration of breakpoint registers; bp_slots.h states the rules.
 *
 * A request is entered in the books first and struck out again if the rule does
 * not hold where it matters.  All of this happens under one lock, so nobody
 * sees the books in between.  A claim costs no allocation, and no step depends
 * on the number of domains, CPUs or flexible claims: worst cases are read off
 * histograms.  Only a claim of the machine looks at each CPU, and only a domain
 * that mixes claims for one CPU with claims for every CPU pays for the CPUs that
 * it is bound to.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bp_slots.h"

/* ---- Histograms ---- */

static void level_enter(struct bp_levels *levels, unsigned int n)
{
	n = min(n, BP_SLOTS_MAX + 1);
	levels->count[n]++;
	levels->occupied |= BIT(n);
}

static void level_leave(struct bp_levels *levels, unsigned int n)
{
	n = min(n, BP_SLOTS_MAX + 1);
	if (WARN_ON_ONCE(!levels->count[n]))
		return;
	if (!--levels->count[n])
		levels->occupied &= ~BIT(n);
}

/*
 * The highest level at which anybody stands; 0 if nobody does. The rule keeps
 * everybody within the slots but the one whose request is being judged, and
 * nobody is judged by his own level.
 */
static unsigned int level_top(const struct bp_levels *levels, unsigned int slots)
{
	unsigned int n = fls(levels->occupied & GENMASK(slots, 0));

	return n ? n - 1 : 0;
}

/* ---- What a domain holds on one CPU ---- */

/* struct bp_share - what a domain holds of one class on one CPU */
struct bp_share {
	unsigned int	guaranteed;
	bool		flexible;
	bool		bound;
};

static inline struct bp_claim *claim_entry(struct rb_node *node)
{
	return rb_entry_safe(node, struct bp_claim, node);
}

static int claim_cmp(const struct bp_claim *a, const struct bp_claim *b)
{
	if (a->cpu != b->cpu)
		return a->cpu - b->cpu;
	return a->class - b->class;
}

/*
 * Bound claims are ordered by CPU, then by class, and guaranteed ones come
 * before flexible ones: what a domain holds in one place is told by its
 * guaranteed claims there, which are no more than there are registers, and by
 * the first of the flexible ones, of which there may be any number.
 */
static bool claim_less(struct rb_node *a, const struct rb_node *b)
{
	const struct bp_claim *this = claim_entry(a);
	const struct bp_claim *that = rb_entry(b, struct bp_claim, node);
	int cmp = claim_cmp(this, that);

	return cmp ? cmp < 0 : this->flexible < that->flexible;
}

static int claim_cmp_place(const void *place, const struct rb_node *node)
{
	return claim_cmp(place, rb_entry(node, struct bp_claim, node));
}

static struct bp_share domain_share(const struct bp_domain *domain,
				    unsigned int class, int cpu)
{
	struct bp_claim place = { .cpu = cpu, .class = class };
	struct bp_share share = {
		.guaranteed	= domain->any[class].guaranteed,
		.flexible	= domain->any[class].flexible,
	};
	struct rb_node *node;

	node = rb_find_first(&place, &domain->bound, claim_cmp_place);
	for (; node && !claim_cmp_place(&place, node); node = rb_next(node)) {
		share.bound = true;
		if (claim_entry(node)->flexible) {
			share.flexible = true;
			break;
		}
		share.guaranteed += claim_entry(node)->weight;
	}

	return share;
}

/* The first claim that is bound to @cpu or to a later one. */
static struct bp_claim *domain_claim_from(const struct bp_domain *domain, int cpu)
{
	struct rb_node *node = domain->bound.rb_node;
	struct bp_claim *first = NULL;

	while (node) {
		struct bp_claim *claim = claim_entry(node);

		if (claim->cpu >= cpu) {
			first = claim;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}

	return first;
}

/* Once for each CPU that the domain is bound to; @claim is one of those there. */
#define for_each_bound_cpu(claim, domain)				\
	for ((claim) = domain_claim_from(domain, 0); (claim);		\
	     (claim) = domain_claim_from(domain, (claim)->cpu + 1))

/* ---- Entering and striking out ---- */

/*
 * A domain stands in the histograms of a CPU only if it has claims bound to it,
 * and in those of the class only if it has claims for any CPU.  Whatever
 * changes a domain takes it off its levels first and puts it back after.
 */
static void domain_leave_cpu(struct bp_class_books *books,
			     const struct bp_domain *domain,
			     unsigned int class, int cpu)
{
	struct bp_share share = domain_share(domain, class, cpu);

	if (!share.bound)
		return;
	level_leave(&books->cpu[cpu].held, share.guaranteed);
	level_leave(&books->cpu[cpu].promised, share.guaranteed + share.flexible);
}

static void domain_enter_cpu(struct bp_class_books *books,
			     const struct bp_domain *domain,
			     unsigned int class, int cpu)
{
	struct bp_share share = domain_share(domain, class, cpu);

	if (!share.bound)
		return;
	level_enter(&books->cpu[cpu].held, share.guaranteed);
	level_enter(&books->cpu[cpu].promised, share.guaranteed + share.flexible);
}

static void count_claim(u32 *guaranteed, u32 *flexible,
			const struct bp_claim *claim, bool enter)
{
	u32 *count = claim->flexible ? flexible : guaranteed;
	u32 amount = claim->flexible ? 1 : claim->weight;

	if (enter)
		*count += amount;
	else if (!WARN_ON_ONCE(*count < amount))
		*count -= amount;
}

static void book_cpu(struct bp_class_books *books, struct bp_claim *claim,
		     bool enter)
{
	struct bp_cpu_books *cpu = &books->cpu[claim->cpu];

	level_leave(&books->cpu_held, cpu->guaranteed);
	level_leave(&books->cpu_promised, cpu->guaranteed + !!cpu->flexible);
	count_claim(&cpu->guaranteed, &cpu->flexible, claim, enter);
	level_enter(&books->cpu_held, cpu->guaranteed);
	level_enter(&books->cpu_promised, cpu->guaranteed + !!cpu->flexible);
}

static void book_bound(struct bp_class_books *books, struct bp_claim *claim,
		       bool enter)
{
	struct bp_domain *domain = claim->domain;

	domain_leave_cpu(books, domain, claim->class, claim->cpu);
	if (enter)
		rb_add(&claim->node, &domain->bound, claim_less);
	else
		rb_erase(&claim->node, &domain->bound);
	domain_enter_cpu(books, domain, claim->class, claim->cpu);
}

static void book_any(struct bp_class_books *books, struct bp_claim *claim,
		     bool enter)
{
	struct bp_domain *domain = claim->domain;
	typeof(&domain->any[0]) any = &domain->any[claim->class];
	struct bp_claim *bound;

	for_each_bound_cpu(bound, domain)
		domain_leave_cpu(books, domain, claim->class, bound->cpu);
	if (any->guaranteed || any->flexible) {
		level_leave(&books->held, any->guaranteed);
		level_leave(&books->promised, any->guaranteed + !!any->flexible);
	}
	count_claim(&any->guaranteed, &any->flexible, claim, enter);
	if (any->guaranteed || any->flexible) {
		level_enter(&books->held, any->guaranteed);
		level_enter(&books->promised, any->guaranteed + !!any->flexible);
	}
	for_each_bound_cpu(bound, domain)
		domain_enter_cpu(books, domain, claim->class, bound->cpu);
}

/* A claim of the machine: on every CPU, whatever runs there */
static bool claim_is_wide(const struct bp_claim *claim)
{
	return !claim->domain && claim->cpu < 0;
}

static void book(struct bp_slots *bs, struct bp_claim *claim, bool enter)
{
	struct bp_class_books *books = &bs->class[claim->class];

	lockdep_assert_held(&bs->lock);

	if (claim_is_wide(claim))
		books->wide += enter ? claim->weight : -claim->weight;
	else if (!claim->domain)
		book_cpu(books, claim, enter);
	else if (claim->cpu >= 0)
		book_bound(books, claim, enter);
	else
		book_any(books, claim, enter);

	if (enter)
		list_add_tail(&claim->link, &bs->list);
	else
		list_del(&claim->link);
	/* bp_slots_in_use() looks at it without the lock. */
	WRITE_ONCE(books->claims, books->claims + (enter ? 1 : -1));
	/* As does bp_slots_version(). */
	if (!claim->flexible)
		WRITE_ONCE(bs->version, bs->version + 1 ?: 1);
	claim->held = enter;
}

/* ---- The rule ---- */

/* The rule on one CPU against every domain. */
static bool cpu_fits(const struct bp_class_books *books, int cpu)
{
	const struct bp_cpu_books *here = &books->cpu[cpu];
	unsigned int slots = books->slots, worst;

	if (here->flexible)
		worst = 1 + max(level_top(&books->held, slots),
				level_top(&here->held, slots));
	else
		worst = max(level_top(&books->promised, slots),
			    level_top(&here->promised, slots));

	return books->wide + here->guaranteed + worst <= books->slots;
}

/* The rule on every CPU. */
static bool machine_fits(const struct bp_slots *bs,
			 const struct bp_class_books *books)
{
	unsigned int cpu;

	for (cpu = 0; cpu < bs->nr_cpus; cpu++) {
		if (!cpu_fits(books, cpu))
			return false;
	}

	return true;
}

/* The rule for one domain on one CPU. */
static bool domain_fits_cpu(const struct bp_class_books *books,
			    const struct bp_domain *domain,
			    unsigned int class, int cpu)
{
	const struct bp_cpu_books *here = &books->cpu[cpu];
	struct bp_share share = domain_share(domain, class, cpu);

	return books->wide + here->guaranteed + share.guaranteed +
	       (here->flexible || share.flexible) <= books->slots;
}

/* The rule for one domain on every CPU. */
static bool domain_fits(const struct bp_class_books *books,
			const struct bp_domain *domain, unsigned int class)
{
	typeof(&domain->any[0]) any = &domain->any[class];
	unsigned int worst;
	struct bp_claim *bound;

	if (any->flexible)
		worst = 1 + level_top(&books->cpu_held, books->slots);
	else
		worst = level_top(&books->cpu_promised, books->slots);
	if (books->wide + any->guaranteed + worst > books->slots)
		return false;

	for_each_bound_cpu(bound, domain) {
		if (!domain_fits_cpu(books, domain, class, bound->cpu))
			return false;
	}

	return true;
}

static bool claim_fits(const struct bp_slots *bs, const struct bp_claim *claim)
{
	const struct bp_class_books *books = &bs->class[claim->class];

	if (claim_is_wide(claim))
		return machine_fits(bs, books);
	if (!claim->domain)
		return cpu_fits(books, claim->cpu);
	if (claim->cpu >= 0)
		return domain_fits_cpu(books, claim->domain, claim->class,
				       claim->cpu);
	return domain_fits(books, claim->domain, claim->class);
}

/* ---- Requests ---- */

static int check_spec(const struct bp_slots *bs,
		      const struct bp_claim_spec *spec)
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

static void fill_claim(struct bp_claim *claim, const struct bp_claim_spec *spec,
		       struct bp_domain *domain, int cpu)
{
	*claim = (struct bp_claim) {
		.holder		= claim->holder,
		.domain		= domain,
		.cpu		= cpu,
		.class		= spec->class,
		.weight		= spec->weight,
		.flexible	= spec->flexible,
	};
}

static int reserve_locked(struct bp_slots *bs, struct bp_claim *claim,
			  const struct bp_claim_spec *spec,
			  struct bp_domain *domain, int cpu)
{
	if (WARN_ON_ONCE(claim->held))
		return -EINVAL;

	fill_claim(claim, spec, domain, cpu);
	book(bs, claim, true);
	if (claim_fits(bs, claim))
		return 0;

	book(bs, claim, false);
	return -ENOSPC;
}

static int change_locked(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec)
{
	struct bp_claim old;

	if (!claim->held || claim->flexible != spec->flexible)
		return -EINVAL;

	old = *claim;
	book(bs, claim, false);
	fill_claim(claim, spec, old.domain, old.cpu);
	book(bs, claim, true);
	if (claim_fits(bs, claim))
		return 0;

	/* What stood in the books before fits again. */
	book(bs, claim, false);
	claim->class = old.class;
	claim->weight = old.weight;
	book(bs, claim, true);
	return -ENOSPC;
}

static int check_request(const struct bp_slots *bs,
			 const struct bp_claim_spec *spec,
			 const struct bp_domain *domain, int cpu)
{
	int err;

	if (cpu < -1 || (cpu == -1 && !domain && spec->flexible))
		return -EINVAL;
	err = check_spec(bs, spec);
	if (err == -EINVAL)
		return err;
	if (cpu >= (int)bs->nr_cpus)
		return -ENODEV;
	return err;
}

/* ---- Interface ---- */

int bp_slots_reserve(struct bp_slots *bs, struct bp_claim *claim,
		     const struct bp_claim_spec *spec, struct bp_domain *domain,
		     int cpu)
{
	unsigned long flags;
	int err;

	err = check_request(bs, spec, domain, cpu);
	if (err)
		return err;

	raw_spin_lock_irqsave(&bs->lock, flags);
	err = reserve_locked(bs, claim, spec, domain, cpu);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return err;
}

int bp_slots_try_reserve(struct bp_slots *bs, struct bp_claim *claim,
			 const struct bp_claim_spec *spec,
			 struct bp_domain *domain, int cpu)
{
	unsigned long flags;
	int err;

	err = check_request(bs, spec, domain, cpu);
	if (err)
		return err;

	if (!raw_spin_trylock_irqsave(&bs->lock, flags))
		return -EBUSY;
	err = reserve_locked(bs, claim, spec, domain, cpu);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return err;
}

int bp_slots_change(struct bp_slots *bs, struct bp_claim *claim,
		    const struct bp_claim_spec *spec)
{
	unsigned long flags;
	int err;

	err = check_spec(bs, spec);
	if (err)
		return err;

	raw_spin_lock_irqsave(&bs->lock, flags);
	err = change_locked(bs, claim, spec);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

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

	err = check_spec(bs, new);
	if (err)
		return err;

	raw_spin_lock_irqsave(&bs->lock, flags);
	for (claim = next(NULL, arg); claim; claim = next(claim, arg)) {
		if (!claim->held)
			continue;
		err = change_locked(bs, claim, new);
		if (err)
			break;
	}
	/* What stood in the books before fits again. */
	refused = claim;
	for (claim = next(NULL, arg); err && claim != refused; claim = next(claim, arg)) {
		if (claim->held)
			WARN_ON_ONCE(change_locked(bs, claim, old));
	}
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return err;
}

void bp_slots_release(struct bp_slots *bs, struct bp_claim *claim)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bs->lock, flags);
	if (claim->held)
		book(bs, claim, false);
	raw_spin_unlock_irqrestore(&bs->lock, flags);
}

int bp_slots_try_release(struct bp_slots *bs, struct bp_claim *claim)
{
	unsigned long flags;

	if (!raw_spin_trylock_irqsave(&bs->lock, flags))
		return -EBUSY;
	if (claim->held)
		book(bs, claim, false);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return 0;
}

unsigned int bp_slots_spare(struct bp_slots *bs, unsigned int class,
			    const struct bp_domain *domain, int cpu)
{
	struct bp_class_books *books = &bs->class[class];
	unsigned int guaranteed;
	unsigned long flags;

	raw_spin_lock_irqsave(&bs->lock, flags);
	guaranteed = books->wide + books->cpu[cpu].guaranteed;
	if (domain)
		guaranteed += domain_share(domain, class, cpu).guaranteed;
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return books->slots - min(guaranteed, books->slots);
}

unsigned long bp_slots_version(const struct bp_slots *bs)
{
	/* Books that change now are not of this version any more. */
	return READ_ONCE(bs->version);
}

bool bp_slots_full(struct bp_slots *bs, const struct bp_claim_spec *spec,
		   const struct bp_domain *domain)
{
	typeof(&domain->any[0]) any = &domain->any[spec->class];
	unsigned int weight = spec->flexible ? 0 : spec->weight;
	unsigned long flags;
	unsigned int total;

	/* Not to see a request that is being judged. */
	raw_spin_lock_irqsave(&bs->lock, flags);
	total = any->guaranteed + weight + (spec->flexible || any->flexible);
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return total > bs->class[spec->class].slots;
}

void bp_slots_walk_begin(struct bp_slots *bs, struct bp_walk *walk)
{
	unsigned long flags;

	*walk = (struct bp_walk) { };
	raw_spin_lock_irqsave(&bs->lock, flags);
	list_add(&walk->mark.link, &bs->list);
	raw_spin_unlock_irqrestore(&bs->lock, flags);
}

bool bp_slots_walk_next(struct bp_slots *bs, struct bp_walk *walk,
			void (*look)(const struct bp_claim *claim, void *arg),
			void *arg)
{
	struct bp_claim *claim = &walk->mark;
	unsigned long flags;
	bool found = false;

	raw_spin_lock_irqsave(&bs->lock, flags);
	list_for_each_entry_continue(claim, &bs->list, link) {
		/* The mark of another walk */
		if (!claim->weight)
			continue;
		list_move(&walk->mark.link, &claim->link);
		look(claim, arg);
		found = true;
		break;
	}
	raw_spin_unlock_irqrestore(&bs->lock, flags);

	return found;
}

void bp_slots_walk_end(struct bp_slots *bs, struct bp_walk *walk)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bs->lock, flags);
	list_del(&walk->mark.link);
	raw_spin_unlock_irqrestore(&bs->lock, flags);
}

bool bp_slots_in_use(const struct bp_slots *bs)
{
	unsigned int class;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		/* A snapshot; what it says may be over when it returns. */
		if (READ_ONCE(bs->class[class].claims))
			return true;
	}

	return false;
}

int bp_slots_init(struct bp_slots *bs, unsigned int nr_cpus,
		  const unsigned int slots[BP_SLOTS_CLASSES])
{
	unsigned int class;

	memset(bs, 0, sizeof(*bs));
	bs->version = 1;
	raw_spin_lock_init(&bs->lock);
	bs->nr_cpus = nr_cpus;
	INIT_LIST_HEAD(&bs->list);

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		struct bp_class_books *books = &bs->class[class];

		if (slots[class] > BP_SLOTS_MAX) {
			bp_slots_destroy(bs);
			return -EINVAL;
		}
		books->cpu = kcalloc(nr_cpus, sizeof(*books->cpu), GFP_KERNEL);
		if (!books->cpu) {
			bp_slots_destroy(bs);
			return -ENOMEM;
		}
		books->slots = slots[class];
		books->cpu_held.count[0] = nr_cpus;
		books->cpu_held.occupied = BIT(0);
		books->cpu_promised = books->cpu_held;
	}

	return 0;
}

void bp_slots_destroy(struct bp_slots *bs)
{
	unsigned int class;

	WARN_ON_ONCE(bp_slots_in_use(bs));
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		kfree(bs->class[class].cpu);
		bs->class[class].cpu = NULL;
	}
}
