#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The command hwbp, on programs with a known number of accesses.
#
# Requires hwbp in PATH, or its path in $HWBP, and its test programs in one of the
# directories below, or in $HWBP_TESTS. Runs as root: some tests drop privileges.
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

# The first perf event that is opened and the last one that is closed switch static keys
# of the scheduler. An event that stays open avoids this for each command, and failures
# of emulators that sometimes execute patched code wrongly.
hold_an_event()
{
	start_on_fifo held "$hwbp" stat total -- "$programs/threads" 1
	exec 8>"$tmp/held.fifo"
	wait_for ready "$tmp/held"
}

# ---- helpers of all tests ------------------------------------------------------

# A check that fails prints the reason and makes the current test fail. A test that
# cannot run sets $skip to the reason.
bad=0
skip=

complain()
{
	bad=1
	echo "# $*"
}

# Runs a command, and stores its output, messages and status. The time limits are only
# against a hang: the clock of an emulator that gets little CPU time may run fast.
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

# Like run, for a command whose results several tests use: once NAME COMMAND... runs the
# command for the first of these tests, and restores its report, output and status for
# the others. On a debug kernel a run takes seconds.
once()
{
	kept=$tmp/once.$1
	shift
	if [ -e "$kept.status" ]; then
		cp "$kept.report" "$report"
		cp "$kept.out" "$out"
		cp "$kept.err" "$err"
		status=$(cat "$kept.status")
		return
	fi
	"$@"
	cp "$report" "$kept.report"
	cp "$out" "$kept.out"
	cp "$err" "$kept.err"
	echo "$status" >"$kept.status"
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

# Lines of the report: hits have a time in the first column, counts a percentage in the
# second.
hits()
{
	awk '$1 ~ /^[0-9]+\.[0-9]+$/' "$report"
}

counts()
{
	awk '$2 ~ /^[0-9.]+%$/' "$report"
}

# Runs hwbp in the background, and waits until the report begins; $watcher is its
# process.
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

# There are $1 hits, in lines and in the sum of the counts.
hits_are()
{
	equal "$(hits | wc -l)" "$1" "lines of hits"
	equal "$(counts | awk '{ n += $1 } END { print n + 0 }')" "$1" "sum of the counts"
}

# There are $1 hits in the function $2.
hits_in()
{
	equal "$(counts | awk -v f="$2+" 'index($3, f) == 1 { n += $1 } END { print n + 0 }')" \
	      "$1" "hits in $2"
}

# The command failed with one line that matches $1, and did not run its program.
refused()
{
	status_is "${2:-125}"
	equal "$(wc -l <"$err")" 1 "lines of the message"
	grep -q "^hwbp: .*$1" "$err" || complain "message '$(cat "$err")', not '$1'"
	[ ! -s "$out" ] || complain "output '$(cat "$out")' of a program that must not run"
}

# Like refused, for a message about registers: one line per holder and one with advice.
refused_with_holders()
{
	status_is 125
	grep -q "^hwbp: .*no debug register available in process [0-9]*" "$err" ||
		complain "message '$(cat "$err")'"
	grep -q "^  close one of these" "$err" || complain "no advice: '$(cat "$err")'"
	! grep -q "No space left" "$err" || complain "'$(cat "$err")'"
	[ ! -s "$out" ] || complain "output '$(cat "$out")' of a program that must not run"
}

# Like refused, for a command line that libsubcmd refuses: the usage follows the
# message.
refused_usage()
{
	status_is 125
	grep -q "^ *Error: .*$1" "$err" || complain "message '$(cat "$err")', not '$1'"
	grep -q "^ Usage: hwbp" "$err" || complain "no usage: '$(cat "$err")'"
	[ ! -s "$out" ] || complain "output '$(cat "$out")' of a program that must not run"
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

# Starts a program that reads from the pipe $tmp/NAME.fifo and writes to $tmp/NAME:
# start_on_fifo NAME COMMAND... $started is its process. Opening the pipe for writing
# waits for the program.
start_on_fifo()
{
	name=$1
	shift
	rm -f "$tmp/$name.fifo"
	mkfifo "$tmp/$name.fifo"
	: >"$tmp/$name"
	"$@" <"$tmp/$name.fifo" >"$tmp/$name" 2>&1 &
	started=$!
}

# Starts a program that waits for a line; $threads is its process.
program_start()
{
	start_on_fifo threads "$programs/$1" "$2"
	threads=$started
	exec 9>"$tmp/threads.fifo"
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

pmu=/sys/bus/event_source/devices/breakpoint

# On a kernel without flexible breakpoints, sets $skip and fails.
can_multiplex()
{
	skip=
	[ -e $pmu/format/flexible ] || skip="this kernel has no flexible breakpoints"
	[ -z "$skip" ]
}

# On a kernel without a list of claims, sets $skip and fails.
can_list()
{
	skip=
	[ -e /sys/kernel/debug/hw_breakpoint/slots ] || skip="this kernel does not list breakpoints"
	[ -z "$skip" ]
}

# Hides format/ and caps/, so that the kernel looks like the stock one.
as_stock()
{
	if [ ! -e $pmu/format ]; then
		run "$@"
		return
	fi
	mkdir -p "$tmp/empty"
	run unshare -m sh -c "mount --bind '$tmp/empty' $pmu/format &&
			      mount --bind '$tmp/empty' $pmu/caps && exec \"\$@\"" sh "$@"
}

# Each line of the file $1 of type $2 (each line if $2 is "") is a JSON object with the
# other arguments as keys.
json_has()
{
	file=$1
	type=$2
	shift 2
	grep "\"type\": \"$type" "$file" >"$tmp/lines"
	"$programs/json_check" "$@" <"$tmp/lines" >"$tmp/json" || complain "$type: $(cat "$tmp/json")"
}

# The types of the lines of a file, with their numbers
json_types()
{
	sed 's/^{"type": "\([a-z]*\)".*/\1/' "$1" | sort | uniq -c | xargs
}

# ---- helpers of the tests of hwbp slots ------------------------------------------

slots_file=/sys/kernel/debug/hw_breakpoint/slots
account=$tmp/account

# Runs hwbp slots with the list of claims on standard input. The tasks in the list have
# numbers that no process can have.
slots()
{
	cat >"$account"
	run "$hwbp" slots --from "$account" "$@"
}

# Prints a claim: holder ("cpu=0", or "pid=5000001 cpu=any"), kind, and further fields,
# which precede the usual ones.
claim()
{
	case $1 in
	pid=*) tail=" comm=some task" ;;
	*)     tail= ;;
	esac
	echo "claim $1 kind=$2 ${3:-class=any} weight=1 type=w len=8 addr=0x1000 owner=kgdb$tail"
}

# Prints four free registers of each of the given CPUs.
free_registers()
{
	for cpu in "$@"; do
		for slot in 0 1 2 3; do
			echo "register cpu=$cpu slot=$slot free"
		done
	done
}

# The output is exactly the standard input of this function.
says()
{
	cat >"$tmp/expected"
	status_is 0
	[ ! -s "$err" ] || complain "message '$(cat "$err")'"
	diff "$tmp/expected" "$out" >"$tmp/diff" || {
		complain "not what was expected:"
		sed 's/^/# /' "$tmp/diff"
	}
}

# The lines at the end name these full CPUs and tasks; none if $1 is empty.
full_is()
{
	status_is 0
	equal "$(grep " is full" "$out" | sed 's/: .*//')" "$1" "who is full"
}

# Prints the lines of one section.
section()
{
	awk -v head="$1" 'index($0, head) == 1 { inside = 1; next } /^$/ { inside = 0 } inside' \
		"$out"
}

# Starts a program that has claims until hold_end; $holder is its process.
hold_start()
{
	start_on_fifo holds "${hold:-$programs/hold}" "$@"
	holder=$started
	exec 7>"$tmp/holds.fifo"
	wait_for . "$tmp/holds"
	equal "$(cat "$tmp/holds")" ready "claims of a program"
}

hold_end()
{
	exec 7>&-
	wait "$holder"
}

# ---- helpers of the tests of hwbp text -------------------------------------------

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

# Lines of the report about changed bytes, and about symbols that are registered and
# unregistered
changes()
{
	awk '$1 ~ /^[0-9]+\.[0-9]+$/ && / -> /' "$report"
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
	refused "no place to watch"
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
	# The linker has made a copy of the variable in the program.
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

places="many.a many.b many.c many.d many.e many.f"

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

# With one place the breakpoint has its register all the time, even if it is flexible.
test_one_flexible_place()
{
	can_multiplex || return
	run "$hwbp" stat -o "$report" -F many.a -- "$programs/many" 100
	status_is 0
	equal "$(stat_count "$report")" 100 "hits"
	! grep -q "scaled" "$report" || complain "$(cat "$report")"
}

test_json_of_watch()
{
	watch --json -g many.a many.b -- "$programs/many" 3
	status_is 0
	json_has "$report" ""
	equal "$(json_types "$report")" "2 count 1 end 6 hit 2 instruction 2 place" "lines"
	json_has "$report" place place access address len multiplexed pid program
	json_has "$report" hit time comm pid tid cpu place ip kernel instruction function source callers
	json_has "$report" instruction place hits instruction source
	json_has "$report" count place hits scaled enabled running lost
	equal "$(grep -c '"type": "hit".*"place": "many.b".*"function": "write_all".*"callers": \[{.*"function": "main"' \
		 "$report")" 3 "hits of many.b"
	equal "$(sed -n 's/.*"count", "place": "many.a", "hits": 3, "scaled": \([0-9]*\),.*/\1/p' \
		 "$report")" 3 "count of many.a"
	# A name with characters that JSON requires to be escaped
	odd="$tmp/a\"b\\c$(printf '\303\251\303x\377')"
	cp "$programs/many" "$odd"
	watch --json many.a -- "$odd" 1
	status_is 0
	json_has "$report" ""
	grep -q '"program": ".*/a\\"b\\\\c'"$(printf '\303\251')"'\\ufffdx\\ufffd"' "$report" ||
		complain "$(cat "$report")"
}

test_json_of_stat()
{
	can_multiplex || return
	run "$hwbp" stat --json -o "$report" $places -- "$programs/many" 1000
	status_is 0
	json_has "$report" ""
	equal "$(json_types "$report")" "6 count 1 end 6 place" "lines"
	equal "$(grep -c '"place".*"multiplexed": true' "$report")" 6 "multiplexed places"
}

test_json_of_slots()
{
	can_list || return
	hold_start guaranteed:task flexible:task@1 guaranteed:cpu@0
	run "$hwbp" slots --json
	status_is 0
	json_has "$out" ""
	json_has "$out" class name registers
	json_has "$out" claim cpu tid registers flexible access len address symbol owner
	json_has "$out" register cpu number free
	equal "$(grep -c '"type": "claim".*"owner": "perf '$holder' (hold)"' "$out")" 3 "claims"
	grep -q '"claim", "cpu": null, "tid": '$holder', .*"flexible": false, .*"symbol": "held"' \
		"$out" || complain "$(cat "$out")"
	grep -q '"claim", "cpu": 1, "tid": '$holder', .*"flexible": true' "$out" ||
		complain "$(cat "$out")"
	grep -q '"claim", "cpu": 0, "tid": null, ' "$out" || complain "$(cat "$out")"
	hold_end
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
	json_has "$report" change time cpu address symbol old new
	json_has "$report" symbol symbol changes
	json_has "$report" end changes new gone registered unregistered lost
	equal "$(grep -c '"change".*"symbol": "'$probed'".*"old": "[0-9a-f]\{10\}"' "$report")" 2 \
	      "changes of $probed"
}

# Runs hwbp on a terminal; $report gets the output, with each escape sequence on a line
# of its own.
on_tty()
{
	run env TERM=xterm "$programs/on_tty" "$@"
	tr -d '\r' <"$out" | awk '{ gsub(/\033/, "\nESC"); print }' >"$report"
}

test_summary_on_a_terminal()
{
	on_tty "$hwbp" watch many.a many.b -- "$programs/many" 4000
	status_is 0
	# The summary has nine of the 24 rows.
	equal "$(grep -c '^ESC\[1;15r' "$report")" 1 "scrolling regions"
	equal "$(grep -c '^ESC\[r' "$report")" 1 "resets of the region"
	[ "$(grep -c '^ESC\[2K---- [0-9.]* s, ^C ends' "$report")" -ge 2 ] ||
		complain "not renewed: $(grep -c 'ESC\[2K----' "$report")"
	grep -q '^ESC\[2K *[0-9]*  many.a  write_all+' "$report" || complain "no counts"
	# Hits are coloured, and complete.
	equal "$(grep -c '^ESC\[36mwrite_all+' "$report")" 8002 "coloured hits and counts"
	# The final report comes after the summary.
	sed -n '/^ESC\[r/,$p' "$report" | grep -q "^8000 hits at 2 places" ||
		complain "$(sed -n '/^ESC\[r/,$p' "$report")"
	on_tty "$hwbp" stat many.a -- "$programs/many" 4000
	status_is 0
	[ "$(grep -c '^ESC\[2K *[0-9]*  many.a$' "$report")" -ge 2 ] || complain "$(cat "$report")"
	grep -q "^ESC84000 hits; threads ran" "$report" || complain "$(cat "$report")"
}

# The output of the program appears above the summary, unchanged.
test_summary_and_output_of_the_program()
{
	on_tty "$hwbp" stat -x tick_read -- "$programs/tick" 5
	status_is 0
	grep -q "written at " "$report" || complain "$(cat "$report")"
}

test_plain_lines_elsewhere()
{
	on_tty "$hwbp" watch --plain many.a -- "$programs/many" 5
	status_is 0
	! grep -q ESC "$report" || complain "--plain: $(grep ESC "$report")"
	hits_are 5
	on_tty env TERM=dumb "$hwbp" watch many.a -- "$programs/many" 5
	! grep -q ESC "$report" || complain "TERM=dumb: $(grep ESC "$report")"
	hits_are 5
	on_tty env NO_COLOR=1 "$hwbp" watch many.a -- "$programs/many" 5
	! grep -q 'ESC\[[0-9]*m' "$report" || complain "NO_COLOR: $(grep ESC "$report")"
	on_tty "$hwbp" watch -o "$tmp/file" many.a -- "$programs/many" 5
	! grep -q ESC "$report" "$tmp/file" || complain "-o: $(grep ESC "$tmp/file")"
	on_tty "$hwbp" watch --json many.a -- "$programs/many" 5
	! grep -q ESC "$report" || complain "--json: $(grep ESC "$report")"
	json_has "$report" ""
	# Standard output is a file here.
	TERM=xterm run "$hwbp" watch many.a -- "$programs/many" 5
	tr -d '\n' <"$out" | grep -q "$(printf '\033')" && complain "$(cat "$out")"
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

test_one_event_for_all_threads()
{
	if [ ! -e $pmu/format/process ]; then
		skip="this kernel has no events of a process"
		return
	fi
	threads_start 25
	watch_behind stat --no-children total -p $threads
	run "$hwbp" slots
	equal "$(grep -c "any CPU .* perf [0-9]* (hwbp), for all threads" "$out")" 1 "claims"
	threads_finish 100
	watch_ended
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
	# timeout(1) passes the signal to hwbp.
	kill -TERM $watcher
	wait_for "hits at" "$report"
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
	lost=$(awk '/ lost: a buffer was full/ { print $1 }' "$report")
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

test_child_is_not_watched_with_no_children()
{
	watch --no-children mark -- "$programs/fork_exec"
	status_is 0
	equal "$(hits | awk '{ print $3 }' | sort -u | wc -l)" 1 "processes that hit"
	as_stock "$hwbp" watch --no-children -o "$report" mark -- "$programs/fork_exec"
	status_is 0
	equal "$(hits | awk '{ print $3 }' | sort -u | wc -l)" 1 "processes that hit"
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
	refused "bytes is 16 bytes long.* 1, 2, 4 or 8"
	for len in 3 5 6 7 16; do
		watch bytes:$len -- "$programs/tick"
		refused "invalid length $len: use 1, 2, 4 or 8"
	done
	watch bytes:0 -- "$programs/tick"
	refused "invalid length .* 1, 2, 4 or 8"
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
	refused "resolved at run time"
	watch 0xffffffff81000000:8 -- "$programs/tick"
	refused "is a kernel address"
}

# hwbp claims all registers of the threads of $threads.
holders_are_named()
{
	run "$hwbp" stat total -p $threads
	refused_with_holders
	equal "$(grep -c "^  perf [0-9]* (hwbp): thread $threads (threads), w of 8 bytes at .* (spare" \
		 "$err")" 4 "holders"
	grep -q "all 4 are held:$" "$err" || complain "'$(cat "$err")'"
	grep -q "or use -F to share" "$err" || complain "'$(cat "$err")'"
	run "$hwbp" stat -F -o "$report" total -p $threads
	refused_with_holders
	grep -q "leave no register to flexible ones" "$err" || complain "'$(cat "$err")'"
	run unshare -m sh -c "umount -l /sys/kernel/debug; exec '$hwbp' stat total -p $threads"
	refused_with_holders
	grep -q "^  their owners are not known: debugfs is not mounted" "$err" ||
		complain "'$(cat "$err")'"
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
	refused_with_holders
	as_stock "$hwbp" stat total -p $threads
	refused_with_holders
	grep -q "this kernel cannot share registers" "$err" || complain "'$(cat "$err")'"
	run "$programs/as_nobody" "$hwbp" stat total -p $threads
	refused "no permission"
	if can_list && can_multiplex; then
		holders_are_named
	fi
	skip=
	threads_finish 20
	for watcher in $watchers; do
		watch_ended
		status_is 0
	done
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

test_no_such_process_or_program()
{
	run "$hwbp" watch counter -p 4000000
	refused "no such process: 4000000"
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
	refused "unknown verb .* watch, stat, slots, text or trace"
	run "$hwbp" watch counter
	refused "no program was given"
	run "$hwbp" watch counter "$programs/tick"
	refused "no program was given"
	run "$hwbp" watch counter --
	refused "no command"
	run "$hwbp" watch -y counter -p 1
	refused_usage "unknown switch .y'"
	run "$hwbp" watch -x -w counter -p 1
	refused "-x and -w exclude each other"
	run "$hwbp" watch counter -n 0 -p 1
	refused "positive number"
	run "$hwbp" watch counter -p 1 -- "$programs/tick"
	refused "exclude each other"
	run "$hwbp" stat counter -p
	refused_usage "switch .p' requires a value"
	run "$hwbp" watch -o /nowhere/report counter -- "$programs/tick"
	refused "cannot write"
}

test_help()
{
	run "$hwbp" --list-verbs
	status_is 0
	verbs=$(cat "$out")
	equal "$(echo "$verbs" | xargs)" "watch stat slots text trace" "verbs"
	for verb in "" $verbs; do
		run "$hwbp" $verb --help
		status_is 0
		grep -qi "^ *usage: hwbp" "$out" || complain "no usage for '$verb'"
		[ ! -s "$err" ] || complain "'$(cat "$err")'"
		[ -n "$verb" ] || continue
		grep -q "^    -h, --help " "$out" || complain "no options for '$verb'"
		run "$hwbp" $verb --list-opts
		status_is 0
		grep -q -e "--help" "$out" || complain "'$(cat "$out")'"
	done
}

test_slots_of_a_list_of_claims()
{
	g="kind=guaranteed class=any weight=1"
	f="kind=flexible class=any weight=1 type=rw len=4"
	slots <<-END
	class name=any slots=4
	claim pid=5000002 cpu=1 $g type=x len=8 addr=0x401136 owner=ptrace:5000077 comm=my prog
	claim cpu=1 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:handler
	claim cpu=10 weight=2 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:-
	claim pid=5000001 cpu=any $f addr=0x55d0 owner=perf:5000456 comm=ledger
	claim cpu=1 type=r len=1 $f addr=0x5 owner=perf:-
	claim pid=5000001 cpu=any $g type=w len=2 addr=0x7ffdeadbeef0 owner=ptrace:- comm=ledger
	claim cpu=1 $g type=w len=4 addr=0x4 owner=kgdb
	register cpu=1 slot=1 free
	register cpu=1 slot=0 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:handler
	register cpu=0 slot=0 $f addr=0x55d0 owner=perf:5000456 pid=5000001 comm=ledger
	register cpu=0 slot=1 free
	END
	says <<-'END'
	registers of each CPU: 4 for instructions and data; 4 claims of CPUs, 3 of 2 tasks

	              KIND       TYPE LEN ADDRESS            NAME OWNER
	CPU 0: no claims
	  register 0  flexible   rw     4 0x55d0             -    perf 5000456, for task 5000001 (ledger)
	  register 1  free

	CPU 1: 2 guaranteed, 1 flexible
	  claim       guaranteed w      4 0x4                -    kgdb
	  claim       guaranteed w      8 0xffffffffffffff00 -    kernel handler()
	  claim       flexible   r      1 0x5                -    perf, opener has exited
	  register 0  guaranteed w      8 0xffffffffffffff00 -    kernel handler()
	  register 1  free

	CPU 10 (offline): 1 guaranteed
	  claim       guaranteed w      8 0xffffffffffffff00 -    kernel, takes 2 registers

	task 5000001 (ledger): 1 guaranteed, 1 flexible
	  any CPU     guaranteed w      2 0x7ffdeadbeef0     -    ptrace, no tracer now
	  any CPU     flexible   rw     4 0x55d0             -    perf 5000456

	task 5000002 (my prog): 1 guaranteed
	  CPU 1       guaranteed x      8 0x401136           -    ptrace 5000077

	CPU 1 is full beside task 5000001 (ledger): a further guaranteed breakpoint of the CPU fails
	CPU 10 is full beside task 5000001 (ledger): a further guaranteed breakpoint of the CPU fails
	task 5000001 (ledger) is full on CPU 1,10: a further guaranteed breakpoint fails there
	task 5000002 (my prog) is full on CPU 1: a further guaranteed breakpoint fails there
	END
}

# The claim of a kernel-wide breakpoint counts on each CPU.
test_slots_of_all_cpus()
{
	{
		echo "class name=any slots=4"
		claim cpu=0 guaranteed
		claim cpu=all guaranteed
		claim "pid=5000001 cpu=any" guaranteed
		claim cpu=all guaranteed
		free_registers 0
	} | grep -v 'slot=[23]' >"$tmp/in"
	slots <"$tmp/in"
	says <<-'END'
	registers of each CPU: 4 for instructions and data; 2 claims of all CPUs, 1 claim of CPUs, 1 of 1 task

	              KIND       TYPE LEN ADDRESS            NAME OWNER
	all CPUs: 2 guaranteed
	  claim       guaranteed w      8 0x1000             -    kgdb
	  claim       guaranteed w      8 0x1000             -    kgdb

	CPU 0: 1 guaranteed
	  claim       guaranteed w      8 0x1000             -    kgdb
	  register 0  free
	  register 1  free

	task 5000001 (some task): 1 guaranteed
	  any CPU     guaranteed w      8 0x1000             -    kgdb

	CPU 0 is full beside task 5000001 (some task): a further guaranteed breakpoint of the CPU fails
	task 5000001 (some task) is full on CPU 0: a further guaranteed breakpoint fails there
	END
	slots --cpu 0 <"$tmp/in"
	status_is 0
	equal "$(grep -c '^all CPUs' "$out")" 1 "sections"
	slots -p 5000001 <"$tmp/in"
	status_is 0
	equal "$(grep -c '^all CPUs' "$out")" 0 "sections"
}

test_slots_without_claims()
{
	{ echo "class name=any slots=4"; free_registers 0; } >"$tmp/in"
	slots <"$tmp/in"
	says <<-'END'
	registers of each CPU: 4 for instructions and data; 0 claims of CPUs, 0 of 0 tasks

	              KIND       TYPE LEN ADDRESS            NAME OWNER
	CPU 0: no claims
	  register 0  free
	  register 1  free
	  register 2  free
	  register 3  free

	END
}

test_slots_of_two_classes()
{
	{
		echo "class name=inst slots=3"
		echo "class name=data slots=2"
		claim "pid=5000001 cpu=any" guaranteed class=data
		claim "pid=5000001 cpu=any" guaranteed class=inst
		claim "pid=5000001 cpu=any" guaranteed class=data
		claim cpu=0 flexible class=inst
		echo "register cpu=0 slot=0 class=inst free"
		claim cpu=0 guaranteed "slot=0 class=data" | sed 's/^claim/register/'
		claim cpu=0 guaranteed slot=1 | sed 's/^claim/register/'
	} >"$tmp/in"
	slots <"$tmp/in"
	says <<-'END'
	registers of each CPU: 3 for instructions, 2 for data; 1 claim of CPUs, 3 of 1 task

	              KIND       CLASS TYPE LEN ADDRESS            NAME OWNER
	CPU 0: 1 flexible
	  claim       flexible   inst  w      8 0x1000             -    kgdb
	  register 1  guaranteed -     w      8 0x1000             -    kgdb
	  register 0  free
	  register 0  guaranteed data  w      8 0x1000             -    kgdb

	task 5000001 (some task): 3 guaranteed
	  any CPU     guaranteed inst  w      8 0x1000             -    kgdb
	  any CPU     guaranteed data  w      8 0x1000             -    kgdb
	  any CPU     guaranteed data  w      8 0x1000             -    kgdb

	CPU 0 is full for data beside task 5000001 (some task): a further guaranteed breakpoint of the CPU fails
	task 5000001 (some task) is full for data: a further guaranteed breakpoint fails
	END
}

test_slots_of_odd_names()
{
	n_task=5000000
	for name in "cpu=7 pid=1 comm=x" "" " two  spaces " "\\n\\\\\\042" ") is full" free \
		    "$(printf 'esc\033[1m')" "$(printf 'tab\t')" "$(printf 'caf\303\251')"; do
		n_task=$((n_task + 1))
		claim "pid=$n_task cpu=any" guaranteed | sed '$s/comm=.*/comm=/' | tr -d '\n'
		echo "$name"
	done >"$tmp/claims"
	echo "class name=any slots=4" | cat - "$tmp/claims" >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	sed -n 's/^task //p' "$out" >"$tmp/heads"
	cat >"$tmp/expected" <<-'END'
	5000001 (cpu=7 pid=1 comm=x): 1 guaranteed
	5000002 (): 1 guaranteed
	5000003 ( two  spaces ): 1 guaranteed
	5000004 (\n\\\042): 1 guaranteed
	5000005 () is full): 1 guaranteed
	5000006 (free): 1 guaranteed
	5000007 (esc?[1m): 1 guaranteed
	5000008 (tab?): 1 guaranteed
	5000009 (caf??): 1 guaranteed
	END
	cmp -s "$tmp/expected" "$tmp/heads" || complain "$(cat "$tmp/heads")"
	equal "$(tail -n 1 "$out" | tr -d ' ')" "" "who is full"
}

# The error in the second line. If a field is there twice, the first one counts.
test_slots_of_malformed_lines()
{
	good="cpu=0 kind=guaranteed class=any weight=1 type=w len=8 addr=0x1 owner=kgdb"
	while IFS='|' read -r message line; do
		printf 'class name=any slots=4\n%s\n' "$line" >"$tmp/in"
		slots <"$tmp/in"
		refused "account, line 2: $message: '"
	done <<-END
	expected class, claim or register|
	expected class, claim or register|garbage
	expected class, claim or register|claims $good
	missing name=|class
	missing slots=|class name=x
	invalid number in slots=|class name=x slots=four
	invalid number in slots=|class name=x slots=
	missing kind=|claim
	missing cpu=|claim kind=guaranteed ${good#cpu=0}
	invalid number in cpu=|claim cpu=any $good
	invalid number in cpu=|claim cpu=-1 $good
	invalid number in cpu=|claim cpu=0x $good
	invalid number in cpu=|claim cpu=99999999999 $good
	invalid number in cpu=|claim pid=1 cpu=all $good comm=x
	unknown value of kind=|claim kind=pinned $good
	unknown value of class=|claim class=data $good
	invalid number in weight=|claim weight=one $good
	unknown value of type=|claim type=wx $good
	missing type=|claim type $good
	invalid number in len=|claim len=+8 $good
	invalid number in addr=|claim addr=0x10000000000000000 $good
	invalid number in addr=|claim addr=jiffies $good
	missing owner=|claim ${good% *}
	missing owner=|claim ${good% *} comm=x owner=kgdb
	missing comm=|claim pid=1 $good
	invalid number in pid=|claim pid=- $good comm=x
	missing slot=|register cpu=0 free
	invalid number in slot=|register cpu=0 slot= free
	missing kind=|register cpu=0 slot=0
	unknown value of type=|register slot=0 type=- $good
	too many fields|register cpu=0 slot=0 a b c d e f g h i j k l m n o p q r s t u v w x y z
	END
	printf 'class name=any slots=4\nregister\0 cpu=0 slot=0 free\n' >"$tmp/in"
	slots <"$tmp/in"
	refused "line 2: contains a NUL character"
	printf 'class name=any slots=4\n\033[1mbold\n' >"$tmp/in"
	slots <"$tmp/in"
	refused "'?\[1mbold'"
	slots </dev/null
	refused "account lists no registers"
}

# Unknown fields, and a last line without a newline
test_slots_of_another_version()
{
	printf 'class name=any slots=4 color=red\nregister  cpu=0  slot=0 new free ' >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	equal "$(section "CPU 0")" "  register 0  free" "registers"
}

test_slots_of_thousands_of_claims()
{
	{
		echo "class name=any slots=4"
		# The lines are not sorted, and the two claims of each task are far
		# apart.
		awk 'BEGIN {
			for (i = 0; i < 8000; i++)
				printf "claim pid=%d cpu=any kind=%s class=any weight=1 type=w " \
					"len=8 addr=%#x owner=perf:%d comm=worker %d\n",
					5000000 + i * 7 % 4000, i % 2 ? "flexible" : "guaranteed",
					4096 + i, 5000000 + i % 10, i * 7 % 4000
			for (i = 0; i < 3000; i++)
				print "claim cpu=1 kind=flexible class=any weight=1 type=w len=8 " \
					"addr=0x1000 owner=perf:-"
		}'
		free_registers 0 1
	} >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	equal "$(head -n 1 "$out" | sed 's/.*; //')" \
	      "3000 claims of CPUs, 8000 of 4000 tasks" "summary"
	equal "$(grep -c '^  claim ' "$out")" 3000 "claims of a CPU"
	equal "$(grep -c '^  any CPU ' "$out")" 8000 "claims of tasks"
	sed -n 's/^task \([0-9]*\) (worker [0-9]*): .*/\1/p' "$out" >"$tmp/pids"
	equal "$(wc -l <"$tmp/pids")" 4000 "tasks"
	sort -n "$tmp/pids" | cmp -s - "$tmp/pids" || complain "the tasks are not sorted"
	full_is ""
}

# Claims, with an "f" for flexible ones, and what is then full: a CPU, a CPU beside the
# task, the task, the task on some CPUs
test_slots_full_cpus_and_tasks()
{
	task="task 5000001 (some task)"
	while IFS='|' read -r claims full; do
		{
			echo "class name=any slots=4"
			for c in $(echo "$claims" | tr , ' '); do
				case $c in
				any*)  holder="pid=5000001 cpu=any" ;;
				on*)   holder="pid=5000001 cpu=${c#on}" ;;
				cpu*)  holder="cpu=${c#cpu}" ;;
				all)   holder="cpu=all" ;;
				esac
				case $c in
				*f)    claim "${holder%f}" flexible ;;
				*)     claim "$holder" guaranteed ;;
				esac
			done
			free_registers 0 1 2
		} >"$tmp/in"
		slots <"$tmp/in"
		full_is "$(for f in $full; do
			case $f in
			task)   echo "$task is full" ;;
			task@*) echo "$task is full on CPU ${f#task@}" ;;
			*+task) echo "CPU ${f%+task} is full beside $task" ;;
			*)      echo "CPU $f is full" ;;
			esac
		done)"
	done <<-'END'
	any,any,any|
	any,any,any,any|0+task 1+task 2+task task
	any,any,any,anyf|0+task 1+task 2+task task
	any,any,anyf,anyf,anyf|
	anyf,anyf,anyf,anyf,anyf|
	any,any,on1,on1|1+task task@1
	on0,on0,on0,on0f,on1,on1,on1,on1,on2|0+task 1+task task@0-1
	on0,on0,on0,on0,on2,on2,on2,on2f|0+task 2+task task@0,2
	any,any,cpu2,cpu2f|2+task task@2
	any,any,cpu2,anyf|2+task task@2
	any,cpu2f,cpu2f,anyf,any|
	cpu1,cpu1,cpu1,cpu1|1
	cpu1,cpu1,cpu1,cpu1f|1
	cpu1,cpu1,cpu1,cpu1,on0|1 task@1
	cpu1,cpu1,cpu1,on0|
	cpu1f,cpu1f,cpu1f,cpu1f,cpu1f|
	all,all,all|
	all,all,all,all|0 1 2
	all,all,all,cpu1f|1
	all,any,any,any|0+task 1+task 2+task task
	all,cpu1,on1,on1|1+task task@1
	END
}

