// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel-wide breakpoints: sets of one event for each online CPU, all or none, whose
 * address can be changed (repointed) in any context.
 *
 * A set makes one claim of the machine, before the first event is created, and
 * releases it after the last event is gone.  The claim covers all events of the
 * set, which have none of their own, and the CPUs that come online later.  Events
 * are created disabled and enabled when all of them exist.
 *
 * Locking: cpu_hotplug_lock, then bp_wide_mutex, then what perf takes.  Repointing takes
 * no lock.  Type and length of a set never change.
 *
 * Repointing.  A set has one address and a sequence number.  A repointer (a call of
 * modify_wide_hw_breakpoint() in any context on any CPU) does four things:
 *
 *  1. it stores the address, or changes it with a cmpxchg;
 *  2. it increments the sequence number;
 *  3. it makes its own CPU adopt (watch) the address before it returns;
 *  4. it kicks each other online CPU, which then does the same.
 *
 * A CPU that adopts reads the sequence number, then the address, and has settled that
 * number:
 *
 *	repointer				CPU that adopts
 *	set->addr = A				s = set->seq  (acquire)
 *	set->seq++  (fully ordered)		watch set->addr
 *						wcpu->settled = s  (release)
 *						set->seq == s?  Else again.
 *
 * A CPU that reads the new number reads the new address or a later one.  All stores to
 * one address have one order, so of two concurrent repointers the same one is last for
 * every CPU, in whatever order the kicks arrive, and no CPU returns to an older address.
 * The second read of the number is for a repointer that interrupts the CPU that adopts,
 * which would otherwise go back to the older address that it has read.
 *
 * One CPU alone.  A CPU that is repointed alone has a pair of its own: the address, and
 * the sequence number of the set at that time.  The CPU watches its own address as long as
 * the number of the set is the same.  So a change of all CPUs takes effect, in the order of
 * changes of one CPU alone, when it increments the number.  The two words of the pair must
 * change together, for contexts that interrupt each other on that CPU, and so that a
 * compare-and-change does not overwrite another change.  One word cannot do that: if the
 * pair of a former sequence number were overwritten word by word, or with a cmpxchg of the
 * address, a change of this CPU by an interrupting context could be overwritten by the
 * interrupted one.  So the CPU has two pairs for each nesting depth, and
 * bp_wide_cpu::now names the current one, see publish_pair().
 *
 * A CPU computes what it watches from these words, see read_here().  Adopting only copies
 * the result to event->attr.bp_addr, from where the architecture takes it; whoever
 * interrupts an update of the registers leaves them to that update.
 *
 * Compare-and-change of all CPUs is a cmpxchg of the address, for a CPU that watches the
 * address of the set.  A CPU with a pair compares with that, and the cmpxchg notices that the
 * address of the set has changed since.  It does not notice a repointer on another CPU that
 * is between its store and its increment at that moment, nor changes after which the set has
 * its former address again: these may be overwritten.
 *
 * Kicks.  A kick is an irq_work on the remote CPU.  irq_work_queue_on() sends
 * an IPI.  It must not run in NMI context, to which a #DB in the kernel
 * belongs, nor while stop_machine() takes a CPU down, where interrupts are off.
 * So unless the repointer is a task with interrupts on, it queues an irq_work on
 * its own CPU, the relay, which kicks the others as soon as interrupts are on.  A kick
 * that is still pending is not queued again: irq_work clears PENDING, with a
 * full barrier, before it calls the function, so the function has not read
 * the sequence number yet and will adopt this address as well.
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
 *	set->seq++  (fully ordered)		set->late is not queued
 *	set->late is queued?			smp_mb()
 *	yes: return				read set->seq, kick
 *
 * Loops.  The code that adopts an address, and the code that updates the registers, run
 * again after a change by a context that interrupted them.  They never end if they cause the
 * change themselves, by a kprobe in this code or a watch event on memory that it accesses.
 * So refuse changes after BP_CHANGES of them, unless a relay has run on this CPU, or a task
 * has made a change with interrupts on, since: both need that these loops have ended.
 *
 * Hotplug.  stop_machine() takes a CPU down, so a CPU that is seen online stays
 * online until preemption is on again.  After it has left cpu_online_mask, the
 * CPU runs its pending irq_works for the last time; an irq_work that it queues
 * on itself later stays pending for ever.  A dying CPU can repoint even then,
 * because kprobes are hit on it until it is dead.  So a CPU that is not online
 * kicks no other CPU.  A live CPU does that instead, with kick_for_offline_cpu(): after
 * the dying CPU is dead, or when the CPU that comes up is online.
 *
 * A CPU that comes online is in cpu_online_mask before it makes its event:
 *
 *	repointer				CPU that comes online
 *	set->seq++  (full barrier)		set_cpu_online()
 *	read cpu_online_mask			hotplug state machine (full barriers)
 *						make the event, adopt
 *
 * At least one of them sees the store of the other: the repointer kicks the new
 * CPU, or the new CPU adopts this address.
 *
 * Missed accesses.  When a repointer returns, its own CPU watches the new
 * address.  Each other CPU watches the old one until it takes the kick, which
 * it does as soon as its interrupts are on.  A repointer in an arbitrary
 * context cannot wait for that: the other CPU may spin, with interrupts off,
 * for a lock that the repointer holds.  So an access to the new address by such a
 * CPU is missed in that window.  It is the only gap, and callers can detect it:
 * wide_hw_breakpoint_is_settled() returns whether the window is closed, and
 * synchronize_wide_hw_breakpoint() waits until it is, for callers with
 * interrupts on.  A hit of the old address in the window is reported with the old
 * address.
 *
 * tools/testing/selftests/hw_breakpoint/model/bp_wide.pml is a model of this file.
 */

