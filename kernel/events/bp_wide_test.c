// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of repointing a kernel-wide breakpoint on all CPUs.
 *
 * The rules:
 *  - in any context, the CPU that repoints watches the new address when the call
 *    returns; every other CPU does when the change is settled;
 *  - after concurrent changes each CPU watches the address of the last one, and
 *    no CPU goes back to an older one;
 *  - no reader gets the address of one change with the sequence number of another;
 *  - a CPU that comes online watches the newest address, and a change by a CPU that
 *    dies or starts reaches all others;
 *  - each access to a range that all CPUs watch is reported once, and no access
 *    to a range that no CPU watches is reported.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timer.h>

#include "bp_internal.h"
#include "bp_wide_test.h"
#include "hw_breakpoint_test.h"

#define NR_WORDS	64

/**
 * struct fixture - the breakpoint of a test
 * @set: the kernel-wide set
 * @hits: number of its hits
 * @addr: address of the last hit
 */
struct fixture {
	struct perf_event * __percpu	*set;
	atomic_t			hits;
	unsigned long			addr;
};

static unsigned long words[NR_WORDS];

static noinline __noclone void write_word(void *word)
{
	WRITE_ONCE(*(unsigned long *)word, 1);
}

static void record_hit(struct perf_event *bp, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct fixture *f = bp->overflow_handler_context;

	atomic_inc(&f->hits);
	WRITE_ONCE(f->addr, data->addr);
}

static unsigned long addr_nr(unsigned int i)
{
	return (unsigned long)&words[i % NR_WORDS];
}

static int point_to(struct fixture *f, unsigned int i)
{
	return modify_wide_hw_breakpoint(f->set, addr_nr(i), NULL);
}

static int point_from(struct fixture *f, unsigned int from, unsigned int i)
{
	unsigned long addr = addr_nr(from);

	return modify_wide_hw_breakpoint(f->set, addr_nr(i), &addr);
}

static int point_here_to(struct fixture *f, unsigned int i)
{
	return modify_wide_hw_breakpoint_local(f->set, addr_nr(i), NULL);
}

static int point_here_from(struct fixture *f, unsigned int from, unsigned int i)
{
	unsigned long addr = addr_nr(from);

	return modify_wide_hw_breakpoint_local(f->set, addr_nr(i), &addr);
}

/* Returns the word that this CPU watches; -1 for an invalid address. */
static int word_here(struct fixture *f)
{
	unsigned long offset;

	preempt_disable();
	offset = wide_hw_breakpoint_addr(f->set, true) - (unsigned long)words;
	preempt_enable();

	return offset < sizeof(words) && IS_ALIGNED(offset, sizeof(*words)) ?
	       offset / sizeof(*words) : -1;
}

static struct bp_wide_cpu *wcpu_of(struct fixture *f, int cpu)
{
	return per_cpu_ptr(bp_wide_cpus(f->set), cpu);
}

static struct bp_wide_cpu *wcpu_here(struct fixture *f)
{
	return wcpu_of(f, raw_smp_processor_id());
}

static u64 seq_of(struct fixture *f)
{
	return atomic64_read(&wcpu_of(f, 0)->set->seq);
}

static int take_hits(struct fixture *f)
{
	return atomic_xchg(&f->hits, 0);
}

static void expect_on_cpu(struct kunit *test, int cpu, unsigned int word, int nr)
{
	struct fixture *f = test->priv;

	smp_call_function_single(cpu, write_word, &words[word], 1);
	KUNIT_EXPECT_EQ_MSG(test, take_hits(f), nr, "CPU %d, word %u", cpu, word);
	if (nr)
		KUNIT_EXPECT_EQ(test, f->addr, (unsigned long)&words[word]);
}

static void expect_watched_everywhere(struct kunit *test, unsigned int word)
{
	int cpu;

	for_each_online_cpu(cpu)
		expect_on_cpu(test, cpu, word, 1);
}

static void expect_watched_nowhere(struct kunit *test, unsigned int word)
{
	int cpu;

	for_each_online_cpu(cpu)
		expect_on_cpu(test, cpu, word, 0);
}

static void run_on(struct kunit *test, int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
}

static void run_anywhere(void)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static int other_cpu(void)
{
	return cpumask_last(cpu_online_mask);
}

static void require_two_cpus(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU is online, two are needed");
}

/* ---- One change ---- */

static void a_change_reaches_every_cpu(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 1; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, point_to(f, i), 0);
		synchronize_wide_hw_breakpoint(f->set);
		KUNIT_EXPECT_TRUE(test, wide_hw_breakpoint_is_settled(f->set));
		expect_watched_everywhere(test, i);
		expect_watched_nowhere(test, i - 1);
	}
}

/* Waits for a minute at most: a virtual CPU may stand still for seconds. */
static bool settles(struct fixture *f)
{
	unsigned long end = jiffies + 60 * HZ;

	while (!wide_hw_breakpoint_is_settled(f->set) && time_before(jiffies, end))
		usleep_range(100, 200);

	return wide_hw_breakpoint_is_settled(f->set);
}

static void repoint_settles_without_synchronize(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, point_to(f, 1), 0);
	KUNIT_EXPECT_TRUE(test, settles(f));
	expect_watched_everywhere(test, 1);
}

/*
 * Also with interrupts off: repointing does not wait for other CPUs, which are kicked when
 * interrupts are on.
 */
static void repointing_cpu_watches_the_new_range_at_once(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 1; i < 20; i++) {
		local_irq_disable();
		KUNIT_EXPECT_EQ(test, point_to(f, i), 0);
		write_word(&words[i]);
		write_word(&words[i - 1]);
		local_irq_enable();
		KUNIT_EXPECT_EQ(test, take_hits(f), 1);
		KUNIT_EXPECT_EQ(test, f->addr, (unsigned long)&words[i]);
	}
	KUNIT_EXPECT_TRUE(test, settles(f));
	expect_watched_everywhere(test, i - 1);
}

