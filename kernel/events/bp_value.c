// SPDX-License-Identifier: GPL-2.0
/*
 * Values of the objects that breakpoints watch; see bp_value.h.
 */

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/hw_breakpoint_arch.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/oom.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/secretmem.h>
#include <linux/security.h>
#include <linux/seqlock.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include <asm/sections.h>
#include <asm/tlb.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "process.h"

static_assert(HW_BREAKPOINT_VALUE_MAX % sizeof(u64) == 0);

DEFINE_PER_CPU(bool, bp_value_reads);

/* Returns false if this CPU has interrupted code that has locked @value. Interrupts off. */
static __always_inline bool lock_value(struct bp_value *value)
{
	int owner;

	while (unlikely(!bp_value_trylock(value, &owner))) {
		if (owner == raw_smp_processor_id() + 1)
			return false;
		while (READ_ONCE(value->owner))
			cpu_relax();
	}

	return true;
}

/* ---- Reading memory ---- */

static bool is_user_address(unsigned long addr)
{
	return addr < TASK_SIZE_MAX;
}

/* As bp_value_read_word(): what another CPU stores by one instruction is not torn. */
static bool copy_from_page(void *to, struct page *page, unsigned long addr, unsigned int len)
{
	void *from = kmap_local_page(page);
	bool known = !copy_from_kernel_nofault(to, from + offset_in_page(addr), len);

	kunmap_local(from);
	return known;
}

static unsigned int rest_of_page(unsigned long addr, unsigned int len)
{
	return min_t(unsigned int, len, PAGE_SIZE - offset_in_page(addr));
}

bool __weak arch_hw_breakpoint_keeps_page(void)
{
	return false;
}

/* References to the pages that a look has read: an object is in one or two. */
struct bp_value_pages {
	struct page	*page[2];
	unsigned int	nr;
};

static_assert(HW_BREAKPOINT_VALUE_MAX <= PAGE_SIZE);

/*
 * Releasing the last reference frees the page, for which the allocator takes locks. The chain
 * must not be locked: a CPU that has one of these locks may be hit and wait for the chain.
 */
static void put_pages(struct bp_value_pages *pages)
{
	while (pages->nr)
		put_page(pages->page[--pages->nr]);
}

/*
 * Reads memory of current without a fault. get_user_page_fast_only() refuses memory that is
 * not RAM, is not accessible or is secret. Interrupts off.
 */
static bool read_pages(void *to, unsigned long addr, unsigned int len,
		       struct bp_value_pages *pages)
{
	struct page **page;
	unsigned int size;

	for (; len; to += size, addr += size, len -= size) {
		size = rest_of_page(addr, len);
		page = &pages->page[pages->nr];
		if (!get_user_page_fast_only(addr, 0, page))
			return false;
		pages->nr++;
		if (!copy_from_page(to, *page, addr, size))
			return false;
	}

	return true;
}

/*
 * Reads another memory. Faults a page in if that needs no waiting. Without
 * FOLL_FORCE, and without access_remote_vm(), which would read devices.
 */
static bool read_mm(struct mm_struct *mm, void *to, unsigned long addr, unsigned int len)
{
	unsigned int size = len;
	struct page *page;
	bool known;

	if (mmap_read_lock_killable(mm))
		return false;
	for (; len; to += size, addr += size, len -= size) {
		size = rest_of_page(addr, len);
		if (get_user_pages_remote(mm, addr, 1, FOLL_NOWAIT, &page, NULL) != 1)
			break;
		known = copy_from_page(to, page, addr, size);
		put_page(page);
		if (!known)
			break;
	}
	mmap_read_unlock(mm);

	return !len;
}

/*
 * True if a page of kernel addresses is RAM. Not only when the event is opened: an area of
 * vmalloc may become one of ioremap(). With interrupts off the area stays until the read: the
 * TLB is flushed before the addresses are used again. The direct map also has the first
 * megabyte, in which there are devices, and nothing that is worth a breakpoint.
 */
