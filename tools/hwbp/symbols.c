// SPDX-License-Identifier: GPL-2.0
/*
 * Symbols of the program and its libraries, with libdwfl.
 *
 * Modules are reported to libdwfl from the executable mappings in /proc/PID/maps and in
 * later PERF_RECORD_MMAP2 records.  Nothing else is read from the process, so places
 * can be described after it has exited.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "access.h"
#include "symbols.h"
#include "tasks.h"
#include "util.h"

/* Reads of the maps of a process that is in exec(), one each ten milliseconds */
#define LOADING_TRIES	1000

/**
 * struct mapped - one ELF file in the address space
 * @path: path of the file
 * @fd: the file, kept open because @path may name another file later
 * @reported: the file has been reported to libdwfl
 * @start: first address of the executable mapping
 * @end: first address behind the mapping
 * @bias: difference between addresses in memory and in the file
 */
struct mapped {
	char *path;
	int fd;
	bool reported;
	uint64_t start;
	uint64_t end;
	uint64_t bias;
};

/**
 * struct symbols - one address space
 * @dwfl: libdwfl handle
 * @stale: some of @maps have not been reported to @dwfl
 * @removed: a file that was reported to @dwfl is no longer mapped
 * @program: path of the program
 * @pid: process or thread of it; files are looked up below its /proc/PID/root first
 * @maps: mapped files, the program first
 * @nr_maps: number of @maps
 * @capacity: capacity of @maps
 */
struct symbols {
	Dwfl *dwfl;
	bool stale;
	bool removed;
	char *program;
	pid_t pid;
	struct mapped *maps;
	size_t nr_maps;
	size_t capacity;
};

static char *debuginfo_path;

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &debuginfo_path,
};

/* ---- mappings ---- */

static Dwfl *new_dwfl(void)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		die("libdwfl: %s", dwfl_errmsg(-1));
	return dwfl;
}

struct symbols *symbols_new(void)
{
	struct symbols *syms = xzalloc(sizeof(*syms));

	elf_version(EV_CURRENT);
	syms->dwfl = new_dwfl();
	return syms;
}

static void forget_mapped(struct mapped *map)
{
	close(map->fd);
	free(map->path);
}

void symbols_free(struct symbols *syms)
{
	size_t i;

	if (!syms)
		return;
	dwfl_end(syms->dwfl);
	for (i = 0; i < syms->nr_maps; i++)
		forget_mapped(&syms->maps[i]);
	free(syms->maps);
	free(syms->program);
	free(syms);
}

const char *symbols_program(const struct symbols *syms)
{
	return syms->program ? syms->program : "?";
}

unsigned int symbols_nr_libraries(const struct symbols *syms)
{
	return syms->nr_maps > 1 ? syms->nr_maps - 1 : 0;
}

static bool is_program(const struct symbols *syms, const char *path)
{
	return syms->program && !strcmp(syms->program, path);
}

static int open_mapped(const struct symbols *syms, const char *path)
{
	/* O_NONBLOCK: the path may now name a pipe, and open() would wait. */
	int fd, flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	char *proc;
	pid_t tid;

	if (!syms->pid)
		return open(path, flags);
	tid = tasks_live_thread(syms->pid);
	proc = is_program(syms, path) ? xasprintf("/proc/%d/exe", tid) :
					xasprintf("/proc/%d/root%s", tid, path);
	fd = open(proc, flags);
	free(proc);
	return fd >= 0 ? fd : open(path, flags);
}

/* Find the bias of a file that is mapped at @start from offset @pgoff on. */
static bool find_bias(int fd, uint64_t start, uint64_t pgoff, uint64_t *bias)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool found = false;
	size_t i, nr;

	if (!elf || elf_getphdrnum(elf, &nr))
		nr = 0;
	for (i = 0; i < nr && !found; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X))
			continue;
		/* The mapping starts at the page that contains the start of the segment. */
		if (pgoff < (phdr.p_offset & ~0xfffULL) ||
		    pgoff >= phdr.p_offset + phdr.p_filesz)
			continue;
		*bias = start - (phdr.p_vaddr - phdr.p_offset + pgoff);
		found = true;
	}
	elf_end(elf);
	return found;
}

