// SPDX-License-Identifier: GPL-2.0
/*
 * Callers of an access.  A hit contains the registers and a copy of the top of the
 * stack.  libdwfl unwinds it with the unwind tables of the program, which works for
 * code without frame pointers, such as memcpy(), too.
 */
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "unwind.h"
#include "util.h"

/**
 * struct unwinder - state of an unwind
 * @syms: modules and their unwind tables
 * @pid: the process, for libdwfl
 * @user: registers and stack of the hit
 * @ips: return addresses
 * @nr: number of frames so far, the innermost function included
 * @max: size of @ips
 */
struct unwinder {
	struct symbols *syms;
	pid_t pid;
	const struct user_regs *user;
	uint64_t *ips;
	size_t nr;
	size_t max;
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct unwinder *u = arg;

	(void)dwfl;
	/* There is only one thread. */
	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return u->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl;
	(void)tid;
	*thread_arg = arg;
	return true;
}

/* Memory outside of the stack copy can only be read if it is constant data of a file. */
static bool read_module(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result)
{
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, addr);
	Dwarf_Addr offset = addr, bias;
	Elf_Data *data;
	Elf_Scn *scn;

	scn = mod ? dwfl_module_address_section(mod, &offset, &bias) : NULL;
	data = scn ? elf_rawdata(scn, NULL) : NULL;
	if (!data || !data->d_buf || data->d_size < sizeof(*result) ||
	    offset > data->d_size - sizeof(*result))
		return false;
	memcpy(result, (const char *)data->d_buf + offset, sizeof(*result));
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	const struct user_regs *user = ((struct unwinder *)arg)->user;
	uint64_t offset = addr - user->regs[USER_SP];

	if (addr < user->regs[USER_SP] || user->stack_size < sizeof(*result) ||
	    offset > user->stack_size - sizeof(*result))
		return read_module(dwfl, addr, result);
	memcpy(result, user->stack + offset, sizeof(*result));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const uint64_t *regs = ((struct unwinder *)arg)->user->regs;
	/* Ordered by DWARF register number, 0 to 16 */
	Dwarf_Word dwarf[NR_USER_REGS] = {
		regs[USER_AX], regs[USER_DX], regs[USER_CX], regs[USER_BX],
		regs[USER_SI], regs[USER_DI], regs[USER_BP], regs[USER_SP],
		regs[USER_R8], regs[USER_R9], regs[USER_R10], regs[USER_R11],
		regs[USER_R12], regs[USER_R13], regs[USER_R14], regs[USER_R15],
		regs[USER_IP],
	};

	return dwfl_thread_state_registers(thread, 0, NR_USER_REGS, dwarf);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || u->nr > u->max)
		return DWARF_CB_ABORT;
	/* The first frame is the access itself. */
	if (u->nr)
		u->ips[u->nr - 1] = pc;
	u->nr++;
	return DWARF_CB_OK;
}

struct unwinder *unwinder_new(struct symbols *syms, pid_t pid)
{
	struct unwinder *u = xzalloc(sizeof(*u));

	u->syms = syms;
	u->pid = pid;
	return u;
}

size_t unwinder_callers(struct unwinder *u, const struct user_regs *user, uint64_t *ips,
			size_t max)
{
	Dwfl *dwfl = symbols_dwfl(u->syms);

	/* Not implemented for 32-bit programs: DWARF numbers registers differently. */
	if (!user->is64)
		return 0;
	if (dwfl_pid(dwfl) < 0 && !dwfl_attach_state(dwfl, NULL, u->pid, &thread_callbacks, u))
		return 0;
	u->user = user;
	u->ips = ips;
	u->nr = 0;
	u->max = max;
	dwfl_getthread_frames(dwfl, u->pid, on_frame, u);
	return u->nr ? u->nr - 1 : 0;
}
