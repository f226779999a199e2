/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tracee that does one thing at a time, and the debug registers that ptrace
 * shows of it.
 *
 * Tracer and tracee map one memory file at the same low address, so that a
 * 32-bit tracer reaches a 64-bit tracee and the other way round:
 *
 *	page 0	what to do, and what came of it
 *	page 1	the data that is watched
 *	page 2	functions of the tracee's own instruction set: each adds one to
 *		the byte that its argument points to
 *
 * The tracee stops itself with SIGSTOP, does what page 0 says as soon as it is
 * resumed, and stops again. All traps in between belong to that one action. A
 * fork child and a thread of the tracee fall into the same loop.
 */
#ifndef _HW_BREAKPOINT_PTRACE_TRACEE_H
#define _HW_BREAKPOINT_PTRACE_TRACEE_H

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#ifndef TRAP_TRACE
#define TRAP_TRACE		2
#endif
#ifndef TRAP_HWBKPT
#define TRAP_HWBKPT		4
#endif

#define NR_DR			4
#define NOBODY			65534

/* DR6 as it is read when no bit is set. */
#define DR6_CLEAN		0xffff0ff0UL
#define DR6_STEP		0x4000UL
#define DR6_HITS		0xfUL

enum dr7_rw { RW_X = 0, RW_W = 1, RW_IO = 2, RW_RW = 3 };

#define DR7_L(n)		(1UL << (2 * (n)))
#define DR7_G(n)		(2UL << (2 * (n)))
#define DR7_LE			0x100UL
#define DR7_FIELD(n, rw, code)	(((unsigned long)(rw) | (code) << 2) << (16 + 4 * (n)))

/* The field of register @n for an access of @len bytes. */
static inline unsigned long dr7_field(int n, enum dr7_rw rw, int len)
{
	static const unsigned long code[] = { [1] = 0, [2] = 1, [4] = 3, [8] = 2 };

	return DR7_FIELD(n, rw, code[len]);
}

/* DR7 with register @n enabled, and nothing else. */
static inline unsigned long dr7_on(int n, enum dr7_rw rw, int len)
{
	return DR7_L(n) | dr7_field(n, rw, len);
}

/* ---- The shared pages ---- */

/* Between where a heap can begin, up to 1 GiB, and what 32 bits can map */
#define SHARED_BASE		0x50000000UL
#define SHARED_PAGE		4096UL
#define SHARED_SIZE		(3 * SHARED_PAGE)
#define DATA(off)		(SHARED_BASE + SHARED_PAGE + (off))
#define CODE(n)			(SHARED_BASE + 2 * SHARED_PAGE + 16 * (n))
/* How far the first instruction of a function reaches. */
#define CODE_STEP		2

enum tracee_op {
	OP_NONE,
	OP_STORE,
	OP_LOAD,
	OP_CALL,
	/* Have the kernel write 4 bytes. */
	OP_SYSCALL,
	/* Store with SIGTRAP blocked. */
	OP_STORE_BLOCKED,
	/* Store @count times, giving up the CPU each time. */
	OP_STORE_OFTEN,
	/* Store with a SIGTRAP handler of one's own, then sleep until let go. */
	OP_STORE_ALONE,
	OP_FORK,
	OP_VFORK,
	OP_THREAD,
	OP_EXEC,
	OP_EXIT,
};

/* Laid out alike for 32-bit and 64-bit programs. */
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

/* ---- The tracee's side ---- */

#define SHARED			((struct shared *)SHARED_BASE)

#ifdef __i386__
#define CODE_CALL		__attribute__((regparm(1)))
#else
#define CODE_CALL
#endif

static __u64 tracee_stack[512];

static void tracee_loop(void);

/* incb (first argument); nop; ret */
static void tracee_write_code(void)
{
#ifdef __i386__
	static const __u8 insns[] = { 0xfe, 0x00, 0x90, 0xc3 };
#else
	static const __u8 insns[] = { 0xfe, 0x07, 0x90, 0xc3 };
#endif
	int i;

	for (i = 0; i < 8; i++)
		memcpy((void *)CODE(i), insns, sizeof(insns));
}

static void tracee_call(unsigned long code)
{
	CODE_CALL void (*fn)(__u8 *) = (void *)code;

	fn(&SHARED->calls[(code - CODE(0)) / 16]);
}

static void tracee_store(void *p, int len)
{
	static __u64 value = 0x5a5a5a5a5a5a5a5aULL;

	switch (len) {
	case 1:
		asm volatile("movb %b1, %0" : "=m" (*(__u8 *)p) : "q" ((__u8)value));
		break;
	case 2:
		asm volatile("movw %w1, %0" : "=m" (*(__u16 *)p) : "r" ((__u16)value));
		break;
	case 4:
		asm volatile("movl %1, %0" : "=m" (*(__u32 *)p) : "r" ((__u32)value));
		break;
	case 8:
#ifdef __i386__
		asm volatile("fildll %1\n\tfistpll %0" : "=m" (*(__u64 *)p) : "m" (value));
#else
		asm volatile("movq %1, %0" : "=m" (*(__u64 *)p) : "r" (value));
#endif
		break;
	}
}

