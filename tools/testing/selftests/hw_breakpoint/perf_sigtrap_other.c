// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: ring buffers, BPF filters, and events that are not breakpoints.
 *
 * The rule: hits of events that are not breakpoints coalesce. A ring buffer with
 * samples, or a BPF program of the event, works as without signals.
 */
#include "bp_bpf.h"
#include "sigtrap.h"

TEST_F(trap, samples_go_to_the_ring_as_well)
{
	static union bp_record rec;
	struct bp_ring ring;
	int samples = 0;

	self->attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_IP;
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd, 4, PROT_READ | PROT_WRITE));
	for (int i = 0; i < 50; i++)
		count_func(word(0));
	EXPECT_EQ(50, nr_seen);
	while (bp_ring_next(&ring, &rec)) {
		ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
		EXPECT_EQ((unsigned long)(BP_AFTER_ACCESS ? count_next : count_insn), rec.u64[1]);
		EXPECT_EQ((unsigned long)word(0), rec.u64[2]);
		samples++;
	}
	EXPECT_EQ(50, samples);
	expect_word(_metadata, 49, 0, SYNC);
	/* A full ring has no influence on the signals. */
	forget_seen();
	for (int i = 0; i < TIMES(2000); i++)
		count_func(word(0));
	EXPECT_EQ(TIMES(2000), nr_seen);
	bp_ring_unmap(&ring);
}

#define CHILD_HITS		5

static int store_in_child(void)
{
	forget_seen();
	for (int i = 0; i < CHILD_HITS; i++) {
		bp_store(word(0), 1);
		CHECK(nr_seen == i + 1);
		CHECK(was_seen(i, word(0), DATA(0), SYNC));
	}
	return 0;
}

/*
 * An inherited event has no ring of its own; its samples go to that of its parent. An event
 * that is not inherited keeps perf from giving the child the context of the parent.
 */
TEST_F(trap, samples_of_a_child_go_to_the_ring_of_the_parent)
{
	struct perf_event_attr dummy = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int cpu = bp_online_cpus().cpu[0], own = 0, of_child = 0;
	static union bp_record rec;
	struct bp_ring ring;
	pid_t pid;

	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_LE(0, bp_open(&dummy, 0, -1));
	self->attr.sample_type = PERF_SAMPLE_TID;
	self->attr.inherit = 1;
	/* The ring of an inherited event can be mapped only if the event has a CPU. */
	self->fd = bp_open(&self->attr, 0, cpu);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd, 1, PROT_READ | PROT_WRITE));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(store_in_child());
	EXPECT_EQ(0, bp_wait(pid));

	while (bp_ring_next(&ring, &rec)) {
		const __u32 *task = (const __u32 *)&rec.u64[1];

		ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
		own += task[0] == getpid() && task[1] == getpid();
		of_child += task[0] == pid && task[1] == pid;
	}
	EXPECT_EQ(1, own);
	EXPECT_EQ(CHILD_HITS, of_child);
	EXPECT_EQ(1 + CHILD_HITS, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	bp_ring_unmap(&ring);
}

#ifdef __LP64__
static int attach_filter(int fd, int keep)
{
	const struct bpf_insn insn[] = { MOV(BPF_REG_0, keep), EXIT() };

	return bpf_attach(bpf_load(BPF_PROG_TYPE_PERF_EVENT, insn, ARRAY_SIZE(insn)), fd, 0);
}

