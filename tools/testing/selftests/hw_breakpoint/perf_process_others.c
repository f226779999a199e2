// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a process beside events of other users, of tasks and of CPUs: these must not
 * delay or disturb each other, nor disclose other tasks; see process.h.
 *
 * Not built as ia32 program, for the reason given in perf_process_event.c.
 */
#include <limits.h>
#include <linux/userfaultfd.h>

#define PROCESS_FIXTURE
#include "process.h"

/* ------------------------------------------------------------ faults in user space */

/* A page whose first access waits for resolve(). */
struct slow_page {
	int uffd;
	char *page;
};

static int map_slow_page(struct slow_page *slow)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	slow->page = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	slow->uffd = syscall(__NR_userfaultfd, O_CLOEXEC);
	reg.range.start = (unsigned long)slow->page;
	reg.range.len = BP_PAGE_SIZE;
	if (slow->page == MAP_FAILED || slow->uffd < 0 ||
	    ioctl(slow->uffd, UFFDIO_API, &api) || ioctl(slow->uffd, UFFDIO_REGISTER, &reg))
		return -1;
	return 0;
}

static int wait_for_fault(struct slow_page *slow)
{
	struct uffd_msg msg;

	return read(slow->uffd, &msg, sizeof(msg)) == sizeof(msg) ? 0 : -1;
}

static int resolve(struct slow_page *slow)
{
	struct uffdio_zeropage zero = { };

	zero.range.start = (unsigned long)slow->page;
	zero.range.len = BP_PAGE_SIZE;
	return ioctl(slow->uffd, UFFDIO_ZEROPAGE, &zero);
}

struct slow_call {
	pthread_t thread;
	struct slow_page slow;
	unsigned long cmd;
	int cpu;
	int fd;
};

static void *make_slow_call(void *arg)
{
	struct slow_call *call = arg;

	bp_pin(call->cpu);
	if (call->cmd)
		ioctl(call->fd, call->cmd, call->slow.page);
	else if (read(call->fd, call->slow.page, sizeof(__u64)) < 0)
		return NULL;
	return call;
}

/* A task that reads or changes an event may wait for a page; other tasks do not wait. */
TEST_F(process, page_fault_of_one_user_does_not_block_others)
{
	unsigned long cmd[] = { 0, PERF_EVENT_IOC_PERIOD, PERF_EVENT_IOC_ID,
				PERF_EVENT_IOC_SET_FILTER, PERF_EVENT_IOC_MODIFY_ATTRIBUTES };
	struct slow_call call = { .cpu = self->cpus.cpu[0] };

	BP_NEED_ROOT();
	bp_pin(call.cpu);
	for (int i = 0; i < 5; i++) {
		int other;

		ASSERT_EQ(0, map_slow_page(&call.slow));
		call.cmd = cmd[i];
		call.fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, call.fd);
		ASSERT_EQ(0, start_thread(&call.thread, make_slow_call, &call));
		ASSERT_EQ(0, wait_for_fault(&call.slow));
		for (int n = 0; n < self->cpus.nr; n++) {
			bp_pin(self->cpus.cpu[n]);
			other = bp_open(&self->attr, 0, -1);
			EXPECT_LE(0, other);
			EXPECT_EQ(0, bp_count(other));
			EXPECT_EQ(0, close(other));
		}
		bp_pin(call.cpu);
		EXPECT_EQ(0, resolve(&call.slow));
		EXPECT_EQ(0, pthread_join(call.thread, NULL));
		close(call.slow.uffd);
		close(call.fd);
	}
}

/* ------------------------------------------------------------------ the first open */

#define OPENERS		2

struct crowd {
	pthread_barrier_t ready;
	char *mem;
	int nr_fds;
};

/* A debug kernel accounts for threads more slowly: fewer of them take as long. */
static int crowd_size(void)
{
	return access("/proc/lockdep", F_OK) ? 1000 : 200;
}

static void *wait_for_ever(void *arg)
{
	struct crowd *crowd = arg;

	pthread_barrier_wait(&crowd->ready);
	pause();
	return NULL;
}

static void *take_all_and_wait(void *arg)
{
	struct crowd *crowd = arg;

	while (bp_open_w(crowd->mem + 8 * crowd->nr_fds, 1) >= 0)
		crowd->nr_fds++;
	return wait_for_ever(arg);
}

