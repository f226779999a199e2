// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES: attributes that may differ.
 *
 * The rule: address, length, type, disabled and sig_data can change and nothing else.
 * Attributes that must not change are compared with those that were passed to
 * perf_event_open(), even if the kernel has adapted them since.
 */
#include "modify.h"

#define BITS_OF(field)							\
	{ offsetof(struct perf_event_attr, field) * 8,			\
	  (offsetof(struct perf_event_attr, field) +			\
	   sizeof(((struct perf_event_attr *)0)->field)) * 8 }

/*
 * Bits that can be changed, that are part of the size to be read, or that have no
 * meaning for a breakpoint; attr.disabled is the first bit after read_format.
 */
static bool bit_is_free(unsigned int bit)
{
	static const unsigned int fields[][2] = {
		BITS_OF(size), BITS_OF(bp_type), BITS_OF(bp_addr), BITS_OF(bp_len),
		BITS_OF(branch_sample_type), BITS_OF(sig_data),
	};

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (bit >= fields[i][0] && bit < fields[i][1])
			return true;
	}
	return bit == (offsetof(struct perf_event_attr, read_format) + 8) * 8;
}

/* A change that is refused has the error that open has for the same attributes. */
static int error_of(const struct perf_event_attr *attr)
{
	if (!BP_AFTER_ACCESS && attr->config & (BP_VALUE | BP_CHANGED))
		return -EOPNOTSUPP;
	return -EINVAL;
}

/* Every other bit is refused, and the event stays enabled, or disabled, as it was. */
static void flip_each_bit(struct __test_metadata *_metadata, struct perf_event_attr *attr,
			  bool on)
{
	struct perf_event_attr bad;
	long long want = 0;
	int fd, err;

	attr->disabled = on;
	fd = bp_open(attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, on ? bp_enable(fd) : bp_disable(fd));

	for (unsigned int bit = 0; bit < 8 * sizeof(bad); bit++) {
		if (bit_is_free(bit))
			continue;
		bad = *attr;
		watch(&bad, SECOND_BYTE);
		bad.disabled = bit & 1;
		((unsigned char *)&bad)[bit / 8] ^= 1 << bit % 8;
		err = bp_modify(fd, &bad);
		hit(FIRST_BYTE, 1);
		hit(SECOND_BYTE, 1);
		want += on;
		EXPECT_EQ(error_of(&bad), err) {
			TH_LOG("bit %u of byte %u", bit % 8, bit / 8);
		}
		ASSERT_EQ(want, count(_metadata, fd)) {
			TH_LOG("bit %u of byte %u", bit % 8, bit / 8);
		}
	}
	EXPECT_EQ(0, close(fd));
}

TEST_F(attr, each_bit_that_cannot_be_changed_is_compared)
{
	flip_each_bit(_metadata, &self->attr, true);
	flip_each_bit(_metadata, &self->attr, false);
}

TEST_F(attr, each_bit_of_an_attr_with_samples_is_compared)
{
	self->attr.sample_period = 100000;
	self->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER;
	self->attr.sample_stack_user = 64;
	self->attr.sample_max_stack = 16;
	self->attr.wakeup_events = 3;
	self->attr.use_clockid = 1;
	self->attr.clockid = CLOCK_MONOTONIC;
	self->attr.comm = 1;
	self->attr.exclude_guest = 1;
	self->attr.sig_data = 5;
	flip_each_bit(_metadata, &self->attr, true);
	flip_each_bit(_metadata, &self->attr, false);
}

