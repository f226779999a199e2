/* SPDX-License-Identifier: GPL-2.0 */
/* Output of 'hwbp slots'. */
#ifndef HWBP_SLOTS_REPORT_H
#define HWBP_SLOTS_REPORT_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * struct slots_options - what the user asked for
 * @pid: task or process to show, 0 for all
 * @cpu: CPU to show, -1 for all
 * @json: print JSON
 * @from: file to read, NULL for the one in debugfs
 */
struct slots_options {
	pid_t pid;
	int cpu;
	bool json;
	const char *from;
};

/* Print claims and registers. Exits with a one-line message on failure. */
void slots_report(const struct slots_options *opt);

#endif
