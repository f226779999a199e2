// SPDX-License-Identifier: GPL-2.0
/*
 * Random requests for breakpoints of CPUs, processes and threads, compared with a list of
 * the breakpoints that should be open.
 *
 * The rule: for each CPU c and thread t of process p a request is granted exactly if,
 * with it,
 *
 *	cpu(c) + process(p, c) + thread(t, c) + (any flexible ? 1 : 0) + wide <= registers
 *
 * and then each guaranteed breakpoint counts each access that it is for, whether it is
 * in a group or not.  Flexible ones are in no group here.  A debugger takes registers of
 * the thread that it traces.  A modification changes the address, and leaves the
 * register to a breakpoint that it disables.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "process.h"

#define TRACEFS		"/sys/kernel/tracing/"

#define OWN_THREADS	2
#define PROCESSES	2
#define HOLDERS		(OWN_THREADS + 1)
#define MOST_OPEN	24
#define STEPS		600

/* A byte that is never watched */
#define UNWATCHED	(MOST_OPEN * SECOND)

/* Values of entry::thread that are no thread; OF_PTRACE is of the thread of the child. */
enum { OF_CPU = -1, OF_PROCESS = -2, OF_PTRACE = -3 };

/**
 * struct entry - a breakpoint that is open
 * @fd: its file, OF_PTRACE: its debug register; -1 if there is none
 * @thread: index of the thread, OF_CPU, OF_PROCESS or OF_PTRACE
 * @process: OF_PROCESS: the process
 * @cpu: index of the CPU, -1 for any
 * @leader: OF_PROCESS: the entry that leads its group, -1 if it leads or is single
 * @flexible: it has a register for a part of the time
 * @disabled: it counts nothing
 * @offset: of the byte that it watches, in its word
 * @seen: what it should have counted
 */
struct entry {
	int fd;
	int thread;
	int process;
	int cpu;
	int leader;
	bool flexible;
	bool disabled;
	int offset;
	long long seen;
};

FIXTURE(matrix)
{
	char *mem;
	struct bp_cpus cpus;
	struct bp_worker worker[HOLDERS];
	struct entry entry[MOST_OPEN];
	unsigned long control;
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
	bp_store((char *)mem + cmd, 1);
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
	return bp_random(&self->random) % n;
}

