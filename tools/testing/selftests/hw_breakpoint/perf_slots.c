// SPDX-License-Identifier: GPL-2.0
/*
 * How many breakpoints can be open, and for which tasks and CPUs they are accounted.
 *
 * The rule: on each CPU, the claims of the CPU and the claims of any one task fit into
 * the registers together. The claims of a task are not checked against those of other
 * tasks. A claim exists as long as its event can run. A request that is refused claims
 * nothing.
 */
#include "bp_test.h"

static char mem[64] __aligned(64);

FIXTURE(slots)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int cpu;
};

FIXTURE_SETUP(slots)
{
	self->attr = bp_attr_w(mem, 4);
	self->cpus = bp_online_cpus();
	self->cpu = self->cpus.cpu[0];
}

FIXTURE_TEARDOWN(slots)
{
	bp_teardown(_metadata);
}

static long idle(int cmd, void *arg)
{
	(void)arg;
	return cmd;
}

/* Returns how many more breakpoints the worker itself can open. */
static long own_free_slots(int cmd, void *arg)
{
	(void)cmd;
	(void)arg;
	return bp_free_slots(0, -1);
}

/* ------------------------------------------------------------- one task or one CPU */

TEST_F(slots, task_has_as_many_as_there_are_registers)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
}

TEST_F(slots, cpu_has_as_many_as_there_are_registers)
{
	BP_NEED_ROOT();
	for (int i = 0; i < self->cpus.nr; i++) {
		int fd[BP_SLOTS];

		ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpus.cpu[i], fd));
		EXPECT_EQ(-ENOSPC, bp_open(&self->attr, -1, self->cpus.cpu[i]));
	}
}

TEST_F(slots, task_on_one_cpu_has_as_many_as_there_are_registers)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, self->cpu, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, self->cpu));
}

TEST_F(slots, types_share_the_same_registers)
{
	struct perf_event_attr rw = bp_attr(HW_BREAKPOINT_RW, mem, sizeof(long));
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	BP_NEED(!BP_OWN_REGISTERS, "instructions have registers of their own");
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_LE(0, bp_open(&rw, 0, -1));
	EXPECT_LE(0, bp_open(&x, 0, -1));
	EXPECT_EQ(1, bp_free_slots_with(&x, 0, -1));
	EXPECT_LE(0, bp_open(&x, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&rw, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&x, 0, -1));
}

TEST_F(slots, refused_event_does_not_disturb_the_others)
{
	char *page = bp_map_page(PROT_READ | PROT_WRITE);
	int fd[BP_SLOTS];

	ASSERT_NE(NULL, page);
	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open_w(page + 8 * i, 1);
		ASSERT_GE(fd[i], 0);
	}
	for (int round = 1; round <= 10; round++) {
		EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
		for (int i = 0; i < BP_SLOTS; i++)
			bp_store(page + 8 * i, 1);
	}
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(10, bp_count(fd[i]));
}

/* attr.pinned does not change the number of breakpoints that can be open. */
TEST_F(slots, pinned_events_count_like_the_others)
{
	self->attr.pinned = 1;
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
	self->attr.pinned = 0;
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
}

TEST_F(slots, disabled_events_keep_their_slots)
{
	self->attr.disabled = 1;
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
}

TEST_F(slots, each_close_frees_a_slot)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	for (int i = 0; i < BP_SLOTS; i++) {
		close(fd[i]);
		EXPECT_EQ(i + 1, bp_free_slots(0, -1));
	}
}

