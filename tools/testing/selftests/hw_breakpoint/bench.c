// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of operations on breakpoints, and of other perf events beside them.
 *
 *   bench [wide|process]
 *
 * Prints "NAME COST ROUNDS" for each operation, in nanoseconds of
 * CLOCK_MONOTONIC. Where the clock of a virtual machine counts instructions these
 * are instructions. The cost is the tenth percentile of all rounds: the median of
 * those that allocate memory differs by 2 % between two kernels with the same code
 * path, as interrupts and refills of caches come in between. Time in which all tasks
 * sleep counts too, and so does the work of other CPUs, which such a machine runs in
 * turn with this one. The row "clock" is the cost of the measurement, which every other
 * row contains.
 *
 * Each round stands between two instructions that do nothing and that
 * qemu/bench_plugin.c recognises, so that a plugin of the emulator can count
 * events per round.
 *
 * Needs root. Rows about another CPU are left out where there is none. "wide"
 * measures only the operations on all CPUs, "process" those on events of a process.
 * Rows with names "unwatched_*" are measured without any event, by "bench unwatched", which
 * the program executes last.
 *
 * A number at the end of a name is the number of breakpoints, of events or of
 * other tasks that exist meanwhile; for a ring buffer, that of its data pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
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
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS		401
/* For operations that take long */
#define FEW_ROUNDS	41
#define SLOTS		4

/* attr.config of breakpoints: HW_BREAKPOINT_VALUE, HW_BREAKPOINT_CHANGED */
#define VALUE		(1 << 3)
#define CHANGED		(1 << 4)
/* The CPU on which everything is measured, and another one */
#define HERE		0
#define ELSEWHERE	1

#define PMUS	"/sys/bus/event_source/devices/"

static volatile uint64_t words[16];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns false if the kernel refuses @text. */
static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	bool good;

	if (fd < 0)
		return false;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

