// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: hits by the kernel on behalf of a thread.
 *
 * The rule: hits in a system call coalesce and give a signal on the way back to user
 * mode, to the thread that made the call. A worker thread of the kernel gets none.
 */
#include <linux/io_uring.h>
#include <sys/uio.h>

#include "sigtrap.h"

FIXTURE(kernel)
{
	int in[2];
};

FIXTURE_SETUP(kernel)
{
	BP_NEED_ROOT();
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	ASSERT_EQ(0, pipe2(self->in, O_CLOEXEC));
}

FIXTURE_TEARDOWN(kernel)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

static void feed(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self, int bytes)
{
	static const char zeroes[256];

	ASSERT_EQ(bytes, write(self->in[1], zeroes, bytes));
}

TEST_F(kernel, system_call_that_writes_once_signals)
{
	int fd = watch_kernel(0, HW_BREAKPOINT_W);

	ASSERT_GE(fd, 0);
	for (int i = 1; i <= 10; i++) {
		feed(_metadata, self, 1);
		EXPECT_EQ(1, read(self->in[0], word(0), 1));
		ASSERT_EQ(i, nr_seen);
		expect_word(_metadata, i - 1, 0, SYNC);
		bp_settle(word(0));
	}
	EXPECT_EQ(10, bp_hits(fd).count);
	bp_store(word(0), 1);
	ASSERT_EQ(11, nr_seen);
	expect_word(_metadata, 10, 0, SYNC);
}

