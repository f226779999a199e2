// SPDX-License-Identifier: GPL-2.0
/* Output of 'hwbp text': each change, and the counts per symbol. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text_insn.h"
#include "text_names.h"
#include "text_report.h"
#include "util.h"

#define NR_BUCKETS	4096

/* Limits without -a: bytes of a change, symbols in the list of counts */
#define MAX_BYTES	16
#define MAX_SYMBOLS	20

/* A symbol whose text changed; its name need not be unique. */
struct changed {
	struct changed *next;
	char *name;
	uint64_t start;
	uint64_t changes;
};

/**
 * struct text_report - state of the report
 * @opt: command line
 * @out: output file
 * @start: time at which the report began
 * @names: symbols of the kernel
 * @symbols: symbols with changes, hashed by their start
 * @changes: number of changes of existing text
 * @new_text: number of records of new text
 * @gone_text: number of records of text that is gone
 * @registered: number of symbols registered
 * @unregistered: number of symbols unregistered
 * @lost: number of lost records that PERF_RECORD_LOST has reported so far
 */
struct text_report {
	const struct text_options *opt;
	FILE *out;
	uint64_t start;
	struct text_names *names;
	struct changed *symbols[NR_BUCKETS];
	uint64_t changes;
	uint64_t new_text;
	uint64_t gone_text;
	uint64_t registered;
	uint64_t unregistered;
	uint64_t lost;
};

struct text_report *text_report_new(const struct text_options *opt)
{
	struct text_report *rep = xzalloc(sizeof(*rep));

	rep->opt = opt;
	rep->out = open_output(opt->out);
	return rep;
}

void text_report_prepare(struct text_report *rep)
{
	rep->names = text_names_new();
}

void text_report_begin(struct text_report *rep, uint64_t start)
{
	rep->start = start;
	if (!rep->opt->json)
		fprintf(rep->out, "changes of kernel text on all CPUs\n");
	if (!rep->opt->quiet && !rep->opt->json)
		fprintf(rep->out, "\n%11s %3s  %-18s  %-35s %6s  %s\n", "TIME", "CPU",
			"ADDRESS", "SYMBOL", "LENGTH", "OLD -> NEW");
	flush_output(rep->out);
}

void text_report_flush(struct text_report *rep)
{
	flush_output(rep->out);
	text_names_begin(rep->names);
}

/* ---- records ---- */

static void print_time(const struct text_report *rep, uint64_t time, uint32_t cpu)
{
	uint64_t us = (time - rep->start) / 1000;

	fprintf(rep->out, "%4" PRIu64 ".%06" PRIu64 " %3u  ", us / 1000000, us % 1000000, cpu);
}

static void print_place(const struct text_report *rep, uint64_t address, const char *symbol,
			unsigned int len)
{
	fprintf(rep->out, "%#018" PRIx64 "  %-35s %6u  ", address, symbol, len);
}

static void print_bytes(const struct text_report *rep, const uint8_t *bytes, size_t len)
{
	size_t i, shown = rep->opt->all || len <= MAX_BYTES ? len : MAX_BYTES;

	for (i = 0; i < shown; i++)
		fprintf(rep->out, "%02x", bytes[i]);
	if (shown < len)
		fputs("...", rep->out);
}

/* "schedule+0x4" */
static char *place_text(const char *name, uint64_t offset)
{
	const char *module = name ? strstr(name, " [") : NULL;

	if (!name)
		return xstrdup("-");
	if (!module)
		module = name + strlen(name);
	return xasprintf("%.*s+%#lx%s", (int)(module - name), name, (unsigned long)offset,
			 module);
}

static struct json json_record(const struct text_report *rep, const char *type, uint64_t time,
			       uint32_t cpu)
{
	struct json json = json_begin(rep->out, type);

	json_seconds(&json, "time", time - rep->start);
	json_int(&json, "cpu", cpu);
	return json;
}

/* A change with what its bytes mean; NULL for bytes that are not simple or not there */
struct meaning {
	char *old_insn;
	char *new_insn;
};

/* Text that was not there before, or is gone, has no bytes. */
static void json_change(const struct text_report *rep, const struct text_change *change,
			const struct meaning *meaning, const char *name, uint64_t offset)
{
	struct json json = json_record(rep, "change", change->time, change->cpu);

	json_address(&json, "address", change->address);
	json_string(&json, "symbol", name);
	if (name)
		json_u64(&json, "offset", offset);
	json_bytes(&json, "old", change->old_bytes, change->old_len);
	json_bytes(&json, "new", change->new_bytes, change->new_len);
	json_string(&json, "old_insn", meaning->old_insn);
	json_string(&json, "new_insn", meaning->new_insn);
	json_end(&json);
}

