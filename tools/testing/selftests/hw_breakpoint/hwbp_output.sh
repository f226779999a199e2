#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Tests of the output of hwbp: reports, JSON, lists of claims, messages, help. They need
# nothing of the kernel that other tests of hwbp do not need: they run on the plain kernel
# only.

. "$(dirname "$0")/hwbp_test.sh"

test_columns_of_a_hit()
{
	watch counter -- "$programs/tick" 2
	pid=$(sed -n 's/.*(pid \([0-9]*\))$/\1/p' "$report")
	hits | awk -v pid="$pid" '
		$1 !~ /^[0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]$/ || $1 + 0 < last { exit 1 }
		{ last = $1 + 0 }
		$2 != "tick" || $3 != pid || $4 !~ /^[0-9]+$/ { exit 1 }
		$5 !~ /^tick_write\+0x[0-9a-f]+$/ || $6 !~ /tick\.c:[0-9]+$/ { exit 1 }' ||
		complain "$(hits)"
}

test_options_in_any_order()
{
	run "$hwbp" watch "-o$report" -- "$programs/tick" 4
	refused "no place to watch"
	run "$hwbp" watch "-o$report" counter:8 -n 2 -w -- "$programs/tick" -w -n
	status_is 0
	hits_are 0
	run "$hwbp" watch -n2 counter -o "$report" -- "$programs/tick" 4
	status_is 0
	hits_are 2
}

test_member_of_a_structure()
{
	watch 'record.pair[2].right' -- "$programs/tick"
	hits_are 1
	hits_in 1 tick_record
	watch 'record.byte[1]' -- "$programs/tick"
	hits_are 1
	watch record.nothing -- "$programs/tick"
	refused "no member 'nothing'"
	watch 'record.pair[3].left' -- "$programs/tick"
	refused "the array has 3 elements"
	watch --dry-run record.flag -- "$programs/tick"
	status_is 0
	grep -q "^writes of record.flag at 0x[0-9a-f]*, 1 byte (bits 0-2), in " "$report" ||
		complain "$(cat "$report")"
}

test_demangled_names()
{
	if [ ! -x "$programs/names_cxx" ] || [ ! -x "$programs/names_rust" ]; then
		skip="a compiler of C++ or Rust is missing"
		return
	fi
	watch shop::cart.n -- "$programs/names_cxx"
	status_is 0
	counts | grep -q "^ *1 *100.00%  shop::Cart::add(int)+0x[0-9a-f]* *[^ ]*names_cxx.cc:[0-9]*$" ||
		complain "$(cat "$report")"
	watch --json shop::cart.n -- "$programs/names_cxx"
	json_has "$report" hit instruction function mangled source
	grep -q '"function": "shop::Cart::add(int)", "mangled": "_ZN4shop4Cart3addEi", ' "$report" ||
		complain "$(cat "$report")"
	watch bank::BALANCE -- "$programs/names_rust"
	status_is 0
	hits_in 1 names_rust::bank::pay
}

test_source_in_split_units()
{
	watch other_calls::calls -- "$programs/names_c_split"
	status_is 0
	hits_in 1 other_calls
	equal "$(counts | awk '{ sub(".*/", "", $NF); sub(":.*", "", $NF); print $NF }')" \
	      names_c.c "source"
}

test_static_variables_of_one_name()
{
	watch twin -- "$programs/twins"
	refused "ambiguous.*twins.c:twin.*twins_b.c:twin"
	watch twins_b.c:twin -- "$programs/twins"
	status_is 0
	hits_are 2
	hits_in 2 twin_next
}

test_inlined_function()
{
	watch bytes+8:8 -- "$programs/tick_inline"
	status_is 0
	hits_in 9 main
	equal "$(counts | sed -n 's/.*(inlined \(.*\)).*/\1/p' | xargs)" \
	      "tick_repeat tick_copy" "inlined functions"
}

test_address_and_length()
{
	watch counter -- "$programs/tick_static" 1
	address=$(sed -n 's/.* at \(0x[0-9a-f]*\),.*/\1/p' "$report")
	watch "$address:4" -- "$programs/tick_static" 6
	status_is 0
	hits_are 6
	watch "$address" -- "$programs/tick_static" 6
	refused "no known length"
}

test_json_of_watch()
{
	watch --json -g many.a many.b -- "$programs/many" 3
	status_is 0
	json_has "$report" ""
	equal "$(json_types "$report")" "2 count 1 end 6 hit 2 instruction 2 place" "lines"
	json_has "$report" place place access address len multiplexed pid program
	json_has "$report" hit time comm pid tid cpu place ip kernel instruction function source callers
	json_has "$report" instruction place hits instruction source
	json_has "$report" count place hits scaled enabled running lost
	equal "$(grep -c '"type": "hit".*"place": "many.b".*"function": "write_all".*"callers": \[{.*"function": "main"' \
		 "$report")" 3 "hits of many.b"
	equal "$(sed -n 's/.*"count", "place": "many.a", "hits": 3, "scaled": \([0-9]*\),.*/\1/p' \
		 "$report")" 3 "count of many.a"
	# A name with characters that JSON requires to be escaped
	odd="$tmp/a\"b\\c$(printf '\303\251\303x\377')"
	cp "$programs/many" "$odd"
	watch --json many.a -- "$odd" 1
	status_is 0
	json_has "$report" ""
	grep -q '"program": ".*/a\\"b\\\\c'"$(printf '\303\251')"'\\ufffdx\\ufffd"' "$report" ||
		complain "$(cat "$report")"
}

