// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the KUnit tests of hardware breakpoints; see hw_breakpoint_test.h.
 */

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/jhash.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "bp_slots_oracle.h"
#include "hw_breakpoint_test.h"

unsigned long bp_test_words[BP_TEST_BPS];

/* ---- Accesses ---- */

noinline __noclone void bp_test_write_word(unsigned long *word)
{
	WRITE_ONCE(*word, (unsigned long)word);
}

noinline __noclone unsigned long bp_test_read_word(unsigned long *word)
{
	return READ_ONCE(*word);
}

static int write_call(void *word)
{
	bp_test_write_word(word);
	return 0;
}

void bp_test_write_on(struct kunit *test, int cpu, unsigned long *word)
{
	KUNIT_ASSERT_EQ(test, smp_call_on_cpu(cpu, write_call, word, false), 0);
}

struct write_work {
	struct kthread_work	work;
	unsigned long		*word;
};

static void write_work(struct kthread_work *work)
{
	bp_test_write_word(container_of(work, struct write_work, work)->word);
}

void bp_test_write_by(struct kthread_worker *worker, unsigned long *word)
{
	struct write_work write = { .word = word };

	kthread_init_work(&write.work, write_work);
	kthread_queue_work(worker, &write.work);
	kthread_flush_work(&write.work);
}

void bp_test_run_on(struct kunit *test, int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
}

void bp_test_run_anywhere(void)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* ---- Hits ---- */

void bp_test_record_hit(struct perf_event *bp, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct bp_test_hits *hits = bp->overflow_handler_context;

	atomic_inc(&hits->nr);
	hits->bp = bp;
	hits->addr = data->addr;
	hits->ip = instruction_pointer(regs);
	hits->task = current;
	hits->cpu = raw_smp_processor_id();
}

int bp_test_take_hits(struct bp_test_hits *hits)
{
	return atomic_xchg(&hits->nr, 0);
}

void bp_test_expect_hits(struct kunit *test, unsigned long *word, struct bp_test_hits *hits,
			 int nr)
{
	bp_test_write_word(word);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(hits), nr);
	if (nr)
		KUNIT_EXPECT_EQ(test, hits->addr, (unsigned long)word);
}

u64 bp_test_count_of(struct perf_event *bp)
{
	u64 enabled, running;

	return perf_event_read_value(bp, &enabled, &running);
}

bool bp_test_inside(unsigned long ip, void *function)
{
	unsigned long size, offset;

	if (!kallsyms_lookup_size_offset(ip, &size, &offset))
		return false;
	return ip - offset == (unsigned long)function;
}

void bp_test_require_hits(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "on this architecture handlers must step over accesses");
}

/* ---- CPUs ---- */

int bp_test_first_cpu(void)
{
	return cpumask_first(cpu_online_mask);
}

int bp_test_last_cpu(void)
{
	return cpumask_last(cpu_online_mask);
}

void bp_test_require_two_cpus(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU is online, two are needed");
}

void bp_test_require_hotplug(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_HOTPLUG_CPU))
		kunit_skip(test, "CPUs cannot go offline without CONFIG_HOTPLUG_CPU");
	bp_test_require_two_cpus(test);
}

void bp_test_take_cpu_off(struct kunit *test, int cpu)
{
	struct bp_test *f = test->priv;

	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
	f->cpu_off = cpu;
}

void bp_test_bring_cpu_back(struct kunit *test)
{
	struct bp_test *f = test->priv;

	KUNIT_ASSERT_EQ(test, add_cpu(f->cpu_off), 0);
	f->cpu_off = -1;
}

/* ---- Breakpoints ---- */

unsigned int bp_test_nr_slots(void)
{
	return bp_machine.class[TYPE_DATA].slots;
}

struct perf_event_attr bp_test_watch(unsigned long *word, u32 type)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)word;
	attr.bp_len = sizeof(*word);
	attr.bp_type = type;
	/* arm and arm64 refuse kernel addresses for a task. Nothing is hit there, see above. */
	if (!IS_ENABLED(CONFIG_X86))
		attr.bp_addr = SZ_1M | (attr.bp_addr & (SZ_1M - 1));

	return attr;
}

