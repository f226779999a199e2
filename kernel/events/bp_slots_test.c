// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the arbitration of breakpoint registers.
 *
 * The books are held against a naive oracle: a flat list of the claims that
 * should stand.  For each CPU c, domain d and class the oracle adds up, claim by
 * claim,
 *
 *   guaranteed(c) + guaranteed(d, c) + (flexible(c) or flexible(d, c) ? 1 : 0)
 *	<= registers - wide
 *
 * where a claim of the machine counts as one of each CPU.
 * A request has to be granted exactly if this holds with the new claim on the
 * list.  After each request (in large worlds: now and then) every number in the
 * books, and all that they tell others, has to be what the list says, and when
 * the last claim is gone nothing may be left in them.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "bp_slots.h"

/* Who asks: a domain by its number, or a CPU for whatever runs there. */
#define THE_CPU		(-1)
/* Where: a CPU by its number, or wherever the domain runs; the CPU on all CPUs is
 * the machine. */
#define ANYWHERE	(-1)

#define GUARANTEED(n)	((struct bp_claim_spec) { .weight = (n) })
#define FLEXIBLE	((struct bp_claim_spec) { .weight = 1, .flexible = true })

struct request {
	int			domain;
	int			cpu;
	struct bp_claim_spec	spec;
};

/**
 * struct entry - what the oracle knows of one claim
 * @request: what it is
 * @held: it stands
 * @seen: how often it was met on a walk
 */
struct entry {
	struct request	request;
	bool		held;
	unsigned int	seen;
};

/* struct tally - what one holder has of one class on one CPU */
struct tally {
	unsigned int	guaranteed;
	unsigned int	flexible;
	unsigned int	bound;
	unsigned int	any_guaranteed;
	unsigned int	any_flexible;
};

/**
 * struct world - books, and a flat list of what should stand in them
 * @test: the test it belongs to
 * @bs: the books under test
 * @nr_cpus: number of CPUs
 * @nr_domains: number of domains
 * @nr_claims: number of claims
 * @slots: registers of each class
 * @domains: the domains
 * @claims: the claims
 * @entries: what the oracle knows of them
 * @cpu_tally: scratch; of each CPU
 * @domain_tally: scratch; of each domain, or of one domain on each CPU
 * @strangers: claims met on a walk that are not on the list
 * @thorough: compare after each request, and judge by the whole world
 * @turns: each that many comparisons all questions have been asked
 * @calls: number of requests so far
 */
struct world {
	struct kunit		*test;
	struct bp_slots		bs;
	unsigned int		nr_cpus;
	unsigned int		nr_domains;
	unsigned int		nr_claims;
	unsigned int		slots[BP_SLOTS_CLASSES];
	struct bp_domain	*domains;
	struct bp_claim		*claims;
	struct entry		*entries;
	struct tally		*cpu_tally;
	struct tally		*domain_tally;
	unsigned int		strangers;
	bool			thorough;
	unsigned int		turns;
	unsigned long		calls;
};

/* ---- The oracle ---- */

static void tally_add(struct tally *tally, const struct request *request)
{
	const struct bp_claim_spec *spec = &request->spec;
	bool any = request->cpu == ANYWHERE;

	if (spec->flexible) {
		tally->flexible++;
		tally->any_flexible += any;
	} else {
		tally->guaranteed += spec->weight;
		tally->any_guaranteed += any ? spec->weight : 0;
	}
	tally->bound += !any;
}

/* What the CPU and each domain have on @cpu. */
static void tally_of_cpu(struct world *w, unsigned int class, int cpu)
{
	unsigned int i;

	memset(&w->cpu_tally[cpu], 0, sizeof(*w->cpu_tally));
	memset(w->domain_tally, 0, w->nr_domains * sizeof(*w->domain_tally));

	for (i = 0; i < w->nr_claims; i++) {
		const struct request *request = &w->entries[i].request;

		if (!w->entries[i].held || request->spec.class != class)
			continue;
		if (request->cpu != cpu && request->cpu != ANYWHERE)
			continue;
		if (request->domain == THE_CPU)
			tally_add(&w->cpu_tally[cpu], request);
		else
			tally_add(&w->domain_tally[request->domain], request);
	}
}

/* What each CPU has, and @domain has on it. */
static void tally_of_domain(struct world *w, unsigned int class, int domain)
{
	unsigned int cpu, i;

	memset(w->cpu_tally, 0, w->nr_cpus * sizeof(*w->cpu_tally));
	memset(w->domain_tally, 0, w->nr_cpus * sizeof(*w->domain_tally));

	for (i = 0; i < w->nr_claims; i++) {
		const struct request *request = &w->entries[i].request;

		if (!w->entries[i].held || request->spec.class != class)
			continue;
		if (request->domain != domain && request->domain != THE_CPU)
			continue;
		for (cpu = 0; cpu < w->nr_cpus; cpu++) {
			if (request->cpu != ANYWHERE && request->cpu != cpu)
				continue;
			if (request->domain == THE_CPU)
				tally_add(&w->cpu_tally[cpu], request);
			else
				tally_add(&w->domain_tally[cpu], request);
		}
	}
}

static bool rule_holds(const struct tally *cpu, const struct tally *domain,
		       unsigned int slots)
{
	unsigned int shared = cpu->flexible || domain->flexible ? 1 : 0;

	return cpu->guaranteed + domain->guaranteed + shared <= slots;
}

static bool rule_holds_on_cpu(struct world *w, unsigned int class, int cpu)
{
	unsigned int domain;

	tally_of_cpu(w, class, cpu);
	for (domain = 0; domain < w->nr_domains; domain++) {
		if (!rule_holds(&w->cpu_tally[cpu], &w->domain_tally[domain],
				w->slots[class]))
			return false;
	}

	return true;
}

static bool rule_holds_for_domain(struct world *w, unsigned int class,
				  int domain)
{
	unsigned int cpu;

	tally_of_domain(w, class, domain);
	for (cpu = 0; cpu < w->nr_cpus; cpu++) {
		if (!rule_holds(&w->cpu_tally[cpu], &w->domain_tally[cpu],
				w->slots[class]))
			return false;
	}

	return true;
}

static bool rule_holds_everywhere(struct world *w, unsigned int class)
{
	unsigned int cpu;

	for (cpu = 0; cpu < w->nr_cpus; cpu++) {
		if (!rule_holds_on_cpu(w, class, cpu))
			return false;
	}

	return true;
}

static bool is_machine(const struct request *request)
{
	return request->domain == THE_CPU && request->cpu == ANYWHERE;
}

/* The verdict on @request, which stands on the list already. */
static int verdict(struct world *w, const struct request *request)
{
	unsigned int class = request->spec.class;
	bool holds;

	if (is_machine(request) && request->spec.flexible)
		return -EINVAL;
	if (!w->slots[class])
		return -EOPNOTSUPP;

	if (w->thorough || is_machine(request))
		holds = rule_holds_everywhere(w, class);
	else if (request->domain == THE_CPU)
		holds = rule_holds_on_cpu(w, class, request->cpu);
	else
		holds = rule_holds_for_domain(w, class, request->domain);

	return holds ? 0 : -ENOSPC;
}

/* ---- The books against the list ---- */

static void print_list(struct world *w)
{
	unsigned int i;

	kunit_err(w->test, "%u CPUs, %u domains, registers %u and %u; held:",
		  w->nr_cpus, w->nr_domains, w->slots[0], w->slots[1]);
	for (i = 0; i < w->nr_claims; i++) {
		const struct request *request = &w->entries[i].request;

		if (!w->entries[i].held)
			continue;
		kunit_err(w->test, "claim %u: domain %d cpu %d class %u weight %u%s",
			  i, request->domain, request->cpu, request->spec.class,
			  request->spec.weight,
			  request->spec.flexible ? " flexible" : "");
	}
}

/* For what is checked too often for an assertion with all its text. */
static void must(struct world *w, bool truth, const char *what, long number)
{
	if (likely(truth))
		return;
	print_list(w);
	KUNIT_FAIL_AND_ABORT(w->test, "after %lu requests: %s (%ld)", w->calls,
			     what, number);
}

static struct bp_domain *domain_of(struct world *w, const struct request *request)
{
	return request->domain == THE_CPU ? NULL : &w->domains[request->domain];
}

/* Never looked into; each claim has another one. */
static const struct bp_holder *holder_of(struct world *w, unsigned int id)
{
	return (const struct bp_holder *)&w->entries[id];
}

static void compare_claims(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_claims; i++) {
		const struct request *request = &w->entries[i].request;
		const struct bp_claim *claim = &w->claims[i];

		must(w, claim->held == w->entries[i].held,
		     "claim held as on the list", i);
		must(w, claim->holder == holder_of(w, i),
		     "claim has the holder it had", i);
		if (!claim->held)
			continue;
		must(w, claim->domain == domain_of(w, request) &&
		     claim->cpu == request->cpu &&
		     claim->class == request->spec.class &&
		     claim->weight == request->spec.weight &&
		     claim->flexible == request->spec.flexible,
		     "claim is what was asked for", i);
	}
}

/* Each domain links its bound claims, ordered by CPU, and nothing else. */
static void compare_links(struct world *w)
{
	unsigned int domain, i, linked = 0, bound = 0;

	for (domain = 0; domain < w->nr_domains; domain++) {
		struct rb_node *node = rb_first(&w->domains[domain].bound);
		int cpu = 0;

		for (; node; node = rb_next(node)) {
			struct bp_claim *claim;

			claim = rb_entry(node, struct bp_claim, node);
			must(w, claim->held &&
			     claim->domain == &w->domains[domain],
			     "linked claim belongs to the domain", domain);
			must(w, claim->cpu >= cpu,
			     "linked claims are in order", domain);
			cpu = claim->cpu;
			linked++;
		}
	}
	for (i = 0; i < w->nr_claims; i++) {
		const struct request *request = &w->entries[i].request;

		if (w->entries[i].held && request->domain != THE_CPU)
			bound += request->cpu != ANYWHERE;
	}

	must(w, linked == bound, "all bound claims are linked", linked);
}

