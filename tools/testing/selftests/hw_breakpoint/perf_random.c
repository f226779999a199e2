// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations, each compared with a model: see random.h.
 *
 * A failure prints the seed and the last operations. These repeat it, and make more or longer
 * sequences, and let allocations fail:
 *
 *	BP_SEED=N BP_SEQUENCES=N BP_OPERATIONS=N BP_FAULTS=1 perf_random
 *
 * BP_TRACE=1 prints each operation, for the case that the machine dies.
 */
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>

#include "random.h"
#include "random_notes.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	7200

#define SEQUENCES	bp_rounds(80)
#define OPERATIONS	250

#define CLAIMS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"
#define DYNAMIC_EVENTS	"/sys/kernel/tracing/dynamic_events"
#define WPROBES		"/sys/kernel/tracing/events/wprobes/"
#define SYSCTL		"/proc/sys/kernel/"
#define NR_LINES	128
#define LINE_SIZE	200

#define SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | \
			 PERF_SAMPLE_CPU)

static const char * const groups[NR_GROUPS] = {
	"/sys/fs/cgroup",
	"/sys/fs/cgroup/hw_breakpoint",
	"/sys/fs/cgroup/hw_breakpoint/inner",
};

/* Numbers that a write to the sysctl stores once. Each has a watch event. */
static const struct {
	const char *symbol;
	const char *sysctl;
} numbers[BP_SLOTS] = {
	{ "panic_timeout", SYSCTL "panic" },
	{ "panic_on_oops", SYSCTL "panic_on_oops" },
	{ "print_fatal_signals", SYSCTL "print-fatal-signals" },
	{ "randomize_va_space", SYSCTL "randomize_va_space" },
};

/* A kernel-wide breakpoint: an event of perf that counts the hits of a watch event */
struct wide {
	int fd;
	bool enabled;
	long long count;
};

FIXTURE(random)
{
	struct wide wide[BP_SLOTS];
	struct model m;
	struct dice dice;
	bool faults;
	int nth_fd;
	bool begun;
	int group[NR_GROUPS];
};

/* ---- What is printed about a failure ---- */

static void print_event(struct __test_metadata *_metadata, const struct event *e, int n)
{
	const struct perf_event_attr *attr = &e->attr;

	TH_LOG("event %d: scope %d target %d CPU %d leader %d tasks %x%s%s%s", n, e->scope,
	       e->target, e->cpu, e->leader, e->tasks, e->enabled ? " on" : " off",
	       e->ended ? " ended" : "", e->lost_child ? " lost child" : "");
	TH_LOG("	addr %llx len %llu type %u config %llx period %u%s%s%s%s%s%s",
	       attr->bp_addr & 0xfff, attr->bp_len, attr->bp_type, attr->config, e->period,
	       attr->inherit ? " inherit" : "", attr->inherit_thread ? "_thread" : "",
	       attr->sigtrap ? " sigtrap" : "", attr->remove_on_exec ? " remove" : "",
	       attr->pinned ? " pinned" : "", attr->exclude_kernel ? "" : " kernel");
}

static void print_model(struct __test_metadata *_metadata, const struct model *m)
{
	for_each_task(m, t)
		TH_LOG("task %d: pid %d process %d memory %d CPU %d%s", t, task_pid(t),
		       m->task[t].process, m->task[t].mm, m->task[t].cpu,
		       m->task[t].other_uid ? " other user" : "");
	for_each_event(m, e)
		print_event(_metadata, e, e - m->event);
}

static void print_notes(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	dice_print(_metadata, &self->dice);
	if (self->faults)
		TH_LOG("with BP_FAULTS=1");
	print_model(_metadata, &self->m);
}

static int number_of(FIXTURE_DATA(random) *self, const struct event *e)
{
	return e - self->m.event;
}

/* ---- Faults ---- */

#define FAILSLAB	"/sys/kernel/debug/failslab/"
#define FAIL_PAGE	"/sys/kernel/debug/fail_page_alloc/"

static void write_hex(const char *path, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%lx", value);
	bp_write_file(path, text);
}

