// SPDX-License-Identifier: GPL-2.0
/* A library with variables that the program does not name. */
void shelf_add(long n);

long shelf_level;
long shelf_opened;

__attribute__((constructor)) static void shelf_open(void)
{
	shelf_opened++;
}

void shelf_add(long n)
{
	shelf_level += n;
}
