/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common ground of the breakpoint tests.
 *
 * Every test runs in a process of its own and ends in bp_teardown(), which
 * gives back whatever the test still holds and then asserts the postcondition
 * all tests share: each breakpoint register is free again, for this task and on
 * each CPU. A CPU can be filled up only if no task, alive or dead, still holds
 * a slot there, so the second half speaks for the whole machine.
 */
#ifndef BP_TEST_H
#define BP_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

/* A kernel with all its checks on, in an emulator, takes its time. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#ifndef TRAP_PERF
#define TRAP_PERF		6
#endif
#ifndef TRAP_PERF_FLAG_ASYNC
#define TRAP_PERF_FLAG_ASYNC	1
#endif
#ifndef __maybe_unused
#define __maybe_unused __attribute__((__unused__))
#endif
#ifndef __aligned
#define __aligned(x) __attribute__((__aligned__(x)))
#endif

/* Debug registers that hold an address: DR0 to DR3. */
#define BP_SLOTS	4
#define BP_MAX_CPUS	64
#define BP_NOBODY	65534

/* ---------------------------------------------------------------- accesses */

/*
 * A page where no other program has one: an event of a CPU counts the accesses
 * of every task there to the virtual address, whatever it means to them.
 */
#ifdef __LP64__
#define BP_PAGE		((char *)0x234500000000UL)
#else
#define BP_PAGE		((char *)0x34500000UL)
#endif
#define BP_PAGE_SIZE	4096

/*
 * QEMU's translator remembers that a data breakpoint was hit until an access to
 * the page misses it, and reports it once more if one in another register is
 * hit before that. So an access to the test page, the place for tests with more
 * than one data breakpoint, is followed by one to its last byte, which nobody
 * watches.
 */
static inline void bp_settle(void *p)
{
	if ((char *)p >= BP_PAGE && (char *)p < BP_PAGE + BP_PAGE_SIZE)
		asm volatile("orb $0, (%0)" : : "r"(BP_PAGE + BP_PAGE_SIZE - 1) : "memory");
}

/*
 * One instruction, one access of exactly the size asked for: what the compiler
 * makes of a C assignment is no business of a test that counts hits.
 */
static inline void bp_store(void *p, unsigned int size)
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

static inline void bp_load(void *p, unsigned int size)
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

static inline void bp_store_times(void *p, unsigned int size, int times)
{
	while (times--)
		bp_store(p, size);
}

/*
 * A function with known instructions. bp_store_at() stores one byte with the
 * instruction at bp_store_insn; the next one is at bp_store_next.
 */
void bp_func(void);
void bp_store_at(void *p);
extern const char bp_func_insn[], bp_func_next[];
extern const char bp_store_insn[], bp_store_next[];

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
	"	.type	bp_func, @function\n"
	"bp_func:\n"
	"	nop\n"
	"bp_func_insn:\n"
	"	nop\n"
	"bp_func_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	bp_func, . - bp_func\n"
#ifdef __x86_64__
	"	.balign	16\n"
	"	.type	bp_store_at, @function\n"
	"bp_store_at:\n"
	"	nop\n"
	"bp_store_insn:\n"
	"	movb	$1, (%rdi)\n"
	"bp_store_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	bp_store_at, . - bp_store_at\n"
#endif
	".popsection\n");

/* ------------------------------------------------------------------ events */

/* A counting breakpoint in user mode that is enabled at once. */
static inline struct perf_event_attr bp_attr(unsigned int type, const void *addr,
					     unsigned long len)
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

static inline struct perf_event_attr bp_attr_w(const void *addr, unsigned long len)
{
	return bp_attr(HW_BREAKPOINT_W, addr, len);
}

static inline struct perf_event_attr bp_attr_x(const void *addr)
{
	return bp_attr(HW_BREAKPOINT_X, addr, sizeof(long));
}