static void compare_levels(struct world *w, const struct bp_levels *have,
			   const struct bp_levels *want, const char *what,
			   long number)
{
	unsigned int i;

	must(w, !memcmp(have->count, want->count, sizeof(have->count)), what, number);
	for (i = 0; i < ARRAY_SIZE(want->count); i++)
		must(w, !(have->occupied & BIT(i)) == !want->count[i], what, number);
}

static unsigned int promised(unsigned int guaranteed, unsigned int flexible)
{
	return flexible ? guaranteed + 1 : guaranteed;
}

/* Whether it is the turn of a question that is too dear to be asked each time. */
static bool asks(const struct world *w, unsigned int what)
{
	return what % w->turns == w->calls % w->turns;
}

static void compare_spare(struct world *w, unsigned int class, int domain, int cpu)
{
	unsigned int taken = w->cpu_tally[cpu].guaranteed, want = 0;
	struct bp_domain *d = NULL;

	if (domain != THE_CPU) {
		d = &w->domains[domain];
		taken += w->domain_tally[domain].guaranteed;
	}
	if (taken < w->slots[class])
		want = w->slots[class] - taken;

	must(w, bp_slots_spare(&w->bs, class, d, cpu) == want,
	     d ? "spare for a domain on CPU" : "spare for nobody on CPU", cpu);
}

/* Is there a place where @domain could have @spec if it were alone? */
static bool fits_alone(const struct world *w, const struct tally *domain,
		       const struct bp_claim_spec *spec)
{
	unsigned int weight = domain->any_guaranteed;
	bool shared = domain->any_flexible || spec->flexible;

	if (!spec->flexible)
		weight += spec->weight;

	return weight + shared <= w->slots[spec->class];
}

static void compare_full(struct world *w, unsigned int class, int domain)
{
	struct bp_claim_spec spec = { .class = class, .weight = 1 };
	const struct tally *tally = &w->domain_tally[domain];
	const struct bp_domain *d = &w->domains[domain];

	for (; spec.weight <= w->slots[class] + 1; spec.weight++)
		must(w, bp_slots_full(&w->bs, &spec, d) ==
		     !fits_alone(w, tally, &spec), "full for weight", spec.weight);

	spec.weight = 1;
	spec.flexible = true;
	must(w, bp_slots_full(&w->bs, &spec, d) == !fits_alone(w, tally, &spec),
	     "full for a flexible claim", domain);
}

/* The oracle has what each domain has on @cpu; compares what holds there. */
static void compare_cpu(struct world *w, const struct bp_class_books *books,
			unsigned int class, int cpu)
{
	const struct tally *own = &w->cpu_tally[cpu];
	const struct bp_cpu_books *here = &books->cpu[cpu];
	struct bp_cpu_books want = {};
	unsigned int domain;

	for (domain = 0; domain < w->nr_domains; domain++) {
		const struct tally *tally = &w->domain_tally[domain];

		must(w, rule_holds(own, tally, books->slots),
		     "the rule holds on CPU", cpu);
		if (!tally->bound)
			continue;
		want.held.count[tally->guaranteed]++;
		want.promised.count[promised(tally->guaranteed,
					     tally->flexible)]++;
	}

	must(w, here->guaranteed == own->guaranteed - own->any_guaranteed,
	     "guaranteed of CPU", cpu);
	must(w, here->flexible == own->flexible, "flexible of CPU", cpu);
	compare_levels(w, &here->held, &want.held, "held on CPU", cpu);
	compare_levels(w, &here->promised, &want.promised, "promised on CPU",
		       cpu);

	if (asks(w, cpu))
		compare_spare(w, class, THE_CPU, cpu);
	for (domain = 0; domain < w->nr_domains; domain++) {
		if (asks(w, (domain + 1) * w->nr_cpus + cpu))
			compare_spare(w, class, domain, cpu);
	}
}

/* The oracle has what each domain has; compares what holds on any CPU. */
static void compare_any(struct world *w, const struct bp_class_books *books,
			unsigned int class)
{
	struct bp_levels held = {}, promises = {};
	unsigned int domain;

	for (domain = 0; domain < w->nr_domains; domain++) {
		const struct tally *tally = &w->domain_tally[domain];
		const struct bp_domain *d = &w->domains[domain];

		must(w, d->any[class].guaranteed == tally->any_guaranteed &&
		     d->any[class].flexible == tally->any_flexible,
		     "claims for any CPU of domain", domain);
		if (asks(w, domain))
			compare_full(w, class, domain);
		if (!tally->any_guaranteed && !tally->any_flexible)
			continue;
		held.count[tally->any_guaranteed]++;
		promises.count[promised(tally->any_guaranteed,
					tally->any_flexible)]++;
	}

	compare_levels(w, &books->held, &held, "held by domains", class);
	compare_levels(w, &books->promised, &promises, "promised to domains",
		       class);
}

static void compare_class(struct world *w, unsigned int class)
{
	const struct bp_class_books *books = &w->bs.class[class];
	struct bp_levels held = {}, promises = {};
	unsigned int cpu, i, guaranteed, claims = 0;

	for (cpu = 0; cpu < w->nr_cpus; cpu++) {
		const struct tally *own = &w->cpu_tally[cpu];

		tally_of_cpu(w, class, cpu);
		compare_cpu(w, books, class, cpu);
		guaranteed = own->guaranteed - own->any_guaranteed;
		held.count[guaranteed]++;
		promises.count[promised(guaranteed, own->flexible)]++;
		must(w, books->wide == own->any_guaranteed, "claims of the machine", cpu);
	}
	compare_any(w, books, class);
	compare_levels(w, &books->cpu_held, &held, "held by CPUs", class);
	compare_levels(w, &books->cpu_promised, &promises, "promised to CPUs",
		       class);

	for (i = 0; i < w->nr_claims; i++) {
		if (w->entries[i].held)
			claims += w->entries[i].request.spec.class == class;
	}
	must(w, books->claims == claims, "number of claims of class", class);
	must(w, books->slots == w->slots[class], "registers of class", class);
}

static void see_claim(const struct bp_claim *claim, void *world)
{
	struct world *w = world;
	unsigned int id = claim - w->claims;

	if (claim < w->claims || id >= w->nr_claims || !claim->held)
		w->strangers++;
	else
		w->entries[id].seen++;
}

/* Whoever walks along all claims sees those on the list, and each of them once. */
static void compare_walk(struct world *w)
{
	struct bp_walk walk;
	unsigned int i;

	for (i = 0; i < w->nr_claims; i++)
		w->entries[i].seen = 0;
	w->strangers = 0;

	bp_slots_walk_begin(&w->bs, &walk);
	while (bp_slots_walk_next(&w->bs, &walk, see_claim, w))
		;
	bp_slots_walk_end(&w->bs, &walk);

	must(w, !w->strangers, "strangers met on a walk", w->strangers);
	for (i = 0; i < w->nr_claims; i++)
		must(w, w->entries[i].seen == w->entries[i].held,
		     "seen on a walk as it is held", i);
}

static void compare(struct world *w)
{
	unsigned int class, i, held = 0;

	compare_claims(w);
	compare_links(w);
	if (asks(w, 0))
		compare_walk(w);
	for (class = 0; class < BP_SLOTS_CLASSES; class++)
		compare_class(w, class);

	for (i = 0; i < w->nr_claims; i++)
		held += w->entries[i].held;
	must(w, bp_slots_in_use(&w->bs) == !!held, "in use", held);
}

/* ---- Requests that are checked ---- */

static void settle(struct world *w)
{
	w->calls++;
	if (w->thorough)
		compare(w);
}

/* Each other request takes the way that does not wait. */
static bool other_way(struct world *w)
{
	return w->calls & 1;
}

static int reserve(struct world *w, unsigned int id,
		   const struct request *request)
{
	struct bp_domain *domain = domain_of(w, request);
	struct bp_claim *claim = &w->claims[id];
	struct entry *entry = &w->entries[id];
	int err, want;

	entry->request = *request;
	entry->held = true;
	want = verdict(w, request);
	if (domain && bp_slots_full(&w->bs, &request->spec, domain))
		must(w, want, "full, and there is room", want);

	if (other_way(w))
		err = bp_slots_try_reserve(&w->bs, claim, &request->spec,
					   domain, request->cpu);
	else
		err = bp_slots_reserve(&w->bs, claim, &request->spec, domain,
				       request->cpu);

	must(w, err == want, "verdict on one claim", err);
	entry->held = !err;
	settle(w);

	return err;
}

/* For a large world that is known to have room: the oracle is not asked. */
static int reserve_unchecked(struct world *w, unsigned int id,
			     const struct request *request)
{
	struct entry *entry = &w->entries[id];
	int err;

	err = bp_slots_reserve(&w->bs, &w->claims[id], &request->spec,
			       domain_of(w, request), request->cpu);
	entry->request = *request;
	entry->held = !err;
	w->calls++;

	return err;
}

static int change(struct world *w, unsigned int id,
		  const struct bp_claim_spec *spec)
{
	struct entry *entry = &w->entries[id];
	struct request old = entry->request;
	int err, want;

	entry->request.spec = *spec;
	want = verdict(w, &entry->request);
	err = bp_slots_change(&w->bs, &w->claims[id], spec);
	must(w, err == want, "verdict on another spec", err);
	if (err)
		entry->request = old;
	settle(w);

	return err;
}

static struct bp_claim *next_in_world(struct bp_claim *claim, void *arg)
{
	struct world *w = arg;

	claim = claim ? claim + 1 : w->claims;
	return claim < w->claims + w->nr_claims ? claim : NULL;
}

/* All single claims, which are as @old says, in one step. */
static int change_everything(struct world *w, const struct bp_claim_spec *old,
			     const struct bp_claim_spec *new)
{
	unsigned int id;
	int err, want;

	for (id = 0; id < w->nr_claims; id++)
		w->entries[id].request.spec = *new;
	want = rule_holds_everywhere(w, new->class) ? 0 : -ENOSPC;
	err = bp_slots_change_all(&w->bs, next_in_world, w, old, new);
	must(w, err == want, "verdict on another spec for all", err);
	for (id = 0; err && id < w->nr_claims; id++)
		w->entries[id].request.spec = *old;
	settle(w);

	return err;
}

static void release(struct world *w, unsigned int id)
{
	struct bp_claim *claim = &w->claims[id];

	if (other_way(w))
		must(w, !bp_slots_try_release(&w->bs, claim), "try_release", id);
	else
		bp_slots_release(&w->bs, claim);

	w->entries[id].held = false;
	settle(w);
}

