// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints that children inherit.
 *
 * The rule: the count of an inherited event is the sum over the parent and all
 * children; each of these tasks has a claim of its own while it lives; enabling,
 * disabling and closing the parent's event applies to all.
 */
#include "bp_test.h"

enum { CMD_STORE = 1, CMD_FORK, CMD_THREAD, CMD_FREE };

#define MANY	100

static char *page;

static void *store_thread(void *arg)
{
	bp_store_times(arg, 1, MANY);
	return NULL;
}

static long fork_store(void *mem)
{
	pid_t pid = fork();

	if (!pid) {
		bp_store_times(mem, 1, MANY);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	return waitpid(pid, NULL, 0) == pid ? 0 : -errno;
}

static long member(int cmd, void *mem)
{
	pthread_t thread;

	switch (cmd) {
	case CMD_STORE:
		bp_store_times(mem, 1, MANY);
		return 0;
	case CMD_FORK:
		return fork_store(mem);
	case CMD_THREAD:
		if (pthread_create(&thread, NULL, store_thread, mem))
			return -1;
		return pthread_join(thread, NULL);
	case CMD_FREE:
		return bp_free_slots(0, -1);
	}
	return -EINVAL;
}

FIXTURE(inherit)
{
	char *mem;
	struct perf_event_attr attr;
	struct bp_cpus cpus;
};

FIXTURE_SETUP(inherit)
{
	page = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, page);
	self->mem = page;
	self->cpus = bp_online_cpus();
	self->attr = bp_attr_w(self->mem, 1);
	self->attr.inherit = 1;
}

FIXTURE_TEARDOWN(inherit)
{
	bp_teardown(_metadata);
}

/* -------------------------------------------------------------------- the count */

TEST_F(inherit, child_counts_with_the_parent)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker child;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	bp_store_times(self->mem, 1, 3);
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(MANY + 3, bp_count(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(2 * MANY + 3, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(2 * MANY + 3, bp_count(fd));
}

TEST_F(inherit, without_the_flag_the_child_does_not_count)
{
	struct bp_worker child;
	int fd;

	self->attr.inherit = 0;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(0, bp_count(fd));
}

TEST_F(inherit, thread_counts_with_its_creator)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker thread;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start_thread(&thread, member, self->mem));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(inherit, grandchildren_and_their_threads_count)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker child;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_THREAD));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(3 * MANY, bp_count(fd));
}

TEST_F(inherit, all_registers_are_inherited_together)
{
	int fd[BP_SLOTS];
	struct bp_worker child;

	for (int i = 0; i < BP_SLOTS; i++) {
		self->attr.bp_addr = (unsigned long)self->mem + 8 * i;
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < BP_SLOTS; i++) {
		ASSERT_EQ(0, bp_start(&child, member, self->mem + 8 * i));
		EXPECT_EQ(0, bp_do(&child, CMD_STORE));
		EXPECT_EQ(0, bp_stop(&child));
	}
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(MANY, bp_count(fd[i]));
}

TEST_F(inherit, members_that_share_a_cpu_all_count)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker w[4];

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, bp_start(&w[i], member, self->mem));
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(0, bp_do(&w[i % 4], CMD_STORE));
		bp_store(self->mem, 1);
	}
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
	EXPECT_EQ(100 * MANY + 100, bp_count(fd));
}

TEST_F(inherit, group_is_inherited_with_its_members)
{
	struct perf_event_attr second = self->attr;
	struct bp_worker child;
	int a, b;

	self->attr.disabled = 1;
	second.bp_addr += 8;
	a = bp_open(&self->attr, 0, -1);
	ASSERT_GE(a, 0);
	b = bp_open_group(&second, 0, -1, a, 0);
	ASSERT_GE(b, 0);
	EXPECT_EQ(0, bp_enable(a));
	ASSERT_EQ(0, bp_start(&child, member, self->mem + 8));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(0, bp_count(a));
	EXPECT_EQ(2 * MANY, bp_count(b));
}

