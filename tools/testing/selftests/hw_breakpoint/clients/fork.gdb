# SPDX-License-Identifier: GPL-2.0
# The parent is followed, its child is not stopped
watch counter
run fork
continue
continue
