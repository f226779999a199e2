// SPDX-License-Identifier: GPL-2.0
/*
 * Counting with PERF_TYPE_BREAKPOINT.
 *
 * The rule: the count is the number of instructions that accessed a byte of the range,
 * with the requested type of access, by the requested tasks, on the requested CPUs and
 * in the requested modes; not one more and not one less.
 */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "bp_test.h"

enum { CMD_STORE = 1, CMD_STORE_MANY };

#define MANY	100

/* Commands of a worker, which accesses the byte at arg; CMD_PIN + n: move to CPU n. */
static long worker(int cmd, void *arg)
{
	switch (cmd) {
	case CMD_STORE:
		bp_store(arg, 1);
		return 0;
	case CMD_STORE_MANY:
		bp_store_times(arg, 1, MANY);
		return 0;
	default:
		return bp_pin((cmd >> 8) - 1);
	}
}

/* Stores once to each of the 8-byte words that a full set of breakpoints watches. */
static long store_to_all(int cmd, void *arg)
{
	for (int k = 0; k < BP_SLOTS; k++)
		bp_store_times((char *)arg + 8 * k, 1, cmd);
	return 0;
}

static int pin_cmd(int cpu)
{
	return (cpu + 1) << 8;
}

/* ------------------------------------------- accesses to the range */

FIXTURE(range)
{
	char *mem;
	int fd;
};

FIXTURE_VARIANT(range)
{
	unsigned int type;
	unsigned int len;
};

FIXTURE_VARIANT_ADD(range, w1) { .type = HW_BREAKPOINT_W, .len = 1 };
FIXTURE_VARIANT_ADD(range, w2) { .type = HW_BREAKPOINT_W, .len = 2 };
FIXTURE_VARIANT_ADD(range, w4) { .type = HW_BREAKPOINT_W, .len = 4 };
FIXTURE_VARIANT_ADD(range, w8) { .type = HW_BREAKPOINT_W, .len = 8 };
FIXTURE_VARIANT_ADD(range, rw1) { .type = HW_BREAKPOINT_RW, .len = 1 };
FIXTURE_VARIANT_ADD(range, rw2) { .type = HW_BREAKPOINT_RW, .len = 2 };
FIXTURE_VARIANT_ADD(range, rw4) { .type = HW_BREAKPOINT_RW, .len = 4 };
FIXTURE_VARIANT_ADD(range, rw8) { .type = HW_BREAKPOINT_RW, .len = 8 };

FIXTURE_SETUP(range)
{
	struct perf_event_attr attr;

	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->mem += 64;
	attr = bp_attr(variant->type, self->mem, variant->len);
	self->fd = bp_open(&attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(range)
{
	bp_teardown(_metadata);
}

TEST_F(range, store_to_each_byte_counts)
{
	for (unsigned int i = 0; i < variant->len; i++) {
		bp_store(self->mem + i, 1);
		EXPECT_EQ(i + 1, bp_count(self->fd));
	}
}

TEST_F(range, load_counts_for_rw_alone)
{
	bool rw = variant->type == HW_BREAKPOINT_RW;

	for (unsigned int i = 0; i < variant->len; i++) {
		bp_load(self->mem + i, 1);
		EXPECT_EQ(rw ? i + 1 : 0, bp_count(self->fd));
	}
}

TEST_F(range, access_beside_it_does_not_count)
{
	for (unsigned int size = 1; size <= 8; size *= 2) {
		unsigned int after = variant->len;

		if (bp_emulated() && after < size)
			after = size;
		bp_store(self->mem - size, size);
		bp_load(self->mem - size, size);
		bp_store(self->mem + after, size);
		bp_load(self->mem + after, size);
	}
	EXPECT_EQ(0, bp_count(self->fd));
}

/* An access that overlaps the range is one hit, whatever its size and alignment. */
TEST_F(range, overlapping_store_of_any_size_counts_once)
{
	int want = 0;

	for (int size = 1; size <= 8; size *= 2) {
		for (int at = 1 - size; at < (int)variant->len; at++) {
			bp_store(self->mem + at, size);
			EXPECT_EQ(++want, bp_count(self->fd)) {
				TH_LOG("store of %d bytes at offset %d", size, at);
			}
		}
	}
}

/* --------------------------------------------------------- instructions, X */

FIXTURE(insn)
{
	int fd;
};

FIXTURE_SETUP(insn)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_insn);

	self->fd = bp_open(&attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(insn)
{
	bp_teardown(_metadata);
}

TEST_F(insn, each_execution_counts_once)
{
	for (int i = 1; i <= 1000; i++)
		bp_func();
	EXPECT_EQ(1000, bp_count(self->fd));
}

TEST_F(insn, next_instruction_does_not_count)
{
	asm volatile("call *%0" : : "r"(bp_func_next) : "memory");
	EXPECT_EQ(0, bp_count(self->fd));
}

TEST_F(insn, reading_the_code_does_not_count)
{
	bp_load((void *)bp_func_insn, 1);
	EXPECT_EQ(0, bp_count(self->fd));
}

/* The instruction is executed once for each hit: the breakpoint does not repeat it. */
TEST_F(insn, the_instruction_is_carried_out_once)
{
	struct perf_event_attr attr;
	unsigned long n = 0;
	const void *addr;
	int fd;

	asm volatile("lea 1f(%%rip), %0" : "=r"(addr));
	attr = bp_attr_x(addr);
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < MANY; i++)
		asm volatile("jmp 1f\n"
			     ".pushsection .text.bp_once, \"ax\", @progbits\n"
			     "1:	inc %0\n"
			     "	jmp 2f\n"
			     ".popsection\n"
			     "2:" : "+r"(n));
	EXPECT_EQ(MANY, n);
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(insn, two_breakpoints_on_one_instruction_both_count)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_insn);
	int fd = bp_open(&attr, 0, -1);

	ASSERT_GE(fd, 0);
	for (int i = 0; i < 10; i++)
		bp_func();
	EXPECT_EQ(10, bp_count(self->fd));
	EXPECT_EQ(10, bp_count(fd));
}