test_json_of_stat()
{
	can_multiplex || return
	run "$hwbp" stat --json -o "$report" $places -- "$programs/many" 1000
	status_is 0
	json_has "$report" ""
	equal "$(json_types "$report")" "6 count 1 end 6 place" "lines"
	equal "$(grep -c '"place".*"multiplexed": true' "$report")" 6 "multiplexed places"
}

test_json_of_slots()
{
	can_list && has_two_cpus || return
	hold_start guaranteed:task flexible:task@1 guaranteed:process guaranteed:cpu@0
	run "$hwbp" slots --json
	status_is 0
	json_has "$out" ""
	json_has "$out" class name registers
	json_has "$out" claim cpu tid registers flexible access len address symbol owner
	json_has "$out" register cpu number free
	equal "$(grep -c '"type": "claim".*"owner": "perf '$holder' (hold)"' "$out")" 4 "claims"
	for process in false true; do
		line='"claim", "cpu": null, "tid": '$holder', "process": '$process
		grep -q "$line,"' .*"flexible": false, .*"symbol": "held"' "$out" ||
			complain "$(cat "$out")"
	done
	grep -q '"claim", "cpu": 1, "tid": '$holder', .*"flexible": true' "$out" ||
		complain "$(cat "$out")"
	grep -q '"claim", "cpu": 0, "tid": null, ' "$out" || complain "$(cat "$out")"
	hold_end
}

# Runs hwbp on a terminal; $report gets the output, with each escape sequence on a line
# of its own.
on_tty()
{
	run env TERM=xterm "$programs/on_tty" "$@"
	tr -d '\r' <"$out" | awk '{ gsub(/\033/, "\nESC"); print }' >"$report"
}

test_summary_on_a_terminal()
{
	on_tty "$hwbp" watch many.a many.b -- "$programs/many" 4000
	status_is 0
	# The summary has nine of the 24 rows.
	equal "$(grep -c '^ESC\[1;15r' "$report")" 1 "scrolling regions"
	equal "$(grep -c '^ESC\[r' "$report")" 1 "resets of the region"
	[ "$(grep -c '^ESC\[2K---- [0-9.]* s, ^C ends' "$report")" -ge 2 ] ||
		complain "not renewed: $(grep -c 'ESC\[2K----' "$report")"
	grep -q '^ESC\[2K *[0-9]*  many.a  write_all+' "$report" || complain "no counts"
	# Hits are coloured, and complete.
	hidden=$(sed -n 's/^\([0-9]*\) hits* not shown: .*/\1/p' "$report")
	equal "$(($(grep -c '^ESC\[36mwrite_all+' "$report") + ${hidden:-0}))" 8002 \
	      "coloured hits and counts"
	# The final report comes after the summary.
	sed -n '/^ESC\[r/,$p' "$report" | grep -q "^8000 hits at 2 places" ||
		complain "$(sed -n '/^ESC\[r/,$p' "$report")"
	on_tty "$hwbp" stat many.a -- "$programs/many" 4000
	status_is 0
	[ "$(grep -c '^ESC\[2K *[0-9]*  many.a$' "$report")" -ge 2 ] || complain "$(cat "$report")"
	grep -q "^4000 hits; threads ran" "$report" || complain "$(cat "$report")"
}

# A terminal that is slower than the program does not hold up the report.
test_hits_on_a_slow_terminal()
{
	SLOW=3 on_tty "$hwbp" watch many.a -- "$programs/many" 2000
	status_is 0
	hidden=$(sed -n 's/^\([0-9]*\) hits not shown: .*/\1/p' "$report")
	[ "${hidden:-0}" -gt 1000 ] || complain "'$hidden' hits are not shown"
	equal "$(($(grep -c '^ESC\[36mwrite_all+' "$report") + ${hidden:-0}))" 2001 \
	      "coloured hits and counts"
	grep -q "^2000 hits at 1 place" "$report" || complain "$(tail "$report")"
}

# Of more places than the summary has lines, those with the most hits are shown.
test_summary_of_many_places()
{
	can_multiplex || return
	many=
	for offset in $(seq 8 8 136); do
		many="$many many.rest+$offset:8"
	done
	on_tty "$hwbp" stat $many many.f -- "$programs/many" 8000
	status_is 0
	equal "$(grep -c '^ESC\[1;8r' "$report")" 1 "scrolling regions"
	# 18 places: 14 lines, after which those without hits are as they were given
	grep '^ESC\[2K' "$report" | tail -n 16 | sed 's/ESC\[2K *//' >"$tmp/lines"
	equal "$(sed -n 's/^[1-9][0-9]*  //p; 3q' "$tmp/lines")" "many.f" "first place"
	equal "$(sed -n 's/^0  //p' "$tmp/lines" | xargs)" "$(echo $many | cut -d ' ' -f 1-13)" \
	      "other places"
	equal "$(tail -n 1 "$tmp/lines")" "and 4 more" "last line"
}

