// SPDX-License-Identifier: GPL-2.0
/*
 * Counting: the accesses that are hits, see count.h.
 */
#include <sys/syscall.h>

#include "count.h"

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

static void call_next(void)
{
	void (*next)(void) = (void (*)(void))(unsigned long)bp_func_next;

	next();
}

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

/* QEMU misses an execution if an interrupt comes right before it. */
TEST_F(insn, each_execution_counts_once)
{
	int may_miss = bp_emulated() ? 10 : 0;

	for (int i = 1; i <= 1000; i++)
		bp_func();
	EXPECT_GE(1000, bp_count(self->fd));
	EXPECT_LE(1000 - may_miss, bp_count(self->fd));
}

TEST_F(insn, next_instruction_does_not_count)
{
	call_next();
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

#ifdef __aarch64__
	asm volatile("adr %0, 1f" : "=r"(addr));
#else
	asm volatile("lea 1f(%%rip), %0" : "=r"(addr));
#endif
	attr = bp_attr_x(addr);
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < MANY; i++)
#ifdef __aarch64__
		asm volatile("b 1f\n"
			     ".pushsection .text.bp_once, \"ax\", @progbits\n"
			     "1:	add %0, %0, #1\n"
			     "	b 2f\n"
			     ".popsection\n"
			     "2:" : "+r"(n));
#else
		asm volatile("jmp 1f\n"
			     ".pushsection .text.bp_once, \"ax\", @progbits\n"
			     "1:	inc %0\n"
			     "	jmp 2f\n"
			     ".popsection\n"
			     "2:" : "+r"(n));
#endif
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
	call_next();
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

/* The page fault saves RF, so that the instruction is not hit again when it is repeated. */
TEST_F(insn, instruction_that_faults_is_hit_once)
{
	char *mem = bp_map_page(PROT_READ | PROT_WRITE);
	struct perf_event_attr attr = bp_attr_x(bp_store_insn);
	int fd = bp_open(&attr, 0, -1);

	ASSERT_NE(NULL, mem);
	ASSERT_GE(fd, 0);
	for (int i = 1; i <= 10; i++) {
		ASSERT_EQ(0, madvise(mem, BP_PAGE_SIZE, MADV_DONTNEED));
		bp_store_at(mem);
		EXPECT_EQ(i, bp_count(fd));
	}
}

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

long bp_getppid(void);
extern const char bp_getppid_insn[];
asm(
	"	.text\n"
	"	.globl	bp_getppid, bp_getppid_insn\n"
	"bp_getppid:\n"
#if defined(__aarch64__)
	"	mov	x8, #173\n"
	"bp_getppid_insn:\n"
	"	svc	#0\n"
#elif defined(__x86_64__)
	"	mov	$110, %eax\n"
	"bp_getppid_insn:\n"
	"	syscall\n"
#else
	"	mov	$64, %eax\n"
	"bp_getppid_insn:\n"
	"	int	$0x80\n"
#endif
	"	ret\n");

/* Where the kernel steps over an instruction that is hit, the program gets no signal of it. */
TEST_F(insn, system_call_that_is_hit_sends_no_signal)
{
	struct perf_event_attr attr = bp_attr_x(bp_getppid_insn);
	int fd = bp_open(&attr, 0, -1);

	ASSERT_GE(fd, 0);
	signals = 0;
	signal(SIGTRAP, count_signal);
	for (int i = 1; i <= 10; i++) {
		EXPECT_EQ(getppid(), bp_getppid());
		EXPECT_EQ(i, bp_count(fd));
	}
	EXPECT_EQ(0, signals);
	signal(SIGTRAP, SIG_DFL);
}

/*
 * The signal of a hit is delivered at the instruction, before it is executed. After the
 * return from the handler the instruction must be executed, without another hit.
 */
TEST_F(insn, returning_from_a_signal_handler_does_not_repeat_the_hit)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_next);
	int fd;

	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
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