/* The last of many threads holds all registers. */
static long become_crowd(int cmd, void *mem)
{
	static struct crowd crowd;
	int size = crowd_size();
	pthread_t thread;

	crowd.mem = mem;
	pthread_barrier_init(&crowd.ready, NULL, size + 1);
	for (int i = 0; i < size; i++) {
		if (start_thread(&thread, i < size - 1 ? wait_for_ever : take_all_and_wait,
				 &crowd))
			return -1;
	}
	pthread_barrier_wait(&crowd.ready);
	return crowd.nr_fds;
}

struct opener {
	pthread_t thread;
	pthread_barrier_t *ready;
	struct perf_event_attr *attr;
	pid_t pid;
	int cpu;
	int delay;
	int result;
};

static void *open_when_all_are_ready(void *arg)
{
	struct opener *opener = arg;

	bp_pin(opener->cpu);
	pthread_barrier_wait(opener->ready);
	for (volatile int i = 0; i < opener->delay; i++)
		;
	opener->result = bp_open(opener->attr, opener->pid, -1);
	return NULL;
}

static void open_at_once(struct __test_metadata *_metadata, FIXTURE_DATA(process) *self,
			 pid_t pid, int delay)
{
	struct opener opener[OPENERS];
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, OPENERS);
	for (int i = 0; i < OPENERS; i++) {
		opener[i] = (struct opener) {
			.ready	= &ready,
			.attr	= &self->attr,
			.pid	= pid,
			.cpu	= self->cpus.cpu[i],
			.delay	= i * delay,
		};
		ASSERT_EQ(0, start_thread(&opener[i].thread, open_when_all_are_ready,
					  &opener[i]));
	}
	for (int i = 0; i < OPENERS; i++) {
		pthread_join(opener[i].thread, NULL);
		EXPECT_EQ(-ENOSPC, opener[i].result);
	}
}

TEST_F(process, concurrent_first_opens_account_all_threads)
{
	int first;

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, OPENERS);
	/* Opening the first event of a process on a machine takes long: do it before. */
	first = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, first);
	for (int i = 0; i < bp_rounds(10); i++) {
		struct bp_worker worker;

		ASSERT_EQ(0, bp_start(&worker, become_crowd, self->mem));
		ASSERT_EQ(BP_SLOTS, bp_do(&worker, 1));
		open_at_once(_metadata, self, worker.pid, i * 5000);
		EXPECT_EQ(0, bp_stop(&worker));
	}
	close(first);
}

/* -------------------------------------------------------- pinned events of a thread */

/*
 * A thread with a pinned event of another PMU is switched in before the events of its
 * process that are not pinned. perf core warns if it adds these to a PMU that is enabled.
 */
TEST_F(process, pinned_event_of_a_thread_takes_turns_with_the_process)
{
	struct perf_event_attr clock = bp_attr_sw(PERF_COUNT_SW_TASK_CLOCK);
	int watch, pinned;

	clock.pinned = 1;
	bp_pin(self->cpus.cpu[0]);
	watch = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, watch);
	pinned = bp_open(&clock, 0, -1);
	ASSERT_LE(0, pinned);
	for (int i = 0; i < 20; i++) {
		usleep(1000);
		bp_store(self->mem, 1);
	}
	EXPECT_EQ(20, bp_count(watch));
	EXPECT_LT(0, bp_count(pinned));
	close(pinned);
	close(watch);
}

/* ------------------------------------------------------- multiplexed events of a CPU */

/* Runs until the event has a register all the time, or none. */
static bool run_until(int fd, bool has_register)
{
	__u64 running, enabled, start = bp_now(CLOCK_MONOTONIC);
	struct bp_reading before, after;

	do {
		if (!bp_read(fd, &before))
			return false;
		bp_spin(1);
		if (!bp_read(fd, &after))
			return false;
		running = after.running - before.running;
		enabled = after.enabled - before.enabled;
		if (enabled && running == (has_register ? enabled : 0))
			return true;
	} while (bp_has_patience(start));
	return false;
}

