# SPDX-License-Identifier: GPL-2.0
# The child is followed
# expect: Thread 2.1 "target" hit Hardware watchpoint 1: counter
# expect: New value = 3
set follow-fork-mode child
watch counter
run fork
continue
continue
continue
