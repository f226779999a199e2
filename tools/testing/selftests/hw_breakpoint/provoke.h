/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All ways to change kernel text, for the tests of PERF_RECORD_TEXT_POKE.
 *
 * Each function changes kernel text in its own way, and undoes the change. The functions
 * run in processes that are bound to a CPU, several at a time, so what they use bears
 * the number of the CPU or may be shared.
 */
#ifndef PROVOKE_H
#define PROVOKE_H

#include "text_poke.h"

/* ------------------------------------------------------------------ provoking */

/*
 * Each of these changes kernel text in its own way, and takes back what it did.
 * They run in a process of their own that is bound to the CPU, several of them
 * at a time, so what they use bears the CPU's number or may be shared.
 */
typedef int (*provoke_fn)(int cpu, int rounds);

/* An instance of the tracer: its own filter, its own trampoline, its own events */
int make_instance(const char *name, int cpu, char path[128]);

int instance_write(const char *path, const char *name, const char *text);

/* Removes an instance, which can be busy for a moment longer. */
int end_instance(const char *path);

/* Removes the instances of children that were killed. */
void remove_instances(void);

/* Switches that are branches in the code: by sysctl, by debugfs, by perf */
int provoke_static_keys(int cpu, int rounds);

int open_tracepoint(const char *event);

/*
 * A tracepoint is a branch and a call: with one follower the call goes there,
 * with two it goes to a loop over them.
 */
int provoke_static_calls(int cpu, int rounds);

int provoke_functions(int cpu, int rounds);

/*
 * Each function of the kernel that can be traced. A debug kernel takes long for
 * them and is not here to find that one differs: some dozens of batches do.
 */
int provoke_function_tracer(int cpu, int rounds);

int provoke_graph_tracer(int cpu, int rounds);
int provoke_kprobes(int cpu, int rounds);

/* Not each can be: those that were not by then never will. */
void wait_until_optimized(unsigned long func);

/*
 * The kernel makes jumps of breakpoints a little later, in a thread of its own,
 * and breakpoints of jumps, when it is told to.
 */
int provoke_optimized_kprobes(int cpu, int rounds);

/*
 * A jump waits a little before it becomes a breakpoint again. Who asks for the
 * probe meanwhile puts a breakpoint in the place of the jump: several at a time,
 * with probes at the same address, and pauses about as long as the kernel's.
 */
int provoke_reenabled_kprobes(int cpu, int rounds);

/* At its first instruction, by way of ftrace, and at its return */
int provoke_function_kprobes(int cpu, int rounds);

/* All probes out and in again, those of others included */
int provoke_disarming(int cpu, int rounds);

/* Compiled programs are copied to text, and overwritten when they go. */
int provoke_bpf_programs(int cpu, int rounds);

/* A tail call to a known entry of a map is a jump, and follows the map. */
int provoke_bpf_tail_calls(int cpu, int rounds);

/* The call where a program begins, and the trampoline that it leads to */
int provoke_bpf_trampolines(int cpu, int rounds);

/* Compares the programs it knows and calls them directly: written anew each time. */
int provoke_bpf_dispatcher(int cpu, int rounds);

/* The classic kind, of sockets */
int provoke_socket_filters(int cpu, int rounds);

/* Listeners that are not ours come and go: the switch of this very event. */
int provoke_listeners(int cpu, int rounds);

bool klog_has(const char *text);

/*
 * The debugger's own tests, see kgdb.sh: nobody else may change text meanwhile,
 * and lockdep objects to how it does.
 */
int provoke_debugger(int cpu, int rounds);

/* Hotplug alone */
int provoke_nothing(int cpu, int rounds);

/* All that may go on at the same time */
#define NR_AT_ONCE	13

extern const provoke_fn at_once[NR_AT_ONCE];

#endif /* PROVOKE_H */
