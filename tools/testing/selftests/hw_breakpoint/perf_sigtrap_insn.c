// SPDX-License-Identifier: GPL-2.0
/*
 * attr.sigtrap: several hits of one instruction, and a debugger.
 *
 * The rule: if one instruction hits several breakpoints, each gives a signal, unless the
 * handler of an earlier one closes, disables or moves its event. A tracer sees each.
 */
#include <setjmp.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "sigtrap.h"

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

/* Expects one signal of each event, in any order, all before the instruction. */
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

/* The next signal is delivered before the handler's first instruction. */
TEST_F(insn, each_event_signals_into_the_handler)
{
	handle_traps(SA_NODEFER);
	count_func(&self->n);
	ASSERT_EQ(variant->nr, nr_seen);
	EXPECT_EQ(1, self->n);
	expect_each_event(_metadata, 0, variant->nr, 0, SYNC);
	/* The innermost handler is the first to execute its body. */
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

/* A handler need not return: the other signals come when SIGTRAP is unblocked. */
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

/* As NR_SIGTIMEDWAIT in sigtrap.c */
#ifdef __NR_ppoll_time64
#define NR_PPOLL		__NR_ppoll_time64
#else
#define NR_PPOLL		__NR_ppoll
#endif

/* System calls that wait with another mask */
static int wait_in_sigsuspend(const sigset_t *mask)
{
	return sigsuspend(mask);
}

static int wait_in_ppoll(const sigset_t *mask)
{
	__s64 patience[2] = { 10, 0 };

	return syscall(NR_PPOLL, NULL, 0, patience, mask, 8);
}

static int (*wait_with)(const sigset_t *mask);
static int waits, interrupted;

/* The handler of the first signal waits for the others, one after the other. */
static void wait_in_first(int nr)
{
	sigset_t none;

	sigemptyset(&none);
	while (!nr && interrupted < waits && wait_with(&none) == -1 && errno == EINTR)
		interrupted++;
}

TEST_F(insn, handler_that_waits_with_sigtrap_unblocked_gets_the_others)
{
	static int (*const calls[])(const sigset_t *mask) = { wait_in_ppoll, wait_in_sigsuspend };

	waits = variant->nr - 1;
	in_handler = wait_in_first;
	for (int i = 0; i < 2; i++) {
		wait_with = calls[i];
		interrupted = 0;
		forget_seen();
		count_func(&self->n);
		ASSERT_EQ(waits, interrupted);
		ASSERT_EQ(variant->nr, nr_seen);
		expect_each_event(_metadata, 0, variant->nr, 0, SYNC);
		for (int k = 0; k < variant->nr; k++)
			EXPECT_EQ(k > 0, seen[k].depth);
	}
}

static int result_of_ppoll, result_of_sigtimedwait;

#define MOMENT_NS	20000000

static void wait_with_sigtrap_blocked(int nr)
{
	/* ppoll() writes the time that is left. */
	__s64 moment[2] = { 0, MOMENT_NS };
	sigset_t set;

	if (nr)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	result_of_ppoll = syscall(NR_PPOLL, NULL, 0, moment, &set, 8) ? -errno : 0;
	result_of_sigtimedwait = take_signal(NULL, MOMENT_NS);
}

/* The others do not interrupt it, and come when it has returned. */
TEST_F(insn, handler_that_waits_with_sigtrap_blocked_gets_them_later)
{
	in_handler = wait_with_sigtrap_blocked;
	count_func(&self->n);
	EXPECT_EQ(0, result_of_ppoll);
	EXPECT_EQ(-EAGAIN, result_of_sigtimedwait);
	ASSERT_EQ(variant->nr, nr_seen);
	expect_each_event(_metadata, 0, variant->nr, 0, SYNC);
	for (int i = 0; i < variant->nr; i++)
		EXPECT_EQ(0, seen[i].depth);
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
	/* After that, hits with SIGTRAP unblocked do not coalesce. */
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

static void change_in_first(int nr)
{
	for (int i = 0; !nr && i < change.nr; i++)
		change_event(change.fd[i], change.what, count_next, DATA(9));
}

/*
 * The handler of the first signal closes, disables or moves all events. Their other
 * hits must then give no signal, because the program no longer expects it.
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
	/* Enabling the events again does not bring their hits back. */
	for (int i = 0; i < variant->nr; i++)
		EXPECT_EQ(0, bp_enable(change.fd[i]));
	EXPECT_EQ(1, nr_seen);
	count_func(&self->n);
	EXPECT_EQ(1 + variant->nr, nr_seen);
}

/* The other members of a group stop with their leader. */
TEST_F(insn, handler_that_disables_the_leader_gets_no_more)
{
	struct perf_event_attr attr = bp_attr_sw(PERF_COUNT_SW_DUMMY);

	syscall(__NR_close_range, 3, ~0U, 0);
	change.nr = 1;
	change.what = DO_DISABLE;
	change.fd[0] = bp_open(&attr, 0, -1);
	ASSERT_GE(change.fd[0], 0);
	for (int i = 0; i < variant->nr; i++) {
		attr = insn_attr(count_insn, DATA(i));
		ASSERT_LE(0, bp_open_group(&attr, 0, -1, change.fd[0], 0));
	}
	in_handler = change_in_first;
	self->n = 0;
	count_func(&self->n);
	EXPECT_EQ(1, self->n);
	EXPECT_EQ(1, nr_seen);
	EXPECT_FALSE(is_pending());
}

/* The moved events are hit at their new address, all of them. */
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

/*
 * A queued hit of an event that is moved is kept as it was; it is dropped with an event
 * that is closed or disabled.
 */
TEST_F(insn, queued_hits_survive_modify_but_not_close_or_disable)
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

/* The handler of the step before step_insn returns to step_insn. */
static int steps_traced(void)
{
	int attempts = bp_attempts();

	do {
		forget_seen();
		step_func();
	} while (!nr_seen && --attempts);

	return nr_traced;
}

/*
 * The trap of the step and the hits may be one exception; both are reported. All
 * registers had breakpoints before, so unused registers may still hold the address.
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
	bool calls;
	bool waits;
};

static int seen_in_first;

/* The first handler calls the kernel while the other hits wait for its end. */
static void call_in_handler(int nr)
{
	if (nr)
		return;
	syscall(__NR_getppid);
	seen_in_first = nr_seen;
}

/*
 * Hits count_insn once; the exit status is the number of signals, or of those that came
 * before the end of the first handler if this calls the kernel, or that interrupted it if
 * it waits.
 */
static int tracee(void *arg)
{
	struct tracee *t = arg;
	int n = 0;

	in_handler = t->calls ? call_in_handler : NULL;
	if (t->waits) {
		in_handler = wait_in_first;
		wait_with = wait_in_ppoll;
		waits = t->events - 1;
	}
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
	if (n != 1)
		return 100;
	if (t->calls)
		return seen_in_first;
	return t->waits ? interrupted : nr_seen;
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

/*
 * Waits for the next stop; returns false, and the exit status, if the tracee has
 * exited.
 */
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

/*
 * Each stop is one hit; the tracee does not get the signals that the tracer suppresses.
 */
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
			EXPECT_EQ((unsigned long)count_insn, bp_tracee_ip(pid));
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

TEST_F(insn, tracer_sees_hits_made_while_blocked)
{
	struct tracee t = { .events = variant->nr, .blocked = true };

	trace_hits(_metadata, &t, 1);
	trace_hits(_metadata, &t, 0);
	queue = true;
	trace_hits(_metadata, &t, 1);
}

static void expect_stop(struct __test_metadata *_metadata, pid_t pid, int sig)
{
	int status;

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	EXPECT_EQ(sig, WSTOPSIG(status));
}

/*
 * A tracer that sets the mask at the end of a system call: the tracee returns from this
 * stop without a look at its signals unless one is pending.
 */
TEST_F(insn, tracer_unblocks_the_others)
{
	struct tracee t = { .events = variant->nr, .calls = true };
	pid_t pid = start_tracee(_metadata, &t);
	__u64 no_signals = 0;

	ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
	expect_stop(_metadata, pid, SIGTRAP);
	ASSERT_EQ(0, ptrace(PTRACE_SYSCALL, pid, 0, SIGTRAP));
	expect_stop(_metadata, pid, SIGTRAP | 0x80);
	ASSERT_EQ(0, ptrace(PTRACE_SYSCALL, pid, 0, 0));
	expect_stop(_metadata, pid, SIGTRAP | 0x80);
	ASSERT_EQ(0, ptrace(PTRACE_SETSIGMASK, pid, sizeof(no_signals), &no_signals));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
	for (int i = 1; i < t.events; i++) {
		expect_stop(_metadata, pid, SIGTRAP);
		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, SIGTRAP));
	}
	EXPECT_EQ(t.events, bp_wait(pid));
}

