// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoint events of perf.
 *
 * If the kernel has process-wide events (format/process), one event is for all threads of
 * the process.  Other kernels, and --children, need one event per thread, with
 * attr.inherit for threads and processes to come.  For watch there is one such event on
 * each CPU: neither kind can have a ring buffer unless it is bound to a CPU.  All events
 * of a CPU write into the buffer of a dummy event of hwbp itself, which exists longer
 * than the watched threads.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>
#include <internal/evsel.h>
#include <internal/xyarray.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <perf/cpumap.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "events.h"
#include "holders.h"
#include "refusal.h"
#include "rings.h"
#include "tasks.h"
#include "util.h"

/* Pages of a ring buffer without and with copies of user stacks */
#define RING_PAGES		128
#define RING_PAGES_STACKS	1024
#define STACK_BYTES		8192

/* Retries if the program starts threads while its events are being opened */
#define MAX_ATTEMPTS		50

#define SAMPLE_TYPE	(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | RINGS_SAMPLE_TYPE | \
			 PERF_SAMPLE_REGS_USER)

/* PERF_RECORD_LOST is not needed: PERF_FORMAT_LOST has the number of lost records. */
#define RECORD_TYPES	(1ULL << PERF_RECORD_SAMPLE | 1ULL << PERF_RECORD_COMM | \
			 1ULL << PERF_RECORD_FORK | 1ULL << PERF_RECORD_MMAP2)

/* The pointers of string instructions, and all of enum user_reg */
#define STRING_REGS_MASK	(1ULL << PERF_REG_X86_SI | 1ULL << PERF_REG_X86_DI)
#define ALL_REGS_MASK		(((1ULL << (PERF_REG_X86_IP + 1)) - 1) | \
				 (0xffULL << PERF_REG_X86_R8))

/**
 * struct event - events of one place and thread, or of one place and process
 * @evsel: the events, one for each CPU of events::cpus
 * @loc: index of the place
 */
struct event {
	struct perf_evsel *evsel;
	size_t loc;
};

/**
 * struct events - all breakpoint events of a process
 * @opt: command line
 * @locs: places
 * @nr_locs: number of @locs
 * @process: events are of the whole process, not of single threads
 * @attr: attributes that the events of all places have in common
 * @values: where the values of the places come from
 * @value_config: bits of attr.config that ask for values, and for changes only
 * @event: open events
 * @nr_events: number of @event
 * @events_room: capacity of @event
 * @failed: index of the place whose event could not be opened
 * @samples: number of hits of each place that were read from the rings
 * @cpus: the CPUs that have rings, or any CPU for stat
 * @rings: ring buffers; NULL for stat
 */
struct events {
	const struct watch_options *opt;
	const struct location *locs;
	size_t nr_locs;
	bool process;
	struct perf_event_attr attr;
	enum values values;
	uint64_t value_config;
	struct event *event;
	size_t nr_events;
	size_t events_room;
	size_t failed;
	uint64_t *samples;
	struct perf_cpu_map *cpus;
	struct rings *rings;
};

/* ---- error messages ---- */

/* The kernel watches a range in aligned pieces of up to 8 bytes, one for each register. */
static unsigned int registers_of(const struct location *loc)
{
	uint64_t address = loc->address, end = address + loc->len, piece;
	unsigned int nr = 0;

	for (; address < end; address += piece, nr++) {
		for (piece = 8; address % piece || piece > end - address; piece /= 2)
			;
	}
	return nr ? nr : 1;
}

static void die_no_register(const struct events *ev, struct symbols *syms,
			    const struct target *t, bool can_share)
{
	const struct location *loc = &ev->locs[ev->failed];
	const struct holders_request req = {
		.pid = t->pid,
		.syms = syms,
		.flexible = ev->opt->flexible,
		.need = registers_of(loc),
	};
	const char *what = "no debug register available", *advice =
		"close one of these; this kernel cannot share registers (no format/flexible)";

	if (req.need > 1)
		what = xasprintf("%u debug registers are needed and not available", req.need);
	if (can_share)
		advice = "close one of these, or use -F to share the registers that are left";
	else if (req.need > 1)
		advice = "close one of these, or watch less: 8 bytes at a multiple of 8 need one";
	else if (caps_config_bit("flexible"))
		advice =
		    "close one of these: guaranteed breakpoints leave no register to flexible ones";
	holders_die(&req, xasprintf("%s: %s in process %d", loc->text, what, t->pid), advice);
}

