// SPDX-License-Identifier: GPL-2.0
/*
 * Types of the kernel, from its BTF.
 *
 * Each file has an array of types, which refer to each other by number, and strings. The
 * numbers and strings of a module continue those of the kernel itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf.h"
#include "util.h"

#define DIRECTORY	"/sys/kernel/btf"

/* No program nests types as deep. */
#define MAX_DEPTH	64

/**
 * struct btf - one file
 * @base: the file that it continues, or NULL
 * @next: next file
 * @types: its types; the first one has the number @first
 * @nr: number of @types
 * @strings: its strings; the first byte has the number @first_string
 */
struct btf {
	const struct btf *base;
	struct btf *next;
	const struct btf_type **types;
	uint32_t first;
	size_t nr;
	size_t capacity;
	const char *strings;
	uint32_t first_string;
	uint32_t strings_len;
};

static const char *only_file;
static struct btf *files;

static const struct btf_ref none;

/* ---- files ---- */

/* Number of bytes that follow a type */
static size_t rest_of(const struct btf_type *type)
{
	size_t nr = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return nr * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return nr * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return nr * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return nr * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return nr * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

/* The contents of a file, NULL if it cannot be read */
static char *read_file(const char *path, size_t *len)
{
	FILE *in = fopen(path, "re"), *out;
	char buf[65536], *bytes = NULL;
	size_t n;

	if (!in)
		return NULL;
	out = open_memstream(&bytes, len);
	while (out && (n = fread(buf, 1, sizeof(buf), in)))
		fwrite(buf, 1, n, out);
	fclose(in);
	if (!out || fclose(out))
		die("out of memory");
	return bytes;
}

static struct btf *load(const char *path, const struct btf *base)
{
	struct btf *btf = xzalloc(sizeof(*btf));
	const struct btf_header *header;
	const char *type, *end;
	size_t len;
	char *bytes = read_file(path, &len);

	header = (const struct btf_header *)bytes;
	if (!bytes || len < sizeof(*header) || header->magic != BTF_MAGIC ||
	    (uint64_t)header->hdr_len + header->type_off + header->type_len > len ||
	    (uint64_t)header->hdr_len + header->str_off + header->str_len > len)
		return NULL;
	btf->base = base;
	btf->first = base ? base->first + base->nr : 1;
	btf->first_string = base ? base->first_string + base->strings_len : 0;
	btf->strings = bytes + header->hdr_len + header->str_off;
	btf->strings_len = header->str_len;
	type = bytes + header->hdr_len + header->type_off;
	for (end = type + header->type_len; type < end;
	     type += sizeof(struct btf_type) + rest_of((const struct btf_type *)type)) {
		GROW(btf->types, btf->nr, btf->capacity);
		btf->types[btf->nr++] = (const struct btf_type *)type;
	}
	return btf;
}

/* The kernel first, then its modules */
static void load_all(void)
{
	struct btf *kernel = load(only_file ? only_file : DIRECTORY "/vmlinux", NULL), *module;
	const struct dirent *entry;
	DIR *dir;

	files = kernel;
	dir = kernel && !only_file ? opendir(DIRECTORY) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "vmlinux"))
			continue;
		module = load(xasprintf(DIRECTORY "/%s", entry->d_name), kernel);
		if (!module)
			continue;
		module->next = kernel->next;
		kernel->next = module;
	}
	if (dir)
		closedir(dir);
}

void btf_use(const char *path)
{
	only_file = path;
}

bool btf_exists(void)
{
	if (!files)
		load_all();
	return files;
}

/* ---- types ---- */

static const struct btf_type *get(struct btf_ref ref)
{
	const struct btf *btf = ref.btf;

	while (btf && ref.id < btf->first)
		btf = btf->base;
	return btf && ref.id - btf->first < btf->nr ? btf->types[ref.id - btf->first] : NULL;
}

static unsigned int kind_of(struct btf_ref ref)
{
	const struct btf_type *type = get(ref);

	return type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;
}

static const char *text(const struct btf *btf, uint32_t offset)
{
	while (btf && offset < btf->first_string)
		btf = btf->base;
	return btf && offset - btf->first_string < btf->strings_len ?
	       btf->strings + (offset - btf->first_string) : "";
}

static struct btf_ref refer(struct btf_ref ref, uint32_t id)
{
	return (struct btf_ref){ ref.btf, id };
}

/* The type without typedefs and qualifiers */
static struct btf_ref peel(struct btf_ref ref)
{
	unsigned int depth;

	for (depth = 0; depth < MAX_DEPTH; depth++) {
		switch (kind_of(ref)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			ref.id = get(ref)->type;
			break;
		default:
			return ref;
		}
	}
	return none;
}

