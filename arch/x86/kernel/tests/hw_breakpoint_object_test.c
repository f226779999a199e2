// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of x86 breakpoints that need several registers: the pieces cover the range
 * exactly and are the fewest possible, a breakpoint gets all of its registers or none, and
 * its registers change together.
 */

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "hw_breakpoint_test.h"

/* The longest range that the cases try */
#define LENGTHS		(HBP_NUM * WORD + 8)
#define OFFSETS		64

/* ---- Oracle ---- */

/* Fewest aligned powers of two, none longer than @max, that cover exactly @len bytes */
static unsigned int fewest_pieces(unsigned int offset, unsigned int len, unsigned int max)
{
	unsigned int best[LENGTHS + 1] = { }, i, bytes;

	for (i = 1; i <= len; i++) {
		best[i] = UINT_MAX;
		for (bytes = 1; bytes <= max && bytes <= i; bytes *= 2) {
			if ((offset + i - bytes) % bytes == 0)
				best[i] = min(best[i], best[i - bytes] + 1);
		}
	}

	return best[len];
}

static unsigned int max_piece(void)
{
	return hw_breakpoint_addr_mask_max ? HBP_NUM * WORD : WORD;
}

static int verdict(unsigned int offset, unsigned int len)
{
	if (!len || len > HBP_NUM * WORD)
		return -EINVAL;
	return fewest_pieces(offset, len, max_piece()) <= HBP_NUM ? 0 : -EINVAL;
}

/* ---- Cases: pieces ---- */

/* Returns the number of pieces; 0 if they do not cover the range exactly. */
static unsigned int count_pieces(struct arch_hw_breakpoint piece, unsigned long addr,
				 unsigned int len, unsigned int rw)
{
	unsigned int covered = 0, n = 0, bytes;

	do {
		bytes = piece.mask ? piece.mask + 1 : dr7_ctl_bytes(piece.ctl);
		if (piece.address % bytes || dr7_ctl_rw(piece.ctl) != rw ||
		    piece.before != piece.address - addr ||
		    (piece.mask && piece.ctl != (DR_LEN_1 | rw)) ||
		    piece.address + bytes != addr + len - covered)
			return 0;
		covered += bytes;
		n++;
	} while (hw_breakpoint_previous_piece(&piece));

	return covered == len ? n : 0;
}

static void expect_pieces(struct kunit *test, unsigned long base, u32 type, unsigned int rw)
{
	struct arch_hw_breakpoint hw;
	unsigned int offset, len;
	int err;

	for (offset = 0; offset < OFFSETS; offset++) {
		for (len = 0; len <= LENGTHS; len++) {
			err = dr_test_verdict(base + offset, len, type);
			KUNIT_EXPECT_EQ_MSG(test, err, verdict(offset, len), "%u bytes at %lx",
					    len, base + offset);
			if (err)
				continue;
			KUNIT_EXPECT_EQ(test, dr_test_parse(base + offset, len, type, &hw), 0);
			KUNIT_EXPECT_EQ_MSG(test, count_pieces(hw, base + offset, len, rw),
					    fewest_pieces(offset, len, max_piece()),
					    "%u bytes at %lx", len, base + offset);
			KUNIT_EXPECT_EQ(test, hw_breakpoint_weight(&hw),
					fewest_pieces(offset, len, max_piece()));
		}
	}
}

static void pieces_are_the_fewest_that_cover_a_range_exactly(struct kunit *test)
{
	u32 max = hw_breakpoint_addr_mask_max;

	hw_breakpoint_addr_mask_max = 0;
	expect_pieces(test, 0x10000, HW_BREAKPOINT_W, DR_RW_WRITE);
	expect_pieces(test, ALIGN((unsigned long)dr_test_words, 64), HW_BREAKPOINT_RW, DR_RW_READ);
	hw_breakpoint_addr_mask_max = max;
}

static void masks_save_pieces(struct kunit *test)
{
	u32 max = hw_breakpoint_addr_mask_max;

	hw_breakpoint_addr_mask_max = GENMASK(11, 0);
	expect_pieces(test, 0x10000, HW_BREAKPOINT_W, DR_RW_WRITE);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x10000, 4096, HW_BREAKPOINT_W), 0);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x10008, 4096, HW_BREAKPOINT_W), -EINVAL);
	KUNIT_EXPECT_EQ(test, dr_test_verdict(0x10000, 8192, HW_BREAKPOINT_W), -EOPNOTSUPP);
	hw_breakpoint_addr_mask_max = max;
}

