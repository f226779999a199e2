// SPDX-License-Identifier: GPL-2.0
/*
 * Inherited events, from fork to exec, while they are changed.
 *
 * A family is an event and all events that children inherited from it; its members are
 * the tasks of these events.
 *
 * The rule: the attributes decide for each clone() whether an event is inherited. exec
 * removes the events that have remove_on_exec and releases their registers at once. A
 * change of a family reaches each member, also one that is being created. Operations
 * that run at the same time do not deadlock.
 */
#include "bp_test.h"

#define MANY		100
#define SECOND		1000000000ULL

/* The pipes of a worker, see bp_worker_process(): the next image uses them, too. */
#define WORKER_IN	200
#define WORKER_OUT	201

enum {
	CMD_STORE = 1, CMD_FORK, CMD_VFORK, CMD_THREAD, CMD_FREE, CMD_FILL, CMD_TOUCH,
	CMD_NOBODY, CMD_EXEC, CMD_EXEC_THREAD, CMD_FORK_EXEC, CMD_VFORK_EXEC,
	CMD_SPAWN, CMD_GO,
};

/* Pages to touch for the first time, which gives software events something to count */
#define NR_PAGES	256
#define PAGES_SIZE	(NR_PAGES * 4096)

static char *page;
static char *pages;

/* ------------------------------------------------------------ commands of a member */

/* Returns how many breakpoints of its own the task can open, and have hit. */
static int open_and_hit(void)
{
	int fd[BP_SLOTS], nr, good = 0;

	for (nr = 0; nr < BP_SLOTS; nr++) {
		fd[nr] = bp_open_w(page + 1024 + 64 * nr, 1);
		if (fd[nr] < 0)
			break;
	}
	for (int i = 0; i < nr; i++)
		bp_store_times(page + 1024 + 64 * i, 1, 10);
	for (int i = 0; i < nr; i++)
		good += bp_count(fd[i]) == 10;
	bp_close(fd, nr);
	return good;
}

static long touch_pages(void)
{
	if (madvise(pages, PAGES_SIZE, MADV_DONTNEED))
		return -errno;
	for (int i = 0; i < NR_PAGES; i++)
		bp_store(pages + 4096 * i, 1);
	return 0;
}

static void *store_thread(void *arg)
{
	bp_store_times(page, 1, MANY);
	return NULL;
}

/* Returns the exit status of a child, which has executed the caller's command. */
static long await(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

static void __attribute__((noreturn)) exec_image(const char *what)
{
	execl("/proc/self/exe", "perf_family", what, NULL);
	_exit(255);
}

static long store_in_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		bp_store_times(page, 1, MANY);
		_exit(0);
	}
	return await(pid);
}

static long store_in_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		bp_store_times(page, 1, MANY);
		_exit(0);
	}
	return await(pid);
}

/* Hits before and after exec; the exit status is the number of free slots after it. */
static long exec_in_fork(bool share)
{
	pid_t pid = share ? vfork() : fork();

	if (!pid) {
		bp_store_times(page, 1, MANY);
		exec_image("--store");
	}
	return await(pid);
}

/* exec by a thread that is not the leader and has a full set of its own events */
static void *exec_thread(void *arg)
{
	struct perf_event_attr attr = bp_attr_w(page + 512, 1);

	bp_store_times(page, 1, MANY);
	attr.remove_on_exec = 1;
	while (bp_open_group(&attr, 0, -1, -1, 0) >= 0)
		;
	exec_image("--work");
	return NULL;
}

#define NR_SPAWN	6

/* Children that are created while the family is changed, and then wait. */
struct spawn {
	volatile int born;
	bool execute;
};

static struct spawn *spawn;
static pid_t spawned[NR_SPAWN];
static int gate[2];

/* Hits the old breakpoint once and the new one ten times. */
static void grandchild(void)
{
	char c;

	close(gate[1]);
	if (read(gate[0], &c, 1) != 0)
		_exit(1);
	bp_store_times(page, 1, 1);
	if (!spawn->execute)
		bp_store_times(page + 64, 1, 10);
	for (int i = 0; spawn->execute && i < 10; i++)
		bp_func();
	_exit(0);
}

static long spawn_many(void)
{
	int nr;

	if (pipe(gate))
		return -errno;
	for (nr = 0; nr < NR_SPAWN; nr++) {
		spawned[nr] = fork();
		if (!spawned[nr])
			grandchild();
		if (spawned[nr] < 0)
			return -errno;
		spawn->born = nr + 1;
	}
	return nr;
}

static long let_them_go(void)
{
	long err = 0;

	close(gate[1]);
	for (int i = 0; i < NR_SPAWN; i++)
		err |= await(spawned[i]);
	close(gate[0]);
	return err;
}

