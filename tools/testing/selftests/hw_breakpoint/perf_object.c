// SPDX-License-Identifier: GPL-2.0
/*
 * Data breakpoints on ranges that need several registers.
 *
 * The rule: a breakpoint may watch any range that at most four aligned pieces of 1, 2, 4 or
 * 8 bytes cover exactly; of 16 and 32 bytes, too, if the processor has address masks. It
 * claims a register for each piece, all or none. An instruction that accesses bytes of the
 * range is one hit, however many pieces it touches, and the address of the hit is that of
 * the range. MODIFY_ATTRIBUTES changes all pieces or none.
 */
#include "bp_test.h"

#define MAX_LEN		32
#define ROUNDS		4000

/* ------------------------------------------------------------------------- ranges */

struct range {
	unsigned int offset;
	unsigned int len;
};

/* The longest piece: 8 bytes, or with the address masks of AMD processors MAX_LEN */
static unsigned int max_piece;

/* Fewest pieces: the longest one that is aligned and fits, from left to right */
static int pieces(unsigned int offset, unsigned int len)
{
	int nr = 0;

	while (len) {
		unsigned int bytes = max_piece;

		while (bytes > len || offset % bytes)
			bytes /= 2;
		offset += bytes;
		len -= bytes;
		nr++;
	}
	return nr;
}

/* 1, 2, 3 and 4 pieces. All have byte COMMON. */
static const struct range ranges[] = {
	{ 16, 1 }, { 12, 8 }, { 8, 24 }, { 15, 2 }, { 0, 32 }, { 16, 8 }, { 13, 6 }, { 11, 8 },
	{ 4, 16 }, { 16, 3 },
};

#define NR_RANGES	((int)(sizeof(ranges) / sizeof(ranges[0])))
#define COMMON		16
/* The first byte that no range has */
#define OUTSIDE		32

