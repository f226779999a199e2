#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What hwbp says about requests that the kernel refuses: each test makes one reason true.

. "$(dirname "$0")/hwbp_test.sh"

counter="counter -- $programs/tick"

# Starts the program guarded; $guarded is the process or thread that may not be watched,
# $started the program.
guarded_start()
{
	start_on_fifo guarded "$@"
	exec 6>"$tmp/guarded.fifo"
	wait_for ready "$tmp/guarded" "$started"
	guarded=$(sed -n 's/^ready //p' "$tmp/guarded")
}

guarded_end()
{
	exec 6>&-
	wait "$started"
}

# Runs the command in a mount namespace after the shell command $1.
with_mounts()
{
	mounts=$1
	shift
	run unshare -m sh -c "$mounts"' && exec "$@"' sh "$@"
}

test_process_of_another_user()
{
	threads_start 5
	run "$programs/as_nobody" "$hwbp" stat total -p "$threads"
	refused "no permission to read the maps of process $threads: it belongs to user 0"
	run "$programs/as_nobody" "$hwbp" watch counter -p 1
	refused "of process 1: it belongs to user 0"
	threads_finish 20
}

test_thread_of_another_user()
{
	guarded_start "$programs/guarded" thread
	run "$programs/as_nobody" "$hwbp" stat guarded -p "$started"
	refused "no permission to trace process $started: its thread $guarded belongs to user 0"
	guarded_end
}

test_process_with_capabilities()
{
	guarded_start "$programs/guarded" caps
	run "$programs/as_nobody" "$hwbp" stat guarded -p "$started"
	refused "process $started: it has capabilities that hwbp lacks"
	guarded_end
}

test_process_that_is_not_dumpable()
{
	guarded_start "$programs/as_nobody" "$programs/guarded" dumpable
	run "$programs/as_nobody" "$hwbp" stat guarded -p "$started"
	refused "process $started: it is not dumpable (PR_SET_DUMPABLE, "
	guarded_end
}

test_thread_that_is_traced()
{
	guarded_start "$programs/guarded" traced
	run "$hwbp" stat per_thread -p "$guarded"
	refused "cannot stop thread $guarded: process $started (guarded) traces it already"
	run "$hwbp" stat guarded -t 0.01 -p "$guarded"
	status_is 0
	guarded_end
}

test_zombie()
{
	guarded_start "$programs/guarded" zombie
	run "$hwbp" stat guarded -p "$guarded"
	refused "process $guarded has exited: .* zombie for which process $started (guarded)"
	guarded_end
}

# A filter of system calls stands for the module, which this kernel does not have.
test_ptrace_refused_by_yama()
{
	mkdir -p "$tmp/kernel/yama"
	echo 2 >"$tmp/kernel/perf_event_paranoid"
	for scope in "0|a seccomp filter, as in many containers, refuses it" \
		     "1|ptrace_scope is 1, which allows that to its parent" \
		     "2|ptrace_scope is 2, which allows that to processes with CAP_SYS_PTRACE" \
		     "3|ptrace_scope is 3, which allows that to nobody"; do
		echo "${scope%|*}" >"$tmp/kernel/yama/ptrace_scope"
		with_mounts "mount --bind '$tmp/kernel' /proc/sys/kernel" \
			    "$programs/refuse" ptrace 1 "$hwbp" stat $counter
		refused "no permission to trace process [0-9]*: .*${scope#*|}"
	done
}

# Yama itself, of the kernel of KERNEL=kvm: only a thread-local variable of a running program
# requires to stop it.
test_ptrace_refused_by_yama_of_the_kernel()
{
	scope=/proc/sys/kernel/yama/ptrace_scope
	skip=
	[ -e $scope ] || { skip="this kernel has no Yama"; return; }
	old=$(cat $scope)
	guarded_start "$programs/as_nobody" "$programs/guarded" zombie
	for level in 0 1; do
		echo $level >$scope
		run "$programs/as_nobody" "$hwbp" stat $counter
		status_is 0
		run "$programs/as_nobody" "$hwbp" stat guarded -t 0.01 -p "$started"
		status_is 0
	done
	run "$programs/as_nobody" "$hwbp" stat per_thread -t 0.01 -p "$started"
	refused "trace process $started: kernel.yama.ptrace_scope is 1, .* to its parent and"
	echo 2 >$scope
	run "$programs/as_nobody" "$hwbp" stat $counter
	refused "kernel.yama.ptrace_scope is 2, which allows that to processes with CAP_SYS_PTRACE"
	run "$hwbp" stat per_thread -t 0.01 -p "$started"
	status_is 0
	echo "$old" >$scope
	guarded_end
}

