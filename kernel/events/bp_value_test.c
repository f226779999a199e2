// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of chains of values. The oracle is the list of all values that the object
 * ever had.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/hw_breakpoint.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

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
	/* The handler has changed nr_told. */
	barrier();
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

static struct perf_event * __percpu *watch_all(struct kunit *test, u32 *word)
{
	struct perf_event * __percpu *set;
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)word;
	attr.bp_len = sizeof(*word);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.config = HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED;
	attr.sample_type = PERF_SAMPLE_RAW;
	nr_told = 0;
	last_stored = 100;
	WRITE_ONCE(*word, last_stored);
	set = register_wide_hw_breakpoint(&attr, tell, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));
	return set;
}

/* One chain for all CPUs; a change of the address is a look at the other object. */
static void a_kernel_wide_set_has_one_chain(struct kunit *test)
{
	struct perf_event * __percpu *set;
	unsigned int cpu, nr, i;

	set = watch_all(test, &watched[0]);
	WRITE_ONCE(watched[1], 7);
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
	expect_told(test, nr, BOTH, 7, 101 + nr);
}

/* They look for each other when they are opened, and again when they are modified. */
static void events_of_a_process_for_one_cpu_each_have_one_chain(struct kunit *test)
{
	unsigned int cpus[] = { cpumask_first(cpu_online_mask), cpumask_last(cpu_online_mask) }, i;
	struct perf_event *bp[ARRAY_SIZE(cpus)];
	struct perf_event_attr attr;

	if (cpus[0] == cpus[1])
		kunit_skip(test, "needs two CPUs");
	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&watched[0];
	attr.bp_len = sizeof(watched[0]);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.config = HW_BREAKPOINT_VALUE | HW_BREAKPOINT_PROCESS;
	attr.sample_type = PERF_SAMPLE_RAW;
	nr_told = 0;
	WRITE_ONCE(watched[1], 7);
	for (i = 0; i < ARRAY_SIZE(cpus); i++) {
		bp[i] = perf_event_create_kernel_counter(&attr, cpus[i], current, tell, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(bp[i]));
	}
	attr.bp_addr = (unsigned long)&watched[1];
	for (i = 0; i < ARRAY_SIZE(cpus); i++)
		KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp[i], &attr), 0);
	for (i = 0; i < ARRAY_SIZE(cpus); i++) {
		set_cpus_allowed_ptr(current, cpumask_of(cpus[i]));
		WRITE_ONCE(watched[1], 8 + i);
	}
	/* What is written while both are off is not told. */
	for (attr.disabled = 1; ; attr.disabled = 0) {
		for (i = 0; i < ARRAY_SIZE(cpus); i++)
			KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp[i], &attr), 0);
		if (!attr.disabled)
			break;
		WRITE_ONCE(watched[1], 20);
	}
	WRITE_ONCE(watched[1], 21);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	for (i = 0; i < ARRAY_SIZE(cpus); i++)
		unregister_hw_breakpoint(bp[i]);

	KUNIT_ASSERT_EQ(test, nr_told, 3);
	expect_told(test, 0, BOTH, 7, 8);
	expect_told(test, 1, BOTH, 8, 9);
	expect_told(test, 2, BOTH, 20, 21);
}

/* A reserved page in the vmalloc area, like one of ioremap(); without the flag it is RAM. */
static void memory_of_a_device_is_not_read(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);
	struct perf_event * __percpu *set;
	u32 *word;

	KUNIT_ASSERT_NOT_NULL(test, page);
	word = vmap(&page, 1, VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, word);
	set = watch_all(test, word);
	store(word);
	KUNIT_ASSERT_EQ(test, nr_told, 1);
	expect_told(test, 0, BOTH, 100, 101);

	/* The area has become one of a device. */
	SetPageReserved(page);
	store(word);
	KUNIT_ASSERT_EQ(test, nr_told, 3);
	expect_told(test, 1, HW_BREAKPOINT_BEFORE_KNOWN, 101, 0);
	expect_told(test, 2, 0, 0, 0);
	unregister_wide_hw_breakpoint(set);

	set = watch_all(test, word);
	store(word);
	KUNIT_ASSERT_EQ(test, nr_told, 2);
	expect_told(test, 0, 0, 0, 0);
	unregister_wide_hw_breakpoint(set);
	vunmap(word);
	ClearPageReserved(page);
	__free_page(page);
}

/*
 * The last reference to a page may not be released under a lock, which an access with
 * interrupts off may have been made under. The kernel does not look at the memory of kernel
 * threads, so the value before the first access is not known.
 */
static void access_with_interrupts_off_is_unknown(struct kunit *test)
{
	struct perf_event_attr attr;
	struct perf_event *bp;
	u32 __user *word;
	int err;

	word = (u32 __user *)kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE_MSG(test, (unsigned long)word, 0, "no user memory");
	KUNIT_ASSERT_EQ(test, put_user(100, word), 0);
	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)word;
	attr.bp_len = sizeof(*word);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.config = HW_BREAKPOINT_VALUE;
	attr.sample_type = PERF_SAMPLE_RAW;
	nr_told = 0;
	bp = register_user_hw_breakpoint(&attr, tell, NULL, current);
	KUNIT_ASSERT_FALSE(test, IS_ERR(bp));

	KUNIT_EXPECT_EQ(test, put_user(101, word), 0);
	pagefault_disable();
	local_irq_disable();
	err = put_user(102, word);
	local_irq_enable();
	pagefault_enable();
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, put_user(103, word), 0);
	unregister_hw_breakpoint(bp);

	KUNIT_ASSERT_EQ(test, nr_told, 3);
	expect_told(test, 0, HW_BREAKPOINT_AFTER_KNOWN, 0, 101);
	expect_told(test, 1, HW_BREAKPOINT_BEFORE_KNOWN, 101, 0);
	expect_told(test, 2, HW_BREAKPOINT_AFTER_KNOWN, 0, 103);
}

static int test_init(struct kunit *test)
{
	if (!arch_hw_breakpoint_after_access())
		kunit_skip(test, "this architecture reports hits before the access");
	return 0;
}

static struct kunit_case test_cases[] = {
	KUNIT_CASE(each_value_is_told_once),
	KUNIT_CASE(a_new_chain_knows_nothing),
	KUNIT_CASE(a_kernel_wide_set_has_one_chain),
	KUNIT_CASE(events_of_a_process_for_one_cpu_each_have_one_chain),
	KUNIT_CASE(memory_of_a_device_is_not_read),
	KUNIT_CASE(access_with_interrupts_off_is_unknown),
	{},
};

static struct kunit_suite test_suite = {
	.name		= "bp_value",
	.init		= test_init,
	.test_cases	= test_cases,
};
kunit_test_suites(&test_suite);

MODULE_DESCRIPTION("KUnit tests of values of watched objects");
MODULE_LICENSE("GPL");
