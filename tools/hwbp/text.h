/* SPDX-License-Identifier: GPL-2.0 */
/* Changes of kernel text, as the kernel tells of them. */
#ifndef HWBP_TEXT_H
#define HWBP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "rings.h"

struct text;

/**
 * struct text_change - some bytes of text became others
 * @time: CLOCK_MONOTONIC in nanoseconds
 * @cpu: that made the change
 * @old_len: 0 if the text is new
 */
struct text_change {
	uint64_t time;
	uint32_t cpu;
	uint64_t address;
	const uint8_t *old_bytes;
	uint16_t old_len;
	const uint8_t *new_bytes;
	uint16_t new_len;
};

/**
 * struct text_area - text became known by a name, or no longer is
 * @kind: PERF_RECORD_KSYMBOL_TYPE_...
 */
struct text_area {
	uint64_t time;
	uint32_t cpu;
	uint64_t address;
	uint32_t len;
	unsigned int kind;
	bool gone;
	const char *name;
};

/* Told, in the order of time, what happened. */
struct text_ops {
	void (*change)(void *arg, const struct text_change *change);
	void (*area)(void *arg, const struct text_area *area);
	void (*lost)(void *arg, uint64_t time, uint32_t cpu, uint64_t nr);
};

/* Listen on all CPUs.  Dies with one line if that is not possible. */
struct text *text_open(const struct options *opt);

/* From here on nothing comes any more. */
void text_stop(struct text *text);

/* As rings_drain(). */
bool text_drain(struct text *text, uint64_t until, const struct text_ops *ops, void *arg);

/* How many records there was no room for, told of or not; when stopped. */
uint64_t text_nr_lost(const struct text *text);

/* One note for each CPU that is online and not listened to; before the stop. */
void text_note_cpus(struct text *text);

struct rings *text_rings(const struct text *text);

void text_close(struct text *text);

#endif
