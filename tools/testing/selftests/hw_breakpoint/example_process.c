// SPDX-License-Identifier: GPL-2.0
/* Count writes by all threads of a process that runs already, with one event. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS	10

static volatile uint32_t counter;
static pthread_barrier_t barrier;

static void *run(void *arg)
{
	pthread_barrier_wait(&barrier);
	counter = 1;
	return NULL;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.config = HW_BREAKPOINT_PROCESS,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&counter,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	pthread_t thread[THREADS];
	uint64_t writes;
	int fd, i;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	fd = syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		return 1;
	}
	pthread_barrier_wait(&barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);

	if (read(fd, &writes, sizeof(writes)) != sizeof(writes))
		return 1;
	printf("%lu writes by %d threads\n", (unsigned long)writes, THREADS);
	return 0;
}
