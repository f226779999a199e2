// SPDX-License-Identifier: GPL-2.0
/*
 * Flexible breakpoints: more of them than there are registers.
 *
 * The rule: bit 0 of attr.config makes a breakpoint flexible. Any number of
 * those may be open as long as one register is left for all of them. They take
 * turns on what the other breakpoints, the guaranteed ones, leave over; nobody
 * waits for ever, and the times that come with a count tell for how long it
 * counted. A guaranteed one notices nothing of all that.
 *
 * What depends on time is waited for, as long as it takes: a machine may be
 * busy, and an emulator or a kernel with all its checks on is slow. Times are
 * compared with each other alone, and with nothing that was measured elsewhere.
 */
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>

#include "bp_test.h"

#define FLEXIBLE	1ULL

#define PMU		"/sys/bus/event_source/devices/breakpoint"
#define INTERVAL	PMU "/perf_event_mux_interval_ms"

/* How long a turn is here, whatever it was before; the length of a usual tick. */
#define TURN_MS		4
#define TURN_NS		(TURN_MS * 1000000ULL)

/* What has not happened by then is not going to, on the slowest of machines. */
#define PATIENCE_NS	(30 * 1000000000ULL)

/* How long estimates may take to come close to the truth. */
#define ESTIMATE_NS	(5 * 1000000000ULL)

/* So many words of 64 bytes are in the test page. */
#define MAX_EVENTS	64

static char *mem;
static struct bp_cpus cpus;
static int cpu;
static char old_interval[16];

static char *word(int i)
{
	return mem + BP_PAGE_SIZE / MAX_EVENTS * i;
}

static void store_words(int first, int nr, int rounds)
{
	while (rounds--) {
		for (int i = first; i < first + nr; i++)
			bp_store(word(i), 1);
	}
}

static int set_interval(int ms)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", ms);
	return bp_write_file(INTERVAL, text);
}

static void set_up(struct __test_metadata *_metadata)
{
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, mem);
	cpus = bp_online_cpus();
	cpu = cpus.cpu[0];
	ASSERT_EQ(0, bp_read_file(INTERVAL, old_interval, sizeof(old_interval)));
	if (!geteuid())
		ASSERT_EQ(0, set_interval(TURN_MS));
}

static void tear_down(struct __test_metadata *_metadata)
{
	if (!geteuid())
		EXPECT_EQ(0, bp_write_file(INTERVAL, old_interval));
	bp_teardown(_metadata);
}

static struct perf_event_attr guaranteed(int i)
{
	struct perf_event_attr attr = bp_attr_w(word(i), 8);

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

static struct perf_event_attr flexible(int i)
{
	struct perf_event_attr attr = guaranteed(i);

	attr.config = FLEXIBLE;
	return attr;
}

static struct perf_event_attr software(__u64 config)
{
	struct perf_event_attr attr = guaranteed(0);

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = config;
	attr.bp_type = 0;
	attr.bp_addr = 0;
	attr.bp_len = 0;
	return attr;
}

static int open_flexible(pid_t pid, int on)
{
	struct perf_event_attr attr = flexible(0);

	return bp_open(&attr, pid, on);
}

static int open_guaranteed(pid_t pid, int on)
{
	struct perf_event_attr attr = guaranteed(0);

	return bp_open(&attr, pid, on);
}

/* Guaranteed ones that are there to hold registers, nr of them. */
static void hold(struct __test_metadata *_metadata, int nr, pid_t pid, int on)
{
	for (int i = 0; i < nr; i++) {
		struct perf_event_attr attr = guaranteed(MAX_EVENTS - 1 - i);

		ASSERT_LE(0, bp_open(&attr, pid, on));
	}
}

/* ------------------------------------------------------------- sets of events */

/* Events, what they said when begin() was called, and when look() was. */
struct events {
	int nr;
	int fd[MAX_EVENTS];
	struct bp_reading from[MAX_EVENTS];
	struct bp_reading to[MAX_EVENTS];
};

/* Adds an event. Any attributes will do that come from the functions above. */
static void add(struct __test_metadata *_metadata, struct events *e,
		struct perf_event_attr attr, pid_t pid, int on, int group)
{
	e->fd[e->nr] = bp_open_group(&attr, pid, on, group, PERF_FLAG_FD_CLOEXEC);
	ASSERT_LE(0, e->fd[e->nr]);
	e->from[e->nr] = (struct bp_reading){ };
	e->nr++;
}

static void add_disabled(struct __test_metadata *_metadata, struct events *e,
			 struct perf_event_attr attr, pid_t pid, int on)
{
	attr.disabled = 1;
	add(_metadata, e, attr, pid, on, -1);
}

/* Adds breakpoints on nr words, each for itself. */
static void add_words(struct __test_metadata *_metadata, struct events *e,
		      struct perf_event_attr (*attr)(int i), int first, int nr,
		      pid_t pid, int on)
{
	for (int i = first; i < first + nr; i++)
		add(_metadata, e, attr(i), pid, on, -1);
}

/*
 * Adds a group of breakpoints on nr words, which the first of them leads. They
 * begin together.
 */
static void add_group(struct __test_metadata *_metadata, struct events *e,
		      struct perf_event_attr (*attr)(int i), int first, int nr,
		      pid_t pid, int on)
{
	int group;

	add_disabled(_metadata, e, attr(first), pid, on);
	group = e->fd[e->nr - 1];
	for (int i = first + 1; i < first + nr; i++)
		add(_metadata, e, attr(i), pid, on, group);
	EXPECT_EQ(0, bp_enable(group));
}

static void close_events(struct events *e)
{
	bp_close(e->fd, e->nr);
	e->nr = 0;
}

static void read_event(struct __test_metadata *_metadata, int fd, struct bp_reading *r)
{
	ASSERT_TRUE(bp_read(fd, r));
	EXPECT_LE(r->running, r->enabled);
}

/* Times and counts only grow, and nobody runs who is not enabled. */
static void look(struct __test_metadata *_metadata, struct events *e)
{
	for (int i = 0; i < e->nr; i++) {
		read_event(_metadata, e->fd[i], &e->to[i]);
		EXPECT_LE(e->from[i].count, e->to[i].count);
		EXPECT_LE(e->from[i].enabled, e->to[i].enabled);
		EXPECT_LE(e->from[i].running, e->to[i].running);
	}
}

static void begin(struct __test_metadata *_metadata, struct events *e)
{
	look(_metadata, e);
	memcpy(e->from, e->to, sizeof(e->from));
}

static __u64 counted(struct events *e, int i)
{
	return e->to[i].count - e->from[i].count;
}

static __u64 enabled(struct events *e, int i)
{
	return e->to[i].enabled - e->from[i].enabled;
}

static __u64 running(struct events *e, int i)
{
	return e->to[i].running - e->from[i].running;
}

static __u64 all_counted(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += counted(e, i);
	return sum;
}

static __u64 all_running(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += running(e, i);
	return sum;
}

static __u64 all_enabled(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += enabled(e, i);
	return sum;
}

static void show(struct __test_metadata *_metadata, struct events *e)
{
	for (int i = 0; i < e->nr; i++) {
		TH_LOG("event %d: count %llu enabled %llu running %llu", i,
		       (unsigned long long)counted(e, i),
		       (unsigned long long)enabled(e, i),
		       (unsigned long long)running(e, i));
	}
}

/* Is a as large as b, but for so many percent of b and so much more? */
static bool within(double a, double b, double percent, double more)
{
	double off = a > b ? a - b : b - a;

	return off <= b * percent / 100 + more;
}

/* ------------------------------------------------------------------- the load */

/*
 * How steady a load was: the rounds in stretches of time that are as long as the
 * turns of an event on the average, where a new one gets a register each turn.
 */
#define STRETCH_NS	(BP_SLOTS * TURN_NS)

struct steadiness {
	__u64 start;
	__u64 rounds;
	double time;
	double sum;
	double squares;
};

static void note(struct steadiness *s, __u64 rounds)
{
	double time = bp_now(CLOCK_MONOTONIC) - s->start, speed;

	if (s->start && time < STRETCH_NS)
		return;
	if (s->start) {
		speed = (rounds - s->rounds) / time;
		s->time += time;
		s->sum += speed * time;
		s->squares += speed * speed * time;
	}
	s->start = bp_now(CLOCK_MONOTONIC);
	s->rounds = rounds;
}

/* The variance of the speed, in relation to the square of its mean. */
static double unsteadiness(struct steadiness *s)
{
	double mean = s->sum / s->time;

	return s->time ? s->squares / s->time / (mean * mean) - 1 : 1;
}

/* Stores to words, for as long as a test asks it to. */
struct load {
	int first;
	int nr;
	/* Instead of four rounds of stores by this process. */
	void (*go_on)(struct load *load);
	/* Who makes the rounds, where that is let_worker(). */
	struct bp_worker *worker;
	/* Rounds that were made since they were last set to zero. */
	__u64 rounds;
	struct steadiness steady;
};

static void go_on(struct load *load)
{
	if (load->go_on) {
		load->go_on(load);
		return;
	}
	store_words(load->first, load->nr, 4);
	load->rounds += 4;
	note(&load->steady, load->rounds);
}

/* Others go on by themselves. */
static void let_others(struct load *load)
{
	(void)load;
	usleep(2000);
}

static void let_worker(struct load *load)
{
	if (!bp_do(load->worker, 8))
		load->rounds += 8;
}

static void let_two(struct load *load)
{
	if (!bp_do(&load->worker[0], 5) && !bp_do(&load->worker[1], 5))
		load->rounds += 5;
}

/* Goes to sleep again and again, after longer and shorter times, for such. */
static void sleep_often(struct load *load)
{
	__u64 until = bp_now(CLOCK_MONOTONIC) + (1 + load->rounds % 3) * TURN_NS;

	while (bp_now(CLOCK_MONOTONIC) < until)
		store_words(load->first, load->nr, 1);
	usleep(100 * (1 + load->rounds++ % 17));
}

/* Moves to the next CPU before a turn can end. */
static void move_often(struct load *load)
{
	bp_pin(cpus.cpu[load->rounds % cpus.nr]);
	store_words(load->first, load->nr, 1 + load->rounds++ % 3);
}

/*
 * Goes on until an event was enabled for so long since begin(). Events are read
 * rarely: it takes longer while they run, and the load must be steady.
 */
static void go_on_for(struct __test_metadata *_metadata, struct load *load,
		      struct events *e, __u64 ns)
{
	__u64 start, left;

	do {
		read_event(_metadata, e->fd[0], &e->to[0]);
		start = bp_now(CLOCK_MONOTONIC);
		left = enabled(e, 0) < ns ? ns - enabled(e, 0) : 0;
		while (left && bp_now(CLOCK_MONOTONIC) - start < left)
			go_on(load);
	} while (left);
}

/* Takes readings before and after that many turns. */
static void go_on_turns(struct __test_metadata *_metadata, struct load *load,
			struct events *e, int turns)
{
	begin(_metadata, e);
	load->rounds = 0;
	load->steady = (struct steadiness){ };
	go_on_for(_metadata, load, e, turns * TURN_NS);
	look(_metadata, e);
}

/* How many had a register and a hit since begin(). */
static int served(struct events *e)
{
	int nr = 0;

	for (int i = 0; i < e->nr; i++)
		nr += running(e, i) && counted(e, i);
	return nr;
}

/* Goes on until each event was served, or patience ends. */
static bool all_get_a_turn(struct __test_metadata *_metadata, struct events *e,
			   struct load *load)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);

	begin(_metadata, e);
	do {
		go_on(load);
		look(_metadata, e);
	} while (served(e) < e->nr && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);

	if (served(e) < e->nr)
		show(_metadata, e);
	return served(e) == e->nr;
}

/* Who got one turn by chance does not get the next. */
static void expect_turns(struct __test_metadata *_metadata, struct events *e,
			 struct load *load)
{
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(all_get_a_turn(_metadata, e, load));
}

/*
 * A round hits one word for each register that has an event; or so many more, or
 * less, as came in the middle of it for others that went. That happens once in a
 * turn.
 */
static void expect_in_use(struct __test_metadata *_metadata, struct events *e,
			  struct load *load, int least, int most)
{
	double changes = BP_SLOTS * (enabled(e, 0) / TURN_NS + 1), nr = all_counted(e);

	EXPECT_LE(least * load->rounds * 0.95, nr + changes) {
		TH_LOG("%llu rounds", (unsigned long long)load->rounds);
		show(_metadata, e);
	}
	EXPECT_LE(nr - changes, most * load->rounds * 1.02) {
		TH_LOG("%llu rounds", (unsigned long long)load->rounds);
		show(_metadata, e);
	}
}

/*
 * Two that share a register have about the same of it: of the stores that the load
 * made, since times grow while the machine stands still, too. One that has the
 * register for most of the turns has so sooner or later as well.
 */
