// SPDX-License-Identifier: GPL-2.0
/* Two static variables of the same name in two files. */
long twin_next(void);

static long twin;

static void twin_first(void)
{
	twin++;
}

int main(void)
{
	twin_first();
	twin_next();
	twin_next();
	return twin != 1;
}
