// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the storage of hits whose signals are due. The oracle is a
 * plain array of all hits that were ever stored.
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

#define EVENTS		3
#define MAX_HITS	2000

static struct perf_sigtrap *new_storage(struct kunit *test, unsigned int nr)
{
	struct perf_sigtrap *sigtrap;
	unsigned int i;

	sigtrap = kunit_kzalloc(test, struct_size(sigtrap, hit, nr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sigtrap);
	sigtrap->nr = nr;
	for (i = 0; i < nr; i++)
		sigtrap->hit[i].storage = sigtrap;
	return sigtrap;
}

static void init_list(struct sigtrap_list *list)
{
	init_llist_head(&list->new);
	INIT_LIST_HEAD(&list->due);
	atomic_set(&list->queued, 0);
}

static bool store(struct sigtrap_list *list, struct perf_sigtrap *sigtrap, u64 addr)
{
	struct sigtrap_hit *hit = sigtrap_alloc(list, sigtrap);

	if (!hit)
		return false;
	hit->addr = addr;
	sigtrap_add(list, hit);
	return true;
}

static struct sigtrap_hit *first(struct sigtrap_list *list)
{
	sigtrap_collect(list);
	return list_first_entry_or_null(&list->due, struct sigtrap_hit, link);
}

static u64 take(struct sigtrap_list *list)
{
	struct sigtrap_hit *hit = first(list);
	u64 addr;

	if (!hit)
		return 0;
	addr = hit->addr;
	sigtrap_done(list, hit);
	return addr;
}

static void storage_holds_the_number_of_hits_of_its_event(struct kunit *test)
{
	static const unsigned int sizes[] = { 1, 2, HW_BREAKPOINT_SIGTRAPS };
	struct sigtrap_list list;
	unsigned int i, n;

	init_list(&list);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct perf_sigtrap *sigtrap = new_storage(test, sizes[i]);

		for (n = 1; n <= sizes[i] + 3; n++)
			KUNIT_EXPECT_EQ(test, n <= sizes[i], store(&list, sigtrap, n));
		for (n = 1; n <= sizes[i]; n++)
			KUNIT_EXPECT_EQ(test, n, take(&list));
		KUNIT_EXPECT_EQ(test, 0, take(&list));
		KUNIT_EXPECT_EQ(test, 0, sigtrap->busy);
	}
}

static void storage_is_in_use_until_the_hit_is_done(struct kunit *test)
{
	struct perf_sigtrap *sigtrap = new_storage(test, 1);
	struct sigtrap_list list;
	struct sigtrap_hit *hit;

	init_list(&list);
	KUNIT_EXPECT_TRUE(test, store(&list, sigtrap, 1));
	hit = first(&list);
	KUNIT_ASSERT_NOT_NULL(test, hit);
	KUNIT_EXPECT_FALSE(test, store(&list, sigtrap, 2));
	KUNIT_EXPECT_EQ(test, 1, hit->addr);
	sigtrap_done(&list, hit);
	KUNIT_EXPECT_TRUE(test, store(&list, sigtrap, 3));
	KUNIT_EXPECT_EQ(test, 3, take(&list));
}

/* A hit is lost if a context switch has moved it to a task that did not make it. */
static void a_hit_of_another_task_is_counted_as_lost(struct kunit *test)
{
	struct perf_sigtrap *sigtrap = new_storage(test, 2);
	atomic64_t lost = ATOMIC64_INIT(0);
	struct sigtrap_list list;
	unsigned int queue;

	init_list(&list);
	sigtrap->lost = &lost;
	for (queue = 0; queue < 2; queue++) {
		sigtrap->queue = queue;
		store(&list, sigtrap, 1);
		store(&list, sigtrap, 2);
		first(&list)->task = current;
		KUNIT_EXPECT_TRUE(test, sigtrap_take(&list, first(&list), current));
		KUNIT_EXPECT_EQ(test, 0, atomic64_read(&lost));
		first(&list)->task = NULL;
		KUNIT_EXPECT_FALSE(test, sigtrap_take(&list, first(&list), current));
		KUNIT_EXPECT_EQ(test, queue, atomic64_read(&lost));
		KUNIT_EXPECT_EQ(test, 0, sigtrap->busy);
	}
}

