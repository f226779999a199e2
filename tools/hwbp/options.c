// SPDX-License-Identifier: GPL-2.0
/*
 * The command line.  Options and the place to watch may come in any order; the
 * command to run comes last, after "--".
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "util.h"

static const char usage_all[] =
"usage: hwbp watch [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"       hwbp stat  [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"       hwbp slots [-p PID] [--cpu N]\n"
"       hwbp text  [OPTION...] [-- COMMAND [ARG...]]\n"
"\n"
"Find the code that accesses a variable, with the hardware breakpoints of the\n"
"processor.\n"
"\n"
"  watch   print each access as it happens and, at the end, a count per place\n"
"  stat    only count the accesses\n"
"  slots   show which tasks and CPUs hold the debug registers\n"
"  text    print each change of the kernel's own instructions\n"
"\n"
"See 'hwbp COMMAND --help' for the options of a command.\n";

static const char usage_watch[] =
"usage: hwbp watch [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"\n"
"Print each access to PLACE as it happens: time in seconds since the start, name\n"
"and ID of the thread, CPU, instruction, source line.  When the program ends, a\n"
"limit is reached or ^C is pressed, print the number of accesses per instruction.\n"
"\n";

static const char usage_stat[] =
"usage: hwbp stat [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"\n"
"Count the accesses to PLACE without recording each of them: the program runs\n"
"faster than under 'hwbp watch'.  Accesses by child processes count, too, even\n"
"accesses to the same address in another program that a child executes.\n"
"\n";

static const char usage_place[] =
"PLACE is SYMBOL[:LEN] or ADDRESS:LEN.  SYMBOL is a variable or function, global\n"
"or static, of the program or, if the program has none of that name, of a library\n"
"that it is linked to.\n"
"  counter           the whole variable, if it is 1, 2, 4 or 8 bytes long\n"
"  counter:4         its first four bytes\n"
"  table+0x20:8      eight bytes at an offset\n"
"  bank.teller[2].n  a member, if the program has debug information\n"
"  file.c:counter    the static variable of that source file\n"
"  libx.so:counter   the variable of that library or program\n"
"  0x404040:2        an address\n"
"LEN is 1, 2, 4 or 8, and the address must be a multiple of it.\n"
"\n"
"  -w          writes (default)\n"
"  -rw         reads and writes\n"
"  -x          execution: PLACE is a function or an instruction\n"
"  -p PID      watch all threads of a running process, which is not stopped\n"
"  -t SECONDS  end after SECONDS\n"
"  -o FILE     write the report to FILE instead of standard output\n"
"  -k          report accesses by the kernel, too, such as read(2) into a\n"
"              variable; requires CAP_PERFMON or a kernel.perf_event_paranoid\n"
"              below 2\n"
"  -h, --help  print this help\n";

static const char usage_watch_options[] =
"  -n N        end after N hits\n"
"  -g          print the call chain of each access, too\n"
"\n"
"The processor reports a read or write after the instruction, with the address\n"
"of the next one.  hwbp disassembles backwards to find the instruction that made\n"
"the access.  Without the code it prints the reported address minus 1, which is\n"
"the last byte of that instruction.  An access by a jump or call instruction\n"
"itself is shown at the function that it jumps to.\n";

static const char usage_status[] =
"\n"
"A limit or ^C ends the watch, but not the program.  The exit status is that of\n"
"COMMAND (128+N if signal N killed it); 0 with -p; 125 if hwbp itself failed; 126\n"
"if COMMAND cannot be executed; 127 if it was not found.\n";

static const char usage_slots[] =
"usage: hwbp slots [-p PID] [--cpu N]\n"
"\n"
"Show which breakpoints hold the debug registers (requires root and debugfs):\n"
"  - the number of registers of each CPU\n"
"  - for each CPU, the claims of breakpoints that watch whatever runs there, and\n"
"    the current contents of its registers\n"
"  - for each task, its claims: CPU, watched address, owner\n"
"  - the CPUs and tasks that are full: a further breakpoint fails with ENOSPC\n"
"A guaranteed breakpoint has a register of its own wherever it may run.  All\n"
"flexible breakpoints together are sure of one register and are multiplexed on\n"
"the registers that guaranteed ones leave.  Claims of different tasks do not add\n"
"up.\n"
"\n"
"  -p PID      show only this task or, if it is a process, all its threads\n"
"  --cpu N     show only this CPU, and claims of tasks that apply to it\n"
"  -h, --help  print this help\n"
"\n"
"The exit status is 0, or 125 on failure.\n";

static const char usage_text[] =
"usage: hwbp text [OPTION...] [-- COMMAND [ARG...]]\n"
"\n"
"Print each change of the text (the instructions) of the running kernel on any\n"
"CPU, while COMMAND runs or until ^C: time in seconds since the start, CPU that\n"
"made the change, address, symbol, length, old bytes -> new bytes.  After that\n"
"time no CPU executes the old bytes.\n"
"\n"
"'new' stands for the old bytes if there was no text before, 'gone' for the new\n"
"bytes if there is no text any more.  A symbol that is registered or unregistered\n"
"(BPF programs, copies of instructions by kprobes and ftrace) has a line without\n"
"bytes.  Lost records have a line of their own: changes are missing there.  A\n"
"symbol outside of the core kernel is looked up with a delay: the name of text\n"
"that is removed soon may be missing, or be the name of text that replaced it.\n"
"The report ends with the number of changes per symbol.\n"
"\n"
"  -t SECONDS  end after SECONDS\n"
"  -o FILE     write the report to FILE instead of standard output\n"
"  -a          print all bytes of long changes, and the counts of all symbols\n"
"  --areas     show whole areas of text, too: modules and BPF programs that are\n"
"              loaded and unloaded; requires CAP_PERFMON, and CAP_SYSLOG for BPF\n"
"  -q          print only the counts\n"
"  -b MB       buffer size of each CPU (default: 4, less with many CPUs);\n"
"              increase it if records are lost\n"
"  -h, --help  print this help\n"
"\n"
"Only CPUs that are online at the start are recorded.  Changes made by a CPU\n"
"that comes online later, or again, are missing; a note at the end names such a\n"
"CPU if it is still online.  hwbp itself changes text when it starts and stops\n"
"recording: before the first line and after the last.\n"
"\n"
"This requires CAP_PERFMON or a kernel.perf_event_paranoid of 0 or less, and\n"
"addresses in /proc/kallsyms for the symbols.  A limit or ^C ends the report,\n"
"but not COMMAND.  The exit status is that of COMMAND (128+N if signal N killed\n"
"it); 0 without COMMAND; 125 if hwbp itself failed; 126 if COMMAND cannot be\n"
"executed; 127 if it was not found.\n";

static void usage(enum verb verb)
{
	if (verb == VERB_SLOTS || verb == VERB_TEXT) {
		fputs(verb == VERB_SLOTS ? usage_slots : usage_text, stdout);
		exit(0);
	}
	fputs(verb == VERB_WATCH ? usage_watch : usage_stat, stdout);
	fputs(usage_place, stdout);
	if (verb == VERB_WATCH)
		fputs(usage_watch_options, stdout);
	fputs(usage_status, stdout);
	exit(0);
}

const char *access_name(enum access access)
{
	switch (access) {
	case ACCESS_W:
		return "writes";
	case ACCESS_RW:
		return "reads and writes";
	default:
		return "executions";
	}
}

static uint64_t parse_count(const char *opt, const char *arg)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || !n)
		die("invalid argument of %s: '%s' is not a positive number", opt, arg);
	return n;
}

static uint64_t parse_seconds(const char *opt, const char *arg)
{
	double s;
	char *end;

	s = strtod(arg, &end);
	if (end == arg || *end || !isfinite(s) || s <= 0 || s > 1e9)
		die("invalid argument of %s: '%s' is not a time in seconds", opt, arg);
	return (uint64_t)(s * 1e9);
}

static pid_t parse_pid(const char *opt, const char *arg)
{
	uint64_t n = parse_count(opt, arg);

	if (n > INT_MAX)
		die("no such process: %s", arg);
	return (pid_t)n;
}

/* Options with an argument: "-n 5" or "-n5". */
static const char *option_arg(char ***argp)
{
	const char *opt = **argp;

	if (opt[2])
		return opt + 2;
	if (!(*argp)[1] || !strcmp((*argp)[1], "--"))
		die("%s requires an argument", opt);
	return *++*argp;
}

