// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process: what they count, and how long they live; see process.h.
 *
 * Not built as ia32 program: the C library of ia32 waits by a futex() with 32-bit times,
 * which a kernel need not have.
 */
#define PROCESS_FIXTURE
#include "process.h"

static void open_it(struct __test_metadata *_metadata, FIXTURE_DATA(process) *self)
{
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, self->fd);
}

/* ---------------------------------------------------------------- which accesses */

#define THREADS		1000

struct crowd {
	pthread_t thread[THREADS];
	pthread_barrier_t there;
	pthread_barrier_t go;
	char *mem;
};

static void *store_once(void *arg)
{
	struct crowd *crowd = arg;

	pthread_barrier_wait(&crowd->there);
	pthread_barrier_wait(&crowd->go);
	bp_store(crowd->mem, 1);
	return NULL;
}

TEST_F(process, each_of_1000_existing_threads_counts)
{
	struct crowd crowd = { .mem = self->mem };

	pthread_barrier_init(&crowd.there, NULL, THREADS + 1);
	pthread_barrier_init(&crowd.go, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, start_thread(&crowd.thread[i], store_once, &crowd));
	pthread_barrier_wait(&crowd.there);
	open_it(_metadata, self);
	pthread_barrier_wait(&crowd.go);
	for (int i = 0; i < THREADS; i++)
		pthread_join(crowd.thread[i], NULL);
	EXPECT_EQ(THREADS, bp_count(self->fd));
}

#define ROUNDS		bp_rounds(30)
#define CREATORS	4

struct churn;

/**
 * struct creator - a thread that creates threads, one after the other
 * @churn: all of them
 * @thread: the creator
 * @step: odd while a thread that it has created may store
 */
struct creator {
	struct churn *churn;
	pthread_t thread;
	unsigned int step;
};

struct churn {
	struct creator creator[CREATORS];
	char *mem;
	int opened;
	int stop;
	long stores;
};

/*
 * A store that a thread makes after it has seen that open returned is a hit: open
 * returns when the event is in the context of each CPU. A thread may be late, and store
 * when the event of the next round is open.
 */
static void *store_if_opened(void *arg)
{
	struct creator *creator = arg;
	struct churn *churn = creator->churn;

	/* Pairs with finish_stores(): that waits for this step, or this sees 0. */
	__atomic_add_fetch(&creator->step, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&churn->opened, __ATOMIC_SEQ_CST)) {
		bp_store(churn->mem, 1);
		__atomic_add_fetch(&churn->stores, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&creator->step, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *create_threads(void *arg)
{
	struct creator *creator = arg;
	pthread_t thread;

	while (!__atomic_load_n(&creator->churn->stop, __ATOMIC_RELAXED)) {
		if (!start_thread(&thread, store_if_opened, creator))
			pthread_join(thread, NULL);
	}
	return NULL;
}

static void start_churn(struct __test_metadata *_metadata, struct churn *churn)
{
	for (int i = 0; i < CREATORS; i++) {
		struct creator *creator = &churn->creator[i];

		creator->churn = churn;
		ASSERT_EQ(0, start_thread(&creator->thread, create_threads, creator));
	}
}

static void stop_churn(struct churn *churn)
{
	__atomic_store_n(&churn->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < CREATORS; i++)
		pthread_join(churn->creator[i].thread, NULL);
}

/* Afterwards no thread stores; returns what all have stored. */
static long finish_stores(struct churn *churn)
{
	__atomic_store_n(&churn->opened, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < CREATORS; i++) {
		unsigned int *step = &churn->creator[i].step;
		unsigned int now = __atomic_load_n(step, __ATOMIC_SEQ_CST);

		while (now % 2 && __atomic_load_n(step, __ATOMIC_ACQUIRE) == now)
			sched_yield();
	}
	return __atomic_exchange_n(&churn->stores, 0, __ATOMIC_RELAXED);
}

TEST_F(process, threads_created_during_open_count)
{
	struct churn churn = { .mem = self->mem };

	start_churn(_metadata, &churn);
	for (int round = 0; round < ROUNDS; round++) {
		open_it(_metadata, self);
		__atomic_store_n(&churn.opened, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&churn.stores, __ATOMIC_RELAXED) < 20)
			sched_yield();
		EXPECT_EQ(finish_stores(&churn), bp_count(self->fd));
		close(self->fd);
	}
	stop_churn(&churn);
}

static int store_here(void *mem)
{
	bp_store_times(mem, 1, 3);
	return 0;
}

static char child_stack[65536] __aligned(16);

TEST_F(process, other_process_does_not_count)
{
	pid_t pid;

	open_it(_metadata, self);
	EXPECT_EQ(0, bp_in_child(store_here, self->mem));
	EXPECT_EQ(0, bp_count(self->fd));

	pid = vfork();
	if (!pid) {
		bp_store(self->mem, 1);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, bp_count(self->fd));

	/* With CLONE_VM alone the child shares the memory, but is another process. */
	pid = clone(store_here, child_stack + sizeof(child_stack), CLONE_VM | SIGCHLD,
		    self->mem);
	ASSERT_LT(0, pid);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, bp_count(self->fd));

	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(self->fd));
}

