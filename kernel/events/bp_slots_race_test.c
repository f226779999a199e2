// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the arbitration of breakpoint registers: requests of several CPUs
 * at the same time.  When all have ended, the accounting has to be what the oracle
 * says; see bp_slots_oracle.h.
 */

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "bp_slots_oracle.h"

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

static struct worker *new_workers(struct kunit *test, struct world *w)
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

/* Each round binds a worker to the next CPU, so that claims change shards. */
static void bind_worker(struct task_struct *task, unsigned int number)
{
	unsigned int nth = number % num_online_cpus();

	kthread_bind(task, cpumask_nth(nth, cpu_online_mask));
}

/* Run @work in all workers at the same time and wait for them. */
static void run_workers(struct kunit *test, struct worker *workers,
			unsigned int round, void (*work)(struct worker *me))
{
	struct task_struct *task;
	unsigned int i, started;

	for (started = 0; started < WORKERS; started++) {
		struct worker *worker = &workers[started];

		worker->work = work;
		init_completion(&worker->done);
		task = kthread_create(worker_thread, worker, "bp_slots_test/%u",
				      started);
		if (IS_ERR(task))
			break;
		bind_worker(task, started + round);
		wake_up_process(task);
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&workers[i].done);

	KUNIT_ASSERT_EQ(test, started, WORKERS);
	for (i = 0; i < WORKERS; i++)
		KUNIT_ASSERT_EQ(test, workers[i].wrong, 0);
}

/* Compares with the oracle after each round. */
static void run_rounds(struct kunit *test, struct worker *workers,
		       unsigned int nr_rounds, void (*work)(struct worker *me))
{
	unsigned int round;

	for (round = 0; round < nr_rounds; round++) {
		run_workers(test, workers, round, work);
		oracle_compare(workers[0].w);
	}
}

/* A claim changes only by the requests of its worker. */
static void worker_checks(struct worker *me, unsigned int id, bool ok)
{
	const struct entry *entry = &me->w->entries[id];
	const struct bp_claim *claim = &me->w->claims[id];

	if (claim->held != entry->held)
		ok = false;
	if (entry->held && (claim->weight != entry->request.spec.weight ||
			    claim->class != entry->request.spec.class))
		ok = false;
	me->wrong += !ok;
}

static void worker_reserves(struct worker *me, unsigned int id, bool wait)
{
	struct bp_request request = oracle_random_request(me->w, &me->rnd);
	struct bp_domain *domain = oracle_domain(me->w, &request);
	struct bp_claim *claim = &me->w->claims[id];
	struct bp_slots *bs = &me->w->bs;
	int err;

	if (wait || domain)
		err = bp_slots_reserve(bs, claim, &request.spec, domain,
				       request.cpu);
	else
		err = bp_slots_try_reserve(bs, claim, &request.spec, request.cpu);

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

	if (wait || claim->domain)
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

	spec = oracle_random_spec(me->w, &me->rnd, entry->request.spec.flexible);
	err = oracle_ask_change(&me->w->bs, &me->w->claims[id], &spec);
	if (!err)
		entry->request.spec = spec;
	worker_checks(me, id, !err || err == -ENOSPC);
}

/* The answer may be outdated, but has to be possible. */
static void worker_queries(struct worker *me)
{
	struct bp_request request = oracle_random_request(me->w, &me->rnd);
	struct bp_domain *domain = oracle_domain(me->w, &request);
	unsigned int class = request.spec.class, available;

	available = bp_slots_available(&me->w->bs, class, domain, max(request.cpu, 0));
	me->wrong += available > me->w->slots[class];
}

static void random_requests(struct worker *me)
{
	struct world *w = me->w;
	unsigned int i, id;

	for (i = 0; i < 400; i++) {
		bool wait = oracle_random(&me->rnd, 2);

		worker_queries(me);
		id = me->first + oracle_random(&me->rnd, me->claims);
		if (!w->entries[id].held)
			worker_reserves(me, id, wait);
		else if (oracle_random(&me->rnd, 2))
			worker_releases(me, id, wait);
		else
			worker_changes(me, id);
		if (!(i % 64))
			cond_resched();
	}
}