# The output of the program appears above the summary, unchanged.
test_summary_and_output_of_the_program()
{
	on_tty "$hwbp" stat -x tick_read -- "$programs/tick" 5
	status_is 0
	grep -q "written at " "$report" || complain "$(cat "$report")"
}

test_plain_lines_elsewhere()
{
	on_tty "$hwbp" watch --plain many.a -- "$programs/many" 5
	status_is 0
	! grep -q ESC "$report" || complain "--plain: $(grep ESC "$report")"
	hits_are 5
	on_tty env TERM=dumb "$hwbp" watch many.a -- "$programs/many" 5
	! grep -q ESC "$report" || complain "TERM=dumb: $(grep ESC "$report")"
	hits_are 5
	on_tty env NO_COLOR=1 "$hwbp" watch many.a -- "$programs/many" 5
	! grep -q 'ESC\[[0-9]*m' "$report" || complain "NO_COLOR: $(grep ESC "$report")"
	on_tty "$hwbp" watch -o "$tmp/file" many.a -- "$programs/many" 5
	! grep -q ESC "$report" "$tmp/file" || complain "-o: $(grep ESC "$tmp/file")"
	on_tty "$hwbp" watch --json many.a -- "$programs/many" 5
	! grep -q ESC "$report" || complain "--json: $(grep ESC "$report")"
	json_has "$report" ""
	# Standard output is a file here.
	TERM=xterm run "$hwbp" watch many.a -- "$programs/many" 5
	tr -d '\n' <"$out" | grep -q "$(printf '\033')" && complain "$(cat "$out")"
}

test_time_limit()
{
	threads_start 5
	run "$hwbp" watch -o "$report" total -t 0.5 -p $threads
	status_is 0
	hits_are 0
	seconds=$(sed -n 's/.* in \([0-9.]*\) s$/\1/p' "$report")
	echo "$seconds" | awk '$1 < 0.5 || $1 > 30 { exit 1 }' || complain "ended after $seconds s"
	threads_finish 20
}

test_exit_status_of_the_program()
{
	watch counter -- "$programs/tick" 1 7
	status_is 7
	run "$hwbp" stat counter -- "$programs/tick" 1 42
	status_is 42
	! grep -q "killed" "$report" || complain "$(cat "$report")"
	watch counter -- "$programs/tick" 1 -9
	status_is 137
	equal "$(tail -n 1 "$report")" "the program was killed by signal 9 (Killed)" "end"
	hits_are 1
	run "$hwbp" stat counter -- "$programs/tick" 3 -11
	status_is 139
	equal "$(stat_count "$out") $(tail -n 1 "$out")" \
	      "3 the program was killed by signal 11 (Segmentation fault)" "hits and end"
	watch --json counter -- "$programs/tick" 1 -11
	grep -q '"type": "end".*"signal": 11}$' "$report" || complain "$(tail -n 1 "$report")"
	watch counter -n 1 -- "$programs/tick" 5 9
	status_is 9
}

test_output_of_the_program()
{
	"$programs/tick" 9 >"$tmp/alone"
	watch -rw counter -- "$programs/tick" 9
	cmp -s "$tmp/alone" "$out" || complain "'$(cat "$out")'"
	[ ! -s "$err" ] || complain "'$(cat "$err")'"
}

test_unknown_symbol()
{
	watch nothere -- "$programs/tick"
	refused "no symbol 'nothere' in .*/tick"
	watch coutner -- "$programs/tick"
	refused "no symbol 'coutner' in .* but there is 'counter'"
	watch wrong.c:hidden -- "$programs/tick"
	refused "no symbol 'hidden' in 'wrong.c', but there is tick.c:hidden"
	threads_start 5
	run "$hwbp" watch nothere -p $threads
	refused "no symbol 'nothere'"
	threads_finish 20
	watch nothere -- "$programs/shelf"
	refused "no symbol 'nothere' in .*/shelf or its 3 libraries "
	watch nothere -- "$programs/lone"
	refused "no symbol 'nothere' in .*/lone or its 1 library "
}

test_length_that_the_hardware_lacks()
{
	as_stock "$hwbp" watch bytes -- "$programs/tick"
	refused "bytes is 16 bytes long.* 1, 2, 4 or 8, .*an element such as bytes.0."
	for len in 3 5 6 7 16; do
		as_stock "$hwbp" watch bytes:$len -- "$programs/tick"
		refused "invalid length $len: use 1, 2, 4 or 8"
	done
	watch bytes:0 -- "$programs/tick"
	refused "invalid length .* 1, 2, 4 or 8"
}

# Runs hwbp as on a kernel that combines registers for objects of up to $1 bytes.
with_max_length()
{
	mkdir -p "$tmp/caps"
	echo "$1" >"$tmp/caps/max_length"
	shift
	run unshare -m sh -c "mount --bind '$tmp/caps' $pmu/caps && exec \"\$@\"" sh "$hwbp" "$@"
}

