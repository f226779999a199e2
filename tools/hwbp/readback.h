/* SPDX-License-Identifier: GPL-2.0 */
/* Values of places where the kernel does not record them: read the memory after the hit. */
#ifndef HWBP_READBACK_H
#define HWBP_READBACK_H

#include "events.h"
#include "location.h"

struct readback;

/* Read what the places of a process are before the first hit. */
struct readback *readback_new(const struct location *locs, size_t nr, pid_t pid);

/*
 * Set the values of a hit: what the place is now, and what it was when this was called for
 * the hit before it. They are valid until the next call.
 */
void readback_fill(struct readback *rb, struct hit *hit);

#endif