/* Returns the file descriptor or a negative errno. */
static inline int bp_open_group(struct perf_event_attr *attr, pid_t pid, int cpu,
				int group, unsigned long flags)
{
	long fd = syscall(__NR_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : fd;
}

static inline int bp_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return bp_open_group(attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A counting write breakpoint of the running task. */
static inline int bp_open_w(const void *addr, unsigned long len)
{
	struct perf_event_attr attr = bp_attr_w(addr, len);

	return bp_open(&attr, 0, -1);
}

/*
 * The first event of a task in the system patches the scheduler, the last one
 * patches it back, and QEMU's translator now and then executes the int3 that
 * was there in between. So each program holds an event that never counts.
 */
static void __attribute__((constructor)) bp_hold_scheduler_patched(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	bp_open(&attr, 0, -1);
}

/* The count, or -1 where read() fails. */
static inline long long bp_count(int fd)
{
	__u64 count;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	return count;
}

/* Of an event with both times in its read_format */
struct bp_reading {
	__u64 count;
	__u64 enabled;
	__u64 running;
};

/*
 * perf takes one time after the other.  What happens in between that brings both
 * up to date is seen of the second alone: so what cannot be is asked for again.
 */
static inline bool bp_read(int fd, struct bp_reading *r)
{
	for (int i = 0; i < 10; i++) {
		if (read(fd, r, sizeof(*r)) != sizeof(*r))
			return false;
		if (r->running <= r->enabled)
			break;
	}
	return true;
}

/* Of an event with PERF_FORMAT_LOST in its read_format */
struct bp_hits {
	__u64 count;
	__u64 lost;
};

/* All bits are set where read() fails. */
static inline struct bp_hits bp_hits(int fd)
{
	struct bp_hits hits;

	if (read(fd, &hits, sizeof(hits)) != sizeof(hits))
		memset(&hits, 0xff, sizeof(hits));
	return hits;
}

static inline int bp_ioctl(int fd, unsigned long cmd, unsigned long arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static inline int bp_enable(int fd)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static inline int bp_disable(int fd)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static inline int bp_modify(int fd, struct perf_event_attr *attr)
{
	return bp_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)attr);
}

static inline __u64 bp_id(int fd)
{
	__u64 id = 0;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return 0;
	return id;
}

/* -------------------------------------------------------------------- CPUs */

/*
 * QEMU's translator knows debug registers, with three faults that a test of the
 * kernel must allow for: it reports one data breakpoint an instruction, none of
 * a locked one, and takes an unaligned access for one to the aligned words it
 * lies in. Its CPUID leaf tells; on a processor nothing is allowed for.
 */
static inline bool bp_emulated(void)
{
	unsigned int eax = 0x40000000, sig[3];

	asm volatile("cpuid" : "+a"(eax), "=b"(sig[0]), "=c"(sig[1]), "=d"(sig[2]));
	return !memcmp(sig, "TCGTCGTCGTCG", sizeof(sig));
}

struct bp_cpus {
	int nr;
	int cpu[BP_MAX_CPUS];
};

/* The online CPUs, in order. */
static inline struct bp_cpus bp_online_cpus(void)
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

static inline int bp_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static inline void bp_unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	sched_setaffinity(0, sizeof(set), &set);
}

#define BP_NEED_ROOT()							\
	do {								\
		if (geteuid())						\
			SKIP(return, "needs root");			\
	} while (0)

#define BP_NEED_CPUS(cpus, want)					\
	do {								\
		if ((cpus).nr < (want))					\
			SKIP(return, "needs %d online CPUs", want);	\
	} while (0)

/* ------------------------------------------------------------------- slots */

/*
 * How many more breakpoints can be opened at this place? All of them are closed
 * again. Anything but ENOSPC as the reason for the end is returned as such.
 */
static inline int bp_free_slots_with(struct perf_event_attr *attr, pid_t pid, int cpu)
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

static inline int bp_free_slots(pid_t pid, int cpu)
{
	static __u64 quiet __aligned(8);
	struct perf_event_attr attr = bp_attr_w(&quiet, 1);

	attr.disabled = 1;
	return bp_free_slots_with(&attr, pid, cpu);
}

/* Fills the place up; returns how many it took, their descriptors in fd[]. */
static inline int bp_fill(pid_t pid, int cpu, int fd[BP_SLOTS])
{
	static __u64 quiet[BP_SLOTS] __aligned(8);
	int nr;

	for (nr = 0; nr < BP_SLOTS; nr++) {
		struct perf_event_attr attr = bp_attr_w(&quiet[nr], 8);

		fd[nr] = bp_open(&attr, pid, cpu);
		if (fd[nr] < 0)
			break;
	}
	return nr;
}

static inline void bp_close(int *fd, int nr)
{
	while (nr--)
		close(fd[nr]);
}

/* ----------------------------------------------------------------- workers */

/*
 * A worker is a process or a thread that does what it is told, one command at
 * a time, and answers when it is done. So the order of events is fixed, and no
 * test has to wait for time to pass.
 */
typedef long (*bp_work_fn)(int cmd, void *arg);

struct bp_worker {
	bp_work_fn fn;
	void *arg;
	pid_t pid;
	int cmd[2];
	int ans[2];
	bool is_thread;
	pthread_t thread;
};

#define BP_MAX_CHILDREN	64
static pid_t bp_children[BP_MAX_CHILDREN] __maybe_unused;

static inline void bp_remember_child(pid_t pid)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (!bp_children[i]) {
			bp_children[i] = pid;
			return;
		}
	}
}

static inline void bp_forget_child(pid_t pid)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (bp_children[i] == pid)
			bp_children[i] = 0;
	}
}

/* A fork whose child dies with this process, or at the latest in teardown. */
static inline pid_t bp_fork(void)
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

/* Returns the exit status, or 256 plus the signal that killed the child. */
static inline int bp_wait(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	bp_forget_child(pid);
	if (WIFSIGNALED(status))
		return 256 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* Runs fn(arg) in a child; its result, 0 to 255, is the child's exit status. */
static inline int bp_in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = bp_fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(fn(arg));
	return bp_wait(pid);
}

static inline int bp_become_nobody(void)
{
	if (setresgid(BP_NOBODY, BP_NOBODY, BP_NOBODY) ||
	    setresuid(BP_NOBODY, BP_NOBODY, BP_NOBODY))
		return -errno;
	return 0;
}