/* As in perf_fault: the kernel warns if it finds no free vmalloc area. */
static int allow_faults(void)
{
	unsigned long from = 0, to = 0;

	bp_ksym_range("__vmalloc_node_range_noprof", &from, &to);
	bp_write_file(FAILSLAB "ignore-gfp-wait", "N");
	bp_write_file(FAILSLAB "verbose", "0");
	write_hex(FAILSLAB "reject-start", from);
	write_hex(FAILSLAB "reject-end", to);
	bp_write_file(FAIL_PAGE "ignore-gfp-wait", "N");
	bp_write_file(FAIL_PAGE "min-order", "0");
	bp_write_file(FAIL_PAGE "verbose", "0");
	write_hex(FAIL_PAGE "reject-start", from);
	write_hex(FAIL_PAGE "reject-end", to);
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

static void set_fault(FIXTURE_DATA(random) *self, unsigned int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	pwrite(self->nth_fd, text, strlen(text), 0);
}

/* Lets an allocation of the next request fail. */
static void arm_fault(FIXTURE_DATA(random) *self)
{
	if (self->faults)
		set_fault(self, 1 + pick(self, 40));
}

/* Returns true if @err may be due to the fault. */
static bool is_fault(FIXTURE_DATA(random) *self, long err)
{
	if (!self->faults)
		return false;
	set_fault(self, 0);
	if (err == -ENOMEM)
		note(self, "	an allocation failed");
	return err == -ENOMEM;
}

/* ---- Choices ---- */

static int pick_cpu(FIXTURE_DATA(random) *self)
{
	int cpu;

	do
		cpu = self->m.cpus.cpu[pick(self, self->m.cpus.nr)];
	while (!self->m.online[cpu]);
	return cpu;
}

static int pick_task(FIXTURE_DATA(random) *self)
{
	int t;

	do
		t = pick(self, NR_TASKS);
	while (!self->m.task[t].live);
	return t;
}

static struct event *pick_event(FIXTURE_DATA(random) *self)
{
	struct event *e = &self->m.event[pick(self, NR_EVENTS)];

	return e->fd < 0 ? NULL : e;
}

static bool is_used(FIXTURE_DATA(random) *self, const struct event *but, int place)
{
	unsigned long addr = (unsigned long)BP_PAGE + place * PLACE_SIZE;

	for (int i = 0; i < BP_SLOTS; i++) {
		if ((self->m.traced_places & (1U << i)) && self->m.traced_place[i] == place)
			return true;
	}
	for_each_event(&self->m, e) {
		if (e != but && e->attr.bp_addr - addr < PLACE_SIZE)
			return true;
	}
	return false;
}

static int pick_place(FIXTURE_DATA(random) *self, const struct event *but)
{
	int place;

	do
		place = pick(self, NR_PLACES);
	while (is_used(self, but, place));
	return place;
}

/* Now and then a range that needs more registers than there are */
static void pick_range(FIXTURE_DATA(random) *self, const struct event *but,
		       struct perf_event_attr *attr)
{
	int place = pick_place(self, but);

	attr->bp_addr = (unsigned long)BP_PAGE + place * PLACE_SIZE;
	attr->bp_type = one_in(self, 2) ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
	if (one_in(self, 3)) {
		attr->bp_len = 1 + pick(self, 32);
		attr->bp_addr += pick(self, PLACE_SIZE - attr->bp_len + 1);
	} else {
		attr->bp_len = 1U << pick(self, 4);
		attr->bp_addr += pick(self, PLACE_SIZE / attr->bp_len) * attr->bp_len;
	}
}

static bool is_instruction(const struct perf_event_attr *attr)
{
	return attr->bp_type == HW_BREAKPOINT_X;
}

/* The place of an instruction breakpoint is the function, for one event. */
static void pick_instruction(FIXTURE_DATA(random) *self, struct perf_event_attr *attr)
{
	for_each_event(&self->m, e) {
		if (is_instruction(&e->attr))
			return;
	}
	attr->bp_type = HW_BREAKPOINT_X;
	attr->bp_addr = (unsigned long)bp_func_insn;
	attr->bp_len = sizeof(long);
}

/* ---- Open ---- */

static void pick_bits(FIXTURE_DATA(random) *self, struct event *e)
{
	struct perf_event_attr *attr = &e->attr;
	bool of_tasks = e->scope == OF_TASK || e->scope == OF_PROCESS;

	*attr = (struct perf_event_attr) {
		.type		= PERF_TYPE_BREAKPOINT,
		.size		= sizeof(*attr),
		.exclude_kernel	= !one_in(self, 3),
		.exclude_hv	= 1,
		.disabled	= one_in(self, 4),
	};
	pick_range(self, NULL, attr);
	if (one_in(self, 12))
		pick_instruction(self, attr);
	if (e->scope == OF_PROCESS)
		attr->config |= HW_BREAKPOINT_PROCESS;
	if (one_in(self, 4))
		attr->config |= HW_BREAKPOINT_FLEXIBLE;
	else if (one_in(self, 6))
		attr->pinned = 1;
	if (e->scope == OF_TASK && one_in(self, 3)) {
		attr->inherit = 1;
		attr->inherit_thread = one_in(self, 3);
	}
	if (of_tasks && !is_instruction(attr) && one_in(self, 3))
		attr->config |= (1 + pick(self, 3)) * HW_BREAKPOINT_VALUE;
	if (of_tasks && one_in(self, 4))
		attr->remove_on_exec = 1;
	else if (e->scope == OF_TASK && !attr->inherit && one_in(self, 4))
		attr->enable_on_exec = 1;
	if (attr->remove_on_exec && one_in(self, 2)) {
		attr->sigtrap = 1;
		attr->sig_data = number_of(self, e);
		if (one_in(self, 2))
			attr->config |= HW_BREAKPOINT_SIGTRAP_QUEUE;
	}
	if (attr->sigtrap || attr->config & HW_BREAKPOINT_VALUE || one_in(self, 2)) {
		attr->sample_period = 1;
		attr->sample_type = SAMPLE_TYPE;
		if (attr->config & HW_BREAKPOINT_VALUE)
			attr->sample_type |= PERF_SAMPLE_RAW;
		if (!attr->inherit && e->scope != OF_PROCESS && !attr->sigtrap)
			attr->sample_period += pick(self, 3);
	}
	if (one_in(self, 3))
		attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (one_in(self, 6))
		attr->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
}

/* The cgroup of a process is that of all of its threads. */
static void pick_scope(FIXTURE_DATA(random) *self, struct event *e)
{
	e->scope = pick(self, NR_SCOPES + 2) % NR_SCOPES;
	e->cpu = NONE;
	if (e->scope >= OF_CPU || one_in(self, 4))
		e->cpu = pick_cpu(self);
	switch (e->scope) {
	case OF_TASK:
		e->target = pick_task(self);
		e->tasks = 1U << e->target;
		break;
	case OF_PROCESS:
		e->target = self->m.task[pick_task(self)].process;
		break;
	case OF_CGROUP:
		e->target = pick(self, NR_GROUPS);
		break;
	default:
		break;
	}
}

static bool is_same_context(const struct event *a, const struct event *b)
{
	return a->scope == b->scope && a->cpu == b->cpu && a->target == b->target &&
	       a->attr.inherit == b->attr.inherit;
}

static bool is_group_with(const struct model *m, const struct event *leader)
{
	for_each_event(m, e) {
		if (e->leader == leader - m->event)
			return true;
	}
	return false;
}

/*
 * A leader for @e. The context of inherited events moves between their tasks, so that none
 * can join them. A group is removed at exec as a whole, so that no task has a part of it.
 */
static struct event *pick_leader(FIXTURE_DATA(random) *self, struct event *e)
{
	struct model *m = &self->m;

	for_each_event(m, leader) {
		if (leader->leader != NONE || !is_same_context(leader, e) ||
		    !event_is_alive(m, leader) || (e->cpu != NONE && !m->online[e->cpu]) ||
		    (e->scope == OF_TASK && leader->tasks != e->tasks) ||
		    leader->lost_child || one_in(self, 3))
			continue;
		e->attr.pinned = 0;
		e->attr.inherit_thread = leader->attr.inherit_thread;
		e->attr.remove_on_exec = leader->attr.remove_on_exec;
		e->attr.enable_on_exec = leader->attr.enable_on_exec;
		e->attr.sigtrap &= e->attr.remove_on_exec;
		if (!e->attr.sigtrap)
			e->attr.config &= ~HW_BREAKPOINT_SIGTRAP_QUEUE;
		return leader;
	}
	return NULL;
}

static unsigned int flexible_weight(const struct model *m, const struct event *leader)
{
	unsigned int n = 0;

	for_each_event(m, e) {
		if (e == leader || e->leader == leader - m->event)
			n += is_instruction(&e->attr) ? 1 :
			     range_weight(e->attr.bp_addr, e->attr.bp_len);
	}
	return n;
}

/* What the kernel must answer to the request; @e is not yet in the model. */
static int want_of_open(FIXTURE_DATA(random) *self, struct event *e, struct event *leader)
{
	struct model *m = &self->m;
	unsigned int weight = is_instruction(&e->attr) ? 1 :
			      range_weight(e->attr.bp_addr, e->attr.bp_len);
	bool fits;

	if (weight > BP_SLOTS || (is_flexible(e) && e->attr.pinned))
		return -EINVAL;
	if ((e->attr.config & HW_BREAKPOINT_PROCESS) && e->attr.inherit)
		return -EINVAL;
	if (leader && is_flexible(e) != is_flexible(leader))
		return -EINVAL;
	if (leader && is_flexible(e) && weight + flexible_weight(m, leader) > BP_SLOTS)
		return -EINVAL;
	e->fd = 0;
	fits = model_fits(m);
	e->fd = -1;
	return fits ? 0 : -ENOSPC;
}

static int request_open(FIXTURE_DATA(random) *self, struct event *e, struct event *leader)
{
	int flags = PERF_FLAG_FD_CLOEXEC, pid = -1;

	if (e->scope == OF_TASK)
		pid = task_pid(e->target);
	else if (e->scope == OF_PROCESS)
		pid = self->m.process[e->target].pid;
	else if (e->scope == OF_CGROUP)
		pid = self->group[e->target];
	if (e->scope == OF_CGROUP)
		flags |= PERF_FLAG_PID_CGROUP;
	return bp_open_group(&e->attr, pid, e->cpu, leader ? leader->fd : -1, flags);
}

static void do_open(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	struct event *e = &m->event[pick(self, NR_EVENTS)], *leader = NULL;
	int fd, want;

	if (e->fd >= 0)
		return;
	*e = (struct event) { .fd = -1, .leader = NONE, .ring = NONE };
	pick_scope(self, e);
	pick_bits(self, e);
	if (one_in(self, 3))
		leader = pick_leader(self, e);
	e->leader = leader ? leader - m->event : NONE;
	want = want_of_open(self, e, leader);
	arm_fault(self);
	fd = request_open(self, e, leader);
	note(self, "open %d: scope %d target %d CPU %d leader %d%s%s%s%s: %d", number_of(self, e),
	     e->scope, e->target, e->cpu, e->leader, e->attr.inherit ? " inherit" : "",
	     e->attr.disabled ? " off" : "", e->attr.sigtrap ? " sigtrap" : "",
	     e->attr.remove_on_exec ? " remove" : "", fd);
	note(self, "	addr %llx len %llu type %u config %llx", e->attr.bp_addr & 0xfff,
	     e->attr.bp_len, e->attr.bp_type, e->attr.config);
	if (is_fault(self, fd))
		return;
	EXPECT_EQ(want, fd < 0 ? fd : 0);
	if (fd < 0)
		return;
	e->fd = fd;
	e->id = bp_id(fd);
	e->period = e->attr.sample_period;
	e->until = e->period;
	e->enabled = !e->attr.disabled;
	e->enable_on_exec = e->attr.enable_on_exec;
	e->signals = e->attr.sigtrap ? task_signals(number_of(self, e)) : 0;
	model_look(m, e);
}

/* Whatever becomes of the request, it must leave no claim. */
static void do_garbage(FIXTURE_DATA(random) *self)
{
	struct event e = { .fd = -1, .leader = NONE };
	unsigned char *bytes = (unsigned char *)&e.attr;
	int fd;

	pick_scope(self, &e);
	pick_bits(self, &e);
	for (int i = pick(self, 4); i >= 0; i--)
		bytes[8 + pick(self, sizeof(e.attr) - 8)] = bp_random(&self->dice.state);
	/* A signal, or many hits on the way, would need a model of their own. */
	e.attr.sigtrap = 0;
	e.attr.disabled = 1;
	arm_fault(self);
	fd = request_open(self, &e, NULL);
	is_fault(self, fd);
	note(self, "garbage: %d", fd);
	if (fd >= 0)
		close(fd);
}

/* ---- Rings ---- */

/*
 * No record is missing in the ring, and the next one is that of the next hit, unless the hits of
 * the period that are over are unknown.
 */
static void begin_records(struct event *e)
{
	if (e->period <= 1)
		e->loose = false;
}

static void unmap(FIXTURE_DATA(random) *self, int ring)
{
	struct ring *r = &self->m.ring[ring];

	for_each_event(&self->m, e) {
		if (e->ring == ring)
			e->ring = NONE;
	}
	bp_ring_unmap(&r->map);
	r->owner = NONE;
}

static void do_map(FIXTURE_DATA(random) *self, struct __test_metadata *_metadata,
		   struct event *e)
{
	int n = number_of(self, e), want = 0, err;
	struct ring *ring = &self->m.ring[n];

	if (ring->owner != NONE) {
		note(self, "unmap %d", n);
		unmap(self, n);
		return;
	}
	if (e->cpu == NONE && (e->attr.inherit || e->scope == OF_PROCESS))
		want = -EINVAL;
	/* Mapping an event whose records go to another ring maps that ring. */
	if (e->ring != NONE)
		return;
	arm_fault(self);
	err = bp_ring_map(&ring->map, e->fd, 1U << pick(self, 3), PROT_READ | PROT_WRITE);
	note(self, "map %d: %d", n, err);
	if (is_fault(self, err))
		return;
	EXPECT_EQ(want, err);
	if (!err) {
		ring->owner = n;
		e->ring = n;
		begin_records(e);
	}
}

static void do_set_output(FIXTURE_DATA(random) *self, struct __test_metadata *_metadata,
			  struct event *e)
{
	struct event *to = pick_event(self);
	int want = 0, err;

	if (!to)
		return;
	if (to == e || e->cpu != to->cpu || self->m.ring[number_of(self, e)].owner != NONE ||
	    (e->scope == OF_PROCESS && e->cpu == NONE) ||
	    (to->scope == OF_PROCESS && to->cpu == NONE))
		want = -EINVAL;
	else if (to->ring == NONE)
		want = -EINVAL;
	else if (e->cpu == NONE && (e->scope != to->scope || e->target != to->target))
		want = -EINVAL;
	/* The task of an inherited event, or of one that has ended, may be another one. */
	if (e->cpu == NONE && (e->attr.inherit || to->attr.inherit))
		return;
	if (e->cpu == NONE && !(event_is_alive(&self->m, e) && event_is_alive(&self->m, to)))
		return;
	err = bp_ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, to->fd);
	note(self, "set_output %d to %d: %d", number_of(self, e), number_of(self, to), err);
	EXPECT_EQ(want, err);
	if (!err) {
		e->ring = to->ring;
		begin_records(e);
	}
}

