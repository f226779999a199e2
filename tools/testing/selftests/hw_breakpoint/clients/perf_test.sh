# SPDX-License-Identifier: GPL-2.0
# The tests of perf that are about breakpoints
for name in 'Breakpoint overflow signal handler' 'Breakpoint overflow sampling' \
	'Breakpoint accounting' Watchpoint Sigtrap; do
	perf test "$name" 2>&1
done
