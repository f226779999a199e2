// SPDX-License-Identifier: GPL-2.0
/* hwbp slots: show the breakpoints that hold the debug registers. */
#include "options.h"
#include "slots_report.h"
#include "tracefs.h"
#include "util.h"
#include "verb.h"

static const char *const usage[] = {
	"hwbp slots [-p PID] [--cpu N]",
	"",
	"Show which breakpoints hold the debug registers (requires root and debugfs):",
	"  - the number of registers of each CPU",
	"  - for each CPU, the claims of breakpoints that watch all tasks on the CPU, and",
	"    the current contents of its registers",
	"  - for each task, its claims: CPU, watched address, owner",
	"  - the CPUs and tasks that are full: a further breakpoint fails with ENOSPC",
	"A guaranteed breakpoint has a register of its own on each CPU on which it may run.",
	"One register is left for all flexible breakpoints together, which are multiplexed",
	"on the registers that guaranteed ones leave. Claims of different tasks do not add",
	"up, because two tasks never run on a CPU at the same time.",
	"",
	"The exit status is 0, or 125 on failure.",
	NULL
};

static int run(int argc, const char **argv)
{
	struct slots_options opt = { .cpu = -1 };
	const struct option options[] = {
		OPT_PID('p', "pid", &opt.pid,
			"show only this task or, if it is a process, all its threads"),
		OPT_CPU(0, "cpu", &opt.cpu,
			"show only this CPU, and claims of tasks that apply to it"),
		OPT_BOOLEAN(0, "json", &opt.json, "print JSON, one object per line"),
		/* For tests */
		{ .type = OPTION_STRING, .long_name = "from", .value = &opt.from,
		  .argh = "FILE", .help = "read FILE instead of the list in debugfs",
		  .flags = PARSE_OPT_HIDDEN },
		OPTIONS_END
	};

	argc = options_parse(argc, argv, options, usage);
	if (argc)
		die("unexpected argument '%s' (see hwbp slots --help)", argv[0]);
	slots_report(&opt);
	if (!opt.from)
		tracefs_note_left();
	return 0;
}

const struct verb verb_slots = {
	.name = "slots",
	.summary = "show which tasks and CPUs hold the debug registers",
	.run = run,
};