static void die_open(const struct events *ev, const struct target *t, int err)
{
	const struct location *loc = &ev->locs[ev->failed];

	if (err == EAGAIN)
		die("process %d starts threads faster than hwbp can attach to them", t->pid);
	refusal_die(&(struct refusal){
		.what = REFUSED_WATCH,
		.pid = t->pid,
		.place = loc->text,
		.address = loc->address,
		.registers = registers_of(loc),
		.kernel = ev->opt->kernel,
	}, err);
}

/* ---- opening ---- */

static unsigned int bp_type(enum access access)
{
	switch (access) {
	case ACCESS_W:
		return HW_BREAKPOINT_W;
	case ACCESS_RW:
		return HW_BREAKPOINT_RW;
	default:
		return HW_BREAKPOINT_X;
	}
}

static void fill_sampling(struct perf_event_attr *attr, const struct watch_options *opt)
{
	attr->sample_period = 1;
	attr->sample_type = SAMPLE_TYPE;
	attr->sample_regs_user = STRING_REGS_MASK;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	if (!opt->callers)
		return;
	attr->sample_type |= PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = ALL_REGS_MASK;
	attr->sample_stack_user = STACK_BYTES;
}

static void fill_attr(struct perf_event_attr *attr, const struct watch_options *opt)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->size = sizeof(*attr);
	attr->bp_type = bp_type(opt->access);
	attr->config = opt->flexible ? caps_config_bit("flexible") : 0;
	/* A single thread is watched without those that it starts. */
	attr->inherit = !opt->tid;
	attr->inherit_thread = !opt->children && !opt->tid;
	attr->exclude_kernel = !opt->kernel;
	attr->exclude_hv = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_LOST;
	if (opt->record)
		fill_sampling(attr, opt);
}

/* Wake up when a buffer is half full; but to read a value, at once. */
static void set_wakeup(struct events *ev)
{
	ev->attr.watermark = ev->opt->record && ev->values != VALUES_READ;
	ev->attr.wakeup_events = ev->opt->record && ev->values == VALUES_READ;
}

/*
 * Let the kernel record the values of the places and leave out accesses that change nothing,
 * if it can. A place may be too long for that.
 */
static void ask_for_values(struct events *ev)
{
	uint64_t value = caps_config_bit("value"), changed = caps_config_bit("changed");
	size_t i;

	if (ev->opt->access == ACCESS_X)
		return;
	for (i = 0; i < ev->nr_locs; i++) {
		if (ev->locs[i].len <= HW_BREAKPOINT_VALUE_MAX)
			continue;
		if (ev->opt->changed)
			die("%s is longer than the %u bytes whose changes can be found",
			    ev->locs[i].text, HW_BREAKPOINT_VALUE_MAX);
		return;
	}
	if (ev->opt->record)
		ev->values = value ? VALUES_KERNEL : VALUES_READ;
	ev->value_config = (ev->opt->record ? value : 0) | (ev->opt->changed ? changed : 0);
	ev->attr.config |= ev->value_config;
	if (ev->values == VALUES_KERNEL)
		ev->attr.sample_type |= PERF_SAMPLE_RAW;
}

/* Returns true if the events can be opened without values, which the kernel has refused. */
static bool forgo_values(struct events *ev, int err)
{
	if (ev->values != VALUES_KERNEL ||
	    (err != EACCES && err != EPERM && err != EINVAL && err != EOPNOTSUPP))
		return false;
	ev->attr.config &= ~ev->value_config;
	ev->value_config = 0;
	ev->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	ev->values = VALUES_READ;
	return true;
}

