// SPDX-License-Identifier: GPL-2.0
/*
 * The errors of refused requests for PERF_TYPE_BREAKPOINT.
 *
 * The rule: a request that is refused changes nothing, and its errno has the reason.
 * Errors of invalid requests (EINVAL) come before those of missing permission, and both
 * before ENOSPC.
 */
#include <poll.h>

#include "bp_test.h"

#define ENTRY_AREA	((void *)0xfffffe0000000000UL)
#define KERNEL_HALF	((void *)0xffff800000000000UL)

static char mem[64] __aligned(64);

/* --------------------------------------------------------- invalid requests */

FIXTURE(request)
{
	struct perf_event_attr attr;
};

FIXTURE_VARIANT(request)
{
	unsigned int type;
	const void *addr;
	unsigned long len;
	int err;
};

#define REQUEST(name, ...) FIXTURE_VARIANT_ADD(request, name) { __VA_ARGS__ }

REQUEST(type_none, .type = 0, .addr = mem, .len = 4, .err = EINVAL);
REQUEST(type_r_alone, .type = HW_BREAKPOINT_R, .addr = mem, .len = 4, .err = EINVAL);
REQUEST(type_wx, .type = HW_BREAKPOINT_W | HW_BREAKPOINT_X, .addr = mem, .len = 8,
	.err = EINVAL);
REQUEST(type_rwx, .type = HW_BREAKPOINT_INVALID, .addr = mem, .len = 8, .err = EINVAL);
REQUEST(type_unknown_bit, .type = 8, .addr = mem, .len = 4, .err = EINVAL);
REQUEST(type_w_and_unknown_bit, .type = HW_BREAKPOINT_W | 1 << 31, .addr = mem, .len = 4,
	.err = EINVAL);

REQUEST(len_0, .type = HW_BREAKPOINT_W, .addr = mem, .len = 0, .err = EINVAL);
REQUEST(len_3, .type = HW_BREAKPOINT_W, .addr = mem, .len = 3, .err = EINVAL);
REQUEST(len_5, .type = HW_BREAKPOINT_W, .addr = mem, .len = 5, .err = EINVAL);
REQUEST(len_6, .type = HW_BREAKPOINT_RW, .addr = mem, .len = 6, .err = EINVAL);
REQUEST(len_7, .type = HW_BREAKPOINT_RW, .addr = mem, .len = 7, .err = EINVAL);
REQUEST(len_9, .type = HW_BREAKPOINT_W, .addr = mem, .len = 9, .err = EINVAL);
REQUEST(len_12, .type = HW_BREAKPOINT_W, .addr = mem, .len = 12, .err = EINVAL);
REQUEST(len_16_unaligned, .type = HW_BREAKPOINT_W, .addr = mem + 8, .len = 16,
	.err = EINVAL);
REQUEST(len_huge, .type = HW_BREAKPOINT_W, .addr = mem, .len = ~0UL, .err = EINVAL);

REQUEST(addr_unaligned_2, .type = HW_BREAKPOINT_W, .addr = mem + 1, .len = 2,
	.err = EINVAL);
REQUEST(addr_unaligned_4, .type = HW_BREAKPOINT_W, .addr = mem + 2, .len = 4,
	.err = EINVAL);
REQUEST(addr_unaligned_8, .type = HW_BREAKPOINT_RW, .addr = mem + 4, .len = 8,
	.err = EINVAL);
REQUEST(addr_wraps, .type = HW_BREAKPOINT_W, .addr = (void *)-4L, .len = 8, .err = EINVAL);
REQUEST(addr_last_byte_wraps, .type = HW_BREAKPOINT_W, .addr = (void *)-1L, .len = 2,
	.err = EINVAL);

REQUEST(x_len_1, .type = HW_BREAKPOINT_X, .addr = bp_func, .len = 1, .err = EINVAL);
REQUEST(x_len_4, .type = HW_BREAKPOINT_X, .addr = bp_func, .len = 4, .err = EINVAL);
REQUEST(x_len_16, .type = HW_BREAKPOINT_X, .addr = bp_func, .len = 16, .err = EINVAL);

