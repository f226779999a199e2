// SPDX-License-Identifier: GPL-2.0
/* Print which thread changed a variable, from what to what. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_CPUS	1024

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint32_t raw_size;
	struct hw_breakpoint_values values;
};

static volatile uint32_t balance = 100;
static struct perf_event_mmap_page *ring[MAX_CPUS];

static void print_change(const struct sample *sample)
{
	const struct hw_breakpoint_values *values = &sample->values;
	uint32_t before, after;

	memcpy(&before, values->bytes + values->offset, sizeof(before));
	memcpy(&after, values->bytes + values->offset + values->len, sizeof(after));
	printf("thread %u before %#lx: ", sample->tid, (unsigned long)sample->ip);
	printf(values->flags & HW_BREAKPOINT_BEFORE_KNOWN ? "%u" : "unknown", before);
	printf(values->flags & HW_BREAKPOINT_AFTER_KNOWN ? " -> %u\n" : " -> unknown\n", after);
}

/* The ring is larger than all records that are written here, so none wraps around. */
static void print_changes(struct perf_event_mmap_page *page)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const struct sample *sample;

	for (; page->data_tail < head; page->data_tail += sample->header.size) {
		sample = (void *)((char *)page + page->data_offset + page->data_tail);
		if (sample->header.type == PERF_RECORD_SAMPLE)
			print_change(sample);
	}
}

static void *pay(void *arg)
{
	balance -= (uintptr_t)arg;
	/* Not a change */
	balance += 0;
	return NULL;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.config = HW_BREAKPOINT_PROCESS | HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&balance,
		.bp_len = sizeof(balance),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_RAW,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu;
	uintptr_t amount;
	pthread_t thread;
	int fd;

	for (cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
		fd = syscall(SYS_perf_event_open, &attr, getpid(), cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			ring[cpu] = mmap(NULL, 2 * getpagesize(), PROT_READ | PROT_WRITE,
					 MAP_SHARED, fd, 0);
		if (fd < 0 || ring[cpu] == MAP_FAILED) {
			perror(fd < 0 ? "perf_event_open" : "mmap");
			return 1;
		}
	}
	for (amount = 10; amount <= 30; amount += 10) {
		pthread_create(&thread, NULL, pay, (void *)amount);
		pthread_join(thread, NULL);
		for (cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++)
			print_changes(ring[cpu]);
	}
	return 0;
}
