/* What an end record says of a case's outputs (docs/wire-formats.md). */
#include "case_run.h"

static void put_counts(const struct output *o, const char *key, bool idle, struct json *j) {
    json_key(j, key);
    json_open(j, '{');
    for (size_t i = 0; i < o->hash_count; i++) {
        unsigned count = idle ? o->hashes[i].idle : o->hashes[i].count;
        if (count > 0) {
            json_field_u64(j, o->hashes[i].hash, count);
        }
    }
    json_close(j, '}');
}

static void put_box(const struct job_buffer *spec, const struct difference *d, struct json *j) {
    json_key(j, "box");
    json_open(j, '[');
    for (size_t k = 0; k < spec->dimension_count; k++) {
        json_open(j, '[');
        json_u64(j, d->low[k]);
        json_u64(j, d->high[k]);
        json_close(j, ']');
    }
    json_close(j, ']');
}

/* How often which bytes came, and where they differ. */
static void put_hashes(const struct case_run *run, const struct case_buffer *b, struct json *j) {
    json_field_str(j, "hash", b->output->hashes[0].hash);
    put_counts(b->output, "hashes", false, j);
    if (run->spec->idle_replays > 0) {
        put_counts(b->output, "idle_hashes", true, j);
    }
    if (b->output->differs != NULL) {
        const struct difference d = output_difference(b);
        json_key(j, "differs");
        json_open(j, '{');
        json_field_u64(j, "count", d.count);
        json_field_u64(j, "first", d.first);
        json_field_u64(j, "last", d.last);
        if (b->spec->dimension_count > 0) {
            put_box(b->spec, &d, j);
        }
        json_close(j, '}');
    }
}

static void put_mismatch(const char *key, const struct mismatch *m, struct json *j) {
    json_key(j, key);
    json_open(j, '{');
    json_field_u64(j, "index", m->index);
    json_field_num(j, "got", m->got);
    json_field_num(j, "ref", m->reference);
    json_close(j, '}');
}

static void put_unwritten(const struct metrics *m, struct json *j) {
    json_field_u64(j, "unwritten", m->unwritten);
    if (m->unwritten > 0) {
        json_field_u64(j, "unwritten_first", m->unwritten_first);
    }
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

/* The fields that a checked and a kept output have in common. */
static void put_facts(const struct case_run *run, const struct case_buffer *b, struct json *j) {
    json_field_str(j, "dtype", job_dtype_name(b->spec->dtype));
    json_field_u64(j, "count", b->spec->count);
    put_hashes(run, b, j);
    bool damaged = false;
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        damaged = damaged || run->buffers[i].damaged;
    }
    json_field_str(j, "guard", damaged ? "damaged" : "ok");
    put_unwritten(&b->output->metrics, j);
}

static void put_kept(const struct output *o, struct json *j) {
    json_key(j, "kept");
    json_bool(j, o->kept);
    if (o->keep_error[0] != '\0') {
        json_field_str(j, "keep_error", o->keep_error);
    }
    json_close(j, '}');
}

static void put_checked_outputs(const struct case_run *run, struct json *j) {
    json_key(j, "outputs");
    json_open(j, '[');
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        const struct case_buffer *b = &run->buffers[i];
        if (b->spec->checked) {
            json_open(j, '{');
            json_field_str(j, "buffer", b->spec->name);
            put_facts(run, b, j);
            put_metrics(&b->output->metrics, j);
            put_kept(b->output, j);
        }
    }
    json_close(j, ']');
}

static void put_unchecked_outputs(const struct case_run *run, struct json *j) {
    json_key(j, "kept");
    json_open(j, '{');
    for (size_t i = 0; i < run->spec->buffer_count; i++) {
        const struct case_buffer *b = &run->buffers[i];
        if (b->output != NULL && !b->spec->checked) {
            json_key(j, b->spec->name);
            json_open(j, '{');
            put_facts(run, b, j);
            put_kept(b->output, j);
        }
    }
    json_close(j, '}');
}

void case_put_outputs(const struct case_run *run, struct json *j) {
    put_checked_outputs(run, j);
    put_unchecked_outputs(run, j);
}
