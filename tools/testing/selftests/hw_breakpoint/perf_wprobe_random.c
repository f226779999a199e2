// SPDX-License-Identifier: GPL-2.0
/*
 * Random commands for watch events and their triggers, beside a model of what each must do.
 *
 * The rule: an event with triggers watches the addresses that the model has in its slots, with
 * the oldest one evicted; each store to one of them is one record, on whatever CPU it is made;
 * the trigger files show the numbers of the model; the event claims its registers if and only
 * if it is enabled or the target of a trigger.
 *
 * The event with triggers is at first not at an address. Two functions of this program have
 * uprobe events, which pass any address to the triggers. BP_SEED=N repeats what failed.
 */
#include <sys/mman.h>

#include "random_notes.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	7200

#define SEQUENCES	bp_rounds(24)
#define OPERATIONS	120

#define TRACEFS		"/sys/kernel/tracing/"
#define SYSCTL		"/proc/sys/kernel/"
#define SET_FILE	TRACEFS "events/random/set/trigger"
#define CLEAR_FILE	TRACEFS "events/random/clear/trigger"
#define CLAIMS_FILE	"/sys/kernel/debug/hw_breakpoint/slots"

/* Numbers that a write to the sysctl stores once, and two values of each */
static const struct {
	const char *symbol;
	const char *sysctl;
	const char *value[2];
} numbers[] = {
	{ "panic_timeout", SYSCTL "panic", { "-1", "-2" } },
	{ "randomize_va_space", SYSCTL "randomize_va_space", { "1", "2" } },
	{ "print_fatal_signals", SYSCTL "print-fatal-signals", { "0", "0" } },
	{ "sysctl_perf_event_paranoid", SYSCTL "perf_event_paranoid", { "1", "0" } },
	{ "panic_on_oops", SYSCTL "panic_on_oops", { "1", "1" } },
};

#define NR_NUMBERS	((int)ARRAY_SIZE(numbers))
/* The last number is that of the event without triggers. */
#define PLAIN		(NR_NUMBERS - 1)
#define NONE		(-1)

static const char * const names[] = { "wprobes/random", "wprobes/plain" };

/* Their uprobes give the address to the triggers. */
void fire_set(unsigned long addr);
void fire_clear(unsigned long addr);

asm(".pushsection .text, \"ax\", @progbits\n"
	"	.balign	16\n"
	"fire_set:\n"
	"	nop\n"
	"	ret\n"
	"	.balign	16\n"
	"fire_clear:\n"
	"	nop\n"
	"	ret\n"
	".popsection\n");

enum count { SET, CLEARED, EVICTED, MISSED, NR_COUNTS };
static const char * const count_names[] = { " set: ", " cleared: ", " evicted: ", " missed: " };

/* A trigger; @left is how often it may still run, NONE for any number. */
struct trigger {
	bool exists;
	bool evict;
	bool of_field;
	int left;
	long count[NR_COUNTS];
};

FIXTURE(random)
{
	struct bp_cpus cpus;
	struct dice dice;
	/* The event with triggers */
	bool defined, enabled, records, changed;
	unsigned int slots, used;
	int place[BP_SLOTS];
	struct trigger set, clear;
	/* The other one */
	bool plain_enabled;
	/* Which of the two values each number has */
	int value[NR_NUMBERS];
	unsigned long addr[NR_NUMBERS];
	char old[NR_NUMBERS][32];
	long records_want[2], records_seen[2];
	int held[BP_SLOTS];
	int nr_held;
	int pipe;
};

/* ---- Files ---- */

static int define(const char *text)
{
	return bp_write_file(TRACEFS "dynamic_events", text);
}

static int set_enable(const char *name, bool enable)
{
	char path[128];

	snprintf(path, sizeof(path), TRACEFS "events/%s/enable", name);
	return bp_write_file(path, enable ? "1" : "0");
}

/* Offset of an address of this program in its file */
static unsigned long file_offset(void *addr)
{
	unsigned long start, end, offset, at = (unsigned long)addr;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    at >= start && at < end)
			break;
	}
	fclose(f);
	return at - start + offset;
}

static int define_uprobe(const char *name, void *function)
{
	char exe[256] = "", text[512];

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return -errno;
	snprintf(text, sizeof(text), "p:random/%s %s:0x%lx ptr=%%di", name, exe,
		 file_offset(function));
	return define(text);
}

/* ---- The model ---- */

static bool is_target(FIXTURE_DATA(random) *self)
{
	return self->set.exists || self->clear.exists;
}

static bool has_claim(FIXTURE_DATA(random) *self)
{
	return self->enabled || is_target(self);
}

