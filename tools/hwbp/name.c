// SPDX-License-Identifier: GPL-2.0
/* Qualified names, and how much of them the user has to give. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "util.h"

size_t name_span(const char *text, const char *stop)
{
	size_t i;
	int depth = 0;

	for (i = 0; text[i]; i++) {
		if (!depth && strchr(stop, text[i]))
			break;
		if (strchr("<({", text[i]))
			depth++;
		/* Not the end of "->" */
		if (strchr(">)}", text[i]) && depth && !(i && text[i - 1] == '-'))
			depth--;
	}
	return i;
}

/* Scopes that need not be written: unnamed namespaces, and those of versions of a library */
static bool is_implied(const char *text)
{
	return !strcmp(text, "(anonymous namespace)") || !strcmp(text, "__cxx11") ||
	       !strcmp(text, "__1");
}

static void insert(struct name *name, size_t at, char *text, bool implied)
{
	GROW(name->parts, name->nr, name->capacity);
	memmove(name->parts + at + 1, name->parts + at,
		(name->nr++ - at) * sizeof(*name->parts));
	name->parts[at] = (struct name_part){ .text = text, .implied = implied };
}

void name_parse(struct name *name, const char *text)
{
	size_t len;
	char *part;

	memset(name, 0, sizeof(*name));
	if (!strncmp(text, "::", 2))
		text += 2;
	for (;;) {
		len = name_span(text, ":");
		while (text[len] == ':' && text[len + 1] != ':')
			len += 1 + name_span(text + len + 1, ":");
		part = xasprintf("%.*s", (int)len, text);
		insert(name, name->nr, part, is_implied(part));
		if (!text[len])
			return;
		text += len + 2;
	}
}

void name_free(struct name *name)
{
	while (name->nr)
		free(name->parts[--name->nr].text);
	free(name->parts);
	memset(name, 0, sizeof(*name));
}

void name_prepend(struct name *name, const char *text, bool implied)
{
	insert(name, 0, xstrdup(text), implied || is_implied(text));
}

char *name_text(const struct name *name)
{
	char *text = xstrdup(""), *longer;
	size_t i;

	for (i = 0; i < name->nr; i++) {
		longer = xasprintf("%s%s%s", text, i ? "::" : "", name->parts[i].text);
		free(text);
		text = longer;
	}
	return text;
}

const char *name_last(const struct name *name)
{
	return name->parts[name->nr - 1].text;
}

/* Compare the first @a_len and @b_len bytes without their spaces. */
static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, j = 0;

	for (;;) {
		while (i < a_len && a[i] == ' ')
			i++;
		while (j < b_len && b[j] == ' ')
			j++;
		if (i == a_len || j == b_len)
			return i == a_len && j == b_len;
		if (a[i++] != b[j++])
			return false;
	}
}

/*
 * Compare a component. Parameters of a function need not be given. Without the arguments
 * of a template, and without the path or the name of a package of Go, it is a partial one.
 */
static enum match match_part(const char *wanted, const char *part)
{
	size_t wanted_len = strlen(wanted), len = strlen(part);
	size_t no_params = *part == '(' ? len : name_span(part, "(");
	size_t no_args = strcspn(part, "<(");
	const char *package = memrchr(part, '/', no_args), *dot = memrchr(part, '.', no_args);

	if (same_text(wanted, wanted_len, part, len) ||
	    same_text(wanted, wanted_len, part, no_params))
		return MATCH_FULL;
	if (same_text(wanted, wanted_len, part, no_args))
		return MATCH_PARTIAL;
	if ((package && !strcmp(wanted, package + 1)) || (dot && !strcmp(wanted, dot + 1)))
		return MATCH_PARTIAL;
	return MATCH_NONE;
}

bool name_last_matches(const struct name *wanted, const char *text)
{
	return match_part(name_last(wanted), text) != MATCH_NONE;
}

enum match name_match(const struct name *wanted, const struct name *name)
{
	enum match match = MATCH_FULL, part;
	size_t i = wanted->nr, j = name->nr;

	while (i && j) {
		part = match_part(wanted->parts[i - 1].text, name->parts[j - 1].text);
		if (part == MATCH_NONE && i < wanted->nr && name->parts[j - 1].implied) {
			j--;
			continue;
		}
		if (part == MATCH_NONE && wanted->parts[i - 1].implied)
			part = MATCH_FULL;
		else
			j--;
		if (part == MATCH_NONE)
			return MATCH_NONE;
		if (part == MATCH_PARTIAL)
			match = MATCH_PARTIAL;
		i--;
	}
	if (i)
		return MATCH_NONE;
	while (j) {
		if (!name->parts[--j].implied)
			return MATCH_PARTIAL;
	}
	return match;
}
