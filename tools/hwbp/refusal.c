// SPDX-License-Identifier: GPL-2.0
/*
 * Explain what the kernel has refused.
 *
 * An errno names no reason, and the same one has many.  Each rule of the table below knows
 * one reason, asks the machine whether it applies, and says what would have to change.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"
#include "refusal.h"
#include "tracefs.h"
#include "util.h"

#define SYSCTL(name)	"/proc/sys/kernel/" name
#define SECURITYFS	"/sys/kernel/security"

/* ---- what the machine says ---- */

/* The number in the file @path, or @otherwise */
static long read_number(const char *path, long otherwise)
{
	char *line = read_line_of(path);
	long n = line ? atol(line) : otherwise;

	free(line);
	return n;
}

/* "ulimit -n is 1024", or "unlimited" */
static char *limit_text(const char *name, int resource)
{
	struct rlimit lim;

	if (getrlimit(resource, &lim) || lim.rlim_cur == RLIM_INFINITY)
		return xasprintf("%s is unlimited", name);
	return xasprintf("%s is %lu", name, (unsigned long)lim.rlim_cur);
}

/* The part of the kernel that may refuse what users and capabilities allow */
static char *guard(void)
{
	char *modules;

	if (has_seccomp_filter())
		return xstrdup("a seccomp filter, as in many containers,");
	modules = read_line_of(SECURITYFS "/lsm");
	return xasprintf("a security module%s%s%s", modules ? " (" : "", modules ? modules : "",
			 modules ? ")" : "");
}

static char *process_text(long pid)
{
	char *path = xasprintf("/proc/%ld/comm", pid), *comm = read_line_of(path);

	return comm ? xasprintf("process %ld (%s)", pid, printable(comm)) :
		      xasprintf("process %ld", pid);
}

/* Returns true if users, capabilities and dumpability of a process do not matter to hwbp. */
static bool is_privileged(void)
{
	char *text = read_status_text(getpid(), "CapEff");
	uint64_t caps = text ? strtoull(text, NULL, 16) : 0;

	free(text);
	return caps & (1ULL << CAP_SYS_PTRACE | 1ULL << CAP_PERFMON);
}

/* Why this user may not look at the thread or process @tid, NULL if that is not known */
static char *foreign(pid_t tid)
{
	/* Root owns the files of a process that is not dumpable, but not its directory. */
	char *path = xasprintf("/proc/%d/status", tid), *ids = read_status_text(tid, "Uid");
	char *caps = read_status_text(tid, "CapPrm"), *own = read_status_text(getpid(), "CapPrm");
	unsigned int uid[3];
	struct stat st;
	int i;

	if (!ids || sscanf(ids, "%u %u %u", &uid[0], &uid[1], &uid[2]) != 3)
		return NULL;
	for (i = 0; i < 3; i++) {
		if (uid[i] != getuid())
			return xasprintf("belongs to user %u", uid[i]);
	}
	if (caps && own && strtoull(caps, NULL, 16) & ~strtoull(own, NULL, 16))
		return xstrdup("has capabilities that hwbp lacks");
	if (!stat(path, &st) && st.st_uid != uid[1])
		return xstrdup("is not dumpable (PR_SET_DUMPABLE, or a privileged file)");
	return NULL;
}

/* ---- reasons; NULL if it is another one ---- */

static char *any_event(const struct refusal *r, int err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	const char *no = "no permission to use perf events:";
	const char *limit = "a kernel.perf_event_paranoid of 2 or less";

	(void)r;
	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	err = errno;
	if (err != EACCES && err != EPERM && err != ENOSYS)
		return NULL;
	/* Distributions have added this level, and this errno. */
	if (err == EACCES && read_paranoid() > 2)
		return xasprintf("%s requires CAP_SYS_ADMIN or %s (it is %ld)", no, limit,
				 read_paranoid());
	if (has_seccomp_filter())
		return xasprintf("%s %s perf_event_open, as in many containers (%s)", no,
				 "a seccomp filter refuses", strerror(err));
	if (err == ENOSYS)
		return xstrdup("this kernel has no perf events");
	return xasprintf("%s %s refuses them (%s)", no, guard(), strerror(err));
}

static char *kernel_address(const struct refusal *r, int err)
{
	if ((int64_t)r->address >= 0)
		return NULL;
	if (err == EINVAL && !r->kernel)
		return xasprintf("%s is a kernel address: -k is required", r->place);
	if (err == EINVAL)
		return xasprintf("%s: the kernel would trap for ever on this breakpoint", r->place);
	return xasprintf("%s: no permission to watch a kernel address: requires CAP_SYS_ADMIN",
			 r->place);
}

