// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the arbitration of breakpoint registers, one request at a time;
 * bp_slots_race_test.c has requests of several CPUs at the same time.
 *
 * bp_slots_oracle.h states the rule.  The tables have expected results written by hand,
 * which test the oracle too; walks and random runs get each result from the oracle.
 */

#include <kunit/test.h>
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "bp_slots_oracle.h"

/* Number of the claim that is granted, or the errno. */
static int ask(struct world *w, int domain, int cpu, struct bp_claim_spec spec)
{
	struct bp_request request = { domain, cpu, spec };
	unsigned int id = oracle_unused_claim(w);
	int err = oracle_reserve(w, id, &request);

	return err ?: id;
}

/* Three CPUs, three domains, and the registers of an x86 CPU for both classes. */
static struct world *small_world(struct kunit *test)
{
	return oracle_open(test, 3, 3, 32, 4, 4);
}

#define GRANTED(request)						\
({									\
	int __id = (request);						\
									\
	KUNIT_ASSERT_GE(test, __id, 0);					\
	__id;								\
})

#define REFUSED(request)	KUNIT_EXPECT_EQ(test, (request), -ENOSPC)

/* ---- The rule, by example ---- */

/**
 * struct sequence - requests, and which of them are refused
 * @name: what they show
 * @slots: registers of each class
 * @requests: separated by blanks; each is a holder, "=", a weight, and "!" if it
 *	is refused.  Holders: "m" the machine, "c1" CPU 1, "d1" domain 1 on any
 *	CPU, "d1@2" on CPU 2, "p0" and "p0@2" process 0.  "d1^p0" makes domain 1 a
 *	member.  Weights: a number, or "f" for a flexible claim;
 *	"b" behind it is for the second class.  "-" before a request releases a
 *	claim that is like it; "3>4" changes a claim from 3 to 4
 */
struct sequence {
	const char	*name;
	unsigned int	slots[BP_SLOTS_CLASSES];
	const char	*requests;
};