/* ---- Changes of an event ---- */

static void do_close(FIXTURE_DATA(random) *self, struct event *e)
{
	struct model *m = &self->m;
	int n = number_of(self, e);

	note(self, "close %d", n);
	if (m->ring[n].owner != NONE)
		unmap(self, n);
	model_end_group(m, e);
	close(e->fd);
	e->fd = -1;
}

static void do_duplicate(FIXTURE_DATA(random) *self, struct event *e)
{
	int copy = fcntl(e->fd, F_DUPFD_CLOEXEC, 3);

	note(self, "duplicate %d", number_of(self, e));
	close(e->fd);
	e->fd = copy;
}

static void do_modify(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		      struct event *e)
{
	struct model *m = &self->m;
	struct event *leader = e->leader == NONE ? e : &m->event[e->leader];
	struct event old = *e;
	bool same = one_in(self, 4), is_leader = is_group_with(m, e);
	int want = 0, err;

	if (!same && !is_instruction(&e->attr))
		pick_range(self, e, &e->attr);
	e->attr.disabled = one_in(self, 4);
	if (!is_instruction(&e->attr) && range_weight(e->attr.bp_addr, e->attr.bp_len) > BP_SLOTS)
		want = -EINVAL;
	else if (event_weight(e) != event_weight(&old) && !model_fits(m))
		want = -ENOSPC;
	else if (is_flexible(e) && (is_leader || leader != e) &&
		 flexible_weight(m, leader) > BP_SLOTS)
		want = -EINVAL;
	arm_fault(self);
	err = bp_modify(e->fd, &e->attr);
	note(self, "modify %d: addr %llx len %llu type %u%s: %d", number_of(self, e),
	     e->attr.bp_addr & 0xfff, e->attr.bp_len, e->attr.bp_type,
	     e->attr.disabled ? " off" : "", err);
	if (is_fault(self, err)) {
		*e = old;
		return;
	}
	EXPECT_EQ(want, err);
	if (err) {
		*e = old;
		return;
	}
	if (!same)
		model_look(m, e);
	if (e->attr.disabled)
		e->enabled = false;
	else
		model_enable(m, e);
}

