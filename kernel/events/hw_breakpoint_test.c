// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of hardware breakpoints that the kernel sets for itself.
 *
 * What is registered fires: each access that a breakpoint watches is one call of
 * its handler, in the task and on the CPU that made it.  What cannot be held is
 * refused, and a refused request leaves the books as they were.  A breakpoint
 * that is gone is silent, and when the last one is gone no register is taken:
 * every case ends with that.
 */

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/jhash.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sysfs.h>

#ifdef CONFIG_X86
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "bp_internal.h"

#define MAX_BPS			128
#define MAX_SETS		(BP_SLOTS_MAX + 1)
#define MAX_WORKERS		2

/* struct hits - what a handler saw */
struct hits {
	atomic_t		nr;
	struct perf_event	*bp;
	unsigned long		addr;
	unsigned long		ip;
	struct task_struct	*task;
	int			cpu;
};

/**
 * struct fixture - what a case has to leave behind
 * @bp: breakpoints of tasks and of single CPUs
 * @set: kernel-wide breakpoints
 * @worker: other tasks
 * @cpu_off: the CPU that was taken offline; -1 if none is
 * @empty: digest of the books before the case
 */
struct fixture {
	struct perf_event		*bp[MAX_BPS];
	struct perf_event * __percpu	*set[MAX_SETS];
	struct kthread_worker		*worker[MAX_WORKERS];
	int				cpu_off;
	u32				empty;
};

/* What is watched. */
static unsigned long words[MAX_BPS];

/* ---- Accesses ---- */

static noinline __noclone void write_word(unsigned long *word)
{
	WRITE_ONCE(*word, (unsigned long)word);
}

static noinline __noclone unsigned long read_word(unsigned long *word)
{
	return READ_ONCE(*word);
}

static int write_call(void *word)
{
	write_word(word);
	return 0;
}

/* By whoever is free, on one CPU. */
static void write_on(struct kunit *test, int cpu, unsigned long *word)
{
	KUNIT_ASSERT_EQ(test, smp_call_on_cpu(cpu, write_call, word, false), 0);
}

struct write_work {
	struct kthread_work	work;
	unsigned long		*word;
};

static void write_work(struct kthread_work *work)
{
	write_word(container_of(work, struct write_work, work)->word);
}

static void write_by(struct kthread_worker *worker, unsigned long *word)
{
	struct write_work write = { .word = word };

	kthread_init_work(&write.work, write_work);
	kthread_queue_work(worker, &write.work);
	kthread_flush_work(&write.work);
}

static void run_on(struct kunit *test, int cpu)
{
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
}

static void run_anywhere(void)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* ---- Hits ---- */

static void record_hit(struct perf_event *bp, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct hits *hits = bp->overflow_handler_context;

	atomic_inc(&hits->nr);
	hits->bp = bp;
	hits->addr = data->addr;
	hits->ip = instruction_pointer(regs);
	hits->task = current;
	hits->cpu = raw_smp_processor_id();
}

/* How often the handler was called since the last look. */
static int take_hits(struct hits *hits)
{
	return atomic_xchg(&hits->nr, 0);
}

static u64 count_of(struct perf_event *bp)
{
	u64 enabled, running;

	return perf_event_read_value(bp, &enabled, &running);
}

static bool inside(unsigned long ip, void *function)
{
	unsigned long size, offset;

	if (!kallsyms_lookup_size_offset(ip, &size, &offset))
		return false;
	return ip - offset == (unsigned long)function;
}

/*
 * Elsewhere a data breakpoint may trap before the access, and its handler has
 * to step over it.
 */
static void require_hits(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "a handler has to step over the access here");
}

/* ---- CPUs ---- */

static int first_cpu(void)
{
	return cpumask_first(cpu_online_mask);
}

static int last_cpu(void)
{
	return cpumask_last(cpu_online_mask);
}

static void require_two_cpus(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU is online, two are needed");
}

static void require_hotplug(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_HOTPLUG_CPU))
		kunit_skip(test, "CPUs cannot go offline without CONFIG_HOTPLUG_CPU");
	require_two_cpus(test);
}

static void take_cpu_off(struct kunit *test, int cpu)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
	f->cpu_off = cpu;
}

static void bring_cpu_back(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, add_cpu(f->cpu_off), 0);
	f->cpu_off = -1;
}

/* ---- Breakpoints ---- */

static unsigned int nr_slots(void)
{
	return bp_books.class[TYPE_DATA].slots;
}

static struct perf_event_attr watch(unsigned long *word, u32 type)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)word;
	attr.bp_len = sizeof(*word);
	attr.bp_type = type;

	return attr;
}

static struct perf_event_attr malformed(unsigned long *word)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W);

	attr.bp_type = HW_BREAKPOINT_EMPTY;
	return attr;
}

/* The digest of all that stands in the books. */
static u32 digest_books(void)
{
	unsigned int class;
	u32 digest = 0;

	for (class = 0; class < BP_SLOTS_CLASSES; class++) {
		const struct bp_class_books *books = &bp_books.class[class];

		digest = jhash(books, offsetof(struct bp_class_books, cpu), digest);
		digest = jhash(books->cpu, bp_books.nr_cpus * sizeof(*books->cpu),
			       digest);
	}

	return digest;
}

/* Takes care that a breakpoint goes when the case is over. */
static struct perf_event *keep(struct kunit *test, struct perf_event *bp)
{
	struct fixture *f = test->priv;
	int i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bp);
	for (i = 0; i < MAX_BPS && f->bp[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, MAX_BPS);
	f->bp[i] = bp;

	return bp;
}

static void drop(struct kunit *test, struct perf_event *bp)
{
	struct fixture *f = test->priv;
	int i;

	for (i = 0; i < MAX_BPS; i++) {
		if (f->bp[i] == bp)
			f->bp[i] = NULL;
	}
	unregister_hw_breakpoint(bp);
}

static void drop_all(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	for (i = 0; i < MAX_BPS; i++) {
		unregister_hw_breakpoint(f->bp[i]);
		f->bp[i] = NULL;
	}
}

static struct perf_event *try_task(struct task_struct *task, unsigned long *word,
				   struct hits *hits)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W);

	return register_user_hw_breakpoint(&attr, record_hit, hits, task);
}

/* @cpu: -1 for all; @task: NULL for all */
static struct perf_event *try_cpu(int cpu, struct task_struct *task,
				  unsigned long *word, struct hits *hits)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W);

	return perf_event_create_kernel_counter(&attr, cpu, task, record_hit, hits);
}

static struct perf_event *watch_task(struct kunit *test, struct task_struct *task,
				     unsigned long *word, struct hits *hits)
{
	return keep(test, try_task(task, word, hits));
}

static struct perf_event *watch_cpu(struct kunit *test, int cpu,
				    unsigned long *word, struct hits *hits)
{
	return keep(test, try_cpu(cpu, NULL, word, hits));
}

/* Leaves @free registers. */
static void fill_task(struct kunit *test, struct task_struct *task,
		      unsigned int free, struct hits *hits)
{
	unsigned int i;

	for (i = free; i < nr_slots(); i++)
		watch_task(test, task, &words[i], hits);
}

static void fill_cpu(struct kunit *test, int cpu, unsigned int free,
		     struct hits *hits)
{
	unsigned int i;

	for (i = free; i < nr_slots(); i++)
		watch_cpu(test, cpu, &words[i], hits);
}

/* A request that must be refused, and the books must not change. */
#define EXPECT_REFUSED(test, errno, request)					\
do {										\
	struct kunit *__test = (test);						\
	u32 __before = digest_books();						\
	struct perf_event *__bp = (request);					\
										\
	KUNIT_EXPECT_EQ(__test, PTR_ERR(__bp), (long)(errno));			\
	KUNIT_EXPECT_EQ(__test, digest_books(), __before);			\
	if (!IS_ERR_OR_NULL(__bp))						\
		unregister_hw_breakpoint(__bp);					\
} while (0)

/* ---- Kernel-wide sets ---- */

static struct perf_event * __percpu *try_wide(struct perf_event_attr attr,
					      struct hits *hits)
{
	return register_wide_hw_breakpoint(&attr, record_hit, hits);
}

static struct perf_event * __percpu *keep_set(struct kunit *test,
					      struct perf_event * __percpu *set)
{
	struct fixture *f = test->priv;
	int i;

	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO((void __force *)set), 0);
	for (i = 0; i < MAX_SETS && f->set[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, MAX_SETS);
	f->set[i] = set;

	return set;
}

static void drop_set(struct kunit *test, struct perf_event * __percpu *set)
{
	struct fixture *f = test->priv;
	int i;

	for (i = 0; i < MAX_SETS; i++) {
		if (f->set[i] == set)
			f->set[i] = NULL;
	}
	unregister_wide_hw_breakpoint(set);
}

static struct perf_event * __percpu *watch_all(struct kunit *test,
					       unsigned long *word,
					       struct hits *hits)
{
	return keep_set(test, try_wide(watch(word, HW_BREAKPOINT_W), hits));
}

static struct perf_event *event_on(struct perf_event * __percpu *set, int cpu)
{
	return *per_cpu_ptr(set, cpu);
}

static void expect_wide_refused(struct kunit *test, int errno,
				struct perf_event_attr attr, struct hits *hits)
{
	u32 before = digest_books();
	struct perf_event * __percpu *set = try_wide(attr, hits);

	KUNIT_EXPECT_EQ(test, PTR_ERR((void __force *)set), (long)errno);
	KUNIT_EXPECT_EQ(test, digest_books(), before);
	if (!IS_ERR((void __force *)set))
		unregister_wide_hw_breakpoint(set);
}

/* One hit for each write, on every CPU that runs. */
static void expect_watched_everywhere(struct kunit *test, unsigned long *word,
				      struct hits *hits)
{
	int cpu;