static void must_write(const char *path, const char *text)
{
	if (!write_file(path, text))
		die(path);
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
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

/*
 * Long no-operations with a displacement that no compiler emits. Keep in step with
 * qemu/bench_plugin.c.
 */
#define mark_begin()	asm volatile(".byte 0x0f, 0x1f, 0x80, 'b', 'n', 'c', 'h'" ::: "memory")
#define mark_end()	asm volatile(".byte 0x0f, 0x1f, 0x80, 'h', 'c', 'n', 'b'" ::: "memory")

static uint64_t measure_round(void (*op)(void *arg), void *arg)
{
	uint64_t start, end;

	mark_begin();
	start = now();
	op(arg);
	end = now();
	mark_end();
	return end - start;
}

/*
 * @rest, if not NULL, is called after each round and not measured.
 */
static void measure_rounds(const char *name, int rounds, void (*op)(void *arg),
			   void (*rest)(void *arg), void *arg)
{
	static uint64_t took[ROUNDS];

	for (int i = 0; i < rounds; i++) {
		took[i] = measure_round(op, arg);
		if (rest)
			rest(arg);
	}
	qsort(took, rounds, sizeof(took[0]), compare);
	printf("%s %llu %d\n", name, (unsigned long long)took[rounds / 10], rounds);
	fflush(stdout);
}

static void measure(const char *name, void (*op)(void *arg), void *arg)
{
	measure_rounds(name, ROUNDS, op, NULL, arg);
}

/* Like measure_rounds(), for a name that ends in a number. */
static void measure_with(const char *name, int nr, int rounds, void (*op)(void *arg),
			 void *arg)
{
	char full[64];

	snprintf(full, sizeof(full), "%s_%d", name, nr);
	measure_rounds(full, rounds, op, NULL, arg);
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

/* Breakpoints that are open while something else is measured. */
#define MOST_HELD	100

static int held[MOST_HELD], nr_held;

static void hold_like(struct perf_event_attr attr, int nr, pid_t pid, int cpu)
{
	while (nr--) {
		attr.bp_addr = (unsigned long)&words[8 + nr % 8];
		held[nr_held++] = must_open(&attr, pid, cpu);
	}
}

static void hold(int nr)
{
	hold_like(watch(NULL), nr, 0, -1);
}

static void let_go(void)
{
	while (nr_held)
		close(held[--nr_held]);
}

/* Measure @op while @nr events are open. */
static void measure_beside(const char *name, struct perf_event_attr attr, int nr, pid_t pid,
			   int cpu, int rounds, void (*op)(void *arg))
{
	hold_like(attr, nr, pid, cpu);
	measure_with(name, nr, rounds, op, &attr);
	let_go();
}

/* A flexible breakpoint, and one of the process; false if the kernel has none. */
static bool is_multiplexed(struct perf_event_attr *attr)
{
	*attr = watch(&words[0]);
	attr->config = 1;
	return !access(PMUS "breakpoint/format/flexible", F_OK);
}

static bool is_of_process(struct perf_event_attr *attr)
{
	*attr = watch(&words[0]);
	attr->config = 2;
	return !access(PMUS "breakpoint/format/process", F_OK);
}

/* An operation that is one expression */
#define OP(name, ...)	static void op_##name(void *arg) { __VA_ARGS__; }

OP(nothing, (void)arg)
OP(getppid, syscall(SYS_getppid))
OP(umask, syscall(SYS_umask, 022))
OP(open_close, close(must_open(arg, 0, -1)))
OP(open_close_cpu, close(must_open(arg, -1, 0)))

static void op_refused(void *arg)
{
	if (open_event(arg, 0, -1) >= 0 || errno != ENOSPC)
		die("a fifth breakpoint");
}

OP(enable, ioctl(*(int *)arg, PERF_EVENT_IOC_ENABLE, 0))
OP(disable, ioctl(*(int *)arg, PERF_EVENT_IOC_DISABLE, 0))
OP(store, words[0] = 1)

static void op_read(void *arg)
{
	uint64_t count;

	if (read(*(int *)arg, &count, sizeof(count)) != sizeof(count))
		die("read");
}

OP(toggle, op_disable(arg), op_enable(arg))

/* Send a byte to the other process and receive one: two context switches. */
static int there[2], back[2];

static void op_switch(void *arg)
{
	char byte = 0;

	if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
		die("pipe");
}

static void *echo(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return NULL;
}

static pid_t start_echo(void)
{
	pid_t pid;

	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork();
	if (!pid) {
		close(there[1]);
		echo(NULL);
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

/* Each of the two tasks has @nr breakpoints. */
static void bench_switch_each(const char *name, struct perf_event_attr attr, int nr, pid_t pid)
{
	hold_like(attr, nr, 0, -1);
	hold_like(attr, nr, pid, -1);
	measure_with(name, nr, ROUNDS, op_switch, NULL);
	let_go();
}

static void bench_switch_beside(const char *name, struct perf_event_attr attr, int nr,
				pid_t pid, int cpu)
{
	measure_beside(name, attr, nr, pid, cpu, ROUNDS, op_switch);
}

/* A breakpoint that needs all registers */
static bool is_long(struct perf_event_attr *attr)
{
	*attr = watch(&words[0]);
	attr->bp_len = SLOTS * sizeof(words[0]);
	return !access(PMUS "breakpoint/caps/max_length", F_OK);
}

static void bench_switches(void)
{
	static const int flexible[] = { 1, 8, MOST_HELD };
	struct perf_event_attr attr;
	pid_t pid = start_echo();

	for (int nr = 0; nr <= SLOTS; nr++)
		bench_switch_each("switch", watch(NULL), nr, pid);
	if (is_long(&attr))
		bench_switch_each("switch_long", attr, 1, pid);
	bench_switch_beside("switch_one_side", watch(NULL), 1, 0, -1);
	bench_switch_beside("switch_one_side", watch(NULL), SLOTS, 0, -1);
	bench_switch_beside("switch_cpu", watch(NULL), 1, -1, HERE);
	bench_switch_beside("switch_cpu", watch(NULL), SLOTS, -1, HERE);
	for (int i = 0; i < 3 && is_multiplexed(&attr); i++) {
		bench_switch_beside("switch_flexible", attr, flexible[i], 0, -1);
		bench_switch_beside("switch_cpu_flexible", attr, flexible[i], -1, HERE);
	}
	stop_echo(pid);
}

/* ---- Beside other tasks ---- */

#define MOST_OTHERS	4000
#define STACK		2048

/*
 * Processes that share all that clone() can share with this one, so that thousands of
 * them are cheap. They sleep until they are killed.
 */
struct other {
	pid_t		pid;
	int		cpu;
	int		fd;
	bool		spins;
	volatile bool	runs;
	char		stack[STACK] __attribute__((__aligned__(16)));
};

static struct other others[MOST_OTHERS];
static int nr_others;

static int live(void *arg)
{
	struct other *other = arg;

	bind_to(other->cpu);
	other->runs = true;
	for (;;) {
		if (other->spins)
			/* Lets the other CPUs of an emulator run. */
			__builtin_ia32_pause();
		else
			syscall(SYS_pause);
	}
	return 0;
}

/* @attr: of its breakpoint, if it has one */
static struct other *add_other(int cpu, bool spins, struct perf_event_attr *attr)
{
	struct other *other = &others[nr_others++];

	other->cpu = cpu;
	other->spins = spins;
	other->runs = false;
	other->pid = clone(live, other->stack + STACK,
			   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, other);
	if (other->pid < 0)
		die("clone");
	other->fd = attr ? must_open(attr, other->pid, -1) : -1;
	return other;
}

/*
 * Start @nr other tasks on @cpu, each with a breakpoint of its own unless they inherit
 * one.
 */
static void have_others(int nr, int cpu, bool inherit)
{
	struct perf_event_attr attr = watch(&words[7]);

	while (nr_others < nr)
		add_other(cpu, false, inherit ? NULL : &attr);
	/* Wait until all of them sleep. */
	usleep(100000);
}

static void lose_others(void)
{
	while (nr_others) {
		struct other *other = &others[--nr_others];

		if (other->fd >= 0)
			close(other->fd);
		kill(other->pid, SIGKILL);
		waitpid(other->pid, NULL, 0);
	}
}

OP(open_close_bound, close(must_open(arg, 0, 0)))

static void *do_nothing(void *arg)
{
	return arg;
}

/* The operation of "perf bench breakpoint thread" */
static void op_thread(void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL))
		die("pthread_create");
}

#define CLAIMS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"

static void op_list(void *arg)
{
	static char text[65536];
	int fd = open(CLAIMS_FILE, O_RDONLY);

	if (fd < 0)
		die(CLAIMS_FILE);
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

static void bench_among(int nr)
{
	struct perf_event_attr attr = watch(&words[0]), flex, inherit = attr;

	have_others(nr, HERE, false);
	measure_with("open_close_task", nr, ROUNDS, op_open_close, &attr);
	measure_with("open_close_task_on_cpu", nr, ROUNDS, op_open_close_bound, &attr);
	measure_with("open_close_cpu", nr, ROUNDS, op_open_close_cpu, &attr);
	if (is_multiplexed(&flex)) {
		measure_with("open_close_flexible", nr, ROUNDS, op_open_close, &flex);
		measure_with("open_close_cpu_flexible", nr, ROUNDS, op_open_close_cpu, &flex);
	}
	if (!access(CLAIMS_FILE, F_OK))
		measure_with("list_of_claims", nr, FEW_ROUNDS, op_list, NULL);
	hold(SLOTS);
	measure_with("open_refused_5th", nr, ROUNDS, op_refused, &attr);
	let_go();

	measure_with("thread_inherits_0", nr, ROUNDS, op_thread, NULL);
	inherit.inherit = 1;
	hold_like(inherit, SLOTS, 0, -1);
	measure_with("thread_inherits_4", nr, ROUNDS, op_thread, NULL);
	let_go();
}

/* ---- Events that are not breakpoints ---- */

static struct perf_event_attr count_software(int config)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(struct perf_event_attr),
		.config		= config,
		.exclude_kernel	= 1,
	};
}

static struct perf_event_attr count_nothing(void)
{
	return count_software(PERF_COUNT_SW_DUMMY);
}

/*
 * An event of a PMU that is not one of perf core's software PMUs; false if there is
 * none
 */
static bool count_tsc(struct perf_event_attr *attr)
{
	FILE *type = fopen(PMUS "msr/type", "r");
	bool found;

	*attr = (struct perf_event_attr) { .size = sizeof(*attr) };
	found = type && fscanf(type, "%u", &attr->type) == 1 && !access(PMUS "msr/events/tsc", F_OK);
	if (type)
		fclose(type);
	return found;
}

static void reap(pid_t pid)
{
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("child");
}

static void op_fork(void *arg)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	reap(pid);
}

