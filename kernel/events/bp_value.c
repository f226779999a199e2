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
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/oom.h>
#include <linux/pgtable.h>
#include <linux/processor.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include <asm/sections.h>

#include "bp_internal.h"
#include "bp_value.h"
#include "process.h"

static_assert(HW_BREAKPOINT_VALUE_MAX % sizeof(u64) == 0);

/* ---- The lock of a chain: interrupts off ---- */

/* Returns false if this CPU has interrupted code that has locked @value. */
static __always_inline bool lock_value(struct bp_value *value)
{
	int self = raw_smp_processor_id() + 1, owner = 0;

	while (!try_cmpxchg_acquire(&value->owner, &owner, self)) {
		if (owner == self)
			return false;
		while (READ_ONCE(value->owner))
			cpu_relax();
		owner = 0;
	}

	return true;
}

static __always_inline void unlock_value(struct bp_value *value)
{
	/* Pairs with lock_value(). */
	smp_store_release(&value->owner, 0);
}

/* ---- Reading memory ---- */

static bool is_user_address(unsigned long addr)
{
	return addr < TASK_SIZE_MAX;
}

/*
 * An aligned object of a machine word or less is read by one instruction: what another CPU
 * stores by one is not torn.
 */
static __always_inline void copy_object(void *to, const void *from, unsigned int len)
{
	unsigned int size;

	for (; len; to += size, from += size, len -= size) {
		if (len >= sizeof(long) && IS_ALIGNED((unsigned long)from, sizeof(long))) {
			size = sizeof(long);
			put_unaligned(READ_ONCE(*(const unsigned long *)from),
				      (unsigned long *)to);
		} else if (len >= sizeof(u32) && IS_ALIGNED((unsigned long)from, sizeof(u32))) {
			size = sizeof(u32);
			put_unaligned(READ_ONCE(*(const u32 *)from), (u32 *)to);
		} else if (len >= sizeof(u16) && IS_ALIGNED((unsigned long)from, sizeof(u16))) {
			size = sizeof(u16);
			put_unaligned(READ_ONCE(*(const u16 *)from), (u16 *)to);
		} else {
			size = sizeof(u8);
			*(u8 *)to = READ_ONCE(*(const u8 *)from);
		}
	}
}

static void copy_from_page(void *to, struct page *page, unsigned long addr, unsigned int len)
{
	void *from = kmap_local_page(page);

	copy_object(to, from + offset_in_page(addr), len);
	kunmap_local(from);
}

static unsigned int rest_of_page(unsigned long addr, unsigned int len)
{
	return min_t(unsigned int, len, PAGE_SIZE - offset_in_page(addr));
}

/* Finds the entry of a small page. Interrupts off: then page tables are not freed. */
static __always_inline pte_t *find_pte(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgdp = pgd_offset(mm, addr), pgd = READ_ONCE(*pgdp);
	p4d_t *p4dp, p4d;
	pud_t *pudp, pud;
	pmd_t *pmdp, pmd;

	if (!pgd_present(pgd) || pgd_leaf(pgd))
		return NULL;
	p4dp = p4d_offset_lockless(pgdp, pgd, addr);
	p4d = READ_ONCE(*p4dp);
	if (!p4d_present(p4d) || p4d_leaf(p4d))
		return NULL;
	pudp = pud_offset_lockless(p4dp, p4d, addr);
	pud = READ_ONCE(*pudp);
	if (!pud_present(pud) || pud_leaf(pud))
		return NULL;
	pmdp = pmd_offset_lockless(pudp, pud, addr);
	pmd = pmdp_get_lockless(pmdp);
	if (!pmd_present(pmd) || pmd_leaf(pmd))
		return NULL;
	return pte_offset_kernel(&pmd, addr);
}

/*
 * Reads a small page of anonymous memory, as get_user_page_fast_only() does, on a shorter
 * path: each hit reads the object. The reference is for machines that flush TLBs without an
 * IPI.
 */
static bool read_anonymous(void *to, unsigned long addr, unsigned int len)
{
	struct folio *folio;
	struct page *page;
	pte_t *ptep, pte;
	bool known;

	if (!IS_ENABLED(CONFIG_HAVE_GUP_FAST) || IS_ENABLED(CONFIG_HIGHPTE))
		return false;
	ptep = find_pte(current->mm, addr);
	if (!ptep)
		return false;
	pte = ptep_get_lockless(ptep);
	if (!pte_present(pte) || pte_protnone(pte) || !pte_access_permitted(pte, false))
		return false;
	if (unlikely(pte_special(pte) || pte_devmap(pte))) {
		/* get_user_page_fast_only() has no page for a page that was only read. */
		if (!is_zero_pfn(pte_pfn(pte)))
			return false;
		memset(to, 0, len);
		return true;
	}

	page = pte_page(pte);
	folio = page_folio(page);
	if (!folio_try_get(folio))
		return false;
	known = folio_test_anon(folio) && page_folio(page) == folio &&
		pte_same(pte, ptep_get_lockless(ptep));
	if (known)
		copy_from_page(to, page, addr, len);
	folio_put(folio);

	return known;
}

