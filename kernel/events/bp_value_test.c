// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of chains of values. The oracle is the list of all values that the object
 * ever had.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "bp_value.h"

#define STEPS		200
#define NR_BYTES	3

/* Values that differ in few bytes: many steps change nothing, or one byte of many. */
static void next_object(struct rnd_state *rnd, u8 *object, unsigned int len)
{
	unsigned int i = prandom_u32_state(rnd) % len;

	object[i] = prandom_u32_state(rnd) % NR_BYTES;
}

static void expect_value(struct kunit *test, const u8 *bytes, const u8 *object,
			 unsigned int len, bool known)
{
	static const u8 zeros[HW_BREAKPOINT_VALUE_MAX];

	KUNIT_EXPECT_MEMEQ(test, bytes, known ? object : zeros, len);
}

static void run_chain(struct kunit *test, struct rnd_state *rnd, unsigned int len, bool changes)
{
	struct bp_value *value = bp_value_alloc(0, len);
	u8 was[HW_BREAKPOINT_VALUE_MAX] = { }, *object;
	u64 now[BP_VALUE_WORDS] = { };
	bool was_known = false, known, hit;
	struct bp_value_record record;
	unsigned int i, flags;

	KUNIT_ASSERT_NOT_NULL(test, value);
	object = (u8 *)now;
	for (i = 0; i < STEPS; i++) {
		next_object(rnd, object, len);
		known = prandom_u32_state(rnd) % 8;
		memset(&record, 0xff, sizeof(record));
		hit = bp_value_step(value, known ? now : NULL, changes, &record);

		KUNIT_ASSERT_EQ(test, !hit,
				changes && was_known && known && !memcmp(was, object, len));
		if (hit) {
			flags = (was_known ? HW_BREAKPOINT_BEFORE_KNOWN : 0) |
				(known ? HW_BREAKPOINT_AFTER_KNOWN : 0);
			KUNIT_EXPECT_EQ(test, record.flags, flags);
			KUNIT_EXPECT_EQ(test, record.len, len);
			expect_value(test, record.bytes + record.offset, was, len, was_known);
			expect_value(test, record.bytes + record.offset + len, object, len, known);
		}
		was_known = known;
		memcpy(was, object, len);
	}
	bp_value_put(value);
}

/* Each before is the last after, for each length, with and without silent steps. */
static void each_value_is_told_once(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int len;

	prandom_seed_state(&rnd, 1);
	for (len = 1; len <= HW_BREAKPOINT_VALUE_MAX; len++) {
		run_chain(test, &rnd, len, false);
		run_chain(test, &rnd, len, true);
	}
}

static void a_new_chain_knows_nothing(struct kunit *test)
{
	struct bp_value *value = bp_value_alloc(0, 8);
	u64 now[BP_VALUE_WORDS] = { };
	struct bp_value_record record;

	KUNIT_ASSERT_NOT_NULL(test, value);
	/* A step from an unknown value is a change, also to 0. */
	KUNIT_EXPECT_TRUE(test, bp_value_step(value, now, true, &record));
	KUNIT_EXPECT_EQ(test, record.flags, HW_BREAKPOINT_AFTER_KNOWN);
	KUNIT_EXPECT_FALSE(test, bp_value_step(value, now, true, &record));
	KUNIT_EXPECT_TRUE(test, bp_value_step(value, NULL, true, &record));
	KUNIT_EXPECT_EQ(test, record.flags, HW_BREAKPOINT_BEFORE_KNOWN);
	KUNIT_EXPECT_TRUE(test, bp_value_step(value, NULL, true, &record));
	KUNIT_EXPECT_EQ(test, record.flags, 0);
	bp_value_put(value);
}

/* ---- Kernel-wide sets ---- */

static u32 watched[2];
static struct bp_value_record told[8];
static unsigned int nr_told;

static void tell(struct perf_event *bp, struct perf_sample_data *data, struct pt_regs *regs)
{
	const struct hw_breakpoint_values *values = hw_breakpoint_values(data);

	if (values && nr_told < ARRAY_SIZE(told))
		memcpy(&told[nr_told++], values, sizeof(*values) + 2 * values->len);
}

static u32 last_stored;

static void store(void *word)
{
	last_stored++;
	WRITE_ONCE(*(u32 *)word, last_stored);
	/* A silent store */
	WRITE_ONCE(*(u32 *)word, last_stored);
}

static void expect_told(struct kunit *test, unsigned int i, unsigned int flags, u32 before,
			u32 after)
{
	const u32 *values = (const u32 *)told[i].bytes;

	KUNIT_EXPECT_EQ(test, told[i].flags, flags);
	KUNIT_EXPECT_EQ(test, told[i].len, sizeof(u32));
	KUNIT_EXPECT_EQ(test, values[0], before);
	KUNIT_EXPECT_EQ(test, values[1], after);
}

#define BOTH	(HW_BREAKPOINT_BEFORE_KNOWN | HW_BREAKPOINT_AFTER_KNOWN)

/* One chain for all CPUs; after a change of the address the value is not known. */
static void a_kernel_wide_set_has_one_chain(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct perf_event_attr attr;
	unsigned int cpu, nr, i;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&watched[0];
	attr.bp_len = sizeof(watched[0]);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.config = HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED;
	attr.sample_type = PERF_SAMPLE_RAW;
	nr_told = 0;
	last_stored = 100;
	WRITE_ONCE(watched[0], last_stored);
	set = register_wide_hw_breakpoint(&attr, tell, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));

	for_each_online_cpu(cpu) {
		if (nr_told < ARRAY_SIZE(told) - 1)
			smp_call_function_single(cpu, store, &watched[0], 1);
	}
	nr = nr_told;
	KUNIT_EXPECT_EQ(test, nr, min_t(unsigned int, num_online_cpus(), ARRAY_SIZE(told) - 1));
	KUNIT_EXPECT_EQ(test, 0, modify_wide_hw_breakpoint(set, (unsigned long)&watched[1], NULL));
	store(&watched[1]);
	unregister_wide_hw_breakpoint(set);

	KUNIT_ASSERT_EQ(test, nr_told, nr + 1);
	for (i = 0; i < nr; i++)
		expect_told(test, i, BOTH, 100 + i, 101 + i);
	expect_told(test, nr, HW_BREAKPOINT_AFTER_KNOWN, 0, 101 + nr);
}

static struct kunit_case test_cases[] = {
	KUNIT_CASE(each_value_is_told_once),
	KUNIT_CASE(a_new_chain_knows_nothing),
	KUNIT_CASE(a_kernel_wide_set_has_one_chain),
	{},
};

static struct kunit_suite test_suite = {
	.name		= "bp_value",
	.test_cases	= test_cases,
};
kunit_test_suites(&test_suite);

MODULE_DESCRIPTION("KUnit tests of values of watched objects");
MODULE_LICENSE("GPL");
