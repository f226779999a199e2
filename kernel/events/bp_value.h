/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values of the objects that breakpoints watch: HW_BREAKPOINT_VALUE, HW_BREAKPOINT_CHANGED.
 *
 * A struct bp_value is a chain: one object in one memory, and its value when it was looked
 * at last. A hit looks at the object and takes the former value from the chain. All events
 * that watch the object for one opener have the same chain, so each change is told once,
 * by the first hit that sees it, also if several CPUs write at the same time:
 *
 *	CPU0			CPU1
 *	store 1			store 2
 *	hit: 0 -> 2
 *				hit: 2 -> 2
 *
 * An event has the chain hw.bp_value. These events have the same one:
 *
 *  - all events of a family of a process, or of a kernel-wide set;
 *  - at a kernel address, all events of a family;
 *  - events of one task or process that one thread has opened for one CPU each: there is no
 *    other way to get samples of several threads;
 *  - in the child of a fork, the children of these.
 *
 * Threads. When an event is inherited, it is not known yet whether the child will share
 * the memory. So an inherited event has a chain of its own, with a copy of the value if no
 * other thread may write before the memory is copied, and a reference to the chain of its
 * parent, which it uses as long as it has the memory of that chain (bp_value::shared,
 * bp_value::mm). A chain belongs to the tasks of one memory until one of them executes a
 * program: then task_struct::self_exec_id, which all of them have in common, is another
 * one, and the value is not known.
 *
 * A hit finds the chain through its event, so an event must not have hits of another task:
 * contexts of inherited events with values are not swapped, see perf_attr_reads_memory().
 *
 * Lifetime. Events have references to chains, and chains to the chains they share. Only the
 * code that changes the address of an event replaces its chain, on the CPU of the event if
 * it is active. So no hit of the event uses the former chain, which is then released.
 *
 * The lock. A chain is locked for a look, in #DB or NMI, or with interrupts off. A
 * CPU that finds itself to be the owner has interrupted a look, and does not look: what
 * it would see is reported as unknown. Other CPUs wait for the end of the look.
 *
 * An object is read only from memory that is ordinary RAM. A look in a hit does not
 * fault, and one from a task does not wait for I/O.
 */
#ifndef _KERNEL_EVENTS_BP_VALUE_H
#define _KERNEL_EVENTS_BP_VALUE_H

#include <linux/hw_breakpoint.h>
#include <linux/mm_types.h>
#include <linux/perf_event.h>
#include <linux/refcount.h>
#include <linux/types.h>

#define BP_VALUE_WORDS	(HW_BREAKPOINT_VALUE_MAX / sizeof(u64))

/**
 * struct bp_value - a chain
 * @refs: number of references
 * @owner: 0, or 1 + the CPU that has locked the chain
 * @addr: address of the object; changes only for a kernel-wide set, under the lock
 * @len: length of the object, 1 to HW_BREAKPOINT_VALUE_MAX
 * @opened: the object was looked at when the event was opened
 * @known: @bytes is valid; under the lock, as the rest
 * @exec_id: task_struct::self_exec_id of the tasks of the memory
 * @bytes: value of the object, with zeros after @len
 * @shared: NULL, or the chain to use instead by tasks with @mm
 * @mm: memory of @shared, with a reference that keeps its address from being reused
 */
struct bp_value {
	refcount_t		refs;
	int			owner;
	unsigned long		addr;
	unsigned int		len;
	bool			opened;
	bool			known;
	u64			exec_id;
	u64			bytes[BP_VALUE_WORDS];
	struct bp_value		*shared;
	struct mm_struct	*mm;
};

/* struct hw_breakpoint_values with the values behind it */
struct bp_value_record {
	u16	len;
	u8	flags;
	u8	offset;
	u8	bytes[2 * HW_BREAKPOINT_VALUE_MAX];
};

static_assert(offsetof(struct bp_value_record, bytes) ==
	      offsetof(struct hw_breakpoint_values, bytes));

static inline bool bp_wants_values(const struct perf_event_attr *attr)
{
	return attr->config & (HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED);
}

/**
 * bp_value_check - check whether an event may have values
 * @bp: the event
 * @attr: its attributes, with HW_BREAKPOINT_VALUE or HW_BREAKPOINT_CHANGED
 * @kernel: true if it watches kernel addresses
 *
 * Context: Process context.
 * Return: 0; -EINVAL if values have no meaning for @attr; -EOPNOTSUPP if the object is too
 * long, or for an architecture that reports hits before the access; -EPERM if the kernel
 * is locked down.
 */
