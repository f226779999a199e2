# SPDX-License-Identifier: GPL-2.0
# An access watchpoint: reads and writes
# expect: Hardware access (read/write) watchpoint 1: counter
# expect: Value = 3
# expect: New value = 4
awatch counter
run steps
continue
continue
continue
continue
continue
continue
continue
delete 1
continue