test_slots_restricted()
{
	{
		echo "class name=any slots=4"
		claim cpu=0 guaranteed
		claim cpu=1 guaranteed
		claim "pid=5000001 cpu=any" guaranteed
		claim "pid=5000001 cpu=0" flexible
		claim "pid=5000002 cpu=1" guaranteed
		claim "pid=5000002 cpu=0" guaranteed slot=0 |
			sed 's/^claim/register/; s/some task/a/'
		free_registers 1
	} >"$tmp/in"
	slots --cpu 1 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "CPU 1: 1 guaranteed
task 5000001 (some task): 1 guaranteed
task 5000002 (some task): 1 guaranteed" "sections"
	slots -p 5000002 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "CPU 0
task 5000002 (some task): 1 guaranteed" "sections"
	equal "$(section "CPU 0" | awk '{ print $1, $2, $NF }')" "register 0 (a)" "register"
	slots -p5000001 --cpu=1 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "task 5000001 (some task): 1 guaranteed" "sections"
	slots -p $$ <"$tmp/in"
	status_is 0
	equal "$(grep "^task" "$out")" "task $$: no claims" "sections"
	slots -p 5000003 <"$tmp/in"
	refused "no such process: 5000003"
	slots --cpu 2 <"$tmp/in"
	refused "CPU 2 is not online and has no claims"
}

