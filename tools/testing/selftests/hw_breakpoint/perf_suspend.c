// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints of a machine that is suspended and resumed.
 *
 * The rule: the registers of a CPU lose their contents while the machine is suspended to RAM
 * (S3), its events do not. Each access before and after is a hit once, also one that the kernel
 * makes before the resume is complete. It does not matter whether the event is one of a task, of
 * a process, of a CPU, of a debugger or of the kernel, nor whether the CPU is the one that
 * suspends the machine, or one that is offline meanwhile. No register is armed for an event
 * that was closed or disabled before.
 *
 * The alarm of the real-time clock wakes the machine. Each test suspends the machine for some
 * seconds.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "values.h"

#define SLEEP_FILE	"/sys/power/mem_sleep"
#define STATE_FILE	"/sys/power/state"
#define COUNT_FILE	"/sys/power/wakeup_count"
#define RTC		"/sys/class/rtc/rtc0/"
#define SLOTS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"
#define TRACEFS		"/sys/kernel/tracing/"

/* Writing the file stores to the variable of the kernel once. */
#define SYSCTL		"/proc/sys/kernel/panic"
#define VARIABLE	"panic_timeout"

/*
 * The first CPU writes this variable of the kernel when the devices are suspended and the other
 * CPUs are offline, and again soon after the restore of the registers.
 */
#define STATE_VARIABLE	"system_state"
#define KERNEL_STORES	2

/*
 * Seconds until the alarm. An alarm before the machine is asleep lets the kernel stay awake:
 * the next attempt has twice the time.
 */
#define FIRST_ALARM	6
#define LAST_ALARM	48

/* ------------------------------------------------------------------ suspend */

/* Returns why the machine cannot be suspended to RAM and woken, or NULL. */
static const char *why_not(void)
{
	char states[64];

	if (geteuid())
		return "needs root";
	if (bp_read_file(SLEEP_FILE, states, sizeof(states)))
		return "needs " SLEEP_FILE;
	if (!strstr(states, "deep"))
		return SLEEP_FILE " has no deep";
	if (access(RTC "wakealarm", W_OK))
		return "needs " RTC "wakealarm";
	return NULL;
}

#define NEED_SUSPEND()					\
	do {						\
		const char *reason = why_not();		\
							\
		if (reason)				\
			SKIP(return, "%s", reason);	\
	} while (0)

/*
 * Suspends the machine for @seconds. Returns 0 or a negative errno. While the count of wakeup
 * events is not the one that was written, the kernel refuses: an alarm is not missed.
 */
static int suspend_for(int seconds, long *alarm)
{
	char text[32];
	int err;

	if (bp_read_file(COUNT_FILE, text, sizeof(text)))
		return -EIO;
	err = bp_write_file(COUNT_FILE, text);
	if (err)
		return err == -EINVAL ? -EBUSY : err;
	/* An alarm that is set cannot be changed. */
	bp_write_file(RTC "wakealarm", "0");
	*alarm = bp_read_number(RTC "since_epoch") + seconds;
	snprintf(text, sizeof(text), "%ld", *alarm);
	return bp_write_file(RTC "wakealarm", text) ?: bp_write_file(STATE_FILE, "mem");
}

static void suspend(struct __test_metadata *_metadata)
{
	int err = -EBUSY, seconds;
	char states[64], *before;
	long alarm;

	/* The one in brackets is chosen. */
	ASSERT_EQ(0, bp_read_file(SLEEP_FILE, states, sizeof(states)));
	before = strtok(strchr(states, '[') + 1, "]");
	ASSERT_EQ(0, bp_write_file(SLEEP_FILE, "deep"));
	for (seconds = FIRST_ALARM; err == -EBUSY && seconds <= LAST_ALARM; seconds *= 2)
		err = suspend_for(seconds, &alarm);
	EXPECT_EQ(0, bp_write_file(SLEEP_FILE, before));
	ASSERT_EQ(0, err);
	/* Otherwise the machine was not asleep. */
	ASSERT_LE(alarm, bp_read_number(RTC "since_epoch"));
}

