// SPDX-License-Identifier: GPL-2.0
/*
 * The lifetime of the debug registers that ptrace shows, and their claims:
 *
 * - Each task has registers of its own. They are clear in a new process or thread, and
 *   after exec. They outlive the tracer, but not the task.
 * - A slot that is enabled has a claim. A slot that is disabled keeps its claim until the
 *   task is resumed or detached: a debugger that disables, changes and enables its slots
 *   never finds that another request has got a register. If no register is available, the
 *   write returns ENOSPC, after it was found to be valid, and changes nothing. No refused
 *   write leaves a claim.
 * - perf breakpoints of the same task are independent: each side gets its own hits, and
 *   those of perf neither stop the task nor show in DR6.
 * - The breakpoints follow the task from CPU to CPU, and are never hit by another task.
 */
#include "ptrace_tracee.h"

#define ALL_ON	(dr7_on(0, RW_W, 4) | dr7_on(1, RW_W, 4) | \
		 dr7_on(2, RW_W, 4) | dr7_on(3, RW_W, 4))

/* Watches four words, and hits the third one. */
static int arm_all_and_hit(struct tracee *t)
{
	int n, err = 0;

	for (n = 0; n < BP_SLOTS; n++)
		err = err ?: dr_poke(t, n, DATA(64 * n));
	err = err ?: dr_poke(t, 7, ALL_ON);
	return err ?: do_store(t, DATA(128), 4) == 1 && t->dr6 == (DR6_CLEAN | 4) ? err : -EPROTO;
}

#define EXPECT_CLEAN(t) do {				\
	EXPECT_EQ(0UL, dr_peek(t, 0));			\
	EXPECT_EQ(0UL, dr_peek(t, 1));			\
	EXPECT_EQ(0UL, dr_peek(t, 2));			\
	EXPECT_EQ(0UL, dr_peek(t, 3));			\
	EXPECT_EQ(DR6_CLEAN, dr_peek(t, 6));		\
	EXPECT_EQ(0UL, dr_peek(t, 7));			\
} while (0)

/* Polls a value that a task sets which runs on its own. */
static bool wait_until(__s32 *what, __s32 value)
{
	static const struct timespec nap = { .tv_nsec = 2000000 };
	int i;

	for (i = 0; i < 5000 && *what != value; i++)
		nanosleep(&nap, NULL);
	return *what == value;
}

/* ---- New tasks ---- */

FIXTURE(new_task) {
	struct tracee t;
	struct tracee new;
};

FIXTURE_VARIANT(new_task) {
	enum tracee_op op;
};

FIXTURE_VARIANT_ADD(new_task, fork) {
	.op = OP_FORK,
};

FIXTURE_VARIANT_ADD(new_task, vfork) {
	.op = OP_VFORK,
};

FIXTURE_VARIANT_ADD(new_task, thread) {
	.op = OP_THREAD,
};

FIXTURE_SETUP(new_task)
{
	ASSERT_EQ(0, tracee_spawn(&self->t, false));
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	ASSERT_EQ(0, tracee_split(&self->t, variant->op, &self->new));
}

FIXTURE_TEARDOWN(new_task)
{
	tracee_kill(&self->new);
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

TEST_F(new_task, has_no_addresses)
{
	int n;

	for (n = 0; n < BP_SLOTS; n++)
		EXPECT_EQ(0UL, dr_peek(&self->new, n));
}

TEST_F(new_task, has_a_clean_dr6)
{
	EXPECT_EQ(DR6_CLEAN, dr_peek(&self->new, 6));
	EXPECT_EQ(DR6_CLEAN | 4, dr_peek(&self->t, 6));
}

TEST_F(new_task, has_a_clean_dr7)
{
	EXPECT_EQ(0UL, dr_peek(&self->new, 7));
	EXPECT_EQ(ALL_ON, dr_peek(&self->t, 7));
}

TEST_F(new_task, holds_no_slot)
{
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->new.pid, -1));
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
}

TEST_F(new_task, is_not_watched_and_its_creator_still_is)
{
	EXPECT_EQ(0, tracee_finish(&self->new));
	EXPECT_EQ(0, do_store(&self->new, DATA(0), 4));
	EXPECT_EQ(0, do_store(&self->new, DATA(128), 4));
	EXPECT_EQ(-ESRCH, tracee_do(&self->new, OP_EXIT, 0, 0));
	self->new.pid = 0;

	EXPECT_EQ(0, tracee_do(&self->t, OP_NONE, 0, 0));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(DR6_CLEAN | 1, self->t.dr6);
}

