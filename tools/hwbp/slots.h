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
 * @owner: owner of the breakpoint, as the kernel prints it
 * @name: symbol at @address; not set by slots_read()
 * @refuses: claim: it is a reason to refuse a request; not set by slots_read()
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
	char *owner;
	char *name;
	bool refuses;
};

struct holding_list {
	struct holding *entries;
	size_t nr;
	size_t capacity;
};

/**
 * struct holder - a task or CPU, or all CPUs, with its claims
 * @pid: task, or SLOTS_NO_TASK
 * @cpu: CPU, or SLOTS_ANY_CPU
 * @process: process ID of a task; @pid if that is not known
 * @claims: its claims, a part of slots::claims; those of a process are with its main thread
 * @nr: number of @claims
 */
struct holder {
	pid_t pid;
	int cpu;
	pid_t process;
	struct holding *claims;
	size_t nr;
};

/**
 * struct slots - all claims and registers
 * @classes: classes of registers
 * @nr_classes: number of @classes
 * @claims: all claims, in the order of output
 * @registers: all registers, by CPU
 * @holders: those that have claims: all CPUs, CPUs by number, tasks by pid
 * @nr_holders: number of @holders
 * @cpus: numbers of the CPUs that have claims or registers, ascending
 * @nr_cpus: number of @cpus
 */
struct slots {
	struct slots_class classes[SLOTS_MAX_CLASSES];
	unsigned int nr_classes;
	struct holding_list claims;
	struct holding_list registers;
	struct holder *holders;
	size_t nr_holders;
	int *cpus;
	size_t nr_cpus;
};

/*
 * Read and parse the list at @path, or the one in debugfs if @path is NULL. Exits with
 * a one-line message if it is not valid. Returns NULL, or the reason why it cannot be
 * read; to be freed.
 */
char *slots_read(struct slots *slots, const char *path);

/* Returns true if hwbp is in the initial pid namespace, whose pids the list has. */
bool slots_same_pids(void);

/* Process of the task @pid, or @pid itself if the process is not known */
pid_t slots_process_of(pid_t pid, bool same_pids);

/* Turn an owner such as "perf:456" into text, "perf 456 (hwbp)"; to be freed. */
char *slots_owner_text(const char *owner, bool same_pids);

/* The task @pid, or with SLOTS_NO_TASK the CPU @cpu; NULL if it has no claim */
const struct holder *slots_holder(const struct slots *slots, pid_t pid, int cpu);

/*
 * Call @func for each claim of @class that needs registers of @cpu while @task runs there.
 * A NULL @task stands for a task without claims.
 */
void slots_for_each_claim(const struct slots *slots, int cpu, const struct holder *task,
			  int class, void (*func)(struct holding *claim, void *arg), void *arg);

/* Returns true if one more claim of @class of @task for @cpu would fail. */
bool slots_full(const struct slots *slots, int cpu, const struct holder *task, int class,
		bool flexible);

#endif
