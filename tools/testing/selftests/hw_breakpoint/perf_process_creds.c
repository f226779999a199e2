// SPDX-License-Identifier: GPL-2.0
/*
 * Processes whose threads have different credentials.
 *
 * The rule: an event of a process is for threads that its opener may watch. Open fails
 * with EACCES if there is another one. If a thread gets credentials or executes a program
 * that the opener may not watch, the event ends before the thread returns to user mode:
 * it counts nothing any more, and its registers are free.
 *
 * Not built as ia32 program, as perf_process_event.c.
 */
#include <linux/capability.h>
#include <linux/securebits.h>

#include "process.h"

#define STORES		5
#define IMAGE		"PERF_PROCESS_CREDS"
#define CAP(cap)	(1ULL << CAP_##cap)

/* The program that a thread of the target executes */
static __attribute__((constructor)) void image(void)
{
	if (!getenv(IMAGE))
		return;
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	store_times(STORES, BP_PAGE);
	raise(SIGSTOP);
	store_times(STORES, BP_PAGE);
	raise(SIGSTOP);
	_exit(0);
}

/* ------------------------------------------------------------ credentials of a thread */

/* The system calls themselves: those of the C library are for all threads. */

static long change_uid(uid_t uid)
{
	if (syscall(__NR_setresuid, uid, uid, uid))
		return -errno;
	return prctl(PR_SET_DUMPABLE, 1) ? -errno : 0;
}

static long set_caps(__u64 caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	for (int i = 0; i < 2; i++) {
		data[i].permitted = caps >> (32 * i);
		data[i].effective = caps >> (32 * i);
	}
	return syscall(__NR_capset, &header, data) ? -errno : 0;
}

/* The capabilities stay the same if the thread changes its uid later. */
static long become_nobody_with(__u64 caps)
{
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) ||
	    syscall(__NR_setresgid, BP_NOBODY, BP_NOBODY, BP_NOBODY))
		return -errno;
	return change_uid(BP_NOBODY) ?: set_caps(caps);
}

/* ------------------------------------------------------------------------- the target */

enum { LEADER, WORKER, NR_THREADS };

enum {
	GET_TID = 1, STORE, NOBODY, NOBODY_WITH_SETUID, ROOT, NO_ROOT, DROP_CAPS,
	CHANGE_NOTHING, START_THREAD, END, NEW_USER_NS, OPEN_SELF, EXEC, FLIP,
};

/* A process with two threads, which execute commands: at first root's */
struct target {
	pid_t pid;
	struct bp_worker thread[NR_THREADS];
};

