// SPDX-License-Identifier: GPL-2.0
/*
 * Repointing a kernel-wide set on all CPUs, from any context.
 *
 * A set has one newest version.  A repointer (a call of
 * modify_wide_hw_breakpoint() in any context on any CPU) does three things:
 *
 *  1. it publishes its version with a cmpxchg of bp_wide_set::newest;
 *  2. it makes its own CPU adopt (watch) the newest version before it returns;
 *  3. it kicks each other online CPU, which then adopts the newest version.
 *
 * Order.  The cmpxchg gives each version a serial.  A CPU that is kicked adopts
 * the version that is newest at that time, not the one that caused the kick.
 * So of two concurrent repointers the one with the higher serial wins on every
 * CPU, in whatever order their kicks arrive, and no CPU returns to an older
 * version.  A CPU that is repointed alone, by
 * modify_wide_hw_breakpoint_local(), records the newest serial of the set in
 * its own version (bp_version::base), and keeps that version until the set gets
 * a newer one.
 *
 * Storage.  A version is stored in an entry of the CPU that publishes it.  A
 * writer uses one of the two entries of its nesting depth: the one that does not
 * store the newest version.  No other context writes that entry, and no reader
 * accepts it:
 *
 *	writer					reader
 *	entry->serial = 0			n = newest (acquire)
 *	smp_wmb()			  A	copy entry of n
 *	entry->version = ...			smp_rmb()		  A
 *	entry->serial = s  (release)		entry->serial == serial of n?
 *	cmpxchg(newest, s | entry) (full)
 *
 * A copy that is torn has seen a store after the writer's barrier A, so the read
 * after the reader's barrier A sees serial 0 or a later one, and the reader starts
 * again.  An entry is written only after another version became newest: each retry
 * means that some repointer made progress, and a reader that interrupted a writer
 * of its own CPU never waits for it.
 *
 * Kicks.  A kick is an irq_work on the remote CPU.  irq_work_queue_on() sends
 * an IPI.  It must not run in NMI context, to which a #DB in the kernel
 * belongs, nor while stop_machine() takes a CPU down, where interrupts are off.
 * So unless the repointer is a task with interrupts on, it queues an irq_work on
 * its own CPU, the relay, which kicks the others as soon as interrupts are on.  A kick
 * that is still pending is not queued again: irq_work clears PENDING, with a
 * full barrier, before it calls the function, so the function has not read
 * newest yet and will adopt this version as well.
 *
 * Storms.  A kick and a relay are interrupts, and the code of an interrupt may hit a
 * breakpoint or a tracepoint whose handler repoints a set, and so on without end, while
 * the local timer, whose vector has a lower priority, never interrupts the CPU.  Nothing
 * else that a repointer does executes code that would not be executed anyway.  So limit
 * the kicks that are not caused by the code of a task with interrupts on: they go through
 * relays, which kick BP_RELAYS times in two ticks, and then start a timer that kicks a
 * tick later.  No relay is queued until then.  A kick is late then, not lost:
 *
 *	repointer				timer
 *	cmpxchg newest  (full barrier)		bp_wide_set::late is not queued
 *	bp_wide_set::late is queued?		smp_mb()
 *	yes: return				read newest, kick
 *
 * Hotplug.  stop_machine() takes a CPU down, so a CPU that is seen online stays
 * online until preemption is on again.  After it has left cpu_online_mask, the
 * CPU runs its pending irq_works for the last time; an irq_work that it queues
 * on itself later stays pending for ever.  A dying CPU can repoint even then,
 * because kprobes are hit on it until it is dead.  So a CPU that is not online
 * kicks no other CPU.  A live CPU does that instead, with bp_wide_kick(): after
 * the dying CPU is dead, or when the CPU that comes up is online.
 *
 * A CPU that comes online is in cpu_online_mask before it makes its event:
 *
 *	repointer				CPU that comes online
 *	cmpxchg newest  (full barrier)		set_cpu_online()
 *	read cpu_online_mask			hotplug state machine (full barriers)
 *						read newest, make the event
 *
 * At least one of them sees the store of the other: the repointer kicks the new
 * CPU, or the new CPU makes its event with this version.
 *
 * Missed accesses.  When a repointer returns, its own CPU watches the new
 * range.  Each other CPU watches the old range until it takes the kick, which
 * it does as soon as its interrupts are on.  A repointer in an arbitrary
 * context cannot wait for that: the other CPU may spin, with interrupts off,
 * for a lock that the repointer holds.  So an access to the new range by such a
 * CPU is missed in that window.  It is the only gap, and callers can detect it:
 * wide_hw_breakpoint_is_settled() returns whether the window is closed, and
 * synchronize_wide_hw_breakpoint() waits until it is, for callers with
 * interrupts on.  A hit of the old range in the window is reported with the old
 * address.
 */

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "bp_internal.h"
#include "bp_repoint.h"
#include "bp_repoint_wide.h"

