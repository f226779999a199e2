// SPDX-License-Identifier: GPL-2.0
/*
 * The versions of a member of a kernel-wide set.
 *
 * A change may interrupt another change of the same breakpoint on the same CPU, or an
 * update of the debug registers, so it takes no lock.  A writer publishes a new version
 * of the watched range, see struct bp_versions.  Then the architecture applies the
 * current version, or, if the writer has interrupted an update of the registers, that
 * update applies it.  The architecture reads nothing but struct bp_versions.
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
 * A writer that interrupts this one before @depth is incremented uses the same two
 * entries, but changes @now; after that it uses others.
 */
int bp_publish_version(struct bp_versions *versions, unsigned long now,
		       const struct bp_version *v)
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
		versions->version[i] = *v;
		barrier();
		if (try_cmpxchg_local(&versions->now, &now, next))
			err = 0;
	}
	barrier();
	WRITE_ONCE(versions->depth, depth);

	return err;
}

/* Update bp->attr; repeat it if a newer version was published in the meantime. */
static void update_attr(struct perf_event *bp, const struct bp_versions *versions)
{
	struct bp_version v;
	unsigned long now;

	do {
		now = bp_read_version(versions, &v);
		WRITE_ONCE(bp->attr.bp_addr, v.range.addr);
		WRITE_ONCE(bp->attr.bp_len, v.range.len);
		WRITE_ONCE(bp->attr.bp_type, v.range.type);
		barrier();
	} while (now != READ_ONCE(versions->now));
}

void bp_apply_version(struct perf_event *bp)
{
	update_attr(bp, bp->hw.bp_versions);
	arch_hw_breakpoint_repoint(bp);
}
