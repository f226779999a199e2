// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: a hit becomes a SIGTRAP in the thread that made it.
 *
 * The rule: a hit made while SIGTRAP is not blocked gives a signal before the next
 * instruction, with the address and the event's sig_data at the time of the hit, to
 * the thread that made it. If one instruction hits several breakpoints, each gives a
 * signal. Hits made while SIGTRAP is blocked, by the kernel on behalf of the thread,
 * or of events that are no breakpoints coalesce: the first one is seen. With bit 2
 * of attr.config each hit of a breakpoint gives a signal, up to a limit. An event
 * that is closed or disabled drops its hits that are not pending yet. No hit is ever
 * seen by another task or by another program image.
 *
 * Built as 64-bit, as ia32 and as x32 program: each has a layout of siginfo of its
 * own. Tests with threads are not in the ia32 one: its C library waits by a futex()
 * with 32-bit times, which a kernel need not have.
 */
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include "bp_test.h"

#ifndef TRAP_TRACE
#define TRAP_TRACE		2
#endif
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND	0x100000000ULL
#endif

#define SYNC			0
#define ASYNC			TRAP_PERF_FLAG_ASYNC
#define TRACING			"/sys/kernel/tracing/events/"

/* An execution breakpoint has the length of the kernel's long. */
#define X_LEN			8

/* attr.config: each hit gives a signal. */
#define SIGTRAP_QUEUE		(1ULL << 2)

/* Hits of such an event that are kept: in the event, and one that is pending. */
#define KEPT_MIN		32
#define KEPT_MAX		33

/* ------------------------------------------------------------------ instructions */

#ifdef __x86_64__
#define SP	"%rsp"
#define ARG1	"%rdi"
#define REG_IP	REG_RIP
#else
#define SP	"%esp"
#define ARG1	"%eax"
#define REG_IP	REG_EIP
#endif

#ifdef __i386__
#define ASM_CALL __attribute__((regparm(1)))
#else
#define ASM_CALL
#endif

/*
 * count_func() adds one to *n with the instruction at count_insn; the next one is at
 * count_next. step_func() and step_store_func() go through their middle with the
 * trap flag set.
 */
void ASM_CALL count_func(void *n);
void step_func(void);
void ASM_CALL step_store_func(void *p);
extern const char count_insn[], count_next[], step_insn[];

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
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

/* Something to watch; what is told of it is told by its number. */
static char *word(int i)
{
	return BP_PAGE + 64 * i;
}

#define DATA(i)			(0x51670000UL + (i))

/* How often store_step() got behind its store. */
static __thread volatile int steps;

static void store_step(void *p)
{
	asm volatile("movb $1, (%1)\n\t"
		     "addl $1, %0"
		     : "+m"(steps) : "r"(p) : "memory");
	bp_settle(p);
}

/* ----------------------------------------------------------------- what was seen */

/*
 * The fields of the signal where the ABI has them: a program with 64-bit pointers
 * has a hole before them, and an x32 program the layout of an ia32 one.
 */
struct trap_info {
	__s32 signo;
	__s32 error;
	__s32 code;
#ifdef __LP64__
	__s32 hole;
#endif
	unsigned long addr;
	unsigned long data;
	__u32 type;
	__u32 flags;
};

/**
 * struct seen - a signal of a hit
 * @info: what it says
 * @ip: where the thread stood
 * @step: how often it got behind a store_step()
 * @depth: handlers that were running already
 */
struct seen {
	struct trap_info info;
	unsigned long ip;
	int step;
	int depth;
};

#define MAX_SEEN		256

/* Each thread takes down what it gets. */
static __thread struct seen seen[MAX_SEEN];
static __thread volatile int nr_seen, nr_traced, nr_other, depth;
static __thread void (*in_handler)(int nr);

static void on_trap(int sig, siginfo_t *info, void *context)
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
	s->ip = uc->uc_mcontext.gregs[REG_IP];
	s->step = steps;
	s->depth = depth;
	nr_seen = nr + 1;
	if (in_handler) {
		depth++;
		in_handler(nr);
		depth--;
	}
}

static void handle_traps(int flags)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags };

	sigaction(SIGTRAP, &sa, NULL);
}

static void forget_seen(void)
{
	nr_seen = 0;
	nr_traced = 0;
	nr_other = 0;
	steps = 0;
}

static bool was_seen(int nr, const void *addr, unsigned long data, __u32 flags)
{
	const struct trap_info *info = &seen[nr % MAX_SEEN].info;

	return info->signo == SIGTRAP && !info->error && info->code == TRAP_PERF &&
	       info->addr == (unsigned long)addr && info->data == data &&
	       info->type == PERF_TYPE_BREAKPOINT && info->flags == flags;
}

static void expect_seen(struct __test_metadata *_metadata, int nr, const void *addr,
			unsigned long data, __u32 flags)
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

/* That of a hit of word(i) by its own event */
static void expect_word(struct __test_metadata *_metadata, int nr, int i, __u32 flags)
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

static void block(void)
{
	mask_trap(SIG_BLOCK);
}

static void unblock(void)
{
	mask_trap(SIG_UNBLOCK);
}

static bool is_pending(void)
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

/*
 * Takes a SIGTRAP that is pending; returns its code, or a negative errno if there is
 * none. The C library of ia32 would ask for it with a 32-bit time.
 */
static int take_pending(struct trap_info *taken)
{
	__s64 no_time[2] = { };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	if (syscall(NR_SIGTIMEDWAIT, &set, &info, no_time, 8) < 0)
		return -errno;
	if (taken)
		memcpy(taken, &info, sizeof(*taken));
	return info.si_code;
}

static void send_trap_to_self(void)
{
	syscall(__NR_tgkill, getpid(), syscall(__NR_gettid), SIGTRAP);
}

/* In a child, where nothing may be expected: says what is wrong and fails. */
#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: not so: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			return 1;					\
		}							\
	} while (0)

/* The same where others wait for what comes next: goes on, and says the first. */
#define NOTE(bad, cond)							\
	do {								\
		if (!(cond) && !(bad)++) {				\
			fprintf(stderr, "# %s:%d: not so: %s\n",	\
				__FILE__, __LINE__, #cond);		\
		}							\
	} while (0)

/* ------------------------------------------------------------------------- events */

/* Whether the events that are opened from now on have SIGTRAP_QUEUE */
static bool queue;

static struct perf_event_attr trap_attr(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = bp_attr_w(addr, 1);

	attr.config = queue ? SIGTRAP_QUEUE : 0;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sample_period = 1;
	attr.sig_data = data;
	attr.read_format = PERF_FORMAT_LOST;
	return attr;
}

static struct perf_event_attr word_attr(int i)
{
	return trap_attr(word(i), DATA(i));
}

static struct perf_event_attr insn_attr(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = trap_attr(addr, data);

	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_len = X_LEN;
	return attr;
}

static int watch(int i)
{
	struct perf_event_attr attr = word_attr(i);

	return bp_open(&attr, 0, -1);
}

static int watch_insn(const void *addr, unsigned long data)
{
	struct perf_event_attr attr = insn_attr(addr, data);

	return bp_open(&attr, 0, -1);
}

/* Kernel-mode hits as well, which takes a privilege. */
static int watch_kernel(int i, unsigned int type)
{
	struct perf_event_attr attr = word_attr(i);

	attr.exclude_kernel = 0;
	attr.bp_type = type;
	return bp_open(&attr, 0, -1);
}

/* A nap, so that others run */
static void nap(void)
{
	poll(NULL, 0, 1);
}

/* ------------------------------------------------------------------------ workers */

/* W_HIT: a store to words 0, 1 and 2, in this order. */
enum { W_WATCH, W_HIT, W_HIT_0, W_HIT_1, W_BLOCK, W_UNBLOCK, W_SEEN, W_CHECK, W_PENDING, W_FORGET };

#define W_HITS			3

static void hit_words(void)
{
	for (int i = 0; i < W_HITS; i++)
		bp_store(word(i), 1);
}

static int watch_words(void)
{
	for (int i = 0; i < W_HITS; i++) {
		if (watch(i) < 0)
			return -1;
	}
	return 0;
}

/* Is what was seen the hits of hit_words(), and nothing else? */
static bool words_were_seen(__u32 flags)
{
	for (int i = 0; i < W_HITS; i++) {
		if (!was_seen(i, word(i), DATA(i), flags))
			return false;
	}
	return nr_seen == W_HITS;
}

static long worker(int cmd, void *arg)
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

static int exec_self(const char *mode)
{
	char env[64], *argv[] = { "perf_sigtrap", NULL }, *envp[] = { env, NULL };

	snprintf(env, sizeof(env), "PERF_SIGTRAP_EXEC=%s", mode);
	execve("/proc/self/exe", argv, envp);
	return errno;
}

/* The new image: there is no handler, and whatever is due would kill it. */
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
		/* Others have to start as well. */
		CHECK(!setpriority(PRIO_PROCESS, 0, 19));
		CHECK(write(STDOUT_FILENO, "", 1) == 1);
		for (;;)
			asm volatile("pause");
	}
	return 1;
}

static void __attribute__((constructor)) after_exec(void)
{
	const char *mode = getenv("PERF_SIGTRAP_EXEC");

	if (mode)
		_exit(new_image(mode));
}

FIXTURE(trap)
{
	struct perf_event_attr attr;
	int fd;
};

FIXTURE_SETUP(trap)
{
	struct rlimit no_core = { };

	setrlimit(RLIMIT_CORE, &no_core);
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	self->attr = word_attr(0);
	self->fd = -1;
}

FIXTURE_TEARDOWN(trap)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

static void open_it(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self)
{
	self->fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}

/* ----------------------------------------------------------------------- one hit */

TEST_F(trap, signal_tells_the_hit)
{
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(1, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	EXPECT_FALSE(is_pending());
}

/* A program has as much of sig_data as fits into a long of its own. */
TEST_F(trap, sig_data_is_as_wide_as_a_long)
{
	self->attr.sig_data = 0x1122334455667788ULL;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), (unsigned long)0x1122334455667788ULL, SYNC);
}

TEST_F(trap, loads_and_stores_of_a_read_write_breakpoint)
{
	self->attr.bp_type = HW_BREAKPOINT_RW;
	self->attr.bp_len = 4;
	open_it(_metadata, self);
	bp_load(word(0), 4);
	EXPECT_EQ(1, nr_seen);
	bp_store(word(0), 4);
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	expect_word(_metadata, 1, 0, SYNC);
}

TEST_F(trap, store_has_been_made_and_the_next_instruction_has_not)
{
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		store_step(word(0));
		ASSERT_EQ(i + 1, nr_seen);
		EXPECT_EQ(i, seen[i].step);
	}
	EXPECT_EQ(10, steps);
	count_func(word(0));
	ASSERT_EQ(11, nr_seen);
	EXPECT_EQ((unsigned long)count_next, seen[10].ip);
}

static __thread int *counted;

static void look_at_counted(int nr)
{
	seen[nr].step = *counted;
}

/* An instruction breakpoint is a fault: its instruction has not been executed yet. */
TEST_F(trap, instruction_is_executed_after_its_signal)
{
	static int n;

	counted = &n;
	in_handler = look_at_counted;
	self->attr = insn_attr(count_insn, DATA(7));
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		count_func(&n);
		ASSERT_EQ(i + 1, nr_seen);
		expect_seen(_metadata, i, count_insn, DATA(7), SYNC);
		EXPECT_EQ((unsigned long)count_insn, seen[i].ip);
		EXPECT_EQ(i, seen[i].step);
		EXPECT_EQ(i + 1, n);
	}
}