TEST_F(insn, neighbouring_instructions_count_apart)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_next);
	int fd = bp_open(&attr, 0, -1);

	ASSERT_GE(fd, 0);
	for (int i = 0; i < 10; i++)
		bp_func();
	asm volatile("call *%0" : : "r"(bp_func_next) : "memory");
	EXPECT_EQ(10, bp_count(self->fd));
	EXPECT_EQ(11, bp_count(fd));
}

/* An instruction breakpoint is hit before the instruction, a data breakpoint after it. */
TEST_F(insn, instruction_and_data_breakpoint_of_one_instruction_both_count)
{
	static char mem[8] __aligned(8);
	struct perf_event_attr attr = bp_attr_x(bp_store_insn);
	int x = bp_open(&attr, 0, -1), w = bp_open_w(mem, 1);

	ASSERT_GE(x, 0);
	ASSERT_GE(w, 0);
	for (int i = 0; i < 10; i++)
		bp_store_at(mem);
	EXPECT_EQ(10, bp_count(x));
	EXPECT_EQ(10, bp_count(w));
}

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

/*
 * The signal of a hit is delivered at the instruction, before it is executed. After the
 * return from the handler the instruction must be executed, without another hit.
 */
TEST_F(insn, returning_from_a_signal_handler_does_not_repeat_the_hit)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_next);
	int fd;

	attr.sample_period = 1;
	attr.wakeup_events = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	signal(SIGUSR1, count_signal);
	ASSERT_EQ(0, fcntl(fd, F_SETSIG, SIGUSR1));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));

	for (int i = 1; i <= 20; i++) {
		bp_func();
		while (signals < i)
			sched_yield();
		EXPECT_EQ(i, bp_count(fd));
	}
	EXPECT_EQ(20, signals);
	EXPECT_EQ(20, bp_count(self->fd));
}

/* ------------------------------------------------- instructions with several accesses */

