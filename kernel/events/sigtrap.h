/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of a thread: hits of events with attr.sigtrap, until their signals are sent.
 *
 * A thread has a queue if an event with attr.sigtrap was opened for it or for its process,
 * and uses it alone. It stores hits in any context: an NMI may store a hit while the code
 * that it interrupted is storing another one. It sends the signals in process context, and
 * no hit is stored meanwhile. The number of hits is limited, because they are walked with
 * interrupts off.
 *
 * An event drops hits, in whatever queues they are, by a change of a number in its struct
 * perf_sigtrap, which its hits refer to: a hit with another number gives no signal.
 */
#ifndef _KERNEL_EVENTS_SIGTRAP_H
#define _KERNEL_EVENTS_SIGTRAP_H

#include <linux/hw_breakpoint.h>
#include <linux/llist.h>
#include <linux/perf_event.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/types.h>

/* Number of hits of an event with HW_BREAKPOINT_SIGTRAP_QUEUE that a queue can store */
#define HW_BREAKPOINT_SIGTRAPS	32

/* Number of hits of all such events that a queue can store */
#define SIGTRAP_QUEUED_MAX	(4 * HW_BREAKPOINT_SIGTRAPS)

/*
 * Number of hits that a queue can store besides: those of one instruction, for which an
 * architecture has up to 16 registers. Others coalesce with these.
 */
#define SIGTRAP_HITS		16

static inline bool hw_breakpoint_queues_sigtrap(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_SIGTRAP_QUEUE;
}

/**
 * struct perf_sigtrap - what hits refer to of their event
 * @refs: number of hits that are due, and one for the event
 * @family: of the head of the family that the event is a member of; only compared
 * @type: attr.type of the event
 * @queue: HW_BREAKPOINT_SIGTRAP_QUEUE is set: hits must not coalesce
 * @dropped: changes when hits are to be dropped
 * @modified: changes when hits that wait are to be dropped, unless @queue
 */
struct perf_sigtrap {
	refcount_t			refs;
	const struct perf_sigtrap	*family;
	u32				type;
	bool				queue;
	unsigned int			dropped;
	unsigned int			modified;
};

/**
 * struct sigtrap_hit - a hit whose signal is due
 * @node: node of sigtrap_queue::free, ::new or ::due
 * @sigtrap: of the event; with a reference
 * @addr: address of the access, 0 if none may be reported
 * @data: attr.sig_data at the time of the hit
 * @dropped: perf_sigtrap::dropped at that time
 * @modified: perf_sigtrap::modified at that time
 * @sync: a breakpoint was hit in user mode while SIGTRAP was not blocked
 * @async: the event was hit in user mode while SIGTRAP was blocked
 * @waits: the signal could not be sent when the thread returned to user mode
 */
struct sigtrap_hit {
	struct llist_node	node;
	struct perf_sigtrap	*sigtrap;
	u64			addr;
	u64			data;
	unsigned int		dropped;
	unsigned int		modified;
	bool			sync;
	bool			async;
	bool			waits;
};

/**
 * struct sigtrap_queue - hits of a thread
 * @work: sends the signals
 * @added: @work has been added
 * @sending: signals are being sent: no hit is stored
 * @waits: a hit waits for a change of the pending or blocked signals
 * @blocked: SIGTRAP was blocked at the last attempt to send, or at the last such change
 * @free: elements for new hits. Only the thread takes them, and none is returned while it
 *	takes one, which would confuse llist_del_first(); others may add new ones.
 * @new: latest hits, newest first
 * @due: earlier hits, oldest first
 * @more: elements for events with HW_BREAKPOINT_SIGTRAP_QUEUE
 * @hit: elements
 */
struct sigtrap_queue {
	struct callback_head	work;
	unsigned int		added;
	bool			sending;
	bool			waits;
	bool			blocked;
	struct llist_head	free;
	struct llist_head	new;
	struct llist_node	*due;
	struct sigtrap_hit	*more;
	struct sigtrap_hit	hit[SIGTRAP_HITS];
};