#define pr_fmt(fmt) "hw-breakpoint: " fmt

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "internal.h"

static_assert(offsetof(struct bp_wide_cpu, event) == 0);

static DEFINE_MUTEX(bp_wide_mutex);
static LIST_HEAD(bp_wide_sets);

static struct bp_wide *set_of(struct perf_event * __percpu *events)
{
	return raw_cpu_ptr(bp_wide_cpus(events))->set;
}

static u64 read_seq(const struct bp_wide *set)
{
	/* Pairs with the increment in advance(): the address is read after it. */
	return atomic64_read_acquire(&set->seq);
}

/* ---- What this CPU watches: not preemptible ---- */

#define NR_PAIRS	(2 * BP_WIDE_DEPTH)

/* Index in bp_wide_cpu::pair of the pair that bp_wide_cpu::now names */
static unsigned int pair_index(unsigned long now)
{
	return now % NR_PAIRS;
}

/**
 * struct bp_here - what this CPU watches, or is about to adopt
 * @addr: the address
 * @all: address of the set
 * @seq: sequence number of the set
 * @now: bp_wide_cpu::now
 */
struct bp_here {
	unsigned long	addr;
	unsigned long	all;
	u64		seq;
	unsigned long	now;
};

/* Returns false if a context that interrupted the caller, or another CPU, has changed it. */
static __always_inline bool is_here(const struct bp_wide_cpu *wcpu, const struct bp_here *here)
{
	barrier();
	return READ_ONCE(wcpu->now) == here->now && read_seq(wcpu->set) == here->seq;
}

/* A CPU without an event has no pair: a former one is not valid. */
static __always_inline struct bp_here read_here(const struct bp_wide_cpu *wcpu)
{
	const struct bp_wide_pair *pair;
	struct bp_here here __uninitialized;

	do {
		here.now = READ_ONCE(wcpu->now);
		barrier();
		pair = &wcpu->pair[pair_index(here.now)];
		here.seq = read_seq(wcpu->set);
		here.all = READ_ONCE(wcpu->set->addr);
		here.addr = here.all;
		/* The pair may be overwritten meanwhile: then bp_wide_cpu::now has changed. */
		if (unlikely(data_race(pair->seq) == here.seq) && READ_ONCE(wcpu->event))
			/* As above */
			here.addr = data_race(pair->addr);
	} while (!is_here(wcpu, &here));

	return here;
}

