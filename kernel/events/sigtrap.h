/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hits that are due as signals: where they are stored and in which order.
 *
 * Each event with attr.sigtrap has storage for one hit, with
 * HW_BREAKPOINT_SIGTRAP_QUEUE for HW_BREAKPOINT_SIGTRAPS of them.  A hit that is
 * due is on the list of its context.  Hits are stored in any context: an
 * interrupt, an exception or an NMI may store one while another is being stored.
 *
 * Locking: the caller of all functions but sigtrap_claim() and sigtrap_add()
 * holds the lock of the list, which is perf_event_context::lock.
 */
#ifndef _KERNEL_EVENTS_SIGTRAP_H
#define _KERNEL_EVENTS_SIGTRAP_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/hw_breakpoint.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/* Each hit has a bit in perf_sigtrap::busy. */
static_assert(HW_BREAKPOINT_SIGTRAPS <= BITS_PER_LONG);

/**
 * struct sigtrap_hit - a hit that is due as a signal
 * @new: on sigtrap_list::new
 * @link: on sigtrap_list::due if @listed
 * @listed: which of the two
 * @sync: made in user mode by a breakpoint, while SIGTRAP was not blocked
 * @async: made in user mode while SIGTRAP was blocked
 * @owner: the storage that this is a part of
 * @task: the task that made it
 * @addr: address of the access, 0 if there is none to report
 * @data: attr.sig_data at the time
 * @type: attr.type of the event
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
	struct perf_sigtrap		*owner;
	struct task_struct		*task;
	u64				addr;
	u64				data;
};

/**
 * struct perf_sigtrap - storage for the hits of an event
 * @busy: elements of @hit that are in use, as bits
 * @nr: number of elements of @hit
 * @queue: each hit is to be signalled, HW_BREAKPOINT_SIGTRAP_QUEUE
 * @hit: the hits
 */
struct perf_sigtrap {
	unsigned long		busy;
	unsigned int		nr;
	bool			queue;
	struct sigtrap_hit	hit[] __counted_by(nr);
};

/**
 * sigtrap_claim - reserve storage for a hit
 * @sigtrap: the storage of the event
 *
 * Context: Any.
 * Return: the hit to be filled in, NULL if all are in use.
 */
static inline struct sigtrap_hit *sigtrap_claim(struct perf_sigtrap *sigtrap)
{
	unsigned int i;

	do {
		i = find_first_zero_bit(&sigtrap->busy, sigtrap->nr);
		if (i >= sigtrap->nr)
			return NULL;
		/* Pairs with clear_bit_unlock() in sigtrap_done(). */
	} while (test_and_set_bit_lock(i, &sigtrap->busy));

	return &sigtrap->hit[i];
}

/**
 * sigtrap_add - make a hit due
 * @list: the list of the context
 * @hit: a hit of sigtrap_claim()
 *
 * Context: Any.
 */
static inline void sigtrap_add(struct sigtrap_list *list, struct sigtrap_hit *hit)
{
	llist_add(&hit->new, &list->new);
}

/**
 * sigtrap_collect - append new hits to those that are due
 * @list: the list of a context
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
 * @hit: a hit on sigtrap_list::due
 */
static inline void sigtrap_done(struct sigtrap_hit *hit)
{
	struct perf_sigtrap *sigtrap = hit->owner;

	list_del(&hit->link);
	hit->listed = false;
	/* Pairs with test_and_set_bit_lock() in sigtrap_claim(). */
	clear_bit_unlock(hit - sigtrap->hit, &sigtrap->busy);
}

/**
 * sigtrap_drop - remove the hits of an event from sigtrap_list::due
 * @sigtrap: the storage of the event
 */
static inline void sigtrap_drop(struct perf_sigtrap *sigtrap)
{
	unsigned int i;

	for (i = 0; i < sigtrap->nr; i++) {
		if (sigtrap->hit[i].listed)
			sigtrap_done(&sigtrap->hit[i]);
	}
}

#endif /* _KERNEL_EVENTS_SIGTRAP_H */
