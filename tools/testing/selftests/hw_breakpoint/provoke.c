// SPDX-License-Identifier: GPL-2.0
/*
 * All ways to change kernel text: see provoke.h.
 */
#define BP_NO_TESTS
#include <dirent.h>
#include <linux/filter.h>
#include <sys/file.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "provoke.h"

/* ------------------------------------------------------------------ provoking */

#define ABSENT(fmt, ...)						\
	({								\
		ksft_print_msg("absent: " fmt "\n", ##__VA_ARGS__);	\
		KSFT_SKIP;						\
	})
#define MUST(what)							\
	do {								\
		long err_ = (what);					\
									\
		if (err_ < 0) {						\
			ksft_print_msg("%s:%d: %s: %ld\n", __func__, __LINE__, #what, err_); \
			return KSFT_FAIL;				\
		}							\
	} while (0)

int make_instance(const char *name, int cpu, char path[128])
{
	char file[192];

	snprintf(path, 128, TRACING "/instances/hwbp_%s_%d", name, cpu);
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	snprintf(file, sizeof(file), "%s/tracing_on", path);
	return bp_write_file(file, "0");
}

int instance_write(const char *path, const char *name, const char *text)
{
	char file[192];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	return bp_write_file(file, text);
}

int end_instance(const char *path)
{
	for (int i = 0; i < 3000; i++) {
		if (!rmdir(path))
			return 0;
		usleep(20000);
	}
	return -errno;
}

void remove_instances(void)
{
	DIR *dir = opendir(TRACING "/instances");
	struct dirent *entry;
	char path[512];

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "hwbp_", 5))
			continue;
		snprintf(path, sizeof(path), TRACING "/instances/%s", entry->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

/* One process at a time: the kernel has no lock for this, and warns if there are two. */
static void switch_schedstats(void)
{
	int lock = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (lock < 0 || flock(lock, LOCK_EX))
		return;
	bp_write_file(SCHEDSTATS, "1");
	bp_write_file(SCHEDSTATS, "0");
	close(lock);
}

int provoke_static_keys(int cpu, int rounds)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.exclude_kernel = 1,
	};

	if (access(BPF_STATS, W_OK))
		return ABSENT("%s", BPF_STATS);
	for (int i = 0; i < rounds; i++) {
		bp_write_file(BPF_STATS, "1");
		bp_write_file(BPF_STATS, "0");
		if (!access(SCHEDSTATS, W_OK))
			switch_schedstats();
		if (!access(FEATURES, W_OK)) {
			bp_write_file(FEATURES, "NO_NONTASK_CAPACITY");
			bp_write_file(FEATURES, "NONTASK_CAPACITY");
		}
		for (attr.config = 0; attr.config < PERF_COUNT_SW_MAX; attr.config++) {
			int fd = bp_open(&attr, 0, -1);

			if (fd >= 0)
				close(fd);
		}
	}
	return 0;
}

int open_tracepoint(const char *event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
	};
	char path[128], id[16];

	snprintf(path, sizeof(path), TRACING "/events/%s/id", event);
	if (bp_read_file(path, id, sizeof(id)))
		return -ENOENT;
	attr.config = atoi(id);
	return bp_open(&attr, 0, -1);
}

int provoke_static_calls(int cpu, int rounds)
{
	static const char * const event[] = {
		"sched/sched_switch", "task/task_rename", "irq/softirq_entry",
	};
	char path[128], file[64];

	MUST(make_instance("event", cpu, path));
	for (int i = 0; i < rounds; i++) {
		for (unsigned int e = 0; e < ARRAY_SIZE(event); e++) {
			int fd = open_tracepoint(event[e]);

			if (fd < 0)
				continue;
			snprintf(file, sizeof(file), "events/%s/enable", event[e]);
			MUST(instance_write(path, file, "1"));
			if (i & 1)
				close(fd);
			MUST(instance_write(path, file, "0"));
			if (!(i & 1))
				close(fd);
		}
	}
	MUST(end_instance(path));
	return 0;
}