OP(fault, *(volatile char *)arg)

static void drop_page(void *page)
{
	madvise(page, 1, MADV_DONTNEED);
}

#define ROOT_GROUP	"/sys/fs/cgroup"
#define GROUP		ROOT_GROUP "/hw_breakpoint_bench"

/*
 * Switch between a task of a cgroup and one of no cgroup, beside other events of the
 * CPU.
 */
static void bench_plain_cgroups(void)
{
	struct perf_event_attr attr = count_nothing(), watched = watch(&words[0]);
	pid_t pid;
	int group, fd, cpu_fd;

	/*
	 * Enabling a controller in the root makes perf_event available to child
	 * cgroups.
	 */
	must_write(ROOT_GROUP "/cgroup.subtree_control", "+pids");
	mkdir(GROUP, 0700);
	group = open(GROUP, O_RDONLY | O_DIRECTORY);
	if (group < 0)
		die(GROUP);
	must_write(GROUP "/cgroup.procs", "0");
	pid = start_echo();
	must_write(ROOT_GROUP "/cgroup.procs", "0");
	fd = syscall(SYS_perf_event_open, &attr, group, HERE, -1, PERF_FLAG_PID_CGROUP);
	if (fd < 0)
		die("perf_event_open");
	measure("switch_cgroup_plain", op_switch, NULL);
	cpu_fd = must_open(&watched, -1, HERE);
	measure("switch_cgroup_beside_cpu_1", op_switch, NULL);
	close(cpu_fd);
	close(fd);
	close(group);
	stop_echo(pid);
	rmdir(GROUP);
}

static void bench_faults(void)
{
	struct perf_event_attr attr = count_software(PERF_COUNT_SW_PAGE_FAULTS);
	long size = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	op_fault(page);
	drop_page(page);
	measure_rounds("fault", ROUNDS, op_fault, drop_page, page);
	hold_like(attr, 1, 0, -1);
	measure_rounds("fault_plain_1", ROUNDS, op_fault, drop_page, page);
	let_go();
	munmap(page, size);
}

static void bench_children(const char *kind, struct perf_event_attr attr, int nr)
{
	char name[64];

	attr.inherit = 1;
	hold_like(attr, nr, 0, -1);
	snprintf(name, sizeof(name), "thread%s", kind);
	measure_with(name, nr, ROUNDS, op_thread, NULL);
	snprintf(name, sizeof(name), "fork%s", kind);
	measure_with(name, nr, ROUNDS, op_fork, NULL);
	let_go();
}

static void bench_plain_switches(void)
{
	struct perf_event_attr tsc;
	pid_t pid = start_echo();

	bench_switch_each("switch_plain", count_nothing(), 1, pid);
	bench_switch_each("switch_plain", count_nothing(), 4, pid);
	bench_switch_each("switch_count", count_software(PERF_COUNT_SW_CONTEXT_SWITCHES), 1, pid);
	bench_switch_beside("switch_cpu_plain", count_nothing(), 4, -1, HERE);
	if (count_tsc(&tsc)) {
		bench_switch_each("switch_msr", tsc, 1, pid);
		bench_switch_beside("switch_cpu_msr", tsc, 1, -1, HERE);
	}
	stop_echo(pid);
}

static void bench_toggle(const char *enable, const char *disable, int fd)
{
	measure_rounds(enable, ROUNDS, op_enable, op_disable, &fd);
	measure_rounds(disable, ROUNDS, op_disable, op_enable, &fd);
	close(fd);
}

static void bench_plain(void)
{
	struct perf_event_attr attr = count_nothing(), tsc;

	bench_children("", attr, 0);
	bench_children("_plain", attr, 1);
	bench_children("_plain", attr, 8);
	measure("open_close_plain", op_open_close, &attr);
	measure("open_close_cpu_plain", op_open_close_cpu, &attr);
	if (count_tsc(&tsc)) {
		bench_children("_msr", tsc, 1);
		measure("open_close_msr", op_open_close, &tsc);
		measure("open_close_cpu_msr", op_open_close_cpu, &tsc);
	}
	bench_faults();
	bench_toggle("enable_plain", "disable_plain", must_open(&attr, 0, -1));
	bench_plain_switches();
	bench_plain_cgroups();
}

/* The operation of "perf bench breakpoint enable": each task has inherited the event. */
static void bench_toggle_among(int nr)
{
	struct perf_event_attr attr = watch(&words[0]);
	int fd;

	attr.inherit = 1;
	fd = must_open(&attr, 0, -1);
	have_others(nr, HERE, true);
	measure_with("disable_enable_inherited", nr, FEW_ROUNDS, op_toggle, &fd);
	lose_others();
	close(fd);
}