/* At its stops before and after the call the tracee looks at the hits, too. */
TEST_F(insn, tracer_stops_a_handler_that_waits)
{
	struct tracee t = { .events = variant->nr, .waits = true };
	pid_t pid = start_tracee(_metadata, &t);
	int status;

	ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		ASSERT_EQ(0, ptrace(PTRACE_SYSCALL, pid, 0, sig == SIGTRAP ? sig : 0));
	}
	bp_forget_child(pid);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(t.events - 1, WEXITSTATUS(status));
}

struct stops {
	int hits;
	int before;
	int after;
};

static struct stops step_tracee(struct __test_metadata *_metadata, struct tracee *t)
{
	pid_t pid = start_tracee(_metadata, t);
	struct stops stops = { };
	struct trap_info info;
	int status;

	ASSERT_EQ(0, ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
	while (next_stop(_metadata, pid, &info, &status)) {
		unsigned long ip = bp_tracee_ip(pid);

		if (info.code == TRAP_PERF) {
			EXPECT_EQ((unsigned long)count_insn, ip);
			EXPECT_EQ((unsigned long)count_insn, info.addr);
			stops.hits++;
		} else {
			EXPECT_EQ(TRAP_TRACE, info.code);
			stops.before += ip == (unsigned long)count_insn;
			stops.after += ip == (unsigned long)count_next;
		}
		ASSERT_EQ(0, ptrace(stops.after ? PTRACE_CONT : PTRACE_SINGLESTEP,
				    pid, 0, 0));
	}
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));

	return stops;
}