/* sigtrap_drop() leaves hits alone that sigtrap_collect() has not moved yet. */
static void drop_leaves_other_events_and_hits_that_are_not_collected(struct kunit *test)
{
	struct perf_sigtrap *a = new_storage(test, 4), *b = new_storage(test, 4);
	struct sigtrap_list list;

	init_list(&list);
	store(&list, a, 1);
	store(&list, b, 2);
	store(&list, a, 3);
	sigtrap_collect(&list);
	store(&list, a, 4);
	store(&list, b, 5);
	sigtrap_drop(&list, a);
	KUNIT_EXPECT_EQ(test, 2, take(&list));
	KUNIT_EXPECT_EQ(test, 4, take(&list));
	KUNIT_EXPECT_EQ(test, 5, take(&list));
	KUNIT_EXPECT_EQ(test, 0, take(&list));
	sigtrap_drop(&list, a);
	KUNIT_EXPECT_EQ(test, 0, a->busy | b->busy);
}

static struct perf_sigtrap *new_queue(struct kunit *test)
{
	struct perf_sigtrap *sigtrap = new_storage(test, HW_BREAKPOINT_SIGTRAPS);

	sigtrap->queue = true;
	return sigtrap;
}

/* Returns the number of hits that could be stored. */
static unsigned int fill(struct sigtrap_list *list, struct perf_sigtrap *sigtrap)
{
	unsigned int nr = 0;

	while (store(list, sigtrap, 1))
		nr++;
	return nr;
}

#define QUEUES	(SIGTRAP_QUEUED_MAX / HW_BREAKPOINT_SIGTRAPS)

static void list_holds_a_limited_number_of_hits_that_queue(struct kunit *test)
{
	struct perf_sigtrap *queue[QUEUES + 1], *other = new_storage(test, 2);
	struct sigtrap_list list;
	unsigned int i;

	init_list(&list);
	for (i = 0; i <= QUEUES; i++)
		queue[i] = new_queue(test);
	for (i = 0; i < QUEUES; i++)
		KUNIT_EXPECT_EQ(test, HW_BREAKPOINT_SIGTRAPS, fill(&list, queue[i]));
	KUNIT_EXPECT_EQ(test, 0, fill(&list, queue[QUEUES]));
	KUNIT_EXPECT_EQ(test, 0, queue[QUEUES]->busy);
	KUNIT_EXPECT_EQ(test, 2, fill(&list, other));

	/* Each hit that leaves the list makes room for another one. */
	KUNIT_EXPECT_EQ(test, 1, take(&list));
	KUNIT_EXPECT_EQ(test, 1, fill(&list, queue[QUEUES]));
	KUNIT_EXPECT_EQ(test, 0, fill(&list, queue[0]));
	sigtrap_drop(&list, queue[1]);
	KUNIT_EXPECT_EQ(test, HW_BREAKPOINT_SIGTRAPS - 1, fill(&list, queue[QUEUES]));
	KUNIT_EXPECT_EQ(test, 1, fill(&list, queue[0]));
	KUNIT_EXPECT_EQ(test, 0, fill(&list, queue[1]));

	while (take(&list))
		;
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&list.queued));
	KUNIT_EXPECT_EQ(test, 0, other->busy);
	for (i = 0; i <= QUEUES; i++)
		KUNIT_EXPECT_EQ(test, 0, queue[i]->busy);
}

/* ---- Against an oracle ---- */

struct world {
	struct sigtrap_list list;
	struct perf_sigtrap *event[EVENTS];
	struct {
		unsigned int event;
		bool due;
	} hit[MAX_HITS + 1];
	unsigned int stored;
};

