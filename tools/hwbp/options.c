// SPDX-License-Identifier: GPL-2.0
/*
 * Options of the verbs, with libsubcmd.
 *
 * libsubcmd exits with 129 after an error and after printing help.  As exit status of
 * hwbp, 129 means that the program was killed by signal 1, so the status is replaced
 * while options are parsed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "tasks.h"
#include "util.h"

/* Options that are being parsed, for options_help() and replace_status() */
static const struct option *parsed;
static const char *const *parsed_usage;
static int exit_status;

static void replace_status(int status, void *arg)
{
	(void)status;
	(void)arg;
	if (!parsed)
		return;
	fflush(NULL);
	_exit(exit_status);
}

static size_t nr_usage_lines(const char *const *usage)
{
	size_t nr = 0;

	while (usage[nr] && *usage[nr])
		nr++;
	return nr;
}

int options_parse(int argc, const char **argv, const struct option *options,
		  const char *const *usage)
{
	size_t nr = nr_usage_lines(usage);
	const char **brief = xzalloc((nr + 1) * sizeof(*brief));

	memcpy(brief, usage, nr * sizeof(*brief));
	parsed = options;
	parsed_usage = usage;
	exit_status = EXIT_HWBP;
	on_exit(replace_status, NULL);
	/* libsubcmd exits after --list-opts, too, which the completion for bash uses. */
	if (argv[1] && !strcmp(argv[1], "--list-opts"))
		exit_status = 0;
	argc = parse_options(argc, argv, options, brief,
			     PARSE_OPT_KEEP_DASHDASH | PARSE_OPT_NO_INTERNAL_HELP);
	parsed = NULL;
	free(brief);
	return argc;
}

int options_help(const struct option *opt, const char *arg, int unset)
{
	(void)opt;
	(void)arg;
	(void)unset;
	/* libsubcmd prints to stderr. */
	fflush(stdout);
	dup2(STDOUT_FILENO, STDERR_FILENO);
	exit_status = 0;
	usage_with_options(parsed_usage, parsed);
}

char **options_cut_command(int *argc, const char **argv)
{
	int i;

	for (i = 0; i < *argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (!argv[i + 1])
			die("no command after --");
		*argc = i;
		argv[i] = NULL;
		return (char **)argv + i + 1;
	}
	return NULL;
}

/* ---- values ---- */

static char *option_name(const struct option *opt)
{
	return opt->short_name ? xasprintf("-%c", opt->short_name) :
				 xasprintf("--%s", opt->long_name);
}

static uint64_t parse_count(const struct option *opt, const char *arg)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || !n)
		die("invalid argument of %s: '%s' is not a positive number", option_name(opt),
		    arg);
	return n;
}

int options_count(const struct option *opt, const char *arg, int unset)
{
	*(uint64_t *)opt->value = unset ? 0 : parse_count(opt, arg);
	return 0;
}

int options_seconds(const struct option *opt, const char *arg, int unset)
{
	char *end;
	double s;

	s = unset ? 0 : strtod(arg, &end);
	if (!unset && (end == arg || *end || !isfinite(s) || s <= 0 || s > 1e9))
		die("invalid argument of %s: '%s' is not a time in seconds", option_name(opt),
		    arg);
	*(uint64_t *)opt->value = s * 1e9;
	return 0;
}

int options_pid(const struct option *opt, const char *arg, int unset)
{
	uint64_t n;

	if (!unset && *arg && arg[strspn(arg, "0123456789")] && *arg != '-') {
		*(pid_t *)opt->value = tasks_find_process(arg);
		return 0;
	}
	n = unset ? 0 : parse_count(opt, arg);
	if (n > INT_MAX)
		die("no such process: %s", arg);
	*(pid_t *)opt->value = n;
	return 0;
}

int options_cpu(const struct option *opt, const char *arg, int unset)
{
	unsigned long n;
	char *end;

	*(int *)opt->value = -1;
	if (unset)
		return 0;
	errno = 0;
	n = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || n > INT_MAX)
		die("invalid argument of %s: '%s' is not a CPU number", option_name(opt), arg);
	*(int *)opt->value = n;
	return 0;
}

int options_megabytes(const struct option *opt, const char *arg, int unset)
{
	uint64_t n = unset ? 0 : parse_count(opt, arg);

	if (n > 1024)
		die("invalid argument of %s: %s MB is more than 1024", option_name(opt), arg);
	*(unsigned int *)opt->value = n;
	return 0;
}
