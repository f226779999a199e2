// SPDX-License-Identifier: GPL-2.0
/*
 * tally WRITES [SHARE]: write to a variable WRITES times; of 100 writes SHARE (100) change its
 * value.
 * tally -t COMMAND [ARG...]: run a command, then print the nanoseconds that it took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile long tally;

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int run(char **command)
{
	long long start = now_ns();
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	fprintf(stderr, "tally: %lld ns\n", now_ns() - start);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char **argv)
{
	long writes = argc > 1 ? atol(argv[1]) : 0, share = argc > 2 ? atol(argv[2]) : 100, i;

	if (argc > 2 && !strcmp(argv[1], "-t"))
		return run(argv + 2);
	for (i = 0; i < writes; i++)
		tally = i * share / 100;
	return 0;
}