static void bench_others(void)
{
	bench_among(0);
	bench_among(1000);
	bench_among(MOST_OTHERS);
	lose_others();

	bench_toggle_among(0);
	bench_toggle_among(100);
	bench_toggle_among(1000);
}

/* ---- A single task ---- */

OP(open_cpu, hold_like(*(struct perf_event_attr *)arg, 1, -1, 0))

static void close_and_rest(void *arg)
{
	let_go();
	usleep(50000);
}

static void bench_open(void)
{
	struct perf_event_attr attr = watch(&words[0]);

	/* The first event of a task in the system costs more: it switches static keys. */
	hold(1);
	let_go();
	hold(3);
	measure("open_close_task_4th", op_open_close, &attr);
	let_go();
	close_and_rest(NULL);
	measure_rounds("open_cpu_cold", FEW_ROUNDS, op_open_cpu, close_and_rest, &attr);

	if (!is_multiplexed(&attr))
		return;
	measure_beside("open_close_flexible_beside", attr, MOST_HELD, 0, -1, ROUNDS, op_open_close);
}

/* Run in user mode for some rotations. */
static void op_spin(void *arg)
{
	for (volatile int i = 0; i < 2000000; i++)
		;
}

static void bench_multiplexing(void)
{
	struct perf_event_attr attr;

	measure_rounds("spin", FEW_ROUNDS, op_spin, NULL, NULL);
	if (!is_multiplexed(&attr))
		return;
	measure_beside("spin_flexible", attr, SLOTS, 0, -1, FEW_ROUNDS, op_spin);
	measure_beside("spin_flexible", attr, 2 * SLOTS, 0, -1, FEW_ROUNDS, op_spin);
	measure_beside("spin_flexible", attr, MOST_HELD, 0, -1, FEW_ROUNDS, op_spin);
}

/* An event with a ring buffer */
struct ring {
	struct perf_event_attr	attr;
	int			fd;
	size_t			size;
	void			*map;
};

static struct perf_event_attr watch_by_samples(volatile void *address)
{
	struct perf_event_attr attr = watch(address);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	return attr;
}

static void open_ring(struct ring *ring)
{
	ring->fd = must_open(&ring->attr, 0, -1);
	ring->map = mmap(NULL, ring->size, PROT_READ, MAP_SHARED, ring->fd, 0);
	if (ring->map == MAP_FAILED)
		die("mmap");
}

static void close_ring(struct ring *ring)
{
	munmap(ring->map, ring->size);
	close(ring->fd);
}

static struct ring new_ring(int data_pages)
{
	struct ring ring = {
		.attr	= watch_by_samples(&words[0]),
		.size	= (1 + data_pages) * sysconf(_SC_PAGESIZE),
	};

	open_ring(&ring);
	return ring;
}

/* Samples with raw data */
static struct ring new_raw_ring(uint64_t config)
{
	struct ring ring = {
		.attr	= watch_by_samples(&words[0]),
		.size	= 9 * sysconf(_SC_PAGESIZE),
	};

	ring.attr.config = config;
	ring.attr.sample_type |= PERF_SAMPLE_RAW;
	open_ring(&ring);
	return ring;
}

static struct perf_event_attr watch_by_signal(volatile void *address)
{
	struct perf_event_attr attr = watch(address);

	attr.sample_period = 1;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	return attr;
}

/* Returns -1 if the kernel cannot open the event. */
static int open_sigtrap(struct perf_event_attr *attr)
{
	int fd = open_event(attr, 0, -1);

	if (fd < 0 && errno != EINVAL)
		die("perf_event_open");
	return fd;
}

static void handle_nothing(int signal, siginfo_t *info, void *context)
{
}

/* The handler does nothing, but reads what distinguishes one hit from another. */
static void have_handler(void)
{
	struct sigaction action = { .sa_sigaction = handle_nothing, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGTRAP, &action, NULL))
		die("sigaction");
}

static void bench_sigtrap_hits(void)
{
	struct perf_event_attr attr = watch_by_signal(&words[0]);
	int fd, beside;

	have_handler();
	fd = open_sigtrap(&attr);
	if (fd < 0)
		return;
	measure("hit_sigtrap", op_store, NULL);
	close(fd);

	/*
	 * An instruction breakpoint: of two data breakpoints that one instruction hits,
	 * QEMU reports only one. The hit of the second breakpoint gives a second
	 * signal, which a kernel without the series loses.
	 */
	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = (unsigned long)op_nothing;
	fd = must_open(&attr, 0, -1);
	measure("hit_sigtrap_exec", op_nothing, NULL);
	beside = must_open(&attr, 0, -1);
	measure_with("hit_sigtrap_exec_beside", 1, ROUNDS, op_nothing, NULL);
	close(beside);
	close(fd);
}

/* A hit with values, without, and one that changes nothing */
static void bench_values(void)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct ring ring;
	int fd;

	if (access(PMUS "breakpoint/format/value", F_OK))
		return;

	attr.config = CHANGED;
	fd = must_open(&attr, 0, -1);
	measure("hit_silent", op_store, NULL);
	close(fd);

	ring = new_raw_ring(0);
	measure("hit_raw", op_store, NULL);
	close_ring(&ring);

	ring = new_raw_ring(VALUE);
	measure("hit_value", op_store, NULL);
	close_ring(&ring);
}

static void bench_hits(void)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct ring ring;
	int fd;

	fd = must_open(&attr, 0, -1);
	measure("hit_count", op_store, NULL);
	measure("read", op_read, &fd);
	measure("disable_enable", op_toggle, &fd);
	bench_toggle("enable", "disable", fd);

	ring = new_ring(8);
	measure("hit_sample", op_store, NULL);
	close_ring(&ring);
}

/* ---- Modify ---- */

struct move {
	int			fd;
	struct perf_event_attr	to[2];
	int			last;
};