/* The process keeps one register; multiplexed events of the CPU share the others. */
TEST_F(process, multiplexed_events_of_a_cpu_get_registers)
{
	int fd[BP_SLOTS], own;

	BP_NEED_ROOT();
	bp_pin(self->cpus.cpu[0]);
	own = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, own);
	for (int i = 0; i < BP_SLOTS; i++) {
		struct perf_event_attr attr = bp_attr_w(self->mem + 64 + 8 * i, 1);

		attr.config = BP_FLEXIBLE;
		attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING;
		fd[i] = bp_open(&attr, -1, self->cpus.cpu[0]);
		ASSERT_LE(0, fd[i]);
	}
	/* The event of the process is scheduled in after the others. */
	usleep(10000);
	bp_spin(6);
	for (int i = 0; i < BP_SLOTS; i++) {
		ASSERT_TRUE(run_until(fd[i], true));
		ASSERT_TRUE(run_until(fd[i], false));
		ASSERT_TRUE(run_until(fd[i], true));
		bp_store(self->mem, 1);
	}
	EXPECT_EQ(BP_SLOTS, bp_count(own));
	bp_close(fd, BP_SLOTS);
	close(own);
}

/* ---------------------------------------------------------------------------- secrets */

/* An unprivileged user must not learn which tasks of other users run on a CPU. */
TEST_F(process, switch_records_name_no_other_task)
{
	union bp_record rec;
	struct bp_ring ring;
	long sleeps;
	int fd, n = 0;

	self->attr.context_switch = 1;
	bp_pin(self->cpus.cpu[0]);
	fd = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 4, PROT_READ | PROT_WRITE));
	/* A timer may expire before the task sleeps. */
	for (sleeps = bp_nr_sleeps(); bp_nr_sleeps() < sleeps + 10; )
		usleep(1000);
	while (bp_ring_next(&ring, &rec)) {
		EXPECT_NE(PERF_RECORD_SWITCH_CPU_WIDE, rec.header.type);
		n += rec.header.type == PERF_RECORD_SWITCH;
	}
	EXPECT_LE(10, n);
	bp_ring_unmap(&ring);
	close(fd);
}

/* ---------------------------------------------------------------------------- signals */

static struct {
	char *mem;
	struct perf_event_attr attr;
	int fd[2];
	int nr;
	long data[4];
} traps;

/* In the handler of the first of two signals, change the event of the second one. */
static void on_trap(int sig, siginfo_t *info, void *context)
{
	/* si_perf_data is not in the C library's siginfo_t yet. */
	long data = *(long *)((char *)info + 24);
	struct perf_event_attr attr = traps.attr;

	if (traps.nr < 4)
		traps.data[traps.nr] = data;
	if (traps.nr++)
		return;
	attr.sig_data = 2;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (unsigned long)traps.mem;
	attr.bp_len = 1;
	if (bp_modify(traps.fd[!data], &attr))
		traps.nr = 100;
	bp_store(traps.mem, 1);
}

/* A hit of the previous address waits; the hit of the new address must not coalesce. */
TEST_F(process, hit_after_modify_is_not_merged_with_an_older_hit)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	traps.mem = self->mem;
	traps.attr = bp_attr_x(bp_func_insn);
	traps.attr.config = BP_PROCESS;
	traps.attr.sample_period = 1;
	traps.attr.sigtrap = 1;
	traps.attr.remove_on_exec = 1;
	for (int i = 0; i < 2; i++) {
		traps.attr.sig_data = i;
		traps.fd[i] = bp_open(&traps.attr, 0, -1);
		ASSERT_LE(0, traps.fd[i]);
	}
	bp_func();
	EXPECT_EQ(2, traps.nr);
	EXPECT_EQ(2, traps.data[1]);
	bp_close(traps.fd, 2);
}

/* ------------------------------------------------------------------------- interrupts */

/* Number of function call interrupts of a CPU; -1 if /proc does not show it */
static long nr_calls(struct bp_cpus *cpus, int nr)
{
	static char text[65536];
	char *line, *end;
	long n = -1;

	if (bp_read_file("/proc/interrupts", text, sizeof(text)))
		return -1;
	line = strcasestr(text, "function call interrupts");
	if (!line)
		return -1;
	while (*line != ':')
		line--;
	line++;
	for (int i = 0; i <= nr && i < cpus->nr; i++) {
		n = strtol(line, &end, 10);
		line = end;
	}
	return n;
}

#define CHANGES		10
#define TRIES		100

