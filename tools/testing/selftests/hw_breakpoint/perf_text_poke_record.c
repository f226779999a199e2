// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: the contents of a record, and which events get it.
 *
 * The rule: an event of a CPU gets the changes that the CPU makes, an event of a task
 * those that the task makes, with the bytes before and after. Records that do not fit
 * into the ring are counted.
 */
#define TEXT_POKE_FIXTURE
#include "provoke.h"

TEST_F(record, has_old_and_new_bytes)
{
	struct perf_event_header *h;
	unsigned char op, byte[2][2];
	size_t pos = 0;
	struct poke p;
	int nr = 0;

	ASSERT_TRUE(read_kcore(self->addr, &op, 1));
	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		EXPECT_NE(PERF_RECORD_LOST, h->type);
		if (h->type != PERF_RECORD_TEXT_POKE)
			continue;
		EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
		decode(h, &p);
		if (p.addr != self->addr)
			continue;
		EXPECT_EQ(1, p.old_len);
		EXPECT_EQ(1, p.new_len);
		ASSERT_GT(2, nr);
		byte[nr][0] = p.old[0];
		byte[nr++][1] = p.new[0];
	}
	ASSERT_EQ(2, nr);
	EXPECT_EQ(op, byte[0][0]);
	EXPECT_EQ(INT3, byte[0][1]);
	EXPECT_EQ(INT3, byte[1][0]);
	EXPECT_EQ(op, byte[1][1]);
}

/* There is one record for the instruction, not one for each write. */
TEST_F(record, has_a_whole_instruction)
{
	static const unsigned char nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	__u64 entry = self->addr - self->offset;
	unsigned char call[5] = { };
	struct perf_event_header *h;
	size_t pos = 0;
	struct poke p;
	int fd, nr = 0;

	ASSERT_EQ(0, listen_here(self));
	fd = open_kprobe(self->func, 0, false);
	ASSERT_LE(0, fd);
	close(fd);
	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		if (!decode(h, &p) || p.addr != entry)
			continue;
		EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
		ASSERT_EQ(5, p.old_len);
		ASSERT_EQ(5, p.new_len);
		if (++nr == 1) {
			memcpy(call, p.new, 5);
			EXPECT_EQ(0xe8, call[0]);
			EXPECT_EQ(0, memcmp(p.old, nop, 5));
		} else {
			EXPECT_EQ(0, memcmp(p.old, call, 5));
			EXPECT_EQ(0, memcmp(p.new, nop, 5));
		}
	}
	EXPECT_EQ(2, nr);
}

/*
 * The copy of the instruction that a kprobe executes out of line is recorded before the
 * breakpoint that leads to it.
 */
TEST_F(record, out_of_line_copy_is_recorded_before_its_breakpoint)
{
	struct perf_event_header *h;
	size_t pos = 0;
	struct poke p;
	int slots = 0;
	bool armed = false;

	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos)) && !armed) {
		if (!decode(h, &p))
			continue;
		EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
		armed = p.addr == self->addr;
		slots += !armed && !p.old_len;
	}
	EXPECT_TRUE(armed);
	EXPECT_LE(1, slots);
}

static void expect_trailer(struct __test_metadata *_metadata, FIXTURE_DATA(record) *self,
			   struct listener *l, __u64 type, const struct perf_event_header *h,
			   __u64 from, __u64 to)
{
	const __u64 *t = (const void *)((const char *)h + poke_size((const void *)h));
	const __u32 *word;
	__u64 id = bp_id(l->fd);

	if (type & PERF_SAMPLE_TID) {
		word = (const void *)t++;
		EXPECT_EQ(getpid(), word[0]);
		EXPECT_EQ(syscall(__NR_gettid), word[1]);
	}
	if (type & PERF_SAMPLE_TIME) {
		EXPECT_LE(from, *t);
		EXPECT_GE(to, *t);
		t++;
	}
	if (type & PERF_SAMPLE_ID)
		EXPECT_EQ(id, *t++);
	if (type & PERF_SAMPLE_STREAM_ID)
		EXPECT_EQ(id, *t++);
	if (type & PERF_SAMPLE_CPU) {
		word = (const void *)t++;
		EXPECT_EQ(self->cpu, word[0]);
		EXPECT_EQ(0, word[1]);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		EXPECT_EQ(id, *t++);
	EXPECT_EQ((const char *)h + h->size, (const char *)t);
}

/* Fields that sample_type adds to the record, in order; other bits add nothing. */
TEST_F(record, has_the_sample_id_that_was_asked_for)
{
	static const __u64 bit[] = {
		PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR |
		PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW,
	};
	int all = 1 << ARRAY_SIZE(bit);
	struct listener *l = calloc(all, sizeof(*l));
	struct perf_event_header *h;
	struct poke p;
	__u64 from, to;

	ASSERT_NE(NULL, l);
	for (int i = 0; i < all; i++) {
		self->attr.sample_type = 0;
		for (unsigned int b = 0; b < ARRAY_SIZE(bit); b++) {
			if (i >> b & 1)
				self->attr.sample_type |= bit[b];
		}
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpu, 4));
	}
	from = bp_now(CLOCK_MONOTONIC);
	poke_twice(_metadata, self);
	to = bp_now(CLOCK_MONOTONIC);
	for (int i = 0; i < all; i++) {
		__u64 type = 0;
		size_t pos = 0;
		int nr = 0;

		for (unsigned int b = 0; b < ARRAY_SIZE(bit); b++) {
			if (i >> b & 1)
				type |= bit[b];
		}
		drain(&l[i]);
		while ((h = next_record(&l[i], &pos))) {
			if (!decode_body(h, &p) || p.addr != self->addr)
				continue;
			nr++;
			EXPECT_EQ(NULL, what_is_wrong(h, h->size - poke_size((void *)h)));
			expect_trailer(_metadata, self, &l[i], type, h, from, to);
		}
		EXPECT_EQ(2, nr);
	}
}

