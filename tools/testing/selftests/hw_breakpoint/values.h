/* SPDX-License-Identifier: GPL-2.0 */
/*
 * attr.config bits 3 and 4: values of the object in each sample, and only real changes.
 *
 * The rule: each record has the object before and after the access. The value before is
 * the value after the hit before it, or what the object was when the event was opened,
 * enabled or modified. So the records of one memory are a chain from the first value to the
 * last, also if several CPUs write, and no change is told twice. A value that is not known is
 * reported as such. With bit 4 an access that leaves the object as it was is no hit.
 */
#ifndef VALUES_H
#define VALUES_H

#include "samples.h"

#define VALUE		HW_BREAKPOINT_VALUE
#define CHANGED		HW_BREAKPOINT_CHANGED
#define BOTH		(HW_BREAKPOINT_BEFORE_KNOWN | HW_BREAKPOINT_AFTER_KNOWN)

void store8(void *p, __u64 v);
void store16(void *p, __u64 v);
void store32(void *p, __u64 v);

/* A bp_work_fn that stores @cmd, 4 bytes */
long store_values(int cmd, void *mem);

/* A record. The object has at most 8 bytes, or is in @words as well. */
struct hit {
	__u64 addr, before, after;
	__u32 tid;
	unsigned int len, flags;
	__u32 words[2][HW_BREAKPOINT_VALUE_MAX / sizeof(__u32)];
};

/* Takes the next sample out of the ring; returns false if there is none. */
bool next_hit(struct bp_ring *ring, union bp_record *rec, struct hit *hit);

/* The number of accesses that CHANGED has filtered; ~0 if the ioctl fails */
__u64 silent(int fd);

/* Attributes of an event on 4 bytes whose samples next_hit() reads */
struct perf_event_attr value_attr(void *mem);

#ifndef BP_NO_TESTS
SAMPLES_FIXTURE(value)

FIXTURE_SETUP(value)
{
	SETUP_SAMPLES(value_attr(self->mem));
}

static inline void open_ring(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self,
			     pid_t pid, int cpu)
{
	open_ring_on(_metadata, self, pid, cpu, 64);
}

static inline void expect_hit(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self,
			      unsigned int flags, __u64 before, __u64 after)
{
	struct hit hit;

	ASSERT_TRUE(next_hit(&self->ring, &self->rec, &hit));
	EXPECT_EQ(self->attr.bp_len, hit.len);
	EXPECT_EQ(flags, hit.flags);
	EXPECT_EQ(before, hit.before);
	EXPECT_EQ(after, hit.after);
}

static inline void expect_no_hit(struct __test_metadata *_metadata, FIXTURE_DATA(value) *self)
{
	struct hit hit;

	EXPECT_FALSE(next_hit(&self->ring, &self->rec, &hit)) {
		TH_LOG("%llx -> %llx, flags %x", hit.before, hit.after, hit.flags);
	}
}
#endif

#endif /* VALUES_H */