TEST_F(trap, each_of_thousands_of_hits)
{
	int missed = 0, wrong = 0;

	open_it(_metadata, self);
	for (int i = 0; i < 5000; i++) {
		store_step(word(0));
		missed += nr_seen != i + 1;
		wrong += !was_seen(i, word(0), DATA(0), SYNC) || seen[i % MAX_SEEN].step != i;
	}
	EXPECT_EQ(0, missed);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(5000, nr_seen);
	EXPECT_EQ(5000, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

TEST_F(trap, only_hits_that_overflow)
{
	self->attr.sample_period = 3;
	open_it(_metadata, self);
	for (int i = 1; i <= 30; i++) {
		bp_store(word(0), 1);
		EXPECT_EQ(i / 3, nr_seen);
	}
	EXPECT_EQ(30, bp_hits(self->fd).count);
}

TEST_F(trap, none_from_an_event_that_only_counts)
{
	self->attr.sample_period = 0;
	open_it(_metadata, self);
	bp_store_times(word(0), 1, 5);
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(5, bp_hits(self->fd).count);
}

TEST_F(trap, none_from_an_event_that_is_disabled)
{
	self->attr.disabled = 1;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	EXPECT_EQ(0, nr_seen);
	ASSERT_EQ(0, bp_enable(self->fd));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	ASSERT_EQ(0, bp_disable(self->fd));
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
}

TEST_F(trap, events_of_a_group)
{
	struct perf_event_attr lead = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(lead),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.remove_on_exec = 1,
	};
	int group = bp_open(&lead, 0, -1);

	ASSERT_GE(group, 0);
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		EXPECT_LE(0, bp_open_group(&self->attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
	}
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
	ASSERT_EQ(0, bp_ioctl(group, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	hit_words();
	EXPECT_EQ(W_HITS, nr_seen);
}

/* An event of this task on one CPU alone */
TEST_F(trap, event_of_a_task_on_a_cpu)
{
	struct bp_cpus cpus = bp_online_cpus();

	BP_NEED_CPUS(cpus, 2);
	self->fd = bp_open(&self->attr, 0, cpus.cpu[1]);
	ASSERT_GE(self->fd, 0);
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % 2]));
		bp_store(word(0), 1);
		EXPECT_EQ((i + 1) / 2, nr_seen);
	}
	expect_word(_metadata, 0, 0, SYNC);
}

/* ------------------------------------------------------ several by one instruction */

FIXTURE(insn)
{
	int n;
};

FIXTURE_VARIANT(insn)
{
	int nr;
};

FIXTURE_VARIANT_ADD(insn, two) { .nr = 2 };
FIXTURE_VARIANT_ADD(insn, three) { .nr = 3 };
FIXTURE_VARIANT_ADD(insn, four) { .nr = 4 };

FIXTURE_SETUP(insn)
{
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	for (int i = 0; i < variant->nr; i++)
		ASSERT_LE(0, watch_insn(count_insn, DATA(i)));
	counted = &self->n;
	in_handler = look_at_counted;
}

FIXTURE_TEARDOWN(insn)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

/* Each of the events once, in whatever order, all before the instruction */
static void expect_each_event(struct __test_metadata *_metadata, int first, int nr, int n,
			      __u32 flags)
{
	unsigned int events = 0;

	for (int i = first; i < first + nr; i++) {
		unsigned long data = seen[i].info.data;

		expect_seen(_metadata, i, count_insn, data, flags);
		EXPECT_EQ(n, seen[i].step);
		events |= 1U << (data - DATA(0));
	}
	EXPECT_EQ((1U << nr) - 1, events);
}

TEST_F(insn, each_event_signals)
{
	for (int i = 0; i < 20; i++) {
		count_func(&self->n);
		ASSERT_EQ((i + 1) * variant->nr, nr_seen);
		EXPECT_EQ(i + 1, self->n);
		expect_each_event(_metadata, i * variant->nr, variant->nr, i, SYNC);
		for (int k = 0; k < variant->nr; k++) {
			EXPECT_EQ((unsigned long)count_insn, seen[i * variant->nr + k].ip);
			EXPECT_EQ(0, seen[i * variant->nr + k].depth);
		}
	}
}

/* The next one comes before the handler's first instruction. */
TEST_F(insn, each_event_signals_into_the_handler)
{
	handle_traps(SA_NODEFER);
	count_func(&self->n);
	ASSERT_EQ(variant->nr, nr_seen);
	EXPECT_EQ(1, self->n);
	expect_each_event(_metadata, 0, variant->nr, 0, SYNC);
	/* The innermost handler is the first that gets to take something down. */
	for (int i = 0; i < variant->nr - 1; i++)
		EXPECT_EQ((unsigned long)on_trap, seen[i].ip);
	EXPECT_EQ((unsigned long)count_insn, seen[variant->nr - 1].ip);
}

static sigjmp_buf jump;

static void jump_out(int nr)
{
	if (!nr)
		siglongjmp(jump, 1);
}

/* A handler need not return: what is left comes when SIGTRAP is unblocked. */
TEST_F(insn, handler_that_jumps_out_gets_the_others)
{
	in_handler = jump_out;
	if (!sigsetjmp(jump, 1))
		count_func(&self->n);
	EXPECT_EQ(0, self->n);
	EXPECT_EQ(variant->nr, nr_seen);
	in_handler = look_at_counted;
	count_func(&self->n);
	EXPECT_EQ(1, self->n);
	EXPECT_EQ(2 * variant->nr, nr_seen);
}

static void count_while_blocked(struct __test_metadata *_metadata, FIXTURE_DATA(insn) *self)
{
	block();
	count_func(&self->n);
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(1, self->n);
	EXPECT_TRUE(is_pending());
	unblock();
	EXPECT_FALSE(is_pending());
}

TEST_F(insn, events_coalesce_while_blocked)
{
	count_while_blocked(_metadata, self);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, count_insn, seen[0].info.data, ASYNC);
	EXPECT_EQ(1, seen[0].step);
	/* And again what is not blocked does not. */
	count_func(&self->n);
	ASSERT_EQ(1 + variant->nr, nr_seen);
	expect_each_event(_metadata, 1, variant->nr, 1, SYNC);
}

static void watch_queued(struct __test_metadata *_metadata, int nr)
{
	syscall(__NR_close_range, 3, ~0U, 0);
	queue = true;
	for (int i = 0; i < nr; i++)
		ASSERT_LE(0, watch_insn(count_insn, DATA(i)));
}

TEST_F(insn, each_event_waits_while_blocked_if_queued)
{
	watch_queued(_metadata, variant->nr);
	count_while_blocked(_metadata, self);
	ASSERT_EQ(variant->nr, nr_seen);
	expect_each_event(_metadata, 0, variant->nr, 1, ASYNC);
	count_func(&self->n);
	ASSERT_EQ(2 * variant->nr, nr_seen);
	expect_each_event(_metadata, variant->nr, variant->nr, 1, SYNC);
}

static struct {
	int fd[BP_SLOTS];
	int nr;
	int what;
} change;

enum { DO_CLOSE, DO_DISABLE, DO_RESET, DO_MODIFY, NR_DO };

static int change_event(int fd, int what, const void *addr, unsigned long data)
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

static void change_in_first(int nr)
{
	for (int i = 0; !nr && i < change.nr; i++)
		change_event(change.fd[i], change.what, count_next, DATA(9));
}

/*
 * The handler of the first signal changes all events: those that are closed, disabled
 * or moved elsewhere report nothing that the program does not expect any more.
 */
static void change_all(struct __test_metadata *_metadata, FIXTURE_DATA(insn) *self, int nr,
		       int what)
{
	syscall(__NR_close_range, 3, ~0U, 0);
	change.nr = nr;
	change.what = what;
	for (int i = 0; i < nr; i++) {
		change.fd[i] = watch_insn(count_insn, DATA(i));
		ASSERT_GE(change.fd[i], 0);
	}
	in_handler = change_in_first;
	self->n = 0;
	count_func(&self->n);
	in_handler = NULL;
	EXPECT_EQ(1, self->n);
	EXPECT_FALSE(is_pending());
}

TEST_F(insn, handler_that_closes_the_events_gets_no_more)
{
	change_all(_metadata, self, variant->nr, DO_CLOSE);
	EXPECT_EQ(1, nr_seen);
	count_func(&self->n);
	EXPECT_EQ(1, nr_seen);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(insn, handler_that_disables_the_events_gets_no_more)
{
	change_all(_metadata, self, variant->nr, DO_DISABLE);
	EXPECT_EQ(1, nr_seen);
	/* Nor when they are enabled again: what was due is gone. */
	for (int i = 0; i < variant->nr; i++)
		EXPECT_EQ(0, bp_enable(change.fd[i]));
	EXPECT_EQ(1, nr_seen);
	count_func(&self->n);
	EXPECT_EQ(1 + variant->nr, nr_seen);
}

/* The moved events hit at their new place, all of them and nothing else. */
TEST_F(insn, handler_that_moves_the_events_gets_no_more_of_the_old_place)
{
	change_all(_metadata, self, variant->nr, DO_MODIFY);
	ASSERT_EQ(1 + variant->nr, nr_seen);
	for (int i = 1; i <= variant->nr; i++)
		expect_seen(_metadata, i, count_next, DATA(9), SYNC);
}

TEST_F(insn, handler_that_resets_the_events_gets_the_others)
{
	change_all(_metadata, self, variant->nr, DO_RESET);
	EXPECT_EQ(variant->nr, nr_seen);
}

/* A queued hit keeps what it was made with if its event is moved, and is dropped else. */
TEST_F(insn, queued_hits_of_events_that_the_handler_changes)
{
	queue = true;
	change_all(_metadata, self, variant->nr, DO_CLOSE);
	EXPECT_EQ(1, nr_seen);
	forget_seen();
	change_all(_metadata, self, variant->nr, DO_DISABLE);
	EXPECT_EQ(1, nr_seen);
	forget_seen();
	change_all(_metadata, self, variant->nr, DO_MODIFY);
	ASSERT_EQ(2 * variant->nr, nr_seen);
	for (int i = 0; i < variant->nr; i++)
		EXPECT_EQ((unsigned long)count_insn, seen[i].info.addr);
}

static int steps_traced(void)
{
	forget_seen();
	step_func();
	return nr_traced;
}

/*
 * The trap of the step and the hits may be one exception, and both are told.  There
 * were breakpoints in all registers before, so that those which are free now may
 * still hold the address.
 */
TEST_F(insn, each_event_signals_in_a_single_step)
{
	int fd[BP_SLOTS], traced;

	in_handler = NULL;
	traced = steps_traced();
	EXPECT_LE(6, traced);
	syscall(__NR_close_range, 3, ~0U, 0);
	for (int i = 0; i < BP_SLOTS; i++)
		ASSERT_LE(0, watch_insn(step_insn, DATA(i)));
	EXPECT_EQ(traced, steps_traced());
	EXPECT_EQ(BP_SLOTS, nr_seen);
	syscall(__NR_close_range, 3, ~0U, 0);
	for (int i = 0; i < variant->nr; i++) {
		fd[i] = watch_insn(step_insn, DATA(i));
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(traced, steps_traced());
		ASSERT_EQ(variant->nr, nr_seen);
		for (int k = 0; k < variant->nr; k++)
			EXPECT_EQ((unsigned long)step_insn, seen[k].ip);
	}
	for (int i = 0; i < variant->nr; i++)
		EXPECT_EQ(10, bp_hits(fd[i]).count);
}

/* -------------------------------------------------------------------- a debugger */

struct tracee {
	int events;
	bool blocked;
};

/* Hits count_insn once; its exit status is how many signals it got. */
static int tracee(void *arg)
{
	struct tracee *t = arg;
	int n = 0;

	in_handler = NULL;
	syscall(__NR_close_range, 3, ~0U, 0);
	for (int i = 0; i < t->events; i++)
		CHECK(watch_insn(count_insn, DATA(i)) >= 0);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (t->blocked)
		block();
	count_func(&n);
	if (t->blocked)
		unblock();
	return n == 1 ? nr_seen : 100;
}

static pid_t start_tracee(struct __test_metadata *_metadata, struct tracee *t)
{
	pid_t pid = bp_fork();
	int status;

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(tracee(t));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(SIGSTOP, WSTOPSIG(status));
	return pid;
}

static unsigned long tracee_ip(pid_t pid)
{
	struct user_regs_struct regs = { };

	ptrace(PTRACE_GETREGS, pid, 0, &regs);
#ifdef __x86_64__
	return regs.rip;
#else
	return regs.eip;
#endif
}

/* Waits for the next stop; false if the tracee is gone, with its exit status. */
static bool next_stop(struct __test_metadata *_metadata, pid_t pid, struct trap_info *info,
		      int *status)
{
	siginfo_t raw;

	ASSERT_EQ(pid, waitpid(pid, status, 0));
	if (!WIFSTOPPED(*status)) {
		bp_forget_child(pid);
		return false;
	}
	ASSERT_EQ(SIGTRAP, WSTOPSIG(*status));
	ASSERT_EQ(0, ptrace(PTRACE_GETSIGINFO, pid, 0, &raw));
	memcpy(info, &raw, sizeof(*info));
	return true;
}

/* Each stop is one hit; what the tracer suppresses, the tracee does not see. */
static void trace_hits(struct __test_metadata *_metadata, struct tracee *t, int suppress)
{
	pid_t pid = start_tracee(_metadata, t);
	unsigned int events = 0;
	struct trap_info info;
	int status, stops = 0;

	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
	while (next_stop(_metadata, pid, &info, &status)) {
		EXPECT_EQ(TRAP_PERF, info.code);
		EXPECT_EQ((unsigned long)count_insn, info.addr);
		EXPECT_EQ(PERF_TYPE_BREAKPOINT, info.type);
		EXPECT_EQ(t->blocked ? ASYNC : SYNC, info.flags);
		if (!t->blocked)
			EXPECT_EQ((unsigned long)count_insn, tracee_ip(pid));
		events |= 1U << (info.data - DATA(0));
		stops++;
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0,
				    stops <= suppress ? 0 : SIGTRAP));
	}
	if (t->blocked && !queue) {
		EXPECT_EQ(1, stops);
	} else {
		EXPECT_EQ(t->events, stops);
		EXPECT_EQ((1U << t->events) - 1, events);
	}
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(stops - suppress, WEXITSTATUS(status));
}

