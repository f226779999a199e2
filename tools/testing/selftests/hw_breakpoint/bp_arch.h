/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests have to know about the architecture: the names of its registers and
 * symbols, and what its breakpoints can do.
 */
#ifndef BP_ARCH_H
#define BP_ARCH_H

#include <asm/perf_regs.h>
#include <stdbool.h>
#include <sys/types.h>
#include <ucontext.h>

#if defined(__x86_64__) || defined(__i386__)

#define BP_X86			1

/* A hit of a data breakpoint is reported after the access, else before it. */
#define BP_AFTER_ACCESS		1

/* A signal of a breakpoint on an instruction comes before that instruction. */
#define BP_SIGNAL_BEFORE	1

/* An access by the kernel to watched memory of the task is a hit. */
#define BP_KERNEL_ACCESS	1

/* A breakpoint of a task may be at an address of the kernel. */
#define BP_TASK_IN_KERNEL	1

/* Breakpoints on instructions and on data have registers of their own. */
#define BP_OWN_REGISTERS	0

/* All breakpoints are hit that watch bytes which an instruction accesses. */
#define BP_HITS_ALL		1

/* The list of claims has the registers, too. */
#define BP_LISTS_REGISTERS	1

/* Length of the longest range, see caps/max_length */
#define BP_MAX_LENGTH		((long)(4 * sizeof(long)))

#define BP_SYSCALL(name)	"__x64_sys_" name

/* Not the number of a register */
#define BP_PERF_REG_NONE	31

#define BP_PERF_REG_IP		PERF_REG_X86_IP
#define BP_PERF_REG_SP		PERF_REG_X86_SP

/* A debugger has the debug registers of x86, and gives back those that it disables. */
#define BP_DEBUG_REGISTERS	1

/* A program can set the flag that steps it. */
#define BP_STEPS_ITSELF		1

#define BP_PERF_REG_A		PERF_REG_X86_AX
#define BP_PERF_REG_B		PERF_REG_X86_BX

/* The instruction pointer in struct bpf_perf_event_data */
#define BP_BPF_REG_IP		regs.rip

static inline void bp_pause(void)
{
	asm volatile("pause");
}

/* One instruction adds 1 to an int. */
static inline void bp_increment(void *p)
{
	asm volatile("incl (%0)" : : "r"(p) : "memory");
}

/* Stores one byte with these values in BP_PERF_REG_A and BP_PERF_REG_B. */
static inline void bp_store_with(void *p, unsigned long a, unsigned long b)
{
	asm volatile("movb $1, (%2)" : : "a"(a), "b"(b), "r"(p) : "memory");
}

/* The instruction pointer in the context of a signal handler */
static inline unsigned long bp_context_ip(const ucontext_t *uc)
{
#ifdef __x86_64__
	return uc->uc_mcontext.gregs[REG_RIP];
#else
	return uc->uc_mcontext.gregs[REG_EIP];
#endif
}

#elif defined(__aarch64__)

#define BP_X86			0
#define BP_AFTER_ACCESS		0
#define BP_SIGNAL_BEFORE	0
#define BP_KERNEL_ACCESS	0
#define BP_TASK_IN_KERNEL	0
#define BP_OWN_REGISTERS	1
#define BP_HITS_ALL		0
#define BP_LISTS_REGISTERS	0

#define BP_MAX_LENGTH		8L
#define BP_SYSCALL(name)	"__arm64_sys_" name
#define BP_PERF_REG_NONE	40

#define BP_PERF_REG_IP		PERF_REG_ARM64_PC
#define BP_PERF_REG_SP		PERF_REG_ARM64_SP

#define BP_DEBUG_REGISTERS	0
#define BP_STEPS_ITSELF		0
#define BP_PERF_REG_A		PERF_REG_ARM64_X9
#define BP_PERF_REG_B		PERF_REG_ARM64_X10
#define BP_BPF_REG_IP		regs.pc

static inline void bp_pause(void)
{
	asm volatile("yield");
}

static inline void bp_increment(void *p)
{
	asm volatile(".arch_extension lse\n"
		     "stadd %w1, [%0]" : : "r"(p), "r"(1) : "memory");
}

static inline void bp_store_with(void *p, unsigned long a, unsigned long b)
{
	register unsigned long x9 asm("x9") = a, x10 asm("x10") = b;

	asm volatile("strb %w0, [%0]" : : "r"(p), "r"(x9), "r"(x10) : "memory");
}

static inline unsigned long bp_context_ip(const ucontext_t *uc)
{
	return uc->uc_mcontext.pc;
}

#endif

/* The instruction pointer of a stopped tracee, or 0 */
unsigned long bp_tracee_ip(pid_t pid);

/*
 * Through ptrace, has a stopped tracee watch for stores to @len bytes at @addr with register
 * @nr; those below it are in use. Returns 0 or a negative errno.
 */
int bp_tracee_watch(pid_t pid, int nr, const void *addr, int len);

#endif /* BP_ARCH_H */
