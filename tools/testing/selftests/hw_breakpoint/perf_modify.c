// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES.
 *
 * The rule: what a breakpoint watches, whether it is disabled and its sig_data
 * can be changed, and nothing else; all of it happens to the whole family, or
 * none of it to anyone. Each hit before it counts for the old address, each hit
 * after it for the new one, and nobody else notices. What is to stay is compared
 * with what the user gave, whatever the kernel made of it since.
 *
 * Built as 64-bit and as ia32 program: the number of the ioctl has the size of a
 * pointer in it. Tests with threads are in the former alone: the C library of ia32
 * waits by a futex() with 32-bit times, which a kernel need not have.
 */
#include "bp_test.h"

#define FLEXIBLE	1ULL
#define MAX_STACK	"/proc/sys/kernel/perf_event_max_stack"
#define NEIGHBOURS	3
#define MANY		4000
#define KERNEL_ADDR	0xffffffff81000000ULL

/* An execution breakpoint has the length of the kernel's long. */
#define X_LEN		8

#ifdef __x86_64__
#define WIDEST		8
#else
#define WIDEST		4
#endif

void first_func(void);
void second_func(void);
void neighbour_func(void);

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
	"first_func:\n"
	"	nop\n"
	"	ret\n"
	"	.balign	16\n"
	"second_func:\n"
	"	nop\n"
	"	ret\n"
	"	.balign	16\n"
	"neighbour_func:\n"
	"	nop\n"
	"	ret\n"
	".popsection\n");

/* ------------------------------------------------------------------------- spots */

/*
 * Something to watch and the access that goes with it: a store for W, a load for
 * RW, a call for X. Those of words share the first one, to see every change of
 * length and type alone.
 */
struct spot {
	unsigned int type;
	unsigned int word;
	void (*func)(void);
	unsigned int len;
};

static const struct spot spots[] = {
	{ HW_BREAKPOINT_W, 0, NULL, 1 },
	{ HW_BREAKPOINT_W, 0, NULL, 4 },
	{ HW_BREAKPOINT_W, 1, NULL, 1 },
	{ HW_BREAKPOINT_W, 2, NULL, 2 },
	{ HW_BREAKPOINT_W, 3, NULL, WIDEST },
	{ HW_BREAKPOINT_RW, 0, NULL, 1 },
	{ HW_BREAKPOINT_RW, 4, NULL, 4 },
	{ HW_BREAKPOINT_RW, 5, NULL, WIDEST },
	{ HW_BREAKPOINT_X, 0, first_func, X_LEN },
	{ HW_BREAKPOINT_X, 0, second_func, X_LEN },
	{ HW_BREAKPOINT_W, 8, NULL, 4 },
	{ HW_BREAKPOINT_RW, 9, NULL, 4 },
	{ HW_BREAKPOINT_X, 0, neighbour_func, X_LEN },
	{ HW_BREAKPOINT_W, 10, NULL, 4 },
};

/* Those to go to; behind them one of each neighbour and of the leader of a group */
#define SPOTS		((int)(sizeof(spots) / sizeof(spots[0])) - NEIGHBOURS - 1)
#define LEADER		(SPOTS + NEIGHBOURS)

/* Some spots by name */
enum { FIRST_BYTE = 0, FIRST_LONG = 1, SECOND_BYTE = 2, READ_LONG = 6, FIRST_FUNC = 8 };

static char *word(int i)
{
	return BP_PAGE + 64 * i;
}

static unsigned long spot_addr(int i)
{
	return spots[i].func ? (unsigned long)spots[i].func :
			       (unsigned long)word(spots[i].word);
}

static void hit(int i, int times)
{
	const struct spot *s = &spots[i];

	while (times--) {
		if (s->func)
			s->func();
		else if (s->type == HW_BREAKPOINT_W)
			bp_store(word(s->word), s->len);
		else
			bp_load(word(s->word), s->len);
	}
}

/* Does who watches spot @watched see a hit of spot @i? */
static bool sees(int watched, int i)
{
	const struct spot *w = &spots[watched], *s = &spots[i];

	if (w->func || s->func)
		return w->func == s->func;
	return w->word == s->word &&
	       (w->type == HW_BREAKPOINT_RW || s->type == HW_BREAKPOINT_W);
}

static void watch(struct perf_event_attr *attr, int i)
{
	attr->bp_type = spots[i].type;
	attr->bp_addr = spot_addr(i);
	attr->bp_len = spots[i].len;
}

static struct perf_event_attr spot_attr(int i)
{
	struct perf_event_attr attr = bp_attr(0, NULL, 0);

