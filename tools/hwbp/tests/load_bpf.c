// SPDX-License-Identifier: GPL-2.0
/*
 * Load a BPF program that does nothing, and unload it at end of file on standard
 * input. The kernel compiles it, so text is added and removed.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	/* r0 = 0; exit */
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static const char name[] = "hwbp_nothing";
	union bpf_attr attr;
	char c;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(*program);
	attr.license = (uintptr_t)"GPL";
	memcpy(attr.prog_name, name, sizeof(name));
	if (syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)) < 0) {
		printf("cannot load: %s\n", strerror(errno));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
