// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoints of the host beside those of a guest of KVM.
 *
 * The rule: host and guest use the same debug registers in turn, and neither notices the
 * other. A guest gets a #DB for each access that its own debug registers watch and for no
 * other, also when the host watches the same linear address. The events of the host count
 * the accesses of the host, also between the runs of a guest that uses its debug registers,
 * and also when the thread of the virtual CPU changes to another CPU. With
 * KVM_GUESTDBG_USE_HW_BP the accesses of the guest leave it with KVM_EXIT_DEBUG. KVM's own
 * test of the debug registers passes beside events of the host.
 */
#include "bp_test.h"

#include <asm/kvm.h>
#include <linux/kvm.h>

#define TRACEFS		"/sys/kernel/tracing/"
#define EVENT		"events/wprobes/perf_kvm/"
/* Writing the file stores to the variable of the kernel once. */
#define SYSCTL		"/proc/sys/kernel/panic"
#define VARIABLE	"panic_timeout"

/* KVM's own test, see mkroot: make test KERNEL=kvm builds it. */
#define DEBUG_REGS	"/tests/ours/kvm_debug_regs"

/* The linear address that both watch: the guest runs in real mode. */
#define WATCHED		0x20000
#define GUEST_SIZE	0x40000
#define GUEST_CODE	0x1000
#define GUEST_DATA	0x3000

/* Exact, writes of four bytes at DR0 */
#define DR7_WATCH	0xd0402

#define PORT_STORED	0x10
#define PORT_DONE	0x11

/* Data of the guest at GUEST_DATA; the program below knows its layout. */
struct guest {
	__u32 rounds;	/* number of stores to WATCHED, each followed by an exit */
	__u32 dr7;
	__u32 dr0;
	__u32 traps;	/* number of #DB */
	__u32 dr6;	/* what all of them had in DR6 */
	__u32 last_dr0;	/* DR0 after the stores */
};

#define STRING(x)	#x
#define VALUE(x)	STRING(x)

extern const char guest_start[], guest_end[];

asm(".pushsection .rodata\n"
	"	.code16\n"
	"	.globl guest_start, guest_end\n"
	"guest_start:\n"
	"	xorw	%ax, %ax\n"
	"	movw	%ax, %ds\n"
	"	movw	%ax, %ss\n"
	"	movw	$0x8000, %sp\n"
	"	movw	$(guest_trap - guest_start + " VALUE(GUEST_CODE) "), 4\n"
	"	movw	%ax, 6\n"
	"	movw	$(" VALUE(WATCHED) " >> 4), %ax\n"
	"	movw	%ax, %es\n"
	"	movl	" VALUE(GUEST_DATA) " + 8, %eax\n"
	"	movl	%eax, %dr0\n"
	"	movl	" VALUE(GUEST_DATA) " + 4, %eax\n"
	"	movl	%eax, %dr7\n"
	"	movl	" VALUE(GUEST_DATA) ", %ecx\n"
	"1:	movl	%ecx, %es:0\n"
	"	outb	%al, $" VALUE(PORT_STORED) "\n"
	"	decl	%ecx\n"
	"	jnz	1b\n"
	"	movl	%dr0, %eax\n"
	"	movl	%eax, " VALUE(GUEST_DATA) " + 20\n"
	"2:	outb	%al, $" VALUE(PORT_DONE) "\n"
	"	jmp	2b\n"
	"guest_trap:\n"
	"	pushl	%eax\n"
	"	incl	" VALUE(GUEST_DATA) " + 12\n"
	"	movl	%dr6, %eax\n"
	"	orl	%eax, " VALUE(GUEST_DATA) " + 16\n"
	"	xorl	%eax, %eax\n"
	"	movl	%eax, %dr6\n"
	"	popl	%eax\n"
	"	iretw\n"
	"guest_end:\n"
#ifdef __x86_64__
	"	.code64\n"
#else
	"	.code32\n"
#endif
	".popsection\n");

/* What the host watches */
enum kind { NOTHING, TASK, PROCESS, CPUS, KERNEL_WIDE };

FIXTURE(kvm)
{
	int vcpu;
	struct kvm_run *run;
	struct guest *guest;
	int *variable;
	struct bp_cpus cpus;
	int nr_fds;
	int fd[BP_MAX_CPUS];
	long long stores;
	bool stop;
};

FIXTURE_VARIANT(kvm)
{
	enum kind kind;
};

FIXTURE_VARIANT_ADD(kvm, nothing) { .kind = NOTHING };
FIXTURE_VARIANT_ADD(kvm, task) { .kind = TASK };
FIXTURE_VARIANT_ADD(kvm, process) { .kind = PROCESS };
FIXTURE_VARIANT_ADD(kvm, cpus) { .kind = CPUS };
FIXTURE_VARIANT_ADD(kvm, kernel_wide) { .kind = KERNEL_WIDE };