	watch(&attr, i);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

static long long count_any(int fd)
{
	struct bp_reading r;

	return read(fd, &r, sizeof(r)) == sizeof(r) ? (long long)r.count : -1;
}

/* The count of one that was never scheduled out while it was enabled */
static long long count(struct __test_metadata *_metadata, int fd)
{
	struct bp_reading r = { };

	EXPECT_TRUE(bp_read(fd, &r));
	EXPECT_EQ(r.enabled, r.running);
	return r.count;
}

/* ----------------------------------------------------------------------- workers */

/* A command of a worker: hit a spot, or one of those below. */
enum { CMD_SPIN = -1, CMD_FORK = -2, CMD_EXEC = -3, CMD_STORE_BOTH = -4 };

#define HIT(spot, times)	((spot) << 16 | (times))

struct shared {
	int spinning;
	int go;
	int stop;
};

static struct shared *shared;

/* Where one thread emulates all CPUs it goes on to the next one at a pause. */
static void pause_cpu(void)
{
	asm volatile("pause");
}

static void spin(void)
{
	__atomic_store_n(&shared->spinning, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		pause_cpu();
}

static long fork_and_hit(int i, int times)
{
	pid_t pid = fork();

	if (!pid) {
		hit(i, times);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid ? 0 : -errno;
}

static long worker(int cmd, void *arg)
{
	char *argv[] = { "perf_modify", NULL }, *envp[] = { "PERF_MODIFY_EXEC=1", NULL };

	switch (cmd) {
	case CMD_SPIN:
		spin();
		return 0;
	case CMD_FORK:
		return fork_and_hit(SECOND_BYTE, 5);
	case CMD_EXEC:
		execve("/proc/self/exe", argv, envp);
		return -errno;
	case CMD_STORE_BOTH:
		for (int i = 0; i < MANY; i++) {
			hit(FIRST_BYTE, 1);
			hit(SECOND_BYTE, 1);
			pause_cpu();
		}
		return 0;
	default:
		hit(cmd >> 16, cmd & 0xffff);
		return 0;
	}
}

/* The worker after its exec; a process has its pipes at 200 and 201. */
static void __attribute__((constructor)) worker_after_exec(void)
{
	long result = 0;

	if (!getenv("PERF_MODIFY_EXEC"))
		return;
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	if (write(201, &result, sizeof(result)) == sizeof(result))
		bp_work(worker, NULL, 200, 201);
	_exit(0);
}

/* ------------------------------------------------------- where the breakpoint is */

enum place { SELF, THREAD, SLEEPING, STOPPED, RUNNING, THIS_CPU, OTHER_CPU };

FIXTURE(place)
{
	struct bp_cpus cpus;
	struct bp_worker w;
	bool has_worker;
	enum place place;
	pid_t pid;
	int cpu;
	int neighbour[NEIGHBOURS];
	int nr_neighbours;
	long long neighbour_count[NEIGHBOURS];
};

FIXTURE_VARIANT(place)
{
	enum place place;
};

FIXTURE_VARIANT_ADD(place, own_task) { .place = SELF };
#ifdef __x86_64__
FIXTURE_VARIANT_ADD(place, other_thread) { .place = THREAD };
#endif
FIXTURE_VARIANT_ADD(place, sleeping_task) { .place = SLEEPING };
FIXTURE_VARIANT_ADD(place, stopped_task) { .place = STOPPED };
FIXTURE_VARIANT_ADD(place, running_task) { .place = RUNNING };
FIXTURE_VARIANT_ADD(place, this_cpu) { .place = THIS_CPU };
FIXTURE_VARIANT_ADD(place, other_cpu) { .place = OTHER_CPU };

FIXTURE_SETUP(place)
{
	enum place place = variant->place;

	self->cpus = bp_online_cpus();
	self->place = place;
	self->cpu = -1;
	ASSERT_NE(NULL, bp_map_page(PROT_READ | PROT_WRITE));
	shared = bp_map_shared();
	ASSERT_NE(NULL, shared);

	if (place == RUNNING || place == OTHER_CPU)
		BP_NEED_CPUS(self->cpus, 2);
	if (place == THIS_CPU || place == OTHER_CPU)
		BP_NEED_ROOT();

	if (place == OTHER_CPU || place == RUNNING)
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	if (place == THREAD)
		ASSERT_EQ(0, bp_start_thread(&self->w, worker, NULL));
	if (place == SLEEPING || place == STOPPED || place == RUNNING || place == OTHER_CPU)
		ASSERT_EQ(0, bp_start(&self->w, worker, NULL));
	self->has_worker = self->w.pid;
	if (place == THIS_CPU || place == OTHER_CPU || place == RUNNING)
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));

	self->pid = self->w.pid;
	if (place == THIS_CPU || place == OTHER_CPU) {
		self->pid = -1;
		self->cpu = self->cpus.cpu[place == OTHER_CPU];
	}
}

FIXTURE_TEARDOWN(place)
{
	bp_close(self->neighbour, self->nr_neighbours);
	if (self->has_worker)
		EXPECT_EQ(0, bp_stop(&self->w));
	bp_teardown(_metadata);
}

static int open_here(FIXTURE_DATA(place) *self, struct perf_event_attr *attr)
{
	return bp_open(attr, self->pid, self->cpu);
}

static void hit_here(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
		     int i, int times)
{
	if (!self->has_worker)
		hit(i, times);
	else
		EXPECT_EQ(0, bp_do(&self->w, HIT(i, times)));
}

/* Modifies the event while the task is in the state that the place is about. */
static int modify_here(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
		       int fd, struct perf_event_attr *attr)
{
	int cmd = CMD_SPIN, ret;
	long result;

	switch (self->place) {
	case SLEEPING:
		bp_wait_for_state(self->pid, 'S');
		return bp_modify(fd, attr);
	case STOPPED:
		EXPECT_EQ(0, kill(self->pid, SIGSTOP));
		EXPECT_EQ(self->pid, waitpid(self->pid, NULL, WUNTRACED));
		ret = bp_modify(fd, attr);
		EXPECT_EQ(0, kill(self->pid, SIGCONT));
		return ret;
	case RUNNING:
		shared->go = 0;
		shared->spinning = 0;
		EXPECT_EQ(sizeof(cmd), write(self->w.cmd[1], &cmd, sizeof(cmd)));
		while (!__atomic_load_n(&shared->spinning, __ATOMIC_ACQUIRE))
			sched_yield();
		ret = bp_modify(fd, attr);
		__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
		EXPECT_EQ(sizeof(result), read(self->w.ans[0], &result, sizeof(result)));
		return ret;
	default:
		return bp_modify(fd, attr);
	}
}

static void open_neighbours(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self)
{
	for (int i = 0; i < NEIGHBOURS; i++) {
		struct perf_event_attr attr = spot_attr(SPOTS + i);

		self->neighbour[i] = open_here(self, &attr);
		ASSERT_LE(0, self->neighbour[i]);
		self->nr_neighbours++;
	}
}

/* Each hit of theirs counts, and none of the others. */
static void expect_neighbours_count(struct __test_metadata *_metadata,
				    FIXTURE_DATA(place) *self)
{
	for (int i = 0; i < NEIGHBOURS; i++) {
		hit_here(_metadata, self, SPOTS + i, i + 1);
		self->neighbour_count[i] += i + 1;
		EXPECT_EQ(self->neighbour_count[i], count(_metadata, self->neighbour[i]));
	}
}

/* How many hits of all spots one counts that watches spot @watched */
static int hit_all_spots(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
			 int watched)
{
	int seen = 0;

	for (int i = 0; i < SPOTS; i++) {
		hit_here(_metadata, self, i, i + 1);
		seen += sees(watched, i) ? i + 1 : 0;
	}
	return seen;
}

/* ----------------------------------------------------- each change in each state */

enum state { ENABLED, SWITCHED_ON, DISABLED, SWITCHED_OFF, AT_NULL, TAKES_TURNS, STATES };

/* Opens a breakpoint on @from and brings it into @state; is it enabled now? */
static bool open_in_state(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
			  struct perf_event_attr *attr, enum state state, int *fd)
{
	attr->disabled = state == SWITCHED_ON || state == DISABLED || state == AT_NULL;
	attr->config = state == TAKES_TURNS ? FLEXIBLE : 0;
	if (state == AT_NULL)
		attr->bp_addr = 0;
	*fd = open_here(self, attr);
	EXPECT_LE(0, *fd) {
		TH_LOG("state %d", state);
	}
	if (state == SWITCHED_ON)
		EXPECT_EQ(0, bp_enable(*fd));
	if (state == SWITCHED_OFF)
		EXPECT_EQ(0, bp_disable(*fd));
	return state == ENABLED || state == SWITCHED_ON || state == TAKES_TURNS;
}

static void change(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
		   enum state state, int from, int to, bool disabled)
{
	struct perf_event_attr attr = spot_attr(from);
	long long want = 0;
	bool on;
	int fd;

	on = open_in_state(_metadata, self, &attr, state, &fd);
	hit_here(_metadata, self, from, 3);
	hit_here(_metadata, self, to, 2);
	if (on)
		want = 3 + (sees(from, to) ? 2 : 0);
	EXPECT_EQ(want, count(_metadata, fd));

	watch(&attr, to);
	attr.disabled = disabled;
	attr.sig_data = from * 1000 + to;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	EXPECT_EQ(want, count(_metadata, fd));
	hit_here(_metadata, self, from, 2);
	hit_here(_metadata, self, to, 4);
	if (!disabled)
		want += 4 + (sees(to, from) ? 2 : 0);
	EXPECT_EQ(want, count(_metadata, fd)) {
		TH_LOG("state %d, spot %d to %d, disabled %d", state, from, to, disabled);
	}