test_whole_objects()
{
	if [ ! -e $pmu/caps ]; then
		skip="this kernel has no caps of breakpoints"
		return
	fi
	with_max_length 32 watch --dry-run bytes bytes+1:3 bytes+5:11 record record.name \
		-- "$programs/tick"
	status_is 0
	equal "$(sed 's/.* at 0x[0-9a-f]*, \([0-9]*\) bytes, in .*/\1/' "$out" | xargs)" \
	      "16 3 11 32 12" "lengths"
	with_max_length 24 watch --dry-run record -- "$programs/tick"
	refused "record is 32 bytes long: .*one of up to 24, .*record.name, record.pair.*; with -F"
	with_max_length 24 watch --dry-run record:25 -- "$programs/tick"
	refused "invalid length 25: use 1 to 24"
}

test_unaligned_address()
{
	as_stock "$hwbp" watch bytes+1:2 -- "$programs/tick"
	refused "aligned"
	as_stock "$hwbp" watch bytes+4:8 -- "$programs/tick"
	refused "aligned"
}

test_places_that_cannot_be_watched()
{
	watch per_thread -- "$programs/tick"
	refused "thread-local"
	watch -x counter -- "$programs/tick"
	refused "is data"
	watch tick_read -- "$programs/tick"
	refused "'tick_read' is a function: watch its execution with -x"
	watch -x memcpy -- "$programs/tick"
	refused "resolved at run time"
	watch 0xffffffff81000000:8 -- "$programs/tick"
	refused "is a kernel address"
}

test_no_such_process_or_program()
{
	run "$hwbp" watch counter -p 4000000
	refused "no such process: 4000000"
	run "$hwbp" watch counter -p 2
	refused "process 2 has no program"
	run "$hwbp" watch counter -- "$programs/nothere"
	refused "cannot run .*No such file" 127
	run "$hwbp" stat counter -- nothere-in-path
	refused "cannot run .*No such file" 127
	run "$hwbp" watch counter -- /etc/passwd
	refused "cannot run .*Permission denied" 126
	threads_start 5
	thread=$(ls "/proc/$threads/task" | grep -vx "$threads" | head -n 1)
	run "$hwbp" watch --children total -p "$thread"
	refused "$thread is a thread of process $threads: --children requires a process"
	threads_finish 20
}

test_no_interpreter()
{
	printf '#! /nowhere/shell -x\n' >"$tmp/hwbp_script"
	chmod +x "$tmp/hwbp_script"
	run "$hwbp" watch counter -- "$tmp/hwbp_script"
	refused "cannot run '$tmp/hwbp_script': its interpreter /nowhere/shell does not exist" 127
	run env PATH="$PATH:$tmp" "$hwbp" watch counter -- hwbp_script
	refused "cannot run 'hwbp_script': its interpreter /nowhere/shell does not exist" 127
	run "$hwbp" watch counter -- "$programs/no_loader"
	refused "cannot run .*/no_loader': its interpreter nowhere does not exist" 127
}

# ENOSYS, EPERM and EMFILE of pidfd_open()
test_no_pidfd()
{
	for errno in 38 1 24; do
		run "$programs/refuse" pidfd_open $errno "$hwbp" watch counter -- "$programs/tick"
		refused "cannot wait for the end of process [0-9]*: pidfd_open: "
		grep -q "filter may be the reason" "$err" && filter=yes || filter=no
		equal $filter "$([ $errno = 24 ] && echo no || echo yes)" "filter at errno $errno"
	done
}

test_command_line_errors()
{
	run "$hwbp" look counter
	refused "unknown verb .* watch, stat, slots, text or trace"
	run "$hwbp" watch counter
	refused "no program was given"
	run "$hwbp" watch counter "$programs/tick"
	refused "no program was given"
	run "$hwbp" watch counter --
	refused "no command"
	run "$hwbp" watch -y counter -p 1
	refused_usage "unknown switch .y'"
	run "$hwbp" watch -x -w counter -p 1
	refused "-x and -w exclude each other"
	run "$hwbp" watch counter -n 0 -p 1
	refused "positive number"
	run "$hwbp" watch counter -p 1 -- "$programs/tick"
	refused "exclude each other"
	run "$hwbp" stat counter -p
	refused_usage "switch .p' requires a value"
	run "$hwbp" watch -o /nowhere/report counter -- "$programs/tick"
	refused "cannot write"
}

test_help()
{
	run "$hwbp" --list-verbs
	status_is 0
	verbs=$(cat "$out")
	equal "$(echo "$verbs" | xargs)" "watch stat slots text trace" "verbs"
	for verb in "" $verbs; do
		run "$hwbp" $verb --help
		status_is 0
		grep -qi "^ *usage: hwbp" "$out" || complain "no usage for '$verb'"
		[ ! -s "$err" ] || complain "'$(cat "$err")'"
		[ -n "$verb" ] || continue
		grep -q "^    -h, --help " "$out" || complain "no options for '$verb'"
		cp "$out" "$tmp/usage"
		run "$hwbp" help $verb
		cmp -s "$tmp/usage" "$out" || complain "help $verb: $(cat "$out")"
		run "$hwbp" $verb --list-opts
		status_is 0
		grep -q -e "--help" "$out" || complain "'$(cat "$out")'"
	done
}

