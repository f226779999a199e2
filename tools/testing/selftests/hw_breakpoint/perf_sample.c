// SPDX-License-Identifier: GPL-2.0
/*
 * Sampling with PERF_TYPE_BREAKPOINT.
 *
 * The rule: every sample_period hits give one record, with the requested fields about
 * the access: task, address, CPU, time. Records that do not fit into the ring are
 * counted as lost.
 */
#include <asm/perf_regs.h>

#include "samples.h"

struct sample {
	__u64 identifier, ip, time, addr, id, stream_id, period;
	__u32 pid, tid, cpu;
	__u64 count, enabled, running, read_id, lost;
	__u64 chain_nr;
	const __u64 *chain;
	__u32 raw_size;
	__u64 user_abi, intr_abi;
	const __u64 *user_regs, *intr_regs;
	__u64 stack_size, stack_dyn;
	const char *stack;
	__u64 weight, data_src, transaction, phys, cgroup, data_page, code_page;
};

static const __u64 *parse_read(const __u64 *p, __u64 format, struct sample *s)
{
	s->count = *p++;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		s->enabled = *p++;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		s->running = *p++;
	if (format & PERF_FORMAT_ID)
		s->read_id = *p++;
	if (format & PERF_FORMAT_LOST)
		s->lost = *p++;
	return p;
}

static const __u64 *parse_regs(const __u64 *p, __u64 mask, __u64 *abi,
			       const __u64 **regs)
{
	*abi = *p++;
	*regs = p;
	return *abi ? p + __builtin_popcountll(mask) : p;
}

static const __u64 *parse_stack(const __u64 *p, struct sample *s)
{
	s->stack_size = *p++;
	s->stack = (const char *)p;
	p += s->stack_size / 8;
	if (s->stack_size)
		s->stack_dyn = *p++;
	return p;
}

static const __u64 *parse_head(const __u64 *p, __u64 type, struct sample *s)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		s->identifier = *p++;
	if (type & PERF_SAMPLE_IP)
		s->ip = *p++;
	if (type & PERF_SAMPLE_TID) {
		s->pid = ((const __u32 *)p)[0];
		s->tid = ((const __u32 *)p)[1];
		p++;
	}
	if (type & PERF_SAMPLE_TIME)
		s->time = *p++;
	if (type & PERF_SAMPLE_ADDR)
		s->addr = *p++;
	if (type & PERF_SAMPLE_ID)
		s->id = *p++;
	if (type & PERF_SAMPLE_STREAM_ID)
		s->stream_id = *p++;
	if (type & PERF_SAMPLE_CPU)
		s->cpu = *p++;
	if (type & PERF_SAMPLE_PERIOD)
		s->period = *p++;
	return p;
}

/* Parses a sample; returns its size as computed from the requested fields. */
static size_t parse(const struct perf_event_attr *attr, const union bp_record *rec,
		    struct sample *s)
{
	const __u64 *p = &rec->u64[1];
	__u64 type = attr->sample_type;

	memset(s, 0, sizeof(*s));
	p = parse_head(p, type, s);
	if (type & PERF_SAMPLE_READ)
		p = parse_read(p, attr->read_format, s);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->chain_nr = *p++;
		s->chain = p;
		p += s->chain_nr;
	}
	if (type & PERF_SAMPLE_RAW) {
		s->raw_size = *(const __u32 *)p;
		p += (4 + s->raw_size) / 8;
	}
	if (type & PERF_SAMPLE_REGS_USER)
		p = parse_regs(p, attr->sample_regs_user, &s->user_abi, &s->user_regs);
	if (type & PERF_SAMPLE_STACK_USER)
		p = parse_stack(p, s);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		s->weight = *p++;
	if (type & PERF_SAMPLE_DATA_SRC)
		s->data_src = *p++;
	if (type & PERF_SAMPLE_TRANSACTION)
		s->transaction = *p++;
	if (type & PERF_SAMPLE_REGS_INTR)
		p = parse_regs(p, attr->sample_regs_intr, &s->intr_abi, &s->intr_regs);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		s->phys = *p++;
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = *p++;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		s->data_page = *p++;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		s->code_page = *p++;
	return (const char *)p - rec->bytes;
}

SAMPLES_FIXTURE(sample)

