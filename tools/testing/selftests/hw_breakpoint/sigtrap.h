/* SPDX-License-Identifier: GPL-2.0 */
/*
 * attr.sigtrap: a hit gives a SIGTRAP to the thread that made it.
 *
 * The rule: a hit made while SIGTRAP is not blocked gives a signal before the next
 * instruction, with the address and the event's sig_data at the time of the hit, to the
 * thread that made it. If one instruction hits several breakpoints, each gives a
 * signal. These hits coalesce into the signal of the first one: hits made while SIGTRAP
 * is blocked, hits by the kernel on behalf of the thread, and hits of events that are
 * not breakpoints. With bit 2 of attr.config each hit of a breakpoint gives a signal,
 * up to a limit. An event that is closed or disabled drops its hits whose signals are
 * not pending yet. No other task and no other program image gets the signal of a hit.
 *
 * Built as 64-bit, as ia32 and as x32 program: each ABI has its own layout of siginfo.
 */
#ifndef SIGTRAP_H
#define SIGTRAP_H

#include <sys/resource.h>
#include <ucontext.h>

#include "bp_test.h"

#ifndef TRAP_TRACE
#define TRAP_TRACE		2
#endif

#define SYNC			0
#define ASYNC			TRAP_PERF_FLAG_ASYNC

/*
 * Programs with 32-bit pointers repeat a tenth as often: the results of repetition do
 * not depend on the ABI.
 */
#ifdef __LP64__
#define TIMES(n)		(n)
#else
#define TIMES(n)		((n) / 10)
#endif

/*
 * Number of hits of an event with BP_SIGTRAP_QUEUE that give signals: those in the event, and
 * one whose signal is pending
 */
#define KEPT_MIN		32
#define KEPT_MAX		33

/* Number of hits of all such events that a thread stores besides the pending signal */
#define KEPT_OF_THREAD		128

/* ------------------------------------------------------------------ instructions */

#ifdef __i386__
#define ASM_CALL __attribute__((regparm(1)))
#else
#define ASM_CALL
#endif

/*
 * count_func() adds one to *n with the instruction at count_insn; the next instruction
 * is at count_next. step_func() and step_store_func() execute their middle part with
 * the trap flag set.
 */
void ASM_CALL count_func(void *n);

void step_func(void);

void ASM_CALL step_store_func(void *p);

extern const char count_insn[], count_next[], step_insn[];

/* The word i of the test page; DATA(i) is the sig_data of its event. */
char *word(int i);

#define DATA(i)			(0x51670000UL + (i))

/* Number of times that store_step() has executed the instruction after its store */
extern __thread volatile int steps;

void store_step(void *p);

/* ----------------------------------------------------------------- signals */

/*
 * The fields of siginfo at their place in the ABI: a program with 64-bit pointers has
 * padding before them, and an x32 program has the layout of ia32.
 */
struct trap_info {
	__s32 signo;
	__s32 error;
	__s32 code;
#ifdef __LP64__
	__s32 hole;
#endif
	unsigned long addr;
	unsigned long data;
	__u32 type;
	__u32 flags;
};

/**
 * struct seen - a signal of a hit
 * @info: its siginfo
 * @ip: instruction pointer of the thread
 * @step: value of steps
 * @depth: number of handlers that were already running
 */
struct seen {
	struct trap_info info;
	unsigned long ip;
	int step;
	int depth;
};

#define MAX_SEEN		256

/* Each thread records its own signals. */
extern __thread struct seen seen[MAX_SEEN];

extern __thread volatile int nr_seen, nr_traced, nr_other, depth;
extern __thread void (*in_handler)(int nr);
void on_trap(int sig, siginfo_t *info, void *context);
void handle_traps(int flags);
void forget_seen(void);
bool was_seen(int nr, const void *addr, unsigned long data, __u32 flags);
void expect_seen(struct __test_metadata *_metadata, int nr, const void *addr, unsigned long data,
		 __u32 flags);

/* Expects the signal of a hit of word(i) by its own event. */
void expect_word(struct __test_metadata *_metadata, int nr, int i, __u32 flags);

void block(void);
void unblock(void);
bool is_pending(void);

/*
 * Waits for a SIGTRAP at most @nsec and takes it; returns its code, or a negative errno.
 * The C library of ia32 would use a system call with a 32-bit time.
 */
int take_signal(struct trap_info *taken, long nsec);

/* The same for a SIGTRAP that is pending */
int take_pending(struct trap_info *taken);

void send_trap_to_self(void);

/*
 * For children, which cannot use EXPECT_*(): print the condition, and exit with
 * failure.
 */
#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: failed: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			return 1;					\
		}							\
	} while (0)

/*
 * The same for a worker, on which other tasks wait: print the first condition that
 * fails, and continue.
 */
#define NOTE(bad, cond)							\
	do {								\
		if (!(cond) && !(bad)++) {				\
			fprintf(stderr, "# %s:%d: failed: %s\n",	\
				__FILE__, __LINE__, #cond);		\
		}							\
	} while (0)

/* ------------------------------------------------------------------------- events */

/* Events that are opened from now on have BP_SIGTRAP_QUEUE, and are of the process. */
extern bool queue, process;

struct perf_event_attr trap_attr(const void *addr, unsigned long data);
struct perf_event_attr word_attr(int i);
struct perf_event_attr insn_attr(const void *addr, unsigned long data);
int watch(int i);
int watch_insn(const void *addr, unsigned long data);

/* Includes hits in kernel mode, which requires a privilege. */
int watch_kernel(int i, unsigned int type);

/* A short sleep, so that other tasks run */
void nap(void);

/* ------------------------------------------------------------------------ workers */

/* W_HIT: a store to words 0, 1 and 2, in this order. */
enum { W_WATCH, W_HIT, W_HIT_0, W_HIT_1, W_BLOCK, W_UNBLOCK, W_SEEN, W_CHECK, W_PENDING, W_FORGET };

#define W_HITS			3

void hit_words(void);
int watch_words(void);

/* Returns true if the signals were those of hit_words(), and no others. */
bool words_were_seen(__u32 flags);

long worker(int cmd, void *arg);

/* -------------------------------------------------------------------- the program */

int exec_self(const char *mode);

/* ---------------------------------------------------- helpers of several test files */

extern __thread int *counted;
void look_at_counted(int nr);

enum { DO_CLOSE, DO_DISABLE, DO_RESET, DO_MODIFY, NR_DO };

int change_event(int fd, int what, const void *addr, unsigned long data);

#define MEMBERS			4
#define LAPS			TIMES(200)

/*
 * The members of a family pass a token, so that the CPU switches from one of them to
 * the next; the member with the token makes a hit. perf may swap their contexts at
 * these switches.
 */
int run_laps(int me);

/*
 * Opens the events of run_laps(), which the family inherits; gives the token to the
 * first member.
 */
int prepare_laps(struct __test_metadata *_metadata, int fd[2]);

struct perf_event_attr other_attr(__u32 type, __u64 config);
int tracepoint_id(const char *name);
bool was_other(int nr, __u32 type, __u32 flags);

#ifndef BP_NO_TESTS
/* The fixture of most tests: the attributes of an event of word 0 */
FIXTURE(trap)
{
	struct perf_event_attr attr;
	int fd;
};

FIXTURE_SETUP(trap)
{
	struct rlimit no_core = { };

	setrlimit(RLIMIT_CORE, &no_core);
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	self->attr = word_attr(0);
	self->fd = -1;
}

FIXTURE_TEARDOWN(trap)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

static inline void open_it(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self)
{
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}
#endif

#endif /* SIGTRAP_H */
