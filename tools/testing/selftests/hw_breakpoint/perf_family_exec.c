// SPDX-License-Identifier: GPL-2.0
/*
 * Families of events: attr.remove_on_exec.
 *
 * The rule: exec removes the events that have remove_on_exec and releases their registers
 * before the new image starts. Their descriptors stay open, and keep the counts.
 */
#include "family.h"

FIXTURE(exec)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	struct bp_worker w;
	int cpu;
};

KINDS_OF(exec);

FIXTURE_SETUP(exec)
{
	BP_NEED_CONFIG(variant->config);
	ASSERT_TRUE(map_pages());
	self->cpus = bp_online_cpus();
	self->cpu = variant->bound ? self->cpus.cpu[0] : -1;
	self->attr = attr_of_kind(_metadata, variant->config, self->cpu);
	self->attr.remove_on_exec = 1;
	ASSERT_EQ(0, bp_start(&self->w, member, NULL));
}

FIXTURE_TEARDOWN(exec)
{
	EXPECT_EQ(0, bp_stop(&self->w));
	bp_teardown(_metadata);
}

/*
 * Expects that all of the worker's registers are available, for the worker and for
 * others.
 */
static void expect_all_free(struct __test_metadata *_metadata, FIXTURE_DATA(exec) *self)
{
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->w.pid, -1));
	if (!geteuid()) {
		for (int i = 0; i < self->cpus.nr; i++)
			EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[i]));
	}
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FILL));
}

TEST_F(exec, together_with_enable_on_exec_is_refused)
{
	struct perf_event_attr sw = faults();

	self->attr.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, self->cpu));
	sw.remove_on_exec = 1;
	sw.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&sw, 0, self->cpu));
	sw.enable_on_exec = 0;
	EXPECT_LE(0, bp_open(&sw, 0, self->cpu));
}

TEST_F(exec, events_are_gone_and_the_descriptors_stay)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open(&self->attr, self->w.pid, self->cpu);
		ASSERT_LE(0, fd[i]);
		self->attr.bp_addr += 64;
	}
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd[0]));
	EXPECT_FALSE(has_hung_up(fd[0]));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd[0]));
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_TRUE(has_hung_up(fd[i]));
	expect_all_free(_metadata, self);
	bp_close(fd, BP_SLOTS);
	expect_all_free(_metadata, self);
}

TEST_F(exec, disabled_events_are_gone_too)
{
	int fd;

	self->attr.disabled = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, nothing_brings_an_event_back)
{
	int fd = bp_open(&self->attr, self->w.pid, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	bp_disable(fd);
	bp_enable(fd);
	prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
	prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0);
	bp_modify(fd, &self->attr);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, events_without_the_bit_survive)
{
	struct perf_event_attr other = self->attr;
	int fd, removed;

	self->attr.remove_on_exec = 0;
	other.bp_addr += 64;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	removed = bp_open(&other, self->w.pid, self->cpu);
	ASSERT_LE(0, removed);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_FALSE(has_hung_up(fd));
	EXPECT_TRUE(has_hung_up(removed));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&self->w, CMD_FREE));
}

TEST_F(exec, software_events_go_by_the_same_rule)
{
	struct perf_event_attr sw = faults();
	int stays, goes;
	long long count;

	stays = bp_open(&sw, self->w.pid, self->cpu);
	ASSERT_LE(0, stays);
	sw.remove_on_exec = 1;
	goes = bp_open(&sw, self->w.pid, self->cpu);
	ASSERT_LE(0, goes);
	EXPECT_EQ(0, bp_do(&self->w, CMD_TOUCH));
	EXPECT_LE(NR_PAGES, bp_count(goes));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_TRUE(has_hung_up(goes));
	EXPECT_FALSE(has_hung_up(stays));
	count = bp_count(goes);
	EXPECT_EQ(0, bp_do(&self->w, CMD_TOUCH));
	EXPECT_EQ(count, bp_count(goes));
	EXPECT_LE(2 * NR_PAGES, bp_count(stays));
}

/* The members are removed one by one, and their counts are kept. */
TEST_F(exec, child_that_execs_leaves_its_count_to_the_family)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FORK_EXEC));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_FORK));
	EXPECT_EQ(3 * MANY, bp_count(fd));
}

TEST_F(exec, vfork_child_that_execs_leaves_its_count_to_the_family)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_VFORK_EXEC));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
}

