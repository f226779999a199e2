// SPDX-License-Identifier: GPL-2.0
/*
 * The virtual debug registers that ptrace shows.
 *
 * A traced task has a set of DR0-DR3 and DR7 that reads back what the tracer
 * wrote, and a breakpoint event for each slot that DR7 enables; a slot that is
 * disabled is a number in memory and takes no register from anyone.  DR6 says
 * what the last debug exception of the task in user mode was.
 *
 * A write to DR7 is checked as a whole, then gets the events it lacks, and only
 * then changes anything, so a refused one leaves all as it was.  Slots that it
 * disables hand their events to slots that it enables: a tracer that holds four
 * can rearrange them, however full the machine is.
 *
 * The registers are used by the tracer while the task is stopped, and by the
 * task itself at exec and exit: never by both at a time.
 */

#include <linux/errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/nospec.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <asm/debugreg.h>
#include <asm/dr7.h>
#include <asm/hw_breakpoint.h>
#include <asm/processor.h>

/**
 * struct ptrace_debugregs - the virtual registers of a task
 * @addr: DR0 ... DR3
 * @dr7: DR7, all bits as written
 * @bp: the events, one for each slot that @dr7 enables
 */
struct ptrace_debugregs {
	unsigned long		addr[HBP_NUM];
	unsigned long		dr7;
	struct perf_event	*bp[HBP_NUM];
};

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

bool arch_is_ptrace_breakpoint(const struct perf_event *bp)
{
	return READ_ONCE(bp->overflow_handler) == ptrace_triggered;
}

/* ---- From registers to attributes ---- */

static int fill_type(struct perf_event_attr *attr, unsigned int ctl)
{
	attr->bp_len = dr7_ctl_bytes(ctl);

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

static int check_attr(const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw;
	int err;

	err = hw_breakpoint_arch_parse(NULL, attr, &hw);
	if (err)
		return err;

	return arch_check_bp_in_kernelspace(&hw) ? -EINVAL : 0;
}

static int fill_attr(struct perf_event_attr *attr, unsigned int ctl,
		     unsigned long addr)
{
	int err;

	ptrace_breakpoint_init(attr);
	attr->bp_addr = addr;
	err = fill_type(attr, ctl);

	return err ? err : check_attr(attr);
}

/* A slot that is disabled takes any address in user space. */
static int check_addr(unsigned long addr)
{
	struct perf_event_attr attr;

	return fill_attr(&attr, DR_LEN_1 | DR_RW_WRITE, addr);
}

static bool same_place(const struct perf_event *bp,
		       const struct perf_event_attr *attr)
{
	return bp->attr.bp_addr == attr->bp_addr &&
	       bp->attr.bp_len == attr->bp_len &&
	       bp->attr.bp_type == attr->bp_type;
}

static int move_bp(struct perf_event *bp, struct perf_event_attr *attr)
{
	if (same_place(bp, attr))
		return 0;
	return modify_user_hw_breakpoint(bp, attr);
}

/* ---- DR0 ... DR3 ---- */

static int set_addr(struct ptrace_debugregs *dregs, int slot, unsigned long addr)
{
	struct perf_event_attr attr;
	int err;

	if (dr7_enabled(dregs->dr7, slot)) {
		err = fill_attr(&attr, dr7_ctl(dregs->dr7, slot), addr);
		if (!err)
			err = move_bp(dregs->bp[slot], &attr);
	} else {
		err = check_addr(addr);
	}
	if (!err)
		dregs->addr[slot] = addr;

	return err;
}

/* ---- DR7 ---- */

/**
 * struct dr7_plan - what a write to DR7 comes to
 * @attr: attributes of the slots that will be enabled
 * @bp: their events, NULL for the other slots
 * @spare: events that are in no slot any more
 * @nr_spare: how many
 */
struct dr7_plan {
	struct perf_event_attr	attr[HBP_NUM];
	struct perf_event	*bp[HBP_NUM];
	struct perf_event	*spare[HBP_NUM];
	int			nr_spare;
};

static int plan_attrs(struct dr7_plan *plan, const struct ptrace_debugregs *dregs,
		      unsigned long dr7)
{
	int slot, err;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(dr7, slot))
			continue;
		err = fill_attr(&plan->attr[slot], dr7_ctl(dr7, slot),
				dregs->addr[slot]);
		if (err)
			return err;
	}

	return 0;
}

static void drop_new(struct dr7_plan *plan, const bool is_new[HBP_NUM])
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (is_new[slot])
			unregister_hw_breakpoint(plan->bp[slot]);
	}
}

/* Gives each slot that will be enabled an event: its own, a spare or a new one. */
static int plan_events(struct dr7_plan *plan, const struct ptrace_debugregs *dregs,
		       unsigned long dr7, struct task_struct *tsk)
{
	bool is_new[HBP_NUM] = { };
	struct perf_event *bp;
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dregs->bp[slot])
			continue;
		if (dr7_enabled(dr7, slot))
			plan->bp[slot] = dregs->bp[slot];
		else
			plan->spare[plan->nr_spare++] = dregs->bp[slot];
	}

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(dr7, slot) || plan->bp[slot])
			continue;
		if (plan->nr_spare) {
			plan->bp[slot] = plan->spare[--plan->nr_spare];
			continue;
		}
		bp = register_user_hw_breakpoint(&plan->attr[slot],
						 ptrace_triggered, NULL, tsk);
		if (IS_ERR(bp)) {
			drop_new(plan, is_new);
			return PTR_ERR(bp);
		}
		plan->bp[slot] = bp;
		is_new[slot] = true;
	}

	return 0;
}

static void carry_out(struct dr7_plan *plan, struct ptrace_debugregs *dregs)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++) {
		/* Checked before, and of the same class: it cannot fail. */
		if (plan->bp[slot])
			WARN_ON_ONCE(move_bp(plan->bp[slot], &plan->attr[slot]));
		dregs->bp[slot] = plan->bp[slot];
	}
	while (plan->nr_spare)
		unregister_hw_breakpoint(plan->spare[--plan->nr_spare]);
}

static int set_dr7(struct task_struct *tsk, struct ptrace_debugregs *dregs,
		   unsigned long dr7)
{
	struct dr7_plan *plan;
	int err;

	plan = kzalloc(sizeof(*plan), GFP_KERNEL);
	if (!plan)
		return -ENOMEM;

	err = plan_attrs(plan, dregs, dr7);
	if (!err)
		err = plan_events(plan, dregs, dr7, tsk);
	if (!err) {
		carry_out(plan, dregs);
		dregs->dr7 = dr7;
	}

	kfree(plan);
	return err;
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
	if (!thread->ptrace_dregs)
		thread->ptrace_dregs = kzalloc(sizeof(*thread->ptrace_dregs),
					       GFP_KERNEL_ACCOUNT);
	return thread->ptrace_dregs;
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

void flush_ptrace_hw_breakpoint(struct task_struct *tsk)
{
	struct thread_struct *thread = &tsk->thread;
	struct ptrace_debugregs *dregs = thread->ptrace_dregs;
	int slot;

	thread->virtual_dr6 = 0;
	if (!dregs)
		return;

	for (slot = 0; slot < HBP_NUM; slot++)
		unregister_hw_breakpoint(dregs->bp[slot]);
	thread->ptrace_dregs = NULL;
	kfree(dregs);
}
