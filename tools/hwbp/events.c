// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoint events of perf.
 *
 * To be told of each hit, a thread needs one event a CPU: an event that new
 * threads inherit has no ring buffer of its own unless it is bound to a CPU.
 * The buffer of a CPU belongs to a dummy event of this process, into which the
 * events of all threads write; it outlives any of them.  To count only, one
 * event a thread is enough.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "rings.h"
#include "util.h"

/* Pages of a ring buffer. */
#define RING_PAGES		128
/* With stacks in it. */
#define RING_PAGES_STACKS	1024
#define STACK_BYTES		8192

/* How often a program may start threads while its events are being opened. */
#define MAX_ATTEMPTS		50

#define SAMPLE_TYPE	(PERF_SAMPLE_IP | RINGS_SAMPLE_TYPE | PERF_SAMPLE_REGS_USER)

/* What was lost is counted by the events, too. */
#define RECORD_TYPES	(1ULL << PERF_RECORD_SAMPLE | 1ULL << PERF_RECORD_COMM | \
			 1ULL << PERF_RECORD_FORK | 1ULL << PERF_RECORD_MMAP2)

/* What string instructions point with, and all of enum user_reg. */
#define STRING_REGS_MASK	(1ULL << PERF_REG_X86_SI | 1ULL << PERF_REG_X86_DI)
#define ALL_REGS_MASK		(((1ULL << (PERF_REG_X86_IP + 1)) - 1) | \
				 (0xffULL << PERF_REG_X86_R8))

struct event {
	int fd;
	int cpu;
};

struct events {
	struct perf_event_attr attr;
	struct event *event;
	size_t nr_events;
	size_t events_room;
	struct rings *rings;
};

/* ---- why it is not possible ---- */

static void die_no_right(const struct options *opt, const struct target *t, int err)
{
	long paranoid = read_paranoid();

	if (opt->kernel && paranoid > 1)
		die("no right to watch the kernel: %s or kernel.perf_event_paranoid below 2 (it is %ld)",
		    "-k needs CAP_PERFMON", paranoid);
	if (paranoid > 2)
		die("no right to use breakpoints: %s kernel.perf_event_paranoid of 2 or less (it is %ld)",
		    "that needs CAP_PERFMON or a", paranoid);
	die("no right to trace process %d: it is another user's, or has more rights (%s)",
	    t->pid, strerror(err));
}

static void die_open(const struct options *opt, const struct location *loc,
		     const struct target *t, int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
		if ((int64_t)loc->address < 0)
			die("%s: no right to watch an address of the kernel", loc->text);
		die_no_right(opt, t, err);
		break;
	case ENOSPC:
		die("no free debug register: other breakpoints hold all of them");
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		die("this kernel or machine has no hardware breakpoints");
	case ENOSYS:
		die("this kernel has no perf events");
	case EMFILE:
		die("too many open files: there is one a thread and CPU (see ulimit -n)");
	case EINVAL:
		if ((int64_t)loc->address < 0 && !opt->kernel)
			die("%s is an address of the kernel: that needs -k", loc->text);
		die("%s: the kernel refuses this breakpoint", loc->text);
	default:
		die("%s: cannot open the breakpoint: %s", loc->text, strerror(err));
	}
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

static void fill_sampling(struct perf_event_attr *attr, const struct options *opt)
{
	attr->sample_period = 1;
	attr->wakeup_events = 1;
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

static void fill_attr(struct perf_event_attr *attr, const struct options *opt,
		      const struct location *loc)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->size = sizeof(*attr);
	attr->bp_addr = loc->address;
	attr->bp_type = bp_type(opt->access);
	attr->bp_len = opt->access == ACCESS_X ? sizeof(long) : loc->len;
	attr->inherit = 1;
	attr->exclude_kernel = !opt->kernel;
	attr->exclude_hv = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_LOST;
	if (opt->verb == VERB_WATCH)
		fill_sampling(attr, opt);
}

static struct rings *open_rings(const struct options *opt)
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
		die("cannot open a ring buffer: %s", strerror(err));
	rings_map(rings, opt->callers ? RING_PAGES_STACKS : RING_PAGES);
	return rings;
}

static int open_one(struct events *ev, pid_t tid, int cpu, int ring)
{
	int fd = perf_event_open(&ev->attr, tid, cpu);

	if (fd < 0)
		return errno;
	GROW(ev->event, ev->nr_events, ev->events_room);
	ev->event[ev->nr_events++] = (struct event){ .fd = fd };
	if (ring >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring))
		return errno;
	return 0;
}