FIXTURE_SETUP(sample)
{
	SETUP_SAMPLES(bp_attr_w(self->mem, 1));
}

static void open_ring(struct __test_metadata *_metadata, FIXTURE_DATA(sample) *self,
		      __u64 sample_type)
{
	self->attr.sample_type = sample_type;
	open_ring_on(_metadata, self, 0, -1, 16);
}

/* Reads the next sample, which must be in the ring and have the right size. */
static void next_sample(struct __test_metadata *_metadata, FIXTURE_DATA(sample) *self,
			struct sample *s)
{
	ASSERT_TRUE(bp_ring_next(&self->ring, &self->rec));
	ASSERT_EQ(PERF_RECORD_SAMPLE, self->rec.header.type);
	EXPECT_EQ(self->rec.header.size, parse(&self->attr, &self->rec, s));
}

/* Takes all records out of the ring and returns the number of samples. */
static int drain(FIXTURE_DATA(sample) *self)
{
	int samples = 0;

	while (bp_ring_next(&self->ring, &self->rec))
		samples += self->rec.header.type == PERF_RECORD_SAMPLE;
	return samples;
}

/* ------------------------------------------------------------------ each field */

/* A data breakpoint is a trap: the access is done, ip is the next instruction. */
TEST_F(sample, ip_of_a_data_breakpoint_is_after_the_access)
{
	struct sample s;

	open_ring(_metadata, self, PERF_SAMPLE_IP);
	bp_store_at(self->mem);
	next_sample(_metadata, self, &s);
	EXPECT_EQ(BP_STORE_IP, s.ip);
	EXPECT_EQ(PERF_RECORD_MISC_USER, self->rec.header.misc & PERF_RECORD_MISC_CPUMODE_MASK);
	EXPECT_EQ(0, drain(self));
}

/* An instruction breakpoint is a fault: ip is the instruction itself. */
TEST_F(sample, ip_of_an_instruction_breakpoint_is_the_instruction)
{
	struct sample s;

	self->attr.bp_type = HW_BREAKPOINT_X;
	self->attr.bp_addr = (unsigned long)bp_func_insn;
	self->attr.bp_len = sizeof(long);
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);
	bp_func();
	next_sample(_metadata, self, &s);
	EXPECT_EQ((unsigned long)bp_func_insn, s.ip);
	EXPECT_EQ((unsigned long)bp_func_insn, s.addr);
	EXPECT_EQ(0, drain(self));
}

static long store_once(int cmd, void *mem)
{
	(void)cmd;
	bp_store(mem, 1);
	return 0;
}

TEST_F(sample, tid_is_the_task_that_made_the_access)
{
	struct bp_worker thread;
	struct sample s;

	ASSERT_EQ(0, bp_start_thread(&thread, store_once, self->mem));
	self->attr.sample_type = PERF_SAMPLE_TID;
	open_ring_on(_metadata, self, thread.pid, -1, 4);
	EXPECT_EQ(0, bp_do(&thread, 1));
	next_sample(_metadata, self, &s);
	EXPECT_EQ(getpid(), s.pid);
	EXPECT_EQ(thread.pid, s.tid);
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(sample, time_is_that_of_the_access)
{
	__u64 before, after;
	struct sample s;

	self->attr.use_clockid = 1;
	self->attr.clockid = CLOCK_MONOTONIC;
	open_ring(_metadata, self, PERF_SAMPLE_TIME);
	for (int i = 0; i < 10; i++) {
		before = bp_now(CLOCK_MONOTONIC);
		bp_store(self->mem, 1);
		after = bp_now(CLOCK_MONOTONIC);
		next_sample(_metadata, self, &s);
		EXPECT_LE(before, s.time);
		EXPECT_GE(after, s.time);
	}
}

TEST_F(sample, time_of_the_default_clock_goes_forward)
{
	__u64 last = 0;
	struct sample s;

	open_ring(_metadata, self, PERF_SAMPLE_TIME);
	for (int i = 0; i < 10; i++) {
		bp_store(self->mem, 1);
		next_sample(_metadata, self, &s);
		EXPECT_LT(0, s.time);
		EXPECT_LE(last, s.time);
		last = s.time;
	}
}

TEST_F(sample, addr_is_the_address_of_the_breakpoint)
{
	struct sample s;

	self->attr.bp_len = 8;
	open_ring(_metadata, self, PERF_SAMPLE_ADDR);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	EXPECT_EQ(self->attr.bp_addr, s.addr);
}

TEST_F(sample, ids_are_those_of_the_event)
{
	struct sample s;
	__u64 id;

	open_ring(_metadata, self, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID |
		  PERF_SAMPLE_STREAM_ID);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	id = bp_id(self->fd);
	EXPECT_NE(0, id);
	EXPECT_EQ(id, s.identifier);
	EXPECT_EQ(id, s.id);
	EXPECT_EQ(id, s.stream_id);
}

TEST_F(sample, cpu_is_the_one_the_access_was_made_on)
{
	struct sample s;

	open_ring(_metadata, self, PERF_SAMPLE_CPU);
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store(self->mem, 1);
		next_sample(_metadata, self, &s);
		EXPECT_EQ(self->cpus.cpu[i], s.cpu);
	}
}