FIXTURE(count)
{
	char *mem;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(count)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(count)
{
	bp_teardown(_metadata);
}

TEST_F(count, read_modify_write_is_one_hit)
{
	struct perf_event_attr attr = bp_attr(HW_BREAKPOINT_RW, self->mem, 4);
	int rw = bp_open(&attr, 0, -1), w = bp_open_w(self->mem + 8, 4);

	ASSERT_GE(rw, 0);
	ASSERT_GE(w, 0);
	for (int i = 1; i <= 10; i++) {
		asm volatile("incl (%0)" : : "r"(self->mem) : "memory");
		bp_settle(self->mem);
		asm volatile("incl (%0)" : : "r"(self->mem + 8) : "memory");
		bp_settle(self->mem);
		EXPECT_EQ(i, bp_count(rw));
		EXPECT_EQ(i, bp_count(w));
	}
	if (bp_emulated())
		return;
	asm volatile("lock incl (%0)" : : "r"(self->mem) : "memory");
	asm volatile("lock incl (%0)" : : "r"(self->mem + 8) : "memory");
	EXPECT_EQ(11, bp_count(rw));
	EXPECT_EQ(11, bp_count(w));
}

TEST_F(count, push_onto_a_watched_stack_slot_counts)
{
	unsigned long *top = (unsigned long *)self->mem + 16;
	int fd = bp_open_w(top - 1, 8);

	ASSERT_GE(fd, 0);
	asm volatile("mov %%rsp, %%rbx\n"
		     "mov %0, %%rsp\n"
		     "push $1\n"
		     "mov %%rbx, %%rsp\n" : : "r"(top) : "rbx", "memory");
	EXPECT_EQ(1, bp_count(fd));
}

/* One hit, for the iteration that accesses the byte. */
TEST_F(count, string_store_across_the_range_counts_once)
{
	int fd = bp_open_w(self->mem + 32, 1);
	unsigned long n = 64;
	char *p = self->mem;

	ASSERT_GE(fd, 0);
	asm volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
	EXPECT_EQ(0UL, n);
	EXPECT_EQ(1, bp_count(fd));
}

/* The store faults and is repeated: one access, one hit. */
TEST_F(count, store_that_faults_the_page_in_counts_once)
{
	int fd;

	ASSERT_EQ(0, madvise(self->mem, BP_PAGE_SIZE, MADV_DONTNEED));
	fd = bp_open_w(self->mem, 8);
	ASSERT_GE(fd, 0);
	bp_store(self->mem, 8);
	EXPECT_EQ(1, bp_count(fd));
}

static int break_cow(void *mem)
{
	int fd = bp_open_w(mem, 1);

	if (fd < 0)
		return 255;
	bp_store(mem, 1);
	return bp_count(fd);
}

TEST_F(count, store_that_breaks_copy_on_write_counts_once)
{
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_in_child(break_cow, self->mem));
}

/*
 * One instruction made the given number of hits of data breakpoints: in each of them,
 * or in one of them if the emulator reports only one.
 */
static void expect_hits_in_all(struct __test_metadata *_metadata, const int *fd,
			       int nr, int hits)
{
	int sum = 0;

	for (int i = 0; i < nr; i++) {
		sum += bp_count(fd[i]);
		EXPECT_LE(bp_count(fd[i]), hits);
	}
	EXPECT_GE(sum, bp_emulated() ? hits : nr * hits);
}

TEST_F(count, all_registers_at_once_count_each_its_own)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open_w(self->mem + 64 * i, 1 << i);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < BP_SLOTS; i++)
		bp_store_times(self->mem + 64 * i, 1, 10 + i);
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
}

TEST_F(count, one_store_over_all_registers_counts_in_each)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open_w(self->mem + 2 * i, 1);
		ASSERT_GE(fd[i], 0);
	}
	bp_store_times(self->mem, 8, 10);
	expect_hits_in_all(_metadata, fd, BP_SLOTS, 10);
}

TEST_F(count, same_range_opened_twice_counts_in_both)
{
	int fd[2] = { bp_open_w(self->mem, 4), bp_open_w(self->mem, 4) };

	ASSERT_GE(fd[0], 0);
	ASSERT_GE(fd[1], 0);
	bp_store_times(self->mem, 4, 10);
	expect_hits_in_all(_metadata, fd, 2, 10);
}

/* A register that another event gets has that event's length and type. */
TEST_F(count, reused_register_has_the_new_length_and_type)
{
	for (int round = 0; round < 20; round++) {
		struct perf_event_attr wide = bp_attr(HW_BREAKPOINT_RW, self->mem, 8);
		int fd = bp_open(&wide, 0, -1);

		ASSERT_GE(fd, 0);
		bp_load(self->mem + 7, 1);
		EXPECT_EQ(1, bp_count(fd));
		close(fd);

		fd = bp_open_w(self->mem + 1, 1);
		ASSERT_GE(fd, 0);
		bp_load(self->mem, 8);
		bp_store(self->mem, 1);
		bp_store(self->mem + 2, 2);
		EXPECT_EQ(0, bp_count(fd));
		bp_store(self->mem + 1, 1);
		EXPECT_EQ(1, bp_count(fd));
		close(fd);
	}
}