/* Print one side of a change: what the bytes mean, or with -a the bytes. */
static void print_side(const struct text_report *rep, const uint8_t *bytes, size_t len,
		       const char *insn, const char *missing)
{
	if (!len)
		fputs(missing, rep->out);
	else if (insn && !rep->opt->all)
		fputs(insn, rep->out);
	else
		print_bytes(rep, bytes, len);
}

static void print_change(struct text_report *rep, const struct text_change *change,
			 const struct meaning *meaning, const char *name, uint64_t offset)
{
	char *place = place_text(name, offset);

	print_time(rep, change->time, change->cpu);
	print_place(rep, change->address, place,
		    change->new_len ? change->new_len : change->old_len);
	print_side(rep, change->old_bytes, change->old_len, meaning->old_insn, "new");
	fputs(" -> ", rep->out);
	print_side(rep, change->new_bytes, change->new_len, meaning->new_insn, "gone");
	if (rep->opt->all && (meaning->old_insn || meaning->new_insn))
		fprintf(rep->out, "  (%s -> %s)", meaning->old_insn ? meaning->old_insn : "...",
			meaning->new_insn ? meaning->new_insn : "...");
	fputc('\n', rep->out);
	free(place);
}

static void show_change(struct text_report *rep, const struct text_change *change,
			const char *name, uint64_t offset)
{
	char *copy = name ? xstrdup(name) : NULL;
	struct meaning meaning = {
		.old_insn = text_insn(rep->names, change->old_bytes, change->old_len,
				      change->address),
		.new_insn = text_insn(rep->names, change->new_bytes, change->new_len,
				      change->address),
	};

	if (rep->opt->json)
		json_change(rep, change, &meaning, copy, offset);
	else
		print_change(rep, change, &meaning, copy, offset);
	free(meaning.old_insn);
	free(meaning.new_insn);
	free(copy);
}

static void count_change(struct text_report *rep, const char *name, uint64_t start)
{
	struct changed **bucket = &rep->symbols[(start ^ start >> 12) % NR_BUCKETS], *symbol;

	for (symbol = *bucket; symbol; symbol = symbol->next) {
		if (symbol->start == start && !strcmp(symbol->name, name))
			break;
	}
	if (!symbol) {
		symbol = xzalloc(sizeof(*symbol));
		symbol->name = xstrdup(name);
		symbol->start = start;
		symbol->next = *bucket;
		*bucket = symbol;
	}
	symbol->changes++;
}

void text_report_change(struct text_report *rep, const struct text_change *change)
{
	const char *name;
	uint64_t start;

	if (!change->old_len)
		text_names_renewed(rep->names, change->address);
	if (change->time < rep->start)
		return;
	name = text_names_find(rep->names, change->address, &start);
	if (!name)
		start = 0;
	if (!change->old_len) {
		rep->new_text++;
	} else if (!change->new_len) {
		rep->gone_text++;
	} else {
		rep->changes++;
		count_change(rep, name ? name : "-", start);
	}
	if (!rep->opt->quiet)
		show_change(rep, change, name, name ? change->address - start : 0);
}

static const char *kind_text(unsigned int kind)
{
	switch (kind) {
	case PERF_RECORD_KSYMBOL_TYPE_BPF:
		return "BPF";
	case PERF_RECORD_KSYMBOL_TYPE_OOL:
		return "out of line";
	default:
		return "unknown kind";
	}
}

static void print_area(const struct text_report *rep, const struct text_area *area,
		       const char *name)
{
	print_time(rep, area->time, area->cpu);
	print_place(rep, area->address, name, area->len);
	fprintf(rep->out, "symbol %s (%s)\n", area->gone ? "unregistered" : "registered",
		kind_text(area->kind));
}

static void json_area(const struct text_report *rep, const struct text_area *area)
{
	struct json json = json_record(rep, area->gone ? "unregister" : "register", area->time,
				       area->cpu);

	json_address(&json, "address", area->address);
	json_u64(&json, "len", area->len);
	json_string(&json, "symbol", area->name);
	json_string(&json, "kind", kind_text(area->kind));
	json_end(&json);
}

