// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the tests of attr.sigtrap: see sigtrap.h.
 */
#define BP_NO_TESTS
#include "sigtrap.h"

#define TRACING			"/sys/kernel/tracing/events/"

/* The length of an execution breakpoint: the kernel's sizeof(long) */
#define X_LEN			8

/* ------------------------------------------------------------------ instructions */

#ifdef __x86_64__
#define SP	"%rsp"
#define ARG1	"%rdi"
#else
#define SP	"%esp"
#define ARG1	"%eax"
#endif

#ifdef __aarch64__
/* A program cannot step itself: BP_STEPS_ITSELF is 0. */
asm(".pushsection .text, \"ax\", @progbits\n"
	"	.arch_extension lse\n"
	"	.globl	count_func, count_insn, count_next\n"
	"	.type	count_func, @function\n"
	"count_func:\n"
	"	mov	w1, #1\n"
	"count_insn:\n"
	"	stadd	w1, [x0]\n"
	"count_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	count_func, . - count_func\n"
	"	.globl	step_func, step_insn, step_store_func\n"
	"	.type	step_func, @function\n"
	"step_func:\n"
	"	nop\n"
	"step_insn:\n"
	"	nop\n"
	"	ret\n"
	"	.size	step_func, . - step_func\n"
	"	.type	step_store_func, @function\n"
	"step_store_func:\n"
	"	strb	w0, [x0]\n"
	"	ret\n"
	"	.size	step_store_func, . - step_store_func\n"
	".popsection\n");
#else
asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
	"	.globl	count_func, count_insn, count_next\n"
	"	.type	count_func, @function\n"
	"count_func:\n"
	"	nop\n"
	"count_insn:\n"
	"	incl	(" ARG1 ")\n"
	"count_next:\n"
	"	nop\n"
	"	ret\n"
	"	.size	count_func, . - count_func\n"
	"	.balign	16\n"
	"	.globl	step_func, step_insn\n"
	"	.type	step_func, @function\n"
	"step_func:\n"
	"	pushf\n"
	"	orl	$0x100, (" SP ")\n"
	"	popf\n"
	"	nop\n"
	"step_insn:\n"
	"	nop\n"
	"	nop\n"
	"	pushf\n"
	"	andl	$~0x100, (" SP ")\n"
	"	popf\n"
	"	ret\n"
	"	.size	step_func, . - step_func\n"
	"	.balign	16\n"
	"	.globl	step_store_func\n"
	"	.type	step_store_func, @function\n"
	"step_store_func:\n"
	"	pushf\n"
	"	orl	$0x100, (" SP ")\n"
	"	popf\n"
	"	movb	$1, (" ARG1 ")\n"
	"	pushf\n"
	"	andl	$~0x100, (" SP ")\n"
	"	popf\n"
	"	ret\n"
	"	.size	step_store_func, . - step_store_func\n"
	".popsection\n");
#endif

char *word(int i)
{
	return BP_PAGE + 64 * i;
}

__thread volatile int steps;

void store_step(void *p)
{
#ifdef __aarch64__
	asm volatile("strb %w1, [%1]\n\t"
		     "stadd %w2, %0"
		     : "+Q"(steps) : "r"(p), "r"(1) : "memory");
#else
	asm volatile("movb $1, (%1)\n\t"
		     "addl $1, %0"
		     : "+m"(steps) : "r"(p) : "memory");
#endif
	bp_settle(p);
}

/* ----------------------------------------------------------------- signals */

__thread struct seen seen[MAX_SEEN];

__thread volatile int nr_seen, nr_traced, nr_other, depth;

__thread void (*in_handler)(int nr);

void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int nr = nr_seen;
	struct seen *s = &seen[nr % MAX_SEEN];

	if (info->si_code != TRAP_PERF) {
		if (info->si_code == TRAP_TRACE)
			nr_traced++;
		else
			nr_other++;
		return;
	}
	bp_settle(BP_PAGE);
	memcpy(&s->info, info, sizeof(s->info));
	s->ip = bp_context_ip(uc);
	s->step = steps;
	s->depth = depth;
	nr_seen = nr + 1;
	if (in_handler) {
		depth++;
		in_handler(nr);
		depth--;
	}
}

void handle_traps(int flags)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags };

	sigaction(SIGTRAP, &sa, NULL);
}

void forget_seen(void)
{
	nr_seen = 0;
	nr_traced = 0;
	nr_other = 0;
	steps = 0;
}