FIXTURE(object)
{
	char *mem;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(object)
{
	char cpuinfo[65536];

	if (bp_read_number(BP_PMU "/caps/max_length") < MAX_LEN)
		SKIP(return, "the breakpoint PMU has no such ranges");
	ASSERT_EQ(0, bp_read_file("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo)));
	max_piece = strstr(cpuinfo, " bpext") ? MAX_LEN : 8;
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->mem += 64;
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(object)
{
	bp_teardown(_metadata);
}

static struct perf_event_attr range_attr(FIXTURE_DATA(object) *self, int i)
{
	return bp_attr_w(self->mem + ranges[i].offset, ranges[i].len);
}

static void move_to(FIXTURE_DATA(object) *self, struct perf_event_attr *attr, int i)
{
	attr->bp_addr = (unsigned long)self->mem + ranges[i].offset;
	attr->bp_len = ranges[i].len;
}

static void store_16(void *p)
{
#ifdef __aarch64__
	asm volatile("str q0, [%0]" : : "r"(p) : "memory");
#else
	asm volatile("movups %%xmm0, (%0)" : : "r"(p) : "memory");
#endif
	bp_settle(p);
}

static void access_range(void *p, unsigned int size, bool load)
{
	if (size == 16)
		store_16(p);
	else if (load)
		bp_load(p, size);
	else
		bp_store(p, size);
}

/* ------------------------------------------------------------------- hits and bytes */

static bool overlap(int a, int a_len, int b, int b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* The emulator takes an unaligned access for one to all words that it touches. */
static bool is_exact(int at, int size)
{
	return !bp_emulated() || at % size == 0;
}

static void hit_range(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
		      struct range r, bool load)
{
	struct perf_event_attr attr = bp_attr(load ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W,
					      self->mem + r.offset, r.len);
	long long was = 0, now;
	int fd = bp_open(&attr, 0, -1);

	ASSERT_LE(0, fd) {
		TH_LOG("%u bytes at %u", r.len, r.offset);
	}
	for (int size = 1; size <= (load ? 8 : 16); size *= 2) {
		for (int at = (int)r.offset - size - 1; at <= (int)(r.offset + r.len) + 1; at++) {
			bool hit = overlap(at, size, r.offset, r.len);

			access_range(self->mem + at, size, load);
			now = bp_count(fd);
			if (hit || is_exact(at, size)) {
				EXPECT_EQ(was + hit, now) {
					TH_LOG("%d bytes at %d, range of %u at %u", size, at,
					       r.len, r.offset);
				}
			}
			was = now;
		}
	}
	close(fd);
}

static void hit_all_ranges(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			   bool load, int step)
{
	int nr = 0;

	for (unsigned int offset = 0; offset < 8; offset++) {
		for (unsigned int len = 1; len <= MAX_LEN; len += step) {
			if (pieces(offset, len) > BP_SLOTS)
				continue;
			hit_range(_metadata, self, (struct range){ offset, len }, load);
			nr++;
		}
	}
	EXPECT_LT(20, nr);
}

TEST_F(object, store_counts_once_exactly_if_it_overlaps)
{
	hit_all_ranges(_metadata, self, false, 1);
}

TEST_F(object, load_counts_once_exactly_if_it_overlaps)
{
	hit_all_ranges(_metadata, self, true, 3);
}

/* ----------------------------------------------------------------- records, signals */

/* Opens an event of this thread, each of whose hits is a record with the address. */
static int open_sampled(struct __test_metadata *_metadata, struct perf_event_attr *attr,
			struct bp_ring *ring)
{
	int fd;

	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_ADDR;
	fd = bp_open(attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(ring, fd, 2, PROT_READ | PROT_WRITE));
	return fd;
}

/* One store of 8 bytes hits two or three of the pieces. */
TEST_F(object, one_instruction_is_one_record_with_the_address_of_the_range)
{
	union bp_record rec;
	struct bp_ring ring;
	int nr = 0;

	for (int i = 0; i < NR_RANGES; i++) {
		struct perf_event_attr attr = range_attr(self, i);
		int fd = open_sampled(_metadata, &attr, &ring);

		for (int k = 0; k < 10; k++)
			bp_store(self->mem + COMMON - 4 + k % 2 * 4, 8);
		for (nr = 0; bp_ring_next(&ring, &rec); nr++) {
			EXPECT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
			EXPECT_EQ(attr.bp_addr, rec.u64[1]);
		}
		EXPECT_EQ(10, nr) {
			TH_LOG("%u bytes at %u", ranges[i].len, ranges[i].offset);
		}
		EXPECT_EQ(10, bp_count(fd));
		bp_ring_unmap(&ring);
		close(fd);
	}
}

static volatile sig_atomic_t signals;
static void *volatile signal_addr;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	signals++;
	signal_addr = info->si_addr;
}

TEST_F(object, one_instruction_is_one_signal_with_the_address_of_the_range)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	for (int i = 0; i < NR_RANGES; i++) {
		struct perf_event_attr attr = range_attr(self, i);
		int fd;

		attr.sample_period = 1;
		attr.sigtrap = 1;
		attr.remove_on_exec = 1;
		fd = bp_open(&attr, 0, -1);
		ASSERT_LE(0, fd);
		signals = 0;
		bp_store(self->mem + COMMON - 4, 8);
		EXPECT_EQ(1, signals);
		EXPECT_EQ((unsigned long)attr.bp_addr, (unsigned long)signal_addr);
		bp_store(self->mem + OUTSIDE, 8);
		EXPECT_EQ(1, signals);
		close(fd);
	}
}

/* ------------------------------------------------------------------------ registers */

static void expect_registers(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			     pid_t pid, int cpu)
{
	int other[BP_SLOTS];

	for (int i = 0; i < NR_RANGES; i++) {
		struct perf_event_attr attr = range_attr(self, i);
		int need = pieces(ranges[i].offset, ranges[i].len), fd;

		for (int held = 0; held <= BP_SLOTS; held++) {
			for (int k = 0; k < held; k++) {
				struct perf_event_attr w = bp_attr_w(self->mem + 64 + 8 * k, 8);

				other[k] = bp_open(&w, pid, cpu);
				ASSERT_LE(0, other[k]);
			}
			fd = bp_open(&attr, pid, cpu);
			if (held + need > BP_SLOTS) {
				EXPECT_EQ(-ENOSPC, fd);
				EXPECT_EQ(BP_SLOTS - held, bp_free_slots(pid, cpu));
			} else {
				EXPECT_LE(0, fd);
				EXPECT_EQ(BP_SLOTS - held - need, bp_free_slots(pid, cpu));
				close(fd);
			}
			bp_close(other, held);
		}
	}
}

TEST_F(object, task_claims_a_register_for_each_piece)
{
	expect_registers(_metadata, self, 0, -1);
}

TEST_F(object, cpu_claims_a_register_for_each_piece)
{
	BP_NEED_ROOT();
	expect_registers(_metadata, self, -1, self->cpus.cpu[0]);
}

/* --------------------------------------------------------------------- MODIFY */

static void expect_watches(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			   int fd, int i)
{
	long long was = bp_count(fd);

	for (unsigned int at = 0; at < OUTSIDE + 8; at++)
		bp_store(self->mem + at, 1);
	EXPECT_EQ(was + ranges[i].len, bp_count(fd)) {
		TH_LOG("%u bytes at %u", ranges[i].len, ranges[i].offset);
	}
}

static void modify_to_each(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			   struct perf_event_attr attr, pid_t pid, int cpu)
{
	int fd = bp_open(&attr, pid, cpu);

	ASSERT_LE(0, fd);
	for (int from = 0; from < NR_RANGES; from++) {
		for (int to = 0; to < NR_RANGES; to++) {
			move_to(self, &attr, from);
			EXPECT_EQ(0, bp_modify(fd, &attr));
			move_to(self, &attr, to);
			EXPECT_EQ(0, bp_modify(fd, &attr));
			expect_watches(_metadata, self, fd, to);
		}
	}
	if (!(attr.config & BP_FLEXIBLE))
		EXPECT_EQ(BP_SLOTS - pieces(ranges[NR_RANGES - 1].offset,
					    ranges[NR_RANGES - 1].len), bp_free_slots(pid, cpu));
	close(fd);
}

TEST_F(object, each_range_can_be_modified_to_each_other)
{
	modify_to_each(_metadata, self, range_attr(self, 0), 0, -1);
}

TEST_F(object, flexible_range_can_be_modified_to_each_other)
{
	struct perf_event_attr attr = range_attr(self, 0);

	BP_NEED_CONFIG(BP_FLEXIBLE);
	attr.config = BP_FLEXIBLE;
	modify_to_each(_metadata, self, attr, 0, -1);
}

TEST_F(object, range_of_a_process_can_be_modified_to_each_other)
{
	struct perf_event_attr attr = range_attr(self, 0);

	BP_NEED_CONFIG(BP_PROCESS);
	attr.config = BP_PROCESS;
	modify_to_each(_metadata, self, attr, 0, -1);
}

TEST_F(object, range_of_a_cpu_can_be_modified_to_each_other)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	modify_to_each(_metadata, self, range_attr(self, 0), -1, self->cpus.cpu[0]);
	bp_unpin();
}

/* Ranges may have pieces in common, but not their addresses. */
TEST_F(object, hit_has_the_address_to_which_the_event_was_modified)
{
	struct perf_event_attr attr = range_attr(self, 0);
	union bp_record rec;
	struct bp_ring ring;
	int fd = open_sampled(_metadata, &attr, &ring);

	for (int i = 0; i < NR_RANGES * NR_RANGES; i++) {
		int from = i / NR_RANGES, to = i % NR_RANGES;

		move_to(self, &attr, from);
		ASSERT_EQ(0, bp_modify(fd, &attr));
		move_to(self, &attr, to);
		ASSERT_EQ(0, bp_modify(fd, &attr));
		for (unsigned int at = 0; at < ranges[to].len; at++) {
			bp_store((char *)(unsigned long)attr.bp_addr + at, 1);
			ASSERT_TRUE(bp_ring_next(&ring, &rec));
			EXPECT_EQ(attr.bp_addr, rec.u64[1]) {
				TH_LOG("byte %u of %u at %u, after %u at %u", at, ranges[to].len,
				       ranges[to].offset, ranges[from].len, ranges[from].offset);
			}
		}
	}
	bp_ring_unmap(&ring);
	close(fd);
}

TEST_F(object, modify_without_enough_registers_changes_nothing)
{
	struct perf_event_attr attr = range_attr(self, 0);
	int fd = bp_open(&attr, 0, -1), other[2];

	ASSERT_LE(0, fd);
	for (int i = 0; i < 2; i++)
		other[i] = bp_open_w(self->mem + 64 + 8 * i, 8);
	for (int from = 0; from < NR_RANGES; from++) {
		if (pieces(ranges[from].offset, ranges[from].len) > 2)
			continue;
		for (int to = 0; to < NR_RANGES; to++) {
			bool fits = pieces(ranges[to].offset, ranges[to].len) <= 2;

			move_to(self, &attr, from);
			EXPECT_EQ(0, bp_modify(fd, &attr));
			move_to(self, &attr, to);
			EXPECT_EQ(fits ? 0 : -ENOSPC, bp_modify(fd, &attr));
			expect_watches(_metadata, self, fd, fits ? to : from);
			attr.bp_len = 31;
			EXPECT_EQ(-EINVAL, bp_modify(fd, &attr));
			expect_watches(_metadata, self, fd, fits ? to : from);
		}
	}
	bp_close(other, 2);
}

/* What a change releases is available at once, and not before. */
TEST_F(object, smaller_range_releases_registers)
{
	struct perf_event_attr attr = range_attr(self, 4);
	int fd = bp_open(&attr, 0, -1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS - pieces(ranges[4].offset, ranges[4].len), bp_free_slots(0, -1));
	for (int i = 0; i < NR_RANGES; i++) {
		move_to(self, &attr, i);
		EXPECT_EQ(0, bp_modify(fd, &attr));
		EXPECT_EQ(BP_SLOTS - pieces(ranges[i].offset, ranges[i].len), bp_free_slots(0, -1));
	}
}

/* --------------------------------------------------------------- MODIFY under fire */

struct storm {
	FIXTURE_DATA(object) *self;
	struct perf_event_attr attr;
	int fd;
	int stop;
	long done;
	long wrong;
};

static void *storm_thread(void *arg)
{
	struct storm *s = arg;

	for (int i = 0; !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE); i++) {
		move_to(s->self, &s->attr, i % NR_RANGES);
		s->wrong += bp_modify(s->fd, &s->attr) != 0;
		__atomic_store_n(&s->done, s->done + 1, __ATOMIC_RELAXED);
		if (i % 7 == 0)
			sched_yield();
	}
	return NULL;
}

static bool is_address_of_a_range(FIXTURE_DATA(object) *self, __u64 addr)
{
	for (int i = 0; i < NR_RANGES; i++) {
		if (addr == (unsigned long)self->mem + ranges[i].offset)
			return true;
	}
	return false;
}

/*
 * Each range has byte COMMON, and a store of 8 bytes there hits one or several pieces:
 * whichever range is watched, each store is one hit.
 */
static void store_in_storm(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			   __u64 config)
{
	struct storm s = { .self = self, .attr = range_attr(self, 0) };
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int rounds = bp_rounds(ROUNDS);
	long stores = 0, samples = 0;
	union bp_record rec;
	struct bp_ring ring;
	pthread_t thread;

	s.attr.sample_period = 1;
	s.attr.sample_type = PERF_SAMPLE_ADDR;
	s.attr.config = config;
	s.fd = bp_open(&s.attr, syscall(SYS_gettid), -1);
	ASSERT_LE(0, s.fd);
	/* A breakpoint of a process on all CPUs has no ring buffer. */
	if (!config)
		ASSERT_EQ(0, bp_ring_map(&ring, s.fd, 8, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, pthread_create(&thread, NULL, storm_thread, &s));
	while ((stores < rounds || __atomic_load_n(&s.done, __ATOMIC_RELAXED) < rounds) &&
	       bp_has_patience(start)) {
		bp_store(self->mem + COMMON, 1);
		bp_store(self->mem + COMMON - 4 + stores % 2 * 4, 8);
		bp_store(self->mem + OUTSIDE, 8);
		stores += 2;
		bp_pause();
		if (stores % 16 == 0)
			sched_yield();
		while (!config && bp_ring_next(&ring, &rec)) {
			samples++;
			s.wrong += rec.header.type != PERF_RECORD_SAMPLE ||
				   !is_address_of_a_range(self, rec.u64[1]);
		}
	}
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, s.wrong);
	EXPECT_EQ(stores, bp_count(s.fd));
	EXPECT_LT(100, s.done);
	if (config)
		return;
	EXPECT_EQ(stores, samples);
	bp_ring_unmap(&ring);
}

TEST_F(object, each_store_counts_once_while_the_range_changes)
{
	store_in_storm(_metadata, self, 0);
}

TEST_F(object, each_store_counts_once_while_the_range_of_a_process_changes)
{
	BP_NEED_CONFIG(BP_PROCESS);
	store_in_storm(_metadata, self, BP_PROCESS);
}

/* ------------------------------------------------------------- children and threads */

struct child {
	FIXTURE_DATA(object) *self;
};

static long store_bytes(int cmd, void *arg)
{
	struct child *child = arg;

	for (int at = 0; at < OUTSIDE + 8; at++)
		bp_store(child->self->mem + at, 1);
	(void)cmd;
	return 0;
}

static void fork_and_modify(struct __test_metadata *_metadata, FIXTURE_DATA(object) *self,
			    bool thread)
{
	struct perf_event_attr attr = range_attr(self, 2);
	struct child child = { self };
	long long want = 0;
	struct bp_worker w;
	int fd;

	attr.inherit = !thread;
	attr.config = thread ? BP_PROCESS : 0;
	fd = bp_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, thread ? bp_start_thread(&w, store_bytes, &child) :
			      bp_start(&w, store_bytes, &child));
	for (int i = 0; i < NR_RANGES; i++) {
		move_to(self, &attr, i);
		EXPECT_EQ(0, bp_modify(fd, &attr));
		EXPECT_EQ(0, bp_do(&w, 0));
		store_bytes(0, &child);
		want += 2 * ranges[i].len;
		EXPECT_EQ(want, bp_count(fd)) {
			TH_LOG("%u bytes at %u", ranges[i].len, ranges[i].offset);
		}
		EXPECT_EQ(BP_SLOTS - pieces(ranges[i].offset, ranges[i].len),
			  bp_free_slots(0, -1));
		EXPECT_EQ(BP_SLOTS - pieces(ranges[i].offset, ranges[i].len),
			  bp_free_slots(w.pid, -1));
	}
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(object, child_watches_what_its_parent_watches)
{
	fork_and_modify(_metadata, self, false);
}

TEST_F(object, thread_watches_what_its_process_watches)
{
	BP_NEED_CONFIG(BP_PROCESS);
	fork_and_modify(_metadata, self, true);
}

/* A child that lacks the registers refuses the change for the whole family. */
TEST_F(object, family_changes_as_a_whole)
{
	struct perf_event_attr attr = range_attr(self, 0), other;
	struct child child = { self };
	struct bp_worker w;
	int fd, held[3];

	attr.inherit = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&w, store_bytes, &child));
	for (int i = 0; i < 3; i++) {
		other = bp_attr_w(self->mem + 64 + 8 * i, 8);
		held[i] = bp_open(&other, w.pid, -1);
		ASSERT_LE(0, held[i]);
	}
	/* 2 or 3 pieces */
	move_to(self, &attr, 2);
	EXPECT_EQ(-ENOSPC, bp_modify(fd, &attr));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_do(&w, 0));
	EXPECT_EQ(1, bp_count(fd));
	bp_close(held, 3);
	EXPECT_EQ(0, bp_modify(fd, &attr));
	EXPECT_EQ(BP_SLOTS - pieces(ranges[2].offset, ranges[2].len), bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_do(&w, 0));
	EXPECT_EQ(1 + ranges[2].len, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&w));
}

