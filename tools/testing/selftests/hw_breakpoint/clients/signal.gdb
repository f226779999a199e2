# SPDX-License-Identifier: GPL-2.0
# The program has a breakpoint of perf of its own, whose signals are passed on
handle SIGTRAP nostop noprint pass
run sigtrap
