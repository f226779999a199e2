// SPDX-License-Identifier: GPL-2.0
/* The model of perf_random: plain loops over all events and tasks; see random.h. */
#define BP_NO_TESTS
#include "random.h"

/* ---- Claims ---- */

unsigned int range_weight(unsigned long addr, unsigned long len)
{
	unsigned int n = 0;

	while (len) {
		unsigned long piece = 8;

		while (addr % piece || piece > len)
			piece /= 2;
		addr += piece;
		len -= piece;
		n++;
	}
	return n;
}

bool is_flexible(const struct event *e)
{
	return e->attr.config & HW_BREAKPOINT_FLEXIBLE;
}

static bool is_instruction(const struct event *e)
{
	return e->attr.bp_type == HW_BREAKPOINT_X;
}

unsigned int event_weight(const struct event *e)
{
	if (is_flexible(e) || is_instruction(e))
		return 1;
	return range_weight(e->attr.bp_addr, e->attr.bp_len);
}

static bool is_in_group(const struct model *m, int t, int group)
{
	int of_task = m->process[m->task[t].process].group;

	/* Group 0 is the root, and 2 is in 1. */
	return of_task >= group;
}

bool event_is_of(const struct model *m, const struct event *e, int t)
{
	switch (e->scope) {
	case OF_TASK:
		return e->tasks & (1U << t);
	case OF_PROCESS:
		return !e->ended && m->task[t].process == e->target;
	default:
		return true;
	}
}

bool event_is_alive(const struct model *m, const struct event *e)
{
	switch (e->scope) {
	case OF_TASK:
		return e->tasks;
	case OF_PROCESS:
		return !e->ended;
	default:
		return true;
	}
}

static bool is_for_cpu(const struct event *e, int cpu)
{
	return e->cpu == NONE || e->cpu == cpu;
}

static bool is_enabled(const struct model *m, const struct event *e)
{
	return e->enabled && (e->leader == NONE || m->event[e->leader].enabled);
}

bool event_is_armed(const struct model *m, const struct event *e, int t, int cpu)
{
	return event_is_of(m, e, t) && is_for_cpu(e, cpu) && is_enabled(m, e) &&
	       (e->scope != OF_CGROUP || is_in_group(m, t, e->target));
}

/* The rule of "Which claims fit" in kernel/events/bp_slots.h */
static bool fits_task(const struct model *m, int t, int cpu)
{
	unsigned int guaranteed = m->wide, flexible = 0;

	if (m->traced == t)
		guaranteed += __builtin_popcount(m->traced_places);
	for_each_event(m, e) {
		if (!event_is_of(m, e, t) || !is_for_cpu(e, cpu))
			continue;
		if (is_flexible(e))
			flexible = 1;
		else
			guaranteed += event_weight(e);
	}
	return guaranteed + flexible <= BP_SLOTS;
}

bool model_fits(const struct model *m)
{
	for (int i = 0; i < m->cpus.nr; i++) {
		for_each_task(m, t) {
			if (!fits_task(m, t, m->cpus.cpu[i]))
				return false;
		}
	}
	return true;
}

/* ---- Hits ---- */

/*
 * False if flexible events may have to wait for each other. Those of a CPU, and of a task
 * that does not sleep, may wait for the next rotation.
 */
static bool all_have_registers(const struct model *m, int t, int cpu)
{
	unsigned int n = m->wide;

	if (m->traced == t)
		n += __builtin_popcount(m->traced_places);
	for_each_event(m, e) {
		if (!event_is_of(m, e, t) || !is_for_cpu(e, cpu))
			continue;
		if (is_flexible(e) && (t == JUDGE || e->scope >= OF_CPU))
			return false;
		n += is_flexible(e) ? range_weight(e->attr.bp_addr, e->attr.bp_len) :
				      event_weight(e);
	}
	return n <= BP_SLOTS;
}

static bool is_certain(const struct model *m, const struct event *e, int t, int cpu)
{
	/* TCG may lose the hit of an instruction. */
	if (is_instruction(e) && bp_emulated())
		return false;
	return !is_flexible(e) || all_have_registers(m, t, cpu);
}

static bool overlaps(const struct event *e, const struct access *a)
{
	return !is_instruction(e) && a->addr < e->attr.bp_addr + e->attr.bp_len &&
	       e->attr.bp_addr < a->addr + a->size &&
	       (!a->is_load || e->attr.bp_type == HW_BREAKPOINT_RW) &&
	       (!a->by_kernel || !e->attr.exclude_kernel);
}

