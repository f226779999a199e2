// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints of CPUs, processes and threads side by side, at random, held against a
 * list.
 *
 * The rule: for each CPU c and thread t of process p a request is granted exactly if,
 * with it,
 *
 *	cpu(c) + process(p, c) + thread(t, c) + (any flexible ? 1 : 0) + wide <= registers
 *
 * and then each guaranteed breakpoint counts each access that it is for, whether it is
 * in a group or not.  Flexible ones are in no group here.  A debugger takes registers of
 * the thread that it traces.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "process.h"

#define TRACEFS		"/sys/kernel/tracing/"

#define OWN_THREADS	2
#define PROCESSES	2
#define HOLDERS		(OWN_THREADS + 1)
#define MOST_OPEN	24
#define STEPS		400

/* Values of entry::thread that are no thread */
enum { OF_CPU = -1, OF_PROCESS = -2 };

/**
 * struct entry - a breakpoint that is open
 * @fd: its file
 * @thread: index of the thread, OF_CPU or OF_PROCESS
 * @process: OF_PROCESS: the process
 * @cpu: index of the CPU, -1 for any
 * @leader: OF_PROCESS: the entry that leads its group, -1 if it leads or is single
 * @flexible: it has a register for a part of the time
 * @seen: what it should have counted
 */
struct entry {
	int fd;
	int thread;
	int process;
	int cpu;
	int leader;
	bool flexible;
	long long seen;
};

FIXTURE(matrix)
{
	char *mem;
	struct bp_cpus cpus;
	struct bp_worker worker[HOLDERS];
	struct entry entry[MOST_OPEN];
	int wide;
	unsigned int random;
};

/* The workers of this process, and one of the child, are threads 0, 1 and 2. */
static int process_of(int thread)
{
	return thread >= OWN_THREADS;
}

static long store_at(int cmd, void *mem)
{
	bp_store((char *)mem + SECOND * cmd, 1);
	return 0;
}

FIXTURE_SETUP(matrix)
{
	BP_NEED_ROOT();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->cpus = bp_online_cpus();
	self->random = 1;
	for (int i = 0; i < MOST_OPEN; i++)
		self->entry[i].fd = -1;
	for (int i = 0; i < OWN_THREADS; i++)
		ASSERT_EQ(0, bp_start_thread(&self->worker[i], store_at, self->mem));
	ASSERT_EQ(0, bp_start(&self->worker[OWN_THREADS], store_at, self->mem));
}

FIXTURE_TEARDOWN(matrix)
{
	bp_teardown(_metadata);
}

static int random_below(FIXTURE_DATA(matrix) *self, int n)
{
	self->random = self->random * 1103515245 + 12345;
	return (self->random >> 16) % n;
}

/* True if @e holds for @thread on @cpu. */
static bool applies(const struct entry *e, int thread, int cpu)
{
	if (e->cpu >= 0 && e->cpu != cpu)
		return false;
	if (e->thread == OF_CPU)
		return true;
	if (e->thread == OF_PROCESS)
		return e->process == process_of(thread);
	return e->thread == thread;
}

static bool rule_holds(const FIXTURE_DATA(matrix) *self)
{
	for (int cpu = 0; cpu < self->cpus.nr; cpu++) {
		for (int thread = 0; thread <= OWN_THREADS; thread++) {
			int need = self->wide;
			bool flexible = false;

			for (int i = 0; i < MOST_OPEN; i++) {
				const struct entry *e = &self->entry[i];

				if (e->fd < 0 || !applies(e, thread, cpu))
					continue;
				need += !e->flexible;
				flexible |= e->flexible;
			}
			if (need + flexible > BP_SLOTS)
				return false;
		}
	}
	return true;
}

static struct entry random_entry(FIXTURE_DATA(matrix) *self)
{
	struct entry e = { .cpu = -1, .leader = -1 };

	e.thread = random_below(self, OWN_THREADS + 1);
	if (!random_below(self, 3))
		e.thread = OF_PROCESS;
	else if (!random_below(self, 6))
		e.thread = OF_CPU;
	e.process = random_below(self, PROCESSES);
	if (e.thread == OF_CPU || !random_below(self, 3))
		e.cpu = random_below(self, self->cpus.nr);
	e.flexible = !random_below(self, 5);
	return e;
}

static bool can_lead(const struct entry *leader, const struct entry *e)
{
	return leader != e && leader->fd >= 0 && leader->leader < 0 && !leader->flexible &&
	       leader->thread == OF_PROCESS && leader->process == e->process &&
	       leader->cpu == e->cpu;
}

/* The next entry from a random one on that can lead a group with @e, or -1 */
static int random_leader(FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	int first = random_below(self, MOST_OPEN);

	for (int i = first; i < first + MOST_OPEN; i++) {
		if (can_lead(&self->entry[i % MOST_OPEN], e))
			return i % MOST_OPEN;
	}
	return -1;
}

/* The members of its group go on as single events. */
static void close_entry(FIXTURE_DATA(matrix) *self, int nr)
{
	close(self->entry[nr].fd);
	self->entry[nr].fd = -1;
	for (int i = 0; i < MOST_OPEN; i++) {
		if (self->entry[i].leader == nr)
			self->entry[i].leader = -1;
	}
}

