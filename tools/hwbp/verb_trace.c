// SPDX-License-Identifier: GPL-2.0
/*
 * hwbp trace: define a watch event in an instance of its own, show its hits as they
 * happen, and remove event, triggers and instance at the end.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holders.h"
#include "json.h"
#include "loop.h"
#include "options.h"
#include "tracefs.h"
#include "util.h"
#include "verb.h"

/* Watch events in the README of tracefs */
#define WATCH_EVENTS	"[r|w|rw]@<addr>[:<len>]"

static const char *const usage[] = {
	"hwbp trace [OPTION...] ACCESS@PLACE[:LEN]",
	"hwbp trace [OPTION...] --set-on EVENT:FIELD [--clear-on EVENT[:FIELD]] ACCESS[+OFFSET][:LEN]",
	"hwbp trace --clean",
	"",
	"Watch memory of the kernel with a watch event of tracefs, and print each access:",
	"time in seconds, name and ID of the thread, CPU, watched address, value after the",
	"access, instruction.",
	"",
	"ACCESS is w, rw or x. PLACE is a symbol of the kernel or MODULE:SYMBOL, with",
	"+OFFSET or -OFFSET, or an address. LEN is 1, 2, 4 or 8 (default: 4).",
	"With --set-on, each time the trace event EVENT is hit, the address in its FIELD",
	"plus OFFSET is watched instead of the previous address. --clear-on names an event",
	"that ends the watch; with a FIELD, only if it holds the watched address. EVENT is",
	"GROUP:NAME, as in 'perf list'; ' if FILTER' may follow.",
	"",
	"  hwbp trace w@jiffies",
	"        writes to the timer tick",
	"  hwbp trace -n 10 rw@init_task+16:8",
	"        the first ten accesses to eight bytes",
	"  hwbp trace --set-on 'kmem:kmem_cache_alloc:ptr if bytes_alloc == 192' \\",
	"             --clear-on kmem:kmem_cache_free:ptr w+16:8",
	"        writes to offset 16 of the last object of 192 bytes, until it is freed",
	"",
	"This requires root, tracefs in " TRACEFS ", and a kernel with",
	"CONFIG_WPROBE_EVENTS. The event takes one debug register of each CPU. --clean",
	"removes the events of runs that were killed before they could do so.",
	"",
	"The exit status is 0, or 125 on failure.",
	NULL
};

/**
 * struct trace - one run
 * @spec: ACCESS@PLACE[:LEN], or ACCESS[+OFFSET][:LEN] with @set_on
 * @set_on: EVENT:FIELD[ if FILTER]
 * @clear_on: EVENT[:FIELD][ if FILTER]
 * @output: file for the report, NULL for stdout
 * @max_hits: end after this number of hits, 0 for no limit
 * @max_ns: end after this time, 0 for no limit
 * @json: print JSON
 * @clean: only remove the events of runs that were killed
 * @name: name of the event
 * @instance: directory of the instance
 * @out: the report
 * @nr: number of hits so far
 * @loop: waits for hits and the end
 */
