/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random operations on breakpoints, and a model of what each must do.
 *
 * A judge, which is the test itself, has tasks carry out one order at a time, so that it
 * knows the order of all operations (random_task.c). A model repeats each operation with
 * plain loops over all tasks and events (random_model.c). After each operation the judge
 * compares the kernel with the model (perf_random.c).
 *
 * The rule: a request succeeds if and only if the model has room for it; each access is
 * counted, recorded and signalled once by each event that watches it, and by no other; the
 * kernel lists the claims of the model, and no register is armed for another event.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include "bp_test.h"

/* Task 0 is the judge. */
#define NR_TASKS	8
#define JUDGE		0

#define NR_EVENTS	12
#define NR_RINGS	NR_EVENTS

/*
 * Each event has a place of its own: an emulator may report only one of several breakpoints
 * that an instruction hits. The last place is that of bp_settle().
 */
#define PLACE_SIZE	64
#define NR_PLACES	32

#define NR_GROUPS	3

/* ---- Tasks ---- */

enum order {
	ORDER_NONE,
	ORDER_ACCESS,
	/* Executes the function with an instruction breakpoint. */
	ORDER_CALL,
	ORDER_CLONE,
	ORDER_EXIT,
	ORDER_EXIT_GROUP,
	ORDER_EXEC,
	ORDER_SETUID,
};

/*
 * @times accesses of @size bytes; each store has another value than the one before it. The
 * kernel stores the number of the CPU, in a system call.
 */
struct access {
	unsigned long addr;
	__u64 value;
	unsigned int size;
	unsigned int times;
	int cpu;
	bool is_load;
	bool by_kernel;
};

/* Starts task @task as thread, as process with this memory, or as process. */
enum kind_of_task { THREAD, SHARER, PROCESS, NR_KINDS };

int task_start(int from, int task, enum kind_of_task kind, unsigned int nth);

/* Carries out the order in the task. Returns the result, or -ETIME. */
long task_do(int task, enum order order, const struct access *access, long arg);

/* As task_do(), but returns at once; then this returns whether the result is there. */
void task_post(int task, enum order order, const struct access *access, long arg);
bool task_has_answered(int task, long *result);

/* Waits until a thread, or the process that it leads, has ended. */
void task_wait_for_end(pid_t process, pid_t thread);

void tasks_setup(void);
void tasks_teardown(void);

pid_t task_pid(int task);

/* The number of signals with @data since the start */
unsigned int task_signals(unsigned int data);

/* The value of store @i of an access */
__u64 value_of(const struct access *a, unsigned int i);

/* ---- The model ---- */

enum scope { OF_TASK, OF_PROCESS, OF_CPU, OF_CGROUP, NR_SCOPES };

#define NONE	(-1)

/* What the model knows about the value that an event has in one memory */
enum known { UNKNOWN, UNCERTAIN, KNOWN };

struct chain {
	enum known known;
	__u8 bytes[HW_BREAKPOINT_VALUE_MAX];
};

/* A record that is to come */
struct expected {
	pid_t tid;
	int cpu;
	enum known before;
	__u8 bytes[2][HW_BREAKPOINT_VALUE_MAX];
};

#define MAX_EXPECTED	16

/**
 * struct event - an event that the judge has open
 * @fd: -1 if there is none
 * @scope: whom the event watches
 * @target: OF_TASK: task; OF_PROCESS: process; OF_CGROUP: cgroup
 * @cpu: CPU of the event, NONE for all
 * @attr: its attributes
 * @id: as in records
 * @enabled: it is enabled; a member of a group counts only if its leader is enabled, too
 * @enable_on_exec: the next exec enables it
 * @leader: event that leads its group, or NONE
 * @tasks: OF_TASK: tasks that have it; a bit each
 * @ended: OF_PROCESS: the process has no thread left, or executed a program
 * @lost_child: a task that inherited it has ended: a reset keeps its count
 * @min: the count is at least this
 * @max: the count is at most this
 * @silent_min: at least so many accesses have changed nothing
 * @silent_max: at most so many
 * @left: overflows that PERF_EVENT_IOC_REFRESH allows; 0 for any number
 * @period: hits between two samples; 0 for none
 * @until: hits until the next sample
 * @ring: ring in which its records are, or NONE
 * @loose: the model cannot tell the next records
 * @expected: these records
 * @nr_expected: number of them
 * @counted: the count at the last check, or NONE
 * @signals: number of its signals then
 * @chain: its value, by memory
 */
