// SPDX-License-Identifier: GPL-2.0
/*
 * The tasks of perf_random. Each has a box in shared memory, in which it gets an order and
 * leaves the result. Tasks are not those of the C library, which would need an exchange of
 * signals and memory that the model does not know: only one of them runs at a time, so they
 * may share what the library has for each thread.
 */
#define BP_NO_TESTS
#include <linux/futex.h>
#include <linux/sched.h>

#include "random.h"

#define STACK_SIZE	65536
#define BOARD		((struct board *)(BP_PAGE + 0x100000))
#define BOARD_FD	900
#define SLOT		"BP_RANDOM_TASK"

/**
 * struct box - the order of a task
 * @order: number of orders
 * @answer: number of results
 * @pid: the task
 */
struct box {
	__u32 order;
	__u32 answer;
	pid_t pid;
	enum order what;
	struct access access;
	long arg;
	unsigned int nth;
	long result;
};

static struct board {
	struct box box[NR_TASKS];
	unsigned int signals[NR_EVENTS];
} *board;

static bool is_judge;
static char stack[NR_TASKS][STACK_SIZE] __aligned(16);

static long futex(__u32 *word, int op, __u32 value, const struct timespec *timeout)
{
	return syscall(__NR_futex, word, op, value, timeout, NULL, 0);
}

__u64 value_of(const struct access *a, unsigned int i)
{
	return a->by_kernel ? a->cpu : a->value ^ (a->value >> 8) * i;
}

static void store(void *p, unsigned int size, __u64 v)
{
	switch (size) {
	case 1:
		asm volatile("movb %b1, (%0)" : : "r" (p), "q" (v) : "memory");
		break;
	case 2:
		asm volatile("movw %w1, (%0)" : : "r" (p), "r" (v) : "memory");
		break;
	case 4:
		asm volatile("movl %k1, (%0)" : : "r" (p), "r" (v) : "memory");
		break;
	case 8:
		asm volatile("movq %1, (%0)" : : "r" (p), "r" (v) : "memory");
		break;
	}
}

static void carry_out_access(const struct access *a)
{
	if (a->cpu != NONE)
		bp_pin(a->cpu);
	for (unsigned int i = 0; i < a->times; i++) {
		if (a->by_kernel)
			syscall(__NR_getcpu, a->addr, NULL, NULL);
		else if (a->is_load)
			bp_load((void *)a->addr, a->size);
		else
			store((void *)a->addr, a->size, value_of(a, i));
		bp_settle((void *)a->addr);
	}
}

/* ---- Begin and end ---- */

static void on_hit(int sig, siginfo_t *info, void *context)
{
	unsigned long data;

	/* si_perf_data, behind si_addr */
	memcpy(&data, (char *)&info->si_addr + sizeof(void *), sizeof(data));
	if (data < NR_EVENTS)
		board->signals[data]++;
}

static void handle_hits(void)
{
	struct sigaction sa = { .sa_sigaction = on_hit, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGTRAP, &sa, NULL);
}

