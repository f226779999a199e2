// SPDX-License-Identifier: GPL-2.0
/* Helpers that all breakpoint tests share: see bp_test.h. */
#define BP_NO_TESTS
#include <linux/capability.h>
#include <elf.h>
#ifdef __aarch64__
#include <asm/ptrace.h>
#endif
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/utsname.h>

#include "bp_test.h"

/* ---------------------------------------------------------------- accesses */

#ifdef __aarch64__
void bp_store(void *p, unsigned int size)
{
	switch (size) {
	case 1:
		asm volatile("strb %w1, [%0]" : : "r"(p), "r"(1) : "memory");
		break;
	case 2:
		asm volatile("strh %w1, [%0]" : : "r"(p), "r"(1) : "memory");
		break;
	case 4:
		asm volatile("str %w1, [%0]" : : "r"(p), "r"(1) : "memory");
		break;
	case 8:
		asm volatile("str %x1, [%0]" : : "r"(p), "r"(1L) : "memory");
		break;
	}
}

void bp_load(void *p, unsigned int size)
{
	unsigned long v;

	switch (size) {
	case 1:
		asm volatile("ldrb %w0, [%1]" : "=r"(v) : "r"(p) : "memory");
		break;
	case 2:
		asm volatile("ldrh %w0, [%1]" : "=r"(v) : "r"(p) : "memory");
		break;
	case 4:
		asm volatile("ldr %w0, [%1]" : "=r"(v) : "r"(p) : "memory");
		break;
	case 8:
		asm volatile("ldr %x0, [%1]" : "=r"(v) : "r"(p) : "memory");
		break;
	}
}
#else
void bp_store(void *p, unsigned int size)
{
	switch (size) {
	case 1:
		asm volatile("movb $1, (%0)" : : "r"(p) : "memory");
		break;
	case 2:
		asm volatile("movw $1, (%0)" : : "r"(p) : "memory");
		break;
	case 4:
		asm volatile("movl $1, (%0)" : : "r"(p) : "memory");
		break;
#ifdef __x86_64__
	case 8:
		asm volatile("movq $1, (%0)" : : "r"(p) : "memory");
		break;
#endif
	}
	bp_settle(p);
}

void bp_load(void *p, unsigned int size)
{
	unsigned long v;

	switch (size) {
	case 1:
		asm volatile("movb (%1), %b0" : "=q"(v) : "r"(p) : "memory");
		break;
	case 2:
		asm volatile("movw (%1), %w0" : "=r"(v) : "r"(p) : "memory");
		break;
	case 4:
		asm volatile("movl (%1), %k0" : "=r"(v) : "r"(p) : "memory");
		break;
#ifdef __x86_64__
	case 8:
		asm volatile("movq (%1), %q0" : "=r"(v) : "r"(p) : "memory");
		break;
#endif
	}
	bp_settle(p);
}
#endif

void bp_store_times(void *p, unsigned int size, int times)
{
	while (times--)
		bp_store(p, size);
}

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
	"	.globl	bp_func, bp_func_insn, bp_func_next\n"
	"	.type	bp_func, @function\n"
	"bp_func:\n"
	"	nop\n"
	"bp_func_insn:\n"
	"	nop\n"
	"bp_func_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	bp_func, . - bp_func\n"
#ifndef __i386__
	"	.balign	16\n"
	"	.globl	bp_store_at, bp_store_insn, bp_store_next\n"
	"	.type	bp_store_at, @function\n"
	"bp_store_at:\n"
	"	nop\n"
	"bp_store_insn:\n"
#ifdef __aarch64__
	"	strb	w0, [x0]\n"
#else
	"	movb	$1, (%rdi)\n"
#endif
	"bp_store_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	bp_store_at, . - bp_store_at\n"
#endif
	".popsection\n");

/* ------------------------------------------------------------------ events */

struct perf_event_attr bp_attr(unsigned int type, const void *addr, unsigned long len)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = type,
		.bp_addr = (unsigned long)addr,
		.bp_len = len,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return attr;
}

struct perf_event_attr bp_attr_sw(__u64 config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return attr;
}

struct perf_event_attr bp_attr_w(const void *addr, unsigned long len)
{
	return bp_attr(HW_BREAKPOINT_W, addr, len);
}

struct perf_event_attr bp_attr_x(const void *addr)
{
	return bp_attr(HW_BREAKPOINT_X, addr, sizeof(long));
}

