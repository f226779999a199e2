/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common part of the KUnit tests of the arbitration: an accounting under test, and a
 * naive oracle beside it.
 *
 * The oracle is a flat list of the claims that should be held.  For each CPU c,
 * domain d and class it adds up, claim by claim,
 *
 *   guaranteed(c) + guaranteed(d, c) + (flexible(c) or flexible(d, c) ? 1 : 0)
 *	<= registers - wide
 *
 * where a claim of the machine counts as one of each CPU, and a claim of a process as
 * one of each domain that is a member of it, and of one more domain, which has no
 * claims.  A request has to be granted exactly if this holds with the new claim on
 * the list.  After each request (in large worlds: now and then) every number of the
 * accounting, and all that its functions return, has to be what the list says, and
 * after the last release nothing may be left.
 */
#ifndef _KERNEL_EVENTS_BP_SLOTS_ORACLE_H
#define _KERNEL_EVENTS_BP_SLOTS_ORACLE_H

#include <kunit/test.h>
#include <linux/prandom.h>

#include "bp_slots.h"

/* Instead of a domain: the CPU itself, or the machine if it is ANYWHERE. */
#define THE_CPU		(-1)
/* Instead of a CPU: any on which the domain runs, or all. */
#define ANYWHERE	(-1)

#define GUARANTEED(n)	((struct bp_claim_spec) { .weight = (n) })
#define FLEXIBLE	((struct bp_claim_spec) { .weight = 1, .flexible = true })

struct bp_request {
	int			domain;
	int			cpu;
	struct bp_claim_spec	spec;
};

/**
 * struct entry - one claim in the list of the oracle
 * @request: the request
 * @held: the request was granted
 * @seen: number of times that a walk has seen the claim
 */
struct entry {
	struct bp_request	request;
	bool		held;
	unsigned int	seen;
};

/* struct tally - claims of one holder of one class on one CPU */
struct tally {
	unsigned int	guaranteed;
	unsigned int	flexible;
	unsigned int	bound;
	unsigned int	any_guaranteed;
	unsigned int	any_flexible;
};

/**
 * struct world - an accounting, and a flat list of what should be held
 * @test: the test it belongs to
 * @bs: the accounting under test
 * @nr_cpus: number of CPUs
 * @nr_domains: number of domains
 * @nr_claims: number of claims
 * @slots: registers of each class
 * @nr_processes: number of processes; they come behind the domains in requests
 * @domains: the domains
 * @processes: the processes
 * @member: the process of each domain, -1 for none
 * @claims: the claims
 * @entries: the list of the oracle, one entry for each claim
 * @cpu_tally: scratch; of each CPU
 * @domain_tally: scratch; of each domain, or of one domain on each CPU
 * @strangers: number of claims seen on a walk that are not on the list
 * @thorough: compare after each request, and check the rule everywhere
 * @period: comparisons in which each costly question is asked once
 * @hop: number of requests after which the test moves to another CPU, that is, to
 *	another shard
 * @calls: number of requests so far
 */
struct world {
	struct kunit		*test;
	struct bp_slots		bs;
	unsigned int		nr_cpus;
	unsigned int		nr_domains;
	unsigned int		nr_claims;
	unsigned int		slots[BP_SLOTS_CLASSES];
	unsigned int		nr_processes;
	struct bp_domain	*domains;
	struct bp_process	*processes;
	int			*member;
	struct bp_claim		*claims;
	struct entry		*entries;
	struct tally		*cpu_tally;
	struct tally		*domain_tally;
	unsigned int		strangers;
	bool			thorough;
	unsigned int		period;
	unsigned int		hop;
	unsigned long		calls;
};

struct world *oracle_open(struct kunit *test, unsigned int nr_cpus,
			  unsigned int nr_domains, unsigned int nr_claims,
			  unsigned int slots, unsigned int other_slots);
/* Adds processes to a world without claims. No domain is a member yet. */
void oracle_add_processes(struct world *w, unsigned int nr_processes);
/* Releases all claims and checks that nothing is left. */
void oracle_close(struct world *w);
/* The exit function of a suite */
void oracle_exit(struct kunit *test);

/* An assertion that costs less than those of KUnit */
void oracle_check(struct world *w, bool ok, const char *what, long number);
/* Compares the accounting with the list. */
void oracle_compare(struct world *w);

/* Requests, whose results are compared with the verdict of the oracle */
int oracle_reserve(struct world *w, unsigned int id, const struct bp_request *request);
int oracle_change(struct world *w, unsigned int id, const struct bp_claim_spec *spec);
/* Changes all claims, each of which is as @old says, in one request. */
int oracle_change_all(struct world *w, const struct bp_claim_spec *old,
		      const struct bp_claim_spec *new);
void oracle_release(struct world *w, unsigned int id);
/* Makes a domain a member of a process; it must not be a member yet. */
int oracle_join(struct world *w, unsigned int domain, unsigned int process);
/* A request that is known to fit: the oracle is not asked. */
int oracle_reserve_unchecked(struct world *w, unsigned int id,
			     const struct bp_request *request);

/* bp_slots_change_all() of one claim */
int oracle_ask_change(struct bp_slots *bs, struct bp_claim *claim,
		      const struct bp_claim_spec *spec);

struct bp_domain *oracle_domain(struct world *w, const struct bp_request *request);
unsigned int oracle_unused_claim(struct world *w);
void oracle_see_claim(const struct bp_claim *claim, void *world);

unsigned int oracle_random(struct rnd_state *rnd, unsigned int limit);
struct bp_claim_spec oracle_random_spec(const struct world *w, struct rnd_state *rnd,
					bool flexible);
struct bp_request oracle_random_request(const struct world *w, struct rnd_state *rnd);

/* Domains at one level, by their claims for any CPU. No request is under way. */
static inline unsigned int oracle_any_level(const struct bp_slots *bs, unsigned int class,
					    unsigned int level)
{
	unsigned int n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += per_cpu_ptr(bs->shard, cpu)->level[class][level];

	return n;
}

#endif /* _KERNEL_EVENTS_BP_SLOTS_ORACLE_H */