static void expect_even(struct __test_metadata *_metadata, struct load *load,
			struct events *e)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), turns = 0;
	bool even;

	begin(_metadata, e);
	load->rounds = 0;
	load->steady = (struct steadiness){ };
	do {
		turns += 100;
		go_on_for(_metadata, load, e, turns * TURN_NS);
		look(_metadata, e);
		even = within(counted(e, 0), counted(e, 1), 30, 0);
	} while (!even && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS / 2);
	EXPECT_TRUE(even)
		show(_metadata, e);
}

/* All the time, to the nanosecond, and nothing was missed. */
static void expect_missed_nothing(struct __test_metadata *_metadata, struct events *e,
				  __u64 count)
{
	look(_metadata, e);
	for (int i = 0; i < e->nr; i++) {
		EXPECT_EQ(count, counted(e, i));
		EXPECT_EQ(enabled(e, i), running(e, i));
	}
}

/* A child that stores to nr words until *stop, on the same CPUs as this one. */
static pid_t busy(volatile __u64 *stop, int first, int nr)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	while (!*stop)
		store_words(first, nr, 1);
	_exit(0);
}

/* ------------------------------------------------------------------- workers */

enum { CMD_FREE = -1, CMD_OPEN_FLEXIBLE = -2, CMD_NOBODY = -3 };

/* Makes cmd rounds of stores to the words of a load, or what CMD_ says. */
static long worker(int cmd, void *arg)
{
	struct load *load = arg;

	switch (cmd) {
	case CMD_FREE:
		return bp_free_slots(0, -1);
	case CMD_OPEN_FLEXIBLE:
		return open_flexible(0, -1);
	case CMD_NOBODY:
		return bp_become_nobody();
	}
	store_words(load->first, load->nr, cmd);
	return 0;
}

/* ================================================================= who is let in */

FIXTURE(admission)
{
	struct perf_event_attr attr;
};

FIXTURE_SETUP(admission)
{
	set_up(_metadata);
	self->attr = flexible(0);
}

FIXTURE_TEARDOWN(admission)
{
	tear_down(_metadata);
}

/* How many guaranteed ones are open beside it makes no difference up to here. */
TEST_F(admission, any_number_is_let_in_where_one_register_is_left)
{
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 200; i++)
		ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(0, bp_free_slots(0, -1));
	EXPECT_EQ(-ENOSPC, open_guaranteed(0, -1));
}

TEST_F(admission, any_number_is_let_in_on_each_cpu)
{
	BP_NEED_ROOT();
	for (int i = 0; i < cpus.nr; i++) {
		hold(_metadata, BP_SLOTS - 1, -1, cpus.cpu[i]);
		for (int k = 0; k < 50; k++)
			ASSERT_LE(0, open_flexible(-1, cpus.cpu[i]));
		EXPECT_EQ(0, bp_free_slots(-1, cpus.cpu[i]));
	}
	ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(0, bp_free_slots(0, -1));
}

TEST_F(admission, four_guaranteed_ones_of_the_task_refuse_it)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	close(fd[1]);
	EXPECT_LE(0, open_flexible(0, -1));
}

TEST_F(admission, four_guaranteed_ones_of_a_cpu_refuse_it_there)
{
	int fd[BP_SLOTS];

	BP_NEED_ROOT();
	ASSERT_EQ(BP_SLOTS, bp_fill(-1, cpu, fd));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	EXPECT_EQ(-ENOSPC, open_flexible(0, cpu));
	for (int i = 1; i < cpus.nr; i++) {
		EXPECT_LE(0, open_flexible(-1, cpus.cpu[i]));
		EXPECT_LE(0, open_flexible(0, cpus.cpu[i]));
	}
}

/* Two of the CPU and two of this task: another task is not concerned. */
TEST_F(admission, guaranteed_ones_of_cpu_and_task_refuse_it_together)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	hold(_metadata, 2, -1, cpu);
	hold(_metadata, 2, 0, -1);
	EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
	EXPECT_EQ(-ENOSPC, open_flexible(0, cpu));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	EXPECT_LE(0, open_flexible(other.pid, -1));
	EXPECT_EQ(1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, many_cost_as_much_as_one)
{
	for (int i = 0; i < 30; i++) {
		ASSERT_LE(0, open_flexible(0, -1));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	}
}

TEST_F(admission, last_close_gives_the_register_back)
{
	int fd[5], mine[BP_SLOTS];

	for (int i = 0; i < 5; i++) {
		fd[i] = open_flexible(0, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		close(fd[i]);
	}
	EXPECT_EQ(BP_SLOTS, bp_fill(0, -1, mine));
}

TEST_F(admission, last_close_on_a_cpu_gives_the_register_back)
{
	int fd[3];

	BP_NEED_ROOT();
	for (int i = 0; i < 3; i++) {
		fd[i] = open_flexible(-1, cpu);
		ASSERT_LE(0, fd[i]);
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		close(fd[i]);
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(admission, disabled_one_keeps_the_register_too)
{
	self->attr.disabled = 1;
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

TEST_F(admission, one_of_a_cpu_costs_each_task_one)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 3; i++) {
		ASSERT_LE(0, open_flexible(-1, cpu));
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
		EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	}
	for (int i = 1; i < cpus.nr; i++) {
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, cpus.cpu[i]));
		EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[i]));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, one_of_a_task_costs_each_cpu_one_and_other_tasks_nothing)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 3; i++)
		ASSERT_LE(0, open_flexible(0, -1));
	EXPECT_EQ(BP_SLOTS, bp_do(&other, CMD_FREE));
	for (int i = 0; i < cpus.nr; i++)
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[i]));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, one_of_a_task_on_one_cpu_costs_that_cpu_alone)
{
	BP_NEED_ROOT();
	BP_NEED_CPUS(cpus, 2);
	ASSERT_LE(0, open_flexible(0, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, cpus.cpu[0]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, cpus.cpu[1]));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
}

TEST_F(admission, those_of_cpu_and_tasks_share_one_register)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 3; i++) {
		EXPECT_LE(0, open_flexible(-1, cpu));
		EXPECT_LE(0, open_flexible(0, -1));
		EXPECT_LE(0, open_flexible(0, cpu));
		EXPECT_LE(0, open_flexible(other.pid, -1));
	}
	EXPECT_EQ(0, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

/* The fullest task decides, as it does for guaranteed ones. */
TEST_F(admission, full_task_elsewhere_keeps_it_from_the_cpu)
{
	int fd[BP_SLOTS], mine;
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	ASSERT_EQ(BP_SLOTS, bp_fill(other.pid, -1, fd));
	EXPECT_EQ(-ENOSPC, open_flexible(-1, cpu));
	mine = open_flexible(0, -1);
	EXPECT_LE(0, mine);
	close(fd[0]);
	EXPECT_LE(0, open_flexible(-1, cpu));
	EXPECT_EQ(-ENOSPC, open_guaranteed(other.pid, -1));
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(admission, kinds_share_the_register)
{
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	x.config = FLEXIBLE;
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < BP_SLOTS; i++) {
		EXPECT_LE(0, bp_open(&x, 0, -1));
		EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	}
	x.config = 0;
	EXPECT_EQ(0, bp_free_slots_with(&x, 0, -1));
}

TEST_F(admission, refused_one_does_not_disturb_the_guaranteed)
{
	struct events e = { };

	add_words(_metadata, &e, guaranteed, 0, BP_SLOTS, 0, -1);
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(-ENOSPC, open_flexible(0, -1));
		store_words(0, BP_SLOTS, 1);
		expect_missed_nothing(_metadata, &e, i);
	}
}

TEST_F(admission, refused_guaranteed_one_does_not_disturb_the_flexible)
{
	struct load load = { .nr = 6 };
	struct events e = { };

	add_words(_metadata, &e, flexible, 0, 6, 0, -1);
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOSPC, open_guaranteed(0, -1));
		ASSERT_TRUE(all_get_a_turn(_metadata, &e, &load));
	}
}

TEST_F(admission, pinned_one_is_refused)
{
	int fd[BP_SLOTS];

	self->attr.pinned = 1;
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
	if (!geteuid())
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, -1, cpu));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
}

TEST_F(admission, bits_nobody_knows_are_refused)
{
	for (int bit = 1; bit < 64; bit++) {
		self->attr.config = 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1));
		self->attr.config |= FLEXIBLE;
		EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, -1)) {
			TH_LOG("config bits 0 and %d", bit);
		}
	}
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

TEST_F(admission, exit_gives_the_register_back_while_descriptors_are_open)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 8; i++)
		ASSERT_LE(0, open_flexible(other.pid, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
	EXPECT_EQ(0, bp_stop(&other));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
}

TEST_F(admission, exit_of_a_thread_gives_the_register_back)
{
	struct bp_worker thread;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start_thread(&thread, worker, NULL));
	for (int i = 0; i < 8; i++)
		ASSERT_LE(0, open_flexible(thread.pid, -1));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpu));
}

TEST_F(admission, task_opens_them_without_privilege)
{
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	ASSERT_EQ(0, bp_do(&other, CMD_NOBODY));
	for (int i = 0; i < 8; i++)
		EXPECT_LE(0, bp_do(&other, CMD_OPEN_FLEXIBLE));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&other, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&other));
}

/* Sets one register of a stopped tracee through ptrace, the lower ones being set. */
static int debugger_sets(pid_t pid, int nr)
{
	unsigned long dr7 = 0;

	/* Enabled, on writes to 8 bytes. */
	for (int i = 0; i <= nr; i++)
		dr7 |= 1UL << 2 * i | 0x9UL << (16 + 4 * i);
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[nr]), word(nr)) ||
	    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), dr7))
		return -errno;
	return 0;
}

TEST_F(admission, debugger_is_guaranteed_what_they_leave)
{
	struct bp_worker other;

	ASSERT_EQ(0, bp_start(&other, worker, NULL));
	for (int i = 0; i < 4; i++)
		ASSERT_LE(0, open_flexible(other.pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_ATTACH, other.pid, 0, 0));
	ASSERT_EQ(other.pid, waitpid(other.pid, NULL, 0));
	for (int i = 0; i < BP_SLOTS - 1; i++)
		EXPECT_EQ(0, debugger_sets(other.pid, i));
	EXPECT_EQ(-ENOSPC, debugger_sets(other.pid, BP_SLOTS - 1));
	EXPECT_EQ(-ENOSPC, open_guaranteed(other.pid, -1));
	EXPECT_LE(0, open_flexible(other.pid, -1));
	ASSERT_EQ(0, ptrace(PTRACE_DETACH, other.pid, 0, 0));
	EXPECT_EQ(0, bp_stop(&other));
}

/* ======================================================================= groups */

FIXTURE(group)
{
	struct events e;
};

FIXTURE_SETUP(group)
{
	set_up(_metadata);
}

FIXTURE_TEARDOWN(group)
{
	tear_down(_metadata);
}

TEST_F(group, guaranteed_and_flexible_breakpoints_do_not_mix)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	int of_plain = open_guaranteed(0, -1), of_flex = open_flexible(0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
		EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
	}
	EXPECT_EQ(BP_SLOTS - 2, bp_free_slots(0, -1));
	EXPECT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	EXPECT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(BP_SLOTS - 3, bp_free_slots(0, -1));
}

/* Whoever leads: it is the breakpoints among the members that must agree. */
TEST_F(group, they_do_not_mix_under_a_software_event_either)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	int of_plain = bp_open(&sw, 0, -1), of_flex = bp_open(&sw, 0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	ASSERT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
	EXPECT_LE(0, bp_open_group(&plain, 0, -1, of_plain, 0));
	EXPECT_LE(0, bp_open_group(&flex, 0, -1, of_flex, 0));
	EXPECT_EQ(BP_SLOTS - 3, bp_free_slots(0, -1));
}

TEST_F(group, software_members_do_not_hide_the_mix)
{
	struct perf_event_attr plain = guaranteed(1), flex = flexible(1);
	struct perf_event_attr sw = software(PERF_COUNT_SW_CPU_CLOCK);
	int of_plain = open_guaranteed(0, -1), of_flex = open_flexible(0, -1);

	ASSERT_LE(0, of_plain);
	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_plain, 0));
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&flex, 0, -1, of_plain, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, 0, -1, of_flex, 0));
}

TEST_F(group, of_more_than_there_are_registers_is_refused)
{
	struct perf_event_attr more = flexible(BP_SLOTS), sw = software(PERF_COUNT_SW_DUMMY);

	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	ASSERT_LE(0, bp_open_group(&sw, 0, -1, self->e.fd[0], 0));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, self->e.fd[0], 0));
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
	close(self->e.fd[2]);
	EXPECT_LE(0, bp_open_group(&more, 0, -1, self->e.fd[0], 0));
}

