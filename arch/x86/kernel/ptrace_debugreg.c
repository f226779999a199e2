// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual debug registers of a traced task: PTRACE_PEEKUSR and PTRACE_POKEUSR.
 *
 * DR0-DR3 and DR7 read back what the tracer wrote. Each slot that DR7 enables has a
 * breakpoint event; the address of a slot that DR7 has never enabled is only stored.
 * DR6 shows the last debug exception that the task took in user mode.
 *
 * A write to DR7 first checks all slots, then opens the events that are missing, and
 * only then changes anything. A write that fails has no effect.
 *
 * Debuggers change breakpoints by disabling all slots, writing the addresses
 * and enabling the slots again. Therefore a slot that is disabled keeps its
 * event until the task leaves the ptrace stop. The event is disabled but keeps
 * its claim, so no other request can take the register in between. A slot that
 * is enabled may use the event of any slot that is disabled, so a tracer that
 * has four events can rearrange them even if no register is available. The
 * tracer releases the events of slots that are still disabled before it resumes
 * the task or detaches; if the tracer has died, the task itself does so before
 * it returns to user mode.
 *
 * No lock is needed: the tracer accesses the virtual registers while the task
 * is stopped, and the task accesses them at exec, at exit and on its way to
 * user mode.
 */

#include <linux/errno.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/nospec.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include <asm/debugreg.h>
#include <asm/dr7.h>
#include <asm/hw_breakpoint.h>
#include <asm/processor.h>

/**
 * struct ptrace_debugregs - virtual debug registers of a task
 * @addr: DR0 ... DR3
 * @dr7: DR7, all bits as written
 * @bp: event of each slot; a slot that @dr7 disables may still have one until
 *	the task leaves the ptrace stop
 * @drop_work: task work that releases events of disabled slots if the tracer died
 * @queued: @drop_work has been added to the task
 */
struct ptrace_debugregs {
	unsigned long		addr[HBP_NUM];
	unsigned long		dr7;
	struct perf_event	*bp[HBP_NUM];
	struct callback_head	drop_work;
	bool			queued;
};

/* Records the hit in the virtual DR6; exc_debug_user() then sends SIGTRAP. */
static void ptrace_triggered(struct perf_event *bp,
			     struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct thread_struct *thread = &current->thread;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (thread->ptrace_dregs->bp[slot] == bp)
			thread->virtual_dr6 |= DR_TRAP0 << slot;
	}
}

/* ---- From registers to attributes ---- */

static int fill_type(struct perf_event_attr *attr, unsigned int ctl)
{
	attr->bp_len = dr7_ctl_bytes(ctl);
	/* The code of 8 bytes is undefined on 32-bit processors. */
	if (attr->bp_len > sizeof(long))
		return -EINVAL;
	/* A virtual register is one register: it cannot watch several pieces. */
	if (!IS_ALIGNED(attr->bp_addr, attr->bp_len))
		return -EINVAL;

	switch (dr7_ctl_rw(ctl)) {
	case DR_RW_EXECUTE:
		if (attr->bp_len != 1)
			return -EINVAL;
		attr->bp_type = HW_BREAKPOINT_X;
		attr->bp_len = sizeof(long);
		return 0;
	case DR_RW_WRITE:
		attr->bp_type = HW_BREAKPOINT_W;
		return 0;
	case DR_RW_READ:
		attr->bp_type = HW_BREAKPOINT_RW;
		return 0;
	default:
		return -EINVAL;
	}
}

static int fill_attr(struct perf_event_attr *attr, unsigned int ctl,
		     unsigned long addr)
{
	ptrace_breakpoint_init(attr);
	attr->bp_addr = addr;

	return fill_type(attr, ctl);
}

static int check_slot(unsigned int ctl, unsigned long addr)
{
	struct perf_event_attr attr;
	struct arch_hw_breakpoint hw;
	int err;

	err = fill_attr(&attr, ctl, addr) ?: hw_breakpoint_arch_parse(NULL, &attr, &hw);
	if (err)
		return err;

	return arch_check_bp_in_kernelspace(&hw) ? -EINVAL : 0;
}

static bool same_place(const struct perf_event *bp,
		       const struct perf_event_attr *attr)
{
	return bp->attr.bp_addr == attr->bp_addr &&
	       bp->attr.bp_len == attr->bp_len &&
	       bp->attr.bp_type == attr->bp_type;
}

