/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hardware breakpoints: interface between an architecture and the generic
 * layer.
 *
 * An architecture provides in <asm/hw_breakpoint.h>:
 *
 *  struct arch_hw_breakpoint		a breakpoint as the registers take it
 *  hw_breakpoint_slots(class)		registers of a class on each CPU
 *  hw_breakpoint_arch_parse()		check and translate attributes
 *  arch_check_bp_in_kernelspace()	true if it watches kernel addresses
 *  arch_install_hw_breakpoint()	assign a register of this CPU, IRQs off
 *  arch_uninstall_hw_breakpoint()	remove it from its register, IRQs off
 *  hw_breakpoint_exceptions_notify	die notifier that reports hits; NULL if
 *					  the trap handler reports them
 *
 * and in its own files flush_ptrace_hw_breakpoint(). For each hit it calls
 * perf_bp_event() or perf_bp_event_at(), and if it steps over the access of a hit
 * perf_sigtrap_stepped(). It calls nothing else of the generic layer; its code
 * for ptrace and for the kernel debugger is a client of the API.
 *
 * The rest is optional. An architecture that implements one of the following
 * defines a macro of the same name; the defaults are below.
 *
 *  hw_breakpoint_weight(hw)		registers that a breakpoint needs
 *  hw_breakpoint_max_length		needed with it: longest range of data, in bytes
 *  arch_hw_breakpoint_begin()		begin a batch: install, uninstall and
 *					  change may defer register writes
 *  arch_hw_breakpoint_commit()		end the batch: do the deferred writes
 *  arch_hw_breakpoint_change()		change an installed breakpoint in place; its
 *					  translation must depend on nothing but
 *					  the attributes
 *  arch_hw_breakpoint_repoint()	apply a new bp->attr.bp_addr, in any context
 *  arch_hw_breakpoint_move()		needed with it: translate another address
 *  arch_hw_breakpoint_reg()		read back a register of this CPU
 *  arch_hw_breakpoint_after_access()	true if hits of data are reported after the access
 *  arch_hw_breakpoint_irqs_off()	needed with it: true if an access was made with
 *					  interrupts off
 *  ptrace_drop_disabled_hw_breakpoints()
 *					release breakpoints that ptrace disabled
 */
#ifndef _LINUX_HW_BREAKPOINT_ARCH_H
#define _LINUX_HW_BREAKPOINT_ARCH_H

#include <linux/compiler.h>
#include <linux/hw_breakpoint.h>
#include <linux/percpu-defs.h>

#ifdef CONFIG_HAVE_HW_BREAKPOINT

#include <asm/hw_breakpoint.h>

struct pt_regs;

static inline unsigned long hw_breakpoint_addr(struct perf_event *bp)
{
	return bp->attr.bp_addr;
}

static inline int hw_breakpoint_type(struct perf_event *bp)
{
	return bp->attr.bp_type;
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
 * Context: Any, NMI included, on the CPU of the hit; interrupts off. Takes no
 * perf lock.
 */
void perf_bp_event(struct perf_event *bp, struct pt_regs *regs);

/*
 * A bit of perf_sample_data::sample_flags, which no PERF_SAMPLE_* uses: the hit is the only
 * cause of an exception that interrupted user mode.
 */
#define PERF_SAMPLE_ONLY_CAUSE	BIT_ULL(62)

/**
 * perf_bp_event_at - report a hit of a breakpoint that may have changed since
 * @bp: the breakpoint that was hit
 * @addr: address that it watched at the hit, for the sample
 * @regs: registers at the hit
 * @only: the hit is the only cause of an exception. In user mode its handler, which runs on
 *	the stack of the task, may send a signal
 *
 * For an architecture where a breakpoint may be changed between its hit and the
 * report of the hit.
 *
 * Context: As perf_bp_event().
 */
void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs, bool only);

/**
 * arch_hw_breakpoint_keeps_page - check how TLBs are flushed
 *
 * The default is weak and returns false.
 *
 * Context: Any.
 * Return: true if a user page that an access has found is not replaced by another one until
 * its hit has been handled: a flush interrupts all CPUs that use the memory, and waits for
 * them. A hypervisor that flushes TLBs does not wait for a CPU with interrupts off.
 */
bool arch_hw_breakpoint_keeps_page(void);

/* ---- Changes of the address alone ---- */

#ifdef arch_hw_breakpoint_repoint
/**
 * arch_hw_breakpoint_move - check a breakpoint at another address and translate it
 * @hw: the translation of a breakpoint
 * @addr: the address at which a breakpoint of the same type and length is wanted
 * @to: its translation, undefined on failure
 *
 * Equal to hw_breakpoint_arch_parse() of the attributes of @hw with this address: the
 * breakpoint may need another number of registers there.
 * Architectures have it that have arch_hw_breakpoint_repoint().
 *
 * Context: Any.
 * Return: as hw_breakpoint_arch_parse().
 */
int arch_hw_breakpoint_move(const struct arch_hw_breakpoint *hw, unsigned long addr,
			    struct arch_hw_breakpoint *to);
#endif

/* ---- Kernel debuggers ---- */

/**
 * struct bp_holder - describes a claim that is not embedded in a perf event
 * @addr: address that is watched
 * @len: length, in bytes
 * @bp_type: HW_BREAKPOINT_*
 * @handler: called at a hit; NULL for the kernel debugger
 * @name: name to print; NULL to print the name of @handler instead
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
 * dbg_reserve_wide_bp_slot - claim a register on every CPU for a kernel debugger
 * @claim: the claim, not held
 * @holder: describes the claim; must stay valid as long as @claim is held
 * @wait: wait for other requests. Not for a debugger that has stopped all other CPUs
 *
 * For kernel debuggers that arm breakpoints by themselves.
 *
 * Context: Any; process context with @wait.
 * Return: 0; -ENOSPC if some CPU has no register available; without @wait -EBUSY if a
 * stopped CPU holds a lock of the accounting.
 */
