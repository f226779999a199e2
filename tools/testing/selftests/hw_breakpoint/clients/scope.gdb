# SPDX-License-Identifier: GPL-2.0
# A local variable: the watchpoint goes when its frame does
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
