// SPDX-License-Identifier: GPL-2.0
/*
 * Run a command on a terminal of 24 rows and 100 columns, and copy what it writes there
 * to standard output: on_tty COMMAND [ARG...]. The exit status is that of the command.
 */
#include <pty.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 24, .ws_col = 100 };
	int master, status;
	char buf[4096];
	ssize_t n;
	pid_t pid;

	if (argc < 2)
		return 125;
	pid = forkpty(&master, NULL, NULL, &size);
	if (pid < 0)
		return 125;
	if (!pid) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	/* EIO: no process has the terminal open any more. */
	while ((n = read(master, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, n, stdout);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
