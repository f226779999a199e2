// SPDX-License-Identifier: GPL-2.0
/*
 * churn N: start threads that write once each, at most four at a time, until a line is
 * read from standard input, and then N more.  Prints "ready" first.
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AT_ONCE	4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

long written;

/* Not atomic_inc(): emulators have been seen to miss watchpoints on LOCKed writes. */
static void *run(void *arg)
{
	pthread_mutex_lock(&lock);
	written++;
	pthread_mutex_unlock(&lock);
	return arg;
}

static bool line_has_come(void)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&pfd, 1, 0) != 0;
}

int main(int argc, char **argv)
{
	long i, more = argc > 1 ? atol(argv[1]) : 100;
	pthread_t thread[AT_ONCE];
	bool line_read = false;

	printf("ready\n");
	fflush(stdout);
	for (i = 0; more; i++) {
		line_read = line_read || line_has_come();
		more -= line_read;
		if (i >= AT_ONCE)
			pthread_join(thread[i % AT_ONCE], NULL);
		if (pthread_create(&thread[i % AT_ONCE], NULL, run, NULL))
			abort();
	}
	for (more = 0; more < AT_ONCE && more < i; more++)
		pthread_join(thread[more], NULL);
	return 0;
}
