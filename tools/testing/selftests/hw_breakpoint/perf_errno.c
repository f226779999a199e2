// SPDX-License-Identifier: GPL-2.0
/*
 * The errors of refused requests for PERF_TYPE_BREAKPOINT.
 *
 * The rule: a request that is refused changes nothing, and its errno has the reason.
 * Permission that does not depend on the task comes first, then the attributes, permission
 * for the task or the CPU, and the registers (ENOSPC).
 */
#include <limits.h>
#include <poll.h>
#include <sys/resource.h>

#include "bp_test.h"

#ifdef __x86_64__
#define ENTRY_AREA	0xfffffe0000000000UL
#endif
#ifdef __LP64__
#define KERNEL_HALF	((void *)0xffff800000000000UL)
#else
#define KERNEL_HALF	((void *)0xc0000000UL)
#endif
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define MAX_STACK	"/proc/sys/kernel/perf_event_max_stack"

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
	/* If set, changes the other attributes of a valid request */
	void (*change)(struct perf_event_attr *attr);
};

#define REQUEST(name, ...) FIXTURE_VARIANT_ADD(request, name) { __VA_ARGS__ }

/* A write breakpoint on 4 bytes, with other attributes that no breakpoint may have */
#define ATTR(name, error, ...)						\
	static void change_##name(struct perf_event_attr *attr)		\
	{								\
		__VA_ARGS__;						\
	}								\
	REQUEST(name, .type = HW_BREAKPOINT_W, .addr = mem, .len = 4,	\
		.change = change_##name, .err = error)

REQUEST(type_none, .type = 0, .addr = mem, .len = 4, .err = EINVAL);
#if BP_X86
REQUEST(type_r_alone, .type = HW_BREAKPOINT_R, .addr = mem, .len = 4, .err = EINVAL);
#endif
REQUEST(type_wx, .type = HW_BREAKPOINT_W | HW_BREAKPOINT_X, .addr = mem, .len = 8,
	.err = EINVAL);
REQUEST(type_rwx, .type = HW_BREAKPOINT_INVALID, .addr = mem, .len = 8, .err = EINVAL);
REQUEST(type_unknown_bit, .type = 8, .addr = mem, .len = 4, .err = EINVAL);
REQUEST(type_w_and_unknown_bit, .type = HW_BREAKPOINT_W | 1 << 31, .addr = mem, .len = 4,
	.err = EINVAL);

REQUEST(len_0, .type = HW_BREAKPOINT_W, .addr = mem, .len = 0, .err = EINVAL);
REQUEST(len_29, .type = HW_BREAKPOINT_RW, .addr = mem, .len = 29, .err = EINVAL);
REQUEST(len_31, .type = HW_BREAKPOINT_W, .addr = mem, .len = 31, .err = EINVAL);
REQUEST(len_33, .type = HW_BREAKPOINT_W, .addr = mem, .len = 33, .err = EINVAL);
REQUEST(len_40, .type = HW_BREAKPOINT_W, .addr = mem, .len = 40, .err = EINVAL);
REQUEST(len_48, .type = HW_BREAKPOINT_W, .addr = mem, .len = 48, .err = EINVAL);
REQUEST(len_64_unaligned, .type = HW_BREAKPOINT_W, .addr = mem + 8, .len = 64,
	.err = EINVAL);
REQUEST(len_huge, .type = HW_BREAKPOINT_W, .addr = mem, .len = ~0UL, .err = EINVAL);

/* These ranges need more than four registers. */
REQUEST(addr_unaligned_16, .type = HW_BREAKPOINT_W, .addr = mem + 1, .len = 16,
	.err = EINVAL);
REQUEST(addr_unaligned_24, .type = HW_BREAKPOINT_W, .addr = mem + 2, .len = 24,
	.err = EINVAL);
REQUEST(addr_unaligned_32, .type = HW_BREAKPOINT_RW, .addr = mem + 4, .len = 32,
	.err = EINVAL);
REQUEST(addr_wraps, .type = HW_BREAKPOINT_W, .addr = (void *)-4L, .len = 8, .err = EINVAL);
REQUEST(addr_last_byte_wraps, .type = HW_BREAKPOINT_W, .addr = (void *)-1L, .len = 2,
	.err = EINVAL);

#if BP_X86
REQUEST(x_len_1, .type = HW_BREAKPOINT_X, .addr = bp_func, .len = 1, .err = EINVAL);
REQUEST(x_len_of_half_a_word, .type = HW_BREAKPOINT_X, .addr = bp_func,
	.len = sizeof(long) / 2, .err = EINVAL);
#endif
REQUEST(x_len_16, .type = HW_BREAKPOINT_X, .addr = bp_func, .len = 16, .err = EINVAL);

REQUEST(kernel_addr_without_kernel_mode, .type = HW_BREAKPOINT_W, .addr = KERNEL_HALF,
	.len = sizeof(long), .err = EINVAL);
REQUEST(kernel_x_without_kernel_mode, .type = HW_BREAKPOINT_X, .addr = KERNEL_HALF,
	.len = sizeof(long), .err = EINVAL);

ATTR(len_beyond_32_bits, EINVAL, attr->bp_len |= 1ULL << 32);
ATTR(config_unknown_bit, EINVAL, attr->config = 1 << 5);
/* A high one: later kernels use some of the others. */
ATTR(reserved_bit, EINVAL, attr->__reserved_1 = 1 << 23);
ATTR(unknown_sample_type, EINVAL, attr->sample_type = PERF_SAMPLE_MAX);
ATTR(unknown_read_format, EINVAL, attr->read_format = PERF_FORMAT_MAX);
ATTR(unknown_clock, EINVAL, attr->use_clockid = 1, attr->clockid = 99);
ATTR(clock_that_an_nmi_cannot_read, EINVAL,
     attr->use_clockid = 1, attr->clockid = CLOCK_REALTIME);
ATTR(period_with_the_top_bit, EINVAL, attr->sample_period = 1ULL << 63);
ATTR(branch_stack, EOPNOTSUPP,
     attr->sample_period = 1, attr->sample_type = PERF_SAMPLE_BRANCH_STACK,
     attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER);
ATTR(branch_stack_without_period, EOPNOTSUPP,
     attr->sample_type = PERF_SAMPLE_BRANCH_STACK,
     attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY);
ATTR(inherited_group_sample, EINVAL,
     attr->inherit = 1, attr->read_format = PERF_FORMAT_GROUP,
     attr->sample_type = PERF_SAMPLE_READ);
ATTR(inherited_sample_without_tid, EINVAL,
     attr->inherit = 1, attr->sample_period = 1, attr->sample_type = PERF_SAMPLE_READ);
ATTR(inherit_thread_without_inherit, EINVAL, attr->inherit_thread = 1);
ATTR(remove_and_enable_on_exec, EINVAL, attr->remove_on_exec = 1, attr->enable_on_exec = 1);
ATTR(no_user_registers, EINVAL, attr->sample_type = PERF_SAMPLE_REGS_USER);
ATTR(unknown_registers, EINVAL,
     attr->sample_type = PERF_SAMPLE_REGS_INTR, attr->sample_regs_intr = 1ULL << BP_PERF_REG_NONE);
ATTR(two_kinds_of_weight, EINVAL,
     attr->sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
ATTR(stack_unaligned, EINVAL,
     attr->sample_type = PERF_SAMPLE_STACK_USER, attr->sample_stack_user = 4);
ATTR(stack_too_large, EINVAL,
     attr->sample_type = PERF_SAMPLE_STACK_USER, attr->sample_stack_user = 65535);
ATTR(call_chain_above_the_limit, EOVERFLOW,
     attr->sample_type = PERF_SAMPLE_CALLCHAIN, attr->exclude_callchain_kernel = 1,
     attr->sample_max_stack = 65535);
ATTR(aux_pause, EINVAL, attr->aux_pause = 1);
ATTR(aux_resume, EINVAL, attr->aux_resume = 1);
ATTR(aux_pause_and_resume, EINVAL, attr->aux_pause = 1, attr->aux_resume = 1);
ATTR(aux_start_paused, EOPNOTSUPP, attr->aux_start_paused = 1);
ATTR(inherited_process, EINVAL, attr->config = BP_PROCESS, attr->inherit = 1);
ATTR(aux_output, EOPNOTSUPP, attr->aux_output = 1);
ATTR(aux_sample_size, EINVAL, attr->aux_sample_size = 64);
#if BP_X86
/* Registers of SSE, which only a PMU of the processor can sample */
ATTR(sse_registers, EOPNOTSUPP, attr->sample_regs_intr = 1ULL << 32);
ATTR(sse_registers_of_user_mode, EOPNOTSUPP, attr->sample_regs_user = 1ULL << 32);
#endif

FIXTURE_SETUP(request)
{
	if (variant->err == EOVERFLOW && bp_read_number(MAX_STACK) >= USHRT_MAX)
		SKIP(return, "no sample_max_stack exceeds kernel.perf_event_max_stack");
	self->attr = bp_attr(variant->type, variant->addr, variant->len);
	if (variant->change)
		variant->change(&self->attr);
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

	BP_NEED_CONFIG(BP_FLEXIBLE);
	self->attr.config |= BP_FLEXIBLE;
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-variant->err, bp_open(&self->attr, 0, -1));
}

/* ------------------------------------------------------------- other requests */

FIXTURE(refused)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(refused)
{
	self->attr = bp_attr_w(mem, 4);
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(refused)
{
	bp_teardown(_metadata);
}

/* A range that only some processors support is refused or watched completely. */
TEST_F(refused, longer_range_where_the_processor_has_none)
{
	char cpuinfo[65536];
	int fd;

	self->attr.bp_len = 64;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_EQ(0, bp_read_file("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo)));
	if (strstr(cpuinfo, " bpext")) {
		EXPECT_GE(fd, 0);
	} else {
		EXPECT_EQ(BP_X86 ? -EOPNOTSUPP : -EINVAL, fd);
	}
}

/*
 * attr.config of a breakpoint is a set of flags: unknown bits are refused. Bit 0 is
 * flexible, bit 1 is process; bit 2 is refused without sigtrap.
 */
TEST_F(refused, unknown_config_bit)
{
	int fd[BP_SLOTS];

	for (int full = 0; full < 2; full++) {
		for (int bit = 2; bit < 64; bit++) {
			self->attr.config = 1ULL << bit;
			if (self->attr.config & (BP_VALUE | BP_CHANGED))
				continue;
			EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
				TH_LOG("config bit %d, full %d", bit, full);
			}
			self->attr.config |= BP_FLEXIBLE;
			EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
				TH_LOG("config bits 0 and %d, full %d", bit, full);
			}
		}
		if (!full)
			ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	}
}

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
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	for (int full = 0; full < 2; full++) {
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 100000));
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, 100000));
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, 1 << 20));
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -2));
		if (!full)
			ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	}
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, self->cpus.cpu[0]));
}

