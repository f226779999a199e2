/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces between the files of the breakpoint layer.  Each file calls only files
 * that are listed above it; perf core calls the layer through the methods of its PMU,
 * and init_hw_breakpoint() at boot:
 *
 *  bp_slots.c		accounting of claims; uses neither perf nor the hardware
 *  sigtrap.c		sends a signal for each hit
 *  core.c		perf core, with ring_buffer.c and callchain.c
 *  process.c		events of a whole process; perf core and this file call each other
 *  mux.c		multiplexed groups; perf core and this file call each other
 *  text_poke.c		records changes of kernel text
 *  bp_value.c		values of the objects that are watched
 *  bp_hit.c		counts and samples hits; called by the architecture
 *  bp_attr.c		checks attributes; has the accounting of this machine
 *  bp_multiplex.c	assigns registers when perf schedules breakpoints
 *  bp_modify.c		modifies breakpoints in place
 *  hw_breakpoint.c	the PMU
 *  bp_wide.c		kernel-wide sets, and repointing them
 *  bp_debugfs.c	lists all claims
 */
#ifndef _KERNEL_EVENTS_BP_INTERNAL_H
#define _KERNEL_EVENTS_BP_INTERNAL_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/ratelimit_types.h>
#include <linux/types.h>

#include "bp_slots.h"

/* The accounting of the breakpoint registers of this machine */
extern struct bp_slots bp_machine;

/* For checks of attributes: some architectures look whether the event is for a task. */
extern struct perf_event bp_for_all_tasks;

/* ---- bp_attr.c ---- */

/*
 * Checks the attributes of @bp and translates them for the architecture. Changes nothing but
 * @hw. Process context.
 * Returns 0; -EINVAL for invalid attributes; -EOPNOTSUPP if the hardware does not support
 * them; -EPERM for a kernel address without the capability.
 */
int bp_parse(struct perf_event *bp, const struct perf_event_attr *attr,
	     struct arch_hw_breakpoint *hw);

/*
 * As bp_parse(), for new attributes of an event whose translation is bp->hw.info, and which is
 * no member of a kernel-wide set. @attr differs from bp->attr, which does not change, in
 * bp_addr, bp_len, bp_type, sig_data and disabled only. If type and length stay, only the
 * address is checked.
 */
int bp_parse_again(struct perf_event *bp, const struct perf_event_attr *attr,
		   struct arch_hw_breakpoint *hw);

/* bp_parse() without its check of privileges; in any context */
int bp_translate(struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw);

static inline bool hw_breakpoint_is_flexible(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_FLEXIBLE;
}

static inline bool hw_breakpoint_is_process(const struct perf_event_attr *attr)
{
	return attr->config & HW_BREAKPOINT_PROCESS;
}

static inline enum bp_type_idx bp_class(const struct perf_event_attr *attr)
{
	return attr->bp_type & HW_BREAKPOINT_RW ? TYPE_DATA : TYPE_INST;
}

/*
 * The claim that a breakpoint needs. All flexible breakpoints share one register, however many
 * each of them needs at a time.
 */
static inline struct bp_claim_spec bp_claim_spec(const struct perf_event_attr *attr,
						 const struct arch_hw_breakpoint *hw)
{
	bool flexible = hw_breakpoint_is_flexible(attr);

	return (struct bp_claim_spec) {
		.class		= bp_class(attr),
		.weight		= flexible ? 1 : hw_breakpoint_weight(hw),
		.flexible	= flexible,
	};
}

/* The number of registers that a breakpoint needs, all at the same time */
static inline unsigned int bp_weight(const struct perf_event *bp)
{
	return hw_breakpoint_weight(&bp->hw.info);
}

/* ---- bp_multiplex.c ---- */

/*
 * Number of registers of @class that the flexible breakpoints of a group need, but @event,
 * which is, or is about to be, in the group. The group does not change.
 */
unsigned int bp_group_weight(const struct perf_event *event, unsigned int class);

/*
 * Assigns registers of this CPU to a breakpoint that perf schedules in. Evicts flexible
 * breakpoints if needed: for a guaranteed @bp any of them, for a flexible @bp those of rotation
 * groups with a lower priority. Interrupts are off, and all perf contexts that are scheduled on
 * this CPU are locked.
 * Returns 0; -ENOSPC if a flexible @bp has to wait for a register; an error of
 * arch_install_hw_breakpoint().
 */
int bp_sched_in(struct perf_event *bp);

/*
 * pmu::del(): frees the registers of a breakpoint that perf schedules out. Interrupts are off,
 * and the perf context of @bp is locked.
 */
void bp_sched_out(struct perf_event *bp, int flags);

/*
 * Kernel debuggers hold @nr registers more (negative: fewer) on every CPU, which bp_sched_in()
 * leaves free from then on. Any context.
 */
void bp_debugger_holds(unsigned int class, int nr);

void bp_multiplex_init(void);

/* ---- bp_modify.c ---- */

/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES for @event, which is not inherited, and its children. On
 * failure nothing has changed. Process context, ctx->mutex of @event held.
 * Returns 0; -EINVAL if @attr is invalid or differs in an attribute that cannot be changed, or
 * if the group of @event could never be scheduled; -EOPNOTSUPP if the hardware does not support
 * @attr; -EPERM for a kernel address without the capability; -ENOSPC if too few of the registers
 * that are needed in addition are available; -ENOMEM for an event with values.
 */
