// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: the time of a record.
 *
 * The rule: after the time of a record no CPU executes the old text.
 */
#include "provoke.h"

/*
 * One CPU executes the text repeatedly, and notes the time and whether it executed the
 * old or the new text. Another CPU changes the text. The test can decide two cases:
 * after the time of the record the old text must not be executed, and before the change
 * was requested the new text must not be executed. In between a software breakpoint may
 * stand for either.
 *
 * Removing the breakpoint of a kprobe is the exception: until the end of the change the
 * text with the breakpoint may be executed, and it must be executed before the record.
 */
enum site { BREAKPOINT, JUMP, FUNCTION, STATIC_KEY };

struct pass {
	__u64 from;
	__u64 to;
	__u64 count;
};

struct change {
	__u64 asked;
	__u64 done;
	__u64 recorded;
	bool from_breakpoint;
	bool on;
};

#define MAX_PASSES	(1 << 21)
#define CHANGES		16

FIXTURE(ordering)
{
	struct listener listener;
	struct bp_cpus cpus;
	struct pass *pass;
	struct change change[CHANGES];
	pthread_t thread;
	char optimize[16];
	__u64 addr;
	int cpu;
	int fd;
	enum site site;
	bool stop;
	long nr;
};

FIXTURE_VARIANT(ordering)
{
	enum site site;
};

FIXTURE_VARIANT_ADD(ordering, kprobe) { .site = BREAKPOINT };
FIXTURE_VARIANT_ADD(ordering, optimized_kprobe) { .site = JUMP };
FIXTURE_VARIANT_ADD(ordering, ftrace) { .site = FUNCTION };
FIXTURE_VARIANT_ADD(ordering, static_key) { .site = STATIC_KEY };

static __u64 passes_counted(FIXTURE_DATA(ordering) *self)
{
	return self->site == STATIC_KEY ? program_runs(self->fd) : bp_count(self->fd);
}

static void *pass_over_it(void *arg)
{
	FIXTURE_DATA(ordering) *self = arg;
	unsigned long offset = 0;
	long n = 0;

	bp_pin(self->cpu);
	switch (self->site) {
	case BREAKPOINT:
	case JUMP:
		self->fd = open_inner_kprobe("__x64_sys_getppid", &offset);
		break;
	case FUNCTION:
		self->fd = open_kprobe("__x64_sys_getppid", 0, false);
		break;
	case STATIC_KEY:
		self->fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 2);
		break;
	}
	self->addr = (unsigned long)bp_ksym("__x64_sys_getppid") + offset;
	while (self->fd >= 0 && !__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE)) {
		struct pass *p = &self->pass[n];

		if (n == MAX_PASSES) {
			usleep(1000);
			continue;
		}
		p->from = bp_now(CLOCK_MONOTONIC_RAW);
		if (self->site == STATIC_KEY)
			run_program(self->fd, 1);
		else
			syscall(__NR_getppid);
		p->to = bp_now(CLOCK_MONOTONIC_RAW);
		p->count = passes_counted(self);
		__atomic_store_n(&self->nr, ++n, __ATOMIC_RELEASE);
	}
	/* The kernel lacks what this variant needs. */
	if (self->fd < 0)
		__atomic_store_n(&self->nr, -1, __ATOMIC_RELEASE);
	return NULL;
}

/* Waits for some more executions; returns false if there will be none. */
static bool let_it_pass(FIXTURE_DATA(ordering) *self, int more)
{
	long nr = __atomic_load_n(&self->nr, __ATOMIC_ACQUIRE), now = nr;

	while (now >= 0 && now < nr + more) {
		if (nr + more > MAX_PASSES)
			return false;
		usleep(1000);
		now = __atomic_load_n(&self->nr, __ATOMIC_ACQUIRE);
	}
	return now >= 0;
}

