// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the virtual machine that the breakpoint tests run in, or, in one that
 * boots a distribution, a service of its init.
 *
 * The kernel command line has the mode, hwbp.mode= one of:
 *
 *   test   run the suites of /etc/hwbp/suites and write one nested KTAP
 *          document to the port PORT_VERDICT, line by line as the tests go;
 *          its last line is END_MARK, and a document without that line is
 *          invalid.  hwbp.tests= selects the tests of each suite by a glob.
 *   exec   run the command in /etc/hwbp/argv (NUL-separated words); its output
 *          goes to PORT_OUT and PORT_ERR, its exit status to PORT_VERDICT
 *   shell  an interactive shell on the console
 *
 * The console is only a log: no result is read from it.
 *
 * The ports are the devices that hwbp.ports= lists, by default of virtio.
 *
 * PORT_PULSE gets a line every few seconds of guest time, by which the host sees
 * that the machine makes progress, and how far it is:
 *
 *   UPTIME SUITES-DONE SUITES PASSED FAILED NAME
 *
 * This program records the subtests of each suite and how the suite ended (the
 * "# hwbp: end" line); the script verdict evaluates both on the host.  The ok or
 * not ok of a suite is only the summary that KTAP requires.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define SUITES_FILE	"/etc/hwbp/suites"
#define ARGV_FILE	"/etc/hwbp/argv"
#define KUNIT_DIR	"/sys/kernel/debug/kunit"
#define KMEMLEAK_FILE	"/sys/kernel/debug/kmemleak"
#define END_MARK	"# hwbp: end of document"

#define MAX_SUITES	256
#define MAX_WORDS	32

/* Maximum output of one suite; a suite that prints more is killed. */
#define OUTPUT_LIMIT	(4L << 20)

/* Time for killed processes to exit, in seconds; then they count as stuck. */
#define REAP_SECONDS	10

/* Interval of the lines on the pulse port, in seconds */
#define PULSE_SECONDS	5

/* kmemleak reports only unreferenced objects that are older than five seconds. */
#define KMEMLEAK_AGE	6

/*
 * Taint flags that are no failure: KUnit ran (18), a module from outside the tree (12),
 * an unsigned module (13).
 */
#define TAINTS_IGNORED	(1UL << 18 | 1UL << 12 | 1UL << 13)

#ifndef __noreturn
#define __noreturn	__attribute__((__noreturn__))
#endif
#ifndef __printf
#define __printf(a, b)	__attribute__((__format__(printf, a, b)))
#endif

/* The serial ports, in the order of hwbp.ports=. Two may be the same. */
enum port { PORT_VERDICT, PORT_PULSE, PORT_OUT, PORT_ERR };

#define DEFAULT_PORTS	"vport0p1,vport0p2,vport0p3,vport0p4"

/* How the output of a program is converted to subtests: the letter with which suites names it */
enum format {
	/* The program prints TAP or KTAP. */
	FORMAT_TAP = 't',
	/* The program prints "[OK]", "[FAIL]" and "[SKIP]" at the start of a line. */
	FORMAT_MARKS = 'm',
	/* The program has no subtests; its exit status is the one subtest. */
	FORMAT_EXIT = 'e',
	/* Not a program, but a KUnit suite that ran at boot */
	FORMAT_KUNIT = 'k',
};

struct suite {
	/* "ours/ptrace_regs", "stock/ptrace/vmaccess", "kunit/hw_breakpoint" */
	char *name;
	/* Time limit in seconds */
	long timeout;
	/* Minimum number of CPUs */
	long min_cpus;
	enum format format;
	/* argv of the program, which runs in the directory of its file */
	char **argv;
};

/* Results so far of the suite that runs */
struct tally {
	int passed;
	int failed;
	long bytes;
};

static struct suite suites[MAX_SUITES];
static int nr_suites;

/* The KTAP document; each line is flushed when it is complete. */
static FILE *doc;

/* A file descriptor that becomes readable when a child has exited */
static int child_fd;

/* PORT_PULSE, or -1 */
static int pulse_fd = -1;

