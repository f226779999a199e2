/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers that all breakpoint tests share.
 *
 * Every test runs in a process of its own and ends in bp_teardown(). This closes what the test
 * has left open and asserts a postcondition of all tests: every breakpoint register is available
 * again, for this task and on each CPU. A CPU can only be filled up if no task has a claim there,
 * not even one that has exited, so the check covers the whole machine.
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

/*
 * kselftest_harness.h defines functions, because it is meant for programs with one C
 * file. A C file without tests defines BP_NO_TESTS, which makes its copies weak.
 */
#ifdef BP_NO_TESTS
#pragma weak _fixture_global
#pragma weak __active_test
#pragma weak __run_test
#pragma weak __wait_for_test
static int test_harness_run(int argc, char **argv) __attribute__((__unused__));
#endif

#include "../kselftest_harness.h"

#include "bp_arch.h"
#include "bp_emulator.h"

/* A kernel with debug options in an emulator is slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#ifndef TRAP_PERF
#define TRAP_PERF		6
#endif
#ifndef TRAP_PERF_FLAG_ASYNC
#define TRAP_PERF_FLAG_ASYNC	1
#endif
#ifndef __aligned
#define __aligned(x) __attribute__((__aligned__(x)))
#endif

/* Number of address registers, DR0 to DR3 */
#define BP_SLOTS	4
#define BP_MAX_CPUS	64
#define BP_NOBODY	65534

/* Bits of attr.config: HW_BREAKPOINT_FLEXIBLE, _PROCESS, _SIGTRAP_QUEUE, _VALUE, _CHANGED */
#define BP_FLEXIBLE		1ULL
#define BP_PROCESS		2ULL
#define BP_SIGTRAP_QUEUE	4ULL
#define BP_VALUE		8ULL
#define BP_CHANGED		16ULL

/* ---------------------------------------------------------------- accesses */

/*
 * Address of the test page. An event of a CPU counts the accesses of all tasks to the
 * virtual address, so no other program may map a page there.
 */
#ifdef __LP64__
#define BP_PAGE		((char *)0x234500000000UL)
#else
#define BP_PAGE		((char *)0x34500000UL)
#endif
#define BP_PAGE_SIZE	4096

/*
 * One access of @size bytes by one instruction. The compiler may split or merge a C
 * assignment, which would change the number of hits.
 */
void bp_store(void *p, unsigned int size);
void bp_load(void *p, unsigned int size);
void bp_store_times(void *p, unsigned int size, int times);

/*
 * A function with known instructions. bp_store_at() stores one byte with the
 * instruction at bp_store_insn; the next one is at bp_store_next.
 */
void bp_func(void);
void bp_store_at(void *p);
extern const char bp_func_insn[], bp_func_next[];
extern const char bp_store_insn[], bp_store_next[];

/* The instruction pointer of a hit by bp_store_at() */
#define BP_STORE_IP	((unsigned long)(BP_AFTER_ACCESS ? bp_store_next : bp_store_insn))

/* ------------------------------------------------------------------ events */

/* A breakpoint that counts in user mode and is enabled when it is opened. */
struct perf_event_attr bp_attr(unsigned int type, const void *addr, unsigned long len);
struct perf_event_attr bp_attr_w(const void *addr, unsigned long len);
struct perf_event_attr bp_attr_x(const void *addr);

/*
 * The length of a word of the kernel, which may have other words than the program: the length of
 * instruction breakpoints, and the longest that one register watches. See mkroot.
 */
#ifndef BP_WORD
#define BP_WORD		8
#endif

/* A software event that counts in user mode. */
struct perf_event_attr bp_attr_sw(__u64 config);

/* Returns the file descriptor or a negative errno. */
int bp_open_group(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);
int bp_open(struct perf_event_attr *attr, pid_t pid, int cpu);

/* Opens a write breakpoint of the current task that counts. */
int bp_open_w(const void *addr, unsigned long len);

/* Returns the count, or -1 if read() fails. */
long long bp_count(int fd);

