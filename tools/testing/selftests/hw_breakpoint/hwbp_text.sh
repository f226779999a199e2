#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Changes of kernel text that hwbp shows, and hits that it records as watch events.

. "$(dirname "$0")/hwbp_test.sh"

tracing=/sys/kernel/tracing
probed=__x64_sys_getpgid
commands=$tmp/commands

# Runs hwbp text with the commands on standard input, which change text. The commands
# run in the directory of tracefs.
text()
{
	cat >"$commands"
	run "$hwbp" text -o "$report" "$@" -- sh -c "cd $tracing && . $commands"
}

# If the kernel cannot record changes of text, sets $skip and fails. Tries this only
# once, because hwbp text reads all kernel symbols, which takes long.
can_listen()
{
	if [ -z "${tried_to_listen:-}" ]; then
		tried_to_listen=yes
		run "$hwbp" text -q -t 0.01
		if grep -q "does not record changes of its text" "$err"; then
			cannot_listen="this kernel refuses attr.text_poke"
		elif [ ! -e $tracing/kprobe_events ] || [ ! -e $tracing/set_ftrace_filter ]; then
			cannot_listen="this kernel has no kprobe events or no function tracer"
		fi
	fi
	skip=${cannot_listen:-}
	[ -z "$skip" ]
}

# Commands that set a kprobe in the probed function, not at the location that the
# function tracer uses, and remove it.
set_probe='for at in 5 9; do
	echo "p:hwbp_test '$probed'+$at" >kprobe_events 2>/dev/null && break
done
echo 1 >events/kprobes/hwbp_test/enable'
clear_probe='echo 0 >events/kprobes/hwbp_test/enable
echo >kprobe_events'

# The same for a call of the function tracer, in the functions $1
set_tracer()
{
	echo "echo '$1' >set_ftrace_filter; echo function >current_tracer"
}
clear_tracer='echo nop >current_tracer; echo >set_ftrace_filter'

# Lines of the report about changes, without what -a appends to the bytes, and about
# symbols that are registered and unregistered
changes()
{
	awk '$1 ~ /^[0-9]+\.[0-9]+$/ && / -> / { sub(/  [(].*[)]$/, ""); print }' "$report"
}

symbols()
{
	awk '$1 ~ /^[0-9]+\.[0-9]+$/ && / symbol (un)?registered /' "$report"
}

# The bytes of changes whose place matches $1
bytes_at()
{
	changes | awk -v place="$1" '$4 ~ place { print $(NF - 2), $(NF - 1), $NF }'
}

# No record is lost, times ascend, and the old bytes of each change are the new bytes of
# the previous change at the same place.
report_is_consistent()
{
	status_is 0
	! grep -q LOST "$report" || complain "$(grep LOST "$report")"
	changes | awk '
		$1 + 0 < last { print "# time goes back: " $0; exit 1 }
		{ last = $1 + 0 }
		length($NF) != 2 * $(NF - 3) && $NF != "gone" {
			print "# not that long: " $0
			exit 1
		}
		{
			page = substr($3, 1, 15)
			at = index("0123456789abcdef", substr($3, 16, 1)) * 256 +
			     index("0123456789abcdef", substr($3, 17, 1)) * 16 +
			     index("0123456789abcdef", substr($3, 18, 1))
		}
		$(NF - 2) != "new" {
			for (i = 0; 2 * i < length($(NF - 2)); i++) {
				byte = substr($(NF - 2), 2 * i + 1, 2)
				if ((page, at + i) in text && text[page, at + i] != byte) {
					print "# byte " i " was not there: " $0
					exit 1
				}
			}
		}
		{
			for (i = 0; 2 * i < length($NF); i++) {
				if ($NF == "gone")
					delete text[page, at + i]
				else
					text[page, at + i] = substr($NF, 2 * i + 1, 2)
			}
		}' || bad=1
}

