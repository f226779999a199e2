// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process with attr.sigtrap.
 *
 * The rule: the thread that made the access gets the signal, before its next
 * instruction, with the address and sig_data of the event at that time; whatever other
 * threads do meanwhile.  See process.h, and sigtrap.h for signals that wait.
 */
#include <sys/wait.h>

#include "process.h"

#define DATA		0x5167UL

static char *mem;
static __thread long nr_traps;
static __thread long nr_wrong;
static __thread unsigned long first_data[8];

#define TOGETHER	3

/* Operation of the handler of the first signal on all events that were hit */
static int fd_of_all[TOGETHER];
static void (*do_to_all)(int fd);

/* si_perf_data is not in the C library's siginfo_t yet. */
struct trap_info {
	int signo, error, code, hole;
	unsigned long addr;
	unsigned long data;
	__u32 type;
	__u32 flags;
};

static void on_trap(int sig, siginfo_t *siginfo, void *context)
{
	const struct trap_info *info = (const void *)siginfo;

	if (info->code != TRAP_PERF || info->addr - (unsigned long)mem >= BP_PAGE_SIZE ||
	    info->data != DATA + (info->addr - (unsigned long)mem))
		nr_wrong++;
	if (nr_traps < 8)
		first_data[nr_traps] = info->data;
	nr_traps++;
	for (int i = 0; do_to_all && i < TOGETHER; i++)
		do_to_all(fd_of_all[i]);
	do_to_all = NULL;
}

FIXTURE(trap)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int fd;
};

static struct perf_event_attr trap_attr(int offset)
{
	struct perf_event_attr attr = process_attr(mem + offset);

	attr.sample_period = 1;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sample_type = PERF_SAMPLE_ADDR;
	attr.sig_data = DATA + offset;
	return attr;
}

FIXTURE_SETUP(trap)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	self->attr = trap_attr(0);
	self->cpus = bp_online_cpus();
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(trap)
{
	bp_teardown(_metadata);
}

/* The number of signals that so many stores gave; -1 if one of them was wrong. */
static long traps_of_stores(int cmd, void *arg)
{
	nr_traps = 0;
	bp_store_times(arg, 1, cmd);
	return nr_wrong ? -1 : nr_traps;
}

TEST_F(trap, signal_goes_to_the_thread_that_hits)
{
	struct bp_worker before, after;

	close(self->fd);
	ASSERT_EQ(0, bp_start_thread(&before, traps_of_stores, mem));
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_start_thread(&after, traps_of_stores, mem));
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(3, bp_do(&before, 3));
		EXPECT_EQ(5, bp_do(&after, 5));
		EXPECT_EQ(2 * i, nr_traps);
		bp_store_times(mem, 1, 2);
		EXPECT_EQ(2 * (i + 1), nr_traps);
	}
	EXPECT_EQ(0, nr_wrong);
	EXPECT_EQ(100, bp_count(self->fd));
	EXPECT_EQ(0, bp_stop(&before));
	EXPECT_EQ(0, bp_stop(&after));
}

static long traps_of_call(int cmd, void *arg)
{
	unsigned int events = 0;

	nr_traps = 0;
	bp_func();
	for (int i = 0; i < nr_traps; i++)
		events |= 1U << (first_data[i] - DATA);
	return 100 * nr_traps + events;
}

static struct perf_event_attr call_attr(int nr)
{
	struct perf_event_attr attr = trap_attr(0);

	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = (unsigned long)bp_func_insn;
	attr.bp_len = sizeof(long);
	attr.sig_data = DATA + nr;
	return attr;
}

static void open_together(struct __test_metadata *_metadata)
{
	for (int i = 0; i < TOGETHER; i++) {
		struct perf_event_attr attr = call_attr(i);

		fd_of_all[i] = bp_open(&attr, 0, -1);
		ASSERT_LE(0, fd_of_all[i]);
	}
}

