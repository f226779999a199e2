// SPDX-License-Identifier: GPL-2.0
/*
 * opens: after a line of input, load libshelf.so; after another one, change its variable
 * three times.
 */
#include <dlfcn.h>
#include <stdio.h>

static void wait_for_line(const char *state)
{
	puts(state);
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
}

int main(void)
{
	void (*add)(long n);
	void *library;
	int i;

	wait_for_line("ready");
	library = dlopen("libshelf.so", RTLD_NOW);
	add = library ? dlsym(library, "shelf_add") : NULL;
	if (!add)
		return 3;
	wait_for_line("opened");
	for (i = 0; i < 3; i++)
		add(i);
	return 0;
}
