// SPDX-License-Identifier: GPL-2.0
/*
 * hwbp - find the code that accesses a variable, with hardware breakpoints.
 *
 *   options       parse the command line
 *   target        launch a process, or attach to one
 *   symbols       symbols of the program and its libraries
 *   variable      members of structures and arrays, from the debug information
 *   location      turn PLACE into an address and a length
 *   events        open breakpoint events and parse their records
 *   rings         ring buffers of events, and sorting of records by time
 *   tasks         names of threads
 *   insn          decode x86 instructions, to find the one that made an access
 *   unwind        callers of an access
 *   kallsyms      symbols of the kernel
 *   report        output of watch and stat
 *   slots         parse the list of claims and registers in debugfs
 *   slots_report  output of slots
 *   text          record changes of kernel text
 *   text_names    symbols of kernel text that changes
 *   text_report   output of text
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
#include "rings.h"
#include "slots_report.h"
#include "symbols.h"
#include "target.h"
#include "tasks.h"
#include "text.h"
#include "text_report.h"
#include "util.h"

/*
 * Delay before a change of kernel text is shown. The kernel takes the time of a
 * record before it writes the record, so an older record of another CPU may appear
 * later.
 */
#define SETTLE_MS	20

/**
 * struct session - one run of hwbp
 * @start: time at which the watch began
 * @sigfd: signalfd for SIGINT and SIGTERM, which end the watch
 * @deadline: time at which the watch ends, UINT64_MAX for no limit
 */
struct session {
	struct options opt;
	struct target target;
	struct symbols *syms;
	struct location loc;
	struct events *events;
	struct tasks *tasks;
	struct report *report;
	struct text *text;
	struct text_report *text_report;
	uint64_t start;
	int sigfd;
	uint64_t deadline;
};

/* ---- records ---- */

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
		note("process %d has executed another program (%s), which is not watched",
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

static void on_change(void *arg, const struct text_change *change)
{
	struct session *s = arg;

	text_report_change(s->text_report, change);
}

static void on_area(void *arg, const struct text_area *area)
{
	struct session *s = arg;

	text_report_area(s->text_report, area);
}

static void on_lost(void *arg, uint64_t time, uint32_t cpu, uint64_t nr)
{
	struct session *s = arg;

	text_report_lost(s->text_report, time, cpu, nr);
}

static const struct text_ops text_ops = {
	.change = on_change,
	.area = on_area,
	.lost = on_lost,
};

/* ---- set-up ---- */

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

/*
 * Let SIGINT and SIGTERM end hwbp at once from here on, but discard the signal that
 * has ended the watch.
 */
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

static void start_clock(struct session *s)
{
	catch_signals(s);
	s->start = now_ns();
	s->deadline = s->opt.max_ns ? s->start + s->opt.max_ns : UINT64_MAX;
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
	start_clock(s);
	/* Print the first line only now: a reader may take it that the watch is on. */
	report_begin(s->report, &s->loc, s->syms, &s->target, s->start);
	target_release(&s->target);
}

static void set_up_text(struct session *s)
{
	s->text_report = text_report_new(&s->opt);
	s->target.pidfd = -1;
	if (s->opt.cmd)
		target_launch(&s->target, s->opt.cmd);
	s->text = text_open(&s->opt);
	text_report_prepare(s->text_report);
	start_clock(s);
	text_report_begin(s->text_report, s->start);
	target_release(&s->target);
}

/* ---- waiting ---- */

static struct rings *rings_of(const struct session *s)
{
	return s->text ? text_rings(s->text) : events_rings(s->events);
}

static int timeout_ms(const struct session *s, bool more)
{
	uint64_t now = now_ns(), ms;

	if (more)
		return s->text ? SETTLE_MS : 1;
	if (s->deadline == UINT64_MAX)
		return -1;
	ms = now < s->deadline ? (s->deadline - now) / 1000000 + 1 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Wait for hits or the end; false if the end has come. */
static bool wait_for_events(struct session *s, struct pollfd *pfd, size_t nr, bool more)
{
	/*
	 * Do not poll the rings while changes of text wait to be shown: each further
	 * record would end the poll, and there may be thousands.
	 */
	if (s->text && more)
		nr = 2;
	if (poll(pfd, nr, timeout_ms(s, more)) < 0 && errno != EINTR)
		die("poll: %s", strerror(errno));
	return !pfd[0].revents && !pfd[1].revents && now_ns() < s->deadline;
}

/*
 * Show the records that are old enough to be complete on all CPUs. Keep younger ones:
 * an older record of another CPU may still appear. Returns true if some are kept.
 */
static bool show(struct session *s)
{
	bool more;

	if (s->text) {
		more = text_drain(s->text, now_ns() - SETTLE_MS * 1000000ULL, &text_ops, s);
		text_report_flush(s->text_report);
	} else {
		more = events_drain(s->events, now_ns(), &ops, s);
		report_flush(s->report);
	}
	return more;
}

/* Show records until the program ends, a limit is reached or a signal comes. */
static void watch(struct session *s)
{
	struct rings *rings = rings_of(s);
	size_t i, nr = 2 + (rings ? rings_nr(rings) : 0);
	struct pollfd *pfd = xzalloc(nr * sizeof(*pfd));
	bool more = false;

	pfd[0].fd = s->target.pidfd;
	pfd[1].fd = s->sigfd;
	for (i = 2; i < nr; i++)
		pfd[i].fd = rings_fd(rings, i - 2);
	for (i = 0; i < nr; i++)
		pfd[i].events = POLLIN;
	while (!limit_reached(s) && wait_for_events(s, pfd, nr, more))
		more = show(s);
	free(pfd);
}

static void finish_watch(struct session *s)
{
	struct counts counts;

	events_disable(s->events);
	events_count(s->events, &counts);
	events_drain(s->events, UINT64_MAX, &ops, s);
	report_places(s->report, counts.lost);
	events_close(s->events);
}

static void finish_stat(struct session *s)
{
	struct counts counts;

	events_disable(s->events);
	events_count(s->events, &counts);
	report_counts(s->report, &counts);
	events_close(s->events);
}

static void finish_text(struct session *s)
{
	text_note_cpus(s->text);
	text_stop(s->text);
	text_drain(s->text, UINT64_MAX, &text_ops, s);
	text_report_end(s->text_report, text_nr_lost(s->text));
	text_close(s->text);
}

static int finish(struct session *s)
{
	switch (s->opt.verb) {
	case VERB_WATCH:
		finish_watch(s);
		break;
	case VERB_TEXT:
		finish_text(s);
		break;
	default:
		finish_stat(s);
		break;
	}
	restore_signals(s);
	if (!s->target.launched)
		return 0;
	if (!target_is_over(&s->target))
		note("the %s has ended, %s (pid %d) continues to run",
		     s->opt.verb == VERB_TEXT ? "report" : "watch", s->opt.cmd[0],
		     s->target.pid);
	return target_wait(&s->target);
}

int main(int argc, char **argv)
{
	struct session s;

	memset(&s, 0, sizeof(s));
	options_parse(&s.opt, argc, argv);
	if (s.opt.verb == VERB_SLOTS) {
		slots_report(&s.opt);
		return 0;
	}
	if (s.opt.verb == VERB_TEXT)
		set_up_text(&s);
	else
		set_up(&s);
	watch(&s);
	return finish(&s);
}
