// SPDX-License-Identifier: GPL-2.0
/*
 * tick [WRITES [STATUS]]: make a known number of writes, reads and calls, print the
 * source lines that make them, and exit with STATUS.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
	short left;
	short right;
};

struct record {
	char name[12];
	struct pair pair[3];
	union {
		unsigned int word;
		unsigned char byte[4];
	};
	unsigned int flag : 3;
};

long counter;
static long hidden;
struct record record;
char bytes[16];
long filled;
__thread long per_thread;

static int write_line;

/* The access is the last instruction of this source line. */
static void tick_write(long n)
{
	write_line = __LINE__ + 1;
	counter = n;
}

static long tick_read(void)
{
	return counter;
}

static void tick_hidden(void)
{
	hidden++;
}

static void tick_record(short n)
{
	record.pair[2].right = n;
	record.byte[1] = n;
}

/*
 * A single instruction that writes sixteen bytes one by one. Hits of all bytes but the
 * last are reported at the instruction's own address, like a hit of the store before it.
 */
static void tick_repeat(void)
{
	unsigned long n = sizeof(bytes);
	char *to = bytes, other;

	asm volatile("movb $1,%2\n"
		     "tick_string:\n\t"
		     "rep stosb" : "+D"(to), "+c"(n), "=m"(other) : "a"(7) : "memory");
}

static void tick_copy(const char *from)
{
	memcpy(bytes, from, sizeof(bytes));
}

static void tick_by_kernel(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	if (read(fd, &filled, sizeof(filled)) != sizeof(filled))
		abort();
	close(fd);
}

static long tick_static_local(void)
{
	static long calls;

	return ++calls;
}

/* With optimization the call is CALL with a memory operand. */
static void __attribute__((noinline)) tick_hooked(void)
{
	asm volatile("" : : : "memory");
}

void (*volatile hook)(void);

static long __attribute__((noinline)) tick_hook(void)
{
	hook();
	return 1;
}

int main(int argc, char **argv)
{
	long i, writes = argc > 1 ? atol(argv[1]) : 3, sum = 0;
	int status = argc > 2 ? atoi(argv[2]) : 0;

	for (i = 0; i < writes; i++) {
		tick_write(i);
		sum += tick_read();
		sum += tick_read();
	}
	tick_hidden();
	hook = tick_hooked;
	sum += tick_hook() - 1;
	tick_record(5);
	tick_repeat();
	tick_copy("sixteen letters");
	tick_by_kernel();
	per_thread = tick_static_local();
	printf("tick: sum %ld hidden %ld, counter written at tick.c:%d\n", sum, hidden,
	       write_line);
	fflush(stdout);
	if (status < 0)
		raise(-status);
	return status;
}