	take_hits(hits);
	for_each_online_cpu(cpu) {
		write_on(test, cpu, word);
		KUNIT_EXPECT_EQ_MSG(test, take_hits(hits), 1, "on CPU %d", cpu);
		KUNIT_EXPECT_EQ(test, hits->cpu, cpu);
	}
}

static void expect_watched_nowhere(struct kunit *test, unsigned long *word,
				   struct hits *hits)
{
	int cpu;

	for_each_online_cpu(cpu) {
		write_on(test, cpu, word);
		KUNIT_EXPECT_EQ_MSG(test, take_hits(hits), 0, "on CPU %d", cpu);
	}
}

/* ---- Other tasks ---- */

static struct kthread_worker *start_worker(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct kthread_worker *worker;
	int i;

	worker = kthread_create_worker(0, "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, worker);
	for (i = 0; i < MAX_WORKERS; i++) {
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

/* With a reference that keeps the task after its end. */
static struct task_struct *start_sleeper(struct kunit *test)
{
	struct task_struct *task;

	task = kthread_run(wait_for_stop, NULL, "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);

	return get_task_struct(task);
}

static bool comes_true(bool (*condition)(void))
{
	int ms;

	for (ms = 0; ms < 10000; ms += 20) {
		if (condition())
			return true;
		msleep(20);
	}

	return false;
}

static bool nothing_in_use(void)
{
	return !hw_breakpoint_is_used();
}

/* ---- Cases: a task's breakpoint ---- */

static void each_write_calls_the_handler_once(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;
	int i;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);

	for (i = 1; i <= 5; i++) {
		write_word(&words[0]);
		KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
		KUNIT_EXPECT_EQ(test, count_of(bp), (u64)i);
	}
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, count_of(bp), 5ULL);
}

static void a_handler_is_told_what_was_hit_and_where(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	bp = watch_task(test, current, &words[3], &hits);
	write_word(&words[3]);

	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	KUNIT_EXPECT_PTR_EQ(test, hits.bp, bp);
	KUNIT_EXPECT_PTR_EQ(test, hits.task, current);
	KUNIT_EXPECT_EQ(test, hits.addr, (unsigned long)&words[3]);
	if (IS_ENABLED(CONFIG_KALLSYMS))
		KUNIT_EXPECT_TRUE_MSG(test, inside(hits.ip, write_word),
				      "hit at %pS", (void *)hits.ip);
}

static void only_an_access_watch_sees_reads(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_RW);
	struct hits writes = { }, accesses = { };

	require_hits(test);
	watch_task(test, current, &words[0], &writes);
	keep(test, register_user_hw_breakpoint(&attr, record_hit, &accesses, current));

	read_word(&words[0]);
	read_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&writes), 0);
	KUNIT_EXPECT_EQ(test, take_hits(&accesses), 1);
	if (IS_ENABLED(CONFIG_KALLSYMS))
		KUNIT_EXPECT_TRUE(test, inside(accesses.ip, read_word));

	write_word(&words[0]);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&writes), 1);
	KUNIT_EXPECT_EQ(test, take_hits(&accesses), 1);
}

static void every_register_watches_at_the_same_time(struct kunit *test)
{
	struct hits hits[BP_SLOTS_MAX] = { };
	unsigned int i, j;

	require_hits(test);
	for (i = 0; i < nr_slots(); i++)
		watch_task(test, current, &words[i], &hits[i]);

	for (i = 0; i < nr_slots(); i++) {
		write_word(&words[i]);
		for (j = 0; j < nr_slots(); j++)
			KUNIT_EXPECT_EQ(test, take_hits(&hits[j]), i == j);
	}
}

static void a_task_watch_follows_its_task_and_no_other(struct kunit *test)
{
	struct kthread_worker *worker = start_worker(test);
	struct hits own = { }, others = { };
	int cpu;

	require_hits(test);
	watch_task(test, current, &words[0], &own);
	watch_task(test, worker->task, &words[0], &others);

	for_each_online_cpu(cpu) {
		run_on(test, cpu);
		write_word(&words[0]);
		KUNIT_EXPECT_EQ(test, take_hits(&own), 1);
		KUNIT_EXPECT_EQ(test, own.cpu, cpu);
		KUNIT_EXPECT_EQ(test, take_hits(&others), 0);

		write_by(worker, &words[0]);
		KUNIT_EXPECT_EQ(test, take_hits(&own), 0);
		KUNIT_EXPECT_EQ(test, take_hits(&others), 1);
		KUNIT_EXPECT_PTR_EQ(test, others.task, worker->task);
	}
	run_anywhere();
}

/*
 * As if the register of another task were armed here. perf never leaves one, so
 * the hit is made up.
 */
static void a_hit_is_reported_to_its_task_only(struct kunit *test)
{
	struct task_struct *other = start_worker(test)->task;
	struct hits hits = { }, own = { };
	struct perf_event *bp, *mine;
	struct pt_regs regs = { };

	bp = watch_task(test, other, &words[0], &hits);
	mine = watch_task(test, current, &words[1], &own);

	local_irq_disable();
	perf_bp_event_at(bp, bp->attr.bp_addr, &regs);
	perf_bp_event_at(mine, mine->attr.bp_addr, &regs);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, count_of(bp), 0);
	KUNIT_EXPECT_EQ(test, take_hits(&own), 1);
	KUNIT_EXPECT_EQ(test, count_of(mine), 1);
}

static void a_period_calls_the_handler_at_every_nth_hit(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;
	int i;

	require_hits(test);
	attr.sample_period = 3;
	bp = keep(test, register_user_hw_breakpoint(&attr, record_hit, &hits, current));

	for (i = 1; i <= 9; i++) {
		write_word(&words[0]);
		KUNIT_EXPECT_EQ_MSG(test, take_hits(&hits), i % 3 == 0, "at hit %d", i);
	}
	KUNIT_EXPECT_EQ(test, count_of(bp), 9ULL);
}

static void a_breakpoint_without_a_period_only_counts(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;
	int i;

	require_hits(test);
	attr.sample_period = 0;
	bp = keep(test, register_user_hw_breakpoint(&attr, record_hit, &hits, current));

	for (i = 0; i < 4; i++)
		write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	KUNIT_EXPECT_EQ(test, count_of(bp), 4ULL);
}

static void an_unregistered_breakpoint_is_silent(struct kunit *test)
{
	struct hits gone = { }, stays = { };
	struct perf_event *bp;

	require_hits(test);
	if (nr_slots() < 2)
		kunit_skip(test, "one register, two are needed");
	bp = watch_task(test, current, &words[0], &gone);
	watch_task(test, current, &words[1], &stays);
	drop(test, bp);

	write_word(&words[0]);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&gone), 0);
	KUNIT_EXPECT_EQ(test, take_hits(&stays), 1);
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());
}

static void a_disabled_breakpoint_is_silent_and_keeps_its_register(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);
	fill_task(test, current, 1, &hits);

	perf_event_disable(bp);
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));

	perf_event_enable(bp);
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
}

static void unregistering_nothing_is_harmless(struct kunit *test)
{
	unregister_hw_breakpoint(NULL);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: what is refused ---- */

static void a_malformed_breakpoint_is_refused(struct kunit *test)
{
	struct perf_event_attr attr;

	attr = malformed(&words[0]);
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));

	attr = watch(&words[0], HW_BREAKPOINT_W);
	attr.bp_len = 0;
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));

	attr = watch(&words[0], HW_BREAKPOINT_W);
	attr.config = 1ULL << 63;
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));

	/* The kernel is where this address is. */
	attr = watch(&words[0], HW_BREAKPOINT_W);
	attr.exclude_kernel = 1;
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));
}

static void malformed_is_said_before_full(struct kunit *test)
{
	struct perf_event_attr attr = malformed(&words[0]);
	struct hits hits = { };

	fill_task(test, current, 0, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, &hits, current));
}

static void a_task_has_as_many_breakpoints_as_there_are_registers(struct kunit *test)
{
	struct kthread_worker *worker = start_worker(test);
	struct hits hits = { };
	struct perf_event *bp;

	fill_task(test, current, 1, &hits);
	bp = watch_task(test, current, &words[0], &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), current, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));

	/* What one task holds costs another nothing. */
	fill_task(test, worker->task, 0, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(worker->task, &words[0], &hits));

	drop(test, bp);
	EXPECT_REFUSED(test, -ENOSPC, try_task(worker->task, &words[0], &hits));
	watch_task(test, current, &words[0], &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
}

static void a_task_on_one_cpu_takes_no_register_of_another(struct kunit *test)
{
	struct hits hits = { };
	unsigned int i;

	require_two_cpus(test);
	for (i = 0; i < nr_slots(); i++)
		keep(test, try_cpu(first_cpu(), current, &words[i], &hits));

	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), current, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	keep(test, try_cpu(last_cpu(), current, &words[0], &hits));
	fill_cpu(test, last_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));
}

static void a_dead_task_cannot_be_watched(struct kunit *test)
{
	struct task_struct *task = start_sleeper(test);
	struct hits hits = { };

	kthread_stop(task);
	EXPECT_REFUSED(test, -ESRCH, try_task(task, &words[0], &hits));
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	/* That there is no room is not said of a task that is not there. */
	fill_cpu(test, last_cpu(), 0, &hits);
	EXPECT_REFUSED(test, -ESRCH, try_task(task, &words[0], &hits));
	put_task_struct(task);
}

