#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# perf of Debian with the kernel of the package
. "$(dirname "$0")/tap.sh"

target=/etc/hwbp/clients/target
counter=$($target address counter)

stat_counts_each_write()
{
	run perf stat -x, -e "mem:$counter:w:u" $target count 5 && expect "^5,,mem:$counter:w:u,"
}

record_has_a_sample_of_each_write()
{
	run perf record -q -c 1 -e "mem:$counter:w:u" -o "$tmp/data" $target count 5 &&
		run perf script -i "$tmp/data" -F comm,ip,sym &&
		test "$(grep -c 'target.* add_one$' "$tmp/out")" = 5
}

tests_of_perf_pass()
{
	run perf test 'Breakpoint accounting' && expect ': Ok$' && ! grep FAILED "$tmp/out" &&
		run perf test Watchpoint && expect ': Ok$' && ! grep FAILED "$tmp/out"
}

run_tests stat_counts_each_write record_has_a_sample_of_each_write tests_of_perf_pass
