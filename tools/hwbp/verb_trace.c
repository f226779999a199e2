// SPDX-License-Identifier: GPL-2.0
/*
 * hwbp trace: define a watch event in an instance of its own, show its hits as they
 * happen, and remove event, triggers and instance at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "btf.h"
#include "holders.h"
#include "loop.h"
#include "options.h"
#include "refusal.h"
#include "trace_place.h"
#include "trace_report.h"
#include "tracefs.h"
#include "util.h"
#include "verb.h"

/* Watch events in the README of tracefs */
#define WATCH_EVENTS	"[r|w|rw]@<addr>[:<len>]"

static const char *const usage[] = {
	"hwbp trace [OPTION...] ACCESS@PLACE[:LEN]",
	"hwbp trace [OPTION...] --object EVENT:FIELD [--clear-on EVENT[:FIELD]] [ACCESS[+OFFSET][:LEN]]",
	"hwbp trace [OPTION...] --window FUNCTION [ACCESS@]argN->MEMBER[:LEN]",
	"hwbp trace --clean",
	"",
	"Watch memory of the kernel with a watch event of tracefs, and print each access:",
	"time in seconds, name and ID of the thread, CPU, watched address, value before and",
	"after, instruction. At the end, print the number of accesses per instruction.",
	"",
	"ACCESS is w, rw or x. PLACE is a symbol of the kernel or MODULE:SYMBOL, with",
	"+OFFSET or -OFFSET, or an address. LEN is 1, 2, 4 or 8 (default: 4).",
	"With --object, each time the trace event EVENT is hit, the object at the address in",
	"its FIELD plus OFFSET is watched (default: writes); if --slots are watched already,",
	"the oldest no longer is.",
	"--clear-on names an event that ends the watch; with a FIELD, only of the object at",
	"this address. EVENT is GROUP:NAME, as in 'perf list', or a NAME that is unique;",
	"' if FILTER' may follow. If the kernel has BTF, FIELD may be (TYPE)FIELD->MEMBER:",
	"then LEN is that of the member, and its type says how values are shown.",
	"With --window, MEMBER of the object that argument N of FUNCTION points at is watched",
	"from each call of the function until it returns. argN+OFFSET requires no BTF.",
	"",
	"  hwbp trace w@jiffies",
	"        writes to the timer tick",
	"  hwbp trace -n 10 rw@init_task+16:8",
	"        the first ten accesses to eight bytes",
	"  hwbp trace --object 'kmalloc:ptr if bytes_alloc == 192' --clear-on kfree:ptr \\",
	"             --slots 4 --timeout 1s -g w+16:8",
	"        writes to offset 16 of the last four objects of 192 bytes, for a second or",
	"        until they are freed, with the functions that led to each",
	"",
	"This requires root, tracefs in " TRACEFS ", and a kernel with",
	"CONFIG_WPROBE_EVENTS. The event takes one debug register of each CPU, or --slots.",
	"--clean removes the events of runs that were killed before they could do so.",
	"",
	"The exit status is 0, or 125 on failure.",
	NULL
};

/**
 * struct trace - one run
 * @place: what to watch
 * @output: file for the report, NULL for stdout
 * @max_ns: end after this time, 0 for no limit
 * @clean: only remove the events of runs that were killed
 * @instance: directory of the instance
 * @rep: the report
 * @loop: waits for hits and the end
 */
struct trace {
	struct trace_place place;
	const char *output;
	uint64_t max_ns;
	bool clean;
	char *instance;
	struct trace_report rep;
	struct loop loop;
};

/* ---- messages of the kernel ---- */

/* Last entry that the error log had before this run, with its time; or NULL */
static char *old_error;

/* Time and message of the last entry of an error log, or NULL */
static char *last_error(const char *dir)
{
	char *path = xasprintf("%s/error_log", dir), *line = NULL, *last = NULL;
	FILE *file = fopen(path, "r");
	size_t capacity = 0;

	while (file && getline(&line, &capacity, file) > 0) {
		if (!strstr(line, "error: "))
			continue;
		free(last);
		last = xstrdup(line);
		last[strcspn(last, "\n")] = '\0';
	}
	if (file)
		fclose(file);
	free(line);
	free(path);
	return last;
}

/* Message of the kernel for the last command of this run that it refused, or NULL */
static char *kernel_says(const char *dir)
{
	char *last = last_error(dir), *text = NULL;

	if (last && !(old_error && !strcmp(last, old_error)))
		text = xstrdup(strstr(last, "error: ") + strlen("error: "));
	free(last);
	return text;
}

/* ---- set-up ---- */

static void fail(const struct trace *t, const char *dir, const char *what, int err)
{
	const char *spec = t->place.spec;
	char *says = kernel_says(dir);

	tracefs_remove(getpid());
	if (err == ENOSPC)
		holders_die(&(struct holders_request){
				.need = t->place.slots ? t->place.slots : 1,
			    },
			    xasprintf("%s: no debug register available on all CPUs", spec),
			    "close one of these: a watch event takes a register of each CPU");
	if (says)
		die("%s: %s (%s)", what, says, strerror(err));
	die("%s: %s", what, strerror(err));
}

