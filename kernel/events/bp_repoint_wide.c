// SPDX-License-Identifier: GPL-2.0
/*
 * Repointing a kernel-wide breakpoint on all CPUs, from any context.
 *
 * A set has one newest version.  A repointer, in whatever context on whatever
 * CPU, does three things:
 *
 *  1. it publishes its version with a cmpxchg of bp_wide_set::newest;
 *  2. it makes its own CPU watch it, before it returns;
 *  3. it kicks each other online CPU, which adopts what is newest by then.
 *
 * Order.  The cmpxchg gives each version a serial, and a CPU that adopts never
 * takes "the version of the kick" but the newest one.  So of two concurrent
 * repointers the one with the higher serial wins on every CPU, however their
 * kicks overtake each other, and no CPU returns to an older version.  A CPU that
 * is repointed alone, by modify_wide_hw_breakpoint_local(), notes the serial that
 * was newest then (bp_version::base) and keeps its own version until the set is
 * repointed again.
 *
 * Storage.  A version lives in a slot of the CPU that publishes it.  A writer
 * takes one of the two slots of its nesting depth, the one that is not newest: no
 * other context writes that slot, and no reader accepts it, for:
 *
 *	writer					reader
 *	slot->serial = 0			n = newest (acquire)
 *	smp_wmb()			  A	copy slot of n
 *	slot->version = ...			smp_rmb()		  A
 *	slot->serial = s  (release)		slot->serial == serial of n?
 *	cmpxchg(newest, s | slot) (full)
 *
 * A copy that is torn has seen a store after the writer's barrier A, so the read
 * after the reader's barrier A sees serial 0 or a later one, and the reader starts
 * again.  A slot is written only after another version became newest: each retry
 * means that some repointer made progress, and a reader that interrupted a writer
 * of its own CPU never waits for it.
 *
 * Kicks.  An irq_work of the remote CPU.  irq_work_queue_on() sends an IPI and
 * must not run in NMI context, which #DB of the kernel is too, nor while
 * stop_machine() takes a CPU down, for which interrupts are off: there the
 * repointer queues an irq_work on its own CPU, which kicks when interrupts are on
 * again.  A kick that is still pending is not queued twice: its function has not
 * yet read newest (irq_work clears PENDING, with a full barrier, before it calls
 * the function), so it adopts this version as well.
 *
 * Hotplug.  A CPU that is seen online stays so until preemption is on again,
 * because stop_machine() takes it down, and the CPU runs what irq_works it has by
 * then after it has left cpu_online_mask, for the last time.  An irq_work that it
 * queues on itself after that stays pending for ever: kprobes are hit until the CPU
 * is dead.  So a CPU that is not online kicks no other CPU.  A live CPU does it
 * instead, with bp_wide_kick(): once the dying CPU is dead, or when the CPU that comes
 * up is online.
 *
 * A CPU that comes online is in cpu_online_mask before it makes its event:
 *
 *	repointer				CPU that comes online
 *	cmpxchg newest  (full barrier)		set_cpu_online()
 *	read cpu_online_mask			hotplug state machine (full barriers)
 *						read newest, make the event
 *
 * One of the two sees what the other has written: it is kicked, or makes its event
 * with this version.
 *
 * What can be missed.  From the return of a repointer its own CPU watches the new
 * range.  Another CPU goes on watching the old one until it takes the kick, which
 * is as long as it has interrupts off.  No caller in an arbitrary context can wait
 * for that: the lock that the other CPU spins for may be its own.  An access by
 * such a CPU in that window is not seen, and that is the one gap there is; it is
 * never silent: wide_hw_breakpoint_is_settled() tells whether it is open, and
 * synchronize_wide_hw_breakpoint() closes it for callers that may sleep.  A hit
 * of the old range in the window is reported with the old address.
 */

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "bp_internal.h"
#include "bp_repoint.h"
#include "bp_repoint_wide.h"

static_assert(offsetof(struct bp_wide_cpu, event) == 0);