test_json_of_text()
{
	can_listen || return
	text --json <<-END
	$(set_tracer $probed)
	$clear_tracer
	END
	status_is 0
	json_has "$report" ""
	json_has "$report" change time cpu address symbol old new old_insn new_insn
	equal "$(sed -n '/.*"symbol": "'$probed'"/s/.*"old_insn": "\(.*\)", "new_insn": "\(.*\)"}/\1 -> \2/p' \
		     "$report" | sed 's/call ftrace_[a-z]*/call HOOK/' | xargs)" \
	      "nop -> ftrace: call HOOK ftrace: call HOOK -> nop" "meaning"
	json_has "$report" symbol symbol changes
	json_has "$report" end changes new gone registered unregistered lost
	equal "$(grep -c '"change".*"symbol": "'$probed'".*"old": "[0-9a-f]\{10\}"' "$report")" 2 \
	      "changes of $probed"
}

test_text_of_a_probe()
{
	can_listen || return
	text -a <<-END
	$set_probe
	$clear_probe
	END
	report_is_consistent
	bytes_at "^$probed[+]" >"$tmp/bytes"
	head -n 1 "$tmp/bytes" | grep -q "^[0-9a-f][0-9a-f] -> cc$" ||
		complain "set: $(cat "$tmp/bytes")"
	equal "$(tail -n 1 "$tmp/bytes")" "$(awk 'NR == 1 { print $3, $2, $1 }' "$tmp/bytes")" \
	      "cleared"
	# The instruction at this place is executed from a copy.
	[ "$(changes | grep -c " new -> ")" -ge 1 ] || complain "no copy of the instruction"
}

test_text_columns_of_a_change()
{
	can_listen || return
	text -a <<-END
	$(set_tracer $probed)
	$clear_tracer
	END
	address=$(sed -n "s/^\([0-9a-f]*\) . $probed$/\1/p" /proc/kallsyms)
	changes | grep -F " $probed+" >"$tmp/lines"
	equal "$(wc -l <"$tmp/lines")" 2 "lines"
	awk -v address="$address" '
		$1 !~ /^[0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]$/ || $2 !~ /^[0-9]+$/ { exit 1 }
		substr($3, 1, 15) != "0x" substr(address, 1, 13) { exit 1 }
		$4 !~ /\+(0|0x[0-9a-f]+)$/ || $5 != 5 || $7 != "->" || NF != 8 { exit 1 }
		length($6) != 10 || length($8) != 10 { exit 1 }
		NR == 1 { set = $8 }
		NR == 2 && $6 != set { exit 1 }' "$tmp/lines" || complain "$(cat "$tmp/lines")"
	equal "$(counts | awk -v f=$probed '$3 == f { print $1 }')" 2 "count"
	equal "$(sed -n 's/^\([0-9]*\) changes in .*/\1/p' "$report")" \
	      "$(changes | grep -c -v -e " new -> " -e " gone$")" "sum"
}

test_text_as_instructions()
{
	can_listen || return
	text <<-END
	$set_probe
	$clear_probe
	$(set_tracer $probed)
	$clear_tracer
	echo 1 >events/sched/sched_waking/enable
	echo 0 >events/sched/sched_waking/enable
	END
	status_is 0
	grep " $probed[+]" "$report" |
		sed 's/.* \([^ ]* -> \)/\1/; s/ftrace_[a-z]*\( [[][a-z_]*[]]\)*/HOOK/' >"$tmp/lines"
	equal "$(grep -c "^[0-9a-f][0-9a-f] -> int3$" "$tmp/lines")" 1 "probe"
	equal "$(grep -c "^nop -> ftrace: call HOOK$" "$tmp/lines")" 1 "call"
	# The static key of a tracepoint
	grep -q " nop -> jmp [a-z_0-9.]*[+]0x[0-9a-f]*$\| jmp [a-z_0-9.]*[+]0x[0-9a-f]* -> nop$" \
		"$report" || complain "no jump: $(cat "$report")"
	text -a <<-END
	$(set_tracer $probed)
	$clear_tracer
	END
	hook='ftrace_[a-z]*\( [[][a-z_]*[]]\)*'
	grep -q " [0-9a-f]\{10\} -> e8[0-9a-f]\{8\}  (nop -> ftrace: call $hook)$" "$report" ||
		complain "$(cat "$report")"
}

test_text_of_many_functions()
{
	can_listen || return
	text -a <<-END
	$(set_tracer '*sys_get*')
	$set_probe
	$clear_probe
	$clear_tracer
	END
	report_is_consistent
	n_functions=$(grep -c "sys_get" $tracing/available_filter_functions)
	equal "$(bytes_at "sys_get.*[+]" | grep -c "^[0-9a-f]* -> e8")" "$n_functions" "set"
	equal "$(bytes_at "sys_get.*[+]" | grep -c "^e8[0-9a-f]* -> ")" "$n_functions" "cleared"
}

