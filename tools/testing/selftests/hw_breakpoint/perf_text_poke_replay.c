// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: the replay of all changes of kernel text.
 *
 * The rule: the records, in order of their time, transform an old copy of the text into
 * a new one and back again, byte for byte. Each record has the bytes that it replaces,
 * so every step is checked, not only the result. A record that adds text expects none
 * at its address; one that removes text expects that text.
 *
 * A copy of the text can only be used if nothing changed the text while it was read:
 * see take_copy().
 */
#include <sys/klog.h>
#include <sys/resource.h>

#include "provoke.h"

FIXTURE(replay)
{
	struct bp_cpus cpus;
	struct listener listener[BP_MAX_CPUS];
	int nr_listeners;
	struct area area[MAX_AREAS];
	int nr_areas;
	char instance[128];
	int hotplug_cpu;
	int times_taken;
	bool was_online;
	bool comes;
	bool areas;
	bool lacks_something;
	bool has_module;
	struct poke *poke;
	size_t nr_pokes;
	int reported;
};

/* A way to change text, and the minimum number of records of it */
struct phase {
	const char *name;
	/* NULL: all that can run at the same time */
	provoke_fn run;
	int rounds;
	/* Number of processes of each kind, each on another CPU; 0 means 1 */
	int copies;
	/* Minimum number of records of the kernel's own text, and of other areas */
	int text;
	int elsewhere;
};

#define PHASE(kind, ...) { .name = #kind, .run = provoke_##kind, __VA_ARGS__ }

static const struct phase instructions[] = {
	PHASE(static_keys, .rounds = 1, .text = 20),
	PHASE(static_calls, .rounds = 2, .text = 12),
	PHASE(functions, .rounds = 2, .text = 20),
	PHASE(function_tracer, .rounds = 1, .text = 1000),
	PHASE(graph_tracer, .rounds = 1, .text = 20),
	PHASE(kprobes, .rounds = 2, .text = 8, .elsewhere = 4),
	PHASE(optimized_kprobes, .rounds = 2, .text = 8, .elsewhere = 4),
	PHASE(reenabled_kprobes, .rounds = 20, .copies = 4, .text = 4),
	PHASE(function_kprobes, .rounds = 1, .text = 8),
	PHASE(disarming, .rounds = 2, .text = 8),
	PHASE(listeners, .rounds = 2),
	{ }
};

static const struct phase areas[] = {
	PHASE(bpf_programs, .rounds = 2, .elsewhere = 10),
	PHASE(bpf_tail_calls, .rounds = 6, .elsewhere = 6),
	PHASE(bpf_trampolines, .rounds = 2, .elsewhere = 8),
	PHASE(bpf_dispatcher, .rounds = 2, .text = 2, .elsewhere = 2),
	PHASE(socket_filters, .rounds = 3, .elsewhere = 3),
	{ .name = "all at once", .rounds = 1, .copies = 2, .text = 100, .elsewhere = 20 },
	{ }
};

static const struct phase hotplug[] = {
	PHASE(nothing, .rounds = 1),
	{ .name = "all at once", .rounds = 1, .text = 50, .elsewhere = 10 },
	{ }
};

static const struct phase debugger[] = {
	PHASE(debugger, .rounds = 1, .text = 2),
	{ }
};

FIXTURE_VARIANT(replay)
{
	/* Phases, one after the other, between the two copies */
	const struct phase *phases;
	/* A CPU goes offline and comes back meanwhile. */
	bool hotplug;
	/*
	 * Whole areas change and are recorded. Otherwise the records of instructions
	 * alone have to explain each change.
	 */
	bool areas;
};

FIXTURE_VARIANT_ADD(replay, instructions) { .phases = instructions };
FIXTURE_VARIANT_ADD(replay, areas) { .phases = areas, .areas = true };
FIXTURE_VARIANT_ADD(replay, hotplug) { .phases = hotplug, .hotplug = true, .areas = true };
FIXTURE_VARIANT_ADD(replay, debugger) { .phases = debugger };

