#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# wprobe.sh [storm|other]: run the tests of watch events (*wprobe*.tc): all, only those
# that need many CPUs, or only the others.

cd "$(dirname "$0")" || exit 1
events=/sys/kernel/tracing/events

# Before each test ftracetest opens the trigger and filter files of all events. The tests
# of watch events use only events that they create, and those of kmem. In a mount namespace
# of its own an empty directory hides each other system of more than a few events.
hide_events()
{
	for system in $events/*/; do
		[ "$system" != $events/kmem/ ] || continue
		set -- "$system"*/
		[ $# -lt 5 ] || mount -t tmpfs none "$system" || return 0
	done
}

if [ "${WPROBE_MOUNTS-}" = own ]; then
	hide_events
elif unshare -m true 2>/dev/null; then
	WPROBE_MOUNTS=own exec unshare -m "$(pwd)/wprobe.sh" "$@"
fi
case ${1-} in
storm)
	set -- -name '*wprobe-storm.tc' ;;
other)
	set -- -name '*wprobe*.tc' ! -name '*wprobe-storm.tc' ;;
*)
	set -- -name '*wprobe*.tc' ;;
esac
# A kernel with lockdep is slow, and prints the same. Errors of the syntax stay: kmemleak
# looks at what they leave. The times of slots are too short there.
[ ! -e /proc/lockdep ] || set -- "$@" ! -name '*hwbp*' ! -name '*console*' ! -name '*_hits*' \
	! -name '*-slots.tc'
exec ./ftracetest --ktap -v $(find test.d "$@" | sort)
