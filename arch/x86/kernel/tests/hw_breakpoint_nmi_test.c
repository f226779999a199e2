// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of breakpoints that a task, an interrupt and an NMI repoint at the same
 * time, on one CPU or on all: each of them reads an address that was set, and the CPU
 * watches the address of the last one.
 */

#include <linux/irq_work.h>

#include <asm/apic.h>
#include <asm/nmi.h>

#include "../../../../kernel/events/bp_wide_test.h"
#include "../../../../kernel/events/hw_breakpoint_test.h"

/* ---- One CPU ---- */

struct nest {
	struct bp_test_hits			hits;
	struct perf_event * __percpu	*set;
	struct irq_work			work;
	unsigned int			next;
	unsigned int			irqs;
	unsigned int			nmis;
	unsigned int			errors;
};

static struct nest nest;

static void read_and_repoint(void)
{
	unsigned long addr = (unsigned long)&bp_test_words[nest.next++ * 7 % 16];
	unsigned int i;

	i = (unsigned long *)wide_hw_breakpoint_addr(nest.set, true) - bp_test_words;
	if (i >= 16)
		nest.errors++;
	if (modify_wide_hw_breakpoint_local(nest.set, addr, NULL))
		nest.errors++;
}

static void repoint_in_interrupt(struct irq_work *work)
{
	nest.irqs++;
	read_and_repoint();
}

static int nmi_cpu;

static int repoint_in_nmi(unsigned int val, struct pt_regs *regs)
{
	if (raw_smp_processor_id() != nmi_cpu || !READ_ONCE(nest.set))
		return NMI_DONE;
	nest.nmis++;
	read_and_repoint();
	return NMI_HANDLED;
}

static void nmi_begin(struct kunit *test)
{
	nmi_cpu = raw_smp_processor_id();
	KUNIT_ASSERT_EQ(test, register_nmi_handler(NMI_LOCAL, repoint_in_nmi, 0,
						   "hw_breakpoint_test"), 0);
}

static void nmi_send(void)
{
	__apic_send_IPI_mask(cpumask_of(nmi_cpu), NMI_VECTOR);
}

static void nmi_end(void)
{
	unregister_nmi_handler(NMI_LOCAL, "hw_breakpoint_test");
}

static void repoints_in_all_contexts_end_at_one_address(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event *bp;
	unsigned int i, n;

	bp_test_run_on(test, bp_test_first_cpu());
	nest = (struct nest) { };
	nest.work = IRQ_WORK_INIT_HARD(repoint_in_interrupt);
	nest.set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, bp_test_record_hit,
								      &nest.hits));
	bp = bp_test_event_on(nest.set, bp_test_first_cpu());
	nmi_begin(test);

	for (n = 0; n < 300; n++) {
		nmi_send();
		preempt_disable();
		irq_work_queue(&nest.work);
		read_and_repoint();
		preempt_enable();
		irq_work_sync(&nest.work);
		if (n % 10)
			continue;

		/* The address in bp->attr is watched, and nothing else. */
		nmi_end();
		preempt_disable();
		for (i = 0; i < 16; i++) {
			bp_test_take_hits(&nest.hits);
			bp_test_write_word(&bp_test_words[i]);
			if (bp_test_take_hits(&nest.hits) !=
			    ((unsigned long)&bp_test_words[i] == bp->attr.bp_addr))
				nest.errors++;
		}
		if (wide_hw_breakpoint_addr(nest.set, true) != bp->attr.bp_addr)
			nest.errors++;
		preempt_enable();
		nmi_begin(test);
	}

	nmi_end();
	KUNIT_EXPECT_EQ(test, nest.errors, 0U);
	KUNIT_EXPECT_GT(test, nest.irqs, 0U);
	KUNIT_EXPECT_GT(test, nest.nmis, 0U);
	bp_test_run_anywhere();
}

/* ---- All CPUs ---- */

static atomic_t nr_race_nmis;

static int step_in_nmi(unsigned int val, struct pt_regs *regs)
{
	if (!bp_race_step())
		return NMI_DONE;
	atomic_inc(&nr_race_nmis);
	return NMI_HANDLED;
}

static void send_nmi(void)
{
	__apic_send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
}

static void concurrent_repoints_in_nmis_end_at_the_last_one(struct kunit *test)
{
	atomic_set(&nr_race_nmis, 0);
	KUNIT_ASSERT_EQ(test, register_nmi_handler(NMI_LOCAL, step_in_nmi, 0,
						   "bp_wide_test"), 0);
	bp_race(test, send_nmi);
	unregister_nmi_handler(NMI_LOCAL, "bp_wide_test");
	KUNIT_EXPECT_GT(test, atomic_read(&nr_race_nmis), 0);
}

/* ---- The suites ---- */

static struct kunit_case x86_hw_breakpoint_nmi_test_cases[] = {
	KUNIT_CASE(repoints_in_all_contexts_end_at_one_address),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_nmi_test_suite = {
	.name		= "x86_hw_breakpoint_nmi",
	.test_cases	= x86_hw_breakpoint_nmi_test_cases,
	.init		= bp_test_init,
	.exit		= bp_test_exit,
};

static struct kunit_case x86_bp_repoint_nmi_test_cases[] = {
	KUNIT_CASE(concurrent_repoints_in_nmis_end_at_the_last_one),
	{ }
};

static struct kunit_suite x86_bp_repoint_nmi_test_suite = {
	.name		= "x86_bp_repoint_nmi",
	.test_cases	= x86_bp_repoint_nmi_test_cases,
	.init		= bp_race_init,
	.exit		= bp_race_exit,
};

kunit_test_suites(&x86_hw_breakpoint_nmi_test_suite, &x86_bp_repoint_nmi_test_suite);
