// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of repointing a kernel-wide breakpoint on one CPU: the CPU always
 * watches the address of the last change, also when changes interrupt each other.
 */

#include "hw_breakpoint_test.h"

/* ---- Kernel-wide breakpoints that are repointed ---- */

static void require_repoint(struct kunit *test)
{
	bp_test_require_hits(test);
	if (!bp_can_repoint())
		kunit_skip(test, "this architecture cannot repoint breakpoints");
}

/* Repoints this CPU's member of @set. The caller is bound to the CPU. */
static int repoint(struct perf_event * __percpu *set, unsigned long *word)
{
	return modify_wide_hw_breakpoint_local(set, (unsigned long)word, NULL);
}

static void a_wide_breakpoint_can_be_repointed_on_one_cpu(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	require_repoint(test);
	bp_test_require_two_cpus(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp = bp_test_event_on(set, bp_test_first_cpu());

	KUNIT_EXPECT_EQ(test, repoint(set, &bp_test_words[1]), 0);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 0);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 1);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, wide_hw_breakpoint_addr(set, true),
			(unsigned long)&bp_test_words[1]);

	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	KUNIT_EXPECT_EQ(test, repoint(set, &bp_test_words[0]), 0);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 0);
	bp_test_run_anywhere();
}

static void repointed_breakpoint_keeps_its_length_and_type(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_RW);
	struct perf_event * __percpu *set;
	struct perf_event *bp;
	u8 *bytes = (u8 *)&bp_test_words[2];
	struct bp_test_hits hits = { };

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	attr.bp_len = 2;
	set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, bp_test_record_hit, &hits));
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(set, (unsigned long)&bytes[4], NULL),
			0);
	WRITE_ONCE(bytes[3], 1);
	WRITE_ONCE(bytes[6], 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	WRITE_ONCE(bytes[5], 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	(void)READ_ONCE(bytes[4]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	/* Also where perf and readers look */
	bp = bp_test_event_on(set, raw_smp_processor_id());
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&bytes[4]);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_len, attr.bp_len);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_type, attr.bp_type);
	bp_test_run_anywhere();
}

static void a_disabled_wide_breakpoint_can_be_repointed(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	int i;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	attr.disabled = 1;
	set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, bp_test_record_hit, &hits));
	for (i = 1; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, repoint(set, &bp_test_words[i]), 0);
		bp_test_expect_hits(test, &bp_test_words[i], &hits, 0);
		perf_event_enable(bp_test_event_on(set, raw_smp_processor_id()));
		bp_test_expect_hits(test, &bp_test_words[i - 1], &hits, 0);
		bp_test_expect_hits(test, &bp_test_words[i], &hits, 1);
		perf_event_disable(bp_test_event_on(set, raw_smp_processor_id()));
	}
	bp_test_run_anywhere();
}

/* Returns the register of this CPU that is armed for @bp; -1 if none is. */
static int register_of(const struct perf_event *bp)
{
	struct bp_reg_state state;
	int slot, found = -1;

	local_irq_disable();
	for (slot = 0; slot < bp_test_nr_slots(); slot++) {
		arch_hw_breakpoint_reg(slot, &state);
		if (state.armed && state.event == bp)
			found = slot;
	}
	local_irq_enable();

	return found;
}

/* A disabled breakpoint remembers its register, which is armed for another one by now. */
static void repoint_of_a_disabled_breakpoint_leaves_its_former_register_alone(struct kunit *test)
{
	struct bp_test_hits hits = { }, others = { };
	struct perf_event * __percpu *set;
	struct perf_event *bp, *other;
	int slot;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp = bp_test_event_on(set, bp_test_first_cpu());
	slot = register_of(bp);
	KUNIT_ASSERT_GE(test, slot, 0);
	perf_event_disable(bp);
	other = bp_test_event_on(bp_test_watch_all(test, &bp_test_words[1], &others),
				 bp_test_first_cpu());
	KUNIT_EXPECT_EQ(test, register_of(other), slot);

	KUNIT_EXPECT_EQ(test, repoint(set, &bp_test_words[2]), 0);
	bp_test_expect_hits(test, &bp_test_words[2], &others, 0);
	bp_test_expect_hits(test, &bp_test_words[1], &others, 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);

	perf_event_enable(bp);
	bp_test_expect_hits(test, &bp_test_words[2], &hits, 1);
	bp_test_expect_hits(test, &bp_test_words[1], &others, 1);
	bp_test_run_anywhere();
}

