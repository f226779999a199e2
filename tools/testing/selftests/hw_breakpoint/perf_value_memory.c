// SPDX-License-Identifier: GPL-2.0
/*
 * Which events share a chain, and whose memory it tells; see values.h.
 *
 * The rule: events with equal attributes that one thread opens for one task or process, each
 * for another CPU, have one chain for each memory. Any other two events have two, each of
 * which tells all changes. A memory is told to those who may read it. A chain is looked for,
 * kept and released at costs that do not depend on how many events or tasks there were.
 */
#include <linux/capability.h>
#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "values.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON	38
#endif

/* ------------------------------------------------------------- which events share */

/* A second event on the object, and its ring */
struct other {
	int fd;
	struct bp_ring ring;
};

static void open_other(struct __test_metadata *_metadata, struct other *other,
		       struct perf_event_attr attr, int cpu)
{
	other->fd = bp_open(&attr, 0, cpu);
	ASSERT_GE(other->fd, 0);
	ASSERT_EQ(0, bp_ring_map(&other->ring, other->fd, 4, PROT_READ | PROT_WRITE));
}

static void expect_other(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self,
			 struct other *other, __u64 before, __u64 after)
{
	struct hit hit;

	ASSERT_TRUE(next_hit(&other->ring, &self->rec, &hit));
	EXPECT_EQ(BOTH, hit.flags);
	EXPECT_EQ(before, hit.before);
	EXPECT_EQ(after, hit.after);
}

static void store_on(struct __test_metadata *_metadata, void *mem, int cpu, __u64 v)
{
	ASSERT_EQ(0, bp_pin(cpu));
	store32(mem, v);
}

/* The emulator reports an access to one of two registers with the same address only. */
TEST_F(value, events_of_one_cpu_each_tell_all_changes)
{
	int first = self->cpus.cpu[0], second = self->cpus.cpu[1];
	struct other same, elsewhere;

	BP_NEED_CPUS(self->cpus, 2);
	open_ring(_metadata, self, 0, first);
	open_other(_metadata, &elsewhere, self->attr, second);
	ASSERT_EQ(0, bp_disable(self->fd));
	/* The event elsewhere shares the chain of the one that is off, so this one must not. */
	open_other(_metadata, &same, self->attr, first);
	store_on(_metadata, self->mem, first, 1);
	store_on(_metadata, self->mem, second, 2);
	store_on(_metadata, self->mem, first, 3);
	expect_other(_metadata, self, &elsewhere, 0, 2);
	expect_other(_metadata, self, &same, 0, 1);
	expect_other(_metadata, self, &same, 1, 3);
	bp_ring_unmap(&same.ring);
	bp_ring_unmap(&elsewhere.ring);
}

