// SPDX-License-Identifier: GPL-2.0
/*
 * Watch events: dynamic events for accesses to memory.
 *
 * A watch event has a kernel-wide hardware breakpoint, which is registered when the
 * first user (instance, trigger, perf or BPF) enables the event, and unregistered when
 * the last one disables it.  The breakpoint layer follows CPU hotplug and refuses the
 * registration if no register is available.
 *
 * The breakpoint of an event that watches nothing is registered, too.  It watches an
 * object that no code accesses: so the event has a register, and can be repointed in
 * any context.  An event may have several slots, each with a breakpoint.
 *
 * Owners.  An address that a trigger sets on all CPUs is a watch: it has a unique number,
 * which is the owner of its slot until the watch ends.  To change the address of a slot, the
 * owner is first changed with a cmpxchg to the number plus SLOT_BUSY:
 *
 *	set:	0 -> number | BUSY	set the address		-> number
 *	evict:	old -> number | BUSY	set the address		-> number
 *	end:	number -> number | BUSY	watch nothing		-> 0
 *
 * So each watch ends once, and whoever ends it (a clear, an eviction, the timer) counts it.
 * A slot that is busy is not waited for, because the context that changes it may have been
 * interrupted by this one: it is neither free nor has it an address yet.  That context
 * is not preemptible.  A clear that finds a busy slot is lost, so no context makes a slot
 * busy unless it is to change the address.
 *
 * An address that is set on one CPU has no owner: see modify_wide_hw_breakpoint_local().
 *
 * Windows.  A watch that was begun by the call of a function ends when the function returns.
 * Other calls with the same address join the watch, and the last return ends it: the owner
 * also has the number of these calls, unless it is busy.
 *
 *	begin:	0 -> number | BUSY	set the address		-> number + CALL
 *	join:	number + n * CALL				-> number + (n + 1) * CALL
 *	leave:	number + (n + 1) * CALL				-> number + n * CALL
 *	leave:	number + CALL -> number + CALL | BUSY		-> 0
 *
 * Locking: event_mutex, except for hits and repointing, which take no lock.  A
 * trigger holds a reference to the event and its breakpoints, so that
 * wprobe_slot::events stays valid as long as triggers may run.
 */
#define pr_fmt(fmt) "trace_wprobe: " fmt

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rculist.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "trace_dynevent.h"
#include "trace_probe.h"
#include "trace_probe_tmpl.h"
#include "trace_probe_kernel.h"
#include "trace_wprobe.h"

#define WPROBE_DEFAULT_LEN	4
#define WPROBE_MAX_LEN		8
#define WPROBE_MAX_SLOTS	4

/* wprobe_slot::owner: a flag, the number of calls in the window, and the number of the watch */
#define SLOT_BUSY		1LL
#define SLOT_CALL		BIT_ULL(1)
#define SLOT_CALLS		GENMASK_ULL(16, 1)
#define SLOT_NUMBER		BIT_ULL(17)

/* Watched by events that should watch nothing: no code accesses it. */
static u64 wprobe_nowhere;

/* The same for events of type x: no code calls it. */
static noinline __used void wprobe_no_code(void)
{
	barrier();
}

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
 * @owner: see "Owners" above
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

static int create_wprobe(const char *raw_command);
static int show_wprobe(struct seq_file *m, struct dyn_event *ev);
static int release_wprobe(struct dyn_event *ev);
static bool wprobe_is_busy(struct dyn_event *ev);
static bool wprobe_matches(const char *system, const char *event, int argc,
			   const char **argv, struct dyn_event *ev);

static struct dyn_event_operations trace_wprobe_ops = {
	.create		= create_wprobe,
	.show		= show_wprobe,
	.is_busy	= wprobe_is_busy,
	.free		= release_wprobe,
	.match		= wprobe_matches,
};

static struct trace_wprobe *to_wprobe(struct dyn_event *ev)
{
	return container_of(ev, struct trace_wprobe, devent);
}

static struct trace_wprobe *wprobe_of(struct trace_event_call *call)
{
	struct trace_probe *tp = trace_probe_primary_from_call(call);

	return WARN_ON_ONCE(!tp) ? NULL : container_of(tp, struct trace_wprobe, tp);
}

/* ---- Watched addresses ---- */

static unsigned long nowhere(u32 type)
{
	return type == HW_BREAKPOINT_X ? (unsigned long)wprobe_no_code :
					 (unsigned long)&wprobe_nowhere;
}

static struct perf_event_attr attr_of(const struct wprobe_place *place,
				      unsigned long addr)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = addr;
	attr.bp_len = place->len;
	attr.bp_type = place->type;
	return attr;
}

/* Returns true if the hardware has this type and length of breakpoint. */
static bool type_is_supported(const struct wprobe_place *place)
{
	struct perf_event_attr attr = attr_of(place, nowhere(place->type));

	return !check_hw_breakpoint(&attr);
}

static bool can_watch(const struct wprobe_place *place, unsigned long addr)
{
	struct perf_event_attr attr = attr_of(place, addr);

	return addr >= TASK_SIZE_MAX && !check_hw_breakpoint(&attr);
}

static bool is_aligned(const struct wprobe_place *place, unsigned long addr)
{
	return place->type == HW_BREAKPOINT_X || IS_ALIGNED(addr, place->len);
}

unsigned int trace_wprobe_len(const struct trace_wprobe *tw)
{
	return tw->place.type == HW_BREAKPOINT_X ? 1 : tw->place.len;
}

/* ---- Memory that modules free: any context ---- */

#ifdef CONFIG_MODULES
/*
 * Returns true if @mod frees the memory at @addr because of @state: all its memory when
 * it is unloaded, its init memory when it is loaded.
 */
static bool is_freed(unsigned long addr, const struct module *mod,
		     enum module_state state)
{
	if (state == MODULE_STATE_LIVE)
		return within_module_init(addr, mod);
	return state == MODULE_STATE_GOING && within_module(addr, mod);
}

/*
 * Returns true if @addr is in memory that a module is about to free, for which
 * wprobe_module_callback() may already have run.
 *
 * The module is no longer found when it is to be removed from the list of modules.  It
 * has no code and no tracepoints by then: an address of it is a stale pointer, which is
 * watched like the address of any other object that has been freed.  The same holds for
 * init memory when it has been freed.
 */
static noinline bool is_in_going_module(unsigned long addr)
{
	struct module *mod;

	guard(preempt)();
	mod = __module_address(addr);
	return mod && is_freed(addr, mod, READ_ONCE(mod->state));
}

static bool may_be_in_module(unsigned long addr)
{
	return is_vmalloc_or_module_addr((void *)addr);
}
#else
static bool is_in_going_module(unsigned long addr)
{
	return false;
}

static bool may_be_in_module(unsigned long addr)
{
	return false;
}
#endif

static bool is_going(unsigned long addr)
{
	return may_be_in_module(addr) && is_in_going_module(addr);
}

/* ---- Repointing: any context, not preemptible ---- */

#define for_each_slot(slot, tw) \
	for (slot = (tw)->slots; slot < (tw)->slots + (tw)->nr_slots; slot++)

static unsigned long addr_here(const struct wprobe_slot *slot)
{
	return wide_hw_breakpoint_addr(slot->events, true);
}

/*
 * From now on all CPUs watch the same.  Reset the flag before the change: a local change
 * that comes after this one sets it again.
 */
static int repoint_all(struct wprobe_slot *slot, unsigned long addr, const unsigned long *from)
{
	bool used_locally = READ_ONCE(slot->used_locally);
	int err;

	if (used_locally)
		WRITE_ONCE(slot->used_locally, false);
	err = modify_wide_hw_breakpoint(slot->events, addr, from);
	if (err && used_locally)
		WRITE_ONCE(slot->used_locally, true);
	return err;
}

