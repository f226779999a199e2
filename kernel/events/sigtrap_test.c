// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the queues of hits whose signals are due. The oracle is a plain array of
 * all hits that were ever stored.
 */
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "sigtrap.h"

#define EVENTS		3
#define MAX_HITS	2000

/* The reference of the test stays. */
static struct perf_sigtrap *new_event(struct kunit *test, bool queue)
{
	struct perf_sigtrap *sigtrap = kunit_kzalloc(test, sizeof(*sigtrap), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sigtrap);
	refcount_set(&sigtrap->refs, 1);
	sigtrap->family = sigtrap;
	sigtrap->queue = queue;
	return sigtrap;
}

static struct sigtrap_queue *new_queue(struct kunit *test)
{
	struct sigtrap_queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, queue);
	queue->more = kunit_kcalloc(test, SIGTRAP_QUEUED_MAX, sizeof(*queue->more), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, queue->more);
	sigtrap_add_elements(queue, queue->hit, SIGTRAP_HITS);
	sigtrap_add_elements(queue, queue->more, SIGTRAP_QUEUED_MAX);
	return queue;
}

static void expect_empty(struct kunit *test, struct sigtrap_queue *queue)
{
	struct llist_node *node;
	unsigned int nr = 0;

	KUNIT_EXPECT_TRUE(test, sigtrap_is_empty(queue));
	KUNIT_EXPECT_FALSE(test, queue->waits);
	llist_for_each(node, queue->free.first)
		nr++;
	KUNIT_EXPECT_EQ(test, SIGTRAP_HITS + SIGTRAP_QUEUED_MAX, nr);
}

static bool store(struct sigtrap_queue *queue, struct perf_sigtrap *sigtrap, u64 addr)
{
	struct sigtrap_hit *hit = sigtrap_get(queue, sigtrap);

	if (!hit)
		return false;
	hit->addr = addr;
	sigtrap_add(queue, hit);
	return true;
}

static u64 taken;

static bool take_one(const struct sigtrap_hit *hit, bool unused)
{
	if (taken)
		return false;
	taken = hit->addr;
	return true;
}

/* Takes the oldest hit that is not dropped; the others wait from then on. */
static u64 take(struct sigtrap_queue *queue)
{
	taken = 0;
	sigtrap_send(queue, false, take_one);
	return taken;
}

static void queue_holds_the_number_of_hits_of_an_event(struct kunit *test)
{
	struct sigtrap_queue *queue = new_queue(test);
	unsigned int queues, max, n;

	for (queues = 0; queues < 2; queues++) {
		struct perf_sigtrap *event = new_event(test, queues);

		max = queues ? HW_BREAKPOINT_SIGTRAPS : 1;
		for (n = 1; n <= max + 3; n++)
			KUNIT_EXPECT_EQ(test, n <= max, store(queue, event, n));
		for (n = 1; n <= max; n++)
			KUNIT_EXPECT_EQ(test, n, take(queue));
		KUNIT_EXPECT_EQ(test, 0, take(queue));
		KUNIT_EXPECT_EQ(test, 1, refcount_read(&event->refs));
	}
	expect_empty(test, queue);
}

static void event_can_be_hit_again_when_the_hit_is_done(struct kunit *test)
{
	struct perf_sigtrap *event = new_event(test, false);
	struct sigtrap_queue *queue = new_queue(test);

	KUNIT_EXPECT_TRUE(test, store(queue, event, 1));
	KUNIT_EXPECT_FALSE(test, store(queue, event, 2));
	KUNIT_EXPECT_EQ(test, 2, refcount_read(&event->refs));
	KUNIT_EXPECT_EQ(test, 1, take(queue));
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&event->refs));
	KUNIT_EXPECT_TRUE(test, store(queue, event, 3));
	KUNIT_EXPECT_EQ(test, 3, take(queue));
	expect_empty(test, queue);
}

/* Whatever context the event is moved to, a hit stays with the thread that made it. */
static void hits_of_two_threads_are_apart(struct kunit *test)
{
	struct sigtrap_queue *a = new_queue(test), *b = new_queue(test);
	unsigned int queues;

	for (queues = 0; queues < 2; queues++) {
		struct perf_sigtrap *event = new_event(test, queues);

		KUNIT_EXPECT_TRUE(test, store(a, event, 1));
		KUNIT_EXPECT_TRUE(test, store(b, event, 2));
		KUNIT_EXPECT_EQ(test, 1, take(a));
		KUNIT_EXPECT_EQ(test, 0, take(a));
		KUNIT_EXPECT_EQ(test, 2, take(b));
		KUNIT_EXPECT_EQ(test, 0, take(b));
		KUNIT_EXPECT_EQ(test, 1, refcount_read(&event->refs));
	}
	expect_empty(test, a);
	expect_empty(test, b);
}