static const struct sequence sequences[] = {
	{ "a CPU has so many registers", { 4, 4 },
	  "c0=1 c0=1 c0=1 c0=1 c0=1! c1=4 c1=1!" },
	{ "a domain may hold as many as a CPU has", { 4, 4 },
	  "d0=1 d0=1 d0=1 d0=1 d0=1! d0@1=1!" },
	{ "a bound domain may hold as many on each CPU", { 4, 4 },
	  "d0@0=4 d0@0=1! d0@1=4 d0@1=1! d0@2=4 d0@2=1! d0=1!" },
	{ "domains do not compete", { 4, 4 },
	  "d0=4 d1=4 d2@0=4 d2@1=4" },
	{ "bound and unbound claims of a domain add up", { 4, 4 },
	  "d0@0=2 d0@1=1 d0=3! d0=2 d0@0=1! d0@1=1 d0@1=1! d0@2=2" },
	{ "a CPU competes with the worst domain", { 4, 4 },
	  "d0=3 d1=1 d2=1 c2=2! c2=1 -d0=3 c2=2 c2=1!" },
	{ "a CPU competes with domains bound to it alone", { 4, 4 },
	  "d0@0=4 d1@0=1 c0=1! c1=4" },
	{ "a domain competes with the worst CPU", { 4, 4 },
	  "c0=1 c1=3 d0=2! d0=1 d0=1!" },
	{ "a bound domain competes with its CPU alone", { 4, 4 },
	  "c0=4 d0@0=1! d0@1=4" },
	{ "a weight is a number of registers", { 4, 4 },
	  "c0=3 c0=2! c0=1 -c0=3 c0=4! c0=3 c1=5! c1=4" },
	{ "classes do not compete", { 4, 2 },
	  "c0=4 c0=2b c0=2b! d0@1=2 d0@1=2b d0@1=2b! d0@1=2" },
	{ "any number of flexible claims shares one", { 4, 4 },
	  "c0=3 c0=f d0=f d0@0=f d1@0=f c0=f d0=f d0@0=f d1@0=f c0=1! d0@0=1!" },
	{ "flexible claims need one left over", { 4, 4 },
	  "c0=4 c0=f! d0=f! d0@0=f! d0@1=f -c0=4 d1=4 d1=f! d1@0=f! c0=f! d2=f" },
	{ "flexible claims keep one from guaranteed claims", { 4, 4 },
	  "c0=f c0=4! c0=3 d0@1=f d0@1=4! d0@1=3" },
	{ "the last flexible claim releases the register", { 4, 4 },
	  "c0=f d0=f d0@0=f d0@0=3 -c0=f d0@0=1! -d0@0=f d0@0=1! -d0=f d0@0=1" },
	{ "flexible claims of a domain cost others nothing", { 4, 4 },
	  "d0=f d1@0=f d2=4" },
	{ "flexible claims of a domain cost its CPUs one", { 4, 4 },
	  "d1@1=f c1=4! c0=4 d2@2=f c2=4! c2=3 -d2@2=f c2=1" },
	{ "flexible claims of a CPU cost each domain there one", { 4, 4 },
	  "c1=f d0=4! d0=3 d1@1=4! d1@1=3 d1@0=4" },
	{ "flexible claims of CPU and domain share one", { 4, 4 },
	  "d0=2 d1=f c0=f c0=1 d0=f c0=1! d1@0=2 d1@0=1!" },
	{ "one register is guaranteed or flexible", { 1, 1 },
	  "c0=f c0=1! d0=1! d0@1=1 -c0=f c0=1 c0=f! d0=f!" },
	{ "the most registers a CPU can have", { BP_SLOTS_MAX, BP_SLOTS_MAX },
	  "d0@0=16 d0@0=16! d0@0=1! d0@0=f! d0=16! d0=f! c0=16! c0=f! m=1! -d0@0=16 "
	  "d0=15 d0=f d0@0=16! c0=16! m=16! c0=f d1=15 d1=1!" },
	{ "the machine takes from every CPU", { 4, 4 },
	  "c2=1 d0@1=1 m=3 c1=1! c0=1 d1=1! d1@1=1 m=3>2 d1=1 m=2>3!" },
	{ "the machine competes with the worst CPU", { 4, 4 },
	  "c0=3 m=2! -c0=3 c1=3 m=2! -c1=3 c2=3 m=2! m=1 -c2=3 m=3" },
	{ "the machine competes with the worst domain", { 4, 4 },
	  "d1@2=4 m=1! -d1@2=4 d1=3 m=2! m=1" },
	{ "the machine leaves flexible claims one", { 4, 4 },
	  "d2@2=f m=4! m=3 d1=f c0=2! m=1! c0=f" },
	{ "the machine takes of one class", { 4, 2 },
	  "m=2b m=4 c0=1b! d0=1b! d0=1! -m=4 d0=4 m=2b>1b c0=1b" },
	{ "a change does not compete with itself", { 4, 4 },
	  "c0=3>4! c0=3 c0=3>4 c0=4>4 c0=4>1 -c0=1 d0@1=3 d0@1=3>4 d1=3 d1=3>4" },
	{ "a refused change keeps the claim", { 4, 4 },
	  "c0=1 d0=1 d0@0=2 c0=1>2! d0=1>2! d0@0=2>3! d0@0=2>5! d0@0=2>1 d0=1>2 c0=1>2!" },
	{ "a change to another class", { 4, 2 },
	  "d0=4 d0=4>3b! d0=4>2b d0=1 d0=2b>4! d0=2b>3 d0=2b d0=3>2b!" },
	{ "a change of a flexible claim is one of class", { 4, 4 },
	  "d0=f d0=f>fb d0@2=4 d0=fb>f! -d0@2=4 d0=fb>f d0@2=4!" },
	{ "a process holds on every CPU", { 4, 4 },
	  "p0=1 p0=3 p0=1! c0=1! c1=1! m=1! p1=4 d0=4" },
	{ "a process takes from its members alone", { 4, 4 },
	  "d0^p0 d1^p0 d2^p1 p0=3 d0=2! d0=1 d1=1 d1@2=1! d2=4 p1=1! p0=1!" },
	{ "a process competes with its worst member", { 4, 4 },
	  "d0=3 d1=1 d2=4 d0^p0 d1^p0 p0=2! p0=1 d1=2 d1=1! -d0=3 p0=1! d0=2 -d1=2 p0=1" },
	{ "members do not compete", { 4, 4 },
	  "d0^p0 d1^p0 d2^p0 d0=4 d1=4 d2@1=4 p0@0=1! p0=1!" },
	{ "a process competes with a bound member on its CPU", { 4, 4 },
	  "d0^p0 d0@1=3 p0=2! p0@1=2! p0@0=4 p0@1=1 p0=1! d0@1=1! d0@2=4" },
	{ "a bound process competes with its CPU", { 4, 4 },
	  "c0=2 p0@0=3! p0@0=2 c0=1! d0^p0 d0@0=1! d0=1! d0@1=4 c1=1! p0@2=4 c2=1!" },
	{ "a CPU competes with the worst process and its member", { 4, 4 },
	  "d0^p0 d0=1 p0=1 d1=1 c0=3! c0=2 p0=1! d0=1! d1=1 -d0=1 p0=1" },
	{ "a CPU competes with a bound member and its process", { 4, 4 },
	  "d0^p0 d0@1=1 p0=1 d0=1 c1=2! c0=3! c1=1 c0=2 -d0=1 c0=1 c0=1! -p0=1 c0=1 c1=2" },
	{ "flexible claims of process, member and CPU share one", { 4, 4 },
	  "d0^p0 p0=f d0=4! d0=3 d0=f c1=f c1=1! d0@2=f p0=1! -p0=f d0=1! -d0=f d0=1! "
	  "-d0@2=f d0=1! -c1=f d0=1" },
	{ "a flexible claim of a process costs its members one", { 4, 4 },
	  "d0^p0 d0=4 p0=f! p0@1=f! -d0=4 p0@1=f d0=4! d0@1=4! d0@0=4 d1@0=4 c1=4! c2=4" },
	{ "a domain without room is no member", { 4, 4 },
	  "d0=2 d1@1=2 d2=f p0=3 d0^p0! d1^p0! d2^p0 d1^p1 -p0=3 d0^p0 p0=2 p0=1!" },
	{ "a process claims of one class", { 4, 2 },
	  "d0^p0 d0=4 p0=2b d0=1b! -d0=4 p0=2b>4 d0=1! d0=2b p0=4>1b!" },
	{ "the machine competes with the worst process", { 4, 4 },
	  "d0^p0 d0=1 p0=2 m=2! m=1 d0=1! d1=3 p1=3 p1@2=1!" },
};

