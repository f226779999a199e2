// SPDX-License-Identifier: GPL-2.0
/*
 * The command line.  Options, the place to watch and the command may come in
 * any order, except that the command is last and stands after "--".
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
"\n"
"Find out who touches a variable, with the debug registers of the processor.\n"
"\n"
"  watch   print each access as it comes and, at the end, the counts per place\n"
"  stat    only count the accesses\n"
"\n"
"'hwbp watch --help' and 'hwbp stat --help' say more.\n";

static const char usage_watch[] =
"usage: hwbp watch [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"\n"
"Print each access to PLACE as it comes: time in seconds since the start, name\n"
"and number of the thread, CPU, instruction, source line.  At the end (of the\n"
"program, of the limit, or on ^C) print the counts per instruction.\n"
"\n";

static const char usage_stat[] =
"usage: hwbp stat [OPTION...] PLACE { -p PID | -- COMMAND [ARG...] }\n"
"\n"
"Count the accesses to PLACE, without looking at them one by one: the program\n"
"runs faster than under 'hwbp watch'.  Accesses of child processes count, even\n"
"those to the same address in another program that they execute.\n"
"\n";

static const char usage_place[] =
"PLACE is SYMBOL[:LEN] or ADDRESS:LEN.  A SYMBOL is a variable or function of\n"
"the program or, failing that, of a library it is linked to; static ones count.\n"
"  counter           the whole variable, if the hardware has its length\n"
"  counter:4         its first four bytes\n"
"  table+0x20:8      eight bytes at an offset\n"
"  bank.teller[2].n  a member, if the program has debug information\n"
"  file.c:counter    the static variable of that source file\n"
"  libx.so:counter   the variable of that library or program\n"
"  0x404040:2        an address\n"
"The hardware has the lengths 1, 2, 4 and 8 and wants aligned addresses.\n"
"\n"
"  -w          writes (default)\n"
"  -rw         reads and writes\n"
"  -x          execution: PLACE is a function or an instruction\n"
"  -p PID      attach to all threads of a process; it runs on afterwards\n"
"  -t SECONDS  end after this time\n"
"  -o FILE     write the report to FILE instead of standard output\n"
"  -k          accesses made by the kernel, too (read(2) into a variable, say);\n"
"              needs CAP_PERFMON or a low kernel.perf_event_paranoid\n"
"  -h, --help  this text\n";

static const char usage_watch_options[] =
"  -n N        end after N hits\n"
"  -g          print the callers of each access, too\n"
"\n"
"The processor reports a read or write after it is done, by the address of the\n"
"next instruction.  hwbp goes one instruction back to name the one that made\n"
"the access.  Where it has no code to look at, it names the byte before the\n"
"reported address, which is the last byte of that instruction.  An access made\n"
"by a jump or call instruction itself is named by the function it goes to.\n";

static const char usage_status[] =
"\n"
"A limit or ^C ends the watch, not the program.  The exit status is that of the\n"
"COMMAND (128+N if signal N killed it); 0 with -p; 125 if hwbp itself failed;\n"
"126 or 127 if COMMAND cannot be run or found.\n";

static void usage(enum verb verb)
{
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
		die("%s wants a positive number, not '%s'", opt, arg);
	return n;
}

static uint64_t parse_seconds(const char *opt, const char *arg)
{
	double s;
	char *end;

	s = strtod(arg, &end);
	if (end == arg || *end || !isfinite(s) || s <= 0 || s > 1e9)
		die("%s wants a time in seconds, not '%s'", opt, arg);
	return (uint64_t)(s * 1e9);
}

static pid_t parse_pid(const char *opt, const char *arg)
{
	uint64_t n = parse_count(opt, arg);

	if (n > INT_MAX)
		die("no process %s", arg);
	return (pid_t)n;
}

/* Options with an argument: "-n 5" or "-n5". */
static const char *option_arg(char ***argp)
{
	const char *opt = **argp;

	if (opt[2])
		return opt + 2;
	if (!(*argp)[1] || !strcmp((*argp)[1], "--"))
		die("%s wants an argument", opt);
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
	else
		die("'%s' is neither watch nor stat (see hwbp --help)", arg);
}

static void check(const struct options *opt)
{
	const char *verb = opt->verb == VERB_WATCH ? "watch" : "stat";

	if (!opt->spec)
		die("what is to be watched? (see hwbp %s --help)", verb);
	if (opt->pid && opt->cmd)
		die("either -p PID or a command, not both");
	if (!opt->pid && !opt->cmd)
		die("in which program? Give -p PID, or -- and a command");
}

void options_parse(struct options *opt, int argc, char **argv)
{
	(void)argc;
	memset(opt, 0, sizeof(*opt));
	parse_verb(opt, argv[1]);
	for (argv += 2; *argv; argv++) {
		if (!strcmp(*argv, "--")) {
			if (!argv[1])
				die("there is no command after --");
			opt->cmd = argv + 1;
			break;
		}
		if (parse_flag(opt, *argv) || parse_valued(opt, &argv))
			continue;
		if (**argv == '-')
			die("unknown option '%s' (see hwbp --help)", *argv);
		if (opt->spec)
			die("'%s' is one argument too many (a command stands after --)", *argv);
		opt->spec = *argv;
	}
	check(opt);
}