static bool is_ram(unsigned long addr)
{
	struct page *page;

	if (is_vmalloc_or_module_addr((void *)addr)) {
		page = vmalloc_to_page((void *)addr);
		/* Memory of devices has no struct page, or a reserved one. */
		return page && pfn_valid(page_to_pfn(page)) && !PageReserved(page);
	}

	return (virt_addr_valid((void *)addr) && __pa(addr) >= SZ_1M) || __is_kernel(addr);
}

static bool read_kernel(void *to, unsigned long addr, unsigned int len)
{
	bool known;

	guard(irqsave)();
	if (!is_ram(addr) || !is_ram(addr + len - 1))
		return false;

	bp_value_begin_read();
	known = !copy_from_kernel_nofault(to, (void *)addr, len);
	bp_value_end_read();

	return known;
}

static unsigned int words(const struct bp_value *value)
{
	return DIV_ROUND_UP(value->len, sizeof(u64));
}

/* ---- Chains ---- */

/* By words: zeros that follow @before are overwritten by @after. */
static __always_inline void fill_record(struct bp_value_record *record, unsigned int len,
					const u64 *before, const u64 *after)
{
	unsigned int i, nr = DIV_ROUND_UP(len, sizeof(u64));
	u8 *to = record->bytes;

	record->len = len;
	record->flags = (before ? HW_BREAKPOINT_BEFORE_KNOWN : 0) |
			(after ? HW_BREAKPOINT_AFTER_KNOWN : 0);
	record->offset = 0;
	for (i = 0; i < nr; i++)
		put_unaligned(before ? before[i] : 0, (u64 *)to + i);
	for (i = 0; i < nr; i++)
		put_unaligned(after ? after[i] : 0, (u64 *)(to + len) + i);
}

static bool is_same(const struct bp_value *value, const u64 *now)
{
	unsigned int i;

	for (i = 0; i < words(value); i++) {
		if (value->bytes[i] != now[i])
			return false;
	}

	return true;
}

bool bp_value_step(struct bp_value *value, const u64 *now, bool only_changes,
		   struct bp_value_record *record)
{
	unsigned int i;

	if (only_changes && now && value->known && is_same(value, now))
		return false;

	fill_record(record, value->len, value->known ? value->bytes : NULL, now);
	value->known = now;
	for (i = 0; now && i < words(value); i++)
		value->bytes[i] = now[i];

	return true;
}

/* The tasks of the memory have executed a program, or the task is in the child of a fork. */
static void check_exec(struct bp_value *value)
{
	u64 id = READ_ONCE(current->self_exec_id);

	if (likely(value->exec_id == id))
		return;
	value->exec_id = id;
	value->known = false;
	value->plain_seq = BP_VALUE_NOT_PLAIN;
}

static bool read_plain(const struct bp_value *value, u64 *now)
{
	bool known;

	if (likely(bp_value_read_word(value, now)))
		return true;
	pagefault_disable();
	bp_value_begin_read();
	known = !__copy_from_user_inatomic(now, (const void __user *)value->addr, value->len);
	bp_value_end_read();
	pagefault_enable();

	return known;
}

#ifdef CONFIG_PER_VMA_LOCK
/*
 * True if the mapping at @addr has only ordinary memory. Lockless: it may be changed and freed
 * at the same time, and then @seq is over.
 */
static bool is_plain(struct mm_struct *mm, unsigned long addr, unsigned int seq)
{
	struct vm_area_struct *vma;
	vm_flags_t flags;

	guard(rcu)();
	vma = vma_lookup(mm, addr);
	if (!vma || vma_is_secretmem(vma))
		return false;
	flags = READ_ONCE(vma->vm_flags);

	return (flags & VM_READ) && !(flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP)) &&
	       !read_seqcount_retry(&mm->mm_lock_seq, seq);
}