static void refused_local_repoint_changes_nothing(struct kunit *test)
{
	unsigned long addr = (unsigned long)&bp_test_words[1];
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct perf_event *bp;

	require_repoint(test);
	bp_test_require_two_cpus(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp = bp_test_event_on(set, bp_test_first_cpu());

	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(set, addr + 1, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(set, addr, &addr), -EAGAIN);

	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 0);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&bp_test_words[0]);
	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	bp_test_run_anywhere();
}

struct chase {
	struct bp_test_hits		hits;
	struct perf_event * __percpu	*set;
	int				err;
};

static unsigned long *word_after(u64 addr)
{
	return (unsigned long *)(unsigned long)addr + 1;
}

/* Each hit repoints the breakpoint to the next word. */
static void chase(struct perf_event *bp, struct perf_sample_data *data,
		  struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;

	if (wide_hw_breakpoint_addr(c->set, true) != data->addr)
		c->err = 1;
	atomic_inc(&c->hits.nr);
	if (repoint(c->set, word_after(data->addr)))
		c->err = 2;
}

static void a_handler_can_repoint_its_breakpoint(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	c.set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, chase, &c));
	for (i = 0; i < BP_TEST_BPS - 1; i++) {
		bp_test_write_word(&bp_test_words[i]);
		bp_test_write_word(&bp_test_words[i]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	bp_test_run_anywhere();
}

/*
 * Each hit repoints the breakpoint to the next word and accesses that in the handler: a
 * #DB within the #DB would overwrite the frame of the first one.
 */
static void touch_in_handler(struct perf_event *bp, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;

	atomic_inc(&c->hits.nr);
	if (repoint(c->set, word_after(data->addr)))
		c->err = 1;
	bp_test_write_word(word_after(data->addr));
}

static void access_of_a_handler_to_its_new_address_is_no_hit(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	c.set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, touch_in_handler, &c));
	for (i = 0; i < 20; i++) {
		bp_test_write_word(&bp_test_words[i]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	bp_test_run_anywhere();
}

/**
 * struct middle - changes in the middle of writing or reading what a CPU watches
 * @hits: accesses to the memory that is written or read
 * @set: the breakpoint that is changed
 * @task: task that writes or reads; accesses by others (kmemleak) are ignored
 * @skip: number of accesses before the changes
 * @changes: number of changes, each to another word
 * @err: a change failed, or did not read back what it had written
 */
struct middle {
	struct bp_test_hits		hits;
	struct perf_event * __percpu	*set;
	struct task_struct		*task;
	int				skip;
	int				changes;
	int				err;
};

#define PAIR_WORDS	(sizeof(struct bp_wide_pair) / sizeof(unsigned long))

static bool watches(struct perf_event * __percpu *set, const unsigned long *word)
{
	return wide_hw_breakpoint_addr(set, true) == (unsigned long)word;
}

static void come_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;
	int i;

	if (current != m->task || atomic_inc_return(&m->hits.nr) != m->skip + 1)
		return;
	for (i = 0; i < m->changes; i++) {
		if (repoint(m->set, &bp_test_words[4 + i]) ||
		    !watches(m->set, &bp_test_words[4 + i]))
			m->err = 1;
	}
}

/* Registers the set to be changed. Returns the state of the CPU. */
static struct bp_wide_cpu *begin_in_the_middle(struct kunit *test, struct middle *m,
					       struct bp_test_hits *hits)
{
	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	m->set = bp_test_watch_all(test, &bp_test_words[0], hits);
	m->task = current;
	return per_cpu_ptr(bp_wide_cpus(m->set), bp_test_first_cpu());
}

/* Registers another set, which watches @word of this CPU's state. */
static struct perf_event * __percpu *watch_state(struct kunit *test, struct middle *m,
						 unsigned long *word, u32 type)
{
	struct perf_event_attr attr = bp_test_watch(word, type);

	atomic_set(&m->hits.nr, 0);
	return bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, come_in_the_middle, m));
}

static struct bp_wide_pair *next_pair(struct bp_wide_cpu *wcpu)
{
	return &wcpu->pair[wcpu->now % (2 * BP_WIDE_DEPTH) ? 0 : 1];
}

static struct bp_wide_pair *current_pair(struct bp_wide_cpu *wcpu)
{
	return &wcpu->pair[wcpu->now % (2 * BP_WIDE_DEPTH)];
}

