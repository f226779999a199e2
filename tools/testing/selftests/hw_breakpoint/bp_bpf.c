// SPDX-License-Identifier: GPL-2.0
/* Loading and attaching BPF programs: see bp_bpf.h. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bp_bpf.h"

int sys_bpf(int cmd, union bpf_attr *attr)
{
	long ret = syscall(__NR_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

int bpf_load(int type, const struct bpf_insn *insn, int nr)
{
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (unsigned long)insn,
		.insn_cnt = nr,
		.license = (unsigned long)"GPL",
	};

	return sys_bpf(BPF_PROG_LOAD, &attr);
}

int bpf_attach(int prog, int event, __u64 cookie)
{
	union bpf_attr attr = { };

	attr.link_create.prog_fd = prog;
	attr.link_create.target_fd = event;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	attr.link_create.perf_event.bpf_cookie = cookie;
	return sys_bpf(BPF_LINK_CREATE, &attr);
}