# hwbp is stopped meanwhile, so that it gets the records of all CPUs at once.
test_text_of_several_cpus_by_time()
{
	can_listen && has_two_cpus || return
	text -a <<-END
	kill -STOP \$PPID
	$(set_tracer $probed | sed 's/echo function.*//')
	for i in 1 2 3 4 5; do
		taskset 1 sh -c 'echo function >current_tracer'
		taskset 2 sh -c 'echo nop >current_tracer'
	done
	kill -CONT \$PPID
	$clear_tracer
	END
	report_is_consistent
	equal "$(changes | awk -v f="$probed+" 'index($4, f) == 1 { print $2 }' | xargs)" \
	      "0 1 0 1 0 1 0 1 0 1" "CPUs"
}

# A second instance of the tracer has a trampoline of its own.
test_text_that_is_new()
{
	can_listen || return
	for all in "" -a; do
		text $all <<-END
		mkdir instances/hwbp_test
		cd instances/hwbp_test
		$(set_tracer $probed)
		$clear_tracer
		cd ../..
		rmdir instances/hwbp_test
		END
		symbols | grep " ftrace_trampoline .* registered (out of line)$" |
			grep -v unregistered >"$tmp/symbol"
		equal "$(wc -l <"$tmp/symbol")" 1 "symbols of trampolines"
		changes | grep " ftrace_trampoline+0 .* new -> " >"$tmp/new"
		equal "$(awk '{ print $3, $5 }' "$tmp/new")" \
		      "$(awk '{ print $3, $5 }' "$tmp/symbol")" "address and length"
		new=$(awk '{ print $NF }' "$tmp/new")
		if [ -z "$all" ]; then
			equal "${#new} ${new#"${new%...}"}" "35 ..." "shown"
		else
			equal ${#new} "$(awk '{ print 2 * $5 }' "$tmp/new")" "shown"
		fi
	done
}

# Changes of the image of the BPF program: it is written when the program is loaded, and
# overwritten with int3 when the program is freed. The image of an earlier program may be
# freed late, too.
changes_of_image()
{
	page=$(symbols | awk '/_hwbp_nothing / { print substr($3, 1, 15); exit }')
	changes | awk -v page="$page" '
		substr($3, 1, 15) != page || $5 < 32 { next }
		$NF !~ /^c+[.]*$/ { image = $3; n++; next }
		$3 == image { n++ }
		END { print n + 0 }'
}

# The kernel frees a program some time after its symbol is unregistered. Only with
# --areas there is a record of this.
wait_until_freed()
{
	if [ -z "$1" ]; then
		sleep 2
		return
	fi
	for _ in $(seq 600); do
		[ "$(changes_of_image)" -ge 2 ] && return
		sleep 0.1
	done
}

# Runs hwbp text, with the option $1 if that is not empty, while a BPF program is loaded
# and freed.
text_of_bpf()
{
	watch_start text $1
	wait_for "^changes of kernel text" "$report" "$watcher"
	"$programs/load_bpf" </dev/null >/dev/null
	wait_for "_hwbp_nothing .* symbol unregistered " "$report" "$watcher"
	wait_until_freed "$1"
	kill -TERM $watcher
	watch_ended
}

test_text_symbols_of_bpf()
{
	can_listen || return
	run "$programs/load_bpf"
	if [ "$status" -ne 0 ]; then
		skip="this kernel has no BPF: $(cat "$out")"
		return
	fi
	if [ "$(cat /proc/sys/net/core/bpf_jit_enable)" = 0 ]; then
		skip="this kernel does not compile BPF"
		return
	fi
	once bpf text_of_bpf ""
	status_is 0
	symbols | grep " bpf_prog_[0-9a-f]*_hwbp_nothing " >"$tmp/lines"
	equal "$(sed 's/.* symbol //' "$tmp/lines" | xargs)" \
	      "registered (BPF) unregistered (BPF)" "symbols"
	equal "$(awk '{ print $3, $5 }' "$tmp/lines" | uniq | wc -l)" 1 \
	      "addresses and lengths"
	grep -q "; symbols: 1 registered, 1 unregistered$" "$report" || complain "$(cat "$report")"
}

# Loading a BPF program does not change instructions of existing text.
test_text_of_whole_areas()
{
	can_listen || return
	run "$programs/load_bpf"
	if [ "$status" -ne 0 ] || [ "$(cat /proc/sys/net/core/bpf_jit_enable)" = 0 ]; then
		skip="this kernel has no BPF, or does not compile it"
		return
	fi
	run "$hwbp" text -q -t 0.01 --areas
	if grep -q "no PMU kernel_text" "$err"; then
		skip="this kernel has no PMU kernel_text"
		return
	fi
	for areas in "" --areas; do
		once "bpf$areas" text_of_bpf "$areas"
		status_is 0
		equal "$(changes_of_image)" "$([ -z "$areas" ] && echo 0 || echo 2)" \
		      "changes of the image"
	done
	echo 0 >$paranoid
	run "$programs/as_nobody" "$hwbp" text --areas -- true
	refused "no permission to record areas of kernel text: requires CAP_PERFMON"
	echo "$old_paranoid" >$paranoid
}

test_text_counts_only_with_q()
{
	can_listen || return
	text -q <<-END
	$(set_tracer '*sys_get*')
	$clear_tracer
	END
	status_is 0
	equal "$(changes | wc -l)" 0 "lines of changes"
	equal "$(counts | wc -l)" 20 "lines of counts"
	grep -q "and [0-9]* more (-a shows them)" "$report" || complain "$(cat "$report")"
	text -q -a <<-END
	$(set_tracer '*sys_get*')
	$clear_tracer
	END
	equal "$(counts | awk '{ n += $1 } END { print n }')" \
	      "$(sed -n 's/^\([0-9]*\) changes in .*/\1/p' "$report")" "sum of the counts"
	equal "$(counts | wc -l)" \
	      "$(sed -n 's/.* changes in \([0-9]*\) symbols .*/\1/p' "$report")" "symbols"
}

# hwbp is stopped while there are more changes than fit into the buffer.
test_text_that_is_lost()
{
	can_listen || return
	text -b 1 <<-END
	kill -STOP \$PPID
	taskset 1 sh -c "echo function >current_tracer"
	taskset 1 sh -c "echo nop >current_tracer"
	kill -CONT \$PPID
	END
	status_is 0
	lost=$(sed -n 's/^\([0-9]*\) records are missing;.*/\1/p' "$report")
	[ "${lost:-0}" -ge 1000 ] || complain "lost: '$lost'"
	equal "$(sed -n 's/.*LOST: \([0-9]*\) record.*/\1/p' "$report" |
		 awk '{ n += $1 } END { print n + 0 }')" "$lost" "lines of losses"
}