static void pieces_reach_the_end_of_the_address_space(struct kunit *test)
{
	struct arch_hw_breakpoint hw;
	unsigned long last = ~0UL;
	unsigned int len;

	for (len = 2; len <= 32; len++) {
		if (dr_test_parse(last - len + 1, len, HW_BREAKPOINT_W, &hw))
			continue;
		KUNIT_EXPECT_GT_MSG(test, count_pieces(hw, last - len + 1, len, DR_RW_WRITE), 0,
				    "%u bytes", len);
		KUNIT_EXPECT_EQ(test, dr_test_verdict(last - len + 2, len, HW_BREAKPOINT_W),
				-EINVAL);
	}
}

static bool moves_as_parsed(const struct arch_hw_breakpoint *hw, unsigned long addr,
			    unsigned int len)
{
	struct arch_hw_breakpoint moved = { }, parsed = { };
	int err = dr_test_parse(addr, len, HW_BREAKPOINT_W, &parsed);

	if (arch_hw_breakpoint_move(hw, addr, &moved) != err)
		return false;
	return err || (moved.address == parsed.address && moved.mask == parsed.mask &&
		       moved.ctl == parsed.ctl && moved.before == parsed.before &&
		       moved.weight == parsed.weight);
}

static void expect_moves(struct kunit *test)
{
	struct arch_hw_breakpoint hw;
	unsigned int offset, len, to;

	for (offset = 0; offset < OFFSETS / 2; offset++) {
		for (len = 1; len <= 32; len++) {
			if (dr_test_parse(0x10000 + offset, len, HW_BREAKPOINT_W, &hw))
				continue;
			for (to = 0; to < OFFSETS; to++) {
				KUNIT_EXPECT_TRUE_MSG(test,
						      moves_as_parsed(&hw, 0x30000 + to, len) &&
						      moves_as_parsed(&hw, (long)to - OFFSETS, len),
						      "%u bytes from %u to %u", len, offset, to);
			}
		}
	}
}

static void a_range_moves_as_if_it_were_parsed(struct kunit *test)
{
	u32 max = hw_breakpoint_addr_mask_max;

	hw_breakpoint_addr_mask_max = 0;
	expect_moves(test);
	hw_breakpoint_addr_mask_max = GENMASK(11, 0);
	expect_moves(test);
	hw_breakpoint_addr_mask_max = max;
}

static void one_kernel_byte_makes_a_range_a_kernel_range(struct kunit *test)
{
	unsigned long end = TASK_SIZE_MAX;
	struct arch_hw_breakpoint hw;
	unsigned int len, in;

	for (len = 2; len <= 32; len++) {
		for (in = 0; in <= len; in++) {
			if (dr_test_parse(end - len + in, len, HW_BREAKPOINT_W, &hw))
				continue;
			KUNIT_EXPECT_EQ_MSG(test, arch_check_bp_in_kernelspace(&hw), in > 0,
					    "%u of %u bytes", in, len);
		}
	}
}

static void a_debugger_watches_with_single_registers(struct kunit *test)
{
	unsigned int offset, len;

	for (offset = 0; offset < 16; offset++) {
		for (len = 0; len <= 16; len++) {
			struct perf_event_attr attr = dr_test_watch((void *)0x10000UL + offset, len,
								    HW_BREAKPOINT_W);
			struct arch_hw_breakpoint hw;
			int err = hw_breakpoint_debugger_parse(&attr, &hw);

			if (len && fewest_pieces(offset, len, max_piece()) == 1)
				KUNIT_EXPECT_EQ_MSG(test, err, 0, "%u at %u", len, offset);
			else
				KUNIT_EXPECT_EQ_MSG(test, err, -EINVAL, "%u at %u", len, offset);
		}
	}
}

/* ---- Cases: registers ---- */

static char *bytes(unsigned int offset)
{
	return (char *)dr_test_words + offset;
}

