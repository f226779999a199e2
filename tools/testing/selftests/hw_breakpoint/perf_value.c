// SPDX-License-Identifier: GPL-2.0
/* What the records of an event with values say; see values.h. */
#include <linux/memfd.h>

#include "values.h"

#ifndef __NR_memfd_secret
#define __NR_memfd_secret	447
#endif

#define MANY		200

static void store(void *p, unsigned int size, __u64 v)
{
	if (size == 1)
		store8(p, v);
	else if (size == 2)
		store16(p, v);
	else
		store32(p, v);
}

/* -------------------------------------------------------------- one thread */

TEST_F(value, each_length_is_told)
{
	for (unsigned int len = 1; len <= 4; len *= 2) {
		memset(self->mem, 0x11, 16);
		self->attr.bp_len = len;
		open_ring(_metadata, self, 0, -1);
		store(self->mem, len, 0x22222222);
		store(self->mem, len, 0x33333333);
		expect_hit(_metadata, self, BOTH, 0x11111111U >> (32 - 8 * len),
			   0x22222222U >> (32 - 8 * len));
		expect_hit(_metadata, self, BOTH, 0x22222222U >> (32 - 8 * len),
			   0x33333333U >> (32 - 8 * len));
		expect_no_hit(_metadata, self);
		bp_ring_unmap(&self->ring);
		bp_close(&self->fd, 1);
	}
	self->ring.page = NULL;
}

/* A store to a part of the object changes that part. */
TEST_F(value, object_is_told_and_not_the_access)
{
	store32(self->mem, 0x01020304);
	open_ring(_metadata, self, 0, -1);
	store8(self->mem + 1, 0xff);
	expect_hit(_metadata, self, BOTH, 0x01020304, 0x0102ff04);
}

/* An object that needs several registers */
TEST_F(value, long_object_is_told_as_a_whole)
{
	const struct hw_breakpoint_values *values = (const void *)((__u32 *)&self->rec.u64[3] + 1);
	char before[24], after[24];

	for (int i = 0; i < sizeof(before); i++)
		self->mem[i] = i;
	memcpy(before, self->mem, sizeof(before));
	self->attr.bp_len = sizeof(before);
	open_ring(_metadata, self, 0, -1);
	store32(self->mem + 12, 0x55667788);
	memcpy(after, self->mem, sizeof(after));
	ASSERT_TRUE(bp_ring_next(&self->ring, &self->rec));
	EXPECT_EQ(sizeof(before), values->len);
	EXPECT_EQ(BOTH, values->flags);
	EXPECT_EQ(0, memcmp(values->bytes + values->offset, before, sizeof(before)));
	EXPECT_EQ(0, memcmp(values->bytes + values->offset + sizeof(before), after, sizeof(after)));
	EXPECT_EQ(self->mem, (char *)self->rec.u64[2]);
	EXPECT_FALSE(bp_ring_next(&self->ring, &self->rec));
}

TEST_F(value, page_that_was_never_touched_is_zero)
{
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	expect_hit(_metadata, self, BOTH, 0, 1);
}

TEST_F(value, read_tells_the_same_value_twice)
{
	self->attr.bp_type = HW_BREAKPOINT_RW;
	store32(self->mem, 5);
	open_ring(_metadata, self, 0, -1);
	bp_load(self->mem, 4);
	expect_hit(_metadata, self, BOTH, 5, 5);
}

/*
 * The kernel reads the object to tell its value: that is no access that any breakpoint for
 * reads counts, not even one for accesses of the kernel.
 */
TEST_F(value, reading_the_value_is_no_hit)
{
	struct perf_event_attr attr = bp_attr(HW_BREAKPOINT_RW, self->mem + 2, 2);
	int fd;

	attr.exclude_kernel = 0;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	open_ring(_metadata, self, 0, -1);
	for (int i = 1; i <= 20; i++) {
		store8(self->mem, i);
		expect_hit(_metadata, self, BOTH, i - 1, i);
	}
	EXPECT_EQ(0, bp_count(fd));
	bp_load(self->mem + 2, 2);
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(value, reading_the_value_is_no_hit_of_the_event_itself)
{
	self->attr.bp_type = HW_BREAKPOINT_RW;
	self->attr.exclude_kernel = 0;
	open_ring(_metadata, self, 0, -1);
	for (int i = 1; i <= 20; i++) {
		store32(self->mem, i);
		bp_load(self->mem, 4);
		expect_hit(_metadata, self, BOTH, i - 1, i);
		expect_hit(_metadata, self, BOTH, i, i);
		expect_no_hit(_metadata, self);
	}
}

/* What was written while the event was off is not told. */
TEST_F(value, before_is_read_when_the_event_is_enabled)
{
	self->attr.disabled = 1;
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 7);
	ASSERT_EQ(0, bp_enable(self->fd));
	store32(self->mem, 8);
	ASSERT_EQ(0, bp_disable(self->fd));
	store32(self->mem, 9);
	ASSERT_EQ(0, bp_enable(self->fd));
	store32(self->mem, 10);
	expect_hit(_metadata, self, BOTH, 7, 8);
	expect_hit(_metadata, self, BOTH, 9, 10);
	expect_no_hit(_metadata, self);
}

