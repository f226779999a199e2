// SPDX-License-Identifier: GPL-2.0
/*
 * Groups of events of a process.
 *
 * The rule: a group of events of one process for the same CPUs is what a group of
 * events of one thread is, for all threads on all CPUs: it is scheduled, enabled and
 * disabled as one, a member has a count and a register of its own, and a read of the
 * group has the sums of all CPUs.
 */
#include <sys/uio.h>

#include "process.h"

#define WORD		64

struct group_read {
	__u64 nr;
	struct {
		__u64 value;
		__u64 id;
	} cntr[BP_SLOTS + 1];
};

FIXTURE(group)
{
	char *mem;
	struct perf_event_attr attr[BP_SLOTS + 1];
	int fd[BP_SLOTS + 1];
	struct bp_cpus cpus;
	/* For which CPU the events are, and on how many they count */
	int cpu;
	int nr_cpus;
};

FIXTURE_VARIANT(group)
{
	bool one_cpu;
};

FIXTURE_VARIANT_ADD(group, any_cpu) { };
FIXTURE_VARIANT_ADD(group, one_cpu) { .one_cpu = true };

FIXTURE_SETUP(group)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
	self->cpu = variant->one_cpu ? self->cpus.cpu[self->cpus.nr - 1] : -1;
	self->nr_cpus = variant->one_cpu ? 1 : self->cpus.nr;
	for (int i = 0; i <= BP_SLOTS; i++) {
		self->attr[i] = process_attr(self->mem + WORD * i);
		self->attr[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		self->fd[i] = -1;
	}
}

FIXTURE_TEARDOWN(group)
{
	bp_teardown(_metadata);
}

/* Opens the first @nr events as one group, led by self->fd[0]. */
static void open_group_of(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
			  pid_t pid, int nr)
{
	for (int i = 0; i < nr; i++) {
		self->fd[i] = bp_open_group(&self->attr[i], pid, self->cpu,
					    i ? self->fd[0] : -1, 0);
		ASSERT_LE(0, self->fd[i]);
	}
}

static void open_group(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self, int nr)
{
	open_group_of(_metadata, self, 0, nr);
}

/* One store to the first word, two to the second, and so on. */
static long store_all(int nr, void *mem)
{
	for (int i = 0; i < nr; i++)
		bp_store_times((char *)mem + WORD * i, 1, i + 1);
	return nr;
}

/* On each CPU */
static void hit_all(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self)
{
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i]));
		store_all(BP_SLOTS, self->mem);
	}
}

static struct group_read read_group(int fd)
{
	struct group_read r = { };
	ssize_t size = read(fd, &r, sizeof(r));

	if (size != 8 + 16 * (ssize_t)r.nr)
		r.nr = -1;
	return r;
}

/* Expects the counts after hit_all() has been called @times times. */
static void expect_counts(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
			  int nr, int times)
{
	struct group_read r = read_group(self->fd[0]);

	EXPECT_EQ(nr, r.nr);
	for (int i = 0; i < nr; i++) {
		EXPECT_EQ(times * self->nr_cpus * (i + 1), r.cntr[i].value);
		EXPECT_EQ(bp_id(self->fd[i]), r.cntr[i].id);
	}
}

/* ------------------------------------------------------------------- scheduling */