/* Set the flag after the change, and only if there is one, see repoint_all(). */
static int repoint_here(struct wprobe_slot *slot, unsigned long addr, const unsigned long *from)
{
	int err = modify_wide_hw_breakpoint_local(slot->events, addr, from);

	if (!err)
		WRITE_ONCE(slot->used_locally, true);
	return err;
}

/* ---- Owners of slots: any context, not preemptible; see "Owners" above ---- */

static s64 owner_of(const struct wprobe_slot *slot)
{
	/* Pairs with give(): what it has written is read after the owner. */
	return atomic64_read_acquire(&slot->owner);
}

static bool claim(struct wprobe_slot *slot, s64 owner, s64 next)
{
	return atomic64_try_cmpxchg(&slot->owner, &owner, next | SLOT_BUSY);
}

static void give(struct wprobe_slot *slot, s64 owner)
{
	/* Pairs with owner_of(). */
	atomic64_set_release(&slot->owner, owner);
}

static bool is_same_watch(s64 owner, s64 other)
{
	return !((owner ^ other) & ~SLOT_CALLS);
}

/* Returns true if end_in_time() will run at @expires or earlier. */
static bool timer_comes(struct wprobe_slot *slot, u64 expires)
{
	if (!hrtimer_is_queued(&slot->timer))
		return false;
	/* Another CPU may be starting it for a later time: start_timer() looks again there. */
	return data_race(hrtimer_get_expires_ns(&slot->timer)) <= expires;
}

/*
 * Starting the timer executes code that may have triggers, which set addresses, and so on
 * without end.  So a timer that comes is left alone: end_in_time() starts it again.
 */
static noinline void need_timer(struct wprobe_slot *slot, u64 expires)
{
	/* Pairs with start_timer() and end_in_time(): the owner is stored before. */
	smp_mb();
	if (!timer_comes(slot, expires))
		irq_work_queue(&slot->start);
}

/* Out of line: most addresses take a slot that is free on all CPUs. */
static noinline bool may_be_set(const struct wprobe_place *place, unsigned long addr)
{
	return is_aligned(place, addr) && can_watch(place, addr);
}

/* Returns -EAGAIN if @owner does not own the slot any more. */
static int begin_watch(struct trace_wprobe *tw, struct wprobe_slot *slot, s64 owner,
		       unsigned long addr, struct wprobe_how *how)
{
	s64 number = atomic64_add_return(SLOT_NUMBER, &tw->watches);
	u64 expires = 0;
	int err;

	/* Before the claim: if nothing changes, no clear may find the slot busy. */
	if ((owner || READ_ONCE(slot->used_locally)) && !may_be_set(&tw->place, addr))
		return -EINVAL;
	if (!claim(slot, owner, number))
		return -EAGAIN;
	err = repoint_all(slot, addr, NULL);
	if (!err) {
		if (how->timeout)
			expires = ktime_get_mono_fast_ns() + how->timeout;
		WRITE_ONCE(slot->addr, addr);
		WRITE_ONCE(slot->expires, expires);
		WRITE_ONCE(slot->expired, how->expired);
		if (how->watch) {
			*how->watch = (struct wprobe_watch){ slot, number };
			number += SLOT_CALL;
		}
	}
	give(slot, err ? owner : number);
	if (expires)
		need_timer(slot, expires);
	return err;
}

/* @owner: of a slot that is busy now.  Returns false if the change is refused. */
static bool end_busy_watch(struct trace_wprobe *tw, struct wprobe_slot *slot, s64 owner,
			   bool expired)
{
	int err = repoint_all(slot, tw->nowhere, NULL);
	atomic_long_t *count = READ_ONCE(slot->expired);

	if (!err && expired && count)
		atomic_long_inc(count);
	give(slot, err ? owner : 0);
	return !err;
}

/*
 * Returns false if @owner does not own the slot any more, or if the change is refused.  The
 * number of its calls may have changed.
 */
static bool end_watch(struct trace_wprobe *tw, struct wprobe_slot *slot, s64 owner,
		      bool expired)
{
	s64 now = owner;

	while (!atomic64_try_cmpxchg(&slot->owner, &now, now | SLOT_BUSY)) {
		if (!is_same_watch(now, owner))
			return false;
	}

	return end_busy_watch(tw, slot, now, expired);
}

/* ---- Setting: any context, not preemptible ---- */

/*
 * Returns false if the watch of @owner has ended meanwhile.  A watch that was not begun by a
 * call is not joined: it does not end when a function returns.
 */
static noinline bool join(struct wprobe_slot *slot, s64 owner, struct wprobe_watch *watch)
{
	s64 first = owner;

	do {
		if (!is_same_watch(owner, first))
			return false;
		if (!(owner & SLOT_CALLS))
			return true;
		if ((owner & SLOT_CALLS) == SLOT_CALLS)
			return false;
	} while (!atomic64_try_cmpxchg(&slot->owner, &owner, owner + SLOT_CALL));

	*watch = (struct wprobe_watch){ slot, owner & ~SLOT_CALLS };
	return true;
}

/* @watch: NULL, or joins the watch of the address */
static bool is_watched(struct trace_wprobe *tw, unsigned long addr,
		       struct wprobe_watch *watch)
{
	struct wprobe_slot *slot;
	s64 owner;

	for_each_slot(slot, tw) {
		owner = owner_of(slot);
		if (!owner || owner & SLOT_BUSY || READ_ONCE(slot->addr) != addr)
			continue;
		if (!watch)
			return true;
		if (join(slot, owner, watch)) {
			/* This CPU may be about to follow: it does, before the function runs. */
			modify_wide_hw_breakpoint_local(slot->events, addr, &addr);
			return true;
		}
	}

	return false;
}

/* A slot that watches nothing; or NULL */
static struct wprobe_slot *free_slot(struct trace_wprobe *tw)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		if (owner_of(slot))
			continue;
		if (!READ_ONCE(slot->used_locally) || addr_here(slot) == tw->nowhere)
			return slot;
	}

	return NULL;
}

/* The slot with the oldest watch, or one that this CPU uses alone; or NULL */
static struct wprobe_slot *oldest_slot(struct trace_wprobe *tw, s64 *owner)
{
	struct wprobe_slot *slot, *oldest = NULL;
	s64 other;

	for_each_slot(slot, tw) {
		other = owner_of(slot);
		if (other & SLOT_BUSY || (oldest && other > *owner))
			continue;
		oldest = slot;
		*owner = other;
	}

	return oldest;
}

static enum wprobe_result set_all(struct trace_wprobe *tw, unsigned long addr,
				  struct wprobe_how *how)
{
	struct wprobe_slot *slot;
	s64 owner;
	int err;

	/* The CPU might not run the interrupt any more that starts the timer. */
	if (how->timeout && !cpu_online(smp_processor_id()))
		return WPROBE_MISSED;
	if (is_watched(tw, addr, how->watch))
		return WPROBE_SAME;
	do {
		owner = 0;
		slot = free_slot(tw);
		if (!slot && how->evict)
			slot = oldest_slot(tw, &owner);
		if (!slot)
			return WPROBE_MISSED;
		err = begin_watch(tw, slot, owner, addr, how);
	} while (err == -EAGAIN);

	if (err)
		return WPROBE_MISSED;
	return owner ? WPROBE_EVICTED : WPROBE_SET;
}

static bool is_watched_here(struct trace_wprobe *tw, unsigned long addr)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		if (addr_here(slot) == addr)
			return true;
	}

	return false;
}

static enum wprobe_result evict_here(struct trace_wprobe *tw, unsigned long addr)
{
	unsigned long old;
	int err;

	do {
		old = addr_here(tw->slots);
		err = repoint_here(tw->slots, addr, &old);
	} while (err == -EAGAIN);