static void set_enabled(FIXTURE_DATA(random) *self, struct event *e, bool enable)
{
	if (enable)
		model_enable(&self->m, e);
	else
		e->enabled = false;
}

static void do_enable(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		      struct event *e)
{
	bool enable = one_in(self, 2), group = one_in(self, 4);
	int cmd = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	int n = e->leader == NONE ? number_of(self, e) : e->leader;

	note(self, "%s %d%s", enable ? "enable" : "disable", number_of(self, e),
	     group ? " group" : "");
	EXPECT_EQ(0, bp_ioctl(e->fd, cmd, group ? PERF_IOC_FLAG_GROUP : 0));
	if (!group) {
		set_enabled(self, e, enable);
		return;
	}
	set_enabled(self, &self->m.event[n], enable);
	for_each_event(&self->m, member) {
		if (member->leader == n)
			set_enabled(self, member, enable);
	}
}

static void do_reset(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		     struct event *e)
{
	note(self, "reset %d", number_of(self, e));
	EXPECT_EQ(0, bp_ioctl(e->fd, PERF_EVENT_IOC_RESET, 0));
	model_reset(e);
}

static void do_refresh(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		       struct event *e)
{
	unsigned int n = 1 + pick(self, 4);
	int want = e->attr.inherit || !e->attr.sample_period ? -EINVAL : 0;
	int err;

	/* Hits that the model does not know would count. */
	if (e->scope == OF_PROCESS || is_flexible(e) || is_instruction(&e->attr) ||
	    e->attr.sigtrap || e->attr.config & HW_BREAKPOINT_CHANGED)
		return;
	err = bp_ioctl(e->fd, PERF_EVENT_IOC_REFRESH, n);
	note(self, "refresh %d by %u: %d", number_of(self, e), n, err);
	EXPECT_EQ(want, err);
	if (err)
		return;
	e->left += n;
	model_enable(&self->m, e);
}

