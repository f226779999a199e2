// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware breakpoints as perf events.
 *
 * A breakpoint is created in three steps.  pmu::event_init() checks the
 * attributes and translates them for the architecture; it claims nothing.
 * After perf core has checked permissions and found the context, pmu::reserve()
 * claims a register (bp_slots.h).  From then on perf schedules the event, and
 * pmu::add() always finds a register for a guaranteed breakpoint.
 *
 * The claim is released when the event leaves its context for good: its task
 * exits, or its last user closes it.  The event keeps its claim while it is
 * disabled, while perf moves it between PMU contexts, and while its CPU is
 * offline.
 */

#define pr_fmt(fmt) "hw-breakpoint: " fmt

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
#include <linux/uaccess.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "internal.h"
#include "process.h"
#include "sigtrap.h"

static struct pmu perf_breakpoint;

/* perf core uses hw.flags of every event: breakpoints must not overlap it. */
static_assert(offsetofend(struct hw_perf_event, bp_flexible) <=
	      offsetof(struct hw_perf_event, flags));
static_assert(offsetof(struct hw_perf_event, bp_opened) >=
	      offsetofend(struct hw_perf_event, flags));

/* ---- New events ---- */

static void hw_breakpoint_unreserve(struct perf_event *bp)
{
	bp_slots_release(&bp_machine, &bp->bp_claim);
}

static void hw_breakpoint_destroy(struct perf_event *bp)
{
	hw_breakpoint_unreserve(bp);
	bp_value_destroy(bp);
}

/*
 * The task that is creating an event of a kernel-wide set, which needs no claim
 * and no chain of values of its own.  Each task compares this only with itself, so
 * reading needs no lock.
 */
static struct task_struct *bp_wide_creator;

static bool creates_wide_event(void)
{
	return READ_ONCE(bp_wide_creator) == current;
}

static noinline int init_value(struct perf_event *bp)
{
	/* Tested at each hit, together with PERF_HES_STOPPED */
	bp->hw.state = PERF_HES_ARCH;
	return creates_wide_event() ? 0 : bp_value_init(bp);
}

static int check_process(const struct perf_event *bp)
{
	if (!hw_breakpoint_is_process(&bp->attr))
		return 0;
	return bp->hw.target && !bp->attr.inherit ? 0 : -EINVAL;
}

static int hw_breakpoint_event_init(struct perf_event *bp)
{
	struct arch_hw_breakpoint hw = { };
	int err;

	if (bp->attr.type != PERF_TYPE_BREAKPOINT)
		return -ENOENT;

	if (has_branch_stack(bp) || !bp_machine.class[bp_class(&bp->attr)].slots)
		return -EOPNOTSUPP;

	err = bp_parse(bp, &bp->attr, &hw);
	if (err)
		return err;
	err = check_process(bp);
	if (err)
		return err;

	bp->hw.info = hw;
	bp->hw.bp_opened = (struct bp_opened) {
		.sample_period		= bp->attr.sample_period,
		.sample_max_stack	= bp->attr.sample_max_stack,
		.enable_on_exec		= bp->attr.enable_on_exec,
	};
	bp->destroy = hw_breakpoint_destroy;
	if (hw_breakpoint_is_flexible(&bp->attr))
		bp->event_caps |= PERF_EV_CAP_MUX | PERF_EV_CAP_MUX_GROUP;
	if (hw_breakpoint_is_process(&bp->attr))
		bp->event_caps |= PERF_EV_CAP_PROCESS;

	return unlikely(perf_attr_reads_memory(&bp->attr)) ? init_value(bp) : 0;
}

/* ---- Claims ---- */

/*
 * Check @event, which is about to join a group, against @member of the group.
 *
 * A group is multiplexed as a whole, so its breakpoints are either all flexible or all
 * guaranteed.  A flexible group must not have hardware events: it would have to wait
 * for two resources at once.
 */
static int check_member(const struct perf_event *event, const struct perf_event *member)
{
	bool flexible = hw_breakpoint_is_flexible(&member->attr);

	if (member->pmu != &perf_breakpoint)
		return 0;
	if (event->pmu != &perf_breakpoint)
		return flexible ? -EINVAL : 0;
	return flexible == hw_breakpoint_is_flexible(&event->attr) ? 0 : -EINVAL;
}

/*
 * Maximum number of events in a multiplexed group.  Each rotation schedules the
 * whole group with interrupts off, and perf does not limit the number of
 * software events in a group.
 */
#define BP_MUX_GROUP_MAX	32

/*
 * Check whether @event, of any PMU, may join its group: @event or a member of
 * the group is a flexible breakpoint.  Software events may join unless the
 * group is too large.
 */