static void *pause_with_own_creds(void *arg)
{
	/* A copy of the credentials of the thread that created this one */
	prctl(PR_SET_KEEPCAPS, 0);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

static long start_thread_that_pauses(void)
{
	pthread_t thread;
	int ready = 0;

	if (start_thread(&thread, pause_with_own_creds, &ready))
		return -EAGAIN;
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	return 0;
}

static long open_self(void)
{
	struct perf_event_attr attr = process_attr(BP_PAGE);

	return bp_open(&attr, 0, -1);
}

static long exec_image(void)
{
	char *const argv[] = { "perf_process_creds", NULL }, *const envp[] = { IMAGE "=1", NULL };

	execve("/proc/self/exe", argv, envp);
	return -errno;
}

static long flip(void);

static long serve(int cmd, void *arg)
{
	switch (cmd) {
	case GET_TID:
		return syscall(__NR_gettid);
	case STORE:
		store_times(STORES, BP_PAGE);
		return 0;
	case NOBODY:
		return become_nobody_with(0);
	case NOBODY_WITH_SETUID:
		return become_nobody_with(CAP(SETUID));
	case ROOT:
		return change_uid(0);
	case NO_ROOT:
		return change_uid(BP_NOBODY);
	case DROP_CAPS:
		return set_caps(0);
	case CHANGE_NOTHING:
		return prctl(PR_SET_KEEPCAPS, 0);
	case START_THREAD:
		return start_thread_that_pauses();
	case END:
		syscall(__NR_exit, 0);
		break;
	case NEW_USER_NS:
		return unshare(CLONE_NEWUSER) ? -errno : 0;
	case OPEN_SELF:
		return open_self();
	case EXEC:
		return exec_image();
	case FLIP:
		return flip();
	}
	return -EINVAL;
}

static void *serve_thread(void *arg)
{
	struct bp_worker *thread = arg;

	bp_work(serve, NULL, thread->cmd[0], thread->ans[1]);
	return NULL;
}

/* Without the other ends of the pipes the process ends when the test does. */
static void run_target(struct target *target)
{
	pthread_t thread;

	for (int i = 0; i < NR_THREADS; i++) {
		close(target->thread[i].cmd[1]);
		close(target->thread[i].ans[0]);
	}
	if (syscall(__NR_setresgid, BP_NOBODY, BP_NOBODY, BP_NOBODY) ||
	    prctl(PR_SET_DUMPABLE, 1) ||
	    start_thread(&thread, serve_thread, &target->thread[WORKER]))
		_exit(1);
	serve_thread(&target->thread[LEADER]);
	_exit(0);
}

static int start_target(struct target *target)
{
	for (int i = 0; i < NR_THREADS; i++) {
		if (pipe2(target->thread[i].cmd, O_CLOEXEC) ||
		    pipe2(target->thread[i].ans, O_CLOEXEC))
			return -errno;
	}
	target->pid = bp_fork();
	if (!target->pid)
		run_target(target);
	for (int i = 0; i < NR_THREADS; i++) {
		close(target->thread[i].cmd[0]);
		close(target->thread[i].ans[1]);
		target->thread[i].pid = bp_do(&target->thread[i], GET_TID);
	}
	return target->thread[WORKER].pid > 0 ? 0 : -EIO;
}

/* Has a thread carry out a command to which there is no answer. */
static bool tell(struct bp_worker *thread, int cmd)
{
	return write(thread->cmd[1], &cmd, sizeof(cmd)) == sizeof(cmd);
}

/* ------------------------------------------------------------------------- the opener */

struct opener {
	struct perf_event_attr *attr;
	__u64 caps;
	pid_t pid;
	int cpu;
	int fd;
};

static void *open_in_thread(void *arg)
{
	struct opener *opener = arg;

	opener->fd = become_nobody_with(opener->caps);
	if (!opener->fd)
		opener->fd = bp_open(opener->attr, opener->pid, opener->cpu);
	return NULL;
}

/* Opens an event as nobody with the capabilities @caps. */
static int open_with(struct perf_event_attr *attr, pid_t pid, int cpu, __u64 caps)
{
	struct opener opener = { .attr = attr, .pid = pid, .cpu = cpu, .caps = caps };
	pthread_t thread;

	if (start_thread(&thread, open_in_thread, &opener))
		return -EAGAIN;
	pthread_join(thread, NULL);
	return opener.fd;
}

FIXTURE(creds)
{
	struct perf_event_attr attr;
	struct target target;
	struct bp_worker *leader;
	struct bp_worker *worker;
};

FIXTURE_SETUP(creds)
{
	BP_NEED_ROOT();
	ASSERT_NE(NULL, bp_map_page(PROT_READ | PROT_WRITE));
	self->attr = process_attr(BP_PAGE);
	ASSERT_EQ(0, start_target(&self->target));
	self->leader = &self->target.thread[LEADER];
	self->worker = &self->target.thread[WORKER];
}

FIXTURE_TEARDOWN(creds)
{
	bp_teardown(_metadata);
}

/* Tries to open an event through each of the two threads. */
static void expect_refused(struct __test_metadata *_metadata, FIXTURE_DATA(creds) *self,
			   __u64 caps)
{
	EXPECT_EQ(-EACCES, open_with(&self->attr, self->leader->pid, -1, caps));
	EXPECT_EQ(-EACCES, open_with(&self->attr, self->worker->pid, -1, caps));
}

/* Both threads of the target are watched. */
static void expect_watched(struct __test_metadata *_metadata, FIXTURE_DATA(creds) *self,
			   int fd)
{
	long long count = bp_count(fd);

	EXPECT_EQ(0, bp_do(self->leader, STORE));
	EXPECT_EQ(0, bp_do(self->worker, STORE));
	EXPECT_EQ(count + 2 * STORES, bp_count(fd));
}

/* --------------------------------------------------------------------------- at open */

TEST_F(creds, of_a_root_thread_forbid_an_event_through_any_thread)
{
	struct perf_event_attr thread_attr = bp_attr_w(BP_PAGE, 1);
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	expect_refused(_metadata, self, 0);
	/* An event of a thread is for that thread alone. */
	EXPECT_EQ(-EACCES, open_with(&thread_attr, self->leader->pid, -1, 0));
	fd = open_with(&thread_attr, self->worker->pid, -1, 0);
	EXPECT_LE(0, fd);
	close(fd);

	ASSERT_EQ(0, bp_do(self->leader, NOBODY));
	fd = open_with(&self->attr, self->worker->pid, -1, 0);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
}

TEST_F(creds, with_a_capability_forbid_an_event_through_any_thread)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->leader, NOBODY_WITH_SETUID));
	ASSERT_EQ(0, bp_do(self->worker, NOBODY_WITH_SETUID));
	ASSERT_EQ(0, bp_do(self->worker, DROP_CAPS));
	expect_refused(_metadata, self, 0);
	fd = open_with(&self->attr, self->worker->pid, -1, CAP(SETUID));
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	close(fd);

	ASSERT_EQ(0, bp_do(self->leader, DROP_CAPS));
	fd = open_with(&self->attr, self->worker->pid, -1, 0);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
}

