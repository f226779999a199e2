/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's account of who holds the breakpoint registers. */
#ifndef HWBP_SLOTS_H
#define HWBP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS_MAX_CLASSES	4

/* Instead of a CPU: any; instead of a task: none, the CPU itself. */
#define SLOTS_ANY_CPU		(-1)
#define SLOTS_NO_TASK		(-1)
/* A CPU that no claim names. */
#define SLOTS_OTHER_CPU		(-2)

/**
 * struct slots_class - registers that can stand in for each other
 * @name: "any", "inst" or "data"
 * @slots: how many of them each CPU has
 */
struct slots_class {
	char *name;
	unsigned int slots;
};

/**
 * struct holding - a claim, or what a register holds
 * @cpu: where
 * @pid: the task
 * @comm: its name, printable; NULL if there is no task
 * @slot: of a register: its number
 * @free: of a register: it holds nothing, and what follows is not set
 * @flexible: it takes turns with others
 * @class: index of the class; of a register, if there are several, -1 when the
 *	   kernel does not tell
 * @weight: of a claim: the number of registers
 * @type: "r", "w", "rw" or "x"
 * @len: bytes
 * @address: what it watches
 * @name: of @address; slots_read() leaves it to others to find one
 * @owner: who asked for it, as the kernel writes it
 */
struct holding {
	int cpu;
	pid_t pid;
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
	char *owner;
};

struct holding_list {
	struct holding *entries;
	size_t nr;
	size_t room;
};

/**
 * struct slots_cpu - a CPU that is online, or that someone has a claim on
 * @number: its number
 * @claims: its own claims, without those of tasks
 * @registers: none if it is offline
 */
struct slots_cpu {
	int number;
	struct holding_list claims;
	struct holding_list registers;
};

/**
 * struct slots_task - a task that has claims
 * @pid: its number in the initial pid namespace
 * @comm: its name, printable
 * @claims: its claims
 */
struct slots_task {
	pid_t pid;
	const char *comm;
	struct holding_list claims;
};

/**
 * struct slots - the whole account
 * @claims: all claims, in the order in which they are to be shown
 * @registers: all registers
 * @cpus: by number, with pieces of @claims and @registers
 * @tasks: by pid, with pieces of @claims
 */
struct slots {
	struct slots_class classes[SLOTS_MAX_CLASSES];
	unsigned int nr_classes;
	struct holding_list claims;
	struct holding_list registers;
	struct slots_cpu *cpus;
	size_t nr_cpus;
	size_t cpus_room;
	struct slots_task *tasks;
	size_t nr_tasks;
	size_t tasks_room;
};

/*
 * Read the account from @path, or from where the kernel gives it if that is
 * NULL.  Dies with one line if that is not possible.
 */
void slots_read(struct slots *slots, const char *path);

/* The task @pid, NULL if it has no claim. */
const struct slots_task *slots_find_task(const struct slots *slots, pid_t pid);

/* True if a claim of a task counts on a CPU. */
bool slots_holds_on(const struct holding *claim, int cpu);

/*
 * True if @cpu has no register of @class left for one more guaranteed claim of
 * @task; NULL is a task without claims.
 */
bool slots_full(const struct slots_cpu *cpu, const struct slots_task *task,
		const struct slots *slots, int class);

#endif
