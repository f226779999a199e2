// SPDX-License-Identifier: GPL-2.0
/* One run of 'hwbp watch' or 'hwbp stat'. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "caps.h"
#include "events.h"
#include "filter.h"
#include "location.h"
#include "loop.h"
#include "options.h"
#include "readback.h"
#include "report.h"
#include "rings.h"
#include "symbols.h"
#include "target.h"
#include "tasks.h"
#include "util.h"
#include "watch.h"

/* Time between two summaries on a terminal */
#define SUMMARY_MS	200

/*
 * Time between two looks at the buffers while there are hits, and while there are none: the
 * kernel wakes hwbp only when a buffer is half full, because a wake-up for each hit costs more
 * than the hit.
 */
#define BUSY_MS		5
#define IDLE_MS		100

/* Time between two looks for a library */
#define LIBRARY_POLL_NS	2000000

/**
 * struct session - a run
 * @opt: command line
 * @target: the process
 * @syms: its symbols
 * @locs: the places
 * @filters: --if for each place, NULL without it
 * @events: the events
 * @readback: values of the places, NULL if hwbp does not read them itself
 * @dropped: number of hits of each place that --changed and --if have left out
 * @silent: those of them that changed nothing
 * @tasks: names of threads
 * @report: output
 * @loop: what ends the run
 * @summary_due: time of the next summary on a terminal
 */
struct session {
	const struct watch_options *opt;
	struct target target;
	struct symbols *syms;
	struct location *locs;
	struct filter **filters;
	struct events *events;
	struct readback *readback;
	uint64_t *dropped;
	uint64_t *silent;
	struct tasks *tasks;
	struct report *report;
	struct loop loop;
	uint64_t summary_due;
};

/* ---- command line ---- */

/* -p may name a thread. */
static void choose_thread(struct watch_options *opt)
{
	long process = opt->pid ? read_status(opt->pid, "Tgid") : 0;

	if (process < 0)
		die("no such process: %d", opt->pid);
	if (process == opt->pid)
		return;
	if (opt->children)
		die("%d is a thread of process %ld: --children requires a process", opt->pid,
		    process);
	opt->tid = opt->pid;
	opt->pid = process;
}

static void choose_access(struct watch_options *opt)
{
	if (opt->execute && (opt->changed || opt->condition))
		die("-x and --%s exclude each other", opt->changed ? "changed" : "if");
	if (opt->changed && !opt->record && !caps_config_bit("changed"))
		die("stat --changed cannot be used: %s",
		    "this kernel does not compare values (no format/changed of the PMU)");
	if (opt->execute && (opt->read || opt->write))
		die("-x and -%c exclude each other", opt->read ? 'r' : 'w');
	if (opt->execute)
		opt->access = ACCESS_X;
	else
		opt->access = opt->read ? ACCESS_RW : ACCESS_W;
}

/* Places beyond the number of registers can only be watched for a part of the time. */
static void choose_kind(struct watch_options *opt)
{
	const char *no_flexible =
		"this kernel does not multiplex breakpoints (no format/flexible of the PMU)";
	unsigned int registers = caps_registers(opt->access == ACCESS_X);
	bool forced = opt->nr_specs > registers && !opt->dry_run;

	if (!forced && !opt->flexible)
		return;
	if (caps_config_bit("flexible")) {
		opt->flexible = true;
		return;
	}
	if (forced)
		die("%zu places are more than the %u registers of a CPU: %s; watch %u or less",
		    opt->nr_specs, registers, no_flexible, registers);
	die("-F cannot be used: %s", no_flexible);
}

void watch_check(struct watch_options *opt, int argc, const char **argv)
{
	const char *verb = opt->record ? "watch" : "stat";

	opt->cmd = options_cut_command(&argc, argv);
	choose_access(opt);
	if (!argc)
		die("no place to watch was given (see hwbp %s --help)", verb);
	opt->specs = argv;
	opt->nr_specs = argc;
	if (opt->pid && opt->cmd)
		die("-p PID and a command exclude each other");
	if (!opt->pid && !opt->cmd)
		die("no program was given: use -p PID, or -- and a command");
	choose_thread(opt);
	choose_kind(opt);
}

/* ---- records ---- */

static bool limit_reached(const struct session *s)
{
	return s->opt->max_hits && report_nr_hits(s->report) >= s->opt->max_hits;
}