TEST_F(new_task, has_registers_of_its_own)
{
	EXPECT_EQ(0, dr_set(&self->new, 2, DATA(512), dr7_on(2, RW_W, 4)));
	EXPECT_EQ(DATA(128), dr_peek(&self->t, 2));
	EXPECT_EQ(ALL_ON, dr_peek(&self->t, 7));

	EXPECT_EQ(0, tracee_finish(&self->new));
	EXPECT_EQ(0, do_store(&self->new, DATA(128), 4));
	EXPECT_EQ(1, do_store(&self->new, DATA(512), 4));
	EXPECT_EQ(DR6_CLEAN | 4, self->new.dr6);
	EXPECT_EQ(-ESRCH, tracee_do(&self->new, OP_EXIT, 0, 0));
	self->new.pid = 0;

	EXPECT_EQ(0, tracee_do(&self->t, OP_NONE, 0, 0));
	EXPECT_EQ(0, do_store(&self->t, DATA(512), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(128), 4));
	EXPECT_EQ(DR6_CLEAN | 4, self->t.dr6);
}

/* ---- Tests of one tracee ---- */

FIXTURE(tracee) {
	struct tracee t;
	int fd[BP_SLOTS];
};

FIXTURE_SETUP(tracee)
{
	int i;

	for (i = 0; i < BP_SLOTS; i++)
		self->fd[i] = -1;
	ASSERT_EQ(0, tracee_spawn(&self->t, false));
}

static void close_all(int *fd)
{
	int i;

	for (i = 0; i < BP_SLOTS; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

FIXTURE_TEARDOWN(tracee)
{
	close_all(self->fd);
	tracee_kill(&self->t);
	EXPECT_TRUE(all_slots_are_free());
}

/* ---- exec, exit, detach ---- */

TEST_F(tracee, exec_clears_the_registers)
{
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	ASSERT_EQ(0, tracee_become(&self->t, NULL));
	EXPECT_CLEAN(&self->t);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));

	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
	EXPECT_EQ(0, arm_all_and_hit(&self->t));
}

TEST_F(tracee, failed_exec_clears_nothing)
{
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	snprintf(self->t.sh->path, sizeof(self->t.sh->path), "/nonexistent");
	EXPECT_EQ(0, tracee_do(&self->t, OP_EXEC, 0, 0));
	EXPECT_EQ(-ENOENT, self->t.sh->result);
	EXPECT_EQ(ALL_ON, dr_peek(&self->t, 7));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
}

TEST_F(tracee, exec_of_a_thread_clears_the_registers)
{
	struct tracee thread;
	ssize_t n;

	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	ASSERT_EQ(0, tracee_split(&self->t, OP_THREAD, &thread));
	EXPECT_EQ(0, tracee_finish(&thread));
	ASSERT_EQ(0, arm_all_and_hit(&thread));

	n = readlink("/proc/self/exe", self->t.sh->path, sizeof(self->t.sh->path) - 1);
	ASSERT_LT(0, n);
	self->t.sh->path[n] = '\0';
	tracee_order(&thread, OP_EXEC, 0, 0);
	/* The thread gets the pid of the leader, which is killed. */
	ASSERT_EQ(0, ptrace(PTRACE_CONT, thread.pid, 0, 0));
	ASSERT_EQ(self->t.pid, waitpid(self->t.pid, &self->t.status, __WALL));
	ASSERT_EQ(PTRACE_EVENT_EXEC, tracee_event(&self->t));
	EXPECT_CLEAN(&self->t);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
}

TEST_F(tracee, registers_are_there_until_the_exit)
{
	ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, self->t.pid, 0,
			    TRACE_OPTIONS | PTRACE_O_TRACEEXIT));
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_EXIT, 0, 0));
	ASSERT_EQ(PTRACE_EVENT_EXIT, tracee_event(&self->t));
	EXPECT_EQ(DATA(192), dr_peek(&self->t, 3));
	EXPECT_EQ(ALL_ON, dr_peek(&self->t, 7));
	EXPECT_EQ(0, dr_poke(&self->t, 3, DATA(256)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(3, RW_W, BP_WORD)));
	EXPECT_EQ(dr7_on(3, RW_W, BP_WORD), dr_peek(&self->t, 7));
}

TEST_F(tracee, dead_task_holds_no_slot)
{
	siginfo_t si;
	int free_slots;

	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	ASSERT_EQ(0, kill(self->t.pid, SIGKILL));
	ASSERT_EQ(0, waitid(P_PID, self->t.pid, &si, WEXITED | WNOWAIT));
	free_slots = bp_free_slots(-1, 0);
	if (free_slots == -EACCES || free_slots == -EPERM)
		SKIP(return, "not allowed to open a breakpoint for a CPU");
	EXPECT_EQ(BP_SLOTS, free_slots);
}