int bp_open_group(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	long fd = syscall(__NR_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : fd;
}

int bp_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return bp_open_group(attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int bp_open_w(const void *addr, unsigned long len)
{
	struct perf_event_attr attr = bp_attr_w(addr, len);

	return bp_open(&attr, 0, -1);
}

long long bp_count(int fd)
{
	__u64 count;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	return count;
}

bool bp_read(int fd, struct bp_reading *r)
{
	return read(fd, r, sizeof(*r)) == sizeof(*r);
}

struct bp_hits bp_hits(int fd)
{
	struct bp_hits hits;

	if (read(fd, &hits, sizeof(hits)) != sizeof(hits))
		memset(&hits, 0xff, sizeof(hits));
	return hits;
}

int bp_ioctl(int fd, unsigned long cmd, unsigned long arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int bp_enable(int fd)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

int bp_disable(int fd)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

int bp_modify(int fd, struct perf_event_attr *attr)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)attr);
}

__u64 bp_id(int fd)
{
	__u64 id = 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return 0;
	return id;
}

bool bp_has_config(__u64 config)
{
	/* By the number of the bit */
	static const char * const name[] = {
		"flexible", "process", "sigtrap_queue", "value", "changed"
	};
	char path[128];

	for (unsigned int bit = 0; config >> bit; bit++) {
		if (!(config & 1ULL << bit))
			continue;
		snprintf(path, sizeof(path), BP_PMU "/format/%s", name[bit]);
		if (access(path, F_OK))
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------- ptrace */

#ifdef __aarch64__
unsigned long bp_tracee_ip(pid_t pid)
{
	struct user_regs_struct regs = { };
	struct iovec iov = { &regs, sizeof(regs) };

	ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov);
	return regs.pc;
}

int bp_tracee_watch(pid_t pid, int nr, const void *addr, int len)
{
	struct user_hwdebug_state state;
	struct iovec iov = { &state, sizeof(state) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_ARM_HW_WATCH, &iov))
		return -errno;
	state.dbg_regs[nr].addr = (unsigned long)addr & ~7UL;
	/* Byte address select, stores, user mode, enabled */
	state.dbg_regs[nr].ctrl = ((1U << len) - 1) << ((unsigned long)addr & 7) << 5 |
				  2 << 3 | 2 << 1 | 1;
	iov.iov_len = offsetof(struct user_hwdebug_state, dbg_regs[nr + 1]);
	return ptrace(PTRACE_SETREGSET, pid, NT_ARM_HW_WATCH, &iov) ? -errno : 0;
}
#else
unsigned long bp_tracee_ip(pid_t pid)
{
	struct user_regs_struct regs = { };

	ptrace(PTRACE_GETREGS, pid, 0, &regs);
#ifdef __i386__
	return regs.eip;
#else
	return regs.rip;
#endif
}

int bp_tracee_watch(pid_t pid, int nr, const void *addr, int len)
{
	unsigned long dr7;

	errno = 0;
	dr7 = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[7]), 0);
	if (errno)
		return -errno;
	/* Length, with the code 2 for 8 bytes; stores; enabled */
	dr7 |= ((len == 8 ? 2UL : len - 1) << 2 | 1) << (16 + 4 * nr) | 1UL << 2 * nr;
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[nr]), addr) ||
	    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), dr7))
		return -errno;
	return 0;
}
#endif

/* -------------------------------------------------------------------- CPUs */

struct bp_cpus bp_online_cpus(void)
{
	struct bp_cpus cpus = { };
	char list[256] = "", *p = list;
	int fd, first, last;

	fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, list, sizeof(list) - 1) <= 0)
		list[0] = '0';
	if (fd >= 0)
		close(fd);

	while (*p >= '0' && *p <= '9') {
		first = strtol(p, &p, 10);
		last = *p == '-' ? strtol(p + 1, &p, 10) : first;
		for (; first <= last && cpus.nr < BP_MAX_CPUS; first++)
			cpus.cpu[cpus.nr++] = first;
		if (*p == ',')
			p++;
	}
	return cpus;
}

int bp_pin_task(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set) ? -errno : 0;
}

int bp_pin(int cpu)
{
	return bp_pin_task(0, cpu);
}

void bp_unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	sched_setaffinity(0, sizeof(set), &set);
}

/* ------------------------------------------------------------------- slots */

int bp_free_slots_with(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd[BP_SLOTS + 2], nr = 0, err = -ENOSPC;

	while (nr < BP_SLOTS + 2) {
		fd[nr] = bp_open(attr, pid, cpu);
		if (fd[nr] < 0) {
			err = fd[nr];
			break;
		}
		nr++;
	}
	for (int i = 0; i < nr; i++)
		close(fd[i]);
	return err == -ENOSPC ? nr : err;
}

