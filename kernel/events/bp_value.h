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
 *
 * Plain memory. A hit need not walk the page tables if the object lies in one page of a
 * mapping that has only ordinary memory: then its address is read. This is checked once, and
 * holds until the mm is locked for writing: bp_value::plain_seq is mm_struct::mm_lock_seq of
 * the check.  A device that is mapped over the object at the same time is not read:
 *
 *	CPU0					CPU1
 *	writes to the object			mmap_write_lock(): mm_lock_seq++
 *	#DB, interrupts off until its end
 *	reads mm_lock_seq: not changed		clears the PTE
 *						flushes TLBs: waits for CPU0
 *	reads the object
 *	end of #DB				maps the device
 *
 * The access of CPU0 has found the page present. So either CPU1 has cleared its PTE and then
 * waits for CPU0, also if CPU0 has accessed the page by a stale entry of its TLB; or what CPU0
 * accesses is the device already, and CPU0 reads the number that CPU1 has incremented before.
 * This takes an architecture that flushes TLBs by interrupts, see
 * arch_hw_breakpoint_keeps_page(), and the page that the access has found: of an object in two
 * pages only one may be. A page may be dropped or reclaimed without the lock; then the
 * read fails, or there is another page of the same mapping. A number that comes back after
 * 2^31 changes of a memory is taken for the old one.
 *
 * In a hit from user mode the debug registers are armed, so that a read traps at breakpoints
 * for reads, that of the event itself included: bp_value_reads tells these hits from others.
 */
#ifndef _KERNEL_EVENTS_BP_VALUE_H
#define _KERNEL_EVENTS_BP_VALUE_H

#include <linux/atomic.h>
#include <linux/hw_breakpoint.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/mm_types.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/processor.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/seqlock.h>
#include <linux/smp.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "internal.h"

#define BP_VALUE_WORDS	(HW_BREAKPOINT_VALUE_MAX / sizeof(u64))

/* Odd, as the number of an mm that is locked for writing */
#define BP_VALUE_NOT_PLAIN	(~0U)

/**
 * struct bp_value - a chain
 * @refs: number of references
 * @owner: 0, or 1 + the CPU that has locked the chain
 * @addr: address of the object; changes only for a kernel-wide set, under the lock
 * @len: length of the object, 1 to HW_BREAKPOINT_VALUE_MAX
 * @opened: the object was looked at when the event was opened
 * @behind: the set was repointed, and @bytes could not be read then
 * @known: @bytes is valid; under the lock, as the rest
 * @plain_seq: mm_struct::mm_lock_seq of the time when the object was in plain memory, or
 *	BP_VALUE_NOT_PLAIN
 * @exec_id: task_struct::self_exec_id of the tasks of the memory
 * @rcu: frees the chain: a look of another task may get a reference to @shared under RCU
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
	bool			behind;
	bool			known;
	unsigned int		plain_seq;
	u64			exec_id;
	union {
		u64		bytes[BP_VALUE_WORDS];
		struct rcu_head	rcu;
	};
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
 * @bp: the event. Its children are about to be enabled, too
 *
 * There is no look if another event that is enabled has the chain: its next hit tells what has
 * changed.
 *
 * Context: Process context; ctx->mutex and child_mutex of @bp held.
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
 * Looks at the new object for @bp and its children. Each of them uses it when its
 * hw.bp_value and hw.bp_next_value have been swapped, under the lock of its context and on its
 * CPU if it is active. Call bp_value_finish() also on failure.
 *
 * Context: Process context; child_mutex of @bp held, if it has children, and
 * perf_process::mutex for an event of a process.
 * Return: 0 or -ENOMEM.
 */
int bp_value_prepare(struct perf_event *bp, const struct perf_event_attr *attr);

/**
 * bp_value_finish - release the chains that are not used
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

/* Look at an object at kernel addresses. Process context. */
void bp_value_look(struct bp_value *value);

/**
 * bp_value_follow - look at the object to which a kernel-wide set was repointed
 * @value: the chain of the set
 * @addr: address of the object
 *
 * Context: Any; interrupts off.
 */
void bp_value_follow(struct bp_value *value, unsigned long addr);

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

/* ---- The short path of a hit ---- */

static __always_inline bool bp_value_trylock(struct bp_value *value, int *owner)
{
	*owner = 0;
	return try_cmpxchg_acquire(&value->owner, owner, raw_smp_processor_id() + 1);
}