static void release_everything(struct world *w)
{
	unsigned int id;

	for (id = 0; id < w->nr_claims; id++)
		release(w, id);
}

static unsigned int unused_claim(struct world *w)
{
	unsigned int id;

	for (id = 0; id < w->nr_claims; id++) {
		if (!w->entries[id].held)
			return id;
	}
	must(w, false, "out of claims", id);

	return 0;
}

/* Number of the claim that is granted, or the errno. */
static int ask(struct world *w, int domain, int cpu, struct bp_claim_spec spec)
{
	struct request request = { domain, cpu, spec };
	unsigned int id = unused_claim(w);
	int err = reserve(w, id, &request);

	return err ?: id;
}

/* ---- Worlds ---- */

static struct world *open_world(struct kunit *test, unsigned int nr_cpus,
				unsigned int nr_domains, unsigned int nr_claims,
				unsigned int slots, unsigned int other_slots)
{
	unsigned int tallies = max(nr_cpus, nr_domains), i;
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->test = test;
	w->nr_cpus = nr_cpus;
	w->nr_domains = nr_domains;
	w->nr_claims = nr_claims;
	w->slots[0] = slots;
	w->slots[1] = other_slots;
	w->thorough = true;
	w->turns = 1;

	w->domains = kunit_kcalloc(test, nr_domains, sizeof(*w->domains), GFP_KERNEL);
	w->claims = kunit_kcalloc(test, w->nr_claims, sizeof(*w->claims), GFP_KERNEL);
	w->entries = kunit_kcalloc(test, w->nr_claims, sizeof(*w->entries), GFP_KERNEL);
	w->cpu_tally = kunit_kcalloc(test, nr_cpus, sizeof(*w->cpu_tally), GFP_KERNEL);
	w->domain_tally = kunit_kcalloc(test, tallies, sizeof(*w->domain_tally), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->domains);
	KUNIT_ASSERT_NOT_NULL(test, w->claims);
	KUNIT_ASSERT_NOT_NULL(test, w->entries);
	KUNIT_ASSERT_NOT_NULL(test, w->cpu_tally);
	KUNIT_ASSERT_NOT_NULL(test, w->domain_tally);
	for (i = 0; i < w->nr_claims; i++)
		w->claims[i].holder = holder_of(w, i);

	/* Whatever there was before */
	memset(&w->bs, 0xff, sizeof(w->bs));
	KUNIT_ASSERT_EQ(test, bp_slots_init(&w->bs, nr_cpus, w->slots), 0);
	test->priv = w;
	compare(w);

	return w;
}

/* Whatever a test did: all claims released means that nothing is left. */
static void close_world(struct world *w)
{
	w->test->priv = NULL;
	w->thorough = false;
	release_everything(w);
	compare(w);
	bp_slots_destroy(&w->bs);
}

static void bp_slots_test_exit(struct kunit *test)
{
	if (test->priv)
		close_world(test->priv);
}

/* Three CPUs, three domains, and the registers of an x86 CPU for both classes. */
static struct world *small_world(struct kunit *test)
{
	return open_world(test, 3, 3, 32, 4, 4);
}

#define GRANTED(request)						\
({									\
	int __id = (request);						\
									\
	KUNIT_ASSERT_GE(test, __id, 0);					\
	__id;								\
})

#define REFUSED(request)	KUNIT_EXPECT_EQ(test, (request), -ENOSPC)

static void grant_each(struct kunit *test, struct world *w, int domain, int cpu,
		       unsigned int times)
{
	while (times--)
		GRANTED(ask(w, domain, cpu, GUARANTEED(1)));
}

/* ---- The rule for guaranteed claims ---- */

static void test_a_cpu_gives_as_many_as_it_has(struct kunit *test)
{
	struct world *w = small_world(test);

	grant_each(test, w, THE_CPU, 0, 4);
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	grant_each(test, w, THE_CPU, 1, 4);
	REFUSED(ask(w, THE_CPU, 1, GUARANTEED(1)));
}

static void test_a_domain_gets_as_many_as_a_cpu_has(struct kunit *test)
{
	struct world *w = small_world(test);

	grant_each(test, w, 0, ANYWHERE, 4);
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	REFUSED(ask(w, 0, 1, GUARANTEED(1)));
}

static void test_a_bound_domain_gets_as_many_on_each_cpu(struct kunit *test)
{
	struct world *w = small_world(test);
	int cpu;

	for (cpu = 0; cpu < 3; cpu++) {
		grant_each(test, w, 0, cpu, 4);
		REFUSED(ask(w, 0, cpu, GUARANTEED(1)));
	}
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
}

static void test_domains_cost_each_other_nothing(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(4)));
	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(4)));
	GRANTED(ask(w, 2, 0, GUARANTEED(4)));
	GRANTED(ask(w, 2, 1, GUARANTEED(4)));
}

static void test_bound_and_unbound_claims_of_a_domain_add_up(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 0, 0, GUARANTEED(2)));
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(3)));
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	REFUSED(ask(w, 0, 1, GUARANTEED(1)));
	GRANTED(ask(w, 0, 2, GUARANTEED(2)));
}

static void test_a_cpu_lives_with_the_worst_domain(struct kunit *test)
{
	struct world *w = small_world(test);
	int worst = GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(3)));

	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(1)));
	GRANTED(ask(w, 2, ANYWHERE, GUARANTEED(1)));
	REFUSED(ask(w, THE_CPU, 2, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, 2, GUARANTEED(1)));
	release(w, worst);
	GRANTED(ask(w, THE_CPU, 2, GUARANTEED(2)));
	REFUSED(ask(w, THE_CPU, 2, GUARANTEED(1)));
}

static void test_a_cpu_lives_with_domains_bound_to_it_only(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 0, 0, GUARANTEED(4)));
	GRANTED(ask(w, 1, 0, GUARANTEED(1)));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, THE_CPU, 1, GUARANTEED(4)));
}

static void test_a_domain_lives_with_the_fullest_cpu(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, THE_CPU, 1, GUARANTEED(3)));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
}

static void test_a_bound_domain_lives_with_its_cpu_only(struct kunit *test)
{
	struct world *w = small_world(test);

	grant_each(test, w, THE_CPU, 0, 4);
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
	GRANTED(ask(w, 0, 1, GUARANTEED(4)));
}

static void test_a_weight_is_that_many_registers(struct kunit *test)
{
	struct world *w = small_world(test);
	int three = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(3)));

	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	release(w, three);
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(3)));
	REFUSED(ask(w, THE_CPU, 1, GUARANTEED(5)));
	GRANTED(ask(w, THE_CPU, 1, GUARANTEED(4)));
}

static void test_classes_cost_each_other_nothing(struct kunit *test)
{
	struct bp_claim_spec other = { .class = 1, .weight = 2 };
	struct world *w = open_world(test, 3, 3, 32, 4, 2);

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, 0, other));
	REFUSED(ask(w, THE_CPU, 0, other));
	GRANTED(ask(w, 0, 1, GUARANTEED(2)));
	GRANTED(ask(w, 0, 1, other));
	REFUSED(ask(w, 0, 1, other));
	GRANTED(ask(w, 0, 1, GUARANTEED(2)));
}

/* ---- The rule for flexible claims ---- */

static void test_any_number_of_flexible_claims_shares_one(struct kunit *test)
{
	struct world *w = small_world(test);
	int i;

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(3)));
	for (i = 0; i < 6; i++) {
		GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));
		GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
		GRANTED(ask(w, 0, 0, FLEXIBLE));
		GRANTED(ask(w, 1, 0, FLEXIBLE));
	}
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
}

static void test_flexible_claims_need_one_left_over(struct kunit *test)
{
	struct world *w = small_world(test);
	int full = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(4)));

	REFUSED(ask(w, THE_CPU, 0, FLEXIBLE));
	REFUSED(ask(w, 0, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, 0, 0, FLEXIBLE));
	GRANTED(ask(w, 0, 1, FLEXIBLE));
	release(w, full);

	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(4)));
	REFUSED(ask(w, 1, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, 1, 0, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 0, FLEXIBLE));
	GRANTED(ask(w, 2, ANYWHERE, FLEXIBLE));
}

static void test_flexible_claims_keep_one_from_guaranteed(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(3)));

	GRANTED(ask(w, 0, 1, FLEXIBLE));
	REFUSED(ask(w, 0, 1, GUARANTEED(4)));
	GRANTED(ask(w, 0, 1, GUARANTEED(3)));
}

static void test_the_last_flexible_claim_gives_the_register_back(struct kunit *test)
{
	struct world *w = small_world(test);
	int of_cpu, of_domain, bound;

	of_cpu = GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));
	of_domain = GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	bound = GRANTED(ask(w, 0, 0, FLEXIBLE));
	GRANTED(ask(w, 0, 0, GUARANTEED(3)));

	release(w, of_cpu);
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
	release(w, bound);
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
	release(w, of_domain);
	GRANTED(ask(w, 0, 0, GUARANTEED(1)));
}

static void test_flexible_claims_of_a_domain_cost_others_nothing(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	GRANTED(ask(w, 1, 0, FLEXIBLE));
	GRANTED(ask(w, 2, ANYWHERE, GUARANTEED(4)));
}

static void test_flexible_claims_of_a_domain_cost_its_cpus_one(struct kunit *test)
{
	struct world *w = small_world(test);
	int anywhere;

	GRANTED(ask(w, 1, 1, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 1, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(4)));

	anywhere = GRANTED(ask(w, 2, 2, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 2, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, 2, GUARANTEED(3)));
	release(w, anywhere);
	GRANTED(ask(w, THE_CPU, 2, GUARANTEED(1)));
}

static void test_flexible_claims_of_a_cpu_cost_each_domain_there_one(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 1, FLEXIBLE));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(4)));
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(3)));
	REFUSED(ask(w, 1, 1, GUARANTEED(4)));
	GRANTED(ask(w, 1, 1, GUARANTEED(3)));
	GRANTED(ask(w, 1, 0, GUARANTEED(4)));
}

static void test_flexible_claims_of_cpu_and_domain_share_one(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	GRANTED(ask(w, 1, ANYWHERE, FLEXIBLE));
	GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, 1, 0, GUARANTEED(2)));
	REFUSED(ask(w, 1, 0, GUARANTEED(1)));
}

