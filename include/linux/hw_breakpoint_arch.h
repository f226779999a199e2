/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: between an architecture and the generic layer.
 *
 * An architecture provides in <asm/hw_breakpoint.h>:
 *
 *  struct arch_hw_breakpoint		one breakpoint, translated
 *  hw_breakpoint_slots(class)		registers of a class on each CPU
 *  hw_breakpoint_arch_parse()		check and translate attributes
 *  arch_check_bp_in_kernelspace()	true if it watches kernel addresses
 *  arch_install_hw_breakpoint()	assign a register of this CPU, IRQs off
 *  arch_uninstall_hw_breakpoint()	remove it from its register, IRQs off
 *
 * and in its own files flush_ptrace_hw_breakpoint(). It calls perf_bp_event() or
 * perf_bp_event_at() for each hit, from hw_breakpoint_exceptions_notify() in the
 * die chain, or from its trap handler, and nothing else of the generic layer.
 *
 * The rest is optional. An architecture that has one of the following defines a
 * macro of the same name; the defaults are below.
 *
 *  hw_breakpoint_exceptions_notify	NULL if the trap handler reports hits
 *  hw_breakpoint_weight(attr)		registers that a breakpoint takes, 1
 *  arch_hw_breakpoint_begin()		install and uninstall may defer what they do
 *  arch_hw_breakpoint_commit()		  to the hardware, from begin to commit
 *  arch_hw_breakpoint_change()	change an installed breakpoint, in its register
 *  arch_hw_breakpoint_repoint()	change an installed breakpoint in any context
 *  arch_hw_breakpoint_reg()		read back a register of this CPU
 *  arch_is_ptrace_breakpoint()		true for a breakpoint of a task's debugger
 *  ptrace_drop_disabled_hw_breakpoints()
 */
#ifndef _LINUX_HW_BREAKPOINT_ARCH_H
#define _LINUX_HW_BREAKPOINT_ARCH_H

#include <linux/compiler.h>
#include <linux/hw_breakpoint_wide.h>

#ifdef CONFIG_HAVE_HW_BREAKPOINT

#include <asm/hw_breakpoint.h>

struct pt_regs;

/**
 * enum bp_type_idx - classes of debug registers
 * @TYPE_INST: registers that take instruction breakpoints
 * @TYPE_DATA: registers that take data breakpoints (watchpoints)
 * @TYPE_MAX: number of classes
 *
 * Where every register takes both, the two classes are one.
 */
enum bp_type_idx {
	TYPE_INST = 0,
	TYPE_DATA = IS_ENABLED(CONFIG_HAVE_MIXED_BREAKPOINTS_REGS) ? 0 : 1,
	TYPE_MAX
};

static inline unsigned long hw_breakpoint_addr(struct perf_event *bp)
{
	return bp->attr.bp_addr;
}

static inline int hw_breakpoint_type(struct perf_event *bp)
{
	return bp->attr.bp_type;
}

static inline unsigned long hw_breakpoint_len(struct perf_event *bp)
{
	return bp->attr.bp_len;
}

static inline struct arch_hw_breakpoint *counter_arch_bp(struct perf_event *bp)
{
	return &bp->hw.info;
}

/* ---- Hits ---- */

/**
 * perf_bp_event - report a hit
 * @bp: the breakpoint that was hit
 * @regs: registers at the hit
 *
 * Context: On the CPU of the hit with interrupts off; takes no perf lock.
 */
void perf_bp_event(struct perf_event *bp, struct pt_regs *regs);

/**
 * perf_bp_event_at - report a hit of what a breakpoint watched when it was hit
 * @bp: the breakpoint
 * @addr: its address at that time, for the sample
 * @regs: registers at the hit
 *
 * For an architecture where a breakpoint may be changed between its hit and the
 * report of it.
 *
 * Context: As perf_bp_event().
 */
void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs);

/* ---- Repointing, see kernel/events/bp_repoint.c ---- */

/**
 * struct bp_version - what a member of a kernel-wide set watches
 * @range: for those who read it
 * @hw: the same for the architecture; its own state in it is not valid
 * @base: serial that was the newest of the whole set when this version was made
 */
struct bp_version {
	struct hw_breakpoint_range	range;
	struct arch_hw_breakpoint	hw;
	u64				base;
};

/* Maximum writer nesting on one CPU (task, softirq, IRQ, #DB, NMI, #DB), with margin */
#define BP_VERSIONS_DEPTH	8

/**
 * struct bp_versions - current and former versions of a member of a kernel-wide set
 * @now: serial of the current version and, in the low bits, its index
 * @depth: number of writers, each of which interrupted the one before
 * @version: two for each depth
 *
 * Used on the CPU of the event only.  Each nesting level owns two entries; a
 * writer uses the one that is not @now.
 */
struct bp_versions {
	unsigned long		now;
	unsigned int		depth;
	struct bp_version	version[2 * BP_VERSIONS_DEPTH];
};

/* The index in @now of struct bp_versions */
static inline unsigned int bp_version_index(unsigned long now)
{
	return now % (2 * BP_VERSIONS_DEPTH);
}

/**
 * bp_read_version - read the current version of what a breakpoint watches
 * @versions: of the event: hw.bp_versions
 * @v: filled in
 *
 * A writer that interrupts the reader on this CPU may reuse the entry that is
 * being read: read again if @now has changed.
 *
 * Context: Any, on the CPU of the event.
 * Return: @now of the version.
 */
