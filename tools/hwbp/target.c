// SPDX-License-Identifier: GPL-2.0
/*
 * The watched process.
 *
 * Addresses in a position-independent program are known only after exec.  Therefore
 * a launched program is traced until after exec, or, if libraries have to be loaded
 * first, up to its entry point.  It is detached before it runs its own code, as soon
 * as the events are open.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"
#include "util.h"

#ifndef __x86_64__
#error "hwbp knows the breakpoints of x86-64 only"
#endif

#define INT3	0xccUL

/* Process that has been launched but not released; 0 if there is none */
static pid_t unreleased;

static void kill_unreleased(void)
{
	if (!unreleased)
		return;
	kill(unreleased, SIGKILL);
	waitpid(unreleased, NULL, 0);
}

static void open_pidfd(struct target *t)
{
	t->pidfd = syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd < 0)
		die("no such process: %d", t->pid);
}

/* ---- launch ---- */

static void run_child(char **cmd, int go, int failed)
{
	int err;
	char c;

	/* At end of file hwbp has exited. */
	if (read(go, &c, 1) != 1)
		_exit(EXIT_HWBP);
	execvp(cmd[0], cmd);
	err = errno;
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(EXIT_HWBP);
	_exit(EXIT_NO_COMMAND);
}

static void die_cannot_exec(const char *name, int failed)
{
	int err = 0;

	unreleased = 0;
	if (read(failed, &err, sizeof(err)) != sizeof(err))
		die("%s exited before it was started", name);
	die_status(err == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_EXEC, "cannot run '%s': %s",
		   name, strerror(err));
}

/* Wait for the next stop of the child. Returns false if it has exited. */
static bool wait_stop(pid_t pid, int *status)
{
	while (waitpid(pid, status, __WALL) < 0) {
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	}
	return WIFSTOPPED(*status);
}

static void resume(pid_t pid, int sig)
{
	if (ptrace(PTRACE_CONT, pid, 0, sig))
		die("cannot resume process %d: %s", pid, strerror(errno));
}

/* Signal to inject when a stopped child is resumed, 0 for a ptrace event stop */
static int pending_signal(int status)
{
	return status >> 16 ? 0 : WSTOPSIG(status);
}

static void wait_exec(pid_t pid, const char *name, int failed)
{
	int status;

	while (wait_stop(pid, &status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return;
		resume(pid, pending_signal(status));
	}
	die_cannot_exec(name, failed);
}

void target_launch(struct target *t, char **cmd)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	t->launched = true;
	t->name = cmd[0];
	t->pid = fork();
	if (t->pid < 0)
		die("fork: %s", strerror(errno));
	if (!t->pid) {
		close(go[1]);
		run_child(cmd, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	unreleased = t->pid;
	atexit(kill_unreleased);
	if (ptrace(PTRACE_SEIZE, t->pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL))
		die("no permission to trace '%s' (ptrace: %s)", cmd[0], strerror(errno));
	if (write(go[1], "", 1) != 1)
		die("pipe: %s", strerror(errno));
	close(go[1]);
	wait_exec(t->pid, cmd[0], failed[0]);
	close(failed[0]);
	open_pidfd(t);
}

void target_release(struct target *t)
{
	if (!t->launched)
		return;
	if (ptrace(PTRACE_DETACH, t->pid, 0, 0))
		die("cannot release process %d: %s", t->pid, strerror(errno));
	unreleased = 0;
}

/* ---- run to the entry point ---- */

static unsigned long read_entry(pid_t pid)
{
	char *name = xasprintf("/proc/%d/auxv", pid);
	unsigned long entry = 0;
	FILE *f = fopen(name, "re");
	Elf64_auxv_t aux;

	while (f && fread(&aux, sizeof(aux), 1, f) == 1) {
		if (aux.a_type == AT_ENTRY)
			entry = aux.a_un.a_val;
	}
	if (f)
		fclose(f);
	free(name);
	return entry;
}

static void poke(pid_t pid, unsigned long addr, unsigned long word)
{
	if (ptrace(PTRACE_POKETEXT, pid, addr, word))
		die("cannot write to the entry point of process %d: %s", pid,
		    strerror(errno));
}

/* Let the child run until it executes the INT3 at @addr. */
static void wait_int3(struct target *t, unsigned long addr, struct user_regs_struct *regs)
{
	int status, sig = 0;

	for (;;) {
		resume(t->pid, sig);
		if (!wait_stop(t->pid, &status)) {
			unreleased = 0;
			die("the program exited while it was being loaded");
		}
		sig = pending_signal(status);
		if (sig != SIGTRAP)
			continue;
		if (!ptrace(PTRACE_GETREGS, t->pid, 0, regs) && regs->rip == addr + 1)
			return;
	}
}

void target_run_to_entry(struct target *t)
{
	unsigned long addr = read_entry(t->pid);
	struct user_regs_struct regs;
	unsigned long word;

	/* The auxv of a 32-bit program has another layout: leave it stopped at exec. */
	if (!addr || addr >> 47)
		return;
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, t->pid, addr, 0);
	if (errno)
		return;
	poke(t->pid, addr, (word & ~0xffUL) | INT3);
	wait_int3(t, addr, &regs);
	poke(t->pid, addr, word);
	regs.rip = addr;
	if (ptrace(PTRACE_SETREGS, t->pid, 0, &regs))
		die("cannot reset process %d to its entry point: %s", t->pid, strerror(errno));
}

/* ---- attach ---- */

void target_attach(struct target *t, pid_t pid)
{
	char *name = xasprintf("/proc/%d/task", pid);

	t->launched = false;
	t->pid = pid;
	if (access(name, F_OK))
		die("no such process: %d", pid);
	free(name);
	open_pidfd(t);
}

void target_threads(const struct target *t, struct tids *tids)
{
	char *name = xasprintf("/proc/%d/task", t->pid);
	DIR *dir = opendir(name);
	struct dirent *entry;

	tids->nr = 0;
	while (dir && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0)
			continue;
		GROW(tids->tid, tids->nr, tids->capacity);
		tids->tid[tids->nr++] = tid;
	}
	if (dir)
		closedir(dir);
	free(name);
}

/* ---- end ---- */

static bool is_over(const struct target *t)
{
	struct pollfd pfd = { .fd = t->pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

int target_finish(const struct target *t, const char *what)
{
	int status;

	if (!t->launched)
		return 0;
	if (!is_over(t))
		note("the %s has ended, %s (pid %d) continues to run", what, t->name, t->pid);
	while (waitpid(t->pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