static long member(int cmd, void *arg)
{
	pthread_t thread;

	switch (cmd) {
	case CMD_STORE:
		bp_store_times(page, 1, MANY);
		return 0;
	case CMD_FORK:
		return store_in_fork();
	case CMD_VFORK:
		return store_in_vfork();
	case CMD_THREAD:
		if (pthread_create(&thread, NULL, store_thread, NULL))
			return -EAGAIN;
		return pthread_join(thread, NULL);
	case CMD_FREE:
		return bp_free_slots(0, -1);
	case CMD_FILL:
		return open_and_hit();
	case CMD_TOUCH:
		return touch_pages();
	case CMD_NOBODY:
		return bp_become_nobody();
	case CMD_EXEC:
		exec_image("--work");
		break;
	case CMD_EXEC_THREAD:
		if (pthread_create(&thread, NULL, exec_thread, NULL))
			return -EAGAIN;
		for (;;)
			pause();
	case CMD_FORK_EXEC:
		return exec_in_fork(false);
	case CMD_VFORK_EXEC:
		return exec_in_fork(true);
	case CMD_SPAWN:
		return spawn_many();
	case CMD_GO:
		return let_them_go();
	}
	return -EINVAL;
}

static bool map_pages(void)
{
	page = bp_map_page(PROT_READ | PROT_WRITE);
	pages = mmap(NULL, PAGES_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page && pages != MAP_FAILED;
}

static struct perf_event_attr faults(void)
{
	struct perf_event_attr attr = bp_attr_sw(PERF_COUNT_SW_PAGE_FAULTS);

	return attr;
}

/* poll() always reports a hangup for an event without a ring. */
static bool has_hung_up(int fd)
{
	struct pollfd p = { .fd = fd };
	struct bp_ring ring;
	bool hup;

	if (bp_ring_map(&ring, fd, 1, PROT_READ | PROT_WRITE))
		return false;
	hup = poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
	bp_ring_unmap(&ring);
	return hup;
}

/* Kinds of breakpoints that are inherited or removed */
#define KINDS_OF(fixture)						\
	FIXTURE_VARIANT(fixture)					\
	{								\
		__u64 config;						\
		bool bound;						\
	};								\
	FIXTURE_VARIANT_ADD(fixture, guaranteed) { };			\
	FIXTURE_VARIANT_ADD(fixture, flexible) { .config = BP_FLEXIBLE };	\
	FIXTURE_VARIANT_ADD(fixture, bound_to_a_cpu) { .bound = true }

/*
 * Attributes of a breakpoint on the page; bound to @cpu, where this task is pinned, if
 * not -1
 */
static struct perf_event_attr attr_of_kind(struct __test_metadata *_metadata, __u64 config,
					   int cpu)
{
	struct perf_event_attr attr = bp_attr_w(page, 1);

	if (cpu >= 0)
		EXPECT_EQ(0, bp_pin(cpu));
	attr.config = config;
	return attr;
}

/* ------------------------------------------------------------------- inherit_thread */

FIXTURE(thread)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	int cpu;
};

KINDS_OF(thread);

FIXTURE_SETUP(thread)
{
	ASSERT_TRUE(map_pages());
	self->cpus = bp_online_cpus();
	self->cpu = variant->bound ? self->cpus.cpu[0] : -1;
	self->attr = attr_of_kind(_metadata, variant->config, self->cpu);
	self->attr.inherit = 1;
	self->attr.inherit_thread = 1;
}

FIXTURE_TEARDOWN(thread)
{
	bp_teardown(_metadata);
}

TEST_F(thread, needs_inherit)
{
	struct perf_event_attr sw = faults();

	self->attr.inherit = 0;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, self->cpu));
	sw.inherit_thread = 1;
	EXPECT_EQ(-EINVAL, bp_open(&sw, 0, self->cpu));
	sw.inherit = 1;
	EXPECT_LE(0, bp_open(&sw, 0, self->cpu));
}

TEST_F(thread, threads_and_threads_of_threads_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&thread, CMD_THREAD));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(2 * MANY + 3, bp_count(fd));
}

TEST_F(thread, forks_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_do(&child, CMD_THREAD));
	EXPECT_EQ(0, bp_do(&child, CMD_FORK));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(0, bp_count(fd));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(3, bp_count(fd));
}

TEST_F(thread, vforks_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, store_in_vfork());
	EXPECT_EQ(0, bp_count(fd));
}

TEST_F(thread, forks_of_threads_do_not_count)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_FORK));
	EXPECT_EQ(0, bp_do(&thread, CMD_VFORK));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_EQ(0, bp_do(&thread, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&thread));
}

