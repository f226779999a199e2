// SPDX-License-Identifier: GPL-2.0
/*
 * Test how changes are shown, and the expressions of --if, with variables of this program:
 * their types come from its own debug information. Nothing is watched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "change.h"
#include "debuginfo.h"
#include "expression.h"
#include "filter.h"
#include "util.h"

#define MAX_LEN	32

enum colour { RED, GREEN, BLUE = 7, PALE = -1 };
enum flags { READ = 1, WRITE = 2, EXEC = 4 };
enum odd { LOW = 3, HIGH = 300 };

struct point {
	short x;
	short y;
};

struct account {
	char kind;
	int posted;
	double balance;
	enum colour colour;
	struct point where[2];
};

struct bits {
	unsigned int mode : 3;
	int level : 5;
	unsigned long long wide : 40;
	_Bool on : 1;
	enum flags flags : 3;
};

union either {
	unsigned char byte;
	unsigned int word;
	unsigned char bytes[4];
};

struct nested {
	union either either;
	struct {
		int inner;
		union {
			int number;
			char letter;
		};
	};
	const char *name;
};

struct packed {
	char c;
	long n;
} __attribute__((packed));

signed char v_schar;
unsigned char v_uchar;
char v_char;
short v_short;
int v_int;
unsigned int v_uint;
long v_long;
unsigned long v_ulong;
__int128 v_wide;
_Bool v_bool;
float v_float;
double v_double;
long double v_ldouble;
_Complex float v_complex;
enum colour v_colour;
enum flags v_flags;
enum odd v_odd;
void *v_pointer;
void (*v_function)(void);
char v_text[12];
unsigned char v_bytes[6];
int v_grid[2][3];
struct account account;
struct bits v_bits;
union either v_either;
struct nested v_nested;
struct packed v_packed;
struct account *v_account = &account;
struct point v_points[3];
/* See value_dwarf.S */
extern unsigned char crafted[32];

static struct symbols *syms;
static struct value_format format;
static int failed;

static void check(const char *place, const char *what, const char *got, const char *expected)
{
	if (!strcmp(got, expected))
		return;
	printf("%s, %s: \"%s\" instead of \"%s\"\n", place, what, got, expected);
	failed = 1;
}

/* ---- changes ---- */

/* The place that is being changed, and its bytes before and after that */
static struct location loc;
static uint8_t before[MAX_LEN];
static uint8_t after[MAX_LEN];

static void find(const char *place)
{
	struct expression expr = {
		.text = place,
		.syms = syms,
		.ready = true,
		.tid = getpid(),
	};
	const struct value *value = &expr.value;

	if (!expression_evaluate(&expr)) {
		printf("%s was not found\n", place);
		exit(1);
	}
	loc = (struct location){
		.address = value->address,
		.len = value->bit_size ? (value->bit_offset + value->bit_size + 7) / 8 :
					 value->size,
		.text = place,
		.type = value->type,
		.bit_offset = value->bit_offset,
		.bit_size = value->bit_size,
	};
	if (!loc.len || loc.len > MAX_LEN) {
		printf("%s has %u bytes\n", place, loc.len);
		exit(1);
	}
}

static char *text_of_change(const uint8_t *old, const uint8_t *new)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	change_print(f, &format, &loc, old, new);
	fclose(f);
	return text;
}

static char *json_of_change(const uint8_t *old, const uint8_t *new)
{
	struct json json = { 0 };
	char *text;
	size_t size;

	json.out = open_memstream(&text, &size);
	change_json(&json, &format, &loc, old, new);
	fclose(json.out);
	return text;
}

#define CHANGE(place, statement, text, json)					\
	do {									\
		find(place);							\
		memcpy(before, (void *)loc.address, loc.len);			\
		statement;							\
		memcpy(after, (void *)loc.address, loc.len);			\
		check(place, "text", text_of_change(before, after), text);	\
		check(place, "JSON", json_of_change(before, after), json);	\
	} while (0)