/* Result of read() with both times in read_format */
struct bp_reading {
	__u64 count;
	__u64 enabled;
	__u64 running;
};

/* Reads the count and both times; returns false if read() fails. */
bool bp_read(int fd, struct bp_reading *r);

/* Result of read() with PERF_FORMAT_LOST in read_format */
struct bp_hits {
	__u64 count;
	__u64 lost;
};

/* Sets all bits if read() fails. */
struct bp_hits bp_hits(int fd);

int bp_ioctl(int fd, unsigned long cmd, unsigned long arg);
int bp_enable(int fd);
int bp_disable(int fd);
int bp_modify(int fd, struct perf_event_attr *attr);
__u64 bp_id(int fd);

/* Does the kernel list all these bits of attr.config? */
bool bp_has_config(__u64 config);

/* -------------------------------------------------------------------- CPUs */

struct bp_cpus {
	int nr;
	int cpu[BP_MAX_CPUS];
};

/* The online CPUs, in order. */
struct bp_cpus bp_online_cpus(void);

int bp_pin(int cpu);
int bp_pin_task(pid_t pid, int cpu);
void bp_unpin(void);

#define BP_NEED_ROOT()							\
	do {								\
		if (geteuid())						\
			SKIP(return, "needs root");			\
	} while (0)

/* @has: a constant of bp_arch.h, or what this kernel can do */
#define BP_NEED(has, why_not)						\
	do {								\
		if (!(has))						\
			SKIP(return, why_not);				\
	} while (0)

/* @config: the bits of attr.config without which the test has no subject */
#define BP_NEED_CONFIG(config)						\
	BP_NEED(bp_has_config(config), "this kernel has no such bit of attr.config")

#define BP_NEED_CPUS(cpus, want)					\
	do {								\
		if ((cpus).nr < (want))					\
			SKIP(return, "needs %d online CPUs", want);	\
	} while (0)

/* ------------------------------------------------------------------- slots */

/*
 * Returns how many more breakpoints can be opened for @pid on @cpu, and closes all
 * of them again. Returns a negative errno if the last open failed with another error
 * than ENOSPC.
 */
int bp_free_slots_with(struct perf_event_attr *attr, pid_t pid, int cpu);
int bp_free_slots(pid_t pid, int cpu);

/* Opens breakpoints until ENOSPC; returns their number, and the descriptors in fd[]. */
int bp_fill(pid_t pid, int cpu, int fd[BP_SLOTS]);
void bp_close(int *fd, int nr);

/* ----------------------------------------------------------------- workers */

/*
 * A worker is a process or a thread that executes one command at a time and answers
 * when the command is done. This fixes the order of events, so that no test depends
 * on a delay.
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

void bp_forget_child(pid_t pid);

/* Forks a child that bp_teardown() kills. At most BP_MAX_CHILDREN may exist. */
pid_t bp_fork(void);

/* Returns the exit status, or 256 plus the signal that killed the child. */
int bp_wait(pid_t pid);

/* Runs fn(arg) in a child, and returns its result, which must be 0 to 255. */
int bp_in_child(int (*fn)(void *arg), void *arg);

/* Drops all privileges; bp_become_nobody_with() keeps the capabilities in @caps. */
int bp_become_nobody(void);
int bp_become_nobody_with(unsigned long long caps);

/* Like bp_in_child(), without any privileges. */
int bp_as_nobody(int (*fn)(void *arg), void *arg);

/* Executes commands from @in until the end of the file, and answers to @out. */
void bp_work(bp_work_fn fn, void *arg, int in, int out);

/* Start a process or a thread as worker; w->pid is its tid. */
int bp_start(struct bp_worker *w, bp_work_fn fn, void *arg);
int bp_start_thread(struct bp_worker *w, bp_work_fn fn, void *arg);

/* Has the worker carry out a command; returns what its function returned. */
long bp_do(struct bp_worker *w, int cmd);