static void tracee_load(void *p, int len)
{
	__u32 value;

	switch (len) {
	case 1:
		asm volatile("movzbl %1, %0" : "=r" (value) : "m" (*(__u8 *)p));
		break;
	case 2:
		asm volatile("movzwl %1, %0" : "=r" (value) : "m" (*(__u16 *)p));
		break;
	default:
		asm volatile("movl %1, %0" : "=r" (value) : "m" (*(__u32 *)p));
		break;
	}
}

static void tracee_stop(void)
{
	syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGSTOP);
}

/* A breakpoint on the called function is hit in the handler, too. */
static void tracee_on_usr1(int sig)
{
	(void)sig;
	tracee_call(CODE(0));
}

static void tracee_on_trap(int sig, siginfo_t *info, void *ucontext)
{
	struct shared *sh = SHARED;

	(void)sig;
	(void)ucontext;
	sh->sig_code = info->si_code;
	sh->sig_addr = (uintptr_t)info->si_addr;
	sh->sig_count++;
}

static void tracee_store_blocked(struct shared *sh)
{
	sigset_t set, now;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tracee_store((void *)(uintptr_t)sh->addr, sh->len);
	sigprocmask(SIG_UNBLOCK, &set, &now);
	sh->result = sigismember(&now, SIGTRAP);
}

static void tracee_store_often(struct shared *sh)
{
	__u32 i;

	for (i = 0; i < sh->count; i++) {
		if (sh->addr)
			tracee_store((void *)(uintptr_t)sh->addr, sh->len);
		sched_yield();
	}
}

static void tracee_store_alone(struct shared *sh)
{
	static const struct timespec nap = { .tv_nsec = 1000000 };
	struct sigaction sa = {
		.sa_sigaction = tracee_on_trap,
		.sa_flags = SA_SIGINFO,
	};

	if (sh->count)
		sigaction(SIGTRAP, &sa, NULL);
	while (sh->go == 0)
		nanosleep(&nap, NULL);
	tracee_store((void *)(uintptr_t)sh->addr, sh->len);
	sh->result = 1;
	while (sh->go == 1)
		nanosleep(&nap, NULL);
}

static int tracee_thread(void *unused)
{
	(void)unused;
	tracee_loop();
	return 0;
}

static int tracee_clone(int flags)
{
	return clone(tracee_thread, tracee_stack + 512, flags, NULL);
}

static void tracee_exec(struct shared *sh)
{
	char path[sizeof(sh->path)];
	char fd[16];

	snprintf(path, sizeof(path), "%s", sh->path);
	snprintf(fd, sizeof(fd), "%d", sh->fd);
	execl(path, path, "--tracee", fd, NULL);
	sh->result = -errno;
}

static void tracee_act(struct shared *sh)
{
	switch (sh->op) {
	case OP_STORE:
		tracee_store((void *)(uintptr_t)sh->addr, sh->len);
		break;
	case OP_LOAD:
		tracee_load((void *)(uintptr_t)sh->addr, sh->len);
		break;
	case OP_CALL:
		tracee_call(sh->addr);
		break;
	case OP_SYSCALL:
		sh->result = syscall(SYS_getcpu, (uintptr_t)sh->addr, NULL, NULL);
		break;
	case OP_STORE_BLOCKED:
		tracee_store_blocked(sh);
		break;
	case OP_STORE_OFTEN:
		tracee_store_often(sh);
		break;
	case OP_STORE_ALONE:
		tracee_store_alone(sh);
		break;
	case OP_FORK:
		sh->result = fork() < 0 ? -errno : 0;
		break;
	case OP_VFORK:
		sh->result = tracee_clone(CLONE_VM | CLONE_VFORK | SIGCHLD) < 0 ? -errno : 0;
		break;
	case OP_THREAD:
		sh->result = tracee_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
					  CLONE_THREAD | CLONE_SYSVSEM) < 0 ? -errno : 0;
		break;
	case OP_EXEC:
		tracee_exec(sh);
		break;
	case OP_EXIT:
		syscall(SYS_exit, 0);
		break;
	}
}

static void tracee_loop(void)
{
	for (;;) {
		tracee_stop();
		tracee_act(SHARED);
	}
}

