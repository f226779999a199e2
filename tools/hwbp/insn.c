// SPDX-License-Identifier: GPL-2.0
/*
 * Length of x86 instructions.
 *
 * An instruction is: prefixes, opcode (one of several maps), ModRM with SIB and
 * displacement, immediate.  Its length depends on whether the opcode has a ModRM byte
 * and on the size of the immediate, so a map has one letter per opcode:
 *
 *   .  nothing follows            m  ModRM
 *   b  imm8                       M  ModRM, imm8
 *   z  imm16/imm32                Z  ModRM, imm16/imm32
 *   v  like z, imm64 with REX.W   j  branch offset
 *   w  imm16                      e  imm16, imm8 (ENTER)
 *   o  address as immediate       f  far pointer (32-bit code)
 *   g  ModRM, imm8 for TEST       G  ModRM, imm16/imm32 for TEST
 *   s  string instruction         p  prefix
 *   l  ModRM, but no access (LEA, NOP, prefetch)
 *   !  not an instruction
 */
#include "insn.h"

static const char map_1[] =
	"mmmmbz..mmmmbz.!" "mmmmbz..mmmmbz.."
	"mmmmbzp.mmmmbzp." "mmmmbzp.mmmmbzp."
	"................" "................"
	"..mmppppzZbMssss" "bbbbbbbbbbbbbbbb"
	"MZMMmmmmmmmmmlmm" "..........f....."
	"oooossssbzssssss" "bbbbbbbbvvvvvvvv"
	"MMw.mmMZe.w..b.." "mmmmbb..mmmmmmmm"
	"bbbbbbbbjjfb...." "p.pp..gG......mm";

static const char map_0f[] =
	"mmmm!........l.M" "mmmmmmmmllllllll"
	"mmmm!!!!mmmmmmmm" "........!!!!!!!!"
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm" "MMMMmmm.mm!!mmmm"
	"jjjjjjjjjjjjjjjj" "mmmmmmmmmmmmmmmm"
	"...mMm.....mMmmm" "mmmmmmmmmmMmmmmm"
	"mmMmMMMm........" "mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm";

/* State of the decoder within one instruction */
struct walk {
	const uint8_t *code;
	size_t size;
	size_t pos;
	bool is64;
	bool opsize16;
	bool addrsize;
	bool rex_w;
	bool rep;
};

static bool next(struct walk *w, uint8_t *byte)
{
	/* No instruction is longer than 15 bytes. */
	if (w->pos >= w->size || w->pos >= 15)
		return false;
	*byte = w->code[w->pos++];
	return true;
}

static bool peek(const struct walk *w, uint8_t *byte)
{
	if (w->pos >= w->size)
		return false;
	*byte = w->code[w->pos];
	return true;
}

static bool skip(struct walk *w, unsigned int bytes)
{
	w->pos += bytes;
	return w->pos <= w->size && w->pos <= 15;
}

/* Skip the prefixes and set *@opcode to the byte behind them. */
static bool walk_prefixes(struct walk *w, uint8_t *opcode)
{
	while (next(w, opcode)) {
		switch (*opcode) {
		case 0x66:
			w->opsize16 = true;
			break;
		case 0x67:
			w->addrsize = true;
			break;
		case 0xf2:
		case 0xf3:
			w->rep = true;
			break;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
		case 0xf0:
			break;
		default:
			if (!w->is64 || (*opcode & 0xf0) != 0x40)
				return true;
			/* REX is the last prefix. */
			w->rex_w = *opcode & 8;
			return next(w, opcode);
		}
	}
	return false;
}

/* Skip the displacement of 16-bit addressing, which has no SIB byte. */
static bool walk_disp16(struct walk *w, unsigned int mod, unsigned int rm)
{
	if (mod == 1)
		return skip(w, 1);
	if (mod == 2 || (mod == 0 && rm == 6))
		return skip(w, 2);
	return true;
}

static bool walk_modrm(struct walk *w, uint8_t *modrm)
{
	unsigned int mod, rm;
	uint8_t sib;

	if (!next(w, modrm))
		return false;
	mod = *modrm >> 6;
	rm = *modrm & 7;
	if (mod == 3)
		return true;
	if (w->addrsize && !w->is64)
		return walk_disp16(w, mod, rm);
	if (rm == 4) {
		if (!next(w, &sib))
			return false;
		rm = sib & 7;
	}
	if (mod == 1)
		return skip(w, 1);
	if (mod == 2 || rm == 5)
		return skip(w, 4);
	return true;
}