/* -------------------------------------------------------- user and kernel mode */

/* The kernel stores one byte on behalf of this task. */
static int kernel_store(void *mem)
{
	int p[2], err = 0;

	if (pipe(p))
		return -errno;
	if (write(p[1], "x", 1) != 1 || read(p[0], mem, 1) != 1)
		err = -EIO;
	close(p[0]);
	close(p[1]);
	return err;
}

/* The kernel loads one byte on behalf of this task. */
static int kernel_load(void *mem)
{
	int p[2], err = 0;

	if (pipe(p))
		return -errno;
	if (write(p[1], mem, 1) != 1)
		err = -EIO;
	close(p[0]);
	close(p[1]);
	return err;
}

FIXTURE(mode)
{
	char *mem;
	int fd;
};

FIXTURE_VARIANT(mode)
{
	bool exclude_user;
	bool exclude_kernel;
};

FIXTURE_VARIANT_ADD(mode, both) { };
FIXTURE_VARIANT_ADD(mode, user_alone) { .exclude_kernel = true };
FIXTURE_VARIANT_ADD(mode, kernel_alone) { .exclude_user = true };
FIXTURE_VARIANT_ADD(mode, neither) { .exclude_user = true, .exclude_kernel = true };

FIXTURE_SETUP(mode)
{
	struct perf_event_attr attr;

	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	attr = bp_attr(HW_BREAKPOINT_RW, self->mem, 1);
	attr.exclude_user = variant->exclude_user;
	attr.exclude_kernel = variant->exclude_kernel;
	bp_store(self->mem, 1);
	self->fd = bp_open(&attr, 0, -1);
	if (self->fd == -EACCES && geteuid() && !variant->exclude_kernel)
		SKIP(return, "needs root");
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(mode)
{
	bp_teardown(_metadata);
}

TEST_F(mode, access_of_the_task_counts_where_user_mode_is_asked_for)
{
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(variant->exclude_user ? 0 : 10, bp_count(self->fd));
}

TEST_F(mode, store_by_a_system_call_counts_where_kernel_mode_is_asked_for)
{
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(0, kernel_store(self->mem));
	EXPECT_EQ(variant->exclude_kernel ? 0 : 10, bp_count(self->fd));
}

TEST_F(mode, load_by_a_system_call_counts_where_kernel_mode_is_asked_for)
{
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(0, kernel_load(self->mem));
	EXPECT_EQ(variant->exclude_kernel ? 0 : 10, bp_count(self->fd));
}

TEST_F(count, system_call_that_reads_the_range_does_not_count_for_w)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	BP_NEED_ROOT();
	attr.exclude_kernel = 0;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, kernel_load(self->mem));
	EXPECT_EQ(0, bp_count(fd));
	ASSERT_EQ(0, kernel_store(self->mem));
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(count, kernel_instruction_counts_for_root)
{
	struct perf_event_attr attr;
	void *addr;
	int fd;

	BP_NEED_ROOT();
	addr = bp_ksym("__x64_sys_getppid");
	if (!addr)
		SKIP(return, "__x64_sys_getppid is not in /proc/kallsyms");
	attr = bp_attr_x(addr);
	attr.exclude_kernel = 0;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 50; i++)
		syscall(__NR_getppid);
	EXPECT_EQ(50, bp_count(fd));
}

TEST_F(count, kernel_variable_counts_for_root)
{
	static const char path[] = "/proc/sys/kernel/panic";
	struct perf_event_attr attr;
	char old[32], now[32];
	void *addr;
	int fd;

	BP_NEED_ROOT();
	addr = bp_ksym("panic_timeout");
	if (!addr || bp_read_file(path, old, sizeof(old)))
		SKIP(return, "needs panic_timeout in /proc/kallsyms and %s", path);
	attr = bp_attr_w(addr, 4);
	attr.exclude_kernel = 0;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, bp_read_file(path, now, sizeof(now)));
	EXPECT_EQ(0, bp_count(fd));
	for (int i = 1; i <= 5; i++) {
		EXPECT_EQ(0, bp_write_file(path, old));
		EXPECT_EQ(i, bp_count(fd));
	}
}