KUNIT_ARRAY_PARAM_DESC(sequence, sequences, name);

static int read_number(const char **s)
{
	int n = 0;

	while (isdigit(**s))
		n = 10 * n + *(*s)++ - '0';
	return n;
}

static struct bp_claim_spec read_spec(const char **s)
{
	struct bp_claim_spec spec = { .weight = 1 };

	spec.flexible = **s == 'f';
	if (spec.flexible)
		++*s;
	else
		spec.weight = read_number(s);
	spec.class = **s == 'b';
	*s += spec.class;

	return spec;
}

#define SEQUENCE_DOMAINS	3

static struct bp_request read_request(const char **s)
{
	struct bp_request request = { THE_CPU, ANYWHERE };
	char holder = *(*s)++;

	if (holder == 'c')
		request.cpu = read_number(s);
	if (holder == 'd')
		request.domain = read_number(s);
	if (holder == 'p')
		request.domain = SEQUENCE_DOMAINS + read_number(s);
	if (**s == '^')
		return request;
	if (**s == '@') {
		++*s;
		request.cpu = read_number(s);
	}
	++*s;
	request.spec = read_spec(s);

	return request;
}

static bool same_spec(const struct bp_claim_spec *a, const struct bp_claim_spec *b)
{
	return a->class == b->class && a->weight == b->weight &&
	       a->flexible == b->flexible;
}

/* A claim that is held for a request like @like; none if there is none. */
static int find_claim(const struct world *w, const struct bp_request *like)
{
	unsigned int id;

	for (id = 0; id < w->nr_claims; id++) {
		const struct bp_request *request = &w->entries[id].request;

		if (w->entries[id].held && request->domain == like->domain &&
		    request->cpu == like->cpu && same_spec(&request->spec, &like->spec))
			return id;
	}

	return -ENOENT;
}

static int change_like(struct world *w, const struct bp_request *like, const char **s)
{
	int id = find_claim(w, like);
	struct bp_claim_spec spec;

	++*s;
	spec = read_spec(s);
	/* A change of a claim that is not held is refused. */
	return id < 0 ? -ENOSPC : oracle_change(w, id, &spec);
}

/* One step of a sequence; returns what the request returned. */
static int run_step(struct world *w, const char **s)
{
	bool releases = **s == '-';
	struct bp_request request;
	int id;

	*s += releases;
	request = read_request(s);
	if (releases) {
		id = find_claim(w, &request);
		oracle_check(w, id >= 0, "a claim of the sequence is held", id);
		oracle_release(w, id);
		return 0;
	}
	if (**s == '>')
		return change_like(w, &request, s);
	if (**s == '^') {
		*s += strlen("^p");
		return oracle_join(w, request.domain, read_number(s));
	}

	return min(ask(w, request.domain, request.cpu, request.spec), 0);
}

