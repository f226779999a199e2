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
 * @access: kind of access to watch for
 * @kernel: -k: watch accesses in kernel mode, too
 * @callers: -g: print the callers of each hit
 * @spec: the variable, function or address, as written by the user
 * @out: file for the report, NULL for stdout
 * @pid: watch, stat: process to attach to, 0 to launch @cmd; slots: task or process
 *	 to show, 0 for all
 * @cpu: slots: CPU to show, -1 for all
 * @from: slots: file to read, NULL for the one in debugfs
 * @cmd: NULL-terminated command to launch, NULL if there is none
 * @max_hits: end the watch after this number of hits, 0 for no limit
 * @max_ns: end the watch after this time, 0 for no limit
 * @all: text: show all bytes and all symbols
 * @quiet: text: show only the counts
 * @areas: text: show whole areas of text, too
 * @ring_mb: text: buffer size of each CPU in MB, 0 for the default
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

/* Parse the command line. Exits with a one-line message if it is not valid. */
void options_parse(struct options *opt, int argc, char **argv);

const char *access_name(enum access access);

#endif
