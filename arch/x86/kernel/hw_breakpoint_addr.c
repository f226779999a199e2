// SPDX-License-Identifier: GPL-2.0
/*
 * Which addresses may be watched, and how the registers describe a breakpoint.
 *
 * A breakpoint on data that the entry or exit of #DB accesses, or on code that they run,
 * while DR7 is armed would trap for ever.  The same is true of NMI and #MC, which may
 * interrupt a #DB.  A change that adds accesses to these paths has to add the data or the
 * function here.
 */

#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/string.h>

#include <asm/cpu_entry_area.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/hw_breakpoint.h>
#include <asm/nospec-branch.h>
#include <asm/processor.h>
#include <asm/sections.h>
#include <asm/tlbflush.h>

#include "hw_breakpoint.h"

/* A test of masks on other processors changes it. */
#ifndef CONFIG_X86_HW_BREAKPOINT_KUNIT_TEST
__ro_after_init
#endif
u32 hw_breakpoint_addr_mask_max;

/* Bounds of all static per-CPU data, as soon as they are known */
static unsigned long percpu_start __ro_after_init;
static unsigned long percpu_end __ro_after_init = ULONG_MAX;

/* ---- Data ---- */

/* Static per-CPU data that the entry or exit of #DB accesses while DR7 is armed */
static bool overlaps_entry_data(unsigned long addr, unsigned long end, int cpu)
{
	/* The GDT is also accessed through its writable mapping. */
	if (overlaps(addr, end, get_cpu_gdt_rw(cpu), GDT_SIZE))
		return true;
	if (overlaps_percpu(addr, end, cpu_tss_rw, cpu))
		return true;
	/* PCID flush mask for the switch of page tables */
	if (overlaps_percpu(addr, end, cpu_tlbstate, cpu))
		return true;
	/* Accessed by local_db_save(), local_db_restore() and hw_breakpoint_load() */
	if (hw_breakpoint_overlaps_regs(addr, end, cpu))
		return true;
#ifdef CONFIG_SMP
	/* Read by hw_breakpoint_load() to find cpu_regs */
	if (overlaps_percpu(addr, end, this_cpu_off, cpu))
		return true;
#endif
	/* Read on the switch of IBRS */
	if (overlaps_percpu(addr, end, x86_spec_ctrl_current, cpu))
		return true;
	/* Stack pointer for traps from user mode */
	if (overlaps(addr, end, &per_cpu_ptr(&pcpu_hot, cpu)->top_of_stack,
		     sizeof_field(struct pcpu_hot, top_of_stack)))
		return true;
#ifdef CONFIG_MITIGATION_CALL_DEPTH_TRACKING
	/* Incremented by each call */
	if (overlaps(addr, end, &per_cpu_ptr(&pcpu_hot, cpu)->call_depth,
		     sizeof_field(struct pcpu_hot, call_depth)))
		return true;
#endif
#ifdef CONFIG_CALL_THUNKS_DEBUG
	if (overlaps_percpu(addr, end, __x86_call_count, cpu) ||
	    overlaps_percpu(addr, end, __x86_ret_count, cpu) ||
	    overlaps_percpu(addr, end, __x86_stuffs_count, cpu))
		return true;
#endif
#ifdef CONFIG_STACKPROTECTOR
	/* Read in the prologue and epilogue of functions on this path */
#ifdef CONFIG_X86_64
	if (overlaps(addr, end, &per_cpu_ptr(&fixed_percpu_data, cpu)->stack_canary,
		     sizeof_field(struct fixed_percpu_data, stack_canary)))
		return true;
#else
	if (overlaps_percpu(addr, end, __stack_chk_guard, cpu))
		return true;
#endif
#endif
#ifdef CONFIG_AMD_MEM_ENCRYPT
	/* Read by sev_es_ist_enter() */
	if (overlaps_percpu(addr, end, cea_exception_stacks, cpu))
		return true;
#endif
#ifdef CONFIG_X86_32
	/* Entry stack pointer for SWITCH_TO_KERNEL_STACK and NMI */
	if (overlaps_percpu(addr, end, cpu_entry_area, cpu))
		return true;
#endif
	return false;
}

/*
 * Returns true if a range of kernel addresses overlaps data that the entry or
 * exit of #DB accesses while DR7 is armed: a breakpoint there would trap for
 * ever.
 */