/* ------------------------------------------------------------------ fixture */

FIXTURE(suspend)
{
	char *mem;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(suspend)
{
	NEED_SUSPEND();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
}

FIXTURE_TEARDOWN(suspend)
{
	bp_teardown(_metadata);
}

/* The task must not be bound to a CPU that goes offline. */
static void store_on_each_cpu(struct __test_metadata *_metadata, struct bp_cpus *cpus, void *p)
{
	for (int i = 0; i < cpus->nr; i++) {
		ASSERT_EQ(0, bp_pin(cpus->cpu[i]));
		bp_store(p, 1);
	}
	bp_unpin();
}

/* An event on a variable of the kernel */
static struct perf_event_attr kernel_attr(const char *name)
{
	struct perf_event_attr attr = bp_attr_w(bp_ksym(name), 4);

	attr.exclude_kernel = 0;
	return attr;
}

/* ------------------------------------------ the task that suspends the machine */

static void task_counts_on(struct __test_metadata *_metadata, FIXTURE_DATA(suspend) *self,
			   __u64 config)
{
	struct perf_event_attr user = bp_attr_w(self->mem, 1);
	struct perf_event_attr kernel = kernel_attr(STATE_VARIABLE);
	int fd, of_kernel;

	ASSERT_NE(0, kernel.bp_addr);
	user.config = config;
	kernel.config = config;
	fd = bp_open(&user, 0, -1);
	of_kernel = bp_open(&kernel, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, of_kernel);
	for (int round = 1; round <= 2; round++) {
		store_on_each_cpu(_metadata, &self->cpus, self->mem);
		EXPECT_EQ(self->cpus.nr * (2 * round - 1), bp_count(fd));
		suspend(_metadata);
		EXPECT_EQ(KERNEL_STORES * round, bp_count(of_kernel));
		store_on_each_cpu(_metadata, &self->cpus, self->mem);
		EXPECT_EQ(self->cpus.nr * 2 * round, bp_count(fd));
	}
}

TEST_F(suspend, event_of_a_task_counts_on)
{
	task_counts_on(_metadata, self, 0);
}

TEST_F(suspend, event_of_a_process_counts_on)
{
	task_counts_on(_metadata, self, BP_PROCESS);
}

static int nr_signals;
static void *signal_addr;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	nr_signals++;
	signal_addr = info->si_addr;
}

TEST_F(suspend, event_sends_signals_after_it)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);

	attr.sample_period = 1;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	ASSERT_LE(0, bp_open(&attr, 0, -1));
	bp_store(self->mem, 1);
	EXPECT_EQ(1, nr_signals);
	suspend(_metadata);
	EXPECT_EQ(1, nr_signals);
	signal_addr = NULL;
	bp_store(self->mem, 1);
	EXPECT_EQ(2, nr_signals);
	EXPECT_EQ((void *)self->mem, signal_addr);
}

/* -------------------------------------------------------------- other tasks */

static long store_times(int times, void *mem)
{
	bp_store_times(mem, 1, times);
	return times;
}

TEST_F(suspend, events_of_sleeping_tasks_count_on)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1), all = attr;
	struct bp_worker child, thread;
	int of_child, of_thread, of_all;

	all.bp_addr += 8;
	all.config = BP_PROCESS;
	ASSERT_EQ(0, bp_start(&child, store_times, self->mem));
	ASSERT_EQ(0, bp_start_thread(&thread, store_times, self->mem));
	of_child = bp_open(&attr, child.pid, -1);
	of_thread = bp_open(&attr, thread.pid, -1);
	thread.arg = self->mem;
	ASSERT_LE(0, of_child);
	ASSERT_LE(0, of_thread);
	of_all = bp_open(&all, child.pid, -1);
	ASSERT_LE(0, of_all);
	EXPECT_EQ(3, bp_do(&child, 3));
	EXPECT_EQ(4, bp_do(&thread, 4));
	suspend(_metadata);
	EXPECT_EQ(5, bp_do(&child, 5));
	EXPECT_EQ(6, bp_do(&thread, 6));
	EXPECT_EQ(3 + 5, bp_count(of_child));
	EXPECT_EQ(4 + 6, bp_count(of_thread));
	EXPECT_EQ(0, bp_count(of_all));
	EXPECT_EQ(0, bp_stop(&thread));
}