/* Two sets of attributes to alternate between; @attr is that of the event. */
static struct move new_move(int fd, struct perf_event_attr attr)
{
	struct move move = { .fd = fd, .to = { attr, attr } };

	move.to[0].bp_addr = (unsigned long)&words[0];
	move.to[1].bp_addr = (unsigned long)&words[1];
	return move;
}

static struct move open_move(struct perf_event_attr attr, pid_t pid, int cpu)
{
	return new_move(must_open(&attr, pid, cpu), attr);
}

static void op_modify(void *arg)
{
	struct move *move = arg;

	move->last ^= 1;
	if (ioctl(move->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &move->to[move->last]))
		die("PERF_EVENT_IOC_MODIFY_ATTRIBUTES");
}

static void op_modify_refused(void *arg)
{
	struct move *move = arg;

	if (!ioctl(move->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &move->to[0]) ||
	    errno != EINVAL)
		die("a malformed breakpoint");
}

static void op_modify_and_hit(void *arg)
{
	struct move *move = arg;

	op_modify(move);
	words[move->last] = 1;
}

static void op_ioctl_unknown(void *arg)
{
	if (!ioctl(*(int *)arg, _IO('$', 255)) || errno != ENOTTY)
		die("an unknown ioctl");
}

static void bench_modify(void)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct move move = open_move(attr, 0, -1);

	/* The lower limit for a modify: the system call, and reading the attributes */
	measure("ioctl_unknown", op_ioctl_unknown, &move.fd);
	move.to[0].type = PERF_TYPE_SOFTWARE;
	measure("modify_refused_type", op_modify_refused, &move);

	move = new_move(move.fd, attr);
	move.to[0].bp_len = 33;
	measure("modify_refused", op_modify_refused, &move);

	move = new_move(move.fd, attr);
	measure("modify_self", op_modify, &move);
	hold(3);
	measure_with("modify_self", 3, ROUNDS, op_modify, &move);
	let_go();

	move.to[1].bp_addr = move.to[0].bp_addr;
	move.to[1].bp_type = HW_BREAKPOINT_RW;
	measure("modify_self_type", op_modify, &move);
	close(move.fd);

	attr.disabled = 1;
	move = open_move(attr, 0, -1);
	measure("modify_self_disabled", op_modify, &move);
	close(move.fd);

	if (!is_long(&attr))
		return;
	move = open_move(attr, 0, -1);
	measure("modify_self_long", op_modify, &move);
	close(move.fd);
}

/* Modify and hit, in alternation. */
static void bench_modify_pairs(void)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct move move = open_move(attr, 0, -1);
	struct ring ring;

	measure("modify_hit_count", op_modify_and_hit, &move);
	close(move.fd);

	ring = new_ring(8);
	move = new_move(ring.fd, ring.attr);
	measure("modify_hit_sample", op_modify_and_hit, &move);
	close_ring(&ring);

	have_handler();
	attr = watch_by_signal(&words[0]);
	move = new_move(open_sigtrap(&attr), attr);
	if (move.fd < 0)
		return;
	measure("modify_hit_sigtrap", op_modify_and_hit, &move);
	close(move.fd);
}

/* A breakpoint of a task that has run on @cpu, and sleeps when this returns. */
static int open_sleeping(struct perf_event_attr attr, int cpu)
{
	int fd = add_other(cpu, false, &attr)->fd;

	have_others(nr_others, cpu, false);
	return fd;
}

/* The name of a row about a task or an event on @cpu */
static const char *named(const char *name, int cpu)
{
	static char full[64];

	snprintf(full, sizeof(full), "%s%s", name, cpu == HERE ? "" : "_elsewhere");
	return full;
}

static void bench_modify_others(int cpu)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct move move = new_move(open_sleeping(attr, cpu), attr);
	struct other *other;
	int fd;

	measure(named("modify_sleeping", cpu), op_modify, &move);
	lose_others();
	fd = open_sleeping(attr, cpu);
	measure(named("disable_enable_sleeping", cpu), op_toggle, &fd);
	lose_others();
	if (cpu != HERE) {
		other = add_other(cpu, true, &attr);
		move = new_move(other->fd, attr);
		while (!other->runs)
			usleep(100);
		measure(named("modify_running", cpu), op_modify, &move);
		lose_others();
	}
	move = open_move(attr, -1, cpu);
	measure(named("modify_cpu", cpu), op_modify, &move);
	close(move.fd);
}

static void bench_modify_family(int cpu, int nr)
{
	struct perf_event_attr attr = watch(&words[0]);
	struct move move;

	attr.inherit = 1;
	move = open_move(attr, 0, -1);
	have_others(nr, cpu, true);
	measure_with(named("modify_family", cpu), nr, ROUNDS, op_modify, &move);
	lose_others();
	close(move.fd);
}

/* Of others that are here, then of others on another CPU, if there is one */
static void bench_modify_all(void)
{
	int last = sysconf(_SC_NPROCESSORS_ONLN) > ELSEWHERE ? ELSEWHERE : HERE;

	for (int cpu = HERE; cpu <= last; cpu++)
		bench_modify_others(cpu);
	for (int cpu = HERE; cpu <= last; cpu++)
		for (int nr = 1; nr <= 64; nr *= 4)
			bench_modify_family(cpu, nr);
}

/* The alternative to a modify: close and open */
static void op_reopen(void *arg)
{
	close_ring(arg);
	open_ring(arg);
}

static void bench_reopen(void)
{
	for (int pages = 1; pages <= 8; pages *= 8) {
		struct ring ring = new_ring(pages);

		measure_with("reopen_ring", pages, ROUNDS, op_reopen, &ring);
		close_ring(&ring);
	}
}

/* ---- ptrace ---- */

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

	/* All four slots enabled, eight bytes, writes: DR7 has this value already. */
	poke(p->pid, 7, 0x999900ff);
}

