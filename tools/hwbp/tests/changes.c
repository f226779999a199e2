// SPDX-License-Identifier: GPL-2.0
/*
 * changes [MS]: write to variables of many types, and print what each write has changed:
 * lines "PLACE OLD -> NEW", or "PLACE VALUE" for a write of the same value. The lines are
 * this program's own list: it formats the values with printf(). It waits MS between the
 * writes to a scalar. Compiled as C and as C++.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NR_STEPS	6

enum state { IDLE, BUSY, DONE };

struct job {
	int id;
	enum state state;
	short part[2];
	char label[8];
	double cost;
};

struct options {
	unsigned int depth : 4;
	int bias : 6;
};

#ifdef __cplusplus
namespace shop {
enum class Kind : unsigned char { BOOK = 1, TOY = 2 };

struct Base {
	int stock;
};

struct Item : Base {
	Kind kind;

	Item() : kind(Kind::BOOK) { stock = 3; }
};

static Item item;
}
#endif

static int number;
static unsigned long big;
static double real;
static char letter;
static enum state state;
static struct job job;
static struct options options;
static struct { short left; short right; } pair;
static int table[4];

static const char *const names[] = { "IDLE", "BUSY", "DONE" };

static char rows[200][80];
static int nr_rows;

#define ROW(...)	snprintf(rows[nr_rows++], sizeof(rows[0]), __VA_ARGS__)
#define CHANGED(format, place, old, value)					\
	do {									\
		if ((old) == (value))						\
			ROW("%s " format, place, value);			\
		else								\
			ROW("%s " format " -> " format, place, old, value);	\
	} while (0)

static void change_scalars(int ms)
{
	int step;

	for (step = 1; step <= NR_STEPS; step++) {
		int n = step % 4 ? step * step : number;
		unsigned long b = big * 31 + step * 1000000007UL;
		double r = step / 8.0 - 0.25;
		char c = 'a' + step;
		enum state s = (enum state)(step % 3);

		CHANGED("%d", "number", number, n);
		number = n;
		CHANGED("%lu", "big", big, b);
		big = b;
		CHANGED("%g", "real", real, r);
		real = r;
		if (letter)
			ROW("letter '%c' -> '%c'", letter, c);
		else
			ROW("letter 0 -> '%c'", c);
		letter = c;
		CHANGED("%s", "state", names[state], names[s]);
		state = s;
		CHANGED("%d", "pair.right", pair.right, (short)-n);
		pair.right = -n;
		usleep(1000 * ms);
	}
}

static void change_members(void)
{
	ROW("job job.id 0 -> 7");
	job.id = 7;
	ROW("job job.state IDLE -> DONE");
	job.state = DONE;
	ROW("job unchanged");
	job.state = DONE;
	ROW("job job.part[0] 0 -> -1");
	job.part[0] = -1;
	ROW("job job.label[2] 0 -> 'x'");
	job.label[2] = 'x';
	ROW("job job.cost 0 -> 0.5");
	job.cost = 0.5;
	ROW("table table[3] 0 -> 9");
	table[3] = 9;
	ROW("table table[0] 0 -> -2");
	table[0] = -2;
	/* A bit-field is written with the byte around it. */
	ROW("options options.depth 0 -> 9");
	options.depth = 9;
	ROW("options options.bias 0 -> -7");
	options.bias = -7;
}

#ifdef __cplusplus
static void change_classes(void)
{
	/* The constructor, which has run before main() */
	ROW("shop::item.kind 0 -> BOOK");
	ROW("shop::item.stock 0 -> 3");
	ROW("shop::item.kind BOOK -> TOY");
	shop::item.kind = shop::Kind::TOY;
	ROW("shop::item.stock 3 -> 12");
	shop::item.stock = 12;
}
#else
static void change_classes(void)
{
}
#endif

int main(int argc, char **argv)
{
	int i;

	change_scalars(argc > 1 ? atoi(argv[1]) : 0);
	change_members();
	change_classes();
	for (i = 0; i < nr_rows; i++)
		puts(rows[i]);
	return 0;
}
