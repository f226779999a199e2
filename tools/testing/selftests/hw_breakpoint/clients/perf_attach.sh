# SPDX-License-Identifier: GPL-2.0
# Counting in a program that runs
# expect: 2,mem:*
# expect: exit 0
mkfifo "$tmp/lines"
./target wait <"$tmp/lines" >"$tmp/answers" &
pid=$!
exec 8>"$tmp/lines"
until grep -q ready "$tmp/answers"; do sleep 0.1; done
perf stat -x, -e mem:$counter:w:u -p $pid sh -c '
	echo line >&8; echo line >&8; until grep -q 2 "$1"; do sleep 0.1; done' sh "$tmp/answers" 2>&1 |
	cut -d, -f1,3
perf stat -x, -e mem:$counter:w:u -p $pid -C 0,1 true 2>&1 | cut -d, -f1,3
exec 8>&-
wait $pid
echo "exit $?"