/* Tasks with different memories have the chain of a kernel-wide set: it has no target. */
static bool find_plain_memory(struct bp_value *value, const struct perf_event *bp)
{
	unsigned int seq = raw_read_seqcount(&current->mm->mm_lock_seq);

	if ((seq & 1) || !bp->hw.target || (current->flags & PF_KTHREAD) ||
	    rest_of_page(value->addr, value->len) < value->len ||
	    !arch_hw_breakpoint_keeps_page() || !is_plain(current->mm, value->addr, seq))
		return false;
	value->plain_seq = seq;

	return true;
}
#else
static bool find_plain_memory(struct bp_value *value, const struct perf_event *bp)
{
	return false;
}
#endif

/*
 * An access by code with interrupts off may have been made under a lock that is needed to
 * free the page, if this look has its last reference. On PREEMPT_RT such a lock sleeps, which
 * #DB must not: there a look must not have the last reference.
 */
static bool may_read_pages(struct pt_regs *regs)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && !arch_hw_breakpoint_keeps_page())
		return false;
	return user_mode(regs) || !arch_hw_breakpoint_irqs_off(regs);
}

static bool read_user(struct bp_value *value, u64 *now, const struct perf_event *bp,
		      struct pt_regs *regs, struct bp_value_pages *pages)
{
	/* False for code that runs with another memory than that of its task, or without one */
	if (!user_mode(regs) && !nmi_uaccess_okay())
		return false;
	if (likely(bp_value_is_plain(value) || find_plain_memory(value, bp)))
		return read_plain(value, now);
	return may_read_pages(regs) && read_pages(now, value->addr, value->len, pages);
}

static bool read_object(struct bp_value *value, u64 *now, const struct perf_event *bp,
			struct pt_regs *regs, struct bp_value_pages *pages)
{
	now[words(value) - 1] = 0;
	if (is_user_address(value->addr))
		return read_user(value, now, bp, regs, pages);
	return read_kernel(now, value->addr, value->len);
}

/* True for a hit of a former address: this CPU is still to adopt the newest one. */
static bool is_late(const struct perf_event *bp)
{
	const struct bp_wide_cpu *wcpu = bp->hw.bp_wide;

	return atomic64_read(&wcpu->settled) != atomic64_read(&wcpu->set->seq);
}

bool bp_value_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
		  struct bp_value_record *record)
{
	struct bp_value *value = bp_value_of_current(bp);
	u64 now[BP_VALUE_WORDS] __uninitialized;
	struct bp_value_pages pages __uninitialized;
	bool hit;

	if (!lock_value(value)) {
		fill_record(record, value->len, NULL, NULL);
		return true;
	}

	if (unlikely(addr - value->addr >= value->len || value->behind)) {
		/*
		 * The event is being modified. Or the set was repointed, and there was no look
		 * in bp_value_follow(), or CPUs watch different objects: the chain follows.
		 */
		if (!bp_is_wide(bp) || is_late(bp)) {
			bp_value_unlock(value);
			fill_record(record, value->len, NULL, NULL);
			return true;
		}
		value->addr = addr;
		value->behind = false;
		value->known = false;
	}
	if (is_user_address(value->addr))
		check_exec(value);
	pages.nr = 0;
	hit = bp_value_step(value, read_object(value, now, bp, regs, &pages) ? now : NULL,
			    bp->attr.config & HW_BREAKPOINT_CHANGED, record);
	bp_value_unlock(value);
	put_pages(&pages);

	if (!hit)
		bp_value_count_silent(bp);
	return hit;
}

/* ---- Looking at an object from a task ---- */

static void set_value(struct bp_value *value, const u64 *now, u64 exec_id)
{
	unsigned int i;

	guard(irqsave)();
	if (!lock_value(value))
		return;
	value->known = now;
	value->exec_id = exec_id;
	value->plain_seq = BP_VALUE_NOT_PLAIN;
	for (i = 0; now && i < words(value); i++)
		value->bytes[i] = now[i];
	bp_value_unlock(value);
}

/* fork() may still fail: then pointers of @task to its memory and signals dangle. */
static bool is_being_created(const struct task_struct *task)
{
	return READ_ONCE(task->__state) == TASK_NEW;
}

