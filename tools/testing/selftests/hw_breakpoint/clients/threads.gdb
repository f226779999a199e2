# SPDX-License-Identifier: GPL-2.0
# A watchpoint is in all threads, those that start later included
watch counter
run threads
continue
continue
info threads
continue
continue
continue
continue
continue