/* For the pulse: number of suites that are done, and results of all of them */
static int suites_done;
static int total_passed;
static int total_failed;

/* ---- end of the machine ------------------------------------------------ */

/*
 * The runner starts QEMU with -no-reboot, so a reset ends QEMU. A panic does the same;
 * only a normal end writes END_MARK.
 */
static void __noreturn leave(void)
{
	if (doc)
		fclose(doc);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void __noreturn __printf(1, 2) give_up(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);

	fprintf(stderr, "init: %s\n", text);
	if (doc)
		fprintf(doc, "Bail out! %s\n", text);
	leave();
}

/* ---- small helpers ----------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Writes a sysctl or a control file; returns false if the kernel does not have it. */
static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* Reads a whole file and adds a NUL; returns NULL if it cannot be read. */
static char *slurp(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re"), *copy;
	char *buf = NULL;
	size_t len = 0;
	int c;

	if (!file)
		return NULL;
	copy = open_memstream(&buf, &len);
	while (copy && (c = getc(file)) != EOF)
		putc(c, copy);
	fclose(file);
	if (!copy || fclose(copy))
		give_up("out of memory reading %s", path);
	if (size)
		*size = len;
	return buf;
}

/* The next line of *text, or NULL at its end */
static char *next_line(char **text)
{
	return *text && **text ? strsep(text, "\n") : NULL;
}

static unsigned long taint(void)
{
	char *text = slurp("/proc/sys/kernel/tainted", NULL);
	unsigned long value = text ? strtoul(text, NULL, 10) : 0;

	free(text);
	return value & ~TAINTS_IGNORED;
}

/* The value of key=value on the kernel command line, or fallback */
static char *parameter(const char *key, char *fallback)
{
	char *words = slurp("/proc/cmdline", NULL), *word;
	size_t len = strlen(key);

	while ((word = strsep(&words, " \n")))
		if (!strncmp(word, key, len) && word[len] == '=')
			return word + len + 1;
	return fallback;
}

/* ---- setting up the machine -------------------------------------------- */

static void mount_filesystems(void)
{
	static const char *const mounts[][2] = {
		{ "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" },
		{ "devpts", "/dev/pts" }, { "tmpfs", "/dev/shm" }, { "tmpfs", "/run" },
		{ "debugfs", "/sys/kernel/debug" }, { "tracefs", "/sys/kernel/tracing" },
		{ "cgroup2", "/sys/fs/cgroup" }, { "bpf", "/sys/fs/bpf" },
	};
	const char *type, *dir;
	size_t i;

	umask(0);
	for (i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		type = mounts[i][0];
		dir = mounts[i][1];
		mkdir(dir, 0755);
		if (mount(type, dir, type, 0, NULL) && errno != EBUSY)
			fprintf(stderr, "init: no %s at %s: %s\n", type, dir, strerror(errno));
	}
	if (symlink("/proc/self/fd", "/dev/fd"))
		perror("init: /dev/fd");
	mkdir("/tmp", 01777);
	chmod("/tmp", 01777);
	chmod("/dev/shm", 01777);
	umask(022);
}

/*
 * perf_event_paranoid 1: an unprivileged task may watch itself in user mode, but
 * neither the kernel nor a whole CPU. The tests expect this value, and set another one
 * if they need it.
 */
static void set_sysctls(void)
{
	struct rlimit no_core = { 0, 0 };

	put("/proc/sys/kernel/perf_event_paranoid", "1");
	put("/proc/sys/kernel/kptr_restrict", "0");
	put("/proc/sys/kernel/printk_ratelimit", "0");
	put("/proc/sys/kernel/hung_task_timeout_secs", "60");
	setrlimit(RLIMIT_CORE, &no_core);
}

static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* The kernel puts NAME=value of its command line into the environment. */
static void keep_parameters_of_tests(void)
{
	char **keep = environ, **p;

	for (p = environ; *p; p++) {
		if (!strncmp(*p, "BP_", 3))
			*keep++ = *p;
	}
	*keep = NULL;
}