static void test_numbers(void)
{
	CHANGE("v_schar", v_schar = -5, "0 -> -5", "\"old\": 0, \"new\": -5");
	CHANGE("v_uchar", v_uchar = 200, "0 -> 200", "\"old\": 0, \"new\": 200");
	CHANGE("v_short", v_short = -300, "0 -> -300", "\"old\": 0, \"new\": -300");
	CHANGE("v_int", v_int = 42, "0 -> 42", "\"old\": 0, \"new\": 42");
	CHANGE("v_int", v_int = 42, "42", "\"old\": 42, \"new\": 42");
	CHANGE("v_uint", v_uint = ~0U, "0 -> 4294967295", "\"old\": 0, \"new\": 4294967295");
	CHANGE("v_long", v_long = 1UL << 63, "0 -> -9223372036854775808",
	       "\"old\": 0, \"new\": -9223372036854775808");
	CHANGE("v_ulong", v_ulong = ~0UL, "0 -> 18446744073709551615",
	       "\"old\": 0, \"new\": 18446744073709551615");
	CHANGE("v_wide", v_wide = ((__int128)5 << 64) + 7, "0 -> 0x50000000000000007",
	       "\"old\": 0, \"new\": \"0x50000000000000007\"");
	CHANGE("v_bool", v_bool = 1, "false -> true", "\"old\": false, \"new\": true");
	CHANGE("v_bool", *(char *)&v_bool = 2, "true -> 2", "\"old\": true, \"new\": 2");
	CHANGE("v_float", v_float = 0.1f, "0 -> 0.1", "\"old\": 0, \"new\": 0.1");
	CHANGE("v_double", v_double = 1.0 / 3, "0 -> 0.3333333333333333",
	       "\"old\": 0, \"new\": 0.3333333333333333");
	CHANGE("v_double", v_double = 1e300 * 1e300, "0.3333333333333333 -> inf",
	       "\"old\": 0.3333333333333333, \"new\": \"inf\"");
	CHANGE("v_double", v_double = -0.0000001, "inf -> -1e-07",
	       "\"old\": \"inf\", \"new\": -1e-07");
	CHANGE("v_ldouble", v_ldouble = 2.5L, "0 -> 2.5", "\"old\": 0, \"new\": 2.5");
	CHANGE("v_complex", v_complex = 1, "00 00 00 00 00 00 00 00 -> 00 00 80 3f 00 00 00 00",
	       "\"old\": \"0000000000000000\", \"new\": \"0000803f00000000\"");
	format.hex = true;
	CHANGE("v_int", v_int = -1, "0x2a -> 0xffffffff", "\"old\": 42, \"new\": -1");
	CHANGE("v_schar", v_schar = 0x10, "0xfb -> 0x10", "\"old\": -5, \"new\": 16");
	format.hex = false;
}

static void test_characters(void)
{
	CHANGE("v_char", v_char = 'x', "0 -> 'x'", "\"old\": 0, \"new\": 120");
	CHANGE("v_char", v_char = '\n', "'x' -> '\\n'", "\"old\": 120, \"new\": 10");
	CHANGE("v_char", v_char = '\'', "'\\n' -> '\\''", "\"old\": 10, \"new\": 39");
	CHANGE("v_char", v_char = -23, "'\\'' -> -23", "\"old\": 39, \"new\": -23");
	CHANGE("v_text", strcpy(v_text, "Ada"), "\"\" -> \"Ada\"",
	       "\"old\": \"\", \"new\": \"Ada\"");
	CHANGE("v_text", v_text[1] = 0, "v_text[1] 'd' -> 0", "\"old\": \"Ada\", \"new\": \"A\"");
	CHANGE("v_text", v_text[1] = 0, "\"A\"", "\"old\": \"A\", \"new\": \"A\"");
	CHANGE("v_text", strcpy(v_text, "a\"\\\t\001\377"), "\"A\" -> \"a\\\"\\\\\\t\\001\\377\"",
	       "\"old\": \"A\", \"new\": \"a\\\"\\\\\\u0009\\u0001\\ufffd\"");
	CHANGE("v_text", memset(v_text, 'z', sizeof(v_text)),
	       "\"a\\\"\\\\\\t\\001\\377\" -> \"zzzzzzzzzzzz\"",
	       "\"old\": \"a\\\"\\\\\\u0009\\u0001\\ufffd\", \"new\": \"zzzzzzzzzzzz\"");
	strcpy(v_text, "end");
	/* Behind the end of the text */
	CHANGE("v_text", memset(v_text + 6, 'y', 2), "v_text[6] 'z' -> 'y', v_text[7] 'z' -> 'y'",
	       "\"old\": \"end\", \"new\": \"end\"");
	CHANGE("v_bytes", v_bytes[4] = 120, "v_bytes[4] 0 -> 120",
	       "\"old\": {\"4\": 0}, \"new\": {\"4\": 120}");
}