struct held_cpu {
	struct fixture	*f;
	bool		there;
	bool		go;
	bool		settled_early;
};

/* Keeps interrupts off on a CPU, so that it takes no kick. */
static void hold_cpu(void *arg)
{
	struct held_cpu *held = arg;

	smp_store_release(&held->there, true);
	while (!smp_load_acquire(&held->go))
		cpu_relax();
	held->settled_early = wide_hw_breakpoint_is_settled(held->f->set);
}

static void a_change_is_not_settled_while_a_cpu_has_interrupts_off(struct kunit *test)
{
	struct held_cpu held = { .f = test->priv };
	call_single_data_t csd;

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	INIT_CSD(&csd, hold_cpu, &held);
	KUNIT_ASSERT_EQ(test, smp_call_function_single_async(other_cpu(), &csd), 0);
	while (!smp_load_acquire(&held.there))
		cpu_relax();

	KUNIT_EXPECT_EQ(test, point_to(held.f, 1), 0);
	KUNIT_EXPECT_FALSE(test, wide_hw_breakpoint_is_settled(held.f->set));
	smp_store_release(&held.go, true);
	synchronize_wide_hw_breakpoint(held.f->set);
	KUNIT_EXPECT_FALSE(test, held.settled_early);
	KUNIT_EXPECT_TRUE(test, wide_hw_breakpoint_is_settled(held.f->set));
	expect_watched_everywhere(test, 1);
	run_anywhere();
}

/**
 * struct late_kick - a change on a CPU whose interrupts stay off for a while
 * @f: the fixture
 * @timer: switches them on
 * @there: the change is made
 * @go: interrupts may be switched on
 * @err: result of the change
 */
struct late_kick {
	struct fixture		*f;
	struct timer_list	timer;
	bool			there;
	bool			go;
	int			err;
};

static void change_and_hold(void *arg)
{
	struct late_kick *late = arg;

	late->err = point_to(late->f, 1);
	smp_store_release(&late->there, true);
	while (!smp_load_acquire(&late->go))
		cpu_relax();
}

static void let_go(struct timer_list *timer)
{
	struct late_kick *late = container_of(timer, struct late_kick, timer);

	smp_store_release(&late->go, true);
}

static void expect_no_kick_is_pending(struct kunit *test, struct fixture *f)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct bp_wide_cpu *wcpu = wcpu_of(f, cpu);

		KUNIT_EXPECT_FALSE_MSG(test, irq_work_is_busy(&wcpu->relay), "CPU %d", cpu);
		KUNIT_EXPECT_FALSE_MSG(test, irq_work_is_busy(&wcpu->adopt), "CPU %d", cpu);
	}
}

/* A set is freed after this: no irq_work of it may be queued then. */
static void stopping_waits_for_kicks_that_are_pending(struct kunit *test)
{
	struct late_kick *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	call_single_data_t csd;

	KUNIT_ASSERT_NOT_NULL(test, late);
	late->f = test->priv;
	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	timer_setup(&late->timer, let_go, 0);
	INIT_CSD(&csd, change_and_hold, late);
	KUNIT_ASSERT_EQ(test, smp_call_function_single_async(other_cpu(), &csd), 0);
	while (!smp_load_acquire(&late->there))
		cpu_relax();
	KUNIT_EXPECT_EQ(test, late->err, 0);
	KUNIT_EXPECT_TRUE(test, irq_work_is_busy(&wcpu_of(late->f, other_cpu())->relay));

	mod_timer(&late->timer, jiffies + msecs_to_jiffies(10));
	bp_wide_stop_repoint(late->f->set);
	expect_no_kick_is_pending(test, late->f);
	while (!smp_load_acquire(&late->go))
		cpu_relax();
	timer_delete_sync(&late->timer);
	synchronize_wide_hw_breakpoint(late->f->set);
	expect_watched_everywhere(test, 1);
	run_anywhere();
}

/*
 * Repointing with interrupts off kicks the other CPUs at once, but not without end in
 * one tick.  All CPUs follow nevertheless.
 */
static void relays_become_late_rather_than_endless(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct bp_wide *set = wcpu_of(f, 0)->set;
	unsigned int i = 0;
	bool late = false;

	require_two_cpus(test);
	/* The timer may expire, and be queued no more, as soon as interrupts are on. */
	while (i < 1000 && !late) {
		local_irq_disable();
		KUNIT_EXPECT_EQ(test, point_to(f, ++i % 2), 0);
		late = hrtimer_is_queued(&set->late);
		local_irq_enable();
	}
	KUNIT_EXPECT_TRUE(test, late);
	KUNIT_EXPECT_GT(test, i, 10);

	KUNIT_EXPECT_TRUE(test, settles(f));
	expect_watched_everywhere(test, i % 2);
}

static void refused_repoint_changes_nothing(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint(f->set, addr_nr(1) + 2, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, point_from(f, 2, 1), -EAGAIN);

	/* Nothing was changed, not even to an equal address. */
	KUNIT_EXPECT_EQ(test, seq_of(f), (u64)BP_WIDE_FIRST_SEQ);
	synchronize_wide_hw_breakpoint(f->set);
	expect_watched_everywhere(test, 0);
	expect_watched_nowhere(test, 1);
}

/* A set of user addresses whose opener may not watch the kernel */
static void set_without_kernel_is_not_repointed_to_the_kernel(struct kunit *test)
{
	struct perf_event_attr user = bp_test_watch(&words[1], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;

	user.bp_addr = PAGE_SIZE;
	user.exclude_kernel = 1;
	set = register_wide_hw_breakpoint(&user, record_hit, test->priv);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint(set, addr_nr(1), NULL), -EINVAL);
	preempt_disable();
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(set, addr_nr(1), NULL), -EINVAL);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint(set, PAGE_SIZE + sizeof(long), NULL), 0);
	unregister_wide_hw_breakpoint(set);
}