/*
 * Returns the memory of @task, which may have exited before other threads, or NULL. Sets
 * @exec_id to the ID of a thread that has the memory: the ID of @task does not change any more
 * if another thread executes a program. The ID of the next program is never read with the memory
 * of the last one: exec_mmap() takes task_lock() before exec increments the ID.
 */
static struct mm_struct *get_mm(struct task_struct *task, u64 *exec_id)
{
	struct mm_struct *mm = NULL;

	if ((task->flags & PF_KTHREAD) || is_being_created(task))
		return NULL;
	task = find_lock_task_mm(task);
	if (task) {
		mm = task->mm;
		*exec_id = READ_ONCE(task->self_exec_id);
		mmget(mm);
		task_unlock(task);
	}

	return mm;
}

/* If @shared is set: only if it is the memory of @task. */
static void look_at_task(struct bp_value *value, struct task_struct *task,
			 const struct mm_struct *shared)
{
	u64 now[BP_VALUE_WORDS] = { }, exec_id = 0;
	struct mm_struct *mm = get_mm(task, &exec_id);
	bool known;

	known = mm && read_mm(mm, now, value->addr, value->len);
	/* The last mmput() may close an event, for which the caller has locked the context. */
	if (mm)
		mmput_async(mm);
	if (!shared || mm == shared)
		set_value(value, known ? now : NULL, exec_id);
}

void bp_value_look(struct bp_value *value)
{
	u64 now[BP_VALUE_WORDS] = { };

	set_value(value, read_kernel(now, value->addr, value->len) ? now : NULL, 0);
}

void bp_value_follow(struct bp_value *value, unsigned long addr)
{
	u64 now[BP_VALUE_WORDS] __uninitialized;
	int owner;

	/*
	 * An NMI may have interrupted a look at this object, or at another one for which the
	 * owner waits in an NMI: the next hit follows.
	 */
	if (in_nmi() ? !bp_value_trylock(value, &owner) : !lock_value(value)) {
		WRITE_ONCE(value->behind, true);
		return;
	}
	if (value->addr != addr || value->behind) {
		now[words(value) - 1] = 0;
		value->addr = addr;
		value->behind = false;
		value->known = read_kernel(now, addr, value->len);
		value->plain_seq = BP_VALUE_NOT_PLAIN;
		memcpy(value->bytes, now, words(value) * sizeof(*now));
	}
	bp_value_unlock(value);
}

static void look(struct bp_value *value, struct task_struct *task, const struct mm_struct *shared)
{
	if (!is_user_address(value->addr))
		bp_value_look(value);
	else if (task)
		look_at_task(value, task, shared);
}

/* ---- Lifetime ---- */

struct bp_value *bp_value_alloc(unsigned long addr, unsigned int len)
{
	struct bp_value *value = kzalloc(sizeof(*value), GFP_KERNEL_ACCOUNT);

	if (!value)
		return NULL;
	refcount_set(&value->refs, 1);
	value->addr = addr;
	value->len = len;
	value->plain_seq = BP_VALUE_NOT_PLAIN;

	return value;
}

static struct bp_value *get_value(struct bp_value *value)
{
	refcount_inc(&value->refs);
	return value;
}

void bp_value_put(struct bp_value *value)
{
	while (value && refcount_dec_and_test(&value->refs)) {
		struct bp_value *shared = value->shared;

		if (shared)
			mmdrop(value->mm);
		kfree_rcu(value, rcu);
		value = shared;
	}
}

/* Lets @value use @shared in tasks with @mm. */
static void share(struct bp_value *value, struct bp_value *shared, struct mm_struct *mm)
{
	mmgrab(mm);
	value->mm = mm;
	value->shared = get_value(shared);
}

void bp_value_share(struct perf_event *bp, struct bp_value *value)
{
	bp->hw.bp_value = get_value(value);
}

int bp_value_init(struct perf_event *bp)
{
	if (bp->parent) {
		/* A member of a family of a process; its head does not join other events. */
		if (hw_breakpoint_is_process(&bp->attr))
			bp_value_share(bp, bp->parent->hw.bp_value);
		return 0;
	}

	bp->hw.bp_value = bp_value_alloc(bp->attr.bp_addr, bp->attr.bp_len);
	return bp->hw.bp_value ? 0 : -ENOMEM;
}