static void test_sequence(struct kunit *test)
{
	const struct sequence *sequence = test->param_value;
	struct world *w = oracle_open(test, 3, SEQUENCE_DOMAINS, 32, sequence->slots[0],
				      sequence->slots[1]);
	const char *s = sequence->requests;

	oracle_add_processes(w, 2);
	while (*s) {
		const char *request = s;
		int err = run_step(w, &s);

		KUNIT_EXPECT_EQ_MSG(test, err, *s == '!' ? -ENOSPC : 0, "at \"%s\"",
				    request);
		s += *s == '!';
		while (*s == ' ')
			s++;
	}
}

/* ---- Claims ---- */

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
	KUNIT_EXPECT_FALSE(test, bp_slots_nr_claims(bs));
	bp_slots_destroy(bs);
}

static void test_change_all_changes_all_claims_or_none(struct kunit *test)
{
	const struct bp_claim_spec one = { .class = 1, .weight = 1 };
	const struct bp_claim_spec two = { .class = 1, .weight = 2 };
	struct world *w = oracle_open(test, 3, 3, 32, 4, 2);
	unsigned int domain;

	for (domain = 0; domain < 3; domain++)
		GRANTED(ask(w, domain, ANYWHERE, GUARANTEED(1)));
	GRANTED(oracle_change_all(w, &GUARANTEED(1), &one));
	GRANTED(oracle_change_all(w, &one, &two));
	GRANTED(oracle_change_all(w, &two, &GUARANTEED(1)));

	/* The last claim does not fit with its new weight: the first ones stay as they are. */
	GRANTED(ask(w, 2, 1, GUARANTEED(1)));
	GRANTED(ask(w, 2, 1, GUARANTEED(1)));
	REFUSED(oracle_change_all(w, &GUARANTEED(1), &one));
	REFUSED(oracle_change_all(w, &GUARANTEED(1), &GUARANTEED(2)));
	oracle_release(w, 4);
	GRANTED(oracle_change_all(w, &GUARANTEED(1), &one));
}

static void test_change_between_flexible_and_guaranteed_is_refused(struct kunit *test)
{
	struct world *w = small_world(test);
	int guaranteed = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	int flexible = GRANTED(ask(w, 0, 0, FLEXIBLE));

	KUNIT_EXPECT_EQ(test, oracle_ask_change(&w->bs, &w->claims[guaranteed],
						&FLEXIBLE), -EINVAL);
	KUNIT_EXPECT_EQ(test, oracle_ask_change(&w->bs, &w->claims[flexible],
						&GUARANTEED(1)), -EINVAL);
	oracle_compare(w);
}

static void test_change_skips_a_claim_that_is_not_held(struct kunit *test)
{
	struct world *w = small_world(test);
	int id = GRANTED(ask(w, 0, 0, GUARANTEED(1)));

	oracle_release(w, id);
	KUNIT_EXPECT_EQ(test, oracle_ask_change(&w->bs, &w->claims[id],
						&GUARANTEED(1)), 0);
	KUNIT_EXPECT_EQ(test, oracle_ask_change(&w->bs, &w->claims[id + 1],
						&GUARANTEED(1)), 0);
	oracle_compare(w);
}

static void test_release_is_idempotent(struct kunit *test)
{
	const int domains[] = { THE_CPU, 0, 0, THE_CPU };
	const int cpus[] = { 0, 0, ANYWHERE, ANYWHERE };
	struct world *w = small_world(test);
	struct bp_claim zeros = { };
	unsigned int i, times;

	bp_slots_release(&w->bs, &zeros);
	KUNIT_EXPECT_EQ(test, bp_slots_try_release(&w->bs, &zeros), 0);
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, 0, 0, FLEXIBLE));
	for (i = 0; i < ARRAY_SIZE(domains); i++) {
		int id = GRANTED(ask(w, domains[i], cpus[i], GUARANTEED(1)));

		for (times = 0; times < 4; times++)
			oracle_release(w, id);
	}
}

/* ---- Questions ---- */

static void expect_available(struct world *w, unsigned int none, unsigned int first,
			     unsigned int second)
{
	KUNIT_EXPECT_EQ(w->test, bp_slots_available(&w->bs, 0, NULL, 1), none);
	KUNIT_EXPECT_EQ(w->test, bp_slots_available(&w->bs, 0, &w->domains[0], 1),
			first);
	KUNIT_EXPECT_EQ(w->test, bp_slots_available(&w->bs, 0, &w->domains[1], 1),
			second);
}

