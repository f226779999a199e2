// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of NMIs that interrupt a #DB. Data that NMI entry accesses is watched meanwhile:
 * a second #DB would overwrite the frame of the interrupted one.
 */

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/prandom.h>

#include <asm/apic.h>
#include <asm/nmi.h>
#include <asm/smp.h>

#include "hw_breakpoint_test.h"

/* Index of the breakpoint whose #DB is interrupted; the others watch data of NMI entry. */
#define TRAP		0

/* NMIs for each set of watched data */
#define TRAPS_A_SET	10
#define STORM_A_SET	500

/**
 * struct storm - NMIs, and what they interrupt
 * @end: in jiffies, when a case gives up; KUnit's own time limit is five minutes
 * @cpu: the CPU that gets the NMIs
 * @sent: number of NMIs that were sent
 * @handled: number of NMIs that arrived
 * @in_trap: number of those that interrupted a #DB
 * @in_nmi: number of hits while NMI entry or exit ran
 */
struct storm {
	unsigned long	end;
	int		cpu;
	int		sent;
	int		handled;
	int		in_trap;
	int		in_nmi;
};

static struct storm storm;

static int storm_nmi(unsigned int type, struct pt_regs *regs)
{
	if (raw_smp_processor_id() != storm.cpu ||
	    READ_ONCE(storm.handled) == READ_ONCE(storm.sent))
		return NMI_DONE;
	storm.in_trap += dr_test_on_db_stack(regs);
	/* DR7 is clear: not a hit. */
	dr_test_write_word(TRAP);
	WRITE_ONCE(storm.handled, storm.handled + 1);

	return NMI_HANDLED;
}

static void storm_hit(struct perf_event *bp, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	storm.in_nmi += dr_test_on_nmi_stack(regs);
}

/* ---- Data that NMI entry accesses ---- */

static unsigned long percpu_symbol(struct kunit *test, const char *name, int word)
{
	unsigned long offset = kallsyms_lookup_name(name);

	KUNIT_EXPECT_NE_MSG(test, offset, 0UL, "%s", name);
	offset = ALIGN_DOWN(offset, sizeof(long));
	return (unsigned long)((unsigned long *)per_cpu_ptr((void __percpu *)offset, storm.cpu) +
			       word);
}

/* Words that exc_nmi() reads or writes; 0 after the last one. */
static unsigned long entry_word(struct kunit *test, int i)
{
	switch (i) {
	case 0:
		return (unsigned long)cpu_online_mask;
	case 1:
		return ALIGN_DOWN((unsigned long)&per_cpu(pcpu_hot, storm.cpu).cpu_number,
				  sizeof(long));
	case 2:
		return (unsigned long)&per_cpu(pcpu_hot, storm.cpu).current_task;
	case 3:
		return percpu_symbol(test, "nmi_state", 0);
	case 4:
		return percpu_symbol(test, "nmi_cr2", 0);
	case 5 ... 11:
		return percpu_symbol(test, "nmi_stats", i - 5);
	default:
		return 0;
	}
}

/* Watches up to three words from number @i. Returns the number of the next one, 0 for none. */
static int watch_entry_words(struct kunit *test, int i)
{
	struct dr_test *f = test->priv;
	unsigned long addr;
	int bp;

	for (bp = TRAP + 1; bp < HBP_NUM; bp++, i++) {
		struct perf_event_attr attr;

		addr = entry_word(test, i);
		if (!addr)
			return 0;
		attr = dr_test_watch((void *)addr, sizeof(long), HW_BREAKPOINT_RW);
		f->bp[bp] = perf_event_create_kernel_counter(&attr, f->cpu, NULL, storm_hit, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(f->bp[bp]));
	}

	return entry_word(test, i) ? i : 0;
}

static void watch_no_entry_words(struct kunit *test)
{
	struct dr_test *f = test->priv;
	int bp;

	for (bp = TRAP + 1; bp < HBP_NUM; bp++) {
		if (f->bp[bp])
			dr_test_drop(test, bp);
	}
}

/* Calls @interrupt for each set of words that can be watched at a time. */
static void for_all_entry_words(struct kunit *test, void (*interrupt)(struct kunit *test))
{
	int i = 0;

	do {
		i = watch_entry_words(test, i);
		interrupt(test);
		watch_no_entry_words(test);
	} while (i);
	KUNIT_EXPECT_EQ(test, storm.in_nmi, 0);
}

/* ---- Cases ---- */

static bool storm_passed(void)
{
	return READ_ONCE(storm.handled) == READ_ONCE(storm.sent);
}

/* Waits in this CPU's time: an emulator may run one CPU at a time. */
static bool storm_passes(void)
{
	while (!storm_passed() && time_before(jiffies, storm.end)) {
		cpu_relax();
		cond_resched();
	}
	return storm_passed();
}

