/* The end record of a case that the child brought to its end (docs/wire-formats.md). */
#include <string.h>

#include "case_run.h"
#include "child.h"
#include "record.h"

/* Where the time of the case went; stages that it did not enter are left out. */
static void put_spent(struct session *s, struct json *j) {
    session_stage(s, (enum stage)atomic_load(&s->board->stage)); /* up to now */
    json_key(j, "spent_ns");
    json_open(j, '{');
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        if (s->spent_ns[stage] > 0) {
            json_field_u64(j, stage_name(stage), (uint64_t)s->spent_ns[stage]);
        }
    }
    json_close(j, '}');
}

static void put_timing(const struct case_run *run, struct json *j) {
    const struct timing *t = &run->timing;
    json_key(j, "timing");
    json_open(j, '{');
    json_field_i64s(j, "compile_ns", run->compile_ns, run->compile_count);
    json_field_u64(j, "reused", run->reused);
    json_field_u64(j, "first_ns", (uint64_t)t->first_ns);
    json_field_i64s(j, "wall_ns", t->wall_ns, t->count);
    json_field_i64s(j, "gpu_ns", t->gpu_ns, t->gpu_count);
    json_field_u64(j, "slope_ns", (uint64_t)t->slope_ns);
    json_field_u64(j, "slope_n", t->slope_n);
    json_field_str(j, "gpu_timer", timer_trust_name(t->trust));
    put_spent(run->session, j);
    json_close(j, '}');
}

static void put_sensors(const struct case_run *run, struct json *j) {
    size_t all = run->timing.count + 1; /* a sensor that failed once gives no series */
    json_key(j, "sensors");
    json_open(j, '{');
    json_field_i64s(j, "gpu_hz", run->gpu_hz, run->gpu_hz_count == all ? all : 0);
    json_field_i64s(j, "temp_mc", run->temp_mc, run->temp_count == all ? all : 0);
    json_key(j, "throttled");
    if (run->throttled < 0) {
        json_null(j);
    } else {
        json_bool(j, run->throttled == 1);
    }
    json_close(j, '}');
}

static void put_log(const struct log *log, struct json *j) {
    json_key(j, "log");
    json_bytes(j, log->text == NULL ? "" : log->text, log->size);
    if (log->truncated) {
        json_key(j, "log_truncated");
        json_bool(j, true);
    }
}

static const char *status_name(enum case_status status) {
    static const char *const names[] = {"ok", "compile_failed", "unsupported", "crashed", "error"};
    return names[status];
}

void case_record(const struct case_run *run, size_t index, struct json *j) {
    record_end(j, run->spec, index, status_name(run->status));
    if (run->status == CASE_OK) {
        put_timing(run, j);
        put_sensors(run, j);
        case_put_outputs(run, j);
    } else {
        if (run->status != CASE_UNSUPPORTED) {
            json_field_str(j, "stage", stage_name(atomic_load(&run->session->board->stage)));
        }
        if (run->status == CASE_COMPILE_FAILED) {
            put_log(&run->log, j);
        } else {
            json_field_str(j, "reason", run->failure.reason);
        }
        if (run->status == CASE_CRASHED) {
            json_field_u64(j, "exit_code", CHILD_RENEW); /* with which this process now ends */
        }
    }
    session_stages_done(run->session);
    json_close(j, '}');
}