/* ------------------------------------------------------------ tasks */

TEST_F(count, child_and_thread_do_not_count_for_this_task)
{
	struct bp_worker child, thread;
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	ASSERT_EQ(0, bp_start_thread(&thread, worker, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_count(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(count, event_of_a_child_counts_the_child_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker child;
	int fd;

	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	fd = bp_open(&attr, child.pid, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 7);
	EXPECT_EQ(0, bp_do(&child, CMD_STORE_MANY));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(count, event_of_a_thread_counts_the_thread_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker one, two;
	int fd;

	ASSERT_EQ(0, bp_start_thread(&one, worker, self->mem));
	ASSERT_EQ(0, bp_start_thread(&two, worker, self->mem));
	fd = bp_open(&attr, one.pid, -1);
	ASSERT_GE(fd, 0);
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_do(&two, CMD_STORE_MANY));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&one, CMD_STORE_MANY));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&one));
	EXPECT_EQ(0, bp_stop(&two));
}

/*
 * Two tasks with a breakpoint each on the same virtual address and the same CPU: every
 * switch gives the register to the other event.
 */
TEST_F(count, tasks_that_take_turns_on_a_cpu_count_each_its_own)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker w[2];
	int fd[2];

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, self->mem));
		fd[i] = bp_open(&attr, w[i].pid, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 1; i <= 200; i++) {
		EXPECT_EQ(0, bp_do(&w[0], CMD_STORE));
		bp_store(self->mem, 1);
		if (i % 2)
			EXPECT_EQ(0, bp_do(&w[1], CMD_STORE));
	}
	EXPECT_EQ(200, bp_count(fd[0]));
	EXPECT_EQ(100, bp_count(fd[1]));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

TEST_F(count, full_sets_of_two_tasks_count_each_its_own)
{
	struct bp_worker w[2];
	int fd[2][BP_SLOTS];

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], store_to_all, self->mem));
		for (int k = 0; k < BP_SLOTS; k++) {
			struct perf_event_attr attr = bp_attr_w(self->mem + 8 * k, 1 << k);

			fd[i][k] = bp_open(&attr, w[i].pid, -1);
			ASSERT_GE(fd[i][k], 0);
		}
	}
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(0, bp_do(&w[0], 1));
		if (i % 4 == 0)
			EXPECT_EQ(0, bp_do(&w[1], 2));
	}
	for (int k = 0; k < BP_SLOTS; k++) {
		EXPECT_EQ(100, bp_count(fd[0][k]));
		EXPECT_EQ(50, bp_count(fd[1][k]));
	}
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

/*
 * A store by another task through its own mapping of the memory does not hit this
 * task's breakpoint.
 */
TEST_F(count, store_by_another_task_into_this_memory_does_not_count)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 8);
	struct bp_worker child;
	__u64 value = 0x1234;
	struct iovec local = { &value, 8 }, remote = { self->mem, 8 };
	int fd;

	BP_NEED_ROOT();
	attr.exclude_kernel = 0;
	ASSERT_EQ(0, bp_start(&child, worker, self->mem));
	fd = bp_open(&attr, child.pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(8, process_vm_writev(child.pid, &local, 1, &remote, 1, 0));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(count, store_in_a_signal_handler_counts)
{
	int fd = bp_open_w((void *)&signals, sizeof(signals));
	long before;

	ASSERT_GE(fd, 0);
	signal(SIGUSR1, count_signal);
	before = bp_count(fd);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	EXPECT_EQ(10, signals);
	EXPECT_EQ(before + 10, bp_count(fd));
}

/* ------------------------------------------------------------------ CPUs */

TEST_F(count, cpu_event_counts_every_task_on_that_cpu)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker w[2];
	int fd, cpu = self->cpus.cpu[self->cpus.nr - 1];

	BP_NEED_ROOT();
	fd = bp_open(&attr, -1, cpu);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, self->mem));
		ASSERT_EQ(0, bp_do(&w[i], pin_cmd(cpu)));
		EXPECT_EQ(0, bp_do(&w[i], CMD_STORE_MANY));
	}
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

TEST_F(count, cpu_event_does_not_count_on_other_cpus)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	fd = bp_open(&attr, -1, self->cpus.cpu[0]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(0, bp_count(fd));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
}

