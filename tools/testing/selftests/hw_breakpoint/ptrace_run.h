/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tracee that executes single instructions. Behind each is one that raises SIGILL, which
 * ends a run.
 */
#ifndef PTRACE_RUN_H
#define PTRACE_RUN_H

#include "ptrace_tracee.h"

#define MAX_STOPS	5

/* What the debugger sees at a stop */
struct stop {
	int sig;
	int code;
	unsigned long addr;
	unsigned long dr6;
	unsigned long ip;
	unsigned long sp;
	unsigned long flags;
	unsigned long rax;
	unsigned long rcx;
	unsigned long pushed;
};

struct run {
	int nr;
	struct stop stop[MAX_STOPS];
};

static void record_stop(struct tracee *t, struct run *run, int sig)
{
	struct stop *stop = &run->stop[run->nr++];
	struct user_regs_struct regs;
	siginfo_t si = { };

	ptrace(PTRACE_GETREGS, t->pid, 0, &regs);
	ptrace(PTRACE_GETSIGINFO, t->pid, 0, &si);
	*stop = (struct stop) {
		.sig		= sig,
		.code		= si.si_code,
		.addr		= (unsigned long)si.si_addr,
		.dr6		= dr_peek(t, 6),
		.ip		= regs.rip,
		.sp		= regs.rsp,
		.flags		= regs.eflags,
		.rax		= regs.rax,
		.rcx		= regs.rcx,
		.pushed		= ptrace(PTRACE_PEEKDATA, t->pid, (__u64 *)regs.rsp, 0),
	};
}

/* The registers that an instruction uses */
struct operands {
	const void *rsp;
	const void *rdi;
	unsigned long rax;
	unsigned long rcx;
};

/* Executes the instruction with @request, and then continues to the SIGILL behind it. */
static struct run run_insn(struct tracee *t, const char *insn, struct operands ops, int request)
{
	struct user_regs_struct regs;
	struct run run = { };
	int sig;

	ptrace(PTRACE_GETREGS, t->pid, 0, &regs);
	regs.orig_rax = -1;
	regs.rip = (unsigned long)insn;
	regs.rsp = (unsigned long)ops.rsp;
	regs.rdi = (unsigned long)ops.rdi;
	regs.rax = ops.rax;
	regs.rcx = ops.rcx;
	regs.eflags = 0x202;
	ptrace(PTRACE_SETREGS, t->pid, 0, &regs);
	do {
		sig = tracee_resume(t, request, 0);
		if (sig < 0)
			break;
		record_stop(t, &run, sig);
		request = PTRACE_CONT;
	} while (sig != SIGILL && run.nr < MAX_STOPS);

	return run;
}

/* Forks a child that stops, and is traced, in SETUP of a fixture. */
static bool run_spawn(struct tracee *t)
{
	*t = (struct tracee) { .fd = -1 };
	fflush(NULL);
	t->pid = fork();
	if (!t->pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		tracee_stop();
		_exit(1);
	}

	return t->pid > 0 && waitpid(t->pid, &t->status, 0) == t->pid && WIFSTOPPED(t->status) &&
	       !ptrace(PTRACE_SETOPTIONS, t->pid, 0, PTRACE_O_EXITKILL);
}

#endif /* PTRACE_RUN_H */