static void repoint_from_a_wrong_address_is_refused(struct kunit *test)
{
	struct fixture *f = test->priv;

	/* Before any change the set watches the registered address. */
	KUNIT_EXPECT_EQ(test, point_from(f, 1, 2), -EAGAIN);
	KUNIT_EXPECT_EQ(test, word_here(f), 0);
	KUNIT_EXPECT_EQ(test, point_from(f, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, word_here(f), 2);
	KUNIT_EXPECT_EQ(test, point_from(f, 0, 2), -EAGAIN);
	synchronize_wide_hw_breakpoint(f->set);
	expect_watched_everywhere(test, 2);
	expect_watched_nowhere(test, 0);
}

static void local_repoint_lasts_until_the_set_is_repointed(struct kunit *test)
{
	struct fixture *f = test->priv;
	int cpu;

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	KUNIT_ASSERT_EQ(test, point_to(f, 1), 0);
	synchronize_wide_hw_breakpoint(f->set);
	cpu = raw_smp_processor_id();
	KUNIT_ASSERT_EQ(test, point_here_to(f, 5), 0);
	/* Adopting the address of the set again does not undo the change. */
	synchronize_wide_hw_breakpoint(f->set);
	expect_on_cpu(test, cpu, 5, 1);
	expect_on_cpu(test, cpu, 1, 0);
	expect_on_cpu(test, other_cpu(), 5, 0);
	expect_on_cpu(test, other_cpu(), 1, 1);

	KUNIT_ASSERT_EQ(test, point_to(f, 2), 0);
	synchronize_wide_hw_breakpoint(f->set);
	expect_watched_everywhere(test, 2);
	expect_watched_nowhere(test, 5);
	run_anywhere();
}

/* ---- In the middle of a change or a read ---- */

/**
 * struct middle - a change in the middle of another change, or of a read
 * @f: the set that is changed
 * @task: task that changes or reads; accesses by others are ignored
 * @hits: accesses to the watched word
 * @skip: number of accesses before the change
 * @func: the change
 * @err: the change failed
 */
struct middle {
	struct fixture		*f;
	struct task_struct	*task;
	atomic_t		hits;
	int			skip;
	int			(*func)(struct fixture *f);
	int			err;
};

/* Calls the change at access number @skip + 1 to the watched word. */
static void call_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;

	if (current == m->task && atomic_inc_return(&m->hits) == m->skip + 1)
		m->err |= m->func(m->f);
}

static int all_to_41(struct fixture *f)
{
	return point_to(f, 41);
}

static int this_cpu_to_42(struct fixture *f)
{
	return point_here_to(f, 42);
}

static int from_err;

static void all_to_21(struct fixture *f)
{
	from_err = point_to(f, 21);
}

static void all_from_20_to_21(struct fixture *f)
{
	from_err = point_from(f, 20, 21);
}

static void this_cpu_to_21(struct fixture *f)
{
	from_err = point_here_to(f, 21);
}

static void this_cpu_from_20_to_21(struct fixture *f)
{
	from_err = point_here_from(f, 20, 21);
}

static int seen;

static void read_once(struct fixture *f)
{
	seen = word_here(f);
}

static void adopt_once(struct fixture *f)
{
	/* On this CPU synchronize_wide_hw_breakpoint() adopts, as a kick does. */
	synchronize_wide_hw_breakpoint(f->set);
	seen = word_here(f);
}

/* The words by which a CPU finds out what it watches */
#define NR_STATE_WORDS	7

static unsigned long *state_word(struct fixture *f, unsigned int i)
{
	struct bp_wide_cpu *wcpu = wcpu_here(f);
	/* The current pair, and that of the next writer that interrupts none */
	struct bp_wide_pair *pair = &wcpu->pair[wcpu->now % (2 * BP_WIDE_DEPTH)];
	struct bp_wide_pair *next = &wcpu->pair[pair == wcpu->pair];

	switch (i) {
	case 0:
		return &wcpu->set->addr;
	case 1:
		return (unsigned long *)&wcpu->set->seq;
	case 2:
		return &wcpu->now;
	case 3:
		return (unsigned long *)&pair->seq;
	case 4:
		return &pair->addr;
	case 5:
		return (unsigned long *)&next->seq;
	default:
		return &next->addr;
	}
}

/* Calls @func, and m->func() at an access to @word. Returns true if there was one. */
static bool in_the_middle(struct kunit *test, struct middle *m, unsigned long *word, u32 type,
			  void (*func)(struct fixture *f))
{
	struct perf_event_attr attr = bp_test_watch(word, type);
	struct perf_event * __percpu *set;

	atomic_set(&m->hits, 0);
	set = register_wide_hw_breakpoint(&attr, call_in_the_middle, m);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));
	func(m->f);
	unregister_wide_hw_breakpoint(set);
	return atomic_read(&m->hits) > m->skip;
}

/* This CPU watches word 20; all others watch word 10 if @alone. */
static void start_at_20(struct kunit *test, struct fixture *f, bool alone)
{
	KUNIT_ASSERT_EQ(test, point_to(f, alone ? 10 : 20), 0);
	if (alone)
		KUNIT_ASSERT_EQ(test, point_here_to(f, 20), 0);
	synchronize_wide_hw_breakpoint(f->set);
}

/*
 * This CPU has settled the newest number: no kick is pending that would do that later, so
 * an older number would stay, and the set would never be settled.
 */
static void expect_settled_here(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&wcpu_here(f)->settled), seq_of(f));
}

static void expect_watched_here(struct kunit *test, unsigned int word, const char *what,
				unsigned int i)
{
	struct fixture *f = test->priv;

	take_hits(f);
	KUNIT_EXPECT_EQ_MSG(test, word_here(f), word, "%s, %u", what, i);
	write_word(&words[word]);
	KUNIT_EXPECT_EQ_MSG(test, take_hits(f), 1, "%s, %u", what, i);
	if (word != 21) {
		write_word(&words[21]);
		KUNIT_EXPECT_EQ_MSG(test, take_hits(f), 0, "%s, %u", what, i);
	}
	expect_settled_here(test);
	KUNIT_EXPECT_EQ(test, wcpu_here(f)->depth, 0U);
}

