# SPDX-License-Identifier: GPL-2.0
# The same program is started again
# expect: New value = 2
# expect: [Inferior 1 (process PID) killed]
# expect: [Inferior 1 (process PID) exited normally]
watch counter if counter == 2
run count 3
kill
run count 2
continue