TEST_F(group, of_all_registers_counts_and_is_read_as_one)
{
	struct bp_worker thread;

	ASSERT_EQ(0, bp_start_thread(&thread, store_all, self->mem));
	open_group(_metadata, self, BP_SLOTS);
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[i]));
		bp_do(&thread, BP_SLOTS);
	}
	expect_counts(_metadata, self, BP_SLOTS, 2);
	/* Each sibling reads the same group. */
	EXPECT_EQ(BP_SLOTS, read_group(self->fd[2]).nr);
	EXPECT_EQ(2 * self->nr_cpus, read_group(self->fd[2]).cntr[0].value);
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(group, claims_a_register_for_each_member)
{
	open_group(_metadata, self, 3);
	EXPECT_EQ(1, bp_free_slots(0, self->cpu));
	EXPECT_EQ(1, bp_free_slots_with(&self->attr[3], 0, self->cpu));
	self->fd[3] = bp_open_group(&self->attr[3], 0, self->cpu, self->fd[0], 0);
	ASSERT_LE(0, self->fd[3]);
	EXPECT_EQ(-ENOSPC, bp_open_group(&self->attr[4], 0, self->cpu, self->fd[0], 0));
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, goes_with_its_process)
{
	struct bp_worker thread, child;

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[self->cpus.nr - 1]));
	ASSERT_EQ(0, bp_start_thread(&thread, store_all, self->mem));
	ASSERT_EQ(0, bp_start(&child, store_all, self->mem));
	open_group(_metadata, self, BP_SLOTS);
	for (int i = 1; i <= 50; i++) {
		struct group_read r;

		bp_do(&thread, BP_SLOTS);
		bp_do(&child, BP_SLOTS);
		r = read_group(self->fd[0]);
		for (int j = 0; j < BP_SLOTS; j++)
			EXPECT_EQ(i * (j + 1), r.cntr[j].value);
	}
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(group, pinned_or_exclusive_leader_counts_with_its_members)
{
	self->attr[0].pinned = 1;
	open_group(_metadata, self, BP_SLOTS);
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	bp_close(self->fd, BP_SLOTS);
	self->attr[0].pinned = 0;
	self->attr[0].exclusive = 1;
	open_group(_metadata, self, BP_SLOTS);
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

/* --------------------------------------------------------------------- controls */

TEST_F(group, leader_that_is_disabled_keeps_all_from_counting)
{
	self->attr[0].disabled = 1;
	open_group(_metadata, self, BP_SLOTS);
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 0);
	EXPECT_EQ(0, bp_enable(self->fd[0]));
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	EXPECT_EQ(0, bp_disable(self->fd[0]));
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, ioctls_with_the_group_flag_reach_all)
{
	for (int i = 0; i < BP_SLOTS; i++)
		self->attr[i].disabled = 1;
	open_group(_metadata, self, BP_SLOTS);
	EXPECT_EQ(0, bp_enable(self->fd[0]));
	hit_all(_metadata, self);
	EXPECT_EQ(self->nr_cpus, read_group(self->fd[0]).cntr[0].value);
	EXPECT_EQ(0, read_group(self->fd[0]).cntr[1].value);
	EXPECT_EQ(0, bp_disable(self->fd[0]));
	EXPECT_EQ(0, bp_ioctl(self->fd[1], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	EXPECT_EQ(0, bp_ioctl(self->fd[1], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	EXPECT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	hit_all(_metadata, self);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, member_can_be_disabled_alone)
{
	struct group_read r;

	open_group(_metadata, self, 3);
	EXPECT_EQ(0, bp_disable(self->fd[1]));
	hit_all(_metadata, self);
	r = read_group(self->fd[0]);
	EXPECT_EQ(self->nr_cpus, r.cntr[0].value);
	EXPECT_EQ(0, r.cntr[1].value);
	EXPECT_EQ(3 * self->nr_cpus, r.cntr[2].value);
	EXPECT_EQ(0, bp_enable(self->fd[1]));
	hit_all(_metadata, self);
	EXPECT_EQ(2 * self->nr_cpus, read_group(self->fd[0]).cntr[1].value);
}

TEST_F(group, member_is_modified_for_all_threads)
{
	struct bp_worker thread;

	ASSERT_EQ(0, bp_start_thread(&thread, store_all, self->mem));
	open_group(_metadata, self, 2);
	for (int member = 0; member < 2; member++) {
		struct perf_event_attr attr = self->attr[member];

		for (int i = 1; i <= 10; i++) {
			struct group_read before = read_group(self->fd[0]), after;
			int word = i % 2 ? 3 : member, cpu = self->cpus.cpu[i % self->cpus.nr];

			attr.bp_addr = (uintptr_t)self->mem + WORD * word;
			ASSERT_EQ(0, bp_modify(self->fd[member], &attr));
			ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpu < 0 ? cpu : self->cpu));
			bp_do(&thread, BP_SLOTS);
			after = read_group(self->fd[0]);
			EXPECT_EQ(word + 1, after.cntr[member].value - before.cntr[member].value);
			EXPECT_EQ(!member + 1,
				  after.cntr[!member].value - before.cntr[!member].value);
		}
	}
	EXPECT_EQ(0, bp_stop(&thread));
}

/* At the limit the leader is disabled, and all with it. */
TEST_F(group, limit_of_the_leader_stops_all)
{
	struct group_read r;
	__u64 before, start;

	self->attr[0].sample_period = 1;
	self->attr[0].disabled = 1;
	open_group(_metadata, self, 2);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[self->cpus.nr - 1]));
	ASSERT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_REFRESH, 3));
	for (int i = 0; i < 5; i++)
		bp_store(self->mem, 1);
	/* The work that disables it runs when this thread waits. */
	start = bp_now(CLOCK_MONOTONIC);
	do {
		before = read_group(self->fd[0]).cntr[1].value;
		usleep(1000);
		bp_store(self->mem + WORD, 1);
	} while (read_group(self->fd[0]).cntr[1].value != before && bp_has_patience(start));
	EXPECT_EQ(3, read_group(self->fd[0]).cntr[0].value);
	r = read_group(self->fd[0]);
	store_all(2, self->mem);
	EXPECT_EQ(r.cntr[0].value, read_group(self->fd[0]).cntr[0].value);
	EXPECT_EQ(r.cntr[1].value, read_group(self->fd[0]).cntr[1].value);
}

