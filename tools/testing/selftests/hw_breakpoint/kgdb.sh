#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Hardware breakpoints of the kernel debugger, by its own tests: kgdbts sets them
# through the gdb protocol, runs into them and takes them away again.

PARAM=/sys/module/kgdbts/parameters/kgdbts

# All four are seen in one run of kgdbts: none can be chosen.
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

# While others patch text the debugger cannot set its software breakpoints, and
# kgdbts takes that for a failure: let static keys settle, and step only once (I1).
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

# check NUMBER NAME TEXT: the log has TEXT
check()
{
	if echo "$log" | grep -q "$3"; then
		echo "ok $1 $2"
	else
		echo "not ok $1 $2"
		fail=1
	fi
}

check 1 "the debugger's instruction breakpoint fires" "kgdbts:RUN hw write breakpoint test"
check 2 "the debugger's write watchpoint fires" "kgdbts:RUN access write breakpoint test"
check 3 "the debugger's access watchpoint fires" "kgdbts:RUN plant and detach test"
if echo "$log" | grep -q "kgdbts: ERROR\|hw breakpoint.*[Ff]ail" ||
   ! echo "$log" | grep -q "Unregistered I/O driver kgdbts"; then
	echo "$log" | sed 's/^/# /'
	echo "not ok 4 all tests of the debugger end well"
	fail=1
else
	echo "ok 4 all tests of the debugger end well"
fi
exit $fail