/* Returns the memory of the guest, or NULL. */
static char *create_guest(FIXTURE_DATA(kvm) *self, int kvm)
{
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_SIZE };
	struct kvm_regs regs = { .rip = GUEST_CODE, .rflags = 2 };
	struct kvm_sregs sregs;
	char *memory;
	int vm;

	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	memory = mmap(NULL, GUEST_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || memory == MAP_FAILED)
		return NULL;
	region.userspace_addr = (unsigned long)memory;
	memcpy(memory + GUEST_CODE, guest_start, guest_end - guest_start);
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		return NULL;

	self->vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (self->vcpu < 0 || ioctl(self->vcpu, KVM_GET_SREGS, &sregs))
		return NULL;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(self->vcpu, KVM_SET_SREGS, &sregs) || ioctl(self->vcpu, KVM_SET_REGS, &regs))
		return NULL;
	self->run = mmap(NULL, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
			 MAP_SHARED, self->vcpu, 0);
	return self->run == MAP_FAILED ? NULL : memory;
}

/* Opens what the host watches: an event, or one for each CPU. */
static void watch(struct __test_metadata *_metadata, FIXTURE_DATA(kvm) *self, enum kind kind)
{
	struct perf_event_attr attr = bp_attr_w(self->variable, sizeof(*self->variable));

	switch (kind) {
	case NOTHING:
		return;
	case PROCESS:
		attr.config |= BP_PROCESS;
		/* fallthrough */
	case TASK:
		self->fd[self->nr_fds++] = bp_open(&attr, 0, -1);
		ASSERT_LE(0, self->fd[0]);
		return;
	case KERNEL_WIDE:
		ASSERT_EQ(0, bp_write_file(TRACEFS "dynamic_events", "w:perf_kvm w@" VARIABLE ":4"));
		attr = (struct perf_event_attr) {
			.type = PERF_TYPE_TRACEPOINT,
			.size = sizeof(attr),
			.config = bp_read_number(TRACEFS EVENT "id"),
		};
		break;
	case CPUS:
		break;
	}
	for (int i = 0; i < self->cpus.nr; i++) {
		self->fd[self->nr_fds++] = bp_open(&attr, -1, self->cpus.cpu[i]);
		ASSERT_LE(0, self->fd[i]);
	}
}

