# SPDX-License-Identifier: GPL-2.0
# Watchpoints of bpftrace. The kernel clears the variable in exec; where it does so is
# not the same in two kernels.
# expect: @[*]: 5
# expect: @: 5
# expect: hit by target
target='comm == "target"'
in_user='reg("ip") < 0x500000'
bpftrace -e 'interval:ms:1 { exit(); }' >"$tmp/needs" 2>&1 || {
	echo "SKIP: bpftrace cannot run here: $(tail -n 1 "$tmp/needs")"
	exit
}
trace() { bpftrace "$@" 2>&1 | grep -v '^$'; }
trace -c './target count 5' -e "watchpoint:$counter:8:w /$target && $in_user/ { @[reg(\"ip\")] = count(); }"
trace -c './target count 5' -e "watchpoint:$counter:8:rw /$target/ { @ = count(); }"
trace -c './target count 5' -e "watchpoint:$add_one:8:x /$target/ { @ = count(); }"
trace -c './target steps' -e "watchpoint:$counter:8:w /$target && $in_user/ { printf(\"hit by %s\n\", comm); }"
trace -c './target count 1' -e "watchpoint:$counter:3:w { @ = count(); }"
