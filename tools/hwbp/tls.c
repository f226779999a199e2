// SPDX-License-Identifier: GPL-2.0
/*
 * Thread-local variables.
 *
 * The storage of the program is below the address in FS, or GS in 32-bit programs. That of a
 * library is at a fixed distance of it, too, or it is found in the vector of the thread by the
 * number of the library. The dynamic loader has written the distance or the number to the
 * places that the relocations of the library name.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "refusal.h"
#include "tls.h"
#include "util.h"

static uint64_t thread_pointer(pid_t tid, bool is32)
{
	struct user_regs_struct regs;
	int err, status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		refusal_die(&(struct refusal){ .what = REFUSED_TRACE, .pid = tid }, errno);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		die("thread %d has exited", tid);
	err = ptrace(PTRACE_GETREGS, tid, 0, &regs) ? errno : 0;
	/* A signal that has stopped the thread in the meantime is delivered. */
	ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	if (err)
		die("cannot read the registers of thread %d: %s", tid, strerror(err));
	return is32 ? regs.gs_base : regs.fs_base;
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
 * @word: size of an address
 * @bias: difference between addresses in memory and in the file
 * @number: its number, 0 if there is none
 * @fixed: its storage is at a fixed distance from the thread pointer
 * @offset: that distance
 */
struct library {
	struct symbols *syms;
	size_t word;
	GElf_Addr bias;
	uint64_t number;
	bool fixed;
	uint64_t offset;
};

static bool read_word(const struct library *lib, uint64_t address, uint64_t *word)
{
	*word = 0;
	return symbols_read(lib->syms, address, word, lib->word);
}

/* The word of the file at @address, which is the addend of a relocation without one */
static uint64_t file_word(Elf *elf, uint64_t address)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	uint32_t word = 0;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    address - shdr.sh_addr >= shdr.sh_size)
			continue;
		data = elf_getdata(scn, NULL);
		if (data && address - shdr.sh_addr + sizeof(word) <= data->d_size)
			memcpy(&word, (char *)data->d_buf + address - shdr.sh_addr, sizeof(word));
	}
	return word;
}

static void use_relocation(struct library *lib, Elf *elf, const GElf_Rela *rela,
			   const GElf_Sym *sym)
{
	bool own = !GELF_R_SYM(rela->r_info) || sym->st_shndx != SHN_UNDEF, is32 = lib->word == 4;
	uint64_t word, addend = is32 ? file_word(elf, rela->r_offset) : (uint64_t)rela->r_addend;
	unsigned int type = GELF_R_TYPE(rela->r_info);

	if (!own || !read_word(lib, rela->r_offset + lib->bias, &word))
		return;
	if (type == (is32 ? R_386_TLS_DTPMOD32 : R_X86_64_DTPMOD64))
		lib->number = word;
	if (type != (is32 ? R_386_TLS_TPOFF : R_X86_64_TPOFF64))
		return;
	lib->fixed = true;
	lib->offset = word - addend - (GELF_R_SYM(rela->r_info) ? sym->st_value : 0);
}

/* Relocations of 32-bit programs have no addend. */
static bool get_relocation(Elf_Data *data, int i, bool is32, GElf_Rela *rela)
{
	GElf_Rel rel;

	if (!is32)
		return gelf_getrela(data, i, rela);
	if (!gelf_getrel(data, i, &rel))
		return false;
	*rela = (GElf_Rela){ .r_offset = rel.r_offset, .r_info = rel.r_info };
	return true;
}

static void read_relocations(struct library *lib, Elf *elf)
{
	bool is32 = lib->word == 4;
	Elf_Data *data, *symbols;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Rela rela;
	GElf_Sym sym;
	int i;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || !shdr.sh_entsize ||
		    shdr.sh_type != (is32 ? SHT_REL : SHT_RELA))
			continue;
		data = elf_getdata(scn, NULL);
		symbols = elf_getdata(elf_getscn(elf, shdr.sh_link), NULL);
		for (i = 0; data && i < (int)(shdr.sh_size / shdr.sh_entsize); i++) {
			memset(&sym, 0, sizeof(sym));
			if (!get_relocation(data, i, is32, &rela))
				continue;
			if (GELF_R_SYM(rela.r_info) &&
			    !gelf_getsym(symbols, GELF_R_SYM(rela.r_info), &sym))
				continue;
			use_relocation(lib, elf, &rela, &sym);
		}
	}
}

/* The storage of a library that was allocated when the thread used it first */
static uint64_t from_vector(const struct library *lib, const struct symbol *sym, pid_t tid,
			    uint64_t pointer)
{
	uint64_t vector, length, storage = 0, entry = 2 * lib->word;

	if (lib->number && read_word(lib, pointer + lib->word, &vector) &&
	    read_word(lib, vector - entry, &length) && lib->number <= length)
		read_word(lib, vector + entry * lib->number, &storage);
	/* -1 stands for storage that is not allocated. */
	if (!storage || storage == (lib->word == 4 ? UINT32_MAX : UINT64_MAX))
		die("'%s': thread %d has not used the thread-local variables of %s yet", sym->name,
		    tid, base_name(symbols_path(sym->module)));
	return storage;
}

uint64_t tls_address(struct symbols *syms, const struct symbol *sym, pid_t tid)
{
	struct library lib = { .syms = syms, .word = 8 };
	Elf *elf = dwfl_module_getelf(sym->module, &lib.bias);
	uint64_t pointer, address;

	if (!elf)
		die("'%s': the file of its program or library cannot be read", sym->name);
	if (gelf_getclass(elf) == ELFCLASS32)
		lib.word = 4;
	pointer = thread_pointer(tid, lib.word == 4);
	if (symbols_in_program(syms, sym->module)) {
		address = pointer + program_offset(elf) + sym->address;
	} else {
		read_relocations(&lib, elf);
		address = lib.fixed ? pointer + lib.offset + sym->address :
				      from_vector(&lib, sym, tid, pointer) + sym->address;
	}
	return lib.word == 4 ? (uint32_t)address : address;
}
