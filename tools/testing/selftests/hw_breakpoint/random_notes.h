/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Choices of a random program that a seed repeats, and notes of its last operations, to be
 * printed at a failure. The macros are for fixtures with a member @dice.
 */
#ifndef RANDOM_NOTES_H
#define RANDOM_NOTES_H

#include "bp_test.h"

#define NR_NOTES	24
#define NOTE_SIZE	160

/**
 * struct dice - the choices of a sequence of operations, and its last notes
 * @seed: what the sequence began with
 * @state: of bp_random()
 * @trace: print each note at once
 * @nr_notes: number of all notes so far
 * @note: the last ones
 */
struct dice {
	unsigned int seed, state;
	bool trace;
	unsigned int nr_notes;
	char note[NR_NOTES][NOTE_SIZE];
};

static inline void dice_begin(struct dice *d)
{
	d->state = d->seed;
	d->nr_notes = 0;
}

static inline unsigned int dice_below(struct dice *d, unsigned int n)
{
	return ((bp_random(&d->state) & 0xffff) * n) >> 16;
}

static inline void dice_print(struct __test_metadata *_metadata, const struct dice *d)
{
	unsigned int first = d->nr_notes > NR_NOTES ? d->nr_notes - NR_NOTES : 0;

	for (unsigned int i = first; i < d->nr_notes; i++)
		TH_LOG("operation %u: %s", i, d->note[i % NR_NOTES]);
	TH_LOG("BP_SEED=%u repeats this", d->seed);
}

/* Below @n */
#define pick(self, n)		dice_below(&(self)->dice, n)
#define one_in(self, n)		(!pick(self, n))

#define note(self, ...)							\
	do {								\
		struct dice *_d = &(self)->dice;			\
		char *_text = _d->note[_d->nr_notes++ % NR_NOTES];	\
		snprintf(_text, NOTE_SIZE, __VA_ARGS__);		\
		if (_d->trace)						\
			fprintf(stderr, "%u: %s\n", _d->nr_notes, _text); \
	} while (0)

#endif
