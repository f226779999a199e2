// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the tests of PERF_RECORD_TEXT_POKE: see text_poke.h.
 */
#define BP_NO_TESTS
#include <elf.h>
#include <linux/btf.h>

#include "text_poke.h"

/* ------------------------------------------------------------------ listeners */

struct perf_event_attr poke_attr(void)
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

void add_areas(struct perf_event_attr *attr)
{
	char text[32] = "";
	int bit = 0;

	bp_read_file(KERNEL_TEXT "/format/area", text, sizeof(text));
	if (sscanf(text, "config:%d", &bit) != 1)
		ksft_print_msg("this kernel has no PMU kernel_text\n");
	attr->type = bp_read_number(KERNEL_TEXT "/type");
	attr->config = 1ULL << bit;
}

struct perf_event_attr breakpoint_attr(void)
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

int listen_with(struct listener *l, struct perf_event_attr *attr, pid_t pid, int cpu, int pages)
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

void drain(struct listener *l)
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

void unlisten(struct listener *l)
{
	bp_ring_unmap(&l->ring);
	close(l->fd);
	free(l->log);
	l->log = NULL;
}

struct perf_event_header *next_record(struct listener *l, size_t *pos)
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

size_t poke_size(const struct text_poke *r)
{
	return align8(offsetof(struct text_poke, bytes) + r->old_len + r->new_len);
}

bool decode_body(const struct perf_event_header *h, struct poke *p)
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

bool decode(const struct perf_event_header *h, struct poke *p)
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

const char *what_is_wrong(const struct perf_event_header *h, size_t trailer)
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
		return "has no bytes";
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

int count_if(struct listener *l, bool (*is_it)(const struct poke *p, __u64 addr, __u32 len),
	     __u64 addr, __u32 len)
{
	struct perf_event_header *h;
	struct poke p;
	size_t pos = 0;
	int nr = 0;

	drain(l);
	while ((h = next_record(l, &pos)))
		nr += decode_body(h, &p) && is_it(&p, addr, len);
	return nr;
}

static bool is_at(const struct poke *p, __u64 addr, __u32 len)
{
	return !addr || p->addr == addr;
}

int count_at(struct listener *l, __u64 addr)
{
	return count_if(l, is_at, addr, 0);
}

void forget(struct listener *l)
{
	drain(l);
	l->len = 0;
}

/* --------------------------------------------------------------------- probes */

const char * const probed[NR_PROBED] = {
	"__x64_sys_getppid", "__x64_sys_getpgid", "__x64_sys_getsid", "vfs_statx",
	"do_sys_openat2", "hrtimer_nanosleep", "vfs_read", "vfs_write",
};

int open_kprobe(const char *func, unsigned long offset, bool ret)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = ret,
		.kprobe_func = (unsigned long)func,
		.probe_offset = offset,
	};
	long type = bp_read_number(BP_PMUS "kprobe/type");

	if (type < 0)
		return -ENOENT;
	attr.type = type;
	return bp_open(&attr, 0, -1);
}

int open_inner_kprobe(const char *func, unsigned long *offset)
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

int load_program(int type, int result, int nr)
{
	struct bpf_insn *insn = calloc(nr, sizeof(*insn));
	int fd;

	for (int i = 0; i < nr - 1; i++)
		insn[i] = MOV(BPF_REG_0, result);
	insn[nr - 1] = EXIT();
	fd = bpf_load(type, insn, nr);
	free(insn);
	return fd;
}

int load_target(void)
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

int attach_to(int target, int where)
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

bool program_text(int fd, __u64 *addr, __u32 *len)
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

__u64 program_runs(int fd)
{
	struct bpf_prog_info info = { };
	union bpf_attr attr = {
		.info.bpf_fd = fd,
		.info.info_len = sizeof(info),
		.info.info = (unsigned long)&info,
	};

	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) ? -1 : info.run_cnt;
}

int run_program(int fd, int times)
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

/* -------------------------------------------------------------------- modules */

#define VULNERABILITIES	"/sys/devices/system/cpu/vulnerabilities/"

__u64 section_of_module(const char *module, const char *section)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/module/%s/sections/%s", module, section);
	return bp_read_file(path, text, sizeof(text)) ? 0 : strtoull(text, NULL, 16);
}

/* Retpolines make thunks for indirect branches needless. */
bool modules_have_thunks(void)
{
	char its[256], spectre[512];

	return !bp_read_file(VULNERABILITIES "indirect_target_selection", its, sizeof(its)) &&
	       !bp_read_file(VULNERABILITIES "spectre_v2", spectre, sizeof(spectre)) &&
	       strstr(its, "Aligned branch") && !strstr(spectre, "Retpoline");
}

/* jmp *%reg, with the prefix for r8 to r15, and int3; in the upper half of a cache line */
static bool is_thunk(unsigned long addr)
{
	unsigned char insn[4], *p = insn;

	if (!(addr & 32) || !read_kcore(addr, insn, sizeof(insn)))
		return false;
	if (*p == 0x41)
		p++;
	return p[0] == 0xff && (p[1] & 0xf8) == 0xe0 && p[2] == INT3;
}

/*
 * Each byte that could be the opcode of a call or a jump is taken for one: what is at
 * the target decides.
 */
unsigned long find_thunks(unsigned long text)
{
	unsigned long kernel = (unsigned long)bp_ksym("_stext");
	unsigned long kernel_end = (unsigned long)bp_ksym("_etext");
	unsigned long start, end, found = 0;
	unsigned char *is;

	if (!find_mapping(text, &start, &end))
		return 0;
	is = malloc(end - start);
	if (!is)
		abort();
	if (!read_kcore(start, is, end - start))
		end = start;
	for (unsigned long at = start; at + 5 <= end && !found; at++) {
		const unsigned char *insn = is + (at - start);
		unsigned long target;
		__s32 offset;

		if (insn[0] != 0xe8 && insn[0] != 0xe9)
			continue;
		memcpy(&offset, insn + 1, sizeof(offset));
		target = at + 5 + offset;
		if (target >= kernel && target < kernel_end)
			continue;
		if ((target < start || target >= end) && is_thunk(target))
			found = target & -sysconf(_SC_PAGESIZE);
	}
	free(is);
	return found;
}

/* ---------------------------------------------------------------- kernel text */

bool read_kcore(unsigned long start, void *buf, size_t size)
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

const char *name_of(unsigned long addr)
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

const char *hex(const unsigned char *p, size_t len)
{
	static char text[4][64];
	static int next;
	char *buf = text[next++ % 4];

	buf[0] = '\0';
	for (size_t i = 0; i < len && i < 16; i++)
		sprintf(buf + strlen(buf), "%s%02x", i ? " " : "", p[i]);
	return buf;
}

bool find_mapping(unsigned long addr, unsigned long *start, unsigned long *end)
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
	/* The last page is a guard page without memory. */
	*end -= sysconf(_SC_PAGESIZE);
	return found;
}

void count_all(struct listener *l, int *pokes, long long *lost, int *lost_records)
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
