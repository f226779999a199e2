/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watch events: what their triggers call.
 */
#ifndef _KERNEL_TRACE_WPROBE_H
#define _KERNEL_TRACE_WPROBE_H

#include <linux/types.h>

#define WPROBE_EVENT_SYSTEM	"wprobes"

struct perf_event;
struct trace_array;
struct trace_event_call;
struct trace_wprobe;

/**
 * trace_wprobe_from_call - find the watch event of an event call
 * @call: the call of any event
 *
 * Return: the watch event, or NULL if @call belongs to another kind of event.
 */
struct trace_wprobe *trace_wprobe_from_call(struct trace_event_call *call);

/**
 * trace_wprobe_len - get the number of bytes that a watch event watches
 * @tw: the watch event
 *
 * Context: Any.
 * Return: the number of bytes.
 */
unsigned int trace_wprobe_len(const struct trace_wprobe *tw);

/**
 * trace_wprobe_hold - hold the registers of a watch event
 * @tw: the event
 * @tr: instance whose error log gets the reason of a failure
 *
 * Whatever enables and disables @tw, its breakpoints exist until
 * trace_wprobe_release().
 *
 * Context: event_mutex.
 * Return: 0, or the error of registering the breakpoints.
 */
int trace_wprobe_hold(struct trace_wprobe *tw, struct trace_array *tr);

/**
 * trace_wprobe_release - undo trace_wprobe_hold()
 * @tw: the event
 *
 * Context: event_mutex; no CPU repoints @tw for the holder any more.
 */
void trace_wprobe_release(struct trace_wprobe *tw);

/**
 * trace_wprobe_set - make an event that is held watch another address
 * @tw: the event
 * @addr: the address
 * @this_cpu: repoint @tw on this CPU only
 *
 * Context: Any; not preemptible.
 * Return: 0; -EINVAL if @addr is not a kernel address, is not aligned to the length
 * of @tw, or must not be watched; -EOPNOTSUPP if the architecture cannot repoint
 * breakpoints; -ENODEV if @this_cpu is set and this CPU is going offline.
 */
int trace_wprobe_set(struct trace_wprobe *tw, unsigned long addr, bool this_cpu);

/**
 * trace_wprobe_can_watch - check whether an event could watch an address
 * @tw: the event
 * @addr: the address
 *
 * Context: Any.
 * Return: true if trace_wprobe_set() would not return -EINVAL.
 */
bool trace_wprobe_can_watch(const struct trace_wprobe *tw, unsigned long addr);

/**
 * trace_wprobe_can_clear - check whether trace_wprobe_clear() may change anything
 * @tw: an event that is held
 * @from: as for trace_wprobe_clear()
 * @this_cpu: as for trace_wprobe_clear()
 *
 * Context: Any; not preemptible.
 * Return: false if trace_wprobe_clear() would change nothing.
 */
bool trace_wprobe_can_clear(struct trace_wprobe *tw, const unsigned long *from,
			    bool this_cpu);

/**
 * trace_wprobe_clear - make an event that is held watch nothing
 * @tw: the event
 * @from: NULL, or an address: change nothing unless this CPU watches it
 * @this_cpu: repoint @tw on this CPU only
 *
 * Context: Any; not preemptible.
 * Return: 0; -EAGAIN if this CPU does not watch *@from, or @tw watches nothing
 * already; other errors as trace_wprobe_set().
 */
int trace_wprobe_clear(struct trace_wprobe *tw, const unsigned long *from,
		       bool this_cpu);

/**
 * trace_wprobe_is_settled - check whether all CPUs watch the address that was set last
 * @tw: an event that is held
 *
 * Context: Any.
 * Return: true if no CPU is still about to be repointed.
 */
bool trace_wprobe_is_settled(const struct trace_wprobe *tw);

#endif /* _KERNEL_TRACE_WPROBE_H */