static void last_finished_of_nested_local_repoints_wins(struct kunit *test)
{
	struct middle m = { .changes = 1 };
	struct perf_event * __percpu *set;
	unsigned int word, nr_hit = 0;
	struct bp_test_hits hits = { };
	struct bp_wide_cpu *wcpu;

	wcpu = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < PAIR_WORDS; word++) {
		set = watch_state(test, &m, (unsigned long *)next_pair(wcpu) + word,
				  HW_BREAKPOINT_W);
		KUNIT_EXPECT_EQ(test, repoint(m.set, &bp_test_words[word % 2]), 0);
		nr_hit += bp_test_take_hits(&m.hits) > 0;
		bp_test_drop_set(test, set);

		/* The change that ends last is in effect. */
		KUNIT_EXPECT_TRUE_MSG(test, watches(m.set, &bp_test_words[word % 2]), "word %u",
				      word);
		KUNIT_EXPECT_EQ(test, wcpu->depth, 0U);
		bp_test_expect_hits(test, &bp_test_words[4], &hits, 0);
		bp_test_expect_hits(test, &bp_test_words[word % 2], &hits, 1);
	}
	KUNIT_EXPECT_EQ(test, nr_hit, (unsigned int)PAIR_WORDS);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	bp_test_run_anywhere();
}

/*
 * The first access to the depth is the read by the writer, which does not own a pair
 * then: the change that is made here uses the pair that the writer has chosen.  This
 * pair stays whole until the writer has published its own.
 */
static void come_before_the_depth(struct perf_event *bp, struct perf_sample_data *data,
				  struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;
	int nr;

	if (current != m->task)
		return;
	nr = atomic_inc_return(&m->hits.nr);
	if (nr == 1 && repoint(m->set, &bp_test_words[4]))
		m->err = 1;
	/* The writer has incremented the depth, has failed, has restored the depth. */
	if (nr <= 3 && !watches(m->set, &bp_test_words[4]))
		m->err = 2;
}

static void local_repoint_that_another_overtakes_leaves_its_pair_whole(struct kunit *test)
{
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct perf_event_attr depth;
	struct middle m = { };
	struct bp_wide_cpu *wcpu;

	wcpu = begin_in_the_middle(test, &m, &hits);
	depth = bp_test_watch((unsigned long *)&wcpu->depth, HW_BREAKPOINT_R | HW_BREAKPOINT_W);
	depth.bp_len = sizeof(wcpu->depth);
	set = bp_test_keep_set(test, register_wide_hw_breakpoint(&depth, come_before_the_depth,
								 &m));
	KUNIT_EXPECT_EQ(test, repoint(m.set, &bp_test_words[1]), 0);
	bp_test_drop_set(test, set);

	/* Three accesses of the try that fails, three of the next one */
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&m.hits), 6);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	KUNIT_EXPECT_TRUE(test, watches(m.set, &bp_test_words[1]));
	bp_test_expect_hits(test, &bp_test_words[4], &hits, 0);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 1);
	bp_test_run_anywhere();
}

/*
 * A change at any access to the next pair, to the address of the event, or to what the CPU
 * has settled leaves the attributes and the registers as the last change has them.
 */
static void attributes_are_those_of_the_last_of_nested_repoints(struct kunit *test)
{
	struct middle m = { .changes = 1 };
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	unsigned int i, nr_hit = 0;
	struct bp_wide_cpu *wcpu;

	wcpu = begin_in_the_middle(test, &m, &hits);
	for (i = 0; i < 3 * (PAIR_WORDS + 2); i++) {
		unsigned int which = i % (PAIR_WORDS + 2);
		unsigned long *word;

		if (which < PAIR_WORDS)
			word = (unsigned long *)next_pair(wcpu) + which;
		else if (which == PAIR_WORDS)
			word = (unsigned long *)&wcpu->event->attr.bp_addr;
		else
			word = (unsigned long *)&wcpu->settled;
		m.skip = i / (PAIR_WORDS + 2);
		set = watch_state(test, &m, word, HW_BREAKPOINT_R | HW_BREAKPOINT_W);
		KUNIT_EXPECT_EQ(test, repoint(m.set, &bp_test_words[0]), 0);
		nr_hit += bp_test_take_hits(&m.hits) > m.skip;
		bp_test_drop_set(test, set);

		KUNIT_EXPECT_EQ_MSG(test, wcpu->event->attr.bp_addr,
				    (u64)wide_hw_breakpoint_addr(m.set, true), "access %u", i);
		bp_test_expect_hits(test, (unsigned long *)wide_hw_breakpoint_addr(m.set, true),
				    &hits, 1);
		KUNIT_EXPECT_EQ(test, repoint(m.set, &bp_test_words[0]), 0);
	}
	KUNIT_EXPECT_GT(test, nr_hit, (unsigned int)PAIR_WORDS);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	bp_test_run_anywhere();
}