/* The process and another process run alternately on one CPU. */
TEST_F(process, switches_between_processes_and_threads)
{
	struct bp_worker thread, child;

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));
	open_it(_metadata, self);
	for (int i = 0; i < 50; i++) {
		bp_do(&thread, 1);
		bp_do(&child, 1);
		bp_store(self->mem, 1);
		EXPECT_EQ(2 * (i + 1), bp_count(self->fd));
	}
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(process, any_thread_names_the_process)
{
	struct bp_worker first, second;

	ASSERT_EQ(0, bp_start_thread(&first, store_times, self->mem));
	ASSERT_EQ(0, bp_start_thread(&second, store_times, self->mem));
	self->fd = bp_open(&self->attr, first.pid, -1);
	ASSERT_LE(0, self->fd);
	bp_do(&first, 1);
	bp_do(&second, 2);
	bp_store_times(self->mem, 1, 4);
	EXPECT_EQ(7, bp_count(self->fd));
	/* The event does not end with the thread whose tid was passed to open. */
	EXPECT_EQ(0, bp_stop(&first));
	bp_do(&second, 8);
	EXPECT_EQ(15, bp_count(self->fd));
	EXPECT_EQ(0, bp_stop(&second));
}

TEST_F(process, event_of_one_cpu_counts_there_only)
{
	BP_NEED_CPUS(self->cpus, 2);
	self->fd = bp_open(&self->attr, 0, self->cpus.cpu[1]);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_count(self->fd));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	bp_store_times(self->mem, 1, 2);
	EXPECT_EQ(2, bp_count(self->fd));
}

TEST_F(process, event_of_any_cpu_counts_on_each_cpu)
{
	open_it(_metadata, self);
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store(self->mem, 1);
		EXPECT_EQ(i + 1, bp_count(self->fd));
	}
}

/* --------------------------------------------------------------- life of processes */

struct shared {
	int ready;
	int go;
	int stored;
	char images[2];
};

static void wait_for(int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static char *thread_mem;

static void *store_on_request(void *arg)
{
	struct shared *shared = arg;

	set(&shared->ready);
	wait_for(&shared->go);
	bp_store_times(thread_mem, 1, 5);
	set(&shared->stored);
	for (;;)
		pause();
	return NULL;
}

TEST_F(process, threads_count_while_the_leader_is_a_zombie)
{
	struct shared *shared = bp_map_shared();
	pthread_t thread;
	int second;
	pid_t pid;

	thread_mem = self->mem;
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		start_thread(&thread, store_on_request, shared);
		syscall(__NR_exit, 0);
	}
	wait_for(&shared->ready);
	bp_wait_for_state(pid, 'Z');
	self->fd = bp_open(&self->attr, pid, -1);
	ASSERT_LE(0, self->fd);
	set(&shared->go);
	wait_for(&shared->stored);
	EXPECT_EQ(5, bp_count(self->fd));
	second = bp_open(&self->attr, pid, -1);
	EXPECT_LE(0, second);
}

