# SPDX-License-Identifier: GPL-2.0
# Five watchpoints that gdb follows by single steps
# expect: Watchpoint 6: table[4]
# expect: New value = 14
set can-use-hw-watchpoints 0
break four
run steps
delete 1
watch table[0]
watch table[1]
watch table[2]
watch table[3]
watch table[4]
continue
continue
continue
continue
continue
delete
continue
