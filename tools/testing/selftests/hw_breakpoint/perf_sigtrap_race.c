// SPDX-License-Identifier: GPL-2.0
/*
 * Signals of hits as a race detector uses them, for a limited time.
 *
 * The rule: breakpoints that watch a whole process are moved all the time, and each
 * signal is for an access that its thread has just made: it has the address of that
 * access and the sig_data of this address. It comes before the next instruction or, for
 * accesses made with SIGTRAP blocked, in the order of accesses. At the end there were
 * as many signals as hits.
 *
 * The test takes PERF_SIGTRAP_RACE_SECONDS of the environment, or 10 seconds.
 */
#include <ucontext.h>

#include "bp_test.h"

#define SECOND			1000000000ULL
#define DEFAULT_SECONDS		10

#define NR_THREADS		16
#define NR_EVENTS		3
/* Words between which an event is moved; no two events share one. */
#define PER_EVENT		3
#define NR_WORDS		(NR_EVENTS * PER_EVENT)
/* Maximum number of accesses made with SIGTRAP blocked */
#define BATCH			20

/* The least numbers of changes and of rounds, on a busy host as well */
#define MIN_MOVES		100
#define MIN_ROUNDS		50

/* Word n of the process; after these, the word of thread n - NR_WORDS */
static char *word(int n)
{
	return n < NR_WORDS ? BP_PAGE + 64 * n : BP_PAGE + 1024 + 128 * (n - NR_WORDS);
}

static int word_at(unsigned long addr)
{
	for (int n = 0; n < NR_WORDS + NR_THREADS; n++) {
		if (addr == (unsigned long)word(n))
			return n;
	}
	return -1;
}

static unsigned long data_of(int n)
{
	return 0xace00000UL + n;
}

static int event_of(int n)
{
	return n % NR_EVENTS;
}

static struct perf_event_attr word_attr(int n)
{
	struct perf_event_attr attr = bp_attr_w(word(n), 1);

	attr.config = BP_SIGTRAP_QUEUE;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sample_period = 1;
	attr.sig_data = data_of(n);
	attr.read_format = PERF_FORMAT_LOST;
	return attr;
}

struct trap_info {
	__s32 signo;
	__s32 error;
	__s32 code;
	__s32 hole;
	unsigned long addr;
	unsigned long data;
	__u32 type;
	__u32 flags;
};

/**
 * struct runner - a thread that makes accesses
 * @thread: handle of the C library
 * @nr: number of the thread
 * @tid: thread ID
 * @fd: event of the thread alone
 * @seed: state of the random numbers
 * @made: words to which the thread has just stored
 * @nr_made: number of @made
 * @nr_past: number of @made that can no longer be the cause of a signal
 * @flags: expected si_perf_flags
 * @hits: number of signals of the process's events
 * @own_hits: number of signals of @fd
 * @own_made: number of accesses to the thread's own word
 * @accesses: number of all accesses
 * @bad: number of signals without an access
 * @first_bad: one of these signals
 * @may_echo: accept a repeated hit together with another one, see bp_settle()
 * @echoes: number of repeated hits
 * @missed: number of accesses to the own word without signal
 */
struct runner {
	pthread_t thread;
	int nr;
	pid_t tid;
	int fd;
	unsigned int seed;
	int made[BATCH];
	volatile int nr_made, nr_past;
	__u32 flags;
	long hits[NR_EVENTS];
	long own_hits, own_made, accesses;
	long bad, missed;
	struct trap_info first_bad;
	bool may_echo;
	long echoes;
};

static struct runner runners[NR_THREADS];
static __thread struct runner *me;
static int nr_ready, go, stop;
/* Number of signals of threads that make no accesses */
static long strays;

/* Returns true if the signal is for an access that had no signal before. */
static bool accounted(struct runner *r, const struct trap_info *info, unsigned long ip)
{
	int n = word_at(info->addr), past = r->nr_past;

	if (info->signo != SIGTRAP || info->code != TRAP_PERF || info->error ||
	    info->type != PERF_TYPE_BREAKPOINT || info->flags != r->flags ||
	    n < 0 || info->data != data_of(n))
		return false;
	if (!info->flags && ip != (unsigned long)bp_store_next)
		return false;
	while (past < r->nr_made && r->made[past] != n)
		past++;
	if (past == r->nr_made) {
		r->echoes++;
		return r->may_echo && r->nr_made;
	}
	r->nr_past = past + 1;
	if (n < NR_WORDS)
		r->hits[event_of(n)]++;
	else
		r->own_hits++;
	return true;
}

static void on_trap(int sig, siginfo_t *raw, void *context)
{
	ucontext_t *uc = context;
	struct trap_info info;

	bp_settle(BP_PAGE);
	memcpy(&info, raw, sizeof(info));
	if (!me) {
		__atomic_add_fetch(&strays, 1, __ATOMIC_RELAXED);
	} else if (!accounted(me, &info, bp_context_ip(uc))) {
		if (!me->bad++)
			me->first_bad = info;
	}
}