/* ---- The edges of what a CPU can have ---- */

static void test_one_register_is_guaranteed_or_flexible(struct kunit *test)
{
	struct world *w = open_world(test, 2, 2, 8, 1, 1);
	int id = GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));

	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	release(w, id);
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	REFUSED(ask(w, THE_CPU, 0, FLEXIBLE));
	REFUSED(ask(w, 0, ANYWHERE, FLEXIBLE));
}

/* Requests far beyond what there is leave the highest level as they met it. */
static void test_the_most_registers_a_cpu_can_have(struct kunit *test)
{
	struct world *w = open_world(test, 2, 2, 16, BP_SLOTS_MAX, BP_SLOTS_MAX);
	int all = GRANTED(ask(w, 0, 0, GUARANTEED(BP_SLOTS_MAX)));

	REFUSED(ask(w, 0, 0, GUARANTEED(BP_SLOTS_MAX)));
	REFUSED(ask(w, 0, 0, GUARANTEED(1)));
	REFUSED(ask(w, 0, 0, FLEXIBLE));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(BP_SLOTS_MAX)));
	REFUSED(ask(w, 0, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(BP_SLOTS_MAX)));
	REFUSED(ask(w, THE_CPU, 0, FLEXIBLE));
	release(w, all);

	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(BP_SLOTS_MAX - 1)));
	GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, 0, 0, GUARANTEED(BP_SLOTS_MAX)));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(BP_SLOTS_MAX)));
	GRANTED(ask(w, THE_CPU, 0, FLEXIBLE));
	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(BP_SLOTS_MAX - 1)));
}

static void test_init_refuses_more_registers_than_levels(struct kunit *test)
{
	unsigned int slots[BP_SLOTS_CLASSES] = { BP_SLOTS_MAX, BP_SLOTS_MAX };
	struct bp_slots *bs = kunit_kzalloc(test, sizeof(*bs), GFP_KERNEL);
	unsigned int class;

	KUNIT_ASSERT_NOT_NULL(test, bs);
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		slots[class]++;
		KUNIT_EXPECT_EQ(test, bp_slots_init(bs, 2, slots), -EINVAL);
		slots[class]--;
	}
	KUNIT_ASSERT_EQ(test, bp_slots_init(bs, 2, slots), 0);
	KUNIT_EXPECT_FALSE(test, bp_slots_in_use(bs));
	bp_slots_destroy(bs);
}

/* ---- The rule for claims of the machine ---- */

static void test_the_machine_takes_from_every_cpu(struct kunit *test)
{
	struct world *w = small_world(test);
	int wide;

	GRANTED(ask(w, THE_CPU, 2, GUARANTEED(1)));
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	wide = GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(3)));
	REFUSED(ask(w, THE_CPU, 1, GUARANTEED(1)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	REFUSED(ask(w, 1, ANYWHERE, GUARANTEED(1)));
	GRANTED(ask(w, 1, 1, GUARANTEED(1)));
	GRANTED(change(w, wide, &GUARANTEED(2)));
	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(1)));
	REFUSED(change(w, wide, &GUARANTEED(3)));
}

static void test_the_machine_lives_with_the_worst_cpu(struct kunit *test)
{
	struct world *w = small_world(test);
	int cpu;

	for (cpu = 0; cpu < 3; cpu++) {
		int full = GRANTED(ask(w, THE_CPU, cpu, GUARANTEED(3)));

		REFUSED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(2)));
		release(w, full);
	}
	GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(2)));
}

static void test_the_machine_lives_with_the_worst_domain(struct kunit *test)
{
	struct world *w = small_world(test);
	int bound = GRANTED(ask(w, 1, 2, GUARANTEED(4)));

	REFUSED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1)));
	release(w, bound);
	GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(3)));
	REFUSED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1)));
}

static void test_the_machine_leaves_flexible_claims_one(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, 2, 2, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(4)));
	GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(3)));
	GRANTED(ask(w, 1, ANYWHERE, FLEXIBLE));
	REFUSED(ask(w, THE_CPU, 0, GUARANTEED(2)));
	REFUSED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1)));
}

/* ---- Change of class or weight ---- */

static void test_change_counts_a_claim_once(struct kunit *test)
{
	struct world *w = small_world(test);
	const int domains[] = { THE_CPU, 0, 1 };
	const int cpus[] = { 0, 1, ANYWHERE };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		int id = GRANTED(ask(w, domains[i], cpus[i], GUARANTEED(3)));

		GRANTED(change(w, id, &GUARANTEED(4)));
		GRANTED(change(w, id, &GUARANTEED(4)));
		GRANTED(change(w, id, &GUARANTEED(1)));
		GRANTED(change(w, id, &GUARANTEED(3)));
		release(w, id);
	}
}

static void test_a_refused_change_keeps_the_claim(struct kunit *test)
{
	struct world *w = small_world(test);
	int of_cpu, of_domain, bound;

	of_cpu = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	of_domain = GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	bound = GRANTED(ask(w, 0, 0, GUARANTEED(2)));

	REFUSED(change(w, of_cpu, &GUARANTEED(2)));
	REFUSED(change(w, of_domain, &GUARANTEED(2)));
	REFUSED(change(w, bound, &GUARANTEED(3)));
	REFUSED(change(w, bound, &GUARANTEED(5)));
	GRANTED(change(w, bound, &GUARANTEED(1)));
	GRANTED(change(w, of_domain, &GUARANTEED(2)));
	REFUSED(change(w, of_cpu, &GUARANTEED(2)));
}

static void test_change_to_another_class(struct kunit *test)
{
	const struct bp_claim_spec other = { .class = 1, .weight = 2 };
	const struct bp_claim_spec more = { .class = 1, .weight = 3 };
	struct world *w = open_world(test, 3, 3, 32, 4, 2);
	const int domains[] = { THE_CPU, 0, 1 };
	const int cpus[] = { 0, 1, ANYWHERE };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		int id = GRANTED(ask(w, domains[i], cpus[i], GUARANTEED(4)));

		REFUSED(change(w, id, &more));
		GRANTED(change(w, id, &other));
		GRANTED(ask(w, domains[i], cpus[i], GUARANTEED(1)));
		REFUSED(change(w, id, &GUARANTEED(4)));
		GRANTED(change(w, id, &GUARANTEED(3)));
		GRANTED(ask(w, domains[i], cpus[i], other));
		REFUSED(change(w, id, &other));
		release_everything(w);
	}
}

static void test_change_of_all_or_of_none(struct kunit *test)
{
	const struct bp_claim_spec one = { .class = 1, .weight = 1 };
	const struct bp_claim_spec two = { .class = 1, .weight = 2 };
	struct world *w = open_world(test, 3, 3, 32, 4, 2);
	unsigned int domain;

	/* What one domain takes costs another nothing, all of them the CPU. */
	for (domain = 0; domain < 3; domain++)
		GRANTED(ask(w, domain, ANYWHERE, GUARANTEED(1)));
	GRANTED(change_everything(w, &GUARANTEED(1), &one));
	GRANTED(change_everything(w, &one, &two));
	GRANTED(change_everything(w, &two, &GUARANTEED(1)));

	/* The last of them finds no room: the first stay what they are too. */
	GRANTED(ask(w, 2, 1, GUARANTEED(1)));
	GRANTED(ask(w, 2, 1, GUARANTEED(1)));
	REFUSED(change_everything(w, &GUARANTEED(1), &one));
	REFUSED(change_everything(w, &GUARANTEED(1), &GUARANTEED(2)));
	release(w, 4);
	GRANTED(change_everything(w, &GUARANTEED(1), &one));
}

static void test_change_of_a_flexible_claim_is_one_of_class(struct kunit *test)
{
	const struct bp_claim_spec other = {
		.class = 1, .weight = 1, .flexible = true,
	};
	struct world *w = small_world(test);
	int id = GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	int full;

	GRANTED(change(w, id, &other));
	full = GRANTED(ask(w, 0, 2, GUARANTEED(4)));
	REFUSED(change(w, id, &FLEXIBLE));
	release(w, full);
	GRANTED(change(w, id, &FLEXIBLE));
	REFUSED(ask(w, 0, 2, GUARANTEED(4)));
}

static void test_change_keeps_the_kind(struct kunit *test)
{
	struct world *w = small_world(test);
	int guaranteed = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	int flexible = GRANTED(ask(w, 0, 0, FLEXIBLE));

	KUNIT_EXPECT_EQ(test, bp_slots_change(&w->bs, &w->claims[guaranteed],
					      &FLEXIBLE), -EINVAL);
	KUNIT_EXPECT_EQ(test, bp_slots_change(&w->bs, &w->claims[flexible],
					      &GUARANTEED(1)), -EINVAL);
	compare(w);
}

static void test_change_needs_a_claim(struct kunit *test)
{
	struct world *w = small_world(test);
	int id = GRANTED(ask(w, 0, 0, GUARANTEED(1)));

	release(w, id);
	KUNIT_EXPECT_EQ(test, bp_slots_change(&w->bs, &w->claims[id],
					      &GUARANTEED(1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, bp_slots_change(&w->bs, &w->claims[id + 1],
					      &GUARANTEED(1)), -EINVAL);
	compare(w);
}

/* ---- Handing over and giving back ---- */

static void test_release_is_idempotent(struct kunit *test)
{
	struct world *w = small_world(test);
	const int domains[] = { THE_CPU, 0, 0 };
	const int cpus[] = { 0, 0, ANYWHERE };
	unsigned int i, times;

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, 0, 0, FLEXIBLE));
	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		int id = GRANTED(ask(w, domains[i], cpus[i], GUARANTEED(1)));

		for (times = 0; times < 4; times++)
			release(w, id);
	}
}

static void test_release_of_zeros_does_nothing(struct kunit *test)
{
	struct world *w = small_world(test);
	struct bp_claim claim = {};

	bp_slots_release(&w->bs, &claim);
	KUNIT_EXPECT_EQ(test, bp_slots_try_release(&w->bs, &claim), 0);
	compare(w);
}