TEST_F(value, before_is_read_when_the_event_is_refreshed)
{
	open_ring(_metadata, self, 0, -1);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, bp_disable(self->fd));
		store32(self->mem, 10 * i + 1);
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, 1));
		store32(self->mem, 10 * i + 2);
		expect_hit(_metadata, self, BOTH, 10 * i + 1, 10 * i + 2);
	}
	expect_no_hit(_metadata, self);
}

/* To enable an event that is enabled changes nothing. */
TEST_F(value, change_is_not_lost_if_the_event_is_enabled_again)
{
	__u64 before = 0;
	struct hit hit;

	self->attr.exclude_user = 1;
	self->attr.exclude_kernel = 0;
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 7);
	ASSERT_EQ(0, bp_enable(self->fd));
	/* Accesses by the kernel, one or more */
	ASSERT_EQ(4, syscall(SYS_getrandom, self->mem, 4, 0));
	ASSERT_TRUE(next_hit(&self->ring, &self->rec, &hit));
	do {
		EXPECT_EQ(BOTH, hit.flags);
		EXPECT_EQ(before, hit.before);
		before = hit.after;
	} while (next_hit(&self->ring, &self->rec, &hit));
	EXPECT_EQ(*(__u32 *)self->mem, before);
}

TEST_F(value, before_is_read_when_the_event_is_modified)
{
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	store32(self->mem + 8, 20);
	self->attr.bp_addr += 8;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	store32(self->mem + 8, 21);
	store32(self->mem, 2);
	self->attr.bp_addr -= 8;
	self->attr.bp_len = 2;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	store16(self->mem, 3);

	self->attr.bp_len = 4;
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 20, 21);
	self->attr.bp_len = 2;
	expect_hit(_metadata, self, BOTH, 2, 3);
	expect_no_hit(_metadata, self);
}

/* A refused modification leaves the chain as it is. */
TEST_F(value, refused_modification_keeps_the_chain)
{
	struct perf_event_attr attr = self->attr;

	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	attr.bp_len = 0;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &attr));
	attr = self->attr;
	attr.config |= CHANGED;
	attr.bp_addr += 4;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &attr));
	attr.config = 0;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &attr));
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
}

/* Hits between two samples belong to the chain. */
TEST_F(value, sample_of_a_longer_period_has_the_last_hit)
{
	self->attr.sample_period = 2;
	open_ring(_metadata, self, 0, -1);
	for (int i = 1; i <= 4; i++)
		store32(self->mem, i);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_hit(_metadata, self, BOTH, 3, 4);
	expect_no_hit(_metadata, self);
}

TEST_F(value, flexible_event_has_values)
{
	int fd[BP_SLOTS];

	self->attr.config |= BP_FLEXIBLE;
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	ASSERT_EQ(BP_SLOTS - 1, bp_fill(0, -1, fd));
	bp_close(fd, BP_SLOTS - 1);
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
}

TEST_F(value, members_of_a_group_have_their_own_objects)
{
	struct perf_event_attr attr = self->attr;
	struct bp_ring ring;
	struct hit hit;
	int fd;

	open_ring(_metadata, self, 0, -1);
	attr.bp_addr += 4;
	fd = bp_open_group(&attr, 0, -1, self->fd, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));
	store32(self->mem, 1);
	store32(self->mem + 4, 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_no_hit(_metadata, self);
	ASSERT_TRUE(next_hit(&ring, &self->rec, &hit));
	EXPECT_EQ(2, hit.after);
	bp_ring_unmap(&ring);
}

/* ------------------------------------------------------------- only changes */

FIXTURE(changed)
{
	char *mem;
	struct perf_event_attr attr;
};

FIXTURE_VARIANT(changed)
{
	__u64 config;
};