static void test_concurrent_requests(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 6, 96, 4, 3);
	struct worker *workers = new_workers(test, w);

	run_rounds(test, workers, 24, random_requests);
}

/* In each round, threads enter processes, whose claims come and go. */
static void join_and_random(struct worker *me)
{
	struct world *w = me->w;
	unsigned int process = oracle_random(&me->rnd, w->nr_processes);
	int *member = &w->member[me->number];

	random_requests(me);
	if (me->number >= w->nr_domains || *member >= 0)
		return;
	if (!bp_slots_join(&w->bs, &w->domains[me->number], &w->processes[process]))
		*member = process;
	random_requests(me);
}

static void test_concurrent_requests_in_processes(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 6, 96, 4, 3);
	struct worker *workers = new_workers(test, w);

	oracle_add_processes(w, 2);
	run_rounds(test, workers, 24, join_and_random);
}

/* The claims of a worker, one for each domain, are a family. */
static struct bp_claim *next_in_family(struct bp_claim *claim, void *arg)
{
	struct worker *me = arg;
	struct bp_claim *first = &me->w->claims[me->first];

	claim = claim ? claim + 1 : first;
	return claim < first + me->claims ? claim : NULL;
}

/* All claims of the family are as @spec says. */
static void check_family(struct worker *me, const struct bp_claim_spec *spec)
{
	unsigned int id;

	for (id = me->first; id < me->first + me->claims; id++) {
		me->w->entries[id].request.spec = *spec;
		worker_checks(me, id, true);
	}
}

/* Half of the workers change families, which compete with each other and with CPUs. */
static void change_family(struct worker *me)
{
	const struct bp_claim_spec specs[] = {
		{ .weight = 1 }, { .weight = 2 }, { .class = 1, .weight = 1 },
	};
	struct bp_claim_spec now = me->w->entries[me->first].request.spec;
	unsigned int i;
	int err;

	for (i = 0; i < 400; i++) {
		const struct bp_claim_spec *spec = &specs[oracle_random(&me->rnd, 3)];

		err = bp_slots_change_all(&me->w->bs, next_in_family, me, &now, spec);
		if (!err)
			now = *spec;
		me->wrong += err && err != -ENOSPC;
		check_family(me, &now);
		if (!(i % 64))
			cond_resched();
	}
}

static void change_or_random(struct worker *me)
{
	if (me->number < WORKERS / 2)
		change_family(me);
	else
		random_requests(me);
}

static void test_a_family_changes_as_a_whole(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 6, 48, 4, 3);
	struct worker *workers = new_workers(test, w);
	unsigned int i, id;

	for (i = 0; i < WORKERS / 2; i++) {
		for (id = 0; id < workers[i].claims; id++) {
			struct bp_request request = { id, i & 1 ? i : ANYWHERE, GUARANTEED(1) };

			oracle_reserve(w, workers[i].first + id, &request);
		}
	}
	run_rounds(test, workers, 12, change_or_random);
}

/*
 * Claims 0 and 1 are a family.  Claim 1 cannot grow, so that claim 0 must not keep others
 * from what is available beside it.
 */
static struct bp_claim *next_of_two(struct bp_claim *claim, void *arg)
{
	struct bp_claim *claims = arg;

	return claim == &claims[1] ? NULL : claim ? &claims[1] : claims;
}

static void grow_or_reserve(struct worker *me)
{
	struct bp_claim *claims = me->w->claims;
	struct bp_slots *bs = &me->w->bs;
	unsigned int i;
	int err, want;

	for (i = 0; i < 2000; i++) {
		if (me->number >= 3) {
			err = bp_slots_change_all(bs, next_of_two, claims, &GUARANTEED(1),
						  &GUARANTEED(2));
			want = -ENOSPC;
		} else {
			err = bp_slots_reserve(bs, &claims[me->first + 3], &GUARANTEED(3),
					       NULL, me->number);
			bp_slots_release(bs, &claims[me->first + 3]);
			want = 0;
		}
		me->wrong += err != want;
		if (!(i % 64))
			cond_resched();
	}
}