static struct area *add_area(FIXTURE_DATA(replay) *self, const char *name, unsigned long start,
			     unsigned long end)
{
	struct area *a = &self->area[self->nr_areas];
	size_t size = end - start;

	if (self->nr_areas == MAX_AREAS)
		return NULL;
	for (int i = 0; i < self->nr_areas; i++) {
		if (self->area[i].start < end && start < self->area[i].end)
			return NULL;
	}
	a->name = name;
	a->in_first = true;
	a->in_last = true;
	a->start = start;
	a->end = end;
	a->first = calloc(1, size);
	a->last = malloc(size);
	a->now = malloc(size);
	a->unknown = calloc(1, size);
	if (!a->first || !a->last || !a->now || !a->unknown)
		abort();
	self->nr_areas++;
	return a;
}

static void add_mapping_of(FIXTURE_DATA(replay) *self, const char *name, unsigned long addr)
{
	unsigned long start, end;

	if (addr && find_mapping(addr, &start, &end))
		add_area(self, name, start, end);
}

struct symbol {
	const char *name;
	unsigned long addr;
};

/* Finds all symbols in one pass, because reading /proc/kallsyms takes long. */
static void find_symbols(struct symbol symbol[], int nr)
{
	char line[512], name[256];
	unsigned long addr;
	FILE *f;

	f = fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %*c %255s", &addr, name) != 2)
			continue;
		for (int i = 0; i < nr; i++) {
			if (!symbol[i].addr && !strcmp(symbol[i].name, name))
				symbol[i].addr = addr;
		}
	}
	if (f)
		fclose(f);
}

/*
 * The kernel's own text, and objects that are kept until the end, so that the areas
 * that contain them exist as long: a program, a kprobe with its slot, a slot of an
 * optimized kprobe, a trampoline.
 */
static void hold_areas(FIXTURE_DATA(replay) *self)
{
	struct symbol symbol[] = {
		{ .name = "_stext" }, { .name = "_etext" }, { .name = "kprobe_insn_page" },
		{ .name = "kprobe_optinsn_page" }, { .name = "ftrace_trampoline" },
	};
	unsigned long offset;
	__u64 addr = 0;
	__u32 len;
	int fd;

	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 5);
	if (fd >= 0)
		program_text(fd, &addr, &len);

	for (unsigned int i = 0; i < ARRAY_SIZE(probed); i++) {
		if (open_inner_kprobe(probed[i], &offset) >= 0)
			break;
	}
	if (!make_instance("held", 0, self->instance) &&
	    !instance_write(self->instance, "set_ftrace_filter", "vfs_read"))
		instance_write(self->instance, "current_tracer", "function");

	find_symbols(symbol, ARRAY_SIZE(symbol));
	add_area(self, "kernel text", symbol[0].addr, symbol[1].addr);
	add_mapping_of(self, "BPF text", addr);
	add_mapping_of(self, "slots of kprobes", symbol[2].addr);
	add_mapping_of(self, "slots of jumps", symbol[3].addr);
	add_mapping_of(self, "ftrace trampoline", symbol[4].addr);
}

/*
 * An event of kernel_text stays when its CPU goes offline. A software event would be
 * removed: when the CPU comes back, its kernel threads run before another event could
 * be opened.
 */
static int add_listener(FIXTURE_DATA(replay) *self, int cpu)
{
	struct perf_event_attr attr = poke_attr();
	int pages = 1024, err;

	if (self->nr_listeners == BP_MAX_CPUS)
		return -ENOSPC;
	attr.read_format = PERF_FORMAT_LOST;
	if (self->areas)
		add_areas(&attr);
	/*
	 * The rings are emptied all the time: 4 MB for each of four CPUs, less for more
	 * CPUs.
	 */
	while (pages > 256 && pages * self->cpus.nr > 4 * 1024)
		pages /= 2;
	err = listen_with(&self->listener[self->nr_listeners], &attr, -1, cpu, pages);
	if (!err)
		self->nr_listeners++;
	return err;
}

