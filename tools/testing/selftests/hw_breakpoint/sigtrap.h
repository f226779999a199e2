/* SPDX-License-Identifier: GPL-2.0 */
/*
 * attr.sigtrap: a hit becomes a SIGTRAP in the thread that made it.
 *
 * The rule: a hit made while SIGTRAP is not blocked gives a signal before the next
 * instruction, with the address and the event's sig_data at the time of the hit, to
 * the thread that made it. If one instruction hits several breakpoints, each gives a
 * signal. Hits made while SIGTRAP is blocked, by the kernel on behalf of the thread,
 * or of events that are no breakpoints coalesce: the first one is seen. With bit 2
 * of attr.config each hit of a breakpoint gives a signal, up to a limit. An event
 * that is closed or disabled drops its hits that are not pending yet. No hit is ever
 * seen by another task or by another program image.
 *
 * Built as 64-bit, as ia32 and as x32 program: each has a layout of siginfo of its own.
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
 * Programs with 32-bit pointers repeat a tenth as often: what repetition finds does not
 * depend on the ABI.
 */
#ifdef __LP64__
#define TIMES(n)		(n)
#else
#define TIMES(n)		((n) / 10)
#endif

/* attr.config: each hit gives a signal. */
#define SIGTRAP_QUEUE		(1ULL << 2)

/* Hits of such an event that are kept: in the event, and one that is pending. */
#define KEPT_MIN		32
#define KEPT_MAX		33

/* ------------------------------------------------------------------ instructions */

#ifdef __i386__
#define ASM_CALL __attribute__((regparm(1)))
#else
#define ASM_CALL
#endif

/*
 * count_func() adds one to *n with the instruction at count_insn; the next one is at
 * count_next. step_func() and step_store_func() go through their middle with the
 * trap flag set.
 */
void ASM_CALL count_func(void *n);

void step_func(void);

void ASM_CALL step_store_func(void *p);

extern const char count_insn[], count_next[], step_insn[];

/* Something to watch; what is told of it is told by its number. */
char *word(int i);

#define DATA(i)			(0x51670000UL + (i))

/* How often store_step() got behind its store. */
extern __thread volatile int steps;

void store_step(void *p);

/* ----------------------------------------------------------------- what was seen */

/*
 * The fields of the signal where the ABI has them: a program with 64-bit pointers
 * has a hole before them, and an x32 program the layout of an ia32 one.
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
 * @info: what it says
 * @ip: where the thread stood
 * @step: how often it got behind a store_step()
 * @depth: handlers that were running already
 */
struct seen {
	struct trap_info info;
	unsigned long ip;
	int step;
	int depth;
};

#define MAX_SEEN		256

/* Each thread takes down what it gets. */
extern __thread struct seen seen[MAX_SEEN];

extern __thread volatile int nr_seen, nr_traced, nr_other, depth;
extern __thread void (*in_handler)(int nr);
void on_trap(int sig, siginfo_t *info, void *context);
void handle_traps(int flags);
void forget_seen(void);
bool was_seen(int nr, const void *addr, unsigned long data, __u32 flags);
void expect_seen(struct __test_metadata *_metadata, int nr, const void *addr, unsigned long data,
		 __u32 flags);

/* That of a hit of word(i) by its own event */
void expect_word(struct __test_metadata *_metadata, int nr, int i, __u32 flags);

void block(void);
void unblock(void);
bool is_pending(void);

/*
 * Takes a SIGTRAP that is pending; returns its code, or a negative errno if there is
 * none. The C library of ia32 would ask for it with a 32-bit time.
 */
int take_pending(struct trap_info *taken);

void send_trap_to_self(void);

/* In a child, where nothing may be expected: says what is wrong and fails. */
#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: not so: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			return 1;					\
		}							\
	} while (0)

/* The same where others wait for what comes next: goes on, and says the first. */
#define NOTE(bad, cond)							\
	do {								\
		if (!(cond) && !(bad)++) {				\
			fprintf(stderr, "# %s:%d: not so: %s\n",	\
				__FILE__, __LINE__, #cond);		\
		}							\
	} while (0)

/* ------------------------------------------------------------------------- events */

/* Whether the events that are opened from now on have SIGTRAP_QUEUE */
extern bool queue;

struct perf_event_attr trap_attr(const void *addr, unsigned long data);
struct perf_event_attr word_attr(int i);
struct perf_event_attr insn_attr(const void *addr, unsigned long data);
int watch(int i);
int watch_insn(const void *addr, unsigned long data);

/* Kernel-mode hits as well, which takes a privilege. */
int watch_kernel(int i, unsigned int type);

/* A nap, so that others run */
void nap(void);

/* ------------------------------------------------------------------------ workers */

/* W_HIT: a store to words 0, 1 and 2, in this order. */
enum { W_WATCH, W_HIT, W_HIT_0, W_HIT_1, W_BLOCK, W_UNBLOCK, W_SEEN, W_CHECK, W_PENDING, W_FORGET };

#define W_HITS			3

void hit_words(void);
int watch_words(void);

/* Is what was seen the hits of hit_words(), and nothing else? */
bool words_were_seen(__u32 flags);

long worker(int cmd, void *arg);

/* -------------------------------------------------------------------- the program */

int exec_self(const char *mode);

/* ---------------------------------------------------- what several files share */

extern __thread int *counted;
void look_at_counted(int nr);

enum { DO_CLOSE, DO_DISABLE, DO_RESET, DO_MODIFY, NR_DO };

int change_event(int fd, int what, const void *addr, unsigned long data);

#define MEMBERS			4
#define LAPS			TIMES(200)

/*
 * The members of a family hand on a token, so that the CPU goes from one of them to
 * the next; who has it makes a hit. Contexts that are alike may be swapped then.
 */
int run_laps(int me);

/* Opens the events of run_laps(), which the family inherits; gives the first the token. */
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