static void test_a_family_that_cannot_grow_has_no_effect(struct kunit *test)
{
	const struct bp_request held[] = {
		{ 0, ANYWHERE, GUARANTEED(1) },
		{ 1, 3, GUARANTEED(1) },
		{ 1, 3, GUARANTEED(3) },
	};
	struct world *w = oracle_open(test, 4, 2, 32, 4, 4);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(held); i++)
		KUNIT_ASSERT_EQ(test, oracle_reserve(w, i, &held[i]), 0);
	run_workers(test, new_workers(test, w), 0, grow_or_reserve);
	oracle_compare(w);
}

static void walk_all(struct worker *me)
{
	struct world *w = me->w;
	struct bp_walk walk;
	unsigned int i, id;

	for (i = 0; i < 100; i++) {
		for (id = me->first; id < me->first + me->claims; id++)
			w->entries[id].seen = 0;

		bp_slots_walk_begin(&w->bs, &walk);
		while (bp_slots_walk_next(&w->bs, &walk, oracle_see_claim, w))
			;
		bp_slots_walk_end(&w->bs, &walk);

		for (id = me->first; id < me->first + me->claims; id++)
			me->wrong += w->entries[id].seen != 1;
		cond_resched();
	}
	me->wrong += w->strangers;
}

/* The first worker walks; its claims stay. */
static void walk_or_random(struct worker *me)
{
	if (me->number)
		random_requests(me);
	else
		walk_all(me);
}

static void test_a_walk_sees_each_claim_once(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 6, 64, 4, 3);
	struct worker *workers = new_workers(test, w);
	unsigned int id;

	for (id = 0; id < workers[0].claims; id++) {
		struct bp_request request = { id % 6, ANYWHERE, FLEXIBLE };

		KUNIT_ASSERT_EQ(test, oracle_reserve(w, id, &request), 0);
	}
	run_rounds(test, workers, 12, walk_or_random);
}

static void release_all(struct worker *me)
{
	struct world *w = me->w;
	unsigned int i, id;

	for (i = 0; i < w->nr_claims; i++) {
		id = (me->first + i) % w->nr_claims;
		if (me->number & 1 || w->claims[id].domain)
			bp_slots_release(&w->bs, &w->claims[id]);
		else
			while (bp_slots_try_release(&w->bs, &w->claims[id]))
				cpu_relax();
	}
}

/* An event may be detached and destroyed at the same time. */
static void test_concurrent_releases_of_a_claim(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 6, 32, 4, 3);
	struct worker *workers = new_workers(test, w);
	unsigned int round, id;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 6);
	for (round = 0; round < 24; round++) {
		for (id = 0; id < w->nr_claims; id++) {
			struct bp_request request = oracle_random_request(w, &rnd);

			oracle_reserve(w, id, &request);
		}
		run_workers(test, workers, round, release_all);
		for (id = 0; id < w->nr_claims; id++)
			w->entries[id].held = false;
		oracle_compare(w);
	}
}

/*
 * Claims 0 and 2 fill up CPU 1, claims 1 and 2 CPU 3.  Some workers ask for more,
 * which is refused, others for what is available: a refused request must not make
 * those fail.
 */
static int request_too_much(struct bp_slots *bs, struct bp_claim *claims,
			    struct bp_domain *domains, struct worker *me)
{
	switch (me->number) {
	case 0:
		return bp_slots_reserve(bs, &claims[me->first + 3], &GUARANTEED(1),
					NULL, ANYWHERE);
	case 1:
		return oracle_ask_change(bs, &claims[0], &GUARANTEED(4));
	case 2:
		return bp_slots_reserve(bs, &claims[me->first + 3], &GUARANTEED(2),
					&domains[1], ANYWHERE);
	default:
		return bp_slots_reserve(bs, &claims[me->first + 3], &GUARANTEED(1),
					NULL, 1);
	}
}

static int request_available(struct bp_slots *bs, struct bp_claim *claim,
			     struct bp_domain *domains, struct worker *me)
{
	int err;