TEST_F(attr, unchanged_attr_is_accepted)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, unchanged_attr_with_a_branch_sample_type_is_accepted)
{
	int fd;

	self->attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, unchanged_attr_is_accepted_after_another_period)
{
	__u64 period = 50;
	int fd;

	self->attr.sample_period = 1000000;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_period = period;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, unchanged_attr_is_accepted_after_another_frequency)
{
	__u64 freq = 50;
	int fd;

	self->attr.freq = 1;
	self->attr.sample_freq = 100;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&freq));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_freq = freq;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, unchanged_attr_is_accepted_after_another_max_stack)
{
	int fd;

	BP_NEED_ROOT();
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_write_file(MAX_STACK, "64"));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_max_stack = 64;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.sample_max_stack = atoi(self->max_stack);
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, unchanged_attr_with_a_max_stack_is_accepted)
{
	int fd;

	self->attr.sample_max_stack = 16;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_max_stack = 17;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.sample_max_stack = 0;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, unchanged_attr_is_accepted_after_enable_on_exec)
{
	struct bp_worker w;
	int fd;

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(0, count(_metadata, fd));
	ASSERT_EQ(0, bp_do(&w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(5, count(_metadata, fd));

	self->attr.enable_on_exec = 0;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.enable_on_exec = 1;
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(5, count(_metadata, fd));
	self->attr.disabled = 0;
	watch(&self->attr, SECOND_BYTE);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(SECOND_BYTE, 5)));
	EXPECT_EQ(10, count(_metadata, fd));
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(attr, family_is_modified_after_another_period)
{
	struct bp_worker w;
	__u64 period = 50;
	int fd;

	self->attr.sample_period = 1000000;
	self->attr.inherit = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	expect_modifiable(_metadata, fd, &self->attr);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(11, count(_metadata, fd));
	EXPECT_EQ(0, bp_stop(&w));
}

/* --------------------------------------------------------- sizes of the attributes */

union sized_attr {
	struct perf_event_attr attr;
	unsigned char bytes[8192];
};

/*
 * Modify accepts and refuses the same sizes as open, and both return the right size in
 * the same cases. A size that open accepts can be used for an event that was opened
 * with another size.
 */
static void try_size(struct __test_metadata *_metadata, int fd,
		     const struct perf_event_attr *attr, unsigned int size, bool dirty_tail)
{
	union sized_attr *a = calloc(2, sizeof(*a));
	int err, opened;

	ASSERT_TRUE(!!a);
	for (int i = 0; i < 2; i++) {
		a[i].attr = *attr;
		a[i].attr.size = size;
		if (dirty_tail)
			a[i].bytes[size - 1] = 1;
	}
	opened = bp_open(&a[0].attr, 0, -1);
	err = bp_modify(fd, &a[1].attr);
	EXPECT_EQ(opened < 0 ? opened : 0, err) {
		TH_LOG("size %u%s", size, dirty_tail ? " with a tail" : "");
	}
	EXPECT_EQ(a[0].attr.size, a[1].attr.size);
	if (opened >= 0)
		expect_modifiable(_metadata, opened, attr);
	if (opened >= 0)
		EXPECT_EQ(0, close(opened));
	free(a);
}

TEST_F(attr, any_size_is_handled_as_by_perf_event_open)
{
	static const unsigned int sizes[] = {
		0, 1, 63, 64, 71, 72, 79, 80, 96, 104, 112, 120, 128, 135, 136, 137,
		144, 200, 1024, 4095, 4096, 4097, 8192, ~0U,
	};
	int fd;

	/* try_size() opens a second event: use a word that it does not watch. */
	self->attr.bp_addr = (unsigned long)word(20);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		try_size(_metadata, fd, &self->attr, sizes[i], false);
		if (sizes[i] >= 200 && sizes[i] <= 8192)
			try_size(_metadata, fd, &self->attr, sizes[i], true);
	}
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, unknown_tail_is_e2big_with_the_supported_size)
{
	union sized_attr a = { .attr = self->attr };
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	watch(&a.attr, SECOND_BYTE);
	a.attr.size = 1024;
	a.bytes[1000] = 1;
	EXPECT_EQ(-E2BIG, bp_modify(fd, &a.attr));
	EXPECT_LE(PERF_ATTR_SIZE_VER1, a.attr.size);
	EXPECT_GT(1000, a.attr.size);
	hit(FIRST_BYTE, 3);
	hit(SECOND_BYTE, 2);
	EXPECT_EQ(3, count(_metadata, fd));
}

