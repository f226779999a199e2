// SPDX-License-Identifier: GPL-2.0
/* Names of threads, and the processes that have executed another program. */
#include <dirent.h>
#include <errno.h>
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