static unsigned int count_due(const struct world *w, unsigned int event)
{
	unsigned int i, n = 0;

	for (i = 1; i <= w->stored; i++)
		n += w->hit[i].due && w->hit[i].event == event;
	return n;
}

static unsigned int oldest(const struct world *w)
{
	unsigned int i;

	for (i = 1; i <= w->stored; i++) {
		if (w->hit[i].due)
			return i;
	}
	return 0;
}

static void random_step(struct kunit *test, struct world *w, u32 bits)
{
	unsigned int event = (bits >> 8) % EVENTS, n, i;
	bool room;

	switch (bits % 16) {
	case 0:
		sigtrap_collect(&w->list);
		sigtrap_drop(&w->list, w->event[event]);
		for (i = 1; i <= w->stored; i++) {
			if (w->hit[i].event == event)
				w->hit[i].due = false;
		}
		break;
	case 1 ... 6:
		n = oldest(w);
		KUNIT_ASSERT_EQ(test, n, take(&w->list));
		w->hit[n].due = false;
		break;
	default:
		room = count_due(w, event) < w->event[event]->nr;
		n = w->stored + 1;
		KUNIT_ASSERT_EQ(test, room, store(&w->list, w->event[event], n));
		if (!room)
			break;
		w->hit[n].event = event;
		w->hit[n].due = true;
		w->stored = n;
	}
}

static void hits_come_out_in_order(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	static const unsigned int nr[EVENTS] = { 1, 5, HW_BREAKPOINT_SIGTRAPS };
	struct rnd_state rnd;
	unsigned int i, n;

	KUNIT_ASSERT_NOT_NULL(test, w);
	init_list(&w->list);
	for (i = 0; i < EVENTS; i++)
		w->event[i] = new_storage(test, nr[i]);

	prandom_seed_state(&rnd, 5);
	while (w->stored < MAX_HITS)
		random_step(test, w, prandom_u32_state(&rnd));
	while ((n = oldest(w))) {
		KUNIT_ASSERT_EQ(test, n, take(&w->list));
		w->hit[n].due = false;
	}
	KUNIT_EXPECT_EQ(test, 0, take(&w->list));
	for (i = 0; i < EVENTS; i++)
		KUNIT_EXPECT_EQ(test, 0, w->event[i]->busy);
}

/* ---- An interrupt stores hits while other hits are stored and taken ---- */

#define IRQ_ADDR	0x80000000

struct irq_world {
	struct sigtrap_list list;
	struct perf_sigtrap *sigtrap;
	struct irq_work work;
	u32 stored;
};

static void store_in_interrupt(struct irq_work *work)
{
	struct irq_world *w = container_of(work, struct irq_world, work);

	if (store(&w->list, w->sigtrap, IRQ_ADDR + w->stored + 1))
		w->stored++;
}

static void check_order(struct kunit *test, u64 addr, u32 *taken, u32 *taken_irq)
{
	if (addr > IRQ_ADDR)
		KUNIT_ASSERT_EQ(test, IRQ_ADDR + ++*taken_irq, addr);
	else
		KUNIT_ASSERT_EQ(test, ++*taken, addr);
}

static void hits_in_interrupts_are_neither_lost_nor_doubled(struct kunit *test)
{
	struct irq_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 stored = 0, taken = 0, taken_irq = 0, i;
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(test, w);
	init_list(&w->list);
	w->sigtrap = new_queue(test);
	w->work = IRQ_WORK_INIT_HARD(store_in_interrupt);

	for (i = 0; i < 20000; i++) {
		preempt_disable();
		irq_work_queue(&w->work);
		if (store(&w->list, w->sigtrap, stored + 1))
			stored++;
		preempt_enable();
		while ((i & 7) == 7 && (addr = take(&w->list)))
			check_order(test, addr, &taken, &taken_irq);
	}
	irq_work_sync(&w->work);
	while ((addr = take(&w->list)))
		check_order(test, addr, &taken, &taken_irq);
	KUNIT_EXPECT_EQ(test, stored, taken);
	KUNIT_EXPECT_EQ(test, w->stored, taken_irq);
	KUNIT_EXPECT_GT(test, taken_irq, 0);
	KUNIT_EXPECT_EQ(test, 0, w->sigtrap->busy);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->list.queued));
}

