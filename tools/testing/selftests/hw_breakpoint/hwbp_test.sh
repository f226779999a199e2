#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Common part of the tests of hwbp. A file of tests sources this one, defines
# functions test_NAME, and ends with run_tests "$@".
#
# Requires hwbp in PATH, or its path in $HWBP, and its test programs in one of the
# directories below, or in $HWBP_TESTS. Runs as root: some tests drop privileges.

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
# A test whose program has ended fails, but the shell goes on.
trap : PIPE

# The first perf event that is opened and the last one that is closed switch static keys
# of the scheduler. An event that stays open avoids this for each command, and failures
# of emulators that sometimes execute patched code wrongly.
hold_an_event()
{
	start_on_fifo held "$hwbp" stat total -- "$programs/threads" 1
	exec 8>"$tmp/held.fifo"
	wait_for ready "$tmp/held" "$started"
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

# Runs hwbp in the background; $watcher is its process.
watch_start()
{
	: >"$report"
	timeout 900 "$hwbp" "$@" -o "$report" >"$out" 2>"$err" &
	watcher=$!
}

# The same, and waits until the report begins.
watch_in_background()
{
	watch_start "$@"
	wait_for " of .*(pid " "$report" "$watcher"
}

# Prints the process ID of hwbp itself: some versions of timeout(1) start the command as a
# child, others become the command.
hwbp_pid()
{
	cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v pid="$watcher" '$2 == "(hwbp)" && ($1 == pid || $4 == pid) { print $1 }'
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
# $1: where no register is available.
refused_with_holders()
{
	status_is 125
	grep -q "^hwbp: .*no debug register available ${1:-in process [0-9]*}" "$err" ||
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

# Waits until $1 is in the file $2, which the process $3 writes, if it is given.
wait_for()
{
	for _ in $(seq 3000); do
		writes=true
		[ -z "${3:-}" ] || kill -0 "$3" 2>/dev/null || writes=false
		grep -q "$1" "$2" 2>/dev/null && return
		$writes || break
		sleep 0.1
	done
	complain "'$1' did not appear in $2: $(cat "$2" "$err" 2>/dev/null)"
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
	start_on_fifo threads "$programs/$@"
	threads=$started
	exec 9>"$tmp/threads.fifo"
	wait_for ready "$tmp/threads" "$threads"
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

# More places than there are registers
places="many.a many.b many.c many.d many.e many.f"

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

# On a machine with one CPU, sets $skip and fails.
has_two_cpus()
{
	skip=
	[ "$(nproc)" -gt 1 ] || skip="there is one CPU"
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
	wait_for . "$tmp/holds" "$holder"
	equal "$(cat "$tmp/holds")" ready "claims of a program"
}

hold_end()
{
	exec 7>&-
	wait "$holder"
}

# ---- running the tests -----------------------------------------------------------

# Runs the tests of the file. As in kselftest_harness.h, -l lists them and -r NAME runs
# one of them.
run_tests()
{
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
	[ -n "${no_events:-}" ] || hold_an_event
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
}
