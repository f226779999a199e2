/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Debug information of the variable crafted that no compiler writes: members that are outside
 * of it, that are too large, that contain themselves, or that have a strange name; and scopes
 * that are nested too deep for a stack of 512 kB.
 */
#define DEPTH	10000

	.data
	.globl crafted
	.type crafted, @object
	.size crafted, 32
	.balign 32
crafted:
	.zero 32

/* \fields: attributes and their forms */
.macro abbrev nr, tag, children, fields:vararg
	.byte \nr, \tag, \children, \fields, 0, 0
.endm

	.section .debug_abbrev, "", @progbits
abbrevs:
	/* name: string, language: data1 */
	abbrev 1, 0x11, 1, 0x03, 0x08, 0x13, 0x0b
	/* base type: name, byte size: data4, encoding: data1 */
	abbrev 2, 0x24, 0, 0x03, 0x08, 0x0b, 0x06, 0x3e, 0x0b
	/* structure: name, byte size: data1 */
	abbrev 3, 0x13, 1, 0x03, 0x08, 0x0b, 0x0b
	/* member: name, type: ref4, location: data8 */
	abbrev 4, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x07
	/* bit-field: name, type: ref4, bit size: data2, first bit: data2 */
	abbrev 5, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x0d, 0x05, 0x6b, 0x05
	/* pointer, const: type: ref4 */
	abbrev 6, 0x0f, 0, 0x49, 0x13
	abbrev 7, 0x26, 0, 0x49, 0x13
	/* array: type: ref4; subrange: count: data1 */
	abbrev 8, 0x01, 1, 0x49, 0x13
	abbrev 9, 0x21, 0, 0x37, 0x0b
	/* variable: name, type: ref4, external: flag_present, location: exprloc */
	abbrev 10, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19, 0x02, 0x18
	/* namespace; structure whose declaration is: ref4 */
	.byte 11, 0x39, 1, 0, 0
	abbrev 12, 0x13, 1, 0x03, 0x08, 0x47, 0x13
	.byte 0

.macro base label, name, size, encoding
\label:	.byte 2
	.asciz "\name"
	.long \size
	.byte \encoding
.endm

.macro member name, type, offset
	.byte 4
	.asciz "\name"
	.long \type - unit
	.quad \offset
.endm

.macro bits name, type, size, first
	.byte 5
	.asciz "\name"
	.long \type - unit
	.short \size, \first
.endm

	.section .debug_info, "", @progbits
unit:
	.long unit_end - unit - 4
	.short 4
	.long abbrevs
	.byte 8
	.byte 1
	.asciz "crafted.c"
	/* C99 */
	.byte 0x0c
	base t_int, "int", 4, 5
	base t_char, "char", 1, 6
	base t_float, "float", 4, 4
	base t_wide, "wide", 16, 7
	/* Times 8 it has 32 bits again. */
	base t_huge, "huge", 0x20000001, 5
t_const:
	.byte 7
	.long t_const - unit
t_pointer:
	.byte 6
	.long t_const - unit
t_array:
	.byte 8
	.long t_char - unit
	.byte 9, 8
	.byte 0
t_crafted:
	.byte 3
	.asciz "crafted"
	.byte 32
	member "number", t_int, 0
	member "a\\\"b", t_char, 4
	bits "good", t_int, 3, 41
	member "pointer", t_pointer, 8
	/* Before, and too large */
	member "before", t_int, -2
	member "huge", t_huge, 0
	member "behind", t_int, 30
	/* Bits of more than 16 bytes: shown without regard to the bits */
	bits "much", t_int, 250, 0
	bits "crooked", t_wide, 128, 9
	/* Bits of no integer, whose bytes are outside */
	bits "real", t_float, 8, 248
	bits "text", t_array, 8, 248
	/* It contains itself, twice. */
	member "self", t_crafted, 0
	member "again", t_crafted, 0
	.byte 0
	.byte 10
	.asciz "crafted"
	.long t_crafted - unit
	.byte 9, 3
	.quad crafted
	.byte 0
unit_end:
deep:
	.long deep_end - deep - 4
	.short 4
	.long abbrevs
	.byte 8
	.byte 1
	.asciz "deep.c"
	/* C++ */
	.byte 0x04
	base t_depth, "depth", 4, 5
	/* Its declaration is itself. */
t_endless:
	.byte 12
	.asciz "endless"
	.long t_endless - deep
	.byte 0
	.fill DEPTH, 1, 11
	.fill DEPTH, 1, 0
	.byte 0
deep_end:

	.section .note.GNU-stack, "", @progbits
