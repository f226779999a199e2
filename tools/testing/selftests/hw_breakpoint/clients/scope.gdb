# SPDX-License-Identifier: GPL-2.0
# A local variable: the watchpoint goes when its frame does
# expect: New value = 6
# expect: Watchpoint 2 deleted because *
# expect: No watchpoints.
break mark if number == 1
run steps
delete 1
finish
watch local
info watchpoints
continue
continue
continue
continue
info watchpoints
continue