TEST_F(sample, read_is_the_count_including_this_hit)
{
	struct sample s;

	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
				 PERF_FORMAT_LOST;
	open_ring(_metadata, self, PERF_SAMPLE_READ);
	for (int i = 1; i <= 10; i++) {
		bp_store(self->mem, 1);
		next_sample(_metadata, self, &s);
		EXPECT_EQ(i, s.count);
		EXPECT_LT(0, s.enabled);
		EXPECT_EQ(s.enabled, s.running);
		EXPECT_EQ(bp_id(self->fd), s.read_id);
		EXPECT_EQ(0, s.lost);
	}
}

TEST_F(sample, callchain_of_a_user_access_starts_at_its_ip)
{
	struct sample s;

	self->attr.exclude_callchain_kernel = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	bp_store_at(self->mem);
	next_sample(_metadata, self, &s);
	ASSERT_LE(2, s.chain_nr);
	EXPECT_EQ((__u64)PERF_CONTEXT_USER, s.chain[0]);
	EXPECT_EQ(BP_STORE_IP, s.chain[1]);
}

/* The field is present, and empty. */
TEST_F(sample, raw_is_empty)
{
	struct sample s;

	open_ring(_metadata, self, PERF_SAMPLE_RAW | PERF_SAMPLE_IP);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	EXPECT_EQ(4, s.raw_size);
}

TEST_F(sample, user_registers_are_those_at_the_access)
{
	struct sample s;

	self->attr.sample_regs_user = 1ULL << BP_PERF_REG_A | 1ULL << BP_PERF_REG_B |
				      1ULL << BP_PERF_REG_IP;
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER);
	bp_store_with(self->mem, 0x1234567890UL, 0xabcdefUL);
	next_sample(_metadata, self, &s);
	ASSERT_EQ(PERF_SAMPLE_REGS_ABI_64, s.user_abi);
	EXPECT_EQ(0x1234567890UL, s.user_regs[0]);
	EXPECT_EQ(0xabcdefUL, s.user_regs[1]);
	EXPECT_EQ(s.ip, s.user_regs[2]);
}

TEST_F(sample, interrupt_registers_are_those_at_the_access)
{
	struct sample s;

	self->attr.sample_regs_intr = 1ULL << BP_PERF_REG_A | 1ULL << BP_PERF_REG_IP;
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_REGS_INTR);
	bp_store_with(self->mem, 0x7654321UL, 0);
	next_sample(_metadata, self, &s);
	ASSERT_EQ(PERF_SAMPLE_REGS_ABI_64, s.intr_abi);
	EXPECT_EQ(0x7654321UL, s.intr_regs[0]);
	EXPECT_EQ(s.ip, s.intr_regs[1]);
}

TEST_F(sample, user_stack_is_the_one_at_the_access)
{
	volatile char marker[32] = "here lies the stack of the test";
	struct sample s;

	self->attr.sample_stack_user = 4096;
	open_ring(_metadata, self, PERF_SAMPLE_STACK_USER);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	EXPECT_EQ(4096, s.stack_size);
	EXPECT_LT(0, s.stack_dyn);
	EXPECT_NE(NULL, memmem(s.stack, s.stack_dyn, (char *)marker, sizeof(marker)));
}

