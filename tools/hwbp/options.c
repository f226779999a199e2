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
"       hwbp slots [-p PID] [--cpu N]\n"
"       hwbp text  [OPTION...] [-- COMMAND [ARG...]]\n"
"\n"
"Find out who touches a variable, with the debug registers of the processor.\n"
"\n"
"  watch   print each access as it comes and, at the end, the counts per place\n"
"  stat    only count the accesses\n"
"  slots   tell who holds the debug registers of the machine\n"
"  text    print each change of the kernel's own instructions\n"
"\n"
"'hwbp watch --help' and the like say more.\n";

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

static const char usage_slots[] =
"usage: hwbp slots [-p PID] [--cpu N]\n"
"\n"
"Tell who holds the debug registers of the machine, as root and with debugfs:\n"
"  - how many registers each CPU has\n"
"  - for each CPU, who claims registers of it for whatever runs there, and what\n"
"    its registers hold right now\n"
"  - for each task, its claims: on which CPU, what is watched, by whom\n"
"  - which CPUs and tasks are full\n"
"A guaranteed claim has a register of its own wherever it counts.  Flexible ones\n"
"have one between them, and take turns on what is left.  A task pays nothing for\n"
"the claims of another task.\n"
"\n"
"  -p PID      only this task or, if it is a process, all threads of it\n"
"  --cpu N     only this CPU, and the claims of tasks that count there\n"
"  -h, --help  this text\n"
"\n"
"The exit status is 0, or 125 if hwbp failed.\n";

static const char usage_text[] =
"usage: hwbp text [OPTION...] [-- COMMAND [ARG...]]\n"
"\n"
"Print each change of the text (the instructions) of the running kernel, while\n"
"COMMAND runs or until ^C, whoever makes it: time in seconds since the start,\n"
"CPU that made it, address, symbol, length, old bytes -> new bytes.  After that\n"
"time no CPU executes the old bytes any more.\n"
"\n"
"Where there was no text before it says 'new', where there is none any more\n"
"'gone'.  Text whose symbol appears or vanishes (BPF programs, copies made by\n"
"kprobes and ftrace) has a line without bytes for that.  Records that got lost\n"
"have a line of their own; with those the changes shown are not all.  Outside of\n"
"the kernel proper a symbol is looked up a moment later: what came and went at\n"
"once may have none, or that of what came after it.  At the end the counts per\n"
"symbol are printed.\n"
"\n"
"  -t SECONDS  end after this time\n"
"  -o FILE     write the report to FILE instead of standard output\n"
"  -a          all bytes of long changes, and all symbols among the counts\n"
"  --areas     whole areas of text, too: modules and BPF programs that are loaded\n"
"              and unloaded; takes CAP_PERFMON, and CAP_SYSLOG for those of BPF\n"
"  -q          the counts only\n"
"  -b MB       size of the buffer of each CPU (4, less where there are many\n"
"              CPUs), for when records get lost\n"
"  -h, --help  this text\n"
"\n"
"The CPUs that are online at the start are listened to.  One that comes online\n"
"later, or again, is not: changes that it makes are missing, and a note says so\n"
"at the end if it is online then.  Changes that hwbp itself causes by beginning\n"
"and ending to listen are made before the first line and after the last.\n"
"\n"
"That needs CAP_PERFMON or a kernel.perf_event_paranoid of 0 or less, and\n"
"/proc/kallsyms with its addresses for the symbols.  A limit or ^C ends the\n"
"report, not the COMMAND.  The exit status is that of the COMMAND (128+N if\n"
"signal N killed it); 0 without; 125 if hwbp itself failed; 126 or 127 if\n"
"COMMAND cannot be run or found.\n";

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

/* An option with a name and an argument: "--cpu 5" or "--cpu=5"; NULL if it is not that. */
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
		die("%s wants an argument", opt);
	return *++*argp;
}

static int parse_cpu(const char *arg)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n > INT_MAX)
		die("--cpu wants the number of a CPU, not '%s'", arg);
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
		/* For tests, not in the usage. */
		opt->from = value;
	else if (*arg == '-')
		die("unknown option '%s' (see hwbp slots --help)", arg);
	else
		die("'%s' is one argument too many (see hwbp slots --help)", arg);
}

static unsigned int parse_megabytes(const char *opt, const char *arg)
{
	uint64_t n = parse_count(opt, arg);

	if (n > 1024)
		die("%s wants at most 1024 MB, not '%s'", opt, arg);
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
		die("'%s' is one argument too many (a command stands after --)", arg);
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
		die("'%s' is neither watch, stat, slots nor text (see hwbp --help)", arg);
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
	opt->cpu = -1;
	parse_verb(opt, argv[1]);
	for (argv += 2; *argv; argv++) {
		if (opt->verb == VERB_SLOTS) {
			parse_slots_option(opt, &argv);
			continue;
		}
		if (!strcmp(*argv, "--")) {
			if (!argv[1])
				die("there is no command after --");
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
			die("'%s' is one argument too many (a command stands after --)", *argv);
		opt->spec = *argv;
	}
	if (opt->verb != VERB_SLOTS && opt->verb != VERB_TEXT)
		check(opt);
}
