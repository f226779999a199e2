/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flexible breakpoints: more of them than there are registers.
 *
 * The rule: bit 0 of attr.config makes a breakpoint flexible. Any number of flexible
 * breakpoints may be open as long as one register is left for all of them. They are
 * multiplexed on the registers that the other breakpoints, the guaranteed ones, leave:
 * each of them gets a register after some time, and read() returns for how long it had
 * one. A guaranteed breakpoint counts as if there were no flexible ones.
 *
 * A test waits up to PATIENCE_NS for what depends on time: a machine may be busy, and an
 * emulator or a debug kernel is slow. Times are compared only with each other.
 */
#ifndef FLEXIBLE_H
#define FLEXIBLE_H

#include "bp_test.h"

/* perf_event_mux_interval_ms during a test: the time between two rotations */
#define INTERVAL_MS		4
#define INTERVAL_NS		(INTERVAL_MS * 1000000ULL)

/* Maximum time to wait for something that must happen, on a very slow machine */
#define PATIENCE_NS	(30 * 1000000000ULL)

/* Maximum time until scaled counts come close to the number of stores */
#define ESTIMATE_NS	(5 * 1000000000ULL)

/* Words of 64 bytes in the test page */
#define MAX_EVENTS	64

extern struct bp_cpus cpus;
extern int cpu;
char *word(int i);
void store_words(int first, int nr, int rounds);
int set_interval(int ms);
void set_up(struct __test_metadata *_metadata);
void tear_down(struct __test_metadata *_metadata);
struct perf_event_attr guaranteed(int i);
struct perf_event_attr flexible(int i);
struct perf_event_attr of_process(int i);
struct perf_event_attr software(__u64 config);
struct perf_event_attr inherited(int i);
int open_flexible(pid_t pid, int on);
int open_guaranteed(pid_t pid, int on);

/* Opens nr guaranteed breakpoints, which hold registers until the test ends. */
void hold(struct __test_metadata *_metadata, int nr, pid_t pid, int on);

/* ------------------------------------------------------------- sets of events */

/* Events, and what begin() and look() have read from them */
struct events {
	int nr;
	int fd[MAX_EVENTS];
	struct bp_reading from[MAX_EVENTS];
	struct bp_reading to[MAX_EVENTS];
};

/* Adds an event; its attributes come from one of the functions above. */
void add(struct __test_metadata *_metadata, struct events *e, struct perf_event_attr attr,
	 pid_t pid, int on, int group);

void add_disabled(struct __test_metadata *_metadata, struct events *e,
		  struct perf_event_attr attr, pid_t pid, int on);

/* Adds breakpoints on nr words, each in a group of its own. */
void add_words(struct __test_metadata *_metadata, struct events *e,
	       struct perf_event_attr (*attr)(int i), int first, int nr, pid_t pid, int on);

/*
 * Adds a group of breakpoints on nr words, led by the first one. They are enabled
 * together.
 */
void add_group(struct __test_metadata *_metadata, struct events *e,
	       struct perf_event_attr (*attr)(int i), int first, int nr, pid_t pid, int on);

void close_events(struct events *e);
void read_event(struct __test_metadata *_metadata, int fd, struct bp_reading *r);

/* Reads all events, and expects that times and counts did not decrease. */
void look(struct __test_metadata *_metadata, struct events *e);

void begin(struct __test_metadata *_metadata, struct events *e);
__u64 counted(struct events *e, int i);
__u64 enabled(struct events *e, int i);
__u64 running(struct events *e, int i);
__u64 all_counted(struct events *e);
__u64 all_running(struct events *e);
__u64 all_enabled(struct events *e);
void show(struct __test_metadata *_metadata, struct events *e);

/* Returns true if a and b differ by at most percent of b plus more. */
bool within(double a, double b, double percent, double more);

/* ------------------------------------------------------------------- the load */

/*
 * How steady a load was: its speed in stretches of one rotation, which is how long an
 * event keeps its register if many others wait.
 */
#define STRETCH_NS	INTERVAL_NS

struct steadiness {
	__u64 start;
	__u64 rounds;
	double time;
	double sum;
	double squares;
};

