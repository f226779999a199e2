/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace event for the hits of repoint_breakpoint.c.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM repoint_breakpoint

#if !defined(_REPOINT_BREAKPOINT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _REPOINT_BREAKPOINT_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(repoint_hit,
	TP_PROTO(unsigned long addr, unsigned long ip),
	TP_ARGS(addr, ip),
	TP_STRUCT__entry(
		__field(unsigned long, addr)
		__field(unsigned long, ip)
	),
	TP_fast_assign(
		__entry->addr = addr;
		__entry->ip = ip;
	),
	TP_printk("%pS written before %pS", (void *)__entry->addr, (void *)__entry->ip)
);

#endif /* _REPOINT_BREAKPOINT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE repoint_breakpoint_trace
#include <trace/define_trace.h>