/* At each of the first accesses to each word: @check says what is watched after it. */
static void at_each_access(struct kunit *test, struct middle *m, bool alone, u32 type,
			   void (*func)(struct fixture *f),
			   void (*check)(struct kunit *test, struct middle *m, unsigned int i))
{
	unsigned int i, nr_hit = 0;

	m->f = test->priv;
	m->task = current;
	run_on(test, cpumask_first(cpu_online_mask));
	for (i = 0; i < 6 * NR_STATE_WORDS; i++) {
		m->skip = i / NR_STATE_WORDS;
		start_at_20(test, m->f, alone);
		if (!in_the_middle(test, m, state_word(m->f, i % NR_STATE_WORDS), type, func))
			continue;
		nr_hit++;
		check(test, m, i);
	}
	KUNIT_EXPECT_GE(test, nr_hit, 2U);
	KUNIT_EXPECT_EQ(test, m->err, 0);
	run_anywhere();
}

static void read_is_20_or_41(struct kunit *test, struct middle *m, unsigned int i)
{
	KUNIT_EXPECT_TRUE_MSG(test, seen == 20 || seen == 41, "access %u: %d", i, seen);
	expect_watched_here(test, 41, "read", i);
}

static void read_that_a_repoint_interrupts_is_consistent(struct kunit *test)
{
	struct middle m = { .func = all_to_41 };

	at_each_access(test, &m, false, HW_BREAKPOINT_RW, read_once, read_is_20_or_41);
	at_each_access(test, &m, true, HW_BREAKPOINT_RW, read_once, read_is_20_or_41);
}

static void all_watch_41(struct kunit *test, struct middle *m, unsigned int i)
{
	expect_watched_here(test, 41, "all", i);
}

static void this_cpu_watches_42(struct kunit *test, struct middle *m, unsigned int i)
{
	expect_watched_here(test, 42, "this CPU", i);
}

static void adoption_that_a_repoint_interrupts_takes_the_newest(struct kunit *test)
{
	struct middle m = { .func = all_to_41 };

	at_each_access(test, &m, false, HW_BREAKPOINT_RW, adopt_once, all_watch_41);
	at_each_access(test, &m, true, HW_BREAKPOINT_RW, adopt_once, all_watch_41);
	m.func = this_cpu_to_42;
	at_each_access(test, &m, false, HW_BREAKPOINT_RW, adopt_once, this_cpu_watches_42);
	at_each_access(test, &m, true, HW_BREAKPOINT_RW, adopt_once, this_cpu_watches_42);
}

/* The last store to the address wins, on all CPUs. */
static void last_stored_of_nested_repoints_wins(struct kunit *test)
{
	struct middle m = { .f = test->priv, .task = current, .func = all_to_41 };
	unsigned int i;

	run_on(test, cpumask_first(cpu_online_mask));
	for (i = 0; i < 2; i++) {
		start_at_20(test, m.f, i);
		KUNIT_EXPECT_TRUE(test, in_the_middle(test, &m, state_word(m.f, 0),
						      HW_BREAKPOINT_W, all_to_21));
		expect_watched_here(test, 41, "address", i);
		start_at_20(test, m.f, i);
		KUNIT_EXPECT_TRUE(test, in_the_middle(test, &m, state_word(m.f, 1),
						      HW_BREAKPOINT_W, all_to_21));
		expect_watched_here(test, 41, "number", i);
		synchronize_wide_hw_breakpoint(m.f->set);
		take_hits(m.f);
		expect_watched_everywhere(test, 41);
		expect_watched_nowhere(test, 21);
	}
	KUNIT_EXPECT_EQ(test, m.err, 0);
	run_anywhere();
}

/* A change before the comparison makes it fail, and one after it is the later one. */
static void conditional_wide_repoint_keeps_one_that_interrupts_it(struct kunit *test)
{
	struct middle m = { .func = all_to_41 };
	int alone;

	for (alone = 0; alone < 2; alone++) {
		m.func = all_to_41;
		at_each_access(test, &m, alone, HW_BREAKPOINT_RW, all_from_20_to_21, all_watch_41);
		m.func = this_cpu_to_42;
		at_each_access(test, &m, alone, HW_BREAKPOINT_RW, all_from_20_to_21,
			       this_cpu_watches_42);
	}
}

static void conditional_local_repoint_keeps_one_that_interrupts_it(struct kunit *test)
{
	struct middle m = { .func = all_to_41 };
	int alone;

	for (alone = 0; alone < 2; alone++) {
		m.func = all_to_41;
		at_each_access(test, &m, alone, HW_BREAKPOINT_RW, this_cpu_from_20_to_21,
			       all_watch_41);
		m.func = this_cpu_to_42;
		at_each_access(test, &m, alone, HW_BREAKPOINT_RW, this_cpu_from_20_to_21,
			       this_cpu_watches_42);
	}
}

/*
 * A change of this CPU to 42 interrupts a change of all CPUs to 21, at its access to word
 * @word of the set; this CPU then watches @addr.
 */
static void change_this_cpu_in_a_wide_change(struct kunit *test, unsigned int word,
					     unsigned int addr, const char *when)
{
	struct middle m = { .f = test->priv, .task = current, .func = this_cpu_to_42 };
	int alone;

	run_on(test, cpumask_first(cpu_online_mask));
	for (alone = 0; alone < 2; alone++) {
		start_at_20(test, m.f, alone);
		KUNIT_EXPECT_TRUE(test, in_the_middle(test, &m, state_word(m.f, word),
						      HW_BREAKPOINT_W, all_to_21));
		KUNIT_EXPECT_EQ(test, from_err, 0);
		expect_watched_here(test, addr, when, alone);
	}
	KUNIT_EXPECT_EQ(test, m.err, 0);
	run_anywhere();
}

