// SPDX-License-Identifier: GPL-2.0
/* Test lengths and kinds of instructions, one of each form. */
#include <stdio.h>
#include <string.h>

#include "access.h"

struct sample {
	const char *text;
	unsigned int len;
	bool memory;
	bool repeat;
	unsigned char code[16];
};

/* Each instruction is followed by bytes that do not belong to it. */
static const struct sample samples64[] = {
	{ "ret", 1, false, false, { 0xc3, 0x90 } },
	{ "endbr64", 4, false, false, { 0xf3, 0x0f, 0x1e, 0xfa, 0x90 } },
	{ "mov %eax,(%rdi)", 2, true, false, { 0x89, 0x07, 0x90 } },
	{ "mov %eax,8(%rdi)", 3, true, false, { 0x89, 0x47, 0x08, 0x90 } },
	{ "mov %eax,0x11223344(%rip)", 6, true, false,
	  { 0x89, 0x05, 0x44, 0x33, 0x22, 0x11, 0x90 } },
	{ "mov %eax,(%rdi,%rcx,4)", 3, true, false, { 0x89, 0x04, 0x8f, 0x90 } },
	{ "mov %eax,0x11223344(,%rcx,4)", 7, true, false,
	  { 0x89, 0x04, 0x8d, 0x44, 0x33, 0x22, 0x11, 0x90 } },
	{ "mov %rax,0x10(%rsp)", 5, true, false, { 0x48, 0x89, 0x44, 0x24, 0x10, 0x90 } },
	{ "movl $1,(%rax)", 6, true, false, { 0xc7, 0x00, 1, 0, 0, 0, 0x90 } },
	{ "movw $1,(%rax)", 5, true, false, { 0x66, 0xc7, 0x00, 1, 0, 0x90 } },
	{ "movabs $1,%rax", 10, false, false, { 0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0, 0x90 } },
	{ "mov $1,%ax", 4, false, false, { 0x66, 0xb8, 1, 0, 0x90 } },
	{ "movabs %al,0x1", 9, true, false, { 0xa2, 1, 0, 0, 0, 0, 0, 0, 0, 0x90 } },
	{ "lock addq $1,(%rax)", 5, true, false, { 0xf0, 0x48, 0x83, 0x00, 1, 0x90 } },
	{ "test $1,%al", 3, false, false, { 0xf6, 0xc0, 1, 0x90 } },
	{ "testl $1,(%rax)", 6, true, false, { 0xf7, 0x00, 1, 0, 0, 0, 0x90 } },
	{ "negl (%rax)", 2, true, false, { 0xf7, 0x18, 0x90 } },
	{ "lea 8(%rdi),%rax", 4, false, false, { 0x48, 0x8d, 0x47, 0x08, 0x90 } },
	{ "rep movsb", 2, true, true, { 0xf3, 0xa4, 0x90 } },
	{ "rep stosq", 3, true, true, { 0xf3, 0x48, 0xab, 0x90 } },
	{ "stosb", 1, true, false, { 0xaa, 0x90 } },
	{ "jne", 6, false, false, { 0x0f, 0x85, 0, 1, 0, 0, 0x90 } },
	{ "call", 5, false, false, { 0xe8, 0, 0, 0, 0, 0x90 } },
	{ "enter", 4, false, false, { 0xc8, 8, 0, 0, 0x90 } },
	{ "movups %xmm0,(%rdi)", 3, true, false, { 0x0f, 0x11, 0x07, 0x90 } },
	{ "pshufb (%rax),%xmm0", 5, true, false, { 0x66, 0x0f, 0x38, 0x00, 0x00, 0x90 } },
	{ "palignr $1,(%rax),%xmm0", 6, true, false, { 0x66, 0x0f, 0x3a, 0x0f, 0x00, 1, 0x90 } },
	{ "vmovdqu %ymm0,(%rdi)", 4, true, false, { 0xc5, 0xfe, 0x7f, 0x07, 0x90 } },
	{ "vzeroupper", 3, false, false, { 0xc5, 0xf8, 0x77, 0x90 } },
	{ "vpalignr $1,(%rax),%xmm0,%xmm0", 6, true, false,
	  { 0xc4, 0xe3, 0x79, 0x0f, 0x00, 1, 0x90 } },
	{ "vmovdqu64 %zmm0,0x40(%rdi)", 7, true, false,
	  { 0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x47, 1, 0x90 } },
	{ "nopw 0(%rax,%rax,1)", 9, false, false,
	  { 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x90 } },
};

static const struct sample samples32[] = {
	{ "inc %eax", 1, false, false, { 0x40, 0x90 } },
	{ "mov %al,0x1", 5, true, false, { 0xa2, 1, 0, 0, 0, 0x90 } },
	{ "mov %eax,0x10(%bp)", 4, true, false, { 0x67, 0x89, 0x46, 0x10, 0x90 } },
	{ "mov %eax,0x1122", 5, true, false, { 0x67, 0x89, 0x06, 0x22, 0x11, 0x90 } },
	{ "les (%eax),%eax", 2, true, false, { 0xc4, 0x00, 0x90 } },
	{ "vmovdqu %ymm0,(%edi)", 4, true, false, { 0xc5, 0xfe, 0x7f, 0x07, 0x90 } },
	{ "lcall", 7, false, false, { 0x9a, 0, 0, 0, 0, 0, 0, 0x90 } },
};

static int failures;

static void complain(const char *text, const char *what)
{
	printf("access_test: %s: %s\n", text, what);
	failures++;
}

static void check(const struct sample *sample, bool is64)
{
	struct access_insn insn;
	unsigned int size;

	if (!access_decode(&insn, sample->code, sizeof(sample->code), is64)) {
		complain(sample->text, "not decoded");
		return;
	}
	if (insn.len != sample->len)
		complain(sample->text, "wrong length");
	if (insn.memory != sample->memory)
		complain(sample->text, "wrong about memory");
	if (insn.repeat != sample->repeat)
		complain(sample->text, "wrong about repetition");
	for (size = 0; size < sample->len; size++) {
		if (access_decode(&insn, sample->code, size, is64))
			complain(sample->text, "decoded when cut short");
	}
}

/* Search from the start of the code to each end of an instruction. */
static void check_walk(void)
{
	/* mov %eax,(%rdi); mov %eax,%ecx; rep stosb; ret */
	static const uint8_t code[] = { 0x89, 0x07, 0x89, 0xc1, 0xf3, 0xaa, 0xc3 };
	/* mov %eax,(%rdi); rep stosb */
	static const uint8_t store_first[] = { 0x89, 0x07, 0xf3, 0xaa };

	if (access_before(code, sizeof(code), 2, true, false) != 0)
		complain("walk", "not back to the first instruction");
	if (access_before(code, sizeof(code), 4, true, false) != 4)
		complain("walk", "not the string instruction that goes on");
	if (access_before(code, sizeof(code), 6, true, false) != 4)
		complain("walk", "not the string instruction that is done");
	if (access_before(code, sizeof(code), 3, true, false) != -1)
		complain("walk", "an end within an instruction");
	if (access_before(store_first, sizeof(store_first), 2, true, false) != 0)
		complain("walk", "not the store before a string instruction");
	if (access_before(store_first, sizeof(store_first), 2, true, true) != 2)
		complain("walk", "not the string instruction after a store");
}

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(samples64) / sizeof(samples64[0]); i++)
		check(&samples64[i], true);
	for (i = 0; i < sizeof(samples32) / sizeof(samples32[0]); i++)
		check(&samples32[i], false);
	check_walk();
	return failures != 0;
}
