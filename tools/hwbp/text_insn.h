/* SPDX-License-Identifier: GPL-2.0 */
/* What changed bytes of kernel text mean. */
#ifndef HWBP_TEXT_INSN_H
#define HWBP_TEXT_INSN_H

#include <stddef.h>
#include <stdint.h>

#include "text_names.h"

/*
 * The instruction that @bytes are at @address: "nop", "int3", "jmp schedule+0x10" or
 * "ftrace: call ftrace_caller"; NULL if it is another one, or more than one; to be freed.
 * Like text_names_find(), this invalidates names.
 */
char *text_insn(struct text_names *names, const uint8_t *bytes, size_t len, uint64_t address);

#endif
