// SPDX-License-Identifier: GPL-2.0
/*
 * What changed bytes of kernel text mean: the instructions that static keys, static calls,
 * ftrace and kprobes exchange. The kernel's instruction decoder finds lengths and operands.
 */
#include <asm/insn.h>
#include <stdbool.h>
#include <string.h>

#include "text_insn.h"
#include "util.h"

/* Length of a call or jump with an offset of 32 bits */
#define CALL_SIZE	5

#define OPCODE_NOP	0x90
#define OPCODE_JCC_8	0x70
#define OPCODE_RET	0xc3
#define OPCODE_INT3	0xcc
#define OPCODE_CALL	0xe8
#define OPCODE_JMP	0xe9
#define OPCODE_JMP_8	0xeb
#define OPCODE_NOP_2	0x1f
#define OPCODE_JCC_2	0x80

static bool is_nop(const struct insn *insn)
{
	const uint8_t *op = insn->opcode.bytes;

	if (insn->opcode.nbytes == 1)
		return op[0] == OPCODE_NOP && !insn->rex_prefix.nbytes;
	return insn->opcode.nbytes == 2 && op[0] == 0x0f && op[1] == OPCODE_NOP_2;
}

/* Returns true if there are only NOPs, of any length. */
static bool are_nops(const uint8_t *bytes, size_t len)
{
	struct insn insn;

	while (len) {
		if (insn_decode(&insn, bytes, len, INSN_MODE_64) < 0 || !is_nop(&insn))
			return false;
		bytes += insn.length;
		len -= insn.length;
	}
	return true;
}

/* "call", "jmp" or "jcc", NULL for other instructions */
static const char *branch_name(const struct insn *insn)
{
	const uint8_t *op = insn->opcode.bytes;

	if (insn->opcode.nbytes == 2)
		return op[0] == 0x0f && (op[1] & 0xf0) == OPCODE_JCC_2 ? "jcc" : NULL;
	if (op[0] == OPCODE_CALL)
		return "call";
	if (op[0] == OPCODE_JMP || op[0] == OPCODE_JMP_8)
		return "jmp";
	return (op[0] & 0xf0) == OPCODE_JCC_8 ? "jcc" : NULL;
}

static char *branch_text(struct text_names *names, const char *branch, uint64_t target)
{
	const char *name, *hook, *module;
	char offset[32] = "";
	uint64_t start;

	name = text_names_find(names, target, &start);
	if (!name)
		return xasprintf("%s %#lx", branch, (unsigned long)target);
	if (target != start)
		snprintf(offset, sizeof(offset), "+%#lx", (unsigned long)(target - start));
	/* What ftrace puts at the start of a function */
	hook = !strncmp(name, "ftrace_", 7) || !strcmp(name, "__fentry__") ? "ftrace: " : "";
	module = strstr(name, " [");
	if (!module)
		module = name + strlen(name);
	return xasprintf("%s%s %.*s%s%s", hook, branch, (int)(module - name), name, offset, module);
}

char *text_insn(struct text_names *names, const uint8_t *bytes, size_t len, uint64_t address)
{
	const char *branch;
	struct insn insn;

	if (len == 1 && bytes[0] == OPCODE_INT3)
		return xstrdup("int3");
	if (!len || insn_decode(&insn, bytes, len, INSN_MODE_64) < 0)
		return NULL;
	if (are_nops(bytes, len))
		return xstrdup("nop");
	/* A static call that returns at once: RET and INT3s behind it */
	if (len <= CALL_SIZE && bytes[0] == OPCODE_RET)
		return xstrdup("ret");
	branch = branch_name(&insn);
	if (!branch || (size_t)insn.length != len)
		return NULL;
	return branch_text(names, branch, address + len + insn.immediate.value);
}
