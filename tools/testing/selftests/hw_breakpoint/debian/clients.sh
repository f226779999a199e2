#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# gdb and perf of Debian with the kernel of the package: some of the clients of
# make test-clients must see what they expect.
. "$(dirname "$0")/tap.sh"

clients=/etc/hwbp/clients

# client NAME: each glob after "# expect:" matches a line of its transcript
client()
{
	run "$clients/run" "$1"
	sed -n 's/^# expect: //p' "$clients/$1".* >"$tmp/globs"
	while read -r glob; do
		seen "${glob//\[/\\[}" || { tail -n 20 "$tmp/out" | sed 's/^/# /'; return 1; }
	done <"$tmp/globs"
	test -s "$tmp/globs"
}

# seen GLOB
seen()
{
	while read -r line; do
		# shellcheck disable=SC2053
		[[ $line == $1 ]] && return
	done <"$tmp/out"
	echo "# no line matches: $1"
	return 1
}

run_tests "client watch" "client condition" "client hbreak" "client fork_both" \
	"client perf_stat" "client perf_record" "client perf_test"