/* Each event gives a signal, one after the other, to each thread. */
TEST_F(trap, each_event_that_one_instruction_hits_signals)
{
	struct bp_worker thread;

	ASSERT_EQ(0, bp_start_thread(&thread, traps_of_call, NULL));
	open_together(_metadata);
	EXPECT_EQ(307, traps_of_call(0, NULL));
	EXPECT_EQ(307, bp_do(&thread, 0));
	for (int i = 0; i < TOGETHER; i++)
		EXPECT_EQ(2, bp_count(fd_of_all[i]));
	EXPECT_EQ(0, bp_stop(&thread));
}

static void close_one(int fd)
{
	close(fd);
}

static void disable_one(int fd)
{
	bp_disable(fd);
}

static void modify_one(int fd)
{
	struct perf_event_attr attr = call_attr(0);

	attr.bp_addr = (unsigned long)close_one;
	for (int nr = 0; nr < TOGETHER; nr++) {
		attr.sig_data = DATA + nr;
		bp_modify(fd, &attr);
	}
}

/* The signals of the others wait then, and are dropped. */
TEST_F(trap, handler_ends_the_events_whose_signals_wait)
{
	static void (*const end[])(int fd) = { disable_one, modify_one, close_one };

	for (int i = 0; i < 3; i++) {
		open_together(_metadata);
		do_to_all = end[i];
		traps_of_call(0, NULL);
		EXPECT_EQ(1, nr_traps);
		for (int k = 0; k < TOGETHER; k++)
			close(fd_of_all[k]);
	}
}

TEST_F(trap, blocked_signal_waits_and_coalesces)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	bp_store_times(mem, 1, 3);
	EXPECT_EQ(0, nr_traps);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	EXPECT_EQ(1, nr_traps);
	bp_store(mem, 1);
	EXPECT_EQ(2, nr_traps);
	EXPECT_EQ(4, bp_count(self->fd));
}

TEST_F(trap, closed_event_sends_nothing)
{
	for (int i = 0; i < 100; i++) {
		bp_store(mem, 1);
		close(self->fd);
		bp_store(mem, 1);
		EXPECT_EQ(i + 1, nr_traps);
		self->fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, self->fd);
	}
}

static int exit_of_image(void *arg)
{
	char *argv[] = { "sh", NULL };
	int fd;

	fd = bp_open(arg, 0, -1);
	if (fd < 0)
		return 1;
	bp_store(mem, 1);
	if (nr_traps != 1)
		return 2;
	execv("/proc/self/exe", argv);
	return 3;
}

/* The image that is executed has no handler; it must not get a signal. */
static __attribute__((constructor)) void new_image(int argc, char **argv)
{
	if (strcmp(argv[0], "sh"))
		return;
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(4);
	bp_store(BP_PAGE, 1);
	_exit(0);
}

TEST_F(trap, event_is_removed_on_exec)
{
	EXPECT_EQ(0, bp_in_child(exit_of_image, &self->attr));
}

/* ------------------------------------------------------- threads during the open */

#define NEW_THREADS		32

struct opening {
	pthread_t thread[NEW_THREADS];
	struct perf_event_attr attr;
	int created;
	int opened;
	long traps;
};

static void *store_when_opened(void *arg)
{
	struct opening *o = arg;

	while (!__atomic_load_n(&o->opened, __ATOMIC_ACQUIRE))
		sched_yield();
	bp_store(mem, 1);
	__atomic_add_fetch(&o->traps, nr_wrong ? -1000 : nr_traps, __ATOMIC_RELAXED);
	return NULL;
}

static void *create_threads(void *arg)
{
	struct opening *o = arg;
	int err = 0;

	for (int i = 0; i < NEW_THREADS; i++) {
		err = err ?: start_thread(&o->thread[i], store_when_opened, o);
		__atomic_store_n(&o->created, i + 1, __ATOMIC_RELEASE);
	}
	return err ? arg : NULL;
}