TEST_F(sample, code_page_size_is_known)
{
	struct sample s;

	open_ring(_metadata, self, PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_DATA_PAGE_SIZE |
		  PERF_SAMPLE_ADDR);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	EXPECT_LE(4096, s.code_page);
	EXPECT_EQ(4096, s.data_page);
}

TEST_F(sample, physical_address_is_given_to_root)
{
	struct sample s;

	BP_NEED_ROOT();
	open_ring(_metadata, self, PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_ADDR);
	bp_store(self->mem, 1);
	next_sample(_metadata, self, &s);
	EXPECT_NE(0, s.phys);
	EXPECT_EQ((unsigned long)self->mem & 4095, s.phys & 4095);
}

/* Fields that only a hardware counter can fill in are present, and 0. */
TEST_F(sample, all_fields_at_once_are_where_they_belong)
{
	struct sample s;

	self->attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	self->attr.sample_regs_user = 1ULL << BP_PERF_REG_SP;
	self->attr.sample_regs_intr = 1ULL << BP_PERF_REG_IP | 1ULL << BP_PERF_REG_SP;
	self->attr.sample_stack_user = 256;
	self->attr.exclude_callchain_kernel = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		  PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
		  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		  PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
		  PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT |
		  PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |
		  PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);
	for (int i = 1; i <= 3; i++) {
		bp_store_at(self->mem);
		next_sample(_metadata, self, &s);
		EXPECT_EQ(bp_id(self->fd), s.identifier);
		EXPECT_EQ(BP_STORE_IP, s.ip);
		EXPECT_EQ(getpid(), s.tid);
		EXPECT_EQ(self->attr.bp_addr, s.addr);
		EXPECT_EQ(1, s.period);
		EXPECT_EQ(i, s.count);
		EXPECT_EQ(BP_STORE_IP, s.intr_regs[1]);
		EXPECT_EQ(s.user_regs[0], s.intr_regs[0]);
		EXPECT_EQ(4096, s.code_page);
		EXPECT_EQ(0, s.weight);
		EXPECT_EQ(0, s.transaction);
	}
}

/* A hit in a system call is a hit in kernel mode, by this task. */
TEST_F(sample, hit_in_kernel_mode_has_the_kernel_cpumode)
{
	struct sample s;
	int p[2];

	BP_NEED_ROOT();
	BP_NEED(BP_KERNEL_ACCESS, "an access by the kernel is no hit");
	ASSERT_EQ(0, pipe(p));
	self->attr.exclude_kernel = 0;
	self->attr.sample_regs_user = 1ULL << BP_PERF_REG_IP;
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN |
		  PERF_SAMPLE_REGS_USER);
	ASSERT_EQ(1, write(p[1], "x", 1));
	ASSERT_EQ(1, read(p[0], self->mem, 1));
	next_sample(_metadata, self, &s);
	EXPECT_EQ(PERF_RECORD_MISC_KERNEL,
		  self->rec.header.misc & PERF_RECORD_MISC_CPUMODE_MASK);
	EXPECT_GT(0, (__s64)s.ip);
	EXPECT_EQ(getpid(), s.tid);
	EXPECT_EQ((__u64)PERF_CONTEXT_KERNEL, s.chain[0]);
	EXPECT_EQ(PERF_SAMPLE_REGS_ABI_64, s.user_abi);
	EXPECT_LT(0, (__s64)s.user_regs[0]);
	EXPECT_EQ(0, drain(self));
}

/* ----------------------------------------------------------------------- periods */

FIXTURE(period)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_ring ring;
	union bp_record rec;
	int fd;
};

FIXTURE_VARIANT(period)
{
	__u64 period;
	bool sample_it;
};

FIXTURE_VARIANT_ADD(period, of_1) { .period = 1 };
FIXTURE_VARIANT_ADD(period, of_2) { .period = 2 };
FIXTURE_VARIANT_ADD(period, of_7) { .period = 7 };
FIXTURE_VARIANT_ADD(period, of_100) { .period = 100 };
FIXTURE_VARIANT_ADD(period, of_1_in_the_sample) { .period = 1, .sample_it = true };
FIXTURE_VARIANT_ADD(period, of_7_in_the_sample) { .period = 7, .sample_it = true };

