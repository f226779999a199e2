// SPDX-License-Identifier: GPL-2.0
/*
 * Families of events: changes during fork.
 *
 * The rule: a change of a family reaches each member, also one that is being created.
 */
#include "family.h"

#define ROUNDS	bp_rounds(16)

FIXTURE(born)
{
	struct perf_event_attr attr[2];
	struct bp_worker w;
	struct bp_cpus cpus;
	unsigned int seed;
	int fd;
};

FIXTURE_SETUP(born)
{
	ASSERT_TRUE(map_pages());
	spawn = bp_map_shared();
	ASSERT_NE(NULL, spawn);
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	for (int i = 0; i < 2; i++) {
		self->attr[i] = bp_attr_w(page + 64 * i, 1);
		self->attr[i].inherit = 1;
	}
	self->seed = 1;
}

FIXTURE_TEARDOWN(born)
{
	bp_teardown(_metadata);
}

static void open_family(struct __test_metadata *_metadata, FIXTURE_DATA(born) *self)
{
	self->fd = bp_open(&self->attr[0], 0, -1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	ASSERT_EQ(0, bp_start(&self->w, member, NULL));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
}

/* Has the child fork, and executes cmd on the family at the same time. */
static int do_while_they_are_born(FIXTURE_DATA(born) *self, unsigned long cmd, void *arg)
{
	int when = rand_r(&self->seed) % NR_SPAWN, go = CMD_SPAWN, err;
	volatile int wait = rand_r(&self->seed) % 20000;
	long nr;

	spawn->born = 0;
	if (write(self->w.cmd[1], &go, sizeof(go)) != sizeof(go))
		return -EPIPE;
	while (spawn->born < when)
		;
	while (wait--)
		;
	err = bp_ioctl(self->fd, cmd, (unsigned long)arg);
	if (read(self->w.ans[0], &nr, sizeof(nr)) != sizeof(nr))
		return -EPIPE;
	return nr == NR_SPAWN ? err : -EAGAIN;
}

/* Each grandchild hits the old address once and the new one ten times. */
static void move_while_they_are_born(struct __test_metadata *_metadata,
				     FIXTURE_DATA(born) *self)
{
	long long count;

	open_family(_metadata, self);
	for (int i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr[0]));
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
						    &self->attr[1]));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + 10 * NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d", i);
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
						    &self->attr[0]));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d, back", i);
	}
	EXPECT_EQ(0, bp_stop(&self->w));
}

TEST_F(born, while_the_family_moves)
{
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_family_changes_its_type)
{
	spawn->execute = true;
	self->attr[1] = bp_attr_x(bp_func_insn);
	self->attr[1].inherit = 1;
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_flexible_family_moves)
{
	BP_NEED_CONFIG(BP_FLEXIBLE);
	self->attr[0].config = 1;
	self->attr[1].config = 1;
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_family_is_stopped_and_started)
{
	long long count;

	open_family(_metadata, self);
	for (int i = 0; i < ROUNDS; i++) {
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_DISABLE, NULL));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count, bp_count(self->fd)) TH_LOG("round %d, stopped", i);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_ENABLE, NULL));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d, started", i);
	}
	EXPECT_EQ(0, bp_stop(&self->w));
}

TEST_HARNESS_MAIN