TEST_F(attr, unreadable_attr_is_efault)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EFAULT, bp_modify(fd, NULL));
	EXPECT_EQ(-EFAULT, bp_modify(fd, (void *)(BP_PAGE + BP_PAGE_SIZE)));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(3, count(_metadata, fd));
}

TEST_F(attr, attr_of_another_event_type_is_refused)
{
	struct perf_event_attr dummy = bp_attr_sw(PERF_COUNT_SW_DUMMY);
	int bp = bp_open(&self->attr, 0, -1), sw = bp_open(&dummy, 0, -1);

	ASSERT_LE(0, bp);
	ASSERT_LE(0, sw);
	EXPECT_EQ(-EOPNOTSUPP, bp_modify(sw, &dummy));
	EXPECT_EQ(-EINVAL, bp_modify(sw, &self->attr));
	EXPECT_EQ(-EINVAL, bp_modify(bp, &dummy));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(3, count(_metadata, bp));
}

/* -------------------------------------------------------------------- permission */

struct permission {
	int fd;
	struct perf_event_attr attr;
	struct perf_event_attr kernel;
};

static int modify_as_nobody(void *arg)
{
	struct permission *p = arg;

	if (bp_modify(p->fd, &p->kernel) != -EPERM)
		return 1;
	p->kernel.disabled = 1;
	if (bp_modify(p->fd, &p->kernel) != -EPERM)
		return 2;
	p->kernel.bp_type ^= HW_BREAKPOINT_R;
	if (bp_modify(p->fd, &p->kernel) != -EPERM)
		return 3;
	return 0;
}

static int move_as_nobody(void *arg)
{
	struct permission *p = arg;

	return bp_modify(p->fd, &p->attr) ? 1 : 0;
}

TEST_F(attr, kernel_address_needs_privilege)
{
	struct bp_worker w;
	struct permission p;

	BP_NEED_ROOT();
	BP_NEED(BP_TASK_IN_KERNEL, "a task cannot watch kernel addresses");
	self->attr.exclude_kernel = 0;
	self->attr.inherit = 1;
	p.kernel = self->attr;
	p.attr = self->attr;
	p.kernel.bp_addr = KERNEL_ADDR;
	p.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, bp_start(&w, worker, NULL));

	EXPECT_EQ(0, bp_as_nobody(modify_as_nobody, &p));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 4)));
	EXPECT_EQ(7, count(_metadata, p.fd));

	watch(&p.attr, SECOND_BYTE);
	EXPECT_EQ(0, bp_as_nobody(move_as_nobody, &p));
	EXPECT_EQ(0, bp_modify(p.fd, &p.kernel));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(0, bp_modify(p.fd, &p.attr));
	hit(SECOND_BYTE, 3);
	EXPECT_EQ(0, bp_do(&w, HIT(SECOND_BYTE, 4)));
	EXPECT_EQ(14, count(_metadata, p.fd));
	EXPECT_EQ(0, bp_stop(&w));
}

static int change_mode_as_nobody(void *arg)
{
	struct permission *p = arg;

	if (bp_modify(p->fd, &p->kernel) != -EPERM)
		return 1;
	return bp_modify(p->fd, &p->attr) == -EINVAL ? 0 : 2;
}

/* A change that is refused anyway has the error that open has for these attributes. */
TEST_F(attr, kernel_address_needs_privilege_whatever_else_changes)
{
	struct permission p;

	BP_NEED_ROOT();
	BP_NEED(BP_TASK_IN_KERNEL, "a task cannot watch kernel addresses");
	p.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, p.fd);
	p.attr = self->attr;
	p.attr.exclude_kernel = 0;
	p.kernel = p.attr;
	p.kernel.bp_addr = KERNEL_ADDR;

	EXPECT_EQ(0, bp_as_nobody(change_mode_as_nobody, &p));
	EXPECT_EQ(-EINVAL, bp_modify(p.fd, &p.kernel));
	EXPECT_EQ(-EINVAL, bp_modify(p.fd, &p.attr));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(3, count(_metadata, p.fd));
}

TEST_HARNESS_MAIN