TEST_F(refused, task_that_does_not_exist)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
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

#define MAX_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"

TEST_F(refused, frequency_above_the_limit)
{
	char max[16];

	ASSERT_EQ(0, bp_read_file(MAX_RATE, max, sizeof(max)));
	self->attr.freq = 1;
	self->attr.sample_freq = strtoul(max, NULL, 10);
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.sample_freq++;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(refused, member_with_another_clock_or_inherit)
{
	struct perf_event_attr attr = self->attr;
	int leader = bp_open(&self->attr, 0, -1);

	ASSERT_GE(leader, 0);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, -1, leader, 0));
	attr = self->attr;
	attr.inherit = 1;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, -1, leader, 0));
	EXPECT_LE(0, bp_open_group(&self->attr, 0, -1, leader, 0));
}

/* A read of a group returns at most 16 KiB. */
TEST_F(refused, group_whose_read_is_too_large)
{
	struct perf_event_attr dummy = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	const size_t header = 3 * sizeof(__u64), member = 3 * sizeof(__u64);
	const int max = (16 * 1024 - header) / member;
	struct rlimit files = { 2 * max, 2 * max };
	int leader;

	BP_NEED_ROOT();
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	self->attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
				 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	leader = bp_open(&self->attr, 0, -1);
	ASSERT_GE(leader, 0);
	for (int i = 1; i < max; i++)
		ASSERT_LE(0, bp_open_group(&dummy, 0, -1, leader, 0));
	EXPECT_EQ(-E2BIG, bp_open_group(&dummy, 0, -1, leader, 0));
	EXPECT_EQ(-E2BIG, bp_open_group(&self->attr, 0, -1, leader, 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

/*
 * A member that does not fit its group, or an event that cannot use the ring buffer of
 * another one, gets its own error, too, where no register is available.
 */
TEST_F(refused, other_event_is_wrong_where_no_slot_is_free)
{
	const unsigned long output = PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT;
	int cpu = self->cpus.cpu[0], other, fd[BP_SLOTS];
	struct perf_event_attr pinned, flexible, backward;
	struct bp_ring ring;

	self->attr.sample_period = 1;
	pinned = self->attr;
	flexible = self->attr;
	backward = self->attr;
	pinned.pinned = 1;
	flexible.config = BP_FLEXIBLE;
	backward.write_backward = 1;
	other = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, other);
	ASSERT_EQ(BP_SLOTS - 1, bp_fill(0, -1, fd));

	EXPECT_EQ(-ENOSPC, bp_open_group(&self->attr, 0, -1, other, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, cpu, other, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&pinned, 0, -1, other, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flexible, 0, -1, other, 0));

	/* The other event has no ring buffer yet. */
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, -1, other, output));
	ASSERT_EQ(0, bp_ring_map(&ring, other, 1, PROT_READ | PROT_WRITE));
	EXPECT_EQ(-ENOSPC, bp_open_group(&self->attr, 0, -1, other, output));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, cpu, other, output));
	EXPECT_EQ(-EINVAL, bp_open_group(&backward, 0, -1, other, output));
	bp_ring_unmap(&ring);
}