REQUEST(kernel_addr_without_kernel_mode, .type = HW_BREAKPOINT_W, .addr = KERNEL_HALF,
	.len = 8, .err = EINVAL);
REQUEST(kernel_x_without_kernel_mode, .type = HW_BREAKPOINT_X, .addr = KERNEL_HALF,
	.len = 8, .err = EINVAL);

FIXTURE_SETUP(request)
{
	self->attr = bp_attr(variant->type, variant->addr, variant->len);
}

FIXTURE_TEARDOWN(request)
{
	bp_teardown(_metadata);
}

TEST_F(request, is_refused)
{
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
}

TEST_F(request, is_refused_for_a_cpu)
{
	BP_NEED_ROOT();
	EXPECT_EQ(-variant->err, bp_open(&self->attr, -1, 0));
}

/* An invalid request gets its own error even if no register is available. */
TEST_F(request, is_refused_as_malformed_where_no_slot_is_free)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
}

/* An invalid request is refused with HW_BREAKPOINT_FLEXIBLE, too. */
TEST_F(request, is_refused_if_flexible)
{
	int fd[BP_SLOTS];

	self->attr.config = BP_FLEXIBLE;
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
}

/* ------------------------------------------------------------- other requests */

FIXTURE(refused)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	char paranoid[16];
};

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

FIXTURE_SETUP(refused)
{
	self->attr = bp_attr_w(mem, 4);
	self->cpus = bp_online_cpus();
	ASSERT_EQ(0, bp_read_file(PARANOID, self->paranoid, sizeof(self->paranoid)));
}

FIXTURE_TEARDOWN(refused)
{
	if (!geteuid())
		EXPECT_EQ(0, bp_write_file(PARANOID, self->paranoid));
	bp_teardown(_metadata);
}

/* A range that only some processors support is refused or watched completely. */
TEST_F(refused, longer_range_where_the_processor_has_none)
{
	char cpuinfo[65536];
	int fd;

	self->attr.bp_len = 16;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_EQ(0, bp_read_file("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo)));
	if (strstr(cpuinfo, " bpext")) {
		EXPECT_GE(fd, 0);
	} else {
		EXPECT_EQ(-EOPNOTSUPP, fd);
	}
}

/*
 * attr.config of a breakpoint is a set of flags: what is not known is refused. Bit 0 is
 * flexible, bit 1 is process; bit 2 is refused without sigtrap.
 */
TEST_F(refused, unknown_config_bit)
{
	for (int bit = 2; bit < 64; bit++) {
		self->attr.config = 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
			TH_LOG("config bit %d", bit);
		}
		self->attr.config |= BP_FLEXIBLE;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
			TH_LOG("config bits 0 and %d", bit);
		}
	}
}

TEST_F(refused, unknown_config_bit_where_no_slot_is_free)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	for (int bit = 2; bit < 64; bit++) {
		self->attr.config = BP_FLEXIBLE | 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	}
}

/* A value of one field that no breakpoint may have */
#define REFUSED(name, error, ...)					\
	TEST_F(refused, name)						\
	{								\
		struct perf_event_attr *attr = &self->attr;		\
									\
		__VA_ARGS__;						\
		EXPECT_EQ(-(error), bp_open(attr, 0, -1));		\
	}

REFUSED(reserved_attr_bit, EINVAL, attr->__reserved_1 = 1)
REFUSED(unknown_sample_type, EINVAL, attr->sample_type = PERF_SAMPLE_MAX)
REFUSED(unknown_read_format, EINVAL, attr->read_format = PERF_FORMAT_MAX)
REFUSED(period_with_the_top_bit, EINVAL, attr->sample_period = 1ULL << 63)
REFUSED(branch_stack, EOPNOTSUPP,
	attr->sample_period = 1, attr->sample_type = PERF_SAMPLE_BRANCH_STACK,
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER)

TEST_F(refused, unknown_flag)
{
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, -1, -1, 1 << 30));
}

TEST_F(refused, attr_of_an_impossible_size)
{
	self->attr.size = 32;
	EXPECT_EQ(-E2BIG, bp_open(&self->attr, 0, -1));
	EXPECT_LE(sizeof(self->attr), self->attr.size);
}

