// SPDX-License-Identifier: GPL-2.0
/*
 * hwbp - find out who touches a variable.
 *
 *   options   the command line
 *   target    the process: launched or attached to
 *   symbols   names and addresses of the program and its libraries
 *   variable  members of structures, by the debug information
 *   location  what is to be watched, from its description
 *   events    breakpoint events and their ring buffers
 *   tasks     names of threads
 *   insn      one instruction back from where the processor reports an access
 *   unwind    callers of an access
 *   kallsyms  functions of the kernel
 *   report    output
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "events.h"
#include "location.h"
#include "options.h"
#include "report.h"
#include "symbols.h"
#include "target.h"
#include "tasks.h"
#include "util.h"

/**
 * struct session - one run of hwbp
 * @start: when the watch has begun
 * @sigfd: readable when the user wants the watch to end
 * @deadline: when it is to end, UINT64_MAX for never
 */
struct session {
	struct options opt;
	struct target target;
	struct symbols *syms;
	struct location loc;
	struct events *events;
	struct tasks *tasks;
	struct report *report;
	uint64_t start;
	int sigfd;
	uint64_t deadline;
};

/* ---- what the events tell ---- */

static bool limit_reached(const struct session *s)
{
	return s->opt.max_hits && report_nr_hits(s->report) >= s->opt.max_hits;
}

static void on_hit(void *arg, const struct hit *hit)
{
	struct session *s = arg;

	if (hit->time < s->start || limit_reached(s) || tasks_runs_other(s->tasks, hit->pid))
		return;
	report_hit(s->report, hit, s->tasks);
}

static void on_comm(void *arg, pid_t pid, pid_t tid, const char *comm, bool exec)
{
	struct session *s = arg;

	tasks_comm(s->tasks, pid, tid, comm);
	if (!exec)
		return;
	tasks_exec(s->tasks, pid);
	if (pid == s->target.pid)
		note("process %d now executes another program (%s), which is not watched",
		     pid, comm);
}

static void on_fork(void *arg, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid)
{
	struct session *s = arg;

	tasks_fork(s->tasks, pid, ppid, tid, ptid);
}

static void on_map(void *arg, pid_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
		   const char *path)
{
	struct session *s = arg;

	if (pid != s->target.pid || tasks_runs_other(s->tasks, pid))
		return;
	report_unmapped(s->report, start, len);
	symbols_map(s->syms, path, start, len, pgoff);
}

static const struct event_ops ops = {
	.hit = on_hit,
	.comm = on_comm,
	.fork = on_fork,
	.map = on_map,
};

/* ---- setting up ---- */

static void find_location(struct session *s)
{
	bool all = !s->target.launched;

	s->syms = symbols_new();
	symbols_read_maps(s->syms, s->target.pid);
	if (location_find(&s->loc, &s->opt, s->syms, all))
		return;
	if (!all) {
		/* It may be in a library that is not loaded yet. */
		target_run_to_entry(&s->target);
		symbols_read_maps(s->syms, s->target.pid);
		if (location_find(&s->loc, &s->opt, s->syms, true))
			return;
	}
	location_die_unknown(&s->opt, s->syms);
}

static void catch_signals(struct session *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->sigfd = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->sigfd < 0)
		die("signalfd: %s", strerror(errno));
}

/* From here on ^C ends hwbp at once, but not the one that has ended the watch. */
static void restore_signals(struct session *s)
{
	struct signalfd_siginfo info;
	struct pollfd pfd = { .fd = s->sigfd, .events = POLLIN };
	sigset_t set;

	while (poll(&pfd, 1, 0) > 0 && read(s->sigfd, &info, sizeof(info)) > 0)
		;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void set_up(struct session *s)
{
	s->report = report_new(&s->opt);
	if (s->opt.cmd)
		target_launch(&s->target, s->opt.cmd);
	else
		target_attach(&s->target, s->opt.pid);
	find_location(s);
	s->events = events_open(&s->opt, &s->loc, &s->target);
	s->tasks = tasks_new(s->target.pid);
	catch_signals(s);
	s->start = now_ns();
	s->deadline = s->opt.max_ns ? s->start + s->opt.max_ns : UINT64_MAX;
	/* Who reads the first line may rely on it that the watch is on. */
	report_begin(s->report, &s->loc, s->syms, &s->target, s->start);
	target_release(&s->target);
}

/* ---- waiting ---- */

static int timeout_ms(const struct session *s, bool more)
{
	uint64_t now = now_ns(), ms;

	if (more)
		return 1;
	if (s->deadline == UINT64_MAX)
		return -1;
	ms = now < s->deadline ? (s->deadline - now) / 1000000 + 1 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Wait for hits or the end; false if the end has come. */
static bool wait_for_events(struct session *s, struct pollfd *pfd, size_t nr, bool more)
{
	if (poll(pfd, nr, timeout_ms(s, more)) < 0 && errno != EINTR)
		die("poll: %s", strerror(errno));
	return !pfd[0].revents && !pfd[1].revents && now_ns() < s->deadline;
}

/* Show hits until the program ends, a limit is reached or the user has enough. */
static void watch(struct session *s)
{
	size_t i, nr = 2 + events_nr_poll(s->events);
	struct pollfd *pfd = xzalloc(nr * sizeof(*pfd));
	bool more = false;

	pfd[0].fd = s->target.pidfd;
	pfd[1].fd = s->sigfd;
	for (i = 2; i < nr; i++)
		pfd[i].fd = events_poll_fd(s->events, i - 2);
	for (i = 0; i < nr; i++)
		pfd[i].events = POLLIN;
	while (!limit_reached(s) && wait_for_events(s, pfd, nr, more)) {
		/*
		 * What is older than now is in the buffers of all CPUs; the
		 * rest waits, lest a younger record of one CPU overtakes an
		 * older one of another.
		 */
		more = events_drain(s->events, now_ns(), &ops, s);
		report_flush(s->report);
	}
	free(pfd);
}

static void finish_watch(struct session *s)
{
	struct counts counts;

	events_disable(s->events);
	events_count(s->events, &counts);
	events_drain(s->events, UINT64_MAX, &ops, s);
	report_places(s->report, counts.lost);
}

static void finish_stat(struct session *s)
{
	struct counts counts;

	events_disable(s->events);
	events_count(s->events, &counts);
	report_counts(s->report, &counts);
}

static int finish(struct session *s)
{
	if (s->opt.verb == VERB_WATCH)
		finish_watch(s);
	else
		finish_stat(s);
	events_close(s->events);
	restore_signals(s);
	if (!s->target.launched)
		return 0;
	if (!target_is_over(&s->target))
		note("the watch is over, %s (pid %d) runs on", s->opt.cmd[0], s->target.pid);
	return target_wait(&s->target);
}

int main(int argc, char **argv)
{
	struct session s;

	memset(&s, 0, sizeof(s));
	options_parse(&s.opt, argc, argv);
	set_up(&s);
	watch(&s);
	return finish(&s);
}
