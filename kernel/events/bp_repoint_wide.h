/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Repointing a kernel-wide breakpoint on all CPUs; between bp_wide.c, which keeps
 * the sets, and the code that reads the version of one CPU.
 */
#ifndef _KERNEL_EVENTS_BP_REPOINT_WIDE_H
#define _KERNEL_EVENTS_BP_REPOINT_WIDE_H

#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/irq_work.h>
#include <linux/perf_event.h>
#include <linux/types.h>

/**
 * struct bp_wide_slot - a version of a set
 * @serial: of the version, as far as it fits; 0 while @version is written
 * @version: what is watched
 */
struct bp_wide_slot {
	unsigned long		serial;
	struct bp_version	version;
};

/**
 * struct bp_wide_set - a kernel-wide set, as far as repointing goes
 * @newest: serial, CPU and index of the newest version; 0 if there is none
 * @attr: attributes that the set was registered with
 * @name: name of the set, may be NULL
 * @cpus: state of each CPU
 */
struct bp_wide_set {
	atomic64_t			newest;
	struct perf_event_attr		attr;
	const char			*name;
	struct bp_wide_cpu __percpu	*cpus;
};

/* bp_wide_set::newest, from the lowest bit: index of the slot, CPU, serial */
#define BP_NEWEST_SLOT_BITS	5
#define BP_NEWEST_CPU_BITS	13

static inline u64 bp_newest_serial(u64 newest)
{
	return newest >> (BP_NEWEST_CPU_BITS + BP_NEWEST_SLOT_BITS);
}

static inline u64 bp_read_newest(const struct bp_wide_set *set)
{
	/* Pairs with the cmpxchg in publish_slot(): the slot is filled in. */
	return atomic64_read_acquire(&set->newest);
}

/* Serial of the newest version of a set. Context: Any. */
static inline u64 bp_wide_serial(const struct bp_wide_set *set)
{
	return bp_newest_serial(bp_read_newest(set));
}

/**
 * struct bp_wide_cpu - a kernel-wide set on one CPU
 * @event: the event there, NULL if there is none; first, callers know this address
 * @set: the set
 * @versions: what @event watches
 * @adopt: a kick: the CPU adopts the newest version
 * @relay: queued by the CPU on itself, to kick the others
 * @adopted: serial that is watched here
 * @depth: how many repointers are filling slots in, each interrupting the former
 * @slot: two for each depth
 *
 * @event and @adopted are written by the CPU itself, @event by the registering CPU
 * before the set is published.  @depth and @slot belong to the CPU; all CPUs read
 * @slot.
 */
struct bp_wide_cpu {
	struct perf_event	*event;
	struct bp_wide_set	*set;
	struct bp_versions	versions;
	struct irq_work		adopt;
	struct irq_work		relay;
	atomic64_t		adopted;
	unsigned int		depth;
	struct bp_wide_slot	slot[2 * BP_VERSIONS_DEPTH];
};

/**
 * bp_wide_alloc_events - allocate the events of a set, one pointer a CPU
 * @attr: the attributes that the set is registered with
 * @name: name of the set, may be NULL
 *
 * Return: the pointers, all NULL; NULL if there is no memory.
 */
struct perf_event * __percpu *bp_wide_alloc_events(const struct perf_event_attr *attr,
						   const char *name);

/**
 * bp_wide_free_events - free what bp_wide_alloc_events() returned
 * @events: the pointers; NULL is ignored
 */
void bp_wide_free_events(struct perf_event * __percpu *events);

/**
 * bp_wide_cpu_of - find the state of one CPU in a set
 * @events: what bp_wide_alloc_events() returned
 * @cpu: the CPU
 */
struct bp_wide_cpu *bp_wide_cpu_of(struct perf_event * __percpu *events, int cpu);

/* The state of the CPU of @bp, a member of a set */
static inline struct bp_wide_cpu *bp_wide_cpu_of_event(const struct perf_event *bp)
{
	return container_of(bp->hw.bp_versions, struct bp_wide_cpu, versions);
}

/**
 * bp_wide_start_event - begin to make the event of a CPU
 * @wcpu: the CPU's state in its set
 * @attr: bp_addr, bp_len and bp_type become those of the newest version
 *
 * Return: the serial of that version, for bp_version::base.
 */
u64 bp_wide_start_event(struct bp_wide_cpu *wcpu, struct perf_event_attr *attr);

/**
 * bp_wide_catch_up - make an event that exists now watch the newest version
 * @wcpu: the CPU's state; its event has been entered
 *
 * Context: On the CPU of the event, unless the set was never repointed.
 */
void bp_wide_catch_up(struct bp_wide_cpu *wcpu);

/**
 * bp_wide_kick - have other CPUs adopt the newest version
 * @events: events of a set
 *
 * For what a CPU that was not online has published: it kicks no other CPU.
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
