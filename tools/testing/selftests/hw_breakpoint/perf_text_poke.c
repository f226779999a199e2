// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: what is told of changes to the kernel's text.
 *
 * The rule: every change of a byte of kernel text after boot is in a record, and
 * the records, put in order by their time, take an old copy of the text to a new
 * one and back again, byte for byte. Each tells the bytes that it replaces, so
 * not only the ends are compared: what a record says was there must have been
 * there. And after the time of a record nothing executes the old text.
 *
 * A CPU's event gets the changes which that CPU makes, hence one for each CPU. A
 * copy of the text is good only if nobody was changing it: see take_copy().
 */
#include <dirent.h>
#include <elf.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <sys/file.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "bp_test.h"

/* Thousands of instructions are changed, each with interrupts to all CPUs. */
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
#define KGDBTS		"/sys/module/kgdbts/parameters/kgdbts"

/* A tracepoint that is switched by take_copy() alone */
#define BARRIER		TRACING "/events/signal/signal_generate/enable"

#define INT3		0xcc
#define MAX_AREAS	8
#define MAX_REPORTED	20

/* ------------------------------------------------------------------ listeners */

/* The trailer of the records of a listener made by poke_attr() */
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

/* What comes out of the ring is kept in the log until it is asked for. */
struct listener {
	int cpu;
	int fd;
	struct bp_ring ring;
	char *log;
	size_t len;
	size_t size;
};

static struct perf_event_attr poke_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.text_poke = 1,
	};

	return attr;
}

/* The same for a breakpoint that is never hit */
static struct perf_event_attr breakpoint_attr(void)
{
	static __u64 quiet __aligned(8);
	struct perf_event_attr attr = poke_attr();

	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (unsigned long)&quiet;
	attr.bp_len = 8;
	attr.exclude_kernel = 1;
	return attr;
}

static int listen_with(struct listener *l, struct perf_event_attr *attr, pid_t pid, int cpu,
		       int pages)
{
	int err;

	memset(l, 0, sizeof(*l));
	l->cpu = cpu;
	l->fd = bp_open(attr, pid, cpu);
	if (l->fd < 0)
		return l->fd;
	err = bp_ring_map(&l->ring, l->fd, pages, PROT_READ | PROT_WRITE);
	if (err)
		close(l->fd);
	return err;
}

static void drain(struct listener *l)
{
	char *data = (char *)l->ring.page + sysconf(_SC_PAGESIZE);
	__u64 head = __atomic_load_n(&l->ring.page->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = l->ring.page->data_tail;

	if (l->len + (head - tail) > l->size) {
		l->size = 2 * (l->len + (head - tail)) + 65536;
		l->log = realloc(l->log, l->size);
		if (!l->log)
			abort();
	}
	while (tail != head) {
		size_t at = tail % l->ring.data_size, len = head - tail;

		if (len > l->ring.data_size - at)
			len = l->ring.data_size - at;
		memcpy(l->log + l->len, data + at, len);
		l->len += len;
		tail += len;
	}
	__atomic_store_n(&l->ring.page->data_tail, tail, __ATOMIC_RELEASE);
}

static void unlisten(struct listener *l)
{
	bp_ring_unmap(&l->ring);
	close(l->fd);
	free(l->log);
	l->log = NULL;
}

/* The record at *pos of the log, which moves behind it; NULL at the end. */
static struct perf_event_header *next_record(struct listener *l, size_t *pos)
{
	struct perf_event_header *h = (void *)(l->log + *pos);

	if (*pos >= l->len)
		return NULL;
	*pos += h->size;
	return h;
}

static size_t align8(size_t n)
{
	return (n + 7) & ~7UL;
}

/* The part of a record that the kind says, without its trailer */
struct text_poke {
	struct perf_event_header header;
	__u64 addr;
	__u16 old_len;
	__u16 new_len;
	unsigned char bytes[];
};

static size_t poke_size(const struct text_poke *r)
{
	return align8(offsetof(struct text_poke, bytes) + r->old_len + r->new_len);
}

static bool decode_body(const struct perf_event_header *h, struct poke *p)
{
	const struct text_poke *r = (const void *)h;

	if (h->type != PERF_RECORD_TEXT_POKE)
		return false;
	memset(p, 0, sizeof(*p));
	p->addr = r->addr;
	p->old_len = r->old_len;
	p->new_len = r->new_len;
	p->old = r->bytes;
	p->new = r->bytes + r->old_len;
	return true;
}

static bool decode(const struct perf_event_header *h, struct poke *p)
{
	const struct trailer *t;

	if (!decode_body(h, p))
		return false;
	t = (const void *)((const char *)h + h->size - sizeof(*t));
	p->time = t->time;
	p->tid = t->tid;
	p->cpu = t->cpu;
	return true;
}

/*
 * What holds for any record: a reason why this one is wrong, or NULL. Both sizes
 * differ only where text begins to be text, or ceases to be.
 */
static const char *what_is_wrong(const struct perf_event_header *h, size_t trailer)
{
	const struct text_poke *r = (const void *)h;
	size_t used = offsetof(struct text_poke, bytes) + r->old_len + r->new_len;

	if (h->size % 8)
		return "size is no multiple of 8";
	if (h->misc != PERF_RECORD_MISC_KERNEL)
		return "misc is not that of the kernel";
	if (h->size != poke_size(r) + trailer)
		return "size does not fit the lengths";
	if (!r->old_len && !r->new_len)
		return "tells of no byte";
	if (r->old_len && r->new_len && r->old_len != r->new_len)
		return "lengths differ";
	if (r->old_len > 4096 || r->new_len > 4096)
		return "longer than a page";
	if ((__s64)r->addr >= 0)
		return "address is not the kernel's";
	for (; used < poke_size(r); used++) {
		if (((const char *)h)[used])
			return "padding is not zero";
	}
	return NULL;
}

/* Pokes at exactly this address; all of the log if it is 0 */
static int count_at(struct listener *l, __u64 addr)
{
	struct perf_event_header *h;
	struct poke p;
	size_t pos = 0;
	int nr = 0;

	drain(l);
	while ((h = next_record(l, &pos)))
		nr += decode_body(h, &p) && (!addr || p.addr == addr);
	return nr;
}

static void forget(struct listener *l)
{
	drain(l);
	l->len = 0;
}

/* --------------------------------------------------------------------- probes */

/* Functions to put a probe on: nothing depends on one of them in particular. */
static const char * const probed[] = {
	"__x64_sys_getppid", "__x64_sys_getpgid", "__x64_sys_getsid", "vfs_statx",
	"do_sys_openat2", "hrtimer_nanosleep", "vfs_read", "vfs_write",
};

/*
 * A probe of perf's own, gone with its descriptor. The text is changed when it
 * is opened and when it is closed, by the caller.
 */
static int open_kprobe(const char *func, unsigned long offset, bool ret)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = ret,
		.kprobe_func = (unsigned long)func,
		.probe_offset = offset,
	};
	char type[16];

	if (bp_read_file("/sys/bus/event_source/devices/kprobe/type", type, sizeof(type)))
		return -ENOENT;
	attr.type = atoi(type);
	return bp_open(&attr, 0, -1);
}

/*
 * Behind the place where ftrace calls, so that it is a breakpoint. Where the
 * next instruction begins the kernel knows: it refuses the rest.
 */
static int open_inner_kprobe(const char *func, unsigned long *offset)
{
	int fd = -ENOENT;

	for (*offset = 5; *offset < 24; ++*offset) {
		fd = open_kprobe(func, *offset, false);
		if (fd >= 0)
			break;
	}
	return fd;
}

/* ------------------------------------------------------------------------ BPF */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV(reg, value)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define EXIT()		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int sys_bpf(int cmd, union bpf_attr *attr)
{
	long fd = syscall(__NR_bpf, cmd, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

static int load_insns(int type, const struct bpf_insn *insn, int nr)
{
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (unsigned long)insn,
		.insn_cnt = nr,
		.license = (unsigned long)"GPL",
	};

	return sys_bpf(BPF_PROG_LOAD, &attr);
}

/* Returns result, and is as long as nr instructions make it. */
static int load_program(int type, int result, int nr)
{
	struct bpf_insn *insn = calloc(nr, sizeof(*insn));
	int fd;

	for (int i = 0; i < nr - 1; i++)
		insn[i] = MOV(BPF_REG_0, result);
	insn[nr - 1] = EXIT();
	fd = load_insns(type, insn, nr);
	free(insn);
	return fd;
}

/*
 * What a program must say of itself so that others can be called where it
 * begins: that it is a function, the only one, named "target", of one pointer.
 */
static int load_target(void)
{
	static const char strings[] = "\0int\0target\0ctx";
	struct {
		struct btf_header header;
		struct btf_type integer;
		__u32 encoding;
		struct btf_type pointer;
		struct btf_type proto;
		struct btf_param param;
		struct btf_type func;
		char strings[sizeof(strings)];
	} __attribute__((packed)) btf = {
		.header.magic = BTF_MAGIC,
		.header.version = BTF_VERSION,
		.header.hdr_len = sizeof(btf.header),
		.header.type_len = offsetof(typeof(btf), strings) - sizeof(btf.header),
		.header.str_off = offsetof(typeof(btf), strings) - sizeof(btf.header),
		.header.str_len = sizeof(strings),
		.integer = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.encoding = BTF_INT_SIGNED << 24 | 32,
		.pointer = { .info = BTF_KIND_PTR << 24 },
		.proto = { .info = BTF_KIND_FUNC_PROTO << 24 | 1, .type = 1 },
		.param = { .name_off = 12, .type = 2 },
		.func = { .name_off = 5, .info = BTF_KIND_FUNC << 24, .type = 3 },
	};
	const struct bpf_func_info func_info = { .type_id = 4 };
	const struct bpf_insn insn[] = { MOV(BPF_REG_0, 0), EXIT() };
	union bpf_attr attr = {
		.btf = (unsigned long)&btf,
		.btf_size = sizeof(btf),
	};
	int fd;

	memcpy(btf.strings, strings, sizeof(strings));
	fd = sys_bpf(BPF_BTF_LOAD, &attr);
	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (unsigned long)insn;
	attr.insn_cnt = ARRAY_SIZE(insn);
	attr.license = (unsigned long)"GPL";
	attr.prog_btf_fd = fd;
	attr.func_info_rec_size = sizeof(func_info);
	attr.func_info = (unsigned long)&func_info;
	attr.func_info_cnt = 1;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

/* Runs before or after the target, as long as the descriptor of its link is open. */
static int attach_to(int target, int where)
{
	const struct bpf_insn insn[] = { MOV(BPF_REG_0, 0), EXIT() };
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = where,
		.insns = (unsigned long)insn,
		.insn_cnt = ARRAY_SIZE(insn),
		.license = (unsigned long)"GPL",
		.attach_btf_id = 4,
		.attach_prog_fd = target,
	};
	int fd = sys_bpf(BPF_PROG_LOAD, &attr), link;

	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = fd;
	link = sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	close(fd);
	return link;
}

/* Where the program was put, and how long it is; false if it was not compiled */
static bool program_text(int fd, __u64 *addr, __u32 *len)
{
	struct bpf_prog_info info = {
		.jited_ksyms = (unsigned long)addr,
		.nr_jited_ksyms = 1,
		.jited_func_lens = (unsigned long)len,
		.nr_jited_func_lens = 1,
	};
	union bpf_attr attr = {
		.info.bpf_fd = fd,
		.info.info_len = sizeof(info),
		.info.info = (unsigned long)&info,
	};

	*addr = 0;
	return !sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) && info.nr_jited_ksyms == 1 && *addr;
}

