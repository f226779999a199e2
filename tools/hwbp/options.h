/* SPDX-License-Identifier: GPL-2.0 */
/* Options of the verbs, with libsubcmd. */
#ifndef HWBP_OPTIONS_H
#define HWBP_OPTIONS_H

#include <subcmd/parse-options.h>

/* The last entries of each table of options */
#define OPTIONS_END \
	OPT_CALLBACK_NOOPT('h', "help", NULL, NULL, "print this help", options_help), \
	OPT_END()

/*
 * Parse the options in @options; the other arguments stay in @argv[0] to @argv[n - 1],
 * with "--" and the command behind it. Returns n. @usage ends with NULL; lines after an
 * empty string are printed for --help only. Exits with EXIT_HWBP if the command line is
 * invalid.
 */
int options_parse(int argc, const char **argv, const struct option *options,
		  const char *const *usage);

/*
 * Cut "--" and the command behind it off the arguments. Returns the command, ended by
 * NULL, or NULL if there is none; sets *@argc to the number of arguments left.
 */
char **options_cut_command(int *argc, const char **argv);

/*
 * Callbacks of options whose value is a uint64_t, pid_t, int or unsigned int. A process may
 * be given by its name.
 */
parse_opt_cb options_help;
parse_opt_cb options_count;
parse_opt_cb options_seconds;
parse_opt_cb options_pid;
parse_opt_cb options_cpu;
parse_opt_cb options_megabytes;

#define OPT_COUNT(s, l, v, a, h) \
	OPT_CALLBACK(s, l, check_vtype(v, uint64_t *), a, h, options_count)
#define OPT_SECONDS(s, l, v, h) \
	OPT_CALLBACK(s, l, check_vtype(v, uint64_t *), "SECONDS", h, options_seconds)
#define OPT_PID(s, l, v, h) \
	OPT_CALLBACK(s, l, check_vtype(v, pid_t *), "PID", h, options_pid)
#define OPT_CPU(s, l, v, h) \
	OPT_CALLBACK(s, l, check_vtype(v, int *), "CPU", h, options_cpu)
#define OPT_MEGABYTES(s, l, v, h) \
	OPT_CALLBACK(s, l, check_vtype(v, unsigned int *), "MB", h, options_megabytes)

#endif