test_text_until_the_end_as_it_comes()
{
	can_listen || return
	watch_start text
	wait_for "^changes of kernel text" "$report" "$watcher"
	(cd $tracing && eval "$(set_tracer $probed)")
	wait_for " $probed+.* -> ftrace: call" "$report" "$watcher"
	(cd $tracing && eval "$clear_tracer")
	kill -TERM $watcher
	watch_ended
	status_is 0
	grep -q "^[0-9]* changes in [0-9]* symbols in " "$report" || complain "$(cat "$report")"
}

test_text_time_limit_and_exit_status()
{
	can_listen || return
	# The command goes on until the note says so.
	run "$hwbp" text -t 0.2 -- sh -c 'for i in $(seq 600); do
			grep -q "continues to run" "$1" && exit 3
			sleep 0.1
		done' sh "$err"
	status_is 3
	grep -q "^hwbp: note: the report has ended, sh (pid [0-9]*) continues to run$" "$err" ||
		complain "'$(cat "$err")'"
	run "$hwbp" text -- sh -c 'kill -9 $$'
	status_is 137
	run "$hwbp" text -- nothere-in-path
	refused "cannot run .*No such file" 127
}

test_text_of_a_cpu_that_comes_back()
{
	can_listen || return
	cpu=/sys/devices/system/cpu/cpu1/online
	if [ ! -w $cpu ]; then
		skip="CPU 1 cannot go offline"
		return
	fi
	text <<-END
	echo 0 >$cpu
	END
	status_is 0
	[ ! -s "$err" ] || complain "'$(cat "$err")'"
	text <<-END
	echo 1 >$cpu
	END
	status_is 0
	equal "$(sed 's/: its changes since.*//' "$err")" \
	      "hwbp: note: CPU 1 came online during the report" "note"
	text <<-END
	echo 0 >$cpu
	echo 1 >$cpu
	END
	equal "$(grep -c "CPU 1 came online" "$err")" 1 "notes"
}

