# SPDX-License-Identifier: GPL-2.0
# The child is followed
set follow-fork-mode child
watch counter
run fork
continue
continue
continue