static unsigned int imm_z(const struct walk *w)
{
	return w->opsize16 && !w->rex_w ? 2 : 4;
}

static unsigned int imm_address(const struct walk *w)
{
	if (w->is64)
		return w->addrsize ? 4 : 8;
	return w->addrsize ? 2 : 4;
}

/* Size of the immediate of an opcode of @kind, -1 if @kind is not an instruction */
static int imm_size(const struct walk *w, char kind, uint8_t modrm)
{
	bool test = (modrm & 0x30) == 0;

	switch (kind) {
	case '.': case 'm': case 'l': case 's':
		return 0;
	case 'b': case 'M':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'z': case 'Z':
		return imm_z(w);
	case 'v':
		return w->rex_w ? 8 : imm_z(w);
	case 'j':
		/* 64-bit code has no 16-bit branches. */
		return w->is64 ? 4 : imm_z(w);
	case 'o':
		return imm_address(w);
	case 'f':
		return w->is64 ? -1 : (int)imm_z(w) + 2;
	case 'g':
		return test ? 1 : 0;
	case 'G':
		return test ? imm_z(w) : 0;
	default:
		return -1;
	}
}

/* In 32-bit code LES, LDS and BOUND share the opcodes of VEX and EVEX. */
static bool is_vex(const struct walk *w, uint8_t opcode)
{
	uint8_t byte;

	if (opcode != 0xc4 && opcode != 0xc5 && opcode != 0x62)
		return false;
	return w->is64 || (peek(w, &byte) && byte >= 0xc0);
}

/* Kind of an opcode in map 1 (0F), 2 (0F38), 3 (0F3A), 5 or 6 */
static char kind_in_map(unsigned int map, uint8_t opcode)
{
	switch (map) {
	case 1:
		return map_0f[opcode];
	case 2: case 5: case 6:
		return 'm';
	case 3:
		return 'M';
	default:
		return '!';
	}
}

static bool walk_vex(struct walk *w, uint8_t opcode, char *kind)
{
	unsigned int map = 1;
	uint8_t byte;

	if (!next(w, &byte))
		return false;
	if (opcode == 0xc4)
		map = byte & 0x1f;
	else if (opcode == 0x62)
		map = byte & 7;
	if (!skip(w, opcode == 0xc5 ? 0 : opcode == 0xc4 ? 1 : 2))
		return false;
	if (!next(w, &opcode))
		return false;
	*kind = kind_in_map(map, opcode);
	return true;
}

static bool walk_opcode(struct walk *w, uint8_t opcode, char *kind)
{
	unsigned int map = 1;

	if (is_vex(w, opcode))
		return walk_vex(w, opcode, kind);
	if (opcode != 0x0f) {
		*kind = map_1[opcode];
		return true;
	}
	if (!next(w, &opcode))
		return false;
	if (opcode == 0x38 || opcode == 0x3a) {
		map = opcode == 0x38 ? 2 : 3;
		if (!next(w, &opcode))
			return false;
	}
	*kind = kind_in_map(map, opcode);
	return true;
}

static bool has_modrm(char kind)
{
	return kind == 'm' || kind == 'M' || kind == 'Z' || kind == 'g' ||
	       kind == 'G' || kind == 'l';
}

bool insn_decode(struct insn *insn, const uint8_t *code, size_t size, bool is64)
{
	struct walk w = { .code = code, .size = size, .is64 = is64 };
	uint8_t opcode, modrm = 0xc0;
	char kind;
	int imm;

	if (!walk_prefixes(&w, &opcode) || !walk_opcode(&w, opcode, &kind))
		return false;
	if (has_modrm(kind) && !walk_modrm(&w, &modrm))
		return false;
	imm = imm_size(&w, kind, modrm);
	if (imm < 0 || !skip(&w, imm))
		return false;
	insn->len = w.pos;
	insn->memory = kind == 'o' || kind == 's' ||
		       (has_modrm(kind) && kind != 'l' && modrm < 0xc0);
	insn->repeat = kind == 's' && w.rep;
	return true;
}

ptrdiff_t insn_before(const uint8_t *code, size_t size, size_t end, bool is64, bool in_string)
{
	struct insn last = { 0 }, at_end;
	size_t pos = 0;

	while (pos < end) {
		if (!insn_decode(&last, code + pos, size - pos, is64))
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
	    insn_decode(&at_end, code + end, size - end, is64) && at_end.repeat)
		return end;
	return last.len ? (ptrdiff_t)(end - last.len) : -1;
}