static int open_thread(struct events *ev, pid_t tid)
{
	size_t i;
	int err;

	if (!ev->rings)
		return open_one(ev, tid, -1, -1);
	for (i = 0; i < rings_nr(ev->rings); i++) {
		err = open_one(ev, tid, rings_cpu(ev->rings, i), rings_fd(ev->rings, i));
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
	while (ev->nr_events)
		close(ev->event[--ev->nr_events].fd);
}

static int open_all_threads(struct events *ev, const struct tids *tids)
{
	size_t i;
	int err;

	for (i = 0; i < tids->nr; i++) {
		err = open_thread(ev, tids->tid[i]);
		/* It may have come to its end meanwhile. */
		if (err && err != ESRCH)
			return err;
	}
	return 0;
}

/*
 * A thread that starts meanwhile has inherited the events of its creator, or
 * not, or those of some CPUs.  So begin anew until no thread has started between
 * two looks.
 *
 * The events are open enabled.  Were they enabled afterwards, all at once, a
 * thread could start in the middle of that with events that never will be: the
 * kernel guards neither the one nor the other by the same lock once a thread and
 * its creator have exchanged their contexts.
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

struct events *events_open(const struct options *opt, const struct location *loc,
			   const struct target *t)
{
	struct events *ev = xzalloc(sizeof(*ev));
	int err;

	/* One event a thread and CPU needs many descriptors. */
	raise_file_limit();
	fill_attr(&ev->attr, opt, loc);
	if (opt->verb == VERB_WATCH)
		ev->rings = open_rings(opt);
	err = open_threads(ev, t);
	if (err == ESRCH)
		die("process %d has come to its end", t->pid);
	if (err == EAGAIN)
		die("process %d starts threads faster than they can be attached to", t->pid);
	if (err)
		die_open(opt, loc, t, err);
	return ev;
}

void events_disable(struct events *ev)
{
	size_t i;

	for (i = 0; i < ev->nr_events; i++)
		ioctl(ev->event[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

void events_count(struct events *ev, struct counts *counts)
{
	uint64_t value[4];
	size_t i;

	memset(counts, 0, sizeof(*counts));
	for (i = 0; i < ev->nr_events; i++) {
		if (read(ev->event[i].fd, value, sizeof(value)) != sizeof(value))
			continue;
		counts->hits += value[0];
		counts->enabled_ns += value[1];
		counts->running_ns += value[2];
		counts->lost += value[3];
	}
}

void events_close(struct events *ev)
{
	close_events(ev);
	if (ev->rings)
		rings_close(ev->rings);
}

/* ---- to those who want to know ---- */

struct rings *events_rings(const struct events *ev)
{
	return ev->rings;
}

/* Registers, in the order of their bits in @mask; returns what follows them. */
static const uint64_t *parse_regs(const uint64_t *p, uint64_t mask, struct user_regs *user)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		if (!(mask & 1ULL << bit))
			continue;
		if (bit <= PERF_REG_X86_IP)
			user->regs[bit] = *p++;
		else
			user->regs[USER_R8 + bit - PERF_REG_X86_R8] = *p++;
	}
	return p;
}

/* Size that was asked for, that many bytes, and how many of them are good. */
static void parse_stack(const uint64_t *p, const uint64_t *end, struct user_regs *user)
{
	uint64_t size = p < end ? *p++ : 0;

	user->stack = (const uint8_t *)p;
	user->stack_size = size && p + size / 8 < end ? p[size / 8] : 0;
}

static bool parse_user_regs(const struct events *ev, const struct perf_event_header *header,
			    struct user_regs *user)
{
	const uint64_t *p = (const uint64_t *)((const struct sample *)(header + 1) + 1);
	const uint64_t *end = (const uint64_t *)((const char *)header + header->size);
	uint64_t mask = ev->attr.sample_regs_user, abi = *p++;

	memset(user, 0, sizeof(*user));
	if (abi == PERF_SAMPLE_REGS_ABI_NONE || p + __builtin_popcountll(mask) > end)
		return false;
	user->is64 = abi == PERF_SAMPLE_REGS_ABI_64;
	p = parse_regs(p, mask, user);
	if (ev->attr.sample_type & PERF_SAMPLE_STACK_USER)
		parse_stack(p, end, user);
	return true;
}

static void tell_sample(const struct events *ev, const struct perf_event_header *header,
			const struct event_ops *ops, void *arg)
{
	const struct sample *sample = (const void *)(header + 1);
	struct user_regs user;
	struct hit hit = {
		.time = sample->time,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
	};

	hit.kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	if (parse_user_regs(ev, header, &user))
		hit.user = &user;
	ops->hit(arg, &hit);
}

static void tell_comm(const struct perf_event_header *header, const struct event_ops *ops,
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

static void tell_fork(const struct perf_event_header *header, const struct event_ops *ops,
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

static void tell_map(const struct perf_event_header *header, const struct event_ops *ops,
		     void *arg)
{
	const struct {
		struct perf_event_header header;
		uint32_t pid;
		uint32_t tid;
		uint64_t addr;
		uint64_t len;
		uint64_t pgoff;
		/* Device, inode and generation, or a build ID. */
		uint8_t id[24];
		uint32_t prot;
		uint32_t flags;
		char filename[];
	} *r = (const void *)header;

	ops->map(arg, r->pid, r->addr, r->len, r->pgoff, r->filename);
}

/* Who is to be told, with what. */
struct listener {
	const struct events *ev;
	const struct event_ops *ops;
	void *arg;
};

static void tell(void *arg, const struct perf_event_header *header)
{
	const struct listener *listener = arg;

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		tell_sample(listener->ev, header, listener->ops, listener->arg);
		break;
	case PERF_RECORD_COMM:
		tell_comm(header, listener->ops, listener->arg);
		break;
	case PERF_RECORD_FORK:
		tell_fork(header, listener->ops, listener->arg);
		break;
	case PERF_RECORD_MMAP2:
		tell_map(header, listener->ops, listener->arg);
		break;
	}
}

bool events_drain(struct events *ev, uint64_t until, const struct event_ops *ops, void *arg)
{
	struct listener listener = { .ev = ev, .ops = ops, .arg = arg };

	return ev->rings && rings_drain(ev->rings, until, tell, &listener);
}