static void test_enumerations(void)
{
	CHANGE("v_colour", v_colour = BLUE, "RED -> BLUE",
	       "\"old\": {\"name\": \"RED\", \"value\": 0}, \"new\": {\"name\": \"BLUE\", \"value\": 7}");
	CHANGE("v_colour", v_colour = PALE, "BLUE -> PALE",
	       "\"old\": {\"name\": \"BLUE\", \"value\": 7}, \"new\": {\"name\": \"PALE\", \"value\": -1}");
	CHANGE("v_colour", v_colour = 3, "PALE -> 3",
	       "\"old\": {\"name\": \"PALE\", \"value\": -1}, \"new\": {\"name\": null, \"value\": 3}");
	CHANGE("v_flags", v_flags = READ | EXEC, "0 -> READ|EXEC",
	       "\"old\": {\"name\": null, \"value\": 0}, \"new\": {\"name\": \"READ|EXEC\", \"value\": 5}");
	CHANGE("v_flags", v_flags = READ | 8, "READ|EXEC -> 9",
	       "\"old\": {\"name\": \"READ|EXEC\", \"value\": 5}, \"new\": {\"name\": null, \"value\": 9}");
	CHANGE("v_odd", v_odd = 303, "0 -> 303",
	       "\"old\": {\"name\": null, \"value\": 0}, \"new\": {\"name\": null, \"value\": 303}");
}

static void test_pointers(void)
{
	char *text = xasprintf("0x0 -> %p <v_grid+0x4>", (void *)&v_grid[0][1]);
	char *json = xasprintf("\"old\": {\"address\": \"0\", \"symbol\": null}, \"new\": "
			       "{\"address\": \"%p\", \"symbol\": \"v_grid+0x4\"}",
			       (void *)&v_grid[0][1]);

	CHANGE("v_pointer", v_pointer = &v_grid[0][1], text, json);
	text = xasprintf("%p <v_grid+0x4> -> 0x10", (void *)&v_grid[0][1]);
	json = xasprintf("\"old\": {\"address\": \"%p\", \"symbol\": \"v_grid+0x4\"}, \"new\": "
			 "{\"address\": \"0x10\", \"symbol\": null}", (void *)&v_grid[0][1]);
	CHANGE("v_pointer", v_pointer = (void *)16, text, json);
	text = xasprintf("0x0 -> %p <test_pointers>", (void *)test_pointers);
	json = xasprintf("\"old\": {\"address\": \"0\", \"symbol\": null}, \"new\": "
			 "{\"address\": \"%p\", \"symbol\": \"test_pointers\"}",
			 (void *)test_pointers);
	CHANGE("v_function", v_function = test_pointers, text, json);
}