static void forget_overlapped(struct symbols *syms, uint64_t start, uint64_t end)
{
	size_t i = 0;

	while (i < syms->nr_maps) {
		struct mapped *map = &syms->maps[i];

		if (map->end <= start || map->start >= end) {
			i++;
			continue;
		}
		syms->removed |= map->reported;
		forget_mapped(map);
		memmove(map, map + 1, (--syms->nr_maps - i) * sizeof(*map));
	}
}

/* Extend the mapping of a known file. Returns false if the file is not known. */
static bool extend_known(struct symbols *syms, const char *path, uint64_t bias,
			 uint64_t start, uint64_t end)
{
	size_t i;

	for (i = 0; i < syms->nr_maps; i++) {
		struct mapped *map = &syms->maps[i];

		if (map->bias != bias || strcmp(map->path, path))
			continue;
		if (start < map->start)
			map->start = start;
		if (end > map->end)
			map->end = end;
		return true;
	}
	return false;
}

static void add_mapped(struct symbols *syms, struct mapped *new)
{
	GROW(syms->maps, syms->nr_maps, syms->capacity);
	if (is_program(syms, new->path)) {
		memmove(syms->maps + 1, syms->maps, syms->nr_maps * sizeof(*new));
		syms->maps[0] = *new;
	} else {
		syms->maps[syms->nr_maps] = *new;
	}
	syms->nr_maps++;
	syms->stale = true;
}

void symbols_map(struct symbols *syms, const char *path, uint64_t start, uint64_t len,
		 uint64_t pgoff)
{
	struct mapped new = { .start = start, .end = start + len };

	/* "[vdso]", "//anon" and devices have no symbols. */
	if (path[0] != '/' || path[1] == '/' || !strncmp(path, "/dev/", 5))
		return;
	new.fd = open_mapped(syms, path);
	if (new.fd < 0)
		return;
	if (!find_bias(new.fd, start, pgoff, &new.bias) ||
	    extend_known(syms, path, new.bias, new.start, new.end)) {
		close(new.fd);
		return;
	}
	forget_overlapped(syms, new.start, new.end);
	new.path = xstrdup(path);
	add_mapped(syms, &new);
}

/* Path of the program, as in /proc/PID/maps */
static char *read_exe(pid_t tid)
{
	char *link = xasprintf("/proc/%d/exe", tid);
	char path[PATH_MAX];
	ssize_t n = readlink(link, path, sizeof(path) - 1);

	free(link);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	return xstrdup(path);
}

/*
 * Returns 0 if there are files with symbols, EAGAIN if the process has a program and has
 * mapped no file to execute, ENOEXEC if such files cannot be read, ESRCH if it has no
 * program, or an errno of open().
 */
static int read_maps(struct symbols *syms, pid_t pid)
{
	pid_t tid = tasks_live_thread(pid);
	char *name = xasprintf("/proc/%d/maps", tid);
	char *line = NULL;
	bool files = false;
	size_t size = 0;
	FILE *f;
	int err;

	syms->pid = pid;
	free(syms->program);
	syms->program = read_exe(tid);
	f = fopen(name, "re");
	err = f ? 0 : errno;
	free(name);
	if (err)
		return err;
	while (getline(&line, &size, f) > 0) {
		unsigned long start, end, pgoff;
		int path = 0;
		char perm[5];

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %*u %n", &start, &end, perm,
			   &pgoff, &path) < 4 || !path || perm[2] != 'x')
			continue;
		files |= line[path] == '/';
		symbols_map(syms, line + path, start, end - start, pgoff);
	}
	free(line);
	fclose(f);
	if (syms->nr_maps)
		return 0;
	if (files)
		return ENOEXEC;
	return syms->program ? EAGAIN : ESRCH;
}

