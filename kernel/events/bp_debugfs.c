// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/hw_breakpoint/slots: holders of the breakpoint registers.
 *
 * ENOSPC does not name the holders.  The file lists each claim and the contents
 * of the registers of each CPU.  Only this code finds the events and tasks of
 * claims: the accounting knows neither.
 *
 * Each claim is copied under a lock that its release takes, so that the event
 * that embeds the claim is not freed meanwhile; RCU protects the tasks of the
 * event.
 */

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_buf.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/string_helpers.h>
#include <linux/uaccess.h>

#include "bp_internal.h"

/* Estimated length of a line, in bytes */
#define LINE_SIZE	160

/* Longer names of kernel-wide sets are truncated. */
#define NAME_SIZE	64

/**
 * struct bp_owner - owner and target of a breakpoint
 * @client: "perf", "ptrace", "kernel" or "kgdb"
 * @pid: "perf": process that opened the breakpoint; "ptrace": the tracer; 0 if
 *	that process has exited
 * @handler: "kernel": called at a hit
 * @name: "kernel": name of the kernel-wide set; empty if it has none
 * @task: watched task; 0 for a breakpoint of a CPU
 * @process: the breakpoint is for all threads of the process that @task leads
 * @comm: name of the watched task
 */
struct bp_owner {
	const char	*client;
	pid_t		pid;
	void		*handler;
	char		name[NAME_SIZE];
	pid_t		task;
	bool		process;
	char		comm[TASK_COMM_LEN];
};

/**
 * struct bp_line - content of a line about a claim or a register
 * @what: what is watched; @what.armed is false for a free register
 * @flexible: the breakpoint is flexible
 * @owner: owner of the breakpoint
 * @claim: copy of the claim, without its links; not used for a register
 */
struct bp_line {
	struct bp_reg_state	what;
	bool			flexible;
	struct bp_owner		owner;
	struct bp_claim		claim;
};

/* perf replaces the pointer to a task that has exited by TASK_TOMBSTONE, -1. */
static bool is_task(const struct task_struct *task)
{
	return task && task != (void *)-1L;
}

static void set_name(struct bp_owner *owner, const char *name)
{
	if (name)
		strscpy(owner->name, name, sizeof(owner->name));
}

/*
 * Returns the current leader of the process of @task: the event may have been opened with
 * any of its threads, @task may have exited, and exec makes its thread the leader.  Returns
 * @task if all threads have been reaped.
 */
static const struct task_struct *leader_of(const struct task_struct *task)
{
	const struct task_struct *leader;

	leader = pid_task(READ_ONCE(task->signal->pids[PIDTYPE_TGID]), PIDTYPE_TGID);
	return leader ?: task;
}

/* The caller prevents that @bp is freed; RCU protects its context and tasks. */
static void describe_event(struct bp_line *line, struct perf_event *bp,
			   struct task_struct *task)
{
	struct perf_event *opened = bp->parent ?: bp;
	struct task_struct *opener = READ_ONCE(opened->owner);
	bool is_kernel = opener && !is_task(opener);
	struct bp_owner *owner = &line->owner;

	line->flexible = hw_breakpoint_is_flexible(&bp->attr);
	if (bp->process) {
		owner->process = true;
		owner->task = task_tgid_nr(bp->hw.target);
		strscpy(owner->comm, leader_of(bp->hw.target)->comm, sizeof(owner->comm));
	} else if (is_task(task)) {
		owner->task = task_pid_nr(task);
		strscpy(owner->comm, task->comm, sizeof(owner->comm));
	}

	/* See ptrace_breakpoint_init(). */
	if (is_kernel && is_task(task) && bp->attr.exclude_kernel) {
		owner->client = "ptrace";
		opener = ptrace_parent(task);
	} else if (is_kernel) {
		owner->client = "kernel";
		owner->handler = READ_ONCE(bp->overflow_handler);
		if (bp_is_wide(bp))
			set_name(owner, bp->hw.bp_wide->set->holder.name);
	} else {
		owner->client = "perf";
	}
	if (is_task(opener))
		owner->pid = task_tgid_nr(opener);
}