int provoke_functions(int cpu, int rounds)
{
	static const char * const filter[] = { "vfs_*", "*_getattr", "ksys_*", "do_sys_open*" };
	char path[128];

	MUST(make_instance("function", cpu, path));
	if (instance_write(path, "current_tracer", "nop"))
		return ABSENT("tracers in instances");
	for (int i = 0; i < rounds; i++) {
		MUST(instance_write(path, "set_ftrace_filter", filter[i % ARRAY_SIZE(filter)]));
		if (instance_write(path, "current_tracer", "function"))
			return ABSENT("the function tracer");
		MUST(instance_write(path, "set_ftrace_filter",
				    filter[(i + 1) % ARRAY_SIZE(filter)]));
		MUST(instance_write(path, "current_tracer", "nop"));
	}
	MUST(end_instance(path));
	return 0;
}

static int trace_with(const char *tracer, const char *filter, int rounds)
{
	char on[16];
	int err = 0;

	MUST(bp_read_file(TRACING "/tracing_on", on, sizeof(on)));
	MUST(bp_write_file(TRACING "/tracing_on", "0"));
	MUST(bp_write_file(TRACING "/set_ftrace_filter", filter));
	for (int i = 0; i < rounds && !err; i++) {
		err = bp_write_file(TRACING "/current_tracer", tracer);
		bp_write_file(TRACING "/current_tracer", "nop");
	}
	MUST(bp_write_file(TRACING "/set_ftrace_filter", ""));
	MUST(bp_write_file(TRACING "/tracing_on", on));
	return err ? ABSENT("tracer %s", tracer) : 0;
}

int provoke_function_tracer(int cpu, int rounds)
{
	return trace_with("function", access("/proc/lockdep", F_OK) ? "" : "*_s*", rounds);
}

/* A few functions are enough to change all trampolines. */

int provoke_graph_tracer(int cpu, int rounds)
{
	return trace_with("function_graph", "vfs_*", rounds);
}

int provoke_kprobes(int cpu, int rounds)
{
	int fd[ARRAY_SIZE(probed)], nr = ARRAY_SIZE(probed), good = 0;
	unsigned long offset;

	for (int i = 0; i < rounds; i++) {
		for (int f = 0; f < nr; f++) {
			fd[f] = open_inner_kprobe(probed[f], &offset);
			good += fd[f] >= 0;
		}
		for (int f = 0; f < nr; f++) {
			if (fd[f] >= 0)
				close(fd[f]);
		}
	}
	return good ? 0 : ABSENT("kprobes");
}

/* A function can have several names, so find a kprobe by its address. */
static bool is_optimized(unsigned long func)
{
	bool found = false;
	unsigned long addr;
	char line[256];
	FILE *f;

	f = fopen("/sys/kernel/debug/kprobes/list", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		addr = strtoul(line, NULL, 16);
		found = addr > func && addr < func + 24 && strstr(line, "[OPTIMIZED]");
	}
	if (f)
		fclose(f);
	return found;
}

void wait_until_optimized(unsigned long func)
{
	__u64 end = bp_now(CLOCK_MONOTONIC) + 1000000000;

	while (!is_optimized(func) && bp_now(CLOCK_MONOTONIC) < end)
		usleep(20000);
}

int provoke_optimized_kprobes(int cpu, int rounds)
{
	unsigned long offset, func = (unsigned long)bp_ksym(probed[3]);
	int fd[ARRAY_SIZE(probed)], nr = ARRAY_SIZE(probed);

	if (access(OPTIMIZE, W_OK))
		return ABSENT("%s", OPTIMIZE);
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(OPTIMIZE, "1"));
		for (int f = 0; f < nr; f++)
			fd[f] = open_inner_kprobe(probed[f], &offset);
		wait_until_optimized(func);
		MUST(bp_write_file(OPTIMIZE, "0"));
		MUST(bp_write_file(OPTIMIZE, "1"));
		if (i & 1)
			usleep(100000);
		for (int f = 0; f < nr; f++) {
			if (fd[f] >= 0)
				close(fd[f]);
		}
	}
	return 0;
}

