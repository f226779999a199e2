// SPDX-License-Identifier: GPL-2.0
/* Helpers of the tests of values; see values.h. */
#define BP_NO_TESTS

#include "values.h"

void store8(void *p, __u64 v)
{
	asm volatile("movb %b1, (%0)" : : "r" (p), "q" (v) : "memory");
}

void store16(void *p, __u64 v)
{
	asm volatile("movw %w1, (%0)" : : "r" (p), "r" (v) : "memory");
}

void store32(void *p, __u64 v)
{
	asm volatile("movl %k1, (%0)" : : "r" (p), "r" (v) : "memory");
}

long store_values(int cmd, void *mem)
{
	store32(mem, cmd);
	return 0;
}

struct perf_event_attr value_attr(void *mem)
{
	struct perf_event_attr attr = bp_attr_w(mem, 4);

	attr.config = VALUE;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_RAW;
	return attr;
}

bool next_hit(struct bp_ring *ring, union bp_record *rec, struct hit *hit)
{
	const struct hw_breakpoint_values *values;
	const __u32 *p;

	do {
		if (!bp_ring_next(ring, rec))
			return false;
	} while (rec->header.type != PERF_RECORD_SAMPLE);

	p = (const __u32 *)&rec->u64[1];
	*hit = (struct hit) { .tid = p[1], .addr = rec->u64[2] };
	values = (const void *)&p[5];
	/* The size, behind it the values, and padding */
	if (p[4] + 4 != rec->header.size - 24 || p[4] < 4 + 2U * values->len ||
	    values->len > HW_BREAKPOINT_VALUE_MAX)
		return false;
	hit->len = values->len;
	hit->flags = values->flags;
	for (int i = 0; i < 2; i++)
		memcpy(hit->words[i], values->bytes + values->offset + i * hit->len, hit->len);
	memcpy(&hit->before, hit->words[0], sizeof(hit->before));
	memcpy(&hit->after, hit->words[1], sizeof(hit->after));
	return true;
}

__u64 silent(int fd)
{
	__u64 nr = ~0ULL;

	if (ioctl(fd, HW_BREAKPOINT_IOC_SILENT, &nr))
		return ~0ULL;
	return nr;
}