/* si_perf_data is not in the C library's siginfo_t yet. */
static unsigned long perf_data(const siginfo_t *info)
{
	return *(const unsigned long *)((const char *)&info->si_addr + sizeof(void *));
}

static __thread unsigned long trapped;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	trapped |= perf_data(info);
}

static long trapped_by(int nr, void *mem)
{
	trapped = 0;
	store_all(nr, mem);
	return trapped;
}

TEST_F(group, members_send_signals_with_their_data)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct bp_worker thread;

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	for (int i = 0; i < BP_SLOTS; i++) {
		self->attr[i].sigtrap = 1;
		self->attr[i].remove_on_exec = 1;
		self->attr[i].sample_period = 1;
		self->attr[i].sig_data = 1ULL << i;
	}
	ASSERT_EQ(0, bp_start_thread(&thread, trapped_by, self->mem));
	ASSERT_EQ(0, bp_pin_task(thread.pid, self->cpus.cpu[self->cpus.nr - 1]));
	open_group(_metadata, self, BP_SLOTS);
	EXPECT_EQ(15, bp_do(&thread, BP_SLOTS));
	EXPECT_EQ(3, bp_do(&thread, 2));
	EXPECT_EQ(0, bp_disable(self->fd[0]));
	EXPECT_EQ(0, bp_do(&thread, BP_SLOTS));
	EXPECT_EQ(0, bp_stop(&thread));
}

/* ------------------------------------------------------------------------- life */

TEST_F(group, member_that_is_closed_leaves_the_others_and_its_register)
{
	struct group_read r;

	open_group(_metadata, self, BP_SLOTS);
	close(self->fd[2]);
	hit_all(_metadata, self);
	r = read_group(self->fd[0]);
	EXPECT_EQ(3, r.nr);
	EXPECT_EQ(self->nr_cpus, r.cntr[0].value);
	EXPECT_EQ(2 * self->nr_cpus, r.cntr[1].value);
	EXPECT_EQ(4 * self->nr_cpus, r.cntr[2].value);
	EXPECT_EQ(1, bp_free_slots(0, self->cpu));
	self->fd[2] = bp_open_group(&self->attr[2], 0, self->cpu, self->fd[0], 0);
	EXPECT_LE(0, self->fd[2]);
}