/* Makes each kind of change; returns the number of interrupts of the other CPU. */
static long nr_calls_of_changes(struct __test_metadata *_metadata,
				FIXTURE_DATA(process) *self, int fd)
{
	long before = nr_calls(&self->cpus, 1), after;
	__u64 period = 1;

	ASSERT_LE(0, before);
	for (int i = 0; i < CHANGES; i++) {
		EXPECT_EQ(0, bp_disable(fd));
		EXPECT_EQ(0, bp_enable(fd));
		EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
		EXPECT_EQ(0, bp_modify(fd, &self->attr));
	}
	for (int i = 0; i < CHANGES; i++) {
		int second = bp_open(&self->attr, 0, -1);

		EXPECT_LE(0, second);
		close(second);
	}
	after = nr_calls(&self->cpus, 1);
	ASSERT_LE(before, after);
	return after - before;
}

/*
 * A CPU on which the process does not run gets no interrupt. A task that is woken up on an
 * idle CPU causes one, too, so the minimum of some tries counts.
 */
TEST_F(process, changes_send_no_ipi_to_cpus_of_other_processes)
{
	long calls, least = CHANGES;
	struct bp_worker busy;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_start(&busy, store_times, self->mem));
	ASSERT_EQ(0, bp_pin_task(busy.pid, self->cpus.cpu[1]));
	bp_pin(self->cpus.cpu[0]);
	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	/* The other CPU has run another process since the event was opened. */
	EXPECT_EQ(1, bp_do(&busy, 1));
	for (int i = 0; i < TRIES && least >= CHANGES / 2; i++) {
		calls = nr_calls_of_changes(_metadata, self, fd);
		if (calls < least)
			least = calls;
	}
	EXPECT_GT(CHANGES / 2, least);
	bp_store(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd));
	bp_pin(self->cpus.cpu[1]);
	bp_store(self->mem, 1);
	EXPECT_EQ(2, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&busy));
	close(fd);
}

/* Nor for the first event of the process, and the last. */
TEST_F(process, first_open_sends_no_ipi_to_cpus_of_other_processes)
{
	long before, after, least = CHANGES;
	struct bp_worker busy;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_start(&busy, store_times, self->mem));
	ASSERT_EQ(0, bp_pin_task(busy.pid, self->cpus.cpu[1]));
	EXPECT_EQ(1, bp_do(&busy, 1));
	bp_pin(self->cpus.cpu[0]);
	for (int i = 0; i < TRIES && least >= CHANGES / 2; i++) {
		before = nr_calls(&self->cpus, 1);
		ASSERT_LE(0, before);
		for (int n = 0; n < CHANGES; n++) {
			int fd = bp_open(&self->attr, 0, -1);

			ASSERT_LE(0, fd);
			close(fd);
		}
		after = nr_calls(&self->cpus, 1);
		if (after - before < least)
			least = after - before;
	}
	EXPECT_GT(CHANGES / 2, least);
	EXPECT_EQ(0, bp_stop(&busy));
}

/* -------------------------------------------------------- cost for other processes */

#define MANY		400
#define COST_TRIES	10

/* Returns the minimum time of @cmd changes of the name. */
static long rename_often(int cmd, void *unused)
{
	__u64 best = -1, time;

	for (int round = 0; round < 8; round++) {
		time = bp_now(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < cmd; i++)
			prctl(PR_SET_NAME, i & 1 ? "renamed" : "other");
		time = bp_now(CLOCK_THREAD_CPUTIME_ID) - time;
		if (time < best)
			best = time;
	}
	return best;
}

static void lower(long *least, long value)
{
	if (value < *least)
		*least = value;
}

/*
 * Events of a process with side-band records cost other processes nothing. A busy host
 * makes times longer, so the minimum of some tries counts.
 */
TEST_F(process, side_band_events_are_not_seen_by_other_processes)
{
	long with_one = LONG_MAX / 2, with_many = LONG_MAX;
	struct bp_worker other;
	int fd[MANY];

	ASSERT_EQ(0, bp_start(&other, rename_often, NULL));
	ASSERT_EQ(0, bp_pin_task(other.pid, self->cpus.cpu[0]));
	self->attr.config |= BP_FLEXIBLE;
	self->attr.comm = 1;
	fd[0] = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_LE(0, fd[0]);
	for (int try = 0; try < COST_TRIES && with_many >= 2 * with_one; try++) {
		lower(&with_one, bp_do(&other, 200));
		for (int i = 1; i < MANY; i++) {
			fd[i] = bp_open(&self->attr, 0, self->cpus.cpu[0]);
			ASSERT_LE(0, fd[i]);
		}
		lower(&with_many, bp_do(&other, 200));
		bp_close(fd + 1, MANY - 1);
	}
	EXPECT_GT(2 * with_one, with_many);
	close(fd[0]);
	EXPECT_EQ(0, bp_stop(&other));
}

