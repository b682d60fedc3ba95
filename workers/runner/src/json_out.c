/* JSON building; see json_out.h. */
#include "json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct json *j, const char *text, size_t size) {
    if (j->failed) {
        return;
    }
    if (j->size + size + 1 > j->room) {
        size_t room = (j->room == 0 ? 1024 : j->room * 2) + size;
        char *data = realloc(j->data, room);
        if (data == NULL) {
            j->failed = true;
            return;
        }
        j->data = data;
        j->room = room;
    }
    memcpy(j->data + j->size, text, size);
    j->size += size;
    j->data[j->size] = '\0';
}

static void separate(struct json *j) {
    if (j->comma) {
        append(j, ",", 1);
    }
    j->comma = true;
}

void json_free(struct json *j) {
    free(j->data);
    memset(j, 0, sizeof *j);
}

bool json_ok(const struct json *j) {
    return !j->failed && j->data != NULL;
}

void json_open(struct json *j, char bracket) {
    separate(j);
    append(j, &bracket, 1);
    j->comma = false;
}

void json_close(struct json *j, char bracket) {
    append(j, &bracket, 1);
    j->comma = true;
}

void json_newline(struct json *j) {
    append(j, "\n", 1);
    j->comma = false;
}

static void quote(struct json *j, const char *text, size_t size) {
    append(j, "\"", 1);
    size_t start = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            continue;
        }
        append(j, text + start, i - start);
        start = i + 1;
        char escape[8];
        int length = snprintf(escape, sizeof escape, "\\u%04x", c);
        append(j, escape, (size_t)length);
    }
    append(j, text + start, size - start);
    append(j, "\"", 1);
}

void json_key(struct json *j, const char *key) {
    separate(j);
    quote(j, key, strlen(key));
    append(j, ":", 1);
    j->comma = false;
}

void json_bytes(struct json *j, const char *text, size_t size) {
    separate(j);
    quote(j, text, size);
}

void json_str(struct json *j, const char *text) {
    json_bytes(j, text, strlen(text));
}

static void raw(struct json *j, const char *text) {
    separate(j);
    append(j, text, strlen(text));
}

void json_u64(struct json *j, uint64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    raw(j, text);
}

void json_i64(struct json *j, int64_t value) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    raw(j, text);
}

/* The shortest of a few precisions that reads back as the same double. */
void json_num(struct json *j, double value) {
    static const int precisions[] = {6, 9, 12, 15, 17};
    if (!isfinite(value)) {
        json_str(j, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    char text[40];
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        (void)snprintf(text, sizeof text, "%.*g", precisions[i], value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    raw(j, text);
}

void json_bool(struct json *j, bool value) {
    raw(j, value ? "true" : "false");
}

void json_null(struct json *j) {
    raw(j, "null");
}

void json_field_str(struct json *j, const char *key, const char *text) {
    json_key(j, key);
    json_str(j, text);
}

void json_field_u64(struct json *j, const char *key, uint64_t value) {
    json_key(j, key);
    json_u64(j, value);
}

void json_field_num(struct json *j, const char *key, double value) {
    json_key(j, key);
    json_num(j, value);
}

void json_field_i64s(struct json *j, const char *key, const int64_t *values, size_t count) {
    json_key(j, key);
    json_open(j, '[');
    for (size_t i = 0; i < count; i++) {
        json_i64(j, values[i]);
    }
    json_close(j, ']');
}
