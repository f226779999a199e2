/* SPDX-License-Identifier: GPL-2.0 */
/* The command line. */
#ifndef HWBP_OPTIONS_H
#define HWBP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum verb {
	VERB_WATCH,
	VERB_STAT,
	VERB_SLOTS,
	VERB_TEXT,
};

enum access {
	ACCESS_W,
	ACCESS_RW,
	ACCESS_X,
};

/**
 * struct options - what the user asked for
 * @verb: watch, stat, slots or text
 * @access: which accesses hit
 * @kernel: accesses made in kernel mode hit, too
 * @callers: print the callers of each hit
 * @spec: the variable, function or address, as written
 * @out: file for the report, NULL for stdout
 * @pid: process to attach to, 0 when a command is launched; of slots: the task
 *	 or process to show, 0 for all
 * @cpu: of slots: the CPU to show, -1 for all
 * @from: of slots: the file to read instead of the kernel's, NULL for that
 * @cmd: command to launch, NULL-terminated; NULL with @pid, and for text without
 * @max_hits: end the watch after so many hits, 0 for no limit
 * @max_ns: end the watch after so much time, 0 for no limit
 * @all: of text: show all bytes and all symbols, however many
 * @quiet: of text: show the counts only
 * @areas: of text: show whole areas of text, too
 * @ring_mb: of text: size of the buffer of each CPU, 0 for what seems right
 */
struct options {
	enum verb verb;
	enum access access;
	bool kernel;
	bool callers;
	const char *spec;
	const char *out;
	pid_t pid;
	int cpu;
	const char *from;
	char **cmd;
	uint64_t max_hits;
	uint64_t max_ns;
	bool all;
	bool quiet;
	bool areas;
	unsigned int ring_mb;
};

/* Dies with one line when the command line makes no sense. */
void options_parse(struct options *opt, int argc, char **argv);

const char *access_name(enum access access);

#endif
