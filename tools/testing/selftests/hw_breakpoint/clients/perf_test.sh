# SPDX-License-Identifier: GPL-2.0
# The tests of perf that are about breakpoints
# expect: *signal handler *: Ok
# expect: *overflow sampling *: Ok
# expect: *accounting *: Ok
# expect: *Write Only Watchpoint *: Ok
# expect: *Modify Watchpoint *: Ok
# expect: *Sigtrap *: Ok
for name in 'Breakpoint overflow signal handler' 'Breakpoint overflow sampling' \
	'Breakpoint accounting' Watchpoint Sigtrap; do
	perf test "$name" 2>&1
done