test_slots_of_a_list_of_claims()
{
	g="kind=guaranteed class=any weight=1"
	f="kind=flexible class=any weight=1 type=rw len=4"
	slots <<-END
	class name=any slots=4
	claim pid=5000002 cpu=1 $g type=x len=8 addr=0x401136 owner=ptrace:5000077 comm=my prog
	claim cpu=1 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:handler
	claim cpu=10 weight=2 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:-
	claim pid=5000001 cpu=any $f addr=0x55d0 owner=perf:5000456 comm=ledger
	claim cpu=1 type=r len=1 $f addr=0x5 owner=perf:-
	claim pid=5000001 cpu=any $g type=w len=2 addr=0x7ffdeadbeef0 owner=ptrace:- comm=ledger
	claim cpu=1 $g type=w len=4 addr=0x4 owner=kgdb
	register cpu=1 slot=1 free
	register cpu=1 slot=0 $g type=w len=8 addr=0xffffffffffffff00 owner=kernel:handler
	register cpu=0 slot=0 $f addr=0x55d0 owner=perf:5000456 pid=5000001 comm=ledger
	register cpu=0 slot=1 free
	END
	says <<-'END'
	registers of each CPU: 4

	              KIND       TYPE LEN ADDRESS            NAME             OWNER
	CPU 0
	  register 0  flexible   rw     4 0x55d0             -                perf 5000456, for task 5000001 (ledger)
	  register 1  free

	CPU 1
	  claim       guaranteed w      4 0x4                -                kgdb
	  claim       guaranteed w      8 0xffffffffffffff00 -                kernel handler
	  claim       flexible   r      1 0x5                -                perf (gone)
	  register 0  guaranteed w      8 0xffffffffffffff00 -                kernel handler
	  register 1  free

	CPU 10 (offline)
	  claim       guaranteed w      8 0xffffffffffffff00 -                kernel, takes 2 registers

	task 5000001 (ledger)
	  any CPU     guaranteed w      2 0x7ffdeadbeef0     -                ptrace (gone)
	  any CPU     flexible   rw     4 0x55d0             -                perf 5000456

	task 5000002 (my prog)
	  CPU 1       guaranteed x      8 0x401136           -                ptrace 5000077

	CPU 1 is full beside task 5000001 (ledger): a further guaranteed breakpoint of the CPU fails
	CPU 10 is full beside task 5000001 (ledger): a further guaranteed breakpoint of the CPU fails
	task 5000001 (ledger) is full on CPU 1,10: a further guaranteed breakpoint fails there
	task 5000002 (my prog) is full on CPU 1: a further guaranteed breakpoint fails there
	END
}

# The claim of a kernel-wide breakpoint counts on each CPU.
test_slots_of_all_cpus()
{
	{
		echo "class name=any slots=4"
		claim cpu=0 guaranteed
		claim cpu=all guaranteed
		claim "pid=5000001 cpu=any" guaranteed
		claim cpu=all guaranteed
		free_registers 0
	} | grep -v 'slot=[23]' >"$tmp/in"
	slots <"$tmp/in"
	says <<-'END'
	registers of each CPU: 4

	              KIND       TYPE LEN ADDRESS            NAME             OWNER
	all CPUs
	  claim       guaranteed w      8 0x1000             -                kgdb
	  claim       guaranteed w      8 0x1000             -                kgdb

	CPU 0
	  claim       guaranteed w      8 0x1000             -                kgdb
	  register 0  free
	  register 1  free

	task 5000001 (some task)
	  any CPU     guaranteed w      8 0x1000             -                kgdb

	CPU 0 is full beside task 5000001 (some task): a further guaranteed breakpoint of the CPU fails
	task 5000001 (some task) is full on CPU 0: a further guaranteed breakpoint fails there
	END
	slots --cpu 0 <"$tmp/in"
	status_is 0
	equal "$(grep -c '^all CPUs' "$out")" 1 "sections"
	slots -p 5000001 <"$tmp/in"
	status_is 0
	equal "$(grep -c '^all CPUs' "$out")" 0 "sections"
}

test_slots_without_claims()
{
	{ echo "class name=any slots=4"; free_registers 0; } >"$tmp/in"
	slots <"$tmp/in"
	says <<-'END'
	registers of each CPU: 4

	              KIND       TYPE LEN ADDRESS            NAME             OWNER
	CPU 0
	  register 0  free
	  register 1  free
	  register 2  free
	  register 3  free

	END
}

test_slots_of_odd_names()
{
	n_task=5000000
	for name in "cpu=7 pid=1 comm=x" "" " two  spaces " "\\n\\\\\\042" ") is full" free \
		    "$(printf 'esc\033[1m')" "$(printf 'tab\t')" "$(printf 'caf\303\251')"; do
		n_task=$((n_task + 1))
		claim "pid=$n_task cpu=any" guaranteed | sed '$s/comm=.*/comm=/' | tr -d '\n'
		echo "$name"
	done >"$tmp/claims"
	echo "class name=any slots=4" | cat - "$tmp/claims" >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	sed -n 's/^task //p' "$out" >"$tmp/heads"
	cat >"$tmp/expected" <<-'END'
	5000001 (cpu=7 pid=1 comm=x)
	5000002 ()
	5000003 ( two  spaces )
	5000004 (\n\\\042)
	5000005 () is full)
	5000006 (free)
	5000007 (esc?[1m)
	5000008 (tab?)
	5000009 (caf??)
	END
	cmp -s "$tmp/expected" "$tmp/heads" || complain "$(cat "$tmp/heads")"
	equal "$(tail -n 1 "$out" | tr -d ' ')" "" "who is full"
}