TEST_F(inherit, event_bound_to_a_cpu_counts_the_family_there_alone)
{
	struct bp_worker child;
	int fd;

	BP_NEED_CPUS(self->cpus, 2);
	fd = bp_open(&self->attr, 0, self->cpus.cpu[1]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(0, bp_count(fd));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(fd));
}

/* With inherit_stat each task keeps a count of its own until it exits. */
TEST_F(inherit, inherit_stat_sums_up_all_the_same)
{
	struct bp_worker w[2];
	int fd;

	self->attr.inherit_stat = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_start(&w[0], member, self->mem));
	ASSERT_EQ(0, bp_start(&w[1], member, self->mem));
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(0, bp_do(&w[i % 2], CMD_STORE));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[1]));
	EXPECT_EQ(20 * MANY, bp_count(fd));
}

/* --------------------------------------------------------- operations on the parent */

TEST_F(inherit, child_of_a_disabled_event_starts_disabled)
{
	struct bp_worker child;
	int fd;

	self->attr.disabled = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_enable(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_disable(fd));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(inherit, refresh_is_refused)
{
	int fd;

	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
}

TEST_F(inherit, ring_needs_a_cpu)
{
	struct bp_ring ring;
	int fd;

	self->attr.sample_period = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));
	close(fd);
	fd = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));
	bp_ring_unmap(&ring);
}

/* Hits of a child are written to the ring of the parent's event, with its id. */
TEST_F(inherit, child_samples_into_the_ring_of_the_parent)
{
	struct {
		struct perf_event_header header;
		__u64 id;
		__u32 pid, tid;
	} *s;
	struct bp_worker child;
	union bp_record rec;
	struct bp_ring ring;
	int fd, samples = 0;

	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID;
	fd = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 4, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	s = (void *)&rec;
	while (bp_ring_next(&ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		EXPECT_EQ(bp_id(fd), s->id);
		EXPECT_EQ(child.pid, s->pid);
		EXPECT_EQ(child.pid, s->tid);
	}
	EXPECT_EQ(MANY, samples);
	bp_ring_unmap(&ring);
}

/* Lost records are counted for the parent, whose ring it is. */
TEST_F(inherit, lost_records_of_a_group_are_read_while_a_child_lives)
{
	struct {
		__u64 nr;
		struct bp_hits hits[2];
	} before, after;
	struct bp_worker child;
	struct bp_ring ring;
	int fd[2];

	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_IP;
	self->attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_LOST;
	fd[0] = bp_open(&self->attr, 0, self->cpus.cpu[0]);
	ASSERT_GE(fd[0], 0);
	self->attr.bp_addr += 8;
	fd[1] = bp_open_group(&self->attr, 0, self->cpus.cpu[0], fd[0], 0);
	ASSERT_GE(fd[1], 0);
	ASSERT_EQ(0, bp_ring_map(&ring, fd[0], 1, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, bp_ioctl(fd[1], PERF_EVENT_IOC_SET_OUTPUT, fd[0]));

	/* The first event fills the ring. */
	bp_store_times(self->mem, 1, 1000);
	bp_store_times(self->mem + 8, 1, 7);
	ASSERT_EQ(sizeof(before), read(fd[0], &before, sizeof(before)));
	ASSERT_EQ(2, before.nr);
	EXPECT_LT(0, before.hits[0].lost);
	EXPECT_EQ(7, before.hits[1].lost);

	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	ASSERT_EQ(sizeof(after), read(fd[0], &after, sizeof(after)));
	EXPECT_EQ(before.hits[0].lost, after.hits[0].lost);
	EXPECT_EQ(7, after.hits[1].lost);

	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	ASSERT_EQ(sizeof(after), read(fd[0], &after, sizeof(after)));
	EXPECT_EQ(before.hits[0].count + MANY, after.hits[0].count);
	EXPECT_EQ(before.hits[0].lost + MANY, after.hits[0].lost);
	EXPECT_EQ(0, bp_stop(&child));
	bp_ring_unmap(&ring);
}

/* ---------------------------------------------------------------------- the slots */

TEST_F(inherit, child_has_a_claim_of_its_own)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker child;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&child, CMD_FREE));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(inherit, full_set_leaves_the_child_nothing)
{
	struct bp_worker child;
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	ASSERT_EQ(0, bp_start(&child, member, self->mem));
	EXPECT_EQ(0, bp_do(&child, CMD_FREE));
	for (int i = 0; i < BP_SLOTS; i++) {
		close(fd[i]);
		EXPECT_EQ(i + 1, bp_do(&child, CMD_FREE));
	}
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(inherit, fork_storm_loses_no_slot)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open(&self->attr, 0, -1);
		ASSERT_GE(fd[i], 0);
	}
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(0, fork_store(self->mem));
	EXPECT_LE(100 * MANY, bp_count(fd[0]) + bp_count(fd[1]) +
			      bp_count(fd[2]) + bp_count(fd[3]));
	bp_close(fd, BP_SLOTS);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