TEST_F(refused, attr_with_an_unknown_tail)
{
	struct { struct perf_event_attr attr; __u64 tail[8]; } big = { };

	big.attr = self->attr;
	big.attr.size = sizeof(big);
	big.tail[7] = 1;
	EXPECT_EQ(-E2BIG, bp_open(&big.attr, 0, -1));
	big.tail[7] = 0;
	big.attr.size = sizeof(big);
	EXPECT_LE(0, bp_open(&big.attr, 0, -1));
}

TEST_F(refused, attr_that_cannot_be_read)
{
	EXPECT_EQ(-EFAULT, bp_open((void *)8UL, 0, -1));
}

TEST_F(refused, neither_task_nor_cpu)
{
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, -1));
}

TEST_F(refused, cpu_that_cannot_exist)
{
	BP_NEED_ROOT();
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 100000));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, 100000));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -2));
}

static int exit_at_once(void *arg)
{
	(void)arg;
	return 0;
}

TEST_F(refused, task_that_does_not_exist)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(exit_at_once(NULL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(-ESRCH, bp_open(&self->attr, pid, -1));
}

TEST_F(refused, task_that_is_dead_but_not_yet_reaped)
{
	pid_t pid = bp_fork();
	siginfo_t info;

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
	ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(-ESRCH, bp_open(&self->attr, pid, -1));
	EXPECT_EQ(0, bp_wait(pid));
}

TEST_F(refused, group_leader_that_is_no_event)
{
	int fd = open("/dev/null", O_RDONLY);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EBADF, bp_open_group(&self->attr, 0, -1, fd, 0));
	close(fd);
	EXPECT_EQ(-EBADF, bp_open_group(&self->attr, 0, -1, fd, 0));
}

/* -------------------------------------------------------------- missing permission */

struct request {
	struct perf_event_attr *attr;
	pid_t pid;
	int cpu;
};

/* The exit status is the errno of the request. */
static int try_open(void *arg)
{
	struct request *r = arg;
	int fd = bp_open(r->attr, r->pid, r->cpu);

	return fd < 0 ? -fd : 0;
}

static int set_paranoid(const char *value)
{
	return bp_write_file(PARANOID, value);
}

TEST_F(refused, own_task_is_allowed_without_privilege)
{
	struct request r = { &self->attr, 0, -1 };

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("2"));
	EXPECT_EQ(0, bp_as_nobody(try_open, &r));
}

TEST_F(refused, cpu_without_privilege)
{
	struct request r = { &self->attr, -1, self->cpus.cpu[0] };

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("1"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

TEST_F(refused, cpu_without_privilege_where_no_slot_is_free)
{
	struct request r = { &self->attr, -1, self->cpus.cpu[0] };
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("1"));
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpus.cpu[0], fd));
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