# The error in the second line. If a field is there twice, the first one counts.
test_slots_of_malformed_lines()
{
	good="cpu=0 kind=guaranteed class=any weight=1 type=w len=8 addr=0x1 owner=kgdb"
	while IFS='|' read -r message line; do
		printf 'class name=any slots=4\n%s\n' "$line" >"$tmp/in"
		slots <"$tmp/in"
		refused "account, line 2: $message: '"
	done <<-END
	expected class, claim or register|
	expected class, claim or register|garbage
	expected class, claim or register|claims $good
	missing slots=|class name=x
	invalid number in slots=|class name=x slots=four
	invalid number in slots=|class name=x slots=
	missing kind=|claim
	missing cpu=|claim kind=guaranteed ${good#cpu=0}
	invalid number in cpu=|claim cpu=any $good
	invalid number in cpu=|claim cpu=-1 $good
	invalid number in cpu=|claim cpu=0x $good
	invalid number in cpu=|claim cpu=99999999999 $good
	invalid number in cpu=|claim pid=1 cpu=all $good comm=x
	invalid number in weight=|claim weight=one $good
	missing type=|claim type $good
	invalid number in len=|claim len=+8 $good
	invalid number in addr=|claim addr=0x10000000000000000 $good
	invalid number in addr=|claim addr=jiffies $good
	missing owner=|claim ${good% *}
	missing owner=|claim ${good% *} comm=x owner=kgdb
	missing comm=|claim pid=1 $good
	invalid number in pid=|claim pid=- $good comm=x
	missing slot=|register cpu=0 free
	invalid number in slot=|register cpu=0 slot= free
	missing kind=|register cpu=0 slot=0
	missing kind=|register cpu=0 slot=0 a b c d e f g h i j k l m n o p q r s t u v w x y z
	END
	printf 'class name=any slots=4\n\033[1mbold\n' >"$tmp/in"
	slots <"$tmp/in"
	refused "'?\[1mbold'"
	slots </dev/null
	refused "account lists no registers"
}

# Unknown fields, and a last line without a newline
test_slots_of_another_version()
{
	printf 'class name=any slots=4 color=red\nregister  cpu=0  slot=0 new free ' >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	equal "$(section "CPU 0")" "  register 0  free" "registers"
}

test_slots_of_thousands_of_claims()
{
	{
		echo "class name=any slots=4"
		# The lines are not sorted, and the two claims of each task are far
		# apart.
		awk 'BEGIN {
			for (i = 0; i < 8000; i++)
				printf "claim pid=%d cpu=any kind=%s class=any weight=1 type=w " \
					"len=8 addr=%#x owner=perf:%d comm=worker %d\n",
					5000000 + i * 7 % 4000, i % 2 ? "flexible" : "guaranteed",
					4096 + i, 5000000 + i % 10, i * 7 % 4000
			for (i = 0; i < 3000; i++)
				print "claim cpu=1 kind=flexible class=any weight=1 type=w len=8 " \
					"addr=0x1000 owner=perf:-"
		}'
		free_registers 0 1
	} >"$tmp/in"
	slots <"$tmp/in"
	status_is 0
	equal "$(grep -c '^  claim ' "$out")" 3000 "claims of a CPU"
	equal "$(grep -c '^  any CPU ' "$out")" 8000 "claims of tasks"
	sed -n 's/^task \([0-9]*\) (worker [0-9]*)$/\1/p' "$out" >"$tmp/pids"
	equal "$(wc -l <"$tmp/pids")" 4000 "tasks"
	sort -n "$tmp/pids" | cmp -s - "$tmp/pids" || complain "the tasks are not sorted"
	full_is ""
}

# Claims, with an "f" for flexible ones, and what is then full: a CPU, a CPU beside the
# task, the task, the task on some CPUs
test_slots_full_cpus_and_tasks()
{
	task="task 5000001 (some task)"
	while IFS='|' read -r claims full; do
		{
			echo "class name=any slots=4"
			for c in $(echo "$claims" | tr , ' '); do
				case $c in
				any*)  holder="pid=5000001 cpu=any" ;;
				on*)   holder="pid=5000001 cpu=${c#on}" ;;
				cpu*)  holder="cpu=${c#cpu}" ;;
				all)   holder="cpu=all" ;;
				esac
				case $c in
				*f)    claim "${holder%f}" flexible ;;
				*)     claim "$holder" guaranteed ;;
				esac
			done
			free_registers 0 1 2
		} >"$tmp/in"
		slots <"$tmp/in"
		full_is "$(for f in $full; do
			case $f in
			task)   echo "$task is full" ;;
			task@*) echo "$task is full on CPU ${f#task@}" ;;
			*+task) echo "CPU ${f%+task} is full beside $task" ;;
			*)      echo "CPU $f is full" ;;
			esac
		done)"
	done <<-'END'
	any,any,any|
	any,any,any,any|0+task 1+task 2+task task
	any,any,any,anyf|0+task 1+task 2+task task
	any,any,anyf,anyf,anyf|
	anyf,anyf,anyf,anyf,anyf|
	any,any,on1,on1|1+task task@1
	on0,on0,on0,on0f,on1,on1,on1,on1,on2|0+task 1+task task@0,1
	on0,on0,on0,on0,on2,on2,on2,on2f|0+task 2+task task@0,2
	any,any,cpu2,cpu2f|2+task task@2
	any,any,cpu2,anyf|2+task task@2
	any,cpu2f,cpu2f,anyf,any|
	cpu1,cpu1,cpu1,cpu1|1
	cpu1,cpu1,cpu1,cpu1f|1
	cpu1,cpu1,cpu1,cpu1,on0|1 task@1
	cpu1,cpu1,cpu1,on0|
	cpu1f,cpu1f,cpu1f,cpu1f,cpu1f|
	all,all,all|
	all,all,all,all|0 1 2
	all,all,all,cpu1f|1
	all,any,any,any|0+task 1+task 2+task task
	all,cpu1,on1,on1|1+task task@1
	END
}

