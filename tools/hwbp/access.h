/* SPDX-License-Identifier: GPL-2.0 */
/* Find the instruction that made an access. */
#ifndef HWBP_ACCESS_H
#define HWBP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct access_insn - a decoded instruction
 * @len: length in bytes
 * @memory: the instruction has an explicit memory operand or is a string instruction
 * @repeat: string instruction with a REP prefix: the processor can trap between two
 *	    iterations, and then reports the address of the instruction itself
 */
struct access_insn {
	unsigned int len;
	bool memory;
	bool repeat;
};

/* Returns false if @code does not start with a complete, known instruction. */
bool access_decode(struct access_insn *insn, const uint8_t *code, size_t size, bool is64);

/*
 * Find the instruction that made an access. @code starts at an instruction boundary, and
 * the processor reported the access at offset @end. @in_string: a pointer register is
 * just behind the watched bytes, as if a string instruction had accessed them.
 *
 * Returns the offset of the instruction, which ends at @end or, for a repeated string
 * instruction, starts there; -1 if no instruction boundary is at @end.
 */
ptrdiff_t access_before(const uint8_t *code, size_t size, size_t end, bool is64, bool in_string);

#endif