TEST_F(creds, of_the_last_of_many_threads_are_checked)
{
	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	for (int i = 0; i < 20; i++)
		ASSERT_EQ(0, bp_do(self->worker, START_THREAD));
	ASSERT_EQ(0, bp_do(self->leader, START_THREAD));
	ASSERT_EQ(0, bp_do(self->leader, NOBODY));
	expect_refused(_metadata, self, 0);
}

TEST_F(creds, of_a_thread_that_has_exited_do_not_matter)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	expect_refused(_metadata, self, 0);
	ASSERT_TRUE(tell(self->leader, END));
	bp_wait_for_state(self->leader->pid, 'Z');
	fd = open_with(&self->attr, self->leader->pid, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(self->worker, STORE));
	EXPECT_EQ(STORES, bp_count(fd));
}

TEST_F(creds, of_all_threads_are_open_to_root_and_to_cap_perfmon)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	fd = open_with(&self->attr, self->worker->pid, -1, CAP(PERFMON));
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	close(fd);
	fd = bp_open(&self->attr, self->leader->pid, -1);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
}

/* A signal requires more than a sample: permission to attach, or CAP_KILL. */
TEST_F(creds, of_each_thread_decide_whether_it_may_be_signalled)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	expect_refused(_metadata, self, CAP(PERFMON));
	fd = open_with(&self->attr, self->worker->pid, -1, CAP(PERFMON) | CAP(KILL));
	EXPECT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, bp_do(self->leader, NOBODY));
	fd = open_with(&self->attr, self->worker->pid, -1, CAP(PERFMON));
	EXPECT_LE(0, fd);
}

/* --------------------------------------------------------------------- while it is open */

/* Has both threads be nobody with CAP_SETUID. */
static void let_nobody_set_uids(struct __test_metadata *_metadata,
				FIXTURE_DATA(creds) *self)
{
	ASSERT_EQ(0, bp_do(self->leader, NOBODY_WITH_SETUID));
	ASSERT_EQ(0, bp_do(self->worker, NOBODY_WITH_SETUID));
}

static int open_process(FIXTURE_DATA(creds) *self, __u64 caps)
{
	return open_with(&self->attr, self->target.pid, -1, caps);
}