test_kernel_address_without_privileges()
{
	echo 1 >$paranoid
	run "$programs/as_nobody" "$hwbp" stat -k 0xffffffff82000000:8 -- "$programs/tick"
	refused "no permission to watch a kernel address: requires CAP_SYS_ADMIN"
	echo "$old_paranoid" >$paranoid
}

# Each number of files is enough, or the message says so. With the smallest ones already the
# program cannot be started.
test_limit_of_open_files()
{
	: >"$tmp/messages"
	for files in $(seq 6 2 28) 100; do
		run sh -c "ulimit -n $files"'; exec "$@"' sh "$hwbp" watch -n 1 many.a many.b \
			many.c many.d -- "$programs/many" 1
		[ "$status" -ne 125 ] || grep -i "too many open files" "$err" >>"$tmp/messages" ||
			complain "message '$(cat "$err")'"
	done
	status_is 0
	for needs in "each CPU" "each place, thread and CPU"; do
		grep -q "too many open files: $needs needs one (ulimit -n is [0-9]*)" \
			"$tmp/messages" || complain "$needs: $(cat "$tmp/messages")"
	done
}

test_limit_of_locked_memory()
{
	mlock=/proc/sys/kernel/perf_event_mlock_kb
	old=$(cat $mlock)
	echo 0 >$mlock
	run sh -c 'ulimit -l 0; exec "$@"' sh "$programs/as_nobody" "$hwbp" watch $counter
	refused "cannot map a ring buffer: kernel.perf_event_mlock_kb is 0 and ulimit -l, in bytes, is 0"
	echo "$old" >$mlock
}

# An object takes several registers, some of which are left.
test_object_of_several_registers()
{
	can_list && can_multiplex || return
	[ -e $pmu/caps/max_length ] || return
	hold_start guaranteed:task guaranteed:task
	run "$hwbp" stat held:16 -t 0.01 -p "$holder"
	status_is 0
	run "$hwbp" stat held:24 -p "$holder"
	refused_with_holders_of_object 3 2
	hold_end
	run "$hwbp" stat counter+1:16 -- "$programs/tick"
	refused "counter+1:16: the bytes from 0x[0-9a-f]* on need 5 debug registers, .* a CPU has 4"
}

# $1 registers are needed, and $2 are claimed.
refused_with_holders_of_object()
{
	status_is 125
	grep -q "$1 debug registers are needed and not available in process $holder, of 4 these are" \
		"$err" || complain "message '$(cat "$err")'"
	equal "$(grep -c "^  perf $holder (hold): thread $holder (hold), w of 8 bytes" "$err")" 1 \
	      "lines of holders"
	grep -q "^  close one of these" "$err" || complain "no advice: '$(cat "$err")'"
}

test_program_of_32_bits_without_its_loader()
{
	[ -e "$programs/shelf_32" ] || { skip="no 32-bit programs"; return; }
	sed 's,/lib/ld-linux.so.2,/lib/nowhere-32.so,' "$programs/shelf_32" >"$tmp/shelf_32"
	chmod 755 "$tmp/shelf_32"
	run "$hwbp" stat counter -- "$tmp/shelf_32"
	refused "'$tmp/shelf_32', a 32-bit program: its interpreter /lib/nowhere-32.so does not" 127
}

test_perf_events_refused_where_paranoid_allows_them()
{
	run "$programs/refuse" perf_event_open 1 "$hwbp" watch $counter
	refused "no permission to use perf events: a seccomp filter refuses perf_event_open"
}

test_function_without_x()
{
	for place in main tick_write tick_write+1; do
		run "$hwbp" stat $place -- "$programs/tick"
		refused "is a function: watch its execution with -x"
	done
}

# Lockdown cannot be lifted again, so it has to be asked for, and this test is the last one:
# make test ONLY=hwbp_refusal KERNEL=kvm APPEND=BP_LOCKDOWN=1
test_lockdown_of_the_kernel()
{
	security=/sys/kernel/security
	skip=
	[ -e $security/lockdown ] || mount -t securityfs none $security 2>/dev/null
	[ -e $security/lockdown ] || { skip="this kernel has no lockdown"; return; }
	[ -n "${BP_LOCKDOWN:-}" ] || { skip="lockdown is not asked for"; return; }
	for level in integrity confidentiality; do
		echo $level >$security/lockdown
		run "$hwbp" stat $counter
		status_is 0
		run "$hwbp" watch -k filled -o "$report" -- "$programs/tick"
		status_is 0
		hits_are 1
		run "$hwbp" text -q -- true
		status_is 0
		run "$hwbp" slots
		status_is 0
	done
	run "$hwbp" trace -t 0.1 w@jiffies
	refused "no permission to use /sys/kernel/tracing: lockdown (confidentiality) refuses it"
}

run_tests "$@"
