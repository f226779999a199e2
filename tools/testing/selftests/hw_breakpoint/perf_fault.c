// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail.
 *
 * The rule: a request that runs out of memory returns ENOMEM and leaves the accounting,
 * open events and the debug registers of ptrace as they were, whichever of its
 * allocations fails.
 *
 * Each request is made repeatedly: its first allocation fails, then its second, and so
 * on, until the request completes before the allocation that was to fail. The request
 * may succeed although an allocation has failed, if the kernel has a fallback; then its
 * result has to work. Between two requests the test counts the free registers of this
 * task and of one CPU, and the claims if the kernel lists them.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "bp_test.h"

/* Hundreds of requests each, in an emulator that shares its host */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

/* More allocations than any of the requests makes */
#define NTH_MAX		2000
/* Sweeps with at most this number of faults are repeated. */
#define NTH_FEW		40
#define NR_ROUNDS	3

/* The file in which the kernel lists its claims, one per line */
#define CLAIMS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"

#define NR_HELD		3
#define NR_DR		4

/**
 * struct fault - a request that is made with a fault
 * @nth_fd: fail-nth of this task
 * @nth: number of the allocation that fails
 * @injected: an allocation has failed
 * @cpus: online CPUs
 * @taint: taint flags of the kernel at the start
 * @mem: memory that is watched
 * @attr: attributes of the requested event
 * @pid: task of the requested event
 * @cpu: CPU of the requested event
 * @group: group leader of the requested event
 * @fd: events that are open
 * @counts: expected count of the first of them
 * @clone_flags: kind of task that is created
 * @pages: size of the ring
 * @traced: the task that exits is traced
 * @image: program that the task executes
 * @dr: debug registers before the request
 * @dr_nr: register that is written
 * @dr_value: value that is written
 */
struct fault {
	int nth_fd;
	unsigned int nth;
	bool injected;
	struct bp_cpus cpus;
	unsigned long taint;
	char *mem;
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	int group;
	int fd[NR_HELD];
	long long counts;
	int clone_flags;
	int pages;
	bool traced;
	int image;
	unsigned long dr[8];
	int dr_nr;
	unsigned long dr_value;
};

/*
 * -------------------------------------------------------------- selection of
 * allocations
 */

#define FAILSLAB	"/sys/kernel/debug/failslab/"
#define FAIL_PAGE	"/sys/kernel/debug/fail_page_alloc/"

/* A setting of the fault injection, and its value before the test */
struct setting {
	const char *path;
	const char *value;
	char saved[24];
};

/*
 * Allocations of any size fail, also those that may sleep, without messages in the log.
 * Settings without a value here are set to the address range of a function.
 */
static struct setting settings[] = {
	{ .path = FAILSLAB "ignore-gfp-wait", .value = "N" },
	{ .path = FAILSLAB "verbose", .value = "0" },
	{ .path = FAILSLAB "reject-start" },
	{ .path = FAILSLAB "reject-end" },
	{ .path = FAILSLAB "require-start" },
	{ .path = FAILSLAB "require-end" },
	{ .path = FAIL_PAGE "ignore-gfp-wait", .value = "N" },
	{ .path = FAIL_PAGE "min-order", .value = "0" },
	{ .path = FAIL_PAGE "verbose", .value = "0" },
	{ .path = FAIL_PAGE "reject-start" },
	{ .path = FAIL_PAGE "reject-end" },
	{ .path = FAIL_PAGE "require-start" },
	{ .path = FAIL_PAGE "require-end" },
};

#define NR_SETTINGS	((int)(sizeof(settings) / sizeof(settings[0])))

static int apply_settings(void)
{
	int err = 0;

	for (int i = 0; i < NR_SETTINGS && !err; i++) {
		struct setting *s = &settings[i];

		err = bp_read_file(s->path, s->saved, sizeof(s->saved));
		if (!err && s->value)
			err = bp_write_file(s->path, s->value);
	}
	return err;
}

static int write_range(const char *start, const char *end, const char *function)
{
	unsigned long from, to;
	char text[24];
	int err;

	if (!bp_ksym_range(function, &from, &to))
		return -ENOENT;
	snprintf(text, sizeof(text), "0x%lx", from);
	err = bp_write_file(start, text);
	snprintf(text, sizeof(text), "0x%lx", to);
	return err ?: bp_write_file(end, text);
}