/* The event counts nothing any more, whatever is done to it, and has no registers. */
static void expect_end(struct __test_metadata *_metadata, FIXTURE_DATA(creds) *self, int fd)
{
	long long count = bp_count(fd);

	EXPECT_EQ(BP_SLOTS, bp_free_slots_with(&self->attr, self->target.pid, -1));
	EXPECT_EQ(0, bp_do(self->leader, STORE));
	EXPECT_EQ(0, bp_do(self->worker, STORE));
	EXPECT_EQ(count, bp_count(fd));

	bp_disable(fd);
	self->attr.bp_addr = (unsigned long)BP_PAGE + SECOND;
	bp_modify(fd, &self->attr);
	self->attr.bp_addr = (unsigned long)BP_PAGE;
	bp_modify(fd, &self->attr);
	bp_enable(fd);
	EXPECT_EQ(0, bp_do(self->leader, STORE));
	EXPECT_EQ(0, bp_do(self->worker, STORE));
	EXPECT_EQ(count, bp_count(fd));
	EXPECT_EQ(BP_SLOTS, bp_free_slots_with(&self->attr, self->target.pid, -1));
}

TEST_F(creds, of_a_thread_that_becomes_root_end_the_event)
{
	int fd, group;

	let_nobody_set_uids(_metadata, self);
	fd = open_process(self, CAP(SETUID));
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	EXPECT_EQ(0, bp_do(self->worker, ROOT));
	expect_end(_metadata, self, fd);
	expect_refused(_metadata, self, CAP(SETUID));

	/* It does not come back. */
	ASSERT_EQ(0, bp_do(self->worker, NO_ROOT));
	EXPECT_EQ(0, bp_do(self->worker, STORE));
	EXPECT_EQ(2 * STORES, bp_count(fd));
	group = bp_open_group(&self->attr, self->target.pid, -1, fd, 0);
	EXPECT_EQ(-ENODEV, group);
}

/* As after exec with remove_on_exec */
TEST_F(creds, of_a_thread_that_becomes_root_hang_up_and_leave_other_members)
{
	struct bp_cpus cpus = bp_online_cpus();
	struct pollfd p = { };
	struct bp_ring ring;
	int member;

	let_nobody_set_uids(_metadata, self);
	ASSERT_EQ(0, bp_pin_task(self->leader->pid, cpus.cpu[0]));
	p.fd = open_with(&self->attr, self->target.pid, cpus.cpu[0], CAP(SETUID));
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, bp_ring_map(&ring, p.fd, 1, PROT_READ | PROT_WRITE));
	self->attr.bp_addr += SECOND;
	member = bp_open_group(&self->attr, self->target.pid, cpus.cpu[0], p.fd, 0);
	ASSERT_LE(0, member);
	EXPECT_EQ(0, poll(&p, 1, 0));

	EXPECT_EQ(0, bp_do(self->worker, ROOT));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_TRUE(p.revents & POLLHUP);
	/* The member is root's. */
	EXPECT_EQ(0, bp_do(self->leader, STORE));
	EXPECT_EQ(0, bp_count(p.fd));
	EXPECT_EQ(STORES, bp_count(member));
	bp_ring_unmap(&ring);
}

TEST_F(creds, that_the_opener_may_watch_leave_the_event)
{
	int fd;

	let_nobody_set_uids(_metadata, self);
	fd = open_process(self, CAP(SETUID));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(self->leader, CHANGE_NOTHING));
	expect_watched(_metadata, self, fd);
	EXPECT_EQ(0, bp_do(self->worker, DROP_CAPS));
	expect_watched(_metadata, self, fd);
	EXPECT_EQ(0, bp_do(self->leader, START_THREAD));
	EXPECT_EQ(0, bp_do(self->worker, START_THREAD));
	expect_watched(_metadata, self, fd);
}

/* A user namespace belongs to its creator, who has all capabilities in it. */
TEST_F(creds, of_a_user_namespace_of_the_opener_leave_the_event)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	ASSERT_EQ(0, bp_do(self->leader, NOBODY));
	fd = open_process(self, 0);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(tell(self->worker, END));
	while (!syscall(__NR_tgkill, self->target.pid, self->worker->pid, 0))
		usleep(1000);
	if (bp_do(self->leader, NEW_USER_NS))
		SKIP(return, "needs user namespaces");
	EXPECT_EQ(0, bp_do(self->leader, STORE));
	EXPECT_EQ(STORES, bp_count(fd));
}

