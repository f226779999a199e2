// SPDX-License-Identifier: GPL-2.0
/* Wait for records until the program exits, a timeout expires or a signal arrives. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loop.h"
#include "util.h"

static void fill_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void loop_begin(struct loop *loop, uint64_t max_ns, int pidfd)
{
	sigset_t set;

	fill_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	loop->sigfd = signalfd(-1, &set, SFD_CLOEXEC);
	if (loop->sigfd < 0)
		die("signalfd: %s", strerror(errno));
	loop->pidfd = pidfd;
	loop->start = now_ns();
	loop->deadline = max_ns ? loop->start + max_ns : UINT64_MAX;
}

static int timeout_ms(const struct loop *loop, int max_ms)
{
	uint64_t now = now_ns(), ms;

	if (loop->deadline == UINT64_MAX)
		return max_ms;
	ms = now < loop->deadline ? (loop->deadline - now) / 1000000 + 1 : 0;
	if (ms > INT_MAX)
		ms = INT_MAX;
	return max_ms >= 0 && (uint64_t)max_ms < ms ? max_ms : (int)ms;
}

bool loop_wait(const struct loop *loop, const int *fds, size_t nr, int max_ms)
{
	struct pollfd *pfd = xzalloc((nr + 2) * sizeof(*pfd));
	bool over;
	size_t i;

	pfd[0].fd = loop->pidfd;
	pfd[1].fd = loop->sigfd;
	for (i = 0; i < nr; i++)
		pfd[i + 2].fd = fds[i];
	for (i = 0; i < nr + 2; i++)
		pfd[i].events = POLLIN;
	if (poll(pfd, nr + 2, timeout_ms(loop, max_ms)) < 0 && errno != EINTR)
		die("poll: %s", strerror(errno));
	over = pfd[0].revents || pfd[1].revents || now_ns() >= loop->deadline;
	free(pfd);
	return !over;
}

void loop_end(const struct loop *loop)
{
	struct pollfd pfd = { .fd = loop->sigfd, .events = POLLIN };
	struct signalfd_siginfo info;
	sigset_t set;

	while (poll(&pfd, 1, 0) > 0 && read(loop->sigfd, &info, sizeof(info)) > 0)
		;
	fill_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
