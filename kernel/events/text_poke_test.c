// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of splitting a change of kernel text into records: the records add up
 * to the change, and the size of each of them fits into 16 bits.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "text_poke.h"

#define MAX_LEN		(3 * TEXT_POKE_MAX + 100)
#define SOMEWHERE	0x81000123UL

struct world {
	u8 old[MAX_LEN], new[MAX_LEN];
	u8 old_again[MAX_LEN], new_again[MAX_LEN];
};

static void split_change(struct kunit *test, struct world *w, size_t old_len, size_t new_len)
{
	struct text_poke piece, rest = {
		.addr	 = SOMEWHERE,
		.old	 = w->old,
		.new	 = w->new,
		.old_len = old_len,
		.new_len = new_len,
	};
	size_t old_seen = 0, new_seen = 0, size, sum;

	while (text_poke_piece(&rest, &piece)) {
		KUNIT_ASSERT_EQ(test, piece.addr, SOMEWHERE + max(old_seen, new_seen));
		KUNIT_ASSERT_GT(test, piece.old_len + piece.new_len, 0);
		KUNIT_ASSERT_LE(test, old_seen + piece.old_len, old_len);
		KUNIT_ASSERT_LE(test, new_seen + piece.new_len, new_len);
		/* Text that is added or removed has one length of 0. */
		KUNIT_ASSERT_EQ(test, !piece.old_len, !old_len);
		KUNIT_ASSERT_EQ(test, !piece.new_len, !new_len);
		memcpy(w->old_again + old_seen, piece.old, piece.old_len);
		memcpy(w->new_again + new_seen, piece.new, piece.new_len);
		old_seen += piece.old_len;
		new_seen += piece.new_len;

		size = text_poke_size(&piece);
		sum = 4 + piece.old_len + piece.new_len;
		KUNIT_EXPECT_EQ(test, size % 8, 0);
		KUNIT_EXPECT_GE(test, size, sum);
		KUNIT_EXPECT_LT(test, size, sum + 8);
		KUNIT_EXPECT_EQ(test, text_poke_padding(&piece), size - sum);
		/* 16 bytes of header and address, and the longest sample_id */
		KUNIT_EXPECT_LE(test, size + 16 + 64, U16_MAX);
	}

	KUNIT_EXPECT_EQ(test, old_seen, old_len);
	KUNIT_EXPECT_EQ(test, new_seen, new_len);
	KUNIT_EXPECT_MEMEQ(test, w->old, w->old_again, old_len);
	KUNIT_EXPECT_MEMEQ(test, w->new, w->new_again, new_len);
}

static struct world *new_world(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, w);
	prandom_seed_state(&rnd, 6);
	prandom_bytes_state(&rnd, w->old, sizeof(w->old));
	prandom_bytes_state(&rnd, w->new, sizeof(w->new));
	return w;
}

static void an_instruction_is_one_record(struct kunit *test)
{
	struct world *w = new_world(test);
	struct text_poke piece, poke = {
		.old = w->old, .new = w->new, .old_len = 5, .new_len = 5,
	};

	KUNIT_EXPECT_TRUE(test, text_poke_piece(&poke, &piece));
	KUNIT_EXPECT_EQ(test, text_poke_size(&piece), 16);
	KUNIT_EXPECT_FALSE(test, text_poke_piece(&poke, &piece));
}

static void empty_change_is_no_record(struct kunit *test)
{
	struct text_poke piece, poke = { };

	KUNIT_EXPECT_FALSE(test, text_poke_piece(&poke, &piece));
}

static void all_lengths_of_instructions_fit(struct kunit *test)
{
	struct world *w = new_world(test);
	size_t old_len, new_len;

	for (old_len = 0; old_len <= 16; old_len++) {
		for (new_len = 0; new_len <= 16; new_len++)
			split_change(test, w, old_len, new_len);
	}
}

static void long_change_is_split_into_several_records(struct kunit *test)
{
	static const size_t len[] = {
		1, TEXT_POKE_MAX - 1, TEXT_POKE_MAX, TEXT_POKE_MAX + 1,
		2 * TEXT_POKE_MAX, 2 * TEXT_POKE_MAX + 7, MAX_LEN,
	};
	struct world *w = new_world(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(len); i++) {
		split_change(test, w, len[i], len[i]);
		split_change(test, w, 0, len[i]);
		split_change(test, w, len[i], 0);
	}
}

static struct kunit_case text_poke_cases[] = {
	KUNIT_CASE(an_instruction_is_one_record),
	KUNIT_CASE(empty_change_is_no_record),
	KUNIT_CASE(all_lengths_of_instructions_fit),
	KUNIT_CASE(long_change_is_split_into_several_records),
	{ }
};

static struct kunit_suite text_poke_suite = {
	.name		= "perf_text_poke",
	.test_cases	= text_poke_cases,
};

kunit_test_suite(text_poke_suite);

MODULE_DESCRIPTION("KUnit tests of splitting changes of kernel text into records");
MODULE_LICENSE("GPL");