TEST_F(process, last_thread_ends_it)
{
	struct bp_worker child;
	long long count;

	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));
	self->fd = bp_open(&self->attr, child.pid, -1);
	ASSERT_LE(0, self->fd);
	bp_do(&child, 3);
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(3, bp_count(self->fd));
	/* The event of a process that has exited has no register, and cannot be enabled again. */
	bp_enable(self->fd);
	count = bp_count(self->fd);
	EXPECT_EQ(3, count);
	if (!geteuid())
		EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
	EXPECT_EQ(-ESRCH, bp_open(&self->attr, child.pid, -1));
}

struct poller {
	pthread_t thread;
	pid_t tid;
	int fd;
	short revents;
};

static void *poll_until_it_ends(void *arg)
{
	struct poller *poller = arg;
	struct pollfd poll_fd = { .fd = poller->fd, .events = POLLIN };

	__atomic_store_n(&poller->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	poll(&poll_fd, 1, -1);
	poller->revents = poll_fd.revents;
	return NULL;
}

TEST_F(process, poller_that_sleeps_learns_that_it_has_ended)
{
	struct poller poller = { };
	struct bp_worker child;
	struct bp_ring ring;

	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));
	poller.fd = bp_open(&self->attr, child.pid, self->cpus.cpu[0]);
	ASSERT_LE(0, poller.fd);
	/* poll() does not wait for an event without a ring buffer. */
	ASSERT_EQ(0, bp_ring_map(&ring, poller.fd, 1, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, start_thread(&poller.thread, poll_until_it_ends, &poller));
	wait_for(&poller.tid);
	bp_wait_for_state(poller.tid, 'S');
	EXPECT_EQ(0, bp_stop(&child));
	pthread_join(poller.thread, NULL);
	EXPECT_TRUE(poller.revents & POLLHUP);
	bp_ring_unmap(&ring);
}

/* A zombie without threads has a task, but no process to watch. */
TEST_F(process, process_that_has_exited_is_refused)
{
	pid_t pid;

	for (int with_event = 0; with_event < 2; with_event++) {
		struct shared *shared = bp_map_shared();

		pid = bp_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			wait_for(&shared->go);
			_exit(0);
		}
		if (with_event)
			ASSERT_LE(0, bp_open(&self->attr, pid, -1));
		set(&shared->go);
		bp_wait_for_state(pid, 'Z');
		EXPECT_EQ(-ESRCH, bp_open(&self->attr, pid, -1));
		EXPECT_EQ(-ESRCH, bp_open(&self->attr, pid, self->cpus.cpu[0]));
		EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	}
}

#define EXEC_STORES	7

/* @images: how many to execute, one after the other: "1" or "2" */
static void exec_image(const char *images)
{
	char *argv[] = { "perf_process", NULL }, *envp[] = { NULL, NULL }, env[32];

	snprintf(env, sizeof(env), "PERF_PROCESS_EXEC=%s", images);
	envp[0] = env;
	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

/* The last new image stores. */
static __attribute__((constructor)) void new_image(void)
{
	const char *images = getenv("PERF_PROCESS_EXEC");

	if (!images)
		return;
	if (*images == '2') {
		raise(SIGSTOP);
		exec_image("1");
	}
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	bp_store_times(BP_PAGE, 1, EXEC_STORES);
	_exit(0);
}

static void *exec_on_request(void *arg)
{
	struct shared *shared = arg;

	set(&shared->ready);
	wait_for(&shared->go);
	exec_image(shared->images);
	return NULL;
}

static void exec_by(struct __test_metadata *_metadata, FIXTURE_DATA(process) *self,
		    bool by_leader, long long hits)
{
	struct shared *shared = bp_map_shared();
	pthread_t thread;
	pid_t pid;

	strcpy(shared->images, "1");
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (by_leader)
			exec_on_request(shared);
		start_thread(&thread, exec_on_request, shared);
		for (;;)
			pause();
	}
	wait_for(&shared->ready);
	self->fd = bp_open(&self->attr, pid, -1);
	ASSERT_LE(0, self->fd);
	set(&shared->go);
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(hits, bp_count(self->fd));
	close(self->fd);
	munmap(shared, BP_PAGE_SIZE);
}

