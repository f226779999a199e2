// SPDX-License-Identifier: GPL-2.0
/* Get a SIGTRAP for each access to a variable, before the next instruction. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* siginfo with si_code TRAP_PERF (6), for a C library that lacks its fields */
struct perf_siginfo {
	int		signo;
	int		error;
	int		code;
	void		*addr;
	unsigned long	data;
	uint32_t	type;
	uint32_t	flags;
};

static volatile uint32_t counter;
static volatile sig_atomic_t hits;
static volatile unsigned long hit_data;
static void *volatile hit_addr;

static void on_sigtrap(int sig, siginfo_t *siginfo, void *context)
{
	const struct perf_siginfo *info = (const void *)siginfo;

	if (info->code != 6)
		return;
	hit_addr = info->addr;
	hit_data = info->data;
	hits++;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_RW,
		.bp_addr = (uintptr_t)&counter,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
		.sigtrap = 1,
		.sig_data = 42,
		.remove_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct sigaction action = {
		.sa_sigaction = on_sigtrap,
		.sa_flags = SA_SIGINFO,
	};

	sigaction(SIGTRAP, &action, NULL);
	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0) {
		perror("perf_event_open");
		return 1;
	}

	counter = 1;
	printf("%d signal, data %lu\n", (int)hits, hit_data);
	(void)counter;
	printf("%d signals, address is %s\n", (int)hits,
	       hit_addr == &counter ? "that of counter" : "another one");
	return 0;
}