/* The step to the instruction and the hits there, then the step over the instruction */
TEST_F(insn, tracer_that_steps_sees_both)
{
	struct tracee t = { .events = variant->nr };
	int attempts = bp_attempts();
	struct stops stops;

	do {
		stops = step_tracee(_metadata, &t);
	} while (!stops.hits && --attempts);
	EXPECT_EQ(variant->nr, stops.hits);
	EXPECT_EQ(1, stops.before);
	EXPECT_EQ(1, stops.after);
}

/*
 * -------------------------------------- instruction and data breakpoint of one
 * instruction
 */

/*
 * The hit of the instruction breakpoint comes first, that of the data breakpoint
 * second.
 */
TEST_F(trap, instruction_and_its_data_signal_in_order)
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

/* Moves on at the first signal, and ends at the second. */
static void step_on(int nr)
{
	struct perf_event_attr attr = insn_attr(nr ? (const char *)step_func : count_next,
						DATA(5));

	bp_modify(step_fd, &attr);
}

/*
 * A program steps by moving its instruction breakpoint, over an instruction that hits a
 * data breakpoint. The hardware may report the data hit and the hit of the next
 * instruction at once. If the handler of the first signal moves the instruction
 * breakpoint, the second hit must give no signal.
 */
TEST_F(trap, moved_instruction_breakpoint_does_not_signal_for_the_old_place)
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

static int insn_fd[2];

/* Moves the event of the first signal: its old address then hits only the other event. */
static void hit_the_other_event(int nr)
{
	struct perf_event_attr attr = insn_attr((const char *)step_func, seen[0].info.data);
	int n;

	if (nr)
		return;
	bp_modify(insn_fd[seen[0].info.data - DATA(0)], &attr);
	count_func(&n);
}

/* The signal of the other event waits until the handler has returned. */
TEST_F(trap, hit_in_a_handler_coalesces_with_the_one_that_waits)
{
	for (int i = 0; i < 2; i++) {
		insn_fd[i] = watch_insn(count_insn, DATA(i));
		ASSERT_LE(0, insn_fd[i]);
	}
	in_handler = hit_the_other_event;
	count_func(word(0));
	ASSERT_EQ(2, nr_seen);
	for (int i = 0; i < 2; i++)
		expect_seen(_metadata, i, count_insn, seen[i].info.data, SYNC);
	EXPECT_NE(seen[0].info.data, seen[1].info.data);
}

/* Four data breakpoints, all hit by one store */
TEST_F(trap, each_data_breakpoint_that_one_store_hits_counts)
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
	/* TCG reports only one data breakpoint of an instruction. */
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

TEST_HARNESS_MAIN