static bool overlaps_entry(unsigned long addr, unsigned long end)
{
	const void *verw_sel = &x86_verw_sel;
	int cpu;

	if (overlaps(addr, end, (void *)CPU_ENTRY_AREA_BASE, CPU_ENTRY_AREA_MAP_SIZE))
		return true;
	/* MSR value of the branch prediction barrier on entry */
	if (overlaps(addr, end, &x86_pred_cmd, sizeof(x86_pred_cmd)))
		return true;
	/* Operand of VERW on exit. It is in text: objtool must not see a pointer to its end. */
	OPTIMIZER_HIDE_VAR(verw_sel);
	if (overlaps(addr, end, verw_sel, sizeof(x86_verw_sel)))
		return true;
	/* Offsets of the per-CPU areas */
#ifdef CONFIG_SMP
	if (overlaps(addr, end, __per_cpu_offset, sizeof(unsigned long) * nr_cpu_ids))
		return true;
#else
	if (overlaps(addr, end, &pcpu_unit_offsets, sizeof(pcpu_unit_offsets)))
		return true;
#endif

	/* Called with interrupts off: visit all CPUs only if necessary. */
	if (end < percpu_start || addr >= percpu_end)
		return false;
	for_each_possible_cpu(cpu) {
		if (overlaps_entry_data(addr, end, cpu))
			return true;
	}

	return false;
}

/* ---- Code ---- */

/*
 * Returns true for code that may run, while DR7 is armed, in the entry or exit
 * of a #DB in the kernel, or of an NMI or #MC that interrupts it: a breakpoint
 * there would trap for ever.
 */
static bool runs_in_entry(unsigned long addr)
{
	static const char *const functions[] = {
		"exc_debug", "exc_debug_kernel", "exc_nmi", "exc_machine_check",
		"hw_breakpoint_load",
		"__sev_es_ist_enter", "__sev_es_ist_exit",
		/* Accesses to debug registers with CONFIG_PARAVIRT_XXL, and entries of Xen */
		"pv_native_get_debugreg", "pv_native_set_debugreg",
		"xen_get_debugreg", "xen_set_debugreg", "xen_hypercall_pv",
		"xenpv_exc_debug", "xenpv_exc_nmi", "xenpv_exc_machine_check",
		/* The way to a #DB in the kernel with FRED, outside of the entry text */
		"asm_fred_entrypoint_kernel", "fred_entry_from_kernel", "fred_hwexc",
		"fred_exc_debug",
		/* Returns on these paths may jump to a return thunk. */
		"__x86_return_thunk", "call_depth_return_thunk", "its_return_thunk",
		"retbleed_return_thunk", "retbleed_untrain_ret",
		"srso_return_thunk", "srso_untrain_ret", "srso_safe_ret",
		"srso_alias_return_thunk", "srso_alias_untrain_ret",
		"srso_alias_safe_ret", "entry_untrain_ret", "entry_ibpb",
	};
	char name[KSYM_NAME_LEN];
	int i;

	if (addr >= (unsigned long)__entry_text_start &&
	    addr < (unsigned long)__entry_text_end)
		return true;
	if (lookup_symbol_name(addr, name))
		return addr >= (unsigned long)__noinstr_text_start &&
		       addr < (unsigned long)__noinstr_text_end;

	/* Ignore a suffix that the compiler has added, such as ".constprop.0". */
	strreplace(name, '.', '\0');
	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		if (!strcmp(name, functions[i]))
			return true;
	}

	return false;
}

/* ---- Pieces of a range ---- */

/* The longest piece: that of a register, with an address mask if there are masks. */
static unsigned long max_piece(void)
{
	return hw_breakpoint_addr_mask_max ? hw_breakpoint_max_length : sizeof(long);
}

/*
 * Aligned powers of two, each as large as possible, are the fewest pieces that cover a range
 * exactly, from whichever end they are computed.
 */
static __always_inline void set_range(struct arch_hw_breakpoint *hw, unsigned long end,
				      unsigned long len)
{
	/* 0 is the end of the address space, which any power of two divides. */
	unsigned long bytes = BIT(min(__fls(len), __ffs(end | max_piece())));

	hw->address = end - bytes;
	hw->mask = bytes > sizeof(long) ? bytes - 1 : 0;
	hw->ctl = dr7_ctl_rw(hw->ctl) | (hw->mask ? DR_LEN_1 : dr7_len(bytes));
	hw->before = len - bytes;
}