TEST_F(thread, threads_have_claims_and_forks_do_not)
{
	int fd = bp_open(&self->attr, 0, self->cpu);
	struct bp_worker thread, child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FREE));
	close(fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&thread, CMD_FREE));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_EQ(0, bp_stop(&child));
}

/* If only one event of a group has inherit_thread, fork separates the group. */
TEST_F(thread, sibling_is_inherited_by_threads_only_though_its_leader_is_by_forks)
{
	struct perf_event_attr sibling = self->attr;
	struct bp_worker child;
	int a, b;

	self->attr.inherit_thread = 0;
	sibling.bp_addr += 128;
	a = bp_open(&self->attr, 0, self->cpu);
	ASSERT_LE(0, a);
	b = bp_open_group(&sibling, 0, self->cpu, a, 0);
	ASSERT_LE(0, b);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY, bp_count(a));
	EXPECT_EQ(0, bp_count(b));
}

TEST_F(thread, software_events_follow_the_same_rule)
{
	struct perf_event_attr sw = faults();
	struct bp_worker thread, child;
	int fd;

	sw.inherit = 1;
	sw.inherit_thread = 1;
	fd = bp_open(&sw, 0, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_TOUCH));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_GT(NR_PAGES, bp_count(fd));
	ASSERT_EQ(0, bp_start_thread(&thread, member, NULL));
	EXPECT_EQ(0, bp_do(&thread, CMD_TOUCH));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_LE(NR_PAGES, bp_count(fd));
}

/* -------------------------------------------------------------------- remove_on_exec */

FIXTURE(exec)
{
	struct perf_event_attr attr;
	struct bp_cpus cpus;
	struct bp_worker w;
	int cpu;
};

KINDS_OF(exec);

FIXTURE_SETUP(exec)
{
	ASSERT_TRUE(map_pages());
	self->cpus = bp_online_cpus();
	self->cpu = variant->bound ? self->cpus.cpu[0] : -1;
	self->attr = attr_of_kind(_metadata, variant->config, self->cpu);
	self->attr.remove_on_exec = 1;
	ASSERT_EQ(0, bp_start(&self->w, member, NULL));
}

FIXTURE_TEARDOWN(exec)
{
	EXPECT_EQ(0, bp_stop(&self->w));
	bp_teardown(_metadata);
}

/*
 * Expects that all of the worker's registers are available, for the worker and for
 * others.
 */
static void expect_all_free(struct __test_metadata *_metadata, FIXTURE_DATA(exec) *self)
{
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FREE));
	EXPECT_EQ(BP_SLOTS, bp_free_slots(self->w.pid, -1));
	if (!geteuid()) {
		for (int i = 0; i < self->cpus.nr; i++)
			EXPECT_EQ(BP_SLOTS, bp_free_slots(-1, self->cpus.cpu[i]));
	}
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FILL));
}

TEST_F(exec, together_with_enable_on_exec_is_refused)
{
	struct perf_event_attr sw = faults();

	self->attr.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&self->attr, 0, self->cpu));
	sw.remove_on_exec = 1;
	sw.enable_on_exec = 1;
	EXPECT_EQ(-EINVAL, bp_open(&sw, 0, self->cpu));
	sw.enable_on_exec = 0;
	EXPECT_LE(0, bp_open(&sw, 0, self->cpu));
}

TEST_F(exec, events_are_gone_and_the_descriptors_stay)
{
	int fd[BP_SLOTS];

	for (int i = 0; i < BP_SLOTS; i++) {
		fd[i] = bp_open(&self->attr, self->w.pid, self->cpu);
		ASSERT_LE(0, fd[i]);
		self->attr.bp_addr += 64;
	}
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd[0]));
	EXPECT_FALSE(has_hung_up(fd[0]));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd[0]));
	for (int i = 0; i < BP_SLOTS; i++)
		EXPECT_TRUE(has_hung_up(fd[i]));
	expect_all_free(_metadata, self);
	bp_close(fd, BP_SLOTS);
	expect_all_free(_metadata, self);
}

TEST_F(exec, disabled_events_are_gone_too)
{
	int fd;

	self->attr.disabled = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, nothing_brings_an_event_back)
{
	int fd = bp_open(&self->attr, self->w.pid, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	bp_disable(fd);
	bp_enable(fd);
	prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
	prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0);
	bp_modify(fd, &self->attr);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, events_without_the_bit_survive)
{
	struct perf_event_attr other = self->attr;
	int fd, removed;

	self->attr.remove_on_exec = 0;
	other.bp_addr += 64;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	removed = bp_open(&other, self->w.pid, self->cpu);
	ASSERT_LE(0, removed);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_FALSE(has_hung_up(fd));
	EXPECT_TRUE(has_hung_up(removed));
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&self->w, CMD_FREE));
}