/* Allocations of @function, and of functions that it calls, do not fail. */
static int fail_outside(const char *function)
{
	int err = write_range(FAILSLAB "reject-start", FAILSLAB "reject-end", function);

	return err ?: write_range(FAIL_PAGE "reject-start", FAIL_PAGE "reject-end", function);
}

/* Only allocations of @function, and of functions that it calls, fail. */
static int fail_inside(const char *function)
{
	int err = write_range(FAILSLAB "require-start", FAILSLAB "require-end", function);

	return err ?: write_range(FAIL_PAGE "require-start", FAIL_PAGE "require-end", function);
}

static void restore_settings(void)
{
	for (int i = 0; i < NR_SETTINGS; i++) {
		if (settings[i].saved[0])
			bp_write_file(settings[i].path, settings[i].saved);
	}
}

static void write_nth(int fd, unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fd, text, len, 0) != len)
		_exit(255);
}

/* Returns true if there was an n-th allocation. */
static bool nth_was_reached(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
}

/* Only the request itself is made between arm() and disarm(). */
static void arm(struct fault *f)
{
	write_nth(f->nth_fd, f->nth);
}

static void disarm(struct fault *f)
{
	f->injected = nth_was_reached(f->nth_fd);
	write_nth(f->nth_fd, 0);
}

/* ----------------------------------------------------------------------- accounting */

struct accounting {
	int task;
	int claims;
	int cpu[BP_MAX_CPUS];
};

/* Returns the number of claims that the kernel lists; -1 if it has no list. */
static int count_claims(void)
{
	FILE *f = fopen(CLAIMS_FILE, "re");
	char line[512];
	int nr = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		nr += !strncmp(line, "claim ", 6);
	fclose(f);
	return nr;
}

static void read_accounting(struct fault *f, struct accounting *accounting)
{
	accounting->claims = count_claims();
	accounting->task = bp_free_slots(0, -1);
	for (int i = 0; i < f->cpus.nr; i++)
		accounting->cpu[i] = bp_free_slots(-1, f->cpus.cpu[i]);
}

/*
 * Makes one request with one fault: returns 0 or a negative errno. Checks what a
 * successful request has created, and closes it.
 */
typedef int (*attempt_fn)(struct __test_metadata *_metadata, struct fault *f);

/* Returns how many times the request was refused. */
static int sweep_once(struct __test_metadata *_metadata, struct fault *f, const char *what,
		      attempt_fn attempt)
{
	int err = 0, refused = 0;
	struct accounting before;

	read_accounting(f, &before);
	for (f->nth = 1; f->nth < NTH_MAX; f->nth++) {
		f->injected = false;
		err = attempt(_metadata, f);
		EXPECT_TRUE(err == 0 || err == -ENOMEM) {
			TH_LOG("%s: %s at allocation %u", what, strerror(-err), f->nth);
		}
		EXPECT_EQ(before.claims, count_claims()) {
			TH_LOG("%s: claims after fault %u", what, f->nth);
		}
		if (!f->injected)
			break;
		refused += err != 0;
	}
	/* A slot that is lost stays lost. */
	EXPECT_EQ(before.task, bp_free_slots(0, -1));
	for (int i = 0; i < f->cpus.nr; i++) {
		EXPECT_EQ(before.cpu[i], bp_free_slots(-1, f->cpus.cpu[i])) {
			TH_LOG("%s: CPU %d", what, f->cpus.cpu[i]);
		}
	}
	/* All allocations of the last request succeeded. */
	EXPECT_EQ(0, err);
	EXPECT_FALSE(f->injected);
	return refused;
}

/*
 * A kernel with allocation debugging makes some allocations of its own now and then, so
 * that the fifth allocation becomes the sixth: repeat short sweeps, so that none is
 * missed.
 */
static int sweep(struct __test_metadata *_metadata, struct fault *f, const char *what,
		 attempt_fn attempt)
{
	int refused, most = 0;

	for (int round = 0; round < NR_ROUNDS; round++) {
		refused = sweep_once(_metadata, f, what, attempt);
		most = refused > most ? refused : most;
		if (f->nth > NTH_FEW)
			break;
	}
	TH_LOG("%s: %u faults, %d of them refused the request", what, f->nth - 1, most);
	return most;
}

/* ------------------------------------------------------------------- common fixture */

static unsigned long kernel_taint(void)
{
	char text[32] = "";

	bp_read_file("/proc/sys/kernel/tainted", text, sizeof(text));
	return strtoul(text, NULL, 10);
}