/* What a task that stores all the time shares with the test */
struct storing {
	int fd[2];
	pid_t pid;
	volatile __u64 *stores;
};

/* Stores to two words in turn until *@stop, and counts the rounds. */
static void store_until(volatile __u64 *stop, char *mem, volatile __u64 *stores)
{
	while (!*stop) {
		bp_store(mem, 1);
		bp_store(mem + 64, 1);
		++*stores;
	}
}

/* Tasks that the kernel freezes between two stores, and the CPUs on which they run */
TEST_F(suspend, no_hit_of_a_running_task_is_lost)
{
	struct perf_event_attr task = bp_attr_w(self->mem, 1), cpu = bp_attr_w(self->mem + 64, 1);
	struct storing storing[BP_MAX_CPUS], *s;
	volatile __u64 *shared = bp_map_shared(), before;

	ASSERT_NE(NULL, shared);
	cpu.disabled = 1;
	for (int i = 0; i < self->cpus.nr; i++) {
		s = &storing[i];
		s->stores = &shared[2 + i];
		s->pid = bp_fork();
		ASSERT_LE(0, s->pid);
		if (!s->pid) {
			bp_pin(self->cpus.cpu[i]);
			while (!shared[1])
				usleep(1000);
			store_until(shared, self->mem, s->stores);
			_exit(0);
		}
		s->fd[0] = bp_open(&task, s->pid, -1);
		s->fd[1] = bp_open(&cpu, -1, self->cpus.cpu[i]);
		ASSERT_LE(0, s->fd[0]);
		ASSERT_LE(0, s->fd[1]);
		ASSERT_EQ(0, bp_enable(s->fd[1]));
	}
	shared[1] = 1;
	usleep(10000);
	suspend(_metadata);
	before = *storing[0].stores;
	for (__u64 start = bp_now(CLOCK_MONOTONIC);
	     *storing[0].stores < before + 10 && bp_has_patience(start);)
		usleep(1000);
	shared[0] = 1;
	for (int i = 0; i < self->cpus.nr; i++) {
		s = &storing[i];
		EXPECT_EQ(0, bp_wait(s->pid));
		EXPECT_LT(0, *s->stores);
		EXPECT_EQ(*s->stores, bp_count(s->fd[0]));
		EXPECT_EQ(*s->stores, bp_count(s->fd[1]));
	}
	EXPECT_LT(before, *storing[0].stores);
}

/* --------------------------------------------------------------------- CPUs */

TEST_F(suspend, event_of_each_cpu_counts_on)
{
	struct perf_event_attr user = bp_attr_w(self->mem, 1);
	struct perf_event_attr kernel = kernel_attr(STATE_VARIABLE);
	int fd[BP_MAX_CPUS], of_kernel[BP_MAX_CPUS], stores;

	ASSERT_NE(0, kernel.bp_addr);
	for (int i = 0; i < self->cpus.nr; i++) {
		fd[i] = bp_open(&user, -1, self->cpus.cpu[i]);
		of_kernel[i] = bp_open(&kernel, -1, self->cpus.cpu[i]);
		ASSERT_LE(0, fd[i]);
		ASSERT_LE(0, of_kernel[i]);
	}
	for (int round = 1; round <= 3; round++) {
		store_on_each_cpu(_metadata, &self->cpus, self->mem);
		suspend(_metadata);
		store_on_each_cpu(_metadata, &self->cpus, self->mem);
		for (int i = 0; i < self->cpus.nr; i++) {
			EXPECT_EQ(2 * round, bp_count(fd[i])) {
				TH_LOG("CPU %d", self->cpus.cpu[i]);
			}
			stores = i ? 0 : KERNEL_STORES * round;
			EXPECT_EQ(stores, bp_count(of_kernel[i])) {
				TH_LOG("CPU %d", self->cpus.cpu[i]);
			}
		}
	}
}