TEST_F(slots, duplicate_of_the_descriptor_keeps_the_slot)
{
	int fd = bp_open(&self->attr, 0, -1), copy = dup(fd);

	ASSERT_GE(fd, 0);
	ASSERT_GE(copy, 0);
	close(fd);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close(copy);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(slots, mapped_ring_keeps_the_slot)
{
	struct bp_ring ring;
	int fd;

	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));
	close(fd);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	bp_ring_unmap(&ring);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(slots, thousand_rounds_lose_no_slot)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < 250; i++) {
		ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
		bp_close(fd, BP_SLOTS);
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

/* ------------------------------------------------------------------- several tasks */

TEST_F(slots, slots_of_one_task_do_not_limit_another)
{
	struct bp_worker other;
	int fd[BP_SLOTS], more[BP_SLOTS];

	ASSERT_EQ(0, bp_start(&other, own_free_slots, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(BP_SLOTS, bp_do(&other, 0));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, more));
	EXPECT_EQ(0, bp_do(&other, 0));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, other.pid, -1));
	bp_close(fd, BP_SLOTS);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_do(&other, 0));
	bp_close(more, BP_SLOTS);
	EXPECT_EQ(BP_SLOTS, bp_do(&other, 0));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(slots, threads_of_a_process_have_their_own)
{
	struct bp_worker thread;
	int fd[BP_SLOTS], more[BP_SLOTS];

	ASSERT_EQ(0, bp_start_thread(&thread, own_free_slots, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(BP_SLOTS, bp_do(&thread, 0));
	ASSERT_EQ(BP_SLOTS, bp_fill(thread.pid, -1, more));
	EXPECT_EQ(0, bp_do(&thread, 0));
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(slots, claim_belongs_to_the_watched_task)
{
	struct bp_worker other;
	int fd[BP_SLOTS];

	ASSERT_EQ(0, bp_start(&other, own_free_slots, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, fd));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_do(&other, 0));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(slots, task_can_fill_each_cpu_on_its_own)
{
	for (int i = 0; i < self->cpus.nr; i++) {
		int fd[BP_SLOTS];

		ASSERT_EQ(BP_SLOTS, bp_fill(0, self->cpus.cpu[i], fd));
		EXPECT_EQ(0, bp_free_slots(0, self->cpus.cpu[i]));
	}
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, 0, -1));
}

TEST_F(slots, event_of_all_cpus_and_of_one_add_up)
{
	BP_NEED_CPUS(self->cpus, 2);
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_LE(0, bp_open(&self->attr, 0, self->cpus.cpu[0]));
	EXPECT_LE(0, bp_open(&self->attr, 0, self->cpus.cpu[0]));
	EXPECT_EQ(1, bp_free_slots(0, self->cpus.cpu[0]));
	EXPECT_EQ(3, bp_free_slots(0, self->cpus.cpu[1]));
	EXPECT_EQ(1, bp_free_slots(0, -1));
}

/* -------------------------------------------------------------- CPUs and tasks */

TEST_F(slots, cpu_claim_reduces_every_task_by_one)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, own_free_slots, NULL));
	for (int i = 1; i <= BP_SLOTS; i++) {
		ASSERT_LE(0, bp_open(&self->attr, -1, self->cpu));
		EXPECT_EQ(BP_SLOTS - i, bp_free_slots(0, -1));
		EXPECT_EQ(BP_SLOTS - i, bp_do(&other, 0));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(slots, cpu_claim_does_not_limit_other_cpus)
{
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpus.cpu[0], fd));
	EXPECT_EQ(0, bp_free_slots(0, self->cpus.cpu[0]));
	EXPECT_EQ(0, bp_free_slots(0, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, self->cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[1]));
}

