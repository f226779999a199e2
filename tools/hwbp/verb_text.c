// SPDX-License-Identifier: GPL-2.0
/* hwbp text: record changes of the text of the kernel. */
#include "loop.h"
#include "options.h"
#include "rings.h"
#include "target.h"
#include "text.h"
#include "text_report.h"
#include "util.h"
#include "verb.h"

/*
 * Delay before a change of kernel text is shown. The kernel takes the time of a
 * record before it writes the record, so an older record of another CPU may appear
 * later.
 */
#define SETTLE_MS	20

static const char *const usage[] = {
	"hwbp text [OPTION...] [-- COMMAND [ARG...]]",
	"",
	"Print each change of the text (the instructions) of the running kernel on any",
	"CPU, while COMMAND runs or until ^C: time in seconds since the start, CPU that",
	"made the change, address, symbol, length, old -> new instruction. After that time",
	"no CPU executes the old one. Instructions other than nop, int3, ret, call and jmp",
	"are shown as bytes; -a shows all bytes. 'ftrace:' precedes a hook of ftrace.",
	"",
	"'new' stands for the old bytes if there was no text before, 'gone' for the new",
	"bytes if there is no text any more. A symbol that is registered or unregistered",
	"(BPF programs, copies of instructions by kprobes and ftrace) has a line without",
	"bytes. Lost records have a line of their own: changes are missing there. A",
	"symbol outside of the core kernel is looked up with a delay: the name of text",
	"that is removed soon may be missing, or be the name of text that replaced it.",
	"The report ends with the number of changes per symbol.",
	"",
	"--areas shows modules and BPF programs that are loaded and unloaded; it requires",
	"CAP_PERFMON, and CAP_SYSLOG for BPF. Only CPUs that are online at the start are",
	"recorded. Changes made by a CPU that comes online later, or again, are missing; a",
	"note at the end names such a CPU if it is still online. hwbp itself changes text",
	"when it starts and stops recording: before the first line and after the last.",
	"",
	"This requires CAP_PERFMON or a kernel.perf_event_paranoid of 0 or less, and",
	"addresses in /proc/kallsyms for the symbols. A limit or ^C ends the report, but",
	"not COMMAND. The exit status is that of COMMAND (128+N if signal N killed it); 0",
	"without COMMAND; 125 if hwbp itself failed; 126 if COMMAND cannot be executed; 127",
	"if it was not found.",
	NULL
};

struct session {
	struct target target;
	struct text *text;
	struct text_report *report;
	struct loop loop;
};

/* ---- records ---- */

static void on_change(void *arg, const struct text_change *change)
{
	struct session *s = arg;

	text_report_change(s->report, change);
}

static void on_area(void *arg, const struct text_area *area)
{
	struct session *s = arg;

	text_report_area(s->report, area);
}

static void on_lost(void *arg, uint64_t time, uint32_t cpu, uint64_t nr)
{
	struct session *s = arg;

	text_report_lost(s->report, time, cpu, nr);
}

static const struct text_ops text_ops = {
	.change = on_change,
	.area = on_area,
	.lost = on_lost,
};

/* ---- the run ---- */

static void set_up(struct session *s, const struct text_options *opt)
{
	s->report = text_report_new(opt);
	s->target.pidfd = -1;
	if (opt->cmd)
		target_launch(&s->target, opt->cmd);
	s->text = text_open(opt);
	text_report_prepare(s->report);
	loop_begin(&s->loop, opt->max_ns, s->target.pidfd);
	text_report_begin(s->report, s->loop.start);
	target_release(&s->target);
}

/* Show the records that are old enough. Returns true if younger ones are left. */
static bool show(struct session *s)
{
	bool more = text_drain(s->text, now_ns() - SETTLE_MS * 1000000ULL, &text_ops, s);

	text_report_flush(s->report);
	return more;
}

static void watch(struct session *s)
{
	const struct rings *rings = text_rings(s->text);
	bool more = false;

	/*
	 * Do not wait for the rings while changes wait to be shown: each further record
	 * would end the wait, and there may be thousands.
	 */
	while (loop_wait(&s->loop, rings_fds(rings), more ? 0 : rings_nr(rings),
			 more ? SETTLE_MS : -1))
		more = show(s);
}

static void finish(struct session *s)
{
	text_note_cpus(s->text);
	text_stop(s->text);
	text_drain(s->text, UINT64_MAX, &text_ops, s);
	text_report_end(s->report, text_nr_lost(s->text));
	text_close(s->text);
	loop_end(&s->loop);
}

static int run(int argc, const char **argv)
{
	struct text_options opt = { 0 };
	struct session s = { 0 };
	const struct option options[] = {
		OPT_SECONDS('t', "time", &opt.max_ns, "end after SECONDS"),
		OPT_STRING('o', "output", &opt.out, "FILE",
			   "write the report to FILE instead of standard output"),
		OPT_BOOLEAN('a', "all", &opt.all,
			    "print the bytes of all changes, and the counts of all symbols"),
		OPT_BOOLEAN(0, "areas", &opt.areas, "show whole areas of text, too"),
		OPT_BOOLEAN(0, "json", &opt.json, "print JSON, one object per line"),
		OPT_BOOLEAN('q', "quiet", &opt.quiet, "print only the counts"),
		OPT_MEGABYTES('b', "buffer", &opt.ring_mb,
			      "buffer size of each CPU (default: 4, less with many CPUs)"),
		OPTIONS_END
	};

	argc = options_parse(argc, argv, options, usage);
	opt.cmd = options_cut_command(&argc, argv);
	if (argc)
		die("unexpected argument '%s' (a command to run follows --)", argv[0]);
	set_up(&s, &opt);
	watch(&s);
	finish(&s);
	return target_finish(&s.target, "report");
}

const struct verb verb_text = {
	.name = "text",
	.summary = "print each change of the kernel's own instructions",
	.run = run,
};
