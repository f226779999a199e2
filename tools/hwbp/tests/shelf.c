// SPDX-License-Identifier: GPL-2.0
/* Change a variable of libshelf.so by a call. */
void shelf_add(long n);

int main(void)
{
	int i;

	for (i = 0; i < 4; i++)
		shelf_add(i);
	return 0;
}