static_assert(2 * BP_VERSIONS_DEPTH <= 1 << BP_NEWEST_SLOT_BITS);
static_assert(NR_CPUS <= 1 << BP_NEWEST_CPU_BITS);

static u64 pack(u64 serial, unsigned int cpu, unsigned int i)
{
	return (serial << BP_NEWEST_CPU_BITS | cpu) << BP_NEWEST_SLOT_BITS | i;
}

static struct bp_wide_slot *slot_of(const struct bp_wide_set *set, u64 newest)
{
	unsigned int cpu = (newest >> BP_NEWEST_SLOT_BITS) & ((1 << BP_NEWEST_CPU_BITS) - 1);
	unsigned int i = newest & ((1 << BP_NEWEST_SLOT_BITS) - 1);

	return &per_cpu_ptr(set->cpus, cpu)->slot[i];
}

/* ---- Reading ---- */

/* False if the slot was written again, after another version became newest. */
static bool read_slot(const struct bp_wide_set *set, u64 newest, struct bp_version *v)
{
	const struct bp_wide_slot *slot = slot_of(set, newest);

	*v = data_race(slot->version);
	/* Pairs with smp_wmb() in fill_slot(). */
	smp_rmb();
	return READ_ONCE(slot->serial) == (unsigned long)bp_newest_serial(newest);
}

/* Reads the newest version. False if there is none: the set was never repointed. */
static bool read_newest_version(const struct bp_wide_set *set, struct bp_version *v)
{
	u64 newest;

	do {
		newest = bp_read_newest(set);
		if (!newest)
			return false;
	} while (!read_slot(set, newest, v));

	v->base = bp_newest_serial(newest);
	return true;
}

/*
 * Reads what this CPU watches, or is about to: its own version, or the newest one if
 * the CPU has no event or has not adopted it.  v->base is the serial that was newest.
 * Interrupts are off.  Returns bp_versions::now, which changes with each version
 * that a context publishes that interrupts this one.
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

/* ---- The events of a set ---- */

static void adopt_work(struct irq_work *work);
static void relay_work(struct irq_work *work);

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

	/* Relays queue kicks. */
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->relay);
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->adopt);
}

/* ---- One CPU alone: not preemptible ---- */

static struct bp_wide_cpu *wcpu_of(const struct perf_event *bp)
{
	return bp_is_wide(bp) ? bp_wide_cpu_of_event(bp) : NULL;
}

/*
 * The version stays until the set is repointed once more.  If another CPU does that
 * after the comparison with @from, the base of @v is too old, and this CPU adopts
 * the newer version.
 */
static int publish_local(struct bp_wide_cpu *wcpu, struct bp_version *v,
			 const unsigned long *from)
{
	struct bp_version current_version;
	unsigned long now;
	int err;

	do {
		now = read_version_here(wcpu, &current_version);
		if (from && current_version.range.addr != *from)
			return -EAGAIN;
		v->base = current_version.base;
		err = bp_publish_version(&wcpu->versions, now, v);
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
 * What the set was repointed to counts from then on, also if the kick has not come
 * in yet.
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

/* A generic atomic64_t takes a lock, which an NMI must not. */
#if defined(arch_hw_breakpoint_repoint) && !defined(CONFIG_GENERIC_ATOMIC64)
/* ---- Adopting: on the CPU in question, interrupts off ---- */

/*
 * Makes the newest version the current one of this CPU, unless it is already, or a
 * version of this CPU alone was made after it.  A context that interrupts this one
 * may do the same with a newer version: then publishing fails, and this starts
 * again from what is newest by then.
 */
static void take_newest(struct bp_wide_cpu *wcpu)
{
	struct bp_version own, newest;
	unsigned long now;

	do {
		now = bp_read_version(&wcpu->versions, &own);
		if (!read_newest_version(wcpu->set, &newest) || newest.base == own.base)
			return;
	} while (bp_publish_version(&wcpu->versions, now, &newest) == -EAGAIN);
}

/*
 * A context that interrupts this one may adopt a newer version, and have its
 * @adopted overwritten: hence the second look.
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
		/* Pairs with is_settled(). */
		atomic64_set_release(&wcpu->adopted, serial);
		barrier();
	} while (serial != bp_wide_serial(wcpu->set));
}

