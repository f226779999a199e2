// SPDX-License-Identifier: GPL-2.0
/* Output of 'hwbp watch' and 'hwbp stat': hits, and the counts per instruction. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <perf/event.h>
#include <perf/evsel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "json.h"
#include "kallsyms.h"
#include "report.h"
#include "term.h"
#include "unwind.h"
#include "util.h"

#define NR_BUCKETS	1024
#define NR_LINES	256
#define MAX_CALLERS	32

/* Lines of the summary on a terminal */
#define LIVE_LINES	9

/* Counts are not scaled if a place was watched for at least this part of the time. */
#define FULL_SHARE	99.9

/*
 * Values stand behind the source line; on a terminal of fewer columns than VALUE_COLUMNS
 * instruction and source line are in a line of their own, below the name of the thread.
 */
#define INSTRUCTION_WIDTH	35
#define SOURCE_WIDTH		20
#define VALUE_COLUMNS		120
#define PLACE_INDENT		13

/* Column of the callers, behind the CPU */
#define CALLERS_INDENT		43

/* A terminal gets no hits that are this much older: it is slower than the program. */
#define MAX_LAG_NS		1000000000ULL

/* Maximum number of bytes that a processor moves in one iteration of REP MOVS */
#define STRING_REACH	64

/**
 * struct spot - a reported address with its description and count
 * @next: next spot in the hash bucket
 * @ip: address that the processor reported, or a return address
 * @back: the instruction that @ip stands for
 * @loc: index of the watched place; 0 for a caller
 * @hits: number of hits
 * @gone: the code was unmapped: @ip may belong to other code by now
 * @place: description of the instruction
 */
struct spot {
	struct spot *next;
	uint64_t ip;
	enum back back;
	size_t loc;
	uint64_t hits;
	bool gone;
	struct place place;
};

/**
 * struct line - what lines of hits have behind the time
 * @spot: the instruction
 * @pid: process
 * @tid: thread
 * @cpu: CPU
 * @comm: name of the thread
 * @text: the text
 * @len: its length
 * @values: offset of the values in it
 */
struct line {
	const struct spot *spot;
	pid_t pid;
	pid_t tid;
	uint32_t cpu;
	char comm[16];
	char *text;
	size_t len;
	size_t values;
};

struct report {
	const struct watch_options *opt;
	FILE *out;
	struct term term;
	uint64_t start;
	const struct location *locs;
	size_t nr_locs;
	int place_width;
	struct symbols *syms;
	struct unwinder *unwinder;
	struct value_format format;
	enum values values;
	int columns;
	struct spot *bucket[NR_BUCKETS];
	struct spot *caller[NR_BUCKETS];
	struct line line[NR_LINES];
	uint64_t hits;
	uint64_t hidden;
	int signal;
};

struct report *report_new(const struct watch_options *opt)
{
	struct report *rep = xzalloc(sizeof(*rep));

	rep->opt = opt;
	rep->out = open_output(opt->out);
	term_init(&rep->term, rep->out, opt->plain || opt->json);
	return rep;
}

static const char *access_name(enum access access)
{
	switch (access) {
	case ACCESS_W:
		return "writes";
	case ACCESS_RW:
		return "reads and writes";
	default:
		return "executions";
	}
}

static void print_location(const struct report *rep, const struct location *loc,
			   const struct target *t)
{
	fprintf(rep->out, "%s of %s at %#" PRIx64, access_name(rep->opt->access), loc->text,
		loc->address);
	if (rep->opt->access != ACCESS_X)
		fprintf(rep->out, ", %u byte%s", loc->len, loc->len == 1 ? "" : "s");
	if (loc->bit_size == 1)
		fprintf(rep->out, " (bit %u)", loc->bit_offset);
	if (loc->bit_size > 1)
		fprintf(rep->out, " (bits %u-%u)", loc->bit_offset,
			loc->bit_offset + loc->bit_size - 1);
	fprintf(rep->out, ", in %s (pid %d", symbols_program(rep->syms), t->pid);
	if (t->tid)
		fprintf(rep->out, ", thread %d", t->tid);
	fprintf(rep->out, ")\n");
}

