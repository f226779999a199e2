// SPDX-License-Identifier: GPL-2.0
/*
 * Families of events: attr.inherit_thread.
 *
 * The rule: with inherit_thread an event is inherited by threads, and not by processes.
 */
#include "family.h"

FIXTURE(thread)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int cpu;
};

KINDS_OF(thread);

FIXTURE_SETUP(thread)
{
	BP_NEED_CONFIG(variant->config);
	ASSERT_TRUE(map_pages());
	self->cpus = bp_online_cpus();
	self->cpu = variant->bound ? self->cpus.cpu[0] : -1;
	self->attr = attr_of_kind(_metadata, variant->config, self->cpu);
	self->attr.inherit = 1;
	self->attr.inherit_thread = 1;
}

FIXTURE_TEARDOWN(thread)
{
	bp_teardown(_metadata);
}

TEST_F(thread, needs_inherit)
{
	struct perf_event_attr sw = faults();

	self->attr.inherit = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, self->cpu));
	sw.inherit_thread = 1;
	EXPECT_EQ(-EINVAL, bp_open(&sw, 0, self->cpu));
	sw.inherit = 1;
	EXPECT_LE(0, bp_open(&sw, 0, self->cpu));
}

TEST_F(thread, threads_and_threads_of_threads_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&thread, CMD_THREAD));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(2 * MANY + 3, bp_count(fd));
}

TEST_F(thread, forks_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_do(&child, CMD_THREAD));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(0, bp_count(fd));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(3, bp_count(fd));
}

/* Starts a thread that outlives the caller. */
static long start_heir(int cmd, void *heir)
{
	return bp_start_thread(heir, member, NULL);
}

/*
 * A thread that inherited the event passes on the changed attributes, although the first
 * owner has exited.
 */
TEST_F(thread, change_reaches_threads_of_an_exited_owner)
{
	struct perf_event_attr before = self->attr;
	struct bp_worker first, heir;
	int fd;

	before.bp_addr += 128;
	ASSERT_EQ(0, bp_start_thread(&first, start_heir, &heir));
	fd = bp_open(&before, first.pid, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_do(&first, CMD_GO));
	EXPECT_EQ(0, bp_stop(&first));
	ASSERT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&heir, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&heir, CMD_THREAD));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&heir));
}

TEST_F(thread, vforks_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, store_in_vfork());
	EXPECT_EQ(0, bp_count(fd));
}

TEST_F(thread, forks_of_threads_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_FORK));
	EXPECT_EQ(0, bp_do(&thread, CMD_VFORK));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(thread, threads_have_claims_and_forks_do_not)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread, child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

/* If only one event of a group has inherit_thread, fork separates the group. */
TEST_F(thread, sibling_is_inherited_by_threads_only_though_its_leader_is_by_forks)
{
	struct perf_event_attr sibling = self->attr;
	struct bp_worker child;
	int a, b;

	self->attr.inherit_thread = 0;
	sibling.bp_addr += 128;
	a = bp_open(&self->attr, 0, self->cpu);
	ASSERT_LE(0, a);
	b = bp_open_group(&sibling, 0, self->cpu, a, 0);
	ASSERT_LE(0, b);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(a));
	EXPECT_EQ(0, bp_count(b));
}

TEST_F(thread, software_events_follow_the_same_rule)
{
	struct perf_event_attr sw = faults();
	struct bp_worker thread, child;
	int fd;

	sw.inherit = 1;
	sw.inherit_thread = 1;
	fd = bp_open(&sw, 0, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_TOUCH));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_GT(NR_PAGES, bp_count(fd));
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_TOUCH));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_LE(NR_PAGES, bp_count(fd));
}

TEST_HARNESS_MAIN
