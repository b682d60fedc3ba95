/* The end record of a case that the child brought to its end (docs/wire-formats.md). */
#include <string.h>

#include "case_run.h"
#include "child.h"
#include "record.h"

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

static void put_hashes(const struct output *o, struct json *j) {
    json_field_str(j, "hash", o->hashes[0].hash);
    json_key(j, "hashes");
    json_open(j, '{');
    for (size_t i = 0; i < o->hash_count; i++) {
        json_field_u64(j, o->hashes[i].hash, o->hashes[i].count);
    }
    json_close(j, '}');
}

static void put_differs(const struct output *o, uint64_t count, struct json *j) {
    uint64_t differing = 0, first = 0, last = 0;
    if (o->differs == NULL) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (((unsigned)o->differs[i / 8] >> (i % 8) & 1u) != 0) {
            first = differing == 0 ? i : first;
            last = i;
            differing++;
        }
    }
    json_key(j, "differs");
    json_open(j, '{');
    json_field_u64(j, "count", differing);
    json_field_u64(j, "first", first);
    json_field_u64(j, "last", last);
    json_close(j, '}');
}

static void put_mismatch(const char *key, const struct mismatch *m, struct json *j) {
    json_key(j, key);
    json_open(j, '{');
    json_field_u64(j, "index", m->index);
    json_field_num(j, "got", m->got);
    json_field_num(j, "ref", m->reference);
    json_close(j, '}');
}

static void put_metrics(const struct metrics *m, struct json *j) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"max_abs", m->max_abs}, {"mean_abs", m->mean_abs}, {"p99_abs", m->p99_abs},
        {"max_rel", m->max_rel}, {"mean_rel", m->mean_rel}, {"p99_rel", m->p99_rel},
        {"ulp_max", m->ulp_max}, {"ulp_p50", m->ulp_p50},   {"ulp_p99", m->ulp_p99},
        {"nmse", m->nmse},       {"cosine", m->cosine},     {"ref_absmax", m->ref_absmax},
    };
    json_field_u64(j, "unwritten", m->unwritten);
    if (m->unwritten > 0) {
        json_field_u64(j, "unwritten_first", m->unwritten_first);
    }
    json_field_u64(j, "nan", m->nan);
    json_field_u64(j, "inf", m->inf);
    json_field_u64(j, "nonfinite_mismatch", m->nonfinite_mismatch);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_field_num(j, numbers[i].key, numbers[i].value);
    }
    json_field_u64(j, "failing", m->failing);
    if (m->failing > 0) {
        put_mismatch("first_bad", &m->first_bad, j);
        put_mismatch("worst", &m->worst, j);
    }
}

static void put_output(const struct case_buffer *b, bool damaged, struct json *j) {
    const struct output *o = b->output;
    json_open(j, '{');
    json_field_str(j, "buffer", b->spec->name);
    json_field_str(j, "dtype", job_dtype_name(b->spec->dtype));
    json_field_u64(j, "count", b->spec->count);
    put_hashes(o, j);
    put_differs(o, b->spec->count, j);
    json_field_str(j, "guard", damaged ? "damaged" : "ok");
    put_metrics(&o->metrics, j);
    json_key(j, "kept");
    json_bool(j, o->kept);
    if (o->keep_error[0] != '\0') {
        json_field_str(j, "keep_error", o->keep_error);
    }
    json_close(j, '}');
}

static void put_outputs(const struct case_run *run, struct json *j) {
    bool damaged = false;
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        damaged = damaged || run->buffers[i].damaged;
    }
    json_key(j, "outputs");
    json_open(j, '[');
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        if (run->spec->buffers[i].checked) {
            put_output(&run->buffers[i], damaged, j);
        }
    }
    json_close(j, ']');
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
        put_outputs(run, j);
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
    json_close(j, '}');
}
