# SPDX-License-Identifier: GPL-2.0
# gdb attaches to a program that runs, sets a watchpoint, and leaves it
# expect: Hardware watchpoint 1: counter
# expect: New value = 1
# expect: exit 0
mkfifo "$tmp/lines"
./target wait <"$tmp/lines" >"$tmp/answers" &
pid=$!
exec 8>"$tmp/lines"
until grep -q ready "$tmp/answers"; do sleep 0.1; done
(sleep 2; echo line >&8) &
cat common.gdb - <<COMMANDS | gdb -nx -q ./target
attach $pid
watch counter
continue
backtrace 1
detach
quit
COMMANDS
echo line >&8
exec 8>&-
wait $pid
echo "exit $?"
cat "$tmp/answers"
