// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle of the KUnit tests of the arbitration; see bp_slots_oracle.h.
 */

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "bp_slots_oracle.h"

/* ---- The oracle ---- */

static void tally_add(struct tally *tally, const struct bp_request *request)
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

/* Domains and processes */
static unsigned int nr_holders(const struct world *w)
{
	return w->nr_domains + w->nr_processes;
}

/* Add up the claims of the CPU, of each domain and of each process on @cpu. */
static void tally_of_cpu(struct world *w, unsigned int class, int cpu)
{
	unsigned int i;

	memset(&w->cpu_tally[cpu], 0, sizeof(*w->cpu_tally));
	memset(w->domain_tally, 0, nr_holders(w) * sizeof(*w->domain_tally));

	for (i = 0; i < w->nr_claims; i++) {
		const struct bp_request *request = &w->entries[i].request;

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

/* Add up the claims of each CPU, and of @domain on it. */
static void tally_of_domain(struct world *w, unsigned int class, int domain)
{
	unsigned int cpu, i;

	memset(w->cpu_tally, 0, w->nr_cpus * sizeof(*w->cpu_tally));
	memset(w->domain_tally, 0, w->nr_cpus * sizeof(*w->domain_tally));

	for (i = 0; i < w->nr_claims; i++) {
		const struct bp_request *request = &w->entries[i].request;

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

static struct tally sum(struct tally a, const struct tally *b)
{
	a.guaranteed += b->guaranteed;
	a.flexible += b->flexible;
	a.bound += b->bound;
	a.any_guaranteed += b->any_guaranteed;
	a.any_flexible += b->any_flexible;

	return a;
}

/* Claims of @holder and of its process; a process is like a member without claims */
static struct tally together(const struct world *w, unsigned int holder)
{
	struct tally tally = w->domain_tally[holder];

	if (holder < w->nr_domains && w->nr_processes && w->member[holder] >= 0)
		tally = sum(tally, &w->domain_tally[w->nr_domains + w->member[holder]]);

	return tally;
}

static bool rule_holds_on_cpu(struct world *w, unsigned int class, int cpu)
{
	unsigned int holder;

	tally_of_cpu(w, class, cpu);
	for (holder = 0; holder < nr_holders(w); holder++) {
		struct tally tally = together(w, holder);

		if (!rule_holds(&w->cpu_tally[cpu], &tally, w->slots[class]))
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

static bool is_machine(const struct bp_request *request)
{
	return request->domain == THE_CPU && request->cpu == ANYWHERE;
}

/* The verdict on @request, which is on the list already. */
static int verdict(struct world *w, const struct bp_request *request)
{
	unsigned int class = request->spec.class;
	bool holds;

	if (is_machine(request) && request->spec.flexible)
		return -EINVAL;
	if (!w->slots[class])
		return -EOPNOTSUPP;

	if (w->thorough || is_machine(request) || w->nr_processes)
		holds = rule_holds_everywhere(w, class);
	else if (request->domain == THE_CPU)
		holds = rule_holds_on_cpu(w, class, request->cpu);
	else
		holds = rule_holds_for_domain(w, class, request->domain);

	return holds ? 0 : -ENOSPC;
}

/* ---- The accounting against the list ---- */

static void print_list(struct world *w)
{
	unsigned int i;

	kunit_err(w->test, "%u CPUs, %u domains, registers %u and %u; held:",
		  w->nr_cpus, w->nr_domains, w->slots[0], w->slots[1]);
	for (i = 0; i < w->nr_claims; i++) {
		const struct bp_request *request = &w->entries[i].request;

		if (!w->entries[i].held)
			continue;
		kunit_err(w->test, "claim %u: domain %d cpu %d class %u weight %u%s",
			  i, request->domain, request->cpu, request->spec.class,
			  request->spec.weight,
			  request->spec.flexible ? " flexible" : "");
	}
}

void oracle_check(struct world *w, bool ok, const char *what, long number)
{
	if (likely(ok))
		return;
	print_list(w);
	KUNIT_FAIL_AND_ABORT(w->test, "after %lu requests: %s (%ld)", w->calls,
			     what, number);
}

static struct bp_domain *nth_domain(struct world *w, unsigned int holder)
{
	if (holder < w->nr_domains)
		return &w->domains[holder];
	return &w->processes[holder - w->nr_domains].domain;
}

struct bp_domain *oracle_domain(struct world *w, const struct bp_request *request)
{
	return request->domain == THE_CPU ? NULL : nth_domain(w, request->domain);
}

/* A value of its own for each claim, never dereferenced */
static const struct bp_holder *holder_of(struct world *w, unsigned int id)
{
	return (const struct bp_holder *)&w->entries[id];
}

static void compare_claims(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_claims; i++) {
		const struct bp_request *request = &w->entries[i].request;
		const struct bp_claim *claim = &w->claims[i];

		oracle_check(w, claim->held == w->entries[i].held,
			     "claim held as on the list", i);
		oracle_check(w, claim->holder == holder_of(w, i),
			     "claim has the holder it had", i);
		if (!claim->held)
			continue;
		oracle_check(w, claim->domain == oracle_domain(w, request) &&
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
	unsigned int domain, i, guaranteed, linked = 0, bound = 0;

	for (domain = 0; domain < nr_holders(w); domain++) {
		struct rb_node *node = rb_first(&nth_domain(w, domain)->bound);
		int cpu = 0;

		guaranteed = 0;
		for (; node; node = rb_next(node)) {
			struct bp_claim *claim;

			claim = rb_entry(node, struct bp_claim, node);
			oracle_check(w, claim->held && claim->domain == nth_domain(w, domain),
				     "linked claim belongs to the domain", domain);
			oracle_check(w, claim->cpu >= cpu,
				     "linked claims are in order", domain);
			cpu = claim->cpu;
			guaranteed += !claim->flexible;
			linked++;
		}
		oracle_check(w, nth_domain(w, domain)->bound_guaranteed == guaranteed,
			     "guaranteed bound claims of domain", domain);
	}
	for (i = 0; i < w->nr_claims; i++) {
		const struct bp_request *request = &w->entries[i].request;

		if (w->entries[i].held && request->domain != THE_CPU)
			bound += request->cpu != ANYWHERE;
	}

	oracle_check(w, linked == bound, "all bound claims are linked", linked);
}

/* Returns true if this comparison also includes the costly checks; see world::period. */
static bool asks(const struct world *w, unsigned int what)
{
	return what % w->period == w->calls % w->period;
}

static unsigned int tally_level(const struct tally *tally)
{
	return 2 * tally->guaranteed + !!tally->flexible;
}

static unsigned int tally_any_level(const struct tally *tally)
{
	return 2 * tally->any_guaranteed + !!tally->any_flexible;
}

/* No domain can be at a higher level. */
static unsigned int nr_levels(const struct world *w, unsigned int class)
{
	return 2 * (w->slots[class] + 1);
}

static void compare_available(struct world *w, unsigned int class, int domain,
			      int cpu)
{
	unsigned int taken = w->cpu_tally[cpu].guaranteed, want = 0;
	struct bp_domain *d = NULL;

	if (domain != THE_CPU) {
		d = nth_domain(w, domain);
		taken += together(w, domain).guaranteed;
	}
	if (taken < w->slots[class])
		want = w->slots[class] - taken;

	oracle_check(w, bp_slots_available(&w->bs, class, d, cpu) == want,
		     d ? "available for a domain on CPU" : "available on CPU", cpu);
}

/*
 * Returns the level at which a process is counted as one more domain: for any CPU by its
 * claims for any CPU; on a CPU that it or a member is bound to also by the claims there.
 */
static unsigned int process_level(const struct world *w, unsigned int process,
				  unsigned int (*level_of)(const struct tally *tally),
				  bool on_cpu)
{
	const struct tally *own = &w->domain_tally[w->nr_domains + process];
	unsigned int level = level_of(own), domain;
	bool bound = own->bound;

	if (!level)
		return 0;
	for (domain = 0; domain < w->nr_domains; domain++) {
		struct tally tally = together(w, domain);

		if (w->member[domain] != process)
			continue;
		level = max(level, level_of(&tally));
		bound |= w->domain_tally[domain].bound;
	}

	return on_cpu && !bound ? 0 : level;
}

static void count_processes(const struct world *w, unsigned int *want,
			    unsigned int (*level_of)(const struct tally *tally),
			    bool on_cpu)
{
	unsigned int process, level;

	for (process = 0; process < w->nr_processes; process++) {
		level = process_level(w, process, level_of, on_cpu);
		want[level] += !!level;
	}
}

/* The oracle has tallied @cpu; compares what holds there. */
static void compare_cpu(struct world *w, const struct bp_class_account *account,
			unsigned int class, int cpu)
{
	const struct bp_cpu_account *here = &account->cpu[cpu];
	const struct tally *own = &w->cpu_tally[cpu];
	unsigned int want[BP_LEVELS] = { };
	unsigned int domain, level;

	for (domain = 0; domain < nr_holders(w); domain++) {
		const struct tally *tally = &w->domain_tally[domain];
		struct tally all = together(w, domain);

		oracle_check(w, rule_holds(own, &all, account->slots),
			     "the rule holds on CPU", cpu);
		if (domain < w->nr_domains)
			want[tally_level(tally)] += !!tally->bound;
	}
	count_processes(w, want, tally_level, true);

	oracle_check(w, here->guaranteed == own->guaranteed - own->any_guaranteed,
		     "guaranteed of CPU", cpu);
	oracle_check(w, here->flexible == own->flexible, "flexible of CPU", cpu);
	oracle_check(w, account->wide == own->any_guaranteed, "claims of the machine", cpu);
	for (level = 0; level < nr_levels(w, class); level++)
		oracle_check(w, atomic_read(&here->level[level]) == want[level],
			     "domains at a level on CPU", cpu);

	if (asks(w, cpu))
		compare_available(w, class, THE_CPU, cpu);
	for (domain = 0; domain < nr_holders(w); domain++) {
		if (asks(w, (domain + 1) * w->nr_cpus + cpu))
			compare_available(w, class, domain, cpu);
	}
}

/* The oracle has tallied a CPU; compares what domains hold on any CPU. */
static void compare_any(struct world *w, unsigned int class)
{
	unsigned int want[BP_LEVELS] = { };
	unsigned int domain, level;

	for (domain = 0; domain < nr_holders(w); domain++) {
		const struct tally *tally = &w->domain_tally[domain];
		const struct bp_domain *d = nth_domain(w, domain);

		oracle_check(w, d->any[class].guaranteed == tally->any_guaranteed &&
			     d->any[class].flexible == tally->any_flexible,
			     "claims for any CPU of domain", domain);
		if (domain < w->nr_domains)
			want[tally_any_level(tally)]++;
	}
	count_processes(w, want, tally_any_level, false);

	for (level = 1; level < nr_levels(w, class); level++)
		oracle_check(w, oracle_any_level(&w->bs, class, level) == want[level],
			     "domains at a level of any CPU", level);
}

static void compare_class(struct world *w, unsigned int class)
{
	const struct bp_class_account *account = &w->bs.class[class];
	unsigned int cpu, own, worst[2] = { };

	for (cpu = 0; cpu < w->nr_cpus; cpu++) {
		const struct tally *tally = &w->cpu_tally[cpu];

		tally_of_cpu(w, class, cpu);
		compare_cpu(w, account, class, cpu);
		own = tally->guaranteed - tally->any_guaranteed;
		worst[0] = max(worst[0], own + !!tally->flexible);
		worst[1] = max(worst[1], own + 1);
	}
	compare_any(w, class);
	oracle_check(w, account->worst[0] == worst[0], "worst CPU", class);
	oracle_check(w, account->worst[1] == worst[1], "worst CPU, with one shared", class);
	oracle_check(w, account->slots == w->slots[class], "registers of class", class);
}

void oracle_see_claim(const struct bp_claim *claim, void *world)
{
	struct world *w = world;
	unsigned int id = claim - w->claims;

	if (claim < w->claims || id >= w->nr_claims || !claim->held)
		w->strangers++;
	else
		w->entries[id].seen++;
}

/* A walk has to see each claim on the list once, and no other. */
static void compare_walk(struct world *w)
{
	struct bp_walk walk;
	unsigned int i;

	for (i = 0; i < w->nr_claims; i++)
		w->entries[i].seen = 0;
	w->strangers = 0;

	bp_slots_walk_begin(&w->bs, &walk);
	while (bp_slots_walk_next(&w->bs, &walk, oracle_see_claim, w))
		;
	bp_slots_walk_end(&w->bs, &walk);

	oracle_check(w, !w->strangers, "strangers seen on a walk", w->strangers);
	for (i = 0; i < w->nr_claims; i++)
		oracle_check(w, w->entries[i].seen == w->entries[i].held,
			     "seen on a walk as it is held", i);
}

void oracle_compare(struct world *w)
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
	oracle_check(w, bp_slots_nr_claims(&w->bs) == held, "number of claims", held);
}

/* ---- Requests that are checked ---- */

/* Make the following requests on another CPU, and so in another shard. */
static void hop(struct world *w)
{
	unsigned int nth = w->calls / w->hop % num_online_cpus();

	set_cpus_allowed_ptr(current, cpumask_of(cpumask_nth(nth, cpu_online_mask)));
}

static void after_request(struct world *w)
{
	w->calls++;
	if (w->hop && !(w->calls % w->hop))
		hop(w);
	if (w->thorough)
		oracle_compare(w);
}

/* Every other request that has a variant without waiting uses that variant. */
static bool without_waiting(struct world *w)
{
	return w->calls & 1;
}

int oracle_reserve(struct world *w, unsigned int id,
		   const struct bp_request *request)
{
	struct bp_domain *domain = oracle_domain(w, request);
	struct bp_claim *claim = &w->claims[id];
	struct entry *entry = &w->entries[id];
	int err, want;

	entry->request = *request;
	entry->held = true;
	want = verdict(w, request);

	if (!domain && without_waiting(w))
		err = bp_slots_try_reserve(&w->bs, claim, &request->spec,
					   request->cpu);
	else
		err = bp_slots_reserve(&w->bs, claim, &request->spec, domain,
				       request->cpu);

	oracle_check(w, err == want, "verdict on one claim", err);
	entry->held = !err;
	after_request(w);

	return err;
}

int oracle_reserve_unchecked(struct world *w, unsigned int id,
			     const struct bp_request *request)
{
	struct entry *entry = &w->entries[id];
	int err;

	err = bp_slots_reserve(&w->bs, &w->claims[id], &request->spec,
			       oracle_domain(w, request), request->cpu);
	entry->request = *request;
	entry->held = !err;
	w->calls++;

	return err;
}

static struct bp_claim *first_only(struct bp_claim *claim, void *arg)
{
	return claim ? NULL : arg;
}

int oracle_ask_change(struct bp_slots *bs, struct bp_claim *claim,
		      const struct bp_claim_spec *spec)
{
	return bp_slots_change_all(bs, first_only, claim, spec, spec);
}

int oracle_change(struct world *w, unsigned int id,
		  const struct bp_claim_spec *spec)
{
	struct entry *entry = &w->entries[id];
	struct bp_request old = entry->request;
	int err, want;

	entry->request.spec = *spec;
	want = verdict(w, &entry->request);
	err = oracle_ask_change(&w->bs, &w->claims[id], spec);
	oracle_check(w, err == want, "verdict on another spec", err);
	if (err)
		entry->request = old;
	after_request(w);

	return err;
}

static struct bp_claim *next_in_world(struct bp_claim *claim, void *arg)
{
	struct world *w = arg;

	claim = claim ? claim + 1 : w->claims;
	return claim < w->claims + w->nr_claims ? claim : NULL;
}

int oracle_change_all(struct world *w, const struct bp_claim_spec *old,
		      const struct bp_claim_spec *new)
{
	unsigned int id;
	int err, want;

	for (id = 0; id < w->nr_claims; id++)
		w->entries[id].request.spec = *new;
	want = rule_holds_everywhere(w, new->class) ? 0 : -ENOSPC;
	err = bp_slots_change_all(&w->bs, next_in_world, w, old, new);
	oracle_check(w, err == want, "verdict on another spec for all", err);
	for (id = 0; err && id < w->nr_claims; id++)
		w->entries[id].request.spec = *old;
	after_request(w);

	return err;
}

void oracle_release(struct world *w, unsigned int id)
{
	struct bp_claim *claim = &w->claims[id];

	if (!claim->domain && without_waiting(w))
		oracle_check(w, !bp_slots_try_release(&w->bs, claim), "try_release", id);
	else
		bp_slots_release(&w->bs, claim);

	w->entries[id].held = false;
	after_request(w);
}

int oracle_join(struct world *w, unsigned int domain, unsigned int process)
{
	int err, want = 0;
	unsigned int class;

	w->member[domain] = process;
	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		if (w->slots[class] && !rule_holds_everywhere(w, class))
			want = -ENOSPC;
	}
	err = bp_slots_join(&w->bs, &w->domains[domain], &w->processes[process]);
	oracle_check(w, err == want, "verdict on a member", err);
	if (err)
		w->member[domain] = -1;
	after_request(w);

	return err;
}

unsigned int oracle_unused_claim(struct world *w)
{
	unsigned int id;

	for (id = 0; id < w->nr_claims; id++) {
		if (!w->entries[id].held)
			return id;
	}
	oracle_check(w, false, "out of claims", id);

	return 0;
}

/* ---- Worlds ---- */

struct world *oracle_open(struct kunit *test, unsigned int nr_cpus,
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
	w->period = 1;

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

	for (i = 0; i < nr_domains; i++)
		bp_domain_init(&w->domains[i]);

	/* bp_slots_init() has to initialize all of it. */
	memset(&w->bs, 0xff, sizeof(w->bs));
	KUNIT_ASSERT_EQ(test, bp_slots_init(&w->bs, nr_cpus, w->slots), 0);
	test->priv = w;
	oracle_compare(w);

	return w;
}

void oracle_add_processes(struct world *w, unsigned int nr_processes)
{
	unsigned int tallies = max(w->nr_cpus, w->nr_domains + nr_processes), i;
	struct kunit *test = w->test;

	w->processes = kunit_kcalloc(test, nr_processes, sizeof(*w->processes), GFP_KERNEL);
	w->member = kunit_kcalloc(test, w->nr_domains, sizeof(*w->member), GFP_KERNEL);
	w->domain_tally = kunit_kcalloc(test, tallies, sizeof(*w->domain_tally), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->processes);
	KUNIT_ASSERT_NOT_NULL(test, w->member);
	KUNIT_ASSERT_NOT_NULL(test, w->domain_tally);
	for (i = 0; i < w->nr_domains; i++)
		w->member[i] = -1;
	for (; w->nr_processes < nr_processes; w->nr_processes++)
		KUNIT_ASSERT_EQ(test, bp_process_init(&w->bs, &w->processes[w->nr_processes]), 0);
	oracle_compare(w);
}

void oracle_close(struct world *w)
{
	unsigned int id, i;

	w->test->priv = NULL;
	w->thorough = false;
	for (id = 0; id < w->nr_claims; id++)
		oracle_release(w, id);
	oracle_compare(w);
	for (i = 0; i < w->nr_processes; i++)
		bp_process_destroy(&w->processes[i]);
	bp_slots_destroy(&w->bs);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

void oracle_exit(struct kunit *test)
{
	if (test->priv)
		oracle_close(test->priv);
}

/* ---- Random requests ---- */

unsigned int oracle_random(struct rnd_state *rnd, unsigned int limit)
{
	return prandom_u32_state(rnd) % limit;
}

struct bp_claim_spec oracle_random_spec(const struct world *w, struct rnd_state *rnd,
					bool flexible)
{
	unsigned int class = oracle_random(rnd, BP_SLOTS_CLASSES);
	unsigned int most = oracle_random(rnd, 4) ? 2 : w->slots[class];

	return (struct bp_claim_spec) {
		.class		= class,
		.weight		= flexible ? 1 : 1 + oracle_random(rnd, most),
		.flexible	= flexible,
	};
}

/* Half of the requests are for the first three: they compete. */
static int random_one_of(struct rnd_state *rnd, unsigned int nr)
{
	return oracle_random(rnd, oracle_random(rnd, 2) ? nr : min(nr, 3U));
}

struct bp_request oracle_random_request(const struct world *w, struct rnd_state *rnd)
{
	struct bp_request request = { THE_CPU, ANYWHERE };

	if (oracle_random(rnd, 4))
		request.domain = random_one_of(rnd, w->nr_domains);
	if (w->nr_processes && !oracle_random(rnd, 4))
		request.domain = w->nr_domains + random_one_of(rnd, w->nr_processes);
	if (oracle_random(rnd, request.domain == THE_CPU ? 16 : 2))
		request.cpu = random_one_of(rnd, w->nr_cpus);
	request.spec = oracle_random_spec(w, rnd, !is_machine(&request) && !oracle_random(rnd, 3));

	return request;
}
