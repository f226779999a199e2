/* SPDX-License-Identifier: GPL-2.0 */
/* Output for programs: one JSON object per line. */
#ifndef HWBP_JSON_H
#define HWBP_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct json - an object that is being written
 * @out: output file
 * @comma: the next member or element follows another one
 */
struct json {
	FILE *out;
	bool comma;
};

/* Begin an object with the member "type", and end it and its line. */
struct json json_begin(FILE *out, const char *type);
void json_end(struct json *json);

/* Members. A NULL @value is written as null, an @address as a string in hexadecimal. */
void json_string(struct json *json, const char *key, const char *value);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_int(struct json *json, const char *key, int value);
/* A negative @value is written as null. */
void json_id(struct json *json, const char *key, int value);
void json_bool(struct json *json, const char *key, bool value);
void json_address(struct json *json, const char *key, uint64_t address);
void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t len);
/* A number of JSON as text */
void json_number(struct json *json, const char *key, const char *number);
/* Nanoseconds as seconds */
void json_seconds(struct json *json, const char *key, uint64_t ns);

/* An object as a member; json_element_end() ends it. */
void json_object_begin(struct json *json, const char *key);

/* Array of objects */
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_element_begin(struct json *json);
void json_element_end(struct json *json);

#endif
