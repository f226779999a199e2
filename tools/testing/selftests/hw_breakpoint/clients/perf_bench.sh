# SPDX-License-Identifier: GPL-2.0
# The benchmark of perf opens breakpoints in many threads
# expect: # Created/joined 10 threads with 2 breakpoints and 8 parallelism
# expect: # Enabled/disabled breakpoint 10 time with 4 passive and 2 active threads
perf bench breakpoint thread -p 8 -t 4 -b 2 2>&1 | grep -v usecs
perf bench breakpoint enable -p 4 -a 2 2>&1 | grep -v usecs