static_assert(offsetof(struct bp_wide_cpu, event) == 0);

static_assert(2 * BP_VERSIONS_DEPTH <= 1 << BP_NEWEST_ENTRY_BITS);
static_assert(NR_CPUS <= 1 << BP_NEWEST_CPU_BITS);

static struct bp_wide_entry *wide_entry_of(const struct bp_wide_set *set, u64 newest)
{
	unsigned int cpu = (newest >> BP_NEWEST_ENTRY_BITS) & ((1 << BP_NEWEST_CPU_BITS) - 1);
	unsigned int i = newest & ((1 << BP_NEWEST_ENTRY_BITS) - 1);

	return &per_cpu_ptr(set->cpus, cpu)->entry[i];
}

/* ---- Reading ---- */

/* Returns false if the entry was written again: another version is newest. */
static bool read_wide_entry(const struct bp_wide_set *set, u64 newest, struct bp_version *v)
{
	const struct bp_wide_entry *entry = wide_entry_of(set, newest);

	/* A copy that a writer changed meanwhile is dropped, as its serial differs. */
	*v = data_race(entry->version);
	/* Pairs with smp_wmb() in fill_wide_entry(). */
	smp_rmb();
	return READ_ONCE(entry->serial) == (unsigned long)bp_newest_serial(newest);
}

/* Reads the newest version. Returns false if the set was never repointed. */
static bool read_newest_version(const struct bp_wide_set *set, struct bp_version *v)
{
	u64 newest;

	do {
		newest = bp_read_newest(set);
		if (!newest)
			return false;
	} while (!read_wide_entry(set, newest, v));

	v->base = bp_newest_serial(newest);
	return true;
}

/*
 * Reads the version that this CPU watches or is about to adopt: its own
 * version, or the newest one of the set if the CPU has no event or has not
 * adopted that yet.  v->base is set to the newest serial of the set.
 *
 * Context: Any, on the CPU of @wcpu.
 * Return: bp_versions::now of the CPU; it changes if a context that interrupts
 * the caller publishes a version of this CPU.
 */
static unsigned long read_version_here(const struct bp_wide_cpu *wcpu,
				       struct bp_version *v)
{
	const struct bp_wide_set *set = wcpu->set;
	unsigned long now;
	u64 base;

	now = bp_read_version(&wcpu->versions, v);
	base = bp_wide_serial(set);
	if (READ_ONCE(wcpu->event) && v->base == base)
		return now;

	if (!read_newest_version(set, v))
		*v = (struct bp_version) { .range = bp_range(&set->attr) };
	return now;
}

/**
 * struct bp_here - what read_version_here() returns, without the version
 * @addr: the address
 * @base: the serial that was newest
 * @now: bp_versions::now
 */
struct bp_here {
	unsigned long	addr;
	u64		base;
	unsigned long	now;
};

static noinline struct bp_here read_newest_here(const struct bp_wide_cpu *wcpu)
{
	struct bp_version v;
	unsigned long now = read_version_here(wcpu, &v);

	return (struct bp_here) { .addr = v.range.addr, .base = v.base, .now = now };
}