/* The variance of the speed, relative to the square of its mean */
double unsteadiness(struct steadiness *s);

/* Stores to words, repeated for as long as a test needs them */
struct load {
	int first;
	int nr;
	/* If set, called instead of four rounds of stores by this process */
	void (*go_on)(struct load *load);
	/* The workers that make the rounds of stores in let_worker() and let_two() */
	struct bp_worker *worker;
	/* Rounds of stores since the test last set this to 0 */
	__u64 rounds;
	struct steadiness steady;
};

void go_on(struct load *load);

/* For a load that other tasks make on their own: only wait. */
void let_others(struct load *load);

void let_worker(struct load *load);
void let_two(struct load *load);

/* Sleeps between rounds, for times of different length. */
void sleep_often(struct load *load);

/* Moves to the next CPU more often than events are rotated. */
void move_often(struct load *load);

/*
 * Continues the load until the first event was enabled for ns since begin(). Reads
 * events rarely: reading one that runs takes longer, and the load must be steady.
 */
void go_on_for(struct __test_metadata *_metadata, struct load *load, struct events *e,
	       __u64 ns);

/* Continues the load for a number of rotations, between begin() and look(). */
void go_on_rotations(struct __test_metadata *_metadata, struct load *load, struct events *e,
		     int rotations);

/* Returns the number of events that had a register and a hit since begin(). */
int served(struct events *e);

/*
 * Continues the load until each event had a register and a hit; returns false after
 * PATIENCE_NS.
 */
bool all_get_a_register(struct __test_metadata *_metadata, struct events *e, struct load *load);

/* Expects that each event had a register several times: once could be by chance. */
void expect_rotation(struct __test_metadata *_metadata, struct events *e, struct load *load);

/*
 * Expects that least to most registers were in use. A round of the load hits one word
 * for each register that has an event; a rotation in the middle of a round adds or
 * removes up to BP_SLOTS hits.
 */
void expect_in_use(struct __test_metadata *_metadata, struct events *e, struct load *load,
		   int least, int most);

/*
 * Expects that two events which share a register get the same share of it. The share is
 * measured in stores of the load, because times also grow while the machine is stopped.
 */
void expect_even(struct __test_metadata *_metadata, struct load *load, struct events *e);

/*
 * Expects count hits of each event, and that it ran for all of the time, to the
 * nanosecond.
 */
void expect_missed_nothing(struct __test_metadata *_metadata, struct events *e, __u64 count);

/* Expects that b ran as long as a; a is read before and after b. */
void expect_same_time(struct __test_metadata *_metadata, int a, int b);

/*
 * Expects that the group of nr events from first on ran together: their counts are
 * equal, except for one hit if a rotation comes in the middle of a round.
 */
void expect_whole(struct __test_metadata *_metadata, struct events *e, int first, int nr);

/*
 * Starts a child that stores to nr words until *stop, on the same CPUs as this process.
 */
pid_t busy(volatile __u64 *stop, int first, int nr);

/* ------------------------------------------------------------------- workers */

enum { CMD_FREE = -1, CMD_OPEN_FLEXIBLE = -2, CMD_NOBODY = -3 };

/* A bp_work_fn: makes cmd rounds of stores to the words of a load, or executes a CMD_ command. */
long worker(int cmd, void *arg);

/* ---------------------------------------------------------------------- exec */

/*
 * Forks a child that waits for a byte written to *@gate, makes @before rounds of stores
 * to @nr words, and executes this program again, which makes @after rounds of stores to
 * words 0 to 23 at the same addresses.
 */
pid_t start_exec(int *gate, int nr, int before, int after);

/* A fixture with one set of events */
#define FLEXIBLE_FIXTURE(name)						\
	FIXTURE(name)							\
	{								\
		struct events e;					\
	};								\
	FIXTURE_SETUP(name)						\
	{								\
		set_up(_metadata);					\
	}								\
	FIXTURE_TEARDOWN(name)						\
	{								\
		tear_down(_metadata);					\
	}

#endif /* FLEXIBLE_H */