bool was_seen(int nr, const void *addr, unsigned long data, __u32 flags)
{
	const struct trap_info *info = &seen[nr % MAX_SEEN].info;

	return info->signo == SIGTRAP && !info->error && info->code == TRAP_PERF &&
	       info->addr == (unsigned long)addr && info->data == data &&
	       info->type == PERF_TYPE_BREAKPOINT && info->flags == flags;
}

void expect_seen(struct __test_metadata *_metadata, int nr, const void *addr, unsigned long data,
		 __u32 flags)
{
	const struct trap_info *info = &seen[nr].info;

	EXPECT_EQ(SIGTRAP, info->signo);
	EXPECT_EQ(0, info->error);
	EXPECT_EQ(TRAP_PERF, info->code);
	EXPECT_EQ((unsigned long)addr, info->addr);
	EXPECT_EQ(data, info->data);
	EXPECT_EQ(PERF_TYPE_BREAKPOINT, info->type);
	EXPECT_EQ(flags, info->flags) {
		TH_LOG("of signal %d", nr);
	}
}

void expect_word(struct __test_metadata *_metadata, int nr, int i, __u32 flags)
{
	expect_seen(_metadata, nr, word(i), DATA(i), flags);
}

static void mask_trap(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(how, &set, NULL);
}

void block(void)
{
	mask_trap(SIG_BLOCK);
}

void unblock(void)
{
	mask_trap(SIG_UNBLOCK);
}

bool is_pending(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigpending(&set);
	return sigismember(&set, SIGTRAP);
}

#ifdef __NR_rt_sigtimedwait_time64
#define NR_SIGTIMEDWAIT		__NR_rt_sigtimedwait_time64
#else
#define NR_SIGTIMEDWAIT		__NR_rt_sigtimedwait
#endif

int take_signal(struct trap_info *taken, long nsec)
{
	__s64 timeout[2] = { 0, nsec };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	if (syscall(NR_SIGTIMEDWAIT, &set, &info, timeout, 8) < 0)
		return -errno;
	if (taken)
		memcpy(taken, &info, sizeof(*taken));
	return info.si_code;
}

int take_pending(struct trap_info *taken)
{
	return take_signal(taken, 0);
}

void send_trap_to_self(void)
{
	syscall(__NR_tgkill, getpid(), syscall(__NR_gettid), SIGTRAP);
}

/* ------------------------------------------------------------------------- events */

bool queue, process;

struct perf_event_attr trap_attr(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = bp_attr_w(addr, 1);

	attr.config = (queue ? BP_SIGTRAP_QUEUE : 0) | (process ? BP_PROCESS : 0);
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sample_period = 1;
	attr.sig_data = data;
	attr.read_format = PERF_FORMAT_LOST;
	return attr;
}

struct perf_event_attr word_attr(int i)
{
	return trap_attr(word(i), DATA(i));
}

struct perf_event_attr insn_attr(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = trap_attr(addr, data);

	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_len = X_LEN;
	return attr;
}

int watch(int i)
{
	struct perf_event_attr attr = word_attr(i);

	return bp_open(&attr, 0, -1);
}

int watch_insn(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = insn_attr(addr, data);

	return bp_open(&attr, 0, -1);
}

int watch_kernel(int i, unsigned int type)
{
	struct perf_event_attr attr = word_attr(i);

	attr.exclude_kernel = 0;
	attr.bp_type = type;
	return bp_open(&attr, 0, -1);
}

void nap(void)
{
	poll(NULL, 0, 1);
}

/* ------------------------------------------------------------------------ workers */

void hit_words(void)
{
	for (int i = 0; i < W_HITS; i++)
		bp_store(word(i), 1);
}

int watch_words(void)
{
	for (int i = 0; i < W_HITS; i++) {
		if (watch(i) < 0)
			return -1;
	}
	return 0;
}

bool words_were_seen(__u32 flags)
{
	for (int i = 0; i < W_HITS; i++) {
		if (!was_seen(i, word(i), DATA(i), flags))
			return false;
	}
	return nr_seen == W_HITS;
}

long worker(int cmd, void *arg)
{
	switch (cmd) {
	case W_WATCH:
		return watch_words();
	case W_HIT:
		hit_words();
		return nr_seen;
	case W_HIT_0:
		bp_store(word(0), 1);
		return nr_seen;
	case W_HIT_1:
		bp_store(word(1), 1);
		return nr_seen;
	case W_BLOCK:
		block();
		return nr_seen;
	case W_UNBLOCK:
		unblock();
		return nr_seen;
	case W_SEEN:
		return nr_seen;
	case W_CHECK:
		return words_were_seen((long)arg);
	case W_PENDING:
		return is_pending();
	case W_FORGET:
		forget_seen();
		return 0;
	}
	return -EINVAL;
}