TEST_F(group, members_go_on_when_the_leader_is_closed)
{
	open_group(_metadata, self, BP_SLOTS);
	hit_all(_metadata, self);
	close(self->fd[0]);
	EXPECT_EQ(1, bp_free_slots(0, self->cpu));
	hit_all(_metadata, self);
	for (int i = 1; i < BP_SLOTS; i++) {
		struct group_read r = read_group(self->fd[i]);

		EXPECT_EQ(1, r.nr);
		EXPECT_EQ(2 * self->nr_cpus * (i + 1), r.cntr[0].value);
	}
	/* Each member is a single event now, which may lead a group. */
	EXPECT_EQ(0, bp_disable(self->fd[1]));
	self->fd[0] = bp_open_group(&self->attr[0], 0, self->cpu, self->fd[1], 0);
	ASSERT_LE(0, self->fd[0]);
	hit_all(_metadata, self);
	EXPECT_EQ(0, read_group(self->fd[1]).cntr[1].value);
	EXPECT_EQ(0, bp_enable(self->fd[1]));
	hit_all(_metadata, self);
	EXPECT_EQ(self->nr_cpus, read_group(self->fd[1]).cntr[1].value);
	EXPECT_EQ(4 * 3 * self->nr_cpus, read_group(self->fd[2]).cntr[0].value);
}

/* The members have to be scheduled by close() itself: no context switch follows it. */
TEST_F(group, members_of_a_disabled_leader_count_when_it_is_closed)
{
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[self->cpus.nr - 1]));
	self->attr[0].disabled = 1;
	open_group(_metadata, self, BP_SLOTS);
	store_all(BP_SLOTS, self->mem);
	close(self->fd[0]);
	store_all(BP_SLOTS, self->mem);
	for (int i = 1; i < BP_SLOTS; i++)
		EXPECT_EQ(i + 1, read_group(self->fd[i]).cntr[0].value);
}

static void run_for(__u64 ns)
{
	__u64 end = bp_now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (bp_now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

#define LONG_NS		(50 * 1000 * 1000ULL)

/* A member counts as disabled while its leader is disabled. */
TEST_F(group, members_of_a_disabled_leader_are_timed_from_its_close_on)
{
	struct bp_reading r;
	__u64 start;

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[self->cpus.nr - 1]));
	self->attr[0].disabled = 1;
	self->attr[1].read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	open_group(_metadata, self, 2);
	run_for(LONG_NS);
	start = bp_now(CLOCK_MONOTONIC);
	close(self->fd[0]);
	ASSERT_TRUE(bp_read(self->fd[1], &r));
	EXPECT_GE(bp_now(CLOCK_MONOTONIC) - start, r.enabled);
}

/* The members leave the leader, and its CPU, while the last thread exits. */
TEST_F(group, members_of_a_disabled_leader_have_no_time_when_the_process_exits)
{
	struct bp_worker child;
	struct bp_reading r;

	ASSERT_EQ(0, bp_start(&child, store_all, self->mem));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_pin_task(child.pid, self->cpus.cpu[self->cpus.nr - 1]));
	self->attr[0].disabled = 1;
	self->attr[1].read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	open_group_of(_metadata, self, child.pid, 2);
	bp_do(&child, BP_SLOTS);
	EXPECT_EQ(0, bp_stop(&child));
	ASSERT_TRUE(bp_read(self->fd[1], &r));
	EXPECT_EQ(0, r.count);
	EXPECT_EQ(0, r.enabled);
	EXPECT_EQ(0, r.running);
}

#define CHANGES		200

struct churn {
	struct perf_event_attr *attr;
	int cpu;
	int leader;
	int stop;
	int failed;
};

static void *open_and_close(void *arg)
{
	struct churn *churn = arg;

	while (!__atomic_load_n(&churn->stop, __ATOMIC_RELAXED)) {
		int fd = bp_open_group(churn->attr, 0, churn->cpu, churn->leader, 0);

		churn->failed |= fd < 0;
		close(fd);
	}
	return NULL;
}

static void *store_until(void *arg)
{
	int *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
		store_all(BP_SLOTS, BP_PAGE);
	return NULL;
}

/* Each read finds the same members in the groups of all CPUs. */
TEST_F(group, is_read_while_members_come_and_go)
{
	struct churn churn = { .attr = &self->attr[2], .cpu = self->cpu };
	pthread_t opener, storer;
	__u64 last = 0;

	open_group(_metadata, self, 2);
	churn.leader = self->fd[0];
	ASSERT_EQ(0, start_thread(&opener, open_and_close, &churn));
	ASSERT_EQ(0, start_thread(&storer, store_until, &churn.stop));
	for (int i = 0; i < CHANGES; i++) {
		struct group_read r = read_group(self->fd[0]);

		ASSERT_TRUE(r.nr == 2 || r.nr == 3);
		EXPECT_LE(last, r.cntr[1].value);
		last = r.cntr[1].value;
		sched_yield();
	}
	__atomic_store_n(&churn.stop, 1, __ATOMIC_RELAXED);
	pthread_join(opener, NULL);
	pthread_join(storer, NULL);
	EXPECT_EQ(0, churn.failed);
}

