// SPDX-License-Identifier: GPL-2.0
/* Describe addresses: the instruction with its function and source line, or the variable. */
#define _GNU_SOURCE
#include <dwarf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "debuginfo.h"
#include "demangle.h"
#include "symbols.h"
#include "util.h"

/* Code of @mod from address @from to the end of the section, *@size bytes */
static const uint8_t *module_code(Dwfl_Module *mod, uint64_t from, size_t *size, bool *is64)
{
	GElf_Addr elf_addr, bias, offset;
	GElf_Ehdr ehdr;
	Elf_Data *data;
	Elf_Scn *scn;
	Elf *elf;

	elf = dwfl_module_getelf(mod, &bias);
	if (!elf || !gelf_getehdr(elf, &ehdr))
		return NULL;
	*is64 = ehdr.e_ident[EI_CLASS] == ELFCLASS64;
	elf_addr = from;
	scn = dwfl_module_address_section(mod, &elf_addr, &bias);
	data = scn ? elf_rawdata(scn, NULL) : NULL;
	/* dwfl_module_address_section() made the address relative to the section. */
	offset = elf_addr;
	if (!data || !data->d_buf || offset >= data->d_size)
		return NULL;
	*size = data->d_size - offset;
	return (const uint8_t *)data->d_buf + offset;
}

/*
 * Find the compilation unit of @addr, even if the file has no index (.debug_aranges):
 * not all compilers write one.
 */
static Dwarf_Die *unit_at(Dwfl_Module *mod, uint64_t addr, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(mod, addr, bias);

	if (cu)
		return cu;
	while ((cu = dwfl_module_nextcu(mod, cu, bias))) {
		if (dwarf_haspc(cu, addr - *bias) == 1)
			return cu;
	}
	return NULL;
}

/* Find the line of @addr and the first address of its row in the line table. */
static Dwarf_Line *line_at(Dwfl_Module *mod, uint64_t addr, Dwarf_Die **cu, Dwarf_Addr *start)
{
	Dwarf_Line *line;
	Dwarf_Addr bias;

	*cu = unit_at(mod, addr, &bias);
	line = *cu ? dwarf_getsrc_die(*cu, addr - bias) : NULL;
	if (!line || dwarf_lineaddr(line, start))
		return NULL;
	*start += bias;
	return line;
}

/* Find the start of an instruction before @addr: start of a line or of a function. */
static bool known_start(Dwfl_Module *mod, uint64_t addr, Dwarf_Addr *start)
{
	Dwarf_Die *cu;
	GElf_Off off;
	GElf_Sym sym;

	if (line_at(mod, addr, &cu, start))
		return true;
	if (!dwfl_module_addrinfo(mod, addr, &off, &sym, NULL, NULL, NULL))
		return false;
	*start = addr - off;
	return true;
}

static bool is_function_start(Dwfl_Module *mod, uint64_t addr)
{
	GElf_Off off;
	GElf_Sym sym;

	return dwfl_module_addrinfo(mod, addr, &off, &sym, NULL, NULL, NULL) && !off &&
	       GELF_ST_TYPE(sym.st_info) == STT_FUNC;
}

/*
 * Find the instruction that made an access reported at @ip. Decoding starts at the
 * start of a line or function; without these, return @ip - 1, its last byte.
 */
static uint64_t step_back(Dwfl_Module *mod, uint64_t ip, bool in_string)
{
	const uint8_t *code;
	ptrdiff_t offset;
	Dwarf_Addr start;
	size_t size;
	bool is64;

	/* No instruction ends at a function's start: a jump or call made the access. */
	if (is_function_start(mod, ip))
		return ip;
	if (!known_start(mod, ip - 1, &start))
		return ip - 1;
	code = module_code(mod, start, &size, &is64);
	if (!code || ip - start > size)
		return ip - 1;
	offset = access_before(code, size, ip - start, is64, in_string);
	return offset < 0 ? ip - 1 : start + offset;
}

