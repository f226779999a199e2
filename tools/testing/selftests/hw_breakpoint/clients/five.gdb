# SPDX-License-Identifier: GPL-2.0
# One watchpoint more than there are registers: gdb says so, and goes on with four
# expect: You may have requested too many hardware breakpoints/watchpoints.
# expect: New value = 13
# expect: Hardware watchpoint 8: counter
break four
run steps
delete 1
watch table[0]
watch table[1]
watch table[2]
watch table[3]
watch table[4]
continue
info watchpoints
delete 6
continue
continue
continue
continue
info watchpoints
watch counter
continue
delete 2
watch counter
continue
continue
continue