/* The column PLACE is printed only if there are several. */
static void print_place(const struct report *rep, const char *text)
{
	if (rep->nr_locs > 1)
		fprintf(rep->out, "%-*s  ", rep->place_width, text);
}

static bool is_narrow(const struct report *rep)
{
	return rep->columns && rep->columns < VALUE_COLUMNS;
}

/* Print the source line of a hit, and go to the column of the value if there is one. */
static void print_source(const struct report *rep, const char *source)
{
	fprintf(rep->out, rep->values ? "%-*s " : "%*s", rep->values ? SOURCE_WIDTH : 0, source);
}

static void set_locations(struct report *rep, const struct location *locs)
{
	size_t i;

	rep->locs = locs;
	rep->nr_locs = rep->opt->nr_specs;
	rep->place_width = strlen("PLACE");
	for (i = 0; i < rep->nr_locs; i++) {
		int len = strlen(locs[i].text);

		if (len > rep->place_width)
			rep->place_width = len;
	}
}

static void json_location(const struct report *rep, const struct location *loc,
			  const struct target *t)
{
	static const char *const access[] = { "w", "rw", "x" };
	struct json json = json_begin(rep->out, "place");

	json_string(&json, "place", loc->text);
	json_string(&json, "access", access[rep->opt->access]);
	json_address(&json, "address", loc->address);
	if (rep->opt->access != ACCESS_X)
		json_int(&json, "len", loc->len);
	if (loc->type)
		json_string(&json, "of", loc->type->name);
	if (loc->bit_size) {
		json_int(&json, "bit_offset", loc->bit_offset);
		json_int(&json, "bit_size", loc->bit_size);
	}
	json_bool(&json, "multiplexed", rep->opt->flexible);
	if (rep->values)
		json_string(&json, "values", rep->values == VALUES_READ ? "read after the hit" :
									  "recorded");
	json_int(&json, "pid", t->pid);
	if (t->tid)
		json_int(&json, "tid", t->tid);
	json_string(&json, "program", symbols_program(rep->syms));
	json_end(&json);
}

static void print_begin(const struct report *rep, const struct target *t)
{
	size_t i;

	for (i = 0; i < rep->nr_locs; i++)
		print_location(rep, &rep->locs[i], t);
	if (rep->opt->flexible)
		fprintf(rep->out, "multiplexed: each place is watched for a part of the time\n");
	if (rep->values == VALUES_READ)
		fprintf(rep->out, "values read after the hit: %s\n",
			"the program may have written to the place once more by then");
	if (!rep->opt->record || rep->opt->dry_run)
		return;
	fprintf(rep->out, "\n%11s  %-15s %7s %3s  ", "TIME", "COMM", "TID", "CPU");
	print_place(rep, "PLACE");
	if (rep->values && is_narrow(rep)) {
		fprintf(rep->out, "VALUE\n%*s%s\n", PLACE_INDENT, "", "INSTRUCTION SOURCE");
		return;
	}
	fprintf(rep->out, "%-*s ", INSTRUCTION_WIDTH, "INSTRUCTION");
	print_source(rep, "SOURCE");
	fprintf(rep->out, "%s\n", rep->values ? "VALUE" : "");
}

void report_begin(struct report *rep, const struct location *locs, struct symbols *syms,
		  const struct target *t, enum values values, uint64_t start)
{
	size_t i;

	rep->start = start;
	rep->syms = syms;
	rep->values = values;
	rep->columns = term_width(&rep->term);
	rep->format = (struct value_format){ .hex = rep->opt->hex, .syms = syms };
	set_locations(rep, locs);
	if (rep->opt->callers)
		rep->unwinder = unwinder_new(syms, t->pid);
	if (!rep->opt->json)
		print_begin(rep, t);
	for (i = 0; rep->opt->json && i < rep->nr_locs; i++)
		json_location(rep, &locs[i], t);
	report_flush(rep);
}