/*
 * Makes (@here->seq, @addr) the pair of this CPU, and updates @here, if bp_wide_cpu::now is
 * @here->now.
 *
 * A context that interrupts this one before bp_wide_cpu::depth is incremented uses the same
 * two pairs, but changes bp_wide_cpu::now, so that the interrupted one fails.  A context that
 * interrupts after the increment uses other pairs.
 */
static __always_inline int publish_pair(struct bp_wide_cpu *wcpu, struct bp_here *here,
					unsigned long addr)
{
	unsigned int depth = READ_ONCE(wcpu->depth), i = 2 * depth;
	unsigned long next, now = here->now;
	int err = -EAGAIN;

	if (WARN_ON_ONCE(depth >= BP_WIDE_DEPTH))
		return -EBUSY;
	if (pair_index(now) == i)
		i++;
	next = now - pair_index(now) + NR_PAIRS + i;

	WRITE_ONCE(wcpu->depth, depth + 1);
	barrier();
	if (READ_ONCE(wcpu->now) == now) {
		wcpu->pair[i] = (struct bp_wide_pair) { .seq = here->seq, .addr = addr };
		barrier();
		if (try_cmpxchg_local(&wcpu->now, &now, next)) {
			here->now = next;
			here->addr = addr;
			err = 0;
		}
	}
	barrier();
	WRITE_ONCE(wcpu->depth, depth);

	return err;
}

/* ---- Adopting: on the CPU in question, interrupts off ---- */

static __always_inline void adopt_here(struct bp_wide_cpu *wcpu, struct bp_here *here)
{
	struct perf_event *bp = READ_ONCE(wcpu->event);

	for (;;) {
		if (bp) {
			WRITE_ONCE(bp->attr.bp_addr, here->addr);
			arch_hw_breakpoint_repoint(bp);
		}
		/* Pairs with wide_hw_breakpoint_is_settled(). */
		atomic64_set_release(&wcpu->settled, here->seq);
		if (likely(is_here(wcpu, here)))
			return;
		*here = read_here(wcpu);
	}
}

static void adopt(struct bp_wide_cpu *wcpu)
{
	struct bp_here here = read_here(wcpu);

	adopt_here(wcpu, &here);
}

static void adopt_work(struct irq_work *work)
{
	adopt(container_of(work, struct bp_wide_cpu, adopt));
}

static void adopt_irqsave(struct bp_wide_cpu *wcpu)
{
	unsigned long flags;

	local_irq_save(flags);
	adopt(wcpu);
	local_irq_restore(flags);
}

/* ---- Kicking: not in an NMI; preemption off ---- */

/* How often relays kick for a set in two ticks; see "Storms" above */
#define BP_RELAYS	16

/* How often a CPU may be repointed without an interrupt; see "Loops" above */
#define BP_CHANGES	10000

static DEFINE_PER_CPU(unsigned int, nr_changes);

static void kick_others(struct bp_wide *set)
{
	int cpu, this_cpu = smp_processor_id();

	for_each_online_cpu(cpu) {
		struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);

		/*
		 * irq_work_queue_on() would not queue a kick that is pending, but it writes to it.
		 * Pairs with the barrier of irq_work_single(): the increment comes before.
		 */
		if (cpu != this_cpu && atomic64_read(&wcpu->settled) != read_seq(set) &&
		    !irq_work_is_pending(&wcpu->adopt))
			irq_work_queue_on(&wcpu->adopt, cpu);
	}
}

static void kick_all(struct bp_wide *set)
{
	preempt_disable();
	adopt_irqsave(this_cpu_ptr(set->cpus));
	kick_others(set);
	preempt_enable();
}

static enum hrtimer_restart late_kick(struct hrtimer *late)
{
	/* Pairs with the increment in advance(), see "Storms" above. */
	smp_mb();
	kick_all(container_of(late, struct bp_wide, late));
	return HRTIMER_NORESTART;
}