	if (me->number == 4)
		err = bp_slots_reserve(bs, claim, &GUARANTEED(3), NULL, 0);
	else if (me->number == 5)
		err = bp_slots_reserve(bs, claim, &GUARANTEED(1), &domains[1],
				       ANYWHERE);
	else if (me->number == 6)
		err = bp_slots_reserve(bs, claim, &GUARANTEED(3), &domains[0], 2);
	else
		err = bp_slots_reserve(bs, claim, &FLEXIBLE, &domains[1], 2);
	bp_slots_release(bs, claim);

	return err;
}

static void refused_and_granted(struct worker *me)
{
	struct bp_claim *claims = me->w->claims;
	unsigned int i;
	int err, want;

	for (i = 0; i < 2000; i++) {
		if (me->number < 4) {
			err = request_too_much(&me->w->bs, claims, me->w->domains, me);
			want = -ENOSPC;
		} else {
			err = request_available(&me->w->bs, &claims[me->first],
						me->w->domains, me);
			want = 0;
		}
		me->wrong += err != want;
		if (!(i % 64))
			cond_resched();
	}
}

static void test_refused_requests_have_no_effect(struct kunit *test)
{
	const struct bp_request held[] = {
		{ THE_CPU, 1, GUARANTEED(3) },
		{ THE_CPU, 3, GUARANTEED(3) },
		{ 0, ANYWHERE, GUARANTEED(1) },
	};
	struct world *w = oracle_open(test, 4, 2, 32, 4, 4);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(held); i++)
		KUNIT_ASSERT_EQ(test, oracle_reserve(w, i, &held[i]), 0);
	run_workers(test, new_workers(test, w), 0, refused_and_granted);
	oracle_compare(w);
}

/*
 * Each worker asks for all registers: half of them for domains, the others for
 * the machine or for a CPU.  A domain and the machine must never hold them at
 * the same time, nor a CPU and a domain that is bound to it.
 */
static atomic_t held_by_domains, held_by_cpus;

static void request_everything(struct worker *me)
{
	bool domain = me->number & 1;
	atomic_t *mine = domain ? &held_by_domains : &held_by_cpus;
	atomic_t *others = domain ? &held_by_cpus : &held_by_domains;
	int cpu = me->number & 2 ? 0 : ANYWHERE;
	struct bp_claim *claim = &me->w->claims[me->first];
	unsigned int i;

	for (i = 0; i < 4000; i++) {
		if (bp_slots_reserve(&me->w->bs, claim, &GUARANTEED(4),
				     domain ? &me->w->domains[me->number / 2] : NULL,
				     cpu))
			continue;
		atomic_inc(mine);
		/* Pairs with the same barrier of another worker. */
		smp_mb__after_atomic();
		me->wrong += atomic_read(others) != 0;
		atomic_dec(mine);
		bp_slots_release(&me->w->bs, claim);
		if (!(i % 64))
			cond_resched();
	}
}

static void test_domains_and_cpus_exclude_each_other(struct kunit *test)
{
	struct world *w = oracle_open(test, 4, 4, 16, 4, 4);
	struct worker *workers = new_workers(test, w);

	run_rounds(test, workers, 4, request_everything);
}

static struct kunit_case bp_slots_race_test_cases[] = {
	KUNIT_CASE(test_concurrent_requests),
	KUNIT_CASE(test_concurrent_requests_in_processes),
	KUNIT_CASE(test_a_family_changes_as_a_whole),
	KUNIT_CASE(test_a_family_that_cannot_grow_has_no_effect),
	KUNIT_CASE(test_a_walk_sees_each_claim_once),
	KUNIT_CASE(test_concurrent_releases_of_a_claim),
	KUNIT_CASE(test_refused_requests_have_no_effect),
	KUNIT_CASE(test_domains_and_cpus_exclude_each_other),
	{},
};

static struct kunit_suite bp_slots_race_test_suite = {
	.name = "bp_slots_race",
	.test_cases = bp_slots_race_test_cases,
	.exit = oracle_exit,
};

kunit_test_suites(&bp_slots_race_test_suite);

MODULE_DESCRIPTION("KUnit test of requests for breakpoint registers on several CPUs");
MODULE_LICENSE("GPL");