struct switcher {
	pthread_t thread;
	pthread_barrier_t *ready;
	struct perf_event_attr attr;
	int cpu;
	int *rounds;
	int stop;
	int failed;
};

/* Each change of the buffer but the first one waits for a grace period. */
static void *switch_buffers(void *arg)
{
	struct switcher *s = arg;
	struct bp_ring ring;
	int fd, buffer;

	fd = bp_open(&s->attr, 0, s->cpu);
	buffer = bp_open(&s->attr, 0, s->cpu);
	s->failed = fd < 0 || buffer < 0 ||
		    bp_ring_map(&ring, buffer, 1, PROT_READ | PROT_WRITE);
	pthread_barrier_wait(s->ready);
	if (s->failed)
		return NULL;
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		s->failed |= bp_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, buffer) != 0;
		__atomic_add_fetch(s->rounds, 1, __ATOMIC_RELAXED);
	}
	bp_ring_unmap(&ring);
	return NULL;
}

#define SWITCHERS	4
#define ROUNDS		100

/* Other users open and close events of the CPU meanwhile, and do not wait. */
TEST_F(process, change_of_a_buffer_does_not_block_others)
{
	struct perf_event_attr plain = bp_attr_w(self->mem + 64, 1);
	struct switcher s[SWITCHERS];
	pthread_barrier_t ready;
	int fd, rounds = 0;
	long sleeps;

	BP_NEED_ROOT();
	fd = bp_open(&plain, -1, self->cpus.cpu[0]);
	ASSERT_LE(0, fd);
	self->attr.config |= BP_FLEXIBLE;
	pthread_barrier_init(&ready, NULL, SWITCHERS + 1);
	for (int i = 0; i < SWITCHERS; i++) {
		s[i] = (struct switcher) {
			.ready	= &ready,
			.attr	= self->attr,
			.cpu	= self->cpus.cpu[0],
			.rounds	= &rounds,
		};
		ASSERT_EQ(0, start_thread(&s[i].thread, switch_buffers, &s[i]));
	}
	/* Opening an event takes the lock of the context: all are open before. */
	pthread_barrier_wait(&ready);
	for (int i = 0; i < SWITCHERS; i++)
		ASSERT_EQ(0, s[i].failed);
	while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < SWITCHERS)
		sched_yield();
	sleeps = bp_nr_sleeps();
	while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < ROUNDS) {
		ASSERT_EQ(0, bp_disable(fd));
		ASSERT_EQ(0, bp_enable(fd));
	}
	EXPECT_GT(ROUNDS / 20, bp_nr_sleeps() - sleeps);
	for (int i = 0; i < SWITCHERS; i++) {
		__atomic_store_n(&s[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(s[i].thread, NULL);
		EXPECT_EQ(0, s[i].failed);
	}
	close(fd);
}

/* --------------------------------------------------------------------------- the end */

static long store_on_cpu(int cpu, void *arg)
{
	bp_pin(cpu);
	bp_store(arg, 1);
	return 0;
}

/* read() returns the sum of all CPUs, also when no thread is left. */
TEST_F(process, counts_outlive_the_process)
{
	struct bp_worker worker;
	struct bp_reading before, end;
	int fd;

	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING;
	ASSERT_EQ(0, bp_start(&worker, store_on_cpu, self->mem));
	fd = bp_open(&self->attr, worker.pid, -1);
	ASSERT_LE(0, fd);
	for (int i = 0; i < self->cpus.nr; i++)
		EXPECT_EQ(0, bp_do(&worker, self->cpus.cpu[i]));
	ASSERT_TRUE(bp_read(fd, &before));
	EXPECT_LT(0, before.running);
	EXPECT_EQ(0, bp_stop(&worker));
	ASSERT_TRUE(bp_read(fd, &end));
	EXPECT_EQ(self->cpus.nr, end.count);
	EXPECT_LE(before.enabled, end.enabled);
	EXPECT_LE(before.running, end.running);
	EXPECT_LE(end.running, end.enabled);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	ASSERT_TRUE(bp_read(fd, &end));
	EXPECT_EQ(0, end.count);
	close(fd);
}

TEST_HARNESS_MAIN
