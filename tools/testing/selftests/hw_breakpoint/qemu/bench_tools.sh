#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The part of bench_tools that runs in the machine: bench_tools.sh ADDRESS WRITES

address=$1
all=$2
tally=/usr/share/hwbp/tests/tally
tmp=$(mktemp -d)
export LD_LIBRARY_PATH=/tools/lib PYTHONHOME=/tools PYTHONDONTWRITEBYTECODE=1 TERM=dumb

cat >"$tmp/gdb" <<-'END'
	set pagination off
	set confirm off
	break main
	run
	watch tally
	commands
	silent
	continue
	end
	continue
END

# time_of WRITES SHARE HITS COMMAND...: nanoseconds that a command takes to see the writes: the
# least of three runs, because the host has other work. Runs that miss writes do not count.
time_of()
{
	n=$1 percent=$2 count=$3
	shift 3
	for _ in 1 2 3; do
		ns=$("$tally" -t "$@" "$tally" "$n" "$percent" 2>&1 >"$tmp/out" | tee "$tmp/err" |
			sed -n 's/^tally: \([0-9]*\) ns$/\1/p')
		seen=$(eval "$count" 2>/dev/null)
		[ "${seen:-0}" -lt $((n * percent / 100 - 1)) ] || echo "$ns"
	done | sort -n | head -n 1
}

# row NAME WRITES SHARE HITS COMMAND...: the command gets the program and its arguments; HITS
# is a command that prints how many of the writes the tool has seen. What a tool takes to start
# is not in the figure, which is the difference of two runs.
row()
{
	name=$1 writes=$2 share=$3 hits=$4
	shift 4
	few=$((writes / 10))
	short=$(time_of $few "$share" "$hits" "$@")
	long=$(time_of "$writes" "$share" "$hits" "$@")
	if [ -z "$short" ] || [ -z "$long" ]; then
		echo "$name: no row, it has not seen all of $writes writes:" \
			"$(head -n 1 "$tmp/err")" >>"$tmp/reasons"
		return
	fi
	echo "$name|$writes|$share|$((long - short))|$((writes - few))" >>"$tmp/rows"
}

hwbp_hits='sed -n "s/^\([0-9]*\) hits at .*/\1/p; s/^\([0-9]*\) hits; .*/\1/p" "$tmp/report"'
json_hits='grep -c "\"type\": \"hit\"" "$tmp/report"'

row "no tool" "$all" 100 "echo $all" env
row "hwbp stat" "$all" 100 "$hwbp_hits" hwbp stat -o "$tmp/report" tally --
row "hwbp watch" $((all / 5)) 100 "$hwbp_hits" hwbp watch -o "$tmp/report" tally --
row "hwbp watch --json" $((all / 5)) 100 "$json_hits" hwbp watch --json -o "$tmp/report" tally --
if hwbp watch --help 2>&1 | grep -q -e --changed; then
	row "hwbp watch --changed, 1 % changes" "$all" 1 "$hwbp_hits" \
		hwbp watch --changed -o "$tmp/report" tally --
fi
if [ -x /tools/bin/perf ]; then
	row "perf record -e mem:" $((all / 5)) 100 \
		'sed -n "s/.*(\([0-9]*\) samples).*/\1/p" "$tmp/err"' \
		/tools/bin/perf record -c 1 -e "mem:$address/8:w:u" -o "$tmp/data" --
else
	echo "perf: no row, the host has none" >>"$tmp/reasons"
fi
if [ -x /tools/bin/bpftrace ]; then
	cat >"$tmp/bpftrace" <<-END
		#!/bin/sh
		exec /tools/bin/bpftrace -e "watchpoint:$address:8:w { @ = count(); }" -c "\$*"
	END
	chmod 755 "$tmp/bpftrace"
	row "bpftrace" $((all / 5)) 100 'sed -n "s/^@: //p" "$tmp/out"' "$tmp/bpftrace"
else
	echo "bpftrace: no row, the host has none" >>"$tmp/reasons"
fi
if [ -x /tools/bin/gdb ]; then
	cat >"$tmp/run_gdb" <<-END
		#!/bin/sh
		exec /tools/bin/gdb -nx -q -batch --data-directory=/tools/gdb -x "$tmp/gdb" \\
			--args "\$@"
	END
	chmod 755 "$tmp/run_gdb"
	row "gdb watch" $((all / 200)) 100 \
		"grep -q 'exited normally' \"\$tmp/out\" && echo $all" "$tmp/run_gdb"
else
	echo "gdb: no row, the host has none" >>"$tmp/reasons"
fi

awk -F '|' '
	{ name[NR] = $1; writes[NR] = $2; share[NR] = $3; cost[NR] = $4 / $5 / 1000 }
	$1 == "hwbp stat" { stat = cost[NR] }
	END {
		printf "| %-34s | %9s | %12s | %12s | %10s |\n", "tool", "writes", "us per write",
			"writes per s", "times stat"
		print "|------------------------------------|----------:|-------------:|-------------:|-----------:|"
		for (i = 1; i <= NR; i++)
			printf "| %-34s | %9d | %12.3f | %12d | %10s |\n", name[i], writes[i], cost[i],
				(cost[i] > 0 ? 1e6 / cost[i] : 0),
				(stat > 0 ? sprintf("%.2f", cost[i] / stat) : "-")
	}' "$tmp/rows"
[ ! -e "$tmp/reasons" ] || cat "$tmp/reasons"