static struct rings *open_rings(const struct watch_options *opt)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.wakeup_events = 1,
		.exclude_kernel = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = 1,
	};
	struct rings *rings = rings_new(RECORD_TYPES);
	int err = rings_open(rings, &attr, 0);

	if (err)
		refusal_die(&(struct refusal){ .what = REFUSED_RING }, err);
	rings_map(rings, opt->callers ? RING_PAGES_STACKS : RING_PAGES);
	return rings;
}

/* Let the event on each CPU write into the ring of that CPU. */
static int redirect(const struct events *ev, struct perf_evsel *evsel)
{
	size_t i;

	for (i = 0; i < rings_nr(ev->rings); i++) {
		int fd = *(int *)xyarray__entry(evsel->fd, i, 0);

		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings_fds(ev->rings)[i]))
			return errno;
	}
	return 0;
}

/* Open the events of one place, for a thread or with @config for its process. */
static int open_place(struct events *ev, size_t loc, pid_t tid, uint64_t config)
{
	struct perf_thread_map *thread = perf_thread_map__new_dummy();
	struct perf_event_attr attr = ev->attr;
	struct perf_evsel *evsel;
	int err;

	if (config) {
		attr.config |= config;
		attr.inherit = 0;
		attr.inherit_thread = 0;
	}
	attr.bp_addr = ev->locs[loc].address;
	attr.bp_len = ev->opt->access == ACCESS_X ? sizeof(long) : ev->locs[loc].len;
	evsel = perf_evsel__new(&attr);
	if (!thread || !evsel)
		die("out of memory");
	perf_thread_map__set_pid(thread, 0, tid);
	err = -perf_evsel__open(evsel, ev->cpus, thread);
	perf_thread_map__put(thread);
	if (err) {
		perf_evsel__delete(evsel);
		ev->failed = loc;
		return err;
	}
	GROW(ev->event, ev->nr_events, ev->events_room);
	ev->event[ev->nr_events++] = (struct event){ .evsel = evsel, .loc = loc };
	return ev->rings ? redirect(ev, evsel) : 0;
}

static int open_all_places(struct events *ev, pid_t tid, uint64_t config)
{
	size_t i;
	int err;

	for (i = 0; i < ev->nr_locs; i++) {
		err = open_place(ev, i, tid, config);
		if (err)
			return err;
	}
	return 0;
}

static bool contains(const struct tids *tids, pid_t tid)
{
	size_t i;

	for (i = 0; i < tids->nr; i++) {
		if (tids->tid[i] == tid)
			return true;
	}
	return false;
}

static bool is_subset(const struct tids *inner, const struct tids *outer)
{
	size_t i;

	for (i = 0; i < inner->nr; i++) {
		if (!contains(outer, inner->tid[i]))
			return false;
	}
	return true;
}

static void close_events(struct events *ev)
{
	while (ev->nr_events) {
		struct perf_evsel *evsel = ev->event[--ev->nr_events].evsel;

		perf_evsel__close(evsel);
		perf_evsel__delete(evsel);
	}
}

static int open_all_threads(struct events *ev, const struct tids *tids)
{
	size_t i;
	int err;

	for (i = 0; i < tids->nr; i++) {
		err = open_all_places(ev, tids->tid[i], 0);
		/* Skip a thread that has exited in the meantime. */
		if (err && err != ESRCH)
			return err;
	}
	return 0;
}

/*
 * A thread that starts while the events of its creator are being opened may inherit
 * none, some or all of them.  If the list of threads has grown meanwhile, close all
 * events and start over.
 *
 * The events are opened enabled.  If they were opened disabled and then enabled, a
 * thread that starts at that time could inherit events that stay disabled: once perf
 * has swapped the contexts of parent and child, no single lock serializes the enabling
 * of an event and its children with their inheritance.
 */
