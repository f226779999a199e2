# SPDX-License-Identifier: GPL-2.0
# Counts: one event, four, five, groups, kinds of access, children and threads
# expect: 5,mem:*:w:u
# expect: 10,mem:*:rw:u
# expect: 7,mem:*:w:u
# expect: *(No space left on device)*
# expect: <not supported>,mem:*:r:u
counts() { perf stat -x, "$@" 2>&1 | cut -d, -f1,3; }

counts -e mem:$counter:w:u ./target count 5
counts -e mem:$counter:rw:u ./target count 5
counts -e mem:$counter/8:w:u ./target count 5
counts -e mem:$add_one:x:u ./target count 5
# One after the other: of several at one address emulators hit the first only.
counts -e mem:$word/1:w:u ./target steps
counts -e mem:$word/2:w:u ./target steps
counts -e mem:$word/4:w:u ./target steps
counts -e mem:$counter:w:u,mem:$mirror:w:u,mem:$table:w:u,mem:$pair:w:u ./target steps
counts -e "{mem:$counter:w:u,mem:$mirror:w:u}" ./target steps
counts -e mem:$counter:w:u ./target fork
counts -i -e mem:$counter:w:u ./target fork
counts -e mem:$counter:w:u ./target threads
counts -a -e mem:$counter:w:u ./target count 7
counts -C 0 -e mem:$counter:w:u taskset -c 0 ./target count 7
echo "five"
counts -e mem:$counter:w:u,mem:$mirror:w:u,mem:$table:w:u,mem:$pair:w:u,mem:$text:w:u ./target steps
echo "refused"
counts -e mem:$counter:r:u ./target count 5
counts -e mem:$((counter + 1))/8:w:u ./target count 5
counts -e mem:$counter/3:w:u ./target count 5