static void define_event(const struct trace *t, const char *text)
{
	int err = tracefs_put(EVENTS, text, O_APPEND);
	char *says = err ? kernel_says(TRACEFS) : NULL;

	if (!err)
		return;
	tracefs_remove(getpid());
	die("cannot watch %s: %s", t->place.loc.text, says ? says : strerror(err));
}

static char *trigger_path(const struct trace *t, const char *file)
{
	return xasprintf("%s/events/%s/trigger", t->instance, file);
}

static void add_trigger(const struct trace *t, const char *file, const char *text)
{
	char *path = trigger_path(t, file);
	int err = tracefs_put(path, text, O_APPEND);

	if (err)
		fail(t, t->instance, xasprintf("cannot set a trigger on '%s'", file), err);
	free(path);
}

/* Write @text to a file of the instance. */
static int put(const struct trace *t, const char *file, const char *text)
{
	char *path = xasprintf("%s/%s", t->instance, file);
	int err = tracefs_put(path, text, 0);

	free(path);
	return err;
}

/* ---- features of the kernel ---- */

static bool file_contains(const char *path, const char *text)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	bool found = false;
	size_t capacity = 0;

	while (file && !found && getline(&line, &capacity, file) > 0)
		found = strstr(line, text);
	if (file)
		fclose(file);
	free(line);
	return found;
}

static void die_unreadable(int err)
{
	if (err == EACCES || err == EPERM)
		refusal_die(&(struct refusal){ .what = REFUSED_TRACEFS }, err);
	if (access("/sys/kernel", F_OK))
		die("/sys/kernel does not exist: sysfs is not mounted");
	if (access(TRACEFS, F_OK))
		die("this kernel has no tracing: " TRACEFS " does not exist (CONFIG_FTRACE)");
	if (access(TRACEFS "/README", F_OK))
		die("tracefs is not mounted (mount -t tracefs none " TRACEFS ")");
	die("this kernel has no dynamic trace events: %s does not exist (%s)", EVENTS,
	    "CONFIG_DYNAMIC_EVENTS");
}