TEST_F(trap, program_decides_which_hits_signal)
{
	int link;

	BP_NEED_ROOT();
	open_it(_metadata, self);
	link = attach_filter(self->fd, 0);
	if (link == -ENOSYS)
		SKIP(return, "needs CONFIG_BPF_SYSCALL");
	ASSERT_GE(link, 0);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(0, nr_seen);
	block();
	bp_store_times(word(0), 1, 10);
	EXPECT_FALSE(is_pending());
	unblock();
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(20, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	close(link);

	link = attach_filter(self->fd, 1);
	ASSERT_GE(link, 0);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(10, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	close(link);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(20, nr_seen);
}
#endif

/* Faults of one page are counted; faults of the handler itself are ignored. */
TEST_F(trap, page_fault_event_signals)
{
	char *mem = mmap(NULL, 8 * BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int faults[8] = { };

	ASSERT_TRUE(mem != MAP_FAILED);
	memset(seen, 0, sizeof(seen));
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	self->attr.exclude_kernel = 1;
	open_it(_metadata, self);
	for (int i = 0; i < 8; i++)
		bp_store(mem + BP_PAGE_SIZE * i + 64, 1);
	ASSERT_EQ(0, bp_disable(self->fd));
	ASSERT_LE(8, nr_seen);
	ASSERT_GE(MAX_SEEN, nr_seen);
	EXPECT_GE(bp_hits(self->fd).count, nr_seen);
	for (int k = 0; k < nr_seen; k++) {
		for (int i = 0; i < 8; i++) {
			if (seen[k].info.addr != (unsigned long)mem + BP_PAGE_SIZE * i + 64)
				continue;
			EXPECT_TRUE(was_other(k, PERF_TYPE_SOFTWARE, SYNC));
			faults[i]++;
		}
	}
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(1, faults[i]);
}

/*
 * One page fault hits many events. Interrupts are on in between while their hits are sent,
 * and the hits coalesce all the same.
 */
TEST_F(trap, hits_of_many_events_at_once_coalesce)
{
	char *mem = mmap(NULL, 8 * BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd[100];

	ASSERT_TRUE(mem != MAP_FAILED);
	memset(seen, 0, sizeof(seen));
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	self->attr.exclude_kernel = 1;
	self->attr.disabled = 1;
	self->attr.sig_data = DATA(0);
	for (int i = 0; i < 100; i++) {
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(0, bp_enable(fd[i]));
	/* The first handler may cause faults, too; hits that are left would be seen later. */
	bp_store(mem + 64, 1);
	forget_seen();
	bp_store(mem + BP_PAGE_SIZE + 64, 1);
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(0, bp_disable(fd[i]));
	ASSERT_EQ(1, nr_seen);
	EXPECT_TRUE(was_other(0, PERF_TYPE_SOFTWARE, SYNC));
	EXPECT_EQ((unsigned long)mem + BP_PAGE_SIZE + 64, seen[0].info.addr);
	for (int i = 0; i < 100; i++)
		EXPECT_LE(2, bp_hits(fd[i]).count);
}

/*
 * Hits made by the kernel on behalf of the task. Hits on the way back to user mode
 * coalesce; they are asynchronous if they are made on the way to a handler.
 */
static void expect_switches(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self)
{
	struct bp_hits r;
	int wrong = 0;
	__u64 start;

	open_it(_metadata, self);
	start = bp_now(CLOCK_MONOTONIC);
	/* On a slow machine the timer of a nap may expire before the task sleeps. */
	while (bp_hits(self->fd).count < TIMES(50) && bp_has_patience(start))
		nap();
	ASSERT_EQ(0, bp_disable(self->fd));
	r = bp_hits(self->fd);
	EXPECT_LE(TIMES(50), r.count);
	EXPECT_EQ(0, r.lost);
	EXPECT_LT(0, nr_seen);
	EXPECT_GE(r.count, nr_seen);
	for (int i = 0; i < nr_seen && i < MAX_SEEN; i++)
		wrong += !was_other(i, self->attr.type, SYNC) &&
			 !was_other(i, self->attr.type, ASYNC);
	EXPECT_EQ(0, wrong);
}

TEST_F(trap, context_switch_event_signals)
{
	BP_NEED_ROOT();
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	expect_switches(_metadata, self);
}

TEST_F(trap, scheduler_tracepoint_signals)
{
	int id = tracepoint_id("sched/sched_switch");

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of the scheduler");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	expect_switches(_metadata, self);
}

/* A clock event, which is hit at any instruction of the task */
TEST_F(trap, clock_event_signals)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);

	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	self->attr.sample_period = 10000000;
	self->attr.exclude_kernel = 1;
	open_it(_metadata, self);
	while (nr_seen < 3 && bp_has_patience(start))
		;
	ASSERT_EQ(0, bp_disable(self->fd));
	ASSERT_LE(3, nr_seen);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(TRAP_PERF, seen[i].info.code);
		EXPECT_EQ(PERF_TYPE_SOFTWARE, seen[i].info.type);
		EXPECT_EQ(DATA(0), seen[i].info.data);
	}
}

#ifdef __LP64__
/* For 64-bit programs only: a tracepoint of a system call does not cover other ABIs. */
TEST_F(trap, system_call_tracepoint_signals)
{
	int id = tracepoint_id("syscalls/sys_enter_getppid");

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of system calls");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	open_it(_metadata, self);
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(getppid(), syscall(__NR_getppid));
		ASSERT_EQ(2 * i, nr_seen);
		EXPECT_EQ(TRAP_PERF, seen[i - 1].info.code);
		EXPECT_EQ(PERF_TYPE_TRACEPOINT, seen[i - 1].info.type);
		EXPECT_EQ(DATA(0), seen[i - 1].info.data);
	}
	EXPECT_EQ(40, bp_hits(self->fd).count);
}
#endif

static void nothing(int sig)
{
}

/*
 * A child that sends signals to itself, each of which is a hit, and handles or ignores
 * the signals of these hits.
 */
static pid_t sender(struct perf_event_attr attr, bool ignore)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	signal(SIGUSR1, nothing);
	signal(SIGTRAP, ignore ? SIG_IGN : nothing);
	if (bp_open(&attr, 0, -1) < 0)
		_exit(1);
	for (int i = 0; i < 10 || !ignore; i++)
		raise(SIGUSR1);
	_exit(0);
}

