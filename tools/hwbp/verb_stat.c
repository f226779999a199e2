// SPDX-License-Identifier: GPL-2.0
/* hwbp stat: count the accesses to some places. */
#include "options.h"
#include "verb.h"
#include "watch.h"

static const char *const usage[] = {
	"hwbp stat [OPTION...] PLACE... { -p PID | -- COMMAND [ARG...] }",
	"",
	"Count the accesses to PLACE without recording each of them: the program runs",
	"faster than under 'hwbp watch'. With --children accesses by child processes count,",
	"too, even those to the same address in another program that a child executes.",
	"",
	WATCH_USAGE_PLACE,
	"",
	WATCH_USAGE_STATUS,
	NULL
};

static int run(int argc, const char **argv)
{
	struct watch_options opt = { 0 };
	const struct option options[] = {
		WATCH_OPTIONS(opt),
		OPTIONS_END
	};

	argc = options_parse(argc, argv, options, usage);
	watch_check(&opt, argc, argv);
	return watch_run(&opt);
}

const struct verb verb_stat = {
	.name = "stat",
	.summary = "only count the accesses",
	.run = run,
};
