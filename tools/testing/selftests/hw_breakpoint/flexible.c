// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the tests of flexible breakpoints: see flexible.h.
 */
#define BP_NO_TESTS
#include "flexible.h"

#define INTERVAL	BP_PMU "/perf_event_mux_interval_ms"

static char *mem;

struct bp_cpus cpus;

int cpu;

static char old_interval[16];

char *word(int i)
{
	return mem + BP_PAGE_SIZE / MAX_EVENTS * i;
}

void store_words(int first, int nr, int rounds)
{
	while (rounds--) {
		for (int i = first; i < first + nr; i++)
			bp_store(word(i), 1);
	}
}

int set_interval(int ms)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", ms);
	return bp_write_file(INTERVAL, text);
}

void set_up(struct __test_metadata *_metadata)
{
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, mem);
	cpus = bp_online_cpus();
	cpu = cpus.cpu[0];
	ASSERT_EQ(0, bp_read_file(INTERVAL, old_interval, sizeof(old_interval)));
	if (!geteuid())
		ASSERT_EQ(0, set_interval(INTERVAL_MS));
}

void tear_down(struct __test_metadata *_metadata)
{
	if (!geteuid())
		EXPECT_EQ(0, bp_write_file(INTERVAL, old_interval));
	bp_teardown(_metadata);
}

struct perf_event_attr guaranteed(int i)
{
	struct perf_event_attr attr = bp_attr_w(word(i), 8);

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

struct perf_event_attr flexible(int i)
{
	struct perf_event_attr attr = guaranteed(i);

	attr.config = BP_FLEXIBLE;
	return attr;
}

struct perf_event_attr of_process(int i)
{
	struct perf_event_attr attr = flexible(i);

	attr.config |= BP_PROCESS;
	return attr;
}

struct perf_event_attr software(__u64 config)
{
	struct perf_event_attr attr = bp_attr_sw(config);

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

struct perf_event_attr inherited(int i)
{
	struct perf_event_attr attr = flexible(i);

	attr.inherit = 1;
	return attr;
}

int open_flexible(pid_t pid, int on)
{
	struct perf_event_attr attr = flexible(0);

	return bp_open(&attr, pid, on);
}

int open_guaranteed(pid_t pid, int on)
{
	struct perf_event_attr attr = guaranteed(0);

	return bp_open(&attr, pid, on);
}

void hold(struct __test_metadata *_metadata, int nr, pid_t pid, int on)
{
	for (int i = 0; i < nr; i++) {
		struct perf_event_attr attr = guaranteed(MAX_EVENTS - 1 - i);

		ASSERT_LE(0, bp_open(&attr, pid, on));
	}
}

/* ------------------------------------------------------------- sets of events */

void add(struct __test_metadata *_metadata, struct events *e, struct perf_event_attr attr,
	 pid_t pid, int on, int group)
{
	e->fd[e->nr] = bp_open_group(&attr, pid, on, group, PERF_FLAG_FD_CLOEXEC);
	ASSERT_LE(0, e->fd[e->nr]);
	e->from[e->nr] = (struct bp_reading){ };
	e->nr++;
}

void add_disabled(struct __test_metadata *_metadata, struct events *e,
		  struct perf_event_attr attr, pid_t pid, int on)
{
	attr.disabled = 1;
	add(_metadata, e, attr, pid, on, -1);
}

void add_words(struct __test_metadata *_metadata, struct events *e,
	       struct perf_event_attr (*attr)(int i), int first, int nr, pid_t pid, int on)
{
	for (int i = first; i < first + nr; i++)
		add(_metadata, e, attr(i), pid, on, -1);
}

void add_group(struct __test_metadata *_metadata, struct events *e,
	       struct perf_event_attr (*attr)(int i), int first, int nr, pid_t pid, int on)
{
	int group;