static int open_entry(FIXTURE_DATA(matrix) *self, const struct entry *e, int nr)
{
	struct perf_event_attr attr = bp_attr_w(self->mem + SECOND * nr, 1);
	pid_t pid = -1;

	if (e->thread == OF_PROCESS) {
		attr.config = BP_PROCESS;
		pid = self->worker[e->process ? OWN_THREADS : random_below(self, OWN_THREADS)].pid;
	} else if (e->thread >= 0) {
		pid = self->worker[e->thread].pid;
	}
	if (e->flexible)
		attr.config |= BP_FLEXIBLE;
	return bp_open_group(&attr, pid, e->cpu < 0 ? -1 : self->cpus.cpu[e->cpu],
			     e->leader < 0 ? -1 : self->entry[e->leader].fd, 0);
}

static void change_one(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self)
{
	int nr = random_below(self, MOST_OPEN), fd;
	struct entry *e = &self->entry[nr];
	bool fits;

	if (e->fd >= 0) {
		close_entry(self, nr);
		return;
	}
	*e = random_entry(self);
	if (e->thread == OF_PROCESS && !e->flexible && random_below(self, 3))
		e->leader = random_leader(self, e);
	fits = rule_holds(self);
	fd = open_entry(self, e, nr);
	e->fd = fd < 0 ? -1 : fd;
	EXPECT_EQ(fits ? 0 : -ENOSPC, fd < 0 ? fd : 0);
}

/* Each thread stores once to each watched word on each CPU. */
static void hit_all(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self)
{
	for (int thread = 0; thread <= OWN_THREADS; thread++) {
		for (int cpu = 0; cpu < self->cpus.nr; cpu++) {
			ASSERT_EQ(0, bp_pin_task(self->worker[thread].pid, self->cpus.cpu[cpu]));
			for (int i = 0; i < MOST_OPEN; i++) {
				struct entry *e = &self->entry[i];

				if (e->fd < 0)
					continue;
				bp_do(&self->worker[thread], i);
				e->seen += applies(e, thread, cpu);
			}
		}
	}
	for (int i = 0; i < MOST_OPEN; i++) {
		if (self->entry[i].fd >= 0 && !self->entry[i].flexible)
			EXPECT_EQ(self->entry[i].seen, bp_count(self->entry[i].fd));
	}
}

#define WIDE		TRACEFS "events/wprobes/matrix/enable"

/* A watch event of tracefs is a breakpoint of the kernel on all CPUs. */
static void change_wide(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self)
{
	self->wide = !self->wide;
	if (!self->wide) {
		EXPECT_EQ(0, bp_write_file(WIDE, "0"));
	} else if (rule_holds(self)) {
		EXPECT_EQ(0, bp_write_file(WIDE, "1"));
	} else {
		EXPECT_EQ(-ENOSPC, bp_write_file(WIDE, "1"));
		self->wide = 0;
	}
}

TEST_F(matrix, random_requests)
{
	bool wide = !bp_write_file(TRACEFS "dynamic_events", "w:matrix w@panic_timeout:4");

	for (int step = 0; step < STEPS; step++) {
		if (wide && !random_below(self, 12))
			change_wide(_metadata, self);
		else
			change_one(_metadata, self);
		if (step % 40 == 39)
			hit_all(_metadata, self);
	}
	for (int i = 0; i < MOST_OPEN; i++) {
		if (self->entry[i].fd >= 0)
			close(self->entry[i].fd);
	}
	if (wide) {
		bp_write_file(WIDE, "0");
		EXPECT_EQ(0, bp_write_file(TRACEFS "dynamic_events", "-:matrix"));
	}
	for (int i = 0; i < OWN_THREADS; i++)
		EXPECT_EQ(BP_SLOTS, bp_free_slots(self->worker[i].pid, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
}

static int poke(pid_t pid, int nr, unsigned long value)
{
	long offset = offsetof(struct user, u_debugreg) + nr * sizeof(long);

	return ptrace(PTRACE_POKEUSER, pid, offset, value) ? -errno : 0;
}

/* A debugger's breakpoints count for the thread, beside those of its process. */
TEST_F(matrix, debug_registers_of_ptrace)
{
	struct perf_event_attr attr = process_attr(self->mem);
	pid_t pid = self->worker[OWN_THREADS].pid;
	unsigned long control = 0;
	int fd[3];

	for (int i = 0; i < 3; i++) {
		attr.bp_addr = (unsigned long)self->mem + SECOND * i;
		fd[i] = bp_open(&attr, pid, -1);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
	ASSERT_EQ(pid, waitpid(pid, NULL, __WALL));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, poke(pid, i, (unsigned long)self->mem + 256 + SECOND * i));
		/* One byte, write */
		control |= 1UL << (2 * i) | 1UL << (16 + 4 * i);
		EXPECT_EQ(i ? -ENOSPC : 0, poke(pid, 7, control));
	}
	EXPECT_EQ(-ENOSPC, bp_open(&attr, pid, -1));
	close(fd[2]);
	EXPECT_EQ(0, poke(pid, 7, control));
	EXPECT_EQ(-ENOSPC, bp_open(&attr, pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, pid, NULL, NULL));
	bp_do(&self->worker[OWN_THREADS], 0);
	EXPECT_EQ(1, bp_count(fd[0]));
}

TEST_HARNESS_MAIN