static int hw_breakpoint_admit(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	bool breakpoint = event->pmu == &perf_breakpoint;
	bool flexible = breakpoint && hw_breakpoint_is_flexible(&event->attr);
	unsigned int class;
	int err;

	/* nr_siblings counts neither the leader nor @event. */
	if (leader->nr_siblings + 2 > BP_MUX_GROUP_MAX)
		return -EINVAL;
	if (!breakpoint && is_software_event(event))
		return 0;
	if (flexible && (leader->attr.pinned || !in_software_context(leader)))
		return -EINVAL;

	err = check_member(event, leader);
	if (err)
		return err;
	for_each_sibling_event(sibling, leader) {
		err = check_member(event, sibling);
		if (err)
			return err;
	}

	if (!flexible)
		return 0;
	/* The group could never be scheduled as a whole. */
	class = bp_class(&event->attr);
	if (bp_group_weight(event, class) + bp_weight(event) > bp_machine.class[class].slots)
		return -EINVAL;
	return 0;
}

static int claim(struct perf_event *bp, struct bp_domain *domain, int cpu)
{
	struct bp_claim_spec spec = bp_claim_spec(&bp->attr, &bp->hw.info);

	return bp_slots_reserve(&bp_machine, &bp->bp_claim, &spec, domain, cpu);
}

/* Claims of a thread are accounted for its process too, if the process has had events. */
static int join_process(struct perf_event_context *ctx)
{
	struct perf_process *process;

	if (!ctx->task)
		return 0;
	/* @ctx has entered its task before this; pairs with publish(). */
	smp_mb();
	/* Pairs with the store in publish(). */
	process = smp_load_acquire(&ctx->task->signal->perf_process);

	return unlikely(process) ? perf_process_add_context(ctx, process) : 0;
}

/*
 * Called for a new event, and again for an event that has lost its claim: perf
 * moves events to another CPU if a PMU of their group requests it.  A
 * breakpoint for which no register is available there is in ERROR state,
 * without a claim; perf core tries to reserve again each time when it is
 * enabled or modified.  It is never an inherited one: a child without a claim is
 * about to be inherited.  If its task is a thread of the same process, it joins the
 * process in perf_event_link_thread().
 */
static int reserve(struct perf_event *bp, struct perf_event_context *ctx)
{
	int err;

	/* The head of a family has the claim of all members. */
	if (bp->process)
		return bp->parent || bp->bp_claim.held ? 0 :
		       claim(bp, &bp->process->bp.domain,
			     perf_process_on_any_cpu(bp) ? -1 : bp->cpu);
	if (bp_has_claim(bp) || creates_wide_event())
		return 0;

	err = bp->parent ? bp_follow(bp, bp->parent) : join_process(ctx);
	return err ?: claim(bp, ctx->task ? &ctx->bp_domain : NULL, bp->cpu);
}

static int hw_breakpoint_reserve(struct perf_event *bp, struct perf_event_context *ctx)
{
	int err = reserve(bp, ctx);

	if (err || likely(!perf_attr_reads_memory(&bp->attr)) || creates_wide_event())
		return err;
	/* A child in ERROR state that is enabled, under ctx->lock, has a chain. */
	if (bp->parent && !bp->process)
		return bp->hw.bp_value ? 0 : bp_value_inherit(bp, ctx);
	bp_value_open(bp, ctx);
	return 0;
}

/* ---- Processes ---- */

static int hw_breakpoint_process(struct perf_process *process, enum perf_process_op op,
				 struct perf_event_context *ctx)
{
	switch (op) {
	case PERF_PROCESS_INIT:
		return bp_process_init(&bp_machine, &process->bp);
	case PERF_PROCESS_JOIN:
		return bp_slots_join(&bp_machine, &ctx->bp_domain, &process->bp);
	case PERF_PROCESS_FREE:
		bp_process_destroy(&process->bp);
	}
	return 0;
}

/* ---- Claims of the machine ---- */

bool hw_breakpoint_is_used(void)
{
	return bp_slots_nr_claims(&bp_machine);
}

/* A debugger claims single registers. */
int dbg_reserve_wide_bp_slot(struct bp_claim *claim, const struct bp_holder *holder,
			     bool wait)
{
	const struct perf_event_attr attr = { .bp_type = holder->bp_type };
	const struct bp_claim_spec spec = { .class = bp_class(&attr), .weight = 1 };
	int err;

	claim->holder = holder;
	err = wait ? bp_slots_reserve(&bp_machine, claim, &spec, NULL, -1) :
		     bp_slots_try_reserve(&bp_machine, claim, &spec, -1);
	if (!err)
		bp_debugger_holds(spec.class, 1);
	return err;
}