TEST_F(tracee, detached_task_keeps_its_breakpoints)
{
	ASSERT_EQ(0, dr_set(&self->t, 1, DATA(0), dr7_on(1, RW_W, 4)));
	tracee_order(&self->t, OP_STORE_ALONE, DATA(0), 4);
	self->t.sh->count = true;
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, self->t.pid, 0, 0));

	/* There is no tracer: the task gets the signal. */
	self->t.sh->go = 1;
	ASSERT_TRUE(wait_until(&self->t.sh->result, 1));
	EXPECT_EQ(1, self->t.sh->sig_count);
	EXPECT_EQ(TRAP_HWBKPT, self->t.sh->sig_code);
	EXPECT_NE(0UL, self->t.sh->sig_addr);

	ASSERT_EQ(0, ptrace(PTRACE_ATTACH, self->t.pid, 0, 0));
	ASSERT_EQ(self->t.pid, waitpid(self->t.pid, &self->t.status, 0));
	ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, self->t.pid, 0, TRACE_OPTIONS));
	EXPECT_EQ(DATA(0), dr_peek(&self->t, 1));
	EXPECT_EQ(DR6_CLEAN | 2, dr_peek(&self->t, 6));
	EXPECT_EQ(dr7_on(1, RW_W, 4), dr_peek(&self->t, 7));
	self->t.sh->go = 2;
	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
}

TEST_F(tracee, detached_task_dies_of_a_hit_that_it_does_not_expect)
{
	ASSERT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	tracee_order(&self->t, OP_STORE_ALONE, DATA(0), 4);
	self->t.sh->count = false;
	self->t.sh->go = 2;
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, self->t.pid, 0, 0));
	ASSERT_EQ(self->t.pid, waitpid(self->t.pid, &self->t.status, 0));
	self->t.pid = 0;
	EXPECT_TRUE(WIFSIGNALED(self->t.status));
	EXPECT_EQ(SIGTRAP, WTERMSIG(self->t.status));
}

/*
 * Detaches from @t. A child attaches to it, sets it up with @fn and exits. Returns the
 * status of the child, or a negative errno.
 */
static int hand_to_second_tracer(struct tracee *t, int (*fn)(struct tracee *t))
{
	int status;
	pid_t pid;

	if (ptrace(PTRACE_DETACH, t->pid, 0, 0))
		return -errno;
	pid = fork();
	if (!pid) {
		if (ptrace(PTRACE_ATTACH, t->pid, 0, 0) ||
		    waitpid(t->pid, &status, __WALL) != t->pid)
			_exit(1);
		_exit(fn(t));
	}
	return waitpid(pid, &status, 0) == pid ? status : -errno;
}

static int arm_last(struct tracee *t)
{
	return dr_set(t, 3, DATA(64), dr7_on(3, RW_W, 4)) != 0;
}

TEST_F(tracee, breakpoints_outlive_the_tracer)
{
	tracee_order(&self->t, OP_STORE_ALONE, DATA(64), 4);
	self->t.sh->count = true;
	ASSERT_EQ(0, hand_to_second_tracer(&self->t, arm_last));

	self->t.sh->go = 1;
	ASSERT_TRUE(wait_until(&self->t.sh->result, 1));
	EXPECT_EQ(1, self->t.sh->sig_count);
	ASSERT_EQ(0, ptrace(PTRACE_ATTACH, self->t.pid, 0, 0));
	ASSERT_EQ(self->t.pid, waitpid(self->t.pid, &self->t.status, 0));
	EXPECT_EQ(DATA(64), dr_peek(&self->t, 3));
	EXPECT_EQ(dr7_on(3, RW_W, 4), dr_peek(&self->t, 7));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
}

/* ---- Slots ---- */

static int fill(struct tracee *t, int *fd, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		fd[i] = tracee_watch(t->pid, -1, DATA(0xe00 + 4 * i));
		if (fd[i] < 0)
			return fd[i];
	}
	return 0;
}