	EXPECT_EQ(0, bp_enable(fd));
	hit_here(_metadata, self, to, 1);
	EXPECT_EQ(want + 1, count(_metadata, fd));
	EXPECT_EQ(0, bp_disable(fd));
	hit_here(_metadata, self, to, 1);
	EXPECT_EQ(want + 1, count(_metadata, fd));
	EXPECT_EQ(0, close(fd));
}

static void change_from_each_to_each(struct __test_metadata *_metadata,
				     FIXTURE_DATA(place) *self, enum state state)
{
	open_neighbours(_metadata, self);
	for (int from = 0; from < SPOTS; from++) {
		for (int to = 0; to < SPOTS; to++) {
			change(_metadata, self, state, from, to, (from + to) & 1);
			if (from == to)
				change(_metadata, self, state, from, to, true);
			if (to % 4 == 0)
				expect_neighbours_count(_metadata, self);
		}
	}
}

TEST_F(place, change_of_an_enabled_one)
{
	change_from_each_to_each(_metadata, self, ENABLED);
}

TEST_F(place, change_of_one_opened_disabled_and_enabled)
{
	change_from_each_to_each(_metadata, self, SWITCHED_ON);
}

TEST_F(place, change_of_one_opened_disabled)
{
	change_from_each_to_each(_metadata, self, DISABLED);
}

TEST_F(place, change_of_one_opened_enabled_and_disabled)
{
	change_from_each_to_each(_metadata, self, SWITCHED_OFF);
}

TEST_F(place, change_of_one_opened_at_address_0)
{
	change_from_each_to_each(_metadata, self, AT_NULL);
}

TEST_F(place, change_of_one_that_takes_turns)
{
	change_from_each_to_each(_metadata, self, TAKES_TURNS);
}

TEST_F(place, same_one_through_all_spots_and_back)
{
	struct perf_event_attr attr = spot_attr(0);
	long long want = 0;
	int fd;

	open_neighbours(_metadata, self);
	fd = open_here(self, &attr);
	ASSERT_LE(0, fd);
	for (int i = 0; i < 5 * SPOTS; i++) {
		int to = i * 7 % SPOTS;

		watch(&attr, to);
		EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
		want += hit_all_spots(_metadata, self, to);
		EXPECT_EQ(want, count(_metadata, fd));
		expect_neighbours_count(_metadata, self);
	}
}

/* --------------------------------------------------------------- all or nothing */

struct refusal {
	const char *name;
	int err;
	void (*spoil)(struct perf_event_attr *attr);
};

static void spoil_len(struct perf_event_attr *attr)
{
	attr->bp_len = 3;
}

static void spoil_type(struct perf_event_attr *attr)
{
	attr->bp_type = HW_BREAKPOINT_W | HW_BREAKPOINT_X;
}

static void spoil_alignment(struct perf_event_attr *attr)
{
	attr->bp_addr = (unsigned long)word(20) + 1;
	attr->bp_len = 4;
	attr->bp_type = HW_BREAKPOINT_W;
}

static void spoil_kernel(struct perf_event_attr *attr)
{
	attr->bp_addr = KERNEL_ADDR;
	attr->bp_len = 4;
	attr->bp_type = HW_BREAKPOINT_W;
}

static void spoil_config(struct perf_event_attr *attr)
{
	attr->config ^= FLEXIBLE;
}

static void spoil_period(struct perf_event_attr *attr)
{
	attr->sample_period++;
}

static void spoil_flag(struct perf_event_attr *attr)
{
	attr->exclude_hv ^= 1;
}

static void spoil_format(struct perf_event_attr *attr)
{
	attr->read_format ^= PERF_FORMAT_ID;
}

static const struct refusal refusals[] = {
	{ "len", -EINVAL, spoil_len },
	{ "type", -EINVAL, spoil_type },
	{ "alignment", -EINVAL, spoil_alignment },
	{ "kernel address", -EINVAL, spoil_kernel },
	{ "config", -EINVAL, spoil_config },
	{ "period", -EINVAL, spoil_period },
	{ "flag", -EINVAL, spoil_flag },
	{ "read format", -EINVAL, spoil_format },
};

#define REFUSALS	((int)(sizeof(refusals) / sizeof(refusals[0])))

/* What is refused would also have moved the event and turned it over. */
static void refuse(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
		   enum state state, const struct refusal *r, bool disabled)
{
	struct perf_event_attr attr = spot_attr(FIRST_LONG), bad;
	long long want;
	bool on;
	int fd;

	on = open_in_state(_metadata, self, &attr, state, &fd);
	hit_here(_metadata, self, FIRST_LONG, 3);
	want = on ? 3 : 0;

	bad = attr;
	watch(&bad, SECOND_BYTE);
	bad.disabled = disabled;
	bad.sig_data = 77;
	r->spoil(&bad);
	EXPECT_EQ(r->err, modify_here(_metadata, self, fd, &bad));
	EXPECT_EQ(want, count(_metadata, fd));
	hit_here(_metadata, self, FIRST_LONG, 4);
	hit_here(_metadata, self, SECOND_BYTE, 2);
	want += on ? 4 : 0;
	EXPECT_EQ(want, count(_metadata, fd)) {
		TH_LOG("%s, state %d, disabled %d", r->name, state, disabled);
	}
	EXPECT_EQ(0, close(fd));
}

TEST_F(place, refused_one_changes_nothing)
{
	open_neighbours(_metadata, self);
	for (int i = 0; i < REFUSALS; i++) {
		for (int state = 0; state < STATES; state++) {
			refuse(_metadata, self, state, &refusals[i], false);
			refuse(_metadata, self, state, &refusals[i], true);
			expect_neighbours_count(_metadata, self);
		}
	}
}

/* --------------------------------------------------------------------- samples */

static __u64 next_addr(struct bp_ring *ring)
{
	union bp_record rec;

	while (bp_ring_next(ring, &rec)) {
		if (rec.header.type == PERF_RECORD_SAMPLE)
			return rec.u64[1];
	}
	return 0;
}

TEST_F(place, sample_has_the_address_of_its_time)
{
	struct perf_event_attr attr = spot_attr(0), bad;
	struct bp_ring ring;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ADDR;
	open_neighbours(_metadata, self);
	fd = open_here(self, &attr);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 8, PROT_READ | PROT_WRITE));
	for (int i = 0; i < 50; i++) {
		int to = i * 3 % SPOTS;

		watch(&attr, to);
		EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
		hit_here(_metadata, self, to, 3);
		bad = attr;
		watch(&bad, (to + 1) % SPOTS);
		bad.config = 2;
		EXPECT_EQ(-EINVAL, modify_here(_metadata, self, fd, &bad));
		hit_here(_metadata, self, to, 2);
	}
	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < 5; j++)
			EXPECT_EQ(spot_addr(i * 3 % SPOTS), next_addr(&ring));
	}
	EXPECT_EQ(0, next_addr(&ring));
	EXPECT_EQ(250, count(_metadata, fd));
	bp_ring_unmap(&ring);
}

