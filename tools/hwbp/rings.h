/* SPDX-License-Identifier: GPL-2.0 */
/* Ring buffers of perf events, one a CPU, and what is in them by time. */
#ifndef HWBP_RINGS_H
#define HWBP_RINGS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rings;

/*
 * What every event that writes into a ring has in its sample_type, with
 * sample_id_all.  Events with samples have PERF_SAMPLE_IP besides, and nothing
 * that comes before these in a sample.
 */
#define RINGS_SAMPLE_TYPE	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* What a sample with PERF_SAMPLE_IP begins with, after the header. */
struct sample {
	uint64_t ip;
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint32_t cpu;
	uint32_t reserved;
};

/* What every other record ends with. */
struct sample_id {
	uint32_t pid;
	uint32_t tid;
	uint64_t time;
	uint32_t cpu;
	uint32_t reserved;
};

const struct sample_id *record_sample_id(const struct perf_event_header *header);

/* Let us have as many open files as we may. */
void raise_file_limit(void);

/* As perf_event_open(2), without a group. */
int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu);

/*
 * Rings for the CPUs that are online, without buffers as yet; records of other
 * types than @types (a mask of 1 << PERF_RECORD_...) will be thrown away.
 */
struct rings *rings_new(uint64_t types);

/*
 * Open an event a CPU, for the thread @tid or for all if that is -1.  Returns 0
 * or an errno.
 */
int rings_open(struct rings *rings, struct perf_event_attr *attr, pid_t tid);

/*
 * Give each a buffer of @pages, a power of two, or of as many as we may have,
 * the same for all; returns how many that are.
 */
size_t rings_map(struct rings *rings, size_t pages);

/* How many there are; of each, the CPU and the event, which is there to poll. */
size_t rings_nr(const struct rings *rings);
int rings_cpu(const struct rings *rings, size_t i);
int rings_fd(const struct rings *rings, size_t i);

/*
 * Hand over, in the order of time, what is older than @until.  Returns true if
 * something younger is waiting.
 */
bool rings_drain(struct rings *rings, uint64_t until,
		 void (*tell)(void *arg, const struct perf_event_header *header), void *arg);

/* Forget what came so far. */
void rings_discard(struct rings *rings);

void rings_close(struct rings *rings);

#endif