static void a_cpu_that_does_not_exist_cannot_be_watched(struct kunit *test)
{
	struct hits hits = { };

	EXPECT_REFUSED(test, -EINVAL, try_cpu(nr_cpu_ids, NULL, &words[0], &hits));
	EXPECT_REFUSED(test, -EINVAL, try_cpu(-1, NULL, &words[0], &hits));
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: one CPU's breakpoint ---- */

static void a_cpu_watch_fires_on_its_cpu_whoever_runs_there(struct kunit *test)
{
	struct hits first = { }, last = { };

	require_hits(test);
	require_two_cpus(test);
	watch_cpu(test, first_cpu(), &words[0], &first);
	watch_cpu(test, last_cpu(), &words[0], &last);

	write_on(test, first_cpu(), &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&first), 1);
	KUNIT_EXPECT_EQ(test, first.cpu, first_cpu());
	KUNIT_EXPECT_EQ(test, take_hits(&last), 0);

	run_on(test, last_cpu());
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&first), 0);
	KUNIT_EXPECT_EQ(test, take_hits(&last), 1);
	KUNIT_EXPECT_PTR_EQ(test, last.task, current);
	run_anywhere();
}

static void a_task_watch_on_one_cpu_fires_there_only(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	require_two_cpus(test);
	bp = keep(test, try_cpu(last_cpu(), current, &words[0], &hits));

	run_on(test, first_cpu());
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);

	run_on(test, last_cpu());
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	KUNIT_EXPECT_EQ(test, count_of(bp), 1ULL);

	write_on(test, last_cpu(), &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	run_anywhere();
}

static void each_cpu_has_registers_of_its_own(struct kunit *test)
{
	struct hits hits = { };

	require_two_cpus(test);
	fill_cpu(test, first_cpu(), 0, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[0], &hits));
	fill_cpu(test, last_cpu(), 0, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
}

static void a_full_cpu_leaves_a_task_no_register_anywhere(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	fill_cpu(test, last_cpu(), 1, &hits);
	bp = watch_cpu(test, last_cpu(), &words[0], &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), current, &words[0], &hits));
	if (first_cpu() != last_cpu())
		keep(test, try_cpu(first_cpu(), current, &words[0], &hits));

	drop(test, bp);
	watch_task(test, current, &words[0], &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));
}

/* ---- Cases: changing a breakpoint ---- */

static void a_modified_breakpoint_watches_the_new_address_only(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_EQ(test, hw_breakpoint_addr(bp), (unsigned long)&words[1]);

	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	KUNIT_EXPECT_EQ(test, hits.addr, (unsigned long)&words[1]);
	KUNIT_EXPECT_EQ(test, count_of(bp), 1ULL);
}

static void a_modified_breakpoint_watches_the_new_length_and_kind(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_RW);
	struct hits hits = { };
	struct perf_event *bp;
	u8 *last;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);
	last = (u8 *)&words[0] + sizeof(words[0]) - 1;

	attr.bp_len = HW_BREAKPOINT_LEN_1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	WRITE_ONCE(*last, 1);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	read_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);

	attr.bp_len = sizeof(words[0]);
	attr.bp_type = HW_BREAKPOINT_W;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	WRITE_ONCE(*last, 2);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	read_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
}

static void a_modify_can_disable_and_enable(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);

	attr.disabled = 1;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_TRUE(test, bp->attr.disabled);
	write_word(&words[0]);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);

	attr.disabled = 0;
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_FALSE(test, bp->attr.disabled);
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
}

static void a_modify_can_disable_with_interrupts_off(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;
	int err;

	require_hits(test);
	bp = watch_task(test, current, &words[0], &hits);

	attr.disabled = 1;
	local_irq_disable();
	err = modify_user_hw_breakpoint(bp, &attr);
	write_word(&words[0]);
	local_irq_enable();

	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
}

static void a_breakpoint_of_another_task_can_be_modified(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct kthread_worker *worker = start_worker(test);
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	bp = watch_task(test, worker->task, &words[0], &hits);
	KUNIT_ASSERT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);

	write_by(worker, &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	write_by(worker, &words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
}

static void expect_modify_refused(struct kunit *test, struct perf_event *bp,
				  struct perf_event_attr attr)
{
	struct perf_event_attr before = bp->attr;
	enum perf_event_state state = bp->state;
	u32 digest = digest_books();

	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, &bp->attr, &before, sizeof(before));
	KUNIT_EXPECT_EQ(test, bp->state, state);
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
}

static void a_refused_modify_leaves_the_breakpoint_as_it_was(struct kunit *test)
{
	struct perf_event_attr disable = malformed(&words[1]);
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	disable.disabled = 1;
	bp = watch_task(test, current, &words[0], &hits);

	expect_modify_refused(test, bp, malformed(&words[1]));
	expect_modify_refused(test, bp, disable);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);

	perf_event_disable(bp);
	expect_modify_refused(test, bp, malformed(&words[1]));
	expect_modify_refused(test, bp, disable);
	write_word(&words[0]);
	write_word(&words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);

	perf_event_enable(bp);
	write_word(&words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
}

static void a_modify_fits_where_all_registers_are_taken(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[MAX_BPS - 1], HW_BREAKPOINT_RW);
	struct hits hits = { };
	struct perf_event *bp;
	u32 digest;

	bp = watch_task(test, current, &words[0], &hits);
	fill_task(test, current, 1, &hits);
	digest = digest_books();
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
}

/* ---- Cases: kernel-wide breakpoints ---- */

static void a_wide_breakpoint_fires_on_every_online_cpu(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct hits hits = { };
	int cpu;

	require_hits(test);
	set = watch_all(test, &words[0], &hits);
	expect_watched_everywhere(test, &words[0], &hits);
	for_each_online_cpu(cpu) {
		KUNIT_ASSERT_NOT_NULL(test, event_on(set, cpu));
		KUNIT_EXPECT_EQ(test, count_of(event_on(set, cpu)), 1ULL);
	}

	drop_set(test, set);
	expect_watched_nowhere(test, &words[0], &hits);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Kernel-wide breakpoints that are re-pointed ---- */

static void require_repoint(struct kunit *test)
{
	require_hits(test);
#ifndef ARCH_HW_BREAKPOINT_REPOINT
	kunit_skip(test, "this architecture cannot re-point breakpoints");
#endif
}

/* This CPU's member of @set to @word; the task stays on the CPU. */
static int repoint(struct perf_event * __percpu *set, unsigned long *word)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W);

	return modify_wide_hw_breakpoint_local(event_on(set, raw_smp_processor_id()), &attr);
}

static void expect_hits(struct kunit *test, unsigned long *word, struct hits *hits,
			int nr)
{
	write_word(word);
	KUNIT_EXPECT_EQ(test, take_hits(hits), nr);
	if (nr)
		KUNIT_EXPECT_EQ(test, hits->addr, (unsigned long)word);
}

static void a_wide_breakpoint_can_be_repointed_on_one_cpu(struct kunit *test)
{
	struct hw_breakpoint_range range;
	struct perf_event * __percpu *set;
	struct hits hits = { };
	struct perf_event *bp;

	require_repoint(test);
	require_two_cpus(test);
	run_on(test, first_cpu());
	set = watch_all(test, &words[0], &hits);
	bp = event_on(set, first_cpu());

	KUNIT_EXPECT_EQ(test, repoint(set, &words[1]), 0);
	expect_hits(test, &words[0], &hits, 0);
	expect_hits(test, &words[1], &hits, 1);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&words[1]);
	preempt_disable();
	read_wide_hw_breakpoint_local(bp, &range);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, range.addr, (unsigned long)&words[1]);
	KUNIT_EXPECT_EQ(test, range.len, sizeof(words[1]));
	KUNIT_EXPECT_EQ(test, range.type, (u32)HW_BREAKPOINT_W);

	write_on(test, last_cpu(), &words[1]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	write_on(test, last_cpu(), &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);

	KUNIT_EXPECT_EQ(test, repoint(set, &words[0]), 0);
	expect_hits(test, &words[0], &hits, 1);
	expect_hits(test, &words[1], &hits, 0);
	run_anywhere();
}

static void a_repointed_breakpoint_has_its_new_length_and_kind(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[2], HW_BREAKPOINT_RW);
	struct perf_event * __percpu *set;
	struct perf_event *bp;
	u8 *bytes = (u8 *)&words[2];
	struct hits hits = { };

	require_repoint(test);
	run_on(test, first_cpu());
	set = watch_all(test, &words[0], &hits);

	attr.bp_addr += 4;
	attr.bp_len = 2;
	bp = event_on(set, raw_smp_processor_id());
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), 0);
	WRITE_ONCE(bytes[3], 1);
	WRITE_ONCE(bytes[6], 1);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	WRITE_ONCE(bytes[5], 1);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	(void)READ_ONCE(bytes[4]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	run_anywhere();
}

static void a_disabled_wide_breakpoint_can_be_repointed(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct hits hits = { };
	int i;

	require_repoint(test);
	run_on(test, first_cpu());
	attr.disabled = 1;
	set = keep_set(test, register_wide_hw_breakpoint(&attr, record_hit, &hits));
	for (i = 1; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, repoint(set, &words[i]), 0);
		expect_hits(test, &words[i], &hits, 0);
		perf_event_enable(event_on(set, raw_smp_processor_id()));
		expect_hits(test, &words[i - 1], &hits, 0);
		expect_hits(test, &words[i], &hits, 1);
		perf_event_disable(event_on(set, raw_smp_processor_id()));
	}
	run_anywhere();
}

static void what_cannot_be_repointed_stays(struct kunit *test)
{
	struct perf_event_attr good = watch(&words[1], HW_BREAKPOINT_W), attr;
	struct perf_event * __percpu *set;
	struct perf_event *bp, *other;
	struct hits hits = { }, others = { };

	require_repoint(test);
	require_two_cpus(test);
	run_on(test, first_cpu());
	set = watch_all(test, &words[0], &hits);
	bp = event_on(set, first_cpu());

	attr = malformed(&words[1]);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	attr = good;
	attr.bp_addr++;
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	attr = good;
	attr.config = HW_BREAKPOINT_FLEXIBLE;
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(event_on(set, last_cpu()),
							      &good), -EINVAL);
	other = watch_task(test, current, &words[5], &others);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(other, &good), -EINVAL);

	expect_hits(test, &words[0], &hits, 1);
	expect_hits(test, &words[1], &hits, 0);
	expect_hits(test, &words[5], &others, 1);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&words[0]);
	write_on(test, last_cpu(), &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	run_anywhere();
}