void bp_value_destroy(struct perf_event *bp)
{
	bp_value_put(bp->hw.bp_value);
	bp_value_put(bp->hw.bp_next_value);
}

/* ---- Events for one CPU each ---- */

/* The events of the task or process of @bp that have no parent, one after the other */
static struct perf_event *next_root(const struct perf_event *bp,
				    const struct perf_event_context *ctx,
				    const struct perf_event *root)
{
	struct hlist_node *node;
	struct list_head *link;

	if (bp->process) {
		if (root)
			node = rcu_dereference_raw(hlist_next_rcu(&root->hlist_entry));
		else
			node = rcu_dereference_raw(hlist_first_rcu(&bp->process->heads));
		return hlist_entry_safe(node, struct perf_event, hlist_entry);
	}

	link = root ? root->event_entry.next : ctx->event_list.next;
	return link == &ctx->event_list ? NULL : list_entry(link, struct perf_event, event_entry);
}

#define for_each_root(root, bp, ctx)				\
	for ((root) = next_root(bp, ctx, NULL); (root);		\
	     (root) = next_root(bp, ctx, root))

/* True if current or the opener of @bp has opened @root for another CPU, but alike. */
static bool is_alike(const struct perf_event *bp, const struct perf_event *root)
{
	const struct perf_event_attr *a = &bp->attr, *b = &root->attr;

	return root != bp && root->pmu == bp->pmu && root->hw.bp_value && !root->parent &&
	       root->cpu != -1 && !perf_process_is_family(root) && root->cpu != bp->cpu &&
	       READ_ONCE(root->owner) == (READ_ONCE(bp->owner) ?: current) &&
	       a->config == b->config && a->bp_type == b->bp_type && a->inherit == b->inherit &&
	       a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel;
}

/* True if another event for the CPU of @bp has the chain, whose hits would take its changes. */
static bool is_used_on_cpu(const struct perf_event *bp, const struct perf_event_context *ctx,
			   const struct bp_value *value)
{
	struct perf_event *root;

	for_each_root(root, bp, ctx) {
		if (root != bp && root->pmu == bp->pmu && root->hw.bp_value == value &&
		    root->cpu == bp->cpu)
			return true;
	}

	return false;
}

/* Returns a reference to the chain that an event for another CPU has for the object, or NULL. */
static struct bp_value *join(const struct perf_event *bp, const struct perf_event_context *ctx,
			     unsigned long addr, unsigned int len)
{
	struct perf_event *root;
	struct bp_value *value;

	if (bp->cpu == -1 || perf_process_is_family(bp) || !bp->hw.target)
		return NULL;

	if (bp->process)
		lockdep_assert_held(&bp->process->mutex);
	for_each_root(root, bp, ctx) {
		cond_resched();
		if (fatal_signal_pending(current))
			return NULL;
		if (!is_alike(bp, root))
			continue;
		value = root->hw.bp_value;
		if (value->addr == addr && value->len == len && !is_used_on_cpu(bp, ctx, value))
			return get_value(value);
	}

	return NULL;
}

/* False if hits of @bp do not take the value of the chain. The caller holds rcu_read_lock(). */
static bool is_on(const struct perf_event *bp)
{
	return READ_ONCE(bp->state) >= PERF_EVENT_STATE_INACTIVE && !perf_process_is_over(bp) &&
	       READ_ONCE(bp->group_leader)->state >= PERF_EVENT_STATE_INACTIVE;
}

/* True if hits of the task of @bp use the chain. */
static bool uses(const struct perf_event *bp, const struct bp_value *chain)
{
	const struct bp_value *value = bp->hw.bp_value;

	return value == chain || (value && READ_ONCE(value->shared) == chain &&
				  READ_ONCE(value->mm) == READ_ONCE(bp->hw.target->mm));
}

/*
 * Returns a reference to the chain that hits of the task of @bp use. If it is not that of @bp, @mm
 * is its memory, else NULL.
 */
