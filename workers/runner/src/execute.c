/* The child's loop over cases; see execute.h. */
#include "execute.h"

#include "case_run.h"
#include "driver_json.h"
#include "record.h"
#include "stream.h"

/* Writes the built line and frees it. */
static bool emit(const struct session *s, struct json *line) {
    json_newline(line);
    bool good = json_ok(line) && write_all(s->fd, line->data, line->size);
    json_free(line);
    return good;
}

static bool emit_driver(const struct session *s) {
    struct json j = {0};
    json_open(&j, '{');
    json_field_str(&j, "type", "driver");
    driver_json(s->device, &j);
    json_close(&j, '}');
    return emit(s, &j);
}

static bool emit_start(const struct session *s, size_t index) {
    struct json j = {0};
    record_start(&j, &s->job->cases[index], index);
    return emit(s, &j);
}

static int no_device(const struct session *s, size_t index, const struct failure *failure) {
    struct json j = {0};
    record_end(&j, &s->job->cases[index], index, "error");
    json_field_str(&j, "stage", stage_name(STAGE_CONTEXT));
    json_field_str(&j, "reason", failure->reason);
    json_close(&j, '}');
    return emit_start(s, index) && emit(s, &j) ? CHILD_NO_DEVICE : CHILD_BROKEN;
}

static int run_case(struct session *s, size_t index, bool fresh) {
    const struct job_case *c = &s->job->cases[index];
    struct failure failure = {.kind = FAULT_NONE};
    bool opened = false;
    if (!session_device(s, c->api, &opened, &failure)) {
        return no_device(s, index, &failure);
    }
    if ((opened && !emit_driver(s)) || !emit_start(s, index)) {
        return CHILD_BROKEN;
    }
    struct json record = {0};
    enum case_fate fate = case_execute(s, c, index, fresh, &record);
    if (fate == CASE_AGAIN) {
        return CHILD_AGAIN;
    }
    if (!emit(s, &record)) {
        return CHILD_BROKEN;
    }
    session_trim(s);
    return fate == CASE_LOST ? CHILD_RENEW : CHILD_DONE;
}

int execute_batch(int fd, size_t first, void *arg) {
    const struct execution *e = arg;
    struct session s = {
        .job = e->job,
        .impose = e->impose,
        .board = e->board,
        .fd = fd,
        .blobs = {.folder = e->job->blobs},
    };
    sensors_open(&s.sensors, e->sysfs_root);
    int code = CHILD_DONE;
    for (size_t i = first; code == CHILD_DONE && i < e->job->case_count; i++) {
        code = run_case(&s, i, i == first);
    }
    session_close(&s);
    return code;
}