static bool has_values(const struct event *e)
{
	return e->attr.config & (HW_BREAKPOINT_VALUE | HW_BREAKPOINT_CHANGED);
}

static const __u8 *object(const struct model *m, const struct event *e, int mm)
{
	return m->memory[mm] + (e->attr.bp_addr - (unsigned long)BP_PAGE);
}

static void expect_record(const struct model *m, struct event *e, int t, int cpu)
{
	struct chain *chain = &e->chain[m->task[t].mm];
	struct expected *x = &e->expected[e->nr_expected];

	if (e->ring == NONE)
		return;
	if (e->nr_expected == MAX_EXPECTED) {
		e->loose = true;
		return;
	}
	e->nr_expected++;
	x->tid = task_pid(t);
	x->cpu = cpu;
	x->before = chain->known;
	memcpy(x->bytes[0], chain->bytes, e->attr.bp_len);
	memcpy(x->bytes[1], object(m, e, m->task[t].mm), e->attr.bp_len);
}

/* A hit is a sample, unless the period is not over. */
static void overflow(const struct model *m, struct event *e, int t, int cpu)
{
	if (!e->period || --e->until)
		return;
	e->until = e->period;
	expect_record(m, e, t, cpu);
	if (e->left && !--e->left)
		e->enabled = false;
}

static void take_value(const struct model *m, struct event *e, int mm, bool certain)
{
	struct chain *chain = &e->chain[mm];

	chain->known = certain ? KNOWN : UNCERTAIN;
	memcpy(chain->bytes, object(m, e, mm), e->attr.bp_len);
}

/* An event with HW_BREAKPOINT_CHANGED: returns true if the access is certainly no hit. */
static bool is_silent(const struct model *m, struct event *e, int mm, bool *certain)
{
	struct chain *chain = &e->chain[mm];

	if (!(e->attr.config & HW_BREAKPOINT_CHANGED))
		return false;
	if (chain->known == UNCERTAIN || (!*certain && chain->known != UNKNOWN)) {
		e->silent_max++;
		*certain = false;
		return false;
	}
	if (chain->known == UNKNOWN ||
	    memcmp(chain->bytes, object(m, e, mm), e->attr.bp_len))
		return false;
	e->silent_min++;
	e->silent_max++;
	return true;
}

static void hit(struct model *m, struct event *e, int t, int cpu)
{
	bool certain = is_certain(m, e, t, cpu);
	int mm = m->task[t].mm;

	if (has_values(e) && is_silent(m, e, mm, &certain))
		return;
	e->max++;
	if (certain) {
		e->min++;
		overflow(m, e, t, cpu);
	} else {
		e->loose = true;
	}
	if (has_values(e))
		take_value(m, e, mm, is_certain(m, e, t, cpu));
}

static int cpu_of(struct model *m, int t, int cpu)
{
	if (cpu != NONE)
		m->task[t].cpu = cpu;
	return m->task[t].cpu;
}

void model_access(struct model *m, int t, const struct access *a)
{
	__u8 *memory = m->memory[m->task[t].mm] + (a->addr - (unsigned long)BP_PAGE);
	int cpu = cpu_of(m, t, a->cpu);

	for (unsigned int i = 0; i < a->times; i++) {
		__u64 value = value_of(a, i);

		if (!a->is_load)
			memcpy(memory, &value, a->size);
		for_each_event(m, e) {
			if (overlaps(e, a) && event_is_armed(m, e, t, cpu))
				hit(m, e, t, cpu);
		}
	}
	if (m->traced != t || a->by_kernel)
		return;
	for (int i = 0; i < BP_SLOTS; i++) {
		unsigned long addr = (unsigned long)BP_PAGE + m->traced_place[i] * PLACE_SIZE;

		if ((m->traced_places & (1U << i)) && !a->is_load && a->addr < addr + 8 &&
		    addr < a->addr + a->size)
			m->traced_expected += a->times;
	}
}

void model_call(struct model *m, int t, unsigned int times)
{
	int cpu = m->task[t].cpu;

	while (times--) {
		for_each_event(m, e) {
			if (is_instruction(e) && event_is_armed(m, e, t, cpu))
				hit(m, e, t, cpu);
		}
	}
}

/* ---- Values ---- */

/* The event has looked at its object, in the memory of its target for certain. */
static void look_at(struct model *m, struct event *e, int mm, bool certain)
{
	struct chain *chain = &e->chain[mm];

	if (certain)
		chain->known = KNOWN;
	else if (chain->known != KNOWN ||
		 memcmp(chain->bytes, object(m, e, mm), e->attr.bp_len))
		chain->known = UNCERTAIN;
	memcpy(chain->bytes, object(m, e, mm), e->attr.bp_len);
}