test_slots_names_addresses()
{
	threads_start 5
	# The second address is beside a label whose size is unknown.
	for place in spare+8:8 __data_start+4:4; do
		run "$hwbp" stat $place -t 0.01 -p $threads
		sed -n 's/.* at \(0x[0-9a-f]*\),.*/\1/p' "$out"
	done >"$tmp/addresses"
	address=$(head -n 1 "$tmp/addresses")
	nameless=$(tail -n 1 "$tmp/addresses")
	jiffies=$(sed -n 's/^\([0-9a-f]*\) . jiffies$/0x\1/p' /proc/kallsyms)
	thread=$(ls "/proc/$threads/task" | tail -n 1)
	g="kind=guaranteed class=any weight=1 type=w len=8"
	f="kind=flexible $g"
	slots <<-END
	class name=any slots=4
	claim cpu=0 $g addr=$jiffies owner=perf:$$
	claim pid=$threads cpu=any $g addr=$address owner=ptrace:$threads comm=threads
	claim pid=$threads cpu=any $f addr=$nameless owner=kgdb comm=threads
	claim pid=$thread cpu=any $g addr=$address owner=kgdb comm=runner
	claim pid=$thread cpu=any $f addr=0x10 owner=kgdb comm=runner
	register cpu=0 slot=0 $g addr=$address owner=kgdb pid=$thread comm=runner
	register cpu=0 slot=1 $f addr=0x10 owner=kgdb pid=$thread comm=runner
	END
	status_is 0
	section "CPU 0" | grep -q "^  claim .* $jiffies  *jiffies[_64]* *perf $$ (.*)$" ||
		complain "$(section "CPU 0")"
	equal "$(section "CPU 0" | awk '$1 == "register" { print $6, $7 }' | xargs)" \
	      "$address spare+0x8 0x10 -" "names of registers"
	equal "$(section "task $threads" | awk '{ print $6, $7, $8, $9, $10 }' |
		sed 's/+0x[0-9a-f]*]/+...]/' | xargs)" \
	      "$address spare+0x8 ptrace $threads (threads) $nameless [threads+...] kgdb" "names"
	equal "$(awk '/OWNER$/ { print index($0, "OWNER") } / ptrace / { print index($0, "ptrace") }' \
		"$out" | uniq | wc -l)" 1 "columns of the owners"
	grep -q "^task $thread (runner), a thread of $threads: 1 guaranteed, 1 flexible$" "$out" ||
		complain "$(grep "^task" "$out")"
	equal "$(section "task $thread" | awk '{ print $6, $7 }' | xargs)" \
	      "$address spare+0x8 0x10 -" "names"
	run "$hwbp" slots --from "$account" -p "$threads"
	equal "$(grep -c "^task" "$out")" 2 "threads of a process"
	threads_finish 20
}

