// SPDX-License-Identifier: GPL-2.0
/* Sample each write to a variable: thread and instruction. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid;
	uint32_t tid;
};

static volatile uint32_t counter;

static void print_sample(const struct sample *sample)
{
	/* On x86 the instruction pointer is that of the instruction after the write. */
	if (sample->header.type == PERF_RECORD_SAMPLE)
		printf("thread %u wrote before %#lx\n", sample->tid,
		       (unsigned long)sample->ip);
}

/* The ring is larger than all records that are written here, so none wraps around. */
static void read_ring(struct perf_event_mmap_page *page)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	char *data = (char *)page + page->data_offset;
	uint64_t pos = page->data_tail;

	while (pos < head) {
		const struct sample *sample = (void *)(data + pos);

		print_sample(sample);
		pos += sample->header.size;
	}
	__atomic_store_n(&page->data_tail, pos, __ATOMIC_RELEASE);
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&counter,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct perf_event_mmap_page *page;
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		return 1;
	}
	/* One page of control data and a ring of one page */
	page = mmap(NULL, 2 * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror("mmap");
		return 1;
	}

	counter = 1;
	counter = 2;
	counter = 3;

	read_ring(page);
	return 0;
}