static void relay_work(struct irq_work *work)
{
	struct bp_wide *set = container_of(work, struct bp_wide_cpu, relay)->set;

	this_cpu_write(nr_changes, 0);
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

/* Called after advance(); see "Hotplug" above. */
static void kick_others_or_relay(struct bp_wide_cpu *wcpu, unsigned long flags)
{
	/* Another CPU will call kick_for_offline_cpu(). */
	if (!cpu_online(raw_smp_processor_id()))
		return;
	if (num_online_cpus() == 1)
		return;
	if (is_caused_by_task(flags))
		kick_others(wcpu->set);
	else if (!hrtimer_is_queued(&wcpu->set->late))
		irq_work_queue(&wcpu->relay);
}

/* ---- Repointing: interrupts off ---- */

/* A task with interrupts on is in none of the loops. */
static noinline bool may_change_more(struct bp_wide_cpu *wcpu, unsigned long flags)
{
	if (is_caused_by_task(flags))
		this_cpu_write(nr_changes, 0);
	/* An offline CPU would never run it. */
	else if (cpu_online(raw_smp_processor_id()))
		irq_work_queue(&wcpu->relay);

	return this_cpu_read(nr_changes) <= BP_CHANGES;
}

static __always_inline bool may_change(struct bp_wide_cpu *wcpu, unsigned long flags)
{
	this_cpu_inc(nr_changes);
	return likely(__this_cpu_read(nr_changes) < BP_CHANGES / 2) ||
	       may_change_more(wcpu, flags);
}

static __always_inline int check_addr(const struct bp_wide *set, unsigned long addr)
{
	struct arch_hw_breakpoint hw __uninitialized;
	int err;

	if (!bp_can_repoint())
		return -EOPNOTSUPP;
	/* Checked when the set was registered: a set without an object goes back there. */
	if (addr == set->attr.bp_addr)
		return 0;
	err = arch_hw_breakpoint_move(&set->hw, addr, &hw);
	if (err)
		return err;
	/* The claim stays. */
	if (unlikely(hw_breakpoint_weight(&hw) != hw_breakpoint_weight(&set->hw)))
		return -EINVAL;
	if (unlikely(set->attr.exclude_kernel) && arch_check_bp_in_kernelspace(&hw))
		return -EINVAL;
	return 0;
}

/* Returns the new sequence number. */
static u64 advance(struct bp_wide *set)
{
	/* Fully ordered: after the store of the address, before cpu_online_mask is read. */
	return atomic64_inc_return(&set->seq);
}

/*
 * Called after a compare-and-change of all CPUs, the sequence number of which is @seq.  A
 * context that interrupted it after @before was read may have repointed this CPU alone.
 * That change is the later one, unless yet another change of all CPUs was later: it stays.
 */
static void keep_pair(struct bp_wide_cpu *wcpu, const struct bp_here *before, u64 seq)
{
	struct bp_here here = { .seq = seq };
	struct bp_wide_pair pair;

	do {
		do {
			here.now = READ_ONCE(wcpu->now);
			barrier();
			/* See read_here(). */
			pair = data_race(wcpu->pair[pair_index(here.now)]);
			barrier();
		} while (here.now != READ_ONCE(wcpu->now));
		if (here.now == before->now || pair.seq != before->seq || seq != before->seq + 1)
			return;
	} while (publish_pair(wcpu, &here, pair.addr) == -EAGAIN);
}

static int change_all_from(struct bp_wide_cpu *wcpu, unsigned long addr, unsigned long from)
{
	struct bp_wide *set = wcpu->set;
	struct bp_here here = read_here(wcpu);
	unsigned long all = here.all;

	if (here.addr != from || !try_cmpxchg(&set->addr, &all, addr))
		return -EAGAIN;
	keep_pair(wcpu, &here, advance(set));
	return 0;
}

static int change_all(struct bp_wide_cpu *wcpu, unsigned long addr, const unsigned long *from)
{
	if (from)
		return change_all_from(wcpu, addr, *from);
	WRITE_ONCE(wcpu->set->addr, addr);
	advance(wcpu->set);
	return 0;
}

/*
 * Without a comparison a change of all CPUs that comes before the pair is published is the
 * earlier one: again, with the new sequence number.  With a comparison it is the later one.
 */
static __always_inline int change_here(struct bp_wide_cpu *wcpu, unsigned long addr,
				       const unsigned long *from)
{
	struct bp_here here __uninitialized;
	int err;

	do {
		here = read_here(wcpu);
		if (from && here.addr != *from)
			return -EAGAIN;
		err = publish_pair(wcpu, &here, addr);
	} while (err == -EAGAIN || (!err && !from && read_seq(wcpu->set) != here.seq));

	if (!err)
		adopt_here(wcpu, &here);
	return err;
}

/* Comes after the change: what is stored in between is in the value that the look finds. */
static __always_inline void look_at_object(const struct bp_wide_cpu *wcpu)
{
	if (unlikely(wcpu->set->value))
		bp_value_follow(wcpu->set->value, read_here(wcpu).addr);
}

int modify_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events, unsigned long addr,
			      const unsigned long *from)
{
	struct bp_wide_cpu *wcpu;
	unsigned long flags;
	int err;

	err = check_addr(set_of(cpu_events), addr);
	if (err)
		return err;
	preempt_disable_notrace();
	local_irq_save(flags);
	wcpu = this_cpu_ptr(bp_wide_cpus(cpu_events));
	err = may_change(wcpu, flags) ? change_all(wcpu, addr, from) : -EBUSY;
	if (!err) {
		adopt(wcpu);
		look_at_object(wcpu);
	}
	local_irq_restore(flags);
	if (!err)
		kick_others_or_relay(wcpu, flags);
	preempt_enable_notrace();

	return err;
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint);

