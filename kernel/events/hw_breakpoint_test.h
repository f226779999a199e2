/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the KUnit tests of hardware breakpoints that the kernel sets for itself.
 *
 * Every case ends with no register accounted, which bp_test_exit() checks.
 */
#ifndef _KERNEL_EVENTS_HW_BREAKPOINT_TEST_H
#define _KERNEL_EVENTS_HW_BREAKPOINT_TEST_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "bp_internal.h"

#define BP_TEST_BPS		128
#define BP_TEST_SETS		(BP_SLOTS_MAX + 1)
#define BP_TEST_WORKERS		2

/* struct bp_test_hits - number of hits since the last look, and the last hit */
struct bp_test_hits {
	atomic_t		nr;
	struct perf_event	*bp;
	unsigned long		addr;
	unsigned long		ip;
	struct task_struct	*task;
	int			cpu;
};

/**
 * struct bp_test - what a case has to clean up
 * @bp: breakpoints of tasks and of CPUs
 * @set: kernel-wide breakpoints
 * @worker: other tasks that access memory
 * @cpu_off: the CPU that was taken offline; -1 if none is
 * @empty: digest of the accounting before the case
 */
struct bp_test {
	struct perf_event		*bp[BP_TEST_BPS];
	struct perf_event * __percpu	*set[BP_TEST_SETS];
	struct kthread_worker		*worker[BP_TEST_WORKERS];
	int				cpu_off;
	u32				empty;
};

/* The memory that is watched */
extern unsigned long bp_test_words[BP_TEST_BPS];

void bp_test_write_word(unsigned long *word);
unsigned long bp_test_read_word(unsigned long *word);
/* Writes @word on @cpu, in a kernel worker. */
void bp_test_write_on(struct kunit *test, int cpu, unsigned long *word);
void bp_test_write_by(struct kthread_worker *worker, unsigned long *word);
void bp_test_run_on(struct kunit *test, int cpu);
void bp_test_run_anywhere(void);
void bp_test_record_hit(struct perf_event *bp, struct perf_sample_data *data,
			struct pt_regs *regs);
/* Returns the number of hits since the last call. */
int bp_test_take_hits(struct bp_test_hits *hits);
/* A write to @word is hit @nr times, at this address. */
void bp_test_expect_hits(struct kunit *test, unsigned long *word, struct bp_test_hits *hits,
			 int nr);
u64 bp_test_count_of(struct perf_event *bp);
bool bp_test_inside(unsigned long ip, void *function);
/*
 * Skips the case unless this is x86: on other architectures a data breakpoint may trap
 * before the access, and its handler has to step over it.
 */
void bp_test_require_hits(struct kunit *test);
int bp_test_first_cpu(void);
int bp_test_last_cpu(void);
void bp_test_require_two_cpus(struct kunit *test);
void bp_test_require_hotplug(struct kunit *test);
void bp_test_take_cpu_off(struct kunit *test, int cpu);
void bp_test_bring_cpu_back(struct kunit *test);
unsigned int bp_test_nr_slots(void);
struct perf_event_attr bp_test_watch(unsigned long *word, u32 type);
struct perf_event_attr bp_test_malformed(unsigned long *word);
/* Returns a hash of the whole accounting. */
u32 bp_test_digest_accounting(void);
/* Unregisters the breakpoint at the end of the case. */
struct perf_event *bp_test_keep(struct kunit *test, struct perf_event *bp);
void bp_test_drop(struct kunit *test, struct perf_event *bp);
void bp_test_drop_all(struct kunit *test);
struct perf_event *bp_test_try_task(struct task_struct *task, unsigned long *word,
				    struct bp_test_hits *hits);
/* @cpu: -1 for all; @task: NULL for all */
struct perf_event *bp_test_try_cpu(int cpu, struct task_struct *task, unsigned long *word,
				   struct bp_test_hits *hits);
struct perf_event *bp_test_watch_task(struct kunit *test, struct task_struct *task,
				      unsigned long *word, struct bp_test_hits *hits);
struct perf_event *bp_test_watch_cpu(struct kunit *test, int cpu, unsigned long *word,
				     struct bp_test_hits *hits);
/* Adds breakpoints until only @free registers are available. */
void bp_test_fill_task(struct kunit *test, struct task_struct *task, unsigned int free,
		       struct bp_test_hits *hits);
void bp_test_fill_cpu(struct kunit *test, int cpu, unsigned int free, struct bp_test_hits *hits);
struct perf_event * __percpu *bp_test_try_wide(struct perf_event_attr attr,
					       struct bp_test_hits *hits);
struct perf_event * __percpu *bp_test_keep_set(struct kunit *test,
					       struct perf_event * __percpu *set);
void bp_test_drop_set(struct kunit *test, struct perf_event * __percpu *set);
struct perf_event * __percpu *bp_test_watch_all(struct kunit *test, unsigned long *word,
						struct bp_test_hits *hits);
struct perf_event *bp_test_event_on(struct perf_event * __percpu *set, int cpu);
void bp_test_expect_wide_refused(struct kunit *test, int errno, struct perf_event_attr attr,
				 struct bp_test_hits *hits);
/* Expects one hit for one write on each online CPU. */
void bp_test_expect_watched_everywhere(struct kunit *test, unsigned long *word,
				       struct bp_test_hits *hits);
void bp_test_expect_watched_nowhere(struct kunit *test, unsigned long *word,
				    struct bp_test_hits *hits);
struct kthread_worker *bp_test_start_worker(struct kunit *test);
/* Returns the task with a reference, so that it can be used after its exit. */
struct task_struct *bp_test_start_sleeper(struct kunit *test);
bool bp_test_comes_true(bool (*condition)(void));
bool bp_test_nothing_in_use(void);

/* Expects that @request is refused and does not change the accounting. */
#define BP_TEST_EXPECT_REFUSED(test, errno, request)				\
do {										\
	struct kunit *__test = (test);						\
	u32 __before = bp_test_digest_accounting();				\
	struct perf_event *__bp = (request);					\
										\
	KUNIT_EXPECT_EQ(__test, PTR_ERR(__bp), (long)(errno));			\
	KUNIT_EXPECT_EQ(__test, bp_test_digest_accounting(), __before);		\
	if (!IS_ERR_OR_NULL(__bp))						\
		unregister_hw_breakpoint(__bp);					\
} while (0)

int bp_test_init(struct kunit *test);
void bp_test_exit(struct kunit *test);

#endif /* _KERNEL_EVENTS_HW_BREAKPOINT_TEST_H */
