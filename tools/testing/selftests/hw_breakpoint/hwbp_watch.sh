#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Hits that hwbp shows and counts, of programs with a known number of accesses, and the
# claims of programs that have some.

. "$(dirname "$0")/hwbp_test.sh"

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

test_static_variable_and_offset()
{
	watch hidden -- "$programs/tick"
	hits_in 1 tick_hidden
	once bytes watch bytes+8:8 -- "$programs/tick"
	hits_in 8 tick_repeat
}

test_string_instruction()
{
	watch -x tick_string -- "$programs/tick"
	place=$(counts | awk '{ print $3 }')
	once bytes watch bytes+8:8 -- "$programs/tick"
	equal "$(counts | grep tick_repeat | awk '{ print $1, $3 }')" "8 $place" "hits and place"
}

test_variable_of_a_library()
{
	watch shelf_level -- "$programs/shelf"
	status_is 0
	hits_are 4
	equal "$(counts | awk '{ print $4 }')" "[libshelf.so]" "library"
	# The linker has made a copy of the variable in the program.
	run "$hwbp" stat -o "$report" -rw stdout -- "$programs/tick_static"
	status_is 0
	[ "$(stat_count "$report")" -ge 1 ] || complain "stdout was not read"
}

test_library_that_is_loaded_later()
{
	start_on_fifo opens "$hwbp" watch -o "$report" libshelf.so:shelf_level -- "$programs/opens"
	exec 9>"$tmp/opens.fifo"
	wait_for ready "$tmp/opens" "$started"
	grep -q "^hwbp: note: waiting until process [0-9]* loads libshelf.so$" "$tmp/opens" ||
		complain "$(cat "$tmp/opens")"
	echo open >&9
	wait_for " of libshelf.so:shelf_level at" "$report" "$started"
	echo add >&9
	exec 9>&-
	status=0
	wait "$started" || status=$?
	status_is 0
	hits_are 3
	hits_in 3 shelf_add
	watch libnothere.so:level -- "$programs/tick"
	status_is 125
	grep -q "^hwbp: process [0-9]* has ended without loading libnothere.so$" "$err" ||
		complain "$(cat "$err")"
}

test_constructor_of_a_library()
{
	for program in shelf shelf_32; do
		[ -x "$programs/$program" ] || continue
		watch shelf_opened -- "$programs/$program"
		status_is 0
		hits_are 1
		hits_in 1 shelf_open
	done
}

test_variable_of_a_library_of_a_32_bit_program()
{
	if [ ! -x "$programs/shelf_32" ]; then
		skip="the 32-bit program was not built"
		return
	fi
	watch shelf_level -- "$programs/shelf_32"
	status_is 0
	hits_are 4
	equal "$(counts | awk '{ print $4 }')" "[libshelf_32.so]" "library"
}

test_libraries_that_come_and_go()
{
	watch plugged -- "$programs/plugins"
	status_is 0
	hits_are 3
	equal "$(hits | awk '{ print $5, $6 }' | sed 's/+0x[0-9a-f]*//' | xargs)" \
	      "plug_a [libplug_a.so] plug_b [libplug_b.so] plug_a [libplug_a.so]" "places"
}

test_callers_with_g()
{
	watch -g shelf_level -n 1 -- "$programs/shelf"
	equal "$(awk '$1 == "by" { print $2; exit }' "$report" | sed 's/+.*//')" main "caller"
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
	watch_in_background watch total -p $threads
	threads_finish 100
	watch_ended
	status_is 0
	hits_are 100
	equal "$(hits | awk '{ print $2 }' | sort | uniq -c | awk '{ print $1 $2 }' | xargs)" \
	      "25runner_0 25runner_1 25runner_2 25runner_3" "hits of each thread"
}

