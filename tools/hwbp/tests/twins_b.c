// SPDX-License-Identifier: GPL-2.0
long twin_next(void);

static long twin;

long twin_next(void)
{
	return ++twin;
}
