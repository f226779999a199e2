// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs on breakpoint events.
 *
 * The rule: the program runs once for each overflow and can read the registers, the
 * period and the address, and the object before and after the access in the raw data of the
 * sample. It decides whether the sample is written; the count does not depend on this.
 */
#include <linux/bpf_perf_event.h>

#include "bp_test.h"
#include "bp_bpf.h"

enum { HITS, LAST_ADDR, LAST_PERIOD, LAST_IP, LAST_COOKIE, LAST_VALUES, LAST_AFTER, NR_VALUES };

static int create_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = 8,
		.max_entries = NR_VALUES,
	};

	return sys_bpf(BPF_MAP_CREATE, &attr);
}

static __u64 map_value(int map, __u32 key)
{
	__u64 value = -1;
	union bpf_attr attr = {
		.map_fd = map,
		.key = (unsigned long)&key,
		.value = (unsigned long)&value,
	};

	sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
	return value;
}

/*
 * r6 = ctx; for the given entry: value = r7, or value += r7. Expands to lookup(map,
 * &key) and, if it returns an entry, one store.
 */
static int emit_update(struct bpf_insn *p, int map, int key, bool add)
{
	const struct bpf_insn code[] = {
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, key),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0),
		add ? INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_7, 0, BPF_ADD) :
		      INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_7, 0, 0),
	};

	memcpy(p, code, sizeof(code));
	return ARRAY_SIZE(code);
}

static int emit_record(struct bpf_insn *p, int map, int key, int offset)
{
	p[0] = INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_7, BPF_REG_6, offset, 0);
	return 1 + emit_update(p + 1, map, key, false);
}

/* The program counts, stores what the context has, and returns keep. */
static int load_program(int map, int keep)
{
	struct bpf_insn insn[128];
	int nr = 0;

	insn[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
	insn[nr++] = MOV(BPF_REG_7, 1);
	nr += emit_update(insn + nr, map, HITS, true);
	nr += emit_record(insn + nr, map, LAST_ADDR,
			  offsetof(struct bpf_perf_event_data, addr));
	nr += emit_record(insn + nr, map, LAST_PERIOD,
			  offsetof(struct bpf_perf_event_data, sample_period));
	nr += emit_record(insn + nr, map, LAST_IP,
			  offsetof(struct bpf_perf_event_data, BP_BPF_REG_IP));
	insn[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
	insn[nr++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_attach_cookie);
	insn[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0);
	nr += emit_update(insn + nr, map, LAST_COOKIE, false);
	insn[nr++] = MOV(BPF_REG_0, keep);
	insn[nr++] = EXIT();

	return bpf_load(BPF_PROG_TYPE_PERF_EVENT, insn, nr);
}

FIXTURE(bpf)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_ring ring;
	int map;
	int fd;
};

FIXTURE_SETUP(bpf)
{
	BP_NEED_ROOT();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 1);
	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_IP;
	self->map = create_map();
	if (self->map == -ENOSYS)
		SKIP(return, "needs CONFIG_BPF_SYSCALL");
	ASSERT_GE(self->map, 0);
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bp_ring_map(&self->ring, self->fd, 4, PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(bpf)
{
	if (self->ring.page)
		bp_ring_unmap(&self->ring);
	bp_teardown(_metadata);
}

static int attach(struct __test_metadata *_metadata, FIXTURE_DATA(bpf) *self, int keep)
{
	int prog = load_program(self->map, keep);

	ASSERT_GE(prog, 0);
	return bp_ioctl(self->fd, PERF_EVENT_IOC_SET_BPF, prog);
}

static int samples(FIXTURE_DATA(bpf) *self)
{
	union bp_record rec;
	int nr = 0;

	while (bp_ring_next(&self->ring, &rec))
		nr += rec.header.type == PERF_RECORD_SAMPLE;
	return nr;
}

TEST_F(bpf, program_runs_once_a_hit)
{
	ASSERT_EQ(0, attach(_metadata, self, 1));
	bp_store_times(self->mem, 1, 25);
	EXPECT_EQ(25, map_value(self->map, HITS));
	EXPECT_EQ(25, bp_count(self->fd));
	EXPECT_EQ(25, samples(self));
}

TEST_F(bpf, program_that_returns_0_drops_the_sample)
{
	ASSERT_EQ(0, attach(_metadata, self, 0));
	bp_store_times(self->mem, 1, 25);
	EXPECT_EQ(25, map_value(self->map, HITS));
	EXPECT_EQ(25, bp_count(self->fd));
	EXPECT_EQ(0, samples(self));
}

TEST_F(bpf, program_sees_address_period_and_registers)
{
	ASSERT_EQ(0, attach(_metadata, self, 1));
	bp_store_at(self->mem);
	EXPECT_EQ(self->attr.bp_addr, map_value(self->map, LAST_ADDR));
	EXPECT_EQ(1, map_value(self->map, LAST_PERIOD));
	EXPECT_EQ(BP_STORE_IP, map_value(self->map, LAST_IP));
}

TEST_F(bpf, program_runs_once_a_period)
{
	int fd, prog = load_program(self->map, 1);

	ASSERT_GE(prog, 0);
	self->attr.sample_period = 5;
	self->attr.bp_addr += 8;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog));
	bp_store_times(self->mem + 8, 1, 25);
	EXPECT_EQ(5, map_value(self->map, HITS));
	EXPECT_EQ(5, map_value(self->map, LAST_PERIOD));
	EXPECT_EQ(25, bp_count(fd));
}

