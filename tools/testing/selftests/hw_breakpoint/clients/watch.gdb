# SPDX-License-Identifier: GPL-2.0
# A write watchpoint; the debug registers as gdb wants them
# expect: DR0: addr=0x*404100, ref.count=1
# expect: New value = 6
# expect: breakpoint already hit 6 times
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
