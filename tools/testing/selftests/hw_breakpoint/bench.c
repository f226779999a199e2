// SPDX-License-Identifier: GPL-2.0
/*
 * What operations on breakpoints cost.
 *
 * Prints "NAME MEDIAN" for each, in nanoseconds of CLOCK_MONOTONIC. Where the
 * clock of a virtual machine counts instructions these are instructions, and
 * the same at each run. Needs one CPU and root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	401
#define SLOTS	4

static volatile uint64_t words[16];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, void (*op)(void *arg), void *arg)
{
	static uint64_t took[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = now();

		op(arg);
		took[i] = now() - start;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare);
	printf("%s %llu\n", name, (unsigned long long)took[ROUNDS / 2]);
	fflush(stdout);
}

static struct perf_event_attr watch(volatile void *address)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_BREAKPOINT,
		.size		= sizeof(struct perf_event_attr),
		.bp_type	= HW_BREAKPOINT_W,
		.bp_addr	= (unsigned long)address,
		.bp_len		= HW_BREAKPOINT_LEN_8,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, 0);
}

static int must_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = open_event(attr, pid, cpu);

	if (fd < 0)
		die("perf_event_open");
	return fd;
}

/* Holds some registers of this task while others are measured. */
static int held[SLOTS];

static void hold(int nr)
{
	for (int i = 0; i < nr; i++) {
		struct perf_event_attr attr = watch(&words[8 + i]);

		held[i] = must_open(&attr, 0, -1);
	}
}

static void let_go(int nr)
{
	for (int i = 0; i < nr; i++)
		close(held[i]);
}

static void op_nothing(void *arg)
{
	syscall(SYS_getppid);
}

static void op_open_close(void *arg)
{
	close(must_open(arg, 0, -1));
}

static void op_open_close_cpu(void *arg)
{
	close(must_open(arg, -1, 0));
}

static void op_refused(void *arg)
{
	if (open_event(arg, 0, -1) >= 0 || errno != ENOSPC)
		die("a fifth breakpoint");
}

static void op_store(void *arg)
{
	words[0] = 1;
}

static void op_read(void *arg)
{
	uint64_t count;

	if (read(*(int *)arg, &count, sizeof(count)) != sizeof(count))
		die("read");
}

static void op_toggle(void *arg)
{
	ioctl(*(int *)arg, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(*(int *)arg, PERF_EVENT_IOC_ENABLE, 0);
}

/* A byte to the other process and one back: two context switches */
static int there[2], back[2];

static void op_switch(void *arg)
{
	char byte = 0;

	if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
		die("pipe");
}

static pid_t start_echo(void)
{
	pid_t pid;

	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork();
	if (!pid) {
		char byte;

		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	return pid;
}

static void stop_echo(pid_t pid)
{
	close(there[1]);
	close(back[0]);
	waitpid(pid, NULL, 0);
}

static void bench_switches(void)
{
	static const int numbers[] = { 0, 1, 4 };
	pid_t pid = start_echo();
	char name[32];

	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		hold(numbers[i]);
		snprintf(name, sizeof(name), "switch_%d", numbers[i]);
		measure(name, op_switch, NULL);
		let_go(numbers[i]);
	}
	stop_echo(pid);
}

static void bench_open(void)
{
	struct perf_event_attr attr = watch(&words[0]);

	/* The first event of a task in the system has a price of its own. */
	let_go((hold(1), 1));
	measure("open_close_task", op_open_close, &attr);
	hold(3);
	measure("open_close_task_4th", op_open_close, &attr);
	let_go(3);
	hold(SLOTS);
	measure("open_refused_5th", op_refused, &attr);
	let_go(SLOTS);
	measure("open_close_cpu", op_open_close_cpu, &attr);
}

static void bench_hits(void)
{
	struct perf_event_attr attr = watch(&words[0]);
	size_t size = 9 * sysconf(_SC_PAGESIZE);
	void *ring;
	int fd;

	fd = must_open(&attr, 0, -1);
	measure("hit_count", op_store, NULL);
	measure("read", op_read, &fd);
	measure("disable_enable", op_toggle, &fd);
	close(fd);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	fd = must_open(&attr, 0, -1);
	ring = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		die("mmap");
	measure("hit_sample", op_store, NULL);
	munmap(ring, size);
	close(fd);
}

/* ---- A debugger's view ---- */

struct poke {
	pid_t	pid;
	long	flip;
};

static void poke(pid_t pid, int n, long value)
{
	long offset = offsetof(struct user, u_debugreg) + n * sizeof(long);

	if (ptrace(PTRACE_POKEUSER, pid, offset, value))
		die("PTRACE_POKEUSER");
}

static void op_ptrace_move(void *arg)
{
	struct poke *p = arg;

	poke(p->pid, 0, (long)&words[p->flip ^= 1]);
}

static void op_ptrace_dr7(void *arg)
{
	struct poke *p = arg;

	/* All four, eight bytes, written: what it is already */
	poke(p->pid, 7, 0x999900ff);
}

static void bench_ptrace(void)
{
	struct poke p = { .pid = fork() };
	int status;

	if (!p.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(p.pid, &status, 0);
	for (int i = 0; i < SLOTS; i++)
		poke(p.pid, i, (long)&words[i]);
	poke(p.pid, 7, 0x999900ff);
	measure("ptrace_move", op_ptrace_move, &p);
	measure("ptrace_dr7_same", op_ptrace_dr7, &p);
	kill(p.pid, SIGKILL);
	waitpid(p.pid, &status, 0);
}

int main(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");

	measure("getppid", op_nothing, NULL);
	bench_open();
	bench_hits();
	bench_switches();
	bench_ptrace();
	return 0;
}