TEST_F(bpf, program_on_an_instruction_breakpoint_sees_it)
{
	struct perf_event_attr attr = bp_attr_x(bp_func_insn);
	int fd, prog = load_program(self->map, 1);

	ASSERT_GE(prog, 0);
	attr.sample_period = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog));
	for (int i = 0; i < 10; i++)
		bp_func();
	EXPECT_EQ(10, map_value(self->map, HITS));
	EXPECT_EQ((unsigned long)bp_func_insn, map_value(self->map, LAST_IP));
	EXPECT_EQ((unsigned long)bp_func_insn, map_value(self->map, LAST_ADDR));
}

TEST_F(bpf, second_program_is_refused)
{
	ASSERT_EQ(0, attach(_metadata, self, 1));
	EXPECT_EQ(-EEXIST, attach(_metadata, self, 1));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, map_value(self->map, HITS));
}

TEST_F(bpf, descriptor_that_is_no_program_is_refused)
{
	EXPECT_EQ(-EINVAL, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_BPF, self->map));
	EXPECT_EQ(-EBADF, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_BPF, 1000));
}

TEST_F(bpf, link_runs_the_program_until_it_is_closed)
{
	int link = bpf_attach(load_program(self->map, 1), self->fd, 0);

	ASSERT_GE(link, 0);
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(3, map_value(self->map, HITS));
	close(link);
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(3, map_value(self->map, HITS));
	EXPECT_EQ(6, bp_count(self->fd));
}

/* Links that a thread on another CPU attaches and closes */
struct links {
	int prog;
	int event;
	int cpu;
	int nr;
	int wrong;
	long long stores;
	bool done;
};

/* Returns when the other thread has begun and ended a store that hits the event. */
static void wait_for_hit(struct links *links)
{
	long long begun = __atomic_load_n(&links->stores, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&links->stores, __ATOMIC_ACQUIRE) < begun + 2)
		sched_yield();
}

