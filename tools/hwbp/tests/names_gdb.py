# SPDX-License-Identifier: GPL-2.0
#
# gdb -p PID -x names_gdb.py: print the rows of the file $ROWS with the addresses and the
# sizes that gdb finds, for the rows that have an expression of gdb and that it can
# evaluate. See names.h.

import os

import gdb

gdb.execute("set language " + os.environ["LANGUAGE"])


def select(tid):
    """Select the thread with this number."""
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == tid:
            thread.switch()


for line in open(os.environ["ROWS"]):
    place, address, size, tid, expression = line.rstrip("\n").split("\t")
    if not expression:
        continue
    if tid:
        select(int(tid))
    try:
        value = gdb.parse_and_eval(expression)
    except gdb.error:
        continue
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_REF:
        value = value.referenced_value()
    if value.address is None:
        continue
    print("\t".join((place, hex(int(value.address)), str(value.type.sizeof), tid, expression)))
