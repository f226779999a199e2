// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES: groups, families, and events without task or CPU.
 *
 * The rule: a change applies to the event and to all events that children inherited
 * from it, or to none of them. The other members of a group continue to count.
 */
#include "modify.h"

/*
 * @off: the member that is disabled, and with it all others if it leads; -1 if none is
 */
static void expect_group_counts(struct __test_metadata *_metadata, struct group *g, int off)
{
	for (int i = 0; i < BP_SLOTS; i++) {
		hit(g->at[i], i + 1);
		if (off && off != i)
			g->want[i] += i + 1;
	}
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(g->want[i], count(_metadata, g->fd[i]));
	count(_metadata, g->fd[BP_SLOTS]);
}

static void modify_member(struct __test_metadata *_metadata, struct group *g, int i)
{
	struct perf_event_attr *attr = &g->attr[i];
	int was = g->at[i];

	for (int j = 0; j < SPOTS; j++) {
		watch(attr, j);
		EXPECT_EQ(0, bp_modify(g->fd[i], attr));
		g->at[i] = j;
		expect_group_counts(_metadata, g, -1);
		attr->bp_len = 33;
		EXPECT_EQ(-EINVAL, bp_modify(g->fd[i], attr));
		expect_group_counts(_metadata, g, -1);
	}

	attr->disabled = 1;
	watch(attr, was);
	EXPECT_EQ(0, bp_modify(g->fd[i], attr));
	g->at[i] = was;
	expect_group_counts(_metadata, g, i);
	attr->disabled = 0;
	EXPECT_EQ(0, bp_modify(g->fd[i], attr));
	expect_group_counts(_metadata, g, -1);
}

TEST_F(attr, group_goes_on_when_its_leader_is_modified)
{
	struct group g;

	open_group(_metadata, &g, 0);
	modify_member(_metadata, &g, 0);
}

TEST_F(attr, group_goes_on_when_a_sibling_is_modified)
{
	struct group g;

	open_group(_metadata, &g, 0);
	for (int i = 1; i < BP_SLOTS; i++)
		modify_member(_metadata, &g, i);
}

/*
 * An event that was enabled by ioctl. Stock disables the leader, and with it the group,
 * when it refuses a modify.
 */
TEST_F(attr, group_goes_on_when_a_modify_is_refused)
{
	struct perf_event_attr attr;
	struct group g;

	open_group(_metadata, &g, 0);
	for (int i = 0; i < BP_SLOTS; i++) {
		attr = g.attr[i];
		attr.disabled = 1;
		EXPECT_EQ(0, bp_modify(g.fd[i], &attr));
		EXPECT_EQ(0, bp_enable(g.fd[i]));
		watch(&attr, SECOND_BYTE);
		attr.bp_len = 33;
		EXPECT_EQ(-EINVAL, bp_modify(g.fd[i], &attr));
		expect_group_counts(_metadata, &g, -1);
	}
}

/* ----------------------------------------------------------------------- families */

static void all_hit(struct __test_metadata *_metadata, struct bp_worker *w, int nr,
		    int i, int times)
{
	hit(i, times);
	while (nr--)
		EXPECT_EQ(0, bp_do(&w[nr], HIT(i, times)));
}

static void modify_family(struct __test_metadata *_metadata, struct perf_event_attr *attr,
			  struct bp_worker *w, int nr, bool threads)
{
	long long want = 0;
	__u64 period = 7777;
	int fd;

	attr->inherit = 1;
	fd = bp_open(attr, 0, -1);
	ASSERT_LE(0, fd);
	for (int i = 0; i < nr; i++) {
		ASSERT_EQ(0, threads ? bp_start_thread(&w[i], worker, NULL) :
				       bp_start(&w[i], worker, NULL));
	}
	for (int i = 0; i < SPOTS; i++) {
		watch(attr, i);
		attr->disabled = 0;
		EXPECT_EQ(0, bp_modify(fd, attr));
		all_hit(_metadata, w, nr, i, 3);
		want += 3 * (nr + 1);
		EXPECT_EQ(want, count(_metadata, fd));

		attr->config = BP_FLEXIBLE;
		attr->disabled = 1;
		EXPECT_EQ(-EINVAL, bp_modify(fd, attr));
		attr->config = 0;
		all_hit(_metadata, w, nr, i, 1);
		want += nr + 1;
		EXPECT_EQ(want, count(_metadata, fd));

		EXPECT_EQ(0, bp_modify(fd, attr));
		all_hit(_metadata, w, nr, i, 2);
		EXPECT_EQ(want, count(_metadata, fd));
	}