static void fault_begin(struct __test_metadata *_metadata, struct fault *f)
{
	int err;

	BP_NEED_ROOT();
	f->nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (f->nth_fd < 0)
		SKIP(return, "needs CONFIG_FAULT_INJECTION");
	err = apply_settings();
	/*
	 * The kernel warns if it finds no free vmalloc area, whatever the reason:
	 * exclude this.
	 */
	err = err ?: fail_outside("__vmalloc_node_range_noprof");
	if (err)
		restore_settings();
	ASSERT_EQ(0, err);

	f->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, f->mem);
	f->attr = bp_attr_w(f->mem, 1);
	f->cpus = bp_online_cpus();
	/* Stay on one CPU: an emulator may have fewer host CPUs than it shows. */
	ASSERT_EQ(0, bp_pin(f->cpus.cpu[0]));
	f->taint = kernel_taint();
	f->pid = 0;
	f->cpu = -1;
	f->group = -1;
}

static void fault_end(struct __test_metadata *_metadata, struct fault *f)
{
	restore_settings();
	EXPECT_EQ(f->taint, kernel_taint());
	bp_teardown(_metadata);
}

FIXTURE(fault)
{
	struct fault f;
};

FIXTURE_VARIANT(fault)
{
	__u64 config;
};

FIXTURE_VARIANT_ADD(fault, guaranteed)
{
	.config = 0,
};

FIXTURE_VARIANT_ADD(fault, flexible)
{
	.config = BP_FLEXIBLE,
};

FIXTURE_SETUP(fault)
{
	BP_NEED_CONFIG(variant->config);
	fault_begin(_metadata, &self->f);
	self->f.attr.config = variant->config;
}

FIXTURE_TEARDOWN(fault)
{
	fault_end(_metadata, &self->f);
}

/* ---------------------------------------------------------------------------- open */

static int try_open(struct __test_metadata *_metadata, struct fault *f)
{
	int fd;

	arm(f);
	fd = bp_open_group(&f->attr, f->pid, f->cpu, f->group, PERF_FLAG_FD_CLOEXEC);
	disarm(f);
	if (fd < 0)
		return fd;

	/* A breakpoint of this task that is alone must count. */
	if (!f->pid && f->cpu < 0 && f->group < 0) {
		bp_store(f->mem, 1);
		EXPECT_EQ(1, bp_count(fd));
	}
	close(fd);
	return 0;
}

TEST_F(fault, event_of_a_task)
{
	struct fault *f = &self->f;

	EXPECT_LT(0, sweep(_metadata, f, "counting", try_open));
	f->attr.sample_period = 1;
	f->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	EXPECT_LT(0, sweep(_metadata, f, "sampling", try_open));
}

TEST_F(fault, event_of_a_task_on_one_cpu)
{
	struct fault *f = &self->f;

	f->cpu = f->cpus.cpu[f->cpus.nr - 1];
	EXPECT_LT(0, sweep(_metadata, f, "bound", try_open));
}

TEST_F(fault, event_of_a_cpu)
{
	struct fault *f = &self->f;

	f->pid = -1;
	for (int i = 0; i < f->cpus.nr; i++) {
		f->cpu = f->cpus.cpu[i];
		EXPECT_LT(0, sweep(_metadata, f, "of a CPU", try_open));
	}
}

static pid_t start_sleeper(void)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	for (;;)
		pause();
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	bp_wait(pid);
}

/* The first event of a task allocates a perf context, so each attempt has a new task. */
static int try_open_first(struct __test_metadata *_metadata, struct fault *f)
{
	int err;

	f->pid = start_sleeper();
	ASSERT_LT(0, f->pid);
	err = try_open(_metadata, f);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(f->pid, -1));
	stop_child(f->pid);
	return err;
}

TEST_F(fault, first_event_of_a_task)
{
	EXPECT_LT(0, sweep(_metadata, &self->f, "first", try_open_first));
}

static int open_dummy(void)
{
	struct perf_event_attr attr = bp_attr_sw(PERF_COUNT_SW_DUMMY);

	return bp_open(&attr, 0, -1);
}

TEST_F(fault, event_in_a_group_of_a_task)
{
	struct fault *f = &self->f;

	f->group = bp_open(&f->attr, 0, -1);
	ASSERT_LE(0, f->group);
	EXPECT_LT(0, sweep(_metadata, f, "behind a breakpoint", try_open));
	close(f->group);

	f->group = open_dummy();
	ASSERT_LE(0, f->group);
	EXPECT_LT(0, sweep(_metadata, f, "behind a software event", try_open));
}

