#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Values that hwbp shows, compares and tests. The program changes prints its own list of
# what each of its writes has changed, which must be the list of hwbp. Where gdb is
# installed, its software watchpoints must find the same changes.

. "$(dirname "$0")/hwbp_test.sh"

max_length=$(cat $pmu/caps/max_length 2>/dev/null || echo 8)

# On a kernel that does not record values, sets $skip and fails.
can_record()
{
	skip=
	[ -e $pmu/format/value ] || skip="this kernel does not record values"
	[ -z "$skip" ]
}

# The column VALUE of the hits
values()
{
	hits | sed -E 's/^ *([^ ]+ +){6}//'
}

# What the program printed about the place $1
expected()
{
	sed -n "s/^$1 //p" "$out" | sed "${2:-}"
}

# Variables whose values gdb prints like hwbp
plain="number big real state pair.right"

# Prints what gdb says about them in the program $1, in the form of the program's own list.
changes_of_gdb()
{
	{
		echo "set debuginfod enabled off"
		echo "set can-use-hw-watchpoints 0"
		echo "break change_scalars"
		echo run
		printf 'watch %s\n' $plain
		# The error at the end of the program ends the script.
		echo "while 1"
		echo continue
		echo end
	} >"$tmp/script"
	timeout 300 gdb -q -batch -nx -x "$tmp/script" "$1" </dev/null 2>/dev/null | awk '
		/^Watchpoint [0-9]*: / { place = $3; next }
		sub(/^Old value = /, "") { old = $0 }
		sub(/^New value = /, "") { print place, old, "->", $0 }'
}

gdb_agrees()
{
	command -v gdb >/dev/null || return 0
	run "$1"
	for place in $plain; do
		grep "^$place .*->" "$out"
	done | sort >"$tmp/expected"
	changes_of_gdb "$1" | sort | diff "$tmp/expected" - >"$tmp/diff" ||
		complain "gdb: $(cat "$tmp/diff")"
}

changes_are_shown()
{
	if [ ! -x "$programs/$1" ]; then
		skip="$1 was not built: its compiler is missing"
		return
	fi
	gdb_agrees "$programs/$1"
	can_record || return
	"$programs/$1" | sed 's/ .*//' | sort -u >"$tmp/places"
	while read -r place <&3; do
		[ "$place" != job ] || [ "$max_length" -ge 32 ] || continue
		[ "$place" != table ] || [ "$max_length" -ge 16 ] || continue
		watch "$place" -- "$programs/$1"
		status_is 0
		expected "$place" >"$tmp/expected"
		[ -s "$tmp/expected" ] || complain "no rows of $place"
		values | diff "$tmp/expected" - >"$tmp/diff" ||
			complain "$place: $(cat "$tmp/diff" "$err")"
	done 3<"$tmp/places"
}

test_formats_and_expressions()
{
	run "$programs/value_test"
	status_is 0
	[ ! -s "$out" ] || sed 's/^/# /' "$out"
}

test_changes_of_a_program_in_c()
{
	changes_are_shown changes
}

test_changes_of_a_program_in_cxx()
{
	changes_are_shown changes_cxx
}

# Whatever thread and CPU makes an access, the value before is that after the one before it.
test_values_of_several_threads()
{
	can_record || return
	threads_start 50
	watch_in_background watch total -p $threads
	threads_finish 200
	watch_ended
	status_is 0
	hits | sed 's/.* \([0-9]* -> [0-9]*\)$/\1/' | sort -n >"$tmp/values"
	seq 200 | awk '{ print $1 - 1, "->", $1 }' | diff - "$tmp/values" >"$tmp/diff" ||
		complain "$(cat "$tmp/diff")"
}