int dbg_reserve_wide_bp_slot(struct bp_claim *claim, const struct bp_holder *holder,
			     bool wait);

/**
 * dbg_release_wide_bp_slot - release a debugger's claim
 * @claim: the claim; ignored if it is not held
 * @wait: as for dbg_reserve_wide_bp_slot()
 *
 * The caller must not release a claim twice at the same time.
 *
 * Context: Any; with @wait any but NMI, outside the debugger.
 * Return: 0; without @wait -EBUSY if a stopped CPU holds a lock of the accounting.
 */
int dbg_release_wide_bp_slot(struct bp_claim *claim, bool wait);

/**
 * release_wide_bp_slot - release the claim of a kernel-wide breakpoint
 * @cpu_events: what register_wide_hw_breakpoint() returned
 *
 * For kernel debuggers that register a disabled set only to use its events for
 * breakpoints that they claim and arm by themselves. The events stay while their CPU is
 * offline, as the debugger may have installed them.
 *
 * Context: Process context, may sleep.
 */
void release_wide_bp_slot(struct perf_event * __percpu *cpu_events);

/**
 * hw_breakpoint_evict_flexible - free registers of this CPU for a debugger
 *
 * Queues an irq_work, which evicts flexible breakpoints of this CPU until they
 * have no more registers than the guaranteed claims leave available.
 *
 * Context: Any; not preemptible.
 */
void hw_breakpoint_evict_flexible(void);

/* ---- Defaults ---- */

/* False in a test of the code for architectures without the functions below */
#define BP_USE_ARCH	(!IS_ENABLED(CONFIG_HW_BREAKPOINT_FALLBACKS))

#ifndef hw_breakpoint_weight
#define hw_breakpoint_weight(hw)	1
#define hw_breakpoint_max_length	HW_BREAKPOINT_LEN_8
#endif

#ifdef arch_hw_breakpoint_begin
static inline bool bp_can_batch(void) { return BP_USE_ARCH; }
#else
static inline bool bp_can_batch(void) { return false; }
static inline void arch_hw_breakpoint_begin(void) { }
static inline void arch_hw_breakpoint_commit(void) { }
#endif

#ifdef arch_hw_breakpoint_change
static inline bool bp_can_change(void) { return BP_USE_ARCH; }
#else
static inline bool bp_can_change(void) { return false; }
static inline void arch_hw_breakpoint_change(struct perf_event *bp,
					     const struct arch_hw_breakpoint *hw) { }
#endif

/* A new address takes effect in any context.  The generic atomic64_t takes a lock. */
#ifdef arch_hw_breakpoint_repoint
static inline bool bp_can_repoint(void)
{
	return BP_USE_ARCH && !IS_ENABLED(CONFIG_GENERIC_ATOMIC64);
}
#else
static inline bool bp_can_repoint(void) { return false; }
static inline void arch_hw_breakpoint_repoint(struct perf_event *bp) { }
static inline int arch_hw_breakpoint_move(const struct arch_hw_breakpoint *hw, unsigned long addr,
					  struct arch_hw_breakpoint *to) { return -EOPNOTSUPP; }
#endif

/**
 * struct bp_reg_state - contents of a hardware register
 * @armed: a breakpoint is armed in it; otherwise the other fields are not valid
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
static inline bool bp_can_read_regs(void) { return BP_USE_ARCH; }
#else
static inline bool bp_can_read_regs(void) { return false; }
static inline void arch_hw_breakpoint_reg(unsigned int slot, struct bp_reg_state *state)
{
	*state = (struct bp_reg_state) { };
}
#endif

/* This CPU reads a watched object to tell its value: that is no hit. */
DECLARE_PER_CPU(bool, bp_value_reads);

#ifndef arch_hw_breakpoint_after_access
#define arch_hw_breakpoint_after_access()	false
#define arch_hw_breakpoint_irqs_off(regs)	true
#endif

#endif /* CONFIG_HAVE_HW_BREAKPOINT */

/**
 * arch_hw_breakpoint_steps_over - check whether current steps over the access of a hit
 *
 * For an architecture that reports hits before the access, disables the breakpoint, and
 * enables it again after a step. The handler of a signal that is sent before the step would
 * return to the access, which would be hit again. After the step the architecture calls
 * perf_sigtrap_stepped(), in the exception. The default is weak and returns false.
 *
 * Context: Task context, returning to user mode.
 * Return: true if a step is still to come.
 */
bool arch_hw_breakpoint_steps_over(void);

/**
 * perf_sigtrap_stepped - send the signals of hits that waited for a step
 *
 * For the architectures that have arch_hw_breakpoint_steps_over(), which must return false
 * already. The signals of the hits of current that are stored are sent when current returns
 * to user mode.
 *
 * Context: An exception that current has caused in user mode.
 */
void perf_sigtrap_stepped(void);

#ifndef ptrace_drop_disabled_hw_breakpoints
/*
 * Releases the breakpoints of @tsk that its debugger has disabled; @tsk is
 * about to leave its ptrace stop.  They are kept until then, so that a debugger
 * can disable, change and enable the breakpoints of a stopped task without
 * losing their claims.
 */
static inline void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk) { }
#endif

#endif /* _LINUX_HW_BREAKPOINT_ARCH_H */