TEST_F(tracee, enabled_registers_take_a_slot_each)
{
	unsigned long dr7 = 0;
	int n;

	for (n = 0; n < BP_SLOTS; n++) {
		EXPECT_EQ(BP_SLOTS - n, bp_free_slots(self->t.pid, -1));
		dr7 |= dr7_on(n, RW_W, 1);
		EXPECT_EQ(0, dr_set(&self->t, n, DATA(n), dr7));
	}
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, address_alone_takes_no_slot)
{
	int n;

	for (n = 0; n < BP_SLOTS; n++)
		EXPECT_EQ(0, dr_poke(&self->t, n, DATA(n)));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, disabled_registers_give_their_slots_back_when_the_task_is_resumed)
{
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(1, RW_W, 4)));
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, do_store(&self->t, DATA(192), 4));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(DR6_CLEAN | 2, self->t.dr6);
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, dr_poke(&self->t, 7, ALL_ON));
	EXPECT_EQ(1, do_store(&self->t, DATA(192), 4));
	EXPECT_EQ(DR6_CLEAN | 8, self->t.dr6);
}

/*
 * Disables all, writes the addresses, enables all, while other tasks request
 * breakpoints.
 */
TEST_F(tracee, others_cannot_take_slots_while_they_are_rewritten)
{
	bool root = !geteuid();
	int round, n;

	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	for (round = 0; round < 3; round++) {
		EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
		for (n = 0; n < BP_SLOTS; n++) {
			EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
			if (root)
				EXPECT_EQ(0, bp_free_slots(-1, 0));
			EXPECT_EQ(0, dr_poke(&self->t, n, DATA(512 * round + 64 * n)));
		}
		EXPECT_EQ(0, dr_poke(&self->t, 7, ALL_ON));
		for (n = 0; n < BP_SLOTS; n++) {
			EXPECT_EQ(1, do_store(&self->t, DATA(512 * round + 64 * n), 4));
			EXPECT_EQ(DR6_CLEAN | 1UL << n, self->t.dr6);
		}
	}
	/* The task is killed between these writes, and leaves no claim behind. */
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
}

/* Disabled registers are not enabled by other writes. */
TEST_F(tracee, registers_that_were_disabled_do_not_come_back)
{
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(0, dr_poke(&self->t, 2, DATA(256)));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(2, RW_W, 4)));
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(256), 4));
	EXPECT_EQ(DR6_CLEAN | 4, self->t.dr6);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, detaching_gives_disabled_registers_back)
{
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(3, RW_W, 4)));
	tracee_order(&self->t, OP_STORE_ALONE, DATA(0), 4);
	self->t.sh->count = true;
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, self->t.pid, 0, SIGSTOP));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
}

static int arm_and_disarm_all(struct tracee *t)
{
	if (dr_poke(t, 7, ALL_ON) || dr_poke(t, 7, 0))
		return 2;
	return bp_free_slots(t->pid, -1) ? 3 : 0;
}

TEST_F(tracee, death_of_the_tracer_gives_disabled_registers_back)
{
	static const struct timespec nap = { .tv_nsec = 2000000 };
	int i;

	tracee_order(&self->t, OP_STORE_ALONE, DATA(64), 4);
	self->t.sh->count = true;
	ASSERT_EQ(0, hand_to_second_tracer(&self->t, arm_and_disarm_all));
	for (i = 0; i < 5000 && bp_free_slots(self->t.pid, -1) < BP_SLOTS; i++)
		nanosleep(&nap, NULL);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
}

/* Lets a child that stops itself run to the entry of its next system call. */
static void disable_all_at_entry(struct __test_metadata *_metadata, struct tracee *t)
{
	ASSERT_EQ(t->pid, waitpid(t->pid, &t->status, 0));
	ASSERT_EQ(0, ptrace(PTRACE_SYSCALL, t->pid, 0, 0));
	ASSERT_EQ(t->pid, waitpid(t->pid, &t->status, 0));
	ASSERT_TRUE(WIFSTOPPED(t->status));
	EXPECT_EQ(0, dr_poke(t, 7, ALL_ON));
	EXPECT_EQ(0, dr_poke(t, 7, 0));
}

/* The claims are released even if the task stays in a system call for long. */
TEST_F(tracee, task_that_goes_on_in_a_system_call_gives_disabled_registers_back)
{
	struct tracee t = { .fd = -1 };

	t.pid = fork();
	ASSERT_LE(0, t.pid);
	if (!t.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		tracee_stop();
		for (;;)
			syscall(SYS_pause);
	}
	disable_all_at_entry(_metadata, &t);
	EXPECT_EQ(0, bp_free_slots(t.pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, t.pid, 0, 0));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(t.pid, -1));
	tracee_kill(&t);
}

