/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hits of a thread that are due as signals: a queue of bounded length.
 *
 * Hits are put in by the thread that makes them, in whatever context it is: an
 * interrupt, an exception or an NMI may come in the middle of it and put in one
 * more.  They are taken out by one at a time, possibly on another CPU.  Nobody
 * waits and nothing is allocated.
 */
#ifndef _KERNEL_EVENTS_SIGTRAP_H
#define _KERNEL_EVENTS_SIGTRAP_H

#include <linux/atomic.h>
#include <linux/types.h>

/* A power of two. What user space may rely on is in the documentation. */
#define SIGTRAP_HITS		32

/**
 * struct sigtrap_hit - what the signal of a hit will say
 * @addr: address of the access, 0 if there is none to tell
 * @data: attr.sig_data at the time
 * @type: attr.type of the event
 * @flags: TRAP_PERF_FLAG_*
 */
struct sigtrap_hit {
	u64	addr;
	u64	data;
	u32	type;
	u32	flags;
};

/**
 * struct sigtrap_hits - hits in the order in which they were made
 * @put: number of places that were ever given to a hit
 * @taken: number of hits that were ever taken out
 * @place: hit number n is at n modulo SIGTRAP_HITS
 * @place.serial: n + 1 when hit n is complete
 * @place.hit: the hit
 *
 * All zeros is an empty queue.
 */
struct sigtrap_hits {
	u32	put;
	u32	taken;
	struct {
		u32			serial;
		struct sigtrap_hit	hit;
	} place[SIGTRAP_HITS];
};

/**
 * sigtrap_hits_put - add a hit
 * @hits: the queue
 * @hit: the hit
 *
 * Context: Any; the thread that @hits belongs to.
 * Return: false if the queue is full.
 */
static inline bool sigtrap_hits_put(struct sigtrap_hits *hits,
				    const struct sigtrap_hit *hit)
{
	u32 n = READ_ONCE(hits->put), i;

	do {
		/* Pairs with the release in sigtrap_hits_take(). */
		if (n - smp_load_acquire(&hits->taken) >= SIGTRAP_HITS)
			return false;
	} while (!try_cmpxchg(&hits->put, &n, n + 1));

	i = n % SIGTRAP_HITS;
	hits->place[i].hit = *hit;
	/* Pairs with the acquire in sigtrap_hits_take(). */
	smp_store_release(&hits->place[i].serial, n + 1);
	return true;
}

/**
 * sigtrap_hits_take - take the oldest hit out
 * @hits: the queue
 * @hit: is filled in; NULL to throw it away
 *
 * Context: Any; one caller at a time.
 * Return: false if there is none, or if the oldest is not complete yet.
 */
static inline bool sigtrap_hits_take(struct sigtrap_hits *hits,
				     struct sigtrap_hit *hit)
{
	u32 n = hits->taken, i = n % SIGTRAP_HITS;

	/* Pairs with the release in sigtrap_hits_put(). */
	if (smp_load_acquire(&hits->place[i].serial) != n + 1)
		return false;

	if (hit)
		*hit = hits->place[i].hit;
	/* The place is free for hit n + SIGTRAP_HITS. */
	smp_store_release(&hits->taken, n + 1);
	return true;
}

/**
 * sigtrap_hits_due - tell whether there are hits
 * @hits: the queue
 *
 * Context: Any.
 */
static inline bool sigtrap_hits_due(const struct sigtrap_hits *hits)
{
	return READ_ONCE(hits->put) != READ_ONCE(hits->taken);
}

#endif /* _KERNEL_EVENTS_SIGTRAP_H */