int modify_wide_hw_breakpoint_local(struct perf_event * __percpu *cpu_events,
				    unsigned long addr, const unsigned long *from)
{
	struct bp_wide_cpu *wcpu = raw_cpu_ptr(bp_wide_cpus(cpu_events));
	unsigned long flags;
	int err;

	err = check_addr(wcpu->set, addr);
	if (err)
		return err;
	local_irq_save(flags);
	if (!may_change(wcpu, flags))
		err = -EBUSY;
	else
		err = wcpu->event ? change_here(wcpu, addr, from) : -ENODEV;
	if (!err)
		look_at_object(wcpu);
	local_irq_restore(flags);

	return err;
}

unsigned long wide_hw_breakpoint_addr(struct perf_event * __percpu *cpu_events, bool here)
{
	const struct bp_wide_cpu *wcpu = raw_cpu_ptr(bp_wide_cpus(cpu_events));

	return here ? read_here(wcpu).addr : READ_ONCE(wcpu->set->addr);
}

/* ---- Waiting for all CPUs ---- */

bool wide_hw_breakpoint_is_settled(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set = set_of(cpu_events);
	u64 seq = read_seq(set);
	int cpu;

	for_each_online_cpu(cpu) {
		/* Pairs with adopt(), which writes @settled last. */
		if (atomic64_read_acquire(&per_cpu_ptr(set->cpus, cpu)->settled) < seq)
			return false;
	}

	return true;
}

static void adopt_now(void *cpus)
{
	adopt(this_cpu_ptr((struct bp_wide_cpu __percpu *)cpus));
}

void synchronize_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events)
{
	if (bp_can_repoint())
		on_each_cpu(adopt_now, (__force void *)bp_wide_cpus(cpu_events), 1);
}
EXPORT_SYMBOL_GPL(synchronize_wide_hw_breakpoint);

void bp_wide_stop_repoint(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set = set_of(cpu_events);
	int cpu;

	/* Relays start the timer and queue kicks, and the timer queues kicks. */
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->relay);
	hrtimer_cancel(&set->late);
	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(set->cpus, cpu)->adopt);
}

/* ---- The events of a set ---- */

/* Creates the event of an online CPU, disabled. */
static int make_event(struct bp_wide *set, int cpu)
{
	struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);
	struct perf_event_attr attr = set->attr;
	struct perf_event *bp;

	lockdep_assert_held(&bp_wide_mutex);

	attr.disabled = 1;
	attr.bp_addr = READ_ONCE(set->addr);
	bp = bp_create_wide_event(&attr, cpu, set->triggered, set->context);
	if (IS_ERR(bp))
		return PTR_ERR(bp);

	bp->attr.disabled = set->attr.disabled;
	bp->hw.bp_wide = wcpu;
	if (set->value)
		bp_value_share(bp, set->value);
	/* What the CPU watched alone, before it went offline, is no longer valid. */
	memset(wcpu->pair, 0, sizeof(wcpu->pair));
	/* From here on a kick finds the event. */
	barrier();
	WRITE_ONCE(wcpu->event, bp);
	/* If the set was repointed since, this is @cpu: it is coming online. */
	if (read_seq(set) != BP_WIDE_FIRST_SEQ)
		adopt_irqsave(wcpu);
	return 0;
}