/*
 * The write that sends the NMI is watched: the #DB of it comes first, and the NMI
 * interrupts the first instruction of #DB entry, where DR7 is still armed. The x2APIC has
 * no memory that could be watched: there the NMI comes before or after the #DB.
 *
 * Returns the number of hits. Interrupts are off, because their handlers write to the APIC,
 * too.
 */
static int send_nmi_in_trap(struct dr_test *f)
{
	int i, hits;

	local_irq_disable();
	WRITE_ONCE(storm.sent, storm.sent + 1);
	atomic_set(&f->hits[TRAP].nr, 0);
	if (x2apic_mode) {
		__apic_send_IPI_mask(cpumask_of(storm.cpu), NMI_VECTOR);
		dr_test_write_word(TRAP);
	} else {
		native_apic_mem_write(APIC_ICR2, SET_XAPIC_DEST_FIELD(read_apic_id()));
		native_apic_mem_write(APIC_ICR, APIC_DEST_PHYSICAL | APIC_DM_NMI);
	}
	for (i = 0; i < 1000000 && !storm_passed(); i++)
		cpu_relax();
	hits = dr_test_take_hits(f, TRAP);
	local_irq_enable();

	return hits;
}

static void interrupt_first_instruction(struct kunit *test)
{
	int i;

	for (i = 0; i < TRAPS_A_SET; i++) {
		KUNIT_EXPECT_EQ(test, send_nmi_in_trap(test->priv), 1);
		KUNIT_ASSERT_TRUE(test, storm_passed());
	}
}

static void nmi_at_the_first_instruction_of_a_trap_changes_no_hit(struct kunit *test)
{
	if (x2apic_mode)
		dr_test_arm_word(test, TRAP);
	else
		dr_test_arm(test, TRAP, dr_test_watch((void *)APIC_BASE + APIC_ICR, 4,
						      HW_BREAKPOINT_W));
	for_all_entry_words(test, interrupt_first_instruction);

	if (!x2apic_mode)
		KUNIT_EXPECT_EQ(test, storm.in_trap, storm.handled);
}

static int send_nmis(void *unused)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, storm.cpu);
	while (!kthread_should_stop()) {
		WRITE_ONCE(storm.sent, storm.sent + 1);
		preempt_disable();
		__apic_send_IPI_mask(cpumask_of(storm.cpu), NMI_VECTOR);
		preempt_enable();
		while (!storm_passed() && !kthread_should_stop())
			cpu_relax();
		ndelay(prandom_u32_state(&rnd) % 1024);
		cond_resched();
	}

	return 0;
}

/* Goes on until a #DB was interrupted: the first set can take longer than the others. */
static void interrupt_anywhere(struct kunit *test)
{
	int last = storm.handled + STORM_A_SET;
	struct dr_test *f = test->priv;

	while ((READ_ONCE(storm.handled) < last || !READ_ONCE(storm.in_trap)) &&
	       time_before(jiffies, storm.end)) {
		KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, TRAP), 1);
		cond_resched();
	}
	KUNIT_EXPECT_GE(test, storm.handled, last);
}

static void nmis_at_any_instruction_of_a_trap_change_no_hit(struct kunit *test)
{
	struct task_struct *sender;
	int cpu;

	cpu = cpumask_any_but(cpu_online_mask, storm.cpu);
	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "one CPU is online, two are needed");
	dr_test_arm_word(test, TRAP);
	sender = kthread_create_on_cpu(send_nmis, NULL, cpu, "nmi_storm/%u");
	KUNIT_ASSERT_FALSE(test, IS_ERR(sender));
	wake_up_process(sender);

	for_all_entry_words(test, interrupt_anywhere);

	kthread_stop(sender);
	KUNIT_EXPECT_TRUE(test, storm_passes());
	KUNIT_EXPECT_GT(test, storm.in_trap, 0);
}

/* ---- The suite ---- */

static int storm_init(struct kunit *test)
{
	int err = dr_test_init(test);

	if (err)
		return err;
	storm = (struct storm) {
		.end = jiffies + 240 * HZ,
		.cpu = raw_smp_processor_id(),
	};
	return register_nmi_handler(NMI_LOCAL, storm_nmi, 0, "x86_hw_breakpoint_storm");
}

static void storm_exit(struct kunit *test)
{
	unregister_nmi_handler(NMI_LOCAL, "x86_hw_breakpoint_storm");
	dr_test_exit(test);
}

static struct kunit_case x86_hw_breakpoint_storm_test_cases[] = {
	KUNIT_CASE(nmi_at_the_first_instruction_of_a_trap_changes_no_hit),
	KUNIT_CASE_SLOW(nmis_at_any_instruction_of_a_trap_change_no_hit),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_storm_test_suite = {
	.name		= "x86_hw_breakpoint_storm",
	.test_cases	= x86_hw_breakpoint_storm_test_cases,
	.init		= storm_init,
	.exit		= storm_exit,
};

kunit_test_suite(x86_hw_breakpoint_storm_test_suite);