/* Returns true if the armed registers that are not of the first @words watch this range. */
static bool watches_range(unsigned int words, unsigned int offset, unsigned int len)
{
	u64 want = GENMASK_ULL(offset + len - 1, offset), have = 0;
	struct dr_test_regs regs;
	unsigned int at;
	int slot;

	dr_test_read_regs(&regs);
	for (slot = 0; slot < HBP_NUM; slot++) {
		if (!dr7_enabled(regs.dr7, slot))
			continue;
		at = regs.addr[slot] - (unsigned long)dr_test_words;
		if (at < words * sizeof(long))
			continue;
		if (at >= sizeof(dr_test_words))
			return false;
		have |= GENMASK_ULL(at + dr7_ctl_bytes(dr7_ctl(regs.dr7, slot)) - 1, at);
	}

	return have == want;
}

/* The first @nr words have breakpoints of their own, the range begins in word 4 or after. */
static void expect_fits_beside(struct kunit *test, int nr, unsigned int offset, unsigned int len)
{
	struct perf_event_attr attr = dr_test_watch(bytes(offset), len, HW_BREAKPOINT_W);
	unsigned int pieces = fewest_pieces(offset, len, WORD);
	struct dr_test *f = test->priv;
	struct perf_event *bp;
	int i;

	bp = perf_event_create_kernel_counter(&attr, f->cpu, NULL, dr_test_record_hit,
					      &f->hits[HBP_NUM]);
	if (nr + pieces > HBP_NUM) {
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(bp), -ENOSPC, "%u bytes at %u beside %d",
				    len, offset, nr);
	} else {
		KUNIT_EXPECT_FALSE_MSG(test, IS_ERR(bp), "%u bytes at %u beside %d", len, offset,
				       nr);
		KUNIT_EXPECT_TRUE_MSG(test, watches_range(nr, offset, len),
				      "%u bytes at %u beside %d", len, offset, nr);
	}
	if (!IS_ERR(bp))
		unregister_hw_breakpoint(bp);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_GE(test, dr_test_slot_now(test, &dr_test_words[i]), 0);
}

static void a_range_is_armed_if_enough_registers_are_free(struct kunit *test)
{
	unsigned int offset, len;
	int nr;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	for (nr = 0; nr <= HBP_NUM; nr++) {
		for (offset = 4 * WORD; offset < 5 * WORD; offset++) {
			for (len = 1; len <= 3 * WORD; len++) {
				if (fewest_pieces(offset, len, WORD) <= HBP_NUM)
					expect_fits_beside(test, nr, offset, len);
			}
		}
		if (nr < HBP_NUM)
			dr_test_arm_word(test, nr);
	}
}

static void expect_change(struct kunit *test, struct perf_event *bp, unsigned int offset,
			  unsigned int len)
{
	struct perf_event_attr attr = bp->attr;

	attr.bp_addr = (unsigned long)bytes(offset);
	attr.bp_len = len;
	KUNIT_EXPECT_EQ_MSG(test, modify_user_hw_breakpoint(bp, &attr), 0, "%u bytes at %u", len,
			    offset);
	KUNIT_EXPECT_TRUE_MSG(test, watches_range(0, offset, len), "%u bytes at %u", len, offset);
}

/* Ranges of 1, 2, 3 and 4 pieces, some of which have pieces in common */
static const struct {
	unsigned int offset;
	unsigned int len;
} ranges[] = {
	{ 0, WORD }, { WORD, 1 }, { WORD / 2, WORD }, { WORD, 2 * WORD }, { WORD - 1, 2 },
	{ WORD / 2, 2 * WORD }, { WORD, 3 * WORD }, { 3, 6 }, { 0, 4 * WORD },
	{ 4 * WORD, 4 * WORD }, { 1, WORD }, { 2 * WORD, 7 * WORD / 2 },
};

static void any_range_can_replace_any_other(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(0), WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	int from, to;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	for (from = 0; from < ARRAY_SIZE(ranges); from++) {
		for (to = 0; to < ARRAY_SIZE(ranges); to++) {
			expect_change(test, f->bp[0], ranges[from].offset, ranges[from].len);
			expect_change(test, f->bp[0], ranges[to].offset, ranges[to].len);
		}
	}
}

static void a_change_that_needs_too_many_registers_changes_nothing(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(4 * WORD), 2 * WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	f->bp[2] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[2], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[2]);
	dr_test_arm_word(test, 0);
	dr_test_arm_word(test, 1);

	attr.bp_len = 3 * WORD;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(f->bp[2], &attr), -ENOSPC);
	KUNIT_EXPECT_EQ(test, f->bp[2]->attr.bp_len, 2 * WORD);
	KUNIT_EXPECT_TRUE(test, watches_range(2, 4 * WORD, 2 * WORD));

	/* What a smaller range releases is available at once. */
	attr.bp_len = WORD;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(f->bp[2], &attr), 0);
	KUNIT_EXPECT_TRUE(test, watches_range(2, 4 * WORD, WORD));
	dr_test_arm_word(test, 3);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 3), 1);
}