TEST_F(group, of_more_than_there_are_registers_is_refused_under_a_software_event)
{
	struct perf_event_attr more = flexible(BP_SLOTS), sw = software(PERF_COUNT_SW_CPU_CLOCK);
	int leader;

	sw.disabled = 1;
	leader = bp_open(&sw, 0, -1);
	ASSERT_LE(0, leader);
	for (int i = 0; i < BP_SLOTS; i++)
		add(_metadata, &self->e, flexible(i), 0, -1, leader);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, leader, 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	EXPECT_EQ(0, bp_enable(leader));
	store_words(0, BP_SLOTS, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
}

/* The members of a group are scheduled at each turn, all at a time. */
TEST_F(group, of_more_than_32_events_is_refused)
{
	struct perf_event_attr more = flexible(1), sw = software(PERF_COUNT_SW_DUMMY);
	int of_flex = open_flexible(0, -1), of_sw = bp_open(&sw, 0, -1);

	ASSERT_LE(0, of_flex);
	ASSERT_LE(0, of_sw);
	for (int i = 1; i < 32; i++) {
		ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_flex, 0));
		ASSERT_LE(0, bp_open_group(&sw, 0, -1, of_sw, 0));
	}
	EXPECT_EQ(-EINVAL, bp_open_group(&sw, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, of_flex, 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&more, 0, -1, of_sw, 0));
	EXPECT_LE(0, bp_open_group(&sw, 0, -1, of_sw, 0));
}

/* Both kinds of refusal on a CPU, where groups are others' business. */
TEST_F(group, of_a_cpu_keeps_to_the_same_rules)
{
	struct perf_event_attr plain = guaranteed(1), more = flexible(BP_SLOTS);

	BP_NEED_ROOT();
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, -1, cpu);
	EXPECT_EQ(-EINVAL, bp_open_group(&more, -1, cpu, self->e.fd[0], 0));
	EXPECT_EQ(-EINVAL, bp_open_group(&plain, -1, cpu, self->e.fd[0], 0));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpu));
}

/* Times are read one after the other, and a machine may stand still in between. */
static void expect_same_time(struct __test_metadata *_metadata, int a, int b)
{
	struct bp_reading before, between, after;

	read_event(_metadata, a, &before);
	read_event(_metadata, b, &between);
	read_event(_metadata, a, &after);
	EXPECT_LE(before.running * 0.98, between.running);
	EXPECT_LE(between.running * 0.98, after.running);
	EXPECT_LT(0, before.running);
}

/*
 * Members of a group run together, so they all count the same, but for one hit
 * where a turn ends among them.
 */
static void expect_whole(struct __test_metadata *_metadata, struct events *e, int first, int nr)
{
	double ends = enabled(e, first) / TURN_NS;

	for (int i = first + 1; i < first + nr; i++) {
		expect_same_time(_metadata, e->fd[first], e->fd[i]);
		EXPECT_TRUE(within(counted(e, i), counted(e, first), 5, ends)) {
			TH_LOG("events %d and %d are of one group", first, i);
			show(_metadata, e);
		}
	}
}

/* Two of two are all that fits into four registers, of three groups. */
TEST_F(group, of_two_take_turns_as_a_whole)
{
	struct load load = { .nr = 6 };
	struct events *e = &self->e;

	for (int i = 0; i < 6; i += 2)
		add_group(_metadata, e, flexible, i, 2, 0, -1);
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 60);
	for (int i = 0; i < 6; i += 2)
		expect_whole(_metadata, e, i, 2);
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
}

TEST_F(group, of_four_take_turns_as_a_whole)
{
	struct load load = { .nr = 12 };
	struct events *e = &self->e;

	for (int i = 0; i < 12; i += BP_SLOTS)
		add_group(_metadata, e, flexible, i, BP_SLOTS, 0, -1);
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 60);
	for (int i = 0; i < 12; i += BP_SLOTS)
		expect_whole(_metadata, e, i, BP_SLOTS);
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
}

TEST_F(group, of_two_and_of_four_of_a_cpu_take_turns_as_a_whole)
{
	struct load load = { .nr = 12 };
	struct events *e = &self->e;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, e, flexible, 0, BP_SLOTS, -1, cpu);
	add_group(_metadata, e, flexible, 4, 2, -1, cpu);
	add_group(_metadata, e, flexible, 6, BP_SLOTS, -1, cpu);
	add_group(_metadata, e, flexible, 10, 2, -1, cpu);
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, BP_SLOTS);
	expect_whole(_metadata, e, 4, 2);
	expect_whole(_metadata, e, 6, BP_SLOTS);
	expect_whole(_metadata, e, 10, 2);
	expect_in_use(_metadata, e, &load, 2, BP_SLOTS);
}

/* Where three are left, one half of a group of two never runs by itself. */
TEST_F(group, is_never_torn_apart)
{
	struct load load = { .nr = BP_SLOTS };
	struct events *e = &self->e;

	hold(_metadata, 1, 0, -1);
	add_group(_metadata, e, flexible, 0, 2, 0, -1);
	add_group(_metadata, e, flexible, 2, 2, 0, -1);
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, 2);
	expect_whole(_metadata, e, 2, 2);
	expect_in_use(_metadata, e, &load, 2, 2);
}

/* Big ones against small ones: the register that is free is not for the small alone. */
TEST_F(group, of_four_is_not_kept_out_by_single_ones)
{
	struct load load = { .nr = 12 };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, 2 * BP_SLOTS, BP_SLOTS, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(group, that_does_not_fit_now_waits_and_holds_up_nobody)
{
	struct events four = { }, plain = { };
	struct load load = { .nr = 8 };

	add_words(_metadata, &plain, guaranteed, 8, 2, 0, -1);
	add_group(_metadata, &four, flexible, 0, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 3, 0, -1);
	expect_turns(_metadata, &self->e, &load);
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
	EXPECT_EQ(0, all_counted(&four));
	close_events(&plain);
	expect_turns(_metadata, &four, &load);
	expect_turns(_metadata, &self->e, &load);
}

/* Who has a register keeps it, if the others would still not be enough. */
TEST_F(group, that_does_not_fit_takes_nothing_from_others)
{
	struct events four = { };
	struct load load = { .nr = 3 };

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	hold(_metadata, 1, 0, -1);
	add_words(_metadata, &self->e, flexible, 0, 3, -1, cpu);
	add_group(_metadata, &four, flexible, 8, BP_SLOTS, 0, -1);
	for (int i = 0; i < 40; i++) {
		usleep(1000);
		go_on_turns(_metadata, &load, &self->e, 2);
		expect_missed_nothing(_metadata, &self->e, load.rounds);
	}
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
}

TEST_F(group, that_is_disabled_takes_no_turn)
{
	struct load load = { .nr = 10 };
	struct events group = { };

	add_disabled(_metadata, &group, flexible(0), 0, -1);
	for (int i = 1; i < BP_SLOTS; i++)
		add(_metadata, &group, flexible(i), 0, -1, group.fd[0]);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 6, 0, -1);
	expect_turns(_metadata, &self->e, &load);
	look(_metadata, &group);
	EXPECT_EQ(0, all_counted(&group));
	EXPECT_EQ(0, bp_enable(group.fd[0]));
	expect_turns(_metadata, &group, &load);
	EXPECT_EQ(0, bp_disable(group.fd[0]));
	begin(_metadata, &group);
	expect_turns(_metadata, &self->e, &load);
	look(_metadata, &group);
	EXPECT_EQ(0, all_counted(&group));
	EXPECT_EQ(0, all_running(&group));
}

/* -------------------------------------------------- groups that software events lead */

FIXTURE(led)
{
	struct events e;
	pid_t pid;
	int cpu;
};

FIXTURE_VARIANT(led)
{
	__u64 config;
	bool of_cpu;
};

FIXTURE_VARIANT_ADD(led, by_dummy) { .config = PERF_COUNT_SW_DUMMY };
FIXTURE_VARIANT_ADD(led, by_cpu_clock) { .config = PERF_COUNT_SW_CPU_CLOCK };
FIXTURE_VARIANT_ADD(led, by_task_clock) { .config = PERF_COUNT_SW_TASK_CLOCK };
FIXTURE_VARIANT_ADD(led, by_dummy_of_cpu) { .config = PERF_COUNT_SW_DUMMY, .of_cpu = true };
FIXTURE_VARIANT_ADD(led, by_cpu_clock_of_cpu) {
	.config = PERF_COUNT_SW_CPU_CLOCK, .of_cpu = true };

FIXTURE_SETUP(led)
{
	if (variant->of_cpu)
		BP_NEED_ROOT();
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	self->pid = variant->of_cpu ? -1 : 0;
	self->cpu = variant->of_cpu ? cpu : -1;
}

FIXTURE_TEARDOWN(led)
{
	tear_down(_metadata);
}

/* Only the breakpoints are added to e: what a leader counts is its own affair. */
static int add_led(struct __test_metadata *_metadata, FIXTURE_DATA(led) *self, __u64 config,
		   int first, int nr)
{
	struct perf_event_attr sw = software(config);
	int leader;

	sw.disabled = 1;
	leader = bp_open(&sw, self->pid, self->cpu);
	EXPECT_LE(0, leader);
	for (int i = first; i < first + nr; i++)
		add(_metadata, &self->e, flexible(i), self->pid, self->cpu, leader);
	EXPECT_EQ(0, bp_enable(leader));
	return leader;
}

/* Nobody has to disable a group before it gets another member. */
TEST_F(led, member_that_joins_a_running_group_counts_at_once)
{
	int leader = add_led(_metadata, self, variant->config, 0, 0);
	struct events plain = { };

	add(_metadata, &self->e, flexible(0), self->pid, self->cpu, leader);
	leader = add_led(_metadata, self, variant->config, 0, 0);
	add(_metadata, &plain, guaranteed(1), self->pid, self->cpu, leader);
	store_words(0, 2, 10);
	expect_missed_nothing(_metadata, &self->e, 10);
	expect_missed_nothing(_metadata, &plain, 10);
}

TEST_F(led, single_breakpoints_take_turns)
{
	struct load load = { .nr = 8 };

	for (int i = 0; i < 8; i++)
		add_led(_metadata, self, variant->config, i, 1);
	expect_turns(_metadata, &self->e, &load);
	go_on_turns(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < 8; i++)
		EXPECT_LT(running(&self->e, i), enabled(&self->e, i));
}

TEST_F(led, groups_take_turns_as_a_whole_with_their_leader)
{
	struct load load = { .nr = 9 };
	int leader[3];

	for (int i = 0; i < 3; i++)
		leader[i] = add_led(_metadata, self, variant->config, 3 * i, 3);
	expect_turns(_metadata, &self->e, &load);
	go_on_turns(_metadata, &load, &self->e, 60);
	for (int i = 0; i < 3; i++) {
		expect_whole(_metadata, &self->e, 3 * i, 3);
		expect_same_time(_metadata, leader[i], self->e.fd[3 * i]);
	}
	expect_in_use(_metadata, &self->e, &load, 3, 3);
}