TEST_F(process, exec_by_leader_or_thread_goes_on)
{
	exec_by(_metadata, self, true, EXEC_STORES);
	exec_by(_metadata, self, false, EXEC_STORES);
}

TEST_F(process, remove_on_exec)
{
	self->attr.remove_on_exec = 1;
	exec_by(_metadata, self, true, 0);
	exec_by(_metadata, self, false, 0);
}

TEST_F(process, enable_on_exec)
{
	self->attr.disabled = 1;
	exec_by(_metadata, self, true, 0);
	self->attr.enable_on_exec = 1;
	exec_by(_metadata, self, true, EXEC_STORES);
	exec_by(_metadata, self, false, EXEC_STORES);
}

/* An event that the user disables after exec stays disabled at the next exec. */
TEST_F(process, enable_on_exec_is_for_one_exec)
{
	struct shared *shared = bp_map_shared();
	int status;
	pid_t pid;

	strcpy(shared->images, "2");
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		exec_on_request(shared);
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	self->fd = bp_open(&self->attr, pid, -1);
	ASSERT_LE(0, self->fd);
	set(&shared->go);
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, bp_disable(self->fd));
	kill(pid, SIGCONT);
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(0, bp_count(self->fd));
}

/* ----------------------------------------------------------------------- controls */

TEST_F(process, disable_enable_reset)
{
	struct bp_worker thread;

	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	self->attr.disabled = 1;
	open_it(_metadata, self);
	for (int i = 0; i < 2 * self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[i % self->cpus.nr]));
		bp_do(&thread, 1);
		EXPECT_EQ(0, bp_count(self->fd));
		ASSERT_EQ(0, bp_enable(self->fd));
		bp_do(&thread, 3);
		bp_store(self->mem, 1);
		EXPECT_EQ(4, bp_count(self->fd));
		ASSERT_EQ(0, bp_disable(self->fd));
		bp_do(&thread, 1);
		EXPECT_EQ(4, bp_count(self->fd));
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_RESET, 0));
	}
	/* prctl() changes the events that the caller has opened. */
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	bp_do(&thread, 1);
	EXPECT_EQ(1, bp_count(self->fd));
	EXPECT_EQ(0, bp_stop(&thread));
}

/*
 * The context of the CPU already has an event, of no process. A CPU that learned which
 * process it runs only at the next switch would ignore the event until then. Nothing makes
 * this task sleep between open and read.
 */
TEST_F(process, enable_takes_effect_before_the_next_switch)
{
	struct perf_event_attr dummy = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int here = self->cpus.cpu[0];

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(here));
	ASSERT_LE(0, bp_open(&dummy, -1, here));
	self->attr.disabled = 1;
	for (int round = 0; round < 100; round++) {
		self->fd = bp_open(&self->attr, 0, round % 2 ? -1 : here);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, bp_enable(self->fd));
		bp_store(self->mem, 1);
		EXPECT_EQ(1, bp_count(self->fd)) {
			TH_LOG("round %d", round);
		}
		close(self->fd);
	}
}

