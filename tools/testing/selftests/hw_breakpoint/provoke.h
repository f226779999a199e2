/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All ways to change kernel text, for the tests of PERF_RECORD_TEXT_POKE.
 *
 * Each function changes kernel text in one way, and undoes the change. The functions
 * run in processes that are bound to a CPU, several at a time, so the names of what
 * they use contain the number of the CPU, or can be shared.
 */
#ifndef PROVOKE_H
#define PROVOKE_H

#include "text_poke.h"

/* ------------------------------------------------------------------ provoking */

/*
 * The type of these functions, which undo their changes before they return. They return
 * 0, or KSFT_SKIP if the kernel lacks what they need.
 */
typedef int (*provoke_fn)(int cpu, int rounds);

/* An instance of tracefs, with a filter, a trampoline and events of its own */
int make_instance(const char *name, int cpu, char path[128]);

int instance_write(const char *path, const char *name, const char *text);

/* Removes an instance, which may still be in use for a short time. */
int end_instance(const char *path);

/* Removes the instances of children that were killed. */
void remove_instances(void);

/* Static keys: switched by sysctl, by debugfs, by perf */
int provoke_static_keys(int cpu, int rounds);

int open_tracepoint(const char *event);

/*
 * A tracepoint is a static key and a static call: with one probe the call goes to this
 * probe, with two it goes to a loop over them.
 */
int provoke_static_calls(int cpu, int rounds);

int provoke_functions(int cpu, int rounds);

/*
 * The function tracer on all functions; with lockdep, which makes this slow, only on
 * functions whose names contain "_s".
 */
int provoke_function_tracer(int cpu, int rounds);

int provoke_graph_tracer(int cpu, int rounds);
int provoke_kprobes(int cpu, int rounds);

/* Not every kprobe can be optimized: gives up after some time. */
void wait_until_optimized(unsigned long func);

/*
 * The kernel replaces breakpoints of kprobes by jumps after a delay, in a thread of its
 * own, and jumps by breakpoints when the optimization is disabled.
 */
int provoke_optimized_kprobes(int cpu, int rounds);

/*
 * The kernel replaces a jump by a breakpoint after a delay. If the kprobe is enabled
 * meanwhile, the breakpoint is set at once: several processes use kprobes at the same
 * address, with pauses about as long as the delay.
 */
int provoke_reenabled_kprobes(int cpu, int rounds);

/* Kprobes at the first instruction of a function, which use ftrace, and at its return */
int provoke_function_kprobes(int cpu, int rounds);

/* Disarms and arms all kprobes, those of others included. */
int provoke_disarming(int cpu, int rounds);

/*
 * BPF programs: text is written when they are compiled, and overwritten when they are
 * freed.
 */
int provoke_bpf_programs(int cpu, int rounds);

/* A tail call to a known entry of a map is a jump, which changes with the entry. */
int provoke_bpf_tail_calls(int cpu, int rounds);

/* The call at the start of a BPF program, and the trampoline that it calls */
int provoke_bpf_trampolines(int cpu, int rounds);

/*
 * The dispatcher compares the address of a program with those that it calls directly;
 * it is written again when these change.
 */
int provoke_bpf_dispatcher(int cpu, int rounds);

/* Classic BPF filters of sockets */
int provoke_socket_filters(int cpu, int rounds);

/*
 * Opens and closes other events that record text: the static key of the records
 * themselves.
 */
int provoke_listeners(int cpu, int rounds);

bool klog_has(const char *text);

/*
 * The debugger's own tests, see kgdb.sh. No other task may change text meanwhile, and
 * lockdep reports their locking.
 */
int provoke_debugger(int cpu, int rounds);

/* Does nothing: for CPU hotplug alone. */
int provoke_nothing(int cpu, int rounds);

/* The functions that can run at the same time */
#define NR_AT_ONCE	13

extern const provoke_fn at_once[NR_AT_ONCE];

#endif /* PROVOKE_H */
