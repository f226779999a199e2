# SPDX-License-Identifier: GPL-2.0
# What perf asks for, with the stack of the call, and a program with signals of perf
# expect: perf_event_open({*, bp_type=HW_BREAKPOINT_W, bp_addr=0x*, bp_len=4, *) = 3
# expect: --- SIGTRAP {*si_code=TRAP_PERF, *} ---
# expect: > */target(add_one+*
# expect: signals 3
strace -v -f -o "$tmp/trace" -e trace=perf_event_open perf stat -e mem:$counter:w:u ./target count 1 >/dev/null 2>&1
grep -a bp_addr "$tmp/trace" | sed 's/^[0-9]* *//'
strace -e trace=perf_event_open -e signal=SIGTRAP ./target sigtrap 2>&1
strace -k -e trace=perf_event_open -e signal=SIGTRAP ./target sigtrap 2>&1 |
	grep -E 'target\(|signals|exited'