TEST_F(value, events_that_differ_have_their_own_chains)
{
	struct perf_event_attr attr = self->attr;
	struct other other;

	BP_NEED_CPUS(self->cpus, 2);
	open_ring(_metadata, self, 0, self->cpus.cpu[0]);
	attr.config |= CHANGED;
	open_other(_metadata, &other, attr, self->cpus.cpu[1]);
	store_on(_metadata, self->mem, self->cpus.cpu[0], 1);
	store_on(_metadata, self->mem, self->cpus.cpu[1], 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_other(_metadata, self, &other, 0, 2);
	bp_ring_unmap(&other.ring);
}

struct opener {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
};

static long open_by_thread(int cmd, void *arg)
{
	struct opener *o = arg;

	return bp_open(&o->attr, o->pid, o->cpu);
}

TEST_F(value, events_of_two_openers_have_their_own_chains)
{
	struct opener o = { self->attr, getpid(), self->cpus.cpu[1] };
	struct bp_worker thread;
	struct other other;

	BP_NEED_CPUS(self->cpus, 2);
	open_ring(_metadata, self, 0, self->cpus.cpu[0]);
	ASSERT_EQ(0, bp_start_thread(&thread, open_by_thread, &o));
	other.fd = bp_do(&thread, 0);
	ASSERT_GE(other.fd, 0);
	ASSERT_EQ(0, bp_ring_map(&other.ring, other.fd, 4, PROT_READ | PROT_WRITE));
	store_on(_metadata, self->mem, self->cpus.cpu[0], 1);
	store_on(_metadata, self->mem, self->cpus.cpu[1], 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_other(_metadata, self, &other, 0, 2);
	bp_ring_unmap(&other.ring);
}

FIXTURE(pair)
{
	struct bp_cpus cpus;
	FIXTURE_DATA(value) v;
};

FIXTURE_VARIANT(pair)
{
	__u64 config;
};

FIXTURE_VARIANT_ADD(pair, of_a_thread) { };
FIXTURE_VARIANT_ADD(pair, of_a_process) { .config = BP_PROCESS };

FIXTURE_SETUP(pair)
{
	self->v.mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->v.mem);
	self->cpus = bp_online_cpus();
	self->v.attr = value_attr(self->v.mem);
	self->v.attr.config |= variant->config;
}

FIXTURE_TEARDOWN(pair)
{
	bp_teardown(_metadata);
}

/* The event that stays on does not lose the change of the other CPU. */
TEST_F(pair, enabling_one_of_two_events_loses_no_change)
{
	FIXTURE_DATA(value) *v = &self->v;
	struct other other;

	BP_NEED_CPUS(self->cpus, 2);
	open_ring(_metadata, v, 0, self->cpus.cpu[0]);
	open_other(_metadata, &other, v->attr, self->cpus.cpu[1]);
	store_on(_metadata, v->mem, self->cpus.cpu[0], 1);
	ASSERT_EQ(0, bp_disable(v->fd));
	store32(v->mem, 2);
	ASSERT_EQ(0, bp_enable(v->fd));
	store_on(_metadata, v->mem, self->cpus.cpu[1], 3);
	expect_hit(_metadata, v, BOTH, 0, 1);
	expect_other(_metadata, v, &other, 1, 3);
	bp_ring_unmap(&other.ring);
	bp_ring_unmap(&v->ring);
}

/* ----------------------------------------------------------------- several pages */

TEST_F(value, object_may_cross_a_page)
{
	char *next = self->mem + BP_PAGE_SIZE;

	ASSERT_EQ(next, mmap(next, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	self->attr.bp_addr = (unsigned long)next - 4;
	self->attr.bp_len = 8;
	store32(next, 2);
	open_ring(_metadata, self, 0, -1);
	store32(next - 4, 1);
	store32(next, 3);
	ASSERT_EQ(0, munmap(next, BP_PAGE_SIZE));
	store32(next - 4, 4);
	expect_hit(_metadata, self, BOTH, 2ULL << 32, 2ULL << 32 | 1);
	expect_hit(_metadata, self, BOTH, 2ULL << 32 | 1, 3ULL << 32 | 1);
	expect_hit(_metadata, self, HW_BREAKPOINT_BEFORE_KNOWN, 3ULL << 32 | 1, 0);
}

/* ------------------------------------------------------------------ fork and exec */

static void inherit(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self)
{
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	self->attr.inherit = 1;
	open_ring(_metadata, self, 0, self->cpus.cpu[0]);
}

/* The other thread may write after the child got its event, and before its memory. */
TEST_F(value, child_of_a_process_with_threads_starts_from_an_unknown_value)
{
	struct bp_worker thread, child;

	ASSERT_EQ(0, bp_start_thread(&thread, store_values, self->mem));
	inherit(_metadata, self);
	store32(self->mem, 1);
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem));
	bp_do(&child, 11);
	bp_do(&child, 12);
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, HW_BREAKPOINT_AFTER_KNOWN, 0, 11);
	expect_hit(_metadata, self, BOTH, 11, 12);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_no_hit(_metadata, self);
	EXPECT_EQ(0, bp_stop(&thread));
}

/* A bp_work_fn: the CPU to store on is in the upper half of @cmd. */
static long store_on_cpu(int cmd, void *mem)
{
	bp_pin(cmd >> 16);
	store32(mem, cmd & 0xffff);
	return 0;
}

