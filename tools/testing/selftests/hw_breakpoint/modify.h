/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES.
 *
 * The rule: the ioctl can change what a breakpoint watches, whether it is disabled and
 * its sig_data, and nothing else. It changes the event and all events that children
 * inherited from it, or none of them. A hit before the change counts for the old
 * address, a hit after it for the new one, and other events are not affected.
 * Attributes that must not change are compared with those that were passed to
 * perf_event_open(), even if the kernel has adapted them since.
 *
 * Built as 64-bit and as ia32 program: the number of the ioctl contains the size of a
 * pointer.
 */
#ifndef MODIFY_H
#define MODIFY_H

#include "bp_test.h"

#define MAX_STACK	"/proc/sys/kernel/perf_event_max_stack"
#define NEIGHBOURS	3
#define MANY		4000
#define KERNEL_ADDR	(BP_WORD == 8 ? 0xffffffff81000000ULL : 0xc1000000ULL)

/* Functions to watch */
void first_func(void);
void second_func(void);
void neighbour_func(void);

/* ------------------------------------------------------------------------- spots */

/*
 * Something to watch and an access to it: a store for W, a load for RW, a call for X.
 * The first spots are of the same word, to test changes of length and type alone.
 */
struct spot {
	unsigned int type;
	unsigned int word;
	void (*func)(void);
	unsigned int len;
};

/* Spots to move to; after these, one spot for each neighbour and one for the leader */
#define SPOTS		10

/* Some spots by name */
enum { FIRST_BYTE = 0, FIRST_LONG = 1, SECOND_BYTE = 2, READ_LONG = 6, FIRST_FUNC = 8 };

char *word(int i);
unsigned long spot_addr(int i);
void hit(int i, int times);

/* Returns true if an event that watches spot @watched is hit by an access to spot @i. */
bool sees(int watched, int i);

void watch(struct perf_event_attr *attr, int i);
struct perf_event_attr spot_attr(int i);
long long count_any(int fd);

/*
 * Returns the count of an event, and expects that it ran for as long as it was enabled.
 */
long long count(struct __test_metadata *_metadata, int fd);

/* ----------------------------------------------------------------------- workers */

/* Commands of a worker: hit a spot, or one of these */
enum { CMD_SPIN = -1, CMD_FORK = -2, CMD_EXEC = -3, CMD_STORE_BOTH = -4 };

#define HIT(spot, times)	((spot) << 16 | (times))

struct shared {
	int spinning;
	int go;
	int stop;
};

extern struct shared *shared;

/* With one thread that emulates all CPUs, a pause lets the next CPU run. */
void pause_cpu(void);

long worker(int cmd, void *arg);
__u64 next_addr(struct bp_ring *ring);

/* -------------------------------------------------- helpers of several test files */

/*
 * Modifies the event to another spot and back, with the attributes that it was opened
 * with.
 */
void expect_modifiable(struct __test_metadata *_metadata, int fd,
		       const struct perf_event_attr *opened);

/*
 * Four breakpoints, and a clock event that shows whether the group was ever scheduled
 * out
 */
struct group {
	struct perf_event_attr attr[BP_SLOTS];
	int fd[BP_SLOTS + 1];
	long long want[BP_SLOTS];
	int at[BP_SLOTS];
};

void open_group(struct __test_metadata *_metadata, struct group *g, pid_t pid);

#ifndef BP_NO_TESTS
/* Fixture of tests of attributes of an event on FIRST_BYTE */
FIXTURE(attr)
{
	struct bp_cpus cpus;
	struct perf_event_attr attr;
	char max_stack[16];
};

FIXTURE_SETUP(attr)
{
	self->cpus = bp_online_cpus();
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	shared = bp_map_shared();
	ASSERT_TRUE(!!shared);
	self->attr = spot_attr(FIRST_BYTE);
	bp_read_file(MAX_STACK, self->max_stack, sizeof(self->max_stack));
}

FIXTURE_TEARDOWN(attr)
{
	bp_teardown(_metadata);
	if (!geteuid())
		bp_write_file(MAX_STACK, self->max_stack);
}
#endif

#endif /* MODIFY_H */