static void *attach_and_close_links(void *arg)
{
	struct links *links = arg;
	int link;

	links->wrong += bp_pin(links->cpu) != 0;
	for (int i = 0; i < links->nr; i++) {
		link = bpf_attach(links->prog, links->event, 0);
		links->wrong += link < 0;
		if (i % 64 == 0)
			wait_for_hit(links);
		if (link >= 0)
			close(link);
		if (i % 64 == 0)
			wait_for_hit(links);
	}
	__atomic_store_n(&links->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * A hit may find a program that is about to go, or none: it is counted all the same.
 * Some links wait for a hit, so that there are hits with a program and without one.
 */
TEST_F(bpf, links_come_and_go_while_the_event_is_hit)
{
	struct bp_cpus cpus = bp_online_cpus();
	struct links links = { .event = self->fd, .nr = 1000 };
	pthread_t thread;
	long long hits;

	BP_NEED_CPUS(cpus, 2);
	links.prog = load_program(self->map, 0);
	ASSERT_LE(0, links.prog);
	links.cpu = cpus.cpu[1];
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, attach_and_close_links, &links));
	while (!__atomic_load_n(&links.done, __ATOMIC_ACQUIRE)) {
		bp_store(self->mem, 1);
		__atomic_fetch_add(&links.stores, 1, __ATOMIC_RELEASE);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, links.wrong);
	EXPECT_EQ(links.stores, bp_count(self->fd));
	hits = map_value(self->map, HITS);
	EXPECT_LT(0, hits);
	EXPECT_GT(links.stores, hits);
}

/* An event of a process on any CPU: the program runs on each. */
TEST_F(bpf, program_runs_for_all_threads_of_a_process)
{
	struct bp_cpus cpus = bp_online_cpus();
	int prog;

	self->attr.config = BP_PROCESS;
	self->attr.bp_addr += 64;
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
	prog = load_program(self->map, 0);
	for (int round = 0; round < 2; round++) {
		int link = bpf_attach(prog, self->fd, 10 + round);

		ASSERT_GE(link, 0);
		for (int i = 0; i < cpus.nr; i++) {
			ASSERT_EQ(0, bp_pin(cpus.cpu[i]));
			bp_store(self->mem + 64, 1);
			EXPECT_EQ(10 + round, map_value(self->map, LAST_COOKIE));
		}
		EXPECT_EQ((round + 1) * cpus.nr, map_value(self->map, HITS));
		close(link);
		for (int i = 0; i < cpus.nr; i++) {
			ASSERT_EQ(0, bp_pin(cpus.cpu[i]));
			bp_store(self->mem + 64, 1);
		}
		EXPECT_EQ((round + 1) * cpus.nr, map_value(self->map, HITS));
	}
	EXPECT_EQ(4 * cpus.nr, bp_count(self->fd));
}

/* r0 = bpf_probe_read_kernel(r10 + to, size, r3) */
static int emit_read(struct bpf_insn *p, int to, int size)
{
	const struct bpf_insn code[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, to),
		MOV(BPF_REG_2, size),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel),
	};

	memcpy(p, code, sizeof(code));
	return ARRAY_SIZE(code);
}

/* r3 = the pointer at r3 + offset */
static int emit_follow(struct bpf_insn *p, int offset)
{
	int nr = 1;

	p[0] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, offset);
	nr += emit_read(p + nr, -16, 8);
	p[nr++] = INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_10, -16, 0);
	return nr;
}

/* In the kernel, pointers to these follow those to the registers and to the next fragment. */
#define OFFSET_OF_SAMPLE	8
#define OFFSET_OF_DATA		16

/*
 * The program stores the raw data of the sample: struct hw_breakpoint_values with 4 bytes
 * before and 4 after. The pointer to the raw data is at @offset of struct perf_sample_data.
 */
static int load_raw_reader(int map, int offset)
{
	struct bpf_insn insn[128];
	int nr = 0;

	insn[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
	insn[nr++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
	nr += emit_follow(insn + nr, OFFSET_OF_SAMPLE);
	nr += emit_follow(insn + nr, offset);
	nr += emit_follow(insn + nr, OFFSET_OF_DATA);
	insn[nr++] = INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -24, 0);
	nr += emit_read(insn + nr, -32, 12);
	insn[nr++] = INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_7, BPF_REG_10, -32, 0);
	nr += emit_update(insn + nr, map, LAST_VALUES, false);
	insn[nr++] = INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_7, BPF_REG_10, -24, 0);
	nr += emit_update(insn + nr, map, LAST_AFTER, false);
	insn[nr++] = MOV(BPF_REG_7, 1);
	nr += emit_update(insn + nr, map, HITS, true);
	insn[nr++] = MOV(BPF_REG_0, 1);
	insn[nr++] = EXIT();

	return bpf_load(BPF_PROG_TYPE_PERF_EVENT, insn, nr);
}

