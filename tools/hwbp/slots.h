/* SPDX-License-Identifier: GPL-2.0 */
/* Claims and registers, as listed in /sys/kernel/debug/hw_breakpoint/slots. */
#ifndef HWBP_SLOTS_H
#define HWBP_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* No CPU in particular, which without a task means all CPUs; no task */
#define SLOTS_ANY_CPU		(-1)
#define SLOTS_NO_TASK		(-1)
/* holding::section of a task: this plus its pid */
#define SLOTS_TASK		(1LL << 32)

/**
 * struct holding - a claim, or the contents of a register
 * @key: holdings are sorted by this text
 * @section: claim: its task, else its CPU, or SLOTS_ANY_CPU; register: its CPU
 * @number: claim: its CPU, or SLOTS_ANY_CPU; register: its number
 * @weight: claim: number of registers
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
	enum { HOLDING_CLAIM, HOLDING_REGISTER, HOLDING_FREE } kind;
	int number;
	unsigned int weight;
	bool flexible;
	char *type;
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
 * @registers: number of registers of each CPU
 * @nr_cpus: the CPUs that are named have lower numbers
 * @all, @end: claims and registers by section: all CPUs, each CPU, each task
 * @same_pids: hwbp is in the initial pid namespace, whose pids the list has
 */
struct slots {
	unsigned int registers;
	int nr_cpus;
	struct holding *all;
	struct holding *end;
	size_t nr;
	size_t room;
	bool same_pids;
};

/*
 * Read and parse the list at @path, or the one in debugfs if @path is NULL. Exits with
 * a one-line message if it is not valid. Returns NULL, or the reason why it cannot be
 * read.
 */
char *slots_read(struct slots *slots, const char *path);

/* The first holding of the first section that is not below @section, or the end of them */
struct holding *slots_find(const struct slots *slots, int64_t section);

/* The first holding of the section after that of @h */
struct holding *slots_next(const struct slots *slots, const struct holding *h);

/*
 * Returns true if a claim of @need registers of @task for @cpu would fail, and with @choose
 * sets @chosen of the claims that are the reason. @task: a claim of the task, or NULL.
 */
bool slots_full(const struct slots *slots, int cpu, const struct holding *task,
		unsigned int need, bool flexible, bool choose);

#endif