/* Many children are alive at once, and exit in the order in which they were created. */
TEST_F(inherit, family_gives_back_one_by_one)
{
	int fd = bp_open(&self->attr, 0, -1);
	struct bp_worker w[16];

	BP_NEED_ROOT();
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 16; i++)
		ASSERT_EQ(0, bp_start(&w[i], member, self->mem));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpus.cpu[0]));
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
	for (int i = 0; i < 16; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

static int parent_that_leaves_first(void *arg)
{
	struct perf_event_attr *attr = arg;
	int gate[2];
	pid_t pid;
	char c;

	if (bp_open(attr, 0, -1) < 0 || pipe(gate))
		return 255;
	pid = fork();
	if (pid < 0)
		return 254;
	if (pid)
		return 0;
	/*
	 * The test is a subreaper, so the orphan becomes its child; it continues when
	 * the parent has exited.
	 */
	close(gate[1]);
	if (read(gate[0], &c, 1) != 0)
		_exit(253);
	bp_store_times(page, 1, MANY);
	_exit(bp_free_slots(0, -1));
}

/*
 * The child has inherited the descriptor, so the parent's exit does not close the event,
 * and the child keeps its claim.
 */
TEST_F(inherit, child_outlives_the_event)
{
	int status;

	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	EXPECT_EQ(0, bp_in_child(parent_that_leaves_first, &self->attr));
	ASSERT_LT(0, wait(&status));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(BP_SLOTS - 1, WEXITSTATUS(status));
}

/*
 * perf may swap the contexts of parent and child that run on one CPU, and claims must
 * follow: a task that has n events can open BP_SLOTS - n more, and these count.
 */
struct exchange {
	volatile __u64 *counts;
	struct perf_event_attr attr;
	int rounds;
};

static void ping(int out, int in, int rounds)
{
	char c = 'x';

	while (rounds--) {
		if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
			_exit(252);
	}
}

static int exchange_child(struct exchange *x, int go)
{
	int fd[BP_SLOTS], nr;
	char c;

	/*
	 * End of file: the parent has exited, because no process has the other end
	 * open.
	 */
	if (read(go, &c, 1) != 0)
		return 251;
	for (nr = 0; nr < BP_SLOTS; nr++) {
		struct perf_event_attr attr = bp_attr_w(page + 64 + 8 * nr, 1);

		fd[nr] = bp_open(&attr, 0, -1);
		if (fd[nr] < 0)
			break;
	}
	for (int i = 0; i < nr; i++)
		bp_store_times(page + 64 + 8 * i, 1, 10);
	for (int i = 0; i < nr; i++)
		x->counts[i] = bp_count(fd[i]);
	return nr;
}

static int exchange_parent(void *arg)
{
	int there[2], back[2], go[2];
	struct exchange *x = arg;
	pid_t pid;

	if (bp_open(&x->attr, 0, -1) < 0 || pipe(there) || pipe(back) || pipe(go))
		return 255;
	pid = fork();
	if (pid < 0)
		return 254;
	if (!pid) {
		syscall(__NR_close_range, go[1], go[1], 0);
		ping(back[1], there[0], x->rounds);
		_exit(exchange_child(x, go[0]));
	}
	ping(there[1], back[0], x->rounds);
	return 0;
}

TEST_F(inherit, contexts_that_are_swapped_keep_their_claims)
{
	struct exchange x = { .counts = bp_map_shared(), .attr = self->attr };
	int status;

	ASSERT_NE(NULL, x.counts);
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int round = 0; round < 40; round++) {
		x.rounds = 1 + round % 6;
		ASSERT_EQ(0, bp_in_child(exchange_parent, &x));
		ASSERT_LT(0, wait(&status));
		ASSERT_TRUE(WIFEXITED(status));
		/*
		 * The child inherited the descriptor of one event, and with it a claim.
		 */
		EXPECT_EQ(BP_SLOTS - 1, WEXITSTATUS(status));
		for (int i = 0; i < BP_SLOTS - 1; i++)
			EXPECT_EQ(10, x.counts[i]);
	}
}

