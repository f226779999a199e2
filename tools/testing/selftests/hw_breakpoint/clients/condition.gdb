# SPDX-License-Identifier: GPL-2.0
# Conditions, counts and commands of watchpoints and breakpoints
# expect: counter is 3
# expect: Breakpoint 3, recurse (n=1) at *
break main
run steps
delete 1
watch counter if counter == 3
hbreak recurse if n == 1
watch mirror
watch table[2]
ignore 5 1
commands 2
silent
printf "counter is %ld\n", counter
end
continue
info breakpoints
continue
continue
backtrace 3
continue
continue