/* Its events are inherited from events that have one chain. */
TEST_F(value, child_has_one_chain_for_all_cpus)
{
	int first = self->cpus.cpu[0], second = self->cpus.cpu[1];
	struct bp_worker child;
	struct other other;

	BP_NEED_CPUS(self->cpus, 2);
	inherit(_metadata, self);
	open_other(_metadata, &other, self->attr, second);
	ASSERT_EQ(0, bp_start(&child, store_on_cpu, self->mem));
	bp_do(&child, first << 16 | 11);
	bp_do(&child, second << 16 | 12);
	bp_do(&child, first << 16 | 13);
	expect_hit(_metadata, self, BOTH, 0, 11);
	expect_hit(_metadata, self, BOTH, 12, 13);
	expect_other(_metadata, self, &other, 11, 12);

	/* The event that stays on does not lose the change of the other CPU. */
	ASSERT_EQ(0, bp_disable(self->fd));
	bp_do(&child, first << 16 | 14);
	ASSERT_EQ(0, bp_enable(self->fd));
	bp_do(&child, second << 16 | 15);
	expect_other(_metadata, self, &other, 13, 15);
	bp_ring_unmap(&other.ring);
}

static volatile bool done;
static volatile long nr_failed;

/* PID 1 exists: clone3() fails when all but the ID of the new task is there. */
static void *fail_to_fork(void *arg)
{
	pid_t init = 1;
	struct clone_args args = {
		.exit_signal	= SIGCHLD,
		.set_tid	= (unsigned long)&init,
		.set_tid_size	= 1,
	};

	(void)arg;
	while (!done) {
		if (syscall(SYS_clone3, &args, sizeof(args)) != -1 || errno != EEXIST)
			return arg;
		nr_failed++;
	}
	return NULL;
}

/* A task that is being created may never have the memory that it is to get. */
TEST_F(value, event_can_be_modified_while_forks_fail)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int rounds = bp_rounds(400), i;
	void *failed = NULL;
	pthread_t thread;

	BP_NEED_ROOT();
	self->attr.inherit = 1;
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
	done = false;
	nr_failed = 0;
	ASSERT_EQ(0, pthread_create(&thread, NULL, fail_to_fork, self));
	/* The thread may run late. */
	for (i = 0; i < rounds || (nr_failed < rounds / 4 && bp_has_patience(start)); i++) {
		self->attr.bp_addr = (unsigned long)self->mem + i % 2 * 8;
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	}
	done = true;
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_LT(0, nr_failed);
}

/* Each child creates the next one and exits. The last one waits. */
static void run_generations(int nr, int ready, int end)
{
	char c = 0;

	for (int i = 0; i < nr; i++) {
		if (fork())
			_exit(0);
	}
	if (write(ready, &c, 1) != 1 || read(end, &c, 1) != 0)
		_exit(1);
	_exit(0);
}

static long unreclaimable_kib(void)
{
	char text[8192], *line;

	if (bp_read_file("/proc/meminfo", text, sizeof(text)))
		return -1;
	line = strstr(text, "SUnreclaim:");
	return line ? atol(line + strlen("SUnreclaim:")) : -1;
}

#define GENERATIONS	600

/* More than 1 KiB of each memory would stay. */
TEST_F(value, memory_of_former_generations_is_released)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int ready[2], end[2];
	long before, used;
	char c;

	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		SKIP(return, "needs a kernel that frees memory at once");
	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(end, O_CLOEXEC));
	inherit(_metadata, self);
	before = unreclaimable_kib();
	ASSERT_LT(0, before);
	/* No parent waits for the children, which are reaped when they exit. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	signal(SIGCHLD, SIG_IGN);
	if (!fork()) {
		close(end[1]);
		run_generations(GENERATIONS, ready[1], end[0]);
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	do {
		usleep(10000);
		used = unreclaimable_kib() - before;
	} while (used > GENERATIONS / 2 && bp_now(CLOCK_MONOTONIC) - start < 10000000000ULL);
	EXPECT_GE(GENERATIONS / 2, used);
	close(end[1]);
	while (wait(NULL) > 0)
		continue;
}

#define IMAGE	"PERF_VALUE_IMAGE"

/*
 * The program that run_image() executes maps the page, does not touch it, and stops. Then it
 * stores a zero.
 */
static void __attribute__((constructor)) image(void)
{
	char *mem;

	if (!getenv(IMAGE))
		return;
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	raise(SIGSTOP);
	store32(mem + 8, 0);
	_exit(0);
}