TEST_F(count, one_event_a_cpu_counts_each_its_own)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd[BP_MAX_CPUS];

	BP_NEED_ROOT();
	for (int i = 0; i < self->cpus.nr; i++) {
		fd[i] = bp_open(&attr, -1, self->cpus.cpu[i]);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store_times(self->mem, 1, 10 + i);
	}
	for (int i = 0; i < self->cpus.nr; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
}

TEST_F(count, task_event_bound_to_a_cpu_counts_there_alone)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_worker other;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	fd = bp_open(&attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&other, worker, self->mem));
	ASSERT_EQ(0, bp_do(&other, pin_cmd(self->cpus.cpu[1])));
	EXPECT_EQ(0, bp_do(&other, CMD_STORE_MANY));
	for (int i = 1; i <= 10; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
		bp_store(self->mem, 1);
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
		bp_store(self->mem, 1);
		EXPECT_EQ(i, bp_count(fd));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(count, task_event_follows_the_task_across_cpus)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i % self->cpus.nr]));
		bp_store(self->mem, 1);
	}
	EXPECT_EQ(100, bp_count(fd));
}

TEST_F(count, cpu_and_task_breakpoints_share_the_registers)
{
	int cpu = self->cpus.cpu[0], fd[BP_SLOTS];
	struct { pid_t pid; int cpu; } at[BP_SLOTS] = {
		{ -1, cpu }, { 0, -1 }, { -1, cpu }, { 0, cpu }
	};

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	for (int i = 0; i < BP_SLOTS; i++) {
		struct perf_event_attr attr = bp_attr_w(self->mem + 8 * i, 1);

		fd[i] = bp_open(&attr, at[i].pid, at[i].cpu);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < BP_SLOTS; i++)
		bp_store_times(self->mem + 8 * i, 1, 10 + i);
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10 + i, bp_count(fd[i]));
}

/* --------------------------------------------------------- enabling, exec */

TEST_F(count, nothing_counts_while_disabled)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	attr.disabled = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_count(fd));
	for (int i = 1; i <= 5; i++) {
		EXPECT_EQ(0, bp_enable(fd));
		bp_store(self->mem, 1);
		EXPECT_EQ(0, bp_disable(fd));
		bp_store(self->mem, 1);
		EXPECT_EQ(i, bp_count(fd));
	}
}

TEST_F(count, enable_and_disable_can_be_repeated)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, bp_enable(fd));
	EXPECT_EQ(0, bp_enable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(0, bp_disable(fd));
	EXPECT_EQ(0, bp_disable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(count, reset_clears_the_count_and_nothing_else)
{
	int fd = bp_open_w(self->mem, 1);

	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	EXPECT_EQ(0, bp_count(fd));
	bp_store_times(self->mem, 1, 2);
	EXPECT_EQ(2, bp_count(fd));
}

/*
 * A user program cannot test the effect of these bits: they are accepted, and change
 * nothing here.
 */
TEST_F(count, other_exclusions_are_accepted)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	attr.exclude_hv = 1;
	attr.exclude_idle = 1;
	attr.exclude_host = 1;
	attr.exclude_guest = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 5);
	EXPECT_EQ(5, bp_count(fd));
}

TEST_F(count, prctl_disables_and_enables_all_events_of_the_owner)
{
	int a = bp_open_w(self->mem, 1), b = bp_open_w(self->mem + 8, 1);

	ASSERT_GE(a, 0);
	ASSERT_GE(b, 0);
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
	bp_store(self->mem, 1);
	bp_store(self->mem + 8, 1);
	EXPECT_EQ(0, bp_count(a));
	EXPECT_EQ(0, bp_count(b));
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
	bp_store(self->mem, 1);
	bp_store(self->mem + 8, 1);
	EXPECT_EQ(1, bp_count(a));
	EXPECT_EQ(1, bp_count(b));
}

TEST_F(count, other_cpu_can_enable_and_disable_for_a_running_task)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	volatile __u64 *stop = bp_map_shared();
	long long last;
	pid_t pid;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_NE(NULL, stop);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_pin(self->cpus.cpu[1]);
		while (!*stop)
			bp_store(self->mem, 1);
		_exit(0);
	}
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	attr.disabled = 1;
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 5; i++) {
		last = bp_count(fd);
		EXPECT_EQ(0, bp_enable(fd));
		while (bp_count(fd) == last)
			sched_yield();
		EXPECT_EQ(0, bp_disable(fd));
		last = bp_count(fd);
		for (int k = 0; k < 20; k++)
			sched_yield();
		EXPECT_EQ(last, bp_count(fd));
	}
	*stop = 1;
	EXPECT_EQ(0, bp_wait(pid));
}

