#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# gdb of Debian with the kernel of the package
. "$(dirname "$0")/tap.sh"

debug()
{
	run gdb -nx -q -batch "$@" $ledger
}

watchpoint_stops_at_a_write()
{
	debug -ex 'watch account.posted' -ex run
	expect '^Hardware watchpoint 1: account.posted$' '^Old value = 0$' '^New value = 1$'
}

condition_of_a_watchpoint_holds()
{
	debug -ex 'watch account.posted if account.posted == 7' -ex run
	expect '^New value = 7$'
}

hardware_breakpoint_stops()
{
	debug -ex 'break main' -ex run -ex 'hbreak account_rename' -ex continue -ex 'backtrace 1'
	expect '^#0  account_rename (name=.*"Ada Lovelace")'
}

program_ends_under_the_debugger()
{
	debug -ex 'watch account.balance if account.balance < -1000000' -ex run
	expect '^ledger: ' 'exited with code 01'
}

run_tests watchpoint_stops_at_a_write condition_of_a_watchpoint_holds \
	hardware_breakpoint_stops program_ends_under_the_debugger
