/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watch events: their definitions and hits (trace_wprobe.c), their slots
 * (trace_wprobe_slot.c), and the triggers that repoint them (trace_wprobe_trigger.c).
 */
#ifndef _KERNEL_TRACE_WPROBE_H
#define _KERNEL_TRACE_WPROBE_H

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/types.h>

#include "trace_dynevent.h"
/* Include trace_probe.h before: it has no guard. */

#define WPROBE_EVENT_SYSTEM	"wprobes"
#define WPROBE_MAX_SLOTS	4

/**
 * struct wprobe_hit - data of a hit from which arguments are fetched
 * @addr: the watched address
 * @value: what is there after the access
 * @old: what was there before
 * @known: HW_BREAKPOINT_BEFORE_KNOWN and HW_BREAKPOINT_AFTER_KNOWN
 *
 * Only @addr is valid, unless the event has values.
 */
struct wprobe_hit {
	unsigned long	addr;
	u64		value;
	u64		old;
	u64		known;
};

/**
 * struct wprobe_place - the place that the definition of an event names
 * @symbol: [MODULE:]SYMBOL, NULL for an address
 * @offset: added to @symbol
 * @addr: the address; nowhere() for -1
 * @type: HW_BREAKPOINT_*
 * @len: length in bytes
 * @changed: an access that leaves the value as it was is no hit
 */
struct wprobe_place {
	char		*symbol;
	long		offset;
	unsigned long	addr;
	u32		type;
	unsigned int	len;
	bool		changed;
};

/**
 * struct wprobe_slot - an address of a watch event
 * @tw: the event
 * @events: its breakpoints, NULL while the event has no user
 * @owner: see "Owners" in trace_wprobe_slot.c
 * @addr: address of the watch; of no meaning while @owner is 0 or busy
 * @expires: when the watch ends, in ns of CLOCK_MONOTONIC; 0 for never
 * @expired: counts that it has ended then
 * @start: starts @timer, which not every context can do
 * @timer: ends the watch
 * @used_locally: a CPU was repointed alone, so CPUs may watch different addresses
 */
struct wprobe_slot {
	struct trace_wprobe		*tw;
	struct perf_event * __percpu	*events;
	atomic64_t			owner;
	unsigned long			addr;
	u64				expires;
	atomic_long_t			*expired;
	struct irq_work			start;
	struct hrtimer			timer;
	bool				used_locally;
};

/**
 * struct trace_wprobe - a watch event
 * @devent: in the list of dynamic events
 * @place: what the event watches when it is enabled
 * @name: GROUP/EVENT
 * @slots: what it watches
 * @nr_slots: number of @slots
 * @watches: number of the newest watch
 * @holders: number of triggers that may repoint it
 * @setters: number of these that are set_wprobe: if any, it does not watch @place
 * @nowhere: address at which its breakpoints watch nothing
 * @has_values: the breakpoints look at the value at each hit, see hw_breakpoint_values()
 * @has_dynamic: it has an argument whose length is known only at a hit, such as a string
 * @tp: name, files and arguments; last, because it ends in an array
 */
struct trace_wprobe {
	struct dyn_event	devent;
	struct wprobe_place	place;
	char			*name;
	struct wprobe_slot	slots[WPROBE_MAX_SLOTS];
	unsigned int		nr_slots;
	atomic64_t		watches;
	unsigned int		holders;
	unsigned int		setters;
	unsigned long		nowhere;
	bool			has_values;
	bool			has_dynamic;
	struct trace_probe	tp;
};

/* ---- Definitions: trace_wprobe.c ---- */

/**
 * trace_wprobe_from_call - find the watch event of an event call
 * @call: the call of any event
 *
 * Return: the watch event, or NULL if @call belongs to another kind of event.
 */
struct trace_wprobe *trace_wprobe_from_call(struct trace_event_call *call);

/**
 * trace_wprobe_hold - hold the registers of a watch event
 * @tw: the event
 * @tr: instance whose error log gets the reason of a failure
 * @set: the holder will call trace_wprobe_set(): @tw watches nothing from now on
 *
 * Whatever enables and disables @tw, its breakpoints exist until
 * trace_wprobe_release().
 *
 * Context: event_mutex.
 * Return: 0, or the error of registering the breakpoints.
 */
int trace_wprobe_hold(struct trace_wprobe *tw, struct trace_array *tr, bool set);

/**
 * trace_wprobe_release - undo trace_wprobe_hold()
 * @tw: the event
 * @set: as for trace_wprobe_hold()
 *
 * Context: event_mutex; no CPU repoints @tw for the holder any more.
 */
void trace_wprobe_release(struct trace_wprobe *tw, bool set);

/* ---- Slots: trace_wprobe_slot.c ---- */

static inline bool wprobe_is_aligned(const struct wprobe_place *place, unsigned long addr)
{
	return place->type == HW_BREAKPOINT_X || IS_ALIGNED(addr, place->len);
}

/**
 * trace_wprobe_can_watch - check whether an address can be watched
 * @place: type and length
 * @addr: the address
 *
 * Context: Any.
 * Return: false if @addr is not a kernel address, is not aligned to the length, must not be
 * watched, or is in memory that a module is about to free.
 */
bool trace_wprobe_can_watch(const struct wprobe_place *place, unsigned long addr);

/**
 * trace_wprobe_init_slots - initialize the slots of an event
 * @tw: the event, whose @place, @nr_slots and @nowhere are set
 */
void trace_wprobe_init_slots(struct trace_wprobe *tw);

