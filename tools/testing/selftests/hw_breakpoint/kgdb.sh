#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Hardware breakpoints of the kernel debugger, with its own tests: kgdbts sets them
# through the gdb protocol, hits them and removes them.

PARAM=/sys/module/kgdbts/parameters/kgdbts

# One run of kgdbts contains all four tests: none can be selected.
[ "${1-}" != -l ] || exit 4

echo "TAP version 13"
echo "1..4"

# skip REASON
skip()
{
	for i in 1 2 3 4; do
		echo "ok $i test $i # SKIP $1"
	done
	exit 4
}

[ -w "$PARAM" ] || skip "no kgdbts in this kernel"
[ ! -e /proc/lockdep ] || skip "lockdep objects to the debugger's software breakpoints"

# While other code patches text the debugger cannot set its software breakpoints, which
# kgdbts reports as a failure. So wait until static keys have been switched, and
# single-step only once (I1).
sleep 3
dmesg -c > /dev/null
echo V1I1 > "$PARAM"
i=0
while [ $i -lt 600 ] && ! dmesg | grep -q "Unregistered I/O driver kgdbts"; do
	sleep 0.5
	i=$((i + 1))
done
log=$(dmesg)
fail=0

# check NUMBER NAME TITLE TEST: TEST of kgdbts ran, with this title, and did not fail
check()
{
	if echo "$log" | grep -q "kgdbts:RUN $3" && ! echo "$log" | grep -q "kgdbts: ERROR $4"; then
		echo "ok $1 $2"
	else
		echo "not ok $1 $2"
		fail=1
	fi
}

check 1 "the debugger's instruction breakpoint fires" "hw breakpoint test" hw_breakpoint_test
check 2 "the debugger's write watchpoint fires" "hw write breakpoint test" hw_write_break_test
check 3 "the debugger's access watchpoint fires" "access write breakpoint test" hw_access_break_test
if echo "$log" | grep -q "kgdbts: ERROR\|hw breakpoint.*[Ff]ail" ||
   ! echo "$log" | grep -q "Unregistered I/O driver kgdbts"; then
	echo "$log" | sed 's/^/# /'
	echo "not ok 4 all tests of the debugger end well"
	fail=1
else
	echo "ok 4 all tests of the debugger end well"
fi
exit $fail