struct trace {
	const char	*spec;
	const char	*set_on;
	const char	*clear_on;
	const char	*output;
	uint64_t	max_hits;
	uint64_t	max_ns;
	bool		json;
	bool		clean;
	char		*name;
	char		*instance;
	FILE		*out;
	uint64_t	nr;
	struct loop	loop;
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

/* ---- removal ---- */

static char *trigger_file(const struct trace *t, const char *where)
{
	size_t group = strcspn(where, ":"), name;

	if (!where[group])
		return NULL;
	name = strcspn(where + group + 1, ": ");
	return xasprintf("%s/events/%.*s/%.*s/trigger", t->instance, (int)group, where,
			 (int)name, where + group + 1);
}

static void remove_trigger(const struct trace *t, const char *command, const char *where)
{
	char *path = where ? trigger_file(t, where) : NULL, *text;

	if (!path)
		return;
	text = xasprintf("!%s:" GROUP "/%s", command, t->name);
	tracefs_put(path, text, O_APPEND);
	free(text);
	free(path);
}

static void remove_all(const struct trace *t)
{
	char *enable = xasprintf("%s/events/" GROUP "/%s/enable", t->instance, t->name);

	remove_trigger(t, "set_wprobe", t->set_on);
	remove_trigger(t, "clear_wprobe", t->clear_on);
	tracefs_put(enable, "0", 0);
	if (tracefs_remove(getpid()))
		note("cannot remove the event " GROUP "/%s", t->name);
	free(enable);
}

static void fail(const struct trace *t, const char *dir, const char *what, int err)
{
	char *says = kernel_says(dir);

	remove_all(t);
	if (err == ENOSPC)
		holders_die(&(struct holders_request){ .execute = t->spec[0] == 'x', .need = 1 },
			    xasprintf("%s: no debug register available on all CPUs", t->spec),
			    "close one of these: a watch event takes a register of each CPU");
	if (says)
		die("%s: %s (%s)", what, says, strerror(err));
	die("%s: %s", what, strerror(err));
}

/* ---- set-up ---- */

/* The part of ACCESS[+OFFSET][:LEN] that starts with @begin */
static char *piece(const char *spec, char begin, const char *end)
{
	const char *at = strchr(spec, begin);

	return at ? strndup(at, 1 + strcspn(at + 1, end)) : xstrdup("");
}

static const char *value_type(const char *len)
{
	switch (atoi(len[0] ? len + 1 : "4")) {
	case 1:
		return "x8";
	case 2:
		return "x16";
	case 8:
		return "x64";
	default:
		return "x32";
	}
}

/* ":LEN"; the last colon may also be that of MODULE:SYMBOL. */
static const char *len_of(const char *spec)
{
	const char *colon = strrchr(spec, ':');

	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) ?
	       colon : "";
}

static void define_event(struct trace *t)
{
	const char *len = len_of(t->spec), *value = value_type(len);
	char *place, *text;
	int err;

	if (t->set_on)
		place = xasprintf("%.*s@-1%s", (int)strcspn(t->spec, "+-:"), t->spec, len);
	else
		place = xstrdup(t->spec);
	if (place[0] == 'x')
		text = xasprintf("w:" GROUP "/%s %s addr=$addr", t->name, place);
	else
		text = xasprintf("w:" GROUP "/%s %s addr=$addr value=+0($addr):%s", t->name,
				 place, value);
	old_error = last_error(TRACEFS);
	err = tracefs_put(EVENTS, text, O_APPEND);
	if (err) {
		char *says = kernel_says(TRACEFS);

		if (says)
			die("cannot watch %s: %s", t->spec, says);
		die("cannot watch %s: %s", t->spec, strerror(err));
	}
	free(text);
	free(place);
}

static bool is_option(const char *text, size_t len)
{
	return isdigit((unsigned char)text[0]) || !strncmp(text, "count=", strlen("count=")) ||
	       !strncmp(text, "timeout=", strlen("timeout=")) ||
	       (len == strlen("this_cpu") && !strncmp(text, "this_cpu", len)) ||
	       (len == strlen("evict") && !strncmp(text, "evict", len)) ||
	       (len == strlen("unlimited") && !strncmp(text, "unlimited", len));
}

/* Length of the field, with the colon before it, that @rest of GROUP:NAME starts with */
static int field_len(const char *rest)
{
	size_t len;

	if (rest[0] != ':')
		return 0;
	len = strcspn(rest + 1, ": ");
	return is_option(rest + 1, len) ? 0 : 1 + len;
}

/*
 * @where is GROUP:NAME[:FIELD][:OPTION...][ if FILTER]; append @option and the offset to the
 * field.
 */
static void add_trigger(struct trace *t, const char *command, const char *where,
			const char *option)
{
	char *path = trigger_file(t, where), *text, *offset;
	const char *rest;
	int err, len;

	if (!path) {
		remove_all(t);
		die("'%s' is not GROUP:NAME:FIELD", where);
	}
	rest = strchr(where, ':') + 1;
	rest += strcspn(rest, ": ");
	len = field_len(rest);
	offset = piece(t->spec, strchr(t->spec, '-') ? '-' : '+', ":");
	text = xasprintf("%s:" GROUP "/%s%.*s%s%s%s", command, t->name, len, rest,
			 len ? offset : "", strstr(rest, ":evict") ? "" : option, rest + len);
	err = tracefs_put(path, text, O_APPEND);
	if (err)
		fail(t, t->instance, xasprintf("cannot set a trigger on '%s'", where), err);
	free(offset);
	free(text);
	free(path);
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
		die("no permission to use " TRACEFS ": this requires root%s",
		    geteuid() ? "" : "; the kernel is locked down");
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
	if (access(EVENTS, W_OK))
		die_unreadable(errno);
	if (!file_contains(TRACEFS "/README", WATCH_EVENTS))
		die("this kernel has no watch events: %s lacks '%s' (%s)", TRACEFS "/README",
		    WATCH_EVENTS, "CONFIG_WPROBE_EVENTS of the hardware breakpoint series");
	if (t->set_on && access(TRACEFS "/events", F_OK))
		die("this kernel has no trace events: " TRACEFS "/events does not exist");
}