static void set_environment(void)
{
	keep_parameters_of_tests();
	setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/root", 1);
	setenv("TMPDIR", "/tmp", 1);
	setenv("LANG", "C", 1);
	setenv("TERM", parameter("hwbp.term", "linux"), 1);
}

static void watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child_fd < 0)
		give_up("signalfd: %s", strerror(errno));
}

/* A terminal would change what is written, and send it with 9600 bits a second. */
static void make_raw(int fd)
{
	struct termios raw;

	if (tcgetattr(fd, &raw))
		return;
	cfmakeraw(&raw);
	cfsetspeed(&raw, B115200);
	tcsetattr(fd, TCSANOW, &raw);
}

/* Opens a serial port, which appears some time after the device. */
static int open_port(enum port port)
{
	char *names = parameter("hwbp.ports", DEFAULT_PORTS);
	char path[64];
	int fd, tries;

	for (; port > 0 && names; port--)
		names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL;
	if (!names)
		give_up("hwbp.ports= lists too few");
	snprintf(path, sizeof(path), "/dev/%.*s", (int)strcspn(names, ","), names);
	for (tries = 0; tries < 600; tries++) {
		fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0) {
			make_raw(fd);
			return fd;
		}
		usleep(50000);
	}
	give_up("no serial port %s", path);
}

static void open_document(void)
{
	doc = fdopen(open_port(PORT_VERDICT), "w");
	if (!doc)
		give_up("fdopen: %s", strerror(errno));
	setvbuf(doc, NULL, _IOLBF, 1 << 16);
	pulse_fd = open_port(PORT_PULSE);
}

/* ---- progress ---------------------------------------------------------- */

static void pulse_now(const char *name, const struct tally *t)
{
	dprintf(pulse_fd, "%.1f %d %d %d %d %s\n", now(), suites_done, nr_suites,
		total_passed + (t ? t->passed : 0), total_failed + (t ? t->failed : 0), name);
}

static void pulse(const char *name, const struct tally *t)
{
	static double last;

	if (pulse_fd < 0 || now() < last + PULSE_SECONDS)
		return;
	last = now();
	pulse_now(name, t);
}

/* ---- the list of suites ------------------------------------------------ */

/* NAME FORMAT TIMEOUT CPUS [COMMAND...] */
static void add_suite(char **words, int nr)
{
	struct suite *suite = &suites[nr_suites];
	int i;

	if (nr < 4 || nr_suites == MAX_SUITES || !strchr("tmek", *words[1]))
		give_up("%s: bad line for '%s'", SUITES_FILE, words[0]);
	suite->name = words[0];
	suite->format = *words[1];
	suite->timeout = atol(words[2]) * atol(parameter("hwbp.slow", "1"));
	suite->min_cpus = atol(words[3]);
	suite->argv = calloc(nr - 4 + 1, sizeof(*suite->argv));
	for (i = 4; i < nr; i++)
		suite->argv[i - 4] = words[i];
	if (suite->format != FORMAT_KUNIT && !suite->argv[0])
		give_up("%s: %s has no command", SUITES_FILE, suite->name);
	nr_suites++;
}

static void parse_line(char *line)
{
	char *words[MAX_WORDS], *word;
	int nr = 0;

	line[strcspn(line, "#")] = '\0';
	for (word = strtok(line, " \t"); word && nr < MAX_WORDS; word = strtok(NULL, " \t"))
		words[nr++] = word;
	/* Other lines are for the host. */
	if (nr && strchr(words[0], '/'))
		add_suite(words, nr);
}

/*
 * Adds KUnit suites that ran and are not in the list, so that they are reported as
 * well.
 */
static void add_unlisted_kunit(void)
{
	DIR *dir = opendir(KUNIT_DIR);
	struct dirent *entry;
	char name[300];
	bool known;
	int i;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "kunit/%s", entry->d_name);
		for (known = false, i = 0; i < nr_suites; i++)
			known |= !strcmp(suites[i].name, name);
		if (known || nr_suites == MAX_SUITES)
			continue;
		suites[nr_suites].format = FORMAT_KUNIT;
		suites[nr_suites++].name = strdup(name);
	}
	if (dir)
		closedir(dir);
}