TEST_F(record, has_no_sample_id_if_none_was_asked_for)
{
	struct perf_event_header *h;
	struct poke p;
	size_t pos = 0;
	int nr = 0;

	self->attr.sample_id_all = 0;
	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		if (!decode_body(h, &p))
			continue;
		EXPECT_EQ(NULL, what_is_wrong(h, 0));
		nr += p.addr == self->addr;
	}
	EXPECT_EQ(2, nr);
}

/*
 * A program of thousands of instructions is recorded as a sequence of adjacent changes.
 */
TEST_F(record, of_a_long_copy_comes_in_pieces)
{
	unsigned char *text, *copy;
	struct perf_event_header *h;
	__u64 addr, next = 0;
	size_t pos = 0;
	struct poke p;
	__u32 len;
	int fd, pieces = 0;

	add_areas(&self->attr);
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 64));
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 1, 4000);
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the BPF JIT");
	ASSERT_LT(2 * 4096, len);
	text = malloc(len);
	copy = calloc(1, len);
	ASSERT_TRUE(text && copy);
	ASSERT_TRUE(read_kcore(addr, text, len));
	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		EXPECT_NE(PERF_RECORD_LOST, h->type);
		if (!decode(h, &p) || p.addr + p.new_len <= addr || p.addr >= addr + len)
			continue;
		EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
		if (next)
			EXPECT_EQ(next, p.addr);
		next = p.addr + p.new_len;
		pieces++;
		for (unsigned int i = 0; i < p.new_len; i++) {
			if (p.addr + i >= addr && p.addr + i < addr + len)
				copy[p.addr + i - addr] = p.new[i];
		}
	}
	EXPECT_LE(addr + len, next);
	EXPECT_LE((len + 4095) / 4096, pieces);
	EXPECT_EQ(0, memcmp(text, copy, len));
}

/*
 * A kprobe inside an instruction, or on a function of the blacklist, is refused and
 * changes no text.
 */
TEST_F(record, failed_change_is_not_recorded)
{
	__u64 entry = self->addr - self->offset;

	ASSERT_EQ(0, listen_here(self));
	for (int i = 1; i < 5; i++)
		EXPECT_GT(0, open_kprobe(self->func, i, false));
	EXPECT_GT(0, open_kprobe("exc_int3", 0, false));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(0, count_at(&self->listener, entry + i));
	EXPECT_EQ(0, count_at(&self->listener, (unsigned long)bp_ksym("exc_int3")));
}

/* An area of text has a name, in a PERF_RECORD_KSYMBOL. */
static bool is_named(struct listener *l, __u64 addr, int type)
{
	struct {
		struct perf_event_header header;
		__u64 addr;
		__u32 len;
		__u16 type;
		__u16 flags;
	} *r;
	struct perf_event_header *h;
	size_t pos = 0;

	drain(l);
	while ((h = next_record(l, &pos))) {
		r = (void *)h;
		if (h->type == PERF_RECORD_KSYMBOL && r->addr == addr && r->type == type &&
		    r->len && !(r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER))
			return true;
	}
	return false;
}