static void test_available_is_what_guaranteed_claims_leave(struct kunit *test)
{
	const struct bp_claim_spec other = { .class = 1, .weight = 2 };
	struct world *w = small_world(test);
	int wide;

	expect_available(w, 4, 4, 4);
	GRANTED(ask(w, THE_CPU, 1, GUARANTEED(1)));
	expect_available(w, 3, 3, 3);
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	expect_available(w, 3, 2, 3);
	GRANTED(ask(w, 0, 1, GUARANTEED(1)));
	expect_available(w, 3, 1, 3);
	wide = GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1)));
	expect_available(w, 2, 0, 2);
	GRANTED(ask(w, 1, 1, GUARANTEED(1)));
	expect_available(w, 2, 0, 1);

	/* For another CPU, of another class, and flexible */
	GRANTED(ask(w, 1, 2, GUARANTEED(2)));
	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(1)));
	GRANTED(ask(w, THE_CPU, 1, other));
	GRANTED(ask(w, 1, ANYWHERE, FLEXIBLE));
	expect_available(w, 2, 0, 1);
	oracle_release(w, wide);
	expect_available(w, 3, 1, 2);
}

static void test_domain_is_not_full_if_one_cpu_is(struct kunit *test)
{
	struct world *w = small_world(test);

	GRANTED(ask(w, THE_CPU, 0, GUARANTEED(4)));
	GRANTED(ask(w, 0, 1, GUARANTEED(4)));
	REFUSED(ask(w, 0, ANYWHERE, GUARANTEED(1)));
	GRANTED(ask(w, 0, 2, GUARANTEED(4)));
}

/* ---- Walks ---- */

/* One step. Each entry counts how often its claim was seen. */
static bool walk_on(struct world *w, struct bp_walk *walk)
{
	return bp_slots_walk_next(&w->bs, walk, oracle_see_claim, w);
}

static void expect_seen(struct world *w, unsigned int id, unsigned int times)
{
	KUNIT_EXPECT_EQ(w->test, w->entries[id].seen, times);
}

static void test_walks_do_not_see_each_other(struct kunit *test)
{
	struct world *w = small_world(test);
	int first = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	int last = GRANTED(ask(w, 1, ANYWHERE, GUARANTEED(1)));
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
	/* The claim seen first, the one seen last, and the next one */
	oracle_release(w, id[0]);
	oracle_release(w, id[1]);
	oracle_release(w, id[2]);
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

static void test_a_walk_without_claims_ends(struct kunit *test)
{
	struct world *w = small_world(test);
	struct bp_walk walk;

	bp_slots_walk_begin(&w->bs, &walk);
	KUNIT_EXPECT_FALSE(test, walk_on(w, &walk));
	KUNIT_EXPECT_FALSE(test, walk_on(w, &walk));
	bp_slots_walk_end(&w->bs, &walk);
	KUNIT_EXPECT_FALSE(test, bp_slots_nr_claims(&w->bs));
}

/* ---- A request under way ---- */

/* The debugger's case: a stopped CPU never releases @lock. */
static void expect_busy(struct world *w, raw_spinlock_t *lock)
{
	struct bp_claim *claim = &w->claims[oracle_unused_claim(w)];
	unsigned long flags;
	int cpu, wide;

	raw_spin_lock_irqsave(lock, flags);
	cpu = bp_slots_try_reserve(&w->bs, claim, &GUARANTEED(1), 0);
	wide = bp_slots_try_reserve(&w->bs, claim, &GUARANTEED(1), ANYWHERE);
	raw_spin_unlock_irqrestore(lock, flags);

	KUNIT_EXPECT_EQ(w->test, cpu, -EBUSY);
	KUNIT_EXPECT_EQ(w->test, wide, -EBUSY);
	oracle_compare(w);
}

static int try_release_beside(struct world *w, int id, raw_spinlock_t *lock)
{
	unsigned long flags;
	int err;

	raw_spin_lock_irqsave(lock, flags);
	err = bp_slots_try_release(&w->bs, &w->claims[id]);
	raw_spin_unlock_irqrestore(lock, flags);
	w->entries[id].held = err;
	oracle_compare(w);

	return err;
}

static void test_try_is_busy_while_a_request_is_under_way(struct kunit *test)
{
	struct world *w = small_world(test);
	int held = GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1))), cpu;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a lock cannot be busy on one CPU");

	expect_busy(w, &w->bs.global.lock);
	for_each_possible_cpu(cpu)
		expect_busy(w, &per_cpu_ptr(w->bs.shard, cpu)->lock);
	/* Nothing is left closed. */
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_FALSE(test, per_cpu_ptr(w->bs.shard, cpu)->closed);
	KUNIT_EXPECT_EQ(test, try_release_beside(w, held, &w->bs.global.lock), -EBUSY);
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(3)));
}

