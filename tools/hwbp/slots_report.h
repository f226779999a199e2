/* SPDX-License-Identifier: GPL-2.0 */
/* What the user sees of the kernel's account: who holds which registers. */
#ifndef HWBP_SLOTS_REPORT_H
#define HWBP_SLOTS_REPORT_H

#include "options.h"

/* Print all of it; dies with one line if there is nothing to read. */
void slots_report(const struct options *opt);

#endif
