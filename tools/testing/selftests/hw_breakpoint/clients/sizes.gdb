# SPDX-License-Identifier: GPL-2.0
# 1, 2, 4, 8 and 16 bytes, and an address that is not aligned
# expect: Hardware watchpoint 3: word
# expect: New value = {first = 4, second = 0}
# expect: Hardware watchpoint 6: *(long *)(text + 5)
# expect: New value = 7161393256947201656
watch byte
watch half
watch word
run steps
continue
continue
delete
watch pair
continue
info watchpoints
delete
watch *(short *)(text + 5)
continue
delete
watch *(long *)(text + 5)
continue
info watchpoints
delete
continue