	if (err)
		return WPROBE_MISSED;
	return old == tw->nowhere ? WPROBE_SET : WPROBE_EVICTED;
}

static enum wprobe_result set_here(struct trace_wprobe *tw, unsigned long addr, bool evict)
{
	struct wprobe_slot *slot;
	int err;

	if (tw->nr_slots > 1 && is_watched_here(tw, addr))
		return WPROBE_SAME;
	for_each_slot(slot, tw) {
		err = repoint_here(slot, addr, &tw->nowhere);
		if (err != -EAGAIN)
			return err ? WPROBE_MISSED : WPROBE_SET;
	}
	if (is_watched_here(tw, addr))
		return WPROBE_SAME;
	return evict ? evict_here(tw, addr) : WPROBE_MISSED;
}

/*
 * The state of a module is set before follow_or_leave() waits for an RCU grace period: either
 * this function finds the state, or leave_module() finds @addr.
 */
enum wprobe_result trace_wprobe_set(struct trace_wprobe *tw, unsigned long addr,
				    struct wprobe_how *how)
{
	if (addr < TASK_SIZE_MAX || unlikely(is_going(addr)))
		return WPROBE_MISSED;
	return how->this_cpu ? set_here(tw, addr, how->evict) : set_all(tw, addr, how);
}

/* ---- Clearing: any context, not preemptible ---- */

static __always_inline bool clear_here(struct trace_wprobe *tw, struct wprobe_slot *slot,
				       const unsigned long *from)
{
	unsigned long old;
	int err;

	if (from)
		return !repoint_here(slot, tw->nowhere, from);
	do {
		old = addr_here(slot);
		if (old == tw->nowhere)
			return false;
		err = repoint_here(slot, tw->nowhere, &old);
	} while (err == -EAGAIN);

	return !err;
}

/* If single CPUs have been set, this CPU does not know what the others watch. */
static bool is_set(const struct trace_wprobe *tw, const struct wprobe_slot *slot,
		   const unsigned long *from)
{
	unsigned long addr = addr_here(slot);

	return from ? addr == *from : addr != tw->nowhere || READ_ONCE(slot->used_locally);
}

/* Clears the address of a definition, and addresses that were set on single CPUs. */
static bool clear_without_owner(struct trace_wprobe *tw, struct wprobe_slot *slot,
				const unsigned long *from)
{
	int err = -EAGAIN;

	if (!is_set(tw, slot, from) || !claim(slot, 0, 0))
		return false;
	/* What was found may have been a watch that has ended before the claim. */
	if (is_set(tw, slot, from))
		err = repoint_all(slot, tw->nowhere, from);
	give(slot, 0);
	return !err;
}

static bool clear_all(struct trace_wprobe *tw, struct wprobe_slot *slot,
		      const unsigned long *from)
{
	s64 owner = owner_of(slot);

	if (owner & SLOT_BUSY)
		return false;
	if (!owner)
		return clear_without_owner(tw, slot, from);
	if (!from || READ_ONCE(slot->addr) == *from)
		return end_watch(tw, slot, owner, false);
	/* This CPU may watch another address than the others. */
	return READ_ONCE(slot->used_locally) && clear_here(tw, slot, from);
}

unsigned int trace_wprobe_clear(struct trace_wprobe *tw, const unsigned long *from,
				bool this_cpu)
{
	struct wprobe_slot *slot;
	unsigned int nr = 0;

	for_each_slot(slot, tw)
		nr += this_cpu ? clear_here(tw, slot, from) : clear_all(tw, slot, from);
	return nr;
}

bool trace_wprobe_leave(struct trace_wprobe *tw, const struct wprobe_watch *watch)
{
	struct wprobe_slot *slot = watch->slot;
	s64 owner = owner_of(slot);
	bool last;

	do {
		/* It was cleared or evicted, or its time was up. */
		if (!is_same_watch(owner, watch->number))
			return false;
		last = (owner & SLOT_CALLS) == SLOT_CALL;
	} while (!atomic64_try_cmpxchg(&slot->owner, &owner,
				       last ? owner | SLOT_BUSY : owner - SLOT_CALL));

	return last && end_busy_watch(tw, slot, owner, false);
}

bool trace_wprobe_is_settled(const struct trace_wprobe *tw)
{
	const struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		if (!wide_hw_breakpoint_is_settled(slot->events))
			return false;
	}

	return true;
}

unsigned int trace_wprobe_slots(const struct trace_wprobe *tw, unsigned int *used)
{
	const struct wprobe_slot *slot;

	*used = 0;
	for_each_slot(slot, tw)
		*used += !!owner_of(slot);
	return tw->nr_slots;
}

/* ---- Timeouts: on any CPU, interrupts off ---- */

/* How often one interrupt starts the timer */
#define WPROBE_STARTS	4

/*
 * If the slot is busy, the watch that begins calls need_timer().
 *
 * Looks again after the start: meanwhile another CPU, or triggers of the code that starts
 * timers, may have begun a watch that ends earlier.  After the last start end_in_time()
 * looks, a tick later at the latest.
 */
static void start_timer(struct irq_work *work)
{
	struct wprobe_slot *slot = container_of(work, struct wprobe_slot, start);
	int starts = WPROBE_STARTS;
	u64 expires;
	s64 owner;

	while (starts--) {
		/* Pairs with need_timer(): the timer is started before the owner is read. */
		smp_mb();
		owner = owner_of(slot);
		expires = READ_ONCE(slot->expires);
		if (!owner || owner & SLOT_BUSY || !expires || timer_comes(slot, expires))
			return;
		if (!starts)
			expires = min(expires, ktime_get_mono_fast_ns() + TICK_NSEC);
		hrtimer_start(&slot->timer, ns_to_ktime(expires), HRTIMER_MODE_ABS_HARD);
	}
}

static enum hrtimer_restart end_in_time(struct hrtimer *timer)
{
	struct wprobe_slot *slot = container_of(timer, struct wprobe_slot, timer);
	struct trace_wprobe *tw = slot->tw;
	u64 expires;
	s64 owner;

	/* Pairs with need_timer(): the timer is not queued before the owner is read. */
	smp_mb();
	owner = owner_of(slot);
	expires = READ_ONCE(slot->expires);
	if (!owner || owner & SLOT_BUSY || !expires)
		return HRTIMER_NORESTART;
	/*
	 * If the slot has another owner by now, need_timer() has found the timer not queued.  If
	 * the end is refused, the next interrupts let this CPU change addresses, and start the
	 * timer again.
	 */
	if (expires > ktime_get_ns() || !end_watch(tw, slot, owner, true))
		irq_work_queue(&slot->start);
	return HRTIMER_NORESTART;
}

/* ---- Slots of an event that is not in use ---- */

static void init_slots(struct trace_wprobe *tw)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		slot->tw = tw;
		slot->start = IRQ_WORK_INIT_HARD(start_timer);
		hrtimer_init(&slot->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
		slot->timer.function = end_in_time;
	}
}

/* No trigger runs.  A timer starts no work and a work no timer, once there is no owner. */
static void stop_slot(struct wprobe_slot *slot)
{
	atomic64_set(&slot->owner, 0);
	hrtimer_cancel(&slot->timer);
	irq_work_sync(&slot->start);
	hrtimer_cancel(&slot->timer);
	unregister_wide_hw_breakpoint(slot->events);
	slot->events = NULL;
}

static void stop_slots(struct trace_wprobe *tw)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		if (slot->events)
			stop_slot(slot);
	}
}

/* ---- Changes that wait: tasks, preemption on ---- */

/* What makes a slot busy is not preemptible, so this task has not interrupted it. */
static s64 wait_for_owner(const struct wprobe_slot *slot)
{
	s64 owner;

	while ((owner = owner_of(slot)) & SLOT_BUSY)
		cpu_relax();
	return owner;
}

