// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process are changed while its threads run; see process.h.
 *
 * The rule of a modification: after the ioctl has returned no thread hits the old address,
 * and none misses the new one. The rule of all operations at once: none fails for another
 * reason than that the process or the file is gone, other events miss nothing, and
 * afterwards every register is available.
 *
 * Not built as ia32 program, as perf_process_event.c.
 */
#define PROCESS_FIXTURE
#include "process.h"

/* ------------------------------------------------------- a modification has returned */

#define PER_CPU		2
#define MOST_RUNNERS	(PER_CPU * BP_MAX_CPUS)
#define ROUNDS		100

/* The numbers differ: a hit of the old address cannot replace a missed one of the new. */
#define OLD_STORES	1
#define NEW_STORES	3

struct runners {
	pthread_t thread[MOST_RUNNERS];
	char *mem;
	int cpu[MOST_RUNNERS];
	int nr;
	int started;
	int round;
	int stored;
	int stop;
};

static char *address_of(const struct runners *r, int round)
{
	return r->mem + SECOND * (round % 2);
}

/* Runs in user mode until it sees that a modification has returned. */
static void *run(void *arg)
{
	struct runners *r = arg;
	int seen = 0, round;

	bp_pin(r->cpu[__atomic_fetch_add(&r->started, 1, __ATOMIC_RELAXED)]);
	for (unsigned int i = 1; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); i++) {
		round = __atomic_load_n(&r->round, __ATOMIC_ACQUIRE);
		if (round != seen) {
			bp_store_times(address_of(r, seen), 1, OLD_STORES);
			bp_store_times(address_of(r, round), 1, NEW_STORES);
			seen = round;
			__atomic_add_fetch(&r->stored, 1, __ATOMIC_RELEASE);
		} else if (i % 256 == 0) {
			sched_yield();
		}
	}
	return NULL;
}

TEST_F(process, no_thread_hits_the_old_address_or_misses_the_new_one)
{
	struct runners r = { .mem = self->mem, .nr = PER_CPU * self->cpus.nr };
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	for (int i = 0; i < r.nr; i++)
		r.cpu[i] = self->cpus.cpu[i % self->cpus.nr];
	for (int i = 0; i < r.nr; i++)
		ASSERT_EQ(0, start_thread(&r.thread[i], run, &r));
	for (int round = 1; round <= ROUNDS; round++) {
		self->attr.bp_addr = (unsigned long)address_of(&r, round);
		ASSERT_EQ(0, bp_modify(fd, &self->attr));
		__atomic_store_n(&r.round, round, __ATOMIC_RELEASE);
		while (__atomic_load_n(&r.stored, __ATOMIC_ACQUIRE) < round * r.nr)
			sched_yield();
		ASSERT_EQ((long long)round * r.nr * NEW_STORES, bp_count(fd));
	}
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < r.nr; i++)
		pthread_join(r.thread[i], NULL);
}

/* ------------------------------------------------------------- all operations at once */

#define TARGET		"PERF_PROCESS_TARGET"
#define TARGET_THREADS	8
#define TARGETS		40
#define MOST_FILES	64

struct random {
	unsigned int state;
};

static unsigned int random_below(struct random *random, unsigned int n)
{
	return bp_random(&random->state) % n;
}

struct target {
	struct random random;
	int thread;
	int last;
	int stores;
	int started;
};

