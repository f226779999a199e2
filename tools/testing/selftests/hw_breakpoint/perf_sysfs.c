// SPDX-License-Identifier: GPL-2.0
/*
 * The breakpoint PMU in sysfs: its name, the type that the uapi header defines, no
 * predefined events, and what a tool must know before it opens a breakpoint.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "bp_test.h"

#define INTERVAL BP_PMU "/perf_event_mux_interval_ms"

FIXTURE(sysfs)
{
	struct perf_event_attr attr;
	char interval[32];
};

static char mem[8] __aligned(8);

FIXTURE_SETUP(sysfs)
{
	if (access("/sys/bus", F_OK))
		SKIP(return, "needs sysfs mounted at /sys");
	self->attr = bp_attr_w(mem, 4);
	ASSERT_EQ(0, bp_read_file(INTERVAL, self->interval, sizeof(self->interval)));
}

FIXTURE_TEARDOWN(sysfs)
{
	if (!geteuid())
		EXPECT_EQ(0, bp_write_file(INTERVAL, self->interval));
	bp_teardown(_metadata);
}

TEST_F(sysfs, pmu_has_its_name_and_type)
{
	char text[32];

	ASSERT_EQ(0, bp_read_file(BP_PMU "/type", text, sizeof(text)));
	EXPECT_STREQ("5\n", text);
	EXPECT_EQ(5, PERF_TYPE_BREAKPOINT);
}

/* A tool that looks up the type opens the same kind of event. */
TEST_F(sysfs, type_from_sysfs_opens_a_breakpoint)
{
	char text[32];
	int fd;

	ASSERT_EQ(0, bp_read_file(BP_PMU "/type", text, sizeof(text)));
	self->attr.type = atoi(text);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store(mem, 1);
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(sysfs, files_can_be_read)
{
	struct dirent *entry;
	char path[512], text[4096];
	DIR *dir = opendir(BP_PMU);

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_type != DT_REG)
			continue;
		snprintf(path, sizeof(path), BP_PMU "/%s", entry->d_name);
		if (access(path, R_OK))
			continue;
		EXPECT_EQ(0, bp_read_file(path, text, sizeof(text))) {
			TH_LOG("%s", path);
		}
	}
	closedir(dir);
}

/* ------------------------------------------------------------ format/ */

/* "config:0" means bit 0 of attr.config. */
TEST_F(sysfs, flexible_is_the_bit_that_its_format_says)
{
	char text[32];

	ASSERT_EQ(0, bp_read_file(BP_PMU "/format/flexible", text, sizeof(text)));
	ASSERT_STREQ("config:0\n", text);
	self->attr.config = 1ULL << atoi(text + strlen("config:"));
	for (int i = 0; i < 2 * BP_SLOTS; i++)
		EXPECT_LE(0, bp_open(&self->attr, 0, -1));
}

static int count_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int nr = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		nr += entry->d_type == DT_REG;
	closedir(dir);
	return nr;
}

/* Bits that format/ does not list are refused, so it must list all that are accepted. */
TEST_F(sysfs, format_lists_each_bit_that_is_accepted)
{
	int accepted = 0, fd;

	/* sigtrap_queue requires these. */
	self->attr.sigtrap = 1;
	self->attr.remove_on_exec = 1;
	for (int bit = 0; bit < 64; bit++) {
		self->attr.config = 1ULL << bit;
		fd = bp_open(&self->attr, 0, -1);
		accepted += fd >= 0;
		/* There are more bits than registers. */
		if (fd >= 0)
			bp_close(&fd, 1);
	}
	EXPECT_EQ(count_files(BP_PMU "/format"), accepted);
}

/* ------------------------------------------------------------------------ caps/ */

TEST_F(sysfs, slots_are_as_many_as_can_be_open)
{
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	EXPECT_EQ(BP_SLOTS, bp_read_number(BP_PMU "/caps/data_slots"));
	if (!BP_OWN_REGISTERS)
		EXPECT_EQ(BP_SLOTS, bp_read_number(BP_PMU "/caps/instruction_slots"));
	EXPECT_EQ(bp_free_slots_with(&self->attr, 0, -1),
		  bp_read_number(BP_PMU "/caps/data_slots"));
	EXPECT_EQ(bp_free_slots_with(&x, 0, -1),
		  bp_read_number(BP_PMU "/caps/instruction_slots"));
}

/* A range of this length can be watched, a longer one cannot. */
TEST_F(sysfs, max_length_is_that_of_the_longest_range)
{
	static char range[64] __aligned(64);
	long max = bp_read_number(BP_PMU "/caps/max_length");

	EXPECT_EQ(BP_MAX_LENGTH, max);
	self->attr = bp_attr_w(range, max);
	EXPECT_LE(0, bp_open(&self->attr, 0, -1));
	for (self->attr.bp_len = max + 1; self->attr.bp_len < 64; self->attr.bp_len++) {
		EXPECT_GT(0, bp_open(&self->attr, 0, -1)) {
			TH_LOG("%llu bytes", (unsigned long long)self->attr.bp_len);
		}
	}
}

