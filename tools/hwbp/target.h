/* SPDX-License-Identifier: GPL-2.0 */
/* The watched process: launched by hwbp, or running already. */
#ifndef HWBP_TARGET_H
#define HWBP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct target - the watched process
 * @pid: process ID
 * @tid: the only thread to watch, 0 for all threads
 * @pidfd: file descriptor that becomes readable when the process or thread exits
 * @launched: the process is a child of hwbp
 * @ended: it has been waited for
 * @status: its status then
 * @name: command that was launched
 */
struct target {
	pid_t pid;
	pid_t tid;
	int pidfd;
	bool launched;
	bool ended;
	int status;
	const char *name;
};

/*
 * Start @cmd and stop it right after exec, before its first instruction. The program
 * is killed if hwbp exits before target_release(), so that it never runs unwatched.
 */
void target_launch(struct target *t, char **cmd);

/*
 * Run a launched program until it is about to execute the instruction at @addr. Returns
 * false if there is no such address.
 */
bool target_run_to(struct target *t, uint64_t addr);

/* Run a launched program to its entry point, where its libraries are loaded. */
void target_run_to_entry(struct target *t);

/* Stop tracing a launched program, and let it run. */
void target_release(struct target *t);

/*
 * Use a running process, which is neither traced nor stopped, or if @tid is not 0 this one
 * thread of it.
 */
void target_attach(struct target *t, pid_t pid, pid_t tid);

/* Returns true if the process, or the only thread to watch, has ended. */
bool target_is_over(const struct target *t);

/* The signal that has killed a launched program, 0 if it runs or has exited */
int target_signal(struct target *t);

/*
 * Wait for a launched program, with a note if it still runs although @what has ended.
 * Returns its exit status, 128+N for signal N; 0 for a process that was attached to.
 */
int target_finish(struct target *t, const char *what);

struct tids {
	pid_t *tid;
	size_t nr;
	size_t capacity;
};

/* Read the list of the threads of @t that are to be watched. */
void target_threads(const struct target *t, struct tids *tids);

#endif