/* Claims change under a mutex. */
static void the_number_of_registers_stays_with_interrupts_off(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(0), WORD, HW_BREAKPOINT_W);
	struct dr_test *f = test->priv;
	int more, other;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	local_irq_disable();
	attr.bp_len = 3 * WORD;
	more = modify_user_hw_breakpoint(f->bp[0], &attr);
	attr.bp_len = 2;
	attr.bp_addr++;
	other = modify_user_hw_breakpoint(f->bp[0], &attr);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, more, -EINVAL);
	KUNIT_EXPECT_EQ(test, other, -EINVAL);
	KUNIT_EXPECT_EQ(test, f->bp[0]->attr.bp_len, WORD);
	KUNIT_EXPECT_TRUE(test, watches_range(0, 0, WORD));
}

static int wait_for_end(void *end)
{
	wait_for_completion(end);
	kthread_exit(0);
}

/*
 * A switch between the two tasks, whose contexts are clones, may have swapped their events:
 * @other is the one whose event was inherited.
 */
static void a_modify_claims_the_registers_for_each_task_of_a_family(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(0), WORD, HW_BREAKPOINT_W);
	DECLARE_COMPLETION_ONSTACK(end);
	struct task_struct *child, *other;
	struct perf_event *more[HBP_NUM];
	struct dr_test *f = test->priv;
	int i, n = 0;
	pid_t pid;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	attr.inherit = 1;
	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	pid = kernel_thread(wait_for_end, &end, "hw_breakpoint", SIGCHLD);
	KUNIT_ASSERT_GT(test, pid, 0);
	rcu_read_lock();
	child = get_task_struct(find_task_by_pid_ns(pid, &init_pid_ns));
	rcu_read_unlock();

	attr.bp_len = 3 * WORD;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	other = f->bp[0]->ctx->task == child ? current : child;
	attr.inherit = 0;
	attr.bp_len = WORD;
	for (i = 0; i < HBP_NUM; i++) {
		more[n] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[1],
						      other);
		n += !IS_ERR(more[n]);
	}
	KUNIT_EXPECT_EQ(test, n, HBP_NUM - 3);
	while (n--)
		unregister_hw_breakpoint(more[n]);
	complete(&end);
	kernel_wait4(pid, NULL, 0, NULL);
	put_task_struct(child);
}

/* ---- Cases: kernel-wide sets ---- */

static void a_set_moves_where_it_needs_the_same_number_of_registers(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(WORD / 2), 3 * WORD / 2, HW_BREAKPOINT_W);
	struct perf_event * __percpu *set;
	struct dr_test *f = test->priv;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	set = register_wide_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR((void __force *)set));
	KUNIT_EXPECT_TRUE(test, watches_range(0, WORD / 2, 3 * WORD / 2));
	/* A word and half of one */
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint(set, (unsigned long)bytes(2 * WORD), NULL),
			0);
	KUNIT_EXPECT_TRUE(test, watches_range(0, 2 * WORD, 3 * WORD / 2));
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 0), 0);
	KUNIT_EXPECT_EQ(test, dr_test_write_hits(f, 2), 0);
	/* A word between quarters of one */
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint(set, (unsigned long)bytes(3 * WORD / 4),
							NULL), -EINVAL);
	KUNIT_EXPECT_TRUE(test, watches_range(0, 2 * WORD, 3 * WORD / 2));
	KUNIT_EXPECT_EQ(test, modify_wide_hw_breakpoint_local(set,
							      (unsigned long)bytes(9 * WORD / 2),
							      NULL), 0);
	KUNIT_EXPECT_TRUE(test, watches_range(0, 9 * WORD / 2, 3 * WORD / 2));
	unregister_wide_hw_breakpoint(set);
}

/* ---- Cases: #DB ---- */

static bool trap_is_only_cause(struct dr_test *f, unsigned long dr6)
{
	struct pt_regs regs = { .cs = __USER_CS };

	f->hits[0].sample_flags = 0;
	local_irq_disable();
	hw_breakpoint_trap(&regs, &dr6);
	local_irq_enable();

	return f->hits[0].sample_flags & PERF_SAMPLE_ONLY_CAUSE;
}