/* read_version_here() without a copy of the version */
static __always_inline struct bp_here read_here(const struct bp_wide_cpu *wcpu)
{
	const struct bp_versions *versions = &wcpu->versions;
	const struct bp_version *v;
	struct bp_here here;

	do {
		here.now = READ_ONCE(versions->now);
		barrier();
		v = &versions->version[bp_version_index(here.now)];
		/* May be overwritten meanwhile: see bp_read_version(). */
		here.addr = data_race(v->range.addr);
		here.base = data_race(v->base);
		barrier();
	} while (here.now != READ_ONCE(versions->now));

	if (likely(READ_ONCE(wcpu->event) && here.base == bp_wide_serial(wcpu->set)))
		return here;
	return read_newest_here(wcpu);
}

/* read_here() without the address */
static __always_inline struct bp_here read_order_here(const struct bp_wide_cpu *wcpu)
{
	struct bp_here here = { .now = READ_ONCE(wcpu->versions.now) };

	/* In this order: a version that is adopted in between changes bp_versions::now. */
	barrier();
	here.base = bp_wide_serial(wcpu->set);
	return here;
}

/* ---- The events of a set ---- */

static void adopt_work(struct irq_work *work);
static void relay_work(struct irq_work *work);
static enum hrtimer_restart late_kick(struct hrtimer *timer);

/* How often relays kick for a set in two ticks; see "Storms" above */
#define BP_RELAYS	16

static struct bp_wide_cpu __percpu *cpus_of(struct perf_event * __percpu *events)
{
	return (struct bp_wide_cpu __percpu *)events;
}

struct bp_wide_cpu *bp_wide_cpu_of(struct perf_event * __percpu *events, int cpu)
{
	return per_cpu_ptr(cpus_of(events), cpu);
}

static struct bp_wide_set *set_of(struct perf_event * __percpu *events)
{
	return raw_cpu_ptr(cpus_of(events))->set;
}

struct perf_event * __percpu *bp_wide_alloc_events(const struct perf_event_attr *attr,
						   const char *name)
{
	struct bp_wide_set *set;
	int cpu;

	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return NULL;
	set->attr = *attr;
	set->name = name;
	ratelimit_state_init(&set->relays, 1, BP_RELAYS);
	ratelimit_set_flags(&set->relays, RATELIMIT_MSG_ON_RELEASE);
	hrtimer_init(&set->late, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	set->late.function = late_kick;
	set->cpus = alloc_percpu(struct bp_wide_cpu);
	if (!set->cpus) {
		kfree(set);
		return NULL;
	}
	for_each_possible_cpu(cpu) {
		struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);

		wcpu->set = set;
		wcpu->adopt = IRQ_WORK_INIT_HARD(adopt_work);
		wcpu->relay = IRQ_WORK_INIT_HARD(relay_work);
	}

	return (struct perf_event * __percpu *)set->cpus;
}

void bp_wide_free_events(struct perf_event * __percpu *events)
{
	struct bp_wide_set *set;

	if (!events)
		return;
	set = set_of(events);
	free_percpu(set->cpus);
	kfree(set);
}

u64 bp_wide_start_event(struct bp_wide_cpu *wcpu, struct perf_event_attr *attr)
{
	struct bp_version v;

	if (!read_newest_version(wcpu->set, &v))
		return 0;
	attr->bp_addr = v.range.addr;
	attr->bp_len = v.range.len;
	attr->bp_type = v.range.type;
	return v.base;
}

void bp_wide_stop_repoint(struct perf_event * __percpu *events)
{
	struct bp_wide_set *set = set_of(events);
	int cpu;

	/* Relays start the timer and queue kicks, and the timer queues kicks. */
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->relay);
	hrtimer_cancel(&set->late);
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->adopt);
}

/* ---- One CPU alone: not preemptible ---- */

static struct bp_wide_cpu *wcpu_of(const struct perf_event *bp)
{
	return bp_is_wide(bp) ? bp_wide_cpu_of_event(bp) : NULL;
}

/*
 * The CPU keeps version @v until the set is repointed again.  If another CPU
 * does that after the comparison with @from, the base of @v is not the newest
 * serial, so this CPU adopts the newer version when it is kicked.
 */
static int publish_local(struct bp_wide_cpu *wcpu, const struct bp_version *v,
			 const unsigned long *from)
{
	struct bp_here here;
	int err;

	do {
		here = from ? read_here(wcpu) : read_order_here(wcpu);
		if (from && here.addr != *from)
			return -EAGAIN;
		err = bp_publish_version(&wcpu->versions, here.now, v, here.base);
	} while (err == -EAGAIN);

	return err;
}

