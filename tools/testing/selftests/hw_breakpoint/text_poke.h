/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PERF_RECORD_TEXT_POKE: records of changes of the kernel's text.
 *
 * The rule: every change of a byte of kernel text after boot is recorded. The records,
 * in order of their time, transform an old copy of the text into a new one and back
 * again, byte for byte. After the time of a record no CPU executes the old text.
 *
 * An event of a CPU gets the changes that this CPU makes, so the tests open one event
 * for each CPU.
 */
#ifndef TEXT_POKE_H
#define TEXT_POKE_H

#include "bp_test.h"
#include "bp_bpf.h"

/* The tests change thousands of instructions, each with interrupts of all CPUs. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define TRACING		"/sys/kernel/tracing"
#define FEATURES	"/sys/kernel/debug/sched/features"
#define ARM_KPROBES	"/sys/kernel/debug/kprobes/enabled"
#define OPTIMIZE	"/proc/sys/debug/kprobes-optimization"
#define BPF_STATS	"/proc/sys/kernel/bpf_stats_enabled"
#define SCHEDSTATS	"/proc/sys/kernel/sched_schedstats"
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define KPTR_RESTRICT	"/proc/sys/kernel/kptr_restrict"
#define KERNEL_TEXT	BP_PMUS "kernel_text"
#define KGDBTS		"/sys/module/kgdbts/parameters/kgdbts"

/* A tracepoint that only take_copy() enables and disables */
#define BARRIER		TRACING "/events/signal/signal_generate/enable"
#define INT3		0xcc
#define MAX_AREAS	32
#define MAX_REPORTED	20

/*
 * ------------------------------------------------------------------ events that record
 */

/* The trailer of the records of an event that was opened with poke_attr() */
struct trailer {
	__u32 pid, tid;
	__u64 time;
	__u32 cpu, res;
};

struct poke {
	__u64 time;
	__u64 addr;
	__u32 tid;
	__u32 cpu;
	size_t seq;
	unsigned int old_len;
	unsigned int new_len;
	const unsigned char *old;
	const unsigned char *new;
};

/* A listener is an event, and a log of the records from its ring. */
struct listener {
	int cpu;
	int fd;
	struct bp_ring ring;
	char *log;
	size_t len;
	size_t size;
};

struct perf_event_attr poke_attr(void);

/* Makes the event one that records areas of text, in addition to what attr.text_poke selects. */
void add_areas(struct perf_event_attr *attr);

/* Like poke_attr(), for a breakpoint that is never hit */
struct perf_event_attr breakpoint_attr(void);

int listen_with(struct listener *l, struct perf_event_attr *attr, pid_t pid, int cpu, int pages);
void drain(struct listener *l);
void unlisten(struct listener *l);

/* Returns the record at *pos of the log, and advances *pos; NULL at the end. */
struct perf_event_header *next_record(struct listener *l, size_t *pos);

/* A PERF_RECORD_TEXT_POKE without its trailer */
struct text_poke {
	struct perf_event_header header;
	__u64 addr;
	__u16 old_len;
	__u16 new_len;
	unsigned char bytes[];
};

size_t poke_size(const struct text_poke *r);
bool decode_body(const struct perf_event_header *h, struct poke *p);
bool decode(const struct perf_event_header *h, struct poke *p);

/*
 * Checks rules that hold for any record; returns the reason why it is wrong, or NULL.
 * The two lengths may differ only if text begins or ceases to be there.
 */
const char *what_is_wrong(const struct perf_event_header *h, size_t trailer);

/* Returns the number of records in the log for which the function is true. */
int count_if(struct listener *l, bool (*is_it)(const struct poke *p, __u64 addr, __u32 len),
	     __u64 addr, __u32 len);

/* Returns the number of records with exactly this address; of all records if it is 0. */
int count_at(struct listener *l, __u64 addr);

void forget(struct listener *l);

/* --------------------------------------------------------------------- probes */

/* Functions for kprobes; no test depends on a particular one. */
#define NR_PROBED	8

extern const char * const probed[NR_PROBED];

/*
 * Opens a kprobe through perf, which exists as long as the descriptor is open. The
 * caller changes text when it opens and closes the descriptor.
 */
int open_kprobe(const char *func, unsigned long offset, bool ret);

/*
 * Opens a kprobe after the location where ftrace calls, so that it is a software
 * breakpoint. Tries offsets until the kernel accepts one: it refuses those inside an
 * instruction.
 */
int open_inner_kprobe(const char *func, unsigned long *offset);

/* ------------------------------------------------------------------------ BPF */

/* Loads a program that returns result and has nr instructions. */
int load_program(int type, int result, int nr);

/*
 * Loads a program with BTF, so that other programs can be attached to its start: the
 * BTF has one function, named "target", with one pointer as argument.
 */
