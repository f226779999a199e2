// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the queue of hits, against a list that keeps everything.
 */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "sigtrap.h"

#define MOST_HITS	2000

struct world {
	struct sigtrap_hits hits;
	struct sigtrap_hit all[MOST_HITS];
	unsigned int put, taken;
};

static struct sigtrap_hit some_hit(u32 n)
{
	return (struct sigtrap_hit) {
		.addr	= 0x1000 + n,
		.data	= ~(u64)n,
		.type	= n * 3,
		.flags	= n & 1,
	};
}

static bool same(const struct sigtrap_hit *a, const struct sigtrap_hit *b)
{
	return a->addr == b->addr && a->data == b->data &&
	       a->type == b->type && a->flags == b->flags;
}

static struct world *new_world(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	return w;
}

static void put(struct kunit *test, struct world *w)
{
	struct sigtrap_hit hit = some_hit(w->put);
	bool room = w->put - w->taken < SIGTRAP_HITS;

	KUNIT_EXPECT_EQ(test, room, sigtrap_hits_put(&w->hits, &hit));
	if (room)
		w->all[w->put++] = hit;
}

static void take(struct kunit *test, struct world *w, bool look)
{
	struct sigtrap_hit hit = { };
	bool some = w->put != w->taken;

	KUNIT_EXPECT_EQ(test, some, sigtrap_hits_due(&w->hits));
	KUNIT_EXPECT_EQ(test, some, sigtrap_hits_take(&w->hits, look ? &hit : NULL));
	if (!some)
		return;
	if (look)
		KUNIT_EXPECT_TRUE(test, same(&w->all[w->taken], &hit));
	w->taken++;
}

static void a_new_queue_is_empty(struct kunit *test)
{
	struct world *w = new_world(test);

	take(test, w, true);
	take(test, w, false);
}

static void a_full_queue_refuses_and_keeps_what_it_has(struct kunit *test)
{
	struct world *w = new_world(test);
	int i;

	for (i = 0; i < SIGTRAP_HITS + 5; i++)
		put(test, w);
	KUNIT_EXPECT_EQ(test, SIGTRAP_HITS, w->put);
	for (i = 0; i < SIGTRAP_HITS + 1; i++)
		take(test, w, true);
	KUNIT_EXPECT_EQ(test, SIGTRAP_HITS, w->taken);
}

static void hits_come_out_as_they_went_in(struct kunit *test)
{
	struct world *w = new_world(test);
	struct rnd_state rnd;
	u32 bits;

	prandom_seed_state(&rnd, 5);
	while (w->put < MOST_HITS) {
		bits = prandom_u32_state(&rnd);
		/* Now and then it gets full, now and then empty. */
		if ((bits & 7) < ((w->put >> 7) & 1 ? 5 : 3))
			put(test, w);
		else
			take(test, w, bits & 8);
	}
	while (w->taken != w->put)
		take(test, w, true);
	take(test, w, true);
}

static void numbers_may_run_over(struct kunit *test)
{
	struct world *w = new_world(test);
	struct sigtrap_hit in, out;
	u32 n;

	/* As after so many hits */
	w->hits.put = -40;
	w->hits.taken = w->hits.put;
	for (n = 0; n < SIGTRAP_HITS; n++)
		w->hits.place[(w->hits.put + n) % SIGTRAP_HITS].serial =
			w->hits.put + n + 1 - SIGTRAP_HITS;

	for (n = 0; n < 100; n++) {
		in = some_hit(n);
		KUNIT_EXPECT_FALSE(test, sigtrap_hits_take(&w->hits, &out));
		KUNIT_EXPECT_TRUE(test, sigtrap_hits_put(&w->hits, &in));
		KUNIT_EXPECT_TRUE(test, sigtrap_hits_take(&w->hits, &out));
		KUNIT_EXPECT_TRUE(test, same(&in, &out));
	}
}

/* An NMI comes when the hit that it interrupts has its place, but is not there. */
static void a_hit_waits_for_the_one_that_it_interrupted(struct kunit *test)
{
	struct world *w = new_world(test);
	struct sigtrap_hit outer = some_hit(7), inner = some_hit(8), out;

	w->hits.put++;
	KUNIT_EXPECT_TRUE(test, sigtrap_hits_put(&w->hits, &inner));
	KUNIT_EXPECT_TRUE(test, sigtrap_hits_due(&w->hits));
	KUNIT_EXPECT_FALSE(test, sigtrap_hits_take(&w->hits, &out));
	w->hits.place[0].hit = outer;
	w->hits.place[0].serial = 1;
	KUNIT_EXPECT_TRUE(test, sigtrap_hits_take(&w->hits, &out));
	KUNIT_EXPECT_TRUE(test, same(&outer, &out));
	KUNIT_EXPECT_TRUE(test, sigtrap_hits_take(&w->hits, &out));
	KUNIT_EXPECT_TRUE(test, same(&inner, &out));
}

/* ---- Interrupts put in hits while others are put in and taken out ---- */

