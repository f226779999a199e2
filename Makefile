# SPDX-License-Identifier: GPL-2.0
#
# A patch series on Linux 6.12: build it, boot it under QEMU, test it. "make help"
# lists the most used targets, "make help-all" all. Each makes everything that it needs.

.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

# A variable that make help-all does not list: BUILD_LOCK= is a lock file that serializes kernel
# builds of several checkouts.
JOBS ?= $(shell nproc)
VMS ?= 2
export LINUX JOBS BUILD_LOCK KEEP_TREE FULL ONLY REPEAT SEED APPEND CONFIG SEND
ifneq ($(filter command environment,$(firstword $(origin CC))),)
export CC
endif

# Names that an environment may have for something else
ifneq ($(origin BASE),command line)
unexport BASE
BASE :=
endif
ifneq ($(origin STACK),command line)
unexport STACK
STACK :=
endif
ifneq ($(BASE),)
ifneq ($(filter-out export dist tree test out/$(BASE)/bzImage,$(or $(MAKECMDGOALS),all)),)
$(error BASE= is for make export, make dist, make tree and make test)
endif
endif

BIN := patches/bin
QEMU := build/linux$(addprefix -,$(BASE))/tools/testing/selftests/hw_breakpoint/qemu
PLAIN := $(QEMU)/plain.config
DEBUG := $(PLAIN) $(QEMU)/debug.config
OURS := $(QEMU)/ours.config $(EXTRA_CONFIG)

ROOT_FS := build/root
TOUR_FS := build/root-tour

# End each step when its make ends, for whatever reason.
STEP := setpriv --pdeathsig TERM
WITH_QEMU = QEMU_SYSTEM=$$($(BIN)/emulator --print)

.PHONY: all debug base tree refresh check export root run shell test quick bench \
	bench-tools picture sizes baseline lint bisect arm64 matrix docs clean distclean help \
	help-all check-scripts dist deps-tour \
	deps-test out/bzImage out/debug/bzImage out/base/bzImage build/base-src deb test-bochs \
	test-arm64 baseline-arm64 out/arm64/Image out/arm64base/Image test-debian test-clients test-base

all: out/bzImage

# ---- kernels ------------------------------------------------------------------

tree:
	@$(if $(KEEP_TREE),,$(BIN)/tree)

refresh:
	@$(BIN)/refresh

out/bzImage: tree
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/plain $@ $(PLAIN) $(OURS)