TEST_F(slots, fullest_task_limits_the_slots_of_a_cpu)
{
	struct bp_worker other;
	int one, two;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, idle, NULL));
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(3, bp_free_slots(-1, self->cpu));
	one = bp_open(&self->attr, other.pid, -1);
	EXPECT_EQ(3, bp_free_slots(-1, self->cpu));
	two = bp_open(&self->attr, other.pid, -1);
	EXPECT_EQ(2, bp_free_slots(-1, self->cpu));
	close(one);
	EXPECT_EQ(3, bp_free_slots(-1, self->cpu));
	close(two);
	EXPECT_EQ(3, bp_free_slots(-1, self->cpu));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(slots, task_bound_to_a_cpu_takes_from_that_cpu_alone)
{
	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_LE(0, bp_open(&self->attr, 0, self->cpus.cpu[1]));
	ASSERT_LE(0, bp_open(&self->attr, 0, self->cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(-1, self->cpus.cpu[1]));
}

TEST_F(slots, one_event_a_cpu_takes_one_slot_of_each)
{
	BP_NEED_ROOT();
	for (int i = 0; i < self->cpus.nr; i++)
		ASSERT_LE(0, bp_open(&self->attr, -1, self->cpus.cpu[i]));
	for (int i = 0; i < self->cpus.nr; i++)
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpus.cpu[i]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

TEST_F(slots, full_task_on_the_last_cpu_stops_a_claim_there_alone)
{
	struct bp_worker other;
	int fd[BP_SLOTS], last = self->cpus.cpu[self->cpus.nr - 1];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	ASSERT_EQ(0, bp_start(&other, idle, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, last, fd));
	EXPECT_EQ(-ENOSPC, bp_open(&self->attr, -1, last));
	EXPECT_LE(0, bp_open(&self->attr, -1, self->cpus.cpu[0]));
	EXPECT_EQ(0, bp_stop(&other));
}

/* -------------------------------------------------------------- the end of a claim */

TEST_F(slots, exit_frees_all_slots_while_descriptors_are_open)
{
	struct bp_worker other;
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, idle, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, fd));
	EXPECT_EQ(0, bp_free_slots(-1, self->cpu));
	EXPECT_EQ(0, bp_stop(&other));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(0, bp_count(fd[i]));
}

TEST_F(slots, exit_frees_all_slots_while_the_zombie_remains)
{
	struct bp_worker other;
	int fd[BP_SLOTS];
	siginfo_t info;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, idle, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, self->cpu, fd));
	EXPECT_EQ(0, bp_free_slots(-1, self->cpu));
	close(other.cmd[1]);
	ASSERT_EQ(0, waitid(P_PID, other.pid, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
	bp_close(fd, BP_SLOTS);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
	EXPECT_EQ(0, bp_wait(other.pid));
}

TEST_F(slots, exit_of_a_thread_frees_all_slots)
{
	struct bp_worker thread;
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start_thread(&thread, idle, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(thread.pid, -1, fd));
	EXPECT_EQ(0, bp_free_slots(-1, self->cpu));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(slots, close_after_exit_frees_nothing_twice)
{
	struct bp_worker other;
	int dead[BP_SLOTS], live[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, idle, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, dead));
	EXPECT_EQ(0, bp_stop(&other));
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, self->cpu, live));
	bp_close(dead, BP_SLOTS);
	EXPECT_EQ(0, bp_free_slots(-1, self->cpu));
	EXPECT_EQ(0, bp_free_slots(0, -1));
}

/* Child side of the exec tests: the exit status is the number of free slots. */
static int count_after_exec(void)
{
	return bp_free_slots(0, -1);
}

static int exec_with_open_events(void *arg)
{
	unsigned long flags = *(unsigned long *)arg;
	struct perf_event_attr attr = bp_attr_w(mem, 4);

	for (int i = 0; i < BP_SLOTS; i++) {
		if (bp_open_group(&attr, 0, -1, -1, flags) < 0)
			return 255;
	}
	execl("/proc/self/exe", "perf_slots", "--free", NULL);
	return 254;
}

TEST_F(slots, exec_closes_what_is_marked_close_on_exec)
{
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;

	EXPECT_EQ(BP_SLOTS, bp_in_child(exec_with_open_events, &flags));
	flags = 0;
	EXPECT_EQ(0, bp_in_child(exec_with_open_events, &flags));
}

/* ------------------------------------------------------- requests that are refused */