struct perf_event_attr bp_test_malformed(unsigned long *word)
{
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W);

	attr.bp_type = HW_BREAKPOINT_EMPTY;
	return attr;
}

u32 bp_test_digest_accounting(void)
{
	unsigned int class, level;
	u32 digest = 0;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		const struct bp_class_account *account = &bp_machine.class[class];

		digest = jhash(account, offsetof(struct bp_class_account, cpu), digest);
		digest = jhash(account->cpu, bp_machine.nr_cpus * sizeof(*account->cpu),
			       digest);
		for (level = 1; level < BP_LEVELS; level++)
			digest = jhash_1word(oracle_any_level(&bp_machine, class, level),
					     digest);
	}

	return digest;
}

struct perf_event *bp_test_keep(struct kunit *test, struct perf_event *bp)
{
	struct bp_test *f = test->priv;
	int i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bp);
	for (i = 0; i < BP_TEST_BPS && f->bp[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, BP_TEST_BPS);
	f->bp[i] = bp;

	return bp;
}

void bp_test_drop(struct kunit *test, struct perf_event *bp)
{
	struct bp_test *f = test->priv;
	int i;

	for (i = 0; i < BP_TEST_BPS; i++) {
		if (f->bp[i] == bp)
			f->bp[i] = NULL;
	}
	unregister_hw_breakpoint(bp);
}

void bp_test_drop_all(struct kunit *test)
{
	struct bp_test *f = test->priv;
	int i;

	for (i = 0; i < BP_TEST_BPS; i++) {
		unregister_hw_breakpoint(f->bp[i]);
		f->bp[i] = NULL;
	}
}

struct perf_event *bp_test_try_task(struct task_struct *task, unsigned long *word,
				    struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W);

	return register_user_hw_breakpoint(&attr, bp_test_record_hit, hits, task);
}

struct perf_event *bp_test_try_cpu(int cpu, struct task_struct *task,
				   unsigned long *word, struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W);

	return perf_event_create_kernel_counter(&attr, cpu, task, bp_test_record_hit, hits);
}

struct perf_event *bp_test_watch_task(struct kunit *test, struct task_struct *task,
				      unsigned long *word, struct bp_test_hits *hits)
{
	return bp_test_keep(test, bp_test_try_task(task, word, hits));
}

struct perf_event *bp_test_watch_cpu(struct kunit *test, int cpu,
				     unsigned long *word, struct bp_test_hits *hits)
{
	return bp_test_keep(test, bp_test_try_cpu(cpu, NULL, word, hits));
}

void bp_test_fill_task(struct kunit *test, struct task_struct *task,
		       unsigned int free, struct bp_test_hits *hits)
{
	unsigned int i;

	for (i = free; i < bp_test_nr_slots(); i++)
		bp_test_watch_task(test, task, &bp_test_words[i], hits);
}

void bp_test_fill_cpu(struct kunit *test, int cpu, unsigned int free,
		      struct bp_test_hits *hits)
{
	unsigned int i;

	for (i = free; i < bp_test_nr_slots(); i++)
		bp_test_watch_cpu(test, cpu, &bp_test_words[i], hits);
}

/* ---- Kernel-wide sets ---- */

struct perf_event * __percpu *bp_test_try_wide(struct perf_event_attr attr,
					       struct bp_test_hits *hits)
{
	return register_wide_hw_breakpoint(&attr, bp_test_record_hit, hits);
}

struct perf_event * __percpu *bp_test_keep_set(struct kunit *test,
					       struct perf_event * __percpu *set)
{
	struct bp_test *f = test->priv;
	int i;

	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO((void __force *)set), 0);
	for (i = 0; i < BP_TEST_SETS && f->set[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, BP_TEST_SETS);
	f->set[i] = set;

	return set;
}

void bp_test_drop_set(struct kunit *test, struct perf_event * __percpu *set)
{
	struct bp_test *f = test->priv;
	int i;

	for (i = 0; i < BP_TEST_SETS; i++) {
		if (f->set[i] == set)
			f->set[i] = NULL;
	}
	unregister_wide_hw_breakpoint(set);
}

