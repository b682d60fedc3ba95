/* The parent's own records and its check of the child's; see verdicts.h. */
#include "verdicts.h"

#include <string.h>

#include "record.h"
#include "stage.h"

bool verdict_write(struct stream *out, const struct job_case *c, size_t index, bool started,
                   const struct verdict *verdict) {
    if (!started) {
        struct json start = {0};
        record_start(&start, c, index);
        if (!stream_json(out, &start)) {
            return false;
        }
    }
    struct json j = {0};
    record_end(&j, c, index, verdict->status);
    json_field_str(&j, "stage", stage_name(verdict->stage));
    if (verdict->reason != NULL) {
        json_field_str(&j, "reason", verdict->reason);
    }
    if (verdict->number_key != NULL) {
        json_key(&j, verdict->number_key);
        json_i64(&j, verdict->number);
    }
    if (verdict->log != NULL && verdict->log->size > 0) {
        json_key(&j, "log");
        json_bytes(&j, verdict->log->tail, verdict->log->size);
    }
    json_close(&j, '}');
    out->ends++;
    return stream_json(out, &j);
}

static bool starts_with(const char *line, size_t size, const char *head, size_t head_size) {
    return size >= head_size && memcmp(line, head, head_size) == 0;
}

static bool looks_sane(const char *line, size_t size) {
    if (size < 2 || line[0] != '{' || line[size - 1] != '}') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (line[i] < 0x20 || line[i] > 0x7e) {
            return false;
        }
    }
    return true;
}

enum line_kind line_kind(const char *line, size_t size, const struct job_case *due, size_t index) {
    static const char driver[] = "{\"type\":\"driver\",";
    if (!looks_sane(line, size)) {
        return LINE_BAD;
    }
    if (starts_with(line, size, driver, sizeof driver - 1)) {
        return LINE_DRIVER;
    }
    if (due == NULL) {
        return LINE_BAD;
    }
    struct json start = {0}, end = {0};
    record_start(&start, due, index);
    record_end(&end, due, index, "");
    enum line_kind kind = LINE_BAD;
    if (json_ok(&start) && json_ok(&end)) {
        if (size == start.size && memcmp(line, start.data, size) == 0) {
            kind = LINE_START;
        } else if (starts_with(line, size, end.data, end.size - 1)) {
            kind = LINE_END; /* without the closing quote of the empty status */
        }
    }
    json_free(&start);
    json_free(&end);
    return kind;
}