/* TRAP_PERF_FLAG_ASYNC is determined on the way back to user mode. */
TEST_F(kernel, system_call_that_writes_while_blocked_signals_later)
{
	ASSERT_LE(0, watch_kernel(0, HW_BREAKPOINT_W));
	block();
	feed(_metadata, self, 1);
	EXPECT_EQ(1, read(self->in[0], word(0), 1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(kernel, excluded_hits_in_the_kernel_send_no_signal)
{
	int fd = watch(0);

	ASSERT_GE(fd, 0);
	feed(_metadata, self, 1);
	EXPECT_EQ(1, read(self->in[0], word(0), 1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_hits(fd).count);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
}

/* After each word, writes one byte that no breakpoint watches: see bp_settle(). */
static void write_to_several(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self)
{
	struct iovec iov[2 * W_HITS];

	for (int i = 0; i < W_HITS; i++) {
		ASSERT_LE(0, watch_kernel(i, HW_BREAKPOINT_W));
		iov[2 * i] = (struct iovec){ word(i), 1 };
		iov[2 * i + 1] = (struct iovec){ BP_PAGE + BP_PAGE_SIZE - 1, 1 };
	}
	for (int round = 0; round < 5; round++) {
		int nr = queue ? W_HITS : 1;

		forget_seen();
		feed(_metadata, self, 2 * W_HITS);
		EXPECT_EQ(2 * W_HITS, readv(self->in[0], iov, 2 * W_HITS));
		ASSERT_EQ(nr, nr_seen);
		/* Queued hits give signals after the handler of the first one. */
		for (int i = 0; i < nr; i++)
			expect_word(_metadata, i, i, i ? ASYNC : SYNC);
	}
}

TEST_F(kernel, hits_of_one_system_call_coalesce)
{
	write_to_several(_metadata, self);
}

TEST_F(kernel, queued_hits_of_one_system_call_signal_each)
{
	queue = true;
	write_to_several(_metadata, self);
}

static void write_often(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self,
			int hits)
{
	struct iovec iov[128];

	for (int i = 0; i < hits; i++)
		iov[i] = (struct iovec){ word(0), 1 };
	feed(_metadata, self, hits);
	EXPECT_EQ(hits, readv(self->in[0], iov, hits));
}

TEST_F(kernel, repeated_hits_of_one_system_call_coalesce)
{
	int fd = watch_kernel(0, HW_BREAKPOINT_W);

	ASSERT_GE(fd, 0);
	write_often(_metadata, self, 10);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(10, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);
}

TEST_F(kernel, queued_repeated_hits_of_one_system_call_signal_each)
{
	int fd;

	queue = true;
	fd = watch_kernel(0, HW_BREAKPOINT_W);
	ASSERT_GE(fd, 0);
	write_often(_metadata, self, 10);
	ASSERT_EQ(10, nr_seen);
	for (int i = 0; i < 10; i++)
		expect_word(_metadata, i, 0, i ? ASYNC : SYNC);
	EXPECT_EQ(10, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);

	/* A system call may make more hits than can be queued before it returns. */
	forget_seen();
	write_often(_metadata, self, 100);
	EXPECT_LE(KEPT_MIN, nr_seen);
	EXPECT_GE(KEPT_MAX, nr_seen);
	EXPECT_EQ(110, bp_hits(fd).count);
	EXPECT_EQ(100 - nr_seen, bp_hits(fd).lost);
}

/* The system call that hits the event also closes it, before the signal can be sent. */
TEST_F(kernel, system_call_that_closes_the_event_drops_its_hit)
{
	struct perf_event_attr *attr = (struct perf_event_attr *)word(0);
	int fd;

	*attr = word_attr(1);
	fd = watch_kernel(0, HW_BREAKPOINT_RW);
	ASSERT_GE(fd, 0);
	/* perf_event_open() reads the attributes, which are watched. */
	ASSERT_LE(0, bp_open(attr, 0, -1));
	EXPECT_LE(1, nr_seen);
	forget_seen();
	close(fd);
	getppid();
	EXPECT_EQ(0, nr_seen);
}

/* The system call hits the event and then sleeps; the signal comes after its return. */
TEST_F(kernel, system_call_that_sleeps_is_not_interrupted)
{
	struct pollfd *p = (struct pollfd *)word(0);
	int fd = watch_kernel(0, HW_BREAKPOINT_RW);
	pid_t pid;

	ASSERT_GE(fd, 0);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_wait_for_state(getppid(), 'S');
		_exit(write(self->in[1], "x", 1) != 1);
	}
	ASSERT_EQ(0, bp_disable(fd));
	*p = (struct pollfd){ .fd = self->in[0], .events = POLLIN };
	ASSERT_EQ(0, bp_enable(fd));
	EXPECT_EQ(1, poll(p, 1, 60000));
	ASSERT_EQ(1, nr_seen);
	EXPECT_LE(1, bp_hits(fd).count);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(0, bp_wait(pid));
}

/* exec reads its path, which is watched, before it starts the new image. */
static int exec_of_a_watched_path(void *arg)
{
	char *argv[] = { "perf_sigtrap", NULL };
	char *envp[] = { "PERF_SIGTRAP_EXEC=clean", NULL };

	strcpy(word(0), "/proc/self/exe");
	CHECK(watch_kernel(0, HW_BREAKPOINT_RW) >= 0);
	execve(word(0), argv, envp);
	return 1;
}

TEST_F(kernel, exec_drops_its_own_hits)
{
	EXPECT_EQ(0, bp_in_child(exec_of_a_watched_path, NULL));
}

TEST_F(kernel, exec_that_fails_signals_its_hits)
{
	char *none[] = { NULL };
	int fd;

	strcpy(word(0), "/no/such/file");
	fd = watch_kernel(0, HW_BREAKPOINT_RW);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, execve(word(0), none, none));
	EXPECT_EQ(ENOENT, errno);
	ASSERT_EQ(1, nr_seen);
	EXPECT_LE(1, bp_hits(fd).count);
	expect_word(_metadata, 0, 0, SYNC);
}

static void store_alternately(int in, int out, int laps, int *bad)
{
	char token;

	for (int i = 0; i < laps; i++) {
		if (read(in, &token, 1) != 1)
			return;
		forget_seen();
		bp_load(word(0), 1);
		*bad += nr_seen != 1 || !was_seen(0, word(0), DATA(0), SYNC);
		if (write(out, &token, 1) != 1)
			return;
	}
}

/*
 * A hit in a system call that sleeps, while another member of the family runs on the
 * CPU and makes hits of its own: each member gets its own signals. The kernel reads the
 * pollfd before it sleeps.
 */
static int sleep_with_hit(int in, int out, int laps)
{
	struct pollfd *p = (struct pollfd *)word(0);
	int bad = 0;
	char token;

	for (int i = 0; i < laps; i++) {
		forget_seen();
		CHECK(write(out, "", 1) == 1);
		NOTE(bad, poll(p, 1, 60000) == 1);
		NOTE(bad, nr_seen == 1);
		NOTE(bad, was_seen(0, word(0), DATA(0), SYNC));
		CHECK(read(in, &token, 1) == 1);
	}
	return bad != 0;
}

TEST_F(kernel, hit_of_a_sleeper_is_its_own)
{
	struct perf_event_attr attr = word_attr(0);
	struct pollfd *p = (struct pollfd *)word(0);
	int there[2], bad = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe2(there, O_CLOEXEC));
	*p = (struct pollfd){ .fd = self->in[0], .events = POLLIN };
	bp_pin(bp_online_cpus().cpu[0]);
	attr.exclude_kernel = 0;
	attr.bp_type = HW_BREAKPOINT_RW;
	attr.inherit = 1;
	ASSERT_LE(0, bp_open(&attr, 0, -1));
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		store_alternately(there[0], self->in[1], TIMES(50), &bad);
		_exit(bad);
	}
	EXPECT_EQ(0, sleep_with_hit(self->in[0], there[1], TIMES(50)));
	EXPECT_EQ(0, bp_wait(pid));
}

