// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints of a cgroup.
 *
 * The rule: such an event counts the accesses of the tasks of its cgroup on its CPU, and
 * its times are those that these tasks ran there. The task that changes the event may be
 * in any cgroup and on any CPU. A switch between cgroups reschedules the PMUs that have
 * cgroup events and no others, and leaves all of these PMUs enabled. Events of a process
 * count in all cgroups.
 */
#include <sys/stat.h>

#include "bp_test.h"

#define ROOT_GROUP	"/sys/fs/cgroup"
#define GROUP		ROOT_GROUP "/hw_breakpoint"
#define OTHER_GROUP	ROOT_GROUP "/hw_breakpoint_other"

enum {
	STORE,
	NOTHING,
	CHANGE_GROUP,
};

/* Events of a cgroup and of a process have a word each. */
#define WORD	8

FIXTURE(cgroup)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int here, there;
	int group;
	struct bp_worker member;
};

static int join(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	return bp_write_file(path, "0");
}

static void store_to_both(char *mem, int times)
{
	bp_store_times(mem, 1, times);
	bp_store_times(mem + WORD, 1, times);
}

/* A member of GROUP on the CPU of the event, which sleeps between commands. */
static long member_work(int cmd, void *arg)
{
	int err = 0;

	if (cmd == CHANGE_GROUP) {
		err = join(OTHER_GROUP);
		store_to_both(arg, 10);
		err = err ?: join(GROUP);
	}
	if (cmd != NOTHING)
		store_to_both(arg, 10);
	return err;
}

static int move_to(pid_t pid, const char *group)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	snprintf(text, sizeof(text), "%d", pid);
	return bp_write_file(path, text);
}

FIXTURE_SETUP(cgroup)
{
	BP_NEED_ROOT();
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	self->here = self->cpus.cpu[0];
	self->there = self->cpus.cpu[self->cpus.nr - 1];
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->attr = bp_attr_w(self->mem, 1);
	ASSERT_EQ(0, bp_enable_cgroups());
	mkdir(GROUP, 0700);
	mkdir(OTHER_GROUP, 0700);
	self->group = open(GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, self->group);

	ASSERT_EQ(0, bp_pin(self->here));
	ASSERT_EQ(0, bp_start(&self->member, member_work, self->mem));
	ASSERT_EQ(0, move_to(self->member.pid, GROUP));
	ASSERT_EQ(0, bp_pin_task(self->member.pid, self->there));
	ASSERT_EQ(0, bp_do(&self->member, NOTHING));
	bp_wait_for_state(self->member.pid, 'S');
}

FIXTURE_TEARDOWN(cgroup)
{
	if (!self->group)
		return;
	join(ROOT_GROUP);
	bp_stop(&self->member);
	close(self->group);
	rmdir(GROUP);
	rmdir(OTHER_GROUP);
	bp_teardown(_metadata);
}

static int open_of_group(FIXTURE_DATA(cgroup) *self, struct perf_event_attr *attr, int cpu)
{
	return bp_open_group(attr, self->group, cpu, -1,
			     PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
}

/* Ten hits of the member; returns what the event has counted of them. */
static long long hits_of_member(FIXTURE_DATA(cgroup) *self, int fd)
{
	long long before = bp_count(fd);

	if (bp_do(&self->member, STORE))
		return -1;
	return bp_count(fd) - before;
}

TEST_F(cgroup, event_counts_its_members_only)
{
	int fd = open_of_group(self, &self->attr, self->there);

	ASSERT_LE(0, fd);
	EXPECT_EQ(10, hits_of_member(self, fd));
	ASSERT_EQ(0, bp_pin(self->there));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
	EXPECT_EQ(10, hits_of_member(self, fd));
}

/* The CPU has no other event, and its current task was no member when it was opened. */
TEST_F(cgroup, event_is_enabled_by_a_task_that_has_joined)
{
	int fd = open_of_group(self, &self->attr, self->here);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_disable(fd));
	ASSERT_EQ(0, join(GROUP));
	EXPECT_EQ(0, bp_enable(fd));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
}

/*
 * No task of the cgroup runs on the other CPU, so the events of the cgroup are not
 * scheduled there. A task of the cgroup on this CPU makes the change.
 */
TEST_F(cgroup, event_is_enabled_by_a_modify_from_another_cpu)
{
	struct perf_event_attr off = self->attr, on = self->attr;
	int fd = open_of_group(self, &self->attr, self->there);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, join(GROUP));
	off.disabled = 1;
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_modify(fd, &off));
		EXPECT_EQ(0, hits_of_member(self, fd));
		EXPECT_EQ(0, bp_modify(fd, &on));
		EXPECT_EQ(10, hits_of_member(self, fd));
	}
}

