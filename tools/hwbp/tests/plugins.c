// SPDX-License-Identifier: GPL-2.0
/*
 * Load, call and unload a library, and then another one, which is mapped at the same
 * address.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

long plugged;

static void call(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW);
	void (*plug)(long *to);

	*(void **)&plug = handle ? dlsym(handle, name) : NULL;
	if (!plug) {
		fprintf(stderr, "plugins: %s\n", dlerror());
		exit(2);
	}
	plug(&plugged);
	printf("%s at %p\n", name, *(void **)&plug);
	dlclose(handle);
}

int main(void)
{
	call("libplug_a.so", "plug_a");
	call("libplug_b.so", "plug_b");
	call("libplug_a.so", "plug_a");
	return 0;
}