TEST_F(insn, tracer_sees_each_and_passes_it_on)
{
	struct tracee t = { .events = variant->nr };

	trace_hits(_metadata, &t, 0);
}

TEST_F(insn, tracer_suppresses_the_first)
{
	struct tracee t = { .events = variant->nr };

	trace_hits(_metadata, &t, 1);
}

TEST_F(insn, tracer_suppresses_all)
{
	struct tracee t = { .events = variant->nr };

	trace_hits(_metadata, &t, variant->nr);
}

TEST_F(insn, tracer_sees_what_was_blocked)
{
	struct tracee t = { .events = variant->nr, .blocked = true };

	trace_hits(_metadata, &t, 1);
	trace_hits(_metadata, &t, 0);
	queue = true;
	trace_hits(_metadata, &t, 1);
}

/* The step to the instruction and the hits there, then the step over it. */
TEST_F(insn, tracer_that_steps_sees_both)
{
	struct tracee t = { .events = variant->nr };
	pid_t pid = start_tracee(_metadata, &t);
	int status, hits = 0, before = 0, after = 0;
	struct trap_info info;

	ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
	while (next_stop(_metadata, pid, &info, &status)) {
		unsigned long ip = tracee_ip(pid);

		if (info.code == TRAP_PERF) {
			EXPECT_EQ((unsigned long)count_insn, ip);
			EXPECT_EQ((unsigned long)count_insn, info.addr);
			hits++;
		} else {
			EXPECT_EQ(TRAP_TRACE, info.code);
			before += ip == (unsigned long)count_insn;
			after += ip == (unsigned long)count_next;
		}
		ASSERT_EQ(0, ptrace(after ? PTRACE_CONT : PTRACE_SINGLESTEP, pid, 0, 0));
	}
	EXPECT_EQ(variant->nr, hits);
	EXPECT_EQ(1, before);
	EXPECT_EQ(1, after);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* ----------------------------------------------------------- fault and trap of one */

/* The instruction's own breakpoint comes first, that of its data afterwards. */
TEST_F(trap, instruction_and_its_data)
{
	ASSERT_LE(0, watch_insn(count_insn, DATA(5)));
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		count_func(word(0));
		ASSERT_EQ(2 * (i + 1), nr_seen);
		expect_seen(_metadata, 2 * i, count_insn, DATA(5), SYNC);
		EXPECT_EQ((unsigned long)count_insn, seen[2 * i].ip);
		expect_word(_metadata, 2 * i + 1, 0, SYNC);
		EXPECT_EQ((unsigned long)count_next, seen[2 * i + 1].ip);
		EXPECT_EQ(i + 1, *(volatile int *)word(0));
		bp_settle(word(0));
	}
}

static int step_fd;

/* Steps on at the first signal, and is done at the second. */
static void step_on(int nr)
{
	struct perf_event_attr attr = insn_attr(nr ? (const char *)step_func : count_next,
						DATA(5));

	bp_modify(step_fd, &attr);
}

/*
 * A program that steps by moving its breakpoint, over an instruction that hits another
 * one: the hardware may report the hit of the data and that of the next instruction at
 * once. The program that moves its breakpoint away at the first has no use for the second.
 */
TEST_F(trap, step_over_a_hit)
{
	open_it(_metadata, self);
	step_fd = watch_insn(count_insn, DATA(5));
	ASSERT_GE(step_fd, 0);
	in_handler = step_on;
	count_func(word(0));
	ASSERT_EQ(2, nr_seen);
	expect_seen(_metadata, 0, count_insn, DATA(5), SYNC);
	expect_word(_metadata, 1, 0, SYNC);
	EXPECT_EQ((unsigned long)count_next, seen[1].ip);
}

/* Four data breakpoints, as many as one store reaches */
TEST_F(trap, data_that_several_watch)
{
	int fd[BP_SLOTS];
	__u64 hits = 0;

	for (int i = 0; i < BP_SLOTS; i++) {
		self->attr.sig_data = DATA(i);
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < 10; i++)
		store_step(word(0));
	for (int i = 0; i < BP_SLOTS; i++)
		hits += bp_hits(fd[i]).count;
	/* TCG reports but one data breakpoint of an instruction. */
	EXPECT_EQ(bp_emulated() ? 10 : 10 * BP_SLOTS, hits);
	ASSERT_EQ(hits, nr_seen);
	for (int i = 0; i < nr_seen; i++)
		EXPECT_EQ(i * 10 / nr_seen, seen[i].step);
}

TEST_F(trap, data_in_a_single_step)
{
	int traced;

	if (bp_emulated())
		SKIP(return, "TCG hangs at a data breakpoint in a single step");
	step_store_func(word(0));
	traced = nr_traced;
	EXPECT_LE(4, traced);
	open_it(_metadata, self);
	for (int i = 0; i < 10; i++) {
		forget_seen();
		step_store_func(word(0));
		EXPECT_EQ(traced, nr_traced);
		ASSERT_EQ(1, nr_seen);
		expect_word(_metadata, 0, 0, SYNC);
	}
}

/* ------------------------------------------------------------------ not to be taken */

static void hit_words_in_the_first(int nr)
{
	if (!nr) {
		hit_words();
		bp_store(word(0), 1);
	}
}

/* The first hit of a handler comes when it is done. */
TEST_F(trap, hits_of_a_handler_coalesce)
{
	ASSERT_EQ(0, watch_words());
	in_handler = hit_words_in_the_first;
	store_step(word(0));
	EXPECT_EQ(1, steps);
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	expect_word(_metadata, 1, 0, ASYNC);
	EXPECT_EQ(0, seen[1].depth);
	EXPECT_EQ(seen[0].ip, seen[1].ip);
}

/* If queued, they all wait until it is done, and then come in order. */
TEST_F(trap, queued_hits_of_a_handler_come_after_it)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	in_handler = hit_words_in_the_first;
	store_step(word(0));
	EXPECT_EQ(1, steps);
	ASSERT_EQ(5, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	expect_word(_metadata, 1, 0, ASYNC);
	expect_word(_metadata, 2, 1, ASYNC);
	expect_word(_metadata, 3, 2, ASYNC);
	expect_word(_metadata, 4, 0, ASYNC);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, seen[i].depth);
		EXPECT_EQ(0, seen[i].step);
		EXPECT_EQ(seen[0].ip, seen[i].ip);
	}
}

static void hit_the_next_word(int nr)
{
	if (nr < W_HITS - 1)
		store_step(word(nr + 1));
}

/* With SA_NODEFER they interrupt it: each at its next instruction */
TEST_F(trap, hits_of_a_handler_that_can_be_interrupted_come_at_once)
{
	ASSERT_EQ(0, watch_words());
	handle_traps(SA_NODEFER);
	in_handler = hit_the_next_word;
	store_step(word(0));
	EXPECT_TRUE(words_were_seen(SYNC));
	EXPECT_EQ(3, steps);
	for (int i = 0; i < nr_seen; i++) {
		EXPECT_EQ(i, seen[i].depth);
		EXPECT_EQ(0, seen[i].step);
	}
}

