// SPDX-License-Identifier: GPL-2.0
/*
 * Run a command on a terminal of 24 rows and 100 columns, and copy what it writes there
 * to standard output: on_tty COMMAND [ARG...]. The exit status is that of the command.
 * With SLOW=N in the environment the first N seconds nothing is read from the terminal.
 *
 * The terminal controls no session, as it would after forkpty(): when the leader of a
 * session exits, its terminal is hung up, and loses what has not been read yet.
 */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * EIO: no process has the terminal open any more. The kernel may say so while what was
 * written last is still on its way; the next read() finds that.
 */
static ssize_t read_terminal(int master, char *buf, size_t size)
{
	ssize_t n = read(master, buf, size);

	return n > 0 ? n : read(master, buf, size);
}

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 24, .ws_col = 100 };
	int master, slave, status;
	char buf[4096];
	ssize_t n;
	pid_t pid;

	if (argc < 2)
		return 125;
	if (openpty(&master, &slave, NULL, NULL, &size))
		return 125;
	pid = fork();
	if (pid < 0)
		return 125;
	if (!pid) {
		dup2(slave, STDIN_FILENO);
		dup2(slave, STDOUT_FILENO);
		dup2(slave, STDERR_FILENO);
		close(slave);
		close(master);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	close(slave);
	if (getenv("SLOW"))
		sleep(atoi(getenv("SLOW")));
	while ((n = read_terminal(master, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, n, stdout);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