FIXTURE_VARIANT_ADD(changed, guaranteed) { };
FIXTURE_VARIANT_ADD(changed, flexible) { .config = BP_FLEXIBLE };
FIXTURE_VARIANT_ADD(changed, of_a_process) { .config = BP_PROCESS };

FIXTURE_SETUP(changed)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 4);
	self->attr.config = CHANGED | variant->config;
}

FIXTURE_TEARDOWN(changed)
{
	bp_teardown(_metadata);
}

TEST_F(changed, silent_stores_are_no_hits)
{
	int fd = bp_open(&self->attr, 0, -1);
	unsigned int seed = 1, last = 0;
	long long changes = 0;

	ASSERT_GE(fd, 0);
	for (int i = 0; i < MANY; i++) {
		unsigned int v = bp_random(&seed) % 3;

		store32(self->mem, v);
		changes += v != last;
		last = v;
	}
	EXPECT_EQ(changes, bp_count(fd));
	EXPECT_EQ(MANY - changes, silent(fd));
	ASSERT_GT(changes, 0);
	ASSERT_LT(changes, MANY);
}

/* A kernel without SMP or of 32 bits does not read a page that was never written. */
TEST_F(changed, reads_are_no_hits)
{
	int fd;

	if (bp_online_cpus().nr == 1 || sizeof(long) == 4)
		store32(self->mem, 0);
	self->attr.bp_type = HW_BREAKPOINT_RW;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_load(self->mem, 4);
	store32(self->mem, 1);
	bp_load(self->mem, 4);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(2, silent(fd));
}

static volatile int signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

TEST_F(changed, only_changes_send_signals)
{
	int fd;

	signal(SIGTRAP, count_signal);
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 10; i++)
		store32(self->mem, i / 2);
	/* 0, 0, 1, 1, ... */
	EXPECT_EQ(4, signals);
	EXPECT_EQ(6, silent(fd));
}

/* Only the event of the page tells; counts of all threads are added. */
TEST_F(changed, silent_accesses_of_children_are_counted)
{
	struct bp_worker thread, child;
	int fd;

	if (!(self->attr.config & BP_PROCESS))
		self->attr.inherit = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start_thread(&thread, store_values, self->mem));
	bp_do(&thread, 1);
	bp_do(&thread, 1);
	store32(self->mem, 1);
	store32(self->mem, 2);
	EXPECT_EQ(2, silent(fd));
	bp_stop(&thread);
	EXPECT_EQ(2, bp_count(fd));
	if (self->attr.config & BP_PROCESS)
		return;

	/* The memory of a child of fork() is another one, with the same value. */
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem));
	bp_do(&child, 2);
	bp_do(&child, 3);
	store32(self->mem, 3);
	store32(self->mem, 3);
	EXPECT_EQ(4, silent(fd));
	bp_stop(&child);
	EXPECT_EQ(4, bp_count(fd));
}

TEST_F(changed, unknown_value_counts_as_changed)
{
	int fd;

	ASSERT_EQ(0, mprotect(self->mem, BP_PAGE_SIZE, PROT_NONE));
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, mprotect(self->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE));
	store32(self->mem, 0);
	store32(self->mem, 0);
	EXPECT_EQ(1, bp_count(fd));
	EXPECT_EQ(1, silent(fd));
}

/* ------------------------------------------------------------ fork and exec */

static void inherit(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self)
{
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	self->attr.inherit = 1;
	open_ring(_metadata, self, 0, self->cpus.cpu[0]);
}

TEST_F(value, child_starts_from_the_value_of_its_parent)
{
	struct bp_worker child;

	inherit(_metadata, self);
	store32(self->mem, 1);
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem));
	store32(self->mem, 2);
	bp_do(&child, 11);
	store32(self->mem, 3);
	bp_do(&child, 12);

	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_hit(_metadata, self, BOTH, 1, 11);
	expect_hit(_metadata, self, BOTH, 2, 3);
	expect_hit(_metadata, self, BOTH, 11, 12);
	expect_no_hit(_metadata, self);
}

/* Tasks switch between the two memories, whose events are alike. */
TEST_F(value, values_stay_with_the_memory_when_tasks_take_turns)
{
	struct bp_worker child;

	inherit(_metadata, self);
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem));
	for (int i = 1; i <= MANY / 10; i++) {
		store32(self->mem, i);
		bp_do(&child, 1000 + i);
		expect_hit(_metadata, self, BOTH, i - 1, i);
		expect_hit(_metadata, self, BOTH, i == 1 ? 0 : 1000 + i - 1, 1000 + i);
	}
}

