/* SPDX-License-Identifier: GPL-2.0 */
/* Ring buffers of perf events, one per CPU, and their records in the order of time. */
#ifndef HWBP_RINGS_H
#define HWBP_RINGS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_cpu_map;
struct perf_evsel;
struct rings;

/*
 * All events that write into a ring have these bits in sample_type, and sample_id_all.
 * Events that sample have PERF_SAMPLE_IP and PERF_SAMPLE_ADDR, too, but no other field
 * that would precede these in a sample.
 */
#define RINGS_SAMPLE_TYPE	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* The first fields of a sample, behind the header */
struct sample {
	uint64_t ip;
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint64_t addr;
	uint32_t cpu;
	uint32_t reserved;
};

/* The last fields of every other record */
struct sample_id {
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint32_t cpu;
	uint32_t reserved;
};

const struct sample_id *record_sample_id(const struct perf_event_header *header);

/* Raise the soft limit of open files to the hard limit. */
void raise_file_limit(void);

/* Only records of @types (a mask of 1 << PERF_RECORD_...) will be kept. */
struct rings *rings_new(uint64_t types);

/*
 * Open one event per CPU, for the thread @tid, 0 for this process, or for all threads on
 * the online CPUs if @tid is -1. Returns 0 or an errno.
 */
int rings_open(struct rings *rings, struct perf_event_attr *attr, pid_t tid);

/*
 * Map a buffer of @pages, a power of two, for each ring. If the kernel refuses that,
 * halve the size of all buffers until it does not. Returns the size in pages.
 */
size_t rings_map(struct rings *rings, size_t pages);

/* Number of rings; CPU of a ring; the events of all rings, to be polled */
size_t rings_nr(const struct rings *rings);
int rings_cpu(const struct rings *rings, size_t i);
const int *rings_fds(const struct rings *rings);

/* The CPUs that have rings, and the event that owns the rings */
struct perf_cpu_map *rings_cpus(const struct rings *rings);
struct perf_evsel *rings_event(const struct rings *rings);

/*
 * Call @handle for all records older than @until, in the order of time. Returns true
 * if younger records are left.
 */
bool rings_drain(struct rings *rings, uint64_t until,
		 void (*handle)(void *arg, const struct perf_event_header *header), void *arg);

/* Discard all records so far. */
void rings_discard(struct rings *rings);

void rings_close(struct rings *rings);

#endif
