/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Watch events: what their triggers call.
 */
#ifndef _KERNEL_TRACE_WPROBE_H
#define _KERNEL_TRACE_WPROBE_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/types.h>

#define WPROBE_EVENT_SYSTEM	"wprobes"

struct perf_event;
struct rethook;
struct trace_array;
struct trace_event_call;
struct trace_wprobe;
struct wprobe_slot;

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
 * trace_wprobe_slots - get the number of slots
 * @tw: the event
 * @used: result: how many of them watch an address on all CPUs
 *
 * Context: Any.
 * Return: the number of slots.
 */
unsigned int trace_wprobe_slots(const struct trace_wprobe *tw, unsigned int *used);

/**
 * trace_wprobe_is_settled - check whether all CPUs watch the address that was set last
 * @tw: an event that is held
 *
 * Context: Any.
 * Return: true if no CPU is still about to be repointed.
 */
bool trace_wprobe_is_settled(const struct trace_wprobe *tw);

/* ---- Windows ---- */

/**
 * struct wprobe_windows - watches that end when a function returns
 * @rethook: what is needed for each return; NULL if a trigger has no windows
 * @tw: the watch event
 * @cleared: counts watches that have ended so
 */
struct wprobe_windows {
	struct rethook		*rethook;
	struct trace_wprobe	*tw;
	atomic_long_t		*cleared;
};

#ifdef CONFIG_FPROBE_EVENTS
/**
 * trace_wprobe_init_windows - prepare for windows
 * @windows: has the event and the counter
 * @call: event whose triggers will open the windows
 *
 * Return: 0, -ENOMEM, or -EOPNOTSUPP if @call is not hit at the entry of a function.
 */
int trace_wprobe_init_windows(struct wprobe_windows *windows, struct trace_event_call *call);

/**
 * trace_wprobe_open - watch an address until the function returns that was just entered
 * @windows: the windows
 * @addr: the address
 * @how: as for trace_wprobe_set(); without wprobe_how::watch
 *
 * Context: A trigger of the event of trace_wprobe_init_windows().
 * Return: what was done; WPROBE_MISSED also if too many functions have not returned yet.
 */
enum wprobe_result trace_wprobe_open(struct wprobe_windows *windows, unsigned long addr,
				     const struct wprobe_how *how);

/**
 * trace_wprobe_stop_windows - let no function that returns end a watch any more
 * @windows: the windows; a function that is returning may still use them until the end of an
 *	RCU grace period
 *
 * Context: Task.
 */
void trace_wprobe_stop_windows(struct wprobe_windows *windows);

/**
 * trace_wprobe_free_windows - undo trace_wprobe_init_windows()
 * @windows: the windows, which were not used or are stopped
 *
 * Context: Task.
 */
void trace_wprobe_free_windows(struct wprobe_windows *windows);
#else
static inline int trace_wprobe_init_windows(struct wprobe_windows *windows,
					    struct trace_event_call *call)
{
	return -EOPNOTSUPP;
}

static inline enum wprobe_result
trace_wprobe_open(struct wprobe_windows *windows, unsigned long addr,
		  const struct wprobe_how *how)
{
	return WPROBE_MISSED;
}

static inline void trace_wprobe_stop_windows(struct wprobe_windows *windows) { }
static inline void trace_wprobe_free_windows(struct wprobe_windows *windows) { }
#endif

#endif /* _KERNEL_TRACE_WPROBE_H */