int provoke_reenabled_kprobes(int cpu, int rounds)
{
	char command[128], enable[128];
	unsigned long offset;
	int fd;

	if (access(TRACING "/kprobe_events", W_OK))
		return ABSENT("kprobe events");
	fd = open_inner_kprobe(probed[3], &offset);
	if (fd < 0)
		return ABSENT("kprobes");
	close(fd);
	snprintf(command, sizeof(command), "p:hwbp/p%d %s+%lu", getpid(), probed[3], offset);
	MUST(bp_write_file(TRACING "/kprobe_events", command));
	snprintf(enable, sizeof(enable), TRACING "/events/hwbp/p%d/enable", getpid());
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(enable, "1"));
		usleep((getpid() * 7 + i * 13) % 50 * 1000);
		MUST(bp_write_file(enable, "0"));
		usleep((getpid() * 11 + i * 3) % 20 * 1000);
	}
	snprintf(command, sizeof(command), "-:hwbp/p%d", getpid());
	MUST(bp_write_file(TRACING "/kprobe_events", command));
	return 0;
}

int provoke_function_kprobes(int cpu, int rounds)
{
	int good = 0;

	for (int i = 0; i < rounds; i++) {
		for (unsigned int f = 0; f < ARRAY_SIZE(probed); f++) {
			int entry = open_kprobe(probed[f], 0, false);
			int back = open_kprobe(probed[f], 0, true);

			good += entry >= 0;
			if (entry >= 0)
				close(entry);
			if (back >= 0)
				close(back);
		}
	}
	return good ? 0 : ABSENT("kprobes");
}

int provoke_disarming(int cpu, int rounds)
{
	unsigned long offset;
	int fd[2];

	if (access(ARM_KPROBES, W_OK))
		return ABSENT("%s", ARM_KPROBES);
	fd[0] = open_inner_kprobe(probed[0], &offset);
	fd[1] = open_kprobe(probed[1], 0, false);
	for (int i = 0; i < rounds; i++) {
		MUST(bp_write_file(ARM_KPROBES, "0"));
		MUST(bp_write_file(ARM_KPROBES, "1"));
	}
	bp_close(fd, 2);
	return 0;
}

int provoke_bpf_programs(int cpu, int rounds)
{
	static const int size[] = { 2, 17, 100, 700, 3000 };
	int fd[ARRAY_SIZE(size)];

	for (int i = 0; i < rounds; i++) {
		for (unsigned int s = 0; s < ARRAY_SIZE(size); s++) {
			fd[s] = load_program(BPF_PROG_TYPE_SOCKET_FILTER, cpu + i, size[s]);
			MUST(fd[s]);
		}
		for (unsigned int s = 0; s < ARRAY_SIZE(size); s++)
			close(fd[(s + i) % ARRAY_SIZE(size)]);
	}
	return 0;
}

int provoke_bpf_tail_calls(int cpu, int rounds)
{
	union bpf_attr map_attr = {
		.map_type = BPF_MAP_TYPE_PROG_ARRAY,
		.key_size = 4,
		.value_size = 4,
		.max_entries = 1,
	};
	int map = sys_bpf(BPF_MAP_CREATE, &map_attr), key = 0, caller, target[2];

	MUST(map);
	const struct bpf_insn insn[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		MOV(BPF_REG_3, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		MOV(BPF_REG_0, 0),
		EXIT(),
	};
	caller = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, insn, ARRAY_SIZE(insn));
	MUST(caller);
	for (int i = 0; i < 2; i++) {
		target[i] = load_program(BPF_PROG_TYPE_SOCKET_FILTER, i, 2);
		MUST(target[i]);
	}
	for (int i = 0; i < rounds; i++) {
		union bpf_attr attr = {
			.map_fd = map,
			.key = (unsigned long)&key,
			.value = (unsigned long)&target[i & 1],
		};

		MUST(sys_bpf(BPF_MAP_UPDATE_ELEM, &attr));
		MUST(run_program(caller, 1));
		attr.value = 0;
		if (i % 3 == 2)
			MUST(sys_bpf(BPF_MAP_DELETE_ELEM, &attr));
	}
	close(caller);
	close(map);
	bp_close(target, 2);
	return 0;
}