TEST_F(place, period_goes_on_counting)
{
	struct perf_event_attr attr = spot_attr(FIRST_BYTE);
	struct bp_ring ring;
	int fd;

	attr.sample_period = 10;
	attr.sample_type = PERF_SAMPLE_ADDR;
	fd = open_here(self, &attr);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));

	hit_here(_metadata, self, FIRST_BYTE, 7);
	watch(&attr, SECOND_BYTE);
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	hit_here(_metadata, self, SECOND_BYTE, 2);
	EXPECT_EQ(0, next_addr(&ring));
	hit_here(_metadata, self, SECOND_BYTE, 1);
	EXPECT_EQ(spot_addr(SECOND_BYTE), next_addr(&ring));

	/* The same through all that it can be in between */
	hit_here(_metadata, self, SECOND_BYTE, 4);
	watch(&attr, FIRST_FUNC);
	attr.disabled = 1;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	hit_here(_metadata, self, FIRST_FUNC, 10);
	attr.bp_len = 1;
	EXPECT_EQ(-EINVAL, modify_here(_metadata, self, fd, &attr));
	watch(&attr, READ_LONG);
	attr.disabled = 0;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	hit_here(_metadata, self, READ_LONG, 5);
	EXPECT_EQ(0, next_addr(&ring));
	hit_here(_metadata, self, READ_LONG, 1);
	EXPECT_EQ(spot_addr(READ_LONG), next_addr(&ring));
	EXPECT_EQ(0, next_addr(&ring));
	EXPECT_EQ(20, count(_metadata, fd));
	bp_ring_unmap(&ring);
}

TEST_F(place, other_ioctls_work_on_after_it)
{
	struct perf_event_attr attr = spot_attr(FIRST_BYTE);
	struct bp_ring ring;
	__u64 period = 3;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ADDR;
	fd = open_here(self, &attr);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE));

	watch(&attr, SECOND_BYTE);
	attr.disabled = 1;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	hit_here(_metadata, self, SECOND_BYTE, 5);
	EXPECT_EQ(2, count(_metadata, fd));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	EXPECT_EQ(0, count(_metadata, fd));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));

	watch(&attr, FIRST_BYTE);
	attr.disabled = 0;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	hit_here(_metadata, self, FIRST_BYTE, 3);
	EXPECT_EQ(spot_addr(SECOND_BYTE), next_addr(&ring));
	EXPECT_EQ(spot_addr(SECOND_BYTE), next_addr(&ring));
	EXPECT_EQ(spot_addr(FIRST_BYTE), next_addr(&ring));
	EXPECT_EQ(0, next_addr(&ring));
	EXPECT_EQ(3, count(_metadata, fd));
	bp_ring_unmap(&ring);
}

/* ---------------------------------------------------------- what has to be equal */

FIXTURE(attr)
{
	struct bp_cpus cpus;
	struct perf_event_attr attr;
	char max_stack[16];
};

FIXTURE_SETUP(attr)
{
	self->cpus = bp_online_cpus();
	ASSERT_NE(NULL, bp_map_page(PROT_READ | PROT_WRITE));
	shared = bp_map_shared();
	ASSERT_NE(NULL, shared);
	self->attr = spot_attr(FIRST_BYTE);
	bp_read_file(MAX_STACK, self->max_stack, sizeof(self->max_stack));
}

FIXTURE_TEARDOWN(attr)
{
	bp_teardown(_metadata);
	if (!geteuid())
		bp_write_file(MAX_STACK, self->max_stack);
}

#define BITS_OF(field)							\
	{ offsetof(struct perf_event_attr, field) * 8,			\
	  (offsetof(struct perf_event_attr, field) +			\
	   sizeof(((struct perf_event_attr *)0)->field)) * 8 }

/*
 * Bits that can be changed, say how much there is to read, or have no meaning for
 * a breakpoint; attr.disabled is the first bit after read_format.
 */
static bool bit_is_free(unsigned int bit)
{
	static const unsigned int fields[][2] = {
		BITS_OF(size), BITS_OF(bp_type), BITS_OF(bp_addr), BITS_OF(bp_len),
		BITS_OF(branch_sample_type), BITS_OF(sig_data),
	};

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (bit >= fields[i][0] && bit < fields[i][1])
			return true;
	}
	return bit == (offsetof(struct perf_event_attr, read_format) + 8) * 8;
}

/* Each other bit is refused, and the event goes on, or stays off, as it was. */
static void flip_each_bit(struct __test_metadata *_metadata, struct perf_event_attr *attr,
			  bool on)
{
	struct perf_event_attr bad;
	long long want = 0;
	int fd, err;

	attr->disabled = on;
	fd = bp_open(attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, on ? bp_enable(fd) : bp_disable(fd));

	for (unsigned int bit = 0; bit < 8 * sizeof(bad); bit++) {
		if (bit_is_free(bit))
			continue;
		bad = *attr;
		watch(&bad, SECOND_BYTE);
		bad.disabled = bit & 1;
		((unsigned char *)&bad)[bit / 8] ^= 1 << bit % 8;
		err = bp_modify(fd, &bad);
		hit(FIRST_BYTE, 1);
		hit(SECOND_BYTE, 1);
		want += on;
		EXPECT_EQ(-EINVAL, err) {
			TH_LOG("bit %u of byte %u", bit % 8, bit / 8);
		}
		ASSERT_EQ(want, count(_metadata, fd)) {
			TH_LOG("bit %u of byte %u", bit % 8, bit / 8);
		}
	}
	EXPECT_EQ(0, close(fd));
}

TEST_F(attr, each_other_bit_has_to_be_the_same)
{
	flip_each_bit(_metadata, &self->attr, true);
	flip_each_bit(_metadata, &self->attr, false);
}

TEST_F(attr, each_other_bit_of_a_rich_one_has_to_be_the_same)
{
	self->attr.sample_period = 100000;
	self->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER;
	self->attr.sample_stack_user = 64;
	self->attr.sample_max_stack = 16;
	self->attr.wakeup_events = 3;
	self->attr.use_clockid = 1;
	self->attr.clockid = CLOCK_MONOTONIC;
	self->attr.comm = 1;
	self->attr.exclude_guest = 1;
	self->attr.sig_data = 5;
	flip_each_bit(_metadata, &self->attr, true);
	flip_each_bit(_metadata, &self->attr, false);
}

/* Moves the event there and back with the attributes that it was opened with. */
static void expect_modifiable(struct __test_metadata *_metadata, int fd,
			      const struct perf_event_attr *opened)
{
	struct perf_event_attr attr = *opened;
	__u64 before;

	EXPECT_EQ(0, bp_modify(fd, &attr));
	attr.disabled = 0;
	watch(&attr, SECOND_BYTE);
	EXPECT_EQ(0, bp_modify(fd, &attr));
	before = count(_metadata, fd);
	hit(SECOND_BYTE, 3);
	EXPECT_EQ(before + 3, count(_metadata, fd));
	watch(&attr, FIRST_BYTE);
	EXPECT_EQ(0, bp_modify(fd, &attr));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(before + 6, count(_metadata, fd));
}

