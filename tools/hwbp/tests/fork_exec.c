// SPDX-License-Identifier: GPL-2.0
/*
 * Two writes by the parent, three by a forked child, and seven after the child has
 * executed this program again: at the same address, but in another address space.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

long mark;

static void write_mark(int times)
{
	int i;

	for (i = 0; i < times; i++)
		mark = i;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc > 1) {
		write_mark(7);
		return 0;
	}
	write_mark(2);
	pid = fork();
	if (!pid) {
		write_mark(3);
		execl("/proc/self/exe", argv[0], "again", NULL);
		_exit(9);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	return 0;
}
