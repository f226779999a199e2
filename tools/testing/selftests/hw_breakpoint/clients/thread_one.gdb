# SPDX-License-Identifier: GPL-2.0
# A watchpoint for one thread alone
break thread
run threads
delete 1
watch counter thread 2
info watchpoints
continue
continue
continue