static void look(struct model *m, struct event *e, bool again)
{
	if (!has_values(e) || is_instruction(e))
		return;
	for_each_task(m, t) {
		if (event_is_of(m, e, t))
			look_at(m, e, m->task[t].mm,
				!again || e->scope == OF_PROCESS || e->tasks == 1U << t);
	}
}

/* At open, and when another object is watched */
void model_look(struct model *m, struct event *e)
{
	look(m, e, false);
}

/* The members of a group look when the leader that kept them out no longer does. */
static void members_look(struct model *m, const struct event *leader)
{
	if (leader->enabled)
		return;
	for_each_event(m, e) {
		if (e->leader == leader - m->event)
			look(m, e, true);
	}
}

void model_enable(struct model *m, struct event *e)
{
	if (!is_enabled(m, e))
		look(m, e, true);
	members_look(m, e);
	e->enabled = true;
}

void model_end_group(struct model *m, struct event *leader)
{
	members_look(m, leader);
	for_each_event(m, e) {
		if (e->leader == leader - m->event)
			e->leader = NONE;
	}
}

/* ---- Tasks ---- */

static int nr_with_mm(const struct model *m, int mm)
{
	int n = 0;

	for_each_task(m, t)
		n += m->task[t].mm == mm;
	return n;
}

static int free_mm(const struct model *m)
{
	int mm = 0;

	while (nr_with_mm(m, mm))
		mm++;
	return mm;
}

static void copy_memory(struct model *m, int from, int to)
{
	bool only = nr_with_mm(m, from) == 1;

	memcpy(m->memory[to], m->memory[from], sizeof(m->memory[to]));
	for_each_event(m, e) {
		e->chain[to] = e->chain[from];
		if (!only)
			e->chain[to].known = UNKNOWN;
	}
}

void model_clone(struct model *m, int from, int t, enum kind_of_task kind)
{
	const struct task *parent = &m->task[from];
	struct task new = *parent;

	if (kind == PROCESS) {
		new.mm = free_mm(m);
		copy_memory(m, parent->mm, new.mm);
	}
	if (kind != THREAD) {
		new.process = t;
		m->process[t] = m->process[parent->process];
		m->process[t].pid = task_pid(t);
		m->process[t].leader = t;
	}
	m->task[t] = new;
	for_each_event(m, e) {
		if (e->scope == OF_TASK && e->attr.inherit && (e->tasks & (1U << from)) &&
		    (!e->attr.inherit_thread || kind == THREAD))
			e->tasks |= 1U << t;
	}
}

static void remove_task(struct event *e, int t)
{
	if (!(e->tasks & (1U << t)))
		return;
	e->tasks &= ~(1U << t);
	e->lost_child |= e->attr.inherit;
}

static bool has_tasks(const struct model *m, int process)
{
	for_each_task(m, t) {
		if (m->task[t].process == process)
			return true;
	}
	return false;
}

void model_exit(struct model *m, int t)
{
	int process = m->task[t].process;

	m->task[t].live = false;
	for_each_event(m, e) {
		if (e->scope == OF_TASK)
			remove_task(e, t);
		else if (e->scope == OF_PROCESS && e->target == process)
			e->ended |= !has_tasks(m, process);
	}
}

/* The other threads end, and @t becomes the leader. Nobody may watch an image with more rights. */
void model_exec(struct model *m, int t)
{
	int process = m->task[t].process;

	for_each_task(m, other) {
		if (other != t && m->task[other].process == process)
			model_exit(m, other);
	}
	m->process[process].leader = t;
	m->task[t].mm = NR_TASKS;
	m->task[t].mm = free_mm(m);
	memset(m->memory[m->task[t].mm], 0, sizeof(m->memory[0]));
	for_each_event(m, e) {
		e->chain[m->task[t].mm].known = UNKNOWN;
		if (!event_is_of(m, e, t) || e->scope >= OF_CPU)
			continue;
		if (e->enable_on_exec)
			e->enabled = true;
		e->enable_on_exec = false;
		if (!e->attr.remove_on_exec && !m->task[t].other_uid)
			continue;
		if (e->scope == OF_TASK)
			remove_task(e, t);
		else
			e->ended = true;
		if (!event_is_alive(m, e))
			model_end_group(m, e);
	}
}

/* The count of children that have ended stays; which of them had it, perf may have changed. */
void model_reset(struct event *e)
{
	e->min = 0;
	e->counted = e->lost_child ? NONE : 0;
	if (!e->lost_child)
		e->max = 0;
}
