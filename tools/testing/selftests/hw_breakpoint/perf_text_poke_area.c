// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_TEXT_POKE: permissions, modules, and changes of whole areas of text.
 *
 * The rule: attr.text_poke requires permission to profile the kernel, and an event of
 * the PMU kernel_text requires CAP_PERFMON. The text of BPF programs is recorded only
 * if the opener of the event may dump BPF images.
 */
#include <linux/capability.h>
#include <linux/filter.h>
#include <sys/socket.h>

#define TEXT_POKE_FIXTURE
#include "text_poke.h"

static int try_task(void *arg)
{
	int fd = bp_open(arg, 0, -1);

	return fd < 0 ? -fd : 0;
}

static int try_cpu(void *arg)
{
	int fd = bp_open(arg, -1, 0);

	return fd < 0 ? -fd : 0;
}

static int try_with_perfmon(void *arg)
{
	if (bp_become_nobody_with(1ULL << CAP_PERFMON))
		return 255;
	return try_cpu(arg) ? : try_task(arg);
}

/*
 * Records of kernel text require permission to profile the kernel, even if
 * attr.exclude_kernel is set.
 */
TEST_F(record, requires_permission_to_profile_the_kernel)
{
	struct perf_event_attr plain = self->attr;

	self->attr.exclude_kernel = 1;
	self->attr.exclude_hv = 1;
	plain = self->attr;
	plain.text_poke = 0;

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(0, bp_as_nobody(try_task, &plain));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));
	EXPECT_EQ(0, bp_in_child(try_with_perfmon, &self->attr));
	EXPECT_EQ(0, try_task(&self->attr));
	EXPECT_EQ(0, try_cpu(&self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "1"));
	EXPECT_EQ(0, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "0"));
	EXPECT_EQ(0, bp_as_nobody(try_cpu, &self->attr));
}

/* Whole areas require CAP_PERFMON, whatever kernel.perf_event_paranoid is. */
TEST_F(record, of_whole_areas_needs_the_capability)
{
	struct perf_event_attr areas = self->attr;

	areas.exclude_kernel = 1;
	areas.text_poke = 0;
	add_areas(&areas);
	add_areas(&self->attr);

	ASSERT_EQ(0, bp_write_file(PARANOID, "-1"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &areas));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &self->attr));
	EXPECT_EQ(EACCES, bp_as_nobody(try_cpu, &self->attr));
	self->attr = poke_attr();
	EXPECT_EQ(0, bp_as_nobody(try_cpu, &self->attr));

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(0, bp_in_child(try_with_perfmon, &areas));
	EXPECT_EQ(0, try_cpu(&areas));
}

TEST_F(record, requires_permission_to_profile_the_kernel_for_any_event)
{
	struct perf_event_attr attr = breakpoint_attr();

	ASSERT_EQ(0, bp_write_file(PARANOID, "2"));
	EXPECT_EQ(EACCES, bp_as_nobody(try_task, &attr));
	attr.text_poke = 0;
	EXPECT_EQ(0, bp_as_nobody(try_task, &attr));
}

/* ------------------------------------------------------------------------ modules */

#define MODULE		"data_breakpoint"
#define MODULE_PATH	"samples/hw_breakpoint/" MODULE

struct span {
	__u64 start;
	__u64 end;
};

/*
 * Returns the number of functions of the module that are in none of the recorded areas.
 */
static int functions_not_recorded(const char *name, const struct span *span, int nr)
{
	char line[512], brackets[64], module[64], type;
	int missing = 0;
	__u64 addr;
	FILE *f;

	snprintf(brackets, sizeof(brackets), "[%s]", name);
	f = fopen("/proc/kallsyms", "re");
	while (f && fgets(line, sizeof(line), f)) {
		bool found = false;

		if (sscanf(line, "%llx %c %*s %63s", &addr, &type, module) != 3 ||
		    strcmp(module, brackets) || (type | 0x20) != 't')
			continue;
		for (int i = 0; i < nr && !found; i++)
			found = span[i].start <= addr && addr < span[i].end;
		if (!found) {
			ksft_print_msg("not recorded: %s", line);
			missing++;
		}
	}
	if (f)
		fclose(f);
	return missing;
}

