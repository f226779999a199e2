/* SPDX-License-Identifier: GPL-2.0 */
/* Recording of changes of kernel text (PERF_RECORD_TEXT_POKE, PERF_RECORD_KSYMBOL). */
#ifndef HWBP_TEXT_H
#define HWBP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "rings.h"

struct text;

/**
 * struct text_options - what the user asked for
 * @out: file for the report, NULL for stdout
 * @cmd: NULL-terminated command to launch, NULL if there is none
 * @max_ns: end the report after this time, 0 for no limit
 * @all: show all bytes and all symbols
 * @quiet: show only the counts
 * @areas: show whole areas of text, too
 * @json: print JSON
 * @ring_mb: buffer size of each CPU in MB, 0 for the default
 */
struct text_options {
	const char *out;
	char **cmd;
	uint64_t max_ns;
	bool all;
	bool quiet;
	bool areas;
	bool json;
	unsigned int ring_mb;
};

/**
 * struct text_change - a change of text
 * @time: CLOCK_MONOTONIC in nanoseconds
 * @cpu: CPU that made the change
 * @address: first address that changed
 * @old_bytes: bytes before the change
 * @old_len: length of @old_bytes, 0 if the text is new
 * @new_bytes: bytes after the change
 * @new_len: length of @new_bytes, 0 if the text is gone
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
 * struct text_area - a symbol of text was registered or unregistered
 * @time: CLOCK_MONOTONIC in nanoseconds
 * @cpu: CPU that made the change
 * @address: start of the text
 * @len: length of the text
 * @kind: PERF_RECORD_KSYMBOL_TYPE_*
 * @gone: the symbol was unregistered
 * @name: the symbol
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

/* Handlers of records. text_drain() calls them in the order of time. */
struct text_ops {
	void (*change)(void *arg, const struct text_change *change);
	void (*area)(void *arg, const struct text_area *area);
	void (*lost)(void *arg, uint64_t time, uint32_t cpu, uint64_t nr);
};

/* Start recording on all CPUs. Exits with a one-line message on failure. */
struct text *text_open(const struct text_options *opt);

/* Stop recording. */
void text_stop(struct text *text);

/* Call @ops for the records older than @until; see rings_drain(). */
bool text_drain(struct text *text, uint64_t until, const struct text_ops *ops, void *arg);

/* Number of records for which a buffer had no room; call it after text_stop(). */
uint64_t text_nr_lost(const struct text *text);

/* Print a note for each online CPU that is not recorded; call it before text_stop(). */
void text_note_cpus(struct text *text);

struct rings *text_rings(const struct text *text);

void text_close(struct text *text);

#endif
