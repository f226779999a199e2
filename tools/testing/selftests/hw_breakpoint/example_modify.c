// SPDX-License-Identifier: GPL-2.0
/* Move an open breakpoint to another variable, without giving up its register. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile uint32_t first, second;

static unsigned long count(int fd)
{
	uint64_t value = 0;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		perror("read");
	return value;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&first,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		return 1;
	}

	first = 1;
	second = 1;
	printf("%lu write to first\n", count(fd));

	/* All other members must be as they were at open. */
	attr.bp_addr = (uintptr_t)&second;
	if (ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr)) {
		perror("PERF_EVENT_IOC_MODIFY_ATTRIBUTES");
		return 1;
	}

	/* The count is kept. */
	first = 2;
	second = 2;
	second = 3;
	printf("%lu writes in total\n", count(fd));
	return 0;
}