static void load_suites(void)
{
	char *text = slurp(SUITES_FILE, NULL), *line;

	if (!text)
		give_up("cannot read %s", SUITES_FILE);
	while ((line = next_line(&text)))
		parse_line(line);
	add_unlisted_kunit();
}

/* ---- running a program ------------------------------------------------- */

/* Starts argv in the directory of its file, with its output to out and err. */
static pid_t start(char **argv, int out, int err)
{
	char *dir, *slash;
	sigset_t none;
	pid_t pid = fork();

	if (pid)
		return pid;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(out, 1);
	dup2(err, 2);
	dir = strdup(argv[0]);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		if (chdir(dir))
			fprintf(stderr, "cannot enter %s: %s\n", dir, strerror(errno));
	}
	execvp(argv[0], argv);
	fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/*
 * Reaps all processes that have exited, orphans included: a test may wait until the pid
 * of a grandchild no longer exists. Returns true if pid is among them.
 */
static bool reap(pid_t pid, int *status)
{
	struct signalfd_siginfo info;
	bool found = false;
	pid_t dead;
	int st;

	while (read(child_fd, &info, sizeof(info)) > 0)
		;
	while ((dead = waitpid(-1, &st, WNOHANG)) > 0) {
		if (dead == pid) {
			*status = st;
			found = true;
		}
	}
	return found;
}

/* As PID 1 all processes but this one, else those of the same service of systemd */
static void kill_others(void)
{
	char path[PATH_MAX], group[4001], *text, *pid;

	if (getpid() == 1) {
		kill(-1, SIGKILL);
		return;
	}
	text = slurp("/proc/self/cgroup", NULL);
	if (!text || sscanf(text, "0::%4000s", group) != 1)
		give_up("not in a cgroup of version 2");
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.procs", group);
	text = slurp(path, NULL);
	while ((pid = next_line(&text)))
		if (atoi(pid) != getpid())
			kill(atoi(pid), SIGKILL);
}

/*
 * Kills every process that a suite may have left and waits for them.  Returns false if some
 * would not die, which means that they are stuck in the kernel; where, goes to
 * the console.
 */
static bool kill_all(void)
{
	double deadline = now() + REAP_SECONDS;

	kill_others();
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (now() > deadline) {
			put("/proc/sysrq-trigger", "w");
			return false;
		}
		usleep(2000);
		if (getpid() != 1)
			kill_others();
	}
	return true;
}

/* ---- converting output to subtests ------------------------------------- */

static bool starts(const char *line, const char *what)
{
	return !strncmp(line, what, strlen(what));
}

static void subtest(struct tally *t, bool ok, const char *name, const char *directive)
{
	fprintf(doc, "    %s %d %s%s\n", ok ? "ok" : "not ok", t->passed + t->failed + 1,
		name, directive);
	if (ok)
		t->passed++;
	else
		t->failed++;
}

/*
 * The selftests in tools/testing/selftests/x86 print "[OK]\ttext". The text is used as
 * the name of the subtest.
 */
static void marks_line(struct tally *t, const char *line)
{
	const char *text = strchr(line, ']');

	text = text ? text + 1 + strspn(text + 1, " \t") : line;
	if (starts(line, "[OK]") || starts(line, "[FAIL]"))
		subtest(t, line[1] == 'O', text, "");
	else if (starts(line, "[SKIP]"))
		subtest(t, true, text, " # SKIP");
	else
		fprintf(doc, "    # %s\n", line);
}

/* Lines of KTAP are copied; all others become comments. */
static void tap_line(struct tally *t, const char *line)
{
	const char *text = line + strspn(line, " ");
	bool passed = starts(line, "ok "), failed = starts(line, "not ok ");
	bool known;

	if (starts(text, "TAP version") || starts(text, "KTAP version"))
		return;
	t->passed += passed;
	t->failed += failed;
	known = starts(text, "ok ") || starts(text, "not ok ") || starts(text, "1..") ||
		*text == '#';
	fprintf(doc, "    %s%s\n", known ? "" : "# ", line);
}