test_slots_cannot_read()
{
	can_list || return
	run "$hwbp" slots --from "$tmp/nothere"
	refused "cannot read '$tmp/nothere': No such file"
	run "$hwbp" slots --from "$tmp"
	refused "cannot read '$tmp': Is a directory"
	run "$programs/as_nobody" "$hwbp" slots
	refused "no permission to read $slots_file: this requires root"
	run unshare -m sh -c "umount -l /sys/kernel/debug; exec '$hwbp' slots"
	refused "debugfs is not mounted (mount -t debugfs none /sys/kernel/debug)"
	run unshare -m sh -c "umount -l /sys; exec '$hwbp' slots"
	refused "/sys/kernel/debug does not exist: .*debugfs, or sysfs is not mounted"
	# A debugfs without the directory of the breakpoint layer
	run unshare -m sh -c "mount --bind /sys/kernel/debug/hw_breakpoint /sys/kernel/debug &&
			      exec '$hwbp' slots"
	refused "this kernel does not list breakpoints: $slots_file does not exist"
}

test_slots_cannot_write()
{
	can_list || return
	status=0
	"$hwbp" slots >/dev/full 2>"$err" </dev/null || status=$?
	: >"$out"
	refused "cannot write the report: No space left on device"
}

test_slots_command_line_errors()
{
	run "$hwbp" slots counter
	refused "unexpected argument 'counter'"
	run "$hwbp" slots -- true
	refused "unexpected argument '--'"
	run "$hwbp" slots -w
	refused_usage "unknown switch .w'"
	run "$hwbp" slots --cpux 1
	refused_usage "unknown option .cpux'"
	run "$hwbp" slots --cpu
	refused_usage "option .cpu' requires a value"
	run "$hwbp" slots --cpu any
	refused "cpu: 'any' is not a CPU number"
	run "$hwbp" slots --cpu=-1
	refused "'-1' is not a CPU number"
	run "$hwbp" slots -p 0
	refused "positive number"
	can_list || return
	run "$hwbp" slots --cpu 4095
	refused "CPU 4095 is not online and has no claims"
}

