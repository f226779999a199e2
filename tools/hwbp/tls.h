/* SPDX-License-Identifier: GPL-2.0 */
/* Thread-local variables. */
#ifndef HWBP_TLS_H
#define HWBP_TLS_H

#include "symbols.h"

/*
 * Address of the variable @sym of the thread @tid, which is stopped for a moment unless
 * hwbp traces it. Exits with a one-line message on failure.
 */
uint64_t tls_address(struct symbols *syms, const struct symbol *sym, pid_t tid);

#endif
