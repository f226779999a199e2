/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The race of the KUnit tests of repointing on all CPUs, for the test of an architecture
 * that adds contexts of its own.
 */
#ifndef _KERNEL_EVENTS_BP_WIDE_TEST_H
#define _KERNEL_EVENTS_BP_WIDE_TEST_H

#include <linux/types.h>

struct kunit;

/* Init and exit of a suite with cases that call bp_race() */
int bp_race_init(struct kunit *test);
void bp_race_exit(struct kunit *test);

/**
 * bp_race - repoint a set on all CPUs, in tasks and interrupts at the same time
 * @test: the case
 * @interrupt: lets another context call bp_race_step() on this CPU; may be NULL. Called
 *	by a task, not preemptible
 *
 * Expects that all CPUs watch the address of the last change, and that none went back.
 */
void bp_race(struct kunit *test, void (*interrupt)(void));

/**
 * bp_race_step - try to repoint the set of bp_race()
 *
 * Context: Any; not preemptible.
 * Return: false if no race is being run.
 */
bool bp_race_step(void);

#endif /* _KERNEL_EVENTS_BP_WIDE_TEST_H */