static unsigned int nr_claimed(FIXTURE_DATA(random) *self)
{
	return (has_claim(self) ? self->slots : 0) + self->plain_enabled;
}

static bool fits(FIXTURE_DATA(random) *self, unsigned int more)
{
	return nr_claimed(self) + self->nr_held + more <= BP_SLOTS;
}

static int slot_of(FIXTURE_DATA(random) *self, int place)
{
	for (unsigned int i = 0; i < self->used; i++) {
		if (self->place[i] == place)
			return i;
	}
	return NONE;
}

/* The slots are in the order in which they were taken. */
static void free_slot(FIXTURE_DATA(random) *self, int slot)
{
	self->used--;
	memmove(self->place + slot, self->place + slot + 1,
		(self->used - slot) * sizeof(self->place[0]));
}

/* Returns true if the trigger runs. */
static bool runs(struct trigger *t)
{
	if (!t->exists || !t->left)
		return false;
	if (t->left != NONE)
		t->left--;
	return true;
}

/* @place is NONE for an address that cannot be watched. Only NULL starts no records. */
static void model_set(FIXTURE_DATA(random) *self, int place, bool is_null)
{
	struct trigger *t = &self->set;

	if (!runs(t))
		return;
	self->records |= !is_null;
	if (place != NONE && slot_of(self, place) != NONE)
		return;
	if (place == NONE || (self->used == self->slots && !t->evict)) {
		t->count[MISSED]++;
		return;
	}
	if (self->used == self->slots) {
		t->count[EVICTED]++;
		free_slot(self, 0);
	}
	t->count[SET]++;
	self->place[self->used++] = place;
}

static void model_clear(FIXTURE_DATA(random) *self, int place)
{
	struct trigger *t = &self->clear;
	int slot;

	if (!runs(t))
		return;
	if (!t->of_field) {
		t->count[CLEARED] += self->used;
		self->used = 0;
		return;
	}
	slot = place == NONE ? NONE : slot_of(self, place);
	if (slot == NONE)
		return;
	t->count[CLEARED]++;
	free_slot(self, slot);
}

/* ---- Operations ---- */

static void do_define(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	unsigned int slots = pick(self, 6), len = one_in(self, 6) ? 3 : 4;
	bool changed = one_in(self, 3);
	char text[96];
	int want = slots >= 1 && slots <= 4 && len == 4 ? 0 : -EINVAL, err;

	snprintf(text, sizeof(text), "w%u:random w@-1:%u%s addr=$addr", slots, len,
		 changed ? ":changed" : "");
	err = define(text);
	note(self, "%s: %d", text, err);
	EXPECT_EQ(want, err);
	if (err)
		return;
	self->defined = true;
	self->slots = slots;
	self->changed = changed;
	self->used = 0;
}

static void do_remove(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int err = define("-:random");

	note(self, "remove: %d", err);
	EXPECT_EQ(has_claim(self) ? -EBUSY : 0, err);
	self->defined = err;
}

static void do_enable(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	bool enable = one_in(self, 2);
	int want = enable && !has_claim(self) && !fits(self, self->slots) ? -ENOSPC : 0, err;

	err = set_enable(names[0], enable);
	note(self, "enable %d: %d", enable, err);
	EXPECT_EQ(want, err);
	if (err)
		return;
	self->enabled = enable;
	self->records = enable;
	if (!has_claim(self))
		self->used = 0;
}

static void do_enable_plain(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	bool enable = !self->plain_enabled;
	int want = enable && !fits(self, 1) ? -ENOSPC : 0, err;

	err = set_enable(names[1], enable);
	note(self, "enable plain %d: %d", enable, err);
	EXPECT_EQ(want, err);
	if (!err)
		self->plain_enabled = enable;
}

static void pick_count(FIXTURE_DATA(random) *self, char *text, struct trigger *t)
{
	t->left = one_in(self, 3) ? 1 + pick(self, 5) : NONE;
	if (t->left != NONE)
		sprintf(text + strlen(text), ":%d", t->left);
}

static void do_set_trigger(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct trigger new = { .exists = true, .evict = one_in(self, 2) };
	char text[64] = "set_wprobe:random:ptr";
	int want = 0, err;

	if (new.evict)
		strcat(text, ":evict");
	pick_count(self, text, &new);
	if (self->set.exists)
		want = -EEXIST;
	else if (!has_claim(self) && !fits(self, self->slots))
		want = -ENOSPC;
	err = bp_write_file(SET_FILE, text);
	note(self, "%s: %d", text, err);
	EXPECT_EQ(want, err);
	if (err)
		return;
	self->set = new;
	self->used = 0;
}

