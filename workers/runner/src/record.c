/* Heads of case records; see record.h. */
#include "record.h"

static void head(struct json *j, const char *type, const struct job_case *c, size_t index) {
    json_open(j, '{');
    json_field_str(j, "type", type);
    json_field_str(j, "case", c->id);
    json_field_u64(j, "index", index);
}

void record_start(struct json *j, const struct job_case *c, size_t index) {
    head(j, "start", c, index);
    json_close(j, '}');
}

void record_end(struct json *j, const struct job_case *c, size_t index, const char *status) {
    head(j, "end", c, index);
    json_field_str(j, "status", status);
}