/* Opens when so many threads have been created: the next one is being created. */
static int open_while_threads_are_created(void *arg)
{
	struct opening o = { .attr = trap_attr(0) };
	pthread_t creator;
	void *failed;

	if (start_thread(&creator, create_threads, &o))
		return 1;
	while (__atomic_load_n(&o.created, __ATOMIC_ACQUIRE) < (long)arg)
		bp_pause();
	if (bp_open(&o.attr, 0, -1) < 0)
		return 2;
	__atomic_store_n(&o.opened, 1, __ATOMIC_RELEASE);
	pthread_join(creator, &failed);
	if (failed)
		return 3;
	for (int i = 0; i < NEW_THREADS; i++)
		pthread_join(o.thread[i], NULL);
	return o.traps == NEW_THREADS ? 0 : 4;
}

/* The first event of a process: no thread that is created meanwhile misses its signal. */
TEST_F(trap, threads_that_are_created_during_the_open_get_signals)
{
	close(self->fd);
	for (long i = 0; i < bp_rounds(40); i++)
		EXPECT_EQ(0, bp_in_child(open_while_threads_are_created, (void *)(i % 16)));
}

/* ------------------------------------------------------------------------- storms */

#define THREADS		64
#define STORES		bp_rounds(300)

struct storm {
	pthread_barrier_t barrier;
	long stores;
	long traps;
	long wrong;
	int stop;
};

/*
 * A thread stores to both words, one of which is watched at the time: each hit gives a
 * signal, and the data is that of the address.
 */
static void *store_in_storm(void *arg)
{
	struct storm *storm = arg;

	pthread_barrier_wait(&storm->barrier);
	for (int i = 0; i < STORES; i++) {
		bp_store(mem, 1);
		bp_store(mem + 8, 1);
		if (i % 16 == 0)
			sched_yield();
	}
	__atomic_add_fetch(&storm->traps, nr_traps, __ATOMIC_RELAXED);
	__atomic_add_fetch(&storm->wrong, nr_wrong, __ATOMIC_RELAXED);
	__atomic_add_fetch(&storm->stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void run_storm(struct __test_metadata *_metadata, struct storm *storm, int fd,
		      struct perf_event_attr *attr, bool alone)
{
	pthread_t thread[THREADS];
	long modified = 0;

	pthread_barrier_init(&storm->barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, start_thread(&thread[i], store_in_storm, storm));
	pthread_barrier_wait(&storm->barrier);
	while (attr && __atomic_load_n(&storm->stop, __ATOMIC_RELAXED) < THREADS) {
		modified++;
		*attr = trap_attr(modified % 2 ? 8 : 0);
		EXPECT_EQ(0, bp_modify(fd, attr));
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, storm->wrong);
	if (alone)
		EXPECT_EQ(storm->traps, bp_count(fd));
}

TEST_F(trap, storm_of_64_threads)
{
	struct storm storm = { };

	run_storm(_metadata, &storm, self->fd, NULL, true);
	EXPECT_EQ(THREADS * STORES, storm.traps);
}

static void *close_and_open(void *arg)
{
	struct storm *storm = arg;
	struct perf_event_attr attr = trap_attr(8);

	while (__atomic_load_n(&storm->stop, __ATOMIC_RELAXED) < THREADS) {
		int fd = bp_open(&attr, 0, -1);

		if (fd < 0) {
			__atomic_add_fetch(&storm->wrong, 1, __ATOMIC_RELAXED);
			break;
		}
		sched_yield();
		close(fd);
	}
	return NULL;
}

/* Hits whose event is closed before their signals are sent do not affect other events. */
TEST_F(trap, storm_of_64_threads_while_another_event_is_closed)
{
	struct storm storm = { };
	pthread_t thread;

	ASSERT_EQ(0, start_thread(&thread, close_and_open, &storm));
	run_storm(_metadata, &storm, self->fd, NULL, false);
	EXPECT_LE(THREADS * STORES, storm.traps);
	EXPECT_EQ(THREADS * STORES, bp_count(self->fd));
	pthread_join(thread, NULL);
}

TEST_F(trap, storm_of_64_threads_while_it_is_modified)
{
	struct storm storm = { };

	run_storm(_metadata, &storm, self->fd, &self->attr, true);
	EXPECT_LT(0, storm.traps);
}

TEST_HARNESS_MAIN
