// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the KUnit tests of the x86 debug registers; see hw_breakpoint_test.h.
 */

#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <asm/cpu_entry_area.h>
#include <asm/sections.h>

#include "hw_breakpoint_test.h"

unsigned long dr_test_words[DR_TEST_WORDS] __aligned(sizeof(long) * DR_TEST_WORDS);

/* ---- Accesses and hits ---- */

noinline __noclone void dr_test_write_word(int i)
{
	WRITE_ONCE(dr_test_words[i], i);
}

noinline __noclone void dr_test_called(void)
{
	/* Keeps the compiler from removing calls of this function. */
	barrier();
}

void dr_test_record_hit(struct perf_event *bp, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct dr_test_hits *hits = bp->overflow_handler_context;

	atomic_inc(&hits->nr);
	hits->ip = instruction_pointer(regs);
	hits->addr = data->addr;
	hits->sample_flags = data->sample_flags;
}

int dr_test_take_hits(struct dr_test *f, int i)
{
	return atomic_xchg(&f->hits[i].nr, 0);
}

int dr_test_write_hits(struct dr_test *f, int i)
{
	atomic_set(&f->hits[i].nr, 0);
	dr_test_write_word(i);
	return dr_test_take_hits(f, i);
}

/* ---- Registers ---- */

void dr_test_read_regs(struct dr_test_regs *regs)
{
	unsigned long flags;

	local_irq_save(flags);
	get_debugreg(regs->addr[0], 0);
	get_debugreg(regs->addr[1], 1);
	get_debugreg(regs->addr[2], 2);
	get_debugreg(regs->addr[3], 3);
	get_debugreg(regs->dr7, 7);
	regs->dr7 &= ~DR7_FIXED_1;
	regs->cpu_dr7 = this_cpu_read(cpu_dr7);
	regs->cpu = smp_processor_id();
	local_irq_restore(flags);
}

int dr_test_nr_enabled(const struct dr_test_regs *regs)
{
	int slot, nr = 0;

	for (slot = 0; slot < HBP_NUM; slot++)
		nr += dr7_enabled(regs->dr7, slot);

	return nr;
}

int dr_test_slot_at(const struct dr_test_regs *regs, const void *addr)
{
	int slot, found = -1;

	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(regs->dr7, slot) ||
		    regs->addr[slot] != (unsigned long)addr)
			continue;
		if (found >= 0)
			return -1;
		found = slot;
	}

	return found;
}

struct dr_test_regs dr_test_regs_now(struct kunit *test)
{
	struct dr_test_regs regs;

	dr_test_read_regs(&regs);
	KUNIT_EXPECT_EQ(test, regs.dr7, regs.cpu_dr7);
	return regs;
}

int dr_test_slot_now(struct kunit *test, const void *addr)
{
	struct dr_test_regs regs = dr_test_regs_now(test);

	return dr_test_slot_at(&regs, addr);
}

void dr_test_mark_dr7(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	set_debugreg(dr7 | DR_LOCAL_SLOWDOWN, 7);
}

bool dr_test_dr7_mark_stands(void)
{
	unsigned long dr7;

	get_debugreg(dr7, 7);
	return dr7 & DR_LOCAL_SLOWDOWN;
}

void dr_test_scramble_registers(void)
{
	int slot;

	for (slot = 0; slot < HBP_NUM; slot++)
		set_debugreg(0x1000UL + slot, slot);
}

/* ---- Breakpoints ---- */

struct perf_event_attr dr_test_watch(const void *addr, u64 len, u32 type)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)addr;
	attr.bp_len = len;
	attr.bp_type = type;

	return attr;
}

struct perf_event *dr_test_arm(struct kunit *test, int i, struct perf_event_attr attr)
{
	struct dr_test *f = test->priv;

	KUNIT_ASSERT_NULL(test, f->bp[i]);
	f->bp[i] = perf_event_create_kernel_counter(&attr, f->cpu, NULL, dr_test_record_hit,
						    &f->hits[i]);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[i]);

	return f->bp[i];
}

struct perf_event *dr_test_arm_word(struct kunit *test, int i)
{
	return dr_test_arm(test, i, dr_test_watch(&dr_test_words[i], sizeof(dr_test_words[i]),
						  HW_BREAKPOINT_W));
}

struct perf_event *dr_test_hold_word(struct kunit *test, int i, int word)
{
	struct perf_event_attr attr = dr_test_watch(&dr_test_words[word],
						    sizeof(dr_test_words[word]),
						    HW_BREAKPOINT_W);

	attr.disabled = 1;
	return dr_test_arm(test, i, attr);
}

struct perf_event *dr_test_make_fifth(struct kunit *test, int word)
{
	struct perf_event *event;

