// SPDX-License-Identifier: GPL-2.0
/*
 * What hwbp trace watches, as commands for tracefs: a variable; the object in a field of
 * other events; or the object of a function's argument while the function runs.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "btf.h"
#include "trace_place.h"
#include "tracefs.h"
#include "util.h"

/* LEN of a watch event that gives none */
#define DEFAULT_LEN	4

/* ---- ACCESS, OFFSET and LEN ---- */

/* ":LEN"; the last colon may also be that of MODULE:SYMBOL. */
static const char *len_of(const char *spec)
{
	const char *colon = strrchr(spec, ':');

	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) ?
	       colon : "";
}

/* The offset in ACCESS[+OFFSET][:LEN] */
static long offset_of(const char *spec)
{
	return strtol(spec + strcspn(spec, "+-:"), NULL, 0);
}

void trace_place_check(const struct trace_place *place)
{
	const char *with = place->object ? "object" : "window";

	if (place->object && place->window)
		die("--object and --window exclude each other");
	if (place->clear_on && !place->object)
		die("--clear-on requires --object");
	if ((place->slots || place->timeout) && !place->object && !place->window)
		die("--%s requires --object or --window", place->slots ? "slots" : "timeout");
	if (!place->spec)
		die("no place to watch was given (see hwbp trace --help)");
	if (place->object && strchr(place->spec, '@'))
		die("with --%s the place is ACCESS[+OFFSET][:LEN], not '%s'", with, place->spec);
	if (place->window && !strstr(place->spec, "arg"))
		die("with --%s the place is [ACCESS@]argN->MEMBER[:LEN], not '%s'", with,
		    place->spec);
	if (!place->object && !place->window && !strchr(place->spec, '@'))
		die("the place is ACCESS@PLACE[:LEN], not '%s'", place->spec);
}

/* ---- members ---- */

/**
 * struct path - a member that is being looked up
 * @at: its type; that of the structure at first
 * @offset: its offset in bytes
 * @fetch: argument of an event that has the address to which @offset is added
 */
struct path {
	struct btf_ref at;
	long offset;
	char *fetch;
};

static const char *enter_member(struct path *path, const char *text)
{
	char *name = xasprintf("%.*s", (int)strcspn(text, ".-+:"), text);
	unsigned int bit_size = 0;
	uint64_t bits = 0;

	path->at = btf_member(path->at, name, &bits, &bit_size);
	if (!path->at.btf)
		die("the kernel's BTF has no member '%s'", text);
	if (bit_size)
		die("'%s' is a bit-field: use an offset", name);
	path->offset += bits / 8;
	text += strlen(name);
	free(name);
	return text;
}

/* MEMBER[.MEMBER...][->MEMBER...][+OFFSET] */
static void follow(struct path *path, const char *text)
{
	char *end = (char *)text;
	bool more = *text && !strchr("+-:", *text);

	while (more) {
		text = enter_member(path, text);
		if (!strncmp(text, "->", 2)) {
			path->at = btf_target(path->at);
			path->fetch = xasprintf("+%ld(%s)", path->offset, path->fetch);
			path->offset = 0;
			text += 2;
			more = !strchr("+-", *text);
		} else {
			more = *text == '.';
			text += more;
		}
	}
	if (*text == '+' || *text == '-') {
		path->offset += strtol(text, &end, 0);
		path->at.btf = NULL;
		text = end;
	}
	if (*text && *text != ':')
		die("'%s' does not follow a member", text);
}

/* The default of LEN is the size of the member. Values of another length have no type. */
static void set_type(struct trace_place *place, const struct path *path)
{
	struct type *type = path->at.btf ? btf_type(path->at) : NULL;
	const char *len = len_of(place->spec);

	place->loc.len = type ? type->size : DEFAULT_LEN;
	if (*len)
		place->loc.len = atoi(len + 1);
	else if (type && (type->size > 8 || !type->size || type->size & (type->size - 1)))
		die("the member has %lu bytes: append a length (1, 2, 4 or 8)",
		    (unsigned long)type->size);
	if (type && type->kind != TYPE_UNKNOWN && type->size == place->loc.len)
		place->loc.type = type;
}