/* ------------------------------------------------------------------------- flexible */

/* Returns the part of the time, in percent, for which the event had its registers. */
static int share(struct __test_metadata *_metadata, int fd)
{
	struct bp_reading r = { };

	EXPECT_TRUE(bp_read(fd, &r));
	return r.enabled ? r.running * 100 / r.enabled : 0;
}

static int open_flexible_on(FIXTURE_DATA(object) *self, int i, pid_t pid, int cpu, int group)
{
	struct perf_event_attr attr = range_attr(self, i);

	attr.config = BP_FLEXIBLE;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return bp_open_group(&attr, pid, cpu, group, 0);
}

static int open_flexible(FIXTURE_DATA(object) *self, int i, int group)
{
	return open_flexible_on(self, i, 0, -1, group);
}

TEST_F(object, flexible_ranges_take_turns)
{
	int fd[NR_RANGES];

	BP_NEED_CONFIG(BP_FLEXIBLE);
	for (int i = 0; i < NR_RANGES; i++) {
		fd[i] = open_flexible(self, i, -1);
		ASSERT_LE(0, fd[i]);
	}
	bp_spin(bp_rounds(800));
	for (int i = 0; i < NR_RANGES; i++) {
		EXPECT_LT(3, share(_metadata, fd[i])) {
			TH_LOG("%u bytes at %u", ranges[i].len, ranges[i].offset);
		}
	}
}