test_slots_restricted()
{
	{
		echo "class name=any slots=4"
		claim cpu=0 guaranteed
		claim cpu=1 guaranteed
		claim "pid=5000001 cpu=any" guaranteed
		claim "pid=5000001 cpu=0" flexible
		claim "pid=5000002 cpu=1" guaranteed
		claim "pid=5000002 cpu=0" guaranteed slot=0 |
			sed 's/^claim/register/; s/some task/a/'
		free_registers 1
	} >"$tmp/in"
	slots --cpu 1 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "CPU 1
task 5000001 (some task)
task 5000002 (some task)" "sections"
	slots -p 5000002 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "CPU 0
task 5000002 (some task)" "sections"
	equal "$(section "CPU 0" | awk '{ print $1, $2, $NF }')" "register 0 (a)" "register"
	slots -p5000001 --cpu=1 <"$tmp/in"
	status_is 0
	equal "$(grep -E '^(CPU|task)' "$out")" "task 5000001 (some task)" "sections"
	slots -p $$ <"$tmp/in"
	status_is 0
	equal "$(grep "^task" "$out")" "task $$: no claims" "sections"
	slots -p 5000003 <"$tmp/in"
	refused "no such process: 5000003"
	slots --cpu 2 <"$tmp/in"
	refused "CPU 2 is not online and has no claims"
}

test_slots_names_addresses()
{
	threads_start 5
	# The second address is beside a label whose size is unknown.
	for place in spare+8:8 __data_start+4:4; do
		run "$hwbp" stat $place -t 0.01 -p $threads
		sed -n 's/.* at \(0x[0-9a-f]*\),.*/\1/p' "$out"
	done >"$tmp/addresses"
	address=$(head -n 1 "$tmp/addresses")
	nameless=$(tail -n 1 "$tmp/addresses")
	jiffies=$(sed -n 's/^\([0-9a-f]*\) . jiffies$/0x\1/p' /proc/kallsyms)
	thread=$(ls "/proc/$threads/task" | grep -vx "$threads" | head -n 1)
	g="kind=guaranteed class=any weight=1 type=w len=8"
	f="kind=flexible $g"
	slots <<-END
	class name=any slots=4
	claim cpu=0 $g addr=$jiffies owner=perf:$$
	claim pid=$threads cpu=any $g addr=$address owner=ptrace:$threads comm=threads
	claim pid=$threads cpu=any $f addr=$nameless owner=kgdb comm=threads
	claim pid=$thread cpu=any $g addr=$address owner=kgdb comm=runner
	claim pid=$thread cpu=any $f addr=0x10 owner=kgdb comm=runner
	register cpu=0 slot=0 $g addr=$address owner=kgdb pid=$thread comm=runner
	register cpu=0 slot=1 $f addr=0x10 owner=kgdb pid=$thread comm=runner
	END
	status_is 0
	section "CPU 0" | grep -q "^  claim .* $jiffies  *jiffies[_64]* *perf $$ (.*)$" ||
		complain "$(section "CPU 0")"
	equal "$(section "CPU 0" | awk '$1 == "register" { print $6, $7 }' | xargs)" \
	      "$address spare+0x8 0x10 -" "names of registers"
	equal "$(section "task $threads" | awk '{ print $6, $7, $8, $9, $10 }' |
		sed 's/+0x[0-9a-f]*]/+...]/' | xargs)" \
	      "$address spare+0x8 ptrace $threads (threads) $nameless [threads+...] kgdb" "names"
	equal "$(awk '/OWNER$/ { print index($0, "OWNER") } / ptrace / { print index($0, "ptrace") }' \
		"$out" | uniq | wc -l)" 1 "columns of the owners"
	grep -q "^task $thread (runner), a thread of $threads$" "$out" ||
		complain "$(grep "^task" "$out")"
	equal "$(section "task $thread" | awk '{ print $6, $7 }' | xargs)" \
	      "$address spare+0x8 0x10 -" "names"
	run "$hwbp" slots --from "$account" -p "$threads"
	equal "$(grep -c "^task" "$out")" 2 "threads of a process"
	threads_finish 20
}