/**
 * trace_wprobe_arm - register the breakpoints of an event
 * @tw: the event, of which the first slot watches the place
 * @handler: of the hits
 *
 * Context: Task.
 * Return: 0, or the error of registering a breakpoint.
 */
int trace_wprobe_arm(struct trace_wprobe *tw, perf_overflow_handler_t handler);

/**
 * trace_wprobe_disarm - undo trace_wprobe_arm()
 * @tw: the event, which no trigger repoints any more
 *
 * Context: Task.  No handler of the breakpoints runs after the return.
 */
void trace_wprobe_disarm(struct trace_wprobe *tw);

/**
 * trace_wprobe_follow - make an event watch its place again, which has changed
 * @tw: an event with breakpoints
 *
 * A watch stays: it is left from a set_wprobe that was removed.
 *
 * Context: Task.
 */
void trace_wprobe_follow(struct trace_wprobe *tw);

/**
 * trace_wprobe_is_freed - check whether a module frees the memory at an address
 * @addr: the address
 * @mod: the module
 * @state: that its notifiers are told of: not always its own state, which is COMING when
 *	they are told that a load has failed
 *
 * Context: Any.
 * Return: true for all memory of @mod when it is unloaded, for its init memory when it is
 * loaded.
 */
bool trace_wprobe_is_freed(unsigned long addr, const struct module *mod, unsigned long state);

/**
 * trace_wprobe_leave_module - watch no memory that a module is about to free
 * @tw: an event with breakpoints
 * @mod: the module
 * @state: as for trace_wprobe_is_freed()
 *
 * Context: Task.  No CPU watches the memory after the return.
 */
void trace_wprobe_leave_module(struct trace_wprobe *tw, const struct module *mod,
			       unsigned long state);

/**
 * enum wprobe_result - what trace_wprobe_set() has done
 * @WPROBE_SET: the event watches the address, in a slot that was free
 * @WPROBE_EVICTED: the event watches the address instead of another one
 * @WPROBE_SAME: nothing: the event watched the address already
 * @WPROBE_MISSED: nothing: no slot is free; or the address is not a kernel address, is
 *	not aligned to the length, or must not be watched; or this CPU is going offline, and
 *	only it was to be repointed or there is a timeout
 */
enum wprobe_result {
	WPROBE_SET,
	WPROBE_EVICTED,
	WPROBE_SAME,
	WPROBE_MISSED,
};

/**
 * struct wprobe_watch - a watch that ends with the calls that have begun or joined it
 * @slot: its slot, or NULL for none
 * @number: identifies it as long as the slot has it
 */
struct wprobe_watch {
	struct wprobe_slot	*slot;
	s64			number;
};

/**
 * struct wprobe_how - how a trigger sets addresses
 * @this_cpu: repoint the event on this CPU only
 * @evict: if no slot is free, replace the oldest address
 * @timeout: the address is watched for this time, in ns; 0 without limit
 * @expired: counts addresses that were watched for @timeout
 * @watch: NULL, or result of WPROBE_SET, WPROBE_EVICTED and WPROBE_SAME: what the caller
 *	is to leave with trace_wprobe_leave(); no slot if the address was watched already,
 *	not by a call
 */
struct wprobe_how {
	bool			this_cpu;
	bool			evict;
	u64			timeout;
	atomic_long_t		*expired;
	struct wprobe_watch	*watch;
};

/**
 * trace_wprobe_set - make an event that is held watch an address
 * @tw: the event
 * @addr: the address
 * @how: how to do that; wprobe_how::expired exists until trace_wprobe_forget()
 *
 * Context: Any; not preemptible.
 * Return: what was done.
 */
enum wprobe_result trace_wprobe_set(struct trace_wprobe *tw, unsigned long addr,
				    struct wprobe_how *how);

/**
 * trace_wprobe_forget - count no more addresses that expire
 * @tw: an event that is held
 * @how: argument of former calls of trace_wprobe_set()
 *
 * Context: Task.
 */
void trace_wprobe_forget(struct trace_wprobe *tw, const struct wprobe_how *how);

/**
 * trace_wprobe_clear - make an event that is held watch nothing
 * @tw: the event
 * @from: NULL, or an address: clear only what watches it
 * @this_cpu: repoint @tw on this CPU only
 *
 * Context: Any; not preemptible.
 * Return: the number of slots that watch nothing now.
 */
unsigned int trace_wprobe_clear(struct trace_wprobe *tw, const unsigned long *from,
				bool this_cpu);

/**
 * trace_wprobe_leave - end the part of a call in a watch
 * @tw: an event that is held
 * @watch: result of trace_wprobe_set()
 *
 * Context: Any; not preemptible.
 * Return: true if that was the last call, so that the watch has ended.
 */
bool trace_wprobe_leave(struct trace_wprobe *tw, const struct wprobe_watch *watch);

/**
 * trace_wprobe_leave_all - end all watches that calls have begun
 * @tw: an event that is held
 *
 * Context: Task.
 */
void trace_wprobe_leave_all(struct trace_wprobe *tw);

/**
 * trace_wprobe_used - get the number of slots that watch an address on all CPUs
 * @tw: the event
 *
 * Context: Any.
 * Return: the number of slots.
 */
unsigned int trace_wprobe_used(const struct trace_wprobe *tw);

/**
 * trace_wprobe_is_settled - check whether all CPUs watch the address that was set last
 * @tw: an event that is held
 *
 * Context: Any.
 * Return: true if no CPU is still about to be repointed.
 */
bool trace_wprobe_is_settled(const struct trace_wprobe *tw);

#endif /* _KERNEL_TRACE_WPROBE_H */