static struct bp_value *get_chain(const struct perf_event *bp, const struct mm_struct **mm)
{
	struct bp_value *shared;

	guard(rcu)();
	/* The task of @bp may be in forget_shared(). */
	*mm = READ_ONCE(bp->hw.bp_value->mm);
	shared = READ_ONCE(bp->hw.bp_value->shared);
	if (*mm && shared && uses(bp, shared) && refcount_inc_not_zero(&shared->refs))
		return shared;

	*mm = NULL;
	return get_value(bp->hw.bp_value);
}

static bool is_live_root(const struct perf_event *bp, const struct perf_event_context *ctx,
			 const struct bp_value *chain)
{
	const struct perf_event *of = bp->parent ?: bp;
	struct perf_event *root;

	guard(rcu)();
	for_each_root(root, of, ctx) {
		if (root != bp && root->pmu == bp->pmu && root->hw.bp_value == chain && is_on(root))
			return true;
	}

	return false;
}

static bool is_live_child(const struct perf_event *bp, const struct bp_value *chain)
{
	const struct perf_event *root = bp->parent ?: bp, *child;

	guard(rcu)();
	list_for_each_entry(child, &root->child_list, child_list) {
		if (child != bp && uses(child, chain) && is_on(child))
			return true;
	}

	return false;
}

/* Of the events for other CPUs that the task of @child has inherited with it */
static bool is_live_beside(const struct perf_event *child, const struct bp_value *chain)
{
	struct perf_event *bp;

	guard(raw_spinlock_irqsave)(&child->ctx->lock);
	list_for_each_entry(bp, &child->ctx->event_list, event_entry) {
		if (bp != child && bp->pmu == child->pmu && uses(bp, chain) && is_on(bp))
			return true;
	}

	return false;
}

/*
 * Returns true if an event that is on, other than @bp, uses @chain, to which the caller has a
 * reference. @ctx is the context of @bp, or of its parent, whose child_mutex the caller holds
 * unless @bp is new.
 */
static bool is_live(const struct perf_event *bp, const struct perf_event_context *ctx,
		    const struct bp_value *chain)
{
	if (perf_process_is_family(bp) || refcount_read(&chain->refs) <= 1 + uses(bp, chain))
		return false;
	return is_live_root(bp, ctx, chain) || is_live_child(bp, chain) ||
	       (bp->parent && bp->cpu != -1 && is_live_beside(bp, chain));
}

/* Its next hit tells what has changed if @chain is live. */
static void look_unless_live(const struct perf_event *bp, const struct perf_event_context *ctx,
			     struct bp_value *chain, const struct mm_struct *shared)
{
	if (!is_live(bp, ctx, chain))
		look(chain, bp->hw.target, shared);
}

/* ---- Opening and enabling ---- */

void bp_value_open(struct perf_event *bp, const struct perf_event_context *ctx)
{
	struct bp_value *value = bp->hw.bp_value, *joined;

	if (value->opened)
		return;

	joined = join(bp, ctx, value->addr, value->len);
	if (joined) {
		look_unless_live(bp, ctx, joined, NULL);
		bp->hw.bp_value = joined;
		bp_value_put(value);
		return;
	}
	value->opened = true;
	look(value, bp->hw.target, NULL);
}

static void look_if_off(const struct perf_event *bp, const struct perf_event_context *ctx)
{
	const struct mm_struct *mm;
	struct bp_value *chain;

	scoped_guard(rcu) {
		if (is_on(bp))
			return;
	}
	chain = get_chain(bp, &mm);
	/* The task may not have its memory yet, or may get another one. */
	look_unless_live(bp, ctx, chain, mm);
	bp_value_put(chain);
}

void bp_value_enabling(struct perf_event *bp)
{
	/* The task of an event that has ended may be that of another user now. */
	bool ended = READ_ONCE(bp->state) <= PERF_EVENT_STATE_EXIT;
	struct perf_event *child;

	if (bp_is_wide(bp))
		return;
	if (!ended)
		look_if_off(bp, bp->ctx);
	if (perf_process_is_family(bp))
		return;

	list_for_each_entry(child, &bp->child_list, child_list) {
		cond_resched();
		if (ended || !uses(child, bp->hw.bp_value))
			look_if_off(child, bp->ctx);
	}
}

