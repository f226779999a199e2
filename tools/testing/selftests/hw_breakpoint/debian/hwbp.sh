#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The package hwbp, with its demo as the program that is watched.
. "$(dirname "$0")/tap.sh"

watch_finds_the_writer()
{
	run hwbp watch -w account.posted -- $ledger
	expect '^ledger: .* WRONG$' ' copy_label+0x[0-9a-f]*  *.*ledger.c:78$' \
		' account_deposit+0x[0-9a-f]*  *.*ledger.c:51$'
}

stat_counts()
{
	run hwbp stat account.posted -- $ledger
	expect '^[1-9][0-9]* hits; threads ran '
}

json_has_the_function()
{
	run hwbp watch --json -w account.posted -- $ledger
	expect '"copy_label'
}

slots_show_a_breakpoint_of_perf()
{
	local tries=50 shown=1

	perf stat -e mem:0x1000:w:u sleep 60 >/dev/null 2>&1 &
	while [ $((tries -= 1)) -gt 0 ] && [ $shown = 1 ]; do
		run hwbp slots
		grep -q 'perf [0-9]* (perf)' "$tmp/out" && shown=0 || sleep 0.1
	done
	kill $!
	wait
	[ $shown = 0 ] || expect 'perf [0-9]* (perf)'
}

trace_finds_the_writer_of_a_variable_of_the_kernel()
{
	run timeout 60 hwbp trace -n 5 w@jiffies
	expect ' -> 0x[0-9a-f]*  [a-z0-9_]*+0x' '^5 hits$'
}

page_of_the_manual_is_installed()
{
	zcat /usr/share/man/man1/hwbp.1.gz >"$tmp/out" && expect '^.TH .*[Hh][Ww][Bb][Pp]'
}

verbs_are_completed()
{
	. /usr/share/bash-completion/completions/hwbp
	complete -p hwbp >"$tmp/out" && expect 'hwbp$'
}

tour_of_the_demo_names_the_culprit()
{
	run /usr/lib/hwbp/demo/tour.sh && expect '^culprit: copy_label() at '
}

unprivileged_user_watches_an_own_program()
{
	run setpriv --reuid nobody --regid nogroup --clear-groups \
		hwbp watch -w account.posted -- $ledger
	expect ' copy_label+0x[0-9a-f]*  *.*ledger.c:78$'
}

run_tests watch_finds_the_writer stat_counts json_has_the_function \
	slots_show_a_breakpoint_of_perf trace_finds_the_writer_of_a_variable_of_the_kernel \
	page_of_the_manual_is_installed verbs_are_completed tour_of_the_demo_names_the_culprit \
	unprivileged_user_watches_an_own_program