static void do_clear_trigger(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct trigger new = { .exists = true, .of_field = one_in(self, 2) };
	char text[64] = "clear_wprobe:random";
	int err;

	/* Without the other trigger it has nothing to clear. */
	if (!self->set.exists || self->clear.exists)
		return;
	if (new.of_field)
		strcat(text, ":ptr");
	pick_count(self, text, &new);
	err = bp_write_file(CLEAR_FILE, text);
	note(self, "%s: %d", text, err);
	EXPECT_EQ(0, err);
	if (!err)
		self->clear = new;
}

static int remove_clear(FIXTURE_DATA(random) *self)
{
	if (!self->clear.exists)
		return 0;
	self->clear.exists = false;
	note(self, "remove clear_wprobe");
	return bp_write_file(CLEAR_FILE, self->clear.of_field ? "!clear_wprobe:random:ptr" :
						  "!clear_wprobe:random");
}

/* What an enabled event watches then, the model does not know: it is enabled anew. */
static int remove_triggers(FIXTURE_DATA(random) *self)
{
	int err = remove_clear(self);

	if (!self->set.exists)
		return err;
	self->set.exists = false;
	note(self, "remove set_wprobe");
	err = bp_write_file(SET_FILE, "!set_wprobe:random") ?: err;
	if (self->enabled)
		err = set_enable(names[0], false) ?: err;
	self->enabled = false;
	self->records = false;
	self->used = 0;
	return err;
}

static void do_remove_trigger(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			      bool only_clear)
{
	EXPECT_EQ(0, only_clear ? remove_clear(self) : remove_triggers(self));
}

/* Also addresses that cannot be watched */
static int pick_address(FIXTURE_DATA(random) *self, unsigned long *addr)
{
	int place = pick(self, PLAIN + 2);

	if (place < PLAIN) {
		*addr = self->addr[place];
		return place;
	}
	*addr = place == PLAIN ? 0 : self->addr[0] + 1;
	return NONE;
}

static void do_fire(FIXTURE_DATA(random) *self, bool set)
{
	unsigned long addr;
	int place = pick_address(self, &addr);

	bp_pin(self->cpus.cpu[pick(self, self->cpus.nr)]);
	note(self, "%s %d", set ? "set" : "clear", place);
	if (set) {
		model_set(self, place, !addr);
		fire_set(addr);
	} else {
		model_clear(self, place);
		fire_clear(addr);
	}
}

static void do_store(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	int n = pick(self, NR_NUMBERS), value = pick(self, 2), old = self->value[n];
	bool same = !strcmp(numbers[n].value[value], numbers[n].value[old]);

	bp_pin(self->cpus.cpu[pick(self, self->cpus.nr)]);
	note(self, "store to %d%s", n, same ? "" : " another value");
	self->value[n] = value;
	EXPECT_EQ(0, bp_write_file(numbers[n].sysctl, numbers[n].value[value]));
	if (n == PLAIN)
		self->records_want[1] += self->plain_enabled;
	else if (self->records && slot_of(self, n) != NONE)
		self->records_want[0] += !(self->changed && same);
}

/* Registers that events of CPU 0 take away */
static void do_hold(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	struct perf_event_attr attr = bp_attr_w(BP_PAGE, 1);
	int fd;

	if (self->nr_held && one_in(self, 2)) {
		note(self, "release");
		close(self->held[--self->nr_held]);
		return;
	}
	fd = bp_open(&attr, -1, self->cpus.cpu[0]);
	note(self, "hold: %d", fd);
	EXPECT_EQ(fits(self, 1) ? 0 : -ENOSPC, fd < 0 ? fd : 0);
	if (fd >= 0)
		self->held[self->nr_held++] = fd;
}

static void do_one(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	unsigned int op = pick(self, 100);

	if (op < 40)
		do_store(_metadata, self);
	else if (op < 45)
		do_hold(_metadata, self);
	else if (op < 50)
		do_enable_plain(_metadata, self);
	else if (!self->defined)
		do_define(_metadata, self);
	else if (op < 52)
		do_remove(_metadata, self);
	else if (op < 58)
		do_enable(_metadata, self);
	else if (op < 64)
		do_set_trigger(_metadata, self);
	else if (op < 68)
		do_clear_trigger(_metadata, self);
	else if (op < 72)
		do_remove_trigger(_metadata, self, op < 70);
	else
		do_fire(self, op < 90);
}

/* ---- The comparison ---- */