TEST_F(fault, event_in_a_group_of_a_cpu)
{
	struct fault *f = &self->f;

	f->pid = -1;
	f->cpu = f->cpus.cpu[0];
	f->group = bp_open(&f->attr, f->pid, f->cpu);
	ASSERT_LE(0, f->group);
	EXPECT_LT(0, sweep(_metadata, f, "behind a breakpoint", try_open));
}

static int try_open_of_cgroup(struct __test_metadata *_metadata, struct fault *f)
{
	int fd;

	arm(f);
	fd = bp_open_group(&f->attr, f->group, f->cpu, -1, PERF_FLAG_PID_CGROUP);
	disarm(f);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST_F(fault, event_of_a_cgroup)
{
	struct fault *f = &self->f;

	f->group = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, f->group);
	f->cpu = f->cpus.cpu[f->cpus.nr - 1];
	EXPECT_LT(0, sweep(_metadata, f, "of a cgroup", try_open_of_cgroup));
}

/* ------------------------------------------------------------ ring buffer, read */

static int try_map(struct __test_metadata *_metadata, struct fault *f)
{
	size_t size = (1 + f->pages) * sysconf(_SC_PAGESIZE);
	void *p;
	int err;

	arm(f);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd[0], 0);
	err = p == MAP_FAILED ? -errno : 0;
	disarm(f);
	if (!err)
		munmap(p, size);

	bp_store(f->mem, 1);
	EXPECT_EQ(++f->counts, bp_count(f->fd[0]));
	return err;
}

TEST_F(fault, ring_buffer)
{
	struct fault *f = &self->f;

	f->attr.sample_period = 1;
	f->fd[0] = bp_open(&f->attr, 0, -1);
	ASSERT_LE(0, f->fd[0]);
	f->pages = 1;
	EXPECT_LT(0, sweep(_metadata, f, "a page of ring", try_map));
	f->pages = 8;
	EXPECT_LT(8, sweep(_metadata, f, "eight pages of ring", try_map));
}

static int try_read_group(struct __test_metadata *_metadata, struct fault *f)
{
	__u64 values[1 + NR_HELD];
	int err, n;

	arm(f);
	n = read(f->fd[0], values, sizeof(values));
	err = n < 0 ? -errno : 0;
	disarm(f);
	if (!err) {
		EXPECT_EQ(sizeof(values), n);
		EXPECT_EQ(NR_HELD, values[0]);
	}
	return err;
}

TEST_F(fault, read_of_a_group)
{
	struct fault *f = &self->f;

	f->attr.read_format = PERF_FORMAT_GROUP;
	for (int i = 0; i < NR_HELD; i++) {
		f->fd[i] = bp_open_group(&f->attr, 0, -1, i ? f->fd[0] : -1,
					 PERF_FLAG_FD_CLOEXEC);
		ASSERT_LE(0, f->fd[i]);
	}
	EXPECT_LT(0, sweep(_metadata, f, "read", try_read_group));
}

static int try_list(struct __test_metadata *_metadata, struct fault *f)
{
	char text[4096];
	int fd, n, err;

	arm(f);
	fd = open(CLAIMS_FILE, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? fd : read(fd, text, sizeof(text));
	err = n < 0 ? -errno : 0;
	disarm(f);
	if (fd >= 0)
		close(fd);
	if (!err)
		EXPECT_LT(0, n);
	return err;
}

TEST_F(fault, list_of_claims)
{
	struct fault *f = &self->f;

	if (access(CLAIMS_FILE, R_OK))
		SKIP(return, "the kernel lists no claims");
	f->fd[0] = bp_open(&f->attr, 0, -1);
	ASSERT_LE(0, f->fd[0]);
	EXPECT_LT(0, sweep(_metadata, f, "list", try_list));
}

/* ---------------------------------------------------------------------------- fork */

/* One single event and a group of two, so that one register is left. */
static void open_inherited(struct __test_metadata *_metadata, struct fault *f)
{
	f->attr.inherit = 1;
	for (int i = 0; i < NR_HELD; i++) {
		f->attr.bp_addr = (unsigned long)f->mem + 64 * i;
		f->fd[i] = bp_open_group(&f->attr, 0, -1, i == 2 ? f->fd[1] : -1,
					 PERF_FLAG_FD_CLOEXEC);
		ASSERT_LE(0, f->fd[i]);
	}
}

/* Stores to each word until its event counts. Returns false if that takes ten seconds. */
static bool each_event_gets_a_register(struct fault *f, const int *fd, int nr)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + 10000000000ULL;

	for (int i = 0; i < nr; i++) {
		long long before = bp_count(fd[i]);

		while (bp_count(fd[i]) == before) {
			if (bp_now(CLOCK_MONOTONIC) > end)
				return false;
			bp_store(f->mem + 64 * i, 1);
		}
	}

	return true;
}

