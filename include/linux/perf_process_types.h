/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fields of tasks for perf events of their whole process; see
 * kernel/events/process.h.
 */
#ifndef _LINUX_PERF_PROCESS_TYPES_H
#define _LINUX_PERF_PROCESS_TYPES_H

#include <linux/types.h>

struct perf_event;
struct perf_process_queued;

/* Events of the process that one instruction of a thread can hit */
#define PERF_PROCESS_HITS	4

/**
 * struct perf_process_hit - a hit by a thread, whose signal is due
 * @head: the event that the user holds; with a reference
 * @addr: address of the access, 0 if none may be reported
 * @data: attr.sig_data at the time of the hit
 * @dropped: perf_sigtrap::dropped of @head at the time of the hit
 * @sync: a breakpoint was hit in user mode while SIGTRAP was not blocked
 * @modified: perf_sigtrap::modified of the event that was hit, at that time
 * @async: the event was hit in user mode while SIGTRAP was blocked
 */
struct perf_process_hit {
	struct perf_event	*head;
	u64			addr;
	u64			data;
	u32			dropped : 31;
	u32			sync : 1;
	u32			modified : 31;
	u32			async : 1;
};

/**
 * struct perf_process_hits - hits by a thread
 * @state: for each element of @hit, as bits: the element is in use, it is filled in,
 *	its signal waits until another one is handled; and one bit: @queued is not empty
 * @hit: the hits
 * @queued: older hits, of events with HW_BREAKPOINT_SIGTRAP_QUEUE; only valid if @state
 *	says so, because fork sets @state alone
 *
 * Only the thread itself uses it, also in interrupts, exceptions and NMIs; @queued in
 * process context only.
 */
struct perf_process_hits {
	unsigned long			state;
	struct perf_process_hit		hit[PERF_PROCESS_HITS];
	struct perf_process_queued	*queued;
};

#endif /* _LINUX_PERF_PROCESS_TYPES_H */