FIXTURE_SETUP(period)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 1);
	self->attr.sample_period = variant->period;
	self->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ |
				 (variant->sample_it ? PERF_SAMPLE_PERIOD : 0);
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bp_ring_map(&self->ring, self->fd, 16, PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(period)
{
	if (self->ring.page)
		bp_ring_unmap(&self->ring);
	bp_teardown(_metadata);
}

TEST_F(period, every_nth_hit_is_a_sample)
{
	int n = variant->period, samples = 0;
	struct sample s;

	bp_store_times(self->mem, 1, 10 * n + n / 2);
	while (bp_ring_next(&self->ring, &self->rec)) {
		EXPECT_EQ(PERF_RECORD_SAMPLE, self->rec.header.type);
		EXPECT_EQ(self->rec.header.size, parse(&self->attr, &self->rec, &s));
		samples++;
		ASSERT_EQ(samples * n, s.count);
		EXPECT_EQ(variant->sample_it ? n : 0, s.period);
	}
	EXPECT_EQ(10, samples);
	EXPECT_EQ(10 * n + n / 2, bp_count(self->fd));
}

/* The rest of a period is kept while the task is scheduled out. */
TEST_F(period, survives_context_switches)
{
	int n = variant->period, samples = 0;

	for (int i = 0; i < 5 * n; i++) {
		bp_store(self->mem, 1);
		sched_yield();
	}
	while (bp_ring_next(&self->ring, &self->rec))
		samples += self->rec.header.type == PERF_RECORD_SAMPLE;
	EXPECT_EQ(5, samples);
}

TEST_F(sample, period_ioctl_changes_the_period)
{
	__u64 period = 10;

	open_ring(_metadata, self, PERF_SAMPLE_IP);
	bp_store_times(self->mem, 1, 20);
	EXPECT_EQ(20, drain(self));
	EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(1, drain(self));
	for (int i = 0; i < 3; i++) {
		bp_store_times(self->mem, 1, 30);
		EXPECT_EQ(3, drain(self));
	}
	EXPECT_EQ(120, bp_count(self->fd));
}

/* The new period starts at the ioctl: the hits of the old one do not count. */
TEST_F(sample, period_ioctl_starts_a_new_period)
{
	__u64 period = 10;

	open_ring(_metadata, self, PERF_SAMPLE_IP);
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(3, drain(self));
	for (; period > 1; period -= 3) {
		EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
		bp_store_times(self->mem, 1, period - 1);
		EXPECT_EQ(0, drain(self));
		bp_store(self->mem, 1);
		EXPECT_EQ(1, drain(self));
		bp_store_times(self->mem, 1, 3 * period);
		EXPECT_EQ(3, drain(self));
	}
}

TEST_F(sample, frequency_is_accepted_and_gives_samples)
{
	self->attr.freq = 1;
	self->attr.sample_freq = 1000;
	open_ring(_metadata, self, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
	bp_store_times(self->mem, 1, 2000);
	EXPECT_EQ(2000, bp_count(self->fd));
	EXPECT_LT(0, drain(self));
}

/* --------------------------------------------------------------- signals and poll */

static volatile sig_atomic_t nr_in, nr_hup, last_fd;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	last_fd = info->si_fd;
	if (info->si_code == POLL_HUP)
		nr_hup++;
	else
		nr_in++;
}

static void signal_on_overflow(struct __test_metadata *_metadata, int fd)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct f_owner_ex owner = { F_OWNER_TID, syscall(__NR_gettid) };

	ASSERT_EQ(0, sigaction(SIGRTMIN, &sa, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN_EX, &owner));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
}

TEST_F(sample, each_overflow_sends_a_signal)
{
	BP_NEED(BP_AFTER_ACCESS, "a hit whose signal has a handler repeats");
	self->attr.wakeup_events = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	signal_on_overflow(_metadata, self->fd);
	for (int i = 1; i <= 20; i++) {
		bp_store(self->mem, 1);
		while (nr_in < i)
			sched_yield();
	}
	EXPECT_EQ(20, nr_in);
	EXPECT_EQ(0, nr_hup);
	EXPECT_EQ(self->fd, last_fd);
	EXPECT_EQ(20, drain(self));
}