static void describe_claim(const struct bp_claim *claim, void *arg)
{
	const struct bp_holder *holder = claim->holder;
	struct perf_event_context *ctx = NULL;
	struct bp_line *line = arg;
	struct perf_event *bp;

	memset(line, 0, sizeof(*line));
	/* Do not copy the links, which other locks protect. */
	line->claim = (struct bp_claim) {
		.domain		= claim->domain,
		.cpu		= claim->cpu,
		.class		= claim->class,
		.weight		= claim->weight,
		.flexible	= claim->flexible,
	};
	line->what.armed = true;

	if (holder) {
		line->what.addr = holder->addr;
		line->what.len = holder->len;
		line->what.bp_type = holder->bp_type;
		line->owner.client = holder->handler ? "kernel" : "kgdb";
		line->owner.handler = holder->handler;
		set_name(&line->owner, holder->name);
		return;
	}

	bp = container_of(claim, struct perf_event, bp_claim);
	line->what.addr = bp->attr.bp_addr;
	line->what.len = bp->attr.bp_len;
	line->what.bp_type = bp->attr.bp_type;
	if (claim->domain && !bp->process)
		ctx = container_of(claim->domain, struct perf_event_context, bp_domain);
	describe_event(line, bp, ctx ? READ_ONCE(ctx->task) : NULL);
}

/* ---- Lines ---- */

static const char *class_name(unsigned int class)
{
	if (TYPE_INST == TYPE_DATA)
		return "any";
	return class == TYPE_INST ? "inst" : "data";
}

static const char *type_name(u32 bp_type)
{
	switch (bp_type) {
	case HW_BREAKPOINT_R:
		return "r";
	case HW_BREAKPOINT_W:
		return "w";
	case HW_BREAKPOINT_RW:
		return "rw";
	default:
		return "x";
	}
}

/* Kernel addresses require the same permission as in /proc/kallsyms. */
static bool may_see_kernel(const struct seq_file *m)
{
	return kallsyms_show_value(m->file->f_cred);
}

static void show_what(struct seq_file *m, const struct bp_reg_state *what)
{
	bool kernel = what->addr + what->len - 1 >= TASK_SIZE_MAX;

	seq_printf(m, " type=%s len=%lu addr=0x%lx", type_name(what->bp_type),
		   what->len, kernel && !may_see_kernel(m) ? 0 : what->addr);
}

/* %ps prints an address if there are no symbols, which requires permission. */
static void show_owner(struct seq_file *m, const struct bp_owner *owner)
{
	seq_printf(m, " owner=%s", owner->client);
	if (*owner->name)
		seq_printf(m, ":%s", owner->name);
	else if (owner->handler && (IS_ENABLED(CONFIG_KALLSYMS) || may_see_kernel(m)))
		seq_printf(m, ":%ps", owner->handler);
	else if (owner->pid)
		seq_printf(m, ":%d", owner->pid);
	else if (strcmp(owner->client, "kgdb"))
		seq_puts(m, ":-");
}

static void show_comm(struct seq_file *m, const struct bp_owner *owner)
{
	seq_puts(m, " comm=");
	seq_escape_str(m, owner->comm, ESCAPE_ANY | ESCAPE_NAP | ESCAPE_APPEND, "\\");
}

static const char *kind(bool flexible)
{
	return flexible ? "flexible" : "guaranteed";
}

static void show_claim(struct seq_file *m, const struct bp_line *line)
{
	const struct bp_claim *claim = &line->claim;
	const struct bp_owner *owner = &line->owner;

	seq_puts(m, "claim");
	if (owner->task)
		seq_printf(m, " pid=%d%s", owner->task, owner->process ? " process" : "");
	if (claim->cpu >= 0)
		seq_printf(m, " cpu=%d", claim->cpu);
	else
		seq_puts(m, claim->domain ? " cpu=any" : " cpu=all");
	seq_printf(m, " kind=%s class=%s weight=%u", kind(claim->flexible),
		   class_name(claim->class), claim->weight);
	show_what(m, &line->what);
	show_owner(m, owner);
	if (owner->task)
		show_comm(m, owner);
	seq_putc(m, '\n');
}

static bool next_claim(struct bp_walk *walk, struct bp_line *line)
{
	cond_resched();
	guard(rcu)();
	return bp_slots_walk_next(&bp_machine, walk, describe_claim, line);
}

static void show_claims(struct seq_file *m)
{
	struct bp_line line;
	struct bp_walk walk;

	bp_slots_walk_begin(&bp_machine, &walk);
	while (!seq_has_overflowed(m) && next_claim(&walk, &line))
		show_claim(m, &line);
	bp_slots_walk_end(&bp_machine, &walk);
}

