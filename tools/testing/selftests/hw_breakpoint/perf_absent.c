// SPDX-License-Identifier: GPL-2.0
/*
 * What the uapi headers name and this kernel does not have: asking for it is
 * refused, with the errno of a kernel that has never heard of it, whatever the
 * event's type.
 */
#include "bp_test.h"

static char mem[8] __aligned(8);

FIXTURE(absent)
{
	struct perf_event_attr attr;
};

FIXTURE_VARIANT(absent)
{
	unsigned int type;
};

FIXTURE_VARIANT_ADD(absent, breakpoint) { .type = PERF_TYPE_BREAKPOINT };
FIXTURE_VARIANT_ADD(absent, software) { .type = PERF_TYPE_SOFTWARE };

FIXTURE_SETUP(absent)
{
	self->attr = bp_attr_w(mem, 4);
	if (variant->type == PERF_TYPE_SOFTWARE) {
		self->attr.type = PERF_TYPE_SOFTWARE;
		self->attr.config = PERF_COUNT_SW_DUMMY;
		self->attr.bp_type = 0;
		self->attr.bp_addr = 0;
		self->attr.bp_len = 0;
	}
	self->attr.sample_period = 1;
}

FIXTURE_TEARDOWN(absent)
{
	bp_teardown(_metadata);
}

TEST_F(absent, the_plain_event_is_there)
{
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
}

TEST_F(absent, remove_on_exec)
{
	self->attr.remove_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(absent, sigtrap)
{
	self->attr.sigtrap = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.remove_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(absent, inherit_thread)
{
	self->attr.inherit_thread = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.inherit = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(absent, text_poke)
{
	self->attr.text_poke = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(absent, modify_attributes)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct perf_event_attr attr = self->attr;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-ENOTTY, bp_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (long)&attr));
	if (variant->type == PERF_TYPE_BREAKPOINT) {
		bp_store(mem, 1);
		EXPECT_EQ(1, bp_count(fd));
	}
}

TEST_HARNESS_MAIN