static int open_threads(struct events *ev, const struct target *t)
{
	struct tids before = { 0 }, after = { 0 };
	int attempt, err;

	for (attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		target_threads(t, &before);
		if (!before.nr)
			return ESRCH;
		err = open_all_threads(ev, &before);
		target_threads(t, &after);
		if (err)
			break;
		if (is_subset(&after, &before)) {
			err = ev->nr_events ? 0 : ESRCH;
			break;
		}
		close_events(ev);
		if (ev->rings)
			rings_discard(ev->rings);
		err = EAGAIN;
	}
	free(before.tid);
	free(after.tid);
	return err;
}

/* Name the process by a thread that lives, which may exit before the event is open. */
static int open_process(struct events *ev, const struct target *t, uint64_t config)
{
	int attempt, err = ESRCH;

	for (attempt = 0; attempt < MAX_ATTEMPTS && err == ESRCH; attempt++) {
		close_events(ev);
		err = open_all_places(ev, tasks_live_thread(t->pid), config);
	}
	return err;
}

/*
 * Open one event per place for the whole process where the kernel has such events, else
 * one per place and thread. --children requires events that child processes inherit, which
 * only events of threads are. The kernel may refuse events of a process for what hwbp asks
 * in addition: then events of threads are refused, too, or work.
 */
static int open_target(struct events *ev, const struct target *t)
{
	uint64_t process = caps_config_bit("process");
	int err;

	if (!process || ev->opt->children || t->tid)
		return open_threads(ev, t);
	err = open_process(ev, t, process);
	if (err != EINVAL && err != EOPNOTSUPP) {
		ev->process = true;
		return err;
	}
	close_events(ev);
	if (ev->rings)
		rings_discard(ev->rings);
	return open_threads(ev, t);
}

/*
 * Guaranteed events have failed with ENOSPC: try flexible ones. Open guaranteed ones again
 * until the same one fails, because they hold registers, too.
 */
static bool can_share(struct events *ev, const struct target *t)
{
	uint64_t flexible = ev->opt->flexible ? 0 : caps_config_bit("flexible");
	int err;

	if (!flexible)
		return false;
	close_events(ev);
	ev->attr.config |= flexible;
	err = open_target(ev, t);
	close_events(ev);
	ev->attr.config &= ~flexible;
	open_target(ev, t);
	return !err;
}

struct events *events_open(const struct watch_options *opt, const struct location *locs,
			   size_t nr, struct symbols *syms, const struct target *t)
{
	struct events *ev = xzalloc(sizeof(*ev));
	int err;

	ev->opt = opt;
	ev->locs = locs;
	ev->nr_locs = nr;
	ev->samples = xzalloc(nr * sizeof(*ev->samples));
	/* An event per place, thread and CPU needs many file descriptors. */
	raise_file_limit();
	fill_attr(&ev->attr, opt);
	if (opt->record)
		ev->rings = open_rings(opt);
	ev->cpus = ev->rings ? rings_cpus(ev->rings) : perf_cpu_map__new_any_cpu();
	ask_for_values(ev);
	set_wakeup(ev);
	err = open_target(ev, t);
	if (forgo_values(ev, err)) {
		set_wakeup(ev);
		close_events(ev);
		rings_discard(ev->rings);
		err = open_target(ev, t);
	}
	if (err == ENOSPC)
		die_no_register(ev, syms, t, can_share(ev, t));
	if (err)
		die_open(ev, t, err);
	return ev;
}

void events_disable(struct events *ev)
{
	size_t i;

	for (i = 0; i < ev->nr_events; i++)
		perf_evsel__disable(ev->event[i].evsel);
}

/* Number of accesses that the event of a CPU has left out because they changed nothing */
static uint64_t count_silent(const struct events *ev, const struct event *event, int cpu)
{
	int fd = *(int *)xyarray__entry(event->evsel->fd, cpu, 0);
	__u64 nr;

	if (!ev->opt->changed || !ev->value_config || ioctl(fd, HW_BREAKPOINT_IOC_SILENT, &nr))
		return 0;
	return nr;
}

