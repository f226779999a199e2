# SPDX-License-Identifier: GPL-2.0
set confirm off
set pagination off
set width 0
set debuginfod enabled off
set trace-commands on
set print thread-events off