static void test_in_use_until_the_last_claim_is_gone(struct kunit *test)
{
	const struct bp_claim_spec other = { .class = 1, .weight = 1 };
	struct world *w = small_world(test);
	int first, last;

	KUNIT_EXPECT_FALSE(test, bp_slots_in_use(&w->bs));
	first = GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	last = GRANTED(ask(w, THE_CPU, 2, other));
	release(w, first);
	KUNIT_EXPECT_TRUE(test, bp_slots_in_use(&w->bs));
	release(w, last);
	KUNIT_EXPECT_FALSE(test, bp_slots_in_use(&w->bs));
}

/* ---- What the books tell ---- */

static void expect_spare(struct world *w, unsigned int nobody, unsigned int first,
			 unsigned int second)
{
	KUNIT_EXPECT_EQ(w->test, bp_slots_spare(&w->bs, 0, NULL, 1), nobody);
	KUNIT_EXPECT_EQ(w->test, bp_slots_spare(&w->bs, 0, &w->domains[0], 1),
			first);
	KUNIT_EXPECT_EQ(w->test, bp_slots_spare(&w->bs, 0, &w->domains[1], 1),
			second);
}

static void test_spare_is_what_guaranteed_claims_leave(struct kunit *test)
{
	const struct bp_claim_spec other = { .class = 1, .weight = 2 };
	struct world *w = small_world(test);
	int of_cpu, of_domain;

	expect_spare(w, 4, 4, 4);
	of_cpu = GRANTED(ask(w, THE_CPU, 1, GUARANTEED(1)));
	expect_spare(w, 3, 3, 3);
	of_domain = GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	expect_spare(w, 3, 1, 3);
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	expect_spare(w, 3, 0, 3);
	GRANTED(ask(w, 1, 1, GUARANTEED(1)));
	expect_spare(w, 3, 0, 2);

	/* Elsewhere, and of another class */
	GRANTED(ask(w, 1, 2, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, 1, other));
	GRANTED(ask(w, 1, ANYWHERE, other));
	expect_spare(w, 3, 0, 2);
	KUNIT_EXPECT_EQ(test, bp_slots_spare(&w->bs, 1, &w->domains[1], 1), 0);

	release(w, of_cpu);
	expect_spare(w, 4, 1, 3);
	GRANTED(change(w, of_domain, &GUARANTEED(1)));
	expect_spare(w, 4, 2, 3);
	release(w, of_domain);
	expect_spare(w, 4, 3, 3);
}

static void test_flexible_claims_are_spared_no_register(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 1, FLEXIBLE));
	GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	GRANTED(ask(w, 0, 1, FLEXIBLE));
	expect_spare(w, 4, 4, 4);
	GRANTED(ask(w, 0, 1, GUARANTEED(3)));
	expect_spare(w, 4, 1, 4);
}

static void test_a_domain_that_is_full_is_told_so(struct kunit *test)
{
	struct world *w = small_world(test);
	struct bp_domain *domain = &w->domains[0];
	int flexible;

	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &GUARANTEED(2), domain));
	KUNIT_EXPECT_TRUE(test, bp_slots_full(&w->bs, &GUARANTEED(3), domain));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &FLEXIBLE, domain));

	flexible = GRANTED(ask(w, 0, ANYWHERE, FLEXIBLE));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &GUARANTEED(1), domain));
	KUNIT_EXPECT_TRUE(test, bp_slots_full(&w->bs, &GUARANTEED(2), domain));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &FLEXIBLE, domain));
	release(w, flexible);

	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(2)));
	KUNIT_EXPECT_TRUE(test, bp_slots_full(&w->bs, &FLEXIBLE, domain));
	KUNIT_EXPECT_TRUE(test, bp_slots_full(&w->bs, &GUARANTEED(1), domain));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &GUARANTEED(1),
					       &w->domains[1]));
}

static void test_a_full_place_does_not_make_a_domain_full(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(4)));
	GRANTED(ask(w, 0, 1, GUARANTEED(4)));
	KUNIT_EXPECT_FALSE(test, bp_slots_full(&w->bs, &GUARANTEED(4),
					       &w->domains[0]));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	GRANTED(ask(w, 0, 2, GUARANTEED(4)));
}

/* One step; how often each claim has been met so far is in the entries. */
static bool walk_on(struct world *w, struct bp_walk *walk)
{
	return bp_slots_walk_next(&w->bs, walk, see_claim, w);
}

static void expect_seen(struct world *w, unsigned int id, unsigned int times)
{
	KUNIT_EXPECT_EQ(w->test, w->entries[id].seen, times);
}

static void test_walks_do_not_see_each_other(struct kunit *test)
{
	struct world *w = small_world(test);
	int first = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	int last = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	struct bp_walk one, two;

	w->thorough = false;
	w->entries[first].seen = 0;
	w->entries[last].seen = 0;
	memset(&one, 0xff, sizeof(one));
	memset(&two, 0xff, sizeof(two));
	bp_slots_walk_begin(&w->bs, &one);
	bp_slots_walk_begin(&w->bs, &two);
	KUNIT_EXPECT_TRUE(test, walk_on(w, &one));
	KUNIT_EXPECT_TRUE(test, walk_on(w, &two));
	expect_seen(w, first, 2);
	KUNIT_EXPECT_TRUE(test, walk_on(w, &two));
	KUNIT_EXPECT_FALSE(test, walk_on(w, &two));
	bp_slots_walk_end(&w->bs, &two);
	KUNIT_EXPECT_TRUE(test, walk_on(w, &one));
	KUNIT_EXPECT_FALSE(test, walk_on(w, &one));
	bp_slots_walk_end(&w->bs, &one);
	expect_seen(w, first, 2);
	expect_seen(w, last, 2);
	KUNIT_EXPECT_EQ(test, w->strangers, 0);
}

static void test_claims_come_and_go_during_a_walk(struct kunit *test)
{
	struct world *w = small_world(test);
	int id[4], i, late;
	struct bp_walk walk;

	w->thorough = false;
	for (i = 0; i < 4; i++) {
		id[i] = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
		w->entries[id[i]].seen = 0;
	}

	bp_slots_walk_begin(&w->bs, &walk);
	KUNIT_EXPECT_TRUE(test, walk_on(w, &walk));
	KUNIT_EXPECT_TRUE(test, walk_on(w, &walk));
	/* What was seen first and last, and what would be seen next */
	release(w, id[0]);
	release(w, id[1]);
	release(w, id[2]);
	late = GRANTED(ask(w, THE_CPU, 1, GUARANTEED(1)));
	REFUSED(ask(w, THE_CPU, 1, GUARANTEED(4)));
	w->entries[late].seen = 0;
	KUNIT_EXPECT_TRUE(test, walk_on(w, &walk));
	expect_seen(w, id[3], 1);
	while (walk_on(w, &walk))
		;
	bp_slots_walk_end(&w->bs, &walk);

	expect_seen(w, id[3], 1);
	KUNIT_EXPECT_LE(test, w->entries[late].seen, 1);
	KUNIT_EXPECT_EQ(test, w->strangers, 0);
}

static void test_a_walk_among_nobody_ends(struct kunit *test)
{
	struct world *w = small_world(test);
	struct bp_walk walk;

	bp_slots_walk_begin(&w->bs, &walk);
	KUNIT_EXPECT_FALSE(test, walk_on(w, &walk));
	KUNIT_EXPECT_FALSE(test, walk_on(w, &walk));
	bp_slots_walk_end(&w->bs, &walk);
	KUNIT_EXPECT_FALSE(test, bp_slots_in_use(&w->bs));
}

/* ---- Locked books ---- */

static void test_try_is_busy_while_the_books_are_locked(struct kunit *test)
{
	struct world *w = small_world(test);
	int held = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	int reserved, wide, released;
	unsigned long flags;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a lock cannot be busy on one CPU");

	raw_spin_lock_irqsave(&w->bs.lock, flags);
	reserved = bp_slots_try_reserve(&w->bs, &w->claims[held + 1],
					&GUARANTEED(1), NULL, 0);
	wide = bp_slots_try_reserve(&w->bs, &w->claims[held + 1],
				    &GUARANTEED(1), NULL, ANYWHERE);
	released = bp_slots_try_release(&w->bs, &w->claims[held]);
	raw_spin_unlock_irqrestore(&w->bs.lock, flags);

	KUNIT_EXPECT_EQ(test, reserved, -EBUSY);
	KUNIT_EXPECT_EQ(test, wide, -EBUSY);
	KUNIT_EXPECT_EQ(test, released, -EBUSY);
	compare(w);
	KUNIT_EXPECT_EQ(test, bp_slots_try_release(&w->bs, &w->claims[held]), 0);
	w->entries[held].held = false;
	compare(w);
}

/* ---- Malformed requests ---- */

struct malformed {
	const char	*name;
	struct request	request;
	int		err;
};

static const struct malformed malformed_requests[] = {
	{ "class above the last",
	  { 0, 0, { .class = BP_SLOTS_CLASSES, .weight = 1 } }, -EINVAL },
	{ "class far above the last",
	  { 0, 0, { .class = UINT_MAX, .weight = 1 } }, -EINVAL },
	{ "no weight", { 0, 0, { .weight = 0 } }, -EINVAL },
	{ "flexible without weight",
	  { 0, 0, { .flexible = true } }, -EINVAL },
	{ "flexible with a weight",
	  { 0, 0, { .weight = 2, .flexible = true } }, -EINVAL },
	{ "CPU below any", { 0, -2, { .weight = 1 } }, -EINVAL },
	{ "CPU far below any", { 0, INT_MIN, { .weight = 1 } }, -EINVAL },
	{ "the machine, flexible",
	  { THE_CPU, ANYWHERE, { .weight = 1, .flexible = true } }, -EINVAL },
	{ "the machine without weight", { THE_CPU, ANYWHERE, { } }, -EINVAL },
	{ "the machine in a class without registers",
	  { THE_CPU, ANYWHERE, { .class = 1, .weight = 1 } }, -EOPNOTSUPP },
	{ "more than the machine has",
	  { THE_CPU, ANYWHERE, { .weight = 5 } }, -ENOSPC },
	{ "CPU after the last", { THE_CPU, 3, { .weight = 1 } }, -ENODEV },
	{ "domain on a CPU after the last",
	  { 0, 3, { .weight = 1 } }, -ENODEV },
	{ "CPU far after the last", { 0, INT_MAX, { .weight = 1 } }, -ENODEV },
	{ "no weight on a CPU after the last", { 0, 3, { } }, -EINVAL },
	{ "class without registers on a CPU after the last",
	  { 0, 3, { .class = 1, .weight = 1 } }, -ENODEV },
	{ "too much on a CPU after the last", { 0, 3, { .weight = 5 } }, -ENODEV },
	{ "too much in a class without registers",
	  { 0, 0, { .class = 1, .weight = 5 } }, -EOPNOTSUPP },
	{ "class without registers",
	  { 0, 0, { .class = 1, .weight = 1 } }, -EOPNOTSUPP },
	{ "flexible in a class without registers",
	  { 0, 0, { .class = 1, .weight = 1, .flexible = true } }, -EOPNOTSUPP },
	{ "more than all registers", { 0, 0, { .weight = 5 } }, -ENOSPC },
	{ "more than fits a byte", { 0, 0, { .weight = 257 } }, -ENOSPC },
	{ "more than there can be", { 0, 0, { .weight = UINT_MAX } }, -ENOSPC },
};

