# SPDX-License-Identifier: GPL-2.0
# A write watchpoint; the debug registers as gdb wants them
watch counter
info watchpoints
run steps
backtrace 2
continue
maint set show-debug-regs on
continue
maint set show-debug-regs off
info watchpoints
continue
continue
continue
continue
info watchpoints