static __u64 program_runs(int fd)
{
	struct bpf_prog_info info = { };
	union bpf_attr attr = {
		.info.bpf_fd = fd,
		.info.info_len = sizeof(info),
		.info.info = (unsigned long)&info,
	};

	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) ? -1 : info.run_cnt;
}

static int run_program(int fd, int times)
{
	static char packet[64];
	union bpf_attr attr = {
		.test.prog_fd = fd,
		.test.data_in = (unsigned long)packet,
		.test.data_size_in = sizeof(packet),
		.test.repeat = times,
	};

	return sys_bpf(BPF_PROG_TEST_RUN, &attr);
}

/* ------------------------------------------------------------------ provoking */

/*
 * Each of these changes kernel text in its own way, and takes back what it did.
 * They run in a process of their own that is bound to the CPU, several of them
 * at a time, so what they use bears the CPU's number or may be shared.
 */
typedef int (*provoke_fn)(int cpu, int rounds);

#define ABSENT(fmt, ...)						\
	({								\
		ksft_print_msg("absent: " fmt "\n", ##__VA_ARGS__);	\
		KSFT_SKIP;						\
	})

#define MUST(what)							\
	do {								\
		long err_ = (what);					\
									\
		if (err_ < 0) {						\
			ksft_print_msg("%s:%d: %s: %ld\n", __func__, __LINE__, #what, err_); \
			return KSFT_FAIL;				\
		}							\
	} while (0)

/* An instance of the tracer: its own filter, its own trampoline, its own events */
static int make_instance(const char *name, int cpu, char path[128])
{
	char file[192];

	snprintf(path, 128, TRACING "/instances/hwbp_%s_%d", name, cpu);
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	snprintf(file, sizeof(file), "%s/tracing_on", path);
	return bp_write_file(file, "0");
}

static int instance_write(const char *path, const char *name, const char *text)
{
	char file[192];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	return bp_write_file(file, text);
}

/* It can be busy for a moment longer. */
static int end_instance(const char *path)
{
	for (int i = 0; i < 100; i++) {
		if (!rmdir(path))
			return 0;
		usleep(20000);
	}
	return -errno;
}

/* Those of children that did not come to their end */
static void remove_instances(void)
{
	DIR *dir = opendir(TRACING "/instances");
	struct dirent *entry;
	char path[512];

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "hwbp_", 5))
			continue;
		snprintf(path, sizeof(path), TRACING "/instances/%s", entry->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

/* One at a time: the kernel has no lock there, and warns of two that meet. */
static void switch_schedstats(void)
{
	int lock = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (lock < 0 || flock(lock, LOCK_EX))
		return;
	bp_write_file(SCHEDSTATS, "1");
	bp_write_file(SCHEDSTATS, "0");
	close(lock);
}

/* Switches that are branches in the code: by sysctl, by debugfs, by perf */
static int provoke_static_keys(int cpu, int rounds)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.exclude_kernel = 1,
	};

	if (access(BPF_STATS, W_OK))
		return ABSENT("%s", BPF_STATS);
	for (int i = 0; i < rounds; i++) {
		bp_write_file(BPF_STATS, "1");
		bp_write_file(BPF_STATS, "0");
		if (!access(SCHEDSTATS, W_OK))
			switch_schedstats();
		if (!access(FEATURES, W_OK)) {
			bp_write_file(FEATURES, "NO_NONTASK_CAPACITY");
			bp_write_file(FEATURES, "NONTASK_CAPACITY");
		}
		for (attr.config = 0; attr.config < PERF_COUNT_SW_MAX; attr.config++) {
			int fd = bp_open(&attr, 0, -1);

			if (fd >= 0)
				close(fd);
		}
	}
	return 0;
}

static int open_tracepoint(const char *event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
	};
	char path[128], id[16];

	snprintf(path, sizeof(path), TRACING "/events/%s/id", event);
	if (bp_read_file(path, id, sizeof(id)))
		return -ENOENT;
	attr.config = atoi(id);
	return bp_open(&attr, 0, -1);
}

/*
 * A tracepoint is a branch and a call: with one follower the call goes there,
 * with two it goes to a loop over them.
 */
static int provoke_static_calls(int cpu, int rounds)
{
	static const char * const event[] = {
		"sched/sched_switch", "task/task_rename", "irq/softirq_entry",
	};
	char path[128], file[64];

	MUST(make_instance("event", cpu, path));
	for (int i = 0; i < rounds; i++) {
		for (unsigned int e = 0; e < ARRAY_SIZE(event); e++) {
			int fd = open_tracepoint(event[e]);

			if (fd < 0)
				continue;
			snprintf(file, sizeof(file), "events/%s/enable", event[e]);
			MUST(instance_write(path, file, "1"));
			if (i & 1)
				close(fd);
			MUST(instance_write(path, file, "0"));
			if (!(i & 1))
				close(fd);
		}
	}
	MUST(end_instance(path));
	return 0;
}

static int provoke_functions(int cpu, int rounds)
{
	static const char * const filter[] = { "vfs_*", "*_getattr", "ksys_*", "do_sys_open*" };
	char path[128];

	MUST(make_instance("function", cpu, path));
	if (instance_write(path, "current_tracer", "nop"))
		return ABSENT("tracers in instances");
	for (int i = 0; i < rounds; i++) {
		MUST(instance_write(path, "set_ftrace_filter", filter[i % ARRAY_SIZE(filter)]));
		if (instance_write(path, "current_tracer", "function"))
			return ABSENT("the function tracer");
		MUST(instance_write(path, "set_ftrace_filter",
				    filter[(i + 1) % ARRAY_SIZE(filter)]));
		MUST(instance_write(path, "current_tracer", "nop"));
	}
	MUST(end_instance(path));
	return 0;
}

static int trace_with(const char *tracer, const char *filter, int rounds)
{
	char on[16];
	int err = 0;

	MUST(bp_read_file(TRACING "/tracing_on", on, sizeof(on)));
	MUST(bp_write_file(TRACING "/tracing_on", "0"));
	MUST(bp_write_file(TRACING "/set_ftrace_filter", filter));
	for (int i = 0; i < rounds && !err; i++) {
		err = bp_write_file(TRACING "/current_tracer", tracer);
		bp_write_file(TRACING "/current_tracer", "nop");
	}
	MUST(bp_write_file(TRACING "/set_ftrace_filter", ""));
	MUST(bp_write_file(TRACING "/tracing_on", on));
	return err ? ABSENT("tracer %s", tracer) : 0;
}

/*
 * Each function of the kernel that can be traced. A debug kernel takes long for
 * them and is not here to find that one differs: some dozens of batches do.
 */
static int provoke_function_tracer(int cpu, int rounds)
{
	return trace_with("function", access("/proc/lockdep", F_OK) ? "" : "*_s*", rounds);
}

/* Some functions are enough: this one is about the trampolines that it switches. */

static int provoke_graph_tracer(int cpu, int rounds)
{
	return trace_with("function_graph", "vfs_*", rounds);
}

static int provoke_kprobes(int cpu, int rounds)
{
	int fd[ARRAY_SIZE(probed)], nr = ARRAY_SIZE(probed), good = 0;
	unsigned long offset;

	for (int i = 0; i < rounds; i++) {
		for (int f = 0; f < nr; f++) {
			fd[f] = open_inner_kprobe(probed[f], &offset);
			good += fd[f] >= 0;
		}
		for (int f = 0; f < nr; f++) {
			if (fd[f] >= 0)
				close(fd[f]);
		}
	}
	return good ? 0 : ABSENT("kprobes");
}

/* Functions have several names, so a probe is known by its address. */
static bool is_optimized(unsigned long func)
{
	bool found = false;
	unsigned long addr;
	char line[256];
	FILE *f;

	f = fopen("/sys/kernel/debug/kprobes/list", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		addr = strtoul(line, NULL, 16);
		found = addr > func && addr < func + 24 && strstr(line, "[OPTIMIZED]");
	}
	if (f)
		fclose(f);
	return found;
}

/* Not each can be: those that were not by then never will. */
static void wait_until_optimized(unsigned long func)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + 1000000000;

	while (!is_optimized(func) && bp_now(CLOCK_MONOTONIC) < end)
		usleep(20000);
}