/* Those that breakpoints lead are by themselves as many as there are registers. */
TEST_F(led, one_is_not_kept_out_by_those_that_breakpoints_lead)
{
	struct load load = { .nr = 12 };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, BP_SLOTS, 1);
	expect_turns(_metadata, &self->e, &load);
	add_group(_metadata, &self->e, flexible, 5, BP_SLOTS, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(led, many_do_not_keep_out_those_that_breakpoints_lead)
{
	struct load load = { .nr = 8 };

	for (int i = 0; i < BP_SLOTS; i++)
		add_led(_metadata, self, variant->config, i, 1);
	add_words(_metadata, &self->e, flexible, BP_SLOTS, 2, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
	add_led(_metadata, self, variant->config, 6, 2);
	expect_turns(_metadata, &self->e, &load);
}

/* They stand in the same queue, but have nothing to wait for. */
TEST_F(led, groups_without_breakpoints_take_no_turns)
{
	struct perf_event_attr sw = software(variant->config);
	struct load load = { .nr = 2 };

	for (int i = 0; i < 10; i++)
		ASSERT_LE(0, bp_open(&sw, self->pid, self->cpu));
	hold(_metadata, 3, self->pid, self->cpu);
	for (int i = 0; i < 2; i++)
		add_led(_metadata, self, variant->config, i, 1);
	expect_even(_metadata, &load, &self->e);
}

/* Leaders of different kinds: each belongs to a PMU of its own. */
TEST_F(led, turns_are_taken_among_different_leaders)
{
	struct load load = { .nr = 10 };

	add_led(_metadata, self, PERF_COUNT_SW_DUMMY, 0, 2);
	add_led(_metadata, self, PERF_COUNT_SW_CPU_CLOCK, 2, 2);
	add_led(_metadata, self, PERF_COUNT_SW_TASK_CLOCK, 4, 2);
	add_led(_metadata, self, variant->config, 6, 2);
	add_words(_metadata, &self->e, flexible, 8, 2, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(led, one_register_is_enough)
{
	struct load load = { .nr = 4 };

	hold(_metadata, BP_SLOTS - 1, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, 0, 1);
	add_words(_metadata, &self->e, flexible, 1, 1, self->pid, self->cpu);
	add_led(_metadata, self, variant->config, 2, 1);
	add_words(_metadata, &self->e, flexible, 3, 1, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
	go_on_turns(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, 1, 1);
}

/* A software event that a flexible breakpoint leads runs when its leader does. */
TEST_F(led, software_member_runs_with_its_flexible_leader)
{
	struct load load = { .nr = 6 };
	struct events sw = { };

	for (int i = 0; i < 6; i++) {
		add_disabled(_metadata, &self->e, flexible(i), self->pid, self->cpu);
		add(_metadata, &sw, software(variant->config), self->pid, self->cpu,
		    self->e.fd[i]);
		EXPECT_EQ(0, bp_enable(self->e.fd[i]));
	}
	expect_turns(_metadata, &self->e, &load);
	for (int i = 0; i < 6; i++)
		expect_same_time(_metadata, self->e.fd[i], sw.fd[i]);
	go_on_turns(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
}

/* ======================================================================== turns */

FIXTURE(turns)
{
	struct events e;
	pid_t pid;
	int cpu;
};

FIXTURE_VARIANT(turns)
{
	bool of_cpu;
	bool of_task;
};

FIXTURE_VARIANT_ADD(turns, of_a_task) { .of_task = true };
FIXTURE_VARIANT_ADD(turns, of_a_cpu) { .of_cpu = true };
FIXTURE_VARIANT_ADD(turns, of_a_task_on_a_cpu) { .of_task = true, .of_cpu = true };

FIXTURE_SETUP(turns)
{
	if (!variant->of_task)
		BP_NEED_ROOT();
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	self->pid = variant->of_task ? 0 : -1;
	self->cpu = variant->of_cpu ? cpu : -1;
}

FIXTURE_TEARDOWN(turns)
{
	tear_down(_metadata);
}

/* As many as there are registers need no turns. */
TEST_F(turns, first_four_run_all_the_time)
{
	struct load load = { .nr = BP_SLOTS };

	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	go_on_for(_metadata, &load, &self->e, 10 * TURN_NS);
	expect_missed_nothing(_metadata, &self->e, load.rounds);
}

TEST_F(turns, fifth_has_all_of_them_take_turns)
{
	struct load load = { .nr = 5 };

	add_words(_metadata, &self->e, flexible, 0, 5, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
	go_on_turns(_metadata, &load, &self->e, 40);
	expect_in_use(_metadata, &self->e, &load, BP_SLOTS, BP_SLOTS);
	for (int i = 0; i < 5; i++)
		EXPECT_LT(running(&self->e, i), enabled(&self->e, i));
}

TEST_F(turns, are_not_those_of_guaranteed_ones)
{
	struct load load = { .nr = 2 };

	hold(_metadata, 3, self->pid, self->cpu);
	add_words(_metadata, &self->e, flexible, 0, 2, self->pid, self->cpu);
	expect_even(_metadata, &load, &self->e);
}

/* When one of five is closed, or disabled, the others need no turns any more. */
TEST_F(turns, end_when_there_are_registers_for_all)
{
	struct load load = { .nr = 5 };
	struct events *e = &self->e;

	add_words(_metadata, e, flexible, 0, 5, self->pid, self->cpu);
	expect_turns(_metadata, e, &load);
	EXPECT_EQ(0, bp_disable(e->fd[4]));
	e->nr = 4;
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
	EXPECT_EQ(0, bp_enable(e->fd[4]));
	e->nr = 5;
	expect_turns(_metadata, e, &load);
	close(e->fd[4]);
	e->nr = 4;
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
}

/*
 * How many of the scaled counts are off by more than 5 % and one hit for each
 * turn. At the end of patience it is five times the error that the unsteadiness
 * of the load makes for, if that is more.
 */
static int wrong_estimates(struct events *e, struct load *load, bool patient)
{
	int nr = 0;

	for (int i = 0; i < e->nr; i++) {
		double stretches = (double)running(e, i) / STRETCH_NS;
		double noise = 5 * 5 * unsteadiness(&load->steady) / stretches;
		double limit = 0.05 + stretches / counted(e, i);
		double off = (double)counted(e, i) * enabled(e, i) / running(e, i) /
			     load->rounds - 1;

		if (!running(e, i) || !counted(e, i))
			nr++;
		else if (off * off > limit * limit)
			nr += patient || off * off > noise;
	}
	return nr;
}

/*
 * The load stores to each word as often as to any other, so what each count
 * makes after scaling is known: but it is an estimate. The machine may have been
 * slow in somebody's turns, by far where others use it too. Over many turns that
 * evens out, and what is scaled wrongly does not: so go on until all estimates
 * are right at once. If that takes too long, the load tells how unsteady it was,
 * and a few may have had the turns in which the machine stood still. When it does
 * that all the time there is nothing to be said about single ones.
 *
 * All together they are right in any case: whenever the machine is slow, it is so
 * for as many events as at any other time.
 */
static void expect_estimates(struct __test_metadata *_metadata, struct events *e, int nr)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), want = 10 * nr * TURN_NS, limit;
	struct load load = { .nr = nr };
	bool patient;

	begin(_metadata, e);
	do {
		go_on_for(_metadata, &load, e, want);
		look(_metadata, e);
		want = enabled(e, 0) + nr * TURN_NS;
		limit = unsteadiness(&load.steady) < 0.5 ? ESTIMATE_NS : PATIENCE_NS;
		patient = bp_now(CLOCK_MONOTONIC) - start < limit;
	} while (patient && wrong_estimates(e, &load, true));

	if (limit == ESTIMATE_NS) {
		EXPECT_GE(patient ? 0 : nr / 8, wrong_estimates(e, &load, patient)) {
			TH_LOG("%llu rounds, unsteadiness %f",
			       (unsigned long long)load.rounds, unsteadiness(&load.steady));
			show(_metadata, e);
		}
	}
	EXPECT_EQ(nr, served(e));
	/* So many hits are so much time in a register, and no register lies idle. */
	expect_in_use(_metadata, e, &load, BP_SLOTS, BP_SLOTS);
	EXPECT_TRUE(within((double)nr * all_running(e) / all_enabled(e), BP_SLOTS, 5, 0)) {
		show(_metadata, e);
	}
}

TEST_F(turns, scaled_counts_of_sixteen_come_close_to_the_stores)
{
	add_words(_metadata, &self->e, flexible, 0, 16, self->pid, self->cpu);
	expect_estimates(_metadata, &self->e, 16);
}

TEST_F(turns, scaled_counts_of_sixtyfour_come_close_to_the_stores)
{
	add_words(_metadata, &self->e, flexible, 0, 64, self->pid, self->cpu);
	expect_estimates(_metadata, &self->e, 64);
}

/* From the beginning of the first one, and not only on the average. */
TEST_F(turns, times_never_add_up_to_more_than_there_are_registers)
{
	struct load load = { .nr = 9 };
	struct bp_reading first;

	add_words(_metadata, &self->e, flexible, 0, 9, self->pid, self->cpu);
	for (int i = 0; i < 100; i++) {
		__u64 sum = 0;

		go_on(&load);
		look(_metadata, &self->e);
		for (int k = 0; k < 9; k++)
			sum += self->e.to[k].running;
		read_event(_metadata, self->e.fd[0], &first);
		EXPECT_LE(sum, BP_SLOTS * first.enabled);
	}
}

TEST_F(turns, guaranteed_ones_leave_fewer_registers)
{
	struct load load = { .nr = 6 };
	struct events *e = &self->e;

	add_words(_metadata, e, flexible, 0, 6, self->pid, self->cpu);
	for (int left = BP_SLOTS - 1; left; left--) {
		struct perf_event_attr attr = guaranteed(20 + left);

		/* It holds its register whether it is enabled or not. */
		attr.disabled = left & 1;
		ASSERT_LE(0, bp_open(&attr, self->pid, self->cpu));
		expect_turns(_metadata, e, &load);
		go_on_turns(_metadata, &load, e, 40);
		expect_in_use(_metadata, e, &load, left, left);
	}
}

TEST_F(turns, registers_of_guaranteed_ones_come_back)
{
	struct events *e = &self->e, plain = { };
	struct load load = { .nr = BP_SLOTS };

	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS - 1, self->pid, self->cpu);
	add_words(_metadata, e, flexible, 0, BP_SLOTS, self->pid, self->cpu);
	expect_turns(_metadata, e, &load);
	close_events(&plain);
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 20);
	expect_missed_nothing(_metadata, e, load.rounds);
}

TEST_F(turns, disabled_ones_take_none)
{
	struct events out = { }, *e = &self->e;
	struct load load = { .nr = 12 };

	add_words(_metadata, &out, flexible, 0, 6, self->pid, self->cpu);
	add_words(_metadata, e, flexible, 6, 6, self->pid, self->cpu);
	expect_turns(_metadata, &out, &load);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0, bp_disable(out.fd[i]));
	begin(_metadata, &out);
	expect_turns(_metadata, e, &load);
	look(_metadata, &out);
	EXPECT_EQ(0, all_counted(&out));
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(0, enabled(&out, i));
		EXPECT_EQ(0, running(&out, i));
		EXPECT_EQ(0, bp_enable(out.fd[i]));
	}
	expect_turns(_metadata, &out, &load);
}

TEST_F(turns, single_waiting_one_gets_its_turn_when_enabled)
{
	struct events late = { }, *e = &self->e;
	struct load load = { .nr = 9 };

	add_words(_metadata, e, flexible, 0, 8, self->pid, self->cpu);
	add_disabled(_metadata, &late, flexible(8), self->pid, self->cpu);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_enable(late.fd[0]));
		ASSERT_TRUE(all_get_a_turn(_metadata, &late, &load));
		EXPECT_EQ(0, bp_disable(late.fd[0]));
		ASSERT_TRUE(all_get_a_turn(_metadata, e, &load));
	}
}

TEST_F(turns, reset_clears_the_count_and_leaves_the_turns)
{
	struct load load = { .nr = 6 };

	add_words(_metadata, &self->e, flexible, 0, 6, self->pid, self->cpu);
	expect_turns(_metadata, &self->e, &load);
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(0, bp_ioctl(self->e.fd[i], PERF_EVENT_IOC_RESET, 0));
		read_event(_metadata, self->e.fd[i], &self->e.to[i]);
		EXPECT_EQ(0, self->e.to[i].count);
		self->e.from[i] = (struct bp_reading){ };
	}
	expect_turns(_metadata, &self->e, &load);
}

/* ------------------------------------------------------- turns of other kinds */

FIXTURE(flexible)
{
	struct events e;
};

FIXTURE_SETUP(flexible)
{
	set_up(_metadata);
}

FIXTURE_TEARDOWN(flexible)
{
	tear_down(_metadata);
}

static void store_and_execute(struct load *load)
{
	bp_func();
	store_words(load->first, load->nr, 1);
	load->rounds++;
}

TEST_F(flexible, instruction_and_data_breakpoints_take_turns)
{
	struct load load = { .nr = 5, .go_on = store_and_execute };
	struct perf_event_attr x = flexible(0);

	x.bp_type = HW_BREAKPOINT_X;
	x.bp_addr = (unsigned long)bp_func_insn;
	x.bp_len = sizeof(long);
	for (int i = 0; i < 5; i++) {
		add(_metadata, &self->e, x, 0, -1, -1);
		add(_metadata, &self->e, flexible(i), 0, -1, -1);
	}
	expect_turns(_metadata, &self->e, &load);
}

/* Those that may run anywhere and those of this CPU stand in one line. */
TEST_F(flexible, bound_and_unbound_ones_of_a_task_take_turns)
{
	struct load load = { .nr = 10 };

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, flexible, 0, 5, 0, -1);
	add_words(_metadata, &self->e, flexible, 5, 5, 0, cpu);
	expect_turns(_metadata, &self->e, &load);
	hold(_metadata, BP_SLOTS - 1, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(flexible, turns_go_on_wherever_the_task_is)
{
	struct load load = { .nr = 8 };

	BP_NEED_CPUS(cpus, 2);
	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	for (int i = 0; i < 8; i++) {
		ASSERT_EQ(0, bp_pin(cpus.cpu[i % cpus.nr]));
		ASSERT_TRUE(all_get_a_turn(_metadata, &self->e, &load));
	}
}

/* Its moves come more often than turns end. */
TEST_F(flexible, task_that_moves_all_the_time_gives_all_a_turn)
{
	struct load load = { .nr = 8, .go_on = move_often };

	BP_NEED_CPUS(cpus, 2);
	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(flexible, task_that_sleeps_often_gives_all_a_turn)
{
	struct load load = { .nr = 8, .go_on = sleep_often };

	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

/* Time that a task sleeps is none in which its events are enabled. */
TEST_F(flexible, times_stand_still_while_the_task_sleeps)
{
	struct load there = { .nr = 8 };
	struct events *e = &self->e;
	struct bp_worker other;

	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, e, flexible, 0, 8, other.pid, -1);
	EXPECT_EQ(0, bp_do(&other, 20));
	bp_wait_for_state(other.pid, 'S');
	begin(_metadata, e);
	usleep(5000 * TURN_MS);
	look(_metadata, e);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(0, counted(e, i));
		EXPECT_EQ(0, enabled(e, i));
		EXPECT_EQ(0, running(e, i));
	}
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(flexible, guaranteed_ones_of_another_task_cost_nothing)
{
	struct load load = { .nr = BP_SLOTS }, there = { .first = 20, .nr = BP_SLOTS };
	struct events plain = { };
	struct bp_worker other;

	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS, other.pid, -1);
	add_words(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	for (int i = 0; i < 20; i++) {
		go_on(&load);
		EXPECT_EQ(0, bp_do(&other, 5));
	}
	expect_missed_nothing(_metadata, &self->e, load.rounds);
	expect_missed_nothing(_metadata, &plain, 100);
	EXPECT_EQ(0, bp_stop(&other));
}

/* Two tasks on one CPU, each with more than there are registers. */
TEST_F(flexible, tasks_that_share_a_cpu_each_have_their_turns)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_two };
	struct bp_worker w[2];

	ASSERT_EQ(0, bp_pin(cpu));
	load.worker = w;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, &there));
		add_words(_metadata, &self->e, flexible, 0, 8, w[i].pid, -1);
	}
	expect_turns(_metadata, &self->e, &load);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