/* One instruction may access all pieces. */
static void hits_of_several_pieces_are_one_hit(struct kunit *test)
{
	unsigned long virtual_dr6 = current->thread.virtual_dr6, bits, own = 0;
	struct dr_test *f = test->priv;
	int slot, other;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	dr_test_arm(test, 1, dr_test_watch(&dr_test_words[7], WORD, HW_BREAKPOINT_W));
	dr_test_arm(test, 0, dr_test_watch(bytes(WORD / 2), 2 * WORD, HW_BREAKPOINT_W));
	other = dr_test_slot_now(test, &dr_test_words[7]);
	KUNIT_ASSERT_GE(test, other, 0);
	for (slot = 0; slot < HBP_NUM; slot++)
		own |= slot == other ? 0 : DR_TRAP0 << slot;

	for (bits = 1; bits <= DR_TRAP_BITS; bits++) {
		bool only = trap_is_only_cause(f, bits);

		KUNIT_EXPECT_EQ_MSG(test, dr_test_take_hits(f, 0), !!(bits & own), "%lx", bits);
		KUNIT_EXPECT_EQ_MSG(test, dr_test_take_hits(f, 1), !!(bits & ~own), "%lx", bits);
		KUNIT_EXPECT_EQ_MSG(test, only, !(bits & ~own), "%lx", bits);
		if (bits & own)
			KUNIT_EXPECT_PTR_EQ(test, (char *)(long)f->hits[0].addr,
					    bytes(WORD / 2));
	}
	current->thread.virtual_dr6 = virtual_dr6;
}

/* A slot that is no longer armed does not take the hit of one that is. */
static void piece_that_was_disarmed_does_not_hide_a_hit(struct kunit *test)
{
	struct perf_event_attr attr = dr_test_watch(bytes(0), 2 * WORD, HW_BREAKPOINT_W);
	unsigned long virtual_dr6 = current->thread.virtual_dr6;
	struct dr_test *f = test->priv;

	if (hw_breakpoint_addr_mask_max)
		kunit_skip(test, "needs other registers with address masks");

	f->bp[0] = register_user_hw_breakpoint(&attr, dr_test_record_hit, &f->hits[0], current);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->bp[0]);
	attr.bp_len = WORD;
	KUNIT_EXPECT_EQ(test, modify_user_hw_breakpoint(f->bp[0], &attr), 0);
	trap_is_only_cause(f, DR_TRAP_BITS);
	KUNIT_EXPECT_EQ(test, dr_test_take_hits(f, 0), 1);
	current->thread.virtual_dr6 = virtual_dr6;
}

/* ---- The suite ---- */

static struct kunit_case x86_hw_breakpoint_object_test_cases[] = {
	KUNIT_CASE(pieces_are_the_fewest_that_cover_a_range_exactly),
	KUNIT_CASE(masks_save_pieces),
	KUNIT_CASE(pieces_reach_the_end_of_the_address_space),
	KUNIT_CASE(a_range_moves_as_if_it_were_parsed),
	KUNIT_CASE(one_kernel_byte_makes_a_range_a_kernel_range),
	KUNIT_CASE(a_debugger_watches_with_single_registers),
	KUNIT_CASE(a_range_is_armed_if_enough_registers_are_free),
	KUNIT_CASE(any_range_can_replace_any_other),
	KUNIT_CASE(a_change_that_needs_too_many_registers_changes_nothing),
	KUNIT_CASE(the_number_of_registers_stays_with_interrupts_off),
	KUNIT_CASE(a_modify_claims_the_registers_for_each_task_of_a_family),
	KUNIT_CASE(a_set_moves_where_it_needs_the_same_number_of_registers),
	KUNIT_CASE(hits_of_several_pieces_are_one_hit),
	KUNIT_CASE(piece_that_was_disarmed_does_not_hide_a_hit),
	{ }
};

static struct kunit_suite x86_hw_breakpoint_object_test_suite = {
	.name		= "x86_hw_breakpoint_object",
	.test_cases	= x86_hw_breakpoint_object_test_cases,
	.init		= dr_test_init,
	.exit		= dr_test_exit,
};

kunit_test_suite(x86_hw_breakpoint_object_test_suite);
