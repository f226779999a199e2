// SPDX-License-Identifier: GPL-2.0
/*
 * Watch events of tracefs as events of perf, and BPF programs on them.
 *
 * The rule: perf counts and samples the hits of a watch event like those of a
 * tracepoint. A BPF program of type kprobe gets the registers of each hit and decides
 * whether the hit is counted and sampled. The event cannot be removed while perf has it
 * open. Opening it requires the same privilege as sampling a tracepoint, even if it only
 * counts.
 */
#include "bp_test.h"
#include "bp_bpf.h"

#define TRACEFS		"/sys/kernel/tracing/"
#define EVENT		"events/wprobes/perf_test/"

static int read_id(void)
{
	FILE *file = fopen(TRACEFS EVENT "id", "r");
	int id = -1;

	if (file && fscanf(file, "%d", &id) != 1)
		id = -1;
	if (file)
		fclose(file);
	return id;
}

/* A program that reads the first register, and returns @keep whatever the value is. */
static int load_program(int keep)
{
	const struct bpf_insn insn[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, 0, 0),
		MOV(BPF_REG_0, keep),
		EXIT(),
	};

	return bpf_load(BPF_PROG_TYPE_KPROBE, insn, ARRAY_SIZE(insn));
}

/* The timer ticks on any CPU: the event is opened on each. */
FIXTURE(wprobe)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int fd[BP_MAX_CPUS];
};

FIXTURE_SETUP(wprobe)
{
	int i;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_write_file(TRACEFS "dynamic_events",
				   "w:perf_test w@jiffies:8 addr=$addr value=+0($addr):u64"));
	self->attr = (struct perf_event_attr) {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(self->attr),
		.config = read_id(),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW,
	};
	self->cpus = bp_online_cpus();
	for (i = 0; i < self->cpus.nr; i++) {
		self->fd[i] = bp_open(&self->attr, -1, self->cpus.cpu[i]);
		ASSERT_LE(0, self->fd[i]);
	}
}

FIXTURE_TEARDOWN(wprobe)
{
	bp_close(self->fd, self->cpus.nr);
	EXPECT_EQ(0, bp_write_file(TRACEFS "dynamic_events", "-:perf_test"));
	bp_teardown(_metadata);
}

static long long count_all(FIXTURE_DATA(wprobe) *self)
{
	long long sum = 0;
	int i;

	for (i = 0; i < self->cpus.nr; i++)
		sum += bp_count(self->fd[i]);
	return sum;
}

TEST_F(wprobe, hits_are_counted)
{
	long long before = count_all(self);

	usleep(200000);
	EXPECT_LT(before, count_all(self));
}

/* Offset of a field in the raw data of a sample, or 0 */
static unsigned int offset_of(const char *field)
{
	char format[4096], *at;
	unsigned int offset;

	if (bp_read_file(TRACEFS EVENT "format", format, sizeof(format)))
		return 0;
	at = strstr(format, field);
	at = at ? strstr(at, "offset:") : NULL;
	return at && sscanf(at, "offset:%u", &offset) == 1 ? offset : 0;
}

/* The last record of a ring */
static bool last_sample(struct bp_ring *ring, union bp_record *rec)
{
	static union bp_record next;
	bool found = false;

	while (bp_ring_next(ring, &next)) {
		if (next.header.type != PERF_RECORD_SAMPLE)
			continue;
		memcpy(rec, &next, next.header.size);
		found = true;
	}
	return found;
}

static __u64 raw_field(const union bp_record *rec, unsigned int offset)
{
	/* header, u64 ip, u32 size of the raw data */
	const char *raw = rec->bytes + sizeof(rec->header) + sizeof(__u64) + sizeof(__u32);
	__u64 value;

	memcpy(&value, raw + offset, sizeof(value));
	return value;
}

