/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Repointing a kernel-wide set on all CPUs: interface for bp_wide.c, which has
 * the sets, and for code that reads the state of one CPU.
 */
#ifndef _KERNEL_EVENTS_BP_REPOINT_WIDE_H
#define _KERNEL_EVENTS_BP_REPOINT_WIDE_H

#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/irq_work.h>
#include <linux/perf_event.h>
#include <linux/ratelimit_types.h>
#include <linux/types.h>

/**
 * struct bp_wide_entry - storage for a version of a set
 * @serial: serial of @version, truncated to a long; 0 while @version is written
 * @version: the version; bp_version::base is not used
 */
struct bp_wide_entry {
	unsigned long		serial;
	struct bp_version	version;
};

/**
 * struct bp_wide_set - the state of a kernel-wide set that repointing needs
 * @newest: serial of the newest version, and the CPU and the index of its entry;
 *	0 if the set was never repointed
 * @attr: attributes that the set was registered with
 * @name: name of the set, may be NULL
 * @relays: limits how often relays kick CPUs
 * @late: timer that kicks CPUs when @relays is exceeded
 * @cpus: state of each CPU
 */
struct bp_wide_set {
	atomic64_t			newest;
	struct perf_event_attr		attr;
	const char			*name;
	struct ratelimit_state		relays;
	struct hrtimer			late;
	struct bp_wide_cpu __percpu	*cpus;
};

/* bp_wide_set::newest, from the lowest bit: index of the entry, CPU, serial */
#define BP_NEWEST_ENTRY_BITS	5
#define BP_NEWEST_CPU_BITS	13

static inline u64 bp_newest_serial(u64 newest)
{
	return newest >> (BP_NEWEST_CPU_BITS + BP_NEWEST_ENTRY_BITS);
}

static inline u64 bp_read_newest(const struct bp_wide_set *set)
{
	/* Pairs with the cmpxchg in publish_wide_entry(): the entry is complete. */
	return atomic64_read_acquire(&set->newest);
}

/* Returns the serial of the newest version of a set. Context: Any. */
static inline u64 bp_wide_serial(const struct bp_wide_set *set)
{
	return bp_newest_serial(bp_read_newest(set));
}

/**
 * struct bp_wide_cpu - the state of a kernel-wide set on one CPU
 * @event: event of the CPU, NULL if there is none; must be the first field,
 *	because register_wide_hw_breakpoint() returns a per-CPU pointer to it
 * @set: the set
 * @versions: what @event watches
 * @adopt: irq_work by which other CPUs kick this one to adopt the newest
 *	version
 * @relay: irq_work that the CPU queues on itself in order to kick the others
 * @adopted: serial of the version that the CPU adopted last
 * @depth: number of repointers that are filling entries, each of which
 *	interrupted the one before
 * @entry: two entries for each depth
 *
 * Written by the CPU itself; all CPUs read @entry and @adopted.  Only @event is
 * also written by the CPU that registers or unregisters the set, while nothing
 * repoints it.
 */
struct bp_wide_cpu {
	struct perf_event	*event;
	struct bp_wide_set	*set;
	struct bp_versions	versions;
	struct irq_work		adopt;
	struct irq_work		relay;
	atomic64_t		adopted;
	unsigned int		depth;
	struct bp_wide_entry	entry[2 * BP_VERSIONS_DEPTH];
};

/**
 * bp_wide_alloc_events - allocate a set: one pointer to an event for each CPU
 * @attr: the attributes that the set is registered with
 * @name: name of the set, may be NULL; must stay valid until the set is freed
 *
 * Context: Process context, may sleep.
 * Return: the pointers, all NULL; NULL if there is no memory.
 */
struct perf_event * __percpu *bp_wide_alloc_events(const struct perf_event_attr *attr,
						   const char *name);

/**
 * bp_wide_free_events - free what bp_wide_alloc_events() returned
 * @events: the pointers; NULL is ignored
 *
 * Context: Process context; no irq_work of the set may be pending.
 */
void bp_wide_free_events(struct perf_event * __percpu *events);

/**
 * bp_wide_cpu_of - find the state of one CPU in a set
 * @events: what bp_wide_alloc_events() returned
 * @cpu: the CPU
 *
 * Context: Any.
 * Return: the state; never NULL.
 */
struct bp_wide_cpu *bp_wide_cpu_of(struct perf_event * __percpu *events, int cpu);

/* The state of the CPU of @bp, a member of a set */
static inline struct bp_wide_cpu *bp_wide_cpu_of_event(const struct perf_event *bp)
{
	return container_of(bp->hw.bp_versions, struct bp_wide_cpu, versions);
}

/**
 * bp_wide_start_event - get the newest range for the event of a CPU
 * @wcpu: the CPU's state in its set
 * @attr: bp_addr, bp_len and bp_type are set to the range of the newest version
 *
 * The caller creates the event, attaches wcpu->versions, sets wcpu->event and
 * calls bp_wide_catch_up().
 *
 * Return: the serial of the version, for bp_versions_attach(); 0 if the set was
 * never repointed.
 */
u64 bp_wide_start_event(struct bp_wide_cpu *wcpu, struct perf_event_attr *attr);

/**
 * bp_wide_catch_up - make the event of a CPU watch the newest version
 * @wcpu: the CPU's state
 *
 * Context: On the CPU of @wcpu, unless the set was never repointed.
 */
void bp_wide_catch_up(struct bp_wide_cpu *wcpu);

/**
 * bp_wide_kick - make all online CPUs adopt the newest version
 * @events: events of a set
 *
 * For a version that a CPU published while it was not online: such a CPU kicks
 * no other CPU.
 *
 * Context: Process context, on an online CPU.
 */
void bp_wide_kick(struct perf_event * __percpu *events);

/**
 * bp_wide_stop_repoint - wait until no CPU is about to adopt a version
 * @events: events of a set that is repointed no more
 *
 * Context: Process context, may sleep.
 */
void bp_wide_stop_repoint(struct perf_event * __percpu *events);

#endif /* _KERNEL_EVENTS_BP_REPOINT_WIDE_H */