struct chase {
	struct hits	hits;
	int		err;
};

/* Each hit re-points the breakpoint to the next word. */
static void chase(struct perf_event *bp, struct perf_sample_data *data,
		  struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;
	struct perf_event_attr attr = watch((unsigned long *)data->addr + 1,
					    HW_BREAKPOINT_W);
	struct hw_breakpoint_range range;

	read_wide_hw_breakpoint_local(bp, &range);
	if (range.addr != data->addr)
		c->err = 1;
	atomic_inc(&c->hits.nr);
	if (modify_wide_hw_breakpoint_local(bp, &attr))
		c->err = 2;
}

static void a_handler_can_repoint_its_breakpoint(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	run_on(test, first_cpu());
	keep_set(test, register_wide_hw_breakpoint(&attr, chase, &c));
	for (i = 0; i < MAX_BPS - 1; i++) {
		write_word(&words[i]);
		write_word(&words[i]);
		KUNIT_EXPECT_EQ(test, take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	run_anywhere();
}

/*
 * Each hit re-points the breakpoint to a range of another length, and touches
 * that at once: a trap within the trap would lose what the first had to return to.
 */
static void touch_in_handler(struct perf_event *bp, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;
	struct perf_event_attr attr = watch((unsigned long *)data->addr + 1,
					    HW_BREAKPOINT_W);

	atomic_inc(&c->hits.nr);
	if (bp->attr.bp_len == 8)
		attr.bp_len = 4;
	if (modify_wide_hw_breakpoint_local(bp, &attr))
		c->err = 1;
	write_word((unsigned long *)data->addr + 1);
}

static void a_handler_is_not_hit_by_what_it_has_repointed(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	run_on(test, first_cpu());
	keep_set(test, register_wide_hw_breakpoint(&attr, touch_in_handler, &c));
	for (i = 0; i < 20; i++) {
		write_word(&words[i]);
		KUNIT_EXPECT_EQ(test, take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	run_anywhere();
}

/* ---- ... while whoever can interrupt it does the same ---- */

struct scuffle {
	struct hits			hits;
	struct perf_event * __percpu	*set;
	struct irq_work			work;
	unsigned int			next;
	unsigned int			irqs;
	unsigned int			nmis;
	unsigned int			strange;
};

static struct scuffle scuffle;

/* Words with an odd number are watched by half. */
static struct perf_event_attr word_of_scuffle(unsigned int i)
{
	struct perf_event_attr attr = watch(&words[i % 16], HW_BREAKPOINT_W);

	if (i & 1)
		attr.bp_len = 4;
	return attr;
}

static void take_part(void)
{
	struct perf_event *bp = event_on(scuffle.set, raw_smp_processor_id());
	struct perf_event_attr attr = word_of_scuffle(scuffle.next++ * 7);
	struct hw_breakpoint_range range;
	unsigned int i;

	read_wide_hw_breakpoint_local(bp, &range);
	i = (unsigned long *)range.addr - words;
	if (i >= 16 || range.len != (i & 1 ? 4 : 8))
		scuffle.strange++;
	if (modify_wide_hw_breakpoint_local(bp, &attr))
		scuffle.strange++;
}

static void take_part_in_interrupt(struct irq_work *work)
{
	scuffle.irqs++;
	take_part();
}

#ifdef CONFIG_X86
static int scuffle_cpu;

static int take_part_in_nmi(unsigned int val, struct pt_regs *regs)
{
	if (raw_smp_processor_id() != scuffle_cpu || !READ_ONCE(scuffle.set))
		return NMI_DONE;
	scuffle.nmis++;
	take_part();
	return NMI_HANDLED;
}

static void nmi_begin(struct kunit *test)
{
	scuffle_cpu = raw_smp_processor_id();
	KUNIT_ASSERT_EQ(test, register_nmi_handler(NMI_LOCAL, take_part_in_nmi, 0,
						   "hw_breakpoint_test"), 0);
}

static void nmi_send(void)
{
	__apic_send_IPI_mask(cpumask_of(scuffle_cpu), NMI_VECTOR);
}

static void nmi_end(void)
{
	unregister_nmi_handler(NMI_LOCAL, "hw_breakpoint_test");
}
#else
static void nmi_begin(struct kunit *test) { }
static void nmi_send(void) { }
static void nmi_end(void) { }
#endif

/**
 * struct middle - changes that come while a version is written or read
 * @hits: accesses to the memory of the version
 * @bp: what is changed
 * @task: the one that writes or reads; others may search memory
 * @changes: how often, each time to another word
 * @err: a change failed, or did not find what it had written
 */
struct middle {
	struct hits		hits;
	struct perf_event	*bp;
	struct task_struct	*task;
	int			changes;
	int			err;
};

#define VERSION_WORDS	(sizeof(struct bp_version) / sizeof(unsigned long))

static struct perf_event_attr half_word(unsigned long *word)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W | HW_BREAKPOINT_R);

	attr.bp_len = HW_BREAKPOINT_LEN_4;
	return attr;
}

static bool watches(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct hw_breakpoint_range range;
	struct arch_hw_breakpoint hw;

	read_wide_hw_breakpoint_local(bp, &range);
	bp_current_version(bp, &hw);
	return range.addr == attr->bp_addr && range.len == attr->bp_len &&
	       range.type == attr->bp_type && hw.address == attr->bp_addr;
}

static void come_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;
	int i;

	if (current != m->task || atomic_inc_return(&m->hits.nr) > 1)
		return;
	for (i = 0; i < m->changes; i++) {
		struct perf_event_attr attr = half_word(&words[4 + i]);

		if (modify_wide_hw_breakpoint_local(m->bp, &attr) ||
		    !watches(m->bp, &attr))
			m->err = 1;
	}
}

/* Registers what is changed; its versions are returned. */
static struct bp_versions *begin_in_the_middle(struct kunit *test, struct middle *m,
					       struct hits *hits)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);

	require_repoint(test);
	run_on(test, first_cpu());
	m->bp = event_on(keep_set(test, register_wide_hw_breakpoint(&attr, record_hit, hits)),
			 first_cpu());
	m->task = current;
	return m->bp->hw.bp_versions;
}

/* One more set, which watches a word of a version. */
static struct perf_event * __percpu *watch_version(struct kunit *test, struct middle *m,
						   struct bp_version *version,
						   unsigned int word, u32 type)
{
	struct perf_event_attr attr = watch((unsigned long *)version + word, type);

	atomic_set(&m->hits.nr, 0);
	return keep_set(test, register_wide_hw_breakpoint(&attr, come_in_the_middle, m));
}

static void a_change_in_the_middle_of_another_leaves_both_whole(struct kunit *test)
{
	struct middle m = { .changes = 1 };
	struct perf_event * __percpu *set;
	unsigned int word, nr_hit = 0;
	struct perf_event_attr attr;
	struct bp_versions *v;
	struct hits hits = { };

	v = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < VERSION_WORDS; word++) {
		attr = watch(&words[word % 2], HW_BREAKPOINT_W);
		set = watch_version(test, &m, &v->version[!v->now], word, HW_BREAKPOINT_W);
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
		nr_hit += take_hits(&m.hits) > 0;
		drop_set(test, set);

		/* What ends last counts. */
		KUNIT_EXPECT_TRUE_MSG(test, watches(m.bp, &attr), "word %u", word);
		KUNIT_EXPECT_EQ(test, v->depth, 0U);
		write_word(&words[4]);
		KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
		write_word(&words[word % 2]);
		KUNIT_EXPECT_EQ(test, take_hits(&hits), 1);
	}
	KUNIT_EXPECT_GT(test, nr_hit, 2U);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	run_anywhere();
}

/* Two changes: the second one writes to what the first one took from the reader. */
static void a_change_in_the_middle_of_reading_is_read_whole(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event_attr last = half_word(&words[5]);
	struct middle m = { .changes = 2 };
	struct perf_event * __percpu *set;
	struct hw_breakpoint_range range;
	unsigned int word, nr_hit = 0;
	struct bp_versions *v;
	struct hits hits = { };

	v = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < VERSION_WORDS; word++) {
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
		set = watch_version(test, &m, &v->version[v->now], word,
				    HW_BREAKPOINT_R | HW_BREAKPOINT_W);
		read_wide_hw_breakpoint_local(m.bp, &range);
		drop_set(test, set);

		if (!take_hits(&m.hits)) {
			KUNIT_EXPECT_EQ(test, range.addr, attr.bp_addr);
			continue;
		}
		nr_hit++;
		KUNIT_EXPECT_EQ_MSG(test, range.addr, last.bp_addr, "word %u", word);
		KUNIT_EXPECT_EQ_MSG(test, range.len, last.bp_len, "word %u", word);
		KUNIT_EXPECT_EQ_MSG(test, range.type, last.bp_type, "word %u", word);
	}
	KUNIT_EXPECT_GT(test, nr_hit, 1U);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	run_anywhere();
}

/* It counts in the middle of changes, and of everything else. */
static void repointing_in_every_context_leaves_one_version(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event *bp;
	unsigned int i, n;

	require_repoint(test);
	run_on(test, first_cpu());
	scuffle = (struct scuffle) { };
	scuffle.work = IRQ_WORK_INIT_HARD(take_part_in_interrupt);
	scuffle.set = keep_set(test, register_wide_hw_breakpoint(&attr, record_hit,
								 &scuffle.hits));
	bp = event_on(scuffle.set, first_cpu());
	nmi_begin(test);

	for (n = 0; n < 300; n++) {
		nmi_send();
		preempt_disable();
		irq_work_queue(&scuffle.work);
		take_part();
		preempt_enable();
		irq_work_sync(&scuffle.work);
		if (n % 10)
			continue;

		/* What it watches now is what it says, and nothing else. */
		nmi_end();
		preempt_disable();
		for (i = 0; i < 16; i++) {
			take_hits(&scuffle.hits);
			write_word(&words[i]);
			if (take_hits(&scuffle.hits) !=
			    ((unsigned long)&words[i] == bp->attr.bp_addr))
				scuffle.strange++;
		}
		i = (unsigned long *)(unsigned long)bp->attr.bp_addr - words;
		if (bp->attr.bp_len != (i & 1 ? 4 : 8))
			scuffle.strange++;
		preempt_enable();
		nmi_begin(test);
	}

	nmi_end();
	KUNIT_EXPECT_EQ(test, scuffle.strange, 0U);
	KUNIT_EXPECT_GT(test, scuffle.irqs, 0U);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_GT(test, scuffle.nmis, 0U);
	run_anywhere();
}