void text_report_area(struct text_report *rep, const struct text_area *area)
{
	char *name = printable(xstrdup(area->name));

	if (area->gone)
		text_names_remove(rep->names, area->address, area->len);
	else
		text_names_add(rep->names, area->address, area->len, name);
	if (area->time >= rep->start) {
		rep->registered += !area->gone;
		rep->unregistered += area->gone;
		if (!rep->opt->quiet && rep->opt->json)
			json_area(rep, area);
		else if (!rep->opt->quiet)
			print_area(rep, area, name);
	}
	free(name);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void text_report_lost(struct text_report *rep, uint64_t time, uint32_t cpu, uint64_t nr)
{
	struct json json;

	rep->lost += nr;
	if (rep->opt->quiet || time < rep->start)
		return;
	if (rep->opt->json) {
		json = json_record(rep, "lost", time, cpu);
		json_u64(&json, "records", nr);
		json_end(&json);
		return;
	}
	print_time(rep, time, cpu);
	fprintf(rep->out, "LOST: %" PRIu64 " record%s of this CPU, the buffer was full\n",
		nr, plural(nr));
}

/* ---- counts ---- */

static int by_changes(const void *a, const void *b)
{
	const struct changed *x = *(struct changed *const *)a, *y = *(struct changed *const *)b;

	if (x->changes != y->changes)
		return x->changes < y->changes ? 1 : -1;
	return strcmp(x->name, y->name);
}

static size_t collect(const struct text_report *rep, struct changed ***list)
{
	size_t i, nr = 0, capacity = 0;
	struct changed *symbol;

	*list = NULL;
	for (i = 0; i < NR_BUCKETS; i++) {
		for (symbol = rep->symbols[i]; symbol; symbol = symbol->next) {
			GROW(*list, nr, capacity);
			(*list)[nr++] = symbol;
		}
	}
	if (nr)
		qsort(*list, nr, sizeof(**list), by_changes);
	return nr;
}

static void print_symbols(const struct text_report *rep, struct changed **list, size_t nr)
{
	size_t i, shown = rep->opt->all || nr <= MAX_SYMBOLS ? nr : MAX_SYMBOLS;

	if (nr)
		fprintf(rep->out, "%11s %8s  %s\n", "CHANGES", "PERCENT", "SYMBOL");
	for (i = 0; i < shown; i++)
		fprintf(rep->out, "%11" PRIu64 " %7.2f%%  %s\n", list[i]->changes,
			100.0 * list[i]->changes / rep->changes, list[i]->name);
	if (shown < nr)
		fprintf(rep->out, "%11s %8s  and %zu more (-a shows them)\n", "", "", nr - shown);
}

static void print_end(const struct text_report *rep, struct changed **list, size_t nr,
		      uint64_t lost)
{
	uint64_t us = (now_ns() - rep->start) / 1000;

	fprintf(rep->out, "\n%" PRIu64 " change%s in %zu symbol%s in %" PRIu64 ".%03" PRIu64 " s\n",
		rep->changes, plural(rep->changes), nr, plural(nr), us / 1000000,
		us / 1000 % 1000);
	if (rep->new_text || rep->gone_text || rep->registered || rep->unregistered)
		fprintf(rep->out, "other text: %" PRIu64 " new, %" PRIu64 " gone; symbols: %" PRIu64
			" registered, %" PRIu64 " unregistered\n", rep->new_text, rep->gone_text,
			rep->registered, rep->unregistered);
	print_symbols(rep, list, nr);
	if (lost > rep->lost && !rep->opt->quiet)
		fprintf(rep->out, "LOST: %" PRIu64 " record%s at the end\n", lost - rep->lost,
			plural(lost - rep->lost));
	if (lost)
		fprintf(rep->out, "%" PRIu64 " record%s missing; use -b for larger buffers\n", lost,
			lost == 1 ? " is" : "s are");
}

static void json_counts(const struct text_report *rep, struct changed **list, size_t nr,
			uint64_t lost)
{
	struct json json;
	size_t i;

	for (i = 0; i < nr; i++) {
		json = json_begin(rep->out, "symbol");
		json_string(&json, "symbol", list[i]->name);
		json_u64(&json, "changes", list[i]->changes);
		json_end(&json);
	}
	json = json_begin(rep->out, "end");
	json_seconds(&json, "time", now_ns() - rep->start);
	json_u64(&json, "changes", rep->changes);
	json_u64(&json, "new", rep->new_text);
	json_u64(&json, "gone", rep->gone_text);
	json_u64(&json, "registered", rep->registered);
	json_u64(&json, "unregistered", rep->unregistered);
	json_u64(&json, "lost", lost);
	json_end(&json);
}

void text_report_end(struct text_report *rep, uint64_t lost)
{
	struct changed **list;
	size_t nr = collect(rep, &list);

	if (rep->opt->json)
		json_counts(rep, list, nr, lost);
	else
		print_end(rep, list, nr, lost);
	free(list);
	flush_output(rep->out);
}