/* Name of the function that is inlined at @addr, NULL if there is none */
static const char *inlined_at(Dwfl_Module *mod, uint64_t addr)
{
	Dwarf_Die *cu, full, *scopes = NULL;
	const char *name = NULL;
	Dwarf_Addr bias;
	int i, nr = 0;

	cu = unit_at(mod, addr, &bias);
	if (cu) {
		/* The skeleton of a split unit has lines, but no functions. */
		debuginfo_full_unit(cu, &full);
		nr = dwarf_getscopes(&full, addr - bias, &scopes);
	}
	for (i = 0; i < nr; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_inlined_subroutine)
			name = dwarf_diename(&scopes[i]);
		if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram)
			break;
	}
	free(scopes);
	return name;
}

static char *source_of(Dwfl_Module *mod, uint64_t addr)
{
	Dwarf_Attribute attr;
	const char *file, *dir;
	Dwarf_Addr start;
	Dwarf_Line *line;
	Dwarf_Die *cu;
	size_t len;
	int nr;

	line = line_at(mod, addr, &cu, &start);
	file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (!file || dwarf_lineno(line, &nr) || nr <= 0)
		return xstrdup("");
	/* Print a path relative to the directory of compilation. */
	dir = dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &attr));
	len = dir ? strlen(dir) : 0;
	if (len && !strncmp(file, dir, len) && file[len] == '/')
		file += len + 1;
	if (!strncmp(file, "./", 2))
		file += 2;
	return xasprintf("%s:%d", file, nr);
}

void symbols_place(struct symbols *syms, uint64_t ip, enum back back, struct place *place)
{
	uint64_t inside = back == BACK_NONE ? ip : ip - 1;
	Dwfl_Module *mod = dwfl_addrmodule(symbols_dwfl(syms), inside);
	const char *name, *inlined, *lib = "";
	char *tail;
	GElf_Off off;
	GElf_Sym sym;

	memset(place, 0, sizeof(*place));
	if (!mod) {
		place->where = xasprintf("%#lx", (unsigned long)ip);
		place->source = xstrdup("");
		return;
	}
	if (back != BACK_NONE)
		ip = step_back(mod, ip, back == BACK_STRING);
	if (!symbols_in_program(syms, mod))
		lib = base_name(symbols_path(mod));
	inlined = inlined_at(mod, ip);
	tail = xasprintf("%s%s%s%s%s%s", inlined ? " (inlined " : "", inlined ? inlined : "",
			 inlined ? ")" : "", *lib ? " [" : "", lib, *lib ? "]" : "");
	name = dwfl_module_addrinfo(mod, ip, &off, &sym, NULL, NULL, NULL);
	if (name) {
		place->function = demangle(name);
		if (place->function)
			place->mangled = xstrdup(name);
		else
			place->function = xstrdup(name);
		place->where = xasprintf("%s+%#lx%s", place->function, (unsigned long)off, tail);
	} else {
		GElf_Addr rel = ip;

		dwfl_module_relocate_address(mod, &rel);
		place->where = xasprintf("[%s+%#lx]", base_name(symbols_path(mod)),
					 (unsigned long)rel);
	}
	place->source = source_of(mod, ip);
	free(tail);
}

char *symbols_name(struct symbols *syms, uint64_t address)
{
	Dwfl_Module *mod = dwfl_addrmodule(symbols_dwfl(syms), address);
	char offset[32] = "", *text, *lib, *plain;
	GElf_Addr rel = address;
	const char *name;
	GElf_Off off;
	GElf_Sym sym;

	if (!mod)
		return NULL;
	name = dwfl_module_addrinfo(mod, address, &off, &sym, NULL, NULL, NULL);
	/* A symbol without a size covers only its own address. */
	if (!name || (off && off >= sym.st_size)) {
		dwfl_module_relocate_address(mod, &rel);
		return xasprintf("[%s+%#lx]", base_name(symbols_path(mod)), (unsigned long)rel);
	}
	if (off)
		snprintf(offset, sizeof(offset), "+%#lx", (unsigned long)off);
	lib = symbols_in_program(syms, mod) ? xstrdup("") :
	      xasprintf(" [%s]", base_name(symbols_path(mod)));
	/* Cut off a version, as in "stdout@GLIBC_2.2.5". */
	plain = demangle(name);
	if (!plain)
		plain = xasprintf("%.*s", (int)strcspn(name, "@"), name);
	text = xasprintf("%s%s%s", plain, offset, lib);
	free(plain);
	free(lib);
	return text;
}
