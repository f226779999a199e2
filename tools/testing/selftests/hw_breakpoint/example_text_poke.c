// SPDX-License-Identifier: GPL-2.0
/* Record the changes of kernel text that the sysctl kernel.sched_schedstats makes. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_PAGES	64

struct text_poke {
	struct perf_event_header header;
	uint64_t addr;
	uint16_t old_len;
	uint16_t new_len;
	uint8_t bytes[];
};

static void print_bytes(const uint8_t *bytes, unsigned int len)
{
	while (len--)
		printf("%02x", *bytes++);
}

static void print_record(const struct text_poke *poke)
{
	if (poke->header.type != PERF_RECORD_TEXT_POKE)
		return;
	printf("%#lx: ", (unsigned long)poke->addr);
	print_bytes(poke->bytes, poke->old_len);
	printf(" -> ");
	print_bytes(poke->bytes + poke->old_len, poke->new_len);
	putchar('\n');
}

/* The ring is larger than all records that are written here, so none wraps around. */
static void print_ring(struct perf_event_mmap_page *page)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	char *data = (char *)page + page->data_offset;
	uint64_t pos = 0;

	while (pos < head) {
		const struct text_poke *poke = (void *)(data + pos);

		print_record(poke);
		pos += poke->header.size;
	}
}

/* A CPU's event records the changes that this CPU makes, of any address. */
static struct perf_event_mmap_page *open_cpu(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.text_poke = 1,
	};
	void *page;
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	page = mmap(NULL, (1 + RING_PAGES) * getpagesize(), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return page;
}

static void write_schedstats(const char *value)
{
	int fd = open("/proc/sys/kernel/sched_schedstats", O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0) {
		perror("kernel.sched_schedstats");
		exit(1);
	}
	close(fd);
}

int main(void)
{
	int cpu, nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct perf_event_mmap_page *page[nr_cpus];

	/* This assumes that the online CPUs are numbered without gaps. */
	for (cpu = 0; cpu < nr_cpus; cpu++)
		page[cpu] = open_cpu(cpu);

	write_schedstats("1");
	write_schedstats("0");

	for (cpu = 0; cpu < nr_cpus; cpu++)
		print_ring(page[cpu]);
	return 0;
}
