/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of the samples of an event on the test page */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "bp_test.h"

/* The fixture @name: one event and its ring. Its setup is SETUP_SAMPLES(). */
#define SAMPLES_FIXTURE(name)							\
	FIXTURE(name)								\
	{									\
		char *mem;							\
		struct perf_event_attr attr;					\
		struct bp_cpus cpus;						\
		struct bp_ring ring;						\
		union bp_record rec;						\
		int fd;								\
	};									\
	FIXTURE_TEARDOWN(name)							\
	{									\
		if (self->ring.page)						\
			bp_ring_unmap(&self->ring);				\
		bp_teardown(_metadata);						\
	}									\
	static inline void open_ring_on(struct __test_metadata *_metadata,	\
					FIXTURE_DATA(name) *self, pid_t pid,	\
					int cpu, int pages)			\
	{									\
		self->fd = bp_open(&self->attr, pid, cpu);			\
		ASSERT_GE(self->fd, 0);						\
		ASSERT_EQ(0, bp_ring_map(&self->ring, self->fd, pages,		\
					 PROT_READ | PROT_WRITE));		\
	}

/* @init are the attributes of the event, each hit of which is a sample. */
#define SETUP_SAMPLES(init)							\
	do {									\
		self->mem = bp_map_page(PROT_READ | PROT_WRITE);		\
		ASSERT_NE(NULL, self->mem);					\
		self->cpus = bp_online_cpus();					\
		self->attr = (init);						\
		self->attr.sample_period = 1;					\
	} while (0)

#endif /* SAMPLES_H */
