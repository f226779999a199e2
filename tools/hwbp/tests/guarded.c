// SPDX-License-Identifier: GPL-2.0
/*
 * guarded MODE: become a process that others may not watch, print the number of the process
 * or thread that is guarded, and wait for end of file on standard input.
 *
 *   thread      started by root: the process is of nobody, and a second thread of root
 *   caps        started by root: the process is of nobody, and keeps its capabilities
 *   dumpable    the process is not dumpable
 *   traced      a child is traced
 *   zombie      a child has exited
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY	65534

__thread long per_thread;
long guarded;

static pthread_barrier_t barrier;
static pid_t number;

static void *run(void *arg)
{
	(void)arg;
	number = gettid();
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return NULL;
}

static void start_thread(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_barrier_wait(&barrier);
}

/* The C library would change all threads. */
static void become_nobody(void)
{
	if (syscall(SYS_setgroups, 0, NULL) ||
	    syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) ||
	    syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) || prctl(PR_SET_DUMPABLE, 1))
		abort();
}

static void start_child(int traced)
{
	siginfo_t info;

	number = fork();
	if (!number && traced)
		for (;;)
			pause();
	if (!number)
		_exit(0);
	if (traced ? ptrace(PTRACE_SEIZE, number, 0, 0) :
		     waitid(P_PID, number, &info, WEXITED | WNOWAIT))
		abort();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	number = getpid();
	if (!strcmp(mode, "thread")) {
		start_thread();
		become_nobody();
	} else if (!strcmp(mode, "caps")) {
		prctl(PR_SET_KEEPCAPS, 1);
		become_nobody();
	} else if (!strcmp(mode, "dumpable")) {
		prctl(PR_SET_DUMPABLE, 0);
	} else {
		start_child(!strcmp(mode, "traced"));
	}
	printf("ready %d\n", number);
	fflush(stdout);
	while (getchar() != EOF)
		;
	if (number != getpid() && !strcmp(mode, "traced"))
		kill(number, SIGKILL);
	return 0;
}
