// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints in groups of events.
 *
 * The rule: a group is scheduled as a whole or not at all; enabling, disabling and
 * reading the leader applies to all members; each member has a count of its own.
 */
#include "bp_test.h"

struct group_read {
	__u64 nr;
	struct {
		__u64 value;
		__u64 id;
	} cntr[BP_SLOTS + 2];
};

FIXTURE(group)
{
	char *mem;
	struct perf_event_attr attr[BP_SLOTS + 1];
	int fd[BP_SLOTS + 1];
	struct bp_cpus cpus;
};

FIXTURE_SETUP(group)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
	for (int i = 0; i <= BP_SLOTS; i++) {
		self->attr[i] = bp_attr_w(self->mem + 64 * i, 4);
		self->attr[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		self->fd[i] = -1;
	}
}

FIXTURE_TEARDOWN(group)
{
	bp_teardown(_metadata);
}

/* Opens the first nr events as one group, led by self->fd[0]. */
static void open_group(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
		       int nr, pid_t pid, int cpu)
{
	for (int i = 0; i < nr; i++) {
		self->fd[i] = bp_open_group(&self->attr[i], pid, cpu, i ? self->fd[0] : -1, 0);
		ASSERT_GE(self->fd[i], 0);
	}
}

/* One store to the word of the first breakpoint, two to that of the second, and so on. */
static void hit_all(FIXTURE_DATA(group) *self, int nr)
{
	for (int i = 0; i < nr; i++)
		bp_store_times(self->mem + 64 * i, 4, i + 1);
}

static void expect_counts(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
			  int nr, int times)
{
	struct group_read r = { };

	EXPECT_EQ(8 + 16 * nr, read(self->fd[0], &r, sizeof(r)));
	EXPECT_EQ(nr, r.nr);
	for (int i = 0; i < nr; i++) {
		EXPECT_EQ(times * (i + 1), r.cntr[i].value);
		EXPECT_EQ(bp_id(self->fd[i]), r.cntr[i].id);
	}
}

TEST_F(group, of_all_registers_counts_and_is_read_as_one)
{
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 2);
}

TEST_F(group, read_to_a_bad_address_is_efault_and_the_group_goes_on)
{
	open_group(_metadata, self, 2, 0, -1);
	EXPECT_EQ(-1, read(self->fd[0], (void *)8UL, sizeof(struct group_read)));
	EXPECT_EQ(EFAULT, errno);
	hit_all(self, 2);
	expect_counts(_metadata, self, 2, 1);
}

TEST_F(group, member_too_many_is_refused_and_the_group_goes_on)
{
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	for (int i = 1; i <= 10; i++) {
		EXPECT_EQ(-ENOSPC, bp_open_group(&self->attr[BP_SLOTS], 0, -1, self->fd[0], 0));
		hit_all(self, BP_SLOTS);
		expect_counts(_metadata, self, BP_SLOTS, i);
	}
}