TEST_F(process, modify_is_for_all_threads)
{
	struct bp_worker thread[2], second;
	int other_cpu = self->cpus.cpu[self->cpus.nr - 1];

	ASSERT_EQ(0, bp_start_thread(&thread[0], store_times, self->mem));
	ASSERT_EQ(0, bp_start_thread(&thread[1], store_times, self->mem + 2 * SECOND));
	ASSERT_EQ(0, bp_start_thread(&second, store_times, self->mem + 2 * SECOND));
	ASSERT_EQ(0, bp_pin_task(thread[1].pid, other_cpu));
	open_it(_metadata, self);
	bp_do(&thread[0], 1);
	bp_do(&thread[1], 10);
	EXPECT_EQ(1, bp_count(self->fd));
	self->attr.bp_addr += 2 * SECOND;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_do(&thread[0], 10);
	bp_do(&thread[1], 2);
	bp_do(&second, 2);
	bp_store(self->mem + 2 * SECOND, 1);
	EXPECT_EQ(6, bp_count(self->fd));
	self->attr.bp_len = 33;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &self->attr));
	bp_do(&thread[1], 1);
	EXPECT_EQ(7, bp_count(self->fd));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&thread[i]));
	EXPECT_EQ(0, bp_stop(&second));
}

/* Time stands still while other processes run: it is the time of the threads. */
TEST_F(process, times_advance_only_while_a_thread_runs)
{
	struct bp_reading before, after;
	struct bp_worker child;
	__u64 start;

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));
	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING;
	self->fd = bp_open(&self->attr, child.pid, -1);
	ASSERT_LE(0, self->fd);
	bp_do(&child, 1);
	bp_wait_for_state(child.pid, 'S');
	ASSERT_TRUE(bp_read(self->fd, &before));
	EXPECT_LT(0, before.running);
	start = bp_now(CLOCK_MONOTONIC);
	while (bp_now(CLOCK_MONOTONIC) - start < 20000000)
		usleep(1000);
	ASSERT_TRUE(bp_read(self->fd, &after));
	EXPECT_EQ(before.enabled, after.enabled);
	EXPECT_EQ(before.running, after.running);
	EXPECT_EQ(after.enabled, after.running);
	bp_do(&child, 1000);
	bp_wait_for_state(child.pid, 'S');
	ASSERT_TRUE(bp_read(self->fd, &after));
	EXPECT_LT(before.running, after.running);
	EXPECT_EQ(after.enabled, after.running);
	EXPECT_EQ(0, bp_stop(&child));
}

/*
 * The number of records of a type, all of which have to be of a thread of this process:
 * samples and PERF_RECORD_COMM begin with the pid and the tid.
 */
static int records_of(struct __test_metadata *_metadata, struct bp_ring *ring,
		      __u32 type, pid_t tid)
{
	union bp_record rec;
	int n = 0;

	while (bp_ring_next(ring, &rec)) {
		if (rec.header.type != type)
			continue;
		EXPECT_EQ(getpid(), (__u32)rec.u64[1]);
		EXPECT_EQ(tid, rec.u64[1] >> 32);
		n++;
	}
	return n;
}

TEST_F(process, samples_have_the_thread)
{
	struct bp_worker thread;
	struct bp_ring ring;

	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_TID;
	self->attr.wakeup_events = 1;
	open_it(_metadata, self);
	EXPECT_NE(0, bp_ring_map(&ring, self->fd, 1, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&(__u64){ 2 }));
	close(self->fd);

	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[0]));
	self->fd = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd, 1, PROT_READ | PROT_WRITE));
	bp_do(&thread, 3);
	EXPECT_EQ(3, records_of(_metadata, &ring, PERF_RECORD_SAMPLE, thread.pid));
	bp_ring_unmap(&ring);
	EXPECT_EQ(0, bp_stop(&thread));
}

static long rename_self(int cmd, void *name)
{
	return prctl(PR_SET_NAME, name);
}

/* ------------------------------------------------------------------------- errors */

