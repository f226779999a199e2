// SPDX-License-Identifier: GPL-2.0
/* Output of 'hwbp watch' and 'hwbp stat': hits, and the counts per instruction. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kallsyms.h"
#include "report.h"
#include "unwind.h"
#include "util.h"

#define NR_BUCKETS	1024
#define MAX_CALLERS	32

/* Maximum number of bytes that a processor moves in one iteration of REP MOVS */
#define STRING_REACH	64

/**
 * struct spot - a reported address with its description and count
 * @next: next spot in the hash bucket
 * @ip: address that the processor reported, or a return address
 * @back: the instruction that @ip stands for
 * @hits: number of hits
 * @gone: the code was unmapped: @ip may belong to other code by now
 * @place: description of the instruction
 */
struct spot {
	struct spot *next;
	uint64_t ip;
	enum back back;
	uint64_t hits;
	bool gone;
	struct place place;
};

struct report {
	const struct options *opt;
	FILE *out;
	uint64_t start;
	struct location loc;
	struct symbols *syms;
	struct unwinder *unwinder;
	struct spot *bucket[NR_BUCKETS];
	struct spot *caller[NR_BUCKETS];
	uint64_t hits;
};

struct report *report_new(const struct options *opt)
{
	struct report *rep = xzalloc(sizeof(*rep));

	rep->opt = opt;
	rep->out = open_output(opt->out);
	return rep;
}

void report_begin(struct report *rep, const struct location *loc, struct symbols *syms,
		  const struct target *t, uint64_t start)
{
	bool exec = rep->opt->access == ACCESS_X;

	rep->start = start;
	rep->loc = *loc;
	rep->syms = syms;
	if (rep->opt->callers)
		rep->unwinder = unwinder_new(syms, t->pid);
	fprintf(rep->out, "%s of %s at %#" PRIx64, access_name(rep->opt->access), loc->text,
		loc->address);
	if (!exec)
		fprintf(rep->out, ", %u byte%s", loc->len, loc->len == 1 ? "" : "s");
	fprintf(rep->out, ", in %s (pid %d)\n", symbols_program(syms), t->pid);
	if (rep->opt->verb == VERB_WATCH)
		fprintf(rep->out, "\n%11s  %-15s %7s %3s  %-35s %s\n", "TIME", "COMM", "TID",
			"CPU", "INSTRUCTION", "SOURCE");
	report_flush(rep);
}

void report_flush(struct report *rep)
{
	flush_output(rep->out);
}

uint64_t report_nr_hits(const struct report *rep)
{
	return rep->hits;
}

/* ---- hits ---- */

static struct spot **bucket_of(struct spot **table, uint64_t ip)
{
	return &table[(ip ^ ip >> 10) % NR_BUCKETS];
}

static struct spot *find_spot(struct spot **table, uint64_t ip, enum back back)
{
	struct spot *spot = *bucket_of(table, ip);

	while (spot && (spot->ip != ip || spot->back != back || spot->gone))
		spot = spot->next;
	return spot;
}

static struct spot *add_spot(struct spot **table, uint64_t ip, enum back back)
{
	struct spot *spot = xzalloc(sizeof(*spot)), **bucket = bucket_of(table, ip);

	spot->ip = ip;
	spot->back = back;
	spot->next = *bucket;
	*bucket = spot;
	return spot;
}

/* Returns true if a string instruction may have just passed the watched bytes. */
static bool has_passed(const struct location *loc, uint64_t pointer)
{
	return pointer > loc->address && pointer <= loc->address + loc->len + STRING_REACH;
}

/*
 * The processor reports an execution before the instruction, and a data access after
 * it or, for a repeated string instruction, after one iteration.
 */
static enum back back_of(const struct report *rep, const struct hit *hit)
{
	if (rep->opt->access == ACCESS_X)
		return BACK_NONE;
	if (hit->user && !hit->kernel &&
	    (has_passed(&rep->loc, hit->user->regs[USER_DI]) ||
	     has_passed(&rep->loc, hit->user->regs[USER_SI])))
		return BACK_STRING;
	return BACK_ONE;
}

static struct spot *spot_of_hit(struct report *rep, const struct hit *hit)
{
	enum back back = back_of(rep, hit);
	struct spot *spot = find_spot(rep->bucket, hit->ip, back);

	if (spot)
		return spot;
	spot = add_spot(rep->bucket, hit->ip, back);
	if (!hit->kernel)
		symbols_place(rep->syms, hit->ip, back, &spot->place);
	else
		kallsyms_place(back == BACK_NONE ? hit->ip : hit->ip - 1, &spot->place);
	return spot;
}

static struct spot *spot_of_caller(struct report *rep, uint64_t ip)
{
	struct spot *spot = find_spot(rep->caller, ip, BACK_ONE);