test_text_no_right()
{
	can_listen || return
	for level in 2 1; do
		echo $level >$paranoid
		run "$programs/as_nobody" "$hwbp" text -- true
		refused "CAP_PERFMON or a kernel.perf_event_paranoid of 0 or less (it is $level)"
	done
	echo 0 >$paranoid
	run "$programs/as_nobody" "$hwbp" text -- true
	status_is 0
	echo "$old_paranoid" >$paranoid
}

# On a kernel without watch events, sets $skip and fails.
can_trace()
{
	skip=
	grep -qs "\[r|w|rw\]@<addr>" $tracing/README || skip="this kernel has no watch events"
	[ -z "$skip" ]
}

test_trace_names_the_missing_feature()
{
	if ! can_trace; then
		skip=
		run "$hwbp" trace w@jiffies
		refused "no watch events: $tracing/README lacks .*CONFIG_WPROBE_EVENTS"
	fi
	run "$programs/as_nobody" "$hwbp" trace w@jiffies
	refused "no permission to use $tracing: this requires root"
	run unshare -m sh -c "umount -l $tracing; exec '$hwbp' trace w@jiffies"
	refused "tracefs is not mounted (mount -t tracefs none $tracing)"
	run unshare -m sh -c "umount -l /sys; exec '$hwbp' trace w@jiffies"
	refused "sysfs is not mounted"
	mkdir "$tmp/tracing"
	: >"$tmp/tracing/README"
	run unshare -m sh -c "mount --bind '$tmp/tracing' $tracing; exec '$hwbp' trace w@jiffies"
	refused "no dynamic trace events: $tracing/dynamic_events does not exist"
	: >"$tmp/tracing/dynamic_events"
	run unshare -m sh -c "mount --bind '$tmp/tracing' $tracing; exec '$hwbp' trace w@jiffies"
	refused "no watch events: $tracing/README lacks"
}

test_trace_of_a_variable()
{
	can_trace || return
	run "$hwbp" trace -n 3 -o "$report" w@jiffies
	status_is 0
	equal "$(grep -c " addr=0x" "$report")" 3 "hits"
	equal "$(grep -c "^3 hits$" "$report")" 1 "sum"
	run "$hwbp" trace --json -n 3 -o "$report" w@jiffies
	status_is 0
	json_has "$report" ""
	json_has "$report" hit time_us tid comm cpu address old new instruction
	equal "$(json_types "$report" | sed 's/[0-9]* instruction/N instruction/')" \
	      "1 end 3 hit N instruction" "lines"
	! grep -q hwbp $tracing/dynamic_events || complain "$(cat $tracing/dynamic_events)"
	run "$hwbp" trace w@nothere_
	refused "cannot watch w@nothere_: "
}

# The kernel remembers the name of one thread only, mostly of another one.
test_trace_names_the_thread()
{
	can_trace || return
	names=$(cat $tracing/saved_cmdlines_size)
	echo 1 >$tracing/saved_cmdlines_size
	sh -c 'while :; do kill -0 $$; done' &
	caller=$!
	run "$hwbp" trace -n 5 -o "$report" x@__x64_sys_kill
	status_is 0
	# Other programs of the machine may call kill(), too.
	hits=$(grep -c -- "-$caller " "$report")
	[ "$hits" -gt 0 ] || complain "no hit of sh: $(cat "$report")"
	equal "$(grep -c " sh-$caller " "$report")" "$hits" "hits of sh"
	kill $caller
	wait $caller 2>/dev/null
	echo "$names" >$tracing/saved_cmdlines_size
}