static void op_ptrace_set(void *arg)
{
	struct poke *p = arg;

	poke(p->pid, 0, (long)&words[0]);
	poke(p->pid, 7, 0xd0001);
	poke(p->pid, 7, 0);
}

static pid_t start_tracee(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return pid;
}

static void bench_ptrace(void)
{
	struct poke p = { .pid = start_tracee() };
	int status;

	measure("ptrace_set_clear", op_ptrace_set, &p);
	poke(p.pid, 0, (long)&words[0]);
	poke(p.pid, 7, 0xd0001);
	measure("ptrace_move", op_ptrace_move, &p);
	for (int i = 0; i < SLOTS; i++)
		poke(p.pid, i, (long)&words[i]);
	poke(p.pid, 7, 0x999900ff);
	measure("ptrace_move_beside_3", op_ptrace_move, &p);
	measure("ptrace_dr7_same", op_ptrace_dr7, &p);
	kill(p.pid, SIGKILL);
	waitpid(p.pid, &status, 0);
}

/* ---- All CPUs ---- */

/* Opens one event for each CPU, as a program does that watches the whole machine. */
static void open_wide(struct perf_event_attr *attr)
{
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		held[nr_held++] = must_open(attr, -1, cpu);
}

OP(open_close_wide, open_wide(arg), let_go())

static void ioctl_held(unsigned long request)
{
	for (int i = 0; i < nr_held; i++)
		ioctl(held[i], request, 0);
}

OP(enable_wide, ioctl_held(PERF_EVENT_IOC_ENABLE))
OP(disable_wide, ioctl_held(PERF_EVENT_IOC_DISABLE))

static void bench_wide(void)
{
	struct perf_event_attr attr = watch(&words[0]), plain = count_nothing();
	int first = must_open(&attr, -1, HERE);

	measure("open_close_wide", op_open_close_wide, &attr);
	close(first);
	open_wide(&attr);
	measure_rounds("disable_wide", ROUNDS, op_disable_wide, op_enable_wide, NULL);
	op_disable_wide(NULL);
	measure_rounds("enable_wide", ROUNDS, op_enable_wide, op_disable_wide, NULL);
	let_go();
	measure("open_close_wide_plain", op_open_close_wide, &plain);
}

/* ---- Dynamic events of tracefs ---- */

#define TRACEFS	"/sys/kernel/tracing/"

/* @definition is of an event in the group "bench", which each getppid() hits once. */
static void start_hits(const char *definition)
{
	must_write(TRACEFS "dynamic_events", definition);
	must_write(TRACEFS "events/bench/enable", "1");
}

static void stop_hits(void)
{
	must_write(TRACEFS "events/bench/enable", "0");
	close(open(TRACEFS "dynamic_events", O_WRONLY | O_TRUNC));
}

static void bench_event_hit(const char *row, const char *definition)
{
	start_hits(definition);
	measure(row, op_getppid, NULL);
	stop_hits();
}

/* A kprobe event behind the first instructions, where it does not use ftrace */
static void bench_event_trap(void)
{
	char definition[128];

	write_file("/proc/sys/debug/kprobes-optimization", "0");
	for (int offset = 9; offset < 32; offset++) {
		snprintf(definition, sizeof(definition),
			 "p:bench/trap __x64_sys_getppid+%d a=%%di b=%%si", offset);
		if (!write_file(TRACEFS "dynamic_events", definition))
			continue;
		must_write(TRACEFS "dynamic_events", "-:bench/trap");
		bench_event_hit("getppid_kprobe_event_trap", definition);
		break;
	}
	write_file("/proc/sys/debug/kprobes-optimization", "1");
}

/* Returns a kernel address to which nothing writes during the measurement. */
static unsigned long quiet_address(void)
{
	unsigned long address, found = 0;
	char symbol[128], kind;
	FILE *file = fopen("/proc/kallsyms", "r");

	while (file && !found && fscanf(file, "%lx %c %127s%*[^\n]", &address, &kind, symbol) == 3)
		found = strcmp(symbol, "panic_timeout") ? 0 : address;
	if (file)
		fclose(file);
	return found;
}

/* Triggers of another event set and clear the watch event at each getppid(). */
static void bench_set_clear(const char *row, const char *option)
{
	static const char trigger[] = TRACEFS "events/bench/call/trigger";
	char set[64], clear[64];

	snprintf(set, sizeof(set), "!set_wprobe:bench/object:ptr%s", option);
	snprintf(clear, sizeof(clear), "!clear_wprobe:bench/object%s", option);
	must_write(trigger, set + 1);
	must_write(trigger, clear + 1);
	measure(row, op_getppid, NULL);
	must_write(trigger, set);
	must_write(trigger, clear);
}

static void bench_triggers(void)
{
	char definition[128];

	snprintf(definition, sizeof(definition),
		 "p:bench/call __x64_sys_getppid ptr=\\%#lx:x64 b=%%si", quiet_address());
	must_write(TRACEFS "dynamic_events", "w:bench/object w@-1:4");
	start_hits(definition);
	measure("getppid_no_triggers", op_getppid, NULL);
	bench_set_clear("getppid_set_clear_this_cpu", ":this_cpu");
	bench_set_clear("getppid_set_clear", "");
	stop_hits();
}

/* A window watches an object from the entry to the return of umask(), which ftrace knows. */
static void bench_windows(void)
{
	static const char trigger[] = TRACEFS "events/bench/enter/trigger";
	static const char window[] = "!set_wprobe:bench/object:ptr:window";
	char definition[128];

	snprintf(definition, sizeof(definition), "f:bench/enter __x64_sys_umask ptr=\\%#lx:x64",
		 quiet_address());
	if (!write_file(TRACEFS "dynamic_events", definition))
		return;
	must_write(TRACEFS "dynamic_events", "f:bench/leave __x64_sys_umask%return");
	start_hits("w:bench/object w@-1:4");
	measure("umask_no_window", op_umask, NULL);
	must_write(trigger, window + 1);
	measure("umask_window", op_umask, NULL);
	must_write(trigger, window);
	stop_hits();
}