TEST_F(slots, malformed_requests_take_no_slot)
{
	struct perf_event_attr bad = self->attr;

	bad.bp_len = 33;
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(-EINVAL, bp_open(&bad, 0, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

static int open_on(void *arg)
{
	struct perf_event_attr attr = bp_attr_w(mem, 4);
	pid_t pid = *(pid_t *)arg;
	int fd = pid ? bp_open(&attr, pid, -1) : bp_open(&attr, -1, 0);

	return fd < 0 ? -fd : 0;
}

TEST_F(slots, forbidden_requests_take_no_slot)
{
	pid_t self_pid = getpid(), none = 0;

	BP_NEED_ROOT();
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(EACCES, bp_as_nobody(open_on, &self_pid));
		EXPECT_EQ(EACCES, bp_as_nobody(open_on, &none));
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, 0));
}

/*
 * Requests that fail in perf core, after the checks of the breakpoint PMU: a group
 * whose members do not match, a ring buffer that cannot be shared.
 */
TEST_F(slots, requests_that_fail_late_take_no_slot)
{
	struct perf_event_attr pinned = self->attr;
	int leader, sibling;

	BP_NEED_CPUS(self->cpus, 2);
	leader = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(leader, 0);
	sibling = bp_open_group(&self->attr, 0, self->cpus.cpu[0], leader, 0);
	ASSERT_GE(sibling, 0);
	pinned.pinned = 1;
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, self->cpus.cpu[1], leader, 0));
		EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, self->cpus.cpu[0], sibling, 0));
		EXPECT_EQ(-EINVAL, bp_open_group(&pinned, 0, self->cpus.cpu[0], leader, 0));
		EXPECT_EQ(-EINVAL, bp_open_group(&self->attr, 0, self->cpus.cpu[1], leader,
						 PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT));
	}
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, self->cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, self->cpus.cpu[1]));
}

TEST_F(slots, requests_for_dead_tasks_take_no_slot)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(-ESRCH, bp_open(&self->attr, pid, -1));
}

TEST_F(slots, requests_without_a_free_descriptor_take_no_slot)
{
	int fd, last = -1, nr = 0;

	while ((fd = dup(0)) >= 0) {
		last = fd;
		nr++;
	}
	ASSERT_GT(nr, 0);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EMFILE, bp_open(&self->attr, 0, -1));
	close(last);
	for (int i = 0; i < 10; i++) {
		fd = bp_open(&self->attr, 0, -1);
		EXPECT_EQ(last, fd);
		EXPECT_EQ(-EMFILE, bp_open(&self->attr, 0, -1));
		close(fd);
	}
}

/* -------------------------------------------------------------- the list of claims */

#define CLAIMS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"
#define KPTR_RESTRICT	"/proc/sys/kernel/kptr_restrict"

/* Number of claims and registers that the kernel lists with @addr */
static int count_listed(const void *addr)
{
	FILE *f = fopen(CLAIMS_FILE, "re");
	char line[512], text[32];
	int nr = 0;

	if (!f)
		return -1;
	snprintf(text, sizeof(text), " addr=0x%lx ", (unsigned long)addr);
	while (fgets(line, sizeof(line), f))
		nr += !!strstr(line, text);
	fclose(f);
	return nr;
}

/* The list shows addresses of the kernel to readers to whom /proc/kallsyms shows them. */
TEST_F(slots, list_hides_addresses_like_kallsyms)
{
	const int lines = BP_LISTS_REGISTERS ? 2 : 1;
	struct perf_event_attr kernel;
	char restricted[16];
	int shown, hidden;
	void *addr;

	BP_NEED_ROOT();
	if (access(CLAIMS_FILE, R_OK))
		SKIP(return, "the kernel lists no claims");
	addr = bp_ksym("kernel_kobj");
	ASSERT_NE(NULL, addr);
	kernel = bp_attr_w(addr, sizeof(long));
	kernel.exclude_kernel = 0;
	ASSERT_EQ(0, bp_pin(self->cpu));
	ASSERT_LE(0, bp_open(&kernel, -1, self->cpu));
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	ASSERT_EQ(0, bp_read_file(KPTR_RESTRICT, restricted, sizeof(restricted)));

	/* A claim, and the register of this CPU */
	EXPECT_EQ(lines, count_listed(addr));
	EXPECT_EQ(lines, count_listed(mem));
	EXPECT_EQ(0, count_listed(NULL));
	ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, "2"));
	shown = count_listed(addr);
	hidden = count_listed(NULL);
	EXPECT_EQ(lines, count_listed(mem));
	ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, restricted));
	EXPECT_EQ(0, shown);
	EXPECT_EQ(lines, hidden);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--free"))
		return count_after_exec();
	return test_harness_run(argc, argv);
}