TEST_F(process, unsupported_requests_are_refused)
{
	struct perf_event_attr attr = self->attr, plain = bp_attr_w(self->mem + SECOND, 1);
	int leader;

	attr.inherit = 1;
	EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 0));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, 100000));

	open_it(_metadata, self);
	leader = bp_open(&plain, 0, -1);
	ASSERT_LE(0, leader);
	EXPECT_EQ(-EINVAL, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, leader));
	store_times(1, self->mem);
	EXPECT_EQ(1, bp_count(self->fd));
	EXPECT_EQ(1, bp_count(leader));
}

/*
 * The event gets the records of its process, and of no other process that runs on the
 * CPU. An event for any CPU has no ring buffer, but may set the bits for such records.
 */
TEST_F(process, side_band_records_are_those_of_its_threads)
{
	struct bp_worker thread, child;
	struct bp_ring ring;

	self->attr.comm = 1;
	self->attr.task = 1;
	self->attr.mmap = 1;
	open_it(_metadata, self);
	close(self->fd);
	ASSERT_EQ(0, bp_start_thread(&thread, rename_self, "renamed"));
	ASSERT_EQ(0, bp_start(&child, rename_self, "renamed"));
	ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_pin_task(child.pid, self->cpus.cpu[0]));
	self->fd = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd, 4, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, bp_do(&child, 1));
	EXPECT_EQ(0, bp_do(&thread, 1));
	EXPECT_EQ(0, bp_do(&child, 1));
	EXPECT_EQ(1, records_of(_metadata, &ring, PERF_RECORD_COMM, thread.pid));
	bp_ring_unmap(&ring);
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

static int open_on_parent(void *arg)
{
	return -bp_open(arg, getppid(), -1);
}

TEST_F(process, task_of_another_user_is_refused)
{
	BP_NEED_ROOT();
	EXPECT_EQ(EACCES, bp_as_nobody(open_on_parent, &self->attr));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

static void *protect_on_request(void *arg)
{
	struct shared *shared = arg;

	wait_for(&shared->go);
	prctl(PR_SET_DUMPABLE, 0);
	set(&shared->ready);
	for (;;)
		pause();
	return NULL;
}

/* Starts a process whose leader has exited; it then stays dumpable, or does not. */
static pid_t start_without_leader(bool dumpable)
{
	struct shared *shared = bp_map_shared();
	pthread_t thread;
	pid_t pid;

	pid = bp_fork();
	if (!pid) {
		start_thread(&thread, protect_on_request, shared);
		syscall(__NR_exit, 0);
	}
	bp_wait_for_state(pid, 'Z');
	if (dumpable)
		return pid;
	set(&shared->go);
	wait_for(&shared->ready);
	return pid;
}

static int open_and_end(struct perf_event_attr *attr, pid_t pid)
{
	int fd = bp_open(attr, pid, -1);

	if (fd >= 0)
		close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd < 0 ? fd : 0;
}

static int open_without_leader(void *arg)
{
	prctl(PR_SET_DUMPABLE, 1);
	if (open_and_end(arg, start_without_leader(true)))
		return 1;
	return open_and_end(arg, start_without_leader(false)) == -EACCES ? 0 : 2;
}

/* The mm of a zombie leader is gone: permission has to be asked for a live thread. */
TEST_F(process, permission_does_not_depend_on_the_leader)
{
	BP_NEED_ROOT();
	EXPECT_EQ(0, bp_as_nobody(open_without_leader, &self->attr));
}

/* ------------------------------------------------------------------------ hotplug */

struct wanderer {
	pthread_t thread;
	char *mem;
	int stop;
	long stores;
};

static void *store_all_the_time(void *arg)
{
	struct wanderer *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		bp_store(w->mem, 1);
		w->stores++;
		if (w->stores % 8 == 0)
			sched_yield();
	}
	return NULL;
}

#define WANDERERS	4