	/* The family is disabled: one ioctl must enable all of it. */
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	EXPECT_EQ(0, bp_enable(fd));
	watch(attr, SECOND_BYTE);
	attr->disabled = 0;
	EXPECT_EQ(0, bp_modify(fd, attr));
	all_hit(_metadata, w, nr, SECOND_BYTE, 2);
	want += 2 * (nr + 1);
	EXPECT_EQ(want, count(_metadata, fd));
	EXPECT_EQ(0, bp_disable(fd));
	all_hit(_metadata, w, nr, SECOND_BYTE, 2);
	EXPECT_EQ(want, count(_metadata, fd));

	/* Grandchildren inherit the modified event. */
	EXPECT_EQ(0, bp_modify(fd, attr));
	EXPECT_EQ(0, bp_do(&w[0], CMD_FORK));
	want += 5;
	EXPECT_EQ(want, count(_metadata, fd));
	for (int i = 0; i < nr; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
	EXPECT_EQ(want, count(_metadata, fd));
	EXPECT_EQ(0, bp_modify(fd, attr));
	hit(SECOND_BYTE, 1);
	EXPECT_EQ(want + 1, count(_metadata, fd));
}

TEST_F(attr, family_of_1_is_modified)
{
	struct bp_worker w[1];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 1, false);
}

TEST_F(attr, family_of_5_is_modified)
{
	struct bp_worker w[5];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 5, false);
}

TEST_F(attr, family_of_60_is_modified)
{
	struct bp_worker w[60];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 60, false);
}

#ifdef __LP64__
TEST_F(attr, family_of_5_threads_is_modified)
{
	struct bp_worker w[5];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 5, true);
}
#endif

TEST_F(attr, family_is_modified_while_it_is_disabled)
{
	struct bp_worker w[3];
	int fd;

	self->attr.inherit = 1;
	self->attr.disabled = 1;
	self->attr.bp_addr = 0;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, bp_start(&w[i], worker, NULL));
	watch(&self->attr, FIRST_FUNC);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	all_hit(_metadata, w, 3, FIRST_FUNC, 2);
	EXPECT_EQ(0, count(_metadata, fd));
	EXPECT_EQ(0, bp_enable(fd));
	all_hit(_metadata, w, 3, FIRST_FUNC, 2);
	EXPECT_EQ(8, count(_metadata, fd));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

TEST_F(attr, event_of_a_dead_task_is_modified)
{
	struct bp_worker w;
	int fd[2];

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	fd[0] = bp_open(&self->attr, w.pid, -1);
	self->attr.disabled = 1;
	fd[1] = bp_open(&self->attr, w.pid, -1);
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));

	/* First a zombie, then no task at all */
	EXPECT_EQ(0, kill(w.pid, SIGKILL));
	bp_wait_for_state(w.pid, 'Z');
	for (int gone = 0; gone < 2; gone++) {
		for (int i = 0; i < 2 * SPOTS; i++) {
			watch(&self->attr, i / 2);
			self->attr.disabled = i & 1;
			EXPECT_EQ(0, bp_modify(fd[0], &self->attr));
			EXPECT_EQ(0, bp_modify(fd[1], &self->attr));
			EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
		}
		self->attr.bp_len = 33;
		EXPECT_EQ(-EINVAL, bp_modify(fd[0], &self->attr));
		EXPECT_EQ(5, count(_metadata, fd[0]));
		EXPECT_EQ(0, count(_metadata, fd[1]));
		EXPECT_EQ(0, bp_enable(fd[1]));
		if (!gone)
			EXPECT_EQ(256 + SIGKILL, bp_stop(&w));
	}
}