/* Each type and length, in all registers of each CPU */
TEST_F(suspend, all_registers_come_back)
{
	struct perf_event_attr attr[BP_SLOTS] = {
		bp_attr_w(self->mem, 1),
		bp_attr(HW_BREAKPOINT_RW, self->mem + 64, 4),
		bp_attr_w(self->mem + 128, BP_WORD),
		bp_attr_x(bp_func_insn),
	};
	int fd[BP_MAX_CPUS][BP_SLOTS];

	for (int i = 0; i < self->cpus.nr; i++) {
		for (int n = 0; n < BP_SLOTS; n++) {
			fd[i][n] = bp_open(&attr[n], -1, self->cpus.cpu[i]);
			ASSERT_LE(0, fd[i][n]);
		}
	}
	suspend(_metadata);
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store_times(self->mem, 1, 2);
		bp_store_times(self->mem + 1, 1, 2);
		for (int n = 0; n < 3; n++)
			bp_load(self->mem + 64, 4);
		bp_load(self->mem + 128, BP_WORD);
		bp_store_times(self->mem + 128 + BP_WORD - 1, 1, 4);
		for (int n = 0; n < bp_attempts() && !bp_count(fd[i][3]); n++)
			bp_func();
		EXPECT_EQ(2, bp_count(fd[i][0]));
		EXPECT_EQ(3, bp_count(fd[i][1]));
		EXPECT_EQ(4, bp_count(fd[i][2]));
		EXPECT_EQ(1, bp_count(fd[i][3]));
	}
}

/* Rotation on each CPU goes on. */
TEST_F(suspend, flexible_breakpoints_take_turns_on)
{
	struct perf_event_attr attr = bp_attr_w(self->mem, 1);
	struct bp_reading before, after;
	int fd[BP_MAX_CPUS][BP_SLOTS + 2];
	bool all = false;

	attr.config = BP_FLEXIBLE;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (int i = 0; i < self->cpus.nr; i++) {
		for (int n = 0; n < BP_SLOTS + 2; n++) {
			attr.bp_addr = (unsigned long)self->mem + 8 * n;
			fd[i][n] = bp_open(&attr, -1, self->cpus.cpu[i]);
			ASSERT_LE(0, fd[i][n]);
		}
	}
	suspend(_metadata);
	for (int i = 0; i < self->cpus.nr; i++) {
		for (int n = 0; n < BP_SLOTS + 2; n++) {
			ASSERT_TRUE(bp_read(fd[i][n], &before));
			for (__u64 start = bp_now(CLOCK_MONOTONIC);
			     ; usleep(1000)) {
				ASSERT_TRUE(bp_read(fd[i][n], &after));
				all = after.running > before.running;
				if (all || !bp_has_patience(start))
					break;
			}
			EXPECT_TRUE(all) {
				TH_LOG("event %d of CPU %d has no turn", n, self->cpus.cpu[i]);
			}
		}
	}
}

/* ------------------------------------------------------------------ no event */

/* Number of registers that the kernel has armed for @addr */
static int armed_for(void *addr)
{
	char want[64], line[512];
	FILE *file = fopen(SLOTS_FILE, "re");
	int nr = 0;

	snprintf(want, sizeof(want), " addr=0x%lx ", (unsigned long)addr);
	while (file && fgets(line, sizeof(line), file))
		nr += !strncmp(line, "register ", 9) && strstr(line, want);
	if (file)
		fclose(file);
	return nr;
}