TEST_F(trap, hits_coalesce_while_blocked)
{
	open_it(_metadata, self);
	ASSERT_LE(0, watch(1));
	block();
	for (int i = 0; i < 20; i++) {
		store_step(word(0));
		store_step(word(1));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(20, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	/* And again what is not blocked is not asynchronous. */
	store_step(word(1));
	ASSERT_EQ(2, nr_seen);
	expect_word(_metadata, 1, 1, SYNC);
	EXPECT_EQ(40, seen[1].step);
}

/* An event keeps its first hit, with what it was made with. */
TEST_F(trap, hits_that_coalesce_keep_the_first)
{
	open_it(_metadata, self);
	block();
	bp_store(word(0), 1);
	self->attr = trap_attr(word(1), DATA(1));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(1), 1);
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(trap, queued_hits_wait_while_blocked)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	store_step(word(1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(4, nr_seen);
	for (int i = 0; i < W_HITS; i++)
		expect_word(_metadata, i, i, ASYNC);
	expect_word(_metadata, 3, 1, ASYNC);
	EXPECT_FALSE(is_pending());
	/* And again what is not blocked is not asynchronous. */
	store_step(word(2));
	ASSERT_EQ(5, nr_seen);
	expect_word(_metadata, 4, 2, SYNC);
	EXPECT_EQ(1, seen[4].step);
}

TEST_F(trap, queued_hits_of_one_event_wait_while_blocked)
{
	self->attr.config = SIGTRAP_QUEUE;
	open_it(_metadata, self);
	block();
	for (int i = 0; i < 20; i++)
		store_step(word(0));
	unblock();
	ASSERT_EQ(20, nr_seen);
	for (int i = 0; i < 20; i++)
		expect_word(_metadata, i, 0, ASYNC);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
}

/* What is there is what came first; the rest is counted, and nobody is killed. */
static void overflow_queue(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self,
			   int hits)
{
	struct bp_hits before = bp_hits(self->fd), after;
	int kept;

	forget_seen();
	block();
	for (int i = 0; i < hits; i++) {
		self->attr.sig_data = DATA(i);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		store_step(word(0));
	}
	EXPECT_EQ(0, nr_seen);
	unblock();
	kept = nr_seen;
	after = bp_hits(self->fd);
	EXPECT_EQ(hits, after.count - before.count);
	EXPECT_EQ(hits - kept, after.lost - before.lost);
	if (hits < KEPT_MIN) {
		EXPECT_EQ(hits, kept);
	} else {
		EXPECT_LE(KEPT_MIN, kept);
		EXPECT_GE(KEPT_MAX, kept);
	}
	for (int i = 0; i < kept; i++)
		expect_seen(_metadata, i, word(0), DATA(i), ASYNC);
}

TEST_F(trap, queue_is_bounded)
{
	self->attr.config = SIGTRAP_QUEUE;
	open_it(_metadata, self);
	overflow_queue(_metadata, self, KEPT_MIN);
	overflow_queue(_metadata, self, 100);
	overflow_queue(_metadata, self, 7);
	overflow_queue(_metadata, self, 200);
	block();
	EXPECT_FALSE(is_pending());
	unblock();
}

/* Each event has its own queue; what does not fit is counted where it was lost. */
TEST_F(trap, what_is_lost_is_lost_by_its_event)
{
	int other;

	self->attr.config = SIGTRAP_QUEUE;
	queue = true;
	other = watch(1);
	ASSERT_GE(other, 0);
	open_it(_metadata, self);
	block();
	bp_store_times(word(0), 1, KEPT_MAX + 10);
	bp_store_times(word(1), 1, 10);
	unblock();
	EXPECT_EQ(0, bp_hits(other).lost);
	EXPECT_LE(10, bp_hits(self->fd).lost);
	EXPECT_GE(11, bp_hits(self->fd).lost);
	ASSERT_EQ(nr_seen, KEPT_MAX + 20 - bp_hits(self->fd).lost);
	for (int i = 0; i < nr_seen; i++)
		expect_word(_metadata, i, i >= nr_seen - 10, ASYNC);
}

/* --------------------------------------------------------- other ways to take it */

/* As any other SIGTRAP of the thread */
TEST_F(trap, hits_coalesce_with_signals_that_others_sent)
{
	open_it(_metadata, self);
	block();
	send_trap_to_self();
	bp_store(word(0), 1);
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_EQ(0, nr_seen);
	block();
	bp_store(word(0), 1);
	send_trap_to_self();
	unblock();
	EXPECT_EQ(1, nr_other);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(trap, signals_that_others_sent_do_not_count_if_queued)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	send_trap_to_self();
	hit_words();
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, signals_to_the_process_do_not_count)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	kill(getpid(), SIGTRAP);
	hit_words();
	kill(getpid(), SIGTRAP);
	unblock();
	EXPECT_EQ(1, nr_other);
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, sigtimedwait_takes_the_first)
{
	struct trap_info info;

	ASSERT_EQ(0, watch_words());
	block();
	for (int round = 0; round < 5; round++) {
		hit_words();
		ASSERT_EQ(TRAP_PERF, take_pending(&info));
		EXPECT_EQ((unsigned long)word(0), info.addr);
		EXPECT_EQ(DATA(0), info.data);
		EXPECT_EQ(ASYNC, info.flags);
		EXPECT_EQ(-EAGAIN, take_pending(NULL));
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, sigtimedwait_takes_one_after_the_other)
{
	struct trap_info info;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	for (int round = 0; round < 5; round++) {
		hit_words();
		for (int i = 0; i < W_HITS; i++) {
			EXPECT_TRUE(is_pending());
			ASSERT_EQ(TRAP_PERF, take_pending(&info));
			EXPECT_EQ(SIGTRAP, info.signo);
			EXPECT_EQ((unsigned long)word(i), info.addr);
			EXPECT_EQ(DATA(i), info.data);
			EXPECT_EQ(PERF_TYPE_BREAKPOINT, info.type);
			EXPECT_EQ(ASYNC, info.flags);
		}
		EXPECT_EQ(-EAGAIN, take_pending(NULL));
		EXPECT_FALSE(is_pending());
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, signalfd_reads_one_after_the_other)
{
	struct signalfd_siginfo info[W_HITS + 1];
	int fd, nr = 0;
	sigset_t set;
	ssize_t got;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	for (int round = 0; round < 5; round++) {
		hit_words();
		nr = 0;
		while (nr <= W_HITS) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			EXPECT_EQ(nr < W_HITS, poll(&p, 1, 0));
			got = read(fd, info + nr, sizeof(info) - nr * sizeof(info[0]));
			if (got <= 0)
				break;
			nr += got / sizeof(info[0]);
		}
		ASSERT_EQ(W_HITS, nr);
		for (int i = 0; i < nr; i++) {
			EXPECT_EQ(SIGTRAP, info[i].ssi_signo);
			EXPECT_EQ(TRAP_PERF, info[i].ssi_code);
			EXPECT_EQ((unsigned long)word(i), info[i].ssi_addr);
		}
	}
	unblock();
	EXPECT_EQ(0, nr_seen);
}

TEST_F(trap, sigsuspend_takes_one_at_a_time)
{
	sigset_t none;

	sigemptyset(&none);
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	for (int i = 1; i <= W_HITS; i++) {
		ASSERT_TRUE(is_pending());
		sigsuspend(&none);
		EXPECT_EQ(i, nr_seen);
	}
	EXPECT_FALSE(is_pending());
	EXPECT_TRUE(words_were_seen(ASYNC));
}

/* ---------------------------------------------------------------- what is done with */

TEST_F(trap, ignored_hits_are_dropped)
{
	ASSERT_EQ(0, watch_words());
	signal(SIGTRAP, SIG_IGN);
	for (int i = 0; i < 50; i++)
		hit_words();
	handle_traps(0);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
}

TEST_F(trap, ignored_hits_of_one_instruction_are_all_dropped)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, watch_insn(count_insn, DATA(5 + i)));
	ASSERT_LE(0, watch(0));
	signal(SIGTRAP, SIG_IGN);
	count_func(&n);
	handle_traps(0);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), DATA(0), SYNC);
}

TEST_F(trap, ignoring_drops_what_is_due)
{
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	signal(SIGTRAP, SIG_IGN);
	EXPECT_FALSE(is_pending());
	handle_traps(0);
	EXPECT_FALSE(is_pending());
	unblock();
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));
}

static int hit_by_default(void *arg)
{
	signal(SIGTRAP, SIG_DFL);
	CHECK(watch(0) >= 0);
	bp_store(word(0), 1);
	return 0;
}

TEST_F(trap, default_action_kills)
{
	EXPECT_EQ(256 + SIGTRAP, bp_in_child(hit_by_default, NULL));
}

static int hit_blocked_by_default(void *arg)
{
	signal(SIGTRAP, SIG_DFL);
	block();
	CHECK(watch_words() == 0);
	for (int i = 0; i < 30; i++)
		hit_words();
	CHECK(is_pending());
	if (arg)
		unblock();
	return 0;
}

/* Other synchronous signals kill who blocks them; this one waits. */
TEST_F(trap, blocked_hits_do_not_kill)
{
	EXPECT_EQ(0, bp_in_child(hit_blocked_by_default, NULL));
}

TEST_F(trap, default_action_kills_when_unblocked)
{
	EXPECT_EQ(256 + SIGTRAP, bp_in_child(hit_blocked_by_default, (void *)1));
}

/* ------------------------------------------------------- what happens to the event */

/*
 * What is pending is pending whatever becomes of the event, like any other signal. What
 * is queued behind it ends with the event.
 */
static void change_while_due(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self,
			     int what, int queued)
{
	for (int i = 0; i < 2; i++) {
		queue = i;
		self->attr = word_attr(0);
		open_it(_metadata, self);
		forget_seen();
		block();
		bp_store_times(word(0), 1, 5);
		if (what == DO_MODIFY) {
			self->attr = word_attr(9);
			ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		} else {
			ASSERT_EQ(0, change_event(self->fd, what, NULL, 0));
		}
		EXPECT_TRUE(is_pending());
		unblock();
		ASSERT_EQ(i ? queued : 1, nr_seen);
		for (int k = 0; k < nr_seen; k++)
			expect_word(_metadata, k, 0, ASYNC);
		close(self->fd);
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	}
}

TEST_F(trap, close_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_CLOSE, 1);
}

TEST_F(trap, disable_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_DISABLE, 1);
}

TEST_F(trap, reset_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_RESET, 5);
}

TEST_F(trap, modify_while_hits_are_due)
{
	change_while_due(_metadata, self, DO_MODIFY, 5);
}

/* Each hit has the address and the data that were the event's when it was made. */
TEST_F(trap, queued_hits_keep_what_they_were_made_with)
{
	queue = true;
	self->attr = word_attr(0);
	open_it(_metadata, self);
	block();
	bp_store(word(0), 1);
	self->attr = trap_attr(word(1), DATA(1));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(0), 1);
	bp_store(word(1), 1);
	self->attr.sig_data = DATA(2);
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	bp_store(word(1), 1);
	self->attr = trap_attr(word(0), DATA(3));
	ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
	unblock();
	ASSERT_EQ(3, nr_seen);
	expect_seen(_metadata, 0, word(0), DATA(0), ASYNC);
	expect_seen(_metadata, 1, word(1), DATA(1), ASYNC);
	expect_seen(_metadata, 2, word(1), DATA(2), ASYNC);
	bp_store(word(0), 1);
	ASSERT_EQ(4, nr_seen);
	expect_seen(_metadata, 3, word(0), DATA(3), SYNC);
}

static volatile int nr_in, nr_hup;

static void on_io(int sig, siginfo_t *info, void *uc)
{
	if (info->si_code == POLL_HUP)
		nr_hup++;
	else if (info->si_code == POLL_IN)
		nr_in++;
}

static void signal_on_overflow(struct __test_metadata *_metadata, int fd)
{
	struct sigaction sa = { .sa_sigaction = on_io, .sa_flags = SA_SIGINFO | SA_RESTART };

	ASSERT_EQ(0, sigaction(SIGRTMIN, &sa, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_ASYNC));
}

/* REFRESH lets so many hits through: the last one disables the event and says HUP. */
TEST_F(trap, refresh_arms_for_a_number_of_hits)
{
	int due = 0;

	self->attr.disabled = 1;
	open_it(_metadata, self);
	signal_on_overflow(_metadata, self->fd);
	bp_store(word(0), 1);
	EXPECT_EQ(0, nr_seen);
	for (int round = 1; round <= 4; round++) {
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, round));
		for (int i = 1; i <= round; i++) {
			store_step(word(0));
			due++;
			EXPECT_EQ(due, nr_seen);
			while (nr_in + nr_hup < due)
				sched_yield();
			EXPECT_EQ(round - (i < round), nr_hup);
		}
		for (int i = 0; i < 5; i++)
			store_step(word(0));
		EXPECT_EQ(due, nr_seen);
		EXPECT_EQ(due, bp_hits(self->fd).count);
		EXPECT_EQ(due - round, nr_in);
	}
	for (int i = 0; i < nr_seen; i++)
		expect_word(_metadata, i, 0, SYNC);
}

TEST_F(trap, refresh_arms_for_hits_that_wait)
{
	self->attr.config = SIGTRAP_QUEUE;
	self->attr.disabled = 1;
	open_it(_metadata, self);
	block();
	for (int round = 1; round <= 3; round++) {
		ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_REFRESH, 2));
		bp_store_times(word(0), 1, 10);
		EXPECT_EQ(2 * round, bp_hits(self->fd).count);
	}
	unblock();
	EXPECT_EQ(6, nr_seen);
}

/* --------------------------------------------------------------- others who listen */