/* ---- Inheriting ---- */

/* The chain of an event for another CPU that was inherited from @shared */
static struct bp_value *join_inherited(const struct perf_event *child,
				       struct perf_event_context *ctx,
				       const struct bp_value *shared)
{
	struct perf_event *bp;

	if (child->cpu == -1)
		return NULL;

	guard(raw_spinlock_irqsave)(&ctx->lock);
	list_for_each_entry(bp, &ctx->event_list, event_entry) {
		if (bp->pmu == child->pmu && bp->hw.bp_value && bp->cpu != child->cpu &&
		    bp->hw.bp_value->shared == shared)
			return get_value(bp->hw.bp_value);
	}

	return NULL;
}

static void copy_value(struct bp_value *to, struct bp_value *from)
{
	guard(irqsave)();
	if (!lock_value(from))
		return;
	to->known = from->known;
	to->exec_id = from->exec_id;
	memcpy(to->bytes, from->bytes, sizeof(to->bytes));
	bp_value_unlock(from);
}

/* The event of current that @child is inherited from. The caller forks: its context stays. */
static const struct perf_event *inherited_from(const struct perf_event *child)
{
	const struct perf_event *bp;

	list_for_each_entry(bp, &current->perf_event_ctxp->event_list, event_entry) {
		if (bp == child->parent || bp->parent == child->parent)
			return bp;
	}

	return child->parent;
}

/*
 * A task does not get a former memory back, so it needs the chain of that one no more. Else
 * each generation of processes would keep the one before it. Only hits of current use these
 * pointers; others compare them.
 */
static void forget_shared(struct bp_value *value)
{
	struct bp_value *shared = value->shared;
	struct mm_struct *mm = value->mm;

	if (!shared)
		return;
	scoped_guard(irqsave) {
		WRITE_ONCE(value->shared, NULL);
		WRITE_ONCE(value->mm, NULL);
	}
	mmdrop(mm);
	bp_value_put(shared);
}

/* Another thread may write to the object before the memory is copied. */
static bool is_only_thread(void)
{
	return current->mm && atomic_read(&current->mm->mm_users) == 1;
}

int bp_value_inherit(struct perf_event *child, struct perf_event_context *ctx)
{
	const struct perf_event *from = inherited_from(child);
	struct bp_value *shared = bp_value_of_current(from), *value;

	if (shared == from->hw.bp_value)
		forget_shared(shared);
	if (!is_user_address(shared->addr)) {
		bp_value_share(child, shared);
		return 0;
	}

	value = join_inherited(child, ctx, shared);
	if (!value) {
		value = bp_value_alloc(shared->addr, shared->len);
		if (!value)
			return -ENOMEM;
		if (is_only_thread())
			copy_value(value, shared);
		if (current->mm)
			share(value, shared, current->mm);
	}
	child->hw.bp_value = value;

	return 0;
}

/* ---- Modifying ---- */

/* Returns the event before @child in its family whose next chain is for @mm, or NULL. */
static const struct perf_event *first_with_mm(const struct perf_event *root,
					      const struct perf_event *child,
					      const struct mm_struct *mm)
{
	const struct perf_event *bp = root;

	do {
		if (bp->hw.target && READ_ONCE(bp->hw.target->mm) == mm &&
		    !is_being_created(bp->hw.target) && !bp->hw.bp_next_value->shared)
			return bp;
		bp = bp == root ? list_first_entry(&root->child_list, struct perf_event, child_list)
				: list_next_entry(bp, child_list);
	} while (bp != child);

	return NULL;
}

