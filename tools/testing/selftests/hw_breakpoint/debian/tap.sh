# SPDX-License-Identifier: GPL-2.0
# Runs tests that are shell functions, and prints TAP. Sourced.
set -u

ledger=/usr/lib/hwbp/demo/ledger
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# expect PATTERN...: each is a basic regular expression that a line of $tmp/out matches
expect()
{
	for pattern; do
		grep -q -- "$pattern" "$tmp/out" && continue
		echo "# no line matches: $pattern"
		sed 's/^/#   /' "$tmp/out" | tail -n 20
		return 1
	done
}

# run COMMAND...: writes the output of the command to $tmp/out, and returns its status.
run()
{
	"$@" >"$tmp/out" 2>&1 </dev/null
}

# run_tests NAME...: functions with status 0 if the test passes
run_tests()
{
	number=0 bad=0
	echo "TAP version 13"
	echo "1..$#"
	for name; do
		number=$((number + 1)) result=ok
		$name || { result="not ok"; bad=1; }
		echo "$result $number $name"
	done
	return $bad
}