/* Set address, length and type of an event, and enable it. */
static int enable_bp(struct perf_event *bp, struct perf_event_attr *attr)
{
	if (!bp->attr.disabled && same_place(bp, attr))
		return 0;
	return modify_user_hw_breakpoint(bp, attr);
}

static int disable_bp(struct perf_event *bp)
{
	struct perf_event_attr attr;

	if (bp->attr.disabled)
		return 0;
	attr = bp->attr;
	attr.disabled = 1;
	return modify_user_hw_breakpoint(bp, &attr);
}

/* ---- Events of disabled slots ---- */

/* Returns true if a disabled slot still has an event. */
static bool is_idle(const struct ptrace_debugregs *dregs, int slot)
{
	return dregs->bp[slot] && !dr7_enabled(dregs->dr7, slot);
}

static void drop_idle(struct ptrace_debugregs *dregs)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (is_idle(dregs, slot)) {
			unregister_hw_breakpoint(dregs->bp[slot]);
			dregs->bp[slot] = NULL;
		}
	}
}

static void drop_idle_work(struct callback_head *work)
{
	struct ptrace_debugregs *dregs =
		container_of(work, struct ptrace_debugregs, drop_work);

	dregs->queued = false;
	drop_idle(dregs);
}

/* Release the events of disabled slots even if the tracer dies in this stop. */
static void ensure_drop(struct task_struct *tsk, struct ptrace_debugregs *dregs)
{
	int slot;

	for (slot = 0; slot < HBP_NUM && !is_idle(dregs, slot); slot++)
		;
	if (slot == HBP_NUM || dregs->queued)
		return;

	/* task_work_add() fails in an exiting task: no write to DR7 can follow. */
	if (task_work_add(tsk, &dregs->drop_work, TWA_RESUME))
		drop_idle(dregs);
	else
		dregs->queued = true;
}

/* ---- DR0 ... DR3 ---- */

static int set_addr(struct ptrace_debugregs *dregs, int slot, unsigned long addr)
{
	struct perf_event_attr attr;
	int err;

	if (dr7_enabled(dregs->dr7, slot)) {
		/* enable_bp() checks the address: the event excludes the kernel. */
		err = fill_attr(&attr, dr7_ctl(dregs->dr7, slot), addr);
		if (!err)
			err = enable_bp(dregs->bp[slot], &attr);
	} else {
		/* There is no type and length yet: accept any user space address. */
		err = check_slot(DR_LEN_1 | DR_RW_WRITE, addr);
	}
	if (!err)
		dregs->addr[slot] = addr;

	return err;
}

/* ---- DR7 ---- */

static int check_dr7(const struct ptrace_debugregs *dregs, unsigned long dr7)
{
	int slot, err;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(dr7, slot))
			continue;
		err = check_slot(dr7_ctl(dr7, slot), dregs->addr[slot]);
		if (err)
			return err;
	}

	return 0;
}

static struct perf_event *new_bp(struct task_struct *tsk, unsigned int ctl,
				 unsigned long addr)
{
	struct perf_event_attr attr;
	int err;

	err = fill_attr(&attr, ctl, addr);
	if (err)
		return ERR_PTR(err);

	return register_user_hw_breakpoint(&attr, ptrace_triggered, NULL, tsk);
}

/* Take the event of a slot that @dr7 disables, or return NULL if there is none. */
static struct perf_event *take_unused(struct perf_event *bp[HBP_NUM], unsigned long dr7)
{
	struct perf_event *unused;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		unused = bp[slot];
		if (unused && !dr7_enabled(dr7, slot)) {
			bp[slot] = NULL;
			return unused;
		}
	}

	return NULL;
}

static void drop_new(struct perf_event *bp[HBP_NUM], const bool is_new[HBP_NUM])
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (is_new[slot])
			unregister_hw_breakpoint(bp[slot]);
	}
}

/*
 * Assign an event to each slot that @dr7 enables: its own, that of a slot that @dr7
 * disables, or a new one. @bp is a copy of dregs->bp, which does not change here.
 */
