// SPDX-License-Identifier: GPL-2.0
/*
 * churn N: start threads that write once each, one after the other and four at a
 * time at most, until a line comes on standard input, and then N more.  Prints
 * "ready" when it begins.
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

/* With a lock: emulators have been seen to miss atomic instructions. */
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
	bool told = false;

	printf("ready\n");
	fflush(stdout);
	for (i = 0; more; i++) {
		told = told || line_has_come();
		more -= told;
		if (i >= AT_ONCE)
			pthread_join(thread[i % AT_ONCE], NULL);
		if (pthread_create(&thread[i % AT_ONCE], NULL, run, NULL))
			abort();
	}
	for (more = 0; more < AT_ONCE && more < i; more++)
		pthread_join(thread[more], NULL);
	return 0;
}
