# SPDX-License-Identifier: GPL-2.0
# Parent and child both stay with gdb
# expect: [Inferior 2 (process PID) exited normally]
# expect: Thread 1.1 "target" hit Hardware watchpoint 1: counter
# expect: New value = 2
set detach-on-fork off
set schedule-multiple on
watch counter
run fork
info inferiors
inferior 1
continue
continue
continue