/* The type called @name of one of the kinds in the bit mask @kinds */
static struct btf_ref find(const char *name, unsigned int kinds)
{
	const struct btf *btf;
	size_t i;

	for (btf = btf_exists() ? files : NULL; btf; btf = btf->next) {
		for (i = 0; i < btf->nr; i++) {
			if (1U << BTF_INFO_KIND(btf->types[i]->info) & kinds &&
			    !strcmp(text(btf, btf->types[i]->name_off), name))
				return (struct btf_ref){ btf, btf->first + i };
		}
	}
	return none;
}

struct btf_ref btf_structure(const char *name)
{
	return find(name, 1U << BTF_KIND_STRUCT | 1U << BTF_KIND_UNION);
}

struct btf_ref btf_parameter(const char *name, unsigned int i)
{
	struct btf_ref ref = find(name, 1U << BTF_KIND_FUNC);
	const struct btf_type *proto;

	proto = ref.btf ? get(refer(ref, get(ref)->type)) : NULL;
	if (!proto || BTF_INFO_KIND(proto->info) != BTF_KIND_FUNC_PROTO ||
	    i >= BTF_INFO_VLEN(proto->info))
		return none;
	return refer(ref, ((const struct btf_param *)(proto + 1))[i].type);
}

struct btf_ref btf_target(struct btf_ref pointer)
{
	struct btf_ref ref = peel(pointer);

	return kind_of(ref) == BTF_KIND_PTR ? peel(refer(ref, get(ref)->type)) : none;
}

struct btf_ref btf_member(struct btf_ref structure, const char *name, uint64_t *bits,
			  unsigned int *bit_size)
{
	struct btf_ref ref = peel(structure), found = none;
	const struct btf_member *member;
	const struct btf_type *type;
	size_t i;

	if (kind_of(ref) != BTF_KIND_STRUCT && kind_of(ref) != BTF_KIND_UNION)
		return none;
	type = get(ref);
	member = (const struct btf_member *)(type + 1);
	for (i = 0; i < BTF_INFO_VLEN(type->info) && !found.btf; i++, member++) {
		const char *own = text(ref.btf, member->name_off);
		bool packed = BTF_INFO_KFLAG(type->info);

		if (!strcmp(own, name)) {
			found = refer(ref, member->type);
			*bit_size = packed ? BTF_MEMBER_BITFIELD_SIZE(member->offset) : 0;
		} else if (!*own) {
			found = btf_member(refer(ref, member->type), name, bits, bit_size);
		}
		if (found.btf)
			*bits += packed ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;
	}
	return found;
}

/* ---- conversion ---- */

static void set_enumerators(struct type *type, struct btf_ref ref)
{
	const struct btf_type *of = get(ref);
	const struct btf_enum *entry = (const struct btf_enum *)(of + 1);
	size_t i;

	type->kind = TYPE_ENUM;
	type->is_signed = BTF_INFO_KFLAG(of->info);
	type->nr_enumerators = BTF_INFO_VLEN(of->info);
	type->enumerators = xzalloc((type->nr_enumerators + 1) * sizeof(*type->enumerators));
	for (i = 0; i < type->nr_enumerators; i++) {
		type->enumerators[i].name = xstrdup(text(ref.btf, entry[i].name_off));
		type->enumerators[i].value = entry[i].val;
		if (!type->is_signed)
			type->enumerators[i].value = (uint32_t)entry[i].val;
	}
}

static void set_integer(struct type *type, uint32_t how)
{
	type->kind = BTF_INT_ENCODING(how) & BTF_INT_BOOL ? TYPE_BOOL : TYPE_INT;
	/* BTF does not tell characters from small numbers, but "char" is their name. */
	if (!strcmp(type->name, "char"))
		type->kind = TYPE_CHAR;
	type->is_signed = BTF_INT_ENCODING(how) & BTF_INT_SIGNED;
}

struct type *btf_type(struct btf_ref ref)
{
	struct type *type = xzalloc(sizeof(*type));
	const struct btf_type *of;

	ref = peel(ref);
	of = get(ref);
	type->name = xstrdup(of ? text(ref.btf, of->name_off) : "void");
	switch (kind_of(ref)) {
	case BTF_KIND_INT:
		set_integer(type, *(const uint32_t *)(of + 1));
		type->size = of->size;
		break;
	case BTF_KIND_ENUM:
		set_enumerators(type, ref);
		type->size = of->size;
		break;
	case BTF_KIND_PTR:
		type->kind = TYPE_POINTER;
		type->size = sizeof(void *);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		type->size = of->size;
		break;
	}
	return type;
}
