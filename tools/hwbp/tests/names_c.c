// SPDX-License-Identifier: GPL-2.0
/* names_c: names and expressions of C, see names.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include "names.h"

/* Of the C library; <errno.h> requires kernel headers for each ABI. */
int *__errno_location(void);

struct opaque;
extern struct opaque *const hidden_object;
void rows_of_b(void);
int lifted(int n) __asm__("halved.constprop.0");

struct node {
	int value;
	struct node *next;
	unsigned int low : 3, across : 7, high : 1;
	unsigned long long wide : 40;
	char text[5];
	union {
		short part[2];
		unsigned int all;
	};
	struct {
		char inner;
	} named;
};

enum colour { RED, GREEN = 7 };

struct node last = { .value = 2 };
struct node first = { .value = 1, .next = &last };
struct node *volatile head = &first, *volatile *volatile to_head = &head;
void *volatile untyped = &first, *volatile untyped_head = (void *)&head;
struct node grid[2][3];
enum colour colour;
int *numbers;
static long twice = 1;
int volatile flag;
char letters[4];
double real;
_Bool truth;
struct opaque *opaque;
long value;
struct { long value; } counter_stats;

__thread long per_thread = 1;
static __thread short per_thread_static;

int lifted(int n)
{
	return n / 2;
}

static int *count_calls(void)
{
	static int calls, calls_twice;

	calls_twice += 2 * ++calls;
	ROW_AS("calls_twice", calls_twice, "count_calls::calls_twice");
	ROW_AS("count_calls::calls", calls, "count_calls::calls");
	return &calls;
}

static void other_calls(void)
{
	static int calls;

	calls++;
	ROW_AS("other_calls::calls", calls, "other_calls::calls");
}

static void *thread(void *arg)
{
	per_thread++;
	per_thread_static++;
	ROW_TLS(per_thread);
	ROW_TLS(per_thread_static);
	/* A library's; gdb needs the debug information of the C library. */
	printf("errno\t%p\t%zu\t%ld\t\n", (void *)__errno_location(), sizeof(int), (long)gettid());
	rows_end();
	exit(0);
	return arg;
}

/* The rows of thread-local variables are those of a thread that is not the main thread. */
static void run_thread(void)
{
	pthread_t other;

	pthread_create(&other, NULL, thread, NULL);
	/* A 32-bit pthread_join() aborts on a kernel without CONFIG_COMPAT_32BIT_TIME. */
	for (;;)
		pause();
}

int main(void)
{
	numbers = calloc(4, sizeof(*numbers));
	opaque = hidden_object;
	ROW(value);
	ROW(counter_stats.value);
	ROW(flag);
	ROW(letters);
	ROW(letters[2]);
	ROW(real);
	ROW(truth);
	ROW(colour);
	ROW(first.value);
	ROW(first.part[1]);
	ROW(first.all);
	ROW(first.named.inner);
	ROW(first.named);
	ROW(first.text[4]);
	ROW(first);
	ROW(grid[1][2].value);
	ROW(grid[1][2].named.inner);
	ROW(head);
	ROW(head->value);
	ROW(head->next->value);
	ROW(head->next->part[1]);
	ROW(*head);
	ROW((*head).value);
	ROW(to_head[0]->next);
	ROW((*to_head)->next->text[1]);
	ROW(*numbers);
	ROW(numbers[3]);
	ROW(((struct node *)untyped)->next->value);
	ROW_AS("(struct node *)untyped", *(struct node *)untyped, "*(struct node *)untyped");
	ROW(*(struct node **)untyped_head);
	ROW((*(struct node **)untyped_head)->value);
	ROW(*(unsigned long *)untyped);
	ROW(*(long unsigned int *)untyped);
	printf("((struct node *)%p)->next\t%p\t%zu\t\t\n", (void *)head, (void *)&head->next,
	       sizeof(head->next));
	printf("(short *)%p\t%p\t%zu\t\t\n", (void *)head, (void *)head, sizeof(short));
	ROW_BITS(first.low, first.next, sizeof(first.next), 1);
	ROW_BITS(first.across, first.next, sizeof(first.next), 2);
	ROW_BITS(first.high, first.next, sizeof(first.next) + 1, 1);
	ROW_BITS(head->low, first.next, sizeof(first.next), 1);
	ROW_BITS(head->next->across, last.next, sizeof(last.next), 2);
	ROW_AS("names_c.c:twice", twice, "'names_c.c'::twice");
	ROW_AS("'names_c.c'::twice", twice, "'names_c.c'::twice");
	ROW_FUNCTION("main", main, "");
	ROW_FUNCTION("halved", lifted, "");
	ROW_FUNCTION("halved.constprop.0", lifted, "");
	count_calls();
	other_calls();
	rows_of_b();
	run_thread();
	return 0;
}
