# SPDX-License-Identifier: GPL-2.0
# A watchpoint for one thread alone
# expect: Thread 2 "first" hit Hardware watchpoint 2: counter
# expect: New value = 2
# expect: Thread-specific breakpoint 2 deleted *
break thread
run threads
delete 1
watch counter thread 2
info watchpoints
continue
continue
continue
