#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Places by the names of their languages. Each of the programs names_* prints rows with
# expressions, and the addresses and sizes that its compiler gives to them, see
# tools/hwbp/tests/names.h. hwbp must find the same ones. So must gdb, where it is
# installed: the rows are those that people would type there.

. "$(dirname "$0")/hwbp_test.sh"

# Nothing is watched: these tests also run on a kernel that must not be disturbed.
no_events=1

max_length=$(cat $pmu/caps/max_length 2>/dev/null || echo 8)

# Starts the program $1; its rows are in $tmp/rows, its process is $threads. Sets $skip if
# it was not built.
names_start()
{
	skip=
	if [ ! -x "$programs/$1" ]; then
		skip="$1 was not built: its compiler is missing"
		return 1
	fi
	program_start "$1"
	grep "	" "$tmp/threads" | tr -d '\r' >"$tmp/rows"
	[ -s "$tmp/rows" ] || complain "no rows: $(cat "$tmp/threads")"
}

names_finish()
{
	exec 9>&-
	wait "$threads" || complain "status $? of the program"
}

# Reads rows that have the same option and process, and gives their places to one hwbp.
places_are_found()
{
	option=$1
	pid=$2
	cut -f 1 "$tmp/some" >"$tmp/places"
	set --
	while IFS= read -r place; do
		set -- "$@" "$place"
	done <"$tmp/places"
	[ $# -gt 0 ] || return
	run "$hwbp" stat --dry-run --json $option "$@" -p "$pid"
	status_is 0
	sed 's/.*"place": "\(.*\)", "access".*"address": "\([^"]*\)".*/\1	\2/' "$out" >"$tmp/found"
	cut -f 1,2 "$tmp/some" | diff - "$tmp/found" >"$tmp/diff" || complain "$(cat "$tmp/diff")"
	[ -n "$option" ] && return
	sed 's/.*"len": \([0-9]*\).*/\1/' "$out" >"$tmp/found"
	cut -f 3 "$tmp/some" | diff - "$tmp/found" >"$tmp/diff" ||
		complain "lengths: $(cat "$tmp/diff")"
}

# An object that is too long for a breakpoint is found, too: the message has its size.
long_places_are_refused()
{
	while IFS='	' read -r place address size _; do
		run "$hwbp" stat --dry-run "$place" -p "$threads"
		refused "is $size bytes long"
		run "$hwbp" stat --dry-run --json "$place:1" -p "$threads"
		grep -q "\"$address\"" "$out" || complain "$place: $(cat "$out" "$err")"
	done <"$tmp/some"
}

gdb_agrees()
{
	command -v gdb >/dev/null || return
	ROWS=$tmp/rows LANGUAGE=$1 gdb -q -batch -nx -ex "set debuginfod enabled off" -p "$threads" \
		-x "$programs/names_gdb.py" 2>"$tmp/gdb.err" | awk -F '	' 'NF == 5' >"$tmp/gdb"
	# gdb knows some names less than hwbp: those of LTO, say.
	grep -vxFf "$tmp/rows" "$tmp/gdb" | grep -v "$2" >"$tmp/diff" &&
		complain "gdb: $(cat "$tmp/diff")"
	rows=$(awk -F '	' '$5 != ""' "$tmp/rows" | wc -l)
	[ "$(wc -l <"$tmp/gdb")" -ge $((rows * 3 / 4)) ] ||
		complain "gdb knows few of $rows rows: $(cat "$tmp/gdb" "$tmp/gdb.err")"
}

# $1: program, $2: its language in gdb, $3: pattern of places that gdb gets wrong
names_are_found()
{
	names_start "$1" || return
	fits='($3 == 1 || $3 == 2 || $3 == 4 || $3 == 8 || $3 <= max)'
	data='$3 != "x" && $4 == ""'
	awk -F '	' -v max="$max_length" "$data && $fits" "$tmp/rows" >"$tmp/some"
	[ -s "$tmp/some" ] || complain "no rows"
	places_are_found "" "$threads"
	awk -F '	' '$3 == "x"' "$tmp/rows" >"$tmp/some"
	places_are_found -x "$threads"
	tid=$(awk -F '	' '$4 != "" { print $4; exit }' "$tmp/rows")
	awk -F '	' '$4 != ""' "$tmp/rows" >"$tmp/some"
	places_are_found "" "$tid"
	awk -F '	' -v max="$max_length" "$data && !$fits" "$tmp/rows" >"$tmp/some"
	long_places_are_refused
	gdb_agrees "$2" "${3:-^$}"
	names_finish
}

test_names_of_c()
{
	names_are_found names_c c
}

test_names_of_c_32_bit()
{
	names_are_found names_c_32 c
}

test_names_of_c_by_clang()
{
	names_are_found names_c_clang c
}

test_names_of_c_with_lto()
{
	names_are_found names_c_lto c
}

test_names_of_c_in_dwarf_4()
{
	names_are_found names_c_dwarf4 c
}

test_names_of_c_in_split_units()
{
	names_are_found names_c_split c "^per_thread"
	names_are_found names_c_split4 c "^per_thread"
}

# The library that hwbp is built with may be too old to read a package.
test_names_of_c_in_a_package()
{
	skip=
	[ -e "$programs/names_c_package" ] || { skip="dwp is missing"; return; }
	run "$hwbp" stat --dry-run first.value -- "$programs/names_c_package"
	if [ "$status" -eq 0 ]; then
		names_are_found names_c_package c "^per_thread"
	else
		refused "'first': it is in '$programs/names_c_package.dwp', which libdw reads since"
	fi
}

test_names_of_a_unit_that_is_missing()
{
	cp "$programs/names_c_split" "$tmp/names_c_split"
	run "$hwbp" stat --dry-run first.value -- "$tmp/names_c_split"
	refused "information for 'first': the file 'names_c_split-names_c.dwo' was not found"
}

test_names_of_c_in_a_linked_file()
{
	names_are_found names_c_link c
}

test_names_of_cxx()
{
	names_are_found names_cxx c++
}

test_names_of_cxx_by_clang()
{
	names_are_found names_cxx_clang c++
}

test_names_of_rust()
{
	names_are_found names_rust rust
}

test_names_of_go()
{
	names_are_found names_go c
}

# Runs hwbp for the place $2 of the program $1, which it refuses with the message $3.
name_is_refused()
{
	run "$hwbp" stat --dry-run "$2" -- "$programs/$1"
	refused "$3"
}

test_ambiguous_names()
{
	for program in names_c names_c_clang names_c_lto; do
		[ -x "$programs/$program" ] || continue
		name_is_refused $program twice "ambiguous.*names_[bc].c:twice, names_[bc].c:twice"
		name_is_refused $program calls "ambiguous, .*::calls, [a-z]*_calls::calls"
	done
	for program in names_cxx names_cxx_clang; do
		[ -x "$programs/$program" ] || continue
		name_is_refused $program calls "ambiguous, .*bump.*::calls, bump.*::calls"
		name_is_refused $program Box::last "ambiguous, .*shop::deep::Box<.*>::last, shop::deep::Box<"
	done
	[ -x "$programs/names_cxx" ] || return
	run "$hwbp" stat --dry-run -x shop::overloaded -- "$programs/names_cxx"
	refused "ambiguous, .*shop::overloaded([il].*), shop::overloaded([il]"
	# One of them frees the object, too; in the source both have one name.
	run "$hwbp" stat --dry-run -x Cart::~Cart -- "$programs/names_cxx"
	refused "ambiguous, .* _ZN4shop4CartD[012]Ev, _ZN4shop4CartD[012]Ev"
	run "$hwbp" stat --dry-run -x _ZN4shop4CartD0Ev -- "$programs/names_cxx"
	status_is 0
}

test_similar_names()
{
	name_is_refused names_c vlaue "no symbol 'vlaue' in .*, but there is 'value'"
	name_is_refused names_c frist.value "no symbol 'frist' in .*, but there is 'first'"
	name_is_refused names_c first.vlaue "no member 'vlaue' in struct node, but there is 'value'"
	name_is_refused names_c first.prat "no member 'prat' in struct node, but there is 'part'"
	name_is_refused names_c first.nothing "first.nothing: no member 'nothing' in struct node$"
	[ ! -x "$programs/names_cxx" ] ||
		name_is_refused names_cxx Cart::totl "but there is 'shop::Cart::total'"
	[ ! -x "$programs/names_rust" ] ||
		name_is_refused names_rust bank::BALANC "but there is 'names_rust::bank::BALANCE'"
	[ ! -x "$programs/names_go" ] ||
		name_is_refused names_go main.conter "but there is 'main.counter'"
}

test_expressions_that_cannot_be_evaluated()
{
	while IFS='|' read -r place message; do
		name_is_refused names_c "$place" "$message"
	done <<-'END'
	head->next->next->value|'head->next->next' is a null pointer when the watch begins
	numbers[1]|'numbers' is a null pointer
	untyped->value|'untyped' points at an unknown type: use 0x[0-9a-f]*:LEN
	*colour|require a pointer, not enum colour
	colour->x|require a pointer, not enum colour
	colour[1]|1. does not follow an array or a pointer: 'colour' is enum colour
	grid[1][3]|the array has 3 elements
	first.value.x|'x' is not in a structure: 'first.value' is int
	(struct nonode *)0x10|unknown type 'struct nonode'
	(head|')' is missing
	value value|invalid path\|no symbol
	END
}

# The program and a library are replaced by other files while the program runs.
test_names_in_replaced_files()
{
	mkdir "$tmp/bin"
	cp "$programs/names_c" "$programs/libshelf.so" "$tmp/bin"
	start_on_fifo threads env LD_PRELOAD="$tmp/bin/libshelf.so" "$tmp/bin/names_c"
	threads=$started
	exec 9>"$tmp/threads.fifo"
	wait_for ready "$tmp/threads" "$threads"
	for file in names_c libshelf.so; do
		cp "$programs/tick" "$tmp/bin/new"
		mv "$tmp/bin/new" "$tmp/bin/$file"
	done
	run "$hwbp" stat --dry-run --json value libshelf.so:shelf_level names_c.c:twice -p "$threads"
	status_is 0
	equal "$(wc -l <"$out")" 3 "places"
	equal "$(sed -n 's/.*"place": "value".*"address": "\([^"]*\)".*/\1/p' "$out")" \
	      "$(awk -F '	' '$1 == "value" { print $2 }' "$tmp/threads")" "address"
	run "$hwbp" stat --dry-run counter -p "$threads"
	refused "no symbol 'counter' in .*/names_c or"
	names_finish
}

test_variable_of_the_c_library()
{
	run "$hwbp" stat --dry-run environ -- "$programs/names_c"
	status_is 0
}

run_tests "$@"