static void enable_event(struct bp_wide *set, int cpu)
{
	if (!set->attr.disabled)
		perf_event_enable(per_cpu_ptr(set->cpus, cpu)->event);
}

static void drop_event(struct bp_wide *set, int cpu)
{
	struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);
	struct perf_event *bp = wcpu->event;

	lockdep_assert_held(&bp_wide_mutex);

	if (!bp)
		return;
	/* From here on no interrupt on @cpu repoints the event. */
	WRITE_ONCE(wcpu->event, NULL);
	barrier();
	unregister_hw_breakpoint(bp);
}

static void drop_events(struct bp_wide *set)
{
	int cpu;

	for_each_possible_cpu(cpu)
		drop_event(set, cpu);
	bp_slots_release(&bp_machine, &set->claim);
}

static int start_set(struct bp_wide *set)
{
	struct bp_claim_spec spec = bp_claim_spec(&set->attr, &set->hw);
	int cpu, err;

	err = bp_slots_reserve(&bp_machine, &set->claim, &spec, NULL, -1);
	if (err)
		return err;

	for_each_online_cpu(cpu)
		err = err ?: make_event(set, cpu);
	if (err) {
		drop_events(set);
		return err;
	}

	if (set->value)
		bp_value_look(set->value);
	for_each_online_cpu(cpu)
		enable_event(set, cpu);
	list_add_tail(&set->link, &bp_wide_sets);
	return 0;
}

/* Refuses malformed attributes before a register is claimed. */
static int check_attr(const struct perf_event_attr *attr, struct arch_hw_breakpoint *hw)
{
	/* A kernel-wide breakpoint must not miss hits: never multiplex it. */
	if (attr->type != PERF_TYPE_BREAKPOINT || hw_breakpoint_is_flexible(attr))
		return -EINVAL;

	return bp_parse(&bp_for_all_tasks, attr, hw);
}

static void free_set(struct bp_wide *set)
{
	bp_value_put(set->value);
	free_percpu(set->cpus);
	kfree(set);
}

static void init_cpus(struct bp_wide *set)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct bp_wide_cpu *wcpu = per_cpu_ptr(set->cpus, cpu);

		wcpu->set = set;
		wcpu->adopt = IRQ_WORK_INIT_HARD(adopt_work);
		wcpu->relay = IRQ_WORK_INIT_HARD(relay_work);
		atomic64_set(&wcpu->settled, BP_WIDE_FIRST_SEQ);
	}
}

