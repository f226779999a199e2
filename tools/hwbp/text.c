// SPDX-License-Identifier: GPL-2.0
/*
 * Record changes of kernel text.  A change is recorded in the events of the CPU that
 * makes it, so there is one event per CPU, which counts nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "refusal.h"
#include "rings.h"
#include "text.h"
#include "util.h"

#define RECORD_TYPES	(1ULL << PERF_RECORD_TEXT_POKE | 1ULL << PERF_RECORD_KSYMBOL | \
			 1ULL << PERF_RECORD_LOST)

/*
 * Buffer size of each CPU, and its limit for all CPUs together. Enabling a tracer
 * changes tens of thousands of instructions, with a record of about 50 bytes each.
 */
#define RING_MB		4
#define ALL_RINGS_MB	64

struct text {
	struct rings *rings;
};

#define READ_FORMAT	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST)

/* ---- opening ---- */

static void fill_attr(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_SOFTWARE;
	attr->size = sizeof(*attr);
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->sample_type = RINGS_SAMPLE_TYPE;
	attr->sample_id_all = 1;
	attr->read_format = READ_FORMAT;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->ksymbol = 1;
	attr->text_poke = 1;
	/* Wake up for each record. */
	attr->watermark = 1;
	attr->wakeup_watermark = 1;
}

static void add_areas(struct perf_event_attr *attr)
{
	uint32_t type;
	uint64_t config;

	if (!caps_text_areas(&type, &config))
		die("this kernel does not record areas of its text (it has no PMU kernel_text)");
	attr->type = type;
	attr->config = config;
}

static size_t ring_pages(const struct text_options *opt, size_t nr_rings)
{
	size_t mb = opt->ring_mb ? opt->ring_mb : RING_MB;
	size_t bytes = 1;

	while (bytes < mb << 20)
		bytes *= 2;
	while (!opt->ring_mb && bytes * nr_rings > (size_t)ALL_RINGS_MB << 20)
		bytes /= 2;
	return bytes / getpagesize() ? bytes / getpagesize() : 1;
}

struct text *text_open(const struct text_options *opt)
{
	struct text *text = xzalloc(sizeof(*text));
	struct perf_event_attr attr;
	size_t wanted, pages;
	int err;

	raise_file_limit();
	fill_attr(&attr);
	if (opt->areas)
		add_areas(&attr);
	text->rings = rings_new(RECORD_TYPES);
	err = rings_open(text->rings, &attr, -1);
	if (err)
		refusal_die(&(struct refusal){ .what = REFUSED_TEXT, .areas = opt->areas }, err);
	wanted = ring_pages(opt, rings_nr(text->rings));
	pages = rings_map(text->rings, wanted);
	if (opt->ring_mb && pages < wanted)
		note("the kernel limits the buffers to %zu kB", pages * getpagesize() >> 10);
	return text;
}

void text_stop(struct text *text)
{
	perf_evsel__disable(rings_event(text->rings));
}

void text_close(struct text *text)
{
	rings_close(text->rings);
}

struct rings *text_rings(const struct text *text)
{
	return text->rings;
}

/* ---- records ---- */

/* Argument of handle_record() */
struct consumer {
	const struct text_ops *ops;
	void *arg;
};

static void handle_change(const struct consumer *consumer,
			  const struct perf_event_header *header)
{
	const struct {
		struct perf_event_header header;
		uint64_t addr;
		uint16_t old_len;
		uint16_t new_len;
		uint8_t bytes[];
	} *r = (const void *)header;
	const struct sample_id *id = record_sample_id(header);
	struct text_change change = {
		.time = id->time,
		.cpu = id->cpu,
		.address = r->addr,
		.old_bytes = r->bytes,
		.old_len = r->old_len,
		.new_bytes = r->bytes + r->old_len,
		.new_len = r->new_len,
	};

	consumer->ops->change(consumer->arg, &change);
}

static void handle_area(const struct consumer *consumer, const struct perf_event_header *header)
{
	const struct {
		struct perf_event_header header;
		uint64_t addr;
		uint32_t len;
		uint16_t type;
		uint16_t flags;
		char name[];
	} *r = (const void *)header;
	const struct sample_id *id = record_sample_id(header);
	struct text_area area = {
		.time = id->time,
		.cpu = id->cpu,
		.address = r->addr,
		.len = r->len,
		.kind = r->type,
		.gone = r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
		.name = r->name,
	};

	consumer->ops->area(consumer->arg, &area);
}

static void handle_lost(const struct consumer *consumer, const struct perf_event_header *header)
{
	const struct {
		struct perf_event_header header;
		uint64_t id;
		uint64_t lost;
	} *r = (const void *)header;
	const struct sample_id *id = record_sample_id(header);

	consumer->ops->lost(consumer->arg, id->time, id->cpu, r->lost);
}

static void handle_record(void *arg, const struct perf_event_header *header)
{
	const struct consumer *consumer = arg;

	switch (header->type) {
	case PERF_RECORD_TEXT_POKE:
		handle_change(consumer, header);
		break;
	case PERF_RECORD_KSYMBOL:
		handle_area(consumer, header);
		break;
	case PERF_RECORD_LOST:
		handle_lost(consumer, header);
		break;
	}
}

bool text_drain(struct text *text, uint64_t until, const struct text_ops *ops, void *arg)
{
	struct consumer consumer = { .ops = ops, .arg = arg };

	return rings_drain(text->rings, until, handle_record, &consumer);
}

/* ---- missing records ---- */

uint64_t text_nr_lost(const struct text *text)
{
	struct perf_counts_values counts;
	uint64_t nr = 0;
	size_t i;

	/* PERF_RECORD_LOST is written only when the buffer has room again. */
	for (i = 0; i < rings_nr(text->rings); i++) {
		if (!perf_evsel__read(rings_event(text->rings), i, 0, &counts))
			nr += counts.lost;
	}
	return nr;
}

static bool read_enabled(const struct text *text, int cpu, uint64_t *enabled_ns)
{
	struct perf_counts_values counts;
	size_t i;

	for (i = 0; i < rings_nr(text->rings); i++) {
		if (rings_cpu(text->rings, i) != cpu)
			continue;
		if (perf_evsel__read(rings_event(text->rings), i, 0, &counts))
			return false;
		*enabled_ns = counts.ena;
		return true;
	}
	return false;
}

/* The enabled time of an event whose CPU has been offline does not advance any more. */
static void note_cpu(const struct text *text, int cpu)
{
	struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t before, after;

	if (read_enabled(text, cpu, &before)) {
		nanosleep(&moment, NULL);
		if (!read_enabled(text, cpu, &after) || after > before)
			return;
	}
	note("CPU %d came online during the report: its changes since then are not shown",
	     cpu);
}

void text_note_cpus(struct text *text)
{
	struct perf_cpu_map *cpus = perf_cpu_map__new_online_cpus();
	struct perf_cpu cpu;
	int i;

	perf_cpu_map__for_each_cpu(cpu, i, cpus)
		note_cpu(text, cpu.cpu);
	perf_cpu_map__put(cpus);
}