TEST_F(group, is_read_after_the_process_has_exited)
{
	struct bp_worker child;

	ASSERT_EQ(0, bp_start(&child, store_all, self->mem));
	open_group_of(_metadata, self, child.pid, BP_SLOTS);
	for (int i = 0; i < self->cpus.nr; i++) {
		ASSERT_EQ(0, bp_pin_task(child.pid, self->cpus.cpu[i]));
		bp_do(&child, BP_SLOTS);
	}
	EXPECT_EQ(0, bp_stop(&child));
	expect_counts(_metadata, self, BP_SLOTS, 1);
	EXPECT_EQ(-ENODEV, bp_open_group(&self->attr[4], 0, self->cpu, self->fd[0], 0));
	close(self->fd[0]);
	EXPECT_EQ(1, read_group(self->fd[1]).nr);
	EXPECT_EQ(2 * self->nr_cpus, read_group(self->fd[1]).cntr[0].value);
}

/* The new image stores on each CPU, if this is in its environment. */
static __attribute__((constructor)) void new_image(void)
{
	struct bp_cpus cpus;

	if (!getenv("PERF_PROCESS_GROUP_EXEC"))
		return;
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	cpus = bp_online_cpus();
	for (int i = 0; i < cpus.nr; i++) {
		bp_pin(cpus.cpu[i]);
		store_all(BP_SLOTS, BP_PAGE);
	}
	_exit(0);
}

static long exec_image(int cmd, void *arg)
{
	char *argv[] = { "perf_process", NULL };
	char *envp[] = { "PERF_PROCESS_GROUP_EXEC=1", NULL };

	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

/* Has a new process execute the image, while three events watch it. */
static void exec_watched(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self)
{
	int go[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(go));
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (read(go[0], &c, 1) == 1)
			exec_image(0, NULL);
		_exit(3);
	}
	open_group_of(_metadata, self, pid, 3);
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ(0, bp_wait(pid));
	close(go[0]);
	close(go[1]);
}

TEST_F(group, stays_over_exec)
{
	exec_watched(_metadata, self);
	expect_counts(_metadata, self, 3, 1);
}

TEST_F(group, is_enabled_on_exec)
{
	self->attr[0].disabled = 1;
	self->attr[0].enable_on_exec = 1;
	exec_watched(_metadata, self);
	expect_counts(_metadata, self, 3, 1);
}

TEST_F(group, leader_that_is_removed_on_exec_leaves_the_others)
{
	self->attr[0].remove_on_exec = 1;
	exec_watched(_metadata, self);
	EXPECT_EQ(1, read_group(self->fd[0]).nr);
	EXPECT_EQ(0, read_group(self->fd[0]).cntr[0].value);
	EXPECT_EQ(1, read_group(self->fd[1]).nr);
	EXPECT_EQ(2 * self->nr_cpus, read_group(self->fd[1]).cntr[0].value);
	EXPECT_EQ(3 * self->nr_cpus, read_group(self->fd[2]).cntr[0].value);
}

TEST_F(group, member_that_is_removed_on_exec_leaves_the_others)
{
	struct group_read r;

	self->attr[1].remove_on_exec = 1;
	exec_watched(_metadata, self);
	EXPECT_EQ(0, read_group(self->fd[1]).cntr[0].value);
	r = read_group(self->fd[0]);
	EXPECT_EQ(2, r.nr);
	EXPECT_EQ(self->nr_cpus, r.cntr[0].value);
	EXPECT_EQ(3 * self->nr_cpus, r.cntr[1].value);
}