TEST_F(attr, itself_is_accepted)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, itself_is_accepted_with_a_branch_sample_type)
{
	int fd;

	self->attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, itself_is_accepted_after_another_period)
{
	__u64 period = 50;
	int fd;

	self->attr.sample_period = 1000000;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_period = period;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, itself_is_accepted_after_another_frequency)
{
	__u64 freq = 50;
	int fd;

	self->attr.freq = 1;
	self->attr.sample_freq = 100;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&freq));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_freq = freq;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, itself_is_accepted_after_another_max_stack)
{
	int fd;

	BP_NEED_ROOT();
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_write_file(MAX_STACK, "64"));
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_max_stack = 64;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.sample_max_stack = atoi(self->max_stack);
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, itself_is_accepted_with_a_max_stack_of_its_own)
{
	int fd;

	self->attr.sample_max_stack = 16;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	expect_modifiable(_metadata, fd, &self->attr);
	self->attr.sample_max_stack = 17;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.sample_max_stack = 0;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
}

TEST_F(attr, itself_is_accepted_after_an_exec_enabled_it)
{
	struct bp_worker w;
	int fd;

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	fd = bp_open(&self->attr, w.pid, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(0, count(_metadata, fd));
	ASSERT_EQ(0, bp_do(&w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(5, count(_metadata, fd));

	self->attr.enable_on_exec = 0;
	EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
	self->attr.enable_on_exec = 1;
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(5, count(_metadata, fd));
	self->attr.disabled = 0;
	watch(&self->attr, SECOND_BYTE);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	EXPECT_EQ(0, bp_do(&w, HIT(SECOND_BYTE, 5)));
	EXPECT_EQ(10, count(_metadata, fd));
	EXPECT_EQ(0, bp_stop(&w));
}

TEST_F(attr, family_is_modified_after_another_period)
{
	struct bp_worker w;
	__u64 period = 50;
	int fd;

	self->attr.sample_period = 1000000;
	self->attr.inherit = 1;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	expect_modifiable(_metadata, fd, &self->attr);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));
	EXPECT_EQ(11, count(_metadata, fd));
	EXPECT_EQ(0, bp_stop(&w));
}

/* --------------------------------------------------------- sizes of the attributes */

union sized_attr {
	struct perf_event_attr attr;
	unsigned char bytes[8192];
};

/*
 * Whatever open says of a size, modify says of it, and both tell the right size
 * in the same cases. One that open takes can be used for an event that was opened
 * with another one.
 */
static void try_size(struct __test_metadata *_metadata, int fd,
		     const struct perf_event_attr *attr, unsigned int size, bool dirty_tail)
{
	union sized_attr *a = calloc(2, sizeof(*a));
	int err, opened;

	ASSERT_NE(NULL, a);
	for (int i = 0; i < 2; i++) {
		a[i].attr = *attr;
		a[i].attr.size = size;
		if (dirty_tail)
			a[i].bytes[size - 1] = 1;
	}
	opened = bp_open(&a[0].attr, 0, -1);
	err = bp_modify(fd, &a[1].attr);
	EXPECT_EQ(opened < 0 ? opened : 0, err) {
		TH_LOG("size %u%s", size, dirty_tail ? " with a tail" : "");
	}
	EXPECT_EQ(a[0].attr.size, a[1].attr.size);
	if (opened >= 0)
		expect_modifiable(_metadata, opened, attr);
	if (opened >= 0)
		EXPECT_EQ(0, close(opened));
	free(a);
}

TEST_F(attr, of_any_size_is_taken_as_open_takes_it)
{
	static const unsigned int sizes[] = {
		0, 1, 63, 64, 71, 72, 79, 80, 96, 104, 112, 120, 128, 135, 136, 137,
		144, 200, 1024, 4095, 4096, 4097, 8192, ~0U,
	};
	int fd;

	/* Two are open at once, where the other one does not go. */
	self->attr.bp_addr = (unsigned long)word(20);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		try_size(_metadata, fd, &self->attr, sizes[i], false);
		if (sizes[i] >= 200 && sizes[i] <= 8192)
			try_size(_metadata, fd, &self->attr, sizes[i], true);
	}
	expect_modifiable(_metadata, fd, &self->attr);
}

TEST_F(attr, unknown_tail_is_refused_and_the_size_told)
{
	union sized_attr a = { .attr = self->attr };
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	watch(&a.attr, SECOND_BYTE);
	a.attr.size = 1024;
	a.bytes[1000] = 1;
	EXPECT_EQ(-E2BIG, bp_modify(fd, &a.attr));
	EXPECT_LE(PERF_ATTR_SIZE_VER1, a.attr.size);
	EXPECT_GT(1000, a.attr.size);
	hit(FIRST_BYTE, 3);
	hit(SECOND_BYTE, 2);
	EXPECT_EQ(3, count(_metadata, fd));
}

TEST_F(attr, that_cannot_be_read_is_refused)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EFAULT, bp_modify(fd, NULL));
	EXPECT_EQ(-EFAULT, bp_modify(fd, (void *)(BP_PAGE + BP_PAGE_SIZE)));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(3, count(_metadata, fd));
}

TEST_F(attr, of_something_else_is_refused)
{
	struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(dummy),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int bp = bp_open(&self->attr, 0, -1), sw = bp_open(&dummy, 0, -1);

	ASSERT_LE(0, bp);
	ASSERT_LE(0, sw);
	EXPECT_EQ(-EOPNOTSUPP, bp_modify(sw, &dummy));
	EXPECT_EQ(-EINVAL, bp_modify(sw, &self->attr));
	EXPECT_EQ(-EINVAL, bp_modify(bp, &dummy));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(3, count(_metadata, bp));
}

/* -------------------------------------------------------------------- permission */

struct permission {
	int fd;
	struct perf_event_attr attr;
	struct perf_event_attr kernel;
};

static int modify_as_nobody(void *arg)
{
	struct permission *p = arg;

	if (bp_modify(p->fd, &p->kernel) != -EPERM && bp_modify(p->fd, &p->kernel) != -EACCES)
		return 1;
	p->kernel.disabled = 1;
	if (bp_modify(p->fd, &p->kernel) != -EPERM && bp_modify(p->fd, &p->kernel) != -EACCES)
		return 2;
	return 0;
}

static int move_as_nobody(void *arg)
{
	struct permission *p = arg;

	return bp_modify(p->fd, &p->attr) ? 1 : 0;
}