static int check_local(struct perf_event *bp, const struct perf_event_attr *attr,
		       struct bp_version *v)
{
	int err;

	if (attr->config != bp->attr.config)
		return -EINVAL;
	err = bp_translate(bp, attr, &v->hw);
	if (err)
		return err;
	if (bp->attr.exclude_kernel && arch_check_bp_in_kernelspace(&v->hw))
		return -EINVAL;
	return bp_same_registers(&bp->attr, attr) ? 0 : -EINVAL;
}

static int repoint_local(struct perf_event *bp, const struct perf_event_attr *attr,
			 const unsigned long *from)
{
	struct bp_version v = { .range = bp_range(attr) };
	struct bp_wide_cpu *wcpu = wcpu_of(bp);
	int err;

	if (!wcpu || bp->cpu != raw_smp_processor_id())
		return -EINVAL;
	err = check_local(bp, attr, &v);
	if (!err)
		err = publish_local(wcpu, &v, from);
	if (!err)
		bp_apply_version(bp);
	return err;
}

static int repoint_local_irqsave(struct perf_event *bp,
				 const struct perf_event_attr *attr,
				 const unsigned long *from)
{
	unsigned long flags;
	int err;

	if (!bp_can_repoint())
		return -EOPNOTSUPP;

	local_irq_save(flags);
	err = repoint_local(bp, attr, from);
	local_irq_restore(flags);

	return err;
}

int modify_wide_hw_breakpoint_local(struct perf_event *bp,
				    const struct perf_event_attr *attr)
{
	return repoint_local_irqsave(bp, attr, NULL);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_local);

int modify_wide_hw_breakpoint_local_from(struct perf_event *bp, unsigned long from,
					 const struct perf_event_attr *attr)
{
	return repoint_local_irqsave(bp, attr, &from);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_local_from);

/*
 * Returns a new version of the whole set as soon as it is published, even if
 * this CPU has not taken the kick yet.
 */
void read_wide_hw_breakpoint_local(const struct perf_event *bp,
				   struct hw_breakpoint_range *range)
{
	const struct bp_wide_cpu *wcpu = wcpu_of(bp);
	struct bp_version v;

	if (WARN_ON_ONCE(!wcpu)) {
		*range = (struct hw_breakpoint_range) { };
		return;
	}
	read_version_here(wcpu, &v);
	*range = v.range;
}
EXPORT_SYMBOL_GPL(read_wide_hw_breakpoint_local);

unsigned long bp_wide_addr_here(struct perf_event * __percpu *cpu_events)
{
	return read_here(raw_cpu_ptr(cpus_of(cpu_events))).addr;
}

unsigned long bp_wide_newest_addr(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide_set *set = set_of(cpu_events);
	struct bp_version v;

	return read_newest_version(set, &v) ? v.range.addr : set->attr.bp_addr;
}

/* ---- Adopting: on the CPU in question, interrupts off ---- */

/*
 * Makes the newest version of the set the current one of this CPU, unless the
 * CPU has adopted it already, possibly followed by a version of this CPU alone.
 * If a context that interrupts this one publishes a version of this CPU,
 * publishing fails here, and the loop reads the newest version again.
 */
static void take_newest(struct bp_wide_cpu *wcpu)
{
	struct bp_version own, newest;
	unsigned long now;

	do {
		now = bp_read_version(&wcpu->versions, &own);
		if (!read_newest_version(wcpu->set, &newest) || newest.base == own.base)
			return;
	} while (bp_publish_version(&wcpu->versions, now, &newest,
				    newest.base) == -EAGAIN);
}

/*
 * A context that interrupts this one may adopt a newer version.  Then this one
 * would overwrite @adopted with the older serial: compare with the newest
 * serial again.
 */