static void die_without_maps(pid_t pid, int err)
{
	switch (err) {
	case EAGAIN:
		die("process %d has no program: no executable file is mapped", pid);
	case ENOEXEC:
		die("none of the files that process %d has mapped can be read", pid);
	case ENOENT:
	case ESRCH:
		die("process %d has no program: it has exited or is a kernel thread", pid);
	case EACCES:
	case EPERM:
		die("no permission to read the maps of process %d: %s", pid, strerror(err));
	default:
		die("cannot read the maps of process %d: %s", pid, strerror(err));
	}
}

void symbols_read_maps(struct symbols *syms, pid_t pid)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	int tries, err;

	/* In exec() the process has a program, but no maps, or only a stack. */
	for (tries = LOADING_TRIES; (err = read_maps(syms, pid)) == EAGAIN && tries; tries--)
		nanosleep(&moment, NULL);
	if (err)
		die_without_maps(pid, err);
}

bool symbols_try_maps(struct symbols *syms, pid_t pid)
{
	return !read_maps(syms, pid);
}

/* ---- libdwfl ---- */

static void report(struct symbols *syms, struct mapped *map)
{
	int fd;

	if (map->reported)
		return;
	map->reported = true;
	fd = dup(map->fd);
	if (fd < 0)
		return;
	if (!dwfl_report_elf(syms->dwfl, map->path, map->path, fd, map->bias, true))
		close(fd);
}

/* libdwfl cannot remove a single module: make a new handle, and report all again. */
static void start_over(struct symbols *syms)
{
	size_t i;

	dwfl_end(syms->dwfl);
	syms->dwfl = new_dwfl();
	for (i = 0; i < syms->nr_maps; i++)
		syms->maps[i].reported = false;
	syms->removed = false;
}

Dwfl *symbols_dwfl(struct symbols *syms)
{
	size_t i;

	if (!syms->stale)
		return syms->dwfl;
	syms->stale = false;
	if (syms->removed)
		start_over(syms);
	dwfl_report_begin_add(syms->dwfl);
	for (i = 0; i < syms->nr_maps; i++)
		report(syms, &syms->maps[i]);
	dwfl_report_end(syms->dwfl, NULL, NULL);
	return syms->dwfl;
}

static Dwfl_Module *module_of(struct symbols *syms, const struct mapped *map)
{
	return dwfl_addrmodule(symbols_dwfl(syms), map->start);
}

static const char *module_path(Dwfl_Module *mod)
{
	return dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

/* ---- names to addresses ---- */

/**
 * struct search - a search of the symbol tables
 * @file: if set, find only symbols of this source file or module
 * @name: name to find
 * @numbered: match "name.1" instead of "name"
 * @list: matching symbols
 */
struct search {
	const char *file;
	const char *name;
	bool numbered;
	struct symbol_list *list;
};

static bool name_matches(const struct search *search, const char *name)
{
	size_t len = strlen(search->name);

	if (strncmp(name, search->name, len))
		return false;
	name += len;
	if (search->numbered)
		return name[0] == '.' && name[1] && !name[1 + strspn(name + 1, "0123456789")];
	/* A version may follow: "stdout@GLIBC_2.2.5". */
	return !name[0] || name[0] == '@';
}

static bool file_matches(const struct search *search, const char *file, const char *module)
{
	return !search->file || !strcmp(search->file, file) || !strcmp(search->file, module);
}

static bool is_place(const GElf_Sym *sym, GElf_Word shndx)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	if (shndx == SHN_UNDEF || shndx == SHN_COMMON)
		return false;
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_TLS || type == STT_GNU_IFUNC;
}

static void add_symbol(struct symbol_list *list, const struct symbol *new)
{
	size_t i;

	/* Skip aliases: symbols of the same type and address. */
	for (i = 0; i < list->nr; i++) {
		struct symbol *old = &list->entries[i];

		if (old->address != new->address || old->type != new->type)
			continue;
		if (!old->size)
			old->size = new->size;
		return;
	}
	GROW(list->entries, list->nr, list->capacity);
	list->entries[list->nr] = *new;
	list->entries[list->nr].name = xstrdup(new->name);
	list->entries[list->nr].file = xstrdup(new->file);
	list->nr++;
}