static void *execute_image(void *unused)
{
	char *argv[] = { "image", NULL }, *env[] = { IMAGE "=1", NULL };

	execve("/proc/self/exe", argv, env);
	_exit(1);
}

static void run_image(void)
{
	raise(SIGSTOP);
	execute_image(NULL);
}

static bool is_mapped(pid_t pid, void *page)
{
	char path[32];
	__u64 entry = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pread(fd, &entry, sizeof(entry), (unsigned long)page / BP_PAGE_SIZE * 8) != 8)
		entry = ~0ULL;
	close(fd);
	return entry >> 63;
}

/* Opens the event for a child that calls @run; returns when the image has stopped. */
static int open_before_image(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self,
			     void (*run)(void), pid_t *pid)
{
	int status, fd;

	*pid = bp_fork();
	if (!*pid)
		run();
	ASSERT_EQ(*pid, waitpid(*pid, &status, WUNTRACED));
	fd = bp_open(&self->attr, *pid, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, kill(*pid, SIGCONT));
	ASSERT_EQ(*pid, waitpid(*pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	return fd;
}

/* The next program may be one that the opener must not see. A look would map the page. */
TEST_F(value, modifying_an_event_that_has_ended_does_not_look_at_the_next_program)
{
	pid_t pid;
	int fd;

	self->attr.remove_on_exec = 1;
	fd = open_before_image(_metadata, self, run_image, &pid);
	ASSERT_FALSE(is_mapped(pid, self->mem));
	self->attr.bp_addr += 8;
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_FALSE(is_mapped(pid, self->mem));
}

static void run_image_by_thread(void)
{
	pthread_t thread;

	raise(SIGSTOP);
	pthread_create(&thread, NULL, execute_image, NULL);
	for (;;)
		pause();
}

/* The thread takes the ID of the leader, for which the event was opened, and replaces it. */
TEST_F(value, modifying_an_event_finds_the_memory_of_a_thread_that_executed_a_program)
{
	pid_t pid;
	int fd;

	self->attr.config = CHANGED | HW_BREAKPOINT_PROCESS;
	fd = open_before_image(_metadata, self, run_image_by_thread, &pid);
	self->attr.bp_addr += 8;
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	ASSERT_EQ(0, kill(pid, SIGCONT));
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(1, silent(fd));
}

/* ------------------------------------------------------------------- ERROR state */

#define HW_COUNTERS	"/sys/module/" BP_PMU_MODULE "/parameters/counters"

/* perf reserves what such an event needs again. */
TEST_F(value, child_in_error_state_keeps_its_chain)
{
	struct perf_event_attr hw = { .size = sizeof(hw), .inherit = 1 };
	struct bp_worker child;
	int fd, err;

	BP_NEED_ROOT();
	err = bp_load_module(BP_PMU_MODULE_PATH, "");
	if (err == -ENOENT)
		SKIP(return, "needs the module " BP_PMU_MODULE_PATH);
	ASSERT_EQ(0, err);
	hw.type = bp_read_number(BP_TEST_PMU "/type");
	self->attr.pinned = 1;
	inherit(_metadata, self);
	fd = bp_open_group(&hw, 0, self->cpus.cpu[0], self->fd, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, store_values, self->mem));
	store32(self->mem, 1);
	bp_do(&child, 101);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 0, 101);

	/* The group does not fit, and its leader is pinned. */
	ASSERT_EQ(0, bp_write_file(HW_COUNTERS, "0"));
	bp_do(&child, 102);
	expect_no_hit(_metadata, self);
	ASSERT_EQ(0, bp_write_file(HW_COUNTERS, "2"));
	ASSERT_EQ(0, bp_enable(self->fd));
	bp_do(&child, 103);
	store32(self->mem, 2);
	expect_hit(_metadata, self, BOTH, 102, 103);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_no_hit(_metadata, self);

	EXPECT_EQ(0, bp_stop(&child));
	bp_ring_unmap(&self->ring);
	self->ring.page = NULL;
	bp_close(&fd, 1);
	bp_close(&self->fd, 1);
	EXPECT_EQ(0, bp_remove_module(BP_PMU_MODULE_PATH));
}

