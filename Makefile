# SPDX-License-Identifier: GPL-2.0
#
# A patch series on Linux 6.12, and all it takes to build it, to boot it under
# QEMU and to test it.  "make help" lists what there is to make; each target does
# everything that it needs by itself.

.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

# LINUX=         the base: a tree or a tarball; else the Debian package
# EXTRA_CONFIG=  one more fragment of kernel configuration
# CC=            the compiler of the kernels
# JOBS=          jobs of a kernel build
# VMS=           virtual machines that run at a time
# ONLY= KERNEL= CPUS= REPEAT= SEED=   of make test, see make help
# KEEP_TREE=1    build/linux is taken as it stands, uncommitted changes included, the
#                tests and this harness too
# FULL=1         all suites on the debug kernel with 2 and with 4 CPUs
# BUILD_LOCK=    a file on which kernel builds of several checkouts take turns
JOBS ?= $(shell nproc)
VMS ?= 2
export LINUX JOBS BUILD_LOCK KEEP_TREE FULL ONLY REPEAT SEED CLOCK
ifneq ($(filter command environment,$(firstword $(origin CC))),)
export CC
endif

BIN := patches/bin
QEMU := $(if $(KEEP_TREE),build/linux/)tools/testing/selftests/hw_breakpoint/qemu
PLAIN := $(QEMU)/plain.config
DEBUG := $(PLAIN) $(QEMU)/debug.config
OURS := $(QEMU)/ours.config $(EXTRA_CONFIG)

ROOT_FS := build/root
MKROOT := $(QEMU)/mkroot --linux build/linux --out $(ROOT_FS)

# A step ends with the make that started it, however that ends.
STEP := setpriv --pdeathsig TERM
WITH_QEMU = QEMU_SYSTEM=$$($(BIN)/emulator --print)

.PHONY: all debug base tree refresh check export root run shell test bench \
	baseline lint bisect arm64 clean distclean help deps-test out/bzImage \
	out/debug/bzImage out/base/bzImage build/base-src

all: out/bzImage

# ---- kernels ------------------------------------------------------------------

tree:
	@$(if $(KEEP_TREE),,$(BIN)/tree)

refresh:
	@$(BIN)/refresh

out/bzImage: tree
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/plain $@ $(PLAIN) $(OURS)

debug: out/debug/bzImage
out/debug/bzImage: tree
	@LOCALVERSION=-hwbp $(STEP) $(BIN)/kernel build/linux build/obj/debug $@ $(DEBUG) $(OURS)

base: out/base/bzImage
out/base/bzImage: build/base-src
	@$(STEP) $(BIN)/kernel build/base-src build/obj/base-plain $@ $(PLAIN) $(EXTRA_CONFIG)

# The same files as the root commit of build/linux, for a build of their own.
build/base-src: tree
	@[ -e $@ ] || { rm -rf $@.new; mkdir $@.new; \
		git -C build/linux archive base | tar -xm -C $@.new; mv $@.new $@; }

# ---- virtual machines ---------------------------------------------------------

deps-test:
	@$(BIN)/deps build test
	@$(BIN)/emulator

root: deps-test tree
	@$(STEP) $(MKROOT)

run: out/bzImage root
	@$(STEP) $(QEMU)/vm tour --kernel out/bzImage --root $(ROOT_FS) --out out/run

shell: out/bzImage root
	@$(QEMU)/vm shell --kernel out/bzImage --root $(ROOT_FS) --out out/shell

# Every kernel with 2 and with 4 CPUs, and machines that show that the same seed gives
# the same log and that planted faults are found; the last line sums them up.  The suites are
# shared out to the two debug machines, see patches/bin/test.  One suite runs with
# one kernel and one number of CPUs, if nothing else is said.
ifneq ($(ONLY),)
KERNEL ?= plain
CPUS ?= 2
endif
IMAGE_plain := out/bzImage
IMAGE_debug := out/debug/bzImage
KERNELS := $(or $(KERNEL),plain debug)
TESTS := $(foreach k,$(KERNELS),$(foreach c,$(or $(CPUS),2 4),$k-$c))
ifeq ($(ONLY)$(filter host,$(CLOCK))$(TCG_THREAD),)
TESTS += $(if $(filter plain,$(KERNELS)),repeat-2 plant-2)
endif
test: deps-test $(foreach k,$(KERNELS),$(IMAGE_$k)) root
	@VMS=$(VMS) $(WITH_QEMU) $(STEP) $(BIN)/test out/test $(TESTS)