/* The kernel leaves accesses out that change nothing, if it records values. */
static bool is_silent(const struct session *s, const struct hit *hit)
{
	return s->opt->changed && hit->before && hit->after &&
	       !memcmp(hit->before, hit->after, s->locs[hit->loc].len);
}

static bool is_wanted(struct session *s, const struct hit *hit)
{
	if (is_silent(s, hit)) {
		s->silent[hit->loc]++;
		return false;
	}
	return !s->filters || filter_accepts(s->filters[hit->loc], hit->before, hit->after);
}

static void on_hit(void *arg, const struct hit *recorded)
{
	struct session *s = arg;
	struct hit hit = *recorded;

	if (hit.time < s->loop.start || limit_reached(s) || tasks_runs_other(s->tasks, hit.pid))
		return;
	if (s->readback)
		readback_fill(s->readback, &hit);
	if (!is_wanted(s, &hit)) {
		s->dropped[hit.loc]++;
		return;
	}
	if (s->opt->thread && fnmatch(s->opt->thread, tasks_name(s->tasks, hit.tid), 0))
		return;
	report_hit(s->report, &hit, s->tasks);
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

/* ---- set-up ---- */

/* Returns the number of places that were found, up to the first one that was not. */
static size_t try_locations(struct session *s, bool ready)
{
	size_t i;

	for (i = 0; i < s->opt->nr_specs; i++) {
		if (!location_find(&s->locs[i], s->opt->specs[i], s->opt, s->syms, ready))
			break;
	}
	return i;
}

/* Hits are assigned to places by address. */
static void check_different(const struct session *s)
{
	size_t i, j;

	for (i = 0; i < s->opt->nr_specs; i++) {
		for (j = 0; j < i; j++) {
			if (s->locs[i].address == s->locs[j].address)
				die("'%s' and '%s' are at the same address", s->locs[j].text,
				    s->locs[i].text);
		}
	}
}

static bool find_in_loader(struct session *s, const char *name, struct symbol *sym)
{
	struct symbol_list list = { 0 };

	symbols_find(s->syms, SCOPE_LIBRARIES, HOW_EXACT, NULL, name, &list);
	if (list.nr)
		*sym = list.entries[0];
	return list.nr;
}

/*
 * Let the loader map and relocate the libraries. It then calls a function that does nothing,
 * for debuggers, with r_state of struct r_debug set, and after that the constructors. A
 * loader without this function is followed to the entry point of the program.
 */
static void load_libraries(struct session *s)
{
	struct symbol stop, debug;
	size_t offset;
	int state = RT_ADD;

	if (!find_in_loader(s, "_dl_debug_state", &stop) ||
	    !find_in_loader(s, "_r_debug", &debug)) {
		target_run_to_entry(&s->target);
		return;
	}
	/* The structure of a 32-bit program is shorter. */
	offset = debug.size < sizeof(struct r_debug) ? 12 : offsetof(struct r_debug, r_state);
	while (state != RT_CONSISTENT && target_run_to(&s->target, stop.address)) {
		if (!symbols_read(s->syms, debug.address + offset, &state, sizeof(state)))
			break;
	}
}

/*
 * The place @spec may name a library that the program loads later: let it run until then.
 * Nothing is watched meanwhile. Returns false if the place names no such library.
 */
static bool wait_for_library(struct session *s, const char *spec)
{
	const struct timespec moment = { .tv_nsec = LIBRARY_POLL_NS };
	char *library = location_missing_library(spec, s->syms), *missing = library;

	if (!library || s->opt->dry_run)
		return false;
	note("waiting until process %d loads %s", s->target.pid, library);
	target_release(&s->target);
	while (missing) {
		nanosleep(&moment, NULL);
		if (target_is_over(&s->target))
			die("process %d has ended without loading %s", s->target.pid, library);
		if (!symbols_try_maps(s->syms, s->target.pid))
			continue;
		if (missing != library)
			free(missing);
		missing = location_missing_library(spec, s->syms);
	}
	free(library);
	return true;
}

static void find_locations(struct session *s)
{
	bool ready = !s->target.launched;
	size_t nr;

	s->locs = xzalloc(s->opt->nr_specs * sizeof(*s->locs));
	s->syms = symbols_new();
	symbols_read_maps(s->syms, s->target.pid);
	nr = try_locations(s, ready);
	if (nr < s->opt->nr_specs && !ready) {
		/* The place may be in a library that is not loaded yet, or behind a pointer. */
		load_libraries(s);
		symbols_read_maps(s->syms, s->target.pid);
		nr = try_locations(s, true);
	}
	while (nr < s->opt->nr_specs && wait_for_library(s, s->opt->specs[nr]))
		nr = try_locations(s, true);
	if (nr < s->opt->nr_specs)
		location_die_unknown(s->opt->specs[nr], s->opt, s->syms);
	if (!s->opt->dry_run)
		check_different(s);
}

static void set_up_values(struct session *s)
{
	size_t i, nr = s->opt->nr_specs;

	s->dropped = xzalloc(nr * sizeof(*s->dropped));
	s->silent = xzalloc(nr * sizeof(*s->silent));
	if (!s->opt->condition)
		return;
	s->filters = xzalloc(nr * sizeof(*s->filters));
	for (i = 0; i < nr; i++)
		s->filters[i] = filter_parse(s->opt->condition, &s->locs[i]);
}

/* Returns false if there is nothing to watch. */
static bool set_up(struct session *s)
{
	s->report = report_new(s->opt);
	if (s->opt->cmd)
		target_launch(&s->target, s->opt->cmd);
	else
		target_attach(&s->target, s->opt->pid, s->opt->tid);
	find_locations(s);
	set_up_values(s);
	if (s->opt->dry_run) {
		report_begin(s->report, s->locs, s->syms, &s->target, VALUES_NONE, 0);
		return false;
	}
	s->events = events_open(s->opt, s->locs, s->opt->nr_specs, s->syms, &s->target);
	if (events_values(s->events) == VALUES_READ)
		s->readback = readback_new(s->locs, s->opt->nr_specs, s->target.pid);
	caps_note_unverified();
	s->tasks = tasks_new(s->target.pid);
	loop_begin(&s->loop, s->opt->max_ns, s->target.pidfd);
	/* Print the first line only now: a program that reads it may rely on the watch. */
	report_begin(s->report, s->locs, s->syms, &s->target, events_values(s->events),
		     s->loop.start);
	target_release(&s->target);
	return true;
}

/* ---- the run ---- */

/*
 * Show the records that are old enough to be complete on all CPUs. Keep younger ones:
 * an older record of another CPU may still appear. Returns true if there were any.
 */
static bool show(struct session *s)
{
	bool busy = events_drain(s->events, now_ns(), &ops, s);

	report_flush(s->report);
	return busy;
}

static void count(struct session *s, struct counts *counts)
{
	size_t i;

	events_count(s->events, counts);
	for (i = 0; i < s->opt->nr_specs; i++) {
		counts[i].hits -= s->dropped[i] < counts[i].hits ? s->dropped[i] : counts[i].hits;
		counts[i].silent += s->silent[i];
	}
}

static void show_summary(struct session *s)
{
	struct counts *counts = xzalloc(s->opt->nr_specs * sizeof(*counts));

	count(s, counts);
	report_live(s->report, counts);
	free(counts);
	s->summary_due = now_ns() + SUMMARY_MS * 1000000ULL;
}

static int max_wait(const struct session *s, bool busy)
{
	if (s->opt->record)
		return busy ? BUSY_MS : IDLE_MS;
	return report_is_live(s->report) ? SUMMARY_MS : -1;
}

static void watch(struct session *s)
{
	struct rings *rings = events_rings(s->events);
	const int *fds = rings ? rings_fds(rings) : NULL;
	size_t nr = rings ? rings_nr(rings) : 0;
	bool busy = true;

	while (!limit_reached(s) && loop_wait(&s->loop, fds, nr, max_wait(s, busy))) {
		busy = show(s);
		if (report_is_live(s->report) && now_ns() >= s->summary_due)
			show_summary(s);
	}
}

static void finish(struct session *s)
{
	struct counts *counts = xzalloc(s->opt->nr_specs * sizeof(*counts));

	events_note_cpus(s->events);
	events_disable(s->events);
	events_drain(s->events, UINT64_MAX, &ops, s);
	count(s, counts);
	report_signal(s->report, target_signal(&s->target));
	if (s->opt->record)
		report_places(s->report, counts);
	else
		report_counts(s->report, counts);
	free(counts);
	events_close(s->events);
	loop_end(&s->loop);
}

int watch_run(const struct watch_options *opt)
{
	struct session s = { .opt = opt };

	/* The program of a dry run is killed before its first instruction. */
	if (!set_up(&s))
		return 0;
	watch(&s);
	finish(&s);
	return target_finish(&s.target, "watch");
}