TEST_F(attr, modify_on_an_offline_cpu_applies_when_the_cpu_is_back)
{
	int cpu, fd[2];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	cpu = self->cpus.cpu[1];
	fd[0] = bp_open(&self->attr, -1, cpu);
	self->attr.disabled = 1;
	fd[1] = bp_open(&self->attr, -1, cpu);
	self->attr.disabled = 0;
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);

	ASSERT_EQ(0, bp_pin(cpu));
	hit(FIRST_BYTE, 3);
	bp_unpin();
	ASSERT_EQ(0, bp_cpu_online(cpu, false));
	watch(&self->attr, FIRST_FUNC);
	EXPECT_EQ(0, bp_modify(fd[0], &self->attr));
	EXPECT_EQ(0, bp_modify(fd[1], &self->attr));
	self->attr.disabled = 1;
	self->attr.bp_len = 33;
	EXPECT_EQ(-EINVAL, bp_modify(fd[0], &self->attr));
	EXPECT_EQ(0, bp_cpu_online(cpu, true));
	ASSERT_EQ(0, bp_pin(cpu));
	hit(FIRST_BYTE, 3);
	hit(FIRST_FUNC, 4);
	EXPECT_EQ(7, count_any(fd[0]));
	EXPECT_EQ(4, count_any(fd[1]));
}

/* ---------------------------------------------------------------- multiplexed events */

/*
 * There are more breakpoints than registers: each is modified, with or without a
 * register.
 */
TEST_F(attr, multiplexed_events_are_modified)
{
	enum { NR = BP_SLOTS + 3 };
	struct perf_event_attr attr[NR];
	__u64 end, before[NR];
	int fd[NR], served;

	BP_NEED_CONFIG(BP_FLEXIBLE);
	for (int i = 0; i < NR; i++) {
		attr[i] = spot_attr(FIRST_BYTE);
		attr[i].config = BP_FLEXIBLE;
		attr[i].bp_addr = (unsigned long)word(20 + i);
		fd[i] = bp_open(&attr[i], 0, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < NR; i++) {
			attr[i].config = 0;
			EXPECT_EQ(-EINVAL, bp_modify(fd[i], &attr[i]));
			attr[i].config = BP_FLEXIBLE;
			attr[i].bp_addr = (unsigned long)word(20 + (i + round) % NR);
			EXPECT_EQ(0, bp_modify(fd[i], &attr[i]));
			before[i] = count_any(fd[i]);
		}
		/* Each gets a register, and none counts accesses to the old address. */
		end = bp_now(CLOCK_MONOTONIC) + 20000000000ULL;
		do {
			served = 0;
			for (int i = 0; i < NR; i++) {
				bp_store_times(word(20 + (i + round) % NR), 1, 20);
				served += count_any(fd[i]) > before[i];
			}
		} while (served < NR && bp_now(CLOCK_MONOTONIC) < end);
		EXPECT_EQ(NR, served);
	}
	for (int i = 0; i < NR; i++) {
		attr[i].bp_addr = (unsigned long)word(30);
		EXPECT_EQ(0, bp_modify(fd[i], &attr[i]));
		before[i] = count_any(fd[i]);
	}
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < NR; i++)
			bp_store(word(20 + i), 1);
	}
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(before[i], count_any(fd[i]));
}

TEST_F(attr, flexible_bit_has_to_be_the_same)
{
	BP_NEED_CONFIG(BP_FLEXIBLE);
	for (int flexible = 0; flexible < 2; flexible++) {
		int fd;

		self->attr.config = flexible;
		fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, fd);
		expect_modifiable(_metadata, fd, &self->attr);
		self->attr.config = !flexible;
		EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
		self->attr.config = 2 | flexible;
		EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
		hit(FIRST_BYTE, 1);
		EXPECT_EQ(7, count_any(fd));
		EXPECT_EQ(0, close(fd));
	}
}

TEST_HARNESS_MAIN