TEST_F(trap, samples_go_to_the_ring_as_well)
{
	static union bp_record rec;
	struct bp_ring ring;
	int samples = 0;

	self->attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_IP;
	open_it(_metadata, self);
	ASSERT_EQ(0, bp_ring_map(&ring, self->fd, 4, PROT_READ | PROT_WRITE));
	for (int i = 0; i < 50; i++)
		count_func(word(0));
	EXPECT_EQ(50, nr_seen);
	while (bp_ring_next(&ring, &rec)) {
		ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
		EXPECT_EQ((unsigned long)count_next, rec.u64[1]);
		EXPECT_EQ((unsigned long)word(0), rec.u64[2]);
		samples++;
	}
	EXPECT_EQ(50, samples);
	expect_word(_metadata, 49, 0, SYNC);
	/* A ring that is full has no influence on the signals. */
	forget_seen();
	for (int i = 0; i < 2000; i++)
		count_func(word(0));
	EXPECT_EQ(2000, nr_seen);
	bp_ring_unmap(&ring);
}

#ifdef __LP64__
static int load_filter(int keep)
{
	static char log[4096];
	struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = keep },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)insn,
		.insn_cnt = 2,
		.license = (unsigned long)"GPL",
		.log_buf = (unsigned long)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	long fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static int attach_filter(int fd, int keep)
{
	union bpf_attr attr = { };
	long link;

	attr.link_create.prog_fd = load_filter(keep);
	attr.link_create.target_fd = fd;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	link = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return link < 0 ? -errno : link;
}

TEST_F(trap, program_says_which_hits_signal)
{
	int link;

	BP_NEED_ROOT();
	open_it(_metadata, self);
	link = attach_filter(self->fd, 0);
	if (link == -ENOSYS)
		SKIP(return, "needs CONFIG_BPF_SYSCALL");
	ASSERT_GE(link, 0);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(0, nr_seen);
	block();
	bp_store_times(word(0), 1, 10);
	EXPECT_FALSE(is_pending());
	unblock();
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(20, bp_hits(self->fd).count);
	EXPECT_EQ(0, bp_hits(self->fd).lost);
	close(link);

	link = attach_filter(self->fd, 1);
	ASSERT_GE(link, 0);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(10, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	close(link);
	bp_store_times(word(0), 1, 10);
	EXPECT_EQ(20, nr_seen);
}
#endif

/* ------------------------------------------------------------------ in the kernel */

FIXTURE(kernel)
{
	int in[2];
};

FIXTURE_SETUP(kernel)
{
	BP_NEED_ROOT();
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_RESTART);
	ASSERT_EQ(0, pipe2(self->in, O_CLOEXEC));
}

FIXTURE_TEARDOWN(kernel)
{
	in_handler = NULL;
	unblock();
	bp_teardown(_metadata);
}

static void feed(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self, int bytes)
{
	static const char zeroes[256];

	ASSERT_EQ(bytes, write(self->in[1], zeroes, bytes));
}

TEST_F(kernel, system_call_that_writes_to_it)
{
	int fd = watch_kernel(0, HW_BREAKPOINT_W);

	ASSERT_GE(fd, 0);
	for (int i = 1; i <= 10; i++) {
		feed(_metadata, self, 1);
		EXPECT_EQ(1, read(self->in[0], word(0), 1));
		ASSERT_EQ(i, nr_seen);
		expect_word(_metadata, i - 1, 0, SYNC);
		bp_settle(word(0));
	}
	EXPECT_EQ(10, bp_hits(fd).count);
	bp_store(word(0), 1);
	ASSERT_EQ(11, nr_seen);
	expect_word(_metadata, 10, 0, SYNC);
}

/* Whether it is asynchronous is decided on the way back to user mode. */
TEST_F(kernel, system_call_that_writes_to_it_while_blocked)
{
	ASSERT_LE(0, watch_kernel(0, HW_BREAKPOINT_W));
	block();
	feed(_metadata, self, 1);
	EXPECT_EQ(1, read(self->in[0], word(0), 1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_TRUE(is_pending());
	unblock();
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, ASYNC);
}

TEST_F(kernel, none_if_the_kernel_is_excluded)
{
	int fd = watch(0);

	ASSERT_GE(fd, 0);
	feed(_metadata, self, 1);
	EXPECT_EQ(1, read(self->in[0], word(0), 1));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_hits(fd).count);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
}

/* Behind each word one byte that nobody watches: see bp_settle(). */
static void write_to_several(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self)
{
	struct iovec iov[2 * W_HITS];

	for (int i = 0; i < W_HITS; i++) {
		ASSERT_LE(0, watch_kernel(i, HW_BREAKPOINT_W));
		iov[2 * i] = (struct iovec){ word(i), 1 };
		iov[2 * i + 1] = (struct iovec){ BP_PAGE + BP_PAGE_SIZE - 1, 1 };
	}
	for (int round = 0; round < 5; round++) {
		int nr = queue ? W_HITS : 1;

		forget_seen();
		feed(_metadata, self, 2 * W_HITS);
		EXPECT_EQ(2 * W_HITS, readv(self->in[0], iov, 2 * W_HITS));
		ASSERT_EQ(nr, nr_seen);
		/* Those that are queued come after the handler of the first. */
		for (int i = 0; i < nr; i++)
			expect_word(_metadata, i, i, i ? ASYNC : SYNC);
	}
}

TEST_F(kernel, system_call_that_writes_to_several)
{
	write_to_several(_metadata, self);
}

TEST_F(kernel, system_call_that_writes_to_several_that_are_queued)
{
	queue = true;
	write_to_several(_metadata, self);
}

static void write_often(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self,
			int hits)
{
	struct iovec iov[128];

	for (int i = 0; i < hits; i++)
		iov[i] = (struct iovec){ word(0), 1 };
	feed(_metadata, self, hits);
	EXPECT_EQ(hits, readv(self->in[0], iov, hits));
}

TEST_F(kernel, system_call_that_writes_to_it_again_and_again)
{
	int fd = watch_kernel(0, HW_BREAKPOINT_W);

	ASSERT_GE(fd, 0);
	write_often(_metadata, self, 10);
	ASSERT_EQ(1, nr_seen);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(10, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);
}

TEST_F(kernel, system_call_that_writes_to_it_again_and_again_if_queued)
{
	int fd;

	queue = true;
	fd = watch_kernel(0, HW_BREAKPOINT_W);
	ASSERT_GE(fd, 0);
	write_often(_metadata, self, 10);
	ASSERT_EQ(10, nr_seen);
	for (int i = 0; i < 10; i++)
		expect_word(_metadata, i, 0, i ? ASYNC : SYNC);
	EXPECT_EQ(10, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);

	/* Before the task gets anywhere to take a signal there may be too many. */
	forget_seen();
	write_often(_metadata, self, 100);
	EXPECT_LE(KEPT_MIN, nr_seen);
	EXPECT_GE(KEPT_MAX, nr_seen);
	EXPECT_EQ(110, bp_hits(fd).count);
	EXPECT_EQ(100 - nr_seen, bp_hits(fd).lost);
}

/* The event is closed by the system call that hits it, before the signal can be sent. */
TEST_F(kernel, system_call_that_closes_the_event)
{
	struct perf_event_attr *attr = (struct perf_event_attr *)word(0);
	int fd;

	*attr = word_attr(1);
	fd = watch_kernel(0, HW_BREAKPOINT_RW);
	ASSERT_GE(fd, 0);
	/* Reads what is watched */
	ASSERT_LE(0, bp_open(attr, 0, -1));
	EXPECT_LE(1, nr_seen);
	forget_seen();
	close(fd);
	getppid();
	EXPECT_EQ(0, nr_seen);
}

/* The hit in the system call, the signal after it, in a thread that slept between. */
TEST_F(kernel, system_call_that_sleeps_is_not_interrupted)
{
	struct pollfd *p = (struct pollfd *)word(0);
	int fd = watch_kernel(0, HW_BREAKPOINT_RW);
	pid_t pid;

	ASSERT_GE(fd, 0);
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_wait_for_state(getppid(), 'S');
		_exit(write(self->in[1], "x", 1) != 1);
	}
	ASSERT_EQ(0, bp_disable(fd));
	*p = (struct pollfd){ .fd = self->in[0], .events = POLLIN };
	ASSERT_EQ(0, bp_enable(fd));
	EXPECT_EQ(1, poll(p, 1, 60000));
	ASSERT_EQ(1, nr_seen);
	EXPECT_LE(1, bp_hits(fd).count);
	expect_word(_metadata, 0, 0, SYNC);
	EXPECT_EQ(0, bp_wait(pid));
}

/* ---------------------------------------------------------------------- new images */

static int exec_with_hits_due(void *arg)
{
	queue = arg;
	block();
	CHECK(watch_words() == 0);
	hit_words();
	CHECK(is_pending());
	return exec_self("clean");
}

TEST_F(trap, exec_drops_what_is_due)
{
	EXPECT_EQ(0, bp_in_child(exec_with_hits_due, NULL));
	EXPECT_EQ(0, bp_in_child(exec_with_hits_due, (void *)1));
}

static int exec_with_full_queue(void *arg)
{
	queue = true;
	block();
	CHECK(watch(0) >= 0);
	bp_store_times(word(0), 1, 100);
	return exec_self("clean");
}

TEST_F(trap, exec_drops_a_queue_that_is_full)
{
	EXPECT_EQ(0, bp_in_child(exec_with_full_queue, NULL));
}

static int exec_with_signal_sent(void *arg)
{
	block();
	CHECK(watch_words() == 0);
	send_trap_to_self();
	if (arg)
		hit_words();
	return exec_self("sent");
}

/* What others sent is pending across an exec as it always was. */
TEST_F(trap, exec_keeps_signals_that_others_sent)
{
	EXPECT_EQ(0, bp_in_child(exec_with_signal_sent, NULL));
	EXPECT_EQ(0, bp_in_child(exec_with_signal_sent, (void *)1));
}

/* The event goes before the new image can make a hit at its place. */
static int exec_and_store(void *arg)
{
	struct perf_event_attr attr = word_attr(0);

	CHECK(bp_open_group(&attr, 0, -1, -1, 0) >= 0);
	bp_store(word(0), 1);
	CHECK(nr_seen == 1);
	return exec_self("store");
}

TEST_F(trap, exec_removes_the_event)
{
	EXPECT_EQ(0, bp_in_child(exec_and_store, NULL));
}

/* The kernel reads the path, which is a hit, on the way to the new image. */
static int exec_of_a_watched_path(void *arg)
{
	char *argv[] = { "perf_sigtrap", NULL };
	char *envp[] = { "PERF_SIGTRAP_EXEC=clean", NULL };

	strcpy(word(0), "/proc/self/exe");
	CHECK(watch_kernel(0, HW_BREAKPOINT_RW) >= 0);
	execve(word(0), argv, envp);
	return 1;
}

TEST_F(kernel, exec_drops_its_own_hits)
{
	EXPECT_EQ(0, bp_in_child(exec_of_a_watched_path, NULL));
}

TEST_F(kernel, exec_that_fails_signals_its_hits)
{
	char *none[] = { NULL };
	int fd;

	strcpy(word(0), "/no/such/file");
	fd = watch_kernel(0, HW_BREAKPOINT_RW);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-1, execve(word(0), none, none));
	EXPECT_EQ(ENOENT, errno);
	ASSERT_EQ(1, nr_seen);
	EXPECT_LE(1, bp_hits(fd).count);
	expect_word(_metadata, 0, 0, SYNC);
}

/* ------------------------------------------------------------------- new processes */

/* What a child finds: nothing, whatever its parent has to expect. */
static int has_nothing_due(void *arg)
{
	CHECK(!is_pending());
	unblock();
	CHECK(!is_pending());
	CHECK(nr_seen == 0);
	return 0;
}

