#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# wprobe.sh: run the tests of watch events (*wprobe*.tc).

cd "$(dirname "$0")" || exit 1
syscalls=/sys/kernel/tracing/events/syscalls

# Before each test ftracetest opens the trigger and filter files of all events. More than
# half of them are events of system calls, which no test of watch events uses. In a mount
# namespace of its own an empty directory hides them.
if [ "${WPROBE_MOUNTS-}" = own ]; then
	[ ! -d $syscalls ] || mount -t tmpfs none $syscalls || :
elif unshare -m true 2>/dev/null; then
	WPROBE_MOUNTS=own exec unshare -m "$(pwd)/wprobe.sh"
fi
exec ./ftracetest --ktap -v $(find test.d -name '*wprobe*.tc' | sort)
