# SPDX-License-Identifier: GPL-2.0
# Hardware breakpoints, a temporary one, and one beside a watchpoint
# expect: Hardware assisted breakpoint 2 at *
# expect: Breakpoint 2, read_back () *
# expect: Temporary breakpoint 3, sizes () *
# expect: breakpoint already hit 3 times
break main
run steps
delete 1
hbreak read_back
thbreak sizes
hbreak recurse
continue
backtrace
continue
continue
watch mirror
continue
continue
info breakpoints
delete
continue