/* The new period begins at once. */
static void do_period(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		      struct event *e)
{
	__u64 period = pick(self, 4);
	int want = e->attr.sample_period && period ? 0 : -EINVAL, err;

	/* The periods of children and CPUs are their own, and one signal is that of a sample. */
	if (e->attr.inherit || e->scope == OF_PROCESS || e->attr.sigtrap)
		return;
	err = bp_ioctl(e->fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
	note(self, "period of %d: %llu: %d", number_of(self, e), period, err);
	EXPECT_EQ(want, err);
	if (err)
		return;
	e->period = period;
	e->until = period;
}

static void do_prctl(FIXTURE_DATA(random) *self)
{
	bool enable = !one_in(self, 3);

	note(self, "prctl %d", enable);
	prctl(enable ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
	for_each_event(&self->m, e)
		set_enabled(self, e, enable);
	for (int i = 0; i < BP_SLOTS; i++)
		self->wide[i].enabled = enable;
}

/* ---- Orders to tasks ---- */

#define DR_OFFSET(n)	(offsetof(struct user, u_debugreg) + (n) * sizeof(long))

/* Passes the hits of the tracer's breakpoints, until the task has answered. */
static void pass_stops(FIXTURE_DATA(random) *self, int status)
{
	pid_t pid = task_pid(self->m.traced);
	siginfo_t info;
	long dr6;
	int sig;

	if (!WIFSTOPPED(status))
		return;
	sig = WSTOPSIG(status);
	if (sig == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, pid, 0, &info) &&
	    info.si_code != TRAP_PERF) {
		dr6 = ptrace(PTRACE_PEEKUSER, pid, DR_OFFSET(6), 0);
		self->m.traced_hits += __builtin_popcount(dr6 & 0xf);
		sig = 0;
	}
	ptrace(PTRACE_CONT, pid, 0, sig);
}

static long order(FIXTURE_DATA(random) *self, int t, enum order what,
		  const struct access *a, long arg)
{
	long result;
	__u64 start = bp_now(CLOCK_MONOTONIC);
	pid_t child;
	int status;

	if (self->m.traced != t)
		return task_do(t, what, a, arg);
	task_post(t, what, a, arg);
	while (!task_has_answered(t, &result)) {
		if (!bp_has_patience(start))
			return -ETIME;
		child = waitpid(task_pid(t), &status, WNOHANG | __WALL);
		if (child > 0)
			pass_stops(self, status);
		else
			usleep(50);
	}
	return result;
}

static void do_access(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct event *e = pick_event(self);
	int t = pick_task(self);
	struct access a = {
		.times		= 1 + pick(self, 3),
		.is_load	= one_in(self, 3),
		.cpu		= pick_cpu(self),
		.value		= bp_random(&self->dice.state) & 0x0101,
		.size		= 1U << pick(self, 4),
	};

	/* Most accesses are near an event, and by a task that it is for. */
	if (e && is_instruction(&e->attr))
		e = NULL;
	a.value |= a.value << 16;
	a.value |= a.value << 32;
	a.addr = (unsigned long)BP_PAGE + pick(self, NR_PLACES * PLACE_SIZE);
	if (e) {
		a.addr = e->attr.bp_addr + pick(self, e->attr.bp_len + 2) - 1;
		for (int i = 0; i < 4 && !event_is_armed(&self->m, e, t, a.cpu); i++) {
			t = pick_task(self);
			a.cpu = pick_cpu(self);
		}
	}
	if (a.addr < (unsigned long)BP_PAGE)
		a.addr = (unsigned long)BP_PAGE;
	if (one_in(self, 8)) {
		a.by_kernel = true;
		a.is_load = false;
		a.size = sizeof(int);
	}
	a.addr &= ~(a.size - 1UL);
	note(self, "%s of task %d on CPU %d: addr %lx size %u, %u times",
	     a.by_kernel ? "system call" : a.is_load ? "load" : "store", t, a.cpu, a.addr & 0xfff,
	     a.size, a.times);
	model_access(&self->m, t, &a);
	EXPECT_EQ(0, order(self, t, ORDER_ACCESS, &a, 0));
}

static void do_call(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct access a = { .times = 1 + pick(self, 3), .cpu = pick_cpu(self) };
	int t = pick_task(self);

	note(self, "call of task %d on CPU %d, %u times", t, a.cpu, a.times);
	self->m.task[t].cpu = a.cpu;
	model_call(&self->m, t, a.times);
	EXPECT_EQ(0, order(self, t, ORDER_CALL, &a, 0));
}

static void do_clone(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int from = pick_task(self), t = 1;
	enum kind_of_task kind = pick(self, NR_KINDS);
	unsigned int nth;
	int err;

	while (t < NR_TASKS && (self->m.task[t].live || self->m.process[t].leader != NONE))
		t++;
	if (t == NR_TASKS || self->m.traced == from)
		return;
	if (from == JUDGE)
		kind = PROCESS;
	nth = self->faults ? 1 + pick(self, 200) : 0;
	err = task_start(from, t, kind, nth);
	note(self, "clone %d of task %d, kind %d: %d", t, from, kind, err);
	if (self->faults && (err == -ENOMEM || err == -EAGAIN))
		return;
	EXPECT_EQ(0, err);
	if (!err)
		model_clone(&self->m, from, t, kind);
}

static void forget_process(struct model *m, int process)
{
	for (int t = 0; t < NR_TASKS; t++) {
		if (m->task[t].live && m->task[t].process == process)
			model_exit(m, t);
	}
	m->process[process].leader = NONE;
}

static void stop_tracing(FIXTURE_DATA(random) *self)
{
	self->m.traced = NONE;
	self->m.traced_places = 0;
}

static void do_exit(FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	int t = pick_task(self), process = m->task[t].process;
	pid_t pid = m->process[process].pid, tid = task_pid(t);

	if (t == JUDGE || m->traced == t)
		return;
	if (m->process[process].leader != t && one_in(self, 2)) {
		note(self, "exit of thread %d", t);
		task_do(t, ORDER_EXIT, NULL, 0);
		task_wait_for_end(pid, tid);
		model_exit(m, t);
		return;
	}
	for (int i = 0; i < NR_TASKS; i++) {
		if (m->task[i].live && m->task[i].process == process && m->traced == i)
			return;
	}
	note(self, "end of process %d", process);
	if (one_in(self, 2))
		kill(pid, SIGKILL);
	else
		task_do(t, ORDER_EXIT_GROUP, NULL, 0);
	task_wait_for_end(pid, pid);
	forget_process(m, process);
}

/* A thread that executes a program becomes the leader of its process. */
static void do_exec(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	int t = pick_task(self), process = m->task[t].process;

	if (t == JUDGE)
		return;
	for (int i = 0; i < NR_TASKS; i++) {
		if (m->task[i].live && m->task[i].process == process && m->traced == i)
			return;
	}
	note(self, "exec of task %d", t);
	EXPECT_EQ(0, task_do(t, ORDER_EXEC, NULL, 0));
	model_exec(m, t);
}

static void do_setuid(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int t = pick_task(self);

	if (t == JUDGE)
		return;
	note(self, "setuid of task %d", t);
	EXPECT_EQ(0, order(self, t, ORDER_SETUID, NULL, 0));
	self->m.task[t].other_uid = !self->m.task[t].other_uid;
}

static void do_move(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int t = pick_task(self), group = pick(self, NR_GROUPS), err;
	struct process *p = &self->m.process[self->m.task[t].process];
	char path[128], text[16];

	snprintf(path, sizeof(path), "%s/cgroup.procs", groups[group]);
	snprintf(text, sizeof(text), "%d", p->pid);
	arm_fault(self);
	err = bp_write_file(path, text);
	note(self, "move process %d to cgroup %d: %d", self->m.task[t].process, group, err);
	if (is_fault(self, err))
		return;
	EXPECT_EQ(0, err);
	if (!err)
		p->group = group;
}

/* ---- ptrace ---- */

static bool stop_traced(pid_t pid)
{
	int status;

	return !ptrace(PTRACE_INTERRUPT, pid, 0, 0) && waitpid(pid, &status, __WALL) == pid &&
	       WIFSTOPPED(status);
}

/* Register @i of DR7 watches writes of 8 bytes. */
static unsigned long dr7_of(unsigned int places)
{
	unsigned long dr7 = 0;

	for (int i = 0; i < BP_SLOTS; i++) {
		if (places & (1U << i))
			dr7 |= (1UL << (2 * i)) | (0x9UL << (16 + 4 * i));
	}
	return dr7;
}

static void poke(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	pid_t pid = task_pid(m->traced);
	unsigned int before = m->traced_places, places = before;
	int i = pick(self, BP_SLOTS), err;

	places ^= 1U << i;
	ASSERT_TRUE(stop_traced(pid));
	if (places & (1U << i)) {
		m->traced_place[i] = pick_place(self, NULL);
		EXPECT_EQ(0, ptrace(PTRACE_POKEUSER, pid, DR_OFFSET(i),
				    BP_PAGE + m->traced_place[i] * PLACE_SIZE));
	}
	err = ptrace(PTRACE_POKEUSER, pid, DR_OFFSET(7), dr7_of(places)) ? -errno : 0;
	m->traced_places = places;
	note(self, "DR7 of task %d: %x -> %x: %d", m->traced, before, places, err);
	EXPECT_EQ(model_fits(m) ? 0 : -ENOSPC, err);
	if (err)
		m->traced_places = before;
	EXPECT_EQ(0, ptrace(PTRACE_CONT, pid, 0, 0));
}

static void do_trace(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	int t = pick_task(self);
	pid_t pid;

	if (m->traced == NONE) {
		if (t == JUDGE)
			return;
		note(self, "trace task %d", t);
		EXPECT_EQ(0, ptrace(PTRACE_SEIZE, task_pid(t), 0, 0));
		m->traced = t;
		m->traced_places = 0;
		return;
	}
	if (!one_in(self, 6)) {
		poke(_metadata, self);
		return;
	}
	pid = task_pid(m->traced);
	note(self, "detach from task %d", m->traced);
	ASSERT_TRUE(stop_traced(pid));
	EXPECT_EQ(0, ptrace(PTRACE_POKEUSER, pid, DR_OFFSET(7), 0));
	EXPECT_EQ(0, ptrace(PTRACE_DETACH, pid, 0, 0));
	stop_tracing(self);
}

/* ---- The machine ---- */

/* It has a claim of the machine, and counts accesses of the judge. */
static void open_wide(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self, int n)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	struct model *m = &self->m;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), WPROBES "random%d/id", n);
	attr.config = bp_read_number(path);
	m->wide++;
	arm_fault(self);
	fd = bp_open(&attr, 0, -1);
	note(self, "open kernel-wide %d: %d", n, fd);
	if (is_fault(self, fd)) {
		m->wide--;
		return;
	}
	EXPECT_EQ(model_fits(m) ? 0 : -ENOSPC, fd < 0 ? fd : 0);
	if (fd < 0) {
		m->wide--;
		return;
	}
	self->wide[n] = (struct wide) { .fd = fd, .enabled = true };
}