static void test_structures(void)
{
	CHANGE("account", account.posted = 4, "account.posted 0 -> 4",
	       "\"old\": {\"posted\": 0}, \"new\": {\"posted\": 4}");
	CHANGE("account", account.posted = 4, "unchanged", "\"old\": {}, \"new\": {}");
	CHANGE("account", (account.balance = 2.5, account.where[1].y = 7),
	       "account.balance 0 -> 2.5, account.where[1].y 0 -> 7",
	       "\"old\": {\"balance\": 0, \"where\": {\"1\": {\"y\": 0}}}, "
	       "\"new\": {\"balance\": 2.5, \"where\": {\"1\": {\"y\": 7}}}");
	CHANGE("(*v_account)", account.colour = GREEN, "((*v_account)).colour RED -> GREEN",
	       "\"old\": {\"colour\": {\"name\": \"RED\", \"value\": 0}}, "
	       "\"new\": {\"colour\": {\"name\": \"GREEN\", \"value\": 1}}");
	CHANGE("*v_account", account.kind = 'c', "(*v_account).kind 0 -> 'c'",
	       "\"old\": {\"kind\": 0}, \"new\": {\"kind\": 99}");
	CHANGE("account", ((char *)&account)[2] = 0x41, "account+2 0x0 -> 0x41",
	       "\"old\": {\"+2\": 0}, \"new\": {\"+2\": 65}");
	CHANGE("v_grid", v_grid[1][2] = 9, "v_grid[1][2] 0 -> 9",
	       "\"old\": {\"1\": {\"2\": 0}}, \"new\": {\"1\": {\"2\": 9}}");
	CHANGE("v_points[1]", v_points[1].x = -1, "v_points[1].x 0 -> -1",
	       "\"old\": {\"x\": 0}, \"new\": {\"x\": -1}");
	CHANGE("v_packed", v_packed.n = 5, "v_packed.n 0 -> 5",
	       "\"old\": {\"n\": 0}, \"new\": {\"n\": 5}");
	CHANGE("v_either", v_either.bytes[1] = 1, "v_either.word 0 -> 256",
	       "\"old\": {\"word\": 0}, \"new\": {\"word\": 256}");
	CHANGE("v_nested", (v_nested.inner = 1, v_nested.letter = 2, v_nested.either.byte = 3),
	       "v_nested.either.word 0 -> 3, v_nested.inner 0 -> 1, v_nested.number 0 -> 2",
	       "\"old\": {\"either\": {\"word\": 0}, \"inner\": 0, \"number\": 0}, "
	       "\"new\": {\"either\": {\"word\": 3}, \"inner\": 1, \"number\": 2}");
}

static void test_bit_fields(void)
{
	CHANGE("v_bits.mode", v_bits.mode = 5, "0 -> 5", "\"old\": 0, \"new\": 5");
	CHANGE("v_bits.level", v_bits.level = -3, "0 -> -3", "\"old\": 0, \"new\": -3");
	/* The byte has changed, but not these bits of it. */
	CHANGE("v_bits.level", v_bits.mode = 2, "-3", "\"old\": -3, \"new\": -3");
	CHANGE("v_bits.wide", v_bits.wide = 1ULL << 39, "0 -> 549755813888",
	       "\"old\": 0, \"new\": 549755813888");
	CHANGE("v_bits", (v_bits.on = 1, v_bits.flags = WRITE, v_bits.mode = 7),
	       "v_bits.mode 2 -> 7, v_bits.on false -> true, v_bits.flags 0 -> WRITE",
	       "\"old\": {\"mode\": 2, \"on\": false, \"flags\": {\"name\": null, \"value\": 0}}, "
	       "\"new\": {\"mode\": 7, \"on\": true, \"flags\": {\"name\": \"WRITE\", \"value\": 2}}");
}