TEST_F(creds, that_change_do_not_matter_to_root_and_to_cap_perfmon)
{
	int perfmon, root;

	let_nobody_set_uids(_metadata, self);
	perfmon = open_process(self, CAP(PERFMON));
	ASSERT_LE(0, perfmon);
	EXPECT_EQ(0, bp_do(self->worker, ROOT));
	expect_watched(_metadata, self, perfmon);
	close(perfmon);
	root = bp_open(&self->attr, self->target.pid, -1);
	ASSERT_LE(0, root);
	EXPECT_EQ(0, bp_do(self->leader, ROOT));
	expect_watched(_metadata, self, root);
	EXPECT_EQ(0, bp_do(self->leader, NO_ROOT));
	expect_watched(_metadata, self, root);
}

/* The signal would kill the target. */
TEST_F(creds, of_a_thread_that_becomes_root_end_signals)
{
	int fd;

	let_nobody_set_uids(_metadata, self);
	self->attr.sample_period = 1;
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	fd = open_process(self, CAP(SETUID) | CAP(PERFMON));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(self->worker, CHANGE_NOTHING));
	EXPECT_EQ(0, bp_do(self->worker, ROOT));
	expect_end(_metadata, self, fd);
}

/* ------------------------------------------------------------------- the process itself */

/* Has a thread of the target watch the target; returns the event, for this process. */
static int open_through(struct bp_worker *thread, pid_t pid)
{
	int target = syscall(__NR_pidfd_open, pid, 0);
	int fd = bp_do(thread, OPEN_SELF);

	if (fd >= 0)
		fd = syscall(__NR_pidfd_getfd, target, fd, 0);
	close(target);
	return fd;
}

/* A thread may watch the other threads: they share all memory. */
TEST_F(creds, of_other_threads_are_open_to_a_thread_of_the_process)
{
	int fd;

	ASSERT_EQ(0, bp_do(self->leader, NOBODY_WITH_SETUID));
	fd = open_through(self->leader, self->target.pid);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	ASSERT_EQ(0, bp_do(self->leader, ROOT));
	expect_watched(_metadata, self, fd);
}

static void exec_and_stop(struct __test_metadata *_metadata, FIXTURE_DATA(creds) *self,
			  struct bp_worker *thread)
{
	int status;