/*
 * No run with @how is left, so no watch that begins counts there.  Each end_watch() claims
 * the slot before it reads wprobe_slot::expired: it reads NULL, or is waited for.
 */
void trace_wprobe_forget(struct trace_wprobe *tw, const struct wprobe_how *how)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		/* A failure needs no order: then the slot does not count for @how. */
		if (cmpxchg(&slot->expired, how->expired, NULL) == how->expired)
			wait_for_owner(slot);
	}
}

void trace_wprobe_leave_all(struct trace_wprobe *tw)
{
	struct wprobe_slot *slot;
	s64 owner;

	guard(preempt)();
	for_each_slot(slot, tw) {
		owner = wait_for_owner(slot);
		if (owner & SLOT_CALLS)
			end_watch(tw, slot, owner, false);
	}
}

/* ---- Hits: #DB ---- */

static int
process_fetch_insn(struct fetch_insn *code, void *rec, void *edata, void *dest,
		   void *base)
{
	struct pt_regs *regs = rec;
	unsigned long val;
	int ret;

	while (code->op == FETCH_NOP_SYMBOL)
		code++;

	switch (code->op) {
	case FETCH_OP_REG:
		val = regs_get_register(regs, code->param);
		break;
	case FETCH_OP_STACK:
		val = regs_get_kernel_stack_nth(regs, code->param);
		break;
	case FETCH_OP_STACKP:
		val = kernel_stack_pointer(regs);
		break;
	case FETCH_OP_EDATA:
		val = *(unsigned long *)(edata + code->offset);
		break;
	default:
		ret = process_common_fetch_insn(code, &val);
		if (ret < 0)
			return ret;
	}

	return process_fetch_insn_bottom(code + 1, val, dest, base);
}
NOKPROBE_SYMBOL(process_fetch_insn)

/*
 * Fast path: a register or the watched address, stored as it is.  Returns false, and
 * stores nothing, for any other argument.
 */
static nokprobe_inline bool store_plain_arg(struct fetch_insn *code, struct pt_regs *regs,
					    struct wprobe_hit *hit, void *dest)
{
	unsigned long val;

	if (code[1].op != FETCH_OP_ST_RAW || code[2].op != FETCH_OP_END)
		return false;

	if (code->op == FETCH_OP_REG)
		val = regs_get_register(regs, code->param);
	else if (code->op == FETCH_OP_EDATA)
		val = *(unsigned long *)((void *)hit + code->offset);
	else
		return false;

	fetch_store_raw(val, &code[1], dest);
	return true;
}

static nokprobe_inline void
store_args(struct kprobe_trace_entry_head *entry, struct trace_wprobe *tw,
	   struct wprobe_hit *hit, struct pt_regs *regs)
{
	struct probe_arg *arg, *end = &tw->tp.args[tw->tp.nr_args];

	for (arg = tw->tp.args; arg < end; arg++) {
		void *dest = (void *)&entry[1] + arg->offset;

		if (!store_plain_arg(arg->code, regs, hit, dest))
			process_fetch_insn(arg->code, regs, hit, dest, entry);
	}
}

static nokprobe_inline int dynamic_size(struct trace_wprobe *tw, struct wprobe_hit *hit,
					struct pt_regs *regs)
{
	return unlikely(tw->has_dynamic) ? __get_data_size(&tw->tp, regs, hit) : 0;
}

static nokprobe_inline void
fill_entry(struct kprobe_trace_entry_head *entry, struct trace_wprobe *tw,
	   struct wprobe_hit *hit, struct pt_regs *regs, int dsize)
{
	entry->ip = instruction_pointer(regs);
	if (unlikely(tw->has_dynamic))
		store_trace_args(&entry[1], &tw->tp, regs, hit, sizeof(*entry), dsize);
	else
		store_args(entry, tw, hit, regs);
}

static nokprobe_inline void
trace_hit(struct trace_wprobe *tw, struct wprobe_hit *hit, struct pt_regs *regs,
	  struct trace_event_file *file)
{
	struct trace_event_buffer fbuffer __uninitialized;
	struct kprobe_trace_entry_head *entry;
	int dsize;

	if (trace_trigger_soft_disabled(file))
		return;

	dsize = dynamic_size(tw, hit, regs);
	entry = trace_event_buffer_reserve(&fbuffer, file,
					   sizeof(*entry) + tw->tp.size + dsize);
	if (!entry)
		return;
	fbuffer.regs = regs;
	fill_entry(entry, tw, hit, regs, dsize);
	trace_event_buffer_commit(&fbuffer);
}

/* Out of line, so that wprobe_hit() need not save registers for it. */
static noinline void profile_hit(struct trace_wprobe *tw, struct wprobe_hit *hit,
				 struct pt_regs *regs)
{
	struct trace_event_call *call = trace_probe_event_call(&tw->tp);
	struct kprobe_trace_entry_head *entry;
	struct hlist_head *head;
	int size, dsize, rctx;

	if (bpf_prog_array_valid(call) && !trace_call_bpf(call, regs))
		return;
	head = this_cpu_ptr(call->perf_events);
	if (hlist_empty(head))
		return;

	dsize = dynamic_size(tw, hit, regs);
	/* perf puts a u32 before the record and requires the sum to be aligned. */
	size = ALIGN(sizeof(*entry) + tw->tp.size + dsize + sizeof(u32), sizeof(u64));
	size -= sizeof(u32);
	entry = perf_trace_buf_alloc(size, NULL, &rctx);
	if (!entry)
		return;
	memset(&entry[1], 0, size - sizeof(*entry));
	fill_entry(entry, tw, hit, regs, dsize);
	perf_trace_buf_submit(entry, size, rctx, call->event.type, 1, regs, head, NULL);
}
NOKPROBE_SYMBOL(profile_hit);

static nokprobe_inline void handle_hit(struct trace_wprobe *tw, struct wprobe_hit *hit,
				       struct pt_regs *regs)
{
	unsigned int flags = trace_probe_load_flag(&tw->tp);
	struct event_file_link *link;

	/* Code that reads all memory, such as a dump, also reads wprobe_nowhere. */
	if (hit->addr == tw->nowhere)
		return;

	if (flags & TP_FLAG_TRACE) {
		trace_probe_for_each_link_rcu(link, &tw->tp)
			trace_hit(tw, hit, regs, link->file);
	}
	if (flags & TP_FLAG_PROFILE)
		profile_hit(tw, hit, regs);
}

/*
 * Take the address from @data: the event may have been repointed since the hit, so
 * that bp->attr.bp_addr is another one.
 */
static void wprobe_hit(struct perf_event *bp, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct wprobe_hit hit __uninitialized;

	hit.addr = data->addr;
	handle_hit(bp->overflow_handler_context, &hit, regs);
}
NOKPROBE_SYMBOL(wprobe_hit);

/* The same for an event that has values */
static void wprobe_hit_values(struct perf_event *bp, struct perf_sample_data *data,
			      struct pt_regs *regs)
{
	const struct hw_breakpoint_values *values = hw_breakpoint_values(data);
	struct wprobe_hit hit = { .addr = data->addr };

	if (!WARN_ON_ONCE(!values || values->len > sizeof(hit.value))) {
		const u8 *old = values->bytes + values->offset;

		/* Only x86 has watch events: the bytes are the low ones. */
		memcpy(&hit.old, old, values->len);
		memcpy(&hit.value, old + values->len, values->len);
		hit.known = values->flags;
	}
	handle_hit(bp->overflow_handler_context, &hit, regs);
}
NOKPROBE_SYMBOL(wprobe_hit_values);

/* ---- Printing ---- */

