// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the tests of families of events: see family.h.
 */
#define BP_NO_TESTS
#include "family.h"

#define PAGES_SIZE	(NR_PAGES * 4096)

/* The pipes of a worker, see bp_worker_process(): the next image uses them, too. */
#define WORKER_IN	200
#define WORKER_OUT	201

char *page;
char *pages;

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

void exec_image(const char *what)
{
	execl("/proc/self/exe", "family", what, NULL);
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

long store_in_vfork(void)
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

struct spawn *spawn;
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

long member(int cmd, void *arg)
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

bool map_pages(void)
{
	page = bp_map_page(PROT_READ | PROT_WRITE);
	pages = mmap(NULL, PAGES_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page && pages != MAP_FAILED;
}

struct perf_event_attr faults(void)
{
	struct perf_event_attr attr = bp_attr_sw(PERF_COUNT_SW_PAGE_FAULTS);

	return attr;
}

/* poll() always reports a hangup for an event without a ring. */
bool has_hung_up(int fd)
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

struct perf_event_attr attr_of_kind(struct __test_metadata *_metadata, __u64 config, int cpu)
{
	struct perf_event_attr attr = bp_attr_w(page, 1);

	if (cpu >= 0)
		EXPECT_EQ(0, bp_pin(cpu));
	attr.config = config;
	return attr;
}

/* -------------------------------------------------- operations for a limited time */

int run_bounded(int (*fn)(__u64 until), __u64 time, int seconds)
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

__u64 run_until;

bool go_on(void)
{
	return bp_now(CLOCK_MONOTONIC) < run_until;
}

void switch_mine(void)
{
	prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
	prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0);
}

void exec_until(__u64 until)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)until);
	execl("/proc/self/exe", "family", "--again", text, NULL);
	_exit(255);
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

/* After exec this program runs the command in its first argument instead of tests. */
static void __attribute__((constructor)) run_image(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--", 2))
		_exit(image(argc, argv));
}