TEST_F(exec, software_events_go_by_the_same_rule)
{
	struct perf_event_attr sw = faults();
	int stays, goes;
	long long count;

	stays = bp_open(&sw, self->w.pid, self->cpu);
	ASSERT_LE(0, stays);
	sw.remove_on_exec = 1;
	goes = bp_open(&sw, self->w.pid, self->cpu);
	ASSERT_LE(0, goes);
	EXPECT_EQ(0, bp_do(&self->w, CMD_TOUCH));
	EXPECT_LE(NR_PAGES, bp_count(goes));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_TRUE(has_hung_up(goes));
	EXPECT_FALSE(has_hung_up(stays));
	count = bp_count(goes);
	EXPECT_EQ(0, bp_do(&self->w, CMD_TOUCH));
	EXPECT_EQ(count, bp_count(goes));
	EXPECT_LE(2 * NR_PAGES, bp_count(stays));
}

/* The members are removed one by one, and their counts are kept. */
TEST_F(exec, child_that_execs_leaves_its_count_to_the_family)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FORK_EXEC));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_FORK));
	EXPECT_EQ(3 * MANY, bp_count(fd));
}

TEST_F(exec, vfork_child_that_execs_leaves_its_count_to_the_family)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_VFORK_EXEC));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
}

TEST_F(exec, child_that_execs_does_not_affect_a_parent_without_inherit)
{
	int fd = bp_open(&self->attr, self->w.pid, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_VFORK_EXEC));
	EXPECT_EQ(BP_SLOTS, bp_do(&self->w, CMD_FORK_EXEC));
	EXPECT_EQ(0, bp_count(fd));
	EXPECT_FALSE(has_hung_up(fd));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
}

TEST_F(exec, family_goes_on_when_the_parent_execs)
{
	struct bp_worker child;
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, 0, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bp_start(&child, member, NULL));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(0, bp_do(&child, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&child, CMD_STORE));
	EXPECT_EQ(BP_SLOTS, bp_do(&child, CMD_FILL));
	bp_store_times(page, 1, 3);
	EXPECT_EQ(MANY + 3, bp_count(fd));
	EXPECT_EQ(0, bp_stop(&child));
	EXPECT_EQ(MANY + 3, bp_count(fd));
}

/*
 * The thread gets the pid of the leader, which exits. The leader has a full set of its
 * own.
 */
TEST_F(exec, thread_that_execs_loses_its_own_and_those_it_inherited)
{
	int fd;

	self->attr.inherit = 1;
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC_THREAD));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(fd));
	expect_all_free(_metadata, self);
}

/*
 * The new image opens as many events as there are registers, and reads an inherited
 * descriptor.
 */
static int exec_with_own_events(void *arg)
{
	struct perf_event_attr attr = *(struct perf_event_attr *)arg;
	char text[16];
	int fd = -1;

	for (int i = 0; i < BP_SLOTS; i++) {
		attr.bp_addr = (unsigned long)page + 64 * (BP_SLOTS - 1 - i);
		fd = bp_open_group(&attr, 0, -1, -1, 0);
		if (fd < 0)
			return 200;
	}
	bp_store_times(page, 1, MANY);
	snprintf(text, sizeof(text), "%d", fd);
	execl("/proc/self/exe", "perf_family", "--image", text, NULL);
	return 201;
}

TEST_F(exec, new_image_finds_its_own_events_gone)
{
	EXPECT_EQ(BP_SLOTS, bp_in_child(exec_with_own_events, &self->attr));
}

TEST_F(exec, new_image_of_nobody_finds_its_own_events_gone)
{
	BP_NEED_ROOT();
	EXPECT_EQ(BP_SLOTS, bp_as_nobody(exec_with_own_events, &self->attr));
}

/* Events that root opened are removed at exec of a task that could not open them. */
TEST_F(exec, events_of_another_user_are_removed)
{
	int fd;

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_do(&self->w, CMD_NOBODY));
	fd = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(fd));
	EXPECT_TRUE(has_hung_up(fd));
	expect_all_free(_metadata, self);
}

TEST_F(exec, siblings_go_on_without_their_leader)
{
	struct perf_event_attr sibling = self->attr;
	int leader, a, b;

	sibling.remove_on_exec = 0;
	self->attr.bp_addr += 64;
	leader = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	a = bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, a);
	sibling.bp_addr += 128;
	b = bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, b);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_TRUE(has_hung_up(leader));
	EXPECT_FALSE(has_hung_up(a));
	EXPECT_EQ(2 * MANY, bp_count(a));
	EXPECT_EQ(-ENODEV, bp_open_group(&sibling, self->w.pid, self->cpu, leader, 0));
	EXPECT_EQ(0, bp_disable(a));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(2 * MANY, bp_count(a));
	EXPECT_EQ(0, bp_enable(a));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(3 * MANY, bp_count(a));
	EXPECT_EQ(variant->config ? BP_SLOTS - 1 : BP_SLOTS - 2, bp_do(&self->w, CMD_FREE));
	close(leader);
	close(b);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(4 * MANY, bp_count(a));
}

