// SPDX-License-Identifier: GPL-2.0
/*
 * The files that a process has mapped, as modules of libdwfl.
 *
 * Modules are reported to libdwfl from the executable mappings in /proc/PID/maps and in
 * later PERF_RECORD_MMAP2 records.  Nothing else is read from the process, so places
 * can be described after it has exited.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "refusal.h"
#include "symbols.h"
#include "tasks.h"
#include "util.h"

/* Reads of the maps of a process that is in exec(), one each ten milliseconds */
#define LOADING_TRIES	1000

#define DELETED		" (deleted)"

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
	if (map->fd >= 0)
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

size_t symbols_nr(const struct symbols *syms)
{
	return syms->nr_maps;
}

static bool is_program(const struct symbols *syms, const char *path)
{
	return syms->program && !strcmp(syms->program, path);
}

/*
 * Cut off what /proc appends to the path of a file that has been removed or replaced since
 * it was mapped. Returns false if there is nothing to cut off.
 */
static bool cut_deleted(char *path)
{
	size_t len = strlen(path), cut = strlen(DELETED);

	if (len < cut || strcmp(path + len - cut, DELETED) || !access(path, F_OK))
		return false;
	path[len - cut] = '\0';
	return true;
}

static int open_mapped(const struct symbols *syms, const struct mapped *map, bool deleted)
{
	/* O_NONBLOCK: the path may now name a pipe, and open() would wait. */
	int fd, flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
	char *proc;
	pid_t tid;

	if (!syms->pid)
		return open(map->path, flags);
	tid = tasks_live_thread(syms->pid);
	if (is_program(syms, map->path))
		proc = xasprintf("/proc/%d/exe", tid);
	else if (deleted)
		proc = xasprintf("/proc/%d/map_files/%lx-%lx", tid, (unsigned long)map->start,
				 (unsigned long)map->end);
	else
		proc = xasprintf("/proc/%d/root%s", tid, map->path);
	fd = open(proc, flags);
	free(proc);
	if (fd < 0 && deleted)
		note("%s was replaced after it was mapped: no permission to read its symbols",
		     map->path);
	return fd >= 0 || deleted ? fd : open(map->path, flags);
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
	bool deleted;

	/* "[vdso]", "//anon" and devices have no symbols. */
	if (path[0] != '/' || path[1] == '/' || !strncmp(path, "/dev/", 5))
		return;
	new.path = xstrdup(path);
	deleted = cut_deleted(new.path);
	new.fd = open_mapped(syms, &new, deleted);
	if (new.fd < 0 || !find_bias(new.fd, start, pgoff, &new.bias) ||
	    extend_known(syms, new.path, new.bias, new.start, new.end)) {
		forget_mapped(&new);
		return;
	}
	forget_overlapped(syms, new.start, new.end);
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
	if (syms->program)
		cut_deleted(syms->program);
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
	default:
		refusal_die(&(struct refusal){ .what = REFUSED_MAPS, .pid = pid }, err);
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

Dwfl_Module *symbols_module(struct symbols *syms, size_t i)
{
	if (i >= syms->nr_maps)
		return NULL;
	return dwfl_addrmodule(symbols_dwfl(syms), syms->maps[i].start);
}

const char *symbols_path(Dwfl_Module *mod)
{
	return dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

bool symbols_in_program(const struct symbols *syms, Dwfl_Module *mod)
{
	return is_program(syms, symbols_path(mod));
}

bool symbols_read(const struct symbols *syms, uint64_t address, void *buf, size_t len)
{
	char *name = xasprintf("/proc/%d/mem", tasks_live_thread(syms->pid));
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0 && pread(fd, buf, len, address) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	free(name);
	return done;
}