TEST_F(sample, no_signal_between_overflows)
{
	self->attr.sample_period = 5;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	signal_on_overflow(_metadata, self->fd);
	for (int i = 1; i <= 4; i++) {
		bp_store_times(self->mem, 1, 5);
		while (nr_in < i)
			sched_yield();
	}
	EXPECT_EQ(4, nr_in);
	EXPECT_EQ(4, drain(self));
}

/*
 * REFRESH allows a number of overflows; the last one sends POLL_HUP and disables the
 * event.
 */
TEST_F(sample, refresh_arms_for_a_number_of_overflows)
{
	self->attr.disabled = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	signal_on_overflow(_metadata, self->fd);
	bp_store(self->mem, 1);
	EXPECT_EQ(0, bp_count(self->fd));
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, 3));
		for (int i = 1; i <= 3; i++) {
			bp_store(self->mem, 1);
			while (nr_in + nr_hup < 3 * (round - 1) + i)
				sched_yield();
		}
		EXPECT_EQ(2 * round, nr_in);
		EXPECT_EQ(round, nr_hup);
		bp_store_times(self->mem, 1, 5);
		EXPECT_EQ(3 * round, bp_count(self->fd));
	}
	EXPECT_EQ(9, drain(self));
}

TEST_F(sample, poll_sees_a_sample)
{
	struct pollfd p = { .events = POLLIN };

	self->attr.wakeup_events = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	p.fd = self->fd;
	EXPECT_EQ(0, poll(&p, 1, 0));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, poll(&p, 1, 20000));
	EXPECT_EQ(POLLIN, p.revents);
	EXPECT_EQ(1, drain(self));
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(sample, poll_waits_for_the_number_of_events_asked_for)
{
	struct pollfd p = { .events = POLLIN };

	self->attr.wakeup_events = 3;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	p.fd = self->fd;
	bp_store_times(self->mem, 1, 2);
	EXPECT_EQ(0, poll(&p, 1, 0));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, poll(&p, 1, 20000));
}

TEST_F(sample, poll_wakes_up_when_another_task_hits)
{
	struct pollfd p = { .events = POLLIN };
	struct bp_worker child;

	ASSERT_EQ(0, bp_start(&child, store_once, self->mem));
	self->attr.sample_type = PERF_SAMPLE_TID;
	self->attr.watermark = 1;
	self->attr.wakeup_watermark = 1;
	open_ring_on(_metadata, self, child.pid, -1, 4);
	p.fd = self->fd;
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_do(&child, 1));
		EXPECT_EQ(1, poll(&p, 1, 20000));
		EXPECT_EQ(POLLIN, p.revents);
		EXPECT_EQ(1, drain(self));
	}
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(sample, poll_hangs_up_when_the_task_is_gone)
{
	struct pollfd p = { .events = POLLIN };
	struct bp_worker child;

	ASSERT_EQ(0, bp_start(&child, store_once, self->mem));
	open_ring_on(_metadata, self, child.pid, -1, 4);
	p.fd = self->fd;
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(1, poll(&p, 1, 20000));
	EXPECT_TRUE(p.revents & POLLHUP);
}

/* -------------------------------------------------------------------- the ring */

TEST_F(sample, events_share_a_ring_through_set_output)
{
	struct perf_event_attr second;
	struct sample s;
	int fd;

	open_ring(_metadata, self, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR);
	second = self->attr;
	second.bp_addr += 8;
	fd = bp_open(&second, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	for (int i = 0; i < 5; i++) {
		bp_store(self->mem, 1);
		bp_store(self->mem + 8, 1);
		next_sample(_metadata, self, &s);
		EXPECT_EQ(bp_id(self->fd), s.identifier);
		EXPECT_EQ(self->attr.bp_addr, s.addr);
		next_sample(_metadata, self, &s);
		EXPECT_EQ(bp_id(fd), s.identifier);
		EXPECT_EQ(second.bp_addr, s.addr);
	}
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, -1));
	bp_store(self->mem + 8, 1);
	EXPECT_EQ(0, drain(self));
}

