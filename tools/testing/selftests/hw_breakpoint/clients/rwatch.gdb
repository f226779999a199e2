# SPDX-License-Identifier: GPL-2.0
# A read watchpoint: gdb sets one for accesses and drops those that changed the value
# expect: Hardware read watchpoint 2: counter
# expect: Value = 2
rwatch sink
rwatch counter
run steps
continue
continue
info watchpoints
