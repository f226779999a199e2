// SPDX-License-Identifier: GPL-2.0
/*
 * Tracees for the tests of the debug registers: see ptrace_tracee.h.
 */
#define BP_NO_TESTS
#include <libgen.h>

#include "ptrace_tracee.h"

unsigned long dr7_field(int n, enum dr7_rw rw, int len)
{
	static const unsigned long code[] = { [1] = 0, [2] = 1, [4] = 3, [8] = 2 };

	return DR7_FIELD(n, rw, code[len]);
}

unsigned long dr7_on(int n, enum dr7_rw rw, int len)
{
	return DR7_L(n) | dr7_field(n, rw, len);
}

/* ------------------------------------------------------------ the shared pages */

#define SHARED_SIZE		(3 * SHARED_PAGE)

/* ----------------------------------------------------------- the tracee's side */

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

void tracee_stop(void)
{
	syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGSTOP);
}

/* An instruction breakpoint on the called function is hit in the handler, too. */
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

void tracee_main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--tracee"))
		return;
	if (!shared_map(atoi(argv[2])))
		exit(1);
	tracee_start();
}

/* ----------------------------------------------------------- the tracer's side */

/* More traps in one action than any test causes: then the tracee is in a loop. */
#define MAX_TRAPS		64

int dr_poke(struct tracee *t, int n, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, t->pid, offsetof(struct user, u_debugreg[n]), value) ?
		-errno : 0;
}

unsigned long dr_peek(struct tracee *t, int n)
{
	return ptrace(PTRACE_PEEKUSER, t->pid, offsetof(struct user, u_debugreg[n]), 0);
}

int dr_set(struct tracee *t, int n, unsigned long addr, unsigned long dr7)
{
	int err = dr_poke(t, n, addr);

	return err ?: dr_poke(t, 7, dr7);
}

static unsigned long tracee_ip(struct tracee *t)
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

int tracee_resume(struct tracee *t, int request, int sig)
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

int tracee_event(struct tracee *t)
{
	return t->status >> 16;
}

int tracee_finish(struct tracee *t)
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

void tracee_order(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	t->sh->op = op;
	t->sh->addr = addr;
	t->sh->len = len;
	t->sh->result = 0;
}

int tracee_do(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	tracee_order(t, op, addr, len);
	return tracee_finish(t);
}

int tracee_begin(struct tracee *t, enum tracee_op op, unsigned long addr, int len)
{
	tracee_order(t, op, addr, len);
	return tracee_resume(t, PTRACE_CONT, 0);
}

/* --------------------------------------------------- begin and end of a tracee */

int tracee_spawn(struct tracee *t, bool unprivileged)
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
		if (unprivileged && bp_become_nobody())
			_exit(2);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(3);
		SHARED->fd = t->fd;
		tracee_start();
	}
	if (waitpid(t->pid, &t->status, 0) != t->pid || !WIFSTOPPED(t->status))
		return -ECHILD;
	/* The tracer maps the file anywhere: only the tracee's address matters. */
	t->sh = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
	if (t->sh == MAP_FAILED)
		return -errno;
	return ptrace(PTRACE_SETOPTIONS, t->pid, 0, TRACE_OPTIONS) ? -errno : 0;
}

void tracee_kill(struct tracee *t)
{
	if (!t->pid)
		return;
	kill(t->pid, SIGKILL);
	/* A task that is stopped in its exit does not react to SIGKILL: resume it. */
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

int tracee_become(struct tracee *t, const char *name)
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

__u8 *tracee_data(struct tracee *t, unsigned long addr)
{
	return (__u8 *)t->sh + (addr - SHARED_BASE);
}

int tracee_split(struct tracee *t, enum tracee_op op, struct tracee *new)
{
	if (tracee_begin(t, op, 0, 0) != SIGTRAP || !tracee_event(t))
		return -EPROTO;
	*new = (struct tracee) { .pid = t->event_msg, .fd = -1, .sh = t->sh };
	if (waitpid(new->pid, &new->status, __WALL) != new->pid || !WIFSTOPPED(new->status))
		return -ECHILD;
	return 0;
}

/* ------------------------------------- perf breakpoints beside those of ptrace */

int tracee_watch(pid_t pid, int cpu, unsigned long addr)
{
	struct perf_event_attr attr = bp_attr_w((void *)addr, HW_BREAKPOINT_LEN_4);

	return bp_open(&attr, pid, cpu);
}

/* Temporarily as root, whatever user the test runs as. */
static int free_slots_as_root(pid_t pid, int cpu)
{
	uid_t euid = geteuid();
	int n;

	if (euid && seteuid(0))
		return bp_free_slots(pid, cpu);
	n = bp_free_slots(pid, cpu);
	if (euid && seteuid(euid))
		abort();
	return n;
}

static int free_slots_of_new_child(void)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(bp_free_slots(0, -1) & 0xff);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -ECHILD;
	return WEXITSTATUS(status);
}

bool all_slots_are_free(void)
{
	int free_slots = free_slots_as_root(-1, 0);

	if (free_slots == -EACCES || free_slots == -EPERM)
		free_slots = free_slots_of_new_child();
	return free_slots == BP_SLOTS;
}