static void mask_trap(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(how, &set, NULL);
}

/*
 * Calls bp_settle() before the store, too: a thread that was moved to another CPU right
 * after its hit did not call it on the old CPU.
 */
static void store_to(int n)
{
	bp_settle(BP_PAGE);
	bp_store_at(word(n));
	bp_settle(BP_PAGE);
}

static void store(struct runner *r)
{
	unsigned int random = bp_random(&r->seed);
	int n = random % (NR_WORDS + 1);

	if (n == NR_WORDS) {
		n += r->nr;
		r->own_made++;
	}
	r->made[r->nr_made] = n;
	r->nr_made++;
	r->accesses++;
	store_to(n);
}

/* Usually one access with SIGTRAP unblocked, sometimes several with SIGTRAP blocked */
static void run_batch(struct runner *r)
{
	unsigned int random = bp_random(&r->seed);

	if (random % 16) {
		r->flags = 0;
		store(r);
	} else {
		mask_trap(SIG_BLOCK);
		r->flags = TRAP_PERF_FLAG_ASYNC;
		for (int i = 0; i < BATCH; i++)
			store(r);
		mask_trap(SIG_UNBLOCK);
	}
	/* A signal that comes from here on is too late. */
	r->nr_made = 0;
	r->nr_past = 0;
	if (r->own_hits != r->own_made) {
		r->missed += r->own_made - r->own_hits;
		r->own_made = r->own_hits;
	}
	if (random % 8 == 0)
		sched_yield();
	else
		bp_pause();
}

static void *run(void *arg)
{
	struct runner *r = arg;
	struct perf_event_attr attr;

	me = r;
	r->tid = syscall(__NR_gettid);
	r->seed = r->nr + 1;
	attr = word_attr(NR_WORDS + r->nr);
	r->fd = bp_open(&attr, 0, -1);
	__atomic_add_fetch(&nr_ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		sched_yield();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		run_batch(r);
	return NULL;
}

FIXTURE(race)
{
	int fd[NR_EVENTS];
	int at[NR_EVENTS];
	__u64 time;
};

FIXTURE_SETUP(race)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
	const char *seconds = getenv("PERF_SIGTRAP_RACE_SECONDS");

	self->time = (seconds ? atoi(seconds) : DEFAULT_SECONDS) * SECOND;
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, sigaction(SIGTRAP, &sa, NULL));
	for (int i = 0; i < NR_EVENTS; i++) {
		struct perf_event_attr attr = word_attr(i);

		attr.inherit = 1;
		attr.inherit_thread = 1;
		self->fd[i] = bp_open(&attr, 0, -1);
		ASSERT_GE(self->fd[i], 0);
	}
}

FIXTURE_TEARDOWN(race)
{
	bp_teardown(_metadata);
}

static int move_to(FIXTURE_DATA(race) *self, int event, int n)
{
	struct perf_event_attr attr = word_attr(n);

	attr.inherit = 1;
	attr.inherit_thread = 1;
	return bp_modify(self->fd[event], &attr);
}

static bool has_failed(const struct runner *r)
{
	return __atomic_load_n(&r->bad, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&r->missed, __ATOMIC_RELAXED);
}

/* True when each event was hit, or when a signal was wrong or missing. */
static bool has_result(void)
{
	long hits[NR_EVENTS] = { };
	bool all = true;

	for (int i = 0; i < NR_THREADS; i++) {
		const struct runner *r = &runners[i];

		if (has_failed(r))
			return true;
		all &= __atomic_load_n(&r->own_hits, __ATOMIC_RELAXED) > 0;
		for (int k = 0; k < NR_EVENTS; k++)
			hits[k] += __atomic_load_n(&r->hits[k], __ATOMIC_RELAXED);
	}
	for (int k = 0; k < NR_EVENTS; k++)
		all &= hits[k] > 0;
	return all;
}

/* On a busy host the time may be over before each thread has run. */
static long move_about(FIXTURE_DATA(race) *self)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + self->time;
	unsigned int seed = 4711;
	long moves = 0;

	while (bp_now(CLOCK_MONOTONIC) < end ||
	       ((moves < MIN_MOVES || !has_result()) && bp_has_patience(end))) {
		int n = bp_random(&seed) % NR_WORDS;

		if (move_to(self, event_of(n), n))
			return -1;
		moves++;
	}
	return moves;
}

static void expect_none_bad(struct __test_metadata *_metadata, struct runner *r)
{
	EXPECT_EQ(0, r->bad) {
		TH_LOG("thread %d: code %d addr %lx data %lx flags %x, of word %d", r->nr,
		       r->first_bad.code, r->first_bad.addr, r->first_bad.data,
		       r->first_bad.flags, word_at(r->first_bad.addr));
	}
	EXPECT_EQ(0, r->missed);
}