test_json_of_values()
{
	can_record || return
	watch --json state -- "$programs/changes"
	status_is 0
	json_has "$report" ""
	json_has "$report" hit old new name value
	grep -q '"type": "place".*"values": "recorded"' "$report" ||
		complain "$(head -n 1 "$report")"
	name='{"name": "\([A-Z]*\)", "value": \([0-9]\)}'
	equal "$(sed -n 's/.*"old": '"$name"', "new": '"$name"'.*/\1 \2 \3 \4/p' "$report" |
		 head -n 2 | xargs)" "IDLE 0 BUSY 1 BUSY 1 DONE 2" "values"
	watch --json real -- "$programs/changes"
	json_has "$report" ""
	equal "$(sed -n 's/.*"hit".*"old": \([^,]*\), "new": \([^,}]*\).*/\1 \2/p' "$report" |
		 head -n 2 | xargs)" "0 -0.125 -0.125 0" "values"
	[ "$max_length" -lt 32 ] && return
	watch --json job -- "$programs/changes"
	json_has "$report" ""
	grep -q '"old": {"cost": 0}, "new": {"cost": 0.5}' "$report" || complain "$(cat "$report")"
	grep -q '"old": {"label": ""}, "new": {"label": ""}' "$report" ||
		complain "$(cat "$report")"
	grep -q '"old": {}, "new": {}' "$report" || complain "$(cat "$report")"
}

test_hexadecimal()
{
	can_record || return
	watch --hex number -- "$programs/changes"
	equal "$(values | sed -n '3p')" "0x4 -> 0x9" "value"
}

# A write of the same value is the fourth of six.
test_only_changes()
{
	can_record || return
	watch --changed number -- "$programs/changes"
	status_is 0
	equal "$(values)" "$(expected number "/->/!d")" "changes"
	hits_are 5
	equal "$(tail -n 1 "$report")" "1 more access changed nothing" "end"
	run "$hwbp" stat --changed -o "$report" number big -- "$programs/changes"
	status_is 0
	equal "$(sed 's/ hits; .*; / /; s/ more.*//' "$report" | tail -n 2 | xargs)" \
	      "number 5 1 big 6 0" "changes and other writes"
	run "$hwbp" stat --changed --json -o "$report" number -- "$programs/changes"
	json_has "$report" count silent
	grep -q '"hits": 5, .*"silent": 1}' "$report" || complain "$(cat "$report")"
	# Reads change nothing.
	watch --changed -rw counter -- "$programs/tick" 4
	hits_are 3
	equal "$(tail -n 1 "$report")" "9 more accesses changed nothing" "end"
}

test_condition()
{
	can_record || return
	watch --if 'new > 8 && old != new' number -- "$programs/changes"
	status_is 0
	equal "$(values)" "$(expected number '/->/!d; 1,2d')" "hits"
	hits_are 3
	grep -q "^3 hits at 1 place " "$report" || complain "$(cat "$report")"
	watch --if 'new.id' -n 2 --json job -- "$programs/changes"
	equal "$(json_types "$report")" "1 count 1 end 2 hit 2 instruction 1 place" "lines"
	watch --if 'state::BUSY == new || old == DONE' --json state -- "$programs/changes"
	equal "$(sed -n 's/.*"count".*"hits": \([0-9]*\), "scaled": \([0-9]*\),.*/\1 \2/p' \
		 "$report")" "4 4" "count"
	if [ -x "$programs/changes_cxx" ]; then
		watch --if 'new == shop::Kind::TOY' shop::item.kind -- "$programs/changes_cxx"
		equal "$(values)" "BOOK -> TOY" "hits of an enumeration of C++"
	fi
	# Each place has a condition of its own.
	watch --if 'new == 25' number pair.right -- "$programs/changes"
	equal "$(values | sed 's/.* //')" 25 "hits of two places"
}