/*
 * The trap comes after the number is incremented. So the change of this CPU is the later
 * one, although each CPU adopts the change of all CPUs only after it.
 */
static void local_repoint_right_after_a_wide_one_stays(struct kunit *test)
{
	change_this_cpu_in_a_wide_change(test, 1, 42, "after");
}

/*
 * The change of this CPU comes after the address is stored, and before the number is
 * incremented.  So the change of all CPUs is the later one.
 */
static void wide_repoint_that_a_local_one_interrupts_is_watched(struct kunit *test)
{
	change_this_cpu_in_a_wide_change(test, 0, 21, "before");
}

/*
 * The change of all CPUs comes before the pair is published.  The change of this CPU is
 * based on the new number, so it stays until the next change of all CPUs.
 */
static void local_repoint_that_a_wide_one_interrupts_stays(struct kunit *test)
{
	struct middle m = { .f = test->priv, .task = current, .func = all_to_41 };
	unsigned int i, nr_hit = 0;

	run_on(test, cpumask_first(cpu_online_mask));
	for (i = 0; i < 4; i++) {
		start_at_20(test, m.f, i & 1);
		nr_hit += in_the_middle(test, &m, state_word(m.f, 5 + i / 2), HW_BREAKPOINT_W,
					this_cpu_to_21);
		KUNIT_EXPECT_EQ(test, from_err, 0);
		synchronize_wide_hw_breakpoint(m.f->set);
		expect_watched_here(test, 21, "pair", i);
	}
	KUNIT_EXPECT_EQ(test, nr_hit, 4U);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	run_anywhere();
}

static void a_set_can_be_repointed_repeatedly(struct kunit *test)
{
	struct fixture *f = test->priv;

	for (int i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, point_to(f, i & 1 ? 22 : 20), 0);
		synchronize_wide_hw_breakpoint(f->set);
		take_hits(f);
		expect_watched_everywhere(test, i & 1 ? 22 : 20);
		expect_watched_nowhere(test, i & 1 ? 20 : 22);
		KUNIT_EXPECT_EQ(test, wide_hw_breakpoint_addr(f->set, false),
				addr_nr(i & 1 ? 22 : 20));
	}
	run_on(test, cpumask_first(cpu_online_mask));
	KUNIT_EXPECT_EQ(test, point_here_to(f, 20), 0);
	expect_on_cpu(test, raw_smp_processor_id(), 20, 1);
	expect_on_cpu(test, raw_smp_processor_id(), 22, 0);
	run_anywhere();
}

static void conditional_repoint_compares_with_the_address_of_this_cpu(struct kunit *test)
{
	struct fixture *f = test->priv;

	run_on(test, cpumask_first(cpu_online_mask));
	KUNIT_ASSERT_EQ(test, point_to(f, 20), 0);
	KUNIT_ASSERT_EQ(test, point_here_to(f, 10), 0);
	/* All others watch 20. */
	all_from_20_to_21(f);
	KUNIT_EXPECT_EQ(test, from_err, -EAGAIN);
	this_cpu_from_20_to_21(f);
	KUNIT_EXPECT_EQ(test, from_err, -EAGAIN);
	KUNIT_EXPECT_EQ(test, word_here(f), 10);
	KUNIT_ASSERT_EQ(test, point_here_to(f, 20), 0);
	this_cpu_from_20_to_21(f);
	KUNIT_EXPECT_EQ(test, from_err, 0);
	KUNIT_EXPECT_EQ(test, word_here(f), 21);
	run_anywhere();
}

/* ---- All CPUs and contexts at a time ---- */

#define NR_STEPS	3000

/**
 * struct relay_race - the oracle: each change (step) goes from word N to N + 1
 * @f: the set
 * @steps: number of changes that were made
 * @wrong: number of reads of an address that was not set, or is older than before
 * @irqs: number of attempts in an interrupt
 * @interrupt: lets another context call bp_race_step() on this CPU; may be NULL
 * @work: irq_work of each CPU, for attempts in an interrupt
 * @seen: word that each CPU has read last
 * @done: completed once by each CPU
 */
struct relay_race {
	struct fixture		*f;
	atomic_t		steps;
	atomic_t		wrong;
	atomic_t		irqs;
	void			(*interrupt)(void);
	struct irq_work __percpu *work;
	int __percpu		*seen;
	struct completion	done;
};

static struct relay_race race;

/*
 * Tries to repoint the set from the word that this CPU reads to the next one.
 * The change is refused if another context was faster, so each step is counted
 * exactly once.
 */
static void make_step(void)
{
	int at = word_here(race.f);

	if (at < 0) {
		atomic_inc(&race.wrong);
		return;
	}
	if (!point_from(race.f, at, at + 1))
		atomic_inc(&race.steps);
}

/*
 * Called with interrupts off.  Words are numbered modulo NR_WORDS: a distance
 * of more than half of them means that the CPU went back.
 */
static void look(void *unused)
{
	int *last = this_cpu_ptr(race.seen), at = word_here(race.f);

	if (at < 0 || (at - *last + NR_WORDS) % NR_WORDS > NR_WORDS / 2)
		atomic_inc(&race.wrong);
	*last = at;
}

static void step_in_interrupt(struct irq_work *work)
{
	atomic_inc(&race.irqs);
	make_step();
}

bool bp_race_step(void)
{
	if (!READ_ONCE(race.f))
		return false;
	make_step();
	return true;
}

static int run_race(void *unused)
{
	int i;

	for (i = 0; i < NR_STEPS; i++) {
		preempt_disable();
		switch (i % 4) {
		case 0:
			if (race.interrupt)
				race.interrupt();
			break;
		case 1:
			irq_work_queue(this_cpu_ptr(race.work));
			break;
		}
		make_step();
		preempt_enable();
		cond_resched();
	}
	complete(&race.done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);

	return 0;
}

