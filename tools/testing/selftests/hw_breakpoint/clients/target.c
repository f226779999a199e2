// SPDX-License-Identifier: GPL-2.0
/*
 * The program that debuggers, perf and tracers watch: it accesses its variables in a
 * known order, so that the output of a client is the same in each run. Built without
 * optimization, at a fixed address.
 *
 *   target count N        add_one() increments counter N times
 *   target steps          all of the below, in the order of main()
 *   target fork           a child increments counter, then the parent does
 *   target threads        one thread after the other increments counter
 *   target wait           increments counter when a line comes on stdin, until its end
 *   target ptrace         a child is stopped by debug registers that its parent sets
 *   target sigtrap        increments counter, each time with a signal of perf
 *
 * Debuggers step over the first instruction of a function that they stop in, and over
 * the one after a call that left the scope of a watchpoint. Neither may access a watched
 * address: emulators fail at a single step over such an instruction.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
	long first;
	long second;
};

long counter;
long mirror;
long table[8];
struct pair pair;
char text[16] = "0123456789abcde";
unsigned char byte;
unsigned short half;
unsigned int word;
volatile long sink;

static volatile long idle;

/* Clients stop in this function before and after the accesses. */
void mark(int number)
{
	idle = number;
}

void add_one(void)
{
	idle++;
	counter++;
}

void count(long n)
{
	while (n-- > 0)
		add_one();
}

void read_back(void)
{
	idle++;
	sink = counter;
	mirror = sink;
}

void sizes(void)
{
	idle++;
	byte = 1;
	half = 2;
	word = 3;
	pair.first = 4;
	pair.second = 5;
	text[5] = 'x';
	text[8] = 'y';
	table[6] = 6;
}

long scope(long n)
{
	long local = 0;

	mark(1);
	for (; n > 0; n--)
		local += n;
	idle = local;
	return local;
}

long recurse(long n)
{
	long inner = n, below = 0;

	idle++;
	if (n > 0)
		below = recurse(n - 1);
	inner += below;
	return inner;
}

void four(void)
{
	idle++;
	table[0] = 10;
	table[1] = 11;
	table[2] = 12;
	table[3] = 13;
	table[4] = 14;
}

static void steps(void)
{
	mark(0);
	count(4);
	read_back();
	sizes();
	scope(3);
	recurse(2);
	four();
	count(2);
	mark(9);
}

/*
 * The child gives the parent time to get to waitpid(): where a debugger then finds it is
 * the same in each run.
 */
static void fork_and_count(void)
{
	pid_t child;

	mark(0);
	child = fork();
	if (!child) {
		usleep(100000);
		count(3);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	count(2);
	mark(9);
}

static void *thread(void *arg)
{
	pthread_setname_np(pthread_self(), arg);
	count(2);
	return NULL;
}

static void run_threads(void)
{
	char *names[] = { "first", "second", "third" };
	pthread_t id;
	size_t i;

	mark(0);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (pthread_create(&id, NULL, thread, names[i]))
			abort();
		pthread_join(id, NULL);
	}
	count(1);
	mark(9);
}

static void wait_for_lines(void)
{
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		add_one();
		printf("%ld\n", counter);
		fflush(stdout);
	}
}

static int set_register(pid_t pid, int number, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, pid,
		      offsetof(struct user, u_debugreg) + number * sizeof(long), value);
}

/* Local exact enable and a write of 8 bytes for register @number */
static unsigned long dr7_write8(int number)
{
	return 1UL << (2 * number) | 9UL << (16 + 4 * number);
}

static void trace_child(void)
{
	int status, hits = 0;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		count(3);
		sizes();
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("dr0 %d", set_register(child, 0, (unsigned long)&counter));
	printf(" dr1 %d", set_register(child, 1, (unsigned long)&pair.second));
	printf(" dr7 %d", set_register(child, 7, dr7_write8(0) | dr7_write8(1)));
	printf(" misaligned %d", set_register(child, 1, (unsigned long)&pair.second + 1));
	printf(" kernel %d\n", set_register(child, 2, ~0UL - 7));
	fflush(stdout);
	ptrace(PTRACE_CONT, child, 0, 0);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		hits++;
		printf("stopped by %d, dr6 %#lx\n", WSTOPSIG(status),
		       ptrace(PTRACE_PEEKUSER, child,
			      offsetof(struct user, u_debugreg) + 6 * sizeof(long), 0) & 0xf);
		fflush(stdout);
		set_register(child, 6, 0);
		ptrace(PTRACE_CONT, child, 0, 0);
	}
	printf("hits %d, exit %d\n", hits, WEXITSTATUS(status));
}

static volatile sig_atomic_t signals;

static void on_sigtrap(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	signals++;
}

static void signal_myself(void)
{
	struct sigaction action = { .sa_sigaction = on_sigtrap, .sa_flags = SA_SIGINFO };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (unsigned long)&counter,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.sample_period = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.remove_on_exec = 1,
		.sigtrap = 1,
		.sig_data = 0x1234,
	};
	int fd;

	sigaction(SIGTRAP, &action, NULL);
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	count(3);
	close(fd);
	printf("signals %d\n", (int)signals);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "steps";

	if (!strcmp(what, "count"))
		count(argc > 2 ? atol(argv[2]) : 1);
	else if (!strcmp(what, "fork"))
		fork_and_count();
	else if (!strcmp(what, "threads"))
		run_threads();
	else if (!strcmp(what, "wait"))
		wait_for_lines();
	else if (!strcmp(what, "ptrace"))
		trace_child();
	else if (!strcmp(what, "sigtrap"))
		signal_myself();
	else
		steps();
	return 0;
}