/* -------------------------------------------------------------- missing permission */

FIXTURE(permission)
{
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	bool fill_own;
	int err;
	char paranoid[16];
};

FIXTURE_VARIANT(permission)
{
	/* The requested event is for this CPU, for this task, or for the requester itself. */
	enum { OF_CPU, OF_THIS_TASK, OF_REQUESTER } of;
	/* Value of kernel.perf_event_paranoid; NULL for the one of the machine */
	const char *paranoid;
	/* If set, changes the attributes of a write breakpoint on 4 bytes in user mode */
	void (*change)(struct perf_event_attr *attr);
	/* The errno; 0 if the request is allowed */
	int err;
};

#define PERMISSION(name, ...) FIXTURE_VARIANT_ADD(permission, name) { __VA_ARGS__ }

static void make_flexible_and_pinned(struct perf_event_attr *attr)
{
	attr->config = BP_FLEXIBLE;
	attr->pinned = 1;
}

static void watch_kernel_mode(struct perf_event_attr *attr)
{
	attr->exclude_kernel = 0;
}

static void watch_kernel_address(struct perf_event_attr *attr)
{
	attr->bp_addr = (unsigned long)KERNEL_HALF;
	attr->exclude_kernel = 0;
}

static void watch_kernel_instruction(struct perf_event_attr *attr)
{
	watch_kernel_address(attr);
	attr->bp_type = HW_BREAKPOINT_X;
	attr->bp_len = sizeof(long);
}