/* Different, so that they are two. */
static noinline __noclone void call_here(void)
{
	asm volatile("# here");
}

static noinline __noclone void call_there(void)
{
	asm volatile("# there");
}

static struct perf_event_attr calls_of(void (*function)(void))
{
	return watch((unsigned long *)function, HW_BREAKPOINT_X);
}

/* struct pair - two breakpoints on one instruction */
struct pair {
	struct hits		hits;
	struct perf_event	*bp[2];
	int			err;
};

/* Whichever is reported first moves the other, which was hit as well. */
static void move_the_other(struct perf_event *bp, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	struct perf_event_attr attr = calls_of(call_there);
	struct pair *p = bp->overflow_handler_context;

	if (data->addr != (unsigned long)call_here)
		p->err = 1;
	if (atomic_inc_return(&p->hits.nr) == 1 &&
	    modify_wide_hw_breakpoint_local(p->bp[bp == p->bp[0]], &attr))
		p->err = 2;
}

static void a_hit_has_the_address_that_was_hit(struct kunit *test)
{
	struct perf_event_attr attr = calls_of(call_here);
	struct perf_event * __percpu *set;
	struct pair p = { };
	int i;

	require_repoint(test);
	run_on(test, first_cpu());
	for (i = 0; i < 2; i++) {
		set = keep_set(test, register_wide_hw_breakpoint(&attr, move_the_other, &p));
		p.bp[i] = event_on(set, first_cpu());
	}
	call_here();
	KUNIT_EXPECT_EQ(test, take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 0);

	/* One is there still, the other where it was moved to. */
	atomic_set(&p.hits.nr, 1);
	call_here();
	KUNIT_EXPECT_EQ(test, take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 0);
	atomic_set(&p.hits.nr, 1);
	call_there();
	KUNIT_EXPECT_EQ(test, take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 1);
	run_anywhere();
}

static void a_wide_breakpoint_takes_a_register_of_every_possible_cpu(struct kunit *test)
{
	struct bp_class_books *books = &bp_books.class[TYPE_DATA];
	struct hits hits = { };
	int cpu;

	watch_all(test, &words[0], &hits);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_EQ(test, books->cpu[cpu].guaranteed, 1U);

	fill_cpu(test, first_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[0], &hits));
	if (first_cpu() == last_cpu())
		return;
	fill_cpu(test, last_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));
}

static void there_are_as_many_wide_breakpoints_as_registers(struct kunit *test)
{
	struct hits hits[BP_SLOTS_MAX] = { };
	unsigned int i;

	for (i = 0; i < nr_slots(); i++)
		watch_all(test, &words[i], &hits[i]);
	expect_wide_refused(test, -ENOSPC, watch(&words[i], HW_BREAKPOINT_W), NULL);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[i], NULL));
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[i], NULL));

	require_hits(test);
	for (i = 0; i < nr_slots(); i++)
		expect_watched_everywhere(test, &words[i], &hits[i]);
}

static void a_wide_breakpoint_is_refused_as_a_whole(struct kunit *test)
{
	struct hits full = { }, refused = { };

	fill_cpu(test, last_cpu(), 0, &full);
	expect_wide_refused(test, -ENOSPC, watch(&words[MAX_BPS - 1], HW_BREAKPOINT_W),
			    &refused);
	expect_watched_nowhere(test, &words[MAX_BPS - 1], &refused);

	drop_all(test);
	fill_task(test, current, 0, &full);
	expect_wide_refused(test, -ENOSPC, watch(&words[MAX_BPS - 1], HW_BREAKPOINT_W),
			    &refused);
}

static void a_malformed_wide_breakpoint_is_refused_before_a_full_cpu(struct kunit *test)
{
	struct perf_event_attr attr;
	struct hits hits = { };
	int full;

	for (full = 0; full < 2; full++) {
		expect_wide_refused(test, -EINVAL, malformed(&words[0]), &hits);

		attr = watch(&words[0], HW_BREAKPOINT_W);
		attr.type = PERF_TYPE_SOFTWARE;
		expect_wide_refused(test, -EINVAL, attr, &hits);

		attr = watch(&words[0], HW_BREAKPOINT_W);
		attr.config = 1ULL << 63;
		expect_wide_refused(test, -EINVAL, attr, &hits);

		attr = watch(&words[0], HW_BREAKPOINT_W);
		attr.exclude_kernel = 1;
		expect_wide_refused(test, -EINVAL, attr, &hits);

		if (!full)
			fill_cpu(test, last_cpu(), 0, &hits);
	}
}

/* What perf refuses is found out when the registers are taken already. */
static void a_wide_breakpoint_that_perf_refuses_takes_nothing(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct hits hits = { };

	attr.aux_output = 1;
	expect_wide_refused(test, -EINVAL, attr, &hits);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	expect_watched_nowhere(test, &words[0], &hits);
}

static void a_disabled_wide_breakpoint_is_silent_until_it_is_enabled(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct hits hits = { };
	int cpu;

	require_hits(test);
	attr.disabled = 1;
	set = keep_set(test, try_wide(attr, &hits));
	expect_watched_nowhere(test, &words[0], &hits);
	fill_cpu(test, first_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[1], &hits));
	drop_all(test);

	for_each_online_cpu(cpu)
		perf_event_enable(event_on(set, cpu));
	expect_watched_everywhere(test, &words[0], &hits);
}

static void a_wide_breakpoint_leaves_tasks_the_other_registers(struct kunit *test)
{
	struct kthread_worker *worker = start_worker(test);
	struct perf_event * __percpu *set;
	struct hits hits = { };

	set = watch_all(test, &words[0], &hits);
	fill_task(test, current, 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	fill_task(test, worker->task, 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(worker->task, &words[0], &hits));
	expect_wide_refused(test, -ENOSPC, watch(&words[0], HW_BREAKPOINT_W), &hits);

	drop_set(test, set);
	watch_task(test, current, &words[0], &hits);
	expect_wide_refused(test, -ENOSPC, watch(&words[0], HW_BREAKPOINT_W), &hits);
}

#define NR_SHOUTS		8

/* struct shout - a context that may go when unregister has returned */
struct shout {
	atomic_t	alive;
	atomic_t	nr;
	atomic_t	late;
};

static void record_shout(struct perf_event *bp, struct perf_sample_data *data,
			 struct pt_regs *regs)
{
	struct shout *shout = bp->overflow_handler_context;

	atomic_inc(&shout->nr);
	if (!atomic_read(&shout->alive))
		atomic_inc(&shout->late);
}

static int keep_writing(void *word)
{
	while (!kthread_should_stop()) {
		write_word(word);
		cond_resched();
	}
	return 0;
}

static void no_handler_runs_when_unregister_has_returned(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct task_struct *writer;
	struct shout shout = { };
	int i, ms;

	require_hits(test);
	require_two_cpus(test);
	writer = kthread_create(keep_writing, &words[0], "hw_breakpoint_test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, writer);
	kthread_bind(writer, last_cpu());
	run_on(test, first_cpu());
	wake_up_process(writer);

	for (i = 0; i < NR_SHOUTS; i++) {
		atomic_set(&shout.nr, 0);
		atomic_set(&shout.alive, 1);
		set = register_wide_hw_breakpoint(&attr, record_shout, &shout);
		if (IS_ERR((void __force *)set))
			break;
		for (ms = 0; ms < 5000 && !atomic_read(&shout.nr); ms++)
			usleep_range(500, 1000);
		unregister_wide_hw_breakpoint(set);
		atomic_set(&shout.alive, 0);
		if (!atomic_read(&shout.nr))
			break;
	}
	kthread_stop(writer);
	run_anywhere();

	KUNIT_EXPECT_EQ(test, i, NR_SHOUTS);
	KUNIT_EXPECT_EQ(test, atomic_read(&shout.late), 0);
}

/* ---- Cases: CPUs that come and go ---- */

static void a_cpu_that_comes_back_watches_again(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set, * __percpu *disabled;
	struct hits hits = { }, silent = { };
	int cpu = last_cpu();
	u32 digest;

	require_hits(test);
	require_hotplug(test);
	attr.disabled = 1;
	set = watch_all(test, &words[0], &hits);
	disabled = keep_set(test, try_wide(attr, &silent));
	digest = digest_books();

	take_cpu_off(test, cpu);
	KUNIT_EXPECT_NULL(test, event_on(set, cpu));
	KUNIT_EXPECT_NULL(test, event_on(disabled, cpu));
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
	expect_watched_everywhere(test, &words[0], &hits);

	bring_cpu_back(test);
	KUNIT_EXPECT_NOT_NULL(test, event_on(set, cpu));
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
	expect_watched_everywhere(test, &words[0], &hits);
	expect_watched_nowhere(test, &words[1], &silent);
}

static void a_cpu_that_comes_online_later_has_its_register_waiting(struct kunit *test)
{
	struct hits hits[BP_SLOTS_MAX] = { };
	struct perf_event * __percpu *set;
	int cpu = last_cpu();
	unsigned int i;

	require_hits(test);
	require_hotplug(test);
	take_cpu_off(test, cpu);
	for (i = 0; i < nr_slots(); i++) {
		set = watch_all(test, &words[i], &hits[i]);
		KUNIT_EXPECT_NULL(test, event_on(set, cpu));
	}

	bring_cpu_back(test);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(cpu, NULL, &words[i], NULL));
	for (i = 0; i < nr_slots(); i++)
		expect_watched_everywhere(test, &words[i], &hits[i]);
}

static void a_wide_breakpoint_can_go_while_a_cpu_is_off(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct hits hits = { };
	int cpu = last_cpu();

	require_hits(test);
	require_hotplug(test);
	set = watch_all(test, &words[0], &hits);
	take_cpu_off(test, cpu);
	drop_set(test, set);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	bring_cpu_back(test);
	expect_watched_nowhere(test, &words[0], &hits);
	fill_cpu(test, cpu, 0, &hits);
}

static void a_cpu_watch_keeps_its_claim_while_the_cpu_is_off(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;
	int cpu = last_cpu();
	u32 digest;

	require_hotplug(test);
	bp = watch_cpu(test, cpu, &words[0], &hits);
	digest = digest_books();
	take_cpu_off(test, cpu);
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
	EXPECT_REFUSED(test, -ENODEV, try_cpu(cpu, NULL, &words[1], &hits));

	drop(test, bp);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	bring_cpu_back(test);
}

/* ---- Cases: events that perf moves to another CPU ---- */

static void expect_on(struct kunit *test, struct perf_event *bp, struct hits *hits,
		      bool on)
{
	write_on(test, bp->cpu, &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(hits), on);
}

/* As perf does with the events of a PMU whose CPU goes offline. */
static void a_breakpoint_that_moves_takes_its_register_along(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	require_hits(test);
	require_two_cpus(test);
	bp = watch_cpu(test, first_cpu(), &words[0], &hits);
	perf_pmu_migrate_context(bp->pmu, first_cpu(), last_cpu());
	KUNIT_EXPECT_EQ(test, bp->cpu, last_cpu());
	expect_on(test, bp, &hits, true);
	write_on(test, first_cpu(), &words[0]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits), 0);
	fill_cpu(test, first_cpu(), 0, &hits);
	fill_cpu(test, last_cpu(), 1, &hits);
}

