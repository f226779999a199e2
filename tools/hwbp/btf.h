/* SPDX-License-Identifier: GPL-2.0 */
/* Types of the kernel, from its BTF. */
#ifndef HWBP_BTF_H
#define HWBP_BTF_H

#include <stdbool.h>
#include <stdint.h>

#include "type.h"

struct btf;

/* A type of one of the files in /sys/kernel/btf; @btf is NULL if there is none. */
struct btf_ref {
	const struct btf *btf;
	uint32_t id;
};

/* Use the file @path instead of those of the kernel. */
void btf_use(const char *path);

/* Returns true if the kernel has BTF. */
bool btf_exists(void);

/* The structure or union called @name, and parameter @i, from 0, of the function @name */
struct btf_ref btf_structure(const char *name);
struct btf_ref btf_parameter(const char *name, unsigned int i);

/* What a pointer points at */
struct btf_ref btf_target(struct btf_ref pointer);

/*
 * The type of the member @name, none if there is no such member. Adds its place, in bits, to
 * *@bits, and sets *@bit_size, which is 0 unless it is a bit-field.
 */
struct btf_ref btf_member(struct btf_ref structure, const char *name, uint64_t *bits,
			  unsigned int *bit_size);

/*
 * A number, enumeration or pointer. Of other types the kind is TYPE_UNKNOWN, and the size is
 * 0 if it is not known. It is never freed.
 */
struct type *btf_type(struct btf_ref ref);

#endif
