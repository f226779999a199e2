# SPDX-License-Identifier: GPL-2.0
# A watchpoint is in all threads, those that start later included
# expect: Thread 3 "second" hit Hardware watchpoint 1: counter
# expect: Thread 1 "target" hit Hardware watchpoint 1: counter
# expect: New value = 7
watch counter
run threads
continue
continue
info threads
continue
continue
continue
continue
continue
