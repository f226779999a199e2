/* SPDX-License-Identifier: GPL-2.0 */
/* The watched process: launched by hwbp, or running already. */
#ifndef HWBP_TARGET_H
#define HWBP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * struct target - the watched process
 * @pid: process ID
 * @pidfd: file descriptor that becomes readable when the process exits
 * @launched: the process is a child of hwbp
 * @name: command that was launched
 */
struct target {
	pid_t pid;
	int pidfd;
	bool launched;
	const char *name;
};

/*
 * Start @cmd and stop it right after exec, before its first instruction. The program
 * is killed if hwbp exits before target_release(), so that it never runs unwatched.
 */
void target_launch(struct target *t, char **cmd);

/* Run a launched program to its entry point, where its libraries are loaded. */
void target_run_to_entry(struct target *t);

/* Stop tracing a launched program, and let it run. */
void target_release(struct target *t);

/* Use a running process, which is neither traced nor stopped. */
void target_attach(struct target *t, pid_t pid);

/*
 * Wait for a launched program, with a note if it still runs although @what has ended.
 * Returns its exit status, 128+N for signal N; 0 for a process that was attached to.
 */
int target_finish(const struct target *t, const char *what);

struct tids {
	pid_t *tid;
	size_t nr;
	size_t capacity;
};

/* Read the list of the threads of @t. */
void target_threads(const struct target *t, struct tids *tids);

#endif