TEST_F(group, leader_that_is_disabled_keeps_all_from_counting)
{
	self->attr[0].disabled = 1;
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 0);
	EXPECT_EQ(0, bp_enable(self->fd[0]));
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	EXPECT_EQ(0, bp_disable(self->fd[0]));
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, ioctls_with_the_group_flag_reach_all)
{
	for (int i = 0; i < BP_SLOTS; i++)
		self->attr[i].disabled = 1;
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	EXPECT_EQ(0, bp_enable(self->fd[0]));
	hit_all(self, BP_SLOTS);
	EXPECT_EQ(0, bp_disable(self->fd[0]));
	EXPECT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	EXPECT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	EXPECT_EQ(0, bp_ioctl(self->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, member_can_be_disabled_alone)
{
	struct group_read r = { };

	open_group(_metadata, self, 3, 0, -1);
	EXPECT_EQ(0, bp_disable(self->fd[1]));
	hit_all(self, 3);
	EXPECT_EQ(8 + 16 * 3, read(self->fd[0], &r, sizeof(r)));
	EXPECT_EQ(1, r.cntr[0].value);
	EXPECT_EQ(0, r.cntr[1].value);
	EXPECT_EQ(3, r.cntr[2].value);
	EXPECT_EQ(0, bp_enable(self->fd[1]));
	hit_all(self, 3);
	EXPECT_EQ(8 + 16 * 3, read(self->fd[0], &r, sizeof(r)));
	EXPECT_EQ(2, r.cntr[1].value);
}

TEST_F(group, member_that_is_closed_leaves_the_others_and_its_slot)
{
	struct group_read r = { };

	open_group(_metadata, self, BP_SLOTS, 0, -1);
	close(self->fd[2]);
	hit_all(self, BP_SLOTS);
	EXPECT_EQ(8 + 16 * 3, read(self->fd[0], &r, sizeof(r)));
	EXPECT_EQ(3, r.nr);
	EXPECT_EQ(1, r.cntr[0].value);
	EXPECT_EQ(2, r.cntr[1].value);
	EXPECT_EQ(4, r.cntr[2].value);
	EXPECT_EQ(1, bp_free_slots(0, -1));
	self->fd[2] = bp_open_group(&self->attr[2], 0, -1, self->fd[0], 0);
	EXPECT_LE(0, self->fd[2]);
}

static void open_timed_group(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
			     pid_t pid, int cpu)
{
	for (int i = 0; i < BP_SLOTS; i++)
		self->attr[i].read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
					    PERF_FORMAT_TOTAL_TIME_RUNNING;
	open_group(_metadata, self, BP_SLOTS, pid, cpu);
}

/* The members, which their leader has left, have run while they were enabled. */
static void expect_members(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
			   int rounds)
{
	struct bp_reading r;

	for (int i = 1; i < BP_SLOTS; i++) {
		ASSERT_TRUE(bp_read(self->fd[i], &r));
		EXPECT_EQ(rounds * (i + 1), r.count);
		EXPECT_EQ(r.running, r.enabled);
	}
}

TEST_F(group, members_go_on_when_the_leader_is_closed)
{
	open_timed_group(_metadata, self, 0, -1);
	hit_all(self, BP_SLOTS);
	close(self->fd[0]);
	EXPECT_EQ(1, bp_free_slots(0, -1));
	hit_all(self, BP_SLOTS);
	expect_members(_metadata, self, 2);
}

/* A leader that is disabled keeps its members out: when it is closed they count at once. */
static void close_disabled_leader(struct __test_metadata *_metadata, FIXTURE_DATA(group) *self,
				  pid_t pid, int cpu)
{
	open_timed_group(_metadata, self, pid, cpu);
	ASSERT_EQ(0, ioctl(self->fd[0], PERF_EVENT_IOC_DISABLE, 0));
	hit_all(self, BP_SLOTS);
	close(self->fd[0]);
	hit_all(self, BP_SLOTS);
	expect_members(_metadata, self, 1);
}

TEST_F(group, members_of_a_task_count_at_once_when_a_disabled_leader_is_closed)
{
	close_disabled_leader(_metadata, self, 0, -1);
}

TEST_F(group, members_of_a_cpu_count_at_once_when_a_disabled_leader_is_closed)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	close_disabled_leader(_metadata, self, -1, self->cpus.cpu[0]);
}

TEST_F(group, two_groups_of_a_task_count_side_by_side)
{
	struct group_read r = { };
	int a, b;

	open_group(_metadata, self, 2, 0, -1);
	a = bp_open(&self->attr[2], 0, -1);
	ASSERT_GE(a, 0);
	b = bp_open_group(&self->attr[3], 0, -1, a, 0);
	ASSERT_GE(b, 0);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, 2, 1);
	EXPECT_EQ(8 + 16 * 2, read(a, &r, sizeof(r)));
	EXPECT_EQ(3, r.cntr[0].value);
	EXPECT_EQ(4, r.cntr[1].value);
}

TEST_F(group, of_a_cpu_counts_there)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	open_group(_metadata, self, BP_SLOTS, -1, self->cpus.cpu[0]);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
	if (self->cpus.nr > 1) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
		hit_all(self, BP_SLOTS);
		expect_counts(_metadata, self, BP_SLOTS, 1);
	}
}

TEST_F(group, follows_its_task_across_cpus)
{
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	for (int i = 1; i <= 40; i++) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[i % self->cpus.nr]));
		hit_all(self, BP_SLOTS);
		expect_counts(_metadata, self, BP_SLOTS, i);
	}
}

/* ---------------------------------------------------- together with software events */

static struct perf_event_attr software(__u64 config)
{
	struct perf_event_attr attr = bp_attr_sw(config);

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	return attr;
}