	if (spot)
		return spot;
	spot = add_spot(rep->caller, ip, BACK_ONE);
	symbols_place(rep->syms, ip, BACK_ONE, &spot->place);
	return spot;
}

static void print_callers(struct report *rep, const struct hit *hit)
{
	uint64_t ips[MAX_CALLERS];
	size_t i, nr = unwinder_callers(rep->unwinder, hit->user, ips, MAX_CALLERS);

	for (i = 0; i < nr; i++) {
		struct spot *spot = spot_of_caller(rep, ips[i]);

		fprintf(rep->out, "%*s %-35s %s\n", 43, "by", spot->place.where,
			spot->place.source);
	}
}

void report_hit(struct report *rep, const struct hit *hit, struct tasks *tasks)
{
	struct spot *spot = spot_of_hit(rep, hit);
	uint64_t us = hit->time > rep->start ? (hit->time - rep->start) / 1000 : 0;

	spot->hits++;
	rep->hits++;
	fprintf(rep->out, "%4" PRIu64 ".%06" PRIu64 "  %-15s %7d %3u  %-35s %s\n",
		us / 1000000, us % 1000000, tasks_name(tasks, hit->tid), hit->tid, hit->cpu,
		spot->place.where, spot->place.source);
	if (rep->unwinder && hit->user)
		print_callers(rep, hit);
}

static void forget_range(struct spot **table, uint64_t start, uint64_t len)
{
	struct spot *spot;
	size_t i;

	for (i = 0; i < NR_BUCKETS; i++) {
		for (spot = table[i]; spot; spot = spot->next) {
			if (spot->ip - start < len)
				spot->gone = true;
		}
	}
}

void report_unmapped(struct report *rep, uint64_t start, uint64_t len)
{
	forget_range(rep->bucket, start, len);
	forget_range(rep->caller, start, len);
}

/* ---- counts ---- */

static int by_text(const void *a, const void *b)
{
	const struct spot *x = *(struct spot *const *)a, *y = *(struct spot *const *)b;
	int diff = strcmp(x->place.where, y->place.where);

	return diff ? diff : strcmp(x->place.source, y->place.source);
}

static int by_hits(const void *a, const void *b)
{
	const struct spot *x = *(struct spot *const *)a, *y = *(struct spot *const *)b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return by_text(a, b);
}

static size_t collect(struct report *rep, struct spot ***list)
{
	size_t i, nr = 0, room = 0;
	struct spot *spot;

	*list = NULL;
	for (i = 0; i < NR_BUCKETS; i++) {
		for (spot = rep->bucket[i]; spot; spot = spot->next) {
			GROW(*list, nr, room);
			(*list)[nr++] = spot;
		}
	}
	return nr;
}

/* Merge spots of the same instruction, which may be reported at several addresses. */
static size_t merge(struct spot **list, size_t nr)
{
	size_t i, kept = 0;

	qsort(list, nr, sizeof(*list), by_text);
	for (i = 0; i < nr; i++) {
		if (kept && !by_text(&list[kept - 1], &list[i]))
			list[kept - 1]->hits += list[i]->hits;
		else
			list[kept++] = list[i];
	}
	qsort(list, kept, sizeof(*list), by_hits);
	return kept;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void report_places(struct report *rep, uint64_t lost)
{
	uint64_t us = (now_ns() - rep->start) / 1000;
	struct spot **list;
	size_t i, nr;

	nr = collect(rep, &list);
	nr = nr ? merge(list, nr) : 0;
	fprintf(rep->out, "\n%" PRIu64 " hit%s at %zu place%s in %" PRIu64 ".%03" PRIu64 " s\n",
		rep->hits, plural(rep->hits), nr, plural(nr), us / 1000000, us / 1000 % 1000);
	if (nr)
		fprintf(rep->out, "%11s %8s  %-35s %s\n", "HITS", "PERCENT", "INSTRUCTION",
			"SOURCE");
	for (i = 0; i < nr; i++)
		fprintf(rep->out, "%11" PRIu64 " %7.2f%%  %-35s %s\n", list[i]->hits,
			100.0 * list[i]->hits / rep->hits, list[i]->place.where,
			list[i]->place.source);
	if (lost)
		fprintf(rep->out, "%" PRIu64 " more hit%s lost: a buffer was full\n", lost,
			plural(lost));
	free(list);
	report_flush(rep);
}

void report_counts(struct report *rep, const struct counts *counts)
{
	double share = 100.0;

	if (counts->enabled_ns)
		share = 100.0 * counts->running_ns / counts->enabled_ns;
	fprintf(rep->out, "%" PRIu64 " hit%s; threads ran %.6f s, watched %.6f s of it (%.2f%%)\n",
		counts->hits, plural(counts->hits), counts->enabled_ns / 1e9,
		counts->running_ns / 1e9, share);
	report_flush(rep);
}
