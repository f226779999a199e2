# SPDX-License-Identifier: GPL-2.0
# Hardware breakpoints, a temporary one, and one beside a watchpoint
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