static void search_module(const struct search *search, Dwfl_Module *mod)
{
	const char *module = base_name(module_path(mod));
	int i, nr = dwfl_module_getsymtab(mod);
	const char *file = NULL;

	for (i = 1; i < nr; i++) {
		GElf_Word shndx;
		GElf_Addr addr;
		GElf_Sym sym;
		const char *name = dwfl_module_getsym_info(mod, i, &sym, &addr, &shndx,
							   NULL, NULL);
		bool local = GELF_ST_BIND(sym.st_info) == STB_LOCAL;
		struct symbol new;

		if (!name)
			continue;
		if (GELF_ST_TYPE(sym.st_info) == STT_FILE)
			file = base_name(name);
		if (!name_matches(search, name) || !is_place(&sym, shndx))
			continue;
		new.module = mod;
		new.name = (char *)name;
		new.file = (char *)(local && file && *file ? file : module);
		new.address = addr;
		new.size = sym.st_size;
		new.type = GELF_ST_TYPE(sym.st_info);
		if (file_matches(search, new.file, module))
			add_symbol(search->list, &new);
	}
}

static void search_scope(struct symbols *syms, enum scope scope, const struct search *search)
{
	size_t i;

	for (i = 0; i < syms->nr_maps; i++) {
		bool program = is_program(syms, syms->maps[i].path);
		Dwfl_Module *mod;

		if (program != (scope == SCOPE_PROGRAM))
			continue;
		mod = module_of(syms, &syms->maps[i]);
		if (mod)
			search_module(search, mod);
	}
}

void symbols_find(struct symbols *syms, enum scope scope, const char *file,
		  const char *name, struct symbol_list *list)
{
	struct search search = { .file = file, .name = name, .list = list };

	search_scope(syms, scope, &search);
}

bool symbols_find_numbered(struct symbols *syms, const char *name, struct symbol *sym)
{
	struct symbol_list list = { 0 };
	struct search search = { .name = name, .numbered = true, .list = &list };

	search_scope(syms, SCOPE_PROGRAM, &search);
	if (list.nr)
		*sym = list.entries[0];
	return list.nr > 0;
}

/* ---- addresses to names ---- */

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
	Dwarf_Die *cu, *scopes = NULL;
	const char *name = NULL;
	Dwarf_Addr bias;
	int i, nr;

	cu = unit_at(mod, addr, &bias);
	nr = cu ? dwarf_getscopes(cu, addr - bias, &scopes) : 0;
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
	if (!is_program(syms, module_path(mod)))
		lib = base_name(module_path(mod));
	inlined = inlined_at(mod, ip);
	tail = xasprintf("%s%s%s%s%s%s", inlined ? " (inlined " : "", inlined ? inlined : "",
			 inlined ? ")" : "", *lib ? " [" : "", lib, *lib ? "]" : "");
	name = dwfl_module_addrinfo(mod, ip, &off, &sym, NULL, NULL, NULL);
	if (name) {
		place->where = xasprintf("%s+%#lx%s", name, (unsigned long)off, tail);
		place->function = xstrdup(name);
	} else {
		GElf_Addr rel = ip;

		dwfl_module_relocate_address(mod, &rel);
		place->where = xasprintf("[%s+%#lx]", base_name(module_path(mod)),
					 (unsigned long)rel);
	}
	place->source = source_of(mod, ip);
	free(tail);
}

char *symbols_name(struct symbols *syms, uint64_t address)
{
	Dwfl_Module *mod = dwfl_addrmodule(symbols_dwfl(syms), address);
	char offset[32] = "", *text, *lib;
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
		return xasprintf("[%s+%#lx]", base_name(module_path(mod)), (unsigned long)rel);
	}
	if (off)
		snprintf(offset, sizeof(offset), "+%#lx", (unsigned long)off);
	lib = is_program(syms, module_path(mod)) ? xstrdup("") :
	      xasprintf(" [%s]", base_name(module_path(mod)));
	/* Cut off a version, as in "stdout@GLIBC_2.2.5". */
	text = xasprintf("%.*s%s%s", (int)strcspn(name, "@"), name, offset, lib);
	free(lib);
	return text;
}
