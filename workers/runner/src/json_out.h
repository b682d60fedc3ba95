/* Builds one JSON line in memory: ASCII only, non-finite numbers as the strings "nan", "inf",
 * "-inf". An allocation failure is remembered and shows in json_ok, so that callers check once, at
 * the end. */
#ifndef TILEFARM_JSON_OUT_H
#define TILEFARM_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    char *data; /* NUL-terminated unless NULL */
    size_t size, room;
    bool comma, failed;
};

void json_free(struct json *j);
bool json_ok(const struct json *j);

void json_open(struct json *j, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_bytes(struct json *j, const char *text, size_t size); /* a string; any bytes */
void json_str(struct json *j, const char *text);
void json_u64(struct json *j, uint64_t value);
void json_i64(struct json *j, int64_t value);
void json_num(struct json *j, double value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
void json_newline(struct json *j); /* ends the line */

/* key and value in one go */
void json_field_str(struct json *j, const char *key, const char *text);
void json_field_u64(struct json *j, const char *key, uint64_t value);
void json_field_num(struct json *j, const char *key, double value);
void json_field_i64s(struct json *j, const char *key, const int64_t *values, size_t count);

#endif