static char *kernel_mode(const struct refusal *r, int err)
{
	(void)err;
	if (!r->kernel || read_paranoid() < 2)
		return NULL;
	return xasprintf("no permission to watch the kernel: %s below 2 (it is %ld)",
			 "-k requires CAP_PERFMON or kernel.perf_event_paranoid", read_paranoid());
}

static char *kernel_text(const struct refusal *r, int err)
{
	const char *no = "no permission to record";

	(void)err;
	if (r->areas)
		return xasprintf("%s areas of kernel text: requires CAP_PERFMON", no);
	if (read_paranoid() > 0)
		return xasprintf("%s on all CPUs: requires CAP_PERFMON or %s 0 or less (it is %ld)",
				 no, "a kernel.perf_event_paranoid of", read_paranoid());
	return xasprintf("%s on all CPUs: %s refuses it", no, guard());
}

static char *tracer(const struct refusal *r, int err)
{
	long pid = read_status(r->pid, "TracerPid");

	(void)err;
	if (pid <= 0)
		return NULL;
	return xasprintf("cannot stop thread %d: %s traces it already", r->pid, process_text(pid));
}

static char *other_process(const struct refusal *r, int err)
{
	const char *to = r->what == REFUSED_MAPS ? "read the maps of" : "trace";
	char *why = NULL, *path = xasprintf("/proc/%d/task", r->pid);
	const struct dirent *entry;
	DIR *dir = opendir(path);

	(void)err;
	while (dir && !why && !is_privileged() && (entry = readdir(dir))) {
		why = atoi(entry->d_name) > 0 ? foreign(atoi(entry->d_name)) : NULL;
		if (why && atoi(entry->d_name) != r->pid)
			why = xasprintf("its thread %s %s", entry->d_name, why);
		else if (why)
			why = xasprintf("it %s", why);
	}
	if (dir)
		closedir(dir);
	return why ? xasprintf("no permission to %s process %d: %s", to, r->pid, why) : NULL;
}

static char *attach_rule(const struct refusal *r, int err)
{
	long scope = read_number(SYSCTL("yama/ptrace_scope"), 0);
	static const char *const who[] = {
		NULL,
		"its parent and the processes that it names",
		"processes with CAP_SYS_PTRACE",
		"nobody",
	};

	(void)err;
	if (scope < 1 || scope > 3)
		return NULL;
	return xasprintf("no permission to trace process %d: %s is %ld, which allows that to %s",
			 r->pid, "kernel.yama.ptrace_scope", scope, who[scope]);
}

static char *security(const struct refusal *r, int err)
{
	return xasprintf("no permission to %s process %d: %s refuses it (%s)",
			 r->what == REFUSED_MAPS ? "read the maps of" : "trace", r->pid, guard(),
			 strerror(err));
}

/*
 * Lockdown refuses tracefs, even to root. Of what hwbp uses it also refuses values of kernel
 * memory, which events_open() does without.
 */
static char *tracefs(const struct refusal *r, int err)
{
	char *lockdown = read_line_of(SECURITYFS "/lockdown"), *level;

	(void)r;
	(void)err;
	level = lockdown ? strchr(lockdown, '[') : NULL;
	if (level && strncmp(level, "[none]", 6))
		return xasprintf("no permission to use " TRACEFS ": lockdown (%.*s) refuses it",
				 (int)strcspn(level + 1, "]"), level + 1);
	return xasprintf("no permission to use " TRACEFS ": %s%s",
			 geteuid() ? "this requires root" : guard(),
			 geteuid() ? "" : " refuses it");
}

static char *no_breakpoints(const struct refusal *r, int err)
{
	(void)r;
	(void)err;
	return xstrdup("this kernel or machine has no hardware breakpoints");
}

static char *no_text_records(const struct refusal *r, int err)
{
	(void)r;
	(void)err;
	return xstrdup("this kernel does not record changes of its text (attr.text_poke)");
}

static char *no_program(const struct refusal *r, int err)
{
	(void)err;
	return xasprintf("process %d has no program: it has exited or is a kernel thread", r->pid);
}

static char *file_limit(const struct refusal *r, int err)
{
	if (err == ENFILE)
		return xasprintf("the system has too many open files (fs.file-max is %ld)",
				 read_number("/proc/sys/fs/file-max", 0));
	return xasprintf("too many open files: %s needs one (%s)",
			 r->what == REFUSED_WATCH ? "each place, thread and CPU" : "each CPU",
			 limit_text("ulimit -n", RLIMIT_NOFILE));
}