/* The same as somebody without any privilege. */
static inline int bp_as_nobody(int (*fn)(void *arg), void *arg)
{
	pid_t pid = bp_fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(bp_become_nobody() ? 255 : fn(arg));
	return bp_wait(pid);
}

static inline void bp_work(bp_work_fn fn, void *arg, int in, int out)
{
	long result;
	int cmd;

	while (read(in, &cmd, sizeof(cmd)) == sizeof(cmd)) {
		result = fn(cmd, arg);
		if (write(out, &result, sizeof(result)) != sizeof(result))
			break;
	}
}

static inline void *bp_worker_thread(void *data)
{
	struct bp_worker *w = data;
	long tid = syscall(__NR_gettid);

	if (write(w->ans[1], &tid, sizeof(tid)) == sizeof(tid))
		bp_work(w->fn, w->arg, w->cmd[0], w->ans[1]);
	return NULL;
}

/*
 * The child keeps none of the descriptors, as an event it held would live on,
 * and says so before bp_start() returns.
 */
static inline void bp_worker_process(struct bp_worker *w)
{
	int in = fcntl(w->cmd[0], F_DUPFD, 200);
	int out = fcntl(w->ans[1], F_DUPFD, 200);
	long pid = getpid();

	syscall(__NR_close_range, 3, 199, 0);
	if (write(out, &pid, sizeof(pid)) == sizeof(pid))
		bp_work(w->fn, w->arg, in, out);
	_exit(0);
}

static inline int bp_start(struct bp_worker *w, bp_work_fn fn, void *arg)
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

/* w->pid is the thread's tid. */
static inline int bp_start_thread(struct bp_worker *w, bp_work_fn fn, void *arg)
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

/* Has the worker carry out a command; returns what its function returned. */
static inline long bp_do(struct bp_worker *w, int cmd)
{
	long result;

	if (write(w->cmd[1], &cmd, sizeof(cmd)) != sizeof(cmd) ||
	    read(w->ans[0], &result, sizeof(result)) != sizeof(result))
		return -EPIPE;
	return result;
}

/*
 * Ends the worker and waits until it is gone. pthread_join() returns while the
 * thread still has its events to give back; it is gone when its tid is.
 */
static inline int bp_stop(struct bp_worker *w)
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

static inline void *bp_map_page(int prot)
{
	void *page = mmap(BP_PAGE, BP_PAGE_SIZE, prot,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* Memory that children share with this process. */
static inline void *bp_map_shared(void)
{
	void *page = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* The address of a kernel symbol, or NULL. */
static inline void *bp_ksym(const char *name)
{
	char line[512], type, sym[256];
	unsigned long addr, found = 0;
	FILE *f;

	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return NULL;
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %255s", &addr, &type, sym) == 3 &&
		    !strcmp(sym, name))
			found = addr;
	}
	fclose(f);
	return (void *)found;
}

/* Reads or writes a whole small file; the result is 0 or a negative errno. */
static inline int bp_read_file(const char *path, char *buf, size_t size)
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

static inline int bp_write_file(const char *path, const char *text)
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

/*
 * Waits until the task is in a state as /proc says it, 'S' for asleep: a worker that
 * has answered may still have to go to sleep. Returns at once if there is no such task.
 */
static inline void bp_wait_for_state(pid_t pid, char state)
{
	char path[64], text[512], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	/* Who goes to sleep says so a little before. */
	do {
		usleep(1000);
		if (bp_read_file(path, text, sizeof(text)))
			return;
		p = strrchr(text, ')');
	} while (!p || p[2] != state);
}

static inline int bp_cpu_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return bp_write_file(path, online ? "1" : "0");
}

static inline __u64 bp_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* ------------------------------------------------------------- ring buffer */

struct bp_ring {
	struct perf_event_mmap_page *page;
	size_t data_size;
};

union bp_record {
	struct perf_event_header header;
	__u64 u64[8192];
	char bytes[65536];
};

static inline int bp_ring_map(struct bp_ring *ring, int fd, int data_pages, int prot)
{
	size_t size = (1 + data_pages) * sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	ring->page = p == MAP_FAILED ? NULL : p;
	ring->data_size = size - sysconf(_SC_PAGESIZE);
	return p == MAP_FAILED ? -errno : 0;
}

static inline void bp_ring_unmap(struct bp_ring *ring)
{
	munmap(ring->page, ring->data_size + sysconf(_SC_PAGESIZE));
	ring->page = NULL;
}

/* Takes the oldest record out of the ring; false if there is none. */
static inline bool bp_ring_next(struct bp_ring *ring, union bp_record *rec)
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

static inline void bp_kill_children(void)
{
	for (int i = 0; i < BP_MAX_CHILDREN; i++) {
		if (bp_children[i]) {
			kill(bp_children[i], SIGKILL);
			waitpid(bp_children[i], NULL, 0);
			bp_children[i] = 0;
		}
	}
}

/* Everything is given back, and every register is free again. */
static inline void bp_teardown(struct __test_metadata *_metadata)
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

#endif /* BP_TEST_H */