static void take_len_33(struct perf_event_attr *attr)
{
	attr->bp_len = 33;
}

PERMISSION(own_task, OF_REQUESTER, "2", NULL, 0);
PERMISSION(cpu, OF_CPU, "1", NULL, EACCES);
PERMISSION(task_of_another_user, OF_THIS_TASK, NULL, NULL, EACCES);
PERMISSION(kernel_mode, OF_REQUESTER, "2", watch_kernel_mode, EACCES);

/* A kernel address requires CAP_SYS_ADMIN, whatever kernel.perf_event_paranoid is. */
PERMISSION(kernel_address, OF_REQUESTER, "-1", watch_kernel_address, EPERM);
PERMISSION(kernel_instruction, OF_REQUESTER, "-1", watch_kernel_instruction, EPERM);
PERMISSION(kernel_instruction_if_paranoid, OF_REQUESTER, "2", watch_kernel_instruction,
	   EACCES);

/* Invalid attributes are reported before missing permission. */
PERMISSION(malformed_for_a_cpu, OF_CPU, "1", take_len_33, EINVAL);
PERMISSION(malformed_for_another_user, OF_THIS_TASK, "1", take_len_33, EINVAL);
PERMISSION(unknown_bit_for_a_cpu, OF_CPU, "1", change_config_unknown_bit, EINVAL);
PERMISSION(unknown_bit_for_another_user, OF_THIS_TASK, "1", change_config_unknown_bit,
	   EINVAL);
PERMISSION(flexible_and_pinned_for_a_cpu, OF_CPU, "1", make_flexible_and_pinned, EINVAL);
PERMISSION(flexible_and_pinned_for_another_user, OF_THIS_TASK, "1",
	   make_flexible_and_pinned, EINVAL);