/* Sending the signal of a hit is a hit as well, which must not give another signal. */
TEST_F(trap, signal_tracepoint_does_not_recurse)
{
	int id = tracepoint_id("signal/signal_generate"), status;
	pid_t pid;

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of signals");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);

	pid = sender(self->attr, true);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);

	for (int i = 0; i < 10; i++) {
		pid = sender(self->attr, false);
		ASSERT_LT(0, pid);
		usleep(20000);
		EXPECT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/*
 * A task that wakes another one hits the other task's event, which must send no signal.
 */
TEST_F(trap, tracepoint_hit_by_another_task_sends_no_signal)
{
	int id = tracepoint_id("sched/sched_wakeup");
	struct bp_worker w;
	char filter[32];

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of the scheduler");
	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	snprintf(filter, sizeof(filter), "pid == %d", w.pid);
	ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter));
	for (int i = 0; i < 50; i++) {
		bp_wait_for_state(w.pid, 'S');
		EXPECT_EQ(0, bp_do(&w, W_SEEN));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

/* ------------------------------------------------- clock events, and exec */

#define FASTEST_TICK_NS		1000000ULL
#define SLOWEST_TICK_NS		50000000ULL
#define CALIBRATIONS		5
#define CALIBRATION_TICKS	5

/*
 * Works until @limit ticks or, without a limit, for @rounds; returns the number of
 * rounds.
 */
static __u64 work(int limit, __u64 rounds)
{
	int before = nr_seen;
	__u64 done = 0;

	while (limit ? nr_seen - before < limit : done < rounds) {
		for (volatile int i = 0; i < 100; i++)
			;
		done++;
	}
	return done;
}

/**
 * struct calibration - the time that the same work takes with ticks and without
 * @rounds: the work
 * @with: nanoseconds with CALIBRATION_TICKS ticks
 * @without: nanoseconds without ticks
 */
struct calibration {
	__u64 rounds;
	__u64 with;
	__u64 without;
};

static int calibrate(struct perf_event_attr *attr, struct calibration *c)
{
	int fd = bp_open(attr, 0, -1);
	__u64 start;

	if (fd < 0)
		return fd;
	start = bp_now(CLOCK_MONOTONIC);
	c->rounds = work(CALIBRATION_TICKS, 0);
	c->with = bp_now(CLOCK_MONOTONIC) - start;
	close(fd);
	start = bp_now(CLOCK_MONOTONIC);
	work(0, c->rounds);
	c->without = bp_now(CLOCK_MONOTONIC) - start;
	return 0;
}

static void lower(__u64 *least, __u64 value)
{
	if (value < *least)
		*least = value;
}

/*
 * Returns the nanoseconds that a tick and its signal take: the additional time that the
 * same work takes. A CPU of an emulator may stand still at any time, which only makes
 * times longer, so the minimum of each half counts.
 */
static __u64 tick_cost(const struct calibration *c)
{
	__u64 round_ps = -1, least = -1, work_ns;

	for (int i = 0; i < CALIBRATIONS; i++)
		lower(&round_ps, c[i].without * 1000 / c[i].rounds);
	for (int i = 0; i < CALIBRATIONS; i++) {
		work_ns = c[i].rounds * round_ps / 1000;
		lower(&least, c[i].with > work_ns ? c[i].with - work_ns : 0);
	}
	return least / CALIBRATION_TICKS;
}

/*
 * Returns a period of ticks that leaves tasks most of a CPU, also if an emulator shares
 * its time between all CPUs: on a debug kernel a tick and its signal may take longer
 * than the shortest period.
 */
static __u64 tick_period(struct perf_event_attr attr)
{
	struct calibration c[CALIBRATIONS];
	__u64 period;

	attr.sample_period = FASTEST_TICK_NS;
	attr.disabled = 0;
	attr.inherit = 0;
	for (int i = 0; i < CALIBRATIONS; i++) {
		if (calibrate(&attr, &c[i]))
			return FASTEST_TICK_NS;
	}
	period = 10 * bp_online_cpus().nr * tick_cost(c);
	if (period < FASTEST_TICK_NS)
		return FASTEST_TICK_NS;
	return period < SLOWEST_TICK_NS ? period : SLOWEST_TICK_NS;
}

/* An event whose signals may come at any instruction of the task */
FIXTURE(ticks)
{
	__u64 period;
	int fd;
};

FIXTURE_SETUP(ticks)
{
	struct perf_event_attr attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_NODEFER);
	attr.exclude_kernel = 1;
	self->period = tick_period(attr);
	attr.sample_period = self->period;
	attr.disabled = 1;
	attr.inherit = 1;
	self->fd = bp_open(&attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(ticks)
{
	bp_disable(self->fd);
	bp_teardown(_metadata);
}

/* Waits for one more signal. It spins: the event is hit in user mode only. */
static bool one_more(void)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int before = nr_seen;

	while (nr_seen == before && bp_has_patience(start))
		;
	return nr_seen != before;
}

/* A child that calls exec; its new image reports that it runs, and is killed. */
static pid_t start_image(struct __test_metadata *_metadata, int out)
{
	pid_t pid = bp_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		_exit(exec_self("spin"));
	}
	return pid;
}