/* A range of four pieces waits as long as one register is held. */
TEST_F(object, flexible_range_waits_for_all_of_its_registers)
{
	int fd = open_flexible(self, 4, -1), small = open_flexible(self, 0, -1), held;
	struct bp_reading was, now;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	if (max_piece > 8)
		SKIP(return, "needs larger ranges with address masks");
	ASSERT_LE(0, fd);
	ASSERT_LE(0, small);
	held = bp_open_w(self->mem + 64, 8);
	ASSERT_LE(0, held);
	EXPECT_TRUE(bp_read(fd, &was));
	bp_spin(50);
	EXPECT_TRUE(bp_read(fd, &now));
	EXPECT_EQ(was.running, now.running);
	EXPECT_LT(50, share(_metadata, small));
	close(held);
	close(small);
	bp_spin(50);
	EXPECT_TRUE(bp_read(fd, &now));
	EXPECT_LT(was.running, now.running);
	bp_store(self->mem + ranges[4].offset + ranges[4].len - 4, 8);
	EXPECT_TRUE(bp_read(fd, &now));
	EXPECT_EQ(1, now.count);
}

/* Two ranges of two pieces need four registers at the same time, of which three are left. */
TEST_F(object, group_that_finds_too_few_registers_evicts_none)
{
	int leader, member, other, held;
	struct bp_reading r = { };

	BP_NEED_CONFIG(BP_FLEXIBLE);
	BP_NEED_ROOT();
	if (max_piece > 8)
		SKIP(return, "needs larger ranges with address masks");
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	held = bp_open_w(self->mem + 64, 8);
	ASSERT_LE(0, held);
	other = open_flexible_on(self, 0, -1, self->cpus.cpu[0], -1);
	ASSERT_LE(0, other);
	leader = open_flexible(self, 1, -1);
	ASSERT_LE(0, leader);
	member = open_flexible(self, 3, leader);
	ASSERT_LE(0, member);
	bp_spin(100);
	EXPECT_LE(99, share(_metadata, other));
	close(held);
	bp_spin(100);
	EXPECT_LT(10, share(_metadata, other));
	EXPECT_TRUE(bp_read(leader, &r));
	EXPECT_LT(0, r.running);
	bp_unpin();
}

TEST_F(object, group_that_could_never_be_watched_is_refused)
{
	int leader = open_flexible(self, 2, -1);
	struct perf_event_attr attr = range_attr(self, 0);
	int fd;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	if (max_piece > 8)
		SKIP(return, "needs larger ranges with address masks");
	ASSERT_LE(0, leader);
	/* 3 and 2 pieces */
	EXPECT_EQ(-EINVAL, open_flexible(self, 1, leader));
	fd = open_flexible(self, 0, leader);
	ASSERT_LE(0, fd);
	attr.config = BP_FLEXIBLE;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	move_to(self, &attr, 1);
	EXPECT_EQ(-EINVAL, bp_modify(fd, &attr));
	EXPECT_EQ(-EINVAL, open_flexible(self, 5, leader));
	move_to(self, &attr, 5);
	EXPECT_EQ(0, bp_modify(fd, &attr));
	bp_spin(50);
	EXPECT_LT(50, share(_metadata, leader));
	EXPECT_LT(50, share(_metadata, fd));
}

TEST_HARNESS_MAIN