int dbg_release_wide_bp_slot(struct bp_claim *claim, bool wait)
{
	bool held = claim->held;
	int err = 0;

	if (wait)
		bp_slots_release(&bp_machine, claim);
	else
		err = bp_slots_try_release(&bp_machine, claim);
	if (held && !err)
		bp_debugger_holds(claim->class, -1);
	return err;
}

/* ---- sysfs ---- */

/* The test breakpoint of bp_check() has fired at boot. */
static bool bp_verified;

PMU_FORMAT_ATTR(flexible, "config:0");
PMU_FORMAT_ATTR(process, "config:1");
PMU_FORMAT_ATTR(sigtrap_queue, "config:2");
PMU_FORMAT_ATTR(value, "config:3");
PMU_FORMAT_ATTR(changed, "config:4");

static struct attribute *bp_format_attrs[] = {
	&format_attr_flexible.attr,
	&format_attr_process.attr,
	&format_attr_sigtrap_queue.attr,
	&format_attr_value.attr,
	&format_attr_changed.attr,
	NULL
};

/* Bits that each event is refused with are not listed. */
static umode_t bp_format_is_visible(struct kobject *kobj, struct attribute *attr, int i)
{
	bool of_values = attr == &format_attr_value.attr || attr == &format_attr_changed.attr;

	return of_values && !arch_hw_breakpoint_after_access() ? 0 : attr->mode;
}

static const struct attribute_group bp_format_group = {
	.name		= "format",
	.attrs		= bp_format_attrs,
	.is_visible	= bp_format_is_visible,
};

#define BP_CAP(name, value)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr,	\
			   char *buf)						\
{										\
	return sysfs_emit(buf, "%u\n", (unsigned int)(value));			\
}										\
static DEVICE_ATTR_RO(name)

BP_CAP(instruction_slots, bp_machine.class[TYPE_INST].slots);
BP_CAP(data_slots, bp_machine.class[TYPE_DATA].slots);
BP_CAP(mixed_slots, TYPE_INST == TYPE_DATA);
BP_CAP(max_length, hw_breakpoint_max_length);
BP_CAP(verified, bp_verified);
BP_CAP(sigtrap_queue_length, HW_BREAKPOINT_SIGTRAPS);