/* -------------------------------------------------------------------- the program */

int exec_self(const char *mode)
{
	char env[64], *argv[] = { "perf_sigtrap", NULL }, *envp[] = { env, NULL };

	snprintf(env, sizeof(env), "PERF_SIGTRAP_EXEC=%s", mode);
	execve("/proc/self/exe", argv, envp);
	return errno;
}

/* The new image has no handler, so a signal of an old hit would kill it. */
static int new_image(const char *mode)
{
	if (!strcmp(mode, "clean")) {
		CHECK(!is_pending());
		unblock();
		CHECK(getppid() > 0);
		return 0;
	}
	if (!strcmp(mode, "sent")) {
		CHECK(is_pending());
		CHECK(take_pending(NULL) == SI_TKILL);
		CHECK(take_pending(NULL) == -EAGAIN);
		unblock();
		return 0;
	}
	if (!strcmp(mode, "store")) {
		unblock();
		CHECK(bp_map_page(PROT_READ | PROT_WRITE));
		bp_store(word(0), 1);
		return 0;
	}
	if (!strcmp(mode, "spin")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Other tasks need the CPU to start. */
		CHECK(!setpriority(PRIO_PROCESS, 0, 19));
		CHECK(write(STDOUT_FILENO, "", 1) == 1);
		/* No PAUSE: TCG would stop this CPU and go on to the next each time. */
		for (;;)
			asm volatile("");
	}
	return 1;
}

static void __attribute__((constructor)) after_exec(void)
{
	const char *mode = getenv("PERF_SIGTRAP_EXEC");

	if (mode)
		_exit(new_image(mode));
}

/* ---------------------------------------------------- helpers of several test files */

__thread int *counted;

void look_at_counted(int nr)
{
	seen[nr].step = *counted;
}

int change_event(int fd, int what, const void *addr, unsigned long data)
{
	struct perf_event_attr attr = insn_attr(addr, data);

	switch (what) {
	case DO_CLOSE:
		return close(fd);
	case DO_DISABLE:
		return bp_disable(fd);
	case DO_RESET:
		return bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	case DO_MODIFY:
		return bp_modify(fd, &attr);
	}
	return -EINVAL;
}

static int lap[MEMBERS][2];

int run_laps(int me)
{
	int bad = 0, before;
	char token;

	forget_seen();
	for (int i = 0; i < LAPS; i++) {
		CHECK(read(lap[me][0], &token, 1) == 1);
		before = nr_seen;
		NOTE(bad, before == 2 * i);
		store_step(word(0));
		NOTE(bad, nr_seen == before + 1);
		NOTE(bad, was_seen(before, word(0), DATA(0), SYNC));
		NOTE(bad, seen[before % MAX_SEEN].step == i);
		/* SIGTRAP is blocked, so this hit is kept across the context switch. */
		block();
		bp_store(word(1), 1);
		CHECK(write(lap[(me + 1) % MEMBERS][1], &token, 1) == 1);
		sched_yield();
		NOTE(bad, nr_seen == before + 1);
		unblock();
		NOTE(bad, nr_seen == before + 2);
		NOTE(bad, was_seen(before + 1, word(1), DATA(1), ASYNC));
	}
	return bad != 0;
}

int prepare_laps(struct __test_metadata *_metadata, int fd[2])
{
	bp_pin(bp_online_cpus().cpu[0]);
	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = word_attr(i);

		attr.inherit = 1;
		fd[i] = bp_open(&attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < MEMBERS; i++)
		ASSERT_EQ(0, pipe2(lap[i], O_CLOEXEC));
	return write(lap[0][1], "", 1) == 1 ? 0 : -EIO;
}

struct perf_event_attr other_attr(__u32 type, __u64 config)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sigtrap = 1,
		.remove_on_exec = 1,
		.sig_data = DATA(0),
		.read_format = PERF_FORMAT_LOST,
	};

	return attr;
}

int tracepoint_id(const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), TRACING "%s/id", name);
	if (bp_read_file(path, text, sizeof(text)))
		return -1;
	return atoi(text);
}

bool was_other(int nr, __u32 type, __u32 flags)
{
	const struct trap_info *info = &seen[nr % MAX_SEEN].info;

	return info->signo == SIGTRAP && info->code == TRAP_PERF && info->type == type &&
	       info->data == DATA(0) && info->flags == flags;
}
