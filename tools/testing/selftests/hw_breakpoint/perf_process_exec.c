// SPDX-License-Identifier: GPL-2.0
/*
 * A process executes a program that the owner of its events may not watch.
 *
 * The rule: an event of the process ends before the program starts, as an event of a
 * single thread does, whichever thread calls exec. It counts nothing of the program, and
 * its register is free. A program that the owner may watch is watched. An event of a
 * thread goes on if the program is dumpable, an event of a process only if the credentials
 * of its owner permit it.
 *
 * Not built as ia32 program, as perf_process_event.c.
 */
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "process.h"

#define STORES		7
#define IMAGE		"PERF_PROCESS_EXEC"
#define SUID_DUMPABLE	"/proc/sys/fs/suid_dumpable"

/* The new program */
static __attribute__((constructor)) void image(void)
{
	if (!getenv(IMAGE))
		return;
	if (!bp_map_page(PROT_READ | PROT_WRITE))
		_exit(1);
	bp_store_times(BP_PAGE, 1, STORES);
	bp_store_times(BP_PAGE + SECOND, 1, STORES);
	raise(SIGSTOP);
	_exit(geteuid() ? 10 : 20);
}

struct shared {
	char program[64];
	pid_t tid;
	int go;
};

FIXTURE(exec)
{
	char *mem;
	struct shared *shared;
	pid_t pid;
};

FIXTURE_VARIANT(exec)
{
	mode_t mode;
	bool by_leader;
	bool watched;
	bool suid_dumpable;
	int status;
};

FIXTURE_VARIANT_ADD(exec, of_a_readable_program_by_the_leader)
{
	.mode		= 0755,
	.by_leader	= true,
	.watched	= true,
	.status		= 10,
};

FIXTURE_VARIANT_ADD(exec, of_a_readable_program_by_a_thread)
{
	.mode		= 0755,
	.watched	= true,
	.status		= 10,
};

FIXTURE_VARIANT_ADD(exec, of_an_unreadable_program_by_the_leader)
{
	.mode		= 0111,
	.by_leader	= true,
	.status		= 10,
};

FIXTURE_VARIANT_ADD(exec, of_an_unreadable_program_by_a_thread)
{
	.mode		= 0111,
	.status		= 10,
};

FIXTURE_VARIANT_ADD(exec, of_a_setuid_program_by_the_leader)
{
	.mode		= 04755,
	.by_leader	= true,
	.status		= 20,
};

FIXTURE_VARIANT_ADD(exec, of_a_setuid_program_by_a_thread)
{
	.mode		= 04755,
	.status		= 20,
};

FIXTURE_VARIANT_ADD(exec, of_a_setuid_program_that_is_dumpable_by_the_leader)
{
	.mode		= 04755,
	.by_leader	= true,
	.suid_dumpable	= true,
	.status		= 20,
};

FIXTURE_VARIANT_ADD(exec, of_a_setuid_program_that_is_dumpable_by_a_thread)
{
	.mode		= 04755,
	.suid_dumpable	= true,
	.status		= 20,
};

/* A copy of this program that belongs to root */
static int copy_program(char *path, mode_t mode)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out;
	struct stat st;
	int err;

	strcpy(path, "/tmp/perf_process_exec.XXXXXX");
	out = mkstemp(path);
	if (in < 0 || out < 0 || fstat(in, &st))
		return -1;
	err = sendfile(out, in, NULL, st.st_size) != st.st_size || fchmod(out, mode);
	close(in);
	/* A file that is open for writing cannot be executed. */
	close(out);
	return err;
}

static void *exec_on_request(void *arg)
{
	char *argv[] = { "perf_process_exec", NULL }, *envp[] = { IMAGE "=1", NULL };
	struct shared *shared = arg;

	__atomic_store_n(&shared->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	execve(shared->program, argv, envp);
	_exit(2);
}

static void run_as_nobody(struct shared *shared, bool by_leader)
{
	pthread_t thread;

	if (bp_become_nobody())
		_exit(3);
	prctl(PR_SET_DUMPABLE, 1);
	if (by_leader)
		exec_on_request(shared);
	start_thread(&thread, exec_on_request, shared);
	for (;;)
		pause();
}

FIXTURE_SETUP(exec)
{
	BP_NEED_ROOT();
	self->mem = bp_map_page(PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->mem);
	self->shared = bp_map_shared();
	ASSERT_NE(NULL, self->shared);
	ASSERT_EQ(0, copy_program(self->shared->program, variant->mode));
	if (variant->suid_dumpable)
		ASSERT_EQ(0, bp_write_file(SUID_DUMPABLE, "1"));
	self->pid = bp_fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid)
		run_as_nobody(self->shared, variant->by_leader);
	while (!__atomic_load_n(&self->shared->tid, __ATOMIC_ACQUIRE))
		usleep(1000);
}

FIXTURE_TEARDOWN(exec)
{
	if (self->shared)
		unlink(self->shared->program);
	if (variant->suid_dumpable)
		bp_write_file(SUID_DUMPABLE, "0");
	bp_teardown(_metadata);
}

/**
 * struct owner - the events that a thread opens as nobody
 * @attr: attributes of the event of the process
 * @task_attr: of an event of the thread that is to call exec
 * @pid: the process
 * @tid: the thread
 * @fd: the event of the process
 * @task_fd: the event of the thread
 */
struct owner {
	struct perf_event_attr attr;
	struct perf_event_attr task_attr;
	pid_t pid;
	pid_t tid;
	int fd;
	int task_fd;
};

/* The system calls change the credentials of this thread alone. */
static void *open_as_nobody(void *arg)
{
	struct owner *owner = arg;

	if (syscall(__NR_setresgid, BP_NOBODY, BP_NOBODY, BP_NOBODY) ||
	    syscall(__NR_setresuid, BP_NOBODY, BP_NOBODY, BP_NOBODY))
		return NULL;
	owner->fd = bp_open(&owner->attr, owner->pid, -1);
	owner->task_fd = bp_open(&owner->task_attr, owner->tid, -1);
	return NULL;
}

TEST_F(exec, ends_events_that_their_owner_may_not_have)
{
	struct owner owner = {
		.attr		= process_attr(self->mem),
		.task_attr	= bp_attr_w(self->mem + SECOND, 1),
		.pid		= self->pid,
		.tid		= self->shared->tid,
		.fd		= -1,
		.task_fd	= -1,
	};
	bool task_watched = variant->watched || variant->suid_dumpable;
	int slots = BP_SLOTS - variant->watched - task_watched;
	long long hits = variant->watched ? STORES : 0;
	pthread_t thread;
	int status;

	ASSERT_EQ(0, start_thread(&thread, open_as_nobody, &owner));
	pthread_join(thread, NULL);
	ASSERT_LE(0, owner.fd);
	ASSERT_LE(0, owner.task_fd);
	__atomic_store_n(&self->shared->go, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));

	EXPECT_EQ(hits, bp_count(owner.fd));
	EXPECT_EQ(task_watched ? STORES : 0, bp_count(owner.task_fd));
	EXPECT_EQ(slots, bp_free_slots(self->pid, -1));
	EXPECT_EQ(slots, bp_free_slots_with(&owner.attr, self->pid, -1));
	/* An event that has ended does not come back. */
	bp_enable(owner.fd);
	EXPECT_EQ(hits, bp_count(owner.fd));

	kill(self->pid, SIGCONT);
	EXPECT_EQ(variant->status, bp_wait(self->pid));
}

TEST_HARNESS_MAIN