int load_target(void);

/*
 * Attaches a program before or after the target, as long as the descriptor of its link
 * is open.
 */
int attach_to(int target, int where);

/* Returns address and length of a program's text; false if it was not compiled. */
bool program_text(int fd, __u64 *addr, __u32 *len);

__u64 program_runs(int fd);
int run_program(int fd, int times);

/* -------------------------------------------------------------------- modules */

/*
 * A module with lock prefixes, which a kernel with one CPU replaces while it loads the
 * module, and with indirect calls, some of which may need thunks.
 */
#define TEXT_MODULE		BP_PMU_MODULE
#define TEXT_MODULE_PATH	BP_PMU_MODULE_PATH

__u64 section_of_module(const char *module, const char *section);

/*
 * True if the kernel replaces indirect branches in the lower half of a cache line by
 * branches to thunks, against Indirect Target Selection (ITS). Each module with such
 * branches has pages with thunks of its own.
 */
bool modules_have_thunks(void);

/*
 * Returns the page with the thunks of the module that has this text, or 0. Only the
 * branches in the text tell where it is.
 */
unsigned long find_thunks(unsigned long text);

/* ---------------------------------------------------------------- kernel text */

/*
 * An area of text. A byte is unknown if a record has text that begins or ceases there.
 * A page of a module may be text in one of the two copies only; other areas exist
 * throughout.
 */
struct area {
	const char *name;
	bool of_module;
	bool in_first;
	bool in_last;
	unsigned long start;
	unsigned long end;
	unsigned char *first;
	unsigned char *last;
	unsigned char *now;
	bool *unknown;
	bool has_unknown;
};

bool read_kcore(unsigned long start, void *buf, size_t size);

/* Returns the symbol that contains an address. */
const char *name_of(unsigned long addr);

const char *hex(const unsigned char *p, size_t len);

/*
 * Returns the mapping that contains an address. Sets kernel.kptr_restrict to 1 meanwhile:
 * with 0 the addresses in /proc/vmallocinfo are hashed.
 */
bool find_mapping(unsigned long addr, unsigned long *start, unsigned long *end);

/* Adds up the lost records, and counts the others. */
void count_all(struct listener *l, int *pokes, long long *lost, int *lost_records);

#ifdef TEXT_POKE_FIXTURE

/* A fixture whose tests change one byte: that of an instruction with a kprobe */
FIXTURE(record)
{
	struct perf_event_attr attr;
	struct listener listener;
	struct bp_cpus cpus;
	const char *func;
	unsigned long offset;
	__u64 addr;
	char optimize[16];
	char paranoid[16];
	char kptr_restrict[16];
	int hotplug_cpu;
	int cpu;
};

FIXTURE_SETUP(record)
{
	int fd = -ENOENT;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_read_file(PARANOID, self->paranoid, sizeof(self->paranoid)));
	ASSERT_EQ(0, bp_read_file(KPTR_RESTRICT, self->kptr_restrict,
				  sizeof(self->kptr_restrict)));
	if (!bp_read_file(OPTIMIZE, self->optimize, sizeof(self->optimize)))
		bp_write_file(OPTIMIZE, "0");
	for (unsigned int i = 0; i < ARRAY_SIZE(probed) && fd < 0; i++) {
		self->func = probed[i];
		fd = open_inner_kprobe(self->func, &self->offset);
	}
	if (fd < 0)
		SKIP(return, "needs kprobes");
	close(fd);
	self->addr = (unsigned long)bp_ksym(self->func);
	ASSERT_NE(0, self->addr);
	self->addr += self->offset;
	self->attr = poke_attr();
	self->cpus = bp_online_cpus();
	self->cpu = self->cpus.cpu[0];
	ASSERT_EQ(0, bp_pin(self->cpu));
}

FIXTURE_TEARDOWN(record)
{
	if (self->hotplug_cpu)
		EXPECT_EQ(0, bp_cpu_online(self->hotplug_cpu, true));
	if (self->optimize[0])
		bp_write_file(OPTIMIZE, self->optimize);
	if (self->paranoid[0])
		bp_write_file(PARANOID, self->paranoid);
	if (self->kptr_restrict[0])
		bp_write_file(KPTR_RESTRICT, self->kptr_restrict);
	bp_teardown(_metadata);
}

/* Changes text twice: sets and removes the kprobe. */
static inline void poke_twice(struct __test_metadata *_metadata, FIXTURE_DATA(record) *self)
{
	int fd = open_kprobe(self->func, self->offset, false);

	ASSERT_LE(0, fd);
	close(fd);
}

static inline int listen_here(FIXTURE_DATA(record) *self)
{
	return listen_with(&self->listener, &self->attr, -1, self->cpu, 16);
}

#endif

#endif /* TEXT_POKE_H */