static void set_up(struct trace *t)
{
	char *enable;
	int err;

	t->name = tracefs_event(getpid());
	t->instance = tracefs_instance(getpid());
	check_kernel(t);
	tracefs_note_left();
	define_event(t);
	if (mkdir(t->instance, 0700))
		fail(t, TRACEFS, t->instance, errno);
	if (t->set_on)
		add_trigger(t, "set_wprobe", t->set_on, ":evict");
	if (t->clear_on)
		add_trigger(t, "clear_wprobe", t->clear_on, "");
	enable = xasprintf("%s/events/" GROUP "/%s/enable", t->instance, t->name);
	err = tracefs_put(enable, "1", 0);
	if (err)
		fail(t, t->instance, "cannot enable the event", err);
	free(enable);
}

/* ---- hits ---- */

/*
 * Copy of @task, "comm-pid"; to be freed. The trace has "<...>" if the kernel did not record
 * the name, for example that of a thread that has not been switched since the event was
 * enabled: look it up.
 */
static char *named_task(const char *task)
{
	static const char unknown[] = "<...>-";
	char *path, *comm, *named;

	if (strncmp(task, unknown, strlen(unknown)) || !has_initial_pids())
		return xstrdup(task);
	task += strlen(unknown);
	path = xasprintf("/proc/%s/comm", task);
	comm = read_line_of(path);
	named = xasprintf("%s-%s", comm ? comm : "<...>", task);
	free(comm);
	free(path);
	return named;
}

/* @args is "addr=0x... value=0x..."; an instruction has no value. */
static void json_hit(const struct trace *t, const char *time, char *task, int cpu,
		     const char *args, const char *symbol)
{
	const char *address = strstr(args, "addr="), *value = strstr(args, "value=");
	struct json json = json_begin(t->out, "hit");
	char *dash = strrchr(task, '-');

	/* The time that the trace prints: seconds of its clock */
	json_u64(&json, "time_us", strtod(time, NULL) * 1e6);
	json_int(&json, "tid", dash ? atoi(dash + 1) : 0);
	if (dash)
		*dash = '\0';
	json_string(&json, "comm", task);
	json_int(&json, "cpu", cpu);
	json_address(&json, "address", address ? strtoull(address + 5, NULL, 16) : 0);
	if (value)
		json_address(&json, "value", strtoull(value + 6, NULL, 16));
	json_string(&json, "instruction", symbol);
	json_end(&json);
}

/*
 *   comm-pid   [cpu] flags  time: name: (symbol+off/size) addr=... value=...
 * The name of a thread may contain any character: search from the right.
 */
static void show_line(struct trace *t, char *line)
{
	char *mark = xasprintf(": %s: (", t->name), *rest = strstr(line, mark), *cpu, *time;
	char *symbol, *args, *task;

	if (rest) {
		*rest = '\0';
		symbol = rest + strlen(mark);
		args = strstr(symbol, ") ");
		cpu = strrchr(line, '[');
		time = strrchr(line, ' ');
		if (args && cpu && time) {
			*args = '\0';
			*cpu++ = '\0';
			cpu[strcspn(cpu, "]")] = '\0';
			line += strspn(line, " ");
			line[strcspn(line, "\t\n")] = '\0';
			while (*line && line[strlen(line) - 1] == ' ')
				line[strlen(line) - 1] = '\0';
			task = named_task(line);
			t->nr++;
			if (t->json)
				json_hit(t, time + 1, task, atoi(cpu), args + 2, symbol);
			else
				fprintf(t->out, "%14s  %-20s cpu %d  %s  %s\n", time + 1,
					printable(task), atoi(cpu), args + 2, symbol);
			free(task);
		}
	} else if (strstr(line, "LOST") && t->json) {
		struct json json = json_begin(t->out, "lost");

		json_string(&json, "text", line);
		json_end(&json);
	} else if (strstr(line, "LOST")) {
		fprintf(t->out, "%s\n", printable(line));
	}
	free(mark);
}