static void close_wide(FIXTURE_DATA(random) *self, int n)
{
	note(self, "close kernel-wide %d", n);
	close(self->wide[n].fd);
	self->wide[n].fd = -1;
	self->m.wide--;
}

/* Writes the number that was there. */
static void write_number(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self, int n)
{
	int cpu = pick_cpu(self);
	char text[32];

	note(self, "write to kernel-wide %d on CPU %d", n, cpu);
	bp_pin(cpu);
	self->m.task[JUDGE].cpu = cpu;
	EXPECT_EQ(0, bp_read_file(numbers[n].sysctl, text, sizeof(text)));
	EXPECT_EQ(0, bp_write_file(numbers[n].sysctl, text));
	self->wide[n].count += self->wide[n].enabled;
}

static void do_wide(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int n = pick(self, BP_SLOTS);

	if (access(DYNAMIC_EVENTS, W_OK))
		return;
	if (self->wide[n].fd < 0)
		open_wide(_metadata, self, n);
	else if (one_in(self, 3))
		close_wide(self, n);
	else
		write_number(_metadata, self, n);
}

static void do_hotplug(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;
	int cpu = m->cpus.cpu[m->cpus.nr - 1];
	bool online = !m->online[cpu];

	if (m->cpus.nr < 2 || !bp_can_plug(cpu))
		return;
	note(self, "CPU %d %s", cpu, online ? "online" : "offline");
	bp_pin(m->cpus.cpu[0]);
	m->task[JUDGE].cpu = m->cpus.cpu[0];
	EXPECT_EQ(0, bp_cpu_online(cpu, online));
	m->online[cpu] = online;
}

/* ---- The comparison ---- */

static void check_count(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			struct event *e, long long count)
{
	if (count >= e->min && count <= e->max) {
		e->min = count;
		e->max = count;
		return;
	}
	EXPECT_GE(count, e->min);
	EXPECT_LE(count, e->max);
	TH_LOG("event %d counts %lld, not %lld to %lld", number_of(self, e), count, e->min, e->max);
}

static void check_times(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			struct event *e, __u64 enabled, __u64 running)
{
	EXPECT_LE(running, enabled);
	if (e->cpu != NONE || is_flexible(e))
		return;
	EXPECT_EQ(running, enabled) {
		TH_LOG("event %d ran less than it was enabled", number_of(self, e));
	}
}

/* A read of the leader has all members. */
static void check_group(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			struct event *e, const __u64 *p, __u64 nr)
{
	struct event *of;

	while (nr--) {
		of = NULL;
		for_each_event(&self->m, other) {
			if (other->id == p[1])
				of = other;
		}
		EXPECT_NE(NULL, of) {
			TH_LOG("a read of event %d has ID %llu", number_of(self, e), p[1]);
			return;
		}
		check_count(_metadata, self, of, p[0]);
		p += 2;
	}
}

static void check_read(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
		       struct event *e)
{
	__u64 words[3 + 2 * NR_EVENTS];
	bool times = e->attr.read_format & PERF_FORMAT_TOTAL_TIME_ENABLED;
	ssize_t n = read(e->fd, words, sizeof(words));

	EXPECT_LE(8, n) {
		TH_LOG("event %d cannot be read: %zd", number_of(self, e), n);
		return;
	}
	if (times)
		check_times(_metadata, self, e, words[1], words[2]);
	if (e->attr.read_format & PERF_FORMAT_GROUP)
		check_group(_metadata, self, e, words + (times ? 3 : 1), words[0]);
	else
		check_count(_metadata, self, e, words[0]);
}

static void check_silent(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			 struct event *e)
{
	long long n = 0;

	if (!(e->attr.config & HW_BREAKPOINT_CHANGED))
		return;
	EXPECT_EQ(0, bp_ioctl(e->fd, HW_BREAKPOINT_IOC_SILENT, (unsigned long)&n));
	if (n >= e->silent_min && n <= e->silent_max) {
		e->silent_min = n;
		e->silent_max = n;
		return;
	}
	EXPECT_GE(n, e->silent_min);
	EXPECT_LE(n, e->silent_max);
	TH_LOG("event %d has %lld silent accesses, not %lld to %lld", number_of(self, e), n,
	       e->silent_min, e->silent_max);
}

static void check_signals(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			  struct event *e)
{
	unsigned int n = task_signals(number_of(self, e));

	/* A signal for each hit since the last check */
	if (e->attr.sigtrap && e->counted != NONE) {
		EXPECT_EQ(e->min - e->counted, n - e->signals) {
			TH_LOG("event %d sent %u signals", number_of(self, e), n - e->signals);
		}
	}
	e->signals = n;
	e->counted = e->min;
}

static void check_values(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			 struct event *e, const struct expected *x,
			 const struct hw_breakpoint_values *v)
{
	const __u8 *before = v->bytes + v->offset, *after = before + v->len;

	EXPECT_EQ(e->attr.bp_len, v->len);
	if (x->before != UNCERTAIN) {
		EXPECT_EQ(x->before == KNOWN, v->flags & HW_BREAKPOINT_BEFORE_KNOWN) {
			TH_LOG("event %d: value before is known", number_of(self, e));
		}
	}
	EXPECT_TRUE(v->flags & HW_BREAKPOINT_AFTER_KNOWN);
	if (x->before == KNOWN) {
		EXPECT_EQ(0, memcmp(before, x->bytes[0], v->len)) {
			TH_LOG("event %d: value before", number_of(self, e));
		}
	}
	EXPECT_EQ(0, memcmp(after, x->bytes[1], v->len)) {
		TH_LOG("event %d: value after", number_of(self, e));
	}
}

static void check_record(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			 const union bp_record *rec)
{
	const __u32 *w = (const __u32 *)&rec->u64[2];
	const struct expected *x;
	struct event *e = NULL;

	EXPECT_EQ(PERF_RECORD_SAMPLE, rec->header.type);
	if (rec->header.type != PERF_RECORD_SAMPLE)
		return;
	for_each_event(&self->m, other) {
		if (other->id == rec->u64[1])
			e = other;
	}
	EXPECT_NE(NULL, e);
	if (!e || e->loose)
		return;
	EXPECT_NE(0, e->nr_expected) {
		TH_LOG("event %d has one record too many", number_of(self, e));
		return;
	}
	x = &e->expected[0];
	EXPECT_EQ(x->tid, w[1]);
	EXPECT_EQ(e->attr.bp_addr, rec->u64[3]);
	EXPECT_EQ(x->cpu, w[4]);
	if (e->attr.sample_type & PERF_SAMPLE_RAW)
		check_values(_metadata, self, e, x, (const void *)&w[7]);
	memmove(e->expected, e->expected + 1, sizeof(*x) * --e->nr_expected);
}

static void check_rings(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	static union bp_record rec;

	for (int i = 0; i < NR_RINGS; i++) {
		struct ring *ring = &self->m.ring[i];

		while (ring->owner != NONE && bp_ring_next(&ring->map, &rec))
			check_record(_metadata, self, &rec);
	}
	for_each_event(&self->m, e) {
		if (!e->loose) {
			EXPECT_EQ(0, e->nr_expected) {
				TH_LOG("event %d lacks records", number_of(self, e));
			}
		}
		e->nr_expected = 0;
		begin_records(e);
	}
}

