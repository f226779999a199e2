// SPDX-License-Identifier: GPL-2.0
/*
 * The versions of a member of a kernel-wide set.
 *
 * A change may interrupt another change of the same breakpoint on the same CPU,
 * or an update of the debug registers, so it takes no lock.  A writer publishes
 * a new version of the watched range, see struct bp_versions.  Then the
 * architecture applies the current version; if the writer interrupted an update
 * of the registers, that update applies it instead.  The architecture reads
 * nothing but struct bp_versions.
 */

#include <linux/atomic.h>

#include "bp_repoint.h"

void bp_versions_attach(struct perf_event *bp, struct bp_versions *versions, u64 base)
{
	struct bp_version *first = &versions->version[0];

	versions->now = 0;
	versions->depth = 0;
	*first = (struct bp_version) {
		.range	= bp_range(&bp->attr),
		.hw	= bp->hw.info,
		.base	= base,
	};
	bp->hw.bp_versions = versions;
}

/*
 * A writer that interrupts this one before versions->depth is incremented uses
 * the same two entries, but changes versions->now, so that the interrupted writer
 * fails.  A writer that interrupts after the increment uses other entries.
 */
int bp_publish_version(struct bp_versions *versions, unsigned long now,
		       const struct bp_version *v, u64 base)
{
	unsigned int depth = READ_ONCE(versions->depth), i = 2 * depth;
	unsigned long next;
	int err = -EAGAIN;

	if (WARN_ON_ONCE(depth >= BP_VERSIONS_DEPTH))
		return -EBUSY;
	if (bp_version_index(now) == i)
		i++;
	next = now - bp_version_index(now) + 2 * BP_VERSIONS_DEPTH + i;

	WRITE_ONCE(versions->depth, depth + 1);
	barrier();
	if (READ_ONCE(versions->now) == now) {
		versions->version[i].range = v->range;
		versions->version[i].hw = v->hw;
		versions->version[i].base = base;
		barrier();
		if (try_cmpxchg_local(&versions->now, &now, next))
			err = 0;
	}
	barrier();
	WRITE_ONCE(versions->depth, depth);

	return err;
}

/* Copies the current version to bp->attr, again if a newer one is published. */
static void update_attr(struct perf_event *bp, const struct bp_versions *versions)
{
	const struct hw_breakpoint_range *range;
	unsigned long now;

	do {
		now = READ_ONCE(versions->now);
		barrier();
		range = &versions->version[bp_version_index(now)].range;
		/* May be overwritten meanwhile: see bp_read_version(). */
		WRITE_ONCE(bp->attr.bp_addr, data_race(range->addr));
		WRITE_ONCE(bp->attr.bp_len, data_race(range->len));
		WRITE_ONCE(bp->attr.bp_type, data_race(range->type));
		barrier();
	} while (now != READ_ONCE(versions->now));
}

void bp_apply_version(struct perf_event *bp)
{
	update_attr(bp, bp->hw.bp_versions);
	arch_hw_breakpoint_repoint(bp);
}