/*
 * The kernel makes jumps of breakpoints a little later, in a thread of its own,
 * and breakpoints of jumps, when it is told to.
 */
static int provoke_optimized_kprobes(int cpu, int rounds)
{
	unsigned long offset, func = (unsigned long)bp_ksym(probed[3]);
	int fd[ARRAY_SIZE(probed)], nr = ARRAY_SIZE(probed);

	if (access(OPTIMIZE, W_OK))
		return ABSENT("%s", OPTIMIZE);
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(OPTIMIZE, "1"));
		for (int f = 0; f < nr; f++)
			fd[f] = open_inner_kprobe(probed[f], &offset);
		wait_until_optimized(func);
		MUST(bp_write_file(OPTIMIZE, "0"));
		MUST(bp_write_file(OPTIMIZE, "1"));
		if (i & 1)
			usleep(100000);
		for (int f = 0; f < nr; f++) {
			if (fd[f] >= 0)
				close(fd[f]);
		}
	}
	return 0;
}

/*
 * A jump waits a little before it becomes a breakpoint again. Who asks for the
 * probe meanwhile puts a breakpoint in the place of the jump: several at a time,
 * with probes at the same address, and pauses about as long as the kernel's.
 */
static int provoke_reenabled_kprobes(int cpu, int rounds)
{
	char command[128], enable[128];
	unsigned long offset;
	int fd;

	if (access(TRACING "/kprobe_events", W_OK))
		return ABSENT("kprobe events");
	fd = open_inner_kprobe(probed[3], &offset);
	if (fd < 0)
		return ABSENT("kprobes");
	close(fd);
	snprintf(command, sizeof(command), "p:hwbp/p%d %s+%lu", getpid(), probed[3], offset);
	MUST(bp_write_file(TRACING "/kprobe_events", command));
	snprintf(enable, sizeof(enable), TRACING "/events/hwbp/p%d/enable", getpid());
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(enable, "1"));
		usleep((getpid() * 7 + i * 13) % 50 * 1000);
		MUST(bp_write_file(enable, "0"));
		usleep((getpid() * 11 + i * 3) % 20 * 1000);
	}
	snprintf(command, sizeof(command), "-:hwbp/p%d", getpid());
	MUST(bp_write_file(TRACING "/kprobe_events", command));
	return 0;
}

/* At its first instruction, by way of ftrace, and at its return */
static int provoke_function_kprobes(int cpu, int rounds)
{
	int good = 0;

	for (int i = 0; i < rounds; i++) {
		for (unsigned int f = 0; f < ARRAY_SIZE(probed); f++) {
			int entry = open_kprobe(probed[f], 0, false);
			int back = open_kprobe(probed[f], 0, true);

			good += entry >= 0;
			if (entry >= 0)
				close(entry);
			if (back >= 0)
				close(back);
		}
	}
	return good ? 0 : ABSENT("kprobes");
}

/* All probes out and in again, those of others included */
static int provoke_disarming(int cpu, int rounds)
{
	unsigned long offset;
	int fd[2];

	if (access(ARM_KPROBES, W_OK))
		return ABSENT("%s", ARM_KPROBES);
	fd[0] = open_inner_kprobe(probed[0], &offset);
	fd[1] = open_kprobe(probed[1], 0, false);
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(ARM_KPROBES, "0"));
		MUST(bp_write_file(ARM_KPROBES, "1"));
	}
	bp_close(fd, 2);
	return 0;
}

/* Compiled programs are copied to text, and overwritten when they go. */
static int provoke_bpf_programs(int cpu, int rounds)
{
	static const int size[] = { 2, 17, 100, 700, 3000 };
	int fd[ARRAY_SIZE(size)];

	for (int i = 0; i < rounds; i++) {
		for (unsigned int s = 0; s < ARRAY_SIZE(size); s++) {
			fd[s] = load_program(BPF_PROG_TYPE_SOCKET_FILTER, cpu + i, size[s]);
			MUST(fd[s]);
		}
		for (unsigned int s = 0; s < ARRAY_SIZE(size); s++)
			close(fd[(s + i) % ARRAY_SIZE(size)]);
	}
	return 0;
}

/* A tail call to a known entry of a map is a jump, and follows the map. */
static int provoke_bpf_tail_calls(int cpu, int rounds)
{
	union bpf_attr map_attr = {
		.map_type = BPF_MAP_TYPE_PROG_ARRAY,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 1,
	};
	int map = sys_bpf(BPF_MAP_CREATE, &map_attr), key = 0, caller, target[2];

	MUST(map);
	const struct bpf_insn insn[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		MOV(BPF_REG_3, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		MOV(BPF_REG_0, 0),
		EXIT(),
	};
	caller = load_insns(BPF_PROG_TYPE_SOCKET_FILTER, insn, ARRAY_SIZE(insn));
	MUST(caller);
	for (int i = 0; i < 2; i++) {
		target[i] = load_program(BPF_PROG_TYPE_SOCKET_FILTER, i, 2);
		MUST(target[i]);
	}
	for (int i = 0; i < rounds; i++) {
		union bpf_attr attr = {
			.map_fd = map,
			.key = (unsigned long)&key,
			.value = (unsigned long)&target[i & 1],
		};

		MUST(sys_bpf(BPF_MAP_UPDATE_ELEM, &attr));
		MUST(run_program(caller, 1));
		attr.value = 0;
		if (i % 3 == 2)
			MUST(sys_bpf(BPF_MAP_DELETE_ELEM, &attr));
	}
	close(caller);
	close(map);
	bp_close(target, 2);
	return 0;
}

/* The call where a program begins, and the trampoline that it leads to */
static int provoke_bpf_trampolines(int cpu, int rounds)
{
	int target = load_target();

	if (target < 0)
		return ABSENT("BPF programs with types: %d", target);
	for (int i = 0; i < rounds; i++) {
		int before = attach_to(target, BPF_TRACE_FENTRY), after;

		if (before < 0)
			return ABSENT("BPF trampolines: %d", before);
		MUST(run_program(target, 1));
		after = attach_to(target, BPF_TRACE_FEXIT);
		MUST(after);
		MUST(run_program(target, 1));
		close(i & 1 ? before : after);
		MUST(run_program(target, 1));
		close(i & 1 ? after : before);
	}
	close(target);
	return 0;
}

/* Compares the programs it knows and calls them directly: written anew each time. */
static int provoke_bpf_dispatcher(int cpu, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int fd = load_program(BPF_PROG_TYPE_XDP, 2, 3 + cpu);
		int err;

		if (fd < 0)
			return ABSENT("XDP programs");
		err = run_program(fd, 2);
		close(fd);
		if (err < 0)
			return ABSENT("runs of XDP programs");
	}
	return 0;
}

/* The classic kind, of sockets */
static int provoke_socket_filters(int cpu, int rounds)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 100 + cpu, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, -1),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	int sock[2];

	for (int i = 0; i < rounds; i++) {
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock));
		MUST(setsockopt(sock[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
		MUST(write(sock[1], "x", 1));
		bp_close(sock, 2);
	}
	return 0;
}

/* Listeners that are not ours come and go: the switch of this very event. */
static int provoke_listeners(int cpu, int rounds)
{
	struct perf_event_attr attr = poke_attr(), task = attr;

	task.text_poke = 0;
	task.comm = 1;
	for (int i = 0; i < rounds; i++) {
		int fd[2] = { bp_open(&attr, -1, cpu), bp_open(&task, 0, -1) };

		MUST(fd[0]);
		MUST(fd[1]);
		bp_close(fd, 2);
	}
	return 0;
}

static bool klog_has(const char *text)
{
	static char log[1 << 20];
	int n = klogctl(3, log, sizeof(log) - 1);

	log[n > 0 ? n : 0] = '\0';
	return strstr(log, text);
}

/*
 * The debugger's own tests, see kgdb.sh: nobody else may change text meanwhile,
 * and lockdep objects to how it does.
 */
static int provoke_debugger(int cpu, int rounds)
{
	if (access(KGDBTS, W_OK))
		return ABSENT("kgdbts");
	if (!access("/proc/lockdep", F_OK))
		return ABSENT("the debugger's tests under lockdep");
	sleep(3);
	klogctl(5, NULL, 0);
	MUST(bp_write_file(KGDBTS, "V1I1"));
	for (int i = 0; i < 600; i++) {
		if (klog_has("Unregistered I/O driver kgdbts"))
			return 0;
		usleep(500000);
	}
	ksft_print_msg("kgdbts does not end\n");
	return KSFT_FAIL;
}

/* Hotplug alone */
static int provoke_nothing(int cpu, int rounds)
{
	sleep(rounds);
	return 0;
}

/* All that may go on at the same time */
static const provoke_fn at_once[] = {
	provoke_static_keys,
	provoke_static_calls,
	provoke_functions,
	provoke_kprobes,
	provoke_optimized_kprobes,
	provoke_reenabled_kprobes,
	provoke_function_kprobes,
	provoke_bpf_programs,
	provoke_bpf_tail_calls,
	provoke_bpf_trampolines,
	provoke_bpf_dispatcher,
	provoke_socket_filters,
	provoke_listeners,
};

/* ---------------------------------------------------------------- kernel text */

/*
 * A stretch of text that is alive throughout. A byte is unknown where a record
 * says that text began, or ceased, to be there.
 */
struct area {
	const char *name;
	unsigned long start;
	unsigned long end;
	unsigned char *first;
	unsigned char *last;
	unsigned char *now;
	bool *unknown;
	bool has_unknown;
};

static bool read_kcore(unsigned long start, void *buf, size_t size)
{
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	bool good = false;
	Elf64_Phdr phdr;
	Elf64_Ehdr ehdr;

	if (fd < 0)
		return false;
	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr))
		goto out;
	for (int i = 0; i < ehdr.e_phnum && !good; i++) {
		off_t at = ehdr.e_phoff + i * sizeof(phdr);
		size_t done = 0;

		if (pread(fd, &phdr, sizeof(phdr), at) != sizeof(phdr))
			break;
		if (phdr.p_type != PT_LOAD || start < phdr.p_vaddr ||
		    start + size > phdr.p_vaddr + phdr.p_memsz)
			continue;
		while (done < size) {
			ssize_t n = pread(fd, (char *)buf + done, size - done,
					  phdr.p_offset + (start - phdr.p_vaddr) + done);

			if (n <= 0)
				break;
			done += n;
		}
		good = done == size;
	}