/* Returns a reference to the chain that another event of the task of @child has, or NULL. */
static struct bp_value *join_next(const struct perf_event *root, const struct perf_event *child,
				  const struct bp_value *next)
{
	struct bp_value *value = NULL;
	const struct perf_event *bp;

	if (child->cpu == -1)
		return NULL;

	guard(raw_spinlock_irqsave)(&child->ctx->lock);
	list_for_each_entry(bp, &child->ctx->event_list, event_entry) {
		if (bp->parent && is_alike(root, bp->parent) &&
		    bp->hw.bp_value->addr == next->addr && bp->hw.bp_value->len == next->len)
			value = bp->hw.bp_value;
	}
	list_for_each_entry(bp, &child->ctx->event_list, event_entry) {
		/* As in is_used_on_cpu() */
		if (bp->pmu == child->pmu && bp->hw.bp_value == value && bp->cpu == child->cpu)
			return NULL;
	}

	return value ? get_value(value) : NULL;
}

static int prepare_child(const struct perf_event *root, struct perf_event *child)
{
	struct bp_value *next = root->hw.bp_next_value;
	const struct perf_event *first;
	struct mm_struct *own, *mm;
	u64 exec_id;

	if (hw_breakpoint_is_process(&root->attr) || !is_user_address(next->addr)) {
		child->hw.bp_next_value = get_value(next);
		return 0;
	}

	child->hw.bp_next_value = join_next(root, child, next);
	if (child->hw.bp_next_value) {
		look_unless_live(child, root->ctx, child->hw.bp_next_value, NULL);
		return 0;
	}
	next = bp_value_alloc(next->addr, next->len);
	if (!next)
		return -ENOMEM;
	/* Only compared: see is_being_created(). */
	own = READ_ONCE(child->hw.target->mm);
	first = own ? first_with_mm(root, child, own) : NULL;
	mm = first ? get_mm(first->hw.target, &exec_id) : NULL;
	if (mm && mm == own)
		share(next, first->hw.bp_next_value, mm);
	else
		look(next, child->hw.target, NULL);
	if (mm)
		mmput_async(mm);
	child->hw.bp_next_value = next;

	return 0;
}

int bp_value_prepare(struct perf_event *bp, const struct perf_event_attr *attr)
{
	struct perf_event *child;
	struct bp_value *next;
	int err;

	next = join(bp, bp->ctx, attr->bp_addr, attr->bp_len);
	if (next) {
		look_unless_live(bp, bp->ctx, next, NULL);
	} else {
		next = bp_value_alloc(attr->bp_addr, attr->bp_len);
		if (!next)
			return -ENOMEM;
		next->opened = true;
		/* The task of an event that has ended may be that of another user now. */
		if (READ_ONCE(bp->state) > PERF_EVENT_STATE_EXIT)
			look(next, bp->hw.target, NULL);
	}
	bp->hw.bp_next_value = next;

	list_for_each_entry(child, &bp->child_list, child_list) {
		/* A child that has a memory of its own is compared with all before it. */
		cond_resched();
		err = prepare_child(bp, child);
		if (err)
			return err;
	}

	return 0;
}

static void finish(struct perf_event *bp)
{
	bp_value_put(bp->hw.bp_next_value);
	bp->hw.bp_next_value = NULL;
}

void bp_value_finish(struct perf_event *bp)
{
	struct perf_event *child;

	finish(bp);
	list_for_each_entry(child, &bp->child_list, child_list)
		finish(child);
}

/* ---- Checks ---- */

int bp_value_check(const struct perf_event *bp, const struct perf_event_attr *attr, bool kernel)
{
	if (!(attr->bp_type & HW_BREAKPOINT_RW))
		return -EINVAL;
	/* A read changes nothing. */
	if ((attr->config & HW_BREAKPOINT_CHANGED) && !(attr->bp_type & HW_BREAKPOINT_W))
		return -EINVAL;
	/* A user address is an object only together with a memory. */
	if (!kernel && !bp->hw.target)
		return -EINVAL;
	if (!arch_hw_breakpoint_after_access() || attr->bp_len > HW_BREAKPOINT_VALUE_MAX)
		return -EOPNOTSUPP;

	return kernel && !bp->parent ? security_locked_down(LOCKDOWN_PERF) : 0;
}