static enum print_line_t print_wprobe_event(struct trace_iterator *iter, int flags,
					    struct trace_event *event)
{
	struct trace_event_call *call = container_of(event, struct trace_event_call,
						     event);
	struct kprobe_trace_entry_head *field = (void *)iter->ent;
	struct trace_wprobe *tw = wprobe_of(call);
	struct trace_seq *s = &iter->seq;

	if (!tw)
		return trace_handle_return(s);

	trace_seq_printf(s, "%s: (", trace_probe_name(&tw->tp));
	if (seq_print_ip_sym(s, field->ip, flags | TRACE_ITER_SYM_OFFSET)) {
		trace_seq_putc(s, ')');
		trace_probe_print_args(s, tw->tp.args, tw->tp.nr_args,
				       (u8 *)&field[1], field);
		trace_seq_putc(s, '\n');
	}

	return trace_handle_return(s);
}

static int define_wprobe_fields(struct trace_event_call *event_call)
{
	struct trace_probe *tp = trace_probe_primary_from_call(event_call);
	struct kprobe_trace_entry_head field;
	int ret;

	if (WARN_ON_ONCE(!tp))
		return -ENOENT;
	DEFINE_FIELD(unsigned long, ip, FIELD_STRING_IP, 0);
	return traceprobe_define_arg_fields(event_call, sizeof(field), tp);
}

/* ---- Enabling: event_mutex held ---- */

static const char *const access_names[] = {
	[HW_BREAKPOINT_R]	= "r",
	[HW_BREAKPOINT_W]	= "w",
	[HW_BREAKPOINT_RW]	= "rw",
	[HW_BREAKPOINT_X]	= "x",
};

#define CHANGED	":changed"

/* ACCESS@PLACE[:LEN[:changed]], as in a definition */
static void print_place(char *buf, size_t size, const struct wprobe_place *place)
{
	struct seq_buf s;

	seq_buf_init(&s, buf, size);
	seq_buf_printf(&s, "%s@", access_names[place->type]);
	if (place->symbol && place->offset)
		seq_buf_printf(&s, "%s%+ld", place->symbol, place->offset);
	else if (place->symbol)
		seq_buf_puts(&s, place->symbol);
	else if (place->addr == nowhere(place->type))
		seq_buf_puts(&s, "-1");
	else
		seq_buf_printf(&s, "0x%lx", place->addr);
	if (place->type != HW_BREAKPOINT_X)
		seq_buf_printf(&s, ":%u", place->len);
	if (place->changed)
		seq_buf_puts(&s, CHANGED);
	seq_buf_str(&s);
}

#define PLACE_SIZE	(MAX_ARGSTR_LEN + MODULE_NAME_LEN + KSYM_NAME_LEN + sizeof(CHANGED))

static const char *wprobe_errors[] = {
	"No breakpoint register is free on all CPUs",
	"The breakpoint cannot be registered",
};

#define HOLDERS_SIZE	256

/* Appends the holders of the registers to a command, as a comment. */
static void print_holders(char *buf, size_t size)
{
	char *holders __free(kfree) = kmalloc(HOLDERS_SIZE, GFP_KERNEL);

	if (!holders)
		return;
	hw_breakpoint_holders(holders, HOLDERS_SIZE);
	if (*holders)
		snprintf(buf, size, " # held by %s", holders);
}

/* Logs to the error log of tracefs why an event cannot be enabled. */
static void log_enable_error(struct trace_wprobe *tw, struct trace_array *tr, int err)
{
	size_t size = PLACE_SIZE + 2 * MAX_EVENT_NAME_LEN + HOLDERS_SIZE;
	char *text __free(kfree) = kmalloc(size, GFP_KERNEL);
	int len;

	if (!text)
		return;
	len = scnprintf(text, size, "w:%s ", tw->name);
	print_place(text + len, size - len, &tw->place);
	if (err == -ENOSPC)
		print_holders(text + strlen(text), size - strlen(text));
	tracing_log_err(tr, "wprobe", text, wprobe_errors, err != -ENOSPC, len);
}

static int arm_slot(struct trace_wprobe *tw, struct wprobe_slot *slot, unsigned long addr)
{
	struct perf_event_attr attr = attr_of(&tw->place, addr);
	perf_overflow_handler_t handler = wprobe_hit;
	struct perf_event * __percpu *events;

	if (tw->has_values) {
		attr.config = HW_BREAKPOINT_VALUE;
		attr.sample_type = PERF_SAMPLE_RAW;
		handler = wprobe_hit_values;
	}
	if (tw->place.changed)
		attr.config |= HW_BREAKPOINT_CHANGED;
	events = register_named_wide_hw_breakpoint(&attr, handler, tw, tw->name);
	if (IS_ERR((void __force *)events))
		return PTR_ERR((void __force *)events);
	slot->used_locally = false;
	slot->events = events;
	return 0;
}

/*
 * Registers the breakpoints, unless a user of @tw has done that.  Do not conclude from
 * the other users that they exist: a user may not have called wprobe_register().
 */
static int arm_wprobe(struct trace_wprobe *tw, struct trace_array *tr)
{
	unsigned long addr = tw->place.addr;
	struct wprobe_slot *slot;
	int err;

	if (tw->slots->events)
		return 0;
	for_each_slot(slot, tw) {
		err = arm_slot(tw, slot, addr);
		if (err) {
			stop_slots(tw);
			log_enable_error(tw, tr, err);
			return err;
		}
		addr = tw->nowhere;
	}

	return 0;
}

/* No handler of the breakpoints runs after the return. */
static void disarm_wprobe_if_unused(struct trace_wprobe *tw)
{
	if (!tw->holders && !trace_probe_is_enabled(&tw->tp))
		stop_slots(tw);
}

static void clear_definition(struct trace_wprobe *tw)
{
	guard(preempt)();
	trace_wprobe_clear(tw, NULL, false);
}

int trace_wprobe_hold(struct trace_wprobe *tw, struct trace_array *tr, bool set)
{
	int err;

	lockdep_assert_held(&event_mutex);

	err = arm_wprobe(tw, tr);
	if (err)
		return err;
	tw->holders++;
	/* The first address that a trigger sets is to find that @tw watches nothing. */
	if (set && !tw->setters++)
		clear_definition(tw);
	return 0;
}

void trace_wprobe_release(struct trace_wprobe *tw, bool set)
{
	lockdep_assert_held(&event_mutex);

	if (WARN_ON_ONCE(!tw->holders))
		return;
	tw->holders--;
	tw->setters -= set;
	disarm_wprobe_if_unused(tw);
}

/* @file: NULL for perf */
static int add_user(struct trace_wprobe *tw, struct trace_event_file *file)
{
	if (file)
		return trace_probe_add_file(&tw->tp, file);
	trace_probe_set_flag(&tw->tp, TP_FLAG_PROFILE);
	return 0;
}

static int enable_wprobe(struct trace_wprobe *tw, struct trace_event_file *file)
{
	int err;

	err = add_user(tw, file);
	if (err)
		return err;

	err = arm_wprobe(tw, file ? file->tr : NULL);
	if (err && file)
		trace_probe_remove_file(&tw->tp, file);
	else if (err)
		trace_probe_clear_flag(&tw->tp, TP_FLAG_PROFILE);
	return err;
}

static int disable_wprobe(struct trace_wprobe *tw, struct trace_event_file *file)
{
	if (file && !trace_probe_get_file_link(&tw->tp, file))
		return -ENOENT;

	if (!file)
		trace_probe_clear_flag(&tw->tp, TP_FLAG_PROFILE);
	else if (trace_probe_has_single_file(&tw->tp))
		trace_probe_clear_flag(&tw->tp, TP_FLAG_TRACE);
	disarm_wprobe_if_unused(tw);
	/* Handlers may still walk the list of files: this waits for them. */
	if (file)
		trace_probe_remove_file(&tw->tp, file);

	return 0;
}