static void a_moved_breakpoint_is_off_until_it_has_a_register(struct kunit *test)
{
	struct hits hits = { }, others = { };
	struct perf_event_attr off, on;
	struct perf_event *bp, *other;

	require_hits(test);
	require_two_cpus(test);
	bp = watch_cpu(test, first_cpu(), &words[0], &hits);
	fill_cpu(test, last_cpu(), 1, &others);
	other = watch_cpu(test, last_cpu(), &words[nr_slots()], &others);
	on = bp->attr;
	off = on;
	off.disabled = 1;

	perf_pmu_migrate_context(bp->pmu, first_cpu(), last_cpu());
	KUNIT_EXPECT_FALSE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, false);
	perf_event_enable(bp);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &on), -ENOSPC);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &off), 0);
	perf_event_enable(bp);
	expect_on(test, bp, &hits, false);
	KUNIT_EXPECT_FALSE(test, bp->bp_claim.held);

	drop(test, other);
	perf_event_enable(bp);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, true);
}

static void a_modify_gives_a_moved_breakpoint_its_register(struct kunit *test)
{
	struct hits hits = { }, others = { };
	struct perf_event *bp, *other;
	struct perf_event_attr on;

	require_hits(test);
	require_two_cpus(test);
	bp = watch_cpu(test, first_cpu(), &words[0], &hits);
	fill_cpu(test, last_cpu(), 1, &others);
	other = watch_cpu(test, last_cpu(), &words[nr_slots()], &others);
	perf_pmu_migrate_context(bp->pmu, first_cpu(), last_cpu());
	drop(test, other);
	on = bp->attr;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &on), 0);
	KUNIT_EXPECT_TRUE(test, bp->bp_claim.held);
	expect_on(test, bp, &hits, true);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[1], &others));
}

/* ---- Cases: the kernel debugger's claims ---- */

static void a_debugger_takes_a_register_and_gives_it_back(struct kunit *test)
{
	struct hits hits = { };
	struct perf_event *bp;

	bp = kunit_kzalloc(test, sizeof(*bp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bp);
	bp->attr = watch(&words[0], HW_BREAKPOINT_W);
	bp->cpu = last_cpu();

	KUNIT_ASSERT_EQ(test, dbg_reserve_bp_slot(bp), 0);
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());
	fill_cpu(test, last_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(last_cpu(), NULL, &words[0], &hits));

	KUNIT_EXPECT_EQ(test, dbg_release_bp_slot(bp), 0);
	KUNIT_EXPECT_EQ(test, dbg_release_bp_slot(bp), 0);
	watch_cpu(test, last_cpu(), &words[0], &hits);
	KUNIT_EXPECT_EQ(test, dbg_reserve_bp_slot(bp), -ENOSPC);
	KUNIT_EXPECT_FALSE(test, bp->bp_claim.held);
}

static const struct bp_holder debuggers = {
	.len		= 1,
	.bp_type	= HW_BREAKPOINT_W,
};

static struct bp_claim *alloc_claims(struct kunit *test)
{
	struct bp_claim *claims;

	claims = kunit_kcalloc(test, nr_cpu_ids, sizeof(*claims), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, claims);
	return claims;
}

static void a_debugger_takes_a_register_of_every_cpu_or_none(struct kunit *test)
{
	struct bp_claim *claims = alloc_claims(test);
	struct hits hits = { };
	u32 digest;

	KUNIT_ASSERT_EQ(test, dbg_reserve_bp_slots(claims, &debuggers), 0);
	fill_cpu(test, first_cpu(), 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_cpu(first_cpu(), NULL, &words[0], &hits));
	drop_all(test);
	fill_task(test, current, 1, &hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits));
	drop_all(test);
	KUNIT_EXPECT_EQ(test, dbg_release_bp_slots(claims), 0);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());

	fill_cpu(test, last_cpu(), 0, &hits);
	digest = digest_books();
	KUNIT_EXPECT_EQ(test, dbg_reserve_bp_slots(claims, &debuggers), -ENOSPC);
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
	KUNIT_EXPECT_EQ(test, dbg_release_bp_slots(claims), 0);
	KUNIT_EXPECT_EQ(test, digest_books(), digest);
}