FIXTURE_SETUP(kvm)
{
	int kvm = open("/dev/kvm", O_RDWR);
	char *memory;

	if (kvm < 0)
		SKIP(return, "needs /dev/kvm");
	BP_NEED_ROOT();
	BP_NEED_CONFIG(variant->kind == PROCESS ? BP_PROCESS : 0);
	BP_NEED(variant->kind != KERNEL_WIDE || bp_has_watch_events(), "needs watch events");
	self->cpus = bp_online_cpus();
	memory = create_guest(self, kvm);
	ASSERT_NE(NULL, memory);
	self->guest = (void *)(memory + GUEST_DATA);
	self->variable = mmap((void *)WATCHED, BP_PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ASSERT_EQ((void *)WATCHED, self->variable);
	watch(_metadata, self, variant->kind);
}

FIXTURE_TEARDOWN(kvm)
{
	bp_close(self->fd, self->nr_fds);
	if (variant->kind == KERNEL_WIDE)
		bp_write_file(TRACEFS "dynamic_events", "-:perf_kvm");
	bp_teardown(_metadata);
}

/* The host stores once to what its events watch. */
static void store(FIXTURE_DATA(kvm) *self, enum kind kind)
{
	if (kind == KERNEL_WIDE)
		bp_write_file(SYSCTL, "0");
	else
		bp_store(self->variable, 4);
	self->stores++;
}

static long long host_hits(FIXTURE_DATA(kvm) *self)
{
	long long sum = 0;

	for (int i = 0; i < self->nr_fds; i++)
		sum += bp_count(self->fd[i]);
	return sum;
}

/* Runs the guest to its next exit; returns the port to which it wrote, else -1. */
static int run(FIXTURE_DATA(kvm) *self)
{
	while (ioctl(self->vcpu, KVM_RUN, 0)) {
		if (errno != EINTR)
			return -1;
	}
	return self->run->exit_reason == KVM_EXIT_IO ? self->run->io.port : -1;
}

#define ROUNDS	200

/* Guest and host store in turn; with @migrate each time on another CPU. */
static void store_in_turn(struct __test_metadata *_metadata, FIXTURE_DATA(kvm) *self,
			  enum kind kind, bool migrate)
{
	int rounds = bp_rounds(ROUNDS);

	self->guest->rounds = rounds;
	for (int i = 0; i < rounds; i++) {
		ASSERT_EQ(PORT_STORED, run(self));
		store(self, kind);
		if (migrate)
			ASSERT_EQ(0, bp_pin(self->cpus.cpu[i % self->cpus.nr]));
		store(self, kind);
	}
	ASSERT_EQ(PORT_DONE, run(self));
	if (kind != NOTHING)
		EXPECT_EQ(self->stores, host_hits(self));
}

static void guest_watches(FIXTURE_DATA(kvm) *self)
{
	self->guest->dr0 = WATCHED;
	self->guest->dr7 = DR7_WATCH;
}

static void expect_guest_hits(struct __test_metadata *_metadata, FIXTURE_DATA(kvm) *self)
{
	EXPECT_EQ(self->guest->rounds, self->guest->traps);
	EXPECT_EQ(1, self->guest->dr6 & 0xf);
	EXPECT_EQ(WATCHED, self->guest->last_dr0);
}

TEST_F(kvm, guest_without_breakpoints_has_no_hits)
{
	store_in_turn(_metadata, self, variant->kind, false);
	EXPECT_EQ(0, self->guest->traps);
	EXPECT_EQ(0, self->guest->last_dr0);
}

TEST_F(kvm, guest_and_host_get_their_own_hits)
{
	guest_watches(self);
	store_in_turn(_metadata, self, variant->kind, false);
	expect_guest_hits(_metadata, self);
}

TEST_F(kvm, hits_stay_exact_when_the_virtual_cpu_migrates)
{
	BP_NEED_CPUS(self->cpus, 2);
	guest_watches(self);
	store_in_turn(_metadata, self, variant->kind, true);
	expect_guest_hits(_metadata, self);
}

/* Moves the main thread from CPU to CPU, also while it is in the guest. */
static void *move(void *data)
{
	FIXTURE_DATA(kvm) *self = data;

	for (int i = 0; !__atomic_load_n(&self->stop, __ATOMIC_RELAXED); i++)
		bp_pin_task(getpid(), self->cpus.cpu[i % self->cpus.nr]);
	return NULL;
}

TEST_F(kvm, hits_stay_exact_when_another_thread_moves_the_virtual_cpu)
{
	pthread_t mover;

	BP_NEED_CPUS(self->cpus, 2);
	guest_watches(self);
	ASSERT_EQ(0, pthread_create(&mover, NULL, move, self));
	store_in_turn(_metadata, self, variant->kind, false);
	__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
	pthread_join(mover, NULL);
	expect_guest_hits(_metadata, self);
}

/* A debugger of the guest takes its debug registers; those of the guest have no effect. */
TEST_F(kvm, debugger_of_the_guest_gets_its_hits)
{
	struct kvm_guest_debug debug = {
		.control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP,
		.arch.debugreg = { [0] = WATCHED, [7] = DR7_WATCH },
	};
	int rounds = bp_rounds(ROUNDS);

	guest_watches(self);
	self->guest->dr0 += 0x1000;
	self->guest->rounds = rounds;
	ASSERT_EQ(0, ioctl(self->vcpu, KVM_SET_GUEST_DEBUG, &debug));
	for (int i = 0; i < rounds; i++) {
		ASSERT_EQ(-1, run(self));
		ASSERT_EQ(KVM_EXIT_DEBUG, self->run->exit_reason);
		EXPECT_EQ(1, self->run->debug.arch.dr6 & 0xf);
		store(self, variant->kind);
		ASSERT_EQ(PORT_STORED, run(self));
		store(self, variant->kind);
	}
	ASSERT_EQ(PORT_DONE, run(self));
	EXPECT_EQ(0, self->guest->traps);
	EXPECT_EQ(WATCHED + 0x1000, self->guest->last_dr0);
	if (variant->kind != NOTHING)
		EXPECT_EQ(self->stores, host_hits(self));
}

/*
 * The guest watches when it exits, and its thread sleeps, exits or runs on: no register has
 * its address any more. A #DB that nobody expects would be sent as SIGTRAP.
 */
TEST_F(kvm, nothing_of_the_guest_is_left_in_the_host)
{
	pid_t child;

	guest_watches(self);
	self->guest->rounds = 2;
	ASSERT_EQ(PORT_STORED, run(self));
	child = bp_fork();
	ASSERT_LE(0, child);
	if (!child) {
		for (int i = 0; i < self->cpus.nr; i++) {
			bp_pin(self->cpus.cpu[i]);
			bp_store(self->variable, 4);
		}
		_exit(0);
	}
	EXPECT_EQ(0, bp_wait(child));
	if (variant->kind == CPUS)
		self->stores += self->cpus.nr;
	store(self, variant->kind);
	EXPECT_EQ(0, close(self->vcpu));
	store(self, variant->kind);
	if (variant->kind != NOTHING)
		EXPECT_EQ(self->stores, host_hits(self));
}

/* Its hits, in guest mode, are not hits of the host. */
TEST_F(kvm, test_of_kvm_passes)
{
	pid_t child;

	if (access(DEBUG_REGS, X_OK))
		SKIP(return, "needs " DEBUG_REGS);
	store(self, variant->kind);
	child = bp_fork();
	ASSERT_LE(0, child);
	if (!child) {
		execl(DEBUG_REGS, DEBUG_REGS, NULL);
		_exit(127);
	}
	EXPECT_EQ(0, bp_wait(child));
	store(self, variant->kind);
	if (variant->kind != NOTHING)
		EXPECT_EQ(self->stores, host_hits(self));
}

TEST_HARNESS_MAIN