/*
 * Ends the worker and waits until it has exited. When pthread_join() returns, the
 * thread may still have events; they are released when its tid no longer exists.
 */
int bp_stop(struct bp_worker *w);

/* ------------------------------------------------------- memory and kernel */

/* Maps the test page. */
void *bp_map_page(int prot);

/* Memory that children share with this process. */
void *bp_map_shared(void);

/* The address of a kernel symbol, or NULL. */
void *bp_ksym(const char *name);

/* May root watch instructions of the kernel? x86 refuses it without kprobes. */
#define bp_can_watch_kernel_code()	(!BP_X86 || bp_ksym("register_kprobe"))

/* The addresses from a symbol, which is not that of a module, to the next one. */
bool bp_ksym_range(const char *name, unsigned long *start, unsigned long *end);

/* Reads or writes a whole small file; the result is 0 or a negative errno. */
int bp_read_file(const char *path, char *buf, size_t size);
int bp_write_file(const char *path, const char *text);

/* Has tracefs, which root can write, watch events? */
bool bp_has_watch_events(void);

/*
 * Makes perf_event available to child cgroups, which takes another controller that is enabled
 * in the root. Returns 0 or a negative errno.
 */
int bp_enable_cgroups(void);

/* PMUs in sysfs: all, that of breakpoints, and that of the module BP_PMU_MODULE_PATH */
#define BP_PMUS		"/sys/bus/event_source/devices/"
#define BP_PMU		BP_PMUS "breakpoint"
#define BP_TEST_PMU	BP_PMUS "breakpoint_test_hw"

/* The number that is all of a file, or -1. */
long bp_read_number(const char *path);

/*
 * Waits until /proc shows the task in @state, such as 'S' for sleeping, and the task has
 * left its CPU: a worker may answer before it sleeps. Not for 'R'. Returns at once if
 * there is no such task.
 */
void bp_wait_for_state(pid_t pid, char state);

int bp_cpu_online(int cpu, bool online);
bool bp_can_plug(int cpu);

#define BP_NEED_HOTPLUG(cpu)						\
	do {								\
		if (!bp_can_plug(cpu))					\
			SKIP(return, "CPU %d cannot be taken offline", cpu); \
	} while (0)

/* The next number, 0 to 65535, of a random sequence that *@state determines */
unsigned int bp_random(unsigned int *state);

__u64 bp_now(clockid_t clock);

/*
 * True for a minute after @start, a time of CLOCK_MONOTONIC. A loop that waits for what a
 * busy host may delay ends then, so that the test reports what is missing before a time
 * limit ends it.
 */
bool bp_has_patience(__u64 start);

/* A quarter of @rounds on a kernel with lockdep, which is slow; else all of them. */
int bp_rounds(int rounds);

/* Runs for that many milliseconds, without a system call that sleeps. */
void bp_spin(int ms);

/* Number of times that the calling thread has given up its CPU by itself */
long bp_nr_sleeps(void);

/*
 * Load and remove a module of this kernel, given by its path in the kernel source
 * without ".ko". Both return 0 or a negative errno: -ENOENT if the kernel does not have
 * the module. bp_remove_module() waits until the last event of the module's PMU is
 * released.
 */
int bp_load_module(const char *path, const char *parameters);
int bp_remove_module(const char *path);

/* The module with the PMU for tests */
#define BP_PMU_MODULE		"hw_breakpoint_test_pmu"
#define BP_PMU_MODULE_PATH	"kernel/events/" BP_PMU_MODULE

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

int bp_ring_map(struct bp_ring *ring, int fd, int data_pages, int prot);
void bp_ring_unmap(struct bp_ring *ring);

/* Takes the oldest record out of the ring; returns false if there is none. */
bool bp_ring_next(struct bp_ring *ring, union bp_record *rec);

/* ---------------------------------------------------------------- teardown */

/* Closes and kills what the test has left; expects every register to be available. */
void bp_teardown(struct __test_metadata *_metadata);

#endif /* BP_TEST_H */
