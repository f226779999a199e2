// SPDX-License-Identifier: GPL-2.0
/*
 * leader: the main thread exits. Then a second thread prints "ready", reads a line from
 * standard input, and increments a variable ten times.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS	10

long led;

/* A thread that has exited has no program. */
static void wait_for_exit(pid_t pid)
{
	char link[64], path[1];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	while (readlink(link, path, sizeof(path)) >= 0)
		usleep(1000);
}

static void *run(void *arg)
{
	int i;

	(void)arg;
	wait_for_exit(getpid());
	printf("ready\n");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
	for (i = 0; i < ROUNDS; i++)
		led++;
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	/* pthread_exit() needs a library that not every machine has. */
	syscall(SYS_exit, 0);
}
