// SPDX-License-Identifier: GPL-2.0
/* Watch more variables than there are registers, with flexible breakpoints. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_WORDS	16

/* Layout of read(2) with the read_format below */
struct reading {
	uint64_t count;
	uint64_t enabled_ns;
	uint64_t running_ns;
};

static volatile uint64_t words[NR_WORDS];
static int fds[NR_WORDS];

static int open_flexible(volatile uint64_t *word)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.config = HW_BREAKPOINT_FLEXIBLE,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)word,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void write_all(void)
{
	int i, n;

	for (n = 0; n < 1000; n++) {
		for (i = 0; i < NR_WORDS; i++)
			words[i]++;
	}
}

/* Estimate the hits of the whole time from the hits while the event had a register. */
static bool estimate(int fd, double *hits)
{
	struct reading r;

	if (read(fd, &r, sizeof(r)) != sizeof(r) || !r.count)
		return false;
	*hits = (double)r.count * r.enabled_ns / r.running_ns;
	return true;
}

int main(void)
{
	double hits[NR_WORDS];
	int i;

	for (i = 0; i < NR_WORDS; i++) {
		fds[i] = open_flexible(&words[i]);
		if (fds[i] < 0) {
			perror("perf_event_open");
			return 1;
		}
	}

	/* Run until each breakpoint has had a register for at least one write. */
	for (i = 0; i < NR_WORDS; ) {
		write_all();
		for (i = 0; i < NR_WORDS && estimate(fds[i], &hits[i]); i++)
			;
	}

	for (i = 0; i < NR_WORDS; i++)
		printf("word %d: about %.0f hits, %lu writes\n", i, hits[i],
		       (unsigned long)words[i]);
	return 0;
}