struct change {
	int fd;
	struct perf_event_attr attr;
};

static int modify_and_go(void *arg)
{
	struct change *change = arg;
	struct perf_event_attr off = change->attr;

	off.disabled = 1;
	return join(OTHER_GROUP) || bp_modify(change->fd, &off) ||
	       bp_modify(change->fd, &change->attr);
}

/*
 * The cgroup of the task that makes the change is removed before the other CPU applies
 * it.
 */
TEST_F(cgroup, event_is_modified_from_a_cgroup_that_ends)
{
	struct change change = { .attr = self->attr };

	change.fd = open_of_group(self, &self->attr, self->there);
	ASSERT_LE(0, change.fd);
	for (int i = 0; i < 5; i++) {
		mkdir(OTHER_GROUP, 0700);
		ASSERT_EQ(0, bp_in_child(modify_and_go, &change));
		ASSERT_EQ(0, rmdir(OTHER_GROUP));
		EXPECT_EQ(10, hits_of_member(self, change.fd));
	}
}

TEST_F(cgroup, event_is_enabled_while_its_cpu_is_offline)
{
	int fd;

	self->attr.disabled = 1;
	fd = open_of_group(self, &self->attr, self->there);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_pin_task(self->member.pid, self->here));
	ASSERT_EQ(0, bp_cpu_online(self->there, false));
	ASSERT_EQ(0, join(GROUP));
	EXPECT_EQ(0, bp_enable(fd));
	ASSERT_EQ(0, join(ROOT_GROUP));
	ASSERT_EQ(0, bp_cpu_online(self->there, true));
	ASSERT_EQ(0, bp_pin_task(self->member.pid, self->there));
	EXPECT_EQ(10, hits_of_member(self, fd));
}

/* -------------------------------------------------------------------------- times */

#define SPIN_MS		20

/*
 * Reads the event while this task is a member of the cgroup on the CPU of the event, which
 * is active therefore. Returns the time that the task was a member at most, or 0.
 */
static __u64 read_as_member(FIXTURE_DATA(cgroup) *self, int fd, struct bp_reading *r)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	bool done;

	if (join(GROUP))
		return 0;
	bp_spin(SPIN_MS);
	bp_store_times(self->mem, 1, 10);
	done = bp_read(fd, r);
	if (join(ROOT_GROUP) || !done)
		return 0;
	return bp_now(CLOCK_MONOTONIC) - start;
}

/*
 * Time stands still while the CPU runs other cgroups. The event always has its register,
 * so both times are the same, also while it is active.
 */
TEST_F(cgroup, times_advance_only_while_a_member_runs)
{
	struct bp_reading active, before, after;
	__u64 as_member = 0, time;
	int fd;

	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = open_of_group(self, &self->attr, self->there);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_pin(self->there));
	for (int i = 1; i <= 5; i++) {
		time = read_as_member(self, fd, &active);
		ASSERT_LT(0, time);
		as_member += time;
		EXPECT_EQ(10 * i, active.count);
		EXPECT_LT(0, active.running);
		EXPECT_EQ(active.enabled, active.running);

		ASSERT_TRUE(bp_read(fd, &before));
		bp_spin(SPIN_MS);
		ASSERT_TRUE(bp_read(fd, &after));
		EXPECT_EQ(before.enabled, after.enabled);
		EXPECT_EQ(before.running, after.running);
		EXPECT_EQ(after.enabled, after.running);
		/* Half of the other time allows for the difference of the two clocks. */
		EXPECT_GT(as_member + i * SPIN_MS * 500000ULL, after.enabled);
	}
}

/* ------------------------------------------------------------- events of a process */

static struct perf_event_attr process_attr(FIXTURE_DATA(cgroup) *self)
{
	struct perf_event_attr attr = bp_attr_w(self->mem + WORD, 1);

	attr.config = BP_PROCESS;
	return attr;
}

/* The cgroup of the CPU changes with and without a switch to another process. */
TEST_F(cgroup, event_of_a_process_counts_in_each_cgroup)
{
	struct perf_event_attr attr = process_attr(self);
	int process = bp_open(&attr, self->member.pid, -1);
	int fd = open_of_group(self, &self->attr, self->there);

	BP_NEED_CONFIG(BP_PROCESS);
	ASSERT_LE(0, process);
	ASSERT_LE(0, fd);
	for (int i = 1; i <= 5; i++) {
		EXPECT_EQ(0, bp_do(&self->member, CHANGE_GROUP));
		ASSERT_EQ(0, move_to(self->member.pid, OTHER_GROUP));
		EXPECT_EQ(0, bp_do(&self->member, STORE));
		ASSERT_EQ(0, move_to(self->member.pid, GROUP));
		EXPECT_EQ(0, bp_do(&self->member, STORE));
		EXPECT_EQ(20 * i, bp_count(fd));
		EXPECT_EQ(40 * i, bp_count(process));
	}
}