TEST_F(trap, fork_child_has_nothing_due)
{
	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	EXPECT_EQ(0, bp_in_child(has_nothing_due, NULL));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

/* The child borrows the memory, so it is for the parent to look at nr_seen. */
TEST_F(trap, vfork_child_has_nothing_due)
{
	static volatile bool pending;
	pid_t pid;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	pid = vfork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		pending = is_pending();
		unblock();
		_exit(0);
	}
	EXPECT_EQ(0, bp_wait(pid));
	EXPECT_FALSE(pending);
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

static int child_of_a_family(void *arg)
{
	CHECK(!is_pending());
	forget_seen();
	hit_words();
	CHECK(nr_seen == 0);
	unblock();
	CHECK(words_were_seen(ASYNC));
	hit_words();
	CHECK(nr_seen == 2 * W_HITS);
	CHECK(was_seen(W_HITS, word(0), DATA(0), SYNC));
	return 0;
}

/* Members of a family have the events of one, and each its own hits. */
TEST_F(trap, each_of_a_family_has_its_own_hits)
{
	int fd[W_HITS];

	queue = true;
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		self->attr.inherit = 1;
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	block();
	hit_words();
	EXPECT_EQ(0, bp_in_child(child_of_a_family, NULL));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
	for (int i = 0; i < W_HITS; i++)
		EXPECT_EQ(3, bp_hits(fd[i]).count);
}

static pid_t clone_with(__u64 flags)
{
	__u64 args[8] = { flags, 0, 0, 0, SIGCHLD };

	return syscall(__NR_clone3, args, sizeof(args));
}

/* A child that has no handlers would die of what it has inherited. */
TEST_F(trap, child_without_handlers_inherits_nothing)
{
	pid_t pid;

	self->attr.inherit = 1;
	open_it(_metadata, self);
	for (int i = 0; i < 2; i++) {
		pid = clone_with(i ? CLONE_CLEAR_SIGHAND : 0);
		ASSERT_GE(pid, 0);
		if (!pid) {
			bp_store(word(0), 1);
			bp_store(word(0), 1);
			_exit(nr_seen);
		}
		EXPECT_EQ(i ? 0 : 2, bp_wait(pid));
	}
	EXPECT_EQ(2, bp_hits(self->fd).count);
	EXPECT_EQ(0, nr_seen);
}

static int exit_with_hits_due(void *arg)
{
	long hits = (long)arg;

	block();
	CHECK(watch(0) >= 0);
	bp_store_times(word(0), 1, hits);
	return 0;
}

TEST_F(trap, exit_drops_what_is_due)
{
	EXPECT_EQ(0, bp_in_child(exit_with_hits_due, (void *)3));
	EXPECT_EQ(0, bp_in_child(exit_with_hits_due, (void *)40));
}

TEST_F(trap, death_drops_what_is_due)
{
	struct bp_worker w;

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	kill(w.pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, bp_stop(&w));
}

TEST_F(trap, hits_wait_while_stopped)
{
	struct bp_worker w;
	int status;

	queue = true;
	ASSERT_EQ(0, bp_start(&w, worker, (void *)ASYNC));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	kill(w.pid, SIGSTOP);
	EXPECT_EQ(w.pid, waitpid(w.pid, &status, WUNTRACED));
	EXPECT_TRUE(WIFSTOPPED(status));
	kill(w.pid, SIGCONT);
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, bp_stop(&w));
}

/* -------------------------------------------------------------------- other tasks */

/* An event of another process: it is that one that is signalled. */
TEST_F(trap, event_of_another_process)
{
	struct bp_worker w;
	int fd[W_HITS];

	ASSERT_EQ(0, bp_start(&w, worker, (void *)ASYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		fd[i] = bp_open(&self->attr, w.pid, -1);
		ASSERT_GE(fd[i], 0);
	}
	hit_words();
	EXPECT_EQ(W_HITS, bp_do(&w, W_HIT));
	EXPECT_EQ(0, bp_do(&w, W_FORGET));
	/* Gone while one is pending */
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	bp_close(fd, W_HITS);
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_EQ(1, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(0, bp_do(&w, W_PENDING));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(trap, each_hit_of_a_task_that_migrates)
{
	struct bp_cpus cpus = bp_online_cpus();

	BP_NEED_CPUS(cpus, 2);
	queue = true;
	ASSERT_EQ(0, watch_words());
	for (int i = 0; i < 200; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		store_step(word(i % W_HITS));
		ASSERT_EQ(i + 1, nr_seen);
		expect_word(_metadata, i, i % W_HITS, SYNC);
		EXPECT_EQ(i, seen[i].step);
	}
	forget_seen();
	block();
	for (int i = 0; i < 30; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		store_step(word(i % W_HITS));
		nap();
	}
	unblock();
	ASSERT_EQ(30, nr_seen);
	for (int i = 0; i < 30; i++)
		expect_word(_metadata, i, i % W_HITS, ASYNC);
}

#define MEMBERS			4
#define LAPS			200

static int lap[MEMBERS][2];

/*
 * The members of a family hand on a token, so that the CPU goes from one of them to
 * the next; who has it makes a hit. Contexts that are alike may be swapped then.
 */
static int run_laps(int me)
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
		/* The other one is due when the CPU goes on. */
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

static int prepare_laps(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self,
			int fd[2])
{
	bp_pin(bp_online_cpus().cpu[0]);
	for (int i = 0; i < 2; i++) {
		self->attr = word_attr(i);
		self->attr.inherit = 1;
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < MEMBERS; i++)
		ASSERT_EQ(0, pipe2(lap[i], O_CLOEXEC));
	return write(lap[0][1], "", 1) == 1 ? 0 : -EIO;
}

TEST_F(trap, each_process_of_a_family_that_takes_turns)
{
	pid_t pid[MEMBERS];
	int fd[2];

	ASSERT_EQ(0, prepare_laps(_metadata, self, fd));
	for (int i = 1; i < MEMBERS; i++) {
		pid[i] = bp_fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			_exit(run_laps(i));
	}
	EXPECT_EQ(0, run_laps(0));
	for (int i = 1; i < MEMBERS; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(MEMBERS * LAPS, bp_hits(fd[i]).count);
}

static void store_in_turn(int in, int out, int laps, int *bad)
{
	char token;

	for (int i = 0; i < laps; i++) {
		if (read(in, &token, 1) != 1)
			return;
		forget_seen();
		bp_load(word(0), 1);
		*bad += nr_seen != 1 || !was_seen(0, word(0), DATA(0), SYNC);
		if (write(out, &token, 1) != 1)
			return;
	}
}

/*
 * A hit in a system call that sleeps, while another member of the family has the
 * CPU, and hits of its own: each gets its own. The kernel reads the pollfd on the
 * way to sleep.
 */
static int sleep_with_hit(int in, int out, int laps)
{
	struct pollfd *p = (struct pollfd *)word(0);
	int bad = 0;
	char token;

	for (int i = 0; i < laps; i++) {
		forget_seen();
		CHECK(write(out, "", 1) == 1);
		NOTE(bad, poll(p, 1, 60000) == 1);
		NOTE(bad, nr_seen == 1);
		NOTE(bad, was_seen(0, word(0), DATA(0), SYNC));
		CHECK(read(in, &token, 1) == 1);
	}
	return bad != 0;
}

TEST_F(kernel, hit_of_a_sleeper_is_its_own)
{
	struct perf_event_attr attr = word_attr(0);
	struct pollfd *p = (struct pollfd *)word(0);
	int there[2], bad = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe2(there, O_CLOEXEC));
	*p = (struct pollfd){ .fd = self->in[0], .events = POLLIN };
	bp_pin(bp_online_cpus().cpu[0]);
	attr.exclude_kernel = 0;
	attr.bp_type = HW_BREAKPOINT_RW;
	attr.inherit = 1;
	ASSERT_LE(0, bp_open(&attr, 0, -1));
	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		store_in_turn(there[0], self->in[1], 50, &bad);
		_exit(bad);
	}
	EXPECT_EQ(0, sleep_with_hit(self->in[0], there[1], 50));
	EXPECT_EQ(0, bp_wait(pid));
}

/* ------------------------------------------------------------------------ threads */

#ifndef __i386__
TEST_F(trap, event_of_another_thread)
{
	struct bp_worker w;

	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)SYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		EXPECT_LE(0, bp_open(&self->attr, w.pid, -1));
	}
	hit_words();
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(W_HITS, bp_do(&w, W_HIT));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

/* It is the blocked set of the thread that counts, not that of its process. */
TEST_F(trap, thread_that_blocks_keeps_its_own)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)ASYNC));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	EXPECT_EQ(0, bp_do(&w, W_WATCH));
	EXPECT_EQ(0, bp_do(&w, W_HIT));
	EXPECT_EQ(1, bp_do(&w, W_PENDING));
	EXPECT_FALSE(is_pending());
	block();
	EXPECT_EQ(-EAGAIN, take_pending(NULL));
	unblock();
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(trap, new_thread_has_nothing_due)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, watch_words());
	block();
	hit_words();
	ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
	EXPECT_EQ(0, bp_do(&w, W_PENDING));
	EXPECT_EQ(0, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, nr_seen);
	unblock();
	EXPECT_TRUE(words_were_seen(ASYNC));
}

TEST_F(trap, thread_that_ends_drops_what_is_due)
{
	struct bp_worker w;

	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, bp_start_thread(&w, worker, NULL));
		for (int k = 0; k < W_HITS; k++) {
			self->attr = word_attr(k);
			EXPECT_LE(0, bp_open(&self->attr, w.pid, -1));
		}
		EXPECT_EQ(0, bp_do(&w, W_BLOCK));
		EXPECT_EQ(0, bp_do(&w, W_HIT));
		EXPECT_EQ(0, bp_stop(&w));
		EXPECT_FALSE(is_pending());
		syscall(__NR_close_range, 3, ~0U, 0);
	}
	EXPECT_EQ(0, nr_seen);
}

/* Threads that were there before have no part in it, those that come later do. */
TEST_F(trap, inherit_thread_watches_the_process)
{
	struct bp_worker before, after[3], second;
	pid_t pid;

	ASSERT_EQ(0, bp_start_thread(&before, worker, (void *)SYNC));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		self->attr.inherit = 1;
		self->attr.inherit_thread = 1;
		self->fd = bp_open(&self->attr, 0, -1);
		ASSERT_GE(self->fd, 0);
	}
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, bp_start_thread(&after[i], worker, (void *)SYNC));
	}
	EXPECT_EQ(0, bp_do(&before, W_HIT));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(W_HITS, bp_do(&after[i], W_HIT));
		EXPECT_EQ(1, bp_do(&after[i], W_CHECK));
	}
	EXPECT_EQ(0, nr_seen);
	hit_words();
	EXPECT_TRUE(words_were_seen(SYNC));

	pid = bp_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		forget_seen();
		hit_words();
		_exit(nr_seen);
	}
	EXPECT_EQ(0, bp_wait(pid));
	ASSERT_EQ(0, bp_start_thread(&second, worker, (void *)SYNC));
	EXPECT_EQ(W_HITS, bp_do(&second, W_HIT));
	EXPECT_EQ(1, bp_do(&second, W_CHECK));
	EXPECT_EQ(0, bp_stop(&second));
	EXPECT_EQ(5, bp_hits(self->fd).count);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_stop(&after[i]));
	EXPECT_EQ(0, bp_stop(&before));
}

