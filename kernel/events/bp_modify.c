// SPDX-License-Identifier: GPL-2.0
/*
 * Changing a breakpoint that exists.
 *
 * Everything that can fail comes first: the attributes are checked, and if the
 * breakpoint needs registers of another class the claim is changed.  What is
 * left cannot fail.
 */

#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/sched.h>

#include "bp_internal.h"

/* An event that has left its context holds no claim and needs none. */
static int change_claim(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct bp_claim_spec old = bp_claim_spec(&bp->attr);
	struct bp_claim_spec new = bp_claim_spec(attr);

	if (!READ_ONCE(bp->bp_claim.held) ||
	    (new.class == old.class && new.weight == old.weight))
		return 0;

	return bp_slots_change(&bp_books, &bp->bp_claim, &new);
}

int modify_user_hw_breakpoint(struct perf_event *bp,
			      struct perf_event_attr *attr)
{
	struct arch_hw_breakpoint hw = { };
	int err;

	err = bp_parse(bp, attr, &hw);
	if (err)
		return err;

	err = change_claim(bp, attr);
	if (err)
		return err;

	/* Disabling waits for the CPU that @bp runs on, unless that is here. */
	if (irqs_disabled() && bp->ctx && bp->ctx->task == current)
		perf_event_disable_local(bp);
	else
		perf_event_disable(bp);

	bp->attr.bp_addr = attr->bp_addr;
	bp->attr.bp_len = attr->bp_len;
	bp->attr.bp_type = attr->bp_type;
	bp->attr.disabled = attr->disabled;
	bp->hw.info = hw;

	if (!attr->disabled)
		perf_event_enable(bp);

	return 0;
}
EXPORT_SYMBOL_GPL(modify_user_hw_breakpoint);
