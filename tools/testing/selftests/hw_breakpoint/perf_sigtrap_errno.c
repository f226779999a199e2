// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: refused requests.
 *
 * The rule: a request without the attributes that signals require is refused. Signals
 * to a task require permission to attach to it with ptrace, or CAP_KILL. No signal is
 * lost if memory runs out.
 */
#include <linux/capability.h>

#include "sigtrap.h"

TEST_F(trap, needs_a_task)
{
	BP_NEED_ROOT();
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 0));
	self->attr.sigtrap = 0;
	EXPECT_LE(0, bp_open(&self->attr, -1, 0));
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 0));
}

TEST_F(trap, needs_remove_on_exec)
{
	self->attr.remove_on_exec = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.remove_on_exec = 1;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(trap, inherit_thread_needs_inherit)
{
	self->attr.inherit_thread = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.inherit = 1;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
}

/* Kernels that are older than sigtrap do not have the field sig_data. */
TEST_F(trap, sig_data_needs_a_size_that_has_it)
{
	self->attr.size = PERF_ATTR_SIZE_VER6;
	self->attr.sig_data = 0x1234;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), 0, SYNC);
}

TEST_F(trap, queue_needs_sigtrap)
{
	self->attr.config = BP_SIGTRAP_QUEUE;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.sigtrap = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.sigtrap = 1;
	for (int bit = 5; bit < 64; bit++) {
		self->attr.config = BP_SIGTRAP_QUEUE | 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	}
}

TEST_F(trap, queue_cannot_be_changed)
{
	open_it(_metadata, self);
	self->attr.config = BP_SIGTRAP_QUEUE;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &self->attr));
	self->attr.config = 0;
	EXPECT_EQ(0, bp_modify(self->fd, &self->attr));
}

/* By then the event has the storage for its signals: it is freed. */
TEST_F(trap, call_chain_above_the_limit)
{
	self->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	self->attr.sample_max_stack = 65535;
	EXPECT_EQ(-EOVERFLOW, bp_open(&self->attr, 0, -1));
}

/* A modify cannot set or clear attr.sigtrap. */
TEST_F(trap, sigtrap_cannot_be_changed)
{
	struct perf_event_attr attr = word_attr(1);
	int plain;

	open_it(_metadata, self);
	attr.sigtrap = 0;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &attr));
	plain = bp_open(&attr, 0, -1);
	ASSERT_GE(plain, 0);
	attr.sigtrap = 1;
	EXPECT_EQ(-EINVAL, bp_modify(plain, &attr));
	bp_store(word(1), 1);
	EXPECT_EQ(0, nr_seen);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
}

#ifndef CAP_PERFMON
#define CAP_PERFMON	38
#endif
#define CAP(x)		(1ULL << CAP_##x)

struct stranger {
	unsigned long long caps;
	pid_t victim;
	bool sigtrap;
};

/* The result is the errno. */
static int open_as_stranger(void *arg)
{
	struct perf_event_attr attr = word_attr(0);
	struct stranger *s = arg;
	int fd;

	if (bp_become_nobody_with(s->caps))
		return 255;
	attr.sigtrap = s->sigtrap;
	fd = bp_open(&attr, s->victim, -1);
	return fd < 0 ? -fd : 0;
}

/* Sending signals to a task requires more permission than watching it. */
TEST_F(trap, permission_to_signal_another_user)
{
	struct stranger s = { .victim = getpid(), .sigtrap = true };

	BP_NEED_ROOT();
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(PERFMON);
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.sigtrap = false;
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	s.sigtrap = true;
	s.caps = CAP(KILL);
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(PERFMON) | CAP(KILL);
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(SYS_PTRACE);
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	EXPECT_EQ(0, nr_seen);
}

/*
 * Open events of a task of the same user, which may or may not be traced, and of this
 * task.
 */
static int open_of_the_same_user(void *arg)
{
	struct perf_event_attr attr = word_attr(0);
	pid_t pid, parent = getpid();
	int fd;

	CHECK(!bp_become_nobody_with(0));
	CHECK(watch(1) >= 0);
	bp_store(word(1), 1);
	CHECK(nr_seen == 1);
	for (int dumpable = 0; dumpable < 2; dumpable++) {
		prctl(PR_SET_DUMPABLE, dumpable);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			fd = bp_open(&attr, parent, -1);
			_exit(fd < 0 ? -fd : 0);
		}
		CHECK(bp_wait(pid) == (dumpable ? 0 : EACCES));
	}
	return 0;
}

TEST_F(trap, permission_to_signal_the_same_user)
{
	BP_NEED_ROOT();
	EXPECT_EQ(0, bp_in_child(open_of_the_same_user, NULL));
}

#define FAILSLAB	"/sys/kernel/debug/failslab/"

static int fail_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	return pwrite(fd, text, len, 0) == len ? 0 : -errno;
}

static bool has_failed(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
}

/* Like other signals, the signal is sent even if its siginfo cannot be allocated. */
TEST_F(trap, allocation_that_fails_loses_no_signal)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), failed = 0;
	char verbose[16];
	bool did;

	if (fd < 0 || access(FAILSLAB "verbose", W_OK))
		SKIP(return, "needs CONFIG_FAILSLAB and CONFIG_FAULT_INJECTION_DEBUG_FS");
	ASSERT_EQ(0, bp_read_file(FAILSLAB "verbose", verbose, sizeof(verbose)));
	ASSERT_EQ(0, bp_write_file(FAILSLAB "verbose", "0"));
	ASSERT_EQ(0, watch_words());
	for (int nth = 1; nth <= 12; nth++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			forget_seen();
			if (blocked)
				block();
			ASSERT_EQ(0, fail_nth(fd, nth));
			hit_words();
			did = has_failed(fd);
			fail_nth(fd, 0);
			unblock();
			/* The return from a system call sends a signal that is due. */
			getppid();
			EXPECT_EQ(blocked ? 1 : W_HITS, nr_seen + nr_other) {
				TH_LOG("allocation %d, blocked %d: %d seen, %d other",
				       nth, blocked, nr_seen, nr_other);
			}
			failed += did;
		}
	}
	EXPECT_EQ(0, bp_write_file(FAILSLAB "verbose", verbose));
	EXPECT_LT(0, failed);
}

TEST_HARNESS_MAIN
