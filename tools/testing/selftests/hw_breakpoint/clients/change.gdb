# SPDX-License-Identifier: GPL-2.0
# Watchpoints that are disabled, enabled, deleted and set again between two stops
# expect: Hardware watchpoint 4: pair.second
# expect: New value = 5
# expect: breakpoint already hit 3 times
watch counter
watch mirror
run steps
disable 1
enable 1
continue
disable 1
delete 2
watch mirror
continue
enable 1
watch pair.second
continue
continue
info watchpoints