TEST_F(attr, kernel_address_is_for_the_privileged)
{
	struct bp_worker w;
	struct permission p;

	BP_NEED_ROOT();
	self->attr.exclude_kernel = 0;
	self->attr.inherit = 1;
	p.kernel = self->attr;
	p.attr = self->attr;
	p.kernel.bp_addr = KERNEL_ADDR;
	p.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, bp_start(&w, worker, NULL));

	EXPECT_EQ(0, bp_as_nobody(modify_as_nobody, &p));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 4)));
	EXPECT_EQ(7, count(_metadata, p.fd));

	watch(&p.attr, SECOND_BYTE);
	EXPECT_EQ(0, bp_as_nobody(move_as_nobody, &p));
	EXPECT_EQ(0, bp_modify(p.fd, &p.kernel));
	hit(FIRST_BYTE, 3);
	EXPECT_EQ(0, bp_modify(p.fd, &p.attr));
	hit(SECOND_BYTE, 3);
	EXPECT_EQ(0, bp_do(&w, HIT(SECOND_BYTE, 4)));
	EXPECT_EQ(14, count(_metadata, p.fd));
	EXPECT_EQ(0, bp_stop(&w));
}

/* ------------------------------------------------------------------------- groups */

/* Four breakpoints and a clock that shows whether the group was ever off */
struct group {
	struct perf_event_attr attr[BP_SLOTS];
	int fd[BP_SLOTS + 1];
	long long want[BP_SLOTS];
	int at[BP_SLOTS];
};

static void open_group(struct __test_metadata *_metadata, struct group *g, pid_t pid)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(clock),
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	memset(g, 0, sizeof(*g));
	for (int i = 0; i < BP_SLOTS; i++) {
		g->at[i] = i ? SPOTS + i - 1 : LEADER;
		g->attr[i] = spot_attr(g->at[i]);
		g->fd[i] = bp_open_group(&g->attr[i], pid, -1, i ? g->fd[0] : -1, 0);
		ASSERT_LE(0, g->fd[i]);
	}
	g->fd[BP_SLOTS] = bp_open_group(&clock, pid, -1, g->fd[0], 0);
	ASSERT_LE(0, g->fd[BP_SLOTS]);
}

/* @off: the member that is disabled, with all others if it leads; else -1 */
static void expect_group_counts(struct __test_metadata *_metadata, struct group *g, int off)
{
	for (int i = 0; i < BP_SLOTS; i++) {
		hit(g->at[i], i + 1);
		if (off && off != i)
			g->want[i] += i + 1;
	}
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_EQ(g->want[i], count(_metadata, g->fd[i]));
	count(_metadata, g->fd[BP_SLOTS]);
}

static void modify_member(struct __test_metadata *_metadata, struct group *g, int i)
{
	struct perf_event_attr *attr = &g->attr[i];
	int was = g->at[i];

	for (int j = 0; j < SPOTS; j++) {
		watch(attr, j);
		EXPECT_EQ(0, bp_modify(g->fd[i], attr));
		g->at[i] = j;
		expect_group_counts(_metadata, g, -1);
		attr->bp_len = 3;
		EXPECT_EQ(-EINVAL, bp_modify(g->fd[i], attr));
		expect_group_counts(_metadata, g, -1);
	}

	attr->disabled = 1;
	watch(attr, was);
	EXPECT_EQ(0, bp_modify(g->fd[i], attr));
	g->at[i] = was;
	expect_group_counts(_metadata, g, i);
	attr->disabled = 0;
	EXPECT_EQ(0, bp_modify(g->fd[i], attr));
	expect_group_counts(_metadata, g, -1);
}

TEST_F(attr, group_goes_on_when_its_leader_is_modified)
{
	struct group g;

	open_group(_metadata, &g, 0);
	modify_member(_metadata, &g, 0);
}

TEST_F(attr, group_goes_on_when_a_sibling_is_modified)
{
	struct group g;

	open_group(_metadata, &g, 0);
	for (int i = 1; i < BP_SLOTS; i++)
		modify_member(_metadata, &g, i);
}

/* Switched on by ioctl: what was refused once switched the leader off, and all with it. */
TEST_F(attr, group_goes_on_when_a_modify_is_refused)
{
	struct perf_event_attr attr;
	struct group g;

	open_group(_metadata, &g, 0);
	for (int i = 0; i < BP_SLOTS; i++) {
		attr = g.attr[i];
		attr.disabled = 1;
		EXPECT_EQ(0, bp_modify(g.fd[i], &attr));
		EXPECT_EQ(0, bp_enable(g.fd[i]));
		watch(&attr, SECOND_BYTE);
		attr.bp_len = 3;
		EXPECT_EQ(-EINVAL, bp_modify(g.fd[i], &attr));
		expect_group_counts(_metadata, &g, -1);
	}
}

/* ----------------------------------------------------------------------- families */

static void all_hit(struct __test_metadata *_metadata, struct bp_worker *w, int nr,
		    int i, int times)
{
	hit(i, times);
	while (nr--)
		EXPECT_EQ(0, bp_do(&w[nr], HIT(i, times)));
}

static void modify_family(struct __test_metadata *_metadata, struct perf_event_attr *attr,
			  struct bp_worker *w, int nr, bool threads)
{
	long long want = 0;
	__u64 period = 7777;
	int fd;

	attr->inherit = 1;
	fd = bp_open(attr, 0, -1);
	ASSERT_LE(0, fd);
	for (int i = 0; i < nr; i++) {
		ASSERT_EQ(0, threads ? bp_start_thread(&w[i], worker, NULL) :
				       bp_start(&w[i], worker, NULL));
	}
	for (int i = 0; i < SPOTS; i++) {
		watch(attr, i);
		attr->disabled = 0;
		EXPECT_EQ(0, bp_modify(fd, attr));
		all_hit(_metadata, w, nr, i, 3);
		want += 3 * (nr + 1);
		EXPECT_EQ(want, count(_metadata, fd));

		attr->config = FLEXIBLE;
		attr->disabled = 1;
		EXPECT_EQ(-EINVAL, bp_modify(fd, attr));
		attr->config = 0;
		all_hit(_metadata, w, nr, i, 1);
		want += nr + 1;
		EXPECT_EQ(want, count(_metadata, fd));

		EXPECT_EQ(0, bp_modify(fd, attr));
		all_hit(_metadata, w, nr, i, 2);
		EXPECT_EQ(want, count(_metadata, fd));
	}

	/* It is off: one of the ioctls for all of them */
	EXPECT_EQ(0, bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period));
	EXPECT_EQ(0, bp_enable(fd));
	watch(attr, SECOND_BYTE);
	attr->disabled = 0;
	EXPECT_EQ(0, bp_modify(fd, attr));
	all_hit(_metadata, w, nr, SECOND_BYTE, 2);
	want += 2 * (nr + 1);
	EXPECT_EQ(want, count(_metadata, fd));
	EXPECT_EQ(0, bp_disable(fd));
	all_hit(_metadata, w, nr, SECOND_BYTE, 2);
	EXPECT_EQ(want, count(_metadata, fd));

	/* Grandchildren are what the family is. */
	EXPECT_EQ(0, bp_modify(fd, attr));
	EXPECT_EQ(0, bp_do(&w[0], CMD_FORK));
	want += 5;
	EXPECT_EQ(want, count(_metadata, fd));
	for (int i = 0; i < nr; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
	EXPECT_EQ(want, count(_metadata, fd));
	EXPECT_EQ(0, bp_modify(fd, attr));
	hit(SECOND_BYTE, 1);
	EXPECT_EQ(want + 1, count(_metadata, fd));
}