static int wprobe_register(struct trace_event_call *call, enum trace_reg type,
			   void *data)
{
	struct trace_wprobe *tw = wprobe_of(call);

	if (!tw)
		return -ENODEV;

	switch (type) {
	case TRACE_REG_REGISTER:
		return enable_wprobe(tw, data);
	case TRACE_REG_UNREGISTER:
		return disable_wprobe(tw, data);
	case TRACE_REG_PERF_REGISTER:
		return enable_wprobe(tw, NULL);
	case TRACE_REG_PERF_UNREGISTER:
		return disable_wprobe(tw, NULL);
	default:
		return 0;
	}
}

#ifdef CONFIG_PERF_EVENTS
/*
 * Counting hits takes a register of every CPU and discloses when the kernel accesses
 * its memory.  So it requires privileges that counting a tracepoint does not.
 */
static int wprobe_perf_perm(struct trace_event_call *call, struct perf_event *event)
{
	return event->parent ? 0 : perf_allow_tracepoint();
}

static void restrict_perf(struct trace_event_call *call)
{
	call->perf_perm = wprobe_perf_perm;
}
#else
static void restrict_perf(struct trace_event_call *call) { }
#endif

static struct trace_event_functions wprobe_funcs = {
	.trace	= print_wprobe_event,
};

static struct trace_event_fields wprobe_fields_array[] = {
	{ .type = TRACE_FUNCTION_TYPE, .define_fields = define_wprobe_fields },
	{}
};

struct trace_wprobe *trace_wprobe_from_call(struct trace_event_call *call)
{
	return call->flags & TRACE_EVENT_FL_WPROBE ? wprobe_of(call) : NULL;
}

/* ---- Parsing a definition ---- */

static int parse_access(const char *arg, size_t len, struct wprobe_place *place)
{
	u32 type;

	place->type = HW_BREAKPOINT_RW;
	if (!len)
		return 0;
	for (type = 0; type < ARRAY_SIZE(access_names); type++) {
		const char *name = access_names[type];

		if (name && strlen(name) == len && !strncmp(arg, name, len)) {
			place->type = type;
			return 0;
		}
	}

	trace_probe_log_err(0, BAD_ACCESS_TYPE);
	return -EINVAL;
}

/*
 * Removes ":LEN:changed" but for the length from the end of @text. Without a length this is
 * a symbol "changed" of a module.
 */
static void parse_changed(char *text, struct wprobe_place *place)
{
	size_t len = strlen(text);
	char *colon;

	if (len < strlen(CHANGED) || strcmp(text + len - strlen(CHANGED), CHANGED))
		return;
	text[len - strlen(CHANGED)] = '\0';
	colon = strrchr(text, ':');
	place->changed = colon && isdigit(colon[1]);
	if (!place->changed)
		text[len - strlen(CHANGED)] = ':';
}

/* Removes ":LEN" from the end of @text, which is at @offset of the argument. */
static int parse_len(char *text, int offset, struct wprobe_place *place)
{
	char *colon = strrchr(text, ':');

	place->len = WPROBE_DEFAULT_LEN;
	if (place->type == HW_BREAKPOINT_X)
		place->len = sizeof(long);
	/* The text after the colon is a symbol: this is MODULE:SYMBOL without LEN. */
	if (!colon || (colon[1] && !isdigit(colon[1])))
		return 0;

	*colon = '\0';
	if (kstrtouint(colon + 1, 0, &place->len) ||
	    place->type == HW_BREAKPOINT_X || !is_power_of_2(place->len) ||
	    place->len > WPROBE_MAX_LEN) {
		trace_probe_log_err(offset + colon + 1 - text, BAD_ACCESS_LEN);
		return -EINVAL;
	}

	return 0;
}

struct symbol_count {
	const char	*name;
	unsigned int	nr;
};

static int count_symbol(void *data, unsigned long addr)
{
	struct symbol_count *count = data;

	count->nr++;
	return 0;
}

static bool is_ambiguous(const char *symbol)
{
	struct symbol_count count = { .name = symbol };

	if (!strchr(symbol, ':'))
		kallsyms_on_each_match_symbol(count_symbol, symbol, &count);
	return count.nr > 1;
}

static unsigned long resolve(const struct wprobe_place *place)
{
	unsigned long addr = kallsyms_lookup_name(place->symbol);

	return addr ? addr + place->offset : 0;
}

#ifdef CONFIG_MODULES
/* Add the module, or another module's symbol of this name might be found later. */
static char *full_symbol(const char *symbol)
{
	char name[MODULE_NAME_LEN] = "";
	struct module *mod;

	scoped_guard(preempt) {
		mod = __module_address(kallsyms_lookup_name(symbol));
		if (mod && !strchr(symbol, ':'))
			strscpy(name, module_name(mod), sizeof(name));
	}

	return *name ? kasprintf(GFP_KERNEL, "%s:%s", name, symbol) :
		       kstrdup(symbol, GFP_KERNEL);
}
#else
static char *full_symbol(const char *symbol)
{
	return kstrdup(symbol, GFP_KERNEL);
}
#endif

/* @text: the symbol, with or without an offset, at @offset of the argument */
static int parse_symbol(char *text, int offset, struct wprobe_place *place)
{
	if (traceprobe_split_symbol_offset(text, &place->offset)) {
		trace_probe_log_err(offset + strcspn(text, "+-"), BAD_PROBE_ADDR);
		return -EINVAL;
	}
	if (is_ambiguous(text)) {
		trace_probe_log_err(offset, NON_UNIQ_SYMBOL);
		return -EINVAL;
	}
	place->symbol = full_symbol(text);
	if (!place->symbol)
		return -ENOMEM;
	place->addr = resolve(place);
	if (!place->addr) {
		trace_probe_log_err(offset, BAD_PROBE_ADDR);
		return -ENOENT;
	}

	return 0;
}

/* @text: the place without access and length, at @offset of the argument */
static int parse_addr(char *text, int offset, struct wprobe_place *place)
{
	int err;

	if (!strcmp(text, "-1")) {
		place->addr = nowhere(place->type);
		return 0;
	}
	if (kstrtoul(text, 0, &place->addr)) {
		err = parse_symbol(text, offset, place);
		if (err)
			return err;
	} else if (!place->addr) {
		trace_probe_log_err(offset, BAD_ACCESS_ADDR);
		return -EINVAL;
	}
	if (!is_aligned(place, place->addr)) {
		trace_probe_log_err(offset, BAD_ACCESS_ALIGN);
		return -EINVAL;
	}
	if (!can_watch(place, place->addr)) {
		trace_probe_log_err(offset, BAD_PROBE_ADDR);
		return -EINVAL;
	}

	return 0;
}

static int parse_place(const char *arg, struct wprobe_place *place)
{
	const char *at = strchr(arg, '@');
	int err, offset = at + 1 - arg;

	if (!at) {
		trace_probe_log_err(0, BAD_ACCESS_FMT);
		return -EINVAL;
	}
	char *text __free(kfree) = kstrdup(at + 1, GFP_KERNEL);
	if (!text)
		return -ENOMEM;

	parse_changed(text, place);
	err = parse_access(arg, at - arg, place);
	if (!err)
		err = parse_len(text, offset, place);
	if (err)
		return err;
	if (!type_is_supported(place)) {
		trace_probe_log_err(0, NO_ACCESS_TYPE);
		return -EOPNOTSUPP;
	}

	return parse_addr(text, offset, place);
}