static inline void sigtrap_put(struct perf_sigtrap *sigtrap)
{
	if (refcount_dec_and_test(&sigtrap->refs))
		kfree(sigtrap);
}

static inline void sigtrap_add_elements(struct sigtrap_queue *queue, struct sigtrap_hit *hit,
					unsigned int nr)
{
	while (nr--)
		llist_add(&hit[nr].node, &queue->free);
}

static inline bool sigtrap_is_empty(const struct sigtrap_queue *queue)
{
	return llist_empty(&queue->new) && !READ_ONCE(queue->due);
}

/* True if the event has been disabled, closed or modified since, see perf_sigtrap_modify(). */
static inline bool sigtrap_is_dropped(const struct sigtrap_hit *hit)
{
	const struct perf_sigtrap *sigtrap = hit->sigtrap;

	return hit->dropped != READ_ONCE(sigtrap->dropped) ||
	       (hit->waits && !sigtrap->queue &&
		hit->modified != READ_ONCE(sigtrap->modified));
}

/* Returns false if a hit coalesces with another one of its event, or if the queue is full. */
static inline bool sigtrap_has_room(const struct sigtrap_queue *queue,
				    const struct perf_sigtrap *sigtrap)
{
	const struct llist_node *lists[] = { READ_ONCE(queue->new.first), queue->due };
	unsigned int of_family = 0, queued = 0, i;
	const struct sigtrap_hit *hit;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		llist_for_each_entry(hit, lists[i], node) {
			if (sigtrap_is_dropped(hit))
				continue;
			of_family += hit->sigtrap->family == sigtrap->family;
			queued += hit->sigtrap->queue;
		}
	}
	if (!sigtrap->queue)
		return !of_family;

	return of_family < HW_BREAKPOINT_SIGTRAPS && queued < SIGTRAP_QUEUED_MAX;
}

/*
 * Any context: take an element for a hit, to fill in and to pass to sigtrap_add(). Returns
 * NULL if the hit is not to be stored. @sigtrap does not change meanwhile.
 */
static inline struct sigtrap_hit *sigtrap_get(struct sigtrap_queue *queue,
					      struct perf_sigtrap *sigtrap)
{
	struct llist_node *node;
	struct sigtrap_hit *hit;

	if (!sigtrap_has_room(queue, sigtrap))
		return NULL;
	node = llist_del_first(&queue->free);
	if (!node)
		return NULL;

	hit = llist_entry(node, struct sigtrap_hit, node);
	refcount_inc(&sigtrap->refs);
	hit->sigtrap = sigtrap;
	hit->dropped = sigtrap->dropped;
	hit->modified = sigtrap->modified;
	hit->waits = false;

	return hit;
}

/* Makes a hit due that sigtrap_get() has returned. */
static inline void sigtrap_add(struct sigtrap_queue *queue, struct sigtrap_hit *hit)
{
	llist_add(&hit->node, &queue->new);
}

/*
 * Call @send for all hits, oldest first: it returns true if the hit is done, and false if
 * the hit waits. Hits that are dropped are done, too, and without @send all hits are.
 */
static inline void sigtrap_send(struct sigtrap_queue *queue, bool blocked,
				bool (*send)(const struct sigtrap_hit *hit, bool blocked))
{
	struct llist_node **link = &queue->due, *node;
	struct sigtrap_hit *hit;

	while (*link)
		link = &(*link)->next;
	*link = llist_reverse_order(llist_del_all(&queue->new));

	link = &queue->due;
	while ((node = *link)) {
		hit = llist_entry(node, struct sigtrap_hit, node);
		if (send && !sigtrap_is_dropped(hit) && !send(hit, blocked)) {
			hit->waits = true;
			link = &node->next;
			continue;
		}
		*link = node->next;
		sigtrap_put(hit->sigtrap);
		llist_add(node, &queue->free);
	}
	queue->waits = queue->due;
}

#endif /* _KERNEL_EVENTS_SIGTRAP_H */
