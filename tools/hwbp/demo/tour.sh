#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A tour of hwbp: find the bug in a program.
#
# Requires hwbp in PATH and the program "ledger" in the directory of this script. The
# last line names the function with the bug; the exit status is 0 only if exactly one
# function was found.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
ledger=$here/ledger
report=$(mktemp)
trap 'rm -f "$report"' EXIT

say()
{
	printf '%s\n' "$@"
}

# Print the column titles and the hits around the first one by other code than the
# account_*() functions.
some_hits()
{
	awk '/^ +TIME/ { print }
	     /^ *HITS/ { exit }
	     $1 ~ /^[0-9]+\.[0-9]+$/ {
		if (!found)
			for (i = 1; i < 4; i++)
				before[i] = before[i + 1]
		before[4] = $0
		if (!found && $5 !~ /^account_/) {
			found = 1
			for (i = 1; i <= 4; i++)
				if (before[i] != "")
					print before[i]
		} else if (found && ++after <= 3) {
			print
		}
	     }' "$report"
}

# Print function and source line of each writer that is not an account_*() function.
culprits()
{
	awk '/^ *HITS/ { counts = 1; next }
	     counts && $2 ~ /%$/ && $3 !~ /^account_/ {
		sub(/\+.*/, "", $3)
		print "culprit: " $3 "() at " $NF
	     }' "$report"
}

say "" \
    "In this program several threads post entries to an account, and another thread" \
    "renames the account now and then. Only the functions account_deposit()," \
    "account_withdraw() and account_charge_fee() change the counter of entries, and" \
    "they hold a lock. Yet the counter is wrong at the end:" \
    "" \
    "\$ ledger"
"$ledger" && wrong=0 || wrong=$?
if [ "$wrong" -ne 1 ]; then
	say "tour: the ledger did not show its bug (status $wrong)" >&2
	exit 1
fi

say "" \
    "Some other code writes to the counter. hwbp lets the processor watch it in all" \
    "threads of the same program, which runs at full speed between the writes:" \
    "" \
    "\$ hwbp watch -w account.posted -o report -- ledger"
hwbp watch -w account.posted -o "$report" -- "$ledger" && wrong=0 || wrong=$?
if [ "$wrong" -ne 1 ]; then
	say "tour: hwbp ended with status $wrong instead of the ledger's 1" >&2
	exit 1
fi

say "" \
    "Each write was reported when it happened, with the counter before and after it." \
    "These are the writes around the first one that was not made by an account_*()" \
    "function:" \
    ""
some_hits

say "" \
    "The end of the report has the counts per instruction:" \
    ""
sed -n '/ hits\{0,1\} at /,$p' "$report"

say "" \
    "Three of these instructions are in account_*() functions. The other one should" \
    "write only to account.label, which precedes the counter in memory, but writes" \
    "one byte too many when a name fills the label." \
    ""
culprits >"$report.culprit"
found=$(wc -l <"$report.culprit")
cat "$report.culprit"
rm -f "$report.culprit"
[ "$found" -eq 1 ]