test_conditions_that_are_not_valid()
{
	while IFS='|' read -r place condition message; do
		watch --dry-run --if "$condition" "$place" -- "$programs/changes"
		refused "invalid argument of --if: $message"
	done <<-'END'
	number||column 1: syntax error, unexpected end of the expression
	number|new >|column 6: syntax error, unexpected end of the expression$
	number|(new|column 5: syntax error, unexpected end of the expression
	number|new new|column 5: syntax error, unexpected value
	number|new = 3|column 5: use == to compare
	number|new @ 3|column 5: unexpected '@'
	number|other == 3|column 1: unknown name 'other': use old, new, .* or an enumerator in int
	number|new.x|column 4: no member 'x' in int
	number|1.5 % new|column 5: this operator requires integers
	number|new > 99999999999999999999|column 7: invalid number
	number|new == '\q'|column 8: unknown character
	state|old == IDLING|column 8: unknown name 'IDLING': .* enumerator in enum state
	number:4|new.x|column 4: the place has no type with members
	END
	watch -x --if new main -- "$programs/changes"
	refused "-x and --if exclude each other"
	watch -x --changed main -- "$programs/changes"
	refused "-x and --changed exclude each other"
	[ "$max_length" -ge 32 ] || return
	watch --dry-run --if new number:3 -- "$programs/changes"
	refused "column 1: 'new' is not a number: it is a range of bytes"
	watch --dry-run --if "new > 3" job -- "$programs/changes"
	refused "column 1: 'new' is not a number: it is struct job; name a member"
	watch --dry-run --if "new.part[2]" job -- "$programs/changes"
	refused "column 9: no element 2 in short int\[2\]"
}

test_values_read_after_the_hit()
{
	as_stock "$hwbp" watch -o "$report" number -- "$programs/changes" 30
	status_is 0
	grep -q "^values read after the hit: " "$report" || complain "$(cat "$report")"
	equal "$(values)" "$(expected number)" "values"
	as_stock "$hwbp" watch --changed -o "$report" number -- "$programs/changes" 30
	equal "$(values)" "$(expected number "/->/!d")" "changes"
	equal "$(tail -n 1 "$report")" "1 more access with the same value read after the hit" "end"
	as_stock "$hwbp" watch --json -o "$report" real -- "$programs/changes"
	grep -q '"type": "place".*"values": "read after the hit"' "$report" ||
		complain "$(head -n 1 "$report")"
	# The memory is gone when the program has ended.
	as_stock "$hwbp" watch -o "$report" counter -- "$programs/tick" 1
	hits_are 1
	as_stock "$hwbp" stat --changed number -- "$programs/changes"
	refused "stat --changed cannot be used: this kernel does not compare values"
}

# As if the kernel did not give values to the user
test_values_that_are_refused()
{
	can_record || return
	mkdir -p "$tmp/refused"
	cp $pmu/format/* "$tmp/refused"
	echo config:63 >"$tmp/refused/value"
	run unshare -m sh -c "mount --bind '$tmp/refused' $pmu/format &&
			      exec '$hwbp' watch -o '$report' number -- '$programs/changes' 30"
	status_is 0
	grep -q "^values read after the hit: " "$report" || complain "$(cat "$report" "$err")"
	equal "$(values)" "$(expected number)" "values"
}

# All hits up to the crash are in the file, which ends with the signal.
test_program_that_crashes()
{
	watch counter -- "$programs/tick" 5 -11
	status_is 139
	hits_are 5
	can_record && equal "$(values | tail -n 1)" "3 -> 4" "last value"
	skip=
	equal "$(tail -n 1 "$report")" \
	      "the program was killed by signal 11 (Segmentation fault)" "end"
}

# On a terminal with few columns the instruction has a line of its own.
test_values_on_a_narrow_terminal()
{
	can_record || return
	run env TERM=xterm NO_COLOR=1 "$programs/on_tty" \
		"$hwbp" watch -n 1 number -- "$programs/changes"
	# The program writes to this terminal, too, between the two lines of the hit.
	tr -d '\r' <"$out" | sed -n '/^.* changes  .* 0 -> 1$/,$p' >"$tmp/line"
	grep -q "^ \{13\}change_scalars+0x[0-9a-f]* [^ ]*changes.c:[0-9]*$" "$tmp/line" ||
		complain "$(cat "$out")"
}

run_tests "$@"
