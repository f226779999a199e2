// SPDX-License-Identifier: GPL-2.0
/*
 * Output for programs: one JSON object per line.  Each line is complete, so a reader
 * can follow the report while it is written.
 */
#define _GNU_SOURCE
#include <inttypes.h>

#include "json.h"
#include "util.h"

/* Length of the UTF-8 sequence at @p, 0 if there is none */
static size_t utf8_len(const unsigned char *p)
{
	size_t i, len = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;

	if (*p < 0xc2 || *p > 0xf4)
		return 0;
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

/* Names of threads and files may contain any byte. */
static size_t put_character(FILE *out, const unsigned char *p)
{
	size_t len = 1;

	if (*p == '"' || *p == '\\') {
		fprintf(out, "\\%c", *p);
	} else if (*p < ' ' || *p == 0x7f) {
		fprintf(out, "\\u%04x", *p);
	} else if (*p < 0x80) {
		fputc(*p, out);
	} else {
		len = utf8_len(p);
		if (len)
			fwrite(p, 1, len, out);
		else
			fputs("\\ufffd", out);
	}
	return len ? len : 1;
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putc_unlocked('"', out);
	while (*p) {
		if (is_plain(*p))
			putc_unlocked(*p++, out);
		else
			p += put_character(out, p);
	}
	putc_unlocked('"', out);
}

/* A key may be the name of a member, which debug information may give any characters. */
static void put_key(struct json *json, const char *key)
{
	if (json->comma)
		put_short(json->out, ", ");
	json->comma = true;
	put_text(json->out, key);
	put_short(json->out, ": ");
}

struct json json_begin(FILE *out, const char *type)
{
	struct json json = { .out = out };

	putc_unlocked('{', out);
	json_string(&json, "type", type);
	return json;
}

void json_end(struct json *json)
{
	put_short(json->out, "}\n");
}

void json_string(struct json *json, const char *key, const char *value)
{
	put_key(json, key);
	if (value)
		put_text(json->out, value);
	else
		fputs("null", json->out);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	put_key(json, key);
	put_number(json->out, value, 0, 0);
}

void json_i64(struct json *json, const char *key, int64_t value)
{
	put_key(json, key);
	put_signed(json->out, value);
}

void json_int(struct json *json, const char *key, int value)
{
	json_i64(json, key, value);
}

void json_number(struct json *json, const char *key, const char *number)
{
	put_key(json, key);
	fputs_unlocked(number, json->out);
}

void json_id(struct json *json, const char *key, int value)
{
	if (value < 0)
		json_string(json, key, NULL);
	else
		json_int(json, key, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	put_key(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_address(struct json *json, const char *key, uint64_t address)
{
	put_key(json, key);
	/* Numbers of JSON are exact up to 53 bits only. */
	fprintf(json->out, "\"%#" PRIx64 "\"", address);
}

void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t len)
{
	size_t i;

	put_key(json, key);
	fputc('"', json->out);
	for (i = 0; i < len; i++)
		fprintf(json->out, "%02x", bytes[i]);
	fputc('"', json->out);
}

void json_seconds(struct json *json, const char *key, uint64_t ns)
{
	put_key(json, key);
	put_number(json->out, ns / 1000000000, 0, 0);
	putc_unlocked('.', json->out);
	put_number(json->out, ns % 1000000000, 9, '0');
}

void json_object_begin(struct json *json, const char *key)
{
	put_key(json, key);
	fputc('{', json->out);
	json->comma = false;
}

void json_array_begin(struct json *json, const char *key)
{
	put_key(json, key);
	fputc('[', json->out);
	json->comma = false;
}

void json_array_end(struct json *json)
{
	fputc(']', json->out);
	json->comma = true;
}

void json_element_begin(struct json *json)
{
	fputs(json->comma ? ", {" : "{", json->out);
	json->comma = false;
}

void json_element_end(struct json *json)
{
	fputc('}', json->out);
	json->comma = true;
}