/* Two changes: the second one overwrites the pair that is being read. */
static void read_that_a_repoint_interrupts_is_consistent(struct kunit *test)
{
	struct middle m = { .changes = 2 };
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	unsigned int word, nr_hit = 0;
	struct bp_wide_cpu *wcpu;
	unsigned long addr;

	wcpu = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < PAIR_WORDS; word++) {
		KUNIT_EXPECT_EQ(test, repoint(m.set, &bp_test_words[0]), 0);
		set = watch_state(test, &m, (unsigned long *)current_pair(wcpu) + word,
				  HW_BREAKPOINT_R | HW_BREAKPOINT_W);
		addr = wide_hw_breakpoint_addr(m.set, true);
		nr_hit += bp_test_take_hits(&m.hits) > 0;
		bp_test_drop_set(test, set);
		KUNIT_EXPECT_EQ_MSG(test, addr, (unsigned long)&bp_test_words[5], "word %u", word);
	}
	KUNIT_EXPECT_EQ(test, nr_hit, (unsigned int)PAIR_WORDS);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	bp_test_run_anywhere();
}

/* Different code, so that the compiler does not merge the functions. */
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
	return bp_test_watch((unsigned long *)function, HW_BREAKPOINT_X);
}

/* struct pair - two breakpoints on one instruction */
struct pair {
	struct bp_test_hits		hits;
	struct perf_event		*bp[2];
	struct perf_event * __percpu	*set[2];
	int				err;
};

/* The first hit repoints the other breakpoint, which was hit as well. */
static void move_the_other(struct perf_event *bp, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
	struct pair *p = bp->overflow_handler_context;

	if (data->addr != (unsigned long)call_here)
		p->err = 1;
	if (atomic_inc_return(&p->hits.nr) == 1 &&
	    modify_wide_hw_breakpoint_local(p->set[bp == p->bp[0]], (unsigned long)call_there,
					    NULL))
		p->err = 2;
}

static void a_hit_has_the_address_that_was_hit(struct kunit *test)
{
	struct perf_event_attr attr = calls_of(call_here);
	struct pair p = { };
	int i;

	require_repoint(test);
	if (!IS_ENABLED(CONFIG_KPROBES))
		kunit_skip(test, "instructions of the kernel cannot be watched without kprobes");
	bp_test_run_on(test, bp_test_first_cpu());
	for (i = 0; i < 2; i++) {
		p.set[i] = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr,
									      move_the_other, &p));
		p.bp[i] = bp_test_event_on(p.set[i], bp_test_first_cpu());
	}
	call_here();
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 0);

	/* One breakpoint watches call_here(), the other one call_there(). */
	atomic_set(&p.hits.nr, 1);
	call_here();
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 0);
	atomic_set(&p.hits.nr, 1);
	call_there();
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&p.hits), 2);
	KUNIT_EXPECT_EQ(test, p.err, 1);
	bp_test_run_anywhere();
}

/* ---- The suite ---- */

static struct kunit_case hw_breakpoint_repoint_test_cases[] = {
	KUNIT_CASE(a_wide_breakpoint_can_be_repointed_on_one_cpu),
	KUNIT_CASE(repointed_breakpoint_keeps_its_length_and_type),
	KUNIT_CASE(a_disabled_wide_breakpoint_can_be_repointed),
	KUNIT_CASE(repoint_of_a_disabled_breakpoint_leaves_its_former_register_alone),
	KUNIT_CASE(refused_local_repoint_changes_nothing),
	KUNIT_CASE(a_handler_can_repoint_its_breakpoint),
	KUNIT_CASE(access_of_a_handler_to_its_new_address_is_no_hit),
	KUNIT_CASE(last_finished_of_nested_local_repoints_wins),
	KUNIT_CASE(local_repoint_that_another_overtakes_leaves_its_pair_whole),
	KUNIT_CASE(attributes_are_those_of_the_last_of_nested_repoints),
	KUNIT_CASE(read_that_a_repoint_interrupts_is_consistent),
	KUNIT_CASE(a_hit_has_the_address_that_was_hit),
	{ }
};

static struct kunit_suite hw_breakpoint_repoint_test_suite = {
	.name		= "hw_breakpoint_repoint",
	.test_cases	= hw_breakpoint_repoint_test_cases,
	.init		= bp_test_init,
	.exit		= bp_test_exit,
};

kunit_test_suite(hw_breakpoint_repoint_test_suite);