TEST_F(count, read_modify_write_is_one_hit)
{
	struct perf_event_attr attr = bp_attr(HW_BREAKPOINT_RW, self->mem, 4);
	int rw = bp_open(&attr, 0, -1), w = bp_open_w(self->mem + 8, 4);

	ASSERT_GE(rw, 0);
	ASSERT_GE(w, 0);
	for (int i = 1; i <= 10; i++) {
		bp_increment(self->mem);
		bp_settle(self->mem);
		bp_increment(self->mem + 8);
		bp_settle(self->mem);
		EXPECT_EQ(i, bp_count(rw));
		EXPECT_EQ(i, bp_count(w));
	}
#ifdef __x86_64__
	if (bp_emulated())
		return;
	asm volatile("lock incl (%0)" : : "r"(self->mem) : "memory");
	asm volatile("lock incl (%0)" : : "r"(self->mem + 8) : "memory");
	EXPECT_EQ(11, bp_count(rw));
	EXPECT_EQ(11, bp_count(w));
#endif
}

TEST_F(count, push_onto_a_watched_stack_slot_counts)
{
	unsigned long *top = (unsigned long *)self->mem + 16;
	int fd = bp_open_w(top - 1, 8);

	ASSERT_GE(fd, 0);
#ifdef __aarch64__
	asm volatile("mov x9, sp\n"
		     "mov sp, %0\n"
		     "str x9, [sp, #-8]!\n"
		     "mov sp, x9\n" : : "r"(top) : "x9", "memory");
#else
	asm volatile("mov %%rsp, %%rbx\n"
		     "mov %0, %%rsp\n"
		     "push $1\n"
		     "mov %%rbx, %%rsp\n" : : "r"(top) : "rbx", "memory");
#endif
	EXPECT_EQ(1, bp_count(fd));
}

#ifdef __x86_64__
/* The debug exception waits until the next instruction has been executed. */
TEST_F(count, load_of_ss_from_the_range_is_one_hit)
{
	struct perf_event_attr attr = bp_attr(HW_BREAKPOINT_RW, self->mem, 2);
	int fd;

	if (bp_emulated())
		SKIP(return, "TCG loses the hit of an instruction that loads SS");
	asm volatile("movw %%ss, %0" : "=m"(*(__u16 *)self->mem));
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int i = 1; i <= 10; i++) {
		asm volatile("movw %0, %%ss\n"
			     "nop\n" : : "m"(*(__u16 *)self->mem));
		EXPECT_EQ(i, bp_count(fd));
	}
}

TEST_F(count, string_store_over_several_ranges_counts_in_each)
{
	unsigned long n = 64;
	char *p = self->mem;
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open_w(self->mem + 8 + 12 * i, 1);
		ASSERT_GE(fd[i], 0);
	}
	asm volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(1) : "memory");
	EXPECT_EQ(0UL, n);
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(1, bp_count(fd[i]));
	EXPECT_EQ(1, self->mem[63]);
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
#endif

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
	EXPECT_GE(sum, bp_emulated() || !BP_HITS_ALL ? hits : nr * hits);
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
	EXPECT_EQ(BP_KERNEL_ACCESS && !variant->exclude_kernel ? 10 : 0, bp_count(self->fd));
}

TEST_F(mode, load_by_a_system_call_counts_where_kernel_mode_is_asked_for)
{
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(0, kernel_load(self->mem));
	EXPECT_EQ(BP_KERNEL_ACCESS && !variant->exclude_kernel ? 10 : 0, bp_count(self->fd));
}

TEST_F(count, system_call_that_reads_the_range_does_not_count_for_w)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	int fd;

	BP_NEED_ROOT();
	BP_NEED(BP_KERNEL_ACCESS, "an access by the kernel is no hit");
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
	BP_NEED(BP_TASK_IN_KERNEL, "a task cannot watch kernel addresses");
	BP_NEED(bp_can_watch_kernel_code(), "needs kprobes");
	addr = bp_ksym(BP_SYSCALL("getppid"));
	if (!addr)
		SKIP(return, "getppid is not in /proc/kallsyms");
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
	BP_NEED(BP_TASK_IN_KERNEL, "a task cannot watch kernel addresses");
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

TEST_HARNESS_MAIN
