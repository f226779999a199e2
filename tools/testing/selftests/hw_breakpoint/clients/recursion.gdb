# SPDX-License-Identifier: GPL-2.0
# Locals of two frames of one function
# expect: New value = 3
# expect: Watchpoint 2 deleted because *
# expect: Watchpoint 3 deleted because *
break recurse if n == 1
run steps
delete 1
watch inner
up
watch inner
continue
continue
continue
continue
continue
continue
