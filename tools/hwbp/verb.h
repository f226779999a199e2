/* SPDX-License-Identifier: GPL-2.0 */
/* The verbs of hwbp. verbs.h lists them; each has a file verb_NAME.c. */
#ifndef HWBP_VERB_H
#define HWBP_VERB_H

/**
 * struct verb - a verb
 * @name: word on the command line
 * @summary: one line for 'hwbp --help'
 * @run: parse the arguments, @argv[0] being the verb, and do it; returns the exit
 *	 status
 */
struct verb {
	const char *name;
	const char *summary;
	int (*run)(int argc, const char **argv);
};

#endif