	event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event);
	/* Like an event of a CPU it counts the hits of any task. */
	event->ctx = kunit_kzalloc(test, sizeof(*event->ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event->ctx);
	KUNIT_ASSERT_EQ(test, dr_test_parse((unsigned long)&dr_test_words[word], WORD,
					    HW_BREAKPOINT_W, counter_arch_bp(event)), 0);

	return event;
}

void dr_test_drop(struct kunit *test, int i)
{
	struct dr_test *f = test->priv;

	unregister_hw_breakpoint(f->bp[i]);
	f->bp[i] = NULL;
}

int dr_test_parse(u64 addr, u64 len, u32 type, struct arch_hw_breakpoint *hw)
{
	struct perf_event_attr attr = dr_test_watch((void *)(long)addr, len, type);

	return hw_breakpoint_arch_parse(NULL, &attr, hw);
}

/* The address of a breakpoint that can be watched with each valid length */
#define MOVE_FROM	0x100000

/* A breakpoint that is moved to @addr has to become @hw, or be refused with @err. */
static bool moves_alike(u64 addr, u64 len, u32 type, int err,
			const struct arch_hw_breakpoint *hw)
{
	struct arch_hw_breakpoint from, to;

	if (dr_test_parse(MOVE_FROM, len, type, &from))
		return true;
	if (arch_hw_breakpoint_move(&from, addr, &to) != err)
		return false;
	return err || (to.address == hw->address && to.ctl == hw->ctl &&
		       to.mask == hw->mask && to.before == hw->before);
}

int dr_test_verdict(u64 addr, u64 len, u32 type)
{
	struct arch_hw_breakpoint hw;
	int err = dr_test_parse(addr, len, type, &hw);

	return moves_alike(addr, len, type, err, &hw) ? err : -EXDEV;
}

/* ---- The kernel debugger ---- */

const struct arch_hw_breakpoint *const dr_test_no_list[HBP_NUM];

/* Like a CPU that comes up: leaves the debugger without having entered it. */
unsigned int dr_test_debugger_leaves_with(const struct arch_hw_breakpoint *const list[HBP_NUM])
{
	unsigned int wanted = 0, left;
	int i;

	for (i = 0; i < HBP_NUM; i++) {
		hw_breakpoint_debugger_set(i, list[i]);
		wanted += !!list[i];
	}
	left = hw_breakpoint_debugger_leave();

	return wanted > left ? wanted - left : 0;
}

/* ---- Stacks of exceptions ---- */

#ifdef CONFIG_X86_64
bool dr_test_on_nmi_stack(const struct pt_regs *regs)
{
	return regs->sp >= __this_cpu_ist_bottom_va(NMI) && regs->sp <= __this_cpu_ist_top_va(NMI);
}

bool dr_test_on_db_stack(const struct pt_regs *regs)
{
	return regs->sp >= __this_cpu_ist_bottom_va(DB) && regs->sp <= __this_cpu_ist_top_va(DB);
}
#else
/*
 * A 32-bit kernel handles these exceptions on the stack of what they interrupt.  Each counts as
 * an NMI, from the end of the entry text on.
 */
static bool interrupted_exception(const struct pt_regs *regs)
{
	return (preempt_count() & NMI_MASK) > NMI_OFFSET ||
	       (regs->ip >= (unsigned long)__entry_text_start &&
		regs->ip < (unsigned long)__entry_text_end);
}

bool dr_test_on_nmi_stack(const struct pt_regs *regs)
{
	return interrupted_exception(regs);
}

bool dr_test_on_db_stack(const struct pt_regs *regs)
{
	return interrupted_exception(regs);
}
#endif

/* ---- Begin and end of a case ---- */

int dr_test_init(struct kunit *test)
{
	struct dr_test *f;

	if (hw_breakpoint_is_used())
		return -EBUSY;

	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->cpu = raw_smp_processor_id();
	test->priv = f;

	/* Each case runs in a thread of its own, so exit need not undo this. */
	return set_cpus_allowed_ptr(current, cpumask_of(f->cpu));
}

static void read_regs_call(void *regs)
{
	dr_test_read_regs(regs);
}

void dr_test_exit(struct kunit *test)
{
	struct dr_test *f = test->priv;
	struct dr_test_regs regs;
	int cpu, i;

	if (!f)
		return;

	for (i = 0; i < DR_TEST_WORDS; i++) {
		if (!IS_ERR(f->bp[i]))
			dr_test_drop(test, i);
	}
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, read_regs_call, &regs, 1);
		KUNIT_EXPECT_EQ_MSG(test, regs.dr7, 0UL, "on CPU %d", cpu);
		KUNIT_EXPECT_EQ_MSG(test, regs.cpu_dr7, 0UL, "on CPU %d", cpu);
	}
}