FIXTURE(mixed)
{
	char *mem;
};

FIXTURE_VARIANT(mixed)
{
	__u64 config;
	bool bp_leads;
};

FIXTURE_VARIANT_ADD(mixed, dummy_leads) { .config = PERF_COUNT_SW_DUMMY };
FIXTURE_VARIANT_ADD(mixed, task_clock_leads) { .config = PERF_COUNT_SW_TASK_CLOCK };
FIXTURE_VARIANT_ADD(mixed, cpu_clock_leads) { .config = PERF_COUNT_SW_CPU_CLOCK };
FIXTURE_VARIANT_ADD(mixed, switches_leads) { .config = PERF_COUNT_SW_CONTEXT_SWITCHES };
FIXTURE_VARIANT_ADD(mixed, leads_dummy) { .config = PERF_COUNT_SW_DUMMY, .bp_leads = true };
FIXTURE_VARIANT_ADD(mixed, leads_task_clock) {
	.config = PERF_COUNT_SW_TASK_CLOCK, .bp_leads = true };
FIXTURE_VARIANT_ADD(mixed, leads_cpu_clock) {
	.config = PERF_COUNT_SW_CPU_CLOCK, .bp_leads = true };

FIXTURE_SETUP(mixed)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
}

FIXTURE_TEARDOWN(mixed)
{
	bp_teardown(_metadata);
}

TEST_F(mixed, group_counts_and_stops_as_one)
{
	struct perf_event_attr bp = bp_attr_w(self->mem, 1), sw = software(variant->config);
	int leader, sibling, at = variant->bp_leads ? 0 : 1;
	struct group_read r = { };

	bp.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	bp.disabled = variant->bp_leads;
	sw.disabled = !variant->bp_leads;
	leader = bp_open(variant->bp_leads ? &bp : &sw, 0, -1);
	ASSERT_GE(leader, 0);
	sibling = bp_open_group(variant->bp_leads ? &sw : &bp, 0, -1, leader, 0);
	ASSERT_GE(sibling, 0);
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(8 + 16 * 2, read(leader, &r, sizeof(r)));
	EXPECT_EQ(0, r.cntr[at].value);
	EXPECT_EQ(0, bp_enable(leader));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(8 + 16 * 2, read(leader, &r, sizeof(r)));
	EXPECT_EQ(2, r.nr);
	EXPECT_EQ(10, r.cntr[at].value);
	EXPECT_EQ(bp_id(leader), r.cntr[0].id);
	EXPECT_EQ(bp_id(sibling), r.cntr[1].id);
	EXPECT_EQ(0, bp_disable(leader));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(8 + 16 * 2, read(leader, &r, sizeof(r)));
	EXPECT_EQ(10, r.cntr[at].value);
	EXPECT_EQ(0, bp_enable(leader));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(8 + 16 * 2, read(leader, &r, sizeof(r)));
	EXPECT_EQ(20, r.cntr[at].value);
}

TEST_F(mixed, member_that_joins_a_running_group_counts_at_once)
{
	struct perf_event_attr bp = bp_attr_w(self->mem, 1), sw = software(variant->config);
	int leader, sibling;

	sw.disabled = 0;
	leader = bp_open(variant->bp_leads ? &bp : &sw, 0, -1);
	ASSERT_GE(leader, 0);
	bp.bp_addr += 64;
	sibling = bp_open_group(&bp, 0, -1, leader, 0);
	ASSERT_GE(sibling, 0);
	bp_store_times(self->mem + 64, 1, 10);
	EXPECT_EQ(10, bp_count(sibling));
	EXPECT_EQ(0, bp_disable(sibling));
	EXPECT_EQ(0, bp_enable(sibling));
	bp_store_times(self->mem + 64, 1, 10);
	EXPECT_EQ(20, bp_count(sibling));
}

TEST_F(mixed, group_is_refused_where_no_slot_is_free)
{
	struct perf_event_attr bp = bp_attr_w(self->mem, 1), sw = software(variant->config);
	int leader, fd[BP_SLOTS];

	if (variant->bp_leads) {
		ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
		EXPECT_EQ(-ENOSPC, bp_open(&bp, 0, -1));
		return;
	}
	leader = bp_open(&sw, 0, -1);
	ASSERT_GE(leader, 0);
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open_group(&bp, 0, -1, leader, 0));
	close(fd[0]);
	EXPECT_LE(0, bp_open_group(&bp, 0, -1, leader, 0));
}