/*
 * The new image is this program again: main() sees the request and stores argv[2] times
 * to exec_target, which is at the same address as before.
 */
static __u64 exec_target __aligned(8);

static int exec_main(const char *times)
{
	bp_store_times(&exec_target, 8, atoi(times));
	return 0;
}

/*
 * A child that waits for the gate, stores 5 times, executes a new image, and stores 3
 * times.
 */
static pid_t fork_exec(int gate[2])
{
	pid_t pid;
	char c;

	if (pipe(gate))
		return -errno;
	pid = bp_fork();
	if (pid)
		return pid;
	close(gate[1]);
	if (read(gate[0], &c, 1) != 1)
		_exit(1);
	bp_store_times(&exec_target, 8, 5);
	execl("/proc/self/exe", "perf_count", "--store", "3", NULL);
	_exit(2);
}

TEST_F(count, event_goes_on_across_exec)
{
	struct perf_event_attr attr = bp_attr_w(&exec_target, 8);
	int gate[2], fd;
	pid_t pid;

	pid = fork_exec(gate);
	ASSERT_GT(pid, 0);
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, write(gate[1], "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(8, bp_count(fd));
}

TEST_F(count, enable_on_exec_starts_with_the_new_image)
{
	struct perf_event_attr attr = bp_attr_w(&exec_target, 8);
	int gate[2], fd;
	pid_t pid;

	attr.disabled = 1;
	attr.enable_on_exec = 1;
	pid = fork_exec(gate);
	ASSERT_GT(pid, 0);
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(1, write(gate[1], "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(3, bp_count(fd));
}

/* ------------------------------------------------------------------ read() */

TEST_F(count, read_gives_the_fields_asked_for)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 v[8] = { };
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
			   PERF_FORMAT_LOST;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store_times(self->mem, 1, 6);
	EXPECT_EQ(5 * 8, read(fd, v, sizeof(v)));
	EXPECT_EQ(6, v[0]);
	EXPECT_GT(v[1], 0);
	EXPECT_EQ(v[1], v[2]);
	EXPECT_EQ(bp_id(fd), v[3]);
	EXPECT_EQ(0, v[4]);
}

TEST_F(count, time_stands_still_while_disabled)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 a[3], b[3];
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.disabled = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_EQ(0, a[1]);
	EXPECT_EQ(0, a[2]);
	EXPECT_EQ(0, bp_enable(fd));
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_disable(fd));
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_GT(a[1], 0);
	EXPECT_EQ(a[1], a[2]);
	EXPECT_EQ(sizeof(b), read(fd, b, sizeof(b)));
	EXPECT_EQ(a[1], b[1]);
	EXPECT_EQ(a[2], b[2]);
}

TEST_F(count, cpu_bound_task_event_runs_for_its_share_of_the_time)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	__u64 a[3], b[3];
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	fd = bp_open(&attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(sizeof(a), read(fd, a, sizeof(a)));
	EXPECT_EQ(0, a[2]);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	bp_store(self->mem, 1);
	EXPECT_EQ(sizeof(b), read(fd, b, sizeof(b)));
	EXPECT_EQ(1, b[0]);
	EXPECT_GT(b[2], 0);
	EXPECT_LE(b[2], b[1]);
}

TEST_F(count, count_can_be_read_while_the_task_runs_elsewhere)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	volatile __u64 *done = bp_map_shared();
	long long last = 0, now;
	pid_t pid;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_NE(NULL, done);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_pin(self->cpus.cpu[1]);
		while (!*done)
			sched_yield();
		bp_store_times(self->mem, 1, 5000);
		_exit(0);
	}
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	fd = bp_open(&attr, pid, -1);
	ASSERT_GE(fd, 0);
	*done = 1;
	for (int i = 0; i < 50; i++) {
		now = bp_count(fd);
		EXPECT_GE(now, last);
		last = now;
	}
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(5000, bp_count(fd));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--store"))
		return exec_main(argv[2]);
	return test_harness_run(argc, argv);
}