/*
 * Mixed: a register that a data breakpoint has is not available to instruction
 * breakpoints.
 */
TEST_F(sysfs, mixed_slots_are_shared_by_both_types)
{
	struct perf_event_attr x = bp_attr_x(bp_func_insn);

	BP_NEED(!BP_OWN_REGISTERS, "instructions have registers of their own");
	EXPECT_EQ(1, bp_read_number(BP_PMU "/caps/mixed_slots"));
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	EXPECT_EQ(bp_read_number(BP_PMU "/caps/instruction_slots") - 1,
		  bp_free_slots_with(&x, 0, -1));
}

TEST_F(sysfs, slots_do_not_change_with_use)
{
	int fd[BP_SLOTS];

	ASSERT_EQ(BP_SLOTS, bp_fill(0, -1, fd));
	EXPECT_EQ(BP_SLOTS, bp_read_number(BP_PMU "/caps/data_slots"));
	if (!BP_OWN_REGISTERS)
		EXPECT_EQ(BP_SLOTS, bp_read_number(BP_PMU "/caps/instruction_slots"));
}

/*
 * caps/verified, which was determined at boot, agrees with a breakpoint that is opened
 * now.
 */
TEST_F(sysfs, verified_shows_whether_breakpoints_fire)
{
	int fd = bp_open(&self->attr, 0, -1);

	ASSERT_LE(0, fd);
	bp_store(mem, 1);
	EXPECT_EQ(bp_count(fd), bp_read_number(BP_PMU "/caps/verified"));
	EXPECT_EQ(1, bp_read_number(BP_PMU "/caps/verified"));
}

TEST_F(sysfs, caps_has_the_documented_files_only)
{
	EXPECT_EQ(6, count_files(BP_PMU "/caps"));
}

/*
 * -------------------------------------------------------------
 * perf_event_mux_interval_ms
 */

TEST_F(sysfs, interval_reads_back_as_written)
{
	static const char * const good[] = { "1", "20", "4\n", "0x10", "1000" };
	static const int ms[] = { 1, 20, 4, 16, 1000 };

	BP_NEED_ROOT();
	EXPECT_LE(1, bp_read_number(INTERVAL));
	for (unsigned int i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(0, bp_write_file(INTERVAL, good[i]));
		EXPECT_EQ(ms[i], bp_read_number(INTERVAL));
	}
}

TEST_F(sysfs, invalid_interval_is_refused)
{
	static const char * const bad[] = { "0", "-1", "-2147483648", "x", "4x", "4 5",
					    "2.5", "\n" };

	BP_NEED_ROOT();
	ASSERT_EQ(0, bp_write_file(INTERVAL, "7"));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, bp_write_file(INTERVAL, bad[i])) {
			TH_LOG("\"%s\"", bad[i]);
		}
		EXPECT_EQ(7, bp_read_number(INTERVAL));
	}
	EXPECT_EQ(-ERANGE, bp_write_file(INTERVAL, "2147483648"));
	EXPECT_EQ(-ERANGE, bp_write_file(INTERVAL, "99999999999999999999"));
	EXPECT_EQ(7, bp_read_number(INTERVAL));
}

static int write_interval(void *arg)
{
	return -bp_write_file(INTERVAL, arg);
}

TEST_F(sysfs, interval_is_for_root_to_change)
{
	char text[32];

	BP_NEED_ROOT();
	EXPECT_EQ(EACCES, bp_as_nobody(write_interval, "99"));
	ASSERT_EQ(0, bp_read_file(INTERVAL, text, sizeof(text)));
	EXPECT_STREQ(self->interval, text);
}

/* Breakpoints that are not multiplexed are not affected. */
TEST_F(sysfs, interval_can_change_while_breakpoints_are_open)
{
	char *page = bp_map_page(PROT_READ | PROT_WRITE);
	int guaranteed, flexible;

	BP_NEED_ROOT();
	ASSERT_NE(NULL, page);
	self->attr.bp_addr = (unsigned long)page;
	guaranteed = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, guaranteed);
	self->attr.bp_addr += 64;
	self->attr.config = 1;
	flexible = bp_open(&self->attr, 0, -1);
	ASSERT_LE(0, flexible);
	for (int i = 1; i <= 10; i++) {
		EXPECT_EQ(0, bp_write_file(INTERVAL, i & 1 ? "3" : "30"));
		bp_store(page, 1);
		bp_store(page + 64, 1);
		EXPECT_EQ(i, bp_count(guaranteed));
		EXPECT_EQ(i, bp_count(flexible));
	}
}

/* ------------------------------------------------------------------- permissions */

/*
 * No file but the interval can be written, not even by root, whom file modes do not
 * stop.
 */
