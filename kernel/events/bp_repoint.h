/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Repointing of members of kernel-wide sets in any context.
 */
#ifndef _KERNEL_EVENTS_BP_REPOINT_H
#define _KERNEL_EVENTS_BP_REPOINT_H

#include <linux/hw_breakpoint_arch.h>

/**
 * bp_versions_alloc - allocate the versions of a member of a set
 * @cpu: the CPU of the event
 *
 * Context: Process context, may sleep.
 * Return: the versions, to be freed with kfree(); NULL if there is no memory.
 */
struct bp_versions *bp_versions_alloc(int cpu);

/**
 * bp_versions_attach - allow an event to be repointed
 * @bp: a disabled, guaranteed event of one CPU
 * @versions: result of bp_versions_alloc(), to be freed after @bp
 *
 * Context: Process context.
 */
void bp_versions_attach(struct perf_event *bp, struct bp_versions *versions);

#endif /* _KERNEL_EVENTS_BP_REPOINT_H */