KUNIT_ARRAY_PARAM_DESC(malformed, malformed_requests, name);

static void test_malformed(struct kunit *test)
{
	const struct malformed *malformed = test->param_value;
	const struct request *request = &malformed->request;
	const struct bp_claim_spec *spec = &request->spec;
	struct world *w = open_world(test, 3, 3, 8, 4, 0);
	int held = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	struct bp_claim *claim = &w->claims[held + 1];
	struct bp_domain *domain = domain_of(w, request);

	KUNIT_EXPECT_EQ(test, bp_slots_reserve(&w->bs, claim, spec, domain,
					       request->cpu), malformed->err);
	compare(w);
	KUNIT_EXPECT_EQ(test, bp_slots_try_reserve(&w->bs, claim, spec, domain,
						   request->cpu), malformed->err);
	compare(w);

	if (request->cpu)
		return;

	/* It is what is asked for that is malformed, not by whom or where. */
	if (spec->flexible && malformed->err != -EINVAL)
		return;
	KUNIT_EXPECT_EQ(test, bp_slots_change(&w->bs, &w->claims[held], spec),
			malformed->err);
	compare(w);
}

/* ---- Every world of two CPUs and three domains, up to a bound ---- */

#define WALK_CPUS	2
#define WALK_DOMAINS	3
#define WALK_REQUESTS	35
/* Requests in a row, whatever they are; one more for a single register. */
#define WALK_LENGTH(n)	((n) > 1 ? 3 : 4)
/* Claims that stand together. */
#define WALK_CLAIMS	4

/*
 * KASAN makes the walks five times as long.  It sees each access in the small
 * worlds; the verdicts in the larger ones need no KASAN.
 */
static const unsigned int walk_slots[] = {
	1, 2,
#ifndef CONFIG_KASAN
	3, 4,
#endif
};

static void walk_slots_desc(const unsigned int *slots, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u registers", *slots);
}

KUNIT_ARRAY_PARAM(walk_slots, walk_slots, walk_slots_desc);

struct walk {
	struct world	*w;
	struct request	requests[WALK_REQUESTS];
	unsigned int	nr_requests;
};

static void walk_add(struct walk *walk, int domain, int cpu,
		     struct bp_claim_spec spec)
{
	walk->requests[walk->nr_requests++] =
		(struct request) { domain, cpu, spec };
}

/* All that anybody can ask for, ordered by who asks. */
static struct walk *open_walk(struct kunit *test, unsigned int slots)
{
	struct walk *walk = kunit_kzalloc(test, sizeof(*walk), GFP_KERNEL);
	int domain, cpu;

	KUNIT_ASSERT_NOT_NULL(test, walk);
	for (domain = THE_CPU; domain < WALK_DOMAINS; domain++) {
		for (cpu = ANYWHERE; cpu < WALK_CPUS; cpu++) {
			walk_add(walk, domain, cpu, GUARANTEED(1));
			walk_add(walk, domain, cpu, GUARANTEED(2));
			if (domain != THE_CPU || cpu != ANYWHERE)
				walk_add(walk, domain, cpu, FLEXIBLE);
		}
	}
	KUNIT_ASSERT_EQ(test, walk->nr_requests, WALK_REQUESTS);
	walk->w = open_world(test, WALK_CPUS, WALK_DOMAINS, 6, slots, 1);
	walk->w->turns = 7;

	return walk;
}

/*
 * Domains are alike, so a walk comes to a domain only after the one before it:
 * all other walks are the same with other names.
 */
static bool walk_enters(const struct request *request, int *domains)
{
	if (request->domain > *domains)
		return false;
	*domains = max(*domains, request->domain + 1);
	return true;
}

static void walk_sequences(struct walk *walk, unsigned int length, int domains);

static void walk_changes(struct walk *walk, unsigned int id,
			 unsigned int length, int domains)
{
	const struct bp_claim_spec was = walk->w->entries[id].request.spec;
	struct bp_claim_spec spec = { .flexible = was.flexible };

	for (spec.class = 0; spec.class < BP_SLOTS_CLASSES; spec.class++) {
		for (spec.weight = 1; spec.weight <= 2; spec.weight++) {
			if (spec.flexible && spec.weight > 1)
				continue;
			if (change(walk->w, id, &spec))
				continue;
			walk_sequences(walk, length, domains);
			must(walk->w, !change(walk->w, id, &was),
			     "change back", id);
		}
	}
}

/* All sequences of @length requests, from here on. */
static void walk_sequences(struct walk *walk, unsigned int length, int domains)
{
	struct world *w = walk->w;
	unsigned int id, i;

	if (!length--)
		return;

	id = unused_claim(w);
	for (i = 0; i < walk->nr_requests; i++) {
		int entered = domains;

		if (!walk_enters(&walk->requests[i], &entered) ||
		    reserve(w, id, &walk->requests[i]))
			continue;
		walk_sequences(walk, length, entered);
		release(w, id);
	}

	for (id = 0; id < w->nr_claims; id++) {
		const struct request was = w->entries[id].request;

		if (!w->entries[id].held)
			continue;
		walk_changes(walk, id, length, domains);
		release(w, id);
		walk_sequences(walk, length, domains);
		must(w, !reserve(w, id, &was), "take back", id);
	}
	cond_resched();
}

/* All sets of up to @claims more claims, and what else is asked for then. */
static void walk_sets(struct walk *walk, unsigned int claims, unsigned int from,
		      int domains)
{
	struct world *w = walk->w;
	unsigned int id = unused_claim(w), i;

	for (i = 0; i < walk->nr_requests; i++) {
		int entered = domains;

		if (!walk_enters(&walk->requests[i], &entered) ||
		    reserve(w, id, &walk->requests[i]))
			continue;
		if (claims && i >= from)
			walk_sets(walk, claims - 1, i, entered);
		release(w, id);
	}
	cond_resched();
}

static void test_every_short_sequence(struct kunit *test)
{
	const unsigned int *slots = test->param_value;
	struct walk *walk = open_walk(test, *slots);

	walk_sequences(walk, WALK_LENGTH(*slots), 0);
	kunit_info(test, "%lu requests", walk->w->calls);
}

static void test_every_small_set(struct kunit *test)
{
	const unsigned int *slots = test->param_value;
	struct walk *walk = open_walk(test, *slots);

	walk_sets(walk, WALK_CLAIMS - 1, 0, 0);
	kunit_info(test, "%lu requests", walk->w->calls);
}

/* ---- Long lives of larger worlds ---- */

/* struct life - a world, and what happens to it */
struct life {
	const char	*name;
	u64		seed;
	unsigned int	nr_cpus;
	unsigned int	nr_domains;
	unsigned int	nr_claims;
	unsigned int	slots[BP_SLOTS_CLASSES];
	unsigned int	requests;
	bool		thorough;
};

static const struct life lives[] = {
	{ "1 CPU, 2 domains", 1, 1, 2, 16, { 4, 4 }, 4000, true },
	{ "2 CPUs, 3 domains", 2, 2, 3, 24, { 4, 1 }, 8000, true },
	{ "4 CPUs, 8 domains", 3, 4, 8, 64, { 4, 4 }, 3000, true },
	{ "16 CPUs, 64 domains", 4, 16, 64, 512, { 6, 4 }, 10000 },
	{ "64 CPUs, 300 domains", 5, 64, 300, 1500, { BP_SLOTS_MAX, 2 }, 10000 },
	{ "64 CPUs, 1500 domains", 6, 64, 1500, 2000, { 4, 4 }, 6000 },
};

KUNIT_ARRAY_PARAM_DESC(life, lives, name);

static unsigned int below(struct rnd_state *rnd, unsigned int limit)
{
	return prandom_u32_state(rnd) % limit;
}

static struct bp_claim_spec random_spec(const struct world *w,
					struct rnd_state *rnd, bool flexible)
{
	unsigned int class = below(rnd, BP_SLOTS_CLASSES);
	unsigned int most = below(rnd, 4) ? 2 : w->slots[class];

	return (struct bp_claim_spec) {
		.class		= class,
		.weight		= flexible ? 1 : 1 + below(rnd, most),
		.flexible	= flexible,
	};
}

/* Half of the requests crowd in a corner of the world. */
static int random_one_of(struct rnd_state *rnd, unsigned int nr)
{
	return below(rnd, below(rnd, 2) ? nr : min(nr, 3U));
}

static struct request random_request(const struct world *w,
				     struct rnd_state *rnd)
{
	struct request request = { THE_CPU, ANYWHERE };

	if (below(rnd, 4))
		request.domain = random_one_of(rnd, w->nr_domains);
	if (below(rnd, request.domain == THE_CPU ? 16 : 2))
		request.cpu = random_one_of(rnd, w->nr_cpus);
	request.spec = random_spec(w, rnd, !is_machine(&request) && !below(rnd, 3));

	return request;
}

/* Returns true if nothing was refused. */
static bool live_once(struct world *w, struct rnd_state *rnd, bool growing)
{
	unsigned int id = below(rnd, w->nr_claims);
	struct entry *entry = &w->entries[id];
	struct bp_claim_spec spec;
	struct request request;

	if (!below(rnd, 8) || (entry->held && below(rnd, 8) < (growing ? 1 : 6))) {
		release(w, id);
		return true;
	}
	if (!entry->held) {
		request = random_request(w, rnd);
		return !reserve(w, id, &request);
	}
	spec = random_spec(w, rnd, entry->request.spec.flexible);
	return !change(w, id, &spec);
}