TEST_F(wprobe, a_sample_has_the_instruction_and_the_arguments)
{
	unsigned int ip = offset_of(" __probe_ip;"), addr = offset_of(" addr;");
	unsigned int value = offset_of(" value;");
	__u64 jiffies = (unsigned long)bp_ksym("jiffies");
	static union bp_record rec;
	struct bp_ring ring[BP_MAX_CPUS];
	int i, nr = 0;

	ASSERT_NE(0, ip);
	ASSERT_NE(0, addr);
	ASSERT_NE(0, value);
	for (i = 0; i < self->cpus.nr; i++)
		ASSERT_EQ(0, bp_ring_map(&ring[i], self->fd[i], 8, PROT_READ | PROT_WRITE));
	usleep(200000);
	bp_close(self->fd, self->cpus.nr);

	for (i = 0; i < self->cpus.nr; i++) {
		if (last_sample(&ring[i], &rec)) {
			nr++;
			EXPECT_EQ(jiffies, raw_field(&rec, addr));
			EXPECT_EQ(rec.u64[1], raw_field(&rec, ip));
			EXPECT_LT(jiffies >> 40 << 40, raw_field(&rec, ip));
			EXPECT_NE(0, raw_field(&rec, value));
		}
		bp_ring_unmap(&ring[i]);
	}
	EXPECT_LT(0, nr);
	self->cpus.nr = 0;
}

TEST_F(wprobe, an_event_that_perf_has_open_is_busy)
{
	EXPECT_EQ(-EBUSY, bp_write_file(TRACEFS "dynamic_events", "-:perf_test"));
}

TEST_F(wprobe, a_bpf_program_decides)
{
	int drop = load_program(0), keep = load_program(1);
	long long before;

	ASSERT_LE(0, drop);
	ASSERT_LE(0, keep);
	ASSERT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_SET_BPF, drop));
	before = count_all(self);
	usleep(200000);
	EXPECT_EQ(before, count_all(self));

	/* The program is removed with the perf event to which it was attached. */
	close(self->fd[0]);
	self->fd[0] = bp_open(&self->attr, -1, self->cpus.cpu[0]);
	ASSERT_LE(0, self->fd[0]);
	before = count_all(self);
	usleep(200000);
	EXPECT_LT(before, count_all(self));

	ASSERT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_SET_BPF, keep));
	before = count_all(self);
	usleep(200000);
	EXPECT_LT(before, count_all(self));
	close(drop);
	close(keep);
}

TEST_F(wprobe, a_bpf_program_of_another_type_is_refused)
{
	const struct bpf_insn insn[] = {
		MOV(BPF_REG_0, 0),
		EXIT(),
	};
	int fd = bpf_load(BPF_PROG_TYPE_TRACEPOINT, insn, ARRAY_SIZE(insn));

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, bp_ioctl(self->fd[0], PERF_EVENT_IOC_SET_BPF, fd));
	close(fd);
}

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"

static int try_open(void *arg)
{
	int fd = bp_open(arg, 0, -1);

	return fd < 0 ? -fd : 0;
}

/* The request is refused whether the event is enabled by another user or not. */
static void expect_refused(struct __test_metadata *_metadata)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = read_id(),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	EXPECT_EQ(0, bp_in_child(try_open, &attr));
	EXPECT_EQ(EPERM, bp_as_nobody(try_open, &attr));
}

TEST_F(wprobe, counting_needs_privilege)
{
	char paranoid[16], log[2][4096];

	ASSERT_EQ(0, bp_read_file(PARANOID, paranoid, sizeof(paranoid)));
	ASSERT_EQ(0, bp_write_file(PARANOID, "1"));
	ASSERT_EQ(0, bp_read_file(TRACEFS "error_log", log[0], sizeof(log[0])));
	expect_refused(_metadata);
	bp_close(self->fd, self->cpus.nr);
	self->cpus.nr = 0;
	expect_refused(_metadata);
	ASSERT_EQ(0, bp_read_file(TRACEFS "error_log", log[1], sizeof(log[1])));
	EXPECT_STREQ(log[0], log[1]);
	EXPECT_EQ(0, bp_write_file(PARANOID, paranoid));
}

TEST_HARNESS_MAIN
