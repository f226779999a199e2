// SPDX-License-Identifier: GPL-2.0
/*
 * How the breakpoint PMU shows itself in sysfs: under its name, with the type
 * that the uapi header fixes, and without events of its own.
 */
#include <dirent.h>

#include "bp_test.h"

#define PMU "/sys/bus/event_source/devices/breakpoint"

FIXTURE(sysfs)
{
	struct perf_event_attr attr;
};

static char mem[8] __aligned(8);

FIXTURE_SETUP(sysfs)
{
	if (access("/sys/bus", F_OK))
		SKIP(return, "needs sysfs mounted at /sys");
	self->attr = bp_attr_w(mem, 4);
}

FIXTURE_TEARDOWN(sysfs)
{
	bp_teardown(_metadata);
}

TEST_F(sysfs, pmu_has_its_name_and_type)
{
	char text[32];

	ASSERT_EQ(0, bp_read_file(PMU "/type", text, sizeof(text)));
	EXPECT_STREQ("5\n", text);
	EXPECT_EQ(5, PERF_TYPE_BREAKPOINT);
}

/* A tool that looks the type up opens the same event. */
TEST_F(sysfs, type_from_sysfs_opens_a_breakpoint)
{
	char text[32];
	int fd;

	ASSERT_EQ(0, bp_read_file(PMU "/type", text, sizeof(text)));
	self->attr.type = atoi(text);
	fd = bp_open(&self->attr, 0, -1);
	ASSERT_GE(fd, 0);
	bp_store(mem, 1);
	EXPECT_EQ(1, bp_count(fd));
}

TEST_F(sysfs, type_cannot_be_written)
{
	BP_NEED_ROOT();
	EXPECT_NE(0, bp_write_file(PMU "/type", "6"));
}

TEST_F(sysfs, files_can_be_read)
{
	struct dirent *entry;
	char path[512], text[4096];
	DIR *dir = opendir(PMU);

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_type != DT_REG)
			continue;
		snprintf(path, sizeof(path), PMU "/%s", entry->d_name);
		if (access(path, R_OK))
			continue;
		EXPECT_EQ(0, bp_read_file(path, text, sizeof(text))) {
			TH_LOG("%s", path);
		}
	}
	closedir(dir);
}

TEST_HARNESS_MAIN