TEST_F(exec, leader_goes_on_without_a_sibling)
{
	struct perf_event_attr leader_attr = self->attr;
	struct {
		__u64 nr, count[BP_SLOTS];
	} r = { };
	int leader, sibling;

	leader_attr.remove_on_exec = 0;
	leader_attr.read_format = PERF_FORMAT_GROUP;
	self->attr.bp_addr += 64;
	self->attr.read_format = PERF_FORMAT_GROUP;
	leader = bp_open(&leader_attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	sibling = bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_TRUE(has_hung_up(sibling));
	EXPECT_FALSE(has_hung_up(leader));
	EXPECT_EQ(16, read(leader, &r, sizeof(r)));
	EXPECT_EQ(1, r.nr);
	EXPECT_EQ(MANY, r.count[0]);
	EXPECT_EQ(BP_SLOTS - 1, bp_do(&self->w, CMD_FREE));
	EXPECT_LE(0, bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0));
}

TEST_F(exec, whole_groups_are_removed)
{
	int leader, sibling;

	leader = bp_open(&self->attr, self->w.pid, self->cpu);
	ASSERT_LE(0, leader);
	self->attr.bp_addr += 64;
	sibling = bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0);
	ASSERT_LE(0, sibling);
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(0, bp_do(&self->w, CMD_EXEC));
	EXPECT_EQ(0, bp_do(&self->w, CMD_STORE));
	EXPECT_EQ(MANY, bp_count(leader));
	EXPECT_TRUE(has_hung_up(leader));
	EXPECT_TRUE(has_hung_up(sibling));
	EXPECT_EQ(-ENODEV, bp_open_group(&self->attr, self->w.pid, self->cpu, leader, 0));
	expect_all_free(_metadata, self);
}

/* ------------------------------------------------------- absence of deadlocks */

#define RUN_TIME	(3 * SECOND)

FIXTURE(ending)
{
	int hotplug;
};

FIXTURE_SETUP(ending)
{
	ASSERT_TRUE(map_pages());
	self->hotplug = -1;
}

FIXTURE_TEARDOWN(ending)
{
	if (self->hotplug >= 0)
		bp_cpu_online(self->hotplug, true);
	bp_teardown(_metadata);
}

/*
 * Runs fn() in a process, and waits for it only after it has reported that fn()
 * returned: a process in a deadlock cannot even be killed. The process closes its
 * inherited descriptors; otherwise a reader of the test's output would wait for it as
 * well. Returns the result of fn(), or -ETIMEDOUT.
 */
static int run_bounded(int (*fn)(__u64 until), __u64 time, int seconds)
{
	int end[2], result;
	struct pollfd p;
	pid_t pid;

	if (pipe2(end, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		int out = fcntl(end[1], F_DUPFD_CLOEXEC, 200);

		syscall(__NR_close_range, 0, 199, 0);
		result = fn(bp_now(CLOCK_MONOTONIC) + time);
		if (write(out, &result, sizeof(result)) != sizeof(result))
			_exit(1);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	close(end[1]);
	p.fd = end[0];
	p.events = POLLIN;
	if (poll(&p, 1, (time / SECOND + seconds) * 1000) != 1) {
		kill(pid, SIGKILL);
		return -ETIMEDOUT;
	}
	if (read(end[0], &result, sizeof(result)) != sizeof(result))
		result = -EPIPE;
	close(end[0]);
	waitpid(pid, NULL, 0);
	return result;
}

static __u64 run_until;

static bool go_on(void)
{
	return bp_now(CLOCK_MONOTONIC) < run_until;
}

static void switch_mine(void)
{
	prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
	prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0);
}

static void *change_type(void *arg)
{
	struct perf_event_attr w = bp_attr_w(bp_func, 8), x = bp_attr_x(bp_func);
	int fd = *(int *)arg;
	long err = 0;

	while (!err && go_on()) {
		err = bp_modify(fd, &x);
		if (!err)
			err = bp_modify(fd, &w);
	}
	return (void *)err;
}

static int modify_and_prctl(__u64 until)
{
	struct perf_event_attr attr = bp_attr_w(bp_func, 8);
	int fd = bp_open(&attr, 0, -1);
	pthread_t thread;
	void *err;

	run_until = until;
	if (fd < 0)
		return fd;
	if (pthread_create(&thread, NULL, change_type, &fd))
		return -EAGAIN;
	while (go_on())
		switch_mine();
	pthread_join(thread, &err);
	return (long)err;
}

TEST_F(ending, modify_of_the_type_while_prctl_switches_the_event)
{
	int err = run_bounded(modify_and_prctl, RUN_TIME, 10);

	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("modify and prctl wait for each other");
	EXPECT_EQ(0, err);
}

static void exec_until(__u64 until)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)until);
	execl("/proc/self/exe", "perf_family", "--again", text, NULL);
	_exit(255);
}