/* One thread ends the program after a number of stores: by exec, or by exit. */
static void end_program(struct target *t)
{
	char *argv[] = { "perf_process_race", NULL }, *envp[] = { NULL, NULL }, env[64];

	if (!random_below(&t->random, 3))
		_exit(0);
	snprintf(env, sizeof(env), TARGET "=%u", t->random.state);
	envp[0] = env;
	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

static void *store_and_end(void *arg)
{
	struct target *t = arg;
	bool ends = __atomic_fetch_add(&t->started, 1, __ATOMIC_RELAXED) == t->last;

	for (int i = 0; !ends || i < t->stores; i++) {
		bp_store(BP_PAGE + SECOND * (i % 2), 1);
		if (i % 16 == 0)
			sched_yield();
	}
	end_program(t);
	return NULL;
}

/* A clone fails with EAGAIN while another thread is in execve(), which then ends this one. */
static int start_one(struct target *t)
{
	pthread_t thread;
	int err;

	do
		err = start_thread(&thread, store_and_end, t);
	while (err == EAGAIN);

	return err;
}

static __attribute__((constructor)) void target(void)
{
	const char *seed = getenv(TARGET);
	struct target t = { };

	if (!seed)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	t.random.state = strtoul(seed, NULL, 10);
	t.last = random_below(&t.random, TARGET_THREADS);
	t.stores = random_below(&t.random, 1000);
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	for (int i = 1; i < TARGET_THREADS; i++) {
		if (start_one(&t))
			_exit(3);
	}
	store_and_end(&t);
}

/**
 * struct race - what the threads of the test share
 * @attr: attributes that the events of the target have in common
 * @cpus: the CPUs, the last of which goes offline and returns
 * @pid: the target, 0 before the first one
 * @fd: an event of the target, or one that has been closed, or -1
 * @attr_of: by file, the attributes of the event
 * @stop: all threads end
 * @opened: number of events that were opened
 * @modified: number of events that were modified
 * @stores: what the process of the test has stored
 * @failed: the first error that must not be
 */
struct race {
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	pid_t pid;
	int fd;
	struct perf_event_attr attr_of[MOST_FILES];
	int stop;
	int opened;
	int modified;
	long stores;
	int failed;
};

static bool stopped(const struct race *race)
{
	return __atomic_load_n(&race->stop, __ATOMIC_ACQUIRE);
}

static void fail(struct race *race, int err)
{
	int none = 0;

	__atomic_compare_exchange_n(&race->failed, &none, err, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

static struct perf_event_attr random_attr(const struct race *race, struct random *random)
{
	struct perf_event_attr attr = race->attr;

	attr.sample_period = 1 + random_below(random, 3);
	attr.disabled = random_below(random, 2);
	attr.remove_on_exec = !random_below(random, 3);
	attr.enable_on_exec = !attr.remove_on_exec && random_below(random, 2);
	if (!random_below(random, 4))
		attr.config |= BP_FLEXIBLE;
	return attr;
}

/* The event replaces the one before, which is closed while others may use it. */
static void *open_and_close(void *arg)
{
	struct random random = { .state = 1 };
	struct race *race = arg;
	int fd = -1;

	while (!stopped(race)) {
		pid_t pid = __atomic_load_n(&race->pid, __ATOMIC_ACQUIRE);
		struct perf_event_attr attr = random_attr(race, &random);
		int cpu = random_below(&random, 3) ? -1 :
			  race->cpus.cpu[random_below(&random, race->cpus.nr)];
		int new = pid ? bp_open(&attr, pid, cpu) : -ESRCH;

		if (new >= MOST_FILES) {
			fail(race, -EMFILE);
		} else if (new >= 0) {
			race->opened++;
			race->attr_of[new] = attr;
			__atomic_store_n(&race->fd, new, __ATOMIC_RELEASE);
			close(fd);
			fd = new;
		} else if (new != -ESRCH && (new != -ENODEV || cpu < 0)) {
			fail(race, new);
		}
		usleep(random_below(&random, 500));
	}
	close(fd);
	return NULL;
}

static void modify(struct race *race, int fd, struct random *random)
{
	struct perf_event_attr attr;

	if (fd < 0)
		return;
	attr = race->attr_of[fd];
	attr.bp_addr = race->attr.bp_addr + SECOND * random_below(random, 2);
	attr.disabled = random_below(random, 2);
	race->modified += !bp_modify(fd, &attr);
}

/* A file that has just been closed is another event, or none. */
static void *change(void *arg)
{
	struct random random = { .state = 2 };
	struct race *race = arg;

	while (!stopped(race)) {
		int fd = __atomic_load_n(&race->fd, __ATOMIC_ACQUIRE);

		switch (random_below(&random, 6)) {
		case 0:
			bp_enable(fd);
			break;
		case 1:
			bp_disable(fd);
			break;
		case 2:
			bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1 + random_below(&random, 4));
			break;
		case 3:
			bp_count(fd);
			break;
		default:
			modify(race, fd, &random);
			break;
		}
		if (!random_below(&random, 8))
			sched_yield();
	}
	return NULL;
}

static void *toggle_cpu(void *arg)
{
	struct race *race = arg;
	int cpu = race->cpus.cpu[race->cpus.nr - 1];

	while (!stopped(race)) {
		if (bp_cpu_online(cpu, false) || bp_cpu_online(cpu, true))
			fail(race, -EIO);
		usleep(2000);
	}
	return NULL;
}

/* The control: an event of this process, which counts all the time. */
static void *store_all_the_time(void *arg)
{
	struct race *race = arg;

	while (!stopped(race)) {
		bp_store(BP_PAGE + 2 * SECOND, 1);
		race->stores++;
		if (race->stores % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static pid_t start_target(int seed)
{
	char *argv[] = { "perf_process_race", NULL }, *envp[] = { NULL, NULL }, env[64];
	pid_t pid;

	snprintf(env, sizeof(env), TARGET "=%d", seed);
	envp[0] = env;
	pid = bp_fork();
	if (pid)
		return pid;
	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

/* On a debug kernel each step takes much longer. */
static int nr_targets(void)
{
	return access("/proc/lockdep", F_OK) ? TARGETS : TARGETS / 4;
}

/* A target may end before any of its events is modified: more are started then. */
static bool modified_or_failed(const struct race *race)
{
	return __atomic_load_n(&race->modified, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&race->failed, __ATOMIC_RELAXED);
}

TEST_F(process, all_operations_at_once)
{
	void *(*fns[])(void *arg) = { open_and_close, change, store_all_the_time, toggle_cpu };
	struct race race = { .attr = self->attr, .cpus = self->cpus, .fd = -1 };
	int control, nr = 0, targets = nr_targets();
	struct bp_worker worker;
	pthread_t thread[4];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	self->attr.bp_addr += 2 * SECOND;
	control = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, control);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, start_thread(&thread[i], fns[i], &race));
	while (nr < targets || (nr < 10 * targets && !modified_or_failed(&race))) {
		pid_t pid = start_target(nr++);

		ASSERT_LE(0, pid);
		__atomic_store_n(&race.pid, pid, __ATOMIC_RELEASE);
		EXPECT_EQ(0, bp_wait(pid));
	}
	__atomic_store_n(&race.stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.failed);
	TH_LOG("%d events of %d processes, modified %d times", race.opened, nr, race.modified);
	EXPECT_LT(0, race.modified);
	EXPECT_EQ(race.stores, bp_count(control));

	/* All registers are free for the next process. */
	ASSERT_EQ(0, bp_start(&worker, store_times, self->mem));
	EXPECT_EQ(BP_SLOTS, bp_free_slots_with(&race.attr, worker.pid, -1));
	control = bp_open(&race.attr, worker.pid, -1);
	ASSERT_LE(0, control);
	EXPECT_EQ(3, bp_do(&worker, 3));
	EXPECT_EQ(3, bp_count(control));
	EXPECT_EQ(0, bp_stop(&worker));
}

TEST_HARNESS_MAIN