/* A leader is a zombie as long as other threads live. */
static char *ended(const struct refusal *r, int err)
{
	char *state = read_status_text(r->pid, "State"), *parent;

	(void)err;
	/* Then the process looks as if it had no threads. */
	if (!state && errno == EMFILE)
		return file_limit(r, EMFILE);
	if (!state)
		return xasprintf("process %d has exited", r->pid);
	if (*state != 'Z' || read_status(r->pid, "Threads") > 1)
		return NULL;
	parent = process_text(read_status(r->pid, "PPid"));
	return xasprintf("process %d has exited: it is a zombie for which %s has not waited",
			 r->pid, parent);
}

static char *locked_memory(const struct refusal *r, int err)
{
	(void)r;
	return xasprintf("cannot map a ring buffer: %s is %ld and %s, without CAP_IPC_LOCK (%s)",
			 "kernel.perf_event_mlock_kb",
			 read_number(SYSCTL("perf_event_mlock_kb"), 0),
			 limit_text("ulimit -l, in bytes,", RLIMIT_MEMLOCK), strerror(err));
}

static char *bad_breakpoint(const struct refusal *r, int err)
{
	unsigned int registers = caps_registers(false);

	(void)err;
	if (r->registers > registers)
		return xasprintf("%s: the bytes from %#lx on need %u debug registers, %s %u",
				 r->place, (unsigned long)r->address, r->registers,
				 "one for each 8 at a multiple of 8, and a CPU has", registers);
	return xasprintf("%s: the kernel does not accept this breakpoint", r->place);
}

/* ---- the table ---- */

#define MAX_ERRNOS	3
#define PERMISSION	{ EACCES, EPERM, ENOSYS }

/*
 * The first reason that applies is printed. A rule is for some kinds of requests, and for
 * these errnos.
 */
static const struct rule {
	unsigned int what;
	int err[MAX_ERRNOS];
	char *(*reason)(const struct refusal *r, int err);
} rules[] = {
	{ REFUSED_WATCH | REFUSED_TEXT | REFUSED_RING, PERMISSION, any_event },
	{ REFUSED_WATCH, { EACCES, EPERM, EINVAL }, kernel_address },
	{ REFUSED_WATCH, { EACCES, EPERM }, kernel_mode },
	{ REFUSED_WATCH | REFUSED_MAPS | REFUSED_TRACE, { ESRCH, ENOENT }, ended },
	{ REFUSED_MAPS, { ESRCH, ENOENT }, no_program },
	{ REFUSED_TRACE, { EPERM }, tracer },
	{ REFUSED_WATCH | REFUSED_MAPS | REFUSED_TRACE, { EACCES, EPERM }, other_process },
	{ REFUSED_TRACE, { EPERM }, attach_rule },
	{ REFUSED_WATCH | REFUSED_MAPS | REFUSED_TRACE, PERMISSION, security },
	{ REFUSED_WATCH, { ENOENT, ENODEV, EOPNOTSUPP }, no_breakpoints },
	{ REFUSED_WATCH, { EINVAL }, bad_breakpoint },
	{ REFUSED_TRACEFS, { EACCES, EPERM }, tracefs },
	{ REFUSED_TEXT, PERMISSION, kernel_text },
	{ REFUSED_TEXT, { EINVAL }, no_text_records },
	{ REFUSED_RING, { EPERM, ENOMEM }, locked_memory },
	{ REFUSED_WATCH | REFUSED_TEXT | REFUSED_RING, { EMFILE, ENFILE }, file_limit },
};

static char *attempt_text(const struct refusal *r)
{
	switch (r->what) {
	case REFUSED_WATCH:
		return xasprintf("%s: cannot open the breakpoint", r->place);
	case REFUSED_TEXT:
		return xstrdup("cannot record changes of kernel text");
	case REFUSED_RING:
		return xstrdup("cannot open a ring buffer");
	case REFUSED_TRACEFS:
		return xstrdup("cannot use " TRACEFS);
	case REFUSED_MAPS:
		return xasprintf("cannot read the maps of process %d", r->pid);
	default:
		return xasprintf("cannot stop thread %d", r->pid);
	}
}

void refusal_die(const struct refusal *r, int err)
{
	size_t i, j;
	char *why;

	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		for (j = 0; rules[i].what & r->what && j < MAX_ERRNOS; j++) {
			why = rules[i].err[j] == err ? rules[i].reason(r, err) : NULL;
			if (why)
				die("%s", why);
		}
	}
	die("%s: %s", attempt_text(r), strerror(err));
}