#define NR_OWNED	24

/*
 * Opens events, some of them breakpoints, of a task that calls exec() repeatedly; this
 * task is their owner.
 */
static int own_events_of(pid_t pid)
{
	struct perf_event_attr bp = bp_attr_w(page, 1), sw = faults();
	int fd[NR_OWNED], nr, in_time = 0;

	bp.remove_on_exec = 1;
	sw.remove_on_exec = 1;
	while (go_on()) {
		for (nr = 0; nr < NR_OWNED; nr++) {
			fd[nr] = bp_open(nr % 8 ? &sw : &bp, pid, -1);
			if (fd[nr] < 0)
				break;
		}
		in_time += nr;
		for (int i = 0; i < 5; i++)
			switch_mine();
		bp_close(fd, nr);
	}
	return in_time ? 0 : -ESRCH;
}

static int exec_and_prctl(__u64 until)
{
	int err, status;
	pid_t pid;

	run_until = until;
	pid = fork();
	if (!pid)
		exec_until(until);
	if (pid < 0)
		return -errno;
	err = own_events_of(pid);
	if (waitpid(pid, &status, 0) != pid || status)
		return -ECHILD;
	return err;
}

TEST_F(ending, exec_of_a_task_while_prctl_of_the_owner_switches_its_events)
{
	int err = run_bounded(exec_and_prctl, RUN_TIME, 10);

	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("exec and prctl wait for each other");
	EXPECT_EQ(0, err);
}

/* ---------------------------------------------------------------- changes during fork */

#define ROUNDS	16

FIXTURE(born)
{
	struct perf_event_attr attr[2];
	struct bp_worker w;
	struct bp_cpus cpus;
	unsigned int seed;
	int fd;
};

FIXTURE_SETUP(born)
{
	ASSERT_TRUE(map_pages());
	spawn = bp_map_shared();
	ASSERT_NE(NULL, spawn);
	self->cpus = bp_online_cpus();
	BP_NEED_CPUS(self->cpus, 2);
	for (int i = 0; i < 2; i++) {
		self->attr[i] = bp_attr_w(page + 64 * i, 1);
		self->attr[i].inherit = 1;
	}
	self->seed = 1;
}

FIXTURE_TEARDOWN(born)
{
	bp_teardown(_metadata);
}

static void open_family(struct __test_metadata *_metadata, FIXTURE_DATA(born) *self)
{
	self->fd = bp_open(&self->attr[0], 0, -1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[1]));
	ASSERT_EQ(0, bp_start(&self->w, member, NULL));
	ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
}

/* Has the child fork, and executes cmd on the family at the same time. */
static int do_while_they_are_born(FIXTURE_DATA(born) *self, unsigned long cmd, void *arg)
{
	int when = rand_r(&self->seed) % NR_SPAWN, go = CMD_SPAWN, err;
	volatile int wait = rand_r(&self->seed) % 20000;
	long nr;

	spawn->born = 0;
	if (write(self->w.cmd[1], &go, sizeof(go)) != sizeof(go))
		return -EPIPE;
	while (spawn->born < when)
		;
	while (wait--)
		;
	err = bp_ioctl(self->fd, cmd, (unsigned long)arg);
	if (read(self->w.ans[0], &nr, sizeof(nr)) != sizeof(nr))
		return -EPIPE;
	return nr == NR_SPAWN ? err : -EAGAIN;
}

/* Each grandchild hits the old address once and the new one ten times. */
static void move_while_they_are_born(struct __test_metadata *_metadata,
				     FIXTURE_DATA(born) *self)
{
	long long count;

	open_family(_metadata, self);
	for (int i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, bp_modify(self->fd, &self->attr[0]));
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
						    &self->attr[1]));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + 10 * NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d", i);
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
						    &self->attr[0]));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d, back", i);
	}
	EXPECT_EQ(0, bp_stop(&self->w));
}

TEST_F(born, while_the_family_moves)
{
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_family_changes_its_type)
{
	spawn->execute = true;
	self->attr[1] = bp_attr_x(bp_func_insn);
	self->attr[1].inherit = 1;
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_flexible_family_moves)
{
	self->attr[0].config = 1;
	self->attr[1].config = 1;
	move_while_they_are_born(_metadata, self);
}