TEST_F(record, of_a_new_area_comes_with_its_name)
{
	char path[128];
	__u64 addr;
	__u32 len;
	int fd;

	self->attr.ksymbol = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 64));
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 40);
	ASSERT_LE(0, fd);
	if (program_text(fd, &addr, &len))
		EXPECT_TRUE(is_named(&self->listener, addr, PERF_RECORD_KSYMBOL_TYPE_BPF));

	if (access(TRACING "/instances", F_OK))
		SKIP(return, "needs tracefs mounted at " TRACING);
	ASSERT_EQ(0, make_instance("named", 0, path));
	if (!instance_write(path, "set_ftrace_filter", "vfs_*") &&
	    !instance_write(path, "current_tracer", "function")) {
		addr = (unsigned long)bp_ksym("ftrace_trampoline");
		EXPECT_NE(0, addr);
		EXPECT_TRUE(is_named(&self->listener, addr, PERF_RECORD_KSYMBOL_TYPE_OOL));
		instance_write(path, "current_tracer", "nop");
	}
	EXPECT_EQ(0, end_instance(path));
}

/*
 * ------------------------------------------------------------ which events get records
 */

TEST_F(record, goes_to_the_cpu_that_makes_the_change)
{
	struct listener l[2];

	BP_NEED_CPUS(self->cpus, 2);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpus.cpu[i], 16));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		poke_twice(_metadata, self);
		EXPECT_EQ(2, count_at(&l[i], self->addr));
		EXPECT_EQ(0, count_at(&l[!i], self->addr));
		forget(&l[i]);
	}
}

static int poke_in_child(void *arg)
{
	FIXTURE_DATA(record) *self = arg;
	int fd = open_kprobe(self->func, self->offset, false);

	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

TEST_F(record, goes_to_the_task_that_makes_the_change)
{
	struct listener cpu;

	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, -1, 16));
	ASSERT_EQ(0, listen_with(&cpu, &self->attr, -1, self->cpu, 16));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	EXPECT_EQ(2, count_at(&cpu, self->addr));
	EXPECT_EQ(0, bp_in_child(poke_in_child, self));
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	EXPECT_EQ(4, count_at(&cpu, self->addr));
}

TEST_F(record, goes_to_the_task_on_the_cpu_it_is_bound_to)
{
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, self->cpus.cpu[1], 16));
	poke_twice(_metadata, self);
	EXPECT_EQ(0, count_at(&self->listener, self->addr));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
}

TEST_F(record, of_a_child_goes_to_the_inherited_event)
{
	self->attr.inherit = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, self->cpu, 16));
	EXPECT_EQ(0, bp_in_child(poke_in_child, self));
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
}

/* exclude_kernel excludes hits in the kernel, not records of its text. */
TEST_F(record, exclude_bits_do_not_suppress_records)
{
	struct listener l[4];

	for (int i = 0; i < 4; i++) {
		self->attr.exclude_kernel = i & 1;
		self->attr.exclude_user = i >> 1;
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpu, 16));
	}
	poke_twice(_metadata, self);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(2, count_at(&l[i], self->addr));
}

TEST_F(record, comes_only_while_the_event_is_enabled)
{
	self->attr.disabled = 1;
	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	EXPECT_EQ(0, count_at(&self->listener, 0));
	EXPECT_EQ(0, bp_enable(self->listener.fd));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	EXPECT_EQ(0, bp_disable(self->listener.fd));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
}

TEST_F(record, is_made_only_with_text_poke)
{
	ASSERT_EQ(0, listen_here(self));
	self->attr.text_poke = 0;
	self->attr.ksymbol = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 16));
	poke_twice(_metadata, self);
	EXPECT_EQ(0, count_at(&self->listener, 0));
}

/* Events are closed and opened, and each records from its first change on. */
TEST_F(record, each_of_successive_events_records_all_changes)
{
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, listen_here(self));
		poke_twice(_metadata, self);
		EXPECT_EQ(2, count_at(&self->listener, self->addr));
		unlisten(&self->listener);
		/* The static key is switched off with a delay. */
		if (i == 2)
			sleep(2);
	}
}

/*
 * Reads the text until it is equal to @other, or until it differs; returns false if it
 * does not in a minute.
 */
static bool read_until(unsigned long start, char *text, const char *other, size_t size,
		       bool equal)
{
	__u64 begin = bp_now(CLOCK_MONOTONIC);

	do {
		usleep(100000);
		if (!read_kcore(start, text, size))
			return false;
		if (!memcmp(text, other, size) == equal)
			return true;
	} while (bp_has_patience(begin));
	return false;
}

/* Reads the text until it did not change for three seconds. */
static bool read_until_it_stays(unsigned long start, char *text, char *former, size_t size)
{
	for (int i = 0; i < 10; i++) {
		memcpy(former, text, size);
		sleep(3);
		if (!read_kcore(start, text, size))
			return false;
		if (!memcmp(text, former, size))
			return true;
	}
	return false;
}

/*
 * A static key, which is text itself, is on while events record text. It must be off
 * again when all events are closed: requests that were refused must not be counted.
 */