static int child_hits_all(void *mem)
{
	for (int i = 0; i < NR_HELD; i++)
		bp_store((char *)mem + 64 * i, 1);
	syscall(__NR_exit, 0);
	return 0;
}

/*
 * With CLONE_VFORK, because the child runs on the memory of its parent. A thread has
 * released its events when its tid no longer exists.
 *
 * The check of the free registers may have left flexible events without one until they are
 * rotated, and a child begins with the events that its parent has scheduled.
 */
static int try_clone(struct __test_metadata *_metadata, struct fault *f)
{
	static char stack[16384] __aligned(16);
	long long before[NR_HELD];
	pid_t pid;

	EXPECT_TRUE(each_event_gets_a_register(f, f->fd, NR_HELD));
	for (int i = 0; i < NR_HELD; i++)
		before[i] = bp_count(f->fd[i]);
	arm(f);
	pid = clone(child_hits_all, stack + sizeof(stack), f->clone_flags | CLONE_VFORK,
		    f->mem);
	if (pid < 0)
		pid = -errno;
	disarm(f);

	if (pid > 0) {
		if (!(f->clone_flags & CLONE_THREAD))
			EXPECT_EQ(0, bp_wait(pid));
		while (f->clone_flags & CLONE_THREAD &&
		       !syscall(__NR_tgkill, getpid(), pid, 0))
			sched_yield();
	}
	for (int i = 0; i < NR_HELD; i++)
		EXPECT_EQ(before[i] + (pid > 0), bp_count(f->fd[i]));
	return pid < 0 ? pid : 0;
}

/* Without the hundreds of allocations for a copy of the memory */
TEST_F(fault, inherited_events_of_a_process)
{
	struct fault *f = &self->f;

	open_inherited(_metadata, f);
	f->clone_flags = SIGCHLD;
	ASSERT_EQ(0, fail_inside("perf_event_init_task"));
	EXPECT_LT(NR_HELD, sweep(_metadata, f, "fork", try_clone));
}

/* Here also the allocations before and after the inheritance of events fail. */
TEST_F(fault, inherited_events_of_a_process_in_the_same_memory)
{
	struct fault *f = &self->f;

	open_inherited(_metadata, f);
	f->clone_flags = CLONE_VM | SIGCHLD;
	EXPECT_LT(NR_HELD, sweep(_metadata, f, "vfork", try_clone));
}

TEST_F(fault, inherited_events_of_a_thread)
{
	struct fault *f = &self->f;

	open_inherited(_metadata, f);
	f->clone_flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			 CLONE_THREAD | CLONE_SYSVSEM;
	EXPECT_LT(NR_HELD, sweep(_metadata, f, "thread", try_clone));
}

/* More flexible events than registers, inherited by children */
#define NR_ROTATED	(2 * BP_SLOTS)

FIXTURE(rotation)
{
	struct fault f;
	int fd[NR_ROTATED];
};

FIXTURE_SETUP(rotation)
{
	struct fault *f = &self->f;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	fault_begin(_metadata, f);
	if (!f->mem)
		return;
	f->attr.config = BP_FLEXIBLE;
	f->attr.inherit = 1;
	for (int i = 0; i < NR_ROTATED; i++) {
		f->attr.bp_addr = (unsigned long)f->mem + 64 * i;
		self->fd[i] = bp_open(&f->attr, 0, -1);
		ASSERT_LE(0, self->fd[i]);
	}
}

FIXTURE_TEARDOWN(rotation)
{
	fault_end(_metadata, &self->f);
}

/* Returns 0 or a negative errno. */
static int fork_with_fault(struct fault *f)
{
	pid_t pid;
	int err;

	arm(f);
	pid = fork();
	if (!pid)
		_exit(0);
	err = pid < 0 ? -errno : 0;
	disarm(f);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return err;
}

