/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PERF_RECORD_TEXT_POKE: splitting a change of kernel text into records, and the
 * size of a record.
 */
#ifndef _KERNEL_EVENTS_TEXT_POKE_H
#define _KERNEL_EVENTS_TEXT_POKE_H

#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/types.h>

/*
 * Maximum number of bytes of old text, and of new text, in one record. Both
 * lengths and the size of a record are 16 bits wide, and a record must fit into
 * a small ring buffer.
 */
#define TEXT_POKE_MAX		4096

/**
 * struct text_poke - a change of kernel text
 * @addr: first address that changes
 * @old: bytes before the change
 * @new: bytes after the change
 * @old_len: length of @old; 0 if @addr was not text before
 * @new_len: length of @new; 0 if @addr is no longer text
 *
 * A change that is too long for one record is recorded as a sequence of adjacent
 * changes.
 */
struct text_poke {
	unsigned long	addr;
	const u8	*old;
	const u8	*new;
	size_t		old_len;
	size_t		new_len;
};

/* Splits off as much of the change @rest as fits in one record; false if @rest was empty */
static inline bool text_poke_piece(struct text_poke *rest, struct text_poke *piece)
{
	if (!rest->old_len && !rest->new_len)
		return false;

	*piece = *rest;
	piece->old_len = min_t(size_t, rest->old_len, TEXT_POKE_MAX);
	piece->new_len = min_t(size_t, rest->new_len, TEXT_POKE_MAX);

	rest->addr += max(piece->old_len, piece->new_len);
	rest->old += piece->old_len;
	rest->new += piece->new_len;
	rest->old_len -= piece->old_len;
	rest->new_len -= piece->new_len;
	return true;
}

/*
 * The part of a record that follows the address starts with two 16-bit lengths and is padded to
 * a multiple of 8 bytes.
 */
static inline size_t text_poke_padding(const struct text_poke *piece)
{
	size_t len = 2 * sizeof(u16) + piece->old_len + piece->new_len;

	return ALIGN(len, sizeof(u64)) - len;
}

/* Size of the part of a record that follows the address, without sample_id */
static inline size_t text_poke_size(const struct text_poke *piece)
{
	return 2 * sizeof(u16) + piece->old_len + piece->new_len +
	       text_poke_padding(piece);
}

#endif /* _KERNEL_EVENTS_TEXT_POKE_H */
