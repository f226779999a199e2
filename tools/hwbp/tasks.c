// SPDX-License-Identifier: GPL-2.0
/* Names of threads, and the processes that have executed another program. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks.h"
#include "util.h"

#define NR_BUCKETS	256

/**
 * struct task - one thread
 * @next: next task in the hash bucket
 * @tid: thread ID
 * @runs_other: for a main thread: the process has executed another program
 * @comm: name, printable
 */
struct task {
	struct task *next;
	pid_t tid;
	bool runs_other;
	char comm[16];
};

struct tasks {
	struct task *bucket[NR_BUCKETS];
};

static struct task *find(struct tasks *tasks, pid_t tid)
{
	struct task *task = tasks->bucket[tid % NR_BUCKETS];

	while (task && task->tid != tid)
		task = task->next;
	return task;
}

static struct task *find_or_add(struct tasks *tasks, pid_t tid)
{
	struct task *task = find(tasks, tid);

	if (task)
		return task;
	task = xzalloc(sizeof(*task));
	task->tid = tid;
	task->next = tasks->bucket[tid % NR_BUCKETS];
	tasks->bucket[tid % NR_BUCKETS] = task;
	return task;
}

static void set_comm(struct task *task, const char *comm)
{
	char *p;

	snprintf(task->comm, sizeof(task->comm), "%s", comm);
	/* The name is one column of the report, and may reach a terminal. */
	for (p = task->comm; *p; p++) {
		if (*p <= ' ' || *p > '~')
			*p = '_';
	}
}

void tasks_comm(struct tasks *tasks, pid_t pid, pid_t tid, const char *comm)
{
	(void)pid;
	set_comm(find_or_add(tasks, tid), comm);
}

void tasks_fork(struct tasks *tasks, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid)
{
	struct task *parent = find(tasks, ptid), *task = find_or_add(tasks, tid);

	/* The thread ID may have been in use before. */
	task->runs_other = pid != ppid && tasks_runs_other(tasks, ppid);
	if (parent)
		memcpy(task->comm, parent->comm, sizeof(task->comm));
}

void tasks_exec(struct tasks *tasks, pid_t pid)
{
	find_or_add(tasks, pid)->runs_other = true;
}

const char *tasks_name(struct tasks *tasks, pid_t tid)
{
	struct task *task = find(tasks, tid);

	return task && task->comm[0] ? task->comm : "?";
}

bool tasks_runs_other(struct tasks *tasks, pid_t pid)
{
	struct task *task = find(tasks, pid);

	return task && task->runs_other;
}

/* A thread that has exited has no program. */
static bool has_exited(const char *tid)
{
	char *link = xasprintf("/proc/%s/exe", tid);
	bool exited = readlink(link, &(char){ 0 }, 1) < 0 && errno == ENOENT;

	free(link);
	return exited;
}

pid_t tasks_live_thread(pid_t pid)
{
	char *name = xasprintf("/proc/%d/task", pid);
	DIR *dir = opendir(name);
	struct dirent *entry;
	pid_t tid = pid;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || has_exited(entry->d_name))
			continue;
		tid = atoi(entry->d_name);
		break;
	}
	if (dir)
		closedir(dir);
	free(name);
	return tid;
}

struct tasks *tasks_new(pid_t pid)
{
	struct tasks *tasks = xzalloc(sizeof(*tasks));
	char *name = xasprintf("/proc/%d/task", pid);
	DIR *dir = opendir(name);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *comm_name, *comm;

		if (entry->d_name[0] == '.')
			continue;
		comm_name = xasprintf("%s/%s/comm", name, entry->d_name);
		comm = read_line_of(comm_name);
		if (comm)
			tasks_comm(tasks, pid, atoi(entry->d_name), comm);
		free(comm);
		free(comm_name);
	}
	if (dir)
		closedir(dir);
	free(name);
	return tasks;
}

/* ---- processes by name ---- */

#define MAX_CHOICES	6

static bool is_called(const char *pid, const char *name)
{
	char *path = xasprintf("/proc/%s/comm", pid), *comm = read_line_of(path);
	char program[PATH_MAX];
	bool same = comm && !strcmp(comm, name);
	ssize_t len;

	free(comm);
	free(path);
	if (same)
		return true;
	path = xasprintf("/proc/%s/exe", pid);
	len = readlink(path, program, sizeof(program) - 1);
	free(path);
	if (len < 0)
		return false;
	program[len] = '\0';
	return !strcmp(base_name(program), name);
}

pid_t tasks_find_process(const char *name)
{
	char *choices = xstrdup(""), *longer;
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;
	size_t nr = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0 || pid == getpid() || !is_called(entry->d_name, name))
			continue;
		found = pid;
		if (nr++ >= MAX_CHOICES)
			continue;
		longer = xasprintf("%s%s%d", choices, nr > 1 ? ", " : "", pid);
		free(choices);
		choices = longer;
	}
	if (dir)
		closedir(dir);
	if (!nr)
		die("no process is called '%s'", name);
	if (nr > 1)
		die("'%s' is ambiguous, %zu processes are called so: %s%s", name, nr, choices,
		    nr > MAX_CHOICES ? ", ..." : "");
	free(choices);
	return found;
}