/* fork() stops the rotation of the parent's events while the child inherits them. */
TEST_F(rotation, events_are_rotated_after_a_failed_fork)
{
	struct fault *f = &self->f;
	int failed = 0;

	ASSERT_TRUE(each_event_gets_a_register(f, self->fd, NR_ROTATED));
	ASSERT_EQ(0, fail_inside("perf_event_init_task"));
	for (f->nth = 1; f->nth < NTH_MAX; f->nth++) {
		failed += fork_with_fault(f) == -ENOMEM;
		ASSERT_TRUE(each_event_gets_a_register(f, self->fd, NR_ROTATED)) {
			TH_LOG("after a fault at allocation %u", f->nth);
		}
		if (!f->injected)
			break;
	}
	EXPECT_LT(NR_ROTATED, failed);
}

/*
 * ------------------------------------------------------------- debug registers of
 * ptrace
 */

/* The fields of DR7 for register n: one byte, writes, enabled or not. */
#define DR7_ON(n)	(1UL << (2 * (n)))
#define DR7_W(n)	(1UL << (16 + 4 * (n)))
#define DR7_ALL_W	(DR7_W(0) | DR7_W(1) | DR7_W(2) | DR7_W(3))

static int dr_poke(pid_t pid, int n, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[n]), value) ?
		-errno : 0;
}

static unsigned long dr_peek(pid_t pid, int n)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[n]), 0);
}

static int dr_enabled(unsigned long dr7)
{
	int nr = 0;

	for (int n = 0; n < NR_DR; n++)
		nr += !!(dr7 & DR7_ON(n));
	return nr;
}

static int dr_write_all(struct fault *f)
{
	int err = 0;

	for (int n = 0; n < NR_DR && !err; n++)
		err = f->dr[n] ? dr_poke(f->pid, n, f->dr[n]) : 0;
	if (!err && f->dr[7])
		err = dr_poke(f->pid, 7, f->dr[7]);
	return err;
}

/* Stops and stores, repeatedly. */
static void be_traced(struct fault *f)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	for (;;) {
		raise(SIGSTOP);
		bp_store(f->mem, 1);
	}
}

FIXTURE(debugger)
{
	struct fault f;
};

FIXTURE_SETUP(debugger)
{
	struct fault *f = &self->f;

	fault_begin(_metadata, f);
	f->dr_nr = 7;
	/* The addresses differ, also those of registers that are not enabled. */
	for (int n = 0; n < NR_DR; n++)
		f->dr[n] = (unsigned long)f->mem + 64 * n;
}

FIXTURE_TEARDOWN(debugger)
{
	fault_end(_metadata, &self->f);
}

