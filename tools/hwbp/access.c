// SPDX-License-Identifier: GPL-2.0
/*
 * The instruction that made an access.  The kernel's instruction decoder finds lengths
 * and operands; which instructions access memory is decided here.
 */
#include <asm/insn.h>

#include "access.h"

#define OPCODE_LEA	0x8d

/* INS and OUTS, MOVS and CMPS, STOS to SCAS */
static bool is_string(const struct insn *insn)
{
	uint8_t op = insn->opcode.bytes[0];

	if (insn->opcode.nbytes != 1 || insn_is_avx((struct insn *)insn))
		return false;
	return (op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) ||
	       (op >= 0xaa && op <= 0xaf);
}

/* LEA, and the prefetches and NOPs with an operand, compute an address only. */
static bool only_computes(const struct insn *insn)
{
	const uint8_t *op = insn->opcode.bytes;

	if (insn->opcode.nbytes == 1)
		return op[0] == OPCODE_LEA;
	return insn->opcode.nbytes == 2 && op[0] == 0x0f &&
	       (op[1] == 0x0d || (op[1] >= 0x18 && op[1] <= 0x1f));
}

static bool has_memory_operand(const struct insn *insn)
{
	if (inat_has_moffset(insn->attr))
		return true;
	return insn->modrm.nbytes && X86_MODRM_MOD(insn->modrm.bytes[0]) != 3 &&
	       !only_computes(insn);
}

static bool is_repeated(const struct insn *insn)
{
	size_t i;

	for (i = 0; i < insn->prefixes.nbytes; i++) {
		if (insn->prefixes.bytes[i] == 0xf2 || insn->prefixes.bytes[i] == 0xf3)
			return true;
	}
	return false;
}

bool access_decode(struct access_insn *access, const uint8_t *code, size_t size, bool is64)
{
	struct insn insn;

	if (size > MAX_INSN_SIZE)
		size = MAX_INSN_SIZE;
	if (insn_decode(&insn, code, size, is64 ? INSN_MODE_64 : INSN_MODE_32) < 0)
		return false;
	access->len = insn.length;
	access->memory = is_string(&insn) || has_memory_operand(&insn);
	access->repeat = is_string(&insn) && is_repeated(&insn);
	return true;
}

ptrdiff_t access_before(const uint8_t *code, size_t size, size_t end, bool is64, bool in_string)
{
	struct access_insn last = { 0 }, at_end;
	size_t pos = 0;

	while (pos < end) {
		if (!access_decode(&last, code + pos, size - pos, is64))
			return -1;
		pos += last.len;
	}
	if (pos != end)
		return -1;
	/*
	 * @end is ambiguous if a repeated string instruction starts there: its own
	 * iterations and the instruction before it are both reported at @end.
	 */
	if ((in_string || !last.memory) && end < size &&
	    access_decode(&at_end, code + end, size - end, is64) && at_end.repeat)
		return end;
	return last.len ? (ptrdiff_t)(end - last.len) : -1;
}
