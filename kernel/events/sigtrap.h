/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Storage for hits of events with attr.sigtrap, until their signals are sent.
 *
 * An event with attr.sigtrap has storage for one hit, or for
 * HW_BREAKPOINT_SIGTRAPS hits if HW_BREAKPOINT_SIGTRAP_QUEUE is set. A hit is
 * due from sigtrap_add() until its signal is sent or the hit is dropped; as
 * long as it is due it is on a list of the event's perf context. Hits are
 * stored in any context: an interrupt, an exception or an NMI may store a hit
 * while the code that it interrupted is storing another one.
 *
 * A list holds a limited number of hits of events with HW_BREAKPOINT_SIGTRAP_QUEUE: they
 * can wait for any time, and the list is walked with interrupts off. A hit of another
 * event waits only until the signals of the other hits of its instruction are sent.
 *
 * Locking: sigtrap_alloc() and sigtrap_add() take no lock. Callers of all other
 * functions hold the lock of the list, which is perf_event_context::lock.
 */
#ifndef _KERNEL_EVENTS_SIGTRAP_H
#define _KERNEL_EVENTS_SIGTRAP_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/hw_breakpoint.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* Number of hits that an event with HW_BREAKPOINT_SIGTRAP_QUEUE can store */
#define HW_BREAKPOINT_SIGTRAPS	32

/*
 * Number of hits that wait in a thread, of all its events with HW_BREAKPOINT_SIGTRAP_QUEUE.
 * The same number of hits of events of its process can wait.
 */
#define SIGTRAP_QUEUED_MAX	(4 * HW_BREAKPOINT_SIGTRAPS)

static inline bool hw_breakpoint_queues_sigtrap(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_SIGTRAP_QUEUE;
}

/* perf_sigtrap::busy has one bit per hit. */
static_assert(HW_BREAKPOINT_SIGTRAPS <= BITS_PER_LONG);

/**
 * struct sigtrap_hit - a hit whose signal is due
 * @new: node of sigtrap_list::new, valid unless @listed
 * @link: node of sigtrap_list::due, valid if @listed
 * @listed: the hit has been moved from sigtrap_list::new to sigtrap_list::due
 * @sync: a breakpoint was hit in user mode while SIGTRAP was not blocked
 * @async: the event was hit in user mode while SIGTRAP was blocked
 * @type: attr.type of the event
 * @storage: the storage that contains this hit
 * @task: the task that made the access
 * @addr: address of the access, 0 if none may be reported
 * @data: attr.sig_data at the time of the hit
 */
struct sigtrap_hit {
	union {
		struct llist_node	new;
		struct list_head	link;
	};
	bool				listed;
	bool				sync;
	bool				async;
	u32				type;
	struct perf_sigtrap		*storage;
	struct task_struct		*task;
	u64				addr;
	u64				data;
};

/**
 * struct perf_sigtrap - storage for the hits of one event
 * @busy: bitmap of the elements of @hit that are in use
 * @nr: number of elements of @hit
 * @queue: HW_BREAKPOINT_SIGTRAP_QUEUE is set: hits must not coalesce
 * @lost: number of hits that were lost, of the family of the event
 * @dropped: of the head of a family of events of a process: changes when hits that
 *	are due are to be dropped
 * @modified: of each member of a family: changes when the event is modified
 * @hit: the hits
 */
struct perf_sigtrap {
	unsigned long		busy;
	unsigned int		nr;
	bool			queue;
	atomic64_t		*lost;
	atomic_t		dropped;
	atomic_t		modified;
	struct sigtrap_hit	hit[] __counted_by(nr);
};

static inline bool sigtrap_reserve(struct sigtrap_list *list,
				   const struct perf_sigtrap *sigtrap)
{
	if (!sigtrap->queue)
		return true;
	return atomic_add_unless(&list->queued, 1, SIGTRAP_QUEUED_MAX);
}

static inline void sigtrap_unreserve(struct sigtrap_list *list,
				     const struct perf_sigtrap *sigtrap)
{
	if (sigtrap->queue)
		atomic_dec(&list->queued);
}