static void adopt_work(struct irq_work *work)
{
	adopt(container_of(work, struct bp_wide_cpu, adopt));
}

void bp_wide_catch_up(struct bp_wide_cpu *wcpu)
{
	unsigned long flags;

	/* Pairs with bp_wide_start_event(): there may be a newer one since. */
	if (!bp_wide_serial(wcpu->set))
		return;
	local_irq_save(flags);
	adopt(wcpu);
	local_irq_restore(flags);
}

/* ---- Kicking: not in NMI, interrupts were on, preemption off ---- */

static void kick_others(struct bp_wide_set *set)
{
	int cpu, this_cpu = smp_processor_id();

	for_each_online_cpu(cpu) {
		struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);

		if (cpu != this_cpu && atomic64_read(&wcpu->adopted) != bp_wide_serial(wcpu->set))
			irq_work_queue_on(&wcpu->adopt, cpu);
	}
}

static void relay_work(struct irq_work *work)
{
	kick_others(container_of(work, struct bp_wide_cpu, relay)->set);
}

void bp_wide_kick(struct perf_event * __percpu *events)
{
	struct bp_wide_set *set = set_of(events);

	preempt_disable();
	bp_wide_catch_up(this_cpu_ptr(set->cpus));
	kick_others(set);
	preempt_enable();
}

/* Pairs with the text on hotplug above: newest is written before this. */
static void tell_others(struct bp_wide_cpu *wcpu, unsigned long flags)
{
	/* bp_wide_kick() follows. */
	if (!cpu_online(raw_smp_processor_id()))
		return;
	if (num_online_cpus() == 1)
		return;
	if (in_nmi() || irqs_disabled_flags(flags))
		irq_work_queue(&wcpu->relay);
	else
		kick_others(wcpu->set);
}

/* ---- Publishing: interrupts off ---- */

static void fill_slot(struct bp_wide_slot *slot, const struct bp_version *v)
{
	WRITE_ONCE(slot->serial, 0);
	/* Pairs with smp_rmb() in read_slot(). */
	smp_wmb();
	data_race(slot->version = *v);
}

/* The slot that no reader and no interrupted writer uses */
static unsigned int own_slot(const struct bp_wide_cpu *wcpu, unsigned int depth)
{
	unsigned int i = 2 * depth;
	u64 newest = bp_read_newest(wcpu->set);

	return newest && slot_of(wcpu->set, newest) == &wcpu->slot[i] ? i + 1 : i;
}

/* Whether this CPU watches @from, with @newest and its own version @seen */
static bool watches_here(const struct bp_wide_cpu *wcpu, unsigned long from,
			 u64 *newest, unsigned long *seen)
{
	struct bp_version here;

	do {
		*newest = bp_read_newest(wcpu->set);
		*seen = read_version_here(wcpu, &here);
	} while (here.base != bp_newest_serial(*newest));

	return here.range.addr == from;
}

/*
 * A context that interrupted this one after watches_here() may have repointed this
 * CPU alone: then the CPU's version is not @seen any more.  That change is the later
 * one: let it stay, although it is based on @base.
 */
static void keep_local(struct bp_wide_cpu *wcpu, unsigned long seen, u64 base, u64 next)
{
	struct bp_version own;
	unsigned long now;

	do {
		now = bp_read_version(&wcpu->versions, &own);
		if (now == seen || own.base != base)
			return;
		own.base = next;
	} while (bp_publish_version(&wcpu->versions, now, &own) == -EAGAIN);
}