out:
	close(fd);
	return good;
}

/* The symbol that an address belongs to */
static const char *name_of(unsigned long addr)
{
	unsigned long at, best = 0;
	static char name[256];
	char line[512], sym[200];
	FILE *f;

	snprintf(name, sizeof(name), "?");
	f = fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %*c %199s", &at, sym) != 2 || at > addr || at < best)
			continue;
		best = at;
		snprintf(name, sizeof(name), "%s+0x%lx", sym, addr - at);
	}
	if (f)
		fclose(f);
	return name;
}

static const char *hex(const unsigned char *p, size_t len)
{
	static char text[4][64];
	static int turn;
	char *buf = text[turn++ % 4];

	buf[0] = '\0';
	for (size_t i = 0; i < len && i < 16; i++)
		sprintf(buf + strlen(buf), "%s%02x", i ? " " : "", p[i]);
	return buf;
}

/* The mapping an address is in; kernel addresses are only told to those restricted */
static bool find_mapping(unsigned long addr, unsigned long *start, unsigned long *end)
{
	char line[512], saved[16];
	bool found = false;
	FILE *f;

	if (bp_read_file(KPTR_RESTRICT, saved, sizeof(saved)) ||
	    bp_write_file(KPTR_RESTRICT, "1"))
		return false;
	f = fopen("/proc/vmallocinfo", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "0x%lx-0x%lx", start, end) == 2)
			found = *start <= addr && addr < *end;
	}
	if (f)
		fclose(f);
	bp_write_file(KPTR_RESTRICT, saved);
	/* The last page is a guard and has no memory. */
	*end -= sysconf(_SC_PAGESIZE);
	return found;
}

/* ------------------------------------------------------------------ the replay */

FIXTURE(replay)
{
	struct bp_cpus cpus;
	struct listener listener[BP_MAX_CPUS];
	int nr_listeners;
	struct area area[MAX_AREAS];
	int nr_areas;
	char instance[128];
	int hotplug_cpu;
	int times_taken;
	bool was_online;
	bool comes;
	bool areas;
	bool lacks_something;
	struct poke *poke;
	size_t nr_pokes;
	int reported;
};

/* Something that changes text, and how often it is recorded at the least */
struct phase {
	const char *name;
	/* NULL: all that may go on at the same time */
	provoke_fn run;
	int rounds;
	/* Processes of each kind, each on another CPU; 0 is 1 */
	int copies;
	/* At least so many records of the kernel's own text, and of other areas */
	int text;
	int elsewhere;
};

#define PHASE(kind, ...) { .name = #kind, .run = provoke_##kind, __VA_ARGS__ }

static const struct phase instructions[] = {
	PHASE(static_keys, .rounds = 1, .text = 20),
	PHASE(static_calls, .rounds = 2, .text = 12),
	PHASE(functions, .rounds = 2, .text = 20),
	PHASE(function_tracer, .rounds = 1, .text = 1000),
	PHASE(graph_tracer, .rounds = 1, .text = 20),
	PHASE(kprobes, .rounds = 2, .text = 8, .elsewhere = 4),
	PHASE(optimized_kprobes, .rounds = 2, .text = 8, .elsewhere = 4),
	PHASE(reenabled_kprobes, .rounds = 20, .copies = 4, .text = 4),
	PHASE(function_kprobes, .rounds = 1, .text = 8),
	PHASE(disarming, .rounds = 2, .text = 8),
	PHASE(listeners, .rounds = 2),
	{ }
};

static const struct phase areas[] = {
	PHASE(bpf_programs, .rounds = 2, .elsewhere = 10),
	PHASE(bpf_tail_calls, .rounds = 6, .elsewhere = 6),
	PHASE(bpf_trampolines, .rounds = 2, .elsewhere = 8),
	PHASE(bpf_dispatcher, .rounds = 2, .text = 2, .elsewhere = 2),
	PHASE(socket_filters, .rounds = 3, .elsewhere = 3),
	{ .name = "all at once", .rounds = 1, .copies = 2, .text = 100, .elsewhere = 20 },
	{ }
};

static const struct phase hotplug[] = {
	PHASE(nothing, .rounds = 1),
	{ .name = "all at once", .rounds = 1, .text = 50, .elsewhere = 10 },
	{ }
};

static const struct phase debugger[] = {
	PHASE(debugger, .rounds = 1, .text = 2),
	{ }
};

FIXTURE_VARIANT(replay)
{
	/* What is done, one after the other, between the two copies */
	const struct phase *phases;
	/* A CPU goes and comes meanwhile. */
	bool hotplug;
	/*
	 * Whole areas change and are recorded. Without this the records of
	 * instructions alone have to explain each change.
	 */
	bool areas;
};

FIXTURE_VARIANT_ADD(replay, instructions) { .phases = instructions };
FIXTURE_VARIANT_ADD(replay, areas) { .phases = areas, .areas = true };
FIXTURE_VARIANT_ADD(replay, hotplug) { .phases = hotplug, .hotplug = true, .areas = true };
FIXTURE_VARIANT_ADD(replay, debugger) { .phases = debugger };

static void add_area(FIXTURE_DATA(replay) *self, const char *name, unsigned long start,
		     unsigned long end)
{
	struct area *a = &self->area[self->nr_areas];
	size_t size = end - start;

	if (self->nr_areas == MAX_AREAS)
		return;
	for (int i = 0; i < self->nr_areas; i++) {
		if (self->area[i].start < end && start < self->area[i].end)
			return;
	}
	a->name = name;
	a->start = start;
	a->end = end;
	a->first = malloc(size);
	a->last = malloc(size);
	a->now = malloc(size);
	a->unknown = calloc(1, size);
	if (!a->first || !a->last || !a->now || !a->unknown)
		abort();
	self->nr_areas++;
}

static void add_mapping_of(FIXTURE_DATA(replay) *self, const char *name, unsigned long addr)
{
	unsigned long start, end;

	if (addr && find_mapping(addr, &start, &end))
		add_area(self, name, start, end);
}

struct symbol {
	const char *name;
	unsigned long addr;
};

/* One pass: the list of all symbols is long to read. */
static void find_symbols(struct symbol symbol[], int nr)
{
	char line[512], name[256];
	unsigned long addr;
	FILE *f;

	f = fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %*c %255s", &addr, name) != 2)
			continue;
		for (int i = 0; i < nr; i++) {
			if (!symbol[i].addr && !strcmp(symbol[i].name, name))
				symbol[i].addr = addr;
		}
	}
	if (f)
		fclose(f);
}

/*
 * The kernel's own text, and things that are kept until the end, so that the areas
 * they lie in live as long: a program, a probe with its slot, a jump's slot, a
 * trampoline.
 */
static void hold_areas(FIXTURE_DATA(replay) *self)
{
	struct symbol symbol[] = {
		{ "_stext" }, { "_etext" }, { "kprobe_insn_page" }, { "kprobe_optinsn_page" },
		{ "ftrace_trampoline" },
	};
	unsigned long offset;
	__u64 addr = 0;
	__u32 len;
	int fd;

	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 5);
	if (fd >= 0)
		program_text(fd, &addr, &len);

	for (unsigned int i = 0; i < ARRAY_SIZE(probed); i++) {
		if (open_inner_kprobe(probed[i], &offset) >= 0)
			break;
	}
	if (!make_instance("held", 0, self->instance) &&
	    !instance_write(self->instance, "set_ftrace_filter", "vfs_read"))
		instance_write(self->instance, "current_tracer", "function");

	find_symbols(symbol, ARRAY_SIZE(symbol));
	add_area(self, "kernel text", symbol[0].addr, symbol[1].addr);
	add_mapping_of(self, "BPF text", addr);
	add_mapping_of(self, "slots of kprobes", symbol[2].addr);
	add_mapping_of(self, "slots of jumps", symbol[3].addr);
	add_mapping_of(self, "ftrace trampoline", symbol[4].addr);
}

/*
 * A software event ends when its CPU goes, and before another could be opened the
 * kernel's threads run there again. A breakpoint is there as soon as the CPU is.
 */
static int add_listener(FIXTURE_DATA(replay) *self, int cpu, bool hotplug)
{
	struct perf_event_attr attr = hotplug ? breakpoint_attr() : poke_attr();
	int pages = 1024, err;

	if (self->nr_listeners == BP_MAX_CPUS)
		return -ENOSPC;
	attr.read_format = PERF_FORMAT_LOST;
	attr.text_area = self->areas;
	/* They are emptied all the time: 4 MB for each of four CPUs, less for more. */
	while (pages > 256 && pages * self->cpus.nr > 4 * 1024)
		pages /= 2;
	err = listen_with(&self->listener[self->nr_listeners], &attr, -1, cpu, pages);
	if (!err)
		self->nr_listeners++;
	return err;
}

/* Of the CPUs that are there the last, or one that did not come yet */
static int find_hotplug_cpu(FIXTURE_DATA(replay) *self)
{
	char path[64];

	self->was_online = self->cpus.nr > 1;
	self->hotplug_cpu = self->was_online ? self->cpus.cpu[self->cpus.nr - 1] : 1;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", self->hotplug_cpu);
	if (!access(path, W_OK))
		return 0;
	self->hotplug_cpu = 0;
	return -ENODEV;
}