TEST_F(refused, task_of_another_user)
{
	struct request r = { &self->attr, getpid(), -1 };

	BP_NEED_ROOT();
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

TEST_F(refused, task_of_another_user_where_no_slot_is_free)
{
	struct request r = { &self->attr, getpid(), -1 };
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

TEST_F(refused, malformed_request_for_a_task_of_another_user)
{
	struct request r = { &self->attr, getpid(), -1 };

	BP_NEED_ROOT();
	self->attr.bp_len = 3;
	EXPECT_EQ(EINVAL, bp_as_nobody(try_open, &r));
}

TEST_F(refused, kernel_mode_without_privilege)
{
	struct request r = { &self->attr, 0, -1 };

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("2"));
	self->attr.exclude_kernel = 0;
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

/* A kernel address requires CAP_SYS_ADMIN, whatever kernel.perf_event_paranoid is. */
TEST_F(refused, kernel_address_without_privilege)
{
	struct request r = { &self->attr, 0, -1 };

	BP_NEED_ROOT();
	self->attr.bp_addr = (unsigned long)KERNEL_HALF;
	self->attr.exclude_kernel = 0;
	ASSERT_EQ(0, set_paranoid("-1"));
	EXPECT_EQ(EPERM, bp_as_nobody(try_open, &r));
	self->attr.bp_type = HW_BREAKPOINT_X;
	self->attr.bp_len = sizeof(long);
	EXPECT_EQ(EPERM, bp_as_nobody(try_open, &r));
	ASSERT_EQ(0, set_paranoid("2"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_open, &r));
}

static int full_then_kernel(void *arg)
{
	int fd[BP_SLOTS];

	if (bp_fill(0, -1, fd) != BP_SLOTS)
		return 255;
	return try_open(arg);
}

TEST_F(refused, kernel_address_without_privilege_where_no_slot_is_free)
{
	struct request r = { &self->attr, 0, -1 };

	BP_NEED_ROOT();
	self->attr.bp_addr = (unsigned long)KERNEL_HALF;
	self->attr.exclude_kernel = 0;
	ASSERT_EQ(0, set_paranoid("-1"));
	EXPECT_EQ(EPERM, bp_as_nobody(full_then_kernel, &r));
}

/* The kernel looks for a register before it allocates the event of such a request. */
TEST_F(refused, malformed_request_for_a_full_task_of_ones_own)
{
	struct {
		struct perf_event_attr attr;
		int cpu, err;
	} bad[15];
	int fd[BP_SLOTS];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].attr = self->attr;
		bad[i].cpu = -1;
		bad[i].err = EINVAL;
	}
	bad[0].attr.bp_len = 3;
	bad[1].attr.bp_len = 0;
	bad[2].attr.bp_addr++;
	bad[3].attr.bp_type = HW_BREAKPOINT_R;
	bad[4].attr.bp_type = 8;
	bad[5].attr.config = 1 << 3;
	bad[6].attr.bp_addr = (unsigned long)KERNEL_HALF;
	bad[7].attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	bad[7].attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	bad[7].err = EOPNOTSUPP;
	bad[8].attr.inherit = 1;
	bad[8].attr.read_format = PERF_FORMAT_GROUP;
	bad[8].attr.sample_type = PERF_SAMPLE_READ;
	bad[9].cpu = 1 << 20;
	bad[10].attr.use_clockid = 1;
	bad[10].attr.clockid = 99;
	bad[11].attr.config = BP_PROCESS;
	bad[11].attr.inherit = 1;
	bad[12].attr.aux_output = 1;
	bad[12].err = EOPNOTSUPP;
	bad[13].attr.aux_sample_size = 64;
	/* Registers of SSE, which only a PMU of the processor can sample */
	bad[14].attr.sample_regs_intr = 1ULL << 32;
	bad[14].err = EOPNOTSUPP;

	for (int full = 0; full < 2; full++) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-bad[i].err, bp_open(&bad[i].attr, 0, bad[i].cpu)) {
				TH_LOG("request %u, full %d", i, full);
			}
		}
		if (!full)
			ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	}
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, self->cpus.cpu[0]));
}

/* ---------------------------------------------------------- flexible breakpoints */

TEST_F(refused, flexible_and_pinned)
{
	int fd[BP_SLOTS];

	self->attr.config = BP_FLEXIBLE;
	self->attr.pinned = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	/* Each of the two bits alone is accepted. */
	self->attr.config = 0;
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	self->attr.config = BP_FLEXIBLE;
	self->attr.pinned = 0;
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
}

TEST_F(refused, flexible_where_no_slot_is_free)
{
	int fd[BP_SLOTS];

	self->attr.config = BP_FLEXIBLE;
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	bp_close(fd, BP_SLOTS);
	BP_NEED_ROOT();
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpus.cpu[0], fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, -1, self->cpus.cpu[0]));
}

/* Invalid attributes are reported before missing permission. */
TEST_F(refused, malformed_flexible_request_without_privilege)
{
	struct perf_event_attr bad[3] = { self->attr, self->attr, self->attr };
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("1"));
	bad[0].config = BP_FLEXIBLE;
	bad[0].pinned = 1;
	bad[1].config = BP_FLEXIBLE;
	bad[1].bp_len = 3;
	bad[2].config = BP_FLEXIBLE | 1 << 3;
	for (int full = 0; full < 2; full++) {
		for (int i = 0; i < 3; i++) {
			struct request of_task = { &bad[i], getpid(), -1 };
			struct request of_cpu = { &bad[i], -1, self->cpus.cpu[0] };

			EXPECT_EQ(EINVAL, bp_as_nobody(try_open, &of_task));
			EXPECT_EQ(EINVAL, bp_as_nobody(try_open, &of_cpu));
		}
		if (!full)
			ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	}
}

