// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware breakpoints as perf events.
 *
 * A breakpoint comes to life in three steps.  event_init checks what is asked
 * for and translates it for the architecture; nothing is taken yet.  Once perf
 * core has checked permissions and found the context, hw_breakpoint_claim()
 * takes a register in the books (bp_slots.h).  From then on perf schedules the
 * event, and add always finds the register that the claim stands for.
 *
 * The claim goes back when the event leaves its context for good: its task
 * exits or its last user closes it.  It stays while the event is disabled,
 * moved between PMU contexts or on a CPU that went offline.
 *
 * What an architecture provides, in <asm/hw_breakpoint.h>:
 *
 *  struct arch_hw_breakpoint		one breakpoint, translated
 *  hw_breakpoint_slots(class)		registers of a class on each CPU
 *  hw_breakpoint_arch_parse()		check and translate attributes
 *  arch_check_bp_in_kernelspace()	does it watch kernel addresses
 *  arch_install_hw_breakpoint()	give it a register of this CPU, IRQs off
 *  arch_uninstall_hw_breakpoint()	take the register away, IRQs off
 *  hw_breakpoint_weight()		registers it takes; optional, 1
 *
 * and calls perf_bp_event() or perf_bp_event_at() for each hit, from its trap
 * handler, which it tells by ARCH_HW_BREAKPOINT_TRAP, or in the die chain, from
 * hw_breakpoint_exceptions_notify().  With ARCH_HW_BREAKPOINT_BATCH it may put off
 * what install and uninstall do to the hardware: all calls that perf makes at one
 * time stand between arch_hw_breakpoint_begin() and arch_hw_breakpoint_commit().
 * With ARCH_HW_BREAKPOINT_REPOINT breakpoints can be changed in any context:
 * arch_hw_breakpoint_repoint() makes hw.info what bp_current_version() says.
 */

#define pr_fmt(fmt) "hw-breakpoint: " fmt

#include <linux/capability.h>
#include <linux/device.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kdebug.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/sysfs.h>

#include "bp_internal.h"
#include "internal.h"

struct bp_slots bp_books;

static struct pmu perf_breakpoint;

/* perf looks at hw.flags of every event. */
static_assert(offsetofend(struct hw_perf_event, bp_flexible) <=
	      offsetof(struct hw_perf_event, flags));

/* ---- What is asked for ---- */

int bp_translate(struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw)
{
	int err;

	if (attr->config & ~(HW_BREAKPOINT_FLEXIBLE | HW_BREAKPOINT_SIGTRAP_QUEUE))
		return -EINVAL;
	if (hw_breakpoint_queues_sigtrap(attr) && !attr->sigtrap)
		return -EINVAL;
	/* A pinned event never leaves. */
	if (hw_breakpoint_is_flexible(attr) && attr->pinned)
		return -EINVAL;

	err = hw_breakpoint_arch_parse(bp, attr, hw);
	if (err)
		return err;

	if (attr->exclude_kernel && arch_check_bp_in_kernelspace(hw))
		return -EINVAL;

	return 0;
}

int bp_parse(struct perf_event *bp, const struct perf_event_attr *attr,
	     struct arch_hw_breakpoint *hw)
{
	int err;

	err = bp_translate(bp, attr, hw);
	/* It is a user address then. */
	if (err || attr->exclude_kernel)
		return err;

	/*
	 * Kernel addresses are for the administrator: a breakpoint there can
	 * slow down or stop anything.  An inherited one was decided upon when
	 * its parent was opened, whoever forks now.
	 */
	if (arch_check_bp_in_kernelspace(hw) && !bp->parent &&
	    !capable(CAP_SYS_ADMIN))
		return -EPERM;

	return 0;
}

static void hw_breakpoint_destroy(struct perf_event *bp)
{
	hw_breakpoint_release(bp);
}

/*
 * A task may be told early that it has no register left: it is nobody else's
 * business how many it holds.  Whatever else is wrong with the request must be
 * known by now.
 */