static int plan_events(struct perf_event *bp[HBP_NUM],
		       const struct ptrace_debugregs *dregs, unsigned long dr7,
		       struct task_struct *tsk)
{
	bool is_new[HBP_NUM] = { };
	struct perf_event *new;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(dr7, slot) || bp[slot])
			continue;
		bp[slot] = take_unused(bp, dr7);
		if (bp[slot])
			continue;
		new = new_bp(tsk, dr7_ctl(dr7, slot), dregs->addr[slot]);
		if (IS_ERR(new)) {
			drop_new(bp, is_new);
			return PTR_ERR(new);
		}
		bp[slot] = new;
		is_new[slot] = true;
	}

	return 0;
}

static int enable_slot(struct ptrace_debugregs *dregs, unsigned long dr7, int slot)
{
	struct perf_event_attr attr;

	return fill_attr(&attr, dr7_ctl(dr7, slot), dregs->addr[slot]) ?:
	       enable_bp(dregs->bp[slot], &attr);
}

static void commit_dr7(struct perf_event *bp[HBP_NUM], struct ptrace_debugregs *dregs,
		       unsigned long dr7)
{
	int slot, err;

	for (slot = 0; slot < HBP_NUM; slot++) {
		dregs->bp[slot] = bp[slot];
		if (!bp[slot])
			continue;
		/* check_dr7() succeeded and the class is the same: cannot fail. */
		err = dr7_enabled(dr7, slot) ? enable_slot(dregs, dr7, slot) :
					       disable_bp(bp[slot]);
		WARN_ON_ONCE(err);
	}
	dregs->dr7 = dr7;
}

static int set_dr7(struct task_struct *tsk, struct ptrace_debugregs *dregs,
		   unsigned long dr7)
{
	struct perf_event *bp[HBP_NUM];
	int err;

	err = check_dr7(dregs, dr7);
	if (err)
		return err;

	memcpy(bp, dregs->bp, sizeof(bp));
	err = plan_events(bp, dregs, dr7, tsk);
	if (err)
		return err;

	commit_dr7(bp, dregs, dr7);
	ensure_drop(tsk, dregs);
	return 0;
}

/* ---- Interface ---- */

unsigned long ptrace_get_debugreg(struct task_struct *tsk, int n)
{
	const struct ptrace_debugregs *dregs = tsk->thread.ptrace_dregs;

	if (n == 6)
		return tsk->thread.virtual_dr6 ^ DR6_RESERVED;
	if (!dregs)
		return 0;
	if (n == 7)
		return dregs->dr7;
	if (n < HBP_NUM)
		return dregs->addr[array_index_nospec(n, HBP_NUM)];
	return 0;
}

static struct ptrace_debugregs *get_dregs(struct thread_struct *thread)
{
	struct ptrace_debugregs *dregs = thread->ptrace_dregs;

	if (!dregs) {
		dregs = kzalloc(sizeof(*dregs), GFP_KERNEL_ACCOUNT);
		if (dregs)
			init_task_work(&dregs->drop_work, drop_idle_work);
		thread->ptrace_dregs = dregs;
	}

	return dregs;
}

int ptrace_set_debugreg(struct task_struct *tsk, int n, unsigned long val)
{
	struct thread_struct *thread = &tsk->thread;
	struct ptrace_debugregs *dregs;

	if (n == 6) {
		thread->virtual_dr6 = val ^ DR6_RESERVED;
		return 0;
	}
	if (n >= HBP_NUM && n != 7)
		return -EIO;

	dregs = get_dregs(thread);
	if (!dregs)
		return -ENOMEM;
	if (n == 7)
		return set_dr7(tsk, dregs, val);
	return set_addr(dregs, array_index_nospec(n, HBP_NUM), val);
}

void ptrace_drop_disabled_hw_breakpoints(struct task_struct *tsk)
{
	struct ptrace_debugregs *dregs = tsk->thread.ptrace_dregs;

	if (dregs)
		drop_idle(dregs);
}

void flush_ptrace_hw_breakpoint(struct task_struct *tsk)
{
	struct thread_struct *thread = &tsk->thread;
	struct ptrace_debugregs *dregs = thread->ptrace_dregs;
	int slot;

	thread->virtual_dr6 = 0;
	if (!dregs)
		return;

	/* At exit all task works have run, so @queued is false. */
	if (dregs->queued)
		task_work_cancel(tsk, &dregs->drop_work);
	for (slot = 0; slot < HBP_NUM; slot++)
		unregister_hw_breakpoint(dregs->bp[slot]);
	thread->ptrace_dregs = NULL;
	kfree(dregs);
}