/* Missing permission is reported before ENOSPC. */
TEST_F(refused, flexible_without_privilege_where_no_slot_is_free)
{
	struct request of_task = { &self->attr, getpid(), -1 };
	struct request of_cpu = { &self->attr, -1, self->cpus.cpu[0] };
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, set_paranoid("1"));
	self->attr.config = BP_FLEXIBLE;
	for (int full = 0; full < 2; full++) {
		EXPECT_EQ(EACCES, bp_as_nobody(try_open, &of_task));
		EXPECT_EQ(EACCES, bp_as_nobody(try_open, &of_cpu));
		if (!full)
			ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	}
}

TEST_F(refused, flexible_kernel_address_without_privilege)
{
	struct request r = { &self->attr, 0, -1 };

	BP_NEED_ROOT();
	self->attr.config = BP_FLEXIBLE;
	self->attr.bp_addr = (unsigned long)KERNEL_HALF;
	self->attr.exclude_kernel = 0;
	ASSERT_EQ(0, set_paranoid("-1"));
	EXPECT_EQ(EPERM, bp_as_nobody(try_open, &r));
}

/* A group that can never fit is malformed: EINVAL, not ENOSPC. */
TEST_F(refused, flexible_members_that_do_not_fit_a_group)
{
	struct perf_event_attr flexible = self->attr;
	int of_plain, of_flexible;

	flexible.config = BP_FLEXIBLE;
	of_plain = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, of_plain);
	of_flexible = bp_open(&flexible, 0, -1);
	ASSERT_LE(0, of_flexible);
	EXPECT_EQ(-EINVAL, bp_open_group(&flexible, 0, -1, of_plain, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, -1, of_flexible, 0));
	for (int i = 1; i < BP_SLOTS; i++)
		EXPECT_LE(0, bp_open_group(&flexible, 0, -1, of_flexible, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flexible, 0, -1, of_flexible, 0));
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, -1));
}

/*
 * The same for a task without a free register, where a request that fits the group
 * would get ENOSPC.
 */
TEST_F(refused, flexible_members_that_do_not_fit_the_group_of_a_full_task)
{
	struct perf_event_attr flexible = self->attr;
	int leader, fd[BP_SLOTS];
	pid_t pid = bp_fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		pause();
		_exit(0);
	}
	flexible.config = BP_FLEXIBLE;
	leader = bp_open(&self->attr, pid, -1);
	ASSERT_LE(0, leader);
	ASSERT_EQ(BP_SLOTS - 1, bp_fill(pid, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open_group(&self->attr, pid, -1, leader, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flexible, pid, -1, leader, 0));
	EXPECT_EQ(-ENOSPC, bp_open(&flexible, pid, -1));
}

/* ------------------------------------------ kernel addresses that cannot be watched */

TEST_F(refused, cpu_entry_area_even_for_root)
{
	BP_NEED_ROOT();
	self->attr.exclude_kernel = 0;
	self->attr.bp_addr = (unsigned long)ENTRY_AREA;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, self->cpus.cpu[0]));
	self->attr.bp_addr += 4096;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(refused, data_of_the_entry_code_even_for_root)
{
	BP_NEED_ROOT();
	self->attr.exclude_kernel = 0;
	self->attr.bp_addr = (unsigned long)bp_ksym("__per_cpu_offset");
	if (!self->attr.bp_addr)
		SKIP(return, "__per_cpu_offset is not in /proc/kallsyms");
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(refused, instruction_of_the_entry_code_even_for_root)
{
	static const char * const name[] = { "asm_exc_debug", "exc_debug_user", "exc_nmi" };

	BP_NEED_ROOT();
	self->attr = bp_attr_x(NULL);
	self->attr.exclude_kernel = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(name); i++) {
		self->attr.bp_addr = (unsigned long)bp_ksym(name[i]);
		if (!self->attr.bp_addr)
			continue;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
			TH_LOG("%s", name[i]);
		}
	}
}

