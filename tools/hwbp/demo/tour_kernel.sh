#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A tour of hwbp trace: find the kernel code that corrupts one object of thousands.
#
# Requires hwbp in PATH, root, and the module samples/hw_breakpoint/watched_objects
# of the running kernel. The last line names the function with the bug; the exit status
# is 0 only if exactly one function was found.

set -eu

tracing=/sys/kernel/tracing
objects=/lib/modules/$(uname -r)/kernel/samples/hw_breakpoint/watched_objects.ko
corrupt=/sys/module/watched_objects/parameters/corrupt
report=$(mktemp)
trap 'rm -f "$report"; rmmod watched_objects 2>/dev/null || :' EXIT

say()
{
	printf '%s\n' "$@"
}

# Wait until the watch event of the process $1 is enabled.
wait_enabled()
{
	local file=$tracing/instances/hwbp_$1/events/hwbp/trace_$1/enable tries=100

	until grep -q 1 "$file" 2>/dev/null; do
		tries=$((tries - 1))
		if [ $tries -eq 0 ] || ! kill -0 "$1"; then
			say "tour: hwbp trace did not start" >&2
			exit 1
		fi
		sleep 0.1
	done
}

[ -e $tracing/dynamic_events ] || mount -t tracefs none $tracing

say "" \
    "A module of the kernel makes ten thousand objects of 24 bytes. No code should" \
    "write their last member, \"state\", at offset 16, but in one object it is set:" \
    "" \
    "# insmod watched_objects.ko" \
    "# echo 10000 > $corrupt" \
    "# dmesg | tail -n 1"
insmod "$objects"
echo 10000 >$corrupt
dmesg | tail -n 1

say "" \
    "The corrupt object is number 5000. Its address is known only after its" \
    "allocation, so the event of the allocation makes all CPUs watch the address, and" \
    "the event of the release ends the watch:" \
    "" \
    "# hwbp trace -n 1 --object 'watched_objects:object_alloc:ptr if id == 5000' \\" \
    "             --clear-on watched_objects:object_free:ptr w+16:8 &" \
    "# echo 10000 > $corrupt"
hwbp trace -n 1 --object 'watched_objects:object_alloc:ptr if id == 5000' \
	--clear-on watched_objects:object_free:ptr w+16:8 >"$report" &
pid=$!
wait_enabled $pid
echo 10000 >$corrupt
wait $pid
cat "$report"

say "" \
    "Only this object was watched, and only one function wrote to its state:" \
    ""
sed -n 's/.* -> [^ ]* *\([a-z_]*\)+.*\[watched_objects\].*/culprit: \1() of watched_objects/p' \
	"$report" >"$report.culprit"
found=$(wc -l <"$report.culprit")
cat "$report.culprit"
rm -f "$report.culprit"
[ "$found" -eq 1 ]
