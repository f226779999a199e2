# SPDX-License-Identifier: GPL-2.0
# Samples, their addresses and the functions they are from
# expect: target mem:0x*:w:u: * add_one
# expect: target mem:0x*:x:u:
# expect: 2 *third * add_one
record() { perf record -q -o "$tmp/data" "$@" 2>&1; }
script() { perf script -i "$tmp/data" "$@" 2>&1; }

record -c 1 -d -e mem:$counter:w:u ./target count 4
script -F comm,event,addr,ip,sym
record -c 2 -e mem:$counter:w:u ./target count 7
script -F comm,event,ip,sym,period
record -c 1 -g -e mem:$counter:w:u -e mem:$pair:w:u -e mem:$add_one:x:u ./target steps
script -F comm,event,ip,sym
record -c 1 -e mem:$counter:w:u ./target fork
script -F comm,ip,sym
record -c 1 -e mem:$counter:w:u ./target threads
script -F comm,ip,sym
perf report -i "$tmp/data" --stdio -F sample,comm,sym 2>&1 | grep -v '^$'