static void die_without_btf(const char *text)
{
	if (!btf_exists())
		die("'%s' requires the types of the kernel (CONFIG_DEBUG_INFO_BTF): use an offset",
		    text);
}

/* ---- objects ---- */

/*
 * Split GROUP:NAME or NAME off @where, if the name is unique. Returns "GROUP/NAME"; *@rest is
 * what follows.
 */
static char *find_event(const char *where, const char **rest)
{
	int len = strcspn(where, ": "), last = 0;
	char *pattern, *file = NULL;
	glob_t found;
	size_t i;

	if (where[len] == ':') {
		last = strcspn(where + len + 1, ": ");
		pattern = xasprintf(TRACEFS "/events/%.*s/%.*s/trigger", len, where, last,
				    where + len + 1);
		*rest = where + len + 1 + last;
		if (last && !access(pattern, F_OK))
			return xasprintf("%.*s/%.*s", len, where, last, where + len + 1);
		free(pattern);
	}
	*rest = where + len;
	pattern = xasprintf(TRACEFS "/events/*/%.*s/trigger", len, where);
	if (glob(pattern, 0, NULL, &found))
		die("there is no trace event '%.*s'", len + (last ? 1 + last : 0), where);
	for (i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i] + strlen(TRACEFS "/events/");
		char *name = xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);

		file = file ? xasprintf("%s, %s", file, name) : name;
	}
	if (found.gl_pathc > 1)
		die("'%.*s' is ambiguous: %s", len, where, file);
	globfree(&found);
	free(pattern);
	return file;
}

static bool is_option(const char *text, size_t len)
{
	return isdigit((unsigned char)text[0]) || !strncmp(text, "count=", strlen("count=")) ||
	       !strncmp(text, "timeout=", strlen("timeout=")) ||
	       (len == strlen("this_cpu") && !strncmp(text, "this_cpu", len)) ||
	       (len == strlen("evict") && !strncmp(text, "evict", len)) ||
	       (len == strlen("unlimited") && !strncmp(text, "unlimited", len));
}

/* Split the field off [:FIELD][:OPTION...][ if FILTER]. Returns NULL if there is none. */
static char *take_field(const char **rest)
{
	const char *text = *rest + 1;
	size_t len;

	if (**rest != ':')
		return NULL;
	/* A cast may contain a space. */
	len = *text == '(' ? strcspn(text, ")") : 0;
	len += strcspn(text + len, ": ");
	if (is_option(text, len))
		return NULL;
	*rest = text + len;
	return xasprintf("%.*s", (int)len, text);
}

static struct btf_ref find_structure(const char *name, size_t len)
{
	char *text = xasprintf("%.*s", (int)len, name), *word = text;
	struct btf_ref ref;

	if (!strncmp(word, "struct ", 7) || !strncmp(word, "union ", 6))
		word = strchr(word, ' ') + 1;
	ref = btf_structure(word);
	if (!ref.btf)
		die("the kernel's BTF has no structure '%s'", word);
	free(text);
	return ref;
}

/*
 * (TYPE[,FROM])FIELD->MEMBER: returns FIELD, and adds the offset of the member. The kernel
 * follows further pointers itself; then all of the expression stays.
 */
static char *resolve_cast(struct path *path, char *field)
{
	char *close = strchr(field, ')'), *arrow = close ? strstr(close, "->") : NULL;
	size_t name = strcspn(field, ",)") - 1;
	struct path from = { 0 };

	if (*field != '(' || !arrow || strstr(arrow + 2, "->"))
		return field;
	die_without_btf(field);
	path->at = find_structure(field + 1, name);
	from.at = path->at;
	if (field[name + 1] == ',') {
		*close = '\0';
		follow(&from, field + name + 2);
	}
	follow(path, arrow + 2);
	path->offset -= from.offset;
	return xasprintf("%.*s", (int)(arrow - close - 1), close + 1);
}

static char *field_text(const char *field, long offset)
{
	return field && offset ? xasprintf(":%s%+ld", field, offset) :
	       field ? xasprintf(":%s", field) : xstrdup("");
}

