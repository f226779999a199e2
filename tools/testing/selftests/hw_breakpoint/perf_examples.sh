#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run the example programs of Documentation/userspace-api/hw_breakpoint.rst, one of which
# is in samples/hw_breakpoint/, and check what they print. Runs as root: example_text_poke
# records all CPUs.
#
# Arguments are names of tests to run instead of all; -l lists the names.

set -u

dir=$(dirname "$0")
tests="count sample value sigtrap modify process race no_race flexible text_poke"
bad=0

complain()
{
	bad=1
	echo "# $*"
}

# The output is exactly $1.
prints()
{
	[ "$out" = "$1" ] || complain "output '$out' instead of '$1'"
}

# For the output of the example, the awk program $1 prints $2.
counts()
{
	n=$(echo "$out" | awk "$1")
	[ "$n" = "$2" ] || complain "'$n' instead of '$2' for the output: $out"
}

check_count()
{
	prints "10 writes"
}

# Three writes by one thread, at increasing addresses
check_sample()
{
	counts '$1 == "thread" && (!n || $2 == tid && $5 > ip) { n++; tid = $2; ip = $5 }
		END { print n + 0, NR }' "3 3"
}

# Each change by another thread, and none of the stores that change nothing
check_value()
{
	counts '$1 == "thread" && !seen[$2]++ { all = all $5 $6 $7 " " } END { print all NR }' \
		"100->90 90->70 70->40 3"
}

check_sigtrap()
{
	prints "1 signal, data 42
2 signals, address is that of counter"
}

check_modify()
{
	prints "1 write to first
3 writes in total"
}

check_process()
{
	prints "10 writes by 10 threads"
}

check_race()
{
	prints "race in account 37"
}

check_no_race()
{
	prints "no race"
}

check_flexible()
{
	counts '$1 == "word" && $4 > 0 && $6 > 0 { n++ } END { print n + 0, NR }' "16 16"
}

# At least one instruction is changed and changed back.
check_text_poke()
{
	counts '$3 == "->" { changed[$1 $2 $4] = 1; if (changed[$1 $4 $2]) n = "both ways" }
		END { print n }' "both ways"
}

# This limit ends a program that hangs. All together have 300 seconds.
run_program()
{
	out=$(timeout 100 "$dir/$program" ${argument:+"$argument"} 2>&1) || status=$?
	[ $status -eq 0 ] || complain "exit status $status"
}

if [ "${1-}" = -l ]; then
	printf '%s\n' $tests
	exit 0
fi
[ $# -eq 0 ] || tests=$*

fail=0
i=0
echo "TAP version 13"
echo "1..$(echo $tests | wc -w)"
for t in $tests; do
	i=$((i + 1))
	bad=0
	status=0
	program=example_$t
	argument=
	case $t in
	race)
		program=find_race
		;;
	no_race)
		program=find_race
		argument=none
		;;
	esac
	run_program
	# The race is found by chance: 60 runs took 5 to 523 of the 1000 watches of a run.
	for _ in 1 2 3 4; do
		[ $t = race ] && [ "$out" = "no race" ] || break
		run_program
	done
	check_$t
	if [ $bad -eq 0 ]; then
		echo "ok $i $t"
	else
		echo "not ok $i $t"
		fail=1
	fi
done
exit $fail
