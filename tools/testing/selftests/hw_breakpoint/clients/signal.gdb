# SPDX-License-Identifier: GPL-2.0
# The program has a breakpoint of perf of its own, whose signals are passed on. Those of
# exec and of the breakpoint of gdb are not: they would kill it.
# expect: signals 3
# expect: [Inferior 1 (process PID) exited normally]
break signal_myself
run sigtrap
delete 1
handle SIGTRAP nostop noprint pass
signal 0
