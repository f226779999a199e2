// SPDX-License-Identifier: GPL-2.0
/*
 * The slots of watch events: what they watch, and changing that in any context.
 *
 * The breakpoint of a slot that watches nothing is registered, too.  It watches an
 * object that no code accesses: so the event has a register, and can be repointed in
 * any context.
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
 * Locking: changes in any context take no lock.  Those that wait, registering and
 * unregistering take event_mutex.  A trigger holds a reference to the event and its
 * breakpoints, so that wprobe_slot::events stays valid as long as triggers may run.
 */
#define pr_fmt(fmt) "trace_wprobe: " fmt

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "trace_probe.h"
#include "trace_wprobe.h"

/* wprobe_slot::owner: a flag, the number of calls in the window, and the number of the watch */
#define SLOT_BUSY		1LL
#define SLOT_CALL		BIT_ULL(1)
#define SLOT_CALLS		GENMASK_ULL(16, 1)
#define SLOT_NUMBER		BIT_ULL(17)

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

/* ---- Memory that modules free: any context ---- */

#ifdef CONFIG_MODULES
bool trace_wprobe_is_freed(unsigned long addr, const struct module *mod, unsigned long state)
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
	return mod && trace_wprobe_is_freed(addr, mod, READ_ONCE(mod->state));
}

static bool is_going(unsigned long addr)
{
	return is_vmalloc_or_module_addr((void *)addr) && is_in_going_module(addr);
}
#else
static bool is_going(unsigned long addr)
{
	return false;
}
#endif

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
	struct perf_event_attr attr = attr_of(place, addr);

	return addr >= TASK_SIZE_MAX && wprobe_is_aligned(place, addr) &&
	       !check_hw_breakpoint(&attr);
}

bool trace_wprobe_can_watch(const struct wprobe_place *place, unsigned long addr)
{
	return may_be_set(place, addr) && !is_going(addr);
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
 * The state of a module is set before trace_wprobe_leave_module() waits for an RCU grace
 * period: either this function finds the state, or leave_module() finds @addr.
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

unsigned int trace_wprobe_used(const struct trace_wprobe *tw)
{
	const struct wprobe_slot *slot;
	unsigned int used = 0;

	for_each_slot(slot, tw)
		used += !!owner_of(slot);
	return used;
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

/* ---- Beginning and end of the use: tasks ---- */

void trace_wprobe_init_slots(struct trace_wprobe *tw)
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

void trace_wprobe_disarm(struct trace_wprobe *tw)
{
	struct wprobe_slot *slot;

	for_each_slot(slot, tw) {
		if (slot->events)
			stop_slot(slot);
	}
}

static int arm_slot(struct wprobe_slot *slot, unsigned long addr,
		    perf_overflow_handler_t handler)
{
	struct trace_wprobe *tw = slot->tw;
	struct perf_event_attr attr = attr_of(&tw->place, addr);
	struct perf_event * __percpu *events;

	if (tw->has_values) {
		attr.config = HW_BREAKPOINT_VALUE;
		attr.sample_type = PERF_SAMPLE_RAW;
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

int trace_wprobe_arm(struct trace_wprobe *tw, perf_overflow_handler_t handler)
{
	unsigned long addr = tw->place.addr;
	struct wprobe_slot *slot;
	int err;

	for_each_slot(slot, tw) {
		err = arm_slot(slot, addr, handler);
		if (err) {
			trace_wprobe_disarm(tw);
			return err;
		}
		addr = tw->nowhere;
	}

	return 0;
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

void trace_wprobe_follow(struct trace_wprobe *tw)
{
	if (wait_for_owner(tw->slots))
		return;
	if (modify_wide_hw_breakpoint(tw->slots->events, tw->place.addr, NULL))
		pr_warn("%s still watches memory that a module frees\n",
			trace_probe_name(&tw->tp));
	/* No CPU may watch the memory after it is freed, nor miss an access to it. */
	synchronize_wide_hw_breakpoint(tw->slots->events);
}

#ifdef CONFIG_MODULES
/**
 * struct leaving - a slot that is to leave memory that a module frees
 * @slot: the slot of an event that is enabled
 * @mod: the module
 * @state: of which its notifier has been told
 * @refused: a CPU has made too many changes since its last interrupt
 */
struct leaving {
	struct wprobe_slot	*slot;
	const struct module	*mod;
	unsigned long		state;
	bool			refused;
};

/* On each CPU: a trigger may have pointed this one alone. */
static void leave_here(void *data)
{
	struct leaving *l = data;
	unsigned long addr;
	int err;

	/* An NMI may repoint in between: look again. */
	do {
		addr = addr_here(l->slot);
		if (!trace_wprobe_is_freed(addr, l->mod, l->state))
			return;
		err = modify_wide_hw_breakpoint_local(l->slot->events, l->slot->tw->nowhere,
						      &addr);
	} while (err == -EAGAIN);
	if (err == -EBUSY)
		WRITE_ONCE(l->refused, true);
}

/* The watch that owns the slot */
static void end_going_watch(const struct leaving *l)
{
	struct wprobe_slot *slot = l->slot;
	s64 owner;

	guard(preempt)();
	do {
		owner = wait_for_owner(slot);
		/* A later watch has another owner, and finds the state of the module itself. */
		if (!owner || !trace_wprobe_is_freed(READ_ONCE(slot->addr), l->mod, l->state))
			return;
	} while (!end_watch(slot->tw, slot, owner, false));
}

/*
 * A trigger may have pointed an event into the module.  CPUs that come online later
 * watch what the whole set was pointed to last.
 */
static void leave_module(struct wprobe_slot *slot, const struct module *mod, unsigned long state)
{
	struct leaving l = { .slot = slot, .mod = mod, .state = state };

	end_going_watch(&l);
	/* A change that is refused has queued the interrupt after which the CPU may change. */
	do {
		l.refused = false;
		on_each_cpu(leave_here, &l, 1);
	} while (l.refused);
	/* The memory is freed after this. */
	synchronize_wide_hw_breakpoint(slot->events);
}

void trace_wprobe_leave_module(struct trace_wprobe *tw, const struct module *mod,
			       unsigned long state)
{
	struct wprobe_slot *slot;

	/* For runs of triggers that have not found the state of the module */
	if (tw->setters)
		synchronize_rcu();
	for_each_slot(slot, tw)
		leave_module(slot, mod, state);
}
#endif