static bool own_task_is_full(const struct perf_event *bp)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr);
	struct task_struct *task = bp->hw.target;
	struct perf_event_context *ctx;
	bool full;

	if (!task || !same_thread_group(task, current) || bp->parent ||
	    bp->group_leader != bp || bp->attr.use_clockid)
		return false;

	rcu_read_lock();
	/* perf does not tell sparse that it is under RCU. */
	ctx = READ_ONCE(task->perf_event_ctxp);
	full = ctx && bp_slots_full(&bp_books, &spec, &ctx->bp_domain);
	rcu_read_unlock();

	return full;
}

static int hw_breakpoint_event_init(struct perf_event *bp)
{
	struct arch_hw_breakpoint hw = { };
	int err;

	if (bp->attr.type != PERF_TYPE_BREAKPOINT)
		return -ENOENT;

	if (has_branch_stack(bp) || !bp_books.class[bp_class(&bp->attr)].slots)
		return -EOPNOTSUPP;

	err = bp_parse(bp, &bp->attr, &hw);
	if (err)
		return err;

	if (own_task_is_full(bp))
		return -ENOSPC;

	bp->hw.info = hw;
	bp->bp_opened = (struct bp_opened) {
		.sample_period		= bp->attr.sample_period,
		.sample_max_stack	= bp->attr.sample_max_stack,
		.enable_on_exec		= bp->attr.enable_on_exec,
	};
	bp->destroy = hw_breakpoint_destroy;

	return 0;
}

/* ---- Claims ---- */

/*
 * The breakpoints of a group take turns together or not at all, so they are all
 * of one kind.  A group whose events need a hardware PMU too would have to wait
 * for two things at once.
 */
static int check_member(const struct perf_event *event,
			const struct perf_event *member, unsigned int *weight)
{
	struct bp_claim_spec spec;

	if (member->pmu != &perf_breakpoint)
		return 0;

	spec = bp_claim_spec(&member->attr);
	if (event->pmu != &perf_breakpoint)
		return spec.flexible ? -EINVAL : 0;
	if (spec.flexible != hw_breakpoint_is_flexible(&event->attr))
		return -EINVAL;
	if (spec.class == bp_class(&event->attr))
		*weight += spec.weight;
	return 0;
}

/*
 * A group that takes turns is scheduled as a whole at each turn, with interrupts
 * off: bound its members, of which software events may be any number otherwise.
 */
#define BP_TURNS_GROUP_MAX	32

static bool group_is_too_large(const struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;

	/* Its leader and @event itself are not among the siblings. */
	if (leader->nr_siblings + 2 <= BP_TURNS_GROUP_MAX)
		return false;
	if (hw_breakpoint_event_is_flexible(event) ||
	    hw_breakpoint_event_is_flexible(leader))
		return true;
	for_each_sibling_event(sibling, leader) {
		if (hw_breakpoint_event_is_flexible(sibling))
			return true;
	}

	return false;
}

/*
 * Checks @event, of any PMU, against the group that it is about to join.
 * Software events do not mind and nobody minds them.
 */
static int check_group(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	bool breakpoint = event->pmu == &perf_breakpoint;
	struct bp_claim_spec spec = { };
	unsigned int weight;
	int err;

	if (group_is_too_large(event))
		return -EINVAL;
	if (!breakpoint && is_software_event(event))
		return 0;
	if (breakpoint)
		spec = bp_claim_spec(&event->attr);
	if (spec.flexible && (leader->attr.pinned || !in_software_context(leader)))
		return -EINVAL;

	weight = spec.weight;
	err = check_member(event, leader, &weight);
	if (err)
		return err;
	for_each_sibling_event(sibling, leader) {
		err = check_member(event, sibling, &weight);
		if (err)
			return err;
	}

	/* Never would all of them have a register at the same time. */
	if (spec.flexible && weight > bp_books.class[spec.class].slots)
		return -EINVAL;
	return 0;
}

/* Claims for @bp in @ctx, which is what it asks for in its attributes. */
static int claim(struct perf_event *bp, struct perf_event_context *ctx)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr);

	return bp_slots_reserve(&bp_books, &bp->bp_claim, &spec,
				ctx->task ? &ctx->bp_domain : NULL, bp->cpu);
}