static void bench_events(void)
{
	mount("tracefs", TRACEFS, "tracefs", 0, NULL);
	if (access(TRACEFS "dynamic_events", W_OK))
		return;
	bench_event_hit("getppid_kprobe_event", "p:bench/probe __x64_sys_getppid a=%di b=%si");
	bench_event_trap();
	if (!write_file(TRACEFS "dynamic_events", "w:bench/object w@-1:4"))
		return;
	must_write(TRACEFS "dynamic_events", "-:bench/object");
	bench_event_hit("getppid_watch_event", "w:bench/watch x@__x64_sys_getppid a=%di b=%si");
	bench_triggers();
	bench_windows();
}

/* ---- Events of a whole process ---- */

#define MANY_THREADS	1000
#define MOST_THREADS	10000

static pthread_t sleepers[MOST_THREADS];
static int nr_sleepers, sleepers_end[2];

/* With an event of its own if @attr is not NULL */
static void *sleep_until_end(void *attr)
{
	char byte;

	if (attr)
		must_open(attr, 0, -1);
	if (read(sleepers_end[0], &byte, 1))
		die("sleep_until_end");
	return NULL;
}

/* Threads of this process that sleep. */
static void have_threads(int nr, struct perf_event_attr *attr)
{
	pthread_attr_t small;

	if (pipe(sleepers_end))
		die("pipe");
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	while (nr_sleepers < nr) {
		if (pthread_create(&sleepers[nr_sleepers++], &small, sleep_until_end, attr))
			die("pthread_create");
	}
	usleep(50000);
}

static void lose_threads(void)
{
	close(sleepers_end[1]);
	while (nr_sleepers)
		pthread_join(sleepers[--nr_sleepers], NULL);
	close(sleepers_end[0]);
}

static void bench_switch_threads(struct perf_event_attr *attr)
{
	pthread_t thread;

	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, echo, NULL))
		die("echo");
	measure("switch_threads", op_switch, NULL);
	if (is_of_process(attr)) {
		hold_like(*attr, 1, 0, -1);
		measure("switch_threads_process", op_switch, NULL);
		let_go();
	}
	close(there[1]);
	pthread_join(thread, NULL);
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

static void bench_process_of(int threads)
{
	struct perf_event_attr attr;
	struct move move;

	is_of_process(&attr);
	have_threads(threads - 1, NULL);
	measure_with("open_close_process", threads, ROUNDS, op_open_close, &attr);
	move = open_move(attr, 0, -1);
	measure_with("modify_process", threads, ROUNDS, op_modify, &move);
	close(move.fd);
	lose_threads();
}

#define FIRST_ROUNDS	10

struct first_open {
	struct perf_event_attr	attr;
	struct perf_event_attr	*thread_attr;
	pid_t			pid;
	int			threads;
	int			ready[2];
};

static void end_process(struct first_open *first)
{
	kill(first->pid, SIGKILL);
	waitpid(first->pid, NULL, 0);
}