void hw_breakpoint_set_range(struct arch_hw_breakpoint *hw, unsigned long addr,
			     unsigned long len)
{
	set_range(hw, addr + len, len);
}

bool hw_breakpoint_previous_piece(struct arch_hw_breakpoint *piece)
{
	if (!piece->before)
		return false;
	set_range(piece, piece->address, piece->before);
	return true;
}

/*
 * The number of pieces, without computing them. The address in the range that the largest power
 * of two divides is a boundary of pieces: it has the leading bits that are common to all
 * addresses, then 1, then zeros. On both sides of it there are pieces of @max bytes, and
 * each bit of the rest of the length is one piece.
 */
static unsigned int nr_pieces(const struct arch_hw_breakpoint *hw)
{
	unsigned long start = hw->address - hw->before, end = hw->address + watched_bytes(hw);
	unsigned long middle = end & ~(BIT(__fls(start ^ end)) - 1), max = max_piece();
	unsigned long head = middle - start, tail = end - middle, rest = max - 1;

	return (head >> __ffs(max)) + (tail >> __ffs(max)) +
	       hweight_long((head & rest) * max | (tail & rest));
}

/* ---- Translation of attributes ---- */

/* x86 has one length of instruction breakpoints, for which users give sizeof(long). */
static __always_inline int parse_execute(const struct perf_event_attr *attr,
					 struct arch_hw_breakpoint *hw)
{
	if (attr->bp_len != sizeof(long))
		return -EINVAL;

	hw->ctl = DR_LEN_1 | DR_RW_EXECUTE;
	return 0;
}

static bool is_aligned_power_of_2(unsigned long addr, unsigned long len)
{
	return is_power_of_2(len) && IS_ALIGNED(addr, len);
}

/* Ranges that are too long for pieces require address masks. */
static int parse_masked(unsigned long addr, unsigned long len, struct arch_hw_breakpoint *hw)
{
	if (!is_aligned_power_of_2(addr, len))
		return -EINVAL;
	if (len - 1 > hw_breakpoint_addr_mask_max)
		return -EOPNOTSUPP;
	hw->mask = len - 1;
	return 0;
}

/* Out of line: most ranges are one piece without a mask. */
static noinline int parse_range(unsigned long addr, unsigned long len,
				struct arch_hw_breakpoint *hw)
{
	if (len > hw_breakpoint_max_length)
		return parse_masked(addr, len, hw);

	hw_breakpoint_set_range(hw, addr, len);
	hw->weight = nr_pieces(hw);
	return hw->weight <= HBP_NUM ? 0 : -EINVAL;
}

static __always_inline int parse_data(const struct perf_event_attr *attr, unsigned int rw,
				      struct arch_hw_breakpoint *hw)
{
	hw->ctl = DR_LEN_1 | rw;
	if (unlikely(attr->bp_len > sizeof(long) ||
		     !is_aligned_power_of_2(attr->bp_addr, attr->bp_len)))
		return parse_range(attr->bp_addr, attr->bp_len, hw);

	hw->ctl = dr7_len(attr->bp_len) | rw;
	return 0;
}

static __always_inline int parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw)
{
	unsigned long end = attr->bp_addr + attr->bp_len - 1;

	/* A 32-bit kernel has shorter addresses than attributes. */
	if (!attr->bp_len || attr->bp_len > ULONG_MAX || end < attr->bp_addr)
		return -EINVAL;
	if (end >= TASK_SIZE_MAX && overlaps_entry(attr->bp_addr, end))
		return -EINVAL;

	*hw = (struct arch_hw_breakpoint) { .address = attr->bp_addr, .weight = 1 };

	switch (attr->bp_type) {
	case HW_BREAKPOINT_W:
		return parse_data(attr, DR_RW_WRITE, hw);
	case HW_BREAKPOINT_RW:
		return parse_data(attr, DR_RW_READ, hw);
	case HW_BREAKPOINT_X:
		return parse_execute(attr, hw);
	default:
		return -EINVAL;
	}
}

static bool is_kernel_execute(const struct perf_event_attr *attr)
{
	return attr->bp_type == HW_BREAKPOINT_X && attr->bp_addr >= TASK_SIZE_MAX;
}

int hw_breakpoint_arch_parse(struct perf_event *bp,
			     const struct perf_event_attr *attr,
			     struct arch_hw_breakpoint *hw)
{
	int err = parse(attr, hw);

