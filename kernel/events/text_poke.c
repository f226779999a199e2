// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: record changes of kernel text.
 *
 * A decoder of instruction traces (Intel PT) walks the executed text, so it
 * needs to know the text at any time of the trace. attr.text_poke selects
 * changes of single instructions, an event of the PMU kernel_text those of whole
 * areas of text; see enum perf_text.
 *
 * A record is emitted after the last CPU has stopped executing the old text and
 * before the first CPU can execute the new text; in between CPUs trap on an
 * INT3 at that place, which a trace shows. So a decoder that applies each
 * record at its time stamp always has the right text. Text that no CPU can
 * execute is recorded before it is written. Both old and new bytes are
 * recorded, so that a trace can be decoded forwards and backwards.
 */

#include <linux/bits.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/filter.h>
#include <linux/init.h>
#include <linux/kgdb.h>
#include <linux/lockdep.h>
#include <linux/memory.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"
#include "text_poke.h"

static struct pmu perf_kernel_text;

/* attr.config, see format/area: record areas of text */
#define TEXT_AREA	BIT_ULL(0)

/* hw.config: the opener may dump text that the kernel generates, such as BPF images. */
#define TEXT_AREA_JIT	BIT_ULL(1)

/**
 * struct text_poke_record - what is recorded for one piece of a change
 * @id: first part of the PERF_RECORD_TEXT_POKE; the header depends on the event
 * @kind: kind of the change
 * @poke: the piece
 */
struct text_poke_record {
	struct {
		struct perf_event_header	header;
		u64				addr;
	} id;
	enum perf_text	       kind;
	const struct text_poke *poke;
};

/*
 * The kernel debugger may have stopped a CPU that is updating a clock: a read of it
 * would spin for ever. The NMI-safe clocks remain readable.
 */
static bool clock_is_readable(const struct perf_event *event)
{
	return !in_dbg_master() || !event->attr.use_clockid ||
	       event->attr.clockid == CLOCK_MONOTONIC ||
	       event->attr.clockid == CLOCK_MONOTONIC_RAW;
}

static bool wants_text(const struct perf_event *event, enum perf_text kind)
{
	switch (kind) {
	case PERF_TEXT_INSN:
		return event->attr.text_poke;
	case PERF_TEXT_AREA:
		return event->pmu == &perf_kernel_text;
	case PERF_TEXT_JIT:
		return event->pmu == &perf_kernel_text && event->hw.config & TEXT_AREA_JIT;
	}
	return false;
}

static void output_poke(struct perf_event *event, void *data)
{
	static const u64 zero;
	struct text_poke_record *record = data;
	const struct text_poke *poke = record->poke;
	const u16 len[] = { poke->old_len, poke->new_len };
	struct perf_output_handle handle;
	struct perf_sample_data sample;

	if (!wants_text(event, record->kind))
		return;
	if (!clock_is_readable(event)) {
		atomic64_inc(&event->lost_samples);
		return;
	}

	/* The header has the size, which depends on the event's sample_id. */
	perf_event_header__init(&record->id.header, &sample,
				PERF_RECORD_TEXT_POKE, PERF_RECORD_MISC_KERNEL,
				sizeof(record->id) + text_poke_size(poke), event);
	if (perf_output_begin(&handle, &sample, event, record->id.header.size))
		return;

	perf_output_put(&handle, record->id);
	perf_output_put(&handle, len);
	__output_copy(&handle, poke->old, poke->old_len);
	__output_copy(&handle, poke->new, poke->new_len);
	__output_copy(&handle, &zero, text_poke_padding(poke));
	perf_event__output_id_sample(event, &handle, &sample);
	perf_output_end(&handle);
}

void __perf_event_text(enum perf_text kind, const void *addr,
		       const void *old, size_t old_len, const void *new, size_t new_len)
{
	struct text_poke piece, rest = {
		.addr	 = (unsigned long)addr,
		.old	 = old,
		.new	 = new,
		.old_len = old_len,
		.new_len = new_len,
	};

	while (text_poke_piece(&rest, &piece)) {
		struct text_poke_record record = {
			.id.addr = piece.addr,
			.kind	 = kind,
			.poke	 = &piece,
		};

		perf_iterate_sb(output_poke, &record, NULL);
	}
}

void __perf_event_text_fill(enum perf_text kind, const void *addr, u8 byte, size_t len)
{
	static u8 filled[512];
	size_t n;

	lockdep_assert_held(&text_mutex);

	memset(filled, byte, min(len, sizeof(filled)));
	for (; len; addr += n, len -= n) {
		n = min(len, sizeof(filled));
		__perf_event_text(kind, addr, addr, n, filled, n);
	}
}

/* ---- The PMU kernel_text ---- */

static void kernel_text_destroy(struct perf_event *event)
{
	static_branch_slow_dec_deferred(&perf_text_poke_key);
}

static int kernel_text_open(struct perf_event *event)
{
	int err;

	err = perf_allow_kernel();
	if (err)
		return err;
	/* The text of others, whatever kernel.perf_event_paranoid is */
	if (!perfmon_capable())
		return -EACCES;

	event->hw.config = TEXT_AREA;
	if (bpf_dump_raw_ok(current_cred()))
		event->hw.config |= TEXT_AREA_JIT;
	static_branch_deferred_inc(&perf_text_poke_key);
	event->destroy = kernel_text_destroy;
	return 0;
}

static int kernel_text_event_init(struct perf_event *event)
{
	int err = 0;

	if (event->attr.type != perf_kernel_text.type)
		return -ENOENT;
	if (has_branch_stack(event))
		return -EOPNOTSUPP;
	if (event->attr.config != TEXT_AREA || event->attr.config1 ||
	    event->attr.config2 || event->attr.config3)
		return -EINVAL;

	/* An inherited event records what its parent records, which enables the key. */
	if (event->parent)
		event->hw.config = event->parent->hw.config;
	else
		err = kernel_text_open(event);
	if (err)
		return err;

	event->event_caps |= PERF_EV_CAP_SIDEBAND;
	return 0;
}

static int kernel_text_add(struct perf_event *event, int flags)
{
	return 0;
}

static void kernel_text_nop(struct perf_event *event, int flags)
{
}

static void kernel_text_read(struct perf_event *event)
{
}

PMU_FORMAT_ATTR(area, "config:0");

static struct attribute *kernel_text_format[] = {
	&format_attr_area.attr,
	NULL
};

static const struct attribute_group kernel_text_format_group = {
	.name	= "format",
	.attrs	= kernel_text_format,
};

static const struct attribute_group *kernel_text_groups[] = {
	&kernel_text_format_group,
	NULL
};

/* The events count nothing: they exist for the records in their buffers. */
static struct pmu perf_kernel_text = {
	.task_ctx_nr	= perf_sw_context,
	/* A CPU that comes online runs text before an event could be opened for it. */
	.capabilities	= PERF_PMU_CAP_KEEP_OFFLINE,
	.attr_groups	= kernel_text_groups,
	.event_init	= kernel_text_event_init,
	.add		= kernel_text_add,
	.del		= kernel_text_nop,
	.start		= kernel_text_nop,
	.stop		= kernel_text_nop,
	.read		= kernel_text_read,
};

static int __init kernel_text_init(void)
{
	return perf_pmu_register(&perf_kernel_text, "kernel_text", -1);
}
device_initcall(kernel_text_init);
