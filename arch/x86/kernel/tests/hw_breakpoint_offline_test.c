// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of a breakpoint of a CPU that appears to be offline while it is disabled.
 */

#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

#include "../../../../kernel/events/hw_breakpoint_test.h"

static struct task_struct *caller;
static int nr_offline, nr_calls;

static unsigned long *first_argument(struct pt_regs *regs)
{
#ifdef CONFIG_X86_64
	return &regs->di;
#else
	return &regs->ax;
#endif
}
NOKPROBE_SYMBOL(first_argument);

/*
 * Lets the CPU, the first argument, appear to be offline for the first nr_offline calls:
 * replaces it by one that is never online.
 */
static int call_offline_cpu(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == READ_ONCE(caller) && nr_calls++ < nr_offline)
		*first_argument(regs) = nr_cpu_ids;
	return 0;
}
NOKPROBE_SYMBOL(call_offline_cpu);

/*
 * The CPU comes online after the call has failed and before the lock of the context is
 * taken, which shows that the context is active: the call is repeated.
 */
static void a_disable_is_not_lost_if_the_cpu_comes_online(struct kunit *test)
{
	struct kprobe kp = {
		.symbol_name	= "smp_call_function_single",
		.pre_handler	= call_offline_cpu,
	};
	struct bp_test_hits hits = { };
	struct perf_event *bp;
	int cpu;

	bp_test_require_hits(test);
	bp_test_require_two_cpus(test);
	/* smp_call_function_single() calls another CPU only. */
	bp_test_run_on(test, bp_test_first_cpu());
	cpu = bp_test_last_cpu();
	bp = bp_test_watch_cpu(test, cpu, &bp_test_words[0], &hits);
	bp_test_write_on(test, cpu, &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	nr_offline = 2;
	nr_calls = 0;
	KUNIT_ASSERT_EQ(test, register_kprobe(&kp), 0);
	WRITE_ONCE(caller, current);
	perf_event_disable(bp);
	WRITE_ONCE(caller, NULL);
	unregister_kprobe(&kp);
	KUNIT_EXPECT_GT(test, nr_calls, nr_offline);
	bp_test_write_on(test, cpu, &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_run_anywhere();
}

/* ---- The suite ---- */

static struct kunit_case x86_hw_breakpoint_offline_test_cases[] = {
	KUNIT_CASE(a_disable_is_not_lost_if_the_cpu_comes_online),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_offline_test_suite = {
	.name		= "x86_hw_breakpoint_offline",
	.test_cases	= x86_hw_breakpoint_offline_test_cases,
	.init		= bp_test_init,
	.exit		= bp_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_offline_test_suite);