FIXTURE_SETUP(permission)
{
	struct bp_cpus cpus = bp_online_cpus();

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_read_file(PARANOID, self->paranoid, sizeof(self->paranoid)));
	if (variant->paranoid)
		ASSERT_EQ(0, bp_write_file(PARANOID, variant->paranoid));
	self->attr = bp_attr_w(mem, 4);
	if (variant->change)
		variant->change(&self->attr);
	self->pid = variant->of == OF_CPU ? -1 : variant->of == OF_THIS_TASK ? getpid() : 0;
	self->cpu = variant->of == OF_CPU ? cpus.cpu[0] : -1;
	self->err = variant->err;
	/* No permission is asked for where no task can watch such an address. */
	if (self->err == EPERM &&
	    (!BP_TASK_IN_KERNEL ||
	     (self->attr.bp_type == HW_BREAKPOINT_X && !bp_can_watch_kernel_code())))
		self->err = EINVAL;
}

FIXTURE_TEARDOWN(permission)
{
	if (!geteuid())
		EXPECT_EQ(0, bp_write_file(PARANOID, self->paranoid));
	bp_teardown(_metadata);
}

/* The exit status is the errno of the request. */
static int try_open(void *arg)
{
	FIXTURE_DATA(permission) *self = arg;
	int fd[BP_SLOTS];

	if (self->fill_own && bp_fill(0, -1, fd) != BP_SLOTS)
		return 255;
	fd[0] = bp_open(&self->attr, self->pid, self->cpu);
	return fd[0] < 0 ? -fd[0] : 0;
}

/* Leaves no register for the request. */
static void fill(struct __test_metadata *_metadata, FIXTURE_DATA(permission) *self)
{
	int fd[BP_SLOTS];

	if (!self->pid) {
		self->fill_own = true;
		return;
	}
	ASSERT_EQ(BP_SLOTS, bp_fill(self->cpu < 0 ? 0 : -1, self->cpu, fd));
}

TEST_F(permission, is_checked)
{
	EXPECT_EQ(self->err, bp_as_nobody(try_open, self));
}

/* Missing permission is reported before ENOSPC. */
TEST_F(permission, is_checked_where_no_slot_is_free)
{
	fill(_metadata, self);
	EXPECT_EQ(self->err ?: ENOSPC, bp_as_nobody(try_open, self));
}

TEST_F(permission, is_checked_for_a_flexible_breakpoint)
{
	BP_NEED_CONFIG(BP_FLEXIBLE);
	self->attr.config |= BP_FLEXIBLE;
	EXPECT_EQ(self->err, bp_as_nobody(try_open, self));
	fill(_metadata, self);
	EXPECT_EQ(self->err ?: ENOSPC, bp_as_nobody(try_open, self));
}

static int try_own_task(void *attr)
{
	int fd = bp_open(attr, 0, -1);

	return fd < 0 ? -fd : 0;
}

/* Not all kernels have a level of the sysctl at which each request needs privileges. */
TEST_F(refused, own_task_without_privilege_at_level_3)
{
	struct perf_event_attr dummy = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int of_dummy, of_breakpoint;
	char paranoid[16];

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_read_file(PARANOID, paranoid, sizeof(paranoid)));
	ASSERT_EQ(0, bp_write_file(PARANOID, "3"));
	of_dummy = bp_as_nobody(try_own_task, &dummy);
	of_breakpoint = bp_as_nobody(try_own_task, &self->attr);
	ASSERT_EQ(0, bp_write_file(PARANOID, paranoid));
	if (!of_dummy)
		SKIP(return, "level 3 of perf_event_paranoid is the same as 2 here");
	EXPECT_EQ(EACCES, of_breakpoint);
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
}

/* ---------------------------------------------------------- flexible breakpoints */

TEST_F(refused, flexible_and_pinned)
{
	int fd[BP_SLOTS];

	BP_NEED_CONFIG(BP_FLEXIBLE);
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

	BP_NEED_CONFIG(BP_FLEXIBLE);
	self->attr.config = BP_FLEXIBLE;
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	bp_close(fd, BP_SLOTS);
	BP_NEED_ROOT();
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpus.cpu[0], fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, -1, self->cpus.cpu[0]));
}

/* A group that can never fit is malformed: EINVAL, not ENOSPC. */
TEST_F(refused, flexible_members_that_do_not_fit_a_group)
{
	struct perf_event_attr flexible = self->attr;
	int of_plain, of_flexible;

	BP_NEED_CONFIG(BP_FLEXIBLE);
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
	pid_t pid;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	pid = bp_fork();
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

/* ----------------------------------------------- kernel addresses, requested by root */

FIXTURE(kernel)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
};