/* Makes a name for an event whose definition has none. */
static void make_name(char *buf, const struct wprobe_place *place)
{
	if (place->symbol && place->offset)
		snprintf(buf, MAX_EVENT_NAME_LEN, "%s_%s%ld", place->symbol,
			 place->offset < 0 ? "minus_" : "", abs(place->offset));
	else if (place->symbol)
		strscpy(buf, place->symbol, MAX_EVENT_NAME_LEN);
	else if (place->addr == nowhere(place->type))
		strscpy(buf, "w_nowhere", MAX_EVENT_NAME_LEN);
	else
		snprintf(buf, MAX_EVENT_NAME_LEN, "w_0x%lx", place->addr);
	sanitize_event_name(buf);
}

/* ---- Creating and removing ---- */

static void free_wprobe(struct trace_wprobe *tw)
{
	trace_probe_cleanup(&tw->tp);
	kfree(tw->place.symbol);
	kfree(tw->name);
	kfree(tw);
}

/* On success the event owns @place->symbol. */
static struct trace_wprobe *alloc_wprobe(const char *group, const char *event,
					 const struct wprobe_place *place,
					 unsigned int nr_slots, int nargs)
{
	struct trace_event_call *call;
	struct trace_wprobe *tw;
	int err;

	tw = kzalloc(struct_size(tw, tp.args, nargs), GFP_KERNEL);
	if (!tw)
		return ERR_PTR(-ENOMEM);
	tw->name = kasprintf(GFP_KERNEL, "%s/%s", group, event);
	err = tw->name ? trace_probe_init(&tw->tp, event, group, false, nargs) : -ENOMEM;
	if (err) {
		kfree(tw->name);
		kfree(tw);
		return ERR_PTR(err);
	}

	tw->place = *place;
	tw->nowhere = nowhere(place->type);
	tw->nr_slots = nr_slots;
	init_slots(tw);
	dyn_event_init(&tw->devent, &trace_wprobe_ops);
	call = trace_probe_event_call(&tw->tp);
	call->flags = TRACE_EVENT_FL_WPROBE;
	call->event.funcs = &wprobe_funcs;
	call->class->fields_array = wprobe_fields_array;
	call->class->reg = wprobe_register;
	restrict_perf(call);
	return tw;
}

/* The execution of an instruction has no value. */
static bool needs_values(const struct wprobe_place *place, int argc, const char *argv[])
{
	bool needs = place->changed;
	int i;

	for (i = 0; i < argc; i++)
		needs |= strstr(argv[i], "$old") || strstr(argv[i], "$known");
	return needs && place->type != HW_BREAKPOINT_X;
}

static int parse_fetch_args(struct trace_wprobe *tw, int argc, const char *argv[])
{
	struct traceprobe_parse_context ctx = {
		.flags	= TPARG_FL_KERNEL | TPARG_FL_WPROBE,
	};
	int i, err = 0;

	tw->has_values = needs_values(&tw->place, argc, argv);
	if (tw->has_values)
		ctx.flags |= TPARG_FL_WPROBE_VALUES;
	for (i = 0; i < argc && !err; i++) {
		trace_probe_log_set_index(i + 2);
		ctx.offset = 0;
		err = traceprobe_parse_probe_arg(&tw->tp, i, argv[i], &ctx);
		/* Resolve arguments of the form @SYMBOL. */
		if (!err)
			err = traceprobe_update_arg(&tw->tp.args[i]);
		tw->has_dynamic |= tw->tp.args[i].dynamic;
	}
	traceprobe_finish_parse(&ctx);

	return err ?: traceprobe_set_print_fmt(&tw->tp, PROBE_PRINT_NORMAL);
}

/*
 * A module may have been unloaded or loaded since the place was parsed, when
 * wprobe_module_callback() did not yet find the event.
 */
static void resolve_again(struct wprobe_place *place)
{
	unsigned long addr = place->symbol ? resolve(place) : place->addr;

	lockdep_assert_held(&event_mutex);

	if (!addr || is_going(addr) || !is_aligned(place, addr) ||
	    !can_watch(place, addr))
		addr = nowhere(place->type);
	place->addr = addr;
}

static bool is_twin(struct trace_wprobe *a, struct trace_wprobe *b)
{
	return !strcmp(trace_probe_name(&a->tp), trace_probe_name(&b->tp)) &&
	       !strcmp(trace_probe_group_name(&a->tp), trace_probe_group_name(&b->tp));
}

/* Returns -EBUSY for the name of another watch event, -EEXIST for that of any other event. */
static int name_error(struct trace_wprobe *tw)
{
	struct dyn_event *ev;

	lockdep_assert_held(&event_mutex);

	for_each_dyn_event(ev) {
		if (ev->ops == &trace_wprobe_ops && is_twin(to_wprobe(ev), tw))
			return -EBUSY;
	}

	return -EEXIST;
}

static int register_wprobe(struct trace_wprobe *tw)
{
	int err;

	guard(mutex)(&event_mutex);
	resolve_again(&tw->place);
	err = trace_probe_register_event_call(&tw->tp);
	if (err == -EEXIST) {
		trace_probe_log_set_index(0);
		trace_probe_log_err(0, EVENT_EXIST);
		err = name_error(tw);
	}
	if (!err)
		dyn_event_add(&tw->devent, trace_probe_event_call(&tw->tp));

	return err;
}

/* On success the event owns @place->symbol. */
static int create_from(const char *group, const char *event, struct wprobe_place *place,
		       unsigned int nr_slots, int argc, const char *argv[])
{
	char *dentries __free(kfree) = NULL;
	struct trace_wprobe *tw;
	int err;

	if (argc > MAX_TRACE_ARGS) {
		trace_probe_log_set_index(MAX_TRACE_ARGS + 2);
		trace_probe_log_err(0, TOO_MANY_ARGS);
		return -E2BIG;
	}
	err = traceprobe_expand_dentry_args(argc, argv, &dentries);
	if (err)
		return err;
	tw = alloc_wprobe(group, event, place, nr_slots, argc);
	if (IS_ERR(tw))
		return PTR_ERR(tw);

	err = parse_fetch_args(tw, argc, argv);
	if (!err)
		err = register_wprobe(tw);
	if (err) {
		tw->place.symbol = NULL;
		free_wprobe(tw);
	}
	return err;
}

/* The number behind the w at the start of @text; returns the text behind the number. */
static const char *parse_slots(const char *text, unsigned int *nr)
{
	int len = 0;

	*nr = 1;
	/* More digits are an error below. */
	if (isdigit(text[1]) && sscanf(text + 1, "%4u%n", nr, &len) != 1)
		return NULL;
	text += 1 + len;
	if (*nr > WPROBE_MAX_SLOTS)
		trace_probe_log_err(1, TOO_MANY_SLOTS);
	else if (!*nr || (*text && *text != ':'))
		trace_probe_log_err(1, BAD_SLOTS);
	else
		return text;
	return NULL;
}

/* w[SLOTS][:[GRP/][EVENT]] [r|w|rw|x]@PLACE[:LEN] [ARGS] */
static int parse_definition(int argc, const char *argv[])
{
	const char *event = NULL, *group = WPROBE_EVENT_SYSTEM;
	struct wprobe_place place = { };
	char group_buf[MAX_EVENT_NAME_LEN];
	char name_buf[MAX_EVENT_NAME_LEN];
	unsigned int nr_slots;
	const char *name;
	int err;

	name = parse_slots(argv[0], &nr_slots);
	if (!name)
		return -EINVAL;
	if (argc < 2) {
		trace_probe_log_err(0, NO_ARG_BODY);
		return -EINVAL;
	}
	if (*name == ':') {
		event = name + 1;
		err = traceprobe_parse_event_name(&event, &group, group_buf,
						  event - argv[0]);
		if (err)
			return err;
	}
	trace_probe_log_set_index(1);

	err = parse_place(argv[1], &place);
	if (!err && !event) {
		make_name(name_buf, &place);
		event = name_buf;
	}
	if (!err)
		err = create_from(group, event, &place, nr_slots, argc - 2, argv + 2);
	if (err)
		kfree(place.symbol);
	return err;
}