TEST_F(born, while_the_family_is_stopped_and_started)
{
	long long count;

	open_family(_metadata, self);
	for (int i = 0; i < ROUNDS; i++) {
		count = bp_count(self->fd);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_DISABLE, NULL));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count, bp_count(self->fd)) TH_LOG("round %d, stopped", i);
		ASSERT_EQ(0, do_while_they_are_born(self, PERF_EVENT_IOC_ENABLE, NULL));
		ASSERT_EQ(0, bp_do(&self->w, CMD_GO));
		ASSERT_EQ(count + NR_SPAWN, bp_count(self->fd)) TH_LOG("round %d, started", i);
	}
	EXPECT_EQ(0, bp_stop(&self->w));
}

/*
 * ----------------------------------------------------------------- all operations at
 * once
 */

#define TORTURE_TIME	(8 * SECOND)
#define NR_EVENTS	6

static struct perf_event_attr kinds[NR_EVENTS];
static volatile int events[NR_EVENTS];
static volatile long fork_error;
static volatile int last_cpu = -1;
static long done[16];

static struct perf_event_attr *any_kind(unsigned int *seed)
{
	return &kinds[rand_r(seed) % NR_EVENTS];
}

static void torture_modify(unsigned int *seed)
{
	int i = rand_r(seed) % NR_EVENTS;
	struct perf_event_attr attr = kinds[i];

	attr.disabled = rand_r(seed) % 4 == 0;
	switch (rand_r(seed) % 3) {
	case 0:
		attr.bp_addr = (unsigned long)page + 64 * (rand_r(seed) % 8);
		attr.bp_len = 1 << rand_r(seed) % 4;
		break;
	case 1:
		attr.bp_type = HW_BREAKPOINT_RW;
		break;
	case 2:
		attr.bp_addr = (unsigned long)bp_func_insn;
		attr.bp_type = HW_BREAKPOINT_X;
		attr.bp_len = 8;
		break;
	}
	bp_modify(events[i], &attr);
}

static void hit_all(void)
{
	for (int i = 0; i < 8; i++)
		bp_store(page + 64 * i, 1);
	bp_func();
}

static void *torture_short_thread(void *arg)
{
	hit_all();
	return NULL;
}

/* Some children have children, some call exec(), some are killed. */
static void torture_child(unsigned int seed)
{
	pthread_t thread;
	pid_t pid;

	hit_all();
	switch (seed % 4) {
	case 0:
		pid = fork();
		if (!pid) {
			hit_all();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		break;
	case 1:
		exec_image("--store");
	case 2:
		if (!pthread_create(&thread, NULL, torture_short_thread, NULL))
			pthread_join(thread, NULL);
		break;
	case 3:
		switch_mine();
		for (;;)
			hit_all();
	}
	_exit(0);
}

static void torture_fork(unsigned int *seed)
{
	unsigned int kind = rand_r(seed);
	pid_t pid = fork();

	if (!pid)
		torture_child(kind);
	if (pid < 0) {
		fork_error = errno;
		return;
	}
	if (kind % 4 == 3) {
		hit_all();
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, 0);
}

static void torture_vfork(unsigned int *seed)
{
	pid_t pid = vfork();

	if (!pid)
		exec_image("--store");
	if (pid < 0)
		fork_error = errno;
	else
		waitpid(pid, NULL, 0);
}

static void torture_thread(unsigned int *seed)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, torture_short_thread, NULL))
		pthread_join(thread, NULL);
}

static void torture_prctl(unsigned int *seed)
{
	switch_mine();
	sched_yield();
}

static void torture_ioctl(unsigned int *seed)
{
	int fd = events[rand_r(seed) % NR_EVENTS];
	__u64 period = 1 + rand_r(seed) % 5;

	switch (rand_r(seed) % 6) {
	case 0:
		bp_disable(fd);
		break;
	case 1:
		bp_enable(fd);
		break;
	case 2:
		bp_ioctl(fd, PERF_EVENT_IOC_REFRESH, 2);
		break;
	case 3:
		bp_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
		break;
	case 4:
		bp_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
		break;
	case 5:
		bp_count(fd);
		break;
	}
}

/* This thread opens the events, so its prctl() applies to them. */
static void torture_reopen(unsigned int *seed)
{
	int i = rand_r(seed) % NR_EVENTS;

	close(events[i]);
	events[i] = bp_open(&kinds[i], 0, -1);
	switch_mine();
	hit_all();
}