int bp_free_slots(pid_t pid, int cpu)
{
	static __u64 quiet __aligned(8);
	struct perf_event_attr attr = bp_attr_w(&quiet, 1);

	attr.disabled = 1;
	return bp_free_slots_with(&attr, pid, cpu);
}

int bp_fill(pid_t pid, int cpu, int fd[BP_SLOTS])
{
	static unsigned long quiet[BP_SLOTS];
	int nr;

	for (nr = 0; nr < BP_SLOTS; nr++) {
		struct perf_event_attr attr = bp_attr_w(&quiet[nr], sizeof(quiet[nr]));

		fd[nr] = bp_open(&attr, pid, cpu);
		if (fd[nr] < 0)
			break;
	}
	return nr;
}

void bp_close(int *fd, int nr)
{
	while (nr--)
		close(fd[nr]);
}

/* ----------------------------------------------------------------- workers */

static pid_t bp_children[BP_MAX_CHILDREN];

static void bp_remember_child(pid_t pid)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (!bp_children[i]) {
			bp_children[i] = pid;
			return;
		}
	}
	abort();
}

void bp_forget_child(pid_t pid)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (bp_children[i] == pid)
			bp_children[i] = 0;
	}
}

pid_t bp_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		memset(bp_children, 0, sizeof(bp_children));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	} else if (pid > 0) {
		bp_remember_child(pid);
	}
	return pid;
}

int bp_wait(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	bp_forget_child(pid);
	if (WIFSIGNALED(status))
		return 256 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

int bp_in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = bp_fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(fn(arg));
	return bp_wait(pid);
}

int bp_become_nobody(void)
{
	if (setresgid(BP_NOBODY, BP_NOBODY, BP_NOBODY) ||
	    setresuid(BP_NOBODY, BP_NOBODY, BP_NOBODY))
		return -errno;
	return 0;
}

int bp_become_nobody_with(unsigned long long caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	prctl(PR_SET_KEEPCAPS, 1);
	if (bp_become_nobody())
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted = caps >> (32 * i);
		data[i].effective = caps >> (32 * i);
	}
	return syscall(__NR_capset, &header, data) ? -errno : 0;
}

int bp_as_nobody(int (*fn)(void *arg), void *arg)
{
	pid_t pid = bp_fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(bp_become_nobody() ? 255 : fn(arg));
	return bp_wait(pid);
}

void bp_work(bp_work_fn fn, void *arg, int in, int out)
{
	long result;
	int cmd;

	while (read(in, &cmd, sizeof(cmd)) == sizeof(cmd)) {
		result = fn(cmd, arg);
		if (write(out, &result, sizeof(result)) != sizeof(result))
			break;
	}
}

static void *bp_worker_thread(void *data)
{
	struct bp_worker *w = data;
	long tid = syscall(__NR_gettid);

	if (write(w->ans[1], &tid, sizeof(tid)) == sizeof(tid))
		bp_work(w->fn, w->arg, w->cmd[0], w->ans[1]);
	return NULL;
}

/*
 * The child closes the descriptors that it inherited, which would keep events open, and
 * answers before bp_start() returns.
 */
static void bp_worker_process(struct bp_worker *w)
{
	int in = fcntl(w->cmd[0], F_DUPFD, 200);
	int out = fcntl(w->ans[1], F_DUPFD, 200);
	long pid = getpid();

	syscall(__NR_close_range, 3, 199, 0);
	if (write(out, &pid, sizeof(pid)) == sizeof(pid))
		bp_work(w->fn, w->arg, in, out);
	_exit(0);
}

int bp_start(struct bp_worker *w, bp_work_fn fn, void *arg)
{
	long pid;

	memset(w, 0, sizeof(*w));
	w->fn = fn;
	w->arg = arg;
	if (pipe2(w->cmd, O_CLOEXEC) || pipe2(w->ans, O_CLOEXEC))
		return -errno;
	w->pid = bp_fork();
	if (w->pid < 0)
		return -errno;
	if (!w->pid)
		bp_worker_process(w);
	close(w->cmd[0]);
	close(w->ans[1]);
	return read(w->ans[0], &pid, sizeof(pid)) == sizeof(pid) ? 0 : -EIO;
}