/* Returns the last of the online CPUs, or one that was never online. */
static int find_hotplug_cpu(FIXTURE_DATA(replay) *self)
{
	char path[64];

	self->was_online = self->cpus.nr > 1;
	self->hotplug_cpu = self->was_online ? self->cpus.cpu[self->cpus.nr - 1] : 1;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", self->hotplug_cpu);
	if (!access(path, W_OK))
		return 0;
	self->hotplug_cpu = 0;
	return -ENODEV;
}

FIXTURE_SETUP(replay)
{
	BP_NEED_ROOT();
	if (access(BARRIER, W_OK))
		SKIP(return, "needs tracefs mounted at " TRACING);
	if (access("/proc/kcore", R_OK))
		SKIP(return, "needs /proc/kcore");
	self->areas = variant->areas;
	self->cpus = bp_online_cpus();
	hold_areas(self);
	ASSERT_LT(0, self->nr_areas);
	ASSERT_LT(self->area[0].start, self->area[0].end);
	setpriority(PRIO_PROCESS, 0, -20);
	if (variant->hotplug && find_hotplug_cpu(self))
		SKIP(return, "needs a CPU that can be taken offline");
	/*
	 * If only one CPU is online, bring the other one online while nothing else
	 * happens.
	 */
	self->comes = self->hotplug_cpu && !self->was_online;
	for (int i = 0; i < self->cpus.nr; i++) {
		int cpu = self->cpus.cpu[i];

		ASSERT_EQ(0, add_listener(self, cpu));
	}
}

FIXTURE_TEARDOWN(replay)
{
	for (int i = 0; i < self->nr_listeners; i++)
		unlisten(&self->listener[i]);
	if (self->hotplug_cpu)
		bp_cpu_online(self->hotplug_cpu, self->was_online);
	if (self->instance[0]) {
		instance_write(self->instance, "current_tracer", "nop");
		EXPECT_EQ(0, end_instance(self->instance));
	}
	if (!access(TRACING "/instances", F_OK))
		remove_instances();
	if (self->has_module)
		EXPECT_EQ(0, bp_remove_module(TEXT_MODULE_PATH));
	bp_teardown(_metadata);
}

/* ------------------------------------------------------------ pages of a module */

/* The last copy may have text of one module where the first has that of another. */
static struct area *find_page(FIXTURE_DATA(replay) *self, unsigned long start)
{
	for (int i = 0; i < self->nr_areas; i++) {
		if (self->area[i].of_module && self->area[i].start == start)
			return &self->area[i];
	}
	return NULL;
}

/* Later kernels take the text of modules from the mapping of other areas. */
static bool in_other_area(const FIXTURE_DATA(replay) *self, unsigned long addr)
{
	for (int i = 0; i < self->nr_areas; i++) {
		const struct area *a = &self->area[i];

		if (!a->of_module && a->start <= addr && addr < a->end)
			return true;
	}
	return false;
}

static void add_pages(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self,
		      const char *name, unsigned long start, unsigned long end, bool first)
{
	const long size = sysconf(_SC_PAGESIZE);

	for (; start < end; start += size) {
		struct area *a = find_page(self, start);

		if (in_other_area(self, start))
			continue;
		if (!a) {
			a = add_area(self, name, start, start + size);
			ASSERT_NE(NULL, a);
			a->of_module = true;
			a->in_first = first;
			a->in_last = false;
		}
		if (!first)
			a->in_last = true;
	}
}

/* Loads the module before one of the copies. A module without thunks has text only. */
static void load_module(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self,
			bool first)
{
	unsigned long text, start, end, thunks;
	int err = bp_load_module(TEXT_MODULE_PATH, "");

	if (err == -ENOENT) {
		ksft_print_msg("absent: the module " TEXT_MODULE_PATH "\n");
		self->lacks_something = true;
		return;
	}
	ASSERT_EQ(0, err);
	self->has_module = true;
	text = section_of_module(TEXT_MODULE, ".text");
	ASSERT_TRUE(find_mapping(text, &start, &end));
	add_pages(_metadata, self, "text of a module", start, end, first);
	thunks = find_thunks(text);
	EXPECT_EQ(modules_have_thunks(), thunks != 0);
	if (thunks)
		add_pages(_metadata, self, "thunks of a module", thunks,
			  thunks + sysconf(_SC_PAGESIZE), first);
}

