/* SPDX-License-Identifier: GPL-2.0 */
/* What the user asked 'hwbp watch' or 'hwbp stat' for. */
#ifndef HWBP_REQUEST_H
#define HWBP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum access {
	ACCESS_W,
	ACCESS_RW,
	ACCESS_X,
};

/**
 * struct watch_options - what the user asked for
 * @record: watch: record each access; stat: only count
 * @access: kind of access to watch for
 * @write: -w
 * @read: -r
 * @execute: -x
 * @kernel: -k: watch accesses in kernel mode, too
 * @callers: -g: print the callers of each hit
 * @flexible: -F: share registers with other flexible breakpoints
 * @children: --children: also watch the processes that the process starts
 * @specs: the variables, functions or addresses, as written by the user
 * @nr_specs: number of @specs
 * @json: --json: print JSON
 * @plain: --plain: neither colours nor a summary on a terminal
 * @out: file for the report, NULL for stdout
 * @pid: process to attach to, 0 to launch @cmd
 * @tid: single thread of @pid to watch, 0 for all threads
 * @changed: --changed: leave out accesses that leave the place as it was
 * @condition: --if: leave out accesses for which this expression is false, NULL for none
 * @hex: --hex: show integers in hexadecimal
 * @dry_run: --dry-run: only show the places
 * @cmd: NULL-terminated command to launch, NULL if there is none
 * @thread: --thread: pattern of the names of the threads whose hits are shown, NULL for all
 * @max_hits: end the watch after this number of hits, 0 for no limit
 * @max_ns: end the watch after this time, 0 for no limit
 */
struct watch_options {
	bool record;
	enum access access;
	bool write;
	bool read;
	bool execute;
	bool kernel;
	bool callers;
	bool flexible;
	bool children;
	bool json;
	bool plain;
	const char **specs;
	size_t nr_specs;
	const char *out;
	pid_t pid;
	pid_t tid;
	bool changed;
	const char *condition;
	bool hex;
	bool dry_run;
	char **cmd;
	const char *thread;
	uint64_t max_hits;
	uint64_t max_ns;
};

#endif