int bp_modify(struct perf_event *event, const struct perf_event_attr *attr);

/*
 * Gives @child, which is being inherited from @parent and has no claim, the attributes that
 * @parent has now: bp_modify() may have changed them since they were copied. Process context,
 * child_mutex of @parent held.
 * Returns 0; -EINVAL or -EOPNOTSUPP if the attributes are no longer supported.
 */
int bp_follow(struct perf_event *child, const struct perf_event *parent);

/* ---- hw_breakpoint.c ---- */

/*
 * Creates an event of a kernel-wide set, whose claim covers the event. Process context, may
 * sleep; the caller serializes calls. Returns the event or ERR_PTR().
 */
struct perf_event *bp_create_wide_event(struct perf_event_attr *attr, int cpu,
					perf_overflow_handler_t triggered, void *context);

/*
 * True if the claim of a kernel-wide set covers @bp. In a flexible breakpoint another field has
 * the place of hw.bp_wide.
 */
static inline bool bp_is_wide(const struct perf_event *bp)
{
	return !hw_breakpoint_is_flexible(&bp->attr) && bp->hw.bp_wide;
}

/*
 * True if @bp has a claim of its own, or that of its kernel-wide set or of its family of events
 * of a process
 */
static inline bool bp_has_claim(const struct perf_event *bp)
{
	return READ_ONCE(bp->bp_claim.held) || bp_is_wide(bp) || bp->process;
}

/* ---- bp_wide.c ---- */

/**
 * struct bp_wide - a kernel-wide breakpoint
 * @addr: address to which the set was pointed last
 * @seq: number of changes of @addr; see the head of bp_wide.c
 * @cpus: state of each CPU; callers identify the set by this pointer
 * @attr: attributes, as registered
 * @hw: translation of @attr
 * @link: link in bp_wide_sets
 * @holder: describes @claim
 * @claim: claim of the machine; not held after release_wide_bp_slot()
 * @value: NULL, or the chain of values of all events
 * @triggered: handler of the hits
 * @context: for the handler
 * @relays: limits how often relays kick CPUs
 * @late: timer that kicks CPUs when @relays is exceeded
 *
 * @link and the events of the set are protected by bp_wide_mutex; only @addr, @seq, @claim,
 * @relays and @late change otherwise.
 */
struct bp_wide {
	unsigned long			addr;
	atomic64_t			seq;
	struct bp_wide_cpu __percpu	*cpus;
	struct perf_event_attr		attr;
	struct arch_hw_breakpoint	hw;
	struct list_head		link;
	struct bp_holder		holder;
	struct bp_claim			claim;
	struct bp_value			*value;
	perf_overflow_handler_t		triggered;
	void				*context;
	struct ratelimit_state		relays;
	struct hrtimer			late;
};

/* bp_wide::seq of a set that was not repointed; that of a pair is 0 if it is not valid. */
#define BP_WIDE_FIRST_SEQ	1

/* Maximum nesting of repointers on one CPU (task, softirq, IRQ, #DB, NMI, #DB), with margin */
#define BP_WIDE_DEPTH		8

/**
 * struct bp_wide_pair - what a CPU watches that was repointed alone
 * @seq: bp_wide::seq at that time; the CPU watches @addr as long as it stays
 * @addr: the address
 */
struct bp_wide_pair {
	u64		seq;
	unsigned long	addr;
};

/**
 * struct bp_wide_cpu - the state of a kernel-wide set on one CPU
 * @event: event of the CPU, NULL if there is none; must be the first field,
 *	because register_wide_hw_breakpoint() returns a per-CPU pointer to it
 * @set: the set
 * @adopt: irq_work by which other CPUs kick this one to adopt the address
 * @relay: irq_work that the CPU queues on itself in order to kick the others
 * @settled: bp_wide::seq that the CPU adopted last
 * @now: generation of the current pair; the low bits are its index in @pair
 * @depth: number of writers of pairs that are active, each of which interrupted the one
 *	before
 * @pair: two pairs for each depth
 *
 * Written by the CPU itself; all CPUs read @settled.  Only @event is also written by
 * the CPU that registers or unregisters the set, while nothing repoints it.
 */
struct bp_wide_cpu {
	struct perf_event	*event;
	struct bp_wide		*set;
	struct irq_work		adopt;
	struct irq_work		relay;
	atomic64_t		settled;
	unsigned long		now;
	unsigned int		depth;
	struct bp_wide_pair	pair[2 * BP_WIDE_DEPTH];
};

/* The state of each CPU, by what register_wide_hw_breakpoint() returned, and back */
static inline struct bp_wide_cpu __percpu *bp_wide_cpus(struct perf_event * __percpu *events)
{
	return (struct bp_wide_cpu __percpu *)events;
}

static inline struct perf_event * __percpu *bp_wide_events(const struct bp_wide *set)
{
	return (struct perf_event * __percpu *)set->cpus;
}

/*
 * Waits until no CPU is about to adopt an address of a set that is repointed no more. Process
 * context, may sleep.
 */
void bp_wide_stop_repoint(struct perf_event * __percpu *cpu_events);

#endif /* _KERNEL_EVENTS_BP_INTERNAL_H */