TEST_F(flexible, threads_each_have_their_turns)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_two };
	struct bp_worker w[2];

	load.worker = w;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, bp_start_thread(&w[i], worker, &there));
		add_words(_metadata, &self->e, flexible, 0, 8, w[i].pid, -1);
	}
	expect_turns(_metadata, &self->e, &load);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

/* --------------------------------------------- those of a CPU against those of a task */

FIXTURE(share)
{
	struct events e;
};

FIXTURE_VARIANT(share)
{
	int of_cpu;
	int of_task;
	/* Guaranteed ones of the task. */
	int guaranteed;
};

FIXTURE_VARIANT_ADD(share, one_and_one) { 1, 1, 3 };
FIXTURE_VARIANT_ADD(share, two_of_the_cpu_and_one) { 2, 1, 3 };
FIXTURE_VARIANT_ADD(share, one_of_the_cpu_and_two) { 1, 2, 3 };
FIXTURE_VARIANT_ADD(share, three_of_the_cpu_and_five) { 3, 5, 3 };
FIXTURE_VARIANT_ADD(share, eight_of_the_cpu_and_one) { 8, 1, 3 };
FIXTURE_VARIANT_ADD(share, one_of_the_cpu_and_eight) { 1, 8, 3 };
FIXTURE_VARIANT_ADD(share, three_and_three_on_two_registers) { 3, 3, 2 };
FIXTURE_VARIANT_ADD(share, four_of_the_cpu_and_one_on_all_registers) { 4, 1, 0 };
FIXTURE_VARIANT_ADD(share, six_and_six_on_all_registers) { 6, 6, 0 };

FIXTURE_SETUP(share)
{
	BP_NEED_ROOT();
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
	hold(_metadata, variant->guaranteed, 0, -1);
}

FIXTURE_TEARDOWN(share)
{
	tear_down(_metadata);
}

TEST_F(share, every_one_gets_turns_when_the_cpu_came_first)
{
	struct load load = { .nr = variant->of_cpu + variant->of_task };

	add_words(_metadata, &self->e, flexible, 0, variant->of_cpu, -1, cpu);
	add_words(_metadata, &self->e, flexible, variant->of_cpu, variant->of_task, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

TEST_F(share, every_one_gets_turns_when_the_task_came_first)
{
	struct load load = { .nr = variant->of_cpu + variant->of_task };

	add_words(_metadata, &self->e, flexible, 0, variant->of_task, 0, -1);
	add_words(_metadata, &self->e, flexible, variant->of_task, variant->of_cpu, -1, cpu);
	expect_turns(_metadata, &self->e, &load);
}

/*
 * Nobody is promised as much as the others, but a crumb now and then is not
 * turns: an eighth of an even share of the hits is far below what any order of
 * turns gives in the end.
 */
TEST_F(share, nobody_lives_on_crumbs)
{
	int nr = variant->of_cpu + variant->of_task, left = BP_SLOTS - variant->guaranteed;
	__u64 start = bp_now(CLOCK_MONOTONIC), least;
	struct load load = { .nr = nr };
	struct events *e = &self->e;

	add_words(_metadata, e, flexible, 0, variant->of_cpu, -1, cpu);
	add_words(_metadata, e, flexible, variant->of_cpu, variant->of_task, 0, -1);
	begin(_metadata, e);
	do {
		go_on_for(_metadata, &load, e, enabled(e, 0) + 10 * nr * TURN_NS);
		look(_metadata, e);
		least = ~0ULL;
		for (int i = 0; i < nr; i++)
			least = counted(e, i) < least ? counted(e, i) : least;
	} while (8 * nr * least < left * load.rounds &&
		 bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	EXPECT_LE(left * load.rounds, 8 * nr * least) {
		show(_metadata, e);
	}
	expect_in_use(_metadata, e, &load, left, left);
}

/* The task comes and goes: its turns are not lost in between. */
TEST_F(share, every_one_gets_turns_when_the_task_sleeps_often)
{
	struct load load = { .nr = variant->of_cpu + variant->of_task, .go_on = sleep_often };

	add_words(_metadata, &self->e, flexible, 0, variant->of_cpu, -1, cpu);
	add_words(_metadata, &self->e, flexible, variant->of_cpu, variant->of_task, 0, -1);
	expect_turns(_metadata, &self->e, &load);
}

/* While other tasks run, those of the CPU have all its registers. */
TEST_F(flexible, those_of_a_cpu_run_on_when_the_task_is_away)
{
	struct load load = { .nr = BP_SLOTS }, there = { .first = 20, .nr = BP_SLOTS - 1 };
	struct events *e = &self->e, plain = { };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &plain, guaranteed, 20, BP_SLOTS - 1, other.pid, -1);
	add_words(_metadata, e, flexible, 0, BP_SLOTS, -1, cpu);
	for (int i = 1; i <= 10; i++) {
		EXPECT_EQ(0, bp_do(&other, 5));
		expect_missed_nothing(_metadata, &plain, 5 * i);
		bp_wait_for_state(other.pid, 'S');
		/* They are back by the end of the first turn without it. */
		ASSERT_TRUE(all_get_a_turn(_metadata, e, &load));
		go_on_turns(_metadata, &load, e, 3);
		expect_missed_nothing(_metadata, e, load.rounds);
	}
	EXPECT_EQ(0, bp_stop(&other));
}

/* =========================================== guaranteed ones take what they need */

FIXTURE(at_once)
{
	/* The flexible ones that hold all registers. */
	struct events flex;
	struct events plain;
	struct load load;
};

FIXTURE_SETUP(at_once)
{
	set_up(_metadata);
	ASSERT_EQ(0, bp_pin(cpu));
}

FIXTURE_TEARDOWN(at_once)
{
	tear_down(_metadata);
}

/* When each of them got one, there is none that they do not use. */
static void wait_full(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self)
{
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->flex, &self->load));
}

/* So many that all registers are in use at each moment. */
static void fill_with_flexible(struct __test_metadata *_metadata, FIXTURE_DATA(at_once) *self,
			       int nr, pid_t pid, int on)
{
	self->load.nr = nr;
	add_words(_metadata, &self->flex, flexible, 0, nr, pid, on);
	wait_full(_metadata, self);
}

/*
 * Here the CPU's have all registers, there the task's guaranteed ones need three
 * of them, from the first instruction on. The task hits the CPU's as well.
 */
static void expect_switches_to_miss_nothing(struct __test_metadata *_metadata,
					    FIXTURE_DATA(at_once) *self,
					    struct bp_worker *other)
{
	const int switches = 60;

	for (int i = 0; i < switches; i++) {
		wait_full(_metadata, self);
		EXPECT_EQ(0, bp_do(other, 2));
	}
	expect_missed_nothing(_metadata, &self->plain, 2 * switches);
}

TEST_F(at_once, of_the_next_task_miss_nothing)
{
	struct load there = { .nr = 7 };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS, 3, other.pid, -1);
	expect_switches_to_miss_nothing(_metadata, self, &other);
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(at_once, of_the_next_task_miss_nothing_in_a_group)
{
	struct load there = { .nr = 7 };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	add_group(_metadata, &self->plain, guaranteed, BP_SLOTS, 3, other.pid, -1);
	expect_switches_to_miss_nothing(_metadata, self, &other);
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(at_once, of_the_next_task_miss_nothing_under_a_software_event)
{
	static const __u64 config[] = { PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_CPU_CLOCK,
					PERF_COUNT_SW_CONTEXT_SWITCHES };
	struct load there = { .nr = 7 };

	BP_NEED_ROOT();
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	for (unsigned int k = 0; k < ARRAY_SIZE(config); k++) {
		struct perf_event_attr sw = software(config[k]);
		struct bp_worker other;
		int leader;

		sw.disabled = 1;
		ASSERT_EQ(0, bp_start(&other, worker, &there));
		leader = bp_open(&sw, other.pid, -1);
		ASSERT_LE(0, leader);
		for (int i = 0; i < 3; i++)
			add(_metadata, &self->plain, guaranteed(BP_SLOTS + i), other.pid, -1,
			    leader);
		EXPECT_EQ(0, bp_enable(leader));
		expect_switches_to_miss_nothing(_metadata, self, &other);
		EXPECT_EQ(0, bp_stop(&other));
		close_events(&self->plain);
		close(leader);
	}
}

TEST_F(at_once, of_the_next_task_miss_nothing_when_bound_or_pinned)
{
	struct perf_event_attr pinned = guaranteed(6);
	struct load there = { .nr = 7 };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS, 1, other.pid, cpu);
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS + 1, 1, other.pid, -1);
	pinned.pinned = 1;
	add(_metadata, &self->plain, pinned, other.pid, -1, -1);
	expect_switches_to_miss_nothing(_metadata, self, &other);
	EXPECT_EQ(0, bp_stop(&other));
}

/*
 * The task's flexible ones come before its guaranteed ones, which stand in the
 * line behind them, and may be given a register that these need.
 */
TEST_F(at_once, of_the_next_task_miss_nothing_behind_its_flexible_ones)
{
	struct load there = { .nr = 13 };
	struct bp_worker other;
	struct events more = { };

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	fill_with_flexible(_metadata, self, BP_SLOTS, -1, cpu);
	add_words(_metadata, &more, flexible, 7, 6, other.pid, -1);
	add_words(_metadata, &self->plain, guaranteed, BP_SLOTS, 3, other.pid, -1);
	expect_switches_to_miss_nothing(_metadata, self, &other);
	look(_metadata, &more);
	EXPECT_LT(0, all_counted(&more));
	EXPECT_EQ(0, bp_stop(&other));
}

/* Both tasks have flexible ones too, and the CPU as well. */
TEST_F(at_once, of_two_tasks_miss_nothing_beside_flexible_ones_everywhere)
{
	struct load there = { .first = 12, .nr = 12 };
	struct events mine = { }, more = { };
	struct bp_worker other;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_start(&other, worker, &there));
	add_words(_metadata, &more, flexible, 24, 5, -1, cpu);
	add_words(_metadata, &more, flexible, 0, 6, 0, -1);
	add_words(_metadata, &more, flexible, 12, 6, other.pid, -1);
	add_words(_metadata, &mine, guaranteed, 6, 3, 0, -1);
	add_words(_metadata, &self->plain, guaranteed, 18, 3, other.pid, -1);
	for (int i = 1; i <= 120; i++) {
		store_words(0, 12, 2);
		store_words(24, 5, 1);
		EXPECT_EQ(0, bp_do(&other, 2));
		if (i % 20)
			continue;
		expect_missed_nothing(_metadata, &mine, 2 * i);
		expect_missed_nothing(_metadata, &self->plain, 2 * i);
	}
	look(_metadata, &more);
	EXPECT_EQ(0, bp_stop(&other));
}