static void test_life(struct kunit *test)
{
	const struct life *life = test->param_value;
	unsigned int i, refused = 0;
	struct rnd_state rnd;
	struct world *w;

	w = open_world(test, life->nr_cpus, life->nr_domains, life->nr_claims,
		       life->slots[0], life->slots[1]);
	w->thorough = life->thorough;
	w->turns = 13;
	prandom_seed_state(&rnd, life->seed);

	for (i = 0; i < life->requests; i++) {
		/* Half of the time it grows, in eight waves. */
		bool growing = !((i * 16 / life->requests) & 1);

		refused += !live_once(w, &rnd, growing);
		if (!(i % 512))
			compare(w);
		cond_resched();
	}
	compare(w);

	/* Neither a world in which all fits nor one in which nothing does. */
	KUNIT_EXPECT_GT(test, refused, life->requests / 16);
	KUNIT_EXPECT_LT(test, refused, life->requests / 2);
}

/* ---- What a request costs ---- */

static int cost_reserve(struct world *w, struct bp_claim *claim,
			struct bp_domain *domain, int cpu)
{
	int err = bp_slots_reserve(&w->bs, claim, &FLEXIBLE, domain, cpu);

	bp_slots_release(&w->bs, claim);
	return err;
}

static int cost_of_cpu(struct world *w, struct bp_claim *claim)
{
	return cost_reserve(w, claim, NULL, 0);
}

static int cost_of_bound(struct world *w, struct bp_claim *claim)
{
	return cost_reserve(w, claim, &w->domains[0], 0);
}

static int cost_of_anywhere(struct world *w, struct bp_claim *claim)
{
	return cost_reserve(w, claim, &w->domains[0], ANYWHERE);
}

static int cost_of_refusal(struct world *w, struct bp_claim *claim)
{
	int err = bp_slots_reserve(&w->bs, claim, &GUARANTEED(4), NULL, 0);

	return err == -ENOSPC ? 0 : -EINVAL;
}

static int cost_of_change(struct world *w, struct bp_claim *claim)
{
	const struct bp_claim_spec other = {
		.class = 1, .weight = 1, .flexible = true,
	};
	int err;

	err = bp_slots_reserve(&w->bs, claim, &FLEXIBLE, &w->domains[0], 0);
	err = err ?: bp_slots_change(&w->bs, claim, &other);
	bp_slots_release(&w->bs, claim);
	return err;
}

static int cost_of_spare(struct world *w, struct bp_claim *claim)
{
	return bp_slots_spare(&w->bs, 0, &w->domains[0], 0) ? 0 : -ENOSPC;
}

static int cost_of_full(struct world *w, struct bp_claim *claim)
{
	return bp_slots_full(&w->bs, &GUARANTEED(1), &w->domains[0]) ? -ENOSPC : 0;
}

static const struct {
	const char	*name;
	int		(*op)(struct world *w, struct bp_claim *claim);
} cost_ops[] = {
	{ "claim of a CPU", cost_of_cpu },
	{ "bound claim of a domain", cost_of_bound },
	{ "claim of a domain", cost_of_anywhere },
	{ "refused claim", cost_of_refusal },
	{ "change", cost_of_change },
	{ "spare", cost_of_spare },
	{ "full", cost_of_full },
};

/* struct costs - nanoseconds of each operation, made and undone, undisturbed */
struct costs {
	u64	ns[ARRAY_SIZE(cost_ops)];
};

static u64 cost_of(struct world *w, unsigned int op)
{
	struct bp_claim *claim = &w->claims[unused_claim(w)];
	unsigned int i, failed = 0;
	u64 best = U64_MAX;

	for (i = 0; i < 64; i++) {
		u64 start = ktime_get_ns();

		failed += !!cost_ops[op].op(w, claim);
		best = min(best, ktime_get_ns() - start);
	}
	must(w, !failed, cost_ops[op].name, failed);

	return best;
}

static struct costs costs_of(struct world *w)
{
	struct costs costs;
	unsigned int op;

	for (op = 0; op < ARRAY_SIZE(cost_ops); op++)
		costs.ns[op] = cost_of(w, op);

	return costs;
}

/*
 * A step for each domain or claim would be hundreds of times the cost; clocks
 * that are coarser than a microsecond could not tell.
 */
static void expect_flat(struct kunit *test, const struct costs *few,
			const struct costs *many)
{
	unsigned int op;

	for (op = 0; op < ARRAY_SIZE(cost_ops); op++) {
		kunit_info(test, "%s: %llu ns, among many %llu ns",
			   cost_ops[op].name, few->ns[op], many->ns[op]);
		KUNIT_EXPECT_LT(test, many->ns[op],
				16 * (few->ns[op] + NSEC_PER_USEC));
	}
}

static struct costs costs_among_domains(struct kunit *test, unsigned int nr_cpus,
					unsigned int nr_domains)
{
	struct world *w = open_world(test, nr_cpus, nr_domains, 2 * nr_domains,
				     4, 4);
	struct costs costs;
	unsigned int i;

	w->thorough = false;
	for (i = 1; i < nr_domains; i++) {
		struct request anywhere = { i, ANYWHERE, GUARANTEED(2) };
		struct request bound = { i, i % nr_cpus, FLEXIBLE };

		GRANTED(reserve_unchecked(w, 2 * i, &anywhere));
		GRANTED(reserve_unchecked(w, 2 * i + 1, &bound));
	}
	costs = costs_of(w);
	close_world(w);

	return costs;
}

static void test_cost_is_flat_in_domains_and_cpus(struct kunit *test)
{
	struct costs few = costs_among_domains(test, 2, 2);
	struct costs many = costs_among_domains(test, 64, 5000);

	expect_flat(test, &few, &many);
}

static struct costs costs_among_claims(struct kunit *test, unsigned int claims)
{
	const struct request request = { 0, 0, FLEXIBLE };
	struct world *w = open_world(test, 2, 2, claims + 1, 4, 4);
	struct costs costs;
	unsigned int i;

	w->thorough = false;
	for (i = 0; i < claims; i++)
		GRANTED(reserve(w, i, &request));
	costs = costs_of(w);
	close_world(w);

	return costs;
}

static void test_cost_is_flat_in_flexible_claims(struct kunit *test)
{
	struct costs few = costs_among_claims(test, 2);
	struct costs many = costs_among_claims(test, 1000);

	expect_flat(test, &few, &many);
}

/* ---- Many at once ---- */

#define WORKERS		8

struct worker {
	struct world		*w;
	void			(*work)(struct worker *me);
	struct completion	done;
	struct rnd_state	rnd;
	unsigned int		number;
	unsigned int		first;
	unsigned int		claims;
	unsigned int		wrong;
};

static int worker_thread(void *data)
{
	struct worker *me = data;

	me->work(me);
	kthread_complete_and_exit(&me->done, 0);
}

static struct worker *hire(struct kunit *test, struct world *w)
{
	struct worker *workers;
	unsigned int i;