static void adopt(struct bp_wide_cpu *wcpu)
{
	struct perf_event *bp = READ_ONCE(wcpu->event);
	u64 serial;

	do {
		serial = bp_wide_serial(wcpu->set);
		if (bp) {
			take_newest(wcpu);
			bp_apply_version(bp);
		}
		/* Pairs with wide_hw_breakpoint_is_settled(). */
		atomic64_set_release(&wcpu->adopted, serial);
		barrier();
	} while (serial != bp_wide_serial(wcpu->set));
}

/*
 * adopt() on the CPU that has published @v as @serial.  A context that interrupted
 * this one after @seen was read may have published a newer version, or a version of
 * this CPU alone: then start from the version that is current now.
 */
static void adopt_own(struct bp_wide_cpu *wcpu, const struct bp_version *v, u64 serial,
		      unsigned long seen)
{
	struct perf_event *bp = READ_ONCE(wcpu->event);

	if (unlikely(!bp || bp_publish_version(&wcpu->versions, seen, v, serial))) {
		adopt(wcpu);
		return;
	}
	bp_apply_version(bp);
	/* Pairs with wide_hw_breakpoint_is_settled(). */
	atomic64_set_release(&wcpu->adopted, serial);
	barrier();
	if (unlikely(serial != bp_wide_serial(wcpu->set)))
		adopt(wcpu);
}

static void adopt_work(struct irq_work *work)
{
	adopt(container_of(work, struct bp_wide_cpu, adopt));
}

void bp_wide_catch_up(struct bp_wide_cpu *wcpu)
{
	unsigned long flags;

	/* A version may have been published since bp_wide_start_event(). */
	if (!bp_wide_serial(wcpu->set))
		return;
	local_irq_save(flags);
	adopt(wcpu);
	local_irq_restore(flags);
}

/* ---- Kicking: not in an NMI; preemption off ---- */

static void kick_others(struct bp_wide_set *set)
{
	int cpu, this_cpu = smp_processor_id();

	for_each_online_cpu(cpu) {
		struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);

		if (cpu != this_cpu && atomic64_read(&wcpu->adopted) != bp_wide_serial(wcpu->set))
			irq_work_queue_on(&wcpu->adopt, cpu);
	}
}

static void kick_all(struct bp_wide_set *set)
{
	preempt_disable();
	bp_wide_catch_up(this_cpu_ptr(set->cpus));
	kick_others(set);
	preempt_enable();
}

void bp_wide_kick(struct perf_event * __percpu *events)
{
	kick_all(set_of(events));
}

static enum hrtimer_restart late_kick(struct hrtimer *late)
{
	/* Pairs with the cmpxchg in publish_wide_entry(), see "Storms" above. */
	smp_mb();
	kick_all(container_of(late, struct bp_wide_set, late));
	return HRTIMER_NORESTART;
}

static void relay_work(struct irq_work *work)
{
	struct bp_wide_set *set = container_of(work, struct bp_wide_cpu, relay)->set;

	/* A CPU that goes offline runs its last relay after its timers have left it. */
	if (!cpu_online(smp_processor_id()) || __ratelimit(&set->relays))
		kick_others(set);
	else if (!hrtimer_is_queued(&set->late))
		hrtimer_start(&set->late, TICK_NSEC, HRTIMER_MODE_REL_HARD);
}

/* The idle task runs because of the interrupt that woke it. */
static bool is_caused_by_task(unsigned long flags)
{
	return in_task() && !irqs_disabled_flags(flags) && !is_idle_task(current);
}

/* Called after the cmpxchg of bp_wide_set::newest; see "Hotplug" above. */
static void kick_others_or_relay(struct bp_wide_cpu *wcpu, unsigned long flags)
{
	/* A CPU that is online will call bp_wide_kick(). */
	if (!cpu_online(raw_smp_processor_id()))
		return;
	if (num_online_cpus() == 1)
		return;
	if (is_caused_by_task(flags))
		kick_others(wcpu->set);
	else if (!hrtimer_is_queued(&wcpu->set->late))
		irq_work_queue(&wcpu->relay);
}

/* ---- Publishing: interrupts off ---- */

static u64 pack(u64 serial, unsigned int cpu, unsigned int i)
{
	return (serial << BP_NEWEST_CPU_BITS | cpu) << BP_NEWEST_ENTRY_BITS | i;
}