FIXTURE_SETUP(replay)
{
	BP_NEED_ROOT();
	if (access(BARRIER, W_OK))
		SKIP(return, "needs tracefs mounted at " TRACING);
	if (access("/proc/kcore", R_OK))
		SKIP(return, "needs /proc/kcore");
	self->areas = variant->areas;
	self->cpus = bp_online_cpus();
	hold_areas(self);
	ASSERT_LT(0, self->nr_areas);
	ASSERT_LT(self->area[0].start, self->area[0].end);
	setpriority(PRIO_PROCESS, 0, -20);
	if (variant->hotplug && find_hotplug_cpu(self))
		SKIP(return, "needs a CPU that can be taken offline");
	/* Where there is one CPU the other comes when nothing else goes on. */
	self->comes = self->hotplug_cpu && !self->was_online;
	for (int i = 0; i < self->cpus.nr; i++) {
		int cpu = self->cpus.cpu[i];

		ASSERT_EQ(0, add_listener(self, cpu, cpu == self->hotplug_cpu && i));
	}
}

FIXTURE_TEARDOWN(replay)
{
	for (int i = 0; i < self->nr_listeners; i++)
		unlisten(&self->listener[i]);
	if (self->hotplug_cpu)
		bp_cpu_online(self->hotplug_cpu, self->was_online);
	if (self->instance[0]) {
		instance_write(self->instance, "current_tracer", "nop");
		EXPECT_EQ(0, end_instance(self->instance));
	}
	if (!access(TRACING "/instances", F_OK))
		remove_instances();
	bp_teardown(_metadata);
}

static void drain_all(FIXTURE_DATA(replay) *self)
{
	for (int i = 0; i < self->nr_listeners; i++)
		drain(&self->listener[i]);
}

static bool only_own_records(FIXTURE_DATA(replay) *self, const size_t mark[])
{
	struct perf_event_header *h;
	struct poke p;

	for (int i = 0; i < self->nr_listeners; i++) {
		size_t pos = mark[i];

		while ((h = next_record(&self->listener[i], &pos))) {
			if (!decode(h, &p) || p.tid != syscall(__NR_gettid))
				return false;
		}
	}
	return true;
}

static bool read_areas(FIXTURE_DATA(replay) *self)
{
	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];

		if (!read_kcore(a->start, a->last, a->end - a->start))
			return false;
	}
	return true;
}

/* Who changes text holds a lock: what was under way before this is over then. */
static bool wait_for_changes(void)
{
	return !bp_write_file(BARRIER, "1") && !bp_write_file(BARRIER, "0");
}

/*
 * Reads the text to a->last while nobody changes it. Before and after that this
 * task changes text itself, and back: a change that began before the read is over
 * when it begins, and one that began during the read is recorded when this looks
 * for records of others. The log is good up to the mark, where the read began.
 */
static int take_copy(FIXTURE_DATA(replay) *self, size_t mark[])
{
	for (int try = 0; try < 200; try++) {
		if (!wait_for_changes())
			return -EPERM;
		drain_all(self);
		for (int i = 0; i < self->nr_listeners; i++)
			mark[i] = self->listener[i].len;
		if (!read_areas(self))
			return -EIO;
		if (!wait_for_changes())
			return -EPERM;
		drain_all(self);
		if (only_own_records(self, mark))
			return 0;
		usleep(100000);
	}
	return -ETIMEDOUT;
}

static void take_first_copy(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	size_t mark[BP_MAX_CPUS];

	ASSERT_EQ(0, take_copy(self, mark));
	for (int i = 0; i < self->nr_areas; i++)
		memcpy(self->area[i].first, self->area[i].last,
		       self->area[i].end - self->area[i].start);
	for (int i = 0; i < self->nr_listeners; i++)
		self->listener[i].len = 0;
}

/* The log ends where the copy was taken. */
static void take_last_copy(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	size_t mark[BP_MAX_CPUS];

	ASSERT_EQ(0, take_copy(self, mark));
	for (int i = 0; i < self->nr_listeners; i++)
		self->listener[i].len = mark[i];
}

static int compare_pokes(const void *a, const void *b)
{
	const struct poke *p = a, *q = b;

	if (p->time != q->time)
		return p->time < q->time ? -1 : 1;
	return p->seq < q->seq ? -1 : p->seq > q->seq;
}

/* The pokes of all CPUs in the order of their times */
static void merge(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct perf_event_header *h;
	struct poke p;
	size_t max = 0;

	for (int i = 0; i < self->nr_listeners; i++) {
		struct listener *l = &self->listener[i];
		__u64 time = 0;
		size_t pos = 0;

		while ((h = next_record(l, &pos))) {
			EXPECT_NE(PERF_RECORD_LOST, h->type);
			if (!decode(h, &p))
				continue;
			EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer))) {
				TH_LOG("%s: %s, %d -> %d bytes", name_of(p.addr),
				       what_is_wrong(h, sizeof(struct trailer)),
				       p.old_len, p.new_len);
			}
			EXPECT_EQ(l->cpu, p.cpu);
			EXPECT_LE(time, p.time);
			time = p.time;
			if (self->nr_pokes == max) {
				max = 2 * max + 1024;
				self->poke = realloc(self->poke, max * sizeof(p));
				ASSERT_NE(NULL, self->poke);
			}
			p.seq = self->nr_pokes;
			self->poke[self->nr_pokes++] = p;
		}
	}
	qsort(self->poke, self->nr_pokes, sizeof(p), compare_pokes);
}

static bool report(FIXTURE_DATA(replay) *self)
{
	if (self->reported == MAX_REPORTED)
		ksft_print_msg("and more\n");
	return self->reported++ < MAX_REPORTED;
}

/* Puts bytes in the place of others that must be there. */
static void apply(FIXTURE_DATA(replay) *self, struct area *a, const struct poke *p, bool forwards)
{
	const unsigned char *from = forwards ? p->old : p->new;
	const unsigned char *to = forwards ? p->new : p->old;
	unsigned int from_len = forwards ? p->old_len : p->new_len;
	unsigned int to_len = forwards ? p->new_len : p->old_len;
	bool differs = false;

	for (unsigned int i = 0; i < from_len || i < to_len; i++) {
		unsigned long at = p->addr + i - a->start;

		if (p->addr + i < a->start || p->addr + i >= a->end)
			continue;
		if (i < from_len && !a->unknown[at] && a->now[at] != from[i])
			differs = true;
	}
	if (differs && report(self))
		ksft_print_msg("%s, %s: %s: record of CPU %d, tid %d, time %llu has %s -> %s, there was %s\n",
			       forwards ? "forwards" : "backwards", a->name, name_of(p->addr),
			       p->cpu, p->tid, p->time, hex(p->old, p->old_len),
			       hex(p->new, p->new_len),
			       p->addr >= a->start && p->addr + from_len <= a->end ?
			       hex(a->now + (p->addr - a->start), from_len) : "?");

	for (unsigned int i = 0; i < from_len || i < to_len; i++) {
		unsigned long at = p->addr + i - a->start;

		if (p->addr + i < a->start || p->addr + i >= a->end)
			continue;
		a->unknown[at] = i >= to_len;
		a->has_unknown |= a->unknown[at];
		if (i < to_len)
			a->now[at] = to[i];
	}
}

static void compare(FIXTURE_DATA(replay) *self, struct area *a, const unsigned char *want,
		    bool forwards)
{
	size_t size = a->end - a->start;

	if (!memcmp(a->now, want, size))
		return;
	for (size_t i = 0, end; i < size; i = end) {
		for (end = i; end < size && !a->unknown[end] && a->now[end] != want[end]; end++)
			;
		if (end > i && report(self))
			ksft_print_msg("%s, %s: %lx %s, %zu bytes: replayed %s, is %s\n",
				       forwards ? "forwards" : "backwards", a->name,
				       a->start + i, name_of(a->start + i), end - i,
				       hex(a->now + i, end - i), hex(want + i, end - i));
		if (end == i)
			end++;
	}
}

static void replay(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self, bool forwards)
{
	self->reported = 0;
	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];

		memcpy(a->now, forwards ? a->first : a->last, a->end - a->start);
		if (a->has_unknown)
			memset(a->unknown, 0, a->end - a->start);
		a->has_unknown = false;
	}
	for (size_t n = 0; n < self->nr_pokes; n++) {
		struct poke *p = &self->poke[forwards ? n : self->nr_pokes - 1 - n];

		for (int i = 0; i < self->nr_areas; i++) {
			struct area *a = &self->area[i];

			if (p->addr < a->end && p->addr + p->old_len + p->new_len > a->start)
				apply(self, a, p, forwards);
		}
	}
	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];

		compare(self, a, forwards ? a->last : a->first, forwards);
	}
	EXPECT_EQ(0, self->reported) {
		TH_LOG("%s, the records do not lead from one copy to the other",
		       forwards ? "forwards" : "backwards");
	}
}

/* Pokes of the areas from one to before another since the marks */
static int pokes_since(FIXTURE_DATA(replay) *self, const size_t mark[], int from, int to)
{
	struct perf_event_header *h;
	struct poke p;
	int nr = 0;

	for (int l = 0; l < self->nr_listeners; l++) {
		size_t pos = mark[l];

		while ((h = next_record(&self->listener[l], &pos))) {
			if (!decode_body(h, &p))
				continue;
			for (int i = from; i < to; i++)
				nr += p.addr >= self->area[i].start && p.addr < self->area[i].end;
		}
	}
	return nr;
}

/* The kernel's own text is there from boot on: it neither begins nor ceases. */
static void expect_text_stays(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct area *text = &self->area[0];

	for (size_t n = 0; n < self->nr_pokes; n++) {
		struct poke *p = &self->poke[n];

		if (p->addr < text->start || p->addr >= text->end)
			continue;
		EXPECT_EQ(p->old_len, p->new_len) {
			TH_LOG("%s", name_of(p->addr));
		}
	}
}

/* Those that no record follows, which would tell of them, included */
static void expect_nothing_lost(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct { __u64 value, lost; } counter;

	for (int i = 0; i < self->nr_listeners; i++) {
		struct listener *l = &self->listener[i];

		ASSERT_EQ(sizeof(counter), read(l->fd, &counter, sizeof(counter)));
		EXPECT_EQ(0, counter.lost);
	}
}