TEST_F(attr, family_of_1_is_modified)
{
	struct bp_worker w[1];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 1, false);
}

TEST_F(attr, family_of_5_is_modified)
{
	struct bp_worker w[5];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 5, false);
}

TEST_F(attr, family_of_60_is_modified)
{
	struct bp_worker w[60];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 60, false);
}

#ifdef __x86_64__
TEST_F(attr, family_of_5_threads_is_modified)
{
	struct bp_worker w[5];

	self->attr.sample_period = 1000000;
	modify_family(_metadata, &self->attr, w, 5, true);
}
#endif

TEST_F(attr, family_is_modified_while_it_is_disabled)
{
	struct bp_worker w[3];
	int fd;

	self->attr.inherit = 1;
	self->attr.disabled = 1;
	self->attr.bp_addr = 0;
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, bp_start(&w[i], worker, NULL));
	watch(&self->attr, FIRST_FUNC);
	EXPECT_EQ(0, bp_modify(fd, &self->attr));
	all_hit(_metadata, w, 3, FIRST_FUNC, 2);
	EXPECT_EQ(0, count(_metadata, fd));
	EXPECT_EQ(0, bp_enable(fd));
	all_hit(_metadata, w, 3, FIRST_FUNC, 2);
	EXPECT_EQ(8, count(_metadata, fd));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(0, bp_stop(&w[i]));
}

/* --------------------------------------------------------------- dead and offline */

TEST_F(attr, event_of_a_dead_task_is_modified)
{
	struct bp_worker w;
	int fd[2];

	ASSERT_EQ(0, bp_start(&w, worker, NULL));
	fd[0] = bp_open(&self->attr, w.pid, -1);
	self->attr.disabled = 1;
	fd[1] = bp_open(&self->attr, w.pid, -1);
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);
	EXPECT_EQ(0, bp_do(&w, HIT(FIRST_BYTE, 5)));

	/* A zombie, then nothing at all */
	EXPECT_EQ(0, kill(w.pid, SIGKILL));
	bp_wait_for_state(w.pid, 'Z');
	for (int gone = 0; gone < 2; gone++) {
		for (int i = 0; i < 2 * SPOTS; i++) {
			watch(&self->attr, i / 2);
			self->attr.disabled = i & 1;
			EXPECT_EQ(0, bp_modify(fd[0], &self->attr));
			EXPECT_EQ(0, bp_modify(fd[1], &self->attr));
			EXPECT_EQ(BP_SLOTS, bp_free_slots(0, -1));
		}
		self->attr.bp_len = 3;
		EXPECT_EQ(-EINVAL, bp_modify(fd[0], &self->attr));
		EXPECT_EQ(5, count(_metadata, fd[0]));
		EXPECT_EQ(0, count(_metadata, fd[1]));
		EXPECT_EQ(0, bp_enable(fd[1]));
		if (!gone)
			EXPECT_EQ(256 + SIGKILL, bp_stop(&w));
	}
}

TEST_F(attr, event_of_an_offline_cpu_is_what_it_was_made_when_that_returns)
{
	char path[64];
	int cpu, fd[2];

	BP_NEED_ROOT();
	BP_NEED_CPUS(self->cpus, 2);
	cpu = self->cpus.cpu[1];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd[0] = bp_open(&self->attr, -1, cpu);
	self->attr.disabled = 1;
	fd[1] = bp_open(&self->attr, -1, cpu);
	self->attr.disabled = 0;
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);

	ASSERT_EQ(0, bp_pin(cpu));
	hit(FIRST_BYTE, 3);
	bp_unpin();
	ASSERT_EQ(0, bp_write_file(path, "0"));
	watch(&self->attr, FIRST_FUNC);
	EXPECT_EQ(0, bp_modify(fd[0], &self->attr));
	EXPECT_EQ(0, bp_modify(fd[1], &self->attr));
	self->attr.disabled = 1;
	self->attr.bp_len = 3;
	EXPECT_EQ(-EINVAL, bp_modify(fd[0], &self->attr));
	EXPECT_EQ(0, bp_write_file(path, "1"));
	ASSERT_EQ(0, bp_pin(cpu));
	hit(FIRST_BYTE, 3);
	hit(FIRST_FUNC, 4);
	EXPECT_EQ(7, count_any(fd[0]));
	EXPECT_EQ(4, count_any(fd[1]));
}

/* ---------------------------------------------------------------------- in turns */

/* More than there are registers: each is modified whether it has one or not. */
TEST_F(attr, those_that_take_turns_are_modified)
{
	enum { NR = BP_SLOTS + 3 };
	struct perf_event_attr attr[NR];
	__u64 end, before[NR];
	int fd[NR], served;

	for (int i = 0; i < NR; i++) {
		attr[i] = spot_attr(FIRST_BYTE);
		attr[i].config = FLEXIBLE;
		attr[i].bp_addr = (unsigned long)word(20 + i);
		fd[i] = bp_open(&attr[i], 0, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < NR; i++) {
			attr[i].config = 0;
			EXPECT_EQ(-EINVAL, bp_modify(fd[i], &attr[i]));
			attr[i].config = FLEXIBLE;
			attr[i].bp_addr = (unsigned long)word(20 + (i + round) % NR);
			EXPECT_EQ(0, bp_modify(fd[i], &attr[i]));
			before[i] = count_any(fd[i]);
		}
		/* Each gets its turn, and none counts what it does not watch now. */
		end = bp_now(CLOCK_MONOTONIC) + 20000000000ULL;
		do {
			served = 0;
			for (int i = 0; i < NR; i++) {
				bp_store_times(word(20 + (i + round) % NR), 1, 20);
				served += count_any(fd[i]) > before[i];
			}
		} while (served < NR && bp_now(CLOCK_MONOTONIC) < end);
		EXPECT_EQ(NR, served);
	}
	for (int i = 0; i < NR; i++) {
		attr[i].bp_addr = (unsigned long)word(30);
		EXPECT_EQ(0, bp_modify(fd[i], &attr[i]));
		before[i] = count_any(fd[i]);
	}
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < NR; i++)
			bp_store(word(20 + i), 1);
	}
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(before[i], count_any(fd[i]));
}

TEST_F(attr, flexible_bit_has_to_be_the_same)
{
	for (int flexible = 0; flexible < 2; flexible++) {
		int fd;

		self->attr.config = flexible;
		fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, fd);
		expect_modifiable(_metadata, fd, &self->attr);
		self->attr.config = !flexible;
		EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
		self->attr.config = 2 | flexible;
		EXPECT_EQ(-EINVAL, bp_modify(fd, &self->attr));
		hit(FIRST_BYTE, 1);
		EXPECT_EQ(7, count_any(fd));
		EXPECT_EQ(0, close(fd));
	}
}

/* --------------------------------------------------------------- at the same time */

#ifdef __x86_64__

/*
 * The breakpoints of the thread that stores, changed by another one over and over:
 * as a rule on another CPU, or whenever that one is preempted.
 */