static bool parse_flag(struct options *opt, const char *arg)
{
	if (!strcmp(arg, "-w"))
		opt->access = ACCESS_W;
	else if (!strcmp(arg, "-rw") || !strcmp(arg, "-wr"))
		opt->access = ACCESS_RW;
	else if (!strcmp(arg, "-x"))
		opt->access = ACCESS_X;
	else if (!strcmp(arg, "-k"))
		opt->kernel = true;
	else if (!strcmp(arg, "-g") && opt->verb == VERB_WATCH)
		opt->callers = true;
	else if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		usage(opt->verb);
	else
		return false;
	return true;
}

static bool parse_valued(struct options *opt, char ***argp)
{
	const char *arg = **argp;

	if (!strncmp(arg, "-p", 2))
		opt->pid = parse_pid("-p", option_arg(argp));
	else if (!strncmp(arg, "-n", 2) && opt->verb == VERB_WATCH)
		opt->max_hits = parse_count("-n", option_arg(argp));
	else if (!strncmp(arg, "-t", 2))
		opt->max_ns = parse_seconds("-t", option_arg(argp));
	else if (!strncmp(arg, "-o", 2))
		opt->out = option_arg(argp);
	else
		return false;
	return true;
}

/* Argument of the long option @opt, "--cpu 5" or "--cpu=5"; NULL for any other option. */
static const char *long_option_arg(const char *opt, char ***argp)
{
	const char *arg = **argp;
	size_t len = strlen(opt);

	if (strncmp(arg, opt, len))
		return NULL;
	if (arg[len] == '=')
		return arg + len + 1;
	if (arg[len])
		return NULL;
	if (!(*argp)[1])
		die("%s requires an argument", opt);
	return *++*argp;
}