FIXTURE_VARIANT(kernel)
{
	/* The address, or that of the symbol */
	unsigned long addr;
	const char *symbol;
	bool insn;
	int err;
};

#define KERNEL(name, ...) FIXTURE_VARIANT_ADD(kernel, name) { __VA_ARGS__ }

#if BP_X86
#ifdef ENTRY_AREA
KERNEL(cpu_entry_area, .addr = ENTRY_AREA, .err = EINVAL);
KERNEL(second_page_of_the_entry_area, .addr = ENTRY_AREA + 4096, .err = EINVAL);
#endif
KERNEL(data_of_the_entry_code, .symbol = "__per_cpu_offset", .err = EINVAL);
KERNEL(entry_of_db, .symbol = "asm_exc_debug", .insn = true, .err = EINVAL);
KERNEL(handler_of_db, .symbol = "exc_debug_user", .insn = true, .err = EINVAL);
KERNEL(handler_of_nmi, .symbol = "exc_nmi", .insn = true, .err = EINVAL);
#endif
KERNEL(ordinary_data, .symbol = "panic_timeout");
KERNEL(ordinary_code, .symbol = "proc_pid_cmdline_read", .insn = true);

FIXTURE_SETUP(kernel)
{
	unsigned long addr = variant->addr;

	BP_NEED_ROOT();
	if (variant->symbol)
		addr = (unsigned long)bp_ksym(variant->symbol);
	if (!addr)
		SKIP(return, "%s is not in /proc/kallsyms", variant->symbol);
	if (variant->insn)
		BP_NEED(bp_can_watch_kernel_code(), "needs kprobes");
	self->attr = variant->insn ? bp_attr_x((void *)addr) : bp_attr_w((void *)addr, 4);
	self->attr.exclude_kernel = 0;
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(kernel)
{
	bp_teardown(_metadata);
}

static int error_of(int fd)
{
	return fd < 0 ? -fd : 0;
}

TEST_F(kernel, address_that_must_not_be_watched_is_refused)
{
	EXPECT_EQ(BP_TASK_IN_KERNEL ? variant->err : EINVAL,
		  error_of(bp_open(&self->attr, 0, -1)));
	EXPECT_EQ(variant->err, error_of(bp_open(&self->attr, -1, self->cpus.cpu[0])));
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

TEST_F(refused, read_into_memory_that_is_not_there)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, read(fd, (void *)8UL, sizeof(__u64)));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(refused, id_into_memory_that_is_not_there)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EFAULT, bp_ioctl(fd, PERF_EVENT_IOC_ID, 8));
}

TEST_F(refused, output_into_what_is_no_event)
{
	int fd = bp_open(&self->attr, 0, -1), file = open("/dev/null", O_RDONLY);

	ASSERT_GE(fd, 0);
	ASSERT_GE(file, 0);
	EXPECT_EQ(-EBADF, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, file));
	close(file);
}

/* Only the last of these events can write into the buffer of the first one. */
TEST_F(refused, output_of_an_event_that_is_too_different)
{
	struct perf_event_attr attr;
	struct bp_ring ring;
	int to, fd;

	self->attr.sample_period = 1;
	attr = self->attr;
	to = bp_open(&self->attr, 0, -1);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, to));
	ASSERT_EQ(0, bp_ring_map(&ring, to, 1, PROT_READ | PROT_WRITE));
	EXPECT_EQ(-EINVAL, bp_ioctl(to, PERF_EVENT_IOC_SET_OUTPUT, to));
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, self->cpus.cpu[0], to,
					 PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT));
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, -1, to,
					 PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT));
	attr = self->attr;
	attr.write_backward = 1;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, -1, to,
					 PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, to));
	EXPECT_EQ(-EINVAL, bp_ioctl(to, PERF_EVENT_IOC_SET_OUTPUT, fd));
	bp_ring_unmap(&ring);
}

static __u64 period_0, period_10 = 10, period_with_top_bit = 1ULL << 63;

FIXTURE(call)
{
	int fd;
};

FIXTURE_VARIANT(call)
{
	unsigned long cmd;
	const void *arg;
	/* The sample_period of the event: 0 if it only counts */
	__u64 sample_period;
	int err;
};

