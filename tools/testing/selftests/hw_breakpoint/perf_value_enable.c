// SPDX-License-Identifier: GPL-2.0
/*
 * However an event with HW_BREAKPOINT_CHANGED is enabled, the object is looked at before: with
 * what it was when the event was disabled, the store that brings this value back would be no hit.
 */
#include <sched.h>
#include <sys/prctl.h>

#include "values.h"

/* How a member that is on is enabled: through its leader, of which the event is at mem + 64 */
enum way { BY_LEADER, BY_GROUP, BY_MODIFY, BY_PRCTL, BY_REFRESH, BY_CLOSE };

FIXTURE(enable)
{
	struct bp_cpus cpus;
	struct perf_event_attr attr;
	char *mem;
};

FIXTURE_VARIANT(enable)
{
	__u64 config;
};

FIXTURE_VARIANT_ADD(enable, of_a_thread) { };
FIXTURE_VARIANT_ADD(enable, of_a_process) { .config = BP_PROCESS };

FIXTURE_SETUP(enable)
{
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
	self->attr = bp_attr_w(self->mem, 4);
	self->attr.config = CHANGED | variant->config;
	store32(self->mem, 1);
}

FIXTURE_TEARDOWN(enable)
{
	bp_teardown(_metadata);
}

static void go(struct __test_metadata *_metadata, enum way way, int leader,
	       struct perf_event_attr *attr)
{
	switch (way) {
	case BY_LEADER:
		ASSERT_EQ(0, bp_enable(leader));
		break;
	case BY_GROUP:
		ASSERT_EQ(0, bp_ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
		break;
	case BY_MODIFY:
		attr->disabled = 0;
		ASSERT_EQ(0, bp_modify(leader, attr));
		break;
	case BY_PRCTL:
		ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
		break;
	case BY_REFRESH:
		ASSERT_EQ(0, bp_ioctl(leader, PERF_EVENT_IOC_REFRESH, 1));
		break;
	case BY_CLOSE:
		close(leader);
		break;
	}
}

TEST_F(enable, member_that_waits_for_its_leader)
{
	for (enum way way = BY_LEADER; way <= BY_CLOSE; way++) {
		struct perf_event_attr attr = bp_attr_w(self->mem + 64, 4);
		int leader, fd;

		attr.config = variant->config;
		attr.disabled = 1;
		attr.sample_period = 1;
		store32(self->mem, 1);
		leader = bp_open(&attr, 0, -1);
		ASSERT_GE(leader, 0);
		fd = bp_open_group(&self->attr, 0, -1, leader, 0);
		ASSERT_GE(fd, 0);
		store32(self->mem, 2);
		go(_metadata, way, leader, &attr);
		store32(self->mem, 1);
		EXPECT_EQ(1, bp_count(fd)) {
			TH_LOG("way %d", way);
		}
		close(fd);
		if (way != BY_CLOSE)
			close(leader);
	}
}

/* Both have one chain, and none looks at the object while they are off. */
TEST_F(enable, events_of_two_cpus_that_were_opened_disabled)
{
	int fd[2];

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	self->attr.disabled = 1;
	for (int i = 0; i < 2; i++) {
		fd[i] = bp_open(&self->attr, 0, self->cpus.cpu[i]);
		ASSERT_GE(fd[i], 0);
	}
	store32(self->mem, 2);
	ASSERT_EQ(0, bp_enable(fd[0]));
	ASSERT_EQ(0, bp_enable(fd[1]));
	store32(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd[0]) + bp_count(fd[1]));
}

TEST_F(enable, event_that_is_opened_beside_one_that_is_off)
{
	int fd[2];

	BP_NEED_CPUS(self->cpus, 2);
	self->attr.disabled = 1;
	fd[0] = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(fd[0], 0);
	store32(self->mem, 2);
	self->attr.disabled = 0;
	fd[1] = bp_open(&self->attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd[1], 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	store32(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd[1]));
}

TEST_F(enable, event_that_moves_beside_one_that_is_off)
{
	int fd[2];

	BP_NEED_CPUS(self->cpus, 2);
	self->attr.disabled = 1;
	fd[0] = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(fd[0], 0);
	self->attr.disabled = 0;
	self->attr.bp_addr += 64;
	fd[1] = bp_open(&self->attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd[1], 0);
	store32(self->mem, 2);
	self->attr.bp_addr -= 64;
	ASSERT_EQ(0, bp_modify(fd[1], &self->attr));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	store32(self->mem, 1);
	EXPECT_EQ(1, bp_count(fd[1]));
}

/*
 * Accesses after the last overflow are no hits, also before the work has disabled the event.
 * With this priority it may not run until the test sleeps.
 */
TEST_F(enable, event_at_its_limit)
{
	struct sched_param param = { .sched_priority = 1 };
	struct perf_event_attr attr = self->attr;
	long long count;
	int fd;

	sched_setscheduler(0, SCHED_FIFO, &param);
	attr.sample_period = 1;
	attr.disabled = 1;
	for (int i = 0; i < 30; i++) {
		store32(self->mem, 1);
		fd = bp_open(&attr, 0, -1);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
		store32(self->mem, 2);
		store32(self->mem, 3);
		if (i % 3 == 0) {
			ASSERT_EQ(0, bp_enable(fd));
		} else if (i % 3 == 1) {
			ASSERT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 5));
		} else {
			struct perf_event_attr on = attr;

			on.disabled = 0;
			ASSERT_EQ(0, bp_modify(fd, &on));
		}
		count = bp_count(fd);
		store32(self->mem, 2);
		EXPECT_EQ(count + 1, bp_count(fd));
		close(fd);
	}
}