/**
 * sigtrap_alloc - allocate an element of an event's storage
 * @list: list of the event's context
 * @sigtrap: storage of the event
 *
 * Context: Any.
 * Return: the hit to fill in and to add to @list, or NULL if all elements are in use or
 * @list can hold no more hits of events with HW_BREAKPOINT_SIGTRAP_QUEUE.
 */
static inline struct sigtrap_hit *sigtrap_alloc(struct sigtrap_list *list,
						struct perf_sigtrap *sigtrap)
{
	unsigned int i;

	if (!sigtrap_reserve(list, sigtrap))
		return NULL;
	do {
		i = find_first_zero_bit(&sigtrap->busy, sigtrap->nr);
		if (i >= sigtrap->nr) {
			sigtrap_unreserve(list, sigtrap);
			return NULL;
		}
		/* Pairs with clear_bit_unlock() in sigtrap_done(). */
	} while (test_and_set_bit_lock(i, &sigtrap->busy));

	return &sigtrap->hit[i];
}

/**
 * sigtrap_add - make a hit due
 * @list: list of the event's context
 * @hit: a filled-in hit that sigtrap_alloc() has returned
 *
 * Context: Any.
 */
static inline void sigtrap_add(struct sigtrap_list *list, struct sigtrap_hit *hit)
{
	llist_add(&hit->new, &list->new);
}

/**
 * sigtrap_collect - move new hits to the end of sigtrap_list::due
 * @list: list of a context
 *
 * Context: Any; the caller holds the lock of @list.
 */
static inline void sigtrap_collect(struct sigtrap_list *list)
{
	struct llist_node *new = llist_reverse_order(llist_del_all(&list->new));
	struct sigtrap_hit *hit, *next;

	llist_for_each_entry_safe(hit, next, new, new) {
		hit->listed = true;
		list_add_tail(&hit->link, &list->due);
	}
}

/**
 * sigtrap_done - remove a hit from its list and free its storage
 * @list: list of a context
 * @hit: a hit on sigtrap_list::due of @list
 *
 * Context: Any; the caller holds the lock of @list.
 */
static inline void sigtrap_done(struct sigtrap_list *list, struct sigtrap_hit *hit)
{
	struct perf_sigtrap *sigtrap = hit->storage;

	list_del(&hit->link);
	hit->listed = false;
	/* Pairs with test_and_set_bit_lock() in sigtrap_alloc(). */
	clear_bit_unlock(hit - sigtrap->hit, &sigtrap->busy);
	sigtrap_unreserve(list, sigtrap);
}

/**
 * sigtrap_take - remove a hit from its list in order to send its signal
 * @list: list of a context
 * @hit: a hit on sigtrap_list::due of @list
 * @task: the task that would get the signal
 *
 * A hit in a context switch, after the check for hits that are due, moves with its
 * context to another task. Its signal cannot be sent any more: if hits of the event must
 * not coalesce, count the hit as lost.
 *
 * Context: Any; the caller holds the lock of @list.
 * Return: true if @task made the hit.
 */
static inline bool sigtrap_take(struct sigtrap_list *list, struct sigtrap_hit *hit,
				const struct task_struct *task)
{
	bool own = hit->task == task;

	if (!own && hit->storage->queue)
		atomic64_inc(hit->storage->lost);
	sigtrap_done(list, hit);
	return own;
}

/**
 * sigtrap_drop - remove all hits of an event from sigtrap_list::due
 * @list: list of the event's context
 * @sigtrap: storage of the event
 *
 * Hits that have not been collected yet stay on sigtrap_list::new.
 *
 * Context: Any; the caller holds the lock of @list.
 */
static inline void sigtrap_drop(struct sigtrap_list *list, struct perf_sigtrap *sigtrap)
{
	unsigned int i;

	for (i = 0; i < sigtrap->nr; i++) {
		if (sigtrap->hit[i].listed)
			sigtrap_done(list, &sigtrap->hit[i]);
	}
}

#endif /* _KERNEL_EVENTS_SIGTRAP_H */
