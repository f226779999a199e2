// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of repointing a kernel-wide breakpoint on one CPU: the CPU always
 * watches one whole version, also when changes interrupt each other.
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
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W);

	return modify_wide_hw_breakpoint_local(bp_test_event_on(set, raw_smp_processor_id()),
					       &attr);
}

static void a_wide_breakpoint_can_be_repointed_on_one_cpu(struct kunit *test)
{
	struct hw_breakpoint_range range;
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
	preempt_disable();
	read_wide_hw_breakpoint_local(bp, &range);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, range.addr, (unsigned long)&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, range.len, sizeof(bp_test_words[1]));
	KUNIT_EXPECT_EQ(test, range.type, (u32)HW_BREAKPOINT_W);

	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	KUNIT_EXPECT_EQ(test, repoint(set, &bp_test_words[0]), 0);
	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 0);
	bp_test_run_anywhere();
}

static void repointed_breakpoint_has_the_new_length_and_type(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[2], HW_BREAKPOINT_RW);
	struct hw_breakpoint_range range;
	struct perf_event * __percpu *set;
	struct perf_event *bp;
	u8 *bytes = (u8 *)&bp_test_words[2];
	struct bp_test_hits hits = { };

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);

	attr.bp_addr += 4;
	attr.bp_len = 2;
	bp = bp_test_event_on(set, raw_smp_processor_id());
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), 0);
	WRITE_ONCE(bytes[3], 1);
	WRITE_ONCE(bytes[6], 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
	WRITE_ONCE(bytes[5], 1);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	(void)READ_ONCE(bytes[4]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);

	/* Also where perf and readers look */
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, attr.bp_addr);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_len, attr.bp_len);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_type, attr.bp_type);
	read_wide_hw_breakpoint_local(bp, &range);
	KUNIT_EXPECT_EQ(test, range.len, attr.bp_len);
	KUNIT_EXPECT_EQ(test, range.type, attr.bp_type);
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
	struct perf_event_attr good = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W), attr;
	struct perf_event * __percpu *set;
	struct perf_event *bp, *other;
	struct bp_test_hits hits = { }, others = { };

	require_repoint(test);
	bp_test_require_two_cpus(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_watch_all(test, &bp_test_words[0], &hits);
	bp = bp_test_event_on(set, bp_test_first_cpu());

	attr = bp_test_malformed(&bp_test_words[1]);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	attr = good;
	attr.bp_addr++;
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	attr = good;
	attr.config = HW_BREAKPOINT_FLEXIBLE;
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	/* Nothing but the comparison of the configurations refuses this one. */
	attr.config = HW_BREAKPOINT_PROCESS;
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp, &attr), -EINVAL);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(bp_test_event_on(set,
									       bp_test_last_cpu()),
							      &good), -EINVAL);
	other = bp_test_watch_task(test, current, &bp_test_words[5], &others);
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(other, &good), -EINVAL);

	bp_test_expect_hits(test, &bp_test_words[0], &hits, 1);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 0);
	bp_test_expect_hits(test, &bp_test_words[5], &others, 1);
	KUNIT_EXPECT_EQ(test, bp->attr.bp_addr, (u64)(unsigned long)&bp_test_words[0]);
	bp_test_write_on(test, bp_test_last_cpu(), &bp_test_words[0]);
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	bp_test_run_anywhere();
}

struct chase {
	struct bp_test_hits	hits;
	int		err;
};

/* Each hit repoints the breakpoint to the next word. */
static void chase(struct perf_event *bp, struct perf_sample_data *data,
		  struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;
	struct perf_event_attr attr = bp_test_watch((unsigned long *)data->addr + 1,
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
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, chase, &c));
	for (i = 0; i < BP_TEST_BPS - 1; i++) {
		bp_test_write_word(&bp_test_words[i]);
		bp_test_write_word(&bp_test_words[i]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	bp_test_run_anywhere();
}

/*
 * Each hit repoints the breakpoint to a range of another length and accesses
 * that range in the handler: a #DB within the #DB would overwrite the frame of
 * the first one.
 */
static void touch_in_handler(struct perf_event *bp, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct chase *c = bp->overflow_handler_context;
	struct perf_event_attr attr = bp_test_watch((unsigned long *)data->addr + 1,
						    HW_BREAKPOINT_W);

	atomic_inc(&c->hits.nr);
	if (bp->attr.bp_len == 8)
		attr.bp_len = 4;
	if (modify_wide_hw_breakpoint_local(bp, &attr))
		c->err = 1;
	bp_test_write_word((unsigned long *)data->addr + 1);
}

static void access_of_a_handler_to_its_new_range_is_no_hit(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct chase c = { };
	int i;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, touch_in_handler, &c));
	for (i = 0; i < 20; i++) {
		bp_test_write_word(&bp_test_words[i]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&c.hits), 1);
	}
	KUNIT_EXPECT_EQ(test, c.err, 0);
	bp_test_run_anywhere();
}