# Runs hwbp trace with the arguments after $1. It is refused, and lists exactly the holders
# $1, which are claims of $holder.
trace_names()
{
	names=$1
	shift
	run "$hwbp" trace "$@"
	refused_with_holders "on all CPUs, all 4 are claimed:"
	equal "$(sed "1d; \$d; s/^  perf $holder (hold): \(.*\), w of 8 bytes at 0x[0-9a-f]*$/\1/" \
		 "$err" | xargs)" "$names" "holders"
	! grep -q hwbp $tracing/dynamic_events || complain "$(cat $tracing/dynamic_events)"
	equal "$(ls $tracing/instances)" "" "instances"
}

# The claims of one CPU and one thread have all registers. The process of hold_an_event, and
# another thread of the holder, have one of them, which is no reason to refuse the event.
test_trace_names_the_holders()
{
	can_trace && can_list && has_two_cpus || return
	hold_start guaranteed:cpu@1 guaranteed:process guaranteed:thread guaranteed:thread@1 \
		   guaranteed:task
	thread=$(ls "/proc/$holder/task" | grep -vx "$holder")
	trace_names "CPU 1 process $holder (hold) thread $thread (hold)" w@jiffies
	hold_end
	hold_start guaranteed:cpu@1 guaranteed:cpu@1 guaranteed:task@1 guaranteed:task
	for how in "w@jiffies" "x@$probed" "--object kmem:kmem_cache_alloc:ptr w+16:8"; do
		trace_names "CPU 1 thread $holder (hold)" $how
	done
	run unshare -m sh -c "umount -l /sys/kernel/debug; exec '$hwbp' trace w@jiffies"
	refused_with_holders "on all CPUs: other breakpoints hold the 4 registers"
	grep -q "^  their owners are not known: .*debugfs is not mounted" "$err" ||
		complain "'$(cat "$err")'"
	hold_end
}

# Starts hwbp trace with the arguments; $traced is its process, and its event is enabled.
trace_start()
{
	watch_start trace "$@"
	for _ in $(seq 600); do
		traced=$(hwbp_pid)
		event=$tracing/instances/hwbp_$traced/events/hwbp/trace_$traced
		grep -qs 1 "$event/enable" && return
		sleep 0.1
	done
	complain "the event is not enabled: $(cat "$err")"
}

# There are $1 notes about the event of $traced.
notes_are()
{
	equal "$(grep -c "^hwbp: note: .* pid $traced was killed.* --clean' removes it$" "$err")" \
	      "$1" "notes"
}

# Runs hwbp trace with the arguments, kills it, and removes what it has left.
kill_and_clean()
{
	trace_start "$@"
	kill -9 $traced
	wait $watcher
	run "$hwbp" slots
	status_is 0
	grep -q "^  claim .* kernel hwbp/trace_$traced$" "$out" || complain "$(cat "$out")"
	notes_are 1
	run "$hwbp" trace -n 1 w@jiffies
	status_is 0
	notes_are 1
	run "$hwbp" trace --clean
	status_is 0
	equal "$(cat "$out")" "removed hwbp/trace_$traced" "output"
	! grep hwbp $tracing/dynamic_events || complain "events are left"
	equal "$(ls $tracing/instances)" "" "instances"
	run "$hwbp" slots
	! grep "hwbp/trace_" "$out" || complain "claims are left"
	notes_are 0
}

# The triggers hold the event, too. No object has that size.
test_trace_of_a_run_that_was_killed()
{
	can_trace && can_list || return
	kill_and_clean x@$probed
	kill_and_clean --object "kmem:kmem_cache_alloc:ptr if bytes_alloc == 7" \
		       --clear-on kmem:kmem_cache_free:ptr w+16:8
}

# ---- objects of a module -------------------------------------------------------

module=watched_objects
corrupt=/sys/module/$module/parameters/corrupt

can_trace_objects()
{
	can_trace || return
	file=/lib/modules/$(uname -r)/kernel/samples/hw_breakpoint/$module.ko
	[ -e $corrupt ] || insmod "$file" 2>/dev/null || skip="no module $module"
	[ -z "$skip" ]
}

# The file with types of these objects
can_read_types()
{
	types=$programs/objects.btf
	[ -e "$types" ] || skip="the compiler does not make BTF"
	[ -z "$skip" ]
}