static void expect_whole_text(struct __test_metadata *_metadata, FIXTURE_DATA(record) *self,
			      const char *name, const char *path, const char *parameters)
{
	struct listener l[BP_MAX_CPUS];
	struct perf_event_header *h;
	unsigned char is[16384];
	struct span span[64];
	int nr = 0, err;
	struct poke p;
	__u64 text;

	add_areas(&self->attr);
	for (int i = 0; i < self->cpus.nr; i++)
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpus.cpu[i], 64));
	err = bp_load_module(path, parameters);
	if (err == -ENOENT)
		SKIP(return, "needs the module %s", path);
	ASSERT_EQ(0, err);
	text = section_of_module(name, ".text");
	for (int i = 0; i < self->cpus.nr; i++) {
		size_t pos = 0;

		drain(&l[i]);
		while ((h = next_record(&l[i], &pos))) {
			if (!decode(h, &p) || nr == ARRAY_SIZE(span))
				continue;
			if (p.old_len) {
				EXPECT_FALSE(p.addr >= text && p.addr < text + sizeof(is) && !nr);
				continue;
			}
			EXPECT_EQ(NULL, what_is_wrong(h, sizeof(struct trailer)));
			span[nr].start = p.addr;
			span[nr++].end = p.addr + p.new_len;
			if (p.addr > text || p.addr + p.new_len <= text)
				continue;
			ASSERT_GE(sizeof(is), p.new_len);
			ASSERT_TRUE(read_kcore(p.addr, is, p.new_len));
			EXPECT_EQ(0, memcmp(is, p.new, p.new_len));
		}
	}
	EXPECT_NE(0, text);
	EXPECT_LT(0, nr);
	EXPECT_EQ(0, functions_not_recorded(name, span, nr));
	EXPECT_EQ(0, bp_remove_module(path));
	for (int i = 0; i < self->cpus.nr; i++)
		unlisten(&l[i]);
}

/* The first record of a module's text has all of the text, as it will be executed. */
TEST_F(record, first_record_of_a_module_has_its_whole_text)
{
	expect_whole_text(_metadata, self, MODULE, MODULE_PATH, "ksym=panic_timeout");
}

TEST_F(record, first_record_of_a_module_with_lock_prefixes_has_its_whole_text)
{
	expect_whole_text(_metadata, self, TEXT_MODULE, TEXT_MODULE_PATH, "");
}

/* ---------------------------------------------------------- thunks of modules */

#define THUNKS_SIZE	4096

/* Finds the first record of text that begins at an address, or of text that ceases. */
static bool find_record(struct listener *l, __u64 addr, bool begins, struct poke *p)
{
	struct perf_event_header *h;
	size_t pos = 0;

	drain(l);
	while ((h = next_record(l, &pos))) {
		if (decode(h, p) && p->addr == addr && !(begins ? p->old_len : p->new_len))
			return !what_is_wrong(h, sizeof(struct trailer));
	}
	return false;
}

/*
 * Opens a listener for whole areas and loads the module. Returns false if the kernel
 * uses no thunks in modules, or has no such module.
 */
static bool load_thunks(struct __test_metadata *_metadata, FIXTURE_DATA(record) *self)
{
	int err;

	if (!modules_have_thunks())
		return false;
	self->attr.text_poke = 0;
	add_areas(&self->attr);
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 64));
	err = bp_load_module(TEXT_MODULE_PATH, "");
	if (err != -ENOENT)
		ASSERT_EQ(0, err);
	return !err;
}

/*
 * The text of the module branches to the thunks, so it must not be recorded before them.
 * The expected bytes are read from memory; the branches of the module give the address
 * of the thunks.
 */
TEST_F(record, thunks_of_a_module_are_recorded_before_its_text)
{
	struct poke thunks, text;
	struct listener insns;
	__u8 is[THUNKS_SIZE];
	__u64 addr, page;

	ASSERT_EQ(0, listen_with(&insns, &self->attr, -1, self->cpu, 64));
	if (!load_thunks(_metadata, self))
		SKIP(return, "needs a module with thunks against ITS");
	addr = section_of_module(TEXT_MODULE, ".text");
	page = find_thunks(addr);
	EXPECT_NE(0, page);
	EXPECT_TRUE(read_kcore(page, is, sizeof(is)));
	EXPECT_EQ(0, bp_remove_module(TEXT_MODULE_PATH));

	ASSERT_TRUE(find_record(&self->listener, page, true, &thunks));
	ASSERT_EQ(sizeof(is), thunks.new_len);
	EXPECT_EQ(0, memcmp(is, thunks.new, sizeof(is)));
	ASSERT_TRUE(find_record(&self->listener, addr & -4096ULL, true, &text));
	EXPECT_LT(thunks.time, text.time);
	/* A page of thunks is an area, which attr.text_poke alone does not record. */
	EXPECT_FALSE(find_record(&insns, page, true, &thunks));
	EXPECT_FALSE(find_record(&insns, page, false, &thunks));
	unlisten(&insns);
}