TEST_F(exec, child_that_execs_does_not_affect_a_parent_without_inherit)
{
	int fd = bp_open(&self->attr, self->w.pid, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_VFORK_EXEC));
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FORK_EXEC));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_FALSE(has_hung_up(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(exec, family_goes_on_when_the_parent_execs)
{
	struct bp_worker child;
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, 0, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_do(&child, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FILL));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(MANY + 3, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY + 3, bp_count(fd));
}

/*
 * The thread gets the pid of the leader, which exits. The leader has a full set of its
 * own.
 */
TEST_F(exec, thread_that_execs_loses_its_own_and_those_it_inherited)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC_THREAD));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	expect_all_free(_metadata, self);
}

/*
 * The new image opens as many events as there are registers, and reads an inherited
 * descriptor.
 */
static int exec_with_own_events(void *arg)
{
	struct perf_event_attr attr = *(struct perf_event_attr *)arg;
	char text[16];
	int fd = -1;

	for (int i = 0; i < BP_SLOTS; i++) {
		attr.bp_addr = (unsigned long)page + 64 * (BP_SLOTS - 1 - i);
		fd = bp_open_group(&attr, 0, -1, -1, 0);
		if (fd < 0)
			return 200;
	}
	bp_store_times(page, 1, MANY);
	snprintf(text, sizeof(text), "%d", fd);
	execl("/proc/self/exe", "perf_family_exec", "--image", text, NULL);
	return 201;
}

TEST_F(exec, new_image_finds_its_own_events_gone)
{
	EXPECT_EQ(BP_SLOTS, bp_in_child(exec_with_own_events, &self->attr));
}

TEST_F(exec, new_image_of_nobody_finds_its_own_events_gone)
{
	BP_NEED_ROOT();
	EXPECT_EQ(BP_SLOTS, bp_as_nobody(exec_with_own_events, &self->attr));
}

/* Events that root opened are removed at exec of a task that could not open them. */
TEST_F(exec, events_of_another_user_are_removed)
{
	int fd;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_do(&self->w, CMD_NOBODY));
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, siblings_go_on_without_their_leader)
{
	struct perf_event_attr sibling = self->attr;
	int leader, a, b;

	sibling.remove_on_exec = 0;
	self->attr.bp_addr += 64;
	leader = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	a = bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, a);
	sibling.bp_addr += 128;
	b = bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, b);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_TRUE(has_hung_up(leader));
	EXPECT_FALSE(has_hung_up(a));
	EXPECT_EQ(2 * MANY, bp_count(a));
	EXPECT_EQ(-ENODEV, bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0));
	EXPECT_EQ(0, bp_disable(a));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(a));
	EXPECT_EQ(0, bp_enable(a));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(3 * MANY, bp_count(a));
	EXPECT_EQ(variant->config ? BP_SLOTS - 1 : BP_SLOTS - 2, bp_do(&self->w, CMD_FREE));
	close(leader);
	close(b);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(4 * MANY, bp_count(a));
}

TEST_F(exec, leader_goes_on_without_a_sibling)
{
	struct perf_event_attr leader_attr = self->attr;
	struct {
		__u64 nr, count[BP_SLOTS];
	} r = { };
	int leader, sibling;

	leader_attr.remove_on_exec = 0;
	leader_attr.read_format = PERF_FORMAT_GROUP;
	self->attr.bp_addr += 64;
	self->attr.read_format = PERF_FORMAT_GROUP;
	leader = bp_open(&leader_attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	sibling = bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_TRUE(has_hung_up(sibling));
	EXPECT_FALSE(has_hung_up(leader));
	EXPECT_EQ(16, read(leader, &r, sizeof(r)));
	EXPECT_EQ(1, r.nr);
	EXPECT_EQ(MANY, r.count[0]);
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&self->w, CMD_FREE));
	EXPECT_LE(0, bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0));
}

TEST_F(exec, whole_groups_are_removed)
{
	int leader, sibling;

	leader = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	self->attr.bp_addr += 64;
	sibling = bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(leader));
	EXPECT_TRUE(has_hung_up(leader));
	EXPECT_TRUE(has_hung_up(sibling));
	EXPECT_EQ(-ENODEV, bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0));
	expect_all_free(_metadata, self);
}

TEST_HARNESS_MAIN