TEST_F(at_once, enabled_one_misses_nothing)
{
	fill_with_flexible(_metadata, self, 8, 0, -1);
	add_disabled(_metadata, &self->plain, guaranteed(20), 0, -1);
	for (int i = 1; i <= 30; i++) {
		store_words(20, 1, 1);
		EXPECT_EQ(0, bp_enable(self->plain.fd[0]));
		store_words(20, 1, 3);
		EXPECT_EQ(0, bp_disable(self->plain.fd[0]));
		expect_missed_nothing(_metadata, &self->plain, 3 * i);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, enabled_one_misses_nothing_beside_those_of_the_cpu)
{
	BP_NEED_ROOT();
	fill_with_flexible(_metadata, self, 8, -1, cpu);
	add_disabled(_metadata, &self->plain, guaranteed(20), 0, -1);
	for (int i = 1; i <= 30; i++) {
		EXPECT_EQ(0, bp_enable(self->plain.fd[0]));
		store_words(20, 1, 3);
		EXPECT_EQ(0, bp_disable(self->plain.fd[0]));
		expect_missed_nothing(_metadata, &self->plain, 3 * i);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, enabled_group_misses_nothing)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	int leader;

	fill_with_flexible(_metadata, self, 8, 0, -1);
	sw.disabled = 1;
	leader = bp_open(&sw, 0, -1);
	ASSERT_LE(0, leader);
	for (int i = 0; i < 3; i++)
		add(_metadata, &self->plain, guaranteed(20 + i), 0, -1, leader);
	for (int i = 1; i <= 30; i++) {
		EXPECT_EQ(0, bp_enable(leader));
		store_words(20, 3, 3);
		EXPECT_EQ(0, bp_disable(leader));
		expect_missed_nothing(_metadata, &self->plain, 3 * i);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, those_that_prctl_enables_miss_nothing)
{
	fill_with_flexible(_metadata, self, 8, 0, -1);
	add_words(_metadata, &self->plain, guaranteed, 20, 3, 0, -1);
	for (int i = 1; i <= 20; i++) {
		EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
		store_words(0, 24, 1);
		EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0));
		store_words(20, 3, 2);
		expect_missed_nothing(_metadata, &self->plain, 2 * i);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, opened_one_misses_nothing)
{
	fill_with_flexible(_metadata, self, 8, 0, -1);
	for (int i = 0; i < 30; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1 + i % 3, 0, -1);
		store_words(20, 1 + i % 3, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, opened_one_of_the_cpu_misses_nothing)
{
	BP_NEED_ROOT();
	fill_with_flexible(_metadata, self, 8, 0, -1);
	for (int i = 0; i < 30; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1 + i % 3, -1, cpu);
		store_words(20, 1 + i % 3, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, opened_one_misses_nothing_beside_those_of_the_cpu)
{
	BP_NEED_ROOT();
	fill_with_flexible(_metadata, self, 8, -1, cpu);
	for (int i = 0; i < 30; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1 + i % 3, i & 1 ? 0 : -1,
			  i & 1 ? -1 : cpu);
		store_words(20, 1 + i % 3, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

TEST_F(at_once, opened_group_of_three_misses_nothing)
{
	fill_with_flexible(_metadata, self, 8, 0, -1);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 3; k++)
			add(_metadata, &self->plain, guaranteed(20 + k), 0, -1,
			    k ? self->plain.fd[0] : -1);
		store_words(20, 3, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

/* A group of four flexible ones holds all registers: it has to go as a whole. */
TEST_F(at_once, opened_one_takes_a_register_from_a_group)
{
	for (int i = 0; i < 8; i += BP_SLOTS)
		add_group(_metadata, &self->flex, flexible, i, BP_SLOTS, 0, -1);
	self->load.nr = 8;
	for (int i = 0; i < 20; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1, 0, -1);
		begin(_metadata, &self->flex);
		store_words(0, 8, 5);
		store_words(20, 1, 5);
		expect_missed_nothing(_metadata, &self->plain, 5);
		look(_metadata, &self->flex);
		EXPECT_EQ(0, all_counted(&self->flex));
		close_events(&self->plain);
		wait_full(_metadata, self);
	}
}

/* From another CPU, for a task that runs and whose registers are all in use. */
TEST_F(at_once, opened_one_of_a_running_task_misses_nothing)
{
	volatile __u64 *page = bp_map_shared();
	struct load away = { .go_on = let_others };
	pid_t pid;

	BP_NEED_CPUS(cpus, 2);
	ASSERT_NE(NULL, page);
	ASSERT_EQ(0, bp_pin(cpus.cpu[1]));
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		while (!page[0]) {
			store_words(0, 8, 1);
			/* Told to store to the other words, and says when it is done. */
			if (page[2] != page[1]) {
				store_words(20, 3, 7);
				page[2] = page[1];
			}
		}
		_exit(0);
	}
	ASSERT_EQ(0, bp_pin(cpus.cpu[0]));
	add_words(_metadata, &self->flex, flexible, 0, 8, pid, -1);
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->flex, &away));
	for (int i = 0; i < 15; i++) {
		add_words(_metadata, &self->plain, guaranteed, 20, 1 + i % 3, pid, -1);
		page[1]++;
		while (page[2] != page[1])
			usleep(500);
		look(_metadata, &self->plain);
		for (int k = 0; k < self->plain.nr; k++)
			EXPECT_EQ(7, counted(&self->plain, k));
		close_events(&self->plain);
	}
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->flex, &away));
	page[0] = 1;
	EXPECT_EQ(0, bp_wait(pid));
}

/*
 * The new image is this program again: main() sees the request. The page is
 * where it was, and so are the breakpoints.
 */
static int exec_main(int rounds)
{
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	if (!mem)
		return 1;
	store_words(0, 24, rounds);
	return 0;
}

TEST_F(at_once, those_that_exec_enables_miss_nothing)
{
	struct perf_event_attr attr;
	int gate[2];
	pid_t pid;
	char c;

	for (int round = 1; round <= 5; round++) {
		ASSERT_EQ(0, pipe(gate));
		pid = bp_fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			char times[16];

			close(gate[1]);
			if (read(gate[0], &c, 1) != 1)
				_exit(1);
			store_words(0, 24, 5);
			snprintf(times, sizeof(times), "%d", 10 * round);
			execl("/proc/self/exe", "perf_flexible", "--store", times, NULL);
			_exit(2);
		}
		add_words(_metadata, &self->flex, flexible, 0, 8, pid, -1);
		for (int i = 0; i < 3; i++) {
			attr = guaranteed(20 + i);
			attr.disabled = 1;
			attr.enable_on_exec = 1;
			add(_metadata, &self->plain, attr, pid, -1, -1);
		}
		ASSERT_EQ(1, write(gate[1], "x", 1));
		EXPECT_EQ(0, bp_wait(pid));
		expect_missed_nothing(_metadata, &self->plain, 10 * round);
		look(_metadata, &self->flex);
		EXPECT_LT(0, all_counted(&self->flex));
		close_events(&self->plain);
		close_events(&self->flex);
		close(gate[0]);
		close(gate[1]);
	}
}

/* The other way round: flexible ones may be enabled on exec as well. */
TEST_F(flexible, exec_enables_them)
{
	struct perf_event_attr attr;
	int gate[2];
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(gate));
	pid = bp_fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(gate[1]);
		if (read(gate[0], &c, 1) != 1)
			_exit(1);
		store_words(0, 8, 50);
		execl("/proc/self/exe", "perf_flexible", "--store", "20", NULL);
		_exit(2);
	}
	for (int i = 0; i < BP_SLOTS; i++) {
		attr = flexible(i);
		attr.disabled = 1;
		attr.enable_on_exec = 1;
		add(_metadata, &self->e, attr, pid, -1, -1);
	}
	ASSERT_EQ(1, write(gate[1], "x", 1));
	EXPECT_EQ(0, bp_wait(pid));
	expect_missed_nothing(_metadata, &self->e, 20);
}

/* A member that waits for a turn is disabled: what is left of the group waits for nothing. */
TEST_F(flexible, group_whose_breakpoint_is_disabled_need_not_wait)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_PAGE_FAULTS);
	struct load load = { .nr = 8 };
	int leader[8], group;

	for (int i = 0; i < 8; i++) {
		leader[i] = bp_open(&sw, 0, -1);
		ASSERT_LE(0, leader[i]);
		add(_metadata, &self->e, flexible(i), 0, -1, leader[i]);
	}
	for (int round = 0; round < 2; round++) {
		struct events rest = { .nr = 8 };
		__u64 start = bp_now(CLOCK_MONOTONIC);
		bool all;

		ASSERT_TRUE(all_get_a_turn(_metadata, &self->e, &load));
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, bp_disable(self->e.fd[i]));
		memcpy(rest.fd, leader, sizeof(leader));
		/* From some time on all of them run all the time. */
		do {
			go_on(&load);
			begin(_metadata, &rest);
			go_on_for(_metadata, &load, &rest, 4 * TURN_NS);
			look(_metadata, &rest);
			all = true;
			for (int i = 0; i < 8; i++)
				all &= running(&rest, i) == enabled(&rest, i);
		} while (!all && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
		EXPECT_TRUE(all)
			show(_metadata, &rest);
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, bp_enable(self->e.fd[i]));
	}
	/* Nor does a member that is enabled and disabled lose its place. */
	group = self->e.fd[0];
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(0, bp_disable(group));
		store_words(0, 8, 1);
		EXPECT_EQ(0, bp_enable(group));
	}
	expect_turns(_metadata, &self->e, &load);
}

/* While one waits, the page does not follow each start of its context. */
TEST_F(flexible, page_does_not_offer_to_compute_times)
{
	struct perf_event_mmap_page *page[8];
	struct load load = { .nr = 8 };

	add_words(_metadata, &self->e, flexible, 0, 8, 0, -1);
	for (int i = 0; i < 8; i++) {
		page[i] = mmap(NULL, BP_PAGE_SIZE, PROT_READ, MAP_SHARED, self->e.fd[i], 0);
		ASSERT_NE(MAP_FAILED, page[i]);
	}
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 8; i++)
			EXPECT_EQ(0, !!page[i]->cap_user_time);
		ASSERT_TRUE(all_get_a_turn(_metadata, &self->e, &load));
	}
	for (int i = 0; i < 8; i++)
		munmap(page[i], BP_PAGE_SIZE);
}

/* ================================================== what many of them cost */

#define MANY		3000

FIXTURE(many)
{
	struct events few;
	int fd[MANY];
	int nr;
	int all;
};

FIXTURE_VARIANT(many)
{
	/* A group each, of a breakpoint, of a dummy, or of a dummy that leads one. */
	bool dummy;
	bool breakpoint;
	/* The breakpoint is disabled. */
	bool disabled;
	/* How the few are led that have to take turns beside them. */
	bool few_led;
};

FIXTURE_VARIANT_ADD(many, breakpoints) { .breakpoint = true };
FIXTURE_VARIANT_ADD(many, disabled_breakpoints) { .breakpoint = true, .disabled = true };
FIXTURE_VARIANT_ADD(many, breakpoints_led_by_dummies) {
	.breakpoint = true, .dummy = true, .few_led = true };
FIXTURE_VARIANT_ADD(many, disabled_breakpoints_led_by_dummies) {
	.breakpoint = true, .dummy = true, .disabled = true, .few_led = true };
FIXTURE_VARIANT_ADD(many, dummies_beside_breakpoints) { .dummy = true, .few_led = true };

FIXTURE_SETUP(many)
{
	struct rlimit limit;

	set_up(_metadata);
	/* An open takes many times as long under lockdep. */
	self->all = access("/proc/lockdep", F_OK) ? MANY : MANY / 4;
	ASSERT_EQ(0, bp_pin(cpu));
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < MANY + 500)
		SKIP(return, "no more than %lu files", (unsigned long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

FIXTURE_TEARDOWN(many)
{
	tear_down(_metadata);
}

static void open_many(struct __test_metadata *_metadata, FIXTURE_DATA(many) *self,
		      const FIXTURE_VARIANT(many) *variant)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY), attr = flexible(60);
	int leader = -1;

	attr.disabled = variant->disabled;
	while (self->nr < self->all) {
		leader = -1;
		if (variant->dummy) {
			leader = bp_open(&sw, 0, -1);
			ASSERT_LE(0, leader);
			self->fd[self->nr++] = leader;
		}
		if (variant->breakpoint && self->nr < self->all) {
			self->fd[self->nr] = bp_open_group(&attr, 0, -1, leader,
							   PERF_FLAG_FD_CLOEXEC);
			ASSERT_LE(0, self->fd[self->nr]);
			self->nr++;
		}
	}
}

static long time_of_work(int rounds, void *unused)
{
	__u64 start = bp_now(CLOCK_MONOTONIC);

	(void)unused;
	for (int i = 0; i < rounds; i++)
		asm volatile("" : : : "memory");
	return bp_now(CLOCK_MONOTONIC) - start;
}

/* So many rounds of work that some turns end meanwhile, if nothing else is done. */
static int rounds_of_work(void)
{
	int rounds = 500000;
	__u64 least, time;

	do {
		rounds *= 2;
		least = ~0ULL;
		for (int i = 0; i < 8; i++) {
			time = time_of_work(rounds, NULL);
			least = time < least ? time : least;
		}
	} while (least < 4 * TURN_NS);
	return rounds;
}

/*
 * A task with many does its work in the time in which a task on the same CPU does
 * it that has none. They do it in turn, so that a busy machine slows both down.
 */
TEST_F(many, cost_the_cpu_nothing)
{
	double time, control, all = 0, all_control = 0;
	struct load load = { .nr = 8 };
	int rounds = rounds_of_work();
	struct bp_worker other;
	__u64 start;

	ASSERT_EQ(0, bp_start(&other, time_of_work, NULL));
	for (int i = 0; i < 8; i++) {
		struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
		int leader = variant->few_led ? bp_open(&sw, 0, -1) : -1;

		add(_metadata, &self->few, flexible(i), 0, -1, leader);
	}
	open_many(_metadata, self, variant);
	start = bp_now(CLOCK_MONOTONIC);
	for (int i = 0; i < 10 || (all > 1.15 * all_control &&
				   bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS / 3); i++) {
		time = time_of_work(rounds, NULL);
		control = bp_do(&other, rounds);
		all += time;
		all_control += control;
	}
	EXPECT_LE(all, 1.15 * all_control);
	/* Where no others wait before them, the few have their turns. */
	bp_close(self->fd, self->nr);
	expect_turns(_metadata, &self->few, &load);
	EXPECT_EQ(0, bp_stop(&other));
}