TEST_F(sample, set_output_needs_the_same_cpu)
{
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	self->attr.sample_type = PERF_SAMPLE_IP;
	open_ring_on(_metadata, self, 0, self->cpus.cpu[0], 1);
	fd = bp_open(&self->attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	EXPECT_EQ(-EINVAL, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
}

TEST_F(sample, records_that_do_not_fit_are_counted_as_lost)
{
	struct {
		struct perf_event_header header;
		__u64 id, lost;
	} *lost = (void *)&self->rec;
	__u64 v[2], in_ring = 0, reported = 0;

	self->attr.read_format = PERF_FORMAT_LOST;
	self->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	open_ring_on(_metadata, self, 0, -1, 1);
	bp_store_times(self->mem, 1, 1000);
	in_ring += drain(self);
	EXPECT_LT(0, in_ring);
	EXPECT_GT(1000, in_ring);
	bp_store_times(self->mem, 1, 3);
	while (bp_ring_next(&self->ring, &self->rec)) {
		if (self->rec.header.type == PERF_RECORD_LOST)
			reported += lost->lost;
		in_ring += self->rec.header.type == PERF_RECORD_SAMPLE;
	}
	EXPECT_EQ(16, read(self->fd, v, sizeof(v)));
	EXPECT_EQ(1003, v[0]);
	EXPECT_EQ(1003, in_ring + v[1]);
	EXPECT_EQ(v[1], reported);
}

TEST_F(sample, paused_ring_takes_nothing)
{
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(0, drain(self));
	EXPECT_EQ(10, bp_count(self->fd));
	EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(3, drain(self));
}

/* A ring that is mapped read-only is overwritten: it has the newest records. */
TEST_F(sample, read_only_ring_keeps_the_newest)
{
	struct perf_event_mmap_page *page;
	struct sample s;

	self->attr.sample_type = PERF_SAMPLE_READ;
	self->attr.write_backward = 1;
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bp_ring_map(&self->ring, self->fd, 1, PROT_READ));
	bp_store_times(self->mem, 1, 1000);
	EXPECT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	page = self->ring.page;
	for (__u64 i = 0, at = page->data_head; i < 50; i++) {
		char *data = (char *)page + 4096;

		memcpy(&self->rec, data + at % 4096, 16);
		ASSERT_EQ(PERF_RECORD_SAMPLE, self->rec.header.type);
		parse(&self->attr, &self->rec, &s);
		EXPECT_EQ(1000 - i, s.count);
		at += self->rec.header.size;
	}
}

/*
 * The page before the ring describes it, and does not allow reads without a system
 * call.
 */
TEST_F(sample, user_page_describes_the_ring)
{
	struct perf_event_mmap_page *page;

	open_ring(_metadata, self, PERF_SAMPLE_IP);
	page = self->ring.page;
	EXPECT_EQ(0, page->index);
	EXPECT_EQ(4096, page->data_offset);
	EXPECT_EQ(16 * 4096, page->data_size);
	EXPECT_EQ(0, page->data_head);
	EXPECT_EQ(0, page->lock % 2);
	bp_store_times(self->mem, 1, 10);
	EXPECT_LT(0, page->data_head);
	EXPECT_EQ(0, bp_disable(self->fd));
	EXPECT_LE(page->time_running, page->time_enabled);
}

/* A breakpoint can have records about its task, like any other event. */
TEST_F(sample, task_records_come_with_the_event)
{
	int forks = 0, exits = 0;
	pid_t pid;

	self->attr.task = 1;
	open_ring(_metadata, self, PERF_SAMPLE_IP);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
	EXPECT_EQ(0, bp_wait(pid));
	while (bp_ring_next(&self->ring, &self->rec)) {
		forks += self->rec.header.type == PERF_RECORD_FORK;
		exits += self->rec.header.type == PERF_RECORD_EXIT;
	}
	EXPECT_EQ(1, forks);
	EXPECT_EQ(0, exits);
}

TEST_F(sample, cpu_event_samples_every_task_there)
{
	struct bp_worker w[2];
	struct sample s;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	self->attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CPU;
	open_ring_on(_metadata, self, -1, self->cpus.cpu[0], 4);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], store_once, self->mem));
		EXPECT_EQ(0, bp_do(&w[i], 1));
		next_sample(_metadata, self, &s);
		EXPECT_EQ(w[i].pid, s.tid);
		EXPECT_EQ(self->cpus.cpu[0], s.cpu);
	}
	EXPECT_EQ(0, drain(self));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
}

TEST_HARNESS_MAIN
