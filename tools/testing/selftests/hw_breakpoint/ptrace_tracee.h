/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tracee that executes one action at a time, and the debug registers that ptrace
 * shows of it.
 *
 * Tracer and tracee map one memory file at the same low address, so that a 32-bit
 * tracer can use the same addresses as a 64-bit tracee, and the other way round:
 *
 *	page 0	the action, and its result
 *	page 1	the data that is watched
 *	page 2	functions of the tracee's own instruction set: each adds one to
 *		the byte that its argument points to
 *
 * The tracee stops itself with SIGSTOP, executes the action in page 0 when it is
 * resumed, and stops again. All traps in between belong to that action. A fork child
 * and a thread of the tracee run the same loop.
 */
#ifndef PTRACE_TRACEE_H
#define PTRACE_TRACEE_H

#include <limits.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "bp_test.h"

#ifndef TRAP_BRKPT
#define TRAP_BRKPT		1
#endif
#ifndef TRAP_TRACE
#define TRAP_TRACE		2
#endif
#ifndef TRAP_HWBKPT
#define TRAP_HWBKPT		4
#endif

/* The value of DR6 with no bit set */
#define DR6_CLEAN		0xffff0ff0UL
#define DR6_STEP		0x4000UL
#define DR6_HITS		0xfUL

enum dr7_rw { RW_X = 0, RW_W = 1, RW_IO = 2, RW_RW = 3 };

#define DR7_L(n)		(1UL << (2 * (n)))
#define DR7_G(n)		(2UL << (2 * (n)))
#define DR7_LE			0x100UL
#define DR7_FIELD(n, rw, code)	(((unsigned long)(rw) | (code) << 2) << (16 + 4 * (n)))

/* The fields of DR7 for an access of @len bytes, of register @n */
unsigned long dr7_field(int n, enum dr7_rw rw, int len);

/* DR7 with only register @n enabled */
unsigned long dr7_on(int n, enum dr7_rw rw, int len);

/* ------------------------------------------------------------ the shared pages */

/* Above the highest start of a heap, 1 GiB, and below the limit of 32-bit programs */
#define SHARED_BASE		0x50000000UL
#define SHARED_PAGE		4096UL
#define DATA(off)		(SHARED_BASE + SHARED_PAGE + (off))
#define CODE(n)			(SHARED_BASE + 2 * SHARED_PAGE + 16 * (n))

/* Length of the first instruction of a function */
#define CODE_STEP		2

enum tracee_op {
	OP_NONE,
	OP_STORE,
	OP_LOAD,
	OP_CALL,
	/* Let the kernel write 4 bytes. */
	OP_SYSCALL,
	/* Store with SIGTRAP blocked. */
	OP_STORE_BLOCKED,
	/* Store @count times, and yield the CPU each time. */
	OP_STORE_OFTEN,
	/* Store with a SIGTRAP handler, then sleep until released. */
	OP_STORE_ALONE,
	OP_FORK,
	OP_VFORK,
	OP_THREAD,
	OP_EXEC,
	OP_EXIT,
};

/* The layout is the same for 32-bit and 64-bit programs. */
struct shared {
	__u32 op;
	__u32 len;
	__u32 count;
	__s32 result;
	__u64 addr;
	__u64 sig_addr;
	__s32 sig_count;
	__s32 sig_code;
	__u32 go;
	__s32 fd;
	__u8 calls[16];
	char path[PATH_MAX / 2];
};

/* ----------------------------------------------------------- the tracee's side */

void tracee_stop(void);

/*
 * A test program calls this first: it may be the program that the tracee of another
 * test executes with OP_EXEC. Does not return in this case.
 */
void tracee_main(int argc, char **argv);

/* ----------------------------------------------------------- the tracer's side */

/**
 * struct tracee - a stopped task and the results of its last action
 * @pid:	the task
 * @fd:		the shared memory, -1 if this task does not own it
 * @sh:		page 0
 * @status:	last result of waitpid()
 * @event_msg:	PTRACE_GETEVENTMSG at the last event
 * @dr6:	DR6 at the last trap
 * @ip:		instruction pointer at the last trap
 * @si:		siginfo of the last trap
 */
struct tracee {
	pid_t pid;
	int fd;
	struct shared *sh;
	int status;
	unsigned long event_msg;
	unsigned long dr6;
	unsigned long ip;
	siginfo_t si;
};

int dr_poke(struct tracee *t, int n, unsigned long value);
unsigned long dr_peek(struct tracee *t, int n);

/* Writes the address first, then DR7, as most debuggers do. */
int dr_set(struct tracee *t, int n, unsigned long addr, unsigned long dr7);

/* Resume with @request and wait for the next stop. Returns its signal. */
int tracee_resume(struct tracee *t, int request, int sig);

int tracee_event(struct tracee *t);

/* Runs the action to its end. Returns the number of traps. */
int tracee_finish(struct tracee *t);

void tracee_order(struct tracee *t, enum tracee_op op, unsigned long addr, int len);
int tracee_do(struct tracee *t, enum tracee_op op, unsigned long addr, int len);

/* Resumes into an action that ends in a stop of its own, and leaves the task there. */
int tracee_begin(struct tracee *t, enum tracee_op op, unsigned long addr, int len);

#define do_store(t, addr, len)	tracee_do(t, OP_STORE, addr, len)
#define do_load(t, addr, len)	tracee_do(t, OP_LOAD, addr, len)
#define do_call(t, n)		tracee_do(t, OP_CALL, CODE(n), 0)

/* --------------------------------------------------- begin and end of a tracee */

#define TRACE_OPTIONS		(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | \
				 PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

int tracee_spawn(struct tracee *t, bool unprivileged);
void tracee_kill(struct tracee *t);

/* Lets the tracee execute the test program @name in the directory of this program. */
int tracee_become(struct tracee *t, const char *name);

/* The data at the tracer's address */
__u8 *tracee_data(struct tracee *t, unsigned long addr);

/*
 * Executes @op, which creates a new task: leaves both stopped, the new task before its
 * first instruction.
 */
int tracee_split(struct tracee *t, enum tracee_op op, struct tracee *new);

/* ------------------------------------- perf breakpoints beside those of ptrace */

/* Opens a counting breakpoint on writes to the 4 bytes at @addr. */
int tracee_watch(pid_t pid, int cpu, unsigned long addr);

/*
 * The postcondition of each test: no task has a claim left. A request for a CPU is
 * checked against the task with the most claims, so it also finds the claim of a task
 * that has exited. A test that may not open breakpoints for a CPU checks a new child
 * instead.
 */
bool all_slots_are_free(void);

#endif /* PTRACE_TRACEE_H */