static void count_event(const struct events *ev, const struct event *event,
			struct counts *counts)
{
	int cpu, nr_cpus = perf_cpu_map__nr(ev->cpus);
	struct perf_counts_values values;
	int divisor;

	/*
	 * A thread's event of one CPU is enabled while the thread runs on any CPU, a
	 * process's event of one CPU while a thread of the process runs there.
	 */
	divisor = ev->process ? 1 : nr_cpus;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		if (perf_evsel__read(event->evsel, cpu, 0, &values))
			continue;
		counts->hits += values.val;
		counts->enabled_ns += values.ena / divisor;
		counts->running_ns += values.run;
		counts->lost += values.lost;
		counts->silent += count_silent(ev, event, cpu);
	}
}

/*
 * The kernel counts all records that found no room, which include those of threads and
 * libraries. A hit before the event had a ring is not in the ring, either.
 */
static void count_lost(struct counts *counts, uint64_t samples)
{
	uint64_t missing = counts->hits > samples ? counts->hits - samples : 0;

	if (counts->lost > missing)
		counts->lost = missing;
}

void events_count(struct events *ev, struct counts *counts)
{
	size_t i;

	memset(counts, 0, ev->nr_locs * sizeof(*counts));
	for (i = 0; i < ev->nr_events; i++)
		count_event(ev, &ev->event[i], &counts[ev->event[i].loc]);
	for (i = 0; i < ev->nr_locs; i++)
		count_lost(&counts[i], ev->samples[i]);
}

void events_note_cpus(const struct events *ev)
{
	struct perf_cpu_map *online = perf_cpu_map__new_online_cpus();
	struct perf_cpu cpu;
	int i;

	perf_cpu_map__for_each_cpu(cpu, i, online) {
		if (ev->rings && !perf_cpu_map__has(ev->cpus, cpu))
			note("CPU %d was added during the watch: hits on it are not shown",
			     cpu.cpu);
	}
	perf_cpu_map__put(online);
}

void events_close(struct events *ev)
{
	close_events(ev);
	if (ev->rings)
		rings_close(ev->rings);
}

/* ---- records ---- */

enum values events_values(const struct events *ev)
{
	return ev->values;
}

struct rings *events_rings(const struct events *ev)
{
	return ev->rings;
}

/* Parse the registers in @mask, ordered by bit number. Returns the end of them. */
static const uint64_t *parse_regs(const uint64_t *p, uint64_t mask, struct user_regs *user)
{
	unsigned int bit;

	for (; mask; mask &= mask - 1) {
		bit = __builtin_ctzll(mask);
		if (bit <= PERF_REG_X86_IP)
			user->regs[bit] = *p++;
		else
			user->regs[USER_R8 + bit - PERF_REG_X86_R8] = *p++;
	}
	return p;
}

/* Parse a stack copy: requested size, that many bytes, number of valid bytes. */
static void parse_stack(const uint64_t *p, const uint64_t *end, struct user_regs *user)
{
	uint64_t size = p < end ? *p++ : 0;

	user->stack = (const uint8_t *)p;
	user->stack_size = size && p + size / 8 < end ? p[size / 8] : 0;
}

/* Parse the raw data: its size, and the values. Returns the end of it. */
static const uint64_t *parse_values(const uint64_t *p, const uint64_t *end, struct hit *hit,
				    unsigned int len)
{
	const uint32_t *size = (const uint32_t *)p;
	const struct hw_breakpoint_values *values = (const void *)(size + 1);
	const uint8_t *bytes;

	if (p >= end || p + (*size + sizeof(*size)) / sizeof(*p) > end || *size < sizeof(*values))
		return end;
	bytes = values->bytes + values->offset;
	if (values->len == len && bytes + 2 * len <= (const uint8_t *)(size + 1) + *size) {
		if (values->flags & HW_BREAKPOINT_BEFORE_KNOWN)
			hit->before = bytes;
		if (values->flags & HW_BREAKPOINT_AFTER_KNOWN)
			hit->after = bytes + len;
	}
	return p + (*size + sizeof(*size)) / sizeof(*p);
}