# What the stock tests give on the unpatched kernel becomes the list that ours is
# held against.
baseline: deps-test out/base/bzImage root
	@VMS=$(VMS) $(WITH_QEMU) $(BIN)/test out/baseline base-2 base-4 || true
	@$(QEMU)/verdict --baseline-write out/baseline/base-2 out/baseline/base-4

# The clock of this machine counts instructions: the same figures on each run.
bench: out/bzImage out/base/bzImage root
	@$(WITH_QEMU) $(QEMU)/bench --base out/base/bzImage --ours out/bzImage --root $(ROOT_FS) --out out/bench

# ---- the series ---------------------------------------------------------------

check:
	@$(BIN)/check
	@for t in verdict_test watchdog_test; do $(QEMU)/$$t > /dev/null || \
		{ echo "check: $(QEMU)/$$t fails" >&2; exit 1; }; done

export:
	@$(BIN)/export --verify out/series

lint: build/base-src
	@$(BIN)/deps build lint
	@$(BIN)/export out/series
	@$(BIN)/lint

# BOOT_ALL=1 builds every commit whole and boots it.
bisect: deps-test root
	@$(BIN)/bisect $(if $(BOOT_ALL),--boot-all)

arm64: tree
	@$(BIN)/deps build arm64
	@$(BIN)/arm64

# ---- the rest -----------------------------------------------------------------

clean:
	rm -rf out build/obj build/root build/root.build build/root.cpio

distclean:
	@! [ -e build/linux ] || { . $(BIN)/lib; saved_or_die build/linux; }
	rm -rf out build

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

#: make           the patched kernel, out/bzImage; objects in build/obj/plain
#: make debug     the same with lockdep, KASAN and more, out/debug/bzImage
#: make base      the unpatched kernel, out/base/bzImage
#: make run       boot it: hwbp finds who corrupts a counter
#: make shell     a prompt in the virtual machine
#: make test      all tests, both kernels, 2 and 4 CPUs; ends with the verdict
#: make test ONLY=perf_modify     one suite; ONLY=perf_modify:GLOB some of its tests
#: make bench     what operations cost, beside the unpatched kernel, in instructions
#: make baseline  what stock tests pass on the unpatched kernel, as data
#:
#: make tree      base + series + overlay -> build/linux, one commit a patch
#: make refresh   the commits of build/linux -> patches/ and overlay
#: make check     do series, patches and overlay agree?
#: make export    the series as mails, out/series, tried with git am
#: make lint      checkpatch, sparse, W=1 and kernel-doc on what is ours
#: make bisect    each commit builds, the ends boot; BOOT_ALL=1: each boots
#: make arm64     cross-build where the layer goes, comes and is complete
#: make clean     forget what was built; distclean: the kernel tree, too
#:
#: LINUX=path         stand on this tree or tarball (6.12.y)
#: EXTRA_CONFIG=file  one more fragment of kernel configuration
#: KEEP_TREE=1        build and test what stands in build/linux, committed or not
#: JOBS=n VMS=n       jobs of a kernel build, virtual machines at a time
#: CC=compiler        of the kernels; ACCEL=kvm: not emulated, but by KVM
#: KERNEL=plain|debug CPUS=n REPEAT=k   make test: on that kernel, with so many
#:                    CPUs, so many times
#: CLOCK=instructions|host   make test: what the clock of the machines counts
#: SEED=n             make test: the same machines as in the run that printed it
#: FULL=1             make test: all suites with 2 and with 4 CPUs on the debug
#:                    kernel, too, which then takes longer
#: TCG_THREAD=multi   a host thread for each emulated CPU in make test; the clock
#:                    is then that of the host, and the verdict depends on its load