static void expect_registers(struct __test_metadata *_metadata, struct fault *f, int err)
{
	unsigned long want[8];
	int held;

	memcpy(want, f->dr, sizeof(want));
	if (!err)
		want[f->dr_nr] = f->dr_value;
	/* A slot that was disabled keeps its claim until the task is resumed. */
	held = dr_enabled(want[7]);
	if (held < dr_enabled(f->dr[7]))
		held = dr_enabled(f->dr[7]);
	for (int n = 0; n < NR_DR; n++)
		EXPECT_EQ(want[n], dr_peek(f->pid, n));
	EXPECT_EQ(want[7], dr_peek(f->pid, 7));
	EXPECT_EQ(BP_SLOTS - held, bp_free_slots(f->pid, -1));

	/* A breakpoint that is enabled must be hit. */
	if (want[7] & DR7_ON(0) && want[0] == (unsigned long)f->mem) {
		int status;

		ASSERT_EQ(0, ptrace(PTRACE_CONT, f->pid, 0, 0));
		ASSERT_EQ(f->pid, waitpid(f->pid, &status, 0));
		EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
}

static int try_poke(struct __test_metadata *_metadata, struct fault *f)
{
	int status, err;

	f->pid = bp_fork();
	ASSERT_LE(0, f->pid);
	if (!f->pid)
		be_traced(f);
	ASSERT_EQ(f->pid, waitpid(f->pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, dr_write_all(f));

	arm(f);
	err = dr_poke(f->pid, f->dr_nr, f->dr_value);
	disarm(f);
	expect_registers(_metadata, f, err);
	stop_child(f->pid);
	return err;
}

TEST_F(debugger, first_address)
{
	struct fault *f = &self->f;

	memset(f->dr, 0, sizeof(f->dr));
	f->dr_nr = 0;
	f->dr_value = (unsigned long)f->mem;
	EXPECT_LT(0, sweep(_metadata, f, "first address", try_poke));
}

TEST_F(debugger, first_dr7)
{
	struct fault *f = &self->f;

	memset(f->dr, 0, sizeof(f->dr));
	f->dr_value = DR7_ALL_W | DR7_ON(0);
	EXPECT_LT(0, sweep(_metadata, f, "first DR7", try_poke));
}

TEST_F(debugger, dr7_that_enables)
{
	struct fault *f = &self->f;

	f->dr_value = DR7_ALL_W | DR7_ON(0) | DR7_ON(1) | DR7_ON(2) | DR7_ON(3);
	EXPECT_LT(3, sweep(_metadata, f, "four", try_poke));
}

TEST_F(debugger, dr7_that_enables_more)
{
	struct fault *f = &self->f;

	f->dr[7] = DR7_ALL_W | DR7_ON(0) | DR7_ON(2);
	f->dr_value = DR7_ALL_W | DR7_ON(0) | DR7_ON(1) | DR7_ON(2) | DR7_ON(3);
	EXPECT_LT(1, sweep(_metadata, f, "two more", try_poke));
}

TEST_F(debugger, dr7_that_rearranges)
{
	struct fault *f = &self->f;

	f->dr[7] = DR7_ALL_W | DR7_ON(0) | DR7_ON(1);
	f->dr_value = DR7_ALL_W | DR7_ON(2) | DR7_ON(3);
	sweep(_metadata, f, "two for two", try_poke);
	f->dr_value = DR7_ALL_W | DR7_ON(1) | DR7_ON(2) | DR7_ON(3);
	EXPECT_LT(0, sweep(_metadata, f, "three for two", try_poke));
}

TEST_F(debugger, writes_that_need_no_new_register)
{
	struct fault *f = &self->f;

	f->dr[7] = DR7_ALL_W | DR7_ON(0) | DR7_ON(1);
	f->dr_value = DR7_W(0) | DR7_ON(0) | DR7_ON(1);
	sweep(_metadata, f, "another type", try_poke);
	f->dr_value = 0;
	sweep(_metadata, f, "none for two", try_poke);
	f->dr_nr = 0;
	f->dr_value = (unsigned long)f->mem + 512;
	sweep(_metadata, f, "another address", try_poke);
}

/* -------------------------------------------------------------------- exec and exit */

/*
 * A program that does nothing but exit, with few allocations after exec: an ELF header,
 * a program header and three instructions.
 */
extern const char image[], image_end[];

asm(".pushsection .rodata, \"a\", @progbits\n"
	"image:\n"
#ifdef __x86_64__
	"	.byte	0x7f, 'E', 'L', 'F', 2, 1, 1, 0\n"
	"	.quad	0\n"
	"	.short	2, 62\n"
	"	.long	1\n"
	"	.quad	0x10000 + image_code - image, image_segment - image, 0\n"
	"	.long	0\n"
	"	.short	64, 56, 1, 0, 0, 0\n"
	"image_segment:\n"
	"	.long	1, 5\n"
	"	.quad	0, 0x10000, 0, image_end - image, image_end - image, 4096\n"
	"image_code:\n"
	"	movl	$60, %eax\n"
	"	xorl	%edi, %edi\n"
	"	syscall\n"
#else
	"	.byte	0x7f, 'E', 'L', 'F', 1, 1, 1, 0\n"
	"	.quad	0\n"
	"	.short	2, 3\n"
	"	.long	1\n"
	"	.long	0x10000 + image_code - image, image_segment - image, 0\n"
	"	.long	0\n"
	"	.short	52, 32, 1, 0, 0, 0\n"
	"image_segment:\n"
	"	.long	1, 0, 0x10000, 0, image_end - image, image_end - image, 5, 4096\n"
	"image_code:\n"
	"	movl	$1, %eax\n"
	"	xorl	%ebx, %ebx\n"
	"	int	$0x80\n"
#endif
	"image_end:\n"
	".popsection\n");

/* Closes the file for writing, so that it can be executed. */
static int open_image(void)
{
	int fd = memfd_create("image", MFD_CLOEXEC), image_fd;
	ssize_t size = image_end - image;
	char path[64];

	if (write(fd, image, size) != size)
		return -EIO;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	image_fd = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return image_fd;
}

/* An exit status that is no errno */
#define END_BROKEN	255

/* Returns only if exec fails. */
static void exec_with_fault(struct fault *f, int fd[2])
{
	static char * const argv[] = { "image", NULL };
	int err;

	arm(f);
	fexecve(f->image, argv, argv + 1);
	err = errno;
	write_nth(f->nth_fd, 0);

	/* The old image continues, and its events must still count. */
	bp_store(f->mem, 1);
	bp_store(f->mem + 64, 1);
	_exit(bp_count(fd[0]) == 1 && bp_count(fd[1]) == 1 ? err : END_BROKEN);
}

/* The task has two events of its own, and up to two of a debugger. */
static void end_with_fault(struct fault *f, bool exec)
{
	int fd[2];

	fd[0] = bp_open(&f->attr, 0, -1);
	f->attr.bp_addr += 64;
	f->attr.inherit = 1;
	fd[1] = bp_open(&f->attr, 0, -1);
	f->nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd[0] < 0 || fd[1] < 0 || f->nth_fd < 0)
		_exit(END_BROKEN);
	if (f->traced) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
	}

	if (exec)
		exec_with_fault(f, fd);
	arm(f);
	_exit(0);
}