static bool told(int map, __u64 before, __u64 after)
{
	const __u64 known = HW_BREAKPOINT_BEFORE_KNOWN | HW_BREAKPOINT_AFTER_KNOWN;

	return map_value(map, LAST_VALUES) == (before << 32 | known << 16 | 4) &&
	       map_value(map, LAST_AFTER) == after;
}

/*
 * With BTF a program gets the record by bpf_cast_to_kern_ctx() and the names of the fields.
 * Here the offset of one of them is found by trying.
 */
TEST_F(bpf, program_sees_the_values_before_and_after)
{
	volatile __u32 *object = (void *)(self->mem + 64);
	int fd, link = -1;
	__u32 v = 1;

	BP_NEED(BP_AFTER_ACCESS, "the kernel tells no values");
	self->attr.config = HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED;
	self->attr.bp_addr += 64;
	self->attr.bp_len = 4;
	self->attr.sample_type = PERF_SAMPLE_RAW;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	for (int offset = 0; offset < 256; offset += 8, v++) {
		link = bpf_attach(load_raw_reader(self->map, offset), fd, 0);
		ASSERT_GE(link, 0);
		*object = v;
		if (told(self->map, v - 1, v))
			break;
		close(link);
		link = -1;
	}
	ASSERT_GE(link, 0);
	for (__u64 hits = map_value(self->map, HITS), i = 1; i <= 20; i++, v++) {
		*object = v + 1;
		/* No hit: nothing changes. */
		*object = v + 1;
		EXPECT_TRUE(told(self->map, v, v + 1));
		EXPECT_EQ(hits + i, map_value(self->map, HITS));
	}
}

/* r7 = bpf_perf_event_read(events, 0) */
static int load_reader(int map, int events)
{
	struct bpf_insn insn[32] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, events),
		INSN(0, 0, 0, 0, 0),
		MOV(BPF_REG_2, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_read),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0),
	};
	int nr = 5;

	nr += emit_update(insn + nr, map, HITS, false);
	insn[nr++] = MOV(BPF_REG_0, 1);
	insn[nr++] = EXIT();

	return bpf_load(BPF_PROG_TYPE_PERF_EVENT, insn, nr);
}

/* Makes element 0 of a new map of events refer to @fd. */
static int create_events(int fd)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 1,
	};
	int map = sys_bpf(BPF_MAP_CREATE, &attr), err;
	__u32 key = 0;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (unsigned long)&key;
	attr.value = (unsigned long)&fd;
	err = sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
	return err ?: map;
}

/* A program must not take the count of one CPU for that of the process. */
TEST_F(bpf, program_reads_no_event_of_all_cpus)
{
	struct perf_event_attr attr = self->attr;
	int cpu = bp_online_cpus().cpu[0], fd, map, prog;

	ASSERT_EQ(0, bp_pin(cpu));
	attr.config = BP_PROCESS;
	attr.bp_addr += 64;
	fd = bp_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EOPNOTSUPP, create_events(fd));
	close(fd);

	fd = bp_open(&attr, 0, cpu);
	ASSERT_LE(0, fd);
	bp_store_times(self->mem + 64, 1, 3);
	map = create_events(fd);
	ASSERT_LE(0, map);
	prog = load_reader(self->map, map);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_BPF, prog));
	bp_store(self->mem, 1);
	EXPECT_EQ(3, map_value(self->map, HITS));
	close(map);
	close(fd);
	/* The map refers to the event for another grace period. */
	while (bp_free_slots(0, -1) < BP_SLOTS - 1)
		usleep(1000);
}

/* The program must not keep the event, and with it its claim, after close(). */
TEST_F(bpf, program_goes_with_the_event)
{
	ASSERT_EQ(0, attach(_metadata, self, 1));
	bp_ring_unmap(&self->ring);
	close(self->fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	bp_store(self->mem, 1);
	EXPECT_EQ(0, map_value(self->map, HITS));
}

TEST_HARNESS_MAIN