/* A release closes nothing, so it waits for no claim of a domain. */
static void test_try_release_needs_no_shard_lock(struct kunit *test)
{
	struct world *w = small_world(test);
	int cpu, held;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a lock cannot be busy on one CPU");

	for_each_possible_cpu(cpu) {
		raw_spinlock_t *lock = &per_cpu_ptr(w->bs.shard, cpu)->lock;

		held = GRANTED(ask(w, THE_CPU, ANYWHERE, GUARANTEED(1)));
		KUNIT_EXPECT_EQ(test, try_release_beside(w, held, lock), 0);
		held = GRANTED(ask(w, THE_CPU, 0, GUARANTEED(2)));
		KUNIT_EXPECT_EQ(test, try_release_beside(w, held, lock), 0);
	}
	GRANTED(ask(w, 0, ANYWHERE, GUARANTEED(4)));
}

/* ---- Malformed requests ---- */

struct malformed {
	const char	*name;
	struct bp_request	request;
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

static void test_malformed_request_is_refused(struct kunit *test)
{
	const struct malformed *malformed = test->param_value;
	const struct bp_request *request = &malformed->request;
	const struct bp_claim_spec *spec = &request->spec;
	struct world *w = oracle_open(test, 3, 3, 8, 4, 0);
	int held = GRANTED(ask(w, 0, 0, GUARANTEED(1)));
	struct bp_claim *claim = &w->claims[held + 1];
	struct bp_domain *domain = oracle_domain(w, request);

	KUNIT_EXPECT_EQ(test, bp_slots_reserve(&w->bs, claim, spec, domain,
					       request->cpu), malformed->err);
	oracle_compare(w);
	if (!domain) {
		KUNIT_EXPECT_EQ(test, bp_slots_try_reserve(&w->bs, claim, spec,
							   request->cpu),
				malformed->err);
		oracle_compare(w);
	}
	if (request->cpu)
		return;

	/* Requests with a malformed spec; holder and CPU are valid. */
	if (spec->flexible && malformed->err != -EINVAL)
		return;
	KUNIT_EXPECT_EQ(test, oracle_ask_change(&w->bs, &w->claims[held], spec),
			malformed->err);
	oracle_compare(w);
}

/* ---- All sequences on two CPUs with three domains, up to a length ---- */

#define WALK_CPUS	2
#define WALK_DOMAINS	3
#define WALK_REQUESTS	35
/* Requests in a row, whatever they are; one more for a single register. */
#define WALK_LENGTH(n)	((n) > 1 ? 3 : 4)
/* Claims that are held together. */
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
	struct bp_request	requests[WALK_REQUESTS];
	unsigned int	nr_requests;
};

static void walk_add(struct walk *walk, int domain, int cpu,
		     struct bp_claim_spec spec)
{
	walk->requests[walk->nr_requests++] =
		(struct bp_request) { domain, cpu, spec };
}

/* All requests that there are, ordered by holder. */
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
	walk->w = oracle_open(test, WALK_CPUS, WALK_DOMAINS, 6, slots, 1);
	walk->w->period = 7;
	walk->w->hop = 4096;

	return walk;
}

/*
 * Domains are alike, so a walk uses a domain only after the one before it: all other
 * walks are the same with other names.
 */
static bool walk_may_use(const struct bp_request *request, int *domains)
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
			if (oracle_change(walk->w, id, &spec))
				continue;
			walk_sequences(walk, length, domains);
			oracle_check(walk->w, !oracle_change(walk->w, id, &was),
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

	id = oracle_unused_claim(w);
	for (i = 0; i < walk->nr_requests; i++) {
		int used = domains;

		if (!walk_may_use(&walk->requests[i], &used) ||
		    oracle_reserve(w, id, &walk->requests[i]))
			continue;
		walk_sequences(walk, length, used);
		oracle_release(w, id);
	}

	for (id = 0; id < w->nr_claims; id++) {
		const struct bp_request was = w->entries[id].request;

		if (!w->entries[id].held)
			continue;
		walk_changes(walk, id, length, domains);
		oracle_release(w, id);
		walk_sequences(walk, length, domains);
		oracle_check(w, !oracle_reserve(w, id, &was), "take back", id);
	}
	cond_resched();
}