static struct shared *shared_map(int fd)
{
	void *p = mmap((void *)SHARED_BASE, SHARED_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	return p == (void *)SHARED_BASE ? p : NULL;
}

static void tracee_start(void)
{
	signal(SIGUSR1, tracee_on_usr1);
	tracee_write_code();
	tracee_loop();
}

/*
 * A test program begins with this: it may be the image that the tracee of another
 * one asked for with OP_EXEC. Does not return then.
 */
static void tracee_main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--tracee"))
		return;
	if (!shared_map(atoi(argv[2])))
		exit(1);
	tracee_start();
}

/* ---- The tracer's side ---- */

/* More traps in one action than any test provokes: the tracee is in a loop. */
#define MAX_TRAPS		64

/**
 * struct tracee - a stopped task and what its last action brought
 * @pid:	the task
 * @fd:		the shared memory, -1 if this is not the owner
 * @sh:		page 0
 * @status:	as waitpid() gave it last
 * @event_msg:	PTRACE_GETEVENTMSG at the last event
 * @dr6:	DR6 as read at the last trap
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

static inline int dr_poke(struct tracee *t, int n, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, t->pid, offsetof(struct user, u_debugreg[n]), value) ?
		-errno : 0;
}

static inline unsigned long dr_peek(struct tracee *t, int n)
{
	return ptrace(PTRACE_PEEKUSER, t->pid, offsetof(struct user, u_debugreg[n]), 0);
}

/* Address first, then control, as most debuggers do. */
static inline int dr_set(struct tracee *t, int n, unsigned long addr, unsigned long dr7)
{
	int err = dr_poke(t, n, addr);

	return err ?: dr_poke(t, 7, dr7);
}

static inline unsigned long tracee_ip(struct tracee *t)
{
	struct user_regs_struct regs;

	memset(&regs, 0, sizeof(regs));
	ptrace(PTRACE_GETREGS, t->pid, 0, &regs);
#ifdef __i386__
	return regs.eip;
#else
	return regs.rip;
#endif
}

/* Resume with @request and wait for the next stop. Returns its signal. */
static inline int tracee_resume(struct tracee *t, int request, int sig)
{
	if (ptrace(request, t->pid, 0, sig))
		return -errno;
	if (waitpid(t->pid, &t->status, __WALL) != t->pid)
		return -errno;
	if (!WIFSTOPPED(t->status))
		return -ESRCH;
	if (t->status >> 16) {
		ptrace(PTRACE_GETEVENTMSG, t->pid, 0, &t->event_msg);
		return WSTOPSIG(t->status);
	}
	if (WSTOPSIG(t->status) == SIGTRAP) {
		t->dr6 = dr_peek(t, 6);
		t->ip = tracee_ip(t);
		memset(&t->si, 0, sizeof(t->si));
		ptrace(PTRACE_GETSIGINFO, t->pid, 0, &t->si);
	}
	return WSTOPSIG(t->status);
}

static inline int tracee_event(struct tracee *t)
{
	return t->status >> 16;
}

/* Let the action come to its end. Returns the number of traps on the way. */
static inline int tracee_finish(struct tracee *t)
{
	int sig, traps = 0;

	for (;;) {
		sig = tracee_resume(t, PTRACE_CONT, 0);
		if (sig < 0)
			return sig;
		if (tracee_event(t) || sig == SIGCHLD)
			continue;
		if (sig == SIGSTOP)
			return traps;
		if (sig != SIGTRAP || ++traps > MAX_TRAPS)
			return -ELOOP;
	}
}

static inline void tracee_order(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	t->sh->op = op;
	t->sh->addr = addr;
	t->sh->len = len;
	t->sh->result = 0;
}

static inline int tracee_do(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	tracee_order(t, op, addr, len);
	return tracee_finish(t);
}

/* Resume into an action that ends in a stop of its own, and stay there. */
static inline int tracee_begin(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	tracee_order(t, op, addr, len);
	return tracee_resume(t, PTRACE_CONT, 0);
}

#define do_store(t, addr, len)	tracee_do(t, OP_STORE, addr, len)
#define do_load(t, addr, len)	tracee_do(t, OP_LOAD, addr, len)
#define do_call(t, n)		tracee_do(t, OP_CALL, CODE(n), 0)

/* ---- Begin and end of a tracee ---- */

#define TRACE_OPTIONS		(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | \
				 PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

static inline int drop_root(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY);
}

