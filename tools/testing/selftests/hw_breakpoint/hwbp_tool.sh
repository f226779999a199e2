#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The command hwbp, on programs whose accesses are known exactly.
#
# Wants hwbp in PATH, or its path in $HWBP, and its test programs in one of the
# directories below, or in $HWBP_TESTS. Runs as root: some tests give rights up.
# Arguments are names of tests to run instead of all.

set -u

hwbp=${HWBP:-hwbp}
programs=
for dir in "${HWBP_TESTS:-}" /tests/hwbp /usr/share/hwbp/tests; do
	[ -z "$programs" ] && [ -n "$dir" ] && [ -x "$dir/tick" ] && programs=$dir
done
tmp=$(mktemp -d)
chmod 755 "$tmp"
out=$tmp/out
err=$tmp/err
report=$tmp/report
paranoid=/proc/sys/kernel/perf_event_paranoid
old_paranoid=$(cat $paranoid)

clean_up()
{
	echo "$old_paranoid" >$paranoid
	exec 8>&-
	rm -rf "$tmp"
}
trap clean_up EXIT

# The kernel patches its scheduler when the first perf event is opened and when
# the last one is closed. An event that stays open all the time saves that for
# each command, and spares emulators that now and then fail at patched code.
hold_an_event()
{
	mkfifo "$tmp/hold"
	"$hwbp" stat total -- "$programs/threads" 1 <"$tmp/hold" >"$tmp/held" 2>&1 &
	exec 8>"$tmp/hold"
	wait_for ready "$tmp/held"
}

# ---- what the tests are made of ----------------------------------------------

# Every check that fails says why and fails the test that it stands in.
bad=0

complain()
{
	bad=1
	echo "# $*"
}

# Run a command, keep what it says and its status. The time limits are against
# a hang only: the clock of an emulator that gets little time may run fast.
run()
{
	status=0
	: >"$report"
	timeout 900 "$@" >"$out" 2>"$err" </dev/null || status=$?
}

watch()
{
	run "$hwbp" watch -o "$report" "$@"
}

status_is()
{
	[ "$status" -eq "$1" ] && return
	complain "exit status $status instead of $1: $(cat "$err")"
}

equal()
{
	[ "$1" = "$2" ] || complain "$3: '$1' instead of '$2'"
}

# Lines of the report: hits have a time in the first column, counts a percentage
# in the second.
hits()
{
	awk '$1 ~ /^[0-9]+\.[0-9]+$/' "$report"
}

counts()
{
	awk '$2 ~ /^[0-9.]+%$/' "$report"
}

# The same in the background, once the report is begun; $watcher is its process.
watch_behind()
{
	: >"$report"
	timeout 900 "$hwbp" "$@" -o "$report" >"$out" 2>"$err" &
	watcher=$!
	wait_for " of .*(pid " "$report"
}

watch_ended()
{
	status=0
	wait "$watcher" || status=$?
}

# $1 hits at all, as lines and as the sum of the counts.
hits_are()
{
	equal "$(hits | wc -l)" "$1" "lines of hits"
	equal "$(counts | awk '{ n += $1 } END { print n + 0 }')" "$1" "sum of the counts"
}

# $1 hits in the function $2.
hits_in()
{
	equal "$(counts | awk -v f="$2+" 'index($3, f) == 1 { n += $1 } END { print n + 0 }')" \
	      "$1" "hits in $2"
}

# The command failed with one line that matches $1, and ran nothing.
refused()
{
	status_is "${2:-125}"
	equal "$(wc -l <"$err")" 1 "lines of the message"
	grep -q "^hwbp: .*$1" "$err" || complain "message '$(cat "$err")', not '$1'"
	[ ! -s "$out" ] || complain "output '$(cat "$out")' of what should not have run"
}

stat_count()
{
	awk '/ hits?; threads ran/ { print $1 }' "$1"
}

wait_for()
{
	for _ in $(seq 3000); do
		grep -q "$1" "$2" 2>/dev/null && return
		sleep 0.1
	done
	complain "'$1' did not appear in $2"
}