/* Removes and loads the module; its new pages may be some of the old ones. */
static void reload_module(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	if (!self->has_module)
		return;
	ASSERT_EQ(0, bp_remove_module(TEXT_MODULE_PATH));
	self->has_module = false;
	load_module(_metadata, self, false);
}

/* ------------------------------------------------------------- copies of the text */

static void drain_all(FIXTURE_DATA(replay) *self)
{
	for (int i = 0; i < self->nr_listeners; i++)
		drain(&self->listener[i]);
}

static bool only_own_records(FIXTURE_DATA(replay) *self, const size_t mark[])
{
	struct perf_event_header *h;
	struct poke p;

	for (int i = 0; i < self->nr_listeners; i++) {
		size_t pos = mark[i];

		while ((h = next_record(&self->listener[i], &pos))) {
			if (!decode(h, &p) || p.tid != syscall(__NR_gettid))
				return false;
		}
	}
	return true;
}

static bool read_areas(FIXTURE_DATA(replay) *self)
{
	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];

		if (!read_kcore(a->start, a->last, a->end - a->start))
			return false;
	}
	return true;
}

/*
 * Changing text takes a lock, so all changes that began before this call are then
 * complete.
 */
static bool wait_for_changes(void)
{
	return !bp_write_file(BARRIER, "1") && !bp_write_file(BARRIER, "0");
}

/*
 * Reads the text to a->last while nothing else changes it. Before and after the read
 * this task changes text and changes it back: so a change that began before the read is
 * complete when the read begins, and a change that began during the read is recorded
 * when the function looks for other records. The log is valid up to the mark, where the
 * read began.
 */
static int take_copy(FIXTURE_DATA(replay) *self, size_t mark[])
{
	for (int try = 0; try < 200; try++) {
		if (!wait_for_changes())
			return -EPERM;
		drain_all(self);
		for (int i = 0; i < self->nr_listeners; i++)
			mark[i] = self->listener[i].len;
		if (!read_areas(self))
			return -EIO;
		if (!wait_for_changes())
			return -EPERM;
		drain_all(self);
		if (only_own_records(self, mark))
			return 0;
		usleep(100000);
	}
	return -ETIMEDOUT;
}

static void take_first_copy(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	size_t mark[BP_MAX_CPUS];

	ASSERT_EQ(0, take_copy(self, mark));
	for (int i = 0; i < self->nr_areas; i++)
		memcpy(self->area[i].first, self->area[i].last,
		       self->area[i].end - self->area[i].start);
	for (int i = 0; i < self->nr_listeners; i++)
		self->listener[i].len = 0;
}

/* Takes the last copy, at which the log ends. */
static void take_last_copy(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	size_t mark[BP_MAX_CPUS];

	ASSERT_EQ(0, take_copy(self, mark));
	for (int i = 0; i < self->nr_listeners; i++)
		self->listener[i].len = mark[i];
}

static int compare_pokes(const void *a, const void *b)
{
	const struct poke *p = a, *q = b;

	if (p->time != q->time)
		return p->time < q->time ? -1 : 1;
	return p->seq < q->seq ? -1 : p->seq > q->seq;
}

/* Sorts the records of all CPUs by time. */
static void merge(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct perf_event_header *h;
	struct poke p;
	size_t max = 0;

	for (int i = 0; i < self->nr_listeners; i++) {
		struct listener *l = &self->listener[i];
		__u64 time = 0;
		size_t pos = 0;

		while ((h = next_record(l, &pos))) {
			EXPECT_NE(PERF_RECORD_LOST, h->type);
			if (!decode(h, &p))
				continue;
			EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer))) {
				TH_LOG("%s: %s, %d -> %d bytes", name_of(p.addr),
				       what_is_wrong(h, sizeof(struct trailer)),
				       p.old_len, p.new_len);
			}
			EXPECT_EQ(l->cpu, p.cpu);
			EXPECT_LE(time, p.time);
			time = p.time;
			if (self->nr_pokes == max) {
				max = 2 * max + 1024;
				self->poke = realloc(self->poke, max * sizeof(p));
				ASSERT_NE(NULL, self->poke);
			}
			p.seq = self->nr_pokes;
			self->poke[self->nr_pokes++] = p;
		}
	}
	qsort(self->poke, self->nr_pokes, sizeof(p), compare_pokes);
}