#define CALL(name, ...) FIXTURE_VARIANT_ADD(call, name) { __VA_ARGS__ }

CALL(unknown, _IO('$', 200), NULL, 0, ENOTTY);
CALL(filter, PERF_EVENT_IOC_SET_FILTER, "a == 1", 0, EINVAL);
CALL(period_of_an_event_that_only_counts, PERF_EVENT_IOC_PERIOD, &period_10, 0, EINVAL);
CALL(refresh_of_an_event_that_only_counts, PERF_EVENT_IOC_REFRESH, (void *)1UL, 0, EINVAL);
CALL(period_0, PERF_EVENT_IOC_PERIOD, &period_0, 1, EINVAL);
CALL(period_with_the_top_bit, PERF_EVENT_IOC_PERIOD, &period_with_top_bit, 1, EINVAL);
CALL(period_that_cannot_be_read, PERF_EVENT_IOC_PERIOD, (void *)8UL, 1, EFAULT);
CALL(bpf_without_a_program, PERF_EVENT_IOC_SET_BPF, (void *)-1L, 0, EBADF);
CALL(query_bpf, PERF_EVENT_IOC_QUERY_BPF, &period_10, 0, EINVAL);

FIXTURE_SETUP(call)
{
	struct perf_event_attr attr = bp_attr_w(mem, 4);

	if (variant->cmd == PERF_EVENT_IOC_SET_BPF || variant->cmd == PERF_EVENT_IOC_QUERY_BPF)
		BP_NEED(syscall(__NR_bpf, -1, NULL, 0) == -1 && errno != ENOSYS,
			"needs BPF programs");
	attr.sample_period = variant->sample_period;
	self->fd = bp_open(&attr, 0, -1);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(call)
{
	bp_teardown(_metadata);
}

TEST_F(call, is_refused)
{
	EXPECT_EQ(-variant->err, bp_ioctl(self->fd, variant->cmd, (unsigned long)variant->arg));
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
	bad[0].bp_len = 33;
	bad[1].bp_addr++;
	bad[1].bp_len = 16;
	bad[2].bp_type = HW_BREAKPOINT_INVALID;
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
/* @asked: how many requests have failed */
struct asker {
	struct perf_event_attr attr;
	volatile __u64 *asked;
};

static long ask_without_a_file(int cmd, void *arg)
{
	struct asker *a = arg;
	int err;

	if (cmd == FILL) {
		if (bp_become_nobody())
			return -1;
		for (int i = 1; i < BP_SLOTS; i++) {
			if (bp_open(&a->attr, 0, -1) < 0)
				return -1;
		}
		return 0;
	}

	for (int i = 0; i < 5000; i++) {
		err = bp_open(&a->attr, 0, -1);
		if (err != -ENFILE)
			return err;
		*a->asked += 1;
	}
	return 0;
}

/*
 * One request after the other fails because no file can be opened. None of them may
 * claim a register meanwhile: another request would be refused for it.
 */
TEST_F(refused, request_without_a_file_holds_no_register)
{
	struct asker a = { self->attr, bp_map_shared() };
	struct bp_worker asker;
	int cmd = TRY, refused = 0, at_once = 0;
	char file_max[32];
	struct pollfd answer = { .events = POLLIN };
	long result;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_read_file(FILE_MAX, file_max, sizeof(file_max)));
	ASSERT_NE(NULL, a.asked);
	ASSERT_EQ(0, bp_start(&asker, ask_without_a_file, &a));
	ASSERT_EQ(0, bp_do(&asker, FILL));
	answer.fd = asker.ans[0];

	/* The kernel first compares a number that may be too small. */
	ASSERT_EQ(0, bp_write_file(FILE_MAX, "0"));
	ASSERT_EQ(sizeof(cmd), write(asker.cmd[1], &cmd, sizeof(cmd)));
	while (!poll(&answer, 1, 0)) {
		__u64 asked = *a.asked;
		int fd = bp_open(&a.attr, -1, 0);

		refused += fd < 0;
		close(fd);
		at_once += *a.asked != asked;
	}
	EXPECT_EQ(0, bp_write_file(FILE_MAX, file_max));
	EXPECT_EQ(sizeof(result), read(asker.ans[0], &result, sizeof(result)));
	EXPECT_EQ(0, result);
	EXPECT_EQ(0, refused);
	EXPECT_LT(0, at_once);
	bp_stop(&asker);
}

TEST_HARNESS_MAIN