static void start_runners(struct kunit *test, struct task_struct **runner)
{
	int cpu;

	for_each_online_cpu(cpu) {
		runner[cpu] = kthread_create_on_cpu(run_race, NULL, cpu, "race/%u");
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, runner[cpu]);
	}
	for_each_online_cpu(cpu)
		wake_up_process(runner[cpu]);
}

void bp_race(struct kunit *test, void (*interrupt)(void))
{
	struct task_struct **runner;
	int cpu, last;

	race = (struct relay_race) { .interrupt = interrupt };
	init_completion(&race.done);
	race.work = alloc_percpu(struct irq_work);
	race.seen = alloc_percpu(int);
	runner = kunit_kcalloc(test, nr_cpu_ids, sizeof(*runner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, runner);
	for_each_possible_cpu(cpu)
		*per_cpu_ptr(race.work, cpu) = IRQ_WORK_INIT_HARD(step_in_interrupt);
	smp_store_release(&race.f, test->priv);
	start_runners(test, runner);
	/* kthread_stop() before a thread has run would skip its steps. */
	for_each_online_cpu(cpu)
		wait_for_completion(&race.done);
	for_each_online_cpu(cpu)
		kthread_stop(runner[cpu]);
	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(race.work, cpu));

	/* Each CPU watches the word of the last step, and nothing else. */
	synchronize_wide_hw_breakpoint(race.f->set);
	last = atomic_read(&race.steps) % NR_WORDS;
	KUNIT_EXPECT_GT(test, atomic_read(&race.steps), NR_STEPS / 2);
	KUNIT_EXPECT_GT(test, atomic_read(&race.irqs), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&race.wrong), 0);
	for_each_online_cpu(cpu)
		KUNIT_EXPECT_EQ(test, (*per_cpu_ptr(race.f->set, cpu))->attr.bp_addr,
				(u64)(unsigned long)&words[last]);
	take_hits(race.f);
	expect_watched_everywhere(test, last);
	expect_watched_nowhere(test, (last + 1) % NR_WORDS);
	expect_watched_nowhere(test, (last + NR_WORDS - 1) % NR_WORDS);
	free_percpu(race.seen);
	free_percpu(race.work);
}

static void concurrent_repoints_end_at_the_last_one(struct kunit *test)
{
	bp_race(test, NULL);
}

static int watch_order(void *unused)
{
	while (!kthread_should_stop()) {
		local_irq_disable();
		look(NULL);
		local_irq_enable();
		cond_resched();
	}

	return 0;
}

/* One CPU makes steps, all CPUs look: no CPU ever goes back. */
static void no_cpu_goes_back_to_an_older_address(struct kunit *test)
{
	struct task_struct **runner;
	int cpu, i;

	require_two_cpus(test);
	race = (struct relay_race) { .f = test->priv };
	race.seen = alloc_percpu(int);
	runner = kunit_kcalloc(test, nr_cpu_ids, sizeof(*runner), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, runner);
	run_on(test, cpumask_first(cpu_online_mask));
	for_each_online_cpu(cpu) {
		runner[cpu] = kthread_create_on_cpu(watch_order, NULL, cpu, "look/%u");
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, runner[cpu]);
		wake_up_process(runner[cpu]);
	}
	for (i = 0; i < NR_STEPS; i++) {
		make_step();
		if (i % 16 == 0)
			on_each_cpu(look, NULL, 1);
		if (i % 256 == 0)
			schedule_timeout_uninterruptible(1);
	}
	for_each_online_cpu(cpu)
		kthread_stop(runner[cpu]);
	KUNIT_EXPECT_EQ(test, atomic_read(&race.steps), NR_STEPS);
	KUNIT_EXPECT_EQ(test, atomic_read(&race.wrong), 0);
	free_percpu(race.seen);
	run_anywhere();
}

/* ---- CPU hotplug ---- */

static void a_cpu_that_comes_online_watches_the_newest(struct kunit *test)
{
	struct fixture *f = test->priv;
	int cpu;

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	cpu = other_cpu();
	KUNIT_ASSERT_EQ(test, point_to(f, 1), 0);
	if (remove_cpu(cpu))
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	KUNIT_EXPECT_EQ(test, point_to(f, 2), 0);
	synchronize_wide_hw_breakpoint(f->set);
	KUNIT_EXPECT_TRUE(test, wide_hw_breakpoint_is_settled(f->set));
	KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);

	KUNIT_EXPECT_TRUE(test, wide_hw_breakpoint_is_settled(f->set));
	take_hits(f);
	expect_watched_everywhere(test, 2);
	expect_watched_nowhere(test, 1);
	expect_watched_nowhere(test, 0);
	KUNIT_EXPECT_EQ(test, point_to(f, 3), 0);
	synchronize_wide_hw_breakpoint(f->set);
	expect_watched_everywhere(test, 3);
	run_anywhere();
}

/* A debugger may have installed them, and is asked on a CPU that is going offline, too. */
static void events_of_a_debugger_stay_while_their_cpu_is_offline(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct perf_event *event;
	int cpu;

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	cpu = other_cpu();
	release_wide_bp_slot(f->set);
	event = *per_cpu_ptr(f->set, cpu);
	if (remove_cpu(cpu))
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	KUNIT_EXPECT_PTR_EQ(test, *per_cpu_ptr(f->set, cpu), event);
	KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	KUNIT_EXPECT_PTR_EQ(test, *per_cpu_ptr(f->set, cpu), event);
	run_anywhere();
}

#ifdef CONFIG_KPROBES
static struct fixture *changed;
static unsigned int changed_to;
static atomic_t nr_changes;

/* Called on a CPU that is not online: no other sends it an interrupt. */
static int change_offline(struct kprobe *kp, struct pt_regs *regs)
{
	if (!cpu_online(raw_smp_processor_id()) && !point_to(changed, changed_to))
		atomic_inc(&nr_changes);
	return 0;
}