int provoke_bpf_trampolines(int cpu, int rounds)
{
	int target = load_target();

	if (target < 0)
		return ABSENT("BPF programs with types: %d", target);
	for (int i = 0; i < rounds; i++) {
		int before = attach_to(target, BPF_TRACE_FENTRY), after;

		if (before < 0)
			return ABSENT("BPF trampolines: %d", before);
		MUST(run_program(target, 1));
		after = attach_to(target, BPF_TRACE_FEXIT);
		MUST(after);
		MUST(run_program(target, 1));
		close(i & 1 ? before : after);
		MUST(run_program(target, 1));
		close(i & 1 ? after : before);
	}
	close(target);
	return 0;
}

int provoke_bpf_dispatcher(int cpu, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		int fd = load_program(BPF_PROG_TYPE_XDP, 2, 3 + cpu);
		int err;

		if (fd < 0)
			return ABSENT("XDP programs");
		err = run_program(fd, 2);
		close(fd);
		if (err < 0)
			return ABSENT("runs of XDP programs");
	}
	return 0;
}

int provoke_socket_filters(int cpu, int rounds)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 100 + cpu, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, -1),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	int sock[2];

	for (int i = 0; i < rounds; i++) {
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock));
		MUST(setsockopt(sock[0], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
		MUST(write(sock[1], "x", 1));
		bp_close(sock, 2);
	}
	return 0;
}

int provoke_listeners(int cpu, int rounds)
{
	struct perf_event_attr attr = poke_attr(), task = attr;

	task.text_poke = 0;
	task.comm = 1;
	for (int i = 0; i < rounds; i++) {
		int fd[2] = { bp_open(&attr, -1, cpu), bp_open(&task, 0, -1) };

		MUST(fd[0]);
		MUST(fd[1]);
		bp_close(fd, 2);
	}
	return 0;
}

bool klog_has(const char *text)
{
	static char log[1 << 20];
	int n = klogctl(3, log, sizeof(log) - 1);

	log[n > 0 ? n : 0] = '\0';
	return strstr(log, text);
}

int provoke_debugger(int cpu, int rounds)
{
	if (access(KGDBTS, W_OK))
		return ABSENT("kgdbts");
	if (!access("/proc/lockdep", F_OK))
		return ABSENT("the debugger's tests under lockdep");
	sleep(3);
	klogctl(5, NULL, 0);
	MUST(bp_write_file(KGDBTS, "V1I1"));
	for (int i = 0; i < 600; i++) {
		if (klog_has("Unregistered I/O driver kgdbts"))
			return 0;
		usleep(500000);
	}
	ksft_print_msg("kgdbts does not end\n");
	return KSFT_FAIL;
}

int provoke_nothing(int cpu, int rounds)
{
	sleep(rounds);
	return 0;
}

const provoke_fn at_once[NR_AT_ONCE] = {
	provoke_static_keys,
	provoke_static_calls,
	provoke_functions,
	provoke_kprobes,
	provoke_optimized_kprobes,
	provoke_reenabled_kprobes,
	provoke_function_kprobes,
	provoke_bpf_programs,
	provoke_bpf_tail_calls,
	provoke_bpf_trampolines,
	provoke_bpf_dispatcher,
	provoke_socket_filters,
	provoke_listeners,
};