static void expect_fine(struct __test_metadata *_metadata, struct runner *r)
{
	struct bp_hits own;

	expect_none_bad(_metadata, r);
	EXPECT_LT(0, r->own_hits);
	own = bp_hits(r->fd);
	EXPECT_EQ(own.count, r->own_hits);
	EXPECT_EQ(0, own.lost);
}

TEST_F_TIMEOUT(race, signals_during_hits_and_changes, 900)
{
	long hits[NR_EVENTS] = { }, accesses = 0, own = 0, moves;

	for (int i = 0; i < NR_THREADS; i++) {
		runners[i] = (struct runner){ .nr = i, .fd = -1 };
		ASSERT_EQ(0, pthread_create(&runners[i].thread, NULL, run, &runners[i]));
	}
	while (__atomic_load_n(&nr_ready, __ATOMIC_ACQUIRE) < NR_THREADS)
		sched_yield();
	for (int i = 0; i < NR_THREADS; i++)
		ASSERT_GE(runners[i].fd, 0);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	moves = move_about(self);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	EXPECT_LT(0, moves);
	for (int i = 0; i < NR_THREADS; i++) {
		struct runner *r = &runners[i];

		pthread_join(r->thread, NULL);
		while (!syscall(__NR_tgkill, getpid(), r->tid, 0))
			sched_yield();
		expect_fine(_metadata, r);
		for (int k = 0; k < NR_EVENTS; k++)
			hits[k] += r->hits[k];
		own += r->own_hits;
		accesses += r->accesses;
	}
	for (int k = 0; k < NR_EVENTS; k++) {
		struct bp_hits all = bp_hits(self->fd[k]);

		EXPECT_EQ(all.count, hits[k]);
		EXPECT_EQ(0, all.lost);
		EXPECT_LT(0, hits[k]);
	}
	EXPECT_EQ(0, strays);
	TH_LOG("%ld moves, %ld accesses, signals: %ld %ld %ld, %ld of own events", moves,
	       accesses, hits[0], hits[1], hits[2], own);
}

/* --------------------------------------------------------- short-lived threads */

#define SHORT_LIFE		6
#define NR_SHORT		8
#define STORES_A_ROUND		(NR_SHORT * SHORT_LIFE + NR_SHORT * (NR_SHORT - 1) / 2)

/* These breakpoints do not move: each store to their words gives one signal. */
static void *live_shortly(void *arg)
{
	struct runner *r = arg;

	me = r;
	r->tid = syscall(__NR_gettid);
	for (int i = 0; i < SHORT_LIFE; i++) {
		int n = (r->nr + i) % NR_EVENTS;

		r->made[0] = n;
		r->nr_made = 1;
		store_to(n);
		r->missed += !r->nr_past;
		r->nr_made = 0;
		r->nr_past = 0;
	}
	/*
	 * Hits whose signals were not sent when a thread exits are not counted as lost.
	 */
	mask_trap(SIG_BLOCK);
	for (int i = 0; i < r->nr; i++)
		store_to(0);
	return NULL;
}

/*
 * Context switches between a hit and bp_settle(): in the emulator a hit may, very
 * rarely, repeat the previous one on the same CPU.
 */
TEST_F_TIMEOUT(race, threads_come_and_go_during_hits, 900)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + self->time / 4;
	long rounds = 0, count = 0, echoes = 0, forgiven;

	while (bp_now(CLOCK_MONOTONIC) < end || rounds < MIN_ROUNDS) {
		for (int i = 0; i < NR_SHORT; i++) {
			runners[i] = (struct runner){ .nr = i, .may_echo = bp_emulated() };
			ASSERT_EQ(0, pthread_create(&runners[i].thread, NULL, live_shortly,
						    &runners[i]));
		}
		for (int i = 0; i < NR_SHORT; i++) {
			struct runner *r = &runners[i];

			pthread_join(r->thread, NULL);
			while (!syscall(__NR_tgkill, getpid(), r->tid, 0))
				sched_yield();
			expect_none_bad(_metadata, r);
			echoes += r->echoes;
		}
		rounds++;
	}
	EXPECT_EQ(0, strays);
	for (int k = 0; k < NR_EVENTS; k++) {
		count += bp_hits(self->fd[k]).count;
		EXPECT_EQ(0, bp_hits(self->fd[k]).lost);
	}
	TH_LOG("%ld rounds, %ld hits, %ld echoes", rounds, count, echoes);
	forgiven = bp_emulated() ? 1 + count / 1000 : 0;
	EXPECT_LE(rounds * STORES_A_ROUND, count);
	EXPECT_GE(rounds * STORES_A_ROUND + forgiven, count);
	EXPECT_GE(forgiven, echoes);
}

TEST_HARNESS_MAIN
