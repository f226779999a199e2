# SPDX-License-Identifier: GPL-2.0
# Replaces text that differs between two runs on one kernel: numbers of processes, times,
# and addresses that the kernel or the linker of the program chooses.
s/(process|LWP|pid|PID|Process) [0-9]+/\1 PID/g
s/^(\(gdb\) \+attach) [0-9]+/\1 PID/
s/\((LWP|process) [0-9]+\)/(\1 PID)/g
s/ptrace\((PTRACE_[A-Z]+), [0-9]+/ptrace(\1, PID/g
s/\[pid +[0-9]+\]/[pid PID]/g
s/si_pid=[0-9]+/si_pid=PID/g
s/si_([us])time=[0-9]+/si_\1time=TIME/g
s/0x0*[1-9a-f][0-9a-f]{8,15}/0xADDRESS/g
s/\b0*[1-9a-f][0-9a-f]{10,15}\b/ADDRESS/g
s/perf_event_open\(\{(.*)\}, [1-9][0-9]*, /perf_event_open({\1}, PID, /
s/[0-9]+\.[0-9]+ (seconds|sec|msec|\[sec\])/TIME \1/g
s/[ \t]+$//
