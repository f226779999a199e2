# SPDX-License-Identifier: GPL-2.0
# The same program is started again
watch counter if counter == 2
run count 3
kill
run count 2
continue