static void show_classes(struct seq_file *m)
{
	unsigned int class;

	for (class = 0; class < TYPE_MAX; class++)
		seq_printf(m, "class name=%s slots=%u\n", class_name(class),
			   bp_machine.class[class].slots);
}

/* ---- Registers ---- */

/* Runs on the CPU of the registers, interrupts off: nothing is scheduled. */
static void read_registers(void *arg)
{
	struct bp_line *line = arg;
	unsigned int slot;

	guard(rcu)();
	for (slot = 0; slot < bp_machine.class[TYPE_DATA].slots; slot++, line++) {
		struct perf_event *bp;

		arch_hw_breakpoint_reg(slot, &line->what);
		if (!line->what.armed)
			continue;
		bp = line->what.event;
		if (bp)
			describe_event(line, bp, READ_ONCE(bp->ctx->task));
		else
			line->owner.client = "kgdb";
	}
}

static void show_register(struct seq_file *m, int cpu, unsigned int slot,
			  const struct bp_line *line)
{
	seq_printf(m, "register cpu=%d slot=%u", cpu, slot);
	if (!line->what.armed) {
		seq_puts(m, " free\n");
		return;
	}
	show_what(m, &line->what);
	seq_printf(m, " kind=%s", kind(line->flexible));
	show_owner(m, &line->owner);
	if (line->owner.task) {
		seq_printf(m, " pid=%d%s", line->owner.task,
			   line->owner.process ? " process" : "");
		show_comm(m, &line->owner);
	}
	seq_putc(m, '\n');
}

static int show_registers(struct seq_file *m)
{
	unsigned int slots = bp_machine.class[TYPE_DATA].slots, slot;
	struct bp_line *line __free(kfree) = NULL;
	int cpu;

	if (!bp_can_read_regs())
		return 0;

	line = kmalloc_array(slots, sizeof(*line), GFP_KERNEL);
	if (!line)
		return -ENOMEM;

	guard(cpus_read_lock)();
	for_each_online_cpu(cpu) {
		memset(line, 0, slots * sizeof(*line));
		if (smp_call_function_single(cpu, read_registers, line, 1))
			continue;
		for (slot = 0; slot < slots; slot++)
			show_register(m, cpu, slot, &line[slot]);
	}

	return 0;
}

/* ---- Messages about ENOSPC ---- */

static bool same_holder(const struct bp_owner *a, const struct bp_owner *b)
{
	return a->client == b->client && a->pid == b->pid && a->handler == b->handler &&
	       !strcmp(a->name, b->name);
}

static void print_holder(struct seq_buf *s, const struct bp_owner *owner)
{
	if (s->len)
		seq_buf_putc(s, ' ');
	if (*owner->name)
		seq_buf_puts(s, owner->name);
	else if (owner->handler && IS_ENABLED(CONFIG_KALLSYMS))
		seq_buf_printf(s, "%ps", owner->handler);
	else if (owner->pid)
		seq_buf_printf(s, "%s:%d", owner->client, owner->pid);
	else
		seq_buf_puts(s, owner->client);
}

void hw_breakpoint_holders(char *buf, size_t size)
{
	struct bp_owner last = { };
	struct bp_line line;
	struct bp_walk walk;
	struct seq_buf s;

	seq_buf_init(&s, buf, size);
	bp_slots_walk_begin(&bp_machine, &walk);
	while (!seq_buf_has_overflowed(&s) && next_claim(&walk, &line)) {
		/* Often a process has one event for each CPU: print it once. */
		if (same_holder(&line.owner, &last))
			continue;
		print_holder(&s, &line.owner);
		last = line.owner;
	}
	bp_slots_walk_end(&bp_machine, &walk);
	seq_buf_str(&s);
}

/* ---- The file ---- */

static int slots_show(struct seq_file *m, void *unused)
{
	show_classes(m);
	show_claims(m);
	return show_registers(m);
}

static int slots_open(struct inode *inode, struct file *file)
{
	size_t claims = bp_slots_nr_claims(&bp_machine), size;

	size = (claims + num_online_cpus() * BP_SLOTS_MAX + TYPE_MAX) * LINE_SIZE;

	return single_open_size(file, slots_show, NULL, size);
}

static const struct file_operations slots_fops = {
	.open		= slots_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int __init bp_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("hw_breakpoint", NULL);

	debugfs_create_file("slots", 0400, dir, NULL, &slots_fops);
	return 0;
}
late_initcall(bp_debugfs_init);