int bp_start_thread(struct bp_worker *w, bp_work_fn fn, void *arg)
{
	long tid;
	int err;

	memset(w, 0, sizeof(*w));
	w->fn = fn;
	w->arg = arg;
	w->is_thread = true;
	if (pipe2(w->cmd, O_CLOEXEC) || pipe2(w->ans, O_CLOEXEC))
		return -errno;
	err = pthread_create(&w->thread, NULL, bp_worker_thread, w);
	if (err)
		return -err;
	if (read(w->ans[0], &tid, sizeof(tid)) != sizeof(tid))
		return -EIO;
	w->pid = tid;
	return 0;
}

long bp_do(struct bp_worker *w, int cmd)
{
	long result;

	if (write(w->cmd[1], &cmd, sizeof(cmd)) != sizeof(cmd) ||
	    read(w->ans[0], &result, sizeof(result)) != sizeof(result))
		return -EPIPE;
	return result;
}

int bp_stop(struct bp_worker *w)
{
	int status = 0;

	close(w->cmd[1]);
	if (w->is_thread) {
		pthread_join(w->thread, NULL);
		while (!syscall(__NR_tgkill, getpid(), w->pid, 0))
			sched_yield();
		close(w->cmd[0]);
		close(w->ans[1]);
	} else {
		status = bp_wait(w->pid);
	}
	close(w->ans[0]);
	return status;
}

/* ------------------------------------------------------- memory and kernel */

void *bp_map_page(int prot)
{
	void *page = mmap(BP_PAGE, BP_PAGE_SIZE, prot,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void *bp_map_shared(void)
{
	void *page = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/*
 * Reading all symbols takes seconds in an emulator, and each test is a process of its
 * own: the tests of a program share the symbols that were found. Symbols of modules may
 * move.
 */
#define NR_KSYMS	32

struct ksym {
	char name[64];
	unsigned long start;
	unsigned long end;
	bool in_module;
};

static struct ksyms {
	int nr;
	struct ksym ksym[NR_KSYMS];
} *ksyms;

static void __attribute__((constructor)) share_ksyms(void)
{
	void *shared = mmap(NULL, sizeof(*ksyms), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared != MAP_FAILED)
		ksyms = shared;
}

static bool recall_ksym(const char *name, struct ksym *ksym)
{
	for (int i = 0; ksyms && i < ksyms->nr; i++) {
		if (!strcmp(ksyms->ksym[i].name, name)) {
			*ksym = ksyms->ksym[i];
			return true;
		}
	}
	return false;
}

static void remember_ksym(const char *name, struct ksym *ksym)
{
	if (!ksyms || ksyms->nr == NR_KSYMS || ksym->in_module ||
	    strlen(name) >= sizeof(ksym->name))
		return;
	strcpy(ksym->name, name);
	ksyms->ksym[ksyms->nr] = *ksym;
	ksyms->nr++;
}

/* A line is "address type name", with the name of a module in brackets after a tab. */
static void read_ksym(FILE *f, const char *name, struct ksym *ksym)
{
	char line[512], *rest;
	unsigned long addr;

	while (!ksym->end && fgets(line, sizeof(line), f)) {
		addr = strtoul(line, &rest, 16);
		if (ksym->start) {
			ksym->end = addr > ksym->start ? addr : 0;
		} else if (strlen(rest) > 3) {
			rest += 3;
			ksym->in_module = strchr(rest, '\t');
			rest[strcspn(rest, "\t\n")] = '\0';
			if (!strcmp(rest, name))
				ksym->start = addr;
		}
	}
}

static bool find_ksym(const char *name, struct ksym *ksym)
{
	FILE *f;

	if (recall_ksym(name, ksym))
		return true;
	*ksym = (struct ksym) { };
	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return false;
	read_ksym(f, name, ksym);
	fclose(f);
	if (!ksym->start)
		return false;
	remember_ksym(name, ksym);
	return true;
}

void *bp_ksym(const char *name)
{
	struct ksym ksym;

	return find_ksym(name, &ksym) ? (void *)ksym.start : NULL;
}

bool bp_ksym_range(const char *name, unsigned long *start, unsigned long *end)
{
	struct ksym ksym;

	if (!find_ksym(name, &ksym) || ksym.in_module)
		return false;
	*start = ksym.start;
	*end = ksym.end;
	return true;
}

int bp_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	close(fd);
	return n < 0 ? -EIO : 0;
}

int bp_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

bool bp_has_watch_events(void)
{
	static char text[64 << 10];

	return !access("/sys/kernel/tracing/dynamic_events", W_OK) &&
	       !bp_read_file("/sys/kernel/tracing/README", text, sizeof(text)) &&
	       strstr(text, "w[:[<group>/]");
}

int bp_enable_cgroups(void)
{
	const char *path = "/sys/fs/cgroup/cgroup.subtree_control";

	return bp_write_file(path, "+pids") ? bp_write_file(path, "+cpuset") : 0;
}

long bp_read_number(const char *path)
{
	char text[32], *end;
	long value;

	if (bp_read_file(path, text, sizeof(text)))
		return -1;
	value = strtol(text, &end, 10);
	return end > text && !strcmp(end, "\n") ? value : -1;
}

/*
 * A task has its new state before it leaves the CPU. A read of /proc/PID/syscall waits
 * until the task has left, and returns "running" if its state changes meanwhile. If the
 * file does not exist or requires more permissions, wait a little longer instead.
 */
static bool has_left_cpu(pid_t pid)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	if (!bp_read_file(path, text, sizeof(text)))
		return strcmp(text, "running\n");
	usleep(10000);
	return true;
}

void bp_wait_for_state(pid_t pid, char state)
{
	char path[64], text[512], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		usleep(1000);
		if (bp_read_file(path, text, sizeof(text)))
			return;
		p = strrchr(text, ')');
	} while (!p || p[2] != state || !has_left_cpu(pid));
}

