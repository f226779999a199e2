// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: every change of kernel text, for those who decode
 * traces of what was executed and have to know what stood there.
 *
 * Whoever changes text tells it here, between the moment when no CPU executes
 * the old text any more and the moment when the first may execute the new.  In
 * between stands a breakpoint.  Where there is none, because nobody executes the
 * text that is written, it is told before.
 */

#include <linux/jump_label_ratelimit.h>
#include <linux/kgdb.h>
#include <linux/lockdep.h>
#include <linux/memory.h>
#include <linux/perf_event.h>
#include <linux/string.h>

#include "internal.h"
#include "text_poke.h"

/*
 * Somebody listens.  To switch it changes text itself, so it is not switched off
 * when one listener goes and the next comes.
 */
DEFINE_STATIC_KEY_DEFERRED_FALSE(perf_text_poke_heard, HZ);

struct text_poke_record {
	struct {
		struct perf_event_header	header;
		u64				addr;
	} id;
	const struct text_poke *poke;
};

/* The clocks that can be read while a debugger has stopped who sets them */
static bool clock_can_be_read(const struct perf_event *event)
{
	return !in_dbg_master() || !event->attr.use_clockid ||
	       event->attr.clockid == CLOCK_MONOTONIC ||
	       event->attr.clockid == CLOCK_MONOTONIC_RAW;
}

static void output_poke(struct perf_event *event, void *data)
{
	static const u64 zero;
	struct text_poke_record *record = data;
	const struct text_poke *poke = record->poke;
	const u16 len[] = { poke->old_len, poke->new_len };
	struct perf_output_handle handle;
	struct perf_sample_data sample;

	if (!event->attr.text_poke)
		return;
	if (!clock_can_be_read(event)) {
		atomic64_inc(&event->lost_samples);
		return;
	}

	/* Each event has its own sample_id. */
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

void __perf_event_text_poke(const void *addr, const void *old, size_t old_len,
			    const void *new, size_t new_len)
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
			.poke	 = &piece,
		};

		perf_iterate_sb(output_poke, &record, NULL);
	}
}

void __perf_event_text_fill(const void *addr, u8 byte, size_t len)
{
	static u8 filled[512];
	size_t n;

	lockdep_assert_held(&text_mutex);

	memset(filled, byte, min(len, sizeof(filled)));
	for (; len; addr += n, len -= n) {
		n = min(len, sizeof(filled));
		__perf_event_text_poke(addr, addr, n, filled, n);
	}
}

void perf_text_poke_account(struct perf_event *event, bool listen)
{
	if (!event->attr.text_poke)
		return;
	if (listen)
		static_branch_deferred_inc(&perf_text_poke_heard);
	else
		static_branch_slow_dec_deferred(&perf_text_poke_heard);
}
