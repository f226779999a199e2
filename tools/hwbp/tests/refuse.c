// SPDX-License-Identifier: GPL-2.0
/*
 * refuse SYSCALL ERRNO COMMAND [ARG...]: run a command with a seccomp filter that lets
 * a system call fail, as container runtimes do. SYSCALL is perf_event_open, pidfd_open
 * or ptrace, ERRNO a number.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refuse(unsigned int nr, unsigned int err)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		perror("refuse");
		exit(125);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 125;
	refuse(!strcmp(argv[1], "pidfd_open") ? SYS_pidfd_open :
	       !strcmp(argv[1], "ptrace") ? SYS_ptrace : SYS_perf_event_open, atoi(argv[2]));
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