# A program that waits for a line; $threads is its process.
program_start()
{
	rm -f "$tmp/fifo"
	mkfifo "$tmp/fifo"
	: >"$tmp/threads"
	"$programs/$1" "$2" <"$tmp/fifo" >"$tmp/threads" 2>&1 &
	threads=$!
	exec 9>"$tmp/fifo"
	wait_for ready "$tmp/threads"
}

program_finish()
{
	echo go >&9
	exec 9>&-
	threads_status=0
	wait "$threads" || threads_status=$?
	equal "$threads_status" 0 "status of the program"
}

threads_start()
{
	program_start threads "$1"
}

threads_finish()
{
	program_finish
	equal "$(tail -n 1 "$tmp/threads")" "threads: total $1" "output of the program"
}

# ---- the tests -----------------------------------------------------------------

test_position_independent_program_writers()
{
	watch -w counter -- "$programs/tick" 5
	status_is 0
	hits_are 5
	hits_in 5 tick_write
	line=$(sed -n 's/.*written at //p' "$out")
	equal "$(counts | awk '{ sub(".*/", "", $NF); print $NF }')" "$line" "source line"
}

test_fixed_address_program_writers()
{
	watch -w counter -- "$programs/tick_static" 5
	status_is 0
	hits_are 5
	hits_in 5 tick_write
}