/*
 * Called on a CPU that has no event. The change is refused unless the range of this CPU
 * is word 0, with which the set was registered.
 */
static int change_offline_from_0(struct kprobe *kp, struct pt_regs *regs)
{
	if (!cpu_online(raw_smp_processor_id()) && !point_from(changed, 0, changed_to))
		atomic_inc(&nr_changes);
	return 0;
}

static int probe_changes(struct kprobe *kp, struct fixture *f, unsigned int word)
{
	changed = f;
	changed_to = word;
	atomic_set(&nr_changes, 0);
	return register_kprobe(kp);
}

static void a_change_by_a_dying_cpu_reaches_all_others(struct kunit *test)
{
	struct kprobe kp = {
		.symbol_name	= "stop_machine_park",
		.pre_handler	= change_offline,
	};
	struct fixture *f = test->priv;
	int cpu = other_cpu();

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	KUNIT_ASSERT_EQ(test, point_to(f, 1), 0);
	/* The CPU has called irq_work_run() for the last time. */
	KUNIT_ASSERT_EQ(test, probe_changes(&kp, f, 2), 0);
	if (remove_cpu(cpu)) {
		unregister_kprobe(&kp);
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	}
	unregister_kprobe(&kp);

	KUNIT_EXPECT_EQ(test, atomic_read(&nr_changes), 1);
	KUNIT_EXPECT_TRUE(test, settles(f));
	take_hits(f);
	expect_watched_everywhere(test, 2);
	expect_watched_nowhere(test, 1);
	/* No irq_work is left on the dead CPU: bp_race_exit() would wait for it. */
	KUNIT_EXPECT_FALSE(test, irq_work_is_busy(&wcpu_of(f, cpu)->relay));
	KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	expect_watched_everywhere(test, 2);
	run_anywhere();
}

/*
 * Starts @cpu, which calls @change on its way. Then all CPUs watch word 2, and none
 * @former.
 */
static void expect_starting_cpu_changes(struct kunit *test, int cpu,
					kprobe_pre_handler_t change, int former)
{
	struct kprobe kp = {
		.symbol_name	= "notify_cpu_starting",
		.pre_handler	= change,
	};
	struct fixture *f = test->priv;
	int err, probed;

	probed = probe_changes(&kp, f, 2);
	err = add_cpu(cpu);
	if (!probed)
		unregister_kprobe(&kp);
	KUNIT_ASSERT_EQ(test, probed, 0);
	KUNIT_ASSERT_EQ(test, err, 0);

	KUNIT_EXPECT_EQ(test, atomic_read(&nr_changes), 1);
	KUNIT_EXPECT_TRUE(test, settles(f));
	take_hits(f);
	expect_watched_everywhere(test, 2);
	expect_watched_nowhere(test, former);
}

static void a_change_by_a_starting_cpu_reaches_all_others(struct kunit *test)
{
	struct fixture *f = test->priv;
	int cpu = other_cpu();

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	KUNIT_ASSERT_EQ(test, point_to(f, 1), 0);
	if (remove_cpu(cpu))
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	expect_starting_cpu_changes(test, cpu, change_offline, 1);
	run_anywhere();
}

/* @cpu is offline, and the set was never repointed as a whole. */
static void expect_starting_cpu_changes_from_0(struct kunit *test, int cpu)
{
	struct fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, seq_of(f), (u64)BP_WIDE_FIRST_SEQ);
	expect_starting_cpu_changes(test, cpu, change_offline_from_0, 0);
}

/* Registers the set of the test again, for the CPUs that are online now. */
static int register_again(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct fixture *f = test->priv;

	set = register_wide_hw_breakpoint(&attr, record_hit, f);
	if (IS_ERR((void __force *)set))
		return PTR_ERR((void __force *)set);
	unregister_wide_hw_breakpoint(f->set);
	f->set = set;

	return 0;
}

static void a_starting_cpu_that_never_watched_knows_the_registered_range(struct kunit *test)
{
	int cpu = other_cpu();

	require_two_cpus(test);
	run_on(test, cpumask_first(cpu_online_mask));
	if (remove_cpu(cpu))
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	KUNIT_EXPECT_EQ(test, register_again(test), 0);
	expect_starting_cpu_changes_from_0(test, cpu);
	run_anywhere();
}

static void a_starting_cpu_forgets_the_range_that_it_had_alone(struct kunit *test)
{
	struct fixture *f = test->priv;
	int cpu = other_cpu();

	require_two_cpus(test);
	run_on(test, cpu);
	KUNIT_ASSERT_EQ(test, point_here_to(f, 10), 0);
	run_on(test, cpumask_first(cpu_online_mask));
	if (remove_cpu(cpu))
		kunit_skip(test, "CPU %d cannot go offline", cpu);
	expect_starting_cpu_changes_from_0(test, cpu);
	expect_watched_nowhere(test, 10);
	run_anywhere();
}
#else
static void a_change_by_a_dying_cpu_reaches_all_others(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES");
}

static void a_change_by_a_starting_cpu_reaches_all_others(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES");
}

static void a_starting_cpu_that_never_watched_knows_the_registered_range(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES");
}

static void a_starting_cpu_forgets_the_range_that_it_had_alone(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES");
}
#endif

/**
 * struct storm - objects that are allocated, watched and freed one by one
 * @f: the set
 * @object: the current object
 * @expected: number of writes by CPUs that have an active event
 */
struct storm {
	struct fixture	*f;
	unsigned long	*object;
	atomic_t	expected;
};

/* Fewer where each access costs many times as much */
#define NR_OBJECTS	(IS_ENABLED(CONFIG_KASAN) ? 2000 : 10000)

/* A CPU that comes online or goes offline has no active event: skip it. */
static void write_object(void *arg)
{
	struct storm *storm = arg;
	struct perf_event *bp = *this_cpu_ptr(storm->f->set);

	if (!bp || bp->state != PERF_EVENT_STATE_ACTIVE)
		return;
	atomic_inc(&storm->expected);
	WRITE_ONCE(*storm->object, 1);
}