/**
 * __hw_breakpoint_claim - take the register for a new event
 * @bp: an event that is about to be installed; one of another PMU if it joins a
 *	group
 * @ctx: where
 *
 * Called by perf core under ctx->mutex, once permissions and everything else
 * are checked.  For an inherited event @ctx is new and nobody else knows it.
 *
 * Return: 0; -EINVAL if @bp does not go with the breakpoints of its group;
 * -ENOSPC if it is a breakpoint and the holders leave no room.
 */
int __hw_breakpoint_claim(struct perf_event *bp, struct perf_event_context *ctx)
{
	int err;

	if (bp->group_leader != bp && !bp->parent) {
		err = check_group(bp);
		if (err)
			return err;
	}

	if (bp->pmu != &perf_breakpoint)
		return 0;
	if (bp_wide_adopt(bp))
		return 0;

	return claim(bp, ctx);
}

/**
 * __hw_breakpoint_reclaim - take the register that an event has lost
 * @bp: a breakpoint in ERROR state
 *
 * perf moves the events of a CPU to another one if a PMU of their group asks for
 * it.  A breakpoint that finds no register there stays without one until it is
 * enabled or modified.
 *
 * Context: @bp is in its context, which is locked.
 * Return: 0 if @bp has a register now, or had one; -ENOSPC if the holders leave
 * no room.
 */
int __hw_breakpoint_reclaim(struct perf_event *bp)
{
	return READ_ONCE(bp->bp_claim.held) ? 0 : claim(bp, bp->ctx);
}

/**
 * __hw_breakpoint_release - give the register of an event back
 * @bp: a breakpoint that leaves its context for good
 *
 * May be called more than once, under ctx->lock too.
 */
void __hw_breakpoint_release(struct perf_event *bp)
{
	/*
	 * Nobody makes a claim for an event that is on its way out: what is not
	 * held now will not be.
	 */
	if (READ_ONCE(bp->bp_claim.held))
		bp_slots_release(&bp_books, &bp->bp_claim);
}

bool hw_breakpoint_is_used(void)
{
	return bp_slots_in_use(&bp_books);
}

void release_bp_slot(struct perf_event *bp)
{
	hw_breakpoint_release(bp);
}

int dbg_reserve_bp_slot(struct perf_event *bp)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr);

	return bp_slots_try_reserve(&bp_books, &bp->bp_claim, &spec, NULL,
				    bp->cpu);
}

int dbg_release_bp_slot(struct perf_event *bp)
{
	return bp_slots_try_release(&bp_books, &bp->bp_claim);
}

int dbg_reserve_bp_slots(struct bp_claim *claims, const struct bp_holder *holder)
{
	struct perf_event_attr attr = { .bp_type = holder->bp_type };
	struct bp_claim_spec spec = bp_claim_spec(&attr);
	int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		claims[cpu].holder = holder;
	return bp_slots_try_reserve_all(&bp_books, claims, &spec);
}

int dbg_release_bp_slots(struct bp_claim *claims)
{
	int cpu, err;

	/* Whoever holds the lock now is stopped and holds it for all of them. */
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		err = bp_slots_try_release(&bp_books, &claims[cpu]);
		if (err)
			return err;
	}

	return 0;
}

/* ---- Hits ---- */

/*
 * A breakpoint of a task is armed only while the context that it is in is on this
 * CPU.  perf may have given that context to the next task already, where both are
 * clones.  Whatever else may go wrong, nobody sees the hits of a stranger.
 */
static bool bp_is_for_current(const struct perf_event *bp)
{
	struct perf_event_context *ctx = bp->ctx;
	struct task_struct *task = READ_ONCE(ctx->task);

	return !task || task == current || ctx == perf_cpu_task_ctx();
}

static bool bp_excluded(struct perf_event *bp, struct pt_regs *regs)
{
	return user_mode(regs) ? bp->attr.exclude_user : bp->attr.exclude_kernel;
}