TEST_F(suspend, no_register_is_armed_for_an_event_that_ended)
{
	enum { CLOSED, DISABLED, OPEN, ALSO_CLOSED };
	struct perf_event_attr attr;
	char *place[BP_SLOTS];
	int fd[BP_MAX_CPUS][BP_SLOTS];

	for (int n = 0; n < BP_SLOTS; n++) {
		place[n] = self->mem + 64 * n;
		attr = bp_attr_w(place[n], 1);
		for (int i = 0; i < self->cpus.nr; i++) {
			fd[i][n] = bp_open(&attr, -1, self->cpus.cpu[i]);
			ASSERT_LE(0, fd[i][n]);
		}
		store_on_each_cpu(_metadata, &self->cpus, place[n]);
	}
	for (int i = 0; i < self->cpus.nr; i++) {
		close(fd[i][CLOSED]);
		close(fd[i][ALSO_CLOSED]);
		EXPECT_EQ(0, bp_disable(fd[i][DISABLED]));
	}
	suspend(_metadata);
	EXPECT_EQ(self->cpus.nr, armed_for(place[OPEN]));
	EXPECT_EQ(0, armed_for(place[CLOSED]));
	EXPECT_EQ(0, armed_for(place[ALSO_CLOSED]));
	EXPECT_EQ(0, armed_for(place[DISABLED]));
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		bp_store(place[OPEN], 1);
		bp_store(place[DISABLED], 1);
		EXPECT_EQ(2, bp_count(fd[i][OPEN]));
		EXPECT_EQ(1, bp_count(fd[i][DISABLED]));
		EXPECT_EQ(0, bp_enable(fd[i][DISABLED]));
		bp_store(place[DISABLED], 1);
		EXPECT_EQ(2, bp_count(fd[i][DISABLED]));
	}
}

/* ----------------------------------------------------------------- debugger */

static bool debug_registers_are(pid_t pid, unsigned long addr, unsigned long dr7)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[0]), 0) == addr &&
	       ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[7]), 0) == dr7;
}

/* Lets the tracee run to its next stop; returns the signal. */
static int to_next_stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_CONT, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

/* Stores once before and twice after it stops, or sleeps until it can read a byte. */
static void be_traced(char *mem, int in)
{
	char byte;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	bp_store(mem, 1);
	if (in < 0)
		raise(SIGSTOP);
	else if (read(in, &byte, 1) != 1)
		_exit(1);
	bp_store(mem, 1);
	bp_store(mem + 1, 1);
	bp_store(mem, 1);
	_exit(0);
}

/* Returns the tracee, in its first stop, with a breakpoint, or a negative errno. */
static pid_t start_tracee(char *mem, int in)
{
	pid_t pid = bp_fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		be_traced(mem, in);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	return bp_tracee_watch(pid, 0, mem, 1) ?: pid;
}

static void expect_two_traps(struct __test_metadata *_metadata, pid_t pid)
{
	EXPECT_EQ(SIGTRAP, to_next_stop(pid));
	EXPECT_EQ(0, to_next_stop(pid));
	bp_forget_child(pid);
}

TEST_F(suspend, breakpoints_of_a_debugger_stay)
{
	pid_t stopped, sleeping;
	unsigned long dr7;
	int pipes[2], status;

	ASSERT_EQ(0, pipe(pipes));
	stopped = start_tracee(self->mem, -1);
	sleeping = start_tracee(self->mem, pipes[0]);
	ASSERT_LT(0, stopped);
	ASSERT_LT(0, sleeping);
	EXPECT_EQ(SIGTRAP, to_next_stop(stopped));
	EXPECT_EQ(SIGSTOP, to_next_stop(stopped));
	EXPECT_EQ(SIGTRAP, to_next_stop(sleeping));
	dr7 = ptrace(PTRACE_PEEKUSER, stopped, offsetof(struct user, u_debugreg[7]), 0);
	EXPECT_TRUE(debug_registers_are(stopped, (unsigned long)self->mem, dr7));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, sleeping, 0, 0));
	bp_wait_for_state(sleeping, 'S');

	suspend(_metadata);

	EXPECT_TRUE(debug_registers_are(stopped, (unsigned long)self->mem, dr7));
	EXPECT_EQ(SIGTRAP, to_next_stop(stopped));
	expect_two_traps(_metadata, stopped);
	ASSERT_EQ(1, write(pipes[1], "", 1));
	ASSERT_EQ(sleeping, waitpid(sleeping, &status, 0));
	EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	EXPECT_TRUE(debug_registers_are(sleeping, (unsigned long)self->mem, dr7));
	expect_two_traps(_metadata, sleeping);
}