TEST_F(record, leaves_no_changed_text_when_the_last_event_is_closed)
{
	unsigned long start = (unsigned long)bp_ksym("_stext");
	size_t size = (unsigned long)bp_ksym("_etext") - start;
	char *before = malloc(size), *after = malloc(size);
	struct perf_event_attr refused = breakpoint_attr();

	ASSERT_TRUE(before && after);
	refused.bp_len = 33;
	/* The static key stays on for a while: it is off when the text differs. */
	ASSERT_EQ(0, listen_here(self));
	ASSERT_TRUE(read_kcore(start, after, size));
	unlisten(&self->listener);
	ASSERT_TRUE(read_until(start, before, after, size, false));
	/* Earlier tests may have left other changes. */
	ASSERT_TRUE(read_until_it_stays(start, before, after, size));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, listen_here(self));
		EXPECT_EQ(-ESRCH, bp_open(&self->attr, 0x3fffffff, -1));
		/*
		 * One request for a group of another task or CPU, and one that the PMU
		 * refuses
		 */
		EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, -1, self->listener.fd, 0));
		EXPECT_EQ(-EINVAL, bp_open(&refused, -1, self->cpu));
		unlisten(&self->listener);
	}
	EXPECT_TRUE(read_until(start, after, before, size, true));
	for (size_t i = 0, nr = 0; i < size && nr < MAX_REPORTED; i++) {
		if (before[i] != after[i] && ++nr)
			TH_LOG("%s: was %s, is %s", name_of(start + i),
			       hex((void *)&before[i], 1), hex((void *)&after[i], 1));
	}
}

TEST_F(record, breakpoint_event_records_changes)
{
	self->attr = breakpoint_attr();
	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	unlisten(&self->listener);
}

/* A breakpoint of a CPU exists while the CPU is offline, and records again afterwards. */
TEST_F(record, breakpoint_event_records_changes_after_its_cpu_is_back)
{
	BP_NEED_CPUS(self->cpus, 2);
	self->cpu = self->cpus.cpu[self->cpus.nr - 1];
	self->attr = breakpoint_attr();
	ASSERT_EQ(0, listen_here(self));
	if (bp_cpu_online(self->cpu, false))
		SKIP(return, "CPU %d cannot be taken offline", self->cpu);
	self->hotplug_cpu = self->cpu;
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	self->hotplug_cpu = 0;
	ASSERT_EQ(0, bp_pin(self->cpu));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	unlisten(&self->listener);
}

/*
 * If a ring is not read in time, its event gets the number of lost records, and then
 * further records. A second event with a larger ring shows how many records there were.
 */
TEST_F(record, that_does_not_fit_is_counted_as_lost)
{
	struct { __u64 value, lost; } before, after;
	int pokes, all, nr_lost, first;
	struct perf_event_header *h;
	struct listener big;
	long long lost, none;
	struct poke p;

	self->attr.read_format = PERF_FORMAT_LOST;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 1));
	ASSERT_EQ(0, listen_with(&big, &self->attr, -1, self->cpu, 256));
	/* Discard what both events recorded before the second change. */
	forget(&self->listener);
	forget(&big);
	ASSERT_EQ(sizeof(before), read(self->listener.fd, &before, sizeof(before)));
	for (int i = 0; i < 60; i++)
		poke_twice(_metadata, self);

	count_all(&self->listener, &first, &lost, &nr_lost);
	EXPECT_EQ(0, nr_lost);
	EXPECT_LT(0, first);
	count_all(&big, &all, &none, &nr_lost);
	EXPECT_EQ(0, nr_lost);
	EXPECT_LE(120, all);
	EXPECT_GT(all, first);
	ASSERT_EQ(sizeof(after), read(self->listener.fd, &after, sizeof(after)));
	EXPECT_EQ(all - first, after.lost - before.lost);

	forget(&self->listener);
	poke_twice(_metadata, self);
	count_all(&self->listener, &pokes, &lost, &nr_lost);
	EXPECT_EQ(1, nr_lost);
	EXPECT_EQ(all - first, lost);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	h = (void *)self->listener.log;
	EXPECT_EQ(PERF_RECORD_LOST, h->type);
	EXPECT_EQ(bp_id(self->listener.fd), *(__u64 *)(h + 1));
	EXPECT_EQ(sizeof(*h) + 16 + sizeof(struct trailer), h->size);
	count_all(&big, &all, &none, &nr_lost);
	EXPECT_EQ(all, first + lost + pokes);

	/* The first record after the gap is complete. */
	h = (void *)(self->listener.log + h->size);
	EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
	EXPECT_TRUE(decode(h, &p));
}

TEST_HARNESS_MAIN