static void fill_wide_entry(struct bp_wide_entry *entry, const struct bp_version *v)
{
	WRITE_ONCE(entry->serial, 0);
	/* Pairs with smp_rmb() in read_wide_entry(). */
	smp_wmb();
	/* A reader that copies this meanwhile drops the copy. */
	data_race(entry->version = *v);
}

/* Index of the entry at @depth that does not store the newest version */
static unsigned int own_wide_entry(const struct bp_wide_cpu *wcpu, unsigned int depth)
{
	u64 newest = bp_read_newest(wcpu->set);
	unsigned int i = 2 * depth;

	/* True if the newest version is in entry i of this CPU; any serial matches. */
	if (newest && newest == pack(bp_newest_serial(newest), raw_smp_processor_id(), i))
		i++;
	return i;
}

/*
 * A context that interrupted this one after watches_here() may have repointed
 * this CPU alone: then bp_versions::now of the CPU is not @seen any more.  That
 * change is the later one.  Its base is the serial @base, so the CPU would
 * adopt version @next instead: set its base to @next.
 */
static void keep_local(struct bp_wide_cpu *wcpu, unsigned long seen, u64 base, u64 next)
{
	struct bp_version own;
	unsigned long now;

	do {
		now = bp_read_version(&wcpu->versions, &own);
		if (now == seen || own.base != base)
			return;
	} while (bp_publish_version(&wcpu->versions, now, &own, next) == -EAGAIN);
}

/**
 * struct bp_published - what publish_wide_entry() has replaced, and with what
 * @seen: bp_versions::now of this CPU before that
 * @serial: serial of the new version
 */
struct bp_published {
	unsigned long	seen;
	u64		serial;
};

/*
 * Returns true if this CPU watches @from.  The answer holds as long as
 * bp_wide_set::newest is *@newest and bp_versions::now of this CPU is *@seen.
 */
static bool watches_here(const struct bp_wide_cpu *wcpu, unsigned long from,
			 u64 *newest, unsigned long *seen)
{
	struct bp_here here;

	do {
		*newest = bp_read_newest(wcpu->set);
		here = read_here(wcpu);
	} while (here.base != bp_newest_serial(*newest));

	*seen = here.now;
	return here.addr == from;
}

/* @from: NULL, or the address that this CPU has to watch now */
static __always_inline int publish_wide_entry(struct bp_wide_cpu *wcpu, unsigned int i,
					      const unsigned long *from,
					      struct bp_published *p)
{
	struct bp_wide_set *set = wcpu->set;
	u64 newest, next;

	/* Before the cmpxchg: adopt_own() must notice each change that comes after it. */
	p->seen = READ_ONCE(wcpu->versions.now);
	barrier();
	newest = bp_read_newest(set);
	/* The cmpxchg fails if a version is published after the comparison. */
	do {
		if (from && !watches_here(wcpu, *from, &newest, &p->seen))
			return -EAGAIN;
		p->serial = bp_newest_serial(newest) + 1;
		next = pack(p->serial, raw_smp_processor_id(), i);
		/* Pairs with read_wide_entry(). */
		smp_store_release(&wcpu->entry[i].serial, (unsigned long)p->serial);
	} while (!atomic64_try_cmpxchg(&set->newest, (s64 *)&newest, next));

	if (from)
		keep_local(wcpu, p->seen, bp_newest_serial(newest), p->serial);

	return 0;
}

static int publish(struct bp_wide_cpu *wcpu, const struct bp_version *v,
		   const unsigned long *from)
{
	unsigned int depth = READ_ONCE(wcpu->depth), i;
	struct bp_published p;
	int err;

	if (WARN_ON_ONCE(depth >= BP_VERSIONS_DEPTH))
		return -EBUSY;
	WRITE_ONCE(wcpu->depth, depth + 1);
	barrier();
	i = own_wide_entry(wcpu, depth);
	fill_wide_entry(&wcpu->entry[i], v);
	err = publish_wide_entry(wcpu, i, from, &p);
	barrier();
	WRITE_ONCE(wcpu->depth, depth);

	if (!err)
		adopt_own(wcpu, v, p.serial, p.seen);
	return err;
}

