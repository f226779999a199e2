// SPDX-License-Identifier: GPL-2.0
/*
 * Ring buffers of perf events, one per CPU, with libperf.  Records are copied out of the
 * buffers and sorted by time before they are handled, which libperf does not do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <internal/evsel.h>
#include <internal/mmap.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "refusal.h"
#include "rings.h"
#include "util.h"

/* Attempts to open an event on each online CPU while CPUs go offline */
#define MAX_ATTEMPTS	10

/* List of the CPUs that are there, online or not */
#define PRESENT		"/sys/devices/system/cpu/present"

/* A record that was copied out of its ring buffer, to @offset of rings::data, to be sorted */
struct record {
	uint64_t time;
	uint64_t seq;
	size_t offset;
};

/**
 * struct rings - events that own ring buffers
 * @types: types of records to keep
 * @evlist: one event, open on each CPU
 * @evsel: that event
 * @map: ring buffers by CPU, owned by @evlist
 * @nr_maps: number of @map
 * @maps_room: capacity of @map
 * @fds: file descriptor of the event of each ring buffer
 * @queue: records that were copied out of the ring buffers
 * @nr_queued: number of @queue
 * @queue_room: capacity of @queue
 * @seq: number of records so far, to keep records of one time in order
 * @unsorted: @queue has to be sorted
 * @data: the records of @queue, in any order
 * @spare: as large as @data
 * @used: number of bytes of @data in use
 * @data_room: capacity of @data
 */
struct rings {
	uint64_t types;
	struct perf_evlist *evlist;
	struct perf_evsel *evsel;
	struct perf_mmap **map;
	size_t nr_maps;
	size_t maps_room;
	int *fds;
	struct record *queue;
	size_t nr_queued;
	size_t queue_room;
	uint64_t seq;
	bool unsorted;
	char *data;
	char *spare;
	size_t used;
	size_t data_room;
};

/* ---- opening ---- */

