// SPDX-License-Identifier: GPL-2.0
/* A library with a variable that the program does not name. */
void shelf_add(long n);

long shelf_level;

void shelf_add(long n)
{
	shelf_level += n;
}
