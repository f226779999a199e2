# SPDX-License-Identifier: GPL-2.0
# The parent is followed, its child is not stopped
# expect: [Detaching after fork from child process PID]
# expect: New value = 2
watch counter
run fork
continue
continue
