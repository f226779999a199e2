/* SPDX-License-Identifier: GPL-2.0 */
/* Wait for records until the program exits, a timeout expires or a signal arrives. */
#ifndef HWBP_LOOP_H
#define HWBP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct loop - one run
 * @start: CLOCK_MONOTONIC at which the run began
 * @deadline: time at which the run ends, UINT64_MAX for no limit
 * @sigfd: signalfd for the signals that end the run
 * @pidfd: file descriptor of the program, or -1
 */
struct loop {
	uint64_t start;
	uint64_t deadline;
	int sigfd;
	int pidfd;
};

/*
 * Start the clock. From here on SIGINT, SIGTERM and SIGHUP end the loop instead of hwbp.
 * @max_ns: length of the run, 0 for no limit.
 */
void loop_begin(struct loop *loop, uint64_t max_ns, int pidfd);

/*
 * Wait until one of @fds is readable, at most @max_ms; -1 for no limit. Returns false
 * if the run has ended.
 */
bool loop_wait(const struct loop *loop, const int *fds, size_t nr, int max_ms);

/* From here on signals end hwbp at once; a signal that has ended the loop is discarded. */
void loop_end(const struct loop *loop);

#endif