static void map_memory(void)
{
	mmap(BP_PAGE, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
}

static void map_board(void)
{
	board = mmap(BOARD, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, BOARD_FD, 0);
}

static long carry_out(struct box *box);

static int task_main(void *arg)
{
	struct box *box = &board->box[(long)arg];
	__u32 order = box->order;

	is_judge = false;
	box->pid = syscall(__NR_gettid);
	if (box->pid == getpid()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(__NR_close_range, 3, BOARD_FD - 1, 0);
	}
	box->result = 0;
	for (;;) {
		__atomic_store_n(&box->answer, order, __ATOMIC_SEQ_CST);
		futex(&box->answer, FUTEX_WAKE, 1, NULL);
		while (__atomic_load_n(&box->order, __ATOMIC_SEQ_CST) == order)
			futex(&box->order, FUTEX_WAIT, order, NULL);
		order++;
		box->result = carry_out(box);
	}
	return 0;
}

/* An image that a task has executed */
static void __attribute__((constructor)) continue_after_exec(void)
{
	const char *slot = getenv(SLOT);

	if (!slot)
		return;
	map_memory();
	map_board();
	handle_hits();
	task_main((void *)strtol(slot, NULL, 10));
}

static long execute(int task)
{
	static char * const argv[] = { "perf_random", NULL };
	static char slot[32];
	char * const env[] = { slot, NULL };

	snprintf(slot, sizeof(slot), SLOT "=%d", task);
	execve("/proc/self/exe", argv, env);
	return -errno;
}

static const int clone_flags[] = {
	[THREAD]  = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM,
	[SHARER]  = CLONE_VM | SIGCHLD,
	[PROCESS] = SIGCHLD,
};

/* All processes are children of the judge, which waits for them. */
static long start(long task, enum kind_of_task kind)
{
	int flags = clone_flags[kind];

	if (kind != THREAD && !is_judge)
		flags |= CLONE_PARENT;
	return clone(task_main, stack[task] + STACK_SIZE, flags, (void *)task) < 0 ? -errno : 0;
}

/* The next allocation number @nth of this thread fails. */
static void set_fault(unsigned int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	/* The fault may hit this request, which comes after the one that it is for. */
	while (bp_write_file("/proc/thread-self/fail-nth", text) == -ENOMEM)
		;
}

static long carry_out_clone(struct box *box)
{
	long err;

	if (box->nth)
		set_fault(box->nth);
	err = start(box->arg / NR_KINDS, box->arg % NR_KINDS);
	if (box->nth)
		set_fault(0);
	return err;
}

static long toggle_uid(void)
{
	uid_t uid = geteuid() ? 0 : BP_NOBODY;

	return setresuid(-1, uid, -1) ? -errno : 0;
}

static long carry_out(struct box *box)
{
	switch (box->what) {
	case ORDER_ACCESS:
		carry_out_access(&box->access);
		return 0;
	case ORDER_CALL:
		if (box->access.cpu != NONE)
			bp_pin(box->access.cpu);
		for (unsigned int i = 0; i < box->access.times; i++)
			bp_func();
		return 0;
	case ORDER_CLONE:
		return carry_out_clone(box);
	case ORDER_EXIT:
		syscall(__NR_exit, 0);
		return 0;
	case ORDER_EXIT_GROUP:
		syscall(__NR_exit_group, 0);
		return 0;
	case ORDER_EXEC:
		return execute(box - board->box);
	case ORDER_SETUID:
		return toggle_uid();
	default:
		return -EINVAL;
	}
}

/* ---- The judge's side ---- */

static bool is_answered(struct box *box)
{
	return __atomic_load_n(&box->answer, __ATOMIC_SEQ_CST) == box->order;
}

/* A minute, in steps in which a task that has died is noticed */
static long wait_for(struct box *box)
{
	struct timespec second = { .tv_sec = 1 };
	__u32 answer;

	for (int i = 0; i < 60 && !is_answered(box); i++) {
		answer = __atomic_load_n(&box->answer, __ATOMIC_SEQ_CST);
		if (answer != box->order)
			futex(&box->answer, FUTEX_WAIT, answer, &second);
		if (!is_answered(box) && kill(box->pid, 0))
			return -ESRCH;
	}
	return is_answered(box) ? box->result : -ETIME;
}

static void give(struct box *box)
{
	__atomic_store_n(&box->order, box->order + 1, __ATOMIC_SEQ_CST);
	futex(&box->order, FUTEX_WAKE, 1, NULL);
}

static struct box *prepare(int task, enum order order, const struct access *access, long arg)
{
	struct box *box = &board->box[task];

	box->what = order;
	if (access)
		box->access = *access;
	box->arg = arg;
	return box;
}

void task_post(int task, enum order order, const struct access *access, long arg)
{
	give(prepare(task, order, access, arg));
}

bool task_has_answered(int task, long *result)
{
	*result = board->box[task].result;
	return is_answered(&board->box[task]);
}

long task_do(int task, enum order order, const struct access *access, long arg)
{
	struct box *box = prepare(task, order, access, arg);

	if (task == JUDGE)
		return carry_out(box);
	give(box);
	return order == ORDER_EXIT || order == ORDER_EXIT_GROUP ? 0 : wait_for(box);
}

int task_start(int from, int task, enum kind_of_task kind, unsigned int nth)
{
	struct box *box = &board->box[task];
	long err;

	box->answer = box->order - 1;
	box->pid = getpid();
	board->box[from].nth = nth;
	err = task_do(from, ORDER_CLONE, NULL, NR_KINDS * task + kind);
	return err ?: wait_for(box);
}

void task_wait_for_end(pid_t process, pid_t thread)
{
	if (process == thread)
		waitpid(process, NULL, __WALL);
	else
		while (!syscall(__NR_tgkill, process, thread, 0))
			sched_yield();
}

pid_t task_pid(int task)
{
	return board->box[task].pid;
}

unsigned int task_signals(unsigned int data)
{
	return board->signals[data];
}

void tasks_setup(void)
{
	int fd = memfd_create("board", 0);

	ftruncate(fd, sizeof(*board));
	dup2(fd, BOARD_FD);
	close(fd);
	map_board();
	map_memory();
	handle_hits();
	is_judge = true;
	board->box[JUDGE].pid = getpid();
}

void tasks_teardown(void)
{
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	munmap(board, sizeof(*board));
	close(BOARD_FD);
}