/* ---- A breakpoint on each word of the storage stores another hit ---- */

#ifdef CONFIG_HAVE_HW_BREAKPOINT
struct middle {
	struct sigtrap_list list;
	struct perf_sigtrap *sigtrap;
	struct task_struct *task;
	int touched;
};

static void store_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
				struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;

	/* Other tasks read the storage too: kmemleak scans memory. */
	if (current == m->task && !m->touched++)
		store(&m->list, m->sigtrap, 8);
}

static void store_with_breakpoint_at(struct kunit *test, struct middle *m, void *at)
{
	struct perf_event * __percpu *set;
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)at;
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_RW;
	set = register_wide_hw_breakpoint(&attr, store_in_the_middle, m);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	KUNIT_EXPECT_TRUE(test, store(&m->list, m->sigtrap, 7));
	unregister_wide_hw_breakpoint(set);
}

static void expect_both(struct kunit *test, struct middle *m)
{
	unsigned int outer = 0, inner = 0;
	u64 addr;

	while ((addr = take(&m->list))) {
		outer += addr == 7;
		inner += addr == 8;
	}
	KUNIT_EXPECT_EQ(test, outer, 1);
	KUNIT_EXPECT_EQ(test, inner, m->touched > 0);
	KUNIT_EXPECT_EQ(test, 0, m->sigtrap->busy);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->list.queued));
}

static void hit_that_interrupts_the_storing_of_another_is_not_lost(struct kunit *test)
{
	struct middle *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned int at, nr_places = 0;

	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "on this architecture handlers must step over accesses");
	KUNIT_ASSERT_NOT_NULL(test, m);
	m->task = current;
	m->sigtrap = new_storage(test, 2);
	m->sigtrap->queue = true;
	init_list(&m->list);
	for (at = 0; at < offsetof(struct perf_sigtrap, hit[2]); at += 4) {
		m->touched = 0;
		store_with_breakpoint_at(test, m, (void *)m->sigtrap + at);
		nr_places += m->touched > 0;
		expect_both(test, m);
	}
	m->touched = 0;
	store_with_breakpoint_at(test, m, &m->list.new);
	nr_places += m->touched > 0;
	expect_both(test, m);
	m->touched = 0;
	store_with_breakpoint_at(test, m, &m->list.queued);
	nr_places += m->touched > 0;
	expect_both(test, m);
	/* At least busy, nr, a hit, the list and its counter are accessed. */
	KUNIT_EXPECT_GE(test, nr_places, 5U);
}
#endif

static struct kunit_case sigtrap_cases[] = {
	KUNIT_CASE(storage_holds_the_number_of_hits_of_its_event),
	KUNIT_CASE(storage_is_in_use_until_the_hit_is_done),
	KUNIT_CASE(a_hit_of_another_task_is_counted_as_lost),
	KUNIT_CASE(drop_leaves_other_events_and_hits_that_are_not_collected),
	KUNIT_CASE(list_holds_a_limited_number_of_hits_that_queue),
	KUNIT_CASE(hits_come_out_in_order),
	KUNIT_CASE(hits_in_interrupts_are_neither_lost_nor_doubled),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE(hit_that_interrupts_the_storing_of_another_is_not_lost),
#endif
	{ }
};

static struct kunit_suite sigtrap_suite = {
	.name		= "perf_sigtrap",
	.test_cases	= sigtrap_cases,
};

kunit_test_suite(sigtrap_suite);

MODULE_DESCRIPTION("KUnit tests of the storage of hits whose signals are due");
MODULE_LICENSE("GPL");