static bool report(FIXTURE_DATA(replay) *self)
{
	if (self->reported == MAX_REPORTED)
		ksft_print_msg("and more\n");
	return self->reported++ < MAX_REPORTED;
}

/* Replaces bytes, after a check that the expected ones, or none, are there. */
static void apply(FIXTURE_DATA(replay) *self, struct area *a, const struct poke *p, bool forwards)
{
	const unsigned char *from = forwards ? p->old : p->new;
	const unsigned char *to = forwards ? p->new : p->old;
	unsigned int from_len = forwards ? p->old_len : p->new_len;
	unsigned int to_len = forwards ? p->new_len : p->old_len;
	bool differs = false;

	for (unsigned int i = 0; i < from_len || i < to_len; i++) {
		unsigned long at = p->addr + i - a->start;

		if (p->addr + i < a->start || p->addr + i >= a->end)
			continue;
		if (i < from_len && !a->unknown[at] && a->now[at] != from[i])
			differs = true;
		if (i >= from_len && a->of_module && !a->unknown[at])
			differs = true;
	}
	if (differs && report(self))
		ksft_print_msg("%s, %s: %s: record of CPU %d, tid %d, time %llu has %s -> %s, there was %s\n",
			       forwards ? "forwards" : "backwards", a->name, name_of(p->addr),
			       p->cpu, p->tid, p->time, hex(p->old, p->old_len),
			       hex(p->new, p->new_len),
			       p->addr >= a->start && p->addr + from_len <= a->end ?
			       hex(a->now + (p->addr - a->start), from_len) : "?");

	for (unsigned int i = 0; i < from_len || i < to_len; i++) {
		unsigned long at = p->addr + i - a->start;

		if (p->addr + i < a->start || p->addr + i >= a->end)
			continue;
		a->unknown[at] = i >= to_len;
		a->has_unknown |= a->unknown[at];
		if (i < to_len)
			a->now[at] = to[i];
	}
}

/* All of a page of a module must be known if the page is text. */
static bool is_wrong(const struct area *a, const unsigned char *want, bool is_text, size_t i)
{
	return a->unknown[i] ? a->of_module && is_text : a->now[i] != want[i];
}

static void compare(FIXTURE_DATA(replay) *self, struct area *a, bool forwards)
{
	const unsigned char *want = forwards ? a->last : a->first;
	bool is_text = forwards ? a->in_last : a->in_first;
	size_t size = a->end - a->start;

	/* The first copy was taken before the address of this page was known. */
	if (!forwards && !a->in_first)
		return;
	if (!a->of_module && !memcmp(a->now, want, size))
		return;
	for (size_t i = 0, end; i < size; i = end) {
		for (end = i; end < size && is_wrong(a, want, is_text, end); end++)
			;
		if (end > i && report(self))
			ksft_print_msg("%s, %s: %lx %s, %zu bytes: replayed %s, is %s\n",
				       forwards ? "forwards" : "backwards", a->name,
				       a->start + i, name_of(a->start + i), end - i,
				       a->unknown[i] ? "no text" : hex(a->now + i, end - i),
				       hex(want + i, end - i));
		if (end == i)
			end++;
	}
}

