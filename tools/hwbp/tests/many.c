// SPDX-License-Identifier: GPL-2.0
/*
 * Write to more members than there are registers: many ROUNDS. Each member is written
 * once a round, with time between the rounds.
 *
 * QEMU TCG reports the last hit of a breakpoint once more together with the next hit of
 * another one, unless a write to the same page that hits nothing comes in between. The
 * writes to many.rest are for this; reads do not help.
 */
#include <stdlib.h>

#define SPIN	10000

struct many {
	long a;
	long b;
	long c;
	long d;
	long e;
	long f;
	long rest;
} __attribute__((aligned(4096)));

volatile struct many many;

static void write_all(void)
{
	many.a++;
	many.rest = 0;
	many.b++;
	many.rest = 0;
	many.c++;
	many.rest = 0;
	many.d++;
	many.rest = 0;
	many.e++;
	many.rest = 0;
	many.f++;
	many.rest = 0;
}

static void spin(void)
{
	volatile int i;

	for (i = 0; i < SPIN; i++)
		;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	while (rounds--) {
		write_all();
		spin();
	}
	return 0;
}