TEST_F(value, modification_reaches_each_memory)
{
	struct bp_worker child, thread;

	inherit(_metadata, self);
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem + 8));
	ASSERT_EQ(0, bp_start_thread(&thread, store_values, self->mem + 8));
	store32(self->mem + 8, 1);
	bp_do(&child, 101);
	self->attr.bp_addr += 8;
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	store32(self->mem + 8, 2);
	bp_do(&child, 102);
	bp_do(&thread, 3);
	bp_do(&child, 103);
	store32(self->mem + 8, 4);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_hit(_metadata, self, BOTH, 101, 102);
	expect_hit(_metadata, self, BOTH, 2, 3);
	expect_hit(_metadata, self, BOTH, 102, 103);
	expect_hit(_metadata, self, BOTH, 3, 4);
	expect_no_hit(_metadata, self);
}

static int store_in_vfork(void *mem)
{
	pid_t pid = vfork();

	if (!pid) {
		store32(mem, 50);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

TEST_F(value, child_that_shares_the_memory_shares_the_chain)
{
	inherit(_metadata, self);
	store32(self->mem, 1);
	store_in_vfork(self->mem);
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 50);
	expect_hit(_metadata, self, BOTH, 50, 2);
	expect_no_hit(_metadata, self);
}

#define IMAGE	"PERF_VALUE_IMAGE"

/* The program that exec_image() executes: it has another page at the same address. */
static void __attribute__((constructor)) image(void)
{
	char *mem;

	if (!getenv(IMAGE))
		return;
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	store32(mem, 5);
	store32(mem, 6);
	_exit(0);
}

static int exec_image(void *arg)
{
	bool (*fork_first)(void) = arg;
	char *argv[] = { "image", NULL }, *env[] = { IMAGE "=1", NULL };

	if (fork_first && !fork_first())
		return 0;
	execve("/proc/self/exe", argv, env);
	return 1;
}

static void expect_image(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self)
{
	expect_hit(_metadata, self, HW_BREAKPOINT_AFTER_KNOWN, 0, 5);
	expect_hit(_metadata, self, BOTH, 5, 6);
	expect_no_hit(_metadata, self);
}

TEST_F(value, next_program_has_another_memory)
{
	inherit(_metadata, self);
	store32(self->mem, 1);
	expect_hit(_metadata, self, BOTH, 0, 1);
	EXPECT_EQ(0, bp_in_child(exec_image, NULL));
	expect_image(_metadata, self);
	/* The chain of the parent goes on. */
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 1, 2);
}

TEST_F(value, program_after_vfork_has_another_memory)
{
	char *argv[] = { "image", NULL }, *env[] = { IMAGE "=1", NULL };
	pid_t pid;

	inherit(_metadata, self);
	store32(self->mem, 1);
	expect_hit(_metadata, self, BOTH, 0, 1);
	pid = vfork();
	if (!pid) {
		execve("/proc/self/exe", argv, env);
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	expect_image(_metadata, self);
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 1, 2);
}

static long exec_process(int cmd, void *arg)
{
	(void)cmd;
	return exec_image(arg);
}

/* The value of an event of a process is that of the memory, too. */
TEST_F(value, next_program_of_a_process_has_another_memory)
{
	struct bp_worker child;
	int cpu = self->cpus.cpu[0];

	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&child, exec_process, NULL));
	self->attr.config |= BP_PROCESS;
	open_ring(_metadata, self, child.pid, cpu);
	bp_do(&child, 0);
	expect_image(_metadata, self);
}

/* ------------------------------------------------- what is not or no longer there */

