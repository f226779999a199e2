#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The tour: hwbp finds the bug of a program.
#
# Requires hwbp in PATH and the program "ledger" in the directory of this script. The
# last line names the culprit; the exit status is 0 only if exactly one was found.

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
    "A ledger is kept by several threads. Tellers post entries to an account, a" \
    "clerk renames the account now and then. Only the functions account_deposit()," \
    "account_withdraw() and account_charge_fee() change its counter of entries, and" \
    "they hold a lock. Yet the counter comes out wrong:" \
    "" \
    "\$ ledger"
"$ledger" && wrong=0 || wrong=$?
if [ "$wrong" -ne 1 ]; then
	say "tour: the ledger did not show its bug (status $wrong)" >&2
	exit 1
fi

say "" \
    "Who else writes it? Let the processor watch the counter while the same program" \
    "runs, all threads of it, at full speed:" \
    "" \
    "\$ hwbp watch -w account.posted -o report -- ledger"
hwbp watch -w account.posted -o "$report" -- "$ledger" && wrong=0 || wrong=$?
if [ "$wrong" -ne 1 ]; then
	say "tour: hwbp ended with status $wrong instead of the ledger's 1" >&2
	exit 1
fi

say "" \
    "Each write was reported as it came. A few of them, around the first one that" \
    "was not made by the counter's owners:" \
    ""
some_hits

say "" \
    "And the counts per instruction, at the end of the report:" \
    ""
sed -n '/ hits\{0,1\} at /,$p' "$report"

say "" \
    "Three writers are the owners of the counter. The other one has no business" \
    "there: it writes account.label, the neighbour of the counter, and goes one byte" \
    "too far when a name fills the label." \
    ""
culprits >"$report.culprit"
found=$(wc -l <"$report.culprit")
cat "$report.culprit"
rm -f "$report.culprit"
[ "$found" -eq 1 ]
