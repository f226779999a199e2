// SPDX-License-Identifier: GPL-2.0
/*
 * Check that each line of standard input is one JSON object: json_check [KEY...]. Each
 * object must have the KEYs. Shares no code with json.c of hwbp.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *at;

static bool value(void);

static bool literal(const char *word)
{
	if (strncmp(at, word, strlen(word)))
		return false;
	at += strlen(word);
	return true;
}

static void space(void)
{
	at += strspn(at, " \t\r");
}

static bool escape(void)
{
	int i;

	if (*at && strchr("\"\\/bfnrt", *at)) {
		at++;
		return true;
	}
	if (*at++ != 'u')
		return false;
	for (i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)*at++))
			return false;
	}
	return true;
}

static bool string(void)
{
	if (*at++ != '"')
		return false;
	while (*at != '"') {
		if ((unsigned char)*at < ' ')
			return false;
		if (*at++ == '\\' && !escape())
			return false;
	}
	at++;
	return true;
}

static bool number(void)
{
	const char *start = at;

	at += *at == '-';
	if (*at == '0' && isdigit((unsigned char)at[1]))
		return false;
	at += strspn(at, "0123456789");
	if (*at == '.')
		at += 1 + strspn(at + 1, "0123456789");
	if (*at == 'e')
		at += 1 + strspn(at + 1, "+-");
	at += strspn(at, "0123456789");
	return at > start && isdigit((unsigned char)at[-1]);
}

static bool member(void)
{
	space();
	if (!string())
		return false;
	space();
	return *at++ == ':' && value();
}

static bool list(char end, bool (*item)(void))
{
	at++;
	space();
	if (*at == end) {
		at++;
		return true;
	}
	do {
		if (!item())
			return false;
		space();
	} while (*at == ',' && at++);
	return *at++ == end;
}

static bool value(void)
{
	space();
	switch (*at) {
	case '{':
		return list('}', member);
	case '[':
		return list(']', value);
	case '"':
		return string();
	default:
		return literal("true") || literal("false") || literal("null") || number();
	}
}

static bool has_key(const char *line, const char *key)
{
	char quoted[100];

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	return strstr(line, quoted);
}

int main(int argc, char **argv)
{
	int i, bad = 0, nr = 0;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		nr++;
		line[strcspn(line, "\n")] = '\0';
		at = line;
		if (*at != '{' || !value() || *at) {
			printf("line %d: no object: %s\n", nr, line);
			bad = 1;
		}
		for (i = 1; i < argc; i++) {
			if (has_key(line, argv[i]))
				continue;
			printf("line %d: no %s: %s\n", nr, argv[i], line);
			bad = 1;
		}
	}
	if (!nr)
		printf("no line\n");
	return bad || !nr;
}
