# SPDX-License-Identifier: GPL-2.0
# An access watchpoint: reads and writes
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