/* Resumes a traced task until it exits; the caller waits for it. */
static void follow(struct __test_metadata *_metadata, struct fault *f)
{
	siginfo_t info;
	int status, sig;

	while (!waitid(P_PID, f->pid, &info, WEXITED | WSTOPPED | WNOWAIT) &&
	       (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)) {
		ASSERT_EQ(f->pid, waitpid(f->pid, &status, 0));
		sig = WSTOPSIG(status);
		if (sig == SIGSTOP)
			ASSERT_EQ(0, dr_write_all(f));
		/* The new image must not have debug registers of the old one. */
		if (sig == SIGTRAP)
			EXPECT_EQ(0, dr_peek(f->pid, 7));
		ASSERT_EQ(0, ptrace(PTRACE_CONT, f->pid, 0,
				    sig == SIGSTOP || sig == SIGTRAP ? 0 : sig));
	}
}

/*
 * The task can end in three ways: the new image runs and exits; exec fails, with one of
 * several errors of its own, and the old image exits; or the kernel kills the task if
 * exec fails after the old image is gone.
 */
static int try_to_end(struct __test_metadata *_metadata, struct fault *f, bool exec)
{
	char path[64];
	siginfo_t info;
	int fd, status;

	f->pid = bp_fork();
	ASSERT_LE(0, f->pid);
	if (!f->pid)
		end_with_fault(f, exec);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fail-nth", f->pid, f->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);

	if (f->traced)
		follow(_metadata, f);
	ASSERT_EQ(0, waitid(P_PID, f->pid, &info, WEXITED | WNOWAIT));
	f->injected = nth_was_reached(fd);
	close(fd);

	status = bp_wait(f->pid);
	switch (status) {
	case E2BIG:
	case ENOEXEC:
	case 256 + SIGKILL:
	case 256 + SIGSEGV:
		return -ENOMEM;
	}
	return -status;
}

static int try_exec(struct __test_metadata *_metadata, struct fault *f)
{
	return try_to_end(_metadata, f, true);
}

static int try_exit(struct __test_metadata *_metadata, struct fault *f)
{
	return try_to_end(_metadata, f, false);
}

TEST_F(fault, exec)
{
	struct fault *f = &self->f;

	f->image = open_image();
	ASSERT_LE(0, f->image);
	EXPECT_LT(0, sweep(_metadata, f, "exec", try_exec));
}

TEST_F(fault, exit)
{
	EXPECT_EQ(0, sweep(_metadata, &self->f, "exit", try_exit));
}

TEST_F(debugger, exec_of_a_tracee)
{
	struct fault *f = &self->f;

	f->traced = true;
	f->dr[7] = DR7_ALL_W | DR7_ON(2) | DR7_ON(3);
	f->image = open_image();
	ASSERT_LE(0, f->image);
	EXPECT_LT(0, sweep(_metadata, f, "exec", try_exec));
}

TEST_F(debugger, exit_of_a_tracee)
{
	struct fault *f = &self->f;

	f->traced = true;
	f->dr[7] = DR7_ALL_W | DR7_ON(2) | DR7_ON(3);
	EXPECT_EQ(0, sweep(_metadata, f, "exit", try_exit));
}

TEST_HARNESS_MAIN