/* Hits before the change carry what was before it, hits after it the new. */
TEST_F(trap, change_by_another_thread)
{
	struct bp_worker w;

	queue = true;
	ASSERT_EQ(0, bp_start_thread(&w, worker, (void *)ASYNC));
	self->attr = word_attr(0);
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(1, bp_do(&w, W_HIT));
	EXPECT_EQ(0, bp_do(&w, W_FORGET));
	EXPECT_EQ(0, bp_do(&w, W_BLOCK));
	for (int i = 0; i < W_HITS; i++) {
		self->attr = word_attr(i);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		/* One of the three is a hit. */
		EXPECT_EQ(0, bp_do(&w, W_HIT));
	}
	EXPECT_EQ(W_HITS, bp_do(&w, W_UNBLOCK));
	EXPECT_EQ(1, bp_do(&w, W_CHECK));
	EXPECT_EQ(0, bp_stop(&w));
}

struct mover {
	volatile int stop;
	int wrong;
	int extra;
	long hits;
};

/* A store to a word has at most one signal, and it says that word. */
static long store_all_the_time(int cmd, void *arg)
{
	struct mover *m = arg;

	for (long i = 0; !m->stop; i++) {
		int w = i % 2, before = nr_seen, came;

		bp_store(word(w), 1);
		came = nr_seen - before;
		m->extra += came > 1;
		if (came)
			m->wrong += !was_seen(before, word(w), DATA(w), SYNC);
		m->hits += came;
		if (i % 16 == 0)
			asm volatile("pause");
	}
	return 0;
}

TEST_F(trap, changes_by_another_thread_all_the_time)
{
	struct mover m = { };
	struct bp_worker w;
	__u64 end;
	int cmd = 0;

	ASSERT_EQ(0, bp_start_thread(&w, store_all_the_time, &m));
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(sizeof(cmd), write(w.cmd[1], &cmd, sizeof(cmd)));
	end = bp_now(CLOCK_MONOTONIC) + 60000000000ULL;
	for (int i = 0; i < 1000 || (m.hits < 100 && bp_now(CLOCK_MONOTONIC) < end); i++) {
		self->attr = word_attr(i % 2);
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr));
		if (i % 8 == 0)
			sched_yield();
	}
	m.stop = 1;
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, m.wrong);
	EXPECT_EQ(0, m.extra);
	EXPECT_LE(100, m.hits);
	EXPECT_EQ(m.hits, bp_hits(self->fd).count);
}

/* Events come and go while their task hits: each hit is at most one signal. */
TEST_F(trap, close_by_another_thread_all_the_time)
{
	struct mover m = { };
	struct bp_worker w;
	int cmd = 0;

	ASSERT_EQ(0, bp_start_thread(&w, store_all_the_time, &m));
	ASSERT_EQ(sizeof(cmd), write(w.cmd[1], &cmd, sizeof(cmd)));
	for (int i = 0; i < 300; i++) {
		self->attr = word_attr(i % 2);
		self->fd = bp_open(&self->attr, w.pid, -1);
		ASSERT_GE(self->fd, 0);
		if (i % 4 == 0)
			sched_yield();
		ASSERT_EQ(0, bp_disable(self->fd));
		ASSERT_EQ(0, bp_enable(self->fd));
		close(self->fd);
	}
	m.stop = 1;
	EXPECT_EQ(0, bp_stop(&w));
	EXPECT_EQ(0, m.wrong);
	EXPECT_EQ(0, m.extra);
	EXPECT_LT(0, m.hits);
}

static long lap_worker(int cmd, void *arg)
{
	return run_laps(cmd);
}

TEST_F(trap, each_thread_of_a_family_that_takes_turns)
{
	struct bp_worker w[MEMBERS];
	int fd[2];
	long err;

	ASSERT_EQ(0, prepare_laps(_metadata, self, fd));
	for (int i = 1; i < MEMBERS; i++) {
		ASSERT_EQ(0, bp_start_thread(&w[i], lap_worker, NULL));
		ASSERT_EQ(sizeof(i), write(w[i].cmd[1], &i, sizeof(i)));
	}
	EXPECT_EQ(0, run_laps(0));
	for (int i = 1; i < MEMBERS; i++) {
		EXPECT_EQ(sizeof(err), read(w[i].ans[0], &err, sizeof(err)));
		EXPECT_EQ(0, err);
		EXPECT_EQ(0, bp_stop(&w[i]));
	}
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(MEMBERS * LAPS, bp_hits(fd[i]).count);
}

static long exec_in_thread(int cmd, void *arg)
{
	block();
	if (watch_words())
		return 1;
	hit_words();
	return exec_self("clean");
}

static int exec_by_a_thread(void *arg)
{
	struct bp_worker w;

	/* The leader has something due as well. */
	block();
	CHECK(watch(3) >= 0);
	bp_store_times(word(3), 1, 5);
	CHECK(!bp_start_thread(&w, exec_in_thread, NULL));
	bp_do(&w, 0);
	return 1;
}

TEST_F(trap, exec_by_a_thread_drops_what_is_due)
{
	EXPECT_EQ(0, bp_in_child(exec_by_a_thread, NULL));
}
#endif

/* ------------------------------------------------------------- events of other kinds */

static struct perf_event_attr other_attr(__u32 type, __u64 config)
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

static int tracepoint_id(const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), TRACING "%s/id", name);
	if (bp_read_file(path, text, sizeof(text)))
		return -1;
	return atoi(text);
}

static bool was_other(int nr, __u32 type, __u32 flags)
{
	const struct trap_info *info = &seen[nr % MAX_SEEN].info;

	return info->signo == SIGTRAP && info->code == TRAP_PERF && info->type == type &&
	       info->data == DATA(0) && info->flags == flags;
}

/* Some page of its own has the faults; whatever else the handler touches is no matter. */
TEST_F(trap, page_faults)
{
	char *mem = mmap(NULL, 8 * BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int faults[8] = { };

	ASSERT_TRUE(mem != MAP_FAILED);
	memset(seen, 0, sizeof(seen));
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	self->attr.exclude_kernel = 1;
	open_it(_metadata, self);
	for (int i = 0; i < 8; i++)
		bp_store(mem + BP_PAGE_SIZE * i + 64, 1);
	ASSERT_EQ(0, bp_disable(self->fd));
	ASSERT_LE(8, nr_seen);
	ASSERT_GE(MAX_SEEN, nr_seen);
	EXPECT_GE(bp_hits(self->fd).count, nr_seen);
	for (int k = 0; k < nr_seen; k++) {
		for (int i = 0; i < 8; i++) {
			if (seen[k].info.addr != (unsigned long)mem + BP_PAGE_SIZE * i + 64)
				continue;
			EXPECT_TRUE(was_other(k, PERF_TYPE_SOFTWARE, SYNC));
			faults[i]++;
		}
	}
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(1, faults[i]);
}

/*
 * Made by the kernel on the task's behalf: those on the way back to user mode coalesce,
 * and are asynchronous if that is the way to a handler.
 */
static void expect_switches(struct __test_metadata *_metadata, FIXTURE_DATA(trap) *self)
{
	struct bp_hits r;
	int wrong = 0;

	open_it(_metadata, self);
	/* Who is slow is overtaken by the timer of a nap, and does not sleep. */
	for (int i = 0; i < 5000 && bp_hits(self->fd).count < 50; i++)
		nap();
	ASSERT_EQ(0, bp_disable(self->fd));
	r = bp_hits(self->fd);
	EXPECT_LE(50, r.count);
	EXPECT_EQ(0, r.lost);
	EXPECT_LT(0, nr_seen);
	EXPECT_GE(r.count, nr_seen);
	for (int i = 0; i < nr_seen && i < MAX_SEEN; i++)
		wrong += !was_other(i, self->attr.type, SYNC) &&
			 !was_other(i, self->attr.type, ASYNC);
	EXPECT_EQ(0, wrong);
}

TEST_F(trap, context_switches)
{
	BP_NEED_ROOT();
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	expect_switches(_metadata, self);
}

TEST_F(trap, tracepoint_of_the_scheduler)
{
	int id = tracepoint_id("sched/sched_switch");

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of the scheduler");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	expect_switches(_metadata, self);
}

/* A clock that goes off wherever the task is just now */
TEST_F(trap, clock)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + 60000000000ULL;

	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	self->attr.sample_period = 10000000;
	self->attr.exclude_kernel = 1;
	open_it(_metadata, self);
	while (nr_seen < 3 && bp_now(CLOCK_MONOTONIC) < end)
		;
	ASSERT_EQ(0, bp_disable(self->fd));
	ASSERT_LE(3, nr_seen);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(TRAP_PERF, seen[i].info.code);
		EXPECT_EQ(PERF_TYPE_SOFTWARE, seen[i].info.type);
		EXPECT_EQ(DATA(0), seen[i].info.data);
	}
}

#ifdef __LP64__
/* Of a 64-bit program: the tracer does not know the system calls of others. */
TEST_F(trap, tracepoint_of_a_system_call)
{
	int id = tracepoint_id("syscalls/sys_enter_getppid");

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of system calls");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	open_it(_metadata, self);
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(getppid(), syscall(__NR_getppid));
		ASSERT_EQ(2 * i, nr_seen);
		EXPECT_EQ(TRAP_PERF, seen[i - 1].info.code);
		EXPECT_EQ(PERF_TYPE_TRACEPOINT, seen[i - 1].info.type);
		EXPECT_EQ(DATA(0), seen[i - 1].info.data);
	}
	EXPECT_EQ(40, bp_hits(self->fd).count);
}
#endif

static void nothing(int sig)
{
}

/* Sends signals to itself, each of which is a hit, and ignores those of the hits or not. */
static pid_t sender(struct perf_event_attr attr, bool ignore)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	signal(SIGUSR1, nothing);
	signal(SIGTRAP, ignore ? SIG_IGN : nothing);
	if (bp_open(&attr, 0, -1) < 0)
		_exit(1);
	for (int i = 0; i < 10 || !ignore; i++)
		raise(SIGUSR1);
	_exit(0);
}

/* To send the signal of a hit is a hit as well: that must not go on for ever. */
TEST_F(trap, tracepoint_of_signals)
{
	int id = tracepoint_id("signal/signal_generate"), status;
	pid_t pid;

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of signals");
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);

	pid = sender(self->attr, true);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);

	for (int i = 0; i < 10; i++) {
		pid = sender(self->attr, false);
		ASSERT_LT(0, pid);
		usleep(20000);
		EXPECT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* Who wakes the task makes a hit of the task's event, but not the task's own. */
TEST_F(trap, none_from_a_tracepoint_that_others_reach)
{
	int id = tracepoint_id("sched/sched_wakeup");
	struct bp_worker w;
	char filter[32];

	BP_NEED_ROOT();
	if (id < 0)
		SKIP(return, "needs the tracepoints of the scheduler");
	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	self->attr = other_attr(PERF_TYPE_TRACEPOINT, id);
	self->fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_GE(self->fd, 0);
	snprintf(filter, sizeof(filter), "pid == %d", w.pid);
	ASSERT_EQ(0, bp_ioctl(self->fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter));
	for (int i = 0; i < 50; i++) {
		bp_wait_for_state(w.pid, 'S');
		EXPECT_EQ(0, bp_do(&w, W_SEEN));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_EQ(0, bp_stop(&w));
}

/* ------------------------------------------------- a clock, and programs that exec */

/* One whose signals come by themselves, in whatever a task does. */
FIXTURE(ticks)
{
	int fd;
};

FIXTURE_SETUP(ticks)
{
	struct perf_event_attr attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	handle_traps(SA_NODEFER);
	attr.sample_period = 1000000;
	attr.exclude_kernel = 1;
	attr.disabled = 1;
	attr.inherit = 1;
	self->fd = bp_open(&attr, 0, -1);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(ticks)
{
	bp_disable(self->fd);
	bp_teardown(_metadata);
}

/* Waits for one more signal, for as long as a loaded machine may take. */
static bool one_more(void)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + 60000000000ULL;
	int before = nr_seen;

	while (nr_seen == before) {
		if (bp_now(CLOCK_MONOTONIC) > end)
			return false;
	}
	return true;
}

/* A child that execs; its new image says so, and runs until it is killed. */
static pid_t start_image(struct __test_metadata *_metadata, int out)
{
	pid_t pid = bp_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		_exit(exec_self("spin"));
	}
	return pid;
}

static void expect_image_runs(struct __test_metadata *_metadata, pid_t pid)
{
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	kill(pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, bp_wait(pid));
}

/* Enough for a signal that should not be, but for the test no reason to wait on. */
static void let_it_tick(void)
{
	poll(NULL, 0, 50);
}

TEST_F(ticks, of_a_child)
{
	pid_t pid = bp_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		bp_enable(self->fd);
		_exit(one_more() ? 42 : 1);
	}
	EXPECT_TRUE(one_more());
	EXPECT_EQ(42, bp_wait(pid));
}

