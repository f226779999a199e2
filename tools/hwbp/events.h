/* SPDX-License-Identifier: GPL-2.0 */
/* Breakpoint events of perf: opening, ring buffers, counts. */
#ifndef HWBP_EVENTS_H
#define HWBP_EVENTS_H

#include <stdint.h>
#include <sys/types.h>

#include "location.h"
#include "options.h"
#include "rings.h"
#include "target.h"

struct events;

/* The order in which perf samples registers. */
enum user_reg {
	USER_AX, USER_BX, USER_CX, USER_DX, USER_SI, USER_DI, USER_BP, USER_SP, USER_IP,
	USER_R8, USER_R9, USER_R10, USER_R11, USER_R12, USER_R13, USER_R14, USER_R15,
	NR_USER_REGS,
};

/**
 * struct user_regs - registers and stack of a hit
 * @is64: of a 64-bit program
 * @regs: SI and DI; all, if the callers are asked for
 * @stack: the topmost bytes of the stack, if the callers are asked for
 * @stack_size: how many
 */
struct user_regs {
	bool is64;
	uint64_t regs[NR_USER_REGS];
	const uint8_t *stack;
	uint64_t stack_size;
};

/**
 * struct hit - one access
 * @time: CLOCK_MONOTONIC in nanoseconds
 * @ip: as the processor reported it
 * @kernel: made in kernel mode
 * @user: registers and stack, NULL if not known
 */
struct hit {
	uint64_t time;
	uint64_t ip;
	pid_t pid;
	pid_t tid;
	uint32_t cpu;
	bool kernel;
	const struct user_regs *user;
};

/* Told, in the order of time, what happened. */
struct event_ops {
	void (*hit)(void *arg, const struct hit *hit);
	void (*comm)(void *arg, pid_t pid, pid_t tid, const char *comm, bool exec);
	void (*fork)(void *arg, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid);
	void (*map)(void *arg, pid_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
		    const char *path);
};

/**
 * struct counts - sums over all events
 * @hits: accesses
 * @enabled_ns: time that the threads ran
 * @running_ns: time of it that they were watched
 * @lost: hits for which there was no room in a ring buffer
 */
struct counts {
	uint64_t hits;
	uint64_t enabled_ns;
	uint64_t running_ns;
	uint64_t lost;
};

/*
 * Open the events of all threads of the target; the first may hit before the
 * last is open.  Dies with one line when that is not possible; nothing is left
 * behind then.
 */
struct events *events_open(const struct options *opt, const struct location *loc,
			   const struct target *t);
void events_disable(struct events *ev);

/*
 * Hand over what is in the ring buffers and older than @until.  Returns true if
 * something younger is waiting.
 */
bool events_drain(struct events *ev, uint64_t until, const struct event_ops *ops, void *arg);

/* Where the hits come in, NULL if they are only counted. */
struct rings *events_rings(const struct events *ev);

void events_count(struct events *ev, struct counts *counts);
/* Close all; what is watched no longer is. */
void events_close(struct events *ev);

#endif