TEST_F(value, unmapped_page_is_unknown)
{
	ASSERT_EQ(0, munmap(self->mem, BP_PAGE_SIZE));
	open_ring(_metadata, self, 0, -1);
	ASSERT_EQ(self->mem, bp_map_page(PROT_READ | PROT_WRITE));
	store32(self->mem, 1);
	store32(self->mem, 2);
	expect_hit(_metadata, self, HW_BREAKPOINT_AFTER_KNOWN, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
}

TEST_F(value, page_that_must_not_be_read_is_unknown)
{
	store32(self->mem, 1);
	ASSERT_EQ(0, mprotect(self->mem, BP_PAGE_SIZE, PROT_NONE));
	open_ring(_metadata, self, 0, -1);
	ASSERT_EQ(0, mprotect(self->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE));
	store32(self->mem, 2);
	expect_hit(_metadata, self, HW_BREAKPOINT_AFTER_KNOWN, 0, 2);
}

static void map_fd(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self, int fd,
		   off_t offset)
{
	ASSERT_GE(fd, 0);
	ASSERT_EQ(self->mem, mmap(self->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, offset));
}

TEST_F(value, truncated_page_of_a_file_is_unknown)
{
	int fd = memfd_create("value", 0);

	map_fd(_metadata, self, fd, 0);
	open_ring(_metadata, self, 0, -1);
	ASSERT_EQ(0, ftruncate(fd, BP_PAGE_SIZE));
	store32(self->mem, 1);
	store32(self->mem, 2);
	expect_hit(_metadata, self, HW_BREAKPOINT_AFTER_KNOWN, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
	close(fd);
}

/* The memory of a VGA adapter */
#define VGA_MEMORY	0xb8000

TEST_F(value, device_is_not_read)
{
	int fd = open("/dev/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "needs /dev/mem");
	map_fd(_metadata, self, fd, VGA_MEMORY);
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	store32(self->mem, 2);
	expect_hit(_metadata, self, 0, 0, 0);
	expect_hit(_metadata, self, 0, 0, 0);
	close(fd);
}

TEST_F(value, secret_memory_is_not_read)
{
	int fd = syscall(__NR_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		SKIP(return, "needs memfd_secret()");
	ASSERT_EQ(0, ftruncate(fd, BP_PAGE_SIZE));
	map_fd(_metadata, self, fd, 0);
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	store32(self->mem, 2);
	expect_hit(_metadata, self, 0, 0, 0);
	expect_hit(_metadata, self, 0, 0, 0);
	close(fd);
}

static volatile bool done;

#define OF_DEVICE	0xdddddd00U

struct remapped {
	char *mem;
	int fd;
};

/* Puts a page of a device and a new page in its place, in alternation. */
static void *remap_page(void *arg)
{
	struct remapped *r = arg;

	while (!done) {
		if (mmap(r->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 r->fd, VGA_MEMORY) == MAP_FAILED ||
		    mmap(r->mem, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return (void *)1;
	}
	return NULL;
}

/* The device differs from new pages in the bytes of the object that are not written. */
TEST_F(value, device_that_replaces_memory_is_not_read)
{
	struct remapped r = { .mem = self->mem, .fd = open("/dev/mem", O_RDWR | O_CLOEXEC) };
	int rounds = bp_rounds(4000), stores = 0, nr = 0, known = 0;
	__u64 start = bp_now(CLOCK_MONOTONIC);
	void *failed = NULL;
	pthread_t thread;
	struct hit hit;
	__u32 *device;

	if (r.fd < 0)
		SKIP(return, "needs /dev/mem");
	device = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, VGA_MEMORY);
	ASSERT_NE(MAP_FAILED, (void *)device);
	*device = OF_DEVICE;
	done = false;
	open_ring(_metadata, self, 0, -1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, remap_page, &r));
	/* Until the other thread has run, too: there were hits of both kinds of memory. */
	while (stores < rounds || ((!known || known == nr) && bp_has_patience(start))) {
		store8(self->mem, stores++);
		while (next_hit(&self->ring, &self->rec, &hit)) {
			nr++;
			known += !!(hit.flags & HW_BREAKPOINT_AFTER_KNOWN);
			EXPECT_EQ(0, hit.before >> 8);
			EXPECT_EQ(0, hit.after >> 8);
		}
	}
	done = true;
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(stores, nr);
	EXPECT_LT(0, known);
	EXPECT_LT(known, nr);
	EXPECT_EQ(OF_DEVICE, *device & ~0xffU);
	munmap(device, BP_PAGE_SIZE);
	close(r.fd);
}

/* Next to the object, with which the kernel merges them, and elsewhere */
static void *change_mappings(void *mem)
{
	while (!done) {
		for (int i = 1; i <= 2; i++) {
			if (mmap(mem + i * BP_PAGE_SIZE, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
				return (void *)1;
		}
		if (munmap(mem + BP_PAGE_SIZE, 2 * BP_PAGE_SIZE))
			return (void *)1;
	}
	return NULL;
}

/* The object is in memory all the time: other mappings change. */
TEST_F(value, changes_of_other_mappings_hide_nothing)
{
	int rounds = bp_rounds(4000);
	void *failed = NULL;
	pthread_t thread;
	char *mem;

	mem = mmap(NULL, 3 * BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)mem);
	done = false;
	self->attr.bp_addr = (unsigned long)mem;
	open_ring(_metadata, self, 0, -1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_mappings, mem));
	for (int i = 1; i <= rounds; i++) {
		store32(mem, i);
		expect_hit(_metadata, self, BOTH, i - 1, i);
	}
	done = true;
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	expect_no_hit(_metadata, self);
}

/* Two pages, one of which the accesses do not touch */
TEST_F(value, object_in_two_pages_is_told)
{
	char *mem = mmap(NULL, 2 * BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)mem);
	mem += BP_PAGE_SIZE - 2;
	store16(mem + 2, 0);
	self->attr.bp_addr = (unsigned long)mem;
	open_ring(_metadata, self, 0, -1);
	store16(mem, 0x1111);
	store16(mem, 0x2222);
	store16(mem + 2, 0x3333);
	expect_hit(_metadata, self, BOTH, 0, 0x1111);
	expect_hit(_metadata, self, BOTH, 0x1111, 0x2222);
	expect_hit(_metadata, self, BOTH, 0x2222, 0x33332222);
	ASSERT_EQ(0, munmap(mem + 2, BP_PAGE_SIZE));
	store16(mem, 0x4444);
	expect_hit(_metadata, self, HW_BREAKPOINT_BEFORE_KNOWN, 0x33332222, 0);
}

/* -------------------------------------------------------------------- errors */

TEST_F(value, execution_has_no_value)
{
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	x.config = VALUE;
	EXPECT_EQ(-EINVAL, bp_open(&x, 0, -1));
	x.config = CHANGED;
	EXPECT_EQ(-EINVAL, bp_open(&x, 0, -1));
}

/* An event may be modified only to what could be opened. */
TEST_F(value, event_with_values_does_not_become_an_instruction_breakpoint)
{
	struct perf_event_attr x = self->attr;

	open_ring(_metadata, self, 0, -1);
	x.bp_type = HW_BREAKPOINT_X;
	x.bp_len = 8;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &x));
	store32(self->mem, 1);
	expect_hit(_metadata, self, BOTH, 0, 1);
}

TEST_F(value, user_address_has_no_value_on_a_cpu)
{
	BP_NEED_ROOT();
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, self->cpus.cpu[0]));
	self->attr.config = CHANGED;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, self->cpus.cpu[0]));
	self->attr.config = 0;
	EXPECT_LE(0, bp_open(&self->attr, -1, self->cpus.cpu[0]));
}