/* Once the records are complete: everything that they have to be. */
static void prove(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	take_last_copy(_metadata, self);
	expect_nothing_lost(_metadata, self);
	merge(_metadata, self);
	replay(_metadata, self, true);
	replay(_metadata, self, false);
	expect_text_stays(_metadata, self);
	TH_LOG("%zu records in all", self->nr_pokes);
}

static pid_t start(provoke_fn run, int cpu, int rounds)
{
	pid_t pid = bp_fork();

	if (!pid) {
		setpriority(PRIO_PROCESS, 0, 0);
		_exit(bp_pin(cpu) ? KSFT_FAIL : run(cpu, rounds));
	}
	return pid;
}

/* One that did not come yet has no listener. */
static int take_cpu_away_and_back(FIXTURE_DATA(replay) *self)
{
	bool first = self->comes && !self->times_taken;

	if (bp_cpu_online(self->hotplug_cpu, false))
		return 0;
	self->times_taken++;
	return bp_cpu_online(self->hotplug_cpu, true) ? :
	       first ? add_listener(self, self->hotplug_cpu, true) : 0;
}

/* Keeps the rings empty until the children have ended; the worst of their ends. */
static int drain_while_running(FIXTURE_DATA(replay) *self, pid_t pid[], int nr)
{
	int status, worst = 0, left = nr;

	for (int turn = 1; left; turn++) {
		drain_all(self);
		for (int i = 0; i < nr; i++) {
			if (!pid[i] || waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			bp_forget_child(pid[i]);
			pid[i] = 0;
			left--;
			status = WIFEXITED(status) ? WEXITSTATUS(status) : KSFT_FAIL;
			if (status == KSFT_FAIL || !worst)
				worst = status;
		}
		if (self->hotplug_cpu && turn % 100 == 0 && take_cpu_away_and_back(self))
			worst = KSFT_FAIL;
		usleep(2000);
	}
	return worst;
}

/* If both copies were equal it would be a proof of nothing. */
static void leave_something_changed(struct __test_metadata *_metadata, bool bpf)
{
	unsigned long offset;

	EXPECT_LE(0, open_tracepoint("task/task_rename"));
	open_inner_kprobe(probed[2], &offset);
	if (bpf)
		EXPECT_LE(0, load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 40));
}

/* Neighbours are of other kinds: a CPU changes text in several ways at a time. */
static int start_all(FIXTURE_DATA(replay) *self, const struct phase *phase, pid_t pid[])
{
	int kinds = phase->run ? 1 : ARRAY_SIZE(at_once), nr = 0;
	int cpus = self->cpus.nr;

	if (self->hotplug_cpu && cpus > 1)
		cpus--;
	for (int copy = 0; copy < (phase->copies ? : 1); copy++) {
		for (int n = 0; n < kinds; n++) {
			if (nr == BP_MAX_CHILDREN)
				return nr;
			pid[nr] = start(phase->run ? : at_once[n],
					self->cpus.cpu[(n + copy) % cpus], phase->rounds);
			if (pid[nr++] < 0)
				return -EAGAIN;
		}
	}
	return nr;
}

static void run_phase(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self,
		      const struct phase *phase)
{
	int nr, worst, text = phase->text, pokes[2];
	bool comes = self->comes && !self->times_taken;
	size_t mark[BP_MAX_CPUS] = { };
	pid_t pid[BP_MAX_CHILDREN];

	drain_all(self);
	for (int i = 0; i < self->nr_listeners; i++)
		mark[i] = self->listener[i].len;
	nr = start_all(self, phase, pid);
	ASSERT_LT(0, nr);
	if (comes) {
		EXPECT_EQ(0, take_cpu_away_and_back(self));
		/* Each lock prefix was something else while there was one CPU. */
		if (klog_has("switching to SMP code"))
			text = 1000;
	}
	worst = drain_while_running(self, pid, nr);
	EXPECT_NE(KSFT_FAIL, worst);
	if (worst == KSFT_SKIP && phase->run) {
		self->lacks_something = true;
		return;
	}
	drain_all(self);
	pokes[0] = pokes_since(self, mark, 0, 1);
	pokes[1] = pokes_since(self, mark, 1, self->nr_areas);
	EXPECT_LE(text, pokes[0]);
	EXPECT_LE(phase->elsewhere, pokes[1]);
	TH_LOG("%s: %d records of the kernel's text, %d of %d other areas", phase->name,
	       pokes[0], pokes[1], self->nr_areas - 1);
}

TEST_F(replay, leads_from_one_copy_to_the_other_and_back)
{
	if (self->hotplug_cpu) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
		klogctl(5, NULL, 0);
	}
	take_first_copy(_metadata, self);
	for (const struct phase *phase = variant->phases; phase->name; phase++)
		run_phase(_metadata, self, phase);
	if (self->hotplug_cpu)
		EXPECT_LT(0, self->times_taken);
	leave_something_changed(_metadata, variant->areas);
	prove(_metadata, self);
	if (self->lacks_something)
		SKIP(return, "this kernel lacks what is absent above");
}

/* --------------------------------------------------------------------- records */

/* One byte that is changed on request: that of an instruction with a probe */
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

/* Twice: the probe in, the probe out */
static void poke_twice(struct __test_metadata *_metadata, FIXTURE_DATA(record) *self)
{
	int fd = open_kprobe(self->func, self->offset, false);

	ASSERT_LE(0, fd);
	close(fd);
}

static int listen_here(FIXTURE_DATA(record) *self)
{
	return listen_with(&self->listener, &self->attr, -1, self->cpu, 16);
}

TEST_F(record, tells_old_and_new_bytes)
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

/* One for the instruction, not one for each write that it takes */
TEST_F(record, tells_a_whole_instruction)
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

/* The copy of the instruction that a probe executes out of line, before it is used */
TEST_F(record, tells_of_new_text_before_what_leads_there)
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

/* What a sample_type adds, and in which order; the rest of it adds nothing. */
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

/* A program of thousands of instructions: its pieces follow each other. */
TEST_F(record, of_a_long_copy_comes_in_pieces)
{
	unsigned char *text, *told;
	struct perf_event_header *h;
	__u64 addr, next = 0;
	size_t pos = 0;
	struct poke p;
	__u32 len;
	int fd, pieces = 0;

	self->attr.text_area = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 64));
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 1, 4000);
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the compiler of BPF");
	ASSERT_LT(2 * 4096, len);
	text = malloc(len);
	told = calloc(1, len);
	ASSERT_TRUE(text && told);
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
				told[p.addr + i - addr] = p.new[i];
		}
	}
	EXPECT_LE(addr + len, next);
	EXPECT_LE((len + 4095) / 4096, pieces);
	EXPECT_EQ(0, memcmp(text, told, len));
}

/* Neither inside an instruction can a probe be, nor there where it is told to stay out. */
TEST_F(record, is_not_made_of_what_failed)
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

/* An area of text has a name, in a record of its own. */
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

/* ------------------------------------------------------------------ who gets them */

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

TEST_F(record, of_a_child_goes_to_who_is_inherited)
{
	self->attr.inherit = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, self->cpu, 16));
	EXPECT_EQ(0, bp_in_child(poke_in_child, self));
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
}

/* What is excluded are events in the kernel; this one is about its text. */
TEST_F(record, comes_whatever_is_excluded)
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

TEST_F(record, comes_only_if_it_was_asked_for)
{
	ASSERT_EQ(0, listen_here(self));
	self->attr.text_poke = 0;
	self->attr.ksymbol = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 16));
	poke_twice(_metadata, self);
	EXPECT_EQ(0, count_at(&self->listener, 0));
}

/* The last listener goes, and the next one finds everything as it was. */
TEST_F(record, comes_to_each_listener_after_the_other)
{
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, listen_here(self));
		poke_twice(_metadata, self);
		EXPECT_EQ(2, count_at(&self->listener, self->addr));
		unlisten(&self->listener);
		/* The switch is turned off with a delay. */
		if (i == 2)
			sleep(2);
	}
}

/*
 * Whether somebody listens is a switch in the text, too. Once all have gone, and
 * those that could not be opened never counted, it is where it was.
 */
TEST_F(record, needs_no_changed_text_when_the_last_has_gone)
{
	unsigned long start = (unsigned long)bp_ksym("_stext");
	size_t size = (unsigned long)bp_ksym("_etext") - start;
	char *before = malloc(size), *after = malloc(size);
	struct perf_event_attr refused = breakpoint_attr();
	bool same = false;

	ASSERT_TRUE(before && after);
	refused.bp_len = 3;
	/* What the tests before have left switched on for a while */
	sleep(3);
	ASSERT_TRUE(read_kcore(start, before, size));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, listen_here(self));
		EXPECT_EQ(-ESRCH, bp_open(&self->attr, 0x3fffffff, -1));
		/* In a group of another place, and one that its kind refuses */
		EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, -1, self->listener.fd, 0));
		EXPECT_EQ(-EINVAL, bp_open(&refused, -1, self->cpu));
		unlisten(&self->listener);
	}
	for (int i = 0; i < 100 && !same; i++) {
		usleep(100000);
		ASSERT_TRUE(read_kcore(start, after, size));
		same = !memcmp(before, after, size);
	}
	EXPECT_TRUE(same);
	for (size_t i = 0, nr = 0; i < size && nr < MAX_REPORTED; i++) {
		if (before[i] != after[i] && ++nr)
			TH_LOG("%s: was %s, is %s", name_of(start + i),
			       hex((void *)&before[i], 1), hex((void *)&after[i], 1));
	}
}

TEST_F(record, comes_to_a_breakpoint_too)
{
	self->attr = breakpoint_attr();
	ASSERT_EQ(0, listen_here(self));
	poke_twice(_metadata, self);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	unlisten(&self->listener);
}