static int move_thread_to(pid_t tid, const char *group)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "%s/cgroup.threads", group);
	snprintf(text, sizeof(text), "%d", tid);
	return bp_write_file(path, text);
}

/*
 * The cgroup of the CPU changes, and the process that runs on it does not: the test itself
 * runs there, too, so that the CPU is not idle in between.
 */
TEST_F(cgroup, event_of_a_process_counts_for_threads_of_several_cgroups)
{
	struct perf_event_attr attr = process_attr(self);
	struct bp_worker inside, outside;
	int fd, process;

	BP_NEED_CONFIG(BP_PROCESS);
	ASSERT_EQ(0, bp_write_file(OTHER_GROUP "/cgroup.type", "threaded"));
	ASSERT_EQ(0, bp_start_thread(&inside, member_work, self->mem));
	ASSERT_EQ(0, bp_start_thread(&outside, member_work, self->mem));
	ASSERT_EQ(0, move_thread_to(inside.pid, OTHER_GROUP));
	ASSERT_EQ(0, bp_pin_task(inside.pid, self->there));
	ASSERT_EQ(0, bp_pin_task(outside.pid, self->there));
	self->group = open(OTHER_GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = open_of_group(self, &self->attr, self->there);
	ASSERT_LE(0, fd);
	process = bp_open(&attr, 0, -1);
	ASSERT_LE(0, process);
	ASSERT_EQ(0, bp_pin(self->there));
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(0, bp_do(&inside, STORE));
		EXPECT_EQ(0, bp_do(&outside, STORE));
		EXPECT_EQ(10 * i, bp_count(fd));
		EXPECT_EQ(20 * i, bp_count(process));
	}
	EXPECT_EQ(0, bp_stop(&inside));
	EXPECT_EQ(0, bp_stop(&outside));
}

/* ------------------------------------------------------- the switch between cgroups */

/*
 * The event is hit when the member leaves the CPU, and its limit disables it during the
 * switch of cgroups that schedules it out. It is the last event of a cgroup on the CPU.
 */
TEST_F(cgroup, last_event_ends_within_the_switch)
{
	struct perf_event_attr limited = { };
	int plain, fd;
	void *insn;

	insn = bp_ksym("__perf_event_task_sched_out");
	ASSERT_NE(NULL, insn);
	limited = bp_attr_x(insn);
	limited.exclude_kernel = 0;
	limited.sample_period = 1;
	limited.disabled = 1;

	plain = bp_open(&self->attr, -1, self->there);
	ASSERT_LE(0, plain);
	fd = open_of_group(self, &limited, self->there);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	EXPECT_EQ(10, hits_of_member(self, plain));
	bp_wait_for_state(self->member.pid, 'S');
	EXPECT_EQ(1, bp_count(fd));

	/*
	 * The other event of the PMU still exists, and new ones can be opened and
	 * closed.
	 */
	EXPECT_EQ(10, hits_of_member(self, plain));
	EXPECT_EQ(BP_SLOTS - 2 + BP_OWN_REGISTERS, bp_free_slots(-1, self->there));
	close(plain);
	plain = bp_open(&self->attr, -1, self->there);
	ASSERT_LE(0, plain);
	EXPECT_EQ(10, hits_of_member(self, plain));
}

static long nr_of_hw(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), BP_TEST_PMU "/%s", name);
	return bp_read_number(path);
}

TEST_F(cgroup, switch_leaves_other_pmus_alone)
{
	struct perf_event_attr hw = { .size = sizeof(hw) };
	const int rounds = 500;
	long before;
	int fd, hw_fd, err;

	err = bp_load_module(BP_PMU_MODULE_PATH, "");
	if (err == -ENOENT)
		SKIP(return, "needs the module " BP_PMU_MODULE_PATH);
	ASSERT_EQ(0, err);
	hw.type = nr_of_hw("type");
	hw_fd = bp_open(&hw, -1, self->there);
	ASSERT_LT(0, hw_fd);
	fd = open_of_group(self, &self->attr, self->there);
	ASSERT_LE(0, fd);
	EXPECT_EQ(10, hits_of_member(self, fd));

	before = nr_of_hw("test/disables");
	ASSERT_LT(0, before);
	for (int i = 0; i < rounds; i++)
		ASSERT_EQ(0, bp_do(&self->member, NOTHING));
	EXPECT_GT(rounds / 10, nr_of_hw("test/disables") - before);
	EXPECT_EQ(10, hits_of_member(self, fd));
	close(hw_fd);
	EXPECT_EQ(0, bp_remove_module(BP_PMU_MODULE_PATH));
}

TEST_HARNESS_MAIN