#define IRQ_ADDR	0x80000000

struct irq_world {
	struct sigtrap_hits hits;
	struct irq_work work;
	u32 put;
};

static void put_in_interrupt(struct irq_work *work)
{
	struct irq_world *w = container_of(work, struct irq_world, work);
	struct sigtrap_hit hit = some_hit(w->put);

	hit.addr = IRQ_ADDR;
	if (sigtrap_hits_put(&w->hits, &hit))
		w->put++;
}

static void interrupts_lose_and_double_nothing(struct kunit *test)
{
	struct irq_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 put = 0, taken = 0, taken_irq = 0, i;
	struct sigtrap_hit hit, out;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->work = IRQ_WORK_INIT_HARD(put_in_interrupt);

	for (i = 0; i < 20000; i++) {
		preempt_disable();
		irq_work_queue(&w->work);
		hit = some_hit(put);
		if (sigtrap_hits_put(&w->hits, &hit))
			put++;
		preempt_enable();
		while ((i & 7) == 7 && sigtrap_hits_take(&w->hits, &out)) {
			struct sigtrap_hit want = some_hit(out.addr == IRQ_ADDR ?
							   taken_irq++ : taken++);

			if (out.addr == IRQ_ADDR)
				want.addr = IRQ_ADDR;
			KUNIT_ASSERT_TRUE(test, same(&want, &out));
		}
	}
	irq_work_sync(&w->work);
	while (sigtrap_hits_take(&w->hits, &out))
		out.addr == IRQ_ADDR ? taken_irq++ : taken++;
	KUNIT_EXPECT_EQ(test, put, taken);
	KUNIT_EXPECT_EQ(test, w->put, taken_irq);
	KUNIT_EXPECT_GT(test, taken_irq, 0);
}

/* ---- A breakpoint on the queue puts in a hit, wherever the queue is touched ---- */

#ifdef CONFIG_HAVE_HW_BREAKPOINT
struct middle {
	struct sigtrap_hits hits;
	struct task_struct *task;
	int touched;
};

static void put_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
			      struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;
	struct sigtrap_hit inner = some_hit(8);

	/* Others, who search memory, may touch it as well. */
	if (current == m->task && !m->touched++)
		sigtrap_hits_put(&m->hits, &inner);
}

static void a_hit_in_the_middle_of_another_is_not_lost(struct kunit *test)
{
	struct middle *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct sigtrap_hit outer = some_hit(7), inner = some_hit(8), out;
	struct perf_event * __percpu *set;
	unsigned int at, nr_places = 0;
	struct perf_event_attr attr;
	int nr_outer, nr_inner;

	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "the handler would have to step over the access");
	KUNIT_ASSERT_NOT_NULL(test, m);
	for (at = 0; at < offsetof(struct sigtrap_hits, place[1]); at += 4) {
		memset(m, 0, sizeof(*m));
		m->task = current;
		hw_breakpoint_init(&attr);
		attr.bp_addr = (unsigned long)&m->hits + at;
		attr.bp_len = HW_BREAKPOINT_LEN_4;
		attr.bp_type = HW_BREAKPOINT_RW;
		set = register_wide_hw_breakpoint(&attr, put_in_the_middle, m);
		KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
		KUNIT_EXPECT_TRUE(test, sigtrap_hits_put(&m->hits, &outer));
		unregister_wide_hw_breakpoint(set);

		nr_places += m->touched > 0;
		nr_outer = 0;
		nr_inner = 0;
		while (sigtrap_hits_take(&m->hits, &out)) {
			nr_outer += same(&out, &outer);
			nr_inner += same(&out, &inner);
		}
		KUNIT_EXPECT_EQ_MSG(test, nr_outer, 1, "at %u", at);
		KUNIT_EXPECT_EQ_MSG(test, nr_inner, m->touched > 0, "at %u", at);
		KUNIT_EXPECT_FALSE(test, sigtrap_hits_due(&m->hits));
	}
	/* Both counters, and what belongs to the hit */
	KUNIT_EXPECT_GE(test, nr_places, 4U);
}
#endif

static struct kunit_case sigtrap_cases[] = {
	KUNIT_CASE(a_new_queue_is_empty),
	KUNIT_CASE(a_full_queue_refuses_and_keeps_what_it_has),
	KUNIT_CASE(hits_come_out_as_they_went_in),
	KUNIT_CASE(numbers_may_run_over),
	KUNIT_CASE(a_hit_waits_for_the_one_that_it_interrupted),
	KUNIT_CASE(interrupts_lose_and_double_nothing),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE(a_hit_in_the_middle_of_another_is_not_lost),
#endif
	{ }
};

static struct kunit_suite sigtrap_suite = {
	.name		= "perf_sigtrap",
	.test_cases	= sigtrap_cases,
};

kunit_test_suite(sigtrap_suite);

MODULE_DESCRIPTION("KUnit tests of the queue of hits");
MODULE_LICENSE("GPL");
