#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# wprobe.sh: run the tests of watch events (*wprobe*.tc).

cd "$(dirname "$0")" || exit 1
exec ./ftracetest --ktap -v $(find test.d -name '*wprobe*.tc' | sort)
