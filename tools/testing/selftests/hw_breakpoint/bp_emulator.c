// SPDX-License-Identifier: GPL-2.0
/* Workarounds for QEMU TCG: see bp_emulator.h. */
#define BP_NO_TESTS
#include "bp_test.h"

#ifdef __aarch64__
void bp_settle(void *p)
{
}

bool bp_emulated(void)
{
	return false;
}
#else
void bp_settle(void *p)
{
	if ((char *)p >= BP_PAGE && (char *)p < BP_PAGE + BP_PAGE_SIZE)
		asm volatile("orb $0, (%0)" : : "r"(BP_PAGE + BP_PAGE_SIZE - 1) : "memory");
}

bool bp_emulated(void)
{
	unsigned int eax = 0x40000000, sig[3];

	asm volatile("cpuid" : "+a"(eax), "=b"(sig[0]), "=c"(sig[1]), "=d"(sig[2]));
	return !memcmp(sig, "TCGTCGTCGTCG", sizeof(sig));
}
#endif

int bp_attempts(void)
{
	return bp_emulated() ? 4 : 1;
}

/*
 * The first event of a task in the system patches the scheduler (static keys), and the
 * last one patches it back. QEMU TCG sometimes executes the int3 that is there
 * meanwhile. An event that never counts, in each program, keeps the scheduler patched.
 */
static void __attribute__((constructor)) bp_hold_scheduler_patched(void)
{
	struct perf_event_attr attr = bp_attr_sw(PERF_COUNT_SW_DUMMY);

	attr.disabled = 1;
	bp_open(&attr, 0, -1);
}