/* -------------------------------------------------------------- with hardware events */

/*
 * The PMU is one that the tests provide, because a virtual machine may have no hardware PMU. Its
 * number of counters for each CPU, without a limit when the module is loaded:
 */
#define HW_COUNTERS	"/sys/module/" BP_PMU_MODULE "/parameters/counters"

FIXTURE(hardware)
{
	struct perf_event_attr hw, plain, flexible;
	char *mem;
};

FIXTURE_SETUP(hardware)
{
	long type;
	int err;

	BP_NEED_ROOT();
	err = bp_load_module(BP_PMU_MODULE_PATH, "");
	if (err == -ENOENT)
		SKIP(return, "needs the module " BP_PMU_MODULE_PATH);
	ASSERT_EQ(0, err);
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	type = bp_read_number(BP_TEST_PMU "/type");
	ASSERT_LE(0, type);
	self->hw = software(0);
	self->hw.type = type;
	self->hw.disabled = 0;
	self->plain = bp_attr_w(self->mem, 1);
	self->flexible = self->plain;
	self->flexible.config = 1;
}

FIXTURE_TEARDOWN(hardware)
{
	if (!self->mem)
		return;
	bp_teardown(_metadata);
	EXPECT_EQ(0, bp_remove_module(BP_PMU_MODULE_PATH));
}

TEST_F(hardware, event_leads_a_breakpoint)
{
	int leader = bp_open(&self->hw, 0, -1), fd;

	ASSERT_LE(0, leader);
	fd = bp_open_group(&self->plain, 0, -1, leader, 0);
	ASSERT_LE(0, fd);
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(fd));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(hardware, event_leads_a_breakpoint_that_takes_a_register_from_flexible_ones)
{
	int leader = bp_open(&self->hw, 0, -1), fd;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	ASSERT_LE(0, leader);
	for (int i = 0; i < 2 * BP_SLOTS; i++) {
		struct perf_event_attr attr = self->flexible;

		attr.bp_addr += 8 * (i + 1);
		ASSERT_LE(0, bp_open(&attr, 0, -1));
	}
	fd = bp_open_group(&self->plain, 0, -1, leader, 0);
	ASSERT_LE(0, fd);
	for (int i = 1; i <= 1000; i++) {
		bp_store(self->mem, 1);
		ASSERT_EQ(i, bp_count(fd));
	}
}

/*
 * The group moves to the context of the hardware event: no claim is lost or made twice.
 */
TEST_F(hardware, event_joins_a_group_of_breakpoints)
{
	int leader = bp_open(&self->plain, 0, -1), sibling, hw;
	struct perf_event_attr attr = self->plain;

	ASSERT_LE(0, leader);
	attr.bp_addr += 64;
	sibling = bp_open_group(&attr, 0, -1, leader, 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, -1));
	hw = bp_open_group(&self->hw, 0, -1, leader, 0);
	ASSERT_LE(0, hw);
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, -1));
	for (int i = 1; i <= 10; i++) {
		bp_store(self->mem, 1);
		bp_store(self->mem + 64, 1);
	}
	EXPECT_EQ(10, bp_count(leader));
	EXPECT_EQ(10, bp_count(sibling));
	close(hw);
	close(leader);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

/*
 * Sends a byte to the other process and receives one, repeatedly: both leave the CPU
 * each time.
 */
static void play_with(int in, int out, char *word)
{
	char byte = 0;

	while (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1) {
		if (word)
			bp_store(word, 1);
	}
}

static pid_t start_player(int cpu, int in, int out, char *word)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	if (!bp_pin(cpu))
		play_with(in, out, word);
	_exit(1);
}

#define MOVES	5
#define CROWD	64

/*
 * A group of software events moves to the PMU of a hardware event. Its task never
 * accesses the word, and shares a CPU with a task that does.
 */