/* Exits with a message for the first feature that is missing. */
static void check_kernel(const struct trace *t)
{
	/* Lockdown does not change the permissions that access() looks at. */
	int fd = open(EVENTS, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		die_unreadable(errno);
	close(fd);
	if (!file_contains(TRACEFS "/README", WATCH_EVENTS))
		die("this kernel has no watch events: %s lacks '%s' (%s)", TRACEFS "/README",
		    WATCH_EVENTS, "CONFIG_WPROBE_EVENTS of the hardware breakpoint series");
	if (t->place.object && access(TRACEFS "/events", F_OK))
		die("this kernel has no trace events: " TRACEFS "/events does not exist");
}

static void set_up(struct trace *t)
{
	const struct trace_place *place = &t->place;
	char *enable;
	int err;

	check_kernel(t);
	trace_place_resolve(&t->place, getpid());
	t->rep.event = tracefs_event(getpid());
	t->rep.loc = &place->loc;
	t->instance = tracefs_instance(getpid());
	tracefs_note_left();
	old_error = last_error(TRACEFS);
	define_event(t, place->event);
	if (place->carrier)
		define_event(t, place->carrier);
	if (mkdir(t->instance, 0700))
		fail(t, TRACEFS, t->instance, errno);
	err = t->rep.callers ? put(t, "options/stacktrace", "1") : 0;
	if (err)
		fail(t, t->instance, "cannot record stacks", err);
	if (place->set)
		add_trigger(t, place->set_file, place->set);
	if (place->clear)
		add_trigger(t, place->clear_file, place->clear);
	enable = xasprintf("events/" GROUP "/%s/enable", t->rep.event);
	err = put(t, enable, "1");
	if (err)
		fail(t, t->instance, "cannot enable the event", err);
	free(enable);
}

/* ---- hits ---- */

/* Show the complete lines in @buf; an incomplete one stays there. */
static void show_lines(struct trace *t, char *buf, size_t *len)
{
	char *end, *line = buf;

	buf[*len] = '\0';
	while ((end = strchr(line, '\n')) && !trace_report_is_full(&t->rep)) {
		*end = '\0';
		trace_report_line(&t->rep, line);
		line = end + 1;
	}
	*len = strlen(line);
	memmove(buf, line, *len + 1);
	/* An entry that has been read is complete. */
	if (!*len)
		trace_report_pause(&t->rep);
	fflush(t->rep.out);
}

/* Returns true if there are enough hits, or the report cannot be written. */
static bool is_done(const struct trace *t)
{
	return trace_report_is_full(&t->rep) || ferror(t->rep.out);
}

static int open_pipe(const struct trace *t)
{
	char *path = xasprintf("%s/trace_pipe", t->instance);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		fail(t, t->instance, path, errno);
	free(path);
	return fd;
}

/* Returns false if there is nothing to read. */
static bool read_hits(struct trace *t, int fd)
{
	static char buf[65536];
	static size_t len;
	ssize_t got;

	/* Drop a line that does not fit. */
	if (len == sizeof(buf) - 1)
		len = 0;
	got = read(fd, buf + len, sizeof(buf) - 1 - len);
	if (got <= 0)
		return false;
	len += got;
	show_lines(t, buf, &len);
	return true;
}

static void show_hits(struct trace *t)
{
	int fd = open_pipe(t);
	bool more = true;

	while (more && !is_done(t)) {
		more = loop_wait(&t->loop, &fd, 1, -1);
		read_hits(t, fd);
	}
	put(t, "tracing_on", "0");
	while (!is_done(t) && read_hits(t, fd))
		;
	close(fd);
}

/* What the trigger file says about the objects, or NULL */
static char *objects_of(const struct trace *t)
{
	char *path = t->place.set ? trigger_path(t, t->place.set_file) : NULL;
	FILE *file = path ? fopen(path, "re") : NULL;
	char *line = NULL, *found = NULL, *mark;
	size_t capacity = 0;

	while (file && !found && getline(&line, &capacity, file) > 0) {
		mark = strstr(line, "set_wprobe:" GROUP "/") ? strrchr(line, '#') : NULL;
		if (mark)
			found = xasprintf("%.*s", (int)strcspn(mark + 1, "[\n"), mark + 1);
	}
	if (file)
		fclose(file);
	free(line);
	free(path);
	return found;
}

/* ---- command line ---- */

static int clean(const struct trace *t)
{
	if (t->place.spec)
		die("--clean takes no place");
	check_kernel(t);
	tracefs_remove_left();
	flush_output(stdout);
	return 0;
}

static int run(int argc, const char **argv)
{
	struct trace t = { 0 };
	const char *types = NULL;
	const struct option options[] = {
		OPT_COUNT('n', "hits", &t.rep.max_hits, "N", "end after N hits"),
		OPT_SECONDS('t', "time", &t.max_ns, "end after SECONDS"),
		OPT_STRING('o', "output", &t.output, "FILE",
			   "write the report to FILE instead of standard output"),
		OPT_BOOLEAN(0, "json", &t.rep.json, "print JSON, one object per line"),
		OPT_BOOLEAN('g', "callers", &t.rep.callers, "print the call chain of each access"),
		OPT_STRING(0, "object", &t.place.object, "EVENT:FIELD",
			   "at each EVENT, watch the object at the address in FIELD"),
		OPT_STRING(0, "clear-on", &t.place.clear_on, "EVENT[:FIELD]",
			   "at EVENT, end the watch of the object in FIELD"),
		OPT_STRING(0, "window", &t.place.window, "FUNCTION",
			   "watch the object of an argument while FUNCTION runs"),
		OPT_UINTEGER(0, "slots", &t.place.slots,
			     "number of objects that are watched at the same time"),
		OPT_STRING(0, "timeout", &t.place.timeout, "TIME",
			   "end the watch of an object after TIME, such as 10ms or 1s"),
		OPT_BOOLEAN(0, "clean", &t.clean, "remove the events of runs that were killed"),
		/* For tests */
		{ .type = OPTION_STRING, .long_name = "from", .value = &types, .argh = "FILE",
		  .help = "read types from FILE instead of the BTF of the kernel",
		  .flags = PARSE_OPT_HIDDEN },
		OPTIONS_END
	};
	void (*old_handler)(int signal);
	char *objects;

	argc = options_parse(argc, argv, options, usage);
	t.place.spec = argc ? argv[0] : NULL;
	if (argc > 1)
		die("unexpected argument '%s' (see hwbp trace --help)", argv[1]);
	if (t.clean)
		return clean(&t);
	if (!t.place.spec && t.place.object)
		t.place.spec = "w";
	trace_place_check(&t.place);
	btf_use(types);
	t.rep.out = open_output(t.output);
	loop_begin(&t.loop, t.max_ns, -1);
	/* Remove the event if the reader of the report exits; end by the signal after that. */
	old_handler = signal(SIGPIPE, SIG_IGN);
	set_up(&t);
	show_hits(&t);
	objects = objects_of(&t);
	if (tracefs_remove(getpid()))
		note("cannot remove the event " GROUP "/%s", t.rep.event);
	signal(SIGPIPE, old_handler);
	loop_end(&t.loop);
	trace_report_end(&t.rep, objects);
	return 0;
}

const struct verb verb_trace = {
	.name = "trace",
	.summary = "print each access to memory of the kernel",
	.run = run,
};
