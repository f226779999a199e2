// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_MODIFY_ATTRIBUTES: each change, for events of different tasks and
 * CPUs.
 *
 * The rule: each hit before the change counts for the old address, each hit after it
 * for the new one, whatever state the event is in and on whatever CPU its task is. A
 * refused change leaves the event as it was.
 */
#include "modify.h"

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
#ifdef __LP64__
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
	ASSERT_TRUE(!!bp_map_page(PROT_READ | PROT_WRITE));
	shared = bp_map_shared();
	ASSERT_TRUE(!!shared);

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

/* Modifies the event while its task is in the state that the variant names. */
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

/* The neighbours count each hit of their own spots, and no other. */
static void expect_neighbours_count(struct __test_metadata *_metadata,
				    FIXTURE_DATA(place) *self)
{
	for (int i = 0; i < NEIGHBOURS; i++) {
		hit_here(_metadata, self, SPOTS + i, i + 1);
		self->neighbour_count[i] += i + 1;
		EXPECT_EQ(self->neighbour_count[i], count(_metadata, self->neighbour[i]));
	}
}

/* Returns how many hits of all spots an event counts that watches spot @watched. */
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

enum state { ENABLED, SWITCHED_ON, DISABLED, SWITCHED_OFF, AT_NULL, MULTIPLEXED, STATES };

/*
 * Opens a breakpoint on @from and brings it into @state; returns true if it is then
 * enabled.
 */
static bool open_in_state(struct __test_metadata *_metadata, FIXTURE_DATA(place) *self,
			  struct perf_event_attr *attr, enum state state, int *fd)
{
	attr->disabled = state == SWITCHED_ON || state == DISABLED || state == AT_NULL;
	attr->config = state == MULTIPLEXED ? BP_FLEXIBLE : 0;
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
	return state == ENABLED || state == SWITCHED_ON || state == MULTIPLEXED;
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

/*
 * Programs with 32-bit pointers use each spot three times: as the old one, as the new one
 * and as both. The results of all pairs do not depend on the ABI.
 */
static bool is_taken(int from, int to)
{
#ifdef __LP64__
	return true;
#else
	return to == from || to == (from + 3) % SPOTS;
#endif
}

static void change_from_each_to_each(struct __test_metadata *_metadata,
				     FIXTURE_DATA(place) *self, enum state state)
{
	open_neighbours(_metadata, self);
	for (int from = 0; from < SPOTS; from++) {
		for (int to = 0; to < SPOTS; to++) {
			if (!is_taken(from, to))
				continue;
			change(_metadata, self, state, from, to, (from + to) & 1);
			if (from == to)
				change(_metadata, self, state, from, to, true);
			if (to % 4 == 0)
				expect_neighbours_count(_metadata, self);
		}
	}
}

#define CHANGE_OF(name, state)						\
	TEST_F(place, change_of_##name)					\
	{								\
		change_from_each_to_each(_metadata, self, state);	\
	}

CHANGE_OF(an_enabled_one, ENABLED)
CHANGE_OF(one_opened_disabled_and_enabled, SWITCHED_ON)
CHANGE_OF(one_opened_disabled, DISABLED)
CHANGE_OF(one_opened_enabled_and_disabled, SWITCHED_OFF)
CHANGE_OF(one_opened_at_address_0, AT_NULL)

TEST_F(place, change_of_one_that_is_multiplexed)
{
	BP_NEED_CONFIG(BP_FLEXIBLE);
	change_from_each_to_each(_metadata, self, MULTIPLEXED);
}

#ifdef __LP64__
#define ROUNDS	5
#else
#define ROUNDS	1
#endif

TEST_F(place, event_moves_through_all_addresses_and_back)
{
	struct perf_event_attr attr = spot_attr(0);
	long long want = 0;
	int fd;

	open_neighbours(_metadata, self);
	fd = open_here(self, &attr);
	ASSERT_LE(0, fd);
	for (int i = 0; i < ROUNDS * SPOTS; i++) {
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
	attr->bp_len = 33;
}

static void spoil_type(struct perf_event_attr *attr)
{
	attr->bp_type = HW_BREAKPOINT_W | HW_BREAKPOINT_X;
}

static void spoil_alignment(struct perf_event_attr *attr)
{
	attr->bp_addr = (unsigned long)word(20) + 1;
	attr->bp_len = 16;
	attr->bp_type = HW_BREAKPOINT_W;
}

static void spoil_kernel(struct perf_event_attr *attr)
{
	attr->bp_addr = KERNEL_ADDR;
	attr->bp_len = 4;
	attr->bp_type = HW_BREAKPOINT_W;
}

static void spoil_move_to_kernel(struct perf_event_attr *attr)
{
	watch(attr, FIRST_LONG);
	attr->bp_addr = KERNEL_ADDR;
}

static void spoil_config(struct perf_event_attr *attr)
{
	attr->config ^= BP_FLEXIBLE;
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
	{ "move to a kernel address", -EINVAL, spoil_move_to_kernel },
	{ "config", -EINVAL, spoil_config },
	{ "period", -EINVAL, spoil_period },
	{ "flag", -EINVAL, spoil_flag },
	{ "read format", -EINVAL, spoil_format },
};

#define REFUSALS	((int)(sizeof(refusals) / sizeof(refusals[0])))

/* Each refused request would also move the event and enable or disable it. */
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

TEST_F(place, refused_modify_changes_nothing)
{
	bool multiplexes = bp_has_config(BP_FLEXIBLE);

	open_neighbours(_metadata, self);
	for (int i = 0; i < REFUSALS; i++) {
		for (int state = 0; state < STATES; state++) {
			if (state == MULTIPLEXED && !multiplexes)
				continue;
			refuse(_metadata, self, state, &refusals[i], false);
			refuse(_metadata, self, state, &refusals[i], true);
			expect_neighbours_count(_metadata, self);
		}
	}
}

/* --------------------------------------------------------------------- samples */

TEST_F(place, sample_has_the_address_at_the_time_of_the_hit)
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

	/* The same after the breakpoint had other types and lengths */
	hit_here(_metadata, self, SECOND_BYTE, 4);
	watch(&attr, FIRST_FUNC);
	attr.disabled = 1;
	EXPECT_EQ(0, modify_here(_metadata, self, fd, &attr));
	hit_here(_metadata, self, FIRST_FUNC, 10);
	attr.bp_len = 33;
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

TEST_F(place, other_ioctls_work_after_modify)
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

TEST_HARNESS_MAIN
