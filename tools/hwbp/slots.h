/* SPDX-License-Identifier: GPL-2.0 */
/* Claims and registers, as listed in /sys/kernel/debug/hw_breakpoint/slots. */
#ifndef HWBP_SLOTS_H
#define HWBP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS_MAX_CLASSES	4

/* Values of holding::cpu and holding::pid; any CPU without a task means all CPUs */
#define SLOTS_ANY_CPU		(-1)
#define SLOTS_NO_TASK		(-1)
/* Stands for the CPUs that no claim names */
#define SLOTS_OTHER_CPU		(-2)

/**
 * struct slots_class - a class of interchangeable registers
 * @name: "any", "inst" or "data"
 * @slots: number of registers of each CPU
 */
struct slots_class {
	char *name;
	unsigned int slots;
};

/**
 * struct holding - a claim, or the contents of a register
 * @cpu: CPU, or SLOTS_ANY_CPU
 * @pid: task, or SLOTS_NO_TASK
 * @process: the breakpoint is for all threads of the process that @pid leads
 * @comm: name of the task, printable; NULL without a task
 * @slot: register: its number
 * @free: register: it is empty, and the members below are not set
 * @flexible: the breakpoint is flexible: it is multiplexed with others
 * @class: index of the class; -1 for a register of unknown class
 * @weight: claim: number of registers
 * @type: "r", "w", "rw" or "x"
 * @len: length of the watched range
 * @address: watched address
 * @name: symbol at @address; not set by slots_read()
 * @refuses: claim: it is a reason to refuse a request; not set by slots_read()
 * @owner: owner of the breakpoint, as the kernel prints it
 */
struct holding {
	int cpu;
	pid_t pid;
	bool process;
	char *comm;
	unsigned int slot;
	bool free;
	bool flexible;
	int class;
	unsigned int weight;
	char *type;
	unsigned int len;
	uint64_t address;
	char *name;
	bool refuses;
	char *owner;
};

struct holding_list {
	struct holding *entries;
	size_t nr;
	size_t capacity;
};

/**
 * struct slots_cpu - a CPU that is online or has claims
 * @number: number of the CPU
 * @claims: claims of the CPU, without claims of tasks and of all CPUs
 * @registers: registers of the CPU; empty if it is offline
 */
struct slots_cpu {
	int number;
	struct holding_list claims;
	struct holding_list registers;
};

/**
 * struct slots_task - a task that has claims
 * @pid: thread ID in the initial pid namespace
 * @process: process ID of the task; @pid if that is not known
 * @comm: name of the task, printable
 * @claims: claims of the task; those of a process are with the task that leads it
 */
struct slots_task {
	pid_t pid;
	pid_t process;
	const char *comm;
	struct holding_list claims;
};

/**
 * struct slots - all claims and registers
 * @classes: classes of registers
 * @nr_classes: number of @classes
 * @claims: all claims, in the order of output
 * @registers: all registers
 * @wide: claims of all CPUs, a part of @claims
 * @cpus: CPUs by number; their lists are parts of @claims and @registers
 * @nr_cpus: number of @cpus
 * @cpus_room: capacity of @cpus
 * @tasks: tasks by pid; their lists are parts of @claims
 * @nr_tasks: number of @tasks
 * @tasks_room: capacity of @tasks
 */
struct slots {
	struct slots_class classes[SLOTS_MAX_CLASSES];
	unsigned int nr_classes;
	struct holding_list claims;
	struct holding_list registers;
	struct holding_list wide;
	struct slots_cpu *cpus;
	size_t nr_cpus;
	size_t cpus_room;
	struct slots_task *tasks;
	size_t nr_tasks;
	size_t tasks_room;
};

/*
 * Read and parse the list at @path, or the one in debugfs if @path is NULL. Exits with
 * a one-line message on failure.
 */
void slots_read(struct slots *slots, const char *path);

/*
 * Read and parse the list in debugfs. Returns NULL, or the reason why the list cannot be
 * opened; to be freed.
 */
char *slots_try_read(struct slots *slots);

/* Returns true if hwbp is in the initial pid namespace, whose pids the list has. */
bool slots_same_pids(void);

/* Process of the task @pid, or @pid itself if the process is not known */
pid_t slots_process_of(pid_t pid, bool same_pids);

/* Turn an owner such as "perf:456" into text, "perf 456 (hwbp)"; to be freed. */
char *slots_owner_text(const char *owner, bool same_pids);

/* Find the task @pid, NULL if it has no claim. */
const struct slots_task *slots_find_task(const struct slots *slots, pid_t pid);

/* Returns true if a claim of a task applies to a CPU. */
bool slots_holds_on(const struct holding *claim, int cpu);

/*
 * Call @func for each claim of @class that needs registers of @cpu while @task runs there.
 * A NULL @task stands for a task without claims.
 */
void slots_for_each_claim(const struct slots *slots, const struct slots_cpu *cpu,
			  const struct slots_task *task, int class,
			  void (*func)(struct holding *claim, void *arg), void *arg);

/* Returns true if one more claim of @class of @task for @cpu would fail. */
bool slots_full(const struct slots *slots, const struct slots_cpu *cpu,
		const struct slots_task *task, int class, bool flexible);

#endif