/* Other text may come to this address later. */
TEST_F(record, thunks_of_a_module_that_is_removed_are_recorded)
{
	__u8 was[THUNKS_SIZE];
	struct poke thunks;
	__u64 page;

	if (!load_thunks(_metadata, self))
		SKIP(return, "needs a module with thunks against ITS");
	page = find_thunks(section_of_module(TEXT_MODULE, ".text"));
	EXPECT_NE(0, page);
	EXPECT_TRUE(read_kcore(page, was, sizeof(was)));
	EXPECT_FALSE(find_record(&self->listener, page, false, &thunks));
	EXPECT_EQ(0, bp_remove_module(TEXT_MODULE_PATH));

	ASSERT_TRUE(find_record(&self->listener, page, false, &thunks));
	ASSERT_EQ(sizeof(was), thunks.old_len);
	EXPECT_EQ(0, memcmp(was, thunks.old, sizeof(was)));
}

/* ------------------------------------------------------------------ whole areas */

/* Data pages of a small buffer; perf record uses 128 by default. */
#define FEW_PAGES	16

static bool is_in(const struct poke *p, __u64 addr, __u32 len)
{
	return p->addr < addr + len && p->addr + p->old_len + p->new_len > addr;
}

/* Number of records that overlap this text */
static int count_in(struct listener *l, __u64 addr, __u32 len)
{
	return count_if(l, is_in, addr, len);
}

static bool is_longer(const struct poke *p, __u64 addr, __u32 len)
{
	return p->old_len > len || p->new_len > len;
}

/* Number of records of more text than one instruction, or one slot, has */
static int count_longer(struct listener *l, unsigned int len)
{
	return count_if(l, is_longer, 0, len);
}

/* Loads a module and BPF programs of 10 kB and more; returns the last program. */
static int load_areas(void)
{
	int fd = -1, err;

	err = bp_load_module(MODULE_PATH, "ksym=panic_timeout");
	if (!err)
		err = bp_remove_module(MODULE_PATH);
	if (err && err != -ENOENT)
		return err;
	for (int i = 0; i < 4; i++) {
		close(fd);
		fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, i, 3000);
		if (fd < 0)
			return fd;
	}
	return fd;
}

TEST_F(record, text_poke_does_not_record_whole_areas)
{
	int fd, pokes, nr_lost;
	long long lost;
	__u64 addr;
	__u32 len;

	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, FEW_PAGES));
	fd = load_areas();
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the BPF JIT");
	poke_twice(_metadata, self);
	count_all(&self->listener, &pokes, &lost, &nr_lost);
	EXPECT_EQ(0, nr_lost);
	EXPECT_EQ(2, count_at(&self->listener, self->addr));
	EXPECT_EQ(0, count_in(&self->listener, addr, len));
	EXPECT_EQ(0, count_longer(&self->listener, 1000));
}

TEST_F(record, kernel_text_records_whole_areas_only)
{
	__u64 addr;
	__u32 len;
	int fd;

	self->attr.text_poke = 0;
	add_areas(&self->attr);
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, -1, self->cpu, 1024));
	fd = load_areas();
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the BPF JIT");
	poke_twice(_metadata, self);
	EXPECT_LT(0, count_in(&self->listener, addr, len));
	EXPECT_EQ(0, count_at(&self->listener, self->addr));
}

/* What perf record -e kernel_text/area/ opens; other values of config have no meaning. */
TEST_F(record, kernel_text_opens_with_the_attributes_of_perf_record)
{
	struct perf_event_attr attr = self->attr;

	attr.text_poke = 0;
	add_areas(&attr);
	EXPECT_EQ(1, attr.config);
	attr.freq = 1;
	attr.sample_freq = 1000;
	attr.inherit = 1;
	attr.enable_on_exec = 1;
	attr.disabled = 1;
	EXPECT_LE(0, bp_open(&attr, 0, -1));
	EXPECT_LE(0, bp_open(&attr, 0, self->cpu));
	for (int bit = 0; bit < 64; bit++) {
		attr.config = (1ULL << bit) & ~1ULL;
		EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
		attr.config = (1ULL << bit) | 2;
		EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
	}
	attr.config = 1;
	attr.config1 = 1;
	EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
	attr.config1 = 0;
	attr.config2 = 1;
	EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
	attr.config2 = 0;
	attr.config3 = 1;
	EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
}