void perf_bp_event_at(struct perf_event *bp, u64 addr, struct pt_regs *regs)
{
	struct hw_perf_event *hwc = &bp->hw;
	struct perf_sample_data data;

	if ((hwc->state & PERF_HES_STOPPED) || bp_excluded(bp, regs))
		return;
	if (!bp_is_for_current(bp))
		return;

	local64_inc(&bp->count);
	if (!is_sampling_event(bp))
		return;

	perf_sample_data_init(&data, addr, hwc->last_period);
	if (hwc->sample_period != 1 || bp->attr.freq) {
		if (local64_add_negative(1, &hwc->period_left))
			return;
		perf_swevent_set_period(bp);
		data.period = hwc->last_period;
	}

	/* A debugger must see every hit: never throttle. */
	__perf_event_overflow(bp, 0, &data, regs);
}

void perf_bp_event(struct perf_event *bp, struct pt_regs *regs)
{
	perf_bp_event_at(bp, bp->attr.bp_addr, regs);
}
EXPORT_SYMBOL_GPL(perf_bp_event);

/* ---- sysfs ---- */

/* At boot a breakpoint was seen to fire. */
static bool bp_verified;

PMU_FORMAT_ATTR(flexible, "config:0");
PMU_FORMAT_ATTR(sigtrap_queue, "config:2");

static struct attribute *bp_format_attrs[] = {
	&format_attr_flexible.attr,
	&format_attr_sigtrap_queue.attr,
	NULL
};

static const struct attribute_group bp_format_group = {
	.name	= "format",
	.attrs	= bp_format_attrs,
};

static ssize_t instruction_slots_show(struct device *dev,
				      struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", bp_books.class[TYPE_INST].slots);
}
static DEVICE_ATTR_RO(instruction_slots);

static ssize_t data_slots_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", bp_books.class[TYPE_DATA].slots);
}
static DEVICE_ATTR_RO(data_slots);

static ssize_t mixed_slots_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", TYPE_INST == TYPE_DATA);
}
static DEVICE_ATTR_RO(mixed_slots);

static ssize_t verified_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%d\n", bp_verified);
}
static DEVICE_ATTR_RO(verified);

static ssize_t sigtrap_queue_length_show(struct device *dev,
					 struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", HW_BREAKPOINT_SIGTRAPS);
}
static DEVICE_ATTR_RO(sigtrap_queue_length);

static struct attribute *bp_caps_attrs[] = {
	&dev_attr_instruction_slots.attr,
	&dev_attr_data_slots.attr,
	&dev_attr_mixed_slots.attr,
	&dev_attr_verified.attr,
	&dev_attr_sigtrap_queue_length.attr,
	NULL
};

static const struct attribute_group bp_caps_group = {
	.name	= "caps",
	.attrs	= bp_caps_attrs,
};

static const struct attribute_group *bp_attr_groups[] = {
	&bp_format_group,
	&bp_caps_group,
	NULL
};

/* ---- The PMU ---- */

/* Goes on with the period that is under way, or begins one if there is none. */
static void bp_start_period(struct perf_event *bp)
{
	if (is_sampling_event(bp)) {
		bp->hw.last_period = bp->hw.sample_period;
		perf_swevent_set_period(bp);
	}
}

static int hw_breakpoint_add(struct perf_event *bp, int flags)
{
	int err;

	/* It was moved to a CPU that has no register left. */
	if (!READ_ONCE(bp->bp_claim.held))
		return -ENOSPC;

	bp_start_period(bp);
	bp->hw.state = flags & PERF_EF_START ? 0 : PERF_HES_STOPPED;

	err = bp_give_register(bp);
	if (err)
		return err;

	perf_event_update_userpage(bp);
	return 0;
}

static void hw_breakpoint_del(struct perf_event *bp, int flags)
{
	bp_take_register_back(bp);
}

static void hw_breakpoint_start(struct perf_event *bp, int flags)
{
	if (flags & PERF_EF_RELOAD)
		bp_start_period(bp);
	bp->hw.state = 0;
}

static void hw_breakpoint_stop(struct perf_event *bp, int flags)
{
	bp->hw.state = PERF_HES_STOPPED;
}

/* The count is kept at each hit: there is nothing to bring up to date. */
static void hw_breakpoint_read(struct perf_event *bp)
{
}

#ifdef ARCH_HW_BREAKPOINT_BATCH
static void hw_breakpoint_pmu_disable(struct pmu *pmu)
{
	arch_hw_breakpoint_begin();
}

