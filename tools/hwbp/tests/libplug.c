// SPDX-License-Identifier: GPL-2.0
/* A library with one function, whose name is set with -DPLUG=. */
void PLUG(long *to);

void PLUG(long *to)
{
	*to += 1;
}