static void resolve_object(struct trace_place *place, pid_t pid)
{
	struct path path = { 0 };
	const char *rest;
	char *field;
	long offset;

	place->set_file = find_event(place->object, &rest);
	field = take_field(&rest);
	if (!field)
		die("'%s' is not EVENT:FIELD", place->object);
	field = resolve_cast(&path, field);
	offset = offset_of(place->spec);
	if (offset)
		path.at.btf = NULL;
	offset += path.offset;
	set_type(place, &path);
	place->set = xasprintf("set_wprobe:" GROUP "/" EVENT_NAME "%s%s%s%s%s", pid,
			       field_text(field, offset), strstr(rest, ":evict") ? "" : ":evict",
			       place->timeout ? ":timeout=" : "",
			       place->timeout ? place->timeout : "", rest);
	if (!place->clear_on)
		return;
	place->clear_file = find_event(place->clear_on, &rest);
	field = take_field(&rest);
	place->clear = xasprintf("clear_wprobe:" GROUP "/" EVENT_NAME "%s%s", pid,
				 field_text(field, offset), rest);
}

/* ---- windows ---- */

/* [ACCESS@]argN[->MEMBER...][+OFFSET][:LEN] */
static void resolve_window(struct trace_place *place, pid_t pid)
{
	const char *at = strchr(place->spec, '@'), *text = at ? at + 1 : place->spec;
	struct path path = { 0 };
	char *end = NULL;
	unsigned long n = 0;

	if (!strncmp(text, "arg", 3) && isdigit((unsigned char)text[3]))
		n = strtoul(text + 3, &end, 10);
	if (!end)
		die("'%s' does not begin with the number of an argument, as arg0", text);
	path.fetch = xasprintf("$arg%lu", n + 1);
	if (!strncmp(end, "->", 2)) {
		die_without_btf(text);
		path.at = btf_target(btf_parameter(place->window, n));
		if (!path.at.btf)
			die("argument %lu of '%s' is no pointer, as far as BTF knows", n,
			    place->window);
		end += 2;
	}
	follow(&path, end);
	set_type(place, &path);
	place->carrier = xasprintf("f:" GROUP "/" CARRIER_NAME " %s p=%s:x64", pid, place->window,
				   path.fetch);
	place->set_file = xasprintf(GROUP "/" CARRIER_NAME, pid);
	place->set = xasprintf("set_wprobe:" GROUP "/" EVENT_NAME "%s:window:evict%s%s", pid,
			       field_text("p", path.offset), place->timeout ? ":timeout=" : "",
			       place->timeout ? place->timeout : "");
}

/* ---- the event ---- */

void trace_place_resolve(struct trace_place *place, pid_t pid)
{
	const char *spec = place->spec, *len = len_of(spec);
	int access = strcspn(spec, "@+-:");
	char *slots = place->slots ? xasprintf("%u", place->slots) : "", *where;

	if (*len && (!strchr("1248", len[1]) || len[2]))
		die("invalid length '%s': use 1, 2, 4 or 8", len + 1);
	if (place->object)
		resolve_object(place, pid);
	else if (place->window)
		resolve_window(place, pid);
	else
		place->loc.len = *len ? atoi(len + 1) : DEFAULT_LEN;
	if (place->window && !strchr(spec, '@'))
		access = 0;
	where = place->set ? xasprintf("%.*s@-1:%u", access ? access : 1, access ? spec : "w",
				       place->loc.len) : xstrdup(spec);
	place->loc.text = place->window ? place->window : spec;
	if (*where == 'x')
		place->event = xasprintf("w%s:" GROUP "/" EVENT_NAME " %.*s addr=$addr", slots, pid,
					 (int)strcspn(where, place->set ? ":" : ""), where);
	else
		place->event = xasprintf("w%s:" GROUP "/" EVENT_NAME " %s addr=$addr old=$old:x%u"
					 " value=$value:x%u known=$known:u8", slots, pid, where,
					 8 * place->loc.len, 8 * place->loc.len);
	free(where);
}