/* The task has not been to user mode since, so the work that releases them still waits. */
TEST_F(tracee, exec_frees_registers_that_were_disabled_at_its_entry)
{
	struct tracee t = { .fd = -1 };

	t.pid = fork();
	ASSERT_LE(0, t.pid);
	if (!t.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		tracee_stop();
		execl("/proc/self/exe", "exe", NULL);
		_exit(1);
	}
	disable_all_at_entry(_metadata, &t);
	ASSERT_EQ(0, ptrace(PTRACE_CONT, t.pid, 0, 0));
	/* The new image starts with a SIGTRAP. */
	ASSERT_EQ(t.pid, waitpid(t.pid, &t.status, 0));
	EXPECT_TRUE(WIFSTOPPED(t.status) && WSTOPSIG(t.status) == SIGTRAP);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(t.pid, -1));
	tracee_kill(&t);
}

TEST_F(tracee, exec_and_exit_find_disabled_registers)
{
	ASSERT_EQ(0, ptrace(PTRACE_SETOPTIONS, self->t.pid, 0,
			    TRACE_OPTIONS | PTRACE_O_TRACEEXIT));
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	ASSERT_EQ(0, tracee_become(&self->t, NULL));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(0, dr_poke(&self->t, 7, ALL_ON));
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(0, tracee_finish(&self->t));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_EXIT, 0, 0));
	ASSERT_EQ(PTRACE_EVENT_EXIT, tracee_event(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, ALL_ON));
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, full_task_returns_enospc)
{
	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS));
	EXPECT_EQ(-ENOSPC, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(0UL, dr_peek(&self->t, 7));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(0xe00), 4));
	EXPECT_EQ(1, bp_count(self->fd[0]));

	close(self->fd[2]);
	self->fd[2] = -1;
	EXPECT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, enospc_leaves_armed_breakpoints)
{
	ASSERT_EQ(0, dr_set(&self->t, 2, DATA(128), dr7_on(2, RW_W, 4)));
	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS - 1));
	EXPECT_EQ(-ENOSPC, dr_poke(&self->t, 7, dr7_on(0, RW_X, 1) | dr7_on(2, RW_RW, BP_WORD)));
	EXPECT_EQ(dr7_on(2, RW_W, 4), dr_peek(&self->t, 7));
	EXPECT_EQ(0, do_load(&self->t, DATA(128), 4));
	EXPECT_EQ(0, do_store(&self->t, DATA(132), 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(128), 4));
	EXPECT_EQ(DR6_CLEAN | 4, self->t.dr6);
	/* A write that needs no further register succeeds. */
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(2, RW_RW, BP_WORD)));
	EXPECT_EQ(1, do_load(&self->t, DATA(124 + BP_WORD), 4));
}

TEST_F(tracee, enospc_takes_no_slot)
{
	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS - 1));
	EXPECT_EQ(-ENOSPC, dr_poke(&self->t, 7, dr7_on(0, RW_W, 1) | dr7_on(1, RW_W, 1)));
	EXPECT_EQ(0UL, dr_peek(&self->t, 7));
	EXPECT_EQ(1, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, refused_field_takes_no_slot)
{
	int i;

	for (i = 0; i < 8; i++) {
		EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, dr7_on(0, RW_W, 1) | dr7_on(1, RW_X, 1) |
					   DR7_L(3) | DR7_FIELD(3, RW_IO, 0UL)));
	}
	EXPECT_EQ(0UL, dr_peek(&self->t, 7));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->t.pid, -1));
}

TEST_F(tracee, a_slot_may_pass_from_one_register_to_another)
{
	int n;

	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS - 1));
	for (n = BP_SLOTS - 1; n >= 0; n--) {
		EXPECT_EQ(0, dr_poke(&self->t, n, DATA(64 * n)));
		EXPECT_EQ(0, dr_poke(&self->t, 7, dr7_on(n, RW_W, 4)));
		EXPECT_EQ(1, do_store(&self->t, DATA(64 * n), 4));
		EXPECT_EQ(DR6_CLEAN | 1UL << n, self->t.dr6);
	}
}

/* A tracer that has claimed all registers can still change them. */
TEST_F(tracee, full_set_can_be_rearranged)
{
	unsigned long dr7 = dr7_on(0, RW_X, 1) | dr7_on(1, RW_RW, BP_WORD) | dr7_on(2, RW_W, 2) |
			    dr7_on(3, RW_W, 1);

	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, dr7));
	EXPECT_EQ(0, dr_poke(&self->t, 0, CODE(4)));
	EXPECT_EQ(1, do_call(&self->t, 4));
	EXPECT_EQ(DR6_CLEAN | 1, self->t.dr6);
	EXPECT_EQ(1, do_load(&self->t, DATA(60 + BP_WORD), 4));
	EXPECT_EQ(DR6_CLEAN | 2, self->t.dr6);
	EXPECT_EQ(0, do_store(&self->t, DATA(130), 2));
	EXPECT_EQ(0, dr_poke(&self->t, 7, ALL_ON));
	EXPECT_EQ(0, do_call(&self->t, 4));
	EXPECT_EQ(1, do_store(&self->t, DATA(130), 2));
	EXPECT_EQ(DR6_CLEAN | 4, self->t.dr6);
}