TEST_F(group, goes_on_when_cpus_return)
{
	int cpu = self->cpus.cpu[self->cpus.nr - 1];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	open_group(_metadata, self, 2);
	hit_all(_metadata, self);
	bp_unpin();
	ASSERT_EQ(0, bp_cpu_online(cpu, false));
	/* Members that join and leave while the CPU is offline */
	for (int i = 2; i < BP_SLOTS; i++) {
		self->fd[i] = bp_open_group(&self->attr[i], 0, self->cpu, self->fd[0], 0);
		EXPECT_LE(0, self->fd[i]);
	}
	close(self->fd[3]);
	EXPECT_EQ(3, read_group(self->fd[0]).nr);
	ASSERT_EQ(0, bp_cpu_online(cpu, true));
	hit_all(_metadata, self);
	EXPECT_EQ(3, read_group(self->fd[0]).nr);
	EXPECT_EQ(2 * self->nr_cpus, read_group(self->fd[0]).cntr[0].value);
	EXPECT_EQ(4 * self->nr_cpus, read_group(self->fd[0]).cntr[1].value);
	EXPECT_EQ(3 * self->nr_cpus, read_group(self->fd[0]).cntr[2].value);
}

/* A sample has the times of the process, which a read has, too. */
TEST_F(group, sample_has_the_times_of_the_process)
{
	union bp_record rec;
	struct bp_ring ring;
	struct bp_worker child;
	struct bp_reading before, after, *sample = (void *)((char *)&rec + sizeof(rec.header));
	int samples = 0;

	if (self->cpu < 0)
		return;
	self->attr[0].sample_period = 1;
	self->attr[0].sample_type = PERF_SAMPLE_READ;
	self->attr[0].read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	ASSERT_EQ(0, bp_start(&child, store_all, self->mem));
	ASSERT_EQ(0, bp_pin_task(child.pid, self->cpu));
	open_group_of(_metadata, self, child.pid, 1);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd[0], 1, PROT_READ | PROT_WRITE));
	/* The CPU runs another process meanwhile. */
	ASSERT_EQ(0, bp_pin(self->cpu));
	ASSERT_TRUE(bp_read(self->fd[0], &before));
	run_for(LONG_NS);
	bp_do(&child, 1);
	ASSERT_TRUE(bp_read(self->fd[0], &after));
	while (bp_ring_next(&ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		EXPECT_EQ(1, sample->count);
		EXPECT_LE(before.enabled, sample->enabled);
		EXPECT_GE(after.enabled, sample->enabled);
		EXPECT_GE(after.running, sample->running);
	}
	EXPECT_EQ(1, samples);
	bp_ring_unmap(&ring);
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(group, sample_of_the_leader_carries_all_counts)
{
	union bp_record rec;
	struct bp_ring ring;
	struct {
		struct perf_event_header header;
		struct group_read read;
	} *sample = (void *)&rec;
	int samples = 0;

	self->attr[0].sample_period = 1;
	self->attr[0].sample_type = PERF_SAMPLE_READ;
	open_group(_metadata, self, 3);
	if (self->cpu < 0) {
		EXPECT_NE(0, bp_ring_map(&ring, self->fd[0], 1, PROT_READ | PROT_WRITE));
		return;
	}
	ASSERT_EQ(0, bp_pin(self->cpu));
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd[0], 1, PROT_READ | PROT_WRITE));
	for (int i = 0; i < 5; i++) {
		bp_store(self->mem + 2 * WORD, 1);
		bp_store(self->mem + WORD, 1);
		bp_store(self->mem, 1);
	}
	while (bp_ring_next(&ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		EXPECT_EQ(3, sample->read.nr);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(samples, sample->read.cntr[i].value);
	}
	EXPECT_EQ(5, samples);
	bp_ring_unmap(&ring);
}

/* ---------------------------------------------------------------------- refused */

