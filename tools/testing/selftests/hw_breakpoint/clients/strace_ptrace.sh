# SPDX-License-Identifier: GPL-2.0
# A debugger that strace follows: which registers it sets, and what the kernel answers
./target ptrace
echo "exit $?"
strace -o "$tmp/trace" -e trace=ptrace ./target ptrace >/dev/null
cat "$tmp/trace"
