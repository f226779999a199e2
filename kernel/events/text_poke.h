/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PERF_RECORD_TEXT_POKE: how a change of kernel text is split into records, and
 * what a record looks like.
 */
#ifndef _KERNEL_EVENTS_TEXT_POKE_H
#define _KERNEL_EVENTS_TEXT_POKE_H

#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* The most bytes of old and of new text in one record: it fits in small buffers. */
#define TEXT_POKE_MOST		4096

/**
 * struct text_poke - a change of kernel text
 * @addr: where
 * @old: what stood there before
 * @new: what stands there then
 * @old_len: length of @old; 0 if there was no text before
 * @new_len: length of @new; 0 if there is no text any more
 *
 * One that does not fit in a record is the same as several that follow each
 * other.
 */
struct text_poke {
	unsigned long	addr;
	const u8	*old;
	const u8	*new;
	size_t		old_len;
	size_t		new_len;
};

/**
 * text_poke_piece - take as much off a change as fits in a record
 * @rest: the change; what is left of it
 * @piece: filled in
 *
 * Return: false if nothing was left.
 */
static inline bool text_poke_piece(struct text_poke *rest, struct text_poke *piece)
{
	if (!rest->old_len && !rest->new_len)
		return false;

	*piece = *rest;
	piece->old_len = min_t(size_t, rest->old_len, TEXT_POKE_MOST);
	piece->new_len = min_t(size_t, rest->new_len, TEXT_POKE_MOST);

	rest->addr += max(piece->old_len, piece->new_len);
	rest->old += piece->old_len;
	rest->new += piece->new_len;
	rest->old_len -= piece->old_len;
	rest->new_len -= piece->new_len;
	return true;
}

/**
 * text_poke_padding - bytes after the text of a record
 * @piece: what is recorded
 *
 * What follows the address of a record begins with two lengths of 16 bits and is
 * a multiple of 8 bytes long.
 */
static inline size_t text_poke_padding(const struct text_poke *piece)
{
	size_t len = 2 * sizeof(u16) + piece->old_len + piece->new_len;

	return ALIGN(len, sizeof(u64)) - len;
}

/**
 * text_poke_size - size of a record after its address, without sample_id
 * @piece: what is recorded
 */
static inline size_t text_poke_size(const struct text_poke *piece)
{
	return 2 * sizeof(u16) + piece->old_len + piece->new_len +
	       text_poke_padding(piece);
}

#endif /* _KERNEL_EVENTS_TEXT_POKE_H */