TEST_F(sysfs, nothing_else_can_be_written)
{
	static const char * const file[] = {
		"type", "format/flexible", "format/process", "format/sigtrap_queue",
#if BP_AFTER_ACCESS
		"format/value", "format/changed",
#endif
		"caps/instruction_slots", "caps/data_slots",
		"caps/mixed_slots", "caps/verified", "caps/sigtrap_queue_length",
	};
	char path[128], before[32], after[32];
	struct stat st;

	for (unsigned int i = 0; i < ARRAY_SIZE(file); i++) {
		snprintf(path, sizeof(path), BP_PMU "/%s", file[i]);
		ASSERT_EQ(0, stat(path, &st)) {
			TH_LOG("%s", path);
		}
		EXPECT_EQ(0444, st.st_mode & 07777);
		ASSERT_EQ(0, bp_read_file(path, before, sizeof(before)));
		EXPECT_NE(0, bp_write_file(path, "6"));
		ASSERT_EQ(0, bp_read_file(path, after, sizeof(after)));
		EXPECT_STREQ(before, after);
	}
	ASSERT_EQ(0, stat(INTERVAL, &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
}

static int read_all(void *arg)
{
	(void)arg;
	return bp_read_number(BP_PMU "/caps/data_slots") == BP_SLOTS &&
	       bp_read_number(BP_PMU "/caps/verified") >= 0 &&
	       count_files(BP_PMU "/format") > 0 ? 0 : 1;
}

TEST_F(sysfs, files_are_readable_by_all_users)
{
	BP_NEED_ROOT();
	EXPECT_EQ(0, bp_as_nobody(read_all, NULL));
}

#define CLAIMS		"/sys/kernel/debug/hw_breakpoint/slots"
#define KPTR_RESTRICT	"/proc/sys/kernel/kptr_restrict"

static bool claims_show(const void *addr)
{
	static char text[65536];
	char want[32];

	snprintf(want, sizeof(want), " addr=%p ", addr);
	return !bp_read_file(CLAIMS, text, sizeof(text)) && strstr(text, want);
}

TEST_F(sysfs, claims_hide_kernel_addresses_with_kptr_restrict)
{
	char restriction[16];
	void *word;

	BP_NEED_ROOT();
	word = bp_ksym("loops_per_jiffy");
	ASSERT_NE(NULL, word);
	ASSERT_EQ(0, bp_read_file(KPTR_RESTRICT, restriction, sizeof(restriction)));
	ASSERT_LE(0, bp_open(&self->attr, 0, -1));
	self->attr.bp_addr = (unsigned long)word;
	self->attr.exclude_kernel = 0;
	ASSERT_LE(0, bp_open(&self->attr, -1, 0));

	for (char level = '0'; level <= '2'; level++) {
		char text[2] = { level };

		EXPECT_EQ(0, bp_write_file(KPTR_RESTRICT, text));
		EXPECT_EQ(level != '2', claims_show(word));
		EXPECT_TRUE(claims_show(mem));
	}
	EXPECT_EQ(0, bp_write_file(KPTR_RESTRICT, restriction));
}

/* True if the file shows a claim of this process, with this name. */
static bool claim_of_process_shows(const char *name)
{
	static char text[65536];
	char process[32], want[32], *line;

	snprintf(process, sizeof(process), "claim pid=%d process ", getpid());
	snprintf(want, sizeof(want), " comm=%s", name);
	if (bp_read_file(CLAIMS, text, sizeof(text)))
		return false;
	line = strstr(text, process);
	return line && !strcmp(strstr(strtok(line, "\n"), " comm="), want);
}

static long take_name(int cmd, void *name)
{
	(void)cmd;
	return prctl(PR_SET_NAME, name);
}

/* The event was opened for a thread, which has another name. */
TEST_F(sysfs, claims_show_the_name_of_the_process)
{
	struct bp_worker thread;

	BP_NEED_ROOT();
	ASSERT_EQ(0, prctl(PR_SET_NAME, "first"));
	ASSERT_EQ(0, bp_start_thread(&thread, take_name, "second"));
	ASSERT_EQ(0, bp_do(&thread, 1));
	self->attr.config = BP_PROCESS;
	ASSERT_LE(0, bp_open(&self->attr, thread.pid, -1));
	EXPECT_TRUE(claim_of_process_shows("first"));
	EXPECT_EQ(0, bp_stop(&thread));
	EXPECT_TRUE(claim_of_process_shows("first"));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "third"));
	EXPECT_TRUE(claim_of_process_shows("third"));
}

/* The KUnit suites ran at boot: a PMU that they registered must not be left. */
TEST(kunit_leaves_no_pmu)
{
	struct dirent *entry;
	DIR *pmus;

	pmus = opendir(BP_PMUS);
	ASSERT_NE(NULL, pmus);
	while ((entry = readdir(pmus))) {
		EXPECT_EQ(NULL, strstr(entry->d_name, "test")) {
			TH_LOG("%s is registered", entry->d_name);
		}
	}
	closedir(pmus);
}

TEST_HARNESS_MAIN
