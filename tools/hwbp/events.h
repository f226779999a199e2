/* SPDX-License-Identifier: GPL-2.0 */
/* Breakpoint events of perf: open them, read their records and counts. */
#ifndef HWBP_EVENTS_H
#define HWBP_EVENTS_H

#include <stdint.h>
#include <sys/types.h>

#include "location.h"
#include "request.h"
#include "rings.h"
#include "target.h"

struct events;

/* Registers in the order in which perf samples them */
enum user_reg {
	USER_AX, USER_BX, USER_CX, USER_DX, USER_SI, USER_DI, USER_BP, USER_SP, USER_IP,
	USER_R8, USER_R9, USER_R10, USER_R11, USER_R12, USER_R13, USER_R14, USER_R15,
	NR_USER_REGS,
};

/**
 * struct user_regs - user mode registers and stack at the time of a hit
 * @is64: the program runs in 64-bit mode
 * @regs: registers by enum user_reg; only SI and DI are valid without -g
 * @stack: copy of the top of the stack, with -g
 * @stack_size: length of @stack in bytes
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
 * @ip: instruction pointer that the processor reported
 * @pid: process
 * @tid: thread
 * @cpu: CPU
 * @kernel: the access was made in kernel mode
 * @loc: index of the place
 * @user: registers and stack, NULL if not known
 * @before: bytes of the place before the access, NULL if not known
 * @after: and after it
 */
struct hit {
	uint64_t time;
	uint64_t ip;
	pid_t pid;
	pid_t tid;
	uint32_t cpu;
	bool kernel;
	size_t loc;
	const struct user_regs *user;
	const uint8_t *before;
	const uint8_t *after;
};

/**
 * enum values - where the values of a place before and after a hit come from
 * @VALUES_NONE: they are not shown
 * @VALUES_KERNEL: the kernel records them with the hit
 * @VALUES_READ: hwbp has to read them, see readback.h
 */
enum values {
	VALUES_NONE,
	VALUES_KERNEL,
	VALUES_READ,
};

/* Handlers of records. events_drain() calls them in the order of time. */
struct event_ops {
	void (*hit)(void *arg, const struct hit *hit);
	void (*comm)(void *arg, pid_t pid, pid_t tid, const char *comm, bool exec);
	void (*fork)(void *arg, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid);
	void (*map)(void *arg, pid_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
		    const char *path);
};

/**
 * struct counts - sums over all events of one place
 * @hits: number of accesses
 * @enabled_ns: time for which the watched threads ran
 * @running_ns: part of @enabled_ns in which the place had a register
 * @lost: number of hits for which a ring buffer had no room; complete when all records
 *	  have been read
 * @silent: with --changed, number of accesses that left the place as it was; not in @hits
 */
struct counts {
	uint64_t hits;
	uint64_t enabled_ns;
	uint64_t running_ns;
	uint64_t lost;
	uint64_t silent;
};

/*
 * Open events for @nr places in all threads of the target. The first event may be hit
 * before the last one is open. Exits with a message on failure; no event stays open
 * then. @syms: symbols of the process, for the message.
 */
struct events *events_open(const struct watch_options *opt, const struct location *locs,
			   size_t nr, struct symbols *syms, const struct target *t);
void events_disable(struct events *ev);

/*
 * Pass all records that are older than @until to @ops. Returns true if there were any, or
 * younger ones.
 */
bool events_drain(struct events *ev, uint64_t until, const struct event_ops *ops, void *arg);

/* The ring buffers, NULL if hits are only counted. */
struct rings *events_rings(const struct events *ev);

enum values events_values(const struct events *ev);

/* Fill in @counts of each place. */
void events_count(struct events *ev, struct counts *counts);
/* Print a note for each online CPU whose hits are not recorded. */
void events_note_cpus(const struct events *ev);
/* Close all events, which ends the watch. */
void events_close(struct events *ev);

#endif
