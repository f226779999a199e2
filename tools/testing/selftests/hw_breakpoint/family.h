/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inherited events, from fork to exec, while they are changed.
 *
 * A family is an event and all events that children inherited from it; its members are
 * the tasks of these events.
 *
 * The rule: the attributes decide for each clone() whether an event is inherited. exec
 * removes the events that have remove_on_exec and releases their registers at once. A
 * change of a family reaches each member, also one that is being created. Operations
 * that run at the same time do not deadlock.
 */
#ifndef FAMILY_H
#define FAMILY_H

#include "bp_test.h"

#define MANY		100
#define SECOND		1000000000ULL

/* Pages to touch for the first time, which gives software events something to count */
#define NR_PAGES	256

/* The test page, and NR_PAGES other pages */
extern char *page;
extern char *pages;

/* Maps the test page and the other pages; returns false if this fails. */
bool map_pages(void);

/* ------------------------------------------------------------------ events */

/* Kinds of breakpoints that are inherited or removed */
#define KINDS_OF(fixture)						\
	FIXTURE_VARIANT(fixture)					\
	{								\
		__u64 config;						\
		bool bound;						\
	};								\
	FIXTURE_VARIANT_ADD(fixture, guaranteed) { };			\
	FIXTURE_VARIANT_ADD(fixture, flexible) { .config = BP_FLEXIBLE };	\
	FIXTURE_VARIANT_ADD(fixture, bound_to_a_cpu) { .bound = true }

/*
 * Attributes of a breakpoint on the page; bound to @cpu, where this task is pinned, if
 * not -1
 */
struct perf_event_attr attr_of_kind(struct __test_metadata *_metadata, __u64 config, int cpu);

/* Attributes of an event that counts page faults */
struct perf_event_attr faults(void);

/* Returns true if poll() reports a hangup for an event, whose ring it maps meanwhile. */
bool has_hung_up(int fd);

/* ---------------------------------------------------------- commands of a member */

enum {
	CMD_STORE = 1, CMD_FORK, CMD_VFORK, CMD_THREAD, CMD_FREE, CMD_FILL, CMD_TOUCH,
	CMD_NOBODY, CMD_EXEC, CMD_EXEC_THREAD, CMD_FORK_EXEC, CMD_VFORK_EXEC,
	CMD_SPAWN, CMD_GO,
};

/* A bp_work_fn for these commands */
long member(int cmd, void *arg);

/* Stores MANY times in a child of vfork(); returns its exit status. */
long store_in_vfork(void);

#define NR_SPAWN	6

/* Children that are created while the family is changed, and then wait. */
struct spawn {
	volatile int born;
	bool execute;
};

extern struct spawn *spawn;

/* -------------------------------------------------- operations for a limited time */

/*
 * Runs fn() in a process, and waits for it only after it has reported that fn()
 * returned: a process in a deadlock cannot even be killed. The process closes its
 * inherited descriptors; otherwise a reader of the test's output would wait for it as
 * well. Returns the result of fn(), or -ETIMEDOUT.
 */
int run_bounded(int (*fn)(__u64 until), __u64 time, int seconds);

/* go_on() returns true until this time of CLOCK_MONOTONIC. */
extern __u64 run_until;
bool go_on(void);

/* Disables and enables all events of this task. */
void switch_mine(void);

/* Executes this program with the argument @what: "--work", "--store", ... in family.c */
void __attribute__((noreturn)) exec_image(const char *what);

/* Executes this program again and again until @until, and exits with 0. */
void exec_until(__u64 until);

#endif /* FAMILY_H */