/**
 * struct middle - changes in the middle of writing or reading a version
 * @hits: accesses to the memory of the version
 * @bp: the breakpoint that is changed
 * @task: task that writes or reads; accesses by others (kmemleak) are ignored
 * @skip: number of accesses before the changes
 * @changes: number of changes, each to another word
 * @err: a change failed, or did not read back what it had written
 */
struct middle {
	struct bp_test_hits		hits;
	struct perf_event	*bp;
	struct task_struct	*task;
	int			skip;
	int			changes;
	int			err;
};

#define VERSION_WORDS	(sizeof(struct bp_version) / sizeof(unsigned long))

static struct perf_event_attr half_word(unsigned long *word)
{
	struct perf_event_attr attr = bp_test_watch(word, HW_BREAKPOINT_W | HW_BREAKPOINT_R);

	attr.bp_len = HW_BREAKPOINT_LEN_4;
	return attr;
}

static bool watches(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct hw_breakpoint_range range;
	struct bp_version v;

	read_wide_hw_breakpoint_local(bp, &range);
	bp_read_version(bp->hw.bp_versions, &v);
	return range.addr == attr->bp_addr && range.len == attr->bp_len &&
	       range.type == attr->bp_type && v.hw.address == attr->bp_addr;
}

static void come_in_the_middle(struct perf_event *bp, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct middle *m = bp->overflow_handler_context;
	int i;

	if (current != m->task || atomic_inc_return(&m->hits.nr) != m->skip + 1)
		return;
	for (i = 0; i < m->changes; i++) {
		struct perf_event_attr attr = half_word(&bp_test_words[4 + i]);

		if (modify_wide_hw_breakpoint_local(m->bp, &attr) ||
		    !watches(m->bp, &attr))
			m->err = 1;
	}
}

/* Registers the set to be changed. Returns the versions of its member. */
static struct bp_versions *begin_in_the_middle(struct kunit *test, struct middle *m,
					       struct bp_test_hits *hits)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;

	require_repoint(test);
	bp_test_run_on(test, bp_test_first_cpu());
	set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, bp_test_record_hit, hits));
	m->bp = bp_test_event_on(set, bp_test_first_cpu());
	m->task = current;
	return m->bp->hw.bp_versions;
}

/* Registers another set, which watches word @word of @version. */
static struct perf_event * __percpu *watch_version(struct kunit *test, struct middle *m,
						   struct bp_version *version,
						   unsigned int word, u32 type)
{
	struct perf_event_attr attr = bp_test_watch((unsigned long *)version + word, type);

	atomic_set(&m->hits.nr, 0);
	return bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, come_in_the_middle, m));
}

static void last_finished_of_nested_local_repoints_wins(struct kunit *test)
{
	struct middle m = { .changes = 1 };
	struct perf_event * __percpu *set;
	unsigned int word, nr_hit = 0;
	struct perf_event_attr attr;
	struct bp_versions *v;
	struct bp_test_hits hits = { };

	v = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < VERSION_WORDS; word++) {
		attr = bp_test_watch(&bp_test_words[word % 2], HW_BREAKPOINT_W);
		set = watch_version(test, &m, &v->version[!bp_version_index(v->now)],
				    word, HW_BREAKPOINT_W);
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
		nr_hit += bp_test_take_hits(&m.hits) > 0;
		bp_test_drop_set(test, set);

		/* The change that ends last is in effect. */
		KUNIT_EXPECT_TRUE_MSG(test, watches(m.bp, &attr), "word %u", word);
		KUNIT_EXPECT_EQ(test, v->depth, 0U);
		bp_test_write_word(&bp_test_words[4]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 0);
		bp_test_write_word(&bp_test_words[word % 2]);
		KUNIT_EXPECT_EQ(test, bp_test_take_hits(&hits), 1);
	}
	KUNIT_EXPECT_GT(test, nr_hit, 2U);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	bp_test_run_anywhere();
}

/*
 * The first access to the depth is the read by the writer, which does not own an entry
 * then: the change that is made here uses the entry that the writer has chosen.  This
 * version stays whole until the writer has published its own.
 */
static void come_before_the_depth(struct perf_event *bp, struct perf_sample_data *data,
				  struct pt_regs *regs)
{
	struct perf_event_attr attr = half_word(&bp_test_words[4]);
	struct middle *m = bp->overflow_handler_context;
	int nr;

	if (current != m->task)
		return;
	nr = atomic_inc_return(&m->hits.nr);
	if (nr == 1 && modify_wide_hw_breakpoint_local(m->bp, &attr))
		m->err = 1;
	/* The writer has incremented the depth, has failed, has restored the depth. */
	if (nr <= 3 && !watches(m->bp, &attr))
		m->err = 2;
}

