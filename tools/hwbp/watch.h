/* SPDX-License-Identifier: GPL-2.0 */
/* One run of 'hwbp watch' or 'hwbp stat'. */
#ifndef HWBP_WATCH_H
#define HWBP_WATCH_H

#include "request.h"

/* Options of watch and stat */
#define WATCH_OPTIONS(opt) \
	OPT_BOOLEAN('w', "write", &(opt).write, "watch writes (default)"), \
	OPT_BOOLEAN('r', "read", &(opt).read, \
		    "watch reads and writes: the processor cannot watch reads alone"), \
	OPT_BOOLEAN('x', "execute", &(opt).execute, \
		    "watch execution: PLACE is a function or an instruction"), \
	OPT_PID('p', "pid", &(opt).pid, \
		"watch a running process (number or name), or one thread of it"), \
	OPT_BOOLEAN(0, "changed", &(opt).changed, \
		    "leave out accesses that leave PLACE as it was"), \
	OPT_BOOLEAN('F', "flexible", &(opt).flexible, \
		    "use flexible breakpoints: watch each place for a part of the time"), \
	OPT_BOOLEAN(0, "children", &(opt).children, \
		    "also watch the processes that the process starts"), \
	OPT_BOOLEAN(0, "dry-run", &(opt).dry_run, "show the places, and watch nothing"), \
	OPT_SECONDS('t', "time", &(opt).max_ns, "end after SECONDS"), \
	OPT_STRING('o', "output", &(opt).out, "FILE", \
		   "write the report to FILE instead of standard output"), \
	OPT_BOOLEAN(0, "json", &(opt).json, "print JSON, one object per line"), \
	OPT_BOOLEAN(0, "plain", &(opt).plain, \
		    "no colours and no live summary on a terminal"), \
	OPT_BOOLEAN('k', "kernel", &(opt).kernel, \
		    "watch accesses by the kernel, too, such as read(2) into a variable")

/* Lines of the usage that watch and stat have in common */
#define WATCH_USAGE_PLACE \
	"PLACE is a variable or function, global or static, of the program or, if the", \
	"program has none of that name, of a library that it is linked to; or an object", \
	"that an expression of C names. Members and pointers need debug information.", \
	"  counter              the whole variable", \
	"  counter:4            its first four bytes", \
	"  table+0x20:8         eight bytes at an offset", \
	"  bank.teller[2].n     a member, or the bytes of a bit-field", \
	"  head->next->n        pointers are followed once, when the watch begins", \
	"  file.c:counter       the static variable of that source file", \
	"  libx.so:counter      the variable of that library, which may be loaded later", \
	"  main::calls          the static variable of a function", \
	"  ns::Class::total     a name of C++ or Rust; the last parts do if they are unique", \
	"  0x404040:2           an address", \
	"  '(struct s *)0x7f00' the structure at an address", \
	"LEN is 1, 2, 4 or 8, and the address must be a multiple of it; with caps/max_length", \
	"of the PMU in sysfs any range that as many such pieces as there are registers cover.", \
	"A thread-local variable is that of the thread -p names.", \
	"", \
	"Any number of places may be given if the kernel has flexible breakpoints. If they", \
	"are more than the registers, or with -F, they are multiplexed on the registers", \
	"that are available: each place is watched for a part of the time, and counts are", \
	"scaled by it."

#define WATCH_USAGE_STATUS \
	"-k requires CAP_PERFMON or a kernel.perf_event_paranoid below 2.", \
	"", \
	"A limit or ^C ends the watch, but not the program. The exit status is that of", \
	"COMMAND (128+N if signal N killed it); 0 with -p; 125 if hwbp itself failed; 126", \
	"if COMMAND cannot be executed; 127 if it was not found."

/*
 * Take over the arguments that are left of the options, and check the options. Exits
 * with a one-line message if they are not valid.
 */
void watch_check(struct watch_options *opt, int argc, const char **argv);

/* Returns the exit status. */
int watch_run(const struct watch_options *opt);

#endif