static void replay(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self, bool forwards)
{
	self->reported = 0;
	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];
		bool is_text = forwards ? a->in_first : a->in_last;

		memcpy(a->now, forwards ? a->first : a->last, a->end - a->start);
		if (a->has_unknown || !is_text)
			memset(a->unknown, !is_text, a->end - a->start);
		a->has_unknown = !is_text;
	}
	for (size_t n = 0; n < self->nr_pokes; n++) {
		struct poke *p = &self->poke[forwards ? n : self->nr_pokes - 1 - n];

		for (int i = 0; i < self->nr_areas; i++) {
			struct area *a = &self->area[i];

			if (p->addr < a->end && p->addr + p->old_len + p->new_len > a->start)
				apply(self, a, p, forwards);
		}
	}
	for (int i = 0; i < self->nr_areas; i++)
		compare(self, &self->area[i], forwards);
	EXPECT_EQ(0, self->reported) {
		TH_LOG("%s: the replay of the records does not give the other copy",
		       forwards ? "forwards" : "backwards");
	}
}

/* Number of records since the marks of the areas from @from to before @to */
static int pokes_since(FIXTURE_DATA(replay) *self, const size_t mark[], int from, int to)
{
	struct perf_event_header *h;
	struct poke p;
	int nr = 0;

	for (int l = 0; l < self->nr_listeners; l++) {
		size_t pos = mark[l];

		while ((h = next_record(&self->listener[l], &pos))) {
			if (!decode_body(h, &p))
				continue;
			for (int i = from; i < to; i++)
				nr += p.addr >= self->area[i].start && p.addr < self->area[i].end;
		}
	}
	return nr;
}

/* The kernel's own text exists from boot on: no record may say that it begins or ends. */
static void expect_text_stays(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct area *text = &self->area[0];

	for (size_t n = 0; n < self->nr_pokes; n++) {
		struct poke *p = &self->poke[n];

		if (p->addr < text->start || p->addr >= text->end)
			continue;
		EXPECT_EQ(p->old_len, p->new_len) {
			TH_LOG("%s", name_of(p->addr));
		}
	}
}

/*
 * Each page of a module ceased or began between the copies. If it did both and has the
 * same bytes again, only the records show this.
 */
static void expect_modules_change(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	const size_t from_start[BP_MAX_CPUS] = { };

	for (int i = 0; i < self->nr_areas; i++) {
		struct area *a = &self->area[i];

		if (!a->of_module)
			continue;
		EXPECT_LE(a->in_first + a->in_last, pokes_since(self, from_start, i, i + 1)) {
			TH_LOG("%s: %lx", a->name, a->start);
		}
	}
}

/* Includes records that were lost after the last record in the ring. */
static void expect_nothing_lost(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	struct { __u64 value, lost; } counter;

	for (int i = 0; i < self->nr_listeners; i++) {
		struct listener *l = &self->listener[i];

		ASSERT_EQ(sizeof(counter), read(l->fd, &counter, sizeof(counter)));
		EXPECT_EQ(0, counter.lost);
	}
}

/* Checks the records when they are complete. */
static void prove(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	take_last_copy(_metadata, self);
	expect_nothing_lost(_metadata, self);
	merge(_metadata, self);
	replay(_metadata, self, true);
	replay(_metadata, self, false);
	expect_text_stays(_metadata, self);
	expect_modules_change(_metadata, self);
	TH_LOG("%zu records in all", self->nr_pokes);
}

static pid_t start(provoke_fn run, int cpu, int rounds)
{
	pid_t pid = bp_fork();

	if (!pid) {
		setpriority(PRIO_PROCESS, 0, 0);
		_exit(bp_pin(cpu) ? KSFT_FAIL : run(cpu, rounds));
	}
	return pid;
}

/* A CPU that was never online has no event yet. */
static int take_cpu_away_and_back(FIXTURE_DATA(replay) *self)
{
	bool first = self->comes && !self->times_taken;

	if (bp_cpu_online(self->hotplug_cpu, false))
		return 0;
	self->times_taken++;
	return bp_cpu_online(self->hotplug_cpu, true) ? :
	       first ? add_listener(self, self->hotplug_cpu) : 0;
}

/*
 * Empties the rings until the children have exited; returns the worst of their exit
 * statuses.
 */