static inline int tracee_spawn(struct tracee *t, bool unprivileged)
{
	memset(t, 0, sizeof(*t));
	t->fd = memfd_create("hw_breakpoint", 0);
	if (t->fd < 0)
		return -errno;
	fflush(NULL);
	t->pid = fork();
	if (t->pid < 0)
		return -errno;
	if (!t->pid) {
		if (ftruncate(t->fd, SHARED_SIZE) || !shared_map(t->fd))
			_exit(1);
		if (unprivileged && drop_root())
			_exit(2);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(3);
		SHARED->fd = t->fd;
		tracee_start();
	}
	if (waitpid(t->pid, &t->status, 0) != t->pid || !WIFSTOPPED(t->status))
		return -ECHILD;
	/* The tracer looks at this wherever it fits: only the tracee's address matters. */
	t->sh = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
	if (t->sh == MAP_FAILED)
		return -errno;
	return ptrace(PTRACE_SETOPTIONS, t->pid, 0, TRACE_OPTIONS) ? -errno : 0;
}

static inline void tracee_kill(struct tracee *t)
{
	if (!t->pid)
		return;
	kill(t->pid, SIGKILL);
	/* A task that is stopped in its exit does not hear SIGKILL any more. */
	ptrace(PTRACE_CONT, t->pid, 0, 0);
	while (waitpid(t->pid, &t->status, __WALL) == t->pid && WIFSTOPPED(t->status))
		ptrace(PTRACE_CONT, t->pid, 0, SIGKILL);
	t->pid = 0;
	if (t->fd >= 0) {
		munmap(t->sh, SHARED_SIZE);
		close(t->fd);
		t->fd = -1;
	}
}

/* Have the tracee execute the test program @name from our own directory. */
static inline int tracee_become(struct tracee *t, const char *name)
{
	char self[PATH_MAX / 2 - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	if (name)
		snprintf(t->sh->path, sizeof(t->sh->path), "%s/%s", dirname(self), name);
	else
		snprintf(t->sh->path, sizeof(t->sh->path), "%s", self);
	if (tracee_begin(t, OP_EXEC, 0, 0) != SIGTRAP)
		return t->sh->result ?: -ESRCH;
	return tracee_event(t) == PTRACE_EVENT_EXEC ? 0 : -EPROTO;
}

/* Data as the tracer sees it. */
static inline __u8 *tracee_data(struct tracee *t, unsigned long addr)
{
	return (__u8 *)t->sh + (addr - SHARED_BASE);
}

/*
 * A new task that @op makes out of @t: both are left stopped, the new one before
 * it has run a single instruction.
 */
static inline int tracee_split(struct tracee *t, enum tracee_op op, struct tracee *new)
{
	if (tracee_begin(t, op, 0, 0) != SIGTRAP || !tracee_event(t))
		return -EPROTO;
	*new = (struct tracee) { .pid = t->event_msg, .fd = -1, .sh = t->sh };
	if (waitpid(new->pid, &new->status, __WALL) != new->pid || !WIFSTOPPED(new->status))
		return -ECHILD;
	return 0;
}

/* ---- perf breakpoints beside those of ptrace ---- */

static inline int bp_open(pid_t pid, int cpu, unsigned long addr)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = addr,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);

	return fd < 0 ? -errno : fd;
}

static inline long bp_count(int fd)
{
	__u64 count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? (long)count : -1;
}

/*
 * perf patches the scheduler when the first event of a task comes and when the
 * last one has gone. That is no subject here, and some emulators now and then
 * trip over code that changes while it runs: have one event that is always there.
 */
static inline void perf_keep_scheduler_patched(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	/* The tests are as true without it. */
	syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* How many more breakpoints fit, or the error that was not ENOSPC. */
static inline int bp_room(pid_t pid, int cpu)
{
	int fd[2 * NR_DR], err = -ENOSPC, n = 0;
	int i;

	while (n < 2 * NR_DR) {
		fd[n] = bp_open(pid, cpu, DATA(0xf00));
		if (fd[n] < 0) {
			err = fd[n];
			break;
		}
		n++;
	}
	for (i = 0; i < n; i++)
		close(fd[i]);
	return err == -ENOSPC ? n : err;
}

/* The same as root, whoever the test acts as. */
static inline int bp_room_as_root(pid_t pid, int cpu)
{
	uid_t euid = geteuid();
	int n;

	if (euid && seteuid(0))
		return bp_room(pid, cpu);
	n = bp_room(pid, cpu);
	if (euid && seteuid(euid))
		abort();
	return n;
}

static inline int bp_room_of_new_child(void)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(bp_room(0, -1) & 0xff);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -ECHILD;
	return WEXITSTATUS(status);
}

/*
 * What must hold when a test is over: nobody holds a slot. A CPU counts the
 * task that holds most, so a slot that a dead task kept is missed there. Who may
 * not open breakpoints for a CPU asks a new child.
 */
static inline bool all_slots_are_free(void)
{
	int room = bp_room_as_root(-1, 0);

	if (room == -EACCES || room == -EPERM)
		room = bp_room_of_new_child();
	return room == NR_DR;
}

#endif /* _HW_BREAKPOINT_PTRACE_TRACEE_H */