/* The scheduler moves threads away from a CPU and back to it, and each store is a hit. */
TEST_F(process, threads_hit_while_cpus_go_and_return)
{
	int cpu = self->cpus.cpu[self->cpus.nr - 1];
	struct wanderer w[WANDERERS] = { };
	long stores = 0;

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	open_it(_metadata, self);
	for (int i = 0; i < WANDERERS; i++) {
		w[i].mem = self->mem;
		ASSERT_EQ(0, start_thread(&w[i].thread, store_all_the_time, &w[i]));
	}
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, bp_cpu_online(cpu, false));
		usleep(20000);
		ASSERT_EQ(0, bp_cpu_online(cpu, true));
		usleep(20000);
	}
	for (int i = 0; i < WANDERERS; i++) {
		__atomic_store_n(&w[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(w[i].thread, NULL);
		stores += w[i].stores;
	}
	EXPECT_LT(0, stores);
	EXPECT_EQ(stores, bp_count(self->fd));
}

TEST_F(process, cpus_that_go_and_return)
{
	int cpu = self->cpus.cpu[self->cpus.nr - 1], second;
	struct bp_worker thread;

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_cpu_online(cpu, false));
	self->attr.bp_addr += SECOND;
	second = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, second);
	bp_do(&thread, 1);
	ASSERT_EQ(0, bp_cpu_online(cpu, true));
	ASSERT_EQ(0, bp_pin_task(thread.pid, cpu));
	bp_do(&thread, 1);
	EXPECT_EQ(2, bp_count(self->fd));
	EXPECT_EQ(2, bp_count(second));

	ASSERT_EQ(0, bp_cpu_online(cpu, false));
	ASSERT_EQ(0, bp_disable(self->fd));
	close(second);
	self->attr.disabled = 1;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	ASSERT_EQ(0, bp_enable(self->fd));
	ASSERT_EQ(0, bp_cpu_online(cpu, true));
	ASSERT_EQ(0, bp_pin(cpu));
	bp_store(self->mem, 1);
	EXPECT_EQ(2, bp_count(self->fd));
	bp_store(self->mem + SECOND, 1);
	EXPECT_EQ(3, bp_count(self->fd));
	EXPECT_EQ(0, bp_stop(&thread));
}

/* The event is the first one of a process on the machine, and has to wait for the CPU. */
TEST_F(process, opened_while_a_cpu_is_offline)
{
	int cpu = self->cpus.cpu[self->cpus.nr - 1];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_cpu_online(cpu, false));
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_cpu_online(cpu, true));
	ASSERT_EQ(0, bp_pin(cpu));
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(3, bp_count(self->fd));
}

/* -------------------------------------------------------------------------- slots */

TEST_F(process, registers_are_shared_with_its_threads_alone)
{
	struct perf_event_attr plain = bp_attr_w(self->mem + SECOND, 1);
	struct bp_worker thread, child;
	int fd[BP_SLOTS];

	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));

	/* One thread has three breakpoints, so one register is left for the process. */
	for (int i = 0; i < 3; i++) {
		fd[i] = bp_open(&plain, thread.pid, -1);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_EQ(1, bp_free_slots_with(&self->attr, 0, -1));
	bp_close(fd, 2);
	EXPECT_EQ(3, bp_free_slots_with(&self->attr, 0, -1));
	open_it(_metadata, self);
	self->attr.bp_addr += 2 * SECOND;
	ASSERT_LE(0, bp_open(&self->attr, 0, self->cpus.cpu[0]));

	/* Two of the process on CPU 0, and one of the thread */
	EXPECT_EQ(1, bp_free_slots(thread.pid, -1));
	EXPECT_EQ(1, bp_free_slots(thread.pid, self->cpus.cpu[0]));
	EXPECT_EQ(2, bp_free_slots(0, -1));
	if (self->cpus.nr > 1) {
		EXPECT_EQ(2, bp_free_slots(thread.pid, self->cpus.cpu[1]));
		EXPECT_EQ(3, bp_free_slots(0, self->cpus.cpu[1]));
		EXPECT_EQ(2, bp_free_slots_with(&self->attr, 0, self->cpus.cpu[1]));
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(child.pid, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots_with(&self->attr, child.pid, -1));
	if (!geteuid()) {
		EXPECT_EQ(1, bp_free_slots(-1, self->cpus.cpu[0]));
		if (self->cpus.nr > 1)
			EXPECT_EQ(2, bp_free_slots(-1, self->cpus.cpu[1]));
	}

	/* All of them count: each request that was granted has a register. */
	ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[0]));
	bp_do(&thread, 2);
	EXPECT_EQ(2, bp_count(self->fd));
	EXPECT_EQ(2, bp_count(fd[2]));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