# KASAN checks the accesses of the code of the series and of the code that holds, waits for
# or frees its objects: the other objects would only make the build and the machine slower.
# A name counts in all folders, so no name of a file of arch/x86/boot can be here.
KASAN_SOURCES = kernel/events/* kernel/trace/* kernel/debug/* kernel/bpf/core \
	kernel/bpf/syscall kernel/bpf/trampoline kernel/cgroup/cgroup $(addprefix kernel/,signal \
	fork exit pid cred ptrace task_work irq_work workqueue smp kthread kprobes jump_label \
	static_call_inline notifier tracepoint softirq stop_machine kexec_core user ucount) \
	$(addprefix kernel/locking/,mutex rwsem rtmutex_api percpu-rwsem spinlock) \
	$(addprefix kernel/,rcu/tree rcu/update rcu/srcutree time/hrtimer time/timer) \
	$(addprefix fs/,exec file_table file anon_inodes seq_file libfs debugfs/*) \
	$(addprefix lib/,rbtree llist list_sort refcount idr radix-tree xarray) \
	$(addprefix arch/x86/kernel/,hw_breakpoint* ptrace* kgdb* process* signal* traps nmi \
	alternative jump_label static_call module ftrace uprobes smpboot machine_kexec_64 \
	kprobes/* tests/*) arch/x86/net/* samples/hw_breakpoint/*
DEBUG_KMAKE = KASAN_SANITIZE=n $(addprefix KASAN_SANITIZE_,$(addsuffix .o=y,$(sort $(notdir \
	$(basename $(wildcard $(KASAN_SOURCES:%=build/linux/%.c)))))))

debug: out/debug/bzImage
out/debug/bzImage: tree
	@LOCALVERSION=-hwbp KMAKE="$(DEBUG_KMAKE)" $(STEP) $(BIN)/kernel build/linux build/obj/debug $@ $(DEBUG) $(OURS)

# With BTF, for the tests that need it: make test KERNEL=btf
.PHONY: deps-btf out/btf/bzImage
deps-btf:
	@$(BIN)/deps build btf

out/btf/bzImage: tree deps-btf
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/btf $@ $(PLAIN) $(QEMU)/btf.config $(OURS)

# With KVM, for the test of breakpoints beside those of guests, and with Yama and lockdown,
# for what hwbp says of them, and with ACPI, for suspend to RAM: make test KERNEL=kvm
.PHONY: out/kvm/bzImage
out/kvm/bzImage: tree
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/kvm $@ $(PLAIN) $(QEMU)/kvm.config $(OURS)

# The kernel that BASE= names
ifneq ($(BASE),)
.PHONY: out/$(BASE)/bzImage
out/$(BASE)/bzImage: tree
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux-$(BASE) build/obj/linux-$(BASE) $@ $(PLAIN) $(OURS) $(QEMU)/linux-$(BASE).config
endif

base: out/base/bzImage
out/base/bzImage: build/base-src
	@$(STEP) $(BIN)/kernel build/base-src build/obj/base-plain $@ $(PLAIN) $(EXTRA_CONFIG)

# A copy of the root commit of build/linux, to be built separately
build/base-src: tree
	@[ -e $@ ] || { rm -rf $@.new; mkdir $@.new; \
		git -C build/linux archive base | tar -xm -C $@.new; mv $@.new $@; }

# ---- virtual machines ---------------------------------------------------------

deps-tour:
	@$(BIN)/deps build tour
	@$(BIN)/emulator

deps-test:
	@$(BIN)/deps build tour test
	@$(BIN)/emulator

root: deps-test tree
	@$(STEP) bash -c '. $(BIN)/lib; $(QEMU)/mkroot $(if $(filter kvm,$(KERNELS)),--kvm) $(ROOT_FS) && note_spent root'

# The tour needs no test, so it does not need the libraries for programs of other ABIs.
run: deps-tour out/bzImage
	@$(STEP) $(QEMU)/mkroot --demo $(TOUR_FS)
	@$(WITH_QEMU) $(STEP) $(QEMU)/vm tour --kernel out/bzImage --root $(TOUR_FS) --out out/run

shell: out/bzImage root
	@$(WITH_QEMU) $(QEMU)/vm shell --kernel out/bzImage --root $(ROOT_FS) --out out/shell

# Run both kernels with 4 CPUs, the tests of the harness, machines with one CPU online,
# Bochs, and the comparison of costs; the last line is the sum. patches/bin/test chooses the suites.
# With ONLY= the default is one kernel and one number of CPUs.
ifneq ($(ONLY),)
KERNEL ?= plain
CPUS ?= 2
endif
IMAGE_plain := out/bzImage
IMAGE_debug := out/debug/bzImage
IMAGE_btf := out/btf/bzImage
IMAGE_kvm := out/kvm/bzImage
IMAGE_base := out/base/bzImage
KERNELS := $(or $(KERNEL),plain debug)
# The machine of the debug kernel takes longest, so it starts first: the shorter ones then
# keep both cores busy until the end.
TESTS := $(foreach k,$(filter debug,$(KERNELS)) $(filter-out debug,$(KERNELS)),\
	$(foreach c,$(or $(CPUS),4 $(if $(FULL),2)),$k-$c))
ifeq ($(ONLY)$(filter kvm,$(ACCEL)),)
TESTS += $(if $(filter plain,$(KERNELS)),plant-2 onecpu-2 plain-bochs)
# The costs of the base were recorded with this base and configuration.
TESTS += $(if $(filter plain,$(KERNELS)),$(if $(EXTRA_CONFIG)$(LINUX),,cost-2))
endif
.PHONY: forget-spent
forget-spent:
	@rm -rf build/spent

# The kernel that BASE= names runs the tests that are built for that of the series.
ifneq ($(BASE),)
test: forget-spent deps-test out/$(BASE)/bzImage
	@$(MAKE) BASE= LINUX= root
	@VMS=$(VMS) $(WITH_QEMU) $(STEP) $(BIN)/test out/test-$(BASE) $(BASE)-$(or $(CPUS),4)
else
test: forget-spent deps-test $(foreach k,$(KERNELS),$(IMAGE_$k)) root
	@$(if $(filter %-bochs,$(TESTS)),$(BIN)/deps bochs)
	@VMS=$(VMS) $(WITH_QEMU) $(STEP) $(BIN)/test out/test $(TESTS)
endif

# The suites whose subject is the processor, in another emulator
TESTS_BOCHS := $(foreach k,$(or $(KERNEL),plain),$k-bochs)
test-bochs: deps-test $(foreach k,$(or $(KERNEL),plain),$(IMAGE_$k)) root
	@$(BIN)/deps bochs
	@VMS=$(VMS) $(STEP) $(BIN)/test out/test-bochs $(TESTS_BOCHS)

# The generic code with the backend of another architecture, which has of the optional functions
# only that for steps. The emulator is QEMU; the root has only what compiles for that architecture.
CROSS := ARCH=arm64 CROSS_COMPILE=$(or $(CROSS_COMPILE),aarch64-linux-gnu-)
out/arm64/Image: tree
	@env -u CC $(CROSS) LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/arm64-plain \
		$@ $(QEMU)/arm64.config $(QEMU)/ours-arm64.config $(EXTRA_CONFIG)

out/arm64base/Image: build/base-src
	@env -u CC $(CROSS) $(STEP) $(BIN)/kernel build/base-src build/obj/arm64-base $@ \
		$(QEMU)/arm64.config $(EXTRA_CONFIG)

.PHONY: deps-arm64 root-arm64
deps-arm64:
	@$(BIN)/deps build arm64 test-arm64
	@$(BIN)/emulator arm64

root-arm64: deps-arm64 tree
	@$(STEP) $(QEMU)/mkroot --arch arm64 build/root-arm64

WITH_QEMU_ARM64 = QEMU_SYSTEM=$$($(BIN)/emulator --print arm64)
test-arm64: forget-spent deps-arm64 out/arm64/Image root-arm64
	@VMS=$(VMS) $(WITH_QEMU_ARM64) $(STEP) $(BIN)/test out/test-arm64 arm64-$(or $(CPUS),4)

# Record the results of the stock tests on the unpatched kernel of arm64.
baseline-arm64: deps-arm64 out/arm64base/Image root-arm64
	@VMS=$(VMS) $(WITH_QEMU_ARM64) $(STEP) $(BIN)/test out/baseline-arm64 arm64base-4 || true
	@$(QEMU)/verdict --baseline-write out/baseline-arm64/arm64base-4

# Before a commit: KUnit, and the suites that test the files that were changed.
quick:
	@$(MAKE) test KERNEL=plain CPUS=2 ONLY="$$($(BIN)/quick $(SINCE))"

# Record the results of the stock tests on the unpatched kernel, with which those on
# ours are compared.
baseline: deps-test out/base/bzImage root
	@$(BIN)/deps bochs
	@VMS=$(VMS) $(WITH_QEMU) $(BIN)/test out/baseline base-2 base-4 base-bochs || true
	@$(QEMU)/verdict --baseline-write out/baseline/base-2 out/baseline/base-4
	@$(QEMU)/verdict --baseline-write out/baseline/base-bochs

# The clock of this machine counts instructions: each run gives the same figures.
bench: out/bzImage out/base/bzImage root
	@$(WITH_QEMU) $(QEMU)/bench --base out/base/bzImage --ours out/bzImage --root $(ROOT_FS) \
		--out out/bench $(if $(DOC),--doc build/linux/Documentation/core-api) \
		$(if $(RECORD),--record $(QEMU)/bench.base)

# What a write to a watched variable costs under hwbp and the host's gdb, perf and bpftrace
bench-tools: out/bzImage root
	@$(WITH_QEMU) $(QEMU)/bench_tools --kernel out/bzImage --root $(ROOT_FS) \
		--out out/bench-tools $(if $(DOC),--doc README.md)

# The picture of README.md, from a run in the VM
picture: out/bzImage root
	@mkdir -p images
	@$(WITH_QEMU) $(BIN)/picture out/bzImage $(ROOT_FS) images/hwbp-watch.svg

# What threads, processes and events take that use no breakpoint
sizes: out/bzImage out/base/bzImage
	@$(BIN)/sizes build/base-src build/obj/base-plain build/linux build/obj/plain

# ---- packages -----------------------------------------------------------------

# Packages for users: the kernel with the configuration of Debian's.
deb: tree
	@$(BIN)/deps build deb
	@$(BIN)/deb kernel-config build/deb/config
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel --deb --from build/deb/config \
		$(if $(LSMOD),--lsmod $(LSMOD)) build/linux build/obj/deb out/deb/linux-image.deb \
		patches/debian/kernel.config $(EXTRA_CONFIG)
	@$(BIN)/deb hwbp out/deb

# The same packages, the kernel with a small configuration, installed in a Debian that
# boots in QEMU. With DEB=out/deb those of make deb.
DEBIAN := build/debian
DEBS := $(or $(DEB),$(DEBIAN))
test-debian: deps-test tree
	@$(BIN)/deps deb debian
ifeq ($(DEB),)
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel --deb build/linux build/obj/debian \
		$(DEBIAN)/linux-image.deb $(PLAIN) $(QEMU)/debian.config $(OURS)
	@$(BIN)/deb hwbp $(DEBIAN)
endif
	@$(STEP) $(QEMU)/mkdebian $(DEBIAN) $(DEBS)/linux-image.deb $(DEBS)/hwbp_*.deb
	@$(WITH_QEMU) $(STEP) $(QEMU)/../debian/run test $(DEBIAN) out/test-debian

# Compare what Debian's gdb, perf, strace and bpftrace print on both kernels.
test-clients: deps-test out/bzImage out/base/bzImage
	@$(BIN)/deps debian
	@$(STEP) $(QEMU)/mkdebian $(DEBIAN)
	@$(WITH_QEMU) $(STEP) $(QEMU)/../debian/run clients $(DEBIAN) out/test-clients \
		out/base/bzImage out/bzImage $(ONLY)

# hwbp works on the base kernel with what that offers, and says what is missing.
test-base: deps-test out/base/bzImage root
	@$(WITH_QEMU) $(STEP) $(QEMU)/vm test --base --only 'ours/hwbp_*' --out out/test-base \
		--kernel out/base/bzImage --root $(ROOT_FS)

# ---- the series ---------------------------------------------------------------

check:
	@$(BIN)/check

# Of the repository, which needs no build/linux
check-scripts: TESTS_DIR := $(if $(KEEP_TREE),build/linux/)tools/testing/selftests/hw_breakpoint
check-scripts:
	@printf '%s\n' $(TESTS_DIR)/model/check $(BIN)/series_test \
			$(TESTS_DIR)/{qemu/{verdict,watchdog,bench},clients/compare}_test | \
		xargs -P $(JOBS) -I{} sh -c \
			'said=$$({} 2>&1) || status=$$?; case $${status-0} in \
			0) echo "{}: passed" ;; 4) echo "{}: skipped" ;; \
			*) echo "$$said"; echo "{}: failed"; exit 1 ;; esac'

export:
	@$(BIN)/export --verify

# What a release has: the mails, and one patch for each base
dist:
	@$(BIN)/dist

lint: build/base-src
	@$(BIN)/deps build lint
	@$(BIN)/export
	@$(BIN)/lint

# With BOOT_ALL=1 the kernel of every commit is booted and tested, with ENDS=1 only the last
# one of each stack is built.
bisect: deps-test root
	@$(WITH_QEMU) $(STEP) $(BIN)/bisect $(if $(BOOT_ALL),--boot-all,$(if $(ENDS),--ends))

arm64: tree
	@$(BIN)/deps build arm64
	@$(BIN)/arm64

# Other configurations of x86
matrix: deps-test tree
	@$(WITH_QEMU) $(STEP) $(BIN)/matrix $(if $(COMPILE),--compile) $(ROWS)

# The pages that the series adds or changes
docs: tree
	@$(BIN)/deps docs
	@$(STEP) $(BIN)/docs out/docs

# ---- the rest -----------------------------------------------------------------

clean:
	rm -rf out build/obj build/root build/root-* build/*.build build/*.cpio build/deb build/debian

distclean:
	@. $(BIN)/lib; for tree in build/linux build/linux-*; do \
		[ ! -e $$tree/.git ] || saved_or_die $$tree; done
	rm -rf out build

help:
	@sed -n 's/^#\. \{0,1\}//p' Makefile

help-all:
	@sed -n 's/^#[.:] \{0,1\}//p' Makefile

#. make run       boot the patched kernel in QEMU: hwbp finds a bug in a program
#. make           build the patched kernel: out/bzImage, objects in build/obj/plain
#. make test      run all tests, on a plain and a debug kernel
#. make test ONLY=perf_read   one suite; 'perf_modify_*' or kgdb,perf_read several;
#.                ONLY=perf_read:GLOB some tests of a suite
#. make quick     KUnit and the suites of the files that were changed since the
#.                last commit, or SINCE=commit, on the plain kernel: some minutes
#. make shell     boot the kernel to a prompt; ctrl-a x ends it
#. make deb       Debian packages of the kernel, with Debian's configuration, and
#.                of hwbp, in out/deb: all its modules, or those that LSMOD= lists
#.
#. make tree      base + series + overlay -> build/linux, one commit per patch
#. make refresh   write the commits of build/linux back to patches/ and overlay
#. make check     are series, patches and overlay consistent?
#. make export    write the series as mails to out/series, a folder for each stack
#.
#. make help-all  all other targets, and the variables
#:
#: make debug     a kernel with lockdep, KASAN and more: out/debug/bzImage
#: make base      build the unpatched kernel
#: make root      stage the files of the machines in build/root
#: make test-bochs    only the tests of the debug registers, in Bochs, another emulator;
#:                ONLY=, KERNEL=, REPEAT= and SEED= as with make test
#: make test-arm64    the tests of the generic code, perf and ptrace on an arm64 kernel;
#:                ONLY=, CPUS=, REPEAT= and SEED= as with make test; baseline-arm64 records the
#:                results of the stock tests on the unpatched kernel
#: make bench     instructions and register writes per operation, next to the unpatched
#:                kernel; fails if one exceeds its limit; DOC=1 writes the page,
#:                RECORD=1 records the costs on the unpatched kernel for make test
#: make bench-tools   cost of a watched write under hwbp, gdb, perf and bpftrace, as far as
#:                they are installed; WRITES=n: number of writes (1000000); DOC=1 writes
#:                the table of README.md
#: make picture   draw a run of hwbp watch as images/hwbp-watch.svg, for README.md
#: make sizes     bytes of a thread, process and event, next to the unpatched kernel
#: make baseline  record which stock tests pass on the unpatched kernel
#: make deps-test     install what the tests need; each target does this, too
#:
#: make test-debian   install such packages, the kernel with a small configuration, in a
#:                Debian, boot it in QEMU, and run hwbp, gdb and perf there;
#:                DEB=out/deb: install those of make deb
#: make test-clients  compare gdb, perf, strace and bpftrace of Debian on both kernels;
#:                ONLY=five or ONLY="watch five": some of them
#: make test-base     run the tests of hwbp on the unpatched kernel
#:
#: make export STACK=fixes   the mails of one stack; BASE=7.3: for that kernel, of Debian's
#:                linux-source-7.3 or LINUX=; SEND=1: signed off by user.name and
#:                user.email of git's configuration
#: make test BASE=7.3   the tests on that kernel, plain, with 4 CPUs, with ONLY= 2; CPUS=, ONLY=
#:                and SEED= as with make test
#: make dist      out/dist: the mails, one combined patch, checksums; BASE= as with export
#: make lint      checkpatch, sparse, W=1 and kernel-doc for the files of the series,
#:                lines that the series takes back, the map of the selftests
#: make check-scripts   tests of the scripts, some minutes; the model, if spin is there
#: make docs      build the pages of the series with sphinx: out/docs/html
#: make bisect    build each commit, boot and test the last of each stack; ENDS=1: only these;
#:                BOOT_ALL=1: boot and test each; what passed is not repeated
#: make arm64     cross-build before and after the layer is replaced, and the end
#: make matrix    build, boot and test other x86 kernels, such as 32-bit, one CPU, PREEMPT_RT
#:                and KCSAN; compile with clang, for allmodconfig, and for arm, powerpc and
#:                sh; ends with a table;
#:                ROWS="i386 rt": some of them; COMPILE=1: only the files of the series
#: make clean     remove what was built; distclean: all of out and build
#:
#: LINUX=path         base tree or tarball (6.12.y, or that of BASE=)
#: EXTRA_CONFIG=file  additional fragment of kernel configuration
#: CONFIG=file LSMOD=file   make deb: another configuration; only the modules in
#:                    this output of lsmod
#: KEEP_TREE=1        build and test what is in build/linux, committed or not
#: JOBS=n VMS=n       jobs of a kernel build, virtual machines at a time
#: CC=compiler        compiler of the kernels; ACCEL=kvm: use KVM
#: KERNEL=plain|debug|btf|kvm CPUS=n REPEAT=k   make test: kernel, number of CPUs,
#:                    number of runs; btf: plain with BTF, needs pahole; kvm: with KVM,
#:                    Yama, lockdown and ACPI
#: APPEND=words       make test: more for the kernel command line; tests find BP_NAME=value in
#:                    their environment
#: SEED=n             make test: what is random in the machines (1; with FULL=1 any)
#: ENFORCE=           check, export, lint: a number above patches/limits is a warning
#: FULL=1             make test: all suites also on the debug kernel and with 2 CPUs
