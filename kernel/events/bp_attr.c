// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of breakpoint attributes, and the accounting of this machine.
 */

#include <linux/capability.h>
#include <linux/hw_breakpoint.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "sigtrap.h"

struct bp_slots bp_machine;
struct perf_event bp_for_all_tasks;

int bp_translate(struct perf_event *bp, const struct perf_event_attr *attr,
		 struct arch_hw_breakpoint *hw)
{
	int err;

	if (attr->config & ~(HW_BREAKPOINT_FLEXIBLE | HW_BREAKPOINT_PROCESS |
			     HW_BREAKPOINT_SIGTRAP_QUEUE | HW_BREAKPOINT_VALUE |
			     HW_BREAKPOINT_CHANGED))
		return -EINVAL;
	if (hw_breakpoint_queues_sigtrap(attr) && !attr->sigtrap)
		return -EINVAL;
	/* A pinned event is never scheduled out while it is enabled. */
	if (hw_breakpoint_is_flexible(attr) && attr->pinned)
		return -EINVAL;

	err = hw_breakpoint_arch_parse(bp, attr, hw);
	if (err)
		return err;

	if (attr->exclude_kernel && arch_check_bp_in_kernelspace(hw))
		return -EINVAL;

	return 0;
}

int check_hw_breakpoint(const struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };

	return bp_translate(&bp_for_all_tasks, attr, &hw);
}

/*
 * Kernel addresses require CAP_SYS_ADMIN: a breakpoint there can slow down or
 * stop any part of the kernel.  An inherited event needs no check: the opener of
 * its parent was checked, and current is the task that forks.
 */
static int check_kernelspace(const struct perf_event *bp, const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw)
{
	if (likely(!arch_check_bp_in_kernelspace(hw)))
		return 0;
	if (attr->exclude_kernel)
		return -EINVAL;

	return bp->parent || capable(CAP_SYS_ADMIN) ? 0 : -EPERM;
}

int bp_parse(struct perf_event *bp, const struct perf_event_attr *attr,
	     struct arch_hw_breakpoint *hw)
{
	int err;

	err = bp_translate(bp, attr, hw);
	if (!err && unlikely(perf_attr_reads_memory(attr)))
		err = bp_value_check(bp, attr, arch_check_bp_in_kernelspace(hw));

	return err ?: check_kernelspace(bp, attr, hw);
}

int bp_parse_again(struct perf_event *bp, const struct perf_event_attr *attr,
		   struct arch_hw_breakpoint *hw)
{
	int err;

	if (!bp_can_repoint() || attr->bp_type != bp->attr.bp_type ||
	    attr->bp_len != bp->attr.bp_len)
		return bp_parse(bp, attr, hw);

	err = arch_hw_breakpoint_move(&bp->hw.info, attr->bp_addr, hw);
	if (err)
		return err;
	return check_kernelspace(bp, attr, hw);
}
