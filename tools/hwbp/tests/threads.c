// SPDX-License-Identifier: GPL-2.0
/*
 * threads ROUNDS: main() prints "ready" and waits until "go" is read from standard
 * input, and so do two threads. Then main() starts two more threads, and each of the
 * four increments the counter ROUNDS times. Finally main() prints the counter. Any other
 * line of input increments spare[0].
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NR_THREADS	4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
/* Posted by each thread that has its name */
static sem_t named;
static long rounds;

long total;
long spare[4];

static void bump(void)
{
	pthread_mutex_lock(&lock);
	total++;
	pthread_mutex_unlock(&lock);
}

static void tap(void)
{
	spare[0]++;
}

static void *run(void *arg)
{
	struct timespec ts = { .tv_nsec = 200000 };
	char name[16];
	long i;

	snprintf(name, sizeof(name), "runner %ld", (long)arg);
	pthread_setname_np(pthread_self(), name);
	sem_post(&named);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < rounds; i++) {
		bump();
		if (i % 16 == 0)
			nanosleep(&ts, NULL);
	}
	return NULL;
}

static void start(pthread_t *thread, long n)
{
	if (pthread_create(thread, NULL, run, (void *)n))
		abort();
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_THREADS];
	char line[16];
	long i;

	rounds = argc > 1 ? atol(argv[1]) : 10;
	pthread_barrier_init(&barrier, NULL, NR_THREADS);
	sem_init(&named, 0, 0);
	for (i = 0; i < NR_THREADS / 2; i++)
		start(&thread[i], i);
	for (i = 0; i < NR_THREADS / 2; i++)
		sem_wait(&named);
	printf("ready\n");
	fflush(stdout);
	do {
		if (!fgets(line, sizeof(line), stdin))
			return 3;
		tap();
	} while (strcmp(line, "go\n"));
	for (; i < NR_THREADS; i++)
		start(&thread[i], i);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("threads: total %ld\n", total);
	return 0;
}