static void local_repoint_that_another_overtakes_leaves_its_version_whole(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[1], HW_BREAKPOINT_W);
	struct perf_event_attr depth;
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	struct middle m = { };
	struct bp_versions *v;

	v = begin_in_the_middle(test, &m, &hits);
	depth = bp_test_watch((unsigned long *)&v->depth, HW_BREAKPOINT_R | HW_BREAKPOINT_W);
	depth.bp_len = sizeof(v->depth);
	set = bp_test_keep_set(test, register_wide_hw_breakpoint(&depth, come_before_the_depth,
								 &m));
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
	bp_test_drop_set(test, set);

	/* Three accesses of the try that fails, three of the next one */
	KUNIT_EXPECT_EQ(test, bp_test_take_hits(&m.hits), 6);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	KUNIT_EXPECT_TRUE(test, watches(m.bp, &attr));
	bp_test_expect_hits(test, &bp_test_words[4], &hits, 0);
	bp_test_expect_hits(test, &bp_test_words[1], &hits, 1);
	bp_test_run_anywhere();
}

/*
 * Each word of a version is written once and read when the version is applied.  A change
 * at any of these accesses leaves the attributes and the registers as the last version
 * has them.
 */
static void attributes_are_those_of_the_last_of_nested_repoints(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct middle m = { .changes = 1 };
	struct perf_event * __percpu *set;
	struct bp_test_hits hits = { };
	unsigned int i, nr_hit = 0;
	struct bp_version now;
	struct bp_versions *v;

	v = begin_in_the_middle(test, &m, &hits);
	for (i = 0; i < 3 * VERSION_WORDS; i++) {
		m.skip = i / VERSION_WORDS;
		set = watch_version(test, &m, &v->version[!bp_version_index(v->now)],
				    i % VERSION_WORDS, HW_BREAKPOINT_R | HW_BREAKPOINT_W);
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
		nr_hit += bp_test_take_hits(&m.hits) > m.skip;
		bp_test_drop_set(test, set);

		bp_read_version(v, &now);
		KUNIT_EXPECT_EQ_MSG(test, m.bp->attr.bp_addr, now.range.addr, "access %u", i);
		KUNIT_EXPECT_EQ_MSG(test, m.bp->attr.bp_len, now.range.len, "access %u", i);
		KUNIT_EXPECT_EQ_MSG(test, m.bp->attr.bp_type, now.range.type, "access %u", i);
		bp_test_expect_hits(test, (unsigned long *)now.range.addr, &hits, 1);
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
	}
	KUNIT_EXPECT_GT(test, nr_hit, (unsigned int)VERSION_WORDS);
	KUNIT_EXPECT_EQ(test, m.err, 0);
	bp_test_run_anywhere();
}

/* Two changes: the second one overwrites the entry that is being read. */
static void read_that_a_repoint_interrupts_is_consistent(struct kunit *test)
{
	struct perf_event_attr attr = bp_test_watch(&bp_test_words[0], HW_BREAKPOINT_W);
	struct perf_event_attr last = half_word(&bp_test_words[5]);
	struct middle m = { .changes = 2 };
	struct perf_event * __percpu *set;
	struct hw_breakpoint_range range;
	unsigned int word, nr_hit = 0;
	struct bp_versions *v;
	struct bp_test_hits hits = { };

	v = begin_in_the_middle(test, &m, &hits);
	for (word = 0; word < VERSION_WORDS; word++) {
		KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(m.bp, &attr), 0);
		set = watch_version(test, &m, &v->version[bp_version_index(v->now)], word,
				    HW_BREAKPOINT_R | HW_BREAKPOINT_W);
		read_wide_hw_breakpoint_local(m.bp, &range);
		bp_test_drop_set(test, set);

		if (!bp_test_take_hits(&m.hits)) {
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
	struct perf_event	*bp[2];
	int			err;
};

/* The first hit repoints the other breakpoint, which was hit as well. */
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
	bp_test_run_on(test, bp_test_first_cpu());
	for (i = 0; i < 2; i++) {
		set = bp_test_keep_set(test, register_wide_hw_breakpoint(&attr, move_the_other,
									 &p));
		p.bp[i] = bp_test_event_on(set, bp_test_first_cpu());
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
	KUNIT_CASE(repointed_breakpoint_has_the_new_length_and_type),
	KUNIT_CASE(a_disabled_wide_breakpoint_can_be_repointed),
	KUNIT_CASE(repoint_of_a_disabled_breakpoint_leaves_its_former_register_alone),
	KUNIT_CASE(refused_local_repoint_changes_nothing),
	KUNIT_CASE(a_handler_can_repoint_its_breakpoint),
	KUNIT_CASE(access_of_a_handler_to_its_new_range_is_no_hit),
	KUNIT_CASE(last_finished_of_nested_local_repoints_wins),
	KUNIT_CASE(local_repoint_that_another_overtakes_leaves_its_version_whole),
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