test_slots_of_this_machine()
{
	can_list || return
	n_slots=$(cat $pmu/caps/data_slots)
	hold_start guaranteed:task flexible:task guaranteed:task@1 guaranteed:cpu@0
	run "$hwbp" slots
	status_is 0
	[ ! -s "$err" ] || complain "message '$(cat "$err")'"
	equal "$(head -n 1 "$out" | sed 's/;.*//')" \
	      "registers of each CPU: $n_slots for instructions and data" "summary"
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
	equal "$(grep "^task" "$out")" "task $holder (a) b: c  =d): 1 guaranteed" "task"
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
	hold_start guaranteed:cpu@1 guaranteed:task guaranteed:task@1 flexible:task@1
	run "$hwbp" slots --cpu 1 -p "$holder"
	full_is "task $holder (hold) is full on CPU 1"
	run "$hwbp" stat held -t 0.01 -p "$holder"
	refused_with_holders
	hold_end
}

# A breakpoint of hwbp watch is claimed on each CPU separately, one of hwbp stat on any
# CPU.
test_slots_while_hwbp_watches()
{
	can_list || return
	threads_start 5
	watch_behind watch total -p $threads
	run "$hwbp" slots -p $threads
	status_is 0
	equal "$(grep -c "^task .* a thread of $threads: " "$out")" 2 "threads with claims"
	what="guaranteed w *8 0x[0-9a-f]* *total *perf [0-9]* (hwbp)"
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		equal "$(grep -c "^  CPU $cpu  *$what$" "$out")" 3 "claims on CPU $cpu"
	done
	kill "$watcher"
	watch_ended
	watch_behind stat spare+16:8 -p $threads
	run "$hwbp" slots -p $threads
	equal "$(grep -c "^  any CPU  *guaranteed w .* spare+0x10 *perf [0-9]* (hwbp)$" "$out")" 3 \
	      "claims for any CPU"
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
	watch_behind stat -x 0x10000 -p $spinner
	for _ in $(seq 100); do
		run "$hwbp" slots -p $spinner
		grep -q "^  register " "$out" && break
	done
	grep -q "^  register [0-9] *guaranteed x *8 0x10000 .* (hwbp), for task $spinner (.*)$" \
		"$out" || complain "$(cat "$out")"
	kill $spinner
	watch_ended
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
	text <<-END
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
	can_listen || return
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
	once bpf text <<-END
	"$programs/load_bpf" </dev/null
	sleep 2
	END
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
	if grep -q "attr.text_area" "$err"; then
		skip="this kernel refuses attr.text_area"
		return
	fi
	for areas in "" --areas; do
		once "bpf$areas" text $areas <<-END
		"$programs/load_bpf" </dev/null
		sleep 2
		END
		status_is 0
		page=$(symbols | awk '/_hwbp_nothing / { print substr($3, 1, 15); exit }')
		# The text is written when the program is loaded, and overwritten when
		# it is freed.
		equal "$(changes | awk -v page="$page" \
			 'substr($3, 1, 15) == page && $5 >= 32' | wc -l)" \
		      "$([ -z "$areas" ] && echo 0 || echo 2)" "changes of the image"
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
	echo function >current_tracer
	echo nop >current_tracer
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
	: >"$report"
	timeout 900 "$hwbp" text -o "$report" >"$out" 2>"$err" &
	watcher=$!
	wait_for "^changes of kernel text" "$report"
	(cd $tracing && eval "$(set_tracer $probed)")
	wait_for " $probed+.* -> e8" "$report"
	(cd $tracing && eval "$clear_tracer")
	kill -TERM $watcher
	watch_ended
	status_is 0
	grep -q "^[0-9]* changes in [0-9]* symbols in " "$report" || complain "$(cat "$report")"
}

