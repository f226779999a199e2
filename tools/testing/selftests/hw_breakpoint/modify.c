// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of the tests of PERF_EVENT_IOC_MODIFY_ATTRIBUTES: see modify.h.
 */
#define BP_NO_TESTS
#include <assert.h>

#include "modify.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define WIDEST		8
#else
#define WIDEST		4
#endif

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.globl	first_func, second_func, neighbour_func\n"
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

static const struct spot spots[] = {
	{ HW_BREAKPOINT_W, 0, NULL, 1 },
	{ HW_BREAKPOINT_W, 0, NULL, 4 },
	{ HW_BREAKPOINT_W, 1, NULL, 1 },
	{ HW_BREAKPOINT_W, 2, NULL, 2 },
	{ HW_BREAKPOINT_W, 3, NULL, WIDEST },
	{ HW_BREAKPOINT_RW, 0, NULL, 1 },
	{ HW_BREAKPOINT_RW, 4, NULL, 4 },
	{ HW_BREAKPOINT_RW, 5, NULL, WIDEST },
	{ HW_BREAKPOINT_X, 0, first_func, BP_WORD },
	{ HW_BREAKPOINT_X, 0, second_func, BP_WORD },
	{ HW_BREAKPOINT_W, 8, NULL, 4 },
	{ HW_BREAKPOINT_RW, 9, NULL, 4 },
	{ HW_BREAKPOINT_X, 0, neighbour_func, BP_WORD },
	{ HW_BREAKPOINT_W, 10, NULL, 4 },
};

#define LEADER		(SPOTS + NEIGHBOURS)

static_assert(ARRAY_SIZE(spots) == SPOTS + NEIGHBOURS + 1,
	      "each neighbour and the leader have a spot");

char *word(int i)
{
	return BP_PAGE + 64 * i;
}

unsigned long spot_addr(int i)
{
	return spots[i].func ? (unsigned long)spots[i].func :
			       (unsigned long)word(spots[i].word);
}

void hit(int i, int times)
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

bool sees(int watched, int i)
{
	const struct spot *w = &spots[watched], *s = &spots[i];

	if (w->func || s->func)
		return w->func == s->func;
	return w->word == s->word &&
	       (w->type == HW_BREAKPOINT_RW || s->type == HW_BREAKPOINT_W);
}

void watch(struct perf_event_attr *attr, int i)
{
	attr->bp_type = spots[i].type;
	attr->bp_addr = spot_addr(i);
	attr->bp_len = spots[i].len;
}

struct perf_event_attr spot_attr(int i)
{
	struct perf_event_attr attr = bp_attr(0, NULL, 0);

	watch(&attr, i);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

long long count_any(int fd)
{
	struct bp_reading r;

	return read(fd, &r, sizeof(r)) == sizeof(r) ? (long long)r.count : -1;
}

long long count(struct __test_metadata *_metadata, int fd)
{
	struct bp_reading r = { };

	EXPECT_TRUE(bp_read(fd, &r));
	EXPECT_EQ(r.enabled, r.running);
	return r.count;
}

/* ----------------------------------------------------------------------- workers */

struct shared *shared;

void pause_cpu(void)
{
	bp_pause();
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

long worker(int cmd, void *arg)
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

/* The worker after its exec; a worker process has its pipes at 200 and 201. */
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

__u64 next_addr(struct bp_ring *ring)
{
	union bp_record rec;

	while (bp_ring_next(ring, &rec)) {
		if (rec.header.type == PERF_RECORD_SAMPLE)
			return rec.u64[1];
	}
	return 0;
}

/* -------------------------------------------------- helpers of several test files */

void expect_modifiable(struct __test_metadata *_metadata, int fd,
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

void open_group(struct __test_metadata *_metadata, struct group *g, pid_t pid)
{
	struct perf_event_attr clock = bp_attr_sw(PERF_COUNT_SW_DUMMY);

	clock.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
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