static void hw_breakpoint_pmu_enable(struct pmu *pmu)
{
	arch_hw_breakpoint_commit();
}
#endif

static struct pmu perf_breakpoint = {
	.task_ctx_nr	= perf_sw_context,
	.attr_groups	= bp_attr_groups,
	.event_init	= hw_breakpoint_event_init,
#ifdef ARCH_HW_BREAKPOINT_BATCH
	.pmu_disable	= hw_breakpoint_pmu_disable,
	.pmu_enable	= hw_breakpoint_pmu_enable,
#endif
	.add		= hw_breakpoint_add,
	.del		= hw_breakpoint_del,
	.start		= hw_breakpoint_start,
	.stop		= hw_breakpoint_stop,
	.read		= hw_breakpoint_read,
};

/* ---- Breakpoints of a task, for the kernel ---- */

struct perf_event *
register_user_hw_breakpoint(struct perf_event_attr *attr,
			    perf_overflow_handler_t triggered, void *context,
			    struct task_struct *tsk)
{
	return perf_event_create_kernel_counter(attr, -1, tsk, triggered,
						context);
}
EXPORT_SYMBOL_GPL(register_user_hw_breakpoint);

void unregister_hw_breakpoint(struct perf_event *bp)
{
	if (bp)
		perf_event_release_kernel(bp);
}
EXPORT_SYMBOL_GPL(unregister_hw_breakpoint);

/* ---- Start ---- */

#ifndef ARCH_HW_BREAKPOINT_TRAP
/* Ahead of all others: they take a trap that nobody claims for their own. */
static struct notifier_block hw_breakpoint_die_nb = {
	.notifier_call	= hw_breakpoint_exceptions_notify,
	.priority	= INT_MAX,
};
#endif

int __init init_hw_breakpoint(void)
{
	unsigned int slots[BP_SLOTS_CLASSES] = { };
	enum bp_type_idx class;
	int err;

	for (class = 0; class < TYPE_MAX; class++)
		slots[class] = hw_breakpoint_slots(class);

	err = bp_slots_init(&bp_books, nr_cpu_ids, slots);
	if (err)
		return err;
	bp_turns_init();

	err = perf_pmu_register(&perf_breakpoint, "breakpoint",
				PERF_TYPE_BREAKPOINT);
	if (err) {
		bp_slots_destroy(&bp_books);
		return err;
	}

#ifndef ARCH_HW_BREAKPOINT_TRAP
	err = register_die_notifier(&hw_breakpoint_die_nb);
#endif
	return err;
}

/*
 * Virtual machines and emulators may accept writes to debug registers and drop
 * them.  Nothing else would tell: a breakpoint that never fires looks like a
 * variable that nobody touches.
 */
static unsigned long bp_check_word __initdata;
static unsigned int bp_check_hits __initdata;

static void __init bp_check_hit(struct perf_event *bp,
				struct perf_sample_data *data,
				struct pt_regs *regs)
{
	bp_check_hits++;
}

static int __init bp_check(void)
{
	struct perf_event_attr attr;
	struct perf_event *bp;

	if (!bp_books.class[TYPE_DATA].slots)
		return 0;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&bp_check_word;
	attr.bp_len = sizeof(bp_check_word);
	attr.bp_type = HW_BREAKPOINT_W;

	migrate_disable();
	bp = perf_event_create_kernel_counter(&attr, smp_processor_id(), NULL,
					      bp_check_hit, NULL);
	if (!IS_ERR(bp)) {
		WRITE_ONCE(bp_check_word, 1);
		unregister_hw_breakpoint(bp);
	}
	migrate_enable();

	bp_verified = bp_check_hits;
	if (IS_ERR(bp))
		pr_warn("no breakpoint to check with (%pe)\n", bp);
	else if (!bp_check_hits)
		pr_warn("debug registers do not work here: breakpoints never fire\n");
	else
		pr_info("breakpoints fire; registers per CPU: %u for instructions, %u for data%s\n",
			bp_books.class[TYPE_INST].slots,
			bp_books.class[TYPE_DATA].slots,
			TYPE_INST == TYPE_DATA ? " (the same)" : "");
	return 0;
}
late_initcall(bp_check);