static void a_debugger_does_not_wait_for_the_books(struct kunit *test)
{
	struct bp_claim *claims = alloc_claims(test);
	struct perf_event *bp;
	int busy[4];

	bp = kunit_kzalloc(test, sizeof(*bp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bp);
	bp->attr = watch(&words[0], HW_BREAKPOINT_W);

	raw_spin_lock_irq(&bp_books.lock);
	busy[0] = dbg_reserve_bp_slot(bp);
	busy[1] = dbg_release_bp_slot(bp);
	busy[2] = dbg_reserve_bp_slots(claims, &debuggers);
	busy[3] = dbg_release_bp_slots(claims);
	raw_spin_unlock_irq(&bp_books.lock);

	KUNIT_EXPECT_EQ(test, busy[0], -EBUSY);
	KUNIT_EXPECT_EQ(test, busy[1], -EBUSY);
	KUNIT_EXPECT_EQ(test, busy[2], -EBUSY);
	KUNIT_EXPECT_EQ(test, busy[3], -EBUSY);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: the end of a task ---- */

static void a_task_that_exits_gives_its_registers_back(struct kunit *test)
{
	struct task_struct *task = start_sleeper(test);
	struct hits hits = { };

	fill_task(test, task, 1, &hits);
	keep(test, try_cpu(last_cpu(), task, &words[0], &hits));
	KUNIT_EXPECT_TRUE(test, hw_breakpoint_is_used());

	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_TRUE(test, comes_true(nothing_in_use));

	/* The events live on, but hold nothing. */
	fill_cpu(test, last_cpu(), 0, &hits);
	drop_all(test);
}

static void a_modify_after_the_end_of_the_task_takes_nothing(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct task_struct *task = start_sleeper(test);
	struct hits hits = { };
	struct perf_event *bp;

	bp = watch_task(test, task, &words[0], &hits);
	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_TRUE(test, comes_true(nothing_in_use));

	modify_user_hw_breakpoint(bp, &attr);
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- A random sequence, and an oracle that counts ---- */

#define NR_STEPS		300
#define NR_ENTRIES		24
#define NR_TASKS		(MAX_WORKERS + 1)
#define NO_TASK			(-1)
#define EVERY_CPU		(-1)

/* struct entry - what the oracle knows of a breakpoint */
struct entry {
	struct perf_event		*bp;
	struct perf_event * __percpu	*set;
	int				task;
	int				cpu;
	struct hits			hits;
};

struct random_run {
	struct rnd_state	rnd;
	struct task_struct	*task[NR_TASKS];
	struct entry		entry[NR_ENTRIES];
};

static bool stands(const struct entry *e)
{
	return e->bp || e->set;
}

static bool counts_on(const struct entry *e, int task, int cpu)
{
	return (e->task == NO_TASK || e->task == task) &&
	       (e->cpu == EVERY_CPU || e->cpu == cpu);
}

/* Whether the new entry would fit in: every task, on every CPU. */
static bool oracle_fits(const struct random_run *run, const struct entry *new)
{
	int cpu, task, i;

	for_each_possible_cpu(cpu) {
		for (task = 0; task < NR_TASKS; task++) {
			unsigned int taken = 0;

			if (!counts_on(new, task, cpu))
				continue;
			for (i = 0; i < NR_ENTRIES; i++) {
				const struct entry *e = &run->entry[i];

				if (stands(e) || e == new)
					taken += counts_on(e, task, cpu);
			}
			if (taken > nr_slots())
				return false;
		}
	}

	return true;
}

static int random_cpu(struct random_run *run)
{
	int nr = prandom_u32_state(&run->rnd) % num_online_cpus();
	int cpu;

	for_each_online_cpu(cpu) {
		if (!nr--)
			break;
	}

	return cpu;
}

static void random_open(struct kunit *test, struct random_run *run, struct entry *e)
{
	struct perf_event_attr attr;
	bool fits;
	long err;

	e->task = (int)(prandom_u32_state(&run->rnd) % (NR_TASKS + 1)) - 1;
	e->cpu = prandom_u32_state(&run->rnd) % 2 ? random_cpu(run) : EVERY_CPU;
	atomic_set(&e->hits.nr, 0);
	attr = watch(&words[e - run->entry], HW_BREAKPOINT_W);

	fits = oracle_fits(run, e);
	if (e->task == NO_TASK && e->cpu == EVERY_CPU) {
		e->set = try_wide(attr, &e->hits);
		err = PTR_ERR_OR_ZERO((void __force *)e->set);
		e->set = err ? NULL : keep_set(test, e->set);
	} else {
		e->bp = try_cpu(e->cpu, e->task == NO_TASK ? NULL : run->task[e->task],
				(void *)attr.bp_addr, &e->hits);
		err = PTR_ERR_OR_ZERO(e->bp);
		e->bp = err ? NULL : keep(test, e->bp);
	}

	KUNIT_EXPECT_EQ_MSG(test, err, fits ? 0L : -ENOSPC, "task %d, CPU %d",
			    e->task, e->cpu);
}

static void random_close(struct kunit *test, struct entry *e)
{
	if (e->set)
		drop_set(test, e->set);
	else
		drop(test, e->bp);
	e->set = NULL;
	e->bp = NULL;
}

/* Anything that is no change of claims must find its register again. */
static void random_change(struct kunit *test, struct random_run *run, struct entry *e)
{
	struct perf_event_attr attr = watch(&words[e - run->entry], HW_BREAKPOINT_W);

	if (!e->bp)
		return;
	perf_event_disable(e->bp);
	if (e->task != NO_TASK && prandom_u32_state(&run->rnd) % 2)
		KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(e->bp, &attr), 0);
	else
		perf_event_enable(e->bp);
}

/* All that stand fire, for the task of the test on each CPU. */
static void random_check_hits(struct kunit *test, struct random_run *run)
{
	int cpu, i;

	for (i = 0; i < NR_ENTRIES; i++)
		take_hits(&run->entry[i].hits);

	for_each_online_cpu(cpu) {
		run_on(test, cpu);
		for (i = 0; i < NR_ENTRIES; i++) {
			struct entry *e = &run->entry[i];

			write_word(&words[i]);
			KUNIT_EXPECT_EQ_MSG(test, take_hits(&e->hits),
					    stands(e) && counts_on(e, 0, cpu),
					    "task %d, CPU %d, on CPU %d",
					    e->task, e->cpu, cpu);
		}
	}
	run_anywhere();
}

static void every_request_is_granted_exactly_if_it_fits(struct kunit *test)
{
	struct random_run *run;
	struct entry *e;
	int i;

	run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, run);
	prandom_seed_state(&run->rnd, 6012);
	run->task[0] = current;
	for (i = 1; i < NR_TASKS; i++)
		run->task[i] = start_worker(test)->task;

	for (i = 0; i < NR_STEPS; i++) {
		e = &run->entry[prandom_u32_state(&run->rnd) % NR_ENTRIES];
		if (!stands(e))
			random_open(test, run, e);
		else if (prandom_u32_state(&run->rnd) % 3)
			random_close(test, e);
		else
			random_change(test, run, e);
		if (i % 50 == 49 && IS_ENABLED(CONFIG_X86))
			random_check_hits(test, run);
	}

	for (e = run->entry; e < run->entry + NR_ENTRIES; e++) {
		if (stands(e))
			random_close(test, e);
	}
	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
}

/* ---- Cases: flexible breakpoints ---- */

static struct perf_event_attr flexible_watch(unsigned long *word)
{
	struct perf_event_attr attr = watch(word, HW_BREAKPOINT_W);

	attr.config = HW_BREAKPOINT_FLEXIBLE;
	attr.pinned = 0;
	return attr;
}

/* @cpu: -1 for all; @task: NULL for all */
static struct perf_event *try_flexible(int cpu, struct task_struct *task,
				       unsigned long *word, struct hits *hits)
{
	struct perf_event_attr attr = flexible_watch(word);

	return perf_event_create_kernel_counter(&attr, cpu, task, record_hit, hits);
}

static void watch_flexible(struct kunit *test, int cpu, struct task_struct *task,
			   unsigned int nr, struct hits *hits)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		keep(test, try_flexible(cpu, task, &words[i], &hits[i]));
}

static unsigned int nr_active(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int nr = 0;
	int i;

	for (i = 0; i < MAX_BPS; i++) {
		if (f->bp[i] && f->bp[i]->state == PERF_EVENT_STATE_ACTIVE)
			nr++;
	}

	return nr;
}

static void what_cannot_be_flexible_is_refused(struct kunit *test)
{
	struct perf_event_attr attr = flexible_watch(&words[0]);

	expect_wide_refused(test, -EINVAL, attr, NULL);
	attr.pinned = 1;
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));
	attr.pinned = 0;
	attr.config |= HW_BREAKPOINT_FLEXIBLE << 1;
	EXPECT_REFUSED(test, -EINVAL,
		       register_user_hw_breakpoint(&attr, record_hit, NULL, current));
}

static void any_number_of_flexible_ones_needs_one_register(struct kunit *test)
{
	static struct hits hits[20];
	struct perf_event *bp;

	fill_task(test, current, 0, &hits[0]);
	EXPECT_REFUSED(test, -ENOSPC, try_flexible(-1, current, &words[0], &hits[0]));
	drop_all(test);

	fill_task(test, current, 1, &hits[0]);
	watch_flexible(test, -1, current, ARRAY_SIZE(hits), hits);
	EXPECT_REFUSED(test, -ENOSPC, try_task(current, &words[0], &hits[0]));
	drop_all(test);

	fill_task(test, current, 1, &hits[0]);
	bp = keep(test, try_flexible(-1, current, &words[0], &hits[0]));
	drop(test, bp);
	watch_task(test, current, &words[0], &hits[0]);
}

static void a_modify_cannot_make_a_breakpoint_flexible(struct kunit *test)
{
	struct perf_event_attr attr = watch(&words[1], HW_BREAKPOINT_W);
	struct hits hits = { };
	struct perf_event *bp;

	bp = keep(test, try_flexible(-1, current, &words[0], &hits));
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
	attr = flexible_watch(&words[1]);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), 0);

	bp = watch_task(test, current, &words[0], &hits);
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(bp, &attr), -EINVAL);
}

static void a_guaranteed_one_takes_a_register_at_once(struct kunit *test)
{
	static struct hits flexible[8];
	struct perf_event_attr attr;
	struct hits hits[2] = { };
	struct perf_event *bp;

	require_hits(test);
	run_on(test, first_cpu());
	watch_flexible(test, first_cpu(), NULL, 4, flexible);
	watch_flexible(test, -1, current, 4, flexible + 4);
	KUNIT_EXPECT_EQ(test, nr_active(test), nr_slots());

	attr = watch(&words[100], HW_BREAKPOINT_W);
	attr.disabled = 1;
	bp = keep(test, register_user_hw_breakpoint(&attr, record_hit, &hits[0], current));
	watch_task(test, current, &words[101], &hits[1]);
	write_word(&words[101]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits[1]), 1);

	perf_event_enable(bp);
	write_word(&words[100]);
	KUNIT_EXPECT_EQ(test, take_hits(&hits[0]), 1);
	KUNIT_EXPECT_EQ(test, bp->state, PERF_EVENT_STATE_ACTIVE);
	run_anywhere();
}

static void a_debugger_takes_a_register_from_flexible_ones(struct kunit *test)
{
	struct bp_claim *claims = alloc_claims(test);
	static struct hits hits[BP_SLOTS_MAX];
	int i, cpu = first_cpu();

	run_on(test, cpu);
	watch_flexible(test, cpu, NULL, nr_slots(), hits);
	KUNIT_ASSERT_EQ(test, nr_active(test), nr_slots());
	KUNIT_ASSERT_EQ(test, dbg_reserve_bp_slots(claims, &debuggers), 0);

	migrate_disable();
	hw_breakpoint_trim_flexible();
	for (i = 0; i < 1000 && nr_active(test) == nr_slots(); i++)
		udelay(100);
	KUNIT_EXPECT_EQ(test, nr_active(test), nr_slots() - 1);
	migrate_enable();

	KUNIT_EXPECT_EQ(test, dbg_release_bp_slots(claims), 0);
	run_anywhere();
}

/* Whether each of them had a hit before time was up. */
static bool all_have_a_turn(struct hits *hits, unsigned int nr)
{
	unsigned long end = jiffies + 20 * HZ;
	unsigned int i, seen = 0;

	for (i = 0; i < nr; i++)
		take_hits(&hits[i]);
	while (seen < nr && time_before(jiffies, end)) {
		for (i = 0; i < nr; i++)
			write_word(&words[i]);
		for (i = 0, seen = 0; i < nr; i++)
			seen += !!atomic_read(&hits[i].nr);
		cond_resched();
	}

	return seen == nr;
}

static void flexible_ones_take_turns(struct kunit *test)
{
	static struct hits hits[3 * BP_SLOTS_MAX];

	require_hits(test);
	run_on(test, first_cpu());
	watch_flexible(test, -1, current, 3 * nr_slots(), hits);
	KUNIT_EXPECT_TRUE(test, all_have_a_turn(hits, 3 * nr_slots()));
	drop_all(test);
	watch_flexible(test, first_cpu(), NULL, 3 * nr_slots(), hits);
	KUNIT_EXPECT_TRUE(test, all_have_a_turn(hits, 3 * nr_slots()));
	run_anywhere();
}