struct storm {
	int fd;
	struct perf_event_attr attr;
	const int *at;
	int nr;
	bool refused;
	bool toggled;
	long done;
	long wrong;
};

static void *storm_thread(void *arg)
{
	struct storm *s = arg;
	int err;

	for (long i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE); i++) {
		struct perf_event_attr attr = s->attr;

		watch(&attr, s->at[i % s->nr]);
		attr.disabled = s->toggled && i % 2;
		if (s->refused && i % 3 == 2) {
			attr.bp_len = 3;
			err = bp_modify(s->fd, &attr) == -EINVAL ? 0 : 1;
		} else {
			err = bp_modify(s->fd, &attr);
		}
		s->wrong += err != 0;
		s->done++;
		/* Odd, for each of what it can be to be seen on a single CPU, too */
		if (i % 7 == 0)
			sched_yield();
	}
	return NULL;
}

/* Stores until enough of both was done; returns the number of rounds. */
static long store_in_storm(struct __test_metadata *_metadata, struct storm *s)
{
	pthread_t thread;
	long rounds = 0;

	shared->stop = 0;
	ASSERT_EQ(0, pthread_create(&thread, NULL, storm_thread, s));
	while (rounds < MANY || __atomic_load_n(&s->done, __ATOMIC_RELAXED) < MANY) {
		hit(FIRST_BYTE, 1);
		hit(SECOND_BYTE, 1);
		for (int i = 0; i < NEIGHBOURS; i++)
			hit(SPOTS + i, 1);
		rounds++;
		pause_cpu();
		if (rounds % 16 == 0)
			sched_yield();
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, s->wrong);
	return rounds;
}

/* All that it can be sees the store. */
TEST_F(attr, store_counts_once_whatever_is_changed_around_it)
{
	static const int at[] = { FIRST_BYTE, FIRST_LONG, 5 };
	struct storm s = { .attr = self->attr, .at = at, .nr = 3 };
	int neighbour[NEIGHBOURS];
	long rounds;

	for (int refused = 0; refused < 2; refused++) {
		s.done = 0;
		s.refused = refused;
		s.fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, s.fd);
		for (int i = 0; i < NEIGHBOURS; i++) {
			struct perf_event_attr attr = spot_attr(SPOTS + i);

			neighbour[i] = bp_open(&attr, 0, -1);
			ASSERT_LE(0, neighbour[i]);
		}
		rounds = store_in_storm(_metadata, &s);
		EXPECT_EQ(rounds, count(_metadata, s.fd));
		for (int i = 0; i < NEIGHBOURS; i++)
			EXPECT_EQ(rounds, count(_metadata, neighbour[i]));
		bp_close(neighbour, NEIGHBOURS);
		close(s.fd);
	}
}

TEST_F(attr, neighbours_count_all_whatever_is_changed_beside_them)
{
	static const int at[] = { FIRST_BYTE, FIRST_FUNC, SECOND_BYTE, READ_LONG, 4 };
	struct storm s = { .attr = self->attr, .at = at, .nr = 5, .refused = true };
	int neighbour[NEIGHBOURS];
	long rounds;

	for (int toggled = 0; toggled < 2; toggled++) {
		s.done = 0;
		s.toggled = toggled;
		s.fd = bp_open(&self->attr, 0, -1);
		ASSERT_LE(0, s.fd);
		for (int i = 0; i < NEIGHBOURS; i++) {
			struct perf_event_attr attr = spot_attr(SPOTS + i);

			neighbour[i] = bp_open(&attr, 0, -1);
			ASSERT_LE(0, neighbour[i]);
		}
		rounds = store_in_storm(_metadata, &s);
		for (int i = 0; i < NEIGHBOURS; i++)
			EXPECT_EQ(rounds, count(_metadata, neighbour[i]));
		EXPECT_GE(2 * rounds, count(_metadata, s.fd));
		bp_close(neighbour, NEIGHBOURS);
		close(s.fd);
	}
}

/* The siblings are not told by turns of the leader. */
TEST_F(attr, siblings_count_all_whatever_their_leader_is_changed_to)
{
	static const int at[] = { FIRST_BYTE, FIRST_FUNC, SECOND_BYTE, READ_LONG };
	struct storm s = { .at = at, .nr = 4, .refused = true };
	struct group g;
	long rounds;

	open_group(_metadata, &g, 0);
	s.fd = g.fd[0];
	s.attr = g.attr[0];
	rounds = store_in_storm(_metadata, &s);
	for (int i = 1; i < BP_SLOTS; i++)
		EXPECT_EQ(rounds, count(_metadata, g.fd[i]));
	EXPECT_GE(2 * rounds, count(_metadata, g.fd[0]));
}

/* It is at one of two at any time: no sample is of neither, or of both. */
TEST_F(attr, sample_is_of_what_was_hit_whatever_is_changed_around_it)
{
	static const int at[] = { FIRST_BYTE, SECOND_BYTE };
	struct storm s = { .at = at, .nr = 2 };
	long rounds, first = 0, second = 0;
	union bp_record rec;
	struct bp_ring ring;

	self->attr.sample_period = 1;
	self->attr.sample_type = PERF_SAMPLE_ADDR;
	s.attr = self->attr;
	s.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, s.fd);
	ASSERT_EQ(0, bp_ring_map(&ring, s.fd, 512, PROT_READ | PROT_WRITE));
	rounds = store_in_storm(_metadata, &s);
	EXPECT_EQ(0, bp_disable(s.fd));
	while (bp_ring_next(&ring, &rec)) {
		if (rec.header.type != PERF_RECORD_SAMPLE)
			continue;
		EXPECT_TRUE(rec.u64[1] == spot_addr(FIRST_BYTE) ||
			    rec.u64[1] == spot_addr(SECOND_BYTE));
		first += rec.u64[1] == spot_addr(FIRST_BYTE);
		second += rec.u64[1] == spot_addr(SECOND_BYTE);
	}
	EXPECT_EQ(first + second, count(_metadata, s.fd));
	EXPECT_GE(rounds, first);
	EXPECT_GE(rounds, second);
	EXPECT_LT(0, first);
	EXPECT_LT(0, second);
	bp_ring_unmap(&ring);
}

TEST_F(attr, families_count_all_whatever_is_changed_around_them)
{
	static const int at[] = { FIRST_BYTE, FIRST_LONG, 5 };
	struct storm s = { .at = at, .nr = 3, .refused = true };
	int cmd = CMD_STORE_BOTH;
	struct bp_worker w[4];
	long result, rounds;

	self->attr.inherit = 1;
	s.attr = self->attr;
	s.fd = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, s.fd);
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, bp_start(&w[i], worker, NULL));
		ASSERT_EQ(sizeof(cmd), write(w[i].cmd[1], &cmd, sizeof(cmd)));
	}
	rounds = store_in_storm(_metadata, &s);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(sizeof(result), read(w[i].ans[0], &result, sizeof(result)));
		EXPECT_EQ(0, bp_stop(&w[i]));
	}
	EXPECT_EQ(4 * MANY + rounds, count(_metadata, s.fd));
}

#endif

TEST_HARNESS_MAIN
