// SPDX-License-Identifier: GPL-2.0
/*
 * Families of events: operations that run at the same time.
 *
 * The rule: modify, enable, disable, prctl(), fork, exec, exit and CPU hotplug do not
 * deadlock, whatever events they are for.
 */
#include "family.h"

#define RUN_TIME	(3 * SECOND)

/* Seconds that operations may take to end, less than the time limit of the test */
#define GRACE		100

FIXTURE(ending)
{
	int hotplug;
};

FIXTURE_SETUP(ending)
{
	ASSERT_TRUE(map_pages());
	self->hotplug = -1;
}

FIXTURE_TEARDOWN(ending)
{
	if (self->hotplug >= 0)
		bp_cpu_online(self->hotplug, true);
	bp_teardown(_metadata);
}

static void *change_type(void *arg)
{
	struct perf_event_attr w = bp_attr_w(bp_func, 8), x = bp_attr_x(bp_func);
	int fd = *(int *)arg;
	long err = 0;

	while (!err && go_on()) {
		err = bp_modify(fd, &x);
		if (!err)
			err = bp_modify(fd, &w);
	}
	return (void *)err;
}

static int modify_and_prctl(__u64 until)
{
	struct perf_event_attr attr = bp_attr_w(bp_func, 8);
	int fd = bp_open(&attr, 0, -1);
	pthread_t thread;
	void *err;

	run_until = until;
	if (fd < 0)
		return fd;
	if (pthread_create(&thread, NULL, change_type, &fd))
		return -EAGAIN;
	while (go_on())
		switch_mine();
	pthread_join(thread, &err);
	return (long)err;
}

TEST_F(ending, modify_of_the_type_while_prctl_switches_the_event)
{
	int err = run_bounded(modify_and_prctl, RUN_TIME, GRACE);

	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("modify and prctl wait for each other");
	EXPECT_EQ(0, err);
}

#define NR_OWNED	24

static bool has_ended(pid_t pid)
{
	siginfo_t info = { };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/*
 * Opens events, some of them breakpoints, of a task that calls exec() repeatedly; this
 * task is their owner. Goes on until at least one was opened: an event with remove_on_exec
 * may be refused during exec().
 */
static int own_events_of(pid_t pid)
{
	struct perf_event_attr bp = bp_attr_w(page, 1), sw = faults();
	__u64 start = bp_now(CLOCK_MONOTONIC);
	int fd[NR_OWNED], nr, in_time = 0;

	bp.remove_on_exec = 1;
	sw.remove_on_exec = 1;
	do {
		for (nr = 0; nr < NR_OWNED; nr++) {
			fd[nr] = bp_open(nr % 8 ? &sw : &bp, pid, -1);
			if (fd[nr] < 0)
				break;
		}
		in_time += nr;
		for (int i = 0; i < 5; i++)
			switch_mine();
		bp_close(fd, nr);
	} while (go_on() || (!in_time && !has_ended(pid) && bp_has_patience(start)));
	return in_time ? 0 : -ESRCH;
}

static int exec_and_prctl(__u64 until)
{
	int err, status;
	pid_t pid;

	run_until = until;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exec_until(~0ULL);
	}
	if (pid < 0)
		return -errno;
	err = own_events_of(pid);
	kill(pid, SIGKILL);
	/* The child ends by itself only if an exec() fails. */
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return -ECHILD;
	return err;
}

TEST_F(ending, exec_of_a_task_while_prctl_of_the_owner_switches_its_events)
{
	int err = run_bounded(exec_and_prctl, RUN_TIME, GRACE);

	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("exec and prctl wait for each other");
	EXPECT_EQ(0, err);
}

/* ------------------------------------------------------------ all operations at once */

#define TORTURE_TIME	(8 * SECOND)
#define NR_EVENTS	6

static struct perf_event_attr kinds[NR_EVENTS];
static volatile int events[NR_EVENTS];
static volatile long fork_error;
static volatile int last_cpu = -1;
static long done[16];

static struct perf_event_attr *any_kind(unsigned int *seed)
{
	return &kinds[rand_r(seed) % NR_EVENTS];
}

static void torture_modify(unsigned int *seed)
{
	int i = rand_r(seed) % NR_EVENTS;
	struct perf_event_attr attr = kinds[i];

	attr.disabled = rand_r(seed) % 4 == 0;
	switch (rand_r(seed) % 3) {
	case 0:
		attr.bp_addr = (unsigned long)page + 64 * (rand_r(seed) % 8);
		attr.bp_len = 1 << rand_r(seed) % 4;
		break;
	case 1:
		attr.bp_type = HW_BREAKPOINT_RW;
		break;
	case 2:
		attr.bp_addr = (unsigned long)bp_func_insn;
		attr.bp_type = HW_BREAKPOINT_X;
		attr.bp_len = 8;
		break;
	}
	bp_modify(events[i], &attr);
}

static void hit_all(void)
{
	for (int i = 0; i < 8; i++)
		bp_store(page + 64 * i, 1);
	bp_func();
}

static void *torture_short_thread(void *arg)
{
	hit_all();
	return NULL;
}

