/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watch events: between the events and their triggers.
 */
#ifndef _KERNEL_TRACE_WPROBE_H
#define _KERNEL_TRACE_WPROBE_H

#include <linux/types.h>

#define WPROBE_EVENT_SYSTEM	"wprobes"

struct perf_event;
struct trace_event_call;
struct trace_wprobe;

/**
 * trace_wprobe_from_call - find the watch event of an event call
 * @call: the call of any event
 *
 * Return: the watch event, NULL if @call is that of another kind of event.
 */
struct trace_wprobe *trace_wprobe_from_call(struct trace_event_call *call);

/**
 * trace_wprobe_len - tell how many bytes a watch event watches
 * @tw: the watch event
 */
unsigned int trace_wprobe_len(const struct trace_wprobe *tw);

/**
 * trace_wprobe_set - make an enabled event watch another address
 * @tw: the event
 * @addr: the address
 * @this_cpu: on this CPU only
 *
 * Context: Any; not preemptible.
 * Return: 0; -EINVAL for an address that is no kernel address, not aligned to the
 * length of @tw, or must not be watched; -EOPNOTSUPP where breakpoints cannot be
 * repointed; -ENODEV if this CPU alone was asked for and is going offline.
 */
int trace_wprobe_set(struct trace_wprobe *tw, unsigned long addr, bool this_cpu);

/**
 * trace_wprobe_can_watch - tell whether an event could watch an address
 * @tw: the event
 * @addr: the address
 *
 * Context: Any.
 */
bool trace_wprobe_can_watch(const struct trace_wprobe *tw, unsigned long addr);

/**
 * trace_wprobe_can_clear - tell whether trace_wprobe_clear() has something to clear
 * @tw: an enabled event
 * @from: as for trace_wprobe_clear()
 * @this_cpu: likewise
 *
 * Context: Any; not preemptible.
 */
bool trace_wprobe_can_clear(struct trace_wprobe *tw, const unsigned long *from,
			    bool this_cpu);

/**
 * trace_wprobe_clear - make an enabled event watch nothing
 * @tw: the event
 * @from: NULL, or the address that it has to watch now
 * @this_cpu: on this CPU only
 *
 * Context: Any; not preemptible.
 * Return: 0; -EAGAIN if @tw watches something else, or nothing already; else as
 * trace_wprobe_set().
 */
int trace_wprobe_clear(struct trace_wprobe *tw, const unsigned long *from,
		       bool this_cpu);

/**
 * trace_wprobe_is_settled - tell whether all CPUs watch what was set last
 * @tw: an event that is enabled
 *
 * Context: Any.
 */
bool trace_wprobe_is_settled(const struct trace_wprobe *tw);

#endif /* _KERNEL_TRACE_WPROBE_H */