/* Returns true if @e has a register whenever @thread runs on @cpu. */
static bool applies(const struct entry *e, int thread, int cpu)
{
	if (e->cpu >= 0 && e->cpu != cpu)
		return false;
	if (e->thread == OF_CPU)
		return true;
	if (e->thread == OF_PROCESS)
		return e->process == process_of(thread);
	if (e->thread == OF_PTRACE)
		return thread == OWN_THREADS;
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
	else if (BP_DEBUG_REGISTERS && !random_below(self, 6))
		e.thread = OF_CPU;
	else if (BP_DEBUG_REGISTERS && !random_below(self, 6))
		e.thread = OF_PTRACE;
	e.process = random_below(self, PROCESSES);
	if (e.thread == OF_CPU || (e.thread != OF_PTRACE && !random_below(self, 3)))
		e.cpu = random_below(self, self->cpus.nr);
	e.flexible = e.thread != OF_PTRACE && !random_below(self, 5);
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

#ifdef __x86_64__
static int poke(pid_t pid, int nr, unsigned long value)
{
	long offset = offsetof(struct user, u_debugreg) + nr * sizeof(long);

	return ptrace(PTRACE_POKEUSER, pid, offset, value) ? -errno : 0;
}
#else
/* Not called, see BP_DEBUG_REGISTERS */
static int poke(pid_t pid, int nr, unsigned long value)
{
	return -EOPNOTSUPP;
}
#endif

/* Stops the thread that is traced until it is resumed. */
static pid_t stop_traced(FIXTURE_DATA(matrix) *self)
{
	pid_t pid = self->worker[OWN_THREADS].pid;

	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	return pid;
}

/* A register that is disabled is free when the thread goes on. */
static void resume_traced(FIXTURE_DATA(matrix) *self)
{
	ptrace(PTRACE_CONT, self->worker[OWN_THREADS].pid, NULL, NULL);
	bp_do(&self->worker[OWN_THREADS], UNWATCHED);
}

/* One byte, write */
static unsigned long control_bits(int reg)
{
	return 1UL << (2 * reg) | 1UL << (16 + 4 * reg);
}

static int open_traced(FIXTURE_DATA(matrix) *self, const char *addr)
{
	pid_t pid = stop_traced(self);
	int reg = 0, err;

	while (self->control & 1UL << (2 * reg))
		reg++;
	err = reg < BP_SLOTS ? poke(pid, reg, (unsigned long)addr) : -ENOSPC;
	err = err ?: poke(pid, 7, self->control | control_bits(reg));
	if (!err)
		self->control |= control_bits(reg);
	resume_traced(self);
	return err ?: reg;
}

static void close_traced(FIXTURE_DATA(matrix) *self, int reg)
{
	pid_t pid = stop_traced(self);

	self->control &= ~control_bits(reg);
	poke(pid, 7, self->control);
	resume_traced(self);
}

/* The members of its group go on as single events. */
static void close_entry(FIXTURE_DATA(matrix) *self, int nr)
{
	if (self->entry[nr].thread == OF_PTRACE)
		close_traced(self, self->entry[nr].fd);
	else
		close(self->entry[nr].fd);
	self->entry[nr].fd = -1;
	for (int i = 0; i < MOST_OPEN; i++) {
		if (self->entry[i].leader == nr)
			self->entry[i].leader = -1;
	}
}

static char *watched(const FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	return self->mem + SECOND * (e - self->entry) + e->offset;
}

static struct perf_event_attr attr_of(const FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	struct perf_event_attr attr = bp_attr_w(watched(self, e), 1);

	attr.config = e->thread == OF_PROCESS ? BP_PROCESS : 0;
	attr.config |= e->flexible ? BP_FLEXIBLE : 0;
	attr.disabled = e->disabled;
	return attr;
}

static int open_entry(FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	struct perf_event_attr attr = attr_of(self, e);
	pid_t pid = -1;

	if (e->thread == OF_PTRACE)
		return open_traced(self, watched(self, e));
	if (e->thread == OF_PROCESS)
		pid = self->worker[e->process ? OWN_THREADS : random_below(self, OWN_THREADS)].pid;
	else if (e->thread >= 0)
		pid = self->worker[e->thread].pid;
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
	fd = open_entry(self, e);
	e->fd = fd < 0 ? -1 : fd;
	EXPECT_EQ(fits ? 0 : -ENOSPC, fd < 0 ? fd : 0);
}

static int modify_entry(FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	struct perf_event_attr attr = attr_of(self, e);
	pid_t pid;
	int err;

	if (e->thread != OF_PTRACE)
		return bp_modify(e->fd, &attr);
	pid = stop_traced(self);
	err = poke(pid, e->fd, (unsigned long)watched(self, e));
	resume_traced(self);
	return err;
}

/* An event that is disabled keeps its register; a breakpoint of ptrace gives it back. */
static void modify_one(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self)
{
	struct entry *e = &self->entry[random_below(self, MOST_OPEN)];

	if (e->fd < 0)
		return;
	e->offset = random_below(self, SECOND);
	e->disabled = e->thread != OF_PTRACE && !random_below(self, 3);
	EXPECT_EQ(0, modify_entry(self, e));
}

/* An event whose leader is disabled does not count either. */
static bool counts(const FIXTURE_DATA(matrix) *self, const struct entry *e)
{
	return !e->disabled && (e->leader < 0 || !self->entry[e->leader].disabled);
}

/* The worker stops for the debugger after its store and before it answers the command. */
static void store_traced(struct __test_metadata *_metadata, struct bp_worker *worker, int cmd)
{
	long result;
	int status;

	ASSERT_EQ(sizeof(cmd), write(worker->cmd[1], &cmd, sizeof(cmd)));
	ASSERT_EQ(worker->pid, waitpid(worker->pid, &status, __WALL));
	ASSERT_TRUE(WIFSTOPPED(status));
	EXPECT_EQ(SIGTRAP, WSTOPSIG(status));
	ptrace(PTRACE_CONT, worker->pid, NULL, NULL);
	ASSERT_EQ(sizeof(result), read(worker->ans[0], &result, sizeof(result)));
}

static void hit_one(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self,
		    struct entry *e, int thread, int cpu)
{
	int word = SECOND * (e - self->entry);

	/* Another byte of the word: a modification may have left it. */
	bp_do(&self->worker[thread], word + (e->offset + 1) % SECOND);
	if (e->thread == OF_PTRACE && applies(e, thread, cpu)) {
		store_traced(_metadata, &self->worker[thread], word + e->offset);
	} else {
		bp_do(&self->worker[thread], word + e->offset);
		e->seen += applies(e, thread, cpu) && counts(self, e);
	}
}

/* Each thread stores to each watched word on each CPU. */
static void hit_all(struct __test_metadata *_metadata, FIXTURE_DATA(matrix) *self)
{
	for (int thread = 0; thread <= OWN_THREADS; thread++) {
		for (int cpu = 0; cpu < self->cpus.nr; cpu++) {
			ASSERT_EQ(0, bp_pin_task(self->worker[thread].pid, self->cpus.cpu[cpu]));
			for (int i = 0; i < MOST_OPEN; i++) {
				struct entry *e = &self->entry[i];

				if (e->fd >= 0)
					hit_one(_metadata, self, e, thread, cpu);
			}
		}
	}
	for (int i = 0; i < MOST_OPEN; i++) {
		struct entry *e = &self->entry[i];

		if (e->fd >= 0 && e->thread != OF_PTRACE && !e->flexible)
			EXPECT_EQ(e->seen, bp_count(e->fd));
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
	bool wide = BP_AFTER_ACCESS && bp_has_watch_events();

	ASSERT_EQ(0, wide ? bp_write_file(TRACEFS "dynamic_events",
					  "w:matrix w@panic_timeout:4") : 0);
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, self->worker[OWN_THREADS].pid, NULL, NULL));
	for (int step = 0; step < STEPS; step++) {
		if (wide && !random_below(self, 12))
			change_wide(_metadata, self);
		else if (!random_below(self, 4))
			modify_one(_metadata, self);
		else
			change_one(_metadata, self);
		if (step % 40 == 39)
			hit_all(_metadata, self);
	}
	for (int i = 0; i < MOST_OPEN; i++) {
		if (self->entry[i].fd >= 0)
			close_entry(self, i);
	}
	if (wide) {
		bp_write_file(WIDE, "0");
		EXPECT_EQ(0, bp_write_file(TRACEFS "dynamic_events", "-:matrix"));
	}
	for (int i = 0; i <= OWN_THREADS; i++)
		EXPECT_EQ(BP_SLOTS, bp_free_slots(self->worker[i].pid, -1));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[0]));
}

/* A debugger's breakpoints count for the thread, beside those of its process. */
TEST_F(matrix, debug_registers_of_ptrace)
{
	struct perf_event_attr attr = process_attr(self->mem);
	pid_t pid = self->worker[OWN_THREADS].pid;
	unsigned long control = 0;
	int fd[3];

	BP_NEED(BP_DEBUG_REGISTERS, "needs the debug registers of x86");
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