/* A breakpoint of a CPU waits for it to come back; so does what it listens to. */
TEST_F(record, comes_to_a_breakpoint_whose_cpu_is_back)
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

/* ------------------------------------------------------------------ lost records */

/* Sums up what was lost, and counts the pokes. */
static void count_all(struct listener *l, int *pokes, long long *lost, int *lost_records)
{
	struct perf_event_header *h;
	size_t pos = 0;

	*pokes = *lost_records = *lost = 0;
	drain(l);
	while ((h = next_record(l, &pos))) {
		if (h->type == PERF_RECORD_TEXT_POKE)
			++*pokes;
		if (h->type == PERF_RECORD_LOST) {
			*lost += ((__u64 *)(h + 1))[1];
			++*lost_records;
		}
	}
}

/*
 * Who does not read in time is told how many it missed, and gets what comes then.
 * Another one with room enough knows how many there were.
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
	/* Neither has what was there before the second. */
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

	/* The first after the gap is whole. */
	h = (void *)(self->listener.log + h->size);
	EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
	EXPECT_TRUE(decode(h, &p));
}

/* -------------------------------------------------------------------- permissions */

static int try_task(void *arg)
{
	int fd = bp_open(arg, 0, -1);

	return fd < 0 ? -fd : 0;
}

static int try_cpu(void *arg)
{
	int fd = bp_open(arg, -1, 0);

	return fd < 0 ? -fd : 0;
}

/* Somebody who has nothing but the one capability */
static int try_with_perfmon(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	data[CAP_PERFMON / 32].permitted = 1U << CAP_PERFMON % 32;
	data[CAP_PERFMON / 32].effective = 1U << CAP_PERFMON % 32;
	if (prctl(PR_SET_KEEPCAPS, 1) || bp_become_nobody() ||
	    syscall(__NR_capset, &header, data))
		return 255;
	return try_cpu(arg) ? : try_task(arg);
}

/*
 * The text of the kernel is told to who may profile it, which excluding it from
 * what is counted does not change.
 */
TEST_F(record, is_for_who_may_profile_the_kernel)
{
	struct perf_event_attr plain = self->attr;

	self->attr.exclude_kernel = 1;
	self->attr.exclude_hv = 1;
	plain = self->attr;
	plain.text_poke = 0;

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(0, bp_as_nobody(try_task, &plain));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));
	EXPECT_EQ(0, bp_in_child(try_with_perfmon, &self->attr));
	EXPECT_EQ(0, try_task(&self->attr));
	EXPECT_EQ(0, try_cpu(&self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "1"));
	EXPECT_EQ(0, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "0"));
	EXPECT_EQ(0, bp_as_nobody(try_cpu, &self->attr));
}

/* Whole areas need the capability, whatever the sysctl allows everybody. */
TEST_F(record, of_whole_areas_needs_the_capability)
{
	struct perf_event_attr areas = self->attr;

	areas.exclude_kernel = 1;
	areas.text_poke = 0;
	areas.text_area = 1;
	self->attr.text_area = 1;

	ASSERT_EQ(0, bp_write_file(PARANOID, "-1"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &areas));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));
	self->attr.text_area = 0;
	EXPECT_EQ(0, bp_as_nobody(try_cpu, &self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(0, bp_in_child(try_with_perfmon, &areas));
	EXPECT_EQ(0, try_cpu(&areas));
}

TEST_F(record, is_for_who_may_profile_the_kernel_whatever_the_event)
{
	struct perf_event_attr attr = breakpoint_attr();

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &attr));
	attr.text_poke = 0;
	EXPECT_EQ(0, bp_as_nobody(try_task, &attr));
}

/* ------------------------------------------------------------------------ modules */

#define MODULE "data_breakpoint"

static int init_module_file(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = syscall(__NR_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return err;
}

static bool find_module(char *path, size_t size)
{
	struct utsname name;

	uname(&name);
	snprintf(path, size, "/lib/modules/%s/kernel/samples/hw_breakpoint/" MODULE ".ko",
		 name.release);
	return !access(path, R_OK);
}

static __u64 section_of_module(const char *section)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/module/" MODULE "/sections/%s", section);
	return bp_read_file(path, text, sizeof(text)) ? 0 : strtoull(text, NULL, 16);
}

struct told {
	__u64 start;
	__u64 end;
};

/* The functions of the module that are in none of what was told */
static int functions_not_told(const struct told *told, int nr)
{
	char line[512], module[64], type;
	int missing = 0;
	__u64 addr;
	FILE *f;

	f = fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof(line), f)) {
		bool found = false;

		if (sscanf(line, "%llx %c %*s %63s", &addr, &type, module) != 3 ||
		    strcmp(module, "[" MODULE "]") || (type | 0x20) != 't')
			continue;
		for (int i = 0; i < nr && !found; i++)
			found = told[i].start <= addr && addr < told[i].end;
		if (!found) {
			ksft_print_msg("not told: %s", line);
			missing++;
		}
	}
	if (f)
		fclose(f);
	return missing;
}

/* The first record of the text of a module has all of it, as it is executed. */
TEST_F(record, tells_the_text_of_a_module)
{
	struct listener l[BP_MAX_CPUS];
	struct perf_event_header *h;
	unsigned char is[4096];
	struct told told[64];
	char path[256];
	struct poke p;
	__u64 text;
	int nr = 0;

	if (!find_module(path, sizeof(path)))
		SKIP(return, "needs %s", path);
	self->attr.text_area = 1;
	for (int i = 0; i < self->cpus.nr; i++)
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpus.cpu[i], 64));
	ASSERT_EQ(0, init_module_file(path, "ksym=panic_timeout"));
	text = section_of_module(".text");
	for (int i = 0; i < self->cpus.nr; i++) {
		size_t pos = 0;

		drain(&l[i]);
		while ((h = next_record(&l[i], &pos))) {
			if (!decode(h, &p) || nr == ARRAY_SIZE(told))
				continue;
			if (p.old_len) {
				EXPECT_FALSE(p.addr >= text && p.addr < text + 4096 && !nr);
				continue;
			}
			EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
			told[nr].start = p.addr;
			told[nr++].end = p.addr + p.new_len;
			if (p.addr > text || p.addr + p.new_len <= text)
				continue;
			ASSERT_TRUE(read_kcore(p.addr, is, p.new_len));
			EXPECT_EQ(0, memcmp(is, p.new, p.new_len));
		}
	}
	EXPECT_NE(0, text);
	EXPECT_LT(0, nr);
	EXPECT_EQ(0, functions_not_told(told, nr));
	EXPECT_EQ(0, syscall(__NR_delete_module, MODULE, 0));
}

/* ------------------------------------------------------------------ whole areas */

/* The data pages of a buffer; that of perf record has 128 by default. */
#define FEW_PAGES	16

/* Pokes that overlap this text */
static int count_in(struct listener *l, __u64 addr, __u32 len)
{
	struct perf_event_header *h;
	struct poke p;
	size_t pos = 0;
	int nr = 0;

	drain(l);
	while ((h = next_record(l, &pos))) {
		if (decode_body(h, &p))
			nr += p.addr < addr + len && p.addr + p.old_len + p.new_len > addr;
	}
	return nr;
}

/* Pokes of more text than an instruction, or a slot, has */
static int count_longer(struct listener *l, unsigned int len)
{
	struct perf_event_header *h;
	struct poke p;
	size_t pos = 0;
	int nr = 0;

	drain(l);
	while ((h = next_record(l, &pos)))
		nr += decode_body(h, &p) && (p.old_len > len || p.new_len > len);
	return nr;
}

/* A module, and programs of 10 kB and more, of which the last one is returned */
static int load_areas(void)
{
	char path[256];
	int fd = -1;

	if (find_module(path, sizeof(path)) &&
	    (init_module_file(path, "ksym=panic_timeout") ||
	     syscall(__NR_delete_module, MODULE, 0)))
		return -errno;
	for (int i = 0; i < 4; i++) {
		close(fd);
		fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, i, 3000);
		if (fd < 0)
			return fd;
	}
	return fd;
}

TEST_F(record, comes_of_no_whole_area)
{
	int fd, pokes, nr_lost;
	long long lost;
	__u64 addr;
	__u32 len;

	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, FEW_PAGES));
	fd = load_areas();
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the compiler of BPF");
	poke_twice(_metadata, self);
	count_all(&self->listener, &pokes, &lost, &nr_lost);
	EXPECT_EQ(0, nr_lost);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	EXPECT_EQ(0, count_in(&self->listener, addr, len));
	EXPECT_EQ(0, count_longer(&self->listener, 1000));
}

TEST_F(record, comes_of_whole_areas_alone)
{
	__u64 addr;
	__u32 len;
	int fd;

	self->attr.text_poke = 0;
	self->attr.text_area = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 1024));
	fd = load_areas();
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the compiler of BPF");
	poke_twice(_metadata, self);
	EXPECT_LT(0, count_in(&self->listener, addr, len));
	EXPECT_EQ(0, count_at(&self->listener, self->addr));
}