/* ------------------------------------------------------------- whole kernel */

#define EVENT		TRACEFS "events/wprobes/"

/* Returns the number of records of @event, each of which has a line. */
static int nr_records(const char *event)
{
	FILE *file = fopen(TRACEFS "trace", "re");
	char line[512], want[64];
	int nr = 0;

	snprintf(want, sizeof(want), " %s: (", event);
	while (file && fgets(line, sizeof(line), file))
		nr += !!strstr(line, want);
	if (file)
		fclose(file);
	return nr;
}

static void write_on_each_cpu(struct __test_metadata *_metadata, struct bp_cpus *cpus)
{
	for (int i = 0; i < cpus->nr; i++) {
		ASSERT_EQ(0, bp_pin(cpus->cpu[i]));
		ASSERT_EQ(0, bp_write_file(SYSCTL, "-1"));
	}
	bp_unpin();
}

FIXTURE(wide)
{
	struct bp_cpus cpus;
	char timeout[16];
};

FIXTURE_SETUP(wide)
{
	NEED_SUSPEND();
	BP_NEED(bp_has_watch_events(), "needs watch events");
	self->cpus = bp_online_cpus();
	ASSERT_EQ(0, bp_read_file(SYSCTL, self->timeout, sizeof(self->timeout)));
	ASSERT_EQ(0, bp_write_file(TRACEFS "dynamic_events",
				   "w:suspend_timeout w@" VARIABLE ":4"));
	ASSERT_EQ(0, bp_write_file(TRACEFS "dynamic_events",
				   "w:suspend_state w@" STATE_VARIABLE ":4"));
	ASSERT_EQ(0, bp_write_file(EVENT "suspend_timeout/enable", "1"));
	ASSERT_EQ(0, bp_write_file(EVENT "suspend_state/enable", "1"));
	close(open(TRACEFS "trace", O_WRONLY | O_TRUNC));
}

FIXTURE_TEARDOWN(wide)
{
	bp_write_file(EVENT "suspend_timeout/enable", "0");
	bp_write_file(EVENT "suspend_state/enable", "0");
	bp_write_file(TRACEFS "dynamic_events", "-:suspend_timeout");
	bp_write_file(TRACEFS "dynamic_events", "-:suspend_state");
	bp_write_file(SYSCTL, self->timeout);
	bp_teardown(_metadata);
}

TEST_F(wide, watch_events_record_on)
{
	for (int round = 1; round <= 2; round++) {
		write_on_each_cpu(_metadata, &self->cpus);
		suspend(_metadata);
		EXPECT_EQ(KERNEL_STORES * round,
			  nr_records("suspend_state"));
		write_on_each_cpu(_metadata, &self->cpus);
		EXPECT_EQ(self->cpus.nr * 2 * round, nr_records("suspend_timeout"));
	}
}

/* ------------------------------------------------------------------- values */

TEST_F(value, chain_of_values_goes_on)
{
	NEED_SUSPEND();
	open_ring(_metadata, self, 0, -1);
	store32(self->mem, 1);
	store32(self->mem, 2);
	suspend(_metadata);
	store32(self->mem, 3);
	expect_hit(_metadata, self, BOTH, 0, 1);
	expect_hit(_metadata, self, BOTH, 1, 2);
	expect_hit(_metadata, self, BOTH, 2, 3);
	expect_no_hit(_metadata, self);
}

TEST_HARNESS_MAIN