#ifdef __LP64__
struct uring {
	int fd;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static int open_uring(struct uring *u)
{
	struct io_uring_params p = { };
	char *ring;

	u->fd = syscall(__NR_io_uring_setup, 1, &p);
	if (u->fd < 0)
		return -errno;
	ring = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		    u->fd, IORING_OFF_SQ_RING);
	u->sqe = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		      u->fd, IORING_OFF_SQES);
	if (ring == MAP_FAILED || u->sqe == MAP_FAILED)
		return -ENOMEM;
	u->sq_tail = (unsigned int *)(ring + p.sq_off.tail);
	u->sq_array = (unsigned int *)(ring + p.sq_off.array);
	u->cq_head = (unsigned int *)(ring + p.cq_off.head);
	u->cq_tail = (unsigned int *)(ring + p.cq_off.tail);
	u->cqe = (struct io_uring_cqe *)(ring + p.cq_off.cqes);
	return 0;
}

/* A read that is executed by a worker thread of the kernel */
static int read_by_worker(struct uring *u, int fd, void *to)
{
	memset(u->sqe, 0, sizeof(*u->sqe));
	u->sqe->opcode = IORING_OP_READ;
	u->sqe->flags = IOSQE_ASYNC;
	u->sqe->fd = fd;
	u->sqe->addr = (unsigned long)to;
	u->sqe->len = 1;
	u->sqe->off = -1;
	u->sq_array[0] = 0;
	__atomic_store_n(u->sq_tail, *u->sq_tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -errno;
	if (*u->cq_head == __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	__atomic_store_n(u->cq_head, *u->cq_head + 1, __ATOMIC_RELEASE);
	return 1;
}

/* A worker is a thread of the process and inherits the event, but has no handlers. */
TEST_F(kernel, kernel_worker_gets_no_signal)
{
	struct perf_event_attr attr = word_attr(0);
	struct uring u;
	int err, fd;

	/* With BP_SIGTRAP_QUEUE lost hits would be counted. */
	attr.config = BP_SIGTRAP_QUEUE;
	attr.exclude_kernel = 0;
	attr.inherit = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	err = open_uring(&u);
	if (err == -ENOSYS || err == -EPERM)
		SKIP(return, "needs io_uring");
	ASSERT_EQ(0, err);
	for (int i = 0; i < 20; i++) {
		feed(_metadata, self, 1);
		ASSERT_EQ(1, read_by_worker(&u, self->in[0], word(0)));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(20, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	close(u.fd);
}
#endif

TEST_HARNESS_MAIN