static void members_of_a_family_share_their_limit(struct kunit *test)
{
	struct sigtrap_queue *queue = new_queue(test);
	unsigned int queues, max, n;

	for (queues = 0; queues < 2; queues++) {
		struct perf_sigtrap *head = new_event(test, queues);
		struct perf_sigtrap *member = new_event(test, queues);

		member->family = head;
		max = queues ? HW_BREAKPOINT_SIGTRAPS : 1;
		for (n = 1; n <= max + 3; n++)
			KUNIT_EXPECT_EQ(test, n <= max,
					store(queue, n % 2 ? member : head, n));
		/* The hits of a member that is dropped alone make room. */
		member->dropped++;
		KUNIT_EXPECT_TRUE(test, store(queue, member, 100));
		for (n = 2; n <= max; n += 2)
			KUNIT_EXPECT_EQ(test, n, take(queue));
		KUNIT_EXPECT_EQ(test, 100, take(queue));
		KUNIT_EXPECT_EQ(test, 0, take(queue));
	}
	expect_empty(test, queue);
}

static void drop_leaves_other_events_and_later_hits(struct kunit *test)
{
	struct perf_sigtrap *a = new_event(test, true), *b = new_event(test, true);
	struct sigtrap_queue *queue = new_queue(test);

	store(queue, a, 1);
	store(queue, b, 2);
	store(queue, a, 3);
	KUNIT_EXPECT_EQ(test, 1, take(queue));
	store(queue, a, 4);
	a->dropped++;
	store(queue, a, 5);
	store(queue, b, 6);
	KUNIT_EXPECT_EQ(test, 2, take(queue));
	KUNIT_EXPECT_EQ(test, 5, take(queue));
	KUNIT_EXPECT_EQ(test, 6, take(queue));
	KUNIT_EXPECT_EQ(test, 0, take(queue));
	KUNIT_EXPECT_EQ(test, 2, refcount_read(&a->refs) + refcount_read(&b->refs));
	expect_empty(test, queue);
}

static void modify_drops_hits_that_wait_unless_they_queue(struct kunit *test)
{
	struct perf_sigtrap *a = new_event(test, false), *b = new_event(test, false);
	struct perf_sigtrap *queued = new_event(test, true);
	struct sigtrap_queue *queue = new_queue(test);

	store(queue, a, 1);
	store(queue, b, 2);
	store(queue, queued, 3);
	KUNIT_EXPECT_EQ(test, 1, take(queue));
	b->modified++;
	queued->modified++;
	KUNIT_EXPECT_EQ(test, 3, take(queue));
	KUNIT_EXPECT_EQ(test, 0, take(queue));

	/* A hit that can be sent at once is sent as if that had been before the modify. */
	store(queue, a, 4);
	store(queue, b, 5);
	a->modified++;
	b->modified++;
	KUNIT_EXPECT_EQ(test, 4, take(queue));
	KUNIT_EXPECT_EQ(test, 0, take(queue));
	expect_empty(test, queue);
}

/* Returns the number of hits that could be stored. */
static unsigned int fill(struct sigtrap_queue *queue, struct perf_sigtrap *sigtrap)
{
	unsigned int nr = 0;

	while (store(queue, sigtrap, 1))
		nr++;
	return nr;
}

#define QUEUES	(SIGTRAP_QUEUED_MAX / HW_BREAKPOINT_SIGTRAPS)