test_columns_of_a_hit()
{
	watch counter -- "$programs/tick" 2
	pid=$(sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$report")
	hits | awk -v pid="$pid" '
		$1 !~ /^[0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]$/ || $1 + 0 < last { exit 1 }
		{ last = $1 + 0 }
		$2 != "tick" || $3 != pid || $4 !~ /^[0-9]+$/ { exit 1 }
		$5 !~ /^tick_write\+0x[0-9a-f]+$/ || $6 !~ /tick\.c:[0-9]+$/ { exit 1 }' ||
		complain "$(hits)"
}

test_reads_are_seen_with_rw()
{
	watch -rw counter -- "$programs/tick" 5
	status_is 0
	hits_are 15
	hits_in 5 tick_write
	hits_in 10 tick_read
	equal "$(counts | awk '{ print $2 }' | xargs)" "66.67% 33.33%" "percentages"
}

test_calls_are_counted_with_x()
{
	watch -x tick_read -- "$programs/tick" 5
	status_is 0
	hits_are 10
	equal "$(counts | awk '{ print $3 }')" tick_read+0 "place"
}

test_options_in_any_order()
{
	run "$hwbp" watch "-o$report" -- "$programs/tick" 4
	refused "what is to be watched"
	run "$hwbp" watch "-o$report" counter:8 -n 2 -w -- "$programs/tick" -w -n
	status_is 0
	hits_are 0
	run "$hwbp" watch -n2 counter -o "$report" -- "$programs/tick" 4
	status_is 0
	hits_are 2
}

test_static_variable_and_offset()
{
	watch hidden -- "$programs/tick"
	hits_in 1 tick_hidden
	watch bytes+8:8 -- "$programs/tick"
	hits_in 8 tick_repeat
}

test_string_instruction()
{
	watch -x tick_string -- "$programs/tick"
	place=$(counts | awk '{ print $3 }')
	watch bytes+8:8 -- "$programs/tick"
	equal "$(counts | grep tick_repeat | awk '{ print $1, $3 }')" "8 $place" "hits and place"
}

test_member_of_a_structure()
{
	watch 'record.pair[2].right' -- "$programs/tick"
	hits_are 1
	hits_in 1 tick_record
	watch 'record.byte[1]' -- "$programs/tick"
	hits_are 1
	watch record.nothing -- "$programs/tick"
	refused "no member 'nothing'"
	watch 'record.pair[3].left' -- "$programs/tick"
	refused "the array has 3 elements"
	watch record.flag -- "$programs/tick"
	refused "bit field"
}

test_variable_of_a_library()
{
	watch shelf_level -- "$programs/shelf"
	status_is 0
	hits_are 4
	equal "$(counts | awk '{ print $4 }')" "[libshelf.so]" "library"
	# The linker has put a copy of it into the program.
	run "$hwbp" stat -o "$report" -rw stdout -- "$programs/tick_static"
	status_is 0
	[ "$(stat_count "$report")" -ge 1 ] || complain "stdout was not read"
}

test_static_variables_of_one_name()
{
	watch twin -- "$programs/twins"
	refused "ambiguous.*twins.c:twin.*twins_b.c:twin"
	watch twins_b.c:twin -- "$programs/twins"
	status_is 0
	hits_are 2
	hits_in 2 twin_next
}

test_libraries_that_come_and_go()
{
	watch plugged -- "$programs/plugins"
	status_is 0
	hits_are 3
	equal "$(hits | awk '{ print $5, $6 }' | sed 's/+0x[0-9a-f]*//' | xargs)" \
	      "plug_a [libplug_a.so] plug_b [libplug_b.so] plug_a [libplug_a.so]" "places"
}

test_inlined_function()
{
	watch bytes+8:8 -- "$programs/tick_inline"
	status_is 0
	hits_in 9 main
	equal "$(counts | sed -n 's/.*(inlined \(.*\)).*/\1/p' | xargs)" \
	      "tick_repeat tick_copy" "inlined functions"
}

test_callers_with_g()
{
	watch -g shelf_level -n 1 -- "$programs/shelf"
	equal "$(awk '$1 == "by" { print $2; exit }' "$report" | sed 's/+.*//')" main "caller"
}

test_address_and_length()
{
	watch counter -- "$programs/tick_static" 1
	address=$(sed -n 's/.* at \(0x[0-9a-f]*\),.*/\1/p' "$report")
	watch "$address:4" -- "$programs/tick_static" 6
	status_is 0
	hits_are 6
	watch "$address" -- "$programs/tick_static" 6
	refused "no known length"
}

test_threads_of_a_launched_program()
{
	echo go >"$tmp/go"
	status=0
	timeout 900 "$hwbp" watch -o "$report" total -- "$programs/threads" 25 \
		<"$tmp/go" >"$out" 2>"$err" || status=$?
	status_is 0
	hits_are 100
	hits_in 100 bump
	equal "$(hits | awk '{ print $2 }' | sort | uniq -c | awk '{ print $1 $2 }' | xargs)" \
	      "25runner_0 25runner_1 25runner_2 25runner_3" "hits of each thread"
}

test_attach_sees_old_and_new_threads()
{
	threads_start 25
	watch_behind watch total -p $threads
	threads_finish 100
	watch_ended
	status_is 0
	hits_are 100
	equal "$(hits | awk '{ print $2 }' | sort | uniq -c | awk '{ print $1 $2 }' | xargs)" \
	      "25runner_0 25runner_1 25runner_2 25runner_3" "hits of each thread"
}

test_hits_are_shown_as_they_come()
{
	threads_start 5
	watch_behind watch spare:8 -p $threads
	echo tap >&9
	wait_for "tap+0x" "$report"
	equal "$(hits | wc -l)" 1 "lines of hits"
	threads_finish 20
	watch_ended
}

test_attach_while_threads_come_and_go()
{
	program_start churn 300
	watch_behind watch written -p $threads
	program_finish
	watch_ended
	status_is 0
	[ "$(hits | wc -l)" -ge 300 ] || complain "only $(hits | wc -l) hits"
	equal "$(hits | awk '{ print $3 }' | sort | uniq -d | wc -l)" 0 "threads that hit twice"
}

test_attached_program_runs_on_after_the_limit()
{
	threads_start 25
	watch_behind watch total -n 3 -p $threads
	threads_finish 100
	watch_ended
	status_is 0
	hits_are 3
}

test_time_limit()
{
	threads_start 5
	run "$hwbp" watch -o "$report" total -t 0.5 -p $threads
	status_is 0
	hits_are 0
	seconds=$(sed -n 's/.* in \([0-9.]*\) s$/\1/p' "$report")
	echo "$seconds" | awk '$1 < 0.5 || $1 > 30 { exit 1 }' || complain "ended after $seconds s"
	threads_finish 20
}

test_interrupt_ends_the_watch_only()
{
	rm -f "$tmp/fifo"
	mkfifo "$tmp/fifo"
	: >"$report"
	timeout 900 "$hwbp" watch -o "$report" spare:8 -- "$programs/threads" 5 \
		<"$tmp/fifo" >"$out" 2>"$err" &
	watcher=$!
	exec 9>"$tmp/fifo"
	wait_for " of .*(pid " "$report"
	wait_for ready "$out"
	pid=$(sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$report")
	# timeout(1) passes the signal on.
	kill -TERM $watcher
	wait_for "hits at" "$report"
	[ -d "/proc/$pid" ] || complain "the program is gone"
	echo go >&9
	exec 9>&-
	watch_ended
	status_is 0
	grep -q "threads: total 20" "$out" || complain "'$(cat "$out")'"
	grep -q "runs on" "$err" || complain "'$(cat "$err")'"
}

test_stat_counts_exactly()
{
	run "$hwbp" stat -o "$report" counter -- "$programs/tick" 1000
	status_is 0
	equal "$(stat_count "$report")" 1000 "writes"
	run "$hwbp" stat -o "$report" -rw counter -- "$programs/tick" 1000
	equal "$(stat_count "$report")" 3000 "reads and writes"
	run "$hwbp" stat -o "$report" -x tick_read -- "$programs/tick" 1000
	equal "$(stat_count "$report")" 2000 "calls"
	grep -q "(100.00%)" "$report" || complain "$(cat "$report")"
}

test_stat_of_many_threads()
{
	run "$hwbp" stat -o "$report" written -- "$programs/churn" 500
	status_is 0
	equal "$(stat_count "$report")" 500 "writes"
}

test_stat_of_an_attached_program()
{
	threads_start 50
	watch_behind stat total -p $threads
	threads_finish 200
	watch_ended
	status_is 0
	equal "$(stat_count "$report")" 200 "writes"
}

test_many_hits_are_shown_or_told_lost()
{
	watch -g counter -- "$programs/tick" 5000
	status_is 0
	lost=$(awk '/came too fast/ { print $1 }' "$report")
	equal "$(($(hits | wc -l) + ${lost:-0}))" 5000 "hits shown and lost"
}

test_child_is_watched_until_it_executes_another_program()
{
	watch mark -- "$programs/fork_exec"
	status_is 0
	hits_are 5
	equal "$(hits | awk '{ print $3 }' | sort | uniq -c | awk '{ print $1 }' | sort | xargs)" \
	      "2 3" "hits of parent and child"
}

test_accesses_of_the_kernel_with_k()
{
	watch filled -- "$programs/tick"
	hits_are 0
	watch -k filled -- "$programs/tick"
	hits_are 1
	equal "$(counts | awk '{ print $4 }')" "[kernel]" "place"
}

test_exit_status_of_the_program()
{
	watch counter -- "$programs/tick" 1 7
	status_is 7
	run "$hwbp" stat counter -- "$programs/tick" 1 42
	status_is 42
	watch counter -- "$programs/tick" 1 -9
	status_is 137
	watch counter -n 1 -- "$programs/tick" 5 9
	status_is 9
}

test_output_of_the_program()
{
	"$programs/tick" 9 >"$tmp/alone"
	watch -rw counter -- "$programs/tick" 9
	cmp -s "$tmp/alone" "$out" || complain "'$(cat "$out")'"
	[ ! -s "$err" ] || complain "'$(cat "$err")'"
}

test_unknown_symbol()
{
	watch nothere -- "$programs/tick"
	refused "no symbol 'nothere' in .*/tick"
	watch calls -- "$programs/tick"
	refused "no symbol 'calls' in .* but there is 'calls\.[0-9]*'"
	watch wrong.c:hidden -- "$programs/tick"
	refused "no symbol 'hidden' in 'wrong.c', but there is tick.c:hidden"
	threads_start 5
	run "$hwbp" watch nothere -p $threads
	refused "no symbol 'nothere'"
	threads_finish 20
}

test_length_that_the_hardware_lacks()
{
	watch bytes -- "$programs/tick"
	refused "bytes is 16 bytes long.* 1, 2, 4 and 8"
	for len in 3 5 6 7 16; do
		watch bytes:$len -- "$programs/tick"
		refused "cannot watch $len bytes.* 1, 2, 4 and 8"
	done
	watch bytes:0 -- "$programs/tick"
	refused "no length.* 1, 2, 4 and 8"
}

test_unaligned_address()
{
	watch bytes+1:2 -- "$programs/tick"
	refused "aligned"
	watch bytes+4:8 -- "$programs/tick"
	refused "aligned"
}

test_what_cannot_be_watched()
{
	watch per_thread -- "$programs/tick"
	refused "thread-local"
	watch -x counter -- "$programs/tick"
	refused "is data"
	watch -x memcpy -- "$programs/tick"
	refused "chosen at run time"
	watch 0xffffffff81000000:8 -- "$programs/tick"
	refused "address of the kernel"
}

test_all_registers_taken()
{
	threads_start 5
	watchers=
	for i in 0 8 16 24; do
		watch_behind stat spare+$i:8 -p $threads
		watchers="$watchers $watcher"
	done
	run "$hwbp" watch -o "$report" total -p $threads
	refused "no free debug register"
	run "$hwbp" stat -o "$report" total -p $threads
	refused "no free debug register"
	threads_finish 20
	for watcher in $watchers; do
		watch_ended
		status_is 0
	done
}

test_no_right()
{
	run "$programs/as_nobody" "$hwbp" watch counter -p $$
	refused "no right to"
	echo 2 >$paranoid
	run "$programs/as_nobody" "$hwbp" watch -k counter -- "$programs/tick"
	refused "perf_event_paranoid"
	run "$programs/as_nobody" "$hwbp" watch counter -- "$programs/tick" 5
	status_is 0
	equal "$(grep -c 'tick_write.*tick\.c' "$out")" 6 "lines of the report"
	echo "$old_paranoid" >$paranoid
}

test_no_such_process_or_program()
{
	run "$hwbp" watch counter -p 4000000
	refused "no process 4000000"
	run "$hwbp" watch counter -p 2
	refused "process 2 has no program"
	run "$hwbp" watch counter -- "$programs/nothere"
	refused "cannot run .*No such file" 127
	run "$hwbp" stat counter -- nothere-in-path
	refused "cannot run .*No such file" 127
	run "$hwbp" watch counter -- /etc/passwd
	refused "cannot run .*Permission denied" 126
}

test_command_line_errors()
{
	run "$hwbp" look counter
	refused "neither watch nor stat"
	run "$hwbp" watch counter
	refused "in which program"
	run "$hwbp" watch counter "$programs/tick"
	refused "one argument too many"
	run "$hwbp" watch counter --
	refused "no command"
	run "$hwbp" watch -y counter -p 1
	refused "unknown option"
	run "$hwbp" watch counter -n 0 -p 1
	refused "positive number"
	run "$hwbp" watch counter -p 1 -- "$programs/tick"
	refused "not both"
	run "$hwbp" stat counter -p
	refused "wants an argument"
	run "$hwbp" watch -o /nowhere/report counter -- "$programs/tick"
	refused "cannot write"
}

test_help()
{
	for verb in "" watch stat; do
		run "$hwbp" $verb --help
		status_is 0
		grep -q "^usage: hwbp" "$out" || complain "no usage for '$verb'"
	done
}

test_instruction_lengths()
{
	run "$programs/insn_test"
	status_is 0
	[ ! -s "$out" ] || sed 's/^/# /' "$out"
}

# ---- the result ------------------------------------------------------------------

tests=${*:-$(sed -n 's/^test_\([a-z_]*\)()$/\1/p' "$0")}
failed=0
passed=0
n=0

echo "TAP version 13"
if [ -z "$programs" ] || ! command -v "$hwbp" >/dev/null; then
	echo "1..0 # SKIP hwbp or its test programs are not here"
	exit 4
fi
echo "1..$(echo "$tests" | wc -w)"
hold_an_event
for t in $tests; do
	n=$((n + 1))
	bad=0
	"test_$t"
	if [ $bad -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $n $t"
	else
		failed=$((failed + 1))
		echo "not ok $n $t"
	fi
done
echo "# Totals: pass:$passed fail:$failed xfail:0 xpass:0 skip:0 error:0"
[ $failed -eq 0 ]