static int parse_cpu(const char *arg)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n > INT_MAX)
		die("invalid argument of --cpu: '%s' is not a CPU number", arg);
	return (int)n;
}

static void parse_slots_option(struct options *opt, char ***argp)
{
	const char *arg = **argp, *value;

	if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		usage(opt->verb);
	else if (!strncmp(arg, "-p", 2))
		opt->pid = parse_pid("-p", option_arg(argp));
	else if ((value = long_option_arg("--cpu", argp)))
		opt->cpu = parse_cpu(value);
	else if ((value = long_option_arg("--from", argp)))
		/* For tests only, so not documented in the usage. */
		opt->from = value;
	else if (*arg == '-')
		die("unknown option '%s' (see hwbp slots --help)", arg);
	else
		die("unexpected argument '%s' (see hwbp slots --help)", arg);
}

static unsigned int parse_megabytes(const char *opt, const char *arg)
{
	uint64_t n = parse_count(opt, arg);

	if (n > 1024)
		die("invalid argument of %s: %s MB is more than 1024", opt, arg);
	return n;
}

static void parse_text_option(struct options *opt, char ***argp)
{
	const char *arg = **argp;

	if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
		usage(opt->verb);
	else if (!strcmp(arg, "-a"))
		opt->all = true;
	else if (!strcmp(arg, "-q"))
		opt->quiet = true;
	else if (!strcmp(arg, "--areas"))
		opt->areas = true;
	else if (!strncmp(arg, "-b", 2))
		opt->ring_mb = parse_megabytes("-b", option_arg(argp));
	else if (!strncmp(arg, "-t", 2))
		opt->max_ns = parse_seconds("-t", option_arg(argp));
	else if (!strncmp(arg, "-o", 2))
		opt->out = option_arg(argp);
	else if (*arg == '-')
		die("unknown option '%s' (see hwbp text --help)", arg);
	else
		die("unexpected argument '%s' (a command to run follows --)", arg);
}

static void parse_verb(struct options *opt, const char *arg)
{
	if (!arg || !strcmp(arg, "-h") || !strcmp(arg, "--help") || !strcmp(arg, "help")) {
		fputs(usage_all, arg ? stdout : stderr);
		exit(arg ? 0 : EXIT_HWBP);
	}
	if (!strcmp(arg, "watch"))
		opt->verb = VERB_WATCH;
	else if (!strcmp(arg, "stat"))
		opt->verb = VERB_STAT;
	else if (!strcmp(arg, "slots"))
		opt->verb = VERB_SLOTS;
	else if (!strcmp(arg, "text"))
		opt->verb = VERB_TEXT;
	else
		die("unknown command '%s': use watch, stat, slots or text (see hwbp --help)", arg);
}

static void check(const struct options *opt)
{
	const char *verb = opt->verb == VERB_WATCH ? "watch" : "stat";

	if (!opt->spec)
		die("no place to watch was given (see hwbp %s --help)", verb);
	if (opt->pid && opt->cmd)
		die("-p PID and a command exclude each other");
	if (!opt->pid && !opt->cmd)
		die("no program was given: use -p PID, or -- and a command");
}

void options_parse(struct options *opt, int argc, char **argv)
{
	(void)argc;
	memset(opt, 0, sizeof(*opt));
	opt->cpu = -1;
	parse_verb(opt, argv[1]);
	for (argv += 2; *argv; argv++) {
		if (opt->verb == VERB_SLOTS) {
			parse_slots_option(opt, &argv);
			continue;
		}
		if (!strcmp(*argv, "--")) {
			if (!argv[1])
				die("no command after --");
			opt->cmd = argv + 1;
			break;
		}
		if (opt->verb == VERB_TEXT) {
			parse_text_option(opt, &argv);
			continue;
		}
		if (parse_flag(opt, *argv) || parse_valued(opt, &argv))
			continue;
		if (**argv == '-')
			die("unknown option '%s' (see hwbp --help)", *argv);
		if (opt->spec)
			die("unexpected argument '%s' (a command to run follows --)", *argv);
		opt->spec = *argv;
	}
	if (opt->verb != VERB_SLOTS && opt->verb != VERB_TEXT)
		check(opt);
}
