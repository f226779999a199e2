# SPDX-License-Identifier: GPL-2.0
# A read watchpoint: gdb sets one for accesses and drops those that changed the value
rwatch sink
rwatch counter
run steps
continue
continue
info watchpoints
