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
};

enum access {
	ACCESS_W,
	ACCESS_RW,
	ACCESS_X,
};

/**
 * struct options - what the user asked for
 * @verb: watch or stat
 * @access: which accesses hit
 * @kernel: accesses made in kernel mode hit, too
 * @callers: print the callers of each hit
 * @spec: the variable, function or address, as written
 * @out: file for the report, NULL for stdout
 * @pid: process to attach to, 0 when a command is launched
 * @cmd: command to launch, NULL-terminated; NULL with @pid
 * @max_hits: end the watch after so many hits, 0 for no limit
 * @max_ns: end the watch after so much time, 0 for no limit
 */
struct options {
	enum verb verb;
	enum access access;
	bool kernel;
	bool callers;
	const char *spec;
	const char *out;
	pid_t pid;
	char **cmd;
	uint64_t max_hits;
	uint64_t max_ns;
};

/* Dies with one line when the command line makes no sense. */
void options_parse(struct options *opt, int argc, char **argv);

const char *access_name(enum access access);

#endif