/* The least that so many switches take to another task and back. */
static __u64 time_of_switches(struct bp_worker *other)
{
	__u64 least = ~0ULL, start, time;

	for (int i = 0; i < 30; i++) {
		start = bp_now(CLOCK_MONOTONIC);
		for (int k = 0; k < 20; k++)
			bp_do(other, 0);
		time = bp_now(CLOCK_MONOTONIC) - start;
		least = time < least ? time : least;
	}
	return least;
}

TEST_F(many, cost_a_switch_less_than_software_events)
{
	const FIXTURE_VARIANT(many) software = { .dummy = true };
	struct load load = { };
	struct bp_worker other;
	__u64 least, time;

	if (variant->dummy)
		SKIP(return, "these are software events");
	ASSERT_EQ(0, bp_start(&other, worker, &load));
	open_many(_metadata, self, &software);
	time = time_of_switches(&other);
	bp_close(self->fd, self->nr);
	self->nr = 0;
	open_many(_metadata, self, variant);
	least = time_of_switches(&other);
	EXPECT_LE(2 * least, time);
	bp_close(self->fd, self->nr);
	EXPECT_EQ(0, bp_stop(&other));
}

/* Each of many gets its turn, whatever the others are. */
TEST_F(flexible, hundreds_all_get_a_turn)
{
	struct perf_event_attr sw = software(PERF_COUNT_SW_DUMMY);
	struct load load = { .nr = 12 };
	int leader;

	for (int i = 0; i < 100; i++) {
		ASSERT_LE(0, open_flexible(0, -1));
		leader = bp_open(&sw, 0, -1);
		ASSERT_LE(0, leader);
		if (i % 10)
			continue;
		add(_metadata, &self->e, flexible(i / 10), 0, -1, leader);
	}
	add_group(_metadata, &self->e, flexible, 10, 2, 0, -1);
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->e, &load));
}

/* Groups that do not fit beside the guaranteed ones do not keep out those that do. */
TEST_F(flexible, many_groups_that_do_not_fit_hold_up_nobody)
{
	struct load load = { .nr = 20 };
	struct events four = { };

	hold(_metadata, 1, 0, -1);
	for (int i = 0; i < 10; i++)
		add_group(_metadata, &four, flexible, 16, BP_SLOTS, 0, -1);
	add_words(_metadata, &self->e, flexible, 0, 5, 0, -1);
	expect_turns(_metadata, &self->e, &load);
	look(_metadata, &four);
	EXPECT_EQ(0, all_running(&four));
}

/* ================================================== how long a turn is, and whose */

/*
 * Two groups of all registers: the one whose leader counted last is the one that
 * runs. A turn began after the last look that saw the other, and ended before the
 * first that saw the other again. The timer may be late, and is in time for the
 * next turn all the same, but it is not early: many turns are as long as so many
 * intervals but one. And it is not always late, so there is one turn among them
 * that is not much longer than it should be.
 */
static void expect_turns_of(struct __test_metadata *_metadata, struct events *e, int ms)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), interval = ms * 1000000ULL;
	__u64 began = 0, first = 0, shortest = ~0ULL;
	struct bp_reading last[2], now[2];
	int who = 1, turns = -2;

	ASSERT_EQ(0, set_interval(ms));
	read_event(_metadata, e->fd[0], &now[0]);
	read_event(_metadata, e->fd[BP_SLOTS], &now[1]);
	while ((turns < 10 || shortest > interval + 50000000) &&
	       bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS) {
		memcpy(last, now, sizeof(now));
		bp_store(word(0), 1);
		bp_store(word(BP_SLOTS), 1);
		read_event(_metadata, e->fd[0], &now[0]);
		read_event(_metadata, e->fd[BP_SLOTS], &now[1]);
		if (now[!who].count == last[!who].count)
			continue;
		who = !who;
		/* The first that is seen may be under way, with the interval of before. */
		if (++turns == 0)
			first = last[0].enabled;
		else if (turns > 0 && now[0].enabled - began < shortest)
			shortest = now[0].enabled - began;
		began = last[0].enabled;
	}
	EXPECT_LE(10, turns);
	EXPECT_LE(0.99 * (turns - 1) * interval, now[0].enabled - first);
	EXPECT_GE(interval + 50000000, shortest);
}

TEST_F(flexible, interval_in_sysfs_is_how_long_a_turn_is)
{
	BP_NEED_ROOT();
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, 0, -1);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, 0, -1);
	expect_turns_of(_metadata, &self->e, 5);
	expect_turns_of(_metadata, &self->e, 80);
	expect_turns_of(_metadata, &self->e, 5);
	expect_turns_of(_metadata, &self->e, 120);
}

TEST_F(flexible, interval_in_sysfs_goes_for_those_of_a_cpu)
{
	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, &self->e, flexible, 0, BP_SLOTS, -1, cpu);
	add_group(_metadata, &self->e, flexible, BP_SLOTS, BP_SLOTS, -1, cpu);
	expect_turns_of(_metadata, &self->e, 5);
	expect_turns_of(_metadata, &self->e, 80);
	expect_turns_of(_metadata, &self->e, 5);
	expect_turns_of(_metadata, &self->e, 120);
}

/* ===================================================================== sampling */

/*
 * A period goes on where it was when the turn ended: so many hits make so many
 * samples, whatever the turns.
 */
TEST_F(flexible, each_period_of_hits_is_a_sample)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), samples[8] = { };
	struct events *e = &self->e;
	struct bp_ring ring[8];
	union bp_record rec;
	int have;

	for (int i = 0; i < 8; i++) {
		struct perf_event_attr attr = flexible(i);

		attr.sample_period = i + 1;
		attr.sample_type = PERF_SAMPLE_ADDR;
		add(_metadata, e, attr, 0, -1, -1);
		ASSERT_EQ(0, bp_ring_map(&ring[i], e->fd[i], 4, PROT_READ | PROT_WRITE));
	}
	do {
		store_words(0, 8, 8);
		look(_metadata, e);
		have = 0;
		for (int i = 0; i < 8; i++) {
			while (bp_ring_next(&ring[i], &rec)) {
				ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
				EXPECT_EQ((unsigned long)word(i), rec.u64[1]);
				samples[i]++;
			}
			have += samples[i] >= 20;
		}
	} while (have < 8 && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	EXPECT_EQ(8, have);
	look(_metadata, e);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(e->to[i].count / (i + 1), samples[i]);
		EXPECT_LT(e->to[i].running, e->to[i].enabled);
		bp_ring_unmap(&ring[i]);
	}
}

/* The times in a sample are those at the hit: the event was running. */
TEST_F(flexible, sample_carries_times_that_grow)
{
	struct {
		struct perf_event_header header;
		struct bp_reading read;
	} *s;
	struct perf_event_attr attr = flexible(0);
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct load load = { .nr = 6 };
	struct bp_reading last = { };
	union bp_record rec;
	struct bp_ring ring;
	int samples = 0;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	add(_metadata, &self->e, attr, 0, -1, -1);
	ASSERT_EQ(0, bp_ring_map(&ring, self->e.fd[0], 16, PROT_READ | PROT_WRITE));
	add_words(_metadata, &self->e, flexible, 1, 5, 0, -1);
	s = (void *)&rec;
	while ((samples < 100 || last.running == last.enabled) &&
	       bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS) {
		go_on(&load);
		while (bp_ring_next(&ring, &rec)) {
			ASSERT_EQ(PERF_RECORD_SAMPLE, rec.header.type);
			EXPECT_EQ(last.count + 1, s->read.count);
			EXPECT_LE(last.enabled, s->read.enabled);
			EXPECT_LE(last.running, s->read.running);
			EXPECT_LE(s->read.running, s->read.enabled);
			last = s->read;
			samples++;
		}
	}
	EXPECT_LE(100, samples);
	EXPECT_LT(last.running, last.enabled);
	bp_ring_unmap(&ring);
}

static volatile int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

TEST_F(flexible, overflows_send_signals_in_their_turns)
{
	struct perf_event_attr attr = flexible(0);
	struct load load = { .nr = 6 };
	struct bp_reading r;

	ASSERT_NE(SIG_ERR, signal(SIGIO, on_signal));
	add_words(_metadata, &self->e, flexible, 1, 5, 0, -1);
	attr.sample_period = 1;
	attr.wakeup_events = 1;
	add(_metadata, &self->e, attr, 0, -1, -1);
	ASSERT_EQ(0, fcntl(self->e.fd[5], F_SETFL, O_ASYNC | O_NONBLOCK));
	ASSERT_EQ(0, fcntl(self->e.fd[5], F_SETOWN, getpid()));
	expect_turns(_metadata, &self->e, &load);
	read_event(_metadata, self->e.fd[5], &r);
	/* A hit that comes before the signal of the last one makes no second. */
	EXPECT_LT(0, signals);
	EXPECT_GE(r.count, signals);
	signal(SIGIO, SIG_DFL);
}

/* =================================================================== inheritance */

static struct perf_event_attr inherited(int i)
{
	struct perf_event_attr attr = flexible(i);

	attr.inherit = 1;
	return attr;
}

TEST_F(flexible, child_inherits_them_as_flexible_ones)
{
	struct load there = { .nr = 8 };
	struct bp_worker child;

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&child, CMD_FREE));
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close_events(&self->e);
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&child));
}

/* Parent and child in turn: together they find four of eight in registers. */
TEST_F(flexible, counts_of_a_family_add_up)
{
	struct load here = { .nr = 8 }, load = { .go_on = let_worker };
	__u64 start = bp_now(CLOCK_MONOTONIC);
	struct events *e = &self->e;
	struct bp_worker child;
	double stores;

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &here));
	load.worker = &child;
	begin(_metadata, e);
	do {
		go_on(&here);
		go_on(&load);
		look(_metadata, e);
	} while ((enabled(e, 0) < 80 * TURN_NS || served(e) < 8) &&
		 bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS);
	stores = here.rounds + load.rounds;
	EXPECT_TRUE(within(all_counted(e), BP_SLOTS * stores, 5,
			   enabled(e, 0) / TURN_NS)) {
		TH_LOG("%.0f stores to each", stores);
		show(_metadata, e);
	}
	for (int i = 0; i < 8; i++)
		EXPECT_LT(running(e, i), enabled(e, i));
	EXPECT_EQ(8, served(e));
	begin(_metadata, e);
	EXPECT_EQ(0, bp_stop(&child));
	look(_metadata, e);
	EXPECT_EQ(0, all_counted(e));
}

TEST_F(flexible, child_alone_has_all_take_turns)
{
	struct load there = { .nr = 8 }, load = { .go_on = let_worker };
	struct bp_worker child;

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	load.worker = &child;
	expect_turns(_metadata, &self->e, &load);
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(flexible, groups_are_inherited_and_stay_whole)
{
	struct load there = { .nr = 6 }, load = { .go_on = let_worker };
	struct events *e = &self->e;
	struct bp_worker child;

	ASSERT_EQ(0, bp_pin(cpu));
	add_group(_metadata, e, inherited, 0, 3, 0, -1);
	add_group(_metadata, e, inherited, 3, 3, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	load.worker = &child;
	expect_turns(_metadata, e, &load);
	go_on_turns(_metadata, &load, e, 60);
	expect_whole(_metadata, e, 0, 3);
	expect_whole(_metadata, e, 3, 3);
	expect_in_use(_metadata, e, &load, 3, 3);
	EXPECT_EQ(0, bp_stop(&child));
}

/* A child's guaranteed ones take a register from what it inherited, at once. */
TEST_F(flexible, guaranteed_one_of_a_child_misses_nothing)
{
	struct load there = { .nr = 24 };
	struct events plain = { };
	struct bp_worker child;

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	ASSERT_EQ(0, bp_start(&child, worker, &there));
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(0, bp_do(&child, 2));
		add_words(_metadata, &plain, guaranteed, 20, 1 + i % 3, child.pid, -1);
		EXPECT_EQ(0, bp_do(&child, 3));
		store_words(0, 8, 1);
		EXPECT_EQ(0, bp_do(&child, 3));
		expect_missed_nothing(_metadata, &plain, 6);
		close_events(&plain);
	}
	EXPECT_EQ(0, bp_stop(&child));
}

TEST_F(flexible, fork_storm_loses_no_register_and_no_hit)
{
	struct load load = { .nr = 8 };
	struct events *e = &self->e;
	const int forks = 60;
	pid_t pid[4];

	add_words(_metadata, e, inherited, 0, 8, 0, -1);
	begin(_metadata, e);
	for (int i = 0; i < forks; i += 4) {
		for (int k = 0; k < 4; k++) {
			pid[k] = bp_fork();
			ASSERT_LE(0, pid[k]);
			if (pid[k])
				continue;
			store_words(0, 8, 6);
			_exit(0);
		}
		go_on(&load);
		for (int k = 0; k < 4; k++)
			EXPECT_EQ(0, bp_wait(pid[k]));
	}
	look(_metadata, e);
	EXPECT_TRUE(within(all_counted(e), BP_SLOTS * (6.0 * forks + load.rounds), 10,
			   enabled(e, 0) / TURN_NS)) {
		show(_metadata, e);
	}
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	close_events(e);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
}

/* They exit from anywhere: at once, in the middle, as threads, through exec. */
static void *store_thread(void *arg)
{
	store_words(0, 8, 2);
	return arg;
}

static void storm_child(int kind)
{
	pthread_t thread;
	pid_t pid;

	switch (kind % 4) {
	case 1:
		store_words(0, 8, 1 + kind % 5);
		break;
	case 2:
		if (!pthread_create(&thread, NULL, store_thread, NULL) && kind % 8 == 2)
			pthread_join(thread, NULL);
		break;
	case 3:
		pid = fork();
		if (pid < 0)
			_exit(1);
		if (pid)
			_exit(waitpid(pid, NULL, 0) == pid ? 0 : 2);
		execl("/proc/self/exe", "perf_flexible", "--store", "1", NULL);
		_exit(3);
	}
	_exit(0);
}

TEST_F(flexible, storm_of_exits_of_every_kind_loses_no_register)
{
	pid_t pid[4];

	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	add_group(_metadata, &self->e, inherited, 8, 3, 0, -1);
	for (int i = 0; i < 64; i += 4) {
		for (int k = 0; k < 4; k++) {
			pid[k] = bp_fork();
			ASSERT_LE(0, pid[k]);
			if (!pid[k])
				storm_child(i + k);
		}
		/* One of them does not come to its end. */
		if (i % 8 == 4)
			kill(pid[1], SIGKILL);
		for (int k = 0; k < 4; k++)
			bp_wait(pid[k]);
	}
	look(_metadata, &self->e);
	EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(0, -1));
	for (int i = 0; !geteuid() && i < cpus.nr; i++)
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, cpus.cpu[i]));
}