static bool parse_user_regs(const struct events *ev, const uint64_t *p, const uint64_t *end,
			    struct user_regs *user)
{
	uint64_t mask = ev->attr.sample_regs_user, abi = p < end ? *p++ : PERF_SAMPLE_REGS_ABI_NONE;

	memset(user, 0, sizeof(*user));
	if (abi == PERF_SAMPLE_REGS_ABI_NONE || p + __builtin_popcountll(mask) > end)
		return false;
	user->is64 = abi == PERF_SAMPLE_REGS_ABI_64;
	p = parse_regs(p, mask, user);
	if (ev->attr.sample_type & PERF_SAMPLE_STACK_USER)
		parse_stack(p, end, user);
	return true;
}

static size_t find_loc(const struct events *ev, uint64_t address)
{
	size_t i;

	for (i = 0; i < ev->nr_locs; i++) {
		if (ev->locs[i].address == address)
			return i;
	}
	return 0;
}

static void handle_sample(struct events *ev, const struct perf_event_header *header,
			  const struct event_ops *ops, void *arg)
{
	const struct sample *sample = (const void *)(header + 1);
	const uint64_t *p = (const uint64_t *)(sample + 1);
	const uint64_t *end = (const uint64_t *)((const char *)header + header->size);
	struct user_regs user;
	struct hit hit = {
		.time = sample->time,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.loc = find_loc(ev, sample->addr),
	};

	ev->samples[hit.loc]++;
	hit.kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	if (ev->values == VALUES_KERNEL)
		p = parse_values(p, end, &hit, ev->locs[hit.loc].len);
	if (parse_user_regs(ev, p, end, &user))
		hit.user = &user;
	ops->hit(arg, &hit);
}

static void handle_comm(const struct perf_event_header *header, const struct event_ops *ops,
			void *arg)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid;
		uint32_t tid;
		char comm[];
	} *r = (const void *)header;

	ops->comm(arg, r->pid, r->tid, r->comm, header->misc & PERF_RECORD_MISC_COMM_EXEC);
}

static void handle_fork(const struct perf_event_header *header, const struct event_ops *ops,
			void *arg)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid;
		uint32_t ppid;
		uint32_t tid;
		uint32_t ptid;
	} *r = (const void *)header;

	ops->fork(arg, r->pid, r->ppid, r->tid, r->ptid);
}

static void handle_map(const struct perf_event_header *header, const struct event_ops *ops,
		       void *arg)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid;
		uint32_t tid;
		uint64_t addr;
		uint64_t len;
		uint64_t pgoff;
		/* Device, inode and its generation, or a build ID */
		uint8_t id[24];
		uint32_t prot;
		uint32_t flags;
		char filename[];
	} *r = (const void *)header;

	ops->map(arg, r->pid, r->addr, r->len, r->pgoff, r->filename);
}

/* Argument of handle_record(), and the number of records that it got */
struct consumer {
	struct events *ev;
	const struct event_ops *ops;
	void *arg;
	size_t nr;
};

static void handle_record(void *arg, const struct perf_event_header *header)
{
	struct consumer *consumer = arg;

	consumer->nr++;
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		handle_sample(consumer->ev, header, consumer->ops, consumer->arg);
		break;
	case PERF_RECORD_COMM:
		handle_comm(header, consumer->ops, consumer->arg);
		break;
	case PERF_RECORD_FORK:
		handle_fork(header, consumer->ops, consumer->arg);
		break;
	case PERF_RECORD_MMAP2:
		handle_map(header, consumer->ops, consumer->arg);
		break;
	}
}

bool events_drain(struct events *ev, uint64_t until, const struct event_ops *ops, void *arg)
{
	struct consumer consumer = { .ev = ev, .ops = ops, .arg = arg };

	return ev->rings && (rings_drain(ev->rings, until, handle_record, &consumer) ||
			     consumer.nr);
}