TEST_F(tracee, malformed_is_einval_on_a_full_task_too)
{
	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS));
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 0, ~7UL));
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, DR7_L(0) | DR7_FIELD(0, RW_IO, 0UL)));
	EXPECT_EQ(-EINVAL, dr_poke(&self->t, 7, dr7_on(0, RW_W, 4) |
				   DR7_L(1) | DR7_FIELD(1, RW_X, 1UL)));
}

TEST_F(tracee, breakpoint_of_the_cpu_takes_a_slot_from_the_task)
{
	self->fd[0] = tracee_watch(-1, 0, DATA(0xe00));
	if (self->fd[0] == -EACCES || self->fd[0] == -EPERM)
		SKIP(return, "not allowed to open a breakpoint for a CPU");
	ASSERT_LE(0, self->fd[0]);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(self->t.pid, -1));
	EXPECT_EQ(-ENOSPC, dr_poke(&self->t, 7, ALL_ON));
	EXPECT_EQ(0UL, dr_peek(&self->t, 7));
}

TEST_F(tracee, full_task_leaves_no_slot_to_the_cpu)
{
	int free_slots = bp_free_slots(-1, 0);

	if (free_slots == -EACCES || free_slots == -EPERM)
		SKIP(return, "not allowed to open a breakpoint for a CPU");
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, bp_free_slots(-1, 0));
}

TEST_F(tracee, disabled_task_leaves_all_slots_to_the_cpu)
{
	int free_slots = bp_free_slots(-1, 0);

	if (free_slots == -EACCES || free_slots == -EPERM)
		SKIP(return, "not allowed to open a breakpoint for a CPU");
	ASSERT_EQ(0, arm_all_and_hit(&self->t));
	EXPECT_EQ(0, dr_poke(&self->t, 7, 0));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, 0));
}

TEST(tracees_do_not_compete_for_slots)
{
	struct tracee t[5];
	unsigned int i;

	memset(t, 0, sizeof(t));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		ASSERT_EQ(0, tracee_spawn(&t[i], false));
		EXPECT_EQ(0, arm_all_and_hit(&t[i]));
	}
	for (i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT_EQ(1, do_store(&t[i], DATA(192), 4));
	for (i = 0; i < ARRAY_SIZE(t); i++)
		tracee_kill(&t[i]);
	EXPECT_TRUE(all_slots_are_free());
}

/* ---- Beside perf ---- */

static int bp_open_x(pid_t pid, unsigned long addr)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = addr,
		.bp_len = sizeof(long),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
}

TEST_F(tracee, perf_hit_neither_stops_nor_shows)
{
	self->fd[0] = tracee_watch(self->t.pid, -1, DATA(0));
	self->fd[1] = bp_open_x(self->t.pid, CODE(0));
	ASSERT_LE(0, self->fd[0]);
	ASSERT_LE(0, self->fd[1]);
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(0, do_call(&self->t, 0));
	EXPECT_EQ(0, do_call(&self->t, 0));
	EXPECT_EQ(1, bp_count(self->fd[0]));
	EXPECT_EQ(2, bp_count(self->fd[1]));
	EXPECT_CLEAN(&self->t);
}

TEST_F(tracee, both_see_a_hit_at_the_same_address)
{
	int i;

	self->fd[0] = bp_open_x(self->t.pid, CODE(0));
	ASSERT_LE(0, self->fd[0]);
	ASSERT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	self->fd[1] = bp_open_x(self->t.pid, CODE(0));
	ASSERT_LE(0, self->fd[1]);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(1, do_call(&self->t, 0));
		EXPECT_EQ(DR6_CLEAN | 1, self->t.dr6);
		EXPECT_EQ(TRAP_HWBKPT, self->t.si.si_code);
	}
	EXPECT_EQ(5, bp_count(self->fd[0]));
	EXPECT_EQ(5, bp_count(self->fd[1]));
}