static bool read_user_page(void *to, unsigned long addr, unsigned int len)
{
	struct page *page;

	if (likely(read_anonymous(to, addr, len)))
		return true;
	/* Refuses memory that is not RAM, is not accessible or is secret */
	if (!get_user_page_fast_only(addr, 0, &page))
		return false;
	copy_from_page(to, page, addr, len);
	put_page(page);

	return true;
}

/* Reads memory of current without a fault. Interrupts off. */
static bool read_user(void *to, unsigned long addr, unsigned int len)
{
	unsigned int size;

	for (; len; to += size, addr += size, len -= size) {
		size = rest_of_page(addr, len);
		if (!read_user_page(to, addr, size))
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

	if (mmap_read_lock_killable(mm))
		return false;
	for (; len; to += size, addr += size, len -= size) {
		size = rest_of_page(addr, len);
		if (get_user_pages_remote(mm, addr, 1, FOLL_NOWAIT, &page, NULL) != 1)
			break;
		copy_from_page(to, page, addr, size);
		put_page(page);
	}
	mmap_read_unlock(mm);

	return !len;
}

/*
 * True if a page of kernel addresses is RAM. Not only when the event is opened: an area of
 * vmalloc may become one of ioremap().
 */
static bool is_ram(unsigned long addr)
{
	struct page *page;

	if (is_vmalloc_or_module_addr((void *)addr)) {
		page = vmalloc_to_page((void *)addr);
		/* Memory of devices has no struct page, or a reserved one. */
		return page && pfn_valid(page_to_pfn(page)) && !PageReserved(page);
	}

	return virt_addr_valid((void *)addr) || __is_kernel(addr);
}

static bool read_kernel(void *to, unsigned long addr, unsigned int len)
{
	return is_ram(addr) && is_ram(addr + len - 1) &&
	       !copy_from_kernel_nofault(to, (void *)addr, len);
}

static unsigned int words(const struct bp_value *value)
{
	return DIV_ROUND_UP(value->len, sizeof(u64));
}

/* ---- Chains ---- */

static void *put_bytes(void *to, const u64 *bytes, unsigned int len)
{
	if (bytes)
		memcpy(to, bytes, len);
	else
		memset(to, 0, len);
	return to + len;
}

static void fill_record(struct bp_value_record *record, unsigned int len,
			const u64 *before, const u64 *after)
{
	void *to = record->bytes;

	record->len = len;
	record->flags = (before ? HW_BREAKPOINT_BEFORE_KNOWN : 0) |
			(after ? HW_BREAKPOINT_AFTER_KNOWN : 0);
	record->offset = 0;
	to = put_bytes(to, before, len);
	put_bytes(to, after, len);
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
}

static struct bp_value *value_of_current(const struct perf_event *bp)
{
	struct bp_value *value = bp->hw.bp_value;

	return value->shared && value->mm == current->mm ? value->shared : value;
}

/*
 * An access by code with interrupts off may have been made under a lock that is needed to
 * free the page, if this look has its last reference.
 */
static bool may_read_user(struct pt_regs *regs)
{
	return current->mm && (user_mode(regs) || !arch_hw_breakpoint_irqs_off(regs));
}

static bool read_object(const struct bp_value *value, u64 *now, struct pt_regs *regs)
{
	now[words(value) - 1] = 0;
	if (is_user_address(value->addr))
		return may_read_user(regs) && read_user(now, value->addr, value->len);
	return read_kernel(now, value->addr, value->len);
}

bool bp_value_hit(struct perf_event *bp, u64 addr, struct pt_regs *regs,
		  struct bp_value_record *record)
{
	struct bp_value *value = value_of_current(bp);
	u64 now[BP_VALUE_WORDS] __uninitialized;
	bool hit;

	if (!lock_value(value)) {
		fill_record(record, value->len, NULL, NULL);
		return true;
	}

	if (unlikely(addr - value->addr >= value->len)) {
		/* The event is being modified. Or the set was repointed: the chain follows. */
		if (!bp_is_wide(bp)) {
			unlock_value(value);
			fill_record(record, value->len, NULL, NULL);
			return true;
		}
		value->addr = addr;
		value->known = false;
	}
	if (is_user_address(value->addr))
		check_exec(value);
	hit = bp_value_step(value, read_object(value, now, regs) ? now : NULL,
			    bp->attr.config & HW_BREAKPOINT_CHANGED, record);
	unlock_value(value);

	if (!hit)
		atomic64_inc(&(bp->parent ?: bp)->hw.bp_silent);
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
	for (i = 0; now && i < words(value); i++)
		value->bytes[i] = now[i];
	unlock_value(value);
}

/* fork() may still fail: then pointers of @task to its memory and signals dangle. */
static bool is_being_created(const struct task_struct *task)
{
	return READ_ONCE(task->__state) == TASK_NEW;
}

/* Returns the memory of @task, which may have exited before other threads, or NULL. */
static struct mm_struct *get_mm(struct task_struct *task)
{
	struct mm_struct *mm = NULL;

	if ((task->flags & PF_KTHREAD) || is_being_created(task))
		return NULL;
	task = find_lock_task_mm(task);
	if (task) {
		mm = task->mm;
		mmget(mm);
		task_unlock(task);
	}

	return mm;
}

/* Reads the ID first: if it is that of the next program, so is the memory. */
static void look_at_task(struct bp_value *value, struct task_struct *task)
{
	u64 now[BP_VALUE_WORDS] = { }, exec_id;
	struct mm_struct *mm;
	bool known;

	exec_id = READ_ONCE(task->self_exec_id);
	/* Pairs with task_lock() of exec_mmap(), which comes before the increment of the ID. */
	smp_rmb();
	mm = get_mm(task);
	known = mm && read_mm(mm, now, value->addr, value->len);
	/* The last mmput() may close an event, for which the caller has locked the context. */
	if (mm)
		mmput_async(mm);
	set_value(value, known ? now : NULL, exec_id);
}

static void look_at_kernel(struct bp_value *value)
{
	u64 now[BP_VALUE_WORDS] = { };

	set_value(value, read_kernel(now, value->addr, value->len) ? now : NULL, 0);
}

void bp_value_look(struct bp_value *value)
{
	look_at_kernel(value);
}

static void look(struct bp_value *value, struct task_struct *task)
{
	if (!is_user_address(value->addr))
		look_at_kernel(value);
	else if (task)
		look_at_task(value, task);
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
		kfree(value);
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
		node = root ? root->hlist_entry.next : bp->process->heads.first;
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

/*
 * Returns true if another event that is enabled has the chain of @bp, or may have it: the
 * caller need not hold perf_process::mutex.
 */
static bool is_live(const struct perf_event *bp)
{
	struct perf_event *root;

	if (bp->process)
		return !perf_process_is_family(bp) && refcount_read(&bp->hw.bp_value->refs) > 1;
	for_each_root(root, bp, bp->ctx) {
		if (root != bp && root->pmu == bp->pmu && root->hw.bp_value == bp->hw.bp_value &&
		    READ_ONCE(root->state) >= PERF_EVENT_STATE_INACTIVE)
			return true;
	}

	return false;
}

/* ---- Opening and enabling ---- */

void bp_value_open(struct perf_event *bp, const struct perf_event_context *ctx)
{
	struct bp_value *value = bp->hw.bp_value, *joined;

	if (value->opened)
		return;

	joined = join(bp, ctx, value->addr, value->len);
	if (joined) {
		bp->hw.bp_value = joined;
		bp_value_put(value);
		return;
	}
	value->opened = true;
	look(value, bp->hw.target);
}

/* A chain that others use is up to date, or its next hit tells what has changed. */
static bool uses_other_chain(const struct perf_event *child)
{
	const struct bp_value *value = child->hw.bp_value;

	return hw_breakpoint_is_process(&child->attr) || refcount_read(&value->refs) > 1 ||
	       (value->shared && READ_ONCE(child->hw.target->mm) == value->mm);
}

void bp_value_enabling(struct perf_event *bp)
{
	int state = READ_ONCE(bp->state);

	if (state != PERF_EVENT_STATE_OFF && state != PERF_EVENT_STATE_ERROR)
		return;
	if (bp_is_wide(bp) || (bp->parent ? uses_other_chain(bp) : is_live(bp)))
		return;
	look(bp->hw.bp_value, bp->hw.target);
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
	unlock_value(from);
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
	struct bp_value *shared = value_of_current(from), *value;

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

static int prepare_child(const struct perf_event *root, struct perf_event *child)
{
	struct bp_value *next = root->hw.bp_next_value;
	const struct perf_event *first;
	struct mm_struct *own, *mm;

	if (hw_breakpoint_is_process(&root->attr) || !is_user_address(next->addr)) {
		child->hw.bp_next_value = get_value(next);
		return 0;
	}

	next = bp_value_alloc(next->addr, next->len);
	if (!next)
		return -ENOMEM;
	/* Only compared: see is_being_created(). */
	own = READ_ONCE(child->hw.target->mm);
	first = own ? first_with_mm(root, child, own) : NULL;
	mm = first ? get_mm(first->hw.target) : NULL;
	if (mm && mm == own)
		share(next, first->hw.bp_next_value, mm);
	else
		look(next, child->hw.target);
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
	if (!next) {
		next = bp_value_alloc(attr->bp_addr, attr->bp_len);
		if (!next)
			return -ENOMEM;
		next->opened = true;
		/* The task of an event that has ended may be that of another user now. */
		if (READ_ONCE(bp->state) > PERF_EVENT_STATE_EXIT)
			look(next, bp->hw.target);
	}
	bp->hw.bp_next_value = next;

	list_for_each_entry(child, &bp->child_list, child_list) {
		err = prepare_child(bp, child);
		if (err)
			return err;
	}

	return 0;
}

void bp_value_change(struct perf_event *bp)
{
	if (bp->hw.bp_next_value)
		swap(bp->hw.bp_value, bp->hw.bp_next_value);
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
