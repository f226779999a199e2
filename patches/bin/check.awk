# SPDX-License-Identifier: GPL-2.0
# The faults of the patches named on the command line, in the order of the series;
# for patches/bin/check.  -v folders= holds the names of the kernel's folders.

function fault(text) { print FILENAME ": " text }

# The header lines stand in this order, then comes an empty line.
function header_line() {
	headers++
	if (headers == 1)
		author = substr($0, 7)
	if ($0 == "") {
		if (headers != 4)
			fault("the mail header is not From:, Date:, Subject: and an empty line")
		part = "message"
	} else if ($0 !~ "^" key[headers] ": .") {
		fault("line " FNR ": expected the header " key[headers] ":")
	} else if (headers == 1 && $0 !~ /^From: [^<>]+ <[^<> ]+@[^<> ]+>$/) {
		fault("From: is not of the form Name <address>")
	} else if (headers == 3 && subject[$0]++) {
		fault("another patch has the same subject")
	}
}

function message_line() {
	if ($0 == "Signed-off-by: " author)
		signed = FILENAME
	else if (!/^([A-Z][A-Za-z-]*: |---$)/)
		signed = ""
	if ($0 == "---")
		part = "hooks"
	else if (/^(--- |diff -|Index: |From )/)
		fault("line " FNR " of the message would end it in a mail: " $0)
	else if (/^Overlay: /)
		overlay_path(substr($0, 10))
	else if (/^Remove: /)
		remove_path(substr($0, 9))
	else if (/[ \t]$/)
		fault("line " FNR ": blanks at the end")
}

function overlay_path(path) {
	split(path, name, "/")
	if (!(name[1] in folder) || path ~ /\/\.\.?\/|\/$|[ \t]/)
		fault("Overlay: " path ": not in a folder of the kernel")
	if (removed[path] == FILENAME)
		fault("Overlay: " path ": removed by the same patch")
	overlay[path] = FILENAME
}

function remove_path(path) {
	if (path in removed)
		fault("Remove: " path ": " removed[path] " has removed it already")
	if (path in overlay)
		fault("Remove: " path ": " overlay[path] " brings it")
	delete created[path]
	removed[path] = FILENAME
}

# A hunk holds as many lines as its head says.
function hunk_line() {
	if (/^[ -]/ || $0 == "")
		before--
	if (/^[ +]/ || $0 == "")
		after--
	if (/^\+/)
		added[path]++
	if ($0 !~ /^[ +\\-]/ && $0 != "")
		fault("line " FNR ": not a line of a hunk")
}

function hook_file() {
	path = $3
	sub(/^a\//, "", path)
	if ($0 != "diff --git a/" path " b/" path)
		fault("line " FNR ": not of the form diff --git a/PATH b/PATH")
	if (path in overlay)
		fault(path ": a hook in an overlay file after " overlay[path] ", which says what it becomes")
}

function hook_line() {
	if (before > 0 || after > 0) {
		hunk_line()
	} else if (/^diff --git /) {
		hook_file()
	} else if (/^@@ -[0-9]+(,[0-9]+)? \+[0-9]+(,[0-9]+)? @@/) {
		before = ($2 ~ /,/) ? substr($2, index($2, ",") + 1) : 1
		after = ($3 ~ /,/) ? substr($3, index($3, ",") + 1) : 1
		if (path == "")
			fault("line " FNR ": a hunk without a file")
	} else if (/^new file mode /) {
		created[path] = FILENAME
		delete removed[path]
	} else if (/^--- a\//) {
		if (path in removed)
			fault(path ": a hook in a file that " removed[path] " removes")
	} else if (/^(deleted file|rename|copy|similarity|GIT binary|Binary)/) {
		fault(path ": a hook changes lines; whole files are Overlay: and Remove:")
	} else if ($0 !~ /^(--- \/dev\/null$|\+\+\+ b\/|index |old mode |new mode |\\ No newline|$)/) {
		fault("line " FNR ": not part of a diff: " $0)
	}
}

# Checks at the end of a patch.
function finish(name) {
	if (signed != name)
		print name ": no Signed-off-by: of the author"
	if (part != "hooks")
		print name ": no line of three dashes below the message"
	if (before > 0 || after > 0)
		print name ": the last hunk of " path " is cut short"
}

BEGIN {
	count = split(folders, list)
	for (i = 1; i <= count; i++)
		folder[list[i]] = 1
	key[1] = "From"; key[2] = "Date"; key[3] = "Subject"
}

FNR == 1 {
	if (NR > 1)
		finish(previous)
	previous = FILENAME
	part = "header"
	headers = before = after = 0
	path = ""
}

part == "header" { header_line(); next }
part == "message" { message_line(); next }
{ hook_line() }

END {
	if (NR)
		finish(previous)
	for (path in created)
		if (!(path in overlay))
			print created[path] ": " path ": no later patch says what it becomes (Overlay:)"
	for (path in added)
		if (added[path] > 40 && !(path in overlay) && !(path in removed))
			print "warning: " path ": hooks add " added[path] \
				" lines to it; can that live in a file of its own?"
}
