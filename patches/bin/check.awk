# SPDX-License-Identifier: GPL-2.0
# The faults of the patches, for patches/bin/check.  Reads of each patch, in the order of
# the series: the line "==== NAME"; its header and message up to the line of three dashes;
# "===="; the numbers of lines and the summary of its hunks, as git apply prints them.
# -v folders= holds the names of the kernel's folders.

function fault(text) { print patch ": " text }

# The header lines stand in this order, then comes an empty line.
function header_line() {
	if (line == 1)
		author = substr($0, 7)
	if ($0 == "") {
		if (line != 4)
			fault("the mail header is not From:, Date:, Subject: and an empty line")
		part = "message"
	} else if ($0 !~ "^" key[line] ": .") {
		fault("line " line ": expected the header " key[line] ":")
	} else if (line == 1 && $0 !~ /^From: [^<>]+ <[^<> ]+@[^<> ]+>$/) {
		fault("From: is not of the form Name <address>")
	} else if (line == 3 && subject[$0]++) {
		fault("another patch has the same subject")
	}
}

function message_line() {
	if ($0 == "Signed-off-by: " author)
		signed = 1
	else if (!/^([A-Z][A-Za-z-]*: |---$)/)
		signed = 0
	if ($0 == "---")
		part = "end"
	else if (/^(--- |diff -|Index: |From )/)
		fault("line " line " of the message would end it in a mail: " $0)
	else if (/^Overlay: /)
		overlay_path(substr($0, 10))
	else if (/^Replaces: /)
		replaced_path($2, $3)
	else if (/^Remove: /)
		remove_path(substr($0, 9))
	else if (/[ \t]$/)
		fault("line " line ": blanks at the end")
}

function overlay_path(path) {
	split(path, name, "/")
	if (!(name[1] in folder) || path ~ /\/\.\.?\/|\/$|[ \t]/)
		fault("Overlay: " path ": not in a folder of the kernel")
	if ((path in removed) && removed[path] == patch)
		fault("Overlay: " path ": removed by the same patch")
	overlay[path] = patch
}

function replaced_path(blob, path) {
	if (NF != 3 || blob !~ /^[0-9a-f]+$/ || overlay[path] != patch)
		fault($0 ": not a blob of the base and a file that is Overlay: here")
}

function remove_path(path) {
	if (path in removed)
		fault("Remove: " path ": " removed[path] " has removed it already")
	if (path in overlay)
		fault("Remove: " path ": " overlay[path] " brings it")
	delete created[path]
	removed[path] = patch
}

# "ADDED\tDELETED\tPATH", or " create mode 100644 PATH"
function hunk_line() {
	if (/^[0-9]+\t/) {
		hooks[++n] = substr($0, length($1 $2) + 3)
		added[hooks[n]] += $1
	} else if (sub(/^ create mode [0-7]+ /, "")) {
		created[$0] = patch
		delete removed[$0]
	} else if (!/^ mode change /) {
		fault(/^error: / ? $0 : "a hook changes lines; whole files are Overlay: and Remove:" $0)
	}
}

function finish() {
	for (; n; n--) {
		if (hooks[n] in removed)
			fault(hooks[n] ": a hook in a file that " removed[hooks[n]] " removes")
	}
	if (!signed)
		fault("no Signed-off-by: of the author")
}

BEGIN {
	count = split(folders, list)
	for (i = 1; i <= count; i++)
		folder[list[i]] = 1
	key[1] = "From"; key[2] = "Date"; key[3] = "Subject"
}

/^==== / {
	if (patch)
		finish()
	patch = substr($0, 6)
	part = "header"
	line = signed = 0
	next
}
/^====$/ {
	if (part != "end")
		fault("no line of three dashes below the message")
	part = "hunks"
	next
}
{ line++ }
part == "header" { header_line(); next }
part == "message" { message_line(); next }
part == "hunks" { hunk_line() }

END {
	if (patch)
		finish()
	for (path in created)
		if (!(path in overlay))
			print created[path] ": " path ": no later patch says what it becomes (Overlay:)"
	for (path in added)
		if (added[path] > 40 && !(path in overlay) && !(path in removed))
			print "warning: " path ": hooks add " added[path] \
				" lines to it; can that live in a file of its own?"
}