/* All sets of up to @claims more claims, and all requests beside each. */
static void walk_sets(struct walk *walk, unsigned int claims, unsigned int from,
		      int domains)
{
	struct world *w = walk->w;
	unsigned int id = oracle_unused_claim(w), i;

	for (i = 0; i < walk->nr_requests; i++) {
		int used = domains;

		if (!walk_may_use(&walk->requests[i], &used) ||
		    oracle_reserve(w, id, &walk->requests[i]))
			continue;
		if (claims && i >= from)
			walk_sets(walk, claims - 1, i, used);
		oracle_release(w, id);
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

/* ---- Random runs of larger worlds ---- */

/* struct random_run - an accounting, and random requests to it */
struct random_run {
	const char	*name;
	u64		seed;
	unsigned int	nr_cpus;
	unsigned int	nr_domains;
	unsigned int	nr_claims;
	unsigned int	slots[BP_SLOTS_CLASSES];
	unsigned int	requests;
	bool		thorough;
	unsigned int	nr_processes;
};

static const struct random_run random_runs[] = {
	{ "1 CPU, 2 domains", 1, 1, 2, 16, { 4, 4 }, 4000, true },
	{ "2 CPUs, 3 domains", 2, 2, 3, 24, { 4, 1 }, 8000, true },
	{ "4 CPUs, 8 domains", 3, 4, 8, 64, { 4, 4 }, 3000, true },
	{ "16 CPUs, 64 domains", 4, 16, 64, 512, { 6, 4 }, 10000 },
	{ "64 CPUs, 300 domains", 5, 64, 300, 1500, { BP_SLOTS_MAX, 2 }, 10000 },
	{ "64 CPUs, 1500 domains", 6, 64, 1500, 2000, { 4, 4 }, 6000 },
	{ "1 CPU, 3 domains, 1 process", 7, 1, 3, 16, { 4, 4 }, 4000, true, 1 },
	{ "2 CPUs, 4 domains, 2 processes", 8, 2, 4, 24, { 4, 2 }, 8000, true, 2 },
	{ "4 CPUs, 8 domains, 3 processes", 9, 4, 8, 48, { 4, 4 }, 3000, true, 3 },
	{ "8 CPUs, 40 domains, 6 processes", 10, 8, 40, 200, { 6, 4 }, 3000, false, 6 },
};

KUNIT_ARRAY_PARAM_DESC(random_run, random_runs, name);

/* Some domain joins a process; most that join have no claims yet. */
static bool join_once(struct world *w, struct rnd_state *rnd)
{
	unsigned int domain = oracle_random(rnd, w->nr_domains);

	if (w->member[domain] >= 0)
		return true;
	return !oracle_join(w, domain, oracle_random(rnd, w->nr_processes));
}

/* Returns true if nothing was refused. */
static bool random_step(struct world *w, struct rnd_state *rnd, bool growing)
{
	unsigned int id = oracle_random(rnd, w->nr_claims);
	struct entry *entry = &w->entries[id];
	struct bp_claim_spec spec;
	struct bp_request request;

	if (w->nr_processes && !oracle_random(rnd, 64))
		return join_once(w, rnd);
	if (!oracle_random(rnd, 8) || (entry->held && oracle_random(rnd, 8) < (growing ? 1 : 6))) {
		oracle_release(w, id);
		return true;
	}
	if (!entry->held) {
		request = oracle_random_request(w, rnd);
		return !oracle_reserve(w, id, &request);
	}
	spec = oracle_random_spec(w, rnd, entry->request.spec.flexible);
	return !oracle_change(w, id, &spec);
}

static void test_random_run(struct kunit *test)
{
	const struct random_run *run = test->param_value;
	unsigned int i, refused = 0;
	struct rnd_state rnd;
	struct world *w;

	w = oracle_open(test, run->nr_cpus, run->nr_domains, run->nr_claims,
			run->slots[0], run->slots[1]);
	if (run->nr_processes)
		oracle_add_processes(w, run->nr_processes);
	w->thorough = run->thorough;
	w->period = 13;
	w->hop = 64;
	prandom_seed_state(&rnd, run->seed);

	for (i = 0; i < run->requests; i++) {
		/* The number of claims grows and shrinks eight times. */
		bool growing = !((i * 16 / run->requests) & 1);

		refused += !random_step(w, &rnd, growing);
		if (!(i % 512))
			oracle_compare(w);
		cond_resched();
	}
	oracle_compare(w);

	/* Some requests are refused, and not most of them. */
	KUNIT_EXPECT_GT(test, refused, run->requests / 16);
	KUNIT_EXPECT_LT(test, refused, run->requests / 2);
}

/* ---- Cost of a request ---- */

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
	err = err ?: oracle_ask_change(&w->bs, claim, &other);
	bp_slots_release(&w->bs, claim);
	return err;
}

static int cost_of_available(struct world *w, struct bp_claim *claim)
{
	return bp_slots_available(&w->bs, 0, &w->domains[0], 0) ? 0 : -ENOSPC;
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
	{ "available", cost_of_available },
};

/* struct costs - nanoseconds of each operation, made and undone, undisturbed */
struct costs {
	u64	ns[ARRAY_SIZE(cost_ops)];
};

static u64 cost_of(struct world *w, unsigned int op)
{
	struct bp_claim *claim = &w->claims[oracle_unused_claim(w)];
	unsigned int i, failed = 0;
	u64 best = U64_MAX;

	for (i = 0; i < 64; i++) {
		u64 start = ktime_get_ns();

		failed += !!cost_ops[op].op(w, claim);
		best = min(best, ktime_get_ns() - start);
	}
	oracle_check(w, !failed, cost_ops[op].name, failed);

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
 * A step for each domain or claim would multiply the cost by hundreds.  A clock may be
 * as coarse as a microsecond.
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
	struct world *w = oracle_open(test, nr_cpus, nr_domains, 2 * nr_domains,
				      4, 4);
	struct costs costs;
	unsigned int i;

	w->thorough = false;
	for (i = 1; i < nr_domains; i++) {
		struct bp_request anywhere = { i, ANYWHERE, GUARANTEED(2) };
		struct bp_request bound = { i, i % nr_cpus, FLEXIBLE };

		GRANTED(oracle_reserve_unchecked(w, 2 * i, &anywhere));
		GRANTED(oracle_reserve_unchecked(w, 2 * i + 1, &bound));
	}
	costs = costs_of(w);
	oracle_close(w);

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
	const struct bp_request request = { 0, 0, FLEXIBLE };
	struct world *w = oracle_open(test, 2, 2, claims + 1, 4, 4);
	struct costs costs;
	unsigned int i;

	w->thorough = false;
	for (i = 0; i < claims; i++)
		GRANTED(oracle_reserve(w, i, &request));
	costs = costs_of(w);
	oracle_close(w);

	return costs;
}

static void test_cost_is_flat_in_flexible_claims(struct kunit *test)
{
	struct costs few = costs_among_claims(test, 2);
	struct costs many = costs_among_claims(test, 1000);

	expect_flat(test, &few, &many);
}

/* Tests of sequences, not of memory or locks: a debug kernel would find no more. */
#define VERY_SLOW	{ .speed = KUNIT_SPEED_VERY_SLOW }

static struct kunit_case bp_slots_test_cases[] = {
	KUNIT_CASE_PARAM(test_sequence, sequence_gen_params),
	KUNIT_CASE(test_init_refuses_more_registers_than_levels),
	KUNIT_CASE(test_change_all_changes_all_claims_or_none),
	KUNIT_CASE(test_change_between_flexible_and_guaranteed_is_refused),
	KUNIT_CASE(test_change_skips_a_claim_that_is_not_held),
	KUNIT_CASE(test_release_is_idempotent),
	KUNIT_CASE(test_available_is_what_guaranteed_claims_leave),
	KUNIT_CASE(test_domain_is_not_full_if_one_cpu_is),
	KUNIT_CASE(test_walks_do_not_see_each_other),
	KUNIT_CASE(test_claims_come_and_go_during_a_walk),
	KUNIT_CASE(test_a_walk_without_claims_ends),
	KUNIT_CASE(test_try_is_busy_while_a_request_is_under_way),
	KUNIT_CASE(test_try_release_needs_no_shard_lock),
	KUNIT_CASE_PARAM(test_malformed_request_is_refused, malformed_gen_params),
	KUNIT_CASE_PARAM_ATTR(test_every_short_sequence, walk_slots_gen_params, VERY_SLOW),
	KUNIT_CASE_PARAM_ATTR(test_every_small_set, walk_slots_gen_params, VERY_SLOW),
	KUNIT_CASE_PARAM_ATTR(test_random_run, random_run_gen_params, VERY_SLOW),
	KUNIT_CASE_ATTR(test_cost_is_flat_in_domains_and_cpus, VERY_SLOW),
	KUNIT_CASE_ATTR(test_cost_is_flat_in_flexible_claims, VERY_SLOW),
	{},
};

static struct kunit_suite bp_slots_test_suite = {
	.name = "bp_slots",
	.test_cases = bp_slots_test_cases,
	.exit = oracle_exit,
};

kunit_test_suites(&bp_slots_test_suite);

MODULE_DESCRIPTION("KUnit test of the arbitration of breakpoint registers");
MODULE_LICENSE("GPL");