FIXTURE_SETUP(ordering)
{
	struct perf_event_attr attr = poke_attr();

	BP_NEED_ROOT();
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	if (variant->site == STATIC_KEY ? access(BPF_STATS, W_OK) : access(ARM_KPROBES, W_OK))
		SKIP(return, "needs %s", variant->site == STATIC_KEY ? BPF_STATS : ARM_KPROBES);
	if (!bp_read_file(OPTIMIZE, self->optimize, sizeof(self->optimize)))
		bp_write_file(OPTIMIZE, variant->site == JUMP ? "1" : "0");
	self->pass = mmap(NULL, MAX_PASSES * sizeof(*self->pass), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pass);
	self->site = variant->site;
	self->cpu = self->cpus.cpu[1];
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
	/*
	 * CLOCK_MONOTONIC_RAW is not adjusted, so the times of event and task can be
	 * compared.
	 */
	attr.clockid = CLOCK_MONOTONIC_RAW;
	ASSERT_EQ(0, listen_with(&self->listener, &attr, -1, self->cpus.cpu[0], 256));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, pass_over_it, self));
}

FIXTURE_TEARDOWN(ordering)
{
	if (self->thread) {
		__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
		pthread_join(self->thread, NULL);
	}
	if (variant->site != STATIC_KEY)
		bp_write_file(ARM_KPROBES, "1");
	if (self->optimize[0])
		bp_write_file(OPTIMIZE, self->optimize);
	bp_teardown(_metadata);
}

/* Finds the last record of the change. */
static void look_up(FIXTURE_DATA(ordering) *self, struct change *c)
{
	struct perf_event_header *h;
	size_t pos = 0;
	struct poke p;

	drain(&self->listener);
	while ((h = next_record(&self->listener, &pos))) {
		if (!decode(h, &p) || p.time < c->asked || p.time > c->done)
			continue;
		if (self->site == STATIC_KEY ? p.tid != syscall(__NR_gettid) :
					       p.addr != self->addr)
			continue;
		c->recorded = p.time;
		c->from_breakpoint = p.old_len && p.old[0] == INT3;
	}
}

TEST_F(ordering, old_text_is_not_executed_after_the_record)
{
	const char *file = variant->site == STATIC_KEY ? BPF_STATS : ARM_KPROBES;
	unsigned long func = (unsigned long)bp_ksym("__x64_sys_getppid");
	long wrong = 0, decided = 0, meanwhile = 0, nr;
	struct change *c = self->change;
	int changes = 0, n = 0;

	if (!let_it_pass(self, 20))
		SKIP(return, "the kernel lacks what this variant needs");
	for (; changes < CHANGES; changes++, c++) {
		/* At the start kprobes are armed, and BPF statistics are off. */
		c->on = (changes & 1) ^ (variant->site == STATIC_KEY);
		if (variant->site == JUMP && !c->on)
			wait_until_optimized(func);
		c->asked = bp_now(CLOCK_MONOTONIC_RAW);
		ASSERT_EQ(0, bp_write_file(file, c->on ? "1" : "0"));
		c->done = bp_now(CLOCK_MONOTONIC_RAW);
		if (!let_it_pass(self, 20))
			break;
	}
	ASSERT_LE(4, changes);
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	pthread_join(self->thread, NULL);
	self->thread = 0;
	for (int i = 0; i < changes; i++) {
		look_up(self, &self->change[i]);
		EXPECT_NE(0, self->change[i].recorded) {
			TH_LOG("no record of change %d", i);
		}
	}

	nr = self->nr;
	for (long i = 1; i < nr; i++) {
		struct pass *p = &self->pass[i];
		__u64 from, to;
		bool hit;

		/* Find the last change before this execution began. */
		while (n + 1 < changes && self->change[n + 1].recorded <= p->from)
			n++;
		c = &self->change[n];
		from = c->from_breakpoint ? c->done : c->recorded;
		to = -1;
		if (n + 1 < changes)
			to = c[1].from_breakpoint ? c[1].recorded : c[1].asked;
		if (p->from <= from || p->to >= to)
			continue;
		decided++;
		meanwhile += p->from < c->done;
		hit = p->count != self->pass[i - 1].count;
		if (hit != c->on && wrong++ < MAX_REPORTED)
			ksft_print_msg("change %d to %s, requested %llu recorded %llu done %llu: executed %llu to %llu: %s\n",
				       n, c->on ? "on" : "off", c->asked, c->recorded, c->done,
				       p->from, p->to, hit ? "hit" : "no hit");
	}
	EXPECT_EQ(0, wrong);
	EXPECT_LE(10 * (changes - 1), decided);
	TH_LOG("%ld of %ld executions decided, %ld between a record and the end of its change",
	       decided, nr, meanwhile);
}

TEST_HARNESS_MAIN