/* Events of other tasks: of the process of torture_all(), and of tasks that exit. */
static void torture_others(unsigned int *seed)
{
	struct perf_event_attr *attr = any_kind(seed), changed = *attr;
	pid_t pid = fork();
	int fd[2];

	if (!pid) {
		for (int i = 0; i < 3; i++)
			hit_all();
		exec_image("--store");
	}
	if (pid < 0) {
		fork_error = errno;
		return;
	}
	fd[0] = bp_open(attr, pid, -1);
	fd[1] = bp_open(attr, getpid(), -1);
	changed.bp_addr = (unsigned long)page + 256;
	for (int i = 0; i < 2; i++)
		bp_modify(fd[i], &changed);
	switch_mine();
	waitpid(pid, NULL, 0);
	bp_close(fd, 2);
}

static void torture_hotplug(unsigned int *seed)
{
	if (last_cpu < 0) {
		usleep(10000);
		return;
	}
	bp_cpu_online(last_cpu, false);
	usleep(20000);
	bp_cpu_online(last_cpu, true);
	usleep(20000);
}

/* Events of the CPU that goes offline and comes back */
static void torture_cpu(unsigned int *seed)
{
	struct perf_event_attr attr = bp_attr_w(page + 128, 1), changed = attr;
	int fd = bp_open(&attr, -1, last_cpu);

	changed.bp_addr += 64;
	for (int i = 0; i < 10; i++) {
		bp_modify(fd, i % 2 ? &attr : &changed);
		bp_count(fd);
		usleep(1000);
	}
	if (fd >= 0)
		close(fd);
	else
		usleep(10000);
}

static void (* const torments[])(unsigned int *seed) = {
	torture_modify, torture_modify, torture_fork, torture_fork, torture_vfork,
	torture_thread, torture_prctl, torture_ioctl, torture_reopen, torture_others,
	torture_hotplug, torture_cpu,
};

static void *torment(void *arg)
{
	unsigned int seed = (long)arg + 1;

	while (go_on()) {
		torments[(long)arg](&seed);
		done[(long)arg]++;
	}
	return NULL;
}

static void make_kinds(void)
{
	for (int i = 0; i < NR_EVENTS; i++) {
		kinds[i] = bp_attr_w(page + 64 * i, 1);
		kinds[i].sample_period = 1;
		kinds[i].inherit = i != 2;
		kinds[i].inherit_thread = i == 1;
		kinds[i].remove_on_exec = i == 3 || i == 4;
		kinds[i].config = i >= 4;
		events[i] = -1;
	}
}

/* Opens events of the main thread, so that the other threads inherit some of them. */
static int torture_all(__u64 until)
{
	int nr = sizeof(torments) / sizeof(torments[0]);
	pthread_t thread[16];

	run_until = until;
	make_kinds();
	for (int i = 0; i < NR_EVENTS; i++)
		events[i] = bp_open(&kinds[i], 0, -1);
	for (long i = 0; i < nr; i++) {
		if (pthread_create(&thread[i], NULL, torment, (void *)i))
			return -EAGAIN;
	}
	while (go_on()) {
		switch_mine();
		hit_all();
	}
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < nr; i++) {
		if (!done[i])
			return -ENODATA;
	}
	return -fork_error;
}

TEST_F(ending, many_operations_at_the_same_time)
{
	struct bp_cpus cpus = bp_online_cpus();
	int err;

	if (!geteuid() && cpus.nr > 1)
		last_cpu = cpus.cpu[cpus.nr - 1];
	self->hotplug = last_cpu;
	err = run_bounded(torture_all, TORTURE_TIME, 60);
	ASSERT_NE(-ETIMEDOUT, err) TH_LOG("an operation hangs");
	EXPECT_EQ(0, err);
}

/* --------------------------------------------------------------------- new images */

/* The next image of a worker reports that the command is done, and waits for others. */
static int image_work(void)
{
	long result = 0;

	if (write(WORKER_OUT, &result, sizeof(result)) != sizeof(result))
		return 1;
	bp_work(member, NULL, WORKER_IN, WORKER_OUT);
	return 0;
}

static int image_store(void)
{
	bp_store_times(page, 1, MANY);
	return bp_free_slots(0, -1);
}

static int image_open(int old)
{
	int nr = open_and_hit();

	bp_store_times(page, 1, MANY);
	return bp_count(old) == MANY && has_hung_up(old) ? nr : 202;
}

static int image_again(__u64 until)
{
	if (bp_now(CLOCK_MONOTONIC) < until)
		exec_until(until);
	return 0;
}

static int image(int argc, char **argv)
{
	if (!map_pages())
		return 203;
	if (!strcmp(argv[1], "--work"))
		return image_work();
	if (!strcmp(argv[1], "--store"))
		return image_store();
	if (argc == 3 && !strcmp(argv[1], "--image"))
		return image_open(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "--again"))
		return image_again(strtoull(argv[2], NULL, 10));
	return 204;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--", 2))
		return image(argc, argv);
	return test_harness_run(argc, argv);
}