void report_flush(struct report *rep)
{
	flush_output(rep->out);
}

void report_signal(struct report *rep, int signal)
{
	rep->signal = signal;
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

static struct spot *find_spot(struct spot **table, uint64_t ip, enum back back, size_t loc)
{
	struct spot *spot = *bucket_of(table, ip);

	while (spot && (spot->ip != ip || spot->back != back || spot->loc != loc || spot->gone))
		spot = spot->next;
	return spot;
}

static struct spot *add_spot(struct spot **table, uint64_t ip, enum back back, size_t loc)
{
	struct spot *spot = xzalloc(sizeof(*spot)), **bucket = bucket_of(table, ip);

	spot->ip = ip;
	spot->back = back;
	spot->loc = loc;
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
	const struct location *loc = &rep->locs[hit->loc];

	if (rep->opt->access == ACCESS_X)
		return BACK_NONE;
	if (hit->user && !hit->kernel &&
	    (has_passed(loc, hit->user->regs[USER_DI]) ||
	     has_passed(loc, hit->user->regs[USER_SI])))
		return BACK_STRING;
	return BACK_ONE;
}

static struct spot *spot_of_hit(struct report *rep, const struct hit *hit)
{
	enum back back = back_of(rep, hit);
	struct spot *spot = find_spot(rep->bucket, hit->ip, back, hit->loc);

	if (spot)
		return spot;
	spot = add_spot(rep->bucket, hit->ip, back, hit->loc);
	if (!hit->kernel)
		symbols_place(rep->syms, hit->ip, back, &spot->place);
	else
		kallsyms_place(back == BACK_NONE ? hit->ip : hit->ip - 1, &spot->place);
	return spot;
}

static struct spot *spot_of_caller(struct report *rep, uint64_t ip)
{
	struct spot *spot = find_spot(rep->caller, ip, BACK_ONE, 0);

	if (spot)
		return spot;
	spot = add_spot(rep->caller, ip, BACK_ONE, 0);
	symbols_place(rep->syms, ip, BACK_ONE, &spot->place);
	return spot;
}

static void print_instruction(const struct report *rep, const struct place *place, int width)
{
	fprintf(rep->out, "%s%-*s%s ", term_style(&rep->term, STYLE_PLACE), width, place->where,
		term_reset(&rep->term));
}

static void print_callers(struct report *rep, const uint64_t *ips, size_t nr)
{
	int indent = is_narrow(rep) ? PLACE_INDENT + 2 : CALLERS_INDENT;
	int width = is_narrow(rep) ? 0 : INSTRUCTION_WIDTH;
	size_t i;

	for (i = 0; i < nr; i++) {
		struct spot *spot = spot_of_caller(rep, ips[i]);

		fprintf(rep->out, "%*s %-*s %s\n", indent, "by", width, spot->place.where,
			spot->place.source);
	}
}

static void json_place(struct json *json, const struct place *place)
{
	json_string(json, "instruction", place->where);
	json_string(json, "function", place->function);
	if (place->mangled)
		json_string(json, "mangled", place->mangled);
	json_string(json, "source", *place->source ? place->source : NULL);
}

static void json_callers(struct json *json, struct report *rep, const uint64_t *ips, size_t nr)
{
	size_t i;

	json_array_begin(json, "callers");
	for (i = 0; i < nr; i++) {
		json_element_begin(json);
		json_address(json, "ip", ips[i]);
		json_place(json, &spot_of_caller(rep, ips[i])->place);
		json_element_end(json);
	}
	json_array_end(json);
}

/* Returns the offset of the values, 0 if they come last. */
static size_t print_line(const struct report *rep, const struct hit *hit, const char *comm,
			 const struct spot *spot)
{
	size_t values;

	fprintf(rep->out, "%s  %-15s %7d %3u  ", term_reset(&rep->term), comm, hit->tid, hit->cpu);
	print_place(rep, rep->locs[hit->loc].text);
	if (rep->values && is_narrow(rep)) {
		values = ftell(rep->out);
		fprintf(rep->out, "\n%*s", PLACE_INDENT, "");
		print_instruction(rep, &spot->place, 0);
		fputs(spot->place.source, rep->out);
		return values;
	}
	print_instruction(rep, &spot->place, INSTRUCTION_WIDTH);
	print_source(rep, spot->place.source);
	return 0;
}

static void json_line(const struct report *rep, const struct hit *hit, const char *comm,
		      const struct spot *spot)
{
	struct json json = { .out = rep->out, .comma = true };

	json_string(&json, "comm", comm);
	json_int(&json, "pid", hit->pid);
	json_int(&json, "tid", hit->tid);
	json_int(&json, "cpu", hit->cpu);
	json_string(&json, "place", rep->locs[hit->loc].text);
	json_address(&json, "ip", hit->ip);
	json_bool(&json, "kernel", hit->kernel);
	json_place(&json, &spot->place);
}

static bool is_line_of(const struct line *line, const struct hit *hit, const char *comm,
		       const struct spot *spot)
{
	return line->spot == spot && line->tid == hit->tid && line->cpu == hit->cpu &&
	       line->pid == hit->pid && !strcmp(line->comm, comm);
}

/*
 * All of a hit but time and values. Most hits repeat what an earlier one had: to print it
 * anew would cost ten times as much as the rest of what hwbp does for a hit.
 */
static const struct line *line_of(struct report *rep, const struct hit *hit, const char *comm,
				  const struct spot *spot)
{
	struct line *line = &rep->line[(hit->ip ^ hit->tid * 31 ^ hit->cpu * 7) % NR_LINES];
	FILE *out = rep->out;
	size_t values = 0;

	if (is_line_of(line, hit, comm, spot))
		return line;
	free(line->text);
	*line = (struct line){
		.spot = spot,
		.pid = hit->pid,
		.tid = hit->tid,
		.cpu = hit->cpu,
	};
	snprintf(line->comm, sizeof(line->comm), "%s", comm);
	rep->out = open_memstream(&line->text, &line->len);
	if (!rep->out)
		die("out of memory");
	if (rep->opt->json)
		json_line(rep, hit, comm, spot);
	else
		values = print_line(rep, hit, comm, spot);
	fclose(rep->out);
	rep->out = out;
	line->values = values ? values : line->len;
	return line;
}

static void print_hit(struct report *rep, const struct hit *hit, const char *comm, uint64_t ns,
		      const struct spot *spot)
{
	const struct line *line = line_of(rep, hit, comm, spot);
	uint64_t us = ns / 1000;

	put_short(rep->out, term_style(&rep->term, STYLE_WEAK));
	put_number(rep->out, us / 1000000, 4, ' ');
	putc_unlocked('.', rep->out);
	put_number(rep->out, us % 1000000, 6, '0');
	fwrite_unlocked(line->text, 1, line->values, rep->out);
	if (rep->values)
		change_print(rep->out, &rep->format, &rep->locs[hit->loc], hit->before, hit->after);
	put_short(rep->out, line->text + line->values);
	putc_unlocked('\n', rep->out);
}

static void json_hit(struct report *rep, const struct hit *hit, const char *comm, uint64_t ns,
		     const struct spot *spot, const uint64_t *ips, size_t nr_ips)
{
	const struct line *line = line_of(rep, hit, comm, spot);
	struct json json = json_begin(rep->out, "hit");

	json_seconds(&json, "time", ns);
	fwrite_unlocked(line->text, 1, line->len, rep->out);
	if (rep->values)
		change_json(&json, &rep->format, &rep->locs[hit->loc], hit->before, hit->after);
	if (rep->unwinder)
		json_callers(&json, rep, ips, nr_ips);
	json_end(&json);
}

void report_hit(struct report *rep, const struct hit *hit, struct tasks *tasks)
{
	uint64_t ns = hit->time > rep->start ? hit->time - rep->start : 0;
	const char *comm = tasks_name(tasks, hit->tid);
	struct spot *spot = spot_of_hit(rep, hit);
	uint64_t ips[MAX_CALLERS];
	size_t nr_ips = 0;

	spot->hits++;
	rep->hits++;
	if (rep->term.live && now_ns() > hit->time + MAX_LAG_NS) {
		rep->hidden++;
		return;
	}
	if (rep->unwinder && hit->user)
		nr_ips = unwinder_callers(rep->unwinder, hit->user, ips, MAX_CALLERS);
	if (rep->opt->json) {
		json_hit(rep, hit, comm, ns, spot, ips, nr_ips);
	} else {
		print_hit(rep, hit, comm, ns, spot);
		print_callers(rep, ips, nr_ips);
	}
	flush_half_full_output(rep->out);
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

/* False if the program ran, but the place was not watched: its hits are not known. */
static bool was_watched(const struct counts *counts)
{
	return counts->hits || counts->running_ns || !counts->enabled_ns;
}

/* Part of the time for which a place was watched, in percent */
static double share_of(const struct counts *counts)
{
	if (!counts->enabled_ns || counts->running_ns >= counts->enabled_ns)
		return 100.0;
	return 100.0 * counts->running_ns / counts->enabled_ns;
}

static int by_text(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	int diff = strcmp(x->place.where, y->place.where);

	if (!diff)
		diff = x->loc < y->loc ? -1 : x->loc > y->loc;
	return diff ? diff : strcmp(x->place.source, y->place.source);
}

static int by_hits(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return by_text(a, b);
}

static size_t collect(struct report *rep, struct spot **list)
{
	size_t i, nr = 0, capacity = 0;
	struct spot *spot;

	*list = NULL;
	for (i = 0; i < NR_BUCKETS; i++) {
		for (spot = rep->bucket[i]; spot; spot = spot->next) {
			GROW(*list, nr, capacity);
			(*list)[nr++] = *spot;
		}
	}
	return nr;
}

/*
 * Merge spots of the same place and instruction, which may be reported at several
 * addresses.
 */
static size_t merge(struct spot *list, size_t nr)
{
	size_t i, kept = 0;

	qsort(list, nr, sizeof(*list), by_text);
	for (i = 0; i < nr; i++) {
		if (kept && !by_text(&list[kept - 1], &list[i]))
			list[kept - 1].hits += list[i].hits;
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

/*
 * Estimate of the number of accesses: hits while a place was watched, scaled by the time
 * for which the program ran. Returns 0 if the place was not watched at all.
 */
static uint64_t scale(uint64_t hits, const struct counts *counts)
{
	struct perf_counts_values values = {
		.val = hits,
		.ena = counts->enabled_ns,
		.run = counts->running_ns,
	};

	/* The two times are read from several events at slightly different moments. */
	if (share_of(counts) < FULL_SHARE)
		perf_counts_values__scale(&values, true, NULL);
	return values.val;
}

static bool is_multiplexed(const struct report *rep, const struct counts *counts)
{
	size_t i;

	for (i = 0; i < rep->nr_locs; i++) {
		if (share_of(&counts[i]) < FULL_SHARE)
			return true;
	}
	return false;
}

static void print_scaled(const struct report *rep, const struct counts *counts)
{
	size_t i;

	fprintf(rep->out, "counts are scaled: the places were watched for a part of the time\n");
	fprintf(rep->out, "%11s %11s  %-*s  %s\n", "SCALED", "HITS", rep->place_width, "PLACE",
		"WATCHED");
	for (i = 0; i < rep->nr_locs; i++) {
		if (!was_watched(&counts[i])) {
			fprintf(rep->out, "%11s %11s  %-*s  not watched\n", "-", "-",
				rep->place_width, rep->locs[i].text);
			continue;
		}
		fprintf(rep->out, "%11" PRIu64 " %11" PRIu64 "  %-*s  %.2f%%\n",
			scale(counts[i].hits, &counts[i]), counts[i].hits, rep->place_width,
			rep->locs[i].text, share_of(&counts[i]));
	}
}

/* Width of the instructions of a table; on a terminal, what the other columns leave. */
static int spot_width(const struct report *rep, const struct spot *list, size_t nr, int others)
{
	int where = strlen("INSTRUCTION"), source = 0, room, len;
	size_t i;

	if (!rep->columns)
		return INSTRUCTION_WIDTH;
	for (i = 0; i < nr; i++) {
		len = strlen(list[i].place.where);
		where = len > where ? len : where;
		len = strlen(list[i].place.source);
		source = len > source ? len : source;
	}
	room = rep->columns - others - (rep->nr_locs > 1 ? rep->place_width + 2 : 0) - source - 1;
	return where < room ? where : room > 0 ? room : 0;
}

static void print_spot(const struct report *rep, const struct spot *spot, uint64_t total,
		       int width)
{
	fprintf(rep->out, "%s%11" PRIu64 "%s %7.2f%%  ", term_style(&rep->term, STYLE_STRONG),
		spot->hits, term_reset(&rep->term), total ? 100.0 * spot->hits / total : 0.0);
	print_place(rep, rep->locs[spot->loc].text);
	print_instruction(rep, &spot->place, width);
	fprintf(rep->out, "%s\n", spot->place.source);
}

static void print_spots(const struct report *rep, const struct spot *list, size_t nr)
{
	int width = spot_width(rep, list, nr, strlen("        123  100.00%  "));
	uint64_t total = 0;
	size_t i;

	if (!nr)
		return;
	fprintf(rep->out, "%11s %8s  ", "HITS", "PERCENT");
	print_place(rep, "PLACE");
	fprintf(rep->out, "%-*s %s\n", width, "INSTRUCTION", "SOURCE");
	for (i = 0; i < nr; i++)
		total += list[i].hits;
	for (i = 0; i < nr; i++)
		print_spot(rep, &list[i], total, width);
}

static void sum_missing(const struct report *rep, const struct counts *counts, uint64_t *lost,
			uint64_t *silent)
{
	size_t i;

	*lost = 0;
	*silent = 0;
	for (i = 0; i < rep->nr_locs; i++) {
		*lost += counts[i].lost;
		*silent += counts[i].silent;
	}
}

static void scale_spots(struct spot *list, size_t nr, const struct counts *counts)
{
	size_t i;

	for (i = 0; i < nr; i++)
		list[i].hits = scale(list[i].hits, &counts[list[i].loc]);
	if (nr)
		qsort(list, nr, sizeof(*list), by_hits);
}

static void print_places(struct report *rep, const struct counts *counts,
			 const struct spot *list, size_t nr)
{
	uint64_t us = (now_ns() - rep->start) / 1000, lost, silent;

	sum_missing(rep, counts, &lost, &silent);

	fprintf(rep->out, "\n%" PRIu64 " hit%s at %zu place%s in %" PRIu64 ".%03" PRIu64 " s\n",
		rep->hits, plural(rep->hits), nr, plural(nr), us / 1000000, us / 1000 % 1000);
	if (is_multiplexed(rep, counts))
		print_scaled(rep, counts);
	print_spots(rep, list, nr);
	if (lost)
		fprintf(rep->out, "%" PRIu64 " more hit%s lost: a buffer was full\n", lost,
			plural(lost));
	if (rep->hidden)
		fprintf(rep->out, "%" PRIu64 " hit%s not shown: the terminal is too slow (%s)\n",
			rep->hidden, plural(rep->hidden), "-o FILE has all");
	if (silent)
		fprintf(rep->out, "%" PRIu64 " more access%s %s\n", silent,
			silent == 1 ? "" : "es", rep->values == VALUES_READ ?
			"with the same value read after the hit" : "changed nothing");
}

static void json_spot(const struct report *rep, const struct spot *spot)
{
	struct json json = json_begin(rep->out, "instruction");

	json_string(&json, "place", rep->locs[spot->loc].text);
	json_u64(&json, "hits", spot->hits);
	json_place(&json, &spot->place);
	json_end(&json);
}

static void json_counts(const struct report *rep, const struct location *loc,
			const struct counts *counts)
{
	struct json json = json_begin(rep->out, "count");

	json_string(&json, "place", loc->text);
	if (was_watched(counts)) {
		json_u64(&json, "hits", counts->hits);
		json_u64(&json, "scaled", scale(counts->hits, counts));
	} else {
		json_string(&json, "hits", NULL);
		json_string(&json, "scaled", NULL);
	}
	json_seconds(&json, "enabled", counts->enabled_ns);
	json_seconds(&json, "running", counts->running_ns);
	json_u64(&json, "lost", counts->lost);
	if (rep->opt->changed)
		json_u64(&json, "silent", counts->silent);
	json_end(&json);
}

static void json_end_of_report(const struct report *rep)
{
	struct json json = json_begin(rep->out, "end");

	json_seconds(&json, "time", now_ns() - rep->start);
	if (rep->signal)
		json_int(&json, "signal", rep->signal);
	json_end(&json);
}

static void print_signal(const struct report *rep)
{
	if (rep->signal)
		fprintf(rep->out, "the program was killed by signal %d (%s)\n", rep->signal,
			strsignal(rep->signal));
}

/* Instructions by the number of their hits, scaled if places are multiplexed */
static size_t rank_spots(struct report *rep, const struct counts *counts, struct spot **list)
{
	size_t nr = collect(rep, list);

	nr = nr ? merge(*list, nr) : 0;
	if (is_multiplexed(rep, counts))
		scale_spots(*list, nr, counts);
	return nr;
}

void report_places(struct report *rep, const struct counts *counts)
{
	struct spot *list;
	size_t i, nr = rank_spots(rep, counts, &list);

	term_end(&rep->term);
	if (!rep->opt->json)
		print_places(rep, counts, list, nr);
	if (!rep->opt->json)
		print_signal(rep);
	for (i = 0; rep->opt->json && i < nr; i++)
		json_spot(rep, &list[i]);
	free(list);
	if (rep->opt->json)
		report_counts(rep, counts);
	report_flush(rep);
}

static void print_counts(const struct report *rep, const struct location *loc,
			 const struct counts *counts)
{
	double share = share_of(counts);

	if (rep->nr_locs > 1)
		fprintf(rep->out, "%-*s  ", rep->place_width, loc->text);
	if (!was_watched(counts)) {
		fprintf(rep->out, "not watched; threads ran %.6f s\n", counts->enabled_ns / 1e9);
		return;
	}
	fprintf(rep->out, "%" PRIu64 " hit%s; threads ran %.6f s, watched %.6f s (%.2f%%)",
		counts->hits, plural(counts->hits), counts->enabled_ns / 1e9,
		counts->running_ns / 1e9, share);
	if (share < FULL_SHARE)
		fprintf(rep->out, "; scaled: %" PRIu64, scale(counts->hits, counts));
	if (rep->opt->changed)
		fprintf(rep->out, "; %" PRIu64 " more changed nothing", counts->silent);
	fputc('\n', rep->out);
}

void report_counts(struct report *rep, const struct counts *counts)
{
	size_t i;

	term_end(&rep->term);
	/* The cursor is behind ^C, or what the program has printed. */
	if (!rep->opt->record && rep->term.live)
		fputc('\n', rep->out);
	for (i = 0; i < rep->nr_locs; i++) {
		if (rep->opt->json)
			json_counts(rep, &rep->locs[i], &counts[i]);
		else
			print_counts(rep, &rep->locs[i], &counts[i]);
	}
	if (rep->opt->json)
		json_end_of_report(rep);
	else
		print_signal(rep);
	report_flush(rep);
}

/* ---- summary on a terminal ---- */

/* Returns how many of @nr entries the summary shows; one that it cuts off ends with a note. */
static size_t live_shown(size_t nr, size_t rows)
{
	return nr <= rows ? nr : rows - 1;
}

static void live_rest(FILE *text, size_t nr)
{
	if (nr)
		fprintf(text, "%11s  and %zu more\n", "", nr);
}

static void live_spots(struct report *rep, const struct counts *counts, FILE *text, size_t rows)
{
	struct spot *list;
	size_t i, nr = rank_spots(rep, counts, &list), shown = live_shown(nr, rows);
	int width = spot_width(rep, list, shown, strlen("        123  "));

	for (i = 0; i < shown; i++) {
		fprintf(text, "%11" PRIu64 "  ", list[i].hits);
		if (rep->nr_locs > 1)
			fprintf(text, "%-*s  ", rep->place_width, rep->locs[list[i].loc].text);
		fprintf(text, "%-*s %s\n", width, list[i].place.where, list[i].place.source);
	}
	live_rest(text, nr - shown);
	free(list);
}

/**
 * struct live_count - a place in the summary of counts
 * @hits: number of hits, scaled
 * @loc: index of the place
 */
struct live_count {
	uint64_t hits;
	size_t loc;
};

static int by_live_hits(const void *a, const void *b)
{
	const struct live_count *x = a, *y = b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return x->loc < y->loc ? -1 : x->loc > y->loc;
}

/* All places as given, or those with the most hits */
static void live_counts(const struct report *rep, const struct counts *counts, FILE *text,
			size_t rows)
{
	struct live_count *list = xzalloc(rep->nr_locs * sizeof(*list));
	size_t i, shown = live_shown(rep->nr_locs, rows);

	for (i = 0; i < rep->nr_locs; i++) {
		list[i].hits = scale(counts[i].hits, &counts[i]);
		list[i].loc = i;
	}
	if (shown < rep->nr_locs)
		qsort(list, rep->nr_locs, sizeof(*list), by_live_hits);
	for (i = 0; i < shown; i++) {
		if (was_watched(&counts[list[i].loc]))
			fprintf(text, "%11" PRIu64, list[i].hits);
		else
			fprintf(text, "%11s", "not watched");
		fprintf(text, "  %s\n", rep->locs[list[i].loc].text);
	}
	live_rest(text, rep->nr_locs - shown);
	free(list);
}

bool report_is_live(const struct report *rep)
{
	return rep->term.live;
}

void report_live(struct report *rep, const struct counts *counts)
{
	unsigned int lines = rep->opt->record ? LIVE_LINES : rep->nr_locs + 1;
	uint64_t ms = (now_ns() - rep->start) / 1000000;
	char *text = NULL;
	FILE *stream;
	size_t size;

	lines = term_room(&rep->term, lines);
	stream = lines ? open_memstream(&text, &size) : NULL;
	if (!stream)
		return;
	fprintf(stream, "---- %" PRIu64 ".%" PRIu64 " s%s", ms / 1000, ms / 100 % 10,
		is_multiplexed(rep, counts) ? ", counts are scaled" : "");
	if (rep->hidden)
		fprintf(stream, ", %" PRIu64 " hits not shown", rep->hidden);
	fprintf(stream, ", ^C ends ----\n");
	if (rep->opt->record)
		live_spots(rep, counts, stream, lines - 1);
	else
		live_counts(rep, counts, stream, lines - 1);
	fclose(stream);
	term_draw(&rep->term, text, lines);
	free(text);
}