/* Two events of a parent that takes turns with its child */
struct turns {
	struct perf_event_attr attr[2];
	int nr;
};

/*
 * On one CPU each turn is a switch from one of the two to the other. The exit status is
 * the number of breakpoints that the child can open then.
 */
static int take_turns(void *arg)
{
	struct turns *turns = arg;
	struct bp_worker child;
	int nr;

	for (int i = 0; i < 2; i++) {
		if (bp_open(&turns->attr[i], 0, -1) < 0)
			return 255;
	}
	if (bp_start(&child, member, page))
		return 254;
	for (int i = 0; i < turns->nr; i++) {
		if (bp_do(&child, CMD_STORE))
			return 253;
	}
	nr = bp_do(&child, CMD_FREE);
	return bp_stop(&child) ? 252 : nr;
}

/*
 * The child inherits the only event in the context of its parent, but not the event of its
 * parent's process. Claims in a context also have to fit the claims of the process of the
 * context, so these two contexts must not be swapped: the child would be refused a register
 * that is available. A switch by way of a third task swaps nothing, hence the many rounds.
 */
TEST_F(inherit, event_of_the_parent_process_takes_no_register_from_the_child)
{
	struct perf_event_attr process = bp_attr_w(self->mem + 64, 1);
	struct turns turns;

	BP_NEED_CONFIG(BP_PROCESS);
	process.config = BP_PROCESS;
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	for (int round = 0; round < 40; round++) {
		turns.attr[round % 2] = self->attr;
		turns.attr[(round + 1) % 2] = process;
		turns.nr = round % 6;
		EXPECT_EQ(BP_SLOTS - 1, bp_in_child(take_turns, &turns)) {
			TH_LOG("round %d", round);
		}
	}
}

/* ------------------------------------------------------------------ kernel addresses */

static int fork_as_nobody(void *arg)
{
	pid_t pid;

	(void)arg;
	pid = fork();
	if (pid < 0)
		return errno;
	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : 255;
}

static long drop_and_fork(int cmd, void *arg)
{
	if (cmd == CMD_FORK)
		return fork_as_nobody(arg);
	return bp_become_nobody();
}

/* CAP_SYS_ADMIN was checked when root opened the event, not again at fork. */
TEST_F(inherit, kernel_address_does_not_keep_an_unprivileged_task_from_forking)
{
	struct bp_worker child;
	void *addr;

	BP_NEED_ROOT();
	BP_NEED(BP_TASK_IN_KERNEL, "a task cannot watch kernel addresses");
	addr = bp_ksym("panic_timeout");
	if (!addr)
		SKIP(return, "panic_timeout is not in /proc/kallsyms");
	ASSERT_EQ(0, bp_start(&child, drop_and_fork, NULL));
	ASSERT_EQ(0, bp_do(&child, 0));
	self->attr.bp_addr = (unsigned long)addr;
	self->attr.exclude_kernel = 0;
	ASSERT_LE(0, bp_open(&self->attr, child.pid, -1));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_HARNESS_MAIN