void raise_file_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static int print_message(enum libperf_print_level level, const char *fmt, va_list ap)
{
	/* Do not print: libperf also returns errors, and callers have better messages. */
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

struct rings *rings_new(uint64_t types)
{
	struct rings *rings = xzalloc(sizeof(*rings));

	libperf_init(print_message);
	rings->types = types;
	return rings;
}

/*
 * A thread can have events of all CPUs that are present: those of a CPU that is offline
 * work as soon as it is online. Events of all threads require a CPU that is online.
 */
static struct perf_cpu_map *choose_cpus(pid_t tid)
{
	char *present = tid >= 0 ? read_line_of(PRESENT) : NULL;
	struct perf_cpu_map *cpus = present ? perf_cpu_map__new(present) :
					      perf_cpu_map__new_online_cpus();

	free(present);
	return cpus;
}

/* Returns 0 or an errno. */
static int try_open(struct rings *rings, struct perf_event_attr *attr, pid_t tid)
{
	struct perf_thread_map *threads = perf_thread_map__new_dummy();
	struct perf_cpu_map *cpus = choose_cpus(tid);
	int err;

	rings->evlist = perf_evlist__new();
	rings->evsel = perf_evsel__new(attr);
	if (!threads || !cpus || !rings->evlist || !rings->evsel)
		die("out of memory");
	perf_thread_map__set_pid(threads, 0, tid);
	perf_evlist__add(rings->evlist, rings->evsel);
	perf_evlist__set_maps(rings->evlist, cpus, threads);
	perf_cpu_map__put(cpus);
	perf_thread_map__put(threads);
	err = -perf_evlist__open(rings->evlist);
	if (err)
		perf_evlist__delete(rings->evlist);
	return err;
}

int rings_open(struct rings *rings, struct perf_event_attr *attr, pid_t tid)
{
	int attempt, err = ENODEV;

	/* ENODEV: a CPU has gone offline since the list of CPUs was read. */
	for (attempt = 0; attempt < MAX_ATTEMPTS && err == ENODEV; attempt++)
		err = try_open(rings, attr, tid);
	return err;
}

size_t rings_map(struct rings *rings, size_t pages)
{
	int err = perf_evlist__mmap(rings->evlist, pages);
	struct perf_mmap *map;
	size_t i;

	/* Locked memory is limited without CAP_IPC_LOCK. */
	while (err && pages > 1) {
		pages /= 2;
		err = perf_evlist__mmap(rings->evlist, pages);
	}
	if (err)
		refusal_die(&(struct refusal){ .what = REFUSED_RING }, errno);
	perf_evlist__for_each_mmap(rings->evlist, map, false) {
		GROW(rings->map, rings->nr_maps, rings->maps_room);
		rings->map[rings->nr_maps++] = map;
	}
	rings->fds = xzalloc(rings->nr_maps * sizeof(*rings->fds));
	for (i = 0; i < rings->nr_maps; i++)
		rings->fds[i] = rings->map[i]->fd;
	return pages;
}

size_t rings_nr(const struct rings *rings)
{
	return perf_cpu_map__nr(rings->evsel->cpus);
}

int rings_cpu(const struct rings *rings, size_t i)
{
	return perf_cpu_map__cpu(rings->evsel->cpus, i).cpu;
}

const int *rings_fds(const struct rings *rings)
{
	return rings->fds;
}

struct perf_cpu_map *rings_cpus(const struct rings *rings)
{
	return rings->evsel->cpus;
}

struct perf_evsel *rings_event(const struct rings *rings)
{
	return rings->evsel;
}

void rings_close(struct rings *rings)
{
	perf_evlist__delete(rings->evlist);
	free(rings->map);
	free(rings->fds);
	rings->map = NULL;
	rings->nr_maps = 0;
}

/* ---- reading the buffers ---- */

const struct sample_id *record_sample_id(const struct perf_event_header *header)
{
	const void *end = (const char *)header + header->size;

	return (const struct sample_id *)end - 1;
}

static uint64_t record_time(const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return ((const struct sample *)(header + 1))->time;
	return record_sample_id(header)->time;
}

static void enqueue(struct rings *rings, const struct perf_event_header *header)
{
	struct record record = {
		.seq = rings->seq++,
		.time = record_time(header),
		.offset = rings->used,
	};

	if (rings->used + header->size > rings->data_room) {
		rings->data_room = 2 * (rings->data_room + header->size);
		rings->data = xresize(rings->data, rings->data_room);
		rings->spare = xresize(rings->spare, rings->data_room);
	}
	memcpy(rings->data + rings->used, header, header->size);
	rings->used += header->size;
	if (rings->nr_queued && rings->queue[rings->nr_queued - 1].time > record.time)
		rings->unsorted = true;
	GROW(rings->queue, rings->nr_queued, rings->queue_room);
	rings->queue[rings->nr_queued++] = record;
}

static struct perf_event_header *header_of(const struct rings *rings, const struct record *record)
{
	return (void *)(rings->data + record->offset);
}

/* Remove the first @nr records of the queue. */
static void dequeue(struct rings *rings, size_t nr)
{
	const struct perf_event_header *header;
	char *data = rings->spare;
	size_t i;

	rings->nr_queued -= nr;
	memmove(rings->queue, rings->queue + nr, rings->nr_queued * sizeof(*rings->queue));
	rings->used = 0;
	for (i = 0; i < rings->nr_queued; i++) {
		header = header_of(rings, &rings->queue[i]);
		memcpy(data + rings->used, header, header->size);
		rings->queue[i].offset = rings->used;
		rings->used += header->size;
	}
	rings->spare = rings->data;
	rings->data = data;
}

static bool is_wanted(const struct rings *rings, const struct perf_event_header *header)
{
	return header->type < 64 && rings->types & 1ULL << header->type;
}

/*
 * Do not end with perf_mmap__read_done(): it moves the position to the head of the buffer
 * as it is then, and so skips the records that were written since the last read.
 */
static void empty_ring(struct rings *rings, struct perf_mmap *map)
{
	const union perf_event *event;

	if (perf_mmap__read_init(map))
		return;
	while ((event = perf_mmap__read_event(map))) {
		if (is_wanted(rings, &event->header))
			enqueue(rings, &event->header);
		perf_mmap__consume(map);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

bool rings_drain(struct rings *rings, uint64_t until,
		 void (*handle)(void *arg, const struct perf_event_header *header), void *arg)
{
	size_t i, nr;

	for (i = 0; i < rings->nr_maps; i++)
		empty_ring(rings, rings->map[i]);
	if (rings->unsorted)
		qsort(rings->queue, rings->nr_queued, sizeof(*rings->queue), by_time);
	rings->unsorted = false;
	for (nr = 0; nr < rings->nr_queued && rings->queue[nr].time < until; nr++)
		handle(arg, header_of(rings, &rings->queue[nr]));
	if (nr)
		dequeue(rings, nr);
	return rings->nr_queued > 0;
}

void rings_discard(struct rings *rings)
{
	size_t i;

	for (i = 0; i < rings->nr_maps; i++)
		empty_ring(rings, rings->map[i]);
	rings->nr_queued = 0;
	rings->used = 0;
}
