// SPDX-License-Identifier: GPL-2.0
/*
 * repoint_breakpoint.c - watch a variable of the kernel, and later another one
 *
 * usage: modprobe repoint_breakpoint ksym=0x$(awk '$3 == "jiffies" { print $1 }' /proc/kallsyms)
 *	  echo 1 > /sys/kernel/tracing/events/repoint_breakpoint/enable
 *	  echo system_freezable_wq > /sys/module/repoint_breakpoint/parameters/ksym
 *
 * Shows how a kernel-wide breakpoint is registered once and repointed any number of
 * times: it keeps its register, and a change that fails leaves it as it was.  The
 * handler records hits as trace events, because it runs in #DB, where printk() should
 * not be called.
 */
#include <linux/err.h>
#include <linux/hw_breakpoint.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/perf_event.h>
#include <linux/string.h>

#define CREATE_TRACE_POINTS
#include "repoint_breakpoint_trace.h"

/*
 * NULL before init and after exit.  The parameter can be written at these times, too,
 * under the module's parameter lock; so init and exit take this lock.
 */
static struct perf_event * __percpu *breakpoints;

/* @data has the address that was watched at the hit, even if it has changed since. */
static void on_hit(struct perf_event *bp, struct perf_sample_data *data,
		   struct pt_regs *regs)
{
	trace_repoint_hit(data->addr, instruction_pointer(regs));
}

/*
 * @name: an address, or a symbol that is exported to GPL modules; put_address()
 * releases the reference to its module.
 */
static unsigned long get_address(const char *name)
{
	unsigned long addr;

	return kstrtoul(name, 16, &addr) ? (unsigned long)__symbol_get(name) : addr;
}

static void put_address(const char *name)
{
	unsigned long addr;

	if (kstrtoul(name, 16, &addr))
		__symbol_put(name);
}

static char ksym[KSYM_NAME_LEN];

static int watch(const char *name)
{
	unsigned long addr = get_address(name);
	int err;

	if (!addr)
		return -ENOENT;
	err = modify_wide_hw_breakpoint(breakpoints, addr, NULL);
	if (err) {
		put_address(name);
		return err;
	}
	/* No CPU may watch the old symbol when its module is unloaded. */
	synchronize_wide_hw_breakpoint(breakpoints);
	put_address(ksym);
	strscpy(ksym, name, sizeof(ksym));
	return 0;
}

/* Before init @val is only stored, for start(). */
static int set_ksym(const char *val, const struct kernel_param *kp)
{
	char name[KSYM_NAME_LEN];

	if (strscpy(name, val, sizeof(name)) < 0)
		return -EINVAL;
	if (breakpoints)
		return watch(strim(name));
	strscpy(ksym, strim(name), sizeof(ksym));
	return 0;
}

static int get_ksym(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", ksym);
}

static const struct kernel_param_ops ksym_ops = {
	.set	= set_ksym,
	.get	= get_ksym,
};
module_param_cb(ksym, &ksym_ops, NULL, 0644);
MODULE_PARM_DESC(ksym, "address in hexadecimal digits, or exported variable, to watch");

/* Called with the lock of the parameters held. */
static int start(void)
{
	struct perf_event * __percpu *events;
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = get_address(ksym);
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_W;
	if (!attr.bp_addr)
		return -ENOENT;
	events = register_wide_hw_breakpoint(&attr, on_hit, NULL);
	if (IS_ERR((void __force *)events)) {
		put_address(ksym);
		return PTR_ERR((void __force *)events);
	}
	breakpoints = events;
	return 0;
}

static int __init repoint_breakpoint_init(void)
{
	int err;

	kernel_param_lock(THIS_MODULE);
	err = start();
	kernel_param_unlock(THIS_MODULE);

	return err;
}
module_init(repoint_breakpoint_init);

static void __exit repoint_breakpoint_exit(void)
{
	kernel_param_lock(THIS_MODULE);
	unregister_wide_hw_breakpoint(breakpoints);
	breakpoints = NULL;
	put_address(ksym);
	kernel_param_unlock(THIS_MODULE);
}
module_exit(repoint_breakpoint_exit);

MODULE_DESCRIPTION("Watch a variable of the kernel, and later another one");
MODULE_LICENSE("GPL");