# Traces with the arguments while the module makes 100 objects, all of which exist at the
# same time, writes the payload of each, and the state of number 50.
trace_objects()
{
	trace_start "$@"
	echo 100 >$corrupt
	kill -TERM $watcher
	watch_ended
	status_is 0
	! grep hwbp $tracing/dynamic_events || complain "events are left"
	equal "$(ls $tracing/instances)" "" "instances"
}

# Address, change and function of each hit; the address only if it is the first one
changes_of_hits()
{
	sed -n 's/.* addr=0x[0-9a-f]*  \(.*\)  \([a-z_]*\)+.*/\1 \2/p' "$report"
}

test_trace_of_objects()
{
	can_trace_objects || return
	few="object_alloc:ptr if id >= 49 && id <= 52"
	trace_objects --object "$few" --clear-on object_free:ptr --slots 3 w+8:8
	equal "$(changes_of_hits)" "0x0 -> 0x32 fill_payload
0x0 -> 0x33 fill_payload
0x0 -> 0x34 fill_payload" "hits"
	grep -q "^objects: slots: 0/3 set: 4 evicted: 1$" "$report" || complain "$(tail "$report")"
	grep -qx "3 hits" "$report" || complain "$(tail "$report")"
	# The memory is watched after the object was freed: its next user may write it.
	trace_objects --object "$module:$few" w+8:8
	equal "$(changes_of_hits | grep " fill_")" "0x0 -> 0x34 fill_payload" "hits with one slot"
	trace_objects --object "object_alloc:ptr if id == 50" --clear-on object_free w+16:8
	equal "$(changes_of_hits)" "0x0 -> 0x32 fill_long_payload" "hits"
}

test_trace_ranks_instructions()
{
	can_trace_objects || return
	trace_objects --json --object "object_alloc:ptr if id <= 1" --slots 2 rw:8
	json_has "$report" ""
	json_has "$report" hit time_us tid comm cpu address old new instruction
	json_has "$report" instruction hits instruction
	json_has "$report" end hits objects
	grep -q '"type": "end", "hits": [0-9]*, "objects": "slots: 2/2 set: 2' "$report" ||
		complain "$(tail -n 1 "$report")"
	hits=$(grep -c '"type": "hit"' "$report")
	equal "$(sed -n 's/.*"instruction", "hits": \([0-9]*\).*/\1/p' "$report" |
		 awk '{ n += $1; if (NR > 1 && $1 > last) n = -1000; last = $1 } END { print n }')" \
	      "$hits" "sum of sorted instructions"
	[ "$hits" -ge 2 ] || complain "$hits hits"
	trace_objects --object "object_alloc:ptr if id <= 1" --slots 2 rw:8
	equal "$(sed -n '/^ *HITS  PERCENT  INSTRUCTION$/,$p' "$report" |
		 awk 'NR > 1 { n += $1 } END { print n " hits" }')" \
	      "$(grep -x "[0-9]* hits" "$report")" "sum of the table"
}

test_trace_ends_an_object_in_time()
{
	can_trace_objects || return
	trace_start --object "object_alloc:ptr if id == 7" --timeout 10ms w+8:8
	echo 100 >$corrupt
	trigger=$tracing/instances/hwbp_$traced/events/$module/object_alloc/trigger
	for _ in $(seq 100); do
		grep -q "expired: 1" "$trigger" && break
		sleep 0.1
	done
	kill -TERM $watcher
	watch_ended
	grep -q "^objects: set: 1 expired: 1$" "$report" || complain "$(cat "$report")"
}

test_trace_prints_callers()
{
	can_trace_objects || return
	trace_start -g -n 1 --object "object_alloc:ptr if id == 50" w+16:8
	echo 100 >$corrupt
	watch_ended
	equal "$(sed -n 2,3p "$report" | xargs)" "by run_corrupt by param_attr_store" "callers"
	trace_objects -g --json --object "object_alloc:ptr if id == 50" --slots 2 w+8:8
	json_has "$report" hit callers
	grep -q '"fill_payload+.*"callers": [[]{"function": "fill_long_payload"}, {"function": "run_' \
		"$report" || complain "$(cat "$report")"
}