/* Breakpoints that a thread inherited are inherited by its threads, and have claims there. */
TEST_F(process, inherited_breakpoints_count)
{
	struct perf_event_attr inherited = bp_attr_w(self->mem + 2 * SECOND, 1);
	struct bp_worker thread;
	int fd[2];

	inherited.inherit = 1;
	for (int i = 0; i < 2; i++) {
		fd[i] = bp_open(&inherited, 0, -1);
		ASSERT_LE(0, fd[i]);
		inherited.bp_addr -= SECOND;
	}
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	EXPECT_EQ(1, bp_free_slots(thread.pid, -1));
	EXPECT_EQ(1, bp_free_slots_with(&self->attr, 0, -1));
	bp_do(&thread, 1);
	store_times(1, self->mem);
	EXPECT_EQ(0, bp_in_child(store_here, self->mem + SECOND));
	EXPECT_EQ(2, bp_count(self->fd));
	EXPECT_EQ(5, bp_count(fd[1]));
	EXPECT_EQ(0, bp_stop(&thread));
}

static void *wait_for_end(void *arg)
{
	wait_for(arg);
	return NULL;
}

struct heir {
	struct perf_event_attr attr;
	pthread_t thread;
	int end;
	bool failed;
};

/* Leaves a thread that has inherited three breakpoints. */
static void *leave_heir(void *arg)
{
	struct heir *heir = arg;

	for (int i = 0; i < 3; i++)
		heir->failed |= bp_open(&heir->attr, 0, -1) < 0;
	heir->failed |= start_thread(&heir->thread, wait_for_end, &heir->end) != 0;
	return NULL;
}

TEST_F(process, breakpoints_inherited_from_a_thread_that_is_gone_count)
{
	struct heir heir = { .attr = bp_attr_w(self->mem, 1) };
	pthread_t creator;

	open_it(_metadata, self);
	heir.attr.inherit = 1;
	ASSERT_EQ(0, start_thread(&creator, leave_heir, &heir));
	pthread_join(creator, NULL);
	ASSERT_FALSE(heir.failed);
	EXPECT_EQ(0, bp_free_slots_with(&self->attr, 0, -1));
	set(&heir.end);
	pthread_join(heir.thread, NULL);
}

/* Closed while threads of the process run, on all CPUs. */
TEST_F(process, open_and_close_all_the_time)
{
	struct churn churn = { .mem = self->mem, .opened = 1 };
	struct perf_event_attr plain = bp_attr_w(self->mem + SECOND, 1);

	start_churn(_metadata, &churn);
	for (int i = 0; i < bp_rounds(200); i++) {
		int fd[3];

		fd[0] = bp_open(&self->attr, 0, -1);
		fd[1] = bp_open(&plain, 0, -1);
		fd[2] = bp_open(&self->attr, 0, self->cpus.cpu[i % self->cpus.nr]);
		for (int k = 0; k < 3; k++)
			ASSERT_LE(0, fd[k]);
		bp_store(self->mem + SECOND, 1);
		EXPECT_EQ(1, bp_count(fd[1]));
		bp_close(fd, 3);
	}
	stop_churn(&churn);
}

TEST_HARNESS_MAIN