/* Members that are outside of their structure, or contain it, are not shown. */
static void test_crafted(void)
{
	CHANGE("crafted", (memset(crafted, 2, 16), crafted[31] = 1),
	       "crafted.number 0 -> 33686018, crafted.a\\\"b 0 -> 2, crafted.good 0 -> 1, "
	       "crafted.pointer 0x0 -> 0x202020202020202, crafted.much 0 -> 33686018, "
	       "crafted.crooked 0 -> 0x20202020202020202020202020202, crafted+31 0x0 -> 0x1",
	       "\"old\": {\"number\": 0, \"a\\\\\\\"b\": 0, \"good\": 0, "
	       "\"pointer\": {\"address\": \"0\", \"symbol\": null}, \"much\": 0, "
	       "\"crooked\": 0, \"+31\": 0}, "
	       "\"new\": {\"number\": 33686018, \"a\\\\\\\"b\": 2, \"good\": 1, "
	       "\"pointer\": {\"address\": \"0x202020202020202\", \"symbol\": null}, "
	       "\"much\": 33686018, \"crooked\": \"0x20202020202020202020202020202\", \"+31\": 1}");
}

static void count_variable(void *arg, const struct variable *var)
{
	(void)var;
	++*(unsigned int *)arg;
}

/* Scopes are searched up to a depth, and a declaration that is its own is none. */
static void test_deep_scopes(void)
{
	Dwfl_Module *mod = symbols_module(syms, 0);
	struct rlimit limit, small;
	unsigned int nr = 0;

	getrlimit(RLIMIT_STACK, &limit);
	small = (struct rlimit){ .rlim_cur = 512 << 10, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_STACK, &small);
	check("deep", "type", debuginfo_type(mod, "nothere") ? "found" : "unknown", "unknown");
	check("endless", "type", debuginfo_type(mod, "endless") ? "found" : "unknown", "found");
	debuginfo_variables(mod, NULL, count_variable, &nr);
	check("deep", "variables", nr ? "found" : "unknown", "found");
	setrlimit(RLIMIT_STACK, &limit);
}

static void test_unknown_values(void)
{
	find("v_int");
	v_int = 3;
	memcpy(after, &v_int, sizeof(v_int));
	check("v_int", "before unknown", text_of_change(NULL, after), "? -> 3");
	check("v_int", "after unknown", text_of_change(after, NULL), "3 -> ?");
	check("v_int", "unknown", text_of_change(NULL, NULL), "?");
	check("v_int", "JSON", json_of_change(NULL, after), "\"old\": null, \"new\": 3");
	find("v_points[0]");
	memset(after, 0, sizeof(after));
	check("v_points[0]", "before unknown", text_of_change(NULL, after),
	      "v_points[0].x ? -> 0, v_points[0].y ? -> 0");
	check("v_points[0]", "JSON", json_of_change(NULL, after),
	      "\"old\": null, \"new\": {\"x\": 0, \"y\": 0}");
	/* A place without a type */
	loc.type = NULL;
	check("4 bytes", "text", text_of_change(after, after), "0x0");
	loc.len = 3;
	check("3 bytes", "text", text_of_change(NULL, after), "? -> 00 00 00");
	check("3 bytes", "JSON", json_of_change(NULL, after), "\"old\": null, \"new\": \"000000\"");
}

/* ---- expressions ---- */

struct condition {
	const char *text;
	bool accepts;
};

/* int v_int, 10 -> 7 */
static const struct condition of_int[] = {
	{ "new", true },
	{ "!new", false },
	{ "new < old", true },
	{ "new > old", false },
	{ "new <= 7 && new >= 7 && new == 7", true },
	{ "new != 7 || old != 10", false },
	{ "new - old == -3", true },
	{ "old - new * 1 == 3", true },
	{ "(old - new) * 2 == 6", true },
	{ "old / 3 == 3 && old % 3 == 1", true },
	{ "-old / 3 == -3 && -old % 3 == -1", true },
	{ "old / 4.0 == 2.5", true },
	{ "new * 1.5 > 10.4 && new * .5 < 3.6e0", true },
	{ "new & 1", true },
	{ "old & 1", false },
	{ "(new | 8) == 15 && (new ^ 1) == 6 && ~new == -8", true },
	{ "new << 2 == 28 && new >> 1 == 3", true },
	{ "1 + 2 * 3 == 7 && 7 == 1 + 2 * 3", true },
	{ "1 || 0 && 0", true },
	{ "2 - 1 - 1", false },
	{ "new == 0x7 && new == 007 && new == 7UL", true },
	{ "'A' == 65 && '\\n' == 10 && '\\'' == 39", true },
	{ "true && !false", true },
	/* Unknown: accepted */
	{ "1 / 0", true },
	{ "!(1 / 0)", true },
	{ "1 % (new - 7) == 0", true },
	{ "1.5 / 0", true },
	{ "1 << new - 8", true },
	{ "(1 / 0) && 0", false },
	{ "0 && (1 / 0)", false },
	{ "(1 / 0) || 0", true },
};