test_text_time_limit_and_exit_status()
{
	can_listen || return
	run "$hwbp" text -t 0.2 -- sh -c 'sleep 1; exit 3'
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

test_text_command_line_errors()
{
	run "$hwbp" text schedule
	refused "unexpected argument 'schedule'"
	run "$hwbp" text --
	refused "no command"
	for option in -p -w -x -k -n; do
		run "$hwbp" text $option 1
		refused_usage "unknown switch .${option#-}'"
	done
	run "$hwbp" text -t
	refused_usage "switch .t' requires a value"
	run "$hwbp" text -b 0
	refused "positive number"
	run "$hwbp" text -b 4096
	refused "more than 1024"
	run "$hwbp" text -o /nowhere/report
	refused "cannot write to '/nowhere/report': No such file"
}

# On a kernel without watch events, sets $skip and fails.
can_trace()
{
	skip=
	grep -qs "\[r|w|rw\]@<addr>" $tracing/README || skip="this kernel has no watch events"
	[ -z "$skip" ]
}

test_trace_names_what_is_missing()
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
	equal "$(tail -n 1 "$report")" "3 hits" "sum"
	run "$hwbp" trace --json -n 3 -o "$report" w@jiffies
	status_is 0
	json_has "$report" ""
	json_has "$report" hit time_us tid comm cpu address value instruction
	equal "$(json_types "$report")" "1 end 3 hit" "lines"
	! grep -q hwbp $tracing/dynamic_events || complain "$(cat $tracing/dynamic_events)"
	run "$hwbp" trace w@nothere_
	refused "cannot watch w@nothere_: "
}