static int parse_command(int argc, const char *argv[])
{
	int err;

	if (argv[0][0] != 'w')
		return -ECANCELED;
	/* Arguments can read any memory, like those of kprobe events. */
	err = security_locked_down(LOCKDOWN_KPROBES);
	if (err)
		return err;

	trace_probe_log_init("wprobe", argc, argv);
	err = parse_definition(argc, argv);
	trace_probe_log_clear();
	return err;
}

static int create_wprobe(const char *raw_command)
{
	return trace_probe_create(raw_command, parse_command);
}

static int release_wprobe(struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);

	/* A user has enabled the event, or holds a reference to it. */
	if (trace_probe_is_enabled(&tw->tp) ||
	    trace_event_dyn_busy(trace_probe_event_call(&tw->tp)) ||
	    trace_probe_unregister_event_call(&tw->tp))
		return -EBUSY;

	dyn_event_remove(ev);
	trace_probe_unlink(&tw->tp);
	free_wprobe(tw);
	return 0;
}

static bool wprobe_is_busy(struct dyn_event *ev)
{
	return trace_probe_is_enabled(&to_wprobe(ev)->tp);
}

static bool wprobe_matches(const char *system, const char *event, int argc,
			   const char **argv, struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);
	char place[PLACE_SIZE];

	if (event[0] && strcmp(trace_probe_name(&tw->tp), event))
		return false;
	if (system && strcmp(trace_probe_group_name(&tw->tp), system))
		return false;
	if (!argc)
		return true;

	print_place(place, sizeof(place), &tw->place);
	return !strcmp(place, argv[0]) &&
	       trace_probe_match_command_args(&tw->tp, argc - 1, argv + 1);
}

static int show_wprobe(struct seq_file *m, struct dyn_event *ev)
{
	struct trace_wprobe *tw = to_wprobe(ev);
	char place[PLACE_SIZE];
	int i;

	print_place(place, sizeof(place), &tw->place);
	seq_putc(m, 'w');
	if (tw->nr_slots > 1)
		seq_printf(m, "%u", tw->nr_slots);
	seq_printf(m, ":%s/%s %s", trace_probe_group_name(&tw->tp),
		   trace_probe_name(&tw->tp), place);
	for (i = 0; i < tw->tp.nr_args; i++)
		seq_printf(m, " %s=%s", tw->tp.args[i].name, tw->tp.args[i].comm);
	seq_putc(m, '\n');

	return 0;
}

/* ---- Loading and unloading of modules ---- */

#ifdef CONFIG_MODULES
static bool is_in_module(const struct wprobe_place *place, struct module *mod)
{
	size_t len = strlen(module_name(mod));

	return place->symbol && !strncmp(place->symbol, module_name(mod), len) &&
	       place->symbol[len] == ':';
}

/* An address does not follow a module that is loaded: it names no symbol. */
static bool is_concerned(const struct wprobe_place *place, struct module *mod,
			 enum module_state state)
{
	if (state == MODULE_STATE_COMING)
		return place->symbol && is_in_module(place, mod);
	return is_freed(place->addr, mod, state);
}

/*
 * Resolves the symbol again: a module is loaded at another address each time, and may
 * lack the symbol now.  When the module frees the memory the event watches nothing.
 */
static void resolve_for_module(struct trace_wprobe *tw, bool coming)
{
	unsigned long addr = coming ? resolve(&tw->place) : 0;

	if (!addr || !is_aligned(&tw->place, addr) || !can_watch(&tw->place, addr))
		addr = tw->nowhere;
	tw->place.addr = addr;
}

/* A watch in the slot stays: it is left from a set_wprobe that was removed. */
static void follow_module(struct trace_wprobe *tw)
{
	if (wait_for_owner(tw->slots))
		return;
	if (modify_wide_hw_breakpoint(tw->slots->events, tw->place.addr, NULL))
		pr_warn("%s still watches memory that a module frees\n",
			trace_probe_name(&tw->tp));
	/* No CPU may watch the memory after it is freed, nor miss an access to it. */
	synchronize_wide_hw_breakpoint(tw->slots->events);
}

/**
 * struct leaving - a slot that is to leave memory that a module frees
 * @slot: the slot of an event that is enabled
 * @mod: the module
 * @state: its state, which determines which memory it frees
 * @refused: a CPU has made too many changes since its last interrupt
 */
struct leaving {
	struct wprobe_slot	*slot;
	struct module		*mod;
	enum module_state	state;
	bool			refused;
};

/* On each CPU: a trigger may have pointed this one alone. */
static void leave_module_here(void *data)
{
	struct leaving *l = data;
	unsigned long addr;
	int err;

	/* An NMI may repoint in between: look again. */
	do {
		addr = addr_here(l->slot);
		if (!is_freed(addr, l->mod, l->state))
			return;
		err = modify_wide_hw_breakpoint_local(l->slot->events, l->slot->tw->nowhere,
						      &addr);
	} while (err == -EAGAIN);
	if (err == -EBUSY)
		WRITE_ONCE(l->refused, true);
}

/* The watch that owns the slot */
static void end_watch_of_module(struct wprobe_slot *slot, struct module *mod,
				enum module_state state)
{
	s64 owner;

	guard(preempt)();
	do {
		owner = wait_for_owner(slot);
		/* A later watch has another owner, and finds the state of @mod itself. */
		if (!owner || !is_freed(READ_ONCE(slot->addr), mod, state))
			return;
	} while (!end_watch(slot->tw, slot, owner, false));
}

/*
 * A trigger may have pointed an event into the module.  CPUs that come online later
 * watch what the whole set was pointed to last.
 */
static void leave_module(struct wprobe_slot *slot, struct module *mod,
			 enum module_state state)
{
	struct leaving l = { .slot = slot, .mod = mod, .state = state };

	end_watch_of_module(slot, mod, state);
	/* A change that is refused has queued the interrupt after which the CPU may change. */
	do {
		l.refused = false;
		on_each_cpu(leave_module_here, &l, 1);
	} while (l.refused);
	/* The memory is freed after this. */
	synchronize_wide_hw_breakpoint(slot->events);
}

static void follow_or_leave(struct trace_wprobe *tw, struct module *mod,
			    enum module_state state)
{
	bool coming = state == MODULE_STATE_COMING;
	bool concerned = is_concerned(&tw->place, mod, state);
	struct wprobe_slot *slot;

	if (concerned)
		resolve_for_module(tw, coming);
	if (!tw->slots->events)
		return;
	if (!coming) {
		/* For runs of triggers that have not found the state of @mod */
		if (tw->setters)
			synchronize_rcu();
		for_each_slot(slot, tw)
			leave_module(slot, mod, state);
	}
	/* CPUs that come online later must not watch the former place either. */
	if (concerned && !tw->setters)
		follow_module(tw);
}

static int wprobe_module_callback(struct notifier_block *nb, unsigned long state,
				  void *data)
{
	struct dyn_event *ev;

	guard(mutex)(&event_mutex);
	for_each_dyn_event(ev) {
		if (ev->ops == &trace_wprobe_ops)
			follow_or_leave(to_wprobe(ev), data, state);
	}

	return NOTIFY_DONE;
}

static struct notifier_block wprobe_module_nb = {
	.notifier_call	= wprobe_module_callback,
};

static int __init watch_modules(void)
{
	return register_module_notifier(&wprobe_module_nb);
}
#else
static int __init watch_modules(void)
{
	return 0;
}
#endif

static int __init trace_wprobe_init(void)
{
	int err;

	err = watch_modules();
	if (!err)
		err = dyn_event_register(&trace_wprobe_ops);
	if (err)
		pr_warn("cannot register watch events: %pe\n", ERR_PTR(err));

	return err;
}
core_initcall(trace_wprobe_init);