static struct bp_wide *alloc_set(const struct perf_event_attr *attr,
				 perf_overflow_handler_t triggered,
				 void *context, const char *name)
{
	struct bp_wide *set;

	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return NULL;
	set->cpus = alloc_percpu(struct bp_wide_cpu);
	if (perf_attr_reads_memory(attr))
		set->value = bp_value_alloc(attr->bp_addr, attr->bp_len);
	if (!set->cpus || (perf_attr_reads_memory(attr) && !set->value)) {
		free_set(set);
		return NULL;
	}
	set->attr = *attr;
	set->holder = (struct bp_holder) {
		.addr		= attr->bp_addr,
		.len		= attr->bp_len,
		.bp_type	= attr->bp_type,
		.handler	= triggered,
		.name		= name,
	};
	set->claim.holder = &set->holder;
	set->triggered = triggered;
	set->context = context;
	set->addr = attr->bp_addr;
	atomic64_set(&set->seq, BP_WIDE_FIRST_SEQ);
	ratelimit_state_init(&set->relays, 1, BP_RELAYS);
	ratelimit_set_flags(&set->relays, RATELIMIT_MSG_ON_RELEASE);
	hrtimer_init(&set->late, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	set->late.function = late_kick;
	init_cpus(set);

	return set;
}

static struct perf_event * __percpu *wide_error(int err)
{
	return (void __percpu __force *)ERR_PTR(err);
}

struct perf_event * __percpu *
register_named_wide_hw_breakpoint(struct perf_event_attr *attr,
				  perf_overflow_handler_t triggered, void *context,
				  const char *name)
{
	struct arch_hw_breakpoint hw = { };
	struct bp_wide *set;
	int err;

	err = check_attr(attr, &hw);
	if (err)
		return wide_error(err);
	set = alloc_set(attr, triggered, context, name);
	if (!set)
		return wide_error(-ENOMEM);
	set->hw = hw;

	cpus_read_lock();
	mutex_lock(&bp_wide_mutex);
	err = start_set(set);
	mutex_unlock(&bp_wide_mutex);
	cpus_read_unlock();
	if (err) {
		free_set(set);
		return wide_error(err);
	}

	return bp_wide_events(set);
}
EXPORT_SYMBOL_GPL(register_named_wide_hw_breakpoint);

void unregister_wide_hw_breakpoint(struct perf_event * __percpu *cpu_events)
{
	struct bp_wide *set = set_of(cpu_events);

	cpus_read_lock();
	mutex_lock(&bp_wide_mutex);
	list_del(&set->link);
	bp_wide_stop_repoint(cpu_events);
	drop_events(set);
	mutex_unlock(&bp_wide_mutex);
	cpus_read_unlock();

	free_set(set);
}
EXPORT_SYMBOL_GPL(unregister_wide_hw_breakpoint);

void release_wide_bp_slot(struct perf_event * __percpu *cpu_events)
{
	bp_slots_release(&bp_machine, &set_of(cpu_events)->claim);
}

/* ---- CPU hotplug: called on @cpu, except bp_wide_cpu_dead() ---- */

/*
 * A CPU that is not online does not kick the others when it repoints a set.  Kick them
 * on its behalf.
 */
static void kick_for_offline_cpu(void)
{
	struct bp_wide *set;

	lockdep_assert_held(&bp_wide_mutex);

	list_for_each_entry(set, &bp_wide_sets, link)
		kick_all(set);
}

static int bp_wide_cpu_dead(unsigned int cpu)
{
	mutex_lock(&bp_wide_mutex);
	kick_for_offline_cpu();
	mutex_unlock(&bp_wide_mutex);

	return 0;
}

static int bp_wide_cpu_offline(unsigned int cpu)
{
	struct bp_wide *set;

	mutex_lock(&bp_wide_mutex);
	list_for_each_entry(set, &bp_wide_sets, link) {
		/* A debugger that released the claim may have installed the event. */
		if (READ_ONCE(set->claim.held))
			drop_event(set, cpu);
	}
	mutex_unlock(&bp_wide_mutex);

	return 0;
}

static int bp_wide_cpu_online(unsigned int cpu)
{
	struct bp_wide *set;
	int err = 0;

	this_cpu_write(nr_changes, 0);
	mutex_lock(&bp_wide_mutex);
	kick_for_offline_cpu();
	list_for_each_entry(set, &bp_wide_sets, link) {
		if (per_cpu_ptr(set->cpus, cpu)->event)
			continue;
		err = make_event(set, cpu);
		if (err)
			break;
		enable_event(set, cpu);
	}
	mutex_unlock(&bp_wide_mutex);

	if (err) {
		pr_err("CPU%u: cannot add kernel-wide breakpoint: %pe\n", cpu,
		       ERR_PTR(err));
		bp_wide_cpu_offline(cpu);
	}
	return err;
}

static int __init bp_wide_init(void)
{
	int state;

	state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "perf/hw_breakpoint:dead",
					  NULL, bp_wide_cpu_dead);
	if (state < 0)
		return state;
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "perf/hw_breakpoint:wide",
				  bp_wide_cpu_online, bp_wide_cpu_offline);
	return state < 0 ? state : 0;
}
core_initcall(bp_wide_init);
