// SPDX-License-Identifier: GPL-2.0
/* hwbp watch: record each access to some places. */
#include "options.h"
#include "verb.h"
#include "watch.h"

static const char *const usage[] = {
	"hwbp watch [OPTION...] PLACE... { -p PID | -- COMMAND [ARG...] }",
	"",
	"Print each access to PLACE as it happens: time in seconds since the start, name",
	"and ID of the thread, CPU, instruction, source line, and the value of PLACE before",
	"and after. When the program ends, a limit is reached or ^C is pressed, print the",
	"number of accesses per instruction.",
	"",
	WATCH_USAGE_PLACE,
	"",
	"Values are formatted by their type: OLD -> NEW, of a structure or array for each",
	"member that changed; one value if it is the same. EXPR of --if is an expression of C",
	"over old and new, such as 'new < old - 10' or 'new.state == DONE && old.n > 3'; an",
	"access is shown if it is true or unknown.",
	"",
	"The processor reports a read or write after the instruction, with the address",
	"of the next one. hwbp disassembles backwards to find the instruction that made",
	"the access. Without the code it prints the reported address minus 1, which is",
	"the last byte of that instruction. An access by a jump or call instruction",
	"itself is shown at the function that it jumps to.",
	"",
	WATCH_USAGE_STATUS,
	NULL
};

static int run(int argc, const char **argv)
{
	struct watch_options opt = { .record = true };
	const struct option options[] = {
		WATCH_OPTIONS(opt),
		OPT_COUNT('n', "hits", &opt.max_hits, "N", "end after N hits"),
		OPT_STRING(0, "thread", &opt.thread, "NAME",
			   "show only hits of threads of this name, a pattern as in the shell"),
		OPT_STRING(0, "if", &opt.condition, "EXPR",
			   "leave out accesses for which EXPR, of old and new, is false"),
		OPT_BOOLEAN(0, "hex", &opt.hex, "show integers in hexadecimal"),
		OPT_BOOLEAN('g', "callers", &opt.callers, "print the call chain of each access"),
		OPTIONS_END
	};

	argc = options_parse(argc, argv, options, usage);
	watch_check(&opt, argc, argv);
	return watch_run(&opt);
}

const struct verb verb_watch = {
	.name = "watch",
	.summary = "print each access as it happens and, at the end, a count per instruction",
	.run = run,
};
