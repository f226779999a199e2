// SPDX-License-Identifier: GPL-2.0
/*
 * The watched process.
 *
 * Addresses in a position-independent program are known only after exec.  Therefore
 * a launched program is traced until after exec, or, if libraries have to be loaded
 * first, until the loader has done that.  It is detached before it runs its own code, as
 * soon as the events are open.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
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

#include "refusal.h"
#include "target.h"
#include "util.h"

#ifndef __x86_64__
#error "hwbp knows the breakpoints of x86-64 only"
#endif

#define INT3	0xccUL

#ifndef PIDFD_THREAD
#define PIDFD_THREAD	O_EXCL
#endif

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
	bool filtered;
	int err;

	t->pidfd = -1;
	if (t->tid)
		t->pidfd = syscall(SYS_pidfd_open, t->tid, PIDFD_THREAD);
	/* Before Linux 6.9 only whole processes have such a descriptor. */
	if (t->pidfd < 0)
		t->pidfd = syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd >= 0)
		return;
	/* EINVAL: all threads have exited. */
	if (errno == ESRCH || errno == EINVAL)
		die("no such process: %d", t->pid);
	err = errno;
	filtered = (err == EPERM || err == ENOSYS) && has_seccomp_filter();
	die("cannot wait for the end of process %d: pidfd_open: %s%s", t->pid, strerror(err),
	    filtered ? " (a seccomp filter may be the reason)" : "");
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

/* The file that execvp() finds; to be freed */
static char *find_command(const char *name)
{
	const char *dirs = getenv("PATH"), *path;
	size_t len;
	char *file;

	for (path = dirs && !strchr(name, '/') ? dirs : ""; *path; path += len + !!path[len]) {
		len = strcspn(path, ":");
		file = xasprintf("%.*s%s%s", (int)len, path, len ? "/" : "", name);
		if (!access(file, X_OK))
			return file;
		free(file);
	}
	return xstrdup(name);
}

/* The path after "#!", NULL if there is none; to be freed */
static char *script_interpreter(const char *file)
{
	char *line = read_line_of(file), *path = NULL;
	size_t start;

	if (line && !strncmp(line, "#!", 2)) {
		start = 2 + strspn(line + 2, " \t");
		path = xasprintf("%.*s", (int)strcspn(line + start, " \t"), line + start);
	}
	free(line);
	return path;
}

/* The dynamic loader of a program, NULL if there is none; to be freed. @is32: its class */
static char *elf_interpreter(const char *file, bool *is32)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *path = NULL;
	GElf_Phdr phdr;
	size_t i, nr;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	*is32 = elf && gelf_getclass(elf) == ELFCLASS32;
	if (!elf || elf_getphdrnum(elf, &nr))
		nr = 0;
	for (i = 0; i < nr && !path; i++) {
		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_INTERP ||
		    phdr.p_filesz > PATH_MAX)
			continue;
		path = xzalloc(phdr.p_filesz + 1);
		if (pread(fd, path, phdr.p_filesz, phdr.p_offset) < 0)
			*path = '\0';
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return path;
}

/* ENOENT may mean that the file is there, but not its interpreter. */
static void die_without_interpreter(const char *name)
{
	char *file = find_command(name), *interpreter = script_interpreter(file);
	bool is32 = false;

	if (!interpreter)
		interpreter = elf_interpreter(file, &is32);
	if (interpreter && access(interpreter, F_OK))
		die_status(EXIT_NO_COMMAND, "cannot run '%s'%s: its interpreter %s does not exist",
			   name, is32 ? ", a 32-bit program" : "", printable(interpreter));
	free(interpreter);
	free(file);
}

static void die_cannot_exec(const char *name, int failed)
{
	int err = 0;

	unreleased = 0;
	if (read(failed, &err, sizeof(err)) != sizeof(err))
		die("%s exited before it was started", name);
	if (err == ENOENT)
		die_without_interpreter(name);
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
		refusal_die(&(struct refusal){ .what = REFUSED_TRACE, .pid = t->pid }, errno);
	if (write(go[1], "", 1) != 1)
		die("pipe: %s", strerror(errno));
	close(go[1]);
	wait_exec(t->pid, cmd[0], failed[0]);
	close(failed[0]);
	open_pidfd(t);
}

