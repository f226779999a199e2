/* SPDX-License-Identifier: GPL-2.0 */
/* Loading and attaching BPF programs, for tests. Without libbpf: the tests are static. */
#ifndef BP_BPF_H
#define BP_BPF_H

#include <linux/bpf.h>

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

#define MOV(reg, value)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define EXIT()		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* bpf(2). Returns a negative errno if it fails. */
int sys_bpf(int cmd, union bpf_attr *attr);

/* Loads a program of a BPF_PROG_TYPE_*. Returns its file descriptor or a negative errno. */
int bpf_load(int type, const struct bpf_insn *insn, int nr);

/*
 * Attaches a program to a perf event until the link is closed. Returns the link's file
 * descriptor or a negative errno.
 */
int bpf_attach(int prog, int event, __u64 cookie);

#endif