static inline unsigned long bp_read_version(const struct bp_versions *versions,
					    struct bp_version *v)
{
	unsigned long now;

	do {
		now = READ_ONCE(versions->now);
		barrier();
		*v = versions->version[bp_version_index(now)];
		barrier();
	} while (now != READ_ONCE(versions->now));

	return now;
}

/* ---- Kernel debuggers ---- */

/**
 * struct bp_holder - describes a claim that is not embedded in a perf event
 * @addr: address that is watched
 * @len: length, in bytes
 * @bp_type: HW_BREAKPOINT_*
 * @handler: called at a hit; NULL for the kernel debugger
 * @name: for people; NULL if there is nothing better than the name of @handler
 *
 * For the list of claims in debugfs.
 */
struct bp_holder {
	unsigned long		addr;
	unsigned long		len;
	u32			bp_type;
	perf_overflow_handler_t	handler;
	const char		*name;
};

/**
 * dbg_reserve_wide_bp_slot - claim a register on every CPU, from a debugger
 * @claim: the claim, not held
 * @holder: describes the claim; stays valid while it is held
 *
 * For kernel debuggers that have stopped all other CPUs and arm breakpoints by
 * themselves: does not wait.
 *
 * Context: Any.
 * Return: 0, -ENOSPC, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_reserve_wide_bp_slot(struct bp_claim *claim, const struct bp_holder *holder);

/**
 * dbg_reserve_wide_bp_slot_late - claim a register for a debugger when the CPUs run
 * @claim: as for dbg_reserve_wide_bp_slot()
 * @holder: likewise
 *
 * Waits for other requests instead of failing with -EBUSY.
 *
 * Context: Process context.
 * Return: 0; -ENOSPC if some CPU has no register left.
 */
int dbg_reserve_wide_bp_slot_late(struct bp_claim *claim, const struct bp_holder *holder);

/**
 * dbg_release_wide_bp_slot - release a claim on every CPU, from a debugger
 * @claim: the claim; one that is not held is left alone
 *
 * Context: Any.
 * Return: 0, or -EBUSY if a stopped CPU is in the middle of a change.
 */
int dbg_release_wide_bp_slot(struct bp_claim *claim);

/**
 * dbg_release_wide_bp_slot_late - release a debugger's claim when the CPUs run
 * @claim: the claim; one that is not held is left alone
 *
 * For what dbg_release_wide_bp_slot() could not release.
 *
 * Context: Any but NMI, outside the debugger.
 */
void dbg_release_wide_bp_slot_late(struct bp_claim *claim);

/**
 * release_wide_bp_slot - release the claim of a kernel-wide breakpoint
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * For kernel debuggers that use the events of the set, which is disabled, for
 * breakpoints that they claim and arm by themselves.
 *
 * Context: Process context, may sleep.
 */
void release_wide_bp_slot(struct perf_event * __percpu *cpu_events);

/**
 * hw_breakpoint_evict_flexible - free registers for the claims of a debugger
 *
 * Soon evicts the flexible breakpoints of this CPU that have more registers than
 * guaranteed claims leave available.
 *
 * Context: Any, on the CPU in question.
 */
void hw_breakpoint_evict_flexible(void);

/* ---- Defaults ---- */

#ifndef hw_breakpoint_weight
#define hw_breakpoint_weight(attr)	1
#endif

#ifndef arch_hw_breakpoint_begin
static inline void arch_hw_breakpoint_begin(void) { }
static inline void arch_hw_breakpoint_commit(void) { }
#endif

#ifdef arch_hw_breakpoint_change
static inline bool bp_can_change(void) { return true; }
#else
static inline bool bp_can_change(void) { return false; }
static inline void arch_hw_breakpoint_change(struct perf_event *bp,
					     const struct arch_hw_breakpoint *hw) { }
#endif

#ifdef arch_hw_breakpoint_repoint
static inline bool bp_can_repoint(void) { return true; }
#else
static inline bool bp_can_repoint(void) { return false; }
static inline void arch_hw_breakpoint_repoint(struct perf_event *bp) { }
#endif

/**
 * struct bp_reg_state - what a register of the hardware holds
 * @armed: it holds a breakpoint; the other fields are valid only if so
 * @addr: address that is watched
 * @len: length, in bytes
 * @bp_type: HW_BREAKPOINT_*
 * @event: the event that is armed in it; NULL for a breakpoint of the kernel debugger
 */
struct bp_reg_state {
	bool			armed;
	unsigned long		addr;
	unsigned long		len;
	u32			bp_type;
	struct perf_event	*event;
};

#ifdef arch_hw_breakpoint_reg
static inline bool bp_can_read_regs(void) { return true; }
#else
static inline bool bp_can_read_regs(void) { return false; }
static inline void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state)
{
	*state = (struct bp_reg_state) { };
}
#endif

#ifndef arch_is_ptrace_breakpoint
static inline bool arch_is_ptrace_breakpoint(const struct perf_event *bp) { return false; }
#endif

#endif /* CONFIG_HAVE_HW_BREAKPOINT */

#ifndef ptrace_drop_disabled_hw_breakpoints
/*
 * Drops the breakpoints of @tsk, a traced task that is about to leave its stop, that
 * its debugger has disabled.  While @tsk is stopped a debugger may disable
 * breakpoints, change them and enable them again without losing their registers.
 */
static inline void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk) { }
#endif

#endif /* _LINUX_HW_BREAKPOINT_ARCH_H */