static void output_line(const struct suite *suite, struct tally *t, char *line, bool is_err)
{
	size_t i;

	/* Replace characters that are not printable, which could confuse readers. */
	for (i = 0; line[i]; i++)
		if (!isprint((unsigned char)line[i]) && line[i] != '\t')
			line[i] = '?';
	if (is_err)
		fprintf(doc, "    # stderr: %s\n", line);
	else if (suite->format == FORMAT_TAP)
		tap_line(t, line);
	else if (suite->format == FORMAT_MARKS)
		marks_line(t, line);
	else
		fprintf(doc, "    # %s\n", line);
}

/* One of the two outputs of a suite, split into lines */
struct reader {
	int fd;
	bool is_err;
	size_t len;
	char line[4096];
};

static void flush_line(const struct suite *suite, struct tally *t, struct reader *r)
{
	r->line[r->len] = '\0';
	r->len = 0;
	output_line(suite, t, r->line, r->is_err);
}

/* Reads what is available; at end of file (or EIO of a terminal) closes it. */
static void read_output(const struct suite *suite, struct tally *t, struct reader *r)
{
	char buf[4096];
	ssize_t got, i;

	got = read(r->fd, buf, sizeof(buf));
	for (i = 0; i < got; i++) {
		if (buf[i] == '\n')
			flush_line(suite, t, r);
		else if (r->len < sizeof(r->line) - 1)
			r->line[r->len++] = buf[i];
	}
	if (got > 0) {
		t->bytes += got;
		return;
	}
	if (r->len)
		flush_line(suite, t, r);
	close(r->fd);
	r->fd = -1;
}

/* ---- suites ------------------------------------------------------------ */

/* How a suite ended, as the script ./verdict expects it */
struct ending {
	/* "exit", "signal", "timeout", "output" or "absent" */
	const char *how;
	int code;
	bool stuck;
};

/*
 * The standard output of a suite is a raw terminal, so that stdio writes line by line:
 * a program that crashes loses no output, and one that forks does not print it twice.
 */