static void queue_holds_a_limited_number_of_hits(struct kunit *test)
{
	struct perf_sigtrap *event[QUEUES + 1], *other;
	struct sigtrap_queue *queue = new_queue(test);
	unsigned int i;

	for (i = 0; i <= QUEUES; i++)
		event[i] = new_event(test, true);
	for (i = 0; i < QUEUES; i++)
		KUNIT_EXPECT_EQ(test, HW_BREAKPOINT_SIGTRAPS, fill(queue, event[i]));
	KUNIT_EXPECT_EQ(test, 0, fill(queue, event[QUEUES]));
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&event[QUEUES]->refs));

	/* There is room for other events, up to another limit. */
	for (i = 0; i < SIGTRAP_HITS; i++) {
		other = new_event(test, false);
		KUNIT_EXPECT_EQ(test, 1, fill(queue, other));
	}
	KUNIT_EXPECT_EQ(test, 0, fill(queue, new_event(test, false)));

	/* Each hit that leaves the queue makes room for another one. */
	KUNIT_EXPECT_EQ(test, 1, take(queue));
	KUNIT_EXPECT_EQ(test, 1, fill(queue, event[QUEUES]));
	KUNIT_EXPECT_EQ(test, 0, fill(queue, event[0]));
	event[1]->dropped++;
	KUNIT_EXPECT_EQ(test, 1, take(queue));
	KUNIT_EXPECT_EQ(test, HW_BREAKPOINT_SIGTRAPS - 1, fill(queue, event[QUEUES]));
	KUNIT_EXPECT_EQ(test, 2, fill(queue, event[0]));
	KUNIT_EXPECT_EQ(test, 0, fill(queue, event[1]));

	while (take(queue))
		;
	for (i = 0; i <= QUEUES; i++)
		KUNIT_EXPECT_EQ(test, 1, refcount_read(&event[i]->refs));
	expect_empty(test, queue);
}

/*
 * A thread that is not watched pays for a pointer: perf adds at most 24 bytes to the
 * fields that it has in each thread of a kernel without the series, and one pointer to
 * those of each process.
 */
static void threads_have_one_pointer(struct kunit *test)
{
	const struct task_struct *task = NULL;
	size_t stock = ALIGN(sizeof(task->perf_recursion), sizeof(long)) +
		       sizeof(task->perf_event_ctxp) + sizeof(task->perf_event_mutex) +
		       sizeof(task->perf_event_list);

	if (IS_ENABLED(CONFIG_RANDSTRUCT))
		kunit_skip(test, "the order of the fields is random");
	KUNIT_EXPECT_EQ(test, sizeof(void *), sizeof(task->perf_sigtrap));
	KUNIT_EXPECT_LE(test, offsetofend(struct task_struct, perf_sigtrap) -
			      offsetof(struct task_struct, perf_recursion), stock + 24);
	KUNIT_EXPECT_EQ(test, sizeof(void *), sizeof(task->signal->perf_process));
}

/* ---- Against an oracle ---- */

struct world {
	struct sigtrap_queue *queue;
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
		w->event[event]->dropped++;
		for (i = 1; i <= w->stored; i++) {
			if (w->hit[i].event == event)
				w->hit[i].due = false;
		}
		break;
	case 1 ... 6:
		n = oldest(w);
		KUNIT_ASSERT_EQ(test, n, take(w->queue));
		w->hit[n].due = false;
		break;
	default:
		room = count_due(w, event) < (event ? HW_BREAKPOINT_SIGTRAPS : 1);
		n = w->stored + 1;
		KUNIT_ASSERT_EQ(test, room, store(w->queue, w->event[event], n));
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
	struct rnd_state rnd;
	unsigned int i, n;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->queue = new_queue(test);
	for (i = 0; i < EVENTS; i++)
		w->event[i] = new_event(test, i);

	prandom_seed_state(&rnd, 5);
	while (w->stored < MAX_HITS)
		random_step(test, w, prandom_u32_state(&rnd));
	while ((n = oldest(w))) {
		KUNIT_ASSERT_EQ(test, n, take(w->queue));
		w->hit[n].due = false;
	}
	KUNIT_EXPECT_EQ(test, 0, take(w->queue));
	for (i = 0; i < EVENTS; i++)
		KUNIT_EXPECT_EQ(test, 1, refcount_read(&w->event[i]->refs));
	expect_empty(test, w->queue);
}

/* ---- An interrupt stores hits while other hits are stored and taken ---- */

#define IRQ_ADDR	0x80000000

struct irq_world {
	struct sigtrap_queue *queue;
	struct perf_sigtrap *sigtrap;
	struct irq_work work;
	u32 stored;
};

static void store_in_interrupt(struct irq_work *work)
{
	struct irq_world *w = container_of(work, struct irq_world, work);

	if (store(w->queue, w->sigtrap, IRQ_ADDR + w->stored + 1))
		w->stored++;
}

static void check_order(struct kunit *test, u64 addr, u32 *in_order, u32 *in_order_irq)
{
	if (addr > IRQ_ADDR)
		KUNIT_ASSERT_EQ(test, IRQ_ADDR + ++*in_order_irq, addr);
	else
		KUNIT_ASSERT_EQ(test, ++*in_order, addr);
}