TEST_F(group, members_share_process_and_cpus)
{
	struct perf_event_attr plain = bp_attr_w(self->mem + WORD, 1), attr = self->attr[1];
	int other_cpu = self->cpu < 0 ? self->cpus.cpu[0] : -1;
	struct bp_worker child;
	int task, sibling;

	ASSERT_EQ(0, bp_start(&child, store_all, self->mem));
	open_group(_metadata, self, 1);
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, child.pid, self->cpu, self->fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, other_cpu, self->fd[0], 0));
	if (self->cpus.nr > 1)
		EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, self->cpus.cpu[0], self->fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, self->cpu, self->fd[0], 0));
	if (!geteuid())
		EXPECT_EQ(-EINVAL, bp_open_group(&plain, -1, self->cpus.cpu[self->cpus.nr - 1],
						 self->fd[0], 0));
	task = bp_open(&plain, 0, self->cpu);
	ASSERT_LE(0, task);
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, self->cpu, task, 0));
	close(task);
	attr.pinned = 1;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, self->cpu, self->fd[0], 0));
	attr = self->attr[1];
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	EXPECT_EQ(-EINVAL, bp_open_group(&attr, 0, self->cpu, self->fd[0], 0));
	sibling = bp_open_group(&self->attr[1], 0, self->cpu, self->fd[0], 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr[2], 0, self->cpu, sibling, 0));
	self->fd[1] = sibling;
	hit_all(_metadata, self);
	expect_counts(_metadata, self, 2, 1);
	EXPECT_EQ(2, bp_free_slots(0, self->cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(child.pid, self->cpu));
	EXPECT_EQ(0, bp_stop(&child));
}

/* ---------------------------------------------------------------------- lost hits */

FIXTURE(lost)
{
	char *mem;
};

FIXTURE_SETUP(lost)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
}

FIXTURE_TEARDOWN(lost)
{
	bp_teardown(_metadata);
}

static struct perf_event_attr trap_attr(struct perf_event_attr attr)
{
	attr.config = BP_PROCESS | BP_SIGTRAP_QUEUE;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_LOST;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sample_period = 1;
	return attr;
}

#define KERNEL_HITS	32

static int nr_traps;

static void count_trap(int sig, siginfo_t *info, void *context)
{
	nr_traps++;
}

/*
 * A thread stores 32 hits that the kernel makes on its behalf for each event, so that the
 * last of 33 is lost. They are hits of the events of another CPU than that on which the
 * group is opened, whose own events the descriptors refer to.
 */
TEST_F(lost, hits_are_read_for_each_member)
{
	struct sigaction action = { .sa_sigaction = count_trap, .sa_flags = SA_SIGINFO };
	struct perf_event_attr attr = trap_attr(bp_attr_w(self->mem, 1));
	char bytes[KERNEL_HITS + 2] = { };
	struct bp_cpus cpus = bp_online_cpus();
	struct iovec iov[KERNEL_HITS + 2];
	int in[2], leader, member;
	struct group_read r;
	__u64 alone[2];

	BP_NEED_ROOT();
	BP_NEED(BP_KERNEL_ACCESS, "an access by the kernel is no hit");
	BP_NEED_CPUS(cpus, 2);
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	ASSERT_EQ(0, pipe(in));
	attr.exclude_kernel = 0;
	leader = bp_open(&attr, 0, -1);
	ASSERT_LE(0, leader);
	attr.bp_addr = (uintptr_t)self->mem + SECOND;
	attr.read_format = PERF_FORMAT_LOST;
	member = bp_open_group(&attr, 0, -1, leader, 0);
	ASSERT_LE(0, member);
	ASSERT_EQ(0, bp_pin(cpus.cpu[1]));
	for (int i = 0; i < KERNEL_HITS + 2; i++)
		iov[i] = (struct iovec){ self->mem + (i ? SECOND : 0), 1 };
	ASSERT_EQ(sizeof(bytes), write(in[1], bytes, sizeof(bytes)));
	EXPECT_EQ(sizeof(bytes), readv(in[0], iov, KERNEL_HITS + 2));
	EXPECT_EQ(1 + KERNEL_HITS, nr_traps);
	r = read_group(leader);
	EXPECT_EQ(2, r.nr);
	/* PERF_FORMAT_LOST instead of PERF_FORMAT_ID: the number of lost hits */
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(i ? KERNEL_HITS + 1 : 1, r.cntr[i].value);
		EXPECT_EQ(i, r.cntr[i].id);
	}
	ASSERT_EQ(sizeof(alone), read(member, alone, sizeof(alone)));
	EXPECT_EQ(KERNEL_HITS + 1, alone[0]);
	EXPECT_EQ(1, alone[1]);
}

TEST_HARNESS_MAIN