/* ---- Claims and registers ---- */

struct lines {
	int nr;
	char line[NR_LINES][LINE_SIZE];
};

static char *next_line(struct lines *lines)
{
	return lines->line[lines->nr < NR_LINES - 1 ? lines->nr++ : lines->nr];
}

#define add_line(lines, ...)	snprintf(next_line(lines), LINE_SIZE, __VA_ARGS__)

static const char *type_name(const struct perf_event_attr *attr)
{
	return attr->bp_type == HW_BREAKPOINT_W ? "w" : is_instruction(attr) ? "x" : "rw";
}

#define add_claim(lines, of, cpu, kind, weight, type, len, addr, owner)		\
	add_line(lines, "claim%s cpu=%s kind=%s class=any weight=%u type=%s len=%llu "	\
		 "addr=0x%llx owner=%s:%d", of, cpu, kind, weight, type, len, addr, owner, getpid())

static void add_claim_of_event(struct lines *lines, const struct event *e, const char *of)
{
	const struct perf_event_attr *attr = &e->attr;
	char cpu[16] = "any";

	if (e->cpu != NONE)
		snprintf(cpu, sizeof(cpu), "%d", e->cpu);
	add_claim(lines, of, cpu, is_flexible(e) ? "flexible" : "guaranteed", event_weight(e),
		  type_name(attr), attr->bp_len, attr->bp_addr, "perf");
}

static void list_claims_of_model(const struct model *m, struct lines *lines)
{
	char of[32];

	for_each_event(m, e) {
		if (e->scope >= OF_CPU) {
			add_claim_of_event(lines, e, "");
		} else if (e->scope == OF_PROCESS && !e->ended) {
			snprintf(of, sizeof(of), " pid=%d process", m->process[e->target].pid);
			add_claim_of_event(lines, e, of);
		}
		for (int t = 0; e->scope == OF_TASK && t < NR_TASKS; t++) {
			if (!(e->tasks & (1U << t)))
				continue;
			snprintf(of, sizeof(of), " pid=%d", task_pid(t));
			add_claim_of_event(lines, e, of);
		}
	}
	for (int i = 0; i < m->wide; i++)
		add_line(lines, "claim cpu=all kernel");
	for (int i = 0; i < BP_SLOTS; i++) {
		if (!(m->traced_places & (1U << i)))
			continue;
		snprintf(of, sizeof(of), " pid=%d", task_pid(m->traced));
		add_claim(lines, of, "any", "guaranteed", 1, "w", 8ULL,
			  (unsigned long)BP_PAGE + m->traced_place[i] * PLACE_SIZE + 0ULL,
			  "ptrace");
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static unsigned long long field(const char *line, const char *name, int base, unsigned long long no)
{
	const char *p = strstr(line, name);

	return p ? strtoull(p + strlen(name), NULL, base) : no;
}

/* A register holds a piece of the range of an event that may count there. */
static bool is_armed_for(const struct model *m, const struct event *e, const char *line)
{
	unsigned long addr = field(line, " addr=", 16, 0), len = field(line, " len=", 10, 0);
	int cpu = field(line, " cpu=", 10, 0);
	pid_t pid = field(line, " pid=", 10, 0);

	if (addr < e->attr.bp_addr || addr + len > e->attr.bp_addr + e->attr.bp_len)
		return false;
	for_each_task(m, t) {
		if (e->scope == OF_PROCESS ? m->process[m->task[t].process].pid != pid :
		    e->scope == OF_TASK && task_pid(t) != pid)
			continue;
		if (event_is_armed(m, e, t, cpu))
			return true;
	}
	return false;
}

static void check_register(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			   const char *line, int armed[NR_EVENTS][BP_MAX_CPUS])
{
	unsigned long addr = field(line, " addr=", 16, 0);
	pid_t pid = field(line, " pid=", 10, 0);
	struct model *m = &self->m;

	if (strstr(line, " free") || strstr(line, "owner=kernel:"))
		return;
	if (strstr(line, "owner=ptrace:")) {
		EXPECT_TRUE(m->traced != NONE && pid == task_pid(m->traced) && m->traced_places);
		return;
	}
	for_each_event(m, e) {
		if (is_armed_for(m, e, line)) {
			armed[number_of(self, e)][field(line, " cpu=", 10, 0)]++;
			return;
		}
	}
	EXPECT_EQ(0UL, addr) {
		TH_LOG("armed for no event: %s", line);
	}
}

/* Guaranteed events of a CPU, and those of the judge, have their registers at any time. */
static void check_armed(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			int armed[NR_EVENTS][BP_MAX_CPUS])
{
	struct model *m = &self->m;

	for_each_event(m, e) {
		int n = number_of(self, e), cpu = m->task[JUDGE].cpu;

		if (is_flexible(e) || e->scope == OF_CGROUP)
			continue;
		if (e->scope == OF_CPU)
			cpu = e->cpu;
		if (!m->online[cpu] || !event_is_armed(m, e, JUDGE, cpu))
			continue;
		EXPECT_EQ(event_weight(e), armed[n][cpu]) {
			TH_LOG("event %d has %d registers on CPU %d", n, armed[n][cpu], cpu);
		}
	}
}

static void read_claim(char *line, struct lines *lines)
{
	char *end = strstr(line, " comm=");
	bool wide = strstr(line, "owner=kernel:wprobes/random") && strstr(line, "cpu=all");

	if (end)
		*end = '\0';
	add_line(lines, "%s", wide ? "claim cpu=all kernel" : line);
}

static void check_claims(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	static int armed[NR_EVENTS][BP_MAX_CPUS];
	static struct lines kernel, model;
	FILE *f = fopen(CLAIMS_FILE, "re");
	char line[512];

	ASSERT_NE(NULL, f);
	kernel.nr = 0;
	model.nr = 0;
	memset(armed, 0, sizeof(armed));
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "claim ", 6))
			read_claim(line, &kernel);
		else if (!strncmp(line, "register ", 9))
			check_register(_metadata, self, line, armed);
	}
	fclose(f);
	check_armed(_metadata, self, armed);

	list_claims_of_model(&self->m, &model);
	qsort(kernel.line, kernel.nr, LINE_SIZE, compare_lines);
	qsort(model.line, model.nr, LINE_SIZE, compare_lines);
	for (int i = 0, k = 0; i < model.nr || k < kernel.nr; ) {
		int order = i == model.nr ? 1 : k == kernel.nr ? -1 :
			    strcmp(model.line[i], kernel.line[k]);

		EXPECT_EQ(0, order) {
			TH_LOG("%s %s", order < 0 ? "missing:" : "too many:",
			       order < 0 ? model.line[i] : kernel.line[k]);
		}
		i += order <= 0;
		k += order >= 0;
	}
}

