// SPDX-License-Identifier: GPL-2.0
/*
 * A hardware PMU for the selftests.
 *
 * The tests of groups need hardware events beside breakpoints, which a virtual
 * machine may lack. This PMU counts nothing, and has a counter for each event unless
 * the parameter "counters" limits their number. An event may refer to its group leader
 * as AUX event, but there is no AUX buffer. The PMU is a module, which the tests load
 * and remove again, so that other tests do not find it.
 *
 * The module can also let another module fail to load.
 */

#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/sysfs.h>

static struct pmu test_pmu;

static unsigned int counters = UINT_MAX;
module_param(counters, uint, 0644);
MODULE_PARM_DESC(counters, "Number of counters of each CPU");

static char refuse[MODULE_NAME_LEN];
module_param_string(refuse, refuse, sizeof(refuse), 0444);
MODULE_PARM_DESC(refuse, "Name of a module that cannot be loaded");

/* Number of counters of this CPU that are in use. Changed with interrupts off. */
static DEFINE_PER_CPU(unsigned int, test_pmu_used);

static int test_pmu_event_init(struct perf_event *event)
{
	return event->attr.type == test_pmu.type ? 0 : -ENOENT;
}

static int test_pmu_add(struct perf_event *event, int flags)
{
	if (__this_cpu_read(test_pmu_used) >= READ_ONCE(counters))
		return -EAGAIN;
	__this_cpu_inc(test_pmu_used);
	return 0;
}

static void test_pmu_del(struct perf_event *event, int flags)
{
	__this_cpu_dec(test_pmu_used);
}

static void test_pmu_nop(struct perf_event *event, int flags)
{
}

static void test_pmu_read(struct perf_event *event)
{
}

/* The AUX event of @event is its group leader, which can only be of this PMU. */
static int test_pmu_aux_output_match(struct perf_event *event)
{
	return 1;
}

static void *test_pmu_setup_aux(struct perf_event *event, void **pages, int nr_pages,
				bool overwrite)
{
	return NULL;
}

static void test_pmu_free_aux(void *aux)
{
}

/* Number of calls of pmu::pmu_disable(): breakpoints must not cause any. */
static atomic_long_t test_pmu_disables;

static void test_pmu_disable(struct pmu *pmu)
{
	atomic_long_inc(&test_pmu_disables);
}

/* perf core replaces pmu_disable() if there is no pmu_enable(). */
static void test_pmu_enable(struct pmu *pmu)
{
}

static ssize_t disables_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&test_pmu_disables));
}
static DEVICE_ATTR_RO(disables);

static struct attribute *test_pmu_attrs[] = {
	&dev_attr_disables.attr,
	NULL
};

static const struct attribute_group test_pmu_group = {
	.name	= "test",
	.attrs	= test_pmu_attrs,
};

static const struct attribute_group *test_pmu_groups[] = {
	&test_pmu_group,
	NULL
};

static struct pmu test_pmu = {
	.module		= THIS_MODULE,
	.task_ctx_nr	= perf_hw_context,
	.capabilities	= PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_AUX_OUTPUT,
	.attr_groups	= test_pmu_groups,
	.event_init	= test_pmu_event_init,
	.pmu_enable	= test_pmu_enable,
	.pmu_disable	= test_pmu_disable,
	.add		= test_pmu_add,
	.del		= test_pmu_del,
	.start		= test_pmu_nop,
	.stop		= test_pmu_nop,
	.read		= test_pmu_read,
	.aux_output_match = test_pmu_aux_output_match,
	.setup_aux	= test_pmu_setup_aux,
	.free_aux	= test_pmu_free_aux,
};

static __always_inline void test_pmu_call_four_times(void (*read)(struct perf_event *event))
{
	read(NULL);
	read(NULL);
	read(NULL);
	read(NULL);
}

/*
 * Indirect calls, for the tests of changes of kernel text: x86 replaces those in the
 * lower half of a cache line by calls of thunks if it mitigates Indirect Target
 * Selection (ITS). These calls fill more than 96 bytes, so that some are there.
 */
static noinline void test_pmu_call_often(void (*read)(struct perf_event *event))
{
	test_pmu_call_four_times(read);
	test_pmu_call_four_times(read);
	test_pmu_call_four_times(read);
	test_pmu_call_four_times(read);
}

/* The notifiers that are registered before this one are told that the module is coming. */
static int test_pmu_module_callback(struct notifier_block *nb, unsigned long state,
				    void *data)
{
	const struct module *mod = data;

	if (state == MODULE_STATE_COMING && !strcmp(mod->name, refuse))
		return notifier_from_errno(-ECANCELED);
	return NOTIFY_DONE;
}

static struct notifier_block test_pmu_module_nb = {
	.notifier_call	= test_pmu_module_callback,
};

static int __init test_pmu_register(void)
{
	int err = register_module_notifier(&test_pmu_module_nb);

	if (err)
		return err;
	err = perf_pmu_register(&test_pmu, "breakpoint_test_hw", -1);
	if (err)
		unregister_module_notifier(&test_pmu_module_nb);
	else
		test_pmu_call_often(READ_ONCE(test_pmu.read));
	return err;
}
module_init(test_pmu_register);

static void __exit test_pmu_unregister(void)
{
	perf_pmu_unregister(&test_pmu);
	unregister_module_notifier(&test_pmu_module_nb);
}
module_exit(test_pmu_unregister);

MODULE_DESCRIPTION("PMU of the selftests of hardware breakpoints");
MODULE_LICENSE("GPL");
