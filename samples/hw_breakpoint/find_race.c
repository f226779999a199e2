// SPDX-License-Identifier: GPL-2.0
/*
 * Find a data race: 32 threads add to accounts under a lock each, and one account is
 * also changed without it.  Now and then a thread that is about to access an account
 * has a breakpoint of the whole process watch it for a moment.  A thread that accesses
 * the account meanwhile does not hold the lock, and gets a SIGTRAP.
 *
 * "find_race none" changes no account without its lock, and so finds no race.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS		32
#define ACCOUNTS	64
#define RACY		37
#define WATCHES		1000

static struct account {
	pthread_mutex_t lock;
	volatile uint64_t balance;
} accounts[ACCOUNTS];

static struct perf_event_attr attr = {
	.type = PERF_TYPE_BREAKPOINT,
	.size = sizeof(attr),
	.config = HW_BREAKPOINT_PROCESS,
	.bp_type = HW_BREAKPOINT_RW,
	.bp_addr = (uintptr_t)&accounts[0].balance,
	.bp_len = HW_BREAKPOINT_LEN_8,
	.sample_period = 1,
	.sigtrap = 1,
	.remove_on_exec = 1,
	.disabled = 1,
	.exclude_kernel = 1,
	.exclude_hv = 1,
};

static int fd, racy = RACY, watches;
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int done, found = -1;

/*
 * In the thread that made the access.  Another account may be watched by now; si_addr
 * is the address that was watched when the access was made.
 */
static void on_sigtrap(int sig, siginfo_t *siginfo, void *context)
{
	found = ((uintptr_t)siginfo->si_addr - (uintptr_t)accounts) / sizeof(accounts[0]);
	done = 1;
}

static void watch(int nr)
{
	const struct timespec moment = { .tv_nsec = 200000 };
	struct perf_event_attr new = attr;

	if (pthread_mutex_trylock(&watch_lock))
		return;
	new.bp_addr = (uintptr_t)&accounts[nr].balance;
	new.disabled = 0;
	ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &new);
	nanosleep(&moment, NULL);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (++watches == WATCHES)
		done = 1;
	pthread_mutex_unlock(&watch_lock);
}

static void *run(void *arg)
{
	unsigned int random = (uintptr_t)arg + 1, i;
	int nr;

	for (i = 0; !done; i++) {
		random = random * 1103515245 + 12345;
		nr = (random >> 16) % ACCOUNTS;
		if (i % 8 == 7 && nr == racy)
			accounts[nr].balance++;
		pthread_mutex_lock(&accounts[nr].lock);
		if (i % 50 == 0)
			watch(nr);
		accounts[nr].balance++;
		pthread_mutex_unlock(&accounts[nr].lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_sigtrap, .sa_flags = SA_SIGINFO };
	pthread_t thread[THREADS];
	uintptr_t i;

	if (argc > 1 && !strcmp(argv[1], "none"))
		racy = -1;
	sigaction(SIGTRAP, &action, NULL);
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("perf_event_open");
		return 1;
	}
	for (i = 0; i < ACCOUNTS; i++)
		pthread_mutex_init(&accounts[i].lock, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (found < 0)
		printf("no race\n");
	else
		printf("race in account %d\n", found);
	return 0;
}
