// SPDX-License-Identifier: GPL-2.0
/*
 * Ring buffers of perf events, one per CPU.  Records are copied out of the buffers and
 * sorted by time before they are handled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rings.h"
#include "util.h"

struct ring {
	int cpu;
	int fd;
	struct perf_event_mmap_page *page;
	size_t size;
};

/* A record that was copied out of its ring buffer, to be sorted by time */
struct record {
	uint64_t time;
	uint64_t seq;
	struct perf_event_header *header;
};

struct rings {
	uint64_t types;
	struct ring *ring;
	size_t nr_rings;
	size_t rings_room;
	struct record *queue;
	size_t nr_queued;
	size_t queue_room;
	uint64_t seq;
};

/* ---- opening ---- */

int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	return syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

void raise_file_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static void add_ring(void *arg, int cpu)
{
	struct rings *rings = arg;

	GROW(rings->ring, rings->nr_rings, rings->rings_room);
	rings->ring[rings->nr_rings++] = (struct ring){
		.cpu = cpu,
		.fd = -1,
		.page = MAP_FAILED,
	};
}

struct rings *rings_new(uint64_t types)
{
	struct rings *rings = xzalloc(sizeof(*rings));

	rings->types = types;
	visit_online_cpus(add_ring, rings);
	if (!rings->nr_rings)
		die("cannot read /sys/devices/system/cpu/online");
	return rings;
}

int rings_open(struct rings *rings, struct perf_event_attr *attr, pid_t tid)
{
	size_t i, nr = 0;

	for (i = 0; i < rings->nr_rings; i++) {
		struct ring *ring = &rings->ring[i];

		ring->fd = perf_event_open(attr, tid, ring->cpu);
		if (ring->fd >= 0)
			rings->ring[nr++] = *ring;
		else if (errno != ENODEV)
			return errno;
		/* ENODEV: the CPU has gone offline since the list was read. */
	}
	rings->nr_rings = nr;
	return nr ? 0 : ENODEV;
}

static void unmap_all(struct rings *rings)
{
	size_t i;

	for (i = 0; i < rings->nr_rings; i++) {
		if (rings->ring[i].page != MAP_FAILED)
			munmap(rings->ring[i].page, getpagesize() + rings->ring[i].size);
		rings->ring[i].page = MAP_FAILED;
	}
}

/* Map the buffers of all rings, or none. Returns 0 or an errno. */
static int map_all(struct rings *rings, size_t pages)
{
	size_t i;
	int err;

	for (i = 0; i < rings->nr_rings; i++) {
		struct ring *ring = &rings->ring[i];

		ring->size = pages * getpagesize();
		ring->page = mmap(NULL, getpagesize() + ring->size, PROT_READ | PROT_WRITE,
				  MAP_SHARED, ring->fd, 0);
		if (ring->page == MAP_FAILED) {
			err = errno;
			unmap_all(rings);
			return err;
		}
	}
	return 0;
}

size_t rings_map(struct rings *rings, size_t pages)
{
	int err = map_all(rings, pages);

	/* Locked memory is limited without CAP_IPC_LOCK. */
	while (err && pages > 1) {
		pages /= 2;
		err = map_all(rings, pages);
	}
	if (err)
		die("cannot map a ring buffer: %s (see kernel.perf_event_mlock_kb)",
		    strerror(err));
	return pages;
}

size_t rings_nr(const struct rings *rings)
{
	return rings->nr_rings;
}

int rings_cpu(const struct rings *rings, size_t i)
{
	return rings->ring[i].cpu;
}

int rings_fd(const struct rings *rings, size_t i)
{
	return rings->ring[i].fd;
}

void rings_close(struct rings *rings)
{
	size_t i;

	unmap_all(rings);
	for (i = 0; i < rings->nr_rings; i++)
		close(rings->ring[i].fd);
	rings->nr_rings = 0;
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

static void copy_out(const struct ring *ring, uint64_t pos, void *to, size_t size)
{
	const char *data = (const char *)ring->page + ring->page->data_offset;
	size_t start = pos & (ring->size - 1);
	size_t part = ring->size - start;

	if (part > size)
		part = size;
	memcpy(to, data + start, part);
	memcpy((char *)to + part, data, size - part);
}

static void enqueue(struct rings *rings, struct perf_event_header *header)
{
	struct record record = { .seq = rings->seq++, .header = header };

	record.time = record_time(header);
	GROW(rings->queue, rings->nr_queued, rings->queue_room);
	rings->queue[rings->nr_queued++] = record;
}

static bool is_wanted(const struct rings *rings, const struct perf_event_header *header)
{
	return header->type < 64 && rings->types & 1ULL << header->type;
}

static void empty_ring(struct rings *rings, struct ring *ring)
{
	/* Pairs with the barrier before the kernel's store to data_head. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		struct perf_event_header header, *copy;

		copy_out(ring, tail, &header, sizeof(header));
		if (is_wanted(rings, &header)) {
			copy = xrealloc(NULL, header.size);
			copy_out(ring, tail, copy, header.size);
			enqueue(rings, copy);
		}
		tail += header.size;
	}
	/* Pairs with the kernel's load of data_tail: the records have been copied. */
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
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

	for (i = 0; i < rings->nr_rings; i++)
		empty_ring(rings, &rings->ring[i]);
	if (!rings->nr_queued)
		return false;
	qsort(rings->queue, rings->nr_queued, sizeof(*rings->queue), by_time);
	for (nr = 0; nr < rings->nr_queued && rings->queue[nr].time < until; nr++) {
		handle(arg, rings->queue[nr].header);
		free(rings->queue[nr].header);
	}
	rings->nr_queued -= nr;
	memmove(rings->queue, rings->queue + nr, rings->nr_queued * sizeof(*rings->queue));
	return rings->nr_queued > 0;
}

void rings_discard(struct rings *rings)
{
	size_t i;

	for (i = 0; i < rings->nr_rings; i++)
		empty_ring(rings, &rings->ring[i]);
	while (rings->nr_queued)
		free(rings->queue[--rings->nr_queued].header);
}
