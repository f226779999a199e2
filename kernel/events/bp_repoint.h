/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Repointing one member of a kernel-wide set: versions of its range.
 */
#ifndef _KERNEL_EVENTS_BP_REPOINT_H
#define _KERNEL_EVENTS_BP_REPOINT_H

#include <linux/hw_breakpoint_arch.h>
#include <linux/perf_event.h>

static inline struct hw_breakpoint_range bp_range(const struct perf_event_attr *attr)
{
	return (struct hw_breakpoint_range) {
		.addr	= attr->bp_addr,
		.len	= attr->bp_len,
		.type	= attr->bp_type,
	};
}

/**
 * bp_versions_attach - allow an event to be repointed
 * @bp: a disabled, guaranteed event of one CPU
 * @versions: storage for its versions, not in use; must be freed after @bp
 * @base: bp_version::base of the first version
 *
 * Context: Process context.
 */
void bp_versions_attach(struct perf_event *bp, struct bp_versions *versions, u64 base);

/**
 * bp_publish_version - make a new version the current one
 * @versions: hw.bp_versions of an event of this CPU
 * @now: what bp_read_version() returned for the version that @v replaces
 * @v: the new version; bp_version::base is ignored
 * @base: bp_version::base of the new version
 *
 * Context: Any; interrupts off.
 * Return: 0; -EAGAIN if a writer that interrupted the caller has replaced the
 * version of @now; -EBUSY if more than BP_VERSIONS_DEPTH writers interrupt each
 * other.
 */
int bp_publish_version(struct bp_versions *versions, unsigned long now,
		       const struct bp_version *v, u64 base);

/**
 * bp_apply_version - apply the current version to bp->attr and to the registers
 * @bp: a member of a kernel-wide set, of this CPU
 *
 * Context: Any; interrupts off.
 */
void bp_apply_version(struct perf_event *bp);

#endif /* _KERNEL_EVENTS_BP_REPOINT_H */