static int drain_while_running(FIXTURE_DATA(replay) *self, pid_t pid[], int nr)
{
	int status, worst = 0, left = nr;

	for (int round = 1; left; round++) {
		drain_all(self);
		for (int i = 0; i < nr; i++) {
			if (!pid[i] || waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			bp_forget_child(pid[i]);
			pid[i] = 0;
			left--;
			status = WIFEXITED(status) ? WEXITSTATUS(status) : KSFT_FAIL;
			if (status == KSFT_FAIL || !worst)
				worst = status;
		}
		if (self->hotplug_cpu && round % 100 == 0 && take_cpu_away_and_back(self))
			worst = KSFT_FAIL;
		usleep(2000);
	}
	return worst;
}

/* If both copies were equal the test would prove nothing. */
static void leave_something_changed(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self)
{
	unsigned long offset;

	EXPECT_LE(0, open_tracepoint("task/task_rename"));
	open_inner_kprobe(probed[2], &offset);
	if (self->areas)
		EXPECT_LE(0, load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 40));
	reload_module(_metadata, self);
}

/*
 * Neighbouring CPUs get different kinds, so that text is changed in several ways at
 * once.
 */
static int start_all(FIXTURE_DATA(replay) *self, const struct phase *phase, pid_t pid[])
{
	int kinds = phase->run ? 1 : ARRAY_SIZE(at_once), nr = 0;
	int cpus = self->cpus.nr;

	if (self->hotplug_cpu && cpus > 1)
		cpus--;
	for (int copy = 0; copy < (phase->copies ? : 1); copy++) {
		for (int n = 0; n < kinds; n++) {
			if (nr == BP_MAX_CHILDREN)
				return nr;
			pid[nr] = start(phase->run ? : at_once[n],
					self->cpus.cpu[(n + copy) % cpus], phase->rounds);
			if (pid[nr++] < 0)
				return -EAGAIN;
		}
	}
	return nr;
}

static void run_phase(struct __test_metadata *_metadata, FIXTURE_DATA(replay) *self,
		      const struct phase *phase)
{
	int nr, worst, text = phase->text, pokes[2];
	bool comes = self->comes && !self->times_taken;
	size_t mark[BP_MAX_CPUS] = { };
	pid_t pid[BP_MAX_CHILDREN];

	drain_all(self);
	for (int i = 0; i < self->nr_listeners; i++)
		mark[i] = self->listener[i].len;
	nr = start_all(self, phase, pid);
	ASSERT_LT(0, nr);
	if (comes) {
		EXPECT_EQ(0, take_cpu_away_and_back(self));
		/*
		 * With one CPU online all lock prefixes were replaced; now they are
		 * written back.
		 */
		if (klog_has("switching to SMP code"))
			text = 1000;
	}
	worst = drain_while_running(self, pid, nr);
	EXPECT_NE(KSFT_FAIL, worst);
	if (worst == KSFT_SKIP && phase->run) {
		self->lacks_something = true;
		return;
	}
	drain_all(self);
	pokes[0] = pokes_since(self, mark, 0, 1);
	pokes[1] = pokes_since(self, mark, 1, self->nr_areas);
	EXPECT_LE(text, pokes[0]);
	EXPECT_LE(phase->elsewhere, pokes[1]);
	TH_LOG("%s: %d records of the kernel's text, %d of %d other areas", phase->name,
	       pokes[0], pokes[1], self->nr_areas - 1);
}

TEST_F(replay, records_turn_old_text_into_new_and_back)
{
	if (self->hotplug_cpu) {
		ASSERT_EQ(0, bp_pin(self->cpus.cpu[0]));
		klogctl(5, NULL, 0);
	}
	if (variant->areas)
		load_module(_metadata, self, true);
	take_first_copy(_metadata, self);
	for (const struct phase *phase = variant->phases; phase->name; phase++)
		run_phase(_metadata, self, phase);
	if (self->hotplug_cpu)
		EXPECT_LT(0, self->times_taken);
	leave_something_changed(_metadata, self);
	prove(_metadata, self);
	if (self->lacks_something)
		SKIP(return, "this kernel lacks the features named above");
}

TEST_HARNESS_MAIN