	add_disabled(_metadata, e, attr(first), pid, on);
	group = e->fd[e->nr - 1];
	for (int i = first + 1; i < first + nr; i++)
		add(_metadata, e, attr(i), pid, on, group);
	EXPECT_EQ(0, bp_enable(group));
}

void close_events(struct events *e)
{
	bp_close(e->fd, e->nr);
	e->nr = 0;
}

void read_event(struct __test_metadata *_metadata, int fd, struct bp_reading *r)
{
	ASSERT_TRUE(bp_read(fd, r));
	EXPECT_LE(r->running, r->enabled);
}

void look(struct __test_metadata *_metadata, struct events *e)
{
	for (int i = 0; i < e->nr; i++) {
		read_event(_metadata, e->fd[i], &e->to[i]);
		EXPECT_LE(e->from[i].count, e->to[i].count);
		EXPECT_LE(e->from[i].enabled, e->to[i].enabled);
		EXPECT_LE(e->from[i].running, e->to[i].running);
	}
}

void begin(struct __test_metadata *_metadata, struct events *e)
{
	look(_metadata, e);
	memcpy(e->from, e->to, sizeof(e->from));
}

__u64 counted(struct events *e, int i)
{
	return e->to[i].count - e->from[i].count;
}

__u64 enabled(struct events *e, int i)
{
	return e->to[i].enabled - e->from[i].enabled;
}

__u64 running(struct events *e, int i)
{
	return e->to[i].running - e->from[i].running;
}

__u64 all_counted(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += counted(e, i);
	return sum;
}

__u64 all_running(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += running(e, i);
	return sum;
}

__u64 all_enabled(struct events *e)
{
	__u64 sum = 0;

	for (int i = 0; i < e->nr; i++)
		sum += enabled(e, i);
	return sum;
}

void show(struct __test_metadata *_metadata, struct events *e)
{
	for (int i = 0; i < e->nr; i++) {
		TH_LOG("event %d: count %llu enabled %llu running %llu", i,
		       (unsigned long long)counted(e, i),
		       (unsigned long long)enabled(e, i),
		       (unsigned long long)running(e, i));
	}
}

bool within(double a, double b, double percent, double more)
{
	double off = a > b ? a - b : b - a;

	return off <= b * percent / 100 + more;
}

/* ------------------------------------------------------------------- the load */

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

double unsteadiness(struct steadiness *s)
{
	double mean = s->sum / s->time;

	return s->time ? s->squares / s->time / (mean * mean) - 1 : 1;
}

void go_on(struct load *load)
{
	if (load->go_on) {
		load->go_on(load);
		return;
	}
	store_words(load->first, load->nr, 4);
	load->rounds += 4;
	note(&load->steady, load->rounds);
}

void let_others(struct load *load)
{
	(void)load;
	usleep(2000);
}

void let_worker(struct load *load)
{
	if (!bp_do(load->worker, 8))
		load->rounds += 8;
}

void let_two(struct load *load)
{
	if (!bp_do(&load->worker[0], 5) && !bp_do(&load->worker[1], 5))
		load->rounds += 5;
}

void sleep_often(struct load *load)
{
	__u64 until = bp_now(CLOCK_MONOTONIC) + (1 + load->rounds % 3) * INTERVAL_NS;

	while (bp_now(CLOCK_MONOTONIC) < until)
		store_words(load->first, load->nr, 1);
	usleep(100 * (1 + load->rounds++ % 17));
}

void move_often(struct load *load)
{
	bp_pin(cpus.cpu[load->rounds % cpus.nr]);
	store_words(load->first, load->nr, 1 + load->rounds++ % 3);
}

void go_on_for(struct __test_metadata *_metadata, struct load *load, struct events *e, __u64 ns)
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

void go_on_rotations(struct __test_metadata *_metadata, struct load *load, struct events *e,
		     int rotations)
{
	begin(_metadata, e);
	load->rounds = 0;
	load->steady = (struct steadiness){ };
	go_on_for(_metadata, load, e, rotations * INTERVAL_NS);
	look(_metadata, e);
}

int served(struct events *e)
{
	int nr = 0;

	for (int i = 0; i < e->nr; i++)
		nr += running(e, i) && counted(e, i);
	return nr;
}

bool all_get_a_register(struct __test_metadata *_metadata, struct events *e, struct load *load)
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

void expect_rotation(struct __test_metadata *_metadata, struct events *e, struct load *load)
{
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(all_get_a_register(_metadata, e, load));
}

void expect_in_use(struct __test_metadata *_metadata, struct events *e, struct load *load,
		   int least, int most)
{
	double changes = BP_SLOTS * (enabled(e, 0) / INTERVAL_NS + 1), nr = all_counted(e);

	EXPECT_LE(least * load->rounds * 0.95, nr + changes) {
		TH_LOG("%llu rounds", (unsigned long long)load->rounds);
		show(_metadata, e);
	}
	EXPECT_LE(nr - changes, most * load->rounds * 1.02) {
		TH_LOG("%llu rounds", (unsigned long long)load->rounds);
		show(_metadata, e);
	}
}

void expect_even(struct __test_metadata *_metadata, struct load *load, struct events *e)
{
	__u64 start = bp_now(CLOCK_MONOTONIC), rotations = 0;
	bool even;

	begin(_metadata, e);
	load->rounds = 0;
	load->steady = (struct steadiness){ };
	do {
		rotations += 100;
		go_on_for(_metadata, load, e, rotations * INTERVAL_NS);
		look(_metadata, e);
		even = within(counted(e, 0), counted(e, 1), 30, 0);
	} while (!even && bp_now(CLOCK_MONOTONIC) - start < PATIENCE_NS / 2);
	EXPECT_TRUE(even)
		show(_metadata, e);
}

void expect_missed_nothing(struct __test_metadata *_metadata, struct events *e, __u64 count)
{
	look(_metadata, e);
	for (int i = 0; i < e->nr; i++) {
		ASSERT_TRUE(bp_read(e->fd[i], &e->to[i]));
		EXPECT_EQ(count, counted(e, i));
		EXPECT_EQ(enabled(e, i), running(e, i));
	}
}

void expect_same_time(struct __test_metadata *_metadata, int a, int b)
{
	struct bp_reading before, between, after;

	read_event(_metadata, a, &before);
	read_event(_metadata, b, &between);
	read_event(_metadata, a, &after);
	EXPECT_LE(before.running * 0.98, between.running);
	EXPECT_LE(between.running * 0.98, after.running);
	EXPECT_LT(0, before.running);
}

void expect_whole(struct __test_metadata *_metadata, struct events *e, int first, int nr)
{
	double ends = enabled(e, first) / INTERVAL_NS;

	for (int i = first + 1; i < first + nr; i++) {
		expect_same_time(_metadata, e->fd[first], e->fd[i]);
		EXPECT_TRUE(within(counted(e, i), counted(e, first), 5, ends)) {
			TH_LOG("events %d and %d are of one group", first, i);
			show(_metadata, e);
		}
	}
}

pid_t busy(volatile __u64 *stop, int first, int nr)
{
	pid_t pid = bp_fork();

	if (pid)
		return pid;
	while (!*stop)
		store_words(first, nr, 1);
	_exit(0);
}

/* ------------------------------------------------------------------- workers */

long worker(int cmd, void *arg)
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

/* ---------------------------------------------------------------------- exec */

pid_t start_exec(int *gate, int nr, int before, int after)
{
	int pipefd[2];
	char c, rounds[16];
	pid_t pid;

	if (pipe(pipefd))
		return -errno;
	pid = bp_fork();
	if (!pid) {
		close(pipefd[1]);
		if (read(pipefd[0], &c, 1) != 1)
			_exit(1);
		store_words(0, nr, before);
		snprintf(rounds, sizeof(rounds), "%d", after);
		execl("/proc/self/exe", "perf_flexible", "--store", rounds, NULL);
		_exit(2);
	}
	close(pipefd[0]);
	*gate = pipefd[1];
	return pid;
}

/* After exec this program runs "--store ROUNDS" instead of tests. */
static void __attribute__((constructor)) store_after_exec(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--store"))
		return;
	mem = bp_map_page(PROT_READ | PROT_WRITE);
	if (!mem)
		_exit(1);
	store_words(0, 24, atoi(argv[2]));
	_exit(0);
}