static volatile bool stop;

static void *count_on_second_cpu(void *mem)
{
	bp_pin(bp_online_cpus().cpu[1]);
	for (unsigned int i = 2; !stop; i++)
		store32(mem, i);
	return NULL;
}

/* Each store is a change. A look when the event is on already would take one of them. */
TEST_F(value, member_loses_no_change_when_its_leader_is_closed)
{
	struct perf_event_attr attr = bp_attr_w(self->mem + 64, 4);
	pthread_t thread;
	int leader, fd;

	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	stop = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, count_on_second_cpu, self->mem));
	attr.config = BP_PROCESS;
	attr.disabled = 1;
	self->attr.config = CHANGED | BP_PROCESS;
	for (int i = 0; i < 60; i++) {
		leader = bp_open(&attr, 0, -1);
		ASSERT_GE(leader, 0);
		fd = bp_open_group(&self->attr, 0, -1, leader, 0);
		ASSERT_GE(fd, 0);
		close(leader);
		usleep(200);
		EXPECT_EQ(0, silent(fd));
		close(fd);
	}
	stop = true;
	pthread_join(thread, NULL);
}

/* ---------------------------------------------------------- inherited events */

#define WITH_A_THREAD	0

static void *wait_forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A bp_work_fn: the CPU to store on is in the upper half of @cmd. */
static long store_in_child(int cmd, void *mem)
{
	pthread_t thread;

	if (cmd == WITH_A_THREAD)
		return pthread_create(&thread, NULL, wait_forever, NULL);
	if (cmd >> 16)
		bp_pin((cmd >> 16) - 1);
	store32(mem, cmd & 0xffff);
	return 0;
}

TEST_F(value, child_with_a_thread_is_looked_at)
{
	struct bp_worker child;
	int fd;

	self->attr.config = CHANGED;
	self->attr.inherit = 1;
	store32(self->mem, 1);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, store_in_child, self->mem));
	ASSERT_EQ(0, bp_do(&child, WITH_A_THREAD));
	ASSERT_EQ(0, bp_disable(fd));
	bp_do(&child, 2);
	ASSERT_EQ(0, bp_enable(fd));
	bp_do(&child, 1);
	EXPECT_EQ(1, bp_count(fd));
}

/* Of a child that has inherited one event for each CPU */
static void open_two(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self, int *fd,
		     struct bp_worker *child)
{
	self->attr.config = CHANGED;
	self->attr.inherit = 1;
	store32(self->mem, 1);
	store32(self->mem + 64, 1);
	for (int i = 0; i < 2; i++) {
		fd[i] = bp_open(&self->attr, 0, self->cpus.cpu[i]);
		ASSERT_GE(fd[i], 0);
	}
	ASSERT_EQ(0, bp_start(child, store_in_child, self->mem));
}

TEST_F(value, child_with_events_of_two_cpus_is_looked_at)
{
	struct bp_worker child;
	int fd[2];

	BP_NEED_CPUS(self->cpus, 2);
	open_two(_metadata, self, fd, &child);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, bp_disable(fd[i]));
	bp_do(&child, 2);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, bp_enable(fd[i]));
	bp_do(&child, (self->cpus.cpu[0] + 1) << 16 | 1);
	EXPECT_EQ(1, bp_count(fd[0]) + bp_count(fd[1]));
}

TEST_F(value, child_has_one_chain_for_all_cpus_after_a_modification)
{
	int first, second, fd[2];
	struct bp_worker child;

	BP_NEED_CPUS(self->cpus, 2);
	first = (self->cpus.cpu[0] + 1) << 16;
	second = (self->cpus.cpu[1] + 1) << 16;
	self->attr.bp_addr += 64;
	open_two(_metadata, self, fd, &child);
	self->attr.bp_addr -= 64;
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, bp_modify(fd[i], &self->attr));
	bp_do(&child, first | 2);
	bp_do(&child, second | 1);
	bp_do(&child, first | 2);
	EXPECT_EQ(3, bp_count(fd[0]) + bp_count(fd[1]));
}

/* The thread that the event was opened for, which starts another one and ends */
struct first {
	struct perf_event_attr attr;
	struct bp_worker second;
	void *mem;
	int fd;
};

static void *open_and_end(void *arg)
{
	struct first *f = arg;

	f->fd = bp_open(&f->attr, 0, -1);
	return (void *)(long)bp_start_thread(&f->second, store_values, f->mem);
}

TEST_F(value, thread_is_looked_at_after_the_end_of_the_first)
{
	struct first f = { .attr = self->attr, .mem = self->mem };
	pthread_t thread;
	void *err;

	f.attr.config = CHANGED;
	f.attr.inherit = 1;
	store32(self->mem, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, open_and_end, &f));
	ASSERT_EQ(0, pthread_join(thread, &err));
	ASSERT_EQ(NULL, err);
	ASSERT_GE(f.fd, 0);
	ASSERT_EQ(0, bp_disable(f.fd));
	bp_do(&f.second, 2);
	ASSERT_EQ(0, bp_enable(f.fd));
	bp_do(&f.second, 1);
	EXPECT_EQ(1, bp_count(f.fd));
	EXPECT_EQ(0, bp_stop(&f.second));
}

TEST_HARNESS_MAIN