TEST_F(value, event_that_tells_all_accesses_has_no_number_of_silent_ones)
{
	__u64 nr;
	int fd;

	open_ring(_metadata, self, 0, -1);
	EXPECT_EQ(-ENOTTY, bp_ioctl(self->fd, HW_BREAKPOINT_IOC_SILENT, (unsigned long)&nr));
	self->attr.config = CHANGED;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EFAULT, bp_ioctl(fd, HW_BREAKPOINT_IOC_SILENT, 8));
	EXPECT_EQ(0, bp_ioctl(fd, HW_BREAKPOINT_IOC_SILENT, (unsigned long)&nr));
	EXPECT_EQ(0, nr);
}

/* Without PERF_SAMPLE_RAW the bit is without effect. */
TEST_F(value, sample_without_raw_data_has_no_value)
{
	self->attr.sample_type &= ~PERF_SAMPLE_RAW;
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	ASSERT_TRUE(bp_ring_next(&self->ring, &self->rec));
	EXPECT_EQ(24, self->rec.header.size);
}

/* ------------------------------------------------------------- kernel addresses */

/* The value of a kernel variable, on a CPU that writes it */
TEST_F(value, kernel_variable_is_told)
{
	void *jiffies = bp_ksym("jiffies_64") ?: bp_ksym("jiffies");
	struct hit hit, last = { };
	int nr = 0;

	BP_NEED_ROOT();
	if (!jiffies)
		SKIP(return, "needs the symbol jiffies");
	self->attr.bp_addr = (unsigned long)jiffies;
	self->attr.bp_len = sizeof(long);
	self->attr.exclude_kernel = 0;
	self->attr.exclude_user = 1;
	open_ring(_metadata, self, 0, -1);
	bp_spin(100);
	bp_disable(self->fd);
	while (next_hit(&self->ring, &self->rec, &hit)) {
		EXPECT_EQ(BOTH, hit.flags);
		EXPECT_LE(hit.before, hit.after);
		if (nr++)
			EXPECT_EQ(last.after, hit.before);
		last = hit;
	}
	if (self->cpus.nr == 1)
		EXPECT_LT(0, nr);
}

TEST_HARNESS_MAIN