int bp_value_check(const struct perf_event *bp, const struct perf_event_attr *attr,
		   bool kernel);

/**
 * bp_value_init - give a new event its chain
 * @bp: the event, whose attributes are valid
 *
 * An inherited event gets it in bp_value_inherit(), a member of a kernel-wide set in
 * bp_value_share().
 *
 * Context: Process context.
 * Return: 0 or -ENOMEM.
 */
int bp_value_init(struct perf_event *bp);

/**
 * bp_value_open - look at the object of a new event
 * @bp: the event, which is about to be installed
 * @ctx: its context
 *
 * Context: Process context; ctx->mutex held, and perf_process::mutex for an event of a
 * process. Any, if @bp has been opened before: does nothing.
 */
void bp_value_open(struct perf_event *bp, const struct perf_event_context *ctx);

/**
 * bp_value_enabling - look at the object of an event that is about to be enabled
 * @bp: the event
 *
 * Context: Process context.
 */
void bp_value_enabling(struct perf_event *bp);

/**
 * bp_value_inherit - give an inherited event its chain
 * @child: the event, in no context yet
 * @ctx: context of @child
 *
 * Context: Process context; current forks, child_mutex of the parent held.
 * Return: 0 or -ENOMEM.
 */
int bp_value_inherit(struct perf_event *child, struct perf_event_context *ctx);

/**
 * bp_value_destroy - release the chain of an event
 * @bp: the event, which is freed
 *
 * Context: Process context.
 */
void bp_value_destroy(struct perf_event *bp);

/**
 * bp_value_prepare - prepare chains for another object
 * @bp: an event without parent
 * @attr: attributes that bp_parse() has accepted
 *
 * Looks at the new object for @bp and its children. bp_value_change() makes each of them
 * use it. Call bp_value_finish() also on failure.
 *
 * Context: Process context; child_mutex of @bp held, if it has children.
 * Return: 0 or -ENOMEM.
 */
int bp_value_prepare(struct perf_event *bp, const struct perf_event_attr *attr);

/**
 * bp_value_change - make an event use the chain that bp_value_prepare() has prepared
 * @bp: the event, which may be a child
 *
 * Context: Interrupts off, the context of @bp locked; on the CPU of @bp, if it is active.
 */
void bp_value_change(struct perf_event *bp);

/**
 * bp_value_finish - release the chains that bp_value_prepare() or bp_value_change() left
 * @bp: as for bp_value_prepare()
 *
 * Context: As bp_value_prepare().
 */
void bp_value_finish(struct perf_event *bp);

/**
 * bp_value_hit - look at the object after an access
 * @bp: the event that was hit
 * @addr: address that the architecture reports
 * @regs: registers at the hit
 * @record: filled in if the result is true
 *
 * Context: As perf_bp_event().
 * Return: false if the access is none for @bp: it changed nothing.
 */
bool bp_value_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
		  struct bp_value_record *record);

/**
 * bp_value_alloc - allocate a chain
 * @addr: address of the object
 * @len: its length
 *
 * Context: Process context.
 * Return: the chain, with one reference and no value; NULL if there is no memory.
 */
struct bp_value *bp_value_alloc(unsigned long addr, unsigned int len);

/* Release a reference. @value may be NULL. Process context. */
void bp_value_put(struct bp_value *value);

/**
 * bp_value_share - give an event the chain of its kernel-wide set
 * @bp: the event
 * @value: the chain
 *
 * Context: Process context.
 */
void bp_value_share(struct perf_event *bp, struct bp_value *value);

/* Look at the object of the chain of a kernel-wide set. Process context. */
void bp_value_look(struct bp_value *value);

/**
 * bp_value_step - advance a chain by one hit
 * @value: the chain, locked
 * @now: the object, with zeros after its end; NULL if it is not known
 * @only_changes: ignore a hit that has changed nothing
 * @record: filled in if the result is true
 *
 * Context: Any.
 * Return: false if the hit is ignored.
 */
bool bp_value_step(struct bp_value *value, const u64 *now, bool only_changes,
		   struct bp_value_record *record);

#endif /* _KERNEL_EVENTS_BP_VALUE_H */
