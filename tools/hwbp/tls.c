// SPDX-License-Identifier: GPL-2.0
/*
 * Thread-local variables.
 *
 * The storage of the program is below the address in FS. That of a library is at a fixed
 * distance of FS, too, or it is found in the vector of the thread by the number of the
 * library. The dynamic loader has written the distance or the number to the places that
 * the relocations of the library name.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "tls.h"
#include "util.h"

/* Size of an entry of the vector of the C library */
#define VECTOR_ENTRY	16

static uint64_t thread_pointer(pid_t tid)
{
	struct user_regs_struct regs;
	int err, status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		die("cannot find the thread-local variables of thread %d: ptrace: %s", tid,
		    strerror(errno));
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		die("thread %d has exited", tid);
	err = ptrace(PTRACE_GETREGS, tid, 0, &regs) ? errno : 0;
	/* A signal that has stopped the thread in the meantime is delivered. */
	ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	if (err)
		die("cannot read the registers of thread %d: %s", tid, strerror(err));
	return regs.fs_base;
}

/* Distance of the storage of the program from the thread pointer */
static uint64_t program_offset(Elf *elf)
{
	size_t i, nr;

	if (elf_getphdrnum(elf, &nr))
		nr = 0;
	for (i = 0; i < nr; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, i, &phdr) && phdr.p_type == PT_TLS)
			return -((phdr.p_memsz + phdr.p_align - 1) & -phdr.p_align);
	}
	die("the program has no thread-local storage");
}

/**
 * struct library - what the loader has written for a library
 * @syms: symbols of the process
 * @bias: difference between addresses in memory and in the file
 * @number: its number, 0 if there is none
 * @fixed: its storage is at a fixed distance from the thread pointer
 * @offset: that distance
 */
struct library {
	struct symbols *syms;
	GElf_Addr bias;
	uint64_t number;
	bool fixed;
	uint64_t offset;
};

static void use_relocation(struct library *lib, const GElf_Rela *rela, const GElf_Sym *sym)
{
	bool own = !GELF_R_SYM(rela->r_info) || sym->st_shndx != SHN_UNDEF;
	uint64_t word;

	if (!own || !symbols_read(lib->syms, rela->r_offset + lib->bias, &word, sizeof(word)))
		return;
	if (GELF_R_TYPE(rela->r_info) == R_X86_64_DTPMOD64)
		lib->number = word;
	if (GELF_R_TYPE(rela->r_info) != R_X86_64_TPOFF64)
		return;
	lib->fixed = true;
	lib->offset = word - rela->r_addend - (GELF_R_SYM(rela->r_info) ? sym->st_value : 0);
}

static void read_relocations(struct library *lib, Elf *elf)
{
	Elf_Data *data, *symbols;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Rela rela;
	GElf_Sym sym;
	int i;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA || !shdr.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		symbols = elf_getdata(elf_getscn(elf, shdr.sh_link), NULL);
		for (i = 0; data && i < (int)(shdr.sh_size / shdr.sh_entsize); i++) {
			memset(&sym, 0, sizeof(sym));
			if (!gelf_getrela(data, i, &rela))
				continue;
			if (GELF_R_SYM(rela.r_info) &&
			    !gelf_getsym(symbols, GELF_R_SYM(rela.r_info), &sym))
				continue;
			use_relocation(lib, &rela, &sym);
		}
	}
}

/* The storage of a library that was allocated when the thread used it first */
static uint64_t from_vector(const struct library *lib, const struct symbol *sym, pid_t tid,
			    uint64_t pointer)
{
	uint64_t vector, length, storage = -1ULL;

	if (lib->number && symbols_read(lib->syms, pointer + 8, &vector, 8) &&
	    symbols_read(lib->syms, vector - VECTOR_ENTRY, &length, 8) && lib->number <= length)
		symbols_read(lib->syms, vector + VECTOR_ENTRY * lib->number, &storage, 8);
	if (!storage || storage == -1ULL)
		die("'%s': thread %d has not used the thread-local variables of %s yet", sym->name,
		    tid, base_name(symbols_path(sym->module)));
	return storage;
}

uint64_t tls_address(struct symbols *syms, const struct symbol *sym, pid_t tid)
{
	struct library lib = { .syms = syms };
	uint64_t pointer = thread_pointer(tid);
	Elf *elf = dwfl_module_getelf(sym->module, &lib.bias);

	if (!elf || gelf_getclass(elf) != ELFCLASS64)
		die("'%s': thread-local variables of 32-bit programs are not supported", sym->name);
	if (symbols_in_program(syms, sym->module))
		return pointer + program_offset(elf) + sym->address;
	read_relocations(&lib, elf);
	if (lib.fixed)
		return pointer + lib.offset + sym->address;
	return from_vector(&lib, sym, tid, pointer) + sym->address;
}
