/* SPDX-License-Identifier: GPL-2.0 */
/* The process that is watched: launched by us, or attached to. */
#ifndef HWBP_TARGET_H
#define HWBP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * struct target - the process
 * @pid: its number
 * @pidfd: readable when the process is over
 * @launched: it is our child
 */
struct target {
	pid_t pid;
	int pidfd;
	bool launched;
};

/*
 * Start @cmd and stop it right after exec, before its first instruction.  Until
 * target_release() the program dies with us, so that nothing runs unwatched.
 */
void target_launch(struct target *t, char **cmd);

/* Let a launched program run until its libraries are loaded, and stop it again. */
void target_run_to_entry(struct target *t);

/* Let a launched program run, no longer traced. */
void target_release(struct target *t);

/* Take a running process; it is neither traced nor stopped. */
void target_attach(struct target *t, pid_t pid);

/* True if a launched program has ended already. */
bool target_is_over(const struct target *t);

/* Wait for a launched program; returns the exit status that stands for its end. */
int target_wait(const struct target *t);

struct tids {
	pid_t *tid;
	size_t nr;
	size_t room;
};

/* The threads that @t has now. */
void target_threads(const struct target *t, struct tids *tids);

#endif