static int check(const struct bp_wide_set *set, const struct perf_event_attr *attr,
		 struct bp_version *v)
{
	int err;

	if (!bp_can_repoint_wide())
		return -EOPNOTSUPP;
	if (attr->config != set->attr.config || !bp_same_registers(attr, &set->attr))
		return -EINVAL;
	err = hw_breakpoint_arch_parse(NULL, attr, &v->hw);
	if (err)
		return err;
	if (set->attr.exclude_kernel && arch_check_bp_in_kernelspace(&v->hw))
		return -EINVAL;
	v->range = bp_range(attr);
	v->base = 0;

	return 0;
}

int bp_wide_prepare(struct perf_event * __percpu *cpu_events,
		    const struct perf_event_attr *attr, struct bp_version *v)
{
	return check(set_of(cpu_events), attr, v);
}

int bp_wide_prepare_at(struct perf_event * __percpu *cpu_events,
		       const struct bp_version *like, unsigned long addr,
		       struct bp_version *v)
{
	int err;

	if (!bp_can_repoint_wide())
		return -EOPNOTSUPP;
	err = arch_hw_breakpoint_move(&like->hw, addr, &v->hw);
	if (err)
		return err;
	if (unlikely(set_of(cpu_events)->attr.exclude_kernel) &&
	    arch_check_bp_in_kernelspace(&v->hw))
		return -EINVAL;

	v->range = like->range;
	v->range.addr = addr;
	v->base = 0;
	return 0;
}

int bp_wide_repoint(struct perf_event * __percpu *cpu_events, const struct bp_version *v,
		    const unsigned long *from)
{
	struct bp_wide_cpu *wcpu;
	unsigned long flags;
	int err;

	if (!bp_can_repoint_wide())
		return -EOPNOTSUPP;
	preempt_disable_notrace();
	local_irq_save(flags);
	wcpu = this_cpu_ptr(cpus_of(cpu_events));
	err = publish(wcpu, v, from);
	local_irq_restore(flags);
	if (!err)
		kick_others_or_relay(wcpu, flags);
	preempt_enable_notrace();

	return err;
}

int bp_wide_repoint_local(struct perf_event * __percpu *cpu_events,
			  const struct bp_version *v, const unsigned long *from)
{
	struct bp_wide_cpu *wcpu = raw_cpu_ptr(cpus_of(cpu_events));
	int err = -ENODEV;
	unsigned long flags;

	if (!bp_can_repoint_wide())
		return -EOPNOTSUPP;
	local_irq_save(flags);
	if (wcpu->event)
		err = publish_local(wcpu, v, from);
	if (!err)
		bp_apply_version(wcpu->event);
	local_irq_restore(flags);

	return err;
}

static int check_and_repoint(struct perf_event * __percpu *cpu_events,
			     const struct perf_event_attr *attr, const unsigned long *from)
{
	struct bp_version v;

	return bp_wide_prepare(cpu_events, attr, &v) ?:
	       bp_wide_repoint(cpu_events, &v, from);
}

int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			      const struct perf_event_attr *attr)
{
	return check_and_repoint(cpu_events, attr, NULL);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint);

int modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
				   unsigned long from,
				   const struct perf_event_attr *attr)
{
	return check_and_repoint(cpu_events, attr, &from);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_from);

/* ---- Waiting for all CPUs ---- */

bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide_set *set = set_of(cpu_events);
	u64 serial = bp_newest_serial(bp_read_newest(set));
	int cpu;

	for_each_online_cpu(cpu) {
		/* Pairs with adopt(), which writes @adopted last. */
		if (atomic64_read_acquire(&per_cpu_ptr(set->cpus, cpu)->adopted) < serial)
			return false;
	}

	return true;
}
EXPORT_SYMBOL_GPL(wide_hw_breakpoint_is_settled);

static void adopt_now(void *cpus)
{
	adopt(this_cpu_ptr((struct bp_wide_cpu __percpu *)cpus));
}

void synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events)
{
	if (bp_can_repoint_wide())
		on_each_cpu(adopt_now, (__force void *)cpus_of(cpu_events), 1);
}
EXPORT_SYMBOL_GPL(synchronize_wide_hw_breakpoint);