test_slots_cannot_read()
{
	can_list || return
	run "$hwbp" slots --from "$tmp/nothere"
	refused "cannot read '$tmp/nothere': No such file"
	run "$hwbp" slots --from "$tmp"
	refused "cannot read '$tmp': Is a directory"
	run "$programs/as_nobody" "$hwbp" slots
	refused "cannot read '$slots_file': this requires root"
	run unshare -m sh -c "umount -l /sys/kernel/debug; exec '$hwbp' slots"
	refused "debugfs is not mounted (mount -t debugfs none /sys/kernel/debug)"
	run unshare -m sh -c "umount -l /sys; exec '$hwbp' slots"
	refused "this kernel does not list breakpoints, or sysfs is not mounted"
}

test_slots_cannot_write()
{
	can_list || return
	status=0
	"$hwbp" slots >/dev/full 2>"$err" </dev/null || status=$?
	: >"$out"
	refused "cannot write the report: No space left on device"
}

test_slots_command_line_errors()
{
	run "$hwbp" slots counter
	refused "unexpected argument 'counter'"
	run "$hwbp" slots -- true
	refused "unexpected argument '--'"
	run "$hwbp" slots -w
	refused_usage "unknown switch .w'"
	run "$hwbp" slots --cpux 1
	refused_usage "unknown option .cpux'"
	run "$hwbp" slots --cpu
	refused_usage "option .cpu' requires a value"
	run "$hwbp" slots --cpu any
	refused "cpu: 'any' is not a CPU number"
	run "$hwbp" slots --cpu=-1
	refused "'-1' is not a CPU number"
	run "$hwbp" slots -p 0
	refused "positive number"
	can_list || return
	run "$hwbp" slots --cpu 4095
	refused "CPU 4095 is not online and has no claims"
}

test_text_command_line_errors()
{
	run "$hwbp" text schedule
	refused "unexpected argument 'schedule'"
	run "$hwbp" text --
	refused "no command"
	for option in -p -w -x -k -n; do
		run "$hwbp" text $option 1
		refused_usage "unknown switch .${option#-}'"
	done
	run "$hwbp" text -t
	refused_usage "switch .t' requires a value"
	run "$hwbp" text -b 0
	refused "positive number"
	run "$hwbp" text -b 4096
	refused "more than 1024"
	run "$hwbp" text -o /nowhere/report
	refused "cannot write to '/nowhere/report': No such file"
}

test_trace_command_line_errors()
{
	run "$hwbp" trace
	refused "no place to watch"
	run "$hwbp" trace jiffies
	refused "the place is ACCESS@PLACE\[:LEN\], not 'jiffies'"
	run "$hwbp" trace w@jiffies w@x
	refused "unexpected argument 'w@x'"
	run "$hwbp" trace --clear-on a:b w
	refused "--clear-on requires --object"
	run "$hwbp" trace --object a:b:c w@x
	refused "with --object the place is"
}

test_manual_page_has_all_options()
{
	page=
	for dir in "${HWBP_MAN:-}" /usr/share/man/man1; do
		[ -z "$page" ] && [ -n "$dir" ] && [ -r "$dir/hwbp.1" ] && page=$dir/hwbp.1
	done
	if [ -z "$page" ]; then
		skip="the manual page is not installed"
		return
	fi
	sed 's/\\-/-/g' "$page" >"$tmp/page"
	run "$hwbp" --list-verbs
	for verb in $(cat "$out"); do
		grep -q "^[.]B hwbp $verb$" "$tmp/page" || complain "no synopsis of $verb"
		sed -n "/^[.]SS .*Options of.* $verb/,/^[.]S[SH] \"*O[^p]/p" "$tmp/page" >"$tmp/part"
		run "$hwbp" $verb --list-opts
		for option in $(cat "$out"); do
			[ "$option" != --from ] || continue
			grep -q -e "^[.]B.* $option\>" "$tmp/part" || complain "no $option of $verb"
		done
	done
}

# Prints the completions of the last one of the given words.
completed()
{
	bash -c '. /usr/share/bash-completion/completions/hwbp
		 COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hwbp
		 echo "${COMPREPLY[*]}"' bash "$@"
}

test_completion()
{
	if [ ! -r /usr/share/bash-completion/completions/hwbp ] || ! command -v bash >/dev/null; then
		skip="bash or the completion is not installed"
		return
	fi
	equal "$(completed "$hwbp" s)" "stat slots" "verbs"
	equal "$(completed "$hwbp" "")" "watch stat slots text trace --help" "verbs"
	equal "$(completed "$hwbp" watch --ca)" "--callers" "options of watch"
	equal "$(completed "$hwbp" watch --ch)" "--changed --children" "options of watch"
	equal "$(completed "$hwbp" stat --ca)" "" "options of stat"
	equal "$(completed "$hwbp" slots --)" "--pid --cpu --json --help --" "options of slots"
	completed "$hwbp" stat x -p $$ | grep -qw $$ || complain "no process"
	equal "$(completed "$hwbp" slots --cpu 0)" "0" "CPUs"
	equal "$(completed "$hwbp" watch x -- "$programs/tick_s")" "$programs/tick_static" "command"
	equal "$(completed "$hwbp" watch -o "$tmp/once.none")" "" "files"
}

test_instruction_lengths()
{
	run "$programs/access_test"
	status_is 0
	[ ! -s "$out" ] || sed 's/^/# /' "$out"
}

run_tests "$@"