static void hits_in_interrupts_are_neither_lost_nor_doubled(struct kunit *test)
{
	struct irq_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 stored = 0, own = 0, of_irq = 0, i;
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->queue = new_queue(test);
	w->sigtrap = new_event(test, true);
	w->work = IRQ_WORK_INIT_HARD(store_in_interrupt);

	for (i = 0; i < 20000; i++) {
		preempt_disable();
		irq_work_queue(&w->work);
		if (store(w->queue, w->sigtrap, stored + 1))
			stored++;
		preempt_enable();
		while ((i & 7) == 7 && (addr = take(w->queue)))
			check_order(test, addr, &own, &of_irq);
	}
	irq_work_sync(&w->work);
	while ((addr = take(w->queue)))
		check_order(test, addr, &own, &of_irq);
	KUNIT_EXPECT_EQ(test, stored, own);
	KUNIT_EXPECT_EQ(test, w->stored, of_irq);
	KUNIT_EXPECT_GT(test, of_irq, 0);
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&w->sigtrap->refs));
	expect_empty(test, w->queue);
}

/* ---- A breakpoint on each word of the queue stores another hit ---- */

#ifdef CONFIG_HAVE_HW_BREAKPOINT
struct middle {
	struct sigtrap_queue *queue;
	struct perf_sigtrap *sigtrap;
	struct task_struct *task;
	int touched;
};

static void store_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
				struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;

	/* Other tasks read the queue too: kmemleak scans memory. */
	if (current == m->task && !m->touched++)
		store(m->queue, m->sigtrap, 8);
}

static void expect_both(struct kunit *test, struct middle *m)
{
	unsigned int outer = 0, inner = 0;
	u64 addr;

	while ((addr = take(m->queue))) {
		outer += addr == 7;
		inner += addr == 8;
	}
	KUNIT_EXPECT_EQ(test, outer, 1);
	KUNIT_EXPECT_EQ(test, inner, m->touched > 0);
	KUNIT_EXPECT_EQ(test, 1, refcount_read(&m->sigtrap->refs));
	expect_empty(test, m->queue);
}

/* Returns true if storing a hit accesses @at. */
static bool store_with_breakpoint_at(struct kunit *test, struct middle *m, void *at)
{
	struct perf_event * __percpu *set;
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)at;
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_RW;
	m->touched = 0;
	set = register_wide_hw_breakpoint(&attr, store_in_the_middle, m);
	KUNIT_ASSERT_FALSE(test, IS_ERR_PCPU(set));
	KUNIT_EXPECT_TRUE(test, store(m->queue, m->sigtrap, 7));
	unregister_wide_hw_breakpoint(set);
	expect_both(test, m);

	return m->touched;
}

static void hit_that_interrupts_the_storing_of_another_is_not_lost(struct kunit *test)
{
	struct middle *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned int at, nr_places = 0;
	void *element;

	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "on this architecture handlers must step over accesses");
	KUNIT_ASSERT_NOT_NULL(test, m);
	m->task = current;
	m->sigtrap = new_event(test, true);
	m->queue = new_queue(test);
	for (at = 0; at < offsetof(struct sigtrap_queue, hit); at += 4)
		nr_places += store_with_breakpoint_at(test, m, (void *)m->queue + at);
	for (at = 0; at < sizeof(*m->sigtrap); at += 4)
		nr_places += store_with_breakpoint_at(test, m, (void *)m->sigtrap + at);
	for (at = 0; at < sizeof(struct sigtrap_hit); at += 4) {
		element = llist_entry(m->queue->free.first, struct sigtrap_hit, node);
		nr_places += store_with_breakpoint_at(test, m, element + at);
	}
	/* At least free, new, due, the references and an element are accessed. */
	KUNIT_EXPECT_GE(test, nr_places, 5U);
}
#endif

static struct kunit_case sigtrap_cases[] = {
	KUNIT_CASE(queue_holds_the_number_of_hits_of_an_event),
	KUNIT_CASE(event_can_be_hit_again_when_the_hit_is_done),
	KUNIT_CASE(hits_of_two_threads_are_apart),
	KUNIT_CASE(members_of_a_family_share_their_limit),
	KUNIT_CASE(drop_leaves_other_events_and_later_hits),
	KUNIT_CASE(modify_drops_hits_that_wait_unless_they_queue),
	KUNIT_CASE(queue_holds_a_limited_number_of_hits),
	KUNIT_CASE(threads_have_one_pointer),
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

MODULE_DESCRIPTION("KUnit tests of the queues of hits whose signals are due");
MODULE_LICENSE("GPL");