TEST_F(refused, ordinary_kernel_address_is_accepted_for_root)
{
	BP_NEED_ROOT();
	self->attr.exclude_kernel = 0;
	self->attr.bp_addr = (unsigned long)bp_ksym("panic_timeout");
	if (!self->attr.bp_addr)
		SKIP(return, "panic_timeout is not in /proc/kallsyms");
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_LE(0, bp_open(&self->attr, -1, self->cpus.cpu[0]));
}

/* ------------------------------------------------------ read, ioctl and mmap */

TEST_F(refused, read_into_a_short_buffer)
{
	__u32 small;
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, read(fd, &small, sizeof(small)));
	EXPECT_EQ(ENOSPC, errno);
}

TEST_F(refused, unknown_ioctl)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-ENOTTY, bp_ioctl(fd, _IO('$', 200), 0));
}

TEST_F(refused, filter)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"a == 1"));
}

TEST_F(refused, period_and_refresh_of_an_event_that_only_counts)
{
	__u64 period = 10;
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
}

TEST_F(refused, invalid_period)
{
	__u64 zero = 0, top = 1ULL << 63;
	int fd;

	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&zero));
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&top));
	EXPECT_EQ(-EFAULT, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, 8));
}

TEST_F(refused, ring_of_a_size_that_is_no_power_of_two)
{
	struct bp_ring ring;
	int fd;

	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ring_map(&ring, fd, 3, PROT_READ | PROT_WRITE));
}

/* A refused request does not change breakpoints that are open. */
TEST_F(refused, requests_do_not_disturb_an_open_breakpoint)
{
	struct perf_event_attr bad[3] = { self->attr, self->attr, self->attr };
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	bad[0].bp_len = 3;
	bad[1].bp_addr++;
	bad[2].bp_type = HW_BREAKPOINT_R;
	for (int i = 0; i < 30; i++) {
		EXPECT_EQ(-EINVAL, bp_open(&bad[i % 3], 0, -1));
		bp_store(mem, 1);
		EXPECT_EQ(i + 1, bp_count(fd));
	}
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

/* -------------------------------------------- requests that perf core itself refuses */

#define FILE_MAX	"/proc/sys/fs/file-max"

enum {
	FILL,
	TRY,
};

/*
 * Without privileges: opens breakpoints in all registers but one, then requests the
 * last one.
 */
static long ask_without_a_file(int cmd, void *arg)
{
	struct perf_event_attr *attr = arg;
	int err;

	if (cmd == FILL) {
		if (bp_become_nobody())
			return -1;
		for (int i = 1; i < BP_SLOTS; i++) {
			if (bp_open(attr, 0, -1) < 0)
				return -1;
		}
		return 0;
	}

	for (int i = 0; i < 5000; i++) {
		err = bp_open(attr, 0, -1);
		if (err != -ENFILE)
			return err;
	}
	return 0;
}

/*
 * One request after the other fails because no file can be opened. None of them may
 * claim a register meanwhile: another request would be refused for it.
 */
TEST_F(refused, request_without_a_file_holds_no_register)
{
	struct perf_event_attr attr = self->attr;
	struct bp_worker asker;
	int cmd = TRY, refused = 0;
	char file_max[32];
	struct pollfd answer = { .events = POLLIN };
	long result;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_read_file(FILE_MAX, file_max, sizeof(file_max)));
	ASSERT_EQ(0, bp_start(&asker, ask_without_a_file, &attr));
	ASSERT_EQ(0, bp_do(&asker, FILL));
	answer.fd = asker.ans[0];

	ASSERT_EQ(0, bp_write_file(FILE_MAX, "1"));
	ASSERT_EQ(sizeof(cmd), write(asker.cmd[1], &cmd, sizeof(cmd)));
	while (!poll(&answer, 1, 0)) {
		int fd = bp_open(&attr, -1, 0);

		refused += fd < 0;
		close(fd);
	}
	EXPECT_EQ(0, bp_write_file(FILE_MAX, file_max));
	EXPECT_EQ(sizeof(result), read(asker.ans[0], &result, sizeof(result)));
	EXPECT_EQ(0, result);
	EXPECT_EQ(0, refused);
	bp_stop(&asker);
}

TEST_HARNESS_MAIN