struct event {
	int fd;
	enum scope scope;
	int target;
	int cpu;
	struct perf_event_attr attr;
	__u64 id;
	bool enabled;
	bool enable_on_exec;
	int leader;
	unsigned int tasks;
	bool ended;
	bool lost_child;
	long long min, max;
	long long silent_min, silent_max;
	unsigned int left;
	unsigned int period;
	unsigned int until;
	int ring;
	bool loose;
	struct expected expected[MAX_EXPECTED];
	int nr_expected;
	long long counted;
	unsigned int signals;
	struct chain chain[NR_TASKS];
};

/**
 * struct task - a task of the world
 * @live: it exists
 * @process: the process that it belongs to: its first task had this number
 * @mm: its memory
 * @cpu: where it has made its last access
 * @other_uid: its effective user is another one: no event stays at exec
 */
struct task {
	bool live;
	int process;
	int mm;
	int cpu;
	bool other_uid;
};

/* A process; @pid is that of its leader, and @group its cgroup. */
struct process {
	pid_t pid;
	int leader;
	int group;
};

/* A ring; @owner is the event that is mapped. */
struct ring {
	struct bp_ring map;
	int owner;
};

struct model {
	struct bp_cpus cpus;
	bool online[BP_MAX_CPUS];
	struct task task[NR_TASKS];
	struct process process[NR_TASKS];
	struct event event[NR_EVENTS];
	struct ring ring[NR_RINGS];
	__u8 memory[NR_TASKS][NR_PLACES * PLACE_SIZE];
	/* Number of claims of kernel-wide breakpoints */
	int wide;
	/* The task that the judge traces, or NONE, and its breakpoints */
	int traced;
	unsigned int traced_places;
	int traced_place[BP_SLOTS];
	unsigned int traced_hits, traced_expected;
};

/* Returns the open event after @e, or the first one; NULL if there is no other. */
static inline struct event *next_event(const struct model *m, const struct event *e)
{
	for (e = e ? e + 1 : m->event; e < m->event + NR_EVENTS; e++) {
		if (e->fd >= 0)
			return (struct event *)e;
	}
	return NULL;
}

static inline int next_task(const struct model *m, int t)
{
	while (++t < NR_TASKS && !m->task[t].live)
		;
	return t;
}

#define for_each_event(m, e)	\
	for (struct event *e = next_event(m, NULL); e; e = next_event(m, e))

#define for_each_task(m, t)	\
	for (int t = next_task(m, -1); t < NR_TASKS; t = next_task(m, t))

/* Number of registers that a range needs: pieces of 1, 2, 4 or 8 bytes, aligned */
unsigned int range_weight(unsigned long addr, unsigned long len);

bool is_flexible(const struct event *e);

/* Registers that the event claims; 1 if it is flexible */
unsigned int event_weight(const struct event *e);

/* True if the event has a claim, for task @t if it is one of tasks */
bool event_is_of(const struct model *m, const struct event *e, int t);

/* True if the event has a claim at all */
bool event_is_alive(const struct model *m, const struct event *e);

/* True if a hit by task @t on @cpu is to count */
bool event_is_armed(const struct model *m, const struct event *e, int t, int cpu);

/* True if no CPU has more claims than registers */
bool model_fits(const struct model *m);

void model_access(struct model *m, int t, const struct access *a);
void model_call(struct model *m, int t, unsigned int times);
void model_enable(struct model *m, struct event *e);
void model_look(struct model *m, struct event *e);
/* The members of the group become single events. */
void model_end_group(struct model *m, struct event *leader);
void model_clone(struct model *m, int from, int t, enum kind_of_task kind);
void model_exit(struct model *m, int t);
void model_exec(struct model *m, int t);
void model_reset(struct event *e);

#endif /* RANDOM_H */