static void count_records(FIXTURE_DATA(random) *self)
{
	char text[16384], *line, *rest = text;
	ssize_t n;

	n = read(self->pipe, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		self->records_seen[0] += !!strstr(line, ": random: (");
		self->records_seen[1] += !!strstr(line, ": plain: (");
	}
}

static void check_trigger(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self,
			  const char *path, const char *command, struct trigger *t)
{
	char text[4096], slots[32], *line, *p;

	EXPECT_EQ(0, bp_read_file(path, text, sizeof(text)));
	line = strstr(text, command);
	EXPECT_EQ(t->exists, !!line);
	if (!t->exists || !line)
		return;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < NR_COUNTS; i++) {
		p = strstr(line, count_names[i]);
		EXPECT_EQ(t->count[i], p ? strtol(p + strlen(count_names[i]), NULL, 10) : 0) {
			TH_LOG("%s", line);
		}
	}
	snprintf(slots, sizeof(slots), " slots: %u/%u", self->used, self->slots);
	if (self->slots == 1)
		return;
	EXPECT_NE(NULL, strstr(line, slots)) {
		TH_LOG("not%s: %s", slots, line);
	}
}

static void check_claims(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	FILE *f = fopen(CLAIMS_FILE, "re");
	unsigned int claims = 0, weight;
	char line[512], *p;

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "claim cpu=all ", 14))
			continue;
		p = strstr(line, " weight=");
		if (p && sscanf(p, " weight=%u", &weight) == 1)
			claims += weight;
	}
	fclose(f);
	EXPECT_EQ(nr_claimed(self), claims);
}

static void check(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	count_records(self);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(self->records_want[i], self->records_seen[i]) {
			TH_LOG("records of %s", names[i]);
		}
	}
	check_trigger(_metadata, self, SET_FILE, "set_wprobe:random", &self->set);
	check_trigger(_metadata, self, CLEAR_FILE, "clear_wprobe:random", &self->clear);
	check_claims(_metadata, self);
}

/* ---- The test ---- */

FIXTURE_SETUP(random)
{
	const char *seed = getenv("BP_SEED");
	char text[64];

	BP_NEED_ROOT();
	self->cpus = bp_online_cpus();
	self->dice.seed = seed ? strtoul(seed, NULL, 0) : bp_now(CLOCK_MONOTONIC) / 1000;
	for (int i = 0; i < NR_NUMBERS; i++) {
		self->addr[i] = (unsigned long)bp_ksym(numbers[i].symbol);
		ASSERT_NE(0, self->addr[i]);
		ASSERT_EQ(0, bp_read_file(numbers[i].sysctl, self->old[i], sizeof(self->old[i])));
		ASSERT_EQ(0, bp_write_file(numbers[i].sysctl, numbers[i].value[0]));
	}
	ASSERT_EQ(0, define_uprobe("set", fire_set));
	ASSERT_EQ(0, define_uprobe("clear", fire_clear));
	snprintf(text, sizeof(text), "w:plain w@%s:4", numbers[PLAIN].symbol);
	ASSERT_EQ(0, define(text));
	self->pipe = open(TRACEFS "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->pipe);
}

static void end(struct __test_metadata *_metadata, FIXTURE_DATA(random) *self)
{
	EXPECT_EQ(0, remove_triggers(self));
	if (self->defined) {
		EXPECT_EQ(0, set_enable(names[0], false));
		EXPECT_EQ(0, define("-:random"));
	}
	EXPECT_EQ(0, set_enable(names[1], false));
	self->enabled = false;
	self->records = false;
	self->defined = false;
	self->plain_enabled = false;
	while (self->nr_held)
		close(self->held[--self->nr_held]);
}

FIXTURE_TEARDOWN(random)
{
	end(_metadata, self);
	EXPECT_EQ(0, define("-:plain"));
	EXPECT_EQ(0, define("-:random/set"));
	EXPECT_EQ(0, define("-:random/clear"));
	for (int i = 0; i < NR_NUMBERS; i++)
		bp_write_file(numbers[i].sysctl, self->old[i]);
	bp_teardown(_metadata);
}

TEST_F(random, commands_do_what_the_model_does)
{
	const char *text = getenv("BP_SEQUENCES");
	int sequences = text ? atoi(text) : SEQUENCES;

	for (int s = 0; s < sequences; s++, self->dice.seed++) {
		dice_begin(&self->dice);
		for (int n = 0; n < OPERATIONS; n++) {
			do_one(_metadata, self);
			check(_metadata, self);
			if (!__test_passed(_metadata)) {
				dice_print(_metadata, &self->dice);
				return;
			}
		}
		end(_metadata, self);
		check(_metadata, self);
	}
}

TEST_HARNESS_MAIN
