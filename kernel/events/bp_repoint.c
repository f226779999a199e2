// SPDX-License-Identifier: GPL-2.0
/*
 * Repoint a member of a kernel-wide set, in any context.
 *
 * A change may interrupt another change of the same breakpoint on the same CPU, or an
 * update of the debug registers, so it takes no lock.  A writer publishes a new version
 * of the watched range, see struct bp_versions.  Then the architecture applies the
 * current version, or, if the writer has interrupted an update of the registers, that
 * update applies it.
 */

#include <linux/export.h>
#include <linux/irqflags.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "bp_internal.h"
#include "bp_repoint.h"

/* ---- Versions ---- */

static struct bp_versions *versions_of(const struct perf_event *bp)
{
	return hw_breakpoint_is_flexible(&bp->attr) ? NULL : bp->hw.bp_versions;
}

static void init_version(struct bp_version *v, const struct perf_event_attr *attr)
{
	v->range = (struct hw_breakpoint_range) {
		.addr	= attr->bp_addr,
		.len	= attr->bp_len,
		.type	= attr->bp_type,
	};
}

struct bp_versions *bp_versions_alloc(int cpu)
{
	return kzalloc_node(sizeof(struct bp_versions), GFP_KERNEL, cpu_to_node(cpu));
}

void bp_versions_attach(struct perf_event *bp, struct bp_versions *versions)
{
	init_version(&versions->version[0], &bp->attr);
	versions->version[0].hw = bp->hw.info;
	bp->hw.bp_versions = versions;
}

static int publish_version(struct bp_versions *versions, const struct bp_version *v)
{
	unsigned int depth = READ_ONCE(versions->depth), i = 2 * depth;

	if (WARN_ON_ONCE(depth >= BP_VERSIONS_DEPTH))
		return -EBUSY;
	WRITE_ONCE(versions->depth, depth + 1);
	barrier();
	if (READ_ONCE(versions->now) == i)
		i++;
	versions->version[i] = *v;
	barrier();
	WRITE_ONCE(versions->now, i);
	WRITE_ONCE(versions->serial, READ_ONCE(versions->serial) + 1);
	barrier();
	WRITE_ONCE(versions->depth, depth);

	return 0;
}

/* Update bp->attr; repeat it if a newer version was published in the meantime. */
static void update_attr(struct perf_event *bp, const struct bp_versions *versions)
{
	unsigned int serial;
	struct bp_version v;

	do {
		serial = READ_ONCE(versions->serial);
		bp_read_version(versions, &v);
		WRITE_ONCE(bp->attr.bp_addr, v.range.addr);
		WRITE_ONCE(bp->attr.bp_len, v.range.len);
		WRITE_ONCE(bp->attr.bp_type, v.range.type);
		barrier();
	} while (serial != READ_ONCE(versions->serial));
}

/* ---- For the kernel ---- */

static int repoint(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct bp_versions *versions = versions_of(bp);
	struct bp_version new = { };
	int err;

	if (!versions || bp->cpu != raw_smp_processor_id())
		return -EINVAL;
	if (attr->config != bp->attr.config)
		return -EINVAL;
	err = bp_translate(bp, attr, &new.hw);
	if (err)
		return err;
	if (bp->attr.exclude_kernel && arch_check_bp_in_kernelspace(&new.hw))
		return -EINVAL;
	if (!bp_same_registers(&bp->attr, attr))
		return -EINVAL;

	init_version(&new, attr);
	err = publish_version(versions, &new);
	if (err)
		return err;
	update_attr(bp, versions);
	arch_hw_breakpoint_repoint(bp);
	return 0;
}

int modify_wide_hw_breakpoint_local(struct perf_event *bp,
				    const struct perf_event_attr *attr)
{
	unsigned long flags;
	int err;

	if (!bp_can_repoint())
		return -EOPNOTSUPP;

	local_irq_save(flags);
	err = repoint(bp, attr);
	local_irq_restore(flags);

	return err;
}
EXPORT_SYMBOL_GPL(modify_wide_hw_breakpoint_local);

void read_wide_hw_breakpoint_local(const struct perf_event *bp,
				   struct hw_breakpoint_range *range)
{
	const struct bp_versions *versions = versions_of(bp);
	struct bp_version v;

	if (WARN_ON_ONCE(!versions)) {
		*range = (struct hw_breakpoint_range) { };
		return;
	}
	bp_read_version(versions, &v);
	*range = v.range;
}
EXPORT_SYMBOL_GPL(read_wide_hw_breakpoint_local);