struct perf_event * __percpu *bp_test_watch_all(struct kunit *test,
						unsigned long *word,
						struct bp_test_hits *hits)
{
	return bp_test_keep_set(test, bp_test_try_wide(bp_test_watch(word, HW_BREAKPOINT_W), hits));
}

struct perf_event *bp_test_event_on(struct perf_event * __percpu *set, int cpu)
{
	return *per_cpu_ptr(set, cpu);
}

void bp_test_expect_wide_refused(struct kunit *test, int errno,
				 struct perf_event_attr attr, struct bp_test_hits *hits)
{
	u32 before = bp_test_digest_accounting();
	struct perf_event * __percpu *set = bp_test_try_wide(attr, hits);

	KUNIT_EXPECT_EQ(test, PTR_ERR((void __force *)set), (long)errno);
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), before);
	if (!IS_ERR((void __force *)set))
		unregister_wide_hw_breakpoint(set);
}

void bp_test_expect_watched_everywhere(struct kunit *test, unsigned long *word,
				       struct bp_test_hits *hits)
{
	int cpu;

	bp_test_take_hits(hits);
	for_each_online_cpu(cpu) {
		bp_test_write_on(test, cpu, word);
		KUNIT_EXPECT_EQ_MSG(test, bp_test_take_hits(hits), 1, "on CPU %d", cpu);
		KUNIT_EXPECT_EQ(test, hits->cpu, cpu);
	}
}

void bp_test_expect_watched_nowhere(struct kunit *test, unsigned long *word,
				    struct bp_test_hits *hits)
{
	int cpu;

	for_each_online_cpu(cpu) {
		bp_test_write_on(test, cpu, word);
		KUNIT_EXPECT_EQ_MSG(test, bp_test_take_hits(hits), 0, "on CPU %d", cpu);
	}
}

/* ---- Other tasks ---- */

struct kthread_worker *bp_test_start_worker(struct kunit *test)
{
	struct bp_test *f = test->priv;
	struct kthread_worker *worker;
	int i;

	worker = kthread_create_worker(0, "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, worker);
	for (i = 0; i < BP_TEST_WORKERS; i++) {
		if (!f->worker[i]) {
			f->worker[i] = worker;
			return worker;
		}
	}

	kthread_destroy_worker(worker);
	KUNIT_FAIL_AND_ABORT(test, "too many workers");
}

static int wait_for_stop(void *unused)
{
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

struct task_struct *bp_test_start_sleeper(struct kunit *test)
{
	struct task_struct *task;

	task = kthread_run(wait_for_stop, NULL, "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);

	return get_task_struct(task);
}

bool bp_test_comes_true(bool (*condition)(void))
{
	int ms;

	for (ms = 0; ms < 10000; ms += 20) {
		if (condition())
			return true;
		msleep(20);
	}

	return false;
}

bool bp_test_nothing_in_use(void)
{
	return !hw_breakpoint_is_used();
}

/* ---- Begin and end of a case ---- */

int bp_test_init(struct kunit *test)
{
	struct bp_test *f;

	if (hw_breakpoint_is_used() || !bp_test_nr_slots())
		return -EBUSY;

	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->cpu_off = -1;
	f->empty = bp_test_digest_accounting();
	test->priv = f;

	return 0;
}

void bp_test_exit(struct kunit *test)
{
	struct bp_test *f = test->priv;
	int i;

	if (!f)
		return;

	if (f->cpu_off >= 0)
		KUNIT_EXPECT_EQ(test, add_cpu(f->cpu_off), 0);
	bp_test_drop_all(test);
	for (i = 0; i < BP_TEST_SETS; i++) {
		if (f->set[i])
			unregister_wide_hw_breakpoint(f->set[i]);
	}
	for (i = 0; i < BP_TEST_WORKERS; i++) {
		if (f->worker[i])
			kthread_destroy_worker(f->worker[i]);
	}

	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	KUNIT_EXPECT_EQ(test, bp_test_digest_accounting(), f->empty);
}