test_several_places()
{
	watch many.a many.b many.c -- "$programs/many" 5
	status_is 0
	hits_are 15
	equal "$(grep -c " of many.* in .*(pid " "$report")" 3 "places"
	grep -q "^ *TIME .* CPU  PLACE   *INSTRUCTION " "$report" || complain "no title"
	equal "$(hits | awk '{ print $5, $6 }' | sed 's/+.*//' | sort | uniq -c | xargs)" \
	      "5 many.a write_all 5 many.b write_all 5 many.c write_all" "hits"
	equal "$(counts | awk '{ print $1, $3 }' | sort | xargs)" \
	      "5 many.a 5 many.b 5 many.c" "counts"
	equal "$(counts | awk '{ print $NF }' | sort -u | wc -l)" 3 "lines of source"
	! grep -q "scaled\|multiplexed" "$report" || complain "$(cat "$report")"
	run "$hwbp" stat -o "$report" many.a many.b -- "$programs/many" 5
	status_is 0
	equal "$(awk '/ hits?; threads ran/ { print $1, $2 }' "$report" | xargs)" \
	      "many.a 5 many.b 5" "counts"
	watch counter hidden counter:4 -- "$programs/tick"
	refused "'counter' and 'counter:4' are at the same address"
	watch counter nothere -- "$programs/tick"
	refused "no symbol 'nothere'"
	watch hidden nothere shelf_level -- "$programs/shelf"
	refused "no symbol 'hidden'"
}

# Column $1 of each line that matches $2 is near $3; there is one line for each place.
near()
{
	awk -v column="$1" -v lines="$2" -v want="$3" '
		$0 ~ lines { n++; if ($column < want * 0.8 || $column > want * 1.2) bad = 1 }
		END { exit bad || n != 6 }' "$report" || complain "not near $3: $(cat "$report")"
}

test_more_places_than_registers()
{
	can_multiplex || return
	run "$hwbp" stat -o "$report" $places -- "$programs/many" 4000
	status_is 0
	grep -q "^multiplexed: " "$report" || complain "$(cat "$report")"
	awk '/scaled:/ { sub(/.*[(]/, ""); if ($1 + 0 < 30 || $1 + 0 > 90) exit 1 }' "$report" ||
		complain "shares: $(cat "$report")"
	sed -i 's/.*scaled: /scaled /' "$report"
	near 2 "^scaled " 4000
	watch $places -- "$programs/many" 2000
	status_is 0
	grep -q "^counts are scaled" "$report" || complain "$(tail -n 20 "$report")"
	near 1 "^ *[0-9]+ +[0-9]+  many[.]. +[0-9.]+%$" 2000
	near 1 "^ *[0-9]+ +[0-9.]+%  many[.]. +write_all" 2000
	equal "$(counts | awk '{ print $3 }' | sort | xargs)" "$places" "places"
}

# Without a rotation, four of six places are watched: nothing is known about the other two,
# which is not a count of 0.
test_places_that_are_not_watched()
{
	can_multiplex || return
	old=$(cat $pmu/perf_event_mux_interval_ms)
	echo 100000 >$pmu/perf_event_mux_interval_ms
	run "$hwbp" stat -o "$report" $places -- "$programs/many" 100
	status_is 0
	equal "$(grep -c "100 hits; threads ran .*(100.00%)$" "$report")" 4 "watched places"
	equal "$(grep -c "^many[.].  not watched; threads ran 0[.][0-9]* s$" "$report")" 2 \
	      "places that are not watched"
	watch $places -- "$programs/many" 100
	status_is 0
	grep -q "^400 hits at 4 places" "$report" || complain "$(tail -n 20 "$report")"
	equal "$(grep -c "^ *- *-  many[.].  not watched$" "$report")" 2 \
	      "places that are not watched"
	run "$hwbp" stat --json -o "$report" $places -- "$programs/many" 100
	status_is 0
	equal "$(grep -c '"count".*"hits": 100, "scaled": 100, ' "$report")" 4 "watched, JSON"
	equal "$(grep -c '"count".*"hits": null, "scaled": null, .*"running": 0[.]0*,' "$report")" 2 \
	      "not watched, JSON"
	echo "$old" >$pmu/perf_event_mux_interval_ms
}

# With one place the breakpoint has its register all the time, even if it is flexible.
test_one_flexible_place()
{
	can_multiplex || return
	run "$hwbp" stat -o "$report" -F many.a -- "$programs/many" 100
	status_is 0
	equal "$(stat_count "$report")" 100 "hits"
	! grep -q "scaled" "$report" || complain "$(cat "$report")"
}

# On a kernel that lists a bit of attr.config in format/ and refuses it, hwbp opens
# events of threads.
test_events_of_threads_if_those_of_a_process_are_refused()
{
	can_multiplex || return
	mkdir "$tmp/format"
	echo config:63 >"$tmp/format/process"
	threads_start 25
	run unshare -m sh -c "mount --bind '$tmp/format' \
			      $pmu/format &&
			      exec '$hwbp' stat -o '$report' -t 0.2 total -p $threads"
	status_is 0
	equal "$(stat_count "$report")" 0 "hits"
	threads_finish 100
	run unshare -m sh -c "mount --bind '$tmp/format' \
			      $pmu/format &&
			      exec '$hwbp' watch -o '$report' many.a -- '$programs/many' 9"
	status_is 0
	hits_are 9
}

# On a kernel without events of a process, sets $skip and fails.
can_watch_process()
{
	skip=
	[ -e $pmu/format/process ] || skip="this kernel has no events of a process"
	[ -z "$skip" ]
}

# The process $1 has $2 claims of hwbp for all its threads, and no thread of it has one.
claims_of_process()
{
	run "$hwbp" slots -p "$1"
	equal "$(grep -c " perf [0-9]* (hwbp), for all threads$" "$out")" "$2" \
	      "claims of the process"
	equal "$(grep -c " perf [0-9]* (hwbp)$" "$out")" 0 "claims of threads"
}

test_one_event_for_all_threads()
{
	can_watch_process && can_list || return
	threads_start 25
	watch_in_background stat total -p $threads
	claims_of_process $threads 1
	threads_finish 100
	watch_ended
	equal "$(stat_count "$report")" 100 "hits"
}

test_one_event_for_all_threads_of_a_launched_program()
{
	can_watch_process && can_list || return
	start_on_fifo launched "$hwbp" stat -o "$report" total -- "$programs/threads" 25
	exec 9>"$tmp/launched.fifo"
	wait_for ready "$tmp/launched" "$started"
	pid=$(sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$report")
	claims_of_process "$pid" 1
	echo go >&9
	exec 9>&-
	status=0
	wait "$started" || status=$?
	status_is 0
	equal "$(stat_count "$report")" 100 "hits"
}

test_places_on_the_stock_kernel()
{
	as_stock "$hwbp" stat $places -- "$programs/many"
	refused "6 places are more than the 4 registers .*no format/flexible .*watch 4 or less"
	as_stock "$hwbp" stat -F many.a -- "$programs/many"
	refused "F cannot be used: this kernel does not multiplex breakpoints"
	as_stock "$hwbp" stat -o "$report" many.a many.b many.c many.d -- "$programs/many" 7
	status_is 0
	equal "$(awk '/ hits?; threads ran/ { print $2 }' "$report" | xargs)" "7 7 7 7" "counts"
}

test_hits_are_shown_as_they_come()
{
	threads_start 5
	watch_in_background watch spare:8 -p $threads
	echo tap >&9
	wait_for "tap+0x" "$report" "$watcher"
	equal "$(hits | wc -l)" 1 "lines of hits"
	threads_finish 20
	watch_ended
}

# The ID of the thread of $threads whose name is "runner $1"
runner()
{
	grep -lx "runner $1" /proc/"$threads"/task/*/comm | cut -d / -f 5
}

test_attach_to_one_thread()
{
	for verb in watch stat; do
		threads_start 25
		tid=$(runner 1)
		watch_in_background $verb total -p "$tid"
		grep -q " of total at .* (pid $threads, thread $tid)$" "$report" ||
			complain "$(cat "$report")"
		threads_finish 100
		watch_ended
		status_is 0
		[ $verb = stat ] || hits_are 25
		[ $verb = stat ] || equal "$(hits | awk '{ print $3 }' | sort -u)" "$tid" "threads"
		[ $verb = watch ] || equal "$(stat_count "$report")" 25 "hits"
	done
}

test_attach_by_name()
{
	cp "$programs/threads" "$tmp/ledger_1"
	built=$programs
	programs=$tmp
	program_start ledger_1 25
	programs=$built
	watch_in_background watch total -p ledger_1
	grep -q "(pid $threads)$" "$report" || complain "$(cat "$report")"
	threads_finish 100
	watch_ended
	hits_are 100
	run "$hwbp" watch total -p ledger_1
	refused "no process is called 'ledger_1'"
	hold_start guaranteed:task
	first=$holder
	"$programs/hold" guaranteed:task <"$tmp/holds.fifo" >"$tmp/second" 2>&1 7>&- &
	wait_for ready "$tmp/second"
	run "$hwbp" watch held -p hold
	refused "'hold' is ambiguous, 2 processes are called so: .*$first"
	second=$!
	hold_end
	wait $second
}

test_threads_of_a_name()
{
	threads_start 25
	watch_in_background watch total --thread 'runner_[13]' -p $threads
	threads_finish 100
	watch_ended
	hits_are 50
	equal "$(hits | awk '{ print $2 }' | sort | uniq -c | awk '{ print $1 $2 }' | xargs)" \
	      "25runner_1 25runner_3" "hits of each thread"
}

test_attach_while_threads_come_and_go()
{
	program_start churn 300
	watch_in_background watch written -p $threads
	program_finish
	watch_ended
	status_is 0
	[ "$(hits | wc -l)" -ge 300 ] || complain "only $(hits | wc -l) hits"
	equal "$(hits | awk '{ print $3 }' | sort | uniq -d | wc -l)" 0 "threads that hit twice"
}

# The maps of a process in exec() contain no file until its program is mapped.
test_attach_while_the_program_is_being_loaded()
{
	program_start unmapped
	watch_start watch again -p "$threads"
	sleep 1
	kill -0 "$watcher" || complain "hwbp did not wait: $(cat "$err")"
	printf . >&9
	wait_for mapped "$tmp/threads" "$threads"
	wait_for " of .*(pid " "$report" "$watcher"
	echo .. >&9
	exec 9>&-
	watch_ended
	wait "$threads"
	status_is 0
	hits_are 3
}

test_attach_to_a_process_without_a_program()
{
	program_start unmapped
	run "$hwbp" stat -x 0x10000 -p "$threads"
	refused "process $threads has no program: no executable file is mapped"
	printf . >&9
	program_finish
	run "$hwbp" stat -x 0x10000 -p "$threads"
	refused "no such process: $threads"
	run "$hwbp" stat -x 0x10000 -p 2
	refused "process 2 has no program: it has exited or is a kernel thread"
}

test_attach_to_a_process_whose_main_thread_has_exited()
{
	for verb in watch stat; do
		program_start leader
		watch_in_background $verb led -p $threads
		grep -q " of led at .*, in .*/leader (pid $threads)$" "$report" ||
			complain "$(cat "$report")"
		program_finish
		watch_ended
		status_is 0
		[ $verb = stat ] || hits_are 10
		[ $verb = watch ] || equal "$(stat_count "$report")" 10 "hits"
	done
}

test_attached_program_runs_on_after_the_limit()
{
	threads_start 25
	watch_in_background watch total -n 3 -p $threads
	threads_finish 100
	watch_ended
	status_is 0
	hits_are 3
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
	wait_for " of .*(pid " "$report" "$watcher"
	wait_for ready "$out"
	pid=$(sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$report")
	# timeout(1) passes the signal to hwbp.
	kill -TERM $watcher
	wait_for "hits at" "$report" "$watcher"
	[ -d "/proc/$pid" ] || complain "the program is gone"
	echo go >&9
	exec 9>&-
	watch_ended
	status_is 0
	grep -q "threads: total 20" "$out" || complain "'$(cat "$out")'"
	grep -q "continues to run" "$err" || complain "'$(cat "$err")'"
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
	watch_in_background stat total -p $threads
	threads_finish 200
	watch_ended
	status_is 0
	equal "$(stat_count "$report")" 200 "writes"
}

test_many_hits_are_shown_or_counted_as_lost()
{
	watch -g counter -- "$programs/tick" 5000
	status_is 0
	lost=$(awk '/ lost: a buffer was full/ { print $1 }' "$report")
	equal "$(($(hits | wc -l) + ${lost:-0}))" 5000 "hits shown and lost"
}

# Writes to spare in the main thread of $threads, on CPU 1, which is online.
tap_on_cpu_1()
{
	taskset -p 2 $threads >/dev/null
	echo tap >&9
}

test_watch_of_a_cpu_that_comes_online()
{
	cpu=/sys/devices/system/cpu/cpu1/online
	if [ ! -w $cpu ]; then
		skip="CPU 1 cannot go offline"
		return
	fi
	for option in "" --children; do
		threads_start 5
		echo 0 >$cpu
		watch_in_background watch $option spare:8 -n 1 -t 20 -p $threads
		echo 1 >$cpu
		tap_on_cpu_1
		watch_ended
		status_is 0
		[ ! -s "$err" ] || complain "message '$(cat "$err")'"
		equal "$(hits | awk '{ print $4, $5 }' | sed 's/+.*//')" "1 tap" "hit"
		threads_finish 20
	done
}

# CPU 1 is one that the list of CPUs does not have when the watch begins.
test_note_of_a_cpu_that_is_added()
{
	echo 0 >"$tmp/present"
	threads_start 5
	run unshare -m sh -c "mount --bind '$tmp/present' /sys/devices/system/cpu/present &&
			      exec '$hwbp' watch -o '$report' -t 0.1 total -p $threads"
	status_is 0
	equal "$(grep -c "^hwbp: note: CPU 1 was added during the watch: hits on it " "$err")" 1 "notes"
	threads_finish 20
}

# hwbp is stopped while the buffers of all CPUs fill up. When the threads exit, there is no room for
# the records of that, either.
test_only_hits_are_counted_as_lost_hits()
{
	rounds=$((2500 * $(nproc)))
	threads_start $rounds
	watch_in_background watch total -p $threads
	stopped=$(hwbp_pid)
	kill -STOP $stopped
	threads_finish $((4 * rounds))
	kill -CONT $stopped
	watch_ended
	status_is 0
	lost=$(awk '/ lost: a buffer was full/ { print $1 }' "$report")
	[ "${lost:-0}" -ge 100 ] || complain "lost: '$lost'"
	equal "$(($(hits | wc -l) + ${lost:-0}))" $((4 * rounds)) "hits shown and lost"
}

test_child_is_watched_with_children_until_it_executes_another_program()
{
	watch --children mark -- "$programs/fork_exec"
	status_is 0
	hits_are 5
	equal "$(hits | awk '{ print $3 }' | sort | uniq -c | awk '{ print $1 }' | sort | xargs)" \
	      "2 3" "hits of parent and child"
}

test_stat_counts_children_with_children()
{
	run "$hwbp" stat --children -o "$report" mark -- "$programs/fork_exec"
	status_is 0
	equal "$(stat_count "$report")" 12 "hits"
}

test_child_is_not_watched()
{
	for option in "" --no-children; do
		watch $option mark -- "$programs/fork_exec"
		status_is 0
		hits_are 2
		run "$hwbp" stat $option -o "$report" mark -- "$programs/fork_exec"
		equal "$(stat_count "$report")" 2 "hits"
	done
	as_stock "$hwbp" watch -o "$report" mark -- "$programs/fork_exec"
	status_is 0
	hits_are 2
}

test_accesses_of_the_kernel_with_k()
{
	watch filled -- "$programs/tick"
	hits_are 0
	watch -k filled -- "$programs/tick"
	hits_are 1
	equal "$(counts | awk '{ print $4 }')" "[kernel]" "place"
}

# The last line of a message about holders ends like this.
advice_is()
{
	tail -n 1 "$err" | grep -q "^  close one of these.*$1$" || complain "'$(cat "$err")'"
}

# hwbp claims all registers of the threads of $threads.
holders_are_named()
{
	run "$hwbp" stat total -p $threads
	refused_with_holders
	equal "$(grep -c "^  perf [0-9]* (hwbp): process $threads (threads), w of 8 bytes at .* (spare" \
		 "$err")" 4 "holders"
	grep -q "all 4 are claimed:$" "$err" || complain "'$(cat "$err")'"
	advice_is "guaranteed breakpoints leave no register to flexible ones"
	run "$hwbp" stat -F -o "$report" total -p $threads
	refused_with_holders
	advice_is "guaranteed breakpoints leave no register to flexible ones"
	run unshare -m sh -c "umount -l /sys/kernel/debug; exec '$hwbp' stat total -p $threads"
	refused_with_holders
	grep -q "^  their owners are not known: .*: debugfs is not mounted" "$err" ||
		complain "'$(cat "$err")'"
}

# Runs hwbp with the list of claims replaced by $tmp/claims.
with_claims()
{
	run unshare -m sh -c "mount --bind '$tmp/claims' $slots_file; exec \"\$@\"" sh "$@"
}

# The list is read after the request has failed: a holder may have ended.
holders_have_ended()
{
	grep "^claim pid=$threads " $slots_file >"$tmp/all"
	equal "$(wc -l <"$tmp/all")" 4 "claims"
	head -n 1 $slots_file >"$tmp/claims"
	head -n 3 "$tmp/all" >>"$tmp/claims"
	with_claims "$hwbp" stat total -p $threads
	refused "in process $threads, but one is now: try again"
	tail -n 1 "$tmp/all" >>"$tmp/claims"
	with_claims "$hwbp" stat total -p $threads
	refused_with_holders "in process $threads, all 4 are claimed:"
}

test_all_registers_taken()
{
	threads_start 5
	watchers=
	for i in 0 8 16 24; do
		watch_in_background stat spare+$i:8 -p $threads
		watchers="$watchers $watcher"
	done
	run "$hwbp" watch -o "$report" total -p $threads
	refused_with_holders
	as_stock "$hwbp" stat total -p $threads
	refused_with_holders
	grep -q "this kernel cannot share registers" "$err" || complain "'$(cat "$err")'"
	run "$programs/as_nobody" "$hwbp" stat total -p $threads
	refused "no permission"
	if can_list && can_multiplex; then
		holders_are_named
		holders_have_ended
	fi
	skip=
	threads_finish 20
	for watcher in $watchers; do
		watch_ended
		status_is 0
	done
}

# Claims of a program, places, and whether -F would do
test_advice_to_share_registers()
{
	can_multiplex || return
	while IFS='|' read -r claims places share; do
		hold_start $claims
		run "$hwbp" stat $places -p "$holder"
		refused_with_holders
		if [ "$share" = yes ]; then
			advice_is ", or use -F to share the registers that are left"
			run "$hwbp" stat -F $places -t 0.01 -p "$holder"
			status_is 0
		else
			advice_is ": guaranteed breakpoints leave no register to flexible ones"
			run "$hwbp" stat -F $places -t 0.01 -p "$holder"
			refused_with_holders
		fi
		hold_end
	done <<-'END'
	guaranteed:task guaranteed:task guaranteed:task guaranteed:task|held|no
	guaranteed:task guaranteed:task guaranteed:task flexible:task|held|yes
	guaranteed:task guaranteed:task guaranteed:task|held second_thread|yes
	guaranteed:process guaranteed:process guaranteed:cpu@0 guaranteed:cpu@0|held|no
	END
}

test_no_right()
{
	run "$programs/as_nobody" "$hwbp" watch counter -p $$
	refused "no permission to"
	echo 2 >$paranoid
	run "$programs/as_nobody" "$hwbp" watch -k counter -- "$programs/tick"
	refused "perf_event_paranoid"
	run "$programs/as_nobody" "$hwbp" watch counter -- "$programs/tick" 5
	status_is 0
	equal "$(grep -c 'tick_write.*tick\.c' "$out")" 6 "lines of the report"
	echo "$old_paranoid" >$paranoid
}

# Runs the verbs that open events with the command in front, and expects the message $1.
all_refused()
{
	what=$1
	shift
	for verb in "watch counter" "stat counter" "text -q"; do
		run "$@" "$hwbp" $verb -- "$programs/tick"
		refused "no permission to use perf events: $what"
	done
}

test_events_refused_by_a_level_of_paranoia()
{
	echo 3 >$paranoid
	run "$programs/as_nobody" "$hwbp" stat counter -- "$programs/tick"
	if [ "$status" -eq 0 ]; then
		skip="this kernel does not know a perf_event_paranoid of 3"
	else
		all_refused "requires CAP_SYS_ADMIN or a kernel.perf_event_paranoid of 2 or less (it is 3)" \
			    "$programs/as_nobody"
	fi
	echo "$old_paranoid" >$paranoid
}

test_events_refused_by_a_filter_of_system_calls()
{
	# EPERM, EACCES, ENOSYS
	for errno in 1 13 38; do
		all_refused "a seccomp filter refuses perf_event_open" \
			    "$programs/refuse" perf_event_open $errno
	done
}

test_slots_of_this_machine()
{
	can_list && has_two_cpus || return
	n_slots=$(cat $pmu/caps/data_slots)
	hold_start guaranteed:task flexible:task guaranteed:task@1 guaranteed:cpu@0
	run "$hwbp" slots
	status_is 0
	[ ! -s "$err" ] || complain "message '$(cat "$err")'"
	equal "$(head -n 1 "$out")" "registers of each CPU: $n_slots" "summary"
	equal "$(grep -c "^  register " "$out")" $((n_slots * $(nproc))) "registers"
	section "task $holder" >"$tmp/task"
	equal "$(awk '{ print $1, $2, $3, $4, $5, $7, $8, $9, $10 }' "$tmp/task")" \
"any CPU guaranteed w 8 held perf $holder (hold)
CPU 1 guaranteed w 8 held perf $holder (hold)
any CPU flexible w 8 held perf $holder (hold)" "claims of a task"
	# The claim of the CPU always has a register.
	section "CPU 0" | grep " perf $holder (hold)$" | awk '{ print $1, $(NF - 6) }' |
		sort -u >"$tmp/cpu"
	equal "$(xargs <"$tmp/cpu")" "claim w register w" "the claim of a CPU"
	pid=$holder
	hold_end
	run "$hwbp" slots
	status_is 0
	! grep -q " $pid " "$out" || complain "claims of $pid, which is gone"
	run "$hwbp" slots -p $pid
	refused "no such process: $pid"
}

test_slots_of_a_program_with_an_odd_name()
{
	can_list || return
	hold="$tmp/a) b: c  =d"
	cp "$programs/hold" "$hold"
	hold_start guaranteed:task
	run "$hwbp" slots -p "$holder"
	status_is 0
	equal "$(grep "^task" "$out")" "task $holder (a) b: c  =d)" "task"
	hold_end
	unset hold
}

test_slots_agree_with_the_kernel_on_full_tasks()
{
	can_list || return
	hold_start guaranteed:task guaranteed:task guaranteed:task
	run "$hwbp" slots -p "$holder"
	full_is ""
	run "$hwbp" stat held -t 0.01 -p "$holder"
	status_is 0
	hold_end
	for claims in "guaranteed:task guaranteed:task guaranteed:task guaranteed:task" \
		      "guaranteed:task guaranteed:task guaranteed:task flexible:task"; do
		hold_start $claims
		run "$hwbp" slots -p "$holder"
		full_is "task $holder (hold) is full"
		run "$hwbp" stat held -t 0.01 -p "$holder"
		refused_with_holders
		hold_end
	done
	has_two_cpus || return
	hold_start guaranteed:cpu@1 guaranteed:task guaranteed:task@1 flexible:task@1
	run "$hwbp" slots --cpu 1 -p "$holder"
	full_is "task $holder (hold) is full on CPU 1"
	run "$hwbp" stat held -t 0.01 -p "$holder"
	refused_with_holders
	hold_end
}

# The claims of a process add to those of each of its threads. The message lists the claims
# that fill one thread, not that of another one.
test_slots_agree_with_the_kernel_on_full_threads()
{
	can_list && can_multiplex || return
	hold_start guaranteed:task guaranteed:process guaranteed:thread guaranteed:thread
	run "$hwbp" slots -p "$holder"
	full_is ""
	run "$hwbp" stat held -t 0.01 -p "$holder"
	status_is 0
	hold_end
	hold_start guaranteed:task guaranteed:process flexible:process guaranteed:thread \
		   guaranteed:thread
	thread=$(ls "/proc/$holder/task" | grep -vx "$holder")
	run "$hwbp" slots -p "$holder"
	full_is "task $thread (hold) is full"
	run "$hwbp" stat held -t 0.01 -p "$holder"
	refused_with_holders "in process $holder, all 4 are claimed:"
	equal "$(sed -n "s/^  perf $holder (hold): \(.*\) (hold), w of 8 bytes .*/\1/p" "$err" |
		 sort | xargs)" \
	      "flexible, process $holder process $holder thread $thread" "holders"
	run "$hwbp" stat -F held -t 0.01 -p "$holder"
	status_is 0
	hold_end
}

# While hwbp runs, it has $nr claims for the place $1, which end in $whose: watch on each
# CPU, stat for any CPU. The other arguments are those of hwbp.
slots_while()
{
	what="guaranteed w *8 0x[0-9a-f]* *$1 *perf [0-9]* (hwbp)$whose$"
	shift
	watch_in_background "$@" -p $threads
	run "$hwbp" slots -p $threads
	status_is 0
	if [ "$1" = stat ]; then
		equal "$(grep -c "^  any CPU  *$what" "$out")" $nr "claims for any CPU"
	else
		for cpu in $(seq 0 $(($(nproc) - 1))); do
			equal "$(grep -c "^  CPU $cpu  *$what" "$out")" $nr "claims on CPU $cpu"
		done
	fi
	kill "$watcher"
	watch_ended
}

# The program has three threads.
test_slots_while_hwbp_watches()
{
	can_list || return
	threads_start 5
	nr=1
	whose=", for all threads"
	slots_while total watch total
	slots_while spare+0x10 stat spare+16:8
	nr=3
	whose=
	slots_while total watch --children total
	equal "$(grep -c "^task .* a thread of $threads$" "$out")" 2 "threads with claims"
	slots_while spare+0x10 stat --children spare+16:8
	threads_finish 20
	watch_ended
	run "$hwbp" slots
	! grep -q " $threads " "$out" || complain "claims of a program that has ended"
}

# The breakpoint of a running task is in a register of its CPU.
test_slots_of_a_task_that_runs()
{
	can_list || return
	sh -c 'while :; do :; done' &
	spinner=$!
	watch_in_background stat -x 0x10000 -p $spinner
	for _ in $(seq 100); do
		run "$hwbp" slots -p $spinner
		grep -q "^  register " "$out" && break
	done
	grep -q "^  register [0-9] *guaranteed x *8 0x10000 .* (hwbp), for process $spinner (.*)$" \
		"$out" || complain "$(cat "$out")"
	kill $spinner
	watch_ended
}

run_tests "$@"
