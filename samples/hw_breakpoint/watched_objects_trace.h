/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events for the objects of watched_objects.c.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM watched_objects

#if !defined(_WATCHED_OBJECTS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _WATCHED_OBJECTS_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(object_class,
	TP_PROTO(void *ptr, unsigned int id),
	TP_ARGS(ptr, id),
	TP_STRUCT__entry(
		__field(void *, ptr)
		__field(unsigned int, id)
	),
	TP_fast_assign(
		__entry->ptr = ptr;
		__entry->id = id;
	),
	TP_printk("ptr=%p id=%u", __entry->ptr, __entry->id)
);

DEFINE_EVENT(object_class, object_alloc,
	TP_PROTO(void *ptr, unsigned int id),
	TP_ARGS(ptr, id));

DEFINE_EVENT(object_class, object_free,
	TP_PROTO(void *ptr, unsigned int id),
	TP_ARGS(ptr, id));

#endif /* _WATCHED_OBJECTS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE watched_objects_trace
#include <trace/define_trace.h>
