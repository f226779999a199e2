// SPDX-License-Identifier: GPL-2.0
/*
 * Reading an event of a task that runs on another CPU, and reading the page of an event.
 *
 * The rule: both times that read() returns belong to one moment.  An event that is
 * scheduled whenever its task runs has equal times, at each read.  The page of an event
 * that user space has mapped is updated each time when the event is scheduled in.
 */
#include "bp_test.h"

/* Number of reads, and their limit in time: on a slow kernel fewer reads show the fault. */
#define READS		200000
#define SECONDS		5

FIXTURE(read)
{
	pthread_t task[2];
	pid_t tid;
	bool stop;
	int cpu;
};

/* Two of these threads on one CPU cause context switches all the time. */
static void *switch_often(void *data)
{
	FIXTURE_DATA(read) *self = data;

	bp_pin(self->cpu);
	__atomic_store_n(&self->tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

FIXTURE_SETUP(read)
{
	struct bp_cpus cpus = bp_online_cpus();

	if (cpus.nr < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	self->cpu = cpus.cpu[1];
	ASSERT_EQ(0, pthread_create(&self->task[0], NULL, switch_often, self));
	ASSERT_EQ(0, pthread_create(&self->task[1], NULL, switch_often, self));
	while (!__atomic_load_n(&self->tid, __ATOMIC_ACQUIRE))
		sched_yield();
}

FIXTURE_TEARDOWN(read)
{
	__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
	pthread_join(self->task[0], NULL);
	pthread_join(self->task[1], NULL);
	bp_teardown(_metadata);
}

static void expect_equal_times(struct __test_metadata *_metadata, FIXTURE_DATA(read) *self,
			       struct perf_event_attr attr)
{
	int fd, differ = 0;
	__u64 until;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = bp_open(&attr, self->tid, -1);
	ASSERT_LE(0, fd);
	until = bp_now(CLOCK_THREAD_CPUTIME_ID) + SECONDS * 1000000000ULL;
	for (int i = 0; i < READS && bp_now(CLOCK_THREAD_CPUTIME_ID) < until; i++) {
		struct bp_reading r;

		ASSERT_EQ(sizeof(r), read(fd, &r, sizeof(r)));
		differ += r.enabled != r.running;
	}
	EXPECT_EQ(0, differ);
	EXPECT_EQ(0, close(fd));
}

TEST_F(read, times_of_a_breakpoint_belong_together)
{
	expect_equal_times(_metadata, self, bp_attr_w(&self->cpu, sizeof(self->cpu)));
}

TEST_F(read, times_of_a_software_event_belong_together)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	};

	expect_equal_times(_metadata, self, attr);
}

/* ------------------------------------------------------------------------ the page */

#define HITS		10

FIXTURE(page)
{
	struct bp_ring ring;
};

FIXTURE_VARIANT(page)
{
	__u64 period;
};

FIXTURE_VARIANT_ADD(page, of_an_event_that_counts) { };
FIXTURE_VARIANT_ADD(page, of_an_event_that_samples) { .period = 1 };

FIXTURE_SETUP(page)
{
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(page)
{
	if (self->ring.page)
		bp_ring_unmap(&self->ring);
	bp_teardown(_metadata);
}

/*
 * Sleeps until this thread has left its CPU: on a slow machine the time of a sleep may
 * be over before.
 */
static bool leave_cpu(void)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);
	long before = bp_nr_sleeps();

	do
		usleep(1000);
	while (bp_nr_sleeps() == before && bp_has_patience(start));
	return bp_nr_sleeps() != before;
}

TEST_F(page, is_updated_when_the_event_is_scheduled_in)
{
	struct perf_event_attr attr = bp_attr_w(BP_PAGE, 1);
	struct perf_event_mmap_page *page;
	__u64 enabled;
	__u32 lock;
	int fd;

	attr.sample_period = variant->period;
	fd = bp_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(&self->ring, fd, 1, PROT_READ));
	page = self->ring.page;
	bp_store_times(BP_PAGE, 1, HITS);
	for (int i = 0; i < 20; i++) {
		lock = page->lock;
		enabled = page->time_enabled;
		ASSERT_TRUE(leave_cpu());
		ASSERT_LT(lock, page->lock);
		EXPECT_EQ(0, page->lock % 2);
		EXPECT_LT(enabled, page->time_enabled);
		EXPECT_EQ(HITS, page->offset);
	}
}

TEST_HARNESS_MAIN