	workers = kunit_kcalloc(test, WORKERS, sizeof(*workers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, workers);
	for (i = 0; i < WORKERS; i++) {
		workers[i].w = w;
		workers[i].number = i;
		workers[i].claims = w->nr_claims / WORKERS;
		workers[i].first = i * workers[i].claims;
		prandom_seed_state(&workers[i].rnd, i + 1);
	}

	return workers;
}

/* Lets them work at the same time; returns at the pause. */
static void let_work(struct kunit *test, struct worker *workers,
		     void (*work)(struct worker *me))
{
	struct task_struct *task;
	unsigned int i, started;

	for (started = 0; started < WORKERS; started++) {
		struct worker *worker = &workers[started];

		worker->work = work;
		init_completion(&worker->done);
		task = kthread_run(worker_thread, worker, "bp_slots_test/%u",
				   started);
		if (IS_ERR(task))
			break;
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&workers[i].done);

	KUNIT_ASSERT_EQ(test, started, WORKERS);
	for (i = 0; i < WORKERS; i++)
		KUNIT_ASSERT_EQ(test, workers[i].wrong, 0);
}

/* Whatever others do, a claim is what its owner made of it. */
static void worker_checks(struct worker *me, unsigned int id, bool truth)
{
	const struct entry *entry = &me->w->entries[id];
	const struct bp_claim *claim = &me->w->claims[id];

	if (claim->held != entry->held)
		truth = false;
	if (entry->held && (claim->weight != entry->request.spec.weight ||
			    claim->class != entry->request.spec.class))
		truth = false;
	me->wrong += !truth;
}

static void worker_reserves(struct worker *me, unsigned int id, bool wait)
{
	struct request request = random_request(me->w, &me->rnd);
	struct bp_domain *domain = domain_of(me->w, &request);
	struct bp_claim *claim = &me->w->claims[id];
	struct bp_slots *bs = &me->w->bs;
	int err;

	if (wait)
		err = bp_slots_reserve(bs, claim, &request.spec, domain,
				       request.cpu);
	else
		err = bp_slots_try_reserve(bs, claim, &request.spec, domain,
					   request.cpu);

	me->w->entries[id].request = request;
	me->w->entries[id].held = !err;
	if (err == -EBUSY)
		worker_checks(me, id, !wait);
	else
		worker_checks(me, id, !err || err == -ENOSPC);
}

static void worker_releases(struct worker *me, unsigned int id, bool wait)
{
	struct bp_claim *claim = &me->w->claims[id];
	int err = 0;

	if (wait)
		bp_slots_release(&me->w->bs, claim);
	else
		err = bp_slots_try_release(&me->w->bs, claim);

	if (!err)
		me->w->entries[id].held = false;
	worker_checks(me, id, !err || (err == -EBUSY && !wait));
}

static void worker_changes(struct worker *me, unsigned int id)
{
	struct entry *entry = &me->w->entries[id];
	struct bp_claim_spec spec;
	int err;

	spec = random_spec(me->w, &me->rnd, entry->request.spec.flexible);
	err = bp_slots_change(&me->w->bs, &me->w->claims[id], &spec);
	if (!err)
		entry->request.spec = spec;
	worker_checks(me, id, !err || err == -ENOSPC);
}

/* What is told may be over at once, but never was impossible. */
static void worker_asks(struct worker *me)
{
	struct request request = random_request(me->w, &me->rnd);
	struct bp_domain *domain = domain_of(me->w, &request);
	unsigned int class = request.spec.class, spare;

	spare = bp_slots_spare(&me->w->bs, class, domain, max(request.cpu, 0));
	me->wrong += spare > me->w->slots[class];
	if (domain)
		bp_slots_full(&me->w->bs, &request.spec, domain);
}

static void work_at_random(struct worker *me)
{
	struct world *w = me->w;
	unsigned int i, id;

	for (i = 0; i < 400; i++) {
		bool wait = below(&me->rnd, 2);

		worker_asks(me);
		id = me->first + below(&me->rnd, me->claims);
		if (!w->entries[id].held)
			worker_reserves(me, id, wait);
		else if (below(&me->rnd, 2))
			worker_releases(me, id, wait);
		else
			worker_changes(me, id);
		if (!(i % 64))
			cond_resched();
	}
}

static void test_many_at_once(struct kunit *test)
{
	struct world *w = open_world(test, 4, 6, 96, 4, 3);
	struct worker *workers = hire(test, w);
	unsigned int pause;

	for (pause = 0; pause < 24; pause++) {
		let_work(test, workers, work_at_random);
		compare(w);
	}
}

static void work_at_walking(struct worker *me)
{
	struct world *w = me->w;
	struct bp_walk walk;
	unsigned int i, id;

	for (i = 0; i < 100; i++) {
		for (id = me->first; id < me->first + me->claims; id++)
			w->entries[id].seen = 0;

		bp_slots_walk_begin(&w->bs, &walk);
		while (bp_slots_walk_next(&w->bs, &walk, see_claim, w))
			;
		bp_slots_walk_end(&w->bs, &walk);

		for (id = me->first; id < me->first + me->claims; id++)
			me->wrong += w->entries[id].seen != 1;
		cond_resched();
	}
	me->wrong += w->strangers;
}

/* The first worker leaves its claims alone and looks for them. */
static void walk_or_work_at_random(struct worker *me)
{
	if (me->number)
		work_at_random(me);
	else
		work_at_walking(me);
}

static void test_claims_that_stay_are_seen_once(struct kunit *test)
{
	struct world *w = open_world(test, 4, 6, 64, 4, 3);
	struct worker *workers = hire(test, w);
	unsigned int pause, id;

	for (id = 0; id < workers[0].claims; id++) {
		struct request request = { id % 6, ANYWHERE, FLEXIBLE };

		GRANTED(reserve(w, id, &request));
	}
	for (pause = 0; pause < 12; pause++) {
		let_work(test, workers, walk_or_work_at_random);
		compare(w);
	}
}

static void work_at_releasing(struct worker *me)
{
	struct world *w = me->w;
	unsigned int i, id;

	for (i = 0; i < w->nr_claims; i++) {
		id = (me->first + i) % w->nr_claims;
		if (me->number & 1)
			bp_slots_release(&w->bs, &w->claims[id]);
		else
			while (bp_slots_try_release(&w->bs, &w->claims[id]))
				cpu_relax();
	}
}

/* As an event that is detached and one that is destroyed at the same time. */
static void test_one_claim_released_by_many_is_gone_once(struct kunit *test)
{
	struct world *w = open_world(test, 4, 6, 32, 4, 3);
	struct worker *workers = hire(test, w);
	unsigned int pause, id;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 6);
	for (pause = 0; pause < 24; pause++) {
		for (id = 0; id < w->nr_claims; id++) {
			struct request request = random_request(w, &rnd);

			reserve(w, id, &request);
		}
		let_work(test, workers, work_at_releasing);
		for (id = 0; id < w->nr_claims; id++)
			w->entries[id].held = false;
		compare(w);
	}
}

/*
 * Claim 0 fills up CPU 1, and CPU 3 is full.  Two workers ask for more, in vain,
 * one for what is free on CPU 0, and the others for what is full on CPU 1.
 */
static void work_in_vain(struct worker *me)
{
	struct bp_slots *bs = &me->w->bs;
	struct bp_claim *claims = me->w->claims;
	unsigned int i;
	int err;

	for (i = 0; i < 2000; i++) {
		switch (me->number) {
		case 0:
			err = bp_slots_reserve(bs, &claims[me->w->nr_claims - 1],
					       &GUARANTEED(1), NULL, ANYWHERE);
			me->wrong += err != -ENOSPC;
			break;
		case 1:
			err = bp_slots_change(bs, &claims[0], &GUARANTEED(4));
			me->wrong += err != -ENOSPC;
			break;
		case 2:
			err = bp_slots_reserve(bs, &claims[me->first],
					       &GUARANTEED(3), NULL, 0);
			me->wrong += err != 0;
			bp_slots_release(bs, &claims[me->first]);
			break;
		default:
			err = bp_slots_reserve(bs, &claims[me->first],
					       &GUARANTEED(1), NULL, 1);
			me->wrong += err != -ENOSPC;
			break;
		}
		if (!(i % 64))
			cond_resched();
	}
}

static void test_a_refused_request_is_never_seen(struct kunit *test)
{
	struct world *w = open_world(test, 4, 2, 16, 4, 4);

	GRANTED(ask(w, THE_CPU, 1, GUARANTEED(3)));
	GRANTED(ask(w, THE_CPU, 3, GUARANTEED(3)));
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	let_work(test, hire(test, w), work_in_vain);
	compare(w);
}

#define SLOW	{ .speed = KUNIT_SPEED_SLOW }

static struct kunit_case bp_slots_test_cases[] = {
	KUNIT_CASE(test_a_cpu_gives_as_many_as_it_has),
	KUNIT_CASE(test_a_domain_gets_as_many_as_a_cpu_has),
	KUNIT_CASE(test_a_bound_domain_gets_as_many_on_each_cpu),
	KUNIT_CASE(test_domains_cost_each_other_nothing),
	KUNIT_CASE(test_bound_and_unbound_claims_of_a_domain_add_up),
	KUNIT_CASE(test_a_cpu_lives_with_the_worst_domain),
	KUNIT_CASE(test_a_cpu_lives_with_domains_bound_to_it_only),
	KUNIT_CASE(test_a_domain_lives_with_the_fullest_cpu),
	KUNIT_CASE(test_a_bound_domain_lives_with_its_cpu_only),
	KUNIT_CASE(test_a_weight_is_that_many_registers),
	KUNIT_CASE(test_classes_cost_each_other_nothing),
	KUNIT_CASE(test_any_number_of_flexible_claims_shares_one),
	KUNIT_CASE(test_flexible_claims_need_one_left_over),
	KUNIT_CASE(test_flexible_claims_keep_one_from_guaranteed),
	KUNIT_CASE(test_the_last_flexible_claim_gives_the_register_back),
	KUNIT_CASE(test_flexible_claims_of_a_domain_cost_others_nothing),
	KUNIT_CASE(test_flexible_claims_of_a_domain_cost_its_cpus_one),
	KUNIT_CASE(test_flexible_claims_of_a_cpu_cost_each_domain_there_one),
	KUNIT_CASE(test_flexible_claims_of_cpu_and_domain_share_one),
	KUNIT_CASE(test_one_register_is_guaranteed_or_flexible),
	KUNIT_CASE(test_the_most_registers_a_cpu_can_have),
	KUNIT_CASE(test_init_refuses_more_registers_than_levels),
	KUNIT_CASE(test_the_machine_takes_from_every_cpu),
	KUNIT_CASE(test_the_machine_lives_with_the_worst_cpu),
	KUNIT_CASE(test_the_machine_lives_with_the_worst_domain),
	KUNIT_CASE(test_the_machine_leaves_flexible_claims_one),
	KUNIT_CASE(test_change_counts_a_claim_once),
	KUNIT_CASE(test_a_refused_change_keeps_the_claim),
	KUNIT_CASE(test_change_to_another_class),
	KUNIT_CASE(test_change_of_all_or_of_none),
	KUNIT_CASE(test_change_of_a_flexible_claim_is_one_of_class),
	KUNIT_CASE(test_change_keeps_the_kind),
	KUNIT_CASE(test_change_needs_a_claim),
	KUNIT_CASE(test_release_is_idempotent),
	KUNIT_CASE(test_release_of_zeros_does_nothing),
	KUNIT_CASE(test_in_use_until_the_last_claim_is_gone),
	KUNIT_CASE(test_spare_is_what_guaranteed_claims_leave),
	KUNIT_CASE(test_flexible_claims_are_spared_no_register),
	KUNIT_CASE(test_a_domain_that_is_full_is_told_so),
	KUNIT_CASE(test_a_full_place_does_not_make_a_domain_full),
	KUNIT_CASE(test_walks_do_not_see_each_other),
	KUNIT_CASE(test_claims_come_and_go_during_a_walk),
	KUNIT_CASE(test_a_walk_among_nobody_ends),
	KUNIT_CASE(test_try_is_busy_while_the_books_are_locked),
	KUNIT_CASE_PARAM(test_malformed, malformed_gen_params),
	KUNIT_CASE_PARAM_ATTR(test_every_short_sequence, walk_slots_gen_params, SLOW),
	KUNIT_CASE_PARAM_ATTR(test_every_small_set, walk_slots_gen_params, SLOW),
	KUNIT_CASE_PARAM_ATTR(test_life, life_gen_params, SLOW),
	KUNIT_CASE(test_cost_is_flat_in_domains_and_cpus),
	KUNIT_CASE(test_cost_is_flat_in_flexible_claims),
	KUNIT_CASE(test_many_at_once),
	KUNIT_CASE(test_claims_that_stay_are_seen_once),
	KUNIT_CASE(test_one_claim_released_by_many_is_gone_once),
	KUNIT_CASE(test_a_refused_request_is_never_seen),
	{},
};

static struct kunit_suite bp_slots_test_suite = {
	.name = "bp_slots",
	.test_cases = bp_slots_test_cases,
	.exit = bp_slots_test_exit,
};

kunit_test_suites(&bp_slots_test_suite);

MODULE_DESCRIPTION("KUnit test of the arbitration of breakpoint registers");
MODULE_LICENSE("GPL");