/* @from: NULL, or the address that this CPU has to watch now */
static int publish_slot(struct bp_wide_cpu *wcpu, unsigned int i,
			const unsigned long *from)
{
	struct bp_wide_set *set = wcpu->set;
	u64 newest = bp_read_newest(set), next;
	unsigned long seen = 0;

	/* Nothing is published in between, or the cmpxchg fails. */
	do {
		if (from && !watches_here(wcpu, *from, &newest, &seen))
			return -EAGAIN;
		next = pack(bp_newest_serial(newest) + 1, raw_smp_processor_id(), i);
		/* Pairs with read_slot(). */
		smp_store_release(&wcpu->slot[i].serial, (unsigned long)bp_newest_serial(next));
	} while (!atomic64_try_cmpxchg(&set->newest, (s64 *)&newest, next));

	if (from)
		keep_local(wcpu, seen, bp_newest_serial(newest), bp_newest_serial(next));

	return 0;
}

static int publish(struct bp_wide_cpu *wcpu, const struct bp_version *v,
		   const unsigned long *from)
{
	unsigned int depth = READ_ONCE(wcpu->depth), i;
	int err;

	if (WARN_ON_ONCE(depth >= BP_VERSIONS_DEPTH))
		return -EBUSY;
	WRITE_ONCE(wcpu->depth, depth + 1);
	barrier();
	i = own_slot(wcpu, depth);
	fill_slot(&wcpu->slot[i], v);
	err = publish_slot(wcpu, i, from);
	barrier();
	WRITE_ONCE(wcpu->depth, depth);

	return err;
}

static int check(const struct bp_wide_set *set, const struct perf_event_attr *attr,
		 struct bp_version *v)
{
	int err;

	if (attr->config != set->attr.config || !bp_same_registers(attr, &set->attr))
		return -EINVAL;
	err = hw_breakpoint_arch_parse(NULL, attr, &v->hw);
	if (err)
		return err;
	if (set->attr.exclude_kernel && arch_check_bp_in_kernelspace(&v->hw))
		return -EINVAL;

	return 0;
}

static int repoint_all(struct perf_event * __percpu *cpu_events,
		       const struct perf_event_attr *attr, const unsigned long *from)
{
	struct bp_version v = { .range = bp_range(attr) };
	struct bp_wide_cpu *wcpu;
	unsigned long flags;
	int err;

	preempt_disable_notrace();
	local_irq_save(flags);
	wcpu = this_cpu_ptr(cpus_of(cpu_events));
	err = check(wcpu->set, attr, &v);
	if (!err)
		err = publish(wcpu, &v, from);
	if (!err)
		adopt(wcpu);
	local_irq_restore(flags);
	if (!err)
		tell_others(wcpu, flags);
	preempt_enable_notrace();

	return err;
}

int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			      const struct perf_event_attr *attr)
{
	return repoint_all(cpu_events, attr, NULL);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint);

int modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
				   unsigned long from,
				   const struct perf_event_attr *attr)
{
	return repoint_all(cpu_events, attr, &from);
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_from);

/* ---- Whether it is done everywhere ---- */

bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide_set *set = set_of(cpu_events);
	u64 serial = bp_newest_serial(bp_read_newest(set));
	int cpu;

	for_each_online_cpu(cpu) {
		/* Pairs with adopt(): the CPU watches what it says. */
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
	on_each_cpu(adopt_now, (__force void *)cpus_of(cpu_events), 1);
}
EXPORT_SYMBOL_GPL(synchronize_wide_hw_breakpoint);
#else
static void adopt_work(struct irq_work *work) { }
static void relay_work(struct irq_work *work) { }

void bp_wide_catch_up(struct bp_wide_cpu *wcpu) { }
void bp_wide_kick(struct perf_event * __percpu *events) { }

int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events,
			      const struct perf_event_attr *attr)
{
	return -EOPNOTSUPP;
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint);

int modify_wide_hw_breakpoint_from(struct perf_event * __percpu *cpu_events,
				   unsigned long from,
				   const struct perf_event_attr *attr)
{
	return -EOPNOTSUPP;
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_from);

bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events)
{
	return true;
}
EXPORT_SYMBOL_GPL(wide_hw_breakpoint_is_settled);

void synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events) { }
EXPORT_SYMBOL_GPL(synchronize_wide_hw_breakpoint);
#endif
