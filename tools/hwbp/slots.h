/* SPDX-License-Identifier: GPL-2.0 */
/* Claims and registers, as listed in /sys/kernel/debug/hw_breakpoint/slots. */
#ifndef HWBP_SLOTS_H
#define HWBP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS_MAX_CLASSES	4

/* Any CPU, which without a task means all CPUs; a CPU that no claim names; no task */
#define SLOTS_ANY_CPU		(-1)
#define SLOTS_OTHER_CPU		(-2)
#define SLOTS_NO_TASK		(-1)
/* holding::section of a task: this plus its pid */
#define SLOTS_TASK		(1LL << 32)

/**
 * struct holding - a claim, or the contents of a register
 * @key: holdings are sorted by this text
 * @section: claim: its task, else its CPU, or SLOTS_ANY_CPU; register: its CPU
 * @kind: a claim; a register; an empty one; or only a section, for a CPU of a task's claim
 * @number: claim: its CPU, or SLOTS_ANY_CPU; register: its number
 * @class: index of the class; -1 for a register of unknown class
 * @weight: claim: number of registers
 * @type: "r", "w", "rw" or "x"
 * @owner: "perf 456 (hwbp)", printable
 * @pid: watched task, or SLOTS_NO_TASK
 * @tgid: process of @pid; @pid if that is not known
 * @process: the breakpoint is for all threads of the process that @pid leads
 * @comm: name of @pid, printable
 * @name, @chosen: for the user of slots_read(): symbol at @address, and a mark
 */
struct holding {
	char *key;
	int64_t section;
	enum { HOLDING_CLAIM, HOLDING_REGISTER, HOLDING_FREE, HOLDING_NONE } kind;
	int number;
	int class;
	unsigned int weight;
	bool flexible;
	const char *type;
	unsigned int len;
	uint64_t address;
	char *owner;
	pid_t pid;
	pid_t tgid;
	bool process;
	char *comm;
	char *name;
	bool chosen;
};

/**
 * struct slots - all claims and registers
 * @class: names of the classes of registers: "any", or "inst" and "data"; NULL ends them
 * @registers: number of registers of each class and CPU
 * @all, @end: claims and registers by section: all CPUs, each CPU, each task
 * @same_pids: hwbp is in the initial pid namespace, whose pids the list has
 */
struct slots {
	const char *class[SLOTS_MAX_CLASSES + 1];
	unsigned int registers[SLOTS_MAX_CLASSES];
	unsigned int nr_classes;
	struct holding *all;
	struct holding *end;
	size_t nr;
	size_t room;
	bool same_pids;
};

/*
 * Read and parse the list at @path, or the one in debugfs if @path is NULL. Exits with
 * a one-line message if it is not valid. Returns NULL, or the reason why it cannot be
 * read; to be freed.
 */
char *slots_read(struct slots *slots, const char *path);

/* The first holding of the first section that is not below @section, or the end of them */
struct holding *slots_find(const struct slots *slots, int64_t section);

/* The first holding of the section after that of @h */
struct holding *slots_next(const struct slots *slots, const struct holding *h);

/*
 * Returns true if a claim of @need registers of @class of @task for @cpu would fail, and with
 * @choose sets @chosen of the claims that are the reason. @task: a claim of the task, or NULL.
 */
bool slots_full(const struct slots *slots, int cpu, const struct holding *task, int class,
		unsigned int need, bool flexible, bool choose);

#endif