/* A process in which no event has been opened yet */
static void start_process(struct first_open *first)
{
	char byte = 0;

	first->pid = fork();
	if (first->pid < 0)
		die("fork");
	if (!first->pid) {
		have_threads(first->threads - 1, first->thread_attr);
		if (write(first->ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(first->ready[0], &byte, 1) != 1)
		die("start_process");
}

static void restart_process(void *arg)
{
	end_process(arg);
	start_process(arg);
}

static void op_first_open(void *arg)
{
	struct first_open *first = arg;

	close(must_open(&first->attr, first->pid, -1));
}

/*
 * The first event of a process looks at each of its threads, and accounts for those that
 * have events: @thread_attr.
 */
static void bench_first_of(const char *what, int threads, struct perf_event_attr *thread_attr)
{
	struct first_open first = { .threads = threads, .thread_attr = thread_attr };
	char name[64];

	is_of_process(&first.attr);
	if (pipe(first.ready))
		die("pipe");
	start_process(&first);
	snprintf(name, sizeof(name), "%s_%d", what, threads);
	measure_rounds(name, FIRST_ROUNDS, op_first_open, restart_process, &first);
	end_process(&first);
	close(first.ready[0]);
	close(first.ready[1]);
}

static void bench_process(void)
{
	struct perf_event_attr attr, inherit = watch(&words[0]), nothing = count_nothing();
	pid_t pid;

	bench_switch_threads(&attr);
	measure("thread_unwatched", op_thread, NULL);
	if (is_of_process(&attr)) {
		hold_like(attr, 1, 0, -1);
		measure("thread_process", op_thread, NULL);
		let_go();
	}
	/* Later, because it leaves a context to this thread, which each clone looks at. */
	inherit.inherit = 1;
	measure_beside("thread_inherit", inherit, 1, 0, -1, ROUNDS, op_thread);
	if (!is_of_process(&attr))
		return;

	pid = start_echo();
	bench_switch_beside("switch_task", watch(NULL), 1, 0, -1);
	bench_switch_beside("switch_process", attr, 1, 0, -1);
	stop_echo(pid);

	/* The first event has a price of its own. */
	hold_like(attr, 1, 0, -1);
	let_go();
	bench_process_of(1);
	bench_process_of(MANY_THREADS);
	bench_process_of(MOST_THREADS);
	bench_first_of("open_close_first", 1, NULL);
	bench_first_of("open_close_first", MANY_THREADS, NULL);
	bench_first_of("open_close_first_events", MANY_THREADS, &nothing);
}

/* ---- Without any event ---- */

static void op_vfork(void *arg)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	reap(pid);
}

static char clone_stack[16384] __attribute__((__aligned__(16)));

static int exit_thread(void *arg)
{
	syscall(SYS_exit, 0);
	return 0;
}

/* What a C library does for a thread and pthread_join(), without its own work. */
static void op_clone(void *arg)
{
	static volatile pid_t tid;
	pid_t now;

	if (clone(exit_thread, clone_stack + sizeof(clone_stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		  CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
		  NULL, &tid, NULL, &tid) < 0)
		die("clone");
	while ((now = tid))
		syscall(SYS_futex, &tid, FUTEX_WAIT, now, NULL, NULL, 0);
}

#define SELF	"/proc/self/exe"

static void op_exec(void *arg)
{
	pid_t pid = vfork();

	if (!pid) {
		execl(SELF, "bench", "nothing", NULL);
		_exit(1);
	}
	reap(pid);
}

struct leaver {
	pid_t	pid;
	int	leave[2];
};

/* A child that exits when it reads a byte */
static void start_leaver(void *arg)
{
	struct leaver *leaver = arg;
	char byte;

	leaver->pid = fork();
	if (!leaver->pid)
		_exit(read(leaver->leave[0], &byte, 1) != 1);
	/* Let the child run until it waits. */
	usleep(1000);
}

static void op_exit(void *arg)
{
	struct leaver *leaver = arg;
	char byte = 0;

	if (write(leaver->leave[1], &byte, 1) != 1)
		die("exit");
	reap(leaver->pid);
}

static void bench_exit(void)
{
	struct leaver leaver;

	if (pipe(leaver.leave))
		die("pipe");
	start_leaver(&leaver);
	measure_rounds("unwatched_exit", ROUNDS, op_exit, start_leaver, &leaver);
	op_exit(&leaver);
	close(leaver.leave[0]);
	close(leaver.leave[1]);
}

static void op_signal(void *arg)
{
	syscall(SYS_tgkill, getpid(), getpid(), SIGTRAP);
}

/*
 * The local APIC in xAPIC mode. A write to the lower half of its interrupt command register
 * sends an NMI to the CPU whose ID is in the upper half: this one, which is CPU 0. No
 * handler claims it. The kernel reports a few of such NMIs, and then no more for seconds.
 */
#define APIC_BASE	0xfee00000UL
#define APIC_ICR	(0x300 / 4)
#define APIC_ICR2	(0x310 / 4)
#define APIC_NMI	0x4400
#define APIC_PENDING	0x1000

/*
 * The kernel writes the upper half for each interrupt that it sends to another CPU. Waits
 * until the NMI has been sent, so that it is taken in this round.
 */
static void op_nmi(void *arg)
{
	volatile uint32_t *apic = arg;

	apic[APIC_ICR2] = 0;
	apic[APIC_ICR] = APIC_NMI;
	while (apic[APIC_ICR] & APIC_PENDING)
		;
}

/* The number of NMIs that CPU 0 has taken */
static unsigned long count_nmis(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long nmis = 0;
	char line[4096];

	while (file && fgets(line, sizeof(line), file) && sscanf(line, " NMI: %lu", &nmis) != 1)
		;
	if (!file || fclose(file))
		die("/proc/interrupts");
	return nmis;
}

static void bench_nmi(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC);
	volatile uint32_t *apic;
	unsigned long nmis;

	if (fd < 0)
		die("/dev/mem");
	apic = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, APIC_BASE);
	if (apic == MAP_FAILED)
		die("mmap");
	nmis = count_nmis();
	measure("unwatched_nmi", op_nmi, (void *)apic);
	/* The kernel may send an interrupt between the two writes. */
	if (count_nmis() - nmis < ROUNDS - ROUNDS / 20) {
		errno = ENODATA;
		die("unwatched_nmi");
	}
	munmap((void *)apic, 4096);
	close(fd);
}

static void bench_unwatched(void)
{
	long size = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	measure("unwatched_getppid", op_getppid, NULL);
	measure("unwatched_fork", op_fork, NULL);
	measure("unwatched_vfork", op_vfork, NULL);
	measure("unwatched_clone", op_clone, NULL);
	measure("unwatched_thread", op_thread, NULL);
	measure_rounds("unwatched_exec", FEW_ROUNDS, op_exec, NULL, NULL);
	bench_exit();
	have_handler();
	measure("unwatched_signal", op_signal, NULL);
	measure_rounds("unwatched_fault", ROUNDS, op_fault, drop_page, page);
	bench_nmi();
	munmap(page, size);
}

/* The kernel keeps what it has enabled for events for a second after the last one. */
static void exec_unwatched(void)
{
	sleep(3);
	execl(SELF, "bench", "unwatched", NULL);
	die(SELF);
}

static void bench_all(void)
{
	bench_open();
	bench_hits();
	bench_values();
	bench_sigtrap_hits();
	bench_modify();
	bench_modify_pairs();
	bench_modify_all();
	bench_reopen();
	bench_switches();
	bench_multiplexing();
	bench_ptrace();
	bench_plain();
	bench_others();
}

int main(int argc, char **argv)
{
	struct rlimit files = { 2 * MOST_OTHERS, 2 * MOST_OTHERS };

	if (argc > 1 && !strcmp(argv[1], "nothing"))
		return 0;
	bind_to(HERE);
	if (argc > 1 && !strcmp(argv[1], "unwatched")) {
		bench_unwatched();
		return 0;
	}
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");

	measure("clock", op_nothing, NULL);
	measure("getppid", op_getppid, NULL);
	bench_wide();
	if (argc < 2)
		bench_all();
	/*
	 * The unpatched kernel skips most of these rows. They come last because they
	 * leave threads and memory, with which later rows would cost more.
	 */
	bench_events();
	bench_process();
	exec_unwatched();
}