TEST_F(ticks, none_of_a_new_image_if_enabled_later)
{
	pid_t image, child;
	int out[2];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	child = bp_fork();
	ASSERT_GE(child, 0);
	if (!child)
		_exit(one_more() ? 42 : 1);
	image = start_image(_metadata, out[1]);
	EXPECT_EQ(1, read(out[0], &byte, 1));
	EXPECT_EQ(0, bp_enable(self->fd));
	let_it_tick();
	expect_image_runs(_metadata, image);
	EXPECT_TRUE(one_more());
	EXPECT_EQ(42, bp_wait(child));
}

TEST_F(ticks, none_of_a_new_image_if_enabled_before)
{
	pid_t image;
	int out[2];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	EXPECT_EQ(0, bp_enable(self->fd));
	image = start_image(_metadata, out[1]);
	EXPECT_EQ(1, read(out[0], &byte, 1));
	let_it_tick();
	expect_image_runs(_metadata, image);
	EXPECT_TRUE(one_more());
}

#define IMAGES			20

TEST_F_TIMEOUT(ticks, none_of_many_new_images, 300)
{
	pid_t image[IMAGES];
	int out[2];
	char byte;

	ASSERT_EQ(0, pipe2(out, O_CLOEXEC));
	for (int i = 0; i < IMAGES; i++) {
		image[i] = start_image(_metadata, out[1]);
		if (i > IMAGES / 3)
			EXPECT_EQ(0, bp_enable(self->fd));
	}
	for (int i = 0; i < IMAGES; i++)
		EXPECT_EQ(1, read(out[0], &byte, 1));
	let_it_tick();
	for (int i = 0; i < IMAGES; i++)
		expect_image_runs(_metadata, image[i]);
	EXPECT_TRUE(one_more());
}

/* ------------------------------------------------------------------ those without */

#ifdef __LP64__
struct uring {
	int fd;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static int open_uring(struct uring *u)
{
	struct io_uring_params p = { };
	char *ring;

	u->fd = syscall(__NR_io_uring_setup, 1, &p);
	if (u->fd < 0)
		return -errno;
	ring = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		    u->fd, IORING_OFF_SQ_RING);
	u->sqe = mmap(NULL, BP_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		      u->fd, IORING_OFF_SQES);
	if (ring == MAP_FAILED || u->sqe == MAP_FAILED)
		return -ENOMEM;
	u->sq_tail = (unsigned int *)(ring + p.sq_off.tail);
	u->sq_array = (unsigned int *)(ring + p.sq_off.array);
	u->cq_head = (unsigned int *)(ring + p.cq_off.head);
	u->cq_tail = (unsigned int *)(ring + p.cq_off.tail);
	u->cqe = (struct io_uring_cqe *)(ring + p.cq_off.cqes);
	return 0;
}

/* A read that is left to a worker of the kernel */
static int read_by_worker(struct uring *u, int fd, void *to)
{
	memset(u->sqe, 0, sizeof(*u->sqe));
	u->sqe->opcode = IORING_OP_READ;
	u->sqe->flags = IOSQE_ASYNC;
	u->sqe->fd = fd;
	u->sqe->addr = (unsigned long)to;
	u->sqe->len = 1;
	u->sqe->off = -1;
	u->sq_array[0] = 0;
	__atomic_store_n(u->sq_tail, *u->sq_tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return -errno;
	if (*u->cq_head == __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	__atomic_store_n(u->cq_head, *u->cq_head + 1, __ATOMIC_RELEASE);
	return 1;
}

/* A worker is a thread of the process, and the event is inherited, yet it has no handlers. */
TEST_F(kernel, worker_of_the_kernel_gets_none)
{
	struct perf_event_attr attr = word_attr(0);
	struct uring u;
	int err, fd;

	/* Where what is lost would be counted */
	attr.config = SIGTRAP_QUEUE;
	attr.exclude_kernel = 0;
	attr.inherit = 1;
	fd = bp_open(&attr, 0, -1);
	ASSERT_GE(fd, 0);
	err = open_uring(&u);
	if (err == -ENOSYS || err == -EPERM)
		SKIP(return, "needs io_uring");
	ASSERT_EQ(0, err);
	for (int i = 0; i < 20; i++) {
		feed(_metadata, self, 1);
		ASSERT_EQ(1, read_by_worker(&u, self->in[0], word(0)));
	}
	EXPECT_EQ(0, nr_seen);
	EXPECT_FALSE(is_pending());
	EXPECT_EQ(20, bp_hits(fd).count);
	EXPECT_EQ(0, bp_hits(fd).lost);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
	close(u.fd);
}
#endif

/* ------------------------------------------------------------------- what is refused */

TEST_F(trap, needs_a_task)
{
	BP_NEED_ROOT();
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 0));
	self->attr.sigtrap = 0;
	EXPECT_LE(0, bp_open(&self->attr, -1, 0));
	self->attr = other_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, 0));
}

TEST_F(trap, needs_remove_on_exec)
{
	self->attr.remove_on_exec = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.remove_on_exec = 1;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(trap, inherit_thread_needs_inherit)
{
	self->attr.inherit_thread = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.inherit = 1;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
}

/* sig_data is a field that a kernel of before sigtrap does not have. */
TEST_F(trap, sig_data_needs_a_size_that_has_it)
{
	self->attr.size = PERF_ATTR_SIZE_VER6;
	self->attr.sig_data = 0x1234;
	open_it(_metadata, self);
	bp_store(word(0), 1);
	ASSERT_EQ(1, nr_seen);
	expect_seen(_metadata, 0, word(0), 0, SYNC);
}

TEST_F(trap, queue_needs_sigtrap)
{
	self->attr.config = SIGTRAP_QUEUE;
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.sigtrap = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	self->attr.sigtrap = 1;
	for (int bit = 1; bit < 64; bit++) {
		if (1ULL << bit == SIGTRAP_QUEUE)
			continue;
		self->attr.config = SIGTRAP_QUEUE | 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	}
}

TEST_F(trap, queue_cannot_be_changed)
{
	open_it(_metadata, self);
	self->attr.config = SIGTRAP_QUEUE;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &self->attr));
	self->attr.config = 0;
	EXPECT_EQ(0, bp_modify(self->fd, &self->attr));
}

/* Cannot be given or taken away. */
TEST_F(trap, sigtrap_cannot_be_changed)
{
	struct perf_event_attr attr = word_attr(1);
	int plain;

	open_it(_metadata, self);
	attr.sigtrap = 0;
	EXPECT_EQ(-EINVAL, bp_modify(self->fd, &attr));
	plain = bp_open(&attr, 0, -1);
	ASSERT_GE(plain, 0);
	attr.sigtrap = 1;
	EXPECT_EQ(-EINVAL, bp_modify(plain, &attr));
	bp_store(word(1), 1);
	EXPECT_EQ(0, nr_seen);
	bp_store(word(0), 1);
	EXPECT_EQ(1, nr_seen);
}

/* Somebody without privileges but those in @caps */
static int become_nobody_with(unsigned long long caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	prctl(PR_SET_KEEPCAPS, 1);
	if (bp_become_nobody())
		return -errno;
	for (int i = 0; i < 2; i++) {
		data[i].permitted = caps >> (32 * i);
		data[i].effective = caps >> (32 * i);
	}
	return syscall(__NR_capset, &header, data) ? -errno : 0;
}

#ifndef CAP_PERFMON
#define CAP_PERFMON	38
#endif
#define CAP(x)		(1ULL << CAP_##x)

struct stranger {
	unsigned long long caps;
	pid_t victim;
	bool sigtrap;
};

/* The result is the errno. */
static int open_as_stranger(void *arg)
{
	struct perf_event_attr attr = word_attr(0);
	struct stranger *s = arg;
	int fd;

	if (become_nobody_with(s->caps))
		return 255;
	attr.sigtrap = s->sigtrap;
	fd = bp_open(&attr, s->victim, -1);
	return fd < 0 ? -fd : 0;
}

/* A signal changes what a task does: looking on is one right, this is another. */
TEST_F(trap, who_may_signal_a_stranger)
{
	struct stranger s = { .victim = getpid(), .sigtrap = true };

	BP_NEED_ROOT();
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(PERFMON);
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.sigtrap = false;
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	s.sigtrap = true;
	s.caps = CAP(KILL);
	EXPECT_EQ(EACCES, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(PERFMON) | CAP(KILL);
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	s.caps = CAP(SYS_PTRACE);
	EXPECT_EQ(0, bp_in_child(open_as_stranger, &s));
	EXPECT_EQ(0, nr_seen);
}

/* Of the same user, if it may be traced, and of oneself in any case */
static int open_of_the_same_user(void *arg)
{
	struct perf_event_attr attr = word_attr(0);
	pid_t pid, parent = getpid();
	int fd;

	CHECK(!become_nobody_with(0));
	CHECK(watch(1) >= 0);
	bp_store(word(1), 1);
	CHECK(nr_seen == 1);
	for (int dumpable = 0; dumpable < 2; dumpable++) {
		prctl(PR_SET_DUMPABLE, dumpable);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			fd = bp_open(&attr, parent, -1);
			_exit(fd < 0 ? -fd : 0);
		}
		CHECK(bp_wait(pid) == (dumpable ? 0 : EACCES));
	}
	return 0;
}

TEST_F(trap, who_may_signal_the_same_user)
{
	BP_NEED_ROOT();
	EXPECT_EQ(0, bp_in_child(open_of_the_same_user, NULL));
}

/* ----------------------------------------------------------- without any memory */

#define FAILSLAB	"/sys/kernel/debug/failslab/"

static int fail_nth(int fd, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	return pwrite(fd, text, len, 0) == len ? 0 : -errno;
}

static bool has_failed(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
}

/* As with other signals: without memory for what it says it comes nevertheless. */
TEST_F(trap, allocation_that_fails_loses_no_signal)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), failed = 0;
	bool did;

	if (fd < 0 || access(FAILSLAB "verbose", W_OK))
		SKIP(return, "needs CONFIG_FAILSLAB and CONFIG_FAULT_INJECTION_DEBUG_FS");
	ASSERT_EQ(0, bp_write_file(FAILSLAB "verbose", "0"));
	ASSERT_EQ(0, watch_words());
	for (int nth = 1; nth <= 12; nth++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			forget_seen();
			if (blocked)
				block();
			ASSERT_EQ(0, fail_nth(fd, nth));
			hit_words();
			did = has_failed(fd);
			fail_nth(fd, 0);
			unblock();
			getppid();
			EXPECT_EQ(blocked ? 1 : W_HITS, nr_seen + nr_other) {
				TH_LOG("allocation %d, blocked %d: %d seen, %d other",
				       nth, blocked, nr_seen, nr_other);
			}
			failed += did;
		}
	}
	bp_write_file(FAILSLAB "verbose", "2");
	TH_LOG("%d allocations failed", failed);
}

TEST_HARNESS_MAIN
