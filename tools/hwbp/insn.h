/* SPDX-License-Identifier: GPL-2.0 */
/* Where an x86 instruction ends: enough of a decoder to walk over code. */
#ifndef HWBP_INSN_H
#define HWBP_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct insn - what one has to know of an instruction to step over it
 * @len: bytes
 * @memory: has an explicit memory operand or is a string instruction
 * @repeat: a string instruction that can stop between two rounds, so that the
 *	    processor reports its own address after an access
 */
struct insn {
	unsigned int len;
	bool memory;
	bool repeat;
};

/* False if @code does not hold a whole instruction that is known. */
bool insn_decode(struct insn *insn, const uint8_t *code, size_t size, bool is64);

/*
 * @code starts at an instruction and at @end the processor reported an access
 * that it has just made.  Returns the offset of the instruction that made it,
 * which ends at @end or, for a repeated string instruction, begins there;
 * -1 if the walk does not come out at @end.  @in_string tells that a string
 * instruction, if there is one at @end, has just been at what was accessed.
 */
ptrdiff_t insn_before(const uint8_t *code, size_t size, size_t end, bool is64, bool in_string);

#endif