/* Some children have children, some call exec(), some are killed. */
static void torture_child(unsigned int seed)
{
	pthread_t thread;
	pid_t pid;

	hit_all();
	switch (seed % 4) {
	case 0:
		pid = fork();
		if (!pid) {
			hit_all();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		break;
	case 1:
		exec_image("--store");
	case 2:
		if (!pthread_create(&thread, NULL, torture_short_thread, NULL))
			pthread_join(thread, NULL);
		break;
	case 3:
		switch_mine();
		for (;;)
			hit_all();
	}
	_exit(0);
}

static void torture_fork(unsigned int *seed)
{
	unsigned int kind = rand_r(seed);
	pid_t pid = fork();

	if (!pid)
		torture_child(kind);
	if (pid < 0) {
		fork_error = errno;
		return;
	}
	if (kind % 4 == 3) {
		hit_all();
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, 0);
}

static void torture_vfork(unsigned int *seed)
{
	pid_t pid = vfork();

	if (!pid)
		exec_image("--store");
	if (pid < 0)
		fork_error = errno;
	else
		waitpid(pid, NULL, 0);
}

static void torture_thread(unsigned int *seed)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, torture_short_thread, NULL))
		pthread_join(thread, NULL);
}

static void torture_prctl(unsigned int *seed)
{
	switch_mine();
	sched_yield();
}

static void torture_ioctl(unsigned int *seed)
{
	int fd = events[rand_r(seed) % NR_EVENTS];
	__u64 period = 1 + rand_r(seed) % 5;

	switch (rand_r(seed) % 6) {
	case 0:
		bp_disable(fd);
		break;
	case 1:
		bp_enable(fd);
		break;
	case 2:
		bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 2);
		break;
	case 3:
		bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
		break;
	case 4:
		bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
		break;
	case 5:
		bp_count(fd);
		break;
	}
}

/* This thread opens the events, so its prctl() applies to them. */
static void torture_reopen(unsigned int *seed)
{
	int i = rand_r(seed) % NR_EVENTS;

	close(events[i]);
	events[i] = bp_open(&kinds[i], 0, -1);
	switch_mine();
	hit_all();
}

/* Events of other tasks: of the process of torture_all(), and of tasks that exit. */
static void torture_others(unsigned int *seed)
{
	struct perf_event_attr *attr = any_kind(seed), changed = *attr;
	pid_t pid = fork();
	int fd[2];

	if (!pid) {
		for (int i = 0; i < 3; i++)
			hit_all();
		exec_image("--store");
	}
	if (pid < 0) {
		fork_error = errno;
		return;
	}
	fd[0] = bp_open(attr, pid, -1);
	fd[1] = bp_open(attr, getpid(), -1);
	changed.bp_addr = (unsigned long)page + 256;
	for (int i = 0; i < 2; i++)
		bp_modify(fd[i], &changed);
	switch_mine();
	waitpid(pid, NULL, 0);
	bp_close(fd, 2);
}

static void torture_hotplug(unsigned int *seed)
{
	if (last_cpu < 0) {
		usleep(10000);
		return;
	}
	bp_cpu_online(last_cpu, false);
	usleep(20000);
	bp_cpu_online(last_cpu, true);
	usleep(20000);
}

/* Events of the CPU that goes offline and comes back */
static void torture_cpu(unsigned int *seed)
{
	struct perf_event_attr attr = bp_attr_w(page + 128, 1), changed = attr;
	int fd = bp_open(&attr, -1, last_cpu);

	changed.bp_addr += 64;
	for (int i = 0; i < 10; i++) {
		bp_modify(fd, i % 2 ? &attr : &changed);
		bp_count(fd);
		usleep(1000);
	}
	if (fd >= 0)
		close(fd);
	else
		usleep(10000);
}

static void (* const torments[])(unsigned int *seed) = {
	torture_modify, torture_modify, torture_fork, torture_fork, torture_vfork,
	torture_thread, torture_prctl, torture_ioctl, torture_reopen, torture_others,
	torture_hotplug, torture_cpu,
};

static void *torment(void *arg)
{
	unsigned int seed = (long)arg + 1;

	do {
		torments[(long)arg](&seed);
		done[(long)arg]++;
	} while (go_on());
	return NULL;
}

static void make_kinds(void)
{
	for (int i = 0; i < NR_EVENTS; i++) {
		kinds[i] = bp_attr_w(page + 64 * i, 1);
		kinds[i].sample_period = 1;
		kinds[i].inherit = i != 2;
		kinds[i].inherit_thread = i == 1;
		kinds[i].remove_on_exec = i == 3 || i == 4;
		kinds[i].config = i >= 4;
		events[i] = -1;
	}
}

/* Opens events of the main thread, so that the other threads inherit some of them. */
static int torture_all(__u64 until)
{
	int nr = sizeof(torments) / sizeof(torments[0]);
	pthread_t thread[16];

	run_until = until;
	make_kinds();
	for (int i = 0; i < NR_EVENTS; i++)
		events[i] = bp_open(&kinds[i], 0, -1);
	for (long i = 0; i < nr; i++) {
		if (pthread_create(&thread[i], NULL, torment, (void *)i))
			return -EAGAIN;
	}
	while (go_on()) {
		switch_mine();
		hit_all();
	}
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < nr; i++) {
		if (!done[i])
			return -ENODATA;
	}
	return -fork_error;
}

TEST_F(ending, many_operations_at_the_same_time)
{
	struct bp_cpus cpus = bp_online_cpus();
	int err;

	if (!geteuid() && cpus.nr > 1)
		last_cpu = cpus.cpu[cpus.nr - 1];
	self->hotplug = last_cpu;
	err = run_bounded(torture_all, TORTURE_TIME, GRACE);
	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("an operation hangs");
	EXPECT_EQ(0, err);
}

TEST_HARNESS_MAIN