/* ------------------------------------------------------------------------- costs */

#define EVENTS		2000
#define MEASURED	100

/* Opens MEASURED events some times, and returns the minimum of the time that it takes. */
static __u64 time_to_open(struct __test_metadata *_metadata, struct perf_event_attr *attr)
{
	__u64 start, time, least = ~0ULL;
	int fd[MEASURED];

	for (int try = 0; try < 5; try++) {
		start = bp_now(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < MEASURED; i++) {
			fd[i] = bp_open(attr, 0, -1);
			ASSERT_LE(0, fd[i]);
		}
		time = bp_now(CLOCK_THREAD_CPUTIME_ID) - start;
		least = time < least ? time : least;
		bp_close(fd, MEASURED);
	}
	return least;
}

/* The event looks for no chain that it could share. */
TEST_F(value, cost_to_open_an_event_does_not_depend_on_how_many_there_are)
{
	struct rlimit many = { EVENTS + 5 * MEASURED, EVENTS + 5 * MEASURED };
	struct perf_event_attr attr = self->attr, disabled;
	__u64 plain[2], valued[2];

	BP_NEED_ROOT();
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &many));
	attr.config |= BP_FLEXIBLE;
	attr.disabled = 1;
	disabled = attr;
	disabled.config = BP_FLEXIBLE;
	plain[0] = time_to_open(_metadata, &disabled);
	valued[0] = time_to_open(_metadata, &attr);
	for (int i = 0; i < bp_rounds(EVENTS); i++)
		ASSERT_LE(0, bp_open(&attr, 0, -1));
	plain[1] = time_to_open(_metadata, &disabled);
	valued[1] = time_to_open(_metadata, &attr);
	/* What perf core does for each event of the task is in both. */
	EXPECT_GT(2 * valued[0] + (plain[1] > plain[0] ? plain[1] - plain[0] : 0), valued[1]) {
		TH_LOG("%llu -> %llu ns, without values %llu -> %llu", valued[0], valued[1],
		       plain[0], plain[1]);
	}
}

/* -------------------------------------------------------------------- permission */

/* Kinds of processes to be watched. Their users are nobody, but for OF_ROOT. */
enum { OF_ROOT, OF_NOBODY, NOT_DUMPABLE, WITH_CAPABILITY, WITH_A_THREAD_OF_ROOT, NR_KINDS };

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int become(int kind)
{
	pthread_t thread;

	if (kind == OF_ROOT)
		return 0;
	if (kind == WITH_A_THREAD_OF_ROOT) {
		/* Without the library, which changes the credentials of all threads */
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL) ||
		    syscall(SYS_setresgid, BP_NOBODY, BP_NOBODY, BP_NOBODY) ||
		    syscall(SYS_setresuid, BP_NOBODY, BP_NOBODY, BP_NOBODY))
			return -errno;
	} else if (bp_become_nobody_with(kind == WITH_CAPABILITY ? 1ULL << CAP_SYS_NICE : 0)) {
		return -errno;
	}
	/* The change of the user has cleared this flag. */
	return kind == NOT_DUMPABLE ? 0 : prctl(PR_SET_DUMPABLE, 1);
}

struct target {
	int kind;
	char *mem;
};

static long be_target(int cmd, void *arg)
{
	struct target *t = arg;

	(void)cmd;
	return become(t->kind);
}

struct request {
	struct perf_event_attr attr;
	struct target target;
	pid_t pid;
	unsigned long long caps;
	bool root;
};

/* Bits of the result of try() */
enum { MAY_READ = 1, MAY_OPEN = 2, OTHER_ERROR = 4 };

static int try(void *arg)
{
	struct request *r = arg;
	struct iovec remote = { r->target.mem, 4 }, local;
	int fd, result = 0;
	char bytes[4];

	if (!r->root && bp_become_nobody_with(r->caps))
		return OTHER_ERROR;
	local = (struct iovec) { bytes, sizeof(bytes) };
	if (process_vm_readv(r->pid, &local, 1, &remote, 1, 0) == sizeof(bytes))
		result |= MAY_READ;
	fd = bp_open(&r->attr, r->pid, -1);
	if (fd >= 0)
		result |= MAY_OPEN;
	else if (fd != -EACCES)
		result |= OTHER_ERROR;
	return result;
}