/* Parent and child that take turns on a CPU may exchange what they inherited. */
TEST_F(flexible, family_that_takes_turns_on_a_cpu_keeps_its_books)
{
	struct load load = { .nr = 8 };
	struct bp_worker w[3];

	ASSERT_EQ(0, bp_pin(cpu));
	add_words(_metadata, &self->e, inherited, 0, 8, 0, -1);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, bp_start(&w[i], worker, &load));
	for (int i = 0; i < 60; i++) {
		EXPECT_EQ(0, bp_do(&w[i % 3], 1));
		if (i % 10 == 9)
			EXPECT_EQ(BP_SLOTS - 1, bp_do(&w[i % 3], CMD_FREE));
	}
	look(_metadata, &self->e);
	EXPECT_TRUE(within(all_counted(&self->e), 60 * BP_SLOTS, 10,
			   enabled(&self->e, 0) / TURN_NS)) {
		show(_metadata, &self->e);
	}
	EXPECT_EQ(0, bp_stop(&w[1]));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&w[0], CMD_FREE));
	close_events(&self->e);
	EXPECT_EQ(BP_SLOTS, bp_do(&w[0], CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_do(&w[2], CMD_FREE));
	EXPECT_EQ(0, bp_stop(&w[0]));
	EXPECT_EQ(0, bp_stop(&w[2]));
}

/* ================================================ CPUs that go and come back */

static int pin_other(pid_t pid, int which)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(which, &set);
	return sched_setaffinity(pid, sizeof(set), &set) ? -errno : 0;
}

FIXTURE(hotplug)
{
	struct events of_task;
	struct events of_cpu;
	struct load load;
	volatile __u64 *stop;
	pid_t pid;
	int cpu;
};

/* The last CPU, and a busy task there. */
FIXTURE_SETUP(hotplug)
{
	char path[64];

	BP_NEED_ROOT();
	cpus = bp_online_cpus();
	BP_NEED_CPUS(cpus, 2);
	self->cpu = cpus.cpu[cpus.nr - 1];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", self->cpu);
	if (access(path, W_OK))
		SKIP(return, "CPU %d cannot be taken offline", self->cpu);
	set_up(_metadata);
	self->stop = bp_map_shared();
	ASSERT_NE(NULL, self->stop);
	self->load.go_on = let_others;
	self->pid = busy(self->stop, 0, 12);
	ASSERT_LE(0, self->pid);
	ASSERT_EQ(0, pin_other(self->pid, self->cpu));
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu)
		bp_cpu_online(self->cpu, true);
	tear_down(_metadata);
}

TEST_F(hotplug, turns_go_on_elsewhere_and_when_the_cpu_is_back)
{
	struct events *of_task = &self->of_task, *of_cpu = &self->of_cpu;

	add_words(_metadata, of_task, flexible, 0, 6, self->pid, -1);
	for (int round = 0; round < 3; round++) {
		add_words(_metadata, of_cpu, flexible, 6, 6, -1, self->cpu);
		ASSERT_TRUE(all_get_a_turn(_metadata, of_task, &self->load));
		ASSERT_TRUE(all_get_a_turn(_metadata, of_cpu, &self->load));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(-ENODEV, open_flexible(-1, self->cpu));
		ASSERT_TRUE(all_get_a_turn(_metadata, of_task, &self->load));
		look(_metadata, of_cpu);
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		look(_metadata, of_cpu);
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpu));
		ASSERT_EQ(0, pin_other(self->pid, self->cpu));
		ASSERT_TRUE(all_get_a_turn(_metadata, of_task, &self->load));
		close_events(of_cpu);
		EXPECT_EQ(BP_SLOTS - 1, bp_free_slots(-1, self->cpu));
	}
	close_events(of_task);
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
}

TEST_F(hotplug, events_that_are_closed_meanwhile_give_the_register_back)
{
	add_words(_metadata, &self->of_task, flexible, 0, 6, self->pid, -1);
	add_words(_metadata, &self->of_cpu, flexible, 6, 6, -1, self->cpu);
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->of_task, &self->load));
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->of_cpu, &self->load));
	ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
	close_events(&self->of_cpu);
	close_events(&self->of_task);
	ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpu));
	ASSERT_EQ(0, pin_other(self->pid, self->cpu));
	add_words(_metadata, &self->of_cpu, flexible, 6, 6, -1, self->cpu);
	add_words(_metadata, &self->of_task, flexible, 0, 6, self->pid, -1);
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->of_cpu, &self->load));
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->of_task, &self->load));
}

/* Bound to the CPU that goes: no turns while it is away, and turns again after. */
TEST_F(hotplug, events_of_a_task_bound_to_the_cpu_wait_for_it)
{
	struct events *e = &self->of_task;

	add_words(_metadata, e, flexible, 0, 6, self->pid, self->cpu);
	for (int round = 0; round < 2; round++) {
		ASSERT_TRUE(all_get_a_turn(_metadata, e, &self->load));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, false));
		begin(_metadata, e);
		for (int i = 0; i < 10; i++)
			let_others(&self->load);
		look(_metadata, e);
		EXPECT_EQ(0, all_counted(e));
		EXPECT_EQ(0, all_running(e));
		ASSERT_EQ(0, bp_cpu_online(self->cpu, true));
		ASSERT_EQ(0, pin_other(self->pid, self->cpu));
	}
	ASSERT_TRUE(all_get_a_turn(_metadata, e, &self->load));
}

static int open_close_until(volatile __u64 *stop)
{
	struct events e = { };

	while (!*stop) {
		int plain;

		for (int i = 0; i < 6; i++) {
			struct perf_event_attr attr = flexible(i);

			e.fd[i] = bp_open(&attr, 0, -1);
			if (e.fd[i] < 0)
				return -e.fd[i];
		}
		store_words(0, 6, 2);
		plain = open_guaranteed(0, -1);
		if (plain < 0)
			return -plain;
		close(plain);
		bp_close(e.fd, 6);
	}
	return 0;
}

TEST_F(hotplug, cpu_comes_and_goes_while_tasks_open_and_close)
{
	pid_t pid[3];

	for (int i = 0; i < 3; i++) {
		pid[i] = bp_fork();
		ASSERT_LE(0, pid[i]);
		if (!pid[i])
			_exit(open_close_until(self->stop));
	}
	add_words(_metadata, &self->of_task, inherited, 0, 6, self->pid, -1);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, bp_cpu_online(self->cpu, false));
		EXPECT_EQ(0, bp_cpu_online(self->cpu, true));
		EXPECT_EQ(0, pin_other(pid[i % 3], self->cpu));
		EXPECT_EQ(0, pin_other(self->pid, self->cpu));
	}
	ASSERT_TRUE(all_get_a_turn(_metadata, &self->of_task, &self->load));
	*self->stop = 1;
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_wait(pid[i]));
	EXPECT_EQ(0, bp_wait(self->pid));
}

/* ======================================================================= stress */

#define ROUNDS	40

/* Sixteen of its own, and guaranteed ones that come, count exactly, and go. */
static int count_beside_flexible(int seed)
{
	struct perf_event_attr attr;
	struct bp_reading r;
	int fd[3];

	for (int i = 0; i < 16; i++) {
		attr = flexible(i);
		if (bp_open(&attr, 0, -1) < 0)
			return 254;
	}
	for (int round = 0; round < ROUNDS; round++) {
		int nr = 1 + (round + seed) % 3;

		for (int i = 0; i < nr; i++) {
			attr = guaranteed(20 + i);
			fd[i] = bp_open(&attr, 0, -1);
			if (fd[i] < 0)
				return -fd[i];
		}
		for (int i = 0; i < 3; i++) {
			store_words(0, 16, 1);
			store_words(20, nr, 2);
		}
		for (int i = 0; i < nr; i++) {
			if (!bp_read(fd[i], &r))
				return 253;
			if (r.count != 6)
				return 200 + r.count % 50;
			if (r.running != r.enabled)
				return 252;
		}
		bp_close(fd, nr);
	}
	return 0;
}

FIXTURE(stress)
{
	struct events e;
	pid_t pid[6];
	int nr;
};

FIXTURE_SETUP(stress)
{
	set_up(_metadata);
}

FIXTURE_TEARDOWN(stress)
{
	tear_down(_metadata);
}

static void spawn(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self)
{
	pid_t pid = bp_fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(count_beside_flexible(self->nr));
	self->pid[self->nr++] = pid;
}

static void expect_all_well(struct __test_metadata *_metadata, FIXTURE_DATA(stress) *self)
{
	while (self->nr)
		EXPECT_EQ(0, bp_wait(self->pid[--self->nr]));
}

TEST_F(stress, guaranteed_ones_come_and_go_and_stay_exact)
{
	spawn(_metadata, self);
	expect_all_well(_metadata, self);
}

TEST_F(stress, guaranteed_ones_of_many_tasks_stay_exact)
{
	for (int i = 0; i < 4; i++)
		spawn(_metadata, self);
	expect_all_well(_metadata, self);
}

/* The CPUs have flexible ones as well, which wait for their turns in each task. */
TEST_F(stress, guaranteed_ones_stay_exact_beside_flexible_ones_of_the_cpus)
{
	BP_NEED_ROOT();
	for (int i = 0; i < cpus.nr && i < 4; i++)
		add_words(_metadata, &self->e, flexible, 0, 8, -1, cpus.cpu[i]);
	for (int i = 0; i < 3; i++)
		spawn(_metadata, self);
	expect_all_well(_metadata, self);
	look(_metadata, &self->e);
}

/* And those of the CPUs come and go too. */
TEST_F(stress, guaranteed_ones_stay_exact_while_flexible_ones_of_the_cpus_come_and_go)
{
	int status;

	BP_NEED_ROOT();
	for (int i = 0; i < 3; i++)
		spawn(_metadata, self);
	for (int i = 0; waitpid(self->pid[0], &status, WNOHANG) == 0; i++) {
		add_words(_metadata, &self->e, flexible, i % 16, 6, -1, cpus.cpu[i % cpus.nr]);
		usleep(1000 * (i % 7));
		look(_metadata, &self->e);
		close_events(&self->e);
	}
	bp_forget_child(self->pid[0]);
	EXPECT_EQ(0, status);
	while (self->nr > 1)
		EXPECT_EQ(0, bp_wait(self->pid[--self->nr]));
}

/* Descriptors are closed by the end of a process while its events take turns. */
TEST_F(stress, processes_that_are_killed_leave_nothing_behind)
{
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			spawn(_metadata, self);
		usleep(5000 * (round + 1));
		while (self->nr) {
			kill(self->pid[--self->nr], SIGKILL);
			bp_wait(self->pid[self->nr]);
		}
		EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
		for (int i = 0; !geteuid() && i < cpus.nr; i++)
			EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, cpus.cpu[i]));
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--store"))
		return exec_main(atoi(argv[2]));
	return test_harness_run(argc, argv);
}