/* A hit of a perf breakpoint is a #DB, too: DR6 is about the last one. */
TEST_F(tracee, perf_hit_wipes_an_old_dr6)
{
	self->fd[0] = tracee_watch(self->t.pid, -1, DATA(0));
	ASSERT_LE(0, self->fd[0]);
	ASSERT_EQ(0, dr_set(&self->t, 3, DATA(64), dr7_on(3, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(DR6_CLEAN | 8, dr_peek(&self->t, 6));
	EXPECT_EQ(0, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(DR6_CLEAN, dr_peek(&self->t, 6));
}

/* DR6 has the numbers of ptrace's registers, whatever slots perf uses. */
TEST_F(tracee, dr6_has_numbers_of_registers_not_of_slots)
{
	ASSERT_EQ(0, fill(&self->t, self->fd, BP_SLOTS - 1));
	ASSERT_EQ(0, dr_set(&self->t, 1, DATA(64), dr7_on(1, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(DR6_CLEAN | 2, self->t.dr6);

	close_all(self->fd);
	EXPECT_EQ(1, do_store(&self->t, DATA(64), 4));
	EXPECT_EQ(DR6_CLEAN | 2, self->t.dr6);

	ASSERT_EQ(0, dr_set(&self->t, 3, DATA(0), dr7_on(1, RW_W, 4) | dr7_on(3, RW_W, 4)));
	self->fd[0] = tracee_watch(self->t.pid, -1, DATA(128));
	ASSERT_LE(0, self->fd[0]);
	ASSERT_EQ(0, dr_set(&self->t, 0, DATA(256), dr7_on(0, RW_W, 4) | dr7_on(3, RW_W, 4)));
	EXPECT_EQ(1, do_store(&self->t, DATA(0), 4));
	EXPECT_EQ(DR6_CLEAN | 8, self->t.dr6);
	EXPECT_EQ(1, do_store(&self->t, DATA(256), 4));
	EXPECT_EQ(DR6_CLEAN | 1, self->t.dr6);
	EXPECT_EQ(0, do_store(&self->t, DATA(64), 4));
}

TEST_F(tracee, perf_events_come_and_go_under_armed_registers)
{
	int i, fd;

	ASSERT_EQ(0, dr_poke(&self->t, 0, DATA(0)));
	ASSERT_EQ(0, dr_poke(&self->t, 2, DATA(64)));
	ASSERT_EQ(0, dr_poke(&self->t, 7, dr7_on(0, RW_W, 4) | dr7_on(2, RW_W, 4)));
	for (i = 0; i < 6; i++) {
		fd = tracee_watch(self->t.pid, -1, DATA(128));
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
		EXPECT_EQ(1, bp_count(fd));
		EXPECT_EQ(1, do_store(&self->t, DATA(i & 1 ? 64 : 0), 4));
		EXPECT_EQ(DR6_CLEAN | (i & 1 ? 4 : 1), self->t.dr6);
		close(fd);
		EXPECT_EQ(0, do_store(&self->t, DATA(128), 4));
	}
}

/*
 * A hit of a perf breakpoint must not turn a block step into a single step. The block
 * is a whole function: the step ends after the call.
 */
TEST_F(tracee, block_step_survives_a_perf_hit)
{
	unsigned long addr = SHARED_BASE + offsetof(struct shared, calls);

	ASSERT_EQ(0, dr_set(&self->t, 0, CODE(0), dr7_on(0, RW_X, 1)));
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_SINGLEBLOCK, 0));
	if (self->t.ip == CODE(0) + CODE_STEP)
		SKIP(return, "the CPU does not step branches (DEBUGCTL.BTF)");
	EXPECT_EQ(0, tracee_finish(&self->t));

	self->fd[0] = tracee_watch(self->t.pid, -1, addr);
	ASSERT_LE(0, self->fd[0]);
	ASSERT_EQ(SIGTRAP, tracee_begin(&self->t, OP_CALL, CODE(0), 0));
	ASSERT_EQ(SIGTRAP, tracee_resume(&self->t, PTRACE_SINGLEBLOCK, 0));
	EXPECT_EQ(1, bp_count(self->fd[0]));
	EXPECT_TRUE(self->t.ip < CODE(0) || self->t.ip >= CODE(1));
	EXPECT_EQ(TRAP_TRACE, self->t.si.si_code);
	EXPECT_EQ(0, tracee_finish(&self->t));
}

/* ---- CPUs ---- */

static int move_to(struct tracee *t, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(t->pid, sizeof(set), &set) ? -errno : 0;
}

TEST_F(tracee, breakpoints_follow_the_task_to_each_cpu)
{
	int round, cpu, hits = 0;

	ASSERT_EQ(0, dr_set(&self->t, 1, DATA(0), dr7_on(1, RW_W, 4)));
	for (round = 0; round < 2; round++) {
		for (cpu = 0; cpu < CPU_SETSIZE && hits < 16; cpu++) {
			if (move_to(&self->t, cpu))
				continue;
			EXPECT_EQ(1, do_store(&self->t, DATA(0), 4)) {
				TH_LOG("CPU %d", cpu);
			}
			EXPECT_EQ(DR6_CLEAN | 2, self->t.dr6);
			EXPECT_EQ(0, do_store(&self->t, DATA(64), 4));
			hits++;
		}
	}
	EXPECT_LT(1, hits);
}

TEST_F(tracee, neighbour_on_the_same_cpu_is_not_watched)
{
	struct tracee other;

	ASSERT_EQ(0, tracee_spawn(&other, false));
	ASSERT_EQ(0, dr_set(&self->t, 0, DATA(0), dr7_on(0, RW_RW, BP_WORD)));
	ASSERT_EQ(0, dr_set(&other, 0, DATA(64), dr7_on(0, RW_RW, BP_WORD)));
	EXPECT_EQ(0, move_to(&self->t, 0));
	EXPECT_EQ(0, move_to(&other, 0));

	/* Each task writes repeatedly to the word that only the other one watches. */
	tracee_order(&self->t, OP_STORE_OFTEN, DATA(64), 4);
	tracee_order(&other, OP_STORE_OFTEN, DATA(0), 4);
	self->t.sh->count = 300;
	other.sh->count = 300;
	ASSERT_EQ(0, ptrace(PTRACE_CONT, self->t.pid, 0, 0));
	EXPECT_EQ(0, tracee_finish(&other));
	ASSERT_EQ(self->t.pid, waitpid(self->t.pid, &self->t.status, 0));
	EXPECT_EQ(SIGSTOP, WSTOPSIG(self->t.status));

	EXPECT_EQ(1, do_store(&self->t, DATA(BP_WORD - 4), 4));
	EXPECT_EQ(1, do_store(&other, DATA(60 + BP_WORD), 4));
	tracee_kill(&other);
}

/* ---- Stress ---- */

#define STRESS_ROUNDS	1500
#define STRESS_SECONDS	3

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* All values are derived from @round; returns the line that failed, or 0. */
static int stress_round(struct tracee *t, unsigned int round)
{
	unsigned long addr = DATA(64 * (round % 31)), dr7;
	int n = round % BP_SLOTS, other = (round / BP_SLOTS) % BP_SLOTS;

	dr7 = dr7_on(n, RW_W, 4) | dr7_on(other, RW_W, 4);
	switch (round % 3) {
	case 0:
		if (dr_poke(t, 7, 0))
			return __LINE__;
		break;
	case 1:
		if (dr_poke(t, 7, dr7_on(n, RW_X, 1)))
			return __LINE__;
		break;
	}
	if (other != n && dr_poke(t, other, DATA(2048)))
		return __LINE__;
	if (dr_poke(t, n, addr) || dr_poke(t, 7, dr7))
		return __LINE__;
	if (dr_poke(t, 7, dr7_on(other, RW_X, 1) | DR7_L(n) | DR7_FIELD(n, RW_X, 1UL)) != -EINVAL)
		return __LINE__;
	if (dr_poke(t, n, addr + 1) != -EINVAL)
		return __LINE__;
	if (dr_peek(t, n) != addr || dr_peek(t, 7) != dr7)
		return __LINE__;
	if (round % 13)
		return 0;
	if (do_store(t, addr, 4) != 1 || t->dr6 != (DR6_CLEAN | 1UL << n))
		return __LINE__;
	if (do_store(t, addr + 4, 4))
		return __LINE__;
	return 0;
}

static int stress(unsigned int seed)
{
	time_t end = now() + STRESS_SECONDS;
	unsigned int round;
	struct tracee t;
	int line;

	if (tracee_spawn(&t, false))
		return __LINE__;
	for (round = seed; round < seed + STRESS_ROUNDS && now() < end; round++) {
		line = stress_round(&t, round);
		if (line) {
			fprintf(stderr, "# round %u, line %d: %s\n", round, line, strerror(errno));
			return line;
		}
	}
	tracee_kill(&t);
	return 0;
}

TEST(two_tracers_write_registers_all_the_time)
{
	int i, status;
	pid_t pid[2];

	for (i = 0; i < 2; i++) {
		pid[i] = fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i])
			_exit(stress(i * 7001) != 0);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_TRUE(all_slots_are_free());
}

int main(int argc, char **argv)
{
	tracee_main(argc, argv);
	return test_harness_run(argc, argv);
}