static __always_inline void bp_value_unlock(struct bp_value *value)
{
	/* Pairs with bp_value_trylock(). */
	smp_store_release(&value->owner, 0);
}

static __always_inline struct bp_value *bp_value_of_current(const struct perf_event *bp)
{
	struct bp_value *value = bp->hw.bp_value;

	return unlikely(value->shared) && value->mm == current->mm ? value->shared : value;
}

/* Returns true if the object is known to be in plain memory. @value is locked. */
static __always_inline bool bp_value_is_plain(const struct bp_value *value)
{
#ifdef CONFIG_PER_VMA_LOCK
	return raw_read_seqcount(&current->mm->mm_lock_seq) == value->plain_seq;
#else
	return false;
#endif
}

/* Between them, with interrupts off, this CPU accesses nothing but the object. */
static __always_inline void bp_value_begin_read(void)
{
	this_cpu_write(bp_value_reads, true);
	barrier();
}

static __always_inline void bp_value_end_read(void)
{
	barrier();
	this_cpu_write(bp_value_reads, false);
}

/* The first bytes of an object, in a word that is zero behind them */
static __always_inline u64 bp_value_word(u64 bytes, unsigned int size)
{
	return IS_ENABLED(CONFIG_CPU_BIG_ENDIAN) ? bytes << (64 - 8 * size) : bytes;
}

#define bp_value_read_as(type, from, fault) ({				\
	type bytes;							\
									\
	unsafe_get_user(bytes, (const type __user *)(from), fault);	\
	bp_value_word(bytes, sizeof(bytes));				\
})

/*
 * Reads an object of a size that one instruction reads: what another CPU stores by one is
 * not torn. Returns false for other sizes, and if the memory is not accessible.
 */
static __always_inline bool bp_value_read_word(const struct bp_value *value, u64 *word)
{
	const void __user *from = (const void __user *)value->addr;

	pagefault_disable();
	if (unlikely(!user_read_access_begin(from, sizeof(u64))))
		goto out;
	bp_value_begin_read();
	if (likely(value->len == 8))
		*word = bp_value_read_as(u64, from, fault);
	else if (value->len == 4)
		*word = bp_value_read_as(u32, from, fault);
	else if (value->len == 2)
		*word = bp_value_read_as(u16, from, fault);
	else if (value->len == 1)
		*word = bp_value_read_as(u8, from, fault);
	else
		goto fault;
	bp_value_end_read();
	user_read_access_end();
	pagefault_enable();
	return true;
fault:
	bp_value_end_read();
	user_read_access_end();
out:
	pagefault_enable();
	return false;
}

/**
 * bp_value_hit_word - look at an object of 1, 2, 4 or 8 bytes after an access
 * @bp: the event that was hit
 * @addr: address that the architecture reports
 * @before: the value before the access, as from bp_value_word()
 * @after: the value after it
 *
 * What bp_value_hit() does for most hits, inline and without calls.
 *
 * Context: As perf_bp_event(); the access was made in user mode.
 * Return: true, or false if bp_value_hit() has to look.
 */
static __always_inline bool bp_value_hit_word(const struct perf_event *bp, u64 addr,
					      u64 *before, u64 *after)
{
	struct bp_value *value = bp_value_of_current(bp);
	bool known;
	int owner;

	if (!bp_value_trylock(value, &owner))
		return false;
	known = value->known && addr - value->addr < value->len &&
		value->exec_id == READ_ONCE(current->self_exec_id) &&
		bp_value_is_plain(value) && bp_value_read_word(value, after);
	if (known) {
		*before = value->bytes[0];
		value->bytes[0] = *after;
	}
	bp_value_unlock(value);

	return known;
}

/* @len is 1, 2, 4 or 8. The words are zero behind it: @after overwrites what is too much. */
static __always_inline void bp_value_record_words(struct bp_value_record *record,
						  unsigned int len, u64 before, u64 after)
{
	record->len = len;
	record->flags = HW_BREAKPOINT_BEFORE_KNOWN | HW_BREAKPOINT_AFTER_KNOWN;
	record->offset = 0;
	put_unaligned(before, (u64 *)record->bytes);
	put_unaligned(after, (u64 *)(record->bytes + len));
}

static inline void bp_value_count_silent(struct perf_event *bp)
{
	atomic64_inc(&(bp->parent ?: bp)->hw.bp_silent);
}

#endif /* _KERNEL_EVENTS_BP_VALUE_H */