static struct attribute *bp_caps_attrs[] = {
	&dev_attr_instruction_slots.attr,
	&dev_attr_data_slots.attr,
	&dev_attr_mixed_slots.attr,
	&dev_attr_max_length.attr,
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

/* Continue the current period, or start the first one. */
static void bp_start_period(struct perf_event *bp)
{
	if (is_sampling_event(bp)) {
		bp->hw.last_period = bp->hw.sample_period;
		perf_swevent_set_period(bp);
	}
}

/* Out of line: a breakpoint that only counts needs none of it. */
static noinline int add_sampling(struct perf_event *bp)
{
	int err;

	bp_start_period(bp);
	err = bp_sched_in(bp);
	if (!err && READ_ONCE(bp->rb))
		perf_event_update_userpage(bp);

	return err;
}

/* PERF_HES_ARCH stays. */
static __always_inline void set_stopped(struct perf_event *bp, bool stopped)
{
	if (stopped)
		bp->hw.state |= PERF_HES_STOPPED;
	else
		bp->hw.state &= ~PERF_HES_STOPPED;
}

static int hw_breakpoint_add(struct perf_event *bp, int flags)
{
	/* perf has moved the event to a CPU without an available register. */
	if (unlikely(!bp_has_claim(bp)))
		return -ENOSPC;

	set_stopped(bp, !(flags & PERF_EF_START));

	if (is_sampling_event(bp) || READ_ONCE(bp->rb))
		return add_sampling(bp);
	return bp_sched_in(bp);
}

static void hw_breakpoint_start(struct perf_event *bp, int flags)
{
	if (flags & PERF_EF_RELOAD)
		bp_start_period(bp);
	set_stopped(bp, false);
}

static void hw_breakpoint_stop(struct perf_event *bp, int flags)
{
	set_stopped(bp, true);
}

/* Nothing to read: the count is updated at each hit. */
static void hw_breakpoint_read(struct perf_event *bp)
{
}

static void hw_breakpoint_enabling(struct perf_event *bp)
{
	if (likely(!bp->hw.bp_value))
		return;
	guard(mutex)(&bp->child_mutex);
	bp_value_enabling(bp);
}

static long hw_breakpoint_ioctl(struct perf_event *bp, unsigned int cmd, unsigned long arg)
{
	if (cmd != HW_BREAKPOINT_IOC_SILENT || !(bp->attr.config & HW_BREAKPOINT_CHANGED))
		return -ENOTTY;
	return put_user((u64)atomic64_read(&bp->hw.bp_silent), (u64 __user *)arg);
}

static void hw_breakpoint_pmu_disable(struct pmu *pmu)
{
	if (bp_can_batch())
		arch_hw_breakpoint_begin();
}

static void hw_breakpoint_pmu_enable(struct pmu *pmu)
{
	if (bp_can_batch())
		arch_hw_breakpoint_commit();
}

static struct pmu perf_breakpoint = {
	.task_ctx_nr	= perf_sw_context,
	/* bp_sched_in() looks at the whole group when its first event is added. */
	.capabilities	= PERF_PMU_CAP_KEEP_OFFLINE | PERF_PMU_CAP_NO_TXN,
	.attr_groups	= bp_attr_groups,
	.event_init	= hw_breakpoint_event_init,
	.reserve	= hw_breakpoint_reserve,
	.unreserve	= hw_breakpoint_unreserve,
	.admit		= hw_breakpoint_admit,
	.modify		= bp_modify,
	.enabling	= hw_breakpoint_enabling,
	.ioctl		= hw_breakpoint_ioctl,
	.process	= hw_breakpoint_process,
	.pmu_disable	= hw_breakpoint_pmu_disable,
	.pmu_enable	= hw_breakpoint_pmu_enable,
	.add		= hw_breakpoint_add,
	.del		= bp_sched_out,
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

/* ---- Events of kernel-wide sets ---- */

struct perf_event *bp_create_wide_event(struct perf_event_attr *attr, int cpu,
					perf_overflow_handler_t triggered, void *context)
{
	struct perf_event *bp;

	WRITE_ONCE(bp_wide_creator, current);
	bp = perf_event_create_kernel_counter(attr, cpu, NULL, triggered, context);
	WRITE_ONCE(bp_wide_creator, NULL);

	return bp;
}

/* ---- Initialization ---- */

/* First in the chain: other notifiers may consume traps of unknown origin. */
static struct notifier_block hw_breakpoint_die_nb = {
	.notifier_call	= hw_breakpoint_exceptions_notify,
	.priority	= INT_MAX,
};

int __init init_hw_breakpoint(void)
{
	unsigned int slots[BP_SLOTS_CLASSES] = { };
	enum bp_type_idx class;
	int err;

	for (class = 0; class < TYPE_MAX; class++)
		slots[class] = hw_breakpoint_slots(class);

	err = bp_slots_init(&bp_machine, nr_cpu_ids, slots);
	if (err)
		return err;
	bp_multiplex_init();

	err = perf_pmu_register(&perf_breakpoint, "breakpoint",
				PERF_TYPE_BREAKPOINT);
	if (err) {
		bp_slots_destroy(&bp_machine);
		return err;
	}

	if (hw_breakpoint_die_nb.notifier_call)
		err = register_die_notifier(&hw_breakpoint_die_nb);
	return err;
}

/*
 * Check at boot that a breakpoint fires, and log the result: virtual machines
 * and emulators may ignore writes to debug registers.  A user cannot
 * distinguish a breakpoint that never fires from a variable that is never
 * accessed.
 */
static unsigned long bp_check_word __initdata;

static int __init bp_check(void)
{
	u64 hits = 0, enabled, running;
	struct perf_event_attr attr;
	struct perf_event *bp;

	if (!bp_machine.class[TYPE_DATA].slots)
		return 0;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&bp_check_word;
	attr.bp_len = sizeof(bp_check_word);
	attr.bp_type = HW_BREAKPOINT_W;

	/* No handler: arm and arm64 do not step over an access whose hit has one. */
	migrate_disable();
	bp = perf_event_create_kernel_counter(&attr, smp_processor_id(), NULL, NULL, NULL);
	if (!IS_ERR(bp)) {
		WRITE_ONCE(bp_check_word, 1);
		hits = perf_event_read_value(bp, &enabled, &running);
		unregister_hw_breakpoint(bp);
	}
	migrate_enable();

	bp_verified = hits;
	if (IS_ERR(bp))
		pr_warn("cannot create test breakpoint: %pe\n", bp);
	else if (!hits)
		pr_warn("debug registers do not work here: breakpoints never fire\n");
	else
		pr_info("breakpoints fire; registers per CPU: %u for instructions, %u for data%s\n",
			bp_machine.class[TYPE_INST].slots,
			bp_machine.class[TYPE_DATA].slots,
			TYPE_INST == TYPE_DATA ? " (the same)" : "");
	return 0;
}
late_initcall(bp_check);