void target_release(struct target *t)
{
	if (!unreleased)
		return;
	if (ptrace(PTRACE_DETACH, t->pid, 0, 0))
		die("cannot release process %d: %s", t->pid, strerror(errno));
	unreleased = 0;
}

/* ---- run to an address ---- */

static bool is_64bit(pid_t pid)
{
	char *name = xasprintf("/proc/%d/exe", pid);
	unsigned char ident[EI_NIDENT] = { 0 };
	FILE *f = fopen(name, "re");

	if (f && fread(ident, sizeof(ident), 1, f) != 1)
		ident[EI_CLASS] = ELFCLASSNONE;
	if (f)
		fclose(f);
	free(name);
	return ident[EI_CLASS] == ELFCLASS64;
}

/* The words of the auxv have the size of those of the program. */
static unsigned long read_entry(pid_t pid)
{
	size_t size = is_64bit(pid) ? sizeof(Elf64_auxv_t) : sizeof(Elf32_auxv_t);
	char *name = xasprintf("/proc/%d/auxv", pid);
	unsigned long entry = 0;
	FILE *f = fopen(name, "re");
	union {
		Elf64_auxv_t aux64;
		Elf32_auxv_t aux32;
	} u;

	while (f && fread(&u, size, 1, f) == 1) {
		if (size == sizeof(u.aux64) && u.aux64.a_type == AT_ENTRY)
			entry = u.aux64.a_un.a_val;
		if (size == sizeof(u.aux32) && u.aux32.a_type == AT_ENTRY)
			entry = u.aux32.a_un.a_val;
	}
	if (f)
		fclose(f);
	free(name);
	return entry;
}

static void poke(pid_t pid, unsigned long addr, unsigned long word)
{
	if (ptrace(PTRACE_POKETEXT, pid, addr, word))
		die("cannot write to the code of process %d: %s", pid, strerror(errno));
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

/* Leave an instruction at which an earlier run has ended. */
static void step(struct target *t)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0))
		die("cannot resume process %d: %s", t->pid, strerror(errno));
	if (!wait_stop(t->pid, &status)) {
		unreleased = 0;
		die("the program exited while it was being loaded");
	}
}

bool target_run_to(struct target *t, uint64_t addr)
{
	struct user_regs_struct regs;
	unsigned long word;

	if (!ptrace(PTRACE_GETREGS, t->pid, 0, &regs) && regs.rip == addr)
		step(t);
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, t->pid, addr, 0);
	if (!addr || errno)
		return false;
	poke(t->pid, addr, (word & ~0xffUL) | INT3);
	wait_int3(t, addr, &regs);
	poke(t->pid, addr, word);
	regs.rip = addr;
	if (ptrace(PTRACE_SETREGS, t->pid, 0, &regs))
		die("cannot reset process %d to %#lx: %s", t->pid, (unsigned long)addr,
		    strerror(errno));
	return true;
}

void target_run_to_entry(struct target *t)
{
	target_run_to(t, read_entry(t->pid));
}

/* ---- attach ---- */

void target_attach(struct target *t, pid_t pid, pid_t tid)
{
	t->launched = false;
	t->pid = pid;
	t->tid = tid;
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

		if (tid <= 0 || (t->tid && t->tid != tid))
			continue;
		GROW(tids->tid, tids->nr, tids->capacity);
		tids->tid[tids->nr++] = tid;
	}
	if (dir)
		closedir(dir);
	free(name);
}

/* ---- end ---- */

bool target_is_over(const struct target *t)
{
	struct pollfd pfd = { .fd = t->pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

static void wait_for_end(struct target *t)
{
	while (!t->ended && waitpid(t->pid, &t->status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	}
	t->ended = true;
}

int target_signal(struct target *t)
{
	if (!t->launched || !target_is_over(t))
		return 0;
	wait_for_end(t);
	return WIFSIGNALED(t->status) ? WTERMSIG(t->status) : 0;
}

int target_finish(struct target *t, const char *what)
{
	if (!t->launched)
		return 0;
	if (!t->ended && !target_is_over(t))
		note("the %s has ended, %s (pid %d) continues to run", what, t->name, t->pid);
	wait_for_end(t);
	return WIFSIGNALED(t->status) ? 128 + WTERMSIG(t->status) : WEXITSTATUS(t->status);
}