static int plug_cpus(void *arg)
{
	int cpu = cpumask_last(cpu_online_mask);

	while (!kthread_should_stop()) {
		if (!remove_cpu(cpu))
			add_cpu(cpu);
		schedule_timeout_interruptible(HZ / 50);
	}

	return 0;
}

/*
 * Allocates an object, watches it and writes it on all CPUs; then stops
 * watching it, writes it again and frees it.  Returns true if exactly the first
 * writes were hits.
 */
static bool object_is_seen(struct storm *storm, unsigned long nothing)
{
	unsigned long addr;
	bool good;

	storm->object = kmalloc(sizeof(*storm->object), GFP_KERNEL);
	if (!storm->object)
		return false;
	addr = (unsigned long)storm->object;
	atomic_set(&storm->expected, 0);
	good = !modify_wide_hw_breakpoint(storm->f->set, addr, NULL);
	synchronize_wide_hw_breakpoint(storm->f->set);
	on_each_cpu(write_object, storm, 1);
	good &= take_hits(storm->f) == atomic_read(&storm->expected);

	good &= !modify_wide_hw_breakpoint(storm->f->set, nothing, &addr);
	synchronize_wide_hw_breakpoint(storm->f->set);
	on_each_cpu(write_object, storm, 1);
	kfree(storm->object);
	return good && !take_hits(storm->f);
}

static void each_write_to_short_lived_objects_is_hit(struct kunit *test)
{
	struct storm storm = { .f = test->priv };
	struct task_struct *plugger = NULL;
	int i, bad = 0;

	if (num_online_cpus() > 1) {
		plugger = kthread_run(plug_cpus, NULL, "bp_plug");
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, plugger);
	}
	for (i = 0; i < NR_OBJECTS; i++)
		bad += !object_is_seen(&storm, addr_nr(NR_WORDS - 1));
	if (plugger)
		kthread_stop(plugger);
	KUNIT_EXPECT_EQ(test, bad, 0);
}

/* ---- The suite ---- */

int bp_race_init(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&words[0], HW_BREAKPOINT_W);
	struct fixture *f;

	if (!bp_can_repoint())
		kunit_skip(test, "this architecture cannot repoint breakpoints");
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->set = register_wide_hw_breakpoint(&attr, record_hit, f);
	if (IS_ERR((void __force *)f->set))
		return PTR_ERR((void __force *)f->set);
	test->priv = f;
	write_word(&words[0]);
	if (!take_hits(f))
		kunit_skip(test, "breakpoints do not fire on this machine");
	return 0;
}

void bp_race_exit(struct kunit *test)
{
	struct fixture *f = test->priv;

	WRITE_ONCE(race.f, NULL);
	if (f)
		unregister_wide_hw_breakpoint(f->set);
	run_anywhere();
	/* All claims are released. */
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

static struct kunit_case test_cases[] = {
	KUNIT_CASE(a_change_reaches_every_cpu),
	KUNIT_CASE(repoint_settles_without_synchronize),
	KUNIT_CASE(repointing_cpu_watches_the_new_range_at_once),
	KUNIT_CASE(a_change_is_not_settled_while_a_cpu_has_interrupts_off),
	KUNIT_CASE(stopping_waits_for_kicks_that_are_pending),
	KUNIT_CASE(relays_become_late_rather_than_endless),
	KUNIT_CASE(refused_repoint_changes_nothing),
	KUNIT_CASE(set_without_kernel_is_not_repointed_to_the_kernel),
	KUNIT_CASE(repoint_from_a_wrong_address_is_refused),
	KUNIT_CASE(local_repoint_lasts_until_the_set_is_repointed),
	KUNIT_CASE(read_that_a_repoint_interrupts_is_consistent),
	KUNIT_CASE(adoption_that_a_repoint_interrupts_takes_the_newest),
	KUNIT_CASE(last_stored_of_nested_repoints_wins),
	KUNIT_CASE(conditional_local_repoint_keeps_one_that_interrupts_it),
	KUNIT_CASE(conditional_wide_repoint_keeps_one_that_interrupts_it),
	KUNIT_CASE(local_repoint_right_after_a_wide_one_stays),
	KUNIT_CASE(wide_repoint_that_a_local_one_interrupts_is_watched),
	KUNIT_CASE(local_repoint_that_a_wide_one_interrupts_stays),
	KUNIT_CASE(a_set_can_be_repointed_repeatedly),
	KUNIT_CASE(conditional_repoint_compares_with_the_address_of_this_cpu),
	KUNIT_CASE_SLOW(concurrent_repoints_end_at_the_last_one),
	KUNIT_CASE_SLOW(no_cpu_goes_back_to_an_older_address),
	KUNIT_CASE_SLOW(a_cpu_that_comes_online_watches_the_newest),
	KUNIT_CASE_SLOW(events_of_a_debugger_stay_while_their_cpu_is_offline),
	KUNIT_CASE_SLOW(a_change_by_a_dying_cpu_reaches_all_others),
	KUNIT_CASE_SLOW(a_change_by_a_starting_cpu_reaches_all_others),
	KUNIT_CASE_SLOW(a_starting_cpu_that_never_watched_knows_the_registered_range),
	KUNIT_CASE_SLOW(a_starting_cpu_forgets_the_range_that_it_had_alone),
	KUNIT_CASE_SLOW(each_write_to_short_lived_objects_is_hit),
	{},
};

static struct kunit_suite test_suite = {
	.name		= "bp_wide",
	.init		= bp_race_init,
	.exit		= bp_race_exit,
	.test_cases	= test_cases,
};
kunit_test_suites(&test_suite);

MODULE_DESCRIPTION("KUnit tests of repointing kernel-wide breakpoints");
MODULE_LICENSE("GPL");