static const unsigned long long openers[] = {
	0, 1ULL << CAP_PERFMON, 1ULL << CAP_SYS_PTRACE,
	1ULL << CAP_PERFMON | 1ULL << CAP_SYS_PTRACE,
};

/* True if the opener may read the memory of thread pid, or with @all of each thread */
static bool may_see(int kind, unsigned long long caps, bool all)
{
	if (caps & 1ULL << CAP_SYS_PTRACE)
		return true;
	return kind == OF_NOBODY || (kind == WITH_A_THREAD_OF_ROOT && !all);
}

static void expect_permission(struct __test_metadata *_metadata, struct request *r, bool yama)
{
	static const __u64 config[] = {
		VALUE, CHANGED, VALUE | BP_FLEXIBLE, VALUE | BP_PROCESS, CHANGED | BP_PROCESS,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(config); i++) {
		bool all = config[i] & BP_PROCESS;
		int want = 0, got;

		r->attr.config = config[i];
		got = bp_in_child(try, r);
		if (yama)
			want = got & MAY_READ ? MAY_READ | MAY_OPEN : 0;
		else if (r->root || may_see(r->target.kind, r->caps, false))
			want = MAY_READ | MAY_OPEN;
		if (!r->root && !may_see(r->target.kind, r->caps, all))
			want &= ~MAY_OPEN;
		EXPECT_EQ(want, got) {
			TH_LOG("kind %d, caps %llx, config %llx", r->target.kind, r->caps,
			       config[i]);
		}
	}
}

static void expect_permissions(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self,
			       bool yama)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		struct request r = { .attr = self->attr, .target = { kind, self->mem } };
		struct bp_worker w;

		ASSERT_EQ(0, bp_start(&w, be_target, &r.target));
		ASSERT_EQ(0, bp_do(&w, 0));
		r.pid = w.pid;
		for (unsigned int i = 0; i < ARRAY_SIZE(openers); i++) {
			r.caps = openers[i];
			expect_permission(_metadata, &r, yama);
		}
		r.root = true;
		expect_permission(_metadata, &r, yama);
		EXPECT_EQ(0, bp_stop(&w));
	}
}

#define YAMA	"/proc/sys/kernel/yama/ptrace_scope"

/* Values are told to exactly those who may read them by process_vm_readv(). */
TEST_F(value, memory_is_told_to_those_who_may_read_it)
{
	long scope = bp_read_number(YAMA);

	BP_NEED_ROOT();
	store32(self->mem, 1);
	if (scope < 0) {
		expect_permissions(_metadata, self, false);
		return;
	}
	ASSERT_EQ(0, bp_write_file(YAMA, "0"));
	expect_permissions(_metadata, self, false);
	ASSERT_EQ(0, bp_write_file(YAMA, "1"));
	expect_permissions(_metadata, self, true);
	ASSERT_EQ(0, bp_write_file(YAMA, scope ? "1" : "0"));
}

static int open_kernel_address(void *arg)
{
	struct request *r = arg;
	int fd;

	if (bp_become_nobody_with(r->caps))
		return 255;
	fd = bp_open(&r->attr, 0, -1);
	return fd < 0 ? -fd : 0;
}

/* The address alone decides: whether addresses are shown does not matter. */
TEST_F(value, kernel_memory_is_not_told_by_any_other_capability)
{
	unsigned long address = (unsigned long)bp_ksym("jiffies_64");
	struct request r = { .attr = self->attr };

	BP_NEED_ROOT();
	if (!address)
		SKIP(return, "needs the symbol jiffies_64");
	r.attr.bp_addr = address;
	r.attr.exclude_kernel = 0;
	for (int cap = 0; cap <= CAP_PERFMON; cap++) {
		r.caps = 1ULL << cap | 1ULL << CAP_PERFMON;
		EXPECT_EQ(cap == CAP_SYS_ADMIN ? 0 : EPERM,
			  bp_in_child(open_kernel_address, &r)) {
			TH_LOG("capability %d", cap);
		}
	}
}

TEST_HARNESS_MAIN