/* unsigned long v_ulong, 0 -> 2^64 - 1: integers do not wrap */
static const struct condition of_ulong[] = {
	{ "new > 0 && new == 18446744073709551615", true },
	{ "old - new < 0", true },
	{ "new + 1 == 0", false },
	{ "new == -1", false },
	{ "new * 4 == 73786976294838206460.0", true },
};

static const struct condition of_account[] = {
	{ "old.posted + 1 == new.posted", true },
	{ "new.balance == old.balance * 2", true },
	{ "new.colour == BLUE && old.colour == RED", true },
	{ "new.colour == colour::BLUE", true },
	{ "new.colour == other::colour::GREEN", false },
	{ "new.where[1].y == 7", true },
	{ "new.kind == 'c'", true },
	{ "new.kind == 'd'", false },
};

static const struct condition of_bits[] = {
	{ "new.level == -4 && old.level == 0", true },
	{ "new.flags == (READ | EXEC)", true },
	{ "new.on", true },
	{ "old.on == true", false },
};

/* The value before is not known, that after is 7. */
static const struct condition of_unknown[] = {
	{ "old == 3", true },
	{ "!(old == 3)", true },
	{ "old == 3 && new == 8", false },
	{ "old == 3 || new == 7", true },
	{ "new == 8", false },
	{ "-old > 0", true },
};

#define CONDITIONS(table, old)	check_conditions(table, sizeof(table) / sizeof((table)[0]), old)

static void check_conditions(const struct condition *table, size_t nr, const uint8_t *old)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		bool accepts = filter_accepts(filter_parse(table[i].text, &loc), old, after);

		check(loc.text, table[i].text, accepts ? "accepts" : "does not accept",
		      table[i].accepts ? "accepts" : "does not accept");
	}
}

static void test_expressions(void)
{
	v_int = 10;
	CHANGE("v_int", v_int = 7, "10 -> 7", "\"old\": 10, \"new\": 7");
	CONDITIONS(of_int, before);
	CONDITIONS(of_unknown, NULL);
	v_ulong = 0;
	CHANGE("v_ulong", v_ulong = ~0UL, "0 -> 18446744073709551615",
	       "\"old\": 0, \"new\": 18446744073709551615");
	CONDITIONS(of_ulong, before);

	find("account");
	account = (struct account){ .posted = 3, .balance = 1.5 };
	memcpy(before, &account, loc.len);
	account = (struct account){ 'c', 4, 3, BLUE, { { 0, 0 }, { 0, 7 } } };
	memcpy(after, &account, loc.len);
	CONDITIONS(of_account, before);

	find("v_bits");
	memset(&v_bits, 0, sizeof(v_bits));
	memcpy(before, &v_bits, loc.len);
	v_bits.level = -4;
	v_bits.flags = READ | EXEC;
	v_bits.on = 1;
	memcpy(after, &v_bits, loc.len);
	CONDITIONS(of_bits, before);
}

int main(void)
{
	syms = symbols_new();
	symbols_read_maps(syms, getpid());
	format.syms = syms;
	test_numbers();
	test_characters();
	test_enumerations();
	test_pointers();
	test_structures();
	test_bit_fields();
	test_crafted();
	test_deep_scopes();
	test_unknown_values();
	test_expressions();
	return failed;
}