static bool limit_reached(const struct trace *t)
{
	return t->max_hits && t->nr >= t->max_hits;
}

/* Show the complete lines in @buf; an incomplete one stays there. */
static void show_lines(struct trace *t, char *buf, size_t *len)
{
	char *end, *line = buf;

	buf[*len] = '\0';
	while ((end = strchr(line, '\n')) && !limit_reached(t)) {
		*end = '\0';
		show_line(t, line);
		line = end + 1;
	}
	*len = strlen(line);
	memmove(buf, line, *len + 1);
	fflush(t->out);
}

/* Returns true if there are enough hits, or the report cannot be written. */
static bool is_done(const struct trace *t)
{
	return limit_reached(t) || ferror(t->out);
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

static void stop_tracing(const struct trace *t)
{
	char *path = xasprintf("%s/tracing_on", t->instance);

	tracefs_put(path, "0", 0);
	free(path);
}

static void show_hits(struct trace *t)
{
	int fd = open_pipe(t);
	bool more = true;

	while (more && !is_done(t)) {
		more = loop_wait(&t->loop, &fd, 1, -1);
		read_hits(t, fd);
	}
	stop_tracing(t);
	while (!is_done(t) && read_hits(t, fd))
		;
	close(fd);
}

/* ---- command line ---- */

static void check(const struct trace *t)
{
	if (!t->spec)
		die("no place to watch was given (see hwbp trace --help)");
	if (t->clear_on && !t->set_on)
		die("--clear-on requires --set-on");
	if (t->set_on && strchr(t->spec, '@'))
		die("with --set-on the place is ACCESS[+OFFSET][:LEN], not '%s'", t->spec);
	if (!t->set_on && !strchr(t->spec, '@'))
		die("the place is ACCESS@PLACE[:LEN], not '%s'", t->spec);
}

static int clean(const struct trace *t)
{
	if (t->spec)
		die("--clean takes no place");
	check_kernel(t);
	tracefs_remove_left();
	flush_output(stdout);
	return 0;
}

static void print_end(const struct trace *t)
{
	struct json json;

	if (!t->json) {
		fprintf(t->out, "%llu hit%s\n", (unsigned long long)t->nr,
			t->nr == 1 ? "" : "s");
		return;
	}
	json = json_begin(t->out, "end");
	json_u64(&json, "hits", t->nr);
	json_end(&json);
}

static int run(int argc, const char **argv)
{
	struct trace t = { 0 };
	const struct option options[] = {
		OPT_COUNT('n', "hits", &t.max_hits, "N", "end after N hits"),
		OPT_SECONDS('t', "time", &t.max_ns, "end after SECONDS"),
		OPT_STRING('o', "output", &t.output, "FILE",
			   "write the report to FILE instead of standard output"),
		OPT_BOOLEAN(0, "json", &t.json, "print JSON, one object per line"),
		OPT_BOOLEAN(0, "clean", &t.clean, "remove the events of runs that were killed"),
		OPT_STRING(0, "set-on", &t.set_on, "EVENT:FIELD",
			   "at each EVENT, watch the address in FIELD"),
		OPT_STRING(0, "clear-on", &t.clear_on, "EVENT[:FIELD]",
			   "at EVENT, end the watch of the address in FIELD"),
		OPTIONS_END
	};
	void (*old_handler)(int signal);

	argc = options_parse(argc, argv, options, usage);
	t.spec = argc ? argv[0] : NULL;
	if (argc > 1)
		die("unexpected argument '%s' (see hwbp trace --help)", argv[1]);
	if (t.clean)
		return clean(&t);
	check(&t);
	t.out = open_output(t.output);
	loop_begin(&t.loop, t.max_ns, -1);
	/* Remove the event if the reader of the report exits; end by the signal after that. */
	old_handler = signal(SIGPIPE, SIG_IGN);
	set_up(&t);
	show_hits(&t);
	remove_all(&t);
	signal(SIGPIPE, old_handler);
	loop_end(&t.loop);
	print_end(&t);
	flush_output(t.out);
	return 0;
}

const struct verb verb_trace = {
	.name = "trace",
	.summary = "print each access to memory of the kernel",
	.run = run,
};