	if (!err && is_kernel_execute(attr) &&
	    (within_kprobe_blacklist(attr->bp_addr) || runs_in_entry(attr->bp_addr)))
		err = -EINVAL;
	return err;
}

static int move_execute(unsigned long addr, struct arch_hw_breakpoint *to)
{
	const struct perf_event_attr attr = {
		.bp_addr	= addr,
		.bp_len		= sizeof(long),
		.bp_type	= HW_BREAKPOINT_X,
	};

	return hw_breakpoint_arch_parse(NULL, &attr, to);
}

/* Out of line, as parse_range() */
static noinline int move_range(const struct arch_hw_breakpoint *hw, unsigned long addr,
			       struct arch_hw_breakpoint *to)
{
	unsigned long len = hw->before + watched_bytes(hw), end = addr + len - 1;

	if (end < addr || (end >= TASK_SIZE_MAX && overlaps_entry(addr, end)))
		return -EINVAL;
	if (hw->before && IS_ALIGNED(addr - (hw->address - hw->before), max_piece())) {
		/* All pieces keep their lengths. */
		*to = (struct arch_hw_breakpoint) {
			.address	= addr + hw->before,
			.mask		= hw->mask,
			.ctl		= hw->ctl,
			.before		= hw->before,
			.weight		= hw->weight,
		};
		return 0;
	}
	*to = (struct arch_hw_breakpoint) {
		.address	= addr,
		.ctl		= DR_LEN_1 | dr7_ctl_rw(hw->ctl),
		.weight		= 1,
	};

	return parse_range(addr, len, to);
}

int arch_hw_breakpoint_move(const struct arch_hw_breakpoint *hw, unsigned long addr,
			    struct arch_hw_breakpoint *to)
{
	unsigned long last = watched_bytes(hw) - 1;

	if (dr7_ctl_rw(hw->ctl) == DR_RW_EXECUTE)
		return move_execute(addr, to);
	/* An aligned range does not wrap. */
	if (unlikely((addr & last) | hw->before))
		return move_range(hw, addr, to);

	/* Before the call: then no register has to be saved. */
	*to = (struct arch_hw_breakpoint) {
		.address	= addr,
		.mask		= hw->mask,
		.ctl		= hw->ctl,
		.weight		= 1,
	};
	if (addr + last >= TASK_SIZE_MAX && overlaps_entry(addr, addr + last))
		return -EINVAL;
	return 0;
}

int hw_breakpoint_debugger_parse(const struct perf_event_attr *attr,
				 struct arch_hw_breakpoint *hw)
{
	int err = parse(attr, hw);

	if (!err && is_kernel_execute(attr) && runs_in_entry(attr->bp_addr))
		err = -EINVAL;
	if (!err && hw_breakpoint_weight(hw) > 1)
		err = -EINVAL;
	return err;
}

int arch_check_bp_in_kernelspace(struct arch_hw_breakpoint *hw)
{
	/* The last piece has the highest addresses. Without a mask it has at most 8 bytes. */
	if (likely(!hw->mask && hw->address <= TASK_SIZE_MAX - 8))
		return 0;
	/* An aligned range does not wrap. */
	return hw->address + watched_bytes(hw) - 1 >= TASK_SIZE_MAX;
}

static void __init find_percpu_data(void)
{
	void __percpu *data = (void __percpu *)__per_cpu_start;
	unsigned long start = ULONG_MAX, end = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		unsigned long unit = (unsigned long)per_cpu_ptr(data, cpu);

		start = min(start, unit);
		end = max(end, unit + (__per_cpu_end - __per_cpu_start));
	}
	percpu_start = start;
	percpu_end = end;
}

static int __init hw_breakpoint_setup(void)
{
	/* CPUID Fn8000_0001 ECX: masks have bits 31-0, not only bits 11-0 */
	const u32 addr_mask_ext = BIT(30);

	if (boot_cpu_has(X86_FEATURE_BPEXT)) {
		hw_breakpoint_addr_mask_max = GENMASK(11, 0);
		if (cpuid_ecx(0x80000001) & addr_mask_ext)
			hw_breakpoint_addr_mask_max = GENMASK(31, 0);
	}

	/* Without SMP, per-CPU data is part of the other data. */
	if (IS_ENABLED(CONFIG_SMP))
		find_percpu_data();
	return 0;
}
core_initcall(hw_breakpoint_setup);