static void expect_image_runs(struct __test_metadata *_metadata, pid_t pid)
{
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, bp_wait(pid));
}

/* Waits long enough to see a signal that must not come, but not longer. */
static void let_it_tick(__u64 period)
{
	poll(NULL, 0, 50 * period / 1000000);
}

TEST_F(ticks, inherited_event_signals_the_child)
{
	pid_t pid = bp_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_enable(self->fd);
		_exit(one_more() ? 42 : 1);
	}
	EXPECT_TRUE(one_more());
	EXPECT_EQ(42, bp_wait(pid));
}

TEST_F(ticks, event_enabled_after_exec_sends_no_signal)
{
	pid_t image, child;
	int out[2];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	child = bp_fork();
	ASSERT_GE(child, 0);
	if (!child)
		_exit(one_more() ? 42 : 1);
	image = start_image(_metadata, out[1]);
	EXPECT_EQ(1, read(out[0], &byte, 1));
	EXPECT_EQ(0, bp_enable(self->fd));
	let_it_tick(self->period);
	expect_image_runs(_metadata, image);
	EXPECT_TRUE(one_more());
	EXPECT_EQ(42, bp_wait(child));
}

TEST_F(ticks, event_enabled_before_exec_sends_no_signal)
{
	pid_t image;
	int out[2];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	EXPECT_EQ(0, bp_enable(self->fd));
	image = start_image(_metadata, out[1]);
	EXPECT_EQ(1, read(out[0], &byte, 1));
	let_it_tick(self->period);
	expect_image_runs(_metadata, image);
	EXPECT_TRUE(one_more());
}

#define IMAGES			TIMES(20)

TEST_F_TIMEOUT(ticks, many_execs_get_no_signal, 300)
{
	int out[2], nr = bp_rounds(IMAGES);
	pid_t image[IMAGES];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	for (int i = 0; i < nr; i++) {
		image[i] = start_image(_metadata, out[1]);
		if (i >= nr / 3)
			EXPECT_EQ(0, bp_enable(self->fd));
	}
	for (int i = 0; i < nr; i++)
		EXPECT_EQ(1, read(out[0], &byte, 1));
	let_it_tick(self->period);
	for (int i = 0; i < nr; i++)
		expect_image_runs(_metadata, image[i]);
	EXPECT_TRUE(one_more());
}

TEST_HARNESS_MAIN