/* A filter of the classic kind needs no privilege. Its image is not shown. */
static int see_own_filter(void *arg)
{
	struct sock_filter code[40] = { };
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	struct listener l;
	int sock[2];

	for (unsigned int i = 0; i < ARRAY_SIZE(code); i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x12345678 + i);
	if (listen_with(&l, arg, 0, -1, 16) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sock))
		return 255;
	if (setsockopt(sock[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		return 254;
	return count_longer(&l, 64);
}

TEST_F(record, shows_nobody_an_image_of_bpf)
{
	ASSERT_EQ(0, bp_write_file(PARANOID, "1"));
	EXPECT_EQ(0, bp_as_nobody(see_own_filter, &self->attr));
}

static int set_effective(int cap, bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	if (syscall(__NR_capget, &header, data))
		return -errno;
	if (on)
		data[cap / 32].effective |= 1U << cap % 32;
	else
		data[cap / 32].effective &= ~(1U << cap % 32);
	return syscall(__NR_capset, &header, data) ? -errno : 0;
}

/* What was allowed when the event was opened decides. */
TEST_F(record, shows_an_image_of_bpf_to_who_may_dump_it)
{
	static const struct {
		const char *kptr_restrict;
		bool syslog;
		bool shown;
	} opener[] = {
		{ "0", true, true }, { "1", true, true },
		{ "1", false, false }, { "2", true, false },
	};
	struct listener l[ARRAY_SIZE(opener)];
	__u64 addr;
	__u32 len;
	int fd;

	self->attr.text_area = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(opener); i++) {
		ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, opener[i].kptr_restrict));
		ASSERT_EQ(0, set_effective(CAP_SYSLOG, opener[i].syslog));
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpu, 64));
		ASSERT_EQ(0, set_effective(CAP_SYSLOG, true));
	}
	ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, "1"));
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 100);
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the compiler of BPF");
	poke_twice(_metadata, self);
	for (unsigned int i = 0; i < ARRAY_SIZE(opener); i++) {
		EXPECT_EQ(opener[i].shown, !!count_in(&l[i], addr, len)) {
			TH_LOG("kptr_restrict %s, %s CAP_SYSLOG", opener[i].kptr_restrict,
			       opener[i].syslog ? "with" : "without");
		}
		EXPECT_EQ(2, count_at(&l[i], self->addr));
	}
}

static int load_in_child(void *arg)
{
	return load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 1000) < 0;
}

/* An inherited event shows what its parent does. */
TEST_F(record, of_a_childs_areas_goes_to_who_is_inherited)
{
	self->attr.inherit = 1;
	self->attr.text_area = 1;
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, self->cpu, 64));
	EXPECT_EQ(0, bp_in_child(load_in_child, self));
	EXPECT_LT(0, count_longer(&self->listener, 1000));
}

/* ----------------------------------------------------------------------- ordering */

/*
 * One CPU executes the text over and over, and notes when, and whether it met the
 * old or the new. Another changes it. What can be decided: after the time of the
 * record the old text is not executed any more, and before the change is asked for
 * the new one is not. In between a breakpoint stands for either.
 *
 * A breakpoint that is taken out is the exception: what is executed until the
 * end of the change is the old text, and before the record it must be.
 */
enum site { BREAKPOINT, JUMP, FUNCTION, STATIC_KEY };

struct pass {
	__u64 from;
	__u64 to;
	__u64 count;
};

struct change {
	__u64 asked;
	__u64 done;
	__u64 told;
	bool from_breakpoint;
	bool on;
};

#define MAX_PASSES	(1 << 21)
#define CHANGES		16

FIXTURE(ordering)
{
	struct listener listener;
	struct bp_cpus cpus;
	struct pass *pass;
	struct change change[CHANGES];
	pthread_t thread;
	char optimize[16];
	__u64 addr;
	int cpu;
	int fd;
	enum site site;
	bool stop;
	long nr;
};

FIXTURE_VARIANT(ordering)
{
	enum site site;
};

FIXTURE_VARIANT_ADD(ordering, kprobe) { .site = BREAKPOINT };
FIXTURE_VARIANT_ADD(ordering, optimized_kprobe) { .site = JUMP };
FIXTURE_VARIANT_ADD(ordering, ftrace) { .site = FUNCTION };
FIXTURE_VARIANT_ADD(ordering, static_key) { .site = STATIC_KEY };

static __u64 passes_counted(FIXTURE_DATA(ordering) *self)
{
	return self->site == STATIC_KEY ? program_runs(self->fd) : bp_count(self->fd);
}

static void *pass_over_it(void *arg)
{
	FIXTURE_DATA(ordering) *self = arg;
	unsigned long offset = 0;
	long n = 0;

	bp_pin(self->cpu);
	switch (self->site) {
	case BREAKPOINT:
	case JUMP:
		self->fd = open_inner_kprobe("__x64_sys_getppid", &offset);
		break;
	case FUNCTION:
		self->fd = open_kprobe("__x64_sys_getppid", 0, false);
		break;
	case STATIC_KEY:
		self->fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 2);
		break;
	}
	self->addr = (unsigned long)bp_ksym("__x64_sys_getppid") + offset;
	while (self->fd >= 0 && !__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE)) {
		struct pass *p = &self->pass[n];

		if (n == MAX_PASSES) {
			usleep(1000);
			continue;
		}
		p->from = bp_now(CLOCK_MONOTONIC_RAW);
		if (self->site == STATIC_KEY)
			run_program(self->fd, 1);
		else
			syscall(__NR_getppid);
		p->to = bp_now(CLOCK_MONOTONIC_RAW);
		p->count = passes_counted(self);
		__atomic_store_n(&self->nr, ++n, __ATOMIC_RELEASE);
	}
	/* There is nothing to pass over. */
	if (self->fd < 0)
		__atomic_store_n(&self->nr, -1, __ATOMIC_RELEASE);
	return NULL;
}

/* Waits for some more passes; false if there will be none. */
static bool let_it_pass(FIXTURE_DATA(ordering) *self, int more)
{
	long nr = __atomic_load_n(&self->nr, __ATOMIC_ACQUIRE), now = nr;

	while (now >= 0 && now < nr + more) {
		if (nr + more > MAX_PASSES)
			return false;
		usleep(1000);
		now = __atomic_load_n(&self->nr, __ATOMIC_ACQUIRE);
	}
	return now >= 0;
}

FIXTURE_SETUP(ordering)
{
	struct perf_event_attr attr = poke_attr();

	BP_NEED_ROOT();
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	if (variant->site == STATIC_KEY ? access(BPF_STATS, W_OK) : access(ARM_KPROBES, W_OK))
		SKIP(return, "needs %s", variant->site == STATIC_KEY ? BPF_STATS : ARM_KPROBES);
	if (!bp_read_file(OPTIMIZE, self->optimize, sizeof(self->optimize)))
		bp_write_file(OPTIMIZE, variant->site == JUMP ? "1" : "0");
	self->pass = mmap(NULL, MAX_PASSES * sizeof(*self->pass), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pass);
	self->site = variant->site;
	self->cpu = self->cpus.cpu[1];
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	/* It is not adjusted: an event's clock and the task's never differ. */
	attr.clockid = CLOCK_MONOTONIC_RAW;
	ASSERT_EQ(0, listen_with(&self->listener, &attr, -1, self->cpus.cpu[0], 256));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, pass_over_it, self));
}

FIXTURE_TEARDOWN(ordering)
{
	if (self->thread) {
		__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
		pthread_join(self->thread, NULL);
	}
	if (variant->site != STATIC_KEY)
		bp_write_file(ARM_KPROBES, "1");
	if (self->optimize[0])
		bp_write_file(OPTIMIZE, self->optimize);
	bp_teardown(_metadata);
}

/* What the records say of this change: the last one of the site counts. */
static void look_up(FIXTURE_DATA(ordering) *self, struct change *c)
{
	struct perf_event_header *h;
	size_t pos = 0;
	struct poke p;

	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		if (!decode(h, &p) || p.time < c->asked || p.time > c->done)
			continue;
		if (self->site == STATIC_KEY ? p.tid != syscall(__NR_gettid) :
					       p.addr != self->addr)
			continue;
		c->told = p.time;
		c->from_breakpoint = p.old_len && p.old[0] == INT3;
	}
}

TEST_F(ordering, old_text_is_not_executed_after_the_record)
{
	const char *file = variant->site == STATIC_KEY ? BPF_STATS : ARM_KPROBES;
	unsigned long func = (unsigned long)bp_ksym("__x64_sys_getppid");
	long wrong = 0, decided = 0, meanwhile = 0, nr;
	struct change *c = self->change;
	int changes = 0, n = 0;

	if (!let_it_pass(self, 20))
		SKIP(return, "nothing to pass over");
	for (; changes < CHANGES; changes++, c++) {
		/* Kprobes are armed to begin with, BPF statistics are off. */
		c->on = (changes & 1) ^ (variant->site == STATIC_KEY);
		if (variant->site == JUMP && !c->on)
			wait_until_optimized(func);
		c->asked = bp_now(CLOCK_MONOTONIC_RAW);
		ASSERT_EQ(0, bp_write_file(file, c->on ? "1" : "0"));
		c->done = bp_now(CLOCK_MONOTONIC_RAW);
		if (!let_it_pass(self, 20))
			break;
	}
	ASSERT_LE(4, changes);
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(self->thread, NULL);
	self->thread = 0;
	for (int i = 0; i < changes; i++) {
		look_up(self, &self->change[i]);
		EXPECT_NE(0, self->change[i].told) {
			TH_LOG("no record of change %d", i);
		}
	}

	nr = self->nr;
	for (long i = 1; i < nr; i++) {
		struct pass *p = &self->pass[i];
		__u64 from, to;
		bool hit;

		/* The change that was the last before this pass began */
		while (n + 1 < changes && self->change[n + 1].told <= p->from)
			n++;
		c = &self->change[n];
		from = c->from_breakpoint ? c->done : c->told;
		to = -1;
		if (n + 1 < changes)
			to = c[1].from_breakpoint ? c[1].told : c[1].asked;
		if (p->from <= from || p->to >= to)
			continue;
		decided++;
		meanwhile += p->from < c->done;
		hit = p->count != self->pass[i - 1].count;
		if (hit != c->on && wrong++ < MAX_REPORTED)
			ksft_print_msg("change %d to %s, asked %llu told %llu done %llu: pass %llu to %llu %s\n",
				       n, c->on ? "on" : "off", c->asked, c->told, c->done,
				       p->from, p->to, hit ? "hit" : "did not");
	}
	EXPECT_EQ(0, wrong);
	EXPECT_LE(10 * (changes - 1), decided);
	TH_LOG("%ld of %ld passes decided, %ld between a record and the end of its change",
	       decided, nr, meanwhile);
}

TEST_HARNESS_MAIN