/* Whatever the numbers are: nobody's turns fall between those of others. */
static void task_and_cpu_take_turns_on_the_last_register(struct kunit *test)
{
	static struct hits hits[8], plain;
	unsigned int tasks, cpus, i;

	require_hits(test);
	run_on(test, first_cpu());
	for (tasks = 1; tasks <= 4; tasks++) {
		for (cpus = 1; cpus <= 4; cpus++) {
			for (i = 1; i < nr_slots(); i++)
				watch_task(test, current, &words[100 + i], &plain);
			for (i = 0; i < tasks + cpus; i++)
				keep(test, try_flexible(i < cpus ? first_cpu() : -1,
							i < cpus ? NULL : current,
							&words[i], &hits[i]));
			KUNIT_EXPECT_TRUE_MSG(test, all_have_a_turn(hits, tasks + cpus),
					      "%u of the task, %u of the CPU",
					      tasks, cpus);
			drop_all(test);
		}
	}
	run_anywhere();
}

/* ---- A hardware PMU for the tests from user space ---- */

/*
 * How breakpoints get on with hardware events cannot be seen in a virtual
 * machine that has none. This one counts nothing and always has room.
 */
static struct pmu test_pmu;

static int test_pmu_event_init(struct perf_event *event)
{
	return event->attr.type == test_pmu.type ? 0 : -ENOENT;
}

static int test_pmu_add(struct perf_event *event, int flags)
{
	return 0;
}

static void test_pmu_nop(struct perf_event *event, int flags)
{
}

static void test_pmu_read(struct perf_event *event)
{
}

/* How often perf disabled it, to see who is disturbed by breakpoints. */
static atomic_long_t test_pmu_disables;

static void test_pmu_disable(struct pmu *pmu)
{
	atomic_long_inc(&test_pmu_disables);
}

static ssize_t disables_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&test_pmu_disables));
}
static DEVICE_ATTR_RO(disables);

static struct attribute *test_pmu_attrs[] = {
	&dev_attr_disables.attr,
	NULL
};

static const struct attribute_group test_pmu_group = {
	.name	= "test",
	.attrs	= test_pmu_attrs,
};

static const struct attribute_group *test_pmu_groups[] = {
	&test_pmu_group,
	NULL
};

static struct pmu test_pmu = {
	.task_ctx_nr	= perf_hw_context,
	.capabilities	= PERF_PMU_CAP_NO_INTERRUPT,
	.attr_groups	= test_pmu_groups,
	.event_init	= test_pmu_event_init,
	.pmu_disable	= test_pmu_disable,
	.add		= test_pmu_add,
	.del		= test_pmu_nop,
	.start		= test_pmu_nop,
	.stop		= test_pmu_nop,
	.read		= test_pmu_read,
};

static int __init test_pmu_register(void)
{
	return perf_pmu_register(&test_pmu, "breakpoint_test_hw", -1);
}
device_initcall(test_pmu_register);

/* ---- The suite ---- */

static int hw_breakpoint_test_init(struct kunit *test)
{
	struct fixture *f;

	if (hw_breakpoint_is_used() || !nr_slots())
		return -EBUSY;

	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	f->cpu_off = -1;
	f->empty = digest_books();
	test->priv = f;

	return 0;
}

static void hw_breakpoint_test_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	if (!f)
		return;

	if (f->cpu_off >= 0)
		KUNIT_EXPECT_EQ(test, add_cpu(f->cpu_off), 0);
	drop_all(test);
	for (i = 0; i < MAX_SETS; i++) {
		if (f->set[i])
			unregister_wide_hw_breakpoint(f->set[i]);
	}
	for (i = 0; i < MAX_WORKERS; i++) {
		if (f->worker[i])
			kthread_destroy_worker(f->worker[i]);
	}

	KUNIT_EXPECT_FALSE(test, hw_breakpoint_is_used());
	KUNIT_EXPECT_EQ(test, digest_books(), f->empty);
}

static struct kunit_case hw_breakpoint_test_cases[] = {
	KUNIT_CASE(each_write_calls_the_handler_once),
	KUNIT_CASE(a_handler_is_told_what_was_hit_and_where),
	KUNIT_CASE(only_an_access_watch_sees_reads),
	KUNIT_CASE(every_register_watches_at_the_same_time),
	KUNIT_CASE(a_task_watch_follows_its_task_and_no_other),
	KUNIT_CASE(a_hit_is_reported_to_its_task_only),
	KUNIT_CASE(a_period_calls_the_handler_at_every_nth_hit),
	KUNIT_CASE(a_breakpoint_without_a_period_only_counts),
	KUNIT_CASE(an_unregistered_breakpoint_is_silent),
	KUNIT_CASE(a_disabled_breakpoint_is_silent_and_keeps_its_register),
	KUNIT_CASE(unregistering_nothing_is_harmless),
	KUNIT_CASE(a_malformed_breakpoint_is_refused),
	KUNIT_CASE(malformed_is_said_before_full),
	KUNIT_CASE(a_task_has_as_many_breakpoints_as_there_are_registers),
	KUNIT_CASE(a_task_on_one_cpu_takes_no_register_of_another),
	KUNIT_CASE(a_dead_task_cannot_be_watched),
	KUNIT_CASE(a_cpu_that_does_not_exist_cannot_be_watched),
	KUNIT_CASE(a_cpu_watch_fires_on_its_cpu_whoever_runs_there),
	KUNIT_CASE(a_task_watch_on_one_cpu_fires_there_only),
	KUNIT_CASE(each_cpu_has_registers_of_its_own),
	KUNIT_CASE(a_full_cpu_leaves_a_task_no_register_anywhere),
	KUNIT_CASE(a_modified_breakpoint_watches_the_new_address_only),
	KUNIT_CASE(a_modified_breakpoint_watches_the_new_length_and_kind),
	KUNIT_CASE(a_modify_can_disable_and_enable),
	KUNIT_CASE(a_modify_can_disable_with_interrupts_off),
	KUNIT_CASE(a_breakpoint_of_another_task_can_be_modified),
	KUNIT_CASE(a_refused_modify_leaves_the_breakpoint_as_it_was),
	KUNIT_CASE(a_modify_fits_where_all_registers_are_taken),
	KUNIT_CASE(a_wide_breakpoint_fires_on_every_online_cpu),
	KUNIT_CASE(a_wide_breakpoint_can_be_repointed_on_one_cpu),
	KUNIT_CASE(a_repointed_breakpoint_has_its_new_length_and_kind),
	KUNIT_CASE(a_disabled_wide_breakpoint_can_be_repointed),
	KUNIT_CASE(what_cannot_be_repointed_stays),
	KUNIT_CASE(a_handler_can_repoint_its_breakpoint),
	KUNIT_CASE(a_handler_is_not_hit_by_what_it_has_repointed),
	KUNIT_CASE(a_change_in_the_middle_of_another_leaves_both_whole),
	KUNIT_CASE(a_change_in_the_middle_of_reading_is_read_whole),
	KUNIT_CASE(repointing_in_every_context_leaves_one_version),
	KUNIT_CASE(a_hit_has_the_address_that_was_hit),
	KUNIT_CASE(a_wide_breakpoint_takes_a_register_of_every_possible_cpu),
	KUNIT_CASE(there_are_as_many_wide_breakpoints_as_registers),
	KUNIT_CASE(a_wide_breakpoint_is_refused_as_a_whole),
	KUNIT_CASE(a_malformed_wide_breakpoint_is_refused_before_a_full_cpu),
	KUNIT_CASE(a_wide_breakpoint_that_perf_refuses_takes_nothing),
	KUNIT_CASE(a_disabled_wide_breakpoint_is_silent_until_it_is_enabled),
	KUNIT_CASE(a_wide_breakpoint_leaves_tasks_the_other_registers),
	KUNIT_CASE_SLOW(no_handler_runs_when_unregister_has_returned),
	KUNIT_CASE_SLOW(a_cpu_that_comes_back_watches_again),
	KUNIT_CASE_SLOW(a_cpu_that_comes_online_later_has_its_register_waiting),
	KUNIT_CASE_SLOW(a_wide_breakpoint_can_go_while_a_cpu_is_off),
	KUNIT_CASE_SLOW(a_cpu_watch_keeps_its_claim_while_the_cpu_is_off),
	KUNIT_CASE(a_breakpoint_that_moves_takes_its_register_along),
	KUNIT_CASE(a_moved_breakpoint_is_off_until_it_has_a_register),
	KUNIT_CASE(a_modify_gives_a_moved_breakpoint_its_register),
	KUNIT_CASE(a_debugger_takes_a_register_and_gives_it_back),
	KUNIT_CASE(a_debugger_takes_a_register_of_every_cpu_or_none),
	KUNIT_CASE(a_debugger_does_not_wait_for_the_books),
	KUNIT_CASE(a_task_that_exits_gives_its_registers_back),
	KUNIT_CASE(a_modify_after_the_end_of_the_task_takes_nothing),
	KUNIT_CASE(what_cannot_be_flexible_is_refused),
	KUNIT_CASE(any_number_of_flexible_ones_needs_one_register),
	KUNIT_CASE(a_modify_cannot_make_a_breakpoint_flexible),
	KUNIT_CASE(a_guaranteed_one_takes_a_register_at_once),
	KUNIT_CASE(a_debugger_takes_a_register_from_flexible_ones),
	KUNIT_CASE_SLOW(flexible_ones_take_turns),
	KUNIT_CASE_SLOW(task_and_cpu_take_turns_on_the_last_register),
	KUNIT_CASE_SLOW(every_request_is_granted_exactly_if_it_fits),
	{ }
};

static struct kunit_suite hw_breakpoint_test_suite = {
	.name		= "hw_breakpoint",
	.test_cases	= hw_breakpoint_test_cases,
	.init		= hw_breakpoint_test_init,
	.exit		= hw_breakpoint_test_exit,
};

kunit_test_suite(hw_breakpoint_test_suite);