TEST_F(hardware, event_moves_a_group_that_counts_no_hits_of_others)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	struct bp_cpus cpus = bp_online_cpus();
	int a[2], b[2], fd[CROWD + 3], other_fd, cpu;
	pid_t watched, other;

	BP_NEED_CPUS(cpus, 2);
	cpu = cpus.cpu[cpus.nr - 1];
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	ASSERT_EQ(0, pipe2(a, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(b, O_CLOEXEC));
	watched = start_player(cpu, a[0], b[1], NULL);
	ASSERT_LT(0, watched);
	other = start_player(cpu, b[0], a[1], self->mem);
	ASSERT_LT(0, other);
	other_fd = bp_open(&self->plain, other, -1);
	ASSERT_LE(0, other_fd);

	for (int i = 0; i < MOVES; i++) {
		fd[0] = bp_open(&sw, watched, -1);
		ASSERT_LE(0, fd[0]);
		for (int k = 1; k <= CROWD; k++) {
			fd[k] = bp_open_group(&sw, watched, -1, fd[0], 0);
			ASSERT_LE(0, fd[k]);
		}
		fd[CROWD + 1] = bp_open_group(&self->plain, watched, -1, fd[0], 0);
		ASSERT_LE(0, fd[CROWD + 1]);
		fd[CROWD + 2] = bp_open_group(&self->hw, watched, -1, fd[0], 0);
		ASSERT_LE(0, fd[CROWD + 2]);
		EXPECT_EQ(0, bp_count(fd[CROWD + 1]));
		bp_close(fd, CROWD + 3);
	}
	EXPECT_LT(0, bp_count(other_fd));
}

#define FILE_MAX	"/proc/sys/fs/file-max"

/*
 * Opens an event that refers to its group leader as AUX event, when no more file can be
 * opened. Root is exempt from that limit.
 */
static int open_without_files(void *arg)
{
	struct perf_event_attr *attr = arg;
	int leader = bp_open(attr, 0, -1);

	if (leader < 0 || bp_write_file(FILE_MAX, "0") || bp_become_nobody())
		return 255;
	attr->aux_output = 1;
	return -bp_open_group(attr, 0, -1, leader, 0);
}

/* The teardown fails to remove the module of the PMU if an event has not been freed. */
TEST_F(hardware, aux_event_is_released_if_open_fails_late)
{
	struct perf_event_attr aux = self->hw;
	int status, leader;
	char file_max[24];

	aux.aux_output = 1;
	EXPECT_EQ(-EINVAL, bp_open(&aux, 0, -1));
	leader = bp_open(&self->hw, 0, -1);
	ASSERT_LE(0, leader);
	EXPECT_LE(0, bp_open_group(&aux, 0, -1, leader, 0));

	ASSERT_EQ(0, bp_read_file(FILE_MAX, file_max, sizeof(file_max)));
	status = bp_in_child(open_without_files, &self->hw);
	ASSERT_EQ(0, bp_write_file(FILE_MAX, file_max));
	EXPECT_EQ(ENFILE, status);
}

TEST_F(hardware, event_and_flexible_breakpoint_are_no_group)
{
	int hw = bp_open(&self->hw, 0, -1), flexible = bp_open(&self->flexible, 0, -1);

	BP_NEED_CONFIG(BP_FLEXIBLE);
	ASSERT_LE(0, hw);
	ASSERT_LE(0, flexible);
	EXPECT_EQ(-EINVAL, bp_open_group(&self->flexible, 0, -1, hw, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->hw, 0, -1, flexible, 0));
	bp_store_times(self->mem, 1, 10);
	EXPECT_EQ(10, bp_count(flexible));
	close(flexible);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(hardware, event_joins_no_group_with_a_flexible_member)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	int leader = bp_open(&sw, 0, -1);

	BP_NEED_CONFIG(BP_FLEXIBLE);
	ASSERT_LE(0, leader);
	ASSERT_LE(0, bp_open_group(&self->flexible, 0, -1, leader, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->hw, 0, -1, leader, 0));
}

TEST_F(hardware, plain_and_flexible_breakpoint_are_no_group_after_a_move)
{
	int leader = bp_open(&self->plain, 0, -1);

	ASSERT_LE(0, leader);
	ASSERT_LE(0, bp_open_group(&self->hw, 0, -1, leader, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->flexible, 0, -1, leader, 0));
	EXPECT_LE(0, bp_open_group(&self->plain, 0, -1, leader, 0));
}

static long do_nothing(int cmd, void *arg)
{
	return 0;
}

/*
 * The order of scheduling is: pinned events of the CPU, pinned events of the task,
 * flexible events of the CPU. A pinned event that does not get a counter is in ERROR
 * state from then on, and read() returns nothing.
 */