test_trace_command_line_errors()
{
	run "$hwbp" trace
	refused "no place to watch"
	run "$hwbp" trace jiffies
	refused "the place is ACCESS@PLACE\[:LEN\], not 'jiffies'"
	run "$hwbp" trace w@jiffies w@x
	refused "unexpected argument 'w@x'"
	run "$hwbp" trace --clear-on a:b w
	refused "--clear-on requires --set-on"
	run "$hwbp" trace --set-on a:b:c w@x
	refused "with --set-on the place is"
}

test_manual_page_has_all_options()
{
	page=
	for dir in "${HWBP_MAN:-}" /usr/share/man/man1; do
		[ -z "$page" ] && [ -n "$dir" ] && [ -r "$dir/hwbp.1" ] && page=$dir/hwbp.1
	done
	if [ -z "$page" ]; then
		skip="the manual page is not installed"
		return
	fi
	sed 's/\\-/-/g' "$page" >"$tmp/page"
	run "$hwbp" --list-verbs
	for verb in $(cat "$out"); do
		grep -q "^[.]B hwbp $verb$" "$tmp/page" || complain "no synopsis of $verb"
		sed -n "/^[.]SS .*Options of.* $verb/,/^[.]S[SH] \"*O[^p]/p" "$tmp/page" >"$tmp/part"
		run "$hwbp" $verb --list-opts
		for option in $(cat "$out"); do
			[ "$option" != --from ] || continue
			grep -q -e "^[.]B.* $option\>" "$tmp/part" || complain "no $option of $verb"
		done
	done
}

