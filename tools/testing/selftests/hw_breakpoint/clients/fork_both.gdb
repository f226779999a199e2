# SPDX-License-Identifier: GPL-2.0
# Parent and child both stay with gdb
set detach-on-fork off
set schedule-multiple on
watch counter
run fork
info inferiors
inferior 1
continue
continue
continue
