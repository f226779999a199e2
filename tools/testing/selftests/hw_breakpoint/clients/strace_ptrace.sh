# SPDX-License-Identifier: GPL-2.0
# A debugger that strace follows: which registers it sets, and what the kernel answers
# expect: hits 4, exit 0
# expect: ptrace(PTRACE_POKEUSER, PID, offsetof(struct user, u_debugreg)+56, 0x990005) = 0
# expect: ptrace(PTRACE_POKEUSER, *) = -1 EINVAL (Invalid argument)
./target ptrace
echo "exit $?"
strace -o "$tmp/trace" -e trace=ptrace ./target ptrace >/dev/null
cat "$tmp/trace"