int bp_load_module(const char *path, const char *parameters)
{
	struct utsname kernel;
	char file[256];
	int fd, err;

	uname(&kernel);
	snprintf(file, sizeof(file), "/lib/modules/%s/kernel/%s.ko", kernel.release, path);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = syscall(__NR_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	return err;
}

int bp_remove_module(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	/* The events of a task that was killed are released some time after waitpid(). */
	for (int ms = 0; ms < 60000; ms++) {
		if (!syscall(__NR_delete_module, name, O_NONBLOCK))
			return 0;
		if (errno != EAGAIN)
			break;
		usleep(1000);
	}
	return -errno;
}

#define CPU_ONLINE	"/sys/devices/system/cpu/cpu%d/online"

int bp_cpu_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), CPU_ONLINE, cpu);
	return bp_write_file(path, online ? "1" : "0");
}

bool bp_can_plug(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), CPU_ONLINE, cpu);
	return !access(path, W_OK);
}

unsigned int bp_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16;
}

__u64 bp_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

bool bp_has_patience(__u64 start)
{
	return bp_now(CLOCK_MONOTONIC) - start < 60 * 1000000000ULL;
}

void bp_spin(int ms)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + ms * 1000000ULL;

	while (bp_now(CLOCK_MONOTONIC) < end)
		;
}

int bp_rounds(int rounds)
{
	static int slow = -1;

	if (slow < 0)
		slow = !access("/proc/lockdep", F_OK);
	return slow ? (rounds + 3) / 4 : rounds;
}

long bp_nr_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* ------------------------------------------------------------- ring buffer */

int bp_ring_map(struct bp_ring *ring, int fd, int data_pages, int prot)
{
	size_t size = (1 + data_pages) * sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	ring->page = p == MAP_FAILED ? NULL : p;
	ring->data_size = size - sysconf(_SC_PAGESIZE);
	return p == MAP_FAILED ? -errno : 0;
}

void bp_ring_unmap(struct bp_ring *ring)
{
	munmap(ring->page, ring->data_size + sysconf(_SC_PAGESIZE));
	ring->page = NULL;
}

bool bp_ring_next(struct bp_ring *ring, union bp_record *rec)
{
	char *data = (char *)ring->page + sysconf(_SC_PAGESIZE);
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = ring->page->data_tail;
	size_t size;

	if (head == tail)
		return false;
	for (size_t i = 0; i < sizeof(rec->header); i++)
		rec->bytes[i] = data[(tail + i) % ring->data_size];
	size = rec->header.size;
	for (size_t i = 0; i < size; i++)
		rec->bytes[i] = data[(tail + i) % ring->data_size];
	__atomic_store_n(&ring->page->data_tail, tail + size, __ATOMIC_RELEASE);
	return true;
}

/* ---------------------------------------------------------------- teardown */

static void bp_kill_children(void)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (bp_children[i]) {
			kill(bp_children[i], SIGKILL);
			waitpid(bp_children[i], NULL, 0);
			bp_children[i] = 0;
		}
	}
}

void bp_teardown(struct __test_metadata *_metadata)
{
	struct bp_cpus cpus = bp_online_cpus();

	bp_kill_children();
	syscall(__NR_close_range, 3, ~0U, 0);
	bp_unpin();

	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	if (geteuid())
		return;
	for (int i = 0; i < cpus.nr; i++) {
		EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[i])) {
			TH_LOG("slots are missing on CPU %d", cpus.cpu[i]);
		}
	}
}