static void check(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	for_each_event(&self->m, e) {
		check_read(_metadata, self, e);
		check_silent(_metadata, self, e);
		check_signals(_metadata, self, e);
	}
	for (int i = 0; i < BP_SLOTS; i++) {
		if (self->wide[i].fd >= 0) {
			EXPECT_EQ(self->wide[i].count, bp_count(self->wide[i].fd)) {
				TH_LOG("kernel-wide %d", i);
			}
		}
	}
	check_rings(_metadata, self);
	EXPECT_EQ(self->m.traced_expected, self->m.traced_hits);
	self->m.traced_hits = self->m.traced_expected;
	if (one_in(self, 3))
		check_claims(_metadata, self);
}

/* ---- The test ---- */

static void do_one(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct event *e = pick_event(self);
	unsigned int op = pick(self, 200);

	if (op < 70)
		do_access(_metadata, self);
	else if (op < 73)
		do_call(_metadata, self);
	else if (op < 105)
		do_open(_metadata, self);
	else if (op < 110)
		do_garbage(self);
	else if (op < 112)
		do_prctl(self);
	else if (op < 118)
		do_clone(_metadata, self);
	else if (op < 122)
		do_exit(self);
	else if (op < 125)
		do_exec(_metadata, self);
	else if (op < 126)
		do_setuid(_metadata, self);
	else if (op < 130)
		do_move(_metadata, self);
	else if (op < 135)
		do_trace(_metadata, self);
	else if (op < 139)
		do_wide(_metadata, self);
	else if (op < 140)
		do_hotplug(_metadata, self);
	else if (!e)
		return;
	else if (op < 148)
		do_close(self, e);
	else if (op < 150)
		do_duplicate(self, e);
	else if (op < 162)
		do_modify(_metadata, self, e);
	else if (op < 174)
		do_enable(_metadata, self, e);
	else if (op < 178)
		do_reset(_metadata, self, e);
	else if (op < 182)
		do_refresh(_metadata, self, e);
	else if (op < 184)
		do_period(_metadata, self, e);
	else if (op < 194)
		do_map(self, _metadata, e);
	else
		do_set_output(self, _metadata, e);
}

static void begin(FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;

	self->begun = true;
	m->traced = NONE;
	for (int i = 0; i < NR_TASKS; i++)
		m->process[i].leader = NONE;
	for (int i = 0; i < NR_EVENTS; i++) {
		m->event[i].fd = -1;
		m->ring[i].owner = NONE;
	}
	for (int i = 0; i < BP_SLOTS; i++)
		self->wide[i].fd = -1;
	m->cpus = bp_online_cpus();
	for (int i = 0; i < m->cpus.nr; i++)
		m->online[m->cpus.cpu[i]] = true;
	bp_pin(m->cpus.cpu[0]);
	bp_write_file("/sys/fs/cgroup/cgroup.procs", "0");
	m->task[JUDGE] = (struct task) { .live = true, .cpu = m->cpus.cpu[0] };
	m->process[JUDGE] = (struct process) { .pid = getpid(), .leader = JUDGE };
	tasks_setup();
}

/* Each sequence begins with nothing: what one has left, the next one does not explain. */
static void end(FIXTURE_DATA(random) *self)
{
	struct model *m = &self->m;

	for (int i = 0; i < NR_TASKS; i++) {
		if (i == JUDGE || m->process[i].leader == NONE)
			continue;
		kill(m->process[i].pid, SIGKILL);
		/* The tracer waits for the thread, then the parent for the process. */
		if (m->traced != NONE && m->task[m->traced].process == i)
			waitpid(task_pid(m->traced), NULL, __WALL);
		waitpid(m->process[i].pid, NULL, __WALL);
	}
	for_each_event(m, e)
		do_close(self, e);
	for (int i = 0; i < BP_SLOTS; i++) {
		if (self->wide[i].fd >= 0)
			close_wide(self, i);
	}
	for (int i = 0; i < m->cpus.nr; i++) {
		if (!m->online[m->cpus.cpu[i]])
			bp_cpu_online(m->cpus.cpu[i], true);
	}
	tasks_teardown();
	memset(m, 0, sizeof(*m));
	self->begun = false;
}

static unsigned int parameter(const char *name, unsigned int value)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : value;
}

FIXTURE_SETUP(random)
{
	char text[96];

	BP_NEED_ROOT();
	self->dice.seed = parameter("BP_SEED", bp_now(CLOCK_MONOTONIC) / 1000);
	self->faults = parameter("BP_FAULTS", 0);
	self->dice.trace = parameter("BP_TRACE", 0);
	if (self->faults) {
		self->nth_fd = allow_faults();
		ASSERT_LE(0, self->nth_fd);
	}
	bp_enable_cgroups();
	for (int i = 0; i < NR_GROUPS; i++) {
		mkdir(groups[i], 0700);
		self->group[i] = open(groups[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ASSERT_LE(0, self->group[i]);
	}
	for (int i = 0; i < BP_SLOTS; i++) {
		snprintf(text, sizeof(text), "w:random%d w@%s:4", i, numbers[i].symbol);
		bp_write_file(DYNAMIC_EVENTS, text);
	}
}

FIXTURE_TEARDOWN(random)
{
	char text[32];

	if (self->begun)
		end(self);
	bp_write_file("/sys/fs/cgroup/cgroup.procs", "0");
	for (int i = NR_GROUPS - 1; i >= 0; i--) {
		close(self->group[i]);
		rmdir(groups[i]);
	}
	for (int i = 0; i < BP_SLOTS; i++) {
		snprintf(text, sizeof(text), "-:random%d", i);
		bp_write_file(DYNAMIC_EVENTS, text);
	}
	bp_teardown(_metadata);
}

/* Slab memory of the kernel in KiB, after RCU has freed what was closed */
static long slab_memory(void)
{
	char text[4096], *p;

	usleep(200000);
	if (bp_read_file("/proc/meminfo", text, sizeof(text)))
		return 0;
	p = strstr(text, "SUnreclaim:");
	return p ? strtol(p + strlen("SUnreclaim:"), NULL, 10) : 0;
}

TEST_F(random, the_kernel_does_what_the_model_does)
{
	unsigned int sequences = parameter("BP_SEQUENCES", SEQUENCES);
	unsigned int operations = parameter("BP_OPERATIONS", OPERATIONS);
	long slab = 0;

	for (unsigned int s = 0; s < sequences; s++, self->dice.seed++) {
		if (s == sequences / 4)
			slab = slab_memory();
		dice_begin(&self->dice);
		begin(self);
		for (unsigned int n = 0; n < operations; n++) {
			do_one(_metadata, self);
			check(_metadata, self);
			if (!__test_passed(_metadata)) {
				print_notes(_metadata, self);
				return;
			}
		}
		end(self);
		ASSERT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	}
	/* Caches grow at first. KASAN keeps memory that was freed. */
	if (sequences < 40 || !access("/proc/lockdep", F_OK))
		return;
	EXPECT_GE(slab + 4 * sequences, slab_memory());
}

TEST_HARNESS_MAIN
