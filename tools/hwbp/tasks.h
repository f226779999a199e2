/* SPDX-License-Identifier: GPL-2.0 */
/* Names of threads, and the processes that have executed another program. */
#ifndef HWBP_TASKS_H
#define HWBP_TASKS_H

#include <stdbool.h>
#include <sys/types.h>

struct tasks;

/* Read the names of all threads of @pid. */
struct tasks *tasks_new(pid_t pid);

void tasks_comm(struct tasks *tasks, pid_t pid, pid_t tid, const char *comm);
void tasks_fork(struct tasks *tasks, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid);
/* @pid has executed another program: its addresses cannot be resolved any more. */
void tasks_exec(struct tasks *tasks, pid_t pid);

const char *tasks_name(struct tasks *tasks, pid_t tid);
bool tasks_runs_other(struct tasks *tasks, pid_t pid);

/*
 * A thread of the process @pid that has not exited, which is not always the main thread:
 * /proc has no maps, no program and no root of a thread that has. Returns @pid if there
 * is none.
 */
pid_t tasks_live_thread(pid_t pid);

/*
 * The process that is called @name: its main thread or its program has this name. Exits
 * with a one-line message if there is none, or more than one.
 */
pid_t tasks_find_process(const char *name);

#endif
