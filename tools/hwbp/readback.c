// SPDX-License-Identifier: GPL-2.0
/* Values of places where the kernel does not record them: read the memory after the hit. */
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <string.h>
#include <sys/uio.h>

#include "readback.h"
#include "util.h"

/**
 * struct last - what a place was when it was last read
 * @pid: process whose memory it is
 * @known: it could be read
 * @bytes: its bytes
 */
struct last {
	pid_t pid;
	bool known;
	uint8_t bytes[HW_BREAKPOINT_VALUE_MAX];
};

struct readback {
	const struct location *locs;
	struct last *last;
	struct last before;
};

static void read_place(struct last *last, const struct location *loc, pid_t pid)
{
	struct iovec local = { .iov_base = last->bytes, .iov_len = loc->len };
	struct iovec remote = { .iov_base = (void *)loc->address, .iov_len = loc->len };

	last->pid = pid;
	last->known = process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)loc->len;
}

struct readback *readback_new(const struct location *locs, size_t nr, pid_t pid)
{
	struct readback *rb = xzalloc(sizeof(*rb));
	size_t i;

	rb->locs = locs;
	rb->last = xzalloc(nr * sizeof(*rb->last));
	for (i = 0; i < nr; i++)
		read_place(&rb->last[i], &locs[i], pid);
	return rb;
}

void readback_fill(struct readback *rb, struct hit *hit)
{
	struct last *last = &rb->last[hit->loc];

	rb->before = *last;
	read_place(last, &rb->locs[hit->loc], hit->pid);
	hit->before = rb->before.known && rb->before.pid == hit->pid ? rb->before.bytes : NULL;
	hit->after = last->known ? last->bytes : NULL;
}