TEST_F(hardware, pinned_event_of_a_task_has_precedence_over_a_flexible_one_of_the_cpu)
{
	struct bp_cpus cpus = bp_online_cpus();
	int cpu = cpus.cpu[cpus.nr - 1], of_cpu, pinned;
	struct bp_reading r;
	struct bp_worker w;

	ASSERT_EQ(0, bp_write_file(HW_COUNTERS, "1"));
	ASSERT_EQ(0, bp_start(&w, do_nothing, NULL));
	ASSERT_EQ(0, bp_pin_task(w.pid, cpu));
	self->hw.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	of_cpu = bp_open(&self->hw, -1, cpu);
	ASSERT_LE(0, of_cpu);
	ASSERT_TRUE(bp_read(of_cpu, &r));
	EXPECT_LT(0, r.running);

	self->hw.pinned = 1;
	pinned = bp_open(&self->hw, w.pid, -1);
	ASSERT_LE(0, pinned);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, bp_do(&w, 0));
		ASSERT_TRUE(bp_read(pinned, &r)) {
			TH_LOG("the pinned event has no counter in run %d", i);
		}
		EXPECT_LT(0, r.running);
		EXPECT_EQ(r.enabled, r.running);
	}
	/* There is one counter: the event of the CPU did not have it all the time. */
	ASSERT_TRUE(bp_read(of_cpu, &r));
	EXPECT_LT(r.running, r.enabled);
	EXPECT_EQ(0, bp_stop(&w));
}

/* ------------------------------------------------------------------ refused groups */

TEST_F(group, members_must_share_task_and_cpu)
{
	struct perf_event_attr pinned = self->attr[1];
	int sibling;
	pid_t pid;

	BP_NEED_CPUS(self->cpus, 2);
	open_group(_metadata, self, 1, 0, self->cpus.cpu[0]);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr[1], 0, self->cpus.cpu[1], self->fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr[1], 0, -1, self->fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr[1], pid, self->cpus.cpu[0],
					 self->fd[0], 0));
	sibling = bp_open_group(&self->attr[1], 0, self->cpus.cpu[0], self->fd[0], 0);
	EXPECT_LE(0, sibling);
	EXPECT_EQ(-EINVAL, bp_open_group(&self->attr[2], 0, self->cpus.cpu[0], sibling, 0));
	pinned.pinned = 1;
	EXPECT_EQ(-EINVAL, bp_open_group(&pinned, 0, self->cpus.cpu[0], self->fd[0], 0));
	pinned.pinned = 0;
	pinned.exclusive = 1;
	EXPECT_EQ(-EINVAL, bp_open_group(&pinned, 0, self->cpus.cpu[0], self->fd[0], 0));
}

TEST_F(group, pinned_leader_counts_with_its_members)
{
	self->attr[0].pinned = 1;
	open_group(_metadata, self, BP_SLOTS, 0, -1);
	hit_all(self, BP_SLOTS);
	expect_counts(_metadata, self, BP_SLOTS, 1);
}

TEST_F(group, exclusive_leader_counts_with_its_members)
{
	self->attr[0].exclusive = 1;
	open_group(_metadata, self, 2, 0, -1);
	hit_all(self, 2);
	expect_counts(_metadata, self, 2, 1);
}

/* A sample of the leader has the counts of all members at that moment. */
TEST_F(group, sample_of_the_leader_carries_all_counts)
{
	union bp_record rec;
	struct bp_ring ring;
	struct {
		struct perf_event_header header;
		struct group_read read;
	} *s = (void *)&rec;
	int samples = 0;

	self->attr[0].sample_period = 1;
	self->attr[0].sample_type = PERF_SAMPLE_READ;
	open_group(_metadata, self, 3, 0, -1);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd[0], 1, PROT_READ | PROT_WRITE));
	for (int i = 0; i < 5; i++) {
		bp_store(self->mem + 128, 4);
		bp_store(self->mem + 64, 4);
		bp_store(self->mem, 4);
	}
	while (bp_ring_next(&ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		EXPECT_EQ(3, s->read.nr);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(samples, s->read.cntr[i].value);
			EXPECT_EQ(bp_id(self->fd[i]), s->read.cntr[i].id);
		}
	}
	EXPECT_EQ(5, samples);
	bp_ring_unmap(&ring);
}

TEST_HARNESS_MAIN