static void open_terminal(struct reader *r, int *write_end)
{
	r->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (r->fd < 0 || grantpt(r->fd) || unlockpt(r->fd))
		give_up("no pseudo-terminal: %s", strerror(errno));
	*write_end = open(ptsname(r->fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*write_end < 0)
		give_up("%s: %s", ptsname(r->fd), strerror(errno));
	make_raw(*write_end);
}

static void open_pipe(struct reader *r, int *write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		give_up("pipe: %s", strerror(errno));
	r->fd = fds[0];
	r->is_err = true;
	*write_end = fds[1];
}

/* Waits once; returns true if something happened within a second. */
static bool pump(const struct suite *suite, struct tally *t, struct reader *outputs,
		 int with_child)
{
	struct pollfd fds[3];
	int i, ready;

	for (i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = outputs[i].fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = with_child ? child_fd : -1, .events = POLLIN };
	ready = poll(fds, 3, 1000);
	/* Copy messages first: they belong to the result that follows. */
	for (i = 1; i >= 0; i--)
		if (fds[i].revents)
			read_output(suite, t, &outputs[i]);
	return ready > 0;
}

/* Waits until the program exits, or kills it at its limits; returns how it ended. */
static const char *wait_for_end(struct suite *suite, struct tally *t, struct reader *outputs,
				pid_t pid, int *status)
{
	double deadline = now() + suite->timeout;

	while (!reap(pid, status)) {
		if (now() > deadline)
			return "timeout";
		if (t->bytes > OUTPUT_LIMIT)
			return "output";
		pump(suite, t, outputs, true);
		pulse(suite->name, t);
	}
	return WIFSIGNALED(*status) ? "signal" : "exit";
}

static struct ending run_program(struct suite *suite, struct tally *t)
{
	char *tests = parameter("hwbp.tests", NULL);
	char *some[] = { "/etc/hwbp/run_tests", suite->argv[0], tests, NULL };
	static struct reader outputs[2];
	struct ending end = { 0 };
	int status = 0, out, err, i;
	pid_t pid;

	memset(outputs, 0, sizeof(outputs));
	open_terminal(&outputs[0], &out);
	open_pipe(&outputs[1], &err);
	pid = start(tests ? some : suite->argv, out, err);
	close(out);
	close(err);
	if (pid < 0)
		give_up("fork: %s", strerror(errno));

	end.how = wait_for_end(suite, t, outputs, pid, &status);
	end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	end.stuck = !kill_all();

	/* Read the rest from the pipes; a stuck process may hold them open. */
	while ((outputs[0].fd >= 0 || outputs[1].fd >= 0) && pump(suite, t, outputs, false))
		;
	for (i = 0; i < 2; i++)
		if (outputs[i].fd >= 0)
			close(outputs[i].fd);
	return end;
}

/*
 * KUnit's file contains a document with one suite, so its indented lines already have
 * the nesting of this document.
 */
static struct ending copy_kunit(const struct suite *suite, struct tally *t)
{
	struct ending end = { .how = "absent" };
	char path[PATH_MAX], *text, *line;

	snprintf(path, sizeof(path), "%s/%s/results", KUNIT_DIR, strchr(suite->name, '/') + 1);
	text = slurp(path, NULL);
	if (!text)
		return end;
	while ((line = next_line(&text))) {
		if (starts(line, "    KTAP version") || starts(line, "    # Subtest:"))
			continue;
		if (starts(line, "    ok "))
			t->passed++;
		else if (starts(line, "    not ok "))
			t->failed++;
		if (starts(line, "    "))
			fprintf(doc, "%s\n", line);
		else if (starts(line, "#"))
			fprintf(doc, "    %s\n", line);
	}
	end.how = "exit";
	return end;
}

/*
 * For formats without a plan, adds one with the number of subtests if the suite ended
 * normally.
 */
static void add_plan(const struct suite *suite, struct tally *t, const struct ending *end)
{
	if (suite->format == FORMAT_EXIT && !strcmp(end->how, "exit"))
		subtest(t, !end->code, "exits with status 0", "");
	if (suite->format == FORMAT_MARKS || suite->format == FORMAT_EXIT)
		fprintf(doc, "    1..%d\n", t->passed + t->failed);
}

static void note_on_console(const char *what, const char *name)
{
	char text[400];

	snprintf(text, sizeof(text), "hwbp: %s %s\n", what, name);
	put("/dev/kmsg", text);
}

static void run_suite(struct suite *suite, int number)
{
	unsigned long taint_before = taint();
	double start_time = now();
	struct tally t = { 0 };
	struct ending end;
	bool good;

	fprintf(doc, "    KTAP version 1\n    # Subtest: %s\n", suite->name);
	note_on_console("suite", suite->name);
	pulse_now(suite->name, NULL);
	if (suite->format == FORMAT_KUNIT)
		end = copy_kunit(suite, &t);
	else
		end = run_program(suite, &t);
	add_plan(suite, &t, &end);

	if (taint() != taint_before)
		fprintf(doc, "    # hwbp: taint %#lx -> %#lx\n", taint_before, taint());
	fprintf(doc, "    # hwbp: end how=%s code=%d stuck=%d seconds=%.1f\n", end.how, end.code,
		end.stuck, now() - start_time);
	suites_done++;
	total_passed += t.passed;
	total_failed += t.failed;
	good = !strcmp(end.how, "exit") && !end.code && !end.stuck && !t.failed && t.passed;
	fprintf(doc, "%s %d %s\n", good ? "ok" : "not ok", number, suite->name);
}

static long count_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

/* Returns true if the suite cannot run here, and adds this to the document. */
static bool skip_suite(const struct suite *suite, int number)
{
	if (suite->min_cpus <= count_cpus())
		return false;
	fprintf(doc, "ok %d %s # SKIP needs %ld CPUs\n", number, suite->name, suite->min_cpus);
	return true;
}

/* ---- checks after all suites ------------------------------------------- */

/*
 * Scan twice: the second scan finds objects whose last reference was in an object that
 * the first one found.
 */
static void check_leaks(struct tally *t)
{
	static const char name[] = "kmemleak finds no leak";
	char *text, *line;
	bool none;

	if (access(KMEMLEAK_FILE, W_OK)) {
		subtest(t, true, name, " # SKIP no kmemleak in this kernel");
		return;
	}
	sleep(KMEMLEAK_AGE);
	put(KMEMLEAK_FILE, "scan");
	sleep(KMEMLEAK_AGE);
	put(KMEMLEAK_FILE, "scan");
	text = slurp(KMEMLEAK_FILE, NULL);
	none = text && !*text;
	while ((line = next_line(&text)))
		fprintf(doc, "    # %s\n", line);
	subtest(t, none, name, "");
}

static void run_checks(int number, unsigned long taint_before)
{
	struct tally t = { 0 };

	fprintf(doc, "    KTAP version 1\n    # Subtest: checks\n    1..2\n");
	note_on_console("suite", "checks");
	pulse_now("checks", NULL);
	if (taint() != taint_before)
		fprintf(doc, "    # tainted was %#lx, is %#lx\n", taint_before, taint());
	subtest(&t, taint() == taint_before, "kernel is not tainted by the tests", "");
	check_leaks(&t);
	fprintf(doc, "    # hwbp: end how=exit code=%d stuck=0 seconds=0\n", !!t.failed);
	fprintf(doc, "%s %d checks\n", t.failed ? "not ok" : "ok", number);
}

/* ---- modes ------------------------------------------------------------- */

static void run_tests(void)
{
	unsigned long taint_before = taint();
	struct utsname uts;
	int i;

	load_suites();
	uname(&uts);
	fprintf(doc, "KTAP version 1\n");
	fprintf(doc, "# hwbp: kernel %s %s\n", uts.release, uts.version);
	fprintf(doc, "# hwbp: cpus %ld\n", count_cpus());
	fprintf(doc, "1..%d\n", nr_suites + 1);
	for (i = 0; i < nr_suites; i++)
		if (!skip_suite(&suites[i], i + 1))
			run_suite(&suites[i], i + 1);
		else
			suites_done++;
	run_checks(nr_suites + 1, taint_before);
	fprintf(doc, "%s\n", END_MARK);
}

static void run_exec(void)
{
	int status = 0, nr = 0, out, err;
	char *argv[1024], *text, *word;
	size_t size;
	pid_t pid;

	text = slurp(ARGV_FILE, &size);
	if (!text || !size)
		give_up("no command in %s", ARGV_FILE);
	for (word = text; word < text + size && nr < 1023; word += strlen(word) + 1)
		argv[nr++] = word;
	argv[nr] = NULL;

	out = open_port(PORT_OUT);
	err = open_port(PORT_ERR);
	pid = start(argv, out, err);
	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	while (!reap(pid, &status)) {
		poll(&(struct pollfd){ .fd = child_fd, .events = POLLIN }, 1, 1000);
		pulse("exec", NULL);
	}
	if (!kill_all())
		fprintf(doc, "# hwbp: a process is stuck in the kernel\n");
	/* Closing a serial line waits until all has been sent. */
	close(out);
	close(err);
	fprintf(doc, "# hwbp: exit %d\n",
		WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	fprintf(doc, "%s\n", END_MARK);
}

/* cttyhack makes the console the controlling terminal of the shell, so that ^C works. */
static void run_shell(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execl("/bin/sh", "sh", "-c", "setsid cttyhack sh -l; reboot -f", NULL);
}

int main(void)
{
	const char *mode;

	if (getpid() == 1)
		mount_filesystems();
	else
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	open_console();
	mode = parameter("hwbp.mode", "shell");
	set_environment();
	set_sysctls();
	watch_children();

	if (strcmp(mode, "shell"))
		open_document();
	if (!strcmp(mode, "test"))
		run_tests();
	else if (!strcmp(mode, "exec"))
		run_exec();
	else
		run_shell();
	leave();
}