test_trace_of_a_member()
{
	can_trace_objects && can_read_types || return
	trace_objects --from "$types" --clear-on object_free:ptr \
		--object "object_alloc:(struct object)ptr->state if id == 50"
	equal "$(changes_of_hits)" "CALM -> ANGRY fill_long_payload" "hits"
	trace_objects --from "$types" --clear-on object_free:ptr \
		--object "object_alloc:(object,payload)ptr->state if id == 50" w+8
	equal "$(changes_of_hits)" "0x0 -> 0x32 fill_long_payload" "hits with an offset"
	trace_objects --from "$types" --json --object "object_alloc:(owner,object)ptr->object.other"
	equal "$(grep -c '"old": {"address": "0", "symbol": null}, "new": {"address": "0x63"' \
		"$report")" 1 "hits of the last object"
}

test_trace_names_what_it_does_not_know()
{
	can_trace_objects && can_read_types || return
	while IFS='|' read -r object place message; do
		run "$hwbp" trace --from "$types" --object "$object" $place
		refused "$message"
	done <<-'END'
	object_allok:ptr||there is no trace event 'object_allok:ptr'
	nothing:object_alloc:ptr||there is no trace event 'nothing:object_alloc'
	object_alloc||'object_alloc' is not EVENT:FIELD
	object_alloc:evict||'object_alloc:evict' is not EVENT:FIELD
	object_alloc:(objekt)ptr->id||the kernel's BTF has no structure 'objekt'
	object_alloc:(object)ptr->idd||the kernel's BTF has no member 'idd'
	object_alloc:(object)ptr->id.x||the kernel's BTF has no member 'x'
	object_alloc:(object)ptr->flag||'flag' is a bit-field: use an offset
	object_alloc:(object)ptr->name||append a length (1, 2, 4 or 8)
	object_alloc:(owner)ptr->object||the member has 40 bytes: append a length
	END
	run "$hwbp" trace --object "object_alloc:(object)ptr->id"
	[ -e /sys/kernel/btf ] || refused "requires the types of the kernel (CONFIG_DEBUG_INFO_BTF)"
	run "$hwbp" trace w@jiffies:3
	refused "invalid length '3': use 1, 2, 4 or 8"
	run "$hwbp" trace --object sched_switch:prev_comm --slots 9
	refused "cannot watch w: "
}

test_trace_of_a_window()
{
	can_trace_objects && can_read_types || return
	grep -q ":window" $tracing/README || skip="this kernel has no windows"
	[ -z "$skip" ] || return
	trace_objects --from "$types" --window fill_payload "arg0->payload"
	equal "$(changes_of_hits | sort | uniq | wc -l)" 100 "different hits"
	equal "$(changes_of_hits | grep -vc "^0 -> [0-9]* fill_payload$")" 1 "silent hits"
	grep -q "^objects: set: 100 cleared: 100$" "$report" || complain "$(tail "$report")"
	grep -qx "100 hits" "$report" || complain "$(tail "$report")"
	trace_objects --window fill_long_payload rw@arg0+16:8
	equal "$(changes_of_hits)" "0x0 -> 0x32 fill_long_payload" "hits"
	# Through a pointer: the object that it points at is NULL.
	trace_objects --from "$types" --window fill_payload "arg0->other->state"
	grep -q "^objects: missed: 100$" "$report" || complain "$(tail "$report")"
	kill_and_clean --window fill_payload arg0+8:8
	run "$hwbp" trace --window nothere_ arg0+8
	refused "cannot watch nothere_: "
	run "$hwbp" trace --from "$types" --window fill_payload "arg1->payload"
	refused "argument 1 of 'fill_payload' is no pointer"
	run "$hwbp" trace --window fill_payload w+8:8
	refused "with --window the place is"
}

# In another pid namespace no process has the number of the run.
test_trace_of_a_run_that_goes_on()
{
	can_trace || return
	trace_start x@$probed
	run "$hwbp" trace --clean
	status_is 0
	notes_are 0
	run unshare -p -f "$hwbp" trace --clean
	status_is 0
	grep -q "^hwbp: note: cannot remove .* hwbp/trace_$traced: .* busy$" "$err" ||
		complain "$(cat "$err")"
	kill -TERM $watcher
	watch_ended
	status_is 0
	! grep hwbp $tracing/dynamic_events || complain "events are left"
	run "$hwbp" trace --clean w@jiffies
	refused "--clean takes no place"
}

run_tests "$@"