	ASSERT_TRUE(tell(thread, EXEC));
	ASSERT_EQ(self->target.pid, waitpid(self->target.pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
}

/* exec by a thread that the opener, a thread of the process itself, may not watch */
TEST_F(creds, of_the_opener_decide_about_the_next_program)
{
	struct perf_event_attr attr = self->attr;
	long long count;
	int fd, status;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	fd = open_through(self->worker, self->target.pid);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	count = bp_count(fd);
	exec_and_stop(_metadata, self, self->leader);

	EXPECT_EQ(count, bp_count(fd));
	EXPECT_EQ(BP_SLOTS, bp_free_slots_with(&self->attr, self->target.pid, -1));
	attr.bp_addr += SECOND;
	bp_modify(fd, &attr);
	bp_enable(fd);
	kill(self->target.pid, SIGCONT);
	ASSERT_EQ(self->target.pid, waitpid(self->target.pid, &status, WUNTRACED));
	EXPECT_TRUE(WIFSTOPPED(status));
	EXPECT_EQ(count, bp_count(fd));
}

TEST_F(creds, of_the_opener_allow_the_same_for_the_next_program)
{
	long long count;
	int fd;

	ASSERT_EQ(0, bp_do(self->worker, NOBODY));
	ASSERT_EQ(0, bp_do(self->leader, NOBODY));
	fd = open_through(self->worker, self->target.pid);
	ASSERT_LE(0, fd);
	expect_watched(_metadata, self, fd);
	count = bp_count(fd);
	exec_and_stop(_metadata, self, self->leader);
	EXPECT_EQ(count + STORES, bp_count(fd));
}

/* ------------------------------------------------------------------------------- races */

/*
 * Threads become root and nobody in turn. While a thread is root it, and a thread that it
 * creates, store at BP_PAGE. Nobody, who opens events all the time, must not see that.
 */
struct storm {
	int stop;
	int flips;
	int failed;
	struct perf_event_attr attr;
	pid_t pid;
	int opened;
	int refused;
	int seen;
};

static struct storm *storm;

static void *store_as_root(void *arg)
{
	bp_store_times(BP_PAGE, 1, STORES);
	return NULL;
}

static long flip_once(unsigned int *random)
{
	pthread_t thread;
	long err;

	err = change_uid(0);
	if (err)
		return err;
	if (bp_random(random) % 4 == 0) {
		if (start_thread(&thread, store_as_root, NULL))
			return -EAGAIN;
		pthread_join(thread, NULL);
	}
	store_as_root(NULL);
	err = change_uid(BP_NOBODY);
	if (bp_random(random) % 2)
		usleep(bp_random(random) % 512);
	return err;
}

static long flip(void)
{
	unsigned int random = syscall(__NR_gettid);
	long err = 0;

	while (!err && !__atomic_load_n(&storm->stop, __ATOMIC_RELAXED)) {
		err = flip_once(&random);
		__atomic_fetch_add(&storm->flips, 1, __ATOMIC_RELAXED);
	}
	return err;
}

static void *flip_in_target(void *arg)
{
	if (bp_do(arg, FLIP))
		__atomic_fetch_add(&storm->failed, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void open_and_look(unsigned int *random)
{
	int fd = bp_open(&storm->attr, storm->pid, -1);

	if (fd == -EACCES)
		storm->refused++;
	else if (fd < 0)
		storm->failed++;
	if (fd < 0)
		return;
	storm->opened++;
	if (bp_random(random) % 2)
		usleep(bp_random(random) % 1024);
	if (bp_count(fd))
		storm->seen++;
	close(fd);
}

static void *open_as_nobody(void *arg)
{
	unsigned int random = 1;

	if (become_nobody_with(CAP(SETUID)))
		storm->failed++;
	while (!__atomic_load_n(&storm->stop, __ATOMIC_RELAXED))
		open_and_look(&random);
	return NULL;
}

/* Each round is about the first events of a new process, too. */
TEST_F(creds, that_change_all_the_time_show_nothing_of_root)
{
	int opened, refused = 0, seen = 0, flips = 0, last;
	pthread_t thread[NR_THREADS + 1];
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct target target;

	storm = bp_map_shared();
	ASSERT_NE(NULL, storm);
	storm->attr = self->attr;
	for (int round = 0; round < 8; round++) {
		storm->stop = 0;
		last = storm->opened;
		ASSERT_EQ(0, start_target(&target));
		storm->pid = target.pid;
		ASSERT_EQ(0, bp_do(&target.thread[LEADER], NOBODY_WITH_SETUID));
		ASSERT_EQ(0, bp_do(&target.thread[WORKER], NOBODY_WITH_SETUID));
		for (int i = 0; i < NR_THREADS; i++)
			ASSERT_EQ(0, start_thread(&thread[i], flip_in_target, &target.thread[i]));
		ASSERT_EQ(0, start_thread(&thread[NR_THREADS], open_as_nobody, NULL));
		usleep(200000);
		while (storm->opened == last && bp_has_patience(start))
			usleep(1000);
		__atomic_store_n(&storm->stop, 1, __ATOMIC_RELAXED);
		for (int i = 0; i <= NR_THREADS; i++)
			pthread_join(thread[i], NULL);
		kill(target.pid, SIGKILL);
		EXPECT_EQ(256 + SIGKILL, bp_wait(target.pid));
	}
	opened = storm->opened;
	refused = storm->refused;
	seen = storm->seen;
	flips = storm->flips;
	TH_LOG("%d events opened, %d refused, uids changed %d times", opened, refused, flips);
	EXPECT_EQ(0, storm->failed);
	EXPECT_EQ(0, seen);
	EXPECT_LT(0, opened);
	EXPECT_LT(0, refused);
}

TEST_HARNESS_MAIN