# Prints the completions of the last one of the given words.
completed()
{
	bash -c '. /usr/share/bash-completion/completions/hwbp
		 COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hwbp
		 echo "${COMPREPLY[*]}"' bash "$@"
}

test_completion()
{
	if [ ! -r /usr/share/bash-completion/completions/hwbp ] || ! command -v bash >/dev/null; then
		skip="bash or the completion is not installed"
		return
	fi
	equal "$(completed "$hwbp" s)" "stat slots" "verbs"
	equal "$(completed "$hwbp" "")" "watch stat slots text trace --help" "verbs"
	equal "$(completed "$hwbp" watch --ca)" "--callers" "options of watch"
	equal "$(completed "$hwbp" stat --ca)" "" "options of stat"
	equal "$(completed "$hwbp" slots --)" "--pid --cpu --json --help --" "options of slots"
	completed "$hwbp" stat x -p $$ | grep -qw $$ || complain "no process"
	equal "$(completed "$hwbp" slots --cpu 1)" "1" "CPUs"
	equal "$(completed "$hwbp" watch x -- "$programs/tick_s")" "$programs/tick_static" "command"
	equal "$(completed "$hwbp" watch -o "$tmp/once.none")" "" "files"
}

test_instruction_lengths()
{
	run "$programs/access_test"
	status_is 0
	[ ! -s "$out" ] || sed 's/^/# /' "$out"
}

# ---- running the tests -----------------------------------------------------------

# -l lists the tests, -r NAME runs one, as in kselftest_harness.h.
tests=
all=$(sed -n 's/^test_\([a-z0-9_]*\)()$/\1/p' "$0")
while getopts lr: option; do
	case $option in
	l) echo "$all"; exit 4 ;;
	r) tests="$tests $OPTARG" ;;
	*) exit 1 ;;
	esac
done
tests=${tests:-$all}
failed=0
passed=0
skipped=0
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
	skip=
	"test_$t"
	if [ $bad -eq 0 ] && [ -n "$skip" ]; then
		skipped=$((skipped + 1))
		echo "ok $n $t # SKIP $skip"
	elif [ $bad -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $n $t"
	else
		failed=$((failed + 1))
		echo "not ok $n $t"
	fi
done
echo "# Totals: pass:$passed fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ $failed -eq 0 ]