/* Later kernels give flags behind attr.sigtrap other meanings: here are those that have none. */
TEST_F(record, no_flag_of_the_attributes_selects_whole_areas)
{
	struct perf_event_attr attr = poke_attr();
	__u64 *flags = &attr.read_format + 1;

	for (int bit = 48; bit < 64; bit++) {
		*flags |= 1ULL << bit;
		EXPECT_EQ(-EINVAL, bp_open(&attr, 0, -1));
		*flags &= ~(1ULL << bit);
	}
	EXPECT_LE(0, bp_open(&attr, 0, -1));
}

/* A classic BPF filter requires no privilege. Its image must not be recorded. */
static int see_own_filter(void *arg)
{
	struct sock_filter code[40] = { };
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	struct listener l;
	int sock[2];

	for (unsigned int i = 0; i < ARRAY_SIZE(code); i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x12345678 + i);
	if (listen_with(&l, arg, 0, -1, 16) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sock))
		return 255;
	if (setsockopt(sock[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		return 254;
	return count_longer(&l, 64);
}

TEST_F(record, shows_no_image_of_bpf_to_unprivileged_tasks)
{
	struct perf_event_attr areas = self->attr;

	add_areas(&areas);
	ASSERT_EQ(0, bp_write_file(PARANOID, "1"));
	ASSERT_EQ(0, listen_with(&self->listener, &areas, -1, self->cpu, 64));
	EXPECT_EQ(0, bp_as_nobody(see_own_filter, &self->attr));
	EXPECT_LT(0, count_longer(&self->listener, 64));
}

static int set_effective(int cap, bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { };

	if (syscall(__NR_capget, &header, data))
		return -errno;
	if (on)
		data[cap / 32].effective |= 1U << cap % 32;
	else
		data[cap / 32].effective &= ~(1U << cap % 32);
	return syscall(__NR_capset, &header, data) ? -errno : 0;
}

/* The permissions at the time of the open decide. */
TEST_F(record, shows_an_image_of_bpf_if_the_opener_may_dump_it)
{
	static const struct {
		const char *kptr_restrict;
		bool syslog;
		bool shown;
	} opener[] = {
		{ "0", true, true }, { "1", true, true },
		{ "1", false, false }, { "2", true, false },
	};
	struct listener l[ARRAY_SIZE(opener)];
	__u64 addr;
	__u32 len;
	int fd;

	add_areas(&self->attr);
	for (unsigned int i = 0; i < ARRAY_SIZE(opener); i++) {
		ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, opener[i].kptr_restrict));
		ASSERT_EQ(0, set_effective(CAP_SYSLOG, opener[i].syslog));
		ASSERT_EQ(0, listen_with(&l[i], &self->attr, -1, self->cpu, 64));
		ASSERT_EQ(0, set_effective(CAP_SYSLOG, true));
	}
	ASSERT_EQ(0, bp_write_file(KPTR_RESTRICT, "1"));
	fd = load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 100);
	ASSERT_LE(0, fd);
	if (!program_text(fd, &addr, &len))
		SKIP(return, "needs the BPF JIT");
	poke_twice(_metadata, self);
	for (unsigned int i = 0; i < ARRAY_SIZE(opener); i++) {
		EXPECT_EQ(opener[i].shown, !!count_in(&l[i], addr, len)) {
			TH_LOG("kptr_restrict %s, %s CAP_SYSLOG", opener[i].kptr_restrict,
			       opener[i].syslog ? "with" : "without");
		}
		EXPECT_EQ(2, count_at(&l[i], self->addr));
	}
}

static int load_in_child(void *arg)
{
	return load_program(BPF_PROG_TYPE_SOCKET_FILTER, 0, 1000) < 0;
}

/*
 * An inherited event records what its parent records. The child does not inherit the other
 * event of this task: otherwise a task switch swaps the contexts, and the child has the
 * parent's event.
 */
TEST_F(record, of_a_childs_areas_goes_to_the_inherited_event)
{
	struct perf_event_attr other = bp_attr_sw(PERF_COUNT_SW_DUMMY);

	ASSERT_LE(0, bp_open(&other, 0, -1));
	self->attr.inherit = 1;
	add_areas(&self->attr);
	ASSERT_EQ(0, listen_with(&self->listener, &self->attr, 0, self->cpu, 64));
	EXPECT_EQ(0, bp_in_child(load_in_child, self));
	EXPECT_LT(0, count_longer(&self->listener, 1000));
}

TEST_HARNESS_MAIN
